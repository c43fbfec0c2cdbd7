/* training.c - ai.onnx.preview.training: the optimizer steps Adagrad, Adam and Momentum, and what
 * is said of Gradient before gradient/expansion.c takes it apart.
 *
 * Inputs are the learning rate R, the update count T, then for n tensors all values X, all
 * gradients G and the moments (one or two groups); outputs are the new X and moments in the same
 * order. An element is computed in double and rounded once.
 */
#include <math.h>
#include <string.h>

#include "op/number.h"
#include "op/op.h"

#define TRAINING "ai.onnx.preview.training"

typedef enum step_kind { STEP_ADAGRAD, STEP_MOMENTUM, STEP_ADAM } step_kind;

typedef struct step {
    step_kind kind;
    double alpha, beta, epsilon, decay, norm, norm_post;
    bool nesterov;
    int moments; /* groups of state tensors */
} step;

static const ort_bind step_bind[] = {
    ORT_BIND(step, alpha, ORT_MAYBE),
    ORT_BIND(step, beta, ORT_MAYBE),
    ORT_BIND(step, epsilon, ORT_MAYBE),
    ORT_BIND_AS(step, decay, "decay_factor", ORT_MAYBE),
    ORT_BIND_AS(step, norm, "norm_coefficient"),
    ORT_BIND_AS(step, norm_post, "norm_coefficient_post", ORT_MAYBE),
    ORT_BIND_AS(step, nesterov, "mode", ORT_WORDS("standard nesterov"), ORT_MAYBE), {0}};

static int moments_of(const ort_op *op)
{
    return op->variant == STEP_ADAM ? 2 : 1;
}

static ort_status step_prepare(ort_prep *p, ort_error *err)
{
    step *s = p->state;
    s->kind = (step_kind)p->op->variant;
    s->moments = moments_of(p->op);
    return ORT_OK;
}

static ort_status step_infer(ort_infer *x, ort_error *err)
{
    int groups = 2 + moments_of(x->op);
    int n = (x->in_count - 2) / groups;
    if (x->in_count < 2 + groups || (x->in_count - 2) % groups || x->out_count > n * (groups - 1))
        return ort_infer_fail(x, err, "it has %d inputs, needs R, T and %d for each tensor",
                              x->in_count, groups);
    for (int i = 2; i < x->in_count; i++)
        if (!ort_infer_in(x, i))
            return ort_infer_fail(x, err, "input %d is left out: a list has no holes", i);
    for (int i = 0; i < x->out_count; i++) {
        const ort_fact *in = ort_infer_in(x, i < n ? 2 + i : 2 + n + i);
        if (in)
            x->out[i].type = in->type;
    }
    return ORT_OK;
}

/* The new value of one element; v and h are its moments, replaced. */
static double advance(const step *s, double rate, double count, double x, double g, double *v,
                      double *h)
{
    g += s->norm * x;
    switch (s->kind) {
    case STEP_ADAGRAD:
        *v += g * g;
        return x - rate / (1 + count * s->decay) * g / (sqrt(*v) + s->epsilon);
    case STEP_MOMENTUM:
        *v = s->alpha * *v + (count > 0 ? s->beta : 1) * g;
        return x - rate * (s->nesterov ? g + s->alpha * *v : *v);
    default:
        break;
    }
    *v = s->alpha * *v + (1 - s->alpha) * g;
    *h = s->beta * *h + (1 - s->beta) * g * g;
    if (count > 0)
        rate *= sqrt(1 - pow(s->beta, count)) / (1 - pow(s->alpha, count));
    return (1 - s->norm_post) * (x - rate * *v / (sqrt(*h) + s->epsilon));
}

static void store(ort_call *call, int output, int64_t i, double value)
{
    ort_tensor *t = ort_call_out(call, output);
    if (t)
        ort_tensor_set_f64(t, i, value);
}

