/* scatter.c - writing by index: Scatter, ScatterElements, ScatterND, TensorScatter, OneHot.
 *
 * Invariant: updates of one place are applied in row-major order by one thread, so equal indices
 * give the same result on every machine; all indices are checked before anything is written.
 */
#include <string.h>

#include "base/checked.h"
#include "op/moves/indices.h"
#include "op/shared/combine.h"
#include "op/shared/move.h"
#include "tensor/scalar.h"

typedef struct scatter_state {
    int64_t axis;
    ort_combine op;
    ort_combine_fn *combine; /* NULL: replace */
    bool circular;
} scatter_state;

static const ort_bind scatter_bind[] = {
    ORT_BIND(scatter_state, axis, ORT_MAYBE),
    ORT_BIND_AS(scatter_state, op, "reduction", ORT_WORDS(ORT_COMBINE_WORDS), ORT_MAYBE),
    ORT_BIND_AS(scatter_state, circular, "mode", ORT_WORDS("linear circular"), ORT_MAYBE), {0}};

enum {
    FEW_SUMS = 16,      /* aren't worth the call of a kernel */
    FEW_COLUMNS = 32,   /* nor these to be shared */
    FEW_UPDATES = 32768,
    SLICE_COST = 16,   /* of finding its place, in elements */
    LONG_SLICE = 512,
    LISTED = 256       /* updates at a time */
};

static ort_status scatter_prepare(ort_prep *p, ort_error *err)
{
    scatter_state *state = p->state;
    if (state->op == ORT_COMBINE_NONE)
        return ORT_OK;
    state->combine = ort_combine_get(ort_prep_dtype(p, 0), state->op);
    return state->combine ? ORT_OK : ort_prep_unsupported_dtype(p, 0, err);
}

static void start_from_data(const ort_tensor *data, ort_tensor *out, ort_pool *pool)
{
    ort_move move = ort_move_between(data, out);
    ort_move_add(&move, ort_tensor_count(out), 1, 1);
    if (ort_move_element_bytes(out->dtype) == 0)
        ort_tensor_copy_data(out, data);
    else if (out->data != data->data)
        ort_move_run(&move, pool);
}

/* Where updates go that a task applies: those of its own columns or slices, in their order. So the
 * sum of what goes to one place doesn't depend on how many tasks there are. */
typedef struct scatter_job {
    const ort_call *call;
    const scatter_state *state;
    ort_tensor *out;
    const ort_tensor *indices, *updates;
    int64_t bytes;                 /* of an element; 0: strings */
    ort_binary_fn *sum;            /* of floats, or NULL */
    int64_t rows, length, columns; /* of updates; columns of one task */
    int64_t stride[ORT_MAX_RANK];  /* of the output */
    int axis, tuple;
} scatter_job;

/* Updates [from, from + count) go to `to`. */
static void apply(const scatter_job *job, int64_t to, int64_t from, int64_t count)
{
    char *y = (char *)job->out->data + to * job->bytes;
    const char *x = (const char *)job->updates->data + from * job->bytes;
    if (job->sum && count >= FEW_SUMS)
        job->sum(y, x, y, (size_t)count, ORT_FORM_VV);
    else if (job->state->combine)
        job->state->combine(y, x, count);
    else if (job->bytes)
        ort_move_bytes(y, x, (size_t)(count * job->bytes));
    else
        ort_move_span(job->out->dtype, job->out->data, to, job->updates->data, from, count);
}

static scatter_job begin(const ort_call *call)
{
    const scatter_state *state = call->state;
    const ort_tensor *data = ort_call_in(call, 0);
    bool sums = data->dtype == ORT_DTYPE_FLOAT && state->op == ORT_COMBINE_ADD;
    return (scatter_job){.call = call, .state = state, .out = ort_call_out(call, 0),
                         .indices = ort_call_in(call, 1), .updates = ort_call_in(call, 2),
                         .bytes = (int64_t)ort_move_element_bytes(data->dtype),
                         .sum = sums ? call->k->math.binary[ORT_BINARY_ADD] : NULL};
}

