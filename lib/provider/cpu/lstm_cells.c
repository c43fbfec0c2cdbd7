/* lstm_cells.c - one step of an LSTM that a model spells out, as the bodies of loops, or all steps
 * one after the other:
 *
 *     c = Sigmoid(f) * before + Sigmoid(i) * Tanh(g);   h = Sigmoid(o) * Tanh(c)
 *
 * where i, f, g and o are the quarters of one value's last axis in any order, cut by Split or
 * Slices, become one LstmCell behind the products: what such a model computes is little beside the
 * time that a step costs. Level 3: nothing of this is saved.
 */
#pragma GCC optimize("Os") /* runs once for a model */
#include <string.h>

#include "base/checked.h"
#include "pass/facts/facts.h"
#include "pass/facts/slice_cut.h"

enum { IN, OUT, FORGET, FRESH, GATES };
enum { NODES = 9 }; /* all but those that cut */

typedef struct cell {
    ort_node *node[NODES];
    int count;
    ort_id gate[GATES], before, h, c;
    ort_id sums; /* that gates are quarters of */
    int64_t order[GATES];
} cell;

/* Input `slot` of a node as the result of `op_type` that nobody else reads, or NULL. */
static ort_node *made_by(const ort_graph *graph, const ort_node *node, int slot,
                         const char *op_type)
{
    ort_node *made = ort_edit_producer(graph, node->inputs[slot]);
    return ort_edit_is(made, ONNX, op_type) &&
                   ort_edit_only_reader(graph, made->outputs[0]) == node ? made : NULL;
}

static void keep(cell *found, ort_node *node)
{
    found->node[found->count++] = node;
}

/* A product of a Sigmoid and something else, which *other receives. */
static bool read_gate(const ort_graph *graph, ort_node *mul, int slot, cell *found, int gate,
                      ort_id *other)
{
    ort_node *sigmoid = made_by(graph, mul, slot, "Sigmoid");
    if (!sigmoid)
        return false;
    keep(found, sigmoid);
    keep(found, mul);
    found->gate[gate] = sigmoid->inputs[0];
    *other = mul->inputs[1 - slot];
    return true;
}

/* Sigmoid(i) * Tanh(g) */
static bool read_fresh(const ort_graph *graph, ort_node *mul, cell *found)
{
    for (int slot = 0; mul && slot < 2; slot++) {
        ort_node *tanh = made_by(graph, mul, 1 - slot, "Tanh");
        ort_id other;
        if (!tanh || !read_gate(graph, mul, slot, found, IN, &other))
            continue;
        keep(found, tanh);
        found->gate[FRESH] = tanh->inputs[0];
        return true;
    }
    return false;
}

/* Both terms of c, the fresh one in `slot`. */
static bool read_terms(const ort_graph *graph, const ort_node *add, int slot, cell *found)
{
    ort_node *mul = made_by(graph, add, 1 - slot, "Mul");
    if (!mul || !read_fresh(graph, made_by(graph, add, slot, "Mul"), found))
        return false;
    return read_gate(graph, mul, 0, found, FORGET, &found->before) ||
           read_gate(graph, mul, 1, found, FORGET, &found->before);
}

/* From the Tanh of c on. */
static bool read(const ort_graph *graph, ort_node *tanh, int slot, cell *found)
{
    ort_node *add = ort_edit_producer(graph, tanh->inputs[0]);
    ort_node *mul = ort_edit_only_reader(graph, tanh->outputs[0]);
    ort_id state = tanh->outputs[0], other = ORT_ID_NONE;
    *found = (cell){0};
    if (!ort_edit_is(mul, ONNX, "Mul") || !ort_edit_is(add, ONNX, "Add") ||
        !read_gate(graph, mul, mul->inputs[0] == state ? 1 : 0, found, OUT, &other) ||
        other != state)
        return false;
    found->h = mul->outputs[0];
    found->c = add->outputs[0];
    keep(found, tanh);
    keep(found, add);
    return read_terms(graph, add, slot, found);
}

/* ---- quarters */

