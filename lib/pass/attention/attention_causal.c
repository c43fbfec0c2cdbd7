/* attention_causal.c - masks that keep later keys out and nothing else:
 *
 *     Where(column <= row, 0, low)      column = Range(0, T) of the keys, row = Range(0, S) + P or
 *                                       Range(P, P + S) of the queries; or the comparison turned
 *                                       round or denied, and the numbers with it
 *     Trilu(lows, 1)                    the upper triangle without the diagonal
 *     a constant that looks so
 *
 * P is the number of past keys; where the operator has no past, P must be 0. Numbers are compared
 * as facts, so that how a length was computed doesn't matter.
 */
#include "pass/attention/attention_match.h"
#include "pass/facts/facts.h"
#include "tensor/scalar.h"

#define LOW (-1e9) /* as in attention_scores.c */

typedef struct mask {
    const ort_graph *graph;
    ort_dim_table *dims;
    ort_dim past, queries, keys; /* keys: past ones included */
} mask;

static const ort_type *type_of(const mask *m, ort_id id)
{
    return ort_fact_type(m->graph, id);
}

/* An integer of one element as a dim; unknown otherwise. */
static ort_dim number_of(const mask *m, ort_id id)
{
    const ort_fact *fact = &m->graph->values.data[id]->fact;
    int64_t number;
    if (ort_tensor_one_i64(fact->value, &number) &&
        ort_dtype_get(fact->value->dtype)->class_ != ORT_CLASS_FLOAT)
        return ort_dim_of(number);
    return fact->symbolic && fact->symbolic_count == 1 ? fact->symbolic[0] : ort_dim_unknown();
}

/* What this value is but for dims of 1. */
static ort_id flat(const mask *m, ort_id id)
{
    for (;;) {
        const ort_node *node = ort_edit_producer(m->graph, id);
        if (!ort_edit_is(node, ONNX, "Unsqueeze") && !ort_edit_is(node, ONNX, "Reshape") &&
            !ort_edit_is(node, ONNX, "Squeeze"))
            return id;
        const ort_type *to = type_of(m, id), *from = type_of(m, node->inputs[0]);
        int i = 0, k = 0;
        if (to->kind != ORT_TYPE_TENSOR || to->rank < 0 || from->rank < 0)
            return id;
        for (; i < to->rank || k < from->rank;) {
            if (i < to->rank && k < from->rank && ort_dim_equal(to->dim[i], from->dim[k]))
                i++, k++;
            else if (i < to->rank && ort_dim_is(to->dim[i], 1))
                i++;
            else if (k < from->rank && ort_dim_is(from->dim[k], 1))
                k++;
            else
                return id;
        }
        id = node->inputs[0];
    }
}

/* Has it a row for each query and a column for each key? */
static bool is_full(const mask *m, ort_id id)
{
    const ort_type *type = type_of(m, id);
    return type->kind == ORT_TYPE_TENSOR && type->rank >= 2 &&
           ort_dim_equal(type->dim[type->rank - 2], m->queries) &&
           ort_dim_equal(type->dim[type->rank - 1], m->keys);
}

/* ---- positions */

/* Does this count up by one along its axis `axis` from the end, all others being 1? Its first
 * number is added to *first. */
static bool counts(const mask *m, ort_id id, int axis, ort_dim *first)
{
    const ort_type *type = type_of(m, id);
    for (int d = 0; type->kind == ORT_TYPE_TENSOR && d < type->rank; d++)
        if (d != type->rank - 1 - axis && !ort_dim_is(type->dim[d], 1))
            return false;
    if (type->kind != ORT_TYPE_TENSOR || type->rank <= axis)
        return false;
    for (;;) {
        const ort_node *node = ort_edit_producer(m->graph, flat(m, id));
        if (ort_edit_is(node, ONNX, "Range")) {
            *first = ort_dim_add(m->dims, *first, number_of(m, node->inputs[0]));
            return ort_dim_is(number_of(m, node->inputs[2]), 1);
        }
        if (!ort_edit_is(node, ONNX, "Add"))
            return false;
        int slot = number_of(m, node->inputs[1]).expr == ORT_DIM_UNKNOWN ? 0 : 1;
        *first = ort_dim_add(m->dims, *first, number_of(m, node->inputs[slot]));
        id = node->inputs[1 - slot];
    }
}

