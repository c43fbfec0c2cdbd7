/* gradient_tape.c - reverse mode: what depends on xs is recorded on the way forward, and rules add
 * to the gradients of inputs on the way back. A gradient has the shape and element type of its
 * value; the sum of a value's contributions is complete when its producer's turn comes.
 */
#include "gradient/gradient.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* ---- gradients of values */

static bool is_active(const ort_emit *g, ort_id value)
{
    return value != ORT_ID_NONE && value < g->tape->active.count && g->tape->active.data[value];
}

void ort_grad_set_variable(ort_emit *g, ort_id value)
{
    while (g->status == ORT_OK && g->tape->active.count <= value)
        if (!ort_vec_push(&g->tape->active, 0))
            ort_emit_fail_memory(g);
    if (g->status == ORT_OK)
        g->tape->active.data[value] = 1;
}

ort_id ort_grad_sum(const ort_emit *g, ort_id value)
{
    const ort_tape *tape = g->tape;
    return value != ORT_ID_NONE && value < tape->sums.count ? tape->sums.data[value] : ORT_ID_NONE;
}

static void set_sum(ort_emit *g, ort_id value, ort_id sum)
{
    while (g->status == ORT_OK && g->tape->sums.count <= value)
        if (!ort_vec_push(&g->tape->sums, ORT_ID_NONE))
            ort_emit_fail_memory(g);
    if (g->status == ORT_OK)
        g->tape->sums.data[value] = sum;
}

bool ort_grad_wants(const ort_emit *g, const ort_node *node, int slot)
{
    return g->status == ORT_OK && slot < node->input_count && is_active(g, node->inputs[slot]);
}

ort_id ort_grad_of(const ort_emit *g, const ort_node *node, int slot)
{
    return slot < node->output_count ? ort_grad_sum(g, node->outputs[slot]) : ORT_ID_NONE;
}

void ort_grad_add(ort_emit *g, const ort_node *node, int slot, ort_id value)
{
    if (!ort_grad_wants(g, node, slot))
        return;
    ort_id before = ort_grad_sum(g, node->inputs[slot]);
    ort_id sum = before == ORT_ID_NONE ? value : ort_emit_op2(g, "Add", before, value);
    set_sum(g, node->inputs[slot], sum);
}

/* Other inputs that are scalars, or the input itself, never widen it. */
static bool may_widen(const ort_emit *g, const ort_node *node, int slot)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ORT_ID_NONE && node->inputs[i] != node->inputs[slot] &&
            ort_emit_type(g, node->inputs[i])->rank != 0)
            return true;
    return false;
}

void ort_grad_add_summed(ort_emit *g, const ort_node *node, int slot, ort_id value)
{
    if (!ort_grad_wants(g, node, slot))
        return;
    if (may_widen(g, node, slot))
        value = ort_emit_sum_to(g, value, node->inputs[slot]);
    ort_grad_add(g, node, slot, value);
}

/* ---- forward */

ort_grad_passage ort_grad_passage_of(const ort_type *type)
{
    switch (type->kind == ORT_TYPE_TENSOR ? type->dtype : ORT_DTYPE_UNDEFINED) {
    case ORT_DTYPE_FLOAT:
    case ORT_DTYPE_DOUBLE:
    case ORT_DTYPE_FLOAT16:
    case ORT_DTYPE_BFLOAT16:
        return ORT_GRAD_PASSES;
    case ORT_DTYPE_INT8: case ORT_DTYPE_INT16: case ORT_DTYPE_INT32: case ORT_DTYPE_INT64:
    case ORT_DTYPE_UINT8: case ORT_DTYPE_UINT16: case ORT_DTYPE_UINT32: case ORT_DTYPE_UINT64:
    case ORT_DTYPE_INT4: case ORT_DTYPE_UINT4: case ORT_DTYPE_INT2: case ORT_DTYPE_UINT2:
    case ORT_DTYPE_BOOL: case ORT_DTYPE_STRING:
        return ORT_GRAD_ENDS;
    default:
        return ORT_GRAD_UNCLEAR;
    }
}

static bool reads_active(const ort_emit *g, const ort_node *node)
{
    bool active = false;
    for (int i = 0; i < node->input_count; i++)
        active = active || is_active(g, node->inputs[i]);
    for (int i = 0; i < node->implicit_count; i++)
        active = active || is_active(g, node->implicit[i]);
    return active;
}

