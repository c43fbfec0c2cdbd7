/* pool.c - one blocking thread pool: each thread takes tasks of a range of its own and then of the
 * others', the caller takes part, workers sleep in the kernel between loops.
 *
 * A range holds tasks of the current loop that nobody has taken; its thread takes the first of
 * them, others the last, by a compare-and-swap. Ranges are the same parts of each loop: what a
 * thread wrote in one lies in its caches when it reads the same part in the next. A core reads what
 * another one has written at a quarter of the speed of its own second-level cache, and writes over
 * it more slowly still. Whoever has taken a task knows that the loop can't end before it reports it
 * in `pending`, so fn and arg are stable while it reads them; nobody touches them while all ranges
 * are empty. The caller waits for `pending` only, never for a worker to wake up or to check in: a
 * worker that the system has put aside costs at most the task it holds.
 *
 *     publish:  fn, arg, pending  ->  ranges  ->  epoch + 1  ->  wake sleepers
 *     worker:   epoch  ->  take while any is  ->  pending -= taken  ->  sleep until epoch changes
 *
 * Sharing a loop with a worker that spins costs some hundred nanoseconds, waking one tens of
 * microseconds. So the time that one thread would need for a loop is remembered by its key, and
 * their sum by run: short loops stay with the caller, and a run of little work wakes nobody, unless
 * it belongs to a stream: many that follow each other at once. What one thread has written and
 * another reads, and writes anew in the next run, takes each of them ten nanoseconds a line and
 * more, so in a run that is shared all steps are that leave rows with their threads, even those of
 * a microsecond; and runs of less than ten milliseconds are tried both ways (spell.h).
 *
 * A worker's start, its first steps on cold caches and its end cost a third of a millisecond, more
 * than it ever saves a process of few short loops. So the first loops are the caller's, task by
 * task, until what sharing them would have saved is worth as much; the tasks of that loop which are
 * left then are shared with the workers that it starts. At worst that costs twice what was best.
 *
 * Threads that share processors with others lose time: ready, and not running. The caller and every
 * worker compare their processor time with the clock now and then, and count how late a worker was
 * to wake up. contention.h makes of that how many threads may take part: those beyond sleep without
 * a spin, and with one left loops stay with the caller.
 *
 * A worker that sleeps comes tens of microseconds late, on a virtual machine more, at every loop. A
 * run's steps are the same each time, and so are the gaps in which its caller works alone: workers
 * spin for those, and for the gap between runs where they follow each other at once. In a gap that
 * is longer than they may spin they sleep soon. At a loop's end whoever is done waits for others as
 * long as it has worked itself: at worst it has then spun for half of the loop.
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

#include "base/apart.h"
#include "base/budget.h"
#include "base/contention.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/watch.h"

enum {
    CACHE_LINE = 64,
    SPIN_LEAST_NS = 20000,
    BETWEEN_NS = 200000, /* runs that follow each other faster are one stream of work */
    SPIN_CHECKS = 64,
    RANGES = 8,          /* at most; threads beyond share them */
    SHARED_NS = 1000,    /* a loop that takes one thread less isn't shared */
    ALONE_NS = 10000,    /* nor is a worker woken for it, nor in a run of less work */
    WAKE_NS = 300000,    /* nor in one, or a stream of runs, of less */
    START_NS = 300000,   /* that sharing would have saved: workers are started for it */
    STREAM_NS = 8000,    /* nor for a stream of runs of less: what is shared comes back too late */
    TRIED_NS = 10000000, /* runs of less are tried both ways (spell.h) */
    WATCH_NS = 1000000,  /* between two looks at the time that a thread has lost */
    PASSING_NS = 200000, /* lost to others who have gone again, as far as it counts */
    LATE_NS = 400000,    /* to wake up so long isn't an idle processor's */
    APART_MOST = 8,      /* in larger pools moving all of them costs more than one that shares */
    WHOLE_MOST = 64,     /* loops or runs in a row that are not cut, for their shortness */
    LOOPS = 1024,        /* remembered at a time, by hash; a power of two */
    NS_BITS = 40
};

typedef struct range { /* tasks: the first in the low half, one past the last in the high half */
    _Alignas(CACHE_LINE) _Atomic uint64_t tasks;
} range;

