/* quant_rows.c - operators of com.microsoft on quantized rows: QLinearSoftmax, QLinearWhere,
 * GatherBlockQuantized.
 *
 * 8-bit values pass through tables of 256 entries where one is enough (QLinearWhere), else through
 * float. Blocks of GatherBlockQuantized lie along one axis, each with a scale and maybe a zero
 * point.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/num.h"
#include "op/number.h"
#include "op/op.h"

/* Both after ort_call_need_numbers. */
static float scale_at(const ort_call *call, int input)
{
    double scale = 0;
    ort_tensor_one_f64(ort_call_in(call, input), &scale);
    return (float)scale;
}

static int zero_at(const ort_call *call, int input)
{
    int64_t zero = 0;
    ort_tensor_one_i64(ort_call_in(call, input), &zero);
    return (int)zero;
}

static uint8_t quantize(float v, float scale, int zero, bool is_signed)
{
    float q = rintf(v / scale) + (float)zero, low = is_signed ? -128.0f : 0.0f;
    q = q > low ? q : low;
    q = q < low + 255 ? q : low + 255;
    return (uint8_t)(int)q;
}

static int code_of(uint8_t bits, bool is_signed)
{
    return is_signed ? (int8_t)bits : bits;
}

/* ---- QLinearSoftmax */

typedef struct softmax_state {
    int64_t opset, axis;
    bool has_axis;
} softmax_state;

static const ort_bind softmax_bind[] = {
    ORT_BIND(softmax_state, opset), ORT_BIND(softmax_state, axis, ORT_MAYBE),
    ORT_BIND_HAS(softmax_state, has_axis, "axis"), {0}};

typedef struct softmax_walk {
    const uint8_t *x;
    uint8_t *y;
    int64_t extent, inner;
    float x_scale, y_scale;
    int x_zero, y_zero;
    bool is_signed;
} softmax_walk;

static void softmax_task(void *arg, size_t task, int thread)
{
    const softmax_walk *w = arg;
    int64_t o = (int64_t)task / w->inner, i = (int64_t)task % w->inner;
    const uint8_t *x = w->x + o * w->extent * w->inner + i;
    uint8_t *y = w->y + o * w->extent * w->inner + i;
    int top = -128;
    double sum = 0;
    for (int64_t k = 0; k < w->extent; k++) {
        int code = code_of(x[k * w->inner], w->is_signed);
        top = code > top ? code : top;
    }
    for (int64_t k = 0; k < w->extent; k++)
        sum += exp((double)w->x_scale * (code_of(x[k * w->inner], w->is_signed) - top));
    for (int64_t k = 0; k < w->extent; k++) {
        double p = exp((double)w->x_scale * (code_of(x[k * w->inner], w->is_signed) - top)) / sum;
        y[k * w->inner] = quantize((float)p, w->y_scale, w->y_zero, w->is_signed);
    }
}

static ort_status softmax_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    const softmax_state *state = call->state;
    bool flat = state->opset < 13; /* all dims from the axis on */
    int64_t axis = state->has_axis ? state->axis : flat ? 1 : -1;
    softmax_walk w = {.x = x->data, .y = ort_call_out(call, 0)->data,
                      .is_signed = x->dtype == ORT_DTYPE_INT8, .inner = 1};
    axis += axis < 0 ? x->shape.rank : 0;
    ORT_TRY(ort_call_need_numbers(call, (int[]){1, 2, 3, 4}, 4, err));
    if (axis < 0 || axis >= x->shape.rank)
        return ort_call_fail(call, err, "the axis is outside its input");
    w.x_scale = scale_at(call, 1);
    w.y_scale = scale_at(call, 3);
    w.y_zero = zero_at(call, 4);
    w.extent = flat ? ort_shape_count_range(&x->shape, (int)axis, x->shape.rank)
                    : x->shape.dim[axis];
    if (!flat)
        w.inner = ort_shape_count_range(&x->shape, (int)axis + 1, x->shape.rank);
    int64_t rows = w.extent > 0 ? ort_tensor_count(x) / w.extent : 0;
    ort_call_parallel(call, (size_t)rows, softmax_task, &w);
    return ORT_OK;
}

