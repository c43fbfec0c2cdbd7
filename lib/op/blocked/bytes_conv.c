/* bytes_conv.c - QLinearConv in the blocked layout of bytes (bytes_op.h), exact; ConvInteger with
 * its scale, bias and bounds, whose result is floats (BytesConvFloat), or the codes of these
 * behind a function of one number, in the layout again (BytesConvThrough).
 *
 *   product     a task is some output rows by some vectors of output channels of one image and
 *               group. Where nothing is padded and the tier multiplies bytes, it reads the input in
 *               place; a 1x1 window of stride 1 sees the plane as one long row, cut into pieces.
 *               Otherwise it copies the input rows that it needs first, with their padding, as the
 *               tier's products read them: then every tap is a constant offset. Output rows under
 *               which dilated taps lie on the same rows are a task then, if others would copy more
 *               rows than they read: it copies each of these once, as rows of a window that isn't
 *               dilated.
 *   plain       few input channels, not blocked: copied in words of four; of one channel as it is,
 *               and a word holds neighbouring pixels. On tiers whose words are of two int16 so does
 *               a word of three channels, or of those that are neighbours already (`last`).
 *   depthwise   a task is some output rows of one block of channels, copied likewise, or read in
 *               place where the tier has a kernel for the window.
 *   winograd    bytes_winograd.c, whose outputs are the same.
 *   tiled       bytes_tiled.c, likewise.
 *
 * Tables and a sum may follow (bytes_after.h), in the same step.
 *
 * Other groups begin with a block of their own, in the input and in the output.
 *
 * Weights without their zero point that no int8 holds are a sum of two that fit. The second, their
 * rest, is zero for all but a few weights of a file: only the runs of words, and the blocks of a
 * depthwise filter, in which some weight has one are multiplied again. Words of two int16 hold the
 * sum itself.
 *
 * What the zero point of the input contributes to a sum is the same for every pixel, since padding
 * holds it: minus the zero point times the sum of the filter, a part of the bias.
 */
#include <string.h>

#include "base/checked.h"
#include "op/blocked/bytes_plan.h"
#include "op/shared/integer.h"
#include "tensor/scalar.h"

enum { SCALE = X_SCALE }; /* of BytesConvFloat: of the sums, one or one each map, made in the run */

static const ort_bind bytes_bind[] = {
    ORT_BIND(bytes_state, group), ORT_BIND(bytes_state, last), ORT_BIND(bytes_state, turned),
    ORT_BIND_WINDOW(bytes_state), {0}};
static const ort_bind float_bind[] = {
    ORT_BIND(bytes_state, group), ORT_BIND_WINDOW(bytes_state), ORT_BIND(bytes_state, low),
    ORT_BIND(bytes_state, high), ORT_BIND(bytes_state, blocks), {0}};
static const ort_bind through_bind[] = {
    ORT_BIND(bytes_state, group), ORT_BIND_WINDOW(bytes_state), ORT_BIND(bytes_state, low),
    ORT_BIND(bytes_state, high), ORT_BIND(bytes_state, act), ORT_BIND(bytes_state, act_a),
    ORT_BIND(bytes_state, act_b), {0}};

typedef struct bytes_job {
    ort_call *call;
    const bytes_state *s;
    const bytes_plan *p;
    const uint8_t *x;
    uint8_t flip; /* of a plain input */
    uint8_t *y;
    float *floats; /* the output instead of y */
    const int32_t *bias;
    const float *scale;
    int x_zero;
    ort_bytes_after_job after;
} bytes_job;

/* What follows, on rows of some blocks that are made. */
static void finish(const bytes_job *j, int64_t block, int64_t blocks, int64_t first, int64_t rows)
{
    const bytes_plan *p = j->p;
    const int64_t near = p->comb == 1 ? rows : 1, end = first + rows * p->comb;
    for (int64_t b = block; b < block + blocks && j->s->after.any; b++)
        for (int64_t row = first; row < end; row += near * p->comb) {
            const int64_t at = row * p->w.out[1];
            const int64_t pixels = ort_min_i64(near * p->w.out[1], p->out.plane - at);
            ort_bytes_after_do(&j->after, (b * p->out.plane + at) * ORT_BYTES_BLOCK,
                               pixels * ORT_BYTES_BLOCK);
        }
}

