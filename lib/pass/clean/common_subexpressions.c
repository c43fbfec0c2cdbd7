/* common_subexpressions.c - nodes that compute the same from the same become one; constants of the
 * same type, shape and bytes become one. In the order of the graph, so that one sweep is enough: by
 * the time a node is looked at, its inputs stand for all that equal them. Nodes that draw random
 * numbers or own bodies stay.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hashmap.h"
#include "graph/follow.h"
#include "graph/hash.h"
#include "op/edit.h"
#include "pass/pass.h"

/* Larger constants of a session are left alone: looking at them would read all weights at load. */
#define SESSION_CONSTANT_BYTES 4096
#define HASHED_BYTES 256
#define FORGOTTEN_BYTES (64 << 10) /* smaller constants aren't worth a system call */
#define PIECE_BYTES ((size_t)16 << 20)

/* What is hashed of a constant or a list; where beginnings agree, so many are told apart. */
#define LIST_BYTES 64
#define TRIES 8

/* The first of each kind among nodes or values, by hash: open addressing, at most half full. */
typedef struct seen {
    struct {
        uint32_t tag; /* high bits of the hash */
        ort_id id;    /* plus 1; 0: empty */
    } *slots;
    size_t mask;
} seen;

static ort_status begin(seen *s, size_t count, ort_error *err)
{
    size_t slots = 2;
    while (slots < 2 * count)
        slots *= 2;
    s->mask = slots - 1;
    s->slots = calloc(slots, sizeof *s->slots);
    return s->slots ? ORT_OK : ort_error_memory(err, slots * sizeof *s->slots);
}

/* Are the values or nodes of these ids the same? */
typedef bool same_fn(const ort_graph *graph, ort_id a, ort_id b);

/* The id of the first that is the same, or `id` itself when there is none so far. */
static ort_id first_same(seen *s, const ort_graph *graph, uint64_t hash, ort_id id, same_fn *same)
{
    const uint32_t tag = (uint32_t)(hash >> 32);
    size_t at = (size_t)hash & s->mask;
    for (int tries = 0; s->slots[at].id; at = (at + 1) & s->mask) {
        if (s->slots[at].tag != tag)
            continue;
        if (same(graph, s->slots[at].id - 1, id))
            return s->slots[at].id - 1;
        if (++tries == TRIES)
            return id;
    }
    s->slots[at].tag = tag;
    s->slots[at].id = id + 1;
    return id;
}

/* ---- constants */

/* Of weights of `model` (or NULL), which may lie in a mapped file: what was compared leaves memory
 * again. */
static bool same_bytes(const ort_model *model, const uint8_t *a, const uint8_t *b, size_t bytes)
{
    bool same = true;
    for (size_t at = 0; at < bytes && same; at += PIECE_BYTES) {
        size_t size = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        same = !memcmp(a + at, b + at, size);
        if (model && size == PIECE_BYTES) {
            ort_model_forget(model, a + at, size);
            ort_model_forget(model, b + at, size);
        }
    }
    return same;
}

static bool same_tensor(const ort_model *model, const ort_tensor *a, const ort_tensor *b)
{
    if (a->dtype != b->dtype || a->shape.rank != b->shape.rank || a->stride || b->stride ||
        a->dtype == ORT_DTYPE_STRING ||
        memcmp(a->shape.dim, b->shape.dim, sizeof *a->shape.dim * (size_t)a->shape.rank))
        return false;
    size_t bytes = ort_tensor_bytes(a);
    return !bytes || a->data == b->data ||
           (a->data && b->data && same_bytes(model, a->data, b->data, bytes));
}

static bool same_constant(const ort_graph *graph, ort_id a, ort_id b)
{
    return same_tensor(graph->model, graph->values.data[a]->fact.value,
                       graph->values.data[b]->fact.value);
}

/* Type, shape and the beginning: enough to find candidates without reading every weight. */
static uint64_t hash_constant(const ort_tensor *t)
{
    size_t bytes = ort_tensor_bytes(t), rank = (size_t)t->shape.rank;
    uint64_t h = ort_hash_bytes(t->shape.dim, rank * sizeof *t->shape.dim, (uint64_t)t->dtype);
    return t->data ? ort_hash_bytes(t->data, bytes < HASHED_BYTES ? bytes : HASHED_BYTES, h) : h;
}

static bool sharable(const ort_pass_context *c, ort_id id)
{
    const ort_graph_value *value = c->graph->values.data[id];
    const ort_tensor *t = value->fact.value;
    return t && t->data && !t->stride && c->graph->producers.data[id] == ORT_ID_NONE &&
           !value->is_input && !value->is_output && value->use_count > 0 &&
           t->dtype != ORT_DTYPE_STRING &&
           (c->portable || ort_tensor_bytes(t) <= SESSION_CONSTANT_BYTES);
}

static ort_status share_constants(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_graph *graph = c->graph;
    seen s;
    ORT_TRY(begin(&s, graph->initializers.count, err));
    for (size_t i = 0; i < graph->initializers.count; i++) {
        ort_id id = graph->initializers.data[i];
        if (!sharable(c, id))
            continue;
        const ort_tensor *constant = graph->values.data[id]->fact.value;
        ort_id first = first_same(&s, graph, hash_constant(constant), id, same_constant);
        if (ort_tensor_bytes(constant) >= FORGOTTEN_BYTES)
            ort_model_forget(graph->model, constant->data, ort_tensor_bytes(constant));
        if (first == id)
            continue;
        *c->growth_bytes += ort_tensor_bytes(constant);
        ort_graph_replace_uses(graph, id, first);
        ++*changes;
    }
    free(s.slots);
    return ORT_OK;
}

/* ---- nodes */

