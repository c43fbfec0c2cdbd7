/* test_dynamic_convs.c - convolutions of codes whose range is found in the run, with the steps
 * behind them, are one node on the layout of bytes, and give the same numbers to the bit on every
 * tier.
 */
#include "bytes_nets.h"

typedef struct dynamic_case {
    ort_dtype w;
    int w_zero;
    int64_t channels, maps, height, width, group;
    int64_t kernel[2], stride[2], dilation[2], pads[4];
    bool bias, per_map; /* per_map: a scale for each filter */
    const char *act;    /* Relu, Clip or NULL */
    bool sums;          /* a bias in codes of the scale, added to the sums */
} dynamic_case;

static const dynamic_case cases[] = {
    /* first layers; planes as rows, channels that fill no block */
    {S, 0, 3, 20, 21, 18, 1, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, true, false, "Relu"},
    {S, 0, 41, 50, 23, 19, 1, {1, 1}, {1, 1}, {1, 1}, {0}, true, false, "Clip"},
    {S, 0, 32, 7, 9, 13, 1, {1, 1}, {1, 1}, {1, 1}, {0}, false, true, NULL},
    {U, 128, 16, 33, 14, 5, 1, {1, 1}, {2, 1}, {1, 1}, {0}, true, true, "Relu"},
    /* windows */
    {S, 0, 20, 40, 9, 13, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, true, false, NULL},
    {S, 0, 24, 16, 17, 16, 1, {3, 2}, {1, 2}, {2, 3}, {2, 4, 1, 5}, true, false, "Relu"},
    {S, 0, 64, 17, 25, 1, 1, {3, 1}, {1, 1}, {1, 1}, {1, 0, 1, 0}, true, false, "Relu"},
    {S, 0, 64, 64, 7, 8, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, true, true, "Relu"},
    /* depthwise */
    {S, 0, 40, 40, 13, 31, 40, {3, 3}, {2, 2}, {1, 1}, {0, 0, 1, 1}, true, false, "Clip"},
    {U, 128, 24, 24, 60, 60, 24, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}, true, true, NULL},
    {S, 0, 17, 17, 15, 1, 17, {10, 1}, {2, 1}, {1, 1}, {4, 0, 5, 0}, false, false, "Relu"},
    /* codes of biases, made in the run */
    {U, 128, 20, 40, 9, 13, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, false, false, NULL, true},
    {S, 0, 3, 20, 21, 18, 1, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, false, false, "Relu", true},
    {S, 0, 40, 40, 13, 31, 40, {3, 3}, {2, 2}, {1, 1}, {0}, false, false, "Clip", true},
};

static void add_act(net *n, const char *act, const char *x)
{
    static const float low = -3, high = 6;
    if (act && act[0] == 'C') {
        net_constant(n, "low", ORT_DTYPE_FLOAT, 0, NULL, &low);
        net_constant(n, "high", ORT_DTYPE_FLOAT, 0, NULL, &high);
        net_node(n, "Clip", "shifted low high", "y");
    } else {
        net_node(n, act ? act : "Identity", x, "y");
    }
}

/* As onnxruntime's quantizer writes it. */
static void add_sums(net *n, const float *bias, int64_t maps)
{
    static const int64_t to[4] = {1, -1, 1, 1};
    net_constant(n, "fb", ORT_DTYPE_FLOAT, 1, &maps, bias);
    net_constant(n, "to", ORT_DTYPE_INT64, 1, DIMS(4), to);
    net_node(n, "Div", "fb both", "in_codes");
    net_node(n, "Floor", "in_codes", "rounded");
    net_int(n, net_node(n, "Cast", "rounded", "codes"), "to", ORT_DTYPE_INT32);
    net_node(n, "Reshape", "codes to", "by_map");
    net_node(n, "Add", "sums by_map", "biased");
}

static void build_dynamic(net *n, const void *arg)
{
    const dynamic_case *c = arg;
    float scales[64], bias[64];
    for (int i = 0; i < 64; i++) {
        scales[i] = 0.001f * (float)(i % 7 + 1);
        bias[i] = (float)(i % 11) - 4.7f;
    }
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(2, c->channels, c->height, c->width));
    add_codes(n, "w", c->w, 4, DIMS(c->maps, c->channels / c->group, c->kernel[0], c->kernel[1]),
              17, lowest(c->w), lowest(c->w) + 255);
    add_number(n, "wz", c->w, c->w_zero);
    if (c->per_map)
        net_constant(n, "ws", ORT_DTYPE_FLOAT, 3, DIMS(c->maps, 1, 1), scales);
    else
        add_scale(n, "ws", 0.0013f);
    net_node(n, "DynamicQuantizeLinear", "x", "q s z");
    ort_node *conv = net_node(n, "ConvInteger", "q w z wz", "sums");
    set_ints(n, conv, "kernel_shape", c->kernel, 2);
    set_ints(n, conv, "strides", c->stride, 2);
    set_ints(n, conv, "dilations", c->dilation, 2);
    set_ints(n, conv, "pads", c->pads, 4);
    net_int(n, conv, "group", c->group);
    net_node(n, "Mul", "s ws", "both");
    if (c->sums)
        add_sums(n, bias, c->maps);
    net_int(n, net_node(n, "Cast", c->sums ? "biased" : "sums", "real"), "to", ORT_DTYPE_FLOAT);
    net_node(n, "Mul", "real both", c->bias ? "scaled" : "shifted");
    net_constant(n, "b", ORT_DTYPE_FLOAT, 4, DIMS(1, c->maps, 1, 1), bias);
    if (c->bias)
        net_node(n, "Add", "b scaled", "shifted");
    add_act(n, c->act, "shifted");
    net_output(n, "y");
}

static ort_value *numbers(const dynamic_case *c)
{
    ort_value *x = net_floats(4, DIMS(2, c->channels, c->height, c->width), 0, 0);
    uint32_t seed = 5;
    for (int64_t i = 0; x && i < ort_value_count(x); i++) {
        seed = seed * 1664525u + 1013904223u;
        ort_value_set_double(x, i, (double)(seed >> 8) / (1 << 20) - 5);
    }
    return x;
}

/* The plain operators on the scalar tier against the one node. */
static bool equals(const dynamic_case *c, const char *isa, int threads, ort_value *x)
{
    net plain, layout;
    ort_error err = {0};
    if (!net_on(&plain, "scalar", 1) || !net_on(&layout, isa, threads))
        return false;
    build_dynamic(&plain, c);
    build_dynamic(&layout, c);
    ort_session *a = at_level(&plain, 0, &err), *b = at_level(&layout, 3, &err);
    bool ok = a && b && count_ops(b, "BytesConvFloat") == 1 &&
              count_ops(b, "Cast") == c->sums &&
              !count_ops(b, "Add") && same(a, b, x, 0);
    if (!ok)
        printf("# %s, %d threads: %s\n", isa, threads, err.message);
    ort_session_free(a);
    ort_session_free(b);
    net_free(&plain);
    net_free(&layout);
    return ok;
}

static void dynamic_convs(test_state *test)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ort_value *x = numbers(&cases[i]);
        bool ok = x != NULL;
        for (int t = 0; ort_kernel_tier_at(t) && ok; t++)
            for (int threads = 1; threads <= 3 && ok && ort_kernel_tier_at(t)->has(); threads += 2)
                ok = equals(&cases[i], ort_kernel_tier_at(t)->name, threads, x);
        if (!ok)
            printf("# case %zu\n", i);
        CHECK(ok);
        ort_value_free(x);
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, dynamic_convs);
    return test.failures != 0;
}
