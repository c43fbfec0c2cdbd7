/* conv_batchnorm.c - BatchNormalization after Conv goes into the weights and bias of the Conv.
 *
 *   scale = gamma / sqrt(var + epsilon)      W'[m] = W[m] * scale[m]
 *                                            B'[m] = (B[m] - mean[m]) * scale[m] + beta[m]
 *
 * computed in double. The convolution's result must have no other reader.
 */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "op/edit.h"
#include "pass/pass.h"

typedef struct pair {
    ort_node *conv, *norm;
    const ort_tensor *weights, *bias; /* bias may be NULL */
    const ort_tensor *gamma, *beta, *mean, *variance;
    int64_t channels;
} pair;

static bool floating(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT || dtype == ORT_DTYPE_DOUBLE || dtype == ORT_DTYPE_FLOAT16 ||
           dtype == ORT_DTYPE_BFLOAT16;
}

static bool vector_of(const ort_tensor *tensor, int64_t count)
{
    return tensor && ort_tensor_count(tensor) == count && floating(tensor->dtype);
}

/* Why the pair doesn't fit, or NULL. */
static const char *match(const ort_pass_context *c, pair *p)
{
    const ort_graph *graph = c->graph;
    if (ort_node_int(p->norm, "training_mode", 0) || p->norm->input_count < 5)
        return "it computes statistics";
    if (p->norm->opset < 7 && !ort_node_int(p->norm, "is_test", 0))
        return "it computes statistics";
    if (p->norm->opset < 9 && !ort_node_int(p->norm, "spatial", 1))
        return "its statistics are per position";
    for (int i = 1; i < p->norm->output_count; i++)
        if (p->norm->outputs[i] != ORT_ID_NONE &&
            graph->values.data[p->norm->outputs[i]]->use_count > 0)
            return "its statistics are read";
    if (ort_edit_only_reader(graph, p->conv->outputs[0]) != p->norm)
        return "the convolution's result has another reader";
    p->weights = ort_edit_constant(graph, p->conv, 1);
    p->bias = ort_edit_constant(graph, p->conv, 2);
    if (!p->weights || p->weights->shape.rank < 3 || !floating(p->weights->dtype))
        return "the weights aren't constant";
    if (p->conv->input_count > 2 && p->conv->inputs[2] != ORT_ID_NONE && !p->bias)
        return "the bias isn't constant";
    p->channels = p->weights->shape.dim[0];
    p->gamma = ort_edit_constant(graph, p->norm, 1);
    p->beta = ort_edit_constant(graph, p->norm, 2);
    p->mean = ort_edit_constant(graph, p->norm, 3);
    p->variance = ort_edit_constant(graph, p->norm, 4);
    if (!vector_of(p->gamma, p->channels) || !vector_of(p->beta, p->channels) ||
        !vector_of(p->mean, p->channels) || !vector_of(p->variance, p->channels) ||
        (p->bias && !vector_of(p->bias, p->channels)))
        return "scale, bias, mean or variance isn't a constant per channel";
    return NULL;
}

static void scale_range(ort_tensor *to, const ort_tensor *from, int64_t first, int64_t end,
                        double scale)
{
    if (from->dtype == ORT_DTYPE_FLOAT && (uintptr_t)from->data % sizeof(float) == 0) {
        const float *in = from->data;
        float *out = to->data;
        for (int64_t i = first; i < end; i++)
            out[i] = (float)(in[i] * scale);
        return;
    }
    for (int64_t i = first; i < end; i++)
        ort_tensor_set_f64(to, i, ort_tensor_get_f64(from, i) * scale);
}

static void fill(const pair *p, ort_tensor *weights, ort_tensor *bias)
{
    float epsilon = ort_node_float(p->norm, "epsilon", 1e-5f);
    int64_t each = p->channels ? ort_tensor_count(p->weights) / p->channels : 0;
    for (int64_t m = 0; m < p->channels; m++) {
        double scale = ort_tensor_get_f64(p->gamma, m) /
                       sqrt(ort_tensor_get_f64(p->variance, m) + (double)epsilon);
        double old = p->bias ? ort_tensor_get_f64(p->bias, m) : 0.0;
        scale_range(weights, p->weights, m * each, (m + 1) * each, scale);
        ort_tensor_set_f64(bias, m,
                           (old - ort_tensor_get_f64(p->mean, m)) * scale +
                               ort_tensor_get_f64(p->beta, m));
    }
}

static ort_status replace(ort_pass_context *c, const pair *p, ort_id weights, ort_id bias,
                          ort_error *err)
{
    ort_id inputs[3] = {p->conv->inputs[0], weights, bias}, output = p->norm->outputs[0];
    ort_node_spec spec = {.domain = p->conv->domain,
                          .op_type = p->conv->op_type,
                          .name = p->conv->name,
                          .inputs = inputs,
                          .input_count = 3,
                          .outputs = &output,
                          .output_count = 1,
                          .attrs = p->conv->attrs,
                          .attr_count = p->conv->attr_count,
                          .origin = ort_edit_origin(c->graph, p->conv, p->norm)};
    ort_graph_remove_node(c->graph, p->norm);
    ort_graph_remove_node(c->graph, p->conv);
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

static ort_status fuse(ort_pass_context *c, const pair *p, ort_error *err)
{
    ort_value *weights = NULL, *bias = NULL;
    ort_shape shape = {.rank = 1, .dim = {p->channels}};
    ort_id weights_id = ORT_ID_NONE, bias_id = ORT_ID_NONE;
    ort_status status;
    ORT_TRY_GOTO(status,
                 ort_value_new_tensor_(p->weights->dtype, &p->weights->shape, &weights, err), done);
    ORT_TRY_GOTO(status, ort_value_new_tensor_(p->weights->dtype, &shape, &bias, err), done);
    fill(p, &weights->tensor, &bias->tensor);
    ORT_TRY_GOTO(status,
                 ort_edit_add_constant(c->graph, c->graph->values.data[p->conv->inputs[1]]->name,
                                       &weights->tensor, &weights_id, err),
                 done);
    ORT_TRY_GOTO(status,
                 ort_edit_add_constant(c->graph, c->graph->values.data[p->norm->inputs[2]]->name,
                                       &bias->tensor, &bias_id, err),
                 done);
    status = replace(c, p, weights_id, bias_id, err);
done:
    ort_value_free(weights);
    ort_value_free(bias);
    return status;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_EACH_NODE(c->graph, node)
    {
        pair p = {.norm = node};
        if (!ort_edit_is(node, ONNX, "BatchNormalization") || !node->input_count)
            continue;
        p.conv = ort_edit_producer(c->graph, node->inputs[0]);
        if (!ort_edit_is(p.conv, ONNX, "Conv"))
            continue;
        const char *why = match(c, &p);
        if (why) {
            ort_pass_note(c, node, "%s", why);
            continue;
        }
        ORT_TRY(fuse(c, &p, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_conv_batchnorm = {
    .name = "conv_batchnorm",
    .level = 1,
    .doc = "BatchNormalization goes into the weights of the Conv before it",
    .apply = apply,
};