/* ort_part_of, and the Slice that has its bounds as attributes. */
static ort_part part_of(const ort_graph *graph, ort_id value)
{
    ort_part part = ort_part_of(graph, value);
    const ort_node *node = ort_edit_producer(graph, value);
    int64_t start[ORT_MAX_RANK], end[ORT_MAX_RANK], axis[ORT_MAX_RANK];
    if (part.of != ORT_ID_NONE || !ort_edit_is(node, ONNX, "Slice") || node->opset >= 10 ||
        ort_fact_ints(graph, node, "starts", 0, start) != 1 ||
        ort_fact_ints(graph, node, "ends", 0, end) != 1 ||
        ort_fact_ints(graph, node, "axes", 0, axis) != 1)
        return part;
    const ort_type *whole = ort_fact_tensor(graph, node->inputs[0]);
    part.axis = whole ? ort_axis_in(axis[0], whole->rank) : -1;
    if (part.axis < 0 || !ort_dim_known(whole->dim[part.axis]) || start[0] < 0 || end[0] < 0)
        return part;
    part.of = node->inputs[0];
    part.start = start[0];
    part.end = ort_min_i64(end[0], whole->dim[part.axis].size);
    part.step = 1;
    part.taken = false;
    return part;
}

/* Are the gates quarters of one value, which is four of the cell in its last axis? */
static bool find_quarters(const ort_graph *graph, cell *found)
{
    const ort_type *c = ort_fact_tensor(graph, found->c);
    unsigned seen = 0;
    found->sums = part_of(graph, found->gate[IN]).of;
    const ort_type *sums = ort_fact_tensor(graph, found->sums);
    if (!c || !sums || c->rank < 1 || sums->rank != c->rank || sums->dtype != ORT_DTYPE_FLOAT ||
        !ort_facts_same_type(c, ort_fact_type(graph, found->before)))
        return false;
    const int last = c->rank - 1;
    const int64_t n = ort_dim_known(c->dim[last]) ? c->dim[last].size : 0;
    for (int i = 0; i < last; i++)
        if (!ort_dim_equal(c->dim[i], sums->dim[i]))
            return false;
    if (n <= 0 || !ort_dim_is(sums->dim[last], GATES * n))
        return false;
    for (int i = 0; i < GATES; i++) {
        const ort_part part = part_of(graph, found->gate[i]);
        if (part.of != found->sums || part.taken || part.axis != last || part.step != 1 ||
            part.start % n || part.end != part.start + n)
            return false;
        found->order[i] = part.start / n;
        seen |= 1u << found->order[i];
    }
    return seen == (1u << GATES) - 1;
}

/* ---- the rewrite */

/* A Split or Slice that nobody reads any more. */
static void drop_cut(ort_graph *graph, ort_node *node)
{
    if (!node || node->removed)
        return;
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE &&
            (graph->values.data[node->outputs[i]]->use_count ||
             graph->values.data[node->outputs[i]]->is_output))
            return;
    ort_graph_remove_node(graph, node);
}

static ort_status replace(ort_graph *graph, const cell *found, ort_error *err)
{
    const ort_id inputs[2] = {found->sums, found->before}, outputs[2] = {found->h, found->c};
    const ort_attr order = ort_attr_ints("order", found->order, GATES);
    const ort_node *first = found->node[0];
    const char *origin = ort_edit_origin_of(first);
    ort_node *cuts[GATES];
    for (int i = 0; i < GATES; i++)
        cuts[i] = ort_edit_producer(graph, found->gate[i]);
    for (int i = 1; i < found->count; i++) {
        origin = ort_edit_origin(graph, found->node[0], found->node[i]);
        if (!origin)
            return ort_error_memory(err, 0);
        found->node[0]->origin = origin;
    }
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = "LstmCell", .name = first->name,
                          .inputs = inputs, .input_count = 2, .outputs = outputs,
                          .output_count = 2, .set = &order, .set_count = 1, .origin = origin};
    for (int i = 0; i < found->count; i++)
        ort_graph_remove_node(graph, found->node[i]);
    for (int i = 0; i < GATES; i++)
        drop_cut(graph, cuts[i]);
    return ort_edit_add_node(graph, &spec, NULL, err);
}

/* Either term of c may be the fresh one. */
static bool find(const ort_pass_context *c, ort_node *tanh, cell *found)
{
    bool reads = false;
    for (int slot = 0; slot < 2; slot++)
        if (read(c->graph, tanh, slot, found)) {
            if (find_quarters(c->graph, found))
                return true;
            reads = true;
        }
    if (reads)
        ort_pass_note(c, tanh, "the gates of its step aren't the quarters of one value");
    return false;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    size_t count = c->graph->order.count;
    cell found;
    for (size_t i = 0; i < count; i++) {
        ort_node *node = c->graph->nodes.data[c->graph->order.data[i]];
        if (!ort_edit_is(node, ONNX, "Tanh") || !find(c, node, &found))
            continue;
        ORT_TRY(replace(c->graph, &found, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_lstm_cells = {
    .name = "lstm_cells",
    .level = 3,
    .doc = "the gates of a spelled out step of an LSTM become one (cpu only)",
    .apply = apply,
};
