/* spacer.c - which codes are misread, and Sums around these. */
#include "op/spacer.h"

#include <string.h>

#include "base/error.h"
#include "graph/uses.h"

static bool is_float8(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT8E4M3FN || dtype == ORT_DTYPE_FLOAT8E4M3FNUZ ||
           dtype == ORT_DTYPE_FLOAT8E5M2 || dtype == ORT_DTYPE_FLOAT8E5M2FNUZ;
}

/* Constants of 4 bits beside bytes are known everywhere. */
static bool is_misread(ort_dtype dtype, bool constant)
{
    const bool two = dtype == ORT_DTYPE_INT2 || dtype == ORT_DTYPE_UINT2;
    const bool four = dtype == ORT_DTYPE_INT4 || dtype == ORT_DTYPE_UINT4;
    return two || is_float8(dtype) || (four && !constant);
}

static bool is_linear(const ort_node *node, const char *op_type)
{
    return ort_edit_is(node, ONNX, op_type) || ort_edit_is(node, MS, op_type);
}

/* Does the DequantizeLinear read such codes? */
static bool reads_misread(const ort_graph *graph, const ort_node *node)
{
    const ort_id codes = is_linear(node, "DequantizeLinear") ? ort_edit_input(node, 0)
                                                             : ORT_ID_NONE;
    return codes != ORT_ID_NONE &&
           is_misread(ort_fact_type(graph, codes)->dtype, ort_fact_value(graph, codes) != NULL);
}

/* Does the QuantizeLinear write such codes? */
static bool writes_misread(const ort_graph *graph, const ort_node *node)
{
    return is_linear(node, "QuantizeLinear") && node->output_count > 0 &&
           node->outputs[0] != ORT_ID_NONE &&
           is_misread(ort_fact_type(graph, node->outputs[0])->dtype, false);
}

/* A product of computed int8 with a bias, from opset 21 on: onnxruntime 1.31 makes a Gemm between
 * two Reshapes of MatMul and Add, moves Q and DQ over the first, and makes uint8 of them but for an
 * attribute that says int8. */
static bool is_misled(const ort_graph *graph, const ort_node *node)
{
    enum { OUTPUT_TYPE_OPSET = 21 };
    const ort_node *before = ort_edit_is(node, ONNX, "MatMul")
                                 ? ort_edit_producer(graph, node->inputs[0]) : NULL;
    const ort_id codes = before && is_linear(before, "DequantizeLinear") ? before->inputs[0]
                                                                         : ORT_ID_NONE;
    return codes != ORT_ID_NONE && ort_fact_type(graph, codes)->dtype == ORT_DTYPE_INT8 &&
           !ort_fact_value(graph, codes) &&
           ort_model_opset(graph->model, "") >= OUTPUT_TYPE_OPSET;
}

bool ort_spacer_is(const ort_graph *graph, const ort_node *node)
{
    if (!ort_edit_is(node, ONNX, "Sum") || node->input_count != 1 ||
        node->inputs[0] == ORT_ID_NONE || node->output_count != 1)
        return false;
    const ort_node *before = ort_edit_producer(graph, node->inputs[0]);
    if (before && (reads_misread(graph, before) || is_misled(graph, before)))
        return true;
    ort_readers readers = ort_readers_of(graph, node->outputs[0]);
    for (const ort_node *reader; (reader = ort_readers_next(&readers));)
        if (writes_misread(graph, reader))
            return true;
    return false;
}

ort_node *ort_spacer_producer(const ort_graph *graph, ort_id value)
{
    ort_node *node = ort_edit_producer(graph, value);
    return node && ort_spacer_is(graph, node) ? ort_edit_producer(graph, node->inputs[0]) : node;
}

/* The result of a Sum that isn't there yet, called after `like`. */
static ort_id name_sum(ort_graph *graph, ort_id like)
{
    const char *name = ort_arena_printf(&graph->model->arena, "%s_apart",
                                        graph->values.data[like]->name);
    return name ? ort_graph_add_value(graph, name) : ORT_ID_NONE;
}

static ort_status add_sum(ort_graph *graph, ort_id value, ort_id result, ort_error *err)
{
    ort_node_spec spec = {.domain = ONNX, .op_type = "Sum",
                          .name = graph->values.data[result]->name, .inputs = &value,
                          .input_count = 1, .outputs = &result, .output_count = 1};
    return ort_edit_add_node(graph, &spec, NULL, err);
}

ort_status ort_spacer_of(ort_graph *graph, ort_id *value, ort_error *err)
{
    const ort_id numbers = *value;
    *value = name_sum(graph, numbers);
    return *value == ORT_ID_NONE ? ort_error_memory(err, 1)
                                 : add_sum(graph, numbers, *value, err);
}

static ort_status put_behind(ort_graph *graph, const ort_node *node, ort_error *err)
{
    const ort_id numbers = node->outputs[0];
    if (graph->values.data[numbers]->use_count == 0) /* an output of the graph alone */
        return ORT_OK;
    const ort_id sum = name_sum(graph, numbers);
    if (sum == ORT_ID_NONE)
        return ort_error_memory(err, 1);
    ort_graph_replace_uses(graph, numbers, sum);
    return add_sum(graph, numbers, sum, err);
}

/* What a graph is given, or has as a constant, no operator computes. */
static ort_status put_before(ort_graph *graph, ort_node *quantize, ort_error *err)
{
    const ort_id numbers = quantize->inputs[0];
    if (!ort_edit_producer(graph, numbers))
        return ORT_OK;
    const ort_id sum = name_sum(graph, quantize->outputs[0]);
    if (sum == ORT_ID_NONE)
        return ort_error_memory(err, 1);
    ort_node_set_input(graph, quantize, 0, sum);
    return add_sum(graph, numbers, sum, err);
}

/* Not one that the model had before node `first`. */
static bool is_biased(const ort_graph *graph, const ort_node *node, size_t first)
{
    return is_misled(graph, node) && ort_edit_producer(graph, node->inputs[0])->id >= first &&
           ort_edit_is(ort_edit_only_reader(graph, node->outputs[0]), ONNX, "Add");
}

ort_status ort_spacers_add(ort_graph *graph, size_t first, ort_error *err)
{
    const size_t count = graph->nodes.count;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        ort_node *node = graph->nodes.data[i];
        if (node->removed)
            continue;
        const bool behind = i >= first ? reads_misread(graph, node)
                                       : is_biased(graph, node, first);
        const bool before = i >= first && writes_misread(graph, node);
        if (behind)
            ORT_TRY(put_behind(graph, node, err));
        if (before)
            ORT_TRY(put_before(graph, node, err));
        any = any || behind || before;
    }
    return any ? ort_edit_finish(graph, err) : ORT_OK;
}
