/* resample.c - separable image resizing with the antialiased filters that PIL has.
 *
 * Each output pixel is a weighted sum over the input pixels under the filter, which is stretched by
 * the scale when shrinking. uint8 images use 22-bit fixed-point weights and round to 8 bits after
 * each of the two passes, as PIL does: results are the same.
 * Filters: Keys' bicubic with a = -0.5, Lanczos with a = 3, Hamming window of support 1.
 */
#include "common/operations.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIXED_BITS = 22, ROW_BLOCK = 512 };

typedef struct filter_row {
    const char *name;
    double support;
    double (*weight)(double x);
} filter_row;

static double box(double x) { return x > -0.5 && x <= 0.5 ? 1 : 0; }
static double triangle(double x) { return fabs(x) < 1 ? 1 - fabs(x) : 0; }

static double sinc(double x) { return x == 0 ? 1 : sin(M_PI * x) / (M_PI * x); }

static double hamming(double x)
{
    return fabs(x) < 1 ? sinc(x) * (0.54 + 0.46 * cos(M_PI * x)) : 0;
}

static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double lanczos(double x) { return fabs(x) < 3 ? sinc(x) * sinc(x / 3) : 0; }

static const filter_row filters[] = {
    {"nearest", 0, NULL},  {"box", 0.5, box},   {"bilinear", 1, triangle},
    {"hamming", 1, hamming}, {"bicubic", 2, cubic}, {"lanczos", 3, lanczos},
};

static const filter_row *find_filter(const char *name)
{
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (!strcmp(filters[i].name, name))
            return &filters[i];
    return NULL;
}

bool resample_known(const char *filter) { return find_filter(filter) != NULL; }

/* Weights of one axis: output i reads inputs [first[i], first[i] + count[i]). */
typedef struct axis_weights {
    int64_t taps; /* row length of weight */
    int64_t *first, *count;
    double *weight;
    int32_t *fixed; /* weight * 2^22, rounded: a sum of 255 times these fits 32 bits */
} axis_weights;

static int32_t to_fixed(double w)
{
    return (int32_t)(w < 0 ? w * (1 << FIXED_BITS) - 0.5 : w * (1 << FIXED_BITS) + 0.5);
}

static void make_weights(axis_weights *w, const filter_row *f, int64_t in, int64_t out)
{
    double scale = (double)in / (double)out, stretch = scale > 1 ? scale : 1;
    double support = f->support * stretch;
    w->taps = (int64_t)ceil(support) * 2 + 1;
    w->first = tool_alloc((size_t)out * sizeof *w->first);
    w->count = tool_alloc((size_t)out * sizeof *w->count);
    w->weight = tool_alloc((size_t)(out * w->taps) * sizeof *w->weight);
    for (int64_t i = 0; i < out; i++) {
        double center = ((double)i + 0.5) * scale, sum = 0;
        int64_t begin = (int64_t)(center - support + 0.5), end = (int64_t)(center + support + 0.5);
        begin = begin < 0 ? 0 : begin;
        end = end > in ? in : end;
        double *row = &w->weight[i * w->taps];
        for (int64_t k = begin; k < end; k++)
            sum += row[k - begin] = f->weight(((double)k - center + 0.5) / stretch);
        for (int64_t k = 0; k < end - begin; k++)
            row[k] = sum != 0 ? row[k] / sum : 0;
        w->first[i] = begin;
        w->count[i] = end - begin;
    }
    w->fixed = tool_alloc((size_t)(out * w->taps) * sizeof *w->fixed);
    for (int64_t k = 0; k < out * w->taps; k++)
        w->fixed[k] = to_fixed(w->weight[k]);
}

static void free_weights(axis_weights *w)
{
    free(w->first);
    free(w->count);
    free(w->weight);
    free(w->fixed);
}

