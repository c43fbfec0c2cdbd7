/* dynamic_products.c - MatMul, Gemm and Conv on bytes:
 *
 *     a, za, sa = DynamicQuantizeLinear(A)
 *     Cast(MatMulInteger(a, b, za, zb)) * (sa * sb) [+ bias]
 */
#include <string.h>

#include "base/error.h"
#include "quantize/dynamic/dynamic_parts.h"

/* Products of fewer weights than this cost less than the bytes that they would read. */
enum { SMALL_MATRIX = 4096, SMALL_FILTERS = 4096, FEW_CHANNELS = 8 };

typedef struct product {
    ort_id a, bias;  /* bias: NONE without one */
    double alpha, beta;
    bool swapped;    /* the node itself swaps its weight's last two dims */
} product;

/* Of a node that has gone, too. */
static product product_of(const ort_node *node)
{
    product p = {node->inputs[0], ORT_ID_NONE, 1, 1, false};
    if (!strcmp(node->op_type, "Gemm")) {
        p.bias = ort_edit_input(node, 2);
        p.beta = (double)ort_node_float(node, "beta", 1);
    }
    const bool plain = !strcmp(node->op_type, "MatMul");
    if (!plain) {
        p.alpha = (double)ort_node_float(node, "alpha", 1);
        p.swapped = ort_node_int(node, "transB", 0) != 0;
    }
    return p;
}

static const char *read_types(const ort_graph *graph, const ort_node *node)
{
    if (!ort_dynamic_is_float(graph, node->inputs[0]) ||
        !ort_dynamic_is_float(graph, node->outputs[0]))
        return "its numbers aren't of type float";
    return NULL;
}

/* ---- matrices */

static const char *read_computed(const ort_dynamic *d, const ort_graph *graph,
                                 const ort_node *node)
{
    if (!ort_edit_is(node, ONNX, "MatMul") || !ort_dynamic_is_float(graph, node->inputs[1]))
        return "its weight is computed";
    return d->options->computed ? NULL : "both of its sides are computed";
}

static const char *read_matrix(ort_dynamic *d, ort_dynamic_unit *u)
{
    const product p = product_of(u->node);
    ort_graph *owner;
    ort_id own;
    bool behind, first_behind;
    const char *why = read_types(u->graph, u->node);
    if (why)
        return why;
    if (ort_node_int(u->node, "transA", 0) || ort_node_int(u->node, "transBatchA", 0) ||
        ort_node_int(u->node, "transBatchB", 0))
        return "its first matrix is transposed";
    if (ort_dynamic_constant(u->graph, u->node->inputs[0], &owner, &own, &first_behind))
        return "its first input is constant";
    const ort_tensor *b =
        ort_dynamic_constant(u->graph, u->node->inputs[1], &owner, &own, &behind);
    if (!b)
        return read_computed(d, u->graph, u->node);
    const int rank = b->shape.rank;
    if (rank < 2)
        return "its weight is a vector";
    if (ort_tensor_count(b) < SMALL_MATRIX && !d->options->small)
        return "too small to gain";
    const bool turned = behind != p.swapped;
    const int axis = turned ? rank - 2 : rank - 1;
    /* onnxruntime takes a stack of matrices with one zero point, or none: not one a column. */
    const bool stack = rank > 2;
    return d->options->per_tensor
               ? ort_dynamic_take(d, u, 1, 0, 0, turned, false)
               : ort_dynamic_take(d, u, 1, axis, axis + 1, turned, stack);
}

typedef struct integer_product {
    const char *op_type;
    ort_dynamic_bytes a;
    ort_dynamic_codes b;
    bool keeps_attrs;
} integer_product;

/* Cast(op(a, b, za, zb)) * (sa * sb); *result is that of the unit's node where `last`. */
static ort_status write_scaled(const ort_dynamic_unit *u, const integer_product *p, bool last,
                               ort_id *result, ort_error *err)
{
    const ort_attr to = ort_attr_int("to", ORT_DTYPE_FLOAT);
    ort_id sum, real, scale;
    const ort_dynamic_new integer = {
        .op_type = p->op_type, .what = "quant",
        .inputs = (const ort_id[]){p->a.codes, p->b.codes, p->a.zero, p->b.zero},
        .input_count = 4, .keeps_attrs = p->keeps_attrs};
    ORT_TRY(ort_dynamic_add(u, &integer, &sum, err));
    const ort_dynamic_new cast = {.op_type = "Cast", .what = "quant_cast", .inputs = &sum,
                                  .input_count = 1, .set = &to, .set_count = 1};
    ORT_TRY(ort_dynamic_add(u, &cast, &real, err));
    const ort_dynamic_new scales = {.op_type = "Mul", .what = "quant_scales_mul",
                                    .inputs = (const ort_id[]){p->a.scale, p->b.scale},
                                    .input_count = 2};
    ORT_TRY(ort_dynamic_add(u, &scales, &scale, err));
    const ort_dynamic_new scaled = {.op_type = "Mul", .what = "quant_output_scale_mul",
                                    .inputs = (const ort_id[]){real, scale}, .input_count = 2,
                                    .last = last};
    return ort_dynamic_add(u, &scaled, result, err);
}

