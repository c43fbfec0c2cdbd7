/* slice.c - operators that select or extend a window: Slice, Pad, CenterCropPad.
 *
 * Invariant: what inference computed and what run computes come from the same functions over the
 * same numbers; run compares the two and fails rather than write past an output. Symbolic starts
 * and ends are taken to lie inside the axis (they are lengths in practice); concrete ones are
 * clamped exactly.
 */
#include <string.h>

#include "base/checked.h"
#include "op/shared/move.h"

/* ---- Slice */

/* numpy's normalized start and length for a known axis. */
static int64_t slice_length(int64_t n, int64_t *start, int64_t end, int64_t step)
{
    int64_t s = *start < 0 ? *start + n : *start, e = end < 0 ? end + n : end, length;
    if (step > 0) {
        s = ort_min_i64(ort_max_i64(s, 0), n);
        e = ort_min_i64(ort_max_i64(e, 0), n);
        length = e > s ? (e - s - 1) / step + 1 : 0;
    } else {
        s = ort_min_i64(ort_max_i64(s, 0), n - 1);
        e = ort_min_i64(ort_max_i64(e, -1), n - 1);
        /* -(step + 1) cannot overflow where -step can */
        length = s > e ? (int64_t)((uint64_t)(s - e - 1) / ((uint64_t)(-(step + 1)) + 1)) + 1 : 0;
    }
    *start = s;
    return length;
}

/* An end of the window as a dim in [0, n] of a symbolic n. */
static ort_dim slice_bound(ort_infer *x, ort_dim n, ort_dim at)
{
    if (!ort_dim_known(at))
        return at;
    if (at.size >= INT32_MAX)
        return n;
    if (at.size == 0)
        return at;
    if (at.size > 0)
        return ort_dim_min(x->dims, n, at);
    if (at.size <= INT32_MIN)
        return ort_dim_of(0);
    return ort_dim_max(x->dims, ort_dim_add(x->dims, n, at), ort_dim_of(0));
}

static ort_dim slice_dim(ort_infer *x, ort_dim n, ort_dim start, ort_dim end, ort_dim step)
{
    ort_dim length;
    if (!ort_dim_known(step))
        return ort_dim_unknown();
    if (ort_dim_known(n) && ort_dim_known(start) && ort_dim_known(end)) {
        int64_t s = start.size;
        return ort_dim_of(slice_length(n.size, &s, end.size, step.size));
    }
    if (step.size < 0) {
        bool whole = step.size == -1 && ort_dim_known(start) && ort_dim_known(end) &&
                     (start.size == -1 || start.size >= INT32_MAX) && end.size <= INT32_MIN;
        return whole ? n : ort_dim_unknown();
    }
    bool to_end = ort_dim_equal(end, n) || (ort_dim_known(end) && end.size >= INT32_MAX);
    if (to_end && ort_dim_known(start) && start.size > 0) {
        length = ort_dim_max(x->dims, ort_dim_sub(x->dims, n, start), ort_dim_of(0));
    } else if (to_end && ort_dim_known(start) && start.size < 0 && start.size > INT32_MIN) {
        length = ort_dim_min(x->dims, n, ort_dim_of(-start.size));
    } else {
        ort_dim s = slice_bound(x, n, start), e = slice_bound(x, n, end);
        length = ort_dim_sub(x->dims, e, s);
        if (ort_dim_known(start) && start.size != 0 && ort_dim_known(end))
            length = ort_dim_max(x->dims, length, ort_dim_of(0));
        if (ort_dim_known(length) && length.size < 0)
            length = ort_dim_of(0);
    }
    return step.size == 1 ? length : ort_dim_ceil_div(x->dims, length, step);
}

/* starts, ends, axes or steps: element `i` from the attribute or the input. */
static ort_dim slice_param(const ort_infer *x, const int64_t *attr, int input, int i)
{
    ort_dim d;
    if (attr)
        return ort_dim_of(attr[i]);
    return ort_infer_int(x, input, i, &d) ? d : ort_dim_unknown();
}

/* Slice named its window in attributes until opset 9; DynamicSlice, experimental then, did not. */
enum { BY_INPUTS, BY_ATTRIBUTES };

static bool node_has_input(const ort_node *node, int index)
{
    return index < node->input_count && node->inputs[index] != ORT_ID_NONE;
}

