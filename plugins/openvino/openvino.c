/* openvino.c - OpenVINO as a provider: each part is compiled as a whole by its runtime for the CPU,
 * from the ONNX model that libort writes of the part.
 *
 * The library is opened when a session names `openvino` (ORT_OPENVINO_LIB, else the file that the
 * headers came with), so that this plugin can be built where the headers are. Precision is forced
 * to float: left alone, OpenVINO computes in bfloat16 where the processor has it.
 *
 * A frame has a buffer for each value that goes in or out of a part and one request for each part,
 * bound to these buffers once; a run copies in, infers, copies out. OpenVINO's requests wait.
 */
#include <dlfcn.h>
#include <openvino/c/openvino.h>
#include <ort_provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS(X)                                                                               \
    X(ov_get_openvino_version)                                                                     \
    X(ov_version_free)                                                                             \
    X(ov_get_last_err_msg)                                                                         \
    X(ov_get_error_info)                                                                           \
    X(ov_free)                                                                                     \
    X(ov_core_create)                                                                              \
    X(ov_core_free)                                                                                \
    X(ov_core_get_property)                                                                        \
    X(ov_core_read_model_from_memory_buffer)                                                       \
    X(ov_core_compile_model)                                                                       \
    X(ov_model_free)                                                                               \
    X(ov_compiled_model_create_infer_request)                                                      \
    X(ov_compiled_model_free)                                                                      \
    X(ov_infer_request_set_input_tensor_by_index)                                                  \
    X(ov_infer_request_set_output_tensor_by_index)                                                 \
    X(ov_infer_request_infer)                                                                      \
    X(ov_infer_request_free)                                                                       \
    X(ov_shape_create)                                                                             \
    X(ov_shape_free)                                                                               \
    X(ov_tensor_create_from_host_ptr)                                                              \
    X(ov_tensor_free)

typedef struct openvino { /* its functions */
#define X(name) __typeof__(&name) name;
    FUNCTIONS(X)
#undef X
} openvino;

