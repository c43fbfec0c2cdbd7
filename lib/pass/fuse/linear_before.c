/* linear_before.c - what scales and shifts the channels that a linear operator reads goes into its
 * weights.
 *
 *     BatchNormalization, Mul, Div, Add, Sub by constants per channel    x' = s x + t
 *     Conv, ConvTranspose, Gemm, MatMul    y = W x' + b
 *     becomes    y = (W s) x + (W t + b)
 *
 * computed in double, rounded once. Nobody else may read x'. Padding stands for zeros of x', which
 * a scale keeps and a shift doesn't: a shift wants a Conv without padding, and not a ConvTranspose,
 * whose borders sum fewer products. Only a Conv or Gemm has a bias, or a MatMul of two dimensions,
 * which becomes a Gemm. The file grows by a bias at most where another constant goes. A large
 * matrix stays as it is: to write it anew costs more memory and time than its rows are worth.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/fuse/affine.h"
#include "pass/pass.h"

#define MATRIX_MAX ((int64_t)1 << 21) /* elements */

typedef struct site {
    ort_node *before, *linear;
    int slot; /* of `before`: where the data comes in */
    ort_linear l;
} site;

static bool is_matmul(const site *s)
{
    return ort_edit_is(s->linear, ONNX, "MatMul");
}

/* ---- the linear operator */

static const char *look_at_weights(const ort_graph *graph, site *s)
{
    const ort_node *n = s->linear;
    bool gemm = ort_edit_is(n, ONNX, "Gemm");
    const char *why = ort_linear_read(graph, n, &s->l);
    if (why)
        return why;
    if ((gemm || is_matmul(s)) && ort_tensor_count(s->l.weights) > MATRIX_MAX)
        return "the matrix is large";
    return gemm && (n->opset < 7 || ort_node_attr_int(n, "transA") ||
                    ort_node_attr_float(n, "alpha") != 1 || ort_node_attr_float(n, "beta") != 1)
               ? "the Gemm scales or transposes"
               : NULL;
}

static bool is_padded(const ort_node *conv)
{
    return !ort_fact_ints_are(conv, "pads", 0) || (!ort_node_attr_is(conv, "auto_pad", "NOTSET") &&
                                                   !ort_node_attr_is(conv, "auto_pad", "VALID"));
}

/* Why the shift can't go in; or NULL. */
static const char *no_shift(const ort_pass_context *c, const site *s)
{
    const ort_type *x = ort_fact_type(c->graph, s->before->inputs[s->slot]);
    if (ort_edit_is(s->linear, ONNX, "ConvTranspose"))
        return "a ConvTranspose sums fewer products at its borders";
    if (ort_edit_is(s->linear, ONNX, "Conv") && is_padded(s->linear))
        return "the Conv pads what is shifted";
    if (is_matmul(s) && (x->rank != 2 || ort_model_opset(c->graph->model, ONNX) < 7))
        return "a MatMul of other than two dimensions has no bias";
    return NULL;
}

/* Is it the last factor of x (1 + erf(..)) / 2, of its kin with Tanh, or of x clip(..) / 6? Those
 * become one node as a whole, which does more than a factor less. */
static bool ends_activation(const ort_graph *graph, const site *s)
{
    const ort_node *mul = ort_edit_producer(graph, s->before->inputs[s->slot]);
    const ort_tensor *factor = ort_edit_constant(graph, s->before, 1 - s->slot);
    if (!factor || ort_tensor_count(factor) != 1 || !ort_edit_is(mul, ONNX, "Mul"))
        return false;
    for (int i = 0; i < 2; i++) {
        const ort_node *gate = ort_edit_producer(graph, mul->inputs[i]);
        if (ort_edit_is(gate, ONNX, "Clip"))
            return true;
        for (int j = 0; ort_edit_is(gate, ONNX, "Add") && j < 2; j++) {
            const ort_node *f = ort_edit_producer(graph, gate->inputs[j]);
            if (ort_edit_is_any(f, "Erf|Tanh"))
                return true;
        }
    }
    return false;
}

