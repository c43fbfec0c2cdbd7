/* wide_matmul.c - products of 16-bit codes with 8-bit weights (WideMatMul), between
 * DequantizeLinear nodes and what reads floats or quantizes them: exact sums
 * (op/quant/integer_wide.h), where float sums of the dequantized numbers would round once for each
 * product. */
#include "op/number.h"
#include "op/shared/codes.h"
#include "op/shared/integer.h"
#include "op/quant/integer_wide.h"
#include "op/shared/matmul_shape.h"

enum { IN_A, IN_B, IN_A_SCALE, IN_B_SCALE, IN_A_ZERO, IN_B_ZERO, IN_BIAS,
       IN_Y_SCALE, IN_Y_ZERO };

typedef struct wide_state {
    matmul_state mm; /* transposes */
    const void *packed;
    int64_t depth, n; /* of B */
} wide_state;

typedef struct wide_plan {
    matmul_plan mm;
    size_t scale; /* offset in the workspace, of a line of scales and one of biases */
} wide_plan;

static const ort_bind wide_bind[] = {
    ORT_BIND_AS(wide_state, mm.trans_a, "transA", ORT_MAYBE),
    ORT_BIND_AS(wide_state, mm.trans_b, "transB", ORT_MAYBE), {0}};

static ort_status wide_infer(ort_infer *x, ort_error *err)
{
    const bool coded = x->in_count > IN_Y_ZERO && x->in[IN_Y_ZERO];
    ort_infer_set_dtype(x, 0, coded ? x->in[IN_Y_ZERO]->type.dtype : ORT_DTYPE_FLOAT);
    if (ort_node_attr_int(x->node, "transA") || ort_node_attr_int(x->node, "transB"))
        return ort_gemm_infer_shape(x, IN_A, IN_B, err);
    return ort_matmul_infer_shape(x, IN_A, IN_B, err);
}

static ort_status wide_prepare(ort_prep *p, ort_error *err)
{
    wide_state *state = p->state;
    const ort_tensor *b = ort_prep_constant(p, IN_B), *zero = ort_prep_constant(p, IN_B_ZERO);
    const bool has_zero = ort_prep_dtype(p, IN_B_ZERO) != ORT_DTYPE_UNDEFINED;
    if (!b || b->shape.rank != 2 || (has_zero && !zero))
        return ort_prep_fail(p, err, "B and its zero point must be constants, B a matrix");
    state->depth = b->shape.dim[state->mm.trans_b ? 1 : 0];
    state->n = b->shape.dim[state->mm.trans_b ? 0 : 1];
    if (state->depth > ORT_WIDE_DEPTH)
        return ort_prep_fail(p, err, "%lld products in a sum are more than the %d that are exact",
                             (long long)state->depth, ORT_WIDE_DEPTH);
    const ort_zeros zeros = ort_zeros_of(zero);
    if (zeros.count != 1 && zeros.count != state->n)
        return ort_prep_fail(p, err, "the zero point of B has %lld elements, needs 1 or %lld",
                             (long long)zeros.count, (long long)state->n);
    size_t bytes;
    if (!ort_integer_packed_bytes(p->k, state->depth, state->n, &bytes))
        return ort_error_memory(err, SIZE_MAX);
    bool fill;
    char *packed = ort_prep_pack(p, "panels", ort_prep_constants(p), bytes, &fill);
    if (!packed)
        return ort_error_memory(err, bytes);
    const ort_bytes from = ort_bytes_of(b, state->mm.trans_b ? 1 : state->n,
                                        state->mm.trans_b ? state->depth : 1);
    if (fill)
        ort_integer_pack(p->k, state->depth, state->n, &from, &zeros, packed);
    ort_prep_absorb(p, IN_B);
    state->packed = packed;
    return ORT_OK;
}

static ort_status check_count(const ort_shaping *s, int input, int64_t n, const char *what,
                              ort_error *err)
{
    const ort_tensor *t = input < s->in_count ? s->in[input] : NULL;
    const int64_t count = t ? ort_tensor_count(t) : 1;
    if (count == 1 || count == n)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_MODEL, "%s (input %d) has %lld elements, needs 1 or %lld",
                         what, input, (long long)count, (long long)n);
}

