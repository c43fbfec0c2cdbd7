/* identity.c - nodes that give back their input go: Identity, Dropout outside training, and moves,
 * casts and arithmetic that change nothing, by what inference knows (symbolic dimensions count:
 * Expand to [n, 8] of a float[n, 8] is one).
 */
#include <string.h>

#include "base/error.h"
#include "op/spacer.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/facts/perm.h"
#include "pass/pass.h"

static const ort_type *type_at(const ort_graph *graph, ort_id id)
{
    return id == ORT_ID_NONE ? NULL : ort_fact_type(graph, id);
}

static bool keeps_type(const ort_graph *graph, const ort_node *node, int slot)
{
    const ort_type *in = type_at(graph, ort_edit_input(node, slot));
    return in && ort_facts_same_type(in, ort_fact_type(graph, node->outputs[0]));
}

/* ---- one rule each: input 0 passes through */

static bool always(const ort_graph *graph, const ort_node *node)
{
    return true;
}

/* Dropout passes its input through unless training_mode says otherwise; its mask must be unread. */
static bool idle_dropout(const ort_graph *graph, const ort_node *node)
{
    if (node->output_count > 1 && node->outputs[1] != ORT_ID_NONE) {
        const ort_graph_value *mask = graph->values.data[node->outputs[1]];
        if (mask->use_count > 0 || mask->is_output)
            return false;
    }
    if (node->opset < 7)
        return ort_node_attr_int(node, "is_test") != 0;
    return node->opset < 12 || ort_edit_input(node, 2) == ORT_ID_NONE ||
           ort_fact_is_int(graph, node, 2, 0);
}

static bool idle_cast(const ort_graph *graph, const ort_node *node)
{
    const ort_type *in = type_at(graph, node->inputs[0]);
    return in && in->kind == ORT_TYPE_TENSOR && in->dtype != ORT_DTYPE_UNDEFINED &&
           ort_node_attr_int(node, "to") == (int64_t)in->dtype;
}

/* The same shape, and the elements keep their order whatever the parameters. */
static bool same_shape(const ort_graph *graph, const ort_node *node)
{
    return keeps_type(graph, node, 0);
}

/* A constant target that keeps every dim in its place but one, which follows from the others: a
 * dim that has no name counts as well. */
static bool idle_reshape(const ort_graph *graph, const ort_node *node)
{
    const ort_type *in = ort_fact_tensor(graph, node->inputs[0]);
    int64_t list[ORT_MAX_RANK];
    int open = 0;
    if (keeps_type(graph, node, 0))
        return true;
    if (!in || ort_edit_input(node, 1) == ORT_ID_NONE ||
        ort_fact_ints(graph, node, NULL, 1, list) != in->rank)
        return false;
    for (int i = 0; i < in->rank; i++) {
        if (list[i] == 0 && !ort_node_attr_int(node, "allowzero"))
            continue;
        open += list[i] == -1;
        if (list[i] == 0 || (list[i] != -1 && !ort_dim_is(in->dim[i], list[i])))
            return false;
    }
    return open <= 1;
}

/* Two dimensions are flat already. */
static bool idle_flatten(const ort_graph *graph, const ort_node *node)
{
    return keeps_type(graph, node, 0) ||
           (ort_fact_ranked(graph, node->inputs[0], 2) && ort_fact_along_last(node, 2));
}

/* As many elements on every axis, forwards: all of them. */
static bool idle_slice(const ort_graph *graph, const ort_node *node)
{
    return keeps_type(graph, node, 0) &&
           (ort_edit_input(node, 4) == ORT_ID_NONE ||
            ort_constant_is_all(ort_edit_constant(graph, node, 4), 1));
}

static bool idle_transpose(const ort_graph *graph, const ort_node *node)
{
    ort_perm p;
    return ort_perm_of_node(graph, node, &p) && ort_perm_is_identity(&p);
}

static bool idle_pad(const ort_graph *graph, const ort_node *node)
{
    return node->opset >= 11 ? ort_constant_is_all(ort_edit_constant(graph, node, 1), 0)
                             : ort_node_has(node, "pads") && ort_fact_ints_are(node, "pads", 0);
}

/* Every mode gives the sample itself at a scale of 1, unless a region is cut out. */
static bool idle_resize(const ort_graph *graph, const ort_node *node)
{
    return keeps_type(graph, node, 0) && !ort_node_attr_int(node, "antialias") &&
           !ort_node_attr_is(node, "coordinate_transformation_mode", "tf_crop_and_resize");
}

static bool one_input(const ort_graph *graph, const ort_node *node)
{
    return node->input_count == 1;
}

/* ---- arithmetic with a neutral constant: the other operand passes through */

static const struct {
    const char *op_type;
    double neutral;
    bool either; /* also as the first operand */
} neutrals[] = {
    {"Add", 0, true}, {"Sub", 0, false}, {"Mul", 1, true}, {"Div", 1, false}, {"Pow", 1, false},
};

/* One number is broadcast to whatever the other operand is. */
static bool is_number(const ort_graph *graph, const ort_node *node, int slot)
{
    const ort_tensor *t = ort_edit_constant(graph, node, slot);
    return t && t->shape.rank == 0;
}

