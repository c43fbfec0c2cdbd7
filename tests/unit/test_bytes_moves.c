/* test_bytes_moves.c - what stands between quantized convolutions runs in the layout of bytes, and
 * gives the codes that it gives in the plain one: channels joined, divided, picked and shuffled
 * whatever their number, tables, sums and products with one element of each plane, means, larger
 * planes.
 */
#include "bytes_nets.h"

static void add_numbers(net *n, const char *name, int64_t count, const int64_t *numbers)
{
    net_constant(n, name, ORT_DTYPE_INT64, 1, &count, numbers);
}

static void set_word(net *n, ort_node *node, const char *name, const char *word)
{
    ort_attr attr = ort_attr_string(name, word);
    (void)!ort_node_set_attr(n->graph, node, &attr, NULL);
}

typedef struct between {
    const char *name;
    void (*add)(net *n, ort_dtype type); /* from "a" and "b" of 24 and 21 channels to "m" */
    int64_t channels;                    /* of m */
    const char *gone;                    /* an operator that isn't there any more */
    int convs;                           /* that are there: b may be unused */
} between;

static void add_concat(net *n, ort_dtype type)
{
    (void)type;
    ort_node *concat = net_node_of(n, "com.microsoft", "QLinearConcat",
                                   "s2 z b s2 z a s z2 b s2 z", "m");
    net_int(n, concat, "axis", 1);
}

static void add_plain_concat(net *n, ort_dtype type)
{
    (void)type;
    net_int(n, net_node(n, "Concat", "b a", "m"), "axis", -3);
}

/* As ShuffleNet: two halves joined, shuffled and divided again. */
static void add_shuffle(net *n, ort_dtype type)
{
    (void)type;
    add_numbers(n, "parts", 5, (const int64_t[]){-1, 5, 9, 10, 12});
    add_numbers(n, "whole", 4, (const int64_t[]){-1, 45, 10, 12});
    add_numbers(n, "cut", 2, (const int64_t[]){19, 26});
    ort_node *concat = net_node_of(n, "com.microsoft", "QLinearConcat", "s z a s z2 b s z", "j");
    net_int(n, concat, "axis", 1);
    net_node(n, "Reshape", "j parts", "j5");
    set_ints(n, net_node(n, "Transpose", "j5", "t5"), "perm", DIMS(0, 2, 1, 3, 4), 5);
    net_node(n, "Reshape", "t5 whole", "t");
    net_int(n, net_node(n, "Split", "t cut", "left right"), "axis", 1);
    net_node_of(n, "com.microsoft", "QLinearLeakyRelu", "left s2 z s z2", "l");
    net_int(n, net_node(n, "Concat", "right l", "m"), "axis", 1);
}

static void add_slices(net *n, ort_dtype type)
{
    (void)type;
    add_numbers(n, "first", 1, (const int64_t[]){-2});
    add_numbers(n, "last", 1, (const int64_t[]){-100});
    add_numbers(n, "axis", 1, (const int64_t[]){1});
    add_numbers(n, "step", 1, (const int64_t[]){-3});
    add_numbers(n, "picks", 3, (const int64_t[]){5, -1, 0});
    net_node(n, "Slice", "a first last axis step", "slice"); /* 8 */
    net_int(n, net_node(n, "Gather", "b picks", "g"), "axis", 1);
    net_int(n, net_node(n, "Concat", "g slice", "m"), "axis", 1);
}

static void add_table(net *n, ort_dtype type)
{
    (void)type;
    net_node(n, "DequantizeLinear", "a s2 z", "fa");
    net_node(n, "HardSwish", "fa", "fh");
    net_node(n, "QuantizeLinear", "fh s z2", "m");
}

/* One element of each plane against all: as squeeze and excitation have it. */
static void add_excite(net *n, ort_dtype type)
{
    (void)type;
    net_node_of(n, "com.microsoft", "QLinearGlobalAveragePool", "a s z s z2", "mean");
    net_node_of(n, "com.microsoft", "QLinearSigmoid", "mean s2 z2 sm z", "gate");
    net_node_of(n, "com.microsoft", "QLinearMul", "gate s2 z a s z s2 z2", "product");
    net_node_of(n, "com.microsoft", "QLinearMul", "product s2 z2 gate s2 z2 s2 z", "again");
    net_node_of(n, "com.microsoft", "QLinearAdd", "again s2 z mean s z2 s2 z2", "m");
}

static void add_average(net *n, ort_dtype type)
{
    (void)type;
    ort_node *pool = net_node_of(n, "com.microsoft", "QLinearAveragePool", "a s z s2 z2", "m");
    set_ints(n, pool, "kernel_shape", DIMS(3, 2), 2);
    set_ints(n, pool, "pads", DIMS(1, 0, 1, 1), 4);
    set_ints(n, pool, "strides", DIMS(2, 1), 2);
    net_int(n, pool, "count_include_pad", 1);
}

