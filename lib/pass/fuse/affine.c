/* affine.c - reading what scales and shifts channels (affine.h).
 *
 *     BatchNormalization: scale = gamma / sqrt(var + epsilon), shift = beta - mean scale
 */
#include "pass/fuse/affine.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "pass/facts/facts.h"

bool ort_affine_reads(const ort_tensor *t)
{
    return t && t->data && ort_dtype_is_real(t->dtype);
}

bool ort_affine_is(const ort_node *node)
{
    return ort_edit_is_any(node, "BatchNormalization|Mul|Div|Add|Sub");
}

bool ort_affine_is_linear(const ort_node *node)
{
    return ort_edit_is_any(node, "Conv|ConvTranspose|Gemm|MatMul");
}

int ort_affine_axis(const ort_node *linear, int rank)
{
    return ort_edit_is_any(linear, "Gemm|MatMul") ? rank - 1 : 1;
}

const char *ort_affine_numbers(const ort_affine_site *s, const ort_tensor *t, double *out)
{
    const ort_type *type = s->type;
    if (!ort_affine_reads(t))
        return "the operand isn't constant";
    if (ort_type_rank(type) < 2)
        return "the rank isn't known";
    int skip = type->rank - t->shape.rank;
    if (skip < 0)
        return "the operand has more dimensions";
    for (int d = 0; d < t->shape.rank; d++)
        if (t->shape.dim[d] != 1 && (d + skip != s->axis || t->shape.dim[d] != s->channels))
            return "the operand isn't one number per channel";
    int64_t count = ort_tensor_count(t);
    for (int64_t c = 0; c < s->channels; c++)
        out[c] = ort_tensor_get_f64(t, count == 1 ? 0 : c);
    return NULL;
}

/* From opset 14 on an attribute asks for it, before that further results, read or not. */
static bool computes_statistics(const ort_node *n)
{
    if (n->opset < 14 && n->output_count > 1)
        return true;
    return n->opset < 7 ? !ort_node_attr_int(n, "is_test") : ort_node_attr_int(n, "training_mode");
}

static const char *read_norm(const ort_graph *graph, const ort_affine_site *s, ort_affine *a)
{
    const ort_node *n = s->node;
    const ort_tensor *t[4];
    float epsilon = ort_node_attr_float(n, "epsilon");
    if (n->input_count < 5 || computes_statistics(n))
        return "it computes statistics";
    if (n->opset < 9 && !ort_node_attr_int(n, "spatial"))
        return "its statistics are per position";
    for (int i = 1; i < n->output_count; i++)
        if (n->outputs[i] != ORT_ID_NONE && graph->values.data[n->outputs[i]]->use_count > 0)
            return "its statistics are read";
    if (ort_type_rank(s->type) < 2 || s->axis != 1)
        return "its channels are not the linear operator's";
    for (int i = 0; i < 4; i++) {
        t[i] = ort_edit_constant(graph, n, i + 1);
        if (!ort_affine_reads(t[i]) || ort_tensor_count(t[i]) != s->channels)
            return "scale, bias, mean or variance isn't a constant per channel";
    }
    for (int64_t c = 0; c < s->channels; c++) {
        a->scale[c] = ort_tensor_get_f64(t[0], c) /
                      sqrt(ort_tensor_get_f64(t[3], c) + (double)epsilon);
        a->shift[c] = ort_tensor_get_f64(t[1], c) - ort_tensor_get_f64(t[2], c) * a->scale[c];
    }
    a->scales = a->shifts = true;
    return NULL;
}

static const char *read_binary(const ort_graph *graph, const ort_affine_site *s, ort_affine *a)
{
    const ort_node *n = s->node;
    bool multiplies = ort_edit_is_any(n, "Mul|Div");
    double *values = multiplies ? a->scale : a->shift;
    const ort_tensor *operand = ort_edit_constant(graph, n, 1 - s->slot);
    const char *why =
        n->opset < 7 ? "it broadcasts by attribute" : ort_affine_numbers(s, operand, values);
    if (why)
        return why;
    if (s->slot != 0 && ort_edit_is(n, ONNX, "Div"))
        return "it divides by the data";
    for (int64_t c = 0; c < s->channels; c++) {
        if (ort_edit_is(n, ONNX, "Div"))
            values[c] = 1 / values[c];
        if (ort_edit_is(n, ONNX, "Sub")) {
            a->scale[c] = s->slot == 0 ? 1 : -1;
            values[c] = s->slot == 0 ? -values[c] : values[c];
        }
        if (!isfinite(values[c]))
            return "a factor isn't finite";
    }
    a->scales = multiplies || (ort_edit_is(n, ONNX, "Sub") && s->slot == 1);
    a->shifts = !multiplies;
    return NULL;
}

const char *ort_affine_read(const ort_graph *graph, const ort_affine_site *s, ort_affine *a)
{
    size_t count = s->channels > 0 ? (size_t)s->channels : 1;
    *a = (ort_affine){.scale = malloc(count * sizeof *a->scale),
                      .shift = malloc(count * sizeof *a->shift)};
    if (!a->scale || !a->shift)
        return "memory is exhausted";
    for (int64_t c = 0; c < s->channels; c++) {
        a->scale[c] = 1;
        a->shift[c] = 0;
    }
    return ort_edit_is(s->node, ONNX, "BatchNormalization") ? read_norm(graph, s, a)
                                                            : read_binary(graph, s, a);
}

