/* bytes_plan.c - which rows, vectors and copies are a task of a convolution in the layout of bytes
 * (bytes_conv.c names the forms), and where its words lie. Results don't depend on it.
 */
#include "op/blocked/bytes_plan.h"

enum {
    WEIGHT_BYTES = 256 << 10, /* of one task */
    COPY_BYTES = 128 << 10,   /* of one task */
    BAND_BYTES = 96 << 10,    /* of a depthwise task */
    TASK_PRODUCTS = 1000000,  /* some microseconds: worth handing to another thread */
    TASK_LEAST = 250000,      /* of a pair of tasks, for a thread that waits for work */
    TASKS_WANTED = 16,
    PIECE_PIXELS = 56,        /* of a plane that is one row, */
    PIECE_MOST = 224,         /* and where a pixel's words are few, whose steps are found for each
                                 piece: */
    PIECE_WORDS = 1800,
};

static int64_t products(const bytes_plan *p, const bytes_state *s)
{
    int64_t maps = s->depthwise ? s->maps : s->group * p->cut.vectors * s->k->vector;
    return p->out.n * maps * p->out.plane * s->channels * taps_of(s);
}

/* Few products are two tasks where each takes a microsecond: whether threads that are awake share
 * so short a loop is for the pool to find out. */
static int64_t tasks_wanted(int64_t products)
{
    const int64_t pair = ort_min_i64(products / TASK_LEAST, 2);
    return ort_min_i64(ort_max_i64(products / TASK_PRODUCTS, pair), TASKS_WANTED);
}

/* Output rows that lie `comb` apart, at most. */
static int64_t comb_rows(const bytes_plan *p)
{
    return (p->w.out[0] + p->comb - 1) / p->comb;
}

/* Rows of a task, as many as its copy has room for. */
static void plan_copied_rows(bytes_plan *p, int64_t blocks)
{
    p->cut.rows = comb_rows(p);
    while (p->copies && p->cut.rows > 1 &&
           rows_under(&p->w, p->cut.rows) * p->x_row * blocks > COPY_BYTES)
        p->cut.rows = (p->cut.rows + 1) / 2;
    if (p->copies && p->w.stride[0] == 1 && p->w.dilation[0] > 1 &&
        rows_under(&p->w, p->cut.rows) > p->cut.rows * p->w.kernel[0]) {
        p->comb = p->w.dilation[0];
        p->w.dilation[0] = 1;
        plan_copied_rows(p, blocks);
    }
}

static void plan_product(bytes_plan *p, const bytes_state *s)
{
    ort_window *w = &p->w;
    int64_t least = ort_max_i64(2, ORT_BYTES_BLOCK / s->k->vector);
    bool padded = w->begin[0] || w->begin[1] || w->end[0] || w->end[1];
    p->copies = s->plain || s->wide > 1 || padded;
    if (!s->plain && taps_of(s) == 1 && w->stride[0] == 1 && w->stride[1] == 1 && !padded) {
        int64_t pixels = PIECE_PIXELS;
        if (s->limits)
            pixels = ort_max_i64(pixels, ort_min_i64(PIECE_MOST, PIECE_WORDS / s->panel_words));
        int64_t pieces = ort_max_i64(1, p->in.plane / pixels);
        w->in[1] = w->out[1] = (p->in.plane + pieces - 1) / pieces;
        w->in[0] = w->out[0] = (p->in.plane + w->in[1] - 1) / w->in[1];
    }
    p->copy_row = (w->out[1] - 1) * w->stride[1] + ort_blocked_reach(w, 1);
    p->pixel = (s->plain ? plain_channels(s) : ORT_BYTES_BLOCK) * s->wide;
    p->x_row = p->pixel * (p->copies ? p->copy_row : w->in[1]);
    int64_t blocks = s->plain ? 1 : blocks_of(s->channels);
    int64_t vector_bytes = s->panel_words * s->k->vector * 4;
    p->cut.task_vectors = WEIGHT_BYTES / vector_bytes / least * least;
    p->cut.task_vectors = ort_max_i64(ort_min_i64(p->cut.vectors, p->cut.task_vectors), least);
    plan_copied_rows(p, blocks);
    ort_blocked_cut_tasks(&p->cut, comb_rows(p), p->out.n * s->group * p->comb,
                          tasks_wanted(products(p, s)),
                          p->in.plane * s->channels > p->cut.vectors * vector_bytes / 4, 1, least);
    p->x_block = p->copies ? rows_under(w, p->cut.rows) * p->x_row : p->in.plane * p->pixel;
}

