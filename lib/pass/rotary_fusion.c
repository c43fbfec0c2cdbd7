/* rotary_fusion.c - x cos + rotate_half(x) sin becomes RotaryEmbedding where the opset has it (23),
 * else that of com.microsoft.
 *
 *     rotate_half(x) = Concat(-x[..., D/2:], x[..., :D/2]), by two Slices or one Split; or in pairs
 *                    Reshape(Concat(Unsqueeze -x[..., 1::2], Unsqueeze x[..., ::2])), by Slices or
 *                    as parts of x reshaped to [..., D/2, 2]
 *     cos, sin       one number for each pair and token (rotary_table.h), the same for all heads
 *
 * or the two results l cos - h sin and h cos + l sin are put together. x is [B,H,S,D]; where it is
 * [B,S,H,D], heads are put together for the operator, or change places with the tokens around it.
 * Then the rotation goes before the splitting of heads: an attention finds those next to it.
 *
 *     Rotary(Transpose(Reshape x))      Transpose(Reshape(Rotary x))
 *
 * Where the first R of D elements are rotated and the others put behind them, R is the operator's
 * rotary_embedding_dim. com.microsoft's picks rows of a table by position: a table [B,S,D/2] is
 * laid as [B*S,D/2] and its rows are numbered, once for all layers.
 */
#include <string.h>

#include "base/error.h"
#include "pass/attention_match.h"
#include "pass/constants.h"
#include "pass/pattern.h"
#include "pass/rotary_table.h"

enum { SPLIT = 1, HEADS = 2, PART = 4, PAIRS = 8, ONCE = 16 };

static const ort_pattern_form forms[] = {
    {"(Add (Mul c:(Concat (Neg h:(Slice x #hs #he #ha ...)) l:(Slice x #ls #le #la ...)) sin) "
     "(Mul x cos))",
     0},
    {"(Add (Mul c:(Concat (Neg h) l:(Split x ...)) sin) (Mul x cos))", SPLIT},
    {"(Add (Mul s:(Reshape k:(Concat (Unsqueeze (Neg h) ...) (Unsqueeze l ...)) _) sin) "
     "(Mul x cos))", PAIRS},
    {"(Reshape k:(Concat (Unsqueeze (Sub (Mul l cos) (Mul h sin)) ...) "
     "(Unsqueeze (Add (Mul h cos) (Mul l sin)) ...)) _)", PAIRS | ONCE},
    {"k:(Concat (Sub (Mul l cos) (Mul h sin)) (Add (Mul h cos) (Mul l sin)))", ONCE},
    {"r:(RotaryEmbedding t:(Transpose s:(Reshape x _)) ...)", HEADS},
    {"r:(ms.RotaryEmbedding t:(Transpose s:(Reshape x _)) ...)", HEADS},
    {"c:(Concat r:(RotaryEmbedding l:(Slice x #ls #le #la ...) ...) h:(Slice x #hs #he #ha ...))",
     PART},
    {"c:(Concat r:(ms.RotaryEmbedding l:(Slice x #ls #le #la ...) ...) "
     "h:(Slice x #hs #he #ha ...))", PART},
    {"c:(Concat r:(RotaryEmbedding l:(Split x ...) ...) h)", PART | SPLIT},
    {"c:(Concat r:(ms.RotaryEmbedding l:(Split x ...) ...) h)", PART | SPLIT},
};

static const ort_type *type_of(const ort_pass_context *c, ort_id id)
{
    return &c->graph->values.data[id]->fact.type;
}

/* ---- halves of x */

