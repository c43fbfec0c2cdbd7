/* test_handed_on.c - an If whose branch the shapes of a run decide, and which only hands on what it
 * captures, isn't run: its outputs lie where the captured values do (exec/plan.c). Models that ask
 * for the rank or a size of what they were given have many. Where the branch computes, or the
 * condition is data, the If runs as ever; results are the same.
 */
#include "exec/plan.h"
#include "levels.h"
#include "test.h"

/* c = the first dimension of `value` is 1 */
static void ask(net *n, const char *value, const char *c)
{
    char shape[32], one[32];
    snprintf(shape, sizeof shape, "%s_shape", c);
    snprintf(one, sizeof one, "%s_first", c);
    net_node(n, "Shape", value, shape);
    char in[80];
    snprintf(in, sizeof in, "%s zero", shape);
    net_node(n, "Gather", in, one);
    snprintf(in, sizeof in, "%s one", one);
    net_node(n, "Equal", in, c);
}

/* out = condition ? Squeeze(value) : then_else(value) */
static void choose(net *n, const char *condition, const char *value, const char *otherwise,
                   const char *out)
{
    char name[64];
    snprintf(name, sizeof name, "%s_t", out);
    ort_node *node = net_node(n, "If", condition, out);
    net_body(n, node, "then_branch");
    char in[64];
    snprintf(in, sizeof in, "%s axes", value);
    net_node(n, "Squeeze", in, name);
    net_output(n, name);
    net_end(n);
    snprintf(name, sizeof name, "%s_e", out);
    net_body(n, node, "else_branch");
    net_node(n, otherwise, value, name);
    net_output(n, name);
    net_end(n);
}

static void begin(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(-1, 3));
    net_constant(n, "zero", ORT_DTYPE_INT64, 0, NULL, (const int64_t[]){0});
    net_constant(n, "one", ORT_DTYPE_INT64, 0, NULL, (const int64_t[]){1});
    net_constant(n, "axes", ORT_DTYPE_INT64, 1, DIMS(1), (const int64_t[]){0});
    ask(n, "x", "c");
}

static double at(const ort_value *value, int64_t i)
{
    return ort_tensor_get_f64(&value->tensor, i);
}

static int ifs_of(ort_session *session, ort_value *x)
{
    ort_plan *plan = NULL;
    int count = 0;
    if (ort_plan_get(session->program, &x, NULL, &plan, NULL))
        return -1;
    for (int i = 0; i < plan->step_count; i++)
        count += !strcmp(plan->steps[i].step->op->name, "If");
    ort_plan_drop(plan);
    return count;
}

/* r = -x; y = r in another shape; w = -y may not take the place of r, which z reads behind it. */
static void check_values(test_state *test, net *n, int level, int64_t rows, int ifs, double factor)
{
    ort_error err = {0};
    ort_session *session = at_level(n, level, &err);
    CHECK_TEXT(err.message, "");
    ort_value *x = net_floats(2, DIMS(rows, 3), 1, 1), *out[3] = {0};
    for (int round = 0; session && round < 2; round++) {
        CHECK(ifs_of(session, x) == ifs);
        CHECK(run_whole(session, &x, out, NULL, &err) == ORT_OK);
        CHECK_TEXT(err.message, "");
        CHECK(out[0]->tensor.shape.rank == (rows == 1 ? 1 : 2));
        for (int i = 0; i < 3 * rows; i++) {
            double v = i + 1, y = factor * v;
            CHECK(at(out[0], i) == y && at(out[1], i) == -y && at(out[2], i) == -v - y);
        }
        for (int o = 0; o < 3; o++) {
            ort_value_free(out[o]);
            out[o] = NULL;
        }
    }
    ort_value_free(x);
    ort_session_free(session);
}

static void end(net *n)
{
    net_node(n, "Neg", "y", "w");
    net_node(n, "Add", "r w", "z");
    net_output(n, "y");
    net_output(n, "w");
    net_output(n, "z");
}

/* ifs: that run, given one row and given two; factor: of y over x there. */
static const struct one_if {
    const char *value, *otherwise;
    int ifs[2];
    double factor[2];
} cases[] = {
    {"r", "Identity", {0, 0}, {-1, -1}},
    {"x", "Identity", {0, 0}, {1, 1}}, /* what the caller gave is handed on to the caller */
    {"r", "Neg", {0, 1}, {-1, 1}},     /* the other branch computes */
};

static void one_if(test_state *test)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        net n;
        CHECK(net_init(&n, NULL));
        begin(&n);
        net_node(&n, "Neg", "x", "r");
        choose(&n, "c", cases[i].value, cases[i].otherwise, "y");
        end(&n);
        for (int level = 0; level < 3; level += 2)
            for (int k = 0; k < 2; k++)
                check_values(test, &n, level, k + 1, cases[i].ifs[k], cases[i].factor[k]);
        net_free(&n);
    }
}

/* An If in the branch asks for the shape of what the branch was handed. */
static void nested(test_state *test)
{
    net n;
    CHECK(net_init(&n, NULL));
    begin(&n);
    net_node(&n, "Neg", "x", "r");
    ort_node *outer = net_node(&n, "If", "c", "y");
    net_body(&n, outer, "then_branch");
    ask(&n, "r", "again");
    choose(&n, "again", "r", "Identity", "picked");
    net_output(&n, "picked");
    net_end(&n);
    net_body(&n, outer, "else_branch");
    net_node(&n, "Identity", "r", "plain");
    net_output(&n, "plain");
    net_end(&n);
    end(&n);
    for (int level = 0; level < 3; level += 2) {
        check_values(test, &n, level, 1, 0, -1);
        check_values(test, &n, level, 3, 0, -1);
    }
    net_free(&n);
}

/* Who watches values inside of the branch has it run. */
static void count_inner(void *arg, const char *name, const ort_value *value)
{
    (void)value;
    *(int *)arg += !strcmp(name, "inside");
}

static void watched(test_state *test)
{
    net n;
    ort_node *node = NULL;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    begin(&n);
    net_node(&n, "Neg", "x", "r");
    for (int branch = 0; branch < 2; branch++) {
        if (branch == 0)
            node = net_node(&n, "If", "c", "y");
        net_body(&n, node, branch ? "else_branch" : "then_branch");
        net_node(&n, branch ? "Abs" : "Neg", "r", branch ? "inside" : "other");
        net_node(&n, "Identity", "r", branch ? "y_e" : "y_t");
        net_output(&n, branch ? "y_e" : "y_t");
        net_end(&n);
    }
    end(&n);
    ort_session_options options;
    ort_session_options_init(&options);
    options.level = 0;
    options.watched = (const char *const[]){"inside", NULL};
    ort_session *session = net_session(&n, &options, &err);
    CHECK_TEXT(err.message, "");
    int seen = 0;
    ort_run_options run;
    ort_run_options_init(&run);
    run.on_value = count_inner;
    run.callback_arg = &seen;
    ort_value *x = net_floats(2, DIMS(2, 3), 1, 1), *out[3] = {0};
    CHECK(session && run_whole(session, &x, out, &run, &err) == ORT_OK);
    CHECK(seen == 1);
    for (int o = 0; o < 3; o++)
        ort_value_free(out[o]);
    ort_value_free(x);
    ort_session_free(session);
    net_free(&n);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, one_if);
    RUN(test, nested);
    RUN(test, watched);
    return test->failures != 0;
}
