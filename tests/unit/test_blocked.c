/* test_blocked.c - nets in the blocked channel layout give what they give in the plain one, on
 * every tier, whatever the window, the padding and the channels; and the same bits on any threads.
 */
#include <math.h>

#include "kernel/kernel.h"
#include "levels.h"
#include "op/edit.h"
#include "op/shared/parts.h"
#include "test.h"

typedef struct shape_case {
    int64_t channels, maps, height, width, group;
    int64_t kernel[2], stride[2], dilation[2], pads[4];
} shape_case;

static const shape_case cases[] = {
    {16, 16, 9, 13, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {48, 40, 7, 7, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
    {24, 24, 12, 30, 24, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {24, 24, 13, 31, 24, {3, 3}, {2, 2}, {1, 1}, {0, 0, 1, 1}},
    {32, 32, 11, 14, 32, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
    {32, 32, 15, 15, 32, {5, 5}, {2, 2}, {1, 1}, {2, 2, 2, 2}},
    {20, 33, 10, 10, 1, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}},
    {16, 24, 17, 16, 1, {3, 2}, {1, 2}, {2, 3}, {2, 4, 1, 5}},
    {48, 32, 1, 1, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
    {16, 24, 40, 41, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}}, /* long pieces of the plane */
    {16, 24, 9, 7, 1, {1, 1}, {1, 1}, {1, 1}, {0, 1, 0, 0}},   /* begins before the row */
    {32, 64, 6, 5, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {16, 16, 2, 3, 1, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
    {160, 48, 5, 5, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {64, 48, 23, 18, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}}, /* in tiles: odd edges, */
    {32, 40, 30, 29, 1, {3, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}}, /* no padding, */
    {40, 32, 20, 21, 1, {3, 3}, {1, 1}, {1, 1}, {2, 0, 1, 2}}, /* much of it, blocks not full */
    {16, 16, 5, 70, 16, {3, 7}, {1, 3}, {1, 2}, {1, 0, 1, 9}},
    {48, 72, 14, 15, 1, {1, 1}, {2, 2}, {1, 1}, {0, 0, 0, 0}}, /* pixels put side by side */
    {32, 64, 9, 20, 1, {1, 1}, {3, 1}, {1, 1}, {0, 0, 0, 0}},
    {32, 64, 9, 20, 1, {1, 1}, {2, 2}, {1, 1}, {1, 0, 1, 1}},
    {24, 1, 23, 32, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}}, /* few outputs: whole tiles, */
    {20, 3, 17, 33, 1, {3, 2}, {2, 2}, {1, 2}, {2, 4, 1, 5}}, /* edges, channels left over, */
    {40, 2, 9, 13, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},  /* the plane as one row, */
    {35, 4, 3, 5, 1, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},   /* less than a tile */
};

/* A panel holds each filter's terms where the contract says, wherever the filters lie. */
static void check_panel(test_state *test, const ort_blocked_kernels *k, int64_t maps, int64_t width,
                        int64_t channels, int64_t taps)
{
    enum { MAPS = 32, TERMS = 160 };
    static float panel[MAPS * TERMS];
    static char filters[MAPS * (TERMS + 3) * sizeof(float) + 1];
    char *from = filters + 1; /* aligned for nothing */
    int64_t step = channels * taps + 3, wrong = 0;
    for (int64_t i = 0; i < maps * step; i++) {
        float value = (float)i + 0.5f;
        memcpy(from + i * (int64_t)sizeof value, &value, sizeof value);
    }
    memset(panel, 0xff, sizeof panel);
    k->pack_panel(from, step, maps, width, channels, taps, panel);
    for (int64_t i = 0; i < width; i++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t t = 0; t < taps; t++)
                wrong += panel[(t * channels + c) * width + i] !=
                         (i < maps ? (float)(i * step + c * taps + t) + 0.5f : 0.0f);
    CHECK(wrong == 0);
}

static void panels(test_state *test)
{
    for (int i = 0; ort_kernel_tier_at(i); i++) {
        if (!ort_kernel_tier_at(i)->has())
            continue;
        const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(i)->name);
        for (int block = 0; k && block < 2; block++) {
            const ort_blocked_kernels *b = block ? &k->blocked16 : &k->blocked8;
            for (int64_t taps = 1; taps <= 9; taps += 4)
                for (int64_t channels = 1; channels <= 17; channels += 8)
                    for (int64_t width = b->vector; width <= 2 * b->vector; width += b->vector) {
                        check_panel(test, b, width, width, channels, taps);
                        check_panel(test, b, width - 3, width, channels, taps);
                        check_panel(test, b, 0, width, channels, taps);
                    }
        }
    }
}

/* Numbers that neither repeat soon nor grow: sums cancel as those of networks do. */
static void add_weights(net *n, const char *name, int rank, const int64_t *dims)
{
    ort_shape shape = ort_shape_make(rank, dims);
    int64_t count = ort_shape_count(&shape);
    float *data = malloc((size_t)count * sizeof *data);
    for (int64_t i = 0; data && i < count; i++)
        data[i] = sinf((float)(i % 1009) * 0.37f + (float)rank) / 8;
    if (data)
        net_constant(n, name, ORT_DTYPE_FLOAT, rank, dims, data);
    free(data);
}

static void set_window(net *n, ort_node *node, const shape_case *c)
{
    set_ints(n, node, "kernel_shape", c->kernel, 2);
    set_ints(n, node, "strides", c->stride, 2);
    set_ints(n, node, "dilations", c->dilation, 2);
    set_ints(n, node, "pads", c->pads, 4);
}

static void set_group(net *n, ort_node *node, const shape_case *c)
{
    net_int(n, node, "group", c->group);
    set_window(n, node, c);
}

/* x -> 1x1 Conv -> Relu -> 3x3 Conv, which makes the layout pay -> the Conv of the case -> Sigmoid
 */
static void build_case(net *n, const shape_case *c)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(2, 3, c->height, c->width));
    add_weights(n, "w0", 4, DIMS(c->channels, 3, 1, 1));
    add_weights(n, "w1", 4,
                DIMS(c->maps, c->channels / c->group, c->kernel[0], c->kernel[1]));
    add_weights(n, "b1", 1, DIMS(c->maps));
    add_weights(n, "w2", 4, DIMS(c->channels, c->channels, 3, 3));
    net_node(n, "Conv", "x w0", "a");
    net_node(n, "Relu", "a", "q");
    set_ints(n, net_node(n, "Conv", "q w2", "r"), "pads", DIMS(1, 1, 1, 1), 4);
    set_group(n, net_node(n, "Conv", "r w1 b1", "c"), c);
    net_node(n, "Sigmoid", "c", "y");
    net_output(n, "y");
}

typedef void build_fn(net *n, const void *arg);

/* Level 2 against level 3 on this tier, and level 3 on one thread against three. */
static bool agrees(const char *isa, build_fn *build, const void *arg, ort_value *x, int convs)
{
    net one, three;
    ort_error err = {0};
    bool ok = net_on(&one, isa, 1) && net_on(&three, isa, 3);
    if (!ok)
        return false;
    build(&one, arg);
    build(&three, arg);
    ort_session *plain = at_level(&one, 2, &err), *blocked = at_level(&one, 3, &err);
    ort_session *threads = at_level(&three, 3, &err);
    ok = plain && blocked && threads && count_ops(blocked, "BlockedConv") == convs &&
         same(plain, blocked, x, 2e-5) && same(blocked, threads, x, 0);
    if (!ok)
        printf("# %s: %s, %d convolutions blocked\n", isa, err.message,
               blocked ? count_ops(blocked, "BlockedConv") : -1);
    ort_session_free(plain);
    ort_session_free(blocked);
    ort_session_free(threads);
    net_free(&one);
    net_free(&three);
    return ok;
}

/* The net at level 3 on the best tier; NULL when it can't be made. */
static ort_session *blocked(net *n, build_fn *build, const void *arg)
{
    if (!net_on(n, NULL, 1))
        return NULL;
    build(n, arg);
    return at_level(n, 3, NULL);
}

/* How often operators stand in the net at level 3, as "OPERATOR=COUNT ..."; isa NULL: the best. */
static bool holds(const char *isa, build_fn *build, const void *arg, const char *counts)
{
    net n;
    char text[120], *rest = text;
    bool ok = net_on(&n, isa, 1);
    if (!ok)
        return false;
    build(&n, arg);
    ort_session *s = at_level(&n, 3, NULL);
    snprintf(text, sizeof text, "%s", counts);
    for (char *name; s && (name = strsep(&rest, "="));) {
        int wanted = atoi(strsep(&rest, " ")), found = count_ops(s, name);
        if (found != wanted)
            printf("# %s: %d, not %d\n", name, found, wanted);
        ok = ok && found == wanted;
    }
    ort_session_free(s);
    net_free(&n);
    return ok && s;
}

static bool on_all_tiers(build_fn *build, const void *arg, ort_value *x, int convs)
{
    for (int t = 0; ort_kernel_tier_at(t); t++)
        if (ort_kernel_tier_at(t)->has() &&
            !agrees(ort_kernel_tier_at(t)->name, build, arg, x, convs))
            return false;
    return true;
}

static void build_one(net *n, const void *arg)
{
    build_case(n, arg);
}

static void convolutions(test_state *test)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const shape_case *c = &cases[i];
        ort_value *x = net_floats(4, DIMS(2, 3, c->height, c->width), -1, 0.0037f);
        bool ok = on_all_tiers(build_one, c, x, 3);
        ort_value_free(x);
        if (!ok)
            printf("# case %zu\n", i);
        CHECK(ok);
    }
}