/* Elements of a sliced one-dimensional integer value. */
static void slice_value(ort_infer *x, ort_dim start, ort_dim end, ort_dim step)
{
    ort_dim value[ORT_SYMBOLIC_MAX], part[ORT_SYMBOLIC_MAX];
    int have = ort_infer_elements(x, 0, value);
    if (have < 0 || !ort_dim_known(start) || !ort_dim_known(end) || !ort_dim_known(step))
        return;
    int64_t s = start.size, n = slice_length(have, &s, end.size, step.size);
    for (int64_t i = 0; i < n; i++)
        part[i] = value[s + i * step.size];
    if (ort_infer_any_known(part, (int)n))
        ort_infer_set_symbolic(x, 0, part, (int)n);
}

static ort_status slice_infer(ort_infer *x, ort_error *err)
{
    size_t starts_n = 0, ends_n = 0, axes_n = 0;
    const int64_t *starts = NULL, *ends = NULL, *axes = NULL;
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    ort_type type = x->in[0]->type;
    int count;
    if (x->op->variant == BY_ATTRIBUTES) {
        starts = ort_node_ints(x->node, "starts", &starts_n);
        ends = ort_node_ints(x->node, "ends", &ends_n);
        axes = ort_node_ints(x->node, "axes", &axes_n);
        if (!starts || !ends || starts_n != ends_n || (axes && axes_n != starts_n))
            return ort_infer_fail(x, err, "starts, ends and axes differ in length");
        count = (int)starts_n;
    } else {
        int ends_count = ort_infer_int_count(x, 2);
        count = ort_infer_int_count(x, 1);
        if (count >= 0 && ends_count >= 0 && count != ends_count)
            return ort_infer_fail(x, err, "starts has %d numbers, ends %d", count, ends_count);
        if (count < 0)
            count = ends_count;
        for (int i = 3; i < 5; i++) {
            int listed = ort_infer_in(x, i) ? ort_infer_int_count(x, i) : -1;
            if (count >= 0 && listed >= 0 && listed != count)
                return ort_infer_fail(x, err, "%s has %d numbers, starts and ends have %d",
                                      i == 3 ? "axes" : "steps", listed, count);
        }
    }
    bool any_axis = count < 0;
    unsigned seen = 0;
    for (int i = 0; i < count && !any_axis; i++) {
        ort_dim axis = axes || node_has_input(x->node, 3) ? slice_param(x, axes, 3, i)
                                                         : ort_dim_of(i);
        ort_dim step = node_has_input(x->node, 4) ? slice_param(x, NULL, 4, i) : ort_dim_of(1);
        ort_dim start = slice_param(x, starts, 1, i), end = slice_param(x, ends, 2, i);
        int d;
        if (!ort_dim_known(axis)) {
            any_axis = true;
            break;
        }
        ORT_TRY(ort_infer_axis(x, axis.size, type.rank, &d, err));
        if (seen >> d & 1u)
            return ort_infer_fail(x, err, "axis %d occurs twice in axes", d);
        seen |= 1u << d;
        if (ort_dim_known(step) && step.size == 0)
            return ort_infer_fail(x, err, "steps[%d] is 0", i);
        type.dim[d] = slice_dim(x, x->in[0]->type.dim[d], start, end, step);
        if (type.rank == 1 && count == 1) {
            ort_infer_set_shape(x, 0, 1, type.dim);
            slice_value(x, start, end, step);
            return ORT_OK;
        }
    }
    for (int d = 0; any_axis && d < type.rank; d++)
        type.dim[d] = ort_dim_unknown();
    ort_infer_set_shape(x, 0, type.rank, type.dim);
    if (count == 0)
        ort_infer_pass_symbolic(x, 0, 0);
    return ORT_OK;
}

typedef struct slice_state { /* opset 1: attributes; none otherwise */
    ort_ints starts, ends, axes;
} slice_state;

static const ort_bind slice_bind[] = {
    ORT_BIND(slice_state, starts, ORT_MAYBE), ORT_BIND(slice_state, ends, ORT_MAYBE),
    ORT_BIND(slice_state, axes, ORT_MAYBE), {0}};

static int64_t param_at(const ort_ints *attr, const ort_tensor *input, int i, int64_t fallback)
{
    if (attr && attr->ptr)
        return attr->ptr[i];
    return input && i < ort_tensor_count(input) ? ort_tensor_get_i64(input, i) : fallback;
}

