/* shape.c - operators about shapes alone: Shape, Size, Reshape, Flatten, Squeeze, Unsqueeze.
 *
 * Invariant: none of them touches an element. The last four are aliases; run copies only when the
 * executor gave the output its own memory. Integer values of rank 0 and 1 pass through inference as
 * dims, so that a shape computed by the graph is known before anything runs.
 */
#include <string.h>

#include "base/checked.h"
#include "op/shared/move.h"

/* ---- Shape and Size */

typedef struct shape_state {
    int64_t start, end;
    bool has_end;
} shape_state;

static const ort_bind shape_bind[] = {
    ORT_BIND(shape_state, start, ORT_MAYBE), ORT_BIND(shape_state, end, ORT_MAYBE),
    ORT_BIND_HAS(shape_state, has_end, "end"), {0}};

/* The slice [*first, *last) of the axes that start and end select. */
static void shape_range(int64_t start, bool has_end, int64_t end, int rank, int *first, int *last)
{
    start = start < 0 ? start + rank : start;
    end = !has_end ? rank : end < 0 ? end + rank : end;
    start = ort_max_i64(0, ort_min_i64(start, rank));
    end = ort_max_i64(start, ort_min_i64(end, rank));
    *first = (int)start;
    *last = (int)end;
}

static ort_status shape_infer(ort_infer *x, ort_error *err)
{
    ort_dim count = ort_dim_unknown();
    int first = 0, last = 0;
    bool ranked = ort_infer_in_ranked(x, 0);
    if (ranked) {
        shape_range(ort_node_attr_int(x->node, "start"), ort_node_has(x->node, "end"),
                    ort_node_attr_int(x->node, "end"), x->in[0]->type.rank, &first, &last);
        count = ort_dim_of(last - first);
    }
    ort_infer_set_shape(x, 0, 1, &count);
    if (ranked)
        ort_infer_set_symbolic(x, 0, x->in[0]->type.dim + first, last - first);
    return ORT_OK;
}

static ort_status shape_run(ort_call *call, ort_error *err)
{
    const shape_state *state = call->state;
    const ort_tensor *in = ort_call_in(call, 0);
    int64_t *out = ort_call_out(call, 0)->data;
    int first, last;
    shape_range(state->start, state->has_end, state->end, in->shape.rank, &first, &last);
    for (int d = first; d < last; d++)
        *out++ = in->shape.dim[d];
    return ORT_OK;
}

static const ort_op_impl shape_impl = {
    .state = sizeof(shape_state), .bind = shape_bind, .infer = shape_infer, .run = shape_run,
};

static ort_status size_infer(ort_infer *x, ort_error *err)
{
    ort_infer_set_shape(x, 0, 0, NULL);
    if (ort_infer_in_ranked(x, 0)) {
        ort_dim count = ort_dim_of(1);
        for (int d = 0; d < x->in[0]->type.rank; d++)
            count = ort_dim_mul(x->dims, count, x->in[0]->type.dim[d]);
        if (count.expr != ORT_DIM_UNKNOWN)
            ort_infer_set_symbolic(x, 0, &count, 1);
    }
    return ORT_OK;
}

static ort_status size_run(ort_call *call, ort_error *err)
{
    *(int64_t *)ort_call_out(call, 0)->data = ort_tensor_count(ort_call_in(call, 0));
    return ORT_OK;
}

static const ort_op_impl size_impl = {.infer = size_infer, .run = size_run};

/* ---- aliases */

static ort_status alias_run(ort_call *call, ort_error *err)
{
    const ort_tensor *in = ort_call_in(call, 0);
    ort_tensor *out = ort_call_out(call, 0);
    if (out->data != in->data && ort_tensor_count(out) > 0)
        ort_tensor_copy_data(out, in);
    return ORT_OK;
}

/* Product of the input's dims over the product of `dims` (dim `hole` left out): common factors go
 * first, so that symbols cancel. copied: a bit per axis taken over from the input. */
