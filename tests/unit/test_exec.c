/* test_exec.c - sessions: plans, in-place work, bindings, dynamic shapes, control flow, refusals.
 */
#include <malloc.h>
#include <pthread.h>

#include "exec/frame.h"
#include "exec/plan.h"
#include "net.h"
#include "test.h"
#include "workers.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static double at(const ort_value *value, int64_t index)
{
    return value ? ort_value_get_double(value, index) : -1e30;
}

/* x -> Relu -> Add c -> ... : `count` nodes. */
static void build_chain(net *n, int count)
{
    char in[16] = "x", out[16], ins[40];
    const float one[4] = {1, 1, 1, 1};
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(1, 4));
    net_constant(n, "c", ORT_DTYPE_FLOAT, 2, DIMS(1, 4), one);
    for (int i = 0; i < count; i++) {
        snprintf(out, sizeof out, "v%d", i);
        snprintf(ins, sizeof ins, i % 2 ? "%s c" : "%s", in);
        net_node(n, i % 2 ? "Add" : "Relu", ins, out);
        memcpy(in, out, sizeof in);
    }
    net_output(n, in);
}

static void chain_in_binding(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_binding *binding = NULL;
    CHECK(net_init(&n, NULL));
    build_chain(&n, 100);
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    ort_value *x = net_floats(2, DIMS(1, 4), -1, 1);
    CHECK(ort_binding_new(session, &binding, &err) == ORT_OK);
    CHECK(ort_binding_set_input(binding, "x", x, &err) == ORT_OK);
    CHECK(ort_binding_set_input(binding, "nope", x, &err) == ORT_ERROR_USAGE);
    CHECK(ort_binding_run(binding, NULL, NULL) == ORT_OK);
    CHECK(ort_binding_run(binding, NULL, NULL) == ORT_OK);
    struct mallinfo2 before = mallinfo2();
    for (int i = 0; i < 100; i++)
        CHECK(ort_binding_run(binding, NULL, NULL) == ORT_OK);
    struct mallinfo2 after = mallinfo2();
    CHECK(before.uordblks == after.uordblks);
    CHECK(at(ort_binding_output(binding, 0), 0) == 50);
    CHECK(at(ort_binding_output(binding, 0), 3) == 52);
    ort_binding_free(binding);
    ort_value_free(x);
    ort_session_free(session);
    net_free(&n);
}

/* ---- branches side by side */

enum { BRANCHES = 4, ROWS = 7, SIDE = 128 };

static void add_product(net *n, int branch, int step)
{
    char from[24], to[24], names[64];
    float *weights = malloc(sizeof *weights * SIDE * SIDE);
    snprintf(to, sizeof to, "w%d_%d", branch, step);
    for (int i = 0; weights && i < SIDE * SIDE; i++)
        weights[i] = (float)((i * (7 + branch) + step * 31) % 101 - 50) / 400;
    if (weights)
        net_constant(n, to, ORT_DTYPE_FLOAT, 2, DIMS(SIDE, SIDE), weights);
    free(weights);
    snprintf(from, sizeof from, "t%d_%d", branch, step - 1);
    snprintf(names, sizeof names, "%s w%d_%d", step ? from : "trunk", branch, step);
    snprintf(from, sizeof from, "m%d_%d", branch, step);
    net_node(n, "MatMul", names, from);
    snprintf(to, sizeof to, "t%d_%d", branch, step);
    net_node(n, "Sinh", from, to);
}

/* A trunk, chains of products from it that work in place, their steps interleaved, and their sum.
 * One chain reads `i`, which may lie outside of its data. */
static void build_branches(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(ROWS, SIDE));
    net_input(n, "i", ORT_DTYPE_INT64, 1, DIMS(2));
    net_node(n, "Tanh", "x", "trunk");
    for (int step = 0; step < 3; step++)
        for (int b = 0; b < BRANCHES; b++)
            add_product(n, b, step);
    net_node(n, "Gather", "t2_2 i", "picked");
    net_node(n, "Sum", "t0_2 t1_2 t2_2 t3_2 trunk", "y");
    net_output(n, "y");
    net_output(n, "picked");
}

