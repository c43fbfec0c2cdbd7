/* attention_match.c - reading softmax(q k^T scale + mask) v from its result upwards (see
 * attention_match.h). On the way from the Softmax to the product of q and k come, outermost first,
 *
 *     + mask               any number of them, a mask being what isn't derived from the product
 *     Where(keep, s, low)  low so low that a score vanishes beside it
 *     c tanh(s / c)        softcap
 *     * scale, / scale     a constant; and on q, on k before or after its transposition
 *     * scales             a constant for each head, which q is multiplied by instead
 *
 * Which operand of a sum is the product is found by trying both. The product may be a FusedMatMul
 * already. What may stand behind the Softmax, attention_behind.c reads.
 *
 * Heads may be folded into the batch, [B*H,S,D] being a Reshape of [B,H,S,D], as for torch.bmm:
 * then the result is unfolded by its only reader, and the scores may be where a mask is added.
 * Windows of an image (Swin) are of its batch; where their mask is added, scores are [B/n,n,H,S,T].
 */
#include "pass/attention/attention_match.h"

#include <float.h>
#include <math.h>

#include "graph/uses.h"
#include "op/edit.h"

#define LOW (-1e9) /* a score beside it is lost in rounding */

typedef struct walk {
    const ort_graph *graph;
    ort_attention *a;
    ort_id sums[ORT_ATTENTION_MASKS]; /* scores with masks, one for each mask */
    ort_id folded;   /* the scores as [B*H,S,T], where they are unfolded; or ORT_ID_NONE */
    ort_id unfolded; /* the scores as [B,H,S,T], where they are folded elsewhere; or ORT_ID_NONE */
    ort_id apart;    /* the scores to which a->window is added */
} walk;

static const ort_type *type_of(const walk *w, ort_id id)
{
    return &w->graph->values.data[id]->fact.type;
}

/* ---- the product of q and k */

static ort_id unscaled(walk *w, ort_id id)
{
    return ort_attention_unscaled(w->graph, id, w->a);
}

static bool folds(const walk *w, ort_id wide, ort_id folded)
{
    return ort_attention_folds(w->graph, wide, folded);
}

/* The [B,H,S,D] of this [B*H,S,D], or ORT_ID_NONE. */
static ort_id unfold(walk *w, ort_id id)
{
    ort_node *reshape = ort_edit_producer(w->graph, id);
    if (!ort_edit_is(reshape, ONNX, "Reshape") || !folds(w, reshape->inputs[0], id))
        return ORT_ID_NONE;
    ort_attention_drop(w->a, reshape);
    return reshape->inputs[0];
}

static bool is_one(ort_dim dim)
{
    return ort_dim_known(dim) && dim.size == 1;
}

/* Keys of one head that are transposed before it is split off: the Transpose 0,2,1 of a [B,T,D]
 * whose result is reshaped to this [B,1,D,T]; or NULL. */
static ort_node *turned_early(walk *w, ort_id id)
{
    static const int64_t swap[3] = {0, 2, 1};
    ort_node *reshape = ort_edit_producer(w->graph, id);
    if (!ort_edit_is(reshape, ONNX, "Reshape") && !ort_edit_is(reshape, ONNX, "Unsqueeze"))
        return NULL;
    ort_node *turn = ort_edit_producer(w->graph, unscaled(w, reshape->inputs[0]));
    if (!ort_attention_has_perm(turn, swap, 3))
        return NULL;
    const ort_type *from = type_of(w, turn->outputs[0]), *to = type_of(w, id);
    if (!is_one(to->dim[1]) || !ort_dim_equal(from->dim[0], to->dim[0]) ||
        !ort_dim_equal(from->dim[1], to->dim[2]) || !ort_dim_equal(from->dim[2], to->dim[3]))
        return NULL;
    ort_attention_drop(w->a, reshape);
    return turn;
}

/* FusedMatMul q k^T, or q times what is turned already. */
static bool is_fused_product(const ort_node *node)
{
    return ort_edit_is(node, MS, "FusedMatMul") && !ort_node_int(node, "transA", 0) &&
           !ort_node_int(node, "transBatchA", 0) && !ort_node_int(node, "transBatchB", 0);
}

