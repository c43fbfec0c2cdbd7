/* facts_verify.c - facts are never stale: what is known of a node's outputs agrees with what its
 * operator infers from its inputs now. */
#include <string.h>

#include "base/error.h"
#include "op/op.h"

enum { MOST_SLOTS = 64, MOST_ELEMENTS = 64 };

static ort_status stale(const ort_graph *graph, const ort_node *node, const ort_graph_value *v,
                        const ort_type *now, const char *what, ort_error *err)
{
    char label[256], known[300], inferred[300];
    return ort_error_set(err, ORT_ERROR_RUN,
                         "the graph is broken: %s, value '%s': %s: %s is known, %s is inferred",
                         ort_node_label(node, label, sizeof label), v->name, what,
                         ort_type_format(graph->model->dims, &v->fact.type, known, sizeof known),
                         ort_type_format(graph->model->dims, now, inferred, sizeof inferred));
}

/* Of a few elements; more are too many to compare after every pass. */
static bool same_value(const ort_tensor *a, const ort_tensor *b)
{
    if (!a || !b || !a->data || !b->data || a->dtype != b->dtype ||
        a->dtype == ORT_DTYPE_STRING || ort_tensor_count(a) > MOST_ELEMENTS)
        return true;
    return ort_shape_equal(&a->shape, &b->shape) &&
           !memcmp(a->data, b->data, ort_tensor_bytes(a));
}

static ort_status verify_node(const ort_graph *graph, const ort_node *node, ort_arena *arena,
                              ort_error *err)
{
    const ort_fact *in[MOST_SLOTS];
    ort_fact out[MOST_SLOTS];
    ort_error why = {0};
    if (!node->op || !node->op->impl || node->body_count || graph->model->skeleton ||
        node->input_count > MOST_SLOTS || node->output_count > MOST_SLOTS)
        return ORT_OK;
    for (int i = 0; i < node->input_count; i++) {
        const ort_graph_value *v = ort_graph_value_at(graph, node->inputs[i]);
        in[i] = v ? &v->fact : NULL;
    }
    /* What can't be inferred any more was refused before, or will be when it runs. */
    if (ort_infer_call(graph, node, in, node->input_count, out, node->output_count,
                       graph->model->dims, arena, &why))
        return ORT_OK;
    for (int i = 0; i < node->output_count; i++) {
        const ort_graph_value *v = ort_graph_value_at(graph, node->outputs[i]);
        ort_type known = v ? v->fact.type : out[i].type;
        if (v && !ort_type_merge(&known, &out[i].type))
            return stale(graph, node, v, &out[i].type, "its type is stale", err);
        if (v && !same_value(v->fact.value, out[i].value))
            return stale(graph, node, v, &out[i].type, "its constant is stale", err);
    }
    return ORT_OK;
}

ort_status ort_facts_verify(const ort_graph *graph, ort_error *err)
{
    ort_arena arena = {0};
    ort_status status = ORT_OK;
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        status = status != ORT_OK ? status : verify_node(graph, node, &arena, err);
        for (int b = 0; b < node->body_count && status == ORT_OK; b++)
            status = ort_facts_verify(node->bodies[b], err);
    }
    ort_arena_release(&arena);
    return status;
}
