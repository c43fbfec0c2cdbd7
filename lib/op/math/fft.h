/* fft.h - the discrete Fourier transform: of any length in double precision, of most in single.
 *
 * Lengths whose prime factors are at most 13 use a mixed-radix transform, others Bluestein's
 * convolution (IEEE Trans. Audio Electroacoust. 18, 1970) over a power of two. Complex numbers are
 * pairs (re, im).
 */
#ifndef ORT_OP_MATH_FFT_H
#define ORT_OP_MATH_FFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ort_complex {
    double re, im;
} ort_complex;

typedef struct ort_complex_single {
    float re, im;
} ort_complex_single;

typedef struct ort_fft ort_fft;
typedef void *ort_fft_alloc(void *arg, size_t bytes);

/* A transform of n >= 1 points; NULL when memory is exhausted or the work was stopped. Nothing has
 * to be freed singly. */
ort_fft *ort_fft_new(int64_t n, ort_fft_alloc *alloc, void *arg);
int64_t ort_fft_length(const ort_fft *fft);
/* Complex numbers of scratch that ort_fft_run needs. */
int64_t ort_fft_scratch(const ort_fft *fft);
/* out[k] = sum over j of in[j] * exp(-+2*pi*i*j*k/n); the inverse is not scaled. in and out
 * differ. */
void ort_fft_run(const ort_fft *fft, const ort_complex *in, ort_complex *out, bool inverse,
                 ort_complex *scratch);
/* exp(-2*pi*i*k/n) for k < n; NULL where the length has a prime factor above 13. */
const ort_complex *ort_fft_roots(const ort_fft *fft);

/* The same transform with all arithmetic in single precision, where there are roots. Both x and y
 * are overwritten; the result is in y. */
bool ort_fft_has_single(const ort_fft *fft);
void ort_fft_run_single(const ort_fft *fft, ort_complex_single *x, ort_complex_single *y,
                        bool inverse);

#endif
