/* draw_label.c - what stands in a box and which colour it has (draw.h). */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "graph/draw.h"
#include "tensor/scalar.h"

static const ort_draw_style styles[ORT_DRAW_CLASS_COUNT] = {
    [ORT_DRAW_OTHER] = {"other", "#f2f2f2", "#9a9a9a"},
    [ORT_DRAW_PORT] = {"input, output", "#ffffff", "#303030"},
    [ORT_DRAW_CONV] = {"convolution", "#b9d7f7", "#4a86c8"},
    [ORT_DRAW_MATMUL] = {"matrix product", "#cfc4f4", "#7a62c9"},
    [ORT_DRAW_RECURRENT] = {"recurrent", "#f3c1e4", "#b6519a"},
    [ORT_DRAW_ACTIVATION] = {"activation", "#c9ecc4", "#5da653"},
    [ORT_DRAW_NORM] = {"normalization", "#bfe8e4", "#3f9d95"},
    [ORT_DRAW_POOL] = {"pooling, resize", "#fbdcb0", "#cf8a2c"},
    [ORT_DRAW_ELEMENTWISE] = {"elementwise", "#e6efb8", "#98a83c"},
    [ORT_DRAW_REDUCE] = {"reduction, search", "#f7cdbd", "#c8694a"},
    [ORT_DRAW_MOVE] = {"shape, movement", "#e8e4dc", "#a39985"},
    [ORT_DRAW_QUANT] = {"quantization", "#f9c9d2", "#cf5b74"},
    [ORT_DRAW_CONTROL] = {"control flow, sequence", "#fff0a8", "#c4a81c"},
    [ORT_DRAW_ML] = {"trees and tables", "#d9cbb8", "#8d7150"},
};

/* Names ended by a space; a name with '*' at its end is a prefix. */
static const struct {
    ort_draw_class class_;
    const char *names;
} classes[] = {
    {ORT_DRAW_CONV, "Conv ConvTranspose DeformConv ConvInteger QLinearConv FusedConv CausalConv* "},
    {ORT_DRAW_MATMUL, "Gemm MatMul MatMul* QLinearMatMul QGemm FusedMatMul FusedGemm Einsum "
                      "Attention MultiHeadAttention GroupQueryAttention LinearAttention "},
    {ORT_DRAW_RECURRENT, "LSTM GRU RNN DynamicQuantizeLSTM "},
    {ORT_DRAW_ACTIVATION, "Relu LeakyRelu PRelu Sigmoid HardSigmoid HardSwish Swish Tanh Elu Selu "
                          "Celu Gelu Mish Softplus Softsign Softmax LogSoftmax Hardmax Clip "
                          "ThresholdedRelu Shrink QuickGelu FastGelu BiasGelu "},
    {ORT_DRAW_NORM, "BatchNormalization InstanceNormalization LayerNormalization "
                    "GroupNormalization RMSNormalization LpNormalization "
                    "MeanVarianceNormalization SkipLayerNormalization "
                    "SimplifiedLayerNormalization LRN Dropout "},
    {ORT_DRAW_POOL, "MaxPool AveragePool GlobalAveragePool GlobalMaxPool GlobalLpPool LpPool "
                    "MaxUnpool MaxRoiPool RoiAlign Resize Upsample GridSample AffineGrid "
                    "Col2Im QLinear*Pool "},
    {ORT_DRAW_QUANT, "QuantizeLinear DequantizeLinear DynamicQuantizeLinear QLinear* "},
    {ORT_DRAW_REDUCE, "Reduce* ArgMax ArgMin TopK CumSum CumProd NonMaxSuppression NonZero "
                      "Unique Max Min Mean Sum Det "},
    {ORT_DRAW_MOVE, "Reshape Transpose Flatten Squeeze Unsqueeze Concat Split Slice Gather "
                    "GatherElements GatherND Scatter ScatterElements ScatterND Tile Expand Pad "
                    "Shape Size Cast CastLike Identity DepthToSpace SpaceToDepth Range OneHot "
                    "ConstantOfShape EyeLike Trilu ReverseSequence Compress Where "
                    "CenterCropPad TensorScatter BitCast "},
    {ORT_DRAW_CONTROL, "If Loop Scan Sequence* SplitToSequence ConcatFromSequence Optional* "},
    {ORT_DRAW_ELEMENTWISE, "Add Sub Mul Div Pow Mod Neg Abs Sqrt Exp Log Erf Reciprocal Floor Ceil "
                           "Round Sign Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh And "
                           "Or Xor Not Equal Less Greater LessOrEqual GreaterOrEqual IsNaN IsInf "
                           "BitShift Bitwise* FusedElementwise "},
};

static bool listed(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *p = names; *p;) {
        size_t token = strcspn(p, " ");
        bool prefix = token && p[token - 1] == '*';
        if (prefix ? length >= token - 1 && !strncmp(p, name, token - 1)
                   : token == length && !strncmp(p, name, token))
            return true;
        p += token + (p[token] == ' ');
    }
    return false;
}

ort_draw_class ort_draw_class_of(const ort_node *node)
{
    if (!strcmp(node->domain, "ai.onnx.ml"))
        return ORT_DRAW_ML;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (listed(classes[i].names, node->op_type))
            return classes[i].class_;
    return ORT_DRAW_OTHER;
}

const ort_draw_style *ort_draw_style_of(ort_draw_class class_)
{
    assert((unsigned)class_ < ORT_DRAW_CLASS_COUNT);
    return &styles[class_];
}

