/* quant_matmul.c - products of 8-bit matrices: MatMulInteger, QLinearMatMul, and com.microsoft's
 * QGemm, MatMulIntegerToFloat and DynamicQuantizeMatMul; CodeMatMul, a QGemm of batches.
 *
 * A table says which input holds what; one path runs them all: pack B (once when constant), exact
 * sums in int32, then a finish per output type: the sums themselves, scaled to float in their own
 * place, or requantized. DynamicQuantizeMatMul reads A twice, for its range and as it quantizes the
 * rows of the product. QLinearMatMul of a float8 kind goes another way (quant_float8.c).
 */
#include <math.h>
#include <string.h>

#include "op/quant/quant_float8.h"
#include "op/shared/dynamic_range.h"
#include "op/shared/integer.h"
#include "op/shared/matmul_shape.h"

typedef struct slots { /* input of each operand, -1: none */
    int a, b, a_scale, b_scale, a_zero, b_zero, y_scale, y_zero, bias;
} slots;

enum { RANGE_FLOATS = 1 << 15, /* whose range is a task */
       BATCH_WORK = 1 << 22 }; /* multiply-adds of a product that isn't worth dividing */

typedef struct qmm_state {
    const slots *in;
    matmul_state mm; /* transposes */
    float alpha;
    bool dynamic;    /* A is float and quantized here */
    bool floats;     /* A, B or Y is of a float8 kind: QLinearMatMul in floats */
    const void *packed;
    size_t packed_bytes;
} qmm_state;

typedef struct qmm_plan {
    matmul_plan mm;
    bool per_batch;              /* a task is one product of the batch */
    size_t rows, packed;         /* offsets in the workspace, or in the thread's space if so */
    size_t ranges, lines;        /* in the workspace */
} qmm_plan;

enum { INTEGER, QLINEAR, QGEMM, TO_FLOAT, DYNAMIC, CODED };

static const slots all_slots[] = {
    [INTEGER] = {0, 1, -1, -1, 2, 3, -1, -1, -1}, [QLINEAR] = {0, 3, 1, 4, 2, 5, 6, 7, -1},
    [QGEMM] = {0, 3, 1, 4, 2, 5, 7, 8, 6},        [TO_FLOAT] = {0, 1, 2, 3, 4, 5, -1, -1, 6},
    [DYNAMIC] = {0, 1, -1, 2, -1, 3, -1, -1, 4},  [CODED] = {0, 3, 1, 4, 2, 5, 7, 8, 6}};

static const ort_bind qmm_bind[] = {
    ORT_BIND_AS(qmm_state, mm.trans_a, "transA", ORT_MAYBE),
    ORT_BIND_AS(qmm_state, mm.trans_b, "transB", ORT_MAYBE),
    ORT_BIND(qmm_state, alpha, ORT_ELSE(1)), {0}};

/* ---- inference */

static ort_status qmm_infer(ort_infer *x, ort_error *err)
{
    const slots *in = &all_slots[x->op->variant];
    if (x->op->variant == QGEMM || x->op->variant == CODED) {
        const ort_fact *zero = ort_infer_in(x, in->y_zero);
        ort_infer_set_dtype(x, 0, zero ? zero->type.dtype : ORT_DTYPE_FLOAT);
    }
    return x->op->variant == QGEMM ? ort_gemm_infer_shape(x, in->a, in->b, err)
                                   : ort_matmul_infer_shape(x, in->a, in->b, err);
}

/* ---- prepare */

