/* runtime_onnxruntime.c - onnxruntime's C interface as a runtime of the benchmark.
 *
 * The shared library of the Python wheel exports OrtGetApiBase, which hands out a table of function
 * pointers whose order is fixed for ever (new members go to its end). The wheel has no header, so
 * the positions that are needed are named here, with the types of each call. Optimizations are at
 * their highest level, one operator at a time, everything else at its default; integer models are
 * held to exact sums (u8 x s8 saturates in 16 bits on processors without VNNI).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../harness.h"
#include "base/cpu.h"
#include "runtime.h"

enum slot {
    GET_ERROR_MESSAGE = 2,
    CREATE_ENV = 3,
    CREATE_SESSION = 7,
    RUN = 9,
    CREATE_SESSION_OPTIONS = 10,
    SET_GRAPH_OPTIMIZATION_LEVEL = 23,
    SET_INTRA_OP_THREADS = 24,
    SET_INTER_OP_THREADS = 25,
    SESSION_GET_INPUT_COUNT = 30,
    SESSION_GET_OUTPUT_COUNT = 31,
    SESSION_GET_INPUT_NAME = 36,
    SESSION_GET_OUTPUT_NAME = 37,
    CREATE_TENSOR = 48,
    CREATE_TENSOR_WITH_DATA = 49,
    GET_TENSOR_MUTABLE_DATA = 51,
    FILL_STRING_TENSOR = 52,
    GET_TENSOR_ELEMENT_TYPE = 60,
    GET_DIMENSIONS_COUNT = 61,
    GET_DIMENSIONS = 62,
    GET_TENSOR_TYPE_AND_SHAPE = 65,
    GET_VALUE_TYPE = 67,
    CREATE_CPU_MEMORY_INFO = 69,
    GET_DEFAULT_ALLOCATOR = 78,
    RELEASE_STATUS = 93,
    RELEASE_VALUE = 96,
    RELEASE_TENSOR_INFO = 99,
    ADD_SESSION_CONFIG_ENTRY = 130,
};

enum { API_VERSION = 17, OPTIMIZE_ALL = 99, WARNINGS = 2, MOST_DIMS = 32 };

typedef void *const *api_table;

typedef struct api_base {
    api_table (*get_api)(uint32_t version);
    const char *(*get_version)(void);
} api_base;

typedef struct peer {
    api_table api;
    void *env, *options, *session, *allocator, *memory;
    char *output_names[RUNTIME_NAMES];
    void *inputs[RUNTIME_NAMES], *outputs[RUNTIME_NAMES];
} peer;

/* Call a slot, whose parameters are `types`. True on success. */
#define CALL(r, slot, types, ...)                                                                  \
    succeeded((r), ((void *(*)types)((peer *)(r)->self)->api[slot])(__VA_ARGS__))

static bool succeeded(runtime *r, void *failure)
{
    api_table api = ((peer *)r->self)->api;
    if (!failure)
        return true;
    const char *(*text)(void *) = (const char *(*)(void *))api[GET_ERROR_MESSAGE];
    void (*release)(void *) = (void (*)(void *))api[RELEASE_STATUS];
    (void)runtime_fail(r, "%s", text(failure));
    release(failure);
    return false;
}

static bool open_library(runtime *r, peer *p, const char *library)
{
    static const char *const names[] = {"OrtGetApiBase"};
    void *get_base;
    if (!runtime_symbols(r, library, names, &get_base, 1))
        return false;
    p->api = ((const api_base *(*)(void))get_base)()->get_api(API_VERSION);
    return p->api || runtime_fail(r, "%s has no interface version %d", library, API_VERSION);
}

static bool read_names(runtime *r, peer *p)
{
    if (!CALL(r, SESSION_GET_INPUT_COUNT, (void *, size_t *), p->session, &r->input_count) ||
        !CALL(r, SESSION_GET_OUTPUT_COUNT, (void *, size_t *), p->session, &r->output_count))
        return false;
    if (r->input_count > RUNTIME_NAMES || r->output_count > RUNTIME_NAMES)
        return runtime_fail(r, "too many inputs or outputs");
    for (size_t i = 0; i < r->input_count; i++)
        if (!CALL(r, SESSION_GET_INPUT_NAME, (void *, size_t, void *, const char **), p->session,
                  i, p->allocator, &r->input_names[i]))
            return false;
    for (size_t i = 0; i < r->output_count; i++)
        if (!CALL(r, SESSION_GET_OUTPUT_NAME, (void *, size_t, void *, char **), p->session, i,
                  p->allocator, &p->output_names[i]))
            return false;
    return true;
}

bool runtime_saturates(void)
{
#ifdef __x86_64__
    /* Not by __builtin_cpu_supports, which asks the processor at every start: both sides' start. */
    return !ort_cpu_get()->avx512_vnni && !ort_cpu_get()->avx_vnni;
#else
    return false;
#endif
}

static bool set_exact(runtime *r, peer *p, const char *value)
{
    return CALL(r, ADD_SESSION_CONFIG_ENTRY, (void *, const char *, const char *), p->options,
                RUNTIME_EXACT, value);
}

static bool create_session(runtime *r, peer *p, const char *model)
{
    double begin = harness_now_ms();
    bool ok = CALL(r, CREATE_SESSION, (void *, const char *, void *, void **), p->env, model,
                   p->options, &p->session);
    r->session_ms = harness_now_ms() - begin;
    return ok;
}

