/* constant_fold.c - nodes whose results are known become initializers.
 *
 * What inference already knows (shapes, small values) is taken as it is; the rest is computed on
 * the scalar tier. A result may be as large as the constants and the message of the node that go
 * with it; what is left of them joins the growth budget, so that folding never makes a file grow.
 * DequantizeLinear of constant weights stays: its input is the small form, and integer operators
 * look for the pair. So do, in a session, Casts of weights that are packed in 16 bits
 * (op/half_weight.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "op/eval.h"
#include "op/half_weight.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"

/* What an initializer takes in a file beside its data and the name, which the node has as well. */
enum { INITIALIZER_BYTES = 14 };

/* The constant value of an input, or NULL; an optional one may be absent, the first as well. */
static const ort_tensor *constant(const ort_graph *graph, ort_id id)
{
    const ort_graph_value *value = ort_graph_value_at(graph, id);
    return value && !value->is_input ? value->fact.value : NULL;
}

static bool captures_known(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->implicit_count; i++)
        if (!constant(graph, node->implicit[i]))
            return false;
    return true;
}

/* Is this constant in the file, and of this graph? One that is only known, its node still there,
 * isn't in the file; one that a body captures stays in the graph around it. */
static bool is_own(const ort_graph *graph, ort_id id)
{
    const ort_graph_value *value = graph->values.data[id];
    return graph->producers.data[id] == ORT_ID_NONE && value->outer == ORT_ID_NONE &&
           !value->is_input;
}

/* Does this constant leave the file with the node? */
static bool goes_with(const ort_graph *graph, const ort_node *node, ort_id id)
{
    const ort_graph_value *value = graph->values.data[id];
    int uses = 0;
    for (int i = 0; i < node->input_count; i++)
        uses += node->inputs[i] == id;
    return !value->is_output && is_own(graph, id) && value->use_count == uses;
}

/* What goes with the node: itself, and the constants that it alone reads. */
static size_t freed_bytes(const ort_graph *graph, const ort_node *node)
{
    size_t bytes = ort_edit_message_bytes(graph, node);
    for (int i = 0; i < node->input_count; i++) {
        const ort_tensor *value = constant(graph, node->inputs[i]);
        if (value && goes_with(graph, node, node->inputs[i]))
            bytes += ort_tensor_bytes(value);
    }
    return bytes;
}

/* Pay for a result of `bytes`. */
static bool afford(const ort_pass_context *c, const ort_node *node, size_t bytes, size_t freed)
{
    if (bytes <= freed || ort_edit_is(node, ONNX, "Constant")) {
        *c->growth_bytes += bytes < freed ? freed - bytes : 0;
        return true;
    }
    if (bytes - freed > *c->growth_bytes)
        return false;
    *c->growth_bytes -= bytes - freed;
    return true;
}

/* *in_bytes: what goes with it. */
static bool foldable(const ort_pass_context *c, const ort_node *node, size_t *in_bytes)
{
    if (!node->op || !node->op->impl || !node->op->impl->run || !node->output_count ||
        (node->op->traits & ORT_TRAIT_RANDOM) || ort_edit_is(node, ONNX, "DequantizeLinear") ||
        (!c->portable && ort_half_is_kept_cast(c->graph, node)))
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
        const ort_type *type = ort_fact_type(c->graph, node->outputs[i]);
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
    size_t count = (size_t)node->input_count + 1;
    const ort_fact **facts = calloc(count, sizeof *facts);
    ort_fact *taken = malloc(count * sizeof *taken);
    if (!facts || !taken)
        status = ort_error_memory(err, count * sizeof *taken);
    for (int i = 0; i < node->input_count && status == ORT_OK; i++) {
        if (node->inputs[i] == ORT_ID_NONE)
            continue;
        facts[i] = &taken[i];
        taken[i] = c->graph->values.data[node->inputs[i]]->fact;
        status = ort_value_for_kernel(taken[i].value, &values[i], err);
        if (status == ORT_OK)
            taken[i].value = &values[i]->tensor;
    }
    if (status == ORT_OK)
        status = ort_node_eval(node, facts, c->k, NULL, values, node->input_count,
                               values + node->input_count, node->output_count, err);
    free(facts);
    free(taken);
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
    for (int i = 0; i < count; i++) {
        ort_id id = node->outputs[i];
        if (id == ORT_ID_NONE)
            continue;
        ORT_TRY(ort_edit_keep(c->graph, results[i], &c->graph->values.data[id]->fact.value, err));
        ORT_TRY(ort_edit_make_constant(c->graph, id, c->graph->values.data[id]->fact.value, err));
    }
    ++*changes;
    return ORT_OK;
}

