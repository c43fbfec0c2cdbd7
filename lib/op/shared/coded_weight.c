/* coded_weight.c - floats times weights of 8 bits (coded_weight.h): packing, and the product. */
#include "op/shared/coded_weight.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"

enum { RUN = 128,            /* weights at most */
       UNIT = 16,            /* of which runs are multiples */
       DIGITS = 3,
       PAIRS_ROWS = 6,       /* that pay in fixed point where bytes are multiplied by pairs */
       ADD_ROWS = 8,         /* whose sums wait in scratch to be added */
       TASK_COLUMNS = 512,   /* at most */
       TASK_BYTES = 64 << 10,
       FIX_BYTES = 16 << 10, /* of A that one task puts in fixed point */
       PIECE = 64 };         /* words of a row that are packed at once */

/* What B begins with; behind it stand scales, zero points and words. */
typedef struct coded_head {
    int32_t middle; /* the zero point of all columns, if none has its own */
    int32_t zeros;  /* columns have theirs */
    int32_t unused[14];
} coded_head;

/* How rows of words are cut: into runs of as many weights, all but the last few of which exist. */
static int64_t run_of(int64_t depth)
{
    int64_t best = ort_round_up((size_t)depth, UNIT);
    if (best <= RUN)
        return best;
    best = RUN;
    for (int64_t run = RUN - UNIT; run >= RUN / 2; run -= UNIT)
        if ((depth + run - 1) / run * run < (depth + best - 1) / best * best)
            best = run;
    return best;
}

static int64_t padded(int64_t depth)
{
    const int64_t run = run_of(depth);
    return (depth + run - 1) / run * run;
}

static int64_t columns_of(const ort_kernels *k, int64_t n)
{
    return (n + k->gemm.nbits_lanes - 1) / k->gemm.nbits_lanes * k->gemm.nbits_lanes;
}

static size_t scale_bytes(int64_t columns)
{
    return ort_round_up((size_t)columns * sizeof(float), 64);
}

static size_t zero_bytes(int64_t columns)
{
    return ort_round_up((size_t)columns, 64);
}

bool ort_coded_packed_bytes(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes)
{
    int64_t deep, columns, count;
    if (!ort_add_i64(depth, RUN + 16, &deep) || !ort_add_i64(n, k->gemm.nbits_lanes, &columns) ||
        !ort_mul_i64(deep, columns, &count) || count > INT64_MAX / 2)
        return false;
    columns = columns_of(k, n);
    *bytes = sizeof(coded_head) + scale_bytes(columns) + zero_bytes(columns) +
             (size_t)(columns * padded(depth));
    return true;
}

/* B as the kernels read it. */
static ort_nbits weight_of(const ort_kernels *k, int64_t depth, int64_t n, const void *packed)
{
    const coded_head *head = packed;
    const int64_t columns = columns_of(k, n), run = run_of(depth), deep = padded(depth);
    const char *scale = (const char *)packed + sizeof *head;
    const char *zero = scale + scale_bytes(columns), *words = zero + zero_bytes(columns);
    return (ort_nbits){.words = (const int32_t *)(const void *)words, .bits = 8,
                       .middle = head->middle, .scale = (const float *)(const void *)scale,
                       .zero_byte = head->zeros ? (const uint8_t *)zero : NULL, .n = n,
                       .row_words = deep / 4, .run_words = run / 4, .block_runs = deep / run,
                       .digits = DIGITS};
}

/* ---- packing */

/* Codes from `at` on of columns [first, end), as rows of unsigned bytes. */
static void gather(const ort_bytes *b, int64_t depth, int64_t first, int64_t end, int64_t at,
                   int64_t count, uint8_t *rows)
{
    const uint8_t turn = b->is_signed ? 0x80 : 0;
    memset(rows, 0, (size_t)((end - first) * count));
    for (int64_t j = first; j < end; j++, rows += count) {
        const uint8_t *from = (const uint8_t *)b->data + j * b->column + at * b->row;
        for (int64_t i = 0; i < count && at + i < depth; i++)
            rows[i] = from[i * b->row] ^ turn;
    }
}

