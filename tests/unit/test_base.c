/* test_base.c - the base room: errors, arena, strings, hash map, JSON, pool, number conversions. */
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/apart.h"
#include "base/arena.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/findings.h"
#include "base/hashmap.h"
#include "base/huge.h"
#include "base/json.h"
#include "base/log.h"
#include "base/num.h"
#include "base/pool.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "base/watch.h"
#include "test.h"
#include "workers.h"

static void error_messages(test_state *test)
{
    ort_error err = {0};
    CHECK(ort_error_set(&err, ORT_ERROR_DATA, "rank %d", 3) == ORT_ERROR_DATA);
    CHECK(ort_error_wrap(&err, ORT_ERROR_RUN, "node '%s'", "a") == ORT_ERROR_DATA);
    CHECK_TEXT(err.message, "node 'a': rank 3");
    CHECK(err.status == ORT_ERROR_DATA && err.count == 1);
    CHECK(ort_error_set(NULL, ORT_ERROR_RUN, "x") == ORT_ERROR_RUN);
    CHECK(ort_status_exit(ORT_ERROR_MODEL) == 3 && ort_status_exit(ORT_ERROR_IO) == 5);
    char text[ORT_ERROR_TEXT + 500];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ort_error_set(&err, ORT_ERROR_RUN, "%s", text);
    ort_error_wrap(&err, ORT_ERROR_RUN, "%s", text);
    CHECK(strlen(err.message) == ORT_ERROR_TEXT - 1);
}

/* Blocks of many megabytes: every byte is the caller's, and what is small comes from them too. */
static void arena_huge_pages(test_state *test)
{
    enum { COUNT = 24, BYTES = 3 << 20 };
    ort_arena arena = {.huge_pages = true};
    unsigned char *p[COUNT];
    for (int i = 0; i < COUNT; i++) {
        p[i] = ort_arena_alloc_aligned(&arena, BYTES, 64, 0);
        CHECK(p[i] && (uintptr_t)p[i] % 64 == 0);
        if (p[i]) /* pages that are touched later aren't in use yet */
            memset(p[i], i + 1, BYTES);
        unsigned char *small = ort_arena_alloc(&arena, 40);
        CHECK(small && small[39] == 0);
    }
    for (int i = 0; i < COUNT; i++) {
        int same = 0;
        for (int k = 0; p[i] && k < BYTES; k++)
            same += p[i][k] == i + 1;
        CHECK(same == BYTES);
    }
    p[0] = ort_arena_alloc_aligned(&arena, 100 << 20, 64, 0);
    CHECK(p[0] != NULL);
    if (p[0])
        p[0][(100 << 20) - 1] = 1;
    CHECK(ort_arena_alloc(&arena, SIZE_MAX - 8) == NULL);
    ort_arena_release(&arena);
}

/* Pages that are left to the caller: all are his, and what the arena hands out next isn't. */
static void arena_untouched(test_state *test)
{
    enum { COUNT = 6, BYTES = 700 << 10 };
    ort_arena arena = {.huge_pages = true}, plain = {0};
    unsigned char *p[COUNT];
    bool touch, any = false;
    for (int i = 0; i < COUNT; i++) {
        p[i] = ort_arena_alloc_untouched(&arena, BYTES, 64, &touch);
        any |= touch;
        CHECK(p[i] && (uintptr_t)p[i] % 64 == 0);
        if (p[i] && touch)
            ort_pages_touch(p[i], BYTES);
        if (p[i])
            memset(p[i], i + 1, BYTES);
        unsigned char *small = ort_arena_alloc(&arena, 3000);
        CHECK(small && small[0] == 0 && small[2999] == 0);
    }
    CHECK(any);
    for (int i = 0; i < COUNT; i++)
        CHECK(p[i] && p[i][0] == i + 1 && p[i][BYTES - 1] == i + 1);
    CHECK(ort_arena_alloc_untouched(&arena, SIZE_MAX - 8, 64, &touch) == NULL);
    CHECK(ort_arena_alloc_untouched(&plain, BYTES, 64, &touch) && !touch);
    ort_arena_release(&arena);
    ort_arena_release(&plain);
}

/* What is there stays, also at the ends, where pages are others' too. */
static void touched_pages(test_state *test)
{
    enum { BYTES = 9 << 20 };
    unsigned char *p = aligned_alloc(4096, BYTES);
    CHECK(p != NULL);
    if (!p)
        return;
    p[0] = 7, p[4096] = 8, p[BYTES - 1] = 9;
    ort_pages_touch(p, BYTES);
    ort_pages_touch(p + 1, 100);
    ort_pages_touch(p, 0);
    CHECK(p[0] == 7 && p[BYTES - 1] == 9 && p[4096] == 8);
    free(p);
}

