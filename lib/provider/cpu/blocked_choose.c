/* blocked_choose.c - which nodes run in the blocked channel layout.
 *
 * Convolutions that the blocked kernels serve well start the layout; what follows them joins while
 * its operands are there already. Nodes that hand blocked tensors to each other form a region; a
 * region stays when its convolutions gain more than the conversions at its border cost. The costs
 * are cycles per product and per element, measured on both vector tiers; unknown extents count as
 * a middling size.
 */
#pragma GCC optimize("Os") /* runs once for a model */
#include <string.h>

#include "graph/uses.h"
#include "op/blocked/bytes_op.h"
#include "op/edit.h"
#include "pass/facts/facts.h"
#include "op/eval.h"
#include "op/shared/fused.h"
#include "op/shared/unary_apply.h"
#include "op/shared/window.h"
#include "provider/cpu/blocked_choose.h"
#include "provider/cpu/layout_edit.h"

enum {
    PLAIN_CHANNELS = 4,
    PLAIN_DEPTH = 256,   /* taps times channels of a convolution that reads plain rows */
    LONG_FILTER = 32,    /* columns: filter banks keep the sums of the plain path */
    UNKNOWN_EXTENT = 32,
};
enum { TAP_WORK = 3, ELEMENT_WORK = 2 }; /* in products, which a vector has of one input channel */
static const double product_gain = 0.012, depthwise_gain = 0.15, spread_gain = 0.7,
                    convert_cost = 1.5, join_cost = 0.5, given_gain = 0.5, narrow_share = 0.975;

static bool is_plane(const ort_type *t)
{
    return t->kind == ORT_TYPE_TENSOR && t->dtype == ORT_DTYPE_FLOAT &&
           (t->rank == 3 || t->rank == 4) && ort_dim_known(t->dim[1]);
}

/* The layout splits channels alone: other axes broadcast in it as they do outside. */
static bool same_channels(const ort_type *a, const ort_type *b)
{
    return a->rank == b->rank && ort_dim_equal(a->dim[1], b->dim[1]);
}

static double elements(const ort_type *t)
{
    double product = 1;
    for (int d = 0; d < t->rank; d++)
        product *= ort_dim_known(t->dim[d]) ? (double)t->dim[d].size
                   : d == 0                 ? 1
                                            : UNKNOWN_EXTENT;
    return product;
}

/* ---- convolutions */

static bool fills_blocks(int64_t channels, int64_t block)
{
    return (channels + block - 1) / block * block <= 2 * channels;
}

static bool is_conv(const ort_node *node)
{
    return ort_edit_is_any(node, "Conv|ms.FusedConv");
}

/* Constant when the session prepares its nodes: a constant, or bytes that it dequantizes once. */
static bool constant_later(const ort_graph *graph, const ort_node *node, int slot,
                           ort_shape *shape)
{
    const ort_type *t = ort_fact_type(graph, node->inputs[slot]);
    const ort_node *from = ort_edit_producer(graph, node->inputs[slot]);
    if (t->kind != ORT_TYPE_TENSOR || t->dtype != ORT_DTYPE_FLOAT || !ort_type_concrete(t, shape))
        return false;
    if (!from || !ort_edit_is(from, ONNX, "DequantizeLinear"))
        return ort_edit_constant(graph, node, slot) != NULL;
    for (int i = 0; i < from->input_count; i++)
        if (from->inputs[i] != ORT_ID_NONE && !ort_edit_constant(graph, from, i))
            return false;
    return true;
}

static bool reads_plain(const ort_graph *graph, const ort_node *conv)
{
    ort_shape w;
    return constant_later(graph, conv, 1, &w) && w.dim[1] <= PLAIN_CHANNELS &&
           ort_node_attr_int(conv, "group") == 1 &&
           ort_shape_count_range(&w, 1, w.rank) <= PLAIN_DEPTH &&
           (conv->input_count < 4 || conv->inputs[3] == ORT_ID_NONE);
}

bool ort_blocked_from_plain(const ort_graph *graph, const ort_blocked_choice *c,
                            const ort_node *conv)
{
    const ort_type *w = ort_fact_type(graph, conv->inputs[1]);
    return reads_plain(graph, conv) &&
           (!c->blocked[conv->inputs[0]] || w->dim[1].size == 1);
}

static bool is_single(const ort_type *t)
{
    return ort_dim_known(t->dim[t->rank - 1]) && t->dim[t->rank - 1].size == 1;
}

