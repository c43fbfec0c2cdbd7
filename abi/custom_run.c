/* custom_run.c - the callbacks of a client's operators as the library calls them: which kernel a
 * node gets, what shapes its outputs have, the kernel's life.
 *
 * What a callback of the client refuses is the failure of the load or run, with its words and code.
 * Functions of early versions have no way to refuse.
 */
#include "custom.h"

#include <stdlib.h>
#include <string.h>

typedef struct kernel {
    const abi_family *family;
    const OrtCustomOp *op;
    OrtKernelInfo *info;
    void *kernel; /* the client's */
} kernel;

/* The status of a client as one of the library; it is freed. */
static ort_status refuse(ort_ops_node *node, const abi_family *f, ort_status status,
                         OrtStatus *said, ort_error *err)
{
    __atomic_store_n(&((abi_family *)f)->custom->code, abi_GetErrorCode(said), __ATOMIC_RELEASE);
    status = node->api->fail(err, status, "%s", abi_GetErrorMessage(said));
    abi_ReleaseStatus(said);
    return status;
}

/* --------------------------------------------------------------------------- choosing a kernel */

static bool takes(int type, ort_dtype dtype)
{
    return !type || dtype == ORT_DTYPE_UNDEFINED || abi_dtype_in(type) == dtype;
}

/* The slot that an input or output belongs to: a variadic one takes all that are left. */
static size_t slot_of(const OrtCustomOp *op, size_t index, bool input)
{
    size_t count = abi_op_slots(op, input);
    return index < count ? index : count - 1;
}

static bool fits(const OrtCustomOp *op, const ort_ops_node *node)
{
    for (int i = 0; i < node->api->input_count(node); i++) {
        const ort_ops_tensor *x = node->api->input(node, i);
        if (x && !takes(abi_op_type(op, slot_of(op, (size_t)i, true), true), x->dtype))
            return false;
    }
    return true;
}

/* Outputs that the model declares as another type tell kernels apart that take the same inputs. */
static bool gives(const OrtCustomOp *op, ort_ops_node *node)
{
    for (int i = 0; i < node->api->output_count(node); i++) {
        const ort_ops_tensor *y = node->api->output_type(node, i);
        if (y && !takes(abi_op_type(op, slot_of(op, (size_t)i, false), false), y->dtype))
            return false;
    }
    return true;
}

static const OrtCustomOp *choose(const abi_family *f, ort_ops_node *node)
{
    const OrtCustomOp *found = NULL;
    for (size_t i = 0; i < f->count; i++) {
        if (!fits(f->ops[i], node))
            continue;
        if (gives(f->ops[i], node))
            return f->ops[i];
        if (!found)
            found = f->ops[i];
    }
    return found;
}

static ort_status no_kernel(ort_ops_node *node, const abi_family *f, ort_error *err)
{
    return node->api->fail(err, ORT_ERROR_MODEL,
                           "none of the %zu kernels of %s takes inputs of these types", f->count,
                           f->name);
}

/* ------------------------------------------------------------------------------------ inference */

/* An output of any type has that of the input of any type. */
static ort_dtype output_type(const OrtCustomOp *op, const ort_ops_node *node, size_t index)
{
    int type = abi_op_type(op, slot_of(op, index, false), false);
    if (type)
        return abi_dtype_in(type);
    for (int i = 0; i < node->api->input_count(node); i++) {
        const ort_ops_tensor *x = node->api->input(node, i);
        if (x && !abi_op_type(op, slot_of(op, (size_t)i, true), true))
            return x->dtype;
    }
    return ORT_DTYPE_UNDEFINED;
}

static ort_status say_types(const OrtCustomOp *op, const OrtShapeInferContext *c, ort_error *err)
{
    const ort_ops_api *api = c->node->api;
    ort_status status = ORT_OK;
    for (size_t i = 0; status == ORT_OK && i < c->output_count; i++) {
        const OrtTensorTypeAndShapeInfo *said = c->outputs[i];
        ort_dtype dtype = output_type(op, c->node, i);
        int64_t dims[ABI_MAX_RANK];
        if (said && said->dtype && !abi_op_type(op, slot_of(op, i, false), false))
            dtype = abi_dtype_in(said->dtype);
        for (size_t k = 0; said && k < said->rank; k++) {
            bool named = said->dims[k] < 0 && said->symbols[k][0];
            dims[k] = named ? api->dim_named(c->node, said->symbols[k]) : said->dims[k];
        }
        int rank = said && said->has_shape ? (int)said->rank : -1;
        status = api->set_type(c->node, (int)i, dtype, rank, dims, err);
    }
    return status;
}

