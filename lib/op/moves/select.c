/* select.c - operators that keep, turn or fold parts of a tensor by position: Trilu,
 * ReverseSequence, Compress, Col2Im, UnfoldTensor.
 *
 * Invariant: all but Col2Im copy elements of any type unread; Col2Im adds them (combine.h), and
 * strings one behind the other in the order of their place in the block, as numpy adds them.
 */
#include <string.h>

#include "base/checked.h"
#include "op/number.h"
#include "op/shared/combine.h"
#include "op/shared/move.h"

/* ---- Trilu */

typedef struct trilu_state {
    bool upper;
} trilu_state;

static const ort_bind trilu_bind[] = {ORT_BIND(trilu_state, upper), {0}};

static ort_status trilu_run(ort_call *call, ort_error *err)
{
    const ort_tensor *in = ort_call_in(call, 0);
    ort_tensor *out = ort_call_out(call, 0);
    bool upper = ((const trilu_state *)call->state)->upper;
    int rank = in->shape.rank;
    int64_t rows = in->shape.dim[rank - 2], columns = in->shape.dim[rank - 1];
    int64_t k = 0, total = ort_shape_count_range(&in->shape, 0, rank - 1);
    ORT_TRY(ort_call_i64(call, 1, &k, err));
    k = ort_max_i64(-rows - 1, ort_min_i64(columns + 1, k));
    for (int64_t r = 0; r < total; r++) {
        int64_t cut = r % rows + k + (upper ? 0 : 1), at = r * columns;
        cut = ort_max_i64(0, ort_min_i64(columns, cut));
        int64_t first = upper ? cut : 0, last = upper ? columns : cut;
        if (out->data != in->data)
            ort_move_span(out->dtype, out->data, at + first, in->data, at + first, last - first);
        ort_move_fill(out->dtype, out->data, at + (upper ? 0 : cut), columns - (last - first), NULL,
                      0);
    }
    return ORT_OK;
}

static const ort_op_impl trilu_impl = {
    .state = sizeof(trilu_state), .bind = trilu_bind,
    .rule = "[A..,M,N] -> [A..,M,N]", .run = trilu_run, .numbers = 2,
};

/* ---- ReverseSequence */

typedef struct reverse_state {
    int batch_axis, time_axis;
} reverse_state;

static const ort_bind reverse_bind[] = {
    ORT_BIND(reverse_state, batch_axis, ORT_WITHIN(0, 1)),
    ORT_BIND(reverse_state, time_axis, ORT_WITHIN(0, 1)), {0}};

static ort_status reverse_prepare(ort_prep *p, ort_error *err)
{
    const reverse_state *state = p->state;
    if (state->batch_axis == state->time_axis)
        return ort_prep_fail(p, err, "batch_axis and time_axis are both %d", state->time_axis);
    return ORT_OK;
}

static ort_status reverse_run(ort_call *call, ort_error *err)
{
    const reverse_state *state = call->state;
    const ort_tensor *in = ort_call_in(call, 0), *lengths = ort_call_in(call, 1);
    ort_tensor *out = ort_call_out(call, 0);
    if (in->shape.rank < 2)
        return ort_call_fail(call, err, "the input has rank %d; 2 or more is needed",
                             in->shape.rank);
    int64_t times = in->shape.dim[state->time_axis], batches = in->shape.dim[state->batch_axis];
    int64_t block = ort_shape_count_range(&in->shape, 2, in->shape.rank);
    int64_t time_stride = state->time_axis == 0 ? in->shape.dim[1] * block : block;
    int64_t batch_stride = state->batch_axis == 0 ? in->shape.dim[1] * block : block;
    if (ort_tensor_count(lengths) != batches)
        return ort_call_fail(call, err, "sequence_lens has %lld elements, the batch %lld",
                             (long long)ort_tensor_count(lengths), (long long)batches);
    for (int64_t b = 0; b < batches; b++) {
        int64_t n = ort_tensor_get_i64(lengths, b);
        if (n < 0 || n > times)
            return ort_call_fail(call, err, "sequence_lens[%lld] is %lld, outside [0, %lld]",
                                 (long long)b, (long long)n, (long long)times);
        for (int64_t t = 0; t < times; t++)
            ort_move_span(out->dtype, out->data, b * batch_stride + t * time_stride, in->data,
                          b * batch_stride + (t < n ? n - 1 - t : t) * time_stride, block);
    }
    return ORT_OK;
}

