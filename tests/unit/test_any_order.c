/* test_any_order.c - who watches values without caring for the order of their numbers sees results
 * of convolutions where they lie, in blocks of channels, where no channel fills a block up: the
 * same numbers, as often, with the name of the value. What is seen so keeps no convolution out of
 * the blocked layout. */
#include "expr.h"
#include "levels.h"
#include "op/edit.h"
#include "test.h"

enum { MOST = 64 * 12 * 12, WATCHED = 3 };

static const char *const names[WATCHED + 1] = {"whole", "filled", "plain", NULL};

/* Channels: 64 are blocks of any size, 20 none; what others read plain is shown as it is. */
static bool build(net *n)
{
    static const struct {
        const char *in, *weight, *out;
        int64_t from, to;
    } convolutions[] = {{"x", "w0", "first", 16, 64}, {"first", "w1", "whole", 64, 64},
                        {"whole", "w2", "filled", 64, 20}, {"filled", "w3", "plain", 20, 64}};
    static float numbers[64 * 64 * 9];
    for (int i = 0; i < 64 * 64 * 9; i++)
        numbers[i] = (float)(i * 7919 % 1009 - 504) / 16384;
    if (!net_init(n, NULL))
        return false;
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 16, 14, 14));
    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++) {
        char ins[64];
        net_constant(n, convolutions[i].weight, ORT_DTYPE_FLOAT, 4,
                     DIMS(convolutions[i].to, convolutions[i].from, 3, 3), numbers);
        snprintf(ins, sizeof ins, "%s %s", convolutions[i].in, convolutions[i].weight);
        static const int64_t ones[4] = {1, 1, 1, 1};
        const ort_attr pads = ort_attr_ints("pads", ones, 4);
        ort_edit_set_attr(n->graph, net_node(n, "Conv", ins, convolutions[i].out), &pads, NULL);
    }
    net_node(n, "Flatten", "plain", "y");
    net_output(n, "y");
    return true;
}

typedef struct seen {
    float numbers[WATCHED][MOST * 2];
    int64_t count[WATCHED];
    int rank[WATCHED], times[WATCHED];
} seen;

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void see(void *arg, const char *name, const ort_value *value)
{
    seen *s = arg;
    for (int i = 0; i < WATCHED; i++) {
        if (strcmp(name, names[i]))
            continue;
        s->times[i]++;
        s->rank[i] = value->tensor.shape.rank;
        s->count[i] = ort_tensor_count(&value->tensor);
        if (s->count[i] <= MOST * 2)
            memcpy(s->numbers[i], value->tensor.data, (size_t)s->count[i] * sizeof(float));
        qsort(s->numbers[i], (size_t)s->count[i], sizeof(float), by_size);
    }
}

static bool run_seen(const net *n, ort_env *env, bool any_order, seen *s)
{
    ort_session_options options;
    ort_run_options run;
    ort_session *session = NULL;
    ort_error err = {0};
    ort_session_options_init(&options);
    ort_run_options_init(&run);
    options.watched = names;
    run.on_value = see;
    run.callback_arg = s;
    memset(s, 0, sizeof *s);
    if ((any_order ? ort_exec_session_watching : ort_exec_session_new)(env, n->model, &options,
                                                                       &session, &err) != ORT_OK)
        return false;
    ort_value *x = net_floats(4, DIMS(1, 16, 14, 14), -2, 0.001), *y = NULL;
    const bool ran = run_whole(session, &x, &y, &run, &err) == ORT_OK;
    ort_value_free(x);
    ort_value_free(y);
    ort_exec_session_release(session);
    return ran;
}