/* Columns: the kernels keep neighbouring pixels of a row in registers, and there are none. A single
 * column under a window of one is a row to them. */
static bool is_column(const ort_graph *graph, const ort_node *node, const ort_shape *w)
{
    const ort_type *x = ort_fact_type(graph, node->inputs[0]);
    const ort_type *t = ort_fact_type(graph, node->outputs[0]);
    ort_dim height = t->dim[t->rank - 2], width = t->dim[t->rank - 1];
    if (t->rank == 4 && is_single(x) && is_single(t) && w->dim[3] == 1)
        return w->dim[2] >= LONG_FILTER && w->dim[1] < 8;
    return t->rank == 4 && ort_dim_known(width) && width.size < 4 &&
           (!ort_dim_known(height) || height.size > 4 * width.size);
}

/* Why a convolution can't run in the layout; NULL: it can. */
static const char *conv_stays(const ort_graph *graph, const ort_blocked_choice *c,
                              const ort_node *node)
{
    ort_shape w, b;
    ort_epilogue e = ort_epilogue_none();
    bool blocked = c->blocked[node->inputs[0]];
    const ort_type *x = ort_fact_type(graph, node->inputs[0]);
    if (!is_plane(x) || !is_plane(ort_fact_type(graph, node->outputs[0])))
        return "it isn't float over one or two axes with known channels";
    if (!constant_later(graph, node, 1, &w) ||
        (ort_edit_input(node, 2) != ORT_ID_NONE &&
         !constant_later(graph, node, 2, &b)))
        return "its filters or its bias aren't constant";
    int64_t group = ort_node_attr_int(node, "group"), maps = w.dim[0];
    if (w.rank != x->rank || ort_shape_count(&w) == 0 || group < 1 || maps % group)
        return "its filters don't fit";
    if ((w.dim[w.rank - 1] >= LONG_FILTER && w.dim[1] < 8) || is_column(graph, node, &w))
        return "its filters are long rows";
    if (!ort_epilogue_activate(&e, ort_node_string(node, "activation", ""), NULL, 0))
        return "its activation isn't one of the layout's";
    if (group > 1 && w.dim[1] == 1 && maps == group)
        return blocked ? NULL : "it is depthwise, and its input doesn't lie in the layout";
    if (group > 1)
        return w.dim[1] % c->block == 0 && maps / group % c->block == 0
                   ? NULL : "its groups aren't of whole blocks of channels";
    /* a block half empty costs less than a way out */
    if (!blocked && !fills_blocks(maps, c->block))
        return "its channels would fill less than half of their blocks";
    return blocked || reads_plain(graph, node) || w.dim[1] >= 8
               ? NULL : "its input has few channels and doesn't lie in the layout";
}

const char *ort_blocked_stays(const ort_graph *graph, const ort_blocked_choice *c,
                              const ort_node *node)
{
    if (!is_conv(node) || c->role[node->id])
        return NULL;
    const char *why = conv_stays(graph, c, node);
    return why ? why : "its region would gain less than the ways in and out cost";
}

static double conv_gain(const ort_graph *graph, const ort_node *node)
{
    ort_shape w;
    if (!constant_later(graph, node, 1, &w))
        return 0;
    double taps = (double)ort_shape_count_range(&w, 2, w.rank);
    double macs = elements(ort_fact_type(graph, node->outputs[0])) * taps * (double)w.dim[1];
    if (w.dim[1] == 1 && ort_node_attr_int(node, "group") > 1)
        return macs * depthwise_gain;
    return macs * product_gain +
           (taps > 1 ? elements(ort_fact_type(graph, node->inputs[0])) * spread_gain : 0);
}

/* ---- what follows them */

bool ort_blocked_is_mean(const ort_graph *graph, const ort_node *node)
{
    if (!ort_edit_is(node, ONNX, "ReduceMean"))
        return false;
    int rank = ort_fact_type(graph, node->inputs[0])->rank;
    return rank >= 3 && ort_fact_kept_axes(graph, node, rank) == (1u << rank) - 4;
}

static bool serves_pool(const ort_graph *graph, const ort_blocked_choice *c, const ort_node *node)
{
    bool known = ort_edit_is_any(node, "MaxPool|AveragePool|GlobalMaxPool|GlobalAveragePool") ||
                 ort_blocked_is_mean(graph, node);
    return known && c->blocked[node->inputs[0]] &&
           (node->output_count < 2 || node->outputs[1] == ORT_ID_NONE) &&
           is_plane(ort_fact_type(graph, node->outputs[0]));
}

