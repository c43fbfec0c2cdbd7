/* layer.h - a product of a quantized model beside its float form, and what it reads on samples, as
 * --effort wants them: rows of numbers, each multiplied with a filter.
 */
#ifndef ORT_QUANTIZE_LAYER_H
#define ORT_QUANTIZE_LAYER_H

#include "base/pool.h"
#include "graph/graph.h"

typedef struct ort_layer {
    ort_graph *graph;    /* the quantized model's */
    ort_node *node;
    const char *input;   /* the float value whose numbers it reads, as runs show it */
    ort_shape declared;  /* its shape where runs show it in another one; rank 0: as they show it */
    const float *weight; /* in float */
    ort_tensor codes;    /* of the weight: changed in place */
    const ort_tensor *scales, *zeros; /* zeros: NULL: 0 */
    int bias;            /* slot; -1: it takes none */
    int64_t groups, filters, length; /* filters of a group; numbers of a filter */
    int64_t filter_step, number_step; /* where number k of filter m is in the weight */
    /* of a convolution: */
    bool windows;
    int64_t channels; /* of a group */
    int64_t kernel[2], stride[2], dilation[2], pad[2]; /* pads at the begin */
    int64_t pad_end[2];
    /* of what it read: */
    int64_t width;  /* length in whole vectors */
    int64_t rows;   /* that were read */
    float *square;  /* [groups][length][width]: sums of products of two numbers of a row */
    double *sum;    /* [groups][width] */
} ort_layer;

/* Takes the node of both models if it multiplies codes with a constant on codes that it alone
 * reads. */
bool ort_layer_of(ort_graph *floats, ort_graph *codes, ort_id node, ort_layer *layer);
static inline size_t ort_layer_bytes(const ort_layer *l)
{
    return (size_t)(l->groups * l->length * l->width) * sizeof(float);
}
ort_status ort_layer_begin(ort_layer *layer, ort_error *err);
/* How many rows a value has; 0: not of a shape that fits. */
int64_t ort_layer_rows(ort_layer *layer, const ort_tensor *x);
/* At most `most` rows of a value, evenly spread. */
ort_status ort_layer_read(ort_layer *layer, const ort_tensor *x, int64_t most, ort_pool *pool,
                          ort_error *err);
void ort_layer_end(ort_layer *layer);

#endif
