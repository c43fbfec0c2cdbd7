/* integer_wide.c - products of 16-bit codes, by bytes or by pairs of int16, as the tier multiplies.
 *
 * In pairs, a sum of int16 by int8 stays within int32 for BLOCK products; blocks are added in
 * double, which is less than a hundredth of the work.
 */
#include "op/quant/integer_wide.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/codes.h"
#include "op/shared/integer.h"

enum {
    BLOCK = 510,              /* 2^15 * 2^7 of each: below 2^31 */
    COLUMNS = ORT_INTEGER_COLUMNS,
    ROWS = 8,                 /* of a tile of pairs */
    CODES = 1 << 15,          /* that a task takes apart */
};

static bool by_bytes(const ort_kernels *k)
{
    return k->gemm.word == 4;
}

/* Sums of n columns from `column` on, to elements of y from `at` on. */
static void give(const ort_kernels *k, const ort_wide_product *p, const double *sums,
                 int64_t column, int64_t n, int64_t at)
{
    const double *bias = p->bias ? p->bias + column : NULL;
    float line[COLUMNS];
    if (p->to == ORT_DTYPE_FLOAT) {
        k->gemm.wide_scale(n, sums, p->scale + column, bias, (float *)p->y + at);
        return;
    }
    const size_t width = (size_t)ort_dtype_get(p->to)->bits / 8;
    k->gemm.wide_scale(n, sums, p->scale + column, bias, line);
    ort_codes_give(k, p->to, p->y_scale, p->y_zero, line, (char *)p->y + (size_t)at * width, n);
}

/* ---- by bytes */

/* Where things lie in the space: words of A's rows, its bytes apart, sums of the high ones. */
typedef struct bytes_space {
    size_t low, high, sums, all;
} bytes_space;

static bool divide(const ort_kernels *k, int64_t m, int64_t n, int64_t depth, bytes_space *s)
{
    int64_t codes, sums;
    size_t words, bytes;
    if (!ort_integer_rows_bytes(k, m, depth, &words) || !ort_mul_i64(m, depth, &codes) ||
        !ort_mul_i64(m, n, &sums) || !ort_mul_size((size_t)sums, sizeof(int32_t), &bytes))
        return false;
    s->low = ort_round_up(words, 64);
    return ort_add_size(s->low, ort_round_up((size_t)codes, 64), &s->high) &&
           ort_add_size(s->high, ort_round_up((size_t)codes, 64), &s->sums) &&
           ort_add_size(s->sums, bytes, &s->all);
}

typedef struct bytes_job {
    const ort_call *call;
    const ort_wide_product *p;
    uint8_t *high, *low; /* [m][depth] */
    const int32_t *sums; /* of high bytes, [m][n] */
} bytes_job;

static void task_split(void *arg, int64_t first, int64_t end, int thread)
{
    const bytes_job *j = arg;
    const ort_wide_product *p = j->p;
    for (int64_t i = first; i < end; i++) {
        const uint16_t *from = (const uint16_t *)p->a + i * p->row;
        uint8_t *high = j->high + i * p->depth, *low = j->low + i * p->depth;
        if (p->column == 1) {
            j->call->k->gemm.split_16(p->depth, from, high, low);
            continue;
        }
        for (int64_t kk = 0; kk < p->depth; kk++) {
            high[kk] = (uint8_t)(from[kk * p->column] >> 8);
            low[kk] = (uint8_t)from[kk * p->column];
        }
    }
}

static void finish_tile(void *arg, const ort_integer_tile *t)
{
    const bytes_job *j = arg;
    const ort_wide_product *p = j->p;
    const ort_gemm_kernels *g = &j->call->k->gemm;
    for (int64_t i = 0; i < t->m; i++) {
        const int64_t at = (t->row + i) * p->n + t->column;
        double sums[COLUMNS] = {0};
        g->wide_add(t->n, 256, j->sums + at, sums);
        g->wide_add(t->n, 1, t->sums + i * t->ld, sums);
        give(j->call->k, p, sums, t->column, t->n, at);
    }
}

