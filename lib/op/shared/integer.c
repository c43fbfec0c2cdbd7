/* integer.c - packing of bytes, and the threaded integer product.
 *
 * A task is a block of rows by a block of columns whose panels of B fit the second-level cache. It
 * takes one micro tile of rows at a time over the whole depth, so that sums stay in the first-level
 * cache until they are finished.
 */
#include "op/shared/integer.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"

enum { ROW_BYTES = 64 << 10, /* of A that one task prepares */
       PACK_BYTES = 64 << 10,
       ONES = 256,           /* words of a row of ones */
       SMALL_WORK = 1 << 19, /* multiply-adds that are worth another thread */
       TILES_LEAST = 8,      /* rows, and words, that are worth the tiles of a tier that has them */
       QUANTIZED = 512 };    /* floats that are quantized before they are widened */

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

/* ---- B: a head, the sums and zero points of its columns, panels */

typedef struct packed_head {
    int32_t shifted; /* not all zero points are 0 */
    int32_t same;    /* all columns have the zero point of the first */
    int32_t fours;   /* panels are those of gemm.bytes_fours */
    int32_t unused[13];
} packed_head;

static int64_t words_by(int word, int64_t depth)
{
    return (depth + word - 1) / word;
}

static int64_t words_of(const ort_kernels *k, int64_t depth)
{
    return words_by(k->gemm.word, depth);
}

/* Columns in whole panels. */
static int64_t padded(const ort_kernels *k, int64_t n)
{
    return (n + k->gemm.nri - 1) / k->gemm.nri * k->gemm.nri;
}

static size_t column_bytes(const ort_kernels *k, int64_t n)
{
    return ort_round_up((size_t)padded(k, n) * sizeof(int32_t), 64);
}

/* Bytes of a panel. */
static int64_t panel_bytes(const ort_kernels *k, int64_t depth)
{
    return words_of(k, depth) * k->gemm.word * k->gemm.nri;
}

/* Behind panels that may become fours: where the halves of each vector begin, their words, and a
 * vector each. One of eight vectors may have them: beyond that pairs are as fast. */
typedef struct fours_space {
    int64_t words, panels, most;
    size_t first, halved, halves, all; /* bytes behind the panels */
} fours_space;

enum { VECTOR = 32, /* bytes of weights of half a panel's columns */
       HALVED = 8 };

static fours_space fours_of(const ort_kernels *k, int64_t depth, int64_t n)
{
    fours_space s = {words_by(4, depth), padded(k, n) / k->gemm.nri, 0, 0, 0, 0, 0};
    if (!k->gemm.bytes_fours || words_of(k, depth) % 2 || depth == 0)
        return s;
    s.most = 2 * s.panels * s.words / HALVED;
    s.halved = ort_round_up((size_t)(2 * s.panels + 1) * sizeof(int32_t), 64);
    s.halves = s.halved + ort_round_up((size_t)s.most * sizeof(int32_t), 64);
    s.all = s.halves + (size_t)s.most * VECTOR;
    return s;
}

ort_integer_parts ort_integer_parts_of(const ort_kernels *k, int64_t n, const void *packed)
{
    const packed_head *head = packed;
    const char *at = (const char *)packed + sizeof *head;
    const size_t bytes = column_bytes(k, n);
    return (ort_integer_parts){.sum = (const int32_t *)(const void *)at,
                               .zero = (const int32_t *)(const void *)(at + bytes),
                               .panels = at + 2 * bytes, .shifted = head->shifted,
                               .same = head->same, .fours = head->fours};
}

bool ort_integer_packed_bytes(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes)
{
    int64_t columns, deep, count;
    size_t head = sizeof(packed_head) + 128;
    if (!ort_add_i64(n, k->gemm.nri, &columns) || !ort_add_i64(depth, 4 + 8, &deep) ||
        !ort_mul_i64(columns, deep, &count) || count > INT64_MAX / 4 ||
        !ort_add_size((size_t)count * 2, head, bytes))
        return false;
    *bytes = sizeof(packed_head) + 2 * column_bytes(k, n) +
             (size_t)(padded(k, n) / k->gemm.nri * panel_bytes(k, depth));
    return true;
}

bool ort_integer_fours_bytes(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes)
{
    if (!ort_integer_packed_bytes(k, depth, n, bytes))
        return false;
    *bytes = ort_round_up(*bytes, 64) + ort_round_up(fours_of(k, depth, n).all, 64);
    return true;
}

