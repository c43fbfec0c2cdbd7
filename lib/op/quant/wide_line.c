/* wide_line.c - sums of convolutions of 16-bit codes, a line at a time, to what follows on them. */
#pragma GCC optimize("O3") /* vectorize fills */

#include <math.h>

#include "op/quant/wide_conv.h"
#include "op/shared/codes.h"

static void fill(int64_t n, double value, double *line)
{
    for (int64_t i = 0; i < n; i++)
        line[i] = value;
}

char *ort_wide_open_line(void *space, ort_wide_line *line)
{
    line->scale = space;
    line->bias = line->scale + ORT_WIDE_COLUMNS;
    line->numbers = (float *)(void *)(line->bias + ORT_WIDE_COLUMNS);
    line->codes = (uint16_t *)(void *)(line->numbers + ORT_WIDE_COLUMNS);
    fill(ORT_WIDE_COLUMNS, 1, line->scale);
    return (char *)(line->codes + ORT_WIDE_COLUMNS);
}

/* Sums of one block are added to their bias, and only rounded then. */
void ort_wide_numbers(const ort_wide_job *j, const ort_wide_line *line, int64_t map,
                      const int32_t *sums, int64_t n)
{
    const ort_gemm_kernels *g = &j->call->k->gemm;
    fill(n, j->bias[map], line->bias);
    g->wide_add(n, j->scale[map], sums, line->bias);
    g->wide_scale(n, line->bias, line->scale, NULL, line->numbers);
}

const char *ort_wide_follow(const ort_wide_job *j, const ort_wide_line *line, int64_t n)
{
    const ort_kernels *k = j->call->k;
    const ort_wide_conv *s = j->s;
    float *numbers = line->numbers;
    if (s->low > -INFINITY || s->high < INFINITY)
        k->math.unary[ORT_UNARY_CLIP](numbers, numbers, (size_t)n, s->low, s->high);
    if (s->act >= 0)
        k->math.unary[s->act](numbers, numbers, (size_t)n, s->act_a, s->act_b);
    if (j->y->dtype == ORT_DTYPE_FLOAT)
        return (const char *)numbers;
    ort_codes_give(k, j->y->dtype, j->y_scale, j->y_zero, numbers, line->codes, n);
    return (const char *)line->codes;
}
