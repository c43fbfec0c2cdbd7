/* num.c - conversions between binary32/64 and the narrow floating-point formats.
 *
 * One routine rounds a double to "magnitude code": exponent field and mantissa of a format as one
 * integer, with gradual underflow and no upper bound. Codes grow with the value, so overflow is a
 * comparison, and a mantissa that rounds up carries into the exponent by itself. The formats differ
 * only in the numbers of their row. */
#include "base/num.h"

#include <math.h>

#include "ort.h"

/* Value sign * 2^q * round(|value| / 2^q) as a code; `mantissa` stored bits, `smallest` exponent of
 * the smallest normal number. NaN and infinity are the caller's. */
static uint32_t magnitude_code(double value, int mantissa, int smallest)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int field = (int)(bits >> 52 & 0x7ff);
    if (field == 0)
        return 0; /* double denormals are far below every target */
    int exponent = field - 1023;
    uint64_t significand = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    int unit = (exponent > smallest ? exponent : smallest) - mantissa;
    int shift = unit - (exponent - 52);
    if (shift > 54)
        return 0;
    uint64_t rounded = significand >> shift, half = UINT64_C(1) << (shift - 1);
    uint64_t rest = significand & ((half << 1) - 1);
    if (rest > half || (rest == half && (rounded & 1)))
        rounded++;
    uint32_t above = exponent > smallest ? (uint32_t)(exponent - smallest) : 0;
    return (above << mantissa) + (uint32_t)rounded;
}

float ort_f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
    if (exponent == 0)
        return ort_float_from_bits(sign |
                                   ort_bits_from_float((float)mantissa * 0x1p-24f));
    if (exponent == 31)
        return ort_float_from_bits(sign | 0x7f800000 | mantissa << 13);
    return ort_float_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

/* Four at once, in the compiler's portable vectors: the same without branches. */
typedef uint16_t halves4 __attribute__((vector_size(8)));
typedef int32_t ints4 __attribute__((vector_size(16)));
typedef uint32_t words4 __attribute__((vector_size(16)));
typedef float floats4 __attribute__((vector_size(16)));

static words4 widen_four(words4 half)
{
    const words4 is_small = (words4)((half & 0x7c00) == 0), is_last = (half & 0x7c00) == 0x7c00;
    const floats4 small = __builtin_convertvector((ints4)(half & 0x3ff), floats4) * 0x1p-24f;
    const words4 large = ((half & 0x7fff) << 13) + 0x38000000 + (is_last & 0x38000000);
    return (half & 0x8000) << 16 | (is_small & (words4)small) | (~is_small & large);
}

void ort_f16s_to_f32(const void *halves, void *out, size_t count)
{
    const char *from = halves;
    char *to = out;
    for (; count >= 4; count -= 4, from += sizeof(halves4), to += sizeof(words4)) {
        halves4 half;
        memcpy(&half, from, sizeof half);
        const words4 bits = widen_four(__builtin_convertvector(half, words4));
        memcpy(to, &bits, sizeof bits);
    }
    for (; count > 0; count--, from += sizeof(uint16_t), to += sizeof(float)) {
        uint16_t half;
        memcpy(&half, from, sizeof half);
        const float value = ort_f16_to_f32(half);
        memcpy(to, &value, sizeof value);
    }
}

uint16_t ort_f32_to_f16(float value)
{
    uint32_t bits = ort_bits_from_float(value), sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) { /* below 2^-14: the sum's last bit is worth 2^-24 */
        float sum = ort_float_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (ort_bits_from_float(sum) - 0x3f000000));
    }
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | (magnitude - 0x38000000) >> 13);
}

uint16_t ort_f64_to_f16(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value))
        return sign | 0x7e00;
    uint32_t code = isinf(value) ? 0x7c00 : magnitude_code(value, 10, -14);
    return sign | (uint16_t)(code < 0x7c00 ? code : 0x7c00);
}

uint16_t ort_f32_to_bf16(float value)
{
    uint32_t bits = ort_bits_from_float(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)((bits >> 16 & 0x8000) | 0x7fc0);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t ort_f64_to_bf16(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value))
        return sign | 0x7fc0;
    uint32_t code = isinf(value) ? 0x7f80 : magnitude_code(value, 7, -126);
    return sign | (uint16_t)(code < 0x7f80 ? code : 0x7f80);
}

typedef struct minifloat {
    int mantissa;        /* stored bits */
    int bias;
    int sign_shift;      /* position of the sign bit */
    uint8_t largest;     /* magnitude code of the largest finite value */
    uint8_t nan;         /* code of NaN; 0: the format has none */
    uint8_t overflow;    /* code of an overflow without saturation */
    bool signed_special; /* NaN and infinity carry a sign; false: 0x80 is the only NaN */
} minifloat;

