/* blocked_pack.c - filters and biases of convolutions in the blocked layout, in the order in which
 * their kernels read them (kernel/blocked.h).
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/odd_floats.h"
#include "base/stream.h"
#include "kernel/crossed.h"
#include "op/blocked/blocked_op.h"

enum { SUM_TERMS = 1024 }; /* of one call */

bool ort_blocked_finite(const float *w, int64_t count)
{
    enum { SPARE = 4 }; /* transforms make them larger */
    return ort_odd_marks((const char *)w, count, SPARE) >> 31 == 0;
}

typedef struct panels_job { /* w: the first map of the first group; vectors, panels: of a group */
    const ort_blocked_state *s;
    const ort_kernels *k;
    const char *w;
    float *out;
    int64_t vectors, panels, piece;
    float *near;      /* of each thread: `piece` channels of a panel, which are copied out */
    atomic_bool *odd; /* some weight isn't finite */
    float *begin, *squares; /* of crossed sums */
} panels_job;

/* Channels of one panel: [tap][channel][panel width] of `count`. */
static void fill_panel(const panels_job *j, const char *w, int64_t maps, int64_t width,
                       int64_t count, float *near, float *panel)
{
    const ort_blocked_state *s = j->s;
    const int64_t taps = s->kernel[0] * s->kernel[1], step = s->channels * taps, size = 4;
    for (int64_t from = 0, some; from < count; from += some, w += some * taps * size) {
        some = ort_min_i64(j->piece, count - from);
        ort_stream_ahead(w + some * taps * size, maps, step * size, some * taps * size);
        s->k->pack_panel(w, step, maps, width, some, taps, near);
        if (!ort_blocked_finite(near, taps * some * width))
            *j->odd = true;
        for (int64_t t = 0; t < taps; t++)
            ort_stream(panel + (t * count + from) * width, near + t * some * width,
                       (size_t)(some * width * size));
    }
}

/* Floats behind the weights: of each stretch of channels, and of all. */
static int64_t crossed_step(const ort_blocked_state *s)
{
    return (int64_t)ort_round_up((size_t)s->maps, (size_t)s->block) + s->block;
}

static int64_t crossed_floats(const ort_blocked_state *s)
{
    return s->crossed ? (s->channels + s->sum_channels - 1) / s->sum_channels * crossed_step(s) : 0;
}

const float *ort_blocked_crossed_at(const ort_blocked_state *s, int64_t channel, int *middle)
{
    const float *begin = s->w + ort_round_up((size_t)s->group_floats + 1, 16) +
                         channel / s->sum_channels * crossed_step(s);
    *middle = (int)begin[crossed_step(s) - s->block];
    return begin;
}

/* Marks panels that are left to direct sums; a last one of one vector is anyway. */
static void mark_uneven(const ort_blocked_state *s, const float *squares, float *begin)
{
    const int64_t step = crossed_step(s), panel = 2 * s->k->vector;
    const int64_t whole = (step - s->block) / panel * panel, maps = ort_min_i64(whole, s->maps);
    for (int64_t c = 0; c < s->channels; c += s->sum_channels, squares += step, begin += step) {
        ort_crossed_norms norms = {0};
        int middle;
        ort_crossed_add_norms(&norms, squares, maps);
        const bool any = ort_crossed_middle(&norms, &middle);
        for (int64_t m = 0; m < whole; m += panel)
            if (!any || !ort_crossed_even(squares + m, ort_min_i64(panel, maps - m), middle))
                begin[m] = NAN;
        for (int64_t m = whole; m < step; m++)
            begin[m] = (float)middle;
    }
}

