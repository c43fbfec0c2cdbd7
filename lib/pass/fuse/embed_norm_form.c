/* embed_norm_form.c - LayerNormalization of a sum of embeddings takes the tables in.
 *
 *     LayerNormalization(Gather(words, ids) + Gather(places, positions) [+ Gather(kinds, types)])
 *     becomes EmbedLayerNormalization of com.microsoft
 *
 * Tables are constants [R,H]. The rows of places may be the first S of them instead: a constant
 * [1,S,H], a Slice from 0 on, or a Gather by numbers that count up from 0; the operator then needs
 * no positions. A row that all tokens get, as those of a kind that all are of, is added to the rows
 * of places, which must have no other reader. Where others read the sum, it is the operator's third
 * output. Indices must not be negative, which Gather would count from the end: the operator refuses
 * them.
 *
 * In a session a table may be of 16 bits, its rows widened before they are added: then it is the
 * operator of ORT_INTERNAL.
 *
 * onnxruntime 1.31 needs the place of mask_index among the outputs, so it is there, without a name.
 * On its CPU the operator takes 87 us where its parts take 62 (128 x 384, one thread), of a model
 * of many milliseconds; here it is the other way round.
 */
#pragma GCC optimize("Os") /* once a session or less */
#include "pass/fuse/embed_norm_form.h"

#include "base/error.h"
#include "graph/uses.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"

enum { ORDER_MAX = 1 << 16 }; /* elements of a constant list of positions */

/* All dims but the last `count` of the type are 1. */
static bool is_flat(const ort_type *type, int count)
{
    for (int d = 0; d < type->rank - count; d++)
        if (!ort_dim_is(type->dim[d], 1))
            return false;
    return ort_type_rank(type) >= count;
}

/* ---- rows from 0 on */

/* Do the elements count up from 0? */
static bool is_count(const ort_tensor *t)
{
    return t && ort_tensor_count(t) > 0 && ort_tensor_count(t) <= ORDER_MAX &&
           (t->dtype == ORT_DTYPE_INT64 || t->dtype == ORT_DTYPE_INT32) &&
           ort_tensor_counts_up(t);
}

/* A Slice of one axis, from 0 on by steps of 1. */
static bool is_head(const ort_graph *graph, const ort_node *slice, int axis)
{
    if (!ort_edit_is(slice, ONNX, "Slice") || slice->input_count < 4 ||
        !ort_fact_is_int(graph, slice, 1, 0))
        return false;
    int rank = ort_fact_type(graph, slice->inputs[0])->rank;
    return (ort_fact_is_int(graph, slice, 3, axis) ||
            ort_fact_is_int(graph, slice, 3, axis - rank)) &&
           (slice->input_count < 5 || ort_fact_is_int(graph, slice, 4, 1));
}

/* Positions 0..S-1 for each row: Range, or the head of a constant that counts up, with ones put
 * before. */
static bool counts_up(const ort_graph *graph, ort_id id)
{
    for (int depth = 0; depth < 8; depth++) {
        const ort_node *node = ort_edit_producer(graph, id);
        if (is_flat(ort_fact_type(graph, id), 1) && is_count(ort_fact_constant(graph, id)))
            return true;
        if (ort_edit_is(node, ONNX, "Range"))
            return ort_fact_is_int(graph, node, 0, 0) && ort_fact_is_int(graph, node, 2, 1);
        if (ort_edit_is(node, ONNX, "Slice")) {
            const ort_type *from = ort_fact_type(graph, node->inputs[0]);
            return is_flat(from, 1) && is_count(ort_fact_constant(graph, node->inputs[0])) &&
                   is_head(graph, node, from->rank - 1);
        }
        /* moves that only put ones before, or repeat the whole */
        if (!ort_edit_is_any(node, "Unsqueeze|Cast|Expand") ||
            !is_flat(ort_fact_type(graph, node->inputs[0]), 1))
            return false;
        const ort_type *in = ort_fact_type(graph, node->inputs[0]), *out = ort_fact_type(graph, id);
        if (ort_type_rank(out) < 1 ||
            !ort_dim_equal(in->dim[in->rank - 1], out->dim[out->rank - 1]))
            return false;
        id = node->inputs[0];
    }
    return false;
}

/* ---- terms of the sum */

typedef struct sum_type { /* [B,S,H] */
    ort_dim B, S, H;
} sum_type;

/* Was float, or is still to be widened. */
static bool is_real(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT || dtype == ORT_DTYPE_FLOAT16 || dtype == ORT_DTYPE_BFLOAT16;
}

