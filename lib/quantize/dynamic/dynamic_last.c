/* dynamic_last.c - small products that make the model's results multiply floats. What their codes
 * cost reaches the results as it is, where the errors of those before are spread by the layers
 * behind them; and a head of a classifier multiplies one row where these multiply many.
 */
#include "quantize/dynamic/dynamic_parts.h"

enum { MOST_PARTS = 20 }; /* one of so many numbers of the model's weights is in them, at most */

static double count_in(const ort_graph *graph, ort_id id)
{
    const ort_tensor *t = graph->values.data[id]->fact.value;
    return t && t->shape.rank > 1 ? (double)ort_tensor_count(t) : 0;
}

/* Of all weights, codes among them: what is quantized again stays as it is. */
static double all_numbers(const ort_graph *graph)
{
    const ort_node *node;
    double sum = 0;
    for (size_t i = 0; i < graph->initializers.count; i++)
        sum += count_in(graph, graph->initializers.data[i]);
    ORT_EACH_NODE(graph, node)
    {
        sum += ort_node_is_constant(node) ? count_in(graph, node->outputs[0]) : 0;
        for (int b = 0; b < node->body_count; b++)
            sum += all_numbers(node->bodies[b]);
    }
    return sum;
}

/* Nothing else reads the constant, in whatever form. */
static bool reads_own(const ort_dynamic *d, const ort_dynamic_unit *u)
{
    const ort_dynamic_weight *w = &d->weights.data[u->weights[0]];
    size_t readers = 0;
    for (size_t k = 0; k < d->units.count; k++)
        for (int i = 0; i < d->units.data[k].weight_count; i++) {
            const ort_dynamic_weight *other = &d->weights.data[d->units.data[k].weights[i]];
            readers += other->graph == w->graph && other->id == w->id;
        }
    return readers == 1;
}

/* Biases and activations at most stand behind it. */
static bool makes_result(const ort_dynamic *d, const ort_dynamic_unit *u)
{
    enum { STEPS = 6 };
    ort_id id = u->node->outputs[0];
    if (u->graph != d->model->graph || u->node->output_count != 1)
        return false;
    for (int step = 0; step < STEPS; step++) {
        const ort_node *reader = ort_edit_only_reader(u->graph, id);
        if (u->graph->values.data[id]->is_output)
            return true;
        if (!ort_edit_is_any(reader, "Add|Softmax|LogSoftmax|Sigmoid|Tanh|Relu|Identity|Reshape|"
                                     "Flatten|Squeeze"))
            return false;
        id = reader->outputs[0];
    }
    return false;
}

void ort_dynamic_keep_last(ort_dynamic *d)
{
    double room = all_numbers(d->model->graph) / MOST_PARTS;
    for (size_t k = 0; k < d->units.count && !d->options->small; k++) {
        ort_dynamic_unit *u = &d->units.data[k];
        const bool product = !u->stored && u->weight_count == 1 &&
                             !ort_edit_is_any(u->node, "Gather");
        const double own = product ? ort_dynamic_numbers(&d->weights.data[u->weights[0]]) : 0;
        if (!product || own > room || !makes_result(d, u) || !reads_own(d, u))
            continue;
        room -= own;
        u->stored = "it is small, and what its codes cost would be the result's";
    }
}