/* Maps of a panel of one group in [stretch of channels][panel][tap][channel][panel width]. */
static void task_panel(void *arg, size_t task, int thread)
{
    const panels_job *j = arg;
    const ort_blocked_state *s = j->s;
    const int64_t group = (int64_t)task / j->panels, v = (int64_t)task % j->panels * 2, size = 4;
    const int64_t taps = s->kernel[0] * s->kernel[1], lanes = s->k->vector;
    const int64_t group_maps = s->maps / s->group, first = v * lanes;
    const int64_t width = ort_min_i64(2, j->vectors - v) * lanes;
    const int64_t real = ort_max_i64(0, ort_min_i64(width, group_maps - first));
    const char *w = j->w + (group * group_maps + first) * s->channels * taps * size;
    float *out = j->out + group * s->group_floats;
    for (int64_t from = 0, count; from < s->channels; from += count) {
        count = ort_min_i64(s->sum_channels, s->channels - from);
        float *panel = out + (from * j->vectors * lanes + count * first) * taps;
        float *near = j->near + thread * j->piece * taps * 2 * lanes;
        fill_panel(j, w + from * taps * size, real, width, count, near, panel);
        const int64_t at = from / s->sum_channels * crossed_step(s) + first;
        if (s->crossed && width == 2 * lanes) /* one piece, which is near */
            j->k->gemm.crossed.columns(count, count, near, j->begin + at, j->squares + at);
    }
    ort_stream_end();
}

static ort_status pack_panels(const ort_prep *p, ort_blocked_state *s, const char *w, float *out,
                              ort_error *err)
{
    enum { NEAR = 4096, TURNED = 16 /* channels that kernels turn at once */ };
    const int64_t padded = (int64_t)ort_round_up((size_t)(s->maps / s->group), (size_t)s->block);
    const int64_t vectors = padded / s->k->vector, panels = (vectors + 1) / 2;
    const int64_t line = s->kernel[0] * s->kernel[1] * 2 * s->k->vector; /* floats of a channel */
    const int64_t piece = s->crossed ? s->sum_channels
                                     : ort_max_i64(NEAR / line / TURNED * TURNED, TURNED);
    const int64_t floats = piece * line * ort_prep_threads(p);
    const size_t bytes = (size_t)(floats + crossed_floats(s)) * sizeof *out;
    atomic_bool odd = false;
    panels_job job = {.s = s, .k = p->k, .w = w, .out = out, .vectors = vectors, .panels = panels,
                      .piece = piece, .near = malloc(bytes), .odd = &odd,
                      .begin = out + ort_round_up((size_t)s->group_floats + 1, 16)};
    if (!job.near)
        return ort_error_memory(err, bytes);
    job.squares = job.near + floats;
    ort_prep_fill(p, (size_t)(s->group * s->group_floats) * sizeof *out,
                  (size_t)(s->group * panels), task_panel, &job);
    if (s->crossed)
        mark_uneven(s, job.squares, job.begin);
    free(job.near);
    s->finite = !odd;
    return ORT_OK;
}

/* Channels summed in one call: whole blocks, alike. */
static int64_t sum_channels(const ort_blocked_state *s)
{
    int64_t blocks = (s->channels + s->block - 1) / s->block;
    int64_t terms = s->kernel[0] * s->kernel[1] * s->channels;
    int64_t most = s->crossed ? ORT_CROSSED_PART : SUM_TERMS;
    int64_t calls = ort_min_i64(blocks, (terms + most - 1) / most);
    return (blocks + calls - 1) / calls * s->block;
}

/* [panel][channel][tap]: the order in which plain rows are read. */
static void pack_plain(const ort_blocked_state *s, const char *w, float *out)
{
    int64_t depth = s->channels * s->kernel[0] * s->kernel[1], lanes = s->k->vector;
    int64_t vectors = (s->maps + s->block - 1) / s->block * s->block / lanes;
    for (int64_t v = 0; v < vectors; v += 2) {
        int64_t first = v * lanes, width = ort_min_i64(2, vectors - v) * lanes;
        int64_t real = ort_max_i64(0, ort_min_i64(width, s->maps - first));
        s->k->pack_panel(w + first * depth * (int64_t)sizeof(float), depth, real, width, depth, 1,
                         out);
        out += depth * width;
    }
}

/* [map][tap][channel], zeros up to whole vectors of channels. */
static void pack_few(const ort_blocked_state *s, const char *w, float *out)
{
    int64_t taps = s->kernel[0] * s->kernel[1], lanes = s->k->vector;
    int64_t padded = (s->channels + lanes - 1) / lanes * lanes;
    memset(out, 0, (size_t)(s->maps * taps * padded) * sizeof *out);
    for (int64_t m = 0; m < s->maps; m++)
        for (int64_t c = 0; c < s->channels; c++)
            for (int64_t t = 0; t < taps; t++)
                memcpy(&out[(m * taps + t) * padded + c],
                       w + (size_t)((m * s->channels + c) * taps + t) * sizeof(float),
                       sizeof(float));
}

