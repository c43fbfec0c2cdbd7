/* wide_windows.c - convolutions of 16-bit codes whose windows lie on each channel alone
 * (depthwise), for wide_conv.c.
 *
 * A task is a channel of an image. It copies a band of its rows, with their padding, which is the
 * zero point: rows that windows of a column begin at follow each other, so that outputs of all rows
 * are one line, with a few between rows that nobody wants, and a short row wastes no part of a
 * vector. Padding on the right is that of the next row on the left.
 *
 * Where codes of 16 bits follow, they are the sum with a whole bias, times the ratio of both
 * scales, between bounds, half to even: as quantized convolutions of bytes give theirs, and within
 * the error of float operators' codes. A bias is whole where the file made it of codes, as
 * quantizers do. Else the numbers become floats first, as those of other convolutions do.
 */
#pragma GCC optimize("O3") /* vectorize copies */

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/quant/wide_conv.h"

enum {
    BAND_ELEMENTS = 12 << 10, /* copied: half of a near cache */
    BAND_MOST = 1 << 20,
    TAPS_MOST = 1 << 10,
};

struct ort_wide_windows {
    int64_t pitch, out_pitch; /* elements of a copied row, and outputs that these are */
    int64_t rows;             /* of the output in a band */
    int64_t phase_rows;       /* of the input in a band's phase */
    int64_t more_rows;        /* of these beyond those of the output */
    int64_t pairs;
    const int64_t *row;       /* of the window, in a band's copy */
    const int32_t *words;     /* of each map */
    const int32_t *reach;     /* of its sums, without the bias */
    int64_t copied, outputs;  /* elements of a band with what is read and written for nothing */
};

/* ---- shape */

static bool takes(const ort_wide_conv *s, const conv_plan *c)
{
    const ort_window *w = &c->s.w;
    const int64_t taps = w->kernel[1] * w->kernel[2];
    return c->group_channels == 1 && w->kernel[0] == 1 && w->in[0] == 1 && w->out[0] == 1 &&
           w->begin[1] >= 0 && w->begin[2] >= 0 && (w->dilation[2] == 1 || w->kernel[2] == 1) &&
           (w->stride[2] == 1 || w->stride[2] == 2) && taps <= TAPS_MOST && s->block >= taps;
}

static void plan_band(ort_wide_windows *p, const conv_plan *c)
{
    const ort_window *w = &c->s.w;
    const int64_t columns = (w->out[2] - 1) * w->stride[2] + w->kernel[2];
    const int64_t right = columns - w->begin[2] - w->in[2];
    p->pitch = w->in[2] + ort_max_i64(w->begin[2], right);
    p->pitch += p->pitch % w->stride[2];
    p->out_pitch = p->pitch / w->stride[2];
    p->more_rows = (w->kernel[1] - 1) * w->dilation[1] / w->stride[1];
    p->rows = BAND_ELEMENTS / (c->s.phases[1] * p->pitch) - p->more_rows;
    p->rows = ort_min_i64(ort_max_i64(p->rows, p->more_rows + 2), w->out[1]);
    p->phase_rows = p->rows + p->more_rows;
    p->pairs = ort_window16_pairs(w->kernel[2], w->stride[2]);
    p->outputs = (p->rows - 1) * p->out_pitch + w->out[2] + ORT_WINDOW16_MORE;
    p->copied = c->s.phases[1] * p->phase_rows * p->pitch + w->begin[2] +
                w->kernel[2] + 2 * ORT_WINDOW16_MORE;
}

/* ---- weights */

/* Of a row; outside of it 0. */
static uint16_t weight_at(const int32_t *filter, int64_t columns, int64_t column)
{
    return column < 0 || column >= columns ? 0 : (uint16_t)filter[column];
}

/* Words of the window's rows, by the first of an output's taps and by the one before. */
static void make_words(const ort_window *w, int64_t pairs, const int32_t *filter, int32_t *out)
{
    const int64_t columns = w->kernel[2];
    const bool behind = w->stride[2] == 1;
    for (int64_t ky = 0; ky < w->kernel[1]; ky++, filter += columns)
        for (int64_t first = 0; first < 2 * pairs; first += 2)
            for (int64_t at = first; at >= first - 1; at--) {
                const int64_t column = behind ? at : first;
                const uint32_t high = weight_at(filter, columns, column + 1);
                *out++ = (int32_t)(weight_at(filter, columns, column) | high << 16);
            }
}

static int64_t weight_of(const int32_t *filter, int64_t taps)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < taps; i++)
        sum += (int16_t)filter[i] < 0 ? -(int16_t)filter[i] : (int16_t)filter[i];
    return sum;
}

