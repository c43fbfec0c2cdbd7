/* test_attention.c - attention over long rows of scores, which it never has whole, gives what it
 * gives when the scores are an output, which takes them whole.
 */
#include <math.h>

#include "net.h"
#include "test.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
enum { HEADS = 2, SIZE = 24, MOST_KEYS = 2300 };

typedef struct form {
    int64_t queries, keys, q_heads;
    bool causal, spread; /* spread: scores of very different size */
    double softcap;
    int64_t left;        /* window; -1: none */
    char mask;           /* 'f' numbers, 'b' bits, 0 none */
} form;

static void set_float(net *n, ort_node *node, const char *name, double number)
{
    ort_attr attr = {.name = name, .type = ORT_ATTR_FLOAT, .f = (float)number};
    (void)!ort_node_set_attr(n->graph, node, &attr, NULL);
}

static void build(net *n, const form *f, bool whole)
{
    n->model->opsets.data[0].version = 25;
    net_input(n, "q", ORT_DTYPE_FLOAT, 4, DIMS(1, f->q_heads, f->queries, SIZE));
    net_input(n, "k", ORT_DTYPE_FLOAT, 4, DIMS(1, HEADS, f->keys, SIZE));
    net_input(n, "v", ORT_DTYPE_FLOAT, 4, DIMS(1, HEADS, f->keys, SIZE));
    if (f->mask)
        net_input(n, "mask", f->mask == 'b' ? ORT_DTYPE_BOOL : ORT_DTYPE_FLOAT, 2,
                  DIMS(f->queries, f->keys));
    ort_node *node = net_node(n, "Attention", f->mask ? "q k v mask" : "q k v",
                              whole ? "y - - scores" : "y");
    net_int(n, node, "is_causal", f->causal);
    net_int(n, node, "left_window_size", f->left);
    if (f->softcap > 0)
        set_float(n, node, "softcap", f->softcap);
    net_output(n, "y");
    if (whole)
        net_output(n, "scores");
}

static ort_value *numbers(int64_t heads, int64_t rows, int seed, double scale, bool spread)
{
    ort_value *value = NULL;
    if (ort_value_new_tensor(ORT_DTYPE_FLOAT, 4, DIMS(1, heads, rows, SIZE), &value, NULL))
        return NULL;
    for (int64_t i = 0; i < ort_value_count(value); i++) {
        double row = spread ? (double)(i / SIZE % rows) / (double)rows * 6 : 1;
        ort_value_set_double(value, i, sin((double)(i + 1) * (0.37 + seed)) * scale * row);
    }
    return value;
}

/* Every third key is hidden, and all keys from the fifth query. */
static ort_value *make_mask(const form *f)
{
    ort_value *value = NULL;
    if (!f->mask || ort_value_new_tensor(f->mask == 'b' ? ORT_DTYPE_BOOL : ORT_DTYPE_FLOAT, 2,
                                         DIMS(f->queries, f->keys), &value, NULL))
        return NULL;
    for (int64_t i = 0; i < f->queries; i++)
        for (int64_t j = 0; j < f->keys; j++) {
            bool seen = i != 4 && j % 3 != 0;
            double added = seen ? (double)(j % 7) / 8 : -INFINITY;
            ort_value_set_double(value, i * f->keys + j, f->mask == 'b' ? seen : added);
        }
    return value;
}

static double worst_difference(const form *f)
{
    double worst = 0;
    ort_value *in[4] = {numbers(f->q_heads, f->queries, 1, 1, false),
                        numbers(HEADS, f->keys, 2, 1, f->spread),
                        numbers(HEADS, f->keys, 3, 1, false), make_mask(f)};
    ort_value *out[2][2] = {{0}};
    for (int whole = 0; whole < 2; whole++) {
        net n;
        ort_error err = {0};
        if (!net_init(&n, NULL))
            return INFINITY;
        build(&n, f, whole);
        ort_session *session = net_session(&n, NULL, &err);
        if (!session || run_whole(session, in, out[whole], NULL, &err)) {
            printf("# %s\n", err.message);
            worst = INFINITY;
        }
        ort_session_free(session);
        net_free(&n);
    }
    for (int64_t i = 0; worst == 0 && i < ort_value_count(out[0][0]); i++) {
        double a = ort_value_get_double(out[0][0], i), b = ort_value_get_double(out[1][0], i);
        worst = fmax(worst, isnan(a) || isnan(b) ? INFINITY : fabs(a - b));
    }
    for (int i = 0; i < 4; i++) {
        ort_value_free(in[i]);
        ort_value_free(out[i / 2][i % 2]);
    }
    return worst;
}