void ort_affine_release(ort_affine *a)
{
    free(a->scale);
    free(a->shift);
    *a = (ort_affine){0};
}

/* Weights in a mapping may lie anywhere. Blocks of a fixed length become vectors. */
static void scale_floats(float *out, const char *in, int64_t count, double scale)
{
    enum { BLOCK = 64 };
    float x[BLOCK];
    for (; count >= BLOCK; count -= BLOCK, out += BLOCK, in += sizeof x) {
        memcpy(x, in, sizeof x);
        for (int i = 0; i < BLOCK; i++)
            out[i] = (float)(x[i] * scale);
    }
    memcpy(x, in, (size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)(x[i] * scale);
}

void ort_affine_scale(ort_tensor *to, const ort_tensor *from, int64_t first, int64_t count,
                      double scale)
{
    if (from->dtype == ORT_DTYPE_FLOAT) {
        scale_floats((float *)to->data + first,
                     (const char *)from->data + first * (int64_t)sizeof(float), count, scale);
        return;
    }
    for (int64_t i = first; i < first + count; i++)
        ort_tensor_set_f64(to, i, ort_tensor_get_f64(from, i) * scale);
}

void ort_affine_scale_each(ort_tensor *to, const ort_tensor *from, int64_t first, int64_t count,
                           const double *scale)
{
    enum { BLOCK = 64 };
    const char *in = (const char *)from->data + first * (int64_t)sizeof(float);
    float x[BLOCK], *out = (float *)to->data + first;
    assert(from->dtype == ORT_DTYPE_FLOAT);
    for (; count >= BLOCK; count -= BLOCK, out += BLOCK, scale += BLOCK, in += sizeof x) {
        memcpy(x, in, sizeof x);
        for (int i = 0; i < BLOCK; i++)
            out[i] = (float)(x[i] * scale[i]);
    }
    memcpy(x, in, (size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)(x[i] * scale[i]);
}

/* ---- what takes it in */

static const char *read_matrix(const ort_node *node, ort_linear *l)
{
    const ort_shape *w = &l->weights->shape;
    bool turned = ort_edit_is(node, ONNX, "Gemm") && ort_node_attr_int(node, "transB");
    if (w->rank != 2)
        return "the weights aren't a matrix";
    l->channels = w->dim[turned];
    l->results = w->dim[!turned];
    l->by_channel = turned ? 1 : w->dim[1];
    l->by_result = turned ? w->dim[1] : 1;
    l->groups = l->taps = 1;
    l->group_size = ort_tensor_count(l->weights);
    return NULL;
}

static const char *read_filters(const ort_node *node, ort_linear *l)
{
    const ort_shape *w = &l->weights->shape;
    bool turned = ort_edit_is(node, ONNX, "ConvTranspose"); /* [channels, results, taps] */
    int64_t group = ort_node_attr_int(node, "group");
    if (w->rank < 3 || group < 1 || w->dim[0] % group)
        return "the weights' shape isn't one that this pass knows";
    l->groups = group;
    l->group_size = ort_tensor_count(l->weights) / group;
    l->taps = ort_tensor_count(l->weights) / w->dim[0] / w->dim[1];
    l->channels = turned ? w->dim[0] : w->dim[1] * group;
    l->results = turned ? w->dim[1] * group : w->dim[0];
    l->by_channel = turned ? w->dim[1] * l->taps : l->taps;
    l->by_result = turned ? l->taps : w->dim[1] * l->taps;
    return NULL;
}

const char *ort_linear_read(const ort_graph *graph, const ort_node *node, ort_linear *l)
{
    const ort_tensor *weights = ort_edit_constant(graph, node, 1);
    return ort_linear_read_of(graph, node, ort_affine_reads(weights) ? weights : NULL, l);
}

const char *ort_linear_read_of(const ort_graph *graph, const ort_node *node,
                               const ort_tensor *weights, ort_linear *l)
{
    *l = (ort_linear){.weights = weights, .bias = ort_edit_constant(graph, node, 2)};
    if (!weights || ort_tensor_count(weights) == 0)
        return "the weights aren't constant";
    const char *why = ort_edit_is_any(node, "Gemm|MatMul") ? read_matrix(node, l)
                                                           : read_filters(node, l);
    if (why || ort_edit_input(node, 2) == ORT_ID_NONE)
        return why;
    if (!ort_affine_reads(l->bias) ||
        (ort_tensor_count(l->bias) != 1 &&
         (ort_tensor_count(l->bias) != l->results ||
          l->bias->shape.dim[l->bias->shape.rank - 1] != l->results)))
        return "the bias isn't constant, one number per channel";
    return NULL;
}

ort_status ort_linear_add_bias(ort_graph *graph, const ort_node *node, const ort_linear *l,
                               const double *numbers, ort_id *id, ort_error *err)
{
    ort_tensor made;
    ort_shape shape = {.rank = 1, .dim = {l->results}};
    char name[256];
    snprintf(name, sizeof name, "%.240s_bias", graph->values.data[node->inputs[1]]->name);
    ORT_TRY(ort_edit_new_constant(graph, name, ort_fact_type(graph, node->outputs[0])->dtype,
                                  &shape, &made, id, err));
    for (int64_t r = 0; r < l->results; r++)
        ort_tensor_set_f64(&made, r, numbers[r]);
    return ORT_OK;
}
