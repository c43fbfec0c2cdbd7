/* rotary_parts.c - reading how a rotation takes x apart and puts it together (rotary_parts.h): in
 * halves by two Slices or a Split, in pairs by Slices of step 2 or as parts of [..., D/2, 2].
 */
#include "pass/attention/rotary_parts.h"

#include "pass/facts/facts.h"
#include "pass/facts/constants.h"
#include "tensor/scalar.h"

static const ort_type *type_of(const ort_pass_context *c, ort_id id)
{
    return &c->graph->values.data[id]->fact.type;
}

/* ---- halves of x */

static int64_t int_of(const ort_pass_context *c, const ort_match *m, const char *name)
{
    int64_t number = -9;
    ort_tensor_one_i64(ort_match_constant(m, name), &number);
    return number;
}

static bool is_last(int64_t axis, int rank)
{
    return axis == -1 || axis == rank - 1;
}

static bool has_unit_steps(const ort_pass_context *c, const ort_node *slice)
{
    const ort_tensor *steps = ort_edit_constant(c->graph, slice, 4);
    return slice->input_count < 5 || slice->inputs[4] == ORT_ID_NONE ||
           (steps && ort_constant_is_all(steps, 1));
}

const char *ort_rotary_check_parts(const ort_pass_context *c, const ort_match *m, bool split,
                               int64_t size, int64_t half)
{
    const ort_node *low = ort_match_node(m, "l");
    if (!is_last(ort_node_int(ort_match_node(m, "c"), "axis", 0), 4))
        return "the parts aren't put together along the last axis";
    if (split) {
        const ort_type *l = ort_match_type(m, "l");
        if (low->output_count != 2 || low->outputs[1] != ort_match_value(m, "h") ||
            !is_last(ort_node_int(low, "axis", 0), 4) || !ort_dim_known(l->dim[3]) ||
            l->dim[3].size != half)
            return "it isn't split into these parts";
        return NULL;
    }
    if (int_of(c, m, "ls") != 0 || int_of(c, m, "le") != half || int_of(c, m, "hs") != half ||
        int_of(c, m, "he") < size || !is_last(int_of(c, m, "la"), 4) ||
        !is_last(int_of(c, m, "ha"), 4) || !has_unit_steps(c, low) ||
        !has_unit_steps(c, ort_match_node(m, "h")))
        return "it isn't sliced into these parts";
    return NULL;
}

static const char *check_halves(const ort_pass_context *c, const ort_match *m, bool split)
{
    const ort_type *x = ort_match_type(m, "x");
    if (x->kind != ORT_TYPE_TENSOR || x->rank != 4 || !ort_dim_known(x->dim[3]))
        return "what is rotated doesn't have four dimensions";
    int64_t size = x->dim[3].size;
    return size % 2 ? "the halves aren't of the same size"
                    : ort_rotary_check_parts(c, m, split, size, size / 2);
}

/* ---- what is rotated */

/* Does `slice` alone take every `step`-th element of the last axis from `start` on? */
static bool slices_last(const ort_pass_context *c, const ort_node *slice, int64_t start,
                        int64_t end, int64_t step)
{
    int rank = type_of(c, slice->inputs[0])->rank;
    int64_t have[4] = {-1, -1, -9, 1};
    for (int i = 1; i < 5; i++) {
        const ort_tensor *t = ort_edit_constant(c->graph, slice, i);
        if (i >= slice->input_count || slice->inputs[i] == ORT_ID_NONE)
            continue;
        if (!ort_tensor_one_i64(t, &have[i - 1]))
            return false;
    }
    return have[0] == start && have[1] >= end && (step > 1 || end > start + 1 || have[1] == end) &&
           is_last(have[2], rank) && have[3] == step;
}

/* What `node` takes element `index` of, along its last axis of two. */
static ort_id of_last_two(const ort_pass_context *c, const ort_node *node, int index)
{
    if (ort_edit_is(node, ONNX, "Gather")) {
        const ort_tensor *at = ort_edit_constant(c->graph, node, 1);
        int64_t place;
        return ort_tensor_one_i64(at, &place) && at->shape.rank == 0 &&
                       (place == index || place == index - 2) &&
                       is_last(ort_node_int(node, "axis", 0), type_of(c, node->inputs[0])->rank)
                   ? node->inputs[0]
                   : ORT_ID_NONE;
    }
    if (!ort_edit_is(node, ONNX, "Squeeze"))
        return ORT_ID_NONE;
    const ort_node *part = ort_edit_producer(c->graph, node->inputs[0]);
    const ort_type *one = type_of(c, node->inputs[0]), *out = type_of(c, node->outputs[0]);
    if (!part || one->rank != out->rank + 1 || one->rank < 2 ||
        !ort_dim_known(one->dim[one->rank - 1]) || one->dim[one->rank - 1].size != 1)
        return ORT_ID_NONE;
    for (int d = 0; d < out->rank; d++)
        if (!ort_dim_equal(one->dim[d], out->dim[d]))
            return ORT_ID_NONE;
    if (ort_edit_is(part, ONNX, "Slice") && slices_last(c, part, index, index + 1, 1))
        return part->inputs[0];
    return ort_edit_is(part, ONNX, "Split") && part->output_count == 2 &&
                   part->outputs[index] == node->inputs[0] &&
                   is_last(ort_node_int(part, "axis", 0), one->rank)
               ? part->inputs[0]
               : ORT_ID_NONE;
}

