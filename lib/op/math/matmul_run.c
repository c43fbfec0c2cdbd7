/* matmul_run.c - running the described matrix product: the additions of Gemm, batches one by one on
 * the pool or one per task. */
#include "op/math/matmul.h"

#include <string.h>

#include "base/budget.h"
#include "base/num.h"
#include "op/shared/halves.h"

/* ---- f32 */

typedef struct product {
    const ort_call *call;
    const matmul_state *state;
    const matmul_plan *plan;
    const float *a, *b;
    float *y;
    const double *a64, *b64, *add64;
    double *y64;
    ort_epilogue e;
} product;

static void transpose_a_f32(const matmul_plan *p, const float *a, float *to)
{
    for (int64_t i0 = 0; i0 < p->m; i0 += 16)
        for (int64_t kk = 0; kk < p->k; kk++)
            for (int64_t i = i0; i < p->m && i < i0 + 16; i++)
                to[i * p->k + kk] = a[i * p->a_row + kk * p->a_col];
}

/* Elements of product `index` of the batch, each by itself. */
typedef struct dots {
    const product *p;
    const float *a, *b;
    float *y;
} dots;

static dots dots_of(const product *p, int64_t index)
{
    const matmul_plan *plan = p->plan;
    return (dots){p, p->a + matmul_offset(plan, plan->a_batch, index),
                  p->b + matmul_offset(plan, plan->b_batch, index),
                  p->y + index * plan->m * plan->n};
}

static void dots_f32(const dots *d, int64_t first, int64_t last)
{
    const product *p = d->p;
    const matmul_plan *plan = p->plan;
    const ort_epilogue *e = &p->e;
    for (int64_t at = first; at < last; at++) {
        int64_t i = at / plan->n, j = at % plan->n;
        float v = e->alpha * p->call->k->gemm.dot_f32(plan->k, d->a + i * plan->a_row,
                                                      d->b + j * plan->b_col);
        v += e->add ? e->add[i * e->ldadd + j] : 0.0f;
        v += e->row_bias ? e->row_bias[i] : 0.0f;
        v += e->col_bias ? e->col_bias[j] : 0.0f;
        v = v < e->lo ? e->lo : v;
        d->y[at] = v > e->hi ? e->hi : v;
    }
    if (e->act >= 0)
        p->call->k->math.unary[e->act](d->y + first, d->y + first, (size_t)(last - first), e->act_a,
                                       e->act_b);
}

static int64_t dots_grain(const matmul_plan *plan)
{
    return ort_max_i64((1 << 18) / ort_max_i64(plan->k, 1), 1);
}

static void task_dots(void *arg, int64_t first, int64_t end, int thread)
{
    dots_f32(arg, first, end);
}

static const void *packed_b(const product *p, int64_t index)
{
    const matmul_plan *plan = p->plan;
    int64_t which = plan->batch_rank ? matmul_offset(plan, plan->b_batch, index) /
                                           ort_max_i64(plan->k * plan->n, 1)
                                     : 0;
    return (const char *)p->state->packed + (size_t)which * p->state->packed_bytes;
}

/* Product `index` of the batch, where `space` has room for A's rows, for B, and for tiles. */
static void product_f32(const product *p, int64_t index, char *space, ort_product_f32 *q)
{
    const matmul_plan *plan = p->plan;
    const float *a = p->a + matmul_offset(plan, plan->a_batch, index);
    *q = (ort_product_f32){.m = plan->m, .n = plan->n, .depth = plan->k, .a = a,
                           .lda = plan->a_row, .c = p->y + index * plan->m * plan->n,
                           .ldc = plan->n, .split = space + plan->split, .epilogue = &p->e};
    if (plan->a_col != 1) {
        float *rows = (float *)(void *)space;
        transpose_a_f32(plan, a, rows);
        q->a = rows;
        q->lda = plan->k;
    }
    if (p->state->packed) {
        q->packed = packed_b(p, index);
        q->form = p->state->form;
        q->notes = p->state->notes;
        return;
    }
    q->b = p->b + matmul_offset(plan, plan->b_batch, index);
    q->row = plan->b_row;
    q->column = plan->b_col;
    q->space = space + plan->row_bytes;
}

static void task_batch_f32(void *arg, size_t task, int thread)
{
    const product *p = arg;
    if (p->plan->dots) {
        dots d = dots_of(p, (int64_t)task);
        dots_f32(&d, 0, p->plan->m * p->plan->n);
        return;
    }
    ort_product_f32 q;
    char *own = ort_call_scratch(p->call, thread);
    product_f32(p, (int64_t)task, own + p->plan->tiles, &q);
    q.tiles = p->plan->tiles ? own : NULL;
    ort_matrix_block_f32(p->call->k, &q);
}

static void one_f32(const product *p, int64_t index)
{
    const matmul_plan *plan = p->plan;
    if (plan->dots) {
        dots d = dots_of(p, index);
        ort_call_range(p->call, plan->m * plan->n, dots_grain(plan), task_dots, &d);
        return;
    }
    ort_product_f32 q;
    product_f32(p, index, (char *)p->call->workspace + plan->shared, &q);
    q.tiles = plan->tiles ? p->call->thread_space : NULL;
    q.tiles_step = p->call->thread_bytes;
    ort_matrix_multiply_f32(p->call, &q);
}