static ort_status reshape_rest(ort_infer *x, const ort_dim *dims, int rank, int hole,
                               unsigned copied, ort_dim *out, ort_error *err)
{
    ort_dim over = ort_dim_of(1), under = ort_dim_of(1);
    const ort_type *in = &x->in[0]->type;
    bool used[ORT_MAX_RANK] = {false};
    for (int i = 0; i < in->rank && i < rank; i++) /* the same number, also where it is unknown */
        used[i] = copied >> i & 1 && !(ort_dim_known(dims[i]) && dims[i].size == 0);
    for (int i = 0; i < in->rank; i++) {
        int k = 0;
        if (copied >> i & 1 && used[i])
            continue;
        while (k < rank && (k == hole || used[k] || !ort_dim_equal(in->dim[i], dims[k]) ||
                            (ort_dim_known(dims[k]) && dims[k].size == 0)))
            k++;
        if (k < rank)
            used[k] = true;
        else
            over = ort_dim_mul(x->dims, over, in->dim[i]);
    }
    for (int k = 0; k < rank; k++)
        if (k != hole && !used[k])
            under = ort_dim_mul(x->dims, under, dims[k]);
    if (ort_dim_known(over) && ort_dim_known(under) &&
        (under.size == 0 || over.size % under.size != 0))
        return ort_infer_fail(x, err,
                              "the input can't be reshaped: %lld elements do not divide evenly "
                              "into the given dims (product %lld)",
                              (long long)over.size, (long long)under.size);
    *out = ort_dim_known(under) && under.size == 1 ? over : ort_dim_div(x->dims, over, under);
    return ORT_OK;
}

static ort_status reshape_check(ort_infer *x, const ort_dim *dims, int rank, ort_error *err)
{
    ort_dim before = ort_dim_of(1), after = ort_dim_of(1);
    const ort_type *in = &x->in[0]->type;
    for (int d = 0; d < in->rank; d++)
        if (!ort_dim_known(in->dim[d]))
            return ORT_OK;
        else
            before = ort_dim_mul(x->dims, before, in->dim[d]);
    for (int d = 0; d < rank; d++)
        if (!ort_dim_known(dims[d]))
            return ORT_OK;
        else
            after = ort_dim_mul(x->dims, after, dims[d]);
    if (ort_dim_known(before) && ort_dim_known(after) && before.size != after.size)
        return ort_infer_fail(x, err, "the input has %lld elements, the requested shape has %lld",
                              (long long)before.size, (long long)after.size);
    return ORT_OK;
}

static ort_status reshape_infer(ort_infer *x, ort_error *err)
{
    ort_dim dims[ORT_SYMBOLIC_MAX];
    bool zero = ort_node_attr_int(x->node, "allowzero") != 0, ranked = ort_infer_in_ranked(x, 0);
    int hole = -1, rank = ort_infer_elements(x, 1, dims), asked = ort_infer_int_count(x, 1);
    unsigned copied = 0;
    if (asked > ORT_MAX_RANK)
        return ort_infer_fail(x, err, "the requested shape has %d dims; at most %d are supported",
                              asked, ORT_MAX_RANK);
    if (rank < 0)
        return ORT_OK;
    for (int d = 0; d < rank; d++) {
        if (!ort_dim_known(dims[d]))
            continue;
        if (dims[d].size == -1) {
            if (hole >= 0)
                return ort_infer_fail(x, err, "the requested shape has more than one -1");
            hole = d;
        } else if (dims[d].size < -1) {
            return ort_infer_fail(x, err, "the requested dim %d is %lld; -1, 0 or a size is needed",
                                  d, (long long)dims[d].size);
        } else if (dims[d].size == 0 && !zero) {
            if (ranked && d >= x->in[0]->type.rank)
                return ort_infer_fail(x, err, "the requested dim %d is 0 (copy), but the input has "
                                      "rank %d", d, x->in[0]->type.rank);
            dims[d] = ranked ? x->in[0]->type.dim[d] : ort_dim_unknown();
            copied |= 1u << d;
        }
    }
    if (hole >= 0) {
        dims[hole] = ort_dim_unknown();
        if (ranked)
            ORT_TRY(reshape_rest(x, dims, rank, hole, copied, &dims[hole], err));
    } else if (ranked) {
        ORT_TRY(reshape_check(x, dims, rank, err));
    }
    ort_infer_set_shape(x, 0, rank, dims);
    ort_infer_pass_symbolic(x, 0, 0);
    return ORT_OK;
}

static const ort_op_impl reshape_impl = {.rule = "- [_]", .infer = reshape_infer, .run = alias_run};

