/* attention_match.c - softmax(q k^T scale + mask) v, read from its result upwards (see
 * attention_match.h): where the result, v, q and k lie, and whether all parts fit each other.
 *
 * Heads may be folded into the batch, [B*H,S,D] being a Reshape of [B,H,S,D], as for torch.bmm:
 * then the result is unfolded by its only reader, and the scores may be where a mask is added.
 * torch.nn.MultiheadAttention computes with steps first: x [S,B,E] becomes [S,B*H,D] by a Reshape
 * and [B*H,S,D] by a Transpose, and the result goes back the same way. Of a single query (a
 * decoder's step) heads are split off and put together by a Reshape alone: where batch and heads
 * are folded, q has no form of four dims, and is taken as it was before (ort_attention.row).
 */
#pragma GCC optimize("Os") /* once a session or less */
#include "pass/attention/attention_match.h"

#include <math.h>

#include "pass/attention/heads.h"
#include "pass/facts/facts.h"

/* How the parts lie; what isn't read yet, or isn't there, has no id. */
typedef struct operands {
    const ort_graph *graph;
    const ort_node *root; /* the product with v */
    ort_heads q, k, v, result;
    bool steps;
} operands;

static const ort_type *type_of(const operands *o, ort_id id)
{
    return ort_fact_type(o->graph, id);
}

static bool is_there(const ort_heads *heads)
{
    return heads->id != ORT_ID_NONE;
}

/* ---- q and k */

static bool is_turned(const ort_node *product)
{
    return ort_edit_is(product, MS, "FusedMatMul") && ort_node_attr_int(product, "transB");
}

/* Input `slot` of the product of q and k, as it lies there. */
static ort_heads operand(const operands *o, const ort_node *product, int slot)
{
    bool columns = slot == 1 && !is_turned(product);
    bool folded = ort_fact_ranked(o->graph, product->outputs[0], 3);
    return ort_heads_at(o->graph, product->inputs[slot],
                        columns ? (folded ? "bh d s" : "b h d s") : folded ? "bh s d" : "b h s d",
                        true);
}

/* The product with v, or v, as it lies there. */
static ort_heads at_root(const operands *o, ort_id id)
{
    bool folded = ort_fact_ranked(o->graph, o->root->outputs[0], 3);
    return ort_heads_at(o->graph, id, folded ? "bh s d" : "b h s d", false);
}

static bool read_steps(operands *o, const ort_node *product)
{
    const char *const first = "s b hd";
    ort_heads result = ort_heads_forth(o->graph, at_root(o, o->root->outputs[0]),
                                       "s bh d|s b h d");
    if (!is_there(&result) || is_turned(product))
        return false;
    ort_heads q = ort_heads_back(o->graph, operand(o, product, 0), first);
    ort_heads k = ort_heads_back(o->graph, operand(o, product, 1), first);
    ort_heads v = ort_heads_back(o->graph, at_root(o, o->root->inputs[1]), first);
    if (!is_there(&q) || !is_there(&k) || !is_there(&v) || !ort_dim_known(q.count) ||
        !ort_dim_equal(q.count, k.count) || !ort_dim_equal(q.count, v.count))
        return false;
    *o = (operands){.graph = o->graph, .root = o->root, .q = q, .k = k, .v = v, .result = result,
                    .steps = true};
    return true;
}

/* A row of q that is parted into heads as k is. */
static bool is_row_of(const operands *o, const ort_heads *q, const ort_heads *k)
{
    return ort_dim_known(q->count) && ort_dim_equal(q->count, k->count) &&
           ort_dim_equal(type_of(o, q->id)->dim[0], type_of(o, k->id)->dim[0]);
}

static const char *read_folded(operands *o, const ort_node *product)
{
    o->k = ort_heads_back(o->graph, operand(o, product, 1), "bh s d");
    if (!is_there(&o->k))
        return "the keys aren't transposed, or in another way";
    o->k = ort_heads_back(o->graph, o->k, "b h s d");
    o->q = ort_heads_back(o->graph, operand(o, product, 0), "b h s d|b s hd");
    if (!is_there(&o->q) || !is_there(&o->k) ||
        (type_of(o, o->q.id)->rank == 3 && !is_row_of(o, &o->q, &o->k)))
        return "batch and heads of q and k aren't known to be folded into one dimension";
    return NULL;
}

