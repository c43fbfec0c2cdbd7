/* nbits_pack.c - weights of 2 to 8 bits in blocks, from the order of models into that of kernels:
 * codes into words of groups of columns, scales and zero points behind each other by lanes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "op/quant/nbits.h"

enum { RUN = 128 }; /* weights, at most */

/* ---- codes */

int64_t ort_nbits_code_bytes(int64_t codes, int64_t bits)
{
    return (codes * bits + 7) / 8;
}

unsigned ort_nbits_code_at(const uint8_t *codes, int64_t index, int64_t bits)
{
    const int64_t from = index * bits, left = from % 8;
    unsigned word = codes[from / 8];
    if (left + bits > 8)
        word |= (unsigned)codes[from / 8 + 1] << 8;
    return word >> left & ((1u << bits) - 1u);
}

void ort_nbits_unpack_zeros(const ort_nbits_state *s, const ort_tensor *zero, float *out)
{
    if (zero->dtype != ORT_DTYPE_UINT8) {
        ort_tensor_to_f32(zero, 0, s->n * s->blocks, out);
        return;
    }
    for (int64_t j = 0; j < s->n; j++) {
        const uint8_t *row =
            (const uint8_t *)zero->data + j * ort_nbits_code_bytes(s->blocks, s->bits);
        for (int64_t at = 0; at < s->blocks; at++)
            *out++ = (float)ort_nbits_code_at(row, at, s->bits);
    }
}

/* ---- packed */

/* [N][blocks] in the order of a block [group][blocks][lanes]; columns beyond N have 0. */
static void by_lanes(const ort_prep *p, const ort_nbits_state *s, const float *plain, float *out)
{
    const int64_t lanes = p->k->gemm.nbits_lanes;
    for (int64_t g = 0; g < s->n; g += lanes)
        for (int64_t b = 0; b < s->blocks; b++)
            for (int64_t j = g; j < g + lanes; j++)
                *out++ = j < s->n ? plain[j * s->blocks + b] : 0.0f;
}

enum { SCALES_FIT = 1,   /* in float16 */
       SCALES_ROUND = 2, /* are 0, or within 2^+-60 */
       SCALES_SOME = 256 };

static int32_t form_of_scales(const ort_kernels *k, const float *scale, size_t count)
{
    int32_t form = SCALES_ROUND;
    uint16_t half[SCALES_SOME];
    float back[SCALES_SOME];
    k->math.f32_to_f16(scale, half, count);
    k->math.f16_to_f32(half, back, count);
    if (!memcmp(back, scale, count * sizeof *back))
        form |= SCALES_FIT;
    for (size_t i = 0; i < count; i++) {
        const float size = fabsf(scale[i]);
        if (!(size <= 0x1p60f) || (size > 0 && size < 0x1p-60f))
            form &= ~SCALES_ROUND;
    }
    return form;
}

/* Kept with what is packed, for a pack file has no scales. */
static ort_status find_form(ort_prep *p, const ort_nbits_state *s, const float *scale,
                            int64_t count, int32_t *form, ort_error *err)
{
    bool fill;
    const unsigned of = 1u << (s->at + ORT_NBITS_SCALES);
    int32_t *kept = ort_prep_pack(p, "scale form", of, sizeof *kept, &fill);
    if (!kept)
        return ort_error_memory(err, sizeof *kept);
    if (fill)
        *kept = SCALES_FIT | SCALES_ROUND;
    for (int64_t i = 0; fill && i < count && *kept; i += SCALES_SOME)
        *kept &= form_of_scales(p->k, scale + i, (size_t)ort_min_i64(SCALES_SOME, count - i));
    *form = *kept;
    return ORT_OK;
}

static ort_status pack_scales(ort_prep *p, ort_nbits_state *s, const float *scale, int64_t count,
                              ort_error *err)
{
    ort_nbits *w = &s->packed;
    int32_t form = 0;
    bool fill;
    ORT_TRY(find_form(p, s, scale, count, &form, err));
    const bool half = form & SCALES_FIT;
    s->scales_round = form & SCALES_ROUND;
    const size_t bytes = (size_t)count * (half ? sizeof(uint16_t) : sizeof(float));
    const int input = s->at + ORT_NBITS_SCALES;
    void *to = ort_prep_pack(p, half ? "half scales" : "scales", 1u << input, bytes, &fill);
    if (!to)
        return ort_error_memory(err, bytes);
    if (fill && half)
        p->k->math.f32_to_f16(scale, to, (size_t)count);
    else if (fill)
        memcpy(to, scale, bytes);
    w->scale = half ? NULL : to;
    w->scale_half = half ? to : NULL;
    ort_prep_absorb(p, input);
    return ORT_OK;
}