static const char *match(const ort_pass_context *c, site *s, ort_affine *a)
{
    const ort_graph *graph = c->graph;
    if (ort_edit_only_reader(graph, s->before->outputs[0]) != s->linear)
        return "the linear operator isn't its only reader";
    if (ends_activation(graph, s))
        return "it is the end of an activation";
    const char *why = look_at_weights(graph, s);
    if (why)
        return why;
    const ort_type *x = ort_fact_type(graph, s->before->inputs[s->slot]);
    if (ort_type_rank(x) < 2)
        return "the rank isn't known";
    int axis = ort_affine_axis(s->linear, x->rank);
    if (!ort_dim_is(x->dim[axis], s->l.channels))
        return "what is scaled may be broadcast";
    ort_affine_site at = {s->before, s->slot, x, axis, s->l.channels};
    why = ort_affine_read(graph, &at, a);
    return why || !a->shifts ? why : no_shift(c, s);
}

/* ---- room in the file */

/* A bias that wasn't there, where what goes was smaller; weights with other readers twice. */
static size_t added_bytes(const ort_pass_context *c, const site *s, const ort_affine *a)
{
    const ort_graph_value *weights = c->graph->values.data[s->linear->inputs[1]];
    size_t each = ort_tensor_bytes(s->l.weights) / (size_t)ort_tensor_count(s->l.weights), gone = 0;
    size_t bias = a->shifts && !s->l.bias ? each * (size_t)s->l.results : 0;
    for (int i = 0; i < s->before->input_count; i++) {
        const ort_tensor *t = ort_edit_constant(c->graph, s->before, i);
        if (t && c->graph->values.data[s->before->inputs[i]]->use_count == 1)
            gone += ort_tensor_bytes(t);
    }
    size_t twice = a->scales && (weights->use_count != 1 || weights->is_input)
                       ? ort_tensor_bytes(s->l.weights) : 0;
    return twice + (bias > gone ? bias - gone : 0);
}

static const char *no_room(const ort_pass_context *c, const site *s, const ort_affine *a)
{
    size_t bytes = added_bytes(c, s, a);
    if (bytes > *c->growth_bytes)
        return "the file would grow by a bias, or by weights that other nodes share";
    *c->growth_bytes -= bytes;
    return NULL;
}

/* ---- the new weights */

/* Floats are read wherever they lie in a file. */
static const char *floats_at(const ort_linear *l, int64_t at)
{
    return (const char *)l->weights->data + at * (int64_t)sizeof(float);
}

static float load_float(const char *at)
{
    float v;
    memcpy(&v, at, sizeof v);
    return v;
}

/* The taps of one channel and result: their sum, and scaled into `to` (or NULL). */
static double take_taps(const ort_linear *l, int64_t at, double scale, ort_tensor *to)
{
    double sum = 0;
    bool floats = l->weights->dtype == ORT_DTYPE_FLOAT;
    const char *w = floats_at(l, at);
    for (int64_t k = 0; floats && k < l->taps; k++, w += sizeof(float))
        sum += (double)load_float(w);
    for (int64_t k = 0; !floats && k < l->taps; k++)
        sum += ort_tensor_get_f64(l->weights, at + k);
    if (to)
        ort_affine_scale(to, l->weights, at, l->taps, scale);
    return sum;
}

/* Blocks of a fixed length become vectors. */
static void add_products(double *sum, const char *w, int64_t count, double by)
{
    enum { BLOCK = 64 };
    float x[BLOCK];
    for (; count >= BLOCK; count -= BLOCK, sum += BLOCK, w += sizeof x) {
        memcpy(x, w, sizeof x);
        for (int k = 0; k < BLOCK; k++)
            sum[k] += (double)x[k] * by;
    }
    memcpy(x, w, (size_t)count * sizeof *x);
    for (int64_t k = 0; k < count; k++)
        sum[k] += (double)x[k] * by;
}

/* Weights of one channel or result, side by side; scale and shift of the first channel. */
static void scale_row(const ort_linear *l, int64_t at, int64_t count, bool by_result,
                      const double *scale, const double *by, ort_tensor *to, double *shift)
{
    const char *w = floats_at(l, at);
    if (to && by_result)
        ort_affine_scale_each(to, l->weights, at, count, scale);
    else if (to)
        ort_affine_scale(to, l->weights, at, count, *scale);
    for (int64_t k = 0; by_result && k < count; k++, w += sizeof(float))
        *shift += by[k] != 0 ? (double)load_float(w) * by[k] : 0;
    if (!by_result && *by != 0)
        add_products(shift, w, count, *by);
}

