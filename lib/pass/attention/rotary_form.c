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
#include "pass/attention/heads.h"
#include "pass/attention/rotary_parts.h"
#include "pass/facts/facts.h"
#include "pass/facts/slice_cut.h"
#include "pass/facts/unread.h"

static const int64_t heads_first[4] = {0, 2, 1, 3};

static const ort_type *type_of(const ort_pass_context *c, ort_id id)
{
    return ort_fact_type(c->graph, id);
}

/* ---- the tables */

static bool read_tables(const ort_pass_context *c, ort_rotation *r)
{
    for (int way = r->joined != ORT_ID_NONE; way < 2; way++) {
        r->rows_first = way;
        if (ort_rotary_read_table(c, r->cos, &r->type, way, r->spread, &r->tables[0]) &&
            ort_rotary_read_table(c, r->sin, &r->type, way, r->spread, &r->tables[1]))
            return ort_rotary_alike(&r->tables[0], &r->tables[1]);
    }
    return false;
}

/* [B,S,H*D] that this [B,S,H,D] or [B,H,S,D] was made of; or ORT_ID_NONE. */
static ort_id joined(const ort_pass_context *c, ort_id id, bool rows_first)
{
    ort_heads parts = ort_heads_at(c->graph, id, rows_first ? "b s h d" : "b h s d", false);
    return ort_heads_back(c->graph, parts, "b s hd").id;
}

/* ---- the rotation */

/* Inputs as either operator wants them; how many, with positions or without. */
static int write_inputs(const ort_pass_context *c, ort_emit *e, const ort_rotation *r,
                        bool microsoft, ort_id x, ort_id inputs[4])
{
    ort_id made[2], positions = r->tables[0].positions;
    if (microsoft)
        ort_rotary_write_rows(e, r->tables, made, &positions);
    for (int i = 0; i < 2 && !microsoft; i++)
        made[i] = ort_rotary_write_table(c, e, &r->tables[i], &r->type, x);
    const ort_id ours[4] = {x, made[0], made[1], positions};
    const ort_id others[4] = {x, positions, made[0], made[1]};
    memcpy(inputs, microsoft ? others : ours, sizeof ours);
    return positions == ORT_ID_NONE ? 3 : 4;
}

/* The result [B,S,H*D] or [B,H,S,D] as the [B,S,H,D] that its readers know. */
static void lay_result(ort_emit *e, const ort_rotation *r, ort_id rotated, ort_id result)
{
    const int64_t list[4] = {0, 0, r->type.dim[2].size, r->type.dim[3].size};
    ort_attr perm = ort_attr_ints("perm", heads_first, 4);
    ort_id inputs[2] = {rotated};
    if (r->joined != ORT_ID_NONE)
        inputs[1] = ort_emit_ints(e, list, 4);
    if (r->joined == ORT_ID_NONE)
        ort_emit_op_as(e, "Transpose", inputs, 1, &perm, 1, result);
    else
        ort_emit_op_as(e, "Reshape", inputs, 2, NULL, 0, result);
}

/* The operator in the match's place, its result laid as that was. */
static ort_status replace(ort_emit *e, ort_match *m, const ort_rotation *r, ort_node_spec *spec)
{
    const ort_node *root = m->nodes[0];
    ort_id rotated, result = root->outputs[0];
    if (!r->rows_first)
        return ort_match_replace(m, spec, e->err);
    if ((rotated = ort_graph_add_value(e->graph, "")) == ORT_ID_NONE ||
        !(spec->origin = ort_match_remove(m)))
        return ort_error_memory(e->err, sizeof rotated);
    spec->name = root->name;
    spec->outputs = &rotated;
    spec->output_count = 1;
    ORT_TRY(ort_edit_add_node(e->graph, spec, NULL, e->err));
    lay_result(e, r, rotated, result);
    return e->status;
}

/* The parts that the match names go at once: as readers of x they would be in the way. */
static ort_status drop_parts(const ort_match *m, ort_id result, ort_error *err)
{
    ort_node *into = ort_edit_producer(m->graph, result);
    static const char *const names[] = {"l", "h"};
    for (int i = 0; i < 2; i++)
        ORT_TRY(ort_unread_drop(m->graph, into, ort_match_value(m, names[i]), err));
    return ORT_OK;
}