/* ---- first layers: plain rows in */

static void build_first(net *n, const void *arg)
{
    const shape_case *c = arg;
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, c->channels, c->height, c->width));
    add_weights(n, "w0", 4, DIMS(c->maps, c->channels, c->kernel[0], c->kernel[1]));
    add_weights(n, "w1", 4, DIMS(16, c->maps, 1, 1));
    set_window(n, net_node(n, "Conv", "x w0", "a"), c);
    net_node(n, "HardSwish", "a", "h");
    net_node(n, "Conv", "h w1", "b");
    net_node(n, "GlobalAveragePool", "b", "y");
    net_output(n, "y");
}

static void first_layers(test_state *test)
{
    static const shape_case first[] = {
        {1, 16, 28, 28, 1, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
        {3, 24, 33, 47, 1, {3, 3}, {2, 2}, {1, 1}, {0, 1, 1, 0}},
        {4, 40, 23, 9, 1, {7, 7}, {2, 1}, {1, 2}, {3, 6, 3, 6}},
        {3, 16, 224, 60, 1, {7, 7}, {2, 2}, {1, 1}, {3, 3, 3, 3}},
    };
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        const shape_case *c = &first[i];
        ort_value *x = net_floats(4, DIMS(1, c->channels, c->height, c->width), -2, 0.00031f);
        bool ok = on_all_tiers(build_first, c, x, 2);
        ort_value_free(x);
        CHECK(ok);
    }
}

