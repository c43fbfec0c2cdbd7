/* signal.c - DFT, STFT, the window functions and MelWeightMatrix.
 *
 * Invariant: all arithmetic is in double, whatever the tensors' type, but for one case: a DFT from
 * complex float to complex float is done in float, as numpy does, where the length has no prime
 * factor above 13. A transform of one length is prepared once per plan where its length is known by
 * then, else once per run.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/number.h"
#include "op/math/fft.h"
#include "op/shared/move.h"

/* ---- common */

static void *arena_alloc(void *arg, size_t bytes)
{
    return ort_arena_alloc(arg, bytes);
}

static void *call_alloc(void *arg, size_t bytes)
{
    return ort_call_alloc(arg, bytes);
}

static void load_line(const ort_tensor *t, int64_t at, int64_t step, int64_t count, bool complex_,
                      ort_complex *out)
{
    for (int64_t i = 0; i < count; i++, at += step) {
        if (t->dtype == ORT_DTYPE_FLOAT) {
            const float *p = t->data;
            out[i] = (ort_complex){(double)p[at], complex_ ? (double)p[at + 1] : 0};
        } else {
            out[i] = (ort_complex){ort_tensor_get_f64(t, at),
                                   complex_ ? ort_tensor_get_f64(t, at + 1) : 0};
        }
    }
}

static void store_line(ort_tensor *t, int64_t at, int64_t step, int64_t count, bool complex_,
                       double scale, const ort_complex *in)
{
    for (int64_t i = 0; i < count; i++, at += step) {
        if (t->dtype == ORT_DTYPE_FLOAT) {
            ((float *)t->data)[at] = (float)(in[i].re * scale);
            if (complex_)
                ((float *)t->data)[at + 1] = (float)(in[i].im * scale);
        } else {
            ort_tensor_set_f64(t, at, in[i].re * scale);
            if (complex_)
                ort_tensor_set_f64(t, at + 1, in[i].im * scale);
        }
    }
}

/* Complex numbers a task works with: the line, its transform, scratch. */
static size_t line_bytes(const ort_fft *fft)
{
    return (size_t)(2 * ort_fft_length(fft) + ort_fft_scratch(fft)) * sizeof(ort_complex);
}

/* ---- DFT */

typedef struct dft_state {
    bool inverse, onesided;
    int64_t axis; /* an attribute until opset 20, then an input */
} dft_state;

static const ort_bind dft_bind[] = {
    ORT_BIND(dft_state, inverse),
    ORT_BIND(dft_state, onesided),
    ORT_BIND(dft_state, axis, ORT_ELSE(-2)), {0}};

static ort_status dft_infer(ort_infer *x, ort_error *err)
{
    dft_state s = {0};
    ort_dim given;
    int axis;
    ORT_TRY(ort_bind_attrs(dft_bind, x->node, x->arena, &s, err));
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    ort_type type = x->in[0]->type;
    if (type.rank < 2)
        return ort_infer_fail(x, err, "the input has rank %d; 2 or more is needed", type.rank);
    ort_dim parts = type.dim[type.rank - 1];
    if (s.onesided && !s.inverse && ort_dim_known(parts) && parts.size != 1)
        return ort_infer_fail(x, err, "onesided wants a real signal: its last dim is %lld, not 1",
                              (long long)parts.size);
    bool known_axis = true;
    if (ort_infer_in(x, 2)) {
        known_axis = ort_infer_int(x, 2, 0, &given) && ort_dim_known(given);
        s.axis = known_axis ? given.size : s.axis;
    }
    if (known_axis) {
        ORT_TRY(ort_infer_axis(x, s.axis, type.rank, &axis, err));
        if (axis == type.rank - 1)
            return ort_infer_fail(x, err, "axis %lld is the one of the real and imaginary parts",
                                  (long long)s.axis);
    }
    ort_dim n = ort_dim_unknown();
    if (ort_infer_in(x, 1)) {
        if (!ort_infer_int(x, 1, 0, &n))
            n = ort_dim_unknown();
    } else if (known_axis) {
        n = type.dim[axis];
        if (s.inverse && s.onesided)
            n = ort_dim_mul(x->dims, ort_dim_sub(x->dims, n, ort_dim_of(1)), ort_dim_of(2));
    }
    if (ort_dim_known(n) && n.size < 1)
        return ort_infer_fail(x, err, "the transform has length %lld", (long long)n.size);
    if (s.onesided && !s.inverse)
        n = ort_dim_add(x->dims, ort_dim_div(x->dims, n, ort_dim_of(2)), ort_dim_of(1));
    bool keeps_length = !s.onesided && !ort_infer_in(x, 1); /* on whichever axis */
    for (int d = 0; d < type.rank - 1 && !known_axis && !keeps_length; d++)
        type.dim[d] = ort_dim_unknown();
    if (known_axis)
        type.dim[axis] = n;
    type.dim[type.rank - 1] = ort_dim_of(s.inverse && s.onesided ? 1 : 2);
    ort_infer_set_shape(x, 0, type.rank, type.dim);
    return ORT_OK;
}