/* Member by member: what was just written can't be read at once as parts of wider copies. */
static void set_out(const bytes_job *j, ort_bytes_out *o, int64_t block, int64_t first,
                    int64_t pixel, int64_t count)
{
    o->y = j->y + (block * j->p->out.plane + pixel) * ORT_BYTES_BLOCK;
    o->y_block = j->p->out.plane * ORT_BYTES_BLOCK;
    o->bias = j->bias + first;
    o->scale = j->scale + first;
    o->zero = j->s->y_zero;
    o->bounded = j->s->bounded;
    o->count = count;
    o->sums = NULL;
}

/* The same, for sums: in a thread's scratch, one block behind the other. */
static void set_sums(const bytes_job *j, int thread, ort_bytes_out *o, int64_t first, int64_t count)
{
    o->sums = (int32_t *)(void *)((char *)ort_call_scratch(j->call, thread) + j->p->sums);
    o->y = (uint8_t *)o->sums;
    o->y_block = count * ORT_BYTES_BLOCK;
    o->bias = j->bias + first;
    o->scale = j->scale + first;
    o->count = count;
}

static void give_floats(const bytes_job *j, const ort_bytes_out *o, int64_t first, int64_t lanes,
                        int64_t image, int64_t pixel)
{
    const bytes_floats f = {j->call, j->s, &j->p->out, j->scale, j->floats, j->y};
    ort_bytes_give_floats(&f, o, first, lanes, image, pixel);
}

/* Pixels of the zero point. */
static void fill_zero(const bytes_job *j, int64_t pixels, char *to)
{
    const int64_t count = pixels * j->p->pixel;
    if (j->s->wide == 1) {
        memset(to, j->x_zero, (size_t)count);
        return;
    }
    const int16_t zero = (int16_t)j->x_zero;
    for (int64_t i = 0; i < count; i += 2)
        memcpy(to + i, &zero, sizeof zero);
}

/* `count` pixels from pixel `at` of a plane, as products read them. */
static void copy_pixels(const bytes_job *j, const uint8_t *x, int64_t at, int64_t count, char *to,
                        uint8_t *words)
{
    const bytes_state *s = j->s;
    const uint8_t *from = x + at * ORT_BYTES_BLOCK;
    int64_t bytes = count * j->p->pixel / s->wide;
    if (s->line && s->channels > 1 && !s->last) {
        s->k->gather3_wide(x + at, j->p->in.plane, count, j->flip, (int16_t *)(void *)to);
        return;
    }
    if (s->line && s->wide > 1) {
        j->call->k->gemm.widen_s16(bytes, x + at * s->channels, j->flip != 0, j->flip ? -128 : 0,
                                   (int16_t *)(void *)to);
        return;
    }
    if (s->plain) {
        uint8_t *direct = s->wide == 1 ? (uint8_t *)to : words;
        if (s->line)
            for (int64_t i = 0; i < count; i++)
                direct[i] = x[at + i] ^ j->flip;
        else
            s->k->gather4(x + at, j->p->in.plane, s->channels, count, j->flip, direct);
        from = direct;
    }
    if (s->wide > 1)
        j->call->k->gemm.widen_s16(bytes, from, false, 0, (int16_t *)(void *)to);
    else if (!s->plain)
        memcpy(to, from, (size_t)bytes);
}

/* The rows under `rows` output rows of one block from `first` on, with their padding. */
static void copy_rows(const bytes_job *j, const uint8_t *x, int64_t first, int64_t rows, char *to,
                      uint8_t *words)
{
    const bytes_plan *p = j->p;
    const ort_window *w = &p->w;
    const int64_t top = first * w->stride[0] - w->begin[0];
    const int64_t left = ort_min_i64(w->begin[1], p->copy_row);
    const int64_t real = ort_max_i64(0, ort_min_i64(w->in[1], p->copy_row - left));
    for (int64_t r = 0; r < rows_under(w, rows); r++, to += p->x_row) {
        const int64_t y = top + r * p->comb;
        if (y < 0 || y >= w->in[0]) {
            fill_zero(j, p->copy_row, to);
            continue;
        }
        fill_zero(j, left, to);
        const int64_t at = y * w->in[1]; /* the last piece of a plane may be shorter */
        copy_pixels(j, x, at, ort_min_i64(real, p->in.plane - at), to + left * p->pixel, words);
        fill_zero(j, p->copy_row - left - real, to + (left + real) * p->pixel);
    }
}

