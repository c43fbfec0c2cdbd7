/* Divided graphs: the borders that the graph allows, and the results that the host alone gives.
 * Nodes whose names begin with 'd' go to a device of the tests (far_provider.h). */
#include "divided.h"
#include "test.h"

static const struct {
    const char *what, *graph;
    int turns, borders, copied; /* copied: by a run; ran: nodes on the device */
    int ran;
} cases[] = {
    {"one part", "Relu x -> d1; Neg d1 -> d2 => d2", 1, 2, 2, 2},
    {"diamond", "Relu x -> d1; Neg d1 -> c1; Abs d1 -> d2; Add c1 d2 -> d3 => d3", 3, 4, 4, 3},
    {"no cycle", "Relu x -> d1; Neg d1 -> c1; Add d1 c1 -> d2 => d2", 3, 4, 4, 2},
    {"ping-pong", "Relu x -> d1; Neg d1 -> c1; Abs c1 -> d2; Neg d2 -> c2 => c2", 4, 4, 4, 2},
    {"two chains in turns",
     "Relu x -> d1; Neg x -> c1; Neg d1 -> d2; Abs c1 -> c2; Abs d2 -> d3; Neg c2 -> c3 => d3 c3",
     2, 2, 2, 3},
    {"a constant for both", "Add x w -> d1; Mul d1 w -> c1; Sub c1 w -> d2 => d2", 3, 4, 4, 2},
    {"one copy for two readers", "Neg x -> c1; Relu c1 -> d1; Abs c1 -> d2; Add d1 d2 -> d3 => d3",
     2, 2, 2, 3},
    {"a value that leaves and goes on", "Relu x -> d1; Neg d1 -> d2 => d1 d2", 1, 3, 3, 2},
    {"one copy for two parts",
     "Neg x -> c1; Relu c1 -> d1; Abs d1 -> c2; Add c2 c1 -> d2; Neg d2 -> c3 => c3", 5, 4, 4, 2},
    {"stays there between parts",
     "Relu x -> d1; Neg d1 -> d2; Abs d2 -> c1; Mul c1 d1 -> d3 => d3", 3, 4, 4, 3},
    {"an input that is an output's", "Relu x -> d1; Neg x -> c1; Add c1 d1 -> c2 => c2 d1", 2, 2,
     2, 1},
    {"claimed by none", "Relu x -> c1; Neg c1 -> c2 => c2", 1, 0, 0, 0},
};

static void divided(test_state *test)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        net n;
        ort_error err = {0};
        ort_tally tally;
        CHECK(net_init(&n, NULL));
        build(&n, cases[i].graph);
        ort_session *host = session_of(&n, NULL, false, &err);
        ort_session *both = session_of(&n, "far:cost=off,cpu", false, &err);
        ort_session *all = session_of(&n, "far:cost=off,cpu", true, &err);
        snprintf(test->why, sizeof test->why, "%s", cases[i].what);
        CHECK(host && both && all);
        CHECK(ort_partition_tally(&both->partition, both->model->graph, &tally, &err) == ORT_OK);
        for (int64_t rows = 1; rows < 5; rows += 2) { /* a plan for each */
            far = (far_counts){.open = far.open};
            CHECK_TEXT(same_results(both, host, rows, &err) ? "" : err.message[0] ? err.message
                                                                                   : "differ", "");
            CHECK(far.copied == cases[i].copied && far.ran == cases[i].ran);
            CHECK(same_results(both, host, rows, &err) && same_results(all, host, rows, &err));
        }
        CHECK(tally.turns == cases[i].turns);
        CHECK(tally.borders == cases[i].borders);
        ort_session_free(host);
        ort_session_free(both);
        ort_session_free(all);
        net_free(&n);
        CHECK(far.open == 0);
    }
}

/* Bodies run on the host, and read what a device computed. */
static void control_flow(test_state *test)
{
    static const bool yes = true;
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 2, (const int64_t[]){-1, 4});
    net_constant(&n, "yes", ORT_DTYPE_BOOL, 0, NULL, &yes);
    net_node(&n, "Relu", "x", "d1");
    net_node(&n, "Identity", "yes", "c0");
    ort_node *node = net_node(&n, "If", "c0", "d2");
    for (int b = 0; b < 2; b++) {
        net_body(&n, node, b ? "else_branch" : "then_branch");
        net_node(&n, b ? "Neg" : "Abs", "d1", b ? "d_else" : "d_then");
        net_output(&n, b ? "d_else" : "d_then");
        net_end(&n);
    }
    net_node(&n, "Neg", "d2", "d3");
    net_output(&n, "d3");
    ort_session *host = session_of(&n, NULL, false, &err);
    ort_session *both = session_of(&n, "far:cost=off,cpu", false, &err);
    CHECK_TEXT(err.message, "");
    CHECK(host && both && same_results(both, host, 3, &err));
    ort_session_free(host);
    ort_session_free(both);
    net_free(&n);
}

