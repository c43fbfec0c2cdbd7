/* inline.c - model-local functions expanded at their calls, recursively, also in bodies.
 *
 * A call's values keep their names; what is new gets the call's name in front ("call/inner").
 * Attribute references are replaced by the call's attributes or the function's defaults. A
 * function that calls itself is refused, and so is an expansion beyond MAX_NODES nodes and
 * NODES_PER_FILE_BYTE times the bytes of the file (functions that double at each level), whose
 * memory is charged as all that loading takes.
 */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "graph/build.h"
#include "graph/follow.h"
#include "graph/uses.h"

/* Whatever the file's size; and beyond it for each of its bytes. Models of exporters that write a
 * function per module expand to a node for some 20 bytes of their file. */
enum { MAX_NODES = 200000, NODES_PER_FILE_BYTE = 1 };

typedef struct chain { /* the functions being expanded, innermost first */
    const ort_function *function;
    const struct chain *outer;
} chain;

typedef struct inliner {
    ort_builder builder;
    ort_function_index functions;
    size_t made, most; /* nodes */
    ort_error *err;
} inliner;

static ort_status expand_graph(inliner *x, ort_graph *graph, const chain *outer);

static ort_status refuse_recursion(inliner *x, const ort_node *node, const ort_function *f,
                                   const chain *outer)
{
    char label[256];
    for (const chain *c = outer; c; c = c->outer)
        if (c->function == f)
            return ort_error_set(x->err, ORT_ERROR_MODEL,
                                 "%s calls function '%s', which calls itself",
                                 ort_node_label(node, label, sizeof label), f->name);
    return ORT_OK;
}

static ort_status out_of_memory(inliner *x)
{
    return ort_error_memory(x->err, sizeof(ort_node));
}

/* Formal inputs mean the call's inputs; a missing one is absent (an id that no value has). */
static ort_status bind_inputs(inliner *x, const ort_function *f, const ort_node *call,
                              ort_hashmap *names)
{
    if (call->input_count > f->input_count) {
        char label[256];
        return ort_error_set(x->err, ORT_ERROR_MODEL,
                             "%s has %d inputs, function '%s' takes %d",
                             ort_node_label(call, label, sizeof label), call->input_count, f->name,
                             f->input_count);
    }
    for (int i = 0; i < f->input_count; i++) {
        ort_id id = i < call->input_count ? call->inputs[i] : ORT_ID_NONE;
        if (!ort_hashmap_put_str(names, f->inputs[i], id))
            return out_of_memory(x);
    }
    return ORT_OK;
}

static int output_slot(const ort_function *f, const ort_node *call, const char *name)
{
    for (int i = 0; i < f->output_count && i < call->output_count; i++)
        if (call->outputs[i] != ORT_ID_NONE && !strcmp(f->outputs[i], name))
            return i;
    return -1;
}

/* The value that a function's node writes: the call's output when it is one, else a new value. */
static ort_status bind_output(inliner *x, ort_scope *scope, const char *name, ort_id *id)
{
    int slot = output_slot(scope->function, scope->call, name);
    *id = ORT_ID_NONE;
    if (!*name)
        return ORT_OK;
    if (ort_hashmap_get_str(scope->names, name, NULL))
        return ort_error_set(x->err, ORT_ERROR_MODEL,
                             "function '%s': value '%s' is defined twice", scope->function->name,
                             name);
    if (slot < 0) {
        *id = ort_scope_add(&x->builder, scope, name);
        return *id == ORT_ID_NONE ? out_of_memory(x) : ORT_OK;
    }
    *id = scope->call->outputs[slot];
    assert(ort_graph_has_value(scope->graph, *id));
    assert(ort_graph_producer(scope->graph, *id) == ORT_ID_NONE); /* the call is taken out */
    return ort_hashmap_put_str(scope->names, name, *id) ? ORT_OK : out_of_memory(x);
}

static ort_status make_node(inliner *x, ort_scope *scope, const Onnx__NodeProto *proto)
{
    ort_graph *graph = scope->graph;
    ort_arena *arena = &x->builder.model->arena;
    assert(scope->function && scope->call && scope->prefix);
    if (++x->made > x->most)
        return ort_error_set(x->err, ORT_ERROR_MODEL,
                             "functions expand to more than %zu nodes", x->most);
    ort_node *node = ort_build_new_node(&x->builder, proto, graph);
    if (!node)
        return out_of_memory(x);
    node->name = ort_arena_printf(arena, "%s%s", scope->prefix,
                                  *node->name ? node->name : node->op_type);
    if (!node->name)
        return out_of_memory(x);
    for (size_t i = 0; i < proto->n_output; i++) {
        ORT_TRY(bind_output(x, scope, proto->output[i], &node->outputs[i]));
        if (node->outputs[i] == ORT_ID_NONE)
            continue;
        graph->producers.data[node->outputs[i]] = node->id;
        graph->values.data[node->outputs[i]]->producer_slot = (int)i;
    }
    return ORT_OK;
}

/* An output that is one of the inputs, or a second name of an output: through Identity. */
static ort_status pass_through(inliner *x, ort_scope *scope)
{
    const ort_function *f = scope->function;
    ort_graph *graph = scope->graph;
    for (int i = 0; i < f->output_count && i < scope->call->output_count; i++) {
        uint64_t id;
        ort_id out = scope->call->outputs[i];
        if (out == ORT_ID_NONE || graph->producers.data[out] != ORT_ID_NONE)
            continue;
        if (!ort_hashmap_get_str(scope->names, f->outputs[i], &id) || id == ORT_ID_NONE)
            return ort_error_set(x->err, ORT_ERROR_MODEL,
                                 "function '%s': output '%s' is never computed", f->name,
                                 f->outputs[i]);
        const char *name = ort_arena_printf(&x->builder.model->arena, "%s%s", scope->prefix,
                                            f->outputs[i]);
        ort_id in = (ort_id)id;
        if (!name || !ort_graph_add_node(graph, "", "Identity", name, &in, 1, &out, 1))
            return out_of_memory(x);
    }
    return ORT_OK;
}