static int shifted_zero(const ort_zeros *zeros, bool is_signed, int64_t j)
{
    return ort_zero_at(zeros, j) - (is_signed ? 0 : 128);
}

/* Sums of b - zb of whole panels: the product with a row of ones. */
static void sum_columns(const ort_kernels *k, int64_t depth, int64_t n, const char *panels,
                        const int32_t *zero, int32_t *sum)
{
    int32_t ones[ONES];
    const int64_t words = words_of(k, depth), nr = k->gemm.nri;
    for (int i = 0; i < ONES; i++)
        ones[i] = k->gemm.word == 4 ? 0x01010101 : 0x00010001;
    ort_tile_i32 t = {.a = ones, .b_step = nr, .b_panel = words * nr, .c = sum, .ldc = n};
    for (int64_t k0 = 0; k0 == 0 || k0 < words; k0 += ONES) {
        t.b = panels + k0 * nr * k->gemm.word;
        t.add = k0 ? sum : NULL;
        t.ldadd = n;
        k->gemm.bytes(1, n, ort_min_i64(ONES, words - k0), &t);
    }
    k->gemm.subtract_i32(n, (int32_t)(uint32_t)depth, zero, sum);
}

typedef struct pack_job {
    const ort_kernels *k;
    int64_t depth, n;
    const ort_bytes *b;
    const ort_integer_parts *to;
} pack_job;

/* Columns [first, end), first at a panel. Zero points are there. */
static void task_pack(void *arg, int64_t first, int64_t end, int thread)
{
    const pack_job *j = arg;
    const ort_kernels *k = j->k;
    char *panels = (char *)(uintptr_t)j->to->panels;
    int32_t *sum = (int32_t *)(uintptr_t)j->to->sum;
    panels += first / k->gemm.nri * panel_bytes(k, j->depth);
    k->gemm.pack_bytes(j->depth, end - first, (const char *)j->b->data + first * j->b->column,
                       j->b->row, j->b->column, j->b->is_signed, panels);
    sum_columns(k, j->depth, padded(k, end - first), panels, j->to->zero + first, sum + first);
}

/* All but the panels and their sums. */
static void fill_zeros(const ort_kernels *k, int64_t n, const ort_bytes *b, const ort_zeros *zeros,
                       char *packed)
{
    int32_t *zero = (int32_t *)(void *)(packed + sizeof(packed_head) + column_bytes(k, n));
    const bool one = !zeros->data || zeros->count == 1;
    const int32_t first = n > 0 ? shifted_zero(zeros, b->is_signed, 0) : 0;
    packed_head head = {.shifted = first != 0, .same = one};
    memset(packed, 0, sizeof head + 2 * column_bytes(k, n));
    for (int64_t j = 0; j < n && one; j++)
        zero[j] = first;
    for (int64_t j = 0; j < n && !one; j++) {
        zero[j] = shifted_zero(zeros, b->is_signed, j);
        head.shifted |= zero[j] != 0;
    }
    memcpy(packed, &head, sizeof head);
}

void ort_integer_pack(const ort_kernels *k, int64_t depth, int64_t n, const ort_bytes *b,
                      const ort_zeros *zeros, void *packed)
{
    ort_integer_parts to = ort_integer_parts_of(k, n, packed);
    pack_job j = {k, depth, n, b, &to};
    fill_zeros(k, n, b, zeros, packed);
    if (n > 0)
        task_pack(&j, 0, n, 0);
}

void ort_integer_pack_fours(const ort_kernels *k, int64_t depth, int64_t n, const ort_bytes *b,
                            const ort_zeros *zeros, void *packed)
{
    const fours_space s = fours_of(k, depth, n);
    ort_integer_pack(k, depth, n, b, zeros, packed);
    if (s.most == 0)
        return;
    char *panels = (char *)(uintptr_t)ort_integer_parts_of(k, n, packed).panels;
    char *space = panels + s.panels * panel_bytes(k, depth);
    ((packed_head *)packed)->fours =
        k->gemm.fours_pack(s.words, s.panels, s.most, panels, (int32_t *)(void *)space,
                           (int32_t *)(void *)(space + s.halved), space + s.halves);
}

