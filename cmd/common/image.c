/* image.c - image geometry and the way from pixels to network input, as torchvision does it on PIL.
 *
 * An image is HxW, HxWxC or NxHxWxC in uint8 or float32 until --mean, --std, --float or --layout
 * turn it; CxHxW and NxCxHxW are told apart by where a dim of 1, 3 or 4 stands.
 */
#include "common/operations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fit.h"

typedef struct picture {
    int64_t batch, height, width, channels;
    bool planar;   /* channels before height */
    int rank;      /* of the value it came from */
} picture;

static bool is_channel_count(int64_t n) { return n == 1 || n == 3 || n == 4; }

static bool look(const ort_value *v, picture *p)
{
    const int64_t *d = ort_value_dims(v);
    int rank = ort_value_rank(v);
    if (ort_value_get_kind(v) != ORT_VALUE_TENSOR || rank < 2 || rank > 4 ||
        ort_value_count(v) == 0 || ort_value_dtype(v) == ORT_DTYPE_STRING)
        return false;
    *p = (picture){.batch = 1, .channels = 1, .rank = rank};
    if (rank == 2) {
        p->height = d[0];
        p->width = d[1];
        return true;
    }
    if (rank == 4)
        p->batch = d[0];
    d += rank == 4;
    /* Channels last unless only the first can be a channel count. */
    p->planar = !is_channel_count(d[2]) && is_channel_count(d[0]);
    p->height = d[p->planar ? 1 : 0];
    p->width = d[p->planar ? 2 : 1];
    p->channels = d[p->planar ? 0 : 2];
    return true;
}

static int new_picture(const picture *p, ort_dtype dtype, ort_value **out)
{
    ort_error err = {0};
    int64_t dims[4];
    int n = 0;
    if (p->rank == 4)
        dims[n++] = p->batch;
    if (p->rank >= 3 && p->planar)
        dims[n++] = p->channels;
    dims[n++] = p->height;
    dims[n++] = p->width;
    if (p->rank >= 3 && !p->planar)
        dims[n++] = p->channels;
    return ort_value_new_tensor(dtype, n, dims, out, &err) == ORT_OK ? 0 : tool_fail(&err);
}

/* Elements of less than a byte lie two or more in one. */
static bool has_bytes(const ort_value *v) { return ort_dtype_bits(ort_value_dtype(v)) % 8 == 0; }

/* As it is; through a number where the type changes. */
static void move_element(const ort_value *in, int64_t from, ort_value *out, int64_t to)
{
    size_t width = (size_t)ort_dtype_bits(ort_value_dtype(in)) / 8;
    if (ort_value_dtype(in) != ort_value_dtype(out) || !has_bytes(in))
        ort_value_set_double(out, to, ort_value_get_double(in, from));
    else
        memcpy((char *)ort_value_data(out) + (size_t)to * width,
               (const char *)ort_value_data((ort_value *)in) + (size_t)from * width, width);
}

static int parse_size(const operation *op, fit_size *size)
{
    return fit_parse_size(op->option, op->argument, size);
}

/* Every plane of `in` resized into one of `out`, by --filter. */
static int resize_planes(const operations *o, const ort_value *in, const picture *p, ort_value *out,
                         const picture *q)
{
    ort_dtype dtype = ort_value_dtype(in);
    size_t element = (size_t)ort_dtype_bits(dtype) / 8;
    int64_t planes = p->batch * (p->planar ? p->channels : 1);
    int64_t channels = p->planar ? 1 : p->channels;
    const char *filter = o->filter != NULL ? o->filter : "bilinear";
    int status = 0;
    if (!resample_known(filter))
        return tool_usage("--filter: '%s' is none of nearest, box, bilinear, hamming, bicubic, "
                          "lanczos", filter);
    for (int64_t k = 0; k < planes && status == 0; k++)
        status = resample((const char *)ort_value_data((ort_value *)in) +
                              (size_t)(k * p->height * p->width * channels) * element,
                          dtype, p->height, p->width, channels,
                          (char *)ort_value_data(out) +
                              (size_t)(k * q->height * q->width * channels) * element,
                          q->height, q->width, filter);
    return status;
}

static bool resizable(const ort_value *in, picture *p)
{
    return look(in, p) && (ort_value_dtype(in) == ORT_DTYPE_UINT8 ||
                           ort_value_dtype(in) == ORT_DTYPE_FLOAT);
}