static void plan_depthwise(bytes_plan *p, const bytes_state *s)
{
    const ort_window *w = &p->w;
    const ort_bytes_band band = band_of(p);
    int64_t wanted = ort_min_i64(products(p, s) / TASK_PRODUCTS * 4, TASKS_WANTED);
    p->copies = true;
    p->pixel = ORT_BYTES_BLOCK;
    p->copy_row = (w->out[1] - 1) * w->stride[1] + ort_blocked_reach(w, 1);
    p->x_row = s->k->arranged_bytes(&band);
    p->cut.rows = w->out[0];
    p->window = (s->floats || s->bounded) && !s->rested && s->k->takes_window &&
                s->k->takes_window(w->kernel, w->stride, w->dilation);
    while (!p->window && p->cut.rows > 1 && rows_under(w, p->cut.rows) * p->x_row > BAND_BYTES)
        p->cut.rows = (p->cut.rows + 1) / 2;
    while (p->cut.rows > 1 &&
           p->out.n * p->out.blocks * ((w->out[0] + p->cut.rows - 1) / p->cut.rows) < wanted)
        p->cut.rows = (p->cut.rows + 1) / 2;
    p->cut.row_blocks = (w->out[0] + p->cut.rows - 1) / p->cut.rows;
    p->x_block = p->window ? 0 : rows_under(w, p->cut.rows) * p->x_row;
}

/* Bytes from the pixel under the first tap to that under another. */
static int64_t offset_of_tap(const bytes_plan *p, int64_t tap)
{
    const ort_window *w = &p->w;
    return tap / w->kernel[1] * w->dilation[0] * p->x_row +
           tap % w->kernel[1] * w->dilation[1] * p->pixel;
}

/* What each pixel multiplies, in the order of order_filter. */
static ort_status plan_runs(bytes_plan *p, const bytes_state *s, ort_arena *arena, ort_error *err)
{
    const int64_t taps = taps_of(s), whole = whole_channels(s) / ORT_BYTES_BLOCK;
    const int64_t part = part_channels(s) * s->wide / 4, stretch = rest_stretch(s);
    const int64_t most = taps * (whole + 1) + s->rests.count[0] + s->rests.count[1] * stretch;
    int64_t *offset = ort_arena_array(arena, (size_t)most, sizeof *offset);
    if (!offset)
        return ort_error_memory(err, (size_t)most * sizeof *offset);
    p->part[0] = (ort_bytes_runs){offset, taps * whole + s->rests.count[0], 4 * s->wide};
    for (int64_t t = 0; t < taps; t++)
        for (int64_t b = 0; b < whole; b++)
            *offset++ = offset_of_tap(p, t) + b * p->x_block;
    for (int64_t i = 0; i < s->rests.count[0]; i++)
        *offset++ = offset_of_tap(p, s->rests.run[0][i] / whole) +
                    s->rests.run[0][i] % whole * p->x_block;
    /* neighbouring taps of a plain row follow each other; those of a line as it was packed */
    const bool joined = s->plain && p->w.dilation[1] == 1;
    const int64_t step = s->line ? s->kernel[1] : joined ? p->w.kernel[1] : 1;
    const int64_t again = s->rests.count[1] * stretch;
    p->part[1] = (ort_bytes_runs){offset, part ? (taps + again) / step : 0,
                                  s->line ? line_words(s) : part * step};
    for (int64_t t = 0; t < taps; t += step)
        *offset++ = offset_of_tap(p, t) + whole * p->x_block;
    for (int64_t i = 0; i < again; i += step)
        *offset++ = offset_of_tap(p, s->rests.run[1][i / stretch] * stretch + i % stretch) +
                    whole * p->x_block;
    return ORT_OK;
}

/* Where each word lies. */
static ort_status plan_places(const ort_shaping *sh, bytes_plan *p, const bytes_state *s,
                              ort_error *err)
{
    int64_t *place = ort_arena_array(sh->arena, (size_t)s->panel_words, sizeof *place);
    p->place = place;
    if (!place)
        return ort_error_memory(err, (size_t)s->panel_words * sizeof *place);
    for (int part = 0; part < 2; part++)
        for (int64_t r = 0; r < p->part[part].runs; r++)
            for (int64_t i = 0; i < p->part[part].words; i++)
                *place++ = p->part[part].offset[r] + 4 * i;
    return ORT_OK;
}

/* Of so many rows of a task, the stretches that are looked through at once. */
static int64_t near_groups(const bytes_plan *p, int64_t rows)
{
    return (rows + p->near - 1) / p->near;
}

/* Room for what is found of the words in a task. Pieces of a plane, of which the last may be
 * shorter, and sums are taken row by row. */