bool ort_draw_is_constant(const ort_graph *graph, ort_id value)
{
    assert(ort_graph_has_value(graph, value));
    const ort_graph_value *v = graph->values.data[value];
    while (v->outer != ORT_ID_NONE && graph->parent) {
        value = v->outer;
        graph = graph->parent;
        v = graph->values.data[value];
    }
    if (v->is_input)
        return v->fact.value != NULL; /* a default: exporters list all weights as inputs */
    ort_id producer = graph->producers.data[value];
    if (producer == ORT_ID_NONE)
        return v->fact.value != NULL || v->initializer_proto != NULL;
    return ort_node_is_constant(graph->nodes.data[producer]);
}

/* ---- labels */

static const char times[] = "\xc3\x97", arrow[] = "\xe2\x86\x92";

/* Also one that inference found. */
static const ort_tensor *constant_at(const ort_graph *graph, const ort_node *node, int slot)
{
    const ort_graph_value *v =
        slot < node->input_count ? ort_graph_value_at(graph, node->inputs[slot]) : NULL;
    return v && v->fact.value ? v->fact.value : ort_node_constant_input(graph, node, slot);
}

static void add_ints(ort_strbuf *out, const int64_t *list, size_t count, const char *separator)
{
    for (size_t i = 0; i < count; i++)
        ort_strbuf_addf(out, "%s%lld", i ? separator : "", (long long)list[i]);
}

static void add_window(const ort_graph *graph, const ort_node *node, ort_strbuf *out)
{
    size_t count, strides;
    const int64_t *kernel = ort_node_ints(node, "kernel_shape", &count);
    const int64_t *stride = ort_node_ints(node, "strides", &strides);
    const ort_tensor *w = ort_draw_class_of(node) == ORT_DRAW_CONV ? constant_at(graph, node, 1)
                                                                   : NULL;
    ort_strbuf_add(out, " ");
    if (count)
        add_ints(out, kernel, count, times);
    else if (w && w->shape.rank > 2)
        add_ints(out, w->shape.dim + 2, (size_t)w->shape.rank - 2, times);
    bool strided = false;
    for (size_t i = 0; i < strides; i++)
        strided = strided || stride[i] != 1;
    if (strided)
        ort_strbuf_addf(out, " /%lld", (long long)stride[strides - 1]);
    int64_t group = ort_node_int(node, "group", 1);
    if (group > 1)
        ort_strbuf_addf(out, " g%lld", (long long)group);
    int64_t maps = w && w->shape.rank > 1 ? w->shape.dim[0] : -1;
    if (maps >= 0 && !strcmp(node->op_type, "ConvTranspose") &&
        !ort_mul_i64(w->shape.dim[1], group, &maps))
        maps = -1;
    if (maps >= 0)
        ort_strbuf_addf(out, " %s %lld", arrow, (long long)maps);
}

static void add_elementwise(const ort_graph *graph, const ort_node *node, ort_strbuf *out)
{
    for (int i = 0; i < node->input_count && i < 2; i++) {
        double number;
        if (ort_tensor_one_f64(constant_at(graph, node, i), &number))
            ort_strbuf_addf(out, " %.6g", number);
    }
}

static void add_axes(const ort_node *node, ort_strbuf *out)
{
    size_t count;
    const int64_t *list = ort_node_ints(node, "perm", &count);
    if (count) {
        ort_strbuf_add(out, " ");
        add_ints(out, list, count, "");
    }
    list = ort_node_ints(node, "axes", &count);
    if (count) {
        ort_strbuf_add(out, " axes ");
        add_ints(out, list, count, ",");
    }
    if (ort_node_has(node, "axis"))
        ort_strbuf_addf(out, " axis %lld", (long long)ort_node_int(node, "axis", 0));
    if (!strcmp(node->op_type, "Cast"))
        ort_strbuf_addf(out, " %s",
                        ort_dtype_get((ort_dtype)ort_node_int(node, "to", 0))->name);
    if (ort_node_has(node, "hidden_size"))
        ort_strbuf_addf(out, " %lld %s", (long long)ort_node_int(node, "hidden_size", 0),
                        ort_node_string(node, "direction", ""));
}

void ort_draw_label(const ort_graph *graph, const ort_node *node, ort_strbuf *out)
{
    ort_draw_class class_ = ort_draw_class_of(node);
    ort_strbuf_add(out, node->op_type);
    if (class_ == ORT_DRAW_CONV || ort_node_has(node, "kernel_shape")) {
        add_window(graph, node, out);
        return;
    }
    if (class_ == ORT_DRAW_MATMUL) {
        const ort_tensor *w = constant_at(graph, node, 1);
        if (w && w->shape.rank > 0) {
            ort_strbuf_add(out, " ");
            add_ints(out, w->shape.dim, (size_t)w->shape.rank, times);
        }
        return;
    }
    if (class_ == ORT_DRAW_ELEMENTWISE)
        add_elementwise(graph, node, out);
    add_axes(node, out);
}

void ort_draw_shape(const ort_graph *graph, ort_id value, ort_strbuf *out)
{
    char text[512];
    const ort_type *type = &graph->values.data[value]->fact.type;
    if (type->kind != ORT_TYPE_TENSOR) {
        if (type->kind != ORT_TYPE_UNKNOWN)
            ort_strbuf_add(out, ort_type_format(graph->model->dims, type, text, sizeof text));
        return;
    }
    for (int i = 0; i < type->rank; i++)
        ort_strbuf_addf(out, "%s%s", i ? times : "",
                        ort_dim_format(graph->model->dims, type->dim[i], text, 40));
    if (type->rank == 0)
        ort_strbuf_add(out, "scalar");
    if (type->dtype && type->dtype != ORT_DTYPE_FLOAT && type->rank >= 0)
        ort_strbuf_addf(out, " %s", ort_dtype_get(type->dtype)->name);
}