/* What is known only while running stays on the host, and what it feeds. */
static void open_shapes(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    build(&n, "Relu x -> d1; NonZero d1 -> d2; Cast d2 -> c1; Neg c1 -> d3 => d3");
    net_int(&n, n.graph->nodes.data[2], "to", ORT_DTYPE_FLOAT);
    ort_session *host = session_of(&n, NULL, false, &err);
    ort_session *both = session_of(&n, "far:cost=off,cpu", false, &err);
    CHECK_TEXT(err.message, "");
    far = (far_counts){0};
    CHECK(host && both && same_results(both, host, 2, &err) && far.ran == 1);
    ort_session_free(host);
    ort_session_free(both);
    net_free(&n);
}

/* Positions follow from shapes: a plan has them, whoever would claim the nodes. */
static void positions(test_state *test)
{
    static const int64_t numbers[2] = {0, 1};
    net n;
    ort_error err = {0};
    ort_tally tally;
    CHECK(net_init(&n, NULL));
    net_constant(&n, "zero", ORT_DTYPE_INT64, 0, NULL, &numbers[0]);
    net_constant(&n, "one", ORT_DTYPE_INT64, 0, NULL, &numbers[1]);
    net_constant(&n, "axis", ORT_DTYPE_INT64, 1, (const int64_t[]){1}, &numbers[1]);
    build(&n, "Shape x -> s1; Gather s1 zero -> s2; Range zero s2 one -> d1; Cast d1 -> d2; "
              "Unsqueeze d2 axis -> d3; Relu x -> d4; Mul d3 d4 -> d5 => d5");
    net_int(&n, n.graph->nodes.data[3], "to", ORT_DTYPE_FLOAT);
    ort_session *host = session_of(&n, NULL, false, &err);
    ort_session *both = session_of(&n, "far:cost=off,cpu", false, &err);
    CHECK_TEXT(err.message, "");
    CHECK(ort_partition_tally(&both->partition, both->model->graph, &tally, &err) == ORT_OK);
    CHECK(tally.nodes[0] == 2 && tally.nodes[1] == 0 && tally.borders == 2);
    CHECK(host && both && same_results(both, host, 3, &err));
    CHECK(same_results(both, host, 5000, &err)); /* more than a plan computes */
    ort_session_free(host);
    ort_session_free(both);
    net_free(&n);
}

/* By cost: a lone node isn't worth two copies, a long chain is. */
static void by_cost(test_state *test)
{
    static const struct {
        const char *graph;
        int far_nodes;
    } sums[] = {
        {"Relu x -> d1; Neg d1 -> c1 => c1", 0},
        {"Relu x -> d1; Neg d1 -> d2; Abs d2 -> d3; Neg d3 -> d4; Abs d4 -> d5; Neg d5 -> d6; "
         "Abs d6 -> d7; Neg d7 -> d8 => d8", 8},
        {"Relu x -> d1; Neg d1 -> c1; Abs c1 -> d2; Neg d2 -> c2; Abs c2 -> d3 => d3", 0},
    };
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        net n;
        ort_error err = {0};
        ort_tally tally;
        CHECK(net_init(&n, NULL));
        build(&n, sums[i].graph);
        ort_session *both = session_of(&n, "far,cpu", false, &err);
        CHECK_TEXT(err.message, "");
        CHECK(ort_partition_tally(&both->partition, both->model->graph, &tally, &err) == ORT_OK);
        CHECK(tally.nodes[0] == sums[i].far_nodes);
        ort_session_free(both);
        net_free(&n);
    }
}

/* Without the host in the list: one line, or an error where strict. */
static void refusals(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_session_options options;
    ort_session_options_init(&options);
    CHECK(net_init(&n, NULL));
    build(&n, "Relu x -> d1; Neg d1 -> c1 => c1");
    n.env->providers = far_table();
    options.level = 0;
    options.providers = "far";
    ort_session *session = net_session(&n, &options, &err);
    CHECK(session);
    ort_session_free(session);
    options.strict = true;
    CHECK(!net_session(&n, &options, &err) && err.status == ORT_ERROR_GATE);
    CHECK(strstr(err.message, "'far' doesn't run 1 nodes; first node 'c1' (Neg): its name"));
    options.providers = "far,cpu";
    session = net_session(&n, &options, &err);
    CHECK(session);
    ort_session_free(session);
    net_free(&n);
}

/* Each call fails once: a status, nothing left open, and the next run is right. */
static void failures(test_state *test)
{
    for (int at = 1; at < 40; at++) {
        net n;
        ort_error err = {0};
        CHECK(net_init(&n, NULL));
        build(&n, cases[3].graph);
        far = (far_counts){.fail_at = at};
        ort_session *host = session_of(&n, NULL, false, &err);
        ort_session *both = session_of(&n, "far:cost=off,cpu", false, &err);
        CHECK(host && both); /* a device that fails to open is left out */
        for (int i = 0; i < 4; i++) {
            bool before = far.calls >= at;
            CHECK(same_results(both, host, 2, &err) ||
                  (!before && far.calls >= at && err.status == ORT_ERROR_DEVICE));
        }
        ort_session_free(host);
        ort_session_free(both);
        net_free(&n);
        CHECK(far.open == 0);
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, divided);
    RUN(&test, control_flow);
    RUN(&test, open_shapes);
    RUN(&test, positions);
    RUN(&test, by_cost);
    RUN(&test, refusals);
    RUN(&test, failures);
    return test.failures != 0;
}