static void add_resize(net *n, ort_dtype type)
{
    static const float scales[] = {1, 1, 2, 1.5f};
    (void)type;
    net_constant(n, "scales", ORT_DTYPE_FLOAT, 1, DIMS(4), scales);
    add_numbers(n, "sizes", 4, (const int64_t[]){2, 24, 30, 25});
    set_word(n, net_node(n, "Resize", "a - scales", "larger"), "mode", "nearest");
    ort_node *again = net_node(n, "Resize", "larger - - sizes", "m");
    set_word(n, again, "mode", "nearest");
    set_word(n, again, "coordinate_transformation_mode", "asymmetric");
    set_word(n, again, "nearest_mode", "floor");
}

static const between betweens[] = {
    {"concat", add_concat, 66, "QLinearConcat", 3},
    {"plain concat", add_plain_concat, 45, "Concat", 3},
    {"shuffle", add_shuffle, 45, "Transpose", 3},
    {"slices", add_slices, 11, "Slice", 3},
    {"table", add_table, 24, "HardSwish", 2},
    {"excite", add_excite, 24, "QLinearGlobalAveragePool", 2},
    {"average", add_average, 24, "QLinearAveragePool", 2},
    {"resize", add_resize, 24, NULL, 2},
};

typedef struct between_case {
    const between *b;
    ort_dtype type;
} between_case;

/* Two convolutions, what stands behind them, another. */
static void build_between(net *n, const void *arg)
{
    const between_case *c = arg;
    const int low = lowest(c->type);
    net_input(n, "x", c->type, 4, DIMS(2, 19, 10, 12));
    add_codes(n, "wa", S, 4, DIMS(24, 19, 1, 1), 3, -128, 127);
    add_codes(n, "wb", S, 4, DIMS(21, 19, 3, 3), 4, -128, 127);
    add_codes(n, "wm", S, 4, DIMS(18, c->b->channels, 1, 1), 5, -128, 127);
    add_number(n, "z", c->type, low + 100);
    add_number(n, "z2", c->type, low + 3);
    add_number(n, "wz", S, 0);
    add_scale(n, "s", 0.5f);
    add_scale(n, "s2", 0.9f);
    add_scale(n, "sm", 0.004f);
    add_scale(n, "ws", 0.013f);
    net_node(n, "QLinearConv", "x s2 z wa ws wz s z", "a");
    set_ints(n, net_node(n, "QLinearConv", "x s2 z wb ws wz s z", "b"), "pads", DIMS(1, 1, 1, 1),
             4);
    c->b->add(n, c->type);
    net_node(n, "QLinearConv", "m s2 z wm ws wz s z2", "y");
    net_output(n, "y");
}

static void moves(test_state *test)
{
    for (size_t i = 0; i < sizeof betweens / sizeof *betweens; i++)
        for (int k = 0; k < 2; k++) {
            const between_case c = {&betweens[i], k ? S : U};
            const int low = lowest(c.type);
            ort_value *x = codes(c.type, 4, DIMS(2, 19, 10, 12), 7, low, low + 255);
            bool ok = on_all_tiers(build_between, &c, x, c.b->convs);
            net n;
            if (ok && net_on(&n, NULL, 1)) {
                build_between(&n, &c);
                ort_session *s = at_level(&n, 3, NULL);
                ok = s && count_ops(s, "BlockBytes") == 1 &&
                     (!c.b->gone || !count_ops(s, c.b->gone));
                ort_session_free(s);
                net_free(&n);
            }
            if (!ok)
                printf("# %s, %s\n", c.b->name, k ? "int8" : "uint8");
            CHECK(ok);
            ort_value_free(x);
        }
}

/* ---- lanes */

static void picks(test_state *test)
{
    enum { MOST = 9 };
    int8_t lanes[ORT_BYTES_BLOCK];
    uint8_t in[MOST * 16], out[MOST * 16 + 1];
    for (int t = 0; ort_kernel_tier_at(t); t++) {
        if (!ort_kernel_tier_at(t)->has())
            continue;
        const ort_bytes_kernels *k = &ort_kernels_get(ort_kernel_tier_at(t)->name)->bytes;
        for (int count = 1; count <= MOST; count++)
            for (int fresh = 0; fresh < 2; fresh++) {
                bool ok = true;
                for (int i = 0; i < 16; i++)
                    lanes[i] = (int8_t)(i % 3 == count % 3 ? -1 : (i * 7 + count) % 16);
                for (int i = 0; i < MOST * 16; i++) {
                    in[i] = (uint8_t)(i * 37 + 11);
                    out[i] = (uint8_t)(i + 3);
                }
                out[count * 16] = 99;
                k->pick(in, lanes, fresh, count, out);
                for (int i = 0; i < count * 16; i++)
                    ok = ok && out[i] == (lanes[i % 16] >= 0 ? in[i / 16 * 16 + lanes[i % 16]]
                                          : fresh            ? 0
                                                             : (uint8_t)(i + 3));
                CHECK(ok && out[count * 16] == 99);
            }
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, moves);
    RUN(&test, picks);
    return test.failures != 0;
}
