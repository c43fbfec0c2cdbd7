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
/* Conv, ConvTranspose, Gemm or MatMul: what may take it into its weights. */
bool ort_affine_is_linear(const ort_node *node);
/* The axis of what such a node reads or gives, of this rank, that counts channels. */
int ort_affine_axis(const ort_node *linear, int rank);
/* Reads it; NULL, or the condition that fails. Released in any case. */
const char *ort_affine_read(const ort_graph *graph, const ort_affine_site *site, ort_affine *a);
void ort_affine_release(ort_affine *a);
/* Is it a known constant of numbers that scale, shift and weights may be of? t may be NULL. */
bool ort_affine_reads(const ort_tensor *t);
/* The elements first .. first + count - 1 of `from` times scale, into the same of `to`. */
void ort_affine_scale(ort_tensor *to, const ort_tensor *from, int64_t first, int64_t count,
                      double scale);

#endif
