/* extract.c - a part of a model as a model of its own (extract.h): a clone from which everything
 * goes that the wanted outputs don't need. */
#include "graph/extract.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/strbuf.h"

typedef struct cutter {
    ort_graph *graph;
    const ort_model *typed;
    uint8_t *is_cut;  /* by value: a new input, whatever computes it now */
    uint8_t *wanted;  /* by node */
    uint8_t *needed;  /* by value: read by a wanted node, or an output */
    ort_id *stack;
    size_t depth;
    ort_error *err;
} cutter;

static ort_status no_value(const ort_graph *graph, const char *name, ort_error *err)
{
    ort_strbuf some = {0};
    ort_nearest near;
    char meant[300];
    ort_nearest_begin(&near, name);
    for (size_t i = 0, shown = 0; i < graph->values.count; i++) {
        const ort_graph_value *v = graph->values.data[i];
        if (graph->producers.data[i] == ORT_ID_NONE && !v->is_input)
            continue;
        ort_nearest_try(&near, v->name);
        if (shown < 12)
            ort_strbuf_addf(&some, "%s%s", shown++ ? ", " : "", v->name);
    }
    ort_status status = ort_error_set(err, ORT_ERROR_USAGE,
                                      "the graph has no value '%s'%s; it has %s, ...; --shapes "
                                      "lists them all",
                                      name, ort_nearest_text(&near, meant, sizeof meant),
                                      ort_strbuf_text(&some));
    ort_strbuf_release(&some);
    return status;
}

static ort_status find_value(const cutter *c, const char *name, ort_id *id)
{
    if (!name)
        return ort_error_set(c->err, ORT_ERROR_USAGE, "a name of an input or output is NULL");
    *id = ort_graph_find_value(c->graph, name);
    return *id == ORT_ID_NONE ? no_value(c->graph, name, c->err) : ORT_OK;
}

static void need(cutter *c, ort_id value)
{
    assert(value == ORT_ID_NONE || ort_graph_has_value(c->graph, value));
    if (value == ORT_ID_NONE || c->needed[value])
        return;
    c->needed[value] = 1;
    ort_id producer = c->graph->producers.data[value];
    if (c->is_cut[value] || producer == ORT_ID_NONE || c->wanted[producer])
        return;
    c->wanted[producer] = 1;
    assert(c->depth < c->graph->nodes.count); /* each once */
    c->stack[c->depth++] = producer;
}

/* Gradient reads what its attributes name: the way from xs and zs to y. */
static void need_named(cutter *c, const ort_node *node)
{
    static const char *const lists[] = {"xs", "zs"};
    if (strcmp(node->op_type, "Gradient") || strcmp(node->domain, "ai.onnx.preview.training"))
        return;
    for (int l = 0; l < 2; l++) {
        size_t count;
        const ort_string *names = ort_node_strings(node, lists[l], &count);
        for (size_t i = 0; i < count; i++)
            need(c, ort_graph_find_value(c->graph, names[i].ptr));
    }
    need(c, ort_graph_find_value(c->graph, ort_node_string(node, "y", "")));
}

static void walk(cutter *c)
{
    while (c->depth) {
        const ort_node *node = c->graph->nodes.data[c->stack[--c->depth]];
        for (int i = 0; i < node->input_count; i++)
            need(c, node->inputs[i]);
        for (int i = 0; i < node->implicit_count; i++)
            need(c, node->implicit[i]);
        need_named(c, node);
    }
}

/* Graph inputs that are needed: all must have been named, unless none was or they have a default.
 */
static ort_status check_inputs(cutter *c, size_t input_count)
{
    ort_strbuf missing = {0};
    ort_graph *graph = c->graph;
    for (size_t i = 0; i < graph->inputs.count; i++) {
        ort_id id = graph->inputs.data[i];
        const ort_graph_value *v = graph->values.data[id];
        if (!c->needed[id] || c->is_cut[id])
            continue;
        if (input_count && !v->fact.value)
            ort_strbuf_addf(&missing, "%s%s", missing.length ? ", " : "", v->name);
        else if (!v->fact.value)
            c->is_cut[id] = 1;
    }
    ort_status status = ORT_OK;
    if (missing.length)
        status = ort_error_set(c->err, ORT_ERROR_USAGE,
                               "the outputs also need these graph inputs: %s (name them too, or "
                               "cut further down)",
                               ort_strbuf_text(&missing));
    ort_strbuf_release(&missing);
    return status;
}

static void set_type(cutter *c, ort_id id)
{
    ort_graph_value *value = c->graph->values.data[id];
    ort_id other = ort_graph_find_value(c->typed->graph, value->name);
    if (other == ORT_ID_NONE)
        return;
    const ort_type *from = &c->typed->graph->values.data[other]->fact.type;
    char text[512];
    value->fact.type = *from;
    value->info_proto = NULL;
    /* Symbols are numbered per model: carry them over by name. */
    for (int i = 0; (from->kind == ORT_TYPE_TENSOR || from->kind == ORT_TYPE_SPARSE) &&
                    i < from->rank;
         i++) {
        if (ort_dim_known(from->dim[i]) || from->dim[i].expr == ORT_DIM_UNKNOWN)
            continue;
        ort_dim_format(c->typed->dims, from->dim[i], text, sizeof text);
        value->fact.type.dim[i] = ort_dim_symbol(c->graph->model->dims, text);
    }
}