/* ---- what joins the layout */

static void build_region(net *n, const void *arg)
{
    const char *ends = arg;
    int64_t one[2] = {3, 3}, two[2] = {2, 2}, pads[4] = {1, 1, 1, 1};
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 3, 26, 22));
    add_weights(n, "w0", 4, DIMS(32, 3, 3, 3));
    add_weights(n, "w1", 4, DIMS(32, 32, 3, 3));
    add_weights(n, "w2", 4, DIMS(16, 32, 1, 1));
    add_weights(n, "w3", 4, DIMS(32, 16, 1, 1));
    add_weights(n, "w4", 4, DIMS(24, 64, 1, 1));
    net_node(n, "Conv", "x w0", "a");
    ort_node *max = net_node(n, "MaxPool", "a", "p");
    set_ints(n, max, "kernel_shape", one, 2);
    set_ints(n, max, "strides", two, 2);
    set_ints(n, max, "pads", pads, 4);
    set_ints(n, net_node(n, "Conv", "p w1", "c"), "pads", pads, 4);
    net_node(n, "Add", "p c", "s"); /* a residual with its activation */
    net_node(n, "Relu", "s", "r");
    set_ints(n, net_node(n, "ReduceMean", "r", "g"), "axes", DIMS(-1, 2), 2); /* squeeze-excite */
    net_node(n, "Conv", "g w2", "g2");
    net_node(n, "Relu", "g2", "g3");
    net_node(n, "Conv", "g3 w3", "g4");
    net_node(n, "Sigmoid", "g4", "g5");
    net_node(n, "Mul", "g5 r", "m");
    ort_node *average = net_node(n, "AveragePool", "r", "v");
    set_ints(n, average, "kernel_shape", one, 2);
    set_ints(n, average, "pads", pads, 4);
    net_int(n, net_node(n, "Concat", "m v", "k"), "axis", 1);
    net_node(n, "Conv", "k w4", "e");
    net_node(n, "Exp", "e", "f");
    net_node(n, ends, "e f", "y");
    net_output(n, "y");
}

static void regions(test_state *test)
{
    static const char *const ends[] = {"Sub", "Max", "Mul"};
    ort_value *x = net_floats(4, DIMS(1, 3, 26, 22), -1, 0.0011f);
    for (int i = 0; i < 3; i++)
        CHECK(on_all_tiers(build_region, ends[i], x, 5));
    ort_value_free(x);
}

/* Branches of channels that don't fill their blocks, put behind each other. */
static void build_joins(net *n, const void *arg)
{
    const int64_t *channels = arg;
    char text[3][8];
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(2, 3, 21, 19));
    add_weights(n, "w0", 4, DIMS(40, 3, 3, 3));
    add_weights(n, "w3", 4, DIMS(24, channels[0] + channels[1] + channels[2], 3, 3));
    set_ints(n, net_node(n, "Conv", "x w0", "a"), "pads", DIMS(1, 1, 1, 1), 4);
    net_node(n, "Relu", "a", "b");
    for (int i = 0; i < 3; i++) {
        snprintf(text[0], sizeof text[0], "v%d", i);
        snprintf(text[1], sizeof text[1], "b v%d", i);
        snprintf(text[2], sizeof text[2], "c%d", i);
        add_weights(n, text[0], 4, DIMS(channels[i], 40, 3, 3));
        set_ints(n, net_node(n, "Conv", text[1], text[2]), "pads", DIMS(1, 1, 1, 1), 4);
    }
    net_int(n, net_node(n, "Concat", "c0 c1 c2", "d"), "axis", 1);
    net_node(n, "Conv", "d w3", "y");
    net_output(n, "y");
}

static void joins(test_state *test)
{
    static const int64_t channels[][3] = {{8, 24, 40}, {17, 3, 33}, {5, 58, 16}, {16, 4, 7}};
    ort_value *x = net_floats(4, DIMS(2, 3, 21, 19), -1, 0.0011f);
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        CHECK(on_all_tiers(build_joins, channels[i], x, 5));
        CHECK(holds(NULL, build_joins, channels[i], "UnblockChannels=1 BlockChannels=0"));
    }
    ort_value_free(x);
}

/* As many inputs as a node of the layout may have, and more. */
static void build_many(net *n, const void *arg)
{
    const int count = *(const int *)arg;
    char list[1024];
    int length = snprintf(list, sizeof list, "a");
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(2, 3, 21, 19));
    add_weights(n, "w0", 4, DIMS(64, 3, 3, 3));
    add_weights(n, "w1", 4, DIMS(16, 64, 3, 3));
    net_node(n, "Conv", "x w0", "b");
    net_node(n, "Conv", "b w1", "a"); /* the layout pays */
    for (int i = 1; i < count; i++)
        length += snprintf(list + length, sizeof list - (size_t)length, " a");
    net_int(n, net_node(n, "Concat", list, "d"), "axis", 1);
    net_node(n, "GlobalAveragePool", "d", "y");
    net_output(n, "y");
}

