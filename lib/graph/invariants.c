/* invariants.c - checks that a whole graph keeps the rules that every edit must keep
 * (ort_graph_verify). Builds for development check after each pass.
 */
#include "graph/invariants.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/uses.h"

typedef struct audit {
    const ort_graph *graph;
    int *reads;        /* by value: inputs of live nodes, captures, graph outputs */
    bool *done;        /* by value: there before the node at hand runs */
    ort_error *err;
} audit;

static ort_status broken(const audit *a, const ort_node *node, ort_id value, const char *what)
{
    char label[256];
    const ort_graph_value *v = ort_graph_value_at(a->graph, value);
    return ort_error_set(a->err, ORT_ERROR_RUN, "the graph is broken: %s%s%s%s%s: %s",
                         node ? ort_node_label(node, label, sizeof label) : "graph",
                         v ? ", value '" : "", v ? v->name : "", v ? "'" : "",
                         a->graph->parent ? " (of a body)" : "", what);
}

/* ---- nodes and the values they name */

static bool is_id(const audit *a, ort_id id)
{
    return id < a->graph->values.count;
}

/* What no live node computes is there from the start, or nowhere. */
static bool is_given(const ort_graph_value *v)
{
    return v->is_input || v->fact.value || v->outer != ORT_ID_NONE || v->initializer_proto;
}

static ort_status verify_outputs(audit *a, const ort_node *node)
{
    const ort_graph *graph = a->graph;
    for (int i = 0; i < node->output_count; i++) {
        ort_id id = node->outputs[i];
        if (id == ORT_ID_NONE)
            continue;
        if (!is_id(a, id))
            return broken(a, node, ORT_ID_NONE, "an output is no value");
        if (graph->producers.data[id] != node->id)
            return broken(a, node, id, "its producer is said to be another node");
        if (graph->values.data[id]->producer_slot != i)
            return broken(a, node, id, "it is said to be another output of its node");
        if (a->done[id])
            return broken(a, node, id, "it is computed twice");
        a->done[id] = true;
    }
    return ORT_OK;
}

static ort_status verify_read(audit *a, const ort_node *node, ort_id id)
{
    if (!is_id(a, id))
        return broken(a, node, ORT_ID_NONE, "an input is no value");
    a->reads[id]++;
    return a->done[id] ? ORT_OK
                       : broken(a, node, id, "it is read before it is computed, or never is");
}

/* The node's inputs are found by the index of readers. */
static ort_status verify_index(const audit *a, const ort_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == ORT_ID_NONE)
            continue;
        ort_readers readers = ort_readers_of(a->graph, node->inputs[i]);
        const ort_node *reader;
        int steps = 0;
        while ((reader = ort_readers_next(&readers)) != NULL && reader != node && steps < 64)
            steps++;
        if (!reader)
            return broken(a, node, node->inputs[i], "the index of readers doesn't know this one");
    }
    return ORT_OK;
}

/* Bodies know where they stand, and the node lists all that they read of what is around. */
static ort_status verify_bodies(audit *a, const ort_node *node)
{
    for (int b = 0; b < node->body_count; b++) {
        const ort_graph *body = node->bodies[b];
        if (body->parent != a->graph || body->parent_node != node->id)
            return broken(a, node, ORT_ID_NONE, "a body is said to stand elsewhere");
        for (size_t v = 0; v < body->values.count; v++) {
            ort_id outer = body->values.data[v]->outer;
            bool listed = outer == ORT_ID_NONE || !body->values.data[v]->use_count;
            for (int i = 0; i < node->implicit_count && !listed; i++)
                listed = node->implicit[i] == outer;
            if (!listed)
                return broken(a, node, is_id(a, outer) ? outer : ORT_ID_NONE,
                              "a body captures what the node doesn't list");
        }
    }
    return ORT_OK;
}

static ort_status verify_node(audit *a, const ort_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ORT_ID_NONE)
            ORT_TRY(verify_read(a, node, node->inputs[i]));
    for (int i = 0; i < node->implicit_count; i++)
        ORT_TRY(verify_read(a, node, node->implicit[i]));
    ORT_TRY(verify_outputs(a, node));
    ORT_TRY(verify_index(a, node));
    return verify_bodies(a, node);
}

