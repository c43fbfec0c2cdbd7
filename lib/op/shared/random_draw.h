/* random_draw.h - where the random operators get their numbers. One of three sources serves a
 * node's draw:
 *
 *   - the run's one generator, where the caller asks for it (ort_run_options.one_stream): numpy's
 *     RandomState(seed), from which all nodes draw in turn, whatever their attributes say;
 *   - else, with a seed attribute, numpy's RandomState(seed), begun anew at every run;
 *   - else a counter: number i is a mix of the draw's key and i, so it can be had in any order. The
 *     key advances from draw to draw of a run, and follows from the seed of the run.
 *
 * All three are the same on every machine and for any number of threads.
 */
#ifndef ORT_OP_SHARED_RANDOM_DRAW_H
#define ORT_OP_SHARED_RANDOM_DRAW_H

#include "base/mt19937.h"
#include "op/op.h"

typedef struct ort_draw {
    ort_mt19937 own;
    ort_mt19937 *stream; /* own, or the run's; NULL: the counter */
    uint64_t key;
} ort_draw;

/* seed: of the attribute, when `seeded`. `draw` must stay where it is while it is used. */
void ort_draw_begin(ort_draw *draw, const ort_call *call, bool seeded, uint64_t seed);
/* A float attribute as numpy's int(value): cut towards zero; NaN is no seed. Negative numbers and
 * those beyond 2^63, which numpy refuses, are taken by their bits. */
bool ort_draw_float_seed(double value, uint64_t *seed);

/* The numbers of a stream come in order: i then only counts the calls. */
static inline bool ort_draw_in_order(const ort_draw *draw)
{
    return draw->stream != NULL;
}
/* In [0, 1), 53 bits. */
double ort_draw_uniform(const ort_draw *draw, int64_t i);
/* Mean 0, variance 1. */
double ort_draw_normal(const ort_draw *draw, int64_t i);
/* True with probability p of [0, 1]. */
bool ort_draw_bernoulli(const ort_draw *draw, int64_t i, double p);

#endif
