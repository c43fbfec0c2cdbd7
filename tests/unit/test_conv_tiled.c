/* test_conv_tiled.c - float convolutions on tiles keep the error bound that their kernel states
 * (kernel/amx/blocked_amx.c), whatever the window, the padding, the channels and what follows; give
 * the same bits on any threads; let numbers that thirds don't hold spread as floats do; and stay
 * away where arithmetic is strict or the tier has no tiles.
 *
 * Strips of a plane and their blocks end within rows, behind them, and at the end of the plane.
 */
#include <math.h>

#include "kernel/kernel.h"
#include "levels.h"
#include "op/blocked/blocked_op.h"
#include "test.h"

typedef struct tiled_case {
    int64_t channels, maps, height, width, group;
    int64_t kernel[2], stride[2], dilation[2], pads[4];
    bool adds, clips; /* a residual; Relu */
} tiled_case;

static const tiled_case cases[] = {
    {96, 264, 14, 13, 1, {1, 1}, {1, 1}, {1, 1}, {0}, false, false},
    {72, 264, 27, 33, 1, {1, 1}, {1, 1}, {1, 1}, {0}, true, true}, /* 5 blocks to 17 vectors */
    {130, 248, 23, 31, 1, {1, 1}, {1, 1}, {1, 1}, {0}, false, true},
    {64, 160, 41, 43, 1, {1, 1}, {1, 1}, {1, 1}, {0}, true, false},
    {256, 112, 50, 51, 1, {1, 1}, {1, 1}, {1, 1}, {0}, false, false}, /* two strips */
    {96, 248, 27, 27, 1, {1, 1}, {2, 2}, {1, 1}, {0}, false, false},
    {80, 264, 43, 29, 1, {1, 1}, {3, 2}, {1, 1}, {0}, true, true},
    {64, 312, 35, 27, 1, {1, 1}, {2, 2}, {1, 1}, {1, 1, 0, 1}, false, false},
    {48, 72, 22, 30, 1, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, true, true},
    {64, 88, 23, 30, 1, {3, 3}, {2, 2}, {1, 1}, {0, 0, 1, 1}, false, false},
    {45, 47, 11, 20, 1, {3, 3}, {1, 1}, {2, 2}, {2, 2, 2, 2}, false, true},
    {16, 64, 17, 16, 1, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}, false, false},
    {32, 56, 12, 31, 1, {3, 2}, {1, 2}, {2, 3}, {2, 4, 1, 5}, true, false},
    {128, 128, 60, 31, 1, {3, 3}, {2, 1}, {1, 1}, {1, 1, 1, 1}, false, true}, /* strips of rows */
    {64, 96, 9, 9, 1, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}, false, false},
    {64, 152, 112, 1, 1, {5, 1}, {1, 1}, {1, 1}, {2, 0, 2, 0}, false, false},
    {64, 136, 1, 201, 1, {1, 7}, {1, 2}, {1, 1}, {0, 3, 0, 3}, true, false},
    {128, 192, 17, 12, 2, {3, 3}, {2, 1}, {1, 1}, {1, 1, 1, 1}, false, true},
    {128, 128, 16, 9, 2, {5, 3}, {1, 1}, {1, 1}, {2, 1, 2, 1}, true, false},
};

static float number_at(uint32_t i, uint32_t seed)
{
    uint32_t v = (i + seed * 7919) * 2654435761u;
    v ^= v >> 15;
    v *= 2246822519u;
    v ^= v >> 13;
    return ((float)(int)(v >> 8) / 8388608.0f - 1) * ldexpf(1, (int)(v & 7) - 4);
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

static int64_t extent(const tiled_case *c, int axis)
{
    const int64_t in = axis ? c->width : c->height;
    const int64_t reach = (c->kernel[axis] - 1) * c->dilation[axis] + 1;
    return (in + c->pads[axis] + c->pads[axis + 2] - reach) / c->stride[axis] + 1;
}

static void pad(net *n, ort_node *conv)
{
    set_ints(n, conv, "pads", DIMS(1, 1, 1, 1), 4);
}

/* x -> 3x3 Conv -> r -> the Conv of the case (+ z, which comes of v likewise; Relu) -> y -> 3x3
 * Conv: the layout pays, and as r, z and y are outputs, it is known what the Conv read and gave. */
static void build(net *n, const tiled_case *c)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(2, 16, c->height, c->width));
    net_input(n, "v", ORT_DTYPE_FLOAT, 4, DIMS(2, 16, extent(c, 0), extent(c, 1)));
    add_weights(n, "w0", 4, DIMS(c->channels, 16, 3, 3), 1);
    add_weights(n, "w1", 4, DIMS(c->maps, c->channels / c->group, c->kernel[0], c->kernel[1]), 2);
    add_weights(n, "b1", 1, DIMS(c->maps), 3);
    add_weights(n, "w2", 4, DIMS(c->maps, c->maps, 3, 3), 4);
    add_weights(n, "w3", 4, DIMS(c->maps, 16, 3, 3), 5);
    pad(n, net_node(n, "Conv", "x w0", "r"));
    pad(n, net_node(n, "Conv", "v w3", "z"));
    ort_node *conv = net_node(n, "Conv", "r w1 b1", "c");
    set_ints(n, conv, "kernel_shape", c->kernel, 2);
    set_ints(n, conv, "strides", c->stride, 2);
    set_ints(n, conv, "dilations", c->dilation, 2);
    set_ints(n, conv, "pads", c->pads, 4);
    net_int(n, conv, "group", c->group);
    if (c->adds)
        net_node(n, "Add", "c z", "s");
    net_node(n, c->clips ? "Relu" : "Identity", c->adds ? "s" : "c", "y");
    pad(n, net_node(n, "Conv", "y w2", "t"));
    net_output(n, "r");
    net_output(n, "z");
    net_output(n, "y");
    net_output(n, "t");
}