/* A plane that was cut into pieces ends where its last piece does. */
static int64_t pixels_of_row(const bytes_plan *p, int64_t oy)
{
    return ort_min_i64(p->w.out[1], p->out.plane - oy * p->w.out[1]);
}

/* Under the first tap of row `r` of a task whose first is `first`; the input's own rows only where
 * none lie between those of a task. */
static const char *under_row(const bytes_plan *p, const uint8_t *x, const char *copy, int64_t first,
                             int64_t r)
{
    return p->copies ? copy + r * p->w.stride[0] * p->x_row
                     : (const char *)x + (first + r) * p->w.stride[0] * p->x_row;
}

/* Row `r` of a task that ends with row `rows`, and as many as are multiplied alike. */
static void set_rows(const bytes_plan *p, ort_bytes_conv *c, const uint8_t *x, const char *scratch,
                     int64_t first, int64_t r, int64_t rows)
{
    c->x = under_row(p, x, scratch, first, r);
    c->rows = ort_min_i64(p->near, rows - r);
    c->x_row = p->w.stride[0] * p->x_row;
    c->out.count = pixels_of_row(p, first + r * p->comb);
}

/* What the codes under the rows reach. */
static void find_peaks(const bytes_job *j, ort_bytes_conv *c, const uint8_t *x, char *scratch,
                       int64_t first, int64_t rows)
{
    const bytes_plan *p = j->p;
    uint8_t *peaks = (uint8_t *)scratch + p->peaks;
    c->space = scratch + p->space;
    for (int64_t r = 0; r < rows && !j->s->roomy; r += p->near) {
        set_rows(p, c, x, scratch, first, r, rows);
        j->s->k->fours_peaks(c, peaks);
        peaks += j->s->k->fours_peak_bytes(c->words);
    }
}

/* One panel by the rows from row `r` of a task on. */
static void multiply(const bytes_state *s, const bytes_plan *p, ort_bytes_conv *c,
                     const char *scratch, int64_t group, int64_t panel, int64_t r)
{
    if (!s->limits) {
        s->k->conv(c);
        return;
    }
    c->peaks = s->roomy ? NULL : (const uint8_t *)scratch + p->peaks +
                                     r / p->near * s->k->fours_peak_bytes(c->words);
    const int64_t words = (group * panels_of(s) + panel) * limit_words(s);
    c->limits = s->limits + 4 * words;
    c->empty = s->empty ? s->empty + words : NULL;
    s->k->fours(c);
}

