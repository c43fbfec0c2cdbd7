/* fusion.h - a row of a table of rewrites: a small model, what the passes must make of it, and that
 * it computes the same, and that a second run finds nothing.
 */
#ifndef TESTS_UNIT_FUSION_H
#define TESTS_UNIT_FUSION_H

#include <math.h>

#include "expr.h"
#include "op/edit.h"
#include "pass_count.h"
#include "test.h"

enum { CONTRIB = 1, HALF = 2, SESSION = 4 };

typedef struct fusion {
    const char *text;    /* expr.h; x is the input, y an output, and z where it is named */
    const char *dims;    /* of x: "2,3,8", n and m for symbols of 2 and 3 */
    int opset, flags;
    const char *op_type; /* that must be there, or (with '!') must not */
    int left;            /* nodes that are left, or -1 */
    double tolerance;    /* 0: 2e-6 */
} fusion;

NET_STATIC int rewrite_row(net *n, int flags)
{
    return rewrite_with(n, (ort_pass_options){.portable = !(flags & SESSION),
                                              .contrib = flags & CONTRIB});
}

NET_STATIC ort_value *input_of(const fusion *f, int64_t *declared, int *rank)
{
    int64_t dims[8];
    ort_value *x = NULL;
    *rank = 0;
    for (const char *p = f->dims; *p; p += *p == ',') {
        char *end = (char *)(uintptr_t)p + 1;
        dims[*rank] = *p == 'n' ? 2 : *p == 'm' ? 3 : strtoll(p, &end, 10);
        declared[*rank] = *p == 'n' ? -1 : *p == 'm' ? -2 : dims[*rank];
        ++*rank;
        p = end;
    }
    ort_dtype dtype = f->flags & HALF ? ORT_DTYPE_FLOAT16 : ORT_DTYPE_FLOAT;
    if (ort_value_new_tensor(dtype, *rank, dims, &x, NULL))
        return NULL;
    for (int64_t i = 0; i < ort_value_count(x); i++)
        ort_value_set_double(x, i, sin(0.7 * (double)i) * 2);
    return x;
}

NET_STATIC bool same(ort_session *before, ort_session *after, ort_value *x, double tolerance)
{
    ort_compare_options options = {sizeof options, tolerance, tolerance};
    ort_difference difference = ORT_DIFFERENCE_INIT;
    ort_value *y[2] = {0}, *z[2] = {0};
    bool ok = !run_whole(before, &x, y, NULL, NULL) &&
              !run_whole(after, &x, z, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        ok = ok && (!y[i] || (!ort_value_compare(z[i], y[i], &options, &difference, NULL) &&
                              difference.equal));
        ort_value_free(y[i]);
        ort_value_free(z[i]);
    }
    return ok;
}

NET_STATIC void check_fusion(test_state *test, const fusion *f)
{
    net n;
    int rank;
    int64_t dims[8];
    ort_opset contrib = {.domain = "com.microsoft", .version = 1};
    ort_value *x = input_of(f, dims, &rank);
    CHECK(x && net_init(&n, NULL));
    n.model->opsets.data[0].version = f->opset;
    n.model->ir_version = 10;
    if (strstr(f->text, "(ms."))
        CHECK(ort_vec_push(&n.model->opsets, contrib));
    expr e = {.n = &n, .half = f->flags & HALF};
    net_input(&n, "x", f->flags & HALF ? ORT_DTYPE_FLOAT16 : ORT_DTYPE_FLOAT, rank, dims);
    CHECK(expr_build(&e, f->text));
    net_output(&n, "y");
    if (strstr(f->text, "z:(") || strstr(f->text, "z = "))
        net_output(&n, "z");
    ort_session *before = plain(&n);
    int first = before ? rewrite_row(&n, f->flags) : -1;
    int second = first < 0 ? -1 : rewrite_row(&n, f->flags);
    ort_session *after = second == 0 ? plain(&n) : NULL;
    bool not = *f->op_type == '!';
    bool kind = (count_ops(&n, f->op_type + not) > 0) != not;
    bool ok = after && same(before, after, x, f->tolerance > 0 ? f->tolerance : 2e-6) && kind &&
              (f->left < 0 || count_ops(&n, NULL) == f->left);
    if (!ok) {
        ort_node *node;
        printf("# %s, opset %d, flags %d: changes %d then %d, %s, left:", f->text, f->opset,
               f->flags, first, second, after && kind ? "results" : "operators");
        ORT_EACH_NODE(n.model->graph, node)
            printf(" %s", node->op_type);
        printf("\n");
    }
    CHECK(ok);
    ort_value_free(x);
    ort_session_free(before);
    ort_session_free(after);
    net_free(&n);
}

NET_STATIC void check_all(test_state *test, const fusion *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_fusion(test, &list[i]);
}

#define ALL(list) check_all(test, list, sizeof(list) / sizeof *(list))

#endif