static const ort_op_impl reverse_impl = {
    .state = sizeof(reverse_state), .bind = reverse_bind,
    .rule = "same", .prepare = reverse_prepare, .run = reverse_run,
};

/* ---- Compress */

typedef struct compress_state {
    bool has_axis;
    int64_t axis;
} compress_state;

static const ort_bind compress_bind[] = {
    ORT_BIND_HAS(compress_state, has_axis, "axis"), ORT_BIND(compress_state, axis, ORT_MAYBE), {0}};

static ort_status compress_infer(ort_infer *x, ort_error *err)
{
    ort_dim unknown = ort_dim_unknown();
    int axis;
    if (!ort_node_has(x->node, "axis")) {
        ort_infer_set_shape(x, 0, 1, &unknown);
        return ORT_OK;
    }
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    ort_type type = x->in[0]->type;
    ORT_TRY(ort_infer_axis(x, ort_node_attr_int(x->node, "axis"), type.rank, &axis, err));
    type.dim[axis] = unknown;
    ort_infer_set_shape(x, 0, type.rank, type.dim);
    return ORT_OK;
}

static ort_status compress_run(ort_call *call, ort_error *err)
{
    const compress_state *state = call->state;
    const ort_tensor *in = ort_call_in(call, 0), *condition = ort_call_in(call, 1);
    const uint8_t *keep = condition->data;
    int rank = in->shape.rank;
    int64_t axis = state->axis < 0 ? state->axis + rank : state->axis, kept = 0, to = 0;
    ort_shape shape = in->shape;
    if (!state->has_axis)
        shape = ort_shape_make(1, (int64_t[]){ort_tensor_count(in)});
    if (!state->has_axis)
        axis = 0;
    if (axis < 0 || axis >= shape.rank)
        return ort_call_fail(call, err, "axis %lld is outside rank %d", (long long)state->axis,
                             rank);
    int64_t total = shape.dim[axis], outer = ort_shape_count_range(&shape, 0, (int)axis);
    int64_t block = ort_shape_count_range(&shape, (int)axis + 1, shape.rank);
    int64_t n = ort_min_i64(ort_tensor_count(condition), total);
    for (int64_t i = 0; i < n; i++)
        kept += keep[i] != 0;
    shape.dim[axis] = kept;
    ORT_TRY(ort_call_output(call, 0, in->dtype, &shape, err));
    ort_tensor *out = ort_call_out(call, 0);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < n; i++)
            if (keep[i]) {
                ort_move_span(in->dtype, out->data, to, in->data, (o * total + i) * block, block);
                to += block;
            }
    return ORT_OK;
}

static const ort_op_impl compress_impl = {
    .state = sizeof(compress_state), .bind = compress_bind,
    .infer = compress_infer, .run = compress_run,
};

/* ---- Col2Im */

typedef struct fold_state {
    ort_combine_fn *add;
    size_t bytes;
    ort_ints dilations, pads, strides; /* none: ones, zeros, ones */
} fold_state;

static const ort_bind fold_bind[] = {
    ORT_BIND(fold_state, dilations), ORT_BIND(fold_state, pads), ORT_BIND(fold_state, strides),
    {0}};