static void long_rows(test_state *test)
{
    static const form forms[] = {
        {.queries = 20, .keys = 1025, .q_heads = 2, .left = -1},
        {.queries = 70, .keys = MOST_KEYS, .q_heads = 4, .left = -1},
        {.queries = 20, .keys = MOST_KEYS, .q_heads = 2, .left = -1, .spread = true},
        {.queries = 1500, .keys = 1500, .q_heads = 2, .left = -1, .causal = true},
        {.queries = 1300, .keys = 1300, .q_heads = 2, .left = 40, .causal = true},
        {.queries = 20, .keys = 1100, .q_heads = 2, .left = -1, .softcap = 2},
        {.queries = 20, .keys = 1600, .q_heads = 2, .left = -1, .mask = 'f'},
        {.queries = 20, .keys = 1600, .q_heads = 2, .left = -1, .mask = 'b', .spread = true},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        double worst = worst_difference(&forms[i]);
        if (!(worst < 1e-7))
            printf("# form %zu: %g\n", i, worst);
        CHECK(worst < 1e-7);
    }
}

static ort_value *eighths(ort_dtype dtype, int step)
{
    ort_value *value = NULL;
    ort_error err = {0};
    if (ort_value_new_tensor(dtype, 4, (const int64_t[]){1, 2, 3, 4}, &value, &err))
        return NULL;
    for (int64_t i = 0; i < 24; i++) /* multiples of 1/8: exact in each of the types */
        ort_tensor_set_f64(&value->tensor, i, (double)(i * step % 17 - 8) / 8);
    return value;
}

/* ONNX allows V a type of its own (T2): Y is what V in the wider type gives, in Q's type. */
static void values_of_another_type(test_state *test)
{
    static const ort_dtype types[] = {ORT_DTYPE_FLOAT16, ORT_DTYPE_BFLOAT16, ORT_DTYPE_FLOAT,
                                      ORT_DTYPE_DOUBLE};
    ort_env *env = NULL;
    ort_error err = {0};
    CHECK(!ort_env_new(NULL, &env, &err));
    for (int pair = 0; pair < 16; pair++) {
        ort_dtype q = types[pair / 4], v = types[pair % 4];
        ort_value *mixed[3] = {eighths(q, 3), eighths(q, 5), eighths(v, 7)}, *y = NULL;
        ort_value *wide[3] = {eighths(ORT_DTYPE_DOUBLE, 3), eighths(ORT_DTYPE_DOUBLE, 5),
                              eighths(ORT_DTYPE_DOUBLE, 7)}, *want = NULL;
        CHECK(!ort_op_run(env, "", "Attention", 23, NULL, 0, mixed, 3, &y, 1, &err));
        CHECK(!ort_op_run(env, "", "Attention", 23, NULL, 0, wide, 3, &want, 1, &err));
        CHECK(y && ort_value_dtype(y) == q);
        double step = q == ORT_DTYPE_BFLOAT16 ? 0x1p-8 : q == ORT_DTYPE_FLOAT16 ? 0x1p-11 : 1e-6;
        for (int64_t i = 0; y && want && i < 24; i++)
            CHECK(fabs(ort_value_get_double(y, i) - ort_value_get_double(want, i)) <= step);
        for (int i = 0; i < 3; i++) {
            ort_value_free(mixed[i]);
            ort_value_free(wide[i]);
        }
        ort_value_free(y);
        ort_value_free(want);
    }
    ort_env_free(env);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, long_rows);
    RUN(&test, values_of_another_type);
    return test.failures != 0;
}
