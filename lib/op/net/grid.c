/* grid.c - sampling at coordinates given by data: GridSample, and AffineGrid that makes them.
 *
 * Invariant: a sampling point is reduced to taps (offset in a channel, weight), shared by all
 * channels of its image; offset -1 reads zero (of strings: the empty one). Coordinates are formed
 * in the grid's precision. Bools are mixed as onnx's reference evaluator does: weights count as
 * "none" or "some". Strings have no product with a weight, there only the nearest sample is taken.
 */
#pragma GCC optimize("O3") /* unroll the taps */

#include <complex.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/move.h"

enum { POINTS = 64, MOST_TAPS = 1024 };

enum grid_mode { GRID_NEAREST, GRID_LINEAR, GRID_CUBIC };
enum grid_padding { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION };

typedef struct grid_state {
    enum grid_mode mode;
    enum grid_padding padding;
    bool align;
} grid_state;

static const ort_bind grid_bind[] = {
    ORT_BIND(grid_state, mode, ORT_WORDS("nearest linear|bilinear cubic|bicubic")),
    ORT_BIND_AS(grid_state, padding, "padding_mode", ORT_WORDS("zeros border reflection")),
    ORT_BIND_AS(grid_state, align, "align_corners"), {0}};

static ort_status grid_infer(ort_infer *x, ort_error *err)
{
    if (!ort_infer_in_ranked(x, 0) || !ort_infer_in_ranked(x, 1))
        return ORT_OK;
    int rank = x->in[0]->type.rank;
    ort_dim last = ort_infer_dim(x, 1, x->in[1]->type.rank - 1);
    if (x->in[1]->type.rank != rank)
        return ort_infer_fail(x, err, "X has rank %d and grid rank %d; equal ranks of 3 or more "
                              "are needed", rank, x->in[1]->type.rank);
    if (ort_dim_differ(last, ort_dim_of(rank - 2)))
        return ort_infer_fail(x, err, "the last dim of grid is %lld, %d is needed",
                              (long long)last.size, rank - 2);
    return ORT_OK;
}

static ort_status grid_prepare(ort_prep *p, ort_error *err)
{
    const grid_state *state = p->state;
    char mode[20];
    if (state->mode != GRID_NEAREST && ort_prep_dtype(p, 0) == ORT_DTYPE_STRING)
        return ort_prep_fail(p, err, "strings can't be interpolated (mode \"%s\"); only the mode "
                             "\"nearest\" samples them",
                             ort_node_attr_text(p->node, "mode", mode, sizeof mode));
    return ORT_OK;
}

/* Taps per point; 0 when there would be too many. */
static int tap_count(const grid_state *state, int spatial)
{
    int per_axis = state->mode == GRID_NEAREST ? 1 : state->mode == GRID_LINEAR ? 2 : 4, total = 1;
    for (int d = 0; d < spatial; d++)
        if ((total *= per_axis) > MOST_TAPS)
            return 0;
    return total;
}

static ort_status grid_shape(ort_shaping *s, ort_error *err)
{
    int taps = tap_count(s->state, s->in[0]->shape.rank - 2);
    s->thread_bytes = (size_t)POINTS * (size_t)taps *
                      (sizeof(int64_t) + sizeof(double) + sizeof(float));
    return ORT_OK;
}

typedef struct grid_job {
    const ort_call *call;
    const grid_state *state;
    const ort_tensor *in, *grid;
    ort_tensor *out;
    int spatial, taps;
    int64_t channels, plane, points, blocks; /* of an image: input plane, output points */
} grid_job;

static double denormalize(const grid_job *job, double n, int64_t length)
{
    if (job->grid->dtype == ORT_DTYPE_DOUBLE)
        return job->state->align ? (n + 1) / 2 * (double)(length - 1)
                                 : ((n + 1) * (double)length - 1) / 2;
    float v = (float)n, size = (float)length;
    return (double)(job->state->align ? (v + 1) / 2 * (size - 1) : ((v + 1) * size - 1) / 2);
}

static double reflect(double x, double low, double high)
{
    double range = high - low, over, turns, rest;
    if (x >= low && x <= high)
        return x;
    if (range <= 0)
        return low;
    over = x < low ? low - x : x - high;
    turns = floor(over / range);
    rest = over - turns * range;
    return (x < low) == (fmod(turns, 2) == 0) ? low + rest : high - rest;
}