static void orders(test_state *test)
{
    static seen plain, loose;
    static const char *const tiers[] = {"scalar", "common", "common256", "avx2", "avx512"};
    net n;
    int in_blocks = 0;
    CHECK(build(&n));
    for (size_t t = 0; t < sizeof tiers / sizeof *tiers; t++) {
        ort_env_options options = ORT_ENV_OPTIONS_INIT;
        ort_env *env = NULL;
        options.isa = tiers[t];
        if (!ort_kernels_get(tiers[t]) || ort_env_new(&options, &env, NULL) != ORT_OK)
            continue;
        CHECK(run_seen(&n, env, false, &plain) && run_seen(&n, env, true, &loose));
        for (int i = 0; i < WATCHED; i++) {
            CHECK(plain.times[i] == 1 && loose.times[i] == 1);
            CHECK(plain.count[i] > 0 && plain.count[i] == loose.count[i]);
            CHECK(!memcmp(plain.numbers[i], loose.numbers[i],
                          (size_t)plain.count[i] * sizeof(float)));
            CHECK(plain.rank[i] == 4);
        }
        CHECK(loose.rank[1] == 4 && loose.rank[2] == 4);
        in_blocks += loose.rank[0] == 5;
        ort_env_free(env);
    }
    CHECK(in_blocks > 0);
    net_free(&n);
}

/* Products too few to pay for a way out of the layout each, but enough for one way in and out. */
static const char chain[] =
    "a = (Conv x #s:64,64,1,1); b = (Conv a #t:64,64,1,1); c = (Conv b #u:%d,64,1,1); d = (Conv c "
    "#v:64,%d,1,1); e = (Conv d #w:64,64,1,1); y = (Conv e #z:64,64,1,1)%s";

/* How many of its convolutions are in the layout; -1: no session. */
static int in_layout(int channels, const char *more, const char *const *watched, bool any_order)
{
    net n;
    char text[400];
    ort_session_options options = ORT_SESSION_OPTIONS_INIT;
    ort_session *session = NULL;
    int count = -1;
    snprintf(text, sizeof text, chain, channels, channels, more);
    if (!net_init(&n, NULL))
        return -1;
    expr e = {.n = &n};
    net_input(&n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 64, 14, 14));
    if (expr_build(&e, text)) {
        net_output(&n, "y");
        if (*more)
            net_output(&n, "r");
        options.watched = watched;
        if ((any_order ? ort_exec_session_watching : ort_exec_session_new)(
                n.env, n.model, &options, &session, NULL) == ORT_OK)
            count = count_ops(session, "BlockedConv");
    }
    ort_exec_session_release(session);
    net_free(&n);
    return count;
}

static void layouts(test_state *test)
{
    static const char *const all[] = {"a", "b", "c", "d", "e", NULL};
    static const char reads[] = "; r = (Softmax a)";
    static const char reads_most[] = "; r = (Sum (Softmax a) (Softmax b) (Softmax d))";
    CHECK(in_layout(64, "", NULL, false) == 6);
    CHECK(in_layout(64, "", all, false) == 0);
    CHECK(in_layout(64, "", all, true) == 6);
    CHECK(in_layout(64, reads, all, true) == 6);
    CHECK(in_layout(64, reads_most, all, true) == 0); /* who gets them out of the layout counts */
    CHECK(in_layout(60, reads, (const char *const[]){"a", "b", "d", "e", NULL}, true) == 6);
    CHECK(in_layout(60, reads, all, true) == 0); /* 60 fill no blocks: shown behind a way out */
}

/* What a session of a small model takes beside its runs' memory, in pages that are there: no huge
 * page, of which it would fill a part. */
static void small_pages(test_state *test)
{
    net n;
    ort_session_options options = ORT_SESSION_OPTIONS_INIT;
    CHECK(net_init(&n, NULL));
    expr e = {.n = &n};
    net_input(&n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 64, 14, 14));
    CHECK(expr_build(&e, "y = (Conv (Conv x #w:64,64,3,3) #v:64,64,3,3)"));
    net_output(&n, "y");
    for (int large = 0; large < 2; large++) {
        ort_session *session = NULL;
        n.model->file_bytes = large ? 1 << 20 : 300 << 10;
        CHECK(ort_exec_session_watching(n.env, n.model, &options, &session, NULL) == ORT_OK);
        CHECK(session && session->model->arena.huge_pages == large);
        ort_exec_session_release(session);
    }
    net_free(&n);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, orders);
    RUN(test, layouts);
    RUN(test, small_pages);
    return test->failures != 0;
}
