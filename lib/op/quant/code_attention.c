/* code_attention.c - CodeAttention: what attention is in files that quantize its products, a block
 * of rows at a time:
 *
 *     MatMulIntegerToFloat, steps of a chain, Softmax, QuantizeLinear,
 *     QLinearMatMul | MatMulIntegerToFloat
 *
 * Scores are floats of queries by keys, 54 MB a layer for 1,500 positions and 6 heads, which those
 * operators write and read several times. Here the scores of some rows stay in the second-level
 * cache until they are codes and multiplied with the values. The numbers are those of the
 * operators: each row's sums, exponentials and codes are made as they make them.
 *
 * Keys and values of each entry of the batch are packed first, for all rows. Then a task is a block
 * of rows of one entry.
 */
#include "base/checked.h"
#include "base/cpu.h"
#include "op/shared/chain.h"
#include "op/shared/codes.h"
#include "op/shared/integer.h"
#include "tensor/scalar.h"

enum { Q, K, Q_SCALE, K_SCALE, Q_ZERO, K_ZERO, P_SCALE, P_ZERO, /* codes of what Softmax gives */
       A_SCALE, A_ZERO, V, V_SCALE, V_ZERO, Y_SCALE, Y_ZERO,    /* A: what they are read as */
       OPERANDS };
enum { ROWS = 64, LEAST_ROWS = 32 }; /* of a block: whole tiles of a tier that has them */

typedef struct attend_state {
    ort_ints program;
    ort_floats params;
    int64_t to; /* element type of the probabilities' codes */
    int count;
    ort_chain_step steps[ORT_CHAIN_STEPS];
} attend_state;

static const ort_bind attend_bind[] = {
    ORT_BIND(attend_state, program), ORT_BIND(attend_state, params), ORT_BIND(attend_state, to),
    {0}};

/* Queries [batch][m][depth], keys [batch][depth][n], values [batch][n][width]. */
typedef struct attend_plan {
    int64_t batch, m, n, depth, width;
    int64_t rows, blocks; /* rows of a block, blocks of an entry */
    int64_t ld;           /* of the codes of a row */
    size_t keys, values;  /* bytes of one entry's packs */
    size_t scores, codes, space; /* in the thread's space */
    int64_t (*stride)[ORT_MAX_RANK]; /* of each operand of the steps, in the scores */
    ort_shape shape;      /* of the scores */
} attend_plan;

static ort_status attend_infer(ort_infer *x, ort_error *err)
{
    const ort_fact *zero = ort_infer_in(x, Y_ZERO);
    ort_infer_set_dtype(x, 0, zero ? zero->type.dtype : ORT_DTYPE_FLOAT);
    if (ort_infer_in_ranked(x, Q) && ort_infer_in_ranked(x, V) &&
        x->in[Q]->type.rank == x->in[V]->type.rank && x->in[Q]->type.rank >= 2) {
        ort_type y = x->in[Q]->type;
        y.dim[y.rank - 1] = x->in[V]->type.dim[y.rank - 1];
        ort_infer_set_shape(x, 0, y.rank, y.dim);
    }
    return ORT_OK;
}

static ort_status attend_prepare(ort_prep *p, ort_error *err)
{
    attend_state *s = p->state;
    static const int bytes[] = {Q, K, V};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        if (ort_prep_dtype(p, bytes[i]) != ORT_DTYPE_INT8 &&
            ort_prep_dtype(p, bytes[i]) != ORT_DTYPE_UINT8)
            return ort_prep_unsupported_dtype(p, bytes[i], err);
    if (s->to != ORT_DTYPE_INT8 && s->to != ORT_DTYPE_UINT8)
        return ort_prep_fail(p, err, "to is %lld, needs uint8 or int8", (long long)s->to);
    return ort_chain_read(p, &s->program, &s->params, s->steps, &s->count, err);
}

/* ---- shape */

static bool fits(const ort_shape *q, const ort_shape *k, const ort_shape *v)
{
    const int rank = q->rank;
    if (rank < 2 || k->rank != rank || v->rank != rank ||
        q->dim[rank - 1] != k->dim[rank - 2] || k->dim[rank - 1] != v->dim[rank - 2])
        return false;
    for (int d = 0; d < rank - 2; d++)
        if (q->dim[d] != k->dim[d] || q->dim[d] != v->dim[d])
            return false;
    return true;
}

