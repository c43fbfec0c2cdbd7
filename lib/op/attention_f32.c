/* attention_f32.c - attention in float. Many query rows multiply packed keys; few read them in
 * place, one dot product per key. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/attention_common.h"
#include "op/matrix.h"

#define REAL float
#define CORE ort_attention_core_f32
#define FEW_ROWS 8

static size_t packed_bytes(const ort_kernels *k, int64_t rows, int64_t T, int64_t D)
{
    size_t bytes = 0;
    if (rows <= FEW_ROWS || !ort_matrix_packed_bytes_f32(k, D, T, &bytes))
        return 0;
    return ort_round_up(bytes, 64);
}

static void pack_keys(const ort_attention_run *run, const float *keys, void *packed)
{
    ort_matrix_pack_f32(run->call->k, run->D, run->T, keys, 1, run->k.row, packed);
}

static void key_products(const ort_attention_run *run, int64_t rows, int64_t keys, const float *q,
                         const float *k, const void *packed, float *scores)
{
    const ort_kernels *table = run->call->k;
    if (packed) {
        ort_epilogue e = ort_epilogue_none();
        e.alpha = (float)run->scale;
        ort_matrix_block_f32(table, rows, keys, run->D, q, run->q.row, packed, scores, run->T, &e);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j++)
            scores[i * run->T + j] = (float)run->scale *
                                     table->math.dot(q + i * run->q.row, k + j * run->k.row,
                                                     (size_t)run->D);
}

static void weigh(const ort_attention_run *run, int64_t rows, int64_t keys, const float *scores,
                  const float *v, float *y)
{
    if (keys == 0) {
        for (int64_t i = 0; i < rows; i++)
            memset(y + i * run->y.row, 0, (size_t)run->E * sizeof *y);
        return;
    }
    ort_matrix_block_plain_f32(run->call->k, rows, run->E, keys, scores, run->T, v, run->v.row, y,
                               run->y.row, NULL);
}

static void cap_row(const ort_kernels *k, float *row, int64_t n, float cap)
{
    k->math.unary[ORT_UNARY_SCALED_TANH](row, row, (size_t)n, cap, 1 / cap);
}

static void softmax_row(const ort_kernels *k, float *row, int64_t n)
{
    k->math.softmax(row, row, (size_t)n);
}

#include "op/attention_core.inc"