/* Axis and length of this call; false when a number is still missing. */
static bool dft_numbers(const dft_state *s, const ort_tensor *in, const ort_tensor *length,
                        const ort_tensor *axis_in, int *axis, int64_t *n)
{
    int64_t a = s->axis, rank = in->shape.rank;
    if (axis_in && !ort_tensor_one_i64(axis_in, &a))
        return false;
    a = a < 0 ? a + rank : a;
    *axis = a < 0 || a >= rank - 1 ? -1 : (int)a;
    if (length)
        return ort_tensor_one_i64(length, n);
    *n = *axis < 0 ? 0 : in->shape.dim[*axis];
    if (s->inverse && s->onesided)
        *n = 2 * (*n - 1);
    return true;
}

static const ort_tensor *at_input(const ort_tensor *const *in, int count, int index)
{
    return index < count ? in[index] : NULL;
}

static ort_status dft_shape(ort_shaping *s, ort_error *err)
{
    int axis;
    int64_t n;
    if (!dft_numbers(s->state, s->in[0], at_input(s->in, s->in_count, 1),
                     at_input(s->in, s->in_count, 2), &axis, &n) || axis < 0 || n < 1)
        return ORT_OK;
    ort_fft *fft = ort_fft_new(n, arena_alloc, s->arena);
    if (!fft)
        return ort_error_memory(err, (size_t)n * sizeof(ort_complex));
    s->plan_state = fft;
    s->thread_bytes = line_bytes(fft);
    return ORT_OK;
}

typedef struct line_job {
    const ort_call *call;
    const dft_state *state;
    const ort_fft *fft;
    const ort_tensor *in, *window;
    ort_tensor *out;
    char *scratch;
    size_t scratch_bytes;
    int64_t n, length_in, length_out, inner; /* of the axis; inner: lines side by side */
    int64_t frames, step;                    /* STFT */
    bool single;                             /* complex floats both: in float */
} line_job;

/* Room for every thread: the plan's, or made for this run. */
static ort_status line_scratch(ort_call *call, line_job *job, ort_error *err)
{
    job->scratch = call->thread_space;
    job->scratch_bytes = call->thread_bytes;
    if (call->plan_state)
        return ORT_OK;
    job->scratch_bytes = ort_round_up(line_bytes(job->fft), 64);
    size_t threads = call->pool ? (size_t)ort_pool_threads(call->pool) : 1, bytes;
    if (!ort_mul_size(threads, job->scratch_bytes, &bytes))
        return ort_error_memory(err, SIZE_MAX);
    job->scratch = ort_call_alloc(call, bytes);
    return job->scratch ? ORT_OK : ort_error_memory(err, bytes);
}

/* The full spectrum of a real signal from its first half. */
static void mirror(ort_complex *line, int64_t n)
{
    line[0].im = 0;
    for (int64_t k = 1; k <= n / 2; k++) {
        if (2 * k == n)
            line[k].im = 0;
        else
            line[n - k] = (ort_complex){line[k].re, -line[k].im};
    }
}

