/* legacy.c - operators that ai.onnx had on trial until opset 9 and never released: Crop,
 * ConstantFill, GivenTensorFill. Others of that time lie with their families (Affine, Scale,
 * ScaledTanh, ParametricSoftplus; ImageScaler; DynamicSlice).
 *
 * They are defined by onnx/defs/experiments/defs.cc of onnx 1.2, and Crop, whose offsets that
 * leaves open, by onnxruntime's kernel: with a scale the window begins at the left and upper border
 * and has that size, the other two borders only have to fit.
 */
#include <string.h>

#include "base/checked.h"
#include "op/shared/move.h"

/* ---- Crop: [N, C, H, W] to a window of H and W */

typedef struct crop_window {
    int64_t left, top, right, bottom; /* borders */
    bool sized;
    int64_t height, width; /* when sized */
} crop_window;

/* NULL, or what is wrong with the attributes. */
static const char *crop_read(const ort_node *node, crop_window *w)
{
    size_t borders, sizes;
    const int64_t *border = ort_node_ints(node, "border", &borders);
    const int64_t *scale = ort_node_ints(node, "scale", &sizes);
    if (!border || borders != 4)
        return "attribute border needs 4 numbers: left, top, right, bottom";
    for (size_t i = 0; i < borders; i++)
        if (border[i] < 0 || border[i] > INT32_MAX)
            return "attribute border has a number out of range";
    *w = (crop_window){border[0], border[1], border[2], border[3], sizes > 0, 0, 0};
    if (w->sized && (sizes != 2 || scale[0] < 0 || scale[1] < 0 || scale[0] > INT32_MAX ||
                     scale[1] > INT32_MAX))
        return "attribute scale needs 2 numbers: height, width";
    if (w->sized) {
        w->height = scale[0];
        w->width = scale[1];
    }
    return NULL;
}

/* What is left of one axis; false when the window doesn't fit. */
static bool crop_dim(ort_infer *x, ort_dim *dim, int64_t before, int64_t after, bool sized,
                     int64_t size)
{
    int64_t need = before + (sized && size > after ? size : after);
    if (ort_dim_known(*dim) && dim->size < need)
        return false;
    *dim = sized ? ort_dim_of(size) : ort_dim_sub(x->dims, *dim, ort_dim_of(before + after));
    return true;
}

static ort_status crop_infer(ort_infer *x, ort_error *err)
{
    crop_window w;
    const char *wrong = crop_read(x->node, &w);
    if (wrong)
        return ort_infer_fail(x, err, "%s", wrong);
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    ort_type type = x->in[0]->type;
    if (!crop_dim(x, &type.dim[2], w.top, w.bottom, w.sized, w.height) ||
        !crop_dim(x, &type.dim[3], w.left, w.right, w.sized, w.width))
        return ort_infer_fail(x, err, "the window is larger than the image");
    ort_infer_set_shape(x, 0, 4, type.dim);
    return ORT_OK;
}

static ort_status crop_prepare(ort_prep *p, ort_error *err)
{
    const char *wrong = crop_read(p->node, p->state);
    return wrong ? ort_prep_fail(p, err, "%s", wrong) : ORT_OK;
}

static ort_status crop_run(ort_call *call, ort_error *err)
{
    const crop_window *w = call->state;
    const ort_tensor *in = ort_call_in(call, 0);
    ort_tensor *out = ort_call_out(call, 0);
    ort_move move = ort_move_between(in, out);
    int64_t from[ORT_MAX_RANK], to[ORT_MAX_RANK];
    if (in->shape.dim[2] < w->top + out->shape.dim[2] ||
        in->shape.dim[3] < w->left + out->shape.dim[3])
        return ort_call_fail(call, err, "the window is larger than the image");
    ort_shape_strides(&in->shape, from);
    ort_shape_strides(&out->shape, to);
    move.src_offset = w->top * from[2] + w->left * from[3];
    for (int d = 0; d < 4; d++)
        ort_move_add(&move, out->shape.dim[d], from[d], to[d]);
    if (ort_tensor_count(out) > 0)
        ort_move_run(&move, call->pool);
    return ORT_OK;
}

static const ort_op_impl crop_impl = {
    .state = sizeof(crop_window),
    .rule = "[_,_,_,_]", .infer = crop_infer, .prepare = crop_prepare, .run = crop_run};

/* ---- ConstantFill, GivenTensorFill: of a shape that an attribute, an input or an input's shape
 * says */

static ort_status add_dims(ort_infer *x, const char *attr, ort_dim *dims, int *rank,
                           ort_error *err)
{
    size_t count;
    const int64_t *more = ort_node_ints(x->node, attr, &count);
    if (count > (size_t)(ORT_MAX_RANK - *rank))
        return ort_infer_fail(x, err, "the shape has %d dims; at most %d are supported",
                              *rank + (int)count, ORT_MAX_RANK);
    for (size_t i = 0; i < count; i++)
        dims[(*rank)++] = ort_dim_of(more[i]);
    return ORT_OK;
}

