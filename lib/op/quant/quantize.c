/* quantize.c - QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear of ONNX and com.microsoft.
 *
 * A tensor is walked in flat order, cut into segments in which the scale is one number (per tensor,
 * per axis, blocks along the last axis) or a run of neighbouring numbers (axis last, blocks along
 * another axis). 8-bit integers from and to float go straight to the tier's kernels; every other
 * type passes through float in pieces of PIECE elements, which holds all of them exactly.
 */
#include <math.h>

#include "base/checked.h"
#include "base/num.h"
#include "op/op.h"
#include "op/shared/dynamic_range.h"

#define PIECE 512
#define GRAIN (PIECE * 64) /* a multiple of 8: tasks never share a byte of packed elements */

typedef struct quant_state {
    int64_t axis, block;
    bool saturate;
    ort_dtype precision; /* UNDEFINED: that of the scale */
} quant_state;

/* Also of versions before 13, where op/check/check_node.c warns of it. */
static ort_status read_axis(const ort_node *node, void *member, ort_error *err)
{
    *(int64_t *)member = ort_node_has(node, "axis") ? ort_node_attr_int(node, "axis") : 1;
    return ORT_OK;
}

static const ort_bind quant_bind[] = {
    ORT_BIND_BY(quant_state, axis, "axis", read_axis),
    ORT_BIND_AS(quant_state, block, "block_size", ORT_FROM(0), ORT_MAYBE),
    ORT_BIND(quant_state, saturate, ORT_ELSE(1)), ORT_BIND(quant_state, precision, ORT_MAYBE), {0}};

/* ---- geometry */

enum { SCALE_ONE, SCALE_AXIS, SCALE_BLOCKS };

typedef struct quant_walk {
    const ort_tensor *x, *scale, *zero;
    ort_tensor *y;
    const ort_kernels *k;
    const quant_state *state;
    int mode;
    int64_t extent, inner, block, blocks; /* of the axis; blocks along it */
    int64_t count;
    bool integer;    /* the quantized type is an integer */
    float lo, hi;    /* its range */
    ort_dtype precision;
} quant_walk;

typedef struct segment {
    int64_t first, count, scale; /* elements; index of the first one's scale */
    bool vector;                 /* scale index grows with the element */
} segment;

static segment segment_at(const quant_walk *w, int64_t first, int64_t last)
{
    segment s = {first, last - first, 0, false};
    if (w->mode == SCALE_ONE)
        return s;
    int64_t i = first % w->inner, row = first / w->inner;
    int64_t a = row % w->extent, o = row / w->extent;
    if (w->mode == SCALE_AXIS) {
        s.scale = a;
        s.vector = w->inner == 1;
        s.count = ort_min_i64(s.count, s.vector ? w->extent - a : w->inner - i);
    } else if (w->inner == 1) {
        s.scale = o * w->blocks + a / w->block;
        s.count = ort_min_i64(s.count, ort_min_i64(w->block - a % w->block, w->extent - a));
    } else {
        s.scale = (o * w->blocks + a / w->block) * w->inner + i;
        s.vector = true;
        s.count = ort_min_i64(s.count, w->inner - i);
    }
    return s;
}

static ort_status walk_axis(ort_call *call, quant_walk *w, ort_error *err)
{
    const ort_shape *shape = &w->x->shape;
    int64_t axis = w->state->axis + (w->state->axis < 0 ? shape->rank : 0);
    if (shape->rank == 1)
        axis = 0;
    if (axis < 0 || axis >= shape->rank)
        return ort_call_fail(call, err, "axis %lld is outside the %d dims of its input",
                             (long long)w->state->axis, shape->rank);
    w->extent = shape->dim[axis];
    w->inner = ort_shape_count_range(shape, (int)axis + 1, shape->rank);
    if (w->scale->shape.rank == 1 && w->state->block == 0) {
        w->mode = SCALE_AXIS;
        if (w->scale->shape.dim[0] != w->extent)
            return ort_call_fail(call, err, "%lld scales for an axis of %lld elements",
                                 (long long)w->scale->shape.dim[0], (long long)w->extent);
        return ORT_OK;
    }
    w->mode = SCALE_BLOCKS;
    ort_shape want = *shape;
    if (w->scale->shape.rank == shape->rank)
        w->blocks = w->scale->shape.dim[axis];
    w->block = w->state->block;
    if (w->block == 0 && w->blocks > 0)
        w->block = (w->extent + w->blocks - 1) / w->blocks;
    want.dim[axis] = w->blocks;
    if (w->block < 1 || w->blocks != w->extent / w->block + (w->extent % w->block != 0) ||
        !ort_shape_equal(&want, &w->scale->shape))
        return ort_call_fail(call, err, "the scales don't fit its input in blocks of %lld along "
                             "axis %lld", (long long)w->block, (long long)axis);
    return ORT_OK;
}