/* The slot of the operand that passes through, or -1. */
static int neutral_slot(const ort_graph *graph, const ort_node *node)
{
    for (size_t i = 0; i < sizeof neutrals / sizeof *neutrals; i++) {
        if (!ort_edit_is(node, ONNX, neutrals[i].op_type) || node->opset < 7)
            continue;
        if (ort_constant_is_all(ort_edit_constant(graph, node, 1), neutrals[i].neutral) &&
            (is_number(graph, node, 1) || keeps_type(graph, node, 0)))
            return 0;
        if (neutrals[i].either &&
            (is_number(graph, node, 0) || keeps_type(graph, node, 1)) &&
            ort_constant_is_all(ort_edit_constant(graph, node, 0), neutrals[i].neutral))
            return 1;
    }
    return -1;
}

/* ---- the table */

typedef struct rule {
    const char *op_type;
    bool (*idle)(const ort_graph *graph, const ort_node *node);
    bool by_shape; /* idle if it keeps the shape, and little else */
} rule;

static const rule rules[] = {
    {"Identity", always, false},     {"Dropout", idle_dropout, false},
    {"Cast", idle_cast, false},      {"Transpose", idle_transpose, false},
    {"Pad", idle_pad, false},        {"Reshape", idle_reshape, true},
    {"Expand", same_shape, true},    {"Squeeze", same_shape, true},
    {"Unsqueeze", same_shape, true}, {"Flatten", idle_flatten, true},
    {"Tile", same_shape, true},      {"Slice", idle_slice, true},
    {"Resize", idle_resize, true},   {"Upsample", idle_resize, true},
    {"Concat", one_input, false},    {"Sum", one_input, false},
    {"Max", one_input, false},       {"Min", one_input, false},
    {"Mean", one_input, false},
};

static const rule *rule_of(const ort_node *node)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (ort_edit_is(node, ONNX, rules[i].op_type))
            return &rules[i];
    return NULL;
}

/* The branch that a known condition picks everywhere, when it has the result's shape; or -1. */
static int picked_slot(const ort_graph *graph, const ort_node *node)
{
    const ort_tensor *condition = ort_edit_constant(graph, node, 0);
    int slot = ort_constant_is_all(condition, 1) ? 1 : ort_constant_is_all(condition, 0) ? 2 : -1;
    return slot > 0 && keeps_type(graph, node, slot) ? slot : -1;
}

static int idle_slot(const ort_graph *graph, const ort_node *node)
{
    if (!node->input_count || node->inputs[0] == ORT_ID_NONE || !node->output_count ||
        node->outputs[0] == ORT_ID_NONE)
        return -1;
    const rule *r = rule_of(node);
    if (r)
        return r->idle(graph, node) ? 0 : -1;
    return ort_edit_is(node, ONNX, "Where") ? picked_slot(graph, node)
                                            : neutral_slot(graph, node);
}

/* ---- near-misses */

/* The same element type and rank, and no dim known to differ. */
static bool may_be_same(const ort_type *a, const ort_type *b)
{
    if (!a || !b || a->kind != ORT_TYPE_TENSOR || b->kind != ORT_TYPE_TENSOR ||
        a->dtype != b->dtype || a->rank < 0 || a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (ort_dim_known(a->dim[d]) && ort_dim_known(b->dim[d]) &&
            a->dim[d].size != b->dim[d].size)
            return false;
    return true;
}

/* The one condition for which a node that isn't idle would have to stay; or NULL. */
static const char *missing(const ort_graph *graph, const ort_node *node)
{
    const ort_type *out = node->output_count ? type_at(graph, node->outputs[0]) : NULL;
    if (!out || !node->input_count)
        return NULL;
    const rule *r = rule_of(node);
    if (ort_edit_is(node, ONNX, "Dropout"))
        return "its mask is read, or it may be training";
    if (r && r->by_shape) {
        if (keeps_type(graph, node, 0))
            return ort_edit_is(node, ONNX, "Slice") ? "its steps aren't known to be 1"
                                                    : "it filters, or cuts out a region";
        return may_be_same(type_at(graph, node->inputs[0]), out)
                   ? "a dimension of its result isn't known to be that of its input"
                   : NULL;
    }
    if (ort_edit_is(node, ONNX, "Where"))
        return ort_constant_is_all(ort_edit_constant(graph, node, 0), 1) ||
                       ort_constant_is_all(ort_edit_constant(graph, node, 0), 0)
                   ? "the branch that it takes may be broadcast" : NULL;
    for (size_t i = 0; i < sizeof neutrals / sizeof *neutrals; i++)
        for (int slot = neutrals[i].either ? 0 : 1; slot < 2; slot++)
            if (ort_edit_is(node, ONNX, neutrals[i].op_type) && node->input_count == 2 &&
                ort_constant_is_all(ort_edit_constant(graph, node, slot), neutrals[i].neutral))
                return "its constant may broadcast the other operand";
    return NULL;
}

static void note_missing(const ort_pass_context *c, const ort_node *node)
{
    const char *why = c->near_misses ? missing(c->graph, node) : NULL;
    if (why)
        ort_pass_note(c, node, "%s", why);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        int slot = idle_slot(c->graph, node);
        if (slot >= 0 && c->portable && ort_spacer_is(c->graph, node))
            continue;
        if (slot < 0) {
            note_missing(c, node);
            continue;
        }
        if (ort_edit_bypass(c->graph, node, slot))
            ++*changes;
        else
            ort_pass_note(c, node, "it gives a graph output that no other node can give");
    }
    return ORT_OK;
}

const ort_pass ort_pass_identity = {
    .name = "identity",
    .level = 1,
    .exact = true,
    .doc = "nodes that give back their input go",
    .apply = apply,
};
