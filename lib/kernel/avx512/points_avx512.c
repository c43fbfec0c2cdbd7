/* points_avx512.c - convolutions of single pixels by crossed sums (kernel/crossed.h), of blocks of
 * 16 channels: pixels are copied as rows whose norms are those of the output channels, then each
 * pair of vectors of these takes them tile by tile.
 *
 * What happens to a pixel depends on it alone, however many are taken at a time: one whose norm
 * nothing brings there, or that isn't finite, is left to direct sums, and its neighbours aren't.
 */
#include "kernel/avx512/simd.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernel/contract.h"
#include "kernel/crossed.h"

enum { BLOCK = 16, GROUP = 16, PIXELS = ORT_BLOCKED_CROSSED_PIXELS };

typedef struct points { /* of a call, copied */
    const ort_blocked_conv *k;
    const ort_blocked_crossed *crossed;
    int64_t step;
    float *rows, *begin, *back; /* of each pixel */
} points;

/* ---- pixels */

/* The sums of 16 vectors, each added up in the same order. */
static inline vf sums_of(vf *v)
{
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 2)
        v[i] = vf_add(_mm512_unpacklo_ps(v[i], v[i + 1]), _mm512_unpackhi_ps(v[i], v[i + 1]));
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 4) {
        const __m512d a = _mm512_castps_pd(v[i]), b = _mm512_castps_pd(v[i + 2]);
        v[i] = vf_add(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                      _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 8)
        v[i] = vf_add(_mm512_shuffle_f32x4(v[i], v[i + 4], 0x88),
                      _mm512_shuffle_f32x4(v[i], v[i + 4], 0xdd));
    return vf_add(_mm512_shuffle_f32x4(v[0], v[8], 0x88), _mm512_shuffle_f32x4(v[0], v[8], 0xdd));
}

static const float *pixel_at(const points *p, int64_t pixel)
{
    const ort_blocked_window *w = &p->k->window;
    return w->x + (w->start + pixel * w->stride) * BLOCK;
}

/* Block by block; of the last one the lanes that are channels. */
static inline vf block_of(const points *p, const float *x, int64_t c)
{
    const int64_t left = p->k->channels - c;
    x += c / BLOCK * p->k->x_block;
    return left < BLOCK ? vf_load_n(x, left) : vf_load(x);
}

static bool is_zero(const points *p, const float *x)
{
    vm any = 0;
    for (int64_t c = 0; c < p->k->channels; c += BLOCK)
        any |= vm_not(vf_eq(block_of(p, x, c), vf_zero()));
    return !any;
}

/* Powers of two that bring up to 16 pixels' norms to 2^middle. Those that nothing brings there are
 * left out of the mask; one of zeros is multiplied by 0 in the end. */
static vm scales_of(const points *p, int64_t pixel, int64_t count, float *up, float *back)
{
    vf v[GROUP];
    const float *x = pixel_at(p, pixel);
    const int64_t next = p->k->window.stride * BLOCK, last = (count - 1) * next;
#pragma GCC unroll 16
    for (int64_t i = 0; i < GROUP; i++)
        v[i] = vf_zero();
    for (int64_t c = 0; c < p->k->channels; c += BLOCK, x += p->k->x_block) {
        const int64_t left = p->k->channels - c;
        const vm lanes = left < BLOCK ? v_mask_n(left) : 0xffff;
        if (count == GROUP) {
#pragma GCC unroll 16
            for (int64_t i = 0; i < GROUP; i++) {
                const vf a = _mm512_maskz_loadu_ps(lanes, x + i * next);
                v[i] = vf_fma(a, a, v[i]);
            }
        } else {
#pragma GCC unroll 16
            for (int64_t i = 0; i < GROUP; i++) {
                const vf a = _mm512_maskz_loadu_ps(lanes, x + (i * next < last ? i * next : last));
                v[i] = vf_fma(a, a, v[i]);
            }
        }
    }
    const vf squares = sums_of(v), most = vf_set1(ldexpf(1, 2 * ORT_CROSSED_EXPONENT));
    const vf half = vf_floor(vf_mul(vf_set1(0.5f), vf_add(_mm512_getexp_ps(squares), vf_set1(1))));
    const vf shift = vf_sub(vf_set1((float)p->crossed->middle), half);
    const vm large = vf_ge(squares, vf_div(vf_set1(1), most));
    vm fits = large & vf_le(squares, most), none = vm_not(large) & v_mask_n(count);
    vf_store(up, vf_select(fits, _mm512_scalef_ps(vf_set1(1), shift), vf_set1(1)));
    vf_store(back, vf_select(fits, _mm512_scalef_ps(vf_set1(1), vf_neg(shift)), vf_zero()));
    for (int64_t i = 0; none && i < count; i++)
        if (none >> i & 1 && is_zero(p, pixel_at(p, pixel + i)))
            fits |= (vm)(1 << i);
    return fits;
}

