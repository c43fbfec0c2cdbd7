/* opencl_attention.c - attention: scores by one product, softmax under what masks them, a product
 * of probabilities and values, one launch on a processor; and the operator of ONNX. Those of
 * com.microsoft are in opencl_attention_fused.c.
 */
#include "provider/opencl/sequence/opencl_attention.h"

#include <math.h>

#include "base/error.h"

/* One product for all heads of keys and one of the queries that share them. */
static void score(ort_cl_step *s, const ort_cl_heads *h, int scores, int64_t head)
{
    int64_t square = h->rows * h->keys;
    ort_cl_product p = {.batch1 = h->batch, .batch2 = h->heads, .m = h->rows, .n = h->keys,
                        .k = h->size, .a = h->q, .b = h->k, .b_input = -1,
                        .c = ort_cl_no_matrix(), .alpha = h->scale};
    p.a.start += head * h->q.batch2;
    p.a.batch2 *= h->shared;
    p.b.row = h->k.column; /* transposed */
    p.b.column = h->k.row;
    p.y = (ort_cl_matrix){scores, head * square, h->heads * h->shared * square, h->shared * square,
                          h->keys, 1};
    ort_cl_multiply(s, &p);
}

static void weigh(ort_cl_step *s, const ort_cl_heads *h, int scores, int64_t head)
{
    int64_t square = h->rows * h->keys;
    ort_cl_product p = {.batch1 = h->batch, .batch2 = h->heads, .m = h->rows, .n = h->value_size,
                        .k = h->keys, .b = h->v, .b_input = -1, .c = ort_cl_no_matrix(),
                        .y = h->out, .alpha = 1};
    p.a = (ort_cl_matrix){scores, head * square, h->heads * h->shared * square, h->shared * square,
                          h->keys, 1};
    p.y.start += head * h->out.batch2;
    p.y.batch2 *= h->shared;
    ort_cl_multiply(s, &p);
}

/* Scores become probabilities, or (stop) what is made probabilities of. */
static void mask_scores(ort_cl_step *s, const ort_cl_heads *h, int scores, bool stop)
{
    const int64_t grid[3] = {h->batch * h->heads * h->shared * h->rows, 1, 1};
    const ort_cl_mask *m = &h->mask;
    ort_cl_launch_grid(s, "gemm_attend", "attend", grid, NULL, "bbbb|iiiiiiiiiiiiiiiiff", scores,
                       m->kind ? m->buffer : scores, h->has_places ? h->places : scores,
                       h->has_sinks == ORT_CL_SINKS ? h->sinks : scores, (int64_t)m->kind, h->rows,
                       h->heads * h->shared, h->keys, m->batch, m->head, m->row, m->key, m->keys,
                       (int64_t)h->causal, h->past, (int64_t)h->has_places, h->left, h->right,
                       (int64_t)h->has_sinks, (int64_t)stop, h->softcap, m->filler);
}

static void show(ort_cl_step *s, const ort_cl_heads *h, int scores)
{
    int64_t all = h->batch * h->heads * h->shared * h->rows * h->keys;
    const ort_cl_walk w = {{1, 1, 1, 1, 1, all}, {0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 1}};
    ort_cl_move(s, scores, h->shown, w, 0, 0);
}

/* Scores as a result of a stage before the last: what remains to be done with them. */
static ort_cl_heads show_stage(ort_cl_step *s, const ort_cl_heads *h, int scores)
{
    ort_cl_heads rest = *h, part = *h;
    if (h->stage == 1) {
        part.mask.kind = ORT_CL_NO_MASK;
        part.causal = part.has_places = false;
        part.left = part.right = -1;
    } else if (h->stage == 2) {
        rest.mask.kind = ORT_CL_NO_MASK;
    }
    if (h->stage > 0) {
        mask_scores(s, &part, scores, true);
        rest.softcap = 0;
    }
    show(s, h, scores);
    return rest;
}

/* One kernel on a processor, since the two that it saves take time to begin: of tiles, or row by
 * row where there are few scores. Sums of rows are no longer than those of tiles (DEEP of
 * common.cl). */
enum { FEW_SCORES = 1024, FEW_KEYS = 128 }; /* for each unit of the device; of a row */

static bool attends_to_few(const ort_cl_step *s, const ort_cl_heads *h)
{
    int64_t scores = h->batch * h->heads * h->shared * h->rows * h->keys;
    return h->keys <= FEW_KEYS && scores <= (int64_t)s->plan->device->units * FEW_SCORES;
}