/* The keys before the product or a Transpose turned them; ORT_ID_NONE: none does. *rows: their
 * Transpose is one by `rows`, if that is given, instead of `swap`. */
static ort_id unturned(walk *w, ort_node *product, int rank, const int64_t *swap,
                       const int64_t *by_rows, bool *rows)
{
    ort_id k = unscaled(w, product->inputs[1]);
    ort_node *t = ort_edit_producer(w->graph, k);
    if (ort_edit_is(product, MS, "FusedMatMul") && ort_node_int(product, "transB", 0))
        return k;
    ort_node *early = by_rows ? turned_early(w, k) : NULL;
    t = early ? early : t;
    *rows = early || (by_rows && ort_attention_has_perm(t, by_rows, (size_t)rank));
    if (!*rows && !ort_attention_has_perm(t, swap, (size_t)rank)) {
        w->a->why = "the keys aren't transposed, or in another way";
        return ORT_ID_NONE;
    }
    ort_attention_drop(w->a, t);
    return unscaled(w, t->inputs[0]);
}

static bool read_folded(walk *w, ort_node *product)
{
    static const int64_t swap[3] = {0, 2, 1};
    ort_attention *a = w->a;
    bool rows;
    ort_id turned = unturned(w, product, 3, swap, NULL, &rows);
    if (turned == ORT_ID_NONE)
        return false;
    ort_id k = unfold(w, turned);
    ort_id folded = unscaled(w, product->inputs[0]), q = unfold(w, folded);
    if (q == ORT_ID_NONE && k != ORT_ID_NONE)
        q = ort_attention_row_unfold(w->graph, folded, k, a);
    if (q == ORT_ID_NONE || k == ORT_ID_NONE) {
        a->why = "batch and heads of q and k aren't known to be folded into one dimension";
        return false;
    }
    a->T = type_of(w, product->outputs[0])->dim[2];
    a->q = unscaled(w, q);
    a->k = unscaled(w, k);
    return true;
}

static bool read_product(walk *w, ort_node *product)
{
    static const int64_t swap[4] = {0, 1, 3, 2}, rows[4] = {0, 2, 3, 1};
    ort_attention *a = w->a;
    if (ort_edit_is(product, MS, "FusedMatMul"))
        a->scale *= (double)ort_node_float(product, "alpha", 1);
    if (!ort_node_int(product, "transB", 0) && ort_attention_read_steps(w->graph, a, product))
        return true;
    if (ort_attention_ranked(w->graph, product->outputs[0], 3))
        return read_folded(w, product);
    if (!ort_attention_ranked(w->graph, product->inputs[0], 4) ||
        !ort_attention_ranked(w->graph, product->inputs[1], 4)) {
        a->why = "q, k and v don't have four dimensions";
        return false;
    }
    a->q = unscaled(w, product->inputs[0]);
    a->k = unturned(w, product, 4, swap, rows, &a->k_is_rows);
    a->T = type_of(w, product->outputs[0])->dim[3];
    return a->k != ORT_ID_NONE;
}

/* ---- what is done to the scores */

static bool read_scores(walk *w, ort_id id, const ort_node *reader, int depth);

static bool take(ort_attention *a, ort_node *node)
{
    if (a->core_count == ORT_ATTENTION_READ)
        return false;
    a->core[a->core_count++] = node;
    return true;
}

/* c tanh(s / c): s is read from the Tanh. */
static bool read_softcap(walk *w, ort_node *tanh, const ort_node *mul, double cap, int depth)
{
    double factor;
    ort_node *div = ort_edit_producer(w->graph, tanh->inputs[0]);
    int slot = div ? ort_attention_scaled(w->graph, div, &factor) : -1;
    if (slot < 0 || fabs(factor * cap - 1) > 1e-5 || w->a->softcap > 0 || !(cap > 0) ||
        ort_edit_only_reader(w->graph, tanh->outputs[0]) != mul ||
        ort_edit_only_reader(w->graph, div->outputs[0]) != tanh || !take(w->a, tanh) ||
        !take(w->a, div))
        return false;
    w->a->softcap = cap;
    return read_scores(w, div->inputs[slot], div, depth);
}

