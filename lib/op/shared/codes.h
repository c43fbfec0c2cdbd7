/* codes.h - 8-bit codes with one scale and one zero point, for the operators on them. */
#ifndef ORT_OP_SHARED_CODES_H
#define ORT_OP_SHARED_CODES_H

#include "op/op.h"

typedef struct ort_codes {
    float scale;
    int zero;
    bool is_signed;
} ort_codes;

/* Of a scale and zero point of one element each; NULL: 0. */
ort_codes ort_codes_read(const ort_tensor *scale, const ort_tensor *zero, ort_dtype dtype);
/* Of inputs that have one element each; an absent zero point is 0. */
ort_codes ort_codes_of(const ort_call *call, ort_dtype dtype, int scale, int zero);
/* Constant ones of a node being prepared; false where one isn't, or has several elements. */
bool ort_codes_known(const ort_prep *p, ort_dtype dtype, int scale, int zero, ort_codes *codes);
/* Scales and zero points that a node reads as one number must have one element. */
ort_status ort_codes_need_single(const ort_shaping *s, const int *inputs, int count,
                                 ort_error *err);

/* The sum of two, as QLinearAdd rounds it (codes.h of the kernels). */
ort_byte_sum ort_codes_sum(const ort_codes *a, const ort_codes *b, const ort_codes *y);

/* What the raw bytes 0..255 stand for. */
void ort_codes_values(const ort_codes *codes, float values[256]);
/* What n of them stand for. */
void ort_codes_numbers(const ort_kernels *k, const ort_codes *codes, const uint8_t *bytes,
                       float *values, int64_t n);
/* Bytes of numbers: round(value / scale) + zero, half to even, saturated. */
void ort_codes_quantize(const ort_kernels *k, const ort_codes *codes, const float *values,
                        uint8_t *bytes, int64_t n);
/* The same for codes of 8 and 16 bits: round(value / scale) + zero, as QuantizeLinear has them, and
 * (code - zero) * scale, as DequantizeLinear has it. */
void ort_codes_give(const ort_kernels *k, ort_dtype dtype, float scale, int zero,
                    const float *values, void *codes, int64_t n);
void ort_codes_take(const ort_kernels *k, ort_dtype dtype, float scale, int zero,
                    const void *codes, float *values, int64_t n);
/* By the bytes of `from` those of `to` for the same values; true: where that changes none. */
bool ort_codes_table(const ort_codes *from, const ort_codes *to, uint8_t table[256]);

#endif