static ort_status pack_constant(ort_prep *p, qmm_state *state, ort_error *err)
{
    const ort_tensor *b = ort_prep_constant(p, state->in->b);
    const ort_tensor *zero =
        state->in->b_zero >= 0 ? ort_prep_constant(p, state->in->b_zero) : NULL;
    bool has_zero = state->in->b_zero >= 0 &&
                    ort_prep_dtype(p, state->in->b_zero) != ORT_DTYPE_UNDEFINED;
    if (!b || b->shape.rank < 2 || ort_tensor_count(b) == 0 || (has_zero && !zero))
        return ORT_OK;
    int64_t k = b->shape.dim[b->shape.rank - 2], n = b->shape.dim[b->shape.rank - 1];
    int64_t row = n, column = 1, count = ort_shape_count_range(&b->shape, 0, b->shape.rank - 2);
    if (state->mm.trans_b) {
        int64_t t = k;
        k = n;
        n = t;
        row = 1;
        column = k;
    }
    size_t bytes, total;
    if (!ort_integer_fours_bytes(p->k, k, n, &bytes) ||
        !ort_mul_size(bytes, (size_t)count, &total))
        return ort_error_memory(err, SIZE_MAX);
    ort_zeros zeros = ort_zeros_of(zero);
    if (zeros.count != 1 && zeros.count != n)
        return ort_prep_fail(p, err, "the zero point of B has %lld elements, needs 1 or %lld",
                             (long long)zeros.count, (long long)n);
    bool fill;
    char *packed = ort_prep_pack(p, "panels", ort_prep_constants(p), total, &fill);
    if (!packed)
        return ort_error_memory(err, total);
    for (int64_t i = 0; i < count && fill; i++) {
        ort_bytes from = ort_bytes_of(b, row, column);
        from.data = (const char *)b->data + i * k * n;
        ort_integer_pack_fours(p->k, k, n, &from, &zeros, packed + (size_t)i * bytes);
    }
    ort_prep_absorb(p, state->in->b);
    state->packed = packed;
    state->packed_bytes = bytes;
    return ORT_OK;
}

static bool any_float8(const ort_prep *p)
{
    return ort_is_float8(ort_prep_dtype(p, 0)) || ort_is_float8(ort_prep_dtype(p, 3)) ||
           ort_is_float8(ort_prep_dtype(p, 7));
}

static ort_status qmm_prepare(ort_prep *p, ort_error *err)
{
    qmm_state *state = p->state;
    const slots *in = &all_slots[p->op->variant];
    state->in = in;
    state->dynamic = p->op->variant == DYNAMIC;
    state->floats = p->op->variant == QLINEAR && any_float8(p);
    if (state->floats)
        return ORT_OK;
    const int bytes[] = {state->dynamic ? in->b : in->a, in->b};
    for (int i = 0; i < 2; i++) {
        ort_dtype dtype = ort_prep_dtype(p, bytes[i]);
        if (dtype != ORT_DTYPE_INT8 && dtype != ORT_DTYPE_UINT8)
            return ort_prep_unsupported_dtype(p, bytes[i], err);
    }
    return pack_constant(p, state, err);
}

/* ---- shape */

static ort_status check_count(const ort_shaping *s, int input, int64_t n, const char *what,
                              ort_error *err)
{
    if (input < 0 || input >= s->in_count || !s->in[input])
        return ORT_OK;
    int64_t count = ort_tensor_count(s->in[input]);
    if (count == 1 || count == n)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_MODEL, "%s (input %d) has %lld elements, needs 1 or %lld",
                         what, input, (long long)count, (long long)n);
}

static ort_status qmm_shape(ort_shaping *s, ort_error *err)
{
    const qmm_state *state = s->state;
    const slots *in = state->in;
    qmm_plan *plan = ort_arena_alloc(s->arena, sizeof *plan);
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    s->plan_state = plan;
    const ort_tensor *a = s->in[in->a], *b = s->in[in->b];
    ORT_TRY(ort_matmul_describe(&a->shape, &b->shape, &state->mm, &plan->mm, err));
    int64_t rows =
        a->shape.rank > 1 ? a->shape.dim[a->shape.rank - (state->mm.trans_a ? 1 : 2)] : 1;
    ORT_TRY(check_count(s, in->a_zero, rows, "the zero point of A", err));
    ORT_TRY(check_count(s, in->b_zero, plan->mm.n, "the zero point of B", err));
    ORT_TRY(check_count(s, in->a_scale, rows, "the scale of A", err));
    ORT_TRY(check_count(s, in->b_scale, plan->mm.n, "the scale of B", err));
    ORT_TRY(check_count(s, in->y_scale, rows, "the scale of Y", err));
    ORT_TRY(check_count(s, in->y_zero, rows, "the zero point of Y", err));
    const ort_tensor *bias = in->bias >= 0 && in->bias < s->in_count ? s->in[in->bias] : NULL;
    ort_shape broadcast;
    if (bias && s->out[0] && (!ort_shape_broadcast(&s->out[0]->shape, &bias->shape, &broadcast) ||
                              !ort_shape_equal(&broadcast, &s->out[0]->shape)))
        return ort_error_set(err, ORT_ERROR_MODEL, "the bias doesn't broadcast to the product");
    if (state->floats)
        return ort_qlinear_f8_shape(s, &plan->mm, err);
    size_t row_bytes, packed = 0, total;
    if (!ort_integer_rows_bytes(s->k, plan->mm.m, plan->mm.k, &row_bytes) ||
        (!state->packed && !ort_integer_packed_bytes(s->k, plan->mm.k, plan->mm.n, &packed)))
        return ort_error_memory(err, SIZE_MAX);
    double work = (double)plan->mm.m * (double)plan->mm.n * (double)plan->mm.k;
    plan->per_batch = plan->mm.batch > 1 && work <= BATCH_WORK;
    plan->rows = plan->per_batch ? ort_round_up(ort_integer_thread_bytes(s->k), 64) : 0;
    plan->packed = plan->rows + ort_round_up(row_bytes, 64);
    if (!ort_add_size(plan->packed, ort_round_up(packed, 64), &total))
        return ort_error_memory(err, SIZE_MAX);
    s->thread_bytes = plan->per_batch ? total : ort_integer_thread_bytes(s->k);
    plan->ranges = plan->lines = plan->per_batch ? 0 : total;
    if (state->dynamic)
        plan->lines += 2 * sizeof(float) * ort_task_count(ort_tensor_count(a), RANGE_FLOATS);
    if (!ort_mul_size((size_t)plan->mm.n, 2 * sizeof(float), &total) ||
        !ort_add_size(plan->lines, total, &s->workspace_bytes))
        return ort_error_memory(err, SIZE_MAX);
    return ORT_OK;
}

