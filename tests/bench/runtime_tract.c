/* runtime_tract.c - tract's C interface as a runtime of the benchmark.
 *
 * The shared library of its Python wheel exports it. A model is made for the shapes of the inputs
 * at hand, as its authors advise. The wheel has no call for threads: it runs on the caller's alone,
 * whatever the others are given.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

enum function {
    ONNX_CREATE,
    ONNX_LOAD,
    INPUT_COUNT,
    INPUT_NAME,
    PARSE_FACT,
    SET_INPUT_FACT,
    INTO_MODEL,
    INTO_RUNNABLE,
    OUTPUT_COUNT,
    RUN,
    TENSOR_FROM_BYTES,
    TENSOR_AS_BYTES,
    TENSOR_DESTROY,
    LAST_ERROR,
    FUNCTIONS
};

static const char *const function_names[FUNCTIONS] = {
    "tract_onnx_create",
    "tract_onnx_load",
    "tract_inference_model_input_count",
    "tract_inference_model_input_name",
    "tract_inference_fact_parse",
    "tract_inference_model_set_input_fact",
    "tract_inference_model_into_model",
    "tract_model_into_runnable",
    "tract_runnable_output_count",
    "tract_runnable_run",
    "tract_tensor_from_bytes",
    "tract_tensor_as_bytes",
    "tract_tensor_destroy",
    "tract_get_last_error",
};

static const struct {
    int dtype, theirs;
    const char *name;
} element_types[] = {
    {ORT_DTYPE_BOOL, 0x01, "bool"},   {ORT_DTYPE_UINT8, 0x11, "u8"},
    {ORT_DTYPE_UINT16, 0x12, "u16"},  {ORT_DTYPE_UINT32, 0x14, "u32"},
    {ORT_DTYPE_UINT64, 0x18, "u64"},  {ORT_DTYPE_INT8, 0x21, "i8"},
    {ORT_DTYPE_INT16, 0x22, "i16"},   {ORT_DTYPE_INT32, 0x24, "i32"},
    {ORT_DTYPE_INT64, 0x28, "i64"},   {ORT_DTYPE_FLOAT16, 0x32, "f16"},
    {ORT_DTYPE_FLOAT, 0x34, "f32"},   {ORT_DTYPE_DOUBLE, 0x38, "f64"},
};
enum { ELEMENT_TYPES = sizeof element_types / sizeof *element_types, MOST_DIMS = 32 };

typedef struct peer {
    void *call[FUNCTIONS];
    void *onnx, *inference, *model, *runnable;
    void *inputs[RUNTIME_NAMES], *outputs[RUNTIME_NAMES];
} peer;

/* Call a function, whose parameters are `types` and which returns a status. */
#define CALL(r, which, types, ...)                                                                 \
    succeeded((r), ((int(*) types)((peer *)(r)->self)->call[which])(__VA_ARGS__))

static bool succeeded(runtime *r, int status)
{
    const char *(*last)(void) = (const char *(*)(void))((peer *)r->self)->call[LAST_ERROR];
    if (status == 0)
        return true;
    const char *text = last(), *trace = text ? strstr(text, "Stack backtrace") : NULL;
    int length = trace ? (int)(trace - text) : text ? (int)strlen(text) : 0;
    return runtime_fail(r, "%.*s", length, text ? text : "");
}

static bool peer_open(runtime *r, const char *library, const char *model, int threads)
{
    peer *p = r->self = calloc(1, sizeof *p);
    if (!p)
        return runtime_fail(r, "no memory");
    if (!runtime_symbols(r, library, function_names, p->call, FUNCTIONS) ||
        !CALL(r, ONNX_CREATE, (void **), &p->onnx) ||
        !CALL(r, ONNX_LOAD, (void *, const char *, void **), p->onnx, model, &p->inference) ||
        !CALL(r, INPUT_COUNT, (void *, size_t *), p->inference, &r->input_count))
        return false;
    if (r->input_count > RUNTIME_NAMES)
        return runtime_fail(r, "too many inputs");
    for (size_t i = 0; i < r->input_count; i++)
        if (!CALL(r, INPUT_NAME, (void *, size_t, const char **), p->inference, i,
                  &r->input_names[i]))
            return false;
    return true;
}