/* Index of a sample, -1 where it reads zero. */
static int64_t sample_index(const grid_state *state, int64_t i, int64_t n)
{
    if (i >= 0 && i < n)
        return i;
    if (state->padding == GRID_ZEROS)
        return -1;
    if (state->padding == GRID_REFLECTION)
        i = (int64_t)reflect((double)i, state->align ? 0 : -0.5,
                             (double)n - (state->align ? 1 : 0.5));
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static void cubic_weights(double t, double *w)
{
    const double a = -0.75;
    double u = t + 1, v = 1 - t, z = 2 - t;
    w[0] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * v - (a + 3)) * v * v + 1;
    w[3] = ((a * z - 5 * a) * z + 8 * a) * z - 4 * a;
}

/* Samples of one axis of n elements at normalized coordinate `at`; returns their number. */
static int axis_taps(const grid_job *job, double at, int64_t n, int64_t *index, double *weight)
{
    const grid_state *state = job->state;
    double x = denormalize(job, at, n), low = state->align ? 0 : -0.5;
    double high = (double)n - (state->align ? 1 : 0.5);
    x = isnan(x) ? -1 : fmax(-1e9, fmin(1e9, x));
    if (state->mode == GRID_NEAREST)
        x = rint(x);
    /* Cubic samples are bounded one by one, as the models' frameworks do. */
    if (state->mode != GRID_CUBIC && (x < low || x > high)) {
        if (state->padding == GRID_BORDER)
            x = fmax(0, fmin((double)(n - 1), x));
        else if (state->padding == GRID_REFLECTION)
            x = reflect(x, low, high);
    }
    if (state->mode == GRID_NEAREST) {
        index[0] = sample_index(state, (int64_t)x, n);
        weight[0] = 1;
        return 1;
    }
    int64_t base = (int64_t)floor(x);
    double t = x - (double)base;
    int count = state->mode == GRID_LINEAR ? 2 : 4;
    if (count == 2) {
        weight[0] = 1 - t;
        weight[1] = t;
    } else {
        cubic_weights(t, weight);
        base--;
    }
    for (int k = 0; k < count; k++)
        index[k] = sample_index(state, base + k, n);
    return count;
}

/* All taps of one point: the product of its axes' taps. */
static void point_taps(const grid_job *job, int64_t image, int64_t point, int64_t *offset,
                       double *weight)
{
    int64_t at = (image * job->points + point) * job->spatial, index[4];
    double w[4];
    int have = 1;
    offset[0] = 0;
    weight[0] = 1;
    for (int d = 0; d < job->spatial; d++) {
        int64_t n = job->in->shape.dim[d + 2];
        int count = axis_taps(job, ort_tensor_get_f64(job->grid, at + job->spatial - 1 - d), n,
                              index, w);
        for (int i = have - 1; i >= 0; i--)
            for (int k = count - 1; k >= 0; k--) {
                int64_t before = offset[i];
                double scale = weight[i];
                offset[i * count + k] = before < 0 || index[k] < 0 ? -1 : before * n + index[k];
                weight[i * count + k] = scale * w[k];
            }
        have *= count;
    }
}

/* Where the taps of a point lie. */
enum { TAPS_OUTSIDE, TAPS_INSIDE, TAPS_MIXED };

/* Four taps: the bilinear case of a plane. */
static void sample_four(const float *x, float *y, int64_t count, const int64_t *offset,
                        const float *w, const uint8_t *place)
{
    for (int64_t i = 0; i < count; i++, offset += 4, w += 4) {
        float sum = 0;
        if (place[i] == TAPS_INSIDE)
            sum = w[0] * x[offset[0]] + w[1] * x[offset[1]] + w[2] * x[offset[2]] +
                  w[3] * x[offset[3]];
        for (int k = 0; place[i] == TAPS_MIXED && k < 4; k++)
            sum += offset[k] < 0 ? 0 : w[k] * x[offset[k]];
        y[i] = sum;
    }
}

#define SAMPLE(type, w)                                                                            \
    do {                                                                                           \
        const type *x = (const type *)job->in->data + from;                                        \
        type *y = (type *)job->out->data + to;                                                     \
        for (int64_t i = 0; i < count; i++) {                                                      \
            type sum = 0;                                                                          \
            for (int k = 0; k < job->taps; k++) {                                                  \
                int64_t o = offset[i * job->taps + k];                                             \
                sum += o < 0 ? 0 : w[i * job->taps + k] * x[o];                                    \
            }                                                                                      \
            y[i] = sum;                                                                            \
        }                                                                                          \
    } while (0)

static void sample_nearest(const grid_job *job, int64_t from, int64_t to, int64_t count,
                           const int64_t *offset)
{
    for (int64_t i = 0; i < count; i++)
        if (offset[i] < 0)
            ort_move_fill(job->out->dtype, job->out->data, to + i, 1, NULL, 0);
        else
            ort_move_span(job->out->dtype, job->out->data, to + i, job->in->data,
                          from + offset[i], 1);
}

