/* even.h - channels of a value made to reach equally far before codes are chosen, so that one scale
 * serves them: what factors, where; channel_move.h moves them.
 *
 *     equalize  between two products, by their weights alone: s = sqrt(r1 / r2) for each channel,
 *               r1 and r2 being its largest magnitudes in the weights before and behind (Nagel et
 *               al., "Data-Free Quantization Through Weight Equalization and Bias Correction", ICCV
 *               2019, equation 11), in rounds until nothing changes. A channel with small weights
 *               and a large bias would reach further than all others then: its bias limits the
 *               factor, and where weights are next to nothing the mean of all factors is taken.
 *               (Section 4.1.3 takes such biases on to the next layer by the norms' statistics,
 *               which a folded model has no more.)
 *     smooth    before products of matrices, by what they read on samples:
 *               s = max|x|^alpha / max|w|^(1 - alpha) (Xiao et al., "SmoothQuant: Accurate and
 *               Efficient Post-Training Quantization for Large Language Models", ICML 2023,
 *               equation 4), folded into what computes the value where that is possible, else by a
 *               Mul where one channel stands out
 */
#ifndef ORT_QUANTIZE_EVEN_H
#define ORT_QUANTIZE_EVEN_H

#include "quantize/channels/channel_move.h"
#include "tensor/tensor.h"

/* *moved: how many pairs of products got factors. */
ort_status ort_equalize(ort_graph *graph, size_t *moved, ort_error *err);

typedef struct ort_smoothed {
    ort_channel_move move;
    const char *name; /* of the value that runs show */
    float *reach;     /* [channels] on samples */
} ort_smoothed;

typedef struct ort_smoothing {
    ort_graph *graph;
    ORT_VEC(ort_smoothed) list;
    ort_channel_ids made;
} ort_smoothing;

/* A value without a source gets a Mul where its largest channel reaches this many times as far as
 * the mean of them. */
#define ORT_SMOOTH_OUTLIER 4

ort_status ort_smoothing_find(ort_smoothing *s, ort_graph *graph, ort_error *err);
void ort_smoothing_see(ort_smoothing *s, const char *name, const ort_tensor *t);
/* muls: nodes that were put before products; they are to stay float. */
ort_status ort_smoothing_apply(ort_smoothing *s, double alpha, ort_channel_ids *muls,
                               ort_error *err);
void ort_smoothing_release(ort_smoothing *s);

#endif
