/* generation_shared.c - bodies whose past and present states are one buffer (generation.h). */
#include <string.h>

#include "op/generation/generation.h"

static int find_input(const ort_graph *body, const char *name)
{
    for (size_t i = 0; i < body->inputs.count; i++)
        if (!strcmp(ort_graph_value_at(body, body->inputs.data[i])->name, name))
            return (int)i;
    return -1;
}

static ort_generation_buffer find(const ort_graph *body)
{
    return (ort_generation_buffer){find_input(body, "past_sequence_length"),
                                   find_input(body, "beam_width"),
                                   find_input(body, "cache_indirection")};
}

int ort_generation_shared_count(const ort_graph *body)
{
    ort_generation_buffer b = find(body);
    return (b.length >= 0) + (b.width >= 0) + (b.from >= 0);
}

void ort_generation_find_shared(ort_generation *g)
{
    g->shared = find(g->call->node->bodies[g->body]);
}

static ort_status feed_number(ort_value **slot, int64_t number, ort_error *err)
{
    ort_shape shape = {1, {1}};
    ort_value_free(*slot);
    *slot = NULL;
    ORT_TRY(ort_value_new_tensor_(ORT_DTYPE_INT32, &shape, slot, err));
    *ort_generation_data(*slot) = (int32_t)number;
    return ORT_OK;
}

ort_status ort_generation_feed_shared(ort_generation *g, int64_t filled, ort_error *err)
{
    ort_shape shape = {3, {g->batch, g->beams, g->max}};
    if (g->shared.length >= 0)
        ORT_TRY(feed_number(&g->in[g->shared.length], filled, err));
    if (g->shared.width >= 0)
        ORT_TRY(feed_number(&g->in[g->shared.width], g->beams, err));
    if (g->shared.from < 0 || g->in[g->shared.from])
        return ORT_OK;
    ORT_TRY(ort_value_new_tensor_(ORT_DTYPE_INT32, &shape, &g->in[g->shared.from], err));
    for (int64_t i = 0; i < g->rows * g->max; i++)
        ort_generation_data(g->in[g->shared.from])[i] = (int32_t)(i / g->max % g->beams);
    return ORT_OK;
}

ort_status ort_generation_grow(ort_generation *g, ort_value **slot, ort_error *err)
{
    ort_value *grown = NULL, *old = *slot;
    ort_shape shape = old->tensor.shape;
    if (g->shared.length < 0)
        return ORT_OK;
    if (shape.rank != 4 || shape.dim[2] > g->max)
        return ort_call_fail(g->call, err, "a state of its encoder doesn't have the shape [batch, "
                             "heads, length, size]");
    int64_t heads = shape.dim[0] * shape.dim[1], count = shape.dim[2] * shape.dim[3];
    shape.dim[2] = g->max;
    ORT_TRY(ort_value_new_tensor_(old->tensor.dtype, &shape, &grown, err));
    memset(grown->tensor.data, 0, ort_tensor_bytes(&grown->tensor));
    for (int64_t h = 0; h < heads; h++)
        ort_flow_copy(&grown->tensor, h * g->max * shape.dim[3], &old->tensor, h * count, count);
    ort_value_free(old);
    *slot = grown;
    return ORT_OK;
}
