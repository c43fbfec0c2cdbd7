/* rotary_fusion.c - x cos + rotate_half(x) sin becomes RotaryEmbedding where the opset has it (23),
 * else that of com.microsoft.
 *
 *     rotate_half(x) = Concat(-x[..., D/2:], x[..., :D/2]), by two Slices or one Split
 *     cos, sin       [B,1,S,D], both halves the same: made of Concat(f, f) by elementwise
 *                    operators, or rows that a Gather picks from a constant table
 *
 * The operator reads half of each table: that of f, or half of the constant. Then the rotation goes
 * before the splitting of heads, so that an attention finds those next to it:
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

enum { SPLIT = 1, HEADS = 2, PART = 4 };

static const ort_pattern_form forms[] = {
    {"(Add (Mul c:(Concat (Neg h:(Slice x #hs #he #ha ...)) l:(Slice x #ls #le #la ...)) sin) "
     "(Mul x cos))",
     0},
    {"(Add (Mul c:(Concat (Neg h) l:(Split x ...)) sin) (Mul x cos))", SPLIT},
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

/* ---- tables */

typedef struct table {
    const ort_node *chain[6]; /* elementwise operators from the whole up to the halves */
    int count;
    ort_id half;              /* f, of [B,S,D/2]; or ORT_ID_NONE */
    const ort_tensor *rows;   /* else a constant [P,D] whose halves are the same, */
    ort_id positions;         /* of which these [B,S] are read */
} table;

static bool is_unary(const ort_pass_context *c, const ort_node *node, int *slot)
{
    static const char *const names[] = {"Cos", "Sin", "Cast", "Identity", "Neg"};
    *slot = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ort_edit_is(node, ONNX, names[i]))
            return true;
    for (int i = 0; ort_edit_is(node, ONNX, "Mul") && i < 2; i++) {
        const ort_tensor *factor = ort_edit_constant(c->graph, node, 1 - i);
        *slot = i;
        if (factor && ort_tensor_count(factor) == 1 && factor->shape.rank <= 1)
            return true;
    }
    return false;
}

/* [B,1,S,D] of x [B,H,S,D] is made of [B,S,D]: that, or ORT_ID_NONE. */
static ort_id squeezed(const ort_pass_context *c, ort_id id, const ort_type *x)
{
    const ort_node *node = ort_edit_producer(c->graph, id);
    if (!ort_edit_is(node, ONNX, "Unsqueeze") && !ort_edit_is(node, ONNX, "Reshape"))
        return ORT_ID_NONE;
    const ort_type *wide = type_of(c, id), *flat = type_of(c, node->inputs[0]);
    if (!ort_attention_ranked(c->graph, id, 4) ||
        !ort_attention_ranked(c->graph, node->inputs[0], 3) || !ort_dim_known(wide->dim[1]) ||
        wide->dim[1].size != 1)
        return ORT_ID_NONE;
    static const int axis[3] = {0, 2, 3};
    for (int d = 0; d < 3; d++)
        if (!ort_dim_equal(flat->dim[d], wide->dim[axis[d]]) ||
            !ort_dim_equal(flat->dim[d], x->dim[axis[d]]))
            return ORT_ID_NONE;
    return node->inputs[0];
}

static bool has_same_halves(const ort_tensor *t)
{
    int64_t size = t->shape.dim[1], half = size / 2;
    for (int64_t r = 0; t->data && r < t->shape.dim[0]; r++)
        for (int64_t i = 0; i < half; i++)
            if (ort_tensor_get_f64(t, r * size + i) != ort_tensor_get_f64(t, r * size + half + i))
                return false;
    return t->data != NULL;
}

