/* bytes_pack.c - weights of quantized convolutions in panels, without their zero points: in words
 * of products, filters of a panel side by side; and what of them no int8 holds (bytes_conv.c).
 */
#include <string.h>

#include "base/checked.h"
#include "base/shuffle.h"
#include "op/blocked/bytes_conv.h"
#include "op/shared/integer.h"

enum { PACK_WORDS = 16 }; /* of each filter, put side by side at a time */

/* Weights as numbers: (code ^ flip) - offset, since int8 is a byte with its first bit turned. */
typedef struct {
    uint8_t flip;
    int offset;
} weight_codes;

static weight_codes codes_of(const ort_tensor *w, int zero)
{
    const uint8_t flip = w->dtype == ORT_DTYPE_INT8 ? 128 : 0;
    return (weight_codes){flip, zero + flip};
}

#pragma GCC push_options
#pragma GCC optimize("O3") /* vectors of bytes */

/* Whether int8 holds all. The loops here are of bytes and 16 bits, which vectors hold most of. */
static bool within_bytes(const uint8_t *codes, int64_t count, weight_codes of)
{
    uint8_t low = UINT8_MAX, high = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t code = codes[i] ^ of.flip;
        low = code < low ? code : low;
        high = code > high ? code : high;
    }
    return low - of.offset >= INT8_MIN && high - of.offset <= INT8_MAX;
}

/* What int8 holds of each, and what is left of it. */
static void split_codes(const uint8_t *codes, int64_t count, weight_codes of, int8_t *most,
                        int8_t *rest)
{
    const int16_t offset = (int16_t)of.offset;
    for (int64_t i = 0; i < count; i++) {
        const int16_t v = (int16_t)((uint8_t)(codes[i] ^ of.flip) - offset);
        const int16_t low = v < INT8_MIN ? INT8_MIN : v, held = low > INT8_MAX ? INT8_MAX : low;
        most[i] = (int8_t)held;
        rest[i] = (int8_t)(v - held);
    }
}

static int32_t sum_of_bytes(const int8_t *v, int64_t count)
{
    enum { AT_ONCE = 256 }; /* bytes that fit into a sum of 16 bits */
    int32_t total = 0;
    for (int64_t first = 0; first < count; first += AT_ONCE) {
        const int64_t n = ort_min_i64(AT_ONCE, count - first);
        uint16_t part = 0;
        for (int64_t i = 0; i < n; i++)
            part = (uint16_t)(part + (uint8_t)((uint8_t)v[first + i] ^ 128));
        total += part - 128 * (int32_t)n;
    }
    return total;
}

/* Of the numbers that all fit in int8 when their zero point is taken off. */
static int32_t sum_of_sizes(const uint8_t *codes, int64_t count, int zero)
{
    enum { AT_ONCE = 256 };
    int32_t total = 0;
    for (int64_t first = 0; first < count; first += AT_ONCE) {
        const int64_t n = ort_min_i64(AT_ONCE, count - first);
        uint16_t part = 0;
        for (int64_t i = 0; i < n; i++) {
            const int8_t v = (int8_t)(uint8_t)(codes[first + i] - zero);
            part = (uint16_t)(part + (uint8_t)(v < 0 ? -v : v));
        }
        total += part;
    }
    return total;
}

static void minus_zero(const uint8_t *codes, int64_t count, int zero, int8_t *to)
{
    for (int64_t i = 0; i < count; i++) /* which wraps around to the number */
        to[i] = (int8_t)(uint8_t)(codes[i] - zero);
}

#pragma GCC pop_options

/* A filter without its zero point, where it lies or in `space`, and the sum of its weights. All fit
 * in int8 unless `rest` takes what doesn't. */
static const int8_t *take_filter(const ort_tensor *w, int64_t map, int zero, int64_t count,
                                 int8_t *space, int8_t *rest, int32_t *sum)
{
    const uint8_t *codes = (const uint8_t *)w->data + map * count;
    const weight_codes of = codes_of(w, zero);
    if (rest && !within_bytes(codes, count, of)) {
        split_codes(codes, count, of, space, rest);
        *sum = sum_of_bytes(space, count) + sum_of_bytes(rest, count);
        return space;
    }
    if (rest)
        memset(rest, 0, (size_t)count);
    const int8_t *filter = (const int8_t *)codes;
    if (w->dtype != ORT_DTYPE_INT8 || zero != 0) {
        minus_zero(codes, count, zero, space);
        filter = space;
    }
    *sum = sum_of_bytes(filter, count);
    return filter;
}

