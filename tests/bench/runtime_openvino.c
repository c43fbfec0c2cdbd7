/* runtime_openvino.c - OpenVINO's C interface as a runtime of the benchmark.
 *
 * libopenvino_c of the wheel, its CPU device: hint for latency, one stream, computation in float32
 * (activations beside compressed weights aren't quantized either), the model compiled for the
 * shapes of the inputs at hand (where it can be; it is slower on open shapes). The declarations are
 * those of the headers that the wheel carries. Its telemetry is a Python package that isn't
 * installed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

typedef struct shape { /* ov_shape_t */
    int64_t rank, *dims;
} shape;

typedef struct interval { /* ov_dimension_t, ov_rank_t */
    int64_t min, max;
} interval;

typedef struct partial_shape { /* ov_partial_shape_t */
    interval rank, *dims;
} partial_shape;

typedef struct property { /* ov_property_t */
    const char *key;
    const void *value;
} property;

enum function {
    CORE_CREATE,
    READ_MODEL,
    MODEL_INPUTS,
    MODEL_INPUT,
    PORT_NAME,
    RESHAPE,
    MAKE_PARTIAL,
    COMPILE,
    COMPILED_OUTPUTS,
    CREATE_REQUEST,
    TENSOR_ON_HOST,
    SET_INPUT,
    INFER,
    GET_OUTPUT,
    TENSOR_SHAPE,
    TENSOR_TYPE,
    TENSOR_DATA,
    TENSOR_FREE,
    SHAPE_FREE,
    LAST_ERROR,
    FUNCTIONS
};

static const char *const function_names[FUNCTIONS] = {
    "ov_core_create",
    "ov_core_read_model",
    "ov_model_inputs_size",
    "ov_model_const_input_by_index",
    "ov_port_get_any_name",
    "ov_model_reshape_by_port_indexes",
    "ov_partial_shape_create_static",
    "ov_core_compile_model_props",
    "ov_compiled_model_outputs_size",
    "ov_compiled_model_create_infer_request",
    "ov_tensor_create_from_host_ptr",
    "ov_infer_request_set_input_tensor_by_index",
    "ov_infer_request_infer",
    "ov_infer_request_get_output_tensor_by_index",
    "ov_tensor_get_shape",
    "ov_tensor_get_element_type",
    "ov_tensor_data",
    "ov_tensor_free",
    "ov_shape_free",
    "ov_get_last_err_msg",
};

/* ONNX's element types in the order of ov_element_type_e; 0: none. */
static const int element_types[] = {
    0, ORT_DTYPE_BOOL, ORT_DTYPE_BFLOAT16, ORT_DTYPE_FLOAT16, ORT_DTYPE_FLOAT, ORT_DTYPE_DOUBLE,
    ORT_DTYPE_INT4, ORT_DTYPE_INT8, ORT_DTYPE_INT16, ORT_DTYPE_INT32, ORT_DTYPE_INT64, 0, 0, 0,
    ORT_DTYPE_UINT4, 0, ORT_DTYPE_UINT8, ORT_DTYPE_UINT16, ORT_DTYPE_UINT32, ORT_DTYPE_UINT64};
enum { ELEMENT_TYPES = sizeof element_types / sizeof *element_types };

typedef struct peer {
    void *call[FUNCTIONS];
    void *core, *model, *compiled, *request;
    char threads[16];
} peer;

/* Call a function, whose parameters are `types` and which returns a status. */
#define CALL(r, which, types, ...)                                                                 \
    succeeded((r), ((int(*) types)((peer *)(r)->self)->call[which])(__VA_ARGS__))

static bool succeeded(runtime *r, int status)
{
    const char *(*last)(void) = (const char *(*)(void))((peer *)r->self)->call[LAST_ERROR];
    if (status == 0)
        return true;
    const char *text = last ? last() : NULL;
    return runtime_fail(r, "%s", text && *text ? text : "failed without a message");
}

static bool peer_open(runtime *r, const char *library, const char *model, int threads)
{
    peer *p = r->self = calloc(1, sizeof *p);
    if (!p)
        return runtime_fail(r, "no memory");
    snprintf(p->threads, sizeof p->threads, "%d", threads);
    if (!runtime_symbols(r, library, function_names, p->call, FUNCTIONS) ||
        !CALL(r, CORE_CREATE, (void **), &p->core) ||
        !CALL(r, READ_MODEL, (void *, const char *, const char *, void **), p->core, model, NULL,
              &p->model) ||
        !CALL(r, MODEL_INPUTS, (void *, size_t *), p->model, &r->input_count))
        return false;
    if (r->input_count > RUNTIME_NAMES)
        return runtime_fail(r, "too many inputs");
    for (size_t i = 0; i < r->input_count; i++) {
        void *port;
        if (!CALL(r, MODEL_INPUT, (void *, size_t, void **), p->model, i, &port) ||
            !CALL(r, PORT_NAME, (void *, const char **), port, &r->input_names[i]))
            return false;
    }
    return true;
}

