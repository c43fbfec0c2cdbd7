/* blocked_conv.c - convolution in the blocked layout: direct, without copies of the input.
 *
 *   product     a task is some output rows by some vectors of output channels of one image and
 *               group; a 1x1 window of stride 1 sees the plane as one long row, cut into pieces,
 *               and others do where what they see is put side by side first (patches).
 *   plain       few input channels, not blocked: the rows that a task needs are copied once with
 *               their padding, then every tap is a constant offset.
 *   few         a product of few output channels, whose sums run over vectors of input channels.
 *   depthwise   a task is some output rows of one block of channels.
 *
 * Others run on tiles (conv_tiled.c) or through Winograd's (winograd.c, winograd_line.c).
 *
 * Long sums are cut along the input channels, so that the weights of a call stay in the cache and
 * rounding errors small; the cut depends on the filter alone.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/blocked/blocked_op.h"
#include "op/blocked/blocked_patch.h"
#include "op/blocked/conv_tiled.h"
#include "op/blocked/winograd.h"
#include "op/blocked/winograd_line.h"
#include "op/shared/parts.h"
#include "op/written.h"

enum {
    WEIGHT_BYTES = 256 << 10,  /* of one task */
    PLAIN_BYTES = 48 << 10,    /* padded rows of one task */
    TASK_PRODUCTS = 300000,    /* some microseconds: worth handing to another thread */
    TASKS_WANTED = 16,
    PIECE_PIXELS = 48,         /* of a plane that is one row, at least, */
    PIECE_BYTES = 24 << 10,    /* more where they are no more of the input, */
    PIECES_WANTED = 8,         /* nor the pieces fewer, */
    PIECE_MOST = 192,          /* up to */
    EVEN_BLOCKS = 4,           /* of rows, for each thread: fewer are as many for each */
    BAND_BYTES = 8 << 10,      /* outputs that an activation still finds in the nearest cache */
    AHEAD_VISITS = 32,         /* of a weight by one task; beyond, fetching the next can wait */
    FEW_MAPS = 4,              /* output channels whose input channels lie in vectors instead */
    PATCH_MAPS = 64,           /* a copy for so many outputs takes a twentieth of their products */
    PATCH_ROW = 14,
    POINT_LANES = 8,           /* of AVX2, whose single pixels have a kernel of their own */
    CROSSED_LEAST = 64,        /* channels and outputs of crossed sums, */
    CROSSED_PRODUCTS = 8192,   /* of which a pixel's copy takes less than it saves */
    CROSSED_BYTES = 512 << 10, /* of weights of a task, which copies its pixels */
    CROSSED_MAPS = 256,        /* ... for so many outputs at least */
};

typedef struct blocked_plan {
    ort_blocked_dims in, out;
    ort_window w;
    int64_t in_channels;         /* plain: all; else per group */
    ort_blocked_cut cut;         /* of one group's outputs */
    int64_t band;                /* depthwise: rows between two activations */
    bool flat;                   /* the plane is one row in pieces of w.out[1], */
    bool patched;                /* of what `seen` sees, copied (blocked_patch.h) */
    bool crossed;                /* every pixel's tap is in the input */
    ort_window seen;
    ort_blocked_rows_plan plain;
} blocked_plan;

/* ---- infer */

static ort_status infer_conv(ort_infer *x, bool plain, ort_error *err)
{
    ort_window_spec spec;
    ort_dim out[ORT_MAX_RANK], in[ORT_MAX_RANK];
    ORT_TRY(ort_window_read(x->node, &spec, err));
    if (!ort_infer_in_ranked(x, 0) || !ort_infer_in_ranked(x, 1))
        return ORT_OK;
    const ort_type *tx = &x->in[0]->type, *tw = &x->in[1]->type;
    int64_t block = ort_blocked_size(x->node, x->graph);
    int rank = tw->rank - 2;
    if (rank < 1 || rank > 2 || (tx->rank != tw->rank && tx->rank != tw->rank + 1) ||
        !ort_dim_known(tw->dim[0]) || block < 1)
        return ort_infer_fail(x, err, "ranks %d and %d don't fit each other", tx->rank, tw->rank);
    for (int i = 0; i < rank; i++)
        in[i] = tx->dim[2 + i];
    ORT_TRY(ort_window_infer(x, &spec, rank, in, tw->dim + 2, out + 2, err));
    out[0] = tx->dim[0];
    int64_t maps = tw->dim[0].size, group = ort_node_attr_int(x->node, "group");
    bool apart = group > 1 && group <= maps && tw->dim[1].size != 1; /* in whole blocks */
    out[1] = ort_dim_of(apart ? group * ort_blocked_count(maps / group, block)
                              : ort_blocked_count(maps, block));
    out[2 + rank] = ort_dim_of(block);
    if (plain)
        out[1] = tw->dim[0];
    ort_infer_set_shape(x, 0, rank + (plain ? 2 : 3), out);
    return ORT_OK;
}

