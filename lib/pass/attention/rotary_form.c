/* rotary_form.c - x cos + rotate_half(x) sin becomes RotaryEmbedding where the opset has it (23),
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
#include "pass/attention/rotary_parts.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/rewrite.h"

static const ort_type *type_of(const ort_pass_context *c, ort_id id)
{
    return &c->graph->values.data[id]->fact.type;
}

/* ---- the tables */

static bool read_tables(const ort_pass_context *c, ort_match *m, ort_rotation *r)
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
static void find_joined(const ort_pass_context *c, ort_rotation *r)
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
static ort_status lay_result(ort_pass_context *c, const ort_rotation *r, const ort_attr *perm,
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
static ort_status write_inputs(ort_pass_context *c, const ort_rotation *r, bool microsoft,
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

static ort_status write_rotation(ort_pass_context *c, ort_match *m, const ort_rotation *r,
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
        return ort_match_replace(m, &spec, err);
    ort_id rotated = ort_graph_add_value(c->graph, ""), result = m->nodes[0]->outputs[0];
    if (rotated == ORT_ID_NONE)
        return ort_error_memory(err, sizeof rotated);
    spec.name = m->nodes[0]->name;
    spec.outputs = &rotated;
    spec.output_count = 1;
    spec.origin = ort_match_remove(m);
    if (!spec.origin)
        return ort_error_memory(err, 64);
    ORT_TRY(ort_edit_add_node(c->graph, &spec, NULL, err));
    return lay_result(c, r, &perm, rotated, result, err);
}

static ort_status fuse_rotation(ort_pass_context *c, ort_match *m, unsigned flags,
                                int *changes, ort_error *err)
{
    ort_rotation r;
    const char *why = ort_rotary_read_parts(c, m, flags, &r);
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

static ort_status widen(ort_pass_context *c, ort_match *m, bool split, int *changes,
                        ort_error *err)
{
    const ort_node *rotary = ort_match_node(m, "r");
    const ort_type *x = ort_match_type(m, "x");
    const ort_type *part = type_of(c, rotary->outputs[0]);
    bool microsoft = !strcmp(rotary->domain, MS);
    const char *why = NULL;
    if (x->kind != ORT_TYPE_TENSOR || x->rank != 4 || !ort_dim_known(x->dim[3]) ||
        part->rank != 4 || !ort_dim_known(part->dim[3]) || ort_node_has(rotary, "num_heads") ||
        ort_node_has(rotary, "rotary_embedding_dim"))
        return ORT_OK;
    why = ort_rotary_check_parts(c, m, split, x->dim[3].size, part->dim[3].size);
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
    return ort_match_replace(m, &spec, err);
}

/* ---- the rotation before the splitting of heads */

static ort_status before_heads(ort_pass_context *c, ort_match *m, int *changes,
                               ort_error *err)
{
    static const int64_t heads_first[4] = {0, 2, 1, 3};
    const ort_node *rotary = ort_match_node(m, "r"), *transpose = ort_match_node(m, "t");
    const ort_node *reshape = ort_match_node(m, "s");
    const ort_type *whole = ort_match_type(m, "x");
    const ort_type *parts = ort_match_type(m, "s");
    if (!ort_fact_permutes(transpose, heads_first, 4) || whole->rank != 3 ||
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

static ort_status write(ort_pass_context *c, ort_match *m, int *changes, ort_error *err)
{
    if (m->flags & ORT_FORM_HEADS)
        return before_heads(c, m, changes, err);
    return m->flags & ORT_FORM_PART ? widen(c, m, m->flags & ORT_FORM_SPLIT, changes, err)
                                    : fuse_rotation(c, m, m->flags, changes, err);
}

#define ROW(text, form, given) {text, .write = write, .flags = form, .example = given}
#define ANGLES(dims) "x:1,2,3,4 cos=0.5:" dims " sin=0.25:" dims " Concat.axis=-1 "
#define PAIRS(dims)                                                                                \
    "x:1,2,3,4 cos=0.5:" dims " sin=0.25:" dims " _=[0,0,3,4] Concat.axis=4 Unsqueeze.axes=4, "    \
    "opset=12; h = (Slice x [1] [99] [3] [2]); l = (Slice x [0] [99] [3] [2])"
#define TABLES(dims) "x:1,2,3,6 cos:" dims " sin:" dims " at=0:1,3.i64 Concat.axis=-1 "
#define SLICED "ls=[0] le=[4] la=[3] hs=[4] he=[6] ha=[3] opset=23"
#define SPLIT "opset=23; l,h = (Split x [4 2] axis=-1)"

static const ort_rewrite rewrites[] = {
    ROW("c:(Concat (Neg h:(Slice x #hs #he #ha ...)) l:(Slice x #ls #le #la ...)) * sin + x * cos",
        0, ANGLES("1,1,3,4") "hs=[2] he=[4] ha=[3] ls=[0] le=[2] la=[3] opset=23"),
    ROW("c:(Concat (Neg h) l:(Split x ...)) * sin + x * cos", ORT_FORM_SPLIT,
        ANGLES("1,1,3,4") "opset=23; l,h = (Split x [2 2] axis=-1)"),
    ROW("s:(Reshape k:(Concat (Unsqueeze (Neg h) ...) (Unsqueeze l ...)) _) * sin + x * cos",
        ORT_FORM_PAIRS, PAIRS("1,1,3,4")),
    ROW("(Reshape k:(Concat (Unsqueeze (l * cos - h * sin) ...) "
        "(Unsqueeze (h * cos + l * sin) ...)) _)", ORT_FORM_PAIRS | ORT_FORM_ONCE,
        PAIRS("1,1,3,2")),
    ROW("k:(Concat (l * cos - h * sin) (h * cos + l * sin))", ORT_FORM_ONCE,
        ANGLES("1,1,3,2") "opset=23; l,h = (Split x [2 2] axis=-1)"),
    ROW("r:(RotaryEmbedding t:(Transpose s:(Reshape x _)) cos sin ...)", ORT_FORM_HEADS,
        "x:1,3,8 _=[0,0,2,4] Transpose.perm=0,2,1,3 cos:1,3,2 sin:1,3,2 opset=23"),
    ROW("r:(ms.RotaryEmbedding t:(Transpose s:(Reshape x _)) at cos sin)", ORT_FORM_HEADS,
        "x:1,3,8 _=[0,0,2,4] Transpose.perm=0,2,1,3 at=0:1,3.i64 cos:3,2 sin:3,2 opset=17"),
    ROW("c:(Concat r:(RotaryEmbedding l:(Slice x #ls #le #la ...) cos sin ...) "
        "h:(Slice x #hs #he #ha ...))", ORT_FORM_PART, TABLES("1,3,2") SLICED),
    ROW("c:(Concat r:(ms.RotaryEmbedding l:(Slice x #ls #le #la ...) at cos sin) "
        "h:(Slice x #hs #he #ha ...))", ORT_FORM_PART, TABLES("3,2") SLICED),
    ROW("c:(Concat r:(RotaryEmbedding l:(Split x ...) cos sin ...) h)",
        ORT_FORM_PART | ORT_FORM_SPLIT, TABLES("1,3,2") SPLIT),
    ROW("c:(Concat r:(ms.RotaryEmbedding l:(Split x ...) at cos sin) h)",
        ORT_FORM_PART | ORT_FORM_SPLIT, TABLES("3,2") SPLIT),
    {0},
};

const ort_pass ort_pass_rotary_form = {
    .name = "rotary_form",
    .level = 2,
    .doc = "x cos + rotate_half(x) sin becomes RotaryEmbedding",
    .rewrites = rewrites,
};
