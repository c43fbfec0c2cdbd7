/* test_winograd.c - tiles of F(4x4, 3x3) keep their error bound on every tier, and strict
 * arithmetic does without them.
 *
 * With the magnitudes |At|, |G| and |Bt| of the transforms, a computed output differs from the
 * exact one by at most (channels + 30) u of
 *
 *     |At| (sum over channels of (|G| |g| |Gt|) * (|Bt| |d| |B|)) |A|,    u = 2^-24:
 *
 * channels roundings in a sum of products, and at most 30 in the chain of three transforms in two
 * directions (N. Higham, Accuracy and Stability of Numerical Algorithms, 3.1 and 3.5). No input
 * comes near it; so the root mean square is held too, to three times that of a plain sum in float.
 */
#include <math.h>

#include "kernel/blocked.h"
#include "net.h"
#include "op/blocked/blocked_op.h"
#include "op/blocked/winograd_place.h"
#include "test.h"

enum { CHANNELS = 48, WIDTH_MAX = 32 };

static const double a = 0.70710678118654752440, b = 1.41421356237309504880;

typedef struct tile {
    float d[CHANNELS][36], g[CHANNELS][9][WIDTH_MAX], y[16][WIDTH_MAX];
} tile;

static double at_of(int row, int column)
{
    const double points[] = {0, a, -a, b, -b};
    return column == 5 ? row == 3 : pow(points[column], row);
}

static double bt_of(int row, int column)
{
    const double rows[6][6] = {
        {1, 0, -2.5, 0, 1, 0},          {0, -b, -2, a, 1, 0}, {0, b, -2, -a, 1, 0},
        {0, -a, -0.5, b, 1, 0},         {0, a, -0.5, -b, 1, 0}, {0, 1, 0, -2.5, 0, 1},
    };
    return rows[row][column];
}

static double g_of(int row, int column)
{
    const double points[] = {0, a, -a, b, -b}, scale[] = {1, -1.5, -1.5, 6, 6};
    return row == 5 ? column == 2 : pow(points[row], column) / scale[row];
}

/* |g| and |d| of one channel and map through both directions: the magnitude at a position. */
static double magnitude(const tile *t, int c, int map, int i, int j)
{
    double filter = 0, input = 0;
    for (int k = 0; k < 9; k++)
        filter += fabs(g_of(i, k / 3) * g_of(j, k % 3) * (double)t->g[c][k][map]);
    for (int k = 0; k < 36; k++)
        input += fabs(bt_of(i, k / 6) * bt_of(j, k % 6) * (double)t->d[c][k]);
    return filter * input;
}

static bool keeps_bound(const tile *t, int width)
{
    double worst = 0, errors = 0, plain_errors = 0;
    for (int map = 0; map < width; map++) {
        double sums[36] = {0};
        for (int c = 0; c < CHANNELS; c++)
            for (int i = 0; i < 36; i++)
                sums[i] += magnitude(t, c, map, i / 6, i % 6);
        for (int o = 0; o < 16; o++) {
            double exact = 0, bound = 0;
            float plain = 0;
            for (int c = 0; c < CHANNELS; c++)
                for (int k = 0; k < 9; k++) {
                    float d = t->d[c][(o / 4 + k / 3) * 6 + o % 4 + k % 3], g = t->g[c][k][map];
                    exact += (double)d * (double)g;
                    plain = fmaf(d, g, plain);
                }
            for (int i = 0; i < 36; i++)
                bound += fabs(at_of(o / 4, i / 6) * at_of(o % 4, i % 6)) * sums[i];
            bound *= (CHANNELS + 30) * ldexp(1, -24);
            worst = fmax(worst, fabs((double)t->y[o][map] - exact) / bound);
            errors += pow((double)t->y[o][map] - exact, 2);
            plain_errors += pow((double)plain - exact, 2);
        }
    }
    printf("# worst error %.4f of its bound, mean %.2f of a plain sum's\n", worst,
           sqrt(errors / plain_errors));
    return worst <= 1 && errors <= 9 * plain_errors;
}