static ort_status slice_run(ort_call *call, ort_error *err)
{
    const slice_state *state = call->state;
    const ort_tensor *in = ort_call_in(call, 0), *starts = ort_call_in(call, 1);
    const ort_tensor *ends = ort_call_in(call, 2), *axes = ort_call_in(call, 3);
    const ort_tensor *steps = ort_call_in(call, 4);
    ort_tensor *out = ort_call_out(call, 0);
    ort_move move = ort_move_between(in, out);
    int64_t from[ORT_MAX_RANK], to[ORT_MAX_RANK], length[ORT_MAX_RANK];
    int rank = in->shape.rank;
    int count = (int)(starts ? ort_tensor_count(starts) : (int64_t)state->starts.count);
    ort_shape_strides(&in->shape, from);
    ort_shape_strides(&out->shape, to);
    memcpy(length, in->shape.dim, sizeof length);
    for (int i = 0; i < count; i++) {
        int64_t axis = param_at(&state->axes, axes, i, i), step = param_at(NULL, steps, i, 1);
        int64_t start = param_at(&state->starts, starts, i, 0);
        axis = axis < 0 ? axis + rank : axis;
        if (axis < 0 || axis >= rank || step == 0)
            return ort_call_fail(call, err, "axis %lld with step %lld is no slice of rank %d",
                                 (long long)axis, (long long)step, rank);
        length[axis] = slice_length(in->shape.dim[axis], &start,
                                    param_at(&state->ends, ends, i, 0), step);
        if (length[axis] > 0)
            move.src_offset += start * from[axis];
        from[axis] = length[axis] > 1 ? from[axis] * step : from[axis];
    }
    for (int d = 0; d < rank; d++) {
        if (length[d] != out->shape.dim[d])
            return ort_call_fail(call, err, "axis %d of the slice has %lld elements, %lld were "
                                 "planned", d, (long long)length[d], (long long)out->shape.dim[d]);
        ort_move_add(&move, length[d], from[d], to[d]);
    }
    if (ort_tensor_count(out) > 0)
        ort_move_run(&move, call->pool);
    return ORT_OK;
}

static const ort_op_impl slice_impl = {
    .state = sizeof(slice_state), .bind = slice_bind, .infer = slice_infer, .run = slice_run,
};

/* ---- Pad */

enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };

#define PAD_LIMIT ((int64_t)1 << 40) /* sums of pads and dims stay far from overflow */

typedef struct pad_state {
    enum pad_mode mode;
    ort_ints pads;   /* opset 2 */
    float value;
    int64_t fill[2]; /* one element of it */
} pad_state;

static const ort_bind pad_bind[] = {
    ORT_BIND(pad_state, mode, ORT_WORDS("constant reflect edge wrap")),
    ORT_BIND(pad_state, pads, ORT_MAYBE), ORT_BIND(pad_state, value, ORT_MAYBE), {0}};

static ort_status pad_infer(ort_infer *x, ort_error *err)
{
    size_t attr_n = 0;
    const int64_t *attr = ort_node_ints(x->node, "pads", &attr_n); /* opset 2 */
    bool has_axes = node_has_input(x->node, 3), any = false;
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    ort_type type = x->in[0]->type;
    int pads_n = attr ? (int)attr_n : ort_infer_int_count(x, 1);
    int axes_n = has_axes ? ort_infer_int_count(x, 3) : type.rank;
    if (pads_n >= 0 && axes_n >= 0 && pads_n != 2 * axes_n)
        return ort_infer_fail(x, err, "pads has %d elements, %d are needed (2 per axis)", pads_n,
                              2 * axes_n);
    axes_n = pads_n >= 0 ? pads_n / 2 : axes_n;
    for (int i = 0; i < axes_n && !any; i++) {
        ort_dim axis = has_axes ? slice_param(x, NULL, 3, i) : ort_dim_of(i);
        ort_dim before = slice_param(x, attr, 1, i), after = slice_param(x, attr, 1, i + axes_n);
        int d;
        if (!ort_dim_known(axis)) {
            any = true;
            break;
        }
        ORT_TRY(ort_infer_axis(x, axis.size, type.rank, &d, err));
        type.dim[d] = ort_dim_add(x->dims, type.dim[d], ort_dim_add(x->dims, before, after));
        if (ort_dim_known(type.dim[d]) && type.dim[d].size < 0)
            return ort_infer_fail(x, err, "the pads of axis %d take more than the axis has", d);
    }
    for (int d = 0; (any || axes_n < 0) && d < type.rank; d++)
        type.dim[d] = ort_dim_unknown();
    ort_infer_set_shape(x, 0, type.rank, type.dim);
    return ORT_OK;
}

