/* matmul_integer16.c - com.microsoft MatMulInteger16: products of 16-bit integers, summed modulo
 * 2^32. A task is one row of the output. */
#include "op/shared/matmul_shape.h"

static ort_status product_infer(ort_infer *x, ort_error *err)
{
    ort_infer_set_dtype(x, 0, ORT_DTYPE_INT32); /* of unsigned inputs, too */
    return ort_matmul_infer(x, err);
}

static ort_status product_shape(ort_shaping *s, ort_error *err)
{
    static const matmul_state plain = {.alpha = 1.0f};
    matmul_plan *p = ort_arena_alloc(s->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    s->plan_state = p;
    return ort_matmul_describe(&s->in[0]->shape, &s->in[1]->shape, &plain, p, err);
}

static int32_t element(const ort_tensor *t, int64_t at)
{
    return t->dtype == ORT_DTYPE_UINT16 ? ((const uint16_t *)t->data)[at]
                                        : ((const int16_t *)t->data)[at];
}

static void task_row(void *arg, size_t task, int thread)
{
    const ort_call *call = arg;
    const matmul_plan *p = call->plan_state;
    const ort_tensor *a = ort_call_in(call, 0), *b = ort_call_in(call, 1);
    int64_t batch = (int64_t)task / p->m, row = (int64_t)task % p->m;
    int64_t from_a = matmul_offset(p, p->a_batch, batch) + row * p->a_row;
    int64_t from_b = matmul_offset(p, p->b_batch, batch);
    uint32_t *y = (uint32_t *)ort_call_out(call, 0)->data + (int64_t)task * p->n;
    for (int64_t j = 0; j < p->n; j++)
        y[j] = 0;
    for (int64_t k = 0; k < p->k; k++) {
        uint32_t left = (uint32_t)element(a, from_a + k * p->a_col);
        for (int64_t j = 0; j < p->n; j++)
            y[j] += left * (uint32_t)element(b, from_b + k * p->b_row + j * p->b_col);
    }
}

static ort_status product_run(ort_call *call, ort_error *err)
{
    const matmul_plan *p = call->plan_state;
    if (ort_tensor_count(ort_call_out(call, 0)) > 0)
        ort_call_parallel(call, (size_t)(p->batch * p->m), task_row, call);
    return ORT_OK;
}

static const ort_op_impl product_impl = {
    .infer = product_infer, .shape = product_shape, .run = product_run, .cost = ort_matmul_cost,
};

const ort_op ort_ops_matmul_integer16[] = {
    {MS, "MatMulInteger16", 1, "A:T1,B:T2 -> Y:T3", "T1:i16,u16 T2:i16,u16 T3:i32,u32", "", 0,
     &product_impl},
    {0},
};
