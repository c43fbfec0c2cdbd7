/* test_random.c - numpy's legacy streams against numbers that numpy printed; the random operators'
 * distributions by the tests of Kolmogorov-Smirnov and of Pearson (chi-square) with a million draws
 * each, from every source of numbers; and that neither threads nor repetition change them.
 *
 * Seeds are fixed, so a result is always the same. The bounds are those that a right generator
 * exceeds once in 10^4 seeds.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mt19937.h"
#include "net.h"
#include "test.h"
#include "workers.h"

#define DRAWS 1000000

/* ---- numpy's numbers (2.4.6; the legacy streams are frozen) */

static void mt19937_is_numpys(test_state *test)
{
    ort_mt19937 mt;
    ort_mt19937_seed(&mt, 0);
    CHECK(ort_mt19937_word(&mt) == 0x8c7f0aac && ort_mt19937_word(&mt) == 0x97c4aa2f);
    ort_mt19937_seed(&mt, 0);
    CHECK(ort_mt19937_uniform(&mt) == 0x1.18fe1565f12a8p-1);
    CHECK(ort_mt19937_uniform(&mt) == 0x1.6e2d4cf608733p-1);
    ort_mt19937_seed(&mt, 4294967295u);
    CHECK(ort_mt19937_uniform(&mt) == 0x1.8fe69a3924820p-4);
    ort_mt19937_seed_words(&mt, (uint32_t[]){1, 2}, 2);
    CHECK(ort_mt19937_uniform(&mt) == 0x1.2b45704626fe0p-1);
    ort_mt19937_seed(&mt, 0x200000001u); /* beyond 32 bits: the same two words */
    CHECK(ort_mt19937_uniform(&mt) == 0x1.2b45704626fe0p-1);
    CHECK(ort_mt19937_uniform(&mt) == 0x1.08bc9db7caa84p-2);
    ort_mt19937_seed(&mt, 3); /* far into the stream */
    ort_mt19937_skip(&mt, 999999);
    CHECK(ort_mt19937_uniform(&mt) == 0x1.e561c618034aep-2);
}

static void legacy_distributions_are_numpys(test_state *test)
{
    static const char outcomes[] = "00001000001100011101101101111111";
    ort_mt19937 mt;
    ort_mt19937_seed(&mt, 42);
    CHECK(fabs(ort_mt19937_normal(&mt) - 0x1.fca2a28a9307cp-2) < 1e-15);
    CHECK(fabs(ort_mt19937_normal(&mt) + 0x1.1b2a505de052ap-3) < 1e-15);
    CHECK(fabs(ort_mt19937_normal(&mt) - 0x1.4b9dd50245e68p-1) < 1e-15);
    ort_mt19937_seed(&mt, 7); /* binomial(1, linspace(0, 1, 32)), then random_sample() */
    for (int i = 0; i < 32; i++)
        CHECK(ort_mt19937_bernoulli(&mt, (double)i / 31) == (outcomes[i] == '1'));
    CHECK(ort_mt19937_uniform(&mt) == 0x1.7d526979c2816p-2);
}

/* ---- one node, its draws */

typedef struct draw_source {
    bool attribute;
    double seed;
    ort_run_options how;
} draw_source;

static const draw_source sources[] = {
    {.how = {.size = sizeof(ort_run_options), .seed = 11}},
    {.attribute = true, .seed = 7, .how = ORT_RUN_OPTIONS_INIT},
    {.attribute = true, .seed = 7,
     .how = {.size = sizeof(ort_run_options), .seed = 5, .one_stream = true, .stream_skip = 3}},
};
enum { SOURCES = sizeof sources / sizeof sources[0] };

static void set_number(net *n, ort_node *node, const char *name, ort_attr_type type, double x)
{
    ort_attr attr = {.name = name, .type = type, .f = (float)x, .i = (int64_t)x};
    (void)!ort_node_set_attr(n->graph, node, &attr, NULL);
}

