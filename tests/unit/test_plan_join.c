/* test_plan_join.c - parts of a Concat are computed in their place where that is safe, and the
 * results are the same wherever it isn't.
 */
#include <math.h>

#include "exec/plan.h"
#include "expr.h"
#include "test.h"
#include "workers.h"

typedef struct join_case {
    const char *text; /* expr.h; y is the output */
    int64_t rows;     /* of x, by 16 columns of float: 64 bytes each */
    int parts;        /* storages that lie within others */
} join_case;

static int parts_of(const ort_plan *plan)
{
    int parts = 0;
    for (int i = 0; i < plan->storage_count; i++)
        parts += plan->storages[i].within >= 0;
    return parts;
}

static ort_session *session_of(net *n, bool keep_all, ort_error *err)
{
    ort_session_options options;
    ort_session_options_init(&options);
    options.level = 0;
    options.keep_all = keep_all; /* every value in a place of its own */
    return net_session(n, &options, err);
}

static bool build(net *n, const join_case *c, int threads)
{
    ort_env_options options;
    ort_env_options_init(&options);
    options.threads = threads;
    options.own_threads = &workers_at_once;
    if (!net_init(n, &options))
        return false;
    expr e = {.n = n};
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, (const int64_t[]){c->rows, 16});
    if (!expr_build(&e, c->text))
        return false;
    net_output(n, "y");
    return true;
}

static bool is_right(const join_case *c, int threads)
{
    net n;
    ort_error err = {0};
    ort_plan *plan = NULL;
    ort_value *x = net_floats(2, (const int64_t[]){c->rows, 16}, -3, 0.1f), *y[2] = {0};
    if (!build(&n, c, threads))
        return false;
    ort_session *session = session_of(&n, false, &err), *apart = session_of(&n, true, &err);
    bool ok = session && apart && !ort_plan_get(session->program, &x, NULL, &plan, &err) &&
              (threads > 1 || parts_of(plan) == c->parts) &&
              !run_whole(session, &x, &y[0], NULL, &err) &&
              !run_whole(apart, &x, &y[1], NULL, &err) &&
              ort_value_count(y[0]) == ort_value_count(y[1]) &&
              !memcmp(ort_value_data(y[0]), ort_value_data(y[1]),
                      (size_t)ort_value_count(y[0]) * sizeof(float));
    if (!ok)
        printf("# %s: %s, %d parts\n", c->text, err.message, plan ? parts_of(plan) : -1);
    ort_plan_drop(plan);
    ort_value_free(x);
    ort_value_free(y[0]);
    ort_value_free(y[1]);
    ort_session_free(session);
    ort_session_free(apart);
    net_free(&n);
    return ok;
}

static void parts_in_their_place(test_state *test)
{
    static const join_case cases[] = {
        {"y = (Transpose (Concat (Neg x) (Abs x) axis=0))", 4, 2},
        {"y = (Transpose (Concat (Neg x) x (Abs x) axis=-2))", 4, 2},     /* x isn't ours */
        {"y = (Transpose (Concat (Concat (Neg x) (Abs x) axis=0) (Exp x) axis=0))", 4, 4},
        {"y = (Neg (Relu (Transpose (Concat (Neg x) (Abs x) axis=0))))", 4, 2},
        {"y = (Transpose (Concat (Neg x) (Abs x) axis=1))", 4, 0},        /* interleaved */
        {"y = (Concat (Neg x) (Abs x) axis=0)", 4, 0},                    /* the caller's memory */
        {"a = (Neg x); y = (Transpose (Concat a a axis=0))", 4, 1},       /* one place alone */
        {"a = (Neg x); k = (Concat a (Abs x) axis=0); "                   /* read later */
         "y = (Add (Transpose k) (ReduceSum (Exp a) keepdims=0))", 4, 1},
        {"a = (Neg x); k = (Concat a (Abs x) axis=0); "
         "y = (Concat (Transpose k) (Transpose (Concat k a axis=0)) axis=1)", 4, 3},
        {"y = (Transpose (Concat (Relu (Neg x)) (Relu (Abs x)) axis=0))", 1, 2},
        {"y = (Transpose (Concat (ReduceSum x [0]) (Abs x) axis=0))", 3, 2},
        {"y = (Transpose (Concat (ReduceSum x) (ReduceSum (Abs x)) axis=0))", 3, 1}, /* 4 bytes */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(is_right(&cases[i], 1));
        CHECK(is_right(&cases[i], 3));
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, parts_in_their_place);
    return test.failures != 0;
}
