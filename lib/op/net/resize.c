/* resize.c - Resize (10 to 19) and Upsample.
 *
 * Invariant: one function (resize_axes) turns scales, sizes, axes, roi and the aspect policy into
 * an ort_resample_axis per axis, for inference and for running alike. Tables are made in the shape
 * phase when the numbers are known by then, else in run.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/move.h"
#include "op/shared/resample.h"

enum { RESIZE, UPSAMPLE };
enum resize_mode { MODE_NEAREST, MODE_LINEAR, MODE_CUBIC };
enum aspect { ASPECT_STRETCH, ASPECT_NOT_LARGER, ASPECT_NOT_SMALLER };

typedef struct resize_state {
    enum resize_mode mode;
    ort_rounding rounding;
    ort_resample_kind kind;
    enum aspect aspect;
    float extrapolation;
    int roi_input, scales_input, sizes_input; /* -1: the version has none */
    int axis_count;                           /* -1: all */
    ort_ints axes;
    ort_floats scales; /* Upsample's attribute */
    float corner[4];   /* Upsample 1: 1, 1, height_scale, width_scale */
    double fill[2];    /* extrapolation_value as one element */
} resize_state;

static const ort_bind resize_bind[] = {
    ORT_BIND(resize_state, mode, ORT_WORDS("nearest linear|bilinear cubic")),
    ORT_BIND_AS(resize_state, rounding, "nearest_mode", ORT_ELSE(ORT_ROUND_SIMPLE),
                ORT_WORDS("round_prefer_floor round_prefer_ceil floor ceil")),
    ORT_BIND_AS(resize_state, aspect, "keep_aspect_ratio_policy", ORT_MAYBE,
                ORT_WORDS("stretch not_larger not_smaller")),
    ORT_BIND_AS(resize_state, kind.coordinate, "coordinate_transformation_mode",
                ORT_ELSE(ORT_COORD_ASYMMETRIC),
                ORT_WORDS("half_pixel half_pixel_symmetric pytorch_half_pixel align_corners "
                          "asymmetric tf_half_pixel_for_nn tf_crop_and_resize")),
    ORT_BIND_AS(resize_state, kind.cubic_a, "cubic_coeff_a", ORT_ELSE(-0.75)),
    ORT_BIND_AS(resize_state, kind.antialias, "antialias", ORT_MAYBE),
    ORT_BIND_AS(resize_state, kind.exclude_outside, "exclude_outside", ORT_MAYBE),
    ORT_BIND_AS(resize_state, extrapolation, "extrapolation_value", ORT_MAYBE),
    ORT_BIND(resize_state, axes, ORT_MAYBE),
    ORT_BIND(resize_state, scales, ORT_MAYBE),
    ORT_BIND_AS(resize_state, corner[2], "height_scale", ORT_MAYBE),
    ORT_BIND_AS(resize_state, corner[3], "width_scale", ORT_MAYBE), {0}};

/* What follows from the bound attributes and the version. */
static ort_status resize_settle(const ort_op *op, resize_state *state, ort_error *err)
{
    bool upsample = op->variant == UPSAMPLE, old = upsample || op->since < 11;
    state->kind.cubic = state->mode == MODE_CUBIC;
    if (upsample)
        state->rounding = ORT_ROUND_FLOOR;
    state->roi_input = old ? -1 : 1;
    state->scales_input = upsample && op->since < 9 ? -1 : old ? 1 : 2;
    state->sizes_input = old ? -1 : 3;
    state->axis_count = state->axes.ptr ? (int)state->axes.count : -1;
    state->corner[0] = state->corner[1] = 1;
    if (upsample && op->since == 1)
        state->scales = (ort_floats){state->corner, 4};
    if (state->axis_count > ORT_MAX_RANK)
        return ort_error_set(err, ORT_ERROR_MODEL, "axes has more entries than any tensor");
    return ORT_OK;
}

/* ---- numbers of a call */

typedef struct resize_numbers { /* NULL: absent */
    const float *scales;
    const ort_tensor *sizes, *roi;
    int64_t scale_count;
} resize_numbers;

