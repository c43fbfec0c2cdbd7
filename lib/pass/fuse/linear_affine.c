/* linear_affine.c - what scales and shifts the channels of a linear operator goes into its weights.
 *
 *     Conv, ConvTranspose, Gemm, MatMul    y = W x + b
 *     BatchNormalization, Mul, Div, Add, Sub by constants per channel    z = s y + t
 *     becomes    z = (s W) x + (s b + t)
 *
 * computed in double, rounded once. The linear result must have no other reader. A MatMul takes a
 * scale only, unless it has two dimensions: with a shift that one becomes a Gemm.
 *
 * A BatchNormalization may stand behind a Reshape that keeps the channels apart, as rows [B*N,C] of
 * a MatMul's [B,N,C]: it goes before that, where a MatMul is followed by an Add instead.
 */
#include <stdio.h>

#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/fuse/affine.h"
#include "pass/pass.h"

typedef struct site {
    ort_node *linear, *after;
    ort_node *reshape; /* between them, or NULL */
    ort_node *sum;     /* what adds a bias to a MatMul, before the reshape; or NULL */
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
    if (!ort_affine_reads(s->weights))
        return "the weights aren't constant";
    const ort_shape *shape = &s->weights->shape;
    int64_t count = ort_tensor_count(s->weights), group = ort_node_attr_int(n, "group");
    int axis = 0;
    if (ort_edit_is(n, ONNX, "Conv") && shape->rank >= 3) {
        s->channels = shape->dim[0];
    } else if (ort_edit_is(n, ONNX, "ConvTranspose") && shape->rank >= 3 && group > 0 &&
               shape->dim[0] % group == 0) {
        axis = 1;
        s->channels = shape->dim[1] * group;
    } else if (ort_edit_is(n, ONNX, "Gemm") && shape->rank == 2) {
        axis = ort_node_attr_int(n, "transB") ? 0 : 1;
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
    if (ort_edit_input(n, 2) != ORT_ID_NONE && !ort_affine_reads(s->bias))
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
    return ort_fact_ranked(graph, s->linear->inputs[0], 2) &&
           ort_model_opset(graph->model, ONNX) >= 7;
}

static const ort_type *result_of(const ort_graph *graph, const ort_node *node)
{
    return ort_fact_type(graph, node->outputs[0]);
}

/* Does the second dimension of what was reshaped count the linear operator's channels? */
static bool keeps_channels(const ort_graph *graph, const site *s)
{
    const ort_type *from = result_of(graph, s->linear), *to = result_of(graph, s->reshape);
    int axis = ort_affine_axis(s->linear, from->rank);
    if (ort_type_rank(from) < 2 || ort_type_rank(to) < 2 || !ort_dim_is(to->dim[1], s->channels))
        return false;
    return axis == 1 ? ort_dim_equal(from->dim[0], to->dim[0])
                     : axis == from->rank - 1 && to->rank == 2;
}

static const char *look_at_bias(const ort_graph *graph, site *s)
{
    if (!s->sum)
        return NULL;
    s->bias = ort_edit_constant(graph, s->sum, s->sum->inputs[0] == s->linear->outputs[0]);
    return ort_affine_reads(s->bias) && ort_tensor_is_row(s->bias, s->channels) &&
                   s->sum->opset >= 7
               ? NULL : "what is added isn't one number per channel";
}

static bool is_read_alone(const ort_graph *graph, const site *s)
{
    const ort_node *next = s->sum ? s->sum : s->reshape ? s->reshape : s->after;
    return ort_edit_only_reader(graph, s->linear->outputs[0]) == next &&
           (!s->sum || ort_edit_only_reader(graph, s->sum->outputs[0]) == s->reshape) &&
           (!s->reshape || ort_edit_only_reader(graph, s->reshape->outputs[0]) == s->after);
}

static const char *match(const ort_graph *graph, site *s, ort_affine *a)
{
    if (!is_read_alone(graph, s))
        return "the linear result has another reader";
    const char *why = look_at_weights(graph, s);
    if (!why)
        why = look_at_bias(graph, s);
    if (why)
        return why;
    if (s->reshape && !keeps_channels(graph, s))
        return "channels aren't known to be apart after the Reshape";
    const ort_type *type = result_of(graph, s->reshape ? s->reshape : s->linear);
    int axis = s->reshape ? 1 : ort_affine_axis(s->linear, type->rank);
    ort_affine_site at = {s->after, s->slot, type, axis, s->channels};
    why = ort_affine_read(graph, &at, a);
    if (!why && !s->reshape && a->shifts && ort_edit_is(s->linear, ONNX, "MatMul") &&
        !may_be_gemm(graph, s))
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
    return ort_edit_is(linear, ONNX, "Gemm") ? (double)ort_node_attr_float(linear, "beta") : 1;
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

static ort_status add_linear(ort_pass_context *c, const site *s, const ort_id *inputs,
                             ort_id output, ort_error *err)
{
    bool biased = inputs[2] != ORT_ID_NONE;
    ort_attr one = ort_attr_float("beta", 1);
    ort_node_spec spec = {.op_type = biased && ort_edit_is(s->linear, ONNX, "MatMul")
                                         ? "Gemm" : s->linear->op_type,
                          .inputs = inputs, .input_count = 3, .outputs = &output,
                          .output_count = 1, .attrs = s->linear->attrs,
                          .attr_count = s->linear->attr_count, .set = &one,
                          .set_count = beta_of(s->linear) != 1};
    return ort_edit_replace(c->graph, s->linear, s->after, &spec, err);
}

/* The linear operator before the Reshape, whose result gets the name of what was behind it. */
static ort_status add_reshaped(ort_pass_context *c, const site *s, ort_id *inputs, ort_error *err)
{
    ort_id output = s->after->outputs[0], bias = inputs[2];
    ort_id given[2] = {ort_graph_add_value(c->graph, ""), ort_edit_input(s->reshape, 1)};
    bool apart = bias != ORT_ID_NONE && ort_edit_is(s->linear, ONNX, "MatMul") &&
                 !may_be_gemm(c->graph, s);
    ort_node_spec spec = ort_edit_again(s->reshape);
    spec.inputs = given;
    spec.outputs = &output;
    spec.opset = 0;
    if (given[0] == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *given);
    if (apart)
        inputs[2] = ORT_ID_NONE;
    if (s->sum)
        ort_graph_remove_node(c->graph, s->sum);
    ort_graph_remove_node(c->graph, s->reshape);
    ORT_TRY(add_linear(c, s, inputs, given[0], err));
    if (apart)
        ORT_TRY(ort_edit_add_result(c->graph, "Add", (ort_id[]){given[0], bias}, 2, NULL, 0,
                                    &given[0], err));
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

static ort_status fuse(ort_pass_context *c, site *s, const ort_affine *a, ort_error *err)
{
    ort_id inputs[3] = {s->linear->inputs[0]};
    ORT_TRY(add_scaled_weights(c, s, a, &inputs[1], err));
    ORT_TRY(add_bias(c, s, a, &inputs[2], err));
    return s->reshape ? add_reshaped(c, s, inputs, err)
                      : add_linear(c, s, inputs, s->after->outputs[0], err);
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

/* The linear operator whose result comes in at this slot, or NULL as s->linear. */
static void find_linear(const ort_graph *graph, site *s)
{
    s->linear = ort_edit_producer(graph, s->after->inputs[s->slot]);
    if (!ort_edit_is(s->after, ONNX, "BatchNormalization") ||
        !ort_edit_is_any(s->linear, "Reshape|Flatten"))
        return;
    s->reshape = s->linear;
    s->linear = ort_edit_producer(graph, s->reshape->inputs[0]);
    for (int slot = 0; slot < 2 && ort_edit_is(s->linear, ONNX, "Add"); slot++) {
        ort_node *product = ort_edit_producer(graph, s->linear->inputs[slot]);
        if (ort_edit_is(product, ONNX, "MatMul")) {
            s->sum = s->linear;
            s->linear = product;
        }
    }
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        ort_status status = ORT_OK;
        for (int slot = 0; ort_affine_is(node) && slot < 2 && slot < node->input_count; slot++) {
            site s = {.after = node, .slot = slot};
            ort_affine a = {0};
            find_linear(c->graph, &s);
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
