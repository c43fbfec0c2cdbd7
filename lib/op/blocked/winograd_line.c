/* winograd_line.c - convolution through tiles of `form` outputs down one axis, the line: the rows
 * of a plane, or the pixels of a tensor of one axis. What lies along the other axis is the width.
 *
 * A unit is a tile by the width, of one phase of the dilation; a task is some units by some vectors
 * of output channels of one image:
 *
 *     input   [blocks][plane][B]  -> v [6][piece][blocks][unit][width][B]
 *     sums    v . u               -> m [6][panel][unit][out width][B]    panel by panel
 *     output  m                   -> y [blocks][plane][B]                bias, residual, clamp
 *
 * The sums are convolutions over the width, by the kernel that does those; a window of one column
 * takes all units as one row.
 */
#pragma GCC optimize("Os") /* the time goes into its kernels */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/stream.h"
#include "op/blocked/winograd_line.h"
#include "op/blocked/winograd_place.h"
#include "op/written.h"

enum {
    POINTS = 6,
    TASKS_WANTED = 8,
    PIXELS_LEAST = 24,           /* of a task */
    UNKNOWN_EXTENT = 32,
    NEAR_BYTES = 1 << 20,        /* weights that stay in the second-level cache, and what */
    INPUT_BYTES_NEAR = 192 << 10, /* they leave to the transformed input of a task */
    INPUT_BYTES_FAR = 384 << 10,
    UNIT_BYTES_MAX = 512 << 10,  /* of transformed input: the least that a task needs */
    WEIGHT_BYTES_MAX = 12 << 20,
    EITHER_BYTES = 256 << 10,    /* filters that few outputs are to find as they are */
    PIECES_MOST = 4,
    CHANNELS_LEAST = 8,
    SIDE_PHASES = 4,             /* whose pixels are neighbours; fewer go one after the other */
};

typedef struct line_plan {
    ort_blocked_dims in, out;
    ort_window w;                    /* axis 0 is the line */
    int64_t pieces, per_phase, all;  /* units of a phase, of an image */
    int64_t units, unit_blocks;      /* of a task; tasks along them */
    int64_t vectors, task_vectors, vector_blocks;
    int64_t v_piece, v_step, m_step; /* floats between pieces, and between points */
    bool flat;                       /* all units are one row of the product */
    bool side;                       /* units of all phases lie side by side, pixel by pixel */
} line_plan;

/* ---- prepare */

/* The line is the rows of a plane unless that has one. */
static int line_axis(const ort_blocked_state *s)
{
    return s->kernel[0] == 1 ? 1 : 0;
}

/* Of a window's attributes, which may be left out, along one of two axes. */
static int64_t step_along(const ort_blocked_state *s, const int64_t *list, int rank, int axis)
{
    return s->spec.rank == 0 ? 1 : list[rank == 1 ? 0 : axis];
}

static int64_t pieces_of(int64_t taps, int form)
{
    return (taps + 6 - form) / (7 - form);
}

static int64_t units_along(int64_t outputs, int64_t dilation, int form)
{
    int64_t phase = (outputs + dilation - 1) / dilation;
    return dilation * ((phase + form - 1) / form);
}

static int64_t weight_bytes(const ort_blocked_state *s, int form)
{
    int axis = line_axis(s);
    return POINTS * pieces_of(s->kernel[axis], form) * s->kernel[1 - axis] * s->channels * s->maps *
           (int64_t)sizeof(float);
}

