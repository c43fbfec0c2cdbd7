/* linear_affine.c - what scales and shifts the channels of a linear operator goes into its weights.
 *
 *     Conv, ConvTranspose, Gemm, MatMul    y = W x + b
 *     BatchNormalization, Mul, Div, Add, Sub by constants per channel    z = s y + t
 *     becomes    z = (s W) x + (s b + t)
 *
 * computed in double, rounded once. The linear result must have no other reader. A MatMul takes a
 * scale only, unless it has two dimensions: with a shift that one becomes a Gemm.
 */
#include <stdio.h>

#include "base/error.h"
#include "op/edit.h"
#include "pass/affine.h"
#include "pass/pass.h"

typedef struct site {
    ort_node *linear, *after;
    int slot; /* of `after`: where the linear result comes in */
    const ort_tensor *weights, *bias; /* bias may be NULL */
    int64_t channels;
    int64_t outer, inner; /* weights as [outer][channels of a group][inner] */
    bool first_axis;      /* the channel is the first axis of the weights */
} site;

/* ---- the linear operator */

/* Which axis of the weights is the output channel, and how large what lies around it is. */
static const char *look_at_weights(const ort_graph *graph, site *s)
{
    const ort_node *n = s->linear;
    s->weights = ort_edit_constant(graph, n, 1);
    if (!s->weights || !s->weights->data || !ort_affine_is_real(s->weights->dtype))
        return "the weights aren't constant";
    const ort_shape *shape = &s->weights->shape;
    int64_t count = ort_tensor_count(s->weights), group = ort_node_int(n, "group", 1);
    int axis = 0;
    if (ort_edit_is(n, ONNX, "Conv") && shape->rank >= 3) {
        s->channels = shape->dim[0];
    } else if (ort_edit_is(n, ONNX, "ConvTranspose") && shape->rank >= 3 && group > 0 &&
               shape->dim[0] % group == 0) {
        axis = 1;
        s->channels = shape->dim[1] * group;
    } else if (ort_edit_is(n, ONNX, "Gemm") && shape->rank == 2) {
        axis = ort_node_int(n, "transB", 0) ? 0 : 1;
        s->channels = shape->dim[axis];
    } else if (ort_edit_is(n, ONNX, "MatMul") && shape->rank == 2) {
        axis = 1;
        s->channels = shape->dim[1];
    } else {
        return "the weights' shape isn't one that this pass knows";
    }
    if (count <= 0)
        return "the weights are empty";
    s->first_axis = axis == 0;
    s->outer = axis == 0 ? 1 : shape->dim[0];
    s->inner = count / s->outer / shape->dim[axis];
    s->bias = ort_edit_constant(graph, n, 2);
    if (n->input_count > 2 && n->inputs[2] != ORT_ID_NONE &&
        (!s->bias || !s->bias->data || !ort_affine_is_real(s->bias->dtype)))
        return "the bias isn't constant";
    if (s->bias && ort_tensor_count(s->bias) != 1 &&
        (ort_tensor_count(s->bias) != s->channels ||
         s->bias->shape.dim[s->bias->shape.rank - 1] != s->channels))
        return "the bias isn't one number per channel";
    if (ort_edit_is(n, ONNX, "Gemm") && n->opset < 7)
        return "a Gemm before opset 7 broadcasts by attribute";
    return NULL;
}

static bool may_be_gemm(const ort_graph *graph, const site *s)
{
    const ort_type *x = &graph->values.data[s->linear->inputs[0]]->fact.type;
    return x->kind == ORT_TYPE_TENSOR && x->rank == 2 &&
           ort_model_opset(graph->model, ONNX) >= 7;
}

static const char *match(const ort_graph *graph, site *s, ort_affine *a)
{
    if (ort_edit_only_reader(graph, s->linear->outputs[0]) != s->after)
        return "the linear result has another reader";
    const char *why = look_at_weights(graph, s);
    if (why)
        return why;
    const ort_type *type = &graph->values.data[s->linear->outputs[0]]->fact.type;
    int axis = ort_affine_axis(s->linear, type->rank);
    ort_affine_site at = {s->after, s->slot, type, axis, s->channels};
    why = ort_affine_read(graph, &at, a);
    if (!why && a->shifts && ort_edit_is(s->linear, ONNX, "MatMul") && !may_be_gemm(graph, s))
        return "a MatMul of other than two dimensions has no bias";
    return why;
}

/* ---- the new weights */

static void scale_weights(const site *s, const ort_affine *a, ort_tensor *to)
{
    if (s->first_axis) {
        for (int64_t c = 0; c < s->channels; c++)
            ort_affine_scale(to, s->weights, c * s->inner, s->inner, a->scale[c]);
        return;
    }
    /* [outer][channels of a group][inner]; ConvTranspose's groups split the outer axis. */
    int64_t each = ort_tensor_count(s->weights) / s->outer / s->inner;
    int64_t groups = s->channels / each;
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t c = 0; c < each; c++)
            ort_affine_scale(to, s->weights, (o * each + c) * s->inner, s->inner,
                        a->scale[o / (s->outer / groups) * each + c]);
}

