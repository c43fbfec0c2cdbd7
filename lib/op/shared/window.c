/* window.c - reading window attributes and the arithmetic of output dims.
 *
 * Every number is bounded (1 <= kernel, stride, dilation <= 2^31; 0 <= pad <= 2^31), so that the
 * sums and products below can't overflow.
 */
#include "op/shared/window.h"

#include <string.h>

#include "base/checked.h"

static ort_status read_list(const ort_node *node, const char *name, int64_t *out, size_t *rank,
                            size_t per_axis, int64_t low, bool *present, ort_error *err)
{
    size_t count = 0;
    const int64_t *list = ort_node_ints(node, name, &count);
    *present = list != NULL && count > 0;
    if (!*present && ort_node_has(node, name))
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "attribute %s is an empty list: it needs %zu numbers for each "
                             "spatial axis, or must be left out",
                             name, per_axis);
    if (!*present)
        return ORT_OK;
    if (count % per_axis || (*rank && count != *rank * per_axis) ||
        count > ORT_WINDOW_MAX * per_axis)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "attribute %s has %zu numbers, which doesn't fit %zu spatial axes",
                             name, count, *rank);
    *rank = count / per_axis;
    for (size_t i = 0; i < count; i++) {
        if (list[i] < low || list[i] > INT32_MAX)
            return ort_error_set(err, ORT_ERROR_MODEL,
                                 "attribute %s: %lld is outside [%lld, 2147483647]", name,
                                 (long long)list[i], (long long)low);
        out[i] = list[i];
    }
    return ORT_OK;
}

/* In the order of ort_auto_pad. */
static const char auto_pads[] = "NOTSET| VALID SAME_UPPER SAME_LOWER";

ort_status ort_window_read(const ort_node *node, ort_window_spec *spec, ort_error *err)
{
    size_t rank = 0;
    bool present;
    int64_t pads[2 * ORT_WINDOW_MAX];
    memset(spec, 0, sizeof *spec);
    for (int i = 0; i < ORT_WINDOW_MAX; i++)
        spec->kernel[i] = spec->stride[i] = spec->dilation[i] = 1;
    ORT_TRY(read_list(node, "kernel_shape", spec->kernel, &rank, 1, 1, &spec->has_kernel, err));
    ORT_TRY(read_list(node, "strides", spec->stride, &rank, 1, 1, &present, err));
    ORT_TRY(read_list(node, "dilations", spec->dilation, &rank, 1, 1, &present, err));
    ORT_TRY(read_list(node, "pads", pads, &rank, 2, 0, &present, err));
    for (size_t i = 0; present && i < rank; i++) {
        spec->begin[i] = pads[i];
        spec->end[i] = pads[rank + i];
    }
    spec->rank = (int)rank;
    const ort_attr *ceil = ort_node_attr_of(node, "ceil_mode", ORT_ATTR_INT);
    const ort_attr *mode = ort_node_attr_of(node, "auto_pad", ORT_ATTR_STRING);
    spec->ceil_mode = ceil && ceil->i != 0;
    int word = mode ? ort_word_find(auto_pads, mode->s.ptr, mode->s.length) : ORT_PAD_EXPLICIT;
    spec->auto_pad = (ort_auto_pad)word;
    return word >= 0 ? ORT_OK
                     : ort_error_set(err, ORT_ERROR_MODEL,
                                     "auto_pad '%s' isn't one of NOTSET, VALID, SAME_UPPER, "
                                     "SAME_LOWER", mode->s.ptr);
}

ort_status ort_window_bind(const ort_node *node, void *spec, ort_error *err)
{
    return ort_window_read(node, spec, err);
}

