/* gather.c - reading by index: Gather, GatherElements, GatherND.
 *
 * Invariant: all indices are checked before the first element is copied, so the parallel copies
 * cannot fail. Negative indices count from the end of the axis.
 */
#pragma GCC optimize("O3") /* vectorize the checks */

#include <string.h>

#include "base/checked.h"
#include "op/moves/indices.h"
#include "op/shared/move.h"

enum { TASK_BYTES = 64 * 1024 };

typedef struct gather_state {
    int64_t axis, batch_dims;
} gather_state;

static const ort_bind gather_bind[] = {
    ORT_BIND(gather_state, axis, ORT_MAYBE), ORT_BIND(gather_state, batch_dims, ORT_MAYBE), {0}};

static ort_status check_indices(const ort_call *call, const ort_tensor *indices, int64_t limit,
                                ort_error *err)
{
    int64_t i = ort_indices_first_outside(indices, limit);
    if (i < 0)
        return ORT_OK;
    return ort_call_fail(call, err, "indices[%lld] is %lld, outside [-%lld, %lld]", (long long)i,
                         (long long)ort_index_at(indices, i), (long long)limit,
                         (long long)limit - 1);
}

/* ---- Gather */

/* Elements of a one-dimensional integer value picked by known indices. */
static ort_status gather_value(ort_infer *x, ort_error *err)
{
    ort_dim value[ORT_SYMBOLIC_MAX], at[ORT_SYMBOLIC_MAX];
    int have = x->in[0] && x->in[0]->type.rank == 1 ? ort_infer_elements(x, 0, value) : -1;
    int count = have < 0 || x->out[0].type.rank > 1 ? -1 : ort_infer_elements(x, 1, at);
    for (int i = 0; i < count; i++) {
        int64_t k = ort_dim_known(at[i]) ? at[i].size : INT64_MIN;
        k = k < 0 && k >= -have ? k + have : k;
        at[i] = k >= 0 && k < have ? value[k] : ort_dim_unknown();
    }
    if (count >= 0 && ort_infer_any_known(at, count))
        ort_infer_set_symbolic(x, 0, at, count);
    return ORT_OK;
}

typedef struct gather_job {
    const ort_tensor *data, *indices;
    ort_tensor *out;
    int64_t axis_dim, count, block; /* of data's axis, of indices, behind the axis */
    int64_t items;
    size_t row_bytes;               /* of a block; 0: its elements share bytes */
} gather_job;

/* Rows of a size that the compiler knows, or of row_bytes. */
#define PICK(bytes)                                                                                \
    for (int64_t i = 0; i < n; i++) {                                                              \
        int64_t at = ort_index_from_end(ort_index_at(job->indices, first + i), job->axis_dim);     \
        ort_move_bytes(to + (size_t)i * (bytes), from + (size_t)at * (bytes), bytes);              \
    }                                                                                              \
    return;

/* n rows of one outer index. */
static void gather_rows(const gather_job *job, int64_t item, int64_t n)
{
    const size_t row = job->row_bytes;
    int64_t first = item % job->count, base = item / job->count * job->axis_dim;
    const char *from = (const char *)job->data->data + (size_t)base * row;
    char *to = (char *)job->out->data + (size_t)item * row;
    switch (row) {
    case 1: PICK(1)
    case 2: PICK(2)
    case 4: PICK(4)
    case 8: PICK(8)
    case 16: PICK(16)
    case 32: PICK(32)
    default: PICK(row)
    }
}

/* The same of elements that share bytes. */
static void gather_packed(const gather_job *job, int64_t item, int64_t n)
{
    int64_t first = item % job->count, base = item / job->count * job->axis_dim;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = ort_index_from_end(ort_index_at(job->indices, first + i), job->axis_dim);
        ort_move_span(job->data->dtype, job->out->data, (item + i) * job->block, job->data->data,
                      (base + at) * job->block, job->block);
    }
}