/* Factors for each head, [H,1,1]: the slot of what they multiply; -1: it isn't that. */
static int head_scaled(const walk *w, const ort_node *node)
{
    const ort_type *scores = type_of(w, node->outputs[0]);
    if (!ort_edit_is(node, ONNX, "Mul") || scores->kind != ORT_TYPE_TENSOR || scores->rank < 4)
        return -1;
    for (int slot = 0; slot < 2; slot++) {
        const ort_tensor *t = ort_edit_constant(w->graph, node, 1 - slot);
        int rank = t ? t->shape.rank : 0;
        if (rank >= 3 && rank <= 4 && t->shape.dim[rank - 3] > 1 &&
            ort_tensor_count(t) == t->shape.dim[rank - 3])
            return slot;
    }
    return -1;
}

static bool read_head_scaled(walk *w, ort_node *node, int slot, int depth)
{
    if (w->a->head_scale != ORT_ID_NONE || w->a->softcap > 0)
        return false;
    w->a->head_scale = node->inputs[1 - slot];
    return read_scores(w, node->inputs[slot], node, depth);
}

/* Has a factor been read, which a sum or condition further inside would be multiplied by? */
static bool is_scaled(const ort_attention *a)
{
    return a->scale != 1 || a->softcap > 0 || a->head_scale != ORT_ID_NONE;
}

static bool read_scaled(walk *w, ort_node *node, int slot, double factor, int depth)
{
    ort_node *inner = ort_edit_producer(w->graph, node->inputs[slot]);
    if (ort_edit_is(inner, ONNX, "Tanh"))
        return !is_scaled(w->a) && read_softcap(w, inner, node, factor, depth);
    w->a->scale *= factor;
    return read_scores(w, node->inputs[slot], node, depth);
}

static bool read_sum(walk *w, ort_node *node, int depth)
{
    ort_attention before = *w->a;
    ort_id unfolded = w->unfolded;
    bool apart = ort_attention_ranked(w->graph, node->outputs[0], 5);
    if (before.mask_count == ORT_ATTENTION_MASKS || is_scaled(&before) ||
        (apart && before.window != ORT_ID_NONE))
        return false; /* a mask inside of the scale or softcap */
    for (int slot = 0; slot < 2; slot++) {
        if (apart) {
            w->a->window = node->inputs[1 - slot];
            w->apart = node->outputs[0];
        } else {
            w->sums[w->a->mask_count] = node->outputs[0];
            w->a->masks[w->a->mask_count++] = node->inputs[1 - slot];
        }
        if (read_scores(w, node->inputs[slot], node, depth))
            return true;
        const char *why = w->a->why;
        *w->a = before;
        w->a->why = why;
        w->unfolded = unfolded;
    }
    return false;
}

static bool read_where(walk *w, ort_node *node, int depth)
{
    double low;
    if (w->a->keep != ORT_ID_NONE || is_scaled(w->a))
        return false;
    for (int slot = 1; slot < 3; slot++)
        if (ort_attention_number_at(w->graph, node, 3 - slot, &low)) {
            if (!(low <= LOW))
                w->a->why = "what stands for a masked score isn't low enough";
            w->a->keep = node->inputs[0];
            w->a->masks_outside = w->a->mask_count;
            w->a->fill = node->inputs[3 - slot];
            w->a->keep_is_inverse = slot == 2;
            return low <= LOW && read_scores(w, node->inputs[slot], node, depth);
        }
    return false;
}

/* Max(s, the lowest number): of numbers that are finite it changes none. */
static bool read_floor(walk *w, const ort_node *node, int depth)
{
    double low;
    for (int slot = 0; slot < 2 && node->input_count == 2; slot++)
        if (ort_attention_number_at(w->graph, node, 1 - slot, &low) && low <= (double)-FLT_MAX) {
            w->a->floored = true;
            return read_scores(w, node->inputs[slot], node, depth);
        }
    return false;
}

/* Is `apart` [B/n,n,H,S,T] and `whole` [B,H,S,T]? */
static bool parts_windows(const walk *w, ort_id apart, ort_id whole)
{
    const ort_type *from = type_of(w, apart), *to = type_of(w, whole);
    if (!ort_attention_ranked(w->graph, apart, 5) || !ort_attention_ranked(w->graph, whole, 4))
        return false;
    for (int d = 1; d < 4; d++)
        if (!ort_dim_equal(from->dim[d + 1], to->dim[d]))
            return false;
    return true;
}

