/* transpose_rules.c - a table of operators by what a permutation does to them: nothing
 * (elementwise), an axis or a list of axes changes, a list by dimension is reordered, dimensions
 * go or come, or the operands of a product change places. */
#include "pass/transpose_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* ---- permutations */

bool ort_perm_equal(const ort_perm *a, const ort_perm *b)
{
    return a->rank == b->rank && !memcmp(a->to, b->to, (size_t)a->rank * sizeof *a->to);
}

bool ort_perm_is_identity(const ort_perm *p)
{
    for (int i = 0; i < p->rank; i++)
        if (p->to[i] != i)
            return false;
    return true;
}

ort_perm ort_perm_inverse(const ort_perm *p)
{
    ort_perm inverse = {.rank = p->rank};
    for (int i = 0; i < p->rank; i++)
        inverse.to[p->to[i]] = i;
    return inverse;
}

ort_perm ort_perm_then(const ort_perm *first, const ort_perm *second)
{
    ort_perm both = {.rank = first->rank};
    for (int i = 0; i < first->rank; i++)
        both.to[i] = first->to[second->to[i]];
    return both;
}

static const ort_type *type_of(const ort_graph *graph, const ort_node *node, int slot)
{
    const ort_graph_value *value = slot < node->input_count
                                       ? ort_graph_value_at(graph, node->inputs[slot])
                                       : NULL;
    return value && value->fact.type.kind == ORT_TYPE_TENSOR && value->fact.type.rank >= 0
               ? &value->fact.type
               : NULL;
}

bool ort_perm_of_node(const ort_graph *graph, const ort_node *node, ort_perm *perm)
{
    size_t count;
    const int64_t *list = ort_node_ints(node, "perm", &count);
    const ort_type *in = type_of(graph, node, 0);
    if (!in || (list && (int)count != in->rank))
        return false;
    *perm = (ort_perm){.rank = in->rank};
    for (int i = 0; i < in->rank; i++)
        perm->to[i] = list ? (int)list[i] : in->rank - 1 - i;
    return true;
}

/* ---- the table */

typedef enum rule_kind {
    ELEMENTWISE,
    AXIS,      /* attribute "axis" */
    NORMALIZE, /* the same; before opset 13 it means all axes from there on */
    SCALES,    /* "axis" of scales with one dimension */
    AXIS_IN,   /* input 1 */
    REMOVE,    /* "axis" goes unless keepdims */
    PICK,      /* Gather: "axis" goes when one index picks */
    REDUCE,    /* "axes", attribute or input 1 */
    SQUEEZE,
    UNSQUEEZE,
    SLICE,
    PAD,
    TILE,
    RESIZE,
    PRODUCT,
} rule_kind;

typedef struct rule {
    const char *op_type;
    rule_kind kind;
    int axis;  /* default of the attribute */
    bool all;  /* every input is data, not only the first */
    int since; /* of the operator */
} rule;

static const rule rules[] = {
    {"Concat", AXIS, 0, true, 4},
    {"Split", AXIS, 0, false, 2},
    {"LpNormalization", AXIS, -1, false, 1},
    {"Softmax", NORMALIZE, -1, false, 1},
    {"LogSoftmax", NORMALIZE, -1, false, 1},
    {"Hardmax", NORMALIZE, -1, false, 1},
    {"QuantizeLinear", SCALES, 1, false, 10},
    {"DequantizeLinear", SCALES, 1, false, 10},
    {"CumSum", AXIS_IN, 0, false, 11},
    {"ArgMax", REMOVE, 0, false, 1},
    {"ArgMin", REMOVE, 0, false, 1},
    {"Gather", PICK, 0, false, 1},
    {"ReduceSum", REDUCE, 0, false, 1},
    {"ReduceMean", REDUCE, 0, false, 1},
    {"ReduceMax", REDUCE, 0, false, 1},
    {"ReduceMin", REDUCE, 0, false, 1},
    {"ReduceProd", REDUCE, 0, false, 1},
    {"ReduceL1", REDUCE, 0, false, 1},
    {"ReduceL2", REDUCE, 0, false, 1},
    {"ReduceLogSum", REDUCE, 0, false, 1},
    {"ReduceLogSumExp", REDUCE, 0, false, 1},
    {"ReduceSumSquare", REDUCE, 0, false, 1},
    {"Squeeze", SQUEEZE, 0, false, 1},
    {"Unsqueeze", UNSQUEEZE, 0, false, 1},
    {"Slice", SLICE, 0, false, 10},
    {"Pad", PAD, 0, false, 11},
    {"Tile", TILE, 0, false, 6},
    {"Resize", RESIZE, 0, false, 11},
    {"MatMul", PRODUCT, 0, true, 1},
    {"Clip", ELEMENTWISE, 0, false, 1},
    {"Sum", ELEMENTWISE, 0, true, 8},
    {"Max", ELEMENTWISE, 0, true, 8},
    {"Min", ELEMENTWISE, 0, true, 8},
    {"Mean", ELEMENTWISE, 0, true, 8},
};

