/* transpose_rules.c - can an operator compute on data that lies permuted, and which permutations do
 * its inputs and outputs then have? Each kind of transpose_table.c has its own answer.
 * transpose_anew.c makes the node that does it.
 */
#include "pass/transpose/transpose_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "pass/facts/constants.h"
#include "pass/facts/reshape_groups.h"
#include "pass/transpose/transpose_table.h"
#include "tensor/scalar.h"

/* ---- operands */

static bool holds_data(const ort_rule *r, int slot)
{
    return r->data == ORT_RULE_ALL_DATA || (slot < 64 && (r->data >> slot & 1));
}

/* Are all data inputs of the rank, or lie as they are, or constants that can be laid anew? */
static bool operands_fit(const ort_graph *graph, const ort_node *node, const ort_rule *r, int rank)
{
    if (r->data != ORT_RULE_FIRST_DATA && r->data != ORT_RULE_ALL_DATA && node->input_count > 64)
        return false;
    for (int i = 0; i < (r->data == ORT_RULE_FIRST_DATA ? 1 : node->input_count); i++) {
        const ort_type *type = ort_rule_type(graph, node, i);
        if (!ort_slot_permuted(graph, node, i))
            continue;
        if (!type || type->dtype == ORT_DTYPE_STRING || type->rank > rank)
            return false;
        if (type->rank < rank &&
            (!ort_constant_moves(graph, node->inputs[i]) || r->kind != ORT_RULE_ELEMENTWISE))
            return false;
    }
    return true;
}

static bool is_one_number(const ort_type *type)
{
    bool one = type != NULL;
    for (int i = 0; one && i < type->rank; i++)
        one = ort_dim_is(type->dim[i], 1);
    return one;
}

static const ort_type *result_of(const ort_graph *graph, const ort_node *node)
{
    return ort_fact_tensor(graph, node->outputs[0]);
}

bool ort_slot_permuted(const ort_graph *graph, const ort_node *node, int slot)
{
    const ort_rule *r = ort_rule_of(node);
    const ort_tensor *constant = ort_edit_constant(graph, node, slot);
    const ort_type *type = ort_rule_type(graph, node, slot), *out;
    if (!r || ort_edit_input(node, slot) == ORT_ID_NONE || !holds_data(r, slot))
        return false;
    if (r->kind == ORT_RULE_PRODUCT) /* a matrix beside batches of them serves all */
        return !(type && type->rank <= 2);
    if (r->kind != ORT_RULE_ELEMENTWISE)
        return true;
    if ((type && type->rank == 0) || (constant && ort_tensor_count(constant) == 1))
        return false;
    out = result_of(graph, node);
    return !(is_one_number(type) && out && type->rank < out->rank);
}

bool ort_output_permuted(const ort_node *node, int slot)
{
    const ort_rule *r = ort_rule_of(node);
    return r && (slot == 0 || !r->first);
}

/* ---- forms */

typedef struct question {
    const ort_graph *graph;
    const ort_node *node;
    const ort_rule *r;
    const ort_type *in, *out;
    const ort_perm *known;
    bool forward;
    const ort_perm_hints *hints;
} question;

/* Axes of the longer side go: what is known says the other side. */
static bool form_dropped(const question *q, const int64_t *axes, int count, bool in_is_longer,
                         ort_permuted *form)
{
    ort_perm *longer = in_is_longer ? &form->in : &form->out;
    ort_perm *shorter = in_is_longer ? &form->out : &form->in;
    if (q->forward == in_is_longer) {
        *longer = *q->known;
        *shorter = ort_perm_without(longer, axes, count);
        return true;
    }
    *shorter = *q->known;
    for (size_t i = 0; i < q->hints->count; i++) {
        const ort_perm *hint = &q->hints->perms[i];
        ort_perm rest;
        if (hint->rank != shorter->rank + count)
            continue;
        rest = ort_perm_without(hint, axes, count);
        if (ort_perm_equal(&rest, shorter)) {
            *longer = *hint;
            return true;
        }
    }
    *longer = ort_perm_with(shorter, axes, count);
    return true;
}

