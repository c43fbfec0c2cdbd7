/* weight.c - where the bytes of constants lie: in a mapped file, in the arena, in the spool.
 *
 * In models that were loaded as stored a constant is aligned for its element type when its elements
 * are first asked for: most weights of a model that is rewritten are only written again, byte by
 * byte, and need no copy.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/graph.h"
#include "io/blob.h"
#include "io/spool.h"

/* A copy that the model owns. */
static const ort_tensor *align(ort_model *model, const ort_tensor *t)
{
    assert(!t->stride); /* its bytes are copied as they lie */
    size_t bytes = ort_tensor_bytes(t);
    ort_tensor *copy = ort_arena_alloc(&model->arena, sizeof *copy);
    void *data = copy ? aligned_alloc(64, ort_round_up(bytes, 64)) : NULL;
    ort_blob *blob;
    if (!data || ort_blob_new(ORT_BLOB_HEAP, data, bytes, &blob, NULL) != ORT_OK)
        return NULL;
    if (!ort_vec_push(&model->blobs, blob)) {
        ort_blob_release(blob);
        return NULL;
    }
    memcpy(data, t->data, bytes);
    *copy = *t;
    copy->data = data;
    assert(ort_tensor_aligned(copy));
    return copy;
}

const ort_tensor *ort_graph_weight(ort_graph *graph, ort_id id)
{
    assert(ort_graph_has_value(graph, id));
    ort_fact *fact = &graph->values.data[id]->fact;
    if (!graph->model->as_stored || !fact->value || !fact->value->data ||
        ort_tensor_aligned(fact->value))
        return fact->value;
    const ort_tensor *aligned = align(graph->model, fact->value);
    if (aligned)
        fact->value = aligned;
    return aligned;
}

bool ort_graph_is_weight(const ort_graph *graph, ort_id id)
{
    while (graph->values.data[id]->outer != ORT_ID_NONE && graph->parent) {
        id = graph->values.data[id]->outer;
        graph = graph->parent;
    }
    assert(ort_graph_has_value(graph, id));
    const ort_graph_value *v = graph->values.data[id];
    return v->initializer_proto || (v->fact.value && graph->producers.data[id] == ORT_ID_NONE);
}

ort_status ort_graph_align_weights(ort_graph *graph, ort_error *err)
{
    const ort_node *node;
    for (size_t i = 0; i < graph->values.count; i++)
        if (graph->values.data[i]->fact.value && !ort_graph_weight(graph, (ort_id)i))
            return ort_error_memory(err, ort_tensor_bytes(graph->values.data[i]->fact.value));
    ORT_EACH_NODE(graph, node)
        for (int b = 0; b < node->body_count; b++)
            ORT_TRY(ort_graph_align_weights(node->bodies[b], err));
    return ORT_OK;
}

ort_status ort_model_spool(ort_model *model, const char *folder, ort_error *err)
{
    return folder && !model->spool ? ort_spool_new(folder, &model->spool, err) : ORT_OK;
}

void *ort_model_room(ort_model *model, size_t bytes, ort_error *err, ort_status *status)
{
    ort_blob *blob = NULL;
    *status = model->spool ? ort_spool_room(model->spool, bytes, &blob, err) : ORT_OK;
    if (*status != ORT_OK)
        return NULL;
    void *data = blob ? (void *)(uintptr_t)blob->bytes
                      : ort_arena_alloc_aligned(&model->arena, bytes ? bytes : 1, 64, 0);
    if (data && (!blob || ort_vec_push(&model->blobs, blob)))
        return data;
    ort_blob_release(blob);
    *status = ort_error_memory(err, bytes);
    return NULL;
}

void ort_model_forget(const ort_model *model, const void *bytes, size_t count)
{
    for (; model; model = model->base) /* a clone's weights are those of its base */
        ort_blobs_forget(model->blobs.data, model->blobs.count, bytes, count);
}