static int64_t words_of(const ort_wide_windows *p, const ort_window *w)
{
    return w->kernel[1] * p->pairs * 2;
}

/* The words of all filters, and what their sums reach. */
static ort_status plan_words(ort_shaping *sh, const ort_wide_conv *s, const conv_plan *c,
                             ort_wide_windows *p, ort_error *err)
{
    const ort_window *w = &c->s.w;
    const int64_t taps = w->kernel[1] * w->kernel[2], each = words_of(p, w);
    int32_t *reach = ort_arena_array(sh->arena, (size_t)c->maps, sizeof *reach);
    int32_t *words = ort_arena_array(sh->arena, (size_t)(c->maps * each), sizeof *words);
    if (!reach || !words)
        return ort_error_memory(err, (size_t)(c->maps * each) * sizeof *words);
    p->words = words;
    p->reach = reach;
    for (int64_t map = 0; map < c->maps; map++) {
        const int32_t *filter = s->weights + map * taps;
        make_words(w, p->pairs, filter, words + map * each);
        reach[map] = (int32_t)(weight_of(filter, taps) * -(int64_t)INT16_MIN); /* s->block */
    }
    return ORT_OK;
}

ort_status ort_wide_windows_shape(ort_shaping *sh, const ort_wide_conv *s, const conv_plan *c,
                                  ort_wide_windows **windows, ort_error *err)
{
    const ort_window *w = &c->s.w;
    ort_wide_windows plan = {0}, *p;
    *windows = NULL;
    if (!takes(s, c) || c->s.channel > INT32_MAX)
        return ORT_OK;
    plan_band(&plan, c);
    if (plan.copied > BAND_MOST)
        return ORT_OK;
    int64_t *row = ort_arena_array(sh->arena, (size_t)w->kernel[1], sizeof *row);
    p = ort_arena_alloc(sh->arena, sizeof *p);
    if (!row || !p)
        return ort_error_memory(err, sizeof *p);
    *p = plan;
    p->row = row;
    for (int64_t ky = 0; ky < w->kernel[1]; ky++)
        row[ky] = (c->s.tap_phase[1][ky] * p->phase_rows +
                   ky * w->dilation[1] / w->stride[1]) * p->pitch;
    ORT_TRY(plan_words(sh, s, c, p, err));
    sh->thread_bytes = ORT_WIDE_LINE_BYTES +
                       (size_t)p->outputs * (sizeof(int32_t) + sizeof(float)) +
                       (size_t)p->copied * sizeof(int16_t);
    *windows = p;
    return ORT_OK;
}

/* ---- the copy */

typedef struct windows_job {
    const ort_wide_job *all;
    const conv_plan *c;
    const ort_wide_windows *p;
    bool coded;              /* codes of 16 bits follow at once, */
    float low, high;         /* between these, less their zero point */
} windows_job;

static int16_t *pad(int16_t *to, int64_t n, int zero)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (int16_t)zero;
    return to + n;
}

/* A row of the plane, padded. */
static int16_t *copy_row(const windows_job *j, const uint16_t *x, int64_t row, int16_t *to)
{
    const ort_window *w = &j->c->s.w;
    const int zero = j->all->zero;
    const uint16_t flip = j->all->flip;
    if (row < 0 || row >= w->in[1])
        return pad(to, j->p->pitch, zero);
    const int64_t count = w->in[2];
    x += row * count;
    to = pad(to, w->begin[2], zero);
    for (int64_t i = 0; i < count; i++)
        to[i] = (int16_t)(x[i] ^ flip);
    return pad(to + count, j->p->pitch - w->begin[2] - count, zero);
}

/* Those under `rows` output rows from `first` on. */
static void copy_band(const windows_job *j, const uint16_t *x, int64_t first, int64_t rows,
                      int16_t *band)
{
    const conv_plan *c = j->c;
    const ort_window *w = &c->s.w;
    const ort_wide_windows *p = j->p;
    int16_t *to = band;
    for (int64_t phase = 0; phase < c->s.phases[1]; phase++) {
        to = band + phase * p->phase_rows * p->pitch;
        const int64_t from = first * w->stride[1] + c->s.phase[1][phase] - w->begin[1];
        for (int64_t i = 0; i < rows + p->more_rows; i++)
            to = copy_row(j, x, from + i * w->stride[1], to);
        pad(to, w->begin[2], j->all->zero);
    }
    pad(to, band + p->copied - to, j->all->zero);
}

/* ---- the window */

static float bound(float value, float y_scale, float least, float most)
{
    const float code = rintf(value / y_scale);
    return code < least ? least : code > most ? most : code;
}