/* Scores folded or unfolded, or windows apart from images or together. */
static bool read_fold(walk *w, ort_node *reshape, int depth)
{
    ort_id in = reshape->inputs[0], out = reshape->outputs[0];
    if (parts_windows(w, in, out) || parts_windows(w, out, in))
        return read_scores(w, in, reshape, depth);
    bool folding = folds(w, in, out);
    if (!folding && !folds(w, out, in))
        return false;
    w->unfolded = folding ? in : out;
    if (!folding) {
        w->folded = in;
        w->a->unfold = reshape;
        w->a->folded = type_of(w, in)->dim[0];
    }
    return read_scores(w, in, reshape, depth);
}

static bool read_scores(walk *w, ort_id id, const ort_node *reader, int depth)
{
    double factor;
    ort_node *node = ort_edit_producer(w->graph, id);
    if (!node || depth > 8 || ort_edit_only_reader(w->graph, id) != reader || !take(w->a, node))
        return false;
    int slot = ort_attention_scaled(w->graph, node, &factor);
    if (ort_edit_is(node, ONNX, "MatMul") || is_fused_product(node))
        return read_product(w, node);
    if (slot >= 0)
        return read_scaled(w, node, slot, factor, depth + 1);
    if ((slot = head_scaled(w, node)) >= 0)
        return read_head_scaled(w, node, slot, depth + 1);
    if (ort_edit_is(node, ONNX, "Add"))
        return read_sum(w, node, depth + 1);
    if (ort_edit_is(node, ONNX, "Reshape"))
        return read_fold(w, node, depth + 1);
    if (ort_edit_is(node, ONNX, "Max"))
        return read_floor(w, node, depth + 1);
    return ort_edit_is(node, ONNX, "Where") && read_where(w, node, depth + 1);
}

/* ---- conditions */

static bool mask_fits(const walk *w, ort_id mask, const ort_type *scores, ort_dtype dtype)
{
    return ort_attention_mask_fits(type_of(w, mask), scores, dtype);
}

/* The mask of windows, [1,n,1 or H,S or 1,T] or without the 1, of dims that are known. Scores are
 * parted by a Reshape, so their batch is n times that of images whatever the symbols say. */
static bool window_fits(const walk *w, const ort_type *scores)
{
    ort_attention *a = w->a;
    const ort_type *mask = type_of(w, a->window), *apart = type_of(w, w->apart);
    if (mask->kind != ORT_TYPE_TENSOR || mask->rank < 4 || mask->rank > 5 ||
        mask->dtype != scores->dtype)
        return false;
    a->images = apart->dim[0];
    for (int d = 1; d < 5; d++) {
        ort_dim size = mask->dim[mask->rank - 5 + d];
        bool one = size.size == 1 && d != 1 && d != 4;
        if (!ort_dim_known(size) || (!one && !ort_dim_equal(size, apart->dim[d])))
            return false;
    }
    return mask->rank == 4 || (ort_dim_known(mask->dim[0]) && mask->dim[0].size == 1);
}

/* Certainly the same: 1 broadcasts in a product, but not in the operator. */
static bool same_heads(const ort_type *a, int a_axis, const ort_type *b, int b_axis)
{
    return ort_dim_equal(a->dim[0], b->dim[0]) && ort_dim_equal(a->dim[a_axis], b->dim[b_axis]);
}

/* Folded scores apart again, as batch and heads of q are. */
static ort_type unfolded_scores(const walk *w, const ort_type *scores)
{
    ort_type type = *scores;
    if (scores->rank == 3) {
        type = ort_attention_queries(w->graph, w->a);
        type.dim[2] = scores->dim[1];
        type.dim[3] = scores->dim[2];
    }
    return type;
}

static bool scales_heads(const walk *w, const ort_type *q)
{
    const ort_type *scales = type_of(w, w->a->head_scale);
    return scales->dtype == q->dtype &&
           ort_dim_equal(scales->dim[scales->rank - 3], q->dim[1]);
}

