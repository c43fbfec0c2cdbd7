/* pool.c - one blocking thread pool: tasks are handed out by an atomic counter, the caller takes
 * part, workers sleep in the kernel between loops.
 *
 * `left` counts the tasks of the current loop that nobody has taken; taking one is a
 * compare-and-swap downwards. Whoever has taken a task knows that the loop can't end before it
 * reports it in `pending`, so fn, arg and count are stable while it reads them; nobody touches them
 * while `left` is 0. The caller waits for `pending` only, never for a worker to wake up or to check
 * in: a worker that the system has put aside costs at most the task it holds.
 *
 *     publish:  fn, arg, count, pending  ->  left  ->  epoch + 1  ->  wake sleepers
 *     worker:   epoch  ->  take while left  ->  pending -= taken  ->  sleep until epoch changes
 */
#define _GNU_SOURCE 1
#include "base/pool.h"

#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/log.h"

enum { CACHE_LINE = 64, FINISH_SPIN_NS = 20000, SPIN_CHECKS = 64 };

typedef struct worker {
    struct ort_pool *pool;
    pthread_t handle;
    int index; /* 1..threads-1; the caller of a loop is 0 */
} worker;

struct ort_pool {
    int threads;
    bool pin;
    int started; /* workers running; written under `busy` */
    worker *workers;
    /* The current loop. */
    ort_task_fn *fn;
    void *arg;
    uint32_t count;
    unsigned fp_control;
    _Alignas(CACHE_LINE) atomic_uint left; /* tasks not yet taken */
    _Alignas(CACHE_LINE) atomic_uint pending; /* tasks not yet reported done */
    atomic_uint caller_waits;
    _Alignas(CACHE_LINE) atomic_uint epoch; /* loops published so far */
    atomic_uint sleepers;
    atomic_bool stop;
    atomic_bool busy; /* somebody's loop is running */
    atomic_int active; /* runs between enter and leave */
    atomic_int spin_us;
};

/* Number of this thread within the pool whose task it runs: a nested loop keeps it, so that two
 * threads never share the scratch of thread 0. */
static _Thread_local int current_index;

static void futex_wait(atomic_uint *word, unsigned expected)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Take tasks until none is left; returns how many were run. */
static uint32_t run_tasks(ort_pool *pool, int index, bool set_fp)
{
    uint32_t taken = 0;
    unsigned left = atomic_load_explicit(&pool->left, memory_order_acquire);
    while (left > 0) {
        if (!atomic_compare_exchange_weak_explicit(&pool->left, &left, left - 1,
                                                   memory_order_acq_rel, memory_order_acquire))
            continue;
        if (taken++ == 0 && set_fp)
            ort_cpu_restore_fp(pool->fp_control);
        pool->fn(pool->arg, pool->count - left, index);
        left = atomic_load_explicit(&pool->left, memory_order_acquire);
    }
    return taken;
}

static void report_done(ort_pool *pool, uint32_t taken)
{
    if (taken == 0)
        return;
    if (atomic_fetch_sub(&pool->pending, taken) == taken && atomic_load(&pool->caller_waits))
        futex_wake(&pool->pending, 1);
}

/* Spin while a run is active, for at most its budget; true when a new loop was published. */
static bool spin_for_loop(ort_pool *pool, unsigned seen)
{
    int64_t budget_us = atomic_load_explicit(&pool->spin_us, memory_order_relaxed);
    if (budget_us <= 0 || atomic_load_explicit(&pool->active, memory_order_relaxed) == 0)
        return false;
    uint64_t end = ort_clock_ns() + (uint64_t)budget_us * 1000;
    do {
        for (int i = 0; i < SPIN_CHECKS; i++) {
            if (atomic_load_explicit(&pool->epoch, memory_order_acquire) != seen)
                return true;
            relax();
        }
    } while (atomic_load_explicit(&pool->active, memory_order_relaxed) > 0 &&
             ort_clock_ns() < end);
    return false;
}

static void *worker_main(void *arg)
{
    worker *self = arg;
    ort_pool *pool = self->pool;
    current_index = self->index;
    while (!atomic_load(&pool->stop)) {
        /* Read before looking for tasks: a loop published later changes it, so no wake-up is
         * lost. */
        unsigned seen = atomic_load(&pool->epoch);
        report_done(pool, run_tasks(pool, self->index, true));
        if (atomic_load(&pool->stop) || spin_for_loop(pool, seen))
            continue;
        atomic_fetch_add(&pool->sleepers, 1);
        while (atomic_load(&pool->epoch) == seen && !atomic_load(&pool->stop))
            futex_wait(&pool->epoch, seen);
        atomic_fetch_sub(&pool->sleepers, 1);
    }
    return NULL;
}

