/* roi.c - RoiAlign, MaxRoiPool and CropAndResize: regions of interest to grids of fixed size.
 *
 * A task is one region. Elements of the first two are read as double and rounded once.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/op.h"

typedef struct roi_state {
    int64_t height, width, sampling;
    ort_ints pooled; /* height and width of MaxRoiPool */
    float scale;
    bool max, half_pixel;
} roi_state;

typedef struct roi_run {
    const roi_state *s;
    const ort_tensor *x, *rois, *batch; /* batch NULL: element 0 of each region says it */
    ort_tensor *y;
    int64_t images, channels, height, width;
} roi_run;

static double value_at(const ort_tensor *t, int64_t i)
{
    return t->dtype == ORT_DTYPE_FLOAT ? (double)((const float *)t->data)[i]
                                       : ort_tensor_get_f64(t, i);
}

static void put(ort_tensor *t, int64_t i, double value)
{
    if (t->dtype == ORT_DTYPE_FLOAT)
        ((float *)t->data)[i] = (float)value;
    else
        ort_tensor_set_f64(t, i, value);
}

/* ---- RoiAlign */

static ort_status align_infer(ort_infer *x, ort_error *err)
{
    int64_t height = ort_node_attr_int(x->node, "output_height");
    int64_t width = ort_node_attr_int(x->node, "output_width");
    if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX)
        return ort_infer_fail(x, err, "attributes output_height and output_width are %lld and %lld",
                              (long long)height, (long long)width);
    return ORT_OK;
}

static const ort_bind align_bind[] = {
    ORT_BIND_AS(roi_state, height, "output_height"),
    ORT_BIND_AS(roi_state, width, "output_width"),
    ORT_BIND_AS(roi_state, sampling, "sampling_ratio", ORT_WITHIN(0, INT32_MAX)),
    ORT_BIND_AS(roi_state, scale, "spatial_scale"),
    ORT_BIND_AS(roi_state, max, "mode", ORT_WORDS("avg max")),
    ORT_BIND_AS(roi_state, half_pixel, "coordinate_transformation_mode",
                ORT_WORDS("output_half_pixel half_pixel"), ORT_MAYBE),
    {0}};

static ort_status align_prepare(ort_prep *p, ort_error *err)
{
    return ort_prep_need_real(p, 0, err);
}

/* The four neighbours of a sample and their weights; all weights zero outside the image. */
typedef struct corners {
    int64_t at[4];
    double weight[4];
} corners;

static corners locate(double y, double x, int64_t height, int64_t width)
{
    corners c = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    if (!(y >= -1.0 && y <= (double)height && x >= -1.0 && x <= (double)width) || !height || !width)
        return c;
    y = y < 0 ? 0 : y;
    x = x < 0 ? 0 : x;
    int64_t y0 = ort_min_i64((int64_t)y, height - 1), x0 = ort_min_i64((int64_t)x, width - 1);
    int64_t y1 = ort_min_i64(y0 + 1, height - 1), x1 = ort_min_i64(x0 + 1, width - 1);
    double ly = y0 == height - 1 ? 0 : y - (double)y0, lx = x0 == width - 1 ? 0 : x - (double)x0;
    c.at[0] = y0 * width + x0;
    c.at[1] = y0 * width + x1;
    c.at[2] = y1 * width + x0;
    c.at[3] = y1 * width + x1;
    c.weight[0] = (1 - ly) * (1 - lx);
    c.weight[1] = (1 - ly) * lx;
    c.weight[2] = ly * (1 - lx);
    c.weight[3] = ly * lx;
    return c;
}

typedef struct region {
    double y, x, bin_height, bin_width; /* start, and size of one output element */
    int64_t grid_y, grid_x;             /* samples of one output element */
} region;

enum { SAMPLE_STEPS = 20 };

static double sample_bin(const roi_run *r, const region *g, int64_t plane, int64_t oy, int64_t ox,
                         ort_pace *pace)
{
    double sum = 0.0;
    for (int64_t iy = 0; iy < g->grid_y; iy++)
        for (int64_t ix = 0; ix < g->grid_x; ix++) {
            if (ort_pace_over(pace, SAMPLE_STEPS))
                return 0.0;
            double y = g->y + g->bin_height * ((double)oy + ((double)iy + 0.5) / (double)g->grid_y);
            double x = g->x + g->bin_width * ((double)ox + ((double)ix + 0.5) / (double)g->grid_x);
            corners c = locate(y, x, r->height, r->width);
            double part[4];
            for (int i = 0; i < 4; i++)
                part[i] = c.weight[i] == 0 ? 0 : c.weight[i] * value_at(r->x, plane + c.at[i]);
            if (!r->s->max) {
                sum += part[0] + part[1] + part[2] + part[3];
                continue;
            }
            /* ONNX defines "max" over the weighted neighbours, not over interpolated values. */
            double top = fmax(fmax(part[0], part[1]), fmax(part[2], part[3]));
            sum = iy == 0 && ix == 0 ? top : fmax(sum, top);
        }
    double count = (double)ort_max_i64(g->grid_y * g->grid_x, 1);
    return r->s->max ? sum : sum / count;
}