/* A line of complex floats to one of the same. `line` has room for 2 * n. */
static void single_line(const line_job *job, int64_t from, int64_t to, int64_t have,
                        ort_complex_single *line)
{
    const ort_complex_single *in = (const ort_complex_single *)job->in->data;
    ort_complex_single *out = (ort_complex_single *)job->out->data, *spectrum = line + job->n;
    float scale = job->state->inverse ? 1 / (float)job->n : 1;
    for (int64_t i = 0; i < have; i++)
        line[i] = in[from + i * job->inner];
    ort_fft_run_single(job->fft, line, spectrum, job->state->inverse);
    for (int64_t i = 0; i < job->length_out; i++)
        out[to + i * job->inner] =
            (ort_complex_single){spectrum[i].re * scale, spectrum[i].im * scale};
}

static void dft_task(void *arg, size_t task, int thread)
{
    const line_job *job = arg;
    int64_t outer = (int64_t)task / job->inner, lane = (int64_t)task % job->inner, n = job->n;
    int64_t parts_in = job->in->shape.dim[job->in->shape.rank - 1];
    int64_t parts_out = job->out->shape.dim[job->out->shape.rank - 1];
    bool half = job->state->inverse && job->state->onesided;
    int64_t have = ort_min_i64(job->length_in, half ? n / 2 + 1 : n);
    ort_complex *line = (ort_complex *)(void *)(job->scratch + (size_t)thread * job->scratch_bytes);
    ort_complex *spectrum = line + n, *scratch = spectrum + n;
    int64_t from = outer * job->length_in * job->inner + lane;
    int64_t to = outer * job->length_out * job->inner + lane;
    memset(line, 0, (size_t)n * sizeof *line);
    if (job->single) {
        single_line(job, from, to, have, (ort_complex_single *)(void *)line);
        return;
    }
    load_line(job->in, from * parts_in, job->inner * parts_in, have, parts_in == 2, line);
    if (half)
        mirror(line, n);
    ort_fft_run(job->fft, line, spectrum, job->state->inverse, scratch);
    store_line(job->out, to * parts_out, job->inner * parts_out, job->length_out, parts_out == 2,
               job->state->inverse ? 1 / (double)n : 1, spectrum);
}

static ort_status dft_run(ort_call *call, ort_error *err)
{
    line_job job = {.call = call, .state = call->state, .fft = call->plan_state};
    int axis, rank;
    job.in = ort_call_in(call, 0);
    job.out = ort_call_out(call, 0);
    rank = job.in->shape.rank;
    if (!dft_numbers(job.state, job.in, ort_call_in(call, 1), ort_call_in(call, 2), &axis,
                     &job.n) || axis < 0 || job.n < 1)
        return ort_call_fail(call, err, "axis or dft_length is out of range");
    int64_t parts = job.in->shape.dim[rank - 1];
    if (parts != 1 && parts != 2)
        return ort_call_fail(call, err, "the last dim is %lld; 1 (real) or 2 (complex) is needed",
                             (long long)parts);
    job.length_in = job.in->shape.dim[axis];
    job.length_out = job.out->shape.dim[axis];
    bool half = job.state->onesided && !job.state->inverse;
    if (job.length_out != (half ? job.n / 2 + 1 : job.n))
        return ort_call_fail(call, err, "the transform of length %lld doesn't fit the planned "
                             "output", (long long)job.n);
    if (!job.fft)
        job.fft = ort_fft_new(job.n, call_alloc, call);
    if (!job.fft)
        return ort_error_memory(err, (size_t)job.n * sizeof(ort_complex));
    job.single = parts == 2 && job.in->dtype == ORT_DTYPE_FLOAT && ort_fft_has_single(job.fft) &&
                 job.out->shape.dim[rank - 1] == 2;
    ORT_TRY(line_scratch(call, &job, err));
    job.inner = ort_shape_count_range(&job.in->shape, axis + 1, rank - 1);
    int64_t outer = ort_shape_count_range(&job.in->shape, 0, axis);
    ort_call_parallel(call, (size_t)(outer * job.inner), dft_task, &job);
    return ORT_OK;
}