/* One axis with known numbers; also says how much padding there is. */
static ort_status resolve_axis(const ort_window_spec *spec, int axis, int64_t in, int64_t kernel,
                               int64_t *out, int64_t *begin, int64_t *end, ort_error *err)
{
    int64_t stride = spec->stride[axis], span = (kernel - 1) * spec->dilation[axis] + 1;
    if (kernel < 1 || kernel > INT32_MAX || in < 0)
        return ort_error_set(err, ORT_ERROR_MODEL, "the kernel has %lld elements along axis %d",
                             (long long)kernel, axis);
    if (spec->auto_pad == ORT_PAD_SAME_UPPER || spec->auto_pad == ORT_PAD_SAME_LOWER) {
        *out = (in + stride - 1) / stride;
        int64_t total = ort_max_i64((*out - 1) * stride + span - in, 0);
        int64_t less = total / 2, more = total - less;
        *begin = spec->auto_pad == ORT_PAD_SAME_UPPER ? less : more;
        *end = total - *begin;
        return ORT_OK;
    }
    bool padded = spec->auto_pad == ORT_PAD_EXPLICIT;
    *begin = padded ? spec->begin[axis] : 0;
    *end = padded ? spec->end[axis] : 0;
    int64_t room = in + *begin + *end - span;
    if (room < 0) {
        if (in == 0) {
            *out = 0;
            return ORT_OK;
        }
        return ort_error_set(
            err, ORT_ERROR_MODEL,
            "the window spans %lld along spatial axis %d, but the padded input has "
            "only %lld",
            (long long)span, axis, (long long)(room + span));
    }
    *out = room / stride + 1;
    if (spec->ceil_mode && room % stride && *out * stride < in + *begin)
        *out += 1; /* a last window that starts inside the input or its left padding */
    return ORT_OK;
}

ort_status ort_window_check_kernel(const ort_infer *x, const ort_window_spec *spec, int rank,
                                   const ort_dim *kernel, ort_error *err)
{
    for (int i = 0; spec->has_kernel && i < rank; i++)
        if (ort_dim_differ(kernel[i], ort_dim_of(spec->kernel[i])))
            return ort_infer_fail(x, err, "kernel_shape says %lld along axis %d, the weight %lld",
                                  (long long)spec->kernel[i], i + 2, (long long)kernel[i].size);
    return ORT_OK;
}

ort_status ort_window_infer(const ort_infer *x, const ort_window_spec *spec, int rank,
                            const ort_dim *in, const ort_dim *kernel, ort_dim *out, ort_error *err)
{
    if (spec->rank && spec->rank != rank)
        return ort_infer_fail(x, err, "attributes are for %d spatial axes, the input has %d",
                              spec->rank, rank);
    if (kernel)
        ORT_TRY(ort_window_check_kernel(x, spec, rank, kernel, err));
    for (int i = 0; i < rank; i++) {
        ort_dim k = spec->has_kernel ? ort_dim_of(spec->kernel[i])
                                     : kernel ? kernel[i] : ort_dim_unknown();
        ort_dim stride = ort_dim_of(spec->stride[i]);
        bool same = spec->auto_pad >= ORT_PAD_SAME_UPPER;
        if (ort_dim_known(in[i]) && (ort_dim_known(k) || same)) {
            int64_t size, begin, end;
            ORT_TRY(resolve_axis(spec, i, in[i].size, ort_dim_known(k) ? k.size : 1, &size, &begin,
                                 &end, err));
            out[i] = ort_dim_of(size);
        } else if (same) {
            out[i] = ort_dim_ceil_div(x->dims, in[i], stride);
        } else if (spec->ceil_mode || !ort_dim_known(k)) {
            out[i] = ort_dim_unknown();
        } else {
            int64_t pads = spec->auto_pad == ORT_PAD_EXPLICIT ? spec->begin[i] + spec->end[i] : 0;
            int64_t span = (k.size - 1) * spec->dilation[i] + 1;
            ort_dim room = ort_dim_add(x->dims, in[i], ort_dim_of(pads - span));
            out[i] = ort_dim_add(x->dims, ort_dim_div(x->dims, room, stride), ort_dim_of(1));
        }
    }
    return ORT_OK;
}

ort_status ort_window_infer_pool(ort_infer *x, int before, int behind, ort_error *err)
{
    ort_window_spec spec;
    ORT_TRY(ort_window_read(x->node, &spec, err));
    if (!spec.has_kernel)
        return ort_infer_fail(x, err, "attribute kernel_shape is missing");
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    ort_type t = x->in[0]->type;
    int rank = t.rank - before - behind;
    if (rank < 1)
        return ort_infer_fail(x, err, "the input has rank %d, pooling needs %d and more", t.rank,
                              before + behind + 1);
    ORT_TRY(ort_window_infer(x, &spec, rank, x->in[0]->type.dim + before, NULL, t.dim + before,
                             err));
    for (int i = 0; i < 2; i++)
        ort_infer_set_shape(x, i, t.rank, t.dim);
    return ORT_OK;
}