static bool is_table(const ort_graph *graph, ort_id id, const sum_type *x)
{
    const ort_tensor *t = ort_fact_constant(graph, id);
    return t && t->shape.rank == 2 && is_real(t->dtype) && t->shape.dim[1] == x->H.size;
}

/* The rows that a Cast makes floats of, in a session. */
static ort_id unwidened(const ort_pass_context *c, ort_id id)
{
    const ort_node *cast = ort_edit_producer(c->graph, id);
    return !c->portable && ort_edit_is(cast, ONNX, "Cast") &&
                   is_real(ort_fact_type(c->graph, cast->inputs[0])->dtype)
               ? cast->inputs[0]
               : id;
}

static bool is_index(const ort_type *type, const sum_type *x, bool *per_batch)
{
    if (ort_type_rank(type) != 2 ||
        (type->dtype != ORT_DTYPE_INT64 && type->dtype != ORT_DTYPE_INT32) ||
        !ort_dim_equal(type->dim[1], x->S))
        return false;
    *per_batch = ort_dim_equal(type->dim[0], x->B);
    return *per_batch || ort_dim_is(type->dim[0], 1);
}

/* The rows 0..S-1 of a constant: the constant itself, or the head of one. */
static bool read_head(const ort_graph *graph, ort_id id, const sum_type *x, ort_embed_term *term)
{
    const ort_type *type = ort_fact_type(graph, id);
    const ort_tensor *t = ort_fact_constant(graph, id);
    const ort_node *node = ort_edit_producer(graph, id);
    if (!is_flat(type, 2) || type->rank > 3 || !ort_dim_equal(type->dim[type->rank - 2], x->S) ||
        !ort_dim_equal(type->dim[type->rank - 1], x->H))
        return false;
    *term = (ort_embed_term){id, ORT_ID_NONE};
    if (t) /* of three dims a copy is made: only of one that goes then */
        return is_real(t->dtype) &&
               (t->shape.rank == 2 || graph->values.data[id]->use_count == 1);
    if (ort_edit_is(node, ONNX, "Unsqueeze"))
        node = ort_edit_producer(graph, node->inputs[0]);
    term->table = node && node->input_count ? node->inputs[0] : ORT_ID_NONE;
    if (ort_edit_is(node, ONNX, "Gather"))
        return ort_node_attr_int(node, "axis") == 0 && is_table(graph, term->table, x) &&
               counts_up(graph, node->inputs[1]);
    return is_head(graph, node, 0) && is_table(graph, term->table, x);
}

/* per_batch: the index is [B,S]. */
static bool read_term(const ort_graph *graph, ort_id id, const sum_type *x, ort_embed_term *term,
                      bool *per_batch)
{
    const ort_node *node = ort_edit_producer(graph, id);
    *per_batch = false;
    if (read_head(graph, id, x, term))
        return true;
    if (!ort_edit_is(node, ONNX, "Gather") || ort_node_attr_int(node, "axis") != 0 ||
        !is_table(graph, node->inputs[0], x) ||
        !is_index(ort_fact_type(graph, node->inputs[1]), x, per_batch))
        return false;
    *term = (ort_embed_term){node->inputs[0], node->inputs[1]};
    if (counts_up(graph, node->inputs[1])) {
        term->index = ORT_ID_NONE;
        *per_batch = false;
    }
    return true;
}

/* The terms of a sum, at most three, in order; the inner Add must be read by the outer alone. */
static int terms_of(const ort_graph *graph, ort_id sum, ort_embedding *e, ort_id *ids)
{
    ort_node *add = ort_edit_producer(graph, sum), *inner = NULL;
    if (!ort_edit_is(add, ONNX, "Add") || add->opset < 7)
        return 0;
    e->adds[e->add_count++] = add;
    ids[0] = add->inputs[0];
    ids[1] = add->inputs[1];
    for (int slot = 0; slot < 2; slot++) {
        inner = ort_edit_producer(graph, add->inputs[slot]);
        if (!ort_edit_is(inner, ONNX, "Add") ||
            ort_edit_only_reader(graph, add->inputs[slot]) != add)
            continue;
        e->adds[e->add_count++] = inner;
        ids[2] = ids[1 - slot];
        ids[0] = inner->inputs[0];
        ids[1] = inner->inputs[1];
        return 3;
    }
    return 2;
}

static int64_t rows_of(const ort_graph *graph, const ort_embed_term *term)
{
    return ort_fact_constant(graph, term->table)->shape.dim[0];
}

