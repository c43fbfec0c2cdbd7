/* test_pass.c - each pass on a graph where it applies and on one where it must not; results of
 * every level are the same. */
#include <math.h>

#include "net.h"
#include "op/edit.h"
#include "pass/pass.h"
#include "test.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static int count_ops(const ort_session *session, const char *op_type)
{
    const ort_graph *graph = session->model->graph;
    ort_node *node;
    int count = 0;
    ORT_EACH_NODE(graph, node)
        count += !op_type || !strcmp(node->op_type, op_type);
    return count;
}

static ort_session *at_level(net *n, int level, const char *const *disable, ort_error *err)
{
    ort_session_options options;
    ort_session_options_init(&options);
    options.level = level;
    options.disable = disable;
    return net_session(n, &options, err);
}

/* Results of both sessions on the same input agree. */
static bool same_results(ort_session *a, ort_session *b, ort_value *x)
{
    ort_value *y[2] = {0}, *z[2] = {0};
    ort_compare_options options = {sizeof options, 1e-5, 1e-5};
    ort_difference difference = ORT_DIFFERENCE_INIT;
    bool ok = !run_whole(a, &x, y, NULL, NULL) && !run_whole(b, &x, z, NULL, NULL) &&
              !ort_value_compare(y[0], z[0], &options, &difference, NULL) && difference.equal;
    for (int i = 0; i < 2; i++) {
        ort_value_free(y[i]);
        ort_value_free(z[i]);
    }
    return ok;
}

/* x -> Conv(4 of 3x3x3) -> BatchNormalization -> Relu -> y */
static void build_conv(net *n, const char *activation)
{
    float weights[4 * 27], scale[4] = {1, 2, 0.5f, -1}, bias[4] = {0, 1, -1, 0.5f};
    float mean[4] = {0.1f, -0.2f, 0, 1}, variance[4] = {1, 2, 0.25f, 4};
    for (int i = 0; i < 4 * 27; i++)
        weights[i] = (float)(i % 7 - 3) / 8;
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 3, 6, 6));
    net_constant(n, "w", ORT_DTYPE_FLOAT, 4, DIMS(4, 3, 3, 3), weights);
    net_constant(n, "scale", ORT_DTYPE_FLOAT, 1, DIMS(4), scale);
    net_constant(n, "bias", ORT_DTYPE_FLOAT, 1, DIMS(4), bias);
    net_constant(n, "mean", ORT_DTYPE_FLOAT, 1, DIMS(4), mean);
    net_constant(n, "variance", ORT_DTYPE_FLOAT, 1, DIMS(4), variance);
    net_node(n, "Conv", "x w", "c");
    net_node(n, "BatchNormalization", "c scale bias mean variance", "b");
    net_node(n, activation, "b", "y");
    net_output(n, "y");
}

/* What goes isn't added to what stands for it: y = c + c, c = Conv(x). */
static void own_sum(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    build_conv(&n, "Identity");
    n.graph->values.data[ort_graph_find_value(n.graph, "y")]->is_output = false;
    n.graph->values.data[ort_graph_find_value(n.graph, "y")]->use_count--;
    n.graph->outputs.count = 0;
    net_node(&n, "Add", "y y", "z");
    net_output(&n, "z");
    ort_session *plain = at_level(&n, 0, NULL, &err), *portable = at_level(&n, 2, NULL, &err);
    ort_session *full = at_level(&n, 3, NULL, &err);
    CHECK_TEXT(err.message, "");
    ort_value *x = net_floats(4, DIMS(1, 3, 6, 6), -2, 0.05f);
    CHECK(same_results(plain, portable, x) && same_results(plain, full, x));
    ort_value_free(x);
    ort_session_free(plain);
    ort_session_free(portable);
    ort_session_free(full);
    net_free(&n);
}

