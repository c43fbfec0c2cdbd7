/* gradient_windows.c - derivatives of convolutions and poolings, as convolutions and poolings.
 *
 *   y[o] = sum over k of w[k] * x[o * stride + k * dilation - begin]
 *
 *   gradient of x: ConvTranspose of gy with w, cut to x's size
 *   gradient of w: Conv of x with gy as the weight: its stride is the dilation and the other way
 *                  round; batch and channels change places
 *
 * Axes whose size is known while loading get explicit pads; else the whole of ConvTranspose is cut
 * by a Pad whose amounts are computed at run time.
 */
#include <string.h>

#include "gradient/gradient.h"
#include "op/shared/window.h"

typedef struct windows {
    ort_window w;     /* in and out are set when `sized` */
    bool sized;
    int64_t group;
} windows;

/* The spatial sizes of a value, when all are known. */
static bool spatial_sizes(const ort_emit *g, ort_id value, int64_t *sizes)
{
    const ort_type *type = ort_emit_type(g, value);
    for (int i = 2; i < type->rank; i++) {
        if (!ort_dim_known(type->dim[i]))
            return false;
        sizes[i - 2] = type->dim[i].size;
    }
    return type->rank > 2;
}

/* Windows over x; weight: whose dims give the kernel, or ORT_ID_NONE. False when refused. */
static bool read_windows(ort_emit *g, const ort_node *node, ort_id x, ort_id weight, windows *s)
{
    ort_window_spec spec;
    int64_t sizes[ORT_WINDOW_MAX], kernel[ORT_WINDOW_MAX];
    int rank = ort_emit_rank(g, x) - 2;
    memset(s, 0, sizeof *s);
    s->group = ort_op_has_attr(node->op, "group") ? ort_node_attr_int(node, "group") : 1;
    if (rank < 1 || s->group < 1)
        ort_emit_refuse(g, "it has %d spatial dimensions and %lld groups", rank,
                        (long long)s->group);
    if (g->status != ORT_OK || (g->status = ort_window_read(node, &spec, g->err)) != ORT_OK)
        return false;
    if (weight != ORT_ID_NONE && !spatial_sizes(g, weight, kernel)) {
        ort_emit_refuse(g, "the size of its kernel isn't known while loading");
        return false;
    }
    s->sized = spatial_sizes(g, x, sizes);
    if (s->sized) {
        g->status = ort_window_resolve(&spec, rank, sizes, weight == ORT_ID_NONE ? NULL : kernel,
                                       &s->w, g->err);
        return g->status == ORT_OK;
    }
    if (spec.ceil_mode || spec.auto_pad >= ORT_PAD_SAME_UPPER) {
        ort_emit_refuse(g, "with auto_pad or ceil_mode the input's size must be known");
        return false;
    }
    s->w.rank = rank;
    for (int i = 0; i < rank; i++) {
        s->w.kernel[i] = weight == ORT_ID_NONE ? spec.kernel[i] : kernel[i];
        s->w.stride[i] = spec.stride[i];
        s->w.dilation[i] = spec.dilation[i];
        s->w.begin[i] = spec.auto_pad == ORT_PAD_EXPLICIT ? spec.begin[i] : 0;
        s->w.end[i] = spec.auto_pad == ORT_PAD_EXPLICIT ? spec.end[i] : 0;
    }
    return true;
}

static int64_t span(const ort_window *w, int axis)
{
    return (w->kernel[axis] - 1) * w->dilation[axis] + 1;
}

/* ---- to the input */

/* The full size of ConvTranspose cut or padded to x's, amounts from shapes. */
static ort_id fit(ort_emit *g, const ort_window *w, ort_id full, ort_id x)
{
    int64_t before[ORT_WINDOW_MAX];
    for (int i = 0; i < w->rank; i++)
        before[i] = -w->begin[i];
    return ort_emit_formula(g, "after = (Dims x 2 $rank) - (Dims y 2 $rank) - $before;"
                            "(Pad y (Concat [0 0] $before [0 0] after axis=0))",
                            "x y $rank $before[]", x, full, (double)w->rank + 2, before, w->rank);
}