/* A session of that net; the number of groups its plan has after a run with these indices. */
static int run_branches(int threads, ort_value *const in[2], ort_value *out[2], ort_status *status,
                        ort_error *err)
{
    net n;
    int groups = -1;
    ort_env_options options;
    ort_env_options_init(&options);
    options.threads = threads;
    options.own_threads = &workers_at_once;
    if (!net_init(&n, &options))
        return -1;
    build_branches(&n);
    ort_session *session = net_session(&n, NULL, err);
    for (int i = 0; session && i < 20; i++)
        *status = run_whole(session, in, out, NULL, err);
    if (session && session->program->plans[0])
        groups = session->program->plans[0]->group_count;
    ort_session_free(session);
    net_free(&n);
    return groups;
}

static void branches_side_by_side(test_state *test)
{
    static const int counts[] = {2, 3, 8};
    ort_value *in[2] = {net_floats(2, DIMS(ROWS, SIDE), -3, 0.007f),
                        NULL};
    ort_value *want[2] = {0}, *got[2] = {0};
    ort_status status = ORT_OK;
    ort_error err = {0}, alone = {0};
    CHECK(ort_value_new_tensor(ORT_DTYPE_INT64, 1, DIMS(2), &in[1], &err) == ORT_OK);
    memcpy(ort_value_data(in[1]), DIMS(5, -1), 2 * sizeof(int64_t));
    CHECK(run_branches(1, in, want, &status, &err) == 0 && status == ORT_OK);
    for (int i = 0; i < 3; i++) {
        CHECK(run_branches(counts[i], in, got, &status, &err) > 0 && status == ORT_OK);
        for (int o = 0; o < 2; o++)
            CHECK(!memcmp(ort_value_data(got[o]), ort_value_data(want[o]),
                          ort_tensor_bytes(&want[o]->tensor)));
    }
    /* The first failing step's error, whatever ran beside it. */
    memcpy(ort_value_data(in[1]), DIMS(5, ROWS), 2 * sizeof(int64_t));
    CHECK(run_branches(1, in, want, &status, &alone) == 0 && status == ORT_ERROR_RUN);
    CHECK(run_branches(4, in, got, &status, &err) > 0 && status == ORT_ERROR_RUN);
    CHECK_TEXT(err.message, alone.message);
    for (int o = 0; o < 2; o++) {
        ort_value_free(in[o]);
        ort_value_free(want[o]);
        ort_value_free(got[o]);
    }
}

/* Several readers of one value: nothing may be overwritten too early. */
static void in_place_is_safe(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(-1, 3));
    net_node(&n, "Relu", "x", "a");
    net_node(&n, "Neg", "a", "b");
    net_node(&n, "Add", "a b", "c");
    net_node(&n, "Mul", "a a", "d");
    net_node(&n, "Sub", "d b", "e");
    net_node(&n, "Flatten", "e", "f");
    net_node(&n, "Exp", "b", "g");
    net_node(&n, "Add", "f c", "h");
    net_output(&n, "h");
    net_output(&n, "e");
    net_output(&n, "g");
    net_output(&n, "x");
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    for (int rows = 1; rows < 5; rows++) {
        ort_value *x = net_floats(2, DIMS(rows, 3), -2, 1), *y[4] = {0};
        CHECK(run_whole(session, &x, y, NULL, &err) == ORT_OK);
        for (int64_t i = 0; i < ort_value_count(x); i++) {
            double v = at(x, i), a = v > 0 ? v : 0;
            CHECK(at(y[0], i) == a * a + a);
            CHECK(at(y[1], i) == a * a + a);
            CHECK(at(y[2], i) <= 1);
            CHECK(at(y[3], i) == v);
        }
        for (int i = 0; i < 4; i++)
            ort_value_free(y[i]);
        ort_value_free(x);
    }
    ort_session_free(session);
    net_free(&n);
}

static void results_in_place(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    build_chain(&n, 4);
    ort_session *session = net_session(&n, NULL, &err);
    ort_value *x = net_floats(2, DIMS(1, 4), 1, 1), *y = net_floats(2, DIMS(1, 4), 0, 0);
    void *memory = ort_value_data(y);
    CHECK(run_whole(session, &x, &y, NULL, &err) == ORT_OK);
    CHECK(ort_value_data(y) == memory && at(y, 0) == 3);
    /* The same memory as input and output. */
    ort_value *both = x;
    CHECK(run_whole(session, &x, &both, NULL, &err) == ORT_OK);
    CHECK(at(x, 0) == 3 && at(x, 3) == 6);
    ort_value *wrong = net_floats(2, DIMS(1, 5), 0, 0);
    CHECK(run_whole(session, &x, &wrong, NULL, &err) == ORT_ERROR_DATA);
    CHECK(strstr(err.message, "v3") && strstr(err.message, "[1,5]"));
    ort_value_free(wrong);
    ort_value_free(x);
    ort_value_free(y);
    ort_session_free(session);
    net_free(&n);
}

