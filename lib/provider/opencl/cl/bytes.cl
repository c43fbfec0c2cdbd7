/* bytes.cl - products of codes of 8 bits with exact sums of 32: convolutions and matrix products.
 *
 * Codes are signed here: unsigned ones have their highest bit turned, as their zero points have.
 * `spread_bytes` writes an operand with its channels last, four in a word, and its padding; what it
 * adds is the zero point, which counts as 0. Then each result is a sum of products of words, from
 * which `shift` and the weights' zero points take what the zero points have added. The same bits as
 * the CPU's, whichever form a device has.
 *
 * DOTS is given to devices with cl_khr_integer_dot_product. */

#ifdef DOTS
#pragma OPENCL EXTENSION cl_khr_integer_dot_product : enable
#endif

/* out: [z][positions of depth, height, width with their padding][cells], a multiple of 4 of these;
 * steps of the operand's channels and places. */
__kernel void spread_bytes(__global const uchar *x, __global uchar *out, int channels, int cells,
                           int channel_step, int place_step, int depth, int height, int width,
                           int wide_height, int wide_width, int pd, int py, int px, int flip,
                           int zero)
{
    int position = get_global_id(0), z = get_global_id(1);
    int d = position / wide_width / wide_height - pd, v = position % wide_width - px;
    int u = position / wide_width % wide_height - py;
    bool inside = d >= 0 && d < depth && u >= 0 && u < height && v >= 0 && v < width;
    size_t places = (size_t)depth * height * width;
    out += ((size_t)z * get_global_size(0) + position) * cells;
    x += (size_t)z * channels * places;
    if (inside)
        x += ((size_t)(d * height + u) * width + v) * place_step;
    for (int c = 0; c < cells; c++)
        out[c] = inside && c < channels ? x[(size_t)c * channel_step] ^ flip : zero;
}

typedef struct form { /* of results */
    int kind, zero; /* 0: sums; 1: unsigned codes; 2: signed ones */
} form;

static void put_sum(__global void *y, size_t at, int sum, float scale, form f)
{
    if (!f.kind) {
        ((__global int *)y)[at] = sum;
        return;
    }
    float code = rint((float)sum * scale) + (float)f.zero;
    if (f.kind == 1)
        ((__global uchar *)y)[at] = convert_uchar_sat(code);
    else
        ((__global char *)y)[at] = convert_char_sat(code);
}

#define MAPS 16
#if LANES
#define PLACES 8 /* of an item */
#else
#define PLACES 1
#endif

/* x: words of `spread_bytes`; w: [group][blocks of MAPS filters][taps * words][MAPS]. Where result
 * `place` of a filter lies: map_step apart, place_step apart. */
__kernel void dots(__global const uint *x, __global const uint *w, __global const int *taps,
                   __global const int *shift, __global const int *zeros,
                   __global const float *scale, __global void *y, int words, int tap_count,
                   int positions, int groups, int outs, int plane, int out_height, int out_width,
                   int sd, int sy, int sx, int wide_height, int wide_width, int has_zeros,
                   int map_step, int place_step, int kind, int zero)
{
    int block = get_global_id(1), z = get_global_id(2), group = z % groups;
    int first = block * MAPS, count = min(MAPS, outs - first);
    form f = {kind, zero};
    w += ((size_t)group * get_global_size(1) + block) * tap_count * words * MAPS;
    x += (size_t)z * positions * words;
    int place = get_global_id(0) * PLACES, end = min(place + PLACES, plane);
    for (; place < end; place++) {
        int ox = place % out_width, oy = place / out_width % out_height;
        int od = place / out_width / out_height;
        __global const uint *from = x + (size_t)((od * sd * wide_height + oy * sy) * wide_width +
                                                 ox * sx) * words;
        __global const uint *filter = w;
        int sums[MAPS], all = 0;
#ifdef DOTS
        for (int m = 0; m < MAPS; m++)
            sums[m] = 0;
#else
        int16 sum = 0;
#endif
        for (int t = 0; t < tap_count; t++)
            for (int k = 0; k < words; k++, filter += MAPS) {
                uint codes = from[(size_t)taps[t] * words + k];
#ifdef DOTS
                for (int m = 0; m < MAPS; m++)
                    sums[m] += dot_4x8packed_ss_int(codes, filter[m]);
                all += dot_4x8packed_ss_int(codes, 0x01010101u);
#else
                char4 four = as_char4(codes);
                int16 of = as_int16(vload16(0, filter));
                sum += (int)four.x * (of << 24 >> 24) + (int)four.y * (of << 16 >> 24) +
                       (int)four.z * (of << 8 >> 24) + (int)four.w * (of >> 24);
                all += four.x + four.y + four.z + four.w;
#endif
            }
#ifndef DOTS
        vstore16(sum, 0, sums);
#endif
        for (int m = 0; m < count; m++) {
            int map = group * outs + first + m;
            int whole = sums[m] + shift[map] - (has_zeros ? zeros[map] * all : 0);
            put_sum(y, ((size_t)z * outs + first + m) * map_step + (size_t)place * place_step,
                    whole, scale[map], f);
        }
    }
}

