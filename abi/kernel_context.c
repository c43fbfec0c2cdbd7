/* kernel_context.c - what a kernel may ask during a run: inputs, outputs, memory, threads, the log;
 * and what shape inference may ask and say.
 *
 * Inputs are the library's values, not copied. Numbers of an output are written where the library
 * wants them; strings are handed over when the kernel has returned.
 */
#include "custom.h"

#include <stdlib.h>
#include <string.h>

OrtStatus *abi_KernelContext_GetInputCount(const OrtKernelContext *c, size_t *out)
{
    *out = c->input_count;
    return NULL;
}

OrtStatus *abi_KernelContext_GetOutputCount(const OrtKernelContext *c, size_t *out)
{
    *out = c->output_count;
    return NULL;
}

OrtStatus *abi_KernelContext_GetInput(const OrtKernelContext *c, size_t index, const OrtValue **out)
{
    *out = NULL;
    ABI_CHECK(index < c->input_count, "KernelContext_GetInput: index %zu of %zu inputs", index,
              c->input_count);
    const ort_value *value = c->node->api->input_value(c->node, (int)index);
    if (!value)
        return NULL;
    c->inputs[index] = (OrtValue){.value = (ort_value *)value, .memory = &abi_cpu_memory};
    *out = &c->inputs[index];
    return NULL;
}

static OrtStatus *make_output(const OrtKernelContext *c, size_t index, const int64_t *dims,
                              size_t rank, ort_value **out)
{
    ort_error err = ORT_ERROR_INIT;
    const ort_ops_tensor *y = c->node->api->output(c->node, (int)index, (int)rank, dims, &err);
    if (!y)
        return abi_from_error(&err);
    size_t bits = (size_t)y->count * (size_t)ort_dtype_bits(y->dtype);
    ort_status status =
        y->dtype == ORT_DTYPE_STRING || !bits
            ? ort_value_new_tensor(y->dtype, (int)rank, dims, out, &err)
            : ort_value_new_borrowed(y->dtype, (int)rank, dims, y->data, (bits + 7) / 8, out, &err);
    return status == ORT_OK ? NULL : abi_from_error(&err);
}

/* NULL in *out: nobody wants this output. */
OrtStatus *abi_KernelContext_GetOutput(OrtKernelContext *c, size_t index, const int64_t *dims,
                                       size_t rank, OrtValue **out)
{
    *out = NULL;
    ABI_CHECK(index < c->output_count, "KernelContext_GetOutput: index %zu of %zu outputs", index,
              c->output_count);
    ABI_CHECK(rank <= ABI_MAX_RANK && (dims || !rank), "%zu dimensions: at most %d", rank,
              ABI_MAX_RANK);
    OrtValue *value = &c->outputs[index];
    if (!c->node->api->wanted(c->node, (int)index))
        return NULL;
    if (!value->value)
        ABI_TRY(make_output(c, index, dims, rank, &value->value));
    value->memory = &abi_cpu_memory;
    *out = value;
    return NULL;
}

/* Outputs have no place before their shape is known. */
OrtStatus *abi_KernelContext_GetPreallocatedOutput(const OrtKernelContext *c, size_t index,
                                                   OrtValue **out)
{
    *out = NULL;
    return NULL;
}

OrtStatus *abi_KernelContext_GetGPUComputeStream(const OrtKernelContext *c, void **out)
{
    *out = NULL;
    return NULL;
}

OrtStatus *abi_KernelContext_GetSyncStream(const OrtKernelContext *c, OrtSyncStream **out)
{
    *out = NULL;
    return NULL;
}

OrtStatus *abi_KernelContext_GetAllocator(const OrtKernelContext *c, const OrtMemoryInfo *memory,
                                          OrtAllocator **out)
{
    ABI_CHECK(memory && out, "mem_info is NULL");
    ABI_CHECK(!memory->device_type, "No requested allocator available");
    *out = &abi_default_allocator;
    return NULL;
}