static ort_status add_bias(const ort_dynamic_unit *u, ort_id sum, ort_id bias, ort_error *err)
{
    const ort_dynamic_new add = {.op_type = "Add", .what = "bias_add",
                                 .inputs = (const ort_id[]){sum, bias}, .input_count = 2,
                                 .last = true};
    return ort_dynamic_add(u, &add, NULL, err);
}

/* beta * C of a Gemm. */
static ort_status scale_bias(const ort_dynamic_unit *u, double beta, ort_id *bias, ort_error *err)
{
    const ort_tensor *c = ort_fact_constant(u->graph, *bias);
    const char *stem = u->graph->values.data[*bias]->name;
    const ort_shape one = {0};
    ort_tensor t;
    ort_id id;
    if (beta == 1)
        return ORT_OK;
    if (c)
        c = ort_graph_weight(u->graph, *bias);
    ORT_TRY(ort_dynamic_constant_of(u->graph, stem, "beta", ORT_DTYPE_FLOAT,
                                    c ? &c->shape : &one, &t, &id, err));
    for (int64_t i = 0; i < ort_tensor_count(&t); i++)
        ((float *)t.data)[i] = (float)beta * (c ? ((const float *)c->data)[i] : 1);
    if (c) {
        *bias = id;
        return ORT_OK;
    }
    const ort_dynamic_new mul = {.op_type = "Mul", .what = "beta",
                                 .inputs = (const ort_id[]){*bias, id}, .input_count = 2};
    return ort_dynamic_add(u, &mul, bias, err);
}

static ort_status write_matrix(ort_dynamic *d, const ort_dynamic_unit *u, ort_error *err)
{
    product p = product_of(u->node);
    integer_product i = {.op_type = "MatMulInteger"};
    const bool biased = p.bias != ORT_ID_NONE && p.beta != 0;
    ort_id result;
    ORT_TRY(ort_dynamic_bytes_of(d, u->graph, p.a, &i.a, err));
    if (u->weight_count) {
        ORT_TRY(ort_dynamic_codes_of(d, u, 0, NULL, p.alpha, false, &i.b, err));
    } else {
        ort_dynamic_bytes b;
        ORT_TRY(ort_dynamic_bytes_of(d, u->graph, u->node->inputs[1], &b, err));
        i.b = (ort_dynamic_codes){b.codes, b.scale, b.zero};
    }
    if (biased)
        ORT_TRY(scale_bias(u, p.beta, &p.bias, err));
    ORT_TRY(write_scaled(u, &i, !biased, &result, err));
    return biased ? add_bias(u, result, p.bias, err) : ORT_OK;
}

/* ---- convolutions */

static const char *read_conv(ort_dynamic *d, ort_dynamic_unit *u)
{
    ort_graph *owner;
    ort_id own;
    bool behind;
    const char *why = read_types(u->graph, u->node);
    if (why)
        return why;
    const char *stays = d->options->convs ? NULL : "convolutions lose less, and run faster, with "
                                                   "ranges from samples";
    const ort_tensor *w = ort_dynamic_constant(u->graph, u->node->inputs[1], &owner, &own, &behind);
    if (!w || behind)
        return stays ? stays : "its weight is computed";
    if (w->shape.rank < 3)
        return stays ? stays : "its weight is no filter";
    if (stays && (ort_tensor_count(w) < SMALL_FILTERS || ort_node_int(u->node, "group", 1) > 1))
        return stays;
    if (stays) {
        u->stored = stays;
        return ort_dynamic_take(d, u, 1, 0, 1, false, true);
    }
    const int64_t channels = w->shape.dim[1];
    if (!d->options->small) {
        if (ort_node_int(u->node, "group", 1) > 1)
            return "channels in groups cost more to quantize than to multiply";
        if (channels < FEW_CHANNELS || ort_tensor_count(w) < SMALL_FILTERS)
            return "too small to gain";
    }
    return ort_dynamic_take(d, u, 1, 0, d->options->per_tensor ? 0 : 1, false, true);
}