/* Cycles of both ways: products, transforms (measured) and weights that stream. */
static double cycles(const ort_blocked_state *s, const int64_t *outputs, int64_t dilation, int form)
{
    int axis = line_axis(s);
    double lanes = (double)s->block, width = (double)outputs[1 - axis];
    double in = ceil((double)s->channels / lanes), out = ceil((double)s->maps / lanes);
    double products = (double)s->channels * out / 2 * (double)s->kernel[1 - axis];
    if (form == 0)
        return (double)(s->kernel[axis] * outputs[axis]) * width * products +
               (double)weight_bytes(s, 4) / 24;
    double pieces = (double)pieces_of(s->kernel[axis], form);
    double pixels = (double)units_along(outputs[axis], dilation, form) * width;
    return pixels * (POINTS * pieces * (1.1 * products + 2) + 20 * pieces * in + 20 * out) +
           (double)weight_bytes(s, form) / 12;
}

/* Extents of the outputs, middling ones where they are unknown. Of a plane the pixels of a row are
 * the line only where it is one row: else false. */
static bool read_extents(const ort_prep *p, int axis, int rank, int64_t extent[2])
{
    const ort_type *t = &p->out[0]->type, *x = &p->in[0]->type;
    extent[0] = rank == 1 ? 1 : UNKNOWN_EXTENT;
    extent[1] = UNKNOWN_EXTENT;
    for (int i = 0; t->kind == ORT_TYPE_TENSOR && t->rank == rank + 3 && i < rank; i++)
        if (ort_dim_known(t->dim[2 + i]))
            extent[2 - rank + i] = t->dim[2 + i].size;
    return axis == 0 || rank == 1 ||
           (extent[0] == 1 && x->rank == 5 && ort_dim_known(x->dim[2]) && x->dim[2].size == 1);
}

int ort_line_pays(const ort_prep *p, const ort_blocked_state *s)
{
    const int axis = line_axis(s), rank = ort_prep_constant(p, 1)->shape.rank - 2;
    int64_t extent[2], dilation = step_along(s, s->spec.dilation, rank, axis);
    if (p->math_strict || s->plain || s->depthwise || s->few || s->group > 1 || !s->inner ||
        !s->k->line_input || s->kernel[axis] < 3 || s->maps < CHANNELS_LEAST ||
        s->channels < CHANNELS_LEAST || step_along(s, s->spec.stride, rank, axis) != 1 ||
        !read_extents(p, axis, rank, extent))
        return 0;
    int best = 0;
    double least = 0.92 * cycles(s, extent, dilation, 0);
    for (int form = 4; form >= 2; form--) {
        const int64_t pieces = pieces_of(s->kernel[axis], form);
        const int64_t unit = POINTS * pieces * s->channels * extent[1 - axis];
        if (weight_bytes(s, form) > WEIGHT_BYTES_MAX || pieces > PIECES_MOST ||
            unit * (int64_t)sizeof(float) > UNIT_BYTES_MAX)
            continue;
        double takes = cycles(s, extent, dilation, form);
        if (takes < least) {
            best = form;
            least = takes;
        }
    }
    return best;
}

bool ort_line_leaves_open(const ort_prep *p, const ort_blocked_state *s)
{
    const ort_type *t = &p->out[0]->type;
    const int64_t taps = s->kernel[0] * s->kernel[1];
    bool known = true;
    for (int i = 2; i < t->rank - 1; i++)
        known &= ort_dim_known(t->dim[i]);
    return !known && taps * s->channels * s->maps * (int64_t)sizeof(float) <= EITHER_BYTES;
}

bool ort_line_takes(const ort_blocked_state *s, const ort_shape *y)
{
    if (!s->line || !s->either)
        return s->line > 0;
    const int rank = y->rank - 3; /* of the layout [N, blocks, spatial..., block] */
    const int64_t extent[2] = {rank == 1 ? 1 : y->dim[2], y->dim[y->rank - 2]};
    const int64_t dilation = step_along(s, s->spec.dilation, rank, line_axis(s));
    return cycles(s, extent, dilation, s->line) < 0.92 * cycles(s, extent, dilation, 0);
}

double ort_line_share(const ort_blocked_state *s)
{
    int64_t taps = s->kernel[line_axis(s)];
    return (double)(POINTS * pieces_of(taps, s->line)) / (double)(s->line * taps);
}