/* The term beta * C as one of the epilogue's additions. */
static void add_c_f32(product *p, const ort_tensor *c, const ort_tensor *y)
{
    const ort_call *call = p->call;
    int64_t count = ort_tensor_count(c), stride[ORT_MAX_RANK];
    float *space = (float *)(void *)((char *)call->workspace + p->plan->c_space);
    const float *from = c->data;
    if (c->dtype != ORT_DTYPE_FLOAT) {
        ort_call_widen(call, c, space);
        from = space;
    }
    if (p->state->beta != 1.0f) {
        for (int64_t i = 0; i < count; i++)
            space[i] = from[i] * p->state->beta;
        from = space;
    }
    ort_shape_broadcast_strides(&c->shape, &y->shape, stride);
    if (!p->state->gemm) { /* Linear: a row */
        p->e.col_bias = from;
    } else if (stride[0] != 0 && stride[1] != 0) {
        p->e.add = from;
        p->e.ldadd = stride[0];
    } else if (stride[0] != 0) {
        p->e.row_bias = from;
    } else if (stride[1] != 0) {
        p->e.col_bias = from;
    } else {
        float value = from[0];
        for (int64_t j = 0; j < p->plan->n; j++)
            space[j] = value;
        p->e.col_bias = space;
    }
}

static void run_f32(product *p, const ort_tensor *c, const ort_tensor *y)
{
    const matmul_plan *plan = p->plan;
    if (c && p->state->beta != 0.0f)
        add_c_f32(p, c, y);
    if (plan->per_batch) {
        ort_call_parallel(p->call, (size_t)plan->batch, task_batch_f32, p);
        return;
    }
    for (int64_t i = 0; i < plan->batch; i++)
        one_f32(p, i);
}

/* ---- f64: B is packed on the task that needs it, unless constant */

static void one_f64(const product *p, int64_t index, char *space, bool pool)
{
    const matmul_plan *plan = p->plan;
    const double *a = p->a64 + matmul_offset(plan, plan->a_batch, index);
    ort_product_f64 q = {.m = plan->m, .n = plan->n, .depth = plan->k, .a = a, .lda = plan->a_row,
                         .c = p->y64 + index * plan->m * plan->n, .ldc = plan->n,
                         .alpha = (double)p->state->alpha, .add = p->add64, .ldadd = plan->n};
    if (plan->a_col != 1) {
        double *rows = (double *)(void *)space;
        for (int64_t kk = 0; kk < plan->k; kk++)
            for (int64_t i = 0; i < plan->m; i++)
                rows[i * plan->k + kk] = a[i * plan->a_row + kk * plan->a_col];
        q.a = rows;
        q.lda = plan->k;
    }
    if (p->state->packed) {
        q.packed = packed_b(p, index);
    } else {
        double *to = (double *)(void *)(space + plan->row_bytes);
        ort_matrix_pack_f64(p->call->k, plan->k, plan->n,
                            p->b64 + matmul_offset(plan, plan->b_batch, index), plan->b_row,
                            plan->b_col, to);
        q.packed = to;
    }
    if (pool)
        ort_matrix_multiply_f64(p->call, &q);
    else
        ort_matrix_block_f64(p->call->k, &q);
}

static void task_batch_f64(void *arg, size_t task, int thread)
{
    const product *p = arg;
    one_f64(p, (int64_t)task, ort_call_scratch(p->call, thread), false);
}

static void run_f64(product *p, const ort_tensor *c, const ort_tensor *y)
{
    const matmul_plan *plan = p->plan;
    if (c && p->state->beta != 0.0f) {
        int64_t stride[ORT_MAX_RANK];
        double *add = (double *)(void *)((char *)p->call->workspace + plan->c_space);
        ort_shape_broadcast_strides(&c->shape, &y->shape, stride);
        for (int64_t i = 0; i < plan->m; i++)
            for (int64_t j = 0; j < plan->n; j++)
                add[i * plan->n + j] = (double)p->state->beta *
                                       ((const double *)c->data)[i * stride[0] + j * stride[1]];
        p->add64 = add;
    }
    if (plan->per_batch) {
        ort_call_parallel(p->call, (size_t)plan->batch, task_batch_f64, p);
        return;
    }
    for (int64_t i = 0; i < plan->batch; i++)
        one_f64(p, i, (char *)p->call->workspace + plan->shared, true);
}

/* ---- integers */

#define INTEGER_GRAIN 262144 /* products of a task */

