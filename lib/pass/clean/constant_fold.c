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

static bool captures_known(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->implicit_count; i++)
        if (!ort_fact_value(graph, node->implicit[i]))
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
        const ort_tensor *value = ort_fact_value(graph, node->inputs[i]);
        if (value && goes_with(graph, node, node->inputs[i]))
            bytes += ort_tensor_bytes(value);
    }
    return bytes;
}

static bool may_grow(const ort_pass_context *c, const ort_node *node)
{
    return c->growing && c->growing->grows(c->growing->arg, c->graph, node);
}

/* Pay for a result of `bytes`. */
static bool afford(const ort_pass_context *c, const ort_node *node, size_t bytes, size_t freed)
{
    if (bytes <= freed || ort_edit_is(node, ONNX, "Constant")) {
        *c->growth_bytes += bytes < freed ? freed - bytes : 0;
        return true;
    }
    if (bytes - freed > *c->growth_bytes)
        return may_grow(c, node);
    *c->growth_bytes -= bytes - freed;
    return true;
}

static bool computes(const ort_node *node)
{
    return node && !node->removed && node->op && node->op->impl && node->op->impl->run &&
           node->output_count && !(node->op->traits & ORT_TRAIT_RANDOM) &&
           !ort_edit_is(node, ONNX, "DequantizeLinear");
}

static bool has_data(const ort_tensor *value)
{
    return value && (value->data || !ort_tensor_count(value));
}

/* *in_bytes: what goes with it. */
static bool foldable(const ort_pass_context *c, const ort_node *node, size_t *in_bytes)
{
    if (!computes(node) || (!c->portable && ort_half_is_kept_cast(c->graph, node)))
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ORT_ID_NONE &&
            !has_data(ort_fact_value(c->graph, node->inputs[i])))
            return false;
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
    return bytes > in_bytes + *c->growth_bytes && !may_grow(c, node);
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

/* What the results take in the file; false when they can't be there, as sequences can't. */
static bool result_bytes(const ort_node *node, ort_value *const *results, size_t *bytes)
{
    *bytes = 0;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == ORT_ID_NONE)
            continue;
        if (!results[i] || results[i]->kind != ORT_KIND_TENSOR)
            return false;
        *bytes += INITIALIZER_BYTES + ort_tensor_bytes(&results[i]->tensor);
    }
    return true;
}

/* Computes a node, `root` or one before it that goes with it, and knows its results from then on:
 * those of the root if what goes pays for them. */
static ort_status know(ort_pass_context *c, const ort_node *node, const ort_node *root,
                       size_t in_bytes, bool *known, ort_error *err)
{
    ort_error problem = {0};
    ort_status status = ORT_OK;
    size_t bytes;
    int total = node->input_count + node->output_count;
    ort_value **values = calloc((size_t)total + 1, sizeof *values);
    *known = false;
    if (!values)
        return ort_error_memory(err, sizeof *values * (size_t)total);
    if (evaluate(c, node, values, &problem) != ORT_OK)
        /* the run will say the same, if it gets there */
        ort_pass_note(c, root, "%s", problem.message);
    else
        *known = result_bytes(node, values + node->input_count, &bytes) &&
                 (node != root || afford(c, node, bytes, in_bytes));
    for (int i = 0; i < node->output_count && *known && status == ORT_OK; i++)
        if (node->outputs[i] != ORT_ID_NONE)
            status = ort_edit_keep(c->graph, values[node->input_count + i],
                                   &c->graph->values.data[node->outputs[i]]->fact.value, err);
    for (int i = 0; i < total; i++)
        ort_value_free(values[i]);
    free(values);
    return status;
}

/* Does the node only say another shape, which is known, of a constant? */
static bool reshapes(const ort_graph *graph, const ort_node *node, ort_shape *shape)
{
    const ort_tensor *t = node->input_count ? ort_fact_value(graph, node->inputs[0]) : NULL;
    return ort_edit_is_any(node, "Reshape|Flatten|Squeeze|Unsqueeze|Identity") &&
           node->output_count == 1 && t && t->data && !t->stride &&
           t->dtype != ORT_DTYPE_STRING &&
           ort_type_concrete(ort_fact_type(graph, node->outputs[0]), shape) &&
           ort_shape_count(shape) == ort_tensor_count(t);
}

/* The same elements, where they lie: weights live as long as the model does. */
static ort_status know_reshaped(ort_pass_context *c, const ort_node *node, const ort_shape *shape,
                                size_t in_bytes, bool *known, ort_error *err)
{
    ort_tensor *made = ort_arena_alloc(&c->graph->model->arena, sizeof *made);
    if (!made)
        return ort_error_memory(err, sizeof *made);
    *made = *ort_fact_value(c->graph, node->inputs[0]);
    made->shape = *shape;
    *known = afford(c, node, INITIALIZER_BYTES + ort_tensor_bytes(made), in_bytes);
    if (*known)
        c->graph->values.data[node->outputs[0]]->fact.value = made;
    return ORT_OK;
}

/* All results known to inference already? */
static bool all_known(const ort_pass_context *c, const ort_node *node)
{
    bool any = false;
    if (ort_edit_is(node, ONNX, "DequantizeLinear"))
        return false;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == ORT_ID_NONE)
            continue;
        any = true;
        if (!has_data(c->graph->values.data[node->outputs[i]]->fact.value))
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

static ort_status fold(ort_pass_context *c, ort_node *node, size_t in_bytes, int *changes,
                       ort_error *err)
{
    ort_shape shape;
    bool known;
    if (reshapes(c->graph, node, &shape))
        ORT_TRY(know_reshaped(c, node, &shape, in_bytes, &known, err));
    else
        ORT_TRY(know(c, node, node, in_bytes, &known, err));
    return known ? keep_known(c, node, changes, err) : ORT_OK;
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

/* The node and all that feeds it; false when something isn't constant. */
static bool grow(const ort_graph *graph, ort_node *node, int depth, cone *k)
{
    if (depth == CONE_MAX) /* no room for all of them, and a deep graph is not walked to its end */
        return false;
    for (int i = 0; i < k->count; i++)
        if (k->nodes[i] == node)
            return true;
    if (!computes(node) || node->body_count)
        return false;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == ORT_ID_NONE)
            continue;
        ort_node *producer = ort_edit_producer(graph, node->inputs[i]);
        if (!producer && !has_data(ort_fact_value(graph, node->inputs[i])))
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
                bytes += ort_tensor_bytes(ort_fact_value(graph, id));
        }
    }
    return bytes;
}

static ort_status fold_cone(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    cone k = {.count = 0};
    bool known = true;
    if (!c->portable || !grow(c->graph, node, 0, &k) || k.count < 2)
        return ORT_OK;
    size_t bytes = cone_bytes(c->graph, &k);
    if (!bytes || too_large(c, node, bytes))
        return ORT_OK;
    for (int i = 0; i < k.count - 1 && known; i++) /* these stay until nobody reads them */
        ORT_TRY(know(c, k.nodes[i], node, 0, &known, err));
    if (!known)
        return ORT_OK;
    return fold(c, node, bytes, changes, err);
}

static ort_status visit(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    size_t in_bytes;
    int before = *changes;
    bool alone = all_known(c, node);
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