static ort_status step_run(ort_call *call, ort_error *err)
{
    const step *s = call->state;
    int n = (call->in_count - 2) / (2 + s->moments);
    double rate = 0, count = 0;
    ORT_TRY(ort_call_f64(call, 0, &rate, err));
    ORT_TRY(ort_call_f64(call, 1, &count, err));
    for (int k = 0; k < n; k++) {
        const ort_tensor *x = ort_call_in(call, 2 + k), *g = ort_call_in(call, 2 + n + k);
        const ort_tensor *v = ort_call_in(call, 2 + 2 * n + k);
        const ort_tensor *h = s->moments > 1 ? ort_call_in(call, 2 + 3 * n + k) : NULL;
        int64_t elements = ort_tensor_count(x);
        if (ort_tensor_count(g) != elements || ort_tensor_count(v) != elements ||
            (h && ort_tensor_count(h) != elements))
            return ort_call_fail(call, err,
                                 "tensor %d, its gradient and its moments differ in size",
                                 k);
        for (int64_t i = 0; i < elements; i++) {
            double first = ort_tensor_get_f64(v, i), second = h ? ort_tensor_get_f64(h, i) : 0;
            double value = advance(s, rate, count, ort_tensor_get_f64(x, i),
                                   ort_tensor_get_f64(g, i), &first, &second);
            store(call, k, i, value);
            store(call, n + k, i, first);
            if (h)
                store(call, 2 * n + k, i, second);
        }
    }
    return ORT_OK;
}

static const ort_op_impl step_impl = {
    .state = sizeof(step), .bind = step_bind,
    .infer = step_infer, .prepare = step_prepare, .run = step_run, .numbers = 3,
};

/* ---- Gradient: differentiated by a pass before anything runs, so it has no kernel */

/* Is the name one of the graph, or of those around it? */
static ort_status check_name(const ort_infer *x, const char *attr, const char *name, ort_error *err)
{
    for (const ort_graph *graph = x->graph; graph; graph = graph->parent)
        if (ort_graph_find_value(graph, name) != ORT_ID_NONE)
            return ORT_OK;
    return ort_infer_fail(x, err, "%s names '%.200s', which the graph doesn't have", attr, name);
}

/* The gradient of an x has its type and shape. */
static ort_status gradient_infer(ort_infer *x, ort_error *err)
{
    size_t xs_count, zs_count;
    const ort_string *xs = ort_node_strings(x->node, "xs", &xs_count);
    const ort_string *zs = ort_node_strings(x->node, "zs", &zs_count);
    if ((size_t)x->in_count != xs_count + zs_count)
        return ort_infer_fail(x, err, "it has %d inputs, xs and zs name %zu values", x->in_count,
                              xs_count + zs_count);
    if ((size_t)x->out_count > xs_count)
        return ort_infer_fail(x, err, "it has %d outputs, xs names %zu values", x->out_count,
                              xs_count);
    for (size_t i = 0; i < xs_count; i++)
        ORT_TRY(check_name(x, "xs", xs[i].ptr, err));
    for (size_t i = 0; i < zs_count; i++)
        ORT_TRY(check_name(x, "zs", zs[i].ptr, err));
    ORT_TRY(check_name(x, "y", ort_node_string(x->node, "y", ""), err));
    for (int i = 0; i < x->out_count; i++)
        if (ort_infer_in(x, i))
            x->out[i].type = x->in[i]->type;
    return ORT_OK;
}

static const ort_op_impl gradient_impl = {.infer = gradient_infer};

/* ---- rows */

const ort_op ort_ops_training[] = {
    {TRAINING, "Adagrad", 1, "R:T1,T:T2,inputs**:T3 -> outputs**:T3",
     "T1:f32,f64 T2:i64 T3:f32,f64",
     "decay_factor:f=0 epsilon:f=9.99999997e-07 norm_coefficient:f=0", 0, &step_impl,
     .variant = STEP_ADAGRAD},
    {TRAINING, "Adam", 1, "R:T1,T:T2,inputs**:T3 -> outputs**:T3",
     "T1:f32,f64 T2:i64 T3:f32,f64",
     "alpha:f=0.899999976 beta:f=0.999000013 epsilon:f=9.99999997e-07 norm_coefficient:f=0 "
     "norm_coefficient_post:f=0", 0, &step_impl, .variant = STEP_ADAM},
    {TRAINING, "Gradient", 1, "Inputs**:T1 -> Outputs**:T2", "T1:I,U,F,C,str,bool T2:F",
     "xs:ss! y:s! zs:ss", ORT_TRAIT_REWRITTEN, &gradient_impl},
    {TRAINING, "Momentum", 1, "R:T1,T:T2,inputs**:T3 -> outputs**:T3",
     "T1:f32,f64 T2:i64 T3:f32,f64",
     "alpha:f! beta:f! mode:s! norm_coefficient:f!", 0, &step_impl, .variant = STEP_MOMENTUM},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
