/* transpose_table.c - a table of operators by what a permutation does to them: nothing
 * (elementwise), an axis or a list of axes changes, a list by dimension is reordered, dimensions
 * go or come, or the operands of a product change places. */
#include "pass/transpose/transpose_table.h"

#include <string.h>

/* ---- the table */

#define ALL ORT_RULE_ALL_DATA
#define FIRST ORT_RULE_FIRST_DATA

static const ort_rule rules[] = {
    {ONNX, "ArgMax", ORT_RULE_REMOVE, FIRST, 1, false},
    {ONNX, "ArgMin", ORT_RULE_REMOVE, FIRST, 1, false},
    {ONNX, "BatchNormalization", ORT_RULE_FRONT, FIRST, 7, true},
    {ONNX, "CastLike", ORT_RULE_ELEMENTWISE, FIRST, 15, false},
    {ONNX, "Clip", ORT_RULE_ELEMENTWISE, FIRST, 1, false},
    {ONNX, "Concat", ORT_RULE_AXIS, ALL, 4, false},
    {ONNX, "CumSum", ORT_RULE_AXIS_IN, FIRST, 11, false},
    {ONNX, "DequantizeLinear", ORT_RULE_SCALES, FIRST, 10, false},
    {ONNX, "DynamicQuantizeLinear", ORT_RULE_ELEMENTWISE, FIRST, 11, true},
    {ONNX, "Expand", ORT_RULE_EXPAND, FIRST, 8, false},
    {ONNX, "Flatten", ORT_RULE_RESHAPE, FIRST, 1, false},
    {ONNX, "Gather", ORT_RULE_PICK, FIRST, 1, false},
    {ONNX, "GatherElements", ORT_RULE_AXIS, 3, 11, false},
    {ONNX, "GlobalAveragePool", ORT_RULE_FRONT, FIRST, 1, false},
    {ONNX, "GlobalMaxPool", ORT_RULE_FRONT, FIRST, 1, false},
    {ONNX, "Hardmax", ORT_RULE_NORMALIZE, FIRST, 1, false},
    {ONNX, "InstanceNormalization", ORT_RULE_FRONT, FIRST, 6, false},
    {ONNX, "LRN", ORT_RULE_FRONT, FIRST, 1, false},
    {ONNX, "LayerNormalization", ORT_RULE_TAIL, FIRST, 17, false},
    {ONNX, "LogSoftmax", ORT_RULE_NORMALIZE, FIRST, 1, false},
    {ONNX, "LpNormalization", ORT_RULE_AXIS, FIRST, 1, false},
    {ONNX, "MatMul", ORT_RULE_PRODUCT, ALL, 1, false},
    {ONNX, "MeanVarianceNormalization", ORT_RULE_MEANS, FIRST, 9, false},
    {ONNX, "Pad", ORT_RULE_PAD, FIRST, 2, false},
    {ONNX, "QuantizeLinear", ORT_RULE_SCALES, FIRST, 10, false},
    {ONNX, "RMSNormalization", ORT_RULE_TAIL, FIRST, 23, false},
    {ONNX, "ReduceL1", ORT_RULE_REDUCE, FIRST, 1, false},
    {ONNX, "ReduceL2", ORT_RULE_REDUCE, FIRST, 1, false},
    {ONNX, "ReduceLogSum", ORT_RULE_REDUCE, FIRST, 1, false},
    {ONNX, "ReduceLogSumExp", ORT_RULE_REDUCE, FIRST, 1, false},
    {ONNX, "ReduceMax", ORT_RULE_REDUCE, FIRST, 1, false},
    {ONNX, "ReduceMean", ORT_RULE_REDUCE, FIRST, 1, false},
    {ONNX, "ReduceMin", ORT_RULE_REDUCE, FIRST, 1, false},
    {ONNX, "ReduceProd", ORT_RULE_REDUCE, FIRST, 1, false},
    {ONNX, "ReduceSum", ORT_RULE_REDUCE, FIRST, 1, false},
    {ONNX, "ReduceSumSquare", ORT_RULE_REDUCE, FIRST, 1, false},
    {ONNX, "Reshape", ORT_RULE_RESHAPE, FIRST, 5, false},
    {ONNX, "Resize", ORT_RULE_RESIZE, FIRST, 10, false},
    {ONNX, "ScatterElements", ORT_RULE_AXIS, 7, 11, false},
    {ONNX, "Shape", ORT_RULE_SHAPE, FIRST, 1, false},
    {ONNX, "Slice", ORT_RULE_SLICE, FIRST, 1, false},
    {ONNX, "Softmax", ORT_RULE_NORMALIZE, FIRST, 1, false},
    {ONNX, "Split", ORT_RULE_AXIS, FIRST, 2, false},
    {ONNX, "Squeeze", ORT_RULE_SQUEEZE, FIRST, 1, false},
    {ONNX, "Tile", ORT_RULE_TILE, FIRST, 6, false},
    {ONNX, "TopK", ORT_RULE_AXIS, FIRST, 1, false},
    {ONNX, "Unsqueeze", ORT_RULE_UNSQUEEZE, FIRST, 1, false},
    {ONNX, "Upsample", ORT_RULE_RESIZE, FIRST, 9, false},
    {MS, "BiasGelu", ORT_RULE_TAIL, FIRST, 1, false},
    {MS, "DequantizeLinear", ORT_RULE_SCALES, FIRST, 1, false},
    {MS, "FastGelu", ORT_RULE_TAIL, FIRST, 1, false},
    {MS, "QLinearAdd", ORT_RULE_ELEMENTWISE, 0x9, 1, false},
    {MS, "QLinearConcat", ORT_RULE_AXIS, UINT64_C(0x4924924924924924), 1, false},
    {MS, "QLinearLeakyRelu", ORT_RULE_ELEMENTWISE, FIRST, 1, false},
    {MS, "QLinearMul", ORT_RULE_ELEMENTWISE, 0x9, 1, false},
    {MS, "QLinearReduceMean", ORT_RULE_REDUCE, FIRST, 1, false},
    {MS, "QLinearSigmoid", ORT_RULE_ELEMENTWISE, FIRST, 1, false},
    {MS, "QLinearWhere", ORT_RULE_ELEMENTWISE, 0x13, 1, false},
    {MS, "QuantizeLinear", ORT_RULE_SCALES, FIRST, 1, false},
};

