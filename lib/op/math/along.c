/* along.c - operators that walk one axis and keep its order: ArgMax, ArgMin, CumSum, CumProd.
 *
 * A tensor is seen as [outer][axis][inner]. Columns of `inner` advance together in blocks, so that
 * memory is read in order whatever the axis.
 */
#pragma GCC optimize("O3") /* vectorize the column loops */

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/num.h"
#include "op/number.h"
#include "op/shared/move.h"
#include "op/shared/unary_apply.h"

#define COLUMNS 256 /* columns that advance together */

typedef struct along_view {
    int64_t outer, length, inner;
} along_view;

static along_view view_of(const ort_shape *shape, int axis)
{
    along_view v = {ort_shape_count_range(shape, 0, axis), shape->rank ? shape->dim[axis] : 1,
                    shape->rank ? ort_shape_count_range(shape, axis + 1, shape->rank) : 1};
    return v;
}

static float load_f16(uint16_t v) { return ort_f16_to_f32(v); }
static float load_bf16(uint16_t v) { return ort_bf16_to_f32(v); }

/* ---- ArgMax, ArgMin */

enum { ARG_MIN, ARG_MAX };

typedef struct arg_state {
    bool max, last;
    int64_t axis;
} arg_state;

static const ort_bind arg_bind[] = {
    ORT_BIND(arg_state, axis),
    ORT_BIND_AS(arg_state, last, "select_last_index", ORT_ELSE(0)), {0}};

typedef struct arg_job {
    const arg_state *state;
    const ort_vmath_kernels *math;
    const ort_tensor *x;
    int64_t *y;
    along_view view;
    int64_t blocks; /* of columns, per outer index */
} arg_job;

/* Best element of each of n columns, and where. Selects without branches, so that it vectorizes;
 * NaN never displaces a number, a number never displaces NaN. */
#define ARG_LOOP(wide, load, compare)                                                              \
    for (int64_t i = 1; i < length; i++)                                                           \
        for (int64_t j = 0; j < n; j++) {                                                          \
            wide v = load(x[i * stride + j]);                                                      \
            bool better = v compare best[j];                                                       \
            best[j] = better ? v : best[j];                                                        \
            at[j] = better ? (int32_t)i : at[j];                                                   \
        }
#define ARG_COLUMNS(name, type, wide, load)                                                        \
    static void arg_##name(const arg_state *s, const void *data, int64_t length, int64_t stride,   \
                           int64_t n, int64_t *y)                                                  \
    {                                                                                              \
        const type *x = data;                                                                      \
        wide best[COLUMNS];                                                                        \
        int32_t at[COLUMNS];                                                                       \
        for (int64_t j = 0; j < n; j++) {                                                          \
            best[j] = load(x[j]);                                                                  \
            at[j] = 0;                                                                             \
        }                                                                                          \
        if (s->max && s->last) {                                                                   \
            ARG_LOOP(wide, load, >=)                                                               \
        } else if (s->max) {                                                                       \
            ARG_LOOP(wide, load, >)                                                                \
        } else if (s->last) {                                                                      \
            ARG_LOOP(wide, load, <=)                                                               \
        } else {                                                                                   \
            ARG_LOOP(wide, load, <)                                                                \
        }                                                                                          \
        for (int64_t j = 0; j < n; j++)                                                            \
            y[j] = at[j];                                                                          \
    }
ARG_COLUMNS(f32, float, float, )
ARG_COLUMNS(f64, double, double, )
ARG_COLUMNS(f16, uint16_t, float, load_f16)
ARG_COLUMNS(bf16, uint16_t, float, load_bf16)
#define ARG_INTEGER(id, type, name) ARG_COLUMNS(name, type, type, )
ORT_INTEGER_TYPES(ARG_INTEGER)

