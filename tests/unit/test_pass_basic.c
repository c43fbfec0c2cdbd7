/* test_pass_basic.c - passes of level 1 on small graphs: what they make of a graph that fits, that
 * they leave alone what doesn't, that a second run changes nothing, and the same results. */
#include <math.h>

#include "net.h"
#include "pass/pass.h"
#include "test.h"

static int count_ops(const net *n, const char *op_type)
{
    const ort_node *node;
    int count = 0;
    ORT_EACH_NODE(n->model->graph, node)
        count += !strcmp(node->op_type, op_type);
    return count;
}

/* ---- near-misses */

typedef struct told {
    int count;
    char text[256]; /* of the last one */
} told;

static void tell(void *arg, const ort_pass *pass, const char *node, const char *condition)
{
    told *t = arg;
    t->count++;
    snprintf(t->text, sizeof t->text, "%s: %s: %s", pass->name, node, condition);
}

/* A Gelu whose one half is another number, or whose inner value has another reader. */
static void build_gelu(net *n, float half, bool second_reader)
{
    static const float root = 1.41421356f, one = 1;
    int64_t dims[2] = {2, 3};
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, dims);
    net_constant(n, "root", ORT_DTYPE_FLOAT, 0, NULL, &root);
    net_constant(n, "one", ORT_DTYPE_FLOAT, 0, NULL, &one);
    net_constant(n, "half", ORT_DTYPE_FLOAT, 0, NULL, &half);
    net_node(n, "Div", "x root", "d");
    net_node(n, "Erf", "d", "e");
    net_node(n, "Add", "one e", "a");
    net_node(n, "Mul", "x a", "m");
    net_node(n, "Mul", "m half", "y");
    net_output(n, "y");
    if (second_reader)
        net_output(n, "e");
}

static void near_misses(test_state *test)
{
    static const struct {
        float half;
        bool second_reader;
        const char *text; /* NULL: it fits */
    } cases[] = {
        {0.5f, false, NULL},
        {0.25f, false, "gelu: node 'y' (Mul): 'half' isn't 0.5"},
        {0.5f, true, "gelu: node 'y' (Mul): 'e' has another reader"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char *const only[] = {"gelu", NULL};
        told heard = {0};
        ort_pass_options options = {.only = only, .portable = true, .contrib = true,
                                    .near_miss = tell, .near_miss_arg = &heard};
        net n;
        CHECK(net_init(&n, NULL));
        build_gelu(&n, cases[i].half, cases[i].second_reader);
        options.registry = n.env->registry;
        CHECK(!ort_graph_infer(n.model->graph, n.env->registry, NULL, NULL));
        CHECK(!ort_passes_run(n.model, &options, NULL));
        CHECK(heard.count == (cases[i].text != NULL));
        CHECK(count_ops(&n, "Gelu") == (cases[i].text == NULL));
        CHECK_TEXT(heard.text, cases[i].text ? cases[i].text : "");
        net_free(&n);
    }
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, near_misses);
    return test->failures != 0;
}