static void task_product(void *arg, size_t task, int thread)
{
    const bytes_job *j = arg;
    const bytes_state *s = j->s;
    const bytes_plan *p = j->p;
    int64_t index = (int64_t)task, first = index % p->cut.row_blocks * p->cut.rows * p->comb;
    int64_t vector = (index /= p->cut.row_blocks) % p->cut.vector_blocks * p->cut.task_vectors;
    first += (index /= p->cut.vector_blocks) % p->comb;
    int64_t group = (index /= p->comb) % s->group, image = index / s->group;
    const int64_t left_rows = (p->w.out[0] - first + p->comb - 1) / p->comb;
    int64_t rows = ort_min_i64(p->cut.rows, left_rows), lanes = s->k->vector;
    int64_t blocks = s->plain ? 1 : blocks_of(s->channels);
    const int64_t vectors = ort_min_i64(p->cut.task_vectors, p->cut.vectors - vector);
    const int64_t place = group * s->group_blocks * ORT_BYTES_BLOCK; /* of the group's outputs */
    char *copy = ort_call_scratch(j->call, thread);
    if (rows <= 0)
        return;
    const int64_t in = s->plain ? image * s->channels * p->in.plane
                                : (image * p->in.blocks + group * blocks) * p->in.plane *
                                      ORT_BYTES_BLOCK;
    const uint8_t *x = j->x + in;
    for (int64_t b = 0; b < blocks && p->copies; b++)
        copy_rows(j, x + b * p->in.plane * ORT_BYTES_BLOCK, first, rows, copy + b * p->x_block,
                  (uint8_t *)copy + p->x_block * blocks);
    if (s->line) /* the last word may hold pixels behind the last row */
        memset(copy + rows_under(&p->w, rows) * p->x_row, 0, 4);
    ort_bytes_conv c = {.step = p->w.stride[1] * p->pixel, .part = {p->part[0], p->part[1]},
                        .words = s->panel_words, .place = p->place};
    if (s->limits)
        find_peaks(j, &c, x, copy, first, rows);
    /* a panel at a time, so that all rows find it in the nearest cache */
    for (int64_t v = 0, done = 0; v < vectors; v += 2) {
        for (int64_t r = 0; r < rows; r += p->near) {
            int64_t oy = first + r * p->comb, out = vector + v;
            set_rows(p, &c, x, copy, first, r, rows);
            c.w = s->w + (place + out * lanes) * s->panel_words;
            c.vectors = ort_min_i64(2, vectors - v);
            const int64_t left = r + 1 < rows ? 0 : ort_min_i64(2, vectors - v - 2);
            c.next = c.w + 2 * lanes * s->panel_words;
            c.next_bytes = ort_max_i64(left, 0) * lanes * s->panel_words * 4;
            int64_t at = place + out * lanes;
            if (s->floats)
                set_sums(j, thread, &c.out, at, pixels_of_row(p, oy));
            else
                set_out(j, &c.out, image * p->out.blocks + at / ORT_BYTES_BLOCK, at,
                        oy * p->w.out[1], pixels_of_row(p, oy));
            c.out.y += at % ORT_BYTES_BLOCK;
            if (s->floats)
                c.out.sums += at % ORT_BYTES_BLOCK;
            multiply(s, p, &c, copy, group, (vector + v) / 2, r);
            if (s->floats) {
                c.out.sums -= at % ORT_BYTES_BLOCK;
                give_floats(j, &c.out, at, c.vectors * lanes, image, oy * p->w.out[1]);
            }
        }
        const int64_t made = v + 2 < vectors ? (v + 2) * lanes / ORT_BYTES_BLOCK
                                             : blocks_of(vectors * lanes);
        finish(j, image * p->out.blocks + (place + vector * lanes) / ORT_BYTES_BLOCK + done,
               made - done, first, rows);
        done = made;
    }
}

/* Rows [from, to) of those under the output rows of a task that begins with row `first`, of one
 * block, arranged; `row` is space for one, whose pixels behind the last tap may hold anything. */
static void arrange_rows(const bytes_job *j, const uint8_t *x, int64_t first, int64_t from,
                         int64_t to, const ort_bytes_band *band, uint8_t *row)
{
    const bytes_plan *p = j->p;
    const ort_window *w = &p->w;
    const int64_t top = first * w->stride[0] - w->begin[0];
    const int64_t left = ort_min_i64(w->begin[1], p->copy_row);
    const int64_t real = ort_max_i64(0, ort_min_i64(w->in[1], p->copy_row - left));
    uint8_t *pixels = row + left * ORT_BYTES_BLOCK;
    for (int64_t r = from; r < to; r++) {
        if (top + r < 0 || top + r >= w->in[0])
            memset(pixels, j->x_zero, (size_t)(real * ORT_BYTES_BLOCK));
        else
            memcpy(pixels, x + (top + r) * w->in[1] * ORT_BYTES_BLOCK,
                   (size_t)(real * ORT_BYTES_BLOCK));
        j->s->k->arrange(band, row, (char *)(uintptr_t)band->x + r * p->x_row);
    }
}