/* A long f32 row: the extreme by the kernel, then where it is. */
static int64_t arg_row(const arg_job *job, const float *x, int64_t n)
{
    bool last = job->state->last;
    float best = (float)job->math->reduce[job->state->max ? ORT_ACCUM_MAX : ORT_ACCUM_MIN](x,
                                                                                       (size_t)n);
    for (int64_t k = 0; k < n; k++) {
        int64_t i = last ? n - 1 - k : k;
        if (x[i] == best || (isnan(best) && isnan(x[i])))
            return i;
    }
    return 0;
}

#define ARG_CASE(id, type, name)                                                                   \
    case ORT_DTYPE_##id: arg_##name(s, x, length, stride, n, y); break;
static void arg_run_columns(const arg_job *job, const char *x, int64_t n, int64_t *y)
{
    const arg_state *s = job->state;
    int64_t length = job->view.length, stride = job->view.inner;
    switch ((int)job->x->dtype) {
    case ORT_DTYPE_FLOAT: arg_f32(s, x, length, stride, n, y); break;
    case ORT_DTYPE_DOUBLE: arg_f64(s, x, length, stride, n, y); break;
    case ORT_DTYPE_FLOAT16: arg_f16(s, x, length, stride, n, y); break;
    case ORT_DTYPE_BFLOAT16: arg_bf16(s, x, length, stride, n, y); break;
    ORT_INTEGER_TYPES(ARG_CASE)
    default: break;
    }
}

static void arg_task(void *arg, size_t task, int thread)
{
    const arg_job *job = arg;
    const along_view *v = &job->view;
    int64_t outer = (int64_t)task / job->blocks, column = (int64_t)task % job->blocks * COLUMNS;
    int64_t n = ort_min_i64(COLUMNS, v->inner - column);
    int64_t at = outer * v->length * v->inner + column;
    if (v->inner == 1 && job->x->dtype == ORT_DTYPE_FLOAT)
        job->y[outer] = arg_row(job, (const float *)job->x->data + at, v->length);
    else
        arg_run_columns(job, (const char *)job->x->data +
                                 (size_t)at * ort_move_element_bytes(job->x->dtype),
                        n, job->y + outer * v->inner + column);
}

static ort_status arg_infer(ort_infer *x, ort_error *err)
{
    bool keep = ort_node_attr_int(x->node, "keepdims") == 1;
    ort_dim dims[ORT_MAX_RANK];
    int axis = 0, rank = 0;
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    const ort_type *in = &x->in[0]->type;
    if (in->rank > 0)
        ORT_TRY(ort_infer_axis(x, ort_node_attr_int(x->node, "axis"), in->rank, &axis, err));
    for (int d = 0; d < in->rank; d++)
        if (d != axis)
            dims[rank++] = in->dim[d];
        else if (keep)
            dims[rank++] = ort_dim_of(1);
    ort_infer_set_shape(x, 0, rank, dims);
    return ORT_OK;
}

static ort_status arg_prepare(ort_prep *p, ort_error *err)
{
    arg_state *s = p->state;
    ort_dtype_class class_ = ort_dtype_get(ort_prep_dtype(p, 0))->class_;
    if (class_ != ORT_CLASS_FLOAT && class_ != ORT_CLASS_INT && class_ != ORT_CLASS_UINT)
        return ort_prep_unsupported_dtype(p, 0, err);
    s->max = p->op->variant == ARG_MAX;
    return ORT_OK;
}

static ort_status arg_run(ort_call *call, ort_error *err)
{
    const arg_state *s = call->state;
    arg_job job = {s, &call->k->math, ort_call_in(call, 0), ort_call_out(call, 0)->data,
                   {0}, 0};
    int rank = job.x->shape.rank;
    job.view = view_of(&job.x->shape, (int)(s->axis < 0 ? s->axis + rank : s->axis));
    if (job.view.outer * job.view.inner == 0)
        return ORT_OK;
    if (job.view.length == 0 || job.view.length > INT32_MAX)
        return ort_call_fail(call, err, "the axis to search has %lld elements, needs 1 to 2^31 - 1",
                             (long long)job.view.length);
    job.blocks = (job.view.inner + COLUMNS - 1) / COLUMNS;
    ort_call_parallel(call, (size_t)(job.view.outer * job.blocks), arg_task, &job);
    return ORT_OK;
}

