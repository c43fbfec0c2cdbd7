/* spread.c - building and filling the padded, phase-split layout. */
#include "op/shared/spread.h"

#include <string.h>

#include "base/checked.h"

static ort_status build_axis(ort_spread *s, int axis, ort_arena *arena, ort_error *err)
{
    const ort_window *w = &s->w;
    int64_t kernel = w->kernel[axis], stride = w->stride[axis], count = 0;
    int64_t *values = ort_arena_array(arena, (size_t)kernel, sizeof *values);
    int64_t *of_tap = ort_arena_array(arena, (size_t)kernel, sizeof *of_tap);
    if (!values || !of_tap)
        return ort_error_memory(err, (size_t)kernel * sizeof *values);
    for (int64_t t = 0; t < kernel; t++) {
        int64_t phase = t * w->dilation[axis] % stride, i = 0;
        while (i < count && values[i] != phase)
            i++;
        if (i == count)
            values[count++] = phase;
        of_tap[t] = i;
    }
    s->phase[axis] = values;
    s->tap_phase[axis] = of_tap;
    s->phases[axis] = count;
    s->extent[axis] = w->out[axis] + (kernel - 1) * w->dilation[axis] / stride;
    return ORT_OK;
}

ort_status ort_spread_build(const ort_window *window, ort_arena *arena, ort_spread *s,
                            ort_error *err)
{
    memset(s, 0, sizeof *s);
    s->w = *window;
    ort_window_to_3d(&s->w);
    if (s->w.rank != 3)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "windows over %d spatial axes aren't implemented, only up to 3",
                             window->rank);
    const ort_window *w = &s->w;
    s->channel = 1;
    s->direct = true;
    for (int i = 0; i < 3; i++) {
        ORT_TRY(build_axis(s, i, arena, err));
        if (!ort_mul_i64(s->channel, s->phases[i], &s->channel) ||
            !ort_mul_i64(s->channel, s->extent[i], &s->channel) || s->channel > INT64_MAX / 64)
            return ort_error_memory(err, SIZE_MAX);
        s->direct = s->direct && w->begin[i] == 0 && s->extent[i] == w->in[i] &&
                    (w->stride[i] == 1 || (w->in[i] == 1 && s->phases[i] == 1));
    }
    s->length = ((w->out[0] - 1) * s->extent[1] + w->out[1] - 1) * s->extent[2] + w->out[2];
    s->dense = s->length == w->out[0] * w->out[1] * w->out[2];
    return ORT_OK;
}

int64_t ort_spread_tap(const ort_spread *s, int64_t kz, int64_t ky, int64_t kx)
{
    const ort_window *w = &s->w;
    int64_t phase = (s->tap_phase[0][kz] * s->phases[1] + s->tap_phase[1][ky]) * s->phases[2] +
                    s->tap_phase[2][kx];
    int64_t z = kz * w->dilation[0] / w->stride[0], y = ky * w->dilation[1] / w->stride[1];
    int64_t x = kx * w->dilation[2] / w->stride[2];
    return ((phase * s->extent[0] + z) * s->extent[1] + y) * s->extent[2] + x;
}

static void fill(float *out, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = value;
}

/* Which elements [first, last) of a spread row lie inside the input, and where the first comes
 * from. */
static void clip_row(const ort_window *w, int axis, int64_t phase, int64_t extent, int64_t offset,
                     int64_t *start, int64_t *first, int64_t *last)
{
    int64_t stride = w->stride[axis], from = phase - w->begin[axis] + offset * stride;
    *first = from >= 0 ? 0 : ort_min_i64((-from + stride - 1) / stride, extent);
    *last = from >= w->in[axis] ? 0 : (w->in[axis] - 1 - from) / stride + 1;
    *last = ort_max_i64(ort_min_i64(*last, extent), *first);
    *start = from + *first * stride;
}

void ort_spread_rows(const ort_spread *s, int64_t pz, int64_t py, int64_t px, int64_t zq,
                     int64_t row, ort_spread_part *part)
{
    const ort_window *w = &s->w;
    int64_t x, y, last_x, last_y, z = zq * w->stride[0] + s->phase[0][pz] - w->begin[0];
    clip_row(w, 1, s->phase[1][py], s->extent[1], row, &y, &part->first_row, &last_y);
    clip_row(w, 2, s->phase[2][px], s->extent[2], 0, &x, &part->first, &last_x);
    part->rows = last_y - part->first_row;
    part->count = last_x - part->first;
    if (z < 0 || z >= w->in[0] || part->count <= 0)
        part->rows = 0;
    part->from = part->rows > 0 ? (z * w->in[1] + y) * w->in[2] + x : 0;
    part->in_row = w->stride[1] * w->in[2];
}

/* One part of one plane; `out` is the phase's slice. */
static void spread_part(const ort_kernels *k, const ort_spread *s, const ort_spread_part *p,
                        const float *plane, float pad, float *out)
{
    int64_t line = s->extent[2], slice = s->extent[1] * line;
    if (p->rows <= 0) {
        fill(out, slice, pad);
        return;
    }
    fill(out, p->first_row * line, pad);
    k->gemm.spread_f32(p->rows, line, p->first, p->count, plane + p->from, p->in_row,
                       s->w.stride[2], pad, out + p->first_row * line);
    int64_t done = (p->first_row + p->rows) * line;
    fill(out + done, slice - done, pad);
}

void ort_spread_f32(const ort_kernels *k, const ort_spread *s, int64_t planes, const float *plane,
                    int64_t row, float pad, float *out)
{
    int64_t in = s->w.in[0] * s->w.in[1] * s->w.in[2];
    for (int64_t a = 0; a < s->phases[0]; a++)
        for (int64_t b = 0; b < s->phases[1]; b++)
            for (int64_t c = 0; c < s->phases[2]; c++)
                for (int64_t zq = 0; zq < s->extent[0]; zq++, out += s->extent[1] * s->extent[2]) {
                    ort_spread_part p;
                    ort_spread_rows(s, a, b, c, zq, row, &p);
                    for (int64_t i = 0; i < planes; i++)
                        spread_part(k, s, &p, plane + i * in, pad, out + i * s->channel);
                }
}

bool ort_spread_next(const ort_spread *s, int64_t last, int64_t *at, int64_t *flat, int64_t *index,
                     int64_t *count)
{
    const ort_window *w = &s->w;
    int64_t line = s->extent[2], slice = s->extent[1] * line;
    while (*at < last) {
        int64_t z = *at / slice, y = *at % slice / line, x = *at % line;
        if (y >= w->out[1]) {
            *at = (z + 1) * slice;
            continue;
        }
        if (x >= w->out[2]) {
            *at += line - x;
            continue;
        }
        *flat = *at;
        *index = (z * w->out[1] + y) * w->out[2] + x;
        *count = ort_min_i64(w->out[2] - x, last - *at);
        *at += *count;
        return true;
    }
    return false;
}
