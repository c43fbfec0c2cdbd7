/* pooling_global.c - GlobalAveragePool, GlobalMaxPool, GlobalLpPool (each plane to one element)
 * and MaxUnpool (each element to the place its index names). */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/net/pooling.h"
#include "op/shared/unary_apply.h"

/* ---- global pools */

typedef struct global_state {
    pool_kind kind;
    int64_t p;
} global_state;

static const ort_bind global_bind[] = {ORT_BIND(global_state, p, ORT_MAYBE), {0}};

static ort_status global_prepare(ort_prep *p, ort_error *err)
{
    global_state *state = p->state;
    state->kind = (pool_kind)p->op->variant;
    return ort_prep_need_real(p, 0, err);
}

typedef struct global_run {
    const ort_call *call;
    const global_state *state;
    const ort_tensor *x;
    ort_tensor *y;
    int64_t planes, count;
} global_run;

enum { PLANES_AT_ONCE = 16 };

static double reduce_f32(const global_run *r, const float *x)
{
    const ort_vmath_kernels *math = &r->call->k->math;
    size_t n = (size_t)r->count;
    if (r->state->kind == POOL_MAX)
        return math->reduce[ORT_ACCUM_MAX](x, n);
    if (r->state->kind == POOL_AVERAGE)
        return math->reduce[ORT_ACCUM_SUM](x, n) / (double)r->count;
    if (r->state->p == 2)
        return sqrt(math->reduce[ORT_ACCUM_SUM_SQUARE](x, n));
    if (r->state->p == 1)
        return math->reduce[ORT_ACCUM_SUM_ABS](x, n);
    double sum = 0.0;
    for (int64_t i = 0; i < r->count; i++)
        sum += pow(fabs((double)x[i]), (double)r->state->p);
    return pow(sum, 1.0 / (double)r->state->p);
}

static double reduce_any(const global_run *r, int64_t first)
{
    double sum = r->state->kind == POOL_MAX ? -INFINITY : 0.0;
    for (int64_t i = 0; i < r->count; i++) {
        double v = ort_tensor_get_f64(r->x, first + i);
        if (r->state->kind == POOL_AVERAGE)
            sum += v;
        else if (r->state->kind == POOL_LP)
            sum += pow(fabs(v), (double)r->state->p);
        else if (v > sum || v != v)
            sum = v;
    }
    if (r->state->kind == POOL_AVERAGE)
        return sum / (double)r->count;
    return r->state->kind == POOL_LP ? pow(sum, 1.0 / (double)r->state->p) : sum;
}

static void task_global(void *arg, int64_t first, int64_t end, int thread)
{
    const global_run *r = arg;
    for (int64_t plane = first; plane < end; plane++)
        if (r->x->dtype == ORT_DTYPE_FLOAT)
            ((float *)r->y->data)[plane] =
                (float)reduce_f32(r, (const float *)r->x->data + plane * r->count);
        else
            ort_tensor_set_f64(r->y, plane, reduce_any(r, plane * r->count));
}

static ort_status global_run_(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    global_run r = {call, call->state, x, ort_call_out(call, 0),
                    ort_shape_count_range(&x->shape, 0, 2),
                    ort_shape_count_range(&x->shape, 2, x->shape.rank)};
    if (r.y)
        ort_call_range(call, r.planes, PLANES_AT_ONCE, task_global, &r);
    return ORT_OK;
}

static const ort_op_impl global_impl = {
    .state = sizeof(global_state), .bind = global_bind,
    .rule = "[N,C,D..] -> [N,C,1^D]", .prepare = global_prepare, .run = global_run_,
    .cost = ort_reduction_cost,
};

/* ---- MaxUnpool */

static ort_status unpool_infer(ort_infer *x, ort_error *err)
{
    ort_window_spec spec;
    ort_dim out[ORT_MAX_RANK];
    ORT_TRY(ort_window_read(x->node, &spec, err));
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    const ort_type *t = &x->in[0]->type;
    if (t->rank < 3 || spec.rank != t->rank - 2)
        return ort_infer_fail(x, err, "the input has rank %d, kernel_shape is for %d axes", t->rank,
                              spec.rank);
    if (ort_infer_in(x, 2)) {
        for (int d = 0; d < t->rank; d++)
            if (!ort_infer_int(x, 2, d, &out[d]))
                out[d] = ort_dim_unknown();
        ort_infer_set_shape(x, 0, t->rank, out);
        return ORT_OK;
    }
    for (int d = 0; d < t->rank; d++) {
        out[d] = t->dim[d];
        if (d < 2)
            continue;
        int i = d - 2;
        ort_dim steps = ort_dim_sub(x->dims, t->dim[d], ort_dim_of(1));
        ort_dim span = ort_dim_mul(x->dims, steps, ort_dim_of(spec.stride[i]));
        out[d] = ort_dim_add(x->dims, span,
                             ort_dim_of(spec.kernel[i] - spec.begin[i] - spec.end[i]));
        if (ort_dim_known(out[d]) && out[d].size < 0)
            return ort_infer_fail(x, err, "the output would have %lld elements along axis %d",
                                  (long long)out[d].size, d);
    }
    ort_infer_set_shape(x, 0, t->rank, out);
    return ORT_OK;
}

