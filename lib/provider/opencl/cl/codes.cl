/* codes.cl - floats as codes of 8 or 16 bits and back, and products with weights of few bits. */

/* Of element i its scale and zero point: `inner` elements follow each other with one of `channels`
 * rows of them; along a channel's axis `block` of these share one. */
#define SCALE_OF(i) ((i) / inner / block % channels * behind + (i) % inner % behind)

#define CODES(name, T, R)                                                                          \
    __kernel void PASTE(decode_, name)(__global const T *x, __global const float *scale,           \
                                       __global const T *zero, __global float *out, int has_zero,  \
                                       int inner, int channels, int block, int behind, int count)  \
    {                                                                                              \
        EACH(i, count) {                                                                           \
            int c = SCALE_OF((int)i);                                                              \
            out[i] = (float)((int)x[i] - (has_zero ? (int)zero[c] : 0)) * scale[c];                \
        }                                                                                          \
    }                                                                                              \
    __kernel void PASTE(encode_, name)(__global const float *x, __global const float *scale,       \
                                       __global const T *zero, __global T *out, int has_zero,      \
                                       int inner, int channels, int block, int behind, int count)  \
    {                                                                                              \
        EACH(i, count) {                                                                           \
            int c = SCALE_OF((int)i);                                                              \
            float code = rint(x[i] / scale[c]) + (has_zero ? (float)zero[c] : 0.0f);               \
            out[i] = R(code);                                                                      \
        }                                                                                          \
    }

CODES(char, char, convert_char_sat)
CODES(uchar, uchar, convert_uchar_sat)
CODES(short, short, convert_short_sat)
CODES(ushort, ushort, convert_ushort_sat)

__kernel void decode_int(__global const int *x, __global const float *scale,
                         __global const int *zero, __global float *out, int has_zero, int inner,
                         int channels, int block, int behind, int count)
{
    EACH(i, count) {
        int c = SCALE_OF((int)i);
        out[i] = (float)(x[i] - (has_zero ? zero[c] : 0)) * scale[c];
    }
}

/* The least and the greatest of every SPAN elements (of PIECE), with 0. */
#define PIECE 4096
__kernel void ranges(__global const float *x, __global float *out, int count)
{
    int piece = get_global_id(0), end = min((piece + 1) * PIECE, count);
    float least = 0.0f, most = 0.0f;
    for (int i = piece * PIECE; i < end; i++) {
        least = fmin(least, x[i]);
        most = fmax(most, x[i]);
    }
    out[2 * piece] = least;
    out[2 * piece + 1] = most;
}

__kernel void range_codes(__global const float *ranges, __global float *scale, __global uchar *zero,
                          int count)
{
    float least = 0.0f, most = 0.0f;
    for (int i = 0; i < count; i++) {
        least = fmin(least, ranges[2 * i]);
        most = fmax(most, ranges[2 * i + 1]);
    }
    float step = (most - least) / 255.0f;
    scale[0] = step;
    zero[0] = step > 0.0f ? convert_uchar_sat(rint(0.0f - least / step)) : 0;
}

/* Codes follow each other bit by bit, the first in the low bits. */
static uint code_at(__global const uchar *codes, int index, int bits)
{
    int from = index * bits, left = from % 8;
    uint word = codes[from / 8];
    if (left + bits > 8)
        word |= (uint)codes[from / 8 + 1] << 8;
    return word >> left & ((1u << bits) - 1u);
}

#define ROWS_AT_ONCE 8
#define DEEP_AT_ONCE 64

/* y = a b + bias, [m, n]: column j of b lies as `blocks` blocks of codes with a scale and a zero
 * point (none 0, codes 1, floats 2) each. An item has a column and some rows: it widens the codes
 * once for these. */
__kernel void few_bits(__global const float *a, __global const uchar *b,
                       __global const float *scale, __global const void *zero,
                       __global const float *bias, __global float *y, int zeros, int has_bias,
                       int m, int n, int k, int bits, int block, int blocks)
{
    int j = get_global_id(0), row0 = (int)get_global_id(1) * ROWS_AT_ONCE;
    int rows = min(ROWS_AT_ONCE, m - row0), blob = (block * bits + 7) / 8;
    int zero_row = (blocks * bits + 7) / 8;
    float sums[ROWS_AT_ONCE], w[DEEP_AT_ONCE];
    for (int i = 0; i < ROWS_AT_ONCE; i++)
        sums[i] = has_bias ? bias[j] : 0.0f;
    b += (size_t)j * blocks * blob;
    for (int at = 0; at < blocks; at++, b += blob) {
        float step = scale[(size_t)j * blocks + at];
        float middle = zeros == 0   ? (float)(1 << (bits - 1))
                       : zeros == 1 ? (float)code_at((__global const uchar *)zero +
                                                         (size_t)j * zero_row, at, bits)
                                    : ((__global const float *)zero)[(size_t)j * blocks + at];
        for (int d = 0; d < block && at * block + d < k; d += DEEP_AT_ONCE) {
            int deep = min(min(DEEP_AT_ONCE, block - d), k - at * block - d);
            if (bits == 4)
                for (int i = 0; i < (deep + 1) / 2; i++) {
                    uchar two = b[d / 2 + i];
                    w[2 * i] = ((float)(two & 15) - middle) * step;
                    w[2 * i + 1] = ((float)(two >> 4) - middle) * step;
                }
            else
                for (int i = 0; i < deep; i++)
                    w[i] = ((float)code_at(b, d + i, bits) - middle) * step;
            for (int i = 0; i < rows; i++) {
                __global const float *in = a + (size_t)(row0 + i) * k + at * block + d;
                float sum = 0.0f;
                int e = 0;
#if LANES
                if (deep % LANES == 0) {
                    V part = 0.0f;
                    float lane[LANES];
                    for (; e < deep; e += LANES)
                        part = fused(LOAD(in + e), LOAD(w + e), part);
                    STORE(part, lane);
                    for (int l = 0; l < LANES; l++)
                        sum += lane[l];
                }
#endif
                for (; e < deep; e++)
                    sum = fma(in[e], w[e], sum);
                sums[i] += sum;
            }
        }
    }
    for (int i = 0; i < rows; i++)
        y[(size_t)(row0 + i) * n + j] = sums[i];
}