static ort_status add_scaled_weights(ort_pass_context *c, site *s, const ort_affine *a, ort_id *id,
                                     ort_error *err)
{
    ort_tensor made;
    const ort_graph_value *old = c->graph->values.data[s->linear->inputs[1]];
    *id = s->linear->inputs[1];
    if (!a->scales)
        return ORT_OK;
    size_t bytes = ort_tensor_bytes(s->weights);
    if (s->weights->dtype != ORT_DTYPE_FLOAT) /* those are read wherever they lie */
        s->weights = ort_graph_weight(c->graph, *id);
    if (!s->weights)
        return ort_error_memory(err, bytes);
    ORT_TRY(ort_edit_new_constant(c->graph, old->name, s->weights->dtype, &s->weights->shape,
                                  &made, id, err));
    scale_weights(s, a, &made);
    return ORT_OK;
}

/* What a Gemm multiplies its bias with; it goes into the new one. */
static double beta_of(const ort_node *linear)
{
    return ort_edit_is(linear, ONNX, "Gemm") ? (double)ort_node_float(linear, "beta", 1.0f) : 1;
}

static ort_status add_bias(ort_pass_context *c, const site *s, const ort_affine *a, ort_id *id,
                           ort_error *err)
{
    ort_tensor made;
    ort_shape shape = {.rank = 1, .dim = {s->channels}};
    char name[256];
    *id = ORT_ID_NONE;
    if (!s->bias && !a->shifts)
        return ORT_OK;
    snprintf(name, sizeof name, "%.240s_bias",
             c->graph->values.data[s->linear->inputs[1]]->name);
    ORT_TRY(ort_edit_new_constant(c->graph, name, s->weights->dtype, &shape, &made, id, err));
    double beta = beta_of(s->linear);
    for (int64_t k = 0; k < s->channels; k++) {
        double old = s->bias ? ort_tensor_get_f64(s->bias, ort_tensor_count(s->bias) == 1 ? 0 : k)
                             : 0;
        ort_tensor_set_f64(&made, k, beta * old * a->scale[k] + a->shift[k]);
    }
    return ORT_OK;
}

static ort_status fuse(ort_pass_context *c, site *s, const ort_affine *a, ort_error *err)
{
    ort_id inputs[3] = {s->linear->inputs[0]}, output = s->after->outputs[0];
    ORT_TRY(add_scaled_weights(c, s, a, &inputs[1], err));
    ORT_TRY(add_bias(c, s, a, &inputs[2], err));
    ort_attr one = {.name = "beta", .type = ORT_ATTR_FLOAT, .f = 1};
    ort_node_spec spec = {.domain = s->linear->domain,
                          .op_type = inputs[2] != ORT_ID_NONE &&
                                             ort_edit_is(s->linear, ONNX, "MatMul")
                                         ? "Gemm"
                                         : s->linear->op_type,
                          .name = s->linear->name,
                          .inputs = inputs,
                          .input_count = inputs[2] == ORT_ID_NONE ? 2 : 3,
                          .outputs = &output,
                          .output_count = 1,
                          .attrs = s->linear->attrs,
                          .attr_count = s->linear->attr_count,
                          .set = &one,
                          .set_count = beta_of(s->linear) != 1,
                          .origin = ort_edit_origin(c->graph, s->linear, s->after)};
    ort_graph_remove_node(c->graph, s->after);
    ort_graph_remove_node(c->graph, s->linear);
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

/* Weights with other readers would be there twice: a file must not grow. */
static bool grows(const ort_pass_context *c, const site *s, const ort_affine *a)
{
    const ort_graph_value *weights = c->graph->values.data[s->linear->inputs[1]];
    size_t bytes = ort_tensor_bytes(s->weights);
    if (!a->scales || (weights->use_count == 1 && !weights->is_input))
        return false;
    if (bytes > *c->growth_bytes)
        return true;
    *c->growth_bytes -= bytes;
    return false;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_EACH_NODE(c->graph, node)
    {
        ort_status status = ORT_OK;
        for (int slot = 0; ort_affine_is(node) && slot < 2 && slot < node->input_count; slot++) {
            site s = {.after = node, .slot = slot,
                      .linear = ort_edit_producer(c->graph, node->inputs[slot])};
            ort_affine a = {0};
            if (!ort_affine_is_linear(s.linear) ||
                (slot && ort_edit_is(node, ONNX, "BatchNormalization")))
                continue;
            const char *why = match(c->graph, &s, &a);
            if (!why && grows(c, &s, &a))
                why = "other nodes share the weights";
            if (why)
                ort_pass_note(c, node, "%s", why);
            else
                status = fuse(c, &s, &a, err);
            ort_affine_release(&a);
            ORT_TRY(status);
            *changes += !why;
            if (!why)
                break;
        }
    }
    return ORT_OK;
}

const ort_pass ort_pass_linear_affine = {
    .name = "linear_affine",
    .level = 1,
    .doc = "scales and shifts after Conv, ConvTranspose, Gemm, MatMul go into the weights",
    .apply = apply,
};
