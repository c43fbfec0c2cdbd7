/* test_profile.c - profiles: nodes and overhead are the wall time to the nanosecond, bodies,
 * several shapes, warm-up, percentiles, the roofline. */
#include <stdlib.h>

#include "net.h"
#include "profile/profile.h"
#include "test.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static void build_add_relu(net *n)
{
    const float one[4] = {1, 1, 1, 1};
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(-1, 4));
    net_constant(n, "c", ORT_DTYPE_FLOAT, 1, DIMS(4), one);
    net_node(n, "Add", "x c", "y");
    net_node(n, "Softmax", "y", "z");
    net_output(n, "z");
}

static ort_status run_rows(const ort_session *session, ort_profile *profile, int rows, int times)
{
    const ort_run_options options = {.size = sizeof options, .profile = profile};
    ort_value *x = net_floats(2, DIMS(rows, 4), 0, 1);
    ort_status status = ORT_OK;
    for (int i = 0; i < times && status == ORT_OK; i++) {
        ort_value *z = NULL;
        status = run_whole(session, &x, &z, &options, NULL);
        ort_value_free(z);
    }
    ort_value_free(x);
    return status;
}

/* Sums of self times of nodes and of operators; both must be the nodes' share of the wall time. */
static bool adds_up(const ort_profile_summary *s)
{
    uint64_t nodes = 0, operators = 0;
    for (size_t i = 0; i < s->node_count; i++)
        nodes += s->nodes[i].self_ns;
    for (size_t i = 0; i < s->operator_count; i++)
        operators += s->operators[i].self_ns;
    return nodes == s->nodes_ns && operators == s->nodes_ns && s->nodes_ns <= s->wall_ns;
}

static void nodes_and_overhead_are_wall(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_profile *p = NULL;
    ort_profile_summary s;
    CHECK(net_init(&n, NULL));
    build_add_relu(&n);
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK(ort_profile_new(session, NULL, &p, &err) == ORT_OK);
    CHECK(run_rows(session, p, 2, 3) == ORT_OK); /* warm-up */
    ort_profile_start(p);
    CHECK(run_rows(session, p, 2, 10) == ORT_OK);
    CHECK(run_rows(session, p, 5, 4) == ORT_OK);
    CHECK(ort_profile_summarize(p, NULL, &s, &err) == ORT_OK);
    CHECK(s.runs == 14 && s.warmup_runs == 3 && s.latency_ms.count == 14);
    CHECK(adds_up(&s));
    CHECK(s.operator_count == 2 && s.node_count == 4); /* two nodes of two shapes each */
    for (size_t i = 0; i < s.operator_count; i++) {
        CHECK(s.operators[i].nodes == 1 && s.operators[i].calls == 14);
        CHECK(s.operators[i].spread_ms.count == 14);
    }
    for (size_t i = 0; i < s.node_count; i++) {
        const ort_site *site = s.nodes[i].site;
        int64_t rows = site->out[0].shape.dim[0];
        CHECK(s.nodes[i].calls == (rows == 2 ? 10 : 4) && (rows == 2 || rows == 5));
        CHECK(site->shaped && site->out_bytes == 16.0 * (double)rows);
        CHECK(strcmp(site->op->name, "Add") || site->weight_bytes == 16);
    }
    ort_profile_summary_release(&s);
    ort_profile_free(p);
    ort_session_free(session);
    net_free(&n);
}

/* If: its body's nodes have rows of their own, and are no part of its self time. */
static void bodies_count_once(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_profile *p = NULL;
    ort_profile_summary s;
    CHECK(net_init(&n, NULL));
    net_input(&n, "flag", ORT_DTYPE_BOOL, 0, NULL);
    net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(64, 64));
    ort_node *branch = net_node(&n, "If", "flag", "y");
    net_body(&n, branch, "then_branch");
    net_node(&n, "Softmax", "x", "t");
    net_output(&n, "t");
    net_end(&n);
    net_body(&n, branch, "else_branch");
    net_node(&n, "Neg", "x", "e");
    net_output(&n, "e");
    net_end(&n);
    net_output(&n, "y");
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK(ort_profile_new(session, NULL, &p, &err) == ORT_OK);
    ort_profile_start(p);
    const ort_run_options options = {.size = sizeof options, .profile = p};
    ort_value *in[2] = {net_scalar(ORT_DTYPE_BOOL, 1), net_floats(2, DIMS(64, 64), 0, 0.1f)};
    for (int i = 0; i < 5; i++) {
        ort_value *y = NULL;
        CHECK(run_whole(session, in, &y, &options, &err) == ORT_OK);
        ort_value_free(y);
    }
    CHECK(ort_profile_summarize(p, NULL, &s, &err) == ORT_OK);
    CHECK(adds_up(&s) && s.node_count == 2);
    const ort_profile_row *outer = &s.nodes[s.nodes[0].site->depth], *inner;
    inner = &s.nodes[!s.nodes[0].site->depth];
    CHECK_TEXT(outer->site->op->name, "If");
    CHECK_TEXT(inner->site->op->name, "Softmax");
    CHECK(outer->total_ns == outer->self_ns + inner->total_ns && inner->self_ns == inner->total_ns);
    ort_profile_summary_release(&s);
    ort_value_free(in[0]);
    ort_value_free(in[1]);
    ort_profile_free(p);
    ort_session_free(session);
    net_free(&n);
}

