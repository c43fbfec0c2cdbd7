/* test_code_attention.c - attention between codes (op/quant/code_attention.c) gives the codes of
 * the operators that it stands for where masks or operands hold what no attention should: NaN,
 * infinity, rows of which nothing is left, numbers beside which all others vanish; and no rows,
 * keys or batch at all. */
#include <float.h>
#include <math.h>

#include "rewrite.h"
#include "test.h"

#define P(name, scale, zero) "#s" name "=" scale "; #z" name ".u8=" zero "; "
#define CODED(x, p)                                                                                \
    x "q = (QuantizeLinear " x " s" p " z" p "); "                                                 \
    x "d = (DequantizeLinear " x "q s" p " z" p "); "
#define NET(batch, rows, keys)                                                                     \
    "x:" batch ",3," rows ",16; w:" batch ",3,16," keys "; v:" batch ",3," keys ",20; "            \
    "m:" batch ",1," rows "," keys "; "                                                            \
    P("x", "0.02", "120") P("p", "0.0039", "0") P("z", "0.03", "100")                              \
    CODED("x", "x") CODED("w", "x") CODED("v", "x")                                                \
    "a = (MatMul xd wd); s = (Mul a 0.25); t = (Add s m); p = (Softmax t); " CODED("p", "p")
#define CODES "r = (MatMul pd vd); " CODED("r", "z") "rd"
#define FLOATS "y = (MatMul pd vd); y"

typedef struct odd {
    const char *what, *text;
    int input;           /* of x, w, v and m */
    float value;
    int64_t from, count; /* elements that have it */
} odd;

static int count_in(const ort_session *s)
{
    const net run = {.model = s->model};
    return count_ops(&run, "CodeAttention");
}

static ort_session *with(net *n, bool blocks)
{
    static const char *const none[] = {"coded_attention", NULL};
    ort_session_options options;
    ort_session_options_init(&options);
    options.disable = blocks ? NULL : none;
    return net_session(n, &options, NULL);
}

/* NULL, or what is wrong. */
static const char *check_on(const odd *row, const char *isa, int threads)
{
    const ort_compare_options same = {sizeof same, 0, 0};
    ort_difference difference = ORT_DIFFERENCE_INIT;
    ort_value *x[4] = {NULL}, *y[1] = {NULL}, *z[1] = {NULL};
    const char *why = NULL;
    net n;
    if (!net_on(&n, isa, threads))
        return "memory";
    net_text(&n, row->text);
    ort_session *blocks = with(&n, true), *plain = with(&n, false);
    if (!blocks || !plain || ort_session_random_inputs(blocks, 7, x, 4, NULL))
        why = "no session";
    else if (count_in(blocks) != 1 || count_in(plain) != 0)
        why = "other operators";
    for (int64_t i = 0; !why && i < row->count; i++)
        ort_value_set_double(x[row->input], row->from + i, (double)row->value);
    if (!why && (run_whole(plain, x, y, NULL, NULL) || run_whole(blocks, x, z, NULL, NULL)))
        why = "no result";
    else if (!why && (ort_value_compare(z[0], y[0], &same, &difference, NULL) || !difference.equal))
        why = "another result";
    net_free_values(x, 4);
    net_free_values(y, 1);
    net_free_values(z, 1);
    ort_session_free(blocks);
    ort_session_free(plain);
    net_free(&n);
    return why;
}

enum { KEYS = 72, ROWS = 70 };
static const odd rows[] = {
    {"nothing odd", NET("2", "70", "72") CODES, 3, 0, 0, 0},
    {"NaN in a row of the mask", NET("2", "70", "72") CODES, 3, NAN, 3 * KEYS + 5, 1},
    {"a row of NaN", NET("2", "70", "72") FLOATS, 3, NAN, 40 * KEYS, KEYS},
    {"NaN in queries", NET("2", "70", "72") CODES, 0, NAN, 35, 1},
    {"infinity in keys", NET("2", "70", "72") FLOATS, 1, INFINITY, 100, 2},
    {"NaN in values", NET("2", "70", "72") CODES, 2, NAN, 65, 1},
    {"a row of which nothing is left", NET("2", "70", "72") CODES, 3, -INFINITY, 3 * KEYS, KEYS},
    {"the last of a block", NET("2", "70", "72") FLOATS, 3, -INFINITY, 69 * KEYS, KEYS},
    {"no row of which anything is left", NET("2", "70", "72") CODES, 3, -INFINITY, 0,
     2 * ROWS * KEYS},
    {"the same in floats", NET("2", "70", "72") FLOATS, 3, -INFINITY, 0, 2 * ROWS * KEYS},
    {"rows of the least number", NET("2", "70", "72") CODES, 3, -FLT_MAX, 7 * KEYS, 2 * KEYS},
    {"one key beyond all", NET("2", "70", "72") CODES, 3, INFINITY, 7 * KEYS + 5, 1},
    {"a row beyond all", NET("2", "70", "72") FLOATS, 3, INFINITY, 9 * KEYS, KEYS},
    {"no rows", NET("2", "0", "72") CODES, 3, 0, 0, 0},
    {"no keys", NET("2", "70", "0") CODES, 3, 0, 0, 0},
    {"no batch", NET("0", "70", "72") FLOATS, 3, 0, 0, 0},
};

static void odd_numbers(test_state *test)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !test->failed; i++)
        for (int t = 0; ort_kernel_tier_at(t) && !test->failed; t++) {
            const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(t)->name);
            for (int threads = 1; k && threads < 3 && !test->failed; threads++) {
                const char *why = check_on(&rows[i], k->isa, threads);
                test->failed = why != NULL;
                if (why)
                    snprintf(test->why, sizeof test->why, "%s on %s, %d threads: %s",
                             rows[i].what, k->isa, threads, why);
            }
        }
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, odd_numbers);
    return test->failures != 0;
}
