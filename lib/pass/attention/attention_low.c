/* attention_low.c - numbers that a mask may hold: whether one is infinite, and the lowest number of
 * its type, for Attention of opset 23 in a file.
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

/* What is looked for among the elements of a mask. */
typedef struct search {
    const ort_graph *graph;
    bool infinite; /* an infinity or NaN, which may come of any arithmetic; else the lowest number,
                      which stands in constants */
    int looks;     /* how many nodes may still be looked at */
} search;

static bool holds(const search *s, const ort_tensor *t)
{
    double lowest = lowest_of(t->dtype);
    for (int64_t i = 0; i < ort_tensor_count(t); i++) {
        double number = ort_tensor_get_f64(t, i);
        if (s->infinite ? !isfinite(number) : number == lowest)
            return true;
    }
    return false;
}

static bool is_float(const ort_graph *graph, ort_id id)
{
    const ort_type *type = ort_fact_type(graph, id);
    return type->kind == ORT_TYPE_TENSOR && (type->dtype == ORT_DTYPE_UNDEFINED ||
           ort_dtype_get(type->dtype)->class_ == ORT_CLASS_FLOAT);
}

/* Do its elements come out of this node as they went in? */
static bool chooses(const ort_node *node)
{
    return ort_node_has_trait(node, ORT_TRAITS_MOVE | ORT_TRAIT_JOINS) ||
           ort_edit_is(node, ONNX, "Where");
}

/* Could an element be such a number? */
static bool may_hold(search *s, ort_id id, int depth)
{
    const ort_tensor *constant = ort_fact_constant(s->graph, id);
    const ort_node *node = ort_edit_producer(s->graph, id);
    if (!is_float(s->graph, id))
        return false;
    if (constant)
        return holds(s, constant);
    if (!node || depth > DEPTH || --s->looks < 0 || node->body_count > 0)
        return true;
    if (ort_edit_is(node, ONNX, "ConstantOfShape")) {
        const ort_attr *value = ort_node_attr(node, "value");
        return value && value->type == ORT_ATTR_TENSOR && holds(s, value->t);
    }
    if (s->infinite && !chooses(node))
        return true;
    if (ort_edit_is_any(node, "MatMul|Gemm|Conv|LayerNormalization|Softmax"))
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ORT_ID_NONE && may_hold(s, node->inputs[i], depth + 1))
            return true;
    return false;
}

static bool is_low(const ort_graph *graph, ort_id id)
{
    return may_hold(&(search){graph, false, LOOKS}, id, 0);
}

static bool is_finite(const ort_graph *graph, ort_id id)
{
    return !may_hold(&(search){graph, true, LOOKS}, id, 0);
}

bool ort_attention_masks_low(const ort_graph *graph, const ort_attention_terms *t)
{
    for (int i = 0; i < t->mask_count; i++)
        if (is_low(graph, t->masks[i]))
            return true;
    return false;
}

bool ort_attention_masks_finitely(const ort_graph *graph, const ort_attention_terms *t)
{
    bool keys = t->keys.id != ORT_ID_NONE, keeps = t->keep != ORT_ID_NONE;
    bool windows = t->window != ORT_ID_NONE;
    return t->mask_count + keys + windows + keeps <= 1 && /* a sum of two may overflow */
           (!keys || isfinite(t->keys.low)) &&
           (!t->mask_count || is_finite(graph, t->masks[0])) &&
           (!windows || is_finite(graph, t->window)) && (!keeps || is_finite(graph, t->fill));
}

/* ---- writing */

static ort_id raise_any(ort_emit *e, ort_id id)
{
    double lowest = lowest_of(ort_emit_type(e, id)->dtype);
    return ort_emit_formula(e, "(Where (Equal m $low) $half m)", "m $low $half", id, lowest,
                            lowest / 2);
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
    bool where = ort_edit_is(node, ONNX, "Where");
    *first = where;
    if (where || ort_edit_is(node, ONNX, "Add"))
        return where ? 3 : 2;
    return ort_node_has_trait(node, ORT_TRAITS_MOVE) && node->output_count == 1 &&
           !strcmp(node->op->domain, ONNX);
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