/* The outputs of a node of `op_type` on inputs that are given by `fill`; NULL when it failed. */
static ort_value *draw(const char *op_type, ort_dtype dtype, ort_value *const *inputs,
                       int input_count, const draw_source *source, int threads)
{
    static const char *const names[] = {"", "a", "a b", "a b c"};
    bool dropout = !strcmp(op_type, "Dropout");
    ort_env_options options;
    ort_value *out = NULL;
    ort_session *session = NULL;
    net n;
    ort_env_options_init(&options);
    options.threads = threads;
    options.own_threads = &workers_at_once;
    if (!net_init(&n, &options))
        return NULL;
    for (int i = 0; i < input_count; i++) {
        const ort_tensor *t = &inputs[i]->tensor;
        net_input(&n, (const char *[]){"a", "b", "c"}[i], t->dtype, t->shape.rank, t->shape.dim);
    }
    ort_node *node = net_node(&n, op_type, names[input_count], "y");
    if (!dropout)
        net_int(&n, node, "dtype", dtype);
    if (!strcmp(op_type, "Multinomial"))
        net_int(&n, node, "sample_size", DRAWS);
    if (source->attribute)
        set_number(&n, node, "seed", dropout ? ORT_ATTR_INT : ORT_ATTR_FLOAT, source->seed);
    net_output(&n, "y");
    session = net_session(&n, NULL, NULL);
    if (!session || run_whole(session, inputs, &out, &source->how, NULL))
        out = NULL;
    ort_session_free(session);
    net_free(&n);
    return out;
}

static ort_value *draw_like(const char *op_type, ort_dtype dtype, const draw_source *source,
                            int threads)
{
    ort_value *like = NULL, *out = NULL;
    if (ort_value_new_tensor(dtype, 1, (int64_t[]){DRAWS}, &like, NULL) == ORT_OK)
        out = draw(op_type, dtype, &like, 1, source, threads);
    ort_value_free(like);
    return out;
}

/* ---- the statistics */