/* The word of one tap that begins with a channel, of which `channels` are there. */
static int32_t word_of(const bytes_state *s, const int8_t *filter, int64_t channels)
{
    int32_t v[4];
    for (int64_t i = 0; i < 4; i++)
        v[i] = i < channels ? filter[i * taps_of(s)] : 0;
    return s->wide == 1
               ? (int32_t)((uint32_t)(uint8_t)v[0] | (uint32_t)(uint8_t)v[1] << 8 |
                           (uint32_t)(uint8_t)v[2] << 16 | (uint32_t)(uint8_t)v[3] << 24)
               : (int32_t)((uint32_t)(uint16_t)v[0] | (uint32_t)(uint16_t)v[1] << 16);
}

typedef int8_t bytes16 __attribute__((vector_size(16)));
typedef int16_t halves8 __attribute__((vector_size(16)));
typedef int32_t words4 __attribute__((vector_size(16)));
typedef int64_t longs2 __attribute__((vector_size(16)));

static bytes16 eight_bytes(const int8_t *from)
{
    int64_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    return (bytes16)(longs2){bytes, 0};
}

/* Bytes of two rows by turns: eight of each. */
static bytes16 two_rows(const int8_t *a, const int8_t *b)
{
    const bytes16 v = eight_bytes(a), u = eight_bytes(b);
    return ORT_SHUFFLE(v, u, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

/* Words of four bytes of eight taps. */
static void eight_words(const int8_t *filter, int64_t taps, int64_t step, int32_t *to)
{
    const halves8 a = (halves8)two_rows(filter, filter + taps);
    const halves8 b = (halves8)two_rows(filter + 2 * taps, filter + 3 * taps);
    const halves8 words[2] = {ORT_SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11),
                              ORT_SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15)};
    int32_t each[8];
    memcpy(each, words, sizeof each);
    for (int t = 0; t < 8; t++)
        to[t * step] = each[t];
}

/* The word of each tap, `step` apart. */
static void fill_words(const bytes_state *s, const int8_t *filter, int64_t channels, int64_t step,
                       int32_t *to)
{
    const int64_t taps = taps_of(s);
    const bool fours = channels >= 4 && s->wide == 1;
    const uint8_t *f = (const uint8_t *)filter;
    int64_t t = 0;
    for (; fours && t + 8 <= taps; t += 8)
        eight_words(filter + t, taps, step, to + t * step);
    for (; fours && t < taps; t++)
        to[t * step] = (int32_t)((uint32_t)f[t] | (uint32_t)f[taps + t] << 8 |
                                 (uint32_t)f[2 * taps + t] << 16 | (uint32_t)f[3 * taps + t] << 24);
    for (; t < taps; t++)
        to[t * step] = word_of(s, filter + t, channels);
}

/* Words of `padded` channels tap by tap, of which the first `channels` are there. */
static void fill_channels(const bytes_state *s, const int8_t *filter, int64_t channels,
                          int64_t padded, int32_t *words)
{
    const int64_t taps = taps_of(s), word = 4 / s->wide, step = padded / word;
    if (taps == 1 && s->wide == 1 && channels == padded) {
        memcpy(words, filter, (size_t)channels);
        return;
    }
    for (int64_t c = 0; c < padded; c += word)
        fill_words(s, filter + c * taps, ort_min_i64(word, channels - c), step, words++);
}

/* Words of `count` channels from channel `first` on, at one tap; the end of them. */
static int32_t *fill_tap(const bytes_state *s, const int8_t *filter, int64_t tap, int64_t first,
                         int64_t count, int32_t *words)
{
    const int64_t word = 4 / s->wide;
    for (int64_t c = first; c < first + count; c += word)
        *words++ = word_of(s, filter + c * taps_of(s) + tap, ort_min_i64(word, s->channels - c));
    return words;
}

/* Those of a line: taps of a row side by side, channel by channel. */
static void fill_line(const bytes_state *s, const int8_t *filter, int32_t *to)
{
    const int64_t word = 4 / s->wide, width = s->kernel[1] * s->channels;
    for (int64_t row = 0; row < s->kernel[0]; row++, filter += s->kernel[1])
        for (int64_t t = 0; t < width; t += word) {
            uint32_t bits = 0;
            for (int64_t i = 0; i < word && t + i < width; i++) {
                const int64_t channel = (t + i) % s->channels, tap = (t + i) / s->channels;
                bits |= ((uint32_t)filter[channel * taps_of(s) + tap] &
                         (s->wide == 1 ? 0xff : 0xffff)) << (8 * s->wide * i);
            }
            *to++ = (int32_t)bits;
        }
}

