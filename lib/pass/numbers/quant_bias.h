/* quant_bias.h - the bias of a quantized product: int32 codes of the scale of x times that of w. */
#ifndef ORT_PASS_NUMBERS_QUANT_BIAS_H
#define ORT_PASS_NUMBERS_QUANT_BIAS_H

#include "pass/numbers/quant_pair.h"

typedef struct ort_quant_product {
    const ort_quant *x, *w;
    const ort_quant *out; /* its scale NULL: results stay float */
    int64_t channels;     /* of the result; -1: not known */
    int slot;             /* of the bias among the node's inputs */
} ort_quant_product;

/* The codes of the bias of `node`: those that it is dequantized from where they fit, else made of
 * the constant. When there can't be any, *why tells the reason and *id is what it was. */
ort_status ort_quant_bias(ort_graph *graph, const ort_node *node, const ort_quant_product *product,
                          ort_id *id, const char **why, ort_error *err);

#endif