static const ort_op_impl softmax_impl = {
    .state = sizeof(softmax_state), .bind = softmax_bind,
    .rule = "same", .run = softmax_run, .numbers = 0x1e,
};

/* ---- QLinearWhere */

static void fill_table(const ort_call *call, int scale, int zero, bool is_signed, uint8_t *table)
{
    float from = scale_at(call, scale), to = scale_at(call, 7);
    int from_zero = zero_at(call, zero), to_zero = zero_at(call, 8);
    for (int i = 0; i < 256; i++)
        table[i] = quantize(from * (float)(code_of((uint8_t)i, is_signed) - from_zero), to, to_zero,
                            is_signed);
}

static ort_status where_run(ort_call *call, ort_error *err)
{
    const ort_tensor *c = ort_call_in(call, 0), *x = ort_call_in(call, 1);
    const ort_tensor *y = ort_call_in(call, 4);
    ort_tensor *z = ort_call_out(call, 0);
    int64_t strides[3][ORT_MAX_RANK], count = ort_tensor_count(z);
    uint8_t from_x[256], from_y[256];
    const ort_tensor *in[3] = {c, x, y};
    ORT_TRY(ort_call_need_numbers(call, (int[]){2, 3, 5, 6, 7, 8}, 6, err));
    fill_table(call, 2, 3, x->dtype == ORT_DTYPE_INT8, from_x);
    fill_table(call, 5, 6, x->dtype == ORT_DTYPE_INT8, from_y);
    for (int k = 0; k < 3; k++)
        ort_shape_broadcast_strides(&in[k]->shape, &z->shape, strides[k]);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, at[3] = {0, 0, 0};
        for (int d = z->shape.rank - 1; d >= 0; d--) {
            int64_t step = rest % z->shape.dim[d];
            rest /= z->shape.dim[d];
            for (int k = 0; k < 3; k++)
                at[k] += step * strides[k][d];
        }
        ((uint8_t *)z->data)[i] = ((const uint8_t *)c->data)[at[0]]
                                      ? from_x[((const uint8_t *)x->data)[at[1]]]
                                      : from_y[((const uint8_t *)y->data)[at[2]]];
    }
    return ORT_OK;
}

static const ort_op_impl where_impl = {
    .rule = "broadcast 0,1,4", .run = where_run, .numbers = 0x1ec,
};

/* ---- GatherBlockQuantized */

typedef struct gather_form {
    int64_t block, gather_axis, quant_axis;
    int bits; /* of one element; bytes hold 8 / bits of them; 0: small floats, no zero points */
} gather_form;

static gather_form form_of(const ort_node *node, ort_dtype dtype)
{
    gather_form f = {ort_node_attr_int(node, "block_size"), ort_node_attr_int(node, "gather_axis"),
                     ort_node_attr_int(node, "quantize_axis"), 4};
    if (dtype == ORT_DTYPE_UINT8) {
        int64_t bits = ort_node_attr_int(node, "bits");
        f.bits = bits > 0 && bits <= 8 ? (int)bits : -1;
    }
    else if (dtype != ORT_DTYPE_INT4 && dtype != ORT_DTYPE_UINT4)
        f.bits = 0;
    return f;
}

static ort_status gather_infer(ort_infer *x, ort_error *err)
{
    if (!ort_infer_in_ranked(x, 0) || !ort_infer_in_ranked(x, 1))
        return ORT_OK;
    const ort_type *data = &x->in[0]->type, *indices = &x->in[1]->type;
    gather_form f = form_of(x->node, data->dtype);
    ort_dim dims[ORT_MAX_RANK];
    int axis = 0, rank = 0;
    if (f.bits != 0 && f.bits != 2 && f.bits != 4 && f.bits != 8)
        return ort_infer_fail(x, err, "bits must be 2, 4 or 8");
    ORT_TRY(ort_infer_axis(x, f.gather_axis, data->rank, &axis, err));
    if (data->rank - 1 + indices->rank > ORT_MAX_RANK)
        return ort_infer_fail(x, err, "the result has more than %d dims", ORT_MAX_RANK);
    for (int d = 0; d < data->rank; d++) {
        if (d == axis)
            for (int i = 0; i < indices->rank; i++)
                dims[rank++] = indices->dim[i];
        else if (d == data->rank - 1 && data->dtype == ORT_DTYPE_UINT8)
            dims[rank++] = ort_dim_mul(x->dims, data->dim[d], ort_dim_of(8 / f.bits));
        else
            dims[rank++] = data->dim[d];
    }
    ort_infer_set_shape(x, 0, rank, dims);
    return ORT_OK;
}