static resize_numbers numbers_of(const resize_state *state, const ort_tensor *scales,
                                 const ort_tensor *sizes, const ort_tensor *roi)
{
    resize_numbers n = {state->scales.ptr, NULL, NULL, (int64_t)state->scales.count};
    if (scales && ort_tensor_count(scales) > 0) {
        n.scales = scales->data;
        n.scale_count = ort_tensor_count(scales);
    }
    if (sizes && ort_tensor_count(sizes) > 0)
        n.sizes = sizes;
    if (roi && ort_tensor_count(roi) > 0)
        n.roi = roi;
    return n;
}

static int axis_at(const resize_state *state, int i, int rank)
{
    int64_t axis = state->axis_count < 0 ? i : state->axes.ptr[i];
    axis = axis < 0 ? axis + rank : axis;
    return axis < 0 || axis >= rank ? -1 : (int)axis;
}

/* The common scale of an aspect policy. */
static double aspect_scale(const resize_state *state, const resize_numbers *n, const ort_shape *in,
                           int count)
{
    double best = 0;
    for (int i = 0; i < count; i++) {
        double scale = (double)ort_tensor_get_i64(n->sizes, i) /
                       (double)in->dim[axis_at(state, i, in->rank)];
        if (i == 0 || (state->aspect == ASPECT_NOT_LARGER ? scale < best : scale > best))
            best = scale;
    }
    return best;
}

/* One ort_resample_axis per axis of the input; NULL, or what is wrong. */
static const char *resize_axes(const resize_state *state, const resize_numbers *n,
                               const ort_shape *in, ort_resample_axis *axes)
{
    int count = state->axis_count < 0 ? in->rank : state->axis_count;
    for (int d = 0; d < in->rank; d++)
        axes[d] = (ort_resample_axis){in->dim[d], in->dim[d], 1, (float)in->dim[d], 0, 1};
    if (!n->scales && !n->sizes)
        return "neither scales nor sizes is given";
    if ((n->scales ? n->scale_count : ort_tensor_count(n->sizes)) != count)
        return "scales or sizes doesn't have one entry per axis";
    if (n->roi && ort_tensor_count(n->roi) != 2 * (int64_t)count)
        return state->kind.coordinate == ORT_COORD_TF_CROP_AND_RESIZE
                   ? "roi doesn't have two entries per axis" : NULL;
    for (int i = 0; i < count; i++)
        if (axis_at(state, i, in->rank) < 0)
            return "an entry of axes is out of range";
    double common = n->sizes && state->aspect != ASPECT_STRETCH
                        ? aspect_scale(state, n, in, count) : 0;
    for (int i = 0; i < count; i++) {
        ort_resample_axis *a = &axes[axis_at(state, i, in->rank)];
        double size;
        if (n->sizes && state->aspect != ASPECT_STRETCH) {
            a->scale = (float)common;
            size = floor(common * (double)a->in + 0.5);
            a->width = (float)(common * (double)a->in);
        } else if (n->sizes) {
            size = (double)ort_tensor_get_i64(n->sizes, i);
            a->scale = a->in > 0 ? (float)size / (float)a->in : 1;
            a->width = (float)size;
        } else {
            a->scale = n->scales[i];
            a->width = n->scales[i] * (float)a->in;
            size = (double)floorf(a->width);
        }
        if (!(a->scale > 0 || (a->scale == 0 && size == 0)) || !(size >= 0 && size < 1e12))
            return "a scale or size is not positive";
        if (a->in == 0 && size > 0)
            return "an axis without elements can't be enlarged";
        a->out = (int64_t)size;
        if (n->roi) {
            a->roi_start = (float)ort_tensor_get_f64(n->roi, i);
            a->roi_end = (float)ort_tensor_get_f64(n->roi, i + count);
        }
    }
    return NULL;
}

/* ---- infer */

static const ort_tensor *known_value(const ort_infer *x, int input)
{
    const ort_fact *fact = input < 0 ? NULL : ort_infer_in(x, input);
    return fact ? fact->value : NULL;
}

static bool is_given(const ort_infer *x, int input)
{
    const ort_fact *fact = input < 0 ? NULL : ort_infer_in(x, input);
    if (!fact)
        return false;
    return !(fact->type.kind == ORT_TYPE_TENSOR && fact->type.rank == 1 &&
             ort_dim_known(fact->type.dim[0]) && fact->type.dim[0].size == 0);
}