static void sample_any(const grid_job *job, int64_t from, int64_t to, int64_t count,
                       const int64_t *offset, const double *weight)
{
    for (int64_t i = 0; i < count; i++) {
        double sum = 0;
        for (int k = 0; k < job->taps; k++) {
            int64_t o = offset[i * job->taps + k];
            sum += o < 0 ? 0 : weight[i * job->taps + k] * ort_tensor_get_f64(job->in, from + o);
        }
        ort_tensor_set_f64(job->out, to + i, sum);
    }
}

/* True when a sample that is true has any weight. */
static void sample_bool(const uint8_t *x, uint8_t *y, int64_t count, int taps,
                        const int64_t *offset, const double *weight)
{
    for (int64_t i = 0; i < count; i++, offset += taps, weight += taps) {
        y[i] = 0;
        for (int k = 0; k < taps; k++)
            y[i] |= offset[k] >= 0 && weight[k] != 0 && x[offset[k]];
    }
}

/* The points of one channel, of any type. */
static void sample_plane(const grid_job *job, int64_t from, int64_t to, int64_t count,
                         const int64_t *offset, const double *weight, const float *narrow)
{
    if (job->in->dtype == ORT_DTYPE_FLOAT)
        SAMPLE(float, narrow);
    else if (job->in->dtype == ORT_DTYPE_DOUBLE)
        SAMPLE(double, weight);
    else if (job->taps == 1)
        sample_nearest(job, from, to, count, offset);
    else if (job->in->dtype == ORT_DTYPE_COMPLEX64)
        SAMPLE(float complex, narrow);
    else if (job->in->dtype == ORT_DTYPE_COMPLEX128)
        SAMPLE(double complex, weight);
    else if (job->in->dtype == ORT_DTYPE_BOOL)
        sample_bool((const uint8_t *)job->in->data + from, (uint8_t *)job->out->data + to, count,
                    job->taps, offset, weight);
    else
        sample_any(job, from, to, count, offset, weight);
}

static void grid_task(void *arg, size_t task, int thread)
{
    const grid_job *job = arg;
    int64_t image = (int64_t)task / job->blocks, first = (int64_t)task % job->blocks * POINTS;
    int64_t count = ort_min_i64(POINTS, job->points - first);
    int64_t *offset = ort_call_scratch(job->call, thread);
    double *weight = (double *)(offset + POINTS * job->taps);
    for (int64_t i = count - 1; i >= 0; i--)
        point_taps(job, image, first + i, offset + i * job->taps, weight + i * job->taps);
    float *narrow = (float *)(weight + POINTS * job->taps);
    uint8_t place[POINTS];
    for (int64_t i = 0; i < count; i++) {
        int in_count = 0;
        for (int64_t k = i * job->taps; k < (i + 1) * job->taps; k++) {
            narrow[k] = (float)weight[k];
            in_count += offset[k] >= 0;
        }
        place[i] = in_count == 0 ? TAPS_OUTSIDE : in_count == job->taps ? TAPS_INSIDE : TAPS_MIXED;
    }
    for (int64_t c = 0; c < job->channels; c++) {
        int64_t from = (image * job->channels + c) * job->plane;
        int64_t to = (image * job->channels + c) * job->points + first;
        if (job->in->dtype == ORT_DTYPE_FLOAT && job->taps == 4)
            sample_four((const float *)job->in->data + from, (float *)job->out->data + to, count,
                        offset, narrow, place);
        else
            sample_plane(job, from, to, count, offset, weight, narrow);
    }
}

static ort_status grid_run(ort_call *call, ort_error *err)
{
    grid_job job = {.call = call, .state = call->state, .in = ort_call_in(call, 0)};
    job.grid = ort_call_in(call, 1);
    job.out = ort_call_out(call, 0);
    int rank = job.in->shape.rank;
    job.spatial = rank - 2;
    job.taps = tap_count(job.state, job.spatial);
    if (job.taps == 0)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "this mode over %d axes needs more than "
                             "%d samples per point", job.spatial, MOST_TAPS);
    if (job.grid->shape.dim[0] != job.in->shape.dim[0])
        return ort_call_fail(call, err, "grid is for %lld images, X has %lld",
                             (long long)job.grid->shape.dim[0], (long long)job.in->shape.dim[0]);
    job.channels = job.in->shape.dim[1];
    job.plane = ort_shape_count_range(&job.in->shape, 2, rank);
    job.points = ort_shape_count_range(&job.out->shape, 2, rank);
    job.blocks = (job.points + POINTS - 1) / POINTS;
    if (ort_tensor_count(job.out) == 0)
        return ORT_OK;
    if (job.plane == 0)
        return ort_call_fail(call, err, "X has no elements to sample");
    ort_call_parallel(call, (size_t)(job.in->shape.dim[0] * job.blocks), grid_task, &job);
    return ORT_OK;
}

