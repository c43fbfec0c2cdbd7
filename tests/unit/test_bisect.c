/* test_bisect.c - bisection over a table of passes of which one is broken on purpose: it is named
 * wherever it stands, and only where what it does shows. */
#include "op/edit.h"
#include "rewrite.h"
#include "test.h"
#include "verify/bisect.h"

/* As if Relu gave back what it is given. */
static ort_status drop_relu(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_EACH_NODE(c->graph, node)
        if (ort_edit_is(node, ONNX, "Relu"))
            *changes += ort_edit_bypass(c->graph, node, 0);
    return ORT_OK;
}

static const ort_pass broken = {.name = "drop_relu", .level = 1, .doc = "broken on purpose",
                                .apply = drop_relu};

/* The name of what bisection finds in this table; "-" for nothing, "failed" for an error. */
static const char *culprit(const ort_pass *const *table, const char *text)
{
    net n;
    ort_error err = {0};
    ort_verify_options verify;
    const ort_pass *found = NULL;
    ort_verify_options_init(&verify);
    if (!net_init(&n, NULL))
        return "memory";
    net_text(&n, text);
    ort_pass_options options = {.table = table, .level = 2, .portable = true,
                                .registry = n.env->registry};
    ort_status status = ort_bisect_passes(n.env, n.model, &options, false, &verify, &found, &err);
    net_free(&n);
    return status != ORT_OK ? "failed" : found ? found->name : "-";
}

#define SHOWS "x:4,8; i = (Identity x); r = (Relu i); y = (Exp r); y"
#define HIDDEN "x:4,8; a = (Abs x); r = (Relu a); y = (Exp r); y"

static void any_place(test_state *test)
{
    const ort_pass *const sound[] = {&ort_pass_identity, &ort_pass_constant_fold,
                                     &ort_pass_merge_moves, &ort_pass_common_subexpressions,
                                     &ort_pass_dead_nodes};
    for (int place = 0; place <= 5; place++) {
        const ort_pass *table[7] = {NULL};
        for (int i = 0; i < 6; i++)
            table[i] = i < place ? sound[i] : i == place ? &broken : sound[i - 1];
        CHECK_TEXT(culprit(table, SHOWS), "drop_relu");
        CHECK_TEXT(culprit(table, HIDDEN), "-");
    }
}

static void nothing_to_find(test_state *test)
{
    const ort_pass *const none[] = {NULL};
    const ort_pass *const alone[] = {&broken, NULL};
    CHECK_TEXT(culprit(none, SHOWS), "-");
    CHECK_TEXT(culprit(NULL, SHOWS), "-");
    CHECK_TEXT(culprit(alone, SHOWS), "drop_relu");
}

/* The list in a complaint is that of the table in use. */
static void names_of_the_table(test_state *test)
{
    const ort_pass *const alone[] = {&broken, NULL};
    const char *const unknown[] = {"identity", NULL};
    ort_error err = {0};
    net n;
    CHECK(net_init(&n, NULL));
    net_text(&n, SHOWS);
    ort_pass_options options = {.table = alone, .only = unknown, .registry = n.env->registry};
    CHECK(ort_passes_run(n.model, &options, &err) == ORT_ERROR_USAGE);
    CHECK_TEXT(err.message, "no pass is named 'identity'; the passes are: drop_relu");
    net_free(&n);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, any_place);
    RUN(test, nothing_to_find);
    RUN(test, names_of_the_table);
    return test->failures != 0;
}
