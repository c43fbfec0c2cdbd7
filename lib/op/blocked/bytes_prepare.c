/* bytes_prepare.c - what a convolution in the layout of bytes makes of its constants before runs:
 * the filters in the order in which products read them, and bias and scale of whole blocks, in
 * which all zero points and scales of the file are folded (bytes_conv.c says how).
 */
#include <math.h>
#include <string.h>

#include "op/blocked/bytes_conv.h"
#include "op/shared/integer.h"
#include "tensor/scalar.h"

/* A number of each map, or one of all, in whole blocks; absent: 0. */
static ort_status fill_lanes(ort_prep *p, const bytes_state *s, int input, const float **lanes,
                             ort_error *err)
{
    const ort_tensor *from = ort_prep_constant(p, input);
    float *to = ort_arena_array(p->arena, (size_t)lanes_of(s), sizeof *to);
    if (!to)
        return ort_error_memory(err, (size_t)lanes_of(s) * sizeof *to);
    memset(to, 0, (size_t)lanes_of(s) * sizeof *to);
    for (int64_t m = 0; m < s->maps && from; m++)
        to[lane_of(s, m)] = ((const float *)from->data)[ort_tensor_count(from) == 1 ? 0 : m];
    *lanes = to;
    return ORT_OK;
}

/* What follows the sums as floats. */
static ort_status fill_floats(ort_prep *p, bytes_state *s, ort_error *err)
{
    ORT_TRY(fill_lanes(p, s, B, &s->shift, err));
    if (!s->coded)
        return ORT_OK;
    ort_tensor_one_f32(ort_prep_constant(p, Y_SCALE), &s->y_scale);
    return ort_prep_dtype(p, ORT_BYTES_SLOPE_IN) == ORT_DTYPE_UNDEFINED
               ? ORT_OK : fill_lanes(p, s, ORT_BYTES_SLOPE_IN, &s->slope, err);
}

/* Whether int32 holds every sum of a filter times its scale, with room for roundings. Sums that
 * wrap around, as those of dead channels, whose bias may be the largest, are int32 again. */
static bool is_bounded(const bytes_state *s, int32_t bias, float scale)
{
    const double most = 255.0 * 255.0 * (double)(s->channels * taps_of(s));
    const double sum = fmin(most + fabs((double)bias), -(double)INT32_MIN);
    return sum * fabs((double)scale) < INT32_MAX / 2; /* not when it is NaN */
}

/* `reach`: of the sums of each lane's filter. */
static ort_status fill_winograd(ort_prep *p, const bytes_state *s, const int32_t *reach,
                                ort_error *err)
{
    bool *whole = ort_arena_array(p->arena, (size_t)s->group_blocks, sizeof *whole);
    if (!whole)
        return ort_error_memory(err, (size_t)s->group_blocks);
    for (int64_t b = 0; b < s->group_blocks; b++)
        whole[b] = s->bounded;
    for (int64_t i = 0; i < lanes_of(s); i++)
        if (fabs((double)reach[i]) + fabs((double)s->bias[i]) > ORT_BYTES_WHOLE)
            whole[i / ORT_BYTES_BLOCK] = false;
    s->winograd->w = s->w;
    s->winograd->bias = s->bias;
    s->winograd->scale = s->scale;
    s->winograd->bounded = s->bounded;
    s->winograd->whole = whole;
    return ORT_OK;
}

/* Bias and scale of whole blocks: the input's zero point in the one, all three scales in the
 * other. */
static ort_status fill_numbers(ort_prep *p, bytes_state *s, const int32_t *sums, ort_error *err)
{
    const size_t count = (size_t)lanes_of(s);
    const ort_tensor *w_scale = ort_prep_constant(p, W_SCALE), *b = ort_prep_constant(p, B);
    int32_t *bias = ort_arena_array(p->arena, count, sizeof *bias);
    float *scale = ort_arena_array(p->arena, count, sizeof *scale), x_scale = 0, y_scale = 1;
    if (!bias || !scale)
        return ort_error_memory(err, count * sizeof *bias);
    memset(bias, 0, count * sizeof *bias);
    memset(scale, 0, count * sizeof *scale);
    ort_tensor_one_f32(ort_prep_constant(p, X_SCALE), &x_scale);
    ort_tensor_one_f32(ort_prep_constant(p, Y_SCALE), &y_scale);
    s->bounded = true;
    for (int64_t m = 0; m < s->maps; m++) {
        int64_t at = lane_of(s, m);
        /* Winograd's tiles sum codes less 128 */
        uint32_t from_zero = (uint32_t)sums[at] * (uint32_t)(s->x_zero - (s->winograd ? 128 : 0));
        bias[at] = (int32_t)((b ? ((const uint32_t *)b->data)[m] : 0) - from_zero);
        scale[at] = x_scale * ((const float *)w_scale->data)[ort_tensor_count(w_scale) == 1
                                                                 ? 0 : m] / y_scale;
        s->bounded = s->bounded && is_bounded(s, bias[at], scale[at]);
    }
    s->bias = bias;
    s->scale = scale;
    return s->winograd ? fill_winograd(p, s, sums + count, err) : ORT_OK;
}

