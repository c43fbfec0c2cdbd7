/* widened.h - the product of float rows and a weight that is stored in some other form.
 *
 * y[i][j] = bias[j] + sum over k of a[i][k] * w[j][k]. The weight is never held as floats as a
 * whole: a task asks for pieces of a few rows of it, puts them into panels and multiplies all rows
 * of A.
 */
#ifndef ORT_OP_SHARED_WIDENED_H
#define ORT_OP_SHARED_WIDENED_H

#include "op/op.h"

typedef struct ort_widened {
    int64_t m, rows, depth; /* a [m][depth], w [rows][depth], y [m][rows] */
    const float *a;
    float *y;
    /* Elements [first, first + n) of weight row `row` to out; called from several threads. */
    void (*row)(const void *weight, int64_t row, int64_t first, int64_t n, float *out);
    const void *weight;
    const ort_tensor *bias; /* any float type; NULL: none */
    int64_t bias_first;     /* its element for row 0 */
} ort_widened;

/* Scratch that each thread needs (ort_shaping.thread_bytes). */
size_t ort_widened_thread_bytes(const ort_kernels *k);
void ort_widened_multiply(const ort_call *call, const ort_widened *w);

#endif
