/* test_half.c - weights of 16 bits: products with them have the bits of products with the same
 * numbers as floats, on every tier, for every number of rows and of threads, from a pack as well.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/num.h"
#include "io/pack.h"
#include "net.h"
#include "op/shared/matrix.h"
#include "test.h"
#include "workers.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

enum { M_MAX = 33, K_MAX = 300, N_MAX = 100, PADDED = 128 };

static const ort_dtype forms[] = {ORT_DTYPE_FLOAT16, ORT_DTYPE_BFLOAT16};

static float widened(ort_dtype form, uint16_t bits)
{
    return form == ORT_DTYPE_FLOAT16 ? ort_f16_to_f32(bits) : ort_bf16_to_f32(bits);
}

/* Numbers around 1, now and then a subnormal of float16, a zero of either sign. */
static uint16_t draw(ort_dtype form)
{
    static const uint16_t rare[] = {0, 0x8000, 0x0001, 0x83ff, 0x0400};
    int kind = rand() % 64;
    if (form == ORT_DTYPE_FLOAT16 && kind < 5)
        return rare[kind];
    float x = (float)(rand() % 4001 - 2000) * 1e-3f;
    return form == ORT_DTYPE_FLOAT16 ? ort_f32_to_f16(x) : ort_f32_to_bf16(x);
}

typedef struct product {
    int64_t m, n, k;
    float *a, *b, *wide, *expected, *actual, *add, *bias;
    uint16_t *narrow, *packed;
} product;

static bool product_init(product *p)
{
    *p = (product){.a = malloc(M_MAX * K_MAX * sizeof(float)),
                   .b = malloc(K_MAX * N_MAX * sizeof(float)),
                   .wide = aligned_alloc(64, K_MAX * PADDED * sizeof(float)),
                   .expected = malloc((M_MAX * N_MAX + 1) * sizeof(float)),
                   .actual = malloc((M_MAX * N_MAX + 1) * sizeof(float)),
                   .add = malloc(M_MAX * N_MAX * sizeof(float)),
                   .bias = malloc(N_MAX * sizeof(float)),
                   .narrow = malloc(K_MAX * N_MAX * sizeof(uint16_t)),
                   .packed = aligned_alloc(64, K_MAX * PADDED * sizeof(uint16_t))};
    return p->a && p->b && p->wide && p->expected && p->actual && p->add && p->bias && p->narrow &&
           p->packed;
}

static void product_release(product *p)
{
    free(p->a), free(p->b), free(p->wide), free(p->expected), free(p->actual), free(p->add);
    free(p->bias), free(p->narrow), free(p->packed);
}

static void fill(product *p, ort_dtype form)
{
    for (int64_t i = 0; i < p->k * p->n; i++) {
        p->narrow[i] = draw(form);
        p->b[i] = widened(form, p->narrow[i]);
    }
    for (int64_t i = 0; i < p->m * p->k; i++)
        p->a[i] = (float)(rand() % 2001 - 1000) * 1e-3f;
    for (int64_t i = 0; i < p->m * p->n; i++)
        p->add[i] = (float)(rand() % 201 - 100) * 1e-2f;
    for (int64_t i = 0; i < p->n; i++)
        p->bias[i] = (float)(rand() % 201 - 100) * 1e-2f;
}

static void multiply(const ort_kernels *k, const product *p, ort_dtype form, const void *packed,
                     float *c, const ort_epilogue *e)
{
    ort_product_f32 of = {.m = p->m, .n = p->n, .depth = p->k, .a = p->a, .lda = p->k,
                          .packed = packed, .form = form, .c = c, .ldc = p->n, .epilogue = e};
    ort_matrix_block_f32(k, &of);
}

static bool same_bits(const ort_kernels *k, product *p, ort_dtype form, bool transposed)
{
    int64_t row = transposed ? 1 : p->n, column = transposed ? p->k : 1;
    size_t count = (size_t)(p->m * p->n);
    ort_epilogue e = ort_epilogue_none();
    e.add = p->add;
    e.ldadd = p->n;
    e.col_bias = p->bias;
    e.lo = -2;
    p->actual[count] = 7.0f;
    ort_matrix_pack_f32(k, p->k, p->n, p->b, row, column, p->wide);
    ort_matrix_pack_16(k, p->k, p->n, p->narrow, row, column, p->packed);
    multiply(k, p, ORT_DTYPE_FLOAT, p->wide, p->expected, &e);
    multiply(k, p, form, p->packed, p->actual, &e);
    return !memcmp(p->expected, p->actual, count * sizeof(float)) && p->actual[count] == 7.0f;
}