static void task_align(void *arg, size_t task, int thread)
{
    const roi_run *r = arg;
    const roi_state *s = r->s;
    int64_t roi = (int64_t)task, image = ((const int64_t *)r->batch->data)[roi];
    double offset = s->half_pixel ? 0.5 : 0.0, edge[4];
    for (int i = 0; i < 4; i++)
        edge[i] = value_at(r->rois, roi * 4 + i) * (double)s->scale - offset;
    double width = edge[2] - edge[0], height = edge[3] - edge[1];
    if (!s->half_pixel) {
        width = fmax(width, 1.0);
        height = fmax(height, 1.0);
    }
    region g = {edge[1], edge[0], height / (double)s->height, width / (double)s->width, s->sampling,
                s->sampling};
    if (s->sampling == 0) { /* as many samples as pixels, within reason for hostile regions */
        g.grid_y = (int64_t)fmin(fmax(ceil(g.bin_height), 0.0), 4096.0);
        g.grid_x = (int64_t)fmin(fmax(ceil(g.bin_width), 0.0), 4096.0);
    }
    int64_t out = roi * r->channels * s->height * s->width, pixels = r->height * r->width;
    ort_pace pace = {0};
    for (int64_t c = 0; c < r->channels; c++)
        for (int64_t oy = 0; oy < s->height && !pace.over; oy++)
            for (int64_t ox = 0; ox < s->width && !pace.over; ox++)
                put(r->y, out++,
                    sample_bin(r, &g, (image * r->channels + c) * pixels, oy, ox, &pace));
}

static ort_status fill_run(ort_call *call, roi_run *r, int64_t columns, ort_error *err)
{
    r->s = call->state;
    r->x = ort_call_in(call, 0);
    r->rois = ort_call_in(call, 1);
    r->y = ort_call_out(call, 0);
    if (r->x->shape.rank != 4 || r->rois->shape.rank != 2 || r->rois->shape.dim[1] != columns)
        return ort_call_fail(call, err, "X needs rank 4 and rois %lld columns", (long long)columns);
    r->images = r->x->shape.dim[0];
    r->channels = r->x->shape.dim[1];
    r->height = r->x->shape.dim[2];
    r->width = r->x->shape.dim[3];
    return ORT_OK;
}

static ort_status align_run(ort_call *call, ort_error *err)
{
    roi_run r;
    ORT_TRY(fill_run(call, &r, 4, err));
    r.batch = ort_call_in(call, 2);
    int64_t count = r.rois->shape.dim[0];
    if (ort_tensor_count(r.batch) != count)
        return ort_call_fail(call, err, "batch_indices needs %lld elements", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        int64_t image = ((const int64_t *)r.batch->data)[i];
        if (image < 0 || image >= r.images)
            return ort_call_fail(call, err, "batch_indices[%lld] is %lld, there are %lld images",
                                 (long long)i, (long long)image, (long long)r.images);
    }
    if (r.y)
        ort_call_parallel(call, (size_t)count, task_align, &r);
    return ORT_OK;
}

/* ---- MaxRoiPool */

static ort_status max_infer(ort_infer *x, ort_error *err)
{
    size_t count = 0;
    const int64_t *shape = ort_node_ints(x->node, "pooled_shape", &count);
    if (count != 2 || shape[0] < 1 || shape[1] < 1 || shape[0] > INT32_MAX || shape[1] > INT32_MAX)
        return ort_infer_fail(x, err, "attribute pooled_shape needs two positive numbers");
    return ORT_OK;
}

static const ort_bind max_bind[] = {
    ORT_BIND_AS(roi_state, pooled, "pooled_shape"),
    ORT_BIND_AS(roi_state, scale, "spatial_scale"), {0}};

static ort_status max_prepare(ort_prep *p, ort_error *err)
{
    roi_state *s = p->state;
    s->height = s->pooled.ptr[0];
    s->width = s->pooled.ptr[1];
    return ort_prep_need_real(p, 0, err);
}