static void many_inputs(test_state *test)
{
    static const int counts[] = {64, 65, 200};
    ort_value *x = net_floats(4, DIMS(2, 3, 21, 19), -1, 0.0011f);
    for (int i = 0; i < 3; i++)
        CHECK(on_all_tiers(build_many, &counts[i], x, 2));
    ort_value_free(x);
}

/* One dimension, and a symbolic batch. */
static void build_line(net *n, const void *arg)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 3, DIMS(-1, 2, 57));
    add_weights(n, "w0", 3, DIMS(24, 2, 5));
    add_weights(n, "w1", 3, DIMS(16, 24, 3));
    net_node(n, "Conv", "x w0", "a");
    net_node(n, "Relu", "a", "r");
    set_ints(n, net_node(n, "Conv", "r w1", "y"), "dilations", DIMS(2), 1);
    net_output(n, "y");
}

static void lines(test_state *test)
{
    ort_value *x = net_floats(3, DIMS(3, 2, 57), -1, 0.011f);
    bool ok = on_all_tiers(build_line, NULL, x, 2);
    ort_value_free(x);
    CHECK(ok);
}

/* Planes of one column, which the kernels take for rows. */
static void build_columns(net *n, const void *arg)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(-1, 2, 61, 1));
    add_weights(n, "w0", 4, DIMS(40, 2, 5, 1));
    add_weights(n, "w1", 4, DIMS(32, 40, 7, 1));
    add_weights(n, "w2", 4, DIMS(32, 1, 3, 1));
    add_weights(n, "w3", 4, DIMS(33, 32, 1, 1));
    set_ints(n, net_node(n, "Conv", "x w0", "a"), "pads", DIMS(2, 0, 1, 0), 4);
    net_node(n, "Relu", "a", "b");
    ort_node *dilated = net_node(n, "Conv", "b w1", "c");
    set_ints(n, dilated, "pads", DIMS(5, 0, 6, 0), 4);
    set_ints(n, dilated, "dilations", DIMS(2, 1), 2);
    ort_node *each = net_node(n, "Conv", "c w2", "d");
    net_int(n, each, "group", 32);
    set_ints(n, each, "strides", DIMS(2, 1), 2);
    set_ints(n, each, "pads", DIMS(1, 0, 1, 0), 4);
    set_ints(n, net_node(n, "Conv", "d w3", "y"), "strides", DIMS(3, 1), 2);
    net_output(n, "y");
}

static void columns(test_state *test)
{
    ort_value *x = net_floats(4, DIMS(3, 2, 61, 1), -1, 0.011f);
    bool ok = on_all_tiers(build_columns, NULL, x, 4);
    ort_value_free(x);
    CHECK(ok);
}

/* What is nobody's in the input's last block is -inf, which no zero weight makes 0. */
static void build_nobodys(net *n, const void *arg)
{
    float hundred[20];
    for (int i = 0; i < 20; i++)
        hundred[i] = 100;
    net_constant(n, "b1", ORT_DTYPE_FLOAT, 1, DIMS(20), hundred);
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 3, 19, 24));
    add_weights(n, "w0", 4, DIMS(20, 3, 3, 3));
    add_weights(n, "w1", 4, DIMS(20, 20, 3, 3));
    add_weights(n, "w2", 4, DIMS(2, 20, 3, 3));
    net_node(n, "Conv", "x w0", "a");
    net_node(n, "Conv", "a w1 b1", "b");
    net_node(n, "Abs", "b", "c");
    net_node(n, "Log", "c", "d");
    net_node(n, "Conv", "d w2", "y");
    net_output(n, "y");
}

static void nobodys_lanes(test_state *test)
{
    ort_value *x = net_floats(4, DIMS(1, 3, 19, 24), -1, 0.0011f);
    CHECK(on_all_tiers(build_nobodys, NULL, x, 3));
    ort_value_free(x);
}

/* A height that nobody knows: scalars keep what they meet in the layout. */
static void build_unknown(net *n, const void *arg)
{
    const float half = 0.5f;
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 3, -1, 22));
    add_weights(n, "w0", 4, DIMS(32, 3, 3, 3));
    add_weights(n, "w1", 4, DIMS(32, 1, 3, 3));
    add_weights(n, "w2", 4, DIMS(48, 32, 1, 1));
    net_constant(n, "half", ORT_DTYPE_FLOAT, 0, NULL, &half);
    net_node(n, "Conv", "x w0", "a");
    net_node(n, "HardSwish", "a", "b");
    net_node(n, "Mul", "half b", "c");
    net_node(n, "Add", "c half", "d");
    net_int(n, net_node(n, "Conv", "d w1", "e"), "group", 32);
    net_node(n, "Conv", "e w2", "y");
    net_output(n, "y");
}

static void unknown_extents(test_state *test)
{
    ort_value *x = net_floats(4, DIMS(1, 3, 26, 22), -1, 0.0011f);
    CHECK(on_all_tiers(build_unknown, NULL, x, 3));
    /* the numbers went into the convolution before them */
    CHECK(holds(NULL, build_unknown, NULL, "Mul=0 Add=0"));
    ort_value_free(x);
}

/* Numbers behind an activation whose result two read: into the convolution; not where the value
 * between is read as well. */
