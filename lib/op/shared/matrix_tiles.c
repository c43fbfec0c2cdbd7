/* matrix_tiles.c - matrix products on the tiles of a tier (kernel/gemm.h, f32_tiles).
 *
 * A product is a row of stages: a chunk of rows by a part of k, all columns. Within a stage each
 * thread takes panels of columns one by one until none is left: one that others keep from running
 * takes fewer. Panels are cut into pieces of rows only where threads would find too few of them,
 * since each piece splits its panel again.
 *
 * A few threads each split all rows of a stage for themselves: that takes less time than lines
 * that the other core has just written, 6 bytes a float (two threads, shared over own: minilm
 * 1.07, a net of products of 128 by 128 1.15). Many threads split them once, the next stage's when
 * panels have run out; the first stage's at its beginning, and who has none left to split waits
 * for those of the others, a few microseconds.
 *
 * Parts of k follow each other, and what a block sums doesn't depend on who takes it: the same bits
 * for any number of threads.
 */
#include "op/shared/matrix_tiles.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/budget.h"
#include "base/checked.h"

enum {
    /* Splitting takes as long as a third of the products of 64 rows; B's, of rows, and A's, of
     * columns (Xeon of the fifth generation: 0.6 to 0.8 of the time of floats beyond these bounds;
     * 64 rows of small products took 1.04 of it where the processor was shared). */
    ROWS_LEAST = 96,
    COLUMNS_LEAST = 128,
    DEPTH_LEAST = 128,
    /* Multiply-adds. Smaller products gain a fifth with one thread and lose a third with two, which
     * then exchange more than they save (bottleneck_encoder: 8.9 to 7.4 ms, 6.7 to 9.0). */
    WORK_LEAST = 10 << 20,
    CHUNK_BYTES = 600 << 10,  /* split rows of a stage: of a second-level cache, with the next's */
    PIECE_BLOCKS = 3,         /* at least, which hide the splitting of a panel */
    PIECES_A_THREAD = 3,
    OWN_THREADS = 4,          /* at most, which split rows for themselves */
    SPINS = 2000,             /* before the processor is given to who may want it */
};

/* How a product is cut: by its sizes alone. */
typedef struct cut {
    int64_t part, parts;      /* of k */
    int64_t chunk, chunks;    /* of rows */
    int64_t block_bytes, chunk_bytes;
} cut;

static int64_t blocks_in(const ort_kernels *k, int64_t rows)
{
    return (rows + k->gemm.f32_tiles_rows - 1) / k->gemm.f32_tiles_rows;
}

static cut cut_of(const ort_kernels *k, int64_t m, int64_t depth)
{
    const ort_gemm_kernels *g = &k->gemm;
    const int64_t parts = (depth + g->f32_tiles_depth - 1) / g->f32_tiles_depth, step = 32;
    cut c;
    c.part = ((depth + parts - 1) / parts + step - 1) / step * step;
    c.parts = (depth + c.part - 1) / c.part;
    c.block_bytes = c.part / step * g->f32_tiles_step + g->f32_tiles_more;
    const int64_t blocks = blocks_in(k, m), most = ort_max_i64(CHUNK_BYTES / c.block_bytes, 1);
    c.chunks = (blocks + most - 1) / most;
    c.chunk = (blocks + c.chunks - 1) / c.chunks;
    c.chunks = (blocks + c.chunk - 1) / c.chunk;
    c.chunk_bytes = c.chunk * c.block_bytes;
    c.chunk *= g->f32_tiles_rows;
    return c;
}

bool ort_tiles_pay(const ort_kernels *k, int64_t m, int64_t n, int64_t depth)
{
    return k->gemm.f32_tiles && m >= ROWS_LEAST && n >= COLUMNS_LEAST && depth >= DEPTH_LEAST &&
           (double)m * (double)n * (double)depth >= WORK_LEAST;
}

size_t ort_matrix_tiles_f32(const ort_kernels *k, int64_t m, int64_t n, int64_t depth, bool packed)
{
    if (!packed || !ort_tiles_pay(k, m, n, depth))
        return 0;
    return ort_round_up(k->gemm.f32_tiles_bytes, 64) + (size_t)cut_of(k, m, depth).chunk_bytes;
}