/* One element that isn't in the layout: a scalar operand, bounds of a Clip. */
static bool one_element(const ort_graph *graph, ort_id id)
{
    const ort_tensor *t = graph->values.data[id]->fact.value;
    return t && ort_tensor_count(t) == 1 && t->shape.rank <= 1;
}

static bool binary_name(const ort_node *node)
{
    return ort_edit_is_any(node, "Add|Sub|Mul|Div|Max|Min") && node->opset >= 8 &&
           node->input_count == 2;
}

static bool serves_same(const ort_graph *graph, const ort_blocked_choice *c, const ort_node *node)
{
    ort_unary id;
    float a, b;
    if (node->output_count != 1 || !node->op || node->input_count < 1 ||
        node->inputs[0] == ORT_ID_NONE || !is_plane(ort_fact_type(graph, node->outputs[0])))
        return false;
    bool unary = node->input_count == 1 && ort_unary_of_node(node, &id, &a, &b);
    bool clip = ort_edit_is(node, ONNX, "Clip") && c->blocked[node->inputs[0]];
    if (!unary && !clip && !binary_name(node))
        return false;
    int planes = 0;
    bool same = true;
    for (int i = 0; i < node->input_count; i++) {
        ort_id in = node->inputs[i];
        if (in == ORT_ID_NONE || one_element(graph, in))
            continue;
        if (!c->blocked[in])
            return false;
        planes++;
        same = same && same_channels(ort_fact_type(graph, in),
                                     ort_fact_type(graph, node->outputs[0]));
    }
    return planes == 1 || (planes > 1 && same); /* one alone gives its shape, though unknown */
}

/* [N, C, 1, 1] against [N, C, H, W]; the plane may stand on either side. */
static bool per_channel(const ort_type *plane, const ort_type *one)
{
    if (plane->rank != one->rank || !ort_dim_equal(plane->dim[0], one->dim[0]) ||
        !ort_dim_equal(plane->dim[1], one->dim[1]))
        return false;
    for (int d = 2; d < one->rank; d++)
        if (!ort_dim_known(one->dim[d]) || one->dim[d].size != 1)
            return false;
    return true;
}

static bool serves_scale(const ort_graph *graph, const ort_blocked_choice *c, const ort_node *node)
{
    if (!ort_edit_is_any(node, "Mul|Add") || node->opset < 7 ||
        node->input_count != 2 || !c->blocked[node->inputs[0]] || !c->blocked[node->inputs[1]])
        return false;
    const ort_type *a = ort_fact_type(graph, node->inputs[0]);
    const ort_type *b = ort_fact_type(graph, node->inputs[1]);
    return per_channel(a, b) || per_channel(b, a);
}

static bool serves_affine(const ort_graph *graph, const ort_blocked_choice *c,
                          const ort_node *node)
{
    ort_id data = ort_blocked_affine_data(graph, node);
    return data != ORT_ID_NONE && c->blocked[data] &&
           is_plane(ort_fact_type(graph, node->outputs[0])) &&
           same_channels(ort_fact_type(graph, data), ort_fact_type(graph, node->outputs[0]));
}

/* Does somebody who computes with channels read it? Others would only get it out of the layout. */
static bool is_computed_with(const ort_graph *graph, ort_id value)
{
    ort_readers readers = ort_readers_of(graph, value);
    for (const ort_node *node; (node = ort_readers_next(&readers));)
        if (is_conv(node) || ort_edit_is_any(node, "BatchNormalization|MaxPool|AveragePool|Relu"))
            return true;
    return false;
}

/* Whole blocks are put behind each other as they are; others are worth it for a computation. */
static ort_blocked_role role_of_concat(const ort_graph *graph, const ort_blocked_choice *c,
                                       const ort_node *node)
{
    bool whole = true;
    if (!ort_edit_is(node, ONNX, "Concat") || !is_plane(ort_fact_type(graph, node->outputs[0])))
        return ORT_BLOCKED_NONE;
    int64_t axis = ort_node_attr_int(node, "axis");
    if (axis != 1 && axis != 1 - ort_fact_type(graph, node->outputs[0])->rank)
        return ORT_BLOCKED_NONE;
    for (int i = 0; i < node->input_count; i++) {
        const ort_type *t = ort_fact_type(graph, node->inputs[i]);
        if (!c->blocked[node->inputs[i]])
            return ORT_BLOCKED_NONE;
        whole = whole && (i + 1 == node->input_count || t->dim[1].size % c->block == 0);
    }
    return whole                                          ? ORT_BLOCKED_CONCAT
           : is_computed_with(graph, node->outputs[0]) ? ORT_BLOCKED_JOIN
                                                          : ORT_BLOCKED_NONE;
}

