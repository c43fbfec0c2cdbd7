/* test_even.c - factors of channels that move between layers: results of floats stay what they
 * were, and factors are those of the papers' formulas, computed here in a plain way.
 */
#include <math.h>
#include <stdlib.h>

#include "levels.h"
#include "quantize/static/even.h"
#include "test.h"

static void add_weights(net *n, const char *name, int rank, const int64_t *dims)
{
    ort_value *w = net_floats(rank, dims, 0, 0);
    const int64_t count = ort_value_count(w), each = count / dims[0];
    float *x = ort_value_data(w);
    uint32_t state = (uint32_t)name[0] * 97u + (uint32_t)name[1];
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = ((float)(state >> 8) * 0x1p-24f - 0.5f) * powf(0.6f, (float)(i / each % 7));
    }
    net_constant(n, name, ORT_DTYPE_FLOAT, rank, dims, x);
    ort_value_free(w);
}

/* Convolution, depthwise, groups, pools, and a layer behind the mean. */
static void build_chain(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 3, 12, 12));
    add_weights(n, "a0", 4, DIMS(16, 3, 3, 3));
    add_weights(n, "b0", 4, DIMS(16, 1, 3, 3));
    add_weights(n, "c0", 4, DIMS(8, 4, 1, 1));
    add_weights(n, "d0", 2, DIMS(8, 10));
    net_node(n, "Conv", "x a0", "a");
    net_node(n, "Relu", "a", "ar");
    net_int(n, net_node(n, "Conv", "ar b0", "b"), "group", 16);
    net_node(n, "LeakyRelu", "b", "br");
    set_ints(n, net_node(n, "MaxPool", "br", "bm"), "kernel_shape", DIMS(2, 2), 2);
    net_int(n, net_node(n, "Conv", "bm c0", "c"), "group", 4);
    net_node(n, "Relu", "c", "cr");
    net_node(n, "GlobalAveragePool", "cr", "m");
    net_node(n, "Flatten", "m", "f");
    net_node(n, "Gemm", "f d0", "y");
    net_output(n, "y");
}

/* A norm that two products read; a product with a bias of its own behind which another stands; one
 * whose channels differ behind what nothing can be folded into. */
static void build_layers(net *n)
{
    float scale[16];
    for (int i = 0; i < 16; i++)
        scale[i] = i == 5 ? 100.0f : 1.0f;
    net_input(n, "x", ORT_DTYPE_FLOAT, 3, DIMS(1, 7, 16));
    net_constant(n, "gamma", ORT_DTYPE_FLOAT, 1, DIMS(16), scale);
    add_weights(n, "eb", 1, DIMS(16));
    add_weights(n, "p0", 2, DIMS(16, 16));
    add_weights(n, "q0", 2, DIMS(16, 16));
    add_weights(n, "qb", 1, DIMS(16));
    add_weights(n, "r0", 2, DIMS(16, 16));
    add_weights(n, "s0", 2, DIMS(16, 16));
    net_node(n, "LayerNormalization", "x gamma eb", "n");
    net_node(n, "MatMul", "n p0", "p");
    net_node(n, "MatMul", "n q0", "q1");
    net_node(n, "Add", "q1 qb", "q");
    net_node(n, "Relu", "q", "qr");
    net_node(n, "MatMul", "qr r0", "r");
    net_node(n, "Mul", "x gamma", "g"); /* read by two, so no factor goes into gamma */
    net_node(n, "Elu", "g", "e");
    net_node(n, "MatMul", "e s0", "s");
    net_node(n, "Sum", "p r s", "y");
    net_output(n, "y");
}

static ort_value *input_of(const net *n)
{
    const ort_type *type = &n->graph->values.data[n->graph->inputs.data[0]]->fact.type;
    int64_t dims[ORT_MAX_RANK];
    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dim[i].size;
    ort_value *x = net_floats(type->rank, dims, 0, 0);
    uint32_t state = 5;
    for (int64_t i = 0; i < ort_value_count(x); i++) {
        state = state * 1664525u + 1013904223u;
        ((float *)ort_value_data(x))[i] = (float)(state >> 8) * 0x1p-23f - 1;
    }
    return x;
}

static ort_value *result(net *n, ort_value *x)
{
    ort_value *y = NULL;
    ort_session *session = net_session(n, NULL, NULL);
    if (session && run_whole(session, &x, &y, NULL, NULL))
        y = NULL;
    ort_session_free(session);
    return y;
}

static bool near(const ort_value *a, const ort_value *b)
{
    double most = 0, off = 0;
    for (int64_t i = 0; a && b && i < ort_value_count(a); i++) {
        most = fmax(most, fabs(ort_value_get_double(a, i)));
        off = fmax(off, fabs(ort_value_get_double(a, i) - ort_value_get_double(b, i)));
    }
    return most > 0 && off <= 2e-6 * most;
}

static const ort_tensor *weight_at(const net *n, const char *result_name)
{
    ort_id id = ort_graph_find_value(n->graph, result_name);
    const ort_node *node = n->graph->nodes.data[ort_graph_producer(n->graph, id)];
    return n->graph->values.data[node->inputs[1]]->fact.value;
}

/* The largest magnitude among `count` numbers, `step` apart. */
static float reach(const ort_tensor *t, int64_t from, int64_t count, int64_t step)
{
    float most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmaxf(most, fabsf(((const float *)t->data)[from + i * step]));
    return most;
}

static bool alike(float a, float b)
{
    return fabsf(log2f(a) - log2f(b)) <= 0.125f;
}

