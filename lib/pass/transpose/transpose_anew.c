/* transpose_anew.c - a node as it reads when its data lies permuted (transpose_rules.h): axes are
 * renamed, lists by dimension reordered, a Reshape gets its shape anew. */
#include <stdlib.h>

#include "base/error.h"
#include "pass/facts/constants.h"
#include "pass/facts/reshape_groups.h"
#include "pass/transpose/transpose_table.h"
#include "tensor/scalar.h"

typedef struct builder {
    ort_pass_context *c;
    const ort_node *node;
    const ort_permuted *form;
    const ort_rule *r;
    ort_node_spec spec;
    ort_id row;     /* of spec.outputs where rows of weights changed places */
    ort_id *inputs; /* of spec, which has room for 8 at least */
    ort_attr set;
    int64_t list[2 * ORT_MAX_RANK]; /* of set */
} builder;

/* ---- attributes and lists */

static ort_status put_list(builder *b, int slot, const int64_t *list, int count, ort_error *err)
{
    int32_t narrow[2 * ORT_MAX_RANK];
    const ort_graph_value *old = ort_graph_value_at(b->c->graph, ort_edit_input(b->node, slot));
    bool is_narrow = old && old->fact.type.dtype == ORT_DTYPE_INT32;
    for (int i = 0; i < count; i++)
        narrow[i] = (int32_t)list[i];
    ort_tensor t = {.dtype = is_narrow ? ORT_DTYPE_INT32 : ORT_DTYPE_INT64,
                    .shape = {.rank = 1, .dim = {count}},
                    .data = is_narrow ? (void *)narrow : (void *)(uintptr_t)list};
    if (old && old->fact.type.rank == 0)
        t.shape.rank = 0;
    if (b->spec.input_count <= slot)
        b->spec.input_count = slot + 1;
    return ort_edit_add_constant(b->c->graph, old ? old->name : "axes", &t, &b->inputs[slot], err);
}

static void put_attr(builder *b, ort_attr attr)
{
    b->set = attr;
    b->spec.set = &b->set;
    b->spec.set_count = 1;
}

static void put_axis(builder *b, const ort_perm *p)
{
    put_attr(b, ort_attr_int("axis", p->to[ort_rule_axis(b->r, b->node, p->rank)]));
}

static void put_ints(builder *b, const char *name, const int64_t *list, int count)
{
    memcpy(b->list, list, (size_t)count * sizeof *list);
    put_attr(b, ort_attr_ints(name, b->list, count));
}

/* Axes of the side that p permutes where the node has them: as an attribute or as input `slot`. */
static ort_status map_axes(builder *b, int slot, const ort_perm *p, ort_error *err)
{
    int64_t axes[ORT_MAX_RANK];
    int count = ort_fact_axes(b->c->graph, b->node, slot, p->rank, axes);
    for (int i = 0; i < count; i++)
        axes[i] = p->to[axes[i]];
    if (count > 0 && slot > 0 && ort_edit_input(b->node, slot) != ORT_ID_NONE)
        return put_list(b, slot, axes, count, err);
    if (count > 0)
        put_ints(b, "axes", axes, count);
    return ORT_OK;
}

/* A computed list by dimension, through a Gather. */
static ort_status gather(builder *b, ort_id from, const int64_t *order, int count, ort_id to,
                         ort_error *err)
{
    ort_graph *graph = b->c->graph;
    ort_id inputs[2] = {from};
    ORT_TRY(ort_constant_list(graph, order, count, &inputs[1], err));
    ort_node_spec spec = {.domain = ONNX, .op_type = "Gather",
                          .name = graph->values.data[to]->name, .inputs = inputs,
                          .input_count = 2, .outputs = &to, .output_count = 1,
                          .origin = ort_edit_origin_of(b->node)};
    return ort_edit_add_node(graph, &spec, NULL, err);
}

static ort_status add_value(builder *b, ort_id like, ort_id *id, ort_error *err)
{
    *id = ort_graph_add_value(b->c->graph, b->c->graph->values.data[like]->name);
    return *id != ORT_ID_NONE ? ORT_OK : ort_error_memory(err, sizeof *id);
}

static ort_status reorder_floats(builder *b, int slot, const ort_tensor *t, ort_error *err)
{
    float numbers[ORT_MAX_RANK];
    for (int i = 0; i < b->form->in.rank; i++)
        numbers[b->form->in.to[i]] = (float)ort_tensor_get_f64(t, i);
    ort_tensor made = {.dtype = t->dtype, .shape = t->shape, .data = numbers};
    return ort_edit_add_constant(b->c->graph, "scales", &made, &b->inputs[slot], err);
}

