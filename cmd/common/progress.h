/* progress.h - a line on the terminal for work longer than a second; silent elsewhere. */
#ifndef COMMON_PROGRESS_H
#define COMMON_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    const char *what;
    uint64_t begin_ns, shown_ns;
    bool enabled, visible;
} progress;

/* Shows on stderr when that is a terminal, unless `off` or NO_COLOR=... with TERM=dumb. */
void progress_begin(progress *p, const char *what, bool off);
/* total 0: unknown. Cheap: looks at the clock, writes at most ten times a second. */
void progress_step(progress *p, uint64_t done, uint64_t total);
void progress_end(progress *p);

#endif