typedef struct worker {
    struct ort_pool *pool;
    pthread_t handle;
    void *made; /* instead of `handle`: by the program */
    int index; /* 1..threads-1; the caller of a loop is 0 */
    uint64_t looked; /* at the clock, the last time */
    uint64_t worked; /* nanoseconds, in the last loop that it found tasks of */
    ort_watch watch;
    ort_apart apart; /* under `busy` */
} worker;

/* What is written for each loop lies in lines of its own: another core comes for a line at the cost
 * of a hundred instructions. */
struct ort_pool {
    int threads;
    bool pin;
    const ort_threads *makers; /* of workers; NULL: they are ours */
    worker *workers;
    int processors; /* of the machine, where all are ours to use; else 0 */
    int range_count;
    /* Seldom written. */
    atomic_int started; /* workers running; written under `busy` */
    atomic_uint sleepers;
    atomic_uint caller_waits;
    atomic_bool stop;
    atomic_int width; /* threads that may take part: contention.width */
    atomic_bool wary; /* contention.trial */
    _Atomic uint64_t look_at; /* width < threads: contention.until */
    _Atomic uint64_t lost;    /* nanoseconds that workers could not run, not noted yet */
    _Atomic uint64_t woken;   /* when a worker was woken that has not come yet, or 0 */
    _Atomic uint64_t spin_ns; /* how long workers wait for the next loop of this run */
    /* The current loop. The epoch alone is what workers look at meanwhile. */
    _Alignas(CACHE_LINE) atomic_uint epoch; /* loops published so far */
    _Alignas(CACHE_LINE) ort_task_fn *fn;
    void *arg;
    unsigned fp_control;
    ort_budget *budget; /* of the caller, or NULL: when it is over, tasks are taken and left out */
    _Alignas(CACHE_LINE) atomic_uint pending; /* tasks not yet reported done */
    range ranges[RANGES];
    /* Of callers. */
    _Alignas(CACHE_LINE) atomic_bool busy; /* somebody's loop is running */
    ort_contention contention; /* under `busy` */
    uint64_t missed;           /* nanoseconds for want of started workers; under `busy` */
    _Atomic uint64_t ended;    /* when the last shared loop did */
    _Atomic uint64_t left;     /* when the last run did */
    _Atomic uint64_t stream_ns; /* work to share of runs that have followed each other at once */
    _Alignas(CACHE_LINE) atomic_int active; /* runs between enter and leave */
    _Atomic uint64_t loops[LOOPS]; /* hash of the key << NS_BITS | nanoseconds of one thread */
};

/* The run that this thread is in. */
static _Thread_local ort_pool_demand *current_demand;

/* Number of this thread within the pool whose task it runs: a nested loop keeps it, so that two
 * threads never share the scratch of thread 0. */
static _Thread_local int current_index;

/* Of a thread that runs loops. */
static _Thread_local ort_watch caller_watch;

static void futex_wait(atomic_uint *word, unsigned expected)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

/* The same for one of those that futex_wake_some wakes: by bits, as many as there are. */
static void futex_wait_as(atomic_uint *word, unsigned expected, int index)
{
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, NULL, NULL, 1u << index % 32);
}

/* Wake up to `count` of those that wait as 1..width-1. */
static void futex_wake_some(atomic_uint *word, int count, int width)
{
    unsigned bits = width > 31 ? ~0u : (1u << width) - 2;
    syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, count, NULL, NULL, bits);
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

/* The first task of a range, or its last; false: none is left. */
static bool take(range *r, bool last, uint32_t *task)
{
    uint64_t tasks = atomic_load_explicit(&r->tasks, memory_order_acquire), rest;
    do {
        uint32_t first = (uint32_t)tasks, end = (uint32_t)(tasks >> 32);
        if (first >= end)
            return false;
        *task = last ? end - 1 : first;
        rest = last ? tasks - ((uint64_t)1 << 32) : tasks + 1;
    } while (!atomic_compare_exchange_weak_explicit(&r->tasks, &tasks, rest, memory_order_acq_rel,
                                                    memory_order_acquire));
    return true;
}

/* The same parts for the same threads each time. */
static void fill_ranges(ort_pool *pool, uint32_t count)
{
    int width = atomic_load_explicit(&pool->width, memory_order_relaxed);
    uint64_t parts = width < pool->range_count ? (uint64_t)width : (uint64_t)pool->range_count;
    for (uint64_t i = 0; i < (uint64_t)pool->range_count; i++) {
        uint64_t first = i < parts ? count * i / parts : 0;
        uint64_t end = i < parts ? count * (i + 1) / parts : 0;
        atomic_store_explicit(&pool->ranges[i].tasks, end << 32 | first, memory_order_release);
    }
}