/* The whole factor of an axis, told by `scales` or by `sizes` over a known extent; else 0. */
static int64_t repeat_factor(const ort_graph *graph, const ort_node *node, int axis)
{
    const ort_tensor *scales = ort_edit_constant(graph, node, node->opset >= 11 ? 2 : 1);
    const ort_tensor *sizes = node->opset >= 11 ? ort_edit_constant(graph, node, 3) : NULL;
    if (scales && scales->dtype == ORT_DTYPE_FLOAT && ort_tensor_count(scales) == 4) {
        double scale = ort_tensor_get_f64(scales, axis);
        return scale >= 1 && scale <= 16 && scale == (double)(int64_t)scale ? (int64_t)scale : 0;
    }
    if (!sizes || sizes->dtype != ORT_DTYPE_INT64 || ort_tensor_count(sizes) != 4)
        return 0;
    ort_dim in = ort_fact_type(graph, node->inputs[0])->dim[axis];
    int64_t size = ort_tensor_get_i64(sizes, axis);
    if (!ort_dim_known(in) || in.size < 1 || size < in.size || size % in.size)
        return 0;
    return size / in.size;
}

/* Does a nearest pixel repeat the one that it grew from, at whole factors? */
static bool repeats(const ort_node *node)
{
    static const char place[] = "coordinate_transformation_mode", round[] = "nearest_mode";
    if (!ort_node_attr_is(node, "mode", "nearest"))
        return false;
    if (node->opset < 11) /* asymmetric and rounded down, without attributes */
        return true;
    if (ort_node_attr_is(node, place, "half_pixel") ||
        ort_node_attr_is(node, place, "pytorch_half_pixel"))
        return ort_node_attr_is(node, round, "round_prefer_floor") ||
               ort_node_attr_is(node, round, "round_prefer_ceil");
    return ort_node_attr_is(node, place, "asymmetric") && ort_node_attr_is(node, round, "floor");
}

/* Where a linear pixel lies, in the words of BlockedUpsample; NULL: not where those know. */
static const char *linear_place(const ort_node *node)
{
    static const char place[] = "coordinate_transformation_mode";
    if (node->opset < 11)
        return "asymmetric";
    if (ort_node_has(node, "antialias") && ort_node_attr_int(node, "antialias"))
        return NULL;
    return ort_node_attr_is(node, place, "half_pixel") ||
                   ort_node_attr_is(node, place, "pytorch_half_pixel") ? "half_pixel"
           : ort_node_attr_is(node, place, "align_corners")            ? "align_corners"
           : ort_node_attr_is(node, place, "asymmetric")               ? "asymmetric"
                                                                       : NULL;
}

bool ort_blocked_grows(const ort_graph *graph, const ort_node *node, int64_t factors[2],
                       const char **place)
{
    *place = NULL;
    if (!ort_edit_is_any(node, "Resize|Upsample") || node->input_count < 2 ||
        ort_node_attr(node, "axes") || ort_fact_type(graph, node->inputs[0])->rank != 4 ||
        (ort_node_has(node, "keep_aspect_ratio_policy") &&
         !ort_node_attr_is(node, "keep_aspect_ratio_policy", "stretch")) ||
        !(ort_node_attr_is(node, "mode", "linear") ? (*place = linear_place(node)) != NULL
                                                   : repeats(node)))
        return false;
    for (int i = 0; i < 2; i++)
        factors[i] = repeat_factor(graph, node, 2 + i);
    return repeat_factor(graph, node, 0) == 1 && repeat_factor(graph, node, 1) == 1 &&
           factors[0] > 0 && factors[1] > 0;
}

/* ---- between the layout of bytes and this one */

static bool serves_given(const ort_graph *graph, const ort_node *node)
{
    ort_shape w;
    if (!ort_edit_is(node, ORT_INTERNAL, "BytesConvFloat") ||
        !is_plane(ort_fact_type(graph, node->outputs[0])) ||
        !ort_type_concrete(ort_fact_type(graph, node->inputs[1]), &w))
        return false;
    int64_t group = ort_node_attr_int(node, "group");
    return group == 1 || (w.dim[1] == 1 && w.dim[0] == group);
}

