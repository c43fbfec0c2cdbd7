/* fft.c - see fft.h. Decimation in time, out of place: a stage gathers `radix` transforms of a
 * strided input and combines them. Roots of unity come from one table of n. A long transform looks
 * at the clock before each of its parts. */
#include "op/math/fft.h"

#pragma GCC optimize("O3") /* vectorize the butterflies */

#include <math.h>
#include <string.h>

#include "base/budget.h"

enum { MAX_FACTORS = 64, MAX_RADIX = 13, ROOT_STEPS = 16 };

struct ort_fft {
    int64_t n;
    int factor_count;
    int factor[MAX_FACTORS];
    ort_complex *root;       /* exp(-2*pi*i*k/n), k < n; Bluestein: exp(-pi*i*k*k/n) */
    struct ort_fft *inner;   /* Bluestein: the power of two */
    ort_complex *chirp;      /* Bluestein: transform of the conjugate chirp, of inner->n */
};

static ort_complex multiply(ort_complex a, ort_complex b)
{
    return (ort_complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* exp(-2*pi*i*k/n) with the angle reduced to an eighth of a turn. */
static ort_complex root_of_unity(int64_t k, int64_t n)
{
    const double turn = 6.283185307179586476925286766559;
    k %= n;
    bool lower = 2 * k > n; /* exp(-i*a) of the second half is the conjugate of the first */
    int64_t m = lower ? n - k : k;
    bool left = 4 * m > n;
    double a = turn * (double)(left ? n - 2 * m : 2 * m) / (2 * (double)n);
    double c = cos(a), s = sin(a);
    if (left)
        c = -c;
    return (ort_complex){c, lower ? s : -s};
}

static ort_fft *make_plain(int64_t n, ort_fft_alloc *alloc, void *arg)
{
    ort_fft *fft = alloc(arg, sizeof *fft);
    if (!fft || n > PTRDIFF_MAX / 64)
        return NULL;
    memset(fft, 0, sizeof *fft);
    fft->n = n;
    fft->root = alloc(arg, (size_t)n * sizeof *fft->root);
    if (!fft->root)
        return NULL;
    ort_pace pace = {0};
    for (int64_t k = 0; k < n; k++) {
        fft->root[k] = root_of_unity(k, n);
        if (ort_pace_over(&pace, ROOT_STEPS))
            return NULL;
    }
    return fft;
}

/* Factors of n into fft; false when one is beyond MAX_RADIX. */
static bool find_factors(ort_fft *fft, int64_t n)
{
    static const int primes[] = {4, 2, 3, 5, 7, 11, 13};
    for (int i = 0; i < 7; i++)
        for (; n % primes[i] == 0; n /= primes[i])
            fft->factor[fft->factor_count++] = primes[i];
    return n == 1;
}

static bool make_bluestein(ort_fft *fft, ort_fft_alloc *alloc, void *arg)
{
    int64_t m = 1, n = fft->n;
    while (m < 2 * n - 1)
        m *= 2;
    fft->inner = make_plain(m, alloc, arg);
    fft->chirp = alloc(arg, (size_t)m * sizeof *fft->chirp);
    ort_complex *wave = alloc(arg, (size_t)m * sizeof *wave);
    if (!fft->inner || !fft->chirp || !wave || !find_factors(fft->inner, m))
        return false;
    memset(wave, 0, (size_t)m * sizeof *wave);
    ort_pace pace = {0};
    for (int64_t k = 0; k < n && !ort_pace_over(&pace, ROOT_STEPS); k++) {
        int64_t square = (int64_t)((unsigned __int128)k * (uint64_t)k % (uint64_t)(2 * n));
        fft->root[k] = root_of_unity(square, 2 * n);
        wave[k] = (ort_complex){fft->root[k].re, -fft->root[k].im};
        if (k > 0)
            wave[m - k] = wave[k];
    }
    ort_fft_run(fft->inner, wave, fft->chirp, false, NULL);
    const ort_budget *budget = ort_budget_current();
    return !budget || ort_budget_stopped(budget, NULL) == ORT_OK; /* no half of a plan */
}

ort_fft *ort_fft_new(int64_t n, ort_fft_alloc *alloc, void *arg)
{
    ort_fft *fft = make_plain(n, alloc, arg);
    if (!fft)
        return NULL;
    if (!find_factors(fft, n)) {
        fft->factor_count = 0;
        if (!make_bluestein(fft, alloc, arg))
            return NULL;
    }
    return fft;
}

int64_t ort_fft_length(const ort_fft *fft)
{
    return fft->n;
}

const ort_complex *ort_fft_roots(const ort_fft *fft)
{
    return fft->inner ? NULL : fft->root;
}

int64_t ort_fft_scratch(const ort_fft *fft)
{
    return fft->inner ? 2 * fft->inner->n : 0;
}

/* ---- mixed radix */

static void combine2(ort_complex *out, int64_t m, const ort_complex *root, int64_t step)
{
    for (int64_t k = 0; k < m; k++) {
        ort_complex a = out[k], b = multiply(out[k + m], root[k * step]);
        out[k] = (ort_complex){a.re + b.re, a.im + b.im};
        out[k + m] = (ort_complex){a.re - b.re, a.im - b.im};
    }
}

static void combine4(ort_complex *out, int64_t m, const ort_complex *root, int64_t step)
{
    for (int64_t k = 0; k < m; k++) {
        ort_complex a = out[k], b = multiply(out[k + m], root[k * step]);
        ort_complex c = multiply(out[k + 2 * m], root[2 * k * step]);
        ort_complex d = multiply(out[k + 3 * m], root[3 * k * step]);
        ort_complex p = {a.re + c.re, a.im + c.im}, q = {a.re - c.re, a.im - c.im};
        ort_complex r = {b.re + d.re, b.im + d.im}, s = {b.re - d.re, b.im - d.im};
        out[k] = (ort_complex){p.re + r.re, p.im + r.im};
        out[k + m] = (ort_complex){q.re + s.im, q.im - s.re};
        out[k + 2 * m] = (ort_complex){p.re - r.re, p.im - r.im};
        out[k + 3 * m] = (ort_complex){q.re - s.im, q.im + s.re};
    }
}

/* step = n_total / (radix * m), so root[k * q * step] turns part q. */
static void combine_any(ort_complex *out, int64_t m, int radix, const ort_complex *root,
                        int64_t step)
{
    ort_complex t[MAX_RADIX];
    for (int64_t k = 0; k < m; k++) {
        for (int q = 0; q < radix; q++)
            t[q] = multiply(out[k + q * m], root[k * q * step]);
        for (int p = 0; p < radix; p++) {
            ort_complex sum = t[0];
            for (int q = 1; q < radix; q++) {
                ort_complex v = multiply(t[q], root[(int64_t)(p * q % radix) * m * step]);
                sum.re += v.re;
                sum.im += v.im;
            }
            out[k + p * m] = sum;
        }
    }
}

static void transform(const ort_fft *fft, const ort_complex *in, ort_complex *out, int64_t n,
                      int64_t stride, int level)
{
    if (n == 1) {
        out[0] = in[0];
        return;
    }
    int radix = fft->factor[level];
    int64_t m = n / radix;
    if (n >= ORT_PACE_STEPS && ort_budget_spend((uint64_t)n))
        return;
    for (int q = 0; q < radix; q++)
        transform(fft, in + q * stride, out + q * m, m, stride * radix, level + 1);
    if (radix == 4)
        combine4(out, m, fft->root, stride);
    else if (radix == 2)
        combine2(out, m, fft->root, stride);
    else
        combine_any(out, m, radix, fft->root, stride);
}

/* ---- Bluestein: the transform as a convolution with a chirp */

static void convolve(const ort_fft *fft, const ort_complex *in, ort_complex *out,
                     ort_complex *scratch)
{
    int64_t n = fft->n, m = fft->inner->n;
    ort_complex *a = scratch, *b = scratch + m;
    memset(a, 0, (size_t)m * sizeof *a);
    for (int64_t k = 0; k < n; k++)
        a[k] = multiply(in[k], fft->root[k]);
    transform(fft->inner, a, b, m, 1, 0);
    for (int64_t k = 0; k < m; k++) { /* the conjugate: a forward transform then inverts */
        a[k] = multiply(b[k], fft->chirp[k]);
        a[k].im = -a[k].im;
    }
    transform(fft->inner, a, b, m, 1, 0);
    for (int64_t k = 0; k < n; k++) {
        ort_complex v = {b[k].re / (double)m, -b[k].im / (double)m};
        out[k] = multiply(v, fft->root[k]);
    }
}

static void forward(const ort_fft *fft, const ort_complex *in, ort_complex *out,
                    ort_complex *scratch)
{
    if (fft->inner)
        convolve(fft, in, out, scratch);
    else
        transform(fft, in, out, fft->n, 1, 0);
}

void ort_fft_run(const ort_fft *fft, const ort_complex *in, ort_complex *out, bool inverse,
                 ort_complex *scratch)
{
    forward(fft, in, out, scratch);
    if (!inverse)
        return;
    /* The inverse runs the frequencies backwards. */
    for (int64_t a = 1, b = fft->n - 1; a < b; a++, b--) {
        ort_complex t = out[a];
        out[a] = out[b];
        out[b] = t;
    }
}