/* Must an input be a constant? */
static bool must_be_known(const ort_prep *p, int input)
{
    return p->op->variant == ORT_BYTES_OF_CODES ||
           (input == W_ZERO && ort_prep_dtype(p, W_ZERO) != ORT_DTYPE_UNDEFINED) ||
           (input >= Y_SCALE && p->op->variant == ORT_BYTES_THROUGH_FLOATS);
}

static ort_status check_constants(ort_prep *p, ort_error *err)
{
    const ort_tensor *w = ort_prep_constant(p, W), *b = ort_prep_constant(p, B);
    if (!w || w->shape.rank < 3 || w->shape.rank > 4 || ort_tensor_count(w) == 0)
        return ort_prep_fail(p, err, "the weight isn't a constant of one or two spatial axes, with "
                                     "elements");
    for (int i = X_SCALE; i <= Y_ZERO; i++) {
        const ort_tensor *t = ort_prep_constant(p, i);
        if (!must_be_known(p, i))
            continue;
        if (!t || (ort_tensor_count(t) != 1 && ((i != W_SCALE && i != W_ZERO) ||
                                                ort_tensor_count(t) != w->shape.dim[0])))
            return ort_prep_fail(p, err, "input %d isn't a constant that fits", i);
    }
    if (ort_prep_dtype(p, B) != ORT_DTYPE_UNDEFINED &&
        (!b || ort_tensor_count(b) != w->shape.dim[0]))
        return ort_prep_fail(p, err, "the bias isn't a constant that fits");
    const ort_tensor *slope = p->op->variant == ORT_BYTES_THROUGH_FLOATS
                                  ? ort_prep_constant(p, ORT_BYTES_SLOPE_IN) : NULL;
    if (slope && ort_tensor_count(slope) != 1 && ort_tensor_count(slope) != w->shape.dim[0])
        return ort_prep_fail(p, err, "the slope isn't a constant that fits");
    return ORT_OK;
}

static bool is_line(const bytes_state *s)
{
    const bool together = s->channels == 3 && s->wide > 1 && s->k->gather3_wide;
    return s->plain && (s->channels == 1 || s->last || together) &&
           (s->spec.rank == 0 || s->spec.dilation[s->spec.rank - 1] == 1);
}

/* Whether no filter's sum of codes less 128 reaches 2^25, which Winograd's tiles need. It is known
 * without weights where filters are small, else kept beside what is packed of them. */
static ort_status has_reach(ort_prep *p, const bytes_state *s, const ort_tensor *w, bool *has,
                            ort_error *err)
{
    const int64_t most = ((int64_t)1 << 25) / 128, count = s->channels * 9;
    bool fill;
    *has = count * 128 < most;
    if (*has)
        return ORT_OK;
    int32_t *packed = ort_prep_pack(p, "reach", 1u << W | 1u << W_ZERO, sizeof *packed, &fill);
    if (!packed)
        return ort_error_memory(err, sizeof *packed);
    if (fill)
        *packed = ort_bytes_largest_filter(p, s, w) < most;
    *has = *packed != 0;
    return ORT_OK;
}

/* Sets s->winograd where it pays. */
static ort_status choose_winograd(ort_prep *p, bytes_state *s, ort_error *err)
{
    ort_bytes_winograd of = {.channels = s->channels, .maps = s->maps, .x_zero = s->x_zero,
                             .y_zero = s->y_zero};
    if (s->floats || s->rested || s->summed || s->plain || s->group > 1 || s->kernel[0] != 3 ||
        s->kernel[1] != 3 || !ort_bytes_winograd_pays(p, &of, &s->spec))
        return ORT_OK;
    bool has;
    ORT_TRY(has_reach(p, s, ort_prep_constant(p, W), &has, err));
    if (!has)
        return ORT_OK;
    s->winograd = ort_arena_alloc(p->arena, sizeof of);
    if (!s->winograd)
        return ort_error_memory(err, sizeof of);
    *s->winograd = of;
    return ORT_OK;
}