ort_status ort_blocked_conv_infer(ort_infer *x, ort_error *err)
{
    return infer_conv(x, false, err);
}

ort_status ort_blocked_conv_infer_plain(ort_infer *x, ort_error *err)
{
    return infer_conv(x, true, err);
}

double ort_blocked_conv_macs(const ort_infer *x)
{
    double macs = 1;
    if (!ort_infer_in_ranked(x, 1))
        return 0;
    if (x->out[0].type.rank > 0 && ort_dim_known(x->out[0].type.dim[0]))
        macs = (double)x->out[0].type.dim[0].size; /* images */
    for (int i = 0; i < x->in[1]->type.rank; i++)
        macs *= (double)x->in[1]->type.dim[i].size;
    for (int i = 2; i < ort_min_i64(x->out[0].type.rank, x->in[1]->type.rank); i++)
        macs *= ort_dim_known(x->out[0].type.dim[i]) ? (double)x->out[0].type.dim[i].size : 0;
    return macs;
}

void ort_blocked_conv_cost(const ort_infer *x, ort_cost *cost)
{
    const ort_blocked_state *s = x->state;
    cost->macs = ort_blocked_conv_macs(x);
    cost->on_tiles = s && s->tiled && !s->tiled_floats;
    if (s && s->winograd)
        cost->done_macs = cost->macs * ort_winograd_share(&x->out[0].type);
    if (s && s->line)
        cost->done_macs = cost->macs * ort_line_share(s);
}

/* ---- prepare */

/* A pixel and tap take one instruction for each vector of input channels and output, and about nine
 * where all are summed up; otherwise 15 and more for each vector, whatever the outputs. */
static bool few_pays(const ort_blocked_state *s)
{
    int64_t taps = s->kernel[0] * s->kernel[1];
    int64_t vectors = taps * ((s->channels + s->k->vector - 1) / s->k->vector);
    return s->group == 1 && !s->plain && !s->depthwise && s->maps <= FEW_MAPS &&
           s->maps * (vectors + 9) <= 15 * vectors;
}

/* Not where a last vector would be left to direct sums: outputs of equal weights are equal. */
static bool crossed_pays(const ort_prep *p, const ort_blocked_state *s)
{
    return s->k->conv_crossed && p->k->gemm.crossed.tile && !p->math_strict && s->inner &&
           s->group == 1 && !s->plain && !s->few && s->kernel[0] * s->kernel[1] == 1 &&
           s->channels >= CROSSED_LEAST && s->maps >= CROSSED_LEAST &&
           (s->maps + s->block - 1) / s->block % 2 == 0 &&
           s->channels * s->maps >= CROSSED_PRODUCTS;
}

/* A leak of one number for all channels is made in the same place as that of a PRelu. */
static ort_status fill_slopes(ort_prep *p, ort_blocked_state *s, ort_error *err)
{
    ort_floats slopes = s->slopes;
    float *same = NULL;
    if (s->epilogue.act == ORT_UNARY_LEAKY_RELU && slopes.count == 0) {
        same = ort_arena_array(p->arena, (size_t)s->maps, sizeof *same);
        if (!same)
            return ort_error_memory(err, (size_t)s->maps * sizeof *same);
        for (int64_t i = 0; i < s->maps; i++)
            same[i] = s->epilogue.act_a;
        slopes = (ort_floats){same, (size_t)s->maps};
        s->epilogue.act = -1;
    }
    return ort_blocked_fill(p, &slopes, s->maps, &s->slope, err);
}

const ort_bind ort_blocked_conv_bind[] = {
    ORT_BIND(ort_blocked_state, group),
    ORT_BIND(ort_blocked_state, scale, ORT_ELSE(1)),
    ORT_BIND(ort_blocked_state, shift, ORT_MAYBE),
    ORT_BIND(ort_blocked_state, slopes, ORT_MAYBE),
    ORT_BIND_WINDOW(ort_blocked_state), ORT_BIND_EPILOGUE(ort_blocked_state), {0}};

