/* watch.c - see watch.h. Processor time comes from the thread's clock: that of getrusage is as old
 * as the last tick, milliseconds. */
#define _GNU_SOURCE 1
#include "base/watch.h"

#include <sys/resource.h>
#include <time.h>

#include "base/log.h"

enum { INTERRUPTS_NS = 50000 };

void ort_watch_begin(ort_watch *w)
{
    struct timespec ran = {0};
    struct rusage usage = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
    getrusage(RUSAGE_THREAD, &usage);
    *w = (ort_watch){.since = ort_clock_ns(), .waits = usage.ru_nvcsw,
                     .ran = (uint64_t)ran.tv_sec * 1000000000u + (uint64_t)ran.tv_nsec};
}

uint64_t ort_watch_lost(ort_watch *w)
{
    ort_watch then = *w;
    ort_watch_begin(w);
    uint64_t passed = w->since - then.since, ran = w->ran - then.ran;
    if (then.since == 0 || w->waits != then.waits || passed < ran + INTERRUPTS_NS)
        return 0;
    return passed - ran;
}
