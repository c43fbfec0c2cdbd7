/* bounds.c - Relu and Clip in a row are one.
 *
 *     Clip [a, b], Clip [c, d]     Clip [clamp a, clamp b] to [c, d]
 *
 * Relu is [0, infinity]. Exact: clamps are monotone, and a bound is taken from one of both.
 */
#include <math.h>

#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/rewrite.h"

typedef struct bounds {
    double low, high;
} bounds;

static bool bounds_of(const ort_graph *graph, const ort_node *node, bounds *b)
{
    bool relu = ort_edit_is(node, ONNX, "Relu");
    *b = (bounds){relu ? 0 : -INFINITY, INFINITY};
    return relu || (ort_fact_bounds(graph, node, &b->low, &b->high) && b->low <= b->high);
}

static double clamp(double x, const bounds *b)
{
    return x < b->low ? b->low : x > b->high ? b->high : x;
}

/* The input of one of both nodes that holds this bound, or a new constant. */
static ort_status bound_input(ort_pass_context *c, ort_node *const *nodes, int slot, double bound,
                              ort_dtype dtype, ort_id *id, ort_error *err)
{
    double data[1];
    for (int i = 0; i < 2; i++) {
        double own;
        if (ort_edit_is(nodes[i], ONNX, "Clip") &&
            ort_fact_number(c->graph, nodes[i], slot, &own) && own == bound) {
            *id = nodes[i]->inputs[slot];
            return ORT_OK;
        }
    }
    *id = ORT_ID_NONE;
    if (isinf(bound))
        return ORT_OK;
    ort_tensor t = {.dtype = dtype, .data = data};
    ort_tensor_set_f64(&t, 0, bound);
    return ort_edit_add_constant(c->graph, slot == 1 ? "min" : "max", &t, id, err);
}

static ort_status join(ort_pass_context *c, ort_node *first, ort_node *second, const bounds *b,
                       ort_dtype dtype, ort_error *err)
{
    ort_node *const nodes[2] = {second, first};
    bool relu = b->low == 0 && isinf(b->high);
    ort_id inputs[3] = {first->inputs[0], ORT_ID_NONE, ORT_ID_NONE};
    ort_attr set[2] = {ort_attr_float("min", b->low), ort_attr_float("max", b->high)};
    ort_node_spec spec = {.op_type = relu ? "Relu" : "Clip", .name = second->name,
                          .inputs = inputs, .input_count = 3};
    if (!relu && ort_model_opset(c->graph->model, ONNX) < 11) {
        spec.set = isinf(b->low) ? set + 1 : set;
        spec.set_count = !isinf(b->low) + !isinf(b->high);
    } else if (!relu) {
        ORT_TRY(bound_input(c, nodes, 1, b->low, dtype, &inputs[1], err));
        ORT_TRY(bound_input(c, nodes, 2, b->high, dtype, &inputs[2], err));
    }
    return ort_edit_replace(c->graph, first, second, &spec, err);
}

static const char *unless(const ort_pass_context *c, ort_match *m)
{
    bounds b;
    for (int i = 0; i < 2; i++)
        if (!bounds_of(c->graph, m->nodes[i], &b))
            return "a bound isn't a constant, or the bounds cross";
    return ort_dtype_is_real(ort_match_type(m, "x")->dtype) ? NULL : "it bounds integers";
}

static ort_status write(ort_pass_context *c, ort_match *m, int *changes, ort_error *err)
{
    ort_node *second = m->nodes[0], *first = m->nodes[1];
    bounds a, b;
    bounds_of(c->graph, first, &a);
    bounds_of(c->graph, second, &b);
    bounds both = {clamp(a.low, &b), clamp(a.high, &b)};
    ++*changes;
    return join(c, first, second, &both, ort_match_type(m, "x")->dtype, err);
}

static const ort_rewrite rewrites[] = {
    {"(Relu|Clip (Relu|Clip x ...) ...)", .unless = unless, .write = write,
     .example = "Clip.min=-0.5 Clip.max=1.5 opset=10"},
    {0},
};

const ort_pass ort_pass_bounds = {
    .name = "bounds",
    .level = 1,
    .exact = true,
    .doc = "Relu and Clip in a row become one",
    .rewrites = rewrites,
};