static const char *read_apart(operands *o, const ort_node *product)
{
    o->q = ort_heads_back(o->graph, operand(o, product, 0), "b h s d");
    o->k = operand(o, product, 1);
    if (!is_there(&o->q) || !is_there(&o->k))
        return "q, k and v don't have four dimensions";
    o->k = ort_heads_back(o->graph, o->k, "b h s d|b s h d|b s hd");
    bool bare = is_there(&o->k) && type_of(o, o->k.id)->rank == 3;
    return !is_there(&o->k) || (bare && !ort_dim_is(o->k.count, 1))
               ? "the keys aren't transposed, or in another way" : NULL;
}

static bool read_operands(ort_attention_reader *r, const ort_attention_scores *s)
{
    operands *o = r->arg;
    if (read_steps(o, s->product))
        return true;
    const char *why = ort_fact_ranked(o->graph, s->product->outputs[0], 3)
                          ? read_folded(o, s->product) : read_apart(o, s->product);
    if (why)
        r->why = why;
    return !why;
}

/* v [B,H,T,E], and the result as [B,H,S,E] (or one row of heads together), of folded products. */
static bool read_folded_result(operands *o)
{
    o->v = ort_heads_back(o->graph, o->v, "b h s d");
    o->result = ort_heads_forth(o->graph, o->result, "b h s d|b s hd");
    return is_there(&o->v) && is_there(&o->result) &&
           (type_of(o, o->result.id)->rank == 4 || is_row_of(o, &o->result, &o->v));
}

/* ---- do they fit? */

/* Certainly the same: 1 broadcasts in a product, but not in the operator. */
static bool same_heads(const ort_type *a, int a_axis, const ort_type *b, int b_axis)
{
    return ort_dim_equal(a->dim[0], b->dim[0]) && ort_dim_equal(a->dim[a_axis], b->dim[b_axis]);
}

/* The mask of windows, [1,n,1 or H,S or 1,T] or without the 1, of dims that are known. Scores are
 * parted by a Reshape, so their batch is n times that of images whatever the symbols say. */
static bool window_fits(const ort_graph *graph, const ort_attention_terms *t, ort_dtype dtype)
{
    const ort_type *mask = ort_fact_type(graph, t->window), *apart = ort_fact_type(graph, t->apart);
    if (mask->kind != ORT_TYPE_TENSOR || mask->rank < 4 || mask->rank > 5 || mask->dtype != dtype)
        return false;
    for (int d = 1; d < 5; d++) {
        ort_dim size = mask->dim[mask->rank - 5 + d];
        bool one = size.size == 1 && d != 1 && d != 4;
        if (!ort_dim_known(size) || (!one && !ort_dim_equal(size, apart->dim[d])))
            return false;
    }
    return mask->rank == 4 || ort_dim_is(mask->dim[0], 1);
}

static bool scales_heads(const ort_graph *graph, ort_id scales, const ort_type *q)
{
    const ort_type *type = ort_fact_type(graph, scales);
    return type->dtype == q->dtype && ort_dim_equal(type->dim[type->rank - 3], q->dim[1]);
}

/* Is it [B*H,S,T], added to scores of these dims? */
static bool fits_folded(const ort_graph *graph, const ort_attention_terms *t, ort_id mask)
{
    const ort_type *type = ort_fact_type(graph, mask);
    const ort_type *scores = t->unfold ? ort_fact_type(graph, t->unfold->inputs[0]) : NULL;
    return scores && type->dtype == scores->dtype && ort_facts_same_shape(type, scores);
}

/* Have k and v one head, which the products spread over those of q? */
static bool is_shared(const ort_graph *graph, const ort_attention *a)
{
    const ort_type *q = ort_fact_type(graph, a->q), *k = ort_fact_type(graph, a->k);
    const ort_type *v = ort_fact_type(graph, a->v);
    return q->rank == 4 && k->rank == 4 && v->rank == 4 && a->head_scale == ORT_ID_NONE &&
           ort_dim_known(q->dim[1]) && q->dim[1].size > 1 &&
           ort_dim_is(k->dim[a->k_is_rows ? 2 : 1], 1) && ort_dim_is(v->dim[1], 1) &&
           ort_dim_equal(q->dim[0], k->dim[0]) && ort_dim_equal(q->dim[0], v->dim[0]);
}