/* ---- run */

/* What the sums of a row's columns are multiplied with, and what is added to them: floats to the
 * products, or int32 to the sums; NULL: nothing. */
typedef struct finish_line {
    float *scale, *bias;
    int32_t *whole;
} finish_line;

typedef struct finish_job {
    const qmm_state *state;
    const ort_kernels *k;
    const ort_tensor *a_scale, *b_scale, *y_scale, *y_zero, *bias;
    ort_tensor *y;
    int64_t offset, n, row_period; /* of this batch entry; rows of A before folding */
    int64_t bias_row, bias_column;
    float dynamic_scale;
    const finish_line *line;       /* of all columns, the same for all rows; NULL: rows differ */
} finish_job;

static float float_at(const ort_tensor *t, int64_t i)
{
    return t->dtype == ORT_DTYPE_FLOAT ? ((const float *)t->data)[i]
                                       : (float)ort_tensor_get_f64(t, i);
}

static float scale_at(const ort_tensor *t, int64_t i)
{
    if (!t)
        return 1.0f;
    return float_at(t, ort_tensor_count(t) == 1 ? 0 : i % ort_tensor_count(t));
}

/* Do all rows have one factor? */
static bool is_shared(const ort_tensor *t)
{
    return !t || ort_tensor_count(t) == 1;
}

/* The factor of each column of one row. */
static void row_scales(const finish_job *f, int64_t row, int64_t column, int64_t n, float *scale)
{
    const float a = scale_at(f->a_scale, row) * f->dynamic_scale * f->state->alpha;
    const bool floats = f->b_scale && f->b_scale->dtype == ORT_DTYPE_FLOAT;
    if (is_shared(f->b_scale)) {
        const float factor = a * scale_at(f->b_scale, 0);
        for (int64_t j = 0; j < n; j++)
            scale[j] = factor;
    } else if (floats) {
        for (int64_t j = 0; j < n; j++)
            scale[j] = a * ((const float *)f->b_scale->data)[column + j];
    } else {
        for (int64_t j = 0; j < n; j++)
            scale[j] = a * scale_at(f->b_scale, column + j);
    }
    const float out = scale_at(f->y_scale, row);
    for (int64_t j = 0; j < n && f->y_scale; j++)
        scale[j] /= out;
}

static void row_bias(const finish_job *f, int64_t row, int64_t column, int64_t n,
                     const finish_line *l)
{
    int64_t at = row * f->bias_row + column * f->bias_column;
    if (l->whole)
        for (int64_t j = 0; j < n; j++)
            l->whole[j] = ((const int32_t *)f->bias->data)[at + j * f->bias_column];
    else if (l->bias)
        for (int64_t j = 0; j < n; j++)
            l->bias[j] = float_at(f->bias, at + j * f->bias_column);
}

