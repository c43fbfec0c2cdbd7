/* coded_weights.h - weights that are codes take factors of their results into their scales. */
#ifndef ORT_PASS_FUSE_CODED_WEIGHTS_H
#define ORT_PASS_FUSE_CODED_WEIGHTS_H

#include "op/edit.h"

typedef struct ort_coded_weights {
    ort_node *node; /* the DequantizeLinear of constant codes; NULL: the weights aren't codes */
    const ort_tensor *codes, *scale, *zero; /* scale: NULL if it isn't constant, zero as well */
    int axis;                               /* of the codes, that counts results */
} ort_coded_weights;

/* The weights of a Conv, ConvTranspose, Gemm or MatMul that reads codes as well, so that it may
 * multiply bytes. */
void ort_coded_weights_read(const ort_graph *graph, const ort_node *linear, ort_coded_weights *w);
/* Why these factors, as many as it has results, can't go into the scales; NULL: they can. */
const char *ort_coded_weights_unless(const ort_graph *graph, const ort_coded_weights *w,
                                     const double *factors, int64_t count, bool portable);
/* The numbers of the same codes, those of each result times its factor. */
ort_status ort_coded_weights_scale(ort_graph *graph, const ort_coded_weights *w,
                                   const double *factors, int64_t count, ort_id *id,
                                   ort_error *err);

#endif