static const rule elementwise = {"", ELEMENTWISE, 0, true, 7};
static const rule unary = {"", ELEMENTWISE, 0, false, 1};

static const rule *rule_of(const ort_node *node)
{
    if (!node->op || strcmp(node->domain, ONNX) || node->output_count < 1 || node->body_count)
        return NULL;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(rules[i].op_type, node->op_type))
            return node->opset >= rules[i].since ? &rules[i] : NULL;
    if (!(node->op->traits & ORT_TRAIT_ELEMENTWISE) || (node->op->traits & ORT_TRAIT_RANDOM))
        return NULL;
    if (node->input_count == 1)
        return &unary;
    return node->opset >= elementwise.since ? &elementwise : NULL;
}

/* ---- axes */

static int64_t in_range(int64_t axis, int rank)
{
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank ? axis : -1;
}

/* Axes of a node, attribute or constant input `slot`, made positive. -1: not known; 0: none
 * given. */
static int axes_of(const ort_graph *graph, const ort_node *node, int slot, int rank, int64_t *axes)
{
    size_t count = 0;
    const int64_t *list = ort_node_ints(node, "axes", &count);
    const ort_tensor *given = slot > 0 ? ort_edit_constant(graph, node, slot) : NULL;
    bool has_input = slot > 0 && slot < node->input_count && node->inputs[slot] != ORT_ID_NONE;
    if (has_input && (!given || !given->data || given->shape.rank != 1))
        return -1;
    if (given)
        count = (size_t)ort_tensor_count(given);
    if (count > ORT_MAX_RANK)
        return -1;
    for (size_t i = 0; i < count; i++) {
        axes[i] = in_range(given ? ort_tensor_get_i64(given, (int64_t)i) : list[i], rank);
        if (axes[i] < 0)
            return -1;
    }
    return (int)count;
}

static bool listed(const int64_t *axes, int count, int axis)
{
    for (int i = 0; i < count; i++)
        if (axes[i] == axis)
            return true;
    return false;
}

/* What is left of a permutation when these axes of v go. */
static ort_perm without(const ort_perm *in, const int64_t *axes, int count)
{
    ort_perm out = {.rank = 0};
    for (int i = 0; i < in->rank; i++) {
        int place = 0;
        if (listed(axes, count, i))
            continue;
        for (int k = 0; k < in->rank; k++) {
            bool goes = false;
            for (int j = 0; j < count; j++)
                goes = goes || in->to[axes[j]] == k;
            place += !goes && k < in->to[i];
        }
        out.to[out.rank++] = place;
    }
    return out;
}

/* New axes of 1 come at the same places on both sides. */
static ort_perm with(const ort_perm *in, const int64_t *axes, int count)
{
    ort_perm out = {.rank = in->rank + count};
    int places[ORT_MAX_RANK], next = 0;
    for (int i = 0; i < out.rank; i++)
        if (!listed(axes, count, i))
            places[next++] = i;
    next = 0;
    for (int i = 0; i < out.rank; i++)
        out.to[i] = listed(axes, count, i) ? i : places[in->to[next++]];
    return out;
}

/* ---- forms */

static int64_t axis_of(const rule *r, const ort_node *node, int rank)
{
    int axis = r->axis;
    if (r->kind == NORMALIZE && node->opset < 13)
        axis = 1;
    return in_range(ort_node_int(node, "axis", axis), rank);
}

