/* bytes_roles.c - which nodes run in the layout of bytes: convolutions with constant weights, and
 * what stands between them or behind them on 8-bit codes.
 */
#pragma GCC optimize("Os") /* runs once for a model */
#include "op/shared/unary_apply.h"
#include "provider/cpu/bytes_layout.h"
#include "provider/cpu/float_convs.h"

enum { PLAIN_CHANNELS = 4, GROUP_MAPS = 4 }; /* fewer maps of a group don't pay for their block */

/* ---- convolutions */

bool ort_bytes_is_conv(const ort_node *node)
{
    return ort_edit_is_any(node, "QLinearConv|ms.QLinearConv") &&
           !(ort_node_has(node, "channels_last") && ort_node_attr_int(node, "channels_last"));
}

/* One number where a convolution has one; scales and zero points of its weight may be lists. */
static bool constants_fit(const ort_graph *graph, const ort_node *node, const ort_tensor *w)
{
    for (int i = 1; i < 8; i++) {
        const ort_tensor *t = ort_edit_constant(graph, node, i);
        bool of_weight = i == 4 || i == 5;
        if (!t || (i != 3 && ort_tensor_count(t) != 1 &&
                   !(of_weight && ort_tensor_count(t) == w->shape.dim[0])))
            return false;
    }
    const ort_tensor *bias = ort_edit_constant(graph, node, 8);
    return ort_edit_input(node, 8) == ORT_ID_NONE ||
           (bias && ort_tensor_count(bias) == w->shape.dim[0]);
}

const char *ort_bytes_conv_stays(const ort_graph *graph, const ort_bytes_layout *l,
                                 const ort_node *node)
{
    const ort_tensor *w = ort_edit_constant(graph, node, 3);
    const ort_type *x = ort_fact_type(graph, node->inputs[0]);
    if (!ort_bytes_is_value(graph, node->inputs[0]) || !ort_bytes_is_value(graph, node->outputs[0]))
        return "it isn't over one or two axes with known channels";
    if (!w || w->shape.rank != x->rank || ort_tensor_count(w) == 0 ||
        !constants_fit(graph, node, w))
        return "its weight, a scale, a zero point or its bias isn't constant";
    int64_t group = ort_node_attr_int(node, "group"), maps = w->shape.dim[0];
    int64_t channels = w->shape.dim[1];
    if (group < 1 || maps % group || x->dim[1].size != channels * group)
        return "its filters don't fit";
    if (group > 1 && channels > 1 && maps / group < GROUP_MAPS)
        return "its groups would fill less than a quarter of their blocks";
    if (!ort_bytes_weights_fit(w, ort_edit_constant(graph, node, 5)))
        return "a weight is 255 more than its zero point";
    if (!l->blocked[node->inputs[0]] && maps < ORT_BYTES_BLOCK / 2)
        return "its channels would fill less than half of their block";
    return NULL;
}

bool ort_bytes_splits(const ort_node *conv, const ort_tensor *w)
{
    const int64_t group = ort_node_attr_int(conv, "group"), maps = w->shape.dim[0];
    const int64_t channels = w->shape.dim[1];
    return group > 1 && (channels == 1 ? maps > group
                                       : channels % ORT_BYTES_BLOCK != 0 ||
                                             maps / group % ORT_BYTES_BLOCK != 0);
}

bool ort_bytes_reads_plain(const ort_graph *graph, const ort_bytes_layout *l, const ort_node *conv)
{
    return !l->blocked[conv->inputs[0]] && ort_node_attr_int(conv, "group") == 1 &&
           ort_fact_type(graph, conv->inputs[0])->dim[1].size <= PLAIN_CHANNELS;
}

/* ---- convolutions through floats */

/* A slope of all channels, or one of each: [C] behind the batch, before places of 1. */
static bool is_slope(const ort_graph *graph, const ort_node *node)
{
    const ort_type *y = ort_fact_type(graph, node->outputs[0]);
    const ort_tensor *slope = ort_edit_constant(graph, node, 1);
    if (!slope || slope->dtype != ORT_DTYPE_FLOAT || ort_type_rank(y) < 3)
        return false;
    const int axis = slope->shape.rank - (y->rank - 1);
    return ort_tensor_count(slope) == 1 ||
           (axis >= 0 && axis <= 1 && ort_dim_is(y->dim[1], slope->shape.dim[axis]) &&
            slope->shape.dim[axis] == ort_tensor_count(slope));
}

static bool read_function(const ort_graph *graph, ort_node *node, ort_bytes_coded *c)
{
    ort_unary id = ORT_UNARY_COUNT;
    if (ort_edit_is(node, ONNX, "PRelu") && is_slope(graph, node)) {
        c->slope = node->inputs[1];
    } else if (node && node->op && node->input_count == 1 && node->output_count == 1 &&
               ort_unary_of_node(node, &id, &c->act_a, &c->act_b)) {
        c->act = (int64_t)id;
    } else {
        return false;
    }
    c->function = node;
    return true;
}

