/* linear_affine.c - what scales and shifts the channels of a linear operator goes into its weights.
 *
 *     Conv, ConvTranspose, Gemm, MatMul    y = W x + b
 *     BatchNormalization, Mul, Div, Add, Sub by constants per channel    z = s y + t
 *     becomes    z = (s W) x + (s b + t)
 *
 * computed in double, rounded once; weights that are codes, where codes are read as well, stay
 * codes, and their scales take s. The linear result must have no other reader. A MatMul takes a
 * scale only, unless it has two dimensions: with a shift that one becomes a Gemm.
 *
 * A BatchNormalization may stand behind a Reshape that keeps the channels apart, as rows [B*N,C] of
 * a MatMul's [B,N,C]: it goes before that, where a MatMul is followed by an Add instead.
 */
#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/fuse/affine.h"
#include "pass/fuse/coded_weights.h"
#include "pass/pass.h"

typedef struct site {
    ort_node *linear, *after;
    ort_node *reshape; /* between them, or NULL */
    ort_node *sum;     /* what adds a bias to a MatMul, before the reshape; or NULL */
    int slot; /* of `after`: where the linear result comes in */
    ort_linear l;
    ort_coded_weights coded;
} site;

/* ---- the linear operator */

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
    if (ort_type_rank(from) < 2 || ort_type_rank(to) < 2 || !ort_dim_is(to->dim[1], s->l.results))
        return false;
    return axis == 1 ? ort_dim_equal(from->dim[0], to->dim[0])
                     : axis == from->rank - 1 && to->rank == 2;
}

static const char *look_at_bias(const ort_graph *graph, site *s)
{
    if (!s->sum)
        return NULL;
    s->l.bias = ort_edit_constant(graph, s->sum, s->sum->inputs[0] == s->linear->outputs[0]);
    return ort_affine_reads(s->l.bias) && ort_tensor_is_row(s->l.bias, s->l.results) &&
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

static const char *match(const ort_pass_context *c, site *s, ort_affine *a)
{
    const ort_graph *graph = c->graph;
    if (!is_read_alone(graph, s))
        return "the linear result has another reader";
    ort_coded_weights_read(graph, s->linear, &s->coded);
    const char *why = s->coded.node
                          ? ort_linear_read_of(graph, s->linear, s->coded.codes, &s->l)
                          : ort_linear_read(graph, s->linear, &s->l);
    if (!why && ort_edit_is(s->linear, ONNX, "Gemm") && s->linear->opset < 7)
        why = "a Gemm before opset 7 broadcasts by attribute";
    if (!why)
        why = look_at_bias(graph, s);
    if (why)
        return why;
    if (s->reshape && !keeps_channels(graph, s))
        return "channels aren't known to be apart after the Reshape";
    const ort_type *type = result_of(graph, s->reshape ? s->reshape : s->linear);
    int axis = s->reshape ? 1 : ort_affine_axis(s->linear, type->rank);
    ort_affine_site at = {s->after, s->slot, type, axis, s->l.results};
    why = ort_affine_read(graph, &at, a);
    if (!why && !s->reshape && a->shifts && ort_edit_is(s->linear, ONNX, "MatMul") &&
        !may_be_gemm(graph, s))
        return "a MatMul of other than two dimensions has no bias";
    return why || !s->coded.node || !a->scales
               ? why
               : ort_coded_weights_unless(graph, &s->coded, a->scale, s->l.results, c->portable);
}

/* ---- the new weights */

/* In the order in which they lie. */
static void scale_weights(const ort_linear *l, const ort_affine *a, ort_tensor *to)
{
    int64_t channels = l->channels / l->groups, results = l->results / l->groups;
    bool whole = l->by_channel == l->taps; /* all channels of a result side by side */
    if (l->by_result == 1 && l->taps == 1 && l->weights->dtype == ORT_DTYPE_FLOAT) {
        for (int64_t c = 0; c < l->channels; c++)
            ort_affine_scale_each(to, l->weights, c / channels * l->group_size +
                                                      c % channels * l->by_channel,
                                  results, a->scale + c / channels * results);
        return;
    }
    for (int64_t g = 0; g < l->groups; g++)
        for (int64_t c = 0; c < (whole ? 1 : channels); c++)
            for (int64_t r = 0; r < results; r++)
                ort_affine_scale(to, l->weights,
                                 g * l->group_size + c * l->by_channel + r * l->by_result,
                                 l->taps * (whole ? channels : 1), a->scale[g * results + r]);
}

static ort_status add_scaled_weights(ort_pass_context *c, site *s, const ort_affine *a, ort_id *id,
                                     ort_error *err)
{
    ort_tensor made;
    const ort_graph_value *old = c->graph->values.data[s->linear->inputs[1]];
    *id = s->linear->inputs[1];
    if (!a->scales)
        return ORT_OK;
    if (s->coded.node)
        return ort_coded_weights_scale(c->graph, &s->coded, a->scale, s->l.results, id, err);
    size_t bytes = ort_tensor_bytes(s->l.weights);
    if (s->l.weights->dtype != ORT_DTYPE_FLOAT) /* those are read wherever they lie */
        s->l.weights = ort_graph_weight(c->graph, *id);
    if (!s->l.weights)
        return ort_error_memory(err, bytes);
    ORT_TRY(ort_edit_new_constant(c->graph, old->name, s->l.weights->dtype, &s->l.weights->shape,
                                  &made, id, err));
    scale_weights(&s->l, a, &made);
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
    const ort_tensor *bias = s->l.bias;
    double beta = beta_of(s->linear);
    *id = ORT_ID_NONE;
    if (!bias && !a->shifts)
        return ORT_OK;
    for (int64_t k = 0; bias && k < s->l.results; k++)
        a->shift[k] += beta * ort_tensor_get_f64(bias, ort_tensor_count(bias) == 1 ? 0 : k) *
                       a->scale[k];
    return ort_linear_add_bias(c->graph, s->linear, &s->l, a->shift, id, err);
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
    size_t bytes = ort_tensor_bytes(s->l.weights);
    if (!a->scales || s->coded.node || (weights->use_count == 1 && !weights->is_input))
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
            const char *why = match(c, &s, &a);
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