ort_status ort_blocked_conv_prepare(ort_prep *p, ort_error *err)
{
    const ort_tensor *w = ort_prep_constant(p, 1);
    ort_blocked_state *s = p->state;
    s->affine = s->scale != 1.0f || s->shift != 0.0f;
    if (!w || w->dtype != ORT_DTYPE_FLOAT || w->shape.rank < 3 || w->shape.rank > 4 ||
        ort_tensor_count(w) == 0)
        return ort_prep_fail(p, err, "the weight isn't a constant of one or two spatial axes, with "
                                     "elements");
    ORT_TRY(ort_blocked_prepare(p, err));
    s->maps = w->shape.dim[0];
    s->channels = w->shape.dim[1];
    s->kernel[0] = w->shape.rank == 4 ? w->shape.dim[2] : 1;
    s->kernel[1] = w->shape.dim[w->shape.rank - 1];
    if (s->group < 1 || s->maps % s->group)
        return ort_prep_fail(p, err, "group %lld doesn't fit", (long long)s->group);
    s->plain = s->inner ? p->in[0]->type.rank == w->shape.rank
                        : s->group == 1 && s->channels < s->block;
    s->depthwise = s->group > 1 && s->channels == 1 && s->maps == s->group;
    bool whole = s->channels % s->block == 0 && s->maps / s->group % s->block == 0;
    if (s->group > 1 && !s->depthwise && !whole)
        return ort_prep_fail(p, err, "groups aren't whole blocks");
    s->few = few_pays(s);
    s->winograd = !s->few && ort_winograd_pays(p, s);
    s->tiled = !s->few && !s->winograd && ort_conv_tiled_pays(p, s);
    s->line = s->winograd || s->tiled ? 0 : ort_line_pays(p, s);
    s->either = s->line && ort_line_leaves_open(p, s);
    s->crossed = !s->tiled && crossed_pays(p, s);
    ORT_TRY(fill_slopes(p, s, err));
    ORT_TRY(s->winograd ? ort_winograd_pack(p, s, w, err)
            : s->line   ? ort_line_pack(p, s, w, err)
            : s->tiled  ? ort_conv_tiled_pack(p, s, w, err)
                        : ort_blocked_pack(p, s, w, err));
    if (s->either)
        ORT_TRY(ort_blocked_pack(p, s, w, err));
    return ort_blocked_pack_bias(p, s, err);
}

/* ---- shape */

/* As the kernels do them: vectors that channels fill in part cost as much as whole ones. */
static int64_t products(const blocked_plan *p, const ort_blocked_state *s)
{
    int64_t maps = s->depthwise || s->few ? s->maps : s->group * p->cut.vectors * s->k->vector;
    return p->out.n * maps * p->out.plane * s->channels * s->kernel[0] * s->kernel[1];
}

/* Rows where the input is larger than the weights, else vectors of output channels. */
static void cut_tasks(blocked_plan *p, const ort_blocked_state *s, int64_t least_rows,
                      int64_t least_vectors)
{
    const bool by_rows = p->in.plane > s->maps / s->group * s->kernel[0] * s->kernel[1];
    ort_blocked_cut_tasks(&p->cut, p->w.out[0], p->out.n * s->group,
                          ort_min_i64(products(p, s) / TASK_PRODUCTS, TASKS_WANTED), by_rows,
                          least_rows, least_vectors);
}

/* Of few channels, calls of more pixels save what each begins and ends with. Activations want their
 * outputs near; on 16 lanes nothing was tried. */
static int64_t piece_pixels(const blocked_plan *p, const ort_blocked_state *s)
{
    int64_t bytes = s->channels * (int64_t)sizeof(float), most = p->in.plane / PIECES_WANTED;
    if (s->block > 8 || ort_blocked_activates(s))
        return PIECE_PIXELS;
    most = ort_min_i64(most, ort_min_i64(PIECE_BYTES / bytes, PIECE_MOST));
    return ort_max_i64(most, PIECE_PIXELS);
}

/* Where single pixels have that kernel, and all channels of a call fill their blocks:
 * rows that end within few micro tiles read each weight more often and have edges in most of them;
 * blocks of two vectors have the slower loop of windows. */
static bool patch_pays(const blocked_plan *p, const ort_blocked_state *s)
{
    return s->k->vector == POINT_LANES && !s->few && s->kernel[0] * s->kernel[1] > 1 &&
           s->channels % s->block == 0 && s->maps / s->group >= PATCH_MAPS &&
           (p->w.out[1] <= PATCH_ROW || s->block > s->k->vector);
}

/* Of a task, of so many bytes of weights. */
static int64_t vectors_within(const ort_blocked_state *s, int64_t all, int64_t least, int64_t bytes)
{
    const int64_t each = s->kernel[0] * s->kernel[1] * s->sum_channels * s->k->vector * 4;
    return ort_max_i64(ort_min_i64(all, bytes / each / least * least), least);
}