static int find_type(ort_value *value)
{
    for (int i = 0; i < ELEMENT_TYPES; i++)
        if (ort_value_get_kind(value) == ORT_VALUE_TENSOR &&
            element_types[i].dtype == (int)ort_value_dtype(value))
            return i;
    return -1;
}

/* "1,3,224,224,f32" */
static bool set_fact(runtime *r, peer *p, size_t index, ort_value *value)
{
    char text[700];
    size_t used = 0;
    void *fact;
    int type = find_type(value);
    if (type < 0)
        return runtime_fail(r, "only tensors of numbers are timed");
    for (int k = 0; k < ort_value_rank(value) && k < MOST_DIMS; k++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%lld,",
                                 (long long)ort_value_dims(value)[k]);
    snprintf(text + used, sizeof text - used, "%s", element_types[type].name);
    return CALL(r, PARSE_FACT, (void *, const char *, void **), p->inference, text, &fact) &&
           CALL(r, SET_INPUT_FACT, (void *, size_t, void *), p->inference, index, fact);
}

static bool peer_fit(runtime *r, ort_value *const *inputs)
{
    peer *p = r->self;
    for (size_t i = 0; i < r->input_count; i++)
        if (!set_fact(r, p, i, inputs[i]))
            return false;
    if (!CALL(r, INTO_MODEL, (void **, void **), &p->inference, &p->model) ||
        !CALL(r, INTO_RUNNABLE, (void **, void **), &p->model, &p->runnable) ||
        !CALL(r, OUTPUT_COUNT, (void *, size_t *), p->runnable, &r->output_count))
        return false;
    return r->output_count <= RUNTIME_NAMES || runtime_fail(r, "too many outputs");
}

static bool peer_bind(runtime *r, ort_value *const *inputs)
{
    peer *p = r->self;
    for (size_t i = 0; i < r->input_count; i++) {
        size_t dims[MOST_DIMS], rank = (size_t)ort_value_rank(inputs[i]);
        for (size_t k = 0; k < rank && k < MOST_DIMS; k++)
            dims[k] = (size_t)ort_value_dims(inputs[i])[k];
        if (!CALL(r, TENSOR_FROM_BYTES, (int, size_t, const size_t *, const void *, void **),
                  element_types[find_type(inputs[i])].theirs, rank, dims,
                  ort_value_data(inputs[i]), &p->inputs[i]))
            return false;
    }
    return true;
}

static bool peer_run(runtime *r)
{
    peer *p = r->self;
    return CALL(r, RUN, (void *, void **, void **), p->runnable, p->inputs, p->outputs);
}

static bool peer_view(runtime *r, size_t output, ort_value **value)
{
    peer *p = r->self;
    int type = 0;
    size_t rank = 0;
    const size_t *dims = NULL;
    int64_t list[MOST_DIMS];
    void *data = NULL;
    *value = NULL;
    if (!CALL(r, TENSOR_AS_BYTES, (void *, int *, size_t *, const size_t **, void **),
              p->outputs[output], &type, &rank, &dims, &data))
        return false;
    for (size_t k = 0; k < rank && k < MOST_DIMS; k++)
        list[k] = (int64_t)dims[k];
    for (int i = 0; i < ELEMENT_TYPES; i++)
        if (element_types[i].theirs == type)
            return runtime_view(r, (ort_dtype)element_types[i].dtype, rank, list, data, value);
    return true;
}

static void peer_release(runtime *r)
{
    peer *p = r->self;
    int (*destroy)(void **) = (int (*)(void **))p->call[TENSOR_DESTROY];
    for (size_t k = 0; k < r->output_count; k++)
        if (p->outputs[k])
            (void)destroy(&p->outputs[k]);
}

const runtime_class runtime_tract = {
    .name = "tract", .open = peer_open, .fit = peer_fit, .bind = peer_bind,
    .run = peer_run, .view = peer_view, .release = peer_release};