static const ort_op_impl grid_impl = {
    .state = sizeof(grid_state), .bind = grid_bind,
    .rule = "[N,C,_,I..] [N,D..,_] -> [N,C,D..]",
    .infer = grid_infer, .prepare = grid_prepare, .shape = grid_shape, .run = grid_run,
};

/* ---- AffineGrid */

static ort_status affine_infer(ort_infer *x, ort_error *err)
{
    ort_dim size[ORT_SYMBOLIC_MAX], dims[5];
    int count = ort_infer_elements(x, 1, size);
    if (count < 0)
        return ORT_OK;
    if (count != 4 && count != 5)
        return ort_infer_fail(x, err, "size has %d elements; 4 or 5 are needed", count);
    dims[0] = size[0];
    memcpy(dims + 1, size + 2, (size_t)(count - 2) * sizeof *dims);
    dims[count - 1] = ort_dim_of(count - 2);
    for (int d = 0; d < count; d++)
        if (ort_dim_known(dims[d]) && dims[d].size < 0)
            return ort_infer_fail(x, err, "size has a negative element");
    ort_infer_set_shape(x, 0, count, dims);
    return ORT_OK;
}

typedef struct affine_state {
    bool align;
} affine_state;

static const ort_bind affine_bind[] = {ORT_BIND_AS(affine_state, align, "align_corners"), {0}};

static double base_coordinate(int64_t i, int64_t n, bool align)
{
    if (align)
        return n > 1 ? -1 + 2 * (double)i / (double)(n - 1) : 0;
    return (2 * (double)i + 1) / (double)n - 1;
}

static ort_status affine_run(ort_call *call, ort_error *err)
{
    const ort_tensor *theta = ort_call_in(call, 0);
    ort_tensor *out = ort_call_out(call, 0);
    bool align = ((const affine_state *)call->state)->align;
    int spatial = out->shape.rank - 2;
    int64_t points = ort_shape_count_range(&out->shape, 1, spatial + 1);
    if (theta->shape.rank != 3 || theta->shape.dim[0] != out->shape.dim[0] ||
        theta->shape.dim[1] != spatial || theta->shape.dim[2] != spatial + 1)
        return ort_call_fail(call, err, "theta must be [%lld, %d, %d]",
                             (long long)out->shape.dim[0], spatial, spatial + 1);
    ort_pace pace = {0};
    for (int64_t p = 0; p < out->shape.dim[0] * points; p++) {
        double at[4] = {0, 0, 0, 0}; /* x, y, z, 1 */
        if (ort_pace_over(&pace, 100))
            return ORT_OK;
        int64_t rest = p % points, matrix = p / points * spatial * (spatial + 1);
        for (int d = 0; d < spatial; d++) {
            int64_t n = out->shape.dim[spatial - d];
            at[d] = base_coordinate(rest % n, n, align);
            rest /= n;
        }
        at[spatial] = 1;
        for (int r = 0; r < spatial; r++) {
            double sum = 0;
            for (int c = 0; c <= spatial; c++)
                sum += at[c] * ort_tensor_get_f64(theta, matrix + r * (spatial + 1) + c);
            ort_tensor_set_f64(out, p * spatial + r, sum);
        }
    }
    return ORT_OK;
}

static const ort_op_impl affine_impl = {
    .state = sizeof(affine_state), .bind = affine_bind,
    .infer = affine_infer, .run = affine_run,
};

const ort_op ort_ops_grid[] = {
    {ONNX, "GridSample", 16, "X:T1,grid:T2 -> Y:T1", "T1:F,I,U,C,str,bool T2:F",
     "align_corners:i=0 mode:s=bilinear padding_mode:s=zeros", 0, &grid_impl},
    {ONNX, "GridSample", 20, "X:T1,grid:T2 -> Y:T1", "T1:F,I,U,C,str,bool T2:F",
     "align_corners:i=0 mode:s=linear padding_mode:s=zeros", 0, &grid_impl,
     .history = "22:T1+bf16 T2+bf16"},
    {ONNX, "AffineGrid", 20, "theta:T1,size:T2 -> grid:T1", "T1:F,bf16 T2:i64",
     "align_corners:i=0", 0, &affine_impl},
    {MS, "GridSample", 1, "X:T1,Grid:T1 -> Y:T1", "T1:F",
     "align_corners:i=0 mode:s=bilinear padding_mode:s=zeros", 0, &grid_impl},
    {0},
};