void ort_integer_pack_now(const ort_call *call, int64_t depth, int64_t n, const ort_bytes *b,
                          const ort_zeros *zeros, void *packed)
{
    ort_integer_parts to = ort_integer_parts_of(call->k, n, packed);
    pack_job j = {call->k, depth, n, b, &to};
    fill_zeros(call->k, n, b, zeros, packed);
    int64_t panels = ort_max_i64(PACK_BYTES / ort_max_i64(panel_bytes(call->k, depth), 1), 1);
    ort_call_range(call, n, panels * call->k->gemm.nri, task_pack, &j);
}

/* ---- A */

/* Rows a multiple of 2 KiB apart share too few sets of the first-level cache. */
static int64_t row_words(int64_t words)
{
    return words > 0 && words * 4 % 2048 == 0 ? words + 16 : words;
}

bool ort_integer_rows_bytes(const ort_kernels *k, int64_t m, int64_t depth, size_t *bytes)
{
    int64_t words, count;
    return ort_add_i64(depth, 64, &words) && /* and the row's sum */
           ort_mul_i64(m, row_words(words_of(k, depth)) + 1, &count) &&
           ort_mul_size((size_t)count, sizeof(int32_t), bytes);
}

/* Are the rows of A words as they lie? */
static bool in_place(int word, const ort_integer_product *p)
{
    const ort_bytes *a = &p->a;
    bool near = p->m > 8 && a->row % 2048 == 0;
    return word == 4 && !p->floats && !a->is_signed && a->column == 1 && !near &&
           p->depth % 4 == 0 && a->row % 4 == 0 && (uintptr_t)a->data % 4 == 0;
}

typedef struct rows_job {
    const ort_kernels *k;
    const ort_integer_product *p;
    int32_t *words; /* NULL: rows stay where they are */
    int64_t lda;
    int32_t *sums;  /* of rows; NULL: not needed */
    int word;
} rows_job;

/* gemm.words_u8, of words of four bytes on tiers with others, too. */
static void make_words(const rows_job *j, int64_t count, const uint8_t *x, bool is_signed,
                       int32_t *out)
{
    if (j->word == j->k->gemm.word) {
        j->k->gemm.words_u8(count, x, is_signed, out);
        return;
    }
    if (count % 4)
        out[count / 4] = 0;
    memcpy(out, x, (size_t)count);
    for (int64_t i = 0; i < count / 4 && is_signed; i++)
        out[i] ^= (int32_t)0x80808080;
    for (int64_t i = count / 4 * 4; i < count && is_signed; i++)
        ((uint8_t *)out)[i] ^= 0x80; /* not what fills up the last one */
}

static void quantize_row(const rows_job *j, int64_t i, int32_t *out)
{
    const ort_kernels *k = j->k;
    const ort_integer_product *p = j->p;
    const float *x = p->floats + i * p->depth;
    int zero = ort_zero_at(&p->a_zero, 0);
    uint8_t bytes[QUANTIZED];
    if (j->word == 4) {
        out[words_by(4, p->depth) - 1] = 0;
        k->math.quantize_u8(x, (uint8_t *)out, (size_t)p->depth, p->scale, zero);
        return;
    }
    for (int64_t at = 0; at < p->depth; at += QUANTIZED) {
        int64_t count = ort_min_i64(QUANTIZED, p->depth - at);
        k->math.quantize_u8(x + at, bytes, (size_t)count, p->scale, zero);
        k->gemm.words_u8(count, bytes, false, out + at / j->word);
    }
}

static void gather_row(const rows_job *j, const uint8_t *x, int32_t *out)
{
    const ort_integer_product *p = j->p;
    uint8_t bytes[QUANTIZED];
    for (int64_t at = 0; at < p->depth; at += QUANTIZED) {
        int64_t count = ort_min_i64(QUANTIZED, p->depth - at);
        for (int64_t i = 0; i < count; i++)
            bytes[i] = x[(at + i) * p->a.column];
        make_words(j, count, bytes, p->a.is_signed, out + at / j->word);
    }
}

/* The sum of a row's words, whatever they hold. */
static int32_t sum_words(const ort_kernels *k, int64_t count, const int32_t *words)
{
    int64_t bytes = count * 4; /* those of int16 are 0 where they are high */
    return (int32_t)k->codes.sum((const uint8_t *)words, (size_t)bytes, false);
}