static double normal_cdf(double x) { return 0.5 * erfc(-x / sqrt(2)); }
static double uniform_cdf(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov-Smirnov: sqrt(n) * D exceeds x with probability 2 exp(-2 x^2), 10^-4 at 2.225. */
static bool ks_fits(const ort_value *value, double (*cdf)(double))
{
    int64_t n = ort_value_count(value);
    double *x = malloc((size_t)n * sizeof *x), worst = 0;
    for (int64_t i = 0; i < n; i++)
        x[i] = ort_value_get_double(value, i);
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    for (int64_t i = 0; i < n; i++) {
        double p = cdf(x[i]);
        worst = fmax(worst, fmax((double)(i + 1) / (double)n - p, p - (double)i / (double)n));
    }
    free(x);
    return worst * sqrt((double)n) < 2.225;
}

/* Upper 10^-4 quantile of chi-square (Wilson and Hilferty, 1931). */
static double chi_square_bound(int freedom)
{
    double a = 2.0 / (9.0 * freedom), root = 1 - a + 3.719 * sqrt(a);
    return freedom * root * root * root;
}

static double chi_square(const double *seen, const double *wanted, int cells)
{
    double sum = 0;
    for (int i = 0; i < cells; i++)
        sum += (seen[i] - wanted[i]) * (seen[i] - wanted[i]) / wanted[i];
    return sum;
}

/* Neighbours are independent: pairs of p-values in 10 x 10 equal cells. */
static bool pairs_fit(const ort_value *value, double (*cdf)(double))
{
    double seen[100] = {0}, wanted[100];
    int64_t n = ort_value_count(value) / 2;
    for (int i = 0; i < 100; i++)
        wanted[i] = (double)n / 100;
    for (int64_t i = 0; i < n; i++) {
        int a = (int)(10 * cdf(ort_value_get_double(value, 2 * i)));
        int b = (int)(10 * cdf(ort_value_get_double(value, 2 * i + 1)));
        seen[(a < 10 ? a : 9) * 10 + (b < 10 ? b : 9)]++;
    }
    return chi_square(seen, wanted, 100) < chi_square_bound(99);
}

static void continuous_draws_fit(test_state *test)
{
    for (int s = 0; s < SOURCES; s++)
        for (int d = 0; d < 2; d++) {
            ort_dtype dtype = d ? ORT_DTYPE_DOUBLE : ORT_DTYPE_FLOAT;
            ort_value *u = draw_like("RandomUniformLike", dtype, &sources[s], 2);
            ort_value *g = draw_like("RandomNormalLike", dtype, &sources[s], 2);
            bool ok = u && g && ks_fits(u, uniform_cdf) && ks_fits(g, normal_cdf) &&
                      pairs_fit(u, uniform_cdf) && pairs_fit(g, normal_cdf);
            ort_value_free(u);
            ort_value_free(g);
            CHECK(ok);
        }
}

static const double chances[] = {0.001, 0.03, 0.2, 0.35, 0.5, 0.61, 0.8, 0.95};
enum { CHANCES = sizeof chances / sizeof chances[0] };

static void bernoulli_fits(test_state *test)
{
    ort_value *p = NULL;
    CHECK(ort_value_new_tensor(ORT_DTYPE_DOUBLE, 1, (int64_t[]){DRAWS}, &p, NULL) == ORT_OK);
    for (int64_t i = 0; i < DRAWS; i++)
        ort_value_set_double(p, i, chances[i % CHANCES]);
    for (int s = 0; s < SOURCES; s++) {
        ort_value *y = draw("Bernoulli", ORT_DTYPE_INT32, &p, 1, &sources[s], 1);
        CHECK(y != NULL);
        double seen[CHANCES] = {0}, sum = 0, trials = DRAWS / CHANCES;
        for (int64_t i = 0; i < DRAWS; i++)
            seen[i % CHANCES] += ort_value_get_double(y, i);
        for (int k = 0; k < CHANCES; k++)
            sum += pow(seen[k] - trials * chances[k], 2) / (trials * chances[k] * (1 - chances[k]));
        ort_value_free(y);
        CHECK(sum < chi_square_bound(CHANCES));
    }
    ort_value_set_double(p, 5, 1.5);
    CHECK(draw("Bernoulli", ORT_DTYPE_INT32, &p, 1, &sources[0], 1) == NULL);
    ort_value_free(p);
}

static void multinomial_fits(test_state *test)
{
    static const double share[2][4] = {{0.1, 0.2, 0.3, 0.4}, {0.7, 0.25, 0.049, 0.001}};
    ort_value *x = NULL;
    CHECK(ort_value_new_tensor(ORT_DTYPE_FLOAT, 2, (int64_t[]){2, 4}, &x, NULL) == ORT_OK);
    for (int i = 0; i < 8; i++) /* logarithms up to a constant */
        ort_value_set_double(x, i, log(share[i / 4][i % 4]) + 3);
    for (int s = 0; s < SOURCES; s++) {
        ort_value *y = draw("Multinomial", ORT_DTYPE_INT64, &x, 1, &sources[s], 1);
        CHECK(y != NULL && ort_value_count(y) == 2 * DRAWS);
        double seen[2][4] = {{0}}, wanted[4];
        for (int64_t i = 0; i < 2 * DRAWS; i++)
            seen[i / DRAWS][(int)ort_value_get_double(y, i) & 3]++;
        ort_value_free(y);
        for (int row = 0; row < 2; row++) {
            for (int k = 0; k < 4; k++)
                wanted[k] = share[row][k] * DRAWS;
            CHECK(chi_square(seen[row], wanted, 4) < chi_square_bound(3));
        }
    }
    ort_value_free(x);
}

static void dropout_fits(test_state *test)
{
    for (int s = 0; s < SOURCES; s++)
        for (int k = 0; k < CHANCES; k++) {
            ort_value *in[3] = {net_floats(1, (int64_t[]){DRAWS}, 2, 0),
                                net_scalar(ORT_DTYPE_FLOAT, chances[k]),
                                net_scalar(ORT_DTYPE_BOOL, 1)};
            double ratio = ort_value_get_double(in[1], 0), kept = 2 / (1 - ratio), zeros = 0;
            ort_value *y = draw("Dropout", ORT_DTYPE_FLOAT, in, 3, &sources[s], 1);
            bool others = false;
            for (int64_t i = 0; y && i < DRAWS; i++) {
                double v = ort_value_get_double(y, i);
                zeros += v == 0;
                others |= v != 0 && fabs(v - kept) > 1e-6 * kept;
            }
            for (int i = 0; i < 3; i++)
                ort_value_free(in[i]);
            CHECK(y != NULL && !others);
            ort_value_free(y);
            double wanted[2] = {DRAWS * ratio, DRAWS * (1 - ratio)};
            double seen[2] = {zeros, DRAWS - zeros};
            CHECK(chi_square(seen, wanted, 2) < chi_square_bound(1));
        }
}

/* ---- the same again */

static bool same_bits(const ort_value *a, const ort_value *b)
{
    return a && b && ort_value_count(a) == ort_value_count(b) &&
           !memcmp(a->tensor.data, b->tensor.data, ort_tensor_bytes(&a->tensor));
}

static void threads_change_nothing(test_state *test)
{
    static const char *const ops[] = {"RandomUniformLike", "RandomNormalLike"};
    for (int s = 0; s < SOURCES; s++)
        for (int o = 0; o < 2; o++) {
            ort_value *one = draw_like(ops[o], ORT_DTYPE_FLOAT, &sources[s], 1);
            ort_value *four = draw_like(ops[o], ORT_DTYPE_FLOAT, &sources[s], 4);
            bool same = same_bits(one, four);
            ort_value_free(one);
            ort_value_free(four);
            CHECK(same);
        }
}

/* With a seed the numbers are RandomState(seed)'s; with a stream, those behind the skipped ones. */
static void sources_are_numpys(test_state *test)
{
    ort_mt19937 mt;
    ort_value *y = draw_like("RandomUniformLike", ORT_DTYPE_DOUBLE, &sources[1], 1);
    bool same = y != NULL;
    ort_mt19937_seed(&mt, 7);
    for (int64_t i = 0; same && i < DRAWS; i++)
        same = ort_value_get_double(y, i) == ort_mt19937_uniform(&mt);
    ort_value_free(y);
    CHECK(same);
    y = draw_like("RandomNormalLike", ORT_DTYPE_DOUBLE, &sources[2], 1);
    ort_mt19937_seed(&mt, 5);
    ort_mt19937_skip(&mt, 3);
    same = y != NULL;
    for (int64_t i = 0; same && i < DRAWS; i++)
        same = ort_value_get_double(y, i) == ort_mt19937_normal(&mt);
    ort_value_free(y);
    CHECK(same);
}

/* Two nodes without a seed draw different numbers, two runs the same; one stream goes on from node
 * to node. */
static void nodes_draw_in_turn(test_state *test)
{
    net n;
    ort_value *like = net_floats(1, (int64_t[]){4}, 0, 0), *out[2] = {NULL}, *again[2] = {NULL};
    const ort_run_options stream = {.size = sizeof stream, .seed = 1, .one_stream = true};
    ort_mt19937 mt;
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, (int64_t[]){4});
    net_node(&n, "RandomUniformLike", "x", "u");
    net_node(&n, "RandomUniformLike", "x", "v");
    net_output(&n, "u");
    net_output(&n, "v");
    ort_session *session = net_session(&n, NULL, NULL);
    CHECK(session != NULL);
    CHECK(run_whole(session, &like, out, NULL, NULL) == ORT_OK);
    CHECK(run_whole(session, &like, again, NULL, NULL) == ORT_OK);
    CHECK(!same_bits(out[0], out[1]));
    CHECK(same_bits(out[0], again[0]) && same_bits(out[1], again[1]));
    CHECK(run_whole(session, &like, out, &stream, NULL) == ORT_OK);
    ort_mt19937_seed(&mt, 1);
    for (int i = 0; i < 8; i++)
        CHECK(ort_value_get_double(out[i / 4], i % 4) == (double)(float)ort_mt19937_uniform(&mt));
    for (int i = 0; i < 2; i++) {
        ort_value_free(out[i]);
        ort_value_free(again[i]);
    }
    ort_value_free(like);
    ort_session_free(session);
    net_free(&n);
}

int main(void)
{
    test_state state = {{0}, false, 0}, *test = &state;
    RUN(test, mt19937_is_numpys);
    RUN(test, legacy_distributions_are_numpys);
    RUN(test, continuous_draws_fit);
    RUN(test, bernoulli_fits);
    RUN(test, multinomial_fits);
    RUN(test, dropout_fits);
    RUN(test, threads_change_nothing);
    RUN(test, sources_are_numpys);
    RUN(test, nodes_draw_in_turn);
    return state.failures != 0;
}