/* Does the node only say another shape, which is known, of a constant? */
static bool reshapes(const ort_graph *graph, const ort_node *node, ort_shape *shape)
{
    const ort_tensor *t = node->input_count ? constant(graph, node->inputs[0]) : NULL;
    return ort_edit_is_any(node, "Reshape|Flatten|Squeeze|Unsqueeze|Identity") &&
           node->output_count == 1 && t && t->data && !t->stride &&
           t->dtype != ORT_DTYPE_STRING &&
           ort_type_concrete(ort_fact_type(graph, node->outputs[0]), shape) &&
           ort_shape_count(shape) == ort_tensor_count(t);
}

/* The same elements, where they lie: weights live as long as the model does. */
static ort_status keep_reshaped(ort_pass_context *c, ort_node *node, const ort_shape *shape,
                                size_t in_bytes, int *changes, ort_error *err)
{
    ort_id id = node->outputs[0];
    const ort_tensor *t = constant(c->graph, node->inputs[0]);
    ort_tensor *made = ort_arena_alloc(&c->graph->model->arena, sizeof *made);
    if (!made)
        return ort_error_memory(err, sizeof *made);
    *made = *t;
    made->shape = *shape;
    if (!afford(c, node, INITIALIZER_BYTES + ort_tensor_bytes(made), in_bytes))
        return ORT_OK;
    c->graph->values.data[id]->fact.value = made;
    ++*changes;
    return ort_edit_make_constant(c->graph, id, made, err);
}

static ort_status fold(ort_pass_context *c, ort_node *node, size_t in_bytes, int *changes,
                       ort_error *err)
{
    ort_shape shape;
    if (reshapes(c->graph, node, &shape))
        return keep_reshaped(c, node, &shape, in_bytes, changes, err);
    ort_error problem = {0};
    int total = node->input_count + node->output_count;
    ort_value **values = calloc((size_t)total + 1, sizeof *values);
    if (!values)
        return ort_error_memory(err, sizeof *values * (size_t)total);
    ort_status status = evaluate(c, node, values, &problem);
    if (status == ORT_OK) {
        status = keep_results(c, node, values + node->input_count, in_bytes, changes, err);
    } else { /* the run will say the same, if it gets there */
        ort_pass_note(c, node, "%s", problem.message);
        status = ORT_OK;
    }
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

/* ---- several nodes at once: what each of them alone would add, all of them together take away
 *
 *     Concat(Slice(w), Slice(w), Slice(w))      a weight with its gates in another order
 */

enum { CONE_MAX = 32 };

typedef struct cone { /* nodes that constants alone feed, the last one read from outside */
    ort_node *nodes[CONE_MAX]; /* producers first */
    int count;
} cone;

static bool computes(const ort_node *node)
{
    return node && !node->removed && node->op && node->op->impl && node->op->impl->run &&
           node->output_count && !(node->op->traits & ORT_TRAIT_RANDOM) && !node->body_count &&
           !ort_edit_is(node, ONNX, "DequantizeLinear");
}

static bool has_data(const ort_tensor *value)
{
    return value && (value->data || !ort_tensor_count(value));
}

/* The node and all that feeds it; false when something isn't constant. */
static bool grow(const ort_graph *graph, ort_node *node, int depth, cone *k)
{
    if (depth == CONE_MAX) /* no room for all of them, and a deep graph is not walked to its end */
        return false;
    for (int i = 0; i < k->count; i++)
        if (k->nodes[i] == node)
            return true;
    if (!computes(node))
        return false;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == ORT_ID_NONE)
            continue;
        ort_node *producer = ort_edit_producer(graph, node->inputs[i]);
        if (!producer && !has_data(constant(graph, node->inputs[i])))
            return false;
        if (producer && !grow(graph, producer, depth + 1, k))
            return false;
    }
    if (k->count == CONE_MAX)
        return false;
    k->nodes[k->count++] = node;
    return true;
}