static const ort_op_impl arg_impl = {
    .state = sizeof(arg_state), .bind = arg_bind,
    .infer = arg_infer, .prepare = arg_prepare, .run = arg_run,
};

/* ---- CumSum, CumProd */

enum { CUMULATE_SUM, CUMULATE_PRODUCT };

typedef struct cumulate_state {
    bool product, exclusive, reverse;
} cumulate_state;

static const ort_bind cumulate_bind[] = {
    ORT_BIND(cumulate_state, exclusive, ORT_WITHIN(0, 1)),
    ORT_BIND(cumulate_state, reverse, ORT_WITHIN(0, 1)), {0}};

/* One outer index: row after row of `inner` columns. `first` is the neutral element. */
#define CUMULATE(name, type, load, store, step, first)                                             \
    static void cumulate_##name(const cumulate_state *s, const void *x_, void *y_, along_view v)   \
    {                                                                                              \
        for (int64_t j0 = 0; j0 < v.inner; j0 += COLUMNS) {                                        \
            int64_t n = ort_min_i64(COLUMNS, v.inner - j0);                                        \
            type acc[COLUMNS];                                                                     \
            for (int64_t j = 0; j < n; j++)                                                        \
                acc[j] = first;                                                                    \
            for (int64_t i = 0; i < v.length; i++) {                                               \
                int64_t at = (s->reverse ? v.length - 1 - i : i) * v.inner + j0;                   \
                for (int64_t j = 0; j < n; j++) {                                                  \
                    type next = (type)(step(acc[j], load(x_, at + j)));                            \
                    store(y_, at + j, s->exclusive ? acc[j] : next);                               \
                    acc[j] = next;                                                                 \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define DEFINE_ACCESS(type)                                                                        \
    static inline type load_##type(const void *x, int64_t i) { return ((const type *)x)[i]; }      \
    static inline void store_##type(void *y, int64_t i, type v) { ((type *)y)[i] = v; }
DEFINE_ACCESS(float)
DEFINE_ACCESS(double)
DEFINE_ACCESS(uint32_t)
DEFINE_ACCESS(uint64_t)
static inline float load_half(const void *x, int64_t i)
{
    return ort_f16_to_f32(((const uint16_t *)x)[i]);
}
static inline void store_half(void *y, int64_t i, float v)
{
    ((uint16_t *)y)[i] = ort_f32_to_f16(v);
}
static inline float load_brain(const void *x, int64_t i)
{
    return ort_bf16_to_f32(((const uint16_t *)x)[i]);
}
static inline void store_brain(void *y, int64_t i, float v)
{
    ((uint16_t *)y)[i] = ort_f32_to_bf16(v);
}
#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
CUMULATE(sum_f32, float, load_float, store_float, PLUS, 0)
CUMULATE(sum_f64, double, load_double, store_double, PLUS, 0)
CUMULATE(sum_u32, uint32_t, load_uint32_t, store_uint32_t, PLUS, 0)
CUMULATE(sum_u64, uint64_t, load_uint64_t, store_uint64_t, PLUS, 0)
CUMULATE(sum_f16, float, load_half, store_half, PLUS, 0)
CUMULATE(sum_bf16, float, load_brain, store_brain, PLUS, 0)
CUMULATE(prod_f32, float, load_float, store_float, TIMES, 1)
CUMULATE(prod_f64, double, load_double, store_double, TIMES, 1)
CUMULATE(prod_u32, uint32_t, load_uint32_t, store_uint32_t, TIMES, 1)
CUMULATE(prod_u64, uint64_t, load_uint64_t, store_uint64_t, TIMES, 1)
CUMULATE(prod_f16, float, load_half, store_half, TIMES, 1)
CUMULATE(prod_bf16, float, load_brain, store_brain, TIMES, 1)

typedef void cumulate_fn(const cumulate_state *s, const void *x, void *y, along_view v);

/* Signed integers wrap like unsigned ones. */
static cumulate_fn *cumulate_function(bool product, ort_dtype dtype)
{
    switch ((int)dtype) {
    case ORT_DTYPE_FLOAT: return product ? cumulate_prod_f32 : cumulate_sum_f32;
    case ORT_DTYPE_DOUBLE: return product ? cumulate_prod_f64 : cumulate_sum_f64;
    case ORT_DTYPE_FLOAT16: return product ? cumulate_prod_f16 : cumulate_sum_f16;
    case ORT_DTYPE_BFLOAT16: return product ? cumulate_prod_bf16 : cumulate_sum_bf16;
    case ORT_DTYPE_INT32:
    case ORT_DTYPE_UINT32: return product ? cumulate_prod_u32 : cumulate_sum_u32;
    case ORT_DTYPE_INT64:
    case ORT_DTYPE_UINT64: return product ? cumulate_prod_u64 : cumulate_sum_u64;
    default: return NULL;
    }
}

typedef struct cumulate_job {
    const cumulate_state *state;
    cumulate_fn *fn;
    const char *x;
    char *y;
    along_view view;
    size_t bytes;
} cumulate_job;

static void cumulate_task(void *arg, size_t task, int thread)
{
    const cumulate_job *job = arg;
    size_t at = task * (size_t)(job->view.length * job->view.inner) * job->bytes;
    job->fn(job->state, job->x + at, job->y + at, job->view);
}

static ort_status cumulate_prepare(ort_prep *p, ort_error *err)
{
    cumulate_state *s = p->state;
    s->product = p->op->variant == CUMULATE_PRODUCT;
    bool known = cumulate_function(s->product, ort_prep_dtype(p, 0)) != NULL;
    return known ? ORT_OK : ort_prep_unsupported_dtype(p, 0, err);
}

static ort_status cumulate_run(ort_call *call, ort_error *err)
{
    const cumulate_state *s = call->state;
    const ort_tensor *x = ort_call_in(call, 0);
    int rank = x->shape.rank;
    int64_t a = 0;
    cumulate_job job = {s, cumulate_function(s->product, x->dtype), x->data,
                        ort_call_out(call, 0)->data, {0}, ort_move_element_bytes(x->dtype)};
    ORT_TRY(ort_call_i64(call, 1, &a, err));
    if (a < -rank || a >= rank)
        return ort_call_fail(call, err, "axis %lld is outside [%d, %d)", (long long)a, -rank, rank);
    if (ort_tensor_count(x) == 0)
        return ORT_OK;
    job.view = view_of(&x->shape, (int)(a < 0 ? a + rank : a));
    ort_call_parallel(call, (size_t)job.view.outer, cumulate_task, &job);
    return ORT_OK;
}

static const ort_op_impl cumulate_impl = {
    .state = sizeof(cumulate_state), .bind = cumulate_bind,
    .rule = "same", .prepare = cumulate_prepare, .run = cumulate_run, .numbers = 2,
};

#define ARG(name, kind)                                                                            \
    {ONNX, name, 1, "data:T -> reduced:i64", "T:F,I,U", "axis:i=0 keepdims:i=1", 0, &arg_impl,     \
     .history = "11 12:+select_last_index:i=0 13:T+bf16", .variant = kind}

const ort_op ort_ops_along[] = {
    ARG("ArgMax", ARG_MAX),
    ARG("ArgMin", ARG_MIN),
    {ONNX, "CumSum", 11, "x:T,axis:T2 -> y:T", "T:u32,u64,i32,i64,f32,f64 T2:i32,i64",
     "exclusive:i=0 reverse:i=0", 0, &cumulate_impl, .history = "14:T+f16,bf16"},
    {ONNX, "CumProd", 26, "x:T,axis:T2 -> y:T", "T:F,u32,u64,i32,i64,bf16 T2:i32,i64",
     "exclusive:i=0 reverse:i=0", 0, &cumulate_impl, .variant = CUMULATE_PRODUCT},
    {0},
};
