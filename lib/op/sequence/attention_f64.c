/* attention_f64.c - attention in double, plain loops. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/sequence/attention_common.h"

#define REAL double
#define CORE ort_attention_core_f64

static size_t packed_bytes(const ort_kernels *k, int64_t rows, int64_t T, int64_t D)
{
    (void)k, (void)rows, (void)T, (void)D;
    return 0;
}

static void pack_keys(const ort_attention_run *run, const double *keys, void *packed)
{
}

static void packed_products(const ort_attention_run *run, int64_t rows, int64_t first, int64_t keys,
                            const double *q, const void *packed, double *scores, int64_t step)
{
}

static void key_products(const ort_attention_run *run, int64_t rows, int64_t keys, const double *q,
                         const double *k, double *scores)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j++) {
            double sum = 0;
            for (int64_t d = 0; d < run->D; d++)
                sum += q[i * run->q.row + d] * k[j * run->k.row + d];
            scores[i * run->T + j] = run->scale * sum;
        }
}

static void weigh(const ort_attention_run *run, int64_t rows, int64_t keys, const double *scores,
                  const double *v, double *y)
{
    for (int64_t i = 0; i < rows; i++) {
        double *row = y + i * run->y.row;
        memset(row, 0, (size_t)run->E * sizeof *row);
        for (int64_t j = 0; j < keys; j++)
            for (int64_t e = 0; e < run->E; e++)
                row[e] += scores[i * run->T + j] * v[j * run->v.row + e];
    }
}

static void scale_row(const ort_kernels *k, const double *x, int64_t n, double scale, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = scale * x[i];
}

static bool add_row(const ort_kernels *k, double *row, const double *mask, int64_t n)
{
    bool any = false;
    for (int64_t j = 0; j < n; j++) {
        any |= mask[j] != -INFINITY;
        row[j] += mask[j];
    }
    return any;
}

static void cap_row(const ort_kernels *k, double *row, int64_t n, double cap)
{
    for (int64_t i = 0; i < n; i++)
        row[i] = cap * tanh(row[i] / cap);
}

static void softmax_row(const ort_kernels *k, double *row, int64_t n)
{
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        top = row[i] > top ? row[i] : top;
    for (int64_t i = 0; i < n; i++)
        sum += row[i] = exp(row[i] - top);
    for (int64_t i = 0; i < n; i++)
        row[i] /= sum;
}

#include "op/sequence/attention_core.inc"