static void plan_product(blocked_plan *p, const ort_blocked_state *s, size_t *thread_bytes)
{
    ort_window *w = &p->w;
    int64_t taps = s->kernel[0] * s->kernel[1], least = ort_max_i64(2, s->block / s->k->vector);
    p->flat = taps == 1 && w->stride[0] == 1 && w->stride[1] == 1 && p->in.plane == p->out.plane &&
              w->begin[0] == 0 && w->begin[1] == 0;
    p->patched = !p->flat && patch_pays(p, s);
    p->seen = *w;
    if (p->flat || p->patched) {
        int64_t pieces = ort_max_i64(1, p->out.plane / piece_pixels(p, s));
        w->in[1] = w->out[1] = (p->out.plane + pieces - 1) / pieces;
        w->in[0] = w->out[0] = (p->out.plane + w->in[1] - 1) / w->in[1];
    }
    if (p->patched) {
        *thread_bytes = (size_t)(w->out[1] * taps * s->sum_channels) * sizeof(float);
        p->cut.task_vectors = p->cut.vectors;
        p->cut.rows = w->out[0];
        cut_tasks(p, s, 1, PATCH_MAPS / s->k->vector);
        return;
    }
    p->cut.rows = w->out[0];
    p->crossed = s->crossed && (p->flat || (w->begin[0] == 0 && w->begin[1] == 0 &&
                                            (w->out[0] - 1) * w->stride[0] < w->in[0] &&
                                            (w->out[1] - 1) * w->stride[1] < w->in[1]));
    p->cut.task_vectors = vectors_within(s, p->cut.vectors, least,
                                         p->crossed ? CROSSED_BYTES : WEIGHT_BYTES);
    if (p->crossed) {
        *thread_bytes = (size_t)ort_blocked_crossed_floats(s->sum_channels) * sizeof(float);
        least = CROSSED_MAPS / s->k->vector;
    }
    cut_tasks(p, s, 1, least);
}

int64_t ort_blocked_rows_floats(const ort_window *w, int64_t rows, int64_t channels,
                                ort_blocked_rows_plan *plan)
{
    plan->row = (w->out[1] - 1) * w->stride[1] + ort_blocked_reach(w, 1);
    plan->plane = ((rows - 1) * w->stride[0] + ort_blocked_reach(w, 0)) * plan->row;
    return plan->plane * channels;
}

ort_status ort_blocked_rows_offsets(ort_arena *arena, const ort_window *w, int64_t channels,
                                    ort_blocked_rows_plan *plan, ort_error *err)
{
    size_t taps = (size_t)(channels * w->kernel[0] * w->kernel[1]);
    int64_t *offset = ort_arena_array(arena, taps, sizeof *offset);
    if (!offset)
        return ort_error_memory(err, taps * sizeof *offset);
    plan->offset = offset;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t ky = 0; ky < w->kernel[0]; ky++)
            for (int64_t kx = 0; kx < w->kernel[1]; kx++)
                *offset++ = c * plan->plane + ky * w->dilation[0] * plan->row + kx * w->dilation[1];
    return ORT_OK;
}

static ort_status plan_plain(ort_shaping *sh, blocked_plan *p, const ort_blocked_state *s,
                             ort_error *err)
{
    const ort_window *w = &p->w;
    ort_blocked_rows_floats(w, 1, s->channels, &p->plain);
    int64_t row_bytes = p->plain.row * s->channels * (int64_t)sizeof(float);
    p->cut.rows = (PLAIN_BYTES / row_bytes - ort_blocked_reach(w, 0)) / w->stride[0] + 1;
    p->cut.rows = ort_max_i64(1, ort_min_i64(p->cut.rows, w->out[0]));
    p->cut.task_vectors = p->cut.vectors;
    cut_tasks(p, s, ort_min_i64(4, p->cut.rows), p->cut.vectors);
    sh->thread_bytes =
        (size_t)ort_blocked_rows_floats(w, p->cut.rows, s->channels, &p->plain) * sizeof(float);
    return ort_blocked_rows_offsets(sh->arena, w, s->channels, &p->plain, err);
}