static void refusals(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    net_input(&n, "a", ORT_DTYPE_FLOAT, 2, DIMS(-1, 3));
    net_input(&n, "b", ORT_DTYPE_FLOAT, 2, DIMS(-1, 3));
    net_node(&n, "Add", "a b", "y");
    net_output(&n, "y");
    ort_session *session = net_session(&n, NULL, &err);
    ort_value *a = net_floats(2, DIMS(2, 3), 0, 1), *b = net_floats(2, DIMS(4, 3), 0, 1);
    ort_value *c = net_floats(2, DIMS(2, 4), 0, 1), *d = net_floats(1, DIMS(3), 0, 1), *y = NULL;
    ort_value *i = net_scalar(ORT_DTYPE_INT64, 1);
    CHECK(run_whole(session, (ort_value *[]){a, NULL}, &y, NULL, &err) == ORT_ERROR_USAGE);
    CHECK(strstr(err.message, "'b'") && strstr(err.message, "a ("));
    CHECK(run_whole(session, (ort_value *[]){a, b}, &y, NULL, &err) == ORT_ERROR_DATA);
    CHECK(strstr(err.message, "'b'") && strstr(err.message, "axis 0") && strstr(err.message, "4"));
    CHECK(run_whole(session, (ort_value *[]){a, c}, &y, NULL, &err) == ORT_ERROR_DATA);
    CHECK(strstr(err.message, "axis 1"));
    CHECK(run_whole(session, (ort_value *[]){a, d}, &y, NULL, &err) == ORT_ERROR_DATA);
    CHECK(run_whole(session, (ort_value *[]){i, a}, &y, NULL, &err) == ORT_ERROR_DATA);
    CHECK(strstr(err.message, "int64"));
    CHECK(!y);
    ort_value_free(a);
    ort_value_free(b);
    ort_value_free(c);
    ort_value_free(d);
    ort_value_free(i);
    ort_session_free(session);
    net_free(&n);
}

/* NonZero's result has a shape that depends on data; what follows is dynamic. */
static void dynamic_shapes(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, DIMS(-1));
    net_constant(&n, "flat", ORT_DTYPE_INT64, 1, DIMS(1), (const int64_t[]){-1});
    net_node(&n, "NonZero", "x", "where");
    net_node(&n, "Reshape", "where flat", "index");
    net_node(&n, "Gather", "x index", "picked");
    net_node(&n, "Add", "picked picked", "y");
    net_node(&n, "Shape", "y", "count");
    net_output(&n, "y");
    net_output(&n, "count");
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    for (int round = 0; round < 6; round++) {
        ort_value *x = net_floats(1, DIMS(6), (float)-(round % 3), 1), *y[2] = {0};
        CHECK(run_whole(session, &x, y, NULL, &err) == ORT_OK);
        CHECK(ort_value_count(y[0]) == 5 && at(y[1], 0) == 5);
        CHECK(at(y[0], 4) == 2 * (5 - round % 3));
        ort_value_free(x);
        ort_value_free(y[0]);
        ort_value_free(y[1]);
    }
    ort_session_free(session);
    net_free(&n);
}

static bool runs_batch(ort_session *session, int64_t batch)
{
    ort_error err = {0};
    ort_value *x = net_floats(2, DIMS(batch, 300000), 0, 0.5f), *y = NULL;
    bool ok = !run_whole(session, &x, &y, NULL, &err) && !strcmp(err.message, "") &&
              ort_value_count(y) == batch * 300000 && at(y, 2) == 1.0f;
    ort_value_free(x);
    ort_value_free(y);
    return ok;
}

