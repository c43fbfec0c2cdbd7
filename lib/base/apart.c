/* apart.c - see apart.h. */
#define _GNU_SOURCE 1
#include "base/apart.h"

#include <sched.h>
#include <string.h>

_Static_assert(sizeof(cpu_set_t) == ORT_APART_PROCESSORS / 8, "masks are copied as they are");

/* Whether the affinity is still ours to change; kept in `now`. */
static bool is_ours(ort_apart *a, pthread_t worker, int threads, cpu_set_t *now)
{
    cpu_set_t ours;
    if (pthread_getaffinity_np(worker, sizeof *now, now) != 0)
        return false;
    memcpy(&ours, a->ours, sizeof ours);
    if (a->begun)
        return CPU_EQUAL(now, &ours);
    a->begun = true;
    memcpy(a->before, now, sizeof a->before);
    return CPU_COUNT(now) >= threads;
}

void ort_apart_keep(ort_apart *a, pthread_t worker, int threads, int processor)
{
    cpu_set_t set;
    if (a->left_alone || processor == (a->begun ? a->processor : -1))
        return;
    if (!is_ours(a, worker, threads, &set)) {
        a->left_alone = true;
        return;
    }
    memcpy(&set, a->before, sizeof set);
    if (processor >= 0 && processor < ORT_APART_PROCESSORS)
        CPU_CLR(processor, &set);
    a->processor = processor;
    a->left_alone = CPU_COUNT(&set) == 0 || pthread_setaffinity_np(worker, sizeof set, &set) != 0;
    memcpy(a->ours, &set, sizeof a->ours);
}
