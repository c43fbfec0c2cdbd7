/* codes_scalar.c - kernels of 8-bit codes in plain C: the reference of every other tier. */
#include "kernel/codes.h"

#include <math.h>

#include "kernel/contract.h"

static int code_of(uint8_t bits, bool is_signed)
{
    return is_signed ? (int8_t)bits : bits;
}

static uint8_t rounded(float v, bool is_signed)
{
    float low = is_signed ? -128.0f : 0.0f, high = low + 255.0f, q = rintf(v);
    q = q > low ? q : low; /* NaN too */
    return (uint8_t)(int)(q < high ? q : high);
}

static void look_up(const uint8_t *x, uint8_t *y, size_t n, const uint8_t *table)
{
    size_t i = 0;
    assert(ort_kernel_may_share(x, 1, y, 1, n));
    for (; i + 4 <= n; i += 4) {
        uint8_t a = table[x[i]], b = table[x[i + 1]], c = table[x[i + 2]], d = table[x[i + 3]];
        y[i] = a;
        y[i + 1] = b;
        y[i + 2] = c;
        y[i + 3] = d;
    }
    for (; i < n; i++)
        y[i] = table[x[i]];
}

static void choose(const uint8_t *c, const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = c[i] ? a[i] : b[i];
}

static void add(const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n, const ort_byte_sum *s)
{
    assert(ort_kernel_may_share(a, 1, y, 1, n) && ort_kernel_may_share(b, 1, y, 1, n));
    for (size_t i = 0; i < n; i++) {
        float x = (float)code_of(a[i], s->is_signed), w = (float)code_of(b[i], s->is_signed);
        y[i] = rounded(fmaf(x, s->a_ratio, fmaf(w, s->b_ratio, s->fixed)), s->is_signed);
    }
}

static void multiply(const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n,
                     const ort_byte_product *p)
{
    assert(ort_kernel_may_share(a, 1, y, 1, n) && ort_kernel_may_share(b, 1, y, 1, n));
    for (size_t i = 0; i < n; i++) {
        float x = (float)(code_of(a[i], p->is_signed) - p->a_zero);
        float w = (float)(code_of(b[i], p->is_signed) - p->b_zero);
        y[i] = rounded(x * w * p->ratio + p->zero, p->is_signed);
    }
}

static void multiply_rows(const uint8_t *a, const uint8_t *b, uint8_t *y, size_t rows,
                          const ort_byte_product *p)
{
    for (size_t r = 0; r < rows; r++)
        multiply(a + r * ORT_BYTE_ROW, b, y + r * ORT_BYTE_ROW, ORT_BYTE_ROW, p);
}

static int64_t sum(const uint8_t *x, size_t n, bool is_signed)
{
    int64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += code_of(x[i], is_signed);
    return total;
}

static int64_t sum_squares(const uint8_t *x, size_t n, bool is_signed)
{
    int64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += code_of(x[i], is_signed) * code_of(x[i], is_signed);
    return total;
}

static void add_rows(int32_t *sums, const uint8_t *x, size_t rows, size_t stride, size_t n,
                     bool is_signed)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < n; j++)
            sums[j] += code_of(x[r * stride + j], is_signed);
}

static int largest(const uint8_t *x, size_t n, uint8_t flip)
{
    int top = 0;
    assert(n > 0);
    for (size_t i = 0; i < n; i++)
        top = (x[i] ^ flip) > top ? x[i] ^ flip : top;
    return top;
}

static uint64_t exp_sum(const uint8_t *x, size_t n, int top, uint8_t flip,
                        const ort_byte_exps *exps)
{
    uint64_t a = 0, b = 0;
    const uint64_t *whole = exps->whole + (255 - top);
    size_t i = 0;
    assert(top >= 0 && top <= 255);
    for (; i + 2 <= n; i += 2) {
        a += whole[x[i] ^ flip];
        b += whole[x[i + 1] ^ flip];
    }
    return i < n ? a + b + whole[x[i] ^ flip] : a + b;
}

static void round_f64(const double *x, double factor, int zero, bool is_signed, uint8_t *y,
                      size_t n)
{
    const long least = is_signed ? -128 : 0;
    for (size_t i = 0; i < n; i++) {
        double v = x[i] * factor;
        v = v < 1e6 ? v : 1e6;
        long code = lrint(v > -1e6 ? v : -1e6) + zero;
        code = code > least ? code : least;
        y[i] = (uint8_t)(code < least + 255 ? code : least + 255);
    }
}

void ort_code_plug_scalar(ort_code_kernels *table)
{
    *table = (ort_code_kernels){
        .look_up = look_up, .choose = choose, .add = add, .multiply = multiply,
        .multiply_rows = multiply_rows,
        .sum = sum, .sum_squares = sum_squares, .add_rows = add_rows, .largest = largest,
        .exp_sum = exp_sum, .round_f64 = round_f64,
    };
}