static void kernels(test_state *test)
{
    const int64_t ms[] = {1, 2, 3, 4, 5, 14, 15, M_MAX}, ns[] = {1, 15, 16, 31, 32, 33, 64, N_MAX};
    const int64_t ks[] = {1, 7, 128, 129, K_MAX};
    const ort_kernel_tier *tier;
    product p;
    CHECK(product_init(&p));
    for (int t = 0; (tier = ort_kernel_tier_at(t)); t++) {
        const ort_kernels *k = ort_kernels_get(tier->name);
        for (int at = 0; k && at < 8 * 8 * 5 * 2 * 2; at++) {
            ort_dtype form = forms[at % 2];
            p.m = ms[at / 4 % 8];
            p.n = ns[at / 32 % 8];
            p.k = ks[at / 256];
            fill(&p, form);
            CHECK(same_bits(k, &p, form, at / 2 % 2));
        }
        printf("# %s%s\n", tier->name, k ? "" : " isn't there");
    }
    product_release(&p);
}

static void infinities(test_state *test)
{
    const ort_kernel_tier *tier;
    product p;
    CHECK(product_init(&p));
    p.m = 3, p.n = 33, p.k = 40;
    for (int t = 0; (tier = ort_kernel_tier_at(t)); t++) {
        const ort_kernels *k = ort_kernels_get(tier->name);
        fill(&p, ORT_DTYPE_FLOAT16);
        p.narrow[5] = 0x7c00; /* infinity, column 5 */
        p.narrow[6] = 0x7e00; /* NaN, column 6 */
        if (!k)
            continue;
        ort_matrix_pack_16(k, p.k, p.n, p.narrow, p.n, 1, p.packed);
        multiply(k, &p, ORT_DTYPE_FLOAT16, p.packed, p.actual, NULL);
        for (int64_t i = 0; i < p.m; i++) {
            CHECK(p.a[i * p.k] == 0 || isinf(p.actual[i * p.n + 5]));
            CHECK(isnan(p.actual[i * p.n + 6]) && isfinite(p.actual[i * p.n + 7]));
        }
    }
    product_release(&p);
}

/* ---- sessions: x [n, 512] -> MatMul -> Relu -> Gemm -> y [n, 512], all of one type */

enum { WIDE = 512, INNER = 256 };

static const void *weights(ort_dtype dtype, ort_dtype form, int salt, int64_t count)
{
    static float floats[WIDE * INNER];
    static uint16_t halves[WIDE * INNER];
    for (int64_t i = 0; i < count; i++) {
        float x = (float)((i * 37 + salt) % 101 - 50) / 64.0f;
        halves[i] = form == ORT_DTYPE_FLOAT16 ? ort_f32_to_f16(x) : ort_f32_to_bf16(x);
        floats[i] = widened(form, halves[i]);
    }
    return dtype == ORT_DTYPE_FLOAT ? (const void *)floats : halves;
}

static void build(net *n, ort_dtype dtype, ort_dtype form)
{
    net_input(n, "x", dtype, 2, DIMS(-1, WIDE));
    net_constant(n, "w", dtype, 2, DIMS(WIDE, INNER), weights(dtype, form, 11, WIDE * INNER));
    net_constant(n, "v", dtype, 2, DIMS(WIDE, INNER), weights(dtype, form, 29, WIDE * INNER));
    net_constant(n, "b", dtype, 1, DIMS(WIDE), weights(dtype, form, 7, WIDE));
    net_node(n, "MatMul", "x w", "p");
    net_node(n, "Relu", "p", "r");
    net_int(n, net_node(n, "Gemm", "r v b", "y"), "transB", 1);
    net_output(n, "y");
}

static ort_value *input(ort_dtype dtype, int64_t rows)
{
    ort_value *x = NULL;
    if (ort_value_new_tensor(dtype, 2, DIMS(rows, WIDE), &x, NULL))
        return NULL;
    for (int64_t i = 0; i < rows * WIDE; i++)
        ort_value_set_double(x, i, (double)(i * 13 % 33 - 16) / 16);
    return x;
}

