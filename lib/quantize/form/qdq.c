/* qdq.c - Q and DQ nodes for values, codes for weights and biases, and readers that take those.
 *
 *     x -> QuantizeLinear -> DequantizeLinear -> x'        what is computed
 *     codes -> DequantizeLinear -> w'                      weights; biases, in int32
 *
 * Nodes on codes read x', each in its form. So does every other reader of what such a node
 * computes, which then never leaves codes; what is computed in float stays exact for those.
 */
#include "quantize/form/qdq.h"

#include <stdlib.h>

#include "base/error.h"
#include "graph/strip.h"
#include "op/edit.h"
#include "quantize/form/weight_codes.h"

typedef ort_qdq_writer writer;

/* ---- pairs */

static ort_status write_grid(writer *w, int at, const char *stem, ort_error *err)
{
    ort_qdq_pair *pair = &w->pairs.data[at];
    const ort_code_form *form = &w->options->plan->forms.data[pair->form];
    ort_tensor scale;
    if (pair->scale != ORT_ID_NONE)
        return ORT_OK;
    ORT_TRY(ort_qdq_constant(w, stem, "scale", ORT_DTYPE_FLOAT, 0, 0, &scale, &pair->scale, err));
    *(float *)scale.data = pair->grid.scale;
    return ort_qdq_zero_of(w, form->codes.dtype, pair->grid.zero_point, &pair->zero, err);
}

/* Names of another form than the first say its type. NULL: no memory. */
static const char *stem_of(const writer *w, ort_id id, int form)
{
    ort_dtype dtype = w->options->plan->forms.data[form].codes.dtype;
    return form == 0 ? ort_qdq_name(w, id)
                     : ort_qdq_joined(w, ort_qdq_name(w, id), ort_dtype_name(dtype));
}

/* The pair of a value, as an index; one that has no grid of its own copies that of its root. */
static int pair_of(writer *w, ort_id id, int form)
{
    int root = ort_qdq_grid_of(w, id, form);
    if (root < 0 || ort_qdq_root(w, id) == id)
        return root;
    for (int i = w->heads[id]; i >= 0; i = w->pairs.data[i].next)
        if (w->pairs.data[i].form == form)
            return i;
    ort_qdq_pair pair = w->pairs.data[root];
    pair.numbers = ORT_ID_NONE;
    pair.next = w->heads[id];
    if (!ort_vec_push(&w->pairs, pair))
        return -1;
    return w->heads[id] = (int)w->pairs.count - 1;
}

static ort_status numbers_of(writer *w, ort_id id, int form, ort_id *numbers, ort_error *err)
{
    const char *of_root = stem_of(w, ort_qdq_root(w, id), form), *stem = stem_of(w, id, form);
    int root = ort_qdq_grid_of(w, id, form);
    ort_id codes;
    if (root < 0 || !stem || !of_root)
        return ort_error_memory(err, sizeof *w->pairs.data);
    ORT_TRY(write_grid(w, root, of_root, err));
    int at = pair_of(w, id, form);
    if (at < 0)
        return ort_error_memory(err, sizeof *w->pairs.data);
    ort_qdq_pair *pair = &w->pairs.data[at];
    if (pair->numbers == ORT_ID_NONE) {
        ORT_TRY(ort_qdq_add_linear(w, "QuantizeLinear", stem,
                                   (const ort_id[]){id, pair->scale, pair->zero}, -1, &codes,
                                   err));
        ORT_TRY(ort_qdq_add_linear(w, "DequantizeLinear", stem,
                                   (const ort_id[]){codes, pair->scale, pair->zero}, -1,
                                   &pair->numbers, err));
    }
    *numbers = pair->numbers;
    return ORT_OK;
}

/* ---- readers */

static bool on_codes(const writer *w, ort_id node)
{
    return node != ORT_ID_NONE && node < w->node_count &&
           w->place->nodes[node].part != ORT_PART_FLOAT;
}

static bool is_coded(const writer *w, ort_id id)
{
    return id != ORT_ID_NONE && id < w->value_count && w->place->values[id].coded;
}

