/* contention.c - see contention.h.
 *
 * Lost time is a debt of which a quarter of the time that passes is forgiven: work of the system
 * that takes a twentieth of each processor never adds up, while two processes on one processor take
 * half of it from each other. What is lost beyond that in one or two slices of the scheduler
 * (milliseconds) is more than sharing gains.
 */
#include "base/contention.h"

enum {
    FORGIVEN = 4,            /* one part in so many of the time that passes */
    DEBT_NS = 2000000,       /* that narrows */
    TRIAL_DEBT_NS = 700000,  /* the same while an attempt is young */
    LOOK_NS = 16000000,      /* between looks that find no room */
    RAISE_NS = 16000000,     /* between two steps up */
    SETTLED_NS = 200000000,  /* an attempt that lasted so long was right */
    PAUSE_NS = 8000000,      /* the first, and the longest */
    PAUSE_MOST_NS = 1000000000,
    PAUSE_NONE_IDLE_NS = 128000000 /* the first before an attempt where no processor is idle */
};

void ort_contention_init(ort_contention *c, int threads)
{
    *c = (ort_contention){
        .threads = threads, .width = threads, .step = 1, .pause = {PAUSE_NS, PAUSE_NS}};
}

static void narrow(ort_contention *c, uint64_t now)
{
    uint64_t *pause = &c->pause[c->blind];
    if (c->trial)
        *pause = *pause < PAUSE_MOST_NS / 2 ? 2 * *pause : PAUSE_MOST_NS;
    c->width -= c->width < 8 ? 1 : c->width / 4;
    c->step = 1;
    c->trial = false;
    c->debt = 0;
    c->narrowed = now;
    c->until = now + PAUSE_NS;
}

void ort_contention_note(ort_contention *c, uint64_t now, uint64_t lost)
{
    uint64_t forgiven = now > c->noted ? (now - c->noted) / FORGIVEN : 0;
    c->debt = (c->debt > forgiven ? c->debt - forgiven : 0) + lost;
    c->noted = now;
    if (c->width == 1)
        c->debt = 0;
    else if (c->debt > (c->trial ? TRIAL_DEBT_NS : DEBT_NS))
        narrow(c, now);
    else if (c->trial && now - c->raised > SETTLED_NS) {
        c->trial = false;
        c->pause[0] = c->pause[1] = PAUSE_NS;
    }
}

bool ort_contention_due(const ort_contention *c, uint64_t now)
{
    return c->width < c->threads && now >= c->until;
}

void ort_contention_look(ort_contention *c, uint64_t now, int idle)
{
    uint64_t pause = c->pause[idle <= 0];
    int more = c->step < c->threads - c->width ? c->step : c->threads - c->width;
    if (idle == 0 && pause < PAUSE_NONE_IDLE_NS)
        pause = PAUSE_NONE_IDLE_NS;
    if (now < c->narrowed + pause) {
        c->until = now + LOOK_NS;
        return;
    }
    c->width += idle > 0 && idle < more ? idle : more;
    c->step = 2 * more;
    c->trial = true;
    c->blind = idle <= 0;
    c->raised = c->noted = now;
    c->until = now + RAISE_NS;
    c->debt = 0;
}