/* Is it true where column <= row + past (*true_inside), or where not? */
static bool reads_condition(const mask *m, ort_id id, bool *true_inside)
{
    static const struct {
        const char *op_type;
        bool column_first, inside;
    } rows[] = {{"LessOrEqual", true, true}, {"GreaterOrEqual", false, true},
                {"Greater", true, false},    {"Less", false, false}};
    const ort_node *node = ort_edit_producer(m->graph, flat(m, id));
    bool denied = ort_edit_is(node, ONNX, "Not");
    if (denied)
        node = ort_edit_producer(m->graph, flat(m, node->inputs[0]));
    for (int i = 0; i < 4; i++) {
        ort_dim column = ort_dim_of(0), row = ort_dim_of(0);
        if (!ort_edit_is(node, ONNX, rows[i].op_type))
            continue;
        *true_inside = rows[i].inside != denied;
        return counts(m, node->inputs[!rows[i].column_first], 0, &column) &&
               counts(m, node->inputs[rows[i].column_first], 1, &row) &&
               ort_dim_equal(row, ort_dim_add(m->dims, column, m->past));
    }
    return false;
}

/* ---- numbers */

static bool is_all(const mask *m, ort_id id, bool low)
{
    const ort_tensor *t = ort_fact_constant(m->graph, id);
    const ort_node *node = ort_edit_producer(m->graph, id);
    if (!t && ort_edit_is(node, ONNX, "ConstantOfShape")) {
        const ort_attr *value = ort_node_attr(node, "value");
        t = value && value->type == ORT_ATTR_TENSOR ? value->t : NULL;
    }
    if (!t || !t->data || ort_dtype_get(t->dtype)->class_ != ORT_CLASS_FLOAT)
        return false;
    for (int64_t i = 0; i < ort_tensor_count(t); i++) {
        double number = ort_tensor_get_f64(t, i);
        if (low ? !(number <= LOW) : number != 0)
            return false;
    }
    return true;
}

/* A constant [...,S,T], S and T the same since there is no past. */
static bool is_triangle(const mask *m, const ort_tensor *t)
{
    int rank = t->shape.rank;
    if (rank < 2 || ort_dtype_get(t->dtype)->class_ != ORT_CLASS_FLOAT || !ort_dim_is(m->past, 0))
        return false;
    int64_t S = t->shape.dim[rank - 2], T = t->shape.dim[rank - 1];
    for (int64_t i = 0; i < ort_tensor_count(t); i++) {
        double number = ort_tensor_get_f64(t, i);
        if (i % T <= i / T % S ? number != 0 : !(number <= LOW))
            return false;
    }
    return S == T;
}

static bool is_causal_sum(const mask *m, ort_id id)
{
    bool inside;
    if (ort_fact_constant(m->graph, id))
        return is_triangle(m, ort_fact_constant(m->graph, id));
    const ort_node *node = ort_edit_producer(m->graph, flat(m, id));
    if (ort_edit_is(node, ONNX, "Trilu")) {
        return node->input_count > 1 && node->inputs[1] != ORT_ID_NONE &&
               ort_dim_is(number_of(m, node->inputs[1]), 1) && ort_node_attr_int(node, "upper") &&
               ort_dim_is(m->past, 0) && is_all(m, node->inputs[0], true);
    }
    return ort_edit_is(node, ONNX, "Where") && reads_condition(m, node->inputs[0], &inside) &&
           is_all(m, node->inputs[inside ? 1 : 2], false) &&
           is_all(m, node->inputs[inside ? 2 : 1], true);
}

/* Is mask i, or the condition (i = -1), one that only keeps later keys out? */
static bool is_causal(const mask *m, const ort_attention_terms *t, int i)
{
    bool inside;
    if (i < 0)
        return is_full(m, t->keep) && reads_condition(m, t->keep, &inside) &&
               inside != t->keep_is_inverse;
    return is_full(m, t->masks[i]) && is_causal_sum(m, t->masks[i]);
}

ort_attention_terms ort_attention_take_causal(const ort_pass_context *c, const ort_attention *a)
{
    mask m = {.graph = c->graph, .dims = c->graph->model->dims, .past = ort_dim_of(0)};
    ort_attention_terms t = a->terms;
    if (a->cache.past_k != ORT_ID_NONE)
        m.past = type_of(&m, a->cache.past_k)->dim[2];
    if (t.causal || a->q_heads || m.past.expr == ORT_DIM_UNKNOWN)
        return t;
    m.queries = type_of(&m, a->q)->dim[2];
    m.keys = ort_dim_add(m.dims, type_of(&m, a->k)->dim[a->k_is_rows ? 1 : 2], m.past);
    if (t.keep != ORT_ID_NONE) {
        /* beside masks the order of the two counts, in rows where both leave no key */
        t.causal = !t.mask_count && is_causal(&m, &t, -1);
        if (t.causal) {
            t.keep = ORT_ID_NONE;
            t.zeroed = false; /* every row has a key */
        }
        return t;
    }
    for (int i = 0; i < t.mask_count && !t.causal; i++)
        if (is_causal(&m, &t, i)) {
            t.masks[i] = t.masks[--t.mask_count];
            t.causal = true;
        }
    return t;
}
