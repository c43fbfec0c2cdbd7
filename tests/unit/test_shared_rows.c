/* test_shared_rows.c - products with weights of a few bits that read the same rows become one step
 * (provider/cpu/shared_rows.c) and give the bits of each alone: of one row and of many, in three
 * bytes and in one, with and without zero points and bias, also where a row doesn't go into fixed
 * point. What has other rows or another block stays outside. */
#include <math.h>

#include "kernel/kernel.h"
#include "rewrite.h"
#include "test.h"

enum { K = 72, N_MAX = 40, BLOCK = 16, ROWS_MAX = 70, PRODUCTS = 5 };

typedef struct problem {
    int bits;
    int64_t rows, level;
    bool zeros, odd;
} problem;

static unsigned state = 3;

static unsigned draw(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 9;
}

/* A product of `n` columns and blocks of `block`; odd ones have a bias. */
static void add_product(net *n, const problem *p, int index, int64_t columns, int64_t block,
                        const char *x)
{
    static uint8_t bytes[N_MAX * K * 2];
    static float scales[N_MAX * K], bias[N_MAX];
    const int64_t blocks = (K + block - 1) / block, blob = block * p->bits / 8;
    const int64_t q[3] = {columns, blocks, blob}, scale[2] = {columns, blocks};
    const int64_t zero[2] = {columns, (blocks * p->bits + 7) / 8};
    char names[5][8], in[64];
    for (int i = 0; i < 5; i++)
        snprintf(names[i], sizeof names[i], "%c%d", "qszby"[i], index);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)draw();
    for (int i = 0; i < N_MAX * K; i++)
        scales[i] = (float)(1 + draw() % 1000) * 1e-4f;
    for (int i = 0; i < N_MAX; i++)
        bias[i] = (float)(draw() % 1000) * 1e-2f;
    net_constant(n, names[0], ORT_DTYPE_UINT8, 3, q, bytes);
    net_constant(n, names[1], ORT_DTYPE_FLOAT, 2, scale, scales);
    if (p->zeros)
        net_constant(n, names[2], ORT_DTYPE_UINT8, 2, zero, bytes);
    if (index % 2)
        net_constant(n, names[3], ORT_DTYPE_FLOAT, 1, &columns, bias);
    snprintf(in, sizeof in, "%s %s %s %s - %s", x, names[0], names[1], p->zeros ? names[2] : "-",
             index % 2 ? names[3] : "-");
    ort_node *node = net_node_of(n, "com.microsoft", "MatMulNBits", in, names[4]);
    net_int(n, node, "K", K);
    net_int(n, node, "N", columns);
    net_int(n, node, "bits", p->bits);
    net_int(n, node, "block_size", block);
    net_int(n, node, "accuracy_level", p->level);
    net_output(n, names[4]);
}

/* Three of one form, two that stay alone. */
static void build(net *n, const problem *p)
{
    const int64_t x[2] = {p->rows, K};
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, x);
    net_node(n, "Neg", "x", "other");
    add_product(n, p, 0, 24, BLOCK, "x");
    add_product(n, p, 1, N_MAX, BLOCK, "x");
    add_product(n, p, 2, 24, BLOCK, "other");
    add_product(n, p, 3, 7, BLOCK, "x");
    add_product(n, p, 4, 24, 2 * BLOCK, "x");
}

static ort_session *with(net *n, bool joined)
{
    static const char *const none[] = {"shared_rows", NULL};
    ort_session_options options;
    ort_session_options_init(&options);
    options.disable = joined ? NULL : none;
    return net_session(n, &options, NULL);
}

static bool has(const ort_session *s, int shared, int alone)
{
    const net run = {.model = s->model};
    return count_ops(&run, "MatMulNBitsShared") == shared &&
           count_ops(&run, "MatMulNBits") == alone;
}

/* NULL, or what is wrong. */
static const char *check(const problem *p, const char *isa, int threads)
{
    const ort_compare_options same = {sizeof same, 0, 0};
    ort_difference difference = ORT_DIFFERENCE_INIT;
    ort_value *x[1] = {NULL}, *y[PRODUCTS] = {NULL}, *z[PRODUCTS] = {NULL};
    const char *why = NULL;
    net n;
    if (!net_on(&n, isa, threads))
        return "memory";
    (void)!ort_vec_push(&n.model->opsets, ((ort_opset){.domain = "com.microsoft", .version = 1}));
    build(&n, p);
    ort_session *joined = with(&n, true), *plain = with(&n, false);
    if (!joined || !plain || ort_session_random_inputs(joined, 7, x, 1, NULL))
        why = "no session";
    else if (!has(joined, 1, 2) || !has(plain, 0, 5))
        why = "other operators";
    if (!why && p->odd)
        ort_value_set_double(x[0], (p->rows - 1) * K + 5, INFINITY);
    if (!why && (run_whole(plain, x, y, NULL, NULL) || run_whole(joined, x, z, NULL, NULL)))
        why = "no result";
    for (int i = 0; !why && i < PRODUCTS; i++)
        if (ort_value_compare(z[i], y[i], &same, &difference, NULL) || !difference.equal)
            why = "another result";
    net_free_values(x, 1);
    net_free_values(y, PRODUCTS);
    net_free_values(z, PRODUCTS);
    ort_session_free(joined);
    ort_session_free(plain);
    net_free(&n);
    return why;
}

static void alike(test_state *test)
{
    static const int64_t rows[] = {1, 5, ROWS_MAX};
    static const int bits[] = {4, 2, 8, 3};
    const ort_kernel_tier *tier;
    for (int t = 0; (tier = ort_kernel_tier_at(t)); t++)
        for (int i = 0; ort_kernels_get(tier->name) && i < 48; i++) {
            const problem p = {.bits = bits[i % 4], .rows = rows[i / 4 % 3], .level = i % 5 ? 4 : 0,
                               .zeros = i / 12 % 2, .odd = i / 24};
            const char *why = check(&p, tier->name, 1 + i % 2);
            if (why)
                printf("# %s, case %d: %s\n", tier->name, i, why);
            CHECK(!why);
        }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, alike);
    return test.failures != 0;
}