/* The dims that input 0 says; -1 when they aren't known. */
static ort_status dims_of_input(ort_infer *x, ort_dim *dims, int *rank, ort_error *err)
{
    *rank = -1;
    if (ort_node_attr_int(x->node, "input_as_shape")) {
        ort_dim elements[ORT_SYMBOLIC_MAX];
        int count = ort_infer_elements(x, 0, elements);
        if (count > ORT_MAX_RANK)
            return ort_infer_fail(x, err, "the shape has %d dims; at most %d are supported", count,
                                  ORT_MAX_RANK);
        for (int i = 0; i < count; i++)
            dims[i] = elements[i];
        *rank = count;
    } else if (ort_infer_in_ranked(x, 0)) {
        *rank = x->in[0]->type.rank;
        memcpy(dims, x->in[0]->type.dim, (size_t)*rank * sizeof *dims);
    }
    return ORT_OK;
}

static ort_status fill_shape_infer(ort_infer *x, ort_dtype dtype, ort_error *err)
{
    ort_dim dims[ORT_MAX_RANK];
    int rank = 0;
    ort_infer_set_dtype(x, 0, dtype);
    if (ort_node_has(x->node, "shape")) {
        ORT_TRY(add_dims(x, "shape", dims, &rank, err));
    } else if (ort_infer_in(x, 0)) {
        ORT_TRY(dims_of_input(x, dims, &rank, err));
        if (rank < 0)
            return ORT_OK;
        ORT_TRY(add_dims(x, "extra_shape", dims, &rank, err));
    }
    for (int d = 0; d < rank; d++)
        if (ort_dim_known(dims[d]) && dims[d].size < 0)
            return ort_infer_fail(x, err, "dim %d of the shape is %lld", d,
                                  (long long)dims[d].size);
    ort_infer_set_type(x, 0, dtype, rank, dims);
    return ORT_OK;
}

static ort_status constant_fill_infer(ort_infer *x, ort_error *err)
{
    int64_t dtype = ort_node_attr_int(x->node, "dtype");
    if (dtype != ORT_DTYPE_FLOAT && dtype != ORT_DTYPE_INT32 && dtype != ORT_DTYPE_INT64 &&
        dtype != ORT_DTYPE_BOOL)
        return ort_infer_fail(x, err, "dtype is %lld; float, int32, int64 or bool is needed",
                              (long long)dtype);
    return fill_shape_infer(x, (ort_dtype)dtype, err);
}

static ort_status given_fill_infer(ort_infer *x, ort_error *err)
{
    ort_dtype dtype = ort_infer_in(x, 0) ? ort_infer_dtype(x, 0) : ORT_DTYPE_FLOAT;
    return fill_shape_infer(x, dtype, err);
}

typedef struct fill_numbers {
    ort_floats values;
    float one; /* value of ConstantFill, repeated */
} fill_numbers;

static const ort_bind fill_bind[] = {
    ORT_BIND(fill_numbers, values, ORT_MAYBE),
    ORT_BIND_AS(fill_numbers, one, "value", ORT_MAYBE), {0}};

static ort_status constant_fill_run(ort_call *call, ort_error *err)
{
    const fill_numbers *s = call->state;
    ort_tensor *out = ort_call_out(call, 0);
    int64_t bits[2] = {0};
    ort_tensor one = {.dtype = out->dtype, .shape = {1, {1}}, .data = bits};
    ort_tensor_set_f64(&one, 0, (double)s->one);
    ort_move_fill(out->dtype, out->data, 0, ort_tensor_count(out), bits, 0);
    return ORT_OK;
}

static ort_status given_fill_run(ort_call *call, ort_error *err)
{
    const fill_numbers *s = call->state;
    ort_tensor *out = ort_call_out(call, 0);
    if ((size_t)ort_tensor_count(out) != s->values.count)
        return ort_call_fail(call, err, "%zu values are given for %lld elements", s->values.count,
                             (long long)ort_tensor_count(out));
    for (size_t i = 0; i < s->values.count; i++)
        ort_tensor_set_f64(out, (int64_t)i, (double)s->values.ptr[i]);
    return ORT_OK;
}

static const ort_op_impl constant_fill_impl = {
    .state = sizeof(fill_numbers), .bind = fill_bind,
    .infer = constant_fill_infer, .run = constant_fill_run};
static const ort_op_impl given_fill_impl = {
    .state = sizeof(fill_numbers), .bind = fill_bind,
    .infer = given_fill_infer, .run = given_fill_run};

#define FILL_ATTRS "extra_shape:is input_as_shape:i shape:is"

const ort_op ort_ops_legacy[] = {
    {ONNX, "Crop", 1, "input:T -> output:T", "T:F", "border:is scale:is",
     ORT_TRAIT_EXTENSION | ORT_TRAIT_TRIAL, &crop_impl},
    {ONNX, "ConstantFill", 1, "input?:T1 -> output:T2", "T1:f32,i32,i64,bool T2:f32,i32,i64,bool",
     FILL_ATTRS " dtype:i=1 value:f=0", ORT_TRAIT_EXTENSION | ORT_TRAIT_TRIAL,
     &constant_fill_impl},
    {ONNX, "GivenTensorFill", 1, "shape?:T -> X:T", "T:F", FILL_ATTRS " values:fs",
     ORT_TRAIT_EXTENSION | ORT_TRAIT_TRIAL, &given_fill_impl},
    {0},
};