/* An image_shape of unknown length: block_shape and the attributes have an entry per axis too. */
static int fold_open_image(const ort_infer *x, int blocks, ort_dim *image)
{
    static const char *const lists[] = {"dilations", "pads", "strides"};
    int axes = blocks;
    for (int i = 0; i < 3 && axes < 0; i++) {
        size_t count = 0;
        if (ort_node_ints(x->node, lists[i], &count) && count <= ORT_SYMBOLIC_MAX)
            axes = (int)count / (i == 1 ? 2 : 1);
    }
    for (int i = 0; i < axes; i++)
        image[i] = ort_dim_unknown();
    return axes;
}

/* dilations and strides have an entry per axis, from 1 on; pads two. */
static ort_status fold_lists(const ort_infer *x, int axes, ort_error *err)
{
    static const char *const lists[] = {"dilations", "strides", "pads"};
    for (int i = 0; i < 3; i++) {
        size_t count = 0, need = (size_t)axes * (i == 2 ? 2 : 1);
        const int64_t *list = ort_node_ints(x->node, lists[i], &count);
        if (list && count != need)
            return ort_infer_fail(x, err, "%s has %zu numbers, needs %zu for images of %d axes",
                                  lists[i], count, need, axes);
        for (size_t k = 0; list && i < 2 && k < count; k++)
            if (list[k] < 1)
                return ort_infer_fail(x, err, "%s[%zu] is %lld, needs 1 or more", lists[i], k,
                                      (long long)list[k]);
    }
    return ORT_OK;
}

static ort_status fold_infer(ort_infer *x, ort_error *err)
{
    ort_dim image[ORT_SYMBOLIC_MAX], block[ORT_SYMBOLIC_MAX], dims[ORT_MAX_RANK];
    int count = ort_infer_elements(x, 1, image), blocks = ort_infer_elements(x, 2, block);
    if (count < 0)
        count = fold_open_image(x, blocks, image);
    if (count < 0)
        return ORT_OK;
    if (count + 2 > ORT_MAX_RANK || (blocks >= 0 && blocks != count))
        return ort_infer_fail(x, err, "image_shape has %d elements, block_shape %d", count, blocks);
    ORT_TRY(fold_lists(x, count, err));
    dims[0] = dims[1] = ort_dim_unknown();
    if (ort_infer_in_ranked(x, 0)) {
        ort_dim area = ort_dim_of(1);
        for (int i = 0; i < count; i++)
            area = ort_dim_mul(x->dims, area, blocks < 0 ? ort_dim_unknown() : block[i]);
        if (ort_dim_known(area) && area.size < 1)
            return ort_infer_fail(x, err, "block_shape has a dim below 1");
        dims[0] = x->in[0]->type.dim[0];
        dims[1] = ort_dim_div(x->dims, x->in[0]->type.dim[1], area);
    }
    memcpy(dims + 2, image, (size_t)count * sizeof *image);
    ort_infer_set_shape(x, 0, count + 2, dims);
    return ORT_OK;
}

static ort_status fold_prepare(ort_prep *p, ort_error *err)
{
    fold_state *state = p->state;
    ort_dtype dtype = ort_prep_dtype(p, 0);
    state->add = ort_combine_get(dtype, ORT_COMBINE_ADD);
    if (!state->add && dtype != ORT_DTYPE_STRING)
        return ort_prep_unsupported_dtype(p, 0, err);
    state->bytes = ort_move_element_bytes(dtype);
    return ORT_OK;
}

typedef struct fold_job {
    const fold_state *state;
    const ort_tensor *x;
    const char *in;
    ort_tensor *y;
    char *out;
    int rank;
    int64_t image[ORT_MAX_RANK], block[ORT_MAX_RANK], steps[ORT_MAX_RANK];
    int64_t stride[ORT_MAX_RANK], dilation[ORT_MAX_RANK], pad[ORT_MAX_RANK];
    int64_t area, blocks, pixels;
} fold_job;