enum { R, Z, Y, T, OUTPUTS };

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

static ort_value *input(int64_t height, int64_t width, uint32_t seed)
{
    ort_value *value = NULL;
    float *data = numbers(2 * 16 * height * width, seed);
    if (data && !ort_value_new_tensor(ORT_DTYPE_FLOAT, 4, DIMS(2, 16, height, width), &value, NULL))
        memcpy(ort_value_data(value), data, ort_value_bytes(value));
    free(data);
    return value;
}

/* `wrong`: put at some place of x, if it isn't 0. */
static bool run_case(run_of *r, const tiled_case *c, const char *isa, int threads, int level,
                     float wrong)
{
    memset(r, 0, sizeof *r);
    if (!net_on(&r->n, isa, threads))
        return false;
    build(&r->n, c);
    r->session = at_level(&r->n, level, NULL);
    r->in[0] = input(c->height, c->width, 11);
    r->in[1] = input(extent(c, 0), extent(c, 1), 12);
    if (!r->session || !r->in[0] || !r->in[1])
        return false;
    if (wrong != 0)
        ((float *)ort_value_data(r->in[0]))[c->width / 2] = wrong;
    return !run_whole(r->session, r->in, r->out, NULL, NULL);
}

/* Convolutions that run on tiles. */
static int tiled_count(const ort_session *session)
{
    int count = 0;
    for (int i = 0; i < session->program->step_count; i++) {
        const ort_step *step = &session->program->steps[i];
        if (!strcmp(step->op->name, "BlockedConv"))
            count += ((const ort_blocked_state *)step->state)->tiled;
    }
    return count;
}

/* ---- the bound */

typedef struct sums { /* of one output: the exact one, of magnitudes, terms */
    double exact, size, terms;
} sums;

static void sum_up(const tiled_case *c, const float *x, const float *w, int64_t map, int64_t oy,
                   int64_t ox, sums *s)
{
    const int64_t channels = c->channels / c->group;
    const int64_t first = map / (c->maps / c->group) * channels;
    for (int64_t i = 0; i < channels * c->kernel[0] * c->kernel[1]; i++) {
        const int64_t kx = i % c->kernel[1], ky = i / c->kernel[1] % c->kernel[0];
        const int64_t at = first + i / c->kernel[1] / c->kernel[0];
        const int64_t iy = oy * c->stride[0] - c->pads[0] + ky * c->dilation[0];
        const int64_t ix = ox * c->stride[1] - c->pads[1] + kx * c->dilation[1];
        if (iy < 0 || iy >= c->height || ix < 0 || ix >= c->width)
            continue;
        const double product = (double)x[(at * c->height + iy) * c->width + ix] *
                               (double)w[map * channels * c->kernel[0] * c->kernel[1] + i];
        s->exact += product;
        s->size += fabs(product);
    }
    s->terms = (double)(channels * c->kernel[0] * c->kernel[1]);
}

/* Bias, residual and what the sum became of them are rounded as well. */
static double error_of(const tiled_case *c, const run_of *r, const float *w, const float *bias,
                       int64_t place)
{
    const int64_t plane = extent(c, 0) * extent(c, 1), image = place / (c->maps * plane);
    const int64_t map = place / plane % c->maps, pixel = place % plane;
    const float *x = (const float *)ort_value_data(r->out[R]) +
                     image * c->channels * c->height * c->width;
    const double z = c->adds ? (double)((const float *)ort_value_data(r->out[Z]))[place] : 0;
    sums s = {0};
    sum_up(c, x, w, map, pixel / extent(c, 1), pixel % extent(c, 1), &s);
    double exact = s.exact + (double)bias[map] + z;
    s.size += fabs((double)bias[map]) + fabs(z);
    if (c->clips)
        exact = fmax(exact, 0);
    const double y = (double)((const float *)ort_value_data(r->out[Y]))[place];
    return fabs(y - exact) / ((20 + 6 * (s.terms / 32 + 1)) * ldexp(s.size, -24));
}