/* Elements of a constant that may be there in two layouts. */
enum { SMALL_CONSTANT = 64 };

bool ort_constant_moves(const ort_graph *graph, ort_id id)
{
    const ort_graph_value *value = graph->values.data[id];
    const ort_tensor *t = value->is_input || value->is_output ? NULL : value->fact.value;
    return t && t->data && t->dtype != ORT_DTYPE_STRING &&
           (value->use_count == 1 || ort_tensor_count(t) <= SMALL_CONSTANT);
}

/* Are all data inputs of the rank, or lie as they are, or constants that can be laid anew? */
static bool operands_fit(const ort_graph *graph, const ort_node *node, const rule *r, int rank)
{
    for (int i = 0; i < (r->all ? node->input_count : 1); i++) {
        const ort_type *type = type_of(graph, node, i);
        if (!ort_slot_permuted(graph, node, i))
            continue;
        if (!type || type->dtype == ORT_DTYPE_STRING || type->rank > rank)
            return false;
        if (type->rank < rank &&
            (!ort_constant_moves(graph, node->inputs[i]) || r->kind != ELEMENTWISE))
            return false;
    }
    return true;
}

static bool reduce_fits(const ort_graph *graph, const ort_node *node, const rule *r,
                        const ort_perm *in, ort_permuted *form)
{
    int64_t axes[ORT_MAX_RANK];
    int count, keeps = ort_node_int(node, "keepdims", 1) != 0;
    if (r->kind == REMOVE) {
        axes[0] = axis_of(r, node, in->rank);
        count = axes[0] < 0 ? -1 : 1;
    } else if (r->kind == PICK) {
        const ort_type *index = type_of(graph, node, 1);
        axes[0] = axis_of(r, node, in->rank);
        count = axes[0] < 0 || !index || index->rank > 1 ? -1 : 1;
        keeps = count > 0 && index->rank == 1;
    } else {
        count = axes_of(graph, node, 1, in->rank, axes);
    }
    if (count < 0 || (count == 0 && ort_node_int(node, "noop_with_empty_axes", 0)))
        return false;
    if (!keeps && count == 0)
        return false; /* one number: nothing to permute */
    form->out = keeps ? *in : without(in, axes, count);
    return true;
}

/* Of two dimensions a Gemm takes the Transposes in. */
static bool product_fits(const ort_graph *graph, const ort_node *node, const ort_perm *p)
{
    int r = p->rank;
    const ort_type *a = type_of(graph, node, 0), *b = type_of(graph, node, 1);
    if (r < 3 || !a || !b || a->rank != r || b->rank != r)
        return false;
    return (p->to[r - 1] == r - 1 && p->to[r - 2] == r - 2) ||
           (p->to[r - 1] == r - 2 && p->to[r - 2] == r - 1);
}

static const ort_tensor *list_at(const ort_graph *graph, const ort_node *node, int slot)
{
    const ort_tensor *t = ort_edit_constant(graph, node, slot);
    return t && t->data && t->shape.rank == 1 ? t : NULL;
}

static bool is_absent(const ort_node *node, int slot)
{
    return slot >= node->input_count || node->inputs[slot] == ORT_ID_NONE;
}

/* Kernels resize the last two dimensions, and others in the nearest mode alone. */
static bool resize_fits(const ort_graph *graph, const ort_node *node, const ort_perm *p)
{
    const ort_tensor *scales = list_at(graph, node, 2), *sizes = list_at(graph, node, 3);
    const ort_type *in = type_of(graph, node, 0);
    bool has_scales = scales && ort_tensor_count(scales) > 0;
    bool nearest = !strcmp(ort_node_string(node, "mode", "nearest"), "nearest");
    const ort_tensor *roi = is_absent(node, 1) ? NULL : ort_edit_constant(graph, node, 1);
    ort_perm inverse = ort_perm_inverse(p);
    if (ort_node_has(node, "axes") || (!is_absent(node, 1) && (!roi || ort_tensor_count(roi))) ||
        (has_scales ? ort_tensor_count(scales) : sizes ? ort_tensor_count(sizes) : -1) != p->rank)
        return false;
    for (int i = 0; i < p->rank - 2 && !nearest; i++) {
        int from = inverse.to[i];
        if (has_scales ? ort_tensor_get_f64(scales, from) != 1
                       : !ort_dim_known(in->dim[from]) ||
                             ort_tensor_get_i64(sizes, from) != in->dim[from].size)
            return false;
    }
    return true;
}