static int64_t int_of(const ort_pass_context *c, const ort_match *m, const char *name)
{
    const ort_tensor *t = ort_match_constant(m, c->graph, name);
    return ort_tensor_count(t) == 1 ? ort_tensor_get_i64(t, 0) : -9;
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

/* Is x parted into its first `half` elements, l, and the rest, h? NULL: so it is. */
static const char *check_parts(const ort_pass_context *c, const ort_match *m, bool split,
                               int64_t size, int64_t half)
{
    const ort_node *low = ort_match_node(m, "l");
    if (!is_last(ort_node_int(ort_match_node(m, "c"), "axis", 0), 4))
        return "the parts aren't put together along the last axis";
    if (split) {
        const ort_type *l = ort_match_type(m, c->graph, "l");
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
    const ort_type *x = ort_match_type(m, c->graph, "x");
    if (x->kind != ORT_TYPE_TENSOR || x->rank != 4 || !ort_dim_known(x->dim[3]))
        return "what is rotated doesn't have four dimensions";
    int64_t size = x->dim[3].size;
    return size % 2 ? "the halves aren't of the same size"
                    : check_parts(c, m, split, size, size / 2);
}

/* ---- what is rotated */

typedef struct rotation {
    ort_rotary_spread spread; /* of the tables */
    bool pairs, rows_first;
    ort_id x;         /* [B,H,S,D] or [B,S,H,D]; or ORT_ID_NONE */
    ort_id joined;    /* [B,S,H*D], where that is there; or ORT_ID_NONE */
    ort_type type;    /* of x */
    ort_rotary_table tables[2];
} rotation;

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
        if (!t || !t->data || ort_tensor_count(t) != 1)
            return false;
        have[i - 1] = ort_tensor_get_i64(t, 0);
    }
    return have[0] == start && have[1] >= end && (step > 1 || end > start + 1 || have[1] == end) &&
           is_last(have[2], rank) && have[3] == step;
}

