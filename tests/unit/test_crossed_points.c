/* test_crossed_points.c - convolutions of single pixels by crossed sums keep the bound of
 * kernel/crossed.h, whatever the sizes of pixels and filters, the strides and what follows; what
 * isn't finite stays in its pixel; the bits are the same however many threads share a plane; and
 * strict arithmetic, calibration and other tiers stay with direct sums.
 *
 * Held against sums in double. Planes end within tiles and pieces, filters within blocks.
 */
#include <float.h>
#include <math.h>

#include "kernel/crossed.h"
#include "kernel/kernel.h"
#include "levels.h"
#include "op/blocked/blocked_op.h"
#include "test.h"

typedef struct points_case {
    int64_t channels, maps, height, width, stride;
    bool adds;
    float leak; /* of negative sums: 0 is a Relu, 1 nothing */
} points_case;

static const points_case cases[] = {
    {64, 192, 9, 11, 1, false, 0},      {70, 120, 13, 17, 1, true, 1},
    {97, 184, 5, 3, 1, false, 1},       {128, 124, 25, 25, 1, true, 0},
    {400, 256, 7, 7, 1, true, 0.5f},    {776, 160, 14, 14, 1, true, 0},
    {130, 512, 19, 27, 2, true, 0.25f}, {196, 640, 22, 31, 3, false, 1},
    {256, 320, 3, 67, 1, false, 1},
};

static uint64_t state = 1;

static float near_one(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int)(state >> 40) / 8388608.0f - 1.0f;
}

/* ---- what numbers there are: i is the pixel or output, k the channel */

static float plain(int64_t i, int64_t k) { return near_one(); }
static float steep(int64_t i, int64_t k) { return ldexpf(near_one(), (int)(i * 7 % 61) - 30); }
static float channels(int64_t i, int64_t k) { return ldexpf(near_one(), (int)(k * 11 % 21) - 10); }
static float outliers(int64_t i, int64_t k) { return near_one() * (k % 50 == 3 ? 64 : 1); }
static float some_zero(int64_t i, int64_t k) { return i % 5 == 2 ? 0 : near_one(); }
static float tiny(int64_t i, int64_t k) { return near_one() * (i % 9 == 4 ? 1e-30f : 1); }
static float far_apart(int64_t i, int64_t k) { return ldexpf(near_one(), i % 8 < 4 ? 18 : -18); }
static float rarely(int64_t i, int64_t k) { return k % 8 < 3 ? near_one() : 0; }
static float one_nan(int64_t i, int64_t k) { return i == 3 && k == 60 ? NAN : near_one(); }
static float one_inf(int64_t i, int64_t k) { return i == 4 && k == 7 ? -INFINITY : near_one(); }
static float largest(int64_t i, int64_t k) { return i == 2 ? near_one() * 1e37f : near_one(); }

typedef float number(int64_t i, int64_t k);

typedef struct kind {
    number *x, *w;
    bool finite;
} kind;

static const kind kinds[] = {
    {plain, plain, true},      {steep, plain, true},     {plain, steep, true},
    {channels, plain, true},   {plain, channels, true},  {outliers, outliers, true},
    {some_zero, plain, true},  {plain, some_zero, true}, {tiny, plain, true},
    {plain, far_apart, true},  {rarely, plain, true},    {one_nan, plain, false},
    {plain, one_nan, false},   {one_inf, plain, false},  {plain, one_inf, false},
    {largest, plain, true},
};

typedef struct problem {
    const points_case *c;
    int64_t out[2];
    float *x, *w, *bias, *z;
} problem;

static bool make(problem *p, const points_case *c, const kind *of)
{
    const int64_t plane = c->height * c->width;
    *p = (problem){.c = c};
    p->out[0] = (c->height - 1) / c->stride + 1;
    p->out[1] = (c->width - 1) / c->stride + 1;
    const int64_t outs = c->maps * p->out[0] * p->out[1];
    p->x = malloc((size_t)(c->channels * plane) * sizeof(float));
    p->w = malloc((size_t)(c->maps * c->channels) * sizeof(float));
    p->bias = malloc((size_t)c->maps * sizeof(float));
    p->z = malloc((size_t)outs * sizeof(float));
    if (!p->x || !p->w || !p->bias || !p->z)
        return false;
    for (int64_t i = 0; i < c->channels * plane; i++)
        p->x[i] = of->x(i % plane, i / plane);
    for (int64_t i = 0; i < c->maps * c->channels; i++)
        p->w[i] = of->w(i / c->channels, i % c->channels);
    for (int64_t i = 0; i < c->maps; i++)
        p->bias[i] = c->adds ? near_one() : 0; /* of 0 what is tiny shows */
    for (int64_t i = 0; i < outs; i++)
        p->z[i] = near_one();
    return true;
}