/* A filter's words in the order of the runs (plan_runs): channels of whole blocks by tap, then the
 * others by tap; behind each the rests, which are NULL where no filter has any. */
static void order_filter(const bytes_state *s, const int8_t *filter, const int8_t *rest,
                         int32_t *words)
{
    const int64_t taps = taps_of(s), word = 4 / s->wide;
    const int64_t whole = whole_channels(s), part = part_channels(s);
    const int64_t blocks = whole / ORT_BYTES_BLOCK, stretch = rest_stretch(s);
    if (s->line) {
        fill_line(s, filter, words);
        return;
    }
    if (taps == 1 && s->wide == 1 && !rest) {
        words[s->panel_words - 1] = 0; /* its last channels may be missing */
        memcpy(words, filter, (size_t)s->channels);
        return;
    }
    fill_channels(s, filter, whole, whole, words);
    words += taps * whole / word;
    for (int64_t i = 0; i < s->rests.count[0]; i++)
        words = fill_tap(s, rest, s->rests.run[0][i] / blocks,
                         s->rests.run[0][i] % blocks * ORT_BYTES_BLOCK, ORT_BYTES_BLOCK, words);
    fill_channels(s, filter + whole * taps, s->channels - whole, part, words);
    words += taps * part / word;
    for (int64_t i = 0; i < s->rests.count[1]; i++)
        for (int64_t t = 0; t < stretch; t++)
            words = fill_tap(s, rest, s->rests.run[1][i] * stretch + t, whole, part, words);
}

static words4 four_words(const int32_t *from, bool there)
{
    words4 v = {0};
    if (there)
        memcpy(&v, from, sizeof v);
    return v;
}

/* Four words of each of four filters, of which `maps` are there, side by side; `count` apart. */
static void turn_words(const int32_t *filters, int64_t count, int64_t maps, int64_t width,
                       int32_t *out)
{
    const words4 v[4] = {four_words(filters, maps > 0), four_words(filters + count, maps > 1),
                         four_words(filters + 2 * count, maps > 2),
                         four_words(filters + 3 * count, maps > 3)};
    const words4 a = ORT_SHUFFLE(v[0], v[1], 0, 4, 1, 5), b = ORT_SHUFFLE(v[2], v[3], 0, 4, 1, 5);
    const words4 c = ORT_SHUFFLE(v[0], v[1], 2, 6, 3, 7), d = ORT_SHUFFLE(v[2], v[3], 2, 6, 3, 7);
    const words4 turned[4] = {ORT_SHUFFLE(a, b, 0, 1, 4, 5), ORT_SHUFFLE(a, b, 2, 3, 6, 7),
                              ORT_SHUFFLE(c, d, 0, 1, 4, 5), ORT_SHUFFLE(c, d, 2, 3, 6, 7)};
    for (int64_t k = 0; k < 4; k++)
        memcpy(out + k * width, &turned[k], sizeof turned[k]);
}

/* Ordered filters of up to two vectors of maps to a panel. */
static void fill_panel(const bytes_state *s, const int32_t *filters, int64_t maps, int64_t width,
                       int32_t *out)
{
    const int64_t count = s->panel_words;
    int64_t words;
    for (int64_t first = 0; first < count; first += words, out += words * width) {
        words = ort_min_i64(PACK_WORDS, count - first);
        for (int64_t i = 0; i < width; i += 4) { /* a vector is of 8 or 16 */
            const int32_t *from = filters + i * count + first;
            int64_t k = 0;
            for (; k + 4 <= words; k += 4)
                turn_words(from + k, count, maps - i, width, out + k * width + i);
            for (; k < words; k++)
                for (int64_t j = 0; j < 4; j++)
                    out[k * width + i + j] = i + j < maps ? from[j * count + k] : 0;
        }
    }
}

/* Words of two int16 take the rests in: what is `rest` in the same order is added. */
static void add_rest(const int32_t *rest, int64_t count, int32_t *words)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t low = (uint32_t)words[i] + (uint32_t)rest[i];
        uint32_t high = ((uint32_t)words[i] >> 16) + ((uint32_t)rest[i] >> 16);
        words[i] = (int32_t)((low & 0xffff) | high << 16);
    }
}