/* What `node` takes element `index` of, along its last axis of two. */
static ort_id of_last_two(const ort_pass_context *c, const ort_node *node, int index)
{
    if (ort_edit_is(node, ONNX, "Gather")) {
        const ort_tensor *at = ort_edit_constant(c->graph, node, 1);
        return at && at->data && at->shape.rank == 0 &&
                       (ort_tensor_get_i64(at, 0) == index ||
                        ort_tensor_get_i64(at, 0) == index - 2) &&
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
static bool read_paired(const ort_pass_context *c, ort_id paired, rotation *r)
{
    const ort_node *reshape = ort_edit_producer(c->graph, paired);
    const ort_type *p = type_of(c, paired);
    if (!ort_edit_is(reshape, ONNX, "Reshape") || !ort_attention_ranked(c->graph, paired, 5) ||
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
static bool read_parts(const ort_pass_context *c, ort_id low, ort_id high, rotation *r)
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
    if (!ort_attention_ranked(c->graph, r->x, 4) || !ort_dim_known(r->type.dim[3]))
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
static bool is_put_together(const ort_pass_context *c, const ort_match *m, const rotation *r)
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

static const char *read_rotated(const ort_pass_context *c, const ort_match *m, unsigned flags,
                                rotation *r)
{
    *r = (rotation){.spread = flags & ONCE    ? ORT_ROTARY_ONCE
                              : flags & PAIRS ? ORT_ROTARY_PAIRS
                                              : ORT_ROTARY_HALVES,
                    .pairs = flags & PAIRS, .joined = ORT_ID_NONE};
    if (!(flags & (PAIRS | ONCE))) {
        const char *why = check_halves(c, m, flags & SPLIT);
        r->x = ort_match_value(m, "x");
        r->type = *type_of(c, r->x);
        return why;
    }
    if (!read_parts(c, ort_match_value(m, "l"), ort_match_value(m, "h"), r))
        return "what is rotated isn't parted into the two elements of each pair";
    if (!is_put_together(c, m, r))
        return "the parts aren't put together as they were";
    if (!(flags & ONCE)) { /* x itself is read, too */
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

static bool read_tables(const ort_pass_context *c, const ort_match *m, rotation *r)
{
    ort_id ids[2] = {ort_match_value(m, "cos"), ort_match_value(m, "sin")};
    for (int way = r->joined != ORT_ID_NONE; way < 2; way++) {
        r->rows_first = way;
        if (ort_rotary_read_table(c, ids[0], &r->type, way, r->spread, &r->tables[0]) &&
            ort_rotary_read_table(c, ids[1], &r->type, way, r->spread, &r->tables[1]))
            return ort_rotary_alike(&r->tables[0], &r->tables[1]);
    }
    return false;
}

/* [B,S,H*D] that x [B,S,H,D] was reshaped from. */
static void find_joined(const ort_pass_context *c, rotation *r)
{
    const ort_node *reshape = r->x == ORT_ID_NONE ? NULL : ort_edit_producer(c->graph, r->x);
    if (!r->rows_first || r->joined != ORT_ID_NONE || !ort_edit_is(reshape, ONNX, "Reshape"))
        return;
    const ort_type *whole = type_of(c, reshape->inputs[0]);
    if (whole->kind == ORT_TYPE_TENSOR && whole->rank == 3 &&
        ort_dim_equal(whole->dim[0], r->type.dim[0]) &&
        ort_dim_equal(whole->dim[1], r->type.dim[1]))
        r->joined = reshape->inputs[0];
}

/* ---- the rotation */

static ort_status add(ort_pass_context *c, const char *op_type, const ort_id *inputs, int count,
                      const ort_attr *set, ort_id *result, ort_error *err)
{
    if (*result == ORT_ID_NONE)
        *result = ort_graph_add_value(c->graph, "");
    if (*result == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *result);
    ort_node_spec spec = {.domain = ONNX, .op_type = op_type, .name = "", .inputs = inputs,
                          .input_count = count, .outputs = result, .output_count = 1, .set = set,
                          .set_count = set ? 1 : 0};
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

/* The result [B,S,H*D] or [B,H,S,D] as the [B,S,H,D] that its readers know. */
static ort_status lay_result(ort_pass_context *c, const rotation *r, const ort_attr *perm,
                             ort_id rotated, ort_id result, ort_error *err)
{
    ort_id inputs[2] = {rotated};
    const int64_t list[4] = {0, 0, r->type.dim[2].size, r->type.dim[3].size};
    if (r->joined == ORT_ID_NONE)
        return add(c, "Transpose", inputs, 1, perm, &result, err);
    ORT_TRY(ort_constant_list(c->graph, list, 4, &inputs[1], err));
    return add(c, "Reshape", inputs, 2, NULL, &result, err);
}

/* Inputs as either operator wants them; count: with positions or without. */
static ort_status write_inputs(ort_pass_context *c, const rotation *r, bool microsoft,
                               ort_id inputs[4], int *count, ort_error *err)
{
    ort_id made[2], positions = r->tables[0].positions, x = inputs[0];
    if (microsoft)
        ORT_TRY(ort_rotary_write_rows(c, r->tables, made, &positions, err));
    for (int i = 0; i < 2 && !microsoft; i++)
        ORT_TRY(ort_rotary_write_table(c, &r->tables[i], &r->type, x, &made[i], err));
    ort_id ours[4] = {x, made[0], made[1], positions}, others[4] = {x, positions, made[0], made[1]};
    memcpy(inputs, microsoft ? others : ours, sizeof ours);
    *count = positions == ORT_ID_NONE ? 3 : 4;
    return ORT_OK;
}

static ort_status write_rotation(ort_pass_context *c, const ort_match *m, const rotation *r,
                                 bool microsoft, int opset, ort_error *err)
{
    static const int64_t swapped[4] = {0, 2, 1, 3};
    ort_attr perm = {.name = "perm", .type = ORT_ATTR_INTS, .ints = swapped, .count = 4};
    ort_attr set[2] = {{.name = "interleaved", .type = ORT_ATTR_INT, .i = r->pairs}};
    int sets = r->pairs, count;
    ort_id inputs[4] = {r->joined != ORT_ID_NONE && r->rows_first ? r->joined : r->x};
    if (r->rows_first && r->joined == ORT_ID_NONE) {
        ort_id moved = ORT_ID_NONE;
        ORT_TRY(add(c, "Transpose", inputs, 1, &perm, &moved, err));
        inputs[0] = moved;
    } else if (r->rows_first && !microsoft) {
        set[sets++] = (ort_attr){.name = "num_heads", .type = ORT_ATTR_INT,
                                 .i = r->type.dim[2].size};
    }
    ORT_TRY(write_inputs(c, r, microsoft, inputs, &count, err));
    ort_node_spec spec = {.domain = microsoft ? MS : ONNX, .op_type = "RotaryEmbedding",
                          .inputs = inputs, .input_count = count, .set = set, .set_count = sets,
                          .opset = opset};
    if (!r->rows_first)
        return ort_match_replace(c, m, &spec, err);
    ort_id rotated = ort_graph_add_value(c->graph, ""), result = m->nodes[0]->outputs[0];
    if (rotated == ORT_ID_NONE)
        return ort_error_memory(err, sizeof rotated);
    spec.name = m->nodes[0]->name;
    spec.outputs = &rotated;
    spec.output_count = 1;
    spec.origin = ort_match_remove(c, m);
    if (!spec.origin)
        return ort_error_memory(err, 64);
    ORT_TRY(ort_edit_add_node(c->graph, &spec, NULL, err));
    return lay_result(c, r, &perm, rotated, result, err);
}

static ort_status fuse_rotation(ort_pass_context *c, const ort_match *m, unsigned flags,
                                int *changes, ort_error *err)
{
    rotation r;
    const char *why = read_rotated(c, m, flags, &r);
    if (!why && !read_tables(c, m, &r))
        why = "the tables of angles aren't one number for each pair and token";
    if (!why)
        find_joined(c, &r);
    if (!why && r.joined != ORT_ID_NONE && !ort_dim_known(r.type.dim[2]))
        why = "the number of heads isn't known";
    int opset = why ? 0 : ort_pass_opset(c, m->nodes[0], ONNX, "RotaryEmbedding", 23);
    bool microsoft = !opset;
    for (int i = 0; i < 2 && !why && microsoft; i++)
        why = ort_rotary_microsoft_fits(c, &r.type, &r.tables[i]);
    if (why)
        ort_pass_note(c, m->nodes[0], "%s", why);
    if (!why && microsoft)
        opset = ort_pass_opset(c, m->nodes[0], MS, "RotaryEmbedding", 1);
    if (!opset)
        return ORT_OK;
    ++*changes;
    return write_rotation(c, m, &r, microsoft, opset, err);
}

/* ---- the first elements of each head alone */

static ort_status widen(ort_pass_context *c, const ort_match *m, bool split, int *changes,
                        ort_error *err)
{
    const ort_node *rotary = ort_match_node(m, "r");
    const ort_type *x = ort_match_type(m, c->graph, "x");
    const ort_type *part = type_of(c, rotary->outputs[0]);
    bool microsoft = !strcmp(rotary->domain, MS);
    const char *why = NULL;
    if (x->kind != ORT_TYPE_TENSOR || x->rank != 4 || !ort_dim_known(x->dim[3]) ||
        part->rank != 4 || !ort_dim_known(part->dim[3]) || ort_node_has(rotary, "num_heads") ||
        ort_node_has(rotary, "rotary_embedding_dim"))
        return ORT_OK;
    why = check_parts(c, m, split, x->dim[3].size, part->dim[3].size);
    if (!why && microsoft && !ort_dim_known(x->dim[1]))
        why = "the number of heads isn't known";
    if (why) {
        ort_pass_note(c, m->nodes[0], "%s", why);
        return ORT_OK;
    }
    ort_id inputs[4];
    memcpy(inputs, rotary->inputs, sizeof *inputs * (size_t)rotary->input_count);
    inputs[0] = ort_match_value(m, "x");
    ort_attr set[2] = {{.name = "rotary_embedding_dim", .type = ORT_ATTR_INT,
                        .i = part->dim[3].size},
                       {.name = "num_heads", .type = ORT_ATTR_INT, .i = x->dim[1].size}};
    ort_node_spec spec = {.domain = rotary->domain, .op_type = "RotaryEmbedding",
                          .inputs = inputs, .input_count = rotary->input_count,
                          .attrs = rotary->attrs, .attr_count = rotary->attr_count, .set = set,
                          .set_count = microsoft ? 2 : 1, .opset = rotary->opset};
    ++*changes;
    return ort_match_replace(c, m, &spec, err);
}

/* ---- the rotation before the splitting of heads */

static ort_status before_heads(ort_pass_context *c, const ort_match *m, int *changes,
                               ort_error *err)
{
    static const int64_t heads_first[4] = {0, 2, 1, 3};
    const ort_node *rotary = ort_match_node(m, "r"), *transpose = ort_match_node(m, "t");
    const ort_node *reshape = ort_match_node(m, "s");
    const ort_type *whole = ort_match_type(m, c->graph, "x");
    const ort_type *parts = ort_match_type(m, c->graph, "s");
    if (!ort_attention_has_perm(transpose, heads_first, 4) || whole->rank != 3 ||
        parts->rank != 4 || !ort_dim_equal(whole->dim[0], parts->dim[0]) ||
        !ort_dim_equal(whole->dim[1], parts->dim[1]) || !ort_dim_known(parts->dim[2]) ||
        (ort_node_has(rotary, "num_heads") && !ort_node_has(rotary, "rotary_embedding_dim")))
        return ORT_OK;
    ort_id rotated = ort_graph_add_value(c->graph, ""), split = ort_graph_add_value(c->graph, "");
    if (rotated == ORT_ID_NONE || split == ORT_ID_NONE)
        return ort_error_memory(err, sizeof rotated);
    ort_id inputs[4], shaped[2] = {rotated, reshape->inputs[1]};
    memcpy(inputs, rotary->inputs, sizeof *inputs * (size_t)rotary->input_count);
    inputs[0] = ort_match_value(m, "x");
    bool sized = !strcmp(rotary->domain, MS) && !ort_node_int(rotary, "rotary_embedding_dim", 0);
    ort_attr heads = {.name = "num_heads", .type = ORT_ATTR_INT, .i = parts->dim[2].size};
    ort_node_spec first = {.domain = rotary->domain, .op_type = "RotaryEmbedding",
                           .name = rotary->name,
                           .inputs = inputs, .input_count = rotary->input_count,
                           .outputs = &rotated, .output_count = 1, .attrs = rotary->attrs,
                           .attr_count = rotary->attr_count, .set = &heads,
                           .set_count = sized ? 0 : 1, .opset = rotary->opset,
                           .origin = rotary->origin};
    ort_node_spec second = {.domain = ONNX, .op_type = "Reshape", .name = reshape->name,
                            .inputs = shaped, .input_count = 2, .outputs = &split,
                            .output_count = 1, .attrs = reshape->attrs,
                            .attr_count = reshape->attr_count, .opset = reshape->opset,
                            .origin = reshape->origin};
    ort_node_spec third = {.domain = ONNX, .op_type = "Transpose", .name = transpose->name,
                           .inputs = &split, .input_count = 1, .outputs = rotary->outputs,
                           .output_count = 1, .attrs = transpose->attrs,
                           .attr_count = transpose->attr_count, .opset = transpose->opset,
                           .origin = transpose->origin};
    for (int i = 0; i < m->node_count; i++)
        ort_graph_remove_node(c->graph, m->nodes[i]);
    ++*changes;
    ORT_TRY(ort_edit_add_node(c->graph, &first, NULL, err));
    ORT_TRY(ort_edit_add_node(c->graph, &second, NULL, err));
    return ort_edit_add_node(c->graph, &third, NULL, err);
}

static ort_status fuse(ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                       int *changes, ort_error *err)
{
    if (f->flags & HEADS)
        return before_heads(c, m, changes, err);
    return f->flags & PART ? widen(c, m, f->flags & SPLIT, changes, err)
                           : fuse_rotation(c, m, f->flags, changes, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    return ort_pattern_forms(c, forms, sizeof forms / sizeof *forms, fuse, changes, err);
}

const ort_pass ort_pass_rotary = {
    .name = "rotary",
    .level = 2,
    .doc = "x cos + rotate_half(x) sin becomes RotaryEmbedding",
    .apply = apply,
};