static const ort_op_impl dft_impl = {
    .state = sizeof(dft_state), .bind = dft_bind,
    .infer = dft_infer, .shape = dft_shape, .run = dft_run, .numbers = 6,
};

/* ---- STFT */

static ort_status stft_infer(ort_infer *x, ort_error *err)
{
    ort_dim dims[4] = {ort_dim_unknown(), ort_dim_unknown(), ort_dim_unknown(), ort_dim_of(2)};
    ort_dim length = ort_dim_unknown(), n = length, step = length;
    if (ort_infer_in_ranked(x, 0)) {
        if (x->in[0]->type.rank != 2)
            ORT_TRY(ort_infer_need_rank(x, 0, 3, err));
        dims[0] = x->in[0]->type.dim[0];
        length = x->in[0]->type.dim[1];
    }
    if (!ort_infer_int(x, 1, 0, &step))
        step = ort_dim_unknown();
    if (ort_infer_in(x, 2)) {
        if (ort_infer_in_ranked(x, 2)) {
            ORT_TRY(ort_infer_need_rank(x, 2, 1, err));
            n = x->in[2]->type.dim[0];
        }
    } else if (ort_infer_in(x, 3)) {
        if (!ort_infer_int(x, 3, 0, &n))
            n = ort_dim_unknown();
    } else {
        n = length;
    }
    if ((ort_dim_known(step) && step.size < 1) || (ort_dim_known(n) && n.size < 1))
        return ort_infer_fail(x, err, "frame_step and frame_length must be at least 1");
    if (ort_dim_known(n) && ort_dim_known(length) && n.size > length.size)
        return ort_infer_fail(x, err, "the signal (%lld) is shorter than a frame (%lld)",
                              (long long)length.size, (long long)n.size);
    dims[1] = ort_dim_add(x->dims, ort_dim_div(x->dims, ort_dim_sub(x->dims, length, n), step),
                          ort_dim_of(1));
    dims[2] = !ort_node_attr_int(x->node, "onesided") ? n
              : ort_dim_add(x->dims, ort_dim_div(x->dims, n, ort_dim_of(2)), ort_dim_of(1));
    ort_infer_set_shape(x, 0, 4, dims);
    return ORT_OK;
}

static const ort_bind stft_bind[] = {ORT_BIND(dft_state, onesided), {0}};

/* Frame length; false when it is still missing. */
static bool stft_length(const ort_tensor *in, const ort_tensor *window, const ort_tensor *length,
                        int64_t *n)
{
    *n = window ? ort_tensor_count(window) : in->shape.dim[1];
    return window || !length || ort_tensor_one_i64(length, n);
}

static ort_status stft_shape(ort_shaping *s, ort_error *err)
{
    int64_t n;
    if (!stft_length(s->in[0], at_input(s->in, s->in_count, 2), at_input(s->in, s->in_count, 3),
                     &n) || n < 1)
        return ORT_OK;
    ort_fft *fft = ort_fft_new(n, arena_alloc, s->arena);
    if (!fft)
        return ort_error_memory(err, (size_t)n * sizeof(ort_complex));
    s->plan_state = fft;
    s->thread_bytes = line_bytes(fft);
    return ORT_OK;
}

/* Numbers per sample. The specification has [batch, samples, 1 or 2]; exporters leave the last axis
 * of real signals out, and onnx.checker and onnxruntime take that. */
static int64_t stft_parts(const ort_tensor *signal)
{
    return signal->shape.rank == 2 ? 1 : signal->shape.dim[2];
}

static void stft_task(void *arg, size_t task, int thread)
{
    const line_job *job = arg;
    int64_t batch = (int64_t)task / job->frames, frame = (int64_t)task % job->frames, n = job->n;
    int64_t parts = stft_parts(job->in);
    ort_complex *line = (ort_complex *)(void *)(job->scratch + (size_t)thread * job->scratch_bytes);
    ort_complex *spectrum = line + n;
    load_line(job->in, (batch * job->length_in + frame * job->step) * parts, parts, n, parts == 2,
              line);
    for (int64_t i = 0; job->window && i < n; i++) {
        double w = ort_tensor_get_f64(job->window, i);
        line[i].re *= w;
        line[i].im *= w;
    }
    ort_fft_run(job->fft, line, spectrum, false, spectrum + n);
    store_line(job->out, (int64_t)task * job->length_out * 2, 2, job->length_out, true, 1,
               spectrum);
}