static ort_status walk_init(ort_call *call, quant_walk *w, ort_error *err)
{
    w->x = ort_call_in(call, 0);
    w->scale = ort_call_in(call, 1);
    w->zero = ort_call_in(call, 2);
    w->y = ort_call_out(call, 0);
    w->k = call->k;
    w->state = call->state;
    w->count = ort_tensor_count(w->x);
    int64_t scales = ort_tensor_count(w->scale);
    if (w->zero && ort_tensor_count(w->zero) != scales)
        return ort_call_fail(call, err, "%lld zero points for %lld scales",
                             (long long)ort_tensor_count(w->zero), (long long)scales);
    w->mode = SCALE_ONE;
    if (scales == 1 && w->scale->shape.rank <= 1)
        return ORT_OK;
    return walk_axis(call, w, err);
}

/* The largest and smallest number of an integer type. */
static void integer_range(ort_dtype dtype, float *lo, float *hi)
{
    const ort_dtype_row *row = ort_dtype_get(dtype);
    if (row->class_ == ORT_CLASS_UINT) {
        *lo = 0;
        *hi = (float)((1u << row->bits) - 1);
    } else {
        *lo = -(float)(1u << (row->bits - 1));
        *hi = -*lo - 1;
    }
}

static bool zero_matters(const ort_tensor *zero)
{
    return zero && (zero->dtype < ORT_DTYPE_FLOAT8E4M3FN || zero->dtype > ORT_DTYPE_FLOAT8E5M2FNUZ);
}

/* Scales and zero points of a piece, one per element. */
static void piece_scales(const quant_walk *w, const segment *s, int64_t offset, int64_t n,
                         float *scale, float *zero)
{
    int64_t first = s->vector ? s->scale + offset : s->scale, given = s->vector ? n : 1;
    ort_tensor_to_f32(w->scale, first, given, scale);
    if (zero_matters(w->zero))
        ort_tensor_to_f32(w->zero, first, given, zero);
    else
        for (int64_t i = 0; i < given; i++)
            zero[i] = 0;
    for (int64_t i = given; i < n; i++) {
        scale[i] = scale[0];
        zero[i] = zero[0];
    }
}

/* ---- quantize */

static void round_to(ort_dtype precision, float *v, int64_t n)
{
    if (precision == ORT_DTYPE_FLOAT16)
        for (int64_t i = 0; i < n; i++)
            v[i] = ort_f16_to_f32(ort_f32_to_f16(v[i]));
    else if (precision == ORT_DTYPE_BFLOAT16)
        for (int64_t i = 0; i < n; i++)
            v[i] = ort_bf16_to_f32(ort_f32_to_bf16(v[i]));
}

static void store_minifloat(const quant_walk *w, const float *v, int64_t first, int64_t n)
{
    int bits = ort_dtype_get(w->y->dtype)->bits;
    for (int64_t i = 0; i < n; i++) {
        bool saturate = bits < 8 || w->state->saturate;
        unsigned code = ort_f32_to_minifloat((int)w->y->dtype, v[i], saturate);
        if (bits % 8 == 0)
            ((uint8_t *)w->y->data)[first + i] = (uint8_t)code;
        else
            ort_packed_set(w->y->data, (size_t)(first + i), bits, code);
    }
}

