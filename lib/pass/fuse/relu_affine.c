/* relu_affine.c - what scales and shifts after a Relu goes before it, into the weights there.
 *
 *     Conv, ConvTranspose, Gemm, MatMul, then Relu    r = max(W x + b, 0)
 *     BatchNormalization, Mul, Div, Add, Sub by constants per channel    z = s r + t, every s > 0
 *     becomes    z = max(s (W x + b) + t, t)
 *
 * A Relu where nothing is shifted, else a Max with the shift. The affine node changes places with
 * the Relu; linear_affine takes it from there. A shift moves in files only: in a session it costs
 * nothing where it is, behind the activation in the pass over the plane. Nor behind a Conv whose
 * result goes on to what onnxruntime computes in blocks of channels, which knows Relu and
 * BatchNormalization, but not Max.
 */
#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/fuse/affine.h"
#include "pass/pass.h"

typedef struct site {
    ort_node *linear, *relu, *after;
    int slot; /* of `after`: where the Relu's result comes in */
    int axis; /* of the channels */
    const ort_type *type;
    int64_t channels;
} site;

/* What onnxruntime's blocked layout goes through (onnxruntime's nchwc_transformer.cc). */
static bool stays_blocked(const ort_node *node)
{
    return ort_edit_is_any(node, "Conv|BatchNormalization|Add|Sum|Mul|Concat|Relu|Sigmoid|Tanh|"
                                 "Resize|Upsample");
}

static bool is_pool(const ort_node *node)
{
    return ort_edit_is_any(node, "MaxPool|AveragePool|GlobalMaxPool|GlobalAveragePool");
}

/* Behind its pools the value has one reader, which isn't one of those, or only the caller. */
static bool leaves_blocks(const ort_graph *graph, ort_id value)
{
    ort_node *reader = ort_edit_only_reader(graph, value);
    while (is_pool(reader)) {
        value = reader->outputs[0];
        reader = ort_edit_only_reader(graph, value);
    }
    const ort_graph_value *v = graph->values.data[value];
    return reader ? !stays_blocked(reader) : v->is_output && v->use_count == 1;
}

static const char *no_shift(const ort_pass_context *c, const site *s)
{
    if (!c->portable)
        return "";
    if (ort_model_opset(c->graph->model, ONNX) < 8)
        return "a Max before opset 8 doesn't broadcast";
    if (ort_edit_is(s->linear, ONNX, "MatMul") && s->type->rank != 2)
        return "a MatMul of other than two dimensions has no bias";
    if (s->type->dtype != ORT_DTYPE_FLOAT && s->type->dtype != ORT_DTYPE_DOUBLE)
        return "the shift isn't of floats";
    if (ort_edit_is(s->linear, ONNX, "Conv") && !leaves_blocks(c->graph, s->after->outputs[0]))
        return "onnxruntime's blocked layout doesn't go through Max";
    return NULL;
}

/* NULL, or the condition that fails; "" where there is nothing to say. */
static const char *match(const ort_pass_context *c, site *s, ort_affine *a)
{
    const ort_graph *graph = c->graph;
    const ort_tensor *weights = ort_edit_constant(graph, s->linear, 1);
    s->type = ort_fact_type(graph, s->relu->inputs[0]);
    if (ort_edit_only_reader(graph, s->relu->inputs[0]) != s->relu ||
        ort_edit_only_reader(graph, s->relu->outputs[0]) != s->after)
        return "the linear result or the Relu has another reader";
    if (!weights || !weights->data ||
        graph->values.data[s->linear->inputs[1]]->use_count != 1)
        return "the weights aren't constant or have another reader";
    if (ort_type_rank(s->type) < 2)
        return "the rank isn't known";
    s->axis = ort_affine_axis(s->linear, s->type->rank);
    if (!ort_dim_known(s->type->dim[s->axis]))
        return "the channels aren't known";
    s->channels = s->type->dim[s->axis].size;
    ort_affine_site at = {s->after, s->slot, s->type, s->axis, s->channels};
    const char *why = ort_affine_read(graph, &at, a);
    for (int64_t k = 0; !why && k < s->channels; k++)
        if (!(a->scale[k] > 0))
            return "a scale isn't above zero";
    return why || !a->shifts ? why : no_shift(c, s);
}

/* The shift as [channels, 1, ...]. */
static ort_status add_floor(ort_pass_context *c, const site *s, const ort_affine *a, ort_id *id,
                            ort_error *err)
{
    ort_tensor made;
    ort_shape shape = {.rank = s->type->rank - s->axis, .dim = {s->channels}};
    for (int i = 1; i < shape.rank; i++)
        shape.dim[i] = 1;
    ORT_TRY(ort_edit_new_constant(c->graph, c->graph->values.data[s->relu->outputs[0]]->name,
                                  s->type->dtype, &shape, &made, id, err));
    for (int64_t k = 0; k < s->channels; k++)
        ort_tensor_set_f64(&made, k, a->shift[k]);
    return ORT_OK;
}

static ort_status swap(ort_pass_context *c, const site *s, const ort_affine *a, ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_node *after = s->after, *relu = s->relu;
    ort_id inputs[8], moved = ort_graph_add_value(graph, "");
    ort_id floor[2] = {moved, ORT_ID_NONE};
    if (moved == ORT_ID_NONE)
        return ort_error_memory(err, sizeof moved);
    if (a->shifts)
        ORT_TRY(add_floor(c, s, a, &floor[1], err));
    memcpy(inputs, after->inputs, sizeof *inputs * (size_t)after->input_count);
    inputs[s->slot] = relu->inputs[0];
    ort_node_spec first = ort_edit_again(after);
    first.inputs = inputs;
    first.outputs = &moved;
    first.output_count = 1;
    ort_node_spec second = {.op_type = a->shifts ? "Max" : "Relu", .inputs = floor,
                            .input_count = 2};
    ORT_TRY(ort_edit_add_node(graph, &first, NULL, err));
    return ort_edit_replace(graph, relu, after, &second, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        ort_affine a = {0};
        if (!ort_affine_is(node) || node->input_count > 8)
            continue;
        site s = {.after = node};
        s.relu = ort_edit_producer(c->graph, node->inputs[0]);
        if (!ort_edit_is(s.relu, ONNX, "Relu") && node->input_count == 2) {
            s.slot = 1;
            s.relu = ort_edit_producer(c->graph, node->inputs[1]);
        }
        if (!ort_edit_is(s.relu, ONNX, "Relu"))
            continue;
        s.linear = ort_edit_producer(c->graph, s.relu->inputs[0]);
        if (!ort_affine_is_linear(s.linear))
            continue;
        const char *why = match(c, &s, &a);
        ort_status status = why ? ORT_OK : swap(c, &s, &a, err);
        if (why && *why)
            ort_pass_note(c, node, "%s", why);
        ort_affine_release(&a);
        ORT_TRY(status);
        *changes += !why;
    }
    return ORT_OK;
}

const ort_pass ort_pass_relu_affine = {
    .name = "relu_affine",
    .level = 1,
    .doc = "scales and shifts after a Relu go before it, into the weights: a Max",
    .apply = apply,
};
