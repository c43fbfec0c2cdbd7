/* quant_pair.h - QuantizeLinear and DequantizeLinear nodes as the quantized operators want them. */
#ifndef ORT_PASS_NUMBERS_QUANT_PAIR_H
#define ORT_PASS_NUMBERS_QUANT_PAIR_H

#include "pass/pass.h"

typedef struct ort_quant {
    ort_node *node;
    ort_dtype dtype;         /* of the quantized side */
    const ort_tensor *scale; /* constant float32, of one number or one per index of `axis` */
    const ort_tensor *zero;  /* constant, or NULL: zero */
    int64_t axis;            /* not normalized */
} ort_quant;

/* Is the node a QuantizeLinear (or DequantizeLinear) with constant parameters, from or to
 * float32, not by blocks? */
bool ort_quant_read(const ort_graph *graph, ort_node *node, const char *op_type, ort_quant *quant);
static inline bool ort_quant_is_byte(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_INT8 || dtype == ORT_DTYPE_UINT8;
}
static inline bool ort_quant_is_wide(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_INT16 || dtype == ORT_DTYPE_UINT16;
}
/* Of activations that products of whole numbers take. */
static inline bool ort_quant_is_code(ort_dtype dtype)
{
    return ort_quant_is_byte(dtype) || ort_quant_is_wide(dtype);
}
/* One scale and one zero point for the whole tensor. */
bool ort_quant_is_plain(const ort_quant *quant);
double ort_quant_scale(const ort_quant *quant); /* the first */
int64_t ort_quant_zero(const ort_quant *quant); /* the first */
/* Of one type, with the same parameters: what DequantizeLinear makes of a code of up to 16 bits,
 * QuantizeLinear makes the code again. (q - z) s / s is off by two roundings of at most 2^-24 of
 * itself, far from half a code, as long as scales are normal numbers. */
bool ort_quant_same(const ort_quant *a, const ort_quant *b);
/* Must a float operator stay between DequantizeLinear and QuantizeLinear of this type, since the
 * file is for others? With a note on `node` then. */
bool ort_quant_stays(const ort_pass_context *context, const ort_node *node, ort_dtype dtype);

/* Its zero point as an input of another node, made where it has none. */
ort_status ort_quant_zero_input(ort_graph *graph, const ort_quant *quant, ort_id *id,
                                ort_error *err);
/* The node that computes a value which nobody reads goes. */
void ort_quant_drop_unread(ort_graph *graph, ort_id id);
/* How many of its first inputs an operator only picks elements of, 8-bit ones too; 0: none. */
int ort_quant_moved(const ort_node *node);
/* Does it leave codes as they are, one after the other in another shape or order? */
bool ort_quant_is_move(const ort_node *node);
/* What computes the values that `node` reads, moves alone in between; NULL: others read them. */
ort_node *ort_quant_source(const ort_graph *graph, const ort_node *node);
/* quantize(move(x)) becomes move(quantize(x)): codes of single elements, whatever their order. */
ort_status ort_quant_swap(ort_pass_context *c, ort_node *quantize, ort_error *err);
/* Are all inputs that a move picks from numbers of codes with the same parameters, *first? */
bool ort_quant_reads_codes(const ort_graph *graph, const ort_node *move, int inputs,
                           ort_quant *first);
/* Such a move works on the codes; its results are dequantized instead. */
ort_status ort_quant_sink(ort_pass_context *c, ort_node *move, int inputs, const ort_quant *d,
                          ort_error *err);

#endif
