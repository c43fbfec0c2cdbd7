/* progress.c - one line, rewritten in place, that goes away when the work is done. */
#include "common/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void progress_begin(progress *p, const char *what, bool off)
{
    const char *term = getenv("TERM");
    memset(p, 0, sizeof *p);
    p->what = what;
    p->begin_ns = now_ns();
    p->enabled = !off && isatty(STDERR_FILENO) && (term == NULL || strcmp(term, "dumb") != 0);
}

void progress_step(progress *p, uint64_t done, uint64_t total)
{
    if (!p->enabled)
        return;
    uint64_t t = now_ns();
    if (t - p->begin_ns < 1000000000u || t - p->shown_ns < 100000000u)
        return;
    p->shown_ns = t;
    p->visible = true;
    if (total > 0)
        fprintf(stderr, "\r%s %3.0f%% (%" PRIu64 "/%" PRIu64 ") ", p->what,
                100.0 * (double)done / (double)total, done, total);
    else
        fprintf(stderr, "\r%s %" PRIu64 " ", p->what, done);
    fflush(stderr);
}

void progress_end(progress *p)
{
    if (p->visible)
        fprintf(stderr, "\r%*s\r", 60, "");
    p->visible = false;
}