static ort_status remove_unwanted(cutter *c)
{
    ort_graph *graph = c->graph;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        ort_node *node = graph->nodes.data[i];
        if (!c->wanted[i]) {
            ort_graph_remove_node(graph, node);
            continue;
        }
        /* A wanted node that also computes a new input: that output gets another name. */
        for (int k = 0; k < node->output_count; k++) {
            ort_id id = node->outputs[k];
            if (id == ORT_ID_NONE || !c->is_cut[id])
                continue;
            node->outputs[k] = ort_graph_add_value(graph, graph->values.data[id]->name);
            if (node->outputs[k] == ORT_ID_NONE)
                return ort_error_memory(c->err, sizeof(ort_graph_value));
            graph->producers.data[node->outputs[k]] = node->id;
            graph->values.data[node->outputs[k]]->producer_slot = k;
            ort_graph_touch(graph, node);
        }
    }
    return ORT_OK;
}

static void keep_initializers(cutter *c)
{
    size_t kept = 0;
    ort_graph *graph = c->graph;
    for (size_t i = 0; i < graph->initializers.count; i++) {
        ort_id id = graph->initializers.data[i];
        if (c->needed[id] && !c->is_cut[id])
            graph->initializers.data[kept++] = id;
        else
            graph->values.data[id]->fact.value = NULL;
    }
    graph->initializers.count = kept;
}

static ort_status set_inputs(cutter *c, const ort_id *inputs, size_t count)
{
    ort_graph *graph = c->graph;
    ORT_VEC(ort_id) list = {0};
    bool ok = true;
    for (size_t i = 0; i < count; i++)
        ok = ok && ort_vec_push(&list, inputs[i]);
    for (size_t i = 0; i < graph->inputs.count; i++) {
        ort_id id = graph->inputs.data[i];
        graph->values.data[id]->is_input = false;
        if (c->needed[id] && !ort_ids_have(inputs, count, id))
            ok = ok && ort_vec_push(&list, id);
    }
    ort_vec_release(&graph->inputs);
    graph->inputs.data = list.data;
    graph->inputs.count = list.count;
    graph->inputs.capacity = list.capacity;
    for (size_t i = 0; i < list.count; i++) {
        ort_graph_value *value = graph->values.data[list.data[i]];
        value->is_input = true;
        graph->producers.data[list.data[i]] = ORT_ID_NONE;
        if (c->is_cut[list.data[i]])
            set_type(c, list.data[i]);
    }
    return ok ? ORT_OK : ort_error_memory(c->err, count * sizeof(ort_id));
}

static ort_status set_outputs(cutter *c, const ort_id *outputs, size_t count)
{
    ort_graph *graph = c->graph;
    for (size_t i = 0; i < graph->outputs.count; i++) {
        graph->values.data[graph->outputs.data[i]]->is_output = false;
        assert(graph->values.data[graph->outputs.data[i]]->use_count > 0);
        graph->values.data[graph->outputs.data[i]]->use_count--;
    }
    ort_vec_clear(&graph->outputs);
    for (size_t i = 0; i < count; i++) {
        ort_graph_value *value = graph->values.data[outputs[i]];
        if (!ort_vec_push(&graph->outputs, outputs[i]))
            return ort_error_memory(c->err, sizeof(ort_id));
        value->is_output = true;
        value->use_count++;
        if (!value->info_proto || graph->producers.data[outputs[i]] != ORT_ID_NONE)
            set_type(c, outputs[i]);
    }
    return ORT_OK;
}

static ort_status cut(cutter *c, const char *const *inputs, size_t input_count,
                      const char *const *outputs, size_t output_count, ort_id *ids)
{
    for (size_t i = 0; i < input_count; i++) {
        ORT_TRY(find_value(c, inputs[i], &ids[i]));
        c->is_cut[ids[i]] = 1;
    }
    ort_id *out_ids = ids + input_count;
    for (size_t i = 0; i < output_count; i++) {
        ORT_TRY(find_value(c, outputs[i], &out_ids[i]));
        need(c, out_ids[i]);
    }
    walk(c);
    ORT_TRY(check_inputs(c, input_count));
    for (size_t i = 0; i < input_count; i++)
        if (!c->needed[ids[i]])
            return ort_error_set(c->err, ORT_ERROR_USAGE, "the outputs don't depend on '%s'",
                                 inputs[i]);
    ORT_TRY(remove_unwanted(c));
    keep_initializers(c);
    ORT_TRY(set_inputs(c, ids, input_count));
    ORT_TRY(set_outputs(c, out_ids, output_count));
    c->graph->changed = true;
    return ort_graph_sort(c->graph, c->err);
}

ort_status ort_graph_extract(const ort_model *model, const ort_model *typed,
                             const char *const *inputs, size_t input_count,
                             const char *const *outputs, size_t output_count, ort_model **part,
                             ort_error *err)
{
    ort_arena arena = {0};
    *part = NULL;
    if (output_count == 0)
        return ort_error_set(err, ORT_ERROR_USAGE, "no output was named");
    ORT_TRY(ort_model_clone(model, part, err));
    ort_graph *graph = (*part)->graph;
    cutter c = {.graph = graph, .typed = typed, .err = err};
    /* Values are added while cutting: at most one per output of a node. */
    size_t values = graph->values.count, nodes = graph->nodes.count;
    c.is_cut = ort_arena_alloc(&arena, 2 * values + 1);
    c.needed = ort_arena_alloc(&arena, 2 * values + 1);
    c.wanted = ort_arena_alloc(&arena, nodes + 1);
    c.stack = ort_arena_array(&arena, nodes + 1, sizeof *c.stack);
    ort_id *ids = ort_arena_array(&arena, input_count + output_count, sizeof *ids);
    ort_status status = c.is_cut && c.needed && c.wanted && c.stack && ids
                            ? cut(&c, inputs, input_count, outputs, output_count, ids)
                            : ort_error_memory(err, values);
    ort_arena_release(&arena);
    assert(graph->values.count <= 2 * values && graph->nodes.count == nodes);
    if (status != ORT_OK) {
        ort_model_free(*part);
        *part = NULL;
    }
    return status;
}