/* False where the model can't be had in these shapes. */
static bool reshape(runtime *r, peer *p, ort_value *const *inputs)
{
    size_t positions[RUNTIME_NAMES];
    partial_shape *shapes = calloc(r->input_count + 1, sizeof *shapes);
    bool ok = shapes != NULL;
    for (size_t i = 0; ok && i < r->input_count; i++) {
        positions[i] = i;
        ok = CALL(r, MAKE_PARTIAL, (int64_t, const int64_t *, partial_shape *),
                  ort_value_rank(inputs[i]), ort_value_dims(inputs[i]), &shapes[i]);
    }
    ok = ok && CALL(r, RESHAPE, (void *, const size_t *, const partial_shape *, size_t), p->model,
                    positions, shapes, r->input_count);
    free(shapes);
    return ok;
}

static bool compile(runtime *r, peer *p)
{
    const property properties[] = {{"PERFORMANCE_HINT", "LATENCY"},
                                   {"NUM_STREAMS", "1"},
                                   {"INFERENCE_NUM_THREADS", p->threads},
                                   {"INFERENCE_PRECISION_HINT", "f32"},
                                   {"DYNAMIC_QUANTIZATION_GROUP_SIZE", "0"}};
    return CALL(r, COMPILE, (void *, void *, const char *, size_t, const property *, void **),
                p->core, p->model, "CPU", sizeof properties / sizeof *properties, properties,
                &p->compiled) &&
           CALL(r, COMPILED_OUTPUTS, (void *, size_t *), p->compiled, &r->output_count) &&
           CALL(r, CREATE_REQUEST, (void *, void **), p->compiled, &p->request);
}

static bool peer_fit(runtime *r, ort_value *const *inputs)
{
    peer *p = r->self;
    (void)reshape(r, p, inputs); /* shapes stay open then */
    r->message[0] = '\0';
    return compile(r, p);
}

static int find_type(ort_value *value)
{
    for (int i = 1; i < ELEMENT_TYPES; i++)
        if (ort_value_get_kind(value) == ORT_VALUE_TENSOR &&
            element_types[i] == (int)ort_value_dtype(value))
            return i;
    return -1;
}

static bool peer_bind(runtime *r, ort_value *const *inputs)
{
    peer *p = r->self;
    for (size_t i = 0; i < r->input_count; i++) {
        void *tensor;
        int type = find_type(inputs[i]);
        if (type < 0)
            return runtime_fail(r, "only tensors of numbers are timed");
        shape s = {ort_value_rank(inputs[i]), (int64_t *)(uintptr_t)ort_value_dims(inputs[i])};
        if (!CALL(r, TENSOR_ON_HOST, (int, shape, void *, void **), type, s,
                  ort_value_data(inputs[i]), &tensor) ||
            !CALL(r, SET_INPUT, (void *, size_t, void *), p->request, i, tensor))
            return false;
    }
    return true;
}

static bool peer_run(runtime *r)
{
    return CALL(r, INFER, (void *), ((peer *)r->self)->request);
}

static bool peer_view(runtime *r, size_t output, ort_value **value)
{
    peer *p = r->self;
    void *tensor, *data;
    shape s = {0};
    int type;
    *value = NULL;
    if (!CALL(r, GET_OUTPUT, (void *, size_t, void **), p->request, output, &tensor) ||
        !CALL(r, TENSOR_SHAPE, (void *, shape *), tensor, &s) ||
        !CALL(r, TENSOR_TYPE, (void *, int *), tensor, &type))
        return false;
    if (type < 0 || type >= ELEMENT_TYPES || element_types[type] == 0)
        return true;
    bool ok = CALL(r, TENSOR_DATA, (void *, void **), tensor, &data) &&
              runtime_view(r, (ort_dtype)element_types[type], (size_t)s.rank, s.dims, data, value);
    ((int (*)(shape *))p->call[SHAPE_FREE])(&s);
    ((void (*)(void *))p->call[TENSOR_FREE])(tensor);
    return ok;
}

static void peer_release(runtime *r) /* outputs belong to the request */
{
}

const runtime_class runtime_openvino = {
    .name = "openvino", .open = peer_open, .fit = peer_fit,
    .bind = peer_bind, .run = peer_run, .view = peer_view, .release = peer_release};
