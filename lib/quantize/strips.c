/* strips.c - pieces of weights (strips.h). */
#include "quantize/strips.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/odd_floats.h"

enum {
    TOGETHER = 64,           /* channels: a strip has a multiple of them */
    STRIP_BYTES = 16 << 20,
    PIECE_BYTES = 16 << 20,  /* copied before their pages go */
};

ort_channels ort_channels_of(const ort_tensor *t, int axis)
{
    ort_channels c = {1, 1, 1};
    for (int i = 0; i < t->shape.rank; i++)
        *(i < axis ? &c.outer : i > axis || axis < 0 ? &c.inner : &c.count) *= t->shape.dim[i];
    return c;
}

static size_t width_of(const ort_tensor *t)
{
    return ort_tensor_count(t) ? ort_tensor_bytes(t) / (size_t)ort_tensor_count(t) : 1;
}

/* Channels of a strip; the last one may have fewer. */
static int64_t strip_channels(const ort_channels *c, size_t width)
{
    const int64_t bytes = c->outer * c->inner * (int64_t)width;
    int64_t count = bytes > 0 ? STRIP_BYTES / bytes / TOGETHER * TOGETHER : c->count;
    count = count < TOGETHER ? TOGETHER : count;
    return count < c->count ? count : c->count;
}

/* Its channels out of every row of the tensor. */
static void copy_rows(const ort_model *model, const ort_tensor *t, const ort_channels *c,
                      const ort_strip *s, char *to)
{
    const size_t width = width_of(t), row = (size_t)(c->count * c->inner) * width;
    const size_t begin = (size_t)(s->first * c->inner) * width;
    const size_t some = (size_t)(s->of.count * c->inner) * width;
    const char *from = t->data;
    size_t piece = 0;
    for (int64_t o = 0; o < c->outer; o++) {
        memcpy(to + (size_t)o * some, from + (size_t)o * row + begin, some);
        piece += row;
        if (piece < PIECE_BYTES && o + 1 < c->outer)
            continue;
        ort_model_forget(model, from + (size_t)(o + 1) * row - piece, piece);
        piece = 0;
    }
}

ort_status ort_strips_each(const ort_model *model, const ort_tensor *t, const ort_channels *c,
                           ort_strip_fn *fn, void *arg, ort_error *err)
{
    const size_t width = width_of(t);
    const int64_t stride = strip_channels(c, width);
    const size_t channel = (size_t)(c->outer * c->inner) * width;
    const bool whole = c->outer == 1 || stride == c->count;
    char *copy = whole ? NULL : malloc((size_t)stride * channel + 1);
    ort_status status = whole || copy ? ORT_OK : ort_error_memory(err, (size_t)stride * channel);
    for (int64_t k = 0; k < c->count && status == ORT_OK; k += stride) {
        const char *at = (const char *)t->data + (size_t)k * channel;
        ort_strip s = {.data = whole ? at : copy, .of = *c, .first = k};
        s.of.count = c->count - k < stride ? c->count - k : stride;
        if (!whole)
            copy_rows(model, t, c, &s, copy);
        status = fn(arg, &s, err);
        if (whole)
            ort_model_forget(model, at, (size_t)s.of.count * channel);
    }
    free(copy);
    return status;
}

/* ---- lines */

enum { NEIGHBOURS = 16 }; /* channels that a task gathers at once: they are neighbours in memory */

typedef struct lines {
    const ort_strip *strip;
    ort_pool *pool;
    ort_line_fn *fn;
    void *arg;
    float *room; /* [threads][NEIGHBOURS][outer * inner] */
} lines;

static void gather(const ort_strip *s, int64_t channel, int64_t count, float *to)
{
    const int64_t inner = s->of.inner, n = s->of.outer * inner;
    const size_t row = (size_t)(s->of.count * inner) * sizeof *to;
    const char *from = s->data + (size_t)(channel * inner) * sizeof *to;
    for (int64_t o = 0; o < s->of.outer; o++, from += row)
        for (int64_t k = 0; k < count; k++)
            memcpy(to + k * n + o * inner, from + (size_t)(k * inner) * sizeof *to,
                   (size_t)inner * sizeof *to);
}

static void take_lines(void *arg, size_t task, int thread)
{
    const lines *l = arg;
    const ort_strip *s = l->strip;
    const int64_t n = s->of.outer * s->of.inner, first = (int64_t)task * NEIGHBOURS;
    const int64_t left = s->of.count - first, count = left < NEIGHBOURS ? left : NEIGHBOURS;
    float *room = l->room ? l->room + (int64_t)thread * NEIGHBOURS * n : NULL;
    if (room)
        gather(s, first, count, room);
    const float *line = room ? room : (const float *)(const void *)s->data + first * n;
    for (int64_t k = 0; k < count; k++)
        l->fn(l->arg, s->first + first + k, line + k * n, thread);
}

static ort_status take_strip(void *arg, const ort_strip *strip, ort_error *err)
{
    lines l = *(const lines *)arg;
    const int64_t n = strip->of.outer * strip->of.inner;
    const int64_t group = strip->of.count < NEIGHBOURS ? strip->of.count : NEIGHBOURS;
    const size_t tasks = (size_t)((strip->of.count + NEIGHBOURS - 1) / NEIGHBOURS);
    const size_t threads = tasks > 1 && l.pool ? (size_t)ort_pool_threads(l.pool) : 1;
    const size_t bytes = (threads - 1) * NEIGHBOURS * (size_t)n * sizeof *l.room +
                         (size_t)(group * n) * sizeof *l.room;
    const bool in_place = strip->of.outer == 1 && (uintptr_t)strip->data % sizeof *l.room == 0;
    l.strip = strip;
    l.room = in_place ? NULL : malloc(bytes + 1);
    if (!in_place && !l.room)
        return ort_error_memory(err, bytes);
    if (l.pool)
        ort_pool_run(l.pool, tasks, take_lines, &l);
    for (size_t i = 0; i < tasks && !l.pool; i++)
        take_lines(&l, i, 0);
    free(l.room);
    return ORT_OK;
}

ort_status ort_lines_each(const ort_model *model, const ort_tensor *t, const ort_channels *c,
                          ort_pool *pool, ort_line_fn *fn, void *arg, ort_error *err)
{
    lines l = {.pool = pool, .fn = fn, .arg = arg};
    return ort_strips_each(model, t, c, take_strip, &l, err);
}

static ort_status look_for_odd(void *arg, const ort_strip *s, ort_error *err)
{
    bool *odd = arg;
    (void)err;
    *odd = *odd || ort_odd_marks(s->data, s->of.outer * s->of.count * s->of.inner, 0) >> 31;
    return ORT_OK;
}

bool ort_strips_finite(const ort_model *model, const ort_tensor *t)
{
    bool odd = false;
    const ort_channels rows = {1, ort_tensor_count(t), 1};
    return ort_strips_each(model, t, &rows, look_for_odd, &odd, NULL) == ORT_OK && !odd;
}
