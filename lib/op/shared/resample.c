/* resample.c - see resample.h. Coordinates are formed in float, in the order of operations that
 * Resize's users compute them in: nearest neighbours depend on the last bit. */
#include "op/shared/resample.h"

#pragma GCC optimize("O3") /* vectorize the passes */

#include <math.h>
#include <string.h>

#include "base/checked.h"

enum { TASK_ELEMENTS = 32 * 1024 };

/* ---- coordinates and tables */

/* Original coordinate of output index i in float, as Resize is computed everywhere. */
static float original_coordinate(ort_coordinate mode, const ort_resample_axis *a, int64_t i)
{
    float x = (float)i, in = (float)a->in, width = a->width;
    switch (mode) {
    case ORT_COORD_ASYMMETRIC:
        return x / a->scale;
    case ORT_COORD_TF_HALF_PIXEL_FOR_NN:
        return (x + 0.5f) / a->scale;
    case ORT_COORD_PYTORCH_HALF_PIXEL:
        return a->out > 1 ? (x + 0.5f) / a->scale - 0.5f : 0.0f;
    case ORT_COORD_ALIGN_CORNERS:
        return a->out <= 1 || width == 1.0f ? 0.0f : x * (in - 1) / (width - 1);
    case ORT_COORD_TF_CROP_AND_RESIZE:
        return a->out > 1 ? a->roi_start * (in - 1) +
                                x * (a->roi_end - a->roi_start) * (in - 1) /
                                    (float)(a->out - 1)
                          : 0.5f * (a->roi_start + a->roi_end) * (in - 1);
    case ORT_COORD_HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - (float)a->out / width) + (x + 0.5f) / a->scale - 0.5f;
    default:
        return (x + 0.5f) / a->scale - 0.5f;
    }
}

bool ort_resample_needed(ort_coordinate mode, const ort_resample_axis *a)
{
    if (mode == ORT_COORD_TF_CROP_AND_RESIZE && (a->roi_start != 0.0f || a->roi_end != 1.0f))
        return true;
    return a->in != a->out || a->scale != 1.0f;
}

static float round_nearest(ort_rounding rounding, float x, float scale)
{
    switch (rounding) {
    case ORT_ROUND_FLOOR:
        return floorf(x);
    case ORT_ROUND_CEIL:
        return ceilf(x);
    case ORT_ROUND_SIMPLE:
        return scale < 1 ? ceilf(x) : floorf(x);
    case ORT_ROUND_PREFER_CEIL:
        return roundf(x);
    default: /* exactly half goes down */
        return x == floorf(x) + 0.5f ? floorf(x) : roundf(x);
    }
}

void ort_resample_nearest(ort_coordinate mode, ort_rounding rounding,
                          const ort_resample_axis *axis, int64_t *index)
{
    for (int64_t i = 0; i < axis->out; i++) {
        float x = original_coordinate(mode, axis, i);
        float last = (float)(axis->in - 1), at = round_nearest(rounding, x, axis->scale);
        bool outside = mode == ORT_COORD_TF_CROP_AND_RESIZE && !(x >= 0 && x <= last);
        index[i] = outside ? -1 : at >= last ? axis->in - 1 : at > 0 ? (int64_t)at : 0;
    }
}