static ort_status describe_operands(const ort_shaping *s, attend_plan *plan, ort_error *err)
{
    const int count = s->in_count > OPERANDS ? s->in_count - OPERANDS : 0;
    plan->stride = ort_arena_array(s->arena, (size_t)count, sizeof *plan->stride);
    if (count > 0 && !plan->stride)
        return ort_error_memory(err, (size_t)count * sizeof *plan->stride);
    for (int i = 0; i < count; i++) {
        const ort_shape *in = &s->in[OPERANDS + i]->shape;
        ort_shape both;
        if (!ort_shape_broadcast(in, &plan->shape, &both) || !ort_shape_equal(&both, &plan->shape))
            return ort_error_set(err, ORT_ERROR_MODEL, "input %d doesn't broadcast to the scores",
                                 OPERANDS + i);
        ort_shape_broadcast_strides(in, &plan->shape, plan->stride[i]);
    }
    return ORT_OK;
}

/* Rows whose scores fill a quarter of the second-level cache. */
static int64_t rows_of_block(int64_t m, int64_t n)
{
    const int64_t cache = (int64_t)ort_cpu_get()->l2_bytes / 4;
    const int64_t some = cache / ort_max_i64(n * (int64_t)sizeof(float), 1);
    return ort_max_i64(ort_min_i64(some < ROWS ? LEAST_ROWS : ROWS, m), 1);
}

static ort_status lay_out(ort_shaping *s, attend_plan *plan, ort_error *err)
{
    size_t first, second, scores, codes;
    const int64_t most = rows_of_block(plan->m, plan->n);
    plan->blocks = (plan->m + most - 1) / most;
    plan->rows = plan->blocks > 0 ? (plan->m + plan->blocks - 1) / plan->blocks : 1;
    if (!ort_add_i64(plan->n, 63, &plan->ld))
        return ort_error_memory(err, SIZE_MAX);
    plan->ld = plan->ld / 64 * 64;
    if (!ort_integer_rows_bytes(s->k, plan->rows, plan->depth, &first) ||
        !ort_integer_rows_bytes(s->k, plan->rows, plan->n, &second) ||
        !ort_integer_packed_bytes(s->k, plan->depth, plan->n, &plan->keys) ||
        !ort_integer_packed_bytes(s->k, plan->n, plan->width, &plan->values) ||
        !ort_mul_size((size_t)plan->rows * sizeof(float), (size_t)plan->ld, &scores) ||
        !ort_mul_size((size_t)plan->rows, (size_t)plan->ld, &codes))
        return ort_error_memory(err, SIZE_MAX);
    plan->keys = ort_round_up(plan->keys, 64);
    plan->values = ort_round_up(plan->values, 64);
    plan->scores = ort_round_up(ort_integer_thread_bytes(s->k), 64);
    plan->codes = plan->scores + scores;
    plan->space = plan->codes + ort_round_up(codes, 64);
    if (!ort_add_size(plan->space, ort_round_up(first > second ? first : second, 64),
                      &s->thread_bytes) ||
        !ort_add_size(plan->keys, plan->values, &first) ||
        !ort_mul_size(first, (size_t)plan->batch, &s->workspace_bytes))
        return ort_error_memory(err, SIZE_MAX);
    return ORT_OK;
}

static ort_status attend_shape(ort_shaping *s, ort_error *err)
{
    static const int single[] = {Q_SCALE, K_SCALE, Q_ZERO,  K_ZERO, P_SCALE, P_ZERO, A_SCALE,
                                 A_ZERO,  V_SCALE, V_ZERO, Y_SCALE, Y_ZERO};
    const ort_shape *q = &s->in[Q]->shape, *k = &s->in[K]->shape, *v = &s->in[V]->shape;
    attend_plan *plan = ort_arena_alloc(s->arena, sizeof *plan);
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    s->plan_state = plan;
    if (!fits(q, k, v))
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "queries, keys and values don't have the shapes of one product");
    ORT_TRY(ort_codes_need_single(s, single, sizeof single / sizeof *single, err));
    plan->batch = ort_shape_count_range(q, 0, q->rank - 2);
    plan->m = q->dim[q->rank - 2];
    plan->depth = q->dim[q->rank - 1];
    plan->n = k->dim[q->rank - 1];
    plan->width = v->dim[q->rank - 1];
    plan->shape = *q;
    plan->shape.dim[q->rank - 1] = plan->n;
    ORT_TRY(describe_operands(s, plan, err));
    return lay_out(s, plan, err);
}

/* ---- run */

typedef struct attend_job {
    const ort_call *call;
    const attend_state *s;
    const attend_plan *plan;
    ort_tensor *y;
    ort_zeros q_zero, k_zero, a_zero, v_zero;
    ort_codes probabilities;
    ort_requant requant; /* of the results, if they are codes */
    float scores[ORT_INTEGER_COLUMNS], results[ORT_INTEGER_COLUMNS]; /* one factor, each */
} attend_job;

/* The packs of an entry. */
static char *keys_of(const attend_job *j, int64_t entry)
{
    return (char *)j->call->workspace + (size_t)entry * (j->plan->keys + j->plan->values);
}

