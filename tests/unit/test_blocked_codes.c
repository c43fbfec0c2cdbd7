/* test_blocked_codes.c - floats between products of bytes lie in the blocked layout: these give
 * them there, and codes go from there to the layout of bytes at once. Numbers are those of the
 * plain operators but for a code here and there, and the same with any number of threads.
 */
#include "bytes_nets.h"

typedef struct between {
    ort_dtype codes;
    int64_t channels, size, group, kernel; /* of the float convolution; no kernel: MaxPool */
    const char *act;                       /* before it, or NULL */
    bool squeezes;                         /* numbers per channel, by products of bytes too */
    bool outside;                          /* a plain operator reads its floats, too */
} between;

static const between cases[] = {
    {U, 40, 9, 40, 3, "HardSwish", false, false},
    {S, 24, 12, 24, 5, NULL, false, false},
    {U, 20, 7, 20, 3, "HardSwish", true, false}, /* half a block of bytes, none of floats */
    {S, 72, 6, 1, 3, NULL, true, false},
    {U, 33, 8, 33, 3, NULL, false, true},
    {U, 48, 10, 0, 0, "HardSwish", false, false},
};

/* A coded product of `in`, whose weights are drawn from `seed`, to floats `out`. */
static void add_product(net *n, const char *in, int64_t from, int64_t to, uint32_t seed,
                        const char *out)
{
    char name[4][16], line[64];
    for (int i = 0; i < 4; i++)
        snprintf(name[i], sizeof name[i], "%c%u", "wszr"[i], seed);
    add_codes(n, name[0], S, 4, DIMS(to, from, 1, 1), seed, -90, 90);
    add_scale(n, name[1], 0.002f);
    add_number(n, name[2], S, 0);
    snprintf(line, sizeof line, "%s %s %s", name[0], name[1], name[2]);
    net_node(n, "DequantizeLinear", line, name[3]);
    snprintf(line, sizeof line, "%s %s", in, name[3]);
    net_node(n, "Conv", line, out);
}

/* Codes of `in` and their floats `out`. */
static void add_pair(net *n, ort_dtype dtype, const char *in, const char *out)
{
    char line[64], coded[32];
    snprintf(line, sizeof line, "%s qs qz%d", in, dtype == S);
    snprintf(coded, sizeof coded, "%s_q", in);
    net_node(n, "QuantizeLinear", line, coded);
    snprintf(line, sizeof line, "%s qs qz%d", coded, dtype == S);
    net_node(n, "DequantizeLinear", line, out);
}

static void build(net *n, const between *c)
{
    float *w = calloc((size_t)(c->channels * c->channels * 25), sizeof *w);
    const int64_t wide = c->group > 1 ? 1 : c->channels, pad = c->kernel / 2;
    const char *now = "sum";
    net_input(n, "x", U, 4, DIMS(2, 16, c->size, c->size + 3));
    add_scale(n, "xs", 0.02f);
    add_number(n, "xz", U, 120);
    add_scale(n, "qs", 0.011f);
    add_number(n, "qz0", U, 90);
    add_number(n, "qz1", S, -20);
    net_node(n, "DequantizeLinear", "x xs xz", "real");
    add_product(n, "real", 16, c->channels, 3, "sum");
    if (c->act)
        net_node(n, c->act, now, "act");
    now = c->act ? "act" : now;
    ort_node *node;
    if (c->kernel && w) {
        char line[32];
        for (int64_t i = 0; i < c->channels * wide * c->kernel * c->kernel; i++)
            w[i] = (float)((i * 37) % 41 - 20) * (c->group > 1 ? 0.01f : 0.001f);
        net_constant(n, "wide", ORT_DTYPE_FLOAT, 4, DIMS(c->channels, wide, c->kernel, c->kernel),
                     w);
        snprintf(line, sizeof line, "%s wide", now);
        node = net_node(n, "Conv", line, "plane");
        set_ints(n, node, "pads", DIMS(pad, pad, pad, pad), 4);
        net_int(n, node, "group", c->group);
    } else {
        node = net_node(n, "MaxPool", now, "plane");
        set_ints(n, node, "kernel_shape", DIMS(2, 2), 2);
    }
    free(w);
    if (c->squeezes) {
        net_node(n, "GlobalAveragePool", "plane", "mean");
        add_pair(n, c->codes, "mean", "mean_r");
        add_product(n, "mean_r", c->channels, c->channels, 9, "by");
        net_node(n, "HardSigmoid", "by", "factor");
        net_node(n, "Mul", "plane factor", "scaled");
    }
    now = c->squeezes ? "scaled" : "plane";
    add_pair(n, c->codes, now, "again");
    add_product(n, "again", c->channels, 24, 21, "y");
    if (c->outside) {
        net_int(n, net_node(n, "Softmax", "plane", "soft"), "axis", 1);
        net_int(n, net_node(n, "Concat", "y soft", "z"), "axis", 1);
    }
    net_output(n, c->outside ? "z" : "y");
}

static ort_session *session_of(net *n, const between *c, const char *isa, int threads, int level)
{
    ort_error err = {0};
    if (!net_on(n, isa, threads))
        return NULL;
    build(n, c);
    ort_session *s = at_level(n, level, &err);
    if (!s)
        printf("# %s\n", err.message);
    return s;
}

static bool check_on(const between *c, const char *isa, ort_value *x)
{
    net plain, one, three;
    ort_session *a = session_of(&plain, c, isa, 1, 2), *b = session_of(&one, c, isa, 1, 3);
    ort_session *d = session_of(&three, c, isa, 3, 3);
    bool ok = a && b && d && same(a, b, x, 0.02) && same(b, d, x, 0);
    const int out = b ? count_ops(b, "UnblockChannels") : -1;
    const int codes = b ? count_ops(b, "QuantizeBlocked") : -1;
    ok = ok && out == c->outside && codes == 1 + c->squeezes && !count_ops(b, "BlockChannels") &&
         !count_ops(b, "QuantizeLinear") && count_ops(b, "BytesConvFloat") == 2 + c->squeezes;
    if (!ok)
        printf("# %s: %d ways out, %d of codes\n", isa, out, codes);
    ort_session_free(a);
    ort_session_free(b);
    ort_session_free(d);
    net_free(&plain);
    net_free(&one);
    net_free(&three);
    return ok;
}

static void blocked_codes(test_state *test)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const between *c = &cases[i];
        ort_value *x = codes(U, 4, DIMS(2, 16, c->size, c->size + 3), 5, 0, 255);
        for (int t = 0; ort_kernel_tier_at(t); t++) {
            const bool ok = !ort_kernel_tier_at(t)->has() ||
                            check_on(c, ort_kernel_tier_at(t)->name, x);
            if (!ok)
                printf("# case %zu\n", i);
            CHECK(ok);
        }
        ort_value_free(x);
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, blocked_codes);
    return test.failures != 0;
}