static void gather_task(void *arg, int64_t first, int64_t end, int thread)
{
    const gather_job *job = arg;
    for (int64_t item = first, n; item < end; item += n) {
        n = ort_min_i64(end - item, job->count - item % job->count);
        (job->row_bytes ? gather_rows : gather_packed)(job, item, n);
    }
}

static ort_status gather_run(ort_call *call, ort_error *err)
{
    const ort_tensor *data = ort_call_in(call, 0), *indices = ort_call_in(call, 1);
    gather_job job = {.data = data, .indices = indices, .out = ort_call_out(call, 0)};
    int64_t axis = ((const gather_state *)call->state)->axis;
    axis = axis < 0 ? axis + data->shape.rank : axis;
    job.axis_dim = data->shape.dim[axis];
    job.count = ort_tensor_count(indices);
    job.block = ort_shape_count_range(&data->shape, (int)axis + 1, data->shape.rank);
    job.items = ort_shape_count_range(&data->shape, 0, (int)axis) * job.count;
    ORT_TRY(check_indices(call, indices, job.axis_dim, err));
    if (job.items == 0 || job.block == 0)
        return ORT_OK;
    job.row_bytes = (size_t)job.block * ort_move_element_bytes(data->dtype);
    int64_t per_task = job.row_bytes == 0 ? job.items
                                          : ort_max_i64(1, TASK_BYTES / (int64_t)job.row_bytes);
    ort_call_range(call, job.items, per_task, gather_task, &job);
    return ORT_OK;
}

static const ort_op_impl gather_impl = {
    .state = sizeof(gather_state), .bind = gather_bind,
    .rule = "[A..,_,B..]@axis [I..] -> [A..,I..,B..]",
    .infer = gather_value, .run = gather_run,
};

/* ---- GatherElements */

static ort_status elements_infer(ort_infer *x, ort_error *err)
{
    int axis;
    if (!ort_infer_in_ranked(x, 1))
        return ORT_OK;
    int rank = x->in[1]->type.rank;
    if (ort_infer_in_ranked(x, 0) && x->in[0]->type.rank != rank)
        return ort_infer_fail(x, err, "data has rank %d, indices rank %d; they must be equal",
                              x->in[0]->type.rank, rank);
    return ort_infer_axis(x, ort_node_attr_int(x->node, "axis"), rank, &axis, err);
}

typedef struct elements_job {
    const ort_tensor *data, *indices;
    ort_tensor *out;
    int axis, rank;
    int64_t stride[ORT_MAX_RANK];
    int64_t length; /* of a row: the last axis of indices */
} elements_job;

#define PICK_BY(type, index_type)                                                                  \
    do {                                                                                           \
        const type *s_ = (const type *)job->data->data + base;                                     \
        const index_type *i_ = (const index_type *)job->indices->data + to;                        \
        type *d_ = (type *)job->out->data + to;                                                    \
        for (int64_t j = 0; j < job->length && step == 1; j++)                                     \
            d_[j] = s_[(int64_t)i_[j] + (i_[j] < 0 ? limit : 0) + j * inner];                      \
        for (int64_t j = 0; j < job->length && step != 1; j++)                                     \
            d_[j] = s_[((int64_t)i_[j] + (i_[j] < 0 ? limit : 0)) * step + j * inner];             \
    } while (0)

#define PICK_ROW(type)                                                                             \
    do {                                                                                           \
        if (job->indices->dtype == ORT_DTYPE_INT64)                                                \
            PICK_BY(type, int64_t);                                                                \
        else                                                                                       \
            PICK_BY(type, int32_t);                                                                \
    } while (0)

static void elements_row(const elements_job *job, int64_t row)
{
    int last = job->rank - 1;
    int64_t base = 0, to = row * job->length, limit = job->data->shape.dim[job->axis];
    int64_t step = job->stride[job->axis], inner = job->axis == last ? 0 : 1;
    for (int d = last - 1; d >= 0; d--) {
        if (d != job->axis)
            base += row % job->indices->shape.dim[d] * job->stride[d];
        row /= job->indices->shape.dim[d];
    }
    switch (ort_move_element_bytes(job->data->dtype)) {
    case 1: PICK_ROW(uint8_t); break;
    case 2: PICK_ROW(uint16_t); break;
    case 4: PICK_ROW(uint32_t); break;
    case 8: PICK_ROW(uint64_t); break;
    default:
        for (int64_t j = 0; j < job->length; j++) {
            int64_t at = ort_index_at(job->indices, to + j);
            ort_move_span(job->data->dtype, job->out->data, to + j, job->data->data,
                          base + (at < 0 ? at + limit : at) * step + j * inner, 1);
        }
    }
}