/* Every live node stands in the order once. */
static ort_status verify_order(audit *a)
{
    const ort_graph *graph = a->graph;
    const ort_node *node;
    size_t live = 0, ordered = 0;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        if (graph->nodes.data[i]->id != i)
            return broken(a, graph->nodes.data[i], ORT_ID_NONE, "its number isn't its place");
        live += !graph->nodes.data[i]->removed;
    }
    ORT_EACH_NODE(graph, node)
    {
        ordered++;
        ORT_TRY(verify_node(a, node));
    }
    return live == ordered
               ? ORT_OK
               : broken(a, NULL, ORT_ID_NONE, "a node isn't in the order once");
}

/* ---- values */

/* A name stands for one value of the graph. (A file's body may give names of what is around.) */
static ort_status verify_name(const audit *a, ort_id id)
{
    const ort_graph *graph = a->graph;
    const ort_graph_value *v = graph->values.data[id];
    if (!*v->name || v->outer != ORT_ID_NONE)
        return ORT_OK;
    if (ort_graph_find_value(graph, v->name) != id)
        return broken(a, NULL, id, "its name is another value's, too");
    return ORT_OK;
}

static ort_status verify_value(const audit *a, ort_id id)
{
    const ort_graph_value *v = a->graph->values.data[id];
    if (v->outer != ORT_ID_NONE &&
        (!a->graph->parent || v->outer >= a->graph->parent->values.count))
        return broken(a, NULL, id, "it captures a value that isn't around");
    /* A session that keeps all counts a reader more. */
    if (a->reads[id] != v->use_count && !(v->is_output && v->use_count > a->reads[id]))
        return broken(a, NULL, id, "it has not as many readers as it is said to have");
    return a->reads[id] ? verify_name(a, id) : ORT_OK;
}

static ort_status verify_ends(audit *a)
{
    const ort_graph *graph = a->graph;
    for (size_t i = 0; i < graph->inputs.count; i++) {
        ort_id id = graph->inputs.data[i];
        if (!is_id(a, id) || !graph->values.data[id]->is_input)
            return broken(a, NULL, ORT_ID_NONE, "an input isn't marked as one");
    }
    for (size_t i = 0; i < graph->outputs.count; i++) {
        ort_id id = graph->outputs.data[i];
        if (!is_id(a, id) || !graph->values.data[id]->is_output)
            return broken(a, NULL, ORT_ID_NONE, "an output isn't marked as one");
        ORT_TRY(verify_read(a, NULL, id));
    }
    return ORT_OK;
}

static ort_status verify(audit *a)
{
    const ort_graph *graph = a->graph;
    const ort_node *node;
    if (graph->producers.count != graph->values.count)
        return broken(a, NULL, ORT_ID_NONE, "values and producers differ in number");
    for (size_t i = 0; i < graph->values.count; i++) {
        ort_id producer = graph->producers.data[i];
        a->done[i] = is_given(graph->values.data[i]) &&
                     (producer == ORT_ID_NONE || graph->nodes.data[producer]->removed);
    }
    ORT_TRY(verify_order(a));
    ORT_TRY(verify_ends(a));
    for (size_t i = 0; i < graph->values.count; i++)
        ORT_TRY(verify_value(a, (ort_id)i));
    ORT_EACH_NODE(graph, node)
        for (int b = 0; b < node->body_count; b++)
            ORT_TRY(ort_graph_verify(node->bodies[b], a->err));
    return ORT_OK;
}

ort_status ort_graph_verify(const ort_graph *graph, ort_error *err)
{
    size_t count = graph->values.count + 1;
    audit a = {.graph = graph, .err = err, .reads = calloc(count, sizeof *a.reads),
               .done = calloc(count, sizeof *a.done)};
    ort_status status = a.reads && a.done ? verify(&a)
                                          : ort_error_memory(err, count * sizeof *a.reads);
    free(a.reads);
    free(a.done);
    return status;
}