/* Parts of a list by dimension change places as p says; a shorter one lacks leading ones. */
static ort_status reorder(builder *b, int slot, int parts, const ort_perm *p, ort_error *err)
{
    const ort_tensor *t = ort_rule_list(b->c->graph, b->node, slot);
    int64_t list[2 * ORT_MAX_RANK];
    int count = parts * p->rank, skip = t ? count - (int)ort_tensor_count(t) : 0;
    if (t && t->dtype == ORT_DTYPE_FLOAT)
        return reorder_floats(b, slot, t, err);
    for (int part = 0; part < parts; part++)
        for (int i = 0; i < p->rank; i++) {
            int at = part * p->rank + i;
            list[part * p->rank + p->to[i]] = !t          ? at
                                              : at < skip ? 1
                                                          : ort_tensor_get_i64(t, at - skip);
        }
    if (t)
        return put_list(b, slot, list, count, err);
    ORT_TRY(add_value(b, b->node->inputs[slot], &b->inputs[slot], err));
    return gather(b, b->node->inputs[slot], list, count, b->inputs[slot], err);
}

/* ---- operators */

/* Without axes a Slice means the first ones. */
static ort_status slice_anew(builder *b, ort_error *err)
{
    const ort_perm *p = &b->form->in;
    int64_t axes[ORT_MAX_RANK], given[ORT_MAX_RANK];
    size_t count = 0;
    bool attributes = b->node->opset < 10;
    if (ort_fact_axes(b->c->graph, b->node, attributes ? 0 : 3, p->rank, given) > 0)
        return map_axes(b, attributes ? 0 : 3, p, err);
    if (attributes)
        (void)ort_node_ints(b->node, "starts", &count);
    else
        count = (size_t)ort_rule_type(b->c->graph, b->node, 1)->dim[0].size;
    for (size_t i = 0; i < count; i++)
        axes[i] = p->to[i];
    if (!attributes)
        return put_list(b, 3, axes, (int)count, err);
    put_ints(b, "axes", axes, (int)count);
    return ORT_OK;
}

static ort_status pad_anew(builder *b, ort_error *err)
{
    const ort_perm *p = &b->form->in;
    int64_t list[2 * ORT_MAX_RANK];
    size_t count;
    if (b->node->opset >= 11)
        return ort_edit_input(b->node, 3) == ORT_ID_NONE ? reorder(b, 1, 2, p, err)
                                                         : map_axes(b, 3, p, err);
    const int64_t *pads = ort_node_ints(b->node, "pads", &count);
    for (int i = 0; i < p->rank; i++) {
        list[p->to[i]] = pads[i];
        list[p->rank + p->to[i]] = pads[p->rank + i];
    }
    put_ints(b, "pads", list, 2 * p->rank);
    return ORT_OK;
}

static ort_status resize_anew(builder *b, ort_error *err)
{
    const ort_perm *p = &b->form->in;
    int64_t axes[ORT_MAX_RANK];
    if (ort_fact_axes(b->c->graph, b->node, 0, p->rank, axes) > 0)
        return map_axes(b, 0, p, err);
    return reorder(b, ort_rule_resize_slot(b->c->graph, b->node), 1, p, err);
}

static ort_status reshape_anew(builder *b, ort_error *err)
{
    ort_graph *graph = b->c->graph;
    const ort_type *in = ort_rule_type(graph, b->node, 0);
    const ort_type *out = ort_fact_type(graph, b->node->outputs[0]);
    ort_type from = ort_permuted_type(in, &b->form->in);
    ort_type to = ort_permuted_type(out, &b->form->out);
    int64_t list[ORT_MAX_RANK];
    int order[ORT_MAX_RANK];
    ort_groups groups;
    ort_joined joined;
    if (ort_groups_of(graph->model->dims, in, out, &groups) &&
        !ort_groups_order(&groups.in, &b->form->in, order) &&
        ort_joins_for_products(graph, b->node, &b->form->in, &joined)) {
        ORT_TRY(ort_join_weights(graph, b->node, &joined, &b->row, err));
        b->spec.outputs = &b->row;
    }
    (void)ort_reshape_says(&from, &to, list);
    b->spec.op_type = "Reshape";
    b->spec.attr_count = 0;
    b->spec.opset = 0;
    b->spec.input_count = 2;
    return ort_constant_list(graph, list, to.rank, &b->inputs[1], err);
}

/* Shape of what lies permuted; a Gather takes the place of the node. */
static ort_status shape_anew(builder *b, ort_error *err)
{
    int64_t order[ORT_MAX_RANK];
    ort_node_spec spec = b->spec;
    ort_id id;
    ORT_TRY(add_value(b, b->node->outputs[0], &id, err));
    spec.outputs = &id;
    spec.name = b->c->graph->values.data[id]->name; /* that of the node is the Gather's */
    ORT_TRY(ort_edit_add_node(b->c->graph, &spec, NULL, err));
    for (int i = 0; i < b->form->in.rank; i++)
        order[i] = b->form->in.to[i];
    b->spec.op_type = "Gather";
    b->spec.attr_count = 0;
    b->spec.opset = 0;
    b->spec.input_count = 2;
    b->inputs[0] = id;
    return ort_constant_list(b->c->graph, order, b->form->in.rank, &b->inputs[1], err);
}