/* The first run finds its frame when the batch is one or fixed; else that frame goes. */
static void planned_ahead(test_state *test)
{
    static const int64_t declared[] = {-1, 1, 3};
    static const int64_t given[] = {1, 3};
    for (int d = 0; d < 3; d++)
        for (int g = 0; g < 2; g++) {
            net n;
            ort_error err = {0};
            CHECK(net_init(&n, NULL));
            net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(declared[d], 300000));
            net_node(&n, "Abs", "x", "a");
            net_node(&n, "Cos", "a", "c");
            net_node(&n, "Add", "c a", "s");
            net_node(&n, "Sub", "s c", "y");
            net_output(&n, "y");
            ort_session *session = net_session(&n, NULL, &err);
            CHECK_TEXT(err.message, "");
            CHECK(session->idle_count == 1 && session->idle[0]->frames.first->ahead);
            bool fits = declared[d] < 0 || declared[d] == given[g];
            CHECK(runs_batch(session, given[g]) == fits);
            const ort_frame *first = session->idle[0]->frames.first;
            if (fits)
                CHECK(first && !first->ahead && !first->next &&
                      first->plan->given[0].shape.dim[0] == given[g]);
            CHECK(runs_batch(session, given[g]) == fits);
            ort_session_free(session);
            net_free(&n);
        }
}

/* Loop of `trips`: total += x * i, with x and the scale captured from outside. */
static void build_loop(net *n)
{
    const bool yes = true;
    net_input(n, "trips", ORT_DTYPE_INT64, 0, NULL);
    net_input(n, "x", ORT_DTYPE_FLOAT, 1, DIMS(2));
    net_constant(n, "go", ORT_DTYPE_BOOL, 0, NULL, &yes);
    net_constant(n, "scale", ORT_DTYPE_FLOAT, 0, NULL, (const float[]){2});
    net_node(n, "Sub", "x x", "zero");
    net_node(n, "Mul", "x scale", "scaled");
    ort_node *loop = net_node(n, "Loop", "trips go zero", "total all");
    net_body(n, loop, "body");
    net_input(n, "i", ORT_DTYPE_INT64, 0, NULL);
    net_input(n, "cond", ORT_DTYPE_BOOL, 0, NULL);
    net_input(n, "sum", ORT_DTYPE_FLOAT, 1, DIMS(2));
    net_node(n, "Identity", "cond", "cond_out");
    ort_node *cast = net_node(n, "Cast", "i", "f");
    net_int(n, cast, "to", ORT_DTYPE_FLOAT);
    net_node(n, "Mul", "scaled f", "part");
    net_node(n, "Add", "sum part", "sum_out");
    net_output(n, "cond_out");
    net_output(n, "sum_out");
    net_output(n, "part");
    net_end(n);
    net_output(n, "total");
    net_output(n, "all");
}

static void loops(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    build_loop(&n);
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    const int trips[] = {1, 0, 1000, 3};
    for (int k = 0; k < 4; k++) {
        int t = trips[k];
        ort_value *x = net_floats(1, DIMS(2), 1, 1), *m = net_scalar(ORT_DTYPE_INT64, t);
        ort_value *in[2] = {m, x}, *y[2] = {0};
        CHECK(run_whole(session, in, y, NULL, &err) == ORT_OK);
        CHECK(at(y[0], 0) == (double)t * (t - 1) && at(y[0], 1) == 2.0 * t * (t - 1));
        CHECK(ort_value_dims(y[1])[0] == t);
        CHECK(t < 2 || at(y[1], 2 * (t - 1)) == 2.0 * (t - 1));
        ort_value_free(x);
        ort_value_free(m);
        ort_value_free(y[0]);
        ort_value_free(y[1]);
    }
    ort_session_free(session);
    net_free(&n);
}