static void elements_task(void *arg, int64_t first, int64_t end, int thread)
{
    const elements_job *job = arg;
    for (int64_t row = first; row < end; row++)
        elements_row(job, row);
}

static ort_status elements_run(ort_call *call, ort_error *err)
{
    const ort_tensor *data = ort_call_in(call, 0), *indices = ort_call_in(call, 1);
    elements_job job = {.data = data, .indices = indices, .out = ort_call_out(call, 0)};
    int64_t axis = ((const gather_state *)call->state)->axis;
    job.rank = data->shape.rank;
    axis = axis < 0 ? axis + job.rank : axis;
    if (job.rank < 1 || indices->shape.rank != job.rank)
        return ort_call_fail(call, err, "data and indices have ranks %d and %d; equal ranks of at "
                             "least 1 are needed", job.rank, indices->shape.rank);
    for (int d = 0; d < job.rank; d++)
        if (d != axis && indices->shape.dim[d] > data->shape.dim[d])
            return ort_call_fail(call, err, "axis %d of indices has %lld elements, data only %lld",
                                 d, (long long)indices->shape.dim[d],
                                 (long long)data->shape.dim[d]);
    ORT_TRY(check_indices(call, indices, data->shape.dim[axis], err));
    if (ort_tensor_count(indices) == 0)
        return ORT_OK;
    job.axis = (int)axis;
    ort_shape_strides(&data->shape, job.stride);
    job.length = indices->shape.dim[job.rank - 1];
    ort_call_range(call, ort_tensor_count(indices) / job.length,
                   ort_max_i64(1, 16384 / job.length), elements_task, &job);
    return ORT_OK;
}

static const ort_op_impl elements_impl = {
    .state = sizeof(gather_state), .bind = gather_bind,
    .rule = "- [I..] -> [I..]", .infer = elements_infer, .run = elements_run,
};

/* ---- GatherND */

static ort_status nd_infer(ort_infer *x, ort_error *err)
{
    ort_dim dims[2 * ORT_MAX_RANK];
    int64_t batch = ort_node_attr_int(x->node, "batch_dims");
    int rank = 0;
    if (!ort_infer_in_ranked(x, 0) || !ort_infer_in_ranked(x, 1))
        return ORT_OK;
    const ort_type *data = &x->in[0]->type, *indices = &x->in[1]->type;
    if (data->rank < 1 || indices->rank < 1)
        return ort_infer_fail(x, err, "data and indices need rank 1 or more");
    if (batch < 0 || batch >= data->rank || batch >= indices->rank)
        return ort_infer_fail(x, err, "batch_dims is %lld; it must be below both ranks (%d, %d)",
                              (long long)batch, data->rank, indices->rank);
    ort_dim tuple = indices->dim[indices->rank - 1];
    if (!ort_dim_known(tuple))
        return ORT_OK;
    if (tuple.size < 1 || tuple.size > data->rank - batch)
        return ort_infer_fail(x, err, "the last dim of indices is %lld; 1 to %lld are possible",
                              (long long)tuple.size, (long long)(data->rank - batch));
    for (int d = 0; d < indices->rank - 1; d++)
        dims[rank++] = indices->dim[d];
    for (int d = (int)(batch + tuple.size); d < data->rank; d++)
        dims[rank++] = data->dim[d];
    if (rank > ORT_MAX_RANK)
        return ort_infer_fail(x, err, "the output would have rank %d", rank);
    ort_infer_set_shape(x, 0, rank, dims);
    return ORT_OK;
}

