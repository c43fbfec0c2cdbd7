/* attention_f32.c - attention in float. Many query rows multiply packed keys; few read them in
 * place, four keys at a time. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/sequence/attention_common.h"
#include "op/shared/matrix.h"

#define REAL float
#define CORE ort_attention_core_f32
#define FEW_ROWS 8
#define BLEND_ROWS 4 /* from here on a tile of rows reads the values less often */
#define KEY_TILE 512 /* whole panels; 64 rows of scores stay in the second-level cache */
#define TILE_STEP (KEY_TILE + 16) /* between rows of them, which so use all sets of a cache */
#define LONG_ROW 1024

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

/* Scores [rows][step] of packed keys from `first` on, a whole panel; q [rows][D], scaled. */
static void packed_products(const ort_attention_run *run, int64_t rows, int64_t first, int64_t keys,
                            const float *q, const void *packed, float *scores, int64_t step)
{
    ort_product_f32 p = {.m = rows, .n = keys, .depth = run->D, .a = q, .lda = run->D,
                         .packed = (const float *)packed + first * run->D, .c = scores,
                         .ldc = step};
    ort_matrix_block_f32(run->call->k, &p);
}

static void key_products(const ort_attention_run *run, int64_t rows, int64_t keys, const float *q,
                         const float *k, float *scores)
{
    const ort_kernels *table = run->call->k;
    for (int64_t i = 0; i < rows; i++)
        table->gemm.dots_f32(keys, run->D, q + i * run->q.row, k, run->k.row, (float)run->scale,
                             scores + i * run->T);
}

/* Y = P V, or with `more` Y += P V: P [rows][step]. */
static void weigh_values(const ort_attention_run *run, int64_t rows, int64_t keys,
                         const float *scores, int64_t step, const float *v, bool more, float *y)
{
    ort_epilogue e = ort_epilogue_none();
    e.add = more ? y : NULL;
    e.ldadd = run->y.row;
    ort_product_f32 p = {.m = rows, .n = run->E, .depth = keys, .a = scores, .lda = step, .b = v,
                         .row = run->v.row, .column = 1, .c = y, .ldc = run->y.row,
                         .epilogue = &e};
    ort_matrix_block_f32(run->call->k, &p);
}

static void weigh(const ort_attention_run *run, int64_t rows, int64_t keys, const float *scores,
                  const float *v, float *y)
{
    if (keys == 0) {
        for (int64_t i = 0; i < rows; i++)
            memset(y + i * run->y.row, 0, (size_t)run->E * sizeof *y);
        return;
    }
    if (rows < BLEND_ROWS) {
        for (int64_t i = 0; i < rows; i++)
            run->call->k->gemm.blend_f32(keys, run->E, scores + i * run->T, v, run->v.row,
                                         y + i * run->y.row);
        return;
    }
    weigh_values(run, rows, keys, scores, run->T, v, false, y);
}

static float max_row(const ort_kernels *k, const float *row, int64_t n)
{
    return (float)k->math.reduce[ORT_ACCUM_MAX](row, (size_t)n);
}

static float exp_row(const ort_kernels *k, float *row, int64_t n, float center)
{
    return k->math.exp_sum(row, row, (size_t)n, center);
}

static float exp_of(float x) { return expf(x); }

static void scale_row(const ort_kernels *k, const float *x, int64_t n, float scale, float *y)
{
    k->math.binary[ORT_BINARY_MUL](x, &scale, y, (size_t)n, ORT_FORM_VS);
}

static bool add_row(const ort_kernels *k, float *row, const float *mask, int64_t n)
{
    k->math.binary[ORT_BINARY_ADD](row, mask, row, (size_t)n, ORT_FORM_VV);
    return max_row(k, mask, n) != -INFINITY;
}

static void cap_row(const ort_kernels *k, float *row, int64_t n, float cap)
{
    k->math.unary[ORT_UNARY_SCALED_TANH](row, row, (size_t)n, cap, 1 / cap);
}

static void softmax_row(const ort_kernels *k, float *row, int64_t n)
{
    k->math.softmax(row, row, (size_t)n);
}

#include "op/sequence/attention_core.inc"
