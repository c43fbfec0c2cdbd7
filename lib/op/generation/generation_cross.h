/* generation_cross.h - the scores of a decoder's attention to what its encoder made, kept for the
 * sequences that come out of a search.
 *
 * Each run of the decoder gives, per layer, [rows, heads, 1, frames]. What some pairs of layer and
 * head give is kept run by run; a row remembers by which rows its beam went, run by run, so that
 * nothing is copied when beams change places.
 */
#ifndef ORT_OP_GENERATION_GENERATION_CROSS_H
#define ORT_OP_GENERATION_GENERATION_CROSS_H

#include "op/generation/generation.h"

typedef struct ort_generation_cross {
    const ort_tensor *pairs; /* int32 [pairs, 2]: layer and head; NULL: all */
    int64_t count, heads, frames, runs; /* count: of pairs */
    float *values;           /* [runs][rows][count][frames] */
    size_t capacity;         /* floats */
    int32_t *path, *spare;   /* [rows][max]: the row of each run */
} ort_generation_cross;

ort_status ort_generation_cross_begin(ort_generation_cross *c, const ort_generation *g,
                                      const ort_tensor *pairs, ort_error *err);
void ort_generation_cross_free(ort_generation_cross *c);
/* After a run of the decoder; then, when rows continue others, before ort_generation_append. */
ort_status ort_generation_cross_keep(ort_generation_cross *c, const ort_generation *g,
                                     ort_error *err);
void ort_generation_cross_append(ort_generation_cross *c, const ort_generation *g);
/* The scores along a path of `runs` rows to out [count][c->runs][frames], zeros behind. */
void ort_generation_cross_write(const ort_generation_cross *c, const ort_generation *g,
                                const int32_t *path, int64_t runs, float *out);

#endif
