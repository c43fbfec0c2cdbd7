/* matrix_crossed.c - products by constant B of crossed sums (kernel/crossed.h): a task is a block
 * of rows by some panels of columns. How rows and k are cut follows from the sizes alone, and each
 * element is summed by itself: the same bits for any number of threads.
 *
 * What sums of columns begin with, and whether their norms suit, is found when a panel is first
 * multiplied, and noted: a session would otherwise read all of its weights once more before it is
 * ready.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/pool.h"
#include "kernel/crossed.h"
#include "op/shared/matrix_tiles.h"

/* Columns beyond the last whole panel, which are left to direct sums, are a few of all at most. */
enum { CROSSED_ROWS_LEAST = 16, CROSSED_DEPTH_LEAST = 48, CROSSED_LEFT_MOST = 8 };
enum { BLOCK_ROWS = 252, TASK_PANELS = 32, CHUNK_BYTES = 256 << 10, CHUNK_PANELS = 16 };
enum { TASKS_A_THREAD = 3, SAMPLES = 8, SAMPLED = 1 << 16 };

/* ---- notes on B */

enum { UNKNOWN, BUSY, EVEN, UNEVEN }; /* of a panel */

/* Followed by a byte for each panel, and by what its sums begin with: [panels][parts][nr]. */
typedef struct notes {
    atomic_int middle; /* SAMPLED and the exponent of B's columns; 0: unknown; -1: none suits */
    atomic_uchar panels[];
} notes;

typedef struct cut { /* of a product, by its sizes alone */
    int64_t panels, parts, part, step; /* of k, and from a row of a part to the next */
    int64_t blocks, most;              /* of rows; of a block, at most */
} cut;