/* A line in `space`, with room for a scale and a bias of n columns. */
static finish_line line_in(const finish_job *f, void *space, int64_t n)
{
    const bool whole = f->bias && f->bias->dtype == ORT_DTYPE_INT32;
    return (finish_line){space, f->bias && !whole ? (float *)space + n : NULL,
                         whole ? (int32_t *)space + n : NULL};
}

/* Rows of one line, from element `at` of the output on. */
static void finish_rows(const finish_job *f, const finish_line *l, int64_t row, int64_t at,
                        const ort_integer_tile *t)
{
    const ort_gemm_kernels *g = &f->k->gemm;
    if (f->y->dtype == ORT_DTYPE_INT8 || f->y->dtype == ORT_DTYPE_UINT8) {
        ort_zeros zeros = ort_zeros_of(f->y_zero);
        bool is_signed = f->y->dtype == ORT_DTYPE_INT8;
        ort_requant q = {.bias = l->whole, .scale = l->scale, .per_column = true,
                         .zero = ort_zero_at(&zeros, row), .lo = is_signed ? -128 : 0,
                         .hi = is_signed ? 127 : 255};
        g->requant_rows(t->m, t->n, t->sums, t->ld, t->more, &q, (char *)f->y->data + at, f->n);
        return;
    }
    for (int64_t i = 0; i < t->m; i++, at += f->n) {
        int32_t *sums = t->sums + i * t->ld;
        if (l->whole)
            g->subtract_i32(t->n, -1, l->whole, sums);
        g->scale_i32(t->n, sums, l->scale, l->bias, sums);
        if (f->y->dtype != ORT_DTYPE_FLOAT)
            ort_tensor_from_f32((const float *)(const void *)sums, f->y, at, t->n);
    }
}

/* Sums become what the output holds; floats in their own place. */
static void finish_tile(void *arg, const ort_integer_tile *tile)
{
    const finish_job *f = arg;
    const int64_t at = f->offset + tile->row * f->n + tile->column;
    if (f->line) {
        finish_line l = {f->line->scale + tile->column,
                         f->line->bias ? f->line->bias + tile->column : NULL,
                         f->line->whole ? f->line->whole + tile->column : NULL};
        finish_rows(f, &l, 0, at, tile);
        return;
    }
    for (int64_t i = 0; i < tile->m; i++) {
        const int64_t row = (tile->row + i) % f->row_period;
        float space[2 * ORT_INTEGER_COLUMNS];
        ort_integer_tile one = *tile;
        finish_line l = line_in(f, space, tile->n);
        one.m = 1;
        one.sums += i * tile->ld;
        one.more = tile->more ? tile->more + i : NULL;
        row_scales(f, row, tile->column, tile->n, l.scale);
        row_bias(f, row, tile->column, tile->n, &l);
        finish_rows(f, &l, row, at + i * f->n, &one);
    }
}

/* The line of all columns, if rows have no other. */
static void make_line(finish_job *f, finish_line *line, void *space)
{
    if (!is_shared(f->a_scale) || !is_shared(f->y_scale) || !is_shared(f->y_zero) || f->bias_row)
        return;
    *line = line_in(f, space, f->n);
    row_scales(f, 0, 0, f->n, line->scale);
    row_bias(f, 0, 0, f->n, line);
    f->line = line;
}

typedef struct range_job {
    const ort_call *call;
    const float *x;
    float *low, *high; /* per task */
} range_job;

static void task_range(void *arg, int64_t first, int64_t end, int thread)
{
    const range_job *j = arg;
    int64_t task = first / RANGE_FLOATS;
    j->call->k->math.min_max(j->x + first, (size_t)(end - first), &j->low[task], &j->high[task]);
}

/* DynamicQuantizeLinear of A: its scale; the zero point. `space` has two floats for each task. */
static int dynamic_range(const ort_call *call, const ort_tensor *a, float *space, float *scale)
{
    int64_t count = ort_tensor_count(a);
    size_t tasks = ort_task_count(count, RANGE_FLOATS);
    range_job j = {call, a->data, space, space + tasks};
    float low = 0.0f, high = 0.0f;
    ort_call_range(call, count, RANGE_FLOATS, task_range, &j);
    for (size_t i = 0; i < tasks; i++) {
        low = fminf(low, j.low[i]);
        high = fmaxf(high, j.high[i]);
    }
    return ort_dynamic_range(low, high, scale);
}

