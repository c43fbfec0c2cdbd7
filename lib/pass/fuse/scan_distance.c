/* scan_distance.c - a Scan that takes distances row by row is one CDist.
 *
 *     Scan(state S[n, f], rows X[m, f]):  S stays;  y[i] = ReduceSumSquare(S - X[i], axis 1)
 *
 * is CDist(X, S), squared and Euclidean: what exporters of nearest neighbours and of Gaussian
 * processes write. In a session only: onnxruntime's CDist forms products, which lose digits where
 * rows are near each other.
 */
#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"

/* What a value is behind Identity nodes. */
static ort_id source_of(const ort_graph *graph, ort_id id)
{
    const ort_node *node;
    while ((node = ort_edit_producer(graph, id)) && ort_edit_is(node, ONNX, "Identity"))
        id = node->inputs[0];
    return id;
}

static bool reduces_axis_1(const ort_graph *body, const ort_node *node)
{
    int64_t axes[ORT_MAX_RANK];
    return ort_fact_axes(body, node, 1, 2, axes) == 1 && axes[0] == 1 &&
           ort_node_attr_int(node, "keepdims") == 0;
}

/* Does the body keep its state and give squared distances to it? */
static bool is_distance(const ort_graph *body)
{
    if (body->inputs.count != 2 || body->outputs.count != 2 ||
        source_of(body, body->outputs.data[0]) != body->inputs.data[0])
        return false;
    ort_node *sum = ort_edit_producer(body, source_of(body, body->outputs.data[1]));
    if (!ort_edit_is(sum, ONNX, "ReduceSumSquare") || !reduces_axis_1(body, sum))
        return false;
    ort_node *sub = ort_edit_producer(body, source_of(body, sum->inputs[0]));
    if (!ort_edit_is(sub, ONNX, "Sub"))
        return false;
    ort_id a = source_of(body, sub->inputs[0]), b = source_of(body, sub->inputs[1]);
    ort_id state = body->inputs.data[0], row = body->inputs.data[1];
    return (a == state && b == row) || (a == row && b == state);
}

/* Both are matrices of one float type with rows of one length. */
static bool are_rows(const ort_type *a, const ort_type *b)
{
    return ort_type_rank(a) == 2 && ort_type_rank(b) == 2 && a->dtype == b->dtype &&
           (a->dtype == ORT_DTYPE_FLOAT || a->dtype == ORT_DTYPE_DOUBLE) &&
           ort_dim_equal(a->dim[1], b->dim[1]);
}

static ort_status replace(ort_pass_context *c, ort_node *scan, ort_error *err)
{
    const ort_id inputs[2] = {scan->inputs[1], scan->inputs[0]};
    ort_attr metric = ort_attr_string("metric", "sqeuclidean");
    ort_node_spec spec = {.domain = MS, .op_type = "CDist", .inputs = inputs, .input_count = 2,
                          .outputs = &scan->outputs[1], .output_count = 1, .set = &metric,
                          .set_count = 1};
    return ort_edit_replace(c->graph, scan, NULL, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_node *node;
    if (c->portable)
        return ORT_OK;
    ORT_EACH_NODE(graph, node)
    {
        if (!ort_edit_is(node, ONNX, "Scan") || node->opset < 9 || node->input_count != 2 ||
            node->output_count != 2 || node->body_count != 1 || node->implicit_count > 0 ||
            ort_node_attr_int(node, "num_scan_inputs") != 1 || !is_distance(node->bodies[0]))
            continue;
        ort_id state = node->outputs[0];
        const char *why = NULL;
        if (!ort_fact_ints_are(node, "scan_input_axes", 0) ||
            !ort_fact_ints_are(node, "scan_output_axes", 0) ||
            !ort_fact_ints_are(node, "scan_input_directions", 0) ||
            !ort_fact_ints_are(node, "scan_output_directions", 0))
            why = "it goes along another axis, or backwards";
        else if (node->outputs[1] == ORT_ID_NONE ||
                 (state != ORT_ID_NONE && (graph->values.data[state]->is_output ||
                                           graph->values.data[state]->use_count > 0)))
            why = "its state is read";
        else if (!are_rows(ort_fact_type(graph, node->inputs[0]),
                           ort_fact_type(graph, node->inputs[1])))
            why = "its rows may be of different lengths";
        if (why) {
            ort_pass_note(c, node, "%s", why);
            continue;
        }
        if (!ort_pass_opset(c, node, MS, "CDist", 1))
            continue;
        ORT_TRY(replace(c, node, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_scan_distance = {
    .name = "scan_distance",
    .level = 2,
    .doc = "Scan of squared distances to rows becomes CDist",
    .apply = apply,
};