static void drop(problem *p)
{
    free(p->x);
    free(p->w);
    free(p->bias);
    free(p->z);
}

/* x -> the Conv of the case (+ z, leak) -> y -> 3x3 Conv, which makes the layout pay. */
static void build(net *n, const problem *p)
{
    const points_case *c = p->c;
    float *last = calloc((size_t)(64 * c->maps * 9), sizeof *last);
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, c->channels, c->height, c->width));
    net_input(n, "z", ORT_DTYPE_FLOAT, 4, DIMS(1, c->maps, p->out[0], p->out[1]));
    net_constant(n, "w", ORT_DTYPE_FLOAT, 4, DIMS(c->maps, c->channels, 1, 1), p->w);
    net_constant(n, "b", ORT_DTYPE_FLOAT, 1, DIMS(c->maps), p->bias);
    net_constant(n, "v", ORT_DTYPE_FLOAT, 4, DIMS(64, c->maps, 3, 3), last);
    free(last);
    set_ints(n, net_node(n, "Conv", "x w b", "c"), "strides", DIMS(c->stride, c->stride), 2);
    if (c->adds)
        net_node(n, "Add", "c z", "s");
    const ort_attr alpha = {.name = "alpha", .type = ORT_ATTR_FLOAT, .f = c->leak};
    ort_node *leak = net_node(n, c->leak > 0 ? "LeakyRelu" : "Relu", c->adds ? "s" : "c", "y");
    if (c->leak > 0)
        (void)!ort_node_set_attr(n->graph, leak, &alpha, NULL);
    set_ints(n, net_node(n, "Conv", "y v", "t"), "pads", DIMS(1, 1, 1, 1), 4);
    net_output(n, "y");
    net_output(n, "t");
}

static int crossed_count(const ort_session *session)
{
    int count = 0;
    for (int i = 0; i < session->program->step_count; i++) {
        const ort_step *step = &session->program->steps[i];
        if (!strcmp(step->op->name, "BlockedConv"))
            count += ((const ort_blocked_state *)step->state)->crossed;
    }
    return count;
}

/* y, which is the caller's; its convolutions by crossed sums. NULL: it failed. */
static ort_value *run(const problem *p, const char *isa, int threads, bool strict, int *crossed)
{
    const points_case *c = p->c;
    ort_env_options options;
    ort_value *in[2] = {NULL, NULL}, *out[2] = {NULL, NULL};
    net n;
    ort_env_options_init(&options);
    options.isa = isa;
    options.threads = threads;
    options.own_threads = &workers_at_once;
    options.math_strict = strict;
    if (!net_init(&n, &options))
        return NULL;
    build(&n, p);
    ort_session *session = at_level(&n, 3, NULL);
    *crossed = session ? crossed_count(session) : 0;
    if (session &&
        !ort_value_new_tensor(ORT_DTYPE_FLOAT, 4, DIMS(1, c->channels, c->height, c->width),
                              &in[0], NULL) &&
        !ort_value_new_tensor(ORT_DTYPE_FLOAT, 4, DIMS(1, c->maps, p->out[0], p->out[1]), &in[1],
                              NULL)) {
        memcpy(ort_value_data(in[0]), p->x, ort_value_bytes(in[0]));
        memcpy(ort_value_data(in[1]), p->z, ort_value_bytes(in[1]));
        (void)!run_whole(session, in, out, NULL, NULL);
    }
    ort_value_free(in[0]);
    ort_value_free(in[1]);
    ort_value_free(out[1]);
    ort_session_free(session);
    net_free(&n);
    return out[0];
}

/* ---- the bound */

