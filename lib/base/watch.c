/* watch.c - see watch.h. Processor time comes from the thread's clock: that of getrusage is as old
 * as the last tick, milliseconds. */
#define _GNU_SOURCE 1
#include "base/watch.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

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

/* "ran waited slices", in nanoseconds; false where the kernel keeps no account. */
static bool read_queued(uint64_t *waited)
{
    char text[80];
    uint64_t ran, slices;
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    return sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &ran, waited, &slices) == 3 &&
           slices > 0;
}

uint64_t ort_watch_queued(uint64_t most)
{
    static _Thread_local uint64_t before;
    static _Thread_local bool asked;
    uint64_t now, then = before;
    if (!read_queued(&now))
        return most;
    before = now;
    if (!asked) {
        asked = true;
        return 0;
    }
    return now - then < most ? now - then : most;
}

uint64_t ort_watch_lost(ort_watch *w)
{
    ort_watch then = *w;
    ort_watch_begin(w);
    uint64_t passed = w->since - then.since, ran = w->ran - then.ran;
    if (then.since == 0 || w->waits != then.waits || passed < ran + INTERRUPTS_NS)
        return 0;
    return ort_watch_queued(passed - ran);
}