/* Pixels [*first, *last) of bin `index` of `bins` over a region that starts at `start`. */
static void bin_range(double start, double size, int64_t bins, int64_t index, int64_t limit,
                      int64_t *first, int64_t *last)
{
    double bin = (double)((float)size / (float)bins); /* as floats, like other runtimes */
    double low = (double)floorf((float)((double)index * bin)) + start;
    double high = (double)ceilf((float)((double)(index + 1) * bin)) + start;
    *first = (int64_t)fmin(fmax(low, 0.0), (double)limit);
    *last = (int64_t)fmin(fmax(high, 0.0), (double)limit);
}

static void task_max(void *arg, size_t task, int thread)
{
    const roi_run *r = arg;
    const roi_state *s = r->s;
    int64_t roi = (int64_t)task, image = (int64_t)value_at(r->rois, roi * 5);
    double edge[4];
    for (int i = 0; i < 4; i++)
        edge[i] = (double)roundf((float)value_at(r->rois, roi * 5 + 1 + i) * s->scale);
    double width = fmax(edge[2] - edge[0] + 1, 1), height = fmax(edge[3] - edge[1] + 1, 1);
    int64_t out = roi * r->channels * s->height * s->width;
    ort_pace pace = {0};
    for (int64_t c = 0; c < r->channels; c++)
        for (int64_t oy = 0; oy < s->height; oy++)
            for (int64_t ox = 0; ox < s->width; ox++, out++) {
                int64_t y0, y1, x0, x1, plane = (image * r->channels + c) * r->height * r->width;
                bin_range(edge[1], height, s->height, oy, r->height, &y0, &y1);
                bin_range(edge[0], width, s->width, ox, r->width, &x0, &x1);
                double top = y0 < y1 && x0 < x1 ? -INFINITY : 0.0;
                if (ort_pace_over(&pace, (uint64_t)((y1 - y0 + 1) * (x1 - x0 + 1))))
                    return;
                for (int64_t y = y0; y < y1; y++)
                    for (int64_t x = x0; x < x1; x++)
                        top = fmax(top, value_at(r->x, plane + y * r->width + x));
                put(r->y, out, top);
            }
}

static ort_status max_run(ort_call *call, ort_error *err)
{
    roi_run r;
    ORT_TRY(fill_run(call, &r, 5, err));
    for (int64_t i = 0; i < r.rois->shape.dim[0]; i++) {
        double image = value_at(r.rois, i * 5);
        if (!(image >= 0 && image < (double)r.images))
            return ort_call_fail(call, err, "region %lld is of image %g, there are %lld",
                                 (long long)i, image, (long long)r.images);
    }
    if (r.y)
        ort_call_parallel(call, (size_t)r.rois->shape.dim[0], task_max, &r);
    return ORT_OK;
}

/* ---- CropAndResize of com.microsoft: regions [y1, x1, y2, x2], corners of 0 to 1 on the pixels'
 * centers; what lies outside the image is extrapolation_value */

typedef struct crop_state {
    float outside;
    bool nearest;
} crop_state;

static const ort_bind crop_bind[] = {
    ORT_BIND_AS(crop_state, outside, "extrapolation_value"),
    ORT_BIND_AS(crop_state, nearest, "mode", ORT_WORDS("bilinear nearest")), {0}};

typedef struct crop_run {
    const crop_state *s;
    roi_run r;
    int64_t height, width;
} crop_run;

static ort_status crop_infer(ort_infer *x, ort_error *err)
{
    ort_dim out[4] = {ort_infer_dim(x, 1, 0), ort_infer_dim(x, 0, 1), ort_dim_unknown(),
                      ort_dim_unknown()};
    char text[41];
    const char *mode = ort_node_attr_text(x->node, "mode", text, sizeof text);
    if (strcmp(mode, "bilinear") && strcmp(mode, "nearest"))
        return ort_infer_fail(x, err, "mode '%s' is none of bilinear and nearest", mode);
    for (int i = 0; i < 2; i++)
        if (!ort_infer_int(x, 3, i, &out[2 + i]))
            out[2 + i] = ort_dim_unknown();
        else if (ort_dim_known(out[2 + i]) && out[2 + i].size < 1)
            return ort_infer_fail(x, err, "crop_size needs two positive numbers");
    ort_infer_set_shape(x, 0, 4, out);
    return ORT_OK;
}

/* Where output row (or column) `index` of `count` lies in the image; both ends are exact. */
static float crop_at(float start, float end, int64_t size, int64_t count, int64_t index)
{
    float last = (float)(size - 1);
    if (count == 1)
        return (float)(0.5 * (double)(start + end) * (double)last);
    if (index == count - 1)
        return end * last;
    float step = (end - start) * last / (float)(count - 1);
    return start * last + (float)index * step;
}