static void build_affine(net *n, const void *arg)
{
    const bool taken = *(const bool *)arg;
    const float half = 0.5f, third = 1.0f / 3;
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 3, 26, 22));
    add_weights(n, "w0", 4, DIMS(32, 3, 3, 3));
    add_weights(n, "w1", 4, DIMS(32, 32, 3, 3));
    net_constant(n, "half", ORT_DTYPE_FLOAT, 0, NULL, &half);
    net_constant(n, "third", ORT_DTYPE_FLOAT, 1, DIMS(1), &third);
    set_ints(n, net_node(n, "Conv", "x w0", "a"), "pads", DIMS(1, 1, 1, 1), 4);
    net_node(n, "Sigmoid", "a", "b");
    net_node(n, "Mul", "half b", "c");
    net_node(n, "Add", "c third", "d");
    set_ints(n, net_node(n, "Conv", "d w1", "e"), "pads", DIMS(1, 1, 1, 1), 4);
    net_node(n, "Add", "e d", "f");
    net_node(n, taken ? "Relu" : "Sub", taken ? "f" : "f b", "y");
    net_output(n, "y");
}

/* Convolutions that scale and shift what they give. */
static int count_affine(const ort_session *session)
{
    ort_node *node;
    int count = 0;
    ORT_EACH_NODE(session->model->graph, node)
        count += ort_node_attr(node, "scale") && ort_node_attr(node, "shift");
    return count;
}

static void numbers_behind(test_state *test)
{
    ort_value *x = net_floats(4, DIMS(1, 3, 26, 22), -1, 0.0011f);
    for (int taken = 0; taken < 2; taken++) {
        const bool arg = taken;
        net n;
        CHECK(on_all_tiers(build_affine, &arg, x, 2));
        ort_session *s = blocked(&n, build_affine, &arg);
        CHECK(s && count_affine(s) == taken);
        ort_session_free(s);
        net_free(&n);
    }
    ort_value_free(x);
}

/* Numbers per channel: slopes behind each kind of convolution and alone, norms that nothing takes
 * in, what they give pooled. */
static void build_numbers(net *n, const void *arg)
{
    static const char *const stats[] = {"g0", "b0", "m0", "g1", "b1", "m1"};
    const float fifth = 0.2f;
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(2, 3, 26, 22));
    add_weights(n, "w0", 4, DIMS(40, 3, 3, 3));
    add_weights(n, "w1", 4, DIMS(40, 40, 3, 3));
    add_weights(n, "w2", 4, DIMS(40, 1, 3, 3));
    add_weights(n, "w3", 4, DIMS(33, 40, 1, 1));
    add_weights(n, "slopes", 3, DIMS(40, 1, 1));
    add_weights(n, "more", 4, DIMS(1, 33, 1, 1));
    net_constant(n, "fifth", ORT_DTYPE_FLOAT, 1, DIMS(1), &fifth);
    for (int i = 0; i < 6; i++)
        add_weights(n, stats[i], 1, DIMS(i < 3 ? 40 : 33));
    float variance[40];
    for (int i = 0; i < 40; i++)
        variance[i] = 1 + (float)i / 7;
    net_constant(n, "v0", ORT_DTYPE_FLOAT, 1, DIMS(40), variance);
    net_constant(n, "v1", ORT_DTYPE_FLOAT, 1, DIMS(33), variance);
    net_node(n, "Conv", "x w0", "a");
    net_node(n, "PRelu", "a slopes", "b");
    ort_node *max = net_node(n, "MaxPool", "b", "p");
    set_ints(n, max, "kernel_shape", DIMS(2, 2), 2);
    net_node(n, "BatchNormalization", "p g0 b0 m0 v0", "d");
    net_node(n, "Relu", "d", "d2");
    set_ints(n, net_node(n, "Conv", "d2 w1", "e"), "pads", DIMS(1, 1, 1, 1), 4);
    net_node(n, "PRelu", "e slopes", "f");
    ort_node *each = net_node(n, "Conv", "f w2", "h");
    net_int(n, each, "group", 40);
    set_ints(n, each, "pads", DIMS(1, 1, 1, 1), 4);
    net_node(n, "PRelu", "h fifth", "i");
    net_node(n, "Add", "i p", "j");
    net_node(n, "PRelu", "j slopes", "k");
    ort_node *last = net_node(n, "Conv", "k w3", "l");
    set_ints(n, last, "strides", DIMS(2, 3), 2);
    net_node(n, "HardSigmoid", "l", "o");
    net_node(n, "BatchNormalization", "o g1 b1 m1 v1", "q");
    net_node(n, "PRelu", "q more", "r");
    net_node(n, "Mul", "more r", "y");
    net_output(n, "y");
}

static void numbers_per_channel(test_state *test)
{
    ort_value *x = net_floats(4, DIMS(2, 3, 26, 22), -1, 0.0011f);
    CHECK(on_all_tiers(build_numbers, NULL, x, 4));
    /* a norm with its activation, slopes behind a sum, a norm with its slopes, and a product */
    CHECK(holds(NULL, build_numbers, NULL,
                "BlockedAffine=4 UnblockChannels=1 PRelu=0 Relu=0 MaxPool=0"));
    ort_value_free(x);
}

/* ---- between planes and blocks */

/* Blocks hold what the planes hold and zeros beyond the last channel; back again, nothing beyond
 * the planes is written. */