static void quantize_piece(const quant_walk *w, const segment *s, int64_t offset, int64_t n)
{
    float v[PIECE], scale[PIECE], zero[PIECE];
    ort_tensor_to_f32(w->x, s->first + offset, n, v);
    piece_scales(w, s, offset, n, scale, zero);
    round_to(w->precision, v, n);
    for (int64_t i = 0; i < n; i++)
        v[i] = v[i] / scale[i];
    round_to(w->precision, v, n);
    if (!w->integer) {
        for (int64_t i = 0; i < n; i++)
            v[i] += zero[i];
        store_minifloat(w, v, s->first + offset, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float q = rintf(v[i]) + zero[i];
        q = q > w->lo ? q : w->lo;
        q = q < w->hi ? q : w->hi;
        v[i] = isnan(v[i]) ? zero[i] : q;
    }
    ort_tensor_from_f32(v, w->y, s->first + offset, n);
}

static bool quantize_fast(const quant_walk *w, const segment *s)
{
    ort_dtype from = w->x->dtype, to = w->y->dtype;
    if (s->vector || from != ORT_DTYPE_FLOAT || w->scale->dtype != ORT_DTYPE_FLOAT ||
        w->precision != ORT_DTYPE_FLOAT)
        return false;
    const float *x = (const float *)w->x->data + s->first;
    float scale = ((const float *)w->scale->data)[s->scale];
    int zero = w->zero ? (int)ort_tensor_get_i64(w->zero, s->scale) : 0;
    const size_t n = (size_t)s->count;
    switch (to) {
    case ORT_DTYPE_UINT8:
        w->k->math.quantize_u8(x, (uint8_t *)w->y->data + s->first, n, scale, zero);
        return true;
    case ORT_DTYPE_INT8:
        w->k->math.quantize_s8(x, (int8_t *)w->y->data + s->first, n, scale, zero);
        return true;
    case ORT_DTYPE_UINT16:
        w->k->math.quantize_u16(x, (uint16_t *)w->y->data + s->first, n, scale, zero);
        return true;
    case ORT_DTYPE_INT16:
        w->k->math.quantize_s16(x, (int16_t *)w->y->data + s->first, n, scale, zero);
        return true;
    default: return false;
    }
}

static void quantize_task(void *arg, int64_t first, int64_t end, int thread)
{
    const quant_walk *w = arg;
    while (first < end) {
        segment s = segment_at(w, first, end);
        if (!quantize_fast(w, &s))
            for (int64_t at = 0; at < s.count; at += PIECE)
                quantize_piece(w, &s, at, ort_min_i64(PIECE, s.count - at));
        first += s.count;
    }
}

static ort_status quantize_run(ort_call *call, ort_error *err)
{
    quant_walk w = {0};
    ORT_TRY(walk_init(call, &w, err));
    ort_dtype_class class_ = ort_dtype_get(w.y->dtype)->class_;
    w.integer = class_ == ORT_CLASS_INT || class_ == ORT_CLASS_UINT;
    if (w.integer)
        integer_range(w.y->dtype, &w.lo, &w.hi);
    w.precision = w.state->precision ? w.state->precision : w.scale->dtype;
    if (w.precision != ORT_DTYPE_FLOAT16 && w.precision != ORT_DTYPE_BFLOAT16)
        w.precision = ORT_DTYPE_FLOAT;
    ort_call_range(call, w.count, GRAIN, quantize_task, &w);
    return ORT_OK;
}

static ort_status quantize_infer(ort_infer *x, ort_error *err)
{
    ort_dtype asked = (ort_dtype)ort_node_attr_int(x->node, "output_dtype");
    const ort_fact *zero = ort_infer_in(x, 2);
    if (!asked && !zero)
        x->out[0].type.dtype = ORT_DTYPE_UINT8;
    if (asked && zero && zero->type.dtype && zero->type.dtype != asked)
        return ort_infer_fail(x, err, "output_dtype is %s, the zero point is %s",
                              ort_dtype_name(asked), ort_dtype_name(zero->type.dtype));
    return ORT_OK;
}

static void quant_cost(const ort_infer *x, ort_cost *cost)
{
    double n = 1;
    for (int i = 0; x->out_count > 0 && i < x->out[0].type.rank; i++)
        n *= ort_dim_known(x->out[0].type.dim[i]) ? (double)x->out[0].type.dim[i].size : 1;
    cost->flops = 2 * n;
}

static const ort_op_impl quantize_impl = {
    .state = sizeof(quant_state), .bind = quant_bind,
    .rule = "[..] -> [..]:output_dtype|y_zero_point",
    .infer = quantize_infer, .run = quantize_run, .cost = quant_cost,
};

/* ---- dequantize */

static void dequantize_piece(const quant_walk *w, const segment *s, int64_t offset, int64_t n)
{
    float v[PIECE], scale[PIECE], zero[PIECE];
    ort_tensor_to_f32(w->x, s->first + offset, n, v);
    piece_scales(w, s, offset, n, scale, zero);
    for (int64_t i = 0; i < n; i++)
        v[i] = (v[i] - zero[i]) * scale[i];
    ort_tensor_from_f32(v, w->y, s->first + offset, n);
}

static bool dequantize_fast(const quant_walk *w, const segment *s)
{
    ort_dtype from = w->x->dtype;
    if (s->vector || w->y->dtype != ORT_DTYPE_FLOAT || w->scale->dtype != ORT_DTYPE_FLOAT)
        return false;
    float *y = (float *)w->y->data + s->first;
    float scale = ((const float *)w->scale->data)[s->scale];
    int zero = w->zero ? (int)ort_tensor_get_i64(w->zero, s->scale) : 0;
    size_t n = (size_t)s->count;
    switch (from) {
    case ORT_DTYPE_UINT8:
        w->k->math.dequantize_u8((const uint8_t *)w->x->data + s->first, y, n, scale, zero);
        return true;
    case ORT_DTYPE_INT8:
        w->k->math.dequantize_s8((const int8_t *)w->x->data + s->first, y, n, scale, zero);
        return true;
    case ORT_DTYPE_UINT16:
        w->k->math.dequantize_u16((const uint16_t *)w->x->data + s->first, y, n, scale, zero);
        return true;
    case ORT_DTYPE_INT16:
        w->k->math.dequantize_s16((const int16_t *)w->x->data + s->first, y, n, scale, zero);
        return true;
    default: return false;
    }
}

static void dequantize_task(void *arg, int64_t first, int64_t end, int thread)
{
    const quant_walk *w = arg;
    while (first < end) {
        segment s = segment_at(w, first, end);
        if (!dequantize_fast(w, &s))
            for (int64_t at = 0; at < s.count; at += PIECE)
                dequantize_piece(w, &s, at, ort_min_i64(PIECE, s.count - at));
        first += s.count;
    }
}

static ort_status dequantize_run(ort_call *call, ort_error *err)
{
    quant_walk w = {0};
    ORT_TRY(walk_init(call, &w, err));
    ort_call_range(call, w.count, GRAIN, dequantize_task, &w);
    return ORT_OK;
}

static const ort_op_impl dequantize_impl = {
    .state = sizeof(quant_state), .bind = quant_bind,
    .rule = "[..] -> [..]:output_dtype|x_scale", .run = dequantize_run, .cost = quant_cost,
};

/* ---- DynamicQuantizeLinear */

#define MAX_PARTS 256

typedef struct range_walk {
    const float *x;
    uint8_t *y;
    int64_t count, grain;
    const ort_kernels *k;
    float low[MAX_PARTS], high[MAX_PARTS];
    float scale;
    int zero;
} range_walk;

static void range_task(void *arg, size_t task, int thread)
{
    range_walk *w = arg;
    int64_t first = (int64_t)task * w->grain, n = ort_min_i64(w->grain, w->count - first);
    w->k->math.min_max(w->x + first, (size_t)n, &w->low[task], &w->high[task]);
}

static void dynamic_task(void *arg, int64_t first, int64_t end, int thread)
{
    range_walk *w = arg;
    w->k->math.quantize_u8(w->x + first, w->y + first, (size_t)(end - first), w->scale, w->zero);
}

static ort_status dynamic_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    range_walk w = {.x = x->data, .count = ort_tensor_count(x), .k = call->k};
    float low = 0, high = 0;
    w.grain = ort_max_i64(GRAIN, (w.count + MAX_PARTS - 1) / MAX_PARTS);
    size_t parts = ort_task_count(w.count, w.grain);
    ort_call_parallel(call, parts, range_task, &w);
    for (size_t i = 0; i < parts; i++) {
        low = w.low[i] < low ? w.low[i] : low;
        high = w.high[i] > high ? w.high[i] : high;
    }
    w.zero = ort_dynamic_range(low, high, &w.scale);
    if (ort_call_out(call, 1))
        ort_tensor_set_f64(ort_call_out(call, 1), 0, w.scale);
    if (ort_call_out(call, 2))
        ort_tensor_set_i64(ort_call_out(call, 2), 0, w.zero);
    if (ort_call_out(call, 0)) {
        w.y = ort_call_out(call, 0)->data;
        ort_call_range(call, w.count, w.grain, dynamic_task, &w);
    }
    return ORT_OK;
}