static bool form_reduced(const question *q, ort_permuted *form)
{
    int64_t axes[ORT_MAX_RANK];
    int count = ort_rule_dropped(q->graph, q->node, q->r, q->in->rank, axes);
    bool keeps = ort_node_attr_int(q->node, "keepdims") == 1;
    if (count < 0)
        return false;
    if (q->r->kind == ORT_RULE_PICK) {
        const ort_type *index = ort_rule_type(q->graph, q->node, 1);
        if (!index || index->rank > 1)
            return false;
        keeps = index->rank == 1;
    } else if (q->r->kind == ORT_RULE_REDUCE &&
               ort_node_attr_int(q->node, "noop_with_empty_axes")) {
        int64_t unused[ORT_MAX_RANK];
        keeps = keeps || ort_fact_axes(q->graph, q->node, 1, q->in->rank, unused) == 0;
    }
    return keeps || form_dropped(q, axes, count, true, form);
}

static bool form_unsqueezed(const question *q, ort_permuted *form)
{
    int64_t axes[ORT_MAX_RANK];
    int count = q->out->rank > q->in->rank
                    ? ort_fact_axes(q->graph, q->node, 1, q->out->rank, axes)
                    : -1;
    return count == q->out->rank - q->in->rank && form_dropped(q, axes, count, false, form);
}

/* The other side of a Reshape: a hint, or one made of the groups. */
static bool form_reshaped(const question *q, ort_permuted *form)
{
    ort_groups groups;
    ort_joined joined;
    int64_t list[ORT_MAX_RANK];
    int order[ORT_MAX_RANK], other[ORT_MAX_RANK];
    ort_perm *mine = q->forward ? &form->in : &form->out, *theirs = q->forward ? &form->out
                                                                               : &form->in;
    if (!ort_groups_of(q->graph->model->dims, q->in, q->out, &groups))
        return false;
    const ort_groups_side *side = q->forward ? &groups.in : &groups.out;
    const ort_groups_side *far = q->forward ? &groups.out : &groups.in;
    *mine = *q->known;
    if (ort_groups_order(side, mine, order)) {
        *theirs = ort_groups_perm(far, order, groups.count);
        for (size_t i = 0; i < q->hints->count; i++)
            if (q->hints->perms[i].rank == far->rank &&
                ort_groups_order(far, &q->hints->perms[i], other) &&
                !memcmp(order, other, (size_t)groups.count * sizeof *order)) {
                *theirs = q->hints->perms[i];
                break;
            }
    } else {
        *theirs = ort_perm_identity(far->rank);
        if (!q->forward || !ort_joins_for_products(q->graph, q->node, mine, &joined))
            return false;
    }
    ort_type in = ort_permuted_type(q->in, &form->in), out = ort_permuted_type(q->out, &form->out);
    return ort_reshape_says(&in, &out, list);
}

/* A turned weight is a copy of it, in front of what it multiplied: a few Transposes of activations
 * aren't worth one of many megabytes, nor that kernels, which pack weights that stand behind, would
 * multiply it otherwise. */
static bool weight_turns(const ort_graph *graph, ort_id id)
{
    enum { MOST_BYTES = 1 << 20 };
    const ort_tensor *t = graph->values.data[id]->fact.value;
    return ort_constant_moves(graph, id) && (!t || ort_tensor_bytes(t) <= MOST_BYTES);
}

/* Of two dimensions a Gemm takes the Transposes in. */
static bool product_fits(const question *q)
{
    const ort_perm *p = q->known;
    int r = p->rank;
    const ort_type *a = ort_rule_type(q->graph, q->node, 0);
    const ort_type *b = ort_rule_type(q->graph, q->node, 1);
    if (r < 3 || !a || !b || q->out->rank != r)
        return false;
    bool turned = p->to[r - 1] == r - 2 && p->to[r - 2] == r - 1;
    if (a->rank == r && b->rank == r)
        return turned || (p->to[r - 1] == r - 1 && p->to[r - 2] == r - 2);
    if (a->rank == r && b->rank == 2)
        return p->to[r - 1] == r - 1 ||
               (p->to[r - 1] == r - 2 && weight_turns(q->graph, q->node->inputs[1]));
    if (a->rank == 2 && b->rank == r)
        return p->to[r - 2] == r - 2 ||
               (p->to[r - 2] == r - 1 && weight_turns(q->graph, q->node->inputs[0]));
    return false;
}

int ort_rule_resize_slot(const ort_graph *graph, const ort_node *node)
{
    if (node->opset < 11 || !strcmp(node->op_type, "Upsample"))
        return 1;
    const ort_tensor *scales = ort_rule_list(graph, node, 2);
    return scales && ort_tensor_count(scales) > 0 ? 2 : 3;
}