static bool converts(const ort_blocked_kernels *k, int64_t block, int64_t channels, int64_t plane)
{
    float in[17 * 40], out[17 * 40], blocked[17 * 40 + 1];
    for (int i = 0; i < 17 * 40; i++) {
        in[i] = (float)i;
        out[i] = -1;
    }
    blocked[plane * block] = -2;
    k->gather(in, plane, channels, plane, blocked);
    if (blocked[plane * block] != -2)
        return false;
    for (int64_t i = 0; i < plane * block; i++) {
        int64_t c = i % block;
        if (blocked[i] != (c < channels ? in[c * plane + i / block] : 0))
            return false;
    }
    k->scatter(blocked, plane, channels, plane, out);
    return !memcmp(in, out, sizeof *in * (size_t)(channels * plane)) &&
           out[channels * plane] == -1;
}

static void conversions(test_state *test)
{
    for (int t = 0; ort_kernel_tier_at(t); t++) {
        const ort_kernels *k = ort_kernel_tier_at(t)->has()
                                   ? ort_kernels_get(ort_kernel_tier_at(t)->name)
                                   : NULL;
        for (int64_t channels = 1; k && channels <= 16; channels++)
            for (int64_t plane = 1; plane < 40; plane++) {
                CHECK(channels > 8 || converts(&k->blocked8, 8, channels, plane));
                CHECK(converts(&k->blocked16, 16, channels, plane));
            }
    }
}

/* Nothing known of the plane nor of the batch: a residual and squeeze-excite stay in the layout. */
static void build_open(net *n, const void *arg)
{
    ort_id x = net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(0, 3, 0, 0));
    for (int i = 0; i < 4; i++)
        if (i != 1)
            n->graph->values.data[x]->fact.type.dim[i] = ort_dim_unknown();
    add_weights(n, "w0", 4, DIMS(32, 3, 3, 3));
    add_weights(n, "w3", 4, DIMS(32, 32, 3, 3));
    add_weights(n, "w1", 4, DIMS(32, 32, 1, 1));
    add_weights(n, "w2", 4, DIMS(40, 32, 1, 1));
    set_ints(n, net_node(n, "Conv", "x w0", "b"), "pads", DIMS(1, 1, 1, 1), 4);
    set_ints(n, net_node(n, "Conv", "b w3", "a"), "pads", DIMS(1, 1, 1, 1), 4);
    net_node(n, "GlobalAveragePool", "a", "g");
    net_node(n, "Conv", "g w1", "h");
    net_node(n, "HardSigmoid", "h", "s");
    net_node(n, "Mul", "a s", "m");
    net_node(n, "Conv", "m w1", "c");
    net_node(n, "Add", "a c", "r");
    net_node(n, "Conv", "r w2", "y");
    net_output(n, "y");
}

static void open_extents(test_state *test)
{
    ort_value *x = net_floats(4, DIMS(2, 3, 9, 11), -1, 0.0011f);
    CHECK(on_all_tiers(build_open, NULL, x, 5));
    CHECK(holds(NULL, build_open, NULL, "BlockedMul=1 UnblockChannels=1"));
    ort_value_free(x);
}

/* A head: a pixel repeated by whole factors, or mixed, then fewer maps than a block holds. */
static void build_head(net *n, const void *arg)
{
    const char *const *how = arg;
    const float scales[] = {1, 1, 2, 3};
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(2, 3, 7, 9));
    add_weights(n, "w0", 4, DIMS(40, 3, 3, 3));
    add_weights(n, "w3", 4, DIMS(40, 40, 3, 3));
    add_weights(n, "w1", 4, DIMS(5, 40, 1, 1));
    add_weights(n, "w2", 4, DIMS(5, 1, 3, 3));
    net_constant(n, "scales", ORT_DTYPE_FLOAT, 1, DIMS(4), scales);
    set_ints(n, net_node(n, "Conv", "x w0", "b"), "pads", DIMS(1, 1, 1, 1), 4);
    set_ints(n, net_node(n, "Conv", "b w3", "a"), "pads", DIMS(1, 1, 1, 1), 4);
    ort_node *node = net_node(n, "Resize", "a - scales", "r");
    for (int i = 0; i < 2; i++) {
        static const char *const names[] = {"coordinate_transformation_mode", "nearest_mode"};
        bool linear = !strcmp(how[i], "linear");
        ort_attr attr = {.name = linear ? "mode" : names[i], .type = ORT_ATTR_STRING};
        attr.s = (ort_string){how[i], strlen(how[i])};
        (void)!ort_node_set_attr(n->graph, node, &attr, NULL);
    }
    net_node(n, "Conv", "r w1", "c");
    net_int(n, net_node(n, "Conv", "c w2", "y"), "group", 5);
    net_output(n, "y");
}

static void heads(test_state *test)
{
    static const char *const how[][2] = {{"asymmetric", "floor"},
                                         {"half_pixel", "round_prefer_floor"},
                                         {"pytorch_half_pixel", "round_prefer_ceil"},
                                         {"half_pixel", "linear"},
                                         {"align_corners", "linear"},
                                         {"asymmetric", "linear"},
                                         {"asymmetric", "ceil"}};
    ort_value *x = net_floats(4, DIMS(2, 3, 7, 9), -1, 0.0011f);
    const int last = (int)(sizeof how / sizeof *how) - 1;
    for (int i = 0; i <= last; i++) {
        CHECK(on_all_tiers(build_head, how[i], x, i < last ? 4 : 2));
        CHECK(holds("avx2", build_head, how[i], /* ceil takes another pixel */
                    i < last ? "BlockedUpsample=1" : "BlockedUpsample=0"));
    }
    ort_value_free(x);
}

/* ---- chains that run by rows */