/* Small things come from the first block, too; an arena that has begun goes on as it did. */
static void arena_begun_huge(test_state *test)
{
    ort_arena arena = {.huge_pages = true}, small = {0};
    ort_huge_begin(&arena);
    const char *first = ort_arena_strdup(&arena, "first");
    CHECK(arena.head && (uintptr_t)arena.head % ORT_HUGE_PAGE == 0);
    CHECK(first > (char *)arena.head && first < (char *)arena.head + ORT_HUGE_PAGE);
    ort_huge_begin(&arena);
    const char *second = ort_arena_strdup(&arena, "second");
    CHECK(second == first + sizeof "first");
    unsigned char *large = ort_arena_alloc_aligned(&arena, 3 << 20, 64, 0);
    CHECK(large != NULL);
    if (large)
        large[0] = large[(3 << 20) - 1] = 1;
    CHECK_TEXT(first, "first");
    ort_arena_release(&arena);
    ort_huge_begin(&small); /* its owner wants none */
    CHECK(!small.head);
}

/* Beside each other in long runs, zeroed, and kept whole by what the arena hands out between. */
static void arena_slab(test_state *test)
{
    enum { COUNT = 3000, BYTES = 40 };
    ort_arena arena = {0};
    ort_slab slab = {0};
    unsigned char *p[COUNT];
    int beside = 0;
    for (int i = 0; i < COUNT; i++) {
        p[i] = ort_slab_alloc(&arena, &slab, BYTES);
        CHECK(p[i] && p[i][0] == 0 && p[i][BYTES - 1] == 0);
        memset(p[i], i % 251, BYTES);
        memset(ort_arena_alloc(&arena, 24), 0xff, 24);
        beside += i > 0 && p[i] == p[i - 1] + BYTES;
    }
    for (int i = 0; i < COUNT; i++)
        CHECK(p[i][0] == i % 251 && p[i][BYTES - 1] == i % 251);
    CHECK(beside > COUNT * 9 / 10);
    CHECK(ort_slab_alloc(&arena, &slab, 0) != NULL);
    CHECK(ort_slab_alloc(&arena, &slab, SIZE_MAX - 8) == NULL);
    ort_arena_release(&arena);
}

static void arena_alignment(test_state *test)
{
    ort_arena arena = {0};
    for (size_t i = 0; i < 2000; i++) {
        unsigned char *p = ort_arena_alloc(&arena, i % 97);
        CHECK(p && (uintptr_t)p % 16 == 0);
        for (size_t k = 0; k < i % 97; k++)
            CHECK(p[k] == 0);
        memset(p, 0xff, i % 97);
        p = ort_arena_alloc_aligned(&arena, 100, 4096, 0);
        CHECK(p && (uintptr_t)p % 4096 == 0);
        ort_arena_strndup(&arena, "abc", i % 4);
    }
    CHECK(ort_arena_array(&arena, SIZE_MAX / 2, 3) == NULL);
    CHECK(ort_arena_alloc(&arena, SIZE_MAX - 8) == NULL);
    CHECK_TEXT(ort_arena_printf(&arena, "%s-%d", "n", 7), "n-7");
    ort_arena_release(&arena);
    CHECK(arena.head == NULL && arena.used_bytes == 0);
}

static void vec_growth(test_state *test)
{
    ORT_VEC(int) v = {0};
    for (int i = 0; i < 1000; i++)
        CHECK(ort_vec_push(&v, i));
    CHECK(v.count == 1000 && v.data[999] == 999 && ort_vec_pop(&v) == 999);
    CHECK(!ort_vec_reserve(&v, SIZE_MAX / 2));
    CHECK(v.count == 999 && v.data[500] == 500);
    ort_vec_release(&v);
}

static void hashmap_order_and_lookup(test_state *test)
{
    static char names[5000][8];
    ort_hashmap map = {0};
    uint64_t value;
    for (uint64_t i = 0; i < 5000; i++) {
        snprintf(names[i], sizeof names[i], "k%u", (unsigned)i);
        CHECK(ort_hashmap_put_str(&map, names[i], i));
    }
    CHECK(ort_hashmap_put_str(&map, "k17", 99));
    CHECK(map.count == 5000);
    for (uint64_t i = 0; i < 5000; i++) {
        CHECK(!strcmp(map.entries[i].key, names[i]));
        CHECK(ort_hashmap_get_str(&map, names[i], &value) && value == (i == 17 ? 99 : i));
    }
    CHECK(!ort_hashmap_get_str(&map, "k5000", NULL));
    CHECK(ort_hashmap_put(&map, "", 0, 1) && ort_hashmap_get(&map, "", 0, &value) && value == 1);
    ort_hashmap_release(&map);
    CHECK(!ort_hashmap_get_str(&map, "k1", NULL));
    /* More than three quarters of 2^32 keys: their places have bits that a tag lacks. */
    CHECK(!ort_hashmap_reserve(&map, ((size_t)3 << 30) + 1) && !map.slots);
}

static void hash_depends_on_every_byte(test_state *test)
{
    unsigned char bytes[64] = {0};
    uint64_t zero = ort_hash_bytes(bytes, sizeof bytes, 0);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = 1;
        CHECK(ort_hash_bytes(bytes, sizeof bytes, 0) != zero);
        bytes[i] = 0;
    }
    CHECK(ort_hash_bytes(bytes, 63, 0) != zero);
    CHECK(ort_hash_bytes(bytes, sizeof bytes, 1) != zero);
}