static void task_rows(void *arg, int64_t first, int64_t end, int thread)
{
    const rows_job *j = arg;
    const ort_integer_product *p = j->p;
    for (int64_t i = first; i < end; i++) {
        const uint8_t *x = p->floats ? NULL : (const uint8_t *)p->a.data + i * p->a.row;
        int32_t *to = j->words ? j->words + i * j->lda : NULL;
        if (to && p->floats)
            quantize_row(j, i, to);
        else if (to && p->a.column == 1)
            make_words(j, p->depth, x, p->a.is_signed, to);
        else if (to)
            gather_row(j, x, to);
        if (j->sums)
            j->sums[i] = to ? sum_words(j->k, words_by(j->word, p->depth), to)
                            : (int32_t)j->k->codes.sum(x, (size_t)p->depth, false);
    }
}

/* ---- the product */

size_t ort_integer_thread_bytes(const ort_kernels *k)
{
    const int64_t rows = ort_max_i64(k->gemm.mri, k->gemm.tile_rows);
    return (size_t)(rows + 1) * ORT_INTEGER_COLUMNS * sizeof(int32_t);
}

typedef struct integer_job {
    const ort_call *call;
    const ort_integer_product *p;
    ort_integer_parts b;
    const int32_t *a, *row_sums;
    int64_t lda, words;
    fours_space fours; /* where b is such */
    int word;
    void (*multiply)(int64_t m, int64_t n, int64_t words, const ort_tile_i32 *tile);
    int64_t most; /* rows that it takes at a time */
    bool far;     /* sums are more than the caches hold, and nothing comes after them */
    int64_t rows, columns, row_tasks; /* of a task */
} integer_job;

enum { TILE_ROWS = 32 }; /* no tier takes more at a time */

static void choose_kernel(integer_job *j)
{
    const ort_gemm_kernels *g = &j->call->k->gemm;
    const bool tiles = g->bytes_tiles && j->p->m >= TILES_LEAST && j->words >= TILES_LEAST;
    j->multiply = tiles ? g->bytes_tiles : j->b.fours ? g->bytes_fours : g->bytes;
    j->most = tiles ? g->tile_rows : g->mri;
    j->far = j->p->sums && !j->p->finish && !j->row_sums && j->p->a_zero.count <= 1 &&
             j->p->m * j->p->n * (int64_t)sizeof(int32_t) > (int64_t)ort_cpu_get()->l2_bytes / 2;
}

/* Micro tiles of rows by the columns of a task. */
static void multiply_rows(const integer_job *j, ort_integer_tile *tile, const int32_t *add)
{
    const ort_integer_product *p = j->p;
    const ort_gemm_kernels *g = &j->call->k->gemm;
    const int64_t row = tile->row, n = tile->n;
    const bool a_zeros = p->a_zero.count > 1, later = p->adds_rows && j->b.same;
    const int32_t *zero = j->b.zero + tile->column;
    int32_t more[TILE_ROWS];
    ort_tile_i32 t = {.a = j->a + row * j->lda, .lda = j->lda, .b_step = g->nri,
                      .b = j->b.panels + tile->column * j->words * j->word,
                      .b_panel = j->words * g->nri, .c = tile->sums, .ldc = tile->ld, .add = add,
                     .far = j->far};
    if (j->b.fours) {
        const char *space = j->b.panels + j->fours.panels * j->fours.words * 4 * g->nri;
        t.first_halved = (const int32_t *)(const void *)space + tile->column / g->nri * 2;
        t.halved = (const int32_t *)(const void *)(space + j->fours.halved);
        t.halves = space + j->fours.halves;
    }
    assert(tile->m <= TILE_ROWS);
    j->multiply(tile->m, n, j->words, &t);
    for (int64_t i = 0; i < tile->m && (a_zeros || j->row_sums); i++) {
        int32_t *sums = tile->sums + i * tile->ld;
        if (later && j->row_sums)
            more[i] = (int32_t)-((uint32_t)j->row_sums[row + i] * (uint32_t)zero[0]);
        else if (j->row_sums)
            g->subtract_i32(n, j->row_sums[row + i], zero, sums);
        if (a_zeros)
            g->subtract_i32(n, ort_zero_at(&p->a_zero, row + i) + (p->a.is_signed ? 128 : 0),
                            j->b.sum + tile->column, sums);
    }
    tile->more = later && j->row_sums ? more : NULL;
    if (p->finish)
        p->finish(p->arg, tile);
}