static bool gives_gradient(const ort_emit *g, const ort_node *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE &&
            ort_grad_passage_of(ort_emit_type(g, node->outputs[i])) != ORT_GRAD_ENDS)
            return true;
    return false;
}

static void refuse_operator(ort_emit *g, const ort_node *node)
{
    g->at = node;
    ort_emit_refuse(g, "no rule is known for operator %s%s%s (ort(3), DIFFERENTIATION, lists "
                    "those that have one)", node->domain, *node->domain ? "." : "",
                    node->op_type);
}

/* The operator as others; replaced[i] stands for output i from here on. */
static void record_as_others(ort_emit *g, ort_node *node, const ort_grad_rule *rule,
                             ort_id *replaced)
{
    size_t first = g->graph->nodes.count;
    for (int i = 0; i < node->output_count; i++)
        replaced[i] = ORT_ID_NONE;
    g->at = node;
    if (rule->expand)
        rule->expand(g, node, replaced);
    else
        replaced[0] = ort_grad_same(g, node, rule->same);
    for (size_t i = first, last = g->graph->nodes.count; i < last && g->status == ORT_OK; i++)
        ort_grad_record(g, g->graph->nodes.data[i], NULL);
}

void ort_grad_record(ort_emit *g, ort_node *node, ort_id *replaced)
{
    if (g->status != ORT_OK || !reads_active(g, node) || !gives_gradient(g, node))
        return;
    const ort_grad_rule *rule = ort_grad_find_rule(node);
    if (!rule) {
        refuse_operator(g, node);
        return;
    }
    if (rule->zero)
        return;
    g->at = node;
    if (node->opset < ORT_GRAD_MIN_OPSET) /* of a function with imports of its own */
        ort_emit_refuse(g, "it is of opset %d, rules start at %d", node->opset,
                        ORT_GRAD_MIN_OPSET);
    if (rule->expand || rule->same) {
        assert(replaced);
        record_as_others(g, node, rule, replaced);
        return;
    }
    for (int i = 0; i < node->output_count; i++) {
        ort_id id = node->outputs[i];
        if (id == ORT_ID_NONE || ort_grad_passage_of(ort_emit_type(g, id)) == ORT_GRAD_ENDS)
            continue;
        if (ort_grad_passage_of(ort_emit_type(g, id)) == ORT_GRAD_UNCLEAR)
            ort_emit_refuse(g, "the element type of '%s' carries no gradient",
                            g->graph->values.data[id]->name);
        ort_grad_set_variable(g, id);
    }
    if (g->status == ORT_OK && !ort_vec_push(&g->tape->nodes, node))
        ort_emit_fail_memory(g);
}

/* ---- backward */

ort_id ort_grad_text(ort_emit *g, const ort_node *node, const char *text)
{
    return ort_emit_formula(g, text, "g y a b c", ort_grad_of(g, node, 0), node->outputs[0],
                            node->inputs[0], ort_edit_input(node, 1), ort_edit_input(node, 2));
}

static void apply_rule(ort_emit *g, const ort_node *node)
{
    const ort_grad_rule *rule = ort_grad_find_rule(node);
    bool reached = false;
    for (int i = 0; i < node->output_count; i++)
        reached = reached || ort_grad_of(g, node, i) != ORT_ID_NONE;
    if (!reached)
        return;
    g->at = node;
    if (rule->back) {
        rule->back(g, node);
        return;
    }
    for (int i = 0; i < 3; i++)
        if (rule->slope[i] && ort_grad_wants(g, node, i))
            ort_grad_add_summed(g, node, i, ort_grad_text(g, node, rule->slope[i]));
    if (rule->whole && ort_grad_wants(g, node, 0))
        ort_grad_add(g, node, 0, ort_grad_text(g, node, rule->whole));
}

void ort_grad_run_back(ort_emit *g, ort_id y)
{
    if (!is_active(g, y))
        return;
    set_sum(g, y, ort_emit_expand(g, ort_emit_number(g, y, 1), y));
    for (size_t i = g->tape->nodes.count; i-- > 0 && g->status == ORT_OK;)
        apply_rule(g, g->tape->nodes.data[i]);
}