/* Where element `l` of block offset `k` lands in the image; -1 outside. */
static int64_t fold_position(const fold_job *job, int64_t k, int64_t l)
{
    int64_t at = 0, scale = 1;
    for (int d = job->rank - 1; d >= 0; d--) {
        int64_t i = l % job->steps[d] * job->stride[d] - job->pad[d] +
                    k % job->block[d] * job->dilation[d];
        if (i < 0 || i >= job->image[d])
            return -1;
        at += i * scale;
        scale *= job->image[d];
        k /= job->block[d];
        l /= job->steps[d];
    }
    return at;
}

static void fold_task(void *arg, size_t task, int thread)
{
    const fold_job *job = arg;
    size_t bytes = job->state->bytes;
    char *out = job->out + (int64_t)task * job->pixels * (int64_t)bytes;
    const char *in = job->in + (int64_t)task * job->area * job->blocks * (int64_t)bytes;
    memset(out, 0, (size_t)job->pixels * bytes);
    for (int64_t k = 0; k < job->area; k++)
        for (int64_t l = 0; l < job->blocks; l++, in += bytes) {
            int64_t at = fold_position(job, k, l);
            if (at >= 0)
                job->state->add(out + at * (int64_t)bytes, in, 1);
        }
}

/* Which element of block offset `k` lands on `pixel`; -1 when none does. */
static int64_t fold_source(const fold_job *job, int64_t k, int64_t pixel)
{
    int64_t at = 0, scale = 1;
    for (int d = job->rank - 1; d >= 0; d--) {
        int64_t i = pixel % job->image[d] + job->pad[d] - k % job->block[d] * job->dilation[d];
        if (i < 0 || i % job->stride[d] || i / job->stride[d] >= job->steps[d])
            return -1;
        at += i / job->stride[d] * scale;
        scale *= job->steps[d];
        k /= job->block[d];
        pixel /= job->image[d];
    }
    return at;
}

/* 16-bit floats: the sum of a pixel is formed in f32 and rounded once. */
static void fold_task_16(void *arg, size_t task, int thread)
{
    const fold_job *job = arg;
    int64_t in = (int64_t)task * job->area * job->blocks, out = (int64_t)task * job->pixels;
    for (int64_t pixel = 0; pixel < job->pixels; pixel++) {
        float sum = 0, one;
        for (int64_t k = 0; k < job->area; k++) {
            int64_t l = fold_source(job, k, pixel);
            if (l < 0)
                continue;
            ort_tensor_to_f32(job->x, in + k * job->blocks + l, 1, &one);
            sum += one;
        }
        ort_tensor_from_f32(&sum, job->y, out + pixel, 1);
    }
}

/* The strings of one pixel, at `text` unless NULL; returns their bytes. */
static size_t fold_join(const fold_job *job, int64_t plane, int64_t pixel, char *text)
{
    const ort_string *in = (const ort_string *)job->x->data + plane * job->area * job->blocks;
    size_t length = 0;
    for (int64_t k = 0; k < job->area; k++) {
        int64_t l = fold_source(job, k, pixel);
        const ort_string *part = l < 0 ? NULL : in + k * job->blocks + l;
        if (!part || part->length == 0)
            continue;
        if (text)
            memcpy(text + length, part->ptr, part->length);
        length += part->length;
    }
    return length;
}

static ort_status fold_strings(ort_call *call, const fold_job *job, int64_t planes, ort_error *err)
{
    ort_string *out = (ort_string *)job->y->data;
    size_t bytes = 0;
    for (int64_t i = 0; i < planes * job->pixels; i++)
        bytes += fold_join(job, i / job->pixels, i % job->pixels, NULL);
    char *text = ort_call_alloc(call, bytes + 1);
    if (!text)
        return ort_error_memory(err, bytes + 1);
    for (int64_t i = 0; i < planes * job->pixels; i++) {
        size_t length = fold_join(job, i / job->pixels, i % job->pixels, text);
        out[i] = (ort_string){text, length};
        text += length;
    }
    return ORT_OK;
}

static bool fits(const ort_ints *list, size_t count)
{
    return !list->ptr || list->count == count;
}

