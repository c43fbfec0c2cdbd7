/* place_why.c - reasons by operator. */
#include "quantize/place/place_why.h"

#include <stdio.h>
#include <string.h>

#include "graph/uses.h"
#include "op/spacer.h"

/* ---- codes already */

static bool is_linear(const ort_node *node, const char *op_type)
{
    return ort_edit_is(node, ONNX, op_type) || ort_edit_is(node, MS, op_type);
}

static bool is_dequantized(const ort_graph *graph, ort_id id)
{
    const ort_node *before = ort_spacer_producer(graph, id);
    if (ort_edit_is(before, ONNX, "Transpose"))
        before = ort_spacer_producer(graph, before->inputs[0]);
    return is_linear(before, "DequantizeLinear");
}

static bool is_quantized(const ort_graph *graph, ort_id id)
{
    const ort_node *reader = ort_edit_only_reader(graph, id);
    if (reader && ort_spacer_is(graph, reader))
        reader = ort_edit_only_reader(graph, reader->outputs[0]);
    return is_linear(reader, "QuantizeLinear");
}

const char *ort_place_already(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ORT_ID_NONE && is_dequantized(graph, node->inputs[i]))
            return "it reads dequantized codes: it was quantized before, and stays as it is";
    for (int o = 0; o < node->output_count; o++)
        if (node->outputs[o] != ORT_ID_NONE && is_quantized(graph, node->outputs[o]))
            return "a QuantizeLinear reads it: it was quantized before, and stays as it is";
    return NULL;
}

/* ---- operators */

typedef struct reason {
    const char *operators, *why;
} reason;

static const reason reasons[] = {
    {"QuantizeLinear|DequantizeLinear|DynamicQuantizeLinear|QLinearConv|QLinearMatMul|"
     "ConvInteger|MatMulInteger|ms.QuantizeLinear|ms.DequantizeLinear|ms.QLinearAdd|ms.QLinearMul|"
     "ms.QLinearConcat|ms.QLinearAveragePool|ms.QLinearGlobalAveragePool|ms.QLinearSigmoid|"
     "ms.QLinearLeakyRelu|ms.QLinearSoftmax|ms.QLinearWhere|ms.QLinearConv|ms.QGemm|"
     "ms.MatMulIntegerToFloat|ms.DynamicQuantizeMatMul|ms.DynamicQuantizeLSTM|ms.MatMulNBits|"
     "ms.GatherBlockQuantized|ms.QAttention",
     "it computes on codes already"},
    {"LSTM|GRU|RNN",
     "recurrent: its state would be rounded anew at each step, so only its weights have codes, "
     "where they are constant and of 4,096 numbers or more; quantized dynamically, an LSTM "
     "multiplies codes (DynamicQuantizeLSTM)"},
    {"Softmax|LogSoftmax|Exp|Log|Erf|Gelu|ms.Gelu|ms.FastGelu|ms.QuickGelu",
     "an exponential: codes would lose what lies far below its largest results"},
    {"LayerNormalization|InstanceNormalization|GroupNormalization|BatchNormalization|"
     "RMSNormalization|LpNormalization|MeanVarianceNormalization|LRN|"
     "SimplifiedLayerNormalization|ms.SkipLayerNormalization|ms.SkipSimplifiedLayerNormalization|"
     "ms.GroupNorm",
     "a norm: it divides by what codes hold least exactly"},
    {"Attention|ms.Attention|ms.MultiHeadAttention|ms.GroupQueryAttention|"
     "ms.DecoderMaskedMultiHeadAttention",
     "attention as one operator has no form on codes; spelled as MatMul and Softmax its products "
     "have"},
    {"Shape|Size|NonZero|NonMaxSuppression|TopK|ArgMax|ArgMin|Equal|Less|Greater|Where|Not|And|Or",
     "it decides, or computes indices: numbers stay exact"},
};

const char *ort_place_foreign(const ort_node *node)
{
    if (ort_node_is_constant(node))
        return "a constant";
    if (node->body_count)
        return "control flow: what its bodies compute has codes inside of them";
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (ort_edit_is_any(node, reasons[i].operators))
            return reasons[i].why;
    if (node->op && !strcmp(node->op->domain, MS))
        return "an operator of com.microsoft without a form on codes";
    return "not an operator that computes on codes";
}

/* ---- the wrong order */

static const char fused[] =
    "ms.FusedConv|ms.FusedGemm|ms.FusedMatMul|ms.FusedMatMulActivation|ms.TransposeMatMul|"
    "ms.NhwcFusedConv|ms.NhwcConv|ms.BiasGelu|ms.GemmFastGelu";

bool ort_place_fused(const ort_graph *graph, char *text, size_t size)
{
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        if (!ort_edit_is_any(node, fused))
            continue;
        snprintf(text, size, "node '%.200s' is com.microsoft.%s: an optimizer fused it from "
                 "operators that have forms on codes, which it hasn't; quantize before that "
                 "(ort-optimize --level 1, then quantize, then ort-optimize)", node->name,
                 node->op_type);
        return true;
    }
    return false;
}