/* Is mask i [B*H,S,T], added to scores of these dims? */
static bool fits_folded(const walk *w, int i)
{
    const ort_type *mask = type_of(w, w->a->masks[i]);
    if (w->folded == ORT_ID_NONE || !ort_attention_ranked(w->graph, w->sums[i], 3) ||
        !ort_attention_ranked(w->graph, w->a->masks[i], 3))
        return false;
    const ort_type *scores = type_of(w, w->folded);
    for (int d = 0; d < 3; d++)
        if (!ort_dim_equal(mask->dim[d], scores->dim[d]))
            return false;
    return mask->dtype == scores->dtype;
}

/* Have k and v one head, which the products spread over those of q? */
static bool is_shared(const walk *w)
{
    const ort_attention *a = w->a;
    const ort_type *q = type_of(w, a->q), *k = type_of(w, a->k), *v = type_of(w, a->v);
    if (q->rank != 4 || k->rank != 4 || v->rank != 4 || v->kind != ORT_TYPE_TENSOR ||
        a->head_scale != ORT_ID_NONE)
        return false;
    return ort_dim_known(q->dim[1]) && q->dim[1].size > 1 &&
           is_one(k->dim[a->k_is_rows ? 2 : 1]) && is_one(v->dim[1]) &&
           ort_dim_equal(q->dim[0], k->dim[0]) && ort_dim_equal(q->dim[0], v->dim[0]);
}

static const char *check(const walk *w, const ort_type *given)
{
    ort_attention *a = w->a;
    a->shared = is_shared(w);
    const ort_type whole = unfolded_scores(w, given), *scores = &whole;
    const ort_type queries = ort_attention_queries(w->graph, a), *q = &queries;
    const ort_type *k = type_of(w, a->k), *v = type_of(w, a->v);
    if (w->unfolded != ORT_ID_NONE && !same_heads(type_of(w, w->unfolded), 1, q, 1))
        return "the scores aren't unfolded to the batch and heads of q";
    if (a->row && !a->joined)
        return "the heads of the result aren't put together as those of q were split off";
    bool bare = a->k_is_rows && k->rank == 3;
    if (q->rank != 4 || (k->rank != 4 && !bare) || v->rank != 4 || v->kind != ORT_TYPE_TENSOR)
        return "q, k and v don't have four dimensions";
    bool same = bare ? is_one(q->dim[1]) && ort_dim_equal(q->dim[0], k->dim[0])
                     : same_heads(q, 1, k, a->k_is_rows ? 2 : 1);
    if (!a->shared && (!same || !same_heads(q, 1, v, 1)))
        return "batch or heads of q, k and v may differ";
    for (int i = 0; i < a->mask_count; i++)
        if (!mask_fits(w, a->masks[i], scores, q->dtype) && !fits_folded(w, i))
            return "the mask isn't one that broadcasts onto the scores";
    if (a->zeroed != ORT_ID_NONE &&
        (a->zeroed != a->keep || a->zeroed_where_true != a->keep_is_inverse))
        return "probabilities are put to 0 elsewhere than scores are lowered";
    if (a->window != ORT_ID_NONE && !window_fits(w, scores))
        return "the mask of windows isn't one for each of them";
    if (a->keep != ORT_ID_NONE && !mask_fits(w, a->keep, scores, ORT_DTYPE_BOOL))
        return "the condition isn't one that broadcasts onto the scores";
    if (a->keep != ORT_ID_NONE && a->window != ORT_ID_NONE)
        return "it has a mask of windows and a condition";
    if (a->head_scale != ORT_ID_NONE && (a->row || !scales_heads(w, q)))
        return "the scales aren't one for each head";
    return isfinite(a->scale) && a->scale > 0 ? NULL : "the scale isn't a positive number";
}

static const char *check_steps(const ort_pass_context *c, const walk *w)
{
    ort_attention *a = w->a;
    const ort_type *q = type_of(w, a->q), *k = type_of(w, a->k), *v = type_of(w, a->v);
    ort_type scores = ort_attention_queries(w->graph, a);
    scores.dim[3] = a->T;
    if (!ort_dim_equal(q->dim[1], k->dim[1]) || !ort_dim_equal(q->dim[1], v->dim[1]) ||
        !ort_dim_equal(k->dim[0], v->dim[0]))
        return "batch or heads of q, k and v may differ";
    (void)ort_attention_take_keys(c, a);
    for (int i = 0; i < a->mask_count; i++)
        if (!mask_fits(w, a->masks[i], &scores, q->dtype))
            return "the mask isn't one of keys, nor one that broadcasts onto the scores";
    if (a->head_scale != ORT_ID_NONE)
        return "heads of steps are scaled one by one";
    if (a->window != ORT_ID_NONE || a->keep != ORT_ID_NONE || w->unfolded != ORT_ID_NONE ||
        a->zeroed != ORT_ID_NONE)
        return "the mask isn't one of keys, nor one that broadcasts onto the scores";
    return isfinite(a->scale) && a->scale > 0 ? NULL : "the scale isn't a positive number";
}