int apply_resize(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    picture p, q;
    fit_size size;
    int status = parse_size(op, &size);
    if (status != 0)
        return status;
    if (!resizable(in, &p))
        return bad_value(op, in, "an image (HxW, HxWxC or CxHxW of uint8 or float)");
    q = p;
    q.height = size.height;
    q.width = size.width;
    if (size.width < 0) { /* the shorter side becomes the height given */
        double side = (double)size.height, h = (double)p.height, w = (double)p.width;
        q.width = h > w ? size.height : (int64_t)(side * w / h);
        q.height = h > w ? (int64_t)(side * h / w) : size.height;
    }
    if ((status = new_picture(&q, ort_value_dtype(in), out)) != 0)
        return status;
    return resize_planes(o, in, &p, *out, &q);
}

/* Copy the overlap of `in` placed at (top, left) of `out`. */
static void place(const ort_value *in, const picture *p, ort_value *out, const picture *q,
                  int64_t top, int64_t left)
{
    size_t element = (size_t)ort_dtype_bits(ort_value_dtype(in)) / 8;
    int64_t planes = p->batch * (p->planar ? p->channels : 1), c = p->planar ? 1 : p->channels;
    int64_t x0 = left > 0 ? left : 0;
    int64_t x1 = left + p->width < q->width ? left + p->width : q->width;
    for (int64_t k = 0; k < planes; k++)
        for (int64_t y = 0; y < q->height; y++) {
            int64_t sy = y - top;
            if (sy < 0 || sy >= p->height || x1 <= x0)
                continue;
            memcpy((char *)ort_value_data(out) +
                       (size_t)(((k * q->height + y) * q->width + x0) * c) * element,
                   (const char *)ort_value_data((ort_value *)in) +
                       (size_t)(((k * p->height + sy) * p->width + x0 - left) * c) * element,
                   (size_t)((x1 - x0) * c) * element);
        }
}

int apply_crop(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    picture p, q;
    fit_size size;
    int status = parse_size(op, &size);
    int64_t y = size.top, x = size.left;
    if (status != 0)
        return status;
    if (!look(in, &p) || !has_bytes(in))
        return bad_value(op, in, "an image of numbers, a byte or more each");
    q = p;
    q.height = size.height;
    q.width = size.width < 0 ? size.height : size.width;
    if (y < 0) { /* the centre; smaller images are padded with zeros, as torchvision does */
        y = (int64_t)nearbyint((double)(p.height - q.height) / 2);
        x = (int64_t)nearbyint((double)(p.width - q.width) / 2);
    } else if (y + q.height > p.height || x + q.width > p.width) {
        return bad_value(op, in, "a larger image");
    }
    if (y < 0 || x < 0)
        tool_warn("%s %s: the image is %lldx%lld: zeros fill what it lacks (--pad says with what)",
                  op->option, op->argument, (long long)p.height, (long long)p.width);
    if ((status = new_picture(&q, ort_value_dtype(in), out)) != 0)
        return status;
    place(in, &p, *out, &q, -y, -x);
    return 0;
}

/* A canvas of the size of `q`, in the colour of --fill. */
static int new_canvas(const operations *o, const picture *q, ort_dtype dtype, ort_value **out)
{
    double fill = 0;
    if (o->fill != NULL && option_parse_double("--fill", o->fill, &fill) != 0)
        return EXIT_USAGE;
    int status = new_picture(q, dtype, out);
    for (int64_t i = 0; status == 0 && fill != 0 && i < ort_value_count(*out); i++)
        ort_value_set_double(*out, i, fill);
    if (status == 0 && fill != 0 && !dtype_is_float(dtype) &&
        ort_value_get_double(*out, 0) != fill)
        status = tool_usage("--fill: '%s' is no %s, which the image is of", o->fill,
                            ort_dtype_name(dtype));
    return status;
}

