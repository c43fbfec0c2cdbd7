/* levels.h - nets of unit tests as sessions of one level, one tier and some threads, compared. */
#ifndef TESTS_UNIT_LEVELS_H
#define TESTS_UNIT_LEVELS_H

#include "net.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

NET_STATIC int count_ops(const ort_session *session, const char *op_type)
{
    ort_node *node;
    int count = 0;
    ORT_EACH_NODE(session->model->graph, node)
        count += !strcmp(node->op_type, op_type);
    return count;
}

NET_STATIC void set_ints(net *n, ort_node *node, const char *name, const int64_t *ints,
                         size_t count)
{
    ort_attr attr = {.name = name, .type = ORT_ATTR_INTS, .ints = ints, .count = count};
    (void)!ort_node_set_attr(n->graph, node, &attr, NULL);
}

NET_STATIC ort_session *at_level(net *n, int level, ort_error *err)
{
    ort_session_options options;
    ort_session_options_init(&options);
    options.level = level;
    return net_session(n, &options, err);
}

NET_STATIC bool same(ort_session *a, ort_session *b, ort_value *x, double tolerance)
{
    ort_value *y = NULL, *z = NULL;
    ort_compare_options options = {sizeof options, tolerance, tolerance};
    ort_difference difference = ORT_DIFFERENCE_INIT;
    bool ok = !run_whole(a, &x, &y, NULL, NULL) && !run_whole(b, &x, &z, NULL, NULL) &&
              !ort_value_compare(y, z, &options, &difference, NULL) && difference.equal;
    ort_value_free(y);
    ort_value_free(z);
    return ok;
}

#endif