/* One number a map: [M, 1, ..] */
static ort_shape per_map(const ort_graph *graph, const ort_node *node)
{
    const ort_type *w = &graph->values.data[node->inputs[1]]->fact.type;
    ort_shape shape = {.rank = w->rank - 1, .dim = {w->dim[0].size}};
    for (int i = 1; i < shape.rank; i++)
        shape.dim[i] = 1;
    return shape;
}

static ort_status reshape_bias(const ort_dynamic_unit *u, const ort_shape *shape, ort_id *bias,
                               ort_error *err)
{
    const ort_tensor *b = ort_fact_constant(u->graph, *bias);
    const char *stem = u->graph->values.data[*bias]->name;
    ort_tensor t;
    ort_id id;
    if (b && b->dtype == ORT_DTYPE_FLOAT) {
        b = ort_graph_weight(u->graph, *bias);
        ORT_TRY(ort_dynamic_constant_of(u->graph, stem, "reshaped", ORT_DTYPE_FLOAT, shape, &t,
                                        bias, err));
        memcpy(t.data, b->data, ort_tensor_bytes(&t));
        return ORT_OK;
    }
    const ort_shape list = {.rank = 1, .dim = {shape->rank}};
    ORT_TRY(ort_dynamic_constant_of(u->graph, stem, "shape", ORT_DTYPE_INT64, &list, &t, &id, err));
    for (int i = 0; i < shape->rank; i++)
        ((int64_t *)t.data)[i] = shape->dim[i];
    const ort_dynamic_new reshape = {.op_type = "Reshape", .what = "bias_reshape",
                                     .inputs = (const ort_id[]){*bias, id}, .input_count = 2};
    return ort_dynamic_add(u, &reshape, bias, err);
}

static ort_status write_conv(ort_dynamic *d, const ort_dynamic_unit *u, ort_error *err)
{
    const ort_shape shape = per_map(u->graph, u->node);
    integer_product i = {.op_type = "ConvInteger", .keeps_attrs = true};
    ort_id bias = ort_edit_input(u->node, 2), result;
    ORT_TRY(ort_dynamic_bytes_of(d, u->graph, u->node->inputs[0], &i.a, err));
    ORT_TRY(ort_dynamic_codes_of(d, u, 0, d->options->per_tensor ? NULL : &shape, 1, false, &i.b,
                                 err));
    if (bias != ORT_ID_NONE)
        ORT_TRY(reshape_bias(u, &shape, &bias, err));
    ORT_TRY(write_scaled(u, &i, bias == ORT_ID_NONE, &result, err));
    return bias == ORT_ID_NONE ? ORT_OK : add_bias(u, result, bias, err);
}

const ort_dynamic_row ort_dynamic_products[] = {
    {ONNX, "MatMul", read_matrix, write_matrix, "MatMulInteger"},
    {ONNX, "Gemm", read_matrix, write_matrix, "MatMulInteger"},
    {MS, "FusedMatMul", read_matrix, write_matrix, "MatMulInteger"},
    {ONNX, "Conv", read_conv, write_conv, "ConvInteger"},
    {ONNX, "ConvTranspose", .stays = "no operator multiplies codes as it does"},
    {ONNX, "Einsum", .stays = "no operator multiplies codes as it does"},
    {MS, "FusedConv", .stays = "its activation is inside: quantize first, then optimize"},
    {MS, "FusedGemm", .stays = "its activation is inside: quantize first, then optimize"},
    {MS, "TransposeMatMul", .stays = "its first matrix may be transposed"},
    {ONNX, "MatMulInteger", .stays = "it computes on codes already"},
    {ONNX, "QLinearMatMul", .stays = "it computes on codes already"},
    {ONNX, "ConvInteger", .stays = "it computes on codes already"},
    {ONNX, "QLinearConv", .stays = "it computes on codes already"},
    {MS, "MatMulNBits", .stays = "it computes on codes already"},
    {MS, "MatMulIntegerToFloat", .stays = "it computes on codes already"},
    {MS, "DynamicQuantizeMatMul", .stays = "it computes on codes already"},
    {MS, "QGemm", .stays = "it computes on codes already"},
    {0},
};