/* ConvTranspose of gy with the weight, of x's spatial size. */
static ort_id spread(ort_emit *g, const windows *s, ort_id gy, ort_id weight, ort_id x)
{
    const ort_window *w = &s->w;
    int64_t pads[2 * ORT_WINDOW_MAX], more[ORT_WINDOW_MAX];
    for (int i = 0; i < w->rank && s->sized; i++) {
        int64_t after = (w->out[i] - 1) * w->stride[i] + span(w, i) - w->begin[i] - w->in[i];
        pads[i] = w->begin[i];
        pads[w->rank + i] = after > 0 ? after : 0;
        more[i] = after > 0 ? 0 : -after;
    }
    ort_id full = ort_emit_formula(
        g, s->sized ? "(ConvTranspose g w group=$group strides=$s dilations=$d pads=$pads "
                      "output_padding=$more)"
                    : "(ConvTranspose g w group=$group strides=$s dilations=$d)",
        "g w $group $s[] $d[] $pads[] $more[]", gy, weight, (double)s->group, w->stride, w->rank,
        w->dilation, w->rank, pads, 2 * w->rank, more, w->rank);
    return s->sized ? full : fit(g, w, full, x);
}

/* ---- to the weight */

/* x [N, C, ...] as [C / group, group * N, ...]. */
static ort_id by_channel(ort_emit *g, ort_id x, int64_t group, int64_t channels, int rank)
{
    int64_t perm[ORT_MAX_RANK] = {1, 0};
    for (int i = 2; i < ORT_MAX_RANK; i++)
        perm[i] = i;
    if (group == 1)
        return ort_emit_transpose(g, x, perm, rank);
    if (rank == ORT_MAX_RANK) {
        ort_emit_refuse(g, "its gradient takes %d dimensions, at most %d are possible", rank + 1,
                        ORT_MAX_RANK);
        return ORT_ID_NONE;
    }
    perm[0] = 2;
    perm[1] = 1;
    perm[2] = 0;
    return ort_emit_formula(
        g, "wide = (Reshape x (Concat (Dims x 0 1) [$group $each] (Dims x 2 $rank) axis=0));"
           "(Reshape (Transpose wide perm=$perm) (Concat [$each -1] (Dims x 2 $rank) axis=0))",
        "x $group $each $rank $perm[]", x, (double)group, (double)(channels / group), (double)rank,
        perm, rank + 1);
}

/* Conv of x with the pads of s, of which the first `shape` positions stay: input behind the last
 * window gives more of them. */
static ort_id cut_conv(ort_emit *g, const windows *s, ort_id x, ort_id weight,
                       const int64_t *strides, const int64_t *dilations, ort_id shape)
{
    int rank = s->w.rank;
    int64_t pads[2 * ORT_WINDOW_MAX], axes[ORT_WINDOW_MAX], zeros[ORT_WINDOW_MAX] = {0};
    for (int i = 0; i < rank; i++) {
        pads[i] = s->w.begin[i];
        pads[rank + i] = s->w.end[i];
        axes[i] = 2 + i;
    }
    return ort_emit_formula(
        g, "(Slice (Conv x w group=$group strides=$s dilations=$d pads=$p) $zeros shape $axes)",
        "x w shape $group $s[] $d[] $p[] $zeros[] $axes[]", x, weight, shape, (double)s->group,
        strides, rank, dilations, rank, pads, 2 * rank, zeros, rank, axes, rank);
}

/* Gradient of a weight [M, C / group, ...] that reads `wide` [N, C, ...] and gives `narrow`
 * [N, M, ...]. */
