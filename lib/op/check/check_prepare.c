/* check_prepare.c - what preparing a node for runs says of its attributes: forests whose children
 * are missing, post transforms that don't exist, modes nobody knows. Nodes with large constants are
 * left out: those would be packed. */
#include <string.h>

#include "base/error.h"
#include "op/check/check.h"
#include "op/eval.h"

enum { SMALL_BYTES = 65536 };

/* The facts of a node's inputs and outputs; false where one is too little or too much. */
static bool gather(const ort_graph *graph, const ort_node *node, const ort_fact **facts)
{
    for (int i = 0; i < node->input_count + node->output_count; i++) {
        ort_id id = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
        const ort_graph_value *value = ort_graph_value_at(graph, id);
        facts[i] = NULL;
        if (!value)
            continue;
        const ort_fact *fact = &value->fact;
        if (fact->type.kind == ORT_TYPE_UNKNOWN ||
            (fact->type.kind == ORT_TYPE_TENSOR && !fact->type.dtype) ||
            (fact->value && (!fact->value->data || ort_tensor_bytes(fact->value) > SMALL_BYTES)))
            return false;
        facts[i] = fact;
    }
    return true;
}

static ort_status check_node(const ort_graph *graph, const ort_node *node, ort_findings *findings,
                             ort_error *err)
{
    ort_arena memory = {0};
    ort_error why = {0};
    int count = node->input_count + node->output_count;
    if (!node->op || !ort_op_prepares(node->op) || node->body_count)
        return ORT_OK;
    const ort_fact **facts = ort_arena_array(&memory, (size_t)count + 1, sizeof *facts);
    if (!facts)
        return ort_error_memory(err, (size_t)count * sizeof *facts);
    ort_status status = ORT_OK;
    if (gather(graph, node, facts)) {
        ort_prep prep = {.node = node,
                         .op = node->op,
                         .opset = node->opset,
                         .in_count = node->input_count,
                         .out_count = node->output_count,
                         .in = facts,
                         .out = facts + node->input_count,
                         .graph = graph,
                         .k = ort_kernels_get("scalar"),
                         .arena = &memory};
        status = ort_op_prepare(&prep, &why);
        if (status == ORT_OK && prep.release)
            prep.release(prep.state);
    }
    ort_arena_release(&memory);
    if (status == ORT_ERROR_MEMORY)
        return ort_error_set(err, status, "%s", why.message);
    if (status == ORT_ERROR_RUN || status == ORT_ERROR_MODEL) {
        ort_node_wrap_error(node, &why, status);
        ort_findings_add(findings, ORT_FINDING_ERROR, "%s", why.message);
    }
    return ORT_OK;
}

ort_status ort_check_prepare(const ort_graph *graph, ort_findings *findings, ort_error *err)
{
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        ORT_TRY(check_node(graph, node, findings, err));
        for (int i = 0; i < node->body_count; i++)
            ORT_TRY(ort_check_prepare(node->bodies[i], findings, err));
    }
    return ORT_OK;
}