/* A few rows at a time, so that they find what they multiply in the nearest cache. */
static void task_depthwise(void *arg, size_t task, int thread)
{
    const bytes_job *j = arg;
    const bytes_state *s = j->s;
    const bytes_plan *p = j->p;
    int64_t block = (int64_t)task / p->cut.row_blocks;
    int64_t first = (int64_t)task % p->cut.row_blocks * p->cut.rows;
    int64_t own = block % p->out.blocks, rows = ort_min_i64(p->cut.rows, p->w.out[0] - first);
    char *copy = ort_call_scratch(j->call, thread);
    uint8_t *row = (uint8_t *)copy + p->x_block;
    const uint8_t *x = j->x + block * p->in.plane * ORT_BYTES_BLOCK;
    memset(row, j->x_zero, (size_t)((p->copy_row + ORT_BYTES_AHEAD * p->w.dilation[1]) *
                                    ORT_BYTES_BLOCK));
    ort_bytes_band d = band_of(p), all = d;
    all.x = copy;
    const int64_t near = near_rows(p);
    d.w = s->w + own * s->panel_words;
    d.terms = s->rested && s->rested[own] ? 2 : 1;
    for (int64_t r = 0, done = 0; r < rows; r += d.rows) {
        d.rows = ort_min_i64(near, rows - r);
        arrange_rows(j, x, first, ort_max_i64(done, r * p->w.stride[0]),
                     rows_under(&p->w, r + d.rows), &all, row);
        d.x = copy + r * p->w.stride[0] * p->x_row;
        if (s->floats)
            set_sums(j, thread, &d.out, own * ORT_BYTES_BLOCK, p->w.out[1]);
        else
            set_out(j, &d.out, block, own * ORT_BYTES_BLOCK, (first + r) * p->w.out[1],
                    p->w.out[1]);
        s->k->depthwise(&d);
        if (s->floats) {
            d.out.count *= d.rows;
            give_floats(j, &d.out, own * ORT_BYTES_BLOCK, ORT_BYTES_BLOCK, block / p->out.blocks,
                        (first + r) * p->w.out[1]);
        }
        done = rows_under(&p->w, r + d.rows);
    }
    finish(j, block, 1, first, rows);
}

static void task_window(void *arg, size_t task, int thread)
{
    const bytes_job *j = arg;
    const bytes_plan *p = j->p;
    const ort_window *w = &p->w;
    const int64_t block = (int64_t)task / p->cut.row_blocks, own = block % p->out.blocks;
    const int64_t first = (int64_t)task % p->cut.row_blocks * p->cut.rows;
    const int64_t rows = ort_min_i64(p->cut.rows, w->out[0] - first);
    uint8_t *padding = ort_call_scratch(j->call, thread);
    memset(padding, j->x_zero, (size_t)ort_max_i64(w->in[1], 1) * ORT_BYTES_BLOCK);
    ort_bytes_window b = {
        .x = j->x + block * p->in.plane * ORT_BYTES_BLOCK, .height = w->in[0], .width = w->in[1],
        .top = first * w->stride[0] - w->begin[0], .left = -w->begin[1], .padding = padding,
        .kernel = {w->kernel[0], w->kernel[1]}, .stride = {w->stride[0], w->stride[1]},
        .w = j->s->w + own * j->s->panel_words,
        .channels = ort_min_i64(j->s->maps - own * ORT_BYTES_BLOCK, ORT_BYTES_BLOCK)};
    const int64_t near = j->s->floats ? near_rows(p) : rows, top = b.top;
    for (int64_t r = 0; r < rows; r += b.rows) {
        const int64_t pixel = (first + r) * w->out[1];
        b.rows = ort_min_i64(near, rows - r);
        b.top = top + r * w->stride[0];
        if (j->s->floats)
            set_sums(j, thread, &b.out, own * ORT_BYTES_BLOCK, w->out[1]);
        else
            set_out(j, &b.out, block, own * ORT_BYTES_BLOCK, pixel, w->out[1]);
        j->s->k->window(&b);
        b.out.count *= b.rows;
        if (j->s->floats)
            give_floats(j, &b.out, own * ORT_BYTES_BLOCK, ORT_BYTES_BLOCK, block / p->out.blocks,
                        pixel);
    }
    finish(j, block, 1, first, rows);
}