/* Elementwise operators of any domain that the table doesn't name. ai.onnx broadcasts since 7. */
static const ort_rule unary = {ONNX, "", ORT_RULE_ELEMENTWISE, FIRST, 1, false};
static const ort_rule elementwise = {ONNX, "", ORT_RULE_ELEMENTWISE, ALL, 7, false};

const ort_rule *ort_rule_of(const ort_node *node)
{
    if (!node->op || node->output_count < 1 || node->body_count)
        return NULL;
    bool maps = node->op->traits & ORT_TRAIT_ELEMENTWISE, onnx = !strcmp(node->domain, ONNX);
    if (maps && node->input_count == 1)
        return &unary;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].op_type[0] == node->op_type[0] && !strcmp(rules[i].op_type, node->op_type) &&
            !strcmp(rules[i].domain, node->domain))
            return node->opset >= rules[i].since ? &rules[i] : NULL;
    return maps && (!onnx || node->opset >= elementwise.since) ? &elementwise : NULL;
}

int ort_rule_slot(const ort_rule *r)
{
    int slot = 0;
    while (!(r->data >> slot & 1))
        slot++;
    return slot;
}

/* ---- axes */

const ort_type *ort_rule_type(const ort_graph *graph, const ort_node *node, int slot)
{
    return ort_fact_tensor(graph, ort_edit_input(node, slot));
}

int ort_rule_axis(const ort_rule *r, const ort_node *node, int rank)
{
    int64_t axis = r->kind == ORT_RULE_TAIL ? -1 : 1; /* of FastGelu; of one scale for all */
    if (ort_op_has_attr(node->op, "axis"))
        axis = ort_node_attr_int(node, "axis");
    return ort_axis_in(axis, rank);
}

int ort_rule_dropped(const ort_graph *graph, const ort_node *node, const ort_rule *r, int rank,
                     int64_t *axes)
{
    if (r->kind == ORT_RULE_REMOVE || r->kind == ORT_RULE_PICK) {
        axes[0] = ort_rule_axis(r, node, rank);
        return axes[0] < 0 ? -1 : 1;
    }
    int count = ort_fact_axes(graph, node, strcmp(node->domain, ONNX) ? 0 : 1, rank, axes);
    if (count || r->kind != ORT_RULE_REDUCE)
        return count ? count : -1;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    return rank;
}

const ort_tensor *ort_rule_list(const ort_graph *graph, const ort_node *node, int slot)
{
    const ort_tensor *t = ort_edit_constant(graph, node, slot);
    return t && t->data && t->shape.rank == 1 ? t : NULL;
}

ort_type ort_permuted_type(const ort_type *type, const ort_perm *p)
{
    ort_type made = *type;
    for (int i = 0; i < p->rank; i++)
        made.dim[p->to[i]] = type->dim[i];
    return made;
}
