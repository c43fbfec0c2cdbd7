/* loss.c - NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
 *
 * Both take scores [N, C, D...] and labels [N, D...]; a sample is one label. Sums run in double,
 * one pass over the samples: these operators end a training graph, their inputs are small.
 */
#include <math.h>
#include <string.h>

#include "op/op.h"

typedef enum reduction { REDUCE_NONE, REDUCE_SUM, REDUCE_MEAN } reduction;

enum { NEGATIVE_LOG, CROSS_ENTROPY };

typedef struct loss {
    reduction reduce;
    bool ignores;
    int64_t ignored;
    bool softmax;
} loss;

static const ort_bind loss_bind[] = {
    ORT_BIND_AS(loss, reduce, "reduction", ORT_WORDS("none sum mean")),
    ORT_BIND_HAS(loss, ignores, "ignore_index"),
    ORT_BIND_AS(loss, ignored, "ignore_index", ORT_MAYBE), {0}};

static ort_status loss_prepare(ort_prep *p, ort_error *err)
{
    loss *s = p->state;
    s->softmax = p->op->variant == CROSS_ENTROPY;
    return ORT_OK;
}

static ort_status loss_infer(ort_infer *x, ort_error *err)
{
    if (!ort_node_attr_is(x->node, "reduction", "none"))
        ort_infer_set_shape(x, 0, 0, NULL);
    return ORT_OK;
}

typedef struct loss_walk {
    const loss *s;
    const ort_tensor *scores, *labels, *weights;
    ort_tensor *out, *log_prob;
    int64_t classes, inner;
    double sum, weight;
} loss_walk;

/* log(sum of exp) of the classes of one sample, whose first score is element `at`. */
static double log_sum(const loss_walk *w, int64_t at)
{
    double top = -INFINITY, sum = 0;
    for (int64_t c = 0; c < w->classes; c++)
        top = fmax(top, ort_tensor_get_f64(w->scores, at + c * w->inner));
    if (isinf(top))
        return top;
    for (int64_t c = 0; c < w->classes; c++)
        sum += exp(ort_tensor_get_f64(w->scores, at + c * w->inner) - top);
    return top + log(sum);
}

static ort_status sample(ort_call *call, loss_walk *w, int64_t i, ort_error *err)
{
    int64_t at = i / w->inner * w->classes * w->inner + i % w->inner;
    int64_t label = ort_tensor_get_i64(w->labels, i);
    double offset = w->s->softmax ? log_sum(w, at) : 0, value = 0, weight = 0;
    for (int64_t c = 0; w->log_prob && c < w->classes; c++)
        ort_tensor_set_f64(w->log_prob, at + c * w->inner,
                           ort_tensor_get_f64(w->scores, at + c * w->inner) - offset);
    if (!w->s->ignores || label != w->s->ignored) {
        if (label < 0 || label >= w->classes)
            return ort_call_fail(call, err, "label %lld is %lld, there are %lld classes",
                                 (long long)i, (long long)label, (long long)w->classes);
        weight = w->weights ? ort_tensor_get_f64(w->weights, label) : 1;
        value = (offset - ort_tensor_get_f64(w->scores, at + label * w->inner)) * weight;
    }
    w->sum += value;
    w->weight += weight;
    if (w->out && w->s->reduce == REDUCE_NONE)
        ort_tensor_set_f64(w->out, i, value);
    return ORT_OK;
}

static ort_status loss_run(ort_call *call, ort_error *err)
{
    loss_walk w = {.s = call->state, .scores = ort_call_in(call, 0), .labels = ort_call_in(call, 1),
                   .weights = ort_call_in(call, 2), .out = ort_call_out(call, 0),
                   .log_prob = ort_call_out(call, 1)};
    const ort_shape *s = &w.scores->shape, *l = &w.labels->shape;
    if (s->rank < 2 || l->rank != s->rank - 1)
        return ort_call_fail(call, err, "the labels must have one dim less than the scores");
    for (int i = 0; i < l->rank; i++)
        if (l->dim[i] != s->dim[i == 0 ? 0 : i + 1])
            return ort_call_fail(call, err, "the labels' shape doesn't fit the scores'");
    w.classes = s->dim[1];
    w.inner = ort_shape_count_range(s, 2, s->rank);
    if (w.weights && ort_tensor_count(w.weights) != w.classes)
        return ort_call_fail(call, err, "%lld weights for %lld classes",
                             (long long)ort_tensor_count(w.weights), (long long)w.classes);
    int64_t samples = ort_tensor_count(w.labels);
    for (int64_t i = 0; i < samples; i++)
        ORT_TRY(sample(call, &w, i, err));
    if (w.out && w.s->reduce != REDUCE_NONE)
        ort_tensor_set_f64(w.out, 0, w.s->reduce == REDUCE_SUM ? w.sum : w.sum / w.weight);
    return ORT_OK;
}

static const ort_op_impl loss_impl = {
    .state = sizeof(loss), .bind = loss_bind,
    .rule = "[N,C,D..] [N,D..] [_] -> [N,D..] [N,C,D..]",
    .infer = loss_infer, .prepare = loss_prepare, .run = loss_run,
};

/* ---- rows */

const ort_op ort_ops_loss[] = {
    {ONNX, "NegativeLogLikelihoodLoss", 12, "input:T,target:Tind,weight?:T -> loss:T",
     "T:F Tind:i32,i64",
     "ignore_index:i reduction:s=mean", 0, &loss_impl, .history = "13 22:T+bf16"},
    {ONNX, "SoftmaxCrossEntropyLoss", 12,
     "scores:T,labels:Tind,weights?:T -> output:T,log_prob?:T",
     "T:F Tind:i32,i64",
     "ignore_index:i reduction:s=mean", 0, &loss_impl, .history = "13:T+bf16",
     .variant = CROSS_ENTROPY},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
