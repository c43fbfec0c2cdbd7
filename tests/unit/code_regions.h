/* code_regions.h - nets as text whose middle is codes, and what a session makes of them: rows tell
 * the operators that it runs in the end. Results lie within a code of what the same model gives
 * without any rewriting, and are the same bits on every tier and number of threads. */
#ifndef ORT_TEST_CODE_REGIONS_H
#define ORT_TEST_CODE_REGIONS_H

#include "rewrite.h"
#include "test.h"

#define P(name, scale, type, zero) "#s" name "=" scale "; #z" name "." type "=" zero "; "
#define Q(y, x, p) y " = (QuantizeLinear " x " s" p " z" p "); "
#define DQ(y, x, p) y " = (DequantizeLinear " x " s" p " z" p "); "
#define CODED(x, p) Q(x "q", x, p) DQ(x "d", x "q", p)
#define RESULT(r, p) Q("rq", r, p) DQ("y", "rq", p) "y"
#define U8 P("x", "0.02", "u8", "120") P("y", "0.015", "u8", "60") P("z", "0.03", "u8", "100")
#define S8 P("x", "0.02", "i8", "-8") P("y", "0.015", "i8", "-68") P("z", "0.03", "i8", "-28")
#define ENDS(ops) "QuantizeLinear " ops " DequantizeLinear"

typedef struct spelling {
    const char *what, *text, *ops;
    double step; /* of the result */
} spelling;

static const char *session_ops(const ort_session *s)
{
    const net run = {.model = s->model};
    return net_ops(&run);
}

static bool same_bits(ort_value *const *a, ort_value *const *b, size_t count)
{
    ort_compare_options options = {sizeof options, 0, 0};
    for (size_t i = 0; i < count; i++) {
        ort_difference difference = ORT_DIFFERENCE_INIT;
        if (ort_value_compare(a[i], b[i], &options, &difference, NULL) || !difference.equal)
            return false;
    }
    return true;
}

/* NULL, or what is wrong. */
static const char *check_on(const spelling *row, const char *isa, int threads, ort_value **first)
{
    ort_value *x[8] = {NULL}, *y[1] = {NULL}, *z[1] = {NULL};
    ort_compare_options near = {sizeof near, 0, 1.01 * row->step};
    ort_difference difference = ORT_DIFFERENCE_INIT;
    const char *why = NULL;
    net n;
    if (!net_on(&n, isa, threads))
        return "memory";
    net_text(&n, row->text);
    ort_session *before = plain(&n), *after = net_session(&n, NULL, NULL);
    size_t inputs = before ? ort_session_input_count(before) : 0;
    if (!before || !after || ort_session_random_inputs(before, 7, x, inputs, NULL))
        why = "no session";
    else if (strcmp(session_ops(after), row->ops))
        why = session_ops(after);
    else if (run_whole(before, x, y, NULL, NULL) || run_whole(after, x, z, NULL, NULL))
        why = "no result";
    else if (ort_value_compare(z[0], y[0], &near, &difference, NULL) || !difference.equal)
        why = "another result";
    else if (*first && !same_bits(first, z, 1))
        why = "other bits than the first tier's";
    net_free_values(x, 8);
    net_free_values(y, 1);
    if (!*first)
        *first = z[0];
    else
        net_free_values(z, 1);
    ort_session_free(before);
    ort_session_free(after);
    net_free(&n);
    return why;
}

static void check_spelling(test_state *test, const spelling *row)
{
    ort_value *first = NULL;
    for (int i = 0; ort_kernel_tier_at(i) && !test->failed; i++) {
        const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(i)->name);
        for (int threads = 1; k && threads < 4 && !test->failed; threads += 2) {
            const char *why = check_on(row, k->isa, threads, &first);
            if (why) {
                snprintf(test->why, sizeof test->why, "%s on %s, %d threads: %s", row->what, k->isa,
                         threads, why);
                test->failed = true;
            }
        }
    }
    ort_value_free(first);
}

#define CHECK_SPELLINGS(rows)                                                                      \
    for (size_t i = 0; i < sizeof(rows) / sizeof *(rows) && !test->failed; i++)                    \
    check_spelling(test, &(rows)[i])

#endif