/* Weight of a sample at distance d of the (stretched) filter. */
static double filter(const ort_resample_kind *kind, double d)
{
    double a = (double)kind->cubic_a;
    d = fabs(d);
    if (!kind->cubic)
        return d < 1 ? 1 - d : 0;
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static void fill_taps(ort_resample_table *t, const ort_resample_kind *kind, int start,
                      double squeeze, double x, int64_t i)
{
    double base = ceil(x) - 1, ratio = x - base, sum = 0; /* ratio in (0, 1] */
    double *weight = t->weight64 + i * t->taps;
    int64_t *index = t->index + i * t->taps;
    base = base < -1e9 ? -1e9 : base > 1e15 ? 1e15 : base;
    for (int k = 0; k < t->taps; k++) {
        int64_t at = (int64_t)base + start + k;
        weight[k] = filter(kind, ((double)(start + k) - ratio) * squeeze);
        if (kind->exclude_outside && (at < 0 || at >= t->in))
            weight[k] = 0;
        index[k] = ort_max_i64(0, ort_min_i64(t->in - 1, at));
        sum += weight[k];
    }
    for (int k = 0; k < t->taps; k++) {
        if ((kind->exclude_outside || squeeze < 1) && sum != 0)
            weight[k] /= sum;
        t->weight[i * t->taps + k] = (float)weight[k];
    }
}

bool ort_resample_add(ort_resample *plan, int axis_number, const ort_resample_kind *kind,
                      const ort_resample_axis *axis, ort_resample_alloc *alloc, void *arg)
{
    ort_resample_table *t = &plan->table[plan->table_count];
    double squeeze = kind->antialias && axis->scale < 1 ? (double)axis->scale : 1.0;
    double reach = kind->cubic ? 2 : 1;
    if (reach / squeeze > 1e8)
        return false;
    int start = (int)floor(-reach / squeeze) + 1;
    size_t count, bytes;
    bool crop = kind->coordinate == ORT_COORD_TF_CROP_AND_RESIZE;
    t->axis = axis_number;
    t->in = axis->in;
    t->out = axis->out;
    t->taps = 2 - 2 * start;
    if (!ort_mul_size((size_t)t->out, (size_t)t->taps, &count) ||
        !ort_mul_size(count, sizeof(int64_t) + sizeof(double) + sizeof(float), &bytes))
        return false;
    t->index = alloc(arg, bytes + (size_t)t->out);
    if (!t->index)
        return false;
    t->weight64 = (double *)(t->index + count);
    t->weight = (float *)(t->weight64 + count);
    t->outside = crop ? (uint8_t *)(t->weight + count) : NULL;
    for (int64_t i = 0; i < t->out; i++) {
        float x = original_coordinate(kind->coordinate, axis, i);
        if (crop)
            t->outside[i] = !(x >= 0 && x <= (float)(t->in - 1));
        fill_taps(t, kind, start, squeeze, isfinite(x) ? (double)x : 0, i);
    }
    plan->table_count++;
    return true;
}

/* ---- tasks */

static bool uses_double(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_DOUBLE || dtype == ORT_DTYPE_INT32 || dtype == ORT_DTYPE_UINT32 ||
           dtype == ORT_DTYPE_INT64 || dtype == ORT_DTYPE_UINT64;
}

/* Input rows [*low, *high] of the first axis that output rows [j, end) read. */
static void block_rows(const ort_resample_table *t, int64_t j, int64_t end, bool all, int64_t *low,
                       int64_t *high)
{
    *low = all ? 0 : t->in - 1;
    *high = all ? t->in - 1 : 0;
    for (int64_t i = j * t->taps; i < end * t->taps && !all; i++) {
        *low = ort_min_i64(*low, t->index[i]);
        *high = ort_max_i64(*high, t->index[i]);
    }
}

void ort_resample_layout(ort_resample *plan, const ort_shape *in, const ort_shape *out,
                         ort_dtype dtype)
{
    const ort_resample_table *first = &plan->table[0];
    int64_t rows = 0, widest = 0;
    if (plan->table_count == 0 || ort_shape_count(out) == 0)
        return;
    plan->outer = ort_shape_count_range(in, 0, first->axis);
    plan->rest_in = ort_shape_count_range(in, first->axis + 1, in->rank);
    plan->rest_out = ort_shape_count_range(out, first->axis + 1, out->rank);
    plan->bilinear = plan->table_count == 2 && plan->table[1].axis == in->rank - 1 &&
                     first->axis == in->rank - 2 && first->taps == 2 && plan->table[1].taps == 2 &&
                     first->in > first->out && plan->rest_out > 1;
    plan->block = ort_max_i64(4, TASK_ELEMENTS / ort_max_i64(1, plan->rest_out));
    if (plan->block > first->out || plan->rest_out == 1)
        plan->block = first->out;
    plan->blocks = (first->out + plan->block - 1) / plan->block;
    for (int64_t b = 0; b < plan->blocks; b++) {
        int64_t low, high, end = ort_min_i64((b + 1) * plan->block, first->out);
        block_rows(first, b * plan->block, end, plan->rest_out == 1, &low, &high);
        rows = ort_max_i64(rows, high - low + 1);
    }
    int64_t width = plan->rest_in;
    for (int k = plan->table_count - 1; k > 0; k--) {
        width = width / plan->table[k].in * plan->table[k].out;
        widest = ort_max_i64(widest, width);
    }
    plan->slab = rows * plan->rest_in;
    plan->stage = rows * widest;
    plan->scratch_bytes =
        (size_t)(plan->slab + 2 * plan->stage +
                 (plan->rest_out == 1 ? first->out : plan->rest_out)) *
        (uses_double(dtype) ? sizeof(double) : sizeof(float));
}

typedef struct run_job {
    const ort_resample *plan;
    const ort_tensor *in;
    ort_tensor *out;
    void *scratch;
    size_t stride;
    bool direct; /* the elements are the working type */
} run_job;

/* Nearest integer (halves to even) within the type's bounds. */
static void store_integer(ort_tensor *out, int64_t at, double v)
{
    const ort_dtype_row *row = ort_dtype_get(out->dtype);
    bool is_signed = row->class_ == ORT_CLASS_INT;
    v = rint(v);
    double high = ldexp(1.0, row->bits - (is_signed ? 1 : 0)), low = is_signed ? -high : 0;
    if (!(v > low)) {
        ort_tensor_set_i64(out, at, isnan(v) ? 0 : is_signed ? INT64_MIN >> (64 - row->bits) : 0);
    } else if (v >= high) {
        ort_tensor_set_i64(out, at, is_signed ? INT64_MAX >> (64 - row->bits) : -1);
    } else if (v >= 9223372036854775808.0) {
        ort_tensor_set_i64(out, at, (int64_t)(uint64_t)v);
    } else {
        ort_tensor_set_i64(out, at, (int64_t)v);
    }
}

static void load_bytes(const void *in, bool is_signed, int64_t count, float *to)
{
    const uint8_t *u = in;
    const int8_t *s = in;
    if (is_signed)
        for (int64_t i = 0; i < count; i++)
            to[i] = (float)s[i];
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = (float)u[i];
}

/* As store_integer, of numbers whose last bits go when 1.5 * 2^23 is added. */
static void store_bytes(const float *from, bool is_signed, int64_t count, uint8_t *to)
{
    const float low = is_signed ? -128.0f : 0.0f, high = low + 255.0f, whole = 0x1.8p23f;
    for (int64_t i = 0; i < count; i++) {
        float v = from[i] > low ? from[i] : low;
        v = v < high ? v : high;
        to[i] = (uint8_t)(int)((v + whole) - whole);
    }
}

static bool is_byte(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_UINT8 || dtype == ORT_DTYPE_INT8;
}

static void load_f32(const ort_tensor *in, int64_t first, int64_t count, float *to)
{
    if (is_byte(in->dtype)) {
        load_bytes((const uint8_t *)in->data + first, in->dtype == ORT_DTYPE_INT8, count, to);
        return;
    }
    ort_tensor_to_f32(in, first, count, to);
}

static void store_f32(const float *from, ort_tensor *out, int64_t first, int64_t count)
{
    if (ort_dtype_get(out->dtype)->class_ == ORT_CLASS_FLOAT) {
        ort_tensor_from_f32(from, out, first, count);
        return;
    }
    if (is_byte(out->dtype)) {
        store_bytes(from, out->dtype == ORT_DTYPE_INT8, count, (uint8_t *)out->data + first);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        store_integer(out, first + i, (double)from[i]);
}

static void load_f64(const ort_tensor *in, int64_t first, int64_t count, double *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = ort_tensor_get_f64(in, first + i);
}

static void store_f64(const double *from, ort_tensor *out, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        store_integer(out, first + i, from[i]);
}

#define REAL float
#define NAME(x) x##_f32
#define WEIGHT weight
#include "op/shared/resample.inc"
#undef REAL
#undef NAME
#undef WEIGHT
#define REAL double
#define NAME(x) x##_f64
#define WEIGHT weight64
#include "op/shared/resample.inc"

void ort_resample_run(const ort_resample *plan, const ort_tensor *in, ort_tensor *out,
                      void *scratch, size_t scratch_stride, ort_pool *pool)
{
    run_job job = {plan, in, out, scratch, scratch_stride,
                   in->dtype == ORT_DTYPE_FLOAT || in->dtype == ORT_DTYPE_DOUBLE};
    if (ort_tensor_count(out) == 0)
        return;
    if (plan->table_count == 0) {
        ort_tensor_copy_data(out, in);
        return;
    }
    ort_pool_run(pool, (size_t)(plan->outer * plan->blocks),
                 uses_double(in->dtype) ? task_f64 : task_f32, &job);
}

void ort_resample_extrapolate(const ort_resample *plan, ort_tensor *out, float value)
{
    int64_t count = ort_tensor_count(out);
    for (int k = 0; k < plan->table_count; k++) {
        const ort_resample_table *t = &plan->table[k];
        int64_t inner = ort_shape_count_range(&out->shape, t->axis + 1, out->shape.rank);
        for (int64_t i = 0; t->outside && i < count; i++)
            if (t->outside[i / inner % t->out])
                ort_tensor_set_f64(out, i, (double)value);
    }
}
