/* test_winograd_line.c - tiles along one axis keep the errors of plain sums on every tier: windows
 * of 3 to 7 taps down a plane or along a line, dilations whose phases follow one another or lie
 * side by side, paddings, strides of the other axis, channels that end within a block, residuals,
 * and an activation that is no clamp. The same bits on any threads; strict arithmetic does without
 * them.
 *
 * Sums are beside those in doubles: the root mean square of their errors is at most three times
 * that of sums in floats, one product after the other (test_winograd.c has the bound of a tile).
 */
#include <math.h>

#include "kernel/kernel.h"
#include "levels.h"
#include "op/blocked/blocked_op.h"
#include "test.h"

typedef struct line_case {
    int64_t channels, maps;
    int rank;
    int64_t in[2], kernel[2], stride[2], dilation[2], pads[4];
    bool adds, swish;
    int form; /* outputs of a tile */
} line_case;

static const line_case cases[] = {
    {64, 64, 1, {400}, {3}, {1}, {1}, {1, 1}, false, false, 4},
    {64, 72, 1, {131}, {3}, {1}, {2}, {2, 2}, false, true, 4}, /* two phases, one after the other */
    {72, 64, 1, {203}, {3}, {1}, {4}, {0, 8}, true, true, 4},  /* ... four side by side */
    {64, 64, 1, {345}, {3}, {1}, {16}, {16, 16}, true, false, 4},
    {256, 128, 1, {150}, {5}, {1}, {1}, {0, 0}, false, false, 2},
    {128, 128, 1, {150}, {4}, {1}, {1}, {3, 0}, false, true, 3},
    {128, 256, 2, {130, 1}, {5, 1}, {1, 1}, {1, 1}, {2, 0, 2, 0}, false, false, 2},
    {128, 128, 2, {1, 90}, {1, 3}, {1, 1}, {1, 1}, {0, 1, 0, 1}, true, true, 4},
    {60, 61, 2, {37, 50}, {3, 1}, {1, 1}, {1, 1}, {1, 0, 1, 0}, false, true, 4},
    {60, 61, 2, {37, 21}, {3, 5}, {1, 1}, {1, 1}, {1, 2, 0, 2}, true, false, 4},
    {12, 12, 2, {48, 33}, {7, 3}, {1, 1}, {1, 1}, {3, 1, 3, 1}, true, true, 3}, /* two pieces */
    {40, 44, 2, {40, 31}, {7, 3}, {1, 1}, {2, 2}, {6, 2, 6, 2}, false, false, 3},
    {8, 8, 2, {48, 41}, {3, 9}, {1, 1}, {1, 1}, {1, 4, 1, 4}, false, true, 4}, /* half a block */
    {16, 48, 2, {31, 52}, {5, 5}, {1, 3}, {1, 1}, {2, 1, 2, 1}, false, true, 4}, /* 3 and 2 taps */
};

static float number_at(uint32_t i, uint32_t seed)
{
    uint32_t v = (i + seed * 7919) * 2654435761u;
    v ^= v >> 15;
    v *= 2246822519u;
    v ^= v >> 13;
    return (float)(int)(v >> 8) / 8388608.0f - 1;
}

static float *numbers(int64_t count, uint32_t seed)
{
    float *data = malloc((size_t)count * sizeof *data);
    for (int64_t i = 0; data && i < count; i++)
        data[i] = number_at((uint32_t)i, seed);
    return data;
}

static void add_weights(net *n, const char *name, int rank, const int64_t *dims, uint32_t seed)
{
    ort_shape shape = ort_shape_make(rank, dims);
    float *data = numbers(ort_shape_count(&shape), seed);
    if (data)
        net_constant(n, name, ORT_DTYPE_FLOAT, rank, dims, data);
    free(data);
}

/* An attribute of two axes, or of one; the others of a window are 1. */
static int64_t of_axis(const line_case *c, const int64_t *list, int axis, int64_t otherwise)
{
    return c->rank == 2 ? list[axis] : axis == 1 ? list[0] : otherwise;
}

