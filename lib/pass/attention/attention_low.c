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

#include "base/error.h"
#include "op/edit.h"
#include "pass/attention/attention_match.h"
#include "pass/facts/constants.h"

enum { DEPTH = 24, LOOKS = 256 };

static double lowest_of(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT16    ? -65504.0
           : dtype == ORT_DTYPE_BFLOAT16 ? -0x1.fep127
           : dtype == ORT_DTYPE_FLOAT    ? -(double)FLT_MAX
                                         : -DBL_MAX;
}

/* What stands for the number `low` of a mask. */
static double raised(ort_dtype dtype, double low)
{
    return low == lowest_of(dtype) ? low / 2 : low;
}

static const ort_type *type_of(const ort_graph *graph, ort_id id)
{
    return &graph->values.data[id]->fact.type;
}

static const ort_tensor *constant_of(const ort_graph *graph, ort_id id)
{
    const ort_graph_value *value = graph->values.data[id];
    return value->fact.value && !value->is_input && value->fact.value->data ? value->fact.value
                                                                            : NULL;
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
    const ort_type *type = type_of(graph, id);
    return type->kind == ORT_TYPE_TENSOR && (type->dtype == ORT_DTYPE_UNDEFINED ||
           ort_dtype_get(type->dtype)->class_ == ORT_CLASS_FLOAT);
}

/* Could an element be the lowest number? *looks: how many nodes may still be looked at. */
static bool may_be_low(const ort_graph *graph, ort_id id, int depth, int *looks)
{
    static const char *const sums[] = {"MatMul", "Gemm", "Conv", "LayerNormalization", "Softmax"};
    const ort_tensor *constant = constant_of(graph, id);
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

bool ort_attention_masks_low(const ort_graph *graph, const ort_attention *a)
{
    for (int i = 0; i < a->mask_count; i++)
        if (is_low(graph, a->masks[i]))
            return true;
    return false;
}

/* ---- writing */

static ort_status raise_any(ort_pass_context *c, ort_id *id, ort_error *err)
{
    ort_dtype dtype = type_of(c->graph, *id)->dtype;
    ort_id equal[2] = {*id}, where[3] = {ORT_ID_NONE, ORT_ID_NONE, *id};
    ORT_TRY(ort_constant_filled(c->graph, dtype, 0, NULL, lowest_of(dtype), &equal[1], err));
    ORT_TRY(ort_constant_filled(c->graph, dtype, 0, NULL, lowest_of(dtype) / 2, &where[1], err));
    ORT_TRY(ort_edit_add_result(c->graph, "Equal", equal, 2, NULL, 0, &where[0], err));
    return ort_edit_add_result(c->graph, "Where", where, 3, NULL, 0, id, err);
}

static ort_status raise_constant(ort_pass_context *c, const ort_tensor *t, ort_id *id,
                                 ort_error *err)
{
    ort_tensor made;
    ORT_TRY(ort_edit_new_constant(c->graph, c->graph->values.data[*id]->name, t->dtype, &t->shape,
                                  &made, id, err));
    for (int64_t i = 0; i < ort_tensor_count(t); i++)
        ort_tensor_set_f64(&made, i, raised(t->dtype, ort_tensor_get_f64(t, i)));
    return ORT_OK;
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

static ort_status raise_low(ort_pass_context *c, ort_id *id, int depth, ort_error *err);

/* The same node of other parts. A sum of two that may both be low is -infinity where both are. */
static ort_status raise_parts(ort_pass_context *c, const ort_node *node, int first, int end,
                              ort_id *id, int depth, ort_error *err)
{
    ort_id inputs[8];
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i];
    if (ort_edit_is(node, ONNX, "Add") && is_low(c->graph, inputs[0]) &&
        is_low(c->graph, inputs[1]))
        return raise_any(c, id, err);
    for (int i = first; i < end; i++)
        ORT_TRY(raise_low(c, &inputs[i], depth + 1, err));
    return ort_edit_add_result(c->graph, node->op_type, inputs, node->input_count, node->attrs,
                               node->attr_count, id, err);
}

static ort_status raise_low(ort_pass_context *c, ort_id *id, int depth, ort_error *err)
{
    const ort_tensor *constant = constant_of(c->graph, *id);
    const ort_node *node = ort_edit_producer(c->graph, *id);
    int first = 0, end = node ? parts_of(node, &first) : 0;
    if (!is_low(c->graph, *id))
        return ORT_OK;
    if (constant)
        return raise_constant(c, constant, id, err);
    if (end && depth < DEPTH && node->input_count <= 8 &&
        node->opset == (int)ort_model_opset(c->graph->model, ONNX))
        return raise_parts(c, node, first, end, id, depth, err);
    return raise_any(c, id, err);
}

ort_status ort_attention_raise_mask(ort_pass_context *c, ort_id *mask, ort_error *err)
{
    return *mask == ORT_ID_NONE ? ORT_OK : raise_low(c, mask, 0, err);
}
