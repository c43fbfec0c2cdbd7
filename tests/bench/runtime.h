/* runtime.h - one runtime with one model and its inputs, behind one set of calls: this library and
 * the peers of the benchmark. Peers are shared libraries of pinned wheels, opened with dlopen.
 *
 * The walk: open, then fit where there is one, then bind, then any number of run and release. Every
 * call returns false with the reason in `message`, one line.
 */
#ifndef TESTS_BENCH_RUNTIME_H
#define TESTS_BENCH_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#include "ort.h"

enum { RUNTIME_NAMES = 2048 };

/* onnxruntime's entry for sums of products of bytes that don't saturate. */
#define RUNTIME_EXACT "session.x64quantprecision"
/* Whether they would without: not with VNNI, where the entry changes no bit of a result and costs
 * up to half of the speed. */
bool runtime_saturates(void);

typedef struct runtime runtime;

typedef struct runtime_class {
    const char *name;
    /* Load the library and the model; fill in the names and counts. */
    bool (*open)(runtime *r, const char *library, const char *model, int threads);
    /* Compile for the shapes of these inputs, for runtimes that are at their best so; or NULL. */
    bool (*fit)(runtime *r, ort_value *const *inputs);
    /* The inputs of every run, in the order of input_names; they outlive the runtime. */
    bool (*bind)(runtime *r, ort_value *const *inputs);
    bool (*run)(runtime *r);
    /* An output of the last run, as a view; NULL in *value where it is no tensor of numbers. */
    bool (*view)(runtime *r, size_t output, ort_value **value);
    void (*release)(runtime *r); /* the outputs of the last run */
    /* What a run computes, as the operators are defined: 1e9 operations of its products and sums,
     * and the MB of weights that these read; or NULL. */
    bool (*work)(runtime *r, double *gflop, double *weight_mb);
} runtime_class;

struct runtime {
    const runtime_class *class;
    void *self;
    int level;         /* of onnxruntime's optimizations; 0: the highest */
    bool exact;        /* onnxruntime: set RUNTIME_EXACT */
    char note[200];    /* what isn't as asked for */
    double lost_ms;    /* what a first try took; no part of its start */
    double session_ms; /* what onnxruntime took to create the session */
    size_t input_count, output_count;
    const char *input_names[RUNTIME_NAMES];
    char message[600];
};

extern const runtime_class runtime_ours, runtime_onnxruntime, runtime_openvino, runtime_tract;

/* Print into the message (its newlines become blanks); always false. */
bool runtime_fail(runtime *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Open a library and look up `count` functions of it, by name. */
bool runtime_symbols(runtime *r, const char *library, const char *const *names, void **functions,
                     size_t count);
/* A view of memory of a runtime as a value of this library. */
bool runtime_view(runtime *r, ort_dtype dtype, size_t rank, const int64_t *dims, void *data,
                  ort_value **value);

#endif