static ort_status infer(ort_ops_node *node, ort_error *err)
{
    const abi_family *f = node->api->data(node);
    const OrtCustomOp *op = choose(f, node);
    if (!op)
        return no_kernel(node, f, err);
    OrtShapeInferContext c = {.node = node,
                              .input_count = (size_t)node->api->input_count(node),
                              .output_count = (size_t)node->api->output_count(node)};
    c.inputs = node->api->alloc(node, (c.input_count + 1) * sizeof *c.inputs);
    c.outputs = node->api->alloc(node, (c.output_count + 1) * sizeof *c.outputs);
    if (!c.inputs || !c.outputs)
        return node->api->fail(err, ORT_ERROR_MEMORY, "no memory");
    /* What it refuses only leaves the shapes open: onnxruntime loads such models, too. */
    if (op->version >= 17 && op->InferOutputShapeFn)
        abi_ReleaseStatus(op->InferOutputShapeFn(op, &c));
    ort_status status = say_types(op, &c, err);
    abi_infer_release(&c);
    return status;
}

/* ---------------------------------------------------------------------------- a kernel's life */

static OrtStatus *make_kernel(kernel *k)
{
    const OrtCustomOp *op = k->op;
    const OrtApi *api = abi_table();
    if (op->version >= 16 && op->CreateKernelV2)
        return op->CreateKernelV2(op, api, k->info, &k->kernel);
    k->kernel = op->CreateKernel(op, api, k->info);
    return NULL;
}

static ort_status create(ort_ops_node *node, void **state, ort_error *err)
{
    const abi_family *f = node->api->data(node);
    kernel *k = calloc(1, sizeof *k);
    if (!k)
        return node->api->fail(err, ORT_ERROR_MEMORY, "no memory");
    k->family = f;
    k->op = choose(f, node);
    if (!k->op) {
        free(k);
        return no_kernel(node, f, err);
    }
    OrtStatus *said = abi_kernel_info(f, node, &k->info);
    if (!said)
        said = make_kernel(k);
    if (!said) {
        *state = k;
        return ORT_OK;
    }
    abi_ReleaseKernelInfo(k->info);
    free(k);
    return refuse(node, f, ORT_ERROR_MODEL, said, err);
}

static void destroy(void *state)
{
    kernel *k = state;
    if (k->op->KernelDestroy)
        k->op->KernelDestroy(k->kernel);
    abi_ReleaseKernelInfo(k->info);
    free(k);
}

/* ---------------------------------------------------------------------------------------- runs */

static OrtStatus *compute(const kernel *k, OrtKernelContext *context)
{
    if (k->op->version >= 16 && k->op->KernelComputeV2)
        return k->op->KernelComputeV2(k->kernel, context);
    k->op->KernelCompute(k->kernel, context);
    return NULL;
}

/* Strings were written to a value of the client's side. */
static ort_status hand_over(ort_ops_node *node, const OrtKernelContext *c, ort_error *err)
{
    ort_status status = ORT_OK;
    for (size_t i = 0; status == ORT_OK && i < c->output_count; i++) {
        const ort_value *made = c->outputs[i].value;
        if (!made || ort_value_dtype(made) != ORT_DTYPE_STRING)
            continue;
        ort_ops_tensor *y = node->api->output(node, (int)i, ort_value_rank(made),
                                              ort_value_dims(made), err);
        status = y ? ORT_OK : err->status;
        for (int64_t at = 0; status == ORT_OK && at < ort_value_count(made); at++) {
            size_t length;
            const char *text = ort_value_string(made, at, &length);
            status = node->api->set_string(node, y, at, text, length, err);
        }
    }
    return status;
}

static ort_status run(ort_ops_node *node, void *state, ort_error *err)
{
    const kernel *k = state;
    OrtKernelContext c = {.node = node,
                          .family = k->family,
                          .input_count = (size_t)node->api->input_count(node),
                          .output_count = (size_t)node->api->output_count(node)};
    c.inputs = node->api->alloc(node, (c.input_count + c.output_count + 1) * sizeof *c.inputs);
    if (!c.inputs)
        return node->api->fail(err, ORT_ERROR_MEMORY, "no memory");
    c.outputs = c.inputs + c.input_count;
    OrtStatus *said = compute(k, &c);
    ort_status status = said ? refuse(node, k->family, ORT_ERROR_RUN, said, err)
                             : hand_over(node, &c, err);
    for (size_t i = 0; i < c.output_count; i++)
        ort_value_free(c.outputs[i].value);
    return status;
}

const ort_ops_row abi_custom_functions = {
    .flags = ORT_OPS_IMPURE | ORT_OPS_DYNAMIC | ORT_OPS_ANY_ATTRIBUTES,
    .infer = infer,
    .create = create,
    .destroy = destroy,
    .run = run,
};