static ort_status flatten_infer(ort_infer *x, ort_error *err)
{
    ort_dim dims[2] = {ort_dim_unknown(), ort_dim_unknown()};
    if (ort_infer_in_ranked(x, 0)) {
        const ort_type *in = &x->in[0]->type;
        int64_t given = ort_node_attr_int(x->node, "axis");
        int64_t axis = given < 0 ? given + in->rank : given;
        if (axis < 0 || axis > in->rank)
            return ort_infer_fail(x, err, "axis %lld is outside [-%d, %d]",
                                  (long long)given, in->rank, in->rank);
        dims[0] = dims[1] = ort_dim_of(1);
        for (int d = 0; d < in->rank; d++)
            dims[d >= axis] = ort_dim_mul(x->dims, dims[d >= axis], in->dim[d]);
    }
    ort_infer_set_shape(x, 0, 2, dims);
    return ORT_OK;
}

static const ort_op_impl flatten_impl = {.infer = flatten_infer, .run = alias_run};

/* A bit per axis of `rank` that `axes` names.
 */
static ort_status axes_mask(ort_infer *x, const int64_t *axes, int count, int rank, unsigned *mask,
                            ort_error *err)
{
    *mask = 0;
    for (int i = 0; i < count; i++) {
        int axis;
        ORT_TRY(ort_infer_axis(x, axes[i], rank, &axis, err));
        *mask |= 1u << axis;
    }
    return ORT_OK;
}

/* Number of axes, -1 when they are not known, -2 when none are given. */
static int axes_read(const ort_infer *x, int64_t *axes)
{
    size_t count = 0;
    const int64_t *given = ort_node_ints(x->node, "axes", &count);
    int n;
    if (ort_infer_in(x, 1)) {
        if (ort_infer_ints(x, 1, axes, ORT_MAX_RANK, &n))
            return n;
        return -1;
    }
    if (!given)
        return x->in_count > 1 && x->node->input_count > 1 &&
                       x->node->inputs[1] != ORT_ID_NONE ? -1 : -2;
    n = count > ORT_MAX_RANK ? ORT_MAX_RANK : (int)count;
    memcpy(axes, given, (size_t)n * sizeof *axes);
    return n;
}

static ort_status squeeze_infer(ort_infer *x, ort_error *err)
{
    int64_t axes[ORT_MAX_RANK];
    ort_dim dims[ORT_MAX_RANK];
    int count = axes_read(x, axes), rank = 0;
    unsigned mask = 0;
    if (!ort_infer_in_ranked(x, 0) || count == -1)
        return ORT_OK;
    const ort_type *in = &x->in[0]->type;
    if (count == -2) {
        for (int d = 0; d < in->rank; d++) {
            if (!ort_dim_known(in->dim[d]))
                return ORT_OK;
            mask |= (unsigned)(in->dim[d].size == 1) << d;
        }
    } else {
        ORT_TRY(axes_mask(x, axes, count, in->rank, &mask, err));
    }
    for (int d = 0; d < in->rank; d++) {
        if (!(mask >> d & 1u))
            dims[rank++] = in->dim[d];
        else if (ort_dim_known(in->dim[d]) && in->dim[d].size != 1)
            return ort_infer_fail(x, err, "axis %d has %lld elements; only an axis of 1 can be "
                                  "squeezed", d, (long long)in->dim[d].size);
    }
    ort_infer_set_shape(x, 0, rank, dims);
    ort_infer_pass_symbolic(x, 0, 0);
    return ORT_OK;
}

static const ort_op_impl squeeze_impl = {.infer = squeeze_infer, .run = alias_run};

static ort_status unsqueeze_infer(ort_infer *x, ort_error *err)
{
    int64_t axes[ORT_MAX_RANK];
    ort_dim dims[ORT_MAX_RANK];
    int count = axes_read(x, axes), from = 0;
    unsigned mask = 0;
    const ort_attr *none = ort_node_attr(x->node, "axes");
    if (none && none->type == ORT_ATTR_INTS && none->count == 0)
        count = 0; /* an empty list */
    if (count < 0 && x->op->since >= 13 && ort_infer_int_count(x, 1) > ORT_MAX_RANK)
        return ort_infer_fail(x, err, "%d axes; at most %d are supported",
                              ort_infer_int_count(x, 1), ORT_MAX_RANK);
    if (!ort_infer_in_ranked(x, 0) || count < 0)
        return ORT_OK;
    const ort_type *in = &x->in[0]->type;
    int rank = in->rank + count;
    if (rank > ORT_MAX_RANK)
        return ort_infer_fail(x, err, "the output would have rank %d; at most %d are supported",
                              rank, ORT_MAX_RANK);
    ORT_TRY(axes_mask(x, axes, count, rank, &mask, err));
    if (__builtin_popcount(mask) != count)
        return ort_infer_fail(x, err, "an axis occurs twice in axes");
    for (int d = 0; d < rank; d++)
        dims[d] = mask >> d & 1u ? ort_dim_of(1) : in->dim[from++];
    ort_infer_set_shape(x, 0, rank, dims);
    ort_infer_pass_symbolic(x, 0, 0);
    return ORT_OK;
}