static uint8_t clip8(int32_t fixed)
{
    int32_t v = fixed >> FIXED_BITS;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* One pass along an axis: `lines` independent lines of in_size elements become lines of out_size;
 * `inner` neighbouring samples are handled together (channels, or whole rows). */
typedef void pass_fn(const void *in, void *out, const axis_weights *w, int64_t in_size,
                     int64_t out_size, int64_t lines, int64_t inner);

static void weigh_u8(const uint8_t *src, uint8_t *dst, const int32_t *weight, int64_t count,
                     int64_t inner)
{
    for (int64_t c = 0; c < inner; c++) {
        int32_t sum = 1 << (FIXED_BITS - 1);
        for (int64_t k = 0; k < count; k++)
            sum += src[k * inner + c] * weight[k];
        dst[c] = clip8(sum);
    }
}

/* Three channels side by side: the common case of the horizontal pass. */
static void weigh_rgb(const uint8_t *src, uint8_t *dst, const int32_t *weight, int64_t count)
{
    int32_t r = 1 << (FIXED_BITS - 1), g = r, b = r;
    for (int64_t k = 0; k < count; k++, src += 3) {
        r += src[0] * weight[k];
        g += src[1] * weight[k];
        b += src[2] * weight[k];
    }
    dst[0] = clip8(r);
    dst[1] = clip8(g);
    dst[2] = clip8(b);
}

/* Whole rows: the sums of many samples grow together, so that memory is read in order. */
static void weigh_rows(const uint8_t *src, uint8_t *dst, const int32_t *weight, int64_t count,
                       int64_t inner)
{
    int32_t sum[ROW_BLOCK];
    for (int64_t first = 0; first < inner; first += ROW_BLOCK) {
        int64_t size = inner - first < ROW_BLOCK ? inner - first : ROW_BLOCK;
        for (int64_t c = 0; c < size; c++)
            sum[c] = 1 << (FIXED_BITS - 1);
        for (int64_t k = 0; k < count; k++) {
            const uint8_t *row = src + k * inner + first;
            int32_t factor = weight[k];
            for (int64_t c = 0; c < size; c++)
                sum[c] += row[c] * factor;
        }
        for (int64_t c = 0; c < size; c++)
            dst[first + c] = clip8(sum[c]);
    }
}

static void pass_u8(const void *in, void *out, const axis_weights *w, int64_t in_size,
                    int64_t out_size, int64_t lines, int64_t inner)
{
    for (int64_t line = 0; line < lines; line++)
        for (int64_t i = 0; i < out_size; i++) {
            const uint8_t *src = (const uint8_t *)in + (line * in_size + w->first[i]) * inner;
            uint8_t *dst = (uint8_t *)out + (line * out_size + i) * inner;
            const int32_t *weight = &w->fixed[i * w->taps];
            if (inner == 3)
                weigh_rgb(src, dst, weight, w->count[i]);
            else if (inner < 16)
                weigh_u8(src, dst, weight, w->count[i], inner);
            else
                weigh_rows(src, dst, weight, w->count[i], inner);
        }
}

static void pass_f32(const void *in, void *out, const axis_weights *w, int64_t in_size,
                     int64_t out_size, int64_t lines, int64_t inner)
{
    for (int64_t line = 0; line < lines; line++) {
        const float *src = (const float *)in + line * in_size * inner;
        float *dst = (float *)out + line * out_size * inner;
        for (int64_t i = 0; i < out_size; i++) {
            const double *row = &w->weight[i * w->taps];
            for (int64_t c = 0; c < inner; c++) {
                double sum = 0;
                for (int64_t k = 0; k < w->count[i]; k++)
                    sum += (double)src[(w->first[i] + k) * inner + c] * row[k];
                dst[i * inner + c] = (float)sum;
            }
        }
    }
}

/* Positions are sums of the scale, as PIL adds them up: where a centre falls on a border, the
 * rounding of the sum decides. */
static void nearest(const char *in, size_t pixel_bytes, int64_t height, int64_t width, char *out,
                    int64_t out_height, int64_t out_width)
{
    double step_y = (double)height / (double)out_height;
    double step_x = (double)width / (double)out_width, y_at = step_y * 0.5;
    for (int64_t y = 0; y < out_height; y++, y_at += step_y) {
        int64_t sy = (int64_t)y_at < height ? (int64_t)y_at : height - 1;
        double x_at = step_x * 0.5;
        for (int64_t x = 0; x < out_width; x++, x_at += step_x) {
            int64_t sx = (int64_t)x_at < width ? (int64_t)x_at : width - 1;
            memcpy(out + (size_t)(y * out_width + x) * pixel_bytes,
                   in + (size_t)(sy * width + sx) * pixel_bytes, pixel_bytes);
        }
    }
}

int resample(const void *in, ort_dtype dtype, int64_t height, int64_t width, int64_t channels,
             void *out, int64_t out_height, int64_t out_width, const char *filter)
{
    const filter_row *f = find_filter(filter);
    size_t element = (size_t)ort_dtype_bits(dtype) / 8;
    if (f->weight == NULL) {
        nearest(in, element * (size_t)channels, height, width, out, out_height, out_width);
        return 0;
    }
    axis_weights across, down;
    make_weights(&across, f, width, out_width);
    make_weights(&down, f, height, out_height);
    /* PIL shrinks tall pictures vertically first; it matters to uint8, which rounds and clips
     * between the passes. */
    bool down_first = out_height < height && height - out_height > 2 * (width - out_width);
    int64_t middle_height = down_first ? out_height : height;
    int64_t middle_width = down_first ? width : out_width;
    void *middle = tool_alloc((size_t)(middle_height * middle_width * channels) * element);
    pass_fn *pass = dtype == ORT_DTYPE_UINT8 ? pass_u8 : pass_f32;
    if (down_first) {
        pass(in, middle, &down, height, out_height, 1, width * channels);
        pass(middle, out, &across, width, out_width, out_height, channels);
    } else {
        pass(in, middle, &across, width, out_width, height, channels);
        pass(middle, out, &down, height, out_height, 1, out_width * channels);
    }
    free_weights(&across);
    free_weights(&down);
    free(middle);
    return 0;
}