ort_status ort_window_resolve(const ort_window_spec *spec, int rank, const int64_t *in,
                              const int64_t *kernel, ort_window *w, ort_error *err)
{
    memset(w, 0, sizeof *w);
    if ((spec->rank && spec->rank != rank) || rank < 1 || rank > ORT_WINDOW_MAX)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "attributes are for %d spatial axes, the input has %d", spec->rank,
                             rank);
    w->rank = rank;
    for (int i = 0; i < rank; i++) {
        w->in[i] = in[i];
        w->kernel[i] = kernel ? kernel[i] : spec->kernel[i];
        w->stride[i] = spec->stride[i];
        w->dilation[i] = spec->dilation[i];
        ORT_TRY(resolve_axis(spec, i, in[i], w->kernel[i], &w->out[i], &w->begin[i], &w->end[i],
                             err));
    }
    return ORT_OK;
}

static void push_axis(int64_t *list, int rank, int64_t value)
{
    memmove(list + 1, list, (size_t)rank * sizeof *list);
    list[0] = value;
}

void ort_window_pad_to_3d(ort_window *w)
{
    for (; w->rank < 3; w->rank++) {
        push_axis(w->in, w->rank, 1);
        push_axis(w->out, w->rank, 1);
        push_axis(w->kernel, w->rank, 1);
        push_axis(w->stride, w->rank, 1);
        push_axis(w->dilation, w->rank, 1);
        push_axis(w->begin, w->rank, 0);
        push_axis(w->end, w->rank, 0);
    }
}

/* Does the last axis hold one place, and nothing but it? */
static bool is_column(const ort_window *w)
{
    int x = w->rank - 1;
    return w->in[x] == 1 && w->out[x] == 1 && w->kernel[x] == 1 && w->begin[x] == 0 &&
           w->end[x] == 0;
}

void ort_window_to_3d(ort_window *w)
{
    while (w->rank > 1 && w->rank <= 3 && is_column(w))
        w->rank--;
    ort_window_pad_to_3d(w);
}

/* The first of taps 0 .. w->kernel[axis] whose place is `place` or behind it, for the window that
 * begins at `start`. */
static int64_t tap_from(const ort_window *w, int axis, int64_t start, int64_t place)
{
    int64_t step = w->dilation[axis];
    int64_t tap = place > start ? (place - start - 1) / step + 1 : 0;
    return ort_min_i64(tap, w->kernel[axis]);
}

void ort_window_trim(ort_window *w)
{
    for (int i = 0; i < 3; i++) {
        int64_t furthest = (w->out[i] - 1) * w->stride[i] - w->begin[i];
        int64_t least = ort_min_i64(w->kernel[i], 2); /* an axis of one tap may change its place */
        int64_t first = ort_min_i64(tap_from(w, i, furthest, 0), w->kernel[i] - least);
        int64_t end = ort_max_i64(tap_from(w, i, -w->begin[i], w->in[i]), first + least);
        w->end[i] -= (w->kernel[i] - end) * w->dilation[i];
        w->begin[i] -= first * w->dilation[i];
        w->kernel[i] = end - first;
    }
}

ort_status ort_window_counts(const ort_window *w, int axis, bool include_pad, ort_arena *arena,
                             const float **counts, ort_error *err)
{
    int64_t low = include_pad ? -w->begin[axis] : 0;
    int64_t high = w->in[axis] + (include_pad ? w->end[axis] : 0);
    float *count = ort_arena_array(arena, (size_t)w->out[axis] + 1, sizeof *count);
    if (!count)
        return ort_error_memory(err, (size_t)w->out[axis] * sizeof *count);
    for (int64_t o = 0; o < w->out[axis]; o++) {
        int64_t start = o * w->stride[axis] - w->begin[axis];
        count[o] = (float)(tap_from(w, axis, start, high) - tap_from(w, axis, start, low));
    }
    *counts = count;
    return ORT_OK;
}

void ort_window_cost(const ort_infer *x, ort_cost *cost)
{
    const ort_type *y = &x->out[0].type;
    size_t rank = 0;
    const int64_t *kernel = ort_node_ints(x->node, "kernel_shape", &rank);
    double flops = 1;
    for (int d = 0; d < y->rank; d++)
        flops *= ort_dim_known(y->dim[d]) ? (double)y->dim[d].size : 0;
    for (size_t d = 0; d < rank; d++)
        flops *= (double)kernel[d];
    cost->flops = flops;
}
