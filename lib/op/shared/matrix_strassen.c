/* matrix_strassen.c - large products by constant B in Strassen's way (kernel/strassen.h): a task is
 * a block of rows by some pairs of panels. How rows and k are cut follows from the sizes alone, and
 * what a pair sums from its block: the same bits for any number of threads.
 *
 * Whether the columns of a pair are of one size is looked at when they are first multiplied, and
 * noted: a session would otherwise read all of its weights once more before it is ready.
 */
#include <math.h>
#include <stdatomic.h>

#include "base/checked.h"
#include "base/pool.h"
#include "kernel/strassen.h"
#include "op/shared/matrix_tiles.h"

/* An eighth of the multiply-adds goes. What comes is for each element of C, whose part is that of
 * one k and more, and of A and B. Zen 4: 0.91 of the time for 128 x 768 x 3072, 0.95 for 64 x 384 x
 * 384, 0.96 for 197 x 576 x 192; 0.97 to 1.07 for those beyond these bounds. */
enum { ROWS_LEAST = 64, COLUMNS_LEAST = 192, DEPTH_LEAST = 192, TOGETHER_LEAST = 640 };
enum { PAIRS_A_TASK = 8, TASKS_A_THREAD = 3 };

enum { UNKNOWN, EVEN, UNEVEN };

static bool pays(const ort_kernels *k, int64_t m, int64_t n, int64_t depth)
{
    return k->gemm.strassen.finish && !k->gemm.crossed.tile && m >= ROWS_LEAST &&
           n >= COLUMNS_LEAST && depth >= DEPTH_LEAST && depth % 2 == 0 &&
           n + depth >= TOGETHER_LEAST;
}

size_t ort_strassen_notes(const ort_kernels *k, int64_t depth, int64_t n)
{
    return pays(k, ROWS_LEAST, n, depth) ? (size_t)(n / (2 * k->gemm.nr)) : 0;
}

/* What a thread's space begins with: the block of rows whose left operands it has. */
typedef struct own {
    _Alignas(64) int64_t block;
    ort_strassen_left left;
} own;

size_t ort_strassen_space(const ort_kernels *k, int64_t m, int64_t n, int64_t depth)
{
    if (!pays(k, m, n, depth))
        return 0;
    const ort_strassen s = ort_strassen_of(&k->gemm, m, n, depth);
    return sizeof(own) + ort_round_up(ort_strassen_bytes(&s), 64);
}

bool ort_strassen_takes(const ort_kernels *k, const ort_product_f32 *p)
{
    const bool in_place = p->epilogue && p->epilogue->add == p->c;
    return p->notes && p->packed && p->tiles && !in_place && pays(k, p->m, p->n, p->depth);
}

typedef struct job {
    const ort_kernels *k;
    const ort_product_f32 *p;
    ort_direct_f32 *direct;
    ort_epilogue e;
    ort_strassen s;
    int64_t groups, group; /* of pairs, which a task takes together; one */
} job;

static bool is_even(const job *j, int64_t pair, const float *b)
{
    atomic_uchar *note = (atomic_uchar *)j->p->notes + pair;
    unsigned char known = atomic_load_explicit(note, memory_order_relaxed);
    const int64_t panel = j->p->depth * j->k->gemm.nr;
    if (known == UNKNOWN) {
        known = j->k->gemm.strassen.even(j->p->depth, b, b + panel) ? EVEN : UNEVEN;
        atomic_store_explicit(note, known, memory_order_relaxed);
    }
    return known == EVEN;
}

/* C's corner and what follows there. */
static ort_tile_f32 corner(const job *j, int64_t row, int64_t column)
{
    const ort_product_f32 *p = j->p;
    const ort_epilogue *e = &j->e;
    return (ort_tile_f32){.c = p->c + row * p->ldc + column, .ldc = p->ldc, .alpha = e->alpha,
                          .add = e->add ? e->add + row * e->ldadd + column : NULL,
                          .ldadd = e->ldadd, .row_bias = e->row_bias ? e->row_bias + row : NULL,
                          .col_bias = e->col_bias ? e->col_bias + column : NULL, .lo = e->lo,
                          .hi = e->hi};
}

static void one_task(const job *j, int64_t task, char *space)
{
    const ort_product_f32 *p = j->p;
    const int64_t block = task / j->groups, group = task % j->groups, wide = 2 * j->k->gemm.nr;
    const int64_t row = ort_strassen_first_row(&j->s, block);
    const int64_t rows = ort_strassen_first_row(&j->s, block + 1) - row;
    const int64_t end = ort_min_i64((group + 1) * j->group, j->s.pairs);
    own *mine = (own *)(void *)space;
    space += sizeof *mine;
    if (mine->block != block) {
        mine->left = ort_strassen_rows(&j->s, block, p->a, p->lda, space);
        mine->block = block;
    }
    for (int64_t pair = group * j->group; pair < end; pair++) {
        const float *b = (const float *)p->packed + pair * wide * p->depth;
        const float *ahead = pair + 1 < end ? b + wide * p->depth : NULL;
        const ort_tile_f32 t = corner(j, row, pair * wide);
        if (mine->left.suits && is_even(j, pair, b) &&
            ort_strassen_pair(&j->s, block, &mine->left, b, &t, ahead, space))
            ort_matrix_activate(j->k, rows, wide, t.c, p->ldc, &j->e);
        else
            j->direct(j->k, p, row, rows, pair * wide, wide);
    }
    if (end == j->s.pairs && end * wide < p->n)
        j->direct(j->k, p, row, rows, end * wide, p->n - end * wide);
}

static void task_strassen(void *arg, size_t task, int thread)
{
    const job *j = arg;
    one_task(j, (int64_t)task, (char *)j->p->tiles + (size_t)thread * j->p->tiles_step);
}

/* For so many threads, of which each may take any task. */
static int64_t plan(job *j, const ort_kernels *k, const ort_product_f32 *p,
                    ort_direct_f32 *direct, int width, int threads)
{
    const ort_epilogue none = ort_epilogue_none();
    *j = (job){.k = k, .p = p, .direct = direct,
               .e = ort_matrix_plainer(p->epilogue ? p->epilogue : &none),
               .s = ort_strassen_of(&k->gemm, p->m, p->n, p->depth)};
    const int64_t share = j->s.pairs * j->s.blocks / (TASKS_A_THREAD * width);
    j->group = ort_max_i64(ort_min_i64(share, PAIRS_A_TASK), 1);
    j->groups = (j->s.pairs + j->group - 1) / j->group;
    for (int i = 0; i < threads; i++)
        ((own *)(void *)((char *)p->tiles + (size_t)i * p->tiles_step))->block = -1;
    return j->s.blocks * j->groups;
}

void ort_strassen_multiply(const ort_call *call, const ort_product_f32 *p, ort_direct_f32 *direct)
{
    job j;
    const int threads = call->pool ? ort_pool_threads(call->pool) : 1;
    const int64_t tasks = plan(&j, call->k, p, direct, ort_call_width(call), threads);
    ort_call_parallel(call, (size_t)tasks, task_strassen, &j);
}

void ort_strassen_block(const ort_kernels *k, const ort_product_f32 *p, ort_direct_f32 *direct)
{
    job j;
    const int64_t tasks = plan(&j, k, p, direct, 1, 1);
    for (int64_t i = 0; i < tasks; i++)
        one_task(&j, i, p->tiles);
}
