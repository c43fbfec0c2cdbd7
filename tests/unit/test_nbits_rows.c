/* test_nbits_rows.c - MatMulNBits of every number of bits, for one row and for many: in three bytes
 * or floats it is within the rounding of a sum of products, in one byte (accuracy_level 4, or math
 * fast) within half of a 127th of the largest element of its block for each product. */
#include <math.h>
#include <stdlib.h>

#include "net.h"
#include "test.h"

enum { K = 150, N = 53, BLOCK = 32, BLOCKS = 5, ROWS_MAX = 70 };

typedef struct problem {
    int bits;
    int64_t rows, level;
    bool zeros, fast;
    uint8_t codes[N * BLOCKS * BLOCK], q[N * BLOCKS * BLOCK], zero[N * BLOCKS], z[N * BLOCKS];
    float scale[N * BLOCKS], x[ROWS_MAX * K];
} problem;

static unsigned state = 7;

static unsigned draw(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 9;
}

/* Codes of so many bits one after the other, each row from a whole byte on. */
static void put(uint8_t *to, int64_t rows, int64_t columns, int bits, const uint8_t *codes)
{
    const int64_t bytes = (columns * bits + 7) / 8;
    memset(to, 0, (size_t)(rows * bytes));
    for (int64_t i = 0; i < rows * columns; i++)
        for (int bit = 0; bit < bits; bit++) {
            int64_t at = i / columns * bytes * 8 + i % columns * bits + bit;
            to[at / 8] = (uint8_t)(to[at / 8] | (codes[i] >> bit & 1) << at % 8);
        }
}

static void fill(problem *p)
{
    for (int i = 0; i < N * BLOCKS * BLOCK; i++)
        p->codes[i] = (uint8_t)(draw() % (1u << p->bits));
    for (int i = 0; i < N * BLOCKS; i++) {
        p->zero[i] = (uint8_t)(p->zeros ? draw() % (1u << p->bits) : 1u << (p->bits - 1));
        p->scale[i] = (float)(draw() % 100 + 1) * (i % 2 ? 0.01f : 0.0625f);
    }
    for (int i = 0; i < ROWS_MAX * K; i++)
        p->x[i] = (float)((int)(draw() % 2001) - 1000) * 1e-3f;
    put(p->q, N * BLOCKS, BLOCK, p->bits, p->codes);
    put(p->z, N, BLOCKS, p->bits, p->zero);
}

static void build(net *n, const problem *p)
{
    const int64_t blob = BLOCK * p->bits / 8, x[2] = {p->rows, K}, q[3] = {N, BLOCKS, blob};
    const int64_t scale[2] = {N, BLOCKS}, zero[2] = {N, (BLOCKS * p->bits + 7) / 8};
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, x);
    net_constant(n, "q", ORT_DTYPE_UINT8, 3, q, p->q);
    net_constant(n, "s", ORT_DTYPE_FLOAT, 2, scale, p->scale);
    if (p->zeros)
        net_constant(n, "z", ORT_DTYPE_UINT8, 2, zero, p->z);
    ort_node *node = net_node_of(n, "com.microsoft", "MatMulNBits", p->zeros ? "x q s z" : "x q s",
                                 "y");
    net_int(n, node, "K", K);
    net_int(n, node, "N", N);
    net_int(n, node, "bits", p->bits);
    net_int(n, node, "block_size", BLOCK);
    net_int(n, node, "accuracy_level", p->level);
    net_output(n, "y");
}

/* The largest error as a part of its bound; infinite where nothing came out. */
static double worst_of(const problem *p, const ort_value *y)
{
    double worst = y ? 0 : INFINITY;
    const bool byte = p->level == 4 || p->fast;
    for (int64_t i = 0; y && i < p->rows * N; i++) {
        const float *x = p->x + i / N * K;
        double exact = 0, bound = 0;
        for (int64_t k = 0; k < K; k++) {
            const int64_t b = i % N * BLOCKS + k / BLOCK, first = k / BLOCK * BLOCK;
            const double q = p->codes[i % N * BLOCKS * BLOCK + k], s = (double)p->scale[b];
            double most = 0;
            for (int64_t j = first; byte && j < first + BLOCK && j < K; j++)
                most = fmax(most, fabs((double)x[j]));
            exact += (q - p->zero[b]) * s * (double)x[k];
            bound += fabs((q - p->zero[b]) * s) * most * 0.5 / 127 +
                     (K + 8) * ldexp(1, -24) * (q + p->zero[b]) * s * fabs((double)x[k]);
        }
        worst = fmax(worst, fabs(ort_value_get_double(y, i) - exact) / bound);
    }
    return worst;
}

static double run(problem *p)
{
    net n;
    ort_env_options options;
    const int64_t dims[2] = {p->rows, K};
    ort_value *x = NULL, *y = NULL;
    double worst = INFINITY;
    ort_env_options_init(&options);
    options.math_fast = p->fast;
    fill(p);
    if (!net_init(&n, &options))
        return worst;
    (void)!ort_vec_push(&n.model->opsets, ((ort_opset){.domain = "com.microsoft", .version = 1}));
    build(&n, p);
    ort_session *session = net_session(&n, NULL, NULL);
    if (session && !ort_value_new_tensor(ORT_DTYPE_FLOAT, 2, dims, &x, NULL)) {
        for (int64_t i = 0; i < p->rows * K; i++)
            ort_value_set_double(x, i, (double)p->x[i]);
        if (!run_whole(session, &x, &y, NULL, NULL))
            worst = worst_of(p, y);
    }
    ort_value_free(x);
    ort_value_free(y);
    ort_session_free(session);
    net_free(&n);
    return worst;
}

static problem p;

static void bits(test_state *test)
{
    static const int64_t rows[] = {1, 5, 20, ROWS_MAX};
    for (int bits = 2; bits <= 8; bits++)
        for (int i = 0; i < 16; i++) {
            p = (problem){.bits = bits, .rows = rows[i % 4], .zeros = i / 4 % 2,
                          .level = i < 8 ? 0 : 4};
            CHECK(run(&p) <= 1);
        }
}

static void fast(test_state *test)
{
    double worst = 0;
    for (int i = 0; i < 4; i++) {
        p = (problem){.bits = 4, .rows = 1 + 6 * i, .fast = true, .zeros = i % 2};
        worst = fmax(worst, run(&p));
    }
    printf("# math fast: %.3f of its bound\n", worst);
    CHECK(worst <= 1 && worst > 0.01); /* it does round */
}

int main(void)
{
    test_state test = {0};
    RUN(&test, bits);
    RUN(&test, fast);
    return test.failures != 0;
}