/* (A B)' = B' A' where the last two dimensions change places; a matrix beside batches is turned. */
static ort_status product_anew(builder *b, ort_error *err)
{
    static const ort_perm turn = {.rank = 2, .to = {1, 0}};
    const ort_perm *p = &b->form->in;
    int r = p->rank;
    const ort_type *left = ort_rule_type(b->c->graph, b->node, 0);
    const ort_type *right = ort_rule_type(b->c->graph, b->node, 1);
    bool swap = left->rank == r ? p->to[r - 1] == r - 2 : p->to[r - 2] == r - 1;
    if (!swap)
        return ORT_OK;
    ort_id first = b->inputs[0];
    b->inputs[0] = b->inputs[1];
    b->inputs[1] = first;
    if (right->rank == 2)
        return ort_constant_permuted(b->c->graph, b->node->inputs[1], &turn, &b->inputs[0], err);
    if (left->rank == 2)
        return ort_constant_permuted(b->c->graph, b->node->inputs[0], &turn, &b->inputs[1], err);
    return ORT_OK;
}

static ort_status means_anew(builder *b, ort_error *err)
{
    static const int64_t usual[3] = {0, 2, 3};
    const ort_perm *p = &b->form->in;
    int64_t axes[ORT_MAX_RANK];
    if (ort_fact_axes(b->c->graph, b->node, 0, p->rank, axes) > 0)
        return map_axes(b, 0, p, err);
    for (int i = 0; i < 3; i++)
        axes[i] = p->to[usual[i]];
    put_ints(b, "axes", axes, 3);
    return ORT_OK;
}

static ort_status change(builder *b, ort_error *err)
{
    const ort_graph *graph = b->c->graph;
    const ort_perm *in = &b->form->in, *out = &b->form->out;
    int64_t axis;
    switch (b->r->kind) {
    case ORT_RULE_ELEMENTWISE:
    case ORT_RULE_FRONT:
    case ORT_RULE_TAIL: return ORT_OK;
    case ORT_RULE_SCALES:
        if (ort_rule_type(graph, b->node, 1)->rank == 1)
            put_axis(b, in);
        return ORT_OK;
    case ORT_RULE_NORMALIZE:
        if (b->node->opset >= 13)
            put_axis(b, in);
        return ORT_OK;
    case ORT_RULE_AXIS:
    case ORT_RULE_REMOVE:
    case ORT_RULE_PICK: put_axis(b, in); return ORT_OK;
    case ORT_RULE_AXIS_IN:
        axis = 0; /* axis_in_fits has seen it */
        ort_tensor_one_i64(ort_edit_constant(graph, b->node, 1), &axis);
        axis = in->to[axis < 0 ? axis + in->rank : axis];
        return put_list(b, 1, &axis, 1, err);
    case ORT_RULE_REDUCE:
    case ORT_RULE_SQUEEZE: return map_axes(b, strcmp(b->node->domain, ONNX) ? 0 : 1, in, err);
    case ORT_RULE_UNSQUEEZE: return map_axes(b, 1, out, err);
    case ORT_RULE_MEANS: return means_anew(b, err);
    case ORT_RULE_RESHAPE: return reshape_anew(b, err);
    case ORT_RULE_SHAPE: return shape_anew(b, err);
    case ORT_RULE_EXPAND: return reorder(b, 1, 1, out, err);
    case ORT_RULE_SLICE: return slice_anew(b, err);
    case ORT_RULE_PAD: return pad_anew(b, err);
    case ORT_RULE_TILE: return reorder(b, 1, 1, in, err);
    case ORT_RULE_RESIZE: return resize_anew(b, err);
    case ORT_RULE_PRODUCT: return product_anew(b, err);
    }
    return ORT_OK;
}

ort_status ort_add_permuted(ort_pass_context *c, const ort_node *node, const ort_permuted *form,
                            const ort_id *inputs, const ort_id *outputs, ort_error *err)
{
    builder b = {.c = c, .node = node, .form = form, .r = ort_rule_of(node)};
    int count = node->input_count, room = count > 8 ? count : 8;
    ort_node *made = NULL;
    b.inputs = malloc((size_t)room * sizeof *b.inputs);
    if (!b.inputs)
        return ort_error_memory(err, (size_t)room * sizeof *b.inputs);
    for (int i = 0; i < room; i++)
        b.inputs[i] = i >= count                               ? ORT_ID_NONE
                      : ort_slot_permuted(c->graph, node, i) ? inputs[i]
                                                             : node->inputs[i];
    b.spec = ort_edit_again(node);
    b.spec.inputs = b.inputs;
    b.spec.outputs = outputs;
    b.spec.origin = ort_edit_origin_of(node);
    ort_status status = change(&b, err);
    if (status == ORT_OK)
        status = ort_edit_add_node(c->graph, &b.spec, &made, err);
    if (status == ORT_OK) { /* the same node in another layout */
        made->proto = node->proto;
        made->changed = true;
    }
    free(b.inputs);
    return status;
}