/* int32 of the packed filters. */
static int64_t filter_words(const ort_prep *p, const bytes_state *s)
{
    const int64_t groups = s->depthwise ? 1 : s->group;
    if (s->winograd)
        return ort_bytes_winograd_words(s->winograd);
    return groups * s->group_blocks * s->panel_words * (s->depthwise ? 1 : ORT_BYTES_BLOCK);
}

/* Of a block where it is depthwise: twice as many where there are rests. */
static int64_t words_of_panel(const bytes_state *s)
{
    if (s->depthwise)
        return s->k->depthwise_words(s->kernel) * (s->rested ? 2 : 1);
    if (s->line)
        return s->kernel[0] * line_words(s);
    const int64_t channels = taps_of(s) * (whole_channels(s) + part_channels(s));
    return (channels + rest_channels(s)) * s->wide / 4;
}

ort_status ort_bytes_conv_prepare(ort_prep *p, ort_error *err)
{
    bytes_state *s = p->state;
    ORT_TRY(check_constants(p, err));
    const ort_tensor *w = ort_prep_constant(p, W);
    s->k = &p->k->bytes;
    s->floats = p->op->variant != ORT_BYTES_OF_CODES;
    s->coded = p->op->variant == ORT_BYTES_THROUGH_FLOATS;
    s->maps = w->shape.dim[0];
    s->channels = w->shape.dim[1];
    s->kernel[0] = w->shape.rank == 4 ? w->shape.dim[2] : 1;
    s->kernel[1] = w->shape.dim[w->shape.rank - 1];
    if (s->group < 1 || s->maps % s->group)
        return ort_prep_fail(p, err, "group %lld doesn't fit", (long long)s->group);
    s->plain = p->in[0]->type.rank == w->shape.rank;
    s->depthwise = s->group > 1 && s->channels == 1 && s->maps == s->group;
    if (s->plain && (s->group > 1 || s->channels > PLAIN_CHANNELS))
        return ort_prep_fail(p, err, "the input has too many channels that aren't in blocks");
    if (s->group > 1 && s->channels == 1 && !s->depthwise)
        return ort_prep_fail(p, err, "groups of one channel have more than one filter");
    s->x_zero = ort_bytes_zero(ort_prep_constant(p, X_ZERO), ORT_DTYPE_UINT8);
    s->y_zero = ort_bytes_zero(ort_prep_constant(p, Y_ZERO), ORT_DTYPE_UINT8);
    s->group_blocks = blocks_of(s->depthwise ? s->maps : s->maps / s->group);
    s->wide = s->k->fours && !s->plain && !s->depthwise ? 1 : s->k->wide;
    ORT_TRY(ort_bytes_find_rests(p, s, w, err));
    s->line = !s->rested && is_line(s);
    if (s->last && (!s->line || s->wide < 2))
        return ort_prep_fail(p, err, "its input's channels can't be last");
    s->panel_words = words_of_panel(s);
    ORT_TRY(choose_winograd(p, s, err));
    size_t lanes = (size_t)lanes_of(s);
    size_t words = (size_t)filter_words(p, s);
    const bool fours = s->wide < s->k->wide && !s->winograd;
    const size_t reach = s->winograd ? lanes : 0;
    const size_t limits = fours ? (size_t)(s->group * panels_of(s) * limit_words(s)) : 0;
    const size_t empty = s->rested ? limits / sizeof(int32_t) : 0; /* limits: for whole words */
    bool fill;
    const size_t bytes = (words + lanes + reach + limits + empty) * sizeof(int32_t);
    int32_t *packed = ort_prep_pack(p, s->winograd ? "tiles" : "filter", 1u << W | 1u << W_ZERO,
                                    bytes, &fill);
    if (!packed)
        return ort_error_memory(err, bytes);
    s->w = packed;
    ort_prep_absorb(p, W);
    if (fill)
        ORT_TRY(ort_bytes_pack_filters(p, s, w, packed, packed + words, err));
    s->sums = packed + words;
    if (fours) {
        uint8_t *bounds = (uint8_t *)(packed + words + lanes); /* no Winograd, no reach */
        uint8_t *zeros = empty ? bounds + limits * sizeof *packed : NULL;
        if (fill)
            ort_bytes_limit_filters(s, packed, bounds, zeros);
        s->limits = bounds;
        s->roomy = !zeros && ort_bytes_all_fit(s, bounds);
        s->empty = zeros;
    }
    if (!s->floats)
        ORT_TRY(ort_bytes_after_prepare(p, s->turned != 0, &s->after, err));
    return s->floats ? fill_floats(p, s, err) : fill_numbers(p, s, packed + words, err);
}