/* Where the inputs of a run lie; A's zero point when it is quantized here. */
static void set_up(const ort_call *call, finish_job *f, ort_integer_product *p, uint8_t *zero,
                   finish_line *line)
{
    const qmm_state *state = call->state;
    const qmm_plan *plan = call->plan_state;
    const slots *in = state->in;
    const ort_tensor *a = ort_call_in(call, in->a);
    char *space = call->workspace;
#define SLOT(name) (in->name >= 0 ? ort_call_in(call, in->name) : NULL)
    f->a_scale = SLOT(a_scale);
    f->b_scale = SLOT(b_scale);
    f->y_scale = f->y->dtype == ORT_DTYPE_FLOAT ? NULL : SLOT(y_scale);
    f->y_zero = SLOT(y_zero);
    f->bias = SLOT(bias);
    p->a_zero = ort_zeros_of(SLOT(a_zero));
#undef SLOT
    f->row_period =
        a->shape.rank > 1 ? a->shape.dim[a->shape.rank - (state->mm.trans_a ? 1 : 2)] : 1;
    if (f->bias) {
        int64_t stride[ORT_MAX_RANK];
        ort_shape_broadcast_strides(&f->bias->shape, &f->y->shape, stride);
        f->bias_column = plan->mm.n > 1 || f->y->shape.rank > 0 ? stride[f->y->shape.rank - 1] : 0;
        f->bias_row = f->y->shape.rank > 1 ? stride[f->y->shape.rank - 2] : 0;
    }
    if (state->dynamic) {
        *zero = (uint8_t)dynamic_range(call, a, (float *)(void *)(space + plan->ranges),
                                       &f->dynamic_scale);
        p->scale = f->dynamic_scale;
        p->a_zero = (ort_zeros){zero, false, 1};
    } else {
        p->a = ort_bytes_of(a, plan->mm.a_row, plan->mm.a_col);
    }
    if (f->y->dtype == ORT_DTYPE_INT32)
        return;
    p->finish = finish_tile;
    p->adds_rows = f->y->dtype == ORT_DTYPE_INT8 || f->y->dtype == ORT_DTYPE_UINT8;
    make_line(f, line, space + plan->lines);
}

typedef struct batch_job {
    const ort_call *call;
    const finish_job *f;
    const ort_integer_product *p;
} batch_job;

/* Entry i of the batch; `space` is the workspace, or the thread's own. */
static void run_entry(const ort_call *call, const batch_job *j, int64_t i, char *space)
{
    const qmm_state *state = call->state;
    const qmm_plan *plan = call->plan_state;
    const matmul_plan *mm = &plan->mm;
    const ort_tensor *a = ort_call_in(call, state->in->a), *b = ort_call_in(call, state->in->b);
    int64_t a_at = matmul_offset(mm, mm->a_batch, i), b_at = matmul_offset(mm, mm->b_batch, i);
    finish_job f = *j->f;
    ort_integer_product p = *j->p;
    if (state->dynamic)
        p.floats = (const float *)a->data + a_at;
    else
        p.a.data = (const char *)a->data + a_at;
    p.space = space + plan->rows;
    p.packed = space + plan->packed;
    if (state->packed) {
        p.packed = (const char *)state->packed +
                   (size_t)(b_at / ort_max_i64(mm->k * mm->n, 1)) * state->packed_bytes;
    } else if (plan->per_batch || i == 0 || b_at != matmul_offset(mm, mm->b_batch, i - 1)) {
        ort_bytes columns = ort_bytes_of(b, mm->b_row, mm->b_col);
        ort_zeros zeros = ort_zeros_of(
            state->in->b_zero >= 0 ? ort_call_in(call, state->in->b_zero) : NULL);
        columns.data = (const char *)b->data + b_at;
        ort_integer_pack_now(call, mm->k, mm->n, &columns, &zeros, space + plan->packed);
    }
    f.offset = i * mm->m * mm->n;
    if (f.y->dtype == ORT_DTYPE_INT32 || f.y->dtype == ORT_DTYPE_FLOAT)
        p.sums = (int32_t *)f.y->data + f.offset;
    p.arg = &f;
    ort_integer_multiply(call, &p);
}