/* Run task(job, first column, last column) on the threads, each column by one of them. */
static void share_columns(scatter_job *job, ort_range_fn *task)
{
    int64_t threads = ort_pool_threads(job->call->pool), columns = job->length;
    if (job->bytes && columns >= 2 * FEW_COLUMNS && job->rows >= FEW_UPDATES / columns)
        columns = (columns + threads - 1) / threads;
    columns = (columns + FEW_COLUMNS - 1) / FEW_COLUMNS * FEW_COLUMNS;
    ort_call_range(job->call, job->length, ort_max_i64(columns, 1), task, job);
}

/* ---- ScatterElements */

#define PUT(expression)                                                                            \
    for (int64_t j = 0; j < n; j++) {                                                              \
        int64_t k = ort_index_from_end(ort_index_at(job->indices, first + j), limit);              \
        int64_t at = k * step + j * inner;                                                         \
        d_[at] = expression;                                                                       \
    }

#define PUT_ROW(type, expression)                                                                  \
    do {                                                                                           \
        type *d_ = (type *)job->out->data + base;                                                  \
        const type *s_ = (const type *)job->updates->data + first;                                 \
        PUT(expression)                                                                            \
    } while (0)

/* n updates from `first` on; update j goes to base + index * step + j * inner. */
static void scatter_row(const scatter_job *job, int64_t base, int64_t first, int64_t n)
{
    const int64_t limit = job->out->shape.dim[job->axis], step = job->stride[job->axis];
    const int64_t inner = job->axis == job->out->shape.rank - 1 ? 0 : 1;
    if (job->sum) {
        PUT_ROW(float, d_[at] + s_[j]);
        return;
    }
    switch (job->state->combine ? 0 : job->bytes) {
    case 1: PUT_ROW(uint8_t, s_[j]); break;
    case 2: PUT_ROW(uint16_t, s_[j]); break;
    case 4: PUT_ROW(uint32_t, s_[j]); break;
    case 8: PUT_ROW(uint64_t, s_[j]); break;
    default:
        for (int64_t j = 0; j < n; j++) {
            int64_t k = ort_index_from_end(ort_index_at(job->indices, first + j), limit);
            apply(job, base + k * step + j * inner, first + j, 1);
        }
    }
}

/* Columns [first, end) of each row of updates, beginning at row `row`. */
static void scatter_columns(const scatter_job *job, int64_t row, int64_t rows, int64_t first,
                            int64_t end)
{
    const ort_shape *shape = &job->indices->shape;
    int last = shape->rank - 1;
    for (int64_t to = row + rows; row < to; row++) {
        int64_t base = job->axis == last ? 0 : first, rest = row;
        for (int d = last - 1; d >= 0; d--) {
            if (d != job->axis)
                base += rest % shape->dim[d] * job->stride[d];
            rest /= shape->dim[d];
        }
        scatter_row(job, base, row * job->length + first, end - first);
    }
}

static void columns_task(void *arg, int64_t first, int64_t end, int thread)
{
    const scatter_job *job = arg;
    scatter_columns(job, 0, job->rows, first, end);
}

/* Of the last axis: each row of updates goes to a row of its own. */
static void rows_task(void *arg, int64_t first, int64_t end, int thread)
{
    const scatter_job *job = arg;
    scatter_columns(job, first, end - first, 0, job->length);
}

static ort_status check_elements(const ort_call *call, const ort_tensor *data,
                                 const ort_tensor *indices, const ort_tensor *updates,
                                 int64_t axis, ort_error *err)
{
    int rank = data->shape.rank;
    if (axis < 0 || axis >= rank)
        return ort_call_fail(call, err, "data of rank %d has no axis %lld", rank, (long long)axis);
    if (!ort_shape_equal(&indices->shape, &updates->shape) || indices->shape.rank != rank)
        return ort_call_fail(call, err, "indices and updates must have one shape, of rank %d",
                             rank);
    for (int d = 0; d < rank; d++)
        if (d != axis && indices->shape.dim[d] > data->shape.dim[d])
            return ort_call_fail(call, err, "axis %d of indices has %lld elements, data only %lld",
                                 d, (long long)indices->shape.dim[d],
                                 (long long)data->shape.dim[d]);
    return ort_indices_check_tuples(call, indices, &data->shape.dim[axis], 1, err);
}

