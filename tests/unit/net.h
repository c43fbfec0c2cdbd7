/* net.h - building small models in memory for unit tests, by names. Static functions only.
 * Failures of the builder show as a session that can't be made. */
#ifndef TESTS_UNIT_NET_H
#define TESTS_UNIT_NET_H

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../run_whole.h"
#include "exec/env.h"
#include "exec/session.h"
#include "graph/graph.h"
#include "op/op.h"
#include "workers.h"

#define NET_STATIC static __attribute__((unused))

typedef struct net {
    ort_env *env;
    ort_model *model;
    ort_graph *graph; /* being built: the main graph or a body */
} net;

NET_STATIC void net_free(net *n)
{
    ort_model_free(n->model);
    ort_env_free(n->env);
    memset(n, 0, sizeof *n);
}

NET_STATIC bool net_init(net *n, const ort_env_options *options)
{
    ort_opset opset = {.domain = "", .version = 17};
    memset(n, 0, sizeof *n);
    if (ort_env_new(options, &n->env, NULL))
        return false;
    n->model = ort_model_new();
    if (!n->model || !ort_vec_push(&n->model->opsets, opset))
        return false;
    n->model->ir_version = 8;
    n->model->registry = n->env->registry;
    n->graph = n->model->graph = ort_graph_new(n->model, NULL, ORT_ID_NONE);
    return n->graph != NULL;
}

/* On one tier (NULL: the best) and some threads. */
NET_STATIC bool net_on(net *n, const char *isa, int threads)
{
    ort_env_options options;
    ort_env_options_init(&options);
    options.isa = isa;
    options.threads = threads;
    options.own_threads = &workers_at_once;
    return net_init(n, &options);
}

/* The value of this name, captured from outside when only an outer graph has it, made when nobody
 * has. */
NET_STATIC ort_id net_value(net *n, ort_graph *graph, const char *name)
{
    ort_id id = ort_graph_find_value(graph, name), outer = ORT_ID_NONE;
    if (id != ORT_ID_NONE)
        return id;
    for (ort_graph *g = graph->parent; g && outer == ORT_ID_NONE; g = g->parent)
        if (ort_graph_find_value(g, name) != ORT_ID_NONE)
            outer = net_value(n, graph->parent, name);
    if (outer == ORT_ID_NONE)
        return ort_graph_add_value(graph, name);
    id = ort_graph_add_named(graph, graph->parent->values.data[outer]->name);
    if (id != ORT_ID_NONE) {
        ort_node *node = graph->parent->nodes.data[graph->parent_node];
        graph->values.data[id]->outer = outer;
        ort_id *list = ort_arena_array(&n->model->arena, (size_t)node->implicit_count + 1,
                                       sizeof *list);
        if (node->implicit_count)
            memcpy(list, node->implicit, sizeof *list * (size_t)node->implicit_count);
        list[node->implicit_count++] = outer;
        node->implicit = list;
        graph->parent->values.data[outer]->use_count++;
    }
    return id;
}

/* dims: sizes, -1 for the symbol "n", -2 for "m", -3 for an axis of which nothing is known. */
NET_STATIC ort_id net_input(net *n, const char *name, ort_dtype dtype, int rank,
                            const int64_t *dims)
{
    ort_id id = ort_graph_add_value(n->graph, name);
    ort_dim list[ORT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        list[i] = dims[i] >= 0    ? ort_dim_of(dims[i])
                  : dims[i] == -3 ? ort_dim_unknown()
                                  : ort_dim_symbol(n->model->dims, dims[i] == -1 ? "n" : "m");
    n->graph->values.data[id]->is_input = true;
    n->graph->values.data[id]->fact.type = ort_type_tensor(dtype, rank, list);
    (void)!ort_vec_push(&n->graph->inputs, id);
    return id;
}

/* ".i64" before a blank; otherwise. */
NET_STATIC ort_dtype net_type_called(const char *text, ort_dtype otherwise)
{
    static const struct {
        const char *name;
        ort_dtype dtype;
    } types[] = {{".i64", ORT_DTYPE_INT64}, {".i32", ORT_DTYPE_INT32}, {".f16", ORT_DTYPE_FLOAT16},
                 {".f32", ORT_DTYPE_FLOAT}, {".bool", ORT_DTYPE_BOOL}, {".u8", ORT_DTYPE_UINT8},
                 {".i16", ORT_DTYPE_INT16}, {".u16", ORT_DTYPE_UINT16}, {".i8", ORT_DTYPE_INT8},
                 {".u4", ORT_DTYPE_UINT4},  {".i4", ORT_DTYPE_INT4}};
    const char *word = text + strcspn(text, ". ");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strncmp(word, types[i].name, strlen(types[i].name)))
            return types[i].dtype;
    return otherwise;
}

