/* opset_types.c - conversion of constants, casts and quantization. */
#include <string.h>

#include "opset/opset.h"

/* ---- Constant: numbers and strings of their own came with opset 12, sparse ones with 11 */

static void constant_down(ort_opset_step *s)
{
    const ort_attr *attr = s->node->attr_count ? &s->node->attrs[0] : NULL;
    const ort_graph_value *v = ort_graph_value_at(s->g.graph, s->node->outputs[0]);
    if (!attr || !strcmp(attr->name, "value"))
        return;
    if (!v || !v->fact.value) {
        ort_opset_block(s, "attribute '%s' isn't there before", attr->name);
        return;
    }
    ort_attr value = {.name = "value", .type = ORT_ATTR_TENSOR, .t = v->fact.value};
    ort_opset_drop(s, attr->name);
    ort_opset_set(s, &value);
}

/* ---- Cast: what overflows is of interest for 8-bit floats alone */

static void cast_down_19(ort_opset_step *s)
{
    ort_dtype to = ort_opset_dtype(s, s->node->outputs[0]);
    if (to && to != ORT_DTYPE_FLOAT8E4M3FN && to != ORT_DTYPE_FLOAT8E4M3FNUZ &&
        to != ORT_DTYPE_FLOAT8E5M2 && to != ORT_DTYPE_FLOAT8E5M2FNUZ)
        ort_opset_drop(s, "saturate");
}

static void cast_down_24(ort_opset_step *s)
{
    if (ort_opset_dtype(s, s->node->outputs[0]) != ORT_DTYPE_FLOAT8E8M0)
        ort_opset_drop(s, "round_mode");
}

/* ---- CastLike */

static void cast_like_down(ort_opset_step *s)
{
    ort_dtype to = ort_opset_dtype(s, s->node->inputs[1]);
    if (!to) {
        ort_opset_block(s, "the element type of input 'target_type' isn't known");
        return;
    }
    ort_opset_replace_by(s, ort_emit_formula(&s->g, "(Cast a to=$to)", "a $to",
                                             s->node->inputs[0], (double)to));
}

/* ---- QuantizeLinear and DequantizeLinear */

/* Opset 10 had one scale for the whole tensor. */
static void quantize_down_13(ort_opset_step *s)
{
    ort_id scale = s->node->inputs[1];
    int rank = ort_opset_rank(s, scale);
    bool one = rank == 0 || (rank == 1 && ort_opset_dim(s, scale, 0) == 1);
    if (!one) {
        ort_opset_block(s, "it has a scale per channel");
        return;
    }
    ort_opset_drop(s, "axis");
    for (int slot = 1; slot <= 2 && rank == 1; slot++) {
        ort_id in = ort_opset_in(s, slot);
        if (in != ORT_ID_NONE && ort_opset_rank(s, in) == 1)
            ort_opset_set_input(s, slot, ort_emit_formula(&s->g, "(Reshape x [])", "x", in));
    }
}

/* The type of codes was that of the zero point. */
static void quantize_down_21(ort_opset_step *s)
{
    ort_dtype dtype = (ort_dtype)ort_node_attr_int(s->node, "output_dtype");
    ort_dtype codes = ort_opset_dtype(s, s->node->outputs[0]);
    const ort_type *scale = ort_emit_type(&s->g, s->node->inputs[1]);
    uint64_t storage[1] = {0};
    if (!dtype)
        return;
    if (ort_opset_in(s, 2) == ORT_ID_NONE && codes != ORT_DTYPE_UINT8) {
        ort_tensor zero = {.dtype = codes, .data = storage};
        if (scale->rank > 1 || (scale->rank == 1 && !ort_dim_known(scale->dim[0]))) {
            ort_opset_block(s, "'output_dtype' without a zero point, of scales of unknown number");
            return;
        }
        ort_id point = ort_emit_tensor(&s->g, &zero);
        if (scale->rank == 1)
            point = ort_emit_formula(&s->g, "(Expand x [$n])", "x $n", point,
                                     (double)scale->dim[0].size);
        ort_opset_set_input(s, 2, point);
    }
    ort_opset_drop(s, "output_dtype");
}

static void quantize_down_23(ort_opset_step *s)
{
    int64_t precision = ort_node_attr_int(s->node, "precision");
    if (precision == (int64_t)ort_opset_dtype(s, s->node->inputs[1]))
        ort_opset_drop(s, "precision");
}

static void dequantize_down_23(ort_opset_step *s)
{
    ort_dtype scale = ort_opset_dtype(s, s->node->inputs[1]);
    ort_dtype dtype = (ort_dtype)ort_node_attr_int(s->node, "output_dtype");
    if (!dtype)
        return;
    if (dtype != scale) {
        ort_id out = s->node->outputs[0];
        ort_type type = *ort_emit_type(&s->g, out);
        type.dtype = scale;
        ort_id made = ort_opset_take_output(s, 0, &type);
        ort_opset_give(s, out, ort_emit_cast(&s->g, made, dtype));
    }
    ort_opset_drop(s, "output_dtype");
}

const ort_opset_rule ort_opset_types[] = {
    {"Cast", 19, NULL, cast_down_19},
    {"Cast", 24, NULL, cast_down_24},
    {"CastLike", 15, NULL, cast_like_down},
    {"CastLike", 19, NULL, cast_down_19},
    {"CastLike", 24, NULL, cast_down_24},
    {"Constant", 11, NULL, constant_down},
    {"Constant", 12, NULL, constant_down},
    {"DequantizeLinear", 13, NULL, quantize_down_13},
    {"DequantizeLinear", 23, NULL, dequantize_down_23},
    {"QuantizeLinear", 13, NULL, quantize_down_13},
    {"QuantizeLinear", 19, NULL, cast_down_19},
    {"QuantizeLinear", 21, NULL, quantize_down_21},
    {"QuantizeLinear", 23, NULL, quantize_down_23},
    {0},
};