/* Filters of any number of channels hold for each what they hold for it among more. */
static bool some_channels(const ort_blocked_kernels *k)
{
    enum { SOME = CHANNELS - 5 };
    const int width = 2 * k->vector;
    static float all[9 * CHANNELS * WIDTH_MAX], some[9 * SOME * WIDTH_MAX];
    static float of_all[36 * CHANNELS * WIDTH_MAX], of_some[36 * SOME * WIDTH_MAX];
    for (int i = 0; i < 9 * CHANNELS * width; i++)
        all[i] = sinf((float)i);
    for (int i = 0; i < 9; i++)
        memcpy(some + i * SOME * width, all + i * CHANNELS * width,
               (size_t)(SOME * width) * sizeof *all);
    k->winograd_filter(all, CHANNELS, width, of_all);
    k->winograd_filter(some, SOME, width, of_some);
    for (int i = 0; i < 36; i++)
        if (memcmp(of_some + i * SOME * width, of_all + i * CHANNELS * width,
                   (size_t)(SOME * width) * sizeof *all))
            return false;
    return true;
}

/* One tile through the kernels of a block size, a panel of two vectors. */
static bool run_tile(const ort_blocked_kernels *k, tile *t)
{
    const int blocks = CHANNELS / k->block, width = 2 * k->vector;
    const int out_blocks = width > k->block ? 2 : 1;
    static float x[CHANNELS * 36], v[36 * CHANNELS], g[9 * CHANNELS * WIDTH_MAX];
    static float u[36 * CHANNELS * WIDTH_MAX], m[36 * WIDTH_MAX], y[16 * WIDTH_MAX];
    for (int c = 0; c < CHANNELS; c++) {
        for (int i = 0; i < 36; i++)
            x[(c / k->block * 36 + i) * k->block + c % k->block] = t->d[c][i];
        for (int i = 0; i < 9 * width; i++)
            g[(i / width * CHANNELS + c) * width + i % width] = t->g[c][i / width][i % width];
    }
    k->winograd_filter(g, CHANNELS, width, u);
    ort_blocked_tiles in = {.height = 6, .width = 6, .tiles = 1, .v_step = CHANNELS};
    for (int i = 0; i < blocks; i++) {
        in.x = x + i * 36 * k->block;
        in.v = v + i * k->block;
        k->winograd_input(&in);
    }
    for (int i = 0; i < 36; i++) {
        ort_blocked_conv conv = {
            .window = {.x = v + i * CHANNELS, .width = 1, .rows = 1, .columns = 1, .stride = 1,
                       .dilation = 1},
            .out = {.y = m + i * width, .y_block = k->block, .lo = -INFINITY, .hi = INFINITY,
                    .count = 1},
            .x_block = k->block, .channels = CHANNELS, .w = u + i * CHANNELS * width,
            .w_rows = 1, .vectors = 2};
        k->conv(&conv);
    }
    for (int i = 0; i < out_blocks; i++) {
        ort_blocked_tiles out = {.height = 4, .width = 4, .tiles = 1, .v = m + i * k->block,
                                 .v_step = width,
                                 .out = {.y = y, .lo = -INFINITY, .hi = INFINITY}};
        k->winograd_output(&out);
        for (int j = 0; j < 16 * k->block; j++)
            t->y[j / k->block][i * k->block + j % k->block] = y[j];
    }
    return keeps_bound(t, width);
}

static void error_bound(test_state *test)
{
    static tile t;
    unsigned state = 1;
    for (size_t i = 0; i < sizeof t / sizeof(float); i++) {
        state = state * 1664525u + 1013904223u;
        ((float *)&t)[i] = (float)(int)(state >> 8) / 8388608.0f - 1.0f;
    }
    for (int i = 0; ort_kernel_tier_at(i); i++) {
        if (!ort_kernel_tier_at(i)->has())
            continue;
        const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(i)->name);
        CHECK(k);
        CHECK(run_tile(&k->blocked8, &t));
        CHECK(run_tile(&k->blocked16, &t));
        CHECK(some_channels(&k->blocked8) && some_channels(&k->blocked16));
    }
}

/* ---- who runs in tiles */