/* An input of unknown length may still turn out to be the empty one that stands for none. */
static bool surely_given(const ort_infer *x, int input)
{
    return is_given(x, input) && (ort_infer_in(x, input)->type.rank != 1 ||
                                  ort_dim_known(ort_infer_in(x, input)->type.dim[0]));
}

/* floor(in * scale) of a symbolic dim: only whole factors and their inverses keep an expression. */
static ort_dim scaled_dim(ort_infer *x, ort_dim in, float scale)
{
    float inverse = 1 / scale;
    if (ort_dim_known(in))
        return ort_dim_of((int64_t)floorf(scale * (float)in.size));
    if (scale >= 1 && scale < 65536 && scale == floorf(scale))
        return ort_dim_mul(x->dims, in, ort_dim_of((int64_t)scale));
    if (scale < 1 && inverse < 65536 && inverse == floorf(inverse))
        return ort_dim_div(x->dims, in, ort_dim_of((int64_t)inverse));
    return ort_dim_unknown();
}

/* Dims where not everything is a number. */
static ort_status resize_symbolic(ort_infer *x, const resize_state *state, const float *scales,
                                  ort_type *type)
{
    int count = state->axis_count < 0 ? type->rank : state->axis_count;
    bool sizes = is_given(x, state->sizes_input) && state->aspect == ASPECT_STRETCH;
    for (int i = 0; i < count; i++) {
        int d = axis_at(state, i, type->rank);
        ort_dim in = type->dim[d];
        if (scales)
            type->dim[d] = scaled_dim(x, in, scales[i]);
        else if (!sizes || !ort_infer_int(x, state->sizes_input, i, &type->dim[d]))
            type->dim[d] = ort_dim_unknown();
    }
    return ORT_OK;
}

static ort_status resize_infer(ort_infer *x, ort_error *err)
{
    resize_state state = {.mode = MODE_NEAREST};
    ort_resample_axis axes[ORT_MAX_RANK];
    ORT_TRY(ort_bind_attrs(resize_bind, x->node, x->arena, &state, err));
    ORT_TRY(resize_settle(x->op, &state, err));
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    ort_type type = x->in[0]->type;
    ort_shape in = {.rank = type.rank};
    bool concrete = true;
    int count = state.axis_count < 0 ? type.rank : state.axis_count;
    unsigned seen = 0;
    for (int i = 0; i < count; i++) {
        int axis = axis_at(&state, i, type.rank);
        if (axis < 0)
            return ort_infer_fail(x, err, "axes[%d] is outside rank %d", i, type.rank);
        if (seen & 1u << axis)
            return ort_infer_fail(x, err, "axis %d occurs twice in axes", axis);
        seen |= 1u << axis;
    }
    for (int d = 0; d < type.rank; d++) {
        concrete = concrete && ort_dim_known(type.dim[d]);
        in.dim[d] = type.dim[d].size;
    }
    const ort_tensor *scales = known_value(x, state.scales_input);
    const ort_tensor *sizes = known_value(x, state.sizes_input);
    bool by_sizes = is_given(x, state.sizes_input);
    resize_numbers n = numbers_of(&state, scales, sizes, NULL);
    if (by_sizes ? surely_given(x, state.sizes_input) && surely_given(x, state.scales_input)
                 : !state.scales.ptr && !is_given(x, state.scales_input))
        return ort_infer_fail(x, err, "exactly one of scales and sizes is needed");
    int size_count = by_sizes ? ort_infer_int_count(x, state.sizes_input) : count;
    if (size_count > 0 && size_count != count)
        return ort_infer_fail(x, err, "sizes has %d entries, %d are needed", size_count, count);
    if (n.scales && n.scale_count != count)
        return ort_infer_fail(x, err, "scales has %lld entries, %d are needed",
                              (long long)n.scale_count, count);
    for (int i = 0; n.scales && i < count; i++)
        if (!(n.scales[i] > 0))
            return ort_infer_fail(x, err, "scales[%d] is %g", i, (double)n.scales[i]);
    if (concrete && (by_sizes ? n.sizes != NULL : n.scales != NULL)) {
        const char *wrong = resize_axes(&state, &n, &in, axes);
        if (wrong)
            return ort_infer_fail(x, err, "%s", wrong);
        for (int d = 0; d < type.rank; d++)
            type.dim[d] = ort_dim_of(axes[d].out);
    } else {
        ORT_TRY(resize_symbolic(x, &state, by_sizes ? NULL : n.scales, &type));
    }
    ort_infer_set_shape(x, 0, type.rank, type.dim);
    return ORT_OK;
}

