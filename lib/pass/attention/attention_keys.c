/* attention_keys.c - masks that say of each key whether it counts, for all heads and queries alike:
 *
 *     (1 - Cast(Unsqueeze(keys))) * low       Where(Equal(keys, 0), low, zeros)       and so on
 *
 * where keys is [B,T], of conditions or of integers that are 1 or 0. Operators of com.microsoft
 * take keys itself, as int32, and the low number as mask_filter_value. How a mask is spelled
 * doesn't matter: it is computed for a key that is 0 and for one that isn't (mask_cases.h). Numbers
 * of tokens aren't mistaken for keys, unless they are such: ids == 0.
 */
#include "pass/attention/attention_match.h"
#include "pass/attention/mask_cases.h"
#include "pass/facts/facts.h"
#include "tensor/scalar.h"

typedef struct placing {
    ort_dim B, T;
    int64_t heads;  /* that may be folded into the batch; or 0 */
    ort_dim folded; /* B times heads */
} placing;

/* [B*H,1,T] */
static bool is_folded(const ort_cases_reader *r, ort_id id)
{
    const placing *k = r->arg;
    const ort_type *type = ort_fact_type(r->graph, id);
    return k->heads && ort_fact_ranked(r->graph, id, 3) && ort_dim_is(type->dim[1], 1) &&
           ort_dim_equal(type->dim[0], k->folded) && ort_dim_equal(type->dim[2], k->T);
}

/* [B,...,T] */
static bool is_placed(const ort_cases_reader *r, ort_id id)
{
    const placing *k = r->arg;
    const ort_type *type = ort_fact_type(r->graph, id);
    return is_folded(r, id) ||
           (type->kind == ORT_TYPE_TENSOR && type->rank >= 2 &&
            ort_dim_equal(type->dim[0], k->B) && ort_dim_equal(type->dim[type->rank - 1], k->T));
}

/* [B,1,1,T], which has the elements of [B,T] in their order. */
static bool is_thin(const ort_cases_reader *r, ort_id id)
{
    const ort_type *type = ort_fact_type(r->graph, id);
    for (int d = 1; is_placed(r, id) && d < type->rank - 1; d++)
        if (!ort_dim_is(type->dim[d], 1))
            return false;
    return is_placed(r, id);
}

static bool is_integer(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_INT32 || dtype == ORT_DTYPE_INT64;
}

/* The keys: those that are 0 are the first case. */
static bool read_leaf(ort_cases_reader *r, ort_id id, ort_cases *s)
{
    const ort_type *type = ort_fact_type(r->graph, id);
    if (type->rank != 2 || !is_placed(r, id) || (r->source != ORT_ID_NONE && r->source != id) ||
        (!is_integer(type->dtype) && type->dtype != ORT_DTYPE_BOOL))
        return false;
    r->source = id;
    *s = (ort_cases){{0, 1}, true, is_integer(type->dtype), false};
    return true;
}

/* [B,H,1,T] to [B*H,1,T] */
static bool folds(const ort_cases_reader *r, const ort_node *node)
{
    const ort_type *in = ort_fact_type(r->graph, node->inputs[0]);
    return is_folded(r, node->outputs[0]) && in->rank == 4 &&
           ort_dim_is(in->dim[1], ((const placing *)r->arg)->heads) && ort_dim_is(in->dim[2], 1);
}

static bool keeps_place(const ort_cases_reader *r, const ort_node *node)
{
    ort_id in = node->inputs[0], out = node->outputs[0];
    if (ort_edit_is(node, ONNX, "Expand"))
        return ort_fact_type(r->graph, in)->rank == ort_fact_type(r->graph, out)->rank;
    return ort_edit_is_any(node, "Unsqueeze|Squeeze") || folds(r, node) ||
           (is_thin(r, in) && is_thin(r, out));
}

/* Is `id`, of as many dims as the scores or folded, made of keys? */
static bool reads_keys(const ort_graph *graph, const ort_attention *a, ort_id id, ort_cases *s,
                       ort_id *source)
{
    placing k = {.B = ort_attention_queries(graph, a).dim[0], .T = a->T};
    ort_cases_reader r = {.graph = graph, .source = ORT_ID_NONE, .leaf = read_leaf,
                          .is_placed = is_placed, .keeps_place = keeps_place, .from_front = true,
                          .arg = &k};
    if (a->steps) {
        k.heads = a->q_heads;
        k.folded = ort_dim_mul(graph->model->dims, k.B, ort_dim_of(k.heads));
    }
    bool found = ort_cases_read(&r, id, s) && s->varies &&
                 (ort_fact_ranked(graph, id, 4) || is_folded(&r, id));
    *source = r.source;
    return found;
}

