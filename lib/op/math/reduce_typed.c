/* reduce_typed.c - reductions of doubles, integers and truth values: one accumulator of the widest
 * type of its kind per output. Integer results wrap, means and roots truncate.
 */
#include <math.h>

#include "op/math/reduce.h"


ort_accum ort_reduce_accum(ort_reduction op)
{
    switch (op) {
    case ORT_REDUCE_MAX: return ORT_ACCUM_MAX;
    case ORT_REDUCE_MIN: return ORT_ACCUM_MIN;
    case ORT_REDUCE_PROD: return ORT_ACCUM_PROD;
    case ORT_REDUCE_L1: return ORT_ACCUM_SUM_ABS;
    case ORT_REDUCE_L2:
    case ORT_REDUCE_SUM_SQUARE: return ORT_ACCUM_SUM_SQUARE;
    default: return ORT_ACCUM_SUM;
    }
}

#define EACH(statement)                                                                            \
    for (int64_t i = 0; i < n; i++) {                                                              \
        acc_type v = (acc_type)x[i * step];                                                        \
        statement;                                                                                 \
    }                                                                                              \
    break;

/* Fold a run into *acc; sums wrap in unsigned arithmetic. */
#define FOLD(name, type, accumulator, wide)                                                        \
    static void fold_##name(ort_accum kind, const void *data, int64_t n, int64_t step,             \
                            accumulator *acc)                                                      \
    {                                                                                              \
        typedef accumulator acc_type;                                                              \
        const type *x = data;                                                                      \
        switch (kind) {                                                                            \
        case ORT_ACCUM_SUM: EACH(*acc = (acc_type)((wide)*acc + (wide)v))                          \
        case ORT_ACCUM_SUM_ABS:                                                                    \
            EACH(*acc = (acc_type)((wide)*acc + (v < 0 ? 0 - (wide)v : (wide)v)))                  \
        case ORT_ACCUM_SUM_SQUARE: EACH(*acc = (acc_type)((wide)*acc + (wide)v * (wide)v))         \
        case ORT_ACCUM_MAX: EACH(if (!(v <= *acc) && !(*acc != *acc)) *acc = v)                    \
        case ORT_ACCUM_MIN: EACH(if (!(v >= *acc) && !(*acc != *acc)) *acc = v)                    \
        case ORT_ACCUM_PROD: EACH(*acc = (acc_type)((wide)*acc * (wide)v))                         \
        default: break;                                                                            \
        }                                                                                          \
    }

FOLD(i8, int8_t, int64_t, uint64_t)
FOLD(i16, int16_t, int64_t, uint64_t)
FOLD(i32, int32_t, int64_t, uint64_t)
FOLD(i64, int64_t, int64_t, uint64_t)
FOLD(u8, uint8_t, int64_t, uint64_t)
FOLD(u16, uint16_t, int64_t, uint64_t)
FOLD(u32, uint32_t, int64_t, uint64_t)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits"
FOLD(u64, uint64_t, uint64_t, uint64_t)
#pragma GCC diagnostic pop
FOLD(f64, double, double, double)

/* Runs of one output: all reduced axes but the inner one, then `n` elements `step` apart. */
typedef struct run_walk {
    const ort_reduce_plan *plan;
    const char *base;
    size_t bytes;
    int64_t outer, n, step;
} run_walk;

static run_walk walk_output(const ort_reduce_plan *plan, const ort_tensor *x, int64_t index)
{
    const ort_axes *r = &plan->reduced;
    run_walk w = {.plan = plan, .bytes = (size_t)ort_dtype_get(x->dtype)->bits / 8};
    int64_t offset = ort_axes_offset(&plan->kept, plan->kept.count, index);
    w.base = (const char *)x->data + (size_t)offset * w.bytes;
    w.n = r->count > 0 ? r->dim[r->count - 1] : 1;
    w.step = r->count > 0 ? r->stride[r->count - 1] : 0;
    w.outer = w.n > 0 ? r->total / w.n : 0;
    return w;
}

static const void *walk_run(const run_walk *w, int64_t k)
{
    return w->base +
           (size_t)ort_axes_offset(&w->plan->reduced, w->plan->reduced.count - 1, k) * w->bytes;
}

static void fold_int(ort_dtype dtype, ort_accum kind, const void *data, int64_t n, int64_t step,
                     int64_t *acc)
{
    switch ((int)dtype) {
    case ORT_DTYPE_INT8: fold_i8(kind, data, n, step, acc); break;
    case ORT_DTYPE_INT16: fold_i16(kind, data, n, step, acc); break;
    case ORT_DTYPE_INT32: fold_i32(kind, data, n, step, acc); break;
    case ORT_DTYPE_INT64: fold_i64(kind, data, n, step, acc); break;
    case ORT_DTYPE_UINT8:
    case ORT_DTYPE_BOOL: fold_u8(kind, data, n, step, acc); break;
    case ORT_DTYPE_UINT16: fold_u16(kind, data, n, step, acc); break;
    case ORT_DTYPE_UINT32: fold_u32(kind, data, n, step, acc); break;
    default: break;
    }
}

