/* softmax_form.c - Softmax and LogSoftmax spelled in elementwise operators and sums.
 *
 *     e^(x - max x) / sum e^(x - max x)       Softmax, the maximum left out or not
 *     log(Softmax(x)), x - log(sum e^x)       LogSoftmax, which loses no small probability
 *
 * Over one axis, kept as 1. Both with the meaning of opset 13; before it only the last axis.
 */
#include <string.h>

#include "base/error.h"
#include "pass/pattern.h"
#include "tensor/scalar.h"

enum { LOGS = 1, NESTED = 2, SHIFTED = 4 };

#define SHIFT "d:(Sub x t:(ReduceMax x ...))"
#define QUOTIENT(d) "(Div e:(Exp " d ") s:(ReduceSum e ...))"

static const ort_pattern_form forms[] = {
    {QUOTIENT(SHIFT), SHIFTED},
    {QUOTIENT("x"), 0},
    {"(Log p:(Softmax x))", LOGS | NESTED},
    {"(Sub " SHIFT " (Log s:(ReduceSum (Exp d) ...)))", LOGS | SHIFTED},
    {"(Sub " SHIFT " s:(ReduceLogSumExp d ...))", LOGS | SHIFTED},
    {"(Sub x s:(ReduceLogSumExp x ...))", LOGS},
    {"(Sub x (Log s:(ReduceSum (Exp x) ...)))", LOGS},
};

/* The one axis that a reduction runs over and keeps, from the end; 0: it is none of these. */
static int64_t one_axis(const ort_graph *graph, const ort_node *reduce, int rank)
{
    size_t count = 0;
    const int64_t *axes = ort_node_ints(reduce, "axes", &count);
    const ort_tensor *given = ort_edit_constant(graph, reduce, 1);
    if (ort_node_int(reduce, "keepdims", 1) != 1)
        return 0;
    int64_t axis = 0;
    if (given ? !ort_tensor_one_i64(given, &axis) : count != 1)
        return 0;
    axis = given ? axis : axes[0];
    axis -= axis >= 0 ? rank : 0;
    return axis >= -rank && axis < 0 ? axis : 0;
}

static const char *check(const ort_pass_context *c, const ort_match *m, unsigned flags,
                         int64_t *axis)
{
    const ort_type *x = ort_match_type(m, c->graph, "x");
    if (x->kind != ORT_TYPE_TENSOR || x->rank < 1)
        return "the rank isn't known";
    if (flags & NESTED) {
        const ort_node *softmax = ort_match_node(m, "p");
        *axis = ort_node_int(softmax, "axis", softmax->opset < 13 ? 1 : -1);
        *axis -= *axis >= 0 ? x->rank : 0;
    } else {
        *axis = one_axis(c->graph, ort_match_node(m, "s"), x->rank);
        if (!*axis ||
            (flags & SHIFTED && one_axis(c->graph, ort_match_node(m, "t"), x->rank) != *axis))
            return "it isn't over one axis that is kept";
    }
    if (m->nodes[0]->opset < 13 && *axis != -1)
        return "before opset 13 the last axis alone is one";
    return NULL;
}

static ort_status fuse(ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                       int *changes, ort_error *err)
{
    int64_t axis;
    ort_id x = ort_match_value(m, "x");
    const char *why = check(c, m, f->flags, &axis);
    if (why) {
        ort_pass_note(c, m->nodes[0], "%s", why);
        return ORT_OK;
    }
    if (m->nodes[0]->opset < 13) /* axis 1 is the default there, and the end not -1 */
        axis += ort_match_type(m, c->graph, "x")->rank;
    ort_attr set = {.name = "axis", .type = ORT_ATTR_INT, .i = axis};
    ort_node_spec spec = {.domain = ONNX, .op_type = f->flags & LOGS ? "LogSoftmax" : "Softmax",
                          .inputs = &x, .input_count = 1, .set = &set, .set_count = 1};
    ++*changes;
    return ort_match_replace(c, m, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    return ort_pattern_forms(c, forms, sizeof forms / sizeof *forms, fuse, changes, err);
}

const ort_pass ort_pass_softmax_form = {
    .name = "softmax_form",
    .level = 2,
    .doc = "exp(x) / sum(exp(x)) becomes Softmax, its logarithm LogSoftmax",
    .apply = apply,
};
