/* pass_count.h - a small graph before and after passes: the changes they make, its nodes, and a
 * session that runs it as it is. Static functions only.
 */
#ifndef TESTS_UNIT_PASS_COUNT_H
#define TESTS_UNIT_PASS_COUNT_H

#include "net.h"
#include "pass/pass.h"

/* Nodes of this type, not those in bodies; all with NULL. */
NET_STATIC int count_ops_in(const ort_graph *graph, const char *op_type)
{
    ort_node *node;
    int count = 0;
    ORT_EACH_NODE(graph, node)
        count += !op_type || !strcmp(node->op_type, op_type);
    return count;
}

/* The same of the main graph. */
NET_STATIC int count_ops(const net *n, const char *op_type)
{
    return count_ops_in(n->model->graph, op_type);
}

/* `report` of the options of passes: arg is an int, the sum of changes. */
NET_STATIC void add_up(void *arg, const ort_pass *pass, uint64_t ns, int changes)
{
    *(int *)arg += changes;
}

/* Changes that passes make with these options, up to level 2; -1 when they fail. */
NET_STATIC int rewrite_with(net *n, ort_pass_options options)
{
    int changes = 0;
    options.level = 2;
    options.registry = n->env->registry;
    options.report = add_up;
    options.report_arg = &changes;
    if (ort_graph_infer(n->model->graph, n->env->registry, NULL, NULL) != ORT_OK ||
        ort_passes_run(n->model, &options, NULL) != ORT_OK)
        return -1;
    return changes;
}

/* A session that runs the graph as it is. */
NET_STATIC ort_session *plain(net *n)
{
    ort_session_options options;
    ort_session_options_init(&options);
    options.level = 0;
    return net_session(n, &options, NULL);
}

#endif