static int64_t pad_before(const line_case *c, int axis)
{
    return of_axis(c, c->pads, axis, 0);
}

static int64_t extent(const line_case *c, int axis)
{
    const int64_t reach = (of_axis(c, c->kernel, axis, 1) - 1) * of_axis(c, c->dilation, axis, 1);
    const int64_t pads = pad_before(c, axis) + of_axis(c, c->pads + c->rank, axis, 0);
    return (of_axis(c, c->in, axis, 1) + pads - reach - 1) / of_axis(c, c->stride, axis, 1) + 1;
}

static const int64_t *shape_of(int64_t *dims, int rank, int64_t images, int64_t channels,
                               int64_t height, int64_t width)
{
    const int64_t all[4] = {images, channels, rank == 2 ? height : width, width};
    return memcpy(dims, all, sizeof all);
}

/* A convolution of one tap from `from` to `to`, with weights NAME_w. */
static void add_single(net *n, const char *from, const char *to, int rank, int64_t maps,
                       int64_t channels)
{
    const int64_t ones[2] = {1, 1};
    char weights[8], inputs[24];
    int64_t dims[4];
    snprintf(weights, sizeof weights, "%s_w", to);
    snprintf(inputs, sizeof inputs, "%s %s", from, weights);
    add_weights(n, weights, rank + 2, shape_of(dims, rank, maps, channels, 1, 1), (uint32_t)*to);
    set_ints(n, net_node(n, "Conv", inputs, to), "kernel_shape", ones, rank);
}

/* x -> p -> r -> the Conv of the case (+ z, of v; HardSwish) -> y -> q -> t, by convolutions of one
 * tap, for which the layout pays; r, z and y are outputs: what the Conv read and gave is known. */
static void build(net *n, const line_case *c)
{
    const int rank = c->rank;
    int64_t dims[4];
    net_input(n, "x", ORT_DTYPE_FLOAT, rank + 2,
              shape_of(dims, rank, 2, 8, of_axis(c, c->in, 0, 1), of_axis(c, c->in, 1, 1)));
    if (c->adds)
        net_input(n, "v", ORT_DTYPE_FLOAT, rank + 2,
                  shape_of(dims, rank, 2, 16, extent(c, 0), extent(c, 1)));
    add_weights(n, "w1", rank + 2,
                shape_of(dims, rank, c->maps, c->channels, of_axis(c, c->kernel, 0, 1),
                         of_axis(c, c->kernel, 1, 1)), 2);
    add_weights(n, "b1", 1, DIMS(c->maps), 3);
    add_single(n, "x", "p", rank, 256, 8);
    add_single(n, "p", "r", rank, c->channels, 256);
    if (c->adds)
        add_single(n, "v", "z", rank, c->maps, 16);
    ort_node *conv = net_node(n, "Conv", "r w1 b1", "c");
    set_ints(n, conv, "kernel_shape", c->kernel, rank);
    set_ints(n, conv, "strides", c->stride, rank);
    set_ints(n, conv, "dilations", c->dilation, rank);
    set_ints(n, conv, "pads", c->pads, 2 * rank);
    if (c->adds)
        net_node(n, "Add", "c z", "s");
    net_node(n, c->swish ? "HardSwish" : "Identity", c->adds ? "s" : "c", "y");
    add_single(n, "y", "q", rank, 256, c->maps);
    add_single(n, "q", "t", rank, 8, 256);
    net_output(n, "r");
    net_output(n, "y");
    net_output(n, "t");
    if (c->adds)
        net_output(n, "z");
}

enum { R, Y, T, Z, OUTPUTS };

typedef struct run_of { /* a session of a case, what it read and gave */
    net n;
    ort_session *session;
    ort_value *in[2], *out[OUTPUTS];
} run_of;

static void run_free(run_of *r)
{
    for (int i = 0; i < OUTPUTS; i++)
        ort_value_free(r->out[i]);
    for (int i = 0; i < 2; i++)
        ort_value_free(r->in[i]);
    ort_session_free(r->session);
    net_free(&r->n);
}