static void pack_words(const ort_kernels *k, int64_t depth, int64_t n, const ort_bytes *b,
                       const ort_nbits *w, int32_t *words)
{
    enum { MOST_LANES = 16 };
    const int64_t lanes = k->gemm.nbits_lanes;
    _Alignas(64) uint8_t rows[MOST_LANES * PIECE * 4];
    assert(lanes <= MOST_LANES);
    for (int64_t j = 0; j < n; j += lanes)
        for (int64_t at = 0; at < w->row_words; at += PIECE) {
            const int64_t some = ort_min_i64(PIECE, w->row_words - at);
            const int64_t end = ort_min_i64(n, j + lanes);
            gather(b, depth, j, end, 4 * at, 4 * some, rows);
            k->gemm.nbits_pack(end - j, some, 8, rows, 0, words);
            words += some * lanes;
        }
}

void ort_coded_pack(const ort_kernels *k, int64_t depth, int64_t n, const ort_bytes *b,
                    const float *scale, const ort_zeros *zeros, void *packed)
{
    const int turn = b->is_signed ? 128 : 0;
    coded_head head = {.middle = ort_zero_at(zeros, 0) + turn};
    for (int64_t j = 1; j < n; j++)
        head.zeros |= ort_zero_at(zeros, j) + turn != head.middle;
    memcpy(packed, &head, sizeof head);
    const ort_nbits w = weight_of(k, depth, n, packed);
    const int64_t columns = columns_of(k, n);
    float *to = (float *)(uintptr_t)w.scale;
    memset(to, 0, scale_bytes(columns) + zero_bytes(columns));
    memcpy(to, scale, (size_t)n * sizeof *scale);
    uint8_t *zero = (uint8_t *)to + scale_bytes(columns);
    for (int64_t j = 0; j < n; j++)
        zero[j] = (uint8_t)(ort_zero_at(zeros, j) + turn);
    pack_words(k, depth, n, b, &w, (int32_t *)(uintptr_t)w.words);
}

/* ---- rows in fixed point */

typedef struct rows_parts {
    float *sums, *units; /* [m][runs] */
    int32_t *fixed;      /* [m][row] */
    int32_t *fits;       /* [m]: did it go into fixed point? */
    int64_t runs, row;
} rows_parts;

/* Words of a row in fixed point. */
static int64_t fixed_row(int64_t depth)
{
    const int64_t deep = padded(depth);
    return DIGITS * (deep / 4 + deep / run_of(depth));
}

static rows_parts parts_of(int64_t m, int64_t depth, void *space)
{
    rows_parts r = {.runs = padded(depth) / run_of(depth), .row = fixed_row(depth)};
    r.sums = space;
    r.units = r.sums + m * r.runs;
    r.fixed = (int32_t *)(void *)(r.units + m * r.runs);
    r.fits = r.fixed + m * r.row;
    return r;
}

bool ort_coded_rows_bytes(const ort_kernels *k, int64_t m, int64_t depth, size_t *bytes)
{
    int64_t count;
    (void)k;
    if (depth > INT64_MAX / 16)
        return false;
    const int64_t runs = padded(depth) / run_of(depth);
    return ort_mul_i64(m, fixed_row(depth) + 2 * runs + 1, &count) &&
           ort_mul_size((size_t)count, sizeof(float), bytes);
}

typedef struct coded_job {
    const ort_call *call;
    const ort_coded_product *p;
    ort_nbits w;
    rows_parts rows;
} coded_job;

static void task_fix(void *arg, int64_t first, int64_t end, int thread)
{
    const coded_job *j = arg;
    const ort_coded_product *p = j->p;
    const rows_parts *r = &j->rows;
    for (int64_t i = first; i < end; i++)
        r->fits[i] = j->call->k->gemm.nbits_fix(p->depth, &j->w, p->a + i * p->depth,
                                                r->fixed + i * r->row, r->units + i * r->runs,
                                                r->sums + i * r->runs);
}

/* False: floats are quicker, or a row doesn't go into fixed point. */
static bool fix_rows(coded_job *j)
{
    const ort_coded_product *p = j->p;
    if (j->call->k->gemm.word != 4 && p->m > PAIRS_ROWS)
        return false;
    j->rows = parts_of(p->m, p->depth, p->space);
    ort_call_range(j->call, p->m, ort_max_i64(FIX_BYTES / (4 * p->depth), 1), task_fix, j);
    for (int64_t i = 0; i < p->m; i++)
        if (!j->rows.fits[i])
            return false;
    j->w.fixed_row = j->rows.row;
    return true;
}

