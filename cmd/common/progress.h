/* progress.h - a line on the terminal for work longer than a second, with the time that is left
 * where it can be told; silent elsewhere. */
#ifndef COMMON_PROGRESS_H
#define COMMON_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    const char *what;
    uint64_t begin_ns, shown_ns;
    bool enabled, visible;
    struct progress *outer; /* of the work that this is a part of */
    bool heads; /* its share and time stand before those of its parts */
    double share;
    /* of work that may say nothing until it is done */
    bool waiting, done;
    pthread_t thread;
    pthread_cond_t ended;
} progress;

/* Shows on stderr when that is a terminal, unless `off` or TERM=dumb. */
void progress_begin(progress *p, const char *what, bool off);
/* total 0: unknown. Cheap: looks at the clock, writes at most ten times a second. */
void progress_step(progress *p, uint64_t done, uint64_t total);
/* The same of a share, 0 to 1: "runs 37 % (1234)". */
void progress_share(progress *p, uint64_t done, double share);
/* ... of a stage of the work, an ort_share_fn whose arg is a progress: "quantizing 37 %". Another
 * stage begins anew. Nothing happens while other work is shown. */
void progress_stage(void *p, const char *what, double share);
/* Work of several parts, each of which shows what it does: "choosing 37 %, up to 40 s left:
 * calibrating 80 % (51)". */
void progress_whole(progress *p, const char *what, bool off);
/* So much of it is done, 0 to 1; parts that may not be needed count until they are passed over. */
void progress_part(progress *p, double share);
/* Seconds that pass until the first step or the end: "reading net.onnx 3 s", by a thread of its
 * own. */
void progress_wait(progress *p, const char *what, bool off);
void progress_end(progress *p);
/* Take the line away before something else is said; the next step shows it again. */
void progress_hide(void);

#endif