/* In the order in which the weights lie: results add up their channels in the same one anyway. */
static void each_weight(const ort_linear *l, const ort_affine *a, ort_tensor *to, double *shift)
{
    int64_t channels = l->channels / l->groups, results = l->results / l->groups;
    bool by_result = l->by_result > l->by_channel;
    int64_t outer = by_result ? results : channels, inner = by_result ? channels : results;
    bool rows = l->taps == 1 && l->weights->dtype == ORT_DTYPE_FLOAT &&
                (by_result ? l->by_channel : l->by_result) == 1;
    for (int64_t g = 0; g < l->groups; g++)
        for (int64_t i = 0; i < outer; i++) {
            if (rows) {
                int64_t c = g * channels + (by_result ? 0 : i), r = by_result ? i : 0;
                scale_row(l, g * l->group_size + i * (by_result ? l->by_result : l->by_channel),
                          inner, by_result, a->scale + c, a->shift + c, to,
                          shift + g * results + r);
                continue;
            }
            for (int64_t k = 0; k < inner; k++) {
                int64_t c = by_result ? k : i, r = by_result ? i : k, from = g * channels + c;
                double sum = take_taps(l, g * l->group_size + c * l->by_channel + r * l->by_result,
                                       a->scale[from], to);
                if (a->shift[from] != 0)
                    shift[g * results + r] += sum * a->shift[from];
            }
        }
}

static ort_status add_constants(ort_pass_context *c, site *s, const ort_affine *a, double *shift,
                                ort_id inputs[3], ort_error *err)
{
    ort_tensor made;
    if (s->l.weights->dtype != ORT_DTYPE_FLOAT)
        s->l.weights = ort_graph_weight(c->graph, s->linear->inputs[1]);
    if (!s->l.weights)
        return ort_error_memory(err, sizeof *s->l.weights);
    const char *name = c->graph->values.data[s->linear->inputs[1]]->name;
    if (a->scales)
        ORT_TRY(ort_edit_new_constant(c->graph, name, s->l.weights->dtype, &s->l.weights->shape,
                                      &made, &inputs[1], err));
    each_weight(&s->l, a, a->scales ? &made : NULL, shift);
    const ort_tensor *bias = s->l.bias;
    for (int64_t r = 0; bias && r < s->l.results; r++)
        shift[r] += ort_tensor_get_f64(bias, ort_tensor_count(bias) == 1 ? 0 : r);
    return a->shifts ? ort_linear_add_bias(c->graph, s->linear, &s->l, shift, &inputs[2], err)
                     : ORT_OK;
}

static ort_status fuse(ort_pass_context *c, site *s, const ort_affine *a, ort_error *err)
{
    const ort_node *n = s->linear;
    ort_id inputs[3] = {s->before->inputs[s->slot], n->inputs[1], ort_edit_input(n, 2)};
    double *shift = calloc((size_t)s->l.results + 1, sizeof *shift);
    ort_status status = shift ? add_constants(c, s, a, shift, inputs, err)
                              : ort_error_memory(err, (size_t)s->l.results * sizeof *shift);
    free(shift);
    if (status != ORT_OK)
        return status;
    ort_node_spec spec = {.op_type = is_matmul(s) && a->shifts ? "Gemm" : n->op_type,
                          .name = n->name, .inputs = inputs, .input_count = 3, .attrs = n->attrs,
                          .attr_count = n->attr_count};
    return ort_edit_replace(c->graph, s->before, s->linear, &spec, err);
}

/* The operand that isn't constant, or -1. */
static int data_slot(const ort_graph *graph, const ort_node *before)
{
    if (ort_edit_is(before, ONNX, "BatchNormalization"))
        return 0;
    return ort_edit_constant(graph, before, 1) ? 0 : ort_edit_constant(graph, before, 0) ? 1 : -1;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        ort_affine a = {0};
        if (!ort_affine_is_linear(node) || node->input_count < 2)
            continue;
        site s = {.linear = node, .before = ort_edit_producer(c->graph, node->inputs[0])};
        s.slot = ort_affine_is(s.before) ? data_slot(c->graph, s.before) : -1;
        if (s.slot < 0)
            continue;
        const char *why = match(c, &s, &a);
        why = why ? why : no_room(c, &s, &a);
        ort_status status = why ? ORT_OK : fuse(c, &s, &a, err);
        if (why)
            ort_pass_note(c, s.before, "%s", why);
        ort_affine_release(&a);
        ORT_TRY(status);
        *changes += !why;
    }
    return ORT_OK;
}

const ort_pass ort_pass_linear_before = {
    .name = "linear_before",
    .level = 1,
    .doc = "scales and shifts before Conv, ConvTranspose, Gemm, MatMul go into the weights",
    .apply = apply,
};