/* The library stays open: it leaves threads and exit handlers behind. */
static ort_status open_library(openvino *ov, ort_error *err)
{
    const char *name = getenv("ORT_OPENVINO_LIB"), *missing = NULL;
    name = name && *name ? name : OPENVINO_FILE;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        snprintf(err->message, sizeof err->message,
                 "OpenVINO isn't installed: %s (ORT_OPENVINO_LIB names its libopenvino_c.so)",
                 dlerror());
#define X(function)                                                                                \
    *(void **)&ov->function = library ? dlsym(library, #function) : NULL;                          \
    missing = ov->function ? missing : #function;
    FUNCTIONS(X)
#undef X
    if (library && missing)
        snprintf(err->message, sizeof err->message, "%s has no %s", name, missing);
    if (missing)
        err->count = 1;
    return missing ? err->status = ORT_ERROR_DEVICE : ORT_OK;
}

typedef struct device {
    openvino ov;
    ov_core_t *core;
    const ort_provider_api *api;
    char threads[12];
} device;

static ort_status failed(const device *d, ov_status_e code, const char *what, ort_error *err)
{
    const char *text = d->ov.ov_get_last_err_msg();
    ort_status status = d->api->fail(err, ORT_ERROR_DEVICE, "%s: %s: %.1200s", what,
                                     d->ov.ov_get_error_info(code), text ? text : "");
    d->ov.ov_free(text);
    return status;
}

static void close_device(void *opened)
{
    device *d = opened;
    if (d->core)
        d->ov.ov_core_free(d->core);
    free(d);
}

static ort_status open_device(const ort_provider_setup *setup, void **opened, ort_error *err)
{
    device *d = calloc(1, sizeof *d);
    if (!d)
        return setup->api->fail(err, ORT_ERROR_MEMORY, "no memory for a device");
    d->api = setup->api;
    snprintf(d->threads, sizeof d->threads, "%d", setup->threads);
    ort_status status = open_library(&d->ov, err);
    if (status == ORT_OK) {
        ov_status_e code = d->ov.ov_core_create(&d->core);
        status = code == OK ? ORT_OK : failed(d, code, "OpenVINO doesn't start", err);
    }
    if (status != ORT_OK) {
        close_device(d);
        return status;
    }
    *opened = d;
    return ORT_OK;
}

static ort_status devices(ort_device_fn *tell, void *arg, ort_error *err)
{
    openvino ov;
    ov_core_t *core = NULL;
    ov_version_t version = {0};
    char *name = NULL;
    if (open_library(&ov, err) != ORT_OK)
        return ORT_ERROR_DEVICE;
    if (ov.ov_get_openvino_version(&version) == OK && ov.ov_core_create(&core) == OK &&
        ov.ov_core_get_property(core, "CPU", "FULL_DEVICE_NAME", &name) == OK) {
        const ort_device_info info = {.name = name, .vendor = "", .platform = "OpenVINO",
                                      .driver = version.buildNumber, .version = "", .kind = "cpu",
                                      .unified = true};
        tell(arg, &info);
    }
    if (name)
        ov.ov_free(name);
    if (core)
        ov.ov_core_free(core);
    ov.ov_version_free(&version);
    return ORT_OK;
}

/* ---- claims: operators of ONNX that its reader has, on floats */

static const char *const operators[] = {
    "Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "AveragePool",
    "BatchNormalization", "Ceil", "Celu", "Clip", "Concat", "Conv", "ConvTranspose", "Cos", "Cosh",
    "DepthToSpace", "Div", "Elu", "Erf", "Exp", "Expand", "Flatten", "Floor", "Gather",
    "GatherElements", "GatherND", "Gelu", "Gemm", "GlobalAveragePool", "GlobalMaxPool",
    "GroupNormalization", "HardSigmoid", "HardSwish", "InstanceNormalization", "LRN",
    "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "MatMul", "Max", "MaxPool", "Mean",
    "Min", "Mish", "Mul", "Neg", "PRelu", "Pad", "Pow", "Reciprocal", "ReduceL1", "ReduceL2",
    "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare", "Relu", "Reshape",
    "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Slice", "Softmax", "Softplus", "Softsign",
    "SpaceToDepth", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tan", "Tanh", "ThresholdedRelu",
    "Tile", "Transpose", "Unsqueeze", "Where", NULL,
};

/* What libort's fusions make, and OpenVINO reads as they mean it: not FusedGemm, of which it makes
 * other numbers. */
static const char *const fused[] = {"FusedConv", "Gelu", "BiasGelu", "FastGelu", NULL};

static bool is_listed(const char *domain, const char *op)
{
    const char *const *list = !*domain                           ? operators
                              : !strcmp(domain, "com.microsoft") ? fused
                                                                 : NULL;
    for (int i = 0; list && list[i]; i++)
        if (!strcmp(list[i], op))
            return true;
    return false;
}

static bool is_activation(const char *name)
{
    static const char *const known[] = {"", "Relu", "Tanh", "Sigmoid", "LeakyRelu", NULL};
    for (int i = 0; known[i]; i++)
        if (!strcmp(known[i], name))
            return true;
    return false;
}

static bool supports(const ort_provider_api *api, const ort_op *op)
{
    return is_listed(api->op_domain(op), api->op_name(op));
}

/* Its integers of 64 bits become 32 inside: they may say how, not be the result. */
static bool is_read(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT || dtype == ORT_DTYPE_INT64 || dtype == ORT_DTYPE_INT32 ||
           dtype == ORT_DTYPE_BOOL;
}

/* Forms in which it means something else, or leaves the output unwritten. */
static const char *odd_form(const ort_provider_api *api, const ort_node *node)
{
    static const char *const lists[] = {"Max", "Min", "Sum", "Mean", "Concat", NULL};
    const char *op = api->node_type(node);
    for (int i = 0; lists[i]; i++)
        if (!strcmp(lists[i], op) && api->input_count(node) < 2)
            return "one input: its output would be no copy";
    if (strstr(op, "Pool") && api->attr_int(node, "ceil_mode", 0))
        return "sizes rounded up: it counts windows otherwise";
    if (!strcmp(op, "SpaceToDepth") && api->attr_given(node, "mode"))
        return "an attribute that it doesn't know";
    if (!strcmp(op, "Softmax") && api->node_opset(node) < 13)
        return "before opset 13 it flattens its input";
    if (!is_activation(api->attr_string(node, "activation", "")) ||
        (!strcmp(op, "FusedConv") && api->input(node, 3) != ORT_ID_NONE))
        return "its activation, or a sum";
    return NULL;
}

static bool claim(void *opened, const ort_graph *graph, const ort_node *node, const char **why)
{
    const ort_provider_api *api = ((device *)opened)->api;
    const char *op = api->node_type(node), *odd = odd_form(api, node);
    ort_device_value v;
    *why = "no kernel";
    if (!is_listed(api->node_domain(node), op))
        return false;
    *why = "its opset isn't the model's";
    if (api->node_opset(node) != api->model_opset(graph, api->node_domain(node)))
        return false;
    *why = odd;
    if (odd)
        return false;
    for (int i = 0; i < api->input_count(node); i++) {
        ort_id id = api->input(node, i);
        *why = "an input's element type";
        api->value(graph, id, &v);
        if (id != ORT_ID_NONE && (!is_read(v.dtype) || (i == 0 && v.dtype != ORT_DTYPE_FLOAT &&
                                                        strcmp(op, "Where"))))
            return false;
        *why = "an input without elements";
        if (id != ORT_ID_NONE && v.count == 0)
            return false;
    }
    for (int i = 0; i < api->output_count(node); i++) {
        *why = "an output that isn't float";
        api->value(graph, api->output(node, i), &v);
        if (api->output(node, i) != ORT_ID_NONE && v.dtype != ORT_DTYPE_FLOAT)
            return false;
        *why = "more outputs than its readers have";
        if (i && api->output(node, i) != ORT_ID_NONE && strcmp(op, "Split"))
            return false;
    }
    return true;
}

/* As fast as this processor; a part costs a request. */
static double cost(void *opened, const ort_node_work *work)
{
    return work->macs * 2 / 80e9 + work->flops / 4e9 + work->bytes / 10e9 + 2e-6;
}

static double copy_cost(void *opened, double bytes)
{
    return bytes / 8e9 + 5e-6;
}

/* ---- plans */

typedef struct border { /* a value that goes into or out of a part */
    ort_id id;
    ov_element_type_e type;
    int64_t dims[16];
    int rank;
    size_t bytes;
} border;

typedef struct part {
    ov_compiled_model_t *compiled;
    border *in, *out;
    int in_count, out_count;
} part;

typedef struct plan {
    device *d;
    part *parts;
    int part_count;
    ort_id *in, *out; /* by copy */
    size_t value_count;
} plan;

static bool describe(const ort_device_request *r, const ort_id *ids, int count, border **list)
{
    *list = calloc((size_t)count + 1, sizeof **list);
    for (int i = 0; *list && i < count; i++) {
        border *b = &(*list)[i];
        ort_device_value v;
        r->api->settled(r, ids[i], &v);
        b->id = ids[i];
        b->type = v.dtype == ORT_DTYPE_FLOAT   ? F32
                  : v.dtype == ORT_DTYPE_INT64 ? I64
                  : v.dtype == ORT_DTYPE_INT32 ? I32
                                               : BOOLEAN;
        b->rank = v.rank;
        memcpy(b->dims, v.dims, sizeof b->dims);
        b->bytes = (size_t)v.count * (size_t)(b->type == BOOLEAN ? 1 : b->type == I64 ? 8 : 4);
    }
    return *list != NULL;
}

static ort_status compile(plan *p, const ort_device_request *r, int index, ort_error *err)
{
    const openvino *ov = &p->d->ov;
    part *part = &p->parts[index];
    ort_part_model model;
    ov_model_t *read = NULL;
    ort_status status = r->api->part_model(r, index, &model, err);
    if (status != ORT_OK)
        return status;
    part->in_count = model.input_count;
    part->out_count = model.output_count;
    if (!describe(r, model.inputs, model.input_count, &part->in) ||
        !describe(r, model.outputs, model.output_count, &part->out)) {
        r->api->part_model_free(&model);
        return r->api->fail(err, ORT_ERROR_MEMORY, "no memory for a plan");
    }
    ov_status_e code = ov->ov_core_read_model_from_memory_buffer(p->d->core, model.bytes,
                                                                 model.count, NULL, &read);
    if (code == OK)
        code = ov->ov_core_compile_model(p->d->core, read, "CPU", 6, &part->compiled,
                                         "INFERENCE_PRECISION_HINT", "f32", "NUM_STREAMS", "1",
                                         "INFERENCE_NUM_THREADS", p->d->threads);
    if (code != OK)
        status = failed(p->d, code, "OpenVINO doesn't compile a part", err);
    if (read)
        ov->ov_model_free(read);
    r->api->part_model_free(&model);
    return status;
}

static void plan_free(void *made)
{
    plan *p = made;
    for (int i = 0; p->parts && i < p->part_count; i++) {
        if (p->parts[i].compiled)
            p->d->ov.ov_compiled_model_free(p->parts[i].compiled);
        free(p->parts[i].in);
        free(p->parts[i].out);
    }
    free(p->parts);
    free(p->in);
    free(p->out);
    free(p);
}

static ort_status note_copies(plan *p, const ort_device_request *r, ort_error *err)
{
    size_t ins = 1, outs = 1;
    for (int i = 0; i < r->part_count; i++) {
        ins += (size_t)r->parts[i].in_count;
        outs += (size_t)r->parts[i].out_count;
    }
    p->parts = calloc((size_t)r->part_count + 1, sizeof *p->parts);
    p->in = calloc(ins, sizeof *p->in);
    p->out = calloc(outs, sizeof *p->out);
    if (!p->parts || !p->in || !p->out)
        return r->api->fail(err, ORT_ERROR_MEMORY, "no memory for a plan");
    for (int i = 0; i < r->part_count; i++) {
        for (int k = 0; k < r->parts[i].in_count; k++)
            p->in[r->parts[i].in[k].index] = r->parts[i].in[k].id;
        for (int k = 0; k < r->parts[i].out_count; k++)
            p->out[r->parts[i].out[k].index] = r->parts[i].out[k].id;
    }
    return ORT_OK;
}

static ort_status plan_new(void *opened, const ort_device_request *r, void **made, ort_error *err)
{
    plan *p = calloc(1, sizeof *p);
    if (!p)
        return r->api->fail(err, ORT_ERROR_MEMORY, "no memory for a plan");
    p->d = opened;
    p->part_count = r->part_count;
    p->value_count = r->api->value_count(r->graph);
    ort_status status = note_copies(p, r, err);
    for (int i = 0; i < r->part_count && status == ORT_OK; i++)
        status = compile(p, r, i, err);
    if (status != ORT_OK)
        plan_free(p);
    else
        *made = p;
    return status;
}

/* ---- frames and runs */

typedef struct frame {
    plan *p;
    void **values; /* by value id: of those at borders */
    size_t *bytes;
    ov_infer_request_t **requests; /* by part */
} frame;

static void frame_free(void *opened)
{
    frame *f = opened;
    for (int i = 0; f->requests && i < f->p->part_count; i++)
        if (f->requests[i])
            f->p->d->ov.ov_infer_request_free(f->requests[i]);
    for (size_t i = 0; f->values && i < f->p->value_count; i++)
        free(f->values[i]);
    free(f->values);
    free(f->bytes);
    free(f->requests);
    free(f);
}

/* The request's slot is the value's memory from now on. */
static ov_status_e bind(frame *f, ov_infer_request_t *request, const border *b, size_t slot,
                        bool in)
{
    const openvino *ov = &f->p->d->ov;
    ov_shape_t shape;
    ov_tensor_t *tensor = NULL;
    if (!f->values[b->id])
        f->values[b->id] = aligned_alloc(64, (b->bytes + 127) / 64 * 64);
    f->bytes[b->id] = b->bytes;
    if (!f->values[b->id])
        return UNKNOW_EXCEPTION;
    ov_status_e code = OK;
    shape = (ov_shape_t){0, (int64_t *)(uintptr_t)b->dims}; /* that of a scalar it doesn't make */
    if (b->rank)
        code = ov->ov_shape_create(b->rank, b->dims, &shape);
    if (code != OK)
        return code;
    code = ov->ov_tensor_create_from_host_ptr(b->type, shape, f->values[b->id], &tensor);
    if (b->rank)
        ov->ov_shape_free(&shape);
    if (code == OK)
        code = in ? ov->ov_infer_request_set_input_tensor_by_index(request, slot, tensor)
                  : ov->ov_infer_request_set_output_tensor_by_index(request, slot, tensor);
    if (tensor)
        ov->ov_tensor_free(tensor);
    return code;
}

static ov_status_e make_request(frame *f, int index)
{
    part *part = &f->p->parts[index];
    ov_status_e code = f->p->d->ov.ov_compiled_model_create_infer_request(part->compiled,
                                                                          &f->requests[index]);
    for (int i = 0; i < part->in_count && code == OK; i++)
        code = bind(f, f->requests[index], &part->in[i], (size_t)i, true);
    for (int i = 0; i < part->out_count && code == OK; i++)
        code = bind(f, f->requests[index], &part->out[i], (size_t)i, false);
    return code;
}

static ort_status frame_new(void *made, void **opened, size_t *bytes, ort_error *err)
{
    plan *p = made;
    frame *f = calloc(1, sizeof *f);
    ort_status status = ORT_OK;
    if (!f)
        return p->d->api->fail(err, ORT_ERROR_MEMORY, "no memory for a run");
    f->p = p;
    f->values = calloc(p->value_count + 1, sizeof *f->values);
    f->bytes = calloc(p->value_count + 1, sizeof *f->bytes);
    f->requests = calloc((size_t)p->part_count + 1, sizeof *f->requests);
    if (!f->values || !f->bytes || !f->requests)
        status = p->d->api->fail(err, ORT_ERROR_MEMORY, "no memory for a run");
    for (int i = 0; i < p->part_count && status == ORT_OK; i++) {
        ov_status_e code = make_request(f, i);
        status = code == OK ? ORT_OK : failed(p->d, code, "OpenVINO makes no request", err);
    }
    if (status != ORT_OK) {
        frame_free(f);
        return status;
    }
    *bytes = 0;
    for (size_t i = 0; i < p->value_count; i++)
        *bytes += f->bytes[i];
    *opened = f;
    return ORT_OK;
}

static ort_status copy_in(void *opened, int index, const void *data, ort_error *err)
{
    frame *f = opened;
    ort_id id = f->p->in[index];
    if (f->bytes[id])
        memcpy(f->values[id], data, f->bytes[id]);
    return ORT_OK;
}

static ort_status copy_out(void *opened, int index, void *data, ort_error *err)
{
    frame *f = opened;
    ort_id id = f->p->out[index];
    if (f->bytes[id])
        memcpy(data, f->values[id], f->bytes[id]);
    return ORT_OK;
}

static ort_status run(void *opened, int index, ort_error *err)
{
    frame *f = opened;
    ov_status_e code = f->p->d->ov.ov_infer_request_infer(f->requests[index]);
    return code == OK ? ORT_OK : failed(f->p->d, code, "OpenVINO failed", err);
}

static ort_status sync_frame(void *opened, ort_error *err)
{
    return ORT_OK;
}

static const ort_provider row = {
    .size = sizeof(ort_provider), .name = "openvino", .doc = "OpenVINO on this processor, in float",
    .devices = devices, .open = open_device, .close = close_device, .claim = claim,
    .supports = supports, .cost = cost, .copy_cost = copy_cost, .plan = plan_new,
    .plan_free = plan_free, .frame = frame_new, .frame_free = frame_free, .copy_in = copy_in,
    .run = run, .copy_out = copy_out, .sync = sync_frame,
};
static const ort_provider *const rows[] = {&row, NULL};

const ort_provider_library ort_provider_entry = {
    .abi = 1, .size = sizeof(ort_provider_library), .name = "openvino", .version = "1",
    .providers = rows,
};