/* Does nobody but the cone read this value? */
static bool is_inner(const ort_graph *graph, const cone *k, ort_id id)
{
    int uses = 0;
    for (int n = 0; n < k->count; n++)
        for (int i = 0; i < k->nodes[n]->input_count; i++)
            uses += k->nodes[n]->inputs[i] == id;
    return !graph->values.data[id]->is_input && graph->values.data[id]->use_count == uses;
}

/* What goes with the cone; 0 when a result inside has a reader outside. */
static size_t cone_bytes(const ort_graph *graph, const cone *k)
{
    size_t bytes = 0;
    for (int n = 0; n < k->count; n++) {
        const ort_node *node = k->nodes[n];
        bytes += ort_edit_message_bytes(graph, node);
        for (int i = 0; i < node->output_count && n < k->count - 1; i++)
            if (node->outputs[i] != ORT_ID_NONE && !is_inner(graph, k, node->outputs[i]))
                return 0;
        for (int i = 0; i < node->input_count; i++) {
            ort_id id = node->inputs[i];
            bool again = id == ORT_ID_NONE;
            for (int m = 0; m <= n && !again; m++)
                for (int j = 0; j < (m < n ? k->nodes[m]->input_count : i); j++)
                    again = again || k->nodes[m]->inputs[j] == id;
            if (!again && is_own(graph, id) && is_inner(graph, k, id))
                bytes += ort_tensor_bytes(constant(graph, id));
        }
    }
    return bytes;
}

/* A result inside becomes known; its node stays until nobody reads it. */
static ort_status know(ort_pass_context *c, ort_node *node, ort_error *err)
{
    int total = node->input_count + node->output_count;
    ort_value **values = calloc((size_t)total + 1, sizeof *values);
    ort_status status = values ? evaluate(c, node, values, err)
                               : ort_error_memory(err, sizeof *values * (size_t)total);
    for (int i = 0; i < node->output_count && status == ORT_OK; i++) {
        ort_value *made = values[node->input_count + i];
        if (node->outputs[i] == ORT_ID_NONE)
            continue;
        if (!made || made->kind != ORT_KIND_TENSOR || made->tensor.dtype == ORT_DTYPE_STRING) {
            status = ort_error_set(err, ORT_ERROR_UNSUPPORTED, "a result is no tensor of numbers");
            break;
        }
        const ort_tensor *kept = NULL;
        status = ort_edit_keep(c->graph, made, &kept, err);
        if (status == ORT_OK)
            c->graph->values.data[node->outputs[i]]->fact.value = kept;
    }
    for (int i = 0; i < total && values; i++)
        ort_value_free(values[i]);
    free(values);
    return status;
}

static ort_status fold_cone(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    cone k = {.count = 0};
    if (!c->portable || !computes(node) || !grow(c->graph, node, 0, &k) || k.count < 2)
        return ORT_OK;
    size_t bytes = cone_bytes(c->graph, &k);
    if (!bytes || too_large(c, node, bytes))
        return ORT_OK;
    for (int i = 0; i < k.count - 1; i++) {
        ort_error problem = {0};
        if (know(c, k.nodes[i], &problem)) {
            ort_pass_note(c, node, "%s", problem.message);
            return ORT_OK;
        }
    }
    return fold(c, node, bytes, changes, err);
}

static ort_status visit(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    size_t in_bytes;
    int before = *changes;
    bool alone = known(c, node);
    if (alone && afford(c, node, known_bytes(c->graph, node), freed_bytes(c->graph, node)))
        return keep_known(c, node, changes, err);
    if (!alone && foldable(c, node, &in_bytes)) {
        alone = true;
        if (!too_large(c, node, in_bytes))
            ORT_TRY(fold(c, node, in_bytes, changes, err));
    }
    if (*changes == before)
        ORT_TRY(fold_cone(c, node, changes, err));
    if (alone && *changes == before)
        ort_pass_note(c, node, "its result exceeds the growth budget");
    return ORT_OK;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
        ORT_TRY(visit(c, node, changes, err));
    return ORT_OK;
}

const ort_pass ort_pass_constant_fold = {
    .name = "constant_fold",
    .level = 1,
    .doc = "nodes whose results are known become initializers",
    .apply = apply,
};