typedef struct nd_job {
    const ort_tensor *data, *indices;
    ort_tensor *out;
    int batch, tuple;
    int64_t tuples, per_batch, batch_size, block;
    size_t bytes, row_bytes; /* of an element and a block; 0: elements share bytes */
    int64_t stride[ORT_MAX_RANK];
} nd_job;

static void nd_task(void *arg, int64_t first, int64_t end, int thread)
{
    const nd_job *job = arg;
    for (int64_t t = first; t < end; t++) {
        int64_t from = t / job->per_batch * job->batch_size;
        for (int k = 0; k < job->tuple; k++)
            from += ort_index_from_end(ort_index_at(job->indices, t * job->tuple + k),
                                       job->data->shape.dim[job->batch + k]) *
                    job->stride[job->batch + k];
        if (job->row_bytes)
            ort_move_bytes((char *)job->out->data + (size_t)t * job->row_bytes,
                           (const char *)job->data->data + (size_t)from * job->bytes,
                           job->row_bytes);
        else
            ort_move_span(job->data->dtype, job->out->data, t * job->block, job->data->data, from,
                          job->block);
    }
}

static ort_status nd_run(ort_call *call, ort_error *err)
{
    const ort_tensor *data = ort_call_in(call, 0), *indices = ort_call_in(call, 1);
    nd_job job = {.data = data, .indices = indices, .out = ort_call_out(call, 0)};
    int rank = data->shape.rank, last = indices->shape.rank - 1;
    job.batch = (int)((const gather_state *)call->state)->batch_dims;
    job.tuple = (int)indices->shape.dim[last];
    job.tuples = ort_shape_count_range(&indices->shape, 0, last);
    int64_t batches = ort_shape_count_range(&indices->shape, 0, job.batch);
    for (int d = 0; d < job.batch; d++)
        if (indices->shape.dim[d] != data->shape.dim[d])
            return ort_call_fail(call, err, "batch axis %d has %lld elements in indices, %lld in "
                                 "data", d, (long long)indices->shape.dim[d],
                                 (long long)data->shape.dim[d]);
    ORT_TRY(ort_indices_check_tuples(call, indices, &data->shape.dim[job.batch], job.tuple, err));
    if (job.tuples == 0)
        return ORT_OK;
    ort_shape_strides(&data->shape, job.stride);
    job.per_batch = job.tuples / batches;
    job.batch_size = ort_shape_count_range(&data->shape, job.batch, rank);
    job.block = ort_shape_count_range(&data->shape, job.batch + job.tuple, rank);
    job.bytes = ort_move_element_bytes(data->dtype);
    job.row_bytes = (size_t)job.block * job.bytes;
    int64_t per_task = ort_max_i64(1, TASK_BYTES / 8 / ort_max_i64(1, job.block));
    ort_call_range(call, job.tuples, job.bytes ? per_task : job.tuples, nd_task, &job);
    return ORT_OK;
}

static const ort_op_impl nd_impl = {
    .state = sizeof(gather_state), .bind = gather_bind, .infer = nd_infer, .run = nd_run,
};

#define PICKS ORT_TRAIT_PICKS

const ort_op ort_ops_gather[] = {
    {ONNX, "Gather", 1, "data:T,indices:Tind -> output:T", "T:F,I,U,C,str,bool Tind:i32,i64",
     "axis:i=0", PICKS | ORT_TRAIT_READS_UNALIGNED, &gather_impl,
     .history = "11 13:T+bf16"},
    {ONNX, "GatherElements", 11, "data:T,indices:Tind -> output:T",
     "T:F,I,U,C,str,bool Tind:i32,i64", "axis:i=0", PICKS, &elements_impl, .history = "13:T+bf16"},
    {ONNX, "GatherND", 11, "data:T,indices:i64 -> output:T", "T:F,I,U,C,str,bool", "",
     PICKS, &nd_impl, .history = "12:+batch_dims:i=0 13:T+bf16"},
    {MS, "GatherND", 1, "data:T,indices:Tind -> output:T",
     "T:F,I,U,C,bf16,str,bool Tind:i32,i64", "", PICKS, &nd_impl},
    {0},
};