static ort_status scatter_run(ort_call *call, ort_error *err)
{
    scatter_job job = begin(call);
    const ort_tensor *data = ort_call_in(call, 0), *indices = job.indices;
    int rank = data->shape.rank;
    int64_t axis = job.state->axis < 0 ? job.state->axis + rank : job.state->axis;
    ORT_TRY(check_elements(call, data, indices, job.updates, axis, err));
    job.axis = (int)axis;
    start_from_data(data, job.out, call->pool);
    if (ort_tensor_count(indices) == 0)
        return ORT_OK;
    ort_shape_strides(&data->shape, job.stride);
    job.length = indices->shape.dim[rank - 1];
    job.rows = ort_tensor_count(indices) / job.length;
    if (axis == rank - 1) { /* strings: one task */
        int64_t rows = job.bytes ? ort_max_i64(FEW_UPDATES / job.length, 1) : job.rows;
        ort_call_range(call, job.rows, rows, rows_task, &job);
    } else {
        share_columns(&job, columns_task);
    }
    return ORT_OK;
}

static const ort_op_impl scatter_impl = {
    .state = sizeof(scatter_state), .bind = scatter_bind,
    .rule = "[A..,K,B..]@axis -> [A..,K,B..]", .prepare = scatter_prepare, .run = scatter_run,
};

/* ---- ScatterND */

/* Where slice t of updates goes, in elements of the output. */
static int64_t nd_place(const scatter_job *job, int64_t t)
{
    const int64_t *dim = job->out->shape.dim;
    int64_t to = 0;
    for (int d = 0; d < job->tuple; d++)
        to += ort_index_from_end(ort_index_at(job->indices, t * job->tuple + d), dim[d]) *
              job->stride[d];
    return to;
}

/* Columns [first, end) of each slice. */
static void nd_columns_task(void *arg, int64_t first, int64_t end, int thread)
{
    const scatter_job *job = arg;
    for (int64_t t = 0; t < job->rows; t++)
        apply(job, nd_place(job, t) + first, t * job->length + first, end - first);
}

/* Slices for the elements [first, end) of the output. Which these are follows no pattern that a
 * processor could foresee: they are listed without a branch. */
static void nd_slices_task(void *arg, int64_t first, int64_t end, int thread)
{
    const scatter_job *job = arg;
    int64_t from[LISTED], to[LISTED];
    for (int64_t t = 0; t < job->rows;) {
        const int64_t last = ort_min_i64(t + LISTED, job->rows);
        int count = 0;
        for (; t < last; t++) {
            from[count] = t;
            to[count] = nd_place(job, t);
            count += to[count] >= first && to[count] < end;
        }
        for (int i = 0; i < count; i++)
            apply(job, to[i], from[i] * job->length, job->length);
    }
}

/* Of short slices each thread has a part of the output, and passes over the others': that takes
 * less than lines, and their neighbours, that two threads write. */
static void nd_share(scatter_job *job)
{
    const int64_t count = ort_tensor_count(job->out), threads = ort_call_width(job->call);
    if (!job->bytes || threads == 1 || job->length >= LONG_SLICE || count < threads * job->length ||
        job->rows < FEW_UPDATES / (job->length + SLICE_COST)) {
        share_columns(job, nd_columns_task);
        return;
    }
    int64_t slices = count / job->length;
    ort_call_range(job->call, count, (slices + threads - 1) / threads * job->length, nd_slices_task,
                   job);
}

static ort_status nd_run(ort_call *call, ort_error *err)
{
    scatter_job job = begin(call);
    const ort_tensor *data = ort_call_in(call, 0), *indices = job.indices;
    int rank = data->shape.rank, last = indices->shape.rank - 1;
    if (last < 0 || indices->shape.dim[last] > rank)
        return ort_call_fail(call, err, "the last dim of indices must be between 0 and %d", rank);
    int64_t size;
    job.tuple = (int)indices->shape.dim[last];
    job.rows = ort_shape_count_range(&indices->shape, 0, last);
    job.length = ort_shape_count_range(&data->shape, job.tuple, rank);
    if (!ort_mul_i64(job.rows, job.length, &size) || ort_tensor_count(job.updates) != size)
        return ort_call_fail(call, err, "updates has %lld elements, %lld slices of %lld are needed",
                             (long long)ort_tensor_count(job.updates), (long long)job.rows,
                             (long long)job.length);
    ORT_TRY(ort_indices_check_tuples(call, indices, data->shape.dim, job.tuple, err));
    start_from_data(data, job.out, call->pool);
    ort_shape_strides(&data->shape, job.stride);
    nd_share(&job);
    return ORT_OK;
}