static void task_multiply(void *arg, size_t task, int thread)
{
    const integer_job *j = arg;
    const ort_integer_product *p = j->p;
    int64_t i0 = (int64_t)task % j->row_tasks * j->rows, most = j->most;
    int64_t column = (int64_t)task / j->row_tasks * j->columns;
    int64_t end = ort_min_i64(i0 + j->rows, p->m), n = ort_min_i64(j->columns, p->n - column);
    int32_t *scratch = ort_call_scratch(j->call, thread);
    int32_t *add = scratch + most * ORT_INTEGER_COLUMNS;
    int zero = ort_zero_at(&p->a_zero, 0) + (p->a.is_signed ? 128 : 0);
    const bool shifts = p->a_zero.count <= 1 && zero != 0;
    if (shifts) {
        memset(add, 0, (size_t)n * sizeof *add);
        j->call->k->gemm.subtract_i32(n, zero, j->b.sum + column, add);
    }
    int64_t blocks = (end - i0 + most - 1) / most;
    for (int64_t row = i0, block = 0, m; row < end; row += m, block++) {
        m = (end - row + (blocks - block) - 1) / (blocks - block);
        ort_integer_tile tile = {row, column, m, n, scratch, ORT_INTEGER_COLUMNS, NULL};
        if (p->sums) {
            tile.sums = p->sums + row * p->ld + column;
            tile.ld = p->ld;
        }
        multiply_rows(j, &tile, shifts ? add : NULL);
    }
}

/* Blocks of columns that half of the second-level cache has room for, of rows as many as give each
 * thread work. */
static void cut(integer_job *j, int width)
{
    const ort_integer_product *p = j->p;
    const ort_gemm_kernels *g = &j->call->k->gemm;
    int64_t cache = (int64_t)ort_cpu_get()->l2_bytes / 2, panel = j->words * j->word * g->nri;
    int64_t panels = ort_max_i64(cache / ort_max_i64(panel, 1), 2);
    panels = ort_min_i64(panels, ORT_INTEGER_COLUMNS / g->nri);
    int64_t wanted = 1 + (int64_t)((double)p->m * (double)p->n * (double)p->depth / SMALL_WORK);
    wanted = width > 1 ? ort_min_i64(wanted, 4 * width) : 1;
    int64_t all = (p->n + g->nri - 1) / g->nri, column_tasks = (all + panels - 1) / panels;
    j->row_tasks = ort_min_i64((wanted + column_tasks - 1) / column_tasks,
                               (p->m + j->most - 1) / j->most);
    if (j->row_tasks * column_tasks < wanted)
        column_tasks = ort_min_i64((wanted + j->row_tasks - 1) / j->row_tasks, all);
    j->columns = (all + column_tasks - 1) / column_tasks * g->nri;
    j->rows = (p->m + j->row_tasks - 1) / j->row_tasks;
    j->row_tasks = (p->m + j->rows - 1) / j->rows;
}

void ort_integer_multiply(const ort_call *call, const ort_integer_product *p)
{
    if (p->m <= 0 || p->n <= 0)
        return;
    const ort_kernels *k = call->k;
    integer_job j = {.call = call, .p = p, .b = ort_integer_parts_of(k, p->n, p->packed)};
    j.word = j.b.fours ? 4 : k->gemm.word;
    j.words = words_by(j.word, p->depth);
    if (j.b.fours)
        j.fours = fours_of(k, p->depth, p->n);
    bool stays = p->depth == 0 || in_place(j.word, p);
    j.lda = stays ? p->a.row / 4 : row_words(j.words);
    j.a = stays ? p->a.data : p->space;
    int32_t *sums = (int32_t *)p->space + p->m * row_words(j.words);
    j.row_sums = j.b.shifted && p->depth > 0 ? sums : NULL;
    if (!stays || j.row_sums) {
        rows_job r = {k, p, stays ? NULL : p->space, j.lda, j.row_sums ? sums : NULL, j.word};
        ort_call_range(call, p->m, ort_max_i64(ROW_BYTES / ort_max_i64(p->depth, 1), 1), task_rows,
                       &r);
    }
    choose_kernel(&j);
    cut(&j, ort_call_width(call));
    int64_t column_tasks = (p->n + j.columns - 1) / j.columns;
    ort_call_parallel(call, (size_t)(j.row_tasks * column_tasks), task_multiply, &j);
}