/* Up to 16 pixels to rows, and what their sums begin with. */
static void copy_group(const points *p, int64_t pixel, int64_t count, const float *up, int64_t to)
{
    const int64_t channels = p->k->channels, triples = channels / 3 * 3;
    const vm pairs[3] = {0x9249, 0x4924, 0x2492}; /* lanes whose channel is a multiple of 3 */
    vf v[GROUP];
    for (int64_t i = 0; i < GROUP; i++) {
        v[i] = vf_zero();
        if (i >= count)
            continue;
        const float *x = pixel_at(p, pixel + i);
        float *row = p->rows + (to + i) * p->step;
        const vf by = vf_set1(up[i]);
        vf a = vf_mul(by, block_of(p, x, 0));
        int at = 0;
        for (int64_t c = 0; c < channels; c += BLOCK, at = at == 2 ? 0 : at + 1) {
            const bool last = c + BLOCK >= channels;
            const vf then = last ? vf_zero() : vf_mul(by, block_of(p, x, c + BLOCK));
            const __m512i shifted = _mm512_alignr_epi32(_mm512_castps_si512(then),
                                                        _mm512_castps_si512(a), 1);
            const int64_t left = triples - c;
            const vm lanes = pairs[at] & (left < BLOCK ? v_mask_n(left < 0 ? 0 : left) : 0xffff);
            vf_store(row + c, a);
            v[i] = _mm512_mask3_fnmadd_ps(a, _mm512_castsi512_ps(shifted), v[i], lanes);
            a = then;
        }
    }
    vf_store(p->begin + to, sums_of(v));
}

/* Copies pixels from `pixel` on as long as they suit; how many do. */
static int64_t copy_points(const points *p, int64_t pixel, int64_t count)
{
    float up[GROUP];
    for (int64_t done = 0; done < count; done += GROUP) {
        const int64_t n = count - done < GROUP ? count - done : GROUP;
        const vm fits = scales_of(p, pixel + done, n, up, p->back + done);
        const int64_t suit = __builtin_ctz(~(unsigned)fits | 1u << n);
        copy_group(p, pixel + done, suit, up, done);
        if (suit < n)
            return done + suit;
    }
    return count;
}

/* As many pixels as direct sums take at a time, at two places. */
bool ort_blocked_sparse_avx512(const float *x, int64_t channels, int64_t plane)
{
    enum { SAMPLES = 2, TAKEN = 14, SIXTEENTHS = 12 }; /* of the channels that count, at most */
    const int64_t pixels = plane < TAKEN ? plane : TAKEN;
    int64_t count = 0;
    for (int64_t i = 0; i < SAMPLES; i++) {
        const float *at = x + (plane - pixels) * (2 * i + 1) / (2 * SAMPLES) * BLOCK;
        for (int64_t left = channels; left > 0; left -= BLOCK, at += plane * BLOCK) {
            vf any = vf_zero();
            for (int64_t q = 0; q < pixels; q++)
                any = vf_or(any, vf_load(at + q * BLOCK));
            const vm lanes = left < BLOCK ? v_mask_n(left) : 0xffff;
            count += __builtin_popcount(vm_not(vf_eq(any, vf_zero())) & lanes);
        }
    }
    return count * 16 <= SAMPLES * channels * SIXTEENTHS;
}

/* ---- products */

/* Some pixels and vectors by direct sums. */
static void leave(const ort_blocked_conv *k, int64_t pixel, int64_t count, int64_t vector,
                  int64_t vectors, void (*direct)(const ort_blocked_conv *))
{
    const int64_t at = pixel * BLOCK + vector * k->out.y_block;
    ort_blocked_conv some = *k;
    some.window.start += pixel * k->window.stride;
    some.first_vector += vector;
    some.vectors = vectors;
    some.out.count = count;
    some.out.y += at;
    some.out.z = k->out.z ? k->out.z + at : NULL;
    some.out.bias = k->out.bias ? k->out.bias + vector * BLOCK : NULL;
    some.out.slope = k->out.slope ? k->out.slope + vector * BLOCK : NULL;
    some.ahead_step = 0;
    direct(&some);
}

/* A tile of fewer rows than there are kernels for: what is beyond is read and written aside. */
static void small_tile(int64_t rows, int64_t k, const ort_crossed_tile *t)
{
    const int64_t least = ort_crossed_avx512.rows_least;
    _Alignas(64) float c[12 * 2 * VF_LANES], add[12 * 2 * VF_LANES] = {0};
    ort_crossed_tile own = *t;
    own.c = c;
    own.ldc = own.ldadd = 2 * VF_LANES;
    own.next = VF_LANES;
    if (t->add)
        own.add = add;
    for (int64_t i = 0; t->add && i < rows; i++) {
        vf_store(add + i * own.ldadd, vf_load(t->add + i * t->ldadd));
        vf_store(add + i * own.ldadd + VF_LANES, vf_load(t->add + i * t->ldadd + t->next));
    }
    ort_crossed_avx512.tile(least, k, &own);
    for (int64_t i = 0; i < rows; i++) {
        vf_store(t->c + i * t->ldc, vf_load(c + i * own.ldc));
        vf_store(t->c + i * t->ldc + t->next, vf_load(c + i * own.ldc + VF_LANES));
    }
}