/* An If in an If; the inner one reads a value of the main graph and one of the outer branch. */
static void nested_branches(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    net_input(&n, "p", ORT_DTYPE_BOOL, 0, NULL);
    net_input(&n, "q", ORT_DTYPE_BOOL, 0, NULL);
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, DIMS(-1));
    net_node(&n, "Neg", "x", "minus");
    ort_node *outer = net_node(&n, "If", "p", "y");
    net_body(&n, outer, "then_branch");
    net_node(&n, "Add", "minus minus", "twice");
    ort_node *inner = net_node(&n, "If", "q", "picked");
    net_body(&n, inner, "then_branch");
    net_node(&n, "Mul", "twice x", "product");
    net_output(&n, "product");
    net_end(&n);
    net_body(&n, inner, "else_branch");
    net_node(&n, "Identity", "twice", "same");
    net_output(&n, "same");
    net_end(&n);
    net_output(&n, "picked");
    net_end(&n);
    net_body(&n, outer, "else_branch");
    net_node(&n, "Identity", "x", "plain");
    net_output(&n, "plain");
    net_end(&n);
    net_node(&n, "Add", "y minus", "z");
    net_output(&n, "z");
    net_output(&n, "y");
    for (int level = 0; level < 3; level += 2) {
        ort_session_options options;
        ort_session_options_init(&options);
        options.level = level;
        ort_session *session = net_session(&n, &options, &err);
        CHECK_TEXT(err.message, "");
        for (int k = 0; k < 8; k++) {
            ort_value *p = net_scalar(ORT_DTYPE_BOOL, k & 1),
                      *q = net_scalar(ORT_DTYPE_BOOL, k & 2);
            ort_value *x = net_floats(1, DIMS(3), 1, 1), *in[3] = {p, q, x}, *y[2] = {0};
            CHECK(run_whole(session, in, y, NULL, &err) == ORT_OK);
            for (int i = 0; i < 3; i++) {
                double v = i + 1, want = !(k & 1) ? v : (k & 2) ? -2 * v * v : -2 * v;
                CHECK(at(y[1], i) == want && at(y[0], i) == want - v);
            }
            ort_value_free(p);
            ort_value_free(q);
            ort_value_free(x);
            ort_value_free(y[0]);
            ort_value_free(y[1]);
        }
        ort_session_free(session);
    }
    net_free(&n);
}

static void sequences(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(-1, 2));
    net_constant(&n, "last", ORT_DTYPE_INT64, 0, NULL, (const int64_t[]){-1});
    net_node(&n, "Relu", "x", "r");
    net_node(&n, "SequenceConstruct", "x r", "pair");
    net_node(&n, "Neg", "r", "minus"); /* may reuse r's memory: the sequence must not see it */
    net_node(&n, "SequenceInsert", "pair minus", "three");
    net_node(&n, "SequenceAt", "three last", "item");
    net_node(&n, "Add", "item item", "y");
    net_output(&n, "y");
    net_output(&n, "three");
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    for (int round = 0; round < 3; round++) {
        ort_value *x = net_floats(2, DIMS(2, 2), -1, 1), *y[2] = {0};
        CHECK(run_whole(session, &x, y, NULL, &err) == ORT_OK);
        CHECK(at(y[0], 3) == -4 && ort_value_count(y[1]) == 3);
        ort_value_free(x);
        CHECK(at(ort_value_item(y[1], 0), 0) == -1);
        CHECK(at(ort_value_item(y[1], 1), 0) == 0 && at(ort_value_item(y[1], 1), 3) == 2);
        CHECK(at(ort_value_item(y[1], 2), 3) == -2);
        ort_value_free(y[0]);
        ort_value_free(y[1]);
    }
    ort_session_free(session);
    net_free(&n);
}

static void count_value(void *arg, const char *name, const ort_value *value)
{
    int *seen = arg;
    if (!strcmp(name, "v1") && at(value, 0) == 2)
        seen[0]++;
    if (!strcmp(name, "v2") && at(value, 0) == 2)
        seen[1]++;
    seen[2]++;
}

static void intermediate_values(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    build_chain(&n, 4);
    ort_session_options options;
    ort_session_options_init(&options);
    options.extra_outputs = (const char *const[]){"v1", NULL};
    ort_session *session = net_session(&n, &options, &err);
    CHECK_TEXT(err.message, "");
    ort_value *x = net_floats(2, DIMS(1, 4), 1, 1), *y[2] = {0};
    CHECK(ort_session_output_count(session) == 2);
    CHECK_TEXT(ort_session_output_name(session, 1), "v1");
    CHECK(run_whole(session, &x, y, NULL, &err) == ORT_OK);
    CHECK(at(y[0], 0) == 3 && at(y[1], 0) == 2);
    ort_value_free(y[0]);
    ort_value_free(y[1]);
    ort_session_free(session);

    options.extra_outputs = (const char *const[]){"v22", NULL};
    CHECK(!net_session(&n, &options, &err) && err.status == ORT_ERROR_USAGE);
    CHECK(strstr(err.message, "v22") && strstr(err.message, "v2'"));

    int seen[3] = {0};
    ort_run_options run = {.size = sizeof run, .on_value = count_value, .callback_arg = seen};
    options.extra_outputs = NULL;
    options.keep_all = true;
    session = net_session(&n, &options, &err);
    CHECK(session);
    y[0] = NULL;
    CHECK(run_whole(session, &x, y, &run, &err) == ORT_OK);
    CHECK(seen[0] == 1 && seen[1] == 1 && seen[2] == 4);
    ort_value_free(y[0]);
    ort_session_free(session);

    memset(seen, 0, sizeof seen);
    options.keep_all = false;
    options.watched = (const char *const[]){"v1", NULL};
    session = net_session(&n, &options, &err);
    y[0] = NULL;
    CHECK(run_whole(session, &x, y, &run, &err) == ORT_OK);
    CHECK(seen[0] == 1 && seen[1] == 0 && seen[2] == 2 && at(y[0], 0) == 3); /* the output too */
    ort_value_free(y[0]);
    ort_session_free(session);
    options.watched = (const char *const[]){"v22", NULL};
    CHECK(!net_session(&n, &options, &err) && err.status == ORT_ERROR_USAGE);
    ort_value_free(x);
    net_free(&n);
}