/* ---- the product */

static int64_t panel_columns(const ort_kernels *k)
{
    return 2 * k->gemm.nr;
}

size_t ort_coded_thread_bytes(const ort_kernels *k)
{
    const int64_t panel = panel_columns(k) * k->gemm.kc;
    return ort_round_up((size_t)ort_max_i64(panel, ADD_ROWS * TASK_COLUMNS) * sizeof(float), 64);
}

/* Rows [row, row + count) of the columns of w, by its kernel. */
static void multiply_rows(const coded_job *j, ort_nbits *w, int64_t row, int64_t count, float *y,
                          int64_t y_row)
{
    const rows_parts *r = &j->rows;
    w->rows = count;
    w->fixed = r->fixed + row * r->row;
    w->units = r->units + row * r->runs;
    w->sums = r->sums + row * r->runs;
    w->y = y;
    w->y_row = y_row;
    j->call->k->gemm.nbits(0, w->n, w);
}

static void task_fixed(void *arg, int64_t first, int64_t end, int thread)
{
    const coded_job *j = arg;
    const ort_coded_product *p = j->p;
    ort_nbits w = j->w;
    w.words += first * w.row_words;
    w.scale += first;
    w.zero_byte = w.zero_byte ? w.zero_byte + first : NULL;
    w.bias = p->bias ? p->bias + first : NULL;
    w.n = end - first;
    if (!p->add) {
        multiply_rows(j, &w, 0, p->m, p->c + first, p->ldc);
        return;
    }
    float *sums = ort_call_scratch(j->call, thread);
    for (int64_t row = 0; row < p->m; row += ADD_ROWS) {
        const int64_t count = ort_min_i64(ADD_ROWS, p->m - row);
        multiply_rows(j, &w, row, count, sums, w.n);
        for (int64_t i = 0; i < count; i++) {
            float *c = p->c + (row + i) * p->ldc + first;
            j->call->k->math.binary[ORT_BINARY_ADD](c, sums + i * w.n, c, (size_t)w.n, ORT_FORM_VV);
        }
    }
}

static void task_panels(void *arg, int64_t first, int64_t end, int thread)
{
    const coded_job *j = arg;
    const ort_coded_product *p = j->p;
    const ort_gemm_kernels *g = &j->call->k->gemm;
    const int64_t lanes = g->nbits_lanes, n = end - first;
    float *panels = ort_call_scratch(j->call, thread), *c = p->c + first;
    for (int64_t k0 = 0; k0 < p->depth; k0 += g->kc) {
        const int64_t depth = ort_min_i64(g->kc, p->depth - k0);
        for (int64_t at = 0; at < n; at += lanes)
            g->nbits_widen(&j->w, (first + at) / lanes, k0, depth,
                           panels + at / g->nr * depth * g->nr + at % g->nr, g->nr);
        const ort_tile_f32 t = {.a = p->a + k0, .lda = p->depth, .b = panels, .b_step = g->nr,
                                .b_panel = depth * g->nr, .c = c, .ldc = p->ldc,
                                .add = k0 || p->add ? c : NULL, .ldadd = p->ldc,
                                .col_bias = k0 || !p->bias ? NULL : p->bias + first,
                                .alpha = 1.0f, .lo = -INFINITY, .hi = INFINITY};
        g->f32(p->m, n, depth, &t);
    }
}

void ort_coded_multiply(const ort_call *call, const ort_coded_product *p)
{
    coded_job j = {.call = call, .p = p, .w = weight_of(call->k, p->depth, p->n, p->packed)};
    if (!fix_rows(&j)) {
        ort_call_range(call, p->n, panel_columns(call->k), task_panels, &j);
        return;
    }
    const int64_t pair = 2 * call->k->gemm.nbits_lanes;
    const int64_t some = TASK_BYTES / (4 * j.w.row_words) / pair * pair;
    ort_call_range(call, p->n, ort_max_i64(pair, ort_min_i64(some, TASK_COLUMNS)), task_fixed, &j);
}