static bool read_table(const ort_pass_context *c, ort_id id, const ort_type *x, table *t)
{
    int slot;
    *t = (table){.half = ORT_ID_NONE, .positions = ORT_ID_NONE};
    id = squeezed(c, id, x);
    const ort_node *node = id == ORT_ID_NONE ? NULL : ort_edit_producer(c->graph, id);
    while (node && t->count < 6 && is_unary(c, node, &slot)) {
        t->chain[t->count++] = node;
        node = ort_edit_producer(c->graph, node->inputs[slot]);
    }
    if (ort_edit_is(node, ONNX, "Concat") && node->input_count == 2 &&
        node->inputs[0] == node->inputs[1] && is_last(ort_node_int(node, "axis", 0), 3)) {
        t->half = node->inputs[0];
        return true;
    }
    t->rows = ort_edit_is(node, ONNX, "Gather") && t->count == 0
                  ? ort_edit_constant(c->graph, node, 0) : NULL;
    if (!t->rows || t->rows->shape.rank != 2 || t->rows->shape.dim[1] % 2 ||
        ort_node_int(node, "axis", 0) != 0 || type_of(c, node->inputs[1])->rank != 2 ||
        type_of(c, node->inputs[1])->dtype != ORT_DTYPE_INT64 || !has_same_halves(t->rows))
        return false;
    t->positions = node->inputs[1];
    return true;
}

/* Columns 0..D/2 of a constant [P,D]. */
static ort_status half_rows(ort_pass_context *c, const ort_tensor *rows, ort_id *id,
                            ort_error *err)
{
    ort_value *made = NULL;
    int64_t size = rows->shape.dim[1], half = size / 2;
    ort_shape shape = ort_shape_make(2, (const int64_t[]){rows->shape.dim[0], half});
    ORT_TRY(ort_value_new_tensor_(rows->dtype, &shape, &made, err));
    for (int64_t r = 0; r < rows->shape.dim[0]; r++)
        for (int64_t i = 0; i < half; i++)
            ort_tensor_set_f64(&made->tensor, r * half + i, ort_tensor_get_f64(rows, r * size + i));
    ort_status status = ort_edit_add_constant(c->graph, "", &made->tensor, id, err);
    ort_value_free(made);
    return status;
}

/* The half that the operator reads: the same operators on f. Layers share it, once merged. */
static ort_status write_table(ort_pass_context *c, const table *t, ort_id *id, ort_error *err)
{
    if (t->rows)
        return half_rows(c, t->rows, id, err);
    *id = t->half;
    for (int i = t->count; i-- > 0;) {
        const ort_node *old = t->chain[i];
        int slot;
        ort_id inputs[2] = {old->inputs[0], old->input_count > 1 ? old->inputs[1] : ORT_ID_NONE};
        (void)is_unary(c, old, &slot);
        inputs[slot] = *id;
        ort_id made = ort_graph_add_value(c->graph, "");
        if (made == ORT_ID_NONE)
            return ort_error_memory(err, sizeof made);
        ort_node_spec spec = {.domain = ONNX, .op_type = old->op_type, .name = "",
                              .inputs = inputs, .input_count = old->input_count,
                              .outputs = &made, .output_count = 1, .attrs = old->attrs,
                              .attr_count = old->attr_count, .opset = old->opset,
                              .origin = old->origin};
        ORT_TRY(ort_edit_add_node(c->graph, &spec, NULL, err));
        *id = made;
    }
    return ORT_OK;
}

/* ---- rows of com.microsoft */