int apply_pad(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    picture p, q;
    fit_size size;
    int status = parse_size(op, &size);
    if (status != 0)
        return status;
    int64_t width = size.width < 0 ? size.height : size.width;
    int64_t top = size.top < 0 ? 0 : size.top, left = size.left < 0 ? 0 : size.left;
    if (!look(in, &p) || !has_bytes(in))
        return bad_value(op, in, "an image of numbers, a byte or more each");
    if (top + p.height > size.height || left + p.width > width)
        return bad_value(op, in, "an image that is not larger, all of it inside");
    q = p;
    q.height = size.height;
    q.width = width;
    if ((status = new_canvas(o, &q, ort_value_dtype(in), out)) != 0)
        return status;
    place(in, &p, *out, &q, top, left);
    return 0;
}

int apply_letterbox(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    picture p, q, inner;
    fit_size size;
    fit f;
    ort_value *small = NULL;
    int status = parse_size(op, &size);
    if (status != 0)
        return status;
    if (!resizable(in, &p))
        return bad_value(op, in, "an image (HxW, HxWxC or CxHxW of uint8 or float)");
    if (!fit_plan(&f, p.height, p.width, &size, true))
        return bad_value(op, in, "a place inside the canvas");
    inner = q = p;
    inner.height = f.scaled_height;
    inner.width = f.scaled_width;
    q.height = f.canvas_height;
    q.width = f.canvas_width;
    status = new_picture(&inner, ort_value_dtype(in), &small);
    if (status == 0)
        status = resize_planes(o, in, &p, small, &inner);
    if (status == 0)
        status = new_canvas(o, &q, ort_value_dtype(in), out);
    if (status == 0)
        place(small, &inner, *out, &q, f.top, f.left);
    ort_value_free(small);
    return status;
}

/* Change between channels first and last, and the batch dimension. */
static int relayout(const ort_value *in, const picture *p, bool planar, int rank, ort_dtype dtype,
                    ort_value **out)
{
    picture q = *p;
    q.planar = planar;
    q.rank = rank;
    int status = new_picture(&q, dtype, out);
    int64_t area = p->height * p->width;
    for (int64_t b = 0; b < p->batch && status == 0; b++)
        for (int64_t c = 0; c < p->channels; c++)
            for (int64_t i = 0; i < area; i++) {
                int64_t base = b * p->channels * area;
                int64_t from = base + (p->planar ? c * area + i : i * p->channels + c);
                int64_t to = base + (planar ? c * area + i : i * p->channels + c);
                move_element(in, from, *out, to);
            }
    return status;
}

int apply_layout(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    picture p;
    static const struct {
        const char *name;
        bool planar;
        int rank;
    } layouts[] = {{"hwc", false, 3}, {"chw", true, 3}, {"nhwc", false, 4}, {"nchw", true, 4}};
    if (!look(in, &p))
        return bad_value(op, in, "an image");
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (!strcmp(layouts[i].name, op->argument)) {
            if (layouts[i].rank == 3 && p.batch != 1)
                return bad_value(op, in, "a batch of one");
            return relayout(in, &p, layouts[i].planar, layouts[i].rank, ort_value_dtype(in), out);
        }
    return tool_usage("--layout: '%s' is none of hwc, chw, nhwc, nchw", op->argument);
}

/* Numbers for pixels of 0 to 255, which are 0 to 1 here, and divisors that are none. */
static int check_normal(const operations *o, bool bytes, const double *mean, const double *std)
{
    for (int i = 0; i < 16; i++) {
        if (std[i] == 0)
            return tool_usage("--std: '%s' would divide by 0", o->std);
        if (bytes && fabs(mean[i]) > 1)
            return tool_usage("--mean: '%s' is for pixels of 0 to 255, here they are 0 to 1: "
                              "divide by 255, as %g/255 (--std, too)", o->mean, mean[i]);
    }
    return 0;
}

int apply_normalize(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    picture p;
    double mean[16] = {0}, std[16];
    int means = o->mean != NULL ? parse_numbers("--mean", o->mean, mean, 16) : 1;
    for (int i = 0; i < 16; i++)
        std[i] = 1;
    int stds = o->std != NULL ? parse_numbers("--std", o->std, std, 16) : 1;
    if (means < 0 || stds < 0)
        return EXIT_USAGE;
    if (!look(in, &p))
        return bad_value(op, in, "an image");
    if ((means != 1 && means != p.channels) || (stds != 1 && stds != p.channels))
        return bad_value(op, in, "as many channels as --mean and --std have numbers");
    bool bytes = ort_value_dtype(in) == ORT_DTYPE_UINT8;
    int status = check_normal(o, bytes, mean, std);
    if (status == 0)
        status = relayout(in, &p, true, 4, ORT_DTYPE_FLOAT, out);
    int64_t area = p.height * p.width;
    float *data = status == 0 ? ort_value_data(*out) : NULL;
    for (int64_t b = 0; b < p.batch && status == 0; b++)
        for (int64_t c = 0; c < p.channels; c++)
            for (int64_t i = 0; i < area; i++) {
                float *x = &data[(b * p.channels + c) * area + i];
                float v = bytes ? *x / 255.0f : *x;
                *x = (v - (float)mean[means > 1 ? c : 0]) / (float)std[stds > 1 ? c : 0];
            }
    return status;
}

