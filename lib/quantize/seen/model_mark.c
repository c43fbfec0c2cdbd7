/* model_mark.c - weights enter by a few pieces of each, so that a model of many gigabytes isn't
 * read for it: whatever changes a weight as a whole (training, scaling) changes these too.
 */
#include "quantize/seen/model_mark.h"

#include <string.h>

#include "base/hashmap.h"
#include "graph/hash.h"

static uint64_t mix(uint64_t h, uint64_t value)
{
    return ort_hash_bytes(&value, sizeof value, h);
}

static uint64_t mix_text(uint64_t h, const char *text)
{
    return ort_hash_bytes(text, strlen(text) + 1, h);
}

static uint64_t mix_weight(uint64_t h, const ort_tensor *t)
{
    enum { PIECES = 8, PIECE = 64 };
    h = mix(h, (uint64_t)t->dtype);
    for (int i = 0; i < t->shape.rank; i++)
        h = mix(h, (uint64_t)t->shape.dim[i]);
    size_t bytes = t->data && t->dtype != ORT_DTYPE_STRING && !t->stride ? ort_tensor_bytes(t) : 0;
    if (bytes <= PIECES * PIECE)
        return bytes ? ort_hash_bytes(t->data, bytes, h) : h;
    for (size_t i = 0; i < PIECES; i++) /* the first and the last among them */
        h = ort_hash_bytes((const char *)t->data + (bytes - PIECE) / (PIECES - 1) * i, PIECE, h);
    return h;
}

static uint64_t mix_value(uint64_t h, const ort_graph *graph, ort_id id)
{
    const ort_graph_value *v = ort_graph_value_at(graph, id);
    return v ? mix_text(h, v->name) : mix(h, 1);
}

static uint64_t mix_node(uint64_t h, const ort_graph *graph, const ort_node *node)
{
    const ort_tensor *constant = ort_node_constant(node);
    uint64_t attrs = 0; /* in any order */
    h = mix_text(mix_text(h, node->domain), node->op_type);
    for (int i = 0; i < node->attr_count && !constant; i++)
        attrs += ort_hash_attr(graph->model->dims, &node->attrs[i]);
    h = constant ? mix_weight(h, constant) : mix(h, attrs);
    for (int i = 0; i < node->input_count; i++)
        h = mix_value(h, graph, node->inputs[i]);
    for (int i = 0; i < node->output_count; i++)
        h = mix_value(mix(h, 2), graph, node->outputs[i]);
    return h;
}

enum { LARGE_BYTES = 64 << 10 }; /* smaller ones aren't worth a system call */

static uint64_t mix_graph(uint64_t h, const ort_graph *graph)
{
    const ort_node *node;
    for (size_t i = 0; i < graph->inputs.count; i++)
        h = mix_value(h, graph, graph->inputs.data[i]);
    for (size_t i = 0; i < graph->initializers.count; i++) {
        const ort_graph_value *v = graph->values.data[graph->initializers.data[i]];
        h = mix_text(h, v->name);
        h = v->fact.value ? mix_weight(h, v->fact.value) : h;
        if (v->fact.value && v->fact.value->data && ort_tensor_bytes(v->fact.value) >= LARGE_BYTES)
            ort_model_forget(graph->model, v->fact.value->data, ort_tensor_bytes(v->fact.value));
    }
    ORT_EACH_NODE(graph, node)
    {
        h = mix_node(h, graph, node);
        for (int b = 0; b < node->body_count; b++)
            h = mix_graph(mix(h, 3), node->bodies[b]);
    }
    for (size_t i = 0; i < graph->outputs.count; i++)
        h = mix_value(mix(h, 4), graph, graph->outputs.data[i]);
    return h;
}

uint64_t ort_model_mark(const ort_model *model)
{
    return mix_graph(0, model->graph);
}