/* Rows [first, first + rows) of y = alpha * a b + beta * c. */
#define INTEGER_PRODUCT(name, type)                                                                \
    static void name(const matmul_state *s, const matmul_plan *p, const type *a, const type *b,    \
                     const type *c, const int64_t *stride, type *y, int64_t first, int64_t rows)   \
    {                                                                                              \
        type alpha = (type)(int64_t)s->alpha, beta = (type)(int64_t)s->beta;                       \
        ort_pace pace = {0};                                                                       \
        memset(y + first * p->n, 0, (size_t)(rows * p->n) * sizeof *y);                            \
        for (int64_t i = first; i < first + rows; i++) {                                           \
            type *row = y + i * p->n;                                                              \
            for (int64_t kk = 0; kk < p->k; kk++) {                                                \
                type x = a[i * p->a_row + kk * p->a_col];                                          \
                const type *bk = b + kk * p->b_row;                                                \
                for (int64_t j = 0; p->b_col == 1 && j < p->n; j++)                                \
                    row[j] += x * bk[j];                                                           \
                for (int64_t j = 0; p->b_col != 1 && j < p->n; j++)                                \
                    row[j] += x * bk[j * p->b_col];                                                \
                if (ort_pace_over(&pace, (uint64_t)p->n))                                          \
                    return;                                                                        \
            }                                                                                      \
            for (int64_t j = 0; j < p->n; j++) {                                                   \
                row[j] *= alpha;                                                                   \
                if (c)                                                                             \
                    row[j] += beta * c[i * stride[0] + j * stride[1]];                             \
            }                                                                                      \
        }                                                                                          \
    }
INTEGER_PRODUCT(product_u32, uint32_t)
INTEGER_PRODUCT(product_u64, uint64_t)

typedef struct integer_product {
    const matmul_state *state;
    const matmul_plan *plan;
    const ort_tensor *a, *b, *c;
    ort_tensor *y;
    int64_t stride[ORT_MAX_RANK];
    int64_t rows, blocks; /* of a task; tasks of a matrix */
} integer_product;

static void task_integer(void *arg, size_t task, int thread)
{
    const integer_product *q = arg;
    const matmul_plan *p = q->plan;
    int64_t matrix = (int64_t)task / q->blocks, first = (int64_t)task % q->blocks * q->rows;
    int64_t rows = ort_min_i64(q->rows, p->m - first);
    int64_t a = matmul_offset(p, p->a_batch, matrix), b = matmul_offset(p, p->b_batch, matrix);
    int64_t y = matrix * p->m * p->n;
    if (ort_dtype_get(q->a->dtype)->bits == 32)
        product_u32(q->state, p, (const uint32_t *)q->a->data + a,
                    (const uint32_t *)q->b->data + b, q->c ? q->c->data : NULL, q->stride,
                    (uint32_t *)q->y->data + y, first, rows);
    else
        product_u64(q->state, p, (const uint64_t *)q->a->data + a,
                    (const uint64_t *)q->b->data + b, q->c ? q->c->data : NULL, q->stride,
                    (uint64_t *)q->y->data + y, first, rows);
}

static void run_integer(ort_call *call, integer_product *q)
{
    const matmul_plan *p = q->plan;
    if (q->c)
        ort_shape_broadcast_strides(&q->c->shape, &q->y->shape, q->stride);
    double row = (double)p->k * (double)p->n + 1;
    q->rows = ort_max_i64(1, (int64_t)(INTEGER_GRAIN / row));
    q->blocks = (p->m + q->rows - 1) / q->rows;
    ort_call_parallel(call, (size_t)(p->batch * q->blocks), task_integer, q);
}

/* ---- run */

ort_status ort_matmul_run(ort_call *call, ort_error *err)
{
    const matmul_state *state = call->state;
    const matmul_plan *plan = call->plan_state;
    const ort_tensor *a = ort_call_in(call, 0), *b = ort_call_in(call, 1);
    const ort_tensor *c = ort_call_in(call, 2);
    ort_tensor *y = ort_call_out(call, 0);
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    product p = {.call = call, .state = state, .plan = plan, .e = state->epilogue};
    char *space = call->workspace;
    switch (a->dtype) {
    case ORT_DTYPE_FLOAT:
        p.a = a->data;
        p.b = b->data;
        p.y = y->data;
        run_f32(&p, c, y);
        return ORT_OK;
    case ORT_DTYPE_FLOAT16:
    case ORT_DTYPE_BFLOAT16: {
        float *wide = (float *)(void *)(space + plan->a_wide);
        ort_call_widen(call, a, wide);
        p.a = wide;
        if (!state->packed) {
            wide = (float *)(void *)(space + plan->b_wide);
            ort_call_widen(call, b, wide);
            p.b = wide;
        }
        p.y = (float *)(void *)(space + plan->y_wide);
        run_f32(&p, c, y);
        ort_call_narrow(call, p.y, y);
        return ORT_OK;
    }
    case ORT_DTYPE_DOUBLE:
        p.a64 = a->data;
        p.b64 = b->data;
        p.y64 = y->data;
        run_f64(&p, c, y);
        return ORT_OK;
    default: {
        integer_product q = {.state = state, .plan = plan, .a = a, .b = b, .c = c, .y = y};
        run_integer(call, &q);
        return ORT_OK;
    }
    }
}