typedef struct gather_walk {
    const ort_tensor *data, *indices, *scales, *zeros;
    ort_tensor *y;
    gather_form f;
    int64_t outer, rows, inner, picks; /* inner: elements behind the gather axis */
    int64_t quant_extent, quant_stride, blocks;
    ort_shape shape;                   /* of the data, as elements */
    int64_t scale_stride[ORT_MAX_RANK]; /* small floats: 0 where the scales have one element */
    int quant;
} gather_walk;

/* Element `index` of codes of `bits`; rows of bytes are whole, so flat indices address them too. */
static int element(const ort_tensor *t, int64_t index, int bits)
{
    if (t->dtype == ORT_DTYPE_INT4)
        return ort_sign_extend(ort_packed_get(t->data, (size_t)index, 4), 4);
    if (bits == 8)
        return ((const uint8_t *)t->data)[index];
    return (int)ort_packed_get(t->data, (size_t)index, bits);
}

/* A small float: its scale may be shared along any axis. */
static float float_at(const gather_walk *w, int64_t at)
{
    int64_t s = 0, rest = at;
    for (int d = w->shape.rank - 1; d >= 0; d--) {
        int64_t i = rest % w->shape.dim[d];
        rest /= w->shape.dim[d];
        s += (d == w->quant ? i / w->f.block : i) * w->scale_stride[d];
    }
    return (float)(ort_tensor_get_f64(w->data, at) * ort_tensor_get_f64(w->scales, s));
}

static float value_at(const gather_walk *w, int64_t at)
{
    if (w->f.bits == 0)
        return float_at(w, at);
    int64_t low = at % w->quant_stride, along = at / w->quant_stride % w->quant_extent;
    int64_t high = at / w->quant_stride / w->quant_extent, block = along / w->f.block;
    int64_t s = (high * w->blocks + block) * w->quant_stride + low;
    int zero = w->data->dtype == ORT_DTYPE_UINT8 ? 1 << (w->f.bits - 1) : 0;
    if (w->zeros && w->data->dtype == ORT_DTYPE_UINT8 && w->f.bits < 8) {
        int64_t per = 8 / w->f.bits, bytes = (w->blocks + per - 1) / per;
        zero = element(w->zeros, high * bytes * per + block, w->f.bits);
    } else if (w->zeros) {
        zero = element(w->zeros, s, w->f.bits);
    }
    return (float)(element(w->data, at, w->f.bits) - zero) *
           (float)ort_tensor_get_f64(w->scales, s);
}

static void gather_task(void *arg, size_t task, int thread)
{
    const gather_walk *w = arg;
    int64_t o = (int64_t)task / w->picks, pick = (int64_t)task % w->picks;
    int64_t row = ort_tensor_get_i64(w->indices, pick);
    float piece[256];
    row += row < 0 ? w->rows : 0;
    bool inside = row >= 0 && row < w->rows; /* an index beyond the rows gives zeros */
    for (int64_t first = 0; first < w->inner; first += 256) {
        int64_t n = ort_min_i64(256, w->inner - first);
        for (int64_t i = 0; i < n; i++)
            piece[i] = inside ? value_at(w, (o * w->rows + row) * w->inner + first + i) : 0.0f;
        ort_tensor_from_f32(piece, w->y, (int64_t)task * w->inner + first, n);
    }
}

