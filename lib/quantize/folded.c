/* folded.c - which weights are computed, and the pass that computes them now.
 *
 * Folding keeps a file from growing otherwise: the Cast of a weight in 16 bits stays, and with it
 * the product that reads it would stay float.
 */
#include "quantize/folded.h"

#include "graph/uses.h"
#include "op/edit.h"
#include "pass/optimize.h"

/* Values looked at for one answer: diamonds of constants have no end. What takes more stays. */
enum { VISITS_MAX = 256 };

static bool is_coded(const ort_node *node)
{
    return ort_edit_is_any(node, "DequantizeLinear|ms.DequantizeLinear");
}

/* Integers of few bits are codes already, dequantized by Cast, Sub and Mul below opset 13. */
static bool is_plain(const ort_tensor *t)
{
    return t && (t->dtype == ORT_DTYPE_FLOAT || t->dtype == ORT_DTYPE_FLOAT16 ||
                 t->dtype == ORT_DTYPE_BFLOAT16 || t->dtype == ORT_DTYPE_DOUBLE ||
                 t->dtype == ORT_DTYPE_INT32 || t->dtype == ORT_DTYPE_INT64 ||
                 t->dtype == ORT_DTYPE_BOOL);
}

static bool is_made(const ort_graph *graph, ort_id id, int *visits)
{
    const ort_node *node = id == ORT_ID_NONE ? NULL : ort_edit_producer(graph, id);
    if (!node)
        return id == ORT_ID_NONE || is_plain(ort_fact_value(graph, id));
    if (ort_node_is_constant(node))
        return is_plain(ort_node_constant(node));
    if (--*visits < 0 || node->body_count || node->input_count == 0 || is_coded(node))
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (!is_made(graph, node->inputs[i], visits))
            return false;
    return true;
}

/* Weights are read through these, and a table that has other readers stays one copy. */
static bool turns(const ort_node *node)
{
    return ort_edit_is_any(node, "Transpose|Identity|Reshape|Flatten|Squeeze|Unsqueeze");
}

bool ort_quantize_is_computed(const ort_graph *graph, ort_id id)
{
    const ort_node *node = id == ORT_ID_NONE ? NULL : ort_edit_producer(graph, id);
    int visits = VISITS_MAX;
    while (node && turns(node))
        node = ort_edit_producer(graph, node->inputs[0]);
    return node && !ort_node_is_constant(node) && is_made(graph, id, &visits);
}

/* Is the value, all of constants, the weight of a product, or does it lead to one? */
static bool leads(const ort_graph *graph, ort_id id, const char *products, int *visits)
{
    const ort_node *reader;
    ort_readers readers = ort_readers_of(graph, id);
    while (--*visits >= 0 && (reader = ort_readers_next(&readers))) {
        const ort_id out = reader->output_count == 1 ? reader->outputs[0] : ORT_ID_NONE;
        if (ort_edit_is_any(reader, products) && readers.slot == 1)
            return true;
        if (out != ORT_ID_NONE && is_made(graph, out, visits) &&
            leads(graph, out, products, visits))
            return true;
    }
    return false;
}

/* Of the constants that make it, each as often as it is read. */
static double bytes_of(const ort_graph *graph, ort_id id, int *visits)
{
    const ort_node *node = id == ORT_ID_NONE ? NULL : ort_edit_producer(graph, id);
    const ort_tensor *t = id == ORT_ID_NONE ? NULL : ort_fact_value(graph, id);
    double sum = 0;
    if (!node || ort_node_is_constant(node))
        return t ? (double)ort_tensor_bytes(t) : 0;
    for (int i = 0; i < node->input_count && --*visits >= 0; i++)
        sum += bytes_of(graph, node->inputs[i], visits);
    return sum;
}

/* Are its codes, of a byte each, many times what makes them? As those of a Fourier transform, of
 * whose angles a file of 135 kB computes three matrices of as much each. */
static bool is_much_more(const ort_graph *graph, ort_id id)
{
    enum { MOST_TIMES = 2 };
    const ort_type *type = &graph->values.data[id]->fact.type;
    int visits = VISITS_MAX;
    double count = 1;
    for (int i = 0; i < type->rank; i++)
        count *= type->dim[i].size > 0 ? (double)type->dim[i].size : 1;
    return count > MOST_TIMES * bytes_of(graph, id, &visits);
}

static bool grows(const void *arg, const ort_graph *graph, const ort_node *node)
{
    int visits = VISITS_MAX;
    return node->output_count == 1 && node->outputs[0] != ORT_ID_NONE && !turns(node) &&
           is_made(graph, node->outputs[0], &visits) && !is_much_more(graph, node->outputs[0]) &&
           leads(graph, node->outputs[0], arg, &visits);
}

const ort_growing ort_quantize_growing = {grows, "MatMul|Gemm|Conv|ConvTranspose"};
static const ort_growing matrices = {grows, "MatMul|Gemm"};

static bool has_computed(const ort_graph *graph)
{
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        if (ort_edit_is_any(node, matrices.arg) &&
            ort_quantize_is_computed(graph, node->inputs[1]) &&
            !is_much_more(graph, node->inputs[1]))
            return true;
        for (int b = 0; b < node->body_count; b++)
            if (has_computed(node->bodies[b]))
                return true;
    }
    return false;
}

ort_status ort_quantize_fold_weights(ort_model *model, const ort_registry *registry,
                                     const ort_log *log, ort_error *err)
{
    static const char *const passes[] = {"constant_fold", "dead_nodes", NULL};
    ort_optimize_options options = ORT_OPTIMIZE_OPTIONS_INIT;
    ORT_TRY(ort_graph_infer(model->graph, registry, NULL, err));
    if (!has_computed(model->graph))
        return ORT_OK;
    options.passes = passes;
    ort_pass_options pass = ort_rewrite_options(model, &options, registry, log);
    pass.growing = &matrices;
    return ort_model_rewrite(model, &pass, true, err);
}