static char *values_of(const attend_job *j, int64_t entry)
{
    return keys_of(j, entry) + j->plan->keys;
}

/* Keys of an entry if the task is even, else its values. */
static void task_pack_entry(void *arg, size_t task, int thread)
{
    const attend_job *j = arg;
    const attend_plan *plan = j->plan;
    const int64_t entry = (int64_t)(task / 2);
    const bool keys = task % 2 == 0;
    const ort_tensor *t = ort_call_in(j->call, keys ? K : V);
    const int64_t depth = keys ? plan->depth : plan->n, columns = keys ? plan->n : plan->width;
    ort_bytes b = ort_bytes_of(t, columns, 1);
    (void)thread;
    b.data = (const char *)t->data + entry * depth * columns;
    ort_integer_pack(j->call->k, depth, columns, &b, keys ? &j->k_zero : &j->v_zero,
                     keys ? keys_of(j, entry) : values_of(j, entry));
}

static void finish_scores(void *arg, const ort_integer_tile *t)
{
    const attend_job *j = arg;
    for (int64_t i = 0; i < t->m; i++)
        j->call->k->gemm.scale_i32(t->n, t->sums + i * t->ld, j->scores, NULL,
                                   t->sums + i * t->ld);
}

typedef struct block_results {
    const attend_job *j;
    char *at; /* of the block's first row */
} block_results;

static void finish_results(void *arg, const ort_integer_tile *t)
{
    const block_results *b = arg;
    const attend_job *j = b->j;
    const ort_gemm_kernels *g = &j->call->k->gemm;
    const int64_t width = j->plan->width, at = t->row * width + t->column;
    if (j->y->dtype != ORT_DTYPE_FLOAT) {
        g->requant_rows(t->m, t->n, t->sums, t->ld, t->more, &j->requant, b->at + at, width);
        return;
    }
    for (int64_t i = 0; i < t->m; i++)
        g->scale_i32(t->n, t->sums + i * t->ld, j->results, NULL,
                     (float *)(void *)b->at + at + i * width);
}

/* Where an operand's numbers beside a row of scores lie; *one: they are one number. */
static const float *operand_of(const attend_job *j, int input, int64_t row, bool *one)
{
    const attend_plan *plan = j->plan;
    const int64_t *stride = plan->stride[input - OPERANDS];
    int64_t at = 0;
    *one = stride[plan->shape.rank - 1] == 0;
    for (int d = plan->shape.rank - 2; d >= 0; row /= plan->shape.dim[d--])
        at += row % plan->shape.dim[d] * stride[d];
    return (const float *)ort_call_in(j->call, input)->data + at;
}

static void run_steps(const attend_job *j, int64_t row, float *scores)
{
    const size_t n = (size_t)j->plan->n;
    for (int i = 0; i < j->s->count; i++) {
        const ort_chain_step *step = &j->s->steps[i];
        bool one;
        if (step->unary) {
            step->unary(scores, scores, n, step->a, step->b);
            continue;
        }
        const float *other = operand_of(j, step->input, row, &one);
        if (step->right)
            step->binary(other, scores, scores, n, one ? ORT_FORM_SV : ORT_FORM_VV);
        else
            step->binary(scores, other, scores, n, one ? ORT_FORM_VS : ORT_FORM_VV);
    }
}

static void task_block(void *arg, size_t task, int thread)
{
    const attend_job *j = arg;
    const attend_plan *plan = j->plan;
    const ort_call own = ort_call_alone(j->call, thread);
    const ort_tensor *q = ort_call_in(&own, Q);
    const int64_t entry = (int64_t)task / plan->blocks;
    const int64_t first = (int64_t)task % plan->blocks * plan->rows;
    const int64_t m = ort_min_i64(plan->rows, plan->m - first), row = entry * plan->m + first;
    const size_t width = (size_t)ort_dtype_get(j->y->dtype)->bits / 8;
    char *space = own.thread_space;
    float *scores = (float *)(void *)(space + plan->scores);
    uint8_t *codes = (uint8_t *)space + plan->codes;
    ort_integer_product p = {
        .m = m, .n = plan->n, .depth = plan->depth, .a = ort_bytes_of(q, plan->depth, 1),
        .a_zero = j->q_zero, .packed = keys_of(j, entry), .space = space + plan->space,
        .sums = (int32_t *)(void *)scores, .ld = plan->ld, .finish = finish_scores,
        .arg = (void *)(uintptr_t)j};
    p.a.data = (const char *)q->data + row * plan->depth;
    ort_integer_multiply(&own, &p);
    for (int64_t i = 0; i < m; i++) {
        float *line = scores + i * plan->ld;
        run_steps(j, row + i, line);
        own.k->math.softmax(line, line, (size_t)plan->n);
        ort_codes_give(own.k, (ort_dtype)j->s->to, j->probabilities.scale, j->probabilities.zero,
                       line, codes + i * plan->ld, plan->n);
    }
    block_results b = {j, (char *)j->y->data + (size_t)(row * plan->width) * width};
    ort_integer_product r = {
        .m = m, .n = plan->width, .depth = plan->n,
        .a = {codes, j->s->to == ORT_DTYPE_INT8, plan->ld, 1}, .a_zero = j->a_zero,
        .packed = values_of(j, entry), .space = space + plan->space, .finish = finish_results,
        .adds_rows = j->y->dtype != ORT_DTYPE_FLOAT, .arg = &b};
    ort_integer_multiply(&own, &r);
}