/* x of [..., D/2, 2]: [B,?,?,D], or [B,S,H*D] alone. */
static bool read_paired(const ort_pass_context *c, ort_id paired, ort_rotation *r)
{
    const ort_node *reshape = ort_edit_producer(c->graph, paired);
    const ort_type *p = type_of(c, paired);
    if (!ort_edit_is(reshape, ONNX, "Reshape") || !ort_fact_ranked(c->graph, paired, 5) ||
        !ort_dim_known(p->dim[3]) || !ort_dim_known(p->dim[4]) || p->dim[4].size != 2)
        return false;
    const ort_type *x = type_of(c, reshape->inputs[0]);
    r->type = (ort_type){.kind = ORT_TYPE_TENSOR, .dtype = p->dtype, .rank = 4};
    for (int d = 0; d < 3; d++)
        r->type.dim[d] = p->dim[d];
    r->type.dim[3] = ort_dim_of(2 * p->dim[3].size);
    bool joined = x->kind == ORT_TYPE_TENSOR && x->rank == 3;
    if (x->kind != ORT_TYPE_TENSOR || (!joined && x->rank != 4))
        return false;
    for (int d = 0; d < (joined ? 2 : 3); d++)
        if (!ort_dim_equal(x->dim[d], p->dim[d]))
            return false;
    *(joined ? &r->joined : &r->x) = reshape->inputs[0];
    return true;
}

/* What the two values are the halves of each pair of; false: of nothing. */
static bool read_parts(const ort_pass_context *c, ort_id low, ort_id high, ort_rotation *r)
{
    const ort_node *l = ort_edit_producer(c->graph, low), *h = ort_edit_producer(c->graph, high);
    r->x = r->joined = ORT_ID_NONE;
    if (!l || !h)
        return false;
    if (r->pairs) {
        ort_id paired = of_last_two(c, l, 0);
        if (paired != ORT_ID_NONE)
            return of_last_two(c, h, 1) == paired && read_paired(c, paired, r);
    }
    if (l == h && !r->pairs) {
        if (!ort_edit_is(l, ONNX, "Split") || l->output_count != 2 || l->outputs[0] != low ||
            l->outputs[1] != high ||
            !is_last(ort_node_int(l, "axis", 0), type_of(c, l->inputs[0])->rank) ||
            !ort_dim_equal(type_of(c, low)->dim[3], type_of(c, high)->dim[3]))
            return false;
    } else if (!ort_edit_is(l, ONNX, "Slice") || !ort_edit_is(h, ONNX, "Slice") ||
               l->inputs[0] != h->inputs[0]) {
        return false;
    }
    r->x = l->inputs[0];
    r->type = *type_of(c, r->x);
    if (!ort_fact_ranked(c->graph, r->x, 4) || !ort_dim_known(r->type.dim[3]))
        return false;
    int64_t size = r->type.dim[3].size;
    if (l == h)
        return true;
    return r->pairs ? slices_last(c, l, 0, size - 1, 2) && slices_last(c, h, 1, size, 2)
                    : slices_last(c, l, 0, size / 2, 1) && slices_last(c, h, size / 2, size, 1) &&
                          ort_dim_known(type_of(c, low)->dim[3]) &&
                          type_of(c, low)->dim[3].size == size / 2;
}

/* The result has the shape of x, its parts side by side again. */
static bool is_put_together(const ort_pass_context *c, const ort_match *m, const ort_rotation *r)
{
    const ort_type *out = type_of(c, m->nodes[0]->outputs[0]);
    const ort_node *concat = ort_match_node(m, "k");
    const ort_type *wide = type_of(c, concat->outputs[0]);
    if (!is_last(ort_node_int(concat, "axis", 0), wide->rank) || out->rank != 4 ||
        wide->rank != 4 + r->pairs)
        return false;
    for (int d = 0; d < 4; d++)
        if (!ort_dim_equal(out->dim[d], r->type.dim[d]))
            return false;
    if (!r->pairs)
        return true;
    for (int d = 0; d < 3; d++)
        if (!ort_dim_equal(wide->dim[d], r->type.dim[d]))
            return false;
    return ort_dim_known(wide->dim[4]) && wide->dim[4].size == 2;
}

const char *ort_rotary_read_parts(const ort_pass_context *c, const ort_match *m, unsigned flags,
                                ort_rotation *r)
{
    *r = (ort_rotation){.spread = flags & ORT_FORM_ONCE    ? ORT_ROTARY_ONCE
                              : flags & ORT_FORM_PAIRS ? ORT_ROTARY_PAIRS
                                              : ORT_ROTARY_HALVES,
                    .pairs = flags & ORT_FORM_PAIRS, .joined = ORT_ID_NONE};
    if (!(flags & (ORT_FORM_PAIRS | ORT_FORM_ONCE))) {
        const char *why = check_halves(c, m, flags & ORT_FORM_SPLIT);
        r->x = ort_match_value(m, "x");
        r->type = *type_of(c, r->x);
        return why;
    }
    if (!read_parts(c, ort_match_value(m, "l"), ort_match_value(m, "h"), r))
        return "what is rotated isn't parted into the two elements of each pair";
    if (!is_put_together(c, m, r))
        return "the parts aren't put together as they were";
    if (!(flags & ORT_FORM_ONCE)) { /* x itself is read, too */
        ort_id x = ort_match_value(m, "x");
        const ort_node *reshape = ort_edit_producer(c->graph, x);
        bool split = r->joined != ORT_ID_NONE && ort_edit_is(reshape, ONNX, "Reshape") &&
                     reshape->inputs[0] == r->joined;
        if (r->x != x && !split)
            return "what is rotated isn't what it is added to";
        r->x = x;
    }
    return r->type.dim[3].size % 2 ? "the halves aren't of the same size" : NULL;
}
