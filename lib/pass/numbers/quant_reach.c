/* quant_reach.c - DequantizeLinear goes behind moves before what computes on codes, in a session.
 *
 *     DequantizeLinear, MaxPool, Conv     MaxPool on the codes, DequantizeLinear, Conv
 *     DequantizeLinear, Concat, LSTM      the same, of its weights or its input
 *     DequantizeLinear, MaxPool, AveragePool, QuantizeLinear     likewise
 *
 * NNCF and PyTorch quantize before a product alone, and have no pair behind a pool, a Concat or a
 * head that is transposed. As quant_sink.c, but before quant_units.c, which then finds the product
 * between codes; onnxruntime moves them by itself.
 */
#include "base/error.h"
#include "graph/uses.h"
#include "pass/facts/facts.h"
#include "pass/numbers/quant_pair.h"

enum {
    DEPTH = 8,
    READERS = 256, /* that are asked: a Concat may read one value any number of times */
};

/* The slot of the other factor that a product or a recurrence has beside this value; -1: it is
 * neither, or reads the value elsewhere. */
static int other_factor(const ort_node *node, ort_id id)
{
    if (ort_edit_is_any(node, "Conv|ConvTranspose|MatMul|Gemm"))
        return node->inputs[0] == id;
    if (!ort_edit_is_any(node, "LSTM|GRU|RNN"))
        return -1;
    return node->inputs[2] == id ? 1 : node->inputs[0] == id || node->inputs[1] == id ? 2 : -1;
}

/* A mean of codes that becomes codes, as another shape perhaps. */
static bool is_mean(const ort_graph *graph, const ort_node *node)
{
    if (!ort_edit_is_any(node, "AveragePool|GlobalAveragePool|ReduceMean"))
        return false;
    do
        node = ort_edit_only_reader(graph, node->outputs[0]);
    while (ort_quant_is_move(node));
    return ort_edit_is(node, ONNX, "QuantizeLinear");
}

/* Does what computes on codes read this value, moves alone in between? left: readers to ask. */
static bool is_wanted(const ort_graph *graph, ort_id id, int depth, int *left)
{
    ort_readers readers = ort_readers_of(graph, id);
    ort_node *node;
    while ((node = ort_readers_next(&readers)) && --*left > 0) {
        const int other = other_factor(node, id);
        if (is_mean(graph, node))
            return true;
        if (other >= 0 ? ort_fact_is_coded(graph, node->inputs[other])
                       : depth > 0 && ort_quant_moved(node) && node->output_count == 1 &&
                             is_wanted(graph, node->outputs[0], depth - 1, left))
            return true;
    }
    return false;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    if (c->portable)
        return ORT_OK;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        ort_quant d;
        int inputs = ort_quant_moved(node), left = READERS;
        if (!inputs || node->output_count != 1 ||
            !ort_quant_reads_codes(c->graph, node, inputs, &d) ||
            !is_wanted(c->graph, node->outputs[0], DEPTH, &left))
            continue;
        ORT_TRY(ort_quant_sink(c, node, inputs, &d, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_quant_reach = {
    .name = "quant_reach",
    .level = 2,
    .doc = "DequantizeLinear goes behind moves before products and means of codes (session)",
    .apply = apply,
};