static void task_entry(void *arg, size_t task, int thread)
{
    const batch_job *j = arg;
    const ort_call own = ort_call_alone(j->call, thread);
    run_entry(&own, j, (int64_t)task, own.thread_space);
}

static ort_status qmm_run(ort_call *call, ort_error *err)
{
    const qmm_state *state = call->state;
    const qmm_plan *plan = call->plan_state;
    const matmul_plan *mm = &plan->mm;
    finish_job f = {.state = state, .k = call->k, .y = ort_call_out(call, 0), .n = mm->n,
                    .dynamic_scale = 1.0f};
    ort_integer_product p = {.m = mm->m, .n = mm->n, .depth = mm->k, .ld = mm->n};
    batch_job j = {call, &f, &p};
    finish_line line;
    uint8_t zero;
    if (!f.y || ort_tensor_count(f.y) == 0)
        return ORT_OK;
    if (state->floats)
        return ort_qlinear_f8_run(call, mm, err);
    set_up(call, &f, &p, &zero, &line);
    if (plan->per_batch)
        ort_call_parallel(call, (size_t)mm->batch, task_entry, &j);
    for (int64_t i = 0; i < mm->batch && !plan->per_batch; i++)
        run_entry(call, &j, i, call->workspace);
    return ORT_OK;
}

static void qmm_cost(const ort_infer *x, ort_cost *cost)
{
    ort_matmul_cost(x, cost);
    cost->of_bytes = true;
}

static const ort_op_impl qmm_impl = {
    .state = sizeof(qmm_state), .bind = qmm_bind,
    .infer = qmm_infer, .prepare = qmm_prepare, .shape = qmm_shape, .run = qmm_run,
    .cost = qmm_cost,
};

const ort_op ort_ops_quant_matmul[] = {
    {ONNX, "MatMulInteger", 10, "A:T1,B:T2,a_zero_point?:T1,b_zero_point?:T2 -> Y:T3",
     "T1:i8,u8 T2:i8,u8 T3:i32", "", 0, &qmm_impl, .variant = INTEGER},
    {ONNX, "QLinearMatMul", 10,
     "a:T1,a_scale:f32,a_zero_point:T1,b:T2,b_scale:f32,b_zero_point:T2,y_scale:f32,"
     "y_zero_point:T3 -> y:T3",
     "T1:i8,u8 T2:i8,u8 T3:i8,u8", "", 0, &qmm_impl, .variant = QLINEAR},
    {ONNX, "QLinearMatMul", 21,
     "a:T1,a_scale:TS,a_zero_point:T1,b:T2,b_scale:TS,b_zero_point:T2,y_scale:TS,y_zero_point:T3 "
     "-> y:T3",
     "TS:f32,f16,bf16 T1:F8,i8,u8 T2:F8,i8,u8 T3:F8,i8,u8", "", 0, &qmm_impl,
     .variant = QLINEAR},
    {MS, "QGemm", 1,
     "A:TA,a_scale:T,a_zero_point:TA,B:TB,b_scale:T,b_zero_point:TB,C?:TC,y_scale?:T,"
     "y_zero_point?:TYZ -> Y:TY",
     "T:f32 TA:u8,i8 TB:u8,i8 TC:i32 TYZ:u8,i8 TY:f32,u8,i8", "alpha:f=1 transA:i=0 transB:i=0", 0,
     &qmm_impl, .variant = QGEMM},
    {MS, "MatMulIntegerToFloat", 1,
     "A:T1,B:T2,a_scale:T3,b_scale:T3,a_zero_point?:T1,b_zero_point?:T2,bias?:T3 -> Y:T3",
     "T1:i8,u8 T2:i8,u8 T3:f32,f16", "", 0, &qmm_impl, .variant = TO_FLOAT},
    {MS, "DynamicQuantizeMatMul", 1, "A:T1,B:T2,b_scale:T1,b_zero_point?:T2,bias?:T1 -> Y:T1",
     "T1:f32 T2:i8,u8", "", 0, &qmm_impl, .variant = DYNAMIC},
    {ORT_INTERNAL, "CodeMatMul", 1,
     "A:TA,a_scale:f32,a_zero_point?:TA,B:TB,b_scale:f32,b_zero_point?:TB,C:i32,y_scale:f32,"
     "y_zero_point:T -> Y:T",
     "TA:u8,i8 TB:u8,i8 T:u8,i8", "", 0, &qmm_impl, .variant = CODED},
    {0},
};
