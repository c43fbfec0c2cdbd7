/* bytes_scalar.c - kernels of the blocked layout of bytes of the scalar tier: words of two int16 on
 * 4 lanes. What isn't a product is plain C, which the other tiers may keep. */
#include "kernel/blocked_bytes.h"

#include <math.h>
#include <string.h>

#include "kernel/scalar/simd.h"

#define BYTES_PIXELS 6

static inline vi bytes_multiply(vi sum, vi x, vi w)
{
    typedef uint32_t vu __attribute__((vector_size(16)));
    vi low = (vi)((vu)x << 16) >> 16, w_low = (vi)((vu)w << 16) >> 16;
    return (vi)((vu)sum + (vu)(low * w_low) + (vu)((x >> 16) * (w >> 16)));
}

static inline vi bytes_round(vf v)
{
    return vi_from_vf(vf_max(v, vf_set1(-1024.0f))); /* the second where one is NaN */
}

static inline void bytes_store(uint8_t *p, vi v, int zero)
{
    for (int i = 0; i < VF_LANES; i++) { /* at most 2^31 - 1 by rounding */
        int64_t code = (int64_t)v[i] + zero;
        p[i] = (uint8_t)(code < 0 ? 0 : code > 255 ? 255 : code);
    }
}

static inline void bytes_store4(uint8_t *p, vi a, vi b, vi c, vi d, int zero)
{
    bytes_store(p, a, zero);
    bytes_store(p + ORT_BYTES_BLOCK, b, zero);
    bytes_store(p + 2 * ORT_BYTES_BLOCK, c, zero);
    bytes_store(p + 3 * ORT_BYTES_BLOCK, d, zero);
}

#include "kernel/blocked_bytes.inc"

static int64_t depthwise_words(const int64_t *kernel)
{
    return kernel[0] * kernel[1] * ORT_BYTES_BLOCK / 2;
}

/* int16 [tap][16] */
static void pack_depthwise(const int8_t *w, const int64_t *kernel, int32_t *out)
{
    int16_t *to = (int16_t *)(void *)out;
    int64_t taps = kernel[0] * kernel[1];
    for (int64_t t = 0; t < taps; t++)
        for (int64_t c = 0; c < ORT_BYTES_BLOCK; c++)
            *to++ = w[c * taps + t];
}

static int64_t arranged_bytes(const ort_bytes_band *b)
{
    return ((b->out.count - 1) * b->stride[1] + (b->kernel[1] - 1) * b->dilation[1] + 1) *
           ORT_BYTES_BLOCK * (int64_t)sizeof(int16_t);
}

static void arrange(const ort_bytes_band *b, const uint8_t *row, char *out)
{
    int64_t count = arranged_bytes(b) / (int64_t)sizeof(int16_t);
    for (int64_t i = 0; i < count; i++) {
        int16_t code = row[i];
        memcpy(out + i * (int64_t)sizeof code, &code, sizeof code);
    }
}

static void depthwise_pixel(const ort_bytes_band *b, const char *x, uint8_t *y)
{
    const ort_bytes_out *o = &b->out;
    const int16_t *w = (const int16_t *)(const void *)b->w;
    int32_t sum[ORT_BYTES_BLOCK] = {0};
    for (int64_t row = 0; row < b->terms * b->kernel[0]; row++)
        for (int64_t kx = 0; kx < b->kernel[1]; kx++, w += ORT_BYTES_BLOCK) {
            const int64_t down = row % b->kernel[0] * b->dilation[0] * b->x_row;
            int16_t in[ORT_BYTES_BLOCK];
            memcpy(in, x + down + kx * b->dilation[1] * 32, sizeof in);
            for (int c = 0; c < ORT_BYTES_BLOCK; c++)
                sum[c] += in[c] * w[c];
        }
    const vf hi = vf_set1(BB_HIGH);
    for (int c = 0; c < ORT_BYTES_BLOCK; c += VF_LANES) {
        vi s = vi_add(vi_load(sum + c), vi_load(o->bias + c));
        if (o->sums) {
            vi_store(o->sums + (y - o->y) + c, s);
            continue;
        }
        vf v = vf_mul(vf_from_vi(s), vf_load(o->scale + c));
        bytes_store(y + c, bytes_round(vf_min(hi, v)), o->zero);
    }
}

static void depthwise(const ort_bytes_band *b)
{
    assert(b->terms * b->kernel[0] * b->kernel[1] < 1 << 16); /* sums stay in 32 bits */
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t i = 0; i < b->out.count; i++)
            depthwise_pixel(b, b->x + r * b->stride[0] * b->x_row + i * b->stride[1] * 32,
                            b->out.y + (r * b->out.count + i) * ORT_BYTES_BLOCK);
}

static void gather4(const uint8_t *in, int64_t plane, int64_t channels, int64_t count, uint8_t flip,
                    uint8_t *out)
{
    for (int64_t i = 0; i < count; i++, out += 4)
        for (int64_t c = 0; c < 4; c++)
            out[c] = c < channels ? in[c * plane + i] ^ flip : 0;
}

static void gather(const uint8_t *in, int64_t plane, int64_t channels, int64_t count, uint8_t flip,
                   uint8_t *block)
{
    for (int64_t i = 0; i < count; i++, block += ORT_BYTES_BLOCK)
        for (int64_t c = 0; c < ORT_BYTES_BLOCK; c++)
            block[c] = c < channels ? in[c * plane + i] ^ flip : 0;
}

static void scatter(const uint8_t *block, int64_t plane, int64_t channels, int64_t count,
                    uint8_t flip, uint8_t *out)
{
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < count; i++)
            out[c * plane + i] = block[i * ORT_BYTES_BLOCK + c] ^ flip;
}

static void pick(const uint8_t *in, const int8_t *lanes, bool fresh, int64_t count, uint8_t *out)
{
    for (int64_t i = 0; i < count; i++, in += ORT_BYTES_BLOCK, out += ORT_BYTES_BLOCK)
        for (int c = 0; c < ORT_BYTES_BLOCK; c++)
            out[c] = lanes[c] >= 0 ? in[lanes[c]] : fresh ? 0 : out[c];
}

void ort_bytes_plug_scalar(ort_bytes_kernels *table)
{
    *table = (ort_bytes_kernels){.wide = 2,
                                 .vector = VF_LANES,
                                 .conv = bytes_conv,
                                 .depthwise = depthwise,
                                 .depthwise_words = depthwise_words,
                                 .pack_depthwise = pack_depthwise,
                                 .arranged_bytes = arranged_bytes,
                                 .arrange = arrange,
                                 .gather4 = gather4,
                                 .gather = gather,
                                 .scatter = scatter,
                                 .pick = pick,
                                 .floats = bytes_floats};
}
