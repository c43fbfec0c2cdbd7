/* test_blocked.c - nets in the blocked channel layout give what they give in the plain one, on
 * every tier, whatever the window, the padding and the channels; and the same bits on any threads.
 */
#include <math.h>

#include "blocked_nets.h"
#include "op/edit.h"
#include "op/shared/parts.h"

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
    {64, 40, 19, 18, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}}, /* few tiles: cut for the threads, */
    {64, 64, 8, 8, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},   /* and too few for that */
    {16, 16, 5, 70, 16, {3, 7}, {1, 3}, {1, 2}, {1, 0, 1, 9}},
    {48, 72, 14, 15, 1, {1, 1}, {2, 2}, {1, 1}, {0, 0, 0, 0}}, /* pixels put side by side */
    {32, 64, 9, 20, 1, {1, 1}, {3, 1}, {1, 1}, {0, 0, 0, 0}},
    {32, 64, 9, 20, 1, {1, 1}, {2, 2}, {1, 1}, {1, 0, 1, 1}},
    {24, 1, 23, 32, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}}, /* few outputs: whole tiles, */
    {20, 3, 17, 33, 1, {3, 2}, {2, 2}, {1, 2}, {2, 4, 1, 5}}, /* edges, channels left over, */
    {40, 2, 9, 13, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},  /* the plane as one row, */
    {35, 4, 3, 5, 1, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},   /* less than a tile */
    {144, 80, 19, 14, 1, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}}, /* windows put side by side: sums */
    {32, 136, 20, 13, 1, {3, 3}, {1, 1}, {2, 2}, {2, 2, 2, 2}}, /* in parts, several pieces, */
    {64, 256, 9, 9, 2, {3, 3}, {2, 1}, {1, 1}, {1, 0, 0, 1}},   /* groups */
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
        CHECK(on_all_tiers(build_first, c, x, 2));
        ort_value_free(x);
    }
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

/* A weight far behind the others of its panel is infinite: no channel of zeros is left out. */
static void build_infinite(net *n, const void *arg)
{
    enum { CHANNELS = 272, MAPS = 16 };
    static float last[MAPS * CHANNELS];
    last[CHANNELS - 1] = *(const float *)arg;
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 3, 17, 19));
    add_weights(n, "w0", 4, DIMS(CHANNELS, 3, 1, 1));
    add_weights(n, "w1", 4, DIMS(CHANNELS, CHANNELS, 3, 3));
    net_constant(n, "w2", ORT_DTYPE_FLOAT, 4, DIMS(MAPS, CHANNELS, 1, 1), last);
    net_node(n, "Conv", "x w0", "a");
    net_node(n, "Relu", "a", "b");
    set_ints(n, net_node(n, "Conv", "b w1", "c"), "pads", DIMS(1, 1, 1, 1), 4);
    net_node(n, "Relu", "c", "d");
    net_node(n, "Conv", "d w2", "e");
    net_node(n, "Sigmoid", "e", "y");
    net_output(n, "y");
}

static void infinite_weights(test_state *test)
{
    static const float odd = INFINITY;
    ort_value *x = net_floats(4, DIMS(1, 3, 17, 19), 0, 0);
    CHECK(on_all_tiers(build_infinite, &odd, x, 3));
    ort_value_free(x);
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
    RUN(&test, infinite_weights);
    RUN(&test, chains);
    RUN(&test, pools_in_chains);
    RUN(&test, panels);
    RUN(&test, convolutions);
    RUN(&test, first_layers);
    RUN(&test, conversions);
    return test.failures != 0;
}
