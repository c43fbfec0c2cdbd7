/* float_convs.h - convolutions of codes whose result is a plain float tensor: what becomes a
 * BytesConvFloat (op/blocked/bytes_op.h), of DynamicQuantizeLinear (dynamic_convs.c) and of
 * DequantizeLinear (coded_convs.c).
 */
#ifndef ORT_PROVIDER_CPU_FLOAT_CONVS_H
#define ORT_PROVIDER_CPU_FLOAT_CONVS_H

#include "provider/cpu/layout_edit.h"

typedef struct ort_float_conv {
    ort_id inputs[8]; /* BytesConvFloat's: x, w, bias, scale, zero of x, none, zero of w, sums */
    double low, high; /* bounds of the result */
} ort_float_conv;

/* Is no weight 255 more than its zero point (NULL: 0)? The layout holds one as a sum of two
 * int8. */
bool ort_bytes_weights_fit(const ort_tensor *w, const ort_tensor *zero);
/* Why codes of type x can't be convolved so with a weight and its zero point (NULL: none); NULL:
 * they can. `conv` has the group. */
const char *ort_float_conv_stays(const ort_node *conv, const ort_type *x, const ort_tensor *w,
                                 const ort_tensor *zero);
/* The DequantizeLinear that gives an input, or NULL. */
ort_node *ort_dequantizer_of(const ort_graph *graph, const ort_node *node, int slot);
/* Has a convolution no bias, a constant one, or constant codes of one? */
bool ort_float_conv_knows_bias(const ort_graph *graph, const ort_node *conv);
/* That bias as floats; ORT_ID_NONE: none. */
ort_status ort_float_conv_bias(ort_graph *graph, const ort_node *conv, ort_id *id, ort_error *err);
/* The node, with conv's attributes and origin; x comes into the layout. */
ort_status ort_float_conv_add(ort_layout *l, const ort_node *conv, const ort_float_conv *made,
                              ort_id out, ort_error *err);

/* What the two passes differ in: which nodes they look at, what they find there (why not; NULL: it
 * is in `found`), and what becomes of it. */
typedef struct ort_float_convs {
    bool (*concerns)(const ort_graph *graph, const ort_node *node);
    const char *(*read)(const ort_graph *graph, ort_node *node, void *found);
    ort_status (*replace)(ort_layout *l, void *found, ort_error *err);
} ort_float_convs;

/* ort_pass.apply of both. */
ort_status ort_float_convs_apply(ort_pass_context *c, const ort_float_convs *kind, void *found,
                                 int *changes, ort_error *err);

#endif