/* Bind a worker to the index-th processor (modulo their number) of the affinity mask. */
static void pin_worker(pthread_t handle, int index)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) == 0)
        return;
    int wanted = index % CPU_COUNT(&allowed);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &allowed) || wanted-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        pthread_setaffinity_np(handle, sizeof one, &one);
        return;
    }
}

/* Signals belong to the host program's threads: workers block all of them. */
static void start_workers(ort_pool *pool)
{
    if (!pool->workers)
        pool->workers = calloc((size_t)pool->threads, sizeof *pool->workers);
    if (!pool->workers)
        return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool->started < pool->threads - 1) {
        worker *w = &pool->workers[pool->started];
        *w = (worker){.pool = pool, .index = pool->started + 1};
        if (pthread_create(&w->handle, NULL, worker_main, w) != 0)
            break; /* the loop is done by fewer threads: slower, never wrong */
        if (pool->pin)
            pin_worker(w->handle, w->index);
        pool->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

ort_pool *ort_pool_new(int threads, bool pin)
{
    ort_pool *pool = aligned_alloc(CACHE_LINE, sizeof *pool);
    if (!pool)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pool->threads = threads < 1 ? 1 : threads;
    pool->pin = pin;
    return pool;
}

void ort_pool_free(ort_pool *pool)
{
    if (!pool)
        return;
    assert(!atomic_load(&pool->busy));
    atomic_store(&pool->stop, true);
    atomic_fetch_add(&pool->epoch, 1);
    futex_wake(&pool->epoch, INT_MAX);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i].handle, NULL);
    free(pool->workers);
    free(pool);
}

int ort_pool_threads(const ort_pool *pool)
{
    return pool ? pool->threads : 1;
}

void ort_pool_enter(ort_pool *pool, int spin_us)
{
    if (!pool)
        return;
    atomic_store_explicit(&pool->spin_us, spin_us, memory_order_relaxed);
    atomic_fetch_add(&pool->active, 1);
}

void ort_pool_leave(ort_pool *pool)
{
    if (pool)
        atomic_fetch_sub(&pool->active, 1);
}

static void wait_until_done(ort_pool *pool)
{
    uint64_t end = 0;
    for (;;) {
        for (int i = 0; i < SPIN_CHECKS; i++) {
            if (atomic_load_explicit(&pool->pending, memory_order_acquire) == 0)
                return;
            relax();
        }
        uint64_t now = ort_clock_ns();
        if (end == 0)
            end = now + FINISH_SPIN_NS;
        else if (now >= end)
            break;
    }
    atomic_store(&pool->caller_waits, 1);
    unsigned pending;
    while ((pending = atomic_load(&pool->pending)) != 0)
        futex_wait(&pool->pending, pending);
    atomic_store(&pool->caller_waits, 0);
}

static void run_shared(ort_pool *pool, uint32_t count, ort_task_fn *fn, void *arg)
{
    pool->fn = fn;
    pool->arg = arg;
    pool->count = count;
    pool->fp_control = ort_cpu_get_fp();
    atomic_store_explicit(&pool->pending, count, memory_order_relaxed);
    atomic_store_explicit(&pool->left, count, memory_order_release);
    atomic_fetch_add(&pool->epoch, 1);
    unsigned sleepers = atomic_load(&pool->sleepers);
    if (sleepers > 0)
        futex_wake(&pool->epoch, (int)(sleepers < count - 1 ? sleepers : count - 1));
    report_done(pool, run_tasks(pool, 0, false));
    wait_until_done(pool);
}

static void run_alone(size_t count, ort_task_fn *fn, void *arg)
{
    for (size_t task = 0; task < count; task++)
        fn(arg, task, current_index);
}

typedef struct shifted {
    ort_task_fn *fn;
    void *arg;
    size_t first;
} shifted;

static void run_shifted(void *arg, size_t task, int thread)
{
    const shifted *s = arg;
    s->fn(s->arg, s->first + task, thread);
}

void ort_pool_run(ort_pool *pool, size_t count, ort_task_fn *fn, void *arg)
{
    if (!pool || pool->threads == 1 || count <= 1 || atomic_exchange(&pool->busy, true)) {
        run_alone(count, fn, arg);
        return;
    }
    if (pool->started < pool->threads - 1)
        start_workers(pool);
    if (count < UINT32_MAX) {
        run_shared(pool, (uint32_t)count, fn, arg);
    } else {
        for (size_t first = 0; first < count; first += INT32_MAX) {
            shifted part = {fn, arg, first};
            size_t size = count - first < INT32_MAX ? count - first : INT32_MAX;
            run_shared(pool, (uint32_t)size, run_shifted, &part);
        }
    }
    atomic_store(&pool->busy, false);
}