static ort_status fold_run(ort_call *call, ort_error *err)
{
    const fold_state *state = call->state;
    const ort_tensor *in = ort_call_in(call, 0), *block = ort_call_in(call, 2);
    ort_tensor *out = ort_call_out(call, 0);
    fold_job job = {.state = state, .x = in, .in = in->data, .y = out, .out = out->data,
                    .area = 1, .blocks = 1};
    job.rank = out->shape.rank - 2;
    job.pixels = ort_shape_count_range(&out->shape, 2, out->shape.rank);
    size_t r = (size_t)job.rank;
    if (ort_tensor_count(block) != job.rank || !fits(&state->dilations, r) ||
        !fits(&state->strides, r) || !fits(&state->pads, 2 * r))
        return ort_call_fail(call, err, "block_shape, dilations, strides and pads must fit the %d "
                             "dims of image_shape", job.rank);
    for (int d = 0; d < job.rank; d++) {
        job.image[d] = out->shape.dim[d + 2];
        job.block[d] = ort_tensor_get_i64(block, d);
        job.stride[d] = state->strides.ptr ? state->strides.ptr[d] : 1;
        job.dilation[d] = state->dilations.ptr ? state->dilations.ptr[d] : 1;
        job.pad[d] = state->pads.ptr ? state->pads.ptr[d] : 0;
        int64_t end = state->pads.ptr ? state->pads.ptr[d + job.rank] : 0, limit = (int64_t)1 << 31;
        if (job.block[d] < 1 || job.stride[d] < 1 || job.dilation[d] < 1 || job.pad[d] < 0 ||
            end < 0 || job.block[d] > limit || job.dilation[d] > limit || job.pad[d] > limit ||
            end > limit || job.image[d] > limit)
            return ort_call_fail(call, err, "block, stride, dilation or pad of axis %d is out of "
                                 "range", d);
        int64_t span = job.image[d] + job.pad[d] + end - job.dilation[d] * (job.block[d] - 1) - 1;
        job.steps[d] = span < 0 ? 0 : span / job.stride[d] + 1;
        job.area *= job.block[d];
        if (!ort_mul_i64(job.blocks, job.steps[d], &job.blocks) || job.area > in->shape.dim[1])
            return ort_call_fail(call, err, "block_shape does not fit axis 1 of the input");
    }
    if (job.blocks != in->shape.dim[2] || job.area * out->shape.dim[1] != in->shape.dim[1])
        return ort_call_fail(call, err, "the input has %lld blocks of %lld, image_shape and "
                             "block_shape make %lld of %lld", (long long)in->shape.dim[2],
                             (long long)in->shape.dim[1], (long long)job.blocks,
                             (long long)(job.area * out->shape.dim[1]));
    if (in->dtype == ORT_DTYPE_STRING)
        return fold_strings(call, &job, out->shape.dim[0] * out->shape.dim[1], err);
    ort_call_parallel(call, (size_t)(out->shape.dim[0] * out->shape.dim[1]),
                      in->dtype == ORT_DTYPE_FLOAT16 || in->dtype == ORT_DTYPE_BFLOAT16
                          ? fold_task_16 : fold_task, &job);
    return ORT_OK;
}

static const ort_op_impl fold_impl = {
    .state = sizeof(fold_state), .bind = fold_bind,
    .rule = "[_,_,_]", .infer = fold_infer, .prepare = fold_prepare, .run = fold_run,
};

/* ---- UnfoldTensor of com.microsoft: [.., n, ..] to [.., windows, .., size] */

typedef struct unfold_state {
    int64_t dim, step, size;
} unfold_state;

static const ort_bind unfold_bind[] = {
    ORT_BIND(unfold_state, dim), ORT_BIND(unfold_state, step, ORT_FROM(1)),
    ORT_BIND(unfold_state, size, ORT_FROM(1)), {0}};