/* Kernels resize the last two dimensions, and others in the nearest mode alone. */
static bool resize_fits(const question *q)
{
    const ort_node *node = q->node;
    int slot = ort_rule_resize_slot(q->graph, node), rank = q->in->rank;
    const ort_tensor *list = ort_rule_list(q->graph, node, slot);
    const ort_tensor *roi = slot == 1 || ort_edit_input(node, 1) == ORT_ID_NONE
                                ? NULL
                                : ort_edit_constant(q->graph, node, 1);
    int64_t axes[ORT_MAX_RANK];
    int count = ort_fact_axes(q->graph, node, 0, rank, axes);
    bool nearest = ort_node_attr_is(node, "mode", "nearest");
    if (count < 0 || !list || ort_tensor_count(list) != (count ? count : rank) ||
        (slot > 1 && ort_edit_input(node, 1) != ORT_ID_NONE && (!roi || ort_tensor_count(roi))))
        return false;
    for (int i = 0; i < (count ? count : rank) && !nearest; i++) {
        int axis = count ? (int)axes[i] : i;
        bool stays = slot < 3 ? ort_tensor_get_f64(list, i) == 1
                              : ort_dim_is(q->in->dim[axis], ort_tensor_get_i64(list, i));
        if (!stays && q->known->to[axis] < rank - 2)
            return false;
    }
    return true;
}

static bool slice_fits(const question *q)
{
    int64_t axes[ORT_MAX_RANK];
    size_t count = 0;
    if (q->node->opset < 10)
        return ort_fact_axes(q->graph, q->node, 0, q->in->rank, axes) >= 0 &&
               ort_node_ints(q->node, "starts", &count) && (int)count <= q->in->rank;
    const ort_type *starts = ort_rule_type(q->graph, q->node, 1);
    return ort_fact_axes(q->graph, q->node, 3, q->in->rank, axes) >= 0 && starts &&
           starts->rank == 1 && ort_dim_known(starts->dim[0]) &&
           starts->dim[0].size <= q->in->rank;
}

/* A list of so many numbers in input `slot`; one that is computed is reordered by a Gather. */
static bool list_fits(const question *q, int slot, int most, bool exactly, ort_permuted *form)
{
    const ort_type *type = ort_rule_type(q->graph, q->node, slot);
    bool constant = ort_rule_list(q->graph, q->node, slot) != NULL;
    if (!type || type->rank != 1 || !ort_dim_known(type->dim[0]))
        return false;
    form->extra = !constant;
    return type->dim[0].size == most || (!exactly && constant && type->dim[0].size < most);
}

static bool pad_fits(const question *q, ort_permuted *form)
{
    int64_t axes[ORT_MAX_RANK];
    size_t count = 0;
    if (q->node->opset < 11)
        return ort_node_ints(q->node, "pads", &count) && (int)count == 2 * q->in->rank;
    if (ort_edit_input(q->node, 3) != ORT_ID_NONE)
        return ort_fact_axes(q->graph, q->node, 3, q->in->rank, axes) >= 0;
    return list_fits(q, 1, 2 * q->in->rank, true, form);
}

static bool form_expanded(const question *q, ort_permuted *form)
{
    int64_t front[ORT_MAX_RANK];
    int lead = q->out->rank - q->in->rank;
    if (lead < 0 || !list_fits(q, 1, q->out->rank, false, form))
        return false;
    for (int i = 0; i < lead; i++) {
        front[i] = i;
        if (!q->forward && q->known->to[i] != i)
            return false;
    }
    form->in = q->forward ? *q->known : ort_perm_without(q->known, front, lead);
    form->out = q->forward ? ort_perm_with(q->known, front, lead) : *q->known;
    return true;
}

static bool scales_fit(const question *q)
{
    const ort_type *scale = ort_rule_type(q->graph, q->node, 1);
    if (!scale || ort_node_attr_int(q->node, "block_size"))
        return false;
    return scale->rank == 0 ||
           (scale->rank == 1 && ort_rule_axis(q->r, q->node, q->in->rank) >= 0);
}

/* Are the axes from `first` to before `end` the same ones, in their order if `ordered`? */
static bool keeps_axes(const ort_perm *p, int first, int end, bool ordered)
{
    for (int i = first; i < end; i++)
        if (ordered ? p->to[i] != i : p->to[i] < first || p->to[i] >= end)
            return false;
    return true;
}