size_t ort_matrix_split_f32(const ort_kernels *k, int64_t m, int64_t n, int64_t depth, bool packed)
{
    if (!packed || !ort_tiles_pay(k, m, n, depth))
        return 0;
    const cut c = cut_of(k, m, depth);
    return (size_t)(c.chunk_bytes * (c.chunks * c.parts > 1 ? 2 : 1));
}

typedef struct job {
    const ort_kernels *k;
    const ort_product_f32 *p;
    const float *b;
    ort_epilogue e;
    cut c;
    int64_t width;            /* threads */
    int64_t stage, stages;
    int64_t pieces, panel_pieces;  /* of the stage; of a panel */
    _Atomic int64_t next_piece;
    _Atomic int64_t next_block[2]; /* to split, of even and of odd stages */
    _Atomic int64_t left;     /* blocks of the first stage that aren't split */
} job;

/* ---- rows */

static int64_t chunk_row(const job *j, int64_t stage)
{
    return stage / j->c.parts * j->c.chunk;
}
static int64_t chunk_rows(const job *j, int64_t stage)
{
    return ort_min_i64(j->c.chunk, j->p->m - chunk_row(j, stage));
}
static int64_t part_first(const job *j, int64_t stage)
{
    return stage % j->c.parts * j->c.part;
}
static int64_t part_depth(const job *j, int64_t stage)
{
    return ort_min_i64(j->c.part, j->p->depth - part_first(j, stage));
}

/* The last part of k may be shorter, and so its blocks. */
static int64_t block_bytes(const job *j, int64_t stage)
{
    const ort_gemm_kernels *g = &j->k->gemm;
    return (part_depth(j, stage) + 31) / 32 * g->f32_tiles_step + g->f32_tiles_more;
}

static char *split_rows(const job *j, int64_t stage)
{
    return (char *)j->p->split + stage % 2 * j->c.chunk_bytes;
}

static void split_block(const job *j, int64_t stage, int64_t block, char *rows)
{
    const ort_product_f32 *p = j->p;
    const int64_t row = block * j->k->gemm.f32_tiles_rows, left = chunk_rows(j, stage) - row;
    const float *a = p->a + (chunk_row(j, stage) + row) * p->lda + part_first(j, stage);
    j->k->gemm.f32_tiles_split(ort_min_i64(j->k->gemm.f32_tiles_rows, left), part_depth(j, stage),
                               a, p->lda, rows + block * block_bytes(j, stage));
}

/* Blocks of a stage that nobody has split, one by one; how many. */
static int64_t split_blocks(job *j, int64_t stage)
{
    const int64_t blocks = blocks_in(j->k, chunk_rows(j, stage));
    int64_t count = 0, i;
    for (; (i = atomic_fetch_add(&j->next_block[stage % 2], 1)) < blocks; count++)
        split_block(j, stage, i, split_rows(j, stage));
    return count;
}

