/* test_coded_convs.c - convolutions of codes whose result stays float run on the layout of bytes:
 * near the float operators, and the same bits on every tier and number of threads. Where a function
 * and then codes follow, these come of the convolution itself, and are those of its floats.
 */
#include "bytes_nets.h"

typedef struct coded_case {
    ort_dtype x, w;
    int x_zero, w_zero;
    int64_t channels, maps, size, group, kernel;
    bool bias, per_map;
    const char *act; /* an operator without attributes, or NULL */
    bool before;     /* a quantized convolution gives its input */
} coded_case;

static const coded_case cases[] = {
    {U, S, 128, 0, 20, 40, 9, 1, 3, true, true, NULL, false},
    {U, S, 3, 0, 3, 18, 12, 1, 3, true, false, "Relu", false},
    {S, S, -7, 0, 24, 24, 11, 24, 3, true, true, "Clip", false},
    {S, S, 5, 0, 33, 7, 8, 1, 1, false, true, "Sigmoid", false},
    {U, U, 100, 128, 32, 32, 6, 2, 3, true, true, "Relu", false},
    {U, S, 120, 0, 16, 20, 9, 1, 1, true, true, "Sigmoid", true},
    {S, S, 0, 0, 16, 20, 9, 1, 3, true, false, NULL, true},
    {U, S, 128, 0, 3, 40, 13, 1, 3, true, true, "LeakyRelu", false},
    {S, S, 4, 0, 24, 33, 9, 1, 3, true, true, "LeakyRelu", true},
    {U, S, 9, 0, 24, 24, 9, 24, 3, true, false, "HardSigmoid", false},
    {U, S, 30, 0, 40, 56, 7, 1, 3, true, true, "HardSwish", false},
    {S, S, 0, 0, 32, 64, 17, 2, 1, false, true, "Elu", true},
    {U, S, 200, 0, 40, 40, 2, 40, 5, true, true, NULL, false}, /* read in place */
    {S, S, 3, 0, 24, 24, 37, 24, 5, true, false, "Relu", true},
    {U, S, 9, 0, 8, 8, 31, 8, 3, false, true, "HardSwish", false},
};

static void add_weight(net *n, const coded_case *c, int64_t maps, const char *w, const char *real)
{
    float scales[64];
    char line[64];
    for (int i = 0; i < 64; i++)
        scales[i] = 0.001f * (float)(i % 7 + 1);
    add_codes(n, w, c->w, 4, DIMS(maps, c->channels / c->group, c->kernel, c->kernel), 17,
              lowest(c->w) + 1, lowest(c->w) + 255);
    snprintf(line, sizeof line, "%s_s", w);
    if (c->per_map)
        net_constant(n, line, ORT_DTYPE_FLOAT, 1, DIMS(maps), scales);
    else
        add_scale(n, line, 0.0013f);
    int8_t s[64];
    memset(s, c->w_zero, sizeof s);
    snprintf(line, sizeof line, "%s_z", w);
    net_constant(n, line, c->w, c->per_map, DIMS(maps), s);
    snprintf(line, sizeof line, "%s %s_s %s_z", w, w, w);
    ort_node *node = net_node(n, "DequantizeLinear", line, real);
    if (c->per_map)
        net_int(n, node, "axis", 0);
}

static void add_conv(net *n, const coded_case *c, const char *in, const char *out)
{
    const int64_t pad = c->kernel / 2, pads[4] = {pad, pad, pad, pad};
    ort_node *conv = net_node(n, "Conv", in, out);
    set_ints(n, conv, "pads", pads, 4);
    net_int(n, conv, "group", c->group);
}

static void build_result(net *n, const coded_case *c)
{
    static const float low = -3, high = 6;
    int32_t bias[64];
    for (int i = 0; i < 64; i++)
        bias[i] = 400 * (i % 11) - 2000;
    net_input(n, "x", c->x, 4, DIMS(2, c->channels, c->size, c->size));
    add_scale(n, "xs", 0.021f);
    add_number(n, "xz", c->x, c->x_zero);
    net_node(n, "DequantizeLinear", "x xs xz", c->before ? "first" : "real");
    if (c->before) {
        add_weight(n, c, c->channels, "v", "v_real");
        add_conv(n, c, "first v_real", "second");
        net_node(n, "QuantizeLinear", "second xs xz", "codes");
        net_node(n, "DequantizeLinear", "codes xs xz", "real");
    }
    add_weight(n, c, c->maps, "w", "w_real");
    net_constant(n, "b", ORT_DTYPE_INT32, 1, DIMS(c->maps), bias);
    add_scale(n, "bs", 0.0004f);
    if (c->bias)
        net_node(n, "DequantizeLinear", "b bs", "b_real");
    add_conv(n, c, c->bias ? "real w_real b_real" : "real w_real", c->act ? "sum" : "y");
    net_constant(n, "low", ORT_DTYPE_FLOAT, 0, NULL, &low);
    net_constant(n, "high", ORT_DTYPE_FLOAT, 0, NULL, &high);
    if (c->act)
        net_node(n, c->act, c->act[0] == 'C' ? "sum low high" : "sum", "y");
}

static void build(net *n, const void *arg)
{
    build_result(n, arg);
    net_output(n, "y");
}