/* Before opset 13 all axes from `axis` on are one; of equal maxima the first then counts. */
static bool normalize_fits(const question *q)
{
    int axis = ort_rule_axis(q->r, q->node, q->in->rank);
    return axis >= 0 &&
           (q->node->opset >= 13 ||
            keeps_axes(q->known, axis, q->in->rank, !strcmp(q->node->op_type, "Hardmax")));
}

static bool axis_in_fits(const question *q)
{
    int64_t axis;
    return ort_tensor_one_i64(ort_edit_constant(q->graph, q->node, 1), &axis) &&
           ort_axis_in(axis, q->in->rank) >= 0;
}

static bool shape_fits(const question *q, ort_permuted *form)
{
    form->out = ort_perm_identity(1);
    form->extra = 1;
    return q->forward && !ort_node_has(q->node, "start") && !ort_node_has(q->node, "end");
}

static bool means_fit(const question *q)
{
    int64_t axes[ORT_MAX_RANK];
    int count = ort_fact_axes(q->graph, q->node, 0, q->in->rank, axes);
    return count > 0 || (count == 0 && q->in->rank == 4);
}

/* Where both sides have the same axes, form->in and out are `known` by now. */
static bool form_of(const question *q, ort_permuted *form)
{
    int64_t axes[ORT_MAX_RANK];
    int axis, count, rank = q->in ? q->in->rank : 0;
    switch (q->r->kind) {
    case ORT_RULE_ELEMENTWISE: return true;
    case ORT_RULE_AXIS: return ort_rule_axis(q->r, q->node, rank) >= 0;
    case ORT_RULE_NORMALIZE: return normalize_fits(q);
    case ORT_RULE_SCALES: return scales_fit(q);
    case ORT_RULE_AXIS_IN: return axis_in_fits(q);
    case ORT_RULE_REMOVE:
    case ORT_RULE_PICK:
    case ORT_RULE_REDUCE: return form_reduced(q, form);
    case ORT_RULE_MEANS: return means_fit(q);
    case ORT_RULE_FRONT: return rank >= 2 && keeps_axes(q->known, 0, 2, true);
    case ORT_RULE_TAIL:
        axis = ort_rule_axis(q->r, q->node, rank);
        return axis >= 0 && keeps_axes(q->known, axis, rank, true);
    case ORT_RULE_SQUEEZE:
        count = ort_rule_dropped(q->graph, q->node, q->r, rank, axes);
        return count > 0 && form_dropped(q, axes, count, true, form);
    case ORT_RULE_UNSQUEEZE: return form_unsqueezed(q, form);
    case ORT_RULE_RESHAPE: return form_reshaped(q, form);
    case ORT_RULE_SHAPE: return shape_fits(q, form);
    case ORT_RULE_EXPAND: return form_expanded(q, form);
    case ORT_RULE_SLICE: return slice_fits(q);
    case ORT_RULE_PAD: return pad_fits(q, form);
    case ORT_RULE_TILE: return list_fits(q, 1, rank, true, form);
    case ORT_RULE_RESIZE: return resize_fits(q);
    case ORT_RULE_PRODUCT: return product_fits(q);
    }
    return false;
}

bool ort_node_permuted(const ort_graph *graph, const ort_node *node, const ort_perm *known,
                       bool forward, const ort_perm_hints *hints, ort_permuted *form)
{
    static const ort_perm_hints none = {NULL, 0};
    const ort_rule *r = ort_rule_of(node);
    if (!r)
        return false;
    question q = {.graph = graph, .node = node, .r = r, .out = result_of(graph, node),
                  .in = ort_rule_type(graph, node, ort_rule_slot(r)), .known = known,
                  .forward = forward, .hints = hints ? hints : &none};
    bool broadcasts = r->kind == ORT_RULE_ELEMENTWISE || r->kind == ORT_RULE_PRODUCT;
    if (!q.out || (!q.in && !broadcasts) ||
        (forward && !broadcasts ? q.in->rank : q.out->rank) != known->rank)
        return false;
    *form = (ort_permuted){.in = *known, .out = *known};
    return form_of(&q, form) && form->out.rank == q.out->rank &&
           operands_fit(graph, node, r, form->in.rank);
}
