/* test_as_run.c - models of codes that agree as sessions run them, and those that don't. */
#include "bytes_nets.h"
#include "verify/as_run.h"

typedef struct made {
    net n;
    ort_session *session; /* unoptimized */
    ort_value *y;
} made;

/* A convolution between codes, whose result has this scale. */
static bool make(made *m, float y_scale, ort_value *x)
{
    ort_error err = {0};
    if (!net_on(&m->n, "scalar", 1))
        return false;
    net *n = &m->n;
    net_input(n, "x", U, 4, DIMS(1, 16, 6, 6));
    add_scale(n, "xs", 0.02f);
    add_number(n, "xz", U, 120);
    add_codes(n, "w", S, 4, DIMS(16, 16, 1, 1), 7, -127, 127);
    add_scale(n, "ws", 0.01f);
    add_scale(n, "ys", y_scale);
    add_number(n, "yz", U, 128);
    net_node(n, "DequantizeLinear", "x xs xz", "real");
    net_node(n, "DequantizeLinear", "w ws", "w_real");
    net_node(n, "Conv", "real w_real", "sum");
    net_node(n, "QuantizeLinear", "sum ys yz", "codes");
    net_node(n, "DequantizeLinear", "codes ys yz", "y");
    net_output(n, "y");
    m->session = at_level(n, 0, &err);
    return m->session && !run_whole(m->session, &x, &m->y, NULL, NULL);
}

static bool agree(const made *a, const made *b, ort_value *x)
{
    ort_as_run r = {a->n.env, {a->n.model, b->n.model}, {NULL, NULL}};
    ort_value *const inputs[] = {x};
    bool agrees = ort_as_run_agree(&r, (ort_value *const *const[]){inputs, inputs},
                                   (ort_value *const *const[]){&a->y, &b->y}, 0.03);
    ort_as_run_release(&r);
    return agrees;
}

static void release(made *m)
{
    ort_value_free(m->y);
    ort_session_free(m->session);
    net_free(&m->n);
}

static void as_run(test_state *test)
{
    made right = {0}, same = {0}, other = {0};
    ort_value *x = codes(U, 4, DIMS(1, 16, 6, 6), 5, 0, 255);
    CHECK(x && make(&right, 0.05f, x) && make(&same, 0.05f, x) && make(&other, 0.02f, x));
    CHECK(agree(&right, &same, x));
    CHECK(!agree(&right, &other, x)); /* it saturates */
    ort_value *y = same.y; /* the same sessions, but far from each other unoptimized */
    same.y = net_floats(4, DIMS(1, 16, 6, 6), 3, 0.5f);
    CHECK(!agree(&right, &same, x));
    ort_value_free(y);
    ort_value_free(x);
    release(&right);
    release(&same);
    release(&other);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, as_run);
    return test.failures != 0;
}