static ort_status write_rotation(ort_pass_context *c, ort_match *m, const ort_rotation *r,
                                 bool microsoft, int opset, ort_error *err)
{
    ort_emit e = ort_emit_to(c->graph, err);
    bool together = r->rows_first && r->joined != ORT_ID_NONE;
    ort_attr set[2] = {ort_attr_int("interleaved", r->pairs)};
    int sets = r->pairs;
    ort_id result = m->nodes[0]->outputs[0], x = together ? r->joined : r->x, inputs[4];
    if (r->rows_first && !together)
        x = ort_emit_transpose(&e, x, heads_first, 4);
    if (together && !microsoft)
        set[sets++] = ort_attr_int("num_heads", r->type.dim[2].size);
    int count = write_inputs(c, &e, r, microsoft, x, inputs);
    ort_node_spec spec = {.domain = microsoft ? MS : ONNX, .op_type = "RotaryEmbedding",
                          .inputs = inputs, .input_count = count, .set = set, .set_count = sets,
                          .opset = opset};
    ORT_TRY(e.status);
    ORT_TRY(replace(&e, m, r, &spec));
    return drop_parts(m, result, err);
}

static ort_status fuse_rotation(ort_pass_context *c, ort_match *m, int *changes, ort_error *err)
{
    ort_rotation r;
    const char *why = ort_rotary_read_parts(c->graph, m, &r);
    if (!why && !read_tables(c, &r))
        why = "the tables of angles aren't one number for each pair and token";
    if (!why && r.rows_first && r.joined == ORT_ID_NONE)
        r.joined = joined(c, r.x, true);
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

static ort_status widen(ort_pass_context *c, ort_match *m, int *changes, ort_error *err)
{
    const ort_node *rotary = ort_match_node(m, "r");
    ort_part low = ort_part_of(c->graph, ort_match_value(m, "l"));
    const ort_type *part = type_of(c, rotary->outputs[0]);
    bool microsoft = ort_edit_is(rotary, MS, "RotaryEmbedding");
    if (low.of == ORT_ID_NONE || !ort_fact_ranked(c->graph, low.of, 4) || part->rank != 4 ||
        !ort_dim_known(type_of(c, low.of)->dim[3]) || !ort_dim_known(part->dim[3]) ||
        ort_node_has(rotary, "num_heads") || ort_node_has(rotary, "rotary_embedding_dim"))
        return ORT_OK;
    const ort_type *x = type_of(c, low.of);
    const char *why = ort_rotary_check_parts(c->graph, m, low.of, part->dim[3].size);
    if (!why && microsoft && !ort_dim_known(x->dim[1]))
        why = "the number of heads isn't known";
    if (why) {
        ort_pass_note(c, m->nodes[0], "%s", why);
        return ORT_OK;
    }
    ort_id inputs[4], result = m->nodes[0]->outputs[0];
    memcpy(inputs, rotary->inputs, sizeof *inputs * (size_t)rotary->input_count);
    inputs[0] = low.of;
    const ort_attr set[2] = {ort_attr_int("rotary_embedding_dim", part->dim[3].size),
                             ort_attr_int("num_heads", x->dim[1].size)};
    ort_node_spec spec = ort_edit_again(rotary);
    spec.inputs = inputs;
    spec.set = set;
    spec.set_count = 1 + microsoft;
    ++*changes;
    ORT_TRY(ort_match_replace(m, &spec, err));
    return drop_parts(m, result, err);
}

/* ---- the rotation before the splitting of heads */

/* The same node with another first input, and `set` besides. *output: a new one if it is none. */
static ort_status again(ort_graph *graph, const ort_node *node, ort_id input, const ort_attr *set,
                        ort_id *output, ort_error *err)
{
    ort_node_spec spec = ort_edit_again(node);
    ort_id inputs[4];
    memcpy(inputs, node->inputs, sizeof *inputs * (size_t)node->input_count);
    inputs[0] = input;
    if (*output == ORT_ID_NONE && (*output = ort_graph_add_value(graph, "")) == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *output);
    spec.inputs = inputs;
    spec.outputs = output;
    spec.set = set;
    spec.set_count = set != NULL;
    return ort_edit_add_node(graph, &spec, NULL, err);
}

static ort_status before_heads(ort_pass_context *c, ort_match *m, int *changes, ort_error *err)
{
    const ort_node *rotary = ort_match_node(m, "r"), *transpose = ort_match_node(m, "t");
    const ort_node *reshape = ort_match_node(m, "s");
    const ort_type *parts = ort_match_type(m, "s");
    ort_id rotated = ORT_ID_NONE, split = ORT_ID_NONE, result = rotary->outputs[0];
    if (!ort_fact_permutes(transpose, heads_first, 4) || !ort_dim_known(parts->dim[2]) ||
        joined(c, transpose->outputs[0], false) != ort_match_value(m, "x") ||
        (ort_node_has(rotary, "num_heads") && !ort_node_has(rotary, "rotary_embedding_dim")))
        return ORT_OK;
    bool sized = ort_edit_is(rotary, MS, "RotaryEmbedding") &&
                 !ort_node_attr_int(rotary, "rotary_embedding_dim");
    ort_attr heads = ort_attr_int("num_heads", parts->dim[2].size);
    for (int i = 0; i < m->node_count; i++)
        ort_graph_remove_node(c->graph, m->nodes[i]);
    ++*changes;
    ORT_TRY(again(c->graph, rotary, ort_match_value(m, "x"), sized ? NULL : &heads, &rotated,
                  err));
    ORT_TRY(again(c->graph, reshape, rotated, NULL, &split, err));
    return again(c->graph, transpose, split, NULL, &result, err);
}

static ort_status write(ort_pass_context *c, ort_match *m, int *changes, ort_error *err)
{
    return m->flags & ORT_FORM_HEADS  ? before_heads(c, m, changes, err)
           : m->flags & ORT_FORM_PART ? widen(c, m, changes, err)
                                      : fuse_rotation(c, m, changes, err);
}

#define ROW(text, form, given) {text, .write = write, .flags = form, .example = given}
#define ANGLES(dims) "x:1,2,3,4 cos=0.5:" dims " sin=0.25:" dims " Concat.axis=-1 "
#define PAIRS(dims)                                                                                \
    "x:1,2,3,4 cos=0.5:" dims " sin=0.25:" dims " _=[0,0,3,4] Concat.axis=4 Unsqueeze.axes=4, "    \
    "opset=12; h = (Slice x [1] [99] [3] [2]); l = (Slice x [0] [99] [3] [2])"
#define HALVES "opset=23; l,h = (Split x [2 2] axis=-1)"
#define HEADS "x:1,3,8 _=[0,0,2,4] Transpose.perm=0,2,1,3 "
#define TABLES(dims)                                                                               \
    "x:1,2,3,6 cos:" dims " sin:" dims " at=0:1,3.i64 Concat.axis=-1 opset=23; "                   \
    "l,h = (Split x [4 2] axis=-1)"

static const ort_rewrite rewrites[] = {
    ROW("k:(Concat (Neg h) l) * sin + x * cos", 0, ANGLES("1,1,3,4") HALVES),
    ROW("(Reshape k:(Concat (Unsqueeze (Neg h) ...) (Unsqueeze l ...)) _) * sin + x * cos",
        ORT_FORM_PAIRS, PAIRS("1,1,3,4")),
    ROW("(Reshape k:(Concat (Unsqueeze (l * cos - h * sin) ...) "
        "(Unsqueeze (h * cos + l * sin) ...)) _)", ORT_FORM_PAIRS | ORT_FORM_ONCE,
        PAIRS("1,1,3,2")),
    ROW("k:(Concat (l * cos - h * sin) (h * cos + l * sin))", ORT_FORM_ONCE,
        ANGLES("1,1,3,2") HALVES),
    ROW("r:(RotaryEmbedding t:(Transpose s:(Reshape x _)) cos sin ...)", ORT_FORM_HEADS,
        HEADS "cos:1,3,2 sin:1,3,2 opset=23"),
    ROW("r:(ms.RotaryEmbedding t:(Transpose s:(Reshape x _)) at cos sin)", ORT_FORM_HEADS,
        HEADS "at=0:1,3.i64 cos:3,2 sin:3,2 opset=17"),
    ROW("k:(Concat r:(RotaryEmbedding l cos sin ...) h)", ORT_FORM_PART, TABLES("1,3,2")),
    ROW("k:(Concat r:(ms.RotaryEmbedding l at cos sin) h)", ORT_FORM_PART, TABLES("3,2")),
    {0},
};

const ort_pass ort_pass_rotary_form = {
    .name = "rotary_form",
    .level = 2,
    .doc = "x cos + rotate_half(x) sin becomes RotaryEmbedding",
    .rewrites = rewrites,
};
