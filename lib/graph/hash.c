/* hash.c - structural hashes (hash.h): a value's hash says how it is computed, from the names of
 * the graph inputs down; names of nodes and temporaries don't enter. */
#include "graph/hash.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "graph/diff.h"

static uint64_t mix(uint64_t h, uint64_t value)
{
    return ort_hash_bytes(&value, sizeof value, h);
}

static uint64_t mix_text(uint64_t h, const char *text)
{
    return ort_hash_bytes(text, strlen(text), h);
}

uint64_t ort_hash_tensor(const ort_tensor *t)
{
    assert(!t->stride);
    uint64_t h = mix(1, (uint64_t)t->dtype);
    int64_t count = ort_tensor_count(t);
    for (int i = 0; i < t->shape.rank; i++)
        h = mix(h, (uint64_t)t->shape.dim[i]);
    if (!t->data || !count)
        return h;
    if (t->dtype != ORT_DTYPE_STRING)
        return ort_hash_bytes(t->data, ort_tensor_bytes(t), h);
    for (int64_t i = 0; i < count; i++) {
        const ort_string *s = (const ort_string *)t->data + i;
        h = mix(ort_hash_bytes(s->ptr, s->length, h), s->length);
    }
    return h;
}

static uint64_t hash_constant(const ort_graph_hashes *h, const ort_tensor *t)
{
    ort_tensor form = *t;
    if (h->forms && (ort_dtype_get(t->dtype)->class_ == ORT_CLASS_FLOAT ||
                     ort_dtype_get(t->dtype)->bits == 8))
        form.data = NULL;
    return ort_hash_tensor(&form);
}

static uint64_t hash_type(const ort_dim_table *dims, const ort_type *type)
{
    char text[1024];
    return mix_text(2, ort_type_format(dims, type, text, sizeof text));
}

uint64_t ort_hash_attr(const ort_dim_table *dims, const ort_attr *a)
{
    uint64_t h = mix(mix_text(3, a->name), (uint64_t)a->type);
    if (a->reference)
        return mix_text(h, a->reference);
    switch (a->type) {
    case ORT_ATTR_INT: return mix(h, (uint64_t)a->i);
    case ORT_ATTR_FLOAT: return ort_hash_bytes(&a->f, sizeof a->f, h);
    case ORT_ATTR_STRING: return ort_hash_bytes(a->s.ptr, a->s.length, h);
    case ORT_ATTR_INTS: return ort_hash_bytes(a->ints, a->count * sizeof *a->ints, h);
    case ORT_ATTR_FLOATS: return ort_hash_bytes(a->floats, a->count * sizeof *a->floats, h);
    case ORT_ATTR_STRINGS:
        for (size_t i = 0; i < a->count; i++)
            h = mix(ort_hash_bytes(a->strings[i].ptr, a->strings[i].length, h), i);
        return h;
    case ORT_ATTR_TENSOR:
    case ORT_ATTR_SPARSE_TENSOR: return mix(h, ort_hash_tensor(a->t));
    case ORT_ATTR_TENSORS:
    case ORT_ATTR_SPARSE_TENSORS:
        for (size_t i = 0; i < a->count; i++)
            h = mix(h, ort_hash_tensor(&a->tensors[i]));
        return h;
    case ORT_ATTR_TYPE_PROTO: return mix(h, hash_type(dims, a->type_proto));
    default: return h; /* graphs are hashed with their node */
    }
}

/* Order of attributes doesn't matter: their hashes are added. */
static uint64_t hash_attrs(const ort_graph *graph, const ort_node *node)
{
    uint64_t sum = 0;
    for (int i = 0; i < node->attr_count; i++)
        sum += ort_hash_attr(graph->model->dims, &node->attrs[i]);
    return sum;
}

static ort_status hash_graph(const ort_graph *graph, const uint64_t *outer, ort_graph_hashes *h,
                             ort_error *err);

static ort_status hash_node(const ort_graph *graph, const ort_node *node, ort_graph_hashes *h,
                            ort_error *err)
{
    uint64_t x = mix_text(mix_text(4, node->domain), node->op_type);
    x = mix(mix(x, (uint64_t)node->opset), hash_attrs(graph, node));
    for (int i = 0; i < node->input_count; i++)
        x = mix(x, node->inputs[i] == ORT_ID_NONE ? 5 : h->values[node->inputs[i]]);
    for (int b = 0; b < node->body_count; b++) {
        ort_graph_hashes inner = {.forms = h->forms};
        ORT_TRY(hash_graph(node->bodies[b], h->values, &inner, err));
        x = mix(x, inner.whole);
        ort_graph_hashes_release(&inner);
    }
    h->nodes[node->id] = x;
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE)
            h->values[node->outputs[i]] = mix(x, (uint64_t)i + 6);
    return ORT_OK;
}

static ort_status hash_graph(const ort_graph *graph, const uint64_t *outer, ort_graph_hashes *h,
                             ort_error *err)
{
    const ort_node *node;
    h->values = ort_arena_array(&h->arena, graph->values.count, sizeof *h->values);
    h->nodes = ort_arena_array(&h->arena, graph->nodes.count, sizeof *h->nodes);
    if (!h->values || !h->nodes)
        return ort_error_memory(err, graph->values.count * sizeof *h->values);
    for (size_t i = 0; i < graph->values.count; i++) {
        const ort_graph_value *v = graph->values.data[i];
        assert(v->outer == ORT_ID_NONE || ort_graph_has_value(graph->parent, v->outer));
        if (v->outer != ORT_ID_NONE && outer)
            h->values[i] = outer[v->outer];
        else if (v->fact.value && graph->producers.data[i] == ORT_ID_NONE)
            h->values[i] = mix(hash_constant(h, v->fact.value), v->is_input);
    }
    for (size_t i = 0; i < graph->inputs.count; i++) {
        const ort_graph_value *v = graph->values.data[graph->inputs.data[i]];
        uint64_t x = graph->parent ? mix(7, i) : mix_text(7, v->name);
        h->values[graph->inputs.data[i]] = mix(x, h->values[graph->inputs.data[i]]);
    }
    ORT_EACH_NODE(graph, node)
    {
        const ort_tensor *constant = ort_node_constant(node); /* like an initializer */
        if (constant && node->output_count && node->outputs[0] != ORT_ID_NONE)
            h->values[node->outputs[0]] = mix(hash_constant(h, constant), 0);
        else
            ORT_TRY(hash_node(graph, node, h, err));
    }
    h->whole = 8;
    for (size_t i = 0; i < graph->outputs.count; i++) {
        h->whole = mix(h->whole, h->values[graph->outputs.data[i]]);
        if (!graph->parent)
            h->whole = mix_text(h->whole, graph->values.data[graph->outputs.data[i]]->name);
    }
    return ORT_OK;
}

ort_status ort_graph_hashes_init(const ort_graph *graph, bool forms, ort_graph_hashes *hashes,
                                 ort_error *err)
{
    *hashes = (ort_graph_hashes){.forms = forms};
    return hash_graph(graph, NULL, hashes, err);
}

void ort_graph_hashes_release(ort_graph_hashes *hashes)
{
    ort_arena_release(&hashes->arena);
    *hashes = (ort_graph_hashes){0};
}

ort_status ort_graph_hash(const ort_graph *graph, uint64_t *hash, ort_error *err)
{
    ort_graph_hashes h;
    ort_status status = ort_graph_hashes_init(graph, false, &h, err);
    *hash = h.whole;
    ort_graph_hashes_release(&h);
    return status;
}