static ort_status stft_run(ort_call *call, ort_error *err)
{
    line_job job = {.call = call, .state = call->state, .fft = call->plan_state};
    const ort_tensor *length = ort_call_in(call, 3);
    int64_t given;
    job.in = ort_call_in(call, 0);
    job.out = ort_call_out(call, 0);
    job.window = ort_call_in(call, 2);
    if (!stft_length(job.in, job.window, length, &job.n) || job.n < 1 ||
        (length && (!ort_tensor_one_i64(length, &given) || given != job.n)))
        return ort_call_fail(call, err, "frame_length and the window must have one length");
    if (!ort_tensor_one_i64(ort_call_in(call, 1), &job.step) || job.step < 1)
        return ort_call_fail(call, err, "frame_step must be at least 1");
    job.length_in = job.in->shape.dim[1];
    job.frames = job.out->shape.dim[1];
    job.length_out = job.out->shape.dim[2];
    if (job.length_in < job.n || job.frames != (job.length_in - job.n) / job.step + 1 ||
        job.length_out != (job.state->onesided ? job.n / 2 + 1 : job.n) ||
        (stft_parts(job.in) != 1 && stft_parts(job.in) != 2))
        return ort_call_fail(call, err, "frames of %lld samples don't fit a signal of %lld",
                             (long long)job.n, (long long)job.length_in);
    if (!job.fft)
        job.fft = ort_fft_new(job.n, call_alloc, call);
    if (!job.fft)
        return ort_error_memory(err, (size_t)job.n * sizeof(ort_complex));
    ORT_TRY(line_scratch(call, &job, err));
    ort_call_parallel(call, (size_t)(job.in->shape.dim[0] * job.frames), stft_task, &job);
    return ORT_OK;
}

static const ort_op_impl stft_impl = {
    .state = sizeof(dft_state), .bind = stft_bind,
    .infer = stft_infer, .shape = stft_shape, .run = stft_run, .numbers = 10,
};

/* ---- windows */

typedef enum window_kind { HANN, HAMMING, BLACKMAN } window_kind;

/* [0] - [1] cos + [2] cos of twice the angle */
static const double window_terms[][3] = {
    [HANN] = {0.5, 0.5, 0}, [HAMMING] = {25.0 / 46, 21.0 / 46, 0}, [BLACKMAN] = {0.42, 0.5, 0.08}};

typedef struct window_state {
    bool periodic;
} window_state;

static const ort_bind window_bind[] = {ORT_BIND(window_state, periodic), {0}};

/* As a cast does: truncated for integers. */
static void store_number(ort_tensor *t, int64_t i, double v)
{
    bool whole = ort_dtype_get(t->dtype)->class_ != ORT_CLASS_FLOAT;
    ort_tensor_set_f64(t, i, whole ? trunc(v) : v);
}

static ort_status window_run(ort_call *call, ort_error *err)
{
    const window_state *s = call->state;
    const double *a = window_terms[call->node->op->variant];
    ort_tensor *out = ort_call_out(call, 0);
    int64_t n = ort_tensor_count(out), period = s->periodic ? n : n - 1;
    ort_pace pace = {0};
    for (int64_t i = 0; i < n && !ort_pace_over(&pace, 40); i++) {
        double angle = period > 0 ? 2 * 3.14159265358979323846 * (double)i / (double)period : 0;
        double v = a[0] - a[1] * cos(angle) + a[2] * cos(2 * angle);
        store_number(out, i, period > 0 ? v : 1);
    }
    return ORT_OK;
}

static const ort_op_impl window_impl = {
    .state = sizeof(window_state), .bind = window_bind,
    .rule = "[] -> [size]:output_datatype", .run = window_run, .numbers = 1,
};

/* ---- MelWeightMatrix */