bool ort_bytes_read_coded(const ort_graph *graph, ort_node *quantize, ort_bytes_coded *c)
{
    *c = (ort_bytes_coded){.act = -1, .slope = ORT_ID_NONE};
    if (!ort_quant_read(graph, quantize, "QuantizeLinear", &c->out) ||
        !ort_quant_is_plain(&c->out) || !ort_quant_is_byte(c->out.dtype))
        return false;
    ort_node *node = ort_edit_producer(graph, quantize->inputs[0]);
    if (!ort_edit_is(node, ORT_INTERNAL, "BytesConvFloat") && read_function(graph, node, c))
        node = ort_edit_producer(graph, node->inputs[0]);
    c->conv = node;
    const ort_node *last = c->function ? c->function : node;
    return ort_edit_is(node, ORT_INTERNAL, "BytesConvFloat") &&
           ort_edit_input(node, ORT_BYTES_SUMS_IN) == ORT_ID_NONE &&
           ort_edit_only_reader(graph, last->outputs[0]) == quantize &&
           (last == node || ort_edit_only_reader(graph, node->outputs[0]) == last);
}

/* ---- what stands between them */

bool ort_bytes_is_data(ort_bytes_role r, const ort_node *node, int slot)
{
    if (r == ORT_BYTES_MOVE && ort_edit_is(node, ONNX, "Concat"))
        return true;
    if (r == ORT_BYTES_MOVE && ort_edit_is(node, MS, "QLinearConcat"))
        return slot % 3 == 2;
    return r != ORT_BYTES_NONE && r != ORT_BYTES_CODED &&
           (slot == 0 || (r == ORT_BYTES_SAME && slot == 3 && node->input_count == 8));
}

/* Zero points stand two behind the data; the output's last. */
bool ort_bytes_is_zero(ort_bytes_role r, const ort_node *node, int slot)
{
    return (r == ORT_BYTES_SAME || r == ORT_BYTES_AVERAGE) && node->input_count >= 5 &&
           (slot % 3 == 2 || slot == node->input_count - 1);
}

/* Is it in the layout, as large as the result? */
static bool fills(const ort_graph *graph, const ort_bytes_layout *l, ort_id value,
                  const ort_type *y)
{
    return l->blocked[value] && ort_facts_same_shape(ort_fact_type(graph, value), y);
}

/* As large as the result, or one element of each plane. */
static bool fits(const ort_type *x, const ort_type *y)
{
    for (int d = 0; d < y->rank; d++)
        if (x->rank != y->rank || (!ort_dim_equal(x->dim[d], y->dim[d]) &&
                                   (d < 2 || !ort_dim_is(x->dim[d], 1))))
            return false;
    return true;
}

/* Does every tensor of data fit, one of them in the layout already, and is every zero point there?
 * Others are brought into the layout. */
static bool serves_all(const ort_graph *graph, const ort_bytes_layout *l, const ort_node *node)
{
    const ort_type *y = ort_fact_type(graph, node->outputs[0]);
    bool any = false;
    for (int i = 0; i < node->input_count; i++) {
        ort_id in = node->inputs[i];
        if (ort_bytes_is_data(ORT_BYTES_SAME, node, i)) {
            if (in == ORT_ID_NONE || !ort_bytes_is_value(graph, in) ||
                !fits(ort_fact_type(graph, in), y))
                return false;
            any = any || fills(graph, l, in, y);
        } else if (ort_bytes_is_zero(ORT_BYTES_SAME, node, i)) {
            const ort_tensor *zero = ort_edit_constant(graph, node, i);
            if (!zero || ort_tensor_count(zero) != 1)
                return false;
        }
    }
    return any;
}

static bool has_zeros(const ort_graph *graph, const ort_node *node)
{
    const ort_tensor *x = ort_edit_constant(graph, node, 2), *y = ort_edit_constant(graph, node, 4);
    return node->input_count == 5 && x && y && ort_tensor_count(x) == 1 && ort_tensor_count(y) == 1;
}

/* A mean of all places, as one of each plane. */
static bool means_planes(const ort_graph *graph, const ort_node *node)
{
    return ort_node_attr_int(node, "axis") == 2 && ort_node_attr_int(node, "keepdims") &&
           ort_node_attr_int(node, "count") == ort_fact_type(graph, node->inputs[0])->rank - 2 &&
           has_zeros(graph, node);
}

/* Two of four numbers, those of height and width, change something. */
static bool resizes_planes(const ort_graph *graph, const ort_node *node)
{
    const ort_type *x = ort_fact_type(graph, node->inputs[0]);
    const ort_type *y = ort_fact_type(graph, node->outputs[0]);
    const ort_tensor *scales = ort_edit_constant(graph, node, 2);
    const ort_tensor *sizes = ort_edit_constant(graph, node, 3);
    const ort_tensor *t = sizes && ort_tensor_count(sizes) ? sizes : scales;
    return node->opset >= 11 && x->rank == 4 && ort_node_attr_is(node, "mode", "nearest") &&
           !ort_node_attr_is(node, "coordinate_transformation_mode", "tf_crop_and_resize") &&
           !ort_node_has(node, "axes") && !ort_node_has(node, "keep_aspect_ratio_policy") && t &&
           ort_tensor_count(t) == 4 && ort_dim_equal(x->dim[0], y->dim[0]) &&
           ort_dim_equal(x->dim[1], y->dim[1]);
}