static int64_t over(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static cut cut_of(const ort_kernels *k, int64_t m, int64_t n, int64_t depth)
{
    cut c = {.panels = n / k->gemm.nr, .parts = over(depth, ORT_CROSSED_PART)};
    c.part = over(over(depth, c.parts), 3) * 3;
    c.parts = over(depth, c.part);
    /* A vector more, which is read beyond the end; and not a multiple of 1 KiB. */
    c.step = over(c.part, 16) * 16 + 16;
    c.step += c.step % 256 == 0 ? 16 : 0;
    c.blocks = over(m, BLOCK_ROWS);
    c.most = over(m, c.blocks);
    return c;
}

static bool pays(const ort_kernels *k, int64_t m, int64_t n, int64_t depth)
{
    return k->gemm.crossed.tile && m >= CROSSED_ROWS_LEAST && depth >= CROSSED_DEPTH_LEAST &&
           n >= k->gemm.nr && n % k->gemm.nr * CROSSED_LEFT_MOST <= n;
}

static size_t notes_head(int64_t panels)
{
    return ort_round_up(sizeof(notes) + (size_t)panels, 64);
}

size_t ort_crossed_notes(const ort_kernels *k, int64_t depth, int64_t n)
{
    if (!pays(k, CROSSED_ROWS_LEAST, n, depth))
        return 0;
    const cut c = cut_of(k, 1, n, depth);
    return notes_head(c.panels) + (size_t)(c.panels * c.parts * k->gemm.nr) * sizeof(float);
}

/* ---- a thread's space: the block of rows that it has copied, and it */

typedef struct own {
    _Alignas(64) int64_t block;
    bool suits; /* do all its rows? */
} own;

typedef struct places { /* floats behind own */
    int64_t back;  /* by what sums of rows are multiplied */
    int64_t begin; /* what they begin with: [parts][most] */
    int64_t rows;  /* [parts][most][step] */
    int64_t less;  /* of panels that another thread is about to note: [CHUNK_PANELS][parts][nr] */
    int64_t end;
} places;

static places places_of(const ort_kernels *k, const cut *c)
{
    places p = {.begin = over(c->most, 16) * 16};
    p.rows = over(p.begin + c->parts * c->most, 16) * 16;
    p.less = p.rows + c->parts * c->most * c->step;
    p.end = p.less + CHUNK_PANELS * c->parts * k->gemm.nr;
    return p;
}

size_t ort_crossed_space(const ort_kernels *k, int64_t m, int64_t n, int64_t depth)
{
    if (!pays(k, m, n, depth))
        return 0;
    const cut c = cut_of(k, m, n, depth);
    return sizeof(own) + ort_round_up((size_t)places_of(k, &c).end * sizeof(float), 64);
}

typedef struct job {
    const ort_kernels *k;
    const ort_product_f32 *p;
    ort_direct_f32 *direct;
    ort_epilogue e;
    cut c;
    places at;
    int middle;            /* exponent of B's columns */
    int64_t groups, group; /* of panels, which a task takes together; one */
} job;

bool ort_crossed_takes(const ort_kernels *k, const ort_product_f32 *p)
{
    return p->notes && p->packed && p->tiles && (!p->form || p->form == ORT_DTYPE_FLOAT) &&
           !(p->epilogue && p->epilogue->row_bias) && pays(k, p->m, p->n, p->depth) &&
           atomic_load_explicit(&((notes *)p->notes)->middle, memory_order_relaxed) >= 0;
}

/* ---- B */

static const float *panel_at(const job *j, int64_t panel)
{
    return (const float *)j->p->packed + panel * j->p->depth * j->k->gemm.nr;
}

static float *less_at(const job *j, int64_t panel)
{
    char *floats = (char *)j->p->notes + notes_head(j->c.panels);
    return (float *)(void *)floats + panel * j->c.parts * j->k->gemm.nr;
}

static void look_at(const job *j, int64_t panel, float *less, float *squares)
{
    j->k->gemm.crossed.columns(j->p->depth, j->c.part, panel_at(j, panel), less, squares);
}

/* What sums of a panel begin with, or NULL: it doesn't suit. spare: room for it where another
 * thread is noting it. */
static const float *begun(const job *j, int64_t panel, float *spare)
{
    atomic_uchar *note = &((notes *)j->p->notes)->panels[panel];
    unsigned char known = atomic_load_explicit(note, memory_order_acquire);
    float squares[64], *less = less_at(j, panel);
    if (known == EVEN || known == UNEVEN)
        return known == EVEN ? less : NULL;
    const bool mine = known == UNKNOWN && atomic_compare_exchange_strong(note, &known, BUSY);
    less = mine ? less : spare;
    look_at(j, panel, less, squares);
    const bool even = ort_crossed_even(squares, j->k->gemm.nr, j->middle);
    if (mine)
        atomic_store_explicit(note, even ? EVEN : UNEVEN, memory_order_release);
    return even ? less : NULL;
}

/* The exponent of the columns' norms, from some panels; false where they don't suit. */
static bool find_middle(job *j, float *space)
{
    atomic_int *note = &((notes *)j->p->notes)->middle;
    const int known = atomic_load_explicit(note, memory_order_relaxed);
    if (known) {
        j->middle = known - SAMPLED;
        return known > 0;
    }
    const int64_t samples = ort_min_i64(j->c.panels, SAMPLES);
    ort_crossed_norms norms = {0};
    for (int64_t i = 0; i < samples; i++) {
        float squares[64];
        look_at(j, i * j->c.panels / samples, space + j->at.less, squares);
        ort_crossed_add_norms(&norms, squares, j->k->gemm.nr);
    }
    const bool is = ort_crossed_middle(&norms, &j->middle);
    atomic_store_explicit(note, is ? j->middle + SAMPLED : -1, memory_order_relaxed);
    return is;
}

/* ---- A */

/* What brings a row's norm to 2^middle, a power of two; 0 where nothing does. A row of zeros is
 * multiplied by 0. */
static float scale_of(const job *j, const float *row, float *back)
{
    const float squares = j->k->gemm.crossed.squares(j->p->depth, row);
    *back = 0;
    if (squares >= ldexpf(1, -2 * ORT_CROSSED_EXPONENT) &&
        squares <= ldexpf(1, 2 * ORT_CROSSED_EXPONENT)) {
        const int up = j->middle - (int)lrintf(log2f(squares) / 2);
        *back = ldexpf(j->e.alpha, -up);
        return ldexpf(1, up);
    }
    for (int64_t i = 0; i < j->p->depth; i++)
        if (row[i] != 0)
            return 0;
    return 1;
}

static bool copy_rows(const job *j, int64_t row, int64_t rows, float *space)
{
    const ort_product_f32 *p = j->p;
    const cut *c = &j->c;
    for (int64_t r = 0; r < rows; r++) {
        const float *from = p->a + (row + r) * p->lda;
        const float by = scale_of(j, from, &space[j->at.back + r]);
        if (by == 0)
            return false;
        for (int64_t i = 0; i < c->parts; i++)
            space[j->at.begin + i * c->most + r] = j->k->gemm.crossed.row(
                ort_min_i64(c->part, p->depth - i * c->part), by, from + i * c->part,
                space + j->at.rows + (i * c->most + r) * c->step);
    }
    return true;
}

/* ---- tasks */

typedef struct chunk { /* panels of a block of rows, whose corner of C stays in a cache */
    int64_t row, rows, first, panels;
    const float *less[CHUNK_PANELS];
} chunk;

/* Part i of k of all of it. */
static void one_part(const job *j, const chunk *w, int64_t i, const float *space)
{
    const ort_product_f32 *p = j->p;
    const ort_epilogue *e = &j->e;
    const cut *c = &j->c;
    const int64_t nr = j->k->gemm.nr, k0 = i * c->part, k = ort_min_i64(c->part, p->depth - k0);
    const int64_t tiles = over(w->rows, j->k->gemm.crossed.rows);
    const bool first = i == 0, last = i == c->parts - 1;
    for (int64_t q = 0; q < w->panels; q++) {
        const int64_t column = (w->first + q) * nr, panel = p->depth * nr;
        const float *b = panel_at(j, w->first + q) + k0 * nr;
        const float *ahead = q + 1 < w->panels ? b + panel
                             : last            ? panel_at(j, w->first + q + 1)
                                               : b - q * panel + k * nr;
        const float *end = panel_at(j, c->panels);
        for (int64_t t = 0, row = 0; w->less[q] && t < tiles; t++) {
            const int64_t rows = (w->rows - row + tiles - t - 1) / (tiles - t);
            float *to = p->c + (w->row + row) * p->ldc + column;
            const float *added = e->add ? e->add + (w->row + row) * e->ldadd + column : NULL;
            const float *fetch = ahead + t * (k / 3) * 16;
            const int64_t at = i * c->most + row;
            const ort_crossed_tile tile = {
                .a = space + j->at.rows + at * c->step, .lda = c->step, .b = b,
                .row = space + j->at.begin + at, .column = w->less[q] + i * nr,
                .back = space + j->at.back + row,
                .bias = first && e->col_bias ? e->col_bias + column : NULL,
                .add = first ? added : to, .ldadd = first ? e->ldadd : p->ldc, .c = to,
                .ldc = p->ldc, .next = nr / 2,
                .lo = last ? e->lo : -INFINITY, .hi = last ? e->hi : INFINITY,
                .ahead = t < 6 && fetch < end ? fetch : b};
            j->k->gemm.crossed.tile(rows, k, &tile);
            row += rows;
        }
    }
}

static void one_chunk(const job *j, chunk *w, float *space)
{
    const ort_product_f32 *p = j->p;
    const int64_t nr = j->k->gemm.nr;
    for (int64_t q = 0; q < w->panels; q++) {
        float *spare = space + j->at.less + q * j->c.parts * nr;
        w->less[q] = begun(j, w->first + q, spare);
    }
    for (int64_t i = 0; i < j->c.parts; i++)
        one_part(j, w, i, space);
    for (int64_t q = 0, run; q < w->panels; q += run) {
        const bool crossed = w->less[q] != NULL;
        const int64_t column = (w->first + q) * nr;
        for (run = 1; q + run < w->panels && (w->less[q + run] != NULL) == crossed;)
            run++;
        if (crossed)
            ort_matrix_activate(j->k, w->rows, run * nr, p->c + w->row * p->ldc + column, p->ldc,
                                &j->e);
        else
            j->direct(j->k, p, w->row, w->rows, column, run * nr);
    }
}

static void one_task(const job *j, int64_t task, char *space)
{
    const int64_t block = task / j->groups, group = task % j->groups, nr = j->k->gemm.nr;
    const int64_t row = j->p->m * block / j->c.blocks;
    const int64_t rows = j->p->m * (block + 1) / j->c.blocks - row;
    const int64_t first = group * j->group, end = ort_min_i64(first + j->group, j->c.panels);
    const int64_t fits = CHUNK_BYTES / (rows * nr * (int64_t)sizeof(float));
    const int64_t most = ort_max_i64(ort_min_i64(fits, CHUNK_PANELS), 1);
    own *mine = (own *)(void *)space;
    float *floats = (float *)(void *)(mine + 1);
    if (mine->block != block) {
        mine->suits = copy_rows(j, row, rows, floats);
        mine->block = block;
    }
    const int64_t columns = end == j->c.panels ? j->p->n : end * nr;
    const int64_t crossed = mine->suits ? end : first;
    for (int64_t at = first; at < crossed; at += most) {
        chunk w = {.row = row, .rows = rows, .first = at};
        w.panels = ort_min_i64(most, crossed - at);
        one_chunk(j, &w, floats);
    }
    if (crossed * nr < columns)
        j->direct(j->k, j->p, row, rows, crossed * nr, columns - crossed * nr);
}

static void task_crossed(void *arg, size_t task, int thread)
{
    const job *j = arg;
    one_task(j, (int64_t)task, (char *)j->p->tiles + (size_t)thread * j->p->tiles_step);
}

/* For so many threads, of which each may take any task; 0 tasks where B doesn't suit. */
static int64_t plan(job *j, const ort_kernels *k, const ort_product_f32 *p,
                    ort_direct_f32 *direct, int width, int threads)
{
    const ort_epilogue none = ort_epilogue_none();
    *j = (job){.k = k, .p = p, .direct = direct,
               .e = p->epilogue ? *p->epilogue : none, .c = cut_of(k, p->m, p->n, p->depth)};
    j->at = places_of(k, &j->c);
    if (!find_middle(j, (float *)(void *)((char *)p->tiles + sizeof(own))))
        return 0;
    const int64_t share = width > 1 ? j->c.panels * j->c.blocks / (TASKS_A_THREAD * width)
                                    : j->c.panels;
    j->group = ort_max_i64(ort_min_i64(share, TASK_PANELS), 1);
    j->groups = over(j->c.panels, j->group);
    for (int i = 0; i < threads; i++)
        ((own *)(void *)((char *)p->tiles + (size_t)i * p->tiles_step))->block = -1;
    return j->c.blocks * j->groups;
}

void ort_crossed_multiply(const ort_call *call, const ort_product_f32 *p, ort_direct_f32 *direct)
{
    job j;
    const int threads = call->pool ? ort_pool_threads(call->pool) : 1;
    const int64_t tasks = plan(&j, call->k, p, direct, ort_call_width(call), threads);
    if (tasks)
        ort_call_parallel(call, (size_t)tasks, task_crossed, &j);
    else
        direct(call->k, p, 0, p->m, 0, p->n);
}

void ort_crossed_block(const ort_kernels *k, const ort_product_f32 *p, ort_direct_f32 *direct)
{
    job j;
    const int64_t tasks = plan(&j, k, p, direct, 1, 1);
    for (int64_t i = 0; i < tasks; i++)
        one_task(&j, i, (char *)p->tiles);
    if (!tasks)
        direct(k, p, 0, p->m, 0, p->n);
}