static ort_status add(ort_pass_context *c, const char *op_type, const ort_id *inputs, int count,
                      const ort_attr *set, int set_count, ort_id *result, ort_error *err)
{
    *result = ort_graph_add_value(c->graph, "");
    if (*result == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *result);
    ort_node_spec spec = {.domain = ONNX, .op_type = op_type, .name = "", .inputs = inputs,
                          .input_count = count, .outputs = result, .output_count = 1, .set = set,
                          .set_count = set_count};
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

/* 0, 1, 2 ... as [B,S] of this [B,S,h]; with B = 1 the number of the first, [1]. */
static ort_status number_rows(ort_pass_context *c, ort_id rows, ort_id *positions, ort_error *err)
{
    const ort_type *type = type_of(c, rows);
    const int64_t zero = 0, one = 1;
    ort_id shape, size, range[3], reshape[2];
    if (ort_dim_known(type->dim[0]) && type->dim[0].size == 1)
        return ort_constant_list(c->graph, &zero, 1, positions, err);
    ort_attr ends[2] = {{.name = "start", .type = ORT_ATTR_INT, .i = 0},
                        {.name = "end", .type = ORT_ATTR_INT, .i = 2}};
    ort_attr flat = {.name = "keepdims", .type = ORT_ATTR_INT, .i = 0};
    ort_tensor number = {.dtype = ORT_DTYPE_INT64, .shape = {.rank = 0},
                         .data = (void *)(uintptr_t)&zero};
    ORT_TRY(add(c, "Shape", &rows, 1, ends, 2, &shape, err));
    ORT_TRY(add(c, "ReduceProd", &shape, 1, &flat, 1, &size, err));
    ORT_TRY(ort_edit_add_constant(c->graph, "", &number, &range[0], err));
    number.data = (void *)(uintptr_t)&one;
    ORT_TRY(ort_edit_add_constant(c->graph, "", &number, &range[2], err));
    range[1] = size;
    ORT_TRY(add(c, "Range", range, 3, NULL, 0, &reshape[0], err));
    reshape[1] = shape;
    return add(c, "Reshape", reshape, 2, NULL, 0, positions, err);
}

/* [B,S,h] as [B*S,h]; a table of rows stays. */
static ort_status lay_rows(ort_pass_context *c, ort_id *rows, ort_error *err)
{
    const ort_type *type = type_of(c, *rows);
    ort_id inputs[2] = {*rows};
    if (type->rank == 2)
        return ORT_OK;
    const int64_t list[2] = {-1, type->dim[2].size};
    ORT_TRY(ort_constant_list(c->graph, list, 2, &inputs[1], err));
    return add(c, "Reshape", inputs, 2, NULL, 0, rows, err);
}

static const char *microsoft_fits(const ort_pass_context *c, const ort_type *x, const table *t)
{
    if (x->dtype != ORT_DTYPE_FLOAT)
        return "com.microsoft RotaryEmbedding would fit if it were float";
    if (!t->rows && !ort_dim_known(type_of(c, t->half)->dim[2]))
        return "the table's width isn't known";
    return !t->rows && ort_model_opset(c->graph->model, ONNX) < 15
               ? "what numbers the rows of its table came with opset 15" : NULL;
}

/* ---- the rotation */

/* x, and the tables as either operator wants them; the positions, or ORT_ID_NONE. */
static ort_status write_rotation(ort_pass_context *c, const ort_match *m, const table tables[2],
                                 bool microsoft, int opset, ort_error *err)
{
    ort_id x = ort_match_value(m, "x"), made[2], positions = tables[0].positions;
    for (int i = 0; i < 2; i++)
        ORT_TRY(write_table(c, &tables[i], &made[i], err));
    if (microsoft && positions == ORT_ID_NONE)
        ORT_TRY(number_rows(c, tables[0].half, &positions, err));
    for (int i = 0; i < 2 && microsoft; i++)
        ORT_TRY(lay_rows(c, &made[i], err));
    ort_id inputs[4] = {x, made[0], made[1], positions};
    ort_id others[4] = {x, positions, made[0], made[1]};
    ort_node_spec spec = {.domain = microsoft ? MS : ONNX, .op_type = "RotaryEmbedding",
                          .inputs = microsoft ? others : inputs,
                          .input_count = positions == ORT_ID_NONE ? 3 : 4, .opset = opset};
    return ort_match_replace(c, m, &spec, err);
}

static ort_status fuse_rotation(ort_pass_context *c, const ort_match *m, bool split, int *changes,
                                ort_error *err)
{
    table tables[2];
    const ort_type *x = ort_match_type(m, c->graph, "x");
    const char *why = check_halves(c, m, split);
    if (!why && (!read_table(c, ort_match_value(m, "cos"), x, &tables[0]) ||
                 !read_table(c, ort_match_value(m, "sin"), x, &tables[1]) ||
                 tables[0].positions != tables[1].positions || !tables[0].rows != !tables[1].rows))
        why = "the tables of angles aren't two equal halves for each token";
    int opset = why ? 0 : ort_pass_opset(c, m->nodes[0], ONNX, "RotaryEmbedding", 23);
    bool microsoft = !opset;
    if (!why && microsoft)
        why = microsoft_fits(c, x, &tables[0]);
    if (why)
        ort_pass_note(c, m->nodes[0], "%s", why);
    if (!why && microsoft)
        opset = ort_pass_opset(c, m->nodes[0], MS, "RotaryEmbedding", 1);
    if (!opset)
        return ORT_OK;
    ++*changes;
    return write_rotation(c, m, tables, microsoft, opset, err);
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
                           : fuse_rotation(c, m, f->flags & SPLIT, changes, err);
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