typedef struct filter_job {
    const ort_blocked_state *s;
    const char *w;
    float *out, *straight; /* straight: `room` for each thread */
    int64_t padded, pieces, most, taps, columns, room; /* most: floats of a panel's tap */
    atomic_bool *odd;      /* some weight isn't finite */
} filter_job;

/* [panel][point][piece][column][channel][panel width] */
static void task_filter(void *arg, size_t task, int thread)
{
    const filter_job *j = arg;
    const ort_blocked_state *s = j->s;
    const int64_t lanes = s->k->vector, longest = 7 - s->line, first = (int64_t)task * 2 * lanes;
    const int64_t width = ort_min_i64(2 * lanes, j->padded - first);
    const int64_t terms = s->channels * j->columns, count = terms * width;
    const int64_t real = ort_max_i64(0, ort_min_i64(width, s->maps - first));
    float *out = j->out + first * terms * j->pieces * POINTS;
    float *straight = j->straight + thread * j->room, *u = straight + j->most * j->taps;
    s->k->pack_panel(j->w + first * terms * j->taps * (int64_t)sizeof(float), terms * j->taps, real,
                     width, s->channels, j->taps * j->columns, straight);
    if (!ort_blocked_finite(straight, j->taps * count))
        *j->odd = true;
    for (int64_t i = 0; i < j->pieces; i++) {
        s->k->line_filter(straight + i * longest * count, count,
                          ort_min_i64(longest, j->taps - i * longest), s->line, u);
        for (int64_t k = 0; k < POINTS; k++)
            ort_stream(out + (k * j->pieces + i) * count, u + k * count, (size_t)count * sizeof *u);
    }
    ort_stream_end();
}

ort_status ort_line_pack(ort_prep *p, ort_blocked_state *s, const ort_tensor *w, ort_error *err)
{
    const int axis = line_axis(s);
    const int64_t taps = s->kernel[axis], columns = s->kernel[1 - axis];
    const int64_t pieces = pieces_of(taps, s->line), lanes = s->k->vector;
    size_t padded = ort_round_up((size_t)s->maps, (size_t)s->block);
    size_t floats = padded * (size_t)(s->channels * columns * pieces * POINTS);
    bool fill;
    float *out = ort_prep_pack(p, "line", 1u << 1, (floats + 1) * sizeof *out, &fill);
    if (!out)
        return ort_error_memory(err, floats * sizeof *out);
    s->line_w = out;
    s->finite = fill || out[floats] > 0;
    ort_prep_absorb(p, 1);
    if (!fill)
        return ORT_OK;
    atomic_bool odd = false;
    filter_job job = {.s = s, .w = w->data, .out = out, .padded = (int64_t)padded,
                      .pieces = pieces, .most = 2 * lanes * s->channels * columns, .taps = taps,
                      .columns = columns, .odd = &odd};
    job.room = job.most * (taps + POINTS);
    size_t bytes = (size_t)(job.room * ort_prep_threads(p)) * sizeof *out, unit = 2 * (size_t)lanes;
    if (!(job.straight = malloc(bytes)))
        return ort_error_memory(err, bytes);
    ort_prep_fill(p, floats * sizeof *out, (padded + unit - 1) / unit, task_filter, &job);
    out[floats] = s->finite = !odd;
    free(job.straight);
    return ORT_OK;
}

/* ---- shape */

static void turn(ort_window *w)
{
    int64_t *lists[] = {w->in, w->out, w->kernel, w->stride, w->dilation, w->begin, w->end};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        int64_t first = lists[i][0];
        lists[i][0] = lists[i][1];
        lists[i][1] = first;
    }
}

/* What is read at once outside of the line. */
static int64_t zero_pixels(const line_plan *p)
{
    return ort_max_i64(p->w.in[1], p->side ? p->w.dilation[0] : 1);
}