static const ort_op_impl dynamic_impl = {
    .rule = "[..] -> [..] [] []", .run = dynamic_run, .cost = quant_cost,
};

/* ---- rows */

const ort_op ort_ops_quantize[] = {
    {ONNX, "QuantizeLinear", 10, "x:T1,y_scale:f32,y_zero_point?:T2 -> y:T2",
     "T1:f32,i32 T2:i8,u8",
     "", 0, &quantize_impl, .history = "13:+axis:i=1"},
    {ONNX, "QuantizeLinear", 19, "x:T1,y_scale:T1,y_zero_point?:T2 -> y:T2",
     "T1:f32,f16,bf16,i32 T2:F8,i8,u8",
     "axis:i=1 saturate:i=1", 0, &quantize_impl,
     .history = "21:T2+Q4,i16,u16 +block_size:i=0 +output_dtype:i=0"},
    {ONNX, "QuantizeLinear", 23, "x:T1,y_scale:T2,y_zero_point?:T3 -> y:T3",
     "T1:f32,f16,bf16,i32 T2:f32,f16,bf16,i32 T3:F8,Q4,i8,u8,i16,u16,f4e2m1",
     "axis:i=1 block_size:i=0 output_dtype:i=0 precision:i=0 saturate:i=1", 0, &quantize_impl,
     .history = "24:T2+f8e8m0 25:T3+Q2 28:T3+F6"},
    {ONNX, "DequantizeLinear", 10, "x:T,x_scale:f32,x_zero_point?:T -> y:f32",
     "T:i8,u8,i32",
     "", 0, &dequantize_impl, .history = "13:+axis:i=1"},
    {ONNX, "DequantizeLinear", 19, "x:T1,x_scale:T2,x_zero_point?:T1 -> y:T2",
     "T1:F8,i8,u8,i32 T2:f32,f16,bf16",
     "axis:i=1", 0, &dequantize_impl, .history = "21:T1+Q4,i16,u16 +block_size:i=0"},
    {ONNX, "DequantizeLinear", 23, "x:T1,x_scale:T2,x_zero_point?:T1 -> y:T3",
     "T1:F8,Q4,i8,u8,i16,u16,i32,f4e2m1 T2:f32,f16,bf16 T3:f32,f16,bf16",
     "axis:i=1 block_size:i=0 output_dtype:i=0", 0, &dequantize_impl,
     .history = "24:T2+f8e8m0 25:T1+Q2 28:T1+F6"},
    {ONNX, "DynamicQuantizeLinear", 11, "x:T1 -> y:T2,y_scale:f32,y_zero_point:T2",
     "T1:f32 T2:u8",
     "", 0, &dynamic_impl},
    {MS, "QuantizeLinear", 1, "x:T1,y_scale:T1,y_zero_point?:T2 -> y:T2",
     "T1:f32,f16 T2:i8,u8,i16,u16,Q4,F8",
     "axis:i=1 block_size:i=0 output_dtype:i=0 saturate:i=1", 0, &quantize_impl},
    {MS, "DequantizeLinear", 1, "x:T1,x_scale:T2,x_zero_point?:T1 -> y:T2",
     "T1:i8,u8,i16,u16,i32,Q4,F8 T2:f32,f16", "axis:i=1 block_size:i=0", 0, &dequantize_impl},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