static void multiply_bytes(const ort_call *call, const ort_wide_product *p)
{
    bytes_space at;
    const bool fits = divide(call->k, p->m, p->n, p->depth, &at);
    char *space = p->space;
    bytes_job j = {call, p, (uint8_t *)space + at.high, (uint8_t *)space + at.low,
                   (int32_t *)(void *)(space + at.sums)};
    const int16_t zero = (int16_t)p->zero; /* the bits of a uint16 too */
    const uint8_t high = (uint8_t)((uint16_t)zero >> 8), low = (uint8_t)zero;
    assert(fits && p->depth <= ORT_WIDE_DEPTH);
    (void)fits;
    ort_call_range(call, p->m, ort_max_i64(CODES / ort_max_i64(p->depth, 1), 1), task_split, &j);
    ort_integer_product product = {.m = p->m, .n = p->n, .depth = p->depth, .packed = p->packed,
                                   .space = space, .ld = p->n};
    product.a = (ort_bytes){j.high, p->is_signed, p->depth, 1};
    product.a_zero = (ort_zeros){&high, p->is_signed, 1};
    product.sums = (int32_t *)(void *)(space + at.sums);
    ort_integer_multiply(call, &product);
    product.a = (ort_bytes){j.low, false, p->depth, 1};
    product.a_zero = (ort_zeros){&low, false, 1};
    product.sums = NULL;
    product.finish = finish_tile;
    product.arg = &j;
    ort_integer_multiply(call, &product);
}

/* ---- by pairs */

static int64_t pairs_of(int64_t depth)
{
    return (depth + 1) / 2;
}

/* A's rows as pairs of int16, and the sum of each. */
static bool pair_bytes(int64_t m, int64_t depth, size_t *rows, size_t *all)
{
    int64_t pairs;
    size_t sums;
    return ort_mul_i64(m, pairs_of(depth), &pairs) &&
           ort_mul_size((size_t)pairs, sizeof(int32_t), rows) &&
           ort_mul_size((size_t)m, sizeof(double), &sums) &&
           ort_add_size(ort_round_up(*rows, 64), sums, all);
}

typedef struct pairs_job {
    const ort_call *call;
    const ort_wide_product *p;
    ort_integer_parts b;
    int32_t *pairs;
    double *sums; /* of A's rows */
    int64_t row_tasks, rows;
} pairs_job;

/* A uint16 becomes the int16 of 32768 less. */
static void task_pairs(void *arg, int64_t first, int64_t end, int thread)
{
    const pairs_job *j = arg;
    const ort_wide_product *p = j->p;
    const uint16_t flip = p->is_signed ? 0 : 0x8000;
    for (int64_t i = first; i < end; i++) {
        const uint16_t *from = (const uint16_t *)p->a + i * p->row;
        uint16_t *to = (uint16_t *)(void *)(j->pairs + i * pairs_of(p->depth));
        int64_t sum = 0;
        for (int64_t kk = 0; kk < p->depth; kk++) {
            to[kk] = from[kk * p->column] ^ flip;
            sum += (int16_t)to[kk];
        }
        if (p->depth % 2)
            to[p->depth] = 0;
        j->sums[i] = (double)sum;
    }
}