static ort_value *input(int rank, const int64_t *dims, uint32_t seed)
{
    ort_value *value = NULL;
    ort_shape shape = ort_shape_make(rank, dims);
    float *data = numbers(ort_shape_count(&shape), seed);
    if (data && !ort_value_new_tensor(ORT_DTYPE_FLOAT, rank, dims, &value, NULL))
        memcpy(ort_value_data(value), data, ort_value_bytes(value));
    free(data);
    return value;
}

static bool run_case(run_of *r, const line_case *c, const char *isa, int threads)
{
    int64_t dims[4];
    ort_session_options options;
    memset(r, 0, sizeof *r);
    ort_session_options_init(&options);
    if (!net_on(&r->n, isa, threads))
        return false;
    build(&r->n, c);
    r->session = net_session(&r->n, &options, NULL);
    r->in[0] = input(c->rank + 2,
                     shape_of(dims, c->rank, 2, 8, of_axis(c, c->in, 0, 1),
                              of_axis(c, c->in, 1, 1)), 6);
    r->in[1] = input(c->rank + 2,
                     shape_of(dims, c->rank, 2, 16, extent(c, 0), extent(c, 1)), 7);
    return r->session && r->in[0] && r->in[1] &&
           !run_whole(r->session, r->in, r->out, NULL, NULL);
}

/* Outputs of a tile of the case's convolution, the only one with taps; -1: none lies in blocks. */
static int form_of(const run_of *r)
{
    int form = -1;
    for (int i = 0; i < r->session->program->step_count; i++) {
        const ort_step *step = &r->session->program->steps[i];
        const ort_blocked_state *s = step->state;
        if (!strcmp(step->op->name, "BlockedConv") && s->kernel[0] * s->kernel[1] > 1)
            form = s->line;
    }
    return form;
}

typedef struct sums {
    double exact;
    float plain;
} sums;

static sums sum_at(const line_case *c, const float *r, const float *w, int64_t image, int64_t map,
                   int64_t oy, int64_t ox)
{
    const int64_t height = of_axis(c, c->in, 0, 1), width = of_axis(c, c->in, 1, 1);
    const int64_t rows = of_axis(c, c->kernel, 0, 1), columns = of_axis(c, c->kernel, 1, 1);
    sums s = {0, 0};
    for (int64_t k = 0; k < c->channels * rows * columns; k++) {
        int64_t channel = k / (rows * columns), ky = k / columns % rows, kx = k % columns;
        int64_t y = oy * of_axis(c, c->stride, 0, 1) - pad_before(c, 0) +
                    ky * of_axis(c, c->dilation, 0, 1);
        int64_t x = ox * of_axis(c, c->stride, 1, 1) - pad_before(c, 1) +
                    kx * of_axis(c, c->dilation, 1, 1);
        if (y < 0 || y >= height || x < 0 || x >= width)
            continue;
        float d = r[((image * c->channels + channel) * height + y) * width + x];
        float g = w[map * c->channels * rows * columns + k];
        s.exact += (double)d * (double)g;
        s.plain = fmaf(d, g, s.plain);
    }
    return s;
}

/* The mean square of errors against that of plain sums, over some of the outputs of each map. */
static double ratio_of(const run_of *run, const line_case *c)
{
    const float *r = ort_value_data(run->out[R]);
    const float *z = c->adds ? ort_value_data(run->out[Z]) : NULL;
    const float *y = ort_value_data(run->out[Y]);
    const int64_t height = extent(c, 0), width = extent(c, 1), plane = height * width;
    const int64_t taps = of_axis(c, c->kernel, 0, 1) * of_axis(c, c->kernel, 1, 1);
    float *w = numbers(c->maps * c->channels * taps, 2), *bias = numbers(c->maps, 3);
    double errors = 0, plain = 0;
    for (int64_t i = 0; w && bias && i < 2 * c->maps * plane; i += 1 + i % 3) {
        int64_t map = i / plane % c->maps;
        sums s = sum_at(c, r, w, i / plane / c->maps, map, i % plane / width, i % width);
        double rest = (double)bias[map] + (c->adds ? (double)z[i] : 0);
        double exact = s.exact + rest, single = (double)s.plain + rest;
        if (c->swish) {
            exact *= fmin(1, fmax(0, exact / 6 + 0.5));
            single *= fmin(1, fmax(0, single / 6 + 0.5));
        }
        errors += pow((double)y[i] - exact, 2);
        plain += pow(single - exact, 2) + pow(ldexp(exact, -25), 2);
    }
    free(w);
    free(bias);
    return sqrt(errors / plain);
}