static void pack_depthwise(const ort_blocked_state *s, const char *w, float *out)
{
    int64_t taps = s->kernel[0] * s->kernel[1], blocks = (s->maps + s->block - 1) / s->block;
    memset(out, 0, (size_t)(blocks * taps * s->block) * sizeof *out);
    for (int64_t m = 0; m < s->maps; m++)
        for (int64_t t = 0; t < taps; t++)
            memcpy(&out[(m / s->block * taps + t) * s->block + m % s->block],
                   w + (size_t)(m * taps + t) * sizeof(float), sizeof(float));
}

/* Whether all are finite nobody asks of other forms than panels. */
static ort_status fill_weights(const ort_prep *p, ort_blocked_state *s, const ort_tensor *w,
                               float *out, ort_error *err)
{
    s->finite = true;
    if (s->depthwise)
        pack_depthwise(s, w->data, out);
    else if (s->few)
        pack_few(s, w->data, out);
    else if (s->plain)
        pack_plain(s, w->data, out);
    else
        return pack_panels(p, s, w->data, out, err);
    return ORT_OK;
}

ort_status ort_blocked_pack(ort_prep *p, ort_blocked_state *s, const ort_tensor *w, ort_error *err)
{
    int64_t taps = s->kernel[0] * s->kernel[1], group_maps = s->maps / s->group;
    int64_t padded = (int64_t)ort_round_up((size_t)group_maps, (size_t)s->block);
    s->group_floats = padded * s->channels * taps;
    s->sum_channels = sum_channels(s);
    if (s->depthwise)
        s->group_floats = taps; /* blocks hold neighbouring groups */
    if (s->few) {
        s->sum_channels = (int64_t)ort_round_up((size_t)s->channels, (size_t)s->block);
        s->group_floats = s->maps * taps * s->sum_channels;
    }
    size_t floats = s->depthwise ? ort_round_up((size_t)s->maps, (size_t)s->block) * (size_t)taps
                                 : (size_t)(s->group * s->group_floats);
    const size_t all = s->crossed ? ort_round_up(floats + 1, 16) + (size_t)crossed_floats(s)
                                  : floats + 1;
    bool fill;
    float *out = ort_prep_pack(p, s->crossed ? "crossed" : "filter", 1u << 1, all * sizeof *out,
                               &fill);
    if (!out)
        return ort_error_memory(err, all * sizeof *out);
    s->w = out;
    s->finite = !fill && out[floats] > 0;
    ort_prep_absorb(p, 1);
    if (!fill)
        return ORT_OK;
    ort_tensor straight = *w;
    if (!s->inner)
        ORT_TRY(ort_nchwc_weights(s, w, &straight, err));
    const ort_status status = fill_weights(p, s, &straight, out, err);
    out[floats] = s->finite;
    if (!s->inner)
        free(straight.data);
    return status;
}

ort_status ort_blocked_pack_bias(ort_prep *p, ort_blocked_state *s, ort_error *err)
{
    const ort_tensor *b = ort_prep_constant(p, 2);
    size_t padded = ort_round_up((size_t)s->maps, (size_t)s->block) * sizeof(float);
    if (ort_prep_dtype(p, 2) == ORT_DTYPE_UNDEFINED)
        return ORT_OK;
    if (!b || ort_tensor_count(b) != s->maps)
        return ort_prep_fail(p, err, "the bias isn't a constant of %lld elements",
                             (long long)s->maps);
    bool fill;
    float *bias = ort_prep_pack(p, "bias", 1u << 2, padded, &fill);
    if (!bias)
        return ort_error_memory(err, padded);
    if (fill) {
        memset(bias, 0, padded);
        memcpy(bias, b->data, (size_t)s->maps * sizeof *bias);
        for (int64_t i = 0; i < s->maps; i++)
            bias[i] += 0.0f; /* of zeros positive ones, as kernels have for no bias */
    }
    ort_prep_absorb(p, 2);
    s->bias = bias;
    return ORT_OK;
}
