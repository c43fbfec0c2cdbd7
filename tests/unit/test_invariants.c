/* test_invariants.c - a graph or a plan that is broken on purpose is told of, in each way that it
 * can be; and in builds for development the pass that breaks one is named. */
#include "exec/plan.h"
#include "graph/invariants.h"
#include "graph/uses.h"
#include "op/edit.h"
#include "pass/pass.h"
#include "rewrite.h"
#include "test.h"

#define TEXT "x:4,8; r = (Relu x); e = (Exp r); a = (Add e r); y = (Neg a); y"

static void break_producer(ort_graph *g)
{
    g->producers.data[ort_graph_find_value(g, "e")] = 0;
}

static void break_slot(ort_graph *g)
{
    g->values.data[ort_graph_find_value(g, "e")]->producer_slot = 1;
}

static void break_count(ort_graph *g)
{
    g->values.data[ort_graph_find_value(g, "r")]->use_count = 1;
}

static void break_order(ort_graph *g)
{
    ort_id first = g->order.data[0];
    g->order.data[0] = g->order.data[1];
    g->order.data[1] = first;
}

static void lose_node(ort_graph *g)
{
    g->order.count--;
}

static void double_node(ort_graph *g)
{
    (void)!ort_vec_push(&g->order, g->order.data[3]);
}

static void remove_producer(ort_graph *g)
{
    ort_graph_remove_node(g, g->nodes.data[1]);
}

static void share_name(ort_graph *g)
{
    g->values.data[ort_graph_find_value(g, "e")]->name = "r";
}

/* Past the index of readers. */
static void read_silently(ort_graph *g)
{
    ort_id e = ort_graph_find_value(g, "e"), x = ort_graph_find_value(g, "x");
    ort_readers readers = ort_readers_of(g, x); /* it is made */
    (void)ort_readers_next(&readers);
    g->values.data[e]->use_count--;
    g->values.data[x]->use_count++;
    g->nodes.data[2]->inputs[0] = x;
}

static void unmark_output(ort_graph *g)
{
    g->values.data[ort_graph_find_value(g, "y")]->is_output = false;
}

static const struct {
    void (*harm)(ort_graph *graph);
    const char *told;
} harms[] = {
    {break_producer, "value 'e': its producer is said to be another node"},
    {break_slot, "value 'e': it is said to be another output of its node"},
    {break_count, "value 'r': it has not as many readers as it is said to have"},
    {break_order, "value 'r': it is read before it is computed, or never is"},
    {lose_node, "a node isn't in the order once"},
    {double_node, "value 'y': it is computed twice"},
    {remove_producer, "value 'e': it is read before it is computed, or never is"},
    {share_name, "value 'r': its name is another value's, too"},
    {read_silently, "value 'x': the index of readers doesn't know this one"},
    {unmark_output, "an output isn't marked as one"},
};

static bool make(net *n)
{
    if (!net_init(n, NULL))
        return false;
    net_text(n, TEXT);
    return !ort_graph_infer(n->graph, n->env->registry, NULL, NULL);
}

static void each_harm_is_told(test_state *test)
{
    for (size_t i = 0; i < sizeof harms / sizeof *harms; i++) {
        ort_error err = {0};
        net n;
        CHECK(make(&n) && !ort_graph_verify(n.graph, &err) && !ort_facts_verify(n.graph, &err));
        harms[i].harm(n.graph);
        CHECK(ort_graph_verify(n.graph, &err) == ORT_ERROR_RUN);
        if (!strstr(err.message, harms[i].told))
            CHECK_TEXT(err.message, harms[i].told);
        net_free(&n);
    }
}

static void stale_facts_are_told(test_state *test)
{
    ort_error err = {0};
    net n;
    CHECK(make(&n));
    n.graph->values.data[ort_graph_find_value(n.graph, "e")]->fact.type.dim[0] = ort_dim_of(5);
    CHECK(ort_facts_verify(n.graph, &err) == ORT_ERROR_RUN);
    CHECK(strstr(err.message, "value 'e': its type is stale"));
    net_free(&n);
}

/* As a pass that reads another value without saying so. */
static ort_status misread(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *exp = c->graph->nodes.data[1];
    *changes += exp->inputs[0] != ort_graph_find_value(c->graph, "x");
    exp->inputs[0] = ort_graph_find_value(c->graph, "x");
    return ORT_OK;
}

static const ort_pass bad = {.name = "misread", .level = 1, .doc = "broken on purpose",
                             .apply = misread};

/* Builds without asserts take it, and others name it. */
static void the_pass_that_broke_it_is_named(test_state *test)
{
    const ort_pass *const table[] = {&ort_pass_identity, &bad, &ort_pass_dead_nodes, NULL};
    ort_error err = {0};
    net n;
    CHECK(make(&n));
    ort_pass_options options = {.table = table, .level = 2, .registry = n.env->registry};
    ort_status status = ort_passes_run(n.model, &options, &err);
#ifdef NDEBUG
    CHECK(status == ORT_OK);
#else
    CHECK(status == ORT_ERROR_RUN);
    CHECK(strstr(err.message, "pass misread: the graph is broken"));
#endif
    net_free(&n);
}

/* ---- plans */

static ort_slot_plan *slot(ort_plan *plan, const char *name)
{
    return &plan->slots[ort_graph_find_value(plan->program->graph, name)];
}

static void share_place(ort_plan *plan) /* of what is read afterwards */
{
    slot(plan, "e")->offset = slot(plan, "r")->offset;
}

static void lie_over_input(ort_plan *plan) /* by half */
{
    slot(plan, "e")->offset = slot(plan, "r")->offset + 64;
}

static void forget_writing(ort_plan *plan)
{
    plan->step_count--;
    plan->steps++;
}

static void swap_steps(ort_plan *plan)
{
    ort_plan_step first = plan->steps[1];
    plan->steps[1] = plan->steps[2];
    plan->steps[2] = first;
}

static const struct {
    void (*harm)(ort_plan *plan);
    const char *told;
} plan_harms[] = {
    {share_place, "'r' is read where now lies 'e'"},
    {lie_over_input, "'e' lies over its own input 'r'"},
    {forget_writing, "'r' is read and was never"},
    {swap_steps, "'e' is read and was never"},
};

static void each_harm_of_a_plan_is_told(test_state *test)
{
    for (size_t i = 0; i < sizeof plan_harms / sizeof *plan_harms; i++) {
        ort_error err = {0};
        ort_plan *plan = NULL;
        net n;
        CHECK(net_init(&n, NULL));
        net_text(&n, "x:4,8; #w:8,8; r = (Relu x); e = (Exp r); m = (MatMul e w); a = (Add m r); "
                     "y = (Neg a); y");
        ort_session *session = plain(&n);
        ort_value *x = net_floats(2, DIMS(4, 8), -3, 0.1f);
        CHECK(session && !ort_plan_get(session->program, &x, NULL, &plan, &err));
        CHECK(!ort_plan_verify(plan, &err));
        ort_plan harmed = *plan;
        plan_harms[i].harm(&harmed);
        CHECK(ort_plan_verify(&harmed, &err) == ORT_ERROR_RUN);
        if (!strstr(err.message, plan_harms[i].told))
            CHECK_TEXT(err.message, plan_harms[i].told);
        ort_plan_drop(plan);
        ort_value_free(x);
        ort_session_free(session);
        net_free(&n);
    }
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, each_harm_is_told);
    RUN(test, stale_facts_are_told);
    RUN(test, the_pass_that_broke_it_is_named);
    RUN(test, each_harm_of_a_plan_is_told);
    return test->failures != 0;
}