static ort_status unfold_infer(ort_infer *x, ort_error *err)
{
    unfold_state s = {0};
    ORT_TRY(ort_bind_attrs(unfold_bind, x->node, x->arena, &s, err));
    int64_t size = s.size, step = s.step;
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    ort_type type = x->in[0]->type;
    int axis;
    ORT_TRY(ort_infer_axis(x, s.dim, type.rank, &axis, err));
    if (type.rank >= ORT_MAX_RANK || (ort_dim_known(type.dim[axis]) && type.dim[axis].size < size))
        return ort_infer_fail(x, err, "axis %d has fewer than %lld elements, or the rank is beyond "
                              "%d", axis, (long long)size, ORT_MAX_RANK);
    ort_dim left = ort_dim_sub(x->dims, type.dim[axis], ort_dim_of(size));
    ort_dim steps = ort_dim_div(x->dims, left, ort_dim_of(step));
    type.dim[axis] = ort_dim_known(left) ? ort_dim_of(left.size / step + 1)
                     : step == 1         ? ort_dim_add(x->dims, steps, ort_dim_of(1))
                                         : ort_dim_unknown();
    type.dim[type.rank] = ort_dim_of(size);
    ort_infer_set_shape(x, 0, type.rank + 1, type.dim);
    return ORT_OK;
}

static ort_status unfold_run(ort_call *call, ort_error *err)
{
    const ort_tensor *in = ort_call_in(call, 0);
    ort_tensor *out = ort_call_out(call, 0);
    const ort_shape *s = &in->shape;
    const unfold_state *state = call->state;
    int64_t dim = state->dim, step = state->step;
    int axis = (int)(dim < 0 ? dim + s->rank : dim);
    int64_t inner = ort_shape_count_range(s, axis + 1, s->rank), size = out->shape.dim[s->rank];
    int64_t outer = ort_shape_count_range(s, 0, axis), windows = out->shape.dim[axis];
    ort_move move = ort_move_between(in, out);
    ort_move_add(&move, outer, s->dim[axis] * inner, windows * inner * size);
    ort_move_add(&move, windows, windows > 1 ? step * inner : 0, inner * size);
    ort_move_add(&move, inner, 1, size);
    ort_move_add(&move, size, inner, 1);
    ort_move_run(&move, call->pool);
    return ORT_OK;
}

static const ort_op_impl unfold_impl = {
    .state = sizeof(unfold_state), .bind = unfold_bind, .infer = unfold_infer, .run = unfold_run,
};

#define PICKS ORT_TRAIT_PICKS

const ort_op ort_ops_select[] = {
    {ONNX, "Trilu", 14, "input:T,k?:i64 -> output:T", "T:F,I,U,C,bf16,str,bool", "upper:i=1",
     ORT_TRAIT_INPLACE, &trilu_impl},
    {ONNX, "ReverseSequence", 10, "input:T,sequence_lens:i64 -> Y:T", "T:F,I,U,C,str,bool",
     "batch_axis:i=1 time_axis:i=0", PICKS, &reverse_impl, .history = "28:T+bf16"},
    {ONNX, "Compress", 9, "input:T,condition:T1 -> output:T", "T:F,I,U,C,str,bool T1:bool",
     "axis:i", PICKS | ORT_TRAIT_DYNAMIC, &compress_impl, .history = "11 28:T+bf16"},
    {ONNX, "Col2Im", 18, "input:T,image_shape:i64,block_shape:i64 -> output:T",
     "T:F,I,U,C,bf16,str,bool", "dilations:is pads:is strides:is", 0, &fold_impl},
    {MS, "Trilu", 1, "X:T,k?:i64 -> Y:T", "T:F,I,U,bf16,bool", "upper:i=1", ORT_TRAIT_INPLACE,
     &trilu_impl},
    {MS, "UnfoldTensor", 1, "input:T -> output:T", "T:F,I,U,C,bf16,str,bool",
     "dim:i=-1 size:i! step:i=1", PICKS, &unfold_impl},
    {0},
};
