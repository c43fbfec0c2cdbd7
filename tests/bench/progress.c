/* progress.c - how far the benchmark is: on a terminal the model at hand and the time that is left,
 * and a line for each model that is done.
 *
 * Time left assumes that models still to come take as long as those before.
 */
#include "../harness.h"
#include "bench.h"

static const char *const erase = "\r\033[K";

void progress_next(const progress *p, const char *name, int threads)
{
    char left[40] = "";
    double passed_s = (harness_now_ms() - p->begin_ms) / 1000;
    int minutes = p->done ? (int)(passed_s / (double)p->done * (double)(p->total - p->done) / 60)
                          : 0;
    if (!isatty(STDERR_FILENO))
        return;
    if (p->done)
        snprintf(left, sizeof left, ", %d min left", minutes + 1);
    fprintf(stderr, "%s[%zu of %zu%s] %s, threads %d", erase, p->done + 1, p->total, left, name,
            threads);
}

void progress_done(progress *p, const measure *m, int threads)
{
    p->done++;
    fprintf(stderr, "%s%3zu/%zu %-38s %d %-13s", isatty(STDERR_FILENO) ? erase : "", p->done,
            p->total, m->name, threads, m->family);
    for (int i = 0; i < SIDES; i++) {
        const side *s = &m->side[i];
        if (s->state == SIDE_FINE || s->state == SIDE_WRONG)
            fprintf(stderr, " %9.4f%s", s->best, s->state == SIDE_WRONG ? "x" : " ");
        else
            fprintf(stderr, " %9s ", s->state == SIDE_FAILED ? "failed" : "-");
    }
    fprintf(stderr, "%s\n", m->differs ? " OURS DIFFERS" : "");
}
