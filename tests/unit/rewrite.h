/* rewrite.h - passes on small graphs: run, run again, the same results. Static functions only. */
#ifndef TESTS_UNIT_REWRITE_H
#define TESTS_UNIT_REWRITE_H

#include "expr.h"
#include "pass_count.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* Changes that the passes of files make. */
NET_STATIC int rewrite(net *n, bool contrib)
{
    return rewrite_with(n, (ort_pass_options){.portable = true, .contrib = contrib});
}

/* Rewritten twice, the second time without a change, the model computes what it did. */
NET_STATIC bool holds(net *n, bool contrib, ort_value *x, double tolerance)
{
    ort_compare_options options = {sizeof options, tolerance, tolerance};
    ort_difference difference = ORT_DIFFERENCE_INIT;
    ort_value *y[2] = {0}, *z[2] = {0};
    ort_session *before = plain(n);
    bool ok = before && rewrite(n, contrib) >= 0 && rewrite(n, contrib) == 0;
    ort_session *after = plain(n);
    ok = ok && after && !run_whole(before, &x, y, NULL, NULL) &&
         !run_whole(after, &x, z, NULL, NULL) &&
         !ort_value_compare(z[0], y[0], &options, &difference, NULL) && difference.equal;
    ort_value_free(x);
    for (int i = 0; i < 2; i++) {
        ort_value_free(y[i]);
        ort_value_free(z[i]);
    }
    ort_session_free(before);
    ort_session_free(after);
    return ok;
}

NET_STATIC ort_node *node_of(net *n, const char *op_type)
{
    ort_node *node;
    ORT_EACH_NODE(n->model->graph, node)
        if (!strcmp(node->op_type, op_type))
            return node;
    return NULL;
}

NET_STATIC void ints(net *n, const char *name, int64_t count, const int64_t *list)
{
    net_constant(n, name, ORT_DTYPE_INT64, 1, &count, list);
}

/* A net as text (expr.h); what its last statement names are outputs, unless it makes something. */
NET_STATIC void net_text(net *n, const char *text)
{
    const char *last = strrchr(text, ';');
    last = last ? last + 1 + strspn(last + 1, " ") : text;
    if (strpbrk(last, ":#="))
        last += strlen(last);
    expr e = {.n = n, .large = true};
    if (!expr_build(&e, ort_arena_strndup(&n->model->arena, text, (size_t)(last - text)))) {
        printf("# no net: %s\n", text);
        abort();
    }
    for (; *last; last += strspn(last, ", ")) {
        char name[64];
        size_t length = strcspn(last, ", ");
        snprintf(name, sizeof name, "%.*s", (int)length, last);
        net_output(n, name);
        last += length;
    }
}

/* The operators of the main graph in order, as "Conv Relu". */
NET_STATIC const char *net_ops(const net *n)
{
    static char text[1024];
    ort_node *node;
    text[0] = '\0';
    ORT_EACH_NODE(n->model->graph, node)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? " " : "",
                 node->op_type);
    return text;
}

NET_STATIC void net_free_values(ort_value **values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ort_value_free(values[i]);
}

/* Do both sessions give the same on made-up inputs? */
NET_STATIC bool net_agree(ort_session *a, ort_session *b, double tolerance)
{
    ort_compare_options options = {sizeof options, tolerance, tolerance};
    ort_value *x[8] = {0}, *y[8] = {0}, *z[8] = {0};
    size_t ins = ort_session_input_count(a), outs = ort_session_output_count(a);
    bool ok = ins <= 8 && outs <= 8 && !ort_session_random_inputs(a, 7, x, ins, NULL) &&
              !run_whole(a, x, y, NULL, NULL) && !run_whole(b, x, z, NULL, NULL);
    for (size_t i = 0; i < outs && ok; i++) {
        ort_difference difference = ORT_DIFFERENCE_INIT;
        ok = !ort_value_compare(z[i], y[i], &options, &difference, NULL) && difference.equal;
    }
    net_free_values(x, 8);
    net_free_values(y, 8);
    net_free_values(z, 8);
    return ok;
}

/* What these passes make of a net: its operators; "" when they fail, a second run finds more, or
 * the results differ. */
NET_STATIC const char *net_rewritten_for(net *n, const char *const *only, bool contrib,
                                         size_t growth_bytes, double tolerance)
{
    ort_pass_options options = {.only = only, .portable = true, .contrib = contrib,
                                .growth_bytes = growth_bytes};
    ort_session *before = plain(n);
    bool ok = before && rewrite_with(n, options) >= 0 && rewrite_with(n, options) == 0;
    ort_session *after = ok ? plain(n) : NULL;
    ok = after && net_agree(before, after, tolerance);
    ort_session_free(before);
    ort_session_free(after);
    return ok ? net_ops(n) : "";
}

NET_STATIC const char *net_rewritten(net *n, const char *const *only, size_t growth_bytes,
                                     double tolerance)
{
    return net_rewritten_for(n, only, false, growth_bytes, tolerance);
}

typedef struct net_case {
    const char *text, *ops; /* statements; operators afterwards */
    int opset;              /* 0: the net's own */
} net_case;

/* NULL when every case comes out as it says, else a line on the first that doesn't. */
NET_STATIC const char *net_cases(const net_case *cases, size_t count, bool contrib,
                                 double tolerance)
{
    static char why[1400];
    for (size_t i = 0; i < count; i++) {
        net n;
        if (!net_init(&n, NULL))
            return "memory";
        if (cases[i].opset)
            n.model->opsets.data[0].version = cases[i].opset;
        net_text(&n, cases[i].text);
        const char *ops = net_rewritten_for(&n, NULL, contrib, 0, tolerance);
        bool same = !strcmp(ops, cases[i].ops);
        if (!same)
            snprintf(why, sizeof why, "case %zu: '%s', expected '%s'", i, ops, cases[i].ops);
        net_free(&n);
        if (!same)
            return why;
    }
    return NULL;
}

/* All cases of a table; with com.microsoft allowed. */
#define CHECK_CASES(cases, tolerance) CHECK_CASES_WITH(cases, false, tolerance)
#define CHECK_CONTRIB_CASES(cases, tolerance) CHECK_CASES_WITH(cases, true, tolerance)
#define CHECK_CASES_WITH(cases, contrib, tolerance)                                                \
    do {                                                                                           \
        const char *why_ =                                                                         \
            net_cases(cases, sizeof(cases) / sizeof *(cases), contrib, tolerance);                 \
        CHECK_TEXT(why_ ? why_ : "", "");                                                          \
    } while (0)

#endif
