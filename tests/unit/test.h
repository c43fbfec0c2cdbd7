/* test.h - what unit test programs share: one line per case, "ok NAME" or "not ok NAME: why", and
 * an exit status. A case is a function that leaves at its first failed CHECK. */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct test_state {
    char why[512];
    bool failed;
    int failures;
} test_state;

typedef void test_fn(test_state *test);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            snprintf(test->why, sizeof test->why, "%s:%d: %s", __FILE__, __LINE__, #condition);    \
            test->failed = true;                                                                   \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/* The same for strings, showing both. */
#define CHECK_TEXT(actual, expected)                                                               \
    do {                                                                                           \
        const char *test_a_ = (actual), *test_b_ = (expected);                                     \
        if (strcmp(test_a_, test_b_)) {                                                            \
            snprintf(test->why, sizeof test->why, "%s:%d: is '%.180s', expected '%.180s'",         \
                     __FILE__, __LINE__, test_a_, test_b_);                                        \
            test->failed = true;                                                                   \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#define RUN(test, name)                                                                            \
    do {                                                                                           \
        (test)->failed = false;                                                                    \
        name(test);                                                                                \
        if ((test)->failed) {                                                                      \
            printf("not ok %s: %s\n", #name, (test)->why);                                         \
            (test)->failures++;                                                                    \
        } else {                                                                                   \
            printf("ok %s\n", #name);                                                              \
        }                                                                                          \
        fflush(stdout);                                                                            \
    } while (0)

/* The larger of two errors, of which NaN is the largest: fmax would pass it over. */
static inline __attribute__((unused)) double test_worse(double worst, double error)
{
    return error <= worst ? worst : error == error ? error : __builtin_inf();
}

#endif