static void json_writer(test_state *test)
{
    ort_strbuf out = {0};
    ort_json json;
    ort_json_init(&json, &out, 0);
    ort_json_begin_object(&json);
    ort_json_key(&json, "a\"b");
    ort_json_begin_array(&json);
    ort_json_int(&json, -3);
    ort_json_double(&json, 0.1);
    ort_json_double(&json, NAN);
    ort_json_string(&json, "\xff\x01\xc3\xa9\n");
    ort_json_begin_object(&json);
    ort_json_end_object(&json);
    ort_json_end_array(&json);
    ort_json_key(&json, "c");
    ort_json_bool(&json, true);
    ort_json_end_object(&json);
    CHECK_TEXT(ort_strbuf_text(&out), "{\"a\\\"b\": [-3, 0.1, \"nan\", "
                                      "\"\xef\xbf\xbd\\u0001\xc3\xa9\\n\", {}], \"c\": true}");
    ort_strbuf_release(&out);
}

static void numbers_read_back(test_state *test)
{
    ort_strbuf out = {0};
    uint64_t state = 1;
    for (int i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        double d;
        float f = ort_float_from_bits((uint32_t)(state >> 32));
        memcpy(&d, &state, sizeof d);
        ort_strbuf_clear(&out);
        ort_strbuf_add_double(&out, d);
        CHECK(isnan(d) || ort_parse_double(ort_strbuf_text(&out), NULL) == d);
        ort_strbuf_clear(&out);
        ort_strbuf_add_float(&out, f);
        CHECK(isnan(f) || (float)ort_parse_double(ort_strbuf_text(&out), NULL) == f);
    }
    ort_strbuf_clear(&out);
    ort_strbuf_add_float(&out, 0.1f);
    CHECK_TEXT(ort_strbuf_text(&out), "0.1");
    ort_strbuf_release(&out);
}

static void findings_in_one_error(test_state *test)
{
    ort_findings *findings;
    ort_error err = {0};
    CHECK(ort_findings_new(&findings, &err) == ORT_OK);
    CHECK(ort_findings_to_error(findings, ORT_ERROR_MODEL, &err) == ORT_OK);
    ort_findings_add(findings, ORT_FINDING_NOTE, "a note");
    for (int i = 0; i < 200; i++)
        ort_findings_add(findings, ORT_FINDING_ERROR, "node '%d': something is wrong here", i);
    CHECK(ort_findings_to_error(findings, ORT_ERROR_MODEL, &err) == ORT_ERROR_MODEL);
    CHECK(err.count == 200 && !strncmp(err.message, "node '0': ", 10));
    CHECK(strstr(err.message, " more)") != NULL && strlen(err.message) < ORT_ERROR_TEXT);
    CHECK(ort_findings_count(findings) == 201 && ort_findings_errors(findings) == 200);
    ort_findings_free(findings);
}

/* ------------------------------------------------------------------------------------ pool -- */

enum { TASKS = 200 };

typedef struct pool_job {
    ort_pool *pool;
    int hits[TASKS];
    atomic_int nested;
    bool flushed[TASKS];
} pool_job;

static void count_nested(void *arg, size_t task, int thread)
{
    atomic_fetch_add(&((pool_job *)arg)->nested, 1);
}

static void hit(void *arg, size_t task, int thread)
{
    pool_job *job = arg;
    job->hits[task]++;
    volatile float tiny = 1e-38f;
    job->flushed[task] = tiny * 0.01f == 0.0f;
    if (task % 50 == 0 && thread < ort_pool_threads(job->pool))
        ort_pool_run(job->pool, 4, count_nested, job);
}

static void pool_runs_every_task_once(test_state *test)
{
    for (int threads = 1; threads <= 16; threads *= 2) { /* beyond 8 they share ranges */
        ort_pool *pool = ort_pool_new_of(threads, false, &workers_at_once);
        CHECK(pool && ort_pool_threads(pool) == threads);
        for (int round = 0; round < 200; round++) {
            pool_job job = {.pool = pool};
            ort_pool_run(pool, TASKS, hit, &job);
            for (int i = 0; i < TASKS; i++)
                CHECK(job.hits[i] == 1);
            CHECK(job.nested == 16);
        }
        ort_pool_free(pool);
    }
}

/* Short loops, which stay with the caller once their time is known, and long ones. */
static void pool_remembers_loops(test_state *test)
{
    static const char keys[3];
    ort_pool *pool = ort_pool_new_of(3, false, &workers_at_once);
    ort_pool_demand outer = {0}, demand = {0};
    ort_pool_enter(pool, 20, &outer);
    for (int run = 0; run < 100; run++) {
        ort_pool_enter(pool, 20, &demand);
        for (int k = 0; k < 3; k++) {
            pool_job job = {.pool = pool};
            ort_pool_run_again(pool, &keys[k], k == 2 ? TASKS : (size_t)k + 2, hit, &job);
            for (int i = 0; i < TASKS; i++)
                CHECK(job.hits[i] == (i < (k == 2 ? TASKS : k + 2)));
        }
        ort_pool_leave(pool, &demand);
        CHECK(demand.last_ns > 0);
    }
    ort_pool_leave(pool, &outer);
    CHECK(demand.outer == &outer && outer.last_ns == 0);
    ort_pool_free(pool);
}

