/* integer.c - widening, packing and the threaded integer product. */
#pragma GCC optimize("O3") /* vectorize the packing */

#include "op/shared/integer.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"

enum { TILE_ROWS = 84, TILE_COLUMNS = 256, WIDEN_ROWS = 32 };

ort_bytes ort_bytes_of(const ort_tensor *t, int64_t row, int64_t column)
{
    return (ort_bytes){t->data, t->dtype == ORT_DTYPE_INT8, row, column};
}

ort_zeros ort_zeros_of(const ort_tensor *t)
{
    if (!t)
        return (ort_zeros){NULL, false, 1};
    int64_t count = ort_tensor_count(t);
    return (ort_zeros){count ? t->data : NULL, t->dtype == ORT_DTYPE_INT8, count};
}

static int64_t pairs_of(int64_t depth)
{
    return (depth + 1) / 2;
}

bool ort_integer_rows_bytes(int64_t m, int64_t depth, size_t *bytes)
{
    int64_t count;
    return ort_mul_i64(m, pairs_of(depth), &count) && ort_mul_size((size_t)count, 4, bytes);
}

bool ort_integer_packed_bytes(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes)
{
    int64_t nr = k->gemm.nri, columns, count;
    return ort_add_i64(n, nr - 1, &columns) &&
           ort_mul_i64(columns / nr * nr, pairs_of(depth), &count) &&
           ort_mul_size((size_t)count, 4, bytes);
}

static int byte_at(const ort_bytes *b, int64_t index)
{
    return b->is_signed ? ((const int8_t *)b->data)[index] : ((const uint8_t *)b->data)[index];
}

static void widen_rows(const ort_kernels *k, int64_t first, int64_t last, int64_t depth,
                       const ort_bytes *a, const ort_zeros *zeros, int16_t *rows)
{
    int64_t pairs = pairs_of(depth);
    for (int64_t i = first; i < last; i++) {
        int16_t *to = rows + i * 2 * pairs;
        int zero = ort_zero_at(zeros, i);
        if (a->column == 1)
            k->gemm.widen_s16(depth, (const char *)a->data + i * a->row, a->is_signed, zero, to);
        else
            for (int64_t kk = 0; kk < depth; kk++)
                to[kk] = (int16_t)(byte_at(a, i * a->row + kk * a->column) - zero);
        if (depth % 2)
            to[depth] = 0;
    }
}

typedef struct widen_job {
    const ort_kernels *k;
    int64_t depth;
    const ort_bytes *a;
    const ort_zeros *zeros;
    int16_t *rows;
} widen_job;

static void task_widen(void *arg, int64_t first, int64_t end, int thread)
{
    const widen_job *j = arg;
    widen_rows(j->k, first, end, j->depth, j->a, j->zeros, j->rows);
}

void ort_integer_rows(const ort_call *call, int64_t m, int64_t depth, const ort_bytes *a,
                      const ort_zeros *zeros, void *rows)
{
    widen_job j = {call->k, depth, a, zeros, rows};
    ort_call_range(call, m, WIDEN_ROWS, task_widen, &j);
}

enum { PACK_COLUMNS = 64 }; /* at least nri */

/* Two rows of B, or one and zeros, into a row of pairs. */
#define PACK_ROWS(type)                                                                            \
    do {                                                                                           \
        const type *first = (const type *)b->data + at;                                            \
        const type *second = both ? first + b->row : first;                                        \
        for (int64_t j = 0; j < width; j++) {                                                      \
            out[2 * j] = (int16_t)(first[j * b->column] - zero[j]);                                \
            out[2 * j + 1] = both ? (int16_t)(second[j * b->column] - zero[j]) : 0;                \
        }                                                                                          \
    } while (0)

void ort_integer_pack(const ort_kernels *k, int64_t depth, int64_t n, const ort_bytes *b,
                      const ort_zeros *zeros, void *packed)
{
    int64_t nr = k->gemm.nri;
    int16_t *out = packed;
    assert(nr <= PACK_COLUMNS);
    for (int64_t j0 = 0; j0 < n; j0 += nr) {
        int64_t width = ort_min_i64(nr, n - j0);
        int zero[PACK_COLUMNS];
        for (int64_t j = 0; j < width; j++)
            zero[j] = ort_zero_at(zeros, j0 + j);
        for (int64_t kk = 0; kk < depth; kk += 2, out += 2 * nr) {
            int64_t at = kk * b->row + j0 * b->column;
            bool both = kk + 1 < depth;
            if (b->is_signed)
                PACK_ROWS(int8_t);
            else
                PACK_ROWS(uint8_t);
            memset(out + 2 * width, 0, (size_t)(nr - width) * 2 * sizeof *out);
        }
    }
}

/* ---- the product */

size_t ort_integer_thread_bytes(const ort_kernels *k)
{
    return TILE_ROWS * TILE_COLUMNS * sizeof(int32_t);
}

typedef struct integer_job {
    const ort_call *call;
    int64_t m, n, pairs, row_tasks;
    const int32_t *rows, *packed;
    ort_integer_finish *finish;
    void *arg;
} integer_job;

static void task_multiply(void *arg, size_t task, int thread)
{
    const integer_job *j = arg;
    const ort_gemm_kernels *g = &j->call->k->gemm;
    int64_t row = (int64_t)task % j->row_tasks * TILE_ROWS;
    int64_t column = (int64_t)task / j->row_tasks * TILE_COLUMNS;
    int64_t m = ort_min_i64(TILE_ROWS, j->m - row), n = ort_min_i64(TILE_COLUMNS, j->n - column);
    int32_t *sums = ort_call_scratch(j->call, thread);
    ort_tile_i32 t = {.lda = j->pairs, .b_step = g->nri, .b_panel = j->pairs * g->nri, .c = sums,
                      .ldc = TILE_COLUMNS, .ldadd = TILE_COLUMNS};
    for (int64_t k0 = 0; k0 == 0 || k0 < j->pairs; k0 += g->kc) {
        t.a = j->rows + row * j->pairs + k0;
        t.b = j->packed + column * j->pairs + k0 * g->nri;
        t.add = k0 ? sums : NULL;
        g->i16(m, n, ort_min_i64(g->kc, j->pairs - k0), &t);
    }
    j->finish(j->arg, row, column, m, n, sums, TILE_COLUMNS);
}

void ort_integer_multiply(const ort_call *call, int64_t m, int64_t n, int64_t depth,
                          const void *rows, const void *packed, ort_integer_finish *finish,
                          void *arg)
{
    if (m <= 0 || n <= 0)
        return;
    integer_job j = {call, m, n, pairs_of(depth), (m + TILE_ROWS - 1) / TILE_ROWS, rows, packed,
                     finish, arg};
    int64_t column_tasks = (n + TILE_COLUMNS - 1) / TILE_COLUMNS;
    ort_call_parallel(call, (size_t)(j.row_tasks * column_tasks), task_multiply, &j);
}