static const ort_op_impl nd_impl = {
    .state = sizeof(scatter_state), .bind = scatter_bind,
    .rule = "same", .prepare = scatter_prepare, .run = nd_run,
};

/* ---- TensorScatter */

static ort_status cache_run(ort_call *call, ort_error *err)
{
    const scatter_state *state = call->state;
    const ort_tensor *past = ort_call_in(call, 0), *update = ort_call_in(call, 1);
    const ort_tensor *where = ort_call_in(call, 2);
    ort_tensor *out = ort_call_out(call, 0);
    int rank = past->shape.rank;
    int64_t axis = state->axis < 0 ? state->axis + rank : state->axis;
    if (axis < 1 || axis >= rank || update->shape.rank != rank)
        return ort_call_fail(call, err, "axis %lld must lie in [1, %d), and update needs rank %d",
                             (long long)state->axis, rank, rank);
    for (int d = 0; d < rank; d++)
        if (d == axis ? update->shape.dim[d] > past->shape.dim[d]
                      : update->shape.dim[d] != past->shape.dim[d])
            return ort_call_fail(call, err, "axis %d of update has %lld elements, the cache %lld",
                                 d, (long long)update->shape.dim[d],
                                 (long long)past->shape.dim[d]);
    if (where && ort_tensor_count(where) != past->shape.dim[0])
        return ort_call_fail(call, err, "write_indices has %lld elements, the batch %lld",
                             (long long)ort_tensor_count(where), (long long)past->shape.dim[0]);
    int64_t length = past->shape.dim[axis], n = update->shape.dim[axis];
    int64_t prefixes = ort_shape_count_range(&past->shape, 1, (int)axis);
    int64_t block = ort_shape_count_range(&past->shape, (int)axis + 1, rank);
    for (int64_t b = 0; where && b < past->shape.dim[0]; b++) {
        int64_t at = ort_tensor_get_i64(where, b);
        if (at < 0 || (!state->circular && at > length - n))
            return ort_call_fail(call, err, "write_indices[%lld] is %lld; %lld entries do not fit "
                                 "into a cache of %lld", (long long)b, (long long)at, (long long)n,
                                 (long long)length);
    }
    start_from_data(past, out, call->pool);
    for (int64_t p = 0; n > 0 && p < past->shape.dim[0] * prefixes; p++) {
        int64_t at = where ? ort_tensor_get_i64(where, p / prefixes) % length : 0;
        int64_t head = ort_min_i64(n, length - at);
        ort_move_span(out->dtype, out->data, (p * length + at) * block, update->data,
                      p * n * block, head * block);
        ort_move_span(out->dtype, out->data, p * length * block, update->data,
                      (p * n + head) * block, (n - head) * block);
    }
    return ORT_OK;
}

/* The update has the cache's dims but along the axis, where it may be shorter. */
static ort_status cache_infer(ort_infer *x, ort_error *err)
{
    int axis;
    if (!ort_infer_in_ranked(x, 0) || !ort_infer_in_ranked(x, 1))
        return ORT_OK;
    const ort_type *past = &x->in[0]->type, *update = &x->in[1]->type;
    ORT_TRY(ort_infer_need_rank(x, 1, past->rank, err));
    ORT_TRY(ort_infer_axis(x, ort_node_attr_int(x->node, "axis"), past->rank, &axis, err));
    for (int d = 0; d < past->rank; d++)
        if (d != axis && ort_dim_known(past->dim[d]) && ort_dim_known(update->dim[d]) &&
            past->dim[d].size != update->dim[d].size)
            return ort_infer_fail(x, err, "dim %d of the update is %lld, of the cache %lld", d,
                                  (long long)update->dim[d].size, (long long)past->dim[d].size);
    return ORT_OK;
}

static const ort_op_impl cache_impl = {
    .state = sizeof(scatter_state), .bind = scatter_bind,
    .rule = "same", .infer = cache_infer, .prepare = scatter_prepare, .run = cache_run,
};

/* ---- OneHot */

