/* attention_causal.c - masks that keep later keys out and nothing else. How they are spelled
 * doesn't matter (mask_cases.h), if what tells later keys from others is one of
 *
 *     column <= row       column = Range(0, T) of the keys, row = Range(0, S) + P or
 *                         Range(P, P + S) of the queries; or the comparison turned round or denied
 *     Trilu(numbers, 1)   the upper triangle without the diagonal, or the lower one with it
 *     a constant that looks so
 *
 * P is the number of past keys; where the operator has no past, P must be 0. Numbers are compared
 * as facts, so that how a length was computed doesn't matter.
 */
#include "pass/attention/attention_match.h"
#include "pass/attention/mask_cases.h"
#include "pass/facts/facts.h"
#include "tensor/scalar.h"

#define LOW (-1e9) /* as in attention_scores.c */

enum { STEPS = 24 };

typedef struct places {
    ort_dim_table *dims;
    ort_dim past, queries, keys; /* keys: past ones included */
} places;

/* An integer of one element as a dim; unknown otherwise. */
static ort_dim number_of(const ort_graph *graph, ort_id id)
{
    const ort_fact *fact = &graph->values.data[id]->fact;
    int64_t number;
    if (ort_tensor_one_i64(fact->value, &number) &&
        ort_dtype_get(fact->value->dtype)->class_ != ORT_CLASS_FLOAT)
        return ort_dim_of(number);
    return fact->symbolic && fact->symbolic_count == 1 ? fact->symbolic[0] : ort_dim_unknown();
}

/* Has it a row for each query and a column for each key? */
static bool is_placed(const ort_cases_reader *r, ort_id id)
{
    const places *p = r->arg;
    const ort_type *type = ort_fact_type(r->graph, id);
    return type->kind == ORT_TYPE_TENSOR && type->rank >= 2 &&
           ort_dim_equal(type->dim[type->rank - 2], p->queries) &&
           ort_dim_equal(type->dim[type->rank - 1], p->keys);
}

/* ---- positions */

/* Does this count up by one along its axis `axis` from the end, all others being 1? Its first
 * number is added to *first. */
static bool counts(const ort_cases_reader *r, ort_id id, int axis, ort_dim *first)
{
    ort_dim_table *dims = ((const places *)r->arg)->dims;
    const ort_type *type = ort_fact_type(r->graph, id);
    for (int d = 0; d < ort_type_rank(type); d++)
        if (d != type->rank - 1 - axis && !ort_dim_is(type->dim[d], 1))
            return false;
    for (int step = 0; ort_type_rank(type) > axis && step < STEPS; step++) {
        const ort_node *node = ort_edit_producer(r->graph, id);
        int slot = 1;
        if (ort_edit_is(node, ONNX, "Range")) {
            *first = ort_dim_add(dims, *first, number_of(r->graph, node->inputs[0]));
            return ort_dim_is(number_of(r->graph, node->inputs[2]), 1);
        }
        if (ort_edit_is(node, ONNX, "Add")) {
            slot = number_of(r->graph, node->inputs[1]).expr != ORT_DIM_UNKNOWN;
            *first = ort_dim_add(dims, *first, number_of(r->graph, node->inputs[slot]));
        } else if (!ort_node_has_trait(node, ORT_TRAIT_ALIAS)) {
            return false;
        }
        id = node->inputs[1 - slot];
    }
    return false;
}

/* column <= row + past, or the other way round or denied. */
static bool read_condition(const ort_cases_reader *r, const ort_node *node, ort_cases *s)
{
    static const struct {
        const char *op_type;
        bool column_first, inside;
    } rows[] = {{"LessOrEqual", true, true}, {"GreaterOrEqual", false, true},
                {"Greater", true, false},    {"Less", false, false}};
    const places *p = r->arg;
    for (int i = 0; i < 4; i++) {
        ort_dim column = ort_dim_of(0), row = ort_dim_of(0);
        if (!ort_edit_is(node, ONNX, rows[i].op_type))
            continue;
        *s = (ort_cases){{!rows[i].inside, rows[i].inside}, true, false, false};
        return counts(r, node->inputs[!rows[i].column_first], 0, &column) &&
               counts(r, node->inputs[rows[i].column_first], 1, &row) &&
               ort_dim_equal(row, ort_dim_add(p->dims, column, p->past));
    }
    return false;
}