static ort_id correlate(ort_emit *g, const windows *s, ort_id wide, ort_id narrow, ort_id weight)
{
    const ort_window *w = &s->w;
    const ort_type *type = ort_emit_type(g, weight);
    int64_t perm[ORT_MAX_RANK] = {1, 0};
    int rank = w->rank + 2;
    if (type->rank != rank || !ort_dim_known(type->dim[1])) {
        ort_emit_refuse(g, "the shape of its weight isn't known while loading");
        return ORT_ID_NONE;
    }
    for (int i = 2; i < rank; i++)
        perm[i] = i;
    ort_id by = by_channel(g, wide, s->group, type->dim[1].size * s->group, rank);
    ort_id turned = ort_emit_transpose(g, narrow, perm, rank);
    ort_id all = cut_conv(g, s, by, turned, w->dilation, w->stride,
                          ort_emit_ints(g, w->kernel, w->rank));
    return ort_emit_transpose(g, all, perm, rank);
}

static void bias_back(ort_emit *g, const ort_node *node, int rank)
{
    int64_t axes[ORT_MAX_RANK] = {0};
    for (int i = 2; i < rank; i++)
        axes[i - 1] = i;
    if (ort_grad_wants(g, node, 2))
        ort_grad_add(g, node, 2,
                     ort_emit_formula(g, "(ReduceSum g $axes keepdims=0)", "g $axes[]",
                                      ort_grad_of(g, node, 0), axes, rank - 1));
}

static void conv_back(ort_emit *g, const ort_node *node)
{
    ort_id x = node->inputs[0], w = node->inputs[1], gy = ort_grad_of(g, node, 0);
    windows s;
    if (!read_windows(g, node, x, w, &s))
        return;
    if (ort_grad_wants(g, node, 0))
        ort_grad_add(g, node, 0, spread(g, &s, gy, w, x));
    if (ort_grad_wants(g, node, 1))
        ort_grad_add(g, node, 1, correlate(g, &s, x, gy, w));
    bias_back(g, node, s.w.rank + 2);
}

/* The convolution whose input is y and whose result is x; output_padding is input that no window
 * reaches. */
static void conv_transpose_back(ort_emit *g, const ort_node *node)
{
    ort_id x = node->inputs[0], weight = node->inputs[1], gy = ort_grad_of(g, node, 0);
    windows s;
    if (!ort_node_attr_is(node, "auto_pad", "NOTSET") || ort_node_has(node, "output_shape")) {
        ort_emit_refuse(g, "with auto_pad or output_shape there is no gradient; give its pads");
        return;
    }
    if (!read_windows(g, node, node->outputs[0], weight, &s))
        return;
    if (ort_grad_wants(g, node, 0))
        ort_grad_add(g, node, 0, cut_conv(g, &s, gy, weight, s.w.stride, s.w.dilation,
                                          ort_emit_dims(g, x, 2, s.w.rank + 2)));
    if (ort_grad_wants(g, node, 1))
        ort_grad_add(g, node, 1, correlate(g, &s, gy, x, weight));
    bias_back(g, node, s.w.rank + 2);
}

/* ---- poolings */

/* The node gives the indices of its maxima already, or it is computed again with them. */
static ort_id maximum_indices(ort_emit *g, const ort_node *node)
{
    return ort_emit_formula(g, "y,i = (MaxPool x &_ storage_order=0); i", "x", node->inputs[0]);
}

static void max_pool_back(ort_emit *g, const ort_node *node)
{
    bool overlap = false;
    ort_window_spec spec;
    ort_id gy = ort_grad_of(g, node, 0);
    if ((g->status = ort_window_read(node, &spec, g->err)) != ORT_OK)
        return;
    for (int i = 0; i < spec.rank; i++)
        overlap = overlap || spec.stride[i] < (spec.kernel[i] - 1) * spec.dilation[i] + 1;
    ort_grad_add(g, node, 0,
                 ort_emit_scatter(g, node->inputs[0], maximum_indices(g, node), gy, overlap));
}

/* Ones of the spatial size of x, widened by `more` where sizes are known: [1, 1, ...]. */
static ort_id plane_of_ones(ort_emit *g, const windows *s, ort_id x, bool with_pads)
{
    int64_t dims[ORT_MAX_RANK] = {1, 1};
    for (int i = 0; i < s->w.rank && s->sized; i++)
        dims[2 + i] = s->w.in[i] + (with_pads ? s->w.begin[i] + s->w.end[i] : 0);
    return ort_emit_formula(g, s->sized ? "(Expand 1 $dims)"
                                        : "(Expand 1 (Concat [1 1] (Dims x 2 $rank) axis=0))",
                            "x $rank $dims[]", x, (double)s->w.rank + 2, dims, s->w.rank + 2);
}