static void conv_chain(test_state *test)
{
    const char *const activations[] = {"Relu", "Sigmoid", "LeakyRelu", "Clip", "Abs"};
    for (int i = 0; i < 5; i++) {
        net n;
        ort_error err = {0};
        CHECK(net_init(&n, NULL));
        build_conv(&n, activations[i]);
        ort_session *plain = at_level(&n, 0, NULL, &err), *basic = at_level(&n, 1, NULL, &err);
        ort_session *full = at_level(&n, 2, NULL, &err);
        CHECK_TEXT(err.message, "");
        CHECK(count_ops(plain, NULL) == 3);
        CHECK(count_ops(basic, "BatchNormalization") == 0 && count_ops(basic, "Conv") == 1);
        CHECK(count_ops(full, "FusedConv") == (i < 4));
        CHECK(count_ops(full, NULL) == (i < 4 ? 1 : 2));
        CHECK_TEXT(ort_session_output_name(full, 0), "y");
        ort_value *x = net_floats(4, DIMS(1, 3, 6, 6), -2, 0.05f);
        CHECK(same_results(plain, basic, x) && same_results(plain, full, x));
        ort_value_free(x);
        ort_session_free(plain);
        ort_session_free(basic);
        ort_session_free(full);
        net_free(&n);
    }
}

/* A second reader, or a graph output, keeps a convolution whole. */
static void conv_with_two_readers(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    build_conv(&n, "Relu");
    net_output(&n, "c");
    ort_session *session = at_level(&n, 2, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK(count_ops(session, "BatchNormalization") == 1 && count_ops(session, "FusedConv") == 0);
    ort_session_free(session);
    net_free(&n);
}

/* sqrt(x * x) of 300 leaves float16 on the way, unless it is computed in float, as it is in a model
 * with float16 weights; the type of the output stays. */
static void halves_with(test_state *test, int64_t weights)
{
    uint16_t ones[256];
    net n;
    ort_error err = {0};
    ort_value *x = NULL;
    const int64_t two = 2;
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT16, 1, DIMS(2));
    for (int i = 0; i < 256; i++)
        ones[i] = 0x3c00;
    net_constant(&n, "one", ORT_DTYPE_FLOAT16, 2, DIMS(weights / 2, 2), ones);
    net_node(&n, "Mul", "x x", "square");
    net_node(&n, "Sqrt", "square", "root");
    net_node(&n, "Mul", "root one", "y");
    net_output(&n, "y");
    CHECK(!ort_value_new_tensor(ORT_DTYPE_FLOAT16, 1, &two, &x, NULL));
    for (int level = 0; level <= 2; level++) {
        ort_session *session = at_level(&n, level, NULL, &err);
        ort_value *y = NULL;
        CHECK_TEXT(err.message, "");
        bool in_float = level == 2 && weights == 256;
        CHECK(count_ops(session, "Cast") == (in_float ? 2 : 0));
        CHECK(!strncmp(ort_session_output_type(session, 0)->text, "float16[", 8));
        ort_value_set_double(x, 0, 300);
        ort_value_set_double(x, 1, -2);
        CHECK(!run_whole(session, &x, &y, NULL, &err));
        CHECK(ort_value_get_double(y, 0) == (in_float ? 300.0 : (double)INFINITY));
        CHECK(ort_value_get_double(y, 1) == 2.0);
        ort_value_free(y);
        ort_session_free(session);
    }
    ort_value_free(x);
    net_free(&n);
}

static void halves(test_state *test)
{
    halves_with(test, 256);
}

static void halves_without_weights(test_state *test)
{
    halves_with(test, 2);
}

/* What other passes of the same round look for isn't hidden by the casts back: the Pad goes into
 * its Conv before the Conv takes its activation. Large weights are converted where they are folded.
 */