static bool same_list(const ort_attr *a, const ort_attr *b, const void *x, const void *y,
                      size_t size)
{
    return a->count == b->count && (!a->count || !memcmp(x, y, a->count * size));
}

static bool same_string(const ort_string *a, const ort_string *b)
{
    return a->length == b->length && (!a->length || !memcmp(a->ptr, b->ptr, a->length));
}

static bool same_attr(const ort_attr *a, const ort_attr *b)
{
    if (a->type != b->type || a->reference || b->reference)
        return false;
    switch (a->type) {
    case ORT_ATTR_INT: return a->i == b->i;
    case ORT_ATTR_FLOAT: return !memcmp(&a->f, &b->f, sizeof a->f);
    case ORT_ATTR_STRING: return same_string(&a->s, &b->s);
    case ORT_ATTR_INTS: return same_list(a, b, a->ints, b->ints, sizeof *a->ints);
    case ORT_ATTR_FLOATS: return same_list(a, b, a->floats, b->floats, sizeof *a->floats);
    case ORT_ATTR_STRINGS:
        for (size_t i = 0; a->count == b->count && i < a->count; i++)
            if (!same_string(&a->strings[i], &b->strings[i]))
                return false;
        return a->count == b->count;
    case ORT_ATTR_TENSOR: return a->t && b->t && same_tensor(NULL, a->t, b->t);
    default: return false;
    }
}

static bool same_node(const ort_graph *graph, ort_id first, ort_id second)
{
    const ort_node *a = graph->nodes.data[first], *b = graph->nodes.data[second];
    if (a->removed || a->op != b->op || a->opset != b->opset || a->input_count != b->input_count ||
        a->attr_count != b->attr_count || a->output_count != b->output_count ||
        (a->input_count &&
         memcmp(a->inputs, b->inputs, sizeof *a->inputs * (size_t)a->input_count)))
        return false;
    for (int i = 0; i < a->attr_count; i++) {
        const ort_attr *other = ort_node_attr(b, a->attrs[i].name);
        if (!other || !same_attr(&a->attrs[i], other))
            return false;
    }
    for (int i = 0; i < a->output_count; i++)
        if (b->outputs[i] != ORT_ID_NONE && a->outputs[i] == ORT_ID_NONE)
            return false;
    return true;
}

/* Of lists only the beginning: a forest of trees has megabytes of them, and nothing it equals. */
static uint64_t hash_attr(const ort_attr *a)
{
    uint64_t h = ort_hash_bytes(a->name, strlen(a->name), (uint64_t)a->type);
    size_t ints = a->count * sizeof *a->ints, floats = a->count * sizeof *a->floats;
    switch (a->type) {
    case ORT_ATTR_INT: return ort_hash_bytes(&a->i, sizeof a->i, h);
    case ORT_ATTR_FLOAT: return ort_hash_bytes(&a->f, sizeof a->f, h);
    case ORT_ATTR_STRING: return ort_hash_bytes(a->s.ptr, a->s.length, h);
    case ORT_ATTR_INTS: return ort_hash_bytes(a->ints, ints < LIST_BYTES ? ints : LIST_BYTES, h);
    case ORT_ATTR_FLOATS:
        return ort_hash_bytes(a->floats, floats < LIST_BYTES ? floats : LIST_BYTES, h);
    case ORT_ATTR_TENSOR: return h ^ (a->t ? hash_constant(a->t) : 0);
    default: return h ^ a->count;
    }
}

/* The order of attributes doesn't matter: their hashes are added. */
static uint64_t hash_node(const ort_node *node)
{
    uint64_t h = ort_hash_bytes(&node->op, sizeof node->op, 7), attrs = 0;
    h = ort_hash_bytes(node->inputs, sizeof *node->inputs * (size_t)node->input_count, h);
    for (int i = 0; i < node->attr_count; i++)
        attrs += hash_attr(&node->attrs[i]);
    return ort_hash_bytes(&attrs, sizeof attrs, h);
}

static bool mergeable(const ort_node *node)
{
    return node->op && !node->body_count && node->output_count &&
           !(node->op->traits & (ORT_TRAIT_RANDOM | ORT_TRAIT_CONTROL));
}

/* Graph outputs keep their names: such a node stays, and others become it where they can. */
static bool gives_output(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE && graph->values.data[node->outputs[i]]->is_output)
            return true;
    return false;
}

static ort_status merge(ort_graph *graph, ort_node *into, ort_node *node, ort_error *err)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE)
            ort_graph_replace_uses(graph, node->outputs[i], into->outputs[i]);
    ort_graph_remove_node(graph, node);
    return ort_follow_merge(graph, into, node, err);
}

static ort_status merge_nodes(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_graph *graph = c->graph;
    seen s;
    ort_node *node;
    ort_status status = ORT_OK;
    ORT_TRY(begin(&s, graph->order.count, err));
    ORT_EACH_NODE(graph, node)
    {
        if (!mergeable(node))
            continue;
        ort_node *into =
            graph->nodes.data[first_same(&s, graph, hash_node(node), node->id, same_node)];
        if (into == node)
            continue;
        if (gives_output(graph, node)) {
            ort_pass_note(c, node, "it gives a graph output and equals another node");
            continue;
        }
        if ((status = merge(graph, into, node, err)) != ORT_OK)
            break;
        ++*changes;
    }
    free(s.slots);
    return status;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ORT_TRY(share_constants(c, changes, err));
    return merge_nodes(c, changes, err);
}

const ort_pass ort_pass_common_subexpressions = {
    .name = "common_subexpressions",
    .level = 1,
    .exact = true,
    .doc = "nodes and constants that are the same become one",
    .apply = apply,
};