/* Lanes beyond the real output channels are what zeros give, as in direct sums. */
static void clear_beyond(const points *p, float *y, int64_t count, int64_t real)
{
    const ort_blocked_out *o = &p->k->out;
    const vf none = vf_min(vf_set1(o->hi), vf_max(vf_set1(o->lo), vf_zero()));
    const vm lanes = v_mask_n(real);
    for (int64_t i = 0; i < count; i++)
        vf_store(y + i * BLOCK, vf_select(lanes, vf_load(y + i * BLOCK), none));
}

/* The leak of a pair of vectors, and the clamp behind it. */
static void leak(const ort_blocked_out *o, float *y, int64_t count, const float *slope)
{
    const vf lo = vf_set1(o->lo), hi = vf_set1(o->hi);
    for (int half = 0; half < 2; half++, y += o->y_block, slope += VF_LANES) {
        const vf by = vf_load(slope);
        for (int64_t i = 0; i < count; i++) {
            const vf v = vf_load(y + i * BLOCK);
            const vf leaked = vf_select(vf_lt(v, vf_zero()), vf_mul(v, by), v);
            vf_store(y + i * BLOCK, vf_min(hi, vf_max(lo, leaked)));
        }
    }
}

/* `count` pixels that are copied, from `pixel` on, by the pair of vectors from `vector` on. */
static void one_panel(const points *p, int64_t pixel, int64_t count, int64_t vector)
{
    const ort_blocked_conv *k = p->k;
    const ort_blocked_out *o = &k->out;
    const int64_t panel = (k->first_vector + vector) / 2, floats = k->channels * 2 * VF_LANES;
    const int64_t tiles = (count + ort_crossed_avx512.rows - 1) / ort_crossed_avx512.rows;
    const int64_t at = pixel * BLOCK + vector * o->y_block;
    const float *b = k->w + panel * floats, *add = o->accumulate ? o->y : o->z;
    const float *ahead = vector + 2 < k->vectors ? b + floats : k->ahead_step ? k->ahead : b;
    assert(!o->accumulate || !o->z);
    for (int64_t t = 0, row = 0, rows; t < tiles; t++, row += rows) {
        rows = (count - row + tiles - t - 1) / (tiles - t);
        const ort_crossed_tile tile = {
            .a = p->rows + row * p->step, .lda = p->step, .b = b, .row = p->begin + row,
            .column = p->crossed->begin + panel * 2 * VF_LANES, .back = p->back + row,
            .bias = o->bias ? o->bias + vector * BLOCK : NULL,
            .add = add ? add + at + row * BLOCK : NULL, .ldadd = BLOCK,
            .c = o->y + at + row * BLOCK, .ldc = BLOCK, .next = o->y_block,
            .lo = o->slope ? -INFINITY : o->lo, .hi = o->slope ? INFINITY : o->hi,
            .ahead = t < 6 ? ahead + t * (k->channels / 3) * 16 : b};
        if (rows < ort_crossed_avx512.rows_least)
            small_tile(rows, k->channels, &tile);
        else
            ort_crossed_avx512.tile(rows, k->channels, &tile);
    }
    if (o->slope)
        leak(o, o->y + at, count, o->slope + vector * BLOCK);
    const int64_t real = p->crossed->maps - (2 * panel + 1) * VF_LANES;
    if (real < VF_LANES)
        clear_beyond(p, o->y + at + o->y_block, count, real);
}

static bool suits(const points *p, int64_t vector)
{
    const int64_t panel = (p->k->first_vector + vector) / 2;
    return vector + 2 <= p->k->vectors && !isnan(p->crossed->begin[panel * 2 * VF_LANES]);
}

void ort_blocked_crossed_avx512(const ort_blocked_conv *k, const ort_blocked_crossed *crossed,
                                void (*direct)(const ort_blocked_conv *))
{
    points p = {.k = k, .crossed = crossed, .step = ort_blocked_crossed_step(k->channels),
                .begin = crossed->space, .back = crossed->space + PIXELS};
    p.rows = p.back + PIXELS;
    const ort_blocked_window *w = &k->window;
    assert(w->rows == 1 && w->columns == 1 && w->start >= 0 && k->first_vector % 2 == 0);
    assert(w->start + (k->out.count - 1) * w->stride < w->width);
    (void)w;
    for (int64_t pixel = 0, count; pixel < k->out.count; pixel += count) {
        const int64_t left = k->out.count - pixel, parts = (left + PIXELS - 1) / PIXELS;
        count = copy_points(&p, pixel, (left + parts - 1) / parts);
        if (count == 0)
            leave(k, pixel, count = 1, 0, k->vectors, direct);
        else
            for (int64_t v = 0, run; v < k->vectors; v += run) {
                for (run = 0; v + run < k->vectors && !suits(&p, v + run); run += 2)
                    continue;
                if (run > 0) {
                    run = run < k->vectors - v ? run : k->vectors - v;
                    leave(k, pixel, count, v, run, direct);
                } else {
                    one_panel(&p, pixel, count, v);
                    run = 2;
                }
            }
    }
}