/* Would more than half of what a node moves be there? */
static bool mostly_blocked(const ort_graph *graph, const ort_bytes_layout *l, const ort_node *node)
{
    ort_node *before[2];
    int64_t there = 0, all = 0;
    if (ort_bytes_shuffles(graph, node, before))
        return l->blocked[before[0]->inputs[0]];
    for (int i = 0; i < node->input_count; i++) {
        if (!ort_bytes_is_data(ORT_BYTES_MOVE, node, i))
            continue;
        int64_t channels = ort_fact_type(graph, node->inputs[i])->dim[1].size;
        there += l->blocked[node->inputs[i]] ? channels : 0;
        all += channels;
    }
    return 2 * there > all;
}

static ort_bytes_role role_of(const ort_graph *graph, const ort_bytes_layout *l, ort_node *node)
{
    ort_bytes_coded coded;
    if (!node->op || node->output_count < 1 || node->input_count < 1 ||
        node->inputs[0] == ORT_ID_NONE || node->outputs[0] == ORT_ID_NONE ||
        node->output_count > ORT_LAYOUT_INPUTS)
        return ORT_BYTES_NONE;
    if (ort_edit_is(node, ORT_INTERNAL, "BlockBytes") && l->blocked[node->inputs[0]])
        return ORT_BYTES_COMES;
    if (!ort_bytes_is_value(graph, node->outputs[0]))
        return ORT_BYTES_NONE;
    if (ort_bytes_moves(graph, node))
        return mostly_blocked(graph, l, node) ? ORT_BYTES_MOVE : ORT_BYTES_NONE;
    if (node->input_count > ORT_LAYOUT_INPUTS)
        return ORT_BYTES_NONE;
    if (ort_edit_is(node, ONNX, "QuantizeLinear"))
        return ort_bytes_read_coded(graph, node, &coded) ? ORT_BYTES_CODED : ORT_BYTES_NONE;
    if (ort_bytes_is_conv(node))
        return ort_bytes_conv_stays(graph, l, node) ? ORT_BYTES_NONE : ORT_BYTES_CONV;
    if (ort_edit_is_any(node, "ms.QLinearAdd|ms.QLinearMul"))
        return node->input_count == 8 && serves_all(graph, l, node) ? ORT_BYTES_SAME
                                                                    : ORT_BYTES_NONE;
    if (!l->blocked[node->inputs[0]])
        return ORT_BYTES_NONE;
    if (ort_edit_is(node, ONNX, "MaxPool"))
        return node->output_count < 2 || node->outputs[1] == ORT_ID_NONE ? ORT_BYTES_POOL
                                                                         : ORT_BYTES_NONE;
    if (ort_edit_is_any(node, "ms.QLinearGlobalAveragePool|ms.QLinearAveragePool"))
        return ort_node_attr_int(node, "channels_last") || !has_zeros(graph, node)
                   ? ORT_BYTES_NONE
               : node->op_type[7] == 'G' ? ORT_BYTES_MEAN : ORT_BYTES_AVERAGE;
    if (ort_edit_is_any(node, "ms.QLinearSigmoid|ms.QLinearLeakyRelu"))
        return node->input_count == 5 && serves_all(graph, l, node) ? ORT_BYTES_SAME
                                                                    : ORT_BYTES_NONE;
    if (ort_edit_is(node, ORT_INTERNAL, "CodeMean"))
        return means_planes(graph, node) ? ORT_BYTES_SAME : ORT_BYTES_NONE;
    if (ort_edit_is(node, ORT_INTERNAL, "LookUp"))
        return ort_edit_constant(graph, node, 1) ? ORT_BYTES_TABLE : ORT_BYTES_NONE;
    if (ort_edit_is(node, ONNX, "Resize"))
        return resizes_planes(graph, node) ? ORT_BYTES_RESIZE : ORT_BYTES_NONE;
    return ORT_BYTES_NONE;
}

static void give_role(const ort_graph *graph, ort_bytes_layout *l, ort_node *node)
{
    ort_node *before[2];
    const ort_bytes_role r = role_of(graph, l, node);
    l->role[node->id] = r;
    for (int i = 0; r && r != ORT_BYTES_COMES && i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE)
            l->blocked[node->outputs[i]] = true;
    if (r == ORT_BYTES_MOVE && ort_bytes_shuffles(graph, node, before))
        for (int i = 0; i < 2; i++)
            l->role[before[i]->id] = ORT_BYTES_BEGUN;
}

void ort_bytes_choose(const ort_graph *graph, ort_bytes_layout *l)
{
    ort_node *node;
    ORT_EACH_NODE(graph, node)
        give_role(graph, l, node);
    ORT_EACH_NODE(graph, node)
        for (int i = 0; l->role[node->id] && i < node->input_count; i++)
            if (ort_bytes_is_data(l->role[node->id], node, i) && l->blocked[node->inputs[i]])
                l->uses[node->inputs[i]]++;
}