static bool attends_at_once(const ort_cl_step *s, const ort_cl_heads *h)
{
    const ort_cl_device *d = s->plan->device;
    return d->lanes && (d->chain != 1 || attends_to_few(s, h)) && !h->shows && h->size > 0 &&
           h->keys > 0 && h->q.column == 1 && h->k.column == 1 && h->v.column == 1 &&
           h->out.column == 1;
}

static void attend_at_once(ort_cl_step *s, const ort_cl_heads *h, int scores)
{
    const ort_cl_mask *m = &h->mask;
    int64_t heads = h->heads * h->shared, items = 8 * (int64_t)s->plan->device->units;
    int64_t each = (h->rows * heads * h->batch + items - 1) / items;
    bool few = attends_to_few(s, h);
    each = !few ? ort_cl_rows_of_item(s, h->rows, heads * h->batch)
           : each > h->rows ? h->rows : each > 0 ? each : 1;
    const int64_t grid[3] = {(h->rows + each - 1) / each, heads, h->batch};
    ort_cl_launch_grid(
        s, "gemm_attend", few ? "attend_few" : "attend_tiles", grid, NULL,
        "bbbbbbbb|iiiiiiiiiiiiiiiiiiiifiiiiiiiiiiiiiiiiff", h->q.buffer, h->k.buffer, h->v.buffer,
        h->out.buffer, scores, m->kind ? m->buffer : scores, h->has_places ? h->places : scores,
        h->has_sinks == ORT_CL_SINKS ? h->sinks : scores, h->q.start, h->q.batch1, h->q.batch2,
        h->q.row, h->k.start, h->k.batch1, h->k.batch2, h->k.row, h->v.start, h->v.batch1,
        h->v.batch2, h->v.row, h->out.start, h->out.batch1, h->out.batch2, h->out.row, h->size,
        h->value_size, h->shared, each, h->scale, (int64_t)m->kind, h->rows, heads, h->keys,
        m->batch, m->head, m->row, m->key, m->keys, (int64_t)h->causal, h->past,
        (int64_t)h->has_places, h->left, h->right, (int64_t)h->has_sinks, (int64_t)false,
        h->softcap, m->filler);
}

void ort_cl_attend(ort_cl_step *s, const ort_cl_heads *h)
{
    int scores = ort_cl_scratch(s, h->batch * h->heads * h->shared * h->rows * h->keys);
    ort_cl_heads rest = *h;
    if (attends_at_once(s, h)) {
        attend_at_once(s, h, scores);
        return;
    }
    for (int64_t i = 0; i < h->shared; i++)
        score(s, h, scores, i);
    if (h->shows && h->stage < 3)
        rest = show_stage(s, h, scores);
    mask_scores(s, &rest, scores, false);
    if (h->shows && h->stage == 3)
        show(s, h, scores);
    for (int64_t i = 0; i < h->shared; i++)
        weigh(s, h, scores, i);
}

void ort_cl_find_places(ort_cl_step *s, ort_cl_heads *h, int lengths, int how, int64_t plus,
                        int64_t least, int64_t size)
{
    const int64_t grid[3] = {h->batch, 1, 1};
    int fault, code = ort_cl_checks(s, least, size, &fault), from = ort_cl_read(s, lengths);
    h->has_places = true;
    h->places = ort_cl_scratch(s, 2 * h->batch * (s->half ? 2 : 1)); /* ints */
    ort_cl_launch_grid(s, "attention", "places", grid, NULL, "bbbiiiiii", from, h->places, fault,
                       (int64_t)code, (int64_t)how, plus, how == 3 ? h->rows : h->fresh, least,
                       size);
}

ort_cl_matrix ort_cl_heads_at(int buffer, const ort_fact *fact, int64_t count, int64_t rows,
                              int64_t size)
{
    if (fact->type.rank == 4)
        return (ort_cl_matrix){buffer, 0, count * rows * size, rows * size, size, 1};
    return (ort_cl_matrix){buffer, 0, rows * count * size, size, count * size, 1};
}

ort_cl_matrix ort_cl_heads_in(ort_cl_step *s, int input, int64_t count, int64_t rows, int64_t size)
{
    const ort_fact *fact = ort_cl_in(s, input);
    int64_t start, step;
    if (fact->type.rank == 4)
        return ort_cl_heads_at(ort_cl_read(s, input), fact, count, rows, size);
    int buffer = ort_cl_read_rows(s, input, &start, &step);
    return (ort_cl_matrix){buffer, start, rows * step, size, step, 1};
}

/* Rows of heads into [batch, heads, rows of both, size], behind `before` of them. */
static void append(ort_cl_step *s, const ort_cl_matrix *from, int to, const ort_cl_heads *h,
                   int64_t at, int64_t before, int64_t rows, int64_t size)
{
    ort_cl_walk w = {{1, 1, h->batch, h->heads, rows, size},
                     {0, 0, from->batch1, from->batch2, from->row, 1},
                     {0, 0, h->heads * h->keys * size, h->keys * size, size, 1}};
    ort_cl_move(s, from->buffer, to, w, from->start, at + before * size);
}