static bool same_output(const run_of *a, const run_of *b)
{
    size_t bytes = ort_value_bytes(a->out[Y]);
    return bytes == ort_value_bytes(b->out[Y]) &&
           !memcmp(ort_value_data(a->out[Y]), ort_value_data(b->out[Y]), bytes);
}

static void beside_doubles(test_state *test)
{
    for (int tier = 0; ort_kernel_tier_at(tier); tier++) {
        const char *isa = ort_kernel_tier_at(tier)->name;
        const ort_kernels *k = ort_kernel_tier_at(tier)->has() ? ort_kernels_get(isa) : NULL;
        for (size_t i = 0; k && i < sizeof cases / sizeof *cases; i++) {
            run_of one, three;
            bool ran = run_case(&one, &cases[i], isa, 1);
            ran = run_case(&three, &cases[i], isa, 3) && ran;
            CHECK(ran);
            if (ran) {
                double ratio = ratio_of(&one, &cases[i]);
                printf("# %s, case %zu, form %d: %.2f\n", isa, i, form_of(&one), ratio);
                CHECK(form_of(&one) == cases[i].form);
                CHECK(ratio <= 3);
                CHECK(same_output(&one, &three));
            }
            run_free(&one);
            run_free(&three);
        }
    }
}

static void strict(test_state *test)
{
    net n;
    ort_env_options options;
    ort_session_options with;
    run_of r = {0};
    ort_env_options_init(&options);
    ort_session_options_init(&with);
    options.math_strict = true;
    CHECK(net_init(&n, &options));
    build(&n, &cases[0]);
    r.session = net_session(&n, &with, NULL);
    CHECK(r.session && form_of(&r) == 0);
    ort_session_free(r.session);
    net_free(&n);
}

/* A small filter whose extents runs tell: the bits are those of extents that are known, where few
 * outputs are the plain sums of strict arithmetic and many come by tiles.
 */
static void open_extents(test_state *test)
{
    static const int64_t widths[] = {400, 4, 400, 1, 60};
    line_case open = cases[0], c = cases[0];
    open.in[0] = -1;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int strict = 0; strict < 2; strict++) {
            ort_env_options options;
            ort_session_options with;
            run_of fixed = {0}, r = {0};
            int64_t dims[4];
            ort_env_options_init(&options);
            ort_session_options_init(&with);
            options.isa = "avx2";
            options.math_strict = strict;
            c.in[0] = widths[i];
            if (!ort_kernel_tier_at(1)->has() || strcmp(ort_kernel_tier_at(1)->name, "avx2"))
                return;
            CHECK(net_on(&r.n, "avx2", 1) && net_init(&fixed.n, &options));
            build(&r.n, &open);
            build(&fixed.n, &c);
            r.session = net_session(&r.n, &with, NULL);
            fixed.session = net_session(&fixed.n, &with, NULL);
            CHECK(r.session && fixed.session && form_of(&r) == 4);
            r.in[0] = input(3, shape_of(dims, 1, 2, 8, 1, widths[i]), 6);
            fixed.in[0] = input(3, dims, 6);
            CHECK(!run_whole(r.session, r.in, r.out, NULL, NULL));
            CHECK(!run_whole(fixed.session, fixed.in, fixed.out, NULL, NULL));
            CHECK(same_output(&r, &fixed) == (!strict || widths[i] < 60));
            run_free(&r);
            run_free(&fixed);
        }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, beside_doubles);
    RUN(&test, strict);
    RUN(&test, open_extents);
    return test.failures != 0;
}
