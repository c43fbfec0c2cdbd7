/* test_spell.c - which way runs go, by times that the tests make up. */
#include "base/spell.h"
#include "test.h"

/* Runs that take so long with all threads, and alone; how many of them went alone. */
static int run_all(ort_spell *s, int runs, uint64_t all, uint64_t alone)
{
    int count = 0;
    for (int i = 0; i < runs; i++) {
        count += s->alone;
        ort_spell_note(s, s->alone ? alone : all);
    }
    return count;
}

static void begins_with_all_threads(test_state *test)
{
    ort_spell s = {0};
    CHECK(run_all(&s, 16, 30000, 50000) == 0);
    CHECK(run_all(&s, 8, 30000, 50000) == 8 && !s.alone);
}

static void keeps_what_is_faster(test_state *test)
{
    ort_spell s = {0};
    int alone = run_all(&s, 10000, 30000, 50000);
    CHECK(alone > 80 && alone < 200); /* trials get rare, and never end */
    s = (ort_spell){0};
    alone = run_all(&s, 10000, 75000, 50000);
    CHECK(alone > 9800 && alone < 9920);
}

static void goes_alone_for_little_gain(test_state *test)
{
    ort_spell s = {0};
    CHECK(run_all(&s, 10000, 49000, 50000) > 9800);
    s = (ort_spell){0};
    CHECK(run_all(&s, 10000, 46000, 50000) < 200);
}

static void follows_a_change(test_state *test)
{
    ort_spell s = {0};
    run_all(&s, 10000, 30000, 50000);
    run_all(&s, 1100, 75000, 50000);
    CHECK(run_all(&s, 500, 75000, 50000) > 400); /* trials are frequent again */
    run_all(&s, 1100, 30000, 50000);
    CHECK(run_all(&s, 500, 30000, 50000) < 100);
}

/* Long runs lose more by a trial, so it is short, and a spell of many would outlast the state of a
 * machine. */
static void long_runs_are_tried_shortly(test_state *test)
{
    ort_spell s = {0};
    CHECK(run_all(&s, 16, 4000000, 6000000) == 0);
    CHECK(run_all(&s, 4, 4000000, 6000000) == 4 && !s.alone);
    int alone = run_all(&s, 10000, 4000000, 6000000);
    CHECK(alone > 4 * 10000 / 254 - 8 && alone < 4 * 10000 / 200);
    run_all(&s, 300, 6000000, 4000000);
    CHECK(run_all(&s, 40, 6000000, 4000000) >= 36);
}

/* Single runs take longer by accident; the first of a trial find their values elsewhere. */
static void is_not_misled_by_single_runs(test_state *test)
{
    ort_spell s = {0};
    int alone = 0, since = 0;
    bool before = false;
    for (int i = 0; i < 10000; i++) {
        since = s.alone == before ? since + 1 : 0;
        before = s.alone;
        alone += s.alone;
        uint64_t took = s.alone ? 50000 : 30000;
        ort_spell_note(&s, since < 2 || i % 3 == 0 ? 10 * took : took);
    }
    CHECK(alone < 200);
}

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, begins_with_all_threads);
    RUN(&test, keeps_what_is_faster);
    RUN(&test, goes_alone_for_little_gain);
    RUN(&test, follows_a_change);
    RUN(&test, long_runs_are_tried_shortly);
    RUN(&test, is_not_misled_by_single_runs);
    return test.failures != 0;
}
