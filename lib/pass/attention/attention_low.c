/* attention_low.c - masks of the lowest number, for Attention of opset 23 in a file.
 *
 * A row all whose keys have the lowest number of the type as their mask weighs them alike: beside
 * that number every score is lost. onnxruntime 1.31 gives 0 for such a row. It doesn't beside half
 * that number, with which the keys weigh the same, there as everywhere; so the lowest number is
 * halved, -infinity stays (rows of it are 0 here and there), and others do, too. Where it stands as
 * a constant that a Where or a sum takes, the constant is another; else
 *
 *     mask   becomes   Where(Equal(mask, lowest), lowest / 2, mask)
 *
 * A sum of matrix products isn't taken for the lowest number, nor is anything made of integers.
 */
#include <float.h>
#include <math.h>

#include "pass/attention/attention_match.h"
#include "pass/facts/facts.h"

enum { DEPTH = 24, LOOKS = 256 };

static double lowest_of(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT16    ? -65504.0
           : dtype == ORT_DTYPE_BFLOAT16 ? -0x1.fep127
           : dtype == ORT_DTYPE_FLOAT    ? -(double)FLT_MAX
                                         : -DBL_MAX;
}

static bool holds_lowest(const ort_tensor *t)
{
    double lowest = lowest_of(t->dtype);
    for (int64_t i = 0; i < ort_tensor_count(t); i++)
        if (ort_tensor_get_f64(t, i) == lowest)
            return true;
    return false;
}

static bool is_float(const ort_graph *graph, ort_id id)
{
    const ort_type *type = ort_fact_type(graph, id);
    return type->kind == ORT_TYPE_TENSOR && (type->dtype == ORT_DTYPE_UNDEFINED ||
           ort_dtype_get(type->dtype)->class_ == ORT_CLASS_FLOAT);
}

/* Could an element be the lowest number? *looks: how many nodes may still be looked at. */
static bool may_be_low(const ort_graph *graph, ort_id id, int depth, int *looks)
{
    static const char *const sums[] = {"MatMul", "Gemm", "Conv", "LayerNormalization", "Softmax"};
    const ort_tensor *constant = ort_fact_constant(graph, id);
    const ort_node *node = ort_edit_producer(graph, id);
    if (!is_float(graph, id))
        return false;
    if (constant)
        return holds_lowest(constant);
    if (!node || depth > DEPTH || --*looks < 0 || node->body_count > 0)
        return true;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        if (ort_edit_is(node, ONNX, sums[i]))
            return false;
    if (ort_edit_is(node, ONNX, "ConstantOfShape")) {
        const ort_attr *value = ort_node_attr(node, "value");
        return value && value->type == ORT_ATTR_TENSOR && holds_lowest(value->t);
    }
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ORT_ID_NONE && may_be_low(graph, node->inputs[i], depth + 1, looks))
            return true;
    return false;
}

static bool is_low(const ort_graph *graph, ort_id id)
{
    int looks = LOOKS;
    return may_be_low(graph, id, 0, &looks);
}

bool ort_attention_masks_low(const ort_graph *graph, const ort_attention_terms *t)
{
    for (int i = 0; i < t->mask_count; i++)
        if (is_low(graph, t->masks[i]))
            return true;
    return false;
}

/* ---- writing */

static ort_id raise_any(ort_emit *e, ort_id id)
{
    double lowest = lowest_of(ort_emit_type(e, id)->dtype);
    ort_id low = ort_emit_number(e, id, lowest), half = ort_emit_number(e, id, lowest / 2);
    return ort_emit_op3(e, "Where", ort_emit_op2(e, "Equal", id, low), half, id);
}

static ort_id raise_constant(ort_emit *e, const ort_tensor *t, ort_id id)
{
    ort_tensor made;
    double lowest = lowest_of(t->dtype);
    if (e->status != ORT_OK)
        return ORT_ID_NONE;
    e->status = ort_edit_new_constant(e->graph, e->graph->values.data[id]->name, t->dtype,
                                      &t->shape, &made, &id, e->err);
    for (int64_t i = 0; e->status == ORT_OK && i < ort_tensor_count(t); i++) {
        double number = ort_tensor_get_f64(t, i);
        ort_tensor_set_f64(&made, i, number == lowest ? lowest / 2 : number);
    }
    return id;
}

/* The inputs of this node that hold what becomes the mask: *first up to the returned, or 0. */
static int parts_of(const ort_node *node, int *first)
{
    static const char *const moves[] = {"Unsqueeze", "Reshape", "Expand", "Slice", "Squeeze",
                                        "Transpose"};
    *first = 0;
    if (ort_edit_is(node, ONNX, "Add"))
        return 2;
    if (ort_edit_is(node, ONNX, "Where"))
        return *first = 1, 3;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (ort_edit_is(node, ONNX, moves[i]))
            return 1;
    return 0;
}

static ort_id raise_low(ort_emit *e, ort_id id, int depth);

/* The same node of other parts. A sum of two that may both be low is -infinity where both are. */
static ort_id raise_parts(ort_emit *e, const ort_node *node, int first, int end, ort_id id,
                          int depth)
{
    ort_id inputs[8];
    memcpy(inputs, node->inputs, sizeof *inputs * (size_t)node->input_count);
    if (ort_edit_is(node, ONNX, "Add") && is_low(e->graph, inputs[0]) &&
        is_low(e->graph, inputs[1]))
        return raise_any(e, id);
    for (int i = first; i < end; i++)
        inputs[i] = raise_low(e, inputs[i], depth + 1);
    return ort_emit_op(e, node->op_type, inputs, node->input_count, node->attrs, node->attr_count);
}

static ort_id raise_low(ort_emit *e, ort_id id, int depth)
{
    const ort_tensor *constant = ort_fact_constant(e->graph, id);
    const ort_node *node = ort_edit_producer(e->graph, id);
    int first = 0, end = node ? parts_of(node, &first) : 0;
    if (e->status != ORT_OK || !is_low(e->graph, id))
        return id;
    if (constant)
        return raise_constant(e, constant, id);
    if (end && depth < DEPTH && node->input_count <= 8 && node->opset == e->opset)
        return raise_parts(e, node, first, end, id, depth);
    return raise_any(e, id);
}

ort_id ort_attention_raise_mask(ort_emit *e, ort_id mask)
{
    return mask == ORT_ID_NONE ? mask : raise_low(e, mask, 0);
}