/* Of a task, so that micro tiles of the product are full. */
static int64_t least_units(const line_plan *p)
{
    return p->flat ? (PIXELS_LEAST + p->w.in[1] - 1) / p->w.in[1] : 1;
}

ort_status ort_line_shape(ort_shaping *sh, const ort_blocked_dims *in, const ort_blocked_dims *out,
                          const ort_window *w, ort_error *err)
{
    const ort_blocked_state *s = sh->state;
    line_plan *p = ort_arena_alloc(sh->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    *p = (line_plan){.in = *in, .out = *out, .w = *w};
    if (line_axis(s) == 1)
        turn(&p->w);
    w = &p->w;
    p->pieces = pieces_of(w->kernel[0], s->line);
    p->all = units_along(w->out[0], w->dilation[0], s->line);
    p->per_phase = p->all / w->dilation[0];
    p->side = w->dilation[0] >= SIDE_PHASES;
    p->flat = w->kernel[1] == 1 && w->stride[1] == 1 && w->begin[1] == 0 && w->in[1] == w->out[1];
    int64_t unit = POINTS * p->pieces * in->blocks * s->block * w->in[1] * (int64_t)sizeof(float);
    int64_t bytes = weight_bytes(s, s->line) > NEAR_BYTES ? INPUT_BYTES_FAR : INPUT_BYTES_NEAR;
    p->units = ort_min_i64(ort_max_i64(bytes / unit, least_units(p)), p->all);
    p->unit_blocks = (p->all + p->units - 1) / p->units;
    p->units = (p->all + p->unit_blocks - 1) / p->unit_blocks;
    p->vectors = out->blocks * s->block / s->k->vector;
    p->task_vectors = p->vectors;
    p->vector_blocks = 1;
    while (out->n * p->unit_blocks * p->vector_blocks < TASKS_WANTED && p->task_vectors > 8) {
        p->task_vectors = (p->task_vectors / 2 + 1) / 2 * 2;
        p->vector_blocks = (p->vectors + p->task_vectors - 1) / p->task_vectors;
    }
    p->v_piece = in->blocks * p->units * w->in[1] * s->block;
    p->v_step = p->pieces * p->v_piece;
    p->m_step = p->units * w->out[1] * 2 * s->k->vector;
    sh->thread_bytes =
        (size_t)(POINTS * (p->v_step + p->m_step) + zero_pixels(p) * s->block) * sizeof(float);
    sh->plan_state = p;
    return ORT_OK;
}

/* ---- run */

typedef struct line_job {
    ort_call *call;
    const ort_blocked_state *s;
    const line_plan *p;
    ort_winograd_cut units, outs; /* tiles, and output vectors */
    const float *x, *z;
    float *y;
    const ort_written *written;
} line_job;

static ort_winograd_place place_of(const line_job *j, size_t task)
{
    return ort_winograd_place_of(task, j->units, j->outs);
}

/* The first output of a unit; that of the next one is p->w.dilation[0] * s->line or, side by side,
 * one pixel from there. */
static int64_t first_output(const line_job *j, int64_t unit)
{
    const int64_t d = j->p->w.dilation[0];
    if (j->p->side)
        return unit % d + unit / d * d * j->s->line;
    return unit / j->p->per_phase + unit % j->p->per_phase * d * j->s->line;
}

static int64_t next_output(const line_job *j)
{
    return j->p->side ? 1 : j->p->w.dilation[0] * j->s->line;
}

/* Pixels from `at` to the next one, at most d, whose distance from `edge` is a multiple of d. */
static int64_t up_to(int64_t at, int64_t edge, int64_t d)
{
    int64_t past = (edge - at) % d;
    return past > 0 ? past : past + d;
}

/* Units from `unit` on, at most `most`, of which the pixels d apart from `at` on lie inside or
 * outside of `n` alike; those up to at + reach are asked for. Units of a width go one by one. */
static int64_t alike(const line_job *j, int64_t unit, int64_t most, int64_t at, int64_t reach,
                     int64_t n)
{
    const line_plan *p = j->p;
    const int64_t d = p->w.dilation[0];
    if (p->w.in[1] > 1 || p->w.out[1] > 1)
        return 1;
    if (p->side) {
        most = ort_min_i64(most, d - unit % d);
        return ort_min_i64(most, ort_min_i64(up_to(at, 0, d), up_to(at, n, d)));
    }
    if (at < 0 || at + reach >= n)
        return 1;
    most = ort_min_i64(most, p->per_phase - unit % p->per_phase);
    return ort_min_i64(most, (n - 1 - reach - at) / (d * j->s->line) + 1);
}

static void transform_input(const line_job *j, const ort_winograd_place *at, float *v,
                            const float *zeros)
{
    const line_plan *p = j->p;
    const int64_t block = j->s->block, d = p->w.dilation[0], row = p->w.in[1] * block;
    const int64_t n = p->w.in[0];
    ort_blocked_line line = {.v_step = p->v_step, .form = j->s->line};
    for (int64_t i = 0; i < p->pieces; i++)
        for (int64_t b = 0; b < p->in.blocks; b++) {
            const float *x = j->x + (at->image * p->in.blocks + b) * p->in.plane * block;
            for (int64_t unit = 0, units; unit < at->tiles; unit += units) {
                int64_t from = first_output(j, at->first + unit) - p->w.begin[0] +
                               i * (7 - j->s->line) * d;
                units = alike(j, at->first + unit, at->tiles - unit, from, (POINTS - 1) * d, n);
                for (int k = 0; k < POINTS; k++) {
                    const int64_t pixel = from + k * d;
                    line.x[k] = pixel >= 0 && pixel < n ? x + pixel * row : zeros;
                }
                line.v = v + i * p->v_piece + (b * at->tiles + unit) * row;
                line.next = p->w.in[1] > 1 ? block : next_output(j) * block;
                line.count = units * p->w.in[1];
                j->s->k->line_input(&line);
            }
        }
}

static void multiply(const line_job *j, const ort_winograd_place *at, int64_t vector,
                     int64_t vectors, const float *v, float *m)
{
    const line_plan *p = j->p;
    const ort_blocked_state *s = j->s;
    const int64_t lanes = s->k->vector, rows = p->flat ? 1 : at->tiles;
    const int64_t in = p->w.in[1] * (p->flat ? at->tiles : 1);
    const int64_t out = p->w.out[1] * (p->flat ? at->tiles : 1);
    const int64_t filter = p->w.kernel[1] * s->channels * vectors * lanes;
    const int64_t visits = rows * ((out + s->k->pixels - 1) / s->k->pixels);
    ort_blocked_conv c = {.window = {.width = in, .rows = 1, .columns = p->w.kernel[1],
                                     .stride = p->w.stride[1], .dilation = p->w.dilation[1],
                                     .start = -p->w.begin[1]},
                          .out = {.y_block = rows * out * s->block, .lo = -INFINITY,
                                  .hi = INFINITY, .count = out},
                          .x_block = rows * in * s->block,
                          .channels = s->channels,
                          .w = s->line_w + vector * lanes * s->channels * p->w.kernel[1] *
                                               p->pieces * POINTS,
                          .w_rows = 1,
                          .vectors = vectors,
                          .finite = s->finite,
                          .ahead_step = rows == 1 ? (2 * lanes + visits - 1) / visits : 0};
    for (int64_t k = 0; k < POINTS; k++)
        for (int64_t i = 0; i < p->pieces; i++, c.w += filter) {
            c.out.accumulate = i > 0;
            c.ahead = c.w + filter;
            for (int64_t r = 0; r < rows; r++) {
                c.window.x = v + k * p->v_step + i * p->v_piece + r * in * s->block;
                c.out.y = m + k * p->m_step + r * out * s->block;
                s->k->conv(&c);
            }
        }
}

/* Outputs of one block of channels, whose sums begin at m. */
static void transform_output(const line_job *j, const ort_winograd_place *at, int64_t block,
                             float *m, int thread)
{
    const line_plan *p = j->p;
    const ort_blocked_state *s = j->s;
    const int64_t d = p->w.dilation[0], row = p->w.out[1] * s->block, form = s->line;
    const int64_t first = (at->image * p->out.blocks + block) * p->out.plane * s->block;
    ort_blocked_line line = {.v_step = p->m_step, .form = s->line, .step = d * row,
                             .next = (p->w.out[1] > 1 ? 1 : next_output(j)) * s->block};
    line.out = (ort_blocked_out){.bias = s->bias ? s->bias + block * s->block : NULL,
                                 .slope = s->slope ? s->slope + block * s->block : NULL,
                                 .lo = s->epilogue.lo,
                                 .hi = s->epilogue.hi};
    for (int64_t unit = 0, units; unit < at->tiles; unit += units) {
        int64_t o = first_output(j, at->first + unit), place = first + o * row;
        units = alike(j, at->first + unit, at->tiles - unit, o, (form - 1) * d, p->w.out[0]);
        if (o >= p->w.out[0])
            continue;
        line.outputs = ort_min_i64(form, (p->w.out[0] - o + d - 1) / d);
        line.v = m + unit * row;
        line.count = units * p->w.out[1];
        line.out.y = j->y + place;
        line.out.z = j->z ? j->z + place : NULL;
        s->k->line_output(&line);
        /* rows that were made: all one after the other, or side by side for each output */
        const bool whole = d == 1;
        int64_t many = whole ? 1 : p->side ? line.outputs : line.outputs * units;
        int64_t rows = whole ? (units - 1) * form + line.outputs : p->side ? units : 1;
        if (!ort_blocked_activates(s) && !j->written)
            continue;
        for (int64_t r = 0; r < many; r++) {
            ort_blocked_out done = {.y = line.out.y + r * d * row, .count = rows * p->w.out[1]};
            ort_blocked_activate(j->call, s, &done, 1);
            ort_written_part(j->written, place + r * d * row, rows * row, thread);
        }
    }
}

static void task_line(void *arg, size_t task, int thread)
{
    const line_job *j = arg;
    const line_plan *p = j->p;
    ort_winograd_place at = place_of(j, task);
    float *v = ort_call_scratch(j->call, thread), *m = v + POINTS * p->v_step;
    float *zeros = m + POINTS * p->m_step;
    const int64_t lanes = j->s->k->vector, block = j->s->block;
    int64_t end = at.first_out + at.outs;
    memset(zeros, 0, (size_t)(zero_pixels(p) * block) * sizeof *zeros);
    transform_input(j, &at, v, zeros);
    for (int64_t first = at.first_out; first < end; first += 2) {
        int64_t vectors = ort_min_i64(2, end - first);
        multiply(j, &at, first, vectors, v, m);
        for (int64_t i = 0; i < vectors * lanes / block; i++)
            transform_output(j, &at, first * lanes / block + i,
                             m + i * at.tiles * p->w.out[1] * block, thread);
    }
}

ort_status ort_line_run(ort_call *call, ort_error *err)
{
    const line_plan *p = call->plan_state;
    const ort_tensor *z = ort_call_in(call, 3);
    line_job j = {call, call->state, p, {p->all, p->units, p->unit_blocks},
                  {p->vectors, p->task_vectors, p->vector_blocks}, ort_call_in(call, 0)->data,
                  z ? z->data : NULL, ort_call_out(call, 0)->data, ort_written_begin(call)};
    j.units = ort_winograd_even(j.units, p->out.n * p->unit_blocks * p->vector_blocks,
                                ort_call_width(call), least_units(p));
    ort_call_parallel(call, (size_t)(p->out.n * j.units.parts * j.outs.parts), task_line, &j);
    return ORT_OK;
}