static void failed_run_has_no_profile(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_profile *p = NULL;
    char *json = NULL;
    CHECK(net_init(&n, NULL));
    build_add_relu(&n);
    ort_session *session = net_session(&n, NULL, &err);
    CHECK(ort_profile_new(session, NULL, &p, &err) == ORT_OK);
    ort_profile_start(p);
    ort_cancel *cancel = NULL;
    CHECK(ort_cancel_new(&cancel, &err) == ORT_OK);
    ort_cancel_set(cancel);
    const ort_run_options options = {.size = sizeof options, .profile = p, .cancel = cancel};
    ort_value *x = net_floats(2, DIMS(1, 4), 0, 1), *z = NULL;
    CHECK(run_whole(session, &x, &z, &options, &err) == ORT_ERROR_CANCELLED);
    CHECK(ort_profile_report(p, NULL, &json, &err) == ORT_ERROR_RUN && !json);
    ort_value_free(x);
    ort_cancel_free(cancel);
    ort_profile_free(p);
    ort_session_free(session);
    net_free(&n);
}

static void events_are_capped(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_profile *p = NULL;
    ort_profile_summary s;
    const ort_profile_options few = {.size = sizeof few, .max_events = 3};
    CHECK(net_init(&n, NULL));
    build_add_relu(&n);
    ort_session *session = net_session(&n, NULL, &err);
    CHECK(ort_profile_new(session, &few, &p, &err) == ORT_OK);
    ort_profile_start(p);
    CHECK(run_rows(session, p, 2, 10) == ORT_OK);
    CHECK(ort_profile_summarize(p, NULL, &s, &err) == ORT_OK);
    CHECK(p->events.count == 3 && p->dropped_events == 17);
    CHECK(adds_up(&s) && s.nodes[0].calls == 10);
    ort_profile_summary_release(&s);
    ort_profile_free(p);
    ort_session_free(session);
    net_free(&n);
}

static void percentiles(test_state *test)
{
    double numbers[100], one = 3;
    for (int i = 0; i < 100; i++)
        numbers[i] = 100 - i;
    ort_spread s = ort_spread_of(numbers, 100);
    CHECK(s.min == 1 && s.p50 == 50 && s.p90 == 90 && s.p99 == 99 && s.mean == 50.5);
    s = ort_spread_of(&one, 1);
    CHECK(s.min == 3 && s.p50 == 3 && s.p99 == 3 && s.cv == 0);
    CHECK(ort_spread_of(NULL, 0).count == 0);
}

static void roofline(test_state *test)
{
    const ort_peak peak = {.size = sizeof peak,
                           .threads = 1,
                           .gflops = 100,
                           .level_count = 2,
                           .levels = {{500, 1000, 50}, {1000000, SIZE_MAX, 10}}};
    CHECK(ort_peak_bound_ns(&peak, 1000, 0, 0) == 10);    /* arithmetic */
    CHECK(ort_peak_bound_ns(&peak, 1000, 1000, 1000) == 20); /* bytes in the first level */
    CHECK(ort_peak_bound_ns(&peak, 1000, 1e5, 1e5) == 9920); /* 1000 of them, the rest beyond */
    CHECK(ort_peak_bound_ns(&peak, 0, 2000, 1000) == 40); /* in place: twice through the first */
    CHECK(ort_peak_bound_ns(&peak, 0, 0, 0) == 0);
}

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, nodes_and_overhead_are_wall);
    RUN(&test, bodies_count_once);
    RUN(&test, failed_run_has_no_profile);
    RUN(&test, events_are_capped);
    RUN(&test, percentiles);
    RUN(&test, roofline);
    return test.failures != 0;
}