static const minifloat *find_minifloat(int kind)
{
    static const minifloat e4m3fn = {3, 7, 7, 0x7e, 0x7f, 0x7f, true};
    static const minifloat e4m3fnuz = {3, 8, 7, 0x7f, 0x80, 0x80, false};
    static const minifloat e5m2 = {2, 15, 7, 0x7b, 0x7e, 0x7c, true};
    static const minifloat e5m2fnuz = {2, 16, 7, 0x7f, 0x80, 0x80, false};
    static const minifloat e2m1 = {1, 1, 3, 0x7, 0, 0x7, true};
    static const minifloat e2m3 = {3, 1, 5, 0x1f, 0, 0x1f, true};
    static const minifloat e3m2 = {2, 3, 5, 0x1f, 0, 0x1f, true};
    switch (kind) {
    case ORT_DTYPE_FLOAT8E4M3FN: return &e4m3fn;
    case ORT_DTYPE_FLOAT8E4M3FNUZ: return &e4m3fnuz;
    case ORT_DTYPE_FLOAT8E5M2: return &e5m2;
    case ORT_DTYPE_FLOAT8E5M2FNUZ: return &e5m2fnuz;
    case ORT_DTYPE_FLOAT4E2M1: return &e2m1;
    case ORT_DTYPE_FLOAT6E2M3: return &e2m3;
    case ORT_DTYPE_FLOAT6E3M2: return &e3m2;
    default: return NULL;
    }
}

static float e8m0_to_f32(uint8_t bits)
{
    if (bits == 0xff)
        return ort_float_from_bits(0x7fc00000);
    return ort_float_from_bits(bits ? (uint32_t)bits << 23 : 0x00400000); /* 2^-127 is denormal */
}

float ort_minifloat_to_f32(int kind, uint8_t bits)
{
    if (kind == ORT_DTYPE_FLOAT8E8M0)
        return e8m0_to_f32(bits);
    const minifloat *format = find_minifloat(kind);
    if (!format)
        return 0.0f;
    uint32_t code = bits & ((1u << format->sign_shift) - 1);
    uint32_t sign = (uint32_t)(bits >> format->sign_shift & 1) << 31;
    if (!format->signed_special && bits == 0x80)
        return ort_float_from_bits(0xffc00000);
    if (code > format->largest) {
        bool infinite = format->overflow != format->nan && code == format->overflow;
        return ort_float_from_bits(sign | (infinite ? 0x7f800000 : 0x7fc00000));
    }
    uint32_t field = code >> format->mantissa, fraction = code & ((1u << format->mantissa) - 1);
    /* Every value is a normal binary32: built from bits, so flushed denormals don't matter. */
    uint32_t value;
    if (field)
        value = (field + 127 - (uint32_t)format->bias) << 23 | fraction << (23 - format->mantissa);
    else
        value = ort_bits_from_float((float)fraction *
                                    ort_float_from_bits((uint32_t)(128 - format->bias -
                                                                   format->mantissa) << 23));
    return ort_float_from_bits(sign | value);
}

static uint8_t encode(const minifloat *format, double value, bool saturate)
{
    uint8_t sign = signbit(value) ? (uint8_t)(1u << format->sign_shift) : 0;
    if (isnan(value)) {
        if (!format->nan) /* E2M1, E2M3, E3M2 have no NaN: zero with the sign inverted stands in */
            return sign ? 0 : (uint8_t)(1u << format->sign_shift);
        return format->signed_special ? sign | format->nan : format->nan;
    }
    uint32_t code = isinf(value) ? 0x100 : magnitude_code(value, format->mantissa,
                                                          1 - format->bias);
    if (code > format->largest) {
        code = saturate ? format->largest : format->overflow;
        if (!saturate && !format->signed_special)
            return format->nan;
    }
    if (code == 0 && !format->signed_special)
        return 0; /* there 0x80 is NaN: no negative zero */
    return (uint8_t)(sign | code);
}

uint8_t ort_f64_to_minifloat(int kind, double value, bool saturate)
{
    if (kind == ORT_DTYPE_FLOAT8E8M0)
        return ort_f32_to_e8m0((float)value, 'u', saturate);
    const minifloat *format = find_minifloat(kind);
    return format ? encode(format, value, saturate) : 0;
}

uint8_t ort_f32_to_minifloat(int kind, float value, bool saturate)
{
    if (kind == ORT_DTYPE_FLOAT8E8M0)
        return ort_f32_to_e8m0(value, 'u', saturate);
    return ort_f64_to_minifloat(kind, (double)value, saturate);
}

/* By the table of Cast: what lies outside of 2^-127 .. 2^127, zero and infinity with it, becomes
 * the nearer end when saturating and else NaN. The sign is ignored. A tie goes up; below 2^-126 so
 * does all above 2^-127, where the encoding of ONNX's own converter has its odd case. */
uint8_t ort_f32_to_e8m0(float value, char round_mode, bool saturate)
{
    uint32_t bits = ort_bits_from_float(value);
    uint32_t exponent = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
    if (exponent == 0xff && fraction)
        return 0xff;
    if (exponent >= 0xfe && (exponent == 0xff || fraction))
        return saturate ? 0xfe : 0xff;
    if (exponent == 0 && fraction < 0x400000)
        return saturate ? 0 : 0xff;
    bool above = exponent ? fraction != 0 : fraction > 0x400000;
    bool up = round_mode == 'u' ? above
              : round_mode == 'n' && (exponent ? (fraction & 0x400000) != 0 : above);
    return (uint8_t)(exponent + (up ? 1 : 0));
}
