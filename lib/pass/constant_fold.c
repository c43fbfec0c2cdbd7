/* constant_fold.c - nodes whose results are known become initializers.
 *
 * What inference already knows (shapes, small values) is taken as it is; the rest is computed on
 * the scalar tier. A result may be as large as the constants and the message of the node that go
 * with it; what is left of them joins the growth budget, so that folding never makes a file grow.
 * DequantizeLinear of constant weights stays: its input is the small form, and integer operators
 * look for the pair.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "op/eval.h"
#include "pass/pass.h"

/* What an initializer takes in a file beside its data and the name, which the node has as well. */
enum { INITIALIZER_BYTES = 14 };

/* The constant value of an input, or NULL. */
static const ort_tensor *constant(const ort_graph *graph, ort_id id)
{
    const ort_graph_value *value = graph->values.data[id];
    return value->is_input ? NULL : value->fact.value;
}

static bool captures_known(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->implicit_count; i++)
        if (!constant(graph, node->implicit[i]))
            return false;
    return true;
}

/* Does this constant leave the file with the node? One that is only known, its node still there,
 * isn't in the file. */
static bool goes_with(const ort_graph *graph, const ort_node *node, ort_id id)
{
    const ort_graph_value *value = graph->values.data[id];
    int uses = 0;
    for (int i = 0; i < node->input_count; i++)
        uses += node->inputs[i] == id;
    return !value->is_output && !value->is_input && value->producer == ORT_ID_NONE &&
           value->use_count == uses;
}

/* About what the node takes in a file: tags and lengths, names, attributes. */
static size_t message_bytes(const ort_graph *graph, const ort_node *node)
{
    size_t bytes = 6 + strlen(node->op_type) + strlen(node->name);
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ORT_ID_NONE)
            bytes += 2 + strlen(graph->values.data[node->inputs[i]]->name);
    for (int i = 0; i < node->attr_count; i++) {
        const ort_attr *attr = &node->attrs[i];
        bytes += 8 + strlen(attr->name);
        bytes += attr->type == ORT_ATTR_TENSOR && attr->t ? ort_tensor_bytes(attr->t) : 0;
    }
    return bytes;
}

/* What goes with the node: itself, and the constants that it alone reads. */
static size_t freed_bytes(const ort_graph *graph, const ort_node *node)
{
    size_t bytes = message_bytes(graph, node);
    for (int i = 0; i < node->input_count; i++) {
        const ort_tensor *value = node->inputs[i] == ORT_ID_NONE
                                      ? NULL
                                      : constant(graph, node->inputs[i]);
        if (value && goes_with(graph, node, node->inputs[i]))
            bytes += ort_tensor_bytes(value);
    }
    return bytes;
}

/* Pay for a result of `bytes`, or note why not. */
static bool afford(const ort_pass_context *c, const ort_node *node, size_t bytes, size_t freed)
{
    if (bytes <= freed || ort_edit_is(node, ONNX, "Constant")) {
        *c->growth_bytes += bytes < freed ? freed - bytes : 0;
        return true;
    }
    if (bytes - freed > *c->growth_bytes) {
        ort_pass_note(c, node, "its result of %zu bytes exceeds the growth budget", bytes);
        return false;
    }
    *c->growth_bytes -= bytes - freed;
    return true;
}

/* *in_bytes: what goes with it. */
static bool foldable(const ort_pass_context *c, const ort_node *node, size_t *in_bytes)
{
    if (!node->op || !node->op->impl || !node->op->impl->run || !node->output_count ||
        (node->op->traits & ORT_TRAIT_RANDOM) || ort_edit_is(node, ONNX, "DequantizeLinear"))
        return false;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == ORT_ID_NONE)
            continue;
        const ort_tensor *value = constant(c->graph, node->inputs[i]);
        if (!value || (!value->data && ort_tensor_count(value)))
            return false;
    }
    *in_bytes = freed_bytes(c->graph, node);
    return captures_known(c->graph, node);
}

/* Refuse before computing when inference knows that the result is large. */
static bool too_large(const ort_pass_context *c, const ort_node *node, size_t in_bytes)
{
    size_t bytes = 0;
    for (int i = 0; i < node->output_count; i++) {
        ort_shape shape;
        if (node->outputs[i] == ORT_ID_NONE)
            continue;
        const ort_type *type = &c->graph->values.data[node->outputs[i]]->fact.type;
        if (!ort_type_concrete(type, &shape))
            continue;
        if (ort_shape_check(&shape, type->dtype, NULL))
            return true;
        ort_tensor tensor = {.dtype = type->dtype, .shape = shape};
        bytes += ort_tensor_bytes(&tensor);
    }
    return bytes > in_bytes + *c->growth_bytes;
}