static double worst_error(const tiled_case *c, const run_of *r)
{
    const int64_t depth = c->channels / c->group * c->kernel[0] * c->kernel[1];
    float *w = numbers(c->maps * depth, 2), *bias = numbers(c->maps, 3);
    double worst = w && bias ? 0 : INFINITY;
    for (int64_t i = 0; w && bias && i < ort_value_count(r->out[Y]); i++)
        worst = test_worse(worst, error_of(c, r, w, bias, i));
    free(w);
    free(bias);
    return worst;
}

static bool same_bits(const run_of *a, const run_of *b)
{
    for (int i = 0; i < OUTPUTS; i++)
        if (memcmp(ort_value_data(a->out[i]), ort_value_data(b->out[i]),
                   ort_value_bytes(a->out[i])))
            return false;
    return true;
}

static bool has_tiles(void)
{
    const ort_kernels *k = ort_kernels_get("amx");
    return k && k->blocked16.tiled;
}

/* A few threads split strips for themselves, many share them. */
static void error_bound(test_state *test)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases && has_tiles(); i++) {
        run_of one, more;
        bool ok = run_case(&one, &cases[i], "amx", 1, 3, 0) &&
                  run_case(&more, &cases[i], "amx", i % 2 ? 3 : 6, 3, 0);
        const int tiled = ok ? tiled_count(one.session) : 0;
        const double worst = ok ? worst_error(&cases[i], &one) : INFINITY;
        const bool same = ok && same_bits(&one, &more);
        run_free(&one);
        run_free(&more);
        if (tiled == 0 || !(worst <= 1) || !same)
            printf("# case %zu: %d on tiles, %g of the bound\n", i, tiled, worst);
        CHECK(ok && tiled > 0 && same);
        CHECK(worst <= 1);
    }
}

/* ---- what thirds don't hold */

static bool alike(float a, float b)
{
    if (isnan(a) || isnan(b) || isinf(a) || isinf(b))
        return (isnan(a) && isnan(b)) || (a >= b && a <= b);
    return fabsf(a - b) <= 0.01f * (1 + fabsf(a) + fabsf(b));
}

/* The first place where the Conv gave something else; -1: none. */
static int64_t unlike(const run_of *a, const run_of *b)
{
    const float *x = ort_value_data(a->out[Y]), *y = ort_value_data(b->out[Y]);
    for (int64_t at = 0; at < ort_value_count(a->out[Y]); at++)
        if (!alike(x[at], y[at])) {
            printf("# place %lld: %g, %g in floats\n", (long long)at, (double)x[at],
                   (double)y[at]);
            return at;
        }
    return -1;
}

static void spreads(test_state *test)
{
    const float wrongs[] = {INFINITY, -INFINITY, NAN, 3e38f, 1e25f};
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs && has_tiles(); i++)
        for (int c = 0; c < 10; c += 3) {
            run_of tiles, three, floats;
            bool ok = run_case(&tiles, &cases[c], "amx", 1, 3, wrongs[i]) &&
                      run_case(&three, &cases[c], "amx", 3, 3, wrongs[i]) &&
                      run_case(&floats, &cases[c], "vnni", 1, 3, wrongs[i]);
            const bool same = ok && same_bits(&tiles, &three);
            const bool spread = ok && unlike(&tiles, &floats) < 0;
            run_free(&tiles);
            run_free(&three);
            run_free(&floats);
            if (!same || !spread)
                printf("# case %d with %g\n", c, (double)wrongs[i]);
            CHECK(ok);
            CHECK(same);
            CHECK(spread);
        }
}

static void strict(test_state *test)
{
    ort_env_options options;
    run_of r = {0};
    ort_env_options_init(&options);
    options.math_strict = true;
    CHECK(net_init(&r.n, &options));
    build(&r.n, &cases[0]);
    r.session = at_level(&r.n, 3, NULL);
    const int tiled = r.session ? tiled_count(r.session) : -1;
    run_free(&r);
    CHECK(tiled == 0);
    for (int i = 0; ort_kernel_tier_at(i); i++) {
        const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(i)->name);
        CHECK(!k || !k->blocked8.tiled);
        CHECK(!k || !k->blocked16.tiled || !strcmp(k->isa, "amx"));
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, error_bound);
    RUN(&test, spreads);
    RUN(&test, strict);
    return test.failures != 0;
}