static void note_own_loss(ort_pool *pool, ort_watch *w)
{
    uint64_t lost = ort_watch_lost(w);
    if (lost)
        atomic_fetch_add(&pool->lost, lost);
}

/* What others have not reported yet. */
static uint32_t report_done(ort_pool *pool, uint32_t taken)
{
    uint32_t left = atomic_fetch_sub(&pool->pending, taken) - taken;
    if (left == 0 && atomic_load(&pool->caller_waits))
        futex_wake(&pool->pending, 1);
    return left;
}

/* Take tasks of a range until none is left; returns how many. */
static uint32_t run_range(ort_pool *pool, range *r, bool own, int index)
{
    uint32_t taken = 0, task;
    while (take(r, !own, &task)) {
        if (taken++ == 0 && index > 0) {
            ort_cpu_restore_fp(pool->fp_control);
            ort_budget_swap(pool->budget);
        }
        if (!ort_budget_over(pool->budget))
            pool->fn(pool->arg, task, index);
    }
    return taken;
}

/* Take tasks until none is left, those of one's own range first; returns how many were run. What
 * was taken of one is reported before the next is looked at: that takes as long as a small task.
 * A worker for which a caller waits looks at its time before, so that the caller knows why. */
static uint32_t run_tasks(ort_pool *pool, int index, ort_watch *watch)
{
    uint32_t all = 0, left = 1;
    for (int k = 0; k < pool->range_count && left; k++) {
        uint32_t taken =
            run_range(pool, &pool->ranges[(index + k) % pool->range_count], k == 0, index);
        if (taken == 0)
            continue;
        if (watch && atomic_load_explicit(&pool->caller_waits, memory_order_relaxed))
            note_own_loss(pool, watch);
        left = report_done(pool, taken);
        all += taken;
    }
    return all;
}

/* Spin until others have done what they took, then for as long as the run's gaps last, and for the
 * next run shortly; true when a new loop was published. */
static bool spin_for_loop(ort_pool *pool, worker *self, unsigned seen)
{
    uint64_t begin = self->looked, most, patience = begin + self->worked;
    if (self->index >= atomic_load_explicit(&pool->width, memory_order_relaxed))
        return false;
    if (atomic_load_explicit(&pool->wary, memory_order_relaxed))
        patience = 0;
    do {
        for (int i = 0; i < SPIN_CHECKS; i++) {
            if (atomic_load_explicit(&pool->epoch, memory_order_acquire) != seen)
                return true;
            relax();
        }
        self->looked = ort_clock_ns();
        most = atomic_load_explicit(&pool->spin_ns, memory_order_relaxed);
        if (most > BETWEEN_NS && atomic_load_explicit(&pool->active, memory_order_relaxed) == 0)
            most = BETWEEN_NS;
        if (self->looked < patience &&
            atomic_load_explicit(&pool->pending, memory_order_relaxed) != 0)
            begin = self->looked;
    } while (self->looked < begin + most);
    return false;
}

/* Since it looked at the clock, which may be a little before it began. */
static void take_part(ort_pool *pool, worker *self)
{
    uint64_t begin = self->looked;
    if (run_tasks(pool, self->index, &self->watch) == 0)
        return;
    ort_budget_swap(NULL);
    self->looked = ort_clock_ns();
    self->worked = self->looked - begin;
    if (self->looked > self->watch.since + WATCH_NS)
        note_own_loss(pool, &self->watch);
}

static void sleep_until_woken(ort_pool *pool, worker *self, unsigned seen)
{
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->epoch) == seen && !atomic_load(&pool->stop))
        futex_wait_as(&pool->epoch, seen, self->index);
    atomic_fetch_sub(&pool->sleepers, 1);
    uint64_t woken = atomic_exchange(&pool->woken, 0);
    ort_watch_begin(&self->watch);
    self->looked = self->watch.since;
    if (woken && self->watch.since > woken + LATE_NS)
        atomic_fetch_add(&pool->lost, ort_watch_queued(self->watch.since - woken));
}

