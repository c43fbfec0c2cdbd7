/* test_contention.c - how the width of a pool follows what its threads lose, over time that the
 * tests make up. */
#include "base/contention.h"
#include "test.h"

enum { MS = 1000000, SECOND = 1000 * MS };

/* A machine on which loops run without a pause. */
typedef struct machine {
    ort_contention c;
    uint64_t now;
    int processors, others; /* others: threads that never sleep, each with a share like ours */
    bool tells;             /* how many processors are idle */
    uint64_t wide_ns;       /* time in which there were more threads than processors */
    int looks;
} machine;

/* Where there are more threads than processors, all wait their part of the time. */
static void advance(machine *m, uint64_t ns)
{
    for (uint64_t end = m->now + ns; m->now < end; m->now += MS) {
        int width = m->c.width, all = width + m->others;
        uint64_t lost = 0;
        if (all > m->processors && width > 1) {
            lost = (uint64_t)MS * (uint64_t)(all - m->processors) / (uint64_t)all * (uint64_t)width;
            m->wide_ns += MS;
        }
        ort_contention_note(&m->c, m->now, lost);
        if (!ort_contention_due(&m->c, m->now))
            continue;
        int idle = m->processors > all ? m->processors - all : 0;
        ort_contention_look(&m->c, m->now, m->tells ? idle : -1);
        m->looks++;
    }
}

static machine machine_of(int threads, int processors, int others)
{
    machine m = {.processors = processors, .others = others, .now = 5 * (uint64_t)SECOND};
    ort_contention_init(&m.c, threads);
    ort_contention_note(&m.c, m.now, 0);
    return m;
}

static void stays_wide_where_little_is_lost(test_state *test)
{
    machine m = machine_of(2, 2, 0);
    CHECK(m.c.width == 2);
    advance(&m, 10 * (uint64_t)SECOND);
    CHECK(m.c.width == 2 && m.looks == 0);
    /* A millisecond in each 20 goes to the system. */
    for (int i = 0; i < 500; i++) {
        m.now += 20 * MS;
        ort_contention_note(&m.c, m.now, MS);
        CHECK(m.c.width == 2);
    }
    /* One that comes late once. */
    advance(&m, 100 * MS);
    ort_contention_note(&m.c, m.now, 3 * MS / 2);
    CHECK(m.c.width == 2);
}

static void narrows_when_processors_are_shared(test_state *test)
{
    machine m = machine_of(2, 2, 2);
    advance(&m, 8 * MS);
    CHECK(m.c.width == 1);
    /* A slice of the scheduler lost at once is enough. */
    m = machine_of(2, 2, 0);
    ort_contention_note(&m.c, m.now += MS, 3 * MS);
    CHECK(m.c.width == 1);
    advance(&m, 7 * MS);
    CHECK(m.c.width == 1 && m.looks == 0);
    advance(&m, 3 * MS);
    CHECK(m.c.width == 2 && m.looks == 1);
}

static void attempts_become_rare(test_state *test)
{
    machine m = machine_of(2, 2, 2);
    advance(&m, 2 * (uint64_t)SECOND);
    m.wide_ns = 0;
    m.looks = 0;
    advance(&m, 20 * (uint64_t)SECOND);
    CHECK(m.wide_ns < 20 * (uint64_t)SECOND / 100);
    CHECK(m.looks <= 1300);
    /* The others end. */
    m.others = 0;
    advance(&m, 1100 * MS);
    CHECK(m.c.width == 2);
    advance(&m, 300 * MS);
    CHECK(m.c.width == 2 && !m.c.trial);
    /* A later clash is paid for as a first one. */
    m.others = 2;
    advance(&m, 8 * MS);
    CHECK(m.c.width == 1 && m.c.until <= m.now + 8 * MS);
}

static void waits_for_idle_processors(test_state *test)
{
    machine m = machine_of(2, 2, 1);
    m.tells = true;
    advance(&m, 100 * MS);
    CHECK(m.c.width == 1);
    m.wide_ns = 0;
    advance(&m, 10 * (uint64_t)SECOND);
    CHECK(m.wide_ns < SECOND / 10 && m.looks < 700);
    m.others = 0;
    advance(&m, 20 * MS);
    CHECK(m.c.width == 2);
}

/* The others are many and have no weight. */
static void tries_where_none_is_idle(test_state *test)
{
    machine m = machine_of(2, 2, 0);
    ort_contention_note(&m.c, m.now, 10 * MS);
    CHECK(m.c.width == 1);
    for (int i = 0; i < 150; i++, m.now += MS) {
        ort_contention_note(&m.c, m.now, 0);
        if (ort_contention_due(&m.c, m.now))
            ort_contention_look(&m.c, m.now, 0);
    }
    CHECK(m.c.width == 2);
}

static void keeps_the_threads_that_fit(test_state *test)
{
    machine m = machine_of(64, 64, 8);
    m.tells = true;
    advance(&m, 2 * (uint64_t)SECOND);
    CHECK(m.c.width > 48 && m.c.width <= 56);
    m.others = 63;
    advance(&m, 2 * (uint64_t)SECOND);
    CHECK(m.c.width <= 8);
    m.others = 0;
    advance(&m, 2 * (uint64_t)SECOND);
    CHECK(m.c.width == 64);
    m.tells = false; /* nobody says how many are idle: found by attempts */
    m.others = 4;
    advance(&m, 5 * (uint64_t)SECOND);
    CHECK(m.c.width >= 16 && m.c.width <= 62);
    m.others = 0;
    advance(&m, 2 * (uint64_t)SECOND);
    CHECK(m.c.width == 64);
}

static void one_thread_stays_one(test_state *test)
{
    machine m = machine_of(1, 2, 5);
    advance(&m, SECOND);
    ort_contention_note(&m.c, m.now, SECOND);
    CHECK(m.c.width == 1 && m.looks == 0);
}

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, stays_wide_where_little_is_lost);
    RUN(&test, narrows_when_processors_are_shared);
    RUN(&test, attempts_become_rare);
    RUN(&test, waits_for_idle_processors);
    RUN(&test, tries_where_none_is_idle);
    RUN(&test, keeps_the_threads_that_fit);
    RUN(&test, one_thread_stays_one);
    return test.failures != 0;
}