/* All of a stage, for this thread. */
static void split_own(const job *j, char *rows)
{
    const int64_t blocks = blocks_in(j->k, chunk_rows(j, j->stage));
    for (int64_t i = 0; i < blocks; i++)
        split_block(j, j->stage, i, rows);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Of the first stage. */
static void split_first(job *j)
{
    const int64_t count = split_blocks(j, 0);
    atomic_fetch_sub(&j->left, count);
    for (int spins = 0; atomic_load_explicit(&j->left, memory_order_acquire) > 0; spins++)
        if (spins < SPINS)
            relax();
        else
            sched_yield();
}

/* ---- columns */

static int64_t next_piece(void *arg)
{
    job *j = arg;
    const int64_t piece = atomic_fetch_add(&j->next_piece, 1);
    return piece < j->pieces && !ort_budget_over(ort_budget_current()) ? piece : -1;
}

static void activate_piece(void *arg, int64_t piece)
{
    const job *j = arg;
    const ort_product_f32 *p = j->p;
    const int64_t m = chunk_rows(j, j->stage), blocks = blocks_in(j->k, m), nr = j->k->gemm.nr;
    const int64_t rows = (blocks + j->panel_pieces - 1) / j->panel_pieces *
                         j->k->gemm.f32_tiles_rows;
    const int64_t row = piece % j->panel_pieces * rows, column = piece / j->panel_pieces * nr;
    ort_matrix_activate(j->k, ort_min_i64(rows, m - row), ort_min_i64(nr, p->n - column),
                        p->c + (chunk_row(j, j->stage) + row) * p->ldc + column, p->ldc, &j->e);
}

/* What precedes the product comes with the first part of k, its bounds with the last. */
static ort_tiles_f32 work_of(job *j)
{
    const ort_product_f32 *p = j->p;
    const ort_epilogue *e = &j->e;
    const int64_t row = chunk_row(j, j->stage), k0 = part_first(j, j->stage), nr = j->k->gemm.nr;
    const int64_t depth = part_depth(j, j->stage);
    const bool first = k0 == 0, last = k0 + depth == p->depth;
    float *c = p->c + row * p->ldc;
    const float *add = e->add ? e->add + row * e->ldadd : NULL;
    return (ort_tiles_f32){
        .t = {.a = p->a + row * p->lda + k0, .b = j->b + k0 * nr, .lda = p->lda, .b_step = nr,
              .b_panel = p->depth * nr, .c = c, .ldc = p->ldc, .alpha = e->alpha,
              .add = first ? add : c, .ldadd = first ? e->ldadd : p->ldc,
              .row_bias = first && e->row_bias ? e->row_bias + row : NULL,
              .col_bias = first ? e->col_bias : NULL,
              .lo = last ? e->lo : -INFINITY, .hi = last ? e->hi : INFINITY},
        .m = chunk_rows(j, j->stage), .n = p->n, .depth = depth,
        .rows = split_rows(j, j->stage), .pieces = j->panel_pieces, .ahead = j->width,
        .b_after = last ? NULL : j->b + (k0 + depth) * nr,
        .next = next_piece, .done = last && e->act >= 0 ? activate_piece : NULL, .arg = j};
}

static void task_stage(void *arg, size_t task, int thread)
{
    job *j = arg;
    ort_tiles_f32 work = work_of(j);
    char *space = (char *)j->p->tiles + (size_t)thread * j->p->tiles_step;
    char *rows = space + ort_round_up(j->k->gemm.f32_tiles_bytes, 64);
    const bool own = j->width <= OWN_THREADS;
    if (own && atomic_load(&j->next_piece) >= j->pieces)
        return;
    if (own) {
        split_own(j, rows);
        work.rows = rows;
    } else if (j->stage == 0) {
        split_first(j);
    }
    j->k->gemm.f32_tiles(&work, space);
    if (!own && j->stage + 1 < j->stages)
        split_blocks(j, j->stage + 1);
}

static void begin_stage(job *j, int64_t stage)
{
    const int64_t nr = j->k->gemm.nr, panels = (j->p->n + nr - 1) / nr;
    const int64_t blocks = blocks_in(j->k, chunk_rows(j, stage));
    const int64_t wanted = j->width > 1 ? (PIECES_A_THREAD * j->width + panels - 1) / panels : 1;
    const int64_t pieces = ort_max_i64(ort_min_i64(wanted, blocks / PIECE_BLOCKS), 1);
    const int64_t each = (blocks + pieces - 1) / pieces;
    j->stage = stage;
    j->panel_pieces = (blocks + each - 1) / each;
    j->pieces = panels * j->panel_pieces;
    atomic_store(&j->next_piece, 0);
    atomic_store(&j->next_block[(stage + 1) % 2], 0);
}

static void job_of(job *j, const ort_kernels *k, const ort_product_f32 *p, const float *b,
                   int width)
{
    const ort_epilogue none = ort_epilogue_none();
    *j = (job){.k = k, .p = p, .b = b, .e = ort_matrix_plainer(p->epilogue ? p->epilogue : &none),
               .c = cut_of(k, p->m, p->depth), .width = width};
    j->stages = j->c.chunks * j->c.parts;
    atomic_store(&j->left, blocks_in(k, chunk_rows(j, 0)));
}

void ort_tiles_multiply(const ort_call *call, const ort_product_f32 *p, const float *b)
{
    job j;
    job_of(&j, call->k, p, b, ort_call_width(call));
    for (int64_t stage = 0; stage < j.stages; stage++) {
        begin_stage(&j, stage);
        ort_call_parallel(call, (size_t)ort_min_i64(j.width, j.pieces), task_stage, &j);
    }
}

void ort_tiles_block(const ort_kernels *k, const ort_product_f32 *p, const float *b)
{
    job j;
    job_of(&j, k, p, b, 1);
    for (int64_t stage = 0; stage < j.stages; stage++) {
        begin_stage(&j, stage);
        task_stage(&j, 0, 0);
    }
}