/* Which is which matters to nobody but readers: places are what isn't told per token, else what
 * comes last; of the others the larger table is that of words. */
static bool sort_terms(const ort_graph *graph, const ort_embed_term *found, const bool *per_batch,
                       int count, ort_embedding *e)
{
    int places = count - 1, words = -1;
    for (int i = 0; i < count; i++) {
        if (per_batch[i])
            continue;
        if (!per_batch[places] && places != i)
            return false; /* two that aren't told per token */
        places = i;
    }
    for (int i = 0; i < count; i++)
        if (i != places && (words < 0 || rows_of(graph, &found[i]) > rows_of(graph, &found[words])))
            words = i;
    e->terms[ORT_EMBED_PLACES] = found[places];
    e->terms[ORT_EMBED_WORDS] = found[words];
    e->terms[ORT_EMBED_SEGMENTS] =
        count == 3 ? found[3 - places - words] : (ort_embed_term){ORT_ID_NONE, ORT_ID_NONE};
    return true;
}

static bool is_row(const ort_graph *graph, ort_id id, const sum_type *x)
{
    const ort_tensor *t = ort_fact_constant(graph, id);
    return id == ORT_ID_NONE || (t && ort_tensor_is_row(t, x->H.size));
}

/* One of three terms may be a row: it goes to e->row. How many are left. */
static int without_row(const ort_graph *graph, const sum_type *x, int count, ort_embedding *e,
                       ort_id *ids)
{
    for (int i = 0; i < count && count == 3; i++) {
        const ort_tensor *t = ort_fact_constant(graph, ids[i]);
        if (!t || t->dtype != ORT_DTYPE_FLOAT || !ort_tensor_is_row(t, x->H.size))
            continue;
        e->row = ids[i];
        ids[i] = ids[--count];
    }
    return count;
}

/* A table of floats that one node reads. */
static bool is_own(const ort_graph *graph, ort_id table)
{
    return ort_fact_type(graph, table)->dtype == ORT_DTYPE_FLOAT &&
           graph->values.data[table]->use_count == 1;
}

bool ort_embed_norm_read(const ort_pass_context *c, const ort_node *node, const ort_skip_norm *norm,
                         ort_embedding *e)
{
    const ort_graph *graph = c->graph;
    const ort_type *type = ort_fact_type(graph, norm->sum);
    ort_id ids[3];
    ort_embed_term found[3];
    bool per_batch[3];
    const char *why = NULL;
    int known = 0;
    *e = (ort_embedding){.row = ORT_ID_NONE};
    if (norm->rms || ort_type_rank(type) != 3 || type->dtype != ORT_DTYPE_FLOAT ||
        !ort_dim_known(type->dim[2]))
        return false;
    sum_type x = {type->dim[0], type->dim[1], type->dim[2]};
    int count = without_row(graph, &x, terms_of(graph, norm->sum, e, ids), e, ids);
    for (int i = 0; i < count; i++)
        known += read_term(graph, unwidened(c, ids[i]), &x, &found[i], &per_batch[i]);
    if (known < 2)
        return false;
    if (known < count)
        why = "one term of the sum isn't rows of a constant table";
    else if (!sort_terms(graph, found, per_batch, count, e))
        why = "two terms of the sum aren't chosen token by token";
    else if (e->row != ORT_ID_NONE && !is_own(graph, e->terms[ORT_EMBED_PLACES].table))
        why = "the table of positions, which the row of all tokens would join, isn't its own";
    else if (!is_row(graph, norm->gamma, &x) || !is_row(graph, norm->beta, &x))
        why = "scale or bias isn't a constant of the last axis";
    if (why)
        ort_pass_note(c, node, "%s", why);
    return !why && ort_pass_opset(c, node, MS, "EmbedLayerNormalization", 1);
}

/* ---- writing */

/* Indices as the int32 that the operator reads; tokens share the conversion, once merged. */
static ort_status as_int32(ort_pass_context *c, ort_id *id, ort_error *err)
{
    ort_attr to = ort_attr_int("to", ORT_DTYPE_INT32);
    if (*id == ORT_ID_NONE || ort_fact_type(c->graph, *id)->dtype == ORT_DTYPE_INT32)
        return ORT_OK;
    return ort_edit_add_result(c->graph, "Cast", id, 1, &to, 1, id, err);
}

static bool is_float(const ort_graph *graph, const ort_embed_term *term)
{
    return term->table == ORT_ID_NONE ||
           ort_fact_type(graph, term->table)->dtype == ORT_DTYPE_FLOAT;
}

