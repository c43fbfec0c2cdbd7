/* num.h - scalar conversions of the element types that C lacks, round to nearest even.
 * Sources: IEEE 754-2019 (binary16), bfloat16 (upper half of binary32), ONNX "Float stored in
 * 8 bits" (E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ; arXiv 2209.05433, 2206.02915), OCP Microscaling v1.0
 * (E8M0, E2M1, E2M3, E3M2). `saturate`: out-of-range values become the largest finite value,
 * otherwise NaN or infinity as the ONNX Cast tables say. */
#ifndef ORT_BASE_NUM_H
#define ORT_BASE_NUM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float ort_float_from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
static inline uint32_t ort_bits_from_float(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

float ort_f16_to_f32(uint16_t half);
/* The same of `count` in a row, at any alignment. */
void ort_f16s_to_f32(const void *halves, void *out, size_t count);
uint16_t ort_f32_to_f16(float value);
/* One rounding from double, not two through float. */
uint16_t ort_f64_to_f16(double value);

static inline float ort_bf16_to_f32(uint16_t bits)
{
    return ort_float_from_bits((uint32_t)bits << 16);
}
uint16_t ort_f32_to_bf16(float value);
uint16_t ort_f64_to_bf16(double value);

/* `kind` is an ONNX number: ORT_DTYPE_FLOAT8E4M3FN .. FLOAT8E5M2FNUZ, FLOAT8E8M0, FLOAT6E2M3,
 * FLOAT6E3M2, FLOAT4E2M1. `bits` in the low bits of the byte. */
float ort_minifloat_to_f32(int kind, uint8_t bits);
uint8_t ort_f32_to_minifloat(int kind, float value, bool saturate);
/* The same with one rounding from double (E8M0 by way of float). */
uint8_t ort_f64_to_minifloat(int kind, double value, bool saturate);
/* E8M0 with ONNX Cast's round_mode: 'u' up, 'd' down, 'n' nearest. */
uint8_t ort_f32_to_e8m0(float value, char round_mode, bool saturate);

/* Element `index` of a packed sub-byte array of 2, 4 or 6 bits: a stream of bits, low bits first (a
 * 6-bit element may straddle two bytes). */
static inline unsigned ort_packed_get(const uint8_t *data, size_t index, int bits)
{
    size_t at = index / 8 * (size_t)bits + index % 8 * (size_t)bits / 8;
    unsigned shift = (unsigned)(index % 8 * (size_t)bits % 8), value = (unsigned)data[at] >> shift;
    if (shift + (unsigned)bits > 8)
        value |= (unsigned)data[at + 1] << (8 - shift);
    return value & ((1u << bits) - 1u);
}
static inline void ort_packed_set(uint8_t *data, size_t index, int bits, unsigned value)
{
    size_t at = index / 8 * (size_t)bits + index % 8 * (size_t)bits / 8;
    unsigned shift = (unsigned)(index % 8 * (size_t)bits % 8), mask = ((1u << bits) - 1u) << shift;
    value = (value << shift) & mask;
    data[at] = (uint8_t)((data[at] & ~mask) | value);
    if (shift + (unsigned)bits > 8)
        data[at + 1] = (uint8_t)((data[at + 1] & ~(mask >> 8)) | value >> 8);
}
static inline int ort_sign_extend(unsigned value, int bits)
{
    return (int)((value ^ (1u << (bits - 1))) - (1u << (bits - 1)));
}

#endif