static float scale_of(const ort_call *call, int input)
{
    float scale = 0;
    (void)ort_tensor_one_f32(ort_call_in(call, input), &scale);
    return scale;
}

/* The factors of both products, as the operators for one of them round these. */
static void set_up(const ort_call *call, attend_job *j)
{
    const ort_dtype to = (ort_dtype)j->s->to;
    const float of_scores = scale_of(call, Q_SCALE) * scale_of(call, K_SCALE);
    float of_results = scale_of(call, A_SCALE) * scale_of(call, V_SCALE);
    j->probabilities = ort_codes_of(call, to, P_SCALE, P_ZERO);
    j->q_zero = ort_zeros_of(ort_call_in(call, Q_ZERO));
    j->k_zero = ort_zeros_of(ort_call_in(call, K_ZERO));
    j->a_zero = ort_zeros_of(ort_call_in(call, A_ZERO));
    j->v_zero = ort_zeros_of(ort_call_in(call, V_ZERO));
    if (j->y->dtype != ORT_DTYPE_FLOAT) {
        const ort_codes y = ort_codes_of(call, j->y->dtype, Y_SCALE, Y_ZERO);
        of_results /= y.scale;
        j->requant = (ort_requant){.scale = j->results, .per_column = true, .zero = y.zero,
                                   .lo = y.is_signed ? -128 : 0, .hi = y.is_signed ? 127 : 255};
    }
    for (int i = 0; i < ORT_INTEGER_COLUMNS; i++) {
        j->scores[i] = of_scores;
        j->results[i] = of_results;
    }
}

static ort_status attend_run(ort_call *call, ort_error *err)
{
    const attend_plan *plan = call->plan_state;
    attend_job j = {.call = call, .s = call->state, .plan = plan, .y = ort_call_out(call, 0)};
    if (!j.y || ort_tensor_count(j.y) == 0)
        return ORT_OK;
    set_up(call, &j);
    ort_call_parallel(call, (size_t)plan->batch * 2, task_pack_entry, &j);
    ort_call_parallel(call, (size_t)(plan->batch * plan->blocks), task_block, &j);
    return ORT_OK;
}

static void attend_cost(const ort_infer *x, ort_cost *cost)
{
    if (!ort_infer_in_ranked(x, Q) || !ort_infer_in_ranked(x, V) || x->in[Q]->type.rank < 2 ||
        x->in[V]->type.rank != x->in[Q]->type.rank)
        return;
    const ort_type *q = &x->in[Q]->type, *v = &x->in[V]->type;
    double scores = 1;
    for (int d = 0; d < q->rank - 1; d++)
        scores *= ort_dim_known(q->dim[d]) ? (double)q->dim[d].size : 0;
    scores *= ort_dim_known(v->dim[v->rank - 2]) ? (double)v->dim[v->rank - 2].size : 0;
    const ort_dim depth = q->dim[q->rank - 1], width = v->dim[v->rank - 1];
    cost->macs = scores * ((ort_dim_known(depth) ? (double)depth.size : 0) +
                           (ort_dim_known(width) ? (double)width.size : 0));
    cost->flops = scores * 12;
    cost->of_bytes = true;
}

static const ort_op_impl attend_impl = {
    .state = sizeof(attend_state), .bind = attend_bind, .infer = attend_infer,
    .prepare = attend_prepare, .shape = attend_shape, .run = attend_run, .cost = attend_cost,
};

const ort_op ort_ops_code_attention[] = {
    {ORT_INTERNAL, "CodeAttention", 1,
     "q:T1,k:T2,q_scale:f32,k_scale:f32,q_zero?:T1,k_zero?:T2,p_scale:f32,p_zero?:T3,a_scale:f32,"
     "a_zero?:T3,v:T4,v_scale:f32,v_zero?:T4,y_scale?:f32,y_zero?:T5,operands**0:f32 -> y:T6",
     "T1:i8,u8 T2:i8,u8 T3:i8,u8 T4:i8,u8 T5:i8,u8 T6:f32,i8,u8",
     "params:fs! program:is! to:i!", 0, &attend_impl},
    {0},
};