static void stopping(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_cancel *cancel = NULL;
    CHECK(net_init(&n, NULL));
    build_loop(&n);
    ort_session *session = net_session(&n, NULL, &err);
    ort_value *x = net_floats(1, DIMS(2), 1, 1), *m = net_scalar(ORT_DTYPE_INT64, 1e15);
    ort_value *in[2] = {m, x}, *y[2] = {0};
    CHECK(ort_cancel_new(&cancel, &err) == ORT_OK);
    ort_cancel_set(cancel);
    ort_run_options options = {.size = sizeof options, .cancel = cancel};
    CHECK(run_whole(session, in, y, &options, &err) == ORT_ERROR_CANCELLED);
    options = (ort_run_options){.size = sizeof(ort_run_options), .timeout_s = 0.02};
    ort_status status = run_whole(session, in, y, &options, &err);
    CHECK(status == ORT_ERROR_TIMEOUT);
    CHECK(!y[0] && !y[1]);
    ort_value_set_double(m, 0, 2);
    CHECK(run_whole(session, in, y, NULL, &err) == ORT_OK);
    CHECK(at(y[0], 0) == 2);
    ort_value_free(y[0]);
    ort_value_free(y[1]);
    ort_value_free(x);
    ort_value_free(m);
    ort_cancel_free(cancel);
    ort_session_free(session);
    net_free(&n);
}

static void memory_limit(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_env_options options;
    ort_env_options_init(&options);
    options.max_memory_bytes = 10000;
    CHECK(net_init(&n, &options));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(-1, 8));
    net_node(&n, "Softmax", "x", "s"); /* lies in the arena, and a Transpose needs another place */
    net_node(&n, "Transpose", "s", "t");
    net_node(&n, "Softmax", "t", "y");
    net_output(&n, "y");
    ort_session *session = net_session(&n, NULL, &err);
    ort_value *small = net_floats(2, DIMS(4, 8), 0, 1), *large = net_floats(2, DIMS(4000, 8), 0, 1);
    ort_value *y = NULL;
    CHECK(run_whole(session, &small, &y, NULL, &err) == ORT_OK);
    ort_value_free(y);
    y = NULL;
    CHECK(run_whole(session, &large, &y, NULL, &err) == ORT_ERROR_MEMORY);
    CHECK(strstr(err.message, "limit") && !y);
    ort_value_free(small);
    ort_value_free(large);
    ort_session_free(session);
    net_free(&n);
}

static void default_inputs(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, DIMS(2));
    ort_id w = net_constant(&n, "w", ORT_DTYPE_FLOAT, 1, DIMS(2), (const float[]){10, 20});
    n.graph->values.data[w]->is_input = true;
    (void)!ort_vec_push(&n.graph->inputs, w);
    net_node(&n, "Neg", "w", "minus");
    net_node(&n, "Add", "x minus", "y");
    net_output(&n, "y");
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK(!ort_session_input_optional(session, 0) && ort_session_input_optional(session, 1));
    ort_value *x = net_floats(1, DIMS(2), 1, 1), *y = NULL;
    for (int round = 0; round < 4; round++) {
        ort_value *in[2] = {x, round % 2 ? x : NULL};
        CHECK(run_whole(session, in, &y, NULL, &err) == ORT_OK);
        CHECK(at(y, 0) == (round % 2 ? 0 : -9));
        ort_value_free(y);
        y = NULL;
    }
    ort_value_free(x);
    ort_session_free(session);
    net_free(&n);
}