static void work_a_while(void *arg, size_t task, int thread)
{
    for (volatile int i = 0; i < 20000; i++)
        continue;
}

static void pass_time(uint64_t ns)
{
    for (uint64_t end = ort_clock_ns() + ns; ort_clock_ns() < end;)
        continue;
}

/* Gaps of a run's caller, which workers are to spin for in the next: the longest that they may.
 * Where others take the processors and the pool narrows, there are none. */
static void pool_knows_the_gaps_of_a_run(test_state *test)
{
    static const char key;
    ort_pool *pool = ort_pool_new(2, false);
    ort_pool_demand demand = {0};
    for (int run = 0; run < 3; run++) {
        bool narrowed = false;
        ort_pool_enter(pool, 100000, &demand);
        for (int k = 0; k < 4; k++) {
            ort_pool_run_again(pool, &key, TASKS, work_a_while, NULL);
            pass_time(k == 1 ? 300000 : 50000);
            narrowed |= ort_pool_width(pool, NULL) == 1;
        }
        ort_pool_leave(pool, &demand);
        CHECK(demand.last_gap_ns >= 300000 || narrowed);
    }
    for (int run = 0; run < 2; run++) {
        ort_pool_enter(pool, 40, &demand);
        for (int k = 0; k < 4; k++) {
            ort_pool_run_again(pool, &key, TASKS, work_a_while, NULL);
            pass_time(300000);
        }
        ort_pool_leave(pool, &demand);
        CHECK(demand.last_gap_ns <= 40000);
    }
    ort_pool_free(pool);
}

static void do_nothing(void *arg, size_t task, int thread)
{
}

/* The width of the loop of `fn` under this key in the run that follows one; -1: the pool has
 * narrowed, for others. */
static int width_in_next_run(ort_pool *pool, ort_pool_demand *demand, const void *key,
                             ort_task_fn *fn, int tasks)
{
    ort_pool_enter(pool, 20, demand);
    int width = ort_pool_width(pool, key);
    ort_pool_run_again(pool, key, (size_t)tasks, fn, NULL);
    bool narrowed = ort_pool_width(pool, NULL) == 1;
    ort_pool_leave(pool, demand);
    return narrowed ? -1 : width;
}

/* Runs that wake nobody don't cut their loops either, and learn now and then whether that still
 * holds: at the latest after as many runs as there are tasks here. */
static void pool_leaves_short_runs_whole(test_state *test)
{
    static const char key, longer;
    ort_pool *pool = ort_pool_new(2, false);
    ort_pool_demand demand = {0};
    int whole = 0, width = 0;
    CHECK(width_in_next_run(pool, &demand, &key, do_nothing, 8) != 1);
    for (int run = 0; run < TASKS; run++)
        whole += width_in_next_run(pool, &demand, &key, do_nothing, 8) == 1;
    CHECK(whole > TASKS / 2);
    for (int run = 0; run < TASKS && width != 2; run++) {
        width = width_in_next_run(pool, &demand, &longer, work_a_while, TASKS);
        if (width == -1)
            break;
    }
    CHECK(width == 2 || width == -1);
    ort_pool_free(pool);
}

/* So do loops that stay with the caller in a run of much work. */
static void pool_leaves_short_loops_whole(test_state *test)
{
    static const char key, longer;
    ort_pool *pool = ort_pool_new(2, false);
    ort_pool_demand demand = {0};
    int whole = 0, narrowed = 0;
    for (int run = 0; run < 20; run++) {
        ort_pool_enter(pool, 20, &demand);
        whole += ort_pool_width(pool, &key) == 1;
        ort_pool_run_again(pool, &key, 8, do_nothing, NULL);
        ort_pool_run_again(pool, &longer, TASKS, work_a_while, NULL);
        narrowed += ort_pool_width(pool, NULL) == 1;
        ort_pool_leave(pool, &demand);
    }
    CHECK(whole > 10 || narrowed > 0);
    ort_pool_free(pool);
}

enum { LONG_TASK_NS = 1000000, MOST_WAIT_NS = 2000000000 };

typedef struct late_job {
    _Atomic uint32_t runs[TASKS], others; /* others: tasks that a worker ran */
    size_t first_shared;                  /* it and those behind it wait for a worker */
} late_job;

/* A millisecond, or until a worker has come. */
static void last_until_helped(void *arg, size_t task, int thread)
{
    late_job *job = arg;
    uint64_t most = task < job->first_shared ? LONG_TASK_NS : MOST_WAIT_NS;
    atomic_fetch_add(&job->runs[task], 1);
    atomic_fetch_add(&job->others, thread != 0);
    for (uint64_t end = ort_clock_ns() + most; ort_clock_ns() < end;)
        if (task >= job->first_shared && atomic_load(&job->others) > 0)
            break;
}