/* Few channels for each filter: as the operands lie. zero: of x, turned as `flip` turns codes. */
__kernel void few_channels(__global const uchar *x, __global const uchar *w,
                           __global const int *shift, __global const int *zeros,
                           __global const float *scale, __global void *y, int groups, int ins,
                           int outs, int depth, int height, int width, int plane, int out_height,
                           int out_width, int kd, int kh, int kw, int sd, int sy, int sx, int pd,
                           int py, int px, int dd, int dy, int dx, int x_flip, int x_zero,
                           int w_flip, int kind, int zero)
{
    int map = get_global_id(1), image = get_global_id(2), group = map / outs;
    form f = {kind, zero};
    x += (size_t)(image * groups + group) * ins * depth * height * width;
    w += (size_t)map * ins * kd * kh * kw;
    EACH(place, plane) {
        int i = place, sum = 0, ox = i % out_width, oy = i / out_width % out_height;
        int od = i / out_width / out_height, tap = 0;
        for (int c = 0; c < ins; c++)
            for (int d = 0; d < kd; d++)
                for (int u = 0; u < kh; u++)
                    for (int v = 0; v < kw; v++, tap++) {
                        int iz = od * sd - pd + d * dd, iy = oy * sy - py + u * dy;
                        int ix = ox * sx - px + v * dx;
                        if (iz < 0 || iz >= depth || iy < 0 || iy >= height || ix < 0 ||
                            ix >= width)
                            continue;
                        int code = (char)(x[((size_t)(c * depth + iz) * height + iy) * width + ix] ^
                                          x_flip);
                        sum += (code - x_zero) * ((char)(w[tap] ^ w_flip) - zeros[map]);
                    }
        put_sum(y, ((size_t)image * groups * outs + map) * plane + i, sum + shift[map], scale[map],
                f);
    }
}

/* Sums of two tensors of one shape, with ratios of scales to the result's. */
__kernel void add_codes(__global const uchar *a, __global const uchar *b, __global uchar *y,
                        int is_signed, float a_ratio, float b_ratio, float fixed, int count)
{
    EACH(i, count) {
        float left = is_signed ? (float)(char)a[i] : (float)a[i];
        float right = is_signed ? (float)(char)b[i] : (float)b[i];
        float code = rint(rounded_once(left, a_ratio, rounded_once(right, b_ratio, fixed)));
        y[i] = is_signed ? (uchar)convert_char_sat(code) : convert_uchar_sat(code);
    }
}

/* The mean of each `count` codes that follow each other: their exact sum, multiplied by `factor`. */
__kernel void mean_codes(__global const uchar *x, __global uchar *y, int is_signed, int count,
                         float factor, int x_zero, int y_zero)
{
    size_t row = get_global_id(0);
    long sum = -(long)count * x_zero;
    x += row * count;
    for (int i = 0; i < count; i++)
        sum += is_signed ? (int)(char)x[i] : (int)x[i];
    float code = rint((float)sum * factor) + (float)y_zero;
    y[row] = is_signed ? (uchar)convert_char_sat(code) : convert_uchar_sat(code);
}
