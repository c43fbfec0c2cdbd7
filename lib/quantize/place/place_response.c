/* place_response.c - readers one by one. Activations that only come near a bound count as there
 * from where steps of 8 bits don't show the rest.
 */
#include "quantize/place/place_response.h"

#include <math.h>
#include <string.h>

#include "graph/uses.h"
#include "op/edit.h"

static const ort_response hard_swish = {ORT_RESPONSE_HARD_SWISH, -3, INFINITY};
static const ort_response swish = {ORT_RESPONSE_SWISH, -10, INFINITY};
static const ort_response sigmoid = {ORT_RESPONSE_SIGMOID, -8, 8};
static const ort_response hyperbolic = {ORT_RESPONSE_TANH, -5, 5};

/* Straight between its ends. */
static ort_response hard_sigmoid(const ort_node *node)
{
    const float alpha = (float)ort_node_float(node, "alpha", 0.2f);
    const float beta = (float)ort_node_float(node, "beta", 0.5f);
    const ort_response all = ORT_RESPONSE_ALL;
    return alpha > 0 && beta >= 0 && beta <= 1
               ? (ort_response){ORT_RESPONSE_CLIPPED, -beta / alpha, (1 - beta) / alpha}
               : all;
}

static float bound(const ort_graph *graph, const ort_node *node, const char *name, int slot,
                   float otherwise)
{
    const ort_tensor *t = ort_edit_constant(graph, node, slot);
    if (t && t->dtype == ORT_DTYPE_FLOAT && ort_tensor_count(t) == 1)
        return *(const float *)t->data;
    return ort_edit_input(node, slot) == ORT_ID_NONE ? (float)ort_node_float(node, name, otherwise)
                                                     : otherwise;
}

/* x * sigmoid(x), a number before the sigmoid aside, read by the product alone. */
static bool is_swish(const ort_graph *graph, const ort_node *mul, ort_id x)
{
    if (!ort_edit_is(mul, ONNX, "Mul"))
        return false;
    const ort_id other = mul->inputs[mul->inputs[0] == x];
    const ort_node *gate = ort_edit_producer(graph, other);
    return ort_edit_is(gate, ONNX, "Sigmoid") && gate->inputs[0] == x;
}

static bool only_gates(const ort_graph *graph, const ort_node *gate, ort_id x)
{
    return is_swish(graph, ort_edit_only_reader(graph, gate->outputs[0]), x);
}

static ort_response response_of(const ort_graph *graph, const ort_node *node, ort_id x)
{
    const ort_response all = ORT_RESPONSE_ALL;
    if (ort_edit_is(node, ONNX, "HardSwish"))
        return hard_swish;
    if (ort_edit_is(node, ONNX, "HardSigmoid"))
        return hard_sigmoid(node);
    if (is_swish(graph, node, x))
        return swish;
    if (ort_edit_is(node, ONNX, "Sigmoid"))
        return only_gates(graph, node, x) ? swish : sigmoid;
    if (ort_edit_is(node, ONNX, "Tanh"))
        return hyperbolic;
    if (ort_edit_is(node, ONNX, "Relu"))
        return (ort_response){ORT_RESPONSE_CLIPPED, 0, INFINITY};
    if (ort_edit_is(node, ONNX, "Clip") && node->inputs[0] == x)
        return (ort_response){ORT_RESPONSE_CLIPPED,
                              fminf(bound(graph, node, "min", 1, -INFINITY), 0),
                              fmaxf(bound(graph, node, "max", 2, INFINITY), 0)};
    return all;
}

/* What only moves codes has one grid for all that it reads and gives. */
static bool shares_grid(const ort_graph *graph, const ort_placement *place, ort_id value)
{
    const ort_node *from = ort_edit_producer(graph, value);
    return ort_place_root(place, value) != value ||
           (from && place->nodes[from->id].part == ORT_PART_MOVE);
}

ort_response ort_place_response(const ort_graph *graph, const ort_placement *place, ort_id value)
{
    const ort_response all = ORT_RESPONSE_ALL;
    ort_readers readers = ort_readers_of(graph, value);
    ort_response common = all;
    const ort_node *reader;
    bool first = true;
    if (graph->values.data[value]->is_output || shares_grid(graph, place, value))
        return all;
    for (; (reader = ort_readers_next(&readers)); first = false) {
        const ort_response one = reader->input_count ? response_of(graph, reader, value) : all;
        if (!first && (one.kind != common.kind || one.least < common.least ||
                       one.least > common.least || one.most < common.most ||
                       one.most > common.most))
            return all;
        common = one;
    }
    return common;
}