/* Filters of group g: words, and sums of whole blocks. */
static void pack_group(const bytes_state *s, const ort_tensor *w, const ort_zeros *zeros, int64_t g,
                       int8_t *space, int32_t *out, int32_t *sums)
{
    const int64_t group_maps = s->maps / s->group, count = s->channels * taps_of(s);
    const int64_t lanes = s->k->vector, padded = vectors_of(s) * lanes;
    int8_t *rest = s->rested || s->summed ? space + ort_round_up((size_t)count, 64) : NULL;
    int32_t *filters = (int32_t *)(void *)(space + 2 * ort_round_up((size_t)count, 64));
    memset(sums, 0, (size_t)(s->group_blocks * ORT_BYTES_BLOCK) * sizeof *sums);
    for (int64_t first = 0; first < padded; first += 2 * lanes) {
        int64_t width = ort_min_i64(2 * lanes, padded - first);
        int64_t maps = ort_max_i64(0, ort_min_i64(width, group_maps - first));
        for (int64_t i = 0; i < maps; i++) {
            int64_t map = g * group_maps + first + i;
            const int8_t *filter = take_filter(w, map, ort_zero_at(zeros, map), count, space, rest,
                                               sums + first + i);
            order_filter(s, filter, s->rested ? rest : NULL, filters + i * s->panel_words);
            if (s->summed) {
                order_filter(s, rest, NULL, filters + FILTERS_MOST * s->panel_words);
                add_rest(filters + FILTERS_MOST * s->panel_words, s->panel_words,
                         filters + i * s->panel_words);
            }
        }
        fill_panel(s, filters, maps, width, out);
        out += s->panel_words * width;
    }
}

static void pack_depthwise(const bytes_state *s, const ort_tensor *w, const ort_zeros *zeros,
                           int8_t *space, int32_t *out, int32_t *sums)
{
    const int64_t taps = taps_of(s);
    int8_t *filters = space + taps, *rests = filters + taps * ORT_BYTES_BLOCK;
    int32_t *again = (int32_t *)(void *)(space + 2 * ort_round_up((size_t)taps, 64) * FILTERS_MOST);
    for (int64_t b = 0; b < s->group_blocks; b++, out += s->panel_words, sums += ORT_BYTES_BLOCK) {
        memset(filters, 0, (size_t)(2 * taps * ORT_BYTES_BLOCK));
        memset(sums, 0, ORT_BYTES_BLOCK * sizeof *sums);
        for (int64_t i = 0; i < ORT_BYTES_BLOCK && b * ORT_BYTES_BLOCK + i < s->maps; i++) {
            int64_t map = b * ORT_BYTES_BLOCK + i;
            memcpy(filters + i * taps,
                   take_filter(w, map, ort_zero_at(zeros, map), taps, space,
                               s->rested || s->summed ? rests + i * taps : NULL, sums + i),
                   (size_t)taps);
        }
        s->k->pack_depthwise(filters, s->kernel, out);
        if (s->rested)
            s->k->pack_depthwise(rests, s->kernel, out + s->panel_words / 2);
        if (s->summed) {
            s->k->pack_depthwise(rests, s->kernel, again);
            add_rest(again, s->panel_words, out);
        }
    }
}

/* Runs that may have rests: of whole blocks, then stretches of the others. Depthwise, blocks. */
static int64_t rested_count(const bytes_state *s)
{
    return s->depthwise ? s->group_blocks
                        : taps_of(s) * (whole_channels(s) / ORT_BYTES_BLOCK) +
                              (part_channels(s) ? taps_of(s) / rest_stretch(s) : 0);
}

/* Where a weight, [map][channel][tap], has its mark. */
static int64_t rested_place(const bytes_state *s, int64_t map, int64_t channel, int64_t tap)
{
    const int64_t blocks = whole_channels(s) / ORT_BYTES_BLOCK, block = channel / ORT_BYTES_BLOCK;
    return s->depthwise ? map / ORT_BYTES_BLOCK
           : block < blocks ? tap * blocks + block
                            : taps_of(s) * blocks + tap / rest_stretch(s);
}

