/* softmax_form.c - Softmax and LogSoftmax spelled in elementwise operators and sums.
 *
 *     e^(x - max x) / sum e^(x - max x)       Softmax, the maximum left out or not
 *     log(Softmax(x)), x - log(sum e^x)       LogSoftmax, which loses no small probability
 *
 * Over one axis, kept as 1. Both with the meaning of opset 13; before it only the last axis.
 */
#include "pass/facts/facts.h"
#include "pass/rewrite.h"

/* The one axis that a reduction runs over and keeps, from the end; 0: it is none of these. */
static int one_axis(const ort_graph *graph, const ort_node *reduce, int rank)
{
    unsigned kept = ort_fact_kept_axes(graph, reduce, rank);
    return kept && !(kept & (kept - 1)) ? __builtin_ctz(kept) - rank : 0;
}

static const char *unless(const ort_pass_context *c, ort_match *m)
{
    const ort_type *x = ort_match_type(m, "x");
    int axis;
    if (ort_type_rank(x) < 1)
        return "the rank isn't known";
    if (ort_match_has(m, "p")) {
        axis = ort_fact_axis(ort_match_node(m, "p"), x->rank) - x->rank;
    } else {
        axis = one_axis(c->graph, ort_match_node(m, "s"), x->rank);
        if (!axis || (ort_match_has(m, "t") &&
                      one_axis(c->graph, ort_match_node(m, "t"), x->rank) != axis))
            return "it isn't over one axis that is kept";
    }
    if (m->nodes[0]->opset < 13) {
        if (axis != -1)
            return "before opset 13 the last axis alone is one";
        axis += x->rank; /* axis 1 is the default there, and the end not -1 */
    }
    ort_match_let(m, "axis", (double)axis);
    return NULL;
}

#define SHIFT "d:(x - t:(ReduceMax x ...))"

static const char *const forms[] = {
    "quotient(d): e:(Exp d) / s:(ReduceSum e ...)",
    NULL,
};

#define LAST "ReduceMax.axes=-1, ReduceSum.axes=-1, ReduceLogSumExp.axes=-1, opset=12"

static const ort_rewrite rewrites[] = {
    {"@quotient(" SHIFT ")", "(Softmax x axis=$axis)", unless,
     .example = LAST},
    {"@quotient(x)", "(Softmax x axis=$axis)", unless,
     .example = LAST},
    {"(Log p:(Softmax x))", "(LogSoftmax x axis=$axis)", unless},
    {SHIFT " - (Log s:(ReduceSum (Exp d) ...))", "(LogSoftmax x axis=$axis)", unless,
     .example = LAST},
    {SHIFT " - s:(ReduceLogSumExp d ...)", "(LogSoftmax x axis=$axis)", unless,
     .example = LAST},
    {"x - s:(ReduceLogSumExp x ...)", "(LogSoftmax x axis=$axis)", unless,
     .example = LAST},
    {"x - (Log s:(ReduceSum (Exp x) ...))", "(LogSoftmax x axis=$axis)", unless,
     .example = LAST},
    {0},
};

const ort_pass ort_pass_softmax_form = {
    .name = "softmax_form",
    .level = 2,
    .doc = "exp(x) / sum(exp(x)) becomes Softmax, its logarithm LogSoftmax",
    .rewrites = rewrites,
    .forms = forms,
};