static void find_bounds(windows_job *j)
{
    const ort_wide_job *all = j->all;
    const bool is_signed = all->y->dtype == ORT_DTYPE_INT16;
    const int least = is_signed ? INT16_MIN : 0;
    const float low = (float)(least - all->y_zero), high = low + (float)UINT16_MAX;
    j->coded = (is_signed || all->y->dtype == ORT_DTYPE_UINT16) && all->s->act < 0 &&
               all->y_scale > 0;
    j->low = bound(all->s->low, all->y_scale, low, high);
    j->high = bound(all->s->high, all->y_scale, low, high);
}

/* Are a map's codes the sums with a whole bias, times a ratio? These are filled then. */
static bool is_whole(const windows_job *j, int64_t map, ort_window16 *k)
{
    const ort_wide_job *all = j->all;
    const double scale = all->scale[map], zeros = all->zero * all->s->sums[map];
    const double bias = all->bias[map] / scale, whole = rint(bias);
    if (!j->coded || !(scale > 0) || !(fabs(whole) <= (double)(INT32_MAX - j->p->reach[map])) ||
        fabs(bias - whole) > 1e-6 + fabs(bias + zeros) * (double)FLT_EPSILON)
        return false;
    k->bias = (int32_t)whole;
    k->ratio = (float)(scale / (double)all->y_scale);
    return k->ratio >= FLT_MIN && k->ratio <= FLT_MAX;
}

/* What follows on n sums of a map, side by side. */
static void follow(const windows_job *j, void *space, int64_t map, const int32_t *sums, int64_t n,
                   char *out)
{
    ort_wide_line line;
    const size_t width = (size_t)ort_dtype_get(j->all->y->dtype)->bits / 8;
    ort_wide_open_line(space, &line);
    for (int64_t i = 0, step; i < n; i += step, out += (size_t)step * width) {
        step = ort_min_i64(n - i, ORT_WIDE_COLUMNS);
        ort_wide_numbers(j->all, &line, map, sums + i, step);
        memcpy(out, ort_wide_follow(j->all, &line, step), (size_t)step * width);
    }
}

/* A band of `rows` output rows of a map into Y from its element `y` on. */
static void make_band(const windows_job *j, void *line, int64_t map, int64_t rows,
                      ort_window16 *k, int64_t y)
{
    const ort_window *w = &j->c->s.w;
    const ort_wide_windows *p = j->p;
    const size_t width = (size_t)ort_dtype_get(j->all->y->dtype)->bits / 8;
    int32_t *sums = k->sums;
    char *out = (char *)(sums + p->outputs), *to = (char *)j->all->y->data + (size_t)y * width;
    k->count = (rows - 1) * p->out_pitch + w->out[2];
    k->codes = (uint16_t *)(void *)out;
    const bool whole = is_whole(j, map, k);
    k->sums = whole ? NULL : sums;
    k->bias = whole ? k->bias : 0;
    j->all->call->k->gemm.window16(k);
    k->sums = sums;
    if (!whole)
        follow(j, line, map, sums, k->count, out);
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + (size_t)(r * w->out[2]) * width, out + (size_t)(r * p->out_pitch) * width,
               (size_t)w->out[2] * width);
}

static void task_windows(void *arg, size_t task, int thread)
{
    const windows_job *j = arg;
    const conv_plan *c = j->c;
    const ort_window *w = &c->s.w;
    const ort_wide_windows *p = j->p;
    const int64_t group = (int64_t)task % c->group, image = (int64_t)task / c->group;
    char *line = ort_call_scratch(j->all->call, thread);
    int32_t *sums = (int32_t *)(void *)(line + ORT_WIDE_LINE_BYTES);
    int16_t *band = (int16_t *)(void *)(sums + 2 * p->outputs);
    ort_window16 k = {.x = band, .row = p->row, .rows = w->kernel[1], .pairs = p->pairs,
                      .stride = w->stride[2], .sums = sums, .low = j->low, .high = j->high,
                      .zero = j->all->y_zero};
    for (int64_t first = 0; first < w->out[1]; first += p->rows) {
        const int64_t rows = ort_min_i64(p->rows, w->out[1] - first);
        copy_band(j, j->all->x + (int64_t)task * c->in_plane, first, rows, band);
        for (int64_t m = 0; m < c->group_maps; m++) {
            const int64_t map = group * c->group_maps + m;
            k.w = p->words + map * words_of(p, w);
            make_band(j, line, map, rows, &k,
                      (image * c->maps + map) * c->out_plane + first * w->out[2]);
        }
    }
}

void ort_wide_windows_run(ort_call *call, const ort_wide_job *job, const conv_plan *c,
                          const ort_wide_windows *windows)
{
    windows_job j = {.all = job, .c = c, .p = windows};
    find_bounds(&j);
    ort_call_parallel(call, (size_t)(c->n * c->group), task_windows, &j);
}