static bool serves_codes(const ort_graph *graph, const ort_blocked_choice *c, const ort_node *node)
{
    if (!ort_edit_is(node, ONNX, "QuantizeLinear") || !c->blocked[node->inputs[0]] ||
        graph->values.data[node->outputs[0]]->is_output ||
        ORT_BYTES_BLOCK % c->block || c->block * 2 < ORT_BYTES_BLOCK)
        return false;
    ort_id out = node->outputs[0], zero = ort_edit_input(node, 2);
    const ort_tensor *scale = ort_edit_constant(graph, node, 1);
    const ort_dtype dtype = ort_fact_type(graph, out)->dtype;
    if (!scale || scale->dtype != ORT_DTYPE_FLOAT || ort_tensor_count(scale) != 1 ||
        (zero != ORT_ID_NONE && (!ort_edit_constant(graph, node, 2) ||
                                 ort_tensor_count(ort_edit_constant(graph, node, 2)) != 1)) ||
        (dtype != ORT_DTYPE_UINT8 && dtype != ORT_DTYPE_INT8) ||
        (zero == ORT_ID_NONE && dtype != ORT_DTYPE_UINT8))
        return false;
    int uses = 0;
    ort_readers readers = ort_readers_of(graph, out);
    for (const ort_node *reader; (reader = ort_readers_next(&readers)); uses++)
        if (!ort_edit_is(reader, ORT_INTERNAL, "BlockBytes"))
            return false;
    return uses > 0 && uses == graph->values.data[out]->use_count;
}

static ort_blocked_role role_of(const ort_graph *graph, const ort_blocked_choice *c,
                                const ort_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (i != 2 && node->inputs[i] == ORT_ID_NONE && is_conv(node))
            return ORT_BLOCKED_NONE;
    if (!node->op || node->body_count || node->input_count > ORT_LAYOUT_INPUTS)
        return ORT_BLOCKED_NONE;
    if (is_conv(node))
        return conv_stays(graph, c, node) ? ORT_BLOCKED_NONE : ORT_BLOCKED_CONV;
    if (node->input_count < 1 || node->inputs[0] == ORT_ID_NONE)
        return ORT_BLOCKED_NONE;
    if (serves_given(graph, node))
        return ORT_BLOCKED_GIVEN;
    if (serves_codes(graph, c, node))
        return ORT_BLOCKED_CODES;
    if (serves_pool(graph, c, node))
        return ORT_BLOCKED_POOL;
    if (serves_scale(graph, c, node))
        return ORT_BLOCKED_SCALE;
    if (serves_same(graph, c, node))
        return ORT_BLOCKED_SAME;
    if (serves_affine(graph, c, node))
        return ORT_BLOCKED_AFFINE;
    int64_t factors[2];
    const char *place;
    if (c->blocked[node->inputs[0]] && ort_blocked_grows(graph, node, factors, &place) &&
        is_plane(ort_fact_type(graph, node->outputs[0])))
        return ORT_BLOCKED_RESIZE;
    return role_of_concat(graph, c, node);
}

bool ort_blocked_slot(ort_blocked_role role, int slot)
{
    if (role == ORT_BLOCKED_POOL || role == ORT_BLOCKED_RESIZE || role == ORT_BLOCKED_CODES)
        return slot == 0;
    if (role == ORT_BLOCKED_GIVEN)
        return false;
    return role == ORT_BLOCKED_CONV ? slot == 0 || slot == 3 : role != ORT_BLOCKED_NONE;
}

/* ---- regions */

static ort_id root_of(const ort_blocked_choice *c, ort_id node)
{
    while (c->region[node] != node)
        node = c->region[node] = c->region[c->region[node]];
    return node;
}

/* Nodes that hand each other blocked tensors have one root; uses are counted on the way. */
static void join_regions(const ort_graph *graph, ort_blocked_choice *c)
{
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
        for (int i = 0; c->role[node->id] && i < node->input_count; i++) {
            ort_id in = node->inputs[i];
            if (in == ORT_ID_NONE || !c->blocked[in] || !ort_blocked_slot(c->role[node->id], i) ||
                (i == 0 && is_conv(node) && ort_blocked_from_plain(graph, c, node)))
                continue;
            c->uses[in]++;
            c->region[root_of(c, node->id)] = root_of(c, graph->producers.data[in]);
        }
}

/* Who watches it may look at whole blocks (exec/seen.c), so that this way out is never run. */
static bool shows_blocks(const ort_graph *graph, const ort_blocked_choice *c, ort_id value)
{
    return c->any_order && graph->values.data[value]->is_watched &&
           ort_fact_type(graph, value)->dim[1].size % c->block == 0;
}