static ort_status gather_init(ort_call *call, gather_walk *w, ort_error *err)
{
    ort_shape s = ort_call_in(call, 0)->shape;
    *w = (gather_walk){.data = ort_call_in(call, 0), .indices = ort_call_in(call, 1),
                       .scales = ort_call_in(call, 2), .zeros = ort_call_in(call, 3),
                       .y = ort_call_out(call, 0)};
    w->f = form_of(call->node, w->data->dtype);
    bool bytes = w->data->dtype == ORT_DTYPE_UINT8;
    int64_t gather = w->f.gather_axis + (w->f.gather_axis < 0 ? s.rank : 0);
    int64_t quant = w->f.quant_axis + (w->f.quant_axis < 0 ? s.rank : 0);
    if (gather < 0 || gather >= s.rank || quant < 0 || quant >= s.rank || gather == quant ||
        w->f.block < (w->f.bits ? 1 : 0) || (bytes && (quant != s.rank - 1 || 8 % w->f.bits)))
        return ort_call_fail(call, err, "gather_axis, quantize_axis, bits and block_size don't fit "
                             "%d dims; the axes must differ", s.rank);
    if (bytes)
        s.dim[s.rank - 1] *= 8 / w->f.bits;
    w->shape = s;
    w->quant = (int)quant;
    w->outer = ort_shape_count_range(&s, 0, (int)gather);
    w->rows = s.dim[gather];
    w->inner = ort_shape_count_range(&s, (int)gather + 1, s.rank);
    w->picks = ort_tensor_count(w->indices);
    w->quant_extent = s.dim[quant];
    w->quant_stride = ort_shape_count_range(&s, (int)quant + 1, s.rank);
    if (w->f.block == 0) /* the whole axis */
        w->f.block = ort_max_i64(w->quant_extent, 1);
    w->blocks = w->quant_extent / w->f.block + (w->quant_extent % w->f.block != 0);
    ort_shape want = s;
    want.dim[quant] = w->blocks;
    int64_t zeros = ort_shape_count(&want);
    if (bytes && w->f.bits < 8 && w->blocks > 0)
        zeros = zeros / w->blocks * ((w->blocks * w->f.bits + 7) / 8);
    if (w->f.bits == 0) {
        for (int d = 0; d < s.rank && w->scales->shape.rank == s.rank; d++)
            if (w->scales->shape.dim[d] == 1)
                want.dim[d] = 1;
        ort_shape_broadcast_strides(&want, &s, w->scale_stride);
        w->scale_stride[quant] = ort_shape_count_range(&want, (int)quant + 1, s.rank);
    }
    if (!ort_shape_equal(&want, &w->scales->shape) ||
        (w->zeros && ort_tensor_count(w->zeros) != zeros))
        return ort_call_fail(call, err, "scales or zero_points don't fit blocks of %lld elements",
                             (long long)w->f.block);
    return ORT_OK;
}

static ort_status gather_run(ort_call *call, ort_error *err)
{
    gather_walk w;
    ORT_TRY(gather_init(call, &w, err));
    ort_call_parallel(call, (size_t)(w.outer * w.picks), gather_task, &w);
    return ORT_OK;
}

static ort_status gather_prepare(ort_prep *p, ort_error *err)
{
    ort_dtype dtype = ort_prep_dtype(p, 0);
    int bits = form_of(p->node, dtype).bits;
    if (bits == 0 && ort_prep_dtype(p, 3) != ORT_DTYPE_UNDEFINED)
        return ort_prep_fail(p, err, "data of a float type has no zero_points");
    if (bits != 0 && bits != 2 && bits != 4 && bits != 8)
        return ort_prep_fail(p, err, "bits must be 2, 4 or 8");
    return ORT_OK;
}

static const ort_op_impl gather_impl = {
    .infer = gather_infer, .prepare = gather_prepare, .run = gather_run,
};

/* ---- rows */

const ort_op ort_ops_quant_rows[] = {
    {MS, "QLinearSoftmax", 1,
     "X:T,X_scale:f32,x_zero_point?:T,y_scale:f32,y_zero_point:T -> Y:T", "T:i8,u8",
     "axis:i opset:i!", 0, &softmax_impl},
    {MS, "QLinearWhere", 1,
     "condition:B,X:T,x_scale:f32,x_zero_point:T,Y:T,y_scale:f32,y_zero_point:T,z_scale:f32,"
     "z_zero_point:T -> Z:T",
     "B:bool T:i8,u8", "", 0, &where_impl},
    {MS, "GatherBlockQuantized", 1, "data:T1,indices:Tind,scales:T2,zero_points?:T1 -> output:T2",
     "T1:Q4,u8,F8,f4e2m1 T2:f32,f16,bf16 Tind:i32,i64",
     "bits:i=4 block_size:i=128 gather_axis:i=0 quantize_axis:i=1", 0, &gather_impl},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