static bool slice_fits(const ort_graph *graph, const ort_node *node, int rank)
{
    int64_t axes[ORT_MAX_RANK];
    const ort_type *starts = type_of(graph, node, 1);
    return axes_of(graph, node, 3, rank, axes) >= 0 && starts && starts->rank == 1 &&
           ort_dim_known(starts->dim[0]) && starts->dim[0].size <= rank;
}

static bool pad_fits(const ort_graph *graph, const ort_node *node, int rank)
{
    const ort_tensor *pads = list_at(graph, node, 1);
    int64_t axes[ORT_MAX_RANK];
    if (!is_absent(node, 3))
        return axes_of(graph, node, 3, rank, axes) >= 0;
    return pads && ort_tensor_count(pads) == 2 * rank;
}

static bool scales_fit(const ort_graph *graph, const ort_node *node, const rule *r, int rank)
{
    const ort_type *scale = type_of(graph, node, 1);
    if (!scale || ort_node_int(node, "block_size", 0))
        return false;
    return scale->rank == 0 || (scale->rank == 1 && axis_of(r, node, rank) >= 0);
}

static bool form_of(const ort_graph *graph, const ort_node *node, const rule *r,
                    ort_permuted *form)
{
    const ort_perm *in = &form->in;
    int64_t axes[ORT_MAX_RANK], axis;
    int count;
    form->out = *in;
    switch (r->kind) {
    case ELEMENTWISE: return true;
    case AXIS: return axis_of(r, node, in->rank) >= 0;
    case NORMALIZE:
        axis = axis_of(r, node, in->rank);
        return axis >= 0 && (node->opset >= 13 || (axis == in->rank - 1 && in->to[axis] == axis));
    case SCALES: return scales_fit(graph, node, r, in->rank);
    case AXIS_IN: {
        const ort_tensor *given = ort_edit_constant(graph, node, 1);
        return given && given->data && ort_tensor_count(given) == 1 &&
               in_range(ort_tensor_get_i64(given, 0), in->rank) >= 0;
    }
    case REMOVE:
    case PICK:
    case REDUCE: return reduce_fits(graph, node, r, in, form);
    case SQUEEZE:
        count = axes_of(graph, node, 1, in->rank, axes);
        form->out = count > 0 ? without(in, axes, count) : *in;
        return count > 0;
    case UNSQUEEZE: {
        const ort_type *out = &graph->values.data[node->outputs[0]]->fact.type;
        if (out->kind != ORT_TYPE_TENSOR || out->rank <= in->rank)
            return false;
        count = axes_of(graph, node, 1, out->rank, axes);
        form->out = count == out->rank - in->rank ? with(in, axes, count) : *in;
        return count == out->rank - in->rank;
    }
    case SLICE: return slice_fits(graph, node, in->rank);
    case PAD: return pad_fits(graph, node, in->rank);
    case TILE: {
        const ort_tensor *repeats = list_at(graph, node, 1);
        return repeats && ort_tensor_count(repeats) == in->rank;
    }
    case RESIZE: return resize_fits(graph, node, in);
    case PRODUCT: return product_fits(graph, node, in);
    }
    return false;
}

bool ort_slot_permuted(const ort_graph *graph, const ort_node *node, int slot)
{
    const rule *r = rule_of(node);
    const ort_tensor *constant = ort_edit_constant(graph, node, slot);
    const ort_type *type = type_of(graph, node, slot);
    if (!r || slot >= node->input_count || node->inputs[slot] == ORT_ID_NONE ||
        (slot > 0 && !r->all))
        return false;
    if (r->kind != ELEMENTWISE)
        return true;
    return !(type && type->rank == 0) && !(constant && ort_tensor_count(constant) == 1);
}

