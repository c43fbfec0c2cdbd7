/* affine.h - what scales and shifts the channels of a tensor by constants: z = scale x + shift. */
#ifndef ORT_PASS_FUSE_AFFINE_H
#define ORT_PASS_FUSE_AFFINE_H

#include "op/edit.h"

typedef struct ort_affine { /* of each channel, computed in double */
    double *scale, *shift;
    bool scales, shifts; /* else they are all 1, all 0 */
} ort_affine;

typedef struct ort_affine_site {
    const ort_node *node; /* BatchNormalization, Mul, Div, Add or Sub */
    int slot;             /* where the data comes in */
    const ort_type *type; /* of the data, */
    int axis;             /* whose channels count along this one */
    int64_t channels;
} ort_affine_site;

bool ort_affine_is(const ort_node *node);
/* Reads it; NULL, or the condition that fails. Released in any case. */
const char *ort_affine_read(const ort_graph *graph, const ort_affine_site *site, ort_affine *a);
/* The elements by channel of a constant (or NULL) that broadcasts per channel onto the data; NULL,
 * or why it isn't one. */
const char *ort_affine_numbers(const ort_affine_site *site, const ort_tensor *t, double *out);
void ort_affine_release(ort_affine *a);
/* Is it a known constant of numbers that scale, shift and weights may be of? t may be NULL. */
bool ort_affine_reads(const ort_tensor *t);

/* ---- what may take it into its weights: Conv, ConvTranspose, Gemm, MatMul */

typedef struct ort_linear {
    const ort_tensor *weights, *bias; /* bias may be NULL */
    int64_t channels, results;        /* of what is read; of what is given */
    /* Weights of channel c and result r in a group begin at c * by_channel + r * by_result and are
     * `taps` numbers in a row; both count within a group. */
    int64_t groups, by_channel, by_result, taps, group_size;
} ort_linear;

bool ort_affine_is_linear(const ort_node *node);
/* The axis of what such a node reads or gives, of this rank, that counts channels. */
int ort_affine_axis(const ort_node *linear, int rank);
/* Its weights and bias; or why they can't take anything in. */
const char *ort_linear_read(const ort_graph *graph, const ort_node *node, ort_linear *l);
/* The same of given weights: the codes of such ones. */
const char *ort_linear_read_of(const ort_graph *graph, const ort_node *node,
                               const ort_tensor *weights, ort_linear *l);
/* A bias for it of these numbers, as many as it has results. */
ort_status ort_linear_add_bias(ort_graph *graph, const ort_node *node, const ort_linear *l,
                               const double *numbers, ort_id *id, ort_error *err);
/* The elements first .. first + count - 1 of `from` times scale, into the same of `to`. */
void ort_affine_scale(ort_tensor *to, const ort_tensor *from, int64_t first, int64_t count,
                      double scale);
/* The same with a scale for each element, of floats. */
void ort_affine_scale_each(ort_tensor *to, const ort_tensor *from, int64_t first, int64_t count,
                           const double *scale);

#endif
