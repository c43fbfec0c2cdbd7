/* fft_single.c - the transform in single precision, see fft.h.
 *
 * Decimation in frequency without a sorting step (Stockham), the arithmetic of each pass in the
 * order of FFTPACK (Swarztrauber, in: Parallel Computations, 1982), which numpy's transform of
 * complex64 follows too: what cancels leaves the same rounding errors. Factors are 4s, then a 2
 * that goes first, then odd primes in rising order. A pass reads x as [l1][radix][ido] and writes
 * [radix][l1][ido], where l1 is the product of the radices before, and ido that of those behind.
 */
#include "op/math/fft.h"

#pragma GCC optimize("O3") /* vectorize the butterflies */

#include <string.h>

#include "base/budget.h"

enum { MOST_FACTORS = 64, LARGEST_RADIX = 13 };

typedef ort_complex_single number;

typedef struct pass {
    const number *x;
    number *y;
    const ort_complex *root; /* exp(-2*pi*i*k/n), k < n */
    int64_t n, l1, ido;
    int radix;
} pass;

static number add(number a, number b) { return (number){a.re + b.re, a.im + b.im}; }
static number subtract(number a, number b) { return (number){a.re - b.re, a.im - b.im}; }

/* Times exp(-2*pi*i*k/n), except by one, which must not turn infinities into NaN. */
static number turned(const pass *p, number a, int64_t k)
{
    if (k == 0)
        return a;
    float re = (float)p->root[k].re, im = (float)p->root[k].im;
    return (number){a.re * re - a.im * im, a.re * im + a.im * re};
}

static number *output(const pass *p, int64_t k, int64_t i, int j)
{
    return &p->y[i + p->ido * (k + p->l1 * j)];
}

static void pass2(const pass *p, const number *x, int64_t k, int64_t i)
{
    number a = x[0], b = x[p->ido];
    *output(p, k, i, 0) = add(a, b);
    *output(p, k, i, 1) = turned(p, subtract(a, b), p->l1 * i);
}

static void pass4(const pass *p, const number *x, int64_t k, int64_t i)
{
    number sum_even = add(x[0], x[2 * p->ido]), even = subtract(x[0], x[2 * p->ido]);
    number sum_odd = add(x[p->ido], x[3 * p->ido]), odd = subtract(x[p->ido], x[3 * p->ido]);
    number quarter = {odd.im, -odd.re};
    *output(p, k, i, 0) = add(sum_even, sum_odd);
    *output(p, k, i, 1) = turned(p, add(even, quarter), p->l1 * i);
    *output(p, k, i, 2) = turned(p, subtract(sum_even, sum_odd), 2 * p->l1 * i);
    *output(p, k, i, 3) = turned(p, subtract(even, quarter), 3 * p->l1 * i);
}

/* Any odd radix: inputs q and radix - q meet as sum and difference, which serve two outputs. */
static void pass_odd(const pass *p, const number *x, int64_t k, int64_t i)
{
    number sum[LARGEST_RADIX / 2 + 1], difference[LARGEST_RADIX / 2 + 1], all = x[0];
    int half = p->radix / 2;
    int64_t unit = p->n / p->radix;
    for (int q = 1; q <= half; q++) {
        number a = x[q * p->ido], b = x[(p->radix - q) * p->ido];
        sum[q] = add(a, b);
        difference[q] = subtract(a, b);
        all = add(all, sum[q]);
    }
    *output(p, k, i, 0) = all;
    for (int u = 1; u <= half; u++) {
        number a = x[0], b = {0, 0};
        for (int q = 1; q <= half; q++) {
            const ort_complex *w = &p->root[u * q % p->radix * unit];
            float c = (float)w->re, s = (float)w->im;
            a.re += c * sum[q].re;
            a.im += c * sum[q].im;
            b.re += s * difference[q].im;
            b.im += s * difference[q].re;
        }
        b.re = -b.re;
        *output(p, k, i, u) = turned(p, add(a, b), u * p->l1 * i);
        *output(p, k, i, p->radix - u) = turned(p, subtract(a, b), (p->radix - u) * p->l1 * i);
    }
}

static void run_pass(const pass *p)
{
    for (int64_t k = 0; k < p->l1; k++)
        for (int64_t i = 0; i < p->ido; i++) {
            const number *x = p->x + i + p->ido * p->radix * k;
            if (p->radix == 2)
                pass2(p, x, k, i);
            else if (p->radix == 4)
                pass4(p, x, k, i);
            else
                pass_odd(p, x, k, i);
        }
}

static int find_radices(int64_t n, int *radix)
{
    int count = 0;
    for (; n % 4 == 0; n /= 4)
        radix[count++] = 4;
    if (n % 2 == 0) {
        n /= 2;
        radix[count] = radix[0];
        radix[0] = 2;
        count++;
    }
    for (int p = 3; p <= LARGEST_RADIX; p += 2)
        for (; n % p == 0; n /= p)
            radix[count++] = p;
    return count;
}

static void conjugate(number *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i].im = -x[i].im;
}

bool ort_fft_has_single(const ort_fft *fft)
{
    return ort_fft_roots(fft) != NULL;
}

void ort_fft_run_single(const ort_fft *fft, ort_complex_single *x, ort_complex_single *y,
                        bool inverse)
{
    int radix[MOST_FACTORS];
    int64_t n = ort_fft_length(fft);
    int count = find_radices(n, radix);
    pass p = {x, y, ort_fft_roots(fft), n, 1, n, 1};
    if (inverse)
        conjugate(x, n);
    for (int f = 0; f < count; f++) {
        p.radix = radix[f];
        p.ido /= p.radix;
        if (n >= ORT_PACE_STEPS && ort_budget_spend((uint64_t)n))
            return;
        run_pass(&p);
        p.l1 *= p.radix;
        number *next = p.y == y ? x : y; /* the two change places */
        p.x = p.y;
        p.y = next;
    }
    if (p.x != y)
        memcpy(y, x, (size_t)n * sizeof *y);
    if (inverse)
        conjugate(y, n);
}
