/* attention_cache.c - rows of key/value caches from and to floats. */
#include <math.h>

#include "op/sequence/attention_cache.h"

int64_t ort_cache_row(ort_cache_format f, int64_t n)
{
    return f.bits == 4 ? (n + 1) / 2 : n;
}

static float code_of(ort_cache_format f, float x, float scale)
{
    float limit = f.bits == 4 ? 8.0f : 128.0f;
    float q = rintf(x * (scale != 0.0f ? 1.0f / scale : 1.0f));
    return fminf(fmaxf(q, -limit), limit - 1.0f);
}

static float scale_of(ort_cache_format f, const float *scale, int64_t i)
{
    return scale[f.per_channel ? i : 0];
}

void ort_cache_load(ort_cache_format f, const ort_tensor *t, int64_t first, int64_t rows, int64_t n,
                    const float *scale, float *out)
{
    int64_t width = ort_cache_row(f, n);
    if (f.bits == 0) {
        ort_tensor_to_f32(t, first * n, rows * n, out);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++) {
            int64_t row = (first + r) * width;
            const int8_t *bytes = (const int8_t *)t->data + row;
            const uint8_t *pairs = (const uint8_t *)bytes;
            int code = f.bits == 8 ? bytes[i] : (pairs[i / 2] >> (i % 2 * 4) & 15) - 8;
            out[r * n + i] = (float)code * scale_of(f, scale, i);
        }
}

void ort_cache_store(ort_cache_format f, const float *from, ort_tensor *t, int64_t first,
                     int64_t rows, int64_t n, const float *scale)
{
    int64_t width = ort_cache_row(f, n);
    if (f.bits == 0) {
        ort_tensor_from_f32(from, t, first * n, rows * n);
        return;
    }
    for (int64_t r = 0; r < rows; r++, from += n) {
        int8_t *bytes = (int8_t *)t->data + (first + r) * width;
        uint8_t *pairs = (uint8_t *)bytes;
        for (int64_t i = 0; f.bits == 8 && i < n; i++)
            bytes[i] = (int8_t)code_of(f, from[i], scale_of(f, scale, i));
        for (int64_t i = 0; f.bits == 4 && i < n; i++) {
            unsigned code = (unsigned)((int)code_of(f, from[i], scale_of(f, scale, i)) + 8);
            unsigned low = i % 2 ? pairs[i / 2] & 15u : code, high = i % 2 ? code : 8u;
            pairs[i / 2] = (uint8_t)(low | high << 4); /* of an odd count the last high is 0 */
        }
    }
}

void ort_cache_round(ort_cache_format f, int64_t rows, int64_t n, const float *scale,
                     float *values)
{
    for (int64_t r = 0; f.bits != 0 && r < rows; r++, values += n)
        for (int64_t i = 0; i < n; i++)
            values[i] = code_of(f, values[i], scale_of(f, scale, i)) * scale_of(f, scale, i);
}