/* Packed zero points become bytes, others floats. */
static ort_status pack_zeros(ort_prep *p, ort_nbits_state *s, const float *zero, int64_t count,
                             ort_error *err)
{
    const int input = s->at + ORT_NBITS_ZERO;
    const bool codes = ort_prep_constant(p, input)->dtype == ORT_DTYPE_UINT8;
    const size_t bytes = (size_t)count * (codes ? 1 : sizeof(float));
    bool fill;
    void *to = ort_prep_pack(p, "zeros", 1u << input, bytes, &fill);
    if (!to)
        return ort_error_memory(err, bytes);
    for (int64_t i = 0; fill && codes && i < count; i++)
        ((uint8_t *)to)[i] = (uint8_t)zero[i];
    if (fill && !codes)
        memcpy(to, zero, bytes);
    s->packed.zero = codes ? NULL : to;
    s->packed.zero_byte = codes ? to : NULL;
    ort_prep_absorb(p, input);
    return ORT_OK;
}

/* Columns [j, j + lanes) of a B of other bits, as rows of codes of w->bits. */
static void recode(const ort_nbits_state *s, const uint8_t *b, int64_t j, int64_t end, uint8_t *out)
{
    const int64_t bits = s->packed.bits, blob = ort_nbits_code_bytes(s->block, s->bits);
    const int64_t row = 4 * s->packed.row_words;
    memset(out, 0, (size_t)((end - j) * row));
    for (int64_t l = j; l < end; l++)
        for (int64_t i = 0; i < s->blocks * s->block; i++) {
            const uint8_t *block = b + (l * s->blocks + i / s->block) * blob;
            const int64_t at = (l - j) * row * 8 + i * bits;
            out[at / 8] = (uint8_t)(out[at / 8] |
                                    ort_nbits_code_at(block, i % s->block, s->bits) << at % 8);
        }
}

static ort_status fill_words(const ort_prep *p, const ort_nbits_state *s, int32_t *words,
                             ort_error *err)
{
    const ort_gemm_kernels *g = &p->k->gemm;
    const ort_nbits *w = &s->packed;
    const uint8_t *b = ort_prep_constant(p, s->at + ORT_NBITS_B)->data;
    const int64_t lanes = g->nbits_lanes, row = 4 * w->row_words;
    uint8_t *codes = w->bits == s->bits ? NULL : malloc((size_t)(lanes * row));
    if (!codes && w->bits != s->bits)
        return ort_error_memory(err, (size_t)(lanes * row));
    for (int64_t j = 0; j < s->n; j += lanes) {
        const int64_t end = ort_min_i64(j + lanes, s->n);
        if (codes)
            recode(s, b, j, end, codes);
        g->nbits_pack(codes ? end - j : s->n, w->row_words, w->bits, codes ? codes : b,
                      codes ? 0 : j, words + j * w->row_words);
    }
    free(codes);
    return ORT_OK;
}

static ort_status pack_words(ort_prep *p, ort_nbits_state *s, ort_error *err)
{
    const int64_t lanes = p->k->gemm.nbits_lanes, groups = (s->n + lanes - 1) / lanes;
    ort_nbits *w = &s->packed;
    w->bits = s->bits <= 2 ? 2 : s->bits <= 4 ? 4 : 8;
    w->middle = 1 << (s->bits - 1);
    w->n = s->n;
    w->row_words = s->blocks * s->block * w->bits / 32;
    w->run_words = ort_min_i64(s->block, RUN) * w->bits / 32;
    w->block_runs = ort_max_i64(s->block / RUN, 1);
    w->digits = s->accuracy == 4 || p->math_fast ? 1 : 3;
    p->rounds = s->accuracy == 4 || !p->math_fast ? 0 : ort_min_i64(s->block, RUN);
    const size_t bytes = (size_t)(groups * lanes * w->row_words) * sizeof(int32_t);
    bool fill;
    int32_t *words = ort_prep_pack(p, "words", 1u << (s->at + ORT_NBITS_B), bytes, &fill);
    if (!words)
        return ort_error_memory(err, bytes);
    if (fill)
        ORT_TRY(fill_words(p, s, words, err));
    ort_prep_absorb(p, s->at + ORT_NBITS_B);
    w->words = words;
    return ORT_OK;
}

ort_status ort_nbits_pack(ort_prep *p, ort_nbits_state *s, ort_error *err)
{
    const ort_tensor *scale = ort_prep_constant(p, s->at + ORT_NBITS_SCALES);
    const ort_tensor *zero = ort_prep_constant(p, s->at + ORT_NBITS_ZERO);
    const int64_t lanes = p->k->gemm.nbits_lanes, columns = (s->n + lanes - 1) / lanes * lanes;
    const int64_t plain = s->n * s->blocks, count = columns * s->blocks;
    const ort_tensor *b = ort_prep_constant(p, s->at + ORT_NBITS_B);
    if (s->reordered || !b || !scale || (!s->zero_is_middle && !zero))
        return ORT_OK;
    float *floats = malloc((size_t)(plain + count) * sizeof *floats);
    if (!floats)
        return ort_error_memory(err, (size_t)(plain + count) * sizeof *floats);
    float *packed = floats + plain;
    ort_tensor_to_f32(scale, 0, plain, floats);
    by_lanes(p, s, floats, packed);
    ort_status status = pack_scales(p, s, packed, count, err);
    if (status == ORT_OK && zero) {
        ort_nbits_unpack_zeros(s, zero, floats);
        by_lanes(p, s, floats, packed);
        status = pack_zeros(p, s, packed, count, err);
    }
    free(floats);
    return status != ORT_OK ? status : pack_words(p, s, err);
}
