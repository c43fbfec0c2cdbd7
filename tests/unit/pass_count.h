/* pass_count.h - what tests of passes count: nodes, and changes made. Static functions only. */
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

#endif