static ort_status pad_prepare(ort_prep *p, ort_error *err)
{
    pad_state *state = p->state;
    ort_tensor one = {.dtype = ort_prep_dtype(p, 0), .shape = {1, {1}}, .data = state->fill};
    if (state->pads.ptr)
        ort_tensor_set_f64(&one, 0, (double)state->value);
    return ORT_OK;
}

/* Room for an index map of every axis. */
static ort_status map_shape(ort_shaping *s, ort_error *err)
{
    const ort_shape *shape = &s->out[0]->shape;
    for (int d = 0; d < shape->rank; d++)
        s->workspace_bytes += (size_t)shape->dim[d] * sizeof(int64_t);
    return ORT_OK;
}

/* Source index of position `i` (0 is the first kept element) in an axis of n kept elements. */
static int64_t pad_index(enum pad_mode mode, int64_t i, int64_t n)
{
    if (i >= 0 && i < n)
        return i;
    switch (mode) {
    case PAD_EDGE:
        return i < 0 ? 0 : n - 1;
    case PAD_WRAP:
        return (i % n + n) % n;
    case PAD_REFLECT: {
        int64_t period = 2 * (n - 1), k;
        if (period == 0)
            return 0;
        if (i > -n && i < 2 * n - 1) /* reflected once: no division */
            return i < 0 ? -i : period - i;
        k = (i % period + period) % period;
        return k < n ? k : period - k;
    }
    default:
        return -1;
    }
}

/* Negative pads crop first; the rest is laid around what remains. */
static ort_status pad_axis(ort_call *call, enum pad_mode mode, int axis, int64_t before,
                           int64_t after, int64_t *map, ort_error *err)
{
    int64_t n = ort_call_in(call, 0)->shape.dim[axis], total = n + before + after;
    int64_t first = before < 0 ? -before : 0, kept = n - first - (after < 0 ? -after : 0);
    int64_t lead = before > 0 ? before : 0;
    if (total != ort_call_out(call, 0)->shape.dim[axis])
        return ort_call_fail(call, err, "axis %d becomes %lld elements, %lld were planned", axis,
                             (long long)total, (long long)ort_call_out(call, 0)->shape.dim[axis]);
    if (kept <= 0 && mode != PAD_CONSTANT && total > 0)
        return ort_call_fail(call, err, "axis %d is empty and has nothing to pad with", axis);
    const int64_t inside = ort_min_i64(lead, total), end = ort_min_i64(lead + kept, total);
    for (int64_t i = 0; i < total; i = i == inside && inside < end ? end : i + 1) {
        int64_t at = pad_index(mode, i - lead, kept);
        map[i] = at < 0 ? -1 : at + first;
    }
    for (int64_t i = inside; i < end; i++)
        map[i] = i - lead + first;
    return ORT_OK;
}

static ort_status pad_run(ort_call *call, ort_error *err)
{
    const pad_state *state = call->state;
    const ort_tensor *in = ort_call_in(call, 0), *pads = ort_call_in(call, 1);
    const ort_tensor *value = ort_call_in(call, 2), *axes = ort_call_in(call, 3);
    ort_tensor *out = ort_call_out(call, 0);
    ort_move_map map = {.fill = state->pads.ptr ? state->fill : value ? value->data : NULL};
    int rank = in->shape.rank, count = axes ? (int)ort_tensor_count(axes) : rank;
    int64_t *room = call->workspace;
    if (!state->pads.ptr && ort_tensor_count(pads) != 2 * (int64_t)count)
        return ort_call_fail(call, err, "pads has %lld elements, %d are needed",
                             (long long)ort_tensor_count(pads), 2 * count);
    if (value && ort_tensor_count(value) < 1)
        map.fill = NULL;
    if (ort_tensor_count(out) == 0)
        return ORT_OK;
    for (int i = 0; i < count; i++) {
        int64_t axis = param_at(NULL, axes, i, i);
        int64_t before = param_at(&state->pads, pads, i, 0);
        int64_t after = param_at(&state->pads, pads, i + count, 0);
        axis = axis < 0 ? axis + rank : axis;
        if (axis < 0 || axis >= rank)
            return ort_call_fail(call, err, "axes[%d] is outside rank %d", i, rank);
        if (before == 0 && after == 0)
            continue;
        if (map.axis[axis] || before > PAD_LIMIT || after > PAD_LIMIT || before < -PAD_LIMIT ||
            after < -PAD_LIMIT)
            return ort_call_fail(call, err, "pads %lld and %lld of axis %lld are out of range",
                                 (long long)before, (long long)after, (long long)axis);
        ORT_TRY(pad_axis(call, state->mode, (int)axis, before, after, room, err));
        map.axis[axis] = room;
        room += out->shape.dim[axis];
    }
    ort_move_mapped(in, out, &map, call->pool);
    return ORT_OK;
}