ort_status ort_blocked_conv_shape(ort_shaping *sh, ort_error *err)
{
    const ort_blocked_state *s = sh->state;
    const ort_tensor *x = sh->in[0], *z = sh->in_count > 3 ? sh->in[3] : NULL;
    blocked_plan *p = ort_arena_alloc(sh->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    sh->plan_state = p;
    if (s->plain) {
        p->in = (ort_blocked_dims){.n = x->shape.dim[0], .rank = x->shape.rank - 2, .in = {1, 1}};
        for (int i = 2; i < x->shape.rank; i++)
            p->in.in[i - p->in.rank] = x->shape.dim[i];
        p->in.plane = p->in.in[0] * p->in.in[1];
    }
    bool fits = s->plain ? x->shape.dim[1] == s->channels
                         : ort_blocked_read(s, &x->shape, &p->in) &&
                               p->in.blocks == (s->group * s->channels + s->block - 1) / s->block;
    if (!fits || !ort_blocked_read(s, &sh->out[0]->shape, &p->out) ||
        (z && !ort_shape_equal(&z->shape, &sh->out[0]->shape)))
        return ort_error_set(err, ORT_ERROR_MODEL, "the inputs don't fit the filter");
    ORT_TRY(ort_blocked_resolve(&s->spec, &p->in, s->kernel, &p->w, err));
    if (p->out.n * p->out.plane == 0)
        return ORT_OK;
    if (s->winograd)
        return ort_winograd_shape(sh, &p->in, &p->out, &p->w, err);
    if (ort_line_takes(s, &sh->out[0]->shape))
        return ort_line_shape(sh, &p->in, &p->out, &p->w, err);
    if (s->tiled)
        return ort_conv_tiled_shape(sh, &p->in, &p->out, &p->w, err);
    ort_blocked_turn_column(&p->w);
    p->cut.vectors = (s->maps / s->group + s->block - 1) / s->block * s->block / s->k->vector;
    if (s->plain)
        return plan_plain(sh, p, s, err);
    if (!s->depthwise) {
        plan_product(p, s, &sh->thread_bytes);
        return ORT_OK;
    }
    int64_t wanted = ort_min_i64(products(p, s) / TASK_PRODUCTS, TASKS_WANTED);
    p->cut.row_blocks = (wanted + p->out.n * p->out.blocks - 1) / (p->out.n * p->out.blocks);
    p->cut.row_blocks = ort_max_i64(1, ort_min_i64(p->cut.row_blocks, p->w.out[0]));
    p->cut.rows = (p->w.out[0] + p->cut.row_blocks - 1) / p->cut.row_blocks;
    p->cut.row_blocks = (p->w.out[0] + p->cut.rows - 1) / p->cut.rows;
    p->band = ort_max_i64(1, BAND_BYTES / (int64_t)sizeof(float) / (p->w.out[1] * s->block));
    return ORT_OK;
}

/* ---- run */

typedef struct conv_job {
    ort_call *call;
    const ort_blocked_state *s;
    const blocked_plan *p;
    const ort_window *w; /* of the plan, and its cut, but for what more threads */
    ort_blocked_cut cut; /* than one change (part_rows) */
    int64_t parts;       /* parts.h */
    const float *x, *z;
    float *y;
    const ort_written *written;
} conv_job;

/* Clamp and bias of a call; the activation that is no clamp follows row by row. */
static ort_blocked_out out_of(const conv_job *j, int64_t block, int64_t pixel, int64_t count)
{
    const ort_blocked_state *s = j->s;
    int64_t at = (block * j->p->out.plane + pixel) * s->block;
    int64_t first = block % j->p->out.blocks * s->block;
    return (ort_blocked_out){.y = j->y + at,
                             .y_block = j->p->out.plane * s->block,
                             .z = j->z ? j->z + at : NULL,
                             .bias = s->bias ? s->bias + first : NULL,
                             .slope = s->slope ? s->slope + first : NULL,
                             .lo = s->epilogue.lo,
                             .hi = s->epilogue.hi,
                             .count = count};
}

typedef struct task_place { /* what a task number stands for */
    int64_t image, group, first_vector, vectors, first_row, last_row;
} task_place;

static task_place place_of(const conv_job *j, size_t task)
{
    const ort_blocked_cut *cut = &j->cut;
    int64_t index = (int64_t)task, tasks = ort_blocked_tasks(cut), unit = index / tasks;
    ort_cell at = ort_parts_cell(index % tasks, cut->row_blocks, cut->vector_blocks, j->parts);
    int64_t rows = at.row * cut->rows, vector = at.column * cut->task_vectors;
    return (task_place){unit / j->s->group, unit % j->s->group, vector,
                        ort_min_i64(cut->task_vectors, cut->vectors - vector), rows,
                        ort_min_i64(rows + cut->rows, j->w->out[0])};
}

/* Weights of `at` that sum the channels from `channel` on. */
static const float *weights_of(const conv_job *j, const task_place *at, int64_t channel)
{
    const ort_blocked_state *s = j->s;
    int64_t depth = s->kernel[0] * s->kernel[1], lanes = s->k->vector;
    int64_t count = ort_min_i64(s->sum_channels, s->channels - channel);
    return s->w + at->group * s->group_floats + channel * depth * j->p->cut.vectors * lanes +
           at->first_vector * lanes * depth * count;
}

/* How often one output row reads a weight. */
static int64_t micro_tiles(const conv_job *j, int64_t pixels)
{
    return (pixels + j->s->k->pixels - 1) / j->s->k->pixels;
}

/* What is read after these weights: the next channels' or, of the task that this thread is likely
 * to run next, the first. A part of it is fetched with every row, while each pixel of the task
 * reads the present ones; when those are many, it comes soon enough by itself. */
static void look_ahead(const conv_job *j, size_t task, const task_place *at, ort_blocked_conv *c,
                       int64_t channel)
{
    const blocked_plan *p = j->p;
    int64_t visits = (at->last_row - at->first_row) * micro_tiles(j, j->w->out[1]);
    task_place then = *at;
    c->ahead_step = 0;
    channel += c->channels;
    if (visits > AHEAD_VISITS)
        return;
    if (channel == j->s->channels) {
        channel = 0;
        if (task + 1 >= (size_t)(p->out.n * j->s->group * ort_blocked_tasks(&j->cut)))
            return;
        then = place_of(j, task + 1);
        if (then.group == at->group && then.first_vector == at->first_vector)
            return;
    }
    c->ahead = weights_of(j, &then, channel);
    c->ahead_step = (2 * j->s->k->vector + visits - 1) / visits;
}

void ort_blocked_conv_product(const ort_blocked_state *s, ort_blocked_conv *c)
{
    if (!s->few) {
        s->k->conv(c);
        return;
    }
    c->vectors = s->maps;
    s->k->conv_few(c);
}

/* A piece of the plane by single pixels, from x on. The weights of all its channels, often more
 * than stay near, stream past it, each panel fetched during the one before. */
static void run_patch(const conv_job *j, ort_blocked_conv *c, const float *x, int64_t pixel,
                      float *patch)
{
    const ort_blocked_state *s = j->s;
    const int64_t count = c->out.count, lanes = 2 * s->k->vector, tiles = micro_tiles(j, count);
    ort_blocked_conv points = *c;
    ort_blocked_patch(&j->p->seen, j->p->seen.out[1], s->block, x, c->channels / s->block, pixel,
                      count, patch);
    points.window = (ort_blocked_window){.x = patch, .width = count, .rows = 1, .columns = 1,
                                         .stride = 1, .dilation = 1};
    points.x_block = count * s->block;
    points.w_rows = 1;
    points.first_row = 0;
    points.channels = c->channels * s->kernel[0] * s->kernel[1];
    points.ahead = points.w + points.channels * lanes;
    points.ahead_step = (lanes + tiles - 1) / tiles;
    s->k->conv(&points);
}

/* A row of single pixels by crossed sums, from this output on; z is added before other channels. */
static void run_crossed(const ort_blocked_state *s, ort_blocked_conv *c, int64_t first,
                        int64_t channel, const float *z, float *space)
{
    ort_blocked_crossed crossed = {.maps = s->maps - first, .space = space};
    crossed.begin = ort_blocked_crossed_at(s, channel, &crossed.middle) + first;
    c->out.z = channel == 0 ? z : NULL;
    s->k->conv_crossed(c, &crossed);
}

/* One output row: all vectors of the task over one stretch of input channels. The input of a row
 * stays in the nearest cache; weights stream past it in the order in which they lie. */
static void run_row(const conv_job *j, const task_place *at, ort_blocked_conv *c, int64_t channel,
                    int64_t block, const float *x, int64_t oy, float *space)
{
    const ort_blocked_state *s = j->s;
    const blocked_plan *p = j->p;
    bool end = channel + c->channels == s->channels;
    int64_t in_row, pixel = oy * j->w->out[1];
    c->out = out_of(j, block, pixel, ort_min_i64(j->w->out[1], p->out.plane - pixel));
    c->out.accumulate = channel > 0;
    const float *z = c->out.z;
    if (!end) {
        c->out.bias = c->out.z = c->out.slope = NULL;
        c->out.lo = -INFINITY;
        c->out.hi = INFINITY;
    }
    if (p->patched) {
        run_patch(j, c, x + channel * p->in.plane, pixel, space);
    } else {
        ort_blocked_rows(j->w, oy, s->block, &c->window, &c->first_row, &in_row);
        c->window.x = x + channel * p->in.plane + in_row * j->w->in[1] * s->block;
        if (space)
            run_crossed(s, c, at->first_vector * s->k->vector, channel, z, space);
        else
            ort_blocked_conv_product(s, c);
        c->ahead += c->ahead_step * s->kernel[0] * s->kernel[1] * c->channels *
                    (at->vectors + 1) / 2 * micro_tiles(j, c->out.count);
    }
    if (end)
        ort_blocked_activate(j->call, s, &c->out, at->vectors * s->k->vector / s->block);
}

/* The rows that a task has made, in these blocks of channels. */
static void hand_on(const conv_job *j, int64_t block, int64_t blocks, int64_t first, int64_t last,
                    int thread)
{
    const int64_t lanes = j->s->block, row = j->w->out[1], plane = j->p->out.plane;
    const int64_t begin = first * row, end = ort_min_i64(last * row, plane);
    for (int64_t b = block; b < block + blocks; b++)
        ort_written_part(j->written, (b * plane + begin) * lanes, (end - begin) * lanes, thread);
}

static void task_product(void *arg, size_t task, int thread)
{
    const conv_job *j = arg;
    const ort_blocked_state *s = j->s;
    const blocked_plan *p = j->p;
    task_place at = place_of(j, task);
    int64_t in_blocks = (s->channels + s->block - 1) / s->block;
    int64_t block = at.image * p->out.blocks +
                    (at.group * p->cut.vectors + at.first_vector) * s->k->vector / s->block;
    const float *x = j->x + (at.image * p->in.blocks + at.group * in_blocks) * p->in.plane *
                                s->block;
    const bool crossed = p->crossed && !(p->flat && s->finite &&
                                         s->k->is_sparse(x, s->channels, p->in.plane));
    float *space = p->patched || crossed ? ort_call_scratch(j->call, thread) : NULL;
    ort_blocked_conv c = {
        .x_block = p->in.plane * s->block, .w_rows = j->w->kernel[0], .vectors = at.vectors,
        .finite = s->finite};
    for (int64_t channel = 0; channel < s->channels; channel += c.channels) {
        c.channels = ort_min_i64(s->sum_channels, s->channels - channel);
        c.w = weights_of(j, &at, channel);
        look_ahead(j, task, &at, &c, channel);
        for (int64_t oy = at.first_row; oy < at.last_row; oy++)
            run_row(j, &at, &c, channel, block, x, oy, space);
    }
    hand_on(j, block, at.vectors * s->k->vector / s->block, at.first_row, at.last_row, thread);
}

void ort_blocked_copy_rows(const ort_window *w, const ort_blocked_rows_plan *plan, const float *x,
                           int64_t channels, int64_t first, int64_t last, float *out)
{
    int64_t rows = plan->plane / plan->row, top = first * w->stride[0] - w->begin[0];
    int64_t left = ort_min_i64(w->begin[1], plan->row);
    int64_t real = ort_max_i64(0, ort_min_i64(w->in[1], plan->row - left));
    int64_t needed = (last - first - 1) * w->stride[0] + ort_blocked_reach(w, 0);
    for (int64_t c = 0; c < channels; c++, x += w->in[0] * w->in[1])
        for (int64_t r = 0; r < needed; r++) {
            float *to = out + (c * rows + r) * plan->row;
            if (top + r < 0 || top + r >= w->in[0]) {
                memset(to, 0, (size_t)plan->row * sizeof *to);
                continue;
            }
            memset(to, 0, (size_t)left * sizeof *to);
            memcpy(to + left, x + (top + r) * w->in[1], (size_t)real * sizeof *to);
            memset(to + left + real, 0, (size_t)(plan->row - left - real) * sizeof *to);
        }
}

static void task_plain(void *arg, size_t task, int thread)
{
    const conv_job *j = arg;
    const ort_blocked_state *s = j->s;
    const blocked_plan *p = j->p;
    task_place at = place_of(j, task);
    float *rows = ort_call_scratch(j->call, thread);
    ort_blocked_plain c = {.offset = p->plain.offset,
                           .taps = s->channels * s->kernel[0] * s->kernel[1],
                           .stride = j->w->stride[1],
                           .w = s->w,
                           .vectors = j->cut.vectors};
    ort_blocked_copy_rows(j->w, &p->plain, j->x + at.image * s->channels * p->in.plane,
                          s->channels, at.first_row, at.last_row, rows);
    for (int64_t oy = at.first_row; oy < at.last_row; oy++) {
        c.x = rows + (oy - at.first_row) * j->w->stride[0] * p->plain.row;
        c.out = out_of(j, at.image * p->out.blocks, oy * j->w->out[1], j->w->out[1]);
        s->k->conv_plain(&c);
        ort_blocked_activate(j->call, s, &c.out, p->out.blocks);
    }
    hand_on(j, at.image * p->out.blocks, p->out.blocks, at.first_row, at.last_row, thread);
}

static void task_depthwise(void *arg, size_t task, int thread)
{
    const conv_job *j = arg;
    const ort_blocked_state *s = j->s;
    const blocked_plan *p = j->p;
    int64_t blocks = p->out.blocks, taps = s->kernel[0] * s->kernel[1];
    int64_t tasks = blocks * j->cut.row_blocks, image = (int64_t)task / tasks;
    ort_cell at = ort_parts_cell((int64_t)task % tasks, j->cut.row_blocks, blocks, j->parts);
    int64_t block = image * blocks + at.column, first = at.row * j->cut.rows;
    int64_t last = ort_min_i64(first + j->cut.rows, j->w->out[0]);
    const ort_window *w = j->w;
    ort_blocked_band d;
    ort_blocked_band_of(w, s->block, &d);
    d.x = j->x + block * p->in.plane * s->block;
    d.w = s->w + block % p->out.blocks * taps * s->block;
    int64_t band = ort_blocked_activates(s) ? p->band : last - first;
    for (d.first_row = first; d.first_row < last; d.first_row += d.rows) {
        d.rows = ort_min_i64(band, last - d.first_row);
        d.out = out_of(j, block, d.first_row * w->out[1], w->out[1]);
        s->k->depthwise(&d);
        d.out.count *= d.rows;
        ort_blocked_activate(j->call, s, &d.out, 1);
    }
    hand_on(j, block, 1, first, last, thread);
}

/* A plane that is one row: as many pieces for each thread, of the rows that are its part of a plane
 * in other steps. */
static void part_pieces(conv_job *j, int64_t threads, ort_window *w)
{
    const ort_window *seen = &j->p->seen;
    const int64_t plane = j->p->out.plane, each = (j->w->out[0] + threads - 1) / threads;
    int64_t share = (seen->out[0] + threads - 1) / threads * seen->out[1];
    if (seen->out[0] < threads)
        share = (plane + threads - 1) / threads;
    *w = *j->w;
    w->in[1] = w->out[1] = (share + each - 1) / each;
    w->in[0] = w->out[0] = (plane + w->out[1] - 1) / w->out[1];
    j->w = w;
    j->cut.rows = each;
    j->cut.row_blocks = (w->out[0] + each - 1) / each;
}

/* Rows of the same part of each plane stay with one thread, which finds what it has written in its
 * own cache, unless the weights that each thread then reads are more than the values that it would
 * read of others and write over theirs, which takes longer. Depthwise filters go with the products
 * beside them, from and to about a sixth of their channels. */
static void part_rows(conv_job *j, ort_window *own)
{
    const blocked_plan *p = j->p;
    const ort_blocked_state *s = j->s;
    const bool pieces = p->flat || p->patched;
    int64_t threads = ort_call_width(j->call), rows = pieces ? p->out.plane : j->w->out[0];
    int64_t taps = s->kernel[0] * s->kernel[1], maps = s->maps / s->group;
    int64_t values = p->in.plane * s->channels + p->out.plane * maps;
    threads = ort_min_i64(threads, rows);
    if (threads < 2 || (s->depthwise ? s->maps > 14 * p->out.plane
                                     : taps * s->channels * maps > 2 * values))
        return;
    if (j->cut.row_blocks < EVEN_BLOCKS * threads) {
        if (pieces && j->w->out[0] < EVEN_BLOCKS * threads) {
            part_pieces(j, threads, own);
        } else {
            int64_t blocks = (j->cut.row_blocks + threads - 1) / threads * threads;
            j->cut.rows = (j->w->out[0] + blocks - 1) / blocks;
            j->cut.row_blocks = (j->w->out[0] + j->cut.rows - 1) / j->cut.rows;
        }
    }
    j->parts = ort_min_i64(threads, j->cut.row_blocks);
}

ort_status ort_blocked_conv_run(ort_call *call, ort_error *err)
{
    const ort_blocked_state *s = call->state;
    const ort_tensor *z = ort_call_in(call, 3), *y = ort_call_out(call, 0);
    if (ort_tensor_count(y) == 0)
        return ORT_OK;
    if (s->winograd) /* these three have plans of their own */
        return ort_winograd_run(call, err);
    if (ort_line_takes(s, &y->shape))
        return ort_line_run(call, err);
    if (s->tiled)
        return ort_conv_tiled_run(call, err);
    const blocked_plan *p = call->plan_state;
    ort_window own;
    conv_job j = {call, s, p, &p->w, p->cut, 1, ort_call_in(call, 0)->data, z ? z->data : NULL,
                  y->data, ort_written_begin(call)};
    part_rows(&j, &own);
    if (p->patched && ort_call_width(call) == 1) { /* each task would copy its windows again */
        j.cut.task_vectors = j.cut.vectors;
        j.cut.vector_blocks = 1;
    }
    if (p->crossed && ort_call_width(call) == 1) { /* likewise */
        j.cut.task_vectors = vectors_within(s, j.cut.vectors, 2, CROSSED_BYTES);
        j.cut.vector_blocks = (j.cut.vectors + j.cut.task_vectors - 1) / j.cut.task_vectors;
    }
    if (s->depthwise)
        ort_call_parallel(call, (size_t)(p->out.n * p->out.blocks * j.cut.row_blocks),
                          task_depthwise, &j);
    else
        ort_call_parallel(call, (size_t)(p->out.n * s->group * ort_blocked_tasks(&j.cut)),
                          s->plain ? task_plain : task_product, &j);
    return ORT_OK;
}

static const ort_op_impl conv_impl = {
    .state = sizeof(ort_blocked_state), .bind = ort_blocked_conv_bind,
    .infer = ort_blocked_conv_infer, .prepare = ort_blocked_conv_prepare,
    .shape = ort_blocked_conv_shape, .run = ort_blocked_conv_run, .cost = ort_blocked_conv_cost,
};

const ort_op ort_ops_blocked_conv[] = {
    {ORT_INTERNAL, "BlockedConv", 1, "X:T,W:T,B?:T,Z?:T -> Y:T", "T:f32",
     "activation:s activation_params:fs auto_pad:s=NOTSET block:i! dilations:is group:i=1 "
     "kernel_shape:is pads:is scale:f=1 shift:f=0 slopes:fs strides:is",
     ORT_TRAIT_PACKS_UNALIGNED, &conv_impl},
    {0},
};