typedef struct racer {
    ort_session *session;
    int rows;
    bool ok;
} racer;

static void *race(void *arg)
{
    racer *r = arg;
    r->ok = true;
    for (int round = 0; round < 200 && r->ok; round++) {
        int rows = 1 + (r->rows + round) % 3;
        ort_value *x = net_floats(2, DIMS(rows, 3), (float)r->rows, 1), *y[4] = {0};
        r->ok = run_whole(r->session, &x, y, NULL, NULL) == ORT_OK;
        for (int64_t i = 0; r->ok && i < ort_value_count(x); i++)
            r->ok = at(y[0], i) == at(x, i) * at(x, i) + at(x, i);
        ort_value_free(x);
        ort_value_free(y[0]);
    }
    return NULL;
}

static void concurrent_runs(test_state *test)
{
    net n;
    ort_error err = {0};
    racer racers[4];
    pthread_t threads[4];
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(-1, 3));
    net_node(&n, "Mul", "x x", "a");
    net_node(&n, "Add", "a x", "y");
    net_output(&n, "y");
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    for (int i = 0; i < 4; i++) {
        racers[i] = (racer){session, i, false};
        CHECK(pthread_create(&threads[i], NULL, race, &racers[i]) == 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        CHECK(racers[i].ok);
    ort_session_free(session);
    net_free(&n);
}

static void unknown_names(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, DIMS(2));
    net_node(&n, "Zork", "x", "a");
    net_node(&n, "Blorp", "a", "y");
    net_output(&n, "y");
    CHECK(!net_session(&n, NULL, &err) && err.status == ORT_ERROR_UNSUPPORTED);
    CHECK(strstr(err.message, "Zork") && strstr(err.message, "Blorp") && err.count == 2);
    net_free(&n);

    ort_env *env = NULL;
    ort_env_options options;
    ort_env_options_init(&options);
    options.isa = "z80";
    CHECK(ort_env_new(&options, &env, &err) == ORT_ERROR_USAGE && strstr(err.message, "scalar"));

    CHECK(net_init(&n, NULL));
    build_chain(&n, 2);
    ort_session_options session;
    ort_session_options_init(&session);
    session.providers = "tpu";
    CHECK(!net_session(&n, &session, &err) && err.status == ORT_ERROR_USAGE);
    CHECK(strstr(err.message, "cpu"));
    session.providers = NULL;
    session.disable = (const char *const[]){"constant_folds", NULL};
    CHECK(!net_session(&n, &session, &err) && err.status == ORT_ERROR_USAGE);
    CHECK(strstr(err.message, "constant_folds") && strstr(err.message, "constant_fold'"));
    net_free(&n);
}

static void single_operator(test_state *test)
{
    ort_env *env = NULL;
    ort_error err = {0};
    ort_value *x = net_floats(2, DIMS(2, 3), 0, 1), *y = NULL;
    const int64_t perm[] = {1, 0};
    ort_attribute_spec spec = {.name = "perm", .kind = 'I', .ints = perm, .count = 2};
    CHECK(ort_env_new(NULL, &env, &err) == ORT_OK);
    CHECK(ort_op_run(env, "", "Transpose", 0, &spec, 1, &x, 1, &y, 1, &err) == ORT_OK);
    CHECK(ort_value_dims(y)[0] == 3 && at(y, 1) == 3);
    ort_value_free(y);
    CHECK(ort_op_run(env, "", "Zork", 0, NULL, 0, &x, 1, &y, 1, &err) == ORT_ERROR_UNSUPPORTED);
    CHECK(!y);
    ort_value_free(x);
    ort_env_free(env);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, chain_in_binding);
    RUN(test, branches_side_by_side);
    RUN(test, in_place_is_safe);
    RUN(test, results_in_place);
    RUN(test, refusals);
    RUN(test, dynamic_shapes);
    RUN(test, planned_ahead);
    RUN(test, loops);
    RUN(test, nested_branches);
    RUN(test, sequences);
    RUN(test, intermediate_values);
    RUN(test, stopping);
    RUN(test, memory_limit);
    RUN(test, default_inputs);
    RUN(test, concurrent_runs);
    RUN(test, unknown_names);
    RUN(test, single_operator);
    return test->failures != 0;
}
