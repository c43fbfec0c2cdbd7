/* nbits_tiles.c - products of many rows of floats with weights of a few bits, on tiles.
 *
 * Rows are split first, once for all threads. Then each task takes some panels of columns: it
 * widens them to floats, a part of k at a time, and multiplies all rows. What a task sums for a
 * column doesn't depend on who takes it.
 */
#include "op/quant/nbits_tiles.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

enum { PANELS = 2,         /* of a task */
       ROWS_LEAST = 48, DEPTH_LEAST = 96, STEP = 32 };

typedef struct cut {
    int64_t part, parts, blocks, block_bytes; /* of k; of rows */
} cut;

static cut cut_of(const ort_kernels *k, int64_t m, int64_t depth)
{
    const ort_gemm_kernels *g = &k->gemm;
    const int64_t parts = (depth + g->f32_tiles_depth - 1) / g->f32_tiles_depth;
    cut c = {.part = ((depth + parts - 1) / parts + STEP - 1) / STEP * STEP,
             .blocks = (m + g->f32_tiles_rows - 1) / g->f32_tiles_rows};
    c.parts = (depth + c.part - 1) / c.part;
    c.block_bytes = c.part / STEP * g->f32_tiles_step + g->f32_tiles_more;
    return c;
}

bool ort_nbits_tiles_pay(const ort_kernels *k, int64_t m, int64_t n, int64_t depth)
{
    return k->gemm.f32_tiles && m >= ROWS_LEAST && n >= k->gemm.nr && depth >= DEPTH_LEAST;
}

size_t ort_nbits_tiles_space(const ort_kernels *k, int64_t m, int64_t depth)
{
    const cut c = cut_of(k, m, depth);
    return ort_round_up((size_t)(c.blocks * c.parts * c.block_bytes), 64);
}

static size_t panels_bytes(const ort_kernels *k)
{
    const int64_t floats = (int64_t)PANELS * k->gemm.nr * k->gemm.f32_tiles_depth;
    return ort_round_up((size_t)floats * sizeof(float), 64);
}

size_t ort_nbits_tiles_scratch(const ort_kernels *k)
{
    return panels_bytes(k) + k->gemm.f32_tiles_bytes;
}

typedef struct tiles_job {
    const ort_call *call;
    const ort_nbits_product *p;
    cut c;
} tiles_job;

/* Split blocks of one part of k; the last part may be shorter, and so its blocks. */
static char *rows_of(const tiles_job *j, int64_t part)
{
    return (char *)j->p->space + part * j->c.blocks * j->c.block_bytes;
}

static int64_t depth_of(const tiles_job *j, int64_t part)
{
    return ort_min_i64(j->c.part, j->p->k - part * j->c.part);
}

static void task_split(void *arg, int64_t first, int64_t end, int thread)
{
    const tiles_job *j = arg;
    const ort_nbits_product *p = j->p;
    const ort_gemm_kernels *g = &j->call->k->gemm;
    for (int64_t i = first; i < end; i++) {
        const int64_t part = i % j->c.parts, block = i / j->c.parts, depth = depth_of(j, part);
        const int64_t row = block * g->f32_tiles_rows;
        const int64_t bytes = (depth + STEP - 1) / STEP * g->f32_tiles_step + g->f32_tiles_more;
        g->f32_tiles_split(ort_min_i64(g->f32_tiles_rows, p->m - row), depth,
                           p->a + row * p->k + part * j->c.part, p->k,
                           rows_of(j, part) + block * bytes);
    }
}

/* The panels of one task, one by one. */
typedef struct panels_left {
    int64_t next, count;
} panels_left;

static int64_t next_panel(void *arg)
{
    panels_left *p = arg;
    return p->next < p->count ? p->next++ : -1;
}

/* Columns [first, end) as panels of floats; beyond the last group there are zeros. */
static void widen(const tiles_job *j, int64_t first, int64_t end, int64_t k0, int64_t depth,
                  float *panels)
{
    const ort_gemm_kernels *g = &j->call->k->gemm;
    const int64_t nr = g->nr, lanes = g->nbits_lanes;
    for (int64_t c = 0; first + c < end; c += lanes)
        g->nbits_widen(j->p->w, (first + c) / lanes, k0, depth,
                       panels + c / nr * depth * nr + c % nr, nr);
    const int64_t groups = (end - first + lanes - 1) / lanes * lanes, rest = groups % nr;
    for (int64_t i = 0; rest && i < depth; i++)
        memset(panels + (groups / nr * depth + i) * nr + rest, 0,
               (size_t)(nr - rest) * sizeof *panels);
}

static void task_columns(void *arg, int64_t first, int64_t end, int thread)
{
    const tiles_job *j = arg;
    const ort_nbits_product *p = j->p;
    const ort_nbits *w = p->w;
    const int64_t nr = j->call->k->gemm.nr;
    float *panels = ort_call_scratch(j->call, thread), *y = w->y + first;
    char *space = (char *)panels + panels_bytes(j->call->k);
    for (int64_t part = 0; part < j->c.parts; part++) {
        const int64_t k0 = part * j->c.part, depth = depth_of(j, part);
        panels_left left = {.count = (end - first + nr - 1) / nr};
        widen(j, first, end, k0, depth, panels);
        const ort_tiles_f32 work = {
            .t = {.a = p->a + k0, .b = panels, .lda = p->k, .b_step = nr, .b_panel = depth * nr,
                  .c = y, .ldc = w->y_row, .add = k0 ? y : NULL, .ldadd = w->y_row, .alpha = 1.0f,
                  .col_bias = k0 || !w->bias ? NULL : w->bias + first, .lo = -INFINITY,
                  .hi = INFINITY},
            .m = p->m, .n = end - first, .depth = depth, .rows = rows_of(j, part), .pieces = 1,
            .ahead = 1, .next = next_panel, .arg = &left};
        j->call->k->gemm.f32_tiles(&work, space);
    }
}

void ort_nbits_tiles_multiply(const ort_call *call, const ort_nbits_product *p)
{
    tiles_job j = {.call = call, .p = p, .c = cut_of(call->k, p->m, p->k)};
    ort_call_range(call, j.c.blocks * j.c.parts, 1, task_split, &j);
    ort_call_range(call, p->w->n, PANELS * call->k->gemm.nr, task_columns, &j);
}