/* Version 1.31 makes no session with exact sums where two nodes share a weight. */
static bool create_some_session(runtime *r, peer *p, const char *model)
{
    if (create_session(r, p, model))
        return true;
    if (!r->exact)
        return false;
    r->lost_ms = r->session_ms;
    snprintf(r->note, sizeof r->note, "no session with %s=1, timed without", RUNTIME_EXACT);
    return set_exact(r, p, "0") && create_session(r, p, model);
}

static bool peer_open(runtime *r, const char *library, const char *model, int threads)
{
    peer *p = r->self = calloc(1, sizeof *p);
    if (!p)
        return runtime_fail(r, "no memory");
    return open_library(r, p, library) &&
           CALL(r, CREATE_ENV, (int, const char *, void **), WARNINGS + 1, "bench", &p->env) &&
           CALL(r, CREATE_SESSION_OPTIONS, (void **), &p->options) &&
           CALL(r, SET_GRAPH_OPTIMIZATION_LEVEL, (void *, int), p->options,
                r->level ? r->level : OPTIMIZE_ALL) &&
           set_exact(r, p, r->exact ? "1" : "0") &&
           CALL(r, SET_INTRA_OP_THREADS, (void *, int), p->options, threads) &&
           CALL(r, SET_INTER_OP_THREADS, (void *, int), p->options, 1) &&
           create_some_session(r, p, model) &&
           CALL(r, GET_DEFAULT_ALLOCATOR, (void **), &p->allocator) &&
           CALL(r, CREATE_CPU_MEMORY_INFO, (int, int, void **), 0, 0, &p->memory) &&
           read_names(r, p);
}

static bool make_strings(runtime *r, peer *p, ort_value *value, void **out)
{
    size_t count = (size_t)ort_value_count(value);
    const char **texts = calloc(count + 1, sizeof *texts);
    if (!texts)
        return runtime_fail(r, "no memory");
    for (size_t k = 0; k < count; k++) {
        size_t length;
        const char *text = ort_value_string(value, (int64_t)k, &length);
        texts[k] = strndup(text, length);
    }
    bool ok = CALL(r, CREATE_TENSOR, (void *, const int64_t *, size_t, int, void **), p->allocator,
                   ort_value_dims(value), (size_t)ort_value_rank(value), ORT_DTYPE_STRING, out) &&
              CALL(r, FILL_STRING_TENSOR, (void *, const char **, size_t), *out, texts, count);
    for (size_t k = 0; k < count; k++)
        free((char *)(uintptr_t)texts[k]);
    free(texts);
    return ok;
}

/* A tensor over the memory of `value`; strings are copied. */
static bool make_input(runtime *r, peer *p, ort_value *value, void **out)
{
    if (ort_value_get_kind(value) != ORT_VALUE_TENSOR)
        return runtime_fail(r, "only tensors are timed");
    if (ort_value_dtype(value) == ORT_DTYPE_STRING)
        return make_strings(r, p, value, out);
    return CALL(r, CREATE_TENSOR_WITH_DATA,
                (void *, void *, size_t, const int64_t *, size_t, int, void **), p->memory,
                ort_value_data(value), ort_value_bytes(value), ort_value_dims(value),
                (size_t)ort_value_rank(value), (int)ort_value_dtype(value), out);
}

static bool peer_bind(runtime *r, ort_value *const *inputs)
{
    peer *p = r->self;
    for (size_t i = 0; i < r->input_count; i++)
        if (!make_input(r, p, inputs[i], &p->inputs[i]))
            return false;
    return true;
}

static bool peer_run(runtime *r)
{
    peer *p = r->self;
    return CALL(r, RUN,
                (void *, void *, const char *const *, void **, size_t, char **, size_t, void **),
                p->session, NULL, r->input_names, p->inputs, r->input_count, p->output_names,
                r->output_count, p->outputs);
}

static bool peer_view(runtime *r, size_t index, ort_value **value)
{
    peer *p = r->self;
    void *output = p->outputs[index], *info = NULL, *data = NULL;
    int kind = 0, type = 0;
    size_t rank = 0;
    int64_t dims[MOST_DIMS];
    *value = NULL;
    if (!CALL(r, GET_VALUE_TYPE, (void *, int *), output, &kind))
        return false;
    if (kind != ORT_VALUE_TENSOR)
        return true;
    if (!CALL(r, GET_TENSOR_TYPE_AND_SHAPE, (void *, void **), output, &info) ||
        !CALL(r, GET_TENSOR_ELEMENT_TYPE, (void *, int *), info, &type) ||
        !CALL(r, GET_DIMENSIONS_COUNT, (void *, size_t *), info, &rank) || rank > MOST_DIMS ||
        !CALL(r, GET_DIMENSIONS, (void *, int64_t *, size_t), info, dims, rank))
        return false;
    ((void (*)(void *))p->api[RELEASE_TENSOR_INFO])(info);
    if (type == ORT_DTYPE_STRING)
        return true;
    return CALL(r, GET_TENSOR_MUTABLE_DATA, (void *, void **), output, &data) &&
           runtime_view(r, (ort_dtype)type, rank, dims, data, value);
}

static void peer_release(runtime *r)
{
    peer *p = r->self;
    void (*release)(void *) = (void (*)(void *))p->api[RELEASE_VALUE];
    for (size_t k = 0; k < r->output_count; k++) {
        if (p->outputs[k])
            release(p->outputs[k]);
        p->outputs[k] = NULL;
    }
}

const runtime_class runtime_onnxruntime = {
    .name = "onnxruntime", .open = peer_open, .bind = peer_bind,
    .run = peer_run, .view = peer_view, .release = peer_release};
