/* watch.h - for how long a thread was ready and did not run: what others on its processor took.
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

#endif