/* New rows at the place that a buffer tells. */
static void extend(ort_cl_step *s, const ort_cl_heads *h, const ort_cl_matrix *fresh,
                   const ort_cl_cache *c, int past, int to)
{
    const int64_t grid[3] = {ort_cl_along(s, c->size), h->keys * h->heads, h->batch};
    ort_cl_launch_grid(s, "attention", "extend", grid, NULL, "bbbbiiiiiiiiiiii",
                       past >= 0 ? past : fresh->buffer, fresh->buffer, h->places, to, c->past_from,
                       past >= 0 ? c->past_rows : 0, fresh->start, fresh->batch1, fresh->batch2,
                       fresh->row, h->fresh, c->present_from, h->heads, h->keys, c->size,
                       (int64_t)c->keep);
}

ort_cl_matrix ort_cl_whole(ort_cl_step *s, const ort_cl_heads *h, ort_cl_matrix fresh,
                           const ort_cl_cache *c, int to)
{
    int past = ort_cl_has(s->node, c->past) ? ort_cl_read(s, c->past) : -1;
    int64_t head = h->keys * c->size;
    const ort_cl_matrix all = {to, c->present_from, h->heads * head, head, c->size, 1};
    if (to < 0)
        return fresh;
    if (h->has_places) {
        extend(s, h, &fresh, c, past, to);
        return all;
    }
    if (past >= 0) {
        int64_t old = c->past_rows * c->size;
        const ort_cl_matrix from = {past, c->past_from, h->heads * old, old, c->size, 1};
        append(s, &from, to, h, c->present_from, 0, c->past_rows, c->size);
    }
    append(s, &fresh, to, h, c->present_from, c->past_rows, h->keys - c->past_rows, c->size);
    return all;
}

ort_cl_mask ort_cl_mask_of(ort_cl_step *s, int input)
{
    int64_t stride[4];
    if (!ort_cl_has(s->node, input))
        return (ort_cl_mask){0};
    const ort_type *type = &ort_cl_in(s, input)->type;
    ort_cl_spread(type, 4, stride);
    return (ort_cl_mask){type->dtype == ORT_DTYPE_BOOL ? ORT_CL_BOOLS : ORT_CL_FLOATS,
                         ort_cl_read(s, input), stride[0], stride[1], stride[2], stride[3],
                         type->dim[type->rank - 1].size, 0};
}

ort_status ort_cl_misfit(ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_DEVICE, "the shapes of its inputs don't fit together");
}

/* ---- Attention of ONNX */

enum { IN_MASK = 3, IN_PAST_K, IN_PAST_V, IN_VALID, OUT_K = 1, OUT_V, OUT_SCORES };

static bool claim_onnx(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "the element types have no kernel";
    for (int i = 0; i < node->input_count; i++)
        if (ort_cl_has(node, i) && i != IN_VALID &&
            ort_cl_type(graph, node, i) != ORT_DTYPE_FLOAT &&
            (i != IN_MASK || ort_cl_type(graph, node, i) != ORT_DTYPE_BOOL))
            return false;
    *why = "a mask of no axis, or of more than four, has no kernel";
    return !ort_cl_has(node, IN_MASK) ||
           (ort_cl_rank(graph, node, IN_MASK) >= 1 && ort_cl_rank(graph, node, IN_MASK) <= 4);
}

/* A cache of its own where there is a past and nobody wants the present one. */
static int place_for(ort_cl_step *s, const ort_cl_heads *h, const ort_cl_cache *c)
{
    if (ort_cl_gives(s->node, c->present))
        return ort_cl_write(s, c->present);
    return ort_cl_has(s->node, c->past) ? ort_cl_scratch(s, h->batch * h->heads * h->keys * c->size)
                                        : -1;
}

static bool mask_fits(const ort_cl_step *s, const ort_cl_heads *h)
{
    const int64_t most[4] = {h->batch, h->heads * h->shared, h->rows, h->keys};
    if (!ort_cl_has(s->node, IN_MASK))
        return true;
    const ort_type *type = &ort_cl_in(s, IN_MASK)->type;
    for (int d = 0; d < type->rank; d++) {
        int64_t size = type->dim[d].size, want = most[4 - type->rank + d];
        if (d == type->rank - 1 ? size > want : size != 1 && size != want)
            return false;
    }
    return true;
}