/* Bias and scale of a run. */
static ort_status find_numbers(ort_call *call, bytes_job *j, ort_error *err)
{
    const bytes_state *s = j->s;
    const int64_t lanes = lanes_of(s);
    const ort_tensor *by = ort_call_in(call, SCALE), *zero = ort_call_in(call, X_ZERO);
    const ort_tensor *sums = s->coded ? NULL : ort_call_in(call, ORT_BYTES_SUMS_IN);
    int32_t *bias = call->workspace;
    float *scale = (float *)(void *)(bias + lanes);
    if (!by || (ort_tensor_count(by) != 1 && ort_tensor_count(by) != s->maps) ||
        (zero && ort_tensor_count(zero) != 1) || (sums && ort_tensor_count(sums) != s->maps))
        return ort_error_set(err, ORT_ERROR_MODEL, "its scale, zero point or sums don't fit");
    j->x_zero = ort_bytes_zero(zero, ORT_DTYPE_UINT8);
    for (int64_t i = 0; i < lanes; i++)
        bias[i] = (int32_t)(0 - (uint32_t)s->sums[i] * (uint32_t)j->x_zero);
    memset(scale, 0, (size_t)lanes * sizeof *scale);
    for (int64_t m = 0; m < s->maps; m++)
        scale[lane_of(s, m)] = ((const float *)by->data)[ort_tensor_count(by) == 1 ? 0 : m];
    for (int64_t m = 0; sums && m < s->maps; m++) {
        int32_t *at = &bias[lane_of(s, m)];
        *at = (int32_t)((uint32_t)*at + ((const uint32_t *)sums->data)[m]);
    }
    j->bias = bias;
    j->scale = scale;
    if (s->coded)
        j->y = ort_call_out(call, 0)->data;
    else
        j->floats = ort_call_out(call, 0)->data;
    return ORT_OK;
}

static ort_status bytes_run(ort_call *call, ort_error *err)
{
    const bytes_state *s = call->state;
    const bytes_plan *p = call->plan_state;
    const ort_tensor *x = ort_call_in(call, X);
    bytes_job j = {.call = call, .s = s, .p = p, .x = x->data,
                   .flip = s->plain ? ort_bytes_flip(x->dtype) : 0, .bias = s->bias,
                   .scale = s->scale, .x_zero = s->x_zero};
    if (ort_tensor_count(ort_call_out(call, 0)) == 0)
        return ORT_OK;
    if (s->floats)
        ORT_TRY(find_numbers(call, &j, err));
    else
        j.y = ort_call_out(call, 0)->data;
    if (s->after.any)
        j.after = ort_bytes_after_begin(call, &s->after);
    if (s->winograd)
        ort_bytes_winograd_run(call, s->winograd);
    else if (p->tiling)
        ort_bytes_tiled_run(call, s, p->tiling,
                            &(ort_bytes_values){j.x, j.flip, j.y, j.bias, j.scale, j.x_zero,
                                                s->after.any ? &j.after : NULL});
    else if (s->depthwise)
        ort_call_parallel(call, (size_t)(p->out.n * p->out.blocks * p->cut.row_blocks),
                          p->window ? task_window : task_depthwise, &j);
    else
        ort_call_parallel(call, (size_t)(p->out.n * s->group * p->comb) *
                                    (size_t)ort_blocked_tasks(&p->cut),
                          task_product, &j);
    if (s->winograd && s->after.any)
        ort_bytes_after_run(call, &j.after);
    return ORT_OK;
}

static void bytes_cost(const ort_infer *x, ort_cost *cost)
{
    const bytes_state *s = x->state;
    cost->macs = ort_blocked_conv_macs(x);
    cost->of_bytes = true;
    if (s && s->winograd)
        cost->done_macs = cost->macs * ort_bytes_winograd_share(&x->out[0].type) *
                          (s->k->wide == 1 ? 2 : 1); /* of int16: as long as two of bytes */
}

/* Shapes are those of the input with its channels in front. */
static ort_status bytes_infer(ort_infer *x, ort_error *err)
{
    const ort_fact *in[ORT_BYTES_CONV_INPUTS];
    ort_infer turned = *x;
    ort_fact first;
    if (!ort_node_attr_int(x->node, "last") || !ort_infer_in_ranked(x, X) || x->in_count < 1 ||
        x->in_count > ORT_BYTES_CONV_INPUTS || x->in[X]->type.rank < 3)
        return ort_blocked_conv_infer(x, err);
    memcpy(in, x->in, (size_t)x->in_count * sizeof *in);
    first = *x->in[X];
    first.value = NULL; /* its elements lie otherwise */
    first.type.dim[1] = x->in[X]->type.dim[first.type.rank - 1];
    for (int d = 2; d < first.type.rank; d++)
        first.type.dim[d] = x->in[X]->type.dim[d - 1];
    in[X] = &first;
    turned.in = in;
    return ort_blocked_conv_infer(&turned, err);
}