int apply_scale(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    double factor[2] = {1, 0};
    ort_error err = {0};
    if (parse_numbers(op->option, op->argument, factor, 2) < 1)
        return EXIT_USAGE;
    if (ort_value_get_kind(in) != ORT_VALUE_TENSOR || ort_value_dtype(in) == ORT_DTYPE_STRING)
        return bad_value(op, in, "a numeric tensor");
    if (ort_value_new_tensor(ORT_DTYPE_FLOAT, ort_value_rank(in), ort_value_dims(in), out, &err) !=
        ORT_OK)
        return tool_fail(&err);
    for (int64_t i = 0; i < ort_value_count(in); i++)
        ort_value_set_double(*out, i, ort_value_get_double(in, i) * factor[0] + factor[1]);
    return 0;
}

/* ITU-R 601-2 luma in PIL's integer form: (19595 R + 38470 G + 7471 B + 32768) >> 16. */
int apply_gray(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    picture p, q;
    if (!look(in, &p) || p.planar || ort_value_dtype(in) != ORT_DTYPE_UINT8)
        return bad_value(op, in, "an image of HxWxC uint8");
    q = p;
    q.channels = 1;
    q.rank = p.rank < 3 ? 3 : p.rank;
    int status = new_picture(&q, ORT_DTYPE_UINT8, out);
    const uint8_t *src = ort_value_data((ort_value *)in);
    uint8_t *dst = status == 0 ? ort_value_data(*out) : NULL;
    for (int64_t i = 0; i < p.batch * p.height * p.width && status == 0; i++) {
        const uint8_t *s = src + i * p.channels;
        uint32_t luma = p.channels < 3 ? 0 : 19595u * s[0] + 38470u * s[1] + 7471u * s[2] + 32768u;
        dst[i] = p.channels < 3 ? s[0] : (uint8_t)(luma >> 16);
    }
    return status;
}

int apply_bgr(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    picture p;
    if (!look(in, &p) || p.channels < 3)
        return bad_value(op, in, "an image of 3 channels");
    int status = new_picture(&p, ort_value_dtype(in), out);
    int64_t area = p.height * p.width, n = p.batch * area * p.channels;
    for (int64_t i = 0; i < n && status == 0; i++) {
        int64_t c = p.planar ? i / area % p.channels : i % p.channels;
        int64_t step = p.planar ? area : 1;
        int64_t to = c < 3 ? i + (2 - 2 * c) * step : i;
        move_element(in, i, *out, to);
    }
    return status;
}

int to_image(const ort_value *in, ort_value **out)
{
    picture p;
    operation op = {.option = "image"};
    if (!look(in, &p) || p.batch != 1 || !is_channel_count(p.channels))
        return bad_value(&op, in, "one image of 1, 3 or 4 channels");
    int status = relayout(in, &p, false, 3, ORT_DTYPE_FLOAT, out);
    if (status != 0)
        return status;
    bool unit = ort_value_dtype(in) != ORT_DTYPE_UINT8;
    float *data = ort_value_data(*out);
    ort_value *pixels = NULL;
    ort_error err = {0};
    if (ort_value_new_tensor(ORT_DTYPE_UINT8, 3, ort_value_dims(*out), &pixels, &err) != ORT_OK)
        return tool_fail(&err);
    uint8_t *dst = ort_value_data(pixels);
    for (int64_t i = 0; i < ort_value_count(pixels); i++) {
        float v = nearbyintf(unit ? data[i] * 255.0f : data[i]);
        dst[i] = (uint8_t)(v > 255 ? 255 : v > 0 ? v : 0);
    }
    ort_value_free(*out);
    *out = pixels;
    return 0;
}