bool ort_node_permuted(const ort_graph *graph, const ort_node *node, const ort_perm *known,
                       bool forward, ort_permuted *form)
{
    const rule *r = rule_of(node);
    if (!r)
        return false;
    form->in = *known;
    const ort_type *out = node->outputs[0] == ORT_ID_NONE
                              ? NULL
                              : &graph->values.data[node->outputs[0]]->fact.type;
    const ort_type *in = type_of(graph, node, 0);
    if (!out || out->kind != ORT_TYPE_TENSOR || out->rank < 0)
        return false;
    /* From a result back, only where both sides have the same axes. */
    if ((!forward || r->kind == ELEMENTWISE) && out->rank != known->rank)
        return false;
    if (r->kind != ELEMENTWISE && (!in || in->rank != known->rank))
        return false;
    return operands_fit(graph, node, r, known->rank) && form_of(graph, node, r, form) &&
           form->out.rank == out->rank;
}

/* ---- the node anew */

typedef struct builder {
    ort_pass_context *c;
    const ort_node *node;
    const ort_permuted *form;
    ort_id inputs[64];
    ort_attr set;
    bool sets;
    int64_t list[2 * ORT_MAX_RANK]; /* of set */
} builder;

static ort_status put_list(builder *b, int slot, const int64_t *list, int count, ort_error *err)
{
    int32_t narrow[2 * ORT_MAX_RANK];
    const ort_graph_value *old = ort_graph_value_at(b->c->graph, b->node->inputs[slot]);
    bool is_narrow = old && old->fact.type.dtype == ORT_DTYPE_INT32;
    for (int i = 0; i < count; i++)
        narrow[i] = (int32_t)list[i];
    ort_tensor t = {.dtype = is_narrow ? ORT_DTYPE_INT32 : ORT_DTYPE_INT64,
                    .shape = {.rank = 1, .dim = {count}},
                    .data = is_narrow ? (void *)narrow : (void *)(uintptr_t)list};
    if (old && old->fact.type.rank == 0)
        t.shape.rank = 0;
    return ort_edit_add_constant(b->c->graph, old ? old->name : "axes", &t, &b->inputs[slot], err);
}

static void put_axis(builder *b, int64_t axis)
{
    b->set = (ort_attr){.name = "axis", .type = ORT_ATTR_INT, .i = axis};
    b->sets = true;
}

/* Axes where the node has them: as an attribute or as input `slot`. */
static ort_status put_axes(builder *b, int slot, const int64_t *axes, int count, ort_error *err)
{
    if (!is_absent(b->node, slot))
        return put_list(b, slot, axes, count, err);
    memcpy(b->list, axes, (size_t)count * sizeof *axes);
    b->set = (ort_attr){.name = "axes", .type = ORT_ATTR_INTS, .ints = b->list,
                        .count = (size_t)count};
    b->sets = true;
    return ORT_OK;
}

static ort_status map_axes(builder *b, int slot, ort_error *err)
{
    int64_t axes[ORT_MAX_RANK];
    int count = axes_of(b->c->graph, b->node, slot, b->form->in.rank, axes);
    if (count <= 0)
        return ORT_OK;
    for (int i = 0; i < count; i++)
        axes[i] = b->form->in.to[axes[i]];
    return put_axes(b, slot, axes, count, err);
}

/* Without axes a Slice means the first ones. */
static ort_status slice_anew(builder *b, ort_error *err)
{
    int64_t axes[ORT_MAX_RANK];
    if (!is_absent(b->node, 3))
        return map_axes(b, 3, err);
    int count = (int)type_of(b->c->graph, b->node, 1)->dim[0].size;
    for (int i = 0; i < count; i++)
        axes[i] = b->form->in.to[i];
    ort_tensor t = {.dtype = ORT_DTYPE_INT64, .shape = {.rank = 1, .dim = {count}}, .data = axes};
    return ort_edit_add_constant(b->c->graph, "axes", &t, &b->inputs[3], err);
}