/* Plain floats, or in the blocked layout of floats. */
static ort_status float_infer(ort_infer *x, ort_error *err)
{
    const int64_t blocks = ort_node_attr_int(x->node, "blocks");
    const ort_type *t = &x->out[0].type;
    ort_dim out[ORT_MAX_RANK];
    ORT_TRY(ort_blocked_conv_infer_plain(x, err));
    if (!blocks || t->rank < 3)
        return ORT_OK;
    if (blocks < 1 || t->rank + 1 > ORT_MAX_RANK || !ort_dim_known(t->dim[1]))
        return ort_infer_fail(x, err, "its maps can't lie in blocks");
    const int rank = t->rank;
    memcpy(out, t->dim, (size_t)rank * sizeof *out);
    out[1] = ort_dim_of(ort_blocked_count(t->dim[1].size, blocks));
    out[rank] = ort_dim_of(blocks);
    ort_infer_set_shape(x, 0, rank + 1, out);
    return ORT_OK;
}

static const ort_op_impl conv_impl = {
    .state = sizeof(bytes_state), .bind = bytes_bind, .infer = bytes_infer,
    .prepare = ort_bytes_conv_prepare, .shape = ort_bytes_conv_shape, .run = bytes_run,
    .cost = bytes_cost,
};

static const ort_op_impl float_impl = {
    .state = sizeof(bytes_state), .bind = float_bind, .infer = float_infer,
    .prepare = ort_bytes_conv_prepare, .shape = ort_bytes_conv_shape, .run = bytes_run,
    .cost = bytes_cost,
};

static const ort_op_impl through_impl = {
    .state = sizeof(bytes_state), .bind = through_bind, .infer = ort_blocked_conv_infer,
    .prepare = ort_bytes_conv_prepare, .shape = ort_bytes_conv_shape, .run = bytes_run,
    .cost = bytes_cost,
};

const ort_op ort_ops_bytes_conv[] = {
    {ORT_INTERNAL, "BytesConv", 1,
     "X:T1,W:T2,B?:i32,x_scale:f32,x_zero_point:T3,w_scale:f32,w_zero_point:T2,y_scale:f32,"
     "y_zero_point:T4,table?:u8,other?:u8,sum_scale?:f32,sum_zero?:u8,other_scale?:f32,"
     "other_zero?:u8,z_scale?:f32,z_zero?:u8,last_table?:u8 -> Y:u8",
     "T1:u8,i8 T2:u8,i8 T3:u8,i8 T4:u8,i8",
     "auto_pad:s=NOTSET block:i! dilations:is group:i=1 kernel_shape:is last:i=0 pads:is "
     "strides:is turned:i=0",
     0, &conv_impl},
    {ORT_INTERNAL, "BytesConvFloat", 1,
     "X:T1,W:T2,B?:f32,scale:f32,x_zero_point?:T3,w_scale?:f32,w_zero_point?:T2,sums?:i32 "
     "-> Y:f32",
     "T1:u8,i8 T2:u8,i8 T3:u8,i8",
     "auto_pad:s=NOTSET block:i! blocks:i=0 dilations:is group:i=1 high:f! kernel_shape:is "
     "low:f! pads:is strides:is", 0, &float_impl, .variant = ORT_BYTES_OF_FLOATS},
    {ORT_INTERNAL, "BytesConvThrough", 1,
     "X:T1,W:T2,B?:f32,scale:f32,x_zero_point?:T3,w_scale?:f32,w_zero_point?:T2,y_scale:f32,"
     "y_zero_point:T4,slope?:f32 -> Y:u8",
     "T1:u8,i8 T2:u8,i8 T3:u8,i8 T4:u8,i8",
     "act:i=-1 act_a:f=0 act_b:f=0 auto_pad:s=NOTSET block:i! dilations:is group:i=1 high:f! "
     "kernel_shape:is low:f! pads:is strides:is", 0, &through_impl,
     .variant = ORT_BYTES_THROUGH_FLOATS},
    {0},
};