/* How many weights have rests where they have. */
static void mark_rests(const bytes_state *s, const ort_tensor *w, const ort_zeros *zeros,
                       int32_t *marks)
{
    enum { AT_ONCE = 64 };
    const int64_t taps = taps_of(s), count = s->channels * taps;
    memset(marks, 0, (size_t)rested_count(s) * sizeof *marks);
    for (int64_t m = 0; m < s->maps; m++) {
        const uint8_t *filter = (const uint8_t *)w->data + m * count;
        const weight_codes of = codes_of(w, ort_zero_at(zeros, m));
        for (int64_t first = 0; first < count; first += AT_ONCE) {
            const int64_t end = ort_min_i64(first + AT_ONCE, count);
            if (within_bytes(filter + first, end - first, of))
                continue;
            for (int64_t i = first; i < end; i++)
                if (!within_bytes(filter + i, 1, of))
                    marks[rested_place(s, m, i / taps, i % taps)]++;
        }
    }
}

/* Are so many weights with rests so few that `fours` multiplies at most a quarter of its words
 * again? It leaves out words without any. */
static bool are_few(const bytes_state *s, const int32_t *marks)
{
    const int64_t words = taps_of(s) * ((s->channels + 3) / 4) * panels_of(s) * s->group;
    int64_t weights = 0;
    for (int64_t i = 0; i < rested_count(s); i++)
        weights += marks[i];
    return weights * 4 <= words;
}

/* s->rested, NULL when nothing is marked, and the runs of it as lists. Tiers that multiply int16
 * need none: they hold any weight. */
static ort_status list_rests(ort_prep *p, bytes_state *s, const int32_t *marks, ort_error *err)
{
    const int64_t all = rested_count(s);
    const int64_t whole = s->depthwise ? 0 : taps_of(s) * (whole_channels(s) / ORT_BYTES_BLOCK);
    int64_t *runs = ort_arena_array(p->arena, (size_t)all + 1, sizeof *runs);
    if (!runs)
        return ort_error_memory(err, (size_t)all * sizeof *runs);
    for (int part = 0; part < 2; part++) {
        s->rests.run[part] = runs;
        for (int64_t i = part ? whole : 0; i < (part ? all : whole); i++)
            if (marks[i])
                *runs++ = part ? i - whole : i;
        s->rests.count[part] = runs - s->rests.run[part];
    }
    s->rested = s->rests.count[0] + s->rests.count[1] ? marks : NULL;
    if (!s->depthwise && !are_few(s, marks))
        s->wide = s->k->wide;
    s->summed = s->rested && s->wide > 1;
    if (s->summed) {
        s->rested = NULL;
        s->rests = (bytes_rests){0};
    }
    return ORT_OK;
}

/* What has rests: nothing where the weights are int8 already. */
ort_status ort_bytes_find_rests(ort_prep *p, bytes_state *s, const ort_tensor *w, ort_error *err)
{
    const ort_zeros zeros = ort_zeros_of(ort_prep_constant(p, W_ZERO));
    bool fill, plain = w->dtype == ORT_DTYPE_INT8;
    for (int64_t m = 0; m < zeros.count; m++)
        plain = plain && ort_zero_at(&zeros, m) == 0;
    if (plain)
        return ORT_OK;
    const size_t bytes = (size_t)rested_count(s) * sizeof(int32_t);
    int32_t *marks = ort_prep_pack(p, "rests", 1u << W | 1u << W_ZERO, bytes, &fill);
    if (!marks)
        return ort_error_memory(err, bytes);
    if (fill)
        mark_rests(s, w, &zeros, marks);
    return list_rests(p, s, marks, err);
}

int64_t ort_bytes_largest_filter(const ort_prep *p, const bytes_state *s, const ort_tensor *w)
{
    const ort_zeros zeros = ort_zeros_of(ort_prep_constant(p, W_ZERO));
    const int64_t count = s->channels * taps_of(s);
    int64_t most = 0;
    for (int64_t m = 0; m < s->maps; m++)
        most = ort_max_i64(most, sum_of_sizes((const uint8_t *)w->data + m * count, count,
                                              ort_zero_at(&zeros, m)));
    return most;
}

/* Filters for Winograd's tiles; of whole blocks their sums, and behind these what they reach: what
 * a filter's sum of codes less 128 may be, of less than 2^18 weights (has_reach). Filters that are
 * no whole block of whole blocks of channels stand in `space` between zeros. */