static ort_id kernel_of_ones(ort_emit *g, const windows *s, ort_id x)
{
    int64_t dims[ORT_MAX_RANK] = {1, 1};
    for (int i = 0; i < s->w.rank; i++)
        dims[2 + i] = s->w.kernel[i];
    return ort_emit_formula(g, "(Expand 1 $dims)", "x $dims[]", x, dims, s->w.rank + 2);
}

/* How many elements each window divides by: [1, 1, ...] or a scalar. A last window of ceil_mode
 * reaches beyond the padding, and what lies there never counts. */
static ort_id divisors(ort_emit *g, const windows *s, const ort_node *node, ort_id ones)
{
    const ort_window *w = &s->w;
    ort_id x = node->inputs[0];
    bool with_pads = ort_node_attr_int(node, "count_include_pad") != 0, beyond = false;
    int64_t pads[2 * ORT_WINDOW_MAX], all = 1;
    for (int i = 0; i < w->rank; i++) {
        int64_t used = s->sized ? (w->out[i] - 1) * w->stride[i] + span(w, i) - w->begin[i] -
                                      w->in[i] : 0;
        int64_t more = used > w->end[i] ? used - w->end[i] : 0;
        all *= w->kernel[i];
        beyond = beyond || more;
        pads[i] = with_pads ? 0 : w->begin[i];
        pads[w->rank + i] = more + (with_pads ? 0 : w->end[i]);
    }
    if (with_pads && !beyond)
        return ort_emit_number(g, x, (double)all);
    return ort_emit_formula(g, "(Conv plane ones strides=$s dilations=$d pads=$p)",
                            "plane ones $s[] $d[] $p[]", plane_of_ones(g, s, x, with_pads), ones,
                            w->stride, w->rank, w->dilation, w->rank, pads, 2 * w->rank);
}

/* Each window gives back its share to all its elements: batch and channels are one axis. */
static void average_pool_back(ort_emit *g, const ort_node *node)
{
    ort_id x = node->inputs[0], gy = ort_grad_of(g, node, 0);
    windows s;
    if (!read_windows(g, node, x, ORT_ID_NONE, &s))
        return;
    ort_id ones = kernel_of_ones(g, &s, x);
    ort_id flat = ort_emit_formula(
        g, "(Reshape (g / n) (Concat [-1 1] (Dims g 2 $rank) axis=0))", "g n $rank", gy,
        divisors(g, &s, node, ones), (double)s.w.rank + 2);
    ort_grad_add(g, node, 0, ort_emit_reshape_like(g, spread(g, &s, flat, ones, x), x));
}

static void global_max_back(ort_emit *g, const ort_node *node)
{
    int64_t axes[ORT_MAX_RANK];
    ort_id x = node->inputs[0];
    int rank = ort_emit_rank(g, x);
    if (rank < 3) {
        ort_emit_refuse(g, "it has %d dimensions, needs 3 or more", rank);
        return;
    }
    for (int i = 2; i < rank; i++)
        axes[i - 2] = i;
    ort_grad_add(g, node, 0,
                 ort_emit_formula(g, "m = (CastLike (Equal x y) x); g * m / (ReduceSum m $axes)",
                                  "g x y $axes[]", ort_grad_of(g, node, 0), x, node->outputs[0],
                                  axes, rank - 2));
}

const ort_grad_rule ort_grad_windows[] = {
    {.op_type = "AveragePool", .back = average_pool_back},
    {.op_type = "Conv", .back = conv_back},
    {.op_type = "ConvTranspose", .back = conv_transpose_back},
    {.op_type = "GlobalAveragePool", .whole = "(ExpandLike (g * (Count g g) / (Count a g)) a)"},
    {.op_type = "GlobalMaxPool", .back = global_max_back},
    {.op_type = "MaxPool", .back = max_pool_back},
    {.op_type = NULL},
};
