/* watch.h - for how long a thread was ready and did not run: what others on its processor took.
 *
 * Two clocks tell that a thread did not run: the clock on the wall less its processor time. What a
 * hypervisor takes from the whole machine is in that gap too, and says nothing of others on this
 * processor, so it doesn't count: the kernel knows how long a thread waited on a run queue
 * (Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat), and no more than that is lost.
 * Where the kernel doesn't say, all of the gap is.
 */
#ifndef ORT_BASE_WATCH_H
#define ORT_BASE_WATCH_H

#include <stdint.h>

typedef struct ort_watch { /* of one thread; all zero: not begun */
    uint64_t since, ran;   /* ns of the clock; of processor time by then */
    long waits;            /* how often it had gone to sleep of its own will */
} ort_watch;

/* Both look at the calling thread, and take about a microsecond. */
void ort_watch_begin(ort_watch *w);
/* Nanoseconds since it began, and begins again. 0 where the thread slept meanwhile (for a page,
 * say), which says nothing of others, and for less than interrupts take. */
uint64_t ort_watch_lost(ort_watch *w);
/* Nanoseconds that the calling thread waited for a processor since it asked last, at most `most`,
 * which is the answer where the kernel doesn't say; 0 the first time. Some microseconds. */
uint64_t ort_watch_queued(uint64_t most);

#endif
