/* peer.h - the part of onnxruntime's C interface that the benchmark calls.
 *
 * The shared library of the Python wheel exports OrtGetApiBase, which hands out a table of function
 * pointers whose order is fixed for ever (new members go to its end). The wheel has no header, so
 * the positions that are needed are named here, with the types of each call. peer_open checks the
 * version string and that the first calls do what they should.
 */
#ifndef TESTS_BENCH_PEER_H
#define TESTS_BENCH_PEER_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum peer_slot {
    PEER_GET_ERROR_MESSAGE = 2,
    PEER_CREATE_ENV = 3,
    PEER_CREATE_SESSION = 7,
    PEER_RUN = 9,
    PEER_CREATE_SESSION_OPTIONS = 10,
    PEER_SET_GRAPH_OPTIMIZATION_LEVEL = 23,
    PEER_SET_INTRA_OP_THREADS = 24,
    PEER_SET_INTER_OP_THREADS = 25,
    PEER_SESSION_GET_INPUT_COUNT = 30,
    PEER_SESSION_GET_OUTPUT_COUNT = 31,
    PEER_SESSION_GET_INPUT_NAME = 36,
    PEER_SESSION_GET_OUTPUT_NAME = 37,
    PEER_CREATE_TENSOR = 48,
    PEER_CREATE_TENSOR_WITH_DATA = 49,
    PEER_GET_TENSOR_MUTABLE_DATA = 51,
    PEER_FILL_STRING_TENSOR = 52,
    PEER_GET_TENSOR_ELEMENT_TYPE = 60,
    PEER_GET_DIMENSIONS_COUNT = 61,
    PEER_GET_DIMENSIONS = 62,
    PEER_GET_TENSOR_TYPE_AND_SHAPE = 65,
    PEER_GET_VALUE_TYPE = 67,
    PEER_CREATE_CPU_MEMORY_INFO = 69,
    PEER_GET_DEFAULT_ALLOCATOR = 78,
    PEER_RELEASE_STATUS = 93,
    PEER_RELEASE_VALUE = 96,
    PEER_RELEASE_TENSOR_INFO = 99,
};

enum { PEER_NAMES = 512, PEER_API_VERSION = 17, PEER_OPTIMIZE_ALL = 99 };

typedef void *const *peer_table;

typedef struct peer_base {
    peer_table (*get_api)(uint32_t version);
    const char *(*get_version)(void);
} peer_base;

typedef struct peer {
    peer_table api;
    void *env, *options, *session, *allocator, *memory;
    size_t input_count, output_count;
    char *input_names[PEER_NAMES], *output_names[PEER_NAMES];
    char message[600];
} peer;

/* Call slot `slot`, whose parameters after the status are `types`. True on success. */
#define PEER_CALL(p, slot, types, ...)                                                             \
    peer_ok((p), ((void *(*)types)(p)->api[slot])(__VA_ARGS__))

static inline bool peer_ok(peer *p, void *status)
{
    if (!status)
        return true;
    const char *(*text)(void *) = (const char *(*)(void *))p->api[PEER_GET_ERROR_MESSAGE];
    void (*release)(void *) = (void (*)(void *))p->api[PEER_RELEASE_STATUS];
    snprintf(p->message, sizeof p->message, "onnxruntime: %.560s", text(status));
    for (char *c = p->message; *c; c++)
        if (*c == '\n')
            *c = ' ';
    release(status);
    return false;
}

static inline bool peer_load_library(peer *p, const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    const peer_base *(*get_base)(void) =
        handle ? (const peer_base *(*)(void))dlsym(handle, "OrtGetApiBase") : NULL;
    if (!get_base) {
        snprintf(p->message, sizeof p->message, "%.500s", dlerror());
        return false;
    }
    p->api = get_base()->get_api(PEER_API_VERSION);
    if (!p->api)
        snprintf(p->message, sizeof p->message, "%s has no interface version %d", library,
                 PEER_API_VERSION);
    return p->api != NULL;
}

static inline bool peer_read_names(peer *p)
{
    if (!PEER_CALL(p, PEER_SESSION_GET_INPUT_COUNT, (void *, size_t *), p->session,
                   &p->input_count) ||
        !PEER_CALL(p, PEER_SESSION_GET_OUTPUT_COUNT, (void *, size_t *), p->session,
                   &p->output_count))
        return false;
    if (p->input_count > PEER_NAMES || p->output_count > PEER_NAMES) {
        snprintf(p->message, sizeof p->message, "too many inputs or outputs");
        return false;
    }
    for (size_t i = 0; i < p->input_count; i++)
        if (!PEER_CALL(p, PEER_SESSION_GET_INPUT_NAME, (void *, size_t, void *, char **),
                       p->session, i, p->allocator, &p->input_names[i]))
            return false;
    for (size_t i = 0; i < p->output_count; i++)
        if (!PEER_CALL(p, PEER_SESSION_GET_OUTPUT_NAME, (void *, size_t, void *, char **),
                       p->session, i, p->allocator, &p->output_names[i]))
            return false;
    return true;
}

