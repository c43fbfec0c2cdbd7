/* half_weight.c - which weights a session keeps in 16 bits (half_weight.h). */
#include "op/half_weight.h"

#include "graph/uses.h"
#include "op/edit.h"

bool ort_half_is_kept(const ort_tensor *t)
{
    return t && t->data && (t->dtype == ORT_DTYPE_FLOAT16 || t->dtype == ORT_DTYPE_BFLOAT16) &&
           t->shape.rank == 2 && ort_tensor_count(t) >= ORT_HALF_MIN;
}

/* Does the node read the value as the float weight that it packs, and in no other way? */
static bool packs(const ort_graph *graph, const ort_node *node, ort_id value)
{
    if (!node->op || !(node->op->traits & ORT_TRAIT_PACKS_HALF))
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (i != 1 && node->inputs[i] == value)
            return false;
    for (int i = 0; i < node->implicit_count; i++)
        if (node->implicit[i] == value)
            return false;
    return graph->values.data[node->inputs[0]]->fact.type.dtype == ORT_DTYPE_FLOAT;
}

bool ort_half_is_kept_cast(const ort_graph *graph, const ort_node *node)
{
    if (!ort_edit_is(node, ONNX, "Cast") || node->input_count != 1 ||
        ort_node_attr_int(node, "to") != ORT_DTYPE_FLOAT)
        return false;
    const ort_graph_value *from = graph->values.data[node->inputs[0]];
    const ort_graph_value *to = graph->values.data[node->outputs[0]];
    if (from->is_input || !ort_half_is_kept(from->fact.value) || to->is_output)
        return false;
    ort_readers readers = ort_readers_of(graph, node->outputs[0]);
    const ort_node *reader;
    bool any = false;
    while ((reader = ort_readers_next(&readers))) {
        if (!packs(graph, reader, node->outputs[0]))
            return false;
        any = true;
    }
    return any;
}