static ort_status evaluate(ort_pass_context *c, const ort_node *node, ort_value **values,
                           ort_error *err)
{
    ort_status status = ORT_OK;
    const ort_fact **facts = calloc((size_t)node->input_count + 1, sizeof *facts);
    if (!facts)
        return ort_error_memory(err, sizeof *facts);
    for (int i = 0; i < node->input_count && !status; i++) {
        if (node->inputs[i] == ORT_ID_NONE)
            continue;
        facts[i] = &c->graph->values.data[node->inputs[i]]->fact;
        status = ort_value_new_view(facts[i]->value, &values[i], err);
    }
    if (!status)
        status = ort_node_eval(node, facts, c->k, NULL, values, node->input_count,
                               values + node->input_count, node->output_count, err);
    free(facts);
    return status;
}

static ort_status keep_results(ort_pass_context *c, ort_node *node, ort_value *const *results,
                               size_t in_bytes, int *changes, ort_error *err)
{
    size_t bytes = 0;
    int count = node->output_count;
    for (int i = 0; i < count; i++) {
        if (node->outputs[i] == ORT_ID_NONE)
            continue;
        if (!results[i] || results[i]->kind != ORT_KIND_TENSOR)
            return ORT_OK; /* sequences can't be initializers */
        bytes += INITIALIZER_BYTES + ort_tensor_bytes(&results[i]->tensor);
    }
    if (!afford(c, node, bytes, in_bytes))
        return ORT_OK;
    for (int i = 0; i < count; i++)
        if (node->outputs[i] != ORT_ID_NONE)
            ORT_TRY(ort_edit_make_constant(c->graph, node->outputs[i], &results[i]->tensor, err));
    ++*changes;
    return ORT_OK;
}

static ort_status fold(ort_pass_context *c, ort_node *node, size_t in_bytes, int *changes,
                       ort_error *err)
{
    ort_error problem = {0};
    int total = node->input_count + node->output_count;
    ort_value **values = calloc((size_t)total + 1, sizeof *values);
    if (!values)
        return ort_error_memory(err, sizeof *values * (size_t)total);
    ort_status status = evaluate(c, node, values, &problem);
    if (status) /* the run will say the same, if it gets there */
        ort_pass_note(c, node, "%s", problem.message);
    status = status ? ORT_OK
                    : keep_results(c, node, values + node->input_count, in_bytes, changes, err);
    for (int i = 0; i < total; i++)
        ort_value_free(values[i]);
    free(values);
    return status;
}

/* All results known to inference already? */
static bool known(const ort_pass_context *c, const ort_node *node)
{
    bool any = false;
    if (ort_edit_is(node, ONNX, "DequantizeLinear"))
        return false;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == ORT_ID_NONE)
            continue;
        any = true;
        const ort_tensor *value = c->graph->values.data[node->outputs[i]]->fact.value;
        if (!value || (!value->data && ort_tensor_count(value)))
            return false;
    }
    return any;
}

static size_t known_bytes(const ort_graph *graph, const ort_node *node)
{
    size_t bytes = 0;
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE)
            bytes += INITIALIZER_BYTES +
                     ort_tensor_bytes(graph->values.data[node->outputs[i]]->fact.value);
    return bytes;
}

static ort_status keep_known(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE) {
            ort_id id = node->outputs[i];
            ORT_TRY(ort_edit_make_constant(c->graph, id, c->graph->values.data[id]->fact.value,
                                           err));
        }
    ++*changes;
    return ORT_OK;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    size_t in_bytes;
    ORT_EACH_NODE(c->graph, node)
    {
        if (known(c, node)) {
            if (afford(c, node, known_bytes(c->graph, node), freed_bytes(c->graph, node)))
                ORT_TRY(keep_known(c, node, changes, err));
            continue;
        }
        if (!foldable(c, node, &in_bytes))
            continue;
        if (too_large(c, node, in_bytes)) {
            ort_pass_note(c, node, "its result exceeds the growth budget");
            continue;
        }
        ORT_TRY(fold(c, node, in_bytes, changes, err));
    }
    return ORT_OK;
}

const ort_pass ort_pass_constant_fold = {
    .name = "constant_fold",
    .level = 1,
    .doc = "nodes whose results are known become initializers",
    .apply = apply,
};
