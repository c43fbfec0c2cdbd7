/* generation_cross.c - see generation_cross.h. */
#include "op/generation/generation_cross.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

ort_status ort_generation_cross_begin(ort_generation_cross *c, const ort_generation *g,
                                      const ort_tensor *pairs, ort_error *err)
{
    size_t cells = (size_t)(g->rows + 1) * (size_t)g->max;
    *c = (ort_generation_cross){.pairs = pairs};
    if (!g->scored)
        return ort_call_fail(g->call, err, "cross_qk needs a decoder that gives it: attribute "
                             "decoder_output_cross_qk");
    if (pairs && (pairs->shape.rank != 2 || pairs->shape.dim[1] != 2))
        return ort_call_fail(g->call, err, "cross_qk_layer_head needs the shape [pairs, 2]");
    c->path = ort_work_calloc(cells, sizeof *c->path);
    c->spare = ort_work_calloc(cells, sizeof *c->spare);
    return c->path && c->spare ? ORT_OK : ort_error_memory(err, cells * sizeof *c->path);
}

void ort_generation_cross_free(ort_generation_cross *c)
{
    ort_work_free(c->values);
    ort_work_free(c->path);
    ort_work_free(c->spare);
}

/* The first run tells heads and frames; all others must agree. */
static ort_status check_run(ort_generation_cross *c, const ort_generation *g, ort_error *err)
{
    int layers = g->layers / 2;
    for (int i = 0; i < layers; i++) {
        const ort_shape *s = &g->out[1 + g->layers + i]->tensor.shape;
        if (s->rank != 4 || s->dim[0] != g->rows || s->dim[2] != 1 ||
            ((c->runs || i) && (s->dim[1] != c->heads || s->dim[3] != c->frames)))
            return ort_call_fail(g->call, err, "scores of its decoder don't have the shape [batch, "
                                 "heads, 1, frames]");
        c->heads = s->dim[1];
        c->frames = s->dim[3];
    }
    c->count = c->pairs ? c->pairs->shape.dim[0] : layers * c->heads;
    for (int64_t i = 0; c->pairs && i < c->count; i++) {
        const int32_t *pair = (const int32_t *)c->pairs->data + 2 * i;
        if (pair[0] < 0 || pair[0] >= layers || pair[1] < 0 || pair[1] >= c->heads)
            return ort_call_fail(g->call, err, "cross_qk_layer_head names layer %d, head %d of %d "
                                 "layers with %lld heads", (int)pair[0], (int)pair[1], layers,
                                 (long long)c->heads);
    }
    return ORT_OK;
}

static ort_status make_room(ort_generation_cross *c, const ort_generation *g, ort_error *err)
{
    size_t run, wanted;
    if (!ort_mul_size((size_t)(g->rows * c->count), (size_t)c->frames, &run) ||
        !ort_mul_size(run, (size_t)c->runs + 1, &wanted) || wanted > SIZE_MAX / 16)
        return ort_error_memory(err, SIZE_MAX);
    if (wanted <= c->capacity)
        return ORT_OK;
    size_t capacity = wanted + c->capacity;
    float *values = ort_work_malloc(capacity * sizeof *values);
    if (!values)
        return ort_error_memory(err, capacity * sizeof *values);
    if (c->values)
        memcpy(values, c->values, c->capacity * sizeof *values);
    ort_work_free(c->values);
    c->values = values;
    c->capacity = capacity;
    return ORT_OK;
}

ort_status ort_generation_cross_keep(ort_generation_cross *c, const ort_generation *g,
                                     ort_error *err)
{
    ORT_TRY(check_run(c, g, err));
    ORT_TRY(make_room(c, g, err));
    float *to = c->values + c->runs * g->rows * c->count * c->frames;
    for (int64_t row = 0; row < g->rows; row++)
        for (int64_t i = 0; i < c->count; i++, to += c->frames) {
            const int32_t *pair = c->pairs ? (const int32_t *)c->pairs->data + 2 * i : NULL;
            int64_t layer = pair ? pair[0] : i / c->heads, head = pair ? pair[1] : i % c->heads;
            ort_tensor_to_f32(&g->out[1 + g->layers + layer]->tensor,
                              (row * c->heads + head) * c->frames, c->frames, to);
        }
    for (int64_t row = 0; row < g->rows; row++)
        c->path[row * g->max + c->runs] = (int32_t)row;
    c->runs++;
    return ORT_OK;
}

void ort_generation_cross_append(ort_generation_cross *c, const ort_generation *g)
{
    for (int64_t row = 0; row < g->rows; row++)
        memcpy(c->spare + row * g->max, c->path + g->from[row] * g->max,
               (size_t)c->runs * sizeof *c->path);
    int32_t *swap = c->path;
    c->path = c->spare;
    c->spare = swap;
}

void ort_generation_cross_write(const ort_generation_cross *c, const ort_generation *g,
                                const int32_t *path, int64_t runs, float *out)
{
    for (int64_t i = 0; i < c->count; i++)
        for (int64_t run = 0; run < c->runs; run++, out += c->frames) {
            if (run >= runs) {
                memset(out, 0, (size_t)c->frames * sizeof *out);
                continue;
            }
            int64_t at = (run * g->rows + path[run]) * c->count + i;
            memcpy(out, c->values + at * c->frames, (size_t)c->frames * sizeof *out);
        }
}