static void plan_fours(ort_shaping *sh, bytes_plan *p, const bytes_state *s)
{
    const size_t bytes = (size_t)s->k->fours_peak_bytes(s->panel_words);
    if (!s->floats && p->comb == 1 && p->w.out[0] * p->w.out[1] == p->out.plane)
        p->near = s->roomy ? p->cut.rows : ort_max_i64(1, PIECE_PIXELS / p->w.out[1]);
    p->peaks = (int64_t)ort_round_up(sh->thread_bytes, 64);
    p->space = p->peaks + (int64_t)ort_round_up((size_t)near_groups(p, p->cut.rows) * bytes, 64);
    sh->thread_bytes = (size_t)(p->space + s->k->fours_space(s->panel_words));
}

/* Sums of one call that become floats: of one row and panel, or of a depthwise window's rows. */
static int64_t sums_bytes(const bytes_plan *p, const bytes_state *s)
{
    const int64_t pixels = p->w.out[1] * (s->depthwise ? near_rows(p) : 1);
    return pixels * FILTERS_MOST * (int64_t)sizeof(int32_t);
}

static bool read_output(const bytes_state *s, const ort_shape *shape, ort_blocked_dims *out)
{
    if (!s->floats || s->coded)
        return ort_bytes_read(shape, out);
    const int rank = shape->rank - (s->blocks ? 1 : 0);
    *out = (ort_blocked_dims){.n = shape->dim[0], .rank = rank - 2, .in = {1, 1},
                              .blocks = lanes_of(s) / ORT_BYTES_BLOCK};
    for (int i = 2; i < rank; i++)
        out->in[i - out->rank] = shape->dim[i];
    out->plane = out->in[0] * out->in[1];
    return shape->dim[1] == (s->blocks ? ort_blocked_count(s->maps, s->blocks) : s->maps);
}

static bool read_input(const bytes_state *s, const ort_shape *shape, ort_blocked_dims *in)
{
    if (!s->plain)
        return ort_bytes_read(shape, in) &&
               in->blocks == (s->depthwise ? blocks_of(s->maps)
                                           : s->group * blocks_of(s->channels));
    *in = (ort_blocked_dims){.n = shape->dim[0], .rank = shape->rank - 2, .in = {1, 1}};
    for (int i = 2; i < shape->rank; i++)
        in->in[i - in->rank] = shape->dim[s->last ? i - 1 : i];
    in->plane = in->in[0] * in->in[1];
    return shape->dim[s->last ? shape->rank - 1 : 1] == s->channels;
}

ort_status ort_bytes_conv_shape(ort_shaping *sh, ort_error *err)
{
    const bytes_state *s = sh->state;
    bytes_plan *p = ort_arena_alloc(sh->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    sh->plan_state = p;
    if (!read_input(s, &sh->in[0]->shape, &p->in) ||
        !read_output(s, &sh->out[0]->shape, &p->out))
        return ort_error_set(err, ORT_ERROR_MODEL, "the inputs don't fit the filter");
    ORT_TRY(ort_blocked_resolve(&s->spec, &p->in, s->kernel, &p->w, err));
    if (p->out.n * p->out.plane == 0)
        return ORT_OK;
    ORT_TRY(ort_bytes_after_shape(sh, &s->after, err));
    if (s->winograd)
        return ort_bytes_winograd_shape(sh, s->winograd, &p->in, &p->out, &p->w, err);
    ORT_TRY(ort_bytes_tiled_shape(sh, s, &p->in, &p->out, &p->w, &p->tiling, err));
    if (p->tiling)
        return ORT_OK;
    if (!s->depthwise) /* whose weights lie by rows of the window */
        ort_blocked_turn_column(&p->w);
    p->cut.vectors = vectors_of(s);
    p->comb = 1;
    if (s->depthwise)
        plan_depthwise(p, s);
    else
        plan_product(p, s);
    int64_t blocks = s->plain || s->depthwise ? 1 : blocks_of(s->channels);
    int64_t row = s->plain ? p->w.in[1] * PLAIN_CHANNELS
                   : p->window
                       ? ort_max_i64(p->w.in[1], 1) * ORT_BYTES_BLOCK
                       : (p->copy_row + ORT_BYTES_AHEAD * p->w.dilation[1]) * ORT_BYTES_BLOCK;
    p->sums = p->copies ? (int64_t)ort_round_up((size_t)(p->x_block * blocks + row), 64) : 0;
    sh->thread_bytes = (size_t)p->sums;
    if (s->floats) {
        sh->thread_bytes += (size_t)sums_bytes(p, s);
        sh->workspace_bytes = (size_t)lanes_of(s) * (sizeof *s->bias + sizeof *s->scale);
    }
    if (s->depthwise)
        return ORT_OK;
    ORT_TRY(plan_runs(p, s, sh->arena, err));
    if (s->k->fours)
        ORT_TRY(plan_places(sh, p, s, err));
    p->near = 1;
    if (s->limits)
        plan_fours(sh, p, s);
    return ORT_OK;
}