/* com.microsoft ExpandDims: as Unsqueeze, one axis; the rank is known without it. */
static ort_status expand_dims_infer(ort_infer *x, ort_error *err)
{
    int64_t axes[ORT_MAX_RANK];
    ort_dim dims[ORT_MAX_RANK];
    if (axes_read(x, axes) >= 0)
        return unsqueeze_infer(x, err);
    if (!ort_infer_in_ranked(x, 0) || x->in[0]->type.rank >= ORT_MAX_RANK)
        return ORT_OK;
    for (int d = 0; d <= x->in[0]->type.rank; d++)
        dims[d] = ort_dim_unknown();
    ort_infer_set_shape(x, 0, x->in[0]->type.rank + 1, dims);
    return ORT_OK;
}

static const ort_op_impl unsqueeze_impl = {.infer = unsqueeze_infer, .run = alias_run};
static const ort_op_impl expand_dims_impl = {.infer = expand_dims_infer, .run = alias_run};

const ort_op ort_ops_shape[] = {
    {ONNX, "Shape", 1, "data:T -> shape:T1", "T:F,I,U,C,str,bool T1:i64", "",
     ORT_TRAIT_SHAPE_ONLY, &shape_impl,
     .history = "13:T+bf16 15:+end:i +start:i=0 19:T+F8 21:T+Q4 23:T+f4e2m1 24:T+f8e8m0 25:T+Q2"},
    {ONNX, "Size", 1, "data:T -> size:T1", "T:F,I,U,C,str,bool T1:i64", "",
     ORT_TRAIT_SHAPE_ONLY, &size_impl,
     .history = "13:T+bf16 19:T+F8 21:T+Q4 23:T+f4e2m1 24:T+f8e8m0 25:T+Q2"},
    {ONNX, "Reshape", 5, "data:T,shape:i64 -> reshaped:T", "T:F,I,U,C,str,bool", "",
     ORT_TRAIT_ALIAS, &reshape_impl,
     .history = "13:T+bf16 14:+allowzero:i=0 19:T+F8 21:T+Q4 23:T+f4e2m1 24:T+f8e8m0 25:T+Q2"},
    {ONNX, "Flatten", 1, "input:T -> output:T", "T:F", "axis:i=1", ORT_TRAIT_ALIAS, &flatten_impl,
     .history = "9:T+I,U,C,str,bool 11 13:T+bf16 21:T+F8,Q4 23:T+f4e2m1 24:T+f8e8m0 25:T+Q2"},
    {ONNX, "Squeeze", 1, "data:T -> squeezed:T", "T:F,I,U,C,str,bool", "axes:is",
     ORT_TRAIT_ALIAS, &squeeze_impl, .history = "11"},
    {ONNX, "Squeeze", 13, "data:T,axes?:i64 -> squeezed:T", "T:F,I,U,C,bf16,str,bool", "",
     ORT_TRAIT_ALIAS, &squeeze_impl, .history = "21:T+F8,Q4 23:T+f4e2m1 24:T+f8e8m0 25:T+Q2"},
    {ONNX, "Unsqueeze", 1, "data:T -> expanded:T", "T:F,I,U,C,str,bool", "axes:is!",
     ORT_TRAIT_ALIAS, &unsqueeze_impl, .history = "11"},
    {ONNX, "Unsqueeze", 13, "data:T,axes:i64 -> expanded:T", "T:F,I,U,C,bf16,str,bool", "",
     ORT_TRAIT_ALIAS, &unsqueeze_impl, .history = "21:T+F8,Q4 23:T+f4e2m1 24:T+f8e8m0 25:T+Q2"},
    {MS, "ExpandDims", 1, "X:T,axis:i32 -> Y:T", "T:F,I,U,C,bf16,str,bool", "", ORT_TRAIT_ALIAS,
     &expand_dims_impl},
    {0},
};