/* ---- prepare */

static ort_status resize_prepare(ort_prep *p, ort_error *err)
{
    resize_state *state = p->state;
    ort_dtype dtype = ort_prep_dtype(p, 0);
    const ort_dtype_row *row = ort_dtype_get(dtype);
    ORT_TRY(resize_settle(p->op, state, err));
    bool number = row->class_ == ORT_CLASS_FLOAT || row->class_ == ORT_CLASS_INT ||
                  row->class_ == ORT_CLASS_UINT || row->class_ == ORT_CLASS_BOOL;
    if (number && row->bits >= 8) {
        ort_tensor one = {dtype, {1, {1}}, NULL, state->fill};
        ort_tensor_set_f64(&one, 0, (double)state->extrapolation);
    }
    if (state->mode != MODE_NEAREST && (!number || row->bits < 8 || row->class_ == ORT_CLASS_BOOL))
        return ort_prep_unsupported_dtype(p, 0, err);
    return ORT_OK;
}

/* ---- shape and run */

typedef struct resize_plan {
    ort_move_map map;      /* nearest */
    ort_resample resample; /* otherwise */
} resize_plan;

/* *wrong stays NULL when only memory is missing. */
static resize_plan *resize_plan_make(const resize_state *state, const resize_numbers *n,
                                     const ort_tensor *in, const ort_tensor *out,
                                     ort_resample_alloc *alloc, void *arg, const char **wrong)
{
    ort_resample_axis axes[ORT_MAX_RANK];
    resize_plan *plan = alloc(arg, sizeof *plan);
    if (!plan)
        return NULL;
    memset(plan, 0, sizeof *plan);
    *wrong = resize_axes(state, n, &in->shape, axes);
    for (int d = 0; d < in->shape.rank && !*wrong; d++)
        if (axes[d].out != out->shape.dim[d])
            *wrong = "scales or sizes changed since the output was planned";
    if (*wrong)
        return NULL;
    plan->map.fill = state->fill;
    if (ort_tensor_count(out) == 0)
        return plan;
    for (int d = 0; d < in->shape.rank; d++) {
        if (!ort_resample_needed(state->kind.coordinate, &axes[d]))
            continue;
        if (state->mode == MODE_NEAREST) {
            int64_t *index = alloc(arg, (size_t)axes[d].out * sizeof *index);
            if (!index)
                return NULL;
            ort_resample_nearest(state->kind.coordinate, state->rounding, &axes[d], index);
            plan->map.axis[d] = index;
        } else if (!ort_resample_add(&plan->resample, d, &state->kind, &axes[d], alloc, arg)) {
            return NULL;
        }
    }
    ort_resample_layout(&plan->resample, &in->shape, &out->shape, in->dtype);
    return plan;
}

static void *arena_alloc(void *arg, size_t bytes)
{
    return ort_arena_alloc(arg, bytes);
}

static void *call_alloc(void *arg, size_t bytes)
{
    return ort_call_alloc(arg, bytes);
}

static const ort_tensor *shaping_input(const ort_shaping *s, int input, bool *missing)
{
    const ort_tensor *t = input >= 0 && input < s->in_count ? s->in[input] : NULL;
    if (t && !t->data && ort_tensor_count(t) > 0)
        *missing = true;
    return t;
}

static ort_status resize_shape(ort_shaping *s, ort_error *err)
{
    const resize_state *state = s->state;
    bool missing = false;
    const char *wrong = NULL;
    const ort_tensor *scales = shaping_input(s, state->scales_input, &missing);
    const ort_tensor *sizes = shaping_input(s, state->sizes_input, &missing);
    const ort_tensor *roi = shaping_input(s, state->roi_input, &missing);
    if (missing)
        return ORT_OK; /* run makes the tables */
    resize_numbers n = numbers_of(state, scales, sizes, roi);
    resize_plan *plan = resize_plan_make(state, &n, s->in[0], s->out[0], arena_alloc, s->arena,
                                         &wrong);
    if (wrong)
        return ort_error_set(err, ORT_ERROR_RUN, "%s", wrong);
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    s->plan_state = plan;
    s->thread_bytes = plan->resample.scratch_bytes;
    return ORT_OK;
}