/* What a node on codes reads. */
static ort_status rewire_codes(writer *w, ort_node *node, ort_error *err)
{
    for (int i = 0; i < node->input_count; i++) {
        ort_id id = node->inputs[i], numbers;
        if (!is_coded(w, id) || !ort_place_reads(w->graph, node, i) ||
            (w->place->nodes[node->id].joined && w->graph->values.data[id]->fact.value))
            continue;
        int form = ort_code_plan_form(w->options->plan, node, i);
        if (w->graph->values.data[id]->fact.value)
            ORT_TRY(ort_weights_constant(w, id, form, &numbers, err));
        else
            ORT_TRY(numbers_of(w, id, form, &numbers, err));
        ort_node_set_input(w->graph, node, i, numbers);
    }
    return ORT_OK;
}

/* A pair that the value has; ORT_ID_NONE. */
static ort_id any_numbers(const writer *w, ort_id id)
{
    ort_id numbers = ORT_ID_NONE;
    int least = 0;
    for (int i = w->heads[id]; i >= 0; i = w->pairs.data[i].next) {
        const ort_qdq_pair *pair = &w->pairs.data[i];
        if (pair->numbers != ORT_ID_NONE && (numbers == ORT_ID_NONE || pair->form < least)) {
            numbers = pair->numbers;
            least = pair->form;
        }
    }
    return numbers;
}

/* Others read what a node on codes computes. */
static void rewire_others(writer *w, ort_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        ort_id id = node->inputs[i];
        bool reads = ort_place_reads(w->graph, node, i) && on_codes(w, node->id);
        if (!is_coded(w, id) || reads || !on_codes(w, ort_graph_producer(w->graph, id)))
            continue;
        ort_id numbers = any_numbers(w, id);
        if (numbers != ORT_ID_NONE)
            ort_node_set_input(w->graph, node, i, numbers);
    }
}

/* ---- all of it */

/* Nodes and constants that nobody reads any more. */
static void sweep(ort_graph *graph)
{
    for (size_t i = graph->nodes.count; i-- > 0;) {
        ort_node *node = graph->nodes.data[i];
        if (node->removed) /* a clone doesn't have its members */
            continue;
        if (node->body_count) /* bodies were written before: what they read on codes is theirs */
            (void)ort_graph_drop_captures(graph, node);
        bool droppable = ort_node_is_constant(node) || ort_edit_is(node, ONNX, "Transpose");
        if (droppable && graph->values.data[node->outputs[0]]->use_count == 0)
            ort_graph_remove_node(graph, node);
    }
    (void)ort_graph_drop_initializers(graph);
}

static ort_status write_all(writer *w, ort_error *err)
{
    const size_t nodes = w->graph->order.count;
    ORT_TRY(ort_weights_write(w, err));
    for (size_t i = 0; i < nodes; i++) {
        ort_node *node = w->graph->nodes.data[w->graph->order.data[i]];
        if (on_codes(w, node->id) && !node->removed)
            ORT_TRY(rewire_codes(w, node, err));
    }
    for (size_t i = 0; i < nodes; i++)
        rewire_others(w, w->graph->nodes.data[w->graph->order.data[i]]);
    ORT_TRY(ort_edit_finish(w->graph, err));
    sweep(w->graph);
    return ort_edit_finish(w->graph, err);
}

ort_status ort_qdq_write(ort_graph *graph, const ort_placement *place,
                         const ort_qdq_options *options, ort_error *err)
{
    writer w = {.graph = graph, .place = place, .options = options,
                .value_count = graph->values.count, .node_count = graph->nodes.count};
    w.heads = malloc((w.value_count + 1) * sizeof *w.heads);
    if (!w.heads)
        return ort_error_memory(err, w.value_count * sizeof *w.heads);
    for (size_t i = 0; i < w.value_count; i++)
        w.heads[i] = -1;
    ort_status status = write_all(&w, err);
    ort_weights_release(&w);
    ort_vec_release(&w.pairs);
    ort_vec_release(&w.zeros);
    free(w.heads);
    return status;
}
