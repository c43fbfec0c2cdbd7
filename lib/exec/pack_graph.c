/* pack_graph.c - the graph of a prepared session as a model for its pack file, and back
 * (packing.h). The model is a clone: the session goes on with its own. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "exec/packing.h"

/* ---- out */

/* Every output that is wanted is known: the step was folded while the program was built. A Cast
 * that was passed over (op/half_weight.h) stays: readers are promised its type. */
static bool is_folded(const ort_program *program, const ort_node *node)
{
    int known = 0;
    if (node->input_count == 1 && node->output_count == 1 && node->inputs[0] != ORT_ID_NONE &&
        program->constants[node->outputs[0]] == program->constants[node->inputs[0]])
        return false;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == ORT_ID_NONE)
            continue;
        if (!program->constants[node->outputs[i]])
            return false;
        known++;
    }
    return known > 0;
}

/* "17 a+b": opset, and the nodes that it was fused from. The session's graph may mix opsets, which
 * a model can't say. */
static ort_status describe_node(ort_graph *graph, ort_node *node, ort_error *err)
{
    node->doc = ort_arena_printf(&graph->model->arena, "%d %s", node->opset,
                                 node->origin ? node->origin : "");
    node->proto = NULL;
    node->opset = 0;
    return node->doc ? ORT_OK : ort_error_memory(err, 16);
}

static bool is_listed(const char *const *beginnings, const char *name)
{
    for (; *beginnings; beginnings++)
        if (!strncmp(name, *beginnings, strlen(*beginnings)))
            return true;
    return false;
}

/* Some may be required, so that they stay, with no elements. A new list: the session's node shares
 * the old one. */
static ort_status empty_attrs(ort_graph *graph, ort_node *node, const char *const *beginnings,
                              ort_error *err)
{
    size_t count = (size_t)node->attr_count;
    ort_attr *attrs = ort_arena_array(&graph->model->arena, count, sizeof *attrs);
    ort_tensor *tensors = ort_arena_array(&graph->model->arena, count, sizeof *tensors);
    if (!attrs || !tensors)
        return ort_error_memory(err, count * sizeof *attrs);
    for (size_t i = 0; i < count; i++) {
        attrs[i] = node->attrs[i];
        if (!is_listed(beginnings, attrs[i].name))
            continue;
        attrs[i] = (ort_attr){.name = attrs[i].name, .type = attrs[i].type, .t = attrs[i].t};
        if (attrs[i].t) {
            tensors[i] = (ort_tensor){.dtype = attrs[i].t->dtype, .shape = {.rank = 1}};
            attrs[i].t = &tensors[i];
        }
    }
    node->attrs = attrs;
    return ORT_OK;
}

static ort_status clear_graph(ort_graph *graph, const ort_program *program, ort_error *err);

static ort_status clear_nodes(ort_graph *graph, const ort_program *program, ort_error *err)
{
    int at = 0;
    ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        assert(at < program->step_count && program->steps[at].node->id == node->id);
        const ort_step *step = &program->steps[at++];
        if (is_folded(program, node)) {
            ort_graph_remove_node(graph, node);
            continue;
        }
        for (int b = 0; b < step->body_count; b++)
            ORT_TRY(clear_graph(node->bodies[b], step->bodies[b], err));
        if (step->packed_attrs)
            ORT_TRY(empty_attrs(graph, node, step->packed_attrs, err));
        ORT_TRY(describe_node(graph, node, err));
    }
    return ORT_OK;
}

static bool *list_used(const ort_graph *graph)
{
    bool *used = calloc(graph->values.count + 1, sizeof *used);
    const ort_node *node;
    if (!used)
        return NULL;
    ORT_EACH_NODE(graph, node)
    {
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i] != ORT_ID_NONE)
                used[node->inputs[i]] = true;
        for (int i = 0; i < node->implicit_count; i++)
            used[node->implicit[i]] = true;
    }
    for (size_t i = 0; i < graph->inputs.count; i++)
        used[graph->inputs.data[i]] = true;
    for (size_t i = 0; i < graph->outputs.count; i++)
        used[graph->outputs.data[i]] = true;
    return used;
}

/* Constants of the program that something still names become the initializers. */
static ort_status list_constants(ort_graph *graph, const ort_program *program, ort_error *err)
{
    assert((size_t)program->value_count == graph->values.count); /* of which it is a clone */
    bool *used = list_used(graph);
    ort_status status = used ? ORT_OK : ort_error_memory(err, graph->values.count);
    graph->initializers.count = 0;
    for (size_t id = 0; status == ORT_OK && id < graph->values.count; id++) {
        ort_graph_value *value = graph->values.data[id];
        const ort_tensor *constant = value->is_input ? value->fact.value : program->constants[id];
        ort_id from = graph->producers.data[id];
        const ort_node *producer = from == ORT_ID_NONE ? NULL : graph->nodes.data[from];
        value->initializer_proto = NULL;
        value->is_sparse = false;
        if (!used[id] || !constant || value->outer != ORT_ID_NONE ||
            (producer && !producer->removed))
            continue;
        graph->producers.data[id] = ORT_ID_NONE;
        value->fact.value = constant;
        if (!ort_vec_push(&graph->initializers, (ort_id)id))
            status = ort_error_memory(err, sizeof(ort_id));
    }
    free(used);
    return status;
}

static ort_status clear_graph(ort_graph *graph, const ort_program *program, ort_error *err)
{
    graph->changed = true;
    ORT_TRY(clear_nodes(graph, program, err));
    return list_constants(graph, program, err);
}

/* Inputs as callers see them: those with a default left the session's list. */
static ort_status restore_inputs(const ort_session *s, ort_graph *graph, ort_error *err)
{
    graph->inputs.count = 0;
    for (int i = 0; i < s->input_count; i++) {
        ort_graph_value *value = graph->values.data[s->inputs[i].id];
        value->is_input = true;
        value->fact.value = s->inputs[i].default_value;
        if (!ort_vec_push(&graph->inputs, s->inputs[i].id))
            return ort_error_memory(err, sizeof(ort_id));
    }
    return ORT_OK;
}

ort_status ort_pack_graph_of(const ort_session *session, ort_model **model, ort_error *err)
{
    ORT_TRY(ort_model_clone(session->model, model, err));
    ort_graph *graph = (*model)->graph;
    ort_status status = restore_inputs(session, graph, err);
    if (status == ORT_OK)
        status = clear_graph(graph, session->program, err);
    (*model)->changed = true;
    (*model)->functions.count = 0;
    if (status != ORT_OK) {
        ort_model_free(*model);
        *model = NULL;
    }
    return status;
}

/* ---- back */

ort_status ort_pack_graph_settle(ort_graph *graph, ort_error *err)
{
    ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        char *end;
        long opset = strtol(node->doc, &end, 10);
        if (end == node->doc || *end != ' ' || opset < 0 || opset > INT32_MAX)
            return ort_error_set(err, ORT_ERROR_MODEL, "a node of its graph has no opset");
        node->opset = (int)opset;
        node->origin = end[1] ? end + 1 : NULL;
        node->doc = "";
        for (int b = 0; b < node->body_count; b++)
            ORT_TRY(ort_pack_graph_settle(node->bodies[b], err));
    }
    return ORT_OK;
}
