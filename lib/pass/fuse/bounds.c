/* bounds.c - Relu and Clip in a row are one.
 *
 *     Clip [a, b], Clip [c, d]     Clip [clamp a, clamp b] to [c, d]
 *
 * Relu is [0, infinity]. Exact: clamps are monotone, and a bound is taken from one of both.
 */
#include <math.h>

#include "base/error.h"
#include "op/edit.h"
#include "pass/pass.h"
#include "tensor/scalar.h"

typedef struct bounds {
    double low, high;
} bounds;

static bool is_relu(const ort_node *node)
{
    return ort_edit_is(node, ONNX, "Relu");
}

/* A bound of Clip: an attribute before opset 11, an input since. */
static bool bound_of(const ort_graph *graph, const ort_node *node, int slot, const char *name,
                     double absent, double *bound)
{
    *bound = absent;
    if (node->opset < 11) {
        if (ort_node_has(node, name))
            *bound = (double)ort_node_float(node, name, 0);
        return true;
    }
    if (slot >= node->input_count || node->inputs[slot] == ORT_ID_NONE)
        return true;
    return ort_tensor_one_f64(ort_edit_constant(graph, node, slot), bound);
}

static bool bounds_of(const ort_graph *graph, const ort_node *node, bounds *b)
{
    *b = (bounds){0, INFINITY};
    if (is_relu(node))
        return true;
    return ort_edit_is(node, ONNX, "Clip") &&
           bound_of(graph, node, 1, "min", -INFINITY, &b->low) &&
           bound_of(graph, node, 2, "max", INFINITY, &b->high) && b->low <= b->high;
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
        const ort_tensor *t = is_relu(nodes[i]) ? NULL
                                                : ort_edit_constant(c->graph, nodes[i], slot);
        double own;
        if (ort_tensor_one_f64(t, &own) && own == bound) {
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
    ort_id inputs[3] = {first->inputs[0], ORT_ID_NONE, ORT_ID_NONE}, output = second->outputs[0];
    ort_attr set[2] = {{.name = "min", .type = ORT_ATTR_FLOAT, .f = (float)b->low},
                       {.name = "max", .type = ORT_ATTR_FLOAT, .f = (float)b->high}};
    ort_node_spec spec = {.domain = ONNX, .op_type = relu ? "Relu" : "Clip",
                          .name = second->name, .inputs = inputs, .input_count = 1,
                          .outputs = &output, .output_count = 1,
                          .origin = ort_edit_origin(c->graph, first, second)};
    if (!relu && ort_model_opset(c->graph->model, ONNX) < 11) {
        spec.set = isinf(b->low) ? set + 1 : set;
        spec.set_count = !isinf(b->low) + !isinf(b->high);
    } else if (!relu) {
        ORT_TRY(bound_input(c, nodes, 1, b->low, dtype, &inputs[1], err));
        ORT_TRY(bound_input(c, nodes, 2, b->high, dtype, &inputs[2], err));
        spec.input_count = inputs[2] != ORT_ID_NONE ? 3 : inputs[1] != ORT_ID_NONE ? 2 : 1;
    }
    ort_graph_remove_node(c->graph, second);
    ort_graph_remove_node(c->graph, first);
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

static ort_status visit(ort_pass_context *c, ort_node *second, int *changes, ort_error *err)
{
    ort_node *first = ort_edit_producer(c->graph, second->inputs[0]);
    bounds a, b;
    if (!is_relu(first) && !ort_edit_is(first, ONNX, "Clip"))
        return ORT_OK;
    ort_dtype dtype = c->graph->values.data[second->inputs[0]]->fact.type.dtype;
    const char *why = NULL;
    if (ort_edit_only_reader(c->graph, first->outputs[0]) != second)
        why = "what it bounds has another reader";
    else if (!bounds_of(c->graph, first, &a) || !bounds_of(c->graph, second, &b))
        why = "a bound isn't a constant, or the bounds cross";
    else if (dtype != ORT_DTYPE_FLOAT && dtype != ORT_DTYPE_DOUBLE &&
             dtype != ORT_DTYPE_FLOAT16 && dtype != ORT_DTYPE_BFLOAT16)
        why = "it bounds integers";
    if (why) {
        ort_pass_note(c, second, "%s", why);
        return ORT_OK;
    }
    bounds both = {clamp(a.low, &b), clamp(a.high, &b)};
    ++*changes;
    return join(c, first, second, &both, dtype, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
        if ((is_relu(node) || ort_edit_is(node, ONNX, "Clip")) && node->inputs[0] != ORT_ID_NONE)
            ORT_TRY(visit(c, node, changes, err));
    return ORT_OK;
}

const ort_pass ort_pass_bounds = {
    .name = "bounds",
    .level = 1,
    .exact = true,
    .doc = "Relu and Clip in a row become one",
    .apply = apply,
};