static ort_value *run(ort_dtype dtype, ort_dtype form, int threads, int64_t rows)
{
    net n;
    ort_env_options options;
    ort_env_options_init(&options);
    options.threads = threads;
    options.own_threads = &workers_at_once;
    options.math_strict = dtype == ORT_DTYPE_FLOAT; /* direct sums, as those of 16 bits are */
    ort_value *x = input(dtype, rows), *y = NULL;
    ort_session *session = NULL;
    if (net_init(&n, &options)) {
        build(&n, dtype, form);
        session = net_session(&n, NULL, NULL);
        if (session)
            (void)!run_whole(session, &x, &y, NULL, NULL);
        ort_session_free(session);
    }
    net_free(&n);
    ort_value_free(x);
    return y;
}

static double rounded(ort_dtype form, double x)
{
    return (double)widened(form, form == ORT_DTYPE_FLOAT16 ? ort_f32_to_f16((float)x)
                                                           : ort_f32_to_bf16((float)x));
}

/* The float model's results, rounded once; the same with any number of threads. */
static void sessions(test_state *test)
{
    const int64_t rows[] = {1, 3, 40};
    for (int at = 0; at < 6; at++) {
        ort_dtype form = forms[at % 2];
        ort_value *exact = run(ORT_DTYPE_FLOAT, form, 1, rows[at / 2]);
        ort_value *y = run(form, form, 1, rows[at / 2]);
        CHECK(exact && y);
        for (int64_t i = 0; i < rows[at / 2] * WIDE; i++)
            CHECK(ort_value_get_double(y, i) == rounded(form, ort_value_get_double(exact, i)));
        const int threads[] = {2, 3, 8};
        for (int t = 0; t < 3; t++) {
            ort_value *again = run(form, form, threads[t], rows[at / 2]);
            CHECK(again && ort_value_digest(again) == ort_value_digest(y));
            ort_value_free(again);
        }
        ort_value_free(exact);
        ort_value_free(y);
    }
}

static int blocks_named(const char *path, const char *kind)
{
    ort_pack pack;
    int count = 0;
    if (ort_pack_open(path, &pack, NULL))
        return -1;
    for (size_t i = 0; i < pack.entry_count; i++)
        count += !strcmp(pack.entries[i].kind, kind);
    ort_pack_release(&pack);
    return count;
}

static ort_value *run_file(const char *path, ort_dtype form, bool no_pack)
{
    ort_env *env = NULL;
    ort_session *session = NULL;
    ort_session_options options;
    ort_session_options_init(&options);
    options.no_pack = no_pack;
    ort_value *x = input(form, 3), *y = NULL;
    if (!ort_env_new(NULL, &env, NULL) &&
        !ort_session_load(env, path, &options, &session, NULL))
        (void)!run_whole(session, &x, &y, NULL, NULL);
    ort_session_free(session);
    ort_env_free(env);
    ort_value_free(x);
    return y;
}

static void packs(test_state *test)
{
    for (int at = 0; at < 2; at++) {
        char folder[] = "/tmp/ort-half-XXXXXX", model[64], pack[80];
        net n;
        CHECK(mkdtemp(folder) && net_init(&n, NULL));
        snprintf(model, sizeof model, "%s/m.onnx", folder);
        snprintf(pack, sizeof pack, "%s.pack", model);
        build(&n, forms[at], forms[at]);
        CHECK(ort_model_save_packed(n.env, n.model, model, NULL, NULL) == ORT_OK);
        net_free(&n);
        CHECK(blocks_named(pack, at ? "bf16 panels" : "f16 panels") == 2);
        CHECK(blocks_named(pack, "panels") == 0);
        ort_value *with = run_file(model, forms[at], false);
        ort_value *without = run_file(model, forms[at], true);
        CHECK(with && without && ort_value_digest(with) == ort_value_digest(without));
        ort_value_free(with);
        ort_value_free(without);
        unlink(model);
        unlink(pack);
        rmdir(folder);
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, kernels);
    RUN(&test, infinities);
    RUN(&test, sessions);
    RUN(&test, packs);
    return test.failures != 0;
}
