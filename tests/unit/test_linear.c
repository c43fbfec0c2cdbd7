/* test_linear.c - a product, the row added to it and its activation run as one Linear, and give
 * what they gave one by one.
 */
#include <math.h>

#include "net.h"
#include "test.h"

enum { DEPTH = 37, WIDTH = 70, ROWS = 2 * 17 };

static void build(net *n, const char *activation, bool row_first)
{
    static float w[DEPTH * WIDTH], b[WIDTH];
    const int64_t dims[3] = {2, ROWS / 2, DEPTH}, weight[2] = {DEPTH, WIDTH}, row[1] = {WIDTH};
    for (int i = 0; i < DEPTH * WIDTH; i++)
        w[i] = (float)(i * 7919 % 201 - 100) / 100.0f;
    for (int i = 0; i < WIDTH; i++)
        b[i] = (float)(i % 11 - 5);
    net_input(n, "x", ORT_DTYPE_FLOAT, 3, dims);
    net_constant(n, "w", ORT_DTYPE_FLOAT, 2, weight, w);
    net_constant(n, "b", ORT_DTYPE_FLOAT, 1, row, b);
    net_node(n, "MatMul", "x w", "p");
    net_node(n, "Add", row_first ? "b p" : "p b", activation ? "s" : "y");
    if (activation)
        net_node(n, activation, "s", "y");
    net_output(n, "y");
}

/* The result at this level; `linear`: how many steps were such. */
static ort_value *result(const char *activation, bool row_first, int level, int *linear)
{
    net n;
    ort_session_options options;
    const int64_t dims[3] = {2, ROWS / 2, DEPTH};
    ort_value *x = net_floats(3, dims, -1, 0.003f), *y = NULL;
    *linear = 0;
    if (!net_init(&n, NULL))
        return NULL;
    build(&n, activation, row_first);
    ort_session_options_init(&options);
    options.level = level;
    ort_session *session = net_session(&n, &options, NULL);
    for (int i = 0; session && i < session->program->step_count; i++)
        *linear += !strcmp(session->program->steps[i].op->name, "Linear");
    if (session && run_whole(session, &x, &y, NULL, NULL) != ORT_OK)
        y = NULL;
    ort_session_free(session);
    ort_value_free(x);
    net_free(&n);
    return y;
}

static bool agree(const ort_value *a, const ort_value *b)
{
    const float *x = a->tensor.data, *y = b->tensor.data;
    for (int i = 0; i < ROWS * WIDTH; i++)
        if (!(fabsf(x[i] - y[i]) <= 1e-5f * (1 + fabsf(y[i]))))
            return false;
    return ort_tensor_count(&a->tensor) == ROWS * WIDTH;
}

static void activations(test_state *test)
{
    const char *const names[] = {NULL, "Relu", "Tanh", "Sigmoid"};
    for (int i = 0; i < 8; i++) {
        int joined, apart;
        ort_value *one = result(names[i / 2], i % 2, 3, &joined);
        ort_value *each = result(names[i / 2], i % 2, 0, &apart);
        CHECK(one && each && agree(one, each));
        CHECK(joined == 1 && apart == 0);
        ort_value_free(one);
        ort_value_free(each);
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, activations);
    return test.failures != 0;
}