/* Parts of a list by dimension change places. */
static ort_status reorder(builder *b, int slot, int parts, ort_error *err)
{
    const ort_tensor *t = ort_edit_constant(b->c->graph, b->node, slot);
    int rank = b->form->in.rank;
    int64_t list[2 * ORT_MAX_RANK];
    if (t->dtype == ORT_DTYPE_FLOAT) {
        float numbers[ORT_MAX_RANK];
        for (int i = 0; i < rank; i++)
            numbers[b->form->in.to[i]] = (float)ort_tensor_get_f64(t, i);
        ort_tensor made = {.dtype = t->dtype, .shape = t->shape, .data = numbers};
        return ort_edit_add_constant(b->c->graph, "scales", &made, &b->inputs[slot], err);
    }
    for (int part = 0; part < parts; part++)
        for (int i = 0; i < rank; i++)
            list[part * rank + b->form->in.to[i]] = ort_tensor_get_i64(t, part * rank + i);
    return put_list(b, slot, list, parts * rank, err);
}

static ort_status change(builder *b, const rule *r, ort_error *err)
{
    const ort_graph *graph = b->c->graph;
    int rank = b->form->in.rank;
    const ort_type *scale;
    int64_t axis;
    ort_id first;
    switch (r->kind) {
    case ELEMENTWISE: return ORT_OK;
    case SCALES:
        scale = type_of(graph, b->node, 1);
        if (scale->rank == 1)
            put_axis(b, b->form->in.to[axis_of(r, b->node, rank)]);
        return ORT_OK;
    case AXIS:
    case NORMALIZE:
    case REMOVE:
    case PICK: put_axis(b, b->form->in.to[axis_of(r, b->node, rank)]); return ORT_OK;
    case AXIS_IN:
        axis = in_range(ort_tensor_get_i64(ort_edit_constant(graph, b->node, 1), 0), rank);
        axis = b->form->in.to[axis];
        return put_list(b, 1, &axis, 1, err);
    case REDUCE:
    case SQUEEZE: return map_axes(b, 1, err);
    case UNSQUEEZE: return ORT_OK; /* the same places */
    case SLICE: return slice_anew(b, err);
    case PAD: return is_absent(b->node, 3) ? reorder(b, 1, 2, err) : map_axes(b, 3, err);
    case TILE: return reorder(b, 1, 1, err);
    case RESIZE: return reorder(b, list_at(graph, b->node, 2) &&
                                           ort_tensor_count(list_at(graph, b->node, 2))
                                       ? 2
                                       : 3, 1, err);
    case PRODUCT:
        if (b->form->in.to[rank - 1] == rank - 2) { /* (A B)' = B' A' */
            first = b->inputs[0];
            b->inputs[0] = b->inputs[1];
            b->inputs[1] = first;
        }
        return ORT_OK;
    }
    return ORT_OK;
}

ort_status ort_add_permuted(ort_pass_context *c, const ort_node *node, const ort_permuted *form,
                            const ort_id *inputs, const ort_id *outputs, ort_error *err)
{
    builder b = {.c = c, .node = node, .form = form};
    const rule *r = rule_of(node);
    ort_id *all = b.inputs;
    int count = node->input_count;
    for (int i = count; i < 8; i++)
        b.inputs[i] = ORT_ID_NONE;
    if (count > 60) { /* a Concat of many: nothing beside its data */
        all = malloc((size_t)count * sizeof *all);
        if (!all)
            return ort_error_memory(err, (size_t)count * sizeof *all);
    }
    for (int i = 0; i < count; i++)
        all[i] = ort_slot_permuted(c->graph, node, i) ? inputs[i] : node->inputs[i];
    ort_status status = change(&b, r, err);
    for (int i = count; all == b.inputs && i < 8 && r->kind == SLICE; i++)
        count = b.inputs[i] != ORT_ID_NONE ? i + 1 : count;
    ort_node_spec spec = {.domain = node->domain, .op_type = node->op_type, .name = node->name,
                          .inputs = all, .input_count = count, .outputs = outputs,
                          .output_count = node->output_count, .attrs = node->attrs,
                          .attr_count = node->attr_count, .set = &b.set, .set_count = b.sets,
                          .opset = node->opset, .origin = ort_edit_origin_of(node)};
    if (!status)
        status = ort_edit_add_node(c->graph, &spec, NULL, err);
    if (all != b.inputs)
        free(all);
    return status;
}