/* Domains that only the function imports become the model's. */
static ort_status import_opsets(inliner *x, const ort_function *f)
{
    ort_model *model = x->builder.model;
    for (int i = 0; i < f->opset_count; i++) {
        if (ort_model_opset(model, f->opsets[i].domain))
            continue;
        if (!ort_vec_push(&model->opsets, f->opsets[i]))
            return out_of_memory(x);
        model->changed = true;
    }
    return ORT_OK;
}

static ort_status expand_node(inliner *x, ort_graph *graph, ort_node *call, const ort_function *f,
                              const chain *outer);

static ort_status expand_if_call(inliner *x, ort_graph *graph, ort_node *node, const chain *outer)
{
    const ort_function *f = ort_functions_find(&x->functions, node->domain, node->op_type,
                                               node->overload);
    if (f)
        return expand_node(x, graph, node, f, outer);
    for (int i = 0; i < node->body_count; i++)
        ORT_TRY(expand_graph(x, node->bodies[i], outer));
    return ORT_OK;
}

static ort_status fill_scope(inliner *x, ort_scope *scope, const chain *link)
{
    const Onnx__FunctionProto *proto = scope->function->proto;
    ort_graph *graph = scope->graph;
    size_t first = graph->nodes.count; /* the new ones stand there in the function's order */
    ORT_TRY(bind_inputs(x, scope->function, scope->call, scope->names));
    for (size_t i = 0; i < proto->n_node; i++)
        ORT_TRY(make_node(x, scope, proto->node[i]));
    for (size_t i = 0; i < proto->n_node; i++)
        ORT_TRY(ort_build_node(&x->builder, proto->node[i], scope, graph->nodes.data[first + i],
                               x->err));
    ORT_TRY(pass_through(x, scope));
    for (size_t i = 0; i < proto->n_node; i++)
        ORT_TRY(expand_if_call(x, graph, graph->nodes.data[first + i], link));
    return ORT_OK;
}

static ort_status expand_node(inliner *x, ort_graph *graph, ort_node *call, const ort_function *f,
                              const chain *outer)
{
    char label[256];
    assert(ort_graph_has_node(graph, call) && !call->removed);
    ORT_TRY(ort_budget_check(x->err));
    ORT_TRY(refuse_recursion(x, call, f, outer));
    ORT_TRY(import_opsets(x, f));
    ort_arena *arena = &graph->model->arena;
    const char *prefix = *call->name
                             ? ort_arena_printf(arena, "%s/", call->name)
                             : ort_arena_printf(arena, "%s_%u/", call->op_type, call->id);
    if (!prefix)
        return out_of_memory(x);
    ort_hashmap names = {0};
    ort_scope scope = {.graph = graph, .names = &names, .prefix = prefix, .function = f,
                       .call = call, .opsets = f->opsets, .opset_count = (size_t)f->opset_count};
    chain link = {f, outer};
    size_t first = graph->nodes.count;
    ORT_TRY(ort_follow_node(graph, call, NULL, x->err));
    ort_graph_remove_node(graph, call);
    ort_status status = fill_scope(x, &scope, &link);
    if (status == ORT_OK)
        status = ort_follow_nodes(graph, first, call->origin, x->err);
    ort_hashmap_release(&names);
    if (status != ORT_OK && !outer)
        return ort_error_wrap(x->err, status, "%s", ort_node_label(call, label, sizeof label));
    return status;
}

static ort_status expand_graph(inliner *x, ort_graph *graph, const chain *outer)
{
    size_t before = x->made;
    size_t count = graph->nodes.count; /* expansions append nodes and expand them by themselves */
    for (size_t i = 0; i < count; i++)
        if (!graph->nodes.data[i]->removed)
            ORT_TRY(expand_if_call(x, graph, graph->nodes.data[i], outer));
    if (x->made == before)
        return ORT_OK;
    ort_uses_release(graph); /* nodes were built beside it */
    return ort_graph_sort(graph, x->err);
}

ort_status ort_graph_inline_functions(ort_graph *graph, ort_error *err)
{
    if (graph->model->functions.count == 0)
        return ORT_OK;
    inliner x = {.err = err,
                 .most = MAX_NODES + NODES_PER_FILE_BYTE * graph->model->file_bytes};
    ORT_TRY(ort_builder_init(&x.builder, graph->model, err));
    ort_status status = ort_functions_index(graph->model, &x.functions, err);
    if (status == ORT_OK)
        status = expand_graph(&x, graph, NULL);
    ort_status finished = ort_builder_finish(&x.builder, status == ORT_OK ? err : NULL);
    ort_builder_release(&x.builder);
    ort_functions_index_release(&x.functions);
    return status == ORT_OK ? finished : status;
}

size_t ort_function_node_count(const ort_function *function)
{
    const Onnx__FunctionProto *proto = function->proto;
    size_t count = 0;
    for (size_t i = 0; i < proto->n_node; i++)
        if (strcmp(ort_build_text(proto->node[i]->op_type), "Constant"))
            count++;
    return count;
}

ort_status ort_model_inline_functions(ort_model *model, ort_error *err)
{
    ORT_TRY(ort_graph_inline_functions(model->graph, err));
    if (model->functions.count) {
        model->functions.count = 0;
        model->changed = true;
    }
    return ORT_OK;
}
