/* pool.h - one blocking thread pool per environment.
 *
 * A parallel loop hands out task numbers 0..count-1, a share to each thread; the caller takes part.
 * What a task computes may depend on its number only, never on the thread that runs it: results are
 * bit-identical for every thread count. Between loops workers spin for as long as the gaps between
 * the loops of the last run were, and then sleep; they flush denormals while they work when the
 * loop's caller does. Where other processes want the processors, fewer threads take part, at last
 * the caller alone. When the caller's budget is over (budget.h), tasks that nobody has begun are
 * left out.
 */
#ifndef ORT_BASE_POOL_H
#define ORT_BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/spell.h"
#include "ort.h"

typedef struct ort_pool ort_pool;

/* task: number of the task; thread: 0..ort_pool_threads()-1, stable in one task, for scratch. */
typedef void ort_task_fn(void *arg, size_t task, int thread);

/* `threads` in total, the caller of a loop included: threads-1 workers are started, as soon as
 * sharing would have saved what that costs (a third of a millisecond). pin: bind workers to
 * processors. NULL when memory is exhausted. */
ort_pool *ort_pool_new(int threads, bool pin);
/* The same with workers that the program makes, all of them at once. NULL as well where it makes
 * fewer. `makers` is read while the pool lives; NULL: as ort_pool_new. */
ort_pool *ort_pool_new_of(int threads, bool pin, const ort_threads *makers);
void ort_pool_free(ort_pool *pool);
int ort_pool_threads(const ort_pool *pool);
/* How many of them would take part in a loop under this key now: fewer while others want the same
 * processors (contention.h), and one where it, or its run, stays with the caller for its shortness:
 * parts cost time, too. For cutting loops, where results don't depend on the cut; NULL pool: 1. */
int ort_pool_width(ort_pool *pool, const void *key);

/* Run fn(arg, t, thread) for every t in [0, count) and return when all are done. A NULL pool, one
 * thread, one task, or a pool that is busy with another caller's loop runs them on the caller
 * (thread 0). Nested calls from inside a task run serially. */
void ort_pool_run(ort_pool *pool, size_t count, ort_task_fn *fn, void *arg);
/* The same loop as before under this key (of one step of a plan, say): how long it took says
 * whether it is worth sharing. NULL: not known again. */
void ort_pool_run_again(ort_pool *pool, const void *key, size_t count, ort_task_fn *fn, void *arg);

/* What is remembered of runs that are alike; all zero at first. One run at a time. */
typedef struct ort_pool_demand {
    uint64_t last_ns, sum_ns; /* what the loops worth sharing take one thread: last run, this run */
    uint64_t last_gap_ns, gap_ns; /* longest between two shared loops that a spin can bridge */
    uint64_t spin_ns;         /* as allowed */
    uint64_t entered;         /* this run */
    uint64_t loop_end;        /* of this run's last shared loop, or 0 */
    uint32_t whole_runs;      /* of those whose loops are not cut, as they stay with the caller */
    bool whole;               /* this run is one */
    bool narrow;              /* for a part of it at least the pool had one thread for all */
    bool tried;               /* ... with all threads, or alone, as `spell` says */
    ort_spell spell;
    struct ort_pool_demand *outer;
} ort_pool_demand;

/* Between these two calls workers may spin for at most `spin_us` microseconds for the next loop:
 * half as long again as the longest gap of the last run like this one, all of it where there was
 * none. Sleeping ones aren't woken where that run was too short for it, and runs don't follow each
 * other at once. demand may be NULL; both
 * calls take the same, on the same thread. */
void ort_pool_enter(ort_pool *pool, int spin_us, ort_pool_demand *demand);
void ort_pool_leave(ort_pool *pool, ort_pool_demand *demand);

#endif