static ort_status read_shapes(const ort_cl_step *s, ort_cl_heads *h, ort_error *err)
{
    const ort_fact *q = ort_cl_in(s, 0), *k = ort_cl_in(s, 1), *v = ort_cl_in(s, 2);
    const ort_fact *past = ort_cl_in(s, IN_PAST_K), *past_v = ort_cl_in(s, IN_PAST_V);
    bool apart = q->type.rank == 4, kv_apart = k->type.rank == 4, v_apart = v->type.rank == 4;
    int64_t q_heads = apart ? ort_cl_dim(q, 1) : ort_node_int(s->node, "q_num_heads", 1);
    int64_t v_heads = v_apart ? ort_cl_dim(v, 1) : ort_node_int(s->node, "kv_num_heads", 1);
    h->heads = kv_apart ? ort_cl_dim(k, 1) : ort_node_int(s->node, "kv_num_heads", 1);
    h->batch = ort_cl_dim(q, 0);
    if (h->heads < 1 || q_heads % h->heads || v_heads != h->heads || h->batch != ort_cl_dim(k, 0) ||
        h->batch != ort_cl_dim(v, 0) || !past != !past_v)
        return ort_cl_misfit(err);
    h->shared = q_heads / h->heads;
    h->rows = ort_cl_dim(q, apart ? 2 : 1);
    h->fresh = ort_cl_dim(k, kv_apart ? 2 : 1);
    h->past = past ? ort_cl_dim(past, 2) : 0;
    h->keys = h->past + h->fresh;
    h->size = apart ? ort_cl_dim(q, 3) : ort_cl_dim(q, 2) / (q_heads ? q_heads : 1);
    h->value_size = v_apart ? ort_cl_dim(v, 3) : ort_cl_dim(v, 2) / h->heads;
    int64_t heads = h->batch * h->heads;
    bool fits = ort_cl_count(q) == heads * h->shared * h->rows * h->size &&
                ort_cl_count(k) == heads * h->fresh * h->size &&
                ort_cl_count(v) == heads * h->fresh * h->value_size &&
                (!past || (ort_cl_count(past) == heads * h->past * h->size &&
                           ort_cl_count(past_v) == heads * h->past * h->value_size)) &&
                (!ort_cl_has(s->node, IN_VALID) ||
                 (!past && ort_cl_count(ort_cl_in(s, IN_VALID)) == h->batch));
    return fits && mask_fits(s, h) ? ORT_OK : ort_cl_misfit(err);
}

static void show_scores(ort_cl_step *s, ort_cl_heads *h)
{
    h->shows = ort_cl_gives(s->node, OUT_SCORES);
    h->stage = (int)ort_node_int(s->node, "qk_matmul_output_mode", 0);
    if (h->shows)
        h->shown = ort_cl_write(s, OUT_SCORES);
}

static ort_status emit_onnx(ort_cl_step *s, ort_error *err)
{
    const ort_fact *q = ort_cl_in(s, 0);
    ort_cl_heads h = {.causal = ort_node_int(s->node, "is_causal", 0),
                      .softcap = ort_node_float(s->node, "softcap", 0),
                      .left = ort_node_int(s->node, "left_window_size", -1),
                      .right = ort_node_int(s->node, "right_window_size", -1)};
    ORT_TRY(read_shapes(s, &h, err));
    const ort_cl_cache keys = {IN_PAST_K, OUT_K, h.past, h.size, 0, 0, false};
    const ort_cl_cache values = {IN_PAST_V, OUT_V, h.past, h.value_size, 0, 0, false};
    h.q = ort_cl_heads_in(s, 0, h.heads * h.shared, h.rows, h.size);
    h.k = ort_cl_heads_in(s, 1, h.heads, h.fresh, h.size);
    h.v = ort_cl_heads_in(s, 2, h.heads, h.fresh, h.value_size);
    h.k = ort_cl_whole(s, &h, h.k, &keys, place_for(s, &h, &keys));
    h.v = ort_cl_whole(s, &h, h.v, &values, place_for(s, &h, &values));
    h.out = ort_cl_heads_at(ort_cl_write(s, 0), q, h.heads * h.shared, h.rows, h.value_size);
    h.mask = ort_cl_mask_of(s, IN_MASK);
    h.scale = ort_node_float(s->node, "scale", 0);
    if (!(h.scale > 0))
        h.scale = 1 / sqrt((double)(h.size ? h.size : 1));
    if (ort_cl_has(s->node, IN_VALID))
        ort_cl_find_places(s, &h, IN_VALID, 3, 0, 0, h.keys + 1);
    show_scores(s, &h);
    ort_cl_attend(s, &h);
    return ORT_OK;
}

const ort_cl_row ort_cl_attention_rows[] = {
    {ONNX, "Attention", claim_onnx, emit_onnx, .half = true},
    {0},
};