/* v [B,H,T,E], and the Reshape of the result to [B,H,S,E] (or one row of heads together) as the
 * root; false: they aren't there. */
static bool read_folded_result(walk *w, ort_node *product)
{
    ort_attention *a = w->a;
    ort_node *reshape = ort_edit_only_reader(w->graph, product->outputs[0]);
    ort_id v = unfold(w, a->v);
    if (v == ORT_ID_NONE || !ort_edit_is(reshape, ONNX, "Reshape"))
        return false;
    a->joined = ort_attention_row_unfolded(w->graph, product->outputs[0], v) != NULL;
    if (!a->joined && !folds(w, reshape->outputs[0], product->outputs[0]))
        return false;
    a->v = v;
    a->root = reshape;
    a->core[0] = reshape;
    a->core[a->core_count++] = product;
    return true;
}

/* Has the result batch and heads as q has? Those of one row were compared with v's. */
static bool is_unfolded(const walk *w, ort_id result)
{
    return w->a->joined ||
           (!w->a->row && same_heads(type_of(w, result), 1, type_of(w, w->a->q), 1));
}

bool ort_attention_match(const ort_pass_context *c, ort_node *root, ort_attention *a)
{
    walk w = {.graph = c->graph, .a = a, .folded = ORT_ID_NONE, .unfolded = ORT_ID_NONE,
              .apart = ORT_ID_NONE};
    *a = (ort_attention){.root = root, .v = root->inputs[1], .keep = ORT_ID_NONE,
                         .window = ORT_ID_NONE, .fill = ORT_ID_NONE, .scale = 1,
                         .head_scale = ORT_ID_NONE, .keys = {.id = ORT_ID_NONE},
                         .zeroed = ORT_ID_NONE, .empty = ORT_ID_NONE, .past_k = ORT_ID_NONE,
                         .past_v = ORT_ID_NONE, .present_k = ORT_ID_NONE,
                         .present_v = ORT_ID_NONE, .parted = ORT_ID_NONE, .core = {root},
                         .core_count = 1};
    ort_node *softmax = ort_attention_read_behind(c->graph, a, &w.unfolded);
    if (!ort_edit_is(softmax, ONNX, "Softmax"))
        return false;
    const ort_type *p = type_of(&w, softmax->outputs[0]);
    int64_t axis = ort_node_int(softmax, "axis", softmax->opset >= 13 ? -1 : 1);
    bool folded = ort_attention_ranked(c->graph, root->outputs[0], 3);
    if (p->kind != ORT_TYPE_TENSOR || (p->rank != 4 && !folded))
        a->why = "the scores don't have four dimensions";
    else if (axis != -1 && axis != p->rank - 1)
        a->why = "the softmax isn't over the keys";
    bool unfolded = !a->why && folded && read_folded_result(&w, root);
    if (a->why || !take(a, softmax))
        return false;
    if (!read_scores(&w, softmax->inputs[0], softmax, 0)) {
        if (!a->why)
            a->why = "the scores aren't those of a product, scaled and masked";
        return false;
    }
    if (folded && !unfolded && !a->steps)
        a->why = "batch and heads of v and the result aren't known to be folded into one dimension";
    else
        a->why = a->steps ? check_steps(c, &w) : check(&w, p);
    if (!a->why && unfolded && !is_unfolded(&w, a->root->outputs[0]))
        a->why = "the result isn't unfolded to the batch and heads of q";
    if (!a->why && a->floored && !ort_attention_masks_finitely(c, a))
        a->why = "its scores have a lowest number, and its mask isn't known to be finite";
    return !a->why;
}