/* A first layer, its depthwise one and a 1x1 that narrows; then an inverted residual. */
static void build_chains(net *n, const void *arg)
{
    const shape_case *c = arg;
    const int64_t wide = c->channels, narrow = c->maps;
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(2, 3, c->height, c->width));
    add_weights(n, "w0", 4, DIMS(wide, 3, 3, 3));
    add_weights(n, "w1", 4, DIMS(wide, 1, c->kernel[0], c->kernel[1]));
    add_weights(n, "w2", 4, DIMS(narrow, wide, 1, 1));
    add_weights(n, "w3", 4, DIMS(wide, narrow, 1, 1));
    add_weights(n, "w4", 4, DIMS(wide, 1, 3, 3));
    add_weights(n, "w5", 4, DIMS(narrow, wide, 1, 1));
    add_weights(n, "b", 1, DIMS(wide));
    add_weights(n, "b2", 1, DIMS(narrow));
    set_ints(n, net_node(n, "Conv", "x w0 b", "a"), "pads", DIMS(1, 0, 1, 2), 4);
    net_node(n, "Relu", "a", "a2");
    ort_node *each = net_node(n, "Conv", "a2 w1 b", "d");
    net_int(n, each, "group", wide);
    set_window(n, each, c);
    net_node(n, "HardSwish", "d", "d2");
    net_node(n, "Conv", "d2 w2 b2", "p");
    net_node(n, "Conv", "p w3 b", "e");
    net_node(n, "Sigmoid", "e", "e2");
    net_node(n, "Mul", "e e2", "e3");
    ort_node *second = net_node(n, "Conv", "e3 w4 b", "f");
    net_int(n, second, "group", wide);
    set_ints(n, second, "pads", DIMS(1, 1, 1, 1), 4);
    net_node(n, "Conv", "f w5 b2", "g");
    net_node(n, "Add", "g p", "y");
    net_output(n, "y");
}

static void chains(test_state *test)
{
    static const shape_case shapes[] = {
        {48, 24, 61, 67, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
        {40, 16, 91, 85, 1, {5, 5}, {2, 1}, {1, 1}, {2, 0, 1, 2}},
        {72, 33, 59, 61, 1, {7, 3}, {1, 1}, {2, 1}, {6, 1, 6, 1}},
        {100, 20, 33, 64, 1, {3, 5}, {1, 1}, {1, 1}, {0, 2, 0, 2}},
        {48, 24, 61, 67, 1, {9, 3}, {1, 1}, {1, 1}, {4, 1, 4, 1}}, /* no ring of rows for these */
        {48, 24, 61, 67, 1, {3, 3}, {1, 1}, {1, 1}, {1, 3, 1, 1}},
        {48, 24, 61, 67, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 4}},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const shape_case *c = &shapes[i];
        ort_value *x = net_floats(4, DIMS(2, 3, c->height, c->width), -1, 0.00017f);
        CHECK(on_all_tiers(build_chains, c, x, i < 4 ? 0 : 3));
        CHECK(holds(NULL, build_chains, c, i < 4 ? "BlockedConvChain=2" : "BlockedConvChain=1"));
        ort_value_free(x);
    }
}

/* Maxima between convolutions, and behind the last; slopes or Relu behind the first. */
static void build_pools(net *n, const void *arg)
{
    const bool leaks = arg;
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(2, 3, 63, 70));
    add_weights(n, "w0", 4, DIMS(48, 3, 3, 3));
    add_weights(n, "w1", 4, DIMS(56, 48, 1, 1));
    add_weights(n, "b0", 1, DIMS(48));
    add_weights(n, "b1", 1, DIMS(56));
    net_node(n, "Conv", "x w0 b0", "a");
    add_weights(n, "slopes", 3, DIMS(48, 1, 1));
    net_node(n, leaks ? "PRelu" : "Relu", leaks ? "a slopes" : "a", "a2");
    ort_node *wide = net_node(n, "MaxPool", "a2", "p");
    set_ints(n, wide, "kernel_shape", DIMS(5, 7), 2);
    set_ints(n, wide, "pads", DIMS(2, 3, 2, 3), 4);
    net_node(n, "Conv", "p w1 b1", "c");
    net_node(n, "HardSwish", "c", "c2");
    ort_node *half = net_node(n, "MaxPool", "c2", "y");
    set_ints(n, half, "kernel_shape", DIMS(3, 2), 2);
    set_ints(n, half, "strides", DIMS(2, 2), 2);
    set_ints(n, half, "pads", DIMS(1, 0, 1, 0), 4);
    net_int(n, half, "ceil_mode", 1);
    net_output(n, "y");
}

static void pools_in_chains(test_state *test)
{
    ort_value *x = net_floats(4, DIMS(2, 3, 63, 70), -1, 0.00017f);
    for (int leaks = 0; leaks < 2; leaks++) {
        const void *arg = leaks ? x : NULL;
        CHECK(on_all_tiers(build_pools, arg, x, 0));
        CHECK(holds(NULL, build_pools, arg,
                    "BlockedConvChain=1 BlockedMaxPool=0 PRelu=0 BlockedAffine=0"));
    }
    ort_value_free(x);
}

/* ---- NaN and infinity go through the epilogues as through the plain operators */

/* A convolution of every kind but Winograd's, whose transforms mix neighbours; the activation
 * `name` behind each. */