/* Reading an index of MaxUnpool. `plane` is the shape of the spatial axes that indices count in. */
typedef struct unpool_reading {
    const ort_window_spec *spec;
    const int64_t *cells; /* spatial dims of X */
    int64_t plane[ORT_MAX_RANK];
} unpool_reading;

/* Does index `at` lie in the window that pooling put over cell number i of all? */
static bool in_window(const unpool_reading *r, int64_t i, int64_t at)
{
    for (int d = r->spec->rank - 1; d >= 0; d--) {
        if (r->plane[d] < 1)
            return false;
        int64_t first = i % r->cells[d] * r->spec->stride[d] - r->spec->begin[d];
        int64_t place = at % r->plane[d];
        if (place < first || place >= first + r->spec->kernel[d])
            return false;
        i /= r->cells[d];
        at /= r->plane[d];
    }
    return i == at; /* the batch and the channel */
}

static bool all_in_windows(const unpool_reading *r, const int64_t *at, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!in_window(r, i, at[i]))
            return false;
    return true;
}

/* Indices count the elements of the tensor that MaxPool saw. With an output_shape that is its
 * shape; but ONNX's own test and reference implementation count in the shape that kernel, strides
 * and pads lead to, and put that into the corner of output_shape (onnx issue 5398). The indices
 * tell which it is: each lies in the window of its cell. Where they fit both or none, output_shape
 * counts. */
static bool counts_inferred(const ort_window_spec *spec, const ort_tensor *x, const ort_tensor *at,
                            const ort_tensor *y, int64_t *inferred)
{
    unpool_reading r = {.spec = spec, .cells = x->shape.dim + 2};
    int64_t count = ort_tensor_count(x);
    bool fits = true;
    for (int d = 0; d < spec->rank; d++) {
        r.plane[d] = y->shape.dim[d + 2];
        inferred[d] = (r.cells[d] - 1) * spec->stride[d] + spec->kernel[d] - spec->begin[d] -
                      spec->end[d];
        fits = fits && inferred[d] <= r.plane[d];
    }
    if (!fits || all_in_windows(&r, at->data, count))
        return false;
    memcpy(r.plane, inferred, sizeof *inferred * (size_t)spec->rank);
    return all_in_windows(&r, at->data, count);
}

/* The same element counted in output_shape. */
static int64_t recount(const ort_window_spec *spec, const int64_t *inferred, const int64_t *out,
                       int64_t at)
{
    int64_t to = 0, step = 1;
    for (int d = spec->rank - 1; d >= 0; d--) {
        to += at % inferred[d] * step;
        at /= inferred[d];
        step *= out[d];
    }
    return to + at * step;
}

static ort_status unpool_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0), *at = ort_call_in(call, 1);
    ort_tensor *y = ort_call_out(call, 0);
    int64_t count = ort_tensor_count(x), total = y ? ort_tensor_count(y) : 0;
    int64_t inferred[ORT_MAX_RANK];
    ort_window_spec spec;
    if (!y)
        return ORT_OK;
    if (ort_tensor_count(at) != count)
        return ort_call_fail(call, err, "input I needs the shape of X");
    ORT_TRY(ort_window_read(call->node, &spec, err));
    bool corner = ort_call_in(call, 2) && counts_inferred(&spec, x, at, y, inferred);
    size_t element = (size_t)ort_dtype_get(x->dtype)->bits / 8;
    memset(y->data, 0, (size_t)total * element);
    for (int64_t i = 0; i < count; i++) {
        int64_t to = ((const int64_t *)at->data)[i];
        if (corner)
            to = recount(&spec, inferred, y->shape.dim + 2, to);
        if (to < 0 || to >= total)
            return ort_call_fail(call, err, "index %lld is outside the output's %lld elements",
                                 (long long)to, (long long)total);
        memcpy((char *)y->data + (size_t)to * element, (const char *)x->data + (size_t)i * element,
               element);
    }
    return ORT_OK;
}

static const ort_op_impl unpool_impl = {
    .rule = "- - [_]", .infer = unpool_infer, .run = unpool_run,
};

#define UNPOOL_SIG "X:T1,I:T2,output_shape?:T2 -> output:T1"

const ort_op ort_ops_pooling_global[] = {
    {ONNX, "GlobalAveragePool", 1, "X:T -> Y:T", "T:F", "", 0, &global_impl,
     .history = "22:T+bf16", .variant = POOL_AVERAGE},
    {ONNX, "GlobalMaxPool", 1, "X:T -> Y:T", "T:F", "", 0, &global_impl,
     .history = "22:T+bf16", .variant = POOL_MAX},
    {ONNX, "GlobalLpPool", 2, "X:T -> Y:T", "T:F", "p:i=2", 0, &global_impl,
     .history = "22:T+bf16", .variant = POOL_LP},
    {ONNX, "MaxUnpool", 9, UNPOOL_SIG, "T1:F T2:i64", "kernel_shape:is! pads:is strides:is", 0,
     &unpool_impl, .history = "11 22:T1+bf16"},
    {0},
};