static const char *check_heads(const ort_graph *graph, const ort_attention *a, ort_id whole)
{
    const ort_type queries = ort_attention_queries(graph, a), *q = &queries;
    const ort_type *k = ort_fact_type(graph, a->k), *v = ort_fact_type(graph, a->v);
    if (whole != ORT_ID_NONE && !same_heads(ort_fact_type(graph, whole), 1, q, 1))
        return "the scores aren't unfolded to the batch and heads of q";
    if (a->row && !a->joined)
        return "the heads of the result aren't put together as those of q were split off";
    bool bare = a->k_is_rows && k->rank == 3;
    if (q->rank != 4 || (k->rank != 4 && !bare) || v->rank != 4 || v->kind != ORT_TYPE_TENSOR)
        return "q, k and v don't have four dimensions";
    bool same = bare ? ort_dim_is(q->dim[1], 1) && ort_dim_equal(q->dim[0], k->dim[0])
                     : same_heads(q, 1, k, a->k_is_rows ? 2 : 1);
    if (!a->shared && (!same || !same_heads(q, 1, v, 1)))
        return "batch or heads of q, k and v may differ";
    return NULL;
}

/* Folded scores apart again, as batch and heads of q are. */
static ort_type unfolded(const ort_graph *graph, const ort_attention *a, const ort_type *scores)
{
    ort_type type = scores->rank == 3 ? ort_attention_queries(graph, a) : *scores;
    if (scores->rank == 3) {
        type.dim[2] = scores->dim[1];
        type.dim[3] = scores->dim[2];
    }
    return type;
}

static const char *check_terms(const ort_graph *graph, const ort_attention *a,
                               const ort_type *given, const ort_attention_zeros *zeros)
{
    const ort_attention_terms *t = &a->terms;
    const ort_type scores = unfolded(graph, a, given), q = ort_attention_queries(graph, a);
    for (int i = 0; i < t->mask_count; i++)
        if (!ort_attention_mask_fits(ort_fact_type(graph, t->masks[i]), &scores, q.dtype) &&
            !fits_folded(graph, t, t->masks[i]))
            return "the mask isn't one that broadcasts onto the scores";
    if (t->zeroed && (zeros->zeroed != t->keep || zeros->where_true != t->keep_is_inverse))
        return "probabilities are put to 0 elsewhere than scores are lowered";
    if (t->window != ORT_ID_NONE && !window_fits(graph, t, scores.dtype))
        return "the mask of windows isn't one for each of them";
    if (t->keep != ORT_ID_NONE &&
        !ort_attention_mask_fits(ort_fact_type(graph, t->keep), &scores, ORT_DTYPE_BOOL))
        return "the condition isn't one that broadcasts onto the scores";
    if (t->keep != ORT_ID_NONE && t->window != ORT_ID_NONE)
        return "it has a mask of windows and a condition";
    if (a->head_scale != ORT_ID_NONE && (a->row || !scales_heads(graph, a->head_scale, &q)))
        return "the scales aren't one for each head";
    return NULL;
}

/* With steps first. Keys are told apart from other masks at once: those may be [B*H,1,T]. */
static const char *check_steps(const ort_pass_context *c, ort_attention *a, ort_id whole)
{
    const char *const other = "the mask isn't one of keys, nor one that broadcasts onto the scores";
    const ort_type *q = ort_fact_type(c->graph, a->q), *k = ort_fact_type(c->graph, a->k);
    const ort_type *v = ort_fact_type(c->graph, a->v);
    if (!ort_dim_equal(q->dim[1], k->dim[1]) || !ort_dim_equal(q->dim[1], v->dim[1]) ||
        !ort_dim_equal(k->dim[0], v->dim[0]))
        return "batch or heads of q, k and v may differ";
    a->terms = ort_attention_take_keys(c, a);
    for (int i = 0; i < a->terms.mask_count; i++)
        if (!ort_attention_is_mask(c->graph, a, a->terms.masks[i]))
            return other;
    if (a->head_scale != ORT_ID_NONE)
        return "heads of steps are scaled one by one";
    return a->terms.window != ORT_ID_NONE || a->terms.keep != ORT_ID_NONE ||
                   whole != ORT_ID_NONE || a->terms.zeroed
               ? other : NULL;
}

