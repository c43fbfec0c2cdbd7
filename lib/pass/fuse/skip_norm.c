/* skip_norm.c - LayerNormalization and RMSNormalization of a sum take the sum in.
 *
 *     LayerNormalization(a + b [+ bias])     SkipLayerNormalization
 *     RMSNormalization(a + b [+ bias])       SkipSimplifiedLayerNormalization
 *
 * Both of com.microsoft: they normalize the last axis of three (or two) dimensions by constants of
 * that axis, and give the sum as their fourth output where others read it: the residual way of a
 * transformer. A bias is a constant of the last axis added to one of the two before.
 *
 * In a file only where the opset has no operator for the norm itself: on its CPU onnxruntime 1.31
 * runs Add and LayerNormalization six times faster than SkipLayerNormalization (128 x 768, one
 * thread: 74 and 518 us), Add and RMSNormalization 1.6 times (54 and 87 us).
 */
#include "pass/fuse/skip_norm.h"

#include "base/error.h"
#include "graph/uses.h"
#include "pass/facts/facts.h"

/* A constant of the last axis of x alone. */
static bool is_row(const ort_graph *graph, ort_id id, const ort_type *x)
{
    const ort_tensor *t = ort_fact_constant(graph, id);
    ort_dim last = x->dim[x->rank - 1];
    return t && ort_dim_known(last) && ort_tensor_is_row(t, last.size);
}

bool ort_skip_norm_read(const ort_graph *graph, const ort_node *node, ort_skip_norm *norm)
{
    if (!ort_edit_is_any(node, "LayerNormalization|RMSNormalization") ||
        node->output_count != 1 || node->input_count < 2 ||
        ort_node_attr_int(node, "stash_type") != 1)
        return false;
    *norm = (ort_skip_norm){.sum = node->inputs[0], .gamma = node->inputs[1],
                            .beta = ort_edit_input(node, 2),
                            .epsilon = ort_node_attr_float(node, "epsilon"),
                            .rms = ort_edit_is(node, ONNX, "RMSNormalization")};
    return ort_fact_along_last(node, ort_fact_type(graph, norm->sum)->rank);
}

ort_node *ort_skip_norm_add(const ort_pass_context *c, const ort_node *node,
                            const ort_skip_norm *norm)
{
    const ort_graph *graph = c->graph;
    ort_node *add = ort_edit_producer(graph, norm->sum);
    const ort_type *x = ort_fact_type(graph, norm->sum);
    if (!ort_edit_is(add, ONNX, "Add") || add->opset < 7)
        return NULL;
    const char *why = NULL;
    if (x->dtype != ORT_DTYPE_FLOAT || ort_type_rank(x) < 2 || x->rank > 3)
        why = "the sum isn't float of two or three dimensions";
    else if (!ort_facts_same_shape(ort_fact_type(graph, add->inputs[0]), x) ||
             !ort_facts_same_shape(ort_fact_type(graph, add->inputs[1]), x))
        why = "what is added may be of other shapes";
    else if ((norm->gamma != ORT_ID_NONE && !is_row(graph, norm->gamma, x)) ||
             (norm->beta != ORT_ID_NONE && !is_row(graph, norm->beta, x)))
        why = "scale or bias isn't a constant of the last axis";
    if (why)
        ort_pass_note(c, node, "%s", why);
    return why || !ort_pass_opset(c, node, MS, norm->rms ? "SkipSimplifiedLayerNormalization"
                                                         : "SkipLayerNormalization", 1)
               ? NULL
               : add;
}

/* An Add of a constant row to something of x's shape that only `add` reads, or NULL. */
static ort_node *bias_before(const ort_graph *graph, const ort_node *add, int slot, int *row)
{
    const ort_type *x = ort_fact_type(graph, add->outputs[0]);
    ort_node *before = ort_edit_producer(graph, add->inputs[slot]);
    if (!ort_edit_is(before, ONNX, "Add") || before->opset < 7 ||
        ort_edit_only_reader(graph, before->outputs[0]) != add ||
        add->inputs[0] == add->inputs[1])
        return NULL;
    for (*row = 0; *row < 2; ++*row)
        if (is_row(graph, before->inputs[*row], x) &&
            ort_facts_same_shape(ort_fact_type(graph, before->inputs[1 - *row]), x))
            return before;
    return NULL;
}

/* The operator adds the bias last. Where the result is rounded to codes, a sum's order shows. */
static bool is_quantized(const ort_graph *graph, ort_id id)
{
    ort_readers readers = ort_readers_of(graph, id);
    const ort_node *reader;
    while ((reader = ort_readers_next(&readers)))
        if (ort_edit_is_any(reader, "DynamicQuantizeLinear|QuantizeLinear"))
            return true;
    return false;
}

ort_status ort_skip_norm_write(ort_pass_context *c, const ort_node *node, ort_node *add,
                               const ort_skip_norm *norm, ort_id output, const char *origin,
                               ort_error *err)
{
    ort_graph *graph = c->graph;
    const ort_graph_value *sum = graph->values.data[norm->sum];
    bool wanted = sum->is_output || sum->use_count > 0; /* the norm has gone */
    ort_id inputs[5] = {add->inputs[0], add->inputs[1], norm->gamma, norm->beta, ORT_ID_NONE};
    ort_id outputs[4] = {output, ORT_ID_NONE, ORT_ID_NONE, wanted ? norm->sum : ORT_ID_NONE};
    ort_node *bias = NULL;
    int row;
    for (int slot = 0; slot < 2 && !bias && !is_quantized(graph, output); slot++)
        if ((bias = bias_before(graph, add, slot, &row))) {
            inputs[slot] = bias->inputs[1 - row];
            inputs[norm->rms ? 3 : 4] = bias->inputs[row];
        }
    ort_graph_remove_node(graph, add);
    if (bias)
        ort_graph_remove_node(graph, bias);
    ort_attr epsilon = ort_attr_float("epsilon", (double)norm->epsilon);
    ort_node_spec spec = {
        .domain = MS,
        .op_type = norm->rms ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization",
        .name = node->name, .inputs = inputs,
        .input_count = bias ? (norm->rms ? 4 : 5) : norm->beta != ORT_ID_NONE ? 4 : 3,
        .outputs = outputs, .output_count = wanted ? 4 : 1, .set = &epsilon, .set_count = 1,
        .origin = origin};
    return ort_edit_add_node(graph, &spec, NULL, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_node *node;
    if (c->portable) /* layer_norm_form.c writes it where it spells one out */
        return ORT_OK;
    ORT_EACH_NODE(graph, node)
    {
        ort_skip_norm norm;
        ort_node *add = ort_skip_norm_read(graph, node, &norm) ? ort_skip_norm_add(c, node, &norm)
                                                               : NULL;
        if (!add)
            continue;
        const char *origin = ort_edit_origin(graph, add, node);
        ort_id output = node->outputs[0];
        ort_graph_remove_node(graph, node);
        ORT_TRY(ort_skip_norm_write(c, node, add, &norm, output, origin, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_skip_norm = {
    .name = "skip_norm",
    .level = 2,
    .doc = "LayerNormalization and RMSNormalization take in the sum before them",
    .apply = apply,
};
