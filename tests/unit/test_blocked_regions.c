/* test_blocked_regions.c - what joins the blocked channel layout and what leaves it: residuals,
 * branches, numbers behind convolutions, heads, planes that nobody knows; the same values as in the
 * plain layout.
 */
#include <math.h>

#include "blocked_nets.h"
#include "op/blocked/blocked_op.h"
#include "op/edit.h"

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

/* Planes of one column, which the kernels take for rows; short ones put windows side by side. */
static void build_columns(net *n, const void *arg)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(-1, 2, *(const int64_t *)arg, 1));
    add_weights(n, "w0", 4, DIMS(40, 2, 5, 1));
    add_weights(n, "w1", 4, DIMS(72, 40, 7, 1));
    add_weights(n, "w2", 4, DIMS(72, 1, 3, 1));
    add_weights(n, "w3", 4, DIMS(33, 72, 1, 1));
    set_ints(n, net_node(n, "Conv", "x w0", "a"), "pads", DIMS(2, 0, 1, 0), 4);
    net_node(n, "Relu", "a", "b");
    ort_node *dilated = net_node(n, "Conv", "b w1", "c");
    set_ints(n, dilated, "pads", DIMS(5, 0, 6, 0), 4);
    set_ints(n, dilated, "dilations", DIMS(2, 1), 2);
    ort_node *each = net_node(n, "Conv", "c w2", "d");
    net_int(n, each, "group", 72);
    set_ints(n, each, "strides", DIMS(2, 1), 2);
    set_ints(n, each, "pads", DIMS(1, 0, 1, 0), 4);
    set_ints(n, net_node(n, "Conv", "d w3", "y"), "strides", DIMS(3, 1), 2);
    net_output(n, "y");
}

static void columns(test_state *test)
{
    static const int64_t heights[] = {61, 13};
    for (int i = 0; i < 2; i++) {
        ort_value *x = net_floats(4, DIMS(3, 2, heights[i], 1), -1, 0.011f);
        CHECK(on_all_tiers(build_columns, &heights[i], x, 4));
        ort_value_free(x);
    }
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

/* Convolutions, a residual and a pool of so many channels; wider ones behind them. */
static void build_channels(net *n, const void *arg)
{
    const int64_t channels = *(const int64_t *)arg;
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 3, 26, 22));
    add_weights(n, "w0", 4, DIMS(channels, 3, 3, 3));
    add_weights(n, "w1", 4, DIMS(channels, channels, 5, 5));
    add_weights(n, "w2", 4, DIMS(channels, 1, 3, 3));
    add_weights(n, "w3", 4, DIMS(32, channels, 1, 1));
    net_node(n, "Conv", "x w0", "a");
    set_ints(n, net_node(n, "Conv", "a w1", "b"), "pads", DIMS(2, 2, 2, 2), 4);
    net_node(n, "Add", "b a", "c");
    net_node(n, "Relu", "c", "d");
    net_int(n, net_node(n, "Conv", "d w2", "e"), "group", channels);
    set_ints(n, net_node(n, "MaxPool", "e", "f"), "kernel_shape", DIMS(2, 2), 2);
    net_node(n, "Conv", "f w3", "y");
    net_output(n, "y");
}

static int64_t block_of(const char *isa, int64_t channels)
{
    net n;
    int64_t block = 0;
    if (!net_on(&n, isa, 1))
        return 0;
    build_channels(&n, &channels);
    ort_session *s = at_level(&n, 3, NULL);
    for (int i = 0; s && i < s->program->step_count; i++) {
        const ort_step *step = &s->program->steps[i];
        if (!strcmp(step->op->name, "BlockedConv"))
            block = ((const ort_blocked_state *)step->state)->block;
    }
    ort_session_free(s);
    net_free(&n);
    return block;
}

/* Blocks of 8 where much of 16 would be nobody's and the machine gains by it; never for the bits
 * that all machines share. */
static void narrow_blocks(test_state *test)
{
    ort_value *x = net_floats(4, DIMS(1, 3, 26, 22), -1, 0.0011f);
    for (int tier = 0; ort_kernel_tier_at(tier); tier++) {
        const char *isa = ort_kernel_tier_at(tier)->name;
        const ort_kernels *k = ort_kernels_get(isa);
        if (!k)
            continue;
        for (int64_t channels = 8; channels <= 32; channels += 8) {
            const bool narrow = k->narrows && channels % 16;
            CHECK(block_of(isa, channels) == (narrow ? 8 : k->block));
            CHECK(agrees(isa, build_channels, &channels, x, 4));
        }
    }
    if (ort_kernels_get("common"))
        CHECK(block_of("common", 8) == 16);
    ort_value_free(x);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, narrow_blocks);
    RUN(&test, open_extents);
    RUN(&test, heads);
    RUN(&test, regions);
    RUN(&test, joins);
    RUN(&test, many_inputs);
    RUN(&test, lines);
    RUN(&test, columns);
    RUN(&test, nobodys_lanes);
    RUN(&test, unknown_extents);
    RUN(&test, numbers_behind);
    RUN(&test, numbers_per_channel);
    return test.failures != 0;
}