static void halves_keep_patterns(test_state *test)
{
    enum { MAPS = 64 };
    uint16_t ones[MAPS * MAPS * 9];
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    for (int i = 0; i < MAPS * MAPS * 9; i++)
        ones[i] = 0x3c00;
    net_input(&n, "x", ORT_DTYPE_FLOAT16, 4, DIMS(1, MAPS, 5, 5));
    net_constant(&n, "w", ORT_DTYPE_FLOAT16, 4, DIMS(MAPS, MAPS, 3, 3), ones);
    net_constant(&n, "around", ORT_DTYPE_INT64, 1, DIMS(8), DIMS(0, 0, 1, 1, 0, 0, 1, 1));
    net_node(&n, "Pad", "x around", "padded");
    net_node(&n, "Conv", "padded w", "c");
    net_node(&n, "Relu", "c", "y");
    net_output(&n, "y");
    ort_session *session = at_level(&n, 2, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK(count_ops(session, "Pad") == 0 && count_ops(session, "Cast") == 2);
    CHECK(count_ops(session, "FusedConv") == 1);
    ort_value *y = NULL, *x = NULL;
    CHECK(!ort_value_new_tensor(ORT_DTYPE_FLOAT16, 4, DIMS(1, MAPS, 5, 5), &x, NULL));
    for (int i = 0; i < MAPS * 25; i++)
        ort_value_set_double(x, i, 0.5);
    CHECK(!run_whole(session, &x, &y, NULL, &err));
    CHECK(ort_value_get_double(y, 0) == 4 * MAPS / 2.0); /* a corner: 4 of 9 taps */
    CHECK(ort_value_get_double(y, 6) == 9 * MAPS / 2.0);
    ort_value_free(x);
    ort_value_free(y);
    ort_session_free(session);
    net_free(&n);
}

static void disabled(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    build_conv(&n, "Relu");
    const char *const names[] = {"linear_affine", NULL};
    ort_session *session = at_level(&n, 2, names, &err);
    CHECK_TEXT(err.message, "");
    CHECK(count_ops(session, "BatchNormalization") == 1);
    ort_session_free(session);
    net_free(&n);
}

static void gemm_chain(test_state *test)
{
    net n;
    ort_error err = {0};
    float weights[12];
    for (int i = 0; i < 12; i++)
        weights[i] = (float)(i - 6) / 4;
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(-1, 4));
    net_constant(&n, "w", ORT_DTYPE_FLOAT, 2, DIMS(4, 3), weights);
    net_constant(&n, "b", ORT_DTYPE_FLOAT, 1, DIMS(3), weights);
    net_node(&n, "Gemm", "x w b", "g");
    net_node(&n, "Tanh", "g", "y");
    net_output(&n, "y");
    ort_session *plain = at_level(&n, 0, NULL, &err), *full = at_level(&n, 3, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK(count_ops(full, "FusedGemm") == 1 && count_ops(full, NULL) == 1);
    ort_value *x = net_floats(2, DIMS(3, 4), -1, 0.2f);
    CHECK(same_results(plain, full, x));
    ort_value_free(x);
    ort_session_free(plain);
    ort_session_free(full);
    net_free(&n);
}

static void folding_and_dead_nodes(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, DIMS(2));
    net_constant(&n, "a", ORT_DTYPE_FLOAT, 1, DIMS(2), (const float[]){1, 2});
    net_node(&n, "Mul", "a a", "squares");
    net_node(&n, "Add", "squares a", "sums");
    net_node(&n, "Add", "x sums", "t");
    net_node(&n, "Exp", "x", "unused");
    net_node(&n, "Identity", "t", "y");
    net_output(&n, "y");
    ort_session *session = at_level(&n, 1, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK(count_ops(session, NULL) == 1 && count_ops(session, "Add") == 1);
    CHECK(session->model->graph->initializers.count == 1);
    ort_value *x = net_floats(1, DIMS(2), 10, 10), *y = NULL;
    CHECK(run_whole(session, &x, &y, NULL, &err) == ORT_OK);
    CHECK(ort_value_get_double(y, 0) == 12 && ort_value_get_double(y, 1) == 26);
    ort_value_free(x);
    ort_value_free(y);
    ort_session_free(session);
    net_free(&n);
}

/* An identity between an input and an output must stay; the borrowed model is never changed. */
static void outputs_keep_their_names(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, DIMS(2));
    net_node(&n, "Identity", "x", "y");
    net_node(&n, "Neg", "x", "t");
    net_node(&n, "Identity", "t", "z");
    net_node(&n, "Abs", "t", "u");
    net_output(&n, "y");
    net_output(&n, "z");
    net_output(&n, "u");
    ort_session *session = at_level(&n, 2, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK(count_ops(session, "Identity") == 1 && count_ops(session, NULL) == 3);
    ort_value *x = net_floats(1, DIMS(2), 1, 1), *y[3] = {0};
    CHECK(run_whole(session, &x, y, NULL, &err) == ORT_OK);
    CHECK(ort_value_get_double(y[0], 0) == 1 && ort_value_get_double(y[1], 0) == -1);
    CHECK(ort_value_get_double(y[2], 1) == 2);
    for (int i = 0; i < 3; i++)
        ort_value_free(y[i]);
    ort_value_free(x);
    ort_session_free(session);
    int live = 0;
    ort_node *node;
    ORT_EACH_NODE(n.model->graph, node)
        live++;
    CHECK(live == 4);
    net_free(&n);
}

/* A gate of a convolution: x * sigmoid(x), or x * clip(x + 3, 0, 6) / 6 in both spellings. */
static void build_gate(net *n, int form)
{
    const float three = 3, six = 6, zero = 0;
    build_conv(n, "Identity");
    n->graph->values.data[ort_graph_find_value(n->graph, "y")]->is_output = false;
    n->graph->values.data[ort_graph_find_value(n->graph, "y")]->use_count--;
    n->graph->outputs.count = 0;
    net_constant(n, "three", ORT_DTYPE_FLOAT, 0, NULL, &three);
    net_constant(n, "six", ORT_DTYPE_FLOAT, 0, NULL, &six);
    net_constant(n, "zero", ORT_DTYPE_FLOAT, 0, NULL, &zero);
    if (form == 0) {
        net_node(n, "Sigmoid", "y", "s");
        net_node(n, "Mul", "y s", "z");
    } else {
        net_node(n, "Add", "y three", "a");
        net_node(n, "Clip", "a zero six", "c6");
        net_node(n, form == 1 ? "Mul" : "Div", form == 1 ? "y c6" : "c6 six", "t");
        net_node(n, form == 1 ? "Div" : "Mul", form == 1 ? "t six" : "y t", "z");
    }
    net_output(n, "z");
}

/* The blocked layout takes the convolution or leaves it, by the tier's vectors. */
static void gates(test_state *test)
{
    const char *const rows[] = {"blocked_layout", NULL};
    for (int form = 0; form < 6; form++) {
        net n;
        ort_error err = {0};
        CHECK(net_init(&n, NULL));
        n.model->opsets.data[0].version = form < 3 ? 17 : 13;
        build_gate(&n, form % 3);
        ort_session *plain = at_level(&n, 0, NULL, &err), *portable = at_level(&n, 2, NULL, &err);
        ort_session *full = at_level(&n, 3, NULL, &err), *fused = at_level(&n, 3, rows, &err);
        CHECK_TEXT(err.message, "");
        CHECK(count_ops(portable, "QuickGelu") == (form % 3 == 0));
        CHECK(count_ops(portable, "HardSwish") == (form % 3 != 0));
        CHECK(count_ops(fused, "FusedConv") == 1 && count_ops(fused, NULL) == 1);
        CHECK(count_ops(full, NULL) <= 3); /* the convolution, and the ways in and out */
        ort_value *x = net_floats(4, DIMS(1, 3, 6, 6), -2, 0.05f);
        CHECK(same_results(plain, portable, x) && same_results(plain, full, x) &&
              same_results(plain, fused, x));
        ort_value_free(x);
        ort_session_free(plain);
        ort_session_free(portable);
        ort_session_free(full);
        ort_session_free(fused);
        net_free(&n);
    }
}

static void table(test_state *test)
{
    const ort_pass *pass;
    int count = 0;
    for (; (pass = ort_pass_at(count)); count++) {
        CHECK(pass->name[0] && pass->doc[0] && !pass->apply == !!pass->rewrites);
        CHECK(pass->level >= 0 && pass->level <= 3);
        for (int i = 0; i < count; i++)
            CHECK(strcmp(ort_pass_at(i)->name, pass->name));
    }
    CHECK(count >= 6 && !ort_pass_at(-1));
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, own_sum);
    RUN(test, conv_chain);
    RUN(test, conv_with_two_readers);
    RUN(test, halves);
    RUN(test, halves_without_weights);
    RUN(test, halves_keep_patterns);
    RUN(test, disabled);
    RUN(test, gemm_chain);
    RUN(test, folding_and_dead_nodes);
    RUN(test, outputs_keep_their_names);
    RUN(test, gates);
    RUN(test, table);
    return test->failures != 0;
}