static int count_own_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *d; tasks && (d = readdir(tasks));)
        count += d->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return count;
}

static void spend_two_us(void *arg, size_t task, int thread)
{
    pass_time(2000);
}

static void spend_fifty_us(void *arg, size_t task, int thread)
{
    pass_time(50000);
}

/* Whether so many loops of two tasks start workers. */
static bool do_loops_start(int loops, ort_task_fn *fn)
{
    ort_pool *pool = ort_pool_new(2, false);
    int alone = count_own_threads();
    for (int i = 0; i < loops; i++)
        ort_pool_run(pool, 2, fn, NULL);
    bool started = count_own_threads() > alone;
    ort_pool_free(pool);
    return started;
}

/* Short loops never start a worker, however many there are: handing them on costs more than it
 * saves. (One that the system interrupts isn't short.) Longer ones do, of which each saves too
 * little. */
static void pool_starts_workers_for_what_they_save(test_state *test)
{
    bool started = true;
    for (int i = 0; i < 20 && started; i++)
        started = do_loops_start(400, spend_two_us);
    CHECK(!started);
    CHECK(do_loops_start(100, spend_fifty_us));
}

static void spend_four_us(void *arg, size_t task, int thread)
{
    pass_time(4000);
}

/* Nor are loops too short in runs that follow each other at once: handing them on costs less. */
static void pool_starts_workers_for_a_stream(test_state *test)
{
    static const char key;
    ort_pool *pool = ort_pool_new(2, false);
    ort_pool_demand demand = {0};
    int alone = count_own_threads();
    for (int run = 0; run < 30 && count_own_threads() == alone; run++) {
        ort_pool_enter(pool, 100, &demand);
        for (int k = 0; k < 10; k++)
            ort_pool_run_again(pool, &key, 2, spend_four_us, NULL);
        ort_pool_leave(pool, &demand);
    }
    CHECK(count_own_threads() > alone);
    ort_pool_free(pool);
}

/* A long one does when its first task has told, and the workers take part in the others. */
static void pool_starts_workers_within_a_loop(test_state *test)
{
    ort_pool *pool = ort_pool_new(3, false);
    int alone = count_own_threads();
    late_job job = {.first_shared = 1};
    CHECK(pool && alone > 0);
    ort_pool_run(pool, 8, last_until_helped, &job);
    CHECK(count_own_threads() == alone + 2);
    CHECK(atomic_load(&job.others) > 0);
    for (int i = 0; i < 8; i++)
        CHECK(atomic_load(&job.runs[i]) == 1);
    ort_pool_free(pool);
}

/* Two threads are no gain everywhere: runs of some milliseconds are tried with one as well. */
static void pool_tries_runs_of_milliseconds(test_state *test)
{
    static const char key;
    ort_pool *pool = ort_pool_new(2, false);
    ort_pool_demand demand = {0};
    bool excused = false;
    for (int run = 0; run < 3; run++) {
        ort_pool_enter(pool, 20, &demand);
        CHECK(demand.tried || run == 0 || excused);
        for (uint64_t begin = ort_clock_ns(); ort_clock_ns() < begin + 2000000;)
            ort_pool_run_again(pool, &key, TASKS, work_a_while, NULL);
        excused |= ort_pool_width(pool, NULL) == 1;
        ort_pool_leave(pool, &demand);
        excused |= demand.last_ns >= 8000000;
    }
    ort_pool_free(pool);
}

static void *run_rounds(void *arg)
{
    ort_pool *pool = arg;
    for (int round = 0; round < 300; round++) {
        pool_job job = {.pool = pool};
        ort_pool_run(pool, TASKS, hit, &job);
        for (int i = 0; i < TASKS; i++)
            if (job.hits[i] != 1)
                return arg;
    }
    return NULL;
}

static void pool_shared_by_callers(test_state *test)
{
    ort_pool *pool = ort_pool_new_of(3, false, &workers_at_once);
    pthread_t callers[3];
    void *bad = NULL, *one;
    ort_pool_enter(pool, 20, NULL);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&callers[i], NULL, run_rounds, pool) == 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(callers[i], &one);
        bad = one ? one : bad;
    }
    ort_pool_leave(pool, NULL);
    ort_pool_free(pool);
    CHECK(bad == NULL);
}

/* Threads on one processor lose all but a part of their time, unless they are of a class in which
 * the first one keeps it. */
typedef struct one_processor {
    cpu_set_t before;
    struct sched_param real_time;
    int class;
} one_processor;

