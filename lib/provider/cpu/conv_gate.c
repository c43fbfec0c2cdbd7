/* conv_gate.c - Conv and a gate of its own result (QuickGelu, HardSwish, x * HardSigmoid(x))
 * become one FusedConv. Only this library's FusedConv knows these activations, so this is a
 * lowering of the cpu provider: it is not in saved models.
 */
#include <math.h>

#include "base/error.h"
#include "graph/uses.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"

typedef struct gate {
    const char *activation;
    float alpha;
    int param_count;
    ort_node *nodes[2]; /* the last gives the result; nodes[1] may be NULL */
} gate;

/* x * HardSigmoid(x) with the slopes of HardSwish: two readers of x. */
static bool match_pair(const ort_pass_context *c, const ort_node *conv, gate *found)
{
    const ort_graph *graph = c->graph;
    ort_id x = conv->outputs[0];
    const ort_graph_value *value = graph->values.data[x];
    ort_readers readers = ort_readers_of(graph, x);
    ort_node *node, *sigmoid = NULL, *mul;
    while ((node = ort_readers_next(&readers)))
        if (ort_edit_is(node, ONNX, "HardSigmoid") && node->inputs[0] == x)
            sigmoid = node;
    mul = sigmoid ? ort_edit_only_reader(graph, sigmoid->outputs[0]) : NULL;
    if (!ort_edit_is(mul, ONNX, "Mul") || (mul->inputs[0] != x && mul->inputs[1] != x))
        return false;
    const char *why = NULL;
    if (fabsf(ort_node_attr_float(sigmoid, "alpha") - 1.0f / 6.0f) > 1e-6f ||
        ort_node_attr_float(sigmoid, "beta") != 0.5f)
        why = "the HardSigmoid of its gate hasn't the slope of HardSwish";
    else if (value->use_count != 2 || value->is_output)
        why = "its result is read elsewhere than by its gate";
    if (why)
        ort_pass_note(c, conv, "%s", why);
    *found = (gate){"HardSwish", 0, 0, {sigmoid, mul}};
    return !why;
}

/* A gate reads the result, and others do. */
static void note_readers(const ort_pass_context *c, const ort_node *conv)
{
    ort_readers readers = ort_readers_of(c->graph, conv->outputs[0]);
    const ort_node *node;
    while (c->near_misses && (node = ort_readers_next(&readers)))
        if (ort_edit_is_any(node, "ms.QuickGelu|HardSwish")) {
            ort_pass_note(c, conv, "its result is read elsewhere than by its gate");
            return;
        }
}

static bool match(const ort_pass_context *c, const ort_node *conv, gate *found)
{
    const ort_graph *graph = c->graph;
    if (!ort_edit_is(conv, ONNX, "Conv") ||
        ort_fact_type(graph, conv->outputs[0])->dtype != ORT_DTYPE_FLOAT)
        return false;
    ort_node *next = ort_edit_only_reader(graph, conv->outputs[0]);
    if (ort_edit_is(next, MS, "QuickGelu")) {
        *found = (gate){"QuickGelu", ort_node_attr_float(next, "alpha"), 1, {next, NULL}};
        return true;
    }
    if (ort_edit_is(next, ONNX, "HardSwish")) {
        *found = (gate){"HardSwish", 0, 0, {next, NULL}};
        return true;
    }
    if (next)
        return false; /* a gate of two nodes is two readers */
    note_readers(c, conv);
    return match_pair(c, conv, found);
}

static ort_status fuse(ort_graph *graph, ort_node *conv, const gate *found, ort_error *err)
{
    ort_node *first = found->nodes[0], *last = found->nodes[1] ? found->nodes[1] : first;
    ort_attr set[2] = {ort_attr_string("activation", found->activation),
                       {.name = "activation_params", .type = ORT_ATTR_FLOATS,
                        .floats = &found->alpha, .count = (size_t)found->param_count}};
    ort_node_spec spec = {.domain = MS, .op_type = "FusedConv", .inputs = conv->inputs,
                          .input_count = conv->input_count, .attrs = conv->attrs,
                          .attr_count = conv->attr_count, .set = set,
                          .set_count = found->param_count ? 2 : 1};
    if (first != last)
        ort_graph_remove_node(graph, first);
    return ort_edit_replace(graph, conv, last, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        gate found;
        if (!match(c, node, &found))
            continue;
        ORT_TRY(fuse(c->graph, node, &found, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_conv_gate = {.name = "conv_gate",
                                     .level = 3,
                                     .doc = "Conv and a gate of its result become one (cpu only)",
                                     .apply = apply};