/* What an empty set gives: the smallest value of the type for MAX, the largest for MIN. */
static int64_t int_start(ort_dtype dtype, ort_accum kind)
{
    const ort_dtype_row *row = ort_dtype_get(dtype);
    int bits = row->class_ == ORT_CLASS_BOOL ? 1 : row->bits;
    bool is_signed = row->class_ == ORT_CLASS_INT;
    if (kind == ORT_ACCUM_PROD)
        return 1;
    if (kind == ORT_ACCUM_MAX)
        return is_signed ? -((int64_t)1 << (bits - 1)) : 0;
    if (kind == ORT_ACCUM_MIN)
        return bits == 64 ? INT64_MAX : ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1;
    return 0;
}

static double finish_f64(ort_reduction op, double value, int64_t count)
{
    switch (op) {
    case ORT_REDUCE_MEAN: return value / (double)count;
    case ORT_REDUCE_L2: return sqrt(value);
    case ORT_REDUCE_LOG_SUM: return log(value);
    default: return value;
    }
}

static void reduce_int(const ort_reduce_plan *plan, ort_reduction op, const ort_tensor *x,
                       ort_tensor *y, int64_t index)
{
    ort_accum kind = ort_reduce_accum(op);
    run_walk w = walk_output(plan, x, index);
    int64_t acc = x->dtype == ORT_DTYPE_INT64 && kind == ORT_ACCUM_MAX ? INT64_MIN
                                                                      : int_start(x->dtype, kind);
    for (int64_t k = 0; k < w.outer; k++)
        fold_int(x->dtype, kind, walk_run(&w, k), w.n, w.step, &acc);
    if (op == ORT_REDUCE_MEAN)
        acc = plan->reduced.total ? acc / plan->reduced.total : 0;
    if (op == ORT_REDUCE_L2 || op == ORT_REDUCE_LOG_SUM)
        ort_tensor_set_f64(y, index, trunc(finish_f64(op, (double)acc, plan->reduced.total)));
    else
        ort_tensor_set_i64(y, index, acc);
}

static void reduce_u64(const ort_reduce_plan *plan, ort_reduction op, const ort_tensor *x,
                       ort_tensor *y, int64_t index)
{
    ort_accum kind = ort_reduce_accum(op);
    run_walk w = walk_output(plan, x, index);
    uint64_t acc = kind == ORT_ACCUM_PROD ? 1 : kind == ORT_ACCUM_MIN ? UINT64_MAX : 0;
    for (int64_t k = 0; k < w.outer; k++)
        fold_u64(kind, walk_run(&w, k), w.n, w.step, &acc);
    if (op == ORT_REDUCE_MEAN)
        acc = plan->reduced.total ? acc / (uint64_t)plan->reduced.total : 0;
    if (op == ORT_REDUCE_L2 || op == ORT_REDUCE_LOG_SUM)
        ort_tensor_set_f64(y, index, trunc(finish_f64(op, (double)acc, plan->reduced.total)));
    else
        ort_tensor_set_i64(y, index, (int64_t)acc);
}

static void reduce_f64(const ort_reduce_plan *plan, ort_reduction op, const ort_tensor *x,
                       ort_tensor *y, int64_t index)
{
    ort_accum kind = ort_reduce_accum(op);
    run_walk w = walk_output(plan, x, index);
    double acc = kind == ORT_ACCUM_PROD  ? 1
                 : kind == ORT_ACCUM_MAX ? -INFINITY
                 : kind == ORT_ACCUM_MIN ? INFINITY
                                         : 0;
    for (int64_t k = 0; k < w.outer; k++)
        fold_f64(kind, walk_run(&w, k), w.n, w.step, &acc);
    ((double *)y->data)[index] = finish_f64(op, acc, plan->reduced.total);
}

/* log(sum(exp(x))) by the largest element, in double, for any type. */
static void reduce_log_sum_exp(const ort_reduce_plan *plan, const ort_tensor *x, ort_tensor *y,
                               int64_t index)
{
    run_walk w = walk_output(plan, x, index);
    double max = -INFINITY, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t k = 0; k < w.outer; k++) {
            const char *run = walk_run(&w, k);
            int64_t at = (run - (const char *)x->data) / (int64_t)w.bytes;
            for (int64_t i = 0; i < w.n; i++) {
                double v = ort_tensor_get_f64(x, at + i * w.step);
                if (pass == 1)
                    sum += isinf(max) ? 0 : exp(v - max);
                else if (!(v <= max) && !isnan(max))
                    max = v;
            }
        }
    /* Infinite extremes and NaN are the answer themselves. */
    double result = isinf(max) || isnan(max) ? max : max + log(sum);
    bool truncate = ort_dtype_get(y->dtype)->class_ != ORT_CLASS_FLOAT;
    ort_tensor_set_f64(y, index, truncate ? trunc(result) : result);
}

void ort_reduce_typed(const ort_reduce_plan *plan, ort_reduction op, const ort_tensor *x,
                      ort_tensor *y, int64_t first, int64_t count)
{
    for (int64_t i = first; i < first + count; i++) {
        if (op == ORT_REDUCE_LOG_SUM_EXP)
            reduce_log_sum_exp(plan, x, y, i);
        else if (x->dtype == ORT_DTYPE_DOUBLE)
            reduce_f64(plan, op, x, y, i);
        else if (x->dtype == ORT_DTYPE_UINT64)
            reduce_u64(plan, op, x, y, i);
        else
            reduce_int(plan, op, x, y, i);
    }
}
