/* contention.h - how many threads a pool's loops may use while others want the same processors.
 *
 * Threads that have to wait for a processor make a shared loop slower than one thread would be: its
 * end waits for the one that was put aside. Whoever runs the loops notes here what time threads
 * have lost so. Too much of it, and the width shrinks; after a pause that doubles with every
 * attempt that fails soon, it may grow again where processors are idle, or where nobody knows. Time
 * enters as an argument (nanoseconds of a clock that only rises), so every decision is repeatable.
 * One caller at a time.
 */
#ifndef ORT_BASE_CONTENTION_H
#define ORT_BASE_CONTENTION_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ort_contention {
    int threads, width; /* at most; now, 1..threads */
    int step;           /* by how many the next attempt widens */
    bool trial;         /* it has widened lately */
    uint64_t until;     /* narrow: when to look for room */
    uint64_t narrowed;  /* when it was narrowed last */
    bool blind;         /* that was without an idle processor in sight */
    uint64_t pause[2];  /* that a failed attempt costs: one with an idle processor, a blind one */
    uint64_t raised;    /* when it was widened last */
    uint64_t noted, debt; /* last note; lost time that is not forgiven yet */
} ort_contention;

void ort_contention_init(ort_contention *c, int threads);
/* Threads of the loops were ready, and did not run, for `lost` ns since the last note. */
void ort_contention_note(ort_contention *c, uint64_t now, uint64_t lost);
/* Whether it is time to look for idle processors, and what was found: their number, -1 unknown.
 * None: others may be of so little weight that they hardly disturb, so that is tried as well, only
 * more rarely. */
bool ort_contention_due(const ort_contention *c, uint64_t now);
void ort_contention_look(ort_contention *c, uint64_t now, int idle);

#endif