/* Is `id`, summed onto the scores, made of keys, and 0 for those that count? */
static bool reads_sum(const ort_graph *graph, const ort_attention *a, ort_id id,
                      ort_attention_keys *taken)
{
    ort_cases s;
    ort_id source;
    if (!reads_keys(graph, a, id, &s, &source))
        return false;
    bool inverted = s.at[0] == 0;
    *taken = (ort_attention_keys){source, inverted, s.at[inverted ? 1 : 0]};
    return s.at[inverted ? 0 : 1] == 0 && taken->low < 0;
}

/* Mask i, or one of the two that it is the sum of. */
static bool take_mask(const ort_graph *graph, const ort_attention *a, ort_attention_terms *t, int i)
{
    if (reads_sum(graph, a, t->masks[i], &t->keys)) {
        t->masks[i] = t->masks[--t->mask_count];
        return true;
    }
    const ort_node *add = ort_edit_producer(graph, t->masks[i]);
    if (a->steps || !ort_edit_is(add, ONNX, "Add") || add->opset < 7)
        return false;
    for (int slot = 0; slot < 2; slot++)
        if (ort_attention_is_mask(graph, a, add->inputs[1 - slot]) &&
            reads_sum(graph, a, add->inputs[slot], &t->keys)) {
            t->masks[i] = add->inputs[1 - slot];
            return true;
        }
    return false;
}

static bool take_condition(const ort_graph *graph, const ort_attention *a, ort_attention_terms *t)
{
    ort_cases s;
    ort_id source;
    double filled;
    if (!ort_tensor_one_f64(graph->values.data[t->fill]->fact.value, &filled) ||
        !reads_keys(graph, a, t->keep, &s, &source) || s.at[0] == s.at[1])
        return false;
    t->keys = (ort_attention_keys){source, (s.at[0] != 0) != t->keep_is_inverse, filled};
    t->keep = ORT_ID_NONE;
    return true;
}

ort_attention_terms ort_attention_take_keys(const ort_pass_context *c, const ort_attention *a)
{
    ort_attention_terms t = a->terms;
    bool together = a->q_heads && !a->steps && !a->row, condition = t.keep != ORT_ID_NONE;
    if (t.keys.id != ORT_ID_NONE || t.zeroed || together || (condition && t.mask_count))
        return t; /* a condition and masks have an order */
    bool taken = condition && take_condition(c->graph, a, &t);
    for (int i = 0; i < t.mask_count && !taken; i++)
        taken = take_mask(c->graph, a, &t, i);
    if (!taken)
        t.keys.id = ORT_ID_NONE;
    return t;
}

/* ---- writing */

void ort_attention_lower_keys(ort_emit *e, ort_attention *a)
{
    static const int64_t middle[2] = {1, 2};
    ort_attention_keys *keys = &a->terms.keys;
    ort_id counts = ort_emit_cast(e, keys->id, ORT_DTYPE_BOOL);
    ort_id zero = ort_emit_number(e, a->q, 0), low = ort_emit_number(e, a->q, keys->low);
    ort_id mask = ort_emit_op3(e, "Where", counts, keys->inverted ? low : zero,
                               keys->inverted ? zero : low);
    a->terms.masks[a->terms.mask_count++] = ort_emit_unsqueeze(e, mask, middle, 2);
    keys->id = ORT_ID_NONE;
}

ort_id ort_attention_write_keys(ort_emit *e, const ort_attention_keys *keys)
{
    ort_id id = keys->id;
    if (id == ORT_ID_NONE)
        return id;
    if (keys->inverted && ort_emit_type(e, id)->dtype == ORT_DTYPE_BOOL)
        id = ort_emit_op1(e, "Not", id);
    else if (keys->inverted)
        id = ort_emit_op2(e, "Equal", id, ort_emit_number(e, id, 0));
    return ort_emit_cast(e, id, ORT_DTYPE_INT32);
}