static void begin_on_one_processor(test_state *test, one_processor *p)
{
    cpu_set_t one;
    struct sched_param none = {0};
    int first = 0;
    p->class = sched_getscheduler(0);
    CHECK(sched_getparam(0, &p->real_time) == 0 && sched_setscheduler(0, SCHED_OTHER, &none) == 0);
    CHECK(sched_getaffinity(0, sizeof p->before, &p->before) == 0);
    while (!CPU_ISSET(first, &p->before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
}

static void end_on_one_processor(test_state *test, const one_processor *p)
{
    CHECK(sched_setaffinity(0, sizeof p->before, &p->before) == 0);
    CHECK(sched_setscheduler(0, p->class, &p->real_time) == 0);
}

static void pool_narrows_on_one_processor(test_state *test)
{
    one_processor p;
    begin_on_one_processor(test, &p);
    ort_pool *pool = ort_pool_new(4, false);
    CHECK(ort_pool_width(pool, NULL) == 4 && ort_pool_width(NULL, NULL) == 1);
    ort_pool_enter(pool, 20, NULL);
    for (int i = 0; i < 5000 && ort_pool_width(pool, NULL) > 1; i++)
        ort_pool_run(pool, TASKS, work_a_while, NULL);
    CHECK(ort_pool_width(pool, NULL) == 1);
    pool_job job = {.pool = pool};
    ort_pool_run(pool, TASKS, hit, &job);
    for (int i = 0; i < TASKS; i++)
        CHECK(job.hits[i] == 1);
    ort_pool_leave(pool, NULL);
    ort_pool_free(pool);
    end_on_one_processor(test, &p);
}

/* Loops cut by the width are one task each in a narrow pool. What the run had to share before stays
 * known: with less to share it would never ask for room again. */
static void pool_remembers_runs_while_narrow(test_state *test)
{
    static const char key;
    one_processor p;
    begin_on_one_processor(test, &p);
    ort_pool *pool = ort_pool_new(4, false);
    ort_pool_demand demand = {0};
    uint64_t wide = 0;
    int narrow = 0;
    for (int run = 0; run < 5000 && narrow < 10; run++) {
        ort_pool_enter(pool, 20, &demand);
        int width = ort_pool_width(pool, NULL);
        ort_pool_run_again(pool, &key, width > 1 ? TASKS : 1, work_a_while, NULL);
        ort_pool_leave(pool, &demand);
        if (width > 1 && ort_pool_width(pool, NULL) > 1)
            wide = demand.last_ns;
        narrow = width > 1 ? 0 : narrow + 1;
    }
    CHECK(narrow == 10 && wide > 0 && demand.last_ns == wide);
    ort_pool_free(pool);
    end_on_one_processor(test, &p);
}

static void *stay_busy(void *arg)
{
    while (!atomic_load((atomic_bool *)arg))
        continue;
    return NULL;
}

static bool has_mask(pthread_t thread, const cpu_set_t *mask)
{
    cpu_set_t now;
    return pthread_getaffinity_np(thread, sizeof now, &now) == 0 && CPU_EQUAL(&now, mask);
}

/* The caller's processor is left out of what a thread was given, as long as all have one each and
 * nobody else says what it may use. */
static void workers_keep_apart_from_the_caller(test_state *test)
{
    atomic_bool stop = false;
    pthread_t worker;
    cpu_set_t given, others;
    ort_apart apart = {0}, crowded = {0};
    CHECK(pthread_create(&worker, NULL, stay_busy, &stop) == 0);
    CHECK(pthread_getaffinity_np(worker, sizeof given, &given) == 0);
    int count = CPU_COUNT(&given);
    ort_apart_keep(&crowded, worker, count + 1, 0);
    CHECK(has_mask(worker, &given));
    for (int i = 0; count > 1 && i < CPU_SETSIZE; i++) {
        others = given;
        CPU_CLR(i, &others);
        ort_apart_keep(&apart, worker, 2, i);
        ort_apart_keep(&crowded, worker, 2, i);
        CHECK(has_mask(worker, &others));
    }
    ort_apart_keep(&apart, worker, 2, -1);
    CHECK(has_mask(worker, &given));
    int first = 0;
    while (!CPU_ISSET(first, &given))
        first++;
    CPU_ZERO(&others);
    CPU_SET(first, &others);
    CHECK(pthread_setaffinity_np(worker, sizeof others, &others) == 0);
    ort_apart_keep(&apart, worker, 2, 0);
    ort_apart_keep(&apart, worker, 2, 1);
    CHECK(has_mask(worker, &others));
    atomic_store(&stop, true);
    pthread_join(worker, NULL);
}

/* Two threads that never sleep on one processor take it from each other; sleeping isn't waiting. */
static void watch_counts_waits_for_a_processor(test_state *test)
{
    cpu_set_t before, one;
    int first = 0;
    atomic_bool stop = false;
    pthread_t other;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    (void)ort_watch_queued(0);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(ort_watch_queued(5) <= 5);
    CHECK(pthread_create(&other, NULL, stay_busy, &stop) == 0);
    uint64_t waited = 0;
    for (int i = 0; i < 100 && waited < 1000000; i++) {
        pass_time(10000000);
        waited += ort_watch_queued(1000000000);
    }
    atomic_store(&stop, true);
    pthread_join(other, NULL);
    CHECK(waited >= 1000000);
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
}

static void pool_keeps_floating_point_mode(test_state *test)
{
    ort_pool *pool = ort_pool_new_of(4, false, &workers_at_once);
    for (int flush = 0; flush < 2; flush++) {
        pool_job job = {.pool = pool};
        unsigned before = ort_cpu_set_flush(flush);
        ort_pool_run(pool, TASKS, hit, &job);
        ort_cpu_restore_fp(before);
        for (int i = 0; i < TASKS; i++)
            CHECK(job.flushed[i] == flush);
    }
    ort_pool_free(pool);
}

/* --------------------------------------------------------------------------------- numbers -- */

static void half_codes_round_trip(test_state *test)
{
    for (unsigned code = 0; code < 65536; code++) {
        float f = ort_f16_to_f32((uint16_t)code), b = ort_bf16_to_f32((uint16_t)code);
        CHECK(isnan(f) ? (code & 0x7fff) > 0x7c00 : ort_f32_to_f16(f) == code);
        CHECK(isnan(f) || ort_f64_to_f16(f) == code);
        CHECK(isnan(b) ? (code & 0x7fff) > 0x7f80 : ort_f32_to_bf16(b) == code);
        CHECK(isnan(b) || ort_f64_to_bf16(b) == code);
    }
    CHECK(ort_f32_to_f16(65519.99f) == 0x7bff && ort_f32_to_f16(65520.0f) == 0x7c00);
    CHECK(ort_f32_to_f16(0x1p-25f) == 0 && ort_f32_to_f16(0x1.8p-25f) == 1);
    /* One rounding: by way of float this tie would go the other way. */
    CHECK(ort_f64_to_f16(1.0 + 0x1p-11 + 0x1p-40) == 0x3c01);
}

/* Every code, in runs of any length at any alignment. */
static void halves_in_a_row(test_state *test)
{
    static uint16_t halves[65536 + 1];
    static float got[65536 + 1];
    const size_t runs[] = {65536, 1, 2, 3, 4, 5, 7, 8, 4099};
    for (unsigned code = 0; code < 65536; code++)
        memcpy((char *)halves + 1 + 2 * code, &(uint16_t){(uint16_t)code}, 2);
    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
        size_t first = 65536 - runs[r];
        bool same = true;
        got[runs[r]] = 7;
        ort_f16s_to_f32((char *)halves + 1 + 2 * first, got, runs[r]);
        for (size_t i = 0; i < runs[r]; i++) {
            float want = ort_f16_to_f32((uint16_t)(first + i));
            same = same && !memcmp(&got[i], &want, sizeof want);
        }
        CHECK(same && got[runs[r]] == 7);
    }
}

static const struct {
    int kind, bits;
    float largest;
} minifloats[] = {
    {ORT_DTYPE_FLOAT8E4M3FN, 8, 448},  {ORT_DTYPE_FLOAT8E4M3FNUZ, 8, 240},
    {ORT_DTYPE_FLOAT8E5M2, 8, 57344},  {ORT_DTYPE_FLOAT8E5M2FNUZ, 8, 57344},
    {ORT_DTYPE_FLOAT4E2M1, 4, 6},      {ORT_DTYPE_FLOAT6E2M3, 6, 7.5f},
    {ORT_DTYPE_FLOAT6E3M2, 6, 28},
};

static void minifloat_codes_round_trip(test_state *test)
{
    for (size_t i = 0; i < sizeof minifloats / sizeof minifloats[0]; i++) {
        int kind = minifloats[i].kind;
        float largest = 0;
        for (unsigned code = 0; code < 1u << minifloats[i].bits; code++) {
            float f = ort_minifloat_to_f32(kind, (uint8_t)code);
            if (isnan(f))
                continue;
            CHECK(ort_f32_to_minifloat(kind, f, false) == code);
            CHECK(isinf(f) || ort_f32_to_minifloat(kind, f, true) == code);
            largest = isfinite(f) && f > largest ? f : largest;
        }
        CHECK(largest == minifloats[i].largest);
        uint8_t top = ort_f32_to_minifloat(kind, largest, true);
        CHECK(ort_f32_to_minifloat(kind, INFINITY, true) == top);
        CHECK(ort_f32_to_minifloat(kind, 1e30f, true) == top);
    }
}

static void minifloat_cast_tables(test_state *test)
{
    CHECK(ort_f32_to_minifloat(ORT_DTYPE_FLOAT8E4M3FN, INFINITY, false) == 0x7f);
    CHECK(ort_f32_to_minifloat(ORT_DTYPE_FLOAT8E4M3FN, -1e9f, false) == 0xff);
    CHECK(ort_f32_to_minifloat(ORT_DTYPE_FLOAT8E4M3FN, NAN, true) == 0x7f);
    CHECK(ort_f32_to_minifloat(ORT_DTYPE_FLOAT8E4M3FN, -0.0f, true) == 0x80);
    CHECK(ort_f32_to_minifloat(ORT_DTYPE_FLOAT8E4M3FNUZ, -0.0f, true) == 0);
    CHECK(ort_f32_to_minifloat(ORT_DTYPE_FLOAT8E4M3FNUZ, NAN, true) == 0x80);
    CHECK(ort_f32_to_minifloat(ORT_DTYPE_FLOAT8E5M2, INFINITY, false) == 0x7c);
    CHECK(ort_f32_to_minifloat(ORT_DTYPE_FLOAT8E5M2, INFINITY, true) == 0x7b);
    CHECK(ort_f32_to_minifloat(ORT_DTYPE_FLOAT8E5M2FNUZ, 1e9f, false) == 0x80);
    CHECK(ort_f32_to_e8m0(3.0f, 'u', true) == 129 && ort_f32_to_e8m0(3.0f, 'd', true) == 128);
    CHECK(ort_f32_to_e8m0(3.0f, 'n', true) == 129 && ort_f32_to_e8m0(2.9f, 'n', true) == 128);
    CHECK(ort_f32_to_e8m0(3e38f, 'u', true) == 254 && ort_f32_to_e8m0(3e38f, 'u', false) == 255);
    /* What lies outside, by the table of Cast: the ends when saturating, else NaN. */
    CHECK(ort_f32_to_e8m0(INFINITY, 'u', true) == 254 &&
          ort_f32_to_e8m0(INFINITY, 'd', false) == 255 && ort_f32_to_e8m0(NAN, 'u', true) == 255);
    CHECK(ort_f32_to_e8m0(0.0f, 'u', true) == 0 && ort_f32_to_e8m0(0.0f, 'n', false) == 255);
    CHECK(ort_f32_to_e8m0(1e-45f, 'u', true) == 0 && ort_f32_to_e8m0(3e38f, 'd', false) == 255);
    CHECK(ort_f32_to_e8m0(0x1p-127f, 'u', true) == 0 &&
          ort_f32_to_e8m0(0x1p-127f, 'd', false) == 0);
    CHECK(isnan(ort_minifloat_to_f32(ORT_DTYPE_FLOAT8E8M0, 255)));
}

static void packed_elements(test_state *test)
{
    static const int widths[] = {2, 4, 6};
    for (size_t w = 0; w < 3; w++) {
        uint8_t bytes[13] = {0};
        int bits = widths[w];
        size_t count = 12 * 8 / (size_t)bits;
        for (size_t round = 0; round < 2; round++)
            for (size_t i = 0; i < count; i++)
                ort_packed_set(bytes, i, bits, (unsigned)(i * 5 + round) & ((1u << bits) - 1));
        for (size_t i = 0; i < count; i++)
            CHECK(ort_packed_get(bytes, i, bits) == ((i * 5 + 1) & ((1u << bits) - 1)));
        CHECK(bytes[12] == 0);
    }
    CHECK(ort_sign_extend(15, 4) == -1 && ort_sign_extend(7, 4) == 7);
    CHECK(ort_sign_extend(2, 2) == -2);
}

static void cpu_is_sane(test_state *test)
{
    const ort_cpu *cpu = ort_cpu_get();
    ort_cpu_caches caches = ort_cpu_find_caches();
    CHECK(ort_cpu_count_usable() >= 1);
    CHECK(ort_cpu_count_whole() == 0 || ort_cpu_count_whole() >= ort_cpu_count_usable());
    CHECK(ort_cpu_count_running() >= 0);
    CHECK(caches.l1d_bytes >= 4096 && caches.l2_bytes >= caches.l1d_bytes);
    CHECK(!cpu->avx512 || cpu->avx2);
}

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, error_messages);
    RUN(&test, arena_slab);
    RUN(&test, arena_alignment);
    RUN(&test, arena_huge_pages);
    RUN(&test, arena_untouched);
    RUN(&test, touched_pages);
    RUN(&test, arena_begun_huge);
    RUN(&test, vec_growth);
    RUN(&test, hashmap_order_and_lookup);
    RUN(&test, hash_depends_on_every_byte);
    RUN(&test, json_writer);
    RUN(&test, numbers_read_back);
    RUN(&test, findings_in_one_error);
    RUN(&test, pool_runs_every_task_once);
    RUN(&test, pool_remembers_loops);
    RUN(&test, pool_knows_the_gaps_of_a_run);
    RUN(&test, pool_leaves_short_runs_whole);
    RUN(&test, pool_leaves_short_loops_whole);
    RUN(&test, pool_starts_workers_for_what_they_save);
    RUN(&test, pool_starts_workers_for_a_stream);
    RUN(&test, pool_starts_workers_within_a_loop);
    RUN(&test, pool_tries_runs_of_milliseconds);
    RUN(&test, pool_shared_by_callers);
    RUN(&test, workers_keep_apart_from_the_caller);
    RUN(&test, watch_counts_waits_for_a_processor);
    RUN(&test, pool_narrows_on_one_processor);
    RUN(&test, pool_remembers_runs_while_narrow);
    RUN(&test, pool_keeps_floating_point_mode);
    RUN(&test, half_codes_round_trip);
    RUN(&test, halves_in_a_row);
    RUN(&test, minifloat_codes_round_trip);
    RUN(&test, minifloat_cast_tables);
    RUN(&test, packed_elements);
    RUN(&test, cpu_is_sane);
    return test.failures != 0;
}