static void build(net *n, int64_t channels, int64_t extent)
{
    const int64_t plane[4] = {1, channels, extent, extent}, w[4] = {channels, channels, 3, 3};
    const int64_t pads[4] = {1, 1, 1, 1};
    float *data = calloc((size_t)(channels * channels * 9), sizeof *data);
    ort_attr attr = {.name = "pads", .type = ORT_ATTR_INTS, .ints = pads, .count = 4};
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, plane);
    if (data)
        net_constant(n, "w", ORT_DTYPE_FLOAT, 4, w, data);
    free(data);
    (void)!ort_node_set_attr(n->graph, net_node(n, "Conv", "x w", "y"), &attr, NULL);
    net_output(n, "y");
}

/* -1: the net or its one convolution couldn't be made. */
static int in_tiles(int64_t channels, int64_t extent, bool strict)
{
    net n;
    ort_env_options options;
    ort_session_options with;
    int tiles = -1;
    ort_env_options_init(&options);
    ort_session_options_init(&with);
    options.math_strict = strict;
    if (!net_init(&n, &options))
        return -1;
    build(&n, channels, extent);
    ort_session *session = net_session(&n, &with, NULL);
    for (int i = 0; session && i < session->program->step_count; i++) {
        const ort_step *step = &session->program->steps[i];
        if (!strcmp(step->op->name, "BlockedConv"))
            tiles = ((const ort_blocked_state *)step->state)->winograd;
    }
    ort_session_free(session);
    net_free(&n);
    return tiles;
}

static void choice(test_state *test)
{
    CHECK(in_tiles(64, 56, false) == 1);
    CHECK(in_tiles(64, 56, true) == 0);
    CHECK(in_tiles(512, 7, false) == 0); /* 38 MB of weights for a small map */
}

/* ---- how many tasks */

static void even_cuts(test_state *test)
{
    static const struct {
        ort_winograd_cut cut;
        int64_t tasks, threads, least, each, parts;
    } rows[] = {
        {{100, 100, 1}, 1, 2, 24, 50, 2}, /* a half for each thread */
        {{100, 100, 1}, 1, 3, 24, 34, 3}, /* the last part is shorter */
        {{16, 16, 1}, 1, 2, 6, 8, 2},
        {{25, 13, 2}, 2, 3, 6, 9, 3},
        {{50, 17, 3}, 3, 2, 6, 13, 4},    /* as many for each of them */
        {{9, 9, 1}, 1, 4, 2, 3, 3},       /* three parts of three: no thread has two */
        {{100, 100, 1}, 1, 1, 24, 100, 1}, /* one thread */
        {{100, 100, 1}, 4, 2, 24, 100, 1}, /* there are enough */
        {{40, 40, 1}, 1, 2, 24, 40, 1},    /* parts would be too small */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ort_winograd_cut cut = ort_winograd_even(rows[i].cut, rows[i].tasks, rows[i].threads,
                                                 rows[i].least);
        CHECK(cut.all == rows[i].cut.all && cut.each == rows[i].each &&
              cut.parts == rows[i].parts && cut.each <= rows[i].cut.each);
    }
}

/* Tiles where there are enough for each thread, else output panels; one thread has all of these. */
static void spread(test_state *test)
{
    static const struct {
        int64_t tiles, outs, each_out, threads, panel, parts, of_outs;
    } rows[] = {
        {16, 2, 2, 2, 1, 2, 1}, {4, 4, 4, 2, 1, 1, 2},  {4, 4, 4, 3, 1, 1, 4},
        {4, 12, 12, 2, 4, 1, 2}, {4, 8, 2, 1, 1, 1, 1}, {4, 3, 3, 2, 2, 1, 2},
        {4, 1, 1, 2, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int64_t all = rows[i].outs, each = rows[i].each_out;
        ort_winograd_cut tiles = {rows[i].tiles, rows[i].tiles, 1}, outs = {all, each, all / each};
        ort_winograd_spread(&tiles, &outs, 1, rows[i].threads, 8, rows[i].panel);
        CHECK(tiles.parts == rows[i].parts && outs.parts == rows[i].of_outs &&
              (outs.each % rows[i].panel == 0 || outs.parts == 1) &&
              outs.each * outs.parts >= all && outs.each * (outs.parts - 1) < all);
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, error_bound);
    RUN(&test, choice);
    RUN(&test, even_cuts);
    RUN(&test, spread);
    return test.failures != 0;
}