static float crop_value(const crop_run *c, const float *plane, float y, float x)
{
    int64_t width = c->r.width;
    if (!(y >= 0 && y <= (float)(c->r.height - 1) && x >= 0 && x <= (float)(width - 1)))
        return c->s->outside;
    if (c->s->nearest)
        return plane[(int64_t)roundf(y) * width + (int64_t)roundf(x)];
    int64_t top = (int64_t)floorf(y), bottom = (int64_t)ceilf(y);
    int64_t left = (int64_t)floorf(x), right = (int64_t)ceilf(x);
    float down = y - (float)top, across = x - (float)left;
    const float *upper = plane + top * width, *lower = plane + bottom * width;
    float a = upper[left] + (upper[right] - upper[left]) * across;
    float b = lower[left] + (lower[right] - lower[left]) * across;
    return a + (b - a) * down;
}

static void task_crop(void *arg, size_t task, int thread)
{
    const crop_run *c = arg;
    const roi_run *r = &c->r;
    const float *roi = (const float *)r->rois->data + task * 4;
    int64_t image = ort_tensor_get_i64(r->batch, (int64_t)task);
    float *out = (float *)r->y->data + (int64_t)task * r->channels * c->height * c->width;
    for (int64_t k = 0; k < r->channels; k++) {
        const float *plane = (const float *)r->x->data +
                             (image * r->channels + k) * r->height * r->width;
        for (int64_t oy = 0; oy < c->height; oy++)
            for (int64_t ox = 0; ox < c->width; ox++)
                *out++ = crop_value(c, plane, crop_at(roi[0], roi[2], r->height, c->height, oy),
                                    crop_at(roi[1], roi[3], r->width, c->width, ox));
    }
}

static ort_status crop_run_(ort_call *call, ort_error *err)
{
    crop_run c = {.s = call->state};
    const ort_tensor *images = ort_call_in(call, 2);
    ORT_TRY(fill_run(call, &c.r, 4, err));
    c.r.batch = images;
    int64_t rois = c.r.rois->shape.dim[0];
    if (ort_tensor_count(images) != rois)
        return ort_call_fail(call, err, "%lld regions and %lld batch_indices", (long long)rois,
                             (long long)ort_tensor_count(images));
    for (int64_t i = 0; i < rois; i++) {
        int64_t image = ort_tensor_get_i64(images, i);
        if (image < 0 || image >= c.r.images)
            return ort_call_fail(call, err, "region %lld is of image %lld, there are %lld",
                                 (long long)i, (long long)image, (long long)c.r.images);
    }
    if (!c.r.y)
        return ORT_OK;
    c.height = c.r.y->shape.dim[2];
    c.width = c.r.y->shape.dim[3];
    ort_call_parallel(call, (size_t)rois, task_crop, &c);
    return ORT_OK;
}

static const ort_op_impl crop_impl = {
    .state = sizeof(crop_state), .bind = crop_bind, .rule = "[_,_,_,_] [_,_] [_]",
    .infer = crop_infer, .run = crop_run_,
};

static const ort_op_impl align_impl = {
    .state = sizeof(roi_state), .bind = align_bind,
    .rule = "[_,C,_,_] [N,_] [N] -> [N,C,output_height,output_width]",
    .infer = align_infer, .prepare = align_prepare, .run = align_run,
};
static const ort_op_impl max_impl = {
    .state = sizeof(roi_state), .bind = max_bind,
    .rule = "[_,C,_,_] [N,_] -> [N,C,pooled_shape..]",
    .infer = max_infer, .prepare = max_prepare, .run = max_run,
};

#define ALIGN_SIG "X:T1,rois:T1,batch_indices:T2 -> Y:T1"
#define ALIGN_ATTRS                                                                                \
    "mode:s=avg output_height:i=1 output_width:i=1 sampling_ratio:i=0 spatial_scale:f=1"

const ort_op ort_ops_roi[] = {
    {ONNX, "RoiAlign", 10, ALIGN_SIG, "T1:F T2:i64", ALIGN_ATTRS, 0, &align_impl,
     .history = "16:+coordinate_transformation_mode:s=half_pixel 22:T1+bf16"},
    {ONNX, "MaxRoiPool", 1, "X:T,rois:T -> Y:T", "T:F", "pooled_shape:is! spatial_scale:f=1", 0,
     &max_impl, .history = "22:T+bf16"},
    {MS, "CropAndResize", 1, "X:T1,rois:T1,batch_indices:T2,crop_size:T2 -> Y:T1", "T1:f32 T2:i32",
     "extrapolation_value:f=0 mode:s=bilinear", 0, &crop_impl},
    {0},
};