static void *worker_main(void *arg)
{
    worker *self = arg;
    ort_pool *pool = self->pool;
    current_index = self->index;
    ort_watch_begin(&self->watch);
    self->looked = self->watch.since;
    (void)ort_watch_queued(0);
    while (!atomic_load(&pool->stop)) {
        /* Read before looking for tasks: a loop published later changes it, so no wake-up is
         * lost. */
        unsigned seen = atomic_load(&pool->epoch);
        if (self->index < atomic_load_explicit(&pool->width, memory_order_relaxed))
            take_part(pool, self);
        if (!atomic_load(&pool->stop) && !spin_for_loop(pool, self, seen))
            sleep_until_woken(pool, self, seen);
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

static void work(void *arg)
{
    worker_main(arg);
}

/* Where a worker of the program runs is the program's own matter. */
static bool start_worker(ort_pool *pool, worker *w)
{
    if (pool->makers) {
        w->made = pool->makers->start(pool->makers->arg, work, w);
        return w->made;
    }
    if (pthread_create(&w->handle, NULL, worker_main, w) != 0)
        return false;
    if (pool->pin)
        pin_worker(w->handle, w->index);
    return true;
}

/* Signals belong to the host program's threads: workers block all of them. */
static void start_workers(ort_pool *pool)
{
    if (!pool->workers)
        pool->workers = calloc((size_t)pool->threads, sizeof *pool->workers);
    if (!pool->workers)
        return;
    if (pool->started == 0)
        pool->processors = ort_cpu_count_whole();
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool->started < pool->threads - 1) {
        worker *w = &pool->workers[pool->started];
        *w = (worker){.pool = pool, .index = pool->started + 1};
        if (!start_worker(pool, w))
            break; /* the loop is done by fewer threads: slower, never wrong */
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
    pool->range_count = pool->threads < RANGES ? pool->threads : RANGES;
    pool->pin = pin;
    ort_contention_init(&pool->contention, pool->threads);
    atomic_init(&pool->width, pool->threads);
    return pool;
}

ort_pool *ort_pool_new_of(int threads, bool pin, const ort_threads *makers)
{
    ort_pool *pool = ort_pool_new(threads, pin);
    if (!pool || !makers)
        return pool;
    pool->makers = makers;
    start_workers(pool);
    if (pool->started == pool->threads - 1)
        return pool;
    ort_pool_free(pool);
    return NULL;
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
        if (pool->makers)
            pool->makers->join(pool->makers->arg, pool->workers[i].made);
        else
            pthread_join(pool->workers[i].handle, NULL);
    free(pool->workers);
    free(pool);
}

int ort_pool_threads(const ort_pool *pool)
{
    return pool ? pool->threads : 1;
}

static void publish_width(ort_pool *pool)
{
    atomic_store(&pool->look_at, pool->contention.until);
    atomic_store(&pool->width, pool->contention.width);
    atomic_store(&pool->wary, pool->contention.trial);
}

/* Under `busy`. What the system tells of idle processors is true of the whole machine only. */
static void look_for_room(ort_pool *pool, uint64_t now)
{
    if (!ort_contention_due(&pool->contention, now))
        return;
    int running = pool->processors ? ort_cpu_count_running() : 0;
    int idle = pool->processors > running ? pool->processors - running : 0;
    ort_contention_look(&pool->contention, now, running > 0 ? idle : -1);
    publish_width(pool);
}

/* Whether loops may be shared; where only one thread may run, room is looked for when the time has
 * come. */
static bool has_width(ort_pool *pool)
{
    if (atomic_load_explicit(&pool->width, memory_order_relaxed) > 1)
        return true;
    uint64_t now = ort_clock_ns();
    if (now < atomic_load_explicit(&pool->look_at, memory_order_relaxed) ||
        atomic_exchange(&pool->busy, true))
        return false;
    look_for_room(pool, now);
    atomic_store(&pool->busy, false);
    return atomic_load_explicit(&pool->width, memory_order_relaxed) > 1;
}

/* Whether the last run like this one had so little to share that it takes a stream of them to wake
 * workers for. */
static bool is_short(const ort_pool_demand *demand)
{
    return demand && demand->last_ns > 0 && demand->last_ns < WAKE_NS;
}

static bool may_wake(ort_pool *pool, const ort_pool_demand *demand)
{
    return !is_short(demand) ||
           (demand->last_ns >= STREAM_NS && demand->spin_ns >= SPIN_LEAST_NS &&
            atomic_load_explicit(&pool->stream_ns, memory_order_relaxed) >= WAKE_NS);
}

static bool is_worth_waking(ort_pool *pool, const ort_pool_demand *demand)
{
    return may_wake(pool, demand) && !(demand && demand->spell.alone);
}

/* Whether a worker is awake, who takes part at once. */
static bool is_helped(ort_pool *pool)
{
    return (int)atomic_load_explicit(&pool->sleepers, memory_order_relaxed) <
           atomic_load_explicit(&pool->started, memory_order_relaxed);
}

/* What a loop has to take one thread to be shared. */
static uint64_t least_shared(ort_pool *pool, const ort_pool_demand *demand)
{
    return is_short(demand) ? SHARED_NS : ALONE_NS;
}

/* The longest gap that workers bridge in a run like this one: of short ones, as long as they gain
 * in three or four of them. */
static uint64_t longest_gap(const ort_pool_demand *demand, uint64_t most)
{
    uint64_t gap = is_short(demand) ? 2 * demand->last_ns : most;
    gap = gap > SPIN_LEAST_NS ? gap : SPIN_LEAST_NS;
    return gap < most ? gap : most;
}

/* What workers wait for a loop of this run; unknown gaps may be as long as allowed. Runs that don't
 * wake them do without them, and where others may still be about, their processors are not spun
 * away. */
static uint64_t spin_of(ort_pool *pool, int spin_us, const ort_pool_demand *demand)
{
    uint64_t most = spin_us > 0 ? (uint64_t)spin_us * 1000 : 0;
    uint64_t gap = demand && demand->last_ns ? demand->last_gap_ns * 3 / 2 : most;
    if (!is_worth_waking(pool, demand))
        return 0;
    if (gap < SPIN_LEAST_NS || atomic_load_explicit(&pool->wary, memory_order_relaxed))
        gap = SPIN_LEAST_NS;
    return gap < most ? gap : most;
}

/* Whether this run follows the one before it at once: the time between them is the stream's. */
static void note_stream(ort_pool *pool, const ort_pool_demand *demand, uint64_t now)
{
    uint64_t left = atomic_load_explicit(&pool->left, memory_order_relaxed);
    if (now < left + longest_gap(demand, BETWEEN_NS))
        return;
    atomic_store_explicit(&pool->stream_ns, 0, memory_order_relaxed);
    caller_watch.since = 0;
}

static void enter_demand(ort_pool *pool, int spin_us, ort_pool_demand *demand, uint64_t now)
{
    uint64_t most = spin_us > 0 ? (uint64_t)spin_us * 1000 : 0;
    demand->entered = now;
    demand->spin_ns = longest_gap(demand, most);
    demand->tried = demand->last_ns > 0 && demand->last_ns < TRIED_NS &&
                    may_wake(pool, demand) && pool->started > 0 &&
                    atomic_load_explicit(&pool->width, memory_order_relaxed) > 1;
    demand->narrow = atomic_load_explicit(&pool->width, memory_order_relaxed) == 1;
    if (!demand->tried)
        demand->spell.alone = false;
    bool helped = is_helped(pool) && demand->last_ns >= STREAM_NS;
    demand->whole = demand->spell.alone || (!is_worth_waking(pool, demand) && !helped &&
                                            ++demand->whole_runs % WHOLE_MOST != 0);
    demand->outer = current_demand;
    demand->sum_ns = demand->gap_ns = demand->loop_end = 0;
    current_demand = demand;
}

void ort_pool_enter(ort_pool *pool, int spin_us, ort_pool_demand *demand)
{
    if (!pool)
        return;
    if (pool->threads > 1) {
        uint64_t now = ort_clock_ns();
        note_stream(pool, demand, now);
        if (demand)
            enter_demand(pool, spin_us, demand, now);
        /* Here as well: a loop that is cut by the width may be one task as long as it is 1. */
        if (is_worth_waking(pool, demand))
            (void)has_width(pool);
        atomic_store_explicit(&pool->spin_ns, spin_of(pool, spin_us, demand), memory_order_relaxed);
    }
    atomic_fetch_add(&pool->active, 1);
}

static void leave_demand(ort_pool *pool, ort_pool_demand *demand, uint64_t now)
{
    demand->narrow |= atomic_load_explicit(&pool->width, memory_order_relaxed) == 1;
    /* Loops of one task are not in the sum. A run that seems to have little to share for that alone
     * would never look for room again. */
    if (!demand->whole && !demand->narrow)
        demand->last_ns = demand->sum_ns;
    if (!demand->whole)
        demand->last_gap_ns = demand->gap_ns;
    current_demand = demand->outer;
    if (demand->tried)
        ort_spell_note(&demand->spell, now - demand->entered);
    if (now - demand->entered > 4 * demand->last_ns)
        atomic_store_explicit(&pool->stream_ns, 0, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&pool->stream_ns, demand->last_ns, memory_order_relaxed);
}

void ort_pool_leave(ort_pool *pool, ort_pool_demand *demand)
{
    if (!pool)
        return;
    if (pool->threads > 1) {
        uint64_t now = ort_clock_ns();
        if (demand)
            leave_demand(pool, demand, now);
        atomic_store_explicit(&pool->left, now, memory_order_relaxed);
    }
    atomic_fetch_sub(&pool->active, 1);
}

/* A shared loop of the run begins: the gap before it, also that since the run before this one. */
static void note_gap(ort_pool *pool, ort_pool_demand *demand, uint64_t start)
{
    uint64_t before = demand->loop_end, most = demand->spin_ns;
    if (before == 0) {
        before = atomic_load_explicit(&pool->ended, memory_order_relaxed);
        most = most < BETWEEN_NS ? most : BETWEEN_NS;
    }
    uint64_t gap = start > before ? start - before : 0;
    if (gap > demand->gap_ns && gap <= most)
        demand->gap_ns = gap;
}

/* `now`, after the caller's own share, which `took` so many nanoseconds; returns when it saw the
 * end, or looked at the clock last before. */
static uint64_t wait_until_done(ort_pool *pool, uint64_t now, uint64_t took)
{
    uint64_t end = now + (took > SPIN_LEAST_NS ? took : SPIN_LEAST_NS);
    if (atomic_load_explicit(&pool->wary, memory_order_relaxed))
        end = now + SPIN_LEAST_NS;
    for (; now < end; now = ort_clock_ns())
        for (int i = 0; i < SPIN_CHECKS; i++) {
            if (atomic_load_explicit(&pool->pending, memory_order_acquire) == 0)
                return now;
            relax();
        }
    atomic_store(&pool->caller_waits, 1);
    unsigned pending;
    while ((pending = atomic_load(&pool->pending)) != 0)
        futex_wait(&pool->pending, pending);
    atomic_store(&pool->caller_waits, 0);
    return ort_clock_ns();
}

/* Before workers are woken, and where the caller has come to one that spins. While
 * room is tried for beside others, threads go wherever one is free. Under `busy`. */
static void keep_apart(ort_pool *pool)
{
    if (pool->pin || pool->makers || pool->threads > APART_MOST)
        return;
    int processor = pool->contention.trial && pool->contention.blind ? -1 : sched_getcpu();
    for (int i = 0; i < pool->started; i++) {
        worker *w = &pool->workers[i];
        ort_apart_keep(&w->apart, w->handle, pool->threads, processor);
    }
}

/* Those that may not take part sleep as well: they don't count. */
static bool wake_workers(ort_pool *pool, uint32_t most)
{
    int width = atomic_load_explicit(&pool->width, memory_order_relaxed);
    int asleep = (int)atomic_load(&pool->sleepers) - (pool->started + 1 - width);
    if (asleep <= 0)
        return false;
    if (atomic_load_explicit(&pool->woken, memory_order_relaxed) == 0)
        atomic_store(&pool->woken, ort_clock_ns());
    futex_wake_some(&pool->epoch, (uint32_t)asleep < most ? asleep : (int)most, width);
    return true;
}

/* Whether processors are free again that others had: they were there only in passing, which is no
 * reason to leave the processors to them. Under `busy`. */
static bool have_others_gone(ort_pool *pool)
{
    int running = pool->processors ? ort_cpu_count_running() : 0;
    int awake = pool->started + 1 - (int)atomic_load(&pool->sleepers);
    return running > 0 && running - awake + pool->contention.width <= pool->processors;
}

/* Under `busy`, after a loop that took from `start` to `now`, and `known` at other times. */
static void note_loss(ort_pool *pool, uint64_t start, uint64_t now, uint64_t known)
{
    if (now < caller_watch.since + WATCH_NS && (!known || now < start + known + LATE_NS) &&
        atomic_load_explicit(&pool->lost, memory_order_relaxed) == 0)
        return;
    uint64_t lost = ort_watch_lost(&caller_watch) + atomic_exchange(&pool->lost, 0);
    if (lost > PASSING_NS && have_others_gone(pool))
        lost = PASSING_NS;
    ort_contention_note(&pool->contention, now, lost);
    publish_width(pool);
    look_for_room(pool, now);
}

typedef struct shared_loop {
    uint32_t count;
    ort_task_fn *fn;
    void *arg;
    bool wake;           /* sleeping workers */
    uint64_t start, end; /* of the clock */
} shared_loop;

/* What one thread would need for the loop, as far as the caller's share tells; 0: it had none. */
static uint64_t run_shared(ort_pool *pool, shared_loop *l)
{
    pool->fn = l->fn;
    pool->arg = l->arg;
    pool->budget = ort_budget_current();
    pool->fp_control = ort_cpu_get_fp();
    atomic_store_explicit(&pool->pending, l->count, memory_order_relaxed);
    fill_ranges(pool, l->count);
    keep_apart(pool);
    if (!l->wake) /* whoever falls asleep now misses it */
        atomic_store_explicit(&pool->epoch, pool->epoch + 1, memory_order_release);
    else {
        atomic_fetch_add(&pool->epoch, 1);
        if (wake_workers(pool, l->count - 1))
            l->start = ort_clock_ns();
    }
    uint32_t taken = run_tasks(pool, 0, NULL);
    uint64_t now = ort_clock_ns(), took = now - l->start;
    l->end = wait_until_done(pool, now, took);
    return taken ? (uint64_t)((double)took / taken * l->count) : 0;
}

static void run_alone(size_t count, ort_task_fn *fn, void *arg)
{
    ort_budget *budget = ort_budget_current();
    for (size_t task = 0; task < count && !ort_budget_over(budget); task++)
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

static uint64_t hash_of(const void *key, size_t count, ort_task_fn *fn)
{
    uint64_t hash = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
    hash = (hash ^ (uint64_t)(uintptr_t)fn ^ (uint64_t)count << 32) * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 32;
}

/* Follows short times at once and long ones slowly: a time is long by accident only. */
static void remember(_Atomic uint64_t *loop, uint64_t tag, uint64_t known, uint64_t took)
{
    const uint64_t most = ((uint64_t)1 << NS_BITS) - 1;
    if (known && took > known)
        took = known + (took - known) / 8;
    took = took < most ? took : most;
    atomic_store_explicit(loop, tag << NS_BITS | took, memory_order_relaxed);
}

/* What is remembered of a loop under this tag, or 0. */
static uint64_t recall(const _Atomic uint64_t *loop, uint64_t tag)
{
    uint64_t known = atomic_load_explicit(loop, memory_order_relaxed);
    return known >> NS_BITS == tag ? known & (((uint64_t)1 << NS_BITS) - 1) : 0;
}

/* A loop whatever its cut: the one under this key that ran last. */
static void remember_key(ort_pool *pool, const void *key, uint64_t took)
{
    uint64_t hash = hash_of(key, 0, NULL);
    remember(&pool->loops[hash % LOOPS], hash >> NS_BITS, 0, took);
}

/* In one of WHOLE_MOST times it is cut all the same, so that its time is known anew. */
int ort_pool_width(ort_pool *pool, const void *key)
{
    static _Thread_local uint32_t asked;
    int width = pool ? atomic_load_explicit(&pool->width, memory_order_relaxed) : 1;
    if (width == 1 || !key)
        return width;
    if (current_demand && current_demand->whole)
        return 1;
    uint64_t hash = hash_of(key, 0, NULL);
    uint64_t known = recall(&pool->loops[hash % LOOPS], hash >> NS_BITS);
    return known > 0 && known < least_shared(pool, current_demand) && ++asked % WHOLE_MOST != 0
               ? 1
               : width;
}

/* What sharing a loop saves that takes one thread so long, beyond what handing it on costs. */
static uint64_t saved_by_sharing(ort_pool *pool, uint64_t took)
{
    uint64_t width = (uint64_t)atomic_load_explicit(&pool->width, memory_order_relaxed);
    uint64_t saved = took - took / width;
    uint64_t cost = least_shared(pool, current_demand);
    return saved > cost ? saved - cost : 0;
}

/* Take a loop's tasks before workers are started, as long as it isn't worth starting them for what
 * was missed and is, were the other tasks as long; returns how many were taken. */
static size_t run_unhelped(ort_pool *pool, size_t count, shared_loop *l)
{
    ort_budget *budget = ort_budget_current();
    uint64_t whole = 0;
    size_t done = 0;
    for (l->end = l->start; done < count && pool->missed + whole < START_NS; done++) {
        if (!ort_budget_over(budget))
            l->fn(l->arg, done, 0);
        l->end = ort_clock_ns();
        double each = (double)(l->end - l->start) / (double)(done + 1);
        whole = saved_by_sharing(pool, (uint64_t)(each * (double)count));
    }
    pool->missed += whole;
    return done;
}

static uint64_t share_parts(ort_pool *pool, size_t count, shared_loop *l)
{
    if (count < UINT32_MAX) {
        l->count = (uint32_t)count;
        return run_shared(pool, l);
    }
    ort_task_fn *fn = l->fn;
    void *arg = l->arg;
    for (size_t first = 0; first < count; first += INT32_MAX) {
        shifted part = {fn, arg, first};
        size_t size = count - first < INT32_MAX ? count - first : INT32_MAX;
        l->fn = run_shifted;
        l->arg = &part;
        l->count = (uint32_t)size;
        (void)run_shared(pool, l);
    }
    return 0;
}

static uint64_t share(ort_pool *pool, size_t count, shared_loop *l)
{
    if (pool->started == pool->threads - 1)
        return share_parts(pool, count, l);
    size_t done = run_unhelped(pool, count, l);
    uint64_t took = l->end - l->start, more;
    if (done == count)
        return took;
    start_workers(pool);
    shifted rest = {l->fn, l->arg, done};
    l->fn = run_shifted;
    l->arg = &rest;
    l->start = ort_clock_ns();
    more = share_parts(pool, count - done, l);
    return more ? took + more : 0;
}

/* Share a loop, when no other caller's runs; what one thread would need for it, or 0. */
static uint64_t share_alone(ort_pool *pool, size_t count, ort_task_fn *fn, void *arg, bool wake,
                            uint64_t known)
{
    if (atomic_exchange(&pool->busy, true)) {
        run_alone(count, fn, arg);
        return 0;
    }
    if (caller_watch.since == 0)
        ort_watch_begin(&caller_watch);
    uint64_t start = ort_clock_ns(), took;
    shared_loop l = {.fn = fn, .arg = arg, .wake = wake, .start = start};
    if (current_demand)
        note_gap(pool, current_demand, start);
    took = share(pool, count, &l);
    if (current_demand)
        current_demand->loop_end = l.end;
    atomic_store_explicit(&pool->ended, l.end, memory_order_relaxed);
    note_loss(pool, start, l.end, known);
    atomic_store_explicit(&pool->busy, false, memory_order_release);
    return took;
}

/* The clock costs as much as a small loop: a time that is known is taken again now and then. */
static uint64_t time_alone(size_t count, ort_task_fn *fn, void *arg, uint64_t known)
{
    static _Thread_local uint32_t dice;
    dice = dice * 1664525u + 1013904223u;
    if (known && dice >> 28 != 0) {
        run_alone(count, fn, arg);
        return known;
    }
    uint64_t start = ort_clock_ns();
    run_alone(count, fn, arg);
    return ort_clock_ns() - start;
}

void ort_pool_run_again(ort_pool *pool, const void *key, size_t count, ort_task_fn *fn, void *arg)
{
    ort_pool_demand *demand = current_demand;
    if (!pool || pool->threads == 1 || count <= 1 || (demand && demand->whole) ||
        atomic_load_explicit(&pool->busy, memory_order_relaxed)) {
        run_alone(count, fn, arg);
        return;
    }
    uint64_t hash = hash_of(key, count, fn), tag = hash >> NS_BITS, known, took;
    _Atomic uint64_t *loop = &pool->loops[hash % LOOPS];
    known = key ? recall(loop, tag) : 0;
    bool wake = is_worth_waking(pool, demand), helped = wake || is_helped(pool);
    if (!helped || (known > 0 && known < least_shared(pool, demand)) || !has_width(pool))
        took = time_alone(count, fn, arg, known);
    else
        took = share_alone(pool, count, fn, arg, wake, known);
    if (key && took && took != known) {
        remember(loop, tag, known, took);
        remember_key(pool, key, recall(loop, tag));
    }
    if (!took) /* the caller had no task of it */
        took = known;
    if (demand)
        demand->sum_ns += took < SHARED_NS ? 1 : took;
}

void ort_pool_run(ort_pool *pool, size_t count, ort_task_fn *fn, void *arg)
{
    ort_pool_run_again(pool, NULL, count, fn, arg);
}