static void build_special(net *n, const void *arg)
{
    const char *name = arg;
    const float six = 6, zero = 0;
    char from[24], to[24];
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 3, 41, 38));
    net_constant(n, "zero", ORT_DTYPE_FLOAT, 0, NULL, &zero);
    net_constant(n, "six", ORT_DTYPE_FLOAT, 0, NULL, &six);
    add_weights(n, "w0", 4, DIMS(24, 3, 3, 3));
    add_weights(n, "w1", 4, DIMS(40, 24, 1, 1));
    add_weights(n, "w2", 4, DIMS(40, 1, 3, 3));
    add_weights(n, "w3", 4, DIMS(24, 40, 3, 3));
    for (int i = 0; i < 4; i++) {
        snprintf(to, sizeof to, "slopes%d", i);
        add_weights(n, to, 3, DIMS(i % 3 ? 40 : 24, 1, 1));
        const int64_t pad = i == 1 ? 0 : 1, stride = i == 3 ? 2 : 1;
        snprintf(from, sizeof from, i ? "y%d w%d" : "x w0", i - 1, i);
        snprintf(to, sizeof to, "c%d", i);
        ort_node *conv = net_node(n, "Conv", from, to);
        set_ints(n, conv, "pads", DIMS(pad, pad, pad, pad), 4);
        set_ints(n, conv, "strides", DIMS(stride, stride), 2);
        if (i == 2)
            net_int(n, conv, "group", 40);
        snprintf(from, sizeof from, strcmp(name, "Clip") ? "c%d" : "c%d zero six", i);
        if (!strcmp(name, "PRelu"))
            snprintf(from, sizeof from, "c%d slopes%d", i, i);
        snprintf(to, sizeof to, i == 3 ? "y" : "y%d", i);
        if (strcmp(name, "Swish")) {
            net_node(n, name, from, to);
            continue;
        }
        char sigmoid[24];
        snprintf(sigmoid, sizeof sigmoid, "s%d", i);
        net_node(n, "Sigmoid", from, sigmoid);
        snprintf(from, sizeof from, "c%d s%d", i, i);
        net_node(n, "Mul", from, to);
    }
    net_output(n, "y");
}

/* The input of a test, some of its elements no numbers: far enough apart to leave others. */
static ort_value *special_floats(int64_t images, int64_t height, int64_t width)
{
    static const float specials[] = {NAN, INFINITY, -INFINITY};
    ort_value *x = net_floats(4, DIMS(images, 3, height, width), -1, 0.0011f);
    float *data = ort_value_data(x);
    for (int64_t i = 0; i < 3; i++)
        data[(i * height + 5 + 12 * i) * width + 9 * (i + 1)] = specials[i];
    return x;
}

static void specials(test_state *test)
{
    static const char *const names[] = {"Relu", "Clip", "HardSwish", "Swish", "LeakyRelu",
                                        "PRelu", "Sigmoid"};
    static const shape_case inverted = {48, 24, 61, 67, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
    ort_value *x = special_floats(1, 41, 38), *wide = special_floats(2, 61, 67), *y = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK(on_all_tiers(build_special, names[i], x, 4));
    CHECK(on_all_tiers(build_chains, &inverted, wide, 0));
    ort_value_free(wide);
    wide = special_floats(2, 63, 70);
    CHECK(on_all_tiers(build_pools, NULL, wide, 0));
    net n; /* the comparison above is of some numbers, and of some that are none */
    ort_error err = {0};
    int64_t odd = 0;
    ort_session *s = blocked(&n, build_special, "Relu");
    CHECK(s && !run_whole(s, &x, &y, NULL, &err));
    for (int64_t i = 0; y && i < 24 * 21 * 19; i++)
        odd += !isfinite(((const float *)ort_value_data(y))[i]);
    CHECK(odd > 0 && odd < 24 * 21 * 19 / 2);
    ort_value_free(x);
    ort_value_free(y);
    ort_value_free(wide);
    ort_session_free(s);
    net_free(&n);
}

/* Every cell once; the tasks of a part follow each other, and are those of its rows. */
static void parts(test_state *test)
{
    for (int64_t rows = 1; rows <= 9; rows++)
        for (int64_t columns = 1; columns <= 4; columns++)
            for (int64_t count = 1; count <= rows; count++) {
                int seen[9 * 4] = {0};
                int64_t part = 0;
                for (int64_t task = 0; task < rows * columns; task++) {
                    ort_cell at = ort_parts_cell(task, rows, columns, count);
                    CHECK(at.row >= 0 && at.row < rows && at.column >= 0 && at.column < columns);
                    CHECK(seen[at.row * columns + at.column]++ == 0);
                    part += at.row >= rows * (part + 1) / count;
                    CHECK(at.row >= rows * part / count && at.row < rows * (part + 1) / count);
                }
            }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, parts);
    RUN(&test, specials);
    RUN(&test, chains);
    RUN(&test, pools_in_chains);
    RUN(&test, open_extents);
    RUN(&test, heads);
    RUN(&test, panels);
    RUN(&test, convolutions);
    RUN(&test, first_layers);
    RUN(&test, regions);
    RUN(&test, joins);
    RUN(&test, many_inputs);
    RUN(&test, lines);
    RUN(&test, columns);
    RUN(&test, nobodys_lanes);
    RUN(&test, unknown_extents);
    RUN(&test, numbers_behind);
    RUN(&test, numbers_per_channel);
    RUN(&test, conversions);
    return test.failures != 0;
}