static void pack_winograd(const bytes_state *s, const ort_tensor *w, const ort_zeros *zeros,
                          int8_t *space, int32_t *out, int32_t *sums)
{
    const int64_t count = s->channels * taps_of(s);
    const int64_t row = (s->channels + ORT_BYTES_BLOCK - 1) / ORT_BYTES_BLOCK * ORT_BYTES_BLOCK *
                        taps_of(s);
    int32_t *reach = sums + s->group_blocks * ORT_BYTES_BLOCK;
    memset(sums, 0, (size_t)(2 * s->group_blocks * ORT_BYTES_BLOCK) * sizeof *sums);
    if (row != count || s->maps % ORT_BYTES_BLOCK)
        memset(space, 0, (size_t)(row * (ORT_BYTES_BLOCK + 1)));
    for (int64_t b = 0; b < s->group_blocks; b++) {
        const int8_t *filters[ORT_BYTES_BLOCK];
        for (int64_t i = 0; i < ORT_BYTES_BLOCK; i++) {
            const int64_t map = b * ORT_BYTES_BLOCK + i;
            int8_t *own = space + i * row;
            filters[i] = space + ORT_BYTES_BLOCK * row; /* zeros */
            if (map >= s->maps)
                continue;
            filters[i] = take_filter(w, map, ort_zero_at(zeros, map), count, own, NULL,
                                     sums + map);
            reach[map] = 128 * sum_of_sizes((const uint8_t *)filters[i], count, 0);
            if (row != count && filters[i] != own)
                filters[i] = memcpy(own, filters[i], (size_t)count);
        }
        ort_bytes_winograd_block(s->k, s->winograd, b, filters, out);
    }
}

ort_status ort_bytes_pack_filters(ort_prep *p, const bytes_state *s, const ort_tensor *w,
                                  int32_t *out, int32_t *sums, ort_error *err)
{
    const size_t filter = ort_round_up((size_t)(s->channels * taps_of(s)), 64);
    const size_t bytes = 2 * filter * FILTERS_MOST +
                         (size_t)s->panel_words * sizeof *out * (FILTERS_MOST + 1);
    ort_zeros zeros = ort_zeros_of(ort_prep_constant(p, W_ZERO));
    ort_arena arena = {0};
    int8_t *space = ort_arena_alloc_aligned(&arena, bytes, 64, 0); /* what no one uses: untouched */
    if (!space)
        return ort_error_memory(err, bytes);
    if (s->depthwise)
        pack_depthwise(s, w, &zeros, space, out, sums);
    else if (s->winograd)
        pack_winograd(s, w, &zeros, space, out, sums);
    else
        for (int64_t g = 0; g < s->group; g++)
            pack_group(s, w, &zeros, g, space,
                       out + g * s->group_blocks * ORT_BYTES_BLOCK * s->panel_words,
                       sums + g * s->group_blocks * ORT_BYTES_BLOCK);
    ort_arena_release(&arena);
    return ORT_OK;
}

/* Which words of a panel of `width` filters are 0 in all. */
static void find_empty(const int32_t *panel, int64_t words, int64_t width, uint8_t *empty)
{
    for (int64_t i = 0; i < words; i++, panel += width) {
        int32_t any = 0;
        for (int64_t m = 0; m < width; m++)
            any |= panel[m];
        empty[i] = any == 0;
    }
}

void ort_bytes_limit_filters(const bytes_state *s, const int32_t *filters, uint8_t *limits,
                             uint8_t *empty)
{
    const int64_t lanes = s->k->vector;
    for (int64_t g = 0; g < s->group; g++) {
        const int32_t *from = filters + g * s->group_blocks * ORT_BYTES_BLOCK * s->panel_words;
        for (int64_t v = 0; v < vectors_of(s); v += 2, limits += 4 * limit_words(s)) {
            const int64_t vectors = ort_min_i64(2, vectors_of(s) - v);
            const int32_t *panel = from + v * lanes * s->panel_words;
            memset(limits, UINT8_MAX, (size_t)(4 * limit_words(s)));
            s->k->fours_limits(panel, s->panel_words, vectors, limits);
            if (!empty)
                continue;
            memset(empty, 0, (size_t)limit_words(s));
            find_empty(panel, s->panel_words, vectors * lanes, empty);
            empty += limit_words(s);
        }
    }
}

/* Of each pair one of its two numbers, which stand one behind the other. */
bool ort_bytes_all_fit(const bytes_state *s, const uint8_t *limits)
{
    const int64_t count = s->group * panels_of(s) * limit_words(s) * 2;
    uint8_t least = UINT8_MAX;
    for (int64_t i = 0; i < count; i++, limits += 2) {
        const uint8_t most = limits[0] > limits[1] ? limits[0] : limits[1];
        least = most < least ? most : least;
    }
    return least == UINT8_MAX;
}