/* ---- triangles, of as many keys as queries */

/* A constant of one number up to the diagonal of each matrix, and another behind it. */
static bool read_triangle(const ort_tensor *t, ort_cases *s)
{
    int64_t width = t->shape.dim[t->shape.rank - 1];
    if (t->dtype == ORT_DTYPE_STRING || ort_dtype_get(t->dtype)->class_ == ORT_CLASS_COMPLEX ||
        width < 2 || !ort_tensor_count(t))
        return false;
    *s = (ort_cases){.varies = true};
    for (int64_t i = 0; i < 2; i++) /* the first row tells both: 0 is on the diagonal */
        s->at[1 - i] = ort_tensor_get_f64(t, i);
    for (int64_t i = 0; i < ort_tensor_count(t); i++)
        if (ort_tensor_get_f64(t, i) != s->at[i % width <= i / width % width])
            return false;
    return true;
}

/* The upper triangle of equal numbers without the diagonal, or the lower one with it. */
static bool read_trilu(ort_cases_reader *r, const ort_node *node, ort_cases *s)
{
    int64_t upper = ort_node_attr_int(node, "upper");
    bool given = ort_edit_input(node, 1) != ORT_ID_NONE;
    bool halves = given ? ort_fact_is_int(r->graph, node, 1, upper) : !upper;
    if (!halves || !ort_cases_read(r, node->inputs[0], s) || s->varies)
        return false;
    s->varies = true;
    s->at[upper] = 0;
    return true;
}

/* The first case: a key that is later than the query. */
static bool read_leaf(ort_cases_reader *r, ort_id id, ort_cases *s)
{
    const ort_tensor *constant = ort_fact_constant(r->graph, id);
    const ort_node *node = ort_edit_producer(r->graph, id);
    const places *p = r->arg;
    if (!is_placed(r, id))
        return false;
    if (!constant && !ort_edit_is(node, ONNX, "Trilu"))
        return read_condition(r, node, s);
    return ort_dim_is(p->past, 0) && ort_dim_equal(p->queries, p->keys) &&
           (constant ? read_triangle(constant, s) : read_trilu(r, node, s));
}

/* ---- taking */

/* Is mask i, or the condition (i = -1), one that only keeps later keys out? */
static bool is_causal(ort_cases_reader *r, const ort_attention_terms *t, int i)
{
    ort_cases s;
    if (!ort_cases_read(r, i < 0 ? t->keep : t->masks[i], &s) || !s.varies)
        return false;
    bool outside = s.at[0] != 0, inside = s.at[1] != 0;
    return i < 0 ? outside != inside && inside != t->keep_is_inverse
                 : !inside && s.at[0] <= LOW;
}

ort_attention_terms ort_attention_take_causal(const ort_pass_context *c, const ort_attention *a)
{
    const ort_graph *graph = c->graph;
    places p = {.dims = graph->model->dims, .past = ort_dim_of(0)};
    ort_cases_reader r = {.graph = graph, .source = ORT_ID_NONE, .leaf = read_leaf,
                          .is_placed = is_placed, .arg = &p};
    ort_attention_terms t = a->terms;
    if (a->cache.past_k != ORT_ID_NONE)
        p.past = ort_fact_type(graph, a->cache.past_k)->dim[2];
    if (t.causal || a->q_heads || p.past.expr == ORT_DIM_UNKNOWN)
        return t;
    p.queries = ort_fact_type(graph, a->q)->dim[2];
    p.keys = ort_dim_add(p.dims, ort_fact_type(graph, a->k)->dim[a->k_is_rows ? 1 : 2], p.past);
    if (t.keep != ORT_ID_NONE) {
        /* beside masks the order of the two counts, in rows where both leave no key */
        t.causal = !t.mask_count && is_causal(&r, &t, -1);
        if (t.causal) {
            t.keep = ORT_ID_NONE;
            t.zeroed = false; /* every row has a key */
        }
        return t;
    }
    for (int i = 0; i < t.mask_count && !t.causal; i++)
        if (is_causal(&r, &t, i)) {
            t.masks[i] = t.masks[--t.mask_count];
            t.causal = true;
        }
    return t;
}