/* Of one element, over what is allowed. */
static double error_of(const problem *p, int64_t map, int64_t pixel, float y)
{
    const points_case *c = p->c;
    const int64_t from = pixel / p->out[1] * c->stride * c->width + pixel % p->out[1] * c->stride;
    const double u = ldexp(1, -24);
    const double terms = 2 * ORT_CROSSED_PART / 3 + 2 + (double)c->channels / 300;
    double exact = (double)p->bias[map], row = 0, column = 0;
    exact += c->adds ? (double)p->z[map * p->out[0] * p->out[1] + pixel] : 0;
    for (int64_t k = 0; k < c->channels; k++) {
        const double a = (double)p->x[k * c->height * c->width + from];
        const double b = (double)p->w[map * c->channels + k];
        exact += a * b;
        row += a * a;
        column += b * b;
    }
    const double rest = (fabs(exact) + (c->adds ? 3 : 0)) * (4 + (double)c->channels / 128);
    const double most = 8.75 * (terms + 4) * sqrt(row) * sqrt(column);
    exact *= exact < 0 ? (double)c->leak : 1;
    return fabs((double)y - exact) / ((most + rest) * u + DBL_MIN); /* all may be 0 */
}

static double worst_error(const problem *p, const float *y)
{
    const int64_t plane = p->out[0] * p->out[1];
    double worst = 0;
    for (int64_t i = 0; i < p->c->maps * plane; i++)
        worst = test_worse(worst, error_of(p, i / plane, i % plane, y[i]));
    return worst;
}

/* Finite elements keep it, and the others are what direct sums give. */
static double worst_beside(const problem *p, const float *y, const float *direct)
{
    const int64_t plane = p->out[0] * p->out[1];
    double worst = 0;
    for (int64_t i = 0; i < p->c->maps * plane; i++) {
        if (isfinite(y[i]) != isfinite(direct[i]) || isnan(y[i]) != isnan(direct[i]) ||
            (isinf(y[i]) && y[i] != direct[i]))
            return INFINITY;
        if (isfinite(y[i]) && y[i] != direct[i]) /* of an infinite sum a Relu may give 0 */
            worst = test_worse(worst, error_of(p, i / plane, i % plane, y[i]));
    }
    return worst;
}

static bool has_crossed(void)
{
    const ort_kernels *k = ort_kernels_get("avx512");
    return k && k->blocked16.conv_crossed;
}

static void one_kind(test_state *test, const points_case *c, const kind *of)
{
    problem p;
    int crossed, direct, others = 0;
    CHECK(make(&p, c, of));
    ort_value *y = run(&p, "avx512", 1, false, &crossed);
    ort_value *strict = run(&p, "avx512", 1, true, &direct);
    bool ok = y && strict && crossed == 1 && direct == 0, same = ok;
    for (int threads = 2; threads <= 5 && same; threads++) {
        ort_value *again = run(&p, "avx512", threads, false, &others);
        same = again && !memcmp(ort_value_data(again), ort_value_data(y), ort_value_bytes(y));
        ort_value_free(again);
    }
    const double worst = !ok          ? INFINITY
                         : of->finite ? worst_error(&p, ort_value_data(y))
                                      : worst_beside(&p, ort_value_data(y), ort_value_data(strict));
    const bool equal = ok && !memcmp(ort_value_data(y), ort_value_data(strict), ort_value_bytes(y));
    ort_value_free(y);
    ort_value_free(strict);
    drop(&p);
    if (!ok || !same || !(worst <= 1) || (equal && of->x == plain && of->w == plain))
        printf("# case %d, kind %d: %d crossed, %g of the bound, same %d, equal to strict %d\n",
               (int)(c - cases), (int)(of - kinds), crossed, worst, same, equal);
    CHECK(ok);
    CHECK(same);
    CHECK(worst <= 1);
    /* Direct sums leave out channels that are zero; of many channels they have other parts. */
    CHECK(equal || of->x != rarely || c->stride > 1 || c->channels > ORT_CROSSED_PART);
    CHECK(!equal || of->x != plain || of->w != plain); /* the way is taken */
}

static void bounds(test_state *test)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases && has_crossed(); i++)
        for (size_t j = 0; j < sizeof kinds / sizeof *kinds && !test->failed; j++)
            one_kind(test, &cases[i], &kinds[j]);
}

/* ---- the kernel alone: steps of pixels, lanes that nobody fills, a leak and a clamp behind it */

enum { CHANNELS = 83, MAPS = 70, BLOCKS = 6, OUT_BLOCKS = 5, PIXELS = 75, STEP = 2 };

