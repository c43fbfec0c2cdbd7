/* test_rnn_turns.c - recurrent products that go through their weights forwards and backwards by
 * turns (op/shared/matrix.h) give the same bits as those that several threads share, which go
 * forwards: gates of several stretches of columns, the last one cut off, one row and two.
 */
#include "levels.h"
#include "test.h"

static void add_weights(net *n, const char *name, int64_t gates, int64_t depth)
{
    float *data = malloc((size_t)(gates * depth) * sizeof *data);
    uint32_t state = (uint32_t)(gates * 31 + depth);
    for (int64_t i = 0; data && i < gates * depth; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = (float)(int32_t)state * (0.08f / 2147483648.0f);
    }
    if (data)
        net_constant(n, name, ORT_DTYPE_FLOAT, 3, DIMS(1, gates, depth), data);
    free(data);
}

static ort_session *recurrent(net *n, const char *isa, int threads, const char *op, int64_t hidden,
                              int64_t batch)
{
    const int64_t gates = (strcmp(op, "LSTM") ? strcmp(op, "GRU") ? 1 : 3 : 4) * hidden;
    if (!net_on(n, isa, threads))
        return NULL;
    net_input(n, "x", ORT_DTYPE_FLOAT, 3, DIMS(7, batch, 5));
    add_weights(n, "w", gates, 5);
    add_weights(n, "r", gates, hidden);
    ort_node *node = net_node(n, op, "x w r", "y");
    ort_attr attr = {.name = "hidden_size", .type = ORT_ATTR_INT, .i = hidden};
    (void)!ort_node_set_attr(n->graph, node, &attr, NULL);
    net_output(n, "y");
    return at_level(n, 2, NULL);
}

static void same_bits(test_state *test)
{
    static const char *const ops[] = {"LSTM", "GRU", "RNN"};
    static const int64_t sizes[] = {33, 200, 301};
    int sessions = 0;
    for (int i = 0; ort_kernel_tier_at(i); i++)
        for (int k = 0; k < 18; k++) {
            const char *isa = ort_kernel_tier_at(i)->name, *op = ops[k % 3];
            const int64_t hidden = sizes[k / 3 % 3], batch = k / 9 + 1;
            net one, three;
            ort_session *a = recurrent(&one, isa, 1, op, hidden, batch);
            if (!a)
                break; /* not this processor */
            ort_session *b = recurrent(&three, isa, 3, op, hidden, batch);
            ort_value *x = net_floats(3, DIMS(7, batch, 5), -1, 0.03f);
            CHECK(b && same(a, b, x, 0));
            sessions++;
            ort_value_free(x);
            ort_session_free(a);
            ort_session_free(b);
            net_free(&one);
            net_free(&three);
        }
    CHECK(sessions >= 18);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, same_bits);
    return test.failures != 0;
}