static const ort_op_impl pad_impl = {
    .state = sizeof(pad_state), .bind = pad_bind,
    .infer = pad_infer, .prepare = pad_prepare, .shape = map_shape, .run = pad_run,
};

/* ---- CenterCropPad */

static ort_status center_infer(ort_infer *x, ort_error *err)
{
    ort_dim want[ORT_SYMBOLIC_MAX];
    size_t axes_n = 0;
    const int64_t *axes = ort_node_ints(x->node, "axes", &axes_n);
    int count = ort_infer_elements(x, 1, want);
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    ort_type type = x->in[0]->type;
    int need = axes ? (int)axes_n : type.rank, listed = ort_infer_int_count(x, 1);
    if (listed >= 0 && listed != need)
        return ort_infer_fail(x, err, "shape has %d elements, %d axes are named", listed, need);
    for (int i = 0; i < need; i++) {
        int d = i;
        if (axes)
            ORT_TRY(ort_infer_axis(x, axes[i], type.rank, &d, err));
        else if (d >= type.rank)
            break;
        type.dim[d] = count < 0 ? ort_dim_unknown() : want[i];
        if (ort_dim_known(type.dim[d]) && type.dim[d].size < 0)
            return ort_infer_fail(x, err, "shape[%d] is negative", i);
    }
    ort_infer_set_shape(x, 0, type.rank, type.dim);
    return ORT_OK;
}

static ort_status center_run(ort_call *call, ort_error *err)
{
    const ort_tensor *in = ort_call_in(call, 0);
    ort_tensor *out = ort_call_out(call, 0);
    int64_t *room = call->workspace;
    ort_move_map map = {.fill = NULL};
    for (int d = 0; d < in->shape.rank; d++) {
        int64_t n = in->shape.dim[d], m = out->shape.dim[d];
        int64_t shift = m <= n ? (n - m) / 2 : -((m - n) / 2);
        if (n == m)
            continue;
        for (int64_t i = 0; i < m; i++)
            room[i] = i + shift >= 0 && i + shift < n ? i + shift : -1;
        map.axis[d] = room;
        room += m;
    }
    ort_move_mapped(in, out, &map, call->pool);
    return ORT_OK;
}

static const ort_op_impl center_impl = {
    .infer = center_infer, .shape = map_shape, .run = center_run,
};

#define PICKS ORT_TRAIT_PICKS

const ort_op ort_ops_slice[] = {
    {ONNX, "Slice", 1, "data:T -> output:T", "T:F,I,U,C,str,bool", "axes:is ends:is! starts:is!",
     PICKS, &slice_impl, .variant = BY_ATTRIBUTES},
    {ONNX, "Slice", 10, "data:T,starts:Tind,ends:Tind,axes?:Tind,steps?:Tind -> output:T",
     "T:F,I,U,C,str,bool Tind:i32,i64", "", PICKS, &slice_impl, .history = "11 13:T+bf16"},
    {ONNX, "Pad", 2, "data:T -> output:T", "T:F", "mode:s=constant pads:is! value:f=0",
     0, &pad_impl},
    {ONNX, "Pad", 11, "data:T,pads:i64,constant_value?:T -> output:T", "T:F,I,U",
     "mode:s=constant", 0, &pad_impl, .history = "13:T+C,bf16,str,bool"},
    {ONNX, "Pad", 18, "data:T,pads:i64,constant_value?:T,axes?:Tind -> output:T",
     "T:F,I,U,C,bf16,str,bool Tind:i32,i64", "mode:s=constant", 0, &pad_impl,
     .history = "19 21:T+F8,Q4 23:T+f4e2m1 24:T+f8e8m0 25:T+Q2"},
    {ONNX, "CenterCropPad", 18, "input_data:T,shape:Tind -> output_data:T",
     "T:F,I,U,C,bf16,str,bool Tind:i32,i64", "axes:is", 0, &center_impl},
    {ONNX, "DynamicSlice", 1, "data:T,starts:Tind,ends:Tind,axes?:Tind -> output:T",
     "T:F,I,U,C,str,bool Tind:i32,i64", "", PICKS | ORT_TRAIT_EXTENSION | ORT_TRAIT_TRIAL,
     &slice_impl},
    {MS, "Pad", 1, "data:T,pads:i64,value?:T -> output:T", "T:F", "mode:s=constant", 0, &pad_impl},
    {0},
};