/* Pixel 20 is too large, 21 has zeros alone; the third panel of one vector is left. */
static void fill_kernel(const ort_kernels *k, float *x, float *w, float *begin, float *squares)
{
    static float filter[MAPS * CHANNELS];
    for (int64_t i = 0; i < BLOCKS * PIXELS * STEP * 16; i++) {
        const int64_t pixel = i / 16 % (PIXELS * STEP) / STEP;
        const int64_t c = i / 16 / PIXELS / STEP * 16 + i % 16;
        x[i] = c >= CHANNELS || i / 16 % STEP ? NAN : pixel == 21 ? 0 : near_one();
        if (pixel == 20)
            x[i] *= 1e30f;
    }
    for (int64_t i = 0; i < MAPS * CHANNELS; i++)
        filter[i] = near_one() / 16;
    for (int64_t v = 0; v < OUT_BLOCKS; v += 2) {
        const int64_t width = v + 1 < OUT_BLOCKS ? 32 : 16, maps = MAPS - v * 16;
        float *panel = w + v * 16 * CHANNELS;
        k->blocked16.pack_panel((const char *)(filter + v * 16 * CHANNELS), CHANNELS,
                                maps < width ? maps : width, width, CHANNELS, 1, panel);
        if (width == 32)
            k->gemm.crossed.columns(CHANNELS, CHANNELS, panel, begin + v * 16, squares);
    }
}

static void kernel_alone(test_state *test)
{
    static _Alignas(64) float x[BLOCKS * PIXELS * STEP * 16], w[OUT_BLOCKS * 16 * CHANNELS];
    static _Alignas(64) float y[2][OUT_BLOCKS * PIXELS * 16], begin[OUT_BLOCKS * 16];
    float slope[OUT_BLOCKS * 16], squares[32];
    const ort_kernels *k = ort_kernels_get("avx512");
    float *space = aligned_alloc(64, (size_t)ort_blocked_crossed_floats(CHANNELS) * 4);
    for (int64_t vectors = 4; has_crossed() && vectors <= OUT_BLOCKS; vectors++) {
        fill_kernel(k, x, w, begin, squares);
        for (int i = 0; i < OUT_BLOCKS * 16; i++)
            slope[i] = near_one();
        ort_blocked_crossed crossed = {.begin = begin, .maps = vectors == 4 ? 60 : MAPS,
                                       .space = space, .middle = -2};
        for (int way = 0; way < 2; way++) {
            ort_blocked_conv c = {.window = {.x = x, .width = PIXELS * STEP, .rows = 1,
                                             .columns = 1, .stride = STEP, .dilation = 1},
                                  .out = {.y = y[way], .y_block = PIXELS * 16, .slope = slope,
                                          .lo = -0.3f, .hi = 0.9f, .count = PIXELS},
                                  .x_block = PIXELS * STEP * 16, .channels = CHANNELS, .w = w,
                                  .w_rows = 1, .vectors = vectors};
            if (way)
                k->blocked16.conv_crossed(&c, &crossed);
            else
                k->blocked16.conv(&c);
        }
        bool near = true, clear = true, other = false;
        for (int64_t i = 0; i < vectors * PIXELS * 16; i++) {
            const int64_t map = i / 16 / PIXELS * 16 + i % 16;
            const bool beyond = vectors == 4 && map >= 60;
            near &= beyond || fabsf(y[1][i] - y[0][i]) < 3e-6f;
            clear &= !beyond || i / 16 % PIXELS == 20 || y[1][i] == 0;
            other |= y[1][i] != y[0][i];
        }
        CHECK(near);
        CHECK(clear);
        CHECK(other);
    }
    free(space);
}

static void not_taken(test_state *test)
{
    /* A last vector would be left to direct sums, and outputs of equal weights differ. */
    static const points_case odd[] = {
        {128, 104, 5, 3, 1, false, 1}, {128, 1000, 5, 3, 1, false, 1}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd && has_crossed(); i++) {
        problem p;
        int crossed = -1;
        CHECK(make(&p, &odd[i], &kinds[0]));
        ort_value_free(run(&p, "avx512", 1, false, &crossed));
        drop(&p);
        CHECK(crossed <= 0);
    }
    static const char *const direct[] = {"common", "common256", "amx", "avx2", "scalar"};
    for (size_t i = 0; i < sizeof direct / sizeof *direct; i++) {
        const ort_kernels *k = ort_kernels_get(direct[i]);
        CHECK(!k || (!k->blocked8.conv_crossed && !k->blocked16.conv_crossed));
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, bounds);
    RUN(&test, kernel_alone);
    RUN(&test, not_taken);
    return test.failures != 0;
}