static ort_status two_dims(ort_pass_context *c, ort_id *table, ort_error *err)
{
    const ort_tensor *t = ort_fact_constant(c->graph, *table);
    if (t->shape.rank == 2)
        return ORT_OK;
    return ort_constant_reshaped(c->graph, t, 2, t->shape.dim + t->shape.rank - 2, table, err);
}

/* The table with `row` added to each of its rows. */
static ort_status add_row(ort_pass_context *c, ort_id *table, ort_id row, ort_error *err)
{
    const ort_tensor *from = ort_fact_constant(c->graph, *table);
    const ort_tensor *r = ort_fact_constant(c->graph, row);
    ort_tensor made;
    if (row == ORT_ID_NONE)
        return ORT_OK;
    ORT_TRY(ort_edit_new_constant(c->graph, c->graph->values.data[*table]->name, from->dtype,
                                  &from->shape, &made, table, err));
    int64_t H = from->shape.dim[1];
    for (int64_t i = 0; i < ort_tensor_count(&made); i++)
        ort_tensor_set_f64(&made, i,
                           ort_tensor_get_f64(from, i) + ort_tensor_get_f64(r, i % H));
    return ORT_OK;
}

static ort_status row_or(ort_pass_context *c, ort_id id, int64_t size, double number, ort_id *row,
                         ort_error *err)
{
    *row = id;
    return id != ORT_ID_NONE
               ? ORT_OK
               : ort_constant_filled(c->graph, ORT_DTYPE_FLOAT, 1, &size, number, row, err);
}

ort_status ort_embed_norm_write(ort_pass_context *c, const ort_node *node, const ort_embedding *e,
                                const ort_skip_norm *norm, ort_id output, const char *origin,
                                ort_error *err)
{
    ort_graph *graph = c->graph;
    const ort_embed_term *words = &e->terms[ORT_EMBED_WORDS];
    const ort_embed_term *places = &e->terms[ORT_EMBED_PLACES];
    const ort_embed_term *segments = &e->terms[ORT_EMBED_SEGMENTS];
    const ort_graph_value *sum = graph->values.data[norm->sum];
    bool wanted = sum->is_output || sum->use_count > 0; /* the norm has gone */
    int64_t size = ort_fact_type(graph, norm->sum)->dim[2].size;
    ort_id inputs[9] = {words->index, segments->index, words->table, places->table,
                        segments->table, ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE, places->index};
    ort_id outputs[3] = {output, ORT_ID_NONE, wanted ? norm->sum : ORT_ID_NONE};
    bool same = is_float(graph, words) && is_float(graph, places) && is_float(graph, segments);
    static const int indices[3] = {0, 1, 8};
    for (int i = 0; i < 3; i++)
        ORT_TRY(as_int32(c, &inputs[indices[i]], err));
    ORT_TRY(two_dims(c, &inputs[3], err));
    ORT_TRY(add_row(c, &inputs[3], e->row, err));
    ORT_TRY(row_or(c, norm->gamma, size, 1, &inputs[5], err));
    ORT_TRY(row_or(c, norm->beta, size, 0, &inputs[6], err));
    for (int i = 0; i < e->add_count; i++)
        ort_graph_remove_node(graph, e->adds[i]);
    ort_attr epsilon = ort_attr_float("epsilon", (double)norm->epsilon);
    ort_node_spec spec = {.domain = same ? MS : ORT_INTERNAL,
                          .op_type = "EmbedLayerNormalization", .name = node->name,
                          .inputs = inputs, .input_count = inputs[8] == ORT_ID_NONE ? 7 : 9,
                          .outputs = outputs, .output_count = wanted ? 3 : 2, .set = &epsilon,
                          .set_count = 1, .opset = 1, .origin = origin};
    return ort_edit_add_node(graph, &spec, NULL, err);
}

/* ---- the pass */

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        ort_skip_norm norm;
        ort_embedding e;
        if (!ort_skip_norm_read(c->graph, node, &norm) || !ort_embed_norm_read(c, node, &norm, &e))
            continue;
        const char *origin = ort_edit_origin(c->graph, e.adds[0], node);
        ort_id output = node->outputs[0];
        ort_graph_remove_node(c->graph, node);
        ORT_TRY(ort_embed_norm_write(c, node, &e, &norm, output, origin, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_embed_norm_form = {
    .name = "embed_norm_form",
    .level = 2,
    .doc = "LayerNormalization takes in the embeddings whose sum it normalizes",
    .apply = apply,
};
