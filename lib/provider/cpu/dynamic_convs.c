/* dynamic_convs.c - convolutions of codes whose range is found in each run, as quantizers write
 * them, become one node on the products of the layout of bytes (op/blocked/bytes_op.h):
 *
 *     Cast(ConvInteger(x, #w, zx, #zw)) * scale [+ #bias] [Relu | Clip]       BytesConvFloat
 *     Cast(ConvInteger(x, #w, zx, #zw) + sums) * scale [Relu | Clip]          the same
 *
 * The second has a bias in codes of the scale, computed in the run, as onnxruntime's quantizer
 * writes it.
 * It scales, shifts and bounds in that order, so results stay. Its input comes into the layout, its
 * result is a plain tensor. Level 3: nothing of this is saved.
 */
#pragma GCC optimize("Os") /* runs once for a model */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "op/blocked/bytes_op.h"
#include "op/edit.h"
#include "pass/facts/facts.h"
#include "provider/cpu/float_convs.h"

enum { STEPS = 6 };

typedef struct dynamic_conv {
    ort_node *steps[STEPS]; /* ConvInteger, Cast, Mul; those there are of Adds and Relu or Clip */
    int count;
    ort_id scale, bias;     /* bias: of one element each map, whatever its shape; or NONE, */
    ort_id sums;            /* as is this, of int32 */
    double low, high;
} dynamic_conv;

static ort_node *reader_of(const ort_graph *graph, const dynamic_conv *d)
{
    return ort_edit_only_reader(graph, d->steps[d->count - 1]->outputs[0]);
}

/* The input of a binary node that isn't the last step's result. */
static ort_id other_of(const dynamic_conv *d, const ort_node *node)
{
    return node->inputs[node->inputs[0] == d->steps[d->count - 1]->outputs[0]];
}

/* [maps, 1..] of `rank` - 1 axes, or 1 before them: one number for each map. */
static bool is_per_map(const ort_type *type, ort_dtype dtype, int64_t maps, int rank)
{
    if (type->kind != ORT_TYPE_TENSOR || type->dtype != dtype ||
        type->rank < rank - 1 || type->rank > rank)
        return false;
    for (int d = 0; d < type->rank; d++)
        if (!ort_dim_is(type->dim[d], d == type->rank - (rank - 1) ? maps : 1))
            return false;
    return true;
}

static bool is_one(const ort_type *type)
{
    return type->kind == ORT_TYPE_TENSOR && type->dtype == ORT_DTYPE_FLOAT &&
           (type->rank == 0 || (type->rank == 1 && ort_dim_is(type->dim[0], 1)));
}

static void take(dynamic_conv *d, ort_node *node)
{
    d->steps[d->count++] = node;
}

/* The steps behind a ConvInteger. Why they aren't there; NULL: they are. */
static const char *read_steps(const ort_graph *graph, dynamic_conv *d, int64_t maps)
{
    const int rank = ort_fact_type(graph, d->steps[0]->outputs[0])->rank;
    ort_node *node = reader_of(graph, d);
    d->sums = ORT_ID_NONE;
    if (ort_edit_is(node, ONNX, "Add") && node->opset >= 7 &&
        is_per_map(ort_fact_type(graph, other_of(d, node)), ORT_DTYPE_INT32, maps, rank)) {
        d->sums = other_of(d, node);
        take(d, node);
        node = reader_of(graph, d);
    }
    if (!ort_edit_is(node, ONNX, "Cast") || ort_node_attr_int(node, "to") != ORT_DTYPE_FLOAT)
        return "its sums aren't cast to float alone";
    take(d, node);
    node = reader_of(graph, d);
    if (!ort_edit_is(node, ONNX, "Mul") || node->opset < 7)
        return "no Mul scales its sums";
    d->scale = other_of(d, node);
    if (!is_one(ort_fact_type(graph, d->scale)) &&
        !is_per_map(ort_fact_type(graph, d->scale), ORT_DTYPE_FLOAT, maps, rank))
        return "its scale is neither one number nor one for each map";
    take(d, node);
    node = reader_of(graph, d);
    d->bias = ORT_ID_NONE;
    if (ort_edit_is(node, ONNX, "Add") && node->opset >= 7 &&
        ort_fact_constant(graph, other_of(d, node)) &&
        is_per_map(ort_fact_type(graph, other_of(d, node)), ORT_DTYPE_FLOAT, maps, rank)) {
        d->bias = other_of(d, node);
        take(d, node);
        node = reader_of(graph, d);
    }
    d->low = -INFINITY;
    d->high = INFINITY;
    if (ort_edit_is(node, ONNX, "Relu"))
        d->low = 0;
    if (ort_edit_is(node, ONNX, "Relu") ||
        (ort_edit_is(node, ONNX, "Clip") && ort_fact_bounds(graph, node, &d->low, &d->high)))
        take(d, node);
    return NULL;
}

/* Why a ConvInteger stays; NULL: it can go. */
static const char *read_conv(const ort_graph *graph, ort_node *conv, void *found)
{
    dynamic_conv *d = found;
    const ort_type *x = ort_fact_type(graph, conv->inputs[0]);
    const ort_tensor *w = ort_edit_constant(graph, conv, 1);
    const ort_tensor *zero = ort_edit_constant(graph, conv, 3);
    if (!w || (ort_edit_input(conv, 3) != ORT_ID_NONE && !zero))
        return "its weight isn't constant";
    const char *why = ort_float_conv_stays(conv, x, w, zero);
    if (why)
        return why;
    *d = (dynamic_conv){.steps = {conv}, .count = 1};
    return read_steps(graph, d, w->shape.dim[0]);
}

static ort_status replace(ort_layout *l, void *found, ort_error *err)
{
    dynamic_conv *d = found;
    ort_graph *graph = l->graph;
    ort_node *conv = d->steps[0], *last = d->steps[d->count - 1];
    const ort_float_conv made = {
        .inputs = {conv->inputs[0], conv->inputs[1], d->bias, d->scale, ort_edit_input(conv, 2),
                   ORT_ID_NONE, ort_edit_input(conv, 3), d->sums},
        .low = d->low, .high = d->high};
    const ort_id out = last->outputs[0];
    ort_node merged = *conv;
    for (int i = 1; i < d->count; i++)
        merged.origin = ort_edit_origin(graph, &merged, d->steps[i]);
    for (int i = d->count - 1; i >= 0; i--)
        ort_graph_remove_node(graph, d->steps[i]);
    return ort_float_conv_add(l, &merged, &made, out, err);
}

static bool concerns(const ort_graph *graph, const ort_node *node)
{
    return ort_edit_is(node, ONNX, "ConvInteger");
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    static const ort_float_convs kind = {concerns, read_conv, replace};
    dynamic_conv found;
    return ort_float_convs_apply(c, &kind, &found, changes, err);
}

const ort_pass ort_pass_dynamic_convs = {
    .name = "dynamic_convs",
    .level = 3,
    .doc = "convolutions of codes, their scale and bias become one node of bytes (cpu only)",
    .apply = apply,
};