static void equalized(test_state *test)
{
    net n;
    ort_error err = {0};
    size_t moved = 0;
    CHECK(net_init(&n, NULL));
    build_chain(&n);
    ort_value *x = input_of(&n), *before = result(&n, x);
    CHECK(!ort_graph_infer(n.graph, n.env->registry, NULL, &err));
    CHECK(!ort_equalize(n.graph, &moved, &err) && moved == 3);
    ort_value *after = result(&n, x);
    CHECK(near(before, after));
    const ort_tensor *a = weight_at(&n, "a"), *b = weight_at(&n, "b"), *c = weight_at(&n, "c");
    const ort_tensor *d = weight_at(&n, "y");
    for (int64_t k = 0; k < 16; k++) { /* both sides of each pair reach equally far */
        CHECK(alike(reach(a, k * 27, 27, 1), reach(b, k * 9, 9, 1)));
        CHECK(alike(reach(b, k * 9, 9, 1), reach(c, k / 4 * 8 + k % 4, 2, 4)));
    }
    for (int64_t k = 0; k < 8; k++)
        CHECK(alike(reach(c, k * 4, 4, 1), reach(d, k * 10, 10, 1)));
    ort_value_free(x);
    ort_value_free(before);
    ort_value_free(after);
    net_free(&n);
}

/* A channel that its bias alone makes reach far doesn't reach further for small weights. */
static void biased(test_state *test)
{
    net n;
    ort_error err = {0};
    size_t moved = 0;
    float weights[16 * 3], biases[16];
    CHECK(net_init(&n, NULL));
    for (int i = 0; i < 16 * 3; i++)
        weights[i] = (i / 3 == 5 ? 1e-5f : 1.0f) * (i % 2 ? 0.5f : -0.25f);
    for (int i = 0; i < 16; i++)
        biases[i] = i == 5 ? 0.75f : 1.0f;
    net_input(&n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 3, 12, 12));
    net_constant(&n, "w", ORT_DTYPE_FLOAT, 4, DIMS(16, 3, 1, 1), weights);
    net_constant(&n, "b", ORT_DTYPE_FLOAT, 1, DIMS(16), biases);
    add_weights(&n, "v0", 4, DIMS(4, 16, 1, 1));
    net_node(&n, "Conv", "x w b", "a");
    net_node(&n, "Relu", "a", "r");
    net_node(&n, "Conv", "r v0", "y");
    net_output(&n, "y");
    ort_value *x = input_of(&n), *before = result(&n, x);
    CHECK(!ort_graph_infer(n.graph, n.env->registry, NULL, &err));
    CHECK(!ort_equalize(n.graph, &moved, &err) && moved == 1);
    ort_value *after = result(&n, x);
    CHECK(near(before, after));
    const ort_node *node = n.graph->nodes.data[ort_graph_producer(
        n.graph, ort_graph_find_value(n.graph, "a"))];
    const ort_tensor *b = n.graph->values.data[node->inputs[2]]->fact.value;
    CHECK(reach(b, 5, 1, 1) <= 1.2f * reach(b, 0, 16, 1));
    CHECK(reach(b, 5, 1, 1) <= 4 * reach(b, 0, 5, 1));
    ort_value_free(x);
    ort_value_free(before);
    ort_value_free(after);
    net_free(&n);
}

static void smoothed(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_smoothing s = {0};
    ort_channel_ids muls = {0};
    CHECK(net_init(&n, NULL));
    build_layers(&n);
    ort_value *x = input_of(&n), *before = result(&n, x);
    CHECK(!ort_graph_infer(n.graph, n.env->registry, NULL, &err));
    CHECK(!ort_smoothing_find(&s, n.graph, &err));
    CHECK(s.list.count == 3); /* n, folded into nothing: gamma has two readers; qr; e */
    float seen[16], was[16];
    for (int c = 0; c < 16; c++) {
        seen[c] = c == 5 ? 80.0f : 0.5f + (float)c / 32;
        was[c] = reach(weight_at(&n, "s"), c * 16, 16, 1);
    }
    ort_tensor t = {.dtype = ORT_DTYPE_FLOAT, .shape = ort_shape_make(2, DIMS(1, 16)),
                    .data = seen};
    for (size_t i = 0; i < s.list.count; i++)
        ort_smoothing_see(&s, s.list.data[i].name, &t);
    CHECK(!ort_smoothing_apply(&s, 0.75, &muls, &err));
    CHECK(muls.count == 2); /* before p and q together, and before s */
    ort_value *after = result(&n, x);
    CHECK(near(before, after));
    for (int64_t c = 0; c < 16; c++) /* max|x|^alpha / max|w|^(1 - alpha) */
        CHECK(alike(reach(weight_at(&n, "s"), c * 16, 16, 1),
                    was[c] * powf(seen[c], 0.75f) / powf(was[c], 0.25f)));
    ort_smoothing_release(&s);
    ort_vec_release(&muls);
    ort_value_free(x);
    ort_value_free(before);
    ort_value_free(after);
    net_free(&n);
}

static void factors(test_state *test)
{
    for (int i = -40; i <= 40; i++) {
        const double from = pow(1.3, i), to = pow(0.8, i * 2);
        const double want = pow(from, 0.3) / pow(to, 0.7);
        CHECK(fabs(log2((double)ort_channel_factor(from, to, 0.3)) -
                   fmin(fmax(log2(want), -16), 16)) <= 1.0 / 32 + 1e-6);
    }
    CHECK(ort_channel_factor(0, 1, 0.5) <= 1 && ort_channel_factor(0, 1, 0.5) >= 1);
    CHECK(ort_channel_factor(1, INFINITY, 0.5) <= 1);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, factors);
    RUN(&test, equalized);
    RUN(&test, biased);
    RUN(&test, smoothed);
    return test.failures != 0;
}