/* Bin of mel band edge i of `bands`. */
static int64_t mel_bin(double low, double high, int64_t bands, int64_t i, int64_t length,
                       int64_t rate)
{
    double mel_low = 2595 * log1p(low / 700) / log(10);
    double mel_high = 2595 * log1p(high / 700) / log(10);
    double mel = (double)i * ((mel_high - mel_low) / (double)(bands + 2)) + mel_low;
    double hertz = 700 * expm1(mel / 2595 * log(10));
    double bin = floor((double)(length + 1) * hertz / (double)rate);
    return bin > 0 && bin < 1e15 ? (int64_t)bin : 0;
}

static ort_status mel_run(ort_call *call, ort_error *err)
{
    ort_tensor *out = ort_call_out(call, 0);
    int64_t bins = out->shape.dim[0], bands = out->shape.dim[1], length = 0, rate = 0;
    double low = 0, high = 0;
    ORT_TRY(ort_call_i64(call, 1, &length, err));
    ORT_TRY(ort_call_i64(call, 2, &rate, err));
    ORT_TRY(ort_call_f64(call, 3, &low, err));
    ORT_TRY(ort_call_f64(call, 4, &high, err));
    if (rate < 1)
        return ort_call_fail(call, err, "sample_rate must be at least 1");
    ort_move_fill(out->dtype, out->data, 0, bins * bands, NULL, 0);
    ort_pace pace = {0};
    for (int64_t i = 0; i < bands && !ort_pace_over(&pace, 200 + (uint64_t)bins); i++) {
        int64_t left = mel_bin(low, high, bands, i, length, rate);
        int64_t center = mel_bin(low, high, bands, i + 1, length, rate);
        int64_t right = mel_bin(low, high, bands, i + 2, length, rate);
        if (center >= bins || right > bins || left > center)
            return ort_call_fail(call, err, "the edges %g and %g Hz don't fit %lld bins at %lld Hz",
                                 low, high, (long long)bins, (long long)rate);
        if (left == center)
            ort_tensor_set_i64(out, center * bands + i, 1);
        for (int64_t j = left; left < center && j <= center; j++)
            store_number(out, j * bands + i, (double)(j - left) / (double)(center - left));
        for (int64_t j = center; j < right; j++)
            store_number(out, j * bands + i, (double)(right - j) / (double)(right - center));
    }
    return ORT_OK;
}

static const ort_op_impl mel_impl = {
    .rule = "-> [dft_length/2+1,num_mel_bins]:output_datatype",
    .run = mel_run, .numbers = 31,
};

#define WINDOW(name, kind)                                                                         \
    {ONNX, name, 17, "size:T1 -> output:T2", "T1:i32,i64 T2:F,I,U,bf16",                           \
     "output_datatype:i=1 periodic:i=1", 0, &window_impl, .variant = kind}

const ort_op ort_ops_signal[] = {
    {ONNX, "DFT", 17, "input:T1,dft_length?:T2 -> output:T1", "T1:F,bf16 T2:i32,i64",
     "axis:i=1 inverse:i=0 onesided:i=0", 0, &dft_impl},
    {ONNX, "DFT", 20, "input:T1,dft_length?:T2,axis?:i64 -> output:T1", "T1:F,bf16 T2:i32,i64",
     "inverse:i=0 onesided:i=0", 0, &dft_impl},
    {ONNX, "STFT", 17, "signal:T1,frame_step:T2,window?:T1,frame_length?:T2 -> output:T1",
     "T1:F,bf16 T2:i32,i64", "onesided:i=1", 0, &stft_impl},
    WINDOW("BlackmanWindow", BLACKMAN),
    WINDOW("HannWindow", HANN),
    WINDOW("HammingWindow", HAMMING),
    {ONNX, "MelWeightMatrix", 17,
     "num_mel_bins:T1,dft_length:T1,sample_rate:T1,lower_edge_hertz:T2,upper_edge_hertz:T2 -> "
     "output:T3", "T1:i32,i64 T2:F,bf16 T3:F,I,U,bf16", "output_datatype:i=1", 0, &mel_impl},
    {0},
};