static const ort_tensor *optional_input(const ort_call *call, int input)
{
    return input < 0 ? NULL : ort_call_in(call, input);
}

static ort_status resize_run(ort_call *call, ort_error *err)
{
    const resize_state *state = call->state;
    const resize_plan *plan = call->plan_state;
    const ort_tensor *in = ort_call_in(call, 0);
    ort_tensor *out = ort_call_out(call, 0);
    void *scratch = call->thread_space;
    size_t stride = call->thread_bytes;
    ort_pool *pool = call->pool;
    if (!plan) {
        const char *wrong = NULL;
        resize_numbers n = numbers_of(state, optional_input(call, state->scales_input),
                                      optional_input(call, state->sizes_input),
                                      optional_input(call, state->roi_input));
        plan = resize_plan_make(state, &n, in, out, call_alloc, call, &wrong);
        if (wrong)
            return ort_call_fail(call, err, "%s", wrong);
        if (!plan)
            return ort_error_memory(err, sizeof *plan);
        stride = ort_round_up(plan->resample.scratch_bytes, 64);
        scratch = ort_call_alloc(call, stride * (size_t)(pool ? ort_pool_threads(pool) : 1));
        if (!scratch)
            return ort_error_memory(err, stride);
    }
    if (state->mode == MODE_NEAREST) {
        ort_move_mapped(in, out, &plan->map, pool);
        return ORT_OK;
    }
    ort_resample_run(&plan->resample, in, out, scratch, stride, pool);
    ort_resample_extrapolate(&plan->resample, out, state->extrapolation);
    return ORT_OK;
}

static const ort_op_impl resize_impl = {
    .state = sizeof(resize_state), .bind = resize_bind, .rule = "- [_] [_] [_]",
    .infer = resize_infer, .prepare = resize_prepare, .shape = resize_shape, .run = resize_run,
};

const ort_op ort_ops_resize[] = {
    {ONNX, "Resize", 10, "X:T,scales:f32 -> Y:T", "T:F,I,U,C,str,bool", "mode:s=nearest",
     0, &resize_impl},
    {ONNX, "Resize", 11, "X:T1,roi:T2,scales:f32,sizes?:i64 -> Y:T1", "T1:F,I,U,C,str,bool T2:F",
     "coordinate_transformation_mode:s=half_pixel cubic_coeff_a:f=-0.75 exclude_outside:i=0 "
     "extrapolation_value:f=0 mode:s=nearest nearest_mode:s=round_prefer_floor", 0, &resize_impl},
    {ONNX, "Resize", 13, "X:T1,roi?:T2,scales?:f32,sizes?:i64 -> Y:T1",
     "T1:F,I,U,C,bf16,str,bool T2:F",
     "coordinate_transformation_mode:s=half_pixel cubic_coeff_a:f=-0.75 exclude_outside:i=0 "
     "extrapolation_value:f=0 mode:s=nearest nearest_mode:s=round_prefer_floor", 0, &resize_impl,
     .history = "18:+antialias:i=0 +axes:is +keep_aspect_ratio_policy:s=stretch 19"},
    {ONNX, "Upsample", 1, "X:T -> Y:T", "T:F,bool,i32,i64",
     "height_scale:f! mode:s=nearest width_scale:f!", 0, &resize_impl, .variant = UPSAMPLE},
    {ONNX, "Upsample", 7, "X:T -> Y:T", "T:F,I,U,C,str,bool", "mode:s=nearest scales:fs!",
     0, &resize_impl, .variant = UPSAMPLE},
    {ONNX, "Upsample", 9, "X:T,scales:f32 -> Y:T", "T:F,I,U,C,str,bool", "mode:s=nearest",
     0, &resize_impl, .variant = UPSAMPLE},
    {ONNX, "Upsample", 10, "X:T,scales:f32 -> Y:T", "T:F,I,U,C,str,bool", "mode:s=nearest",
     ORT_TRAIT_DEPRECATED, &resize_impl, .variant = UPSAMPLE},
    {0},
};
