/* moments.h - second moments of what is multiplied by weights, over samples: X^T X of the rows X
 * that reach a product. They say what an error of a weight costs at the product's result:
 *
 *     |X (W - W')|^2 = sum over columns e of W - W' of e^T (X^T X) e
 *
 * One matrix of K x K floats for each value that products read, whatever the number of samples. All
 * of them together may be as large as the model: they lie in a file then, which processes made by
 * fork share, and those that nobody adds to are in nobody's memory.
 * Runs and sums are those of the calibration tier, in the order of the samples, so that any number
 * of threads gives the same bits.
 */
#ifndef ORT_QUANTIZE_MOMENTS_H
#define ORT_QUANTIZE_MOMENTS_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "exec/session.h"
#include "io/spool.h"

typedef struct ort_moment {
    const char *name; /* of the value */
    int64_t k;
    float *sum;       /* [k][k], up to the diagonal */
    int64_t *rows;    /* that were seen */
    ort_blob *blob;   /* where the sum lies; NULL: in the heap */
    bool factored;    /* sum holds what ort_gptq_factor makes of it */
    int32_t *order;   /* [k] of the factor; or NULL: as they lie */
} ort_moment;

typedef struct ort_moments {
    ort_env *env; /* of the calibration tier */
    ort_session *session;
    ORT_VEC(ort_moment) list;
    ORT_VEC(const char *) watched; /* their names, and NULL */
    ort_hashmap by_name;
    ort_status status; /* of what the runs' callback did */
    ort_error err;
    ort_spool *spool;  /* NULL: the heap holds it all */
    ort_blob *counted; /* where `counts` lie; NULL: in the heap */
    int64_t *counts;   /* samples, then the rows of each moment */
} ort_moments;

/* For at most so many values, in files of `folder` (NULL: in memory). */
ort_status ort_moments_open(ort_moments *m, const char *folder, size_t most, ort_error *err);
/* The environment, unless it is there: of the tier that decides about files; `threads` as any
 * environment's. */
ort_status ort_moments_env(ort_moments *m, int threads, ort_error *err);
static inline int64_t ort_moments_samples(const ort_moments *m) { return m->counts[0]; }
void ort_moments_release(ort_moments *m);
/* For a value of this name with rows of k; its place in the list. */
ort_status ort_moments_add(ort_moments *m, const char *name, int64_t k, size_t *at,
                           ort_error *err);
/* Its pages leave memory until they are asked for. */
void ort_moment_forget(const ort_moment *moment);
/* What lies above the diagonal, too. */
void ort_moment_mirror(ort_moment *moment);
/* A run of the model, all of whose inputs are given in order. */
ort_status ort_moments_observe(ort_moments *m, const ort_model *model, ort_value *const *inputs,
                               size_t count, ort_error *err);
/* Samples are over: what runs needed goes. */
void ort_moments_close_session(ort_moments *m);

/* The product of matrices a [m][k] (or turned, [k][m]) and b [k][n] by the kernels of env. */
ort_status ort_moments_multiply(ort_env *env, const float *a, bool turned, const float *b,
                                int64_t m, int64_t k, int64_t n, ort_value **product,
                                ort_error *err);

#endif