static double gain_of(const ort_graph *graph, const ort_blocked_choice *c, const ort_node *node)
{
    double gain = 0;
    ort_id out = node->outputs[0];
    if (c->role[node->id] == ORT_BLOCKED_CONV) {
        gain = conv_gain(graph, node);
        if (!c->blocked[node->inputs[0]] && !ort_blocked_from_plain(graph, c, node))
            gain -= elements(ort_fact_type(graph, node->inputs[0])) * convert_cost;
        if (ort_edit_input(node, 3) != ORT_ID_NONE && !c->blocked[node->inputs[3]])
            gain -= elements(ort_fact_type(graph, node->inputs[3])) * convert_cost;
    }
    if (c->role[node->id] == ORT_BLOCKED_GIVEN) /* it needn't find its planes */
        gain = elements(ort_fact_type(graph, out)) * given_gain;
    if (c->role[node->id] == ORT_BLOCKED_JOIN)
        gain -= elements(ort_fact_type(graph, out)) * join_cost;
    if (c->role[node->id] != ORT_BLOCKED_CODES &&
        c->uses[out] + shows_blocks(graph, c, out) < graph->values.data[out]->use_count)
        gain -= elements(ort_fact_type(graph, out)) * convert_cost;
    return gain;
}

static void choose(const ort_graph *graph, ort_blocked_choice *c)
{
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        c->region[node->id] = node->id;
        c->role[node->id] = role_of(graph, c, node);
        if (c->role[node->id] && c->role[node->id] != ORT_BLOCKED_CODES)
            c->blocked[node->outputs[0]] = true;
    }
    join_regions(graph, c);
    ORT_EACH_NODE(graph, node)
        if (c->role[node->id])
            c->gain[root_of(c, node->id)] += gain_of(graph, c, node);
    ORT_EACH_NODE(graph, node)
        if (c->role[node->id] && c->gain[root_of(c, node->id)] <= 0) {
            c->role[node->id] = ORT_BLOCKED_NONE;
            c->blocked[node->outputs[0]] = false;
        }
}

/* Products of whole blocks, and what else a node takes, in their measure. */
static double work_of(const ort_graph *graph, const ort_blocked_choice *c, const ort_node *node,
                      int64_t block)
{
    ort_shape w;
    const ort_type *y = ort_fact_type(graph, node->outputs[0]);
    if (!is_plane(y) || y->dim[1].size < 1)
        return 0;
    const int64_t channels = y->dim[1].size;
    const double whole = (double)(ort_blocked_count(channels, block) * block);
    const double out = elements(y) / (double)channels * whole;
    if (c->role[node->id] != ORT_BLOCKED_CONV || !constant_later(graph, node, 1, &w))
        return out * ELEMENT_WORK;
    const bool depthwise = w.dim[1] == 1 && ort_node_attr_int(node, "group") > 1;
    const double taps = (double)ort_shape_count_range(&w, 2, w.rank);
    return out * (ELEMENT_WORK + taps * (depthwise ? TAP_WORK : (double)w.dim[1]));
}

/* Half a block takes half the time: is there so much of blocks of 16 that nobody fills? Times of 31
 * nets by either block follow this share, from 0.55 (0.85 of the time) on. Bytes lie in blocks of
 * 16, and what passes from and to them stays so. */
static bool narrow_pays(const ort_graph *graph, const ort_blocked_choice *c)
{
    const ort_node *node;
    double narrow = 0, wide = 0;
    ORT_EACH_NODE(graph, node)
    {
        const ort_blocked_role role = c->role[node->id];
        if (role == ORT_BLOCKED_GIVEN || role == ORT_BLOCKED_CODES)
            return false;
        if (!role)
            continue;
        narrow += work_of(graph, c, node, 8);
        wide += work_of(graph, c, node, 16);
    }
    return narrow < narrow_share * wide;
}

void ort_blocked_choose(const ort_graph *graph, ort_blocked_choice *c)
{
    choose(graph, c);
    if (!c->narrows || !narrow_pays(graph, c))
        return;
    c->block = 8;
    memset(c->blocked, 0, (graph->values.count + 1) * sizeof *c->blocked);
    memset(c->uses, 0, (graph->values.count + 1) * sizeof *c->uses);
    memset(c->gain, 0, (graph->nodes.count + 1) * sizeof *c->gain);
    choose(graph, c);
}