OrtStatus *abi_KernelContext_GetScratchBuffer(const OrtKernelContext *c,
                                              const OrtMemoryInfo *memory, size_t bytes, void **out)
{
    *out = NULL;
    if (!bytes)
        return NULL;
    *out = c->node->api->alloc(c->node, bytes);
    return *out ? NULL : abi_no_memory();
}

typedef struct loop {
    void (*body)(void *, size_t);
    void *data;
    size_t total, tasks;
} loop;

static void run_part(void *arg, size_t task, int thread)
{
    const loop *l = arg;
    size_t part = l->total / l->tasks, rest = l->total % l->tasks;
    size_t begin = task * part + (task < rest ? task : rest);
    for (size_t i = 0; i < part + (task < rest); i++)
        l->body(l->data, begin + i);
}

OrtStatus *abi_KernelContext_ParallelFor(const OrtKernelContext *c, void (*body)(void *, size_t),
                                         size_t total, size_t batches, void *data)
{
    ABI_CHECK(c && body, "context or fn is NULL");
    size_t most = batches ? batches : 4 * (size_t)c->node->api->threads(c->node);
    loop l = {body, data, total, total < most ? total : most};
    if (total)
        c->node->api->parallel(c->node, l.tasks, run_part, &l);
    return NULL;
}

OrtStatus *abi_KernelContext_GetLogger(const OrtKernelContext *c, const OrtLogger **out)
{
    *out = abi_env_logger(c->family->custom->shared);
    return NULL;
}

/* -------------------------------------------------------------------------------------- shapes */

OrtStatus *abi_ShapeInferContext_GetInputCount(const OrtShapeInferContext *c, size_t *out)
{
    *out = c->input_count;
    return NULL;
}

OrtStatus *abi_ShapeInferContext_GetInputTypeShape(const OrtShapeInferContext *c, size_t index,
                                                   OrtTensorTypeAndShapeInfo **out)
{
    ABI_CHECK(index < c->input_count, "Failed to fetch type shape for the index.");
    const ort_ops_tensor *view = c->node->api->input(c->node, (int)index);
    ABI_CHECK(view, "Failed to fetch type shape for the index.");
    if (!c->inputs[index])
        ABI_TRY(abi_view_type(c->node, view, &c->inputs[index]));
    *out = &c->inputs[index]->tensor;
    return NULL;
}

OrtStatus *abi_ShapeInferContext_GetAttribute(const OrtShapeInferContext *context, const char *name,
                                              const OrtOpAttr **out)
{
    OrtShapeInferContext *c = (OrtShapeInferContext *)context;
    OrtOpAttr *attr = NULL;
    ABI_CHECK(name && out, "attr_name is NULL");
    ABI_TRY(abi_attr_of(c->node, name, &attr));
    ABI_CHECK(attr, "Attribute does not exist.");
    OrtOpAttr **attrs = abi_grow(c->attrs, c->attr_count, sizeof(OrtOpAttr *));
    if (!attrs) {
        abi_attr_free(attr);
        return abi_no_memory();
    }
    c->attrs = attrs;
    attrs[c->attr_count++] = attr;
    *out = attr;
    return NULL;
}

OrtStatus *abi_ShapeInferContext_SetOutputTypeShape(const OrtShapeInferContext *c, size_t index,
                                                    const OrtTensorTypeAndShapeInfo *info)
{
    ABI_CHECK(info, "info is NULL");
    if (index >= c->output_count)
        return NULL;
    OrtTensorTypeAndShapeInfo *copy = NULL;
    ABI_TRY(abi_shape_copy(info, &copy));
    abi_shape_free(c->outputs[index]);
    c->outputs[index] = copy;
    return NULL;
}

void abi_infer_release(OrtShapeInferContext *c)
{
    for (size_t i = 0; i < c->input_count; i++)
        abi_ReleaseTypeInfo(c->inputs[i]);
    for (size_t i = 0; i < c->output_count; i++)
        abi_shape_free(c->outputs[i]);
    for (size_t i = 0; i < c->attr_count; i++)
        abi_attr_free(c->attrs[i]);
    free(c->attrs);
}