/* Of type x, as the input is. */
static void build_codes(net *n, const coded_case *c)
{
    build_result(n, c);
    add_scale(n, "ys", 0.037f);
    add_number(n, "yz", c->x, lowest(c->x) + 77);
    net_node(n, "QuantizeLinear", "y ys yz", "q");
    net_output(n, "q");
}

/* On this tier against another net's session: the plain operators, or the first tier. */
static bool equals(const coded_case *c, const char *isa, int threads, ort_session *other,
                   ort_value *x, double tolerance)
{
    net layout;
    ort_error err = {0};
    if (!net_on(&layout, isa, threads))
        return false;
    build(&layout, c);
    ort_session *b = at_level(&layout, 3, &err);
    bool ok = b && count_ops(b, "BytesConvFloat") == 1 && !count_ops(b, "FusedConv") &&
              !count_ops(b, "DequantizeLinear") && !count_ops(b, "UnblockBytes") &&
              same(other, b, x, tolerance);
    if (!ok)
        printf("# %s, %d threads: %s\n", isa, threads, err.message);
    ort_session_free(b);
    net_free(&layout);
    return ok;
}

static bool check_case(const coded_case *c, ort_value *x)
{
    net plain, first;
    ort_error err = {0};
    if (!x || !net_on(&plain, "scalar", 1) || !net_on(&first, "scalar", 1))
        return false;
    build(&plain, c);
    build(&first, c);
    ort_session *a = at_level(&plain, 2, &err), *b = at_level(&first, 3, &err);
    bool ok = a && b && equals(c, "scalar", 1, a, x, 1e-4);
    for (int t = 0; ort_kernel_tier_at(t) && ok; t++)
        for (int threads = 1; threads <= 3 && ok && ort_kernel_tier_at(t)->has(); threads += 2)
            ok = equals(c, ort_kernel_tier_at(t)->name, threads, b, x,
                        c->act && strchr("SHE", c->act[0]) ? 1e-6 : 0);
    ort_session_free(a);
    ort_session_free(b);
    net_free(&plain);
    net_free(&first);
    return ok;
}

static void coded_convs(test_state *test)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const coded_case *c = &cases[i];
        ort_value *x = codes(c->x, 4, DIMS(2, c->channels, c->size, c->size), 3, lowest(c->x),
                             lowest(c->x) + 255);
        bool ok = check_case(c, x);
        if (!ok)
            printf("# case %zu\n", i);
        CHECK(ok);
        ort_value_free(x);
    }
}

/* Are these the codes of these floats? */
static bool codes_of(ort_value *numbers, ort_value *q, ort_dtype dtype)
{
    for (int64_t i = 0; i < ort_value_count(numbers); i++) {
        const float number = ((const float *)ort_value_data(numbers))[i];
        const float least = (float)lowest(dtype);
        const float code = rintf(number / 0.037f) + least + 77;
        const float wanted = fminf(fmaxf(code, least), least + 255);
        const float given = dtype == S ? (float)((const int8_t *)ort_value_data(q))[i]
                                       : (float)((const uint8_t *)ort_value_data(q))[i];
        if (given != wanted) {
            printf("# element %lld: %g, not %g\n", (long long)i, (double)given, (double)wanted);
            return false;
        }
    }
    return ort_value_count(numbers) == ort_value_count(q);
}

static bool gives_codes(const coded_case *c, const char *isa, int threads, ort_value *x)
{
    net floats, coded;
    ort_error err = {0};
    ort_value *y[1] = {NULL}, *q[1] = {NULL};
    if (!net_on(&floats, isa, threads) || !net_on(&coded, isa, threads))
        return false;
    build(&floats, c);
    build_codes(&coded, c);
    ort_session *a = at_level(&floats, 3, &err), *b = at_level(&coded, 3, &err);
    bool ok = a && b && count_ops(a, "BytesConvFloat") == 1 &&
              count_ops(b, "BytesConvThrough") == 1 && !count_ops(b, c->act) &&
              !count_ops(b, "QuantizeLinear") && !run_whole(a, &x, y, NULL, &err) &&
              !run_whole(b, &x, q, NULL, &err) && codes_of(y[0], q[0], c->x);
    if (!ok)
        printf("# %s, %d threads: %s\n", isa, threads, err.message);
    ort_value_free(y[0]);
    ort_value_free(q[0]);
    ort_session_free(a);
    ort_session_free(b);
    net_free(&floats);
    net_free(&coded);
    return ok;
}

static void codes_behind(test_state *test)
{
    int count = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const coded_case *c = &cases[i];
        if (!c->act || !strchr("SLHE", c->act[0])) /* others are QLinearConv then */
            continue;
        ort_value *x = codes(c->x, 4, DIMS(2, c->channels, c->size, c->size), 3, lowest(c->x),
                             lowest(c->x) + 255);
        CHECK(x);
        for (int t = 0; ort_kernel_tier_at(t); t++)
            for (int threads = 1; threads <= 3 && ort_kernel_tier_at(t)->has(); threads += 2) {
                CHECK(gives_codes(c, ort_kernel_tier_at(t)->name, threads, x));
                count++;
            }
        ort_value_free(x);
    }
    CHECK(count > 0);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, coded_convs);
    RUN(&test, codes_behind);
    return test.failures != 0;
}