static ort_status wide_shape(ort_shaping *s, ort_error *err)
{
    const wide_state *state = s->state;
    wide_plan *plan = ort_arena_alloc(s->arena, sizeof *plan);
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    s->plan_state = plan;
    matmul_plan *mm = &plan->mm;
    ORT_TRY(ort_matmul_describe(&s->in[IN_A]->shape, &s->in[IN_B]->shape, &state->mm, mm, err));
    static const int single[] = {IN_A_SCALE, IN_A_ZERO, IN_Y_SCALE, IN_Y_ZERO};
    ORT_TRY(ort_codes_need_single(s, single, 4, err));
    ORT_TRY(check_count(s, IN_B_SCALE, mm->n, "the scale of B", err));
    ORT_TRY(check_count(s, IN_BIAS, mm->n, "the bias", err));
    size_t bytes, line;
    if (!ort_wide_bytes(s->k, mm->m, mm->n, mm->k, &bytes) ||
        !ort_mul_size((size_t)mm->n, 2 * sizeof(double), &line) ||
        !ort_add_size(ort_round_up(bytes, 64), line, &s->workspace_bytes))
        return ort_error_memory(err, SIZE_MAX);
    plan->scale = ort_round_up(bytes, 64);
    s->thread_bytes = ort_wide_thread_bytes(s->k);
    return ORT_OK;
}

static void row_of(const ort_tensor *t, int64_t n, double factor, double *row)
{
    const float *from = t->data;
    const bool one = ort_tensor_count(t) == 1;
    for (int64_t j = 0; j < n; j++)
        row[j] = factor * (double)from[one ? 0 : j];
}

/* What the sums of a run become. */
static ort_status find_result(const ort_call *call, ort_wide_product *p, ort_tensor *y,
                              ort_error *err)
{
    int64_t zero = 0;
    p->y = y->data;
    p->to = y->dtype;
    if (!ort_call_in(call, IN_Y_SCALE))
        return ORT_OK;
    ORT_TRY(ort_call_f32(call, IN_Y_SCALE, &p->y_scale, err));
    ORT_TRY(ort_call_i64(call, IN_Y_ZERO, &zero, err));
    p->y_zero = (int)zero;
    return ORT_OK;
}

static ort_status wide_run(ort_call *call, ort_error *err)
{
    const wide_state *state = call->state;
    const wide_plan *plan = call->plan_state;
    const matmul_plan *mm = &plan->mm;
    const ort_tensor *a = ort_call_in(call, IN_A), *bias = ort_call_in(call, IN_BIAS);
    ort_tensor *y = ort_call_out(call, 0);
    double *scale = (double *)(void *)((char *)call->workspace + plan->scale);
    float factor;
    int64_t zero = 0;
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    ORT_TRY(ort_call_f32(call, IN_A_SCALE, &factor, err));
    if (ort_call_in(call, IN_A_ZERO))
        ORT_TRY(ort_call_i64(call, IN_A_ZERO, &zero, err));
    row_of(ort_call_in(call, IN_B_SCALE), mm->n, (double)factor, scale);
    if (bias)
        row_of(bias, mm->n, 1, scale + mm->n);
    ort_wide_product p = {.m = mm->m, .n = mm->n, .depth = mm->k,
                          .is_signed = a->dtype == ORT_DTYPE_INT16, .row = mm->a_row,
                          .column = mm->a_col, .zero = (int)zero,
                          .packed = state->packed, .space = call->workspace, .scale = scale,
                          .bias = bias ? scale + mm->n : NULL};
    ORT_TRY(find_result(call, &p, y, err));
    const size_t step = (size_t)(mm->m * mm->n) * (size_t)ort_dtype_get(y->dtype)->bits / 8;
    for (int64_t i = 0; i < mm->batch; i++, p.y = (char *)p.y + step) {
        p.a = (const uint16_t *)a->data + matmul_offset(mm, mm->a_batch, i);
        ort_wide_multiply(call, &p);
    }
    return ORT_OK;
}

static void wide_cost(const ort_infer *x, ort_cost *cost)
{
    ort_matmul_cost(x, cost);
    cost->of_bytes = true;
}

static const ort_op_impl wide_impl = {
    .state = sizeof(wide_state), .bind = wide_bind, .infer = wide_infer, .prepare = wide_prepare,
    .shape = wide_shape, .run = wide_run, .cost = wide_cost,
};

const ort_op ort_ops_wide_matmul[] = {
    {ORT_INTERNAL, "WideMatMul", 1,
     "A:T1,B:T2,a_scale:f32,b_scale:f32,a_zero_point?:T1,b_zero_point?:T2,bias?:f32,y_scale?:f32,"
     "y_zero_point?:T3 -> Y:T4",
     "T1:i16,u16 T2:i8,u8 T3:i8,u8,i16,u16 T4:f32,i8,u8,i16,u16", "transA:i=0 transB:i=0", 0,
     &wide_impl},
    {0},
};