static ort_status one_hot_infer(ort_infer *x, ort_error *err)
{
    ort_dim dims[ORT_MAX_RANK + 1], depth;
    const ort_fact *given = ort_infer_in(x, 1);
    int64_t known;
    int axis;
    if (ort_infer_in_ranked(x, 1) && given->type.rank > 1)
        ORT_TRY(ort_infer_need_rank(x, 1, 0, err));
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    const ort_type *in = &x->in[0]->type;
    if (in->rank + 1 > ORT_MAX_RANK)
        return ort_infer_fail(x, err, "the output would have rank %d", in->rank + 1);
    ORT_TRY(ort_infer_axis(x, ort_node_attr_int(x->node, "axis"), in->rank + 1, &axis, err));
    if (given && ort_tensor_one_i64(given->value, &known))
        depth = ort_dim_of(known);
    else if (!ort_infer_int(x, 1, 0, &depth))
        depth = ort_dim_unknown();
    if (ort_dim_known(depth) && depth.size < 0)
        return ort_infer_fail(x, err, "depth is %lld", (long long)depth.size);
    for (int d = 0; d <= in->rank; d++)
        dims[d] = d == axis ? depth : in->dim[d > axis ? d - 1 : d];
    ort_infer_set_shape(x, 0, in->rank + 1, dims);
    return ORT_OK;
}

typedef struct one_hot_state {
    int64_t axis;
} one_hot_state;

static const ort_bind one_hot_bind[] = {ORT_BIND(one_hot_state, axis), {0}};

static ort_status one_hot_run(ort_call *call, ort_error *err)
{
    const ort_tensor *indices = ort_call_in(call, 0), *values = ort_call_in(call, 2);
    ort_tensor *out = ort_call_out(call, 0);
    int64_t axis = ((const one_hot_state *)call->state)->axis;
    axis = axis < 0 ? axis + out->shape.rank : axis;
    int64_t depth = out->shape.dim[axis];
    int64_t inner = ort_shape_count_range(&out->shape, (int)axis + 1, out->shape.rank);
    int64_t count = ort_tensor_count(indices);
    if (ort_tensor_count(values) != 2)
        return ort_call_fail(call, err, "values has %lld elements; [off, on] is needed",
                             (long long)ort_tensor_count(values));
    ort_move_fill(out->dtype, out->data, 0, ort_tensor_count(out), values->data, 0);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = ort_tensor_get_i64(indices, i);
        at = at < 0 ? at + depth : at;
        if (at >= 0 && at < depth)
            ort_move_span(out->dtype, out->data, (i / inner * depth + at) * inner + i % inner,
                          values->data, 1, 1);
    }
    return ORT_OK;
}

static const ort_op_impl one_hot_impl = {
    .state = sizeof(one_hot_state), .bind = one_hot_bind,
    .infer = one_hot_infer, .run = one_hot_run, .numbers = 2,
};

const ort_op ort_ops_scatter[] = {
    {ONNX, "Scatter", 9, "data:T,indices:Tind,updates:T -> output:T",
     "T:F,I,U,C,str,bool Tind:i32,i64", "axis:i=0", 0, &scatter_impl},
    {ONNX, "Scatter", 11, "data:T,indices:Tind,updates:T -> output:T",
     "T:F,I,U,C,str,bool Tind:i32,i64", "axis:i=0", ORT_TRAIT_DEPRECATED, &scatter_impl},
    {ONNX, "ScatterElements", 11, "data:T,indices:Tind,updates:T -> output:T",
     "T:F,I,U,C,str,bool Tind:i32,i64", "axis:i=0", 0, &scatter_impl,
     .history = "13:T+bf16 16:+reduction:s=none 18"},
    {ONNX, "ScatterND", 11, "data:T,indices:i64,updates:T -> output:T", "T:F,I,U,C,str,bool", "",
     0, &nd_impl, .history = "13:T+bf16 16:+reduction:s=none 18"},
    {ONNX, "TensorScatter", 24, "past_cache:T,update:T,write_indices?:i64 -> present_cache:T",
     "T:F,I,U,C,F8,Q4,bf16,str,bool,f4e2m1,f8e8m0", "axis:i=-2 mode:s=linear", 0, &cache_impl},
    {ONNX, "OneHot", 9, "indices:T1,depth:T2,values:T3 -> output:T3",
     "T1:F,I,U T2:F,I,U T3:F,I,U,C,str,bool", "axis:i=-1", 0, &one_hot_impl,
     .history = "11 28:T3+bf16"},
    {0},
};