/* ---- the whole */

static ort_attention put_together(const operands *o, const ort_attention_scores *s,
                                  const ort_attention_zeros *zeros)
{
    const ort_type *product = type_of(o, s->product->outputs[0]);
    ort_attention a = {
        .root = ort_edit_producer(o->graph, o->result.id), .q = o->q.id, .k = o->k.id,
        .v = o->v.id, .steps = o->steps, .T = product->dim[product->rank - 1],
        .parted = o->steps ? o->result.id : ORT_ID_NONE, .scale = s->scale * o->q.factor *
        o->k.factor, .softcap = s->softcap, .head_scale = s->head_scale, .terms = s->terms,
        .cache = {ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE}};
    a.row = !o->steps && type_of(o, a.q)->rank == 3;
    a.joined = !o->steps && type_of(o, o->result.id)->rank == 3;
    a.k_is_rows = !o->steps && strncmp(o->k.lie, "b h", 3);
    a.q_heads = a.steps || a.row ? o->q.count.size : 0;
    a.kv_heads = a.steps ? o->q.count.size : 0;
    a.shared = !o->steps && is_shared(o->graph, &a);
    a.terms.zeroed = zeros->zeroed != ORT_ID_NONE;
    a.guarded = zeros->guarded;
    return a;
}

static const char *check(const ort_pass_context *c, ort_attention *a, const operands *o,
                         const ort_attention_scores *s, const ort_attention_zeros *zeros)
{
    const ort_type *p = ort_fact_type(c->graph, a->softmax->outputs[0]);
    bool folded = ort_fact_ranked(c->graph, o->root->outputs[0], 3), steps = a->steps;
    const char *why = steps ? check_steps(c, a, s->whole) : check_heads(c->graph, a, s->whole);
    if (!why && !steps)
        why = check_terms(c->graph, a, p, zeros);
    if (!why && !(isfinite(a->scale) && a->scale > 0))
        why = "the scale isn't a positive number";
    if (!why && folded && !steps && !a->joined &&
        (a->row || !same_heads(type_of(o, o->result.id), 1, type_of(o, a->q), 1)))
        why = "the result isn't unfolded to the batch and heads of q";
    if (!why && s->floored && !ort_attention_masks_finitely(c->graph, &a->terms))
        why = "its scores have a lowest number, and its mask isn't known to be finite";
    return why;
}

bool ort_attention_match(const ort_pass_context *c, ort_node *root, ort_attention *a,
                         const char **why)
{
    const ort_graph *graph = c->graph;
    ort_attention_zeros zeros;
    ort_attention_scores s;
    operands o = {.graph = graph, .root = root};
    ort_attention_reader r = {.graph = graph, .operands = read_operands, .arg = &o};
    ort_id whole;
    *why = NULL;
    ort_node *softmax = ort_attention_read_behind(graph, root, &zeros, &whole, why);
    if (!ort_edit_is(softmax, ONNX, "Softmax"))
        return false;
    const ort_type *p = ort_fact_type(graph, softmax->outputs[0]);
    bool folded = ort_fact_ranked(graph, root->outputs[0], 3);
    if (p->kind != ORT_TYPE_TENSOR || (p->rank != 4 && !folded))
        *why = "the scores don't have four dimensions";
    else if (!ort_fact_along_last(softmax, p->rank))
        *why = "the softmax isn't over the keys";
    if (*why)
        return false;
    o.v = at_root(&o, root->inputs[1]);
    o.result = at_root(&o, root->outputs[0]);
    bool unfolded_result = !folded || read_folded_result(&o);
    if (!ort_attention_read_scores(&r, softmax->inputs[0], softmax, &s)) {
        *why = r.why ? r.why : "the scores aren't those of a product, scaled and masked";
        return false;
    }
    if (!unfolded_result && !o.steps) {
        *why = "batch and heads of v and the result aren't known to be folded into one dimension";
        return false;
    }
    if (!is_there(&o.v)) {
        *why = "q, k and v don't have four dimensions";
        return false;
    }
    if (s.whole == ORT_ID_NONE)
        s.whole = whole;
    *a = put_together(&o, &s, &zeros);
    a->softmax = softmax;
    *why = check(c, a, &o, &s, &zeros);
    return !*why;
}