/* Everything from the library to a session that may run: optimizations at their highest level. */
static inline bool peer_open(peer *p, const char *library, const char *model, int threads)
{
    return peer_load_library(p, library) &&
           PEER_CALL(p, PEER_CREATE_ENV, (int, const char *, void **), 3, "bench", &p->env) &&
           PEER_CALL(p, PEER_CREATE_SESSION_OPTIONS, (void **), &p->options) &&
           PEER_CALL(p, PEER_SET_GRAPH_OPTIMIZATION_LEVEL, (void *, int), p->options,
                     PEER_OPTIMIZE_ALL) &&
           PEER_CALL(p, PEER_SET_INTRA_OP_THREADS, (void *, int), p->options, threads) &&
           PEER_CALL(p, PEER_SET_INTER_OP_THREADS, (void *, int), p->options, 1) &&
           PEER_CALL(p, PEER_CREATE_SESSION, (void *, const char *, void *, void **), p->env,
                     model, p->options, &p->session) &&
           PEER_CALL(p, PEER_GET_DEFAULT_ALLOCATOR, (void **), &p->allocator) &&
           PEER_CALL(p, PEER_CREATE_CPU_MEMORY_INFO, (int, int, void **), 0, 0, &p->memory) &&
           peer_read_names(p);
}

/* A tensor over the memory of `value`; strings are copied. */
static inline bool peer_make_input(peer *p, ort_value *value, void **out)
{
    int type = (int)ort_value_dtype(value);
    const int64_t *dims = ort_value_dims(value);
    size_t rank = (size_t)ort_value_rank(value), count = (size_t)ort_value_count(value);
    if (ort_value_get_kind(value) != ORT_VALUE_TENSOR) {
        snprintf(p->message, sizeof p->message, "only tensors are timed");
        return false;
    }
    if (type != ORT_DTYPE_STRING)
        return PEER_CALL(p, PEER_CREATE_TENSOR_WITH_DATA,
                         (void *, void *, size_t, const int64_t *, size_t, int, void **),
                         p->memory, ort_value_data(value), ort_value_bytes(value), dims, rank,
                         type, out);
    const char **texts = calloc(count + 1, sizeof *texts);
    if (!texts)
        return false;
    for (size_t k = 0; k < count; k++) {
        size_t length;
        const char *text = ort_value_string(value, (int64_t)k, &length);
        texts[k] = strndup(text, length);
    }
    bool ok = PEER_CALL(p, PEER_CREATE_TENSOR,
                        (void *, const int64_t *, size_t, int, void **), p->allocator, dims, rank,
                        type, out) &&
              PEER_CALL(p, PEER_FILL_STRING_TENSOR, (void *, const char **, size_t), *out, texts,
                        count);
    for (size_t k = 0; k < count; k++)
        free((char *)texts[k]);
    free(texts);
    return ok;
}

static inline bool peer_run(peer *p, void **inputs, void **outputs)
{
    return PEER_CALL(p, PEER_RUN,
                     (void *, void *, char **, void **, size_t, char **, size_t, void **),
                     p->session, NULL, p->input_names, inputs, p->input_count, p->output_names,
                     p->output_count, outputs);
}

static inline void peer_release(peer *p, void **outputs)
{
    void (*release)(void *) = (void (*)(void *))p->api[PEER_RELEASE_VALUE];
    for (size_t k = 0; k < p->output_count; k++) {
        if (outputs[k])
            release(outputs[k]);
        outputs[k] = NULL;
    }
}

/* A view of an output as one of our values; NULL in *value for strings, sequences and maps. */
static inline bool peer_view_output(peer *p, void *output, ort_value **value, ort_error *err)
{
    int kind = 0, type = 0;
    size_t rank = 0;
    int64_t dims[32];
    void *info = NULL, *data = NULL;
    *value = NULL;
    if (!PEER_CALL(p, PEER_GET_VALUE_TYPE, (void *, int *), output, &kind))
        return false;
    if (kind != ORT_VALUE_TENSOR)
        return true;
    if (!PEER_CALL(p, PEER_GET_TENSOR_TYPE_AND_SHAPE, (void *, void **), output, &info) ||
        !PEER_CALL(p, PEER_GET_TENSOR_ELEMENT_TYPE, (void *, int *), info, &type) ||
        !PEER_CALL(p, PEER_GET_DIMENSIONS_COUNT, (void *, size_t *), info, &rank) || rank > 32 ||
        !PEER_CALL(p, PEER_GET_DIMENSIONS, (void *, int64_t *, size_t), info, dims, rank))
        return false;
    ((void (*)(void *))p->api[PEER_RELEASE_TENSOR_INFO])(info);
    if (type == ORT_DTYPE_STRING)
        return true;
    size_t bytes = (size_t)ort_dtype_bits((ort_dtype)type);
    for (size_t k = 0; k < rank; k++)
        bytes *= (size_t)dims[k];
    bytes = (bytes + 7) / 8;
    if (!PEER_CALL(p, PEER_GET_TENSOR_MUTABLE_DATA, (void *, void **), output, &data))
        return false;
    if (ort_value_new_borrowed((ort_dtype)type, (int)rank, dims, data, bytes, value, err)) {
        snprintf(p->message, sizeof p->message, "%.560s", err->message);
        return false;
    }
    return true;
}

#endif
