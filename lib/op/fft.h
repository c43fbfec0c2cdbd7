/* fft.h - the discrete Fourier transform of any length in double precision.
 *
 * Lengths whose prime factors are at most 13 use a mixed-radix transform, others Bluestein's
 * convolution (IEEE Trans. Audio Electroacoust. 18, 1970) over a power of two. Complex numbers are
 * pairs (re, im).
 */
#ifndef ORT_OP_FFT_H
#define ORT_OP_FFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ort_complex {
    double re, im;
} ort_complex;

typedef struct ort_fft ort_fft;
typedef void *ort_fft_alloc(void *arg, size_t bytes);

/* A transform of n >= 1 points; NULL when memory is exhausted. Nothing has to be freed singly. */
ort_fft *ort_fft_new(int64_t n, ort_fft_alloc *alloc, void *arg);
int64_t ort_fft_length(const ort_fft *fft);
/* Complex numbers of scratch that ort_fft_run needs. */
int64_t ort_fft_scratch(const ort_fft *fft);
/* out[k] = sum over j of in[j] * exp(-+2*pi*i*j*k/n); the inverse is not scaled. in and out
 * differ. */
void ort_fft_run(const ort_fft *fft, const ort_complex *in, ort_complex *out, bool inverse,
                 ort_complex *scratch);

#endif