/* Rows [row, row + m), m <= ROWS, of columns [column, column + n), n <= COLUMNS. */
static void multiply_tile(const pairs_job *j, int64_t row, int64_t m, int64_t column, int64_t n,
                          int32_t *sums, double *acc)
{
    const ort_wide_product *p = j->p;
    const ort_gemm_kernels *g = &j->call->k->gemm;
    const int64_t pairs = pairs_of(p->depth), nr = g->nri;
    const char *b = j->b.panels + column * pairs * g->word;
    const int zero = p->zero - (p->is_signed ? 0 : 32768);
    for (int64_t i = 0; i < m; i++) {
        double *line = acc + i * COLUMNS;
        memset(line, 0, (size_t)n * sizeof *line);
        g->wide_add(n, -zero, j->b.sum + column, line);
        if (j->b.shifted)
            g->wide_add(n, -j->sums[row + i], j->b.zero + column, line);
    }
    for (int64_t k0 = 0; k0 < pairs; k0 += BLOCK / 2) {
        const ort_tile_i32 t = {.a = j->pairs + row * pairs + k0, .lda = pairs,
                                .b = b + k0 * nr * g->word, .b_step = nr, .b_panel = pairs * nr,
                                .c = sums, .ldc = COLUMNS};
        g->bytes(m, n, ort_min_i64(BLOCK / 2, pairs - k0), &t);
        for (int64_t i = 0; i < m; i++)
            g->wide_add(n, 1, sums + i * COLUMNS, acc + i * COLUMNS);
    }
    for (int64_t i = 0; i < m; i++)
        give(j->call->k, p, acc + i * COLUMNS, column, n, (row + i) * p->n + column);
}

static void task_multiply(void *arg, size_t task, int thread)
{
    const pairs_job *j = arg;
    const int64_t column = (int64_t)task / j->row_tasks * COLUMNS;
    const int64_t first = (int64_t)task % j->row_tasks * j->rows;
    const int64_t end = ort_min_i64(first + j->rows, j->p->m);
    double *acc = ort_call_scratch(j->call, thread);
    for (int64_t row = first; row < end; row += ROWS)
        multiply_tile(j, row, ort_min_i64(ROWS, end - row), column,
                      ort_min_i64(COLUMNS, j->p->n - column), (int32_t *)(acc + ROWS * COLUMNS),
                      acc);
}

static void multiply_pairs(const ort_call *call, const ort_wide_product *p)
{
    size_t rows = 0, all = 0;
    const bool fits = pair_bytes(p->m, p->depth, &rows, &all);
    assert(fits && call->k->gemm.word == 2);
    (void)fits;
    pairs_job j = {.call = call, .p = p, .b = ort_integer_parts_of(call->k, p->n, p->packed),
                   .pairs = p->space,
                   .sums = (double *)(void *)((char *)p->space + ort_round_up(rows, 64))};
    ort_call_range(call, p->m, ort_max_i64(CODES / ort_max_i64(p->depth, 1), 1), task_pairs, &j);
    const int64_t column_tasks = (p->n + COLUMNS - 1) / COLUMNS, tiles = (p->m + ROWS - 1) / ROWS;
    const int64_t wanted = (4 * ort_call_width(call) + column_tasks - 1) / column_tasks;
    j.rows = (tiles + wanted - 1) / wanted * ROWS;
    j.row_tasks = (p->m + j.rows - 1) / j.rows;
    ort_call_parallel(call, (size_t)(j.row_tasks * column_tasks), task_multiply, &j);
}

/* ---- either */

bool ort_wide_bytes(const ort_kernels *k, int64_t m, int64_t n, int64_t depth, size_t *bytes)
{
    bytes_space at;
    size_t rows = 0;
    if (!by_bytes(k))
        return pair_bytes(m, depth, &rows, bytes);
    if (!divide(k, m, n, depth, &at))
        return false;
    *bytes = at.all;
    return true;
}

size_t ort_wide_thread_bytes(const ort_kernels *k)
{
    if (by_bytes(k))
        return ort_integer_thread_bytes(k);
    return ROWS * COLUMNS * (sizeof(double) + sizeof(int32_t));
}

void ort_wide_multiply(const ort_call *call, const ort_wide_product *p)
{
    if (p->m <= 0 || p->n <= 0)
        return;
    if (by_bytes(call->k))
        multiply_bytes(call, p);
    else
        multiply_pairs(call, p);
}