NET_STATIC void net_output(net *n, const char *name)
{
    ort_id id = net_value(n, n->graph, name);
    n->graph->values.data[id]->is_output = true;
    n->graph->values.data[id]->use_count++;
    (void)!ort_vec_push(&n->graph->outputs, id);
}

NET_STATIC ort_id net_constant(net *n, const char *name, ort_dtype dtype, int rank,
                               const int64_t *dims, const void *data)
{
    ort_tensor tensor = {.dtype = dtype, .shape = ort_shape_make(rank, dims)};
    size_t bytes = ort_tensor_bytes(&tensor);
    tensor.data = ort_arena_alloc_aligned(&n->model->arena, bytes + 1, 64, 0);
    memcpy(tensor.data, data, bytes);
    return ort_graph_add_constant(n->graph, name, &tensor);
}

/* in and out: names separated by blanks, "-" for an absent one. */
NET_STATIC ort_node *net_node_of(net *n, const char *domain, const char *op_type, const char *in,
                                 const char *out)
{
    ort_id ids[512];
    int counts[2] = {0, 0};
    const char *lists[2] = {in, out};
    for (int l = 0, at = 0; l < 2; l++)
        for (const char *p = lists[l]; *p && at < 512;) {
            char name[64];
            size_t length = strcspn(p, " ");
            snprintf(name, sizeof name, "%.*s", (int)length, p);
            ids[at++] = strcmp(name, "-") ? net_value(n, n->graph, name) : ORT_ID_NONE;
            counts[l]++;
            p += length + strspn(p + length, " ");
        }
    return ort_graph_add_node(n->graph, domain, op_type, out, ids, counts[0], ids + counts[0],
                              counts[1]);
}

NET_STATIC ort_node *net_node(net *n, const char *op_type, const char *in, const char *out)
{
    return net_node_of(n, "", op_type, in, out);
}

NET_STATIC void net_int(net *n, ort_node *node, const char *name, int64_t number)
{
    ort_attr attr = {.name = name, .type = ORT_ATTR_INT, .i = number};
    (void)!ort_node_set_attr(n->graph, node, &attr, NULL);
}

/* Begin a body of `node`: what follows is built in it until net_end. */
NET_STATIC void net_body(net *n, ort_node *node, const char *name)
{
    ort_graph *body = ort_graph_new(n->model, n->graph, node->id);
    ort_attr attr = {.name = name, .type = ORT_ATTR_GRAPH, .g = body};
    ort_graph **list = ort_arena_array(&n->model->arena, (size_t)node->body_count + 1,
                                       sizeof *list);
    if (node->body_count)
        memcpy(list, node->bodies, sizeof *list * (size_t)node->body_count);
    list[node->body_count++] = body;
    node->bodies = list;
    (void)!ort_node_set_attr(n->graph, node, &attr, NULL);
    n->graph = body;
}

NET_STATIC void net_end(net *n)
{
    n->graph = n->graph->parent;
}

NET_STATIC ort_session *net_session(net *n, const ort_session_options *options, ort_error *err)
{
    ort_session *session = NULL;
    (void)!ort_session_new(n->env, n->model, options, &session, err);
    return session;
}

NET_STATIC ort_value *net_floats(int rank, const int64_t *dims, float first, float step)
{
    ort_value *value = NULL;
    if (ort_value_new_tensor(ORT_DTYPE_FLOAT, rank, dims, &value, NULL))
        return NULL;
    for (int64_t i = 0; i < ort_value_count(value); i++)
        ort_value_set_double(value, i, (double)first + (double)step * (double)i);
    return value;
}

NET_STATIC ort_value *net_scalar(ort_dtype dtype, double number)
{
    ort_value *value = NULL;
    if (ort_value_new_tensor(dtype, 0, NULL, &value, NULL))
        return NULL;
    ort_value_set_double(value, 0, number);
    return value;
}

#endif
