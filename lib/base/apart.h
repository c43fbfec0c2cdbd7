/* apart.h - keep a pool's worker off the processor on which its caller runs.
 *
 * A scheduler likes to wake a thread beside the one that wakes it, and virtual machines whose idle
 * processors the hypervisor has taken back look to it as if none were idle. Two threads of a loop
 * then share one processor for milliseconds while another one idles, since nobody moves threads
 * about at that pace. So the processor of the caller is left out of the worker's affinity. Only
 * ever that one, and only of a thread that the pool has started: what it was given at its start
 * (the affinity of the program) isn't exceeded, and when somebody else sets it (taskset, a change
 * of the cpuset) it is theirs from then on.
 */
#ifndef ORT_BASE_APART_H
#define ORT_BASE_APART_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { ORT_APART_PROCESSORS = 1024 }; /* in larger machines workers are left alone */

typedef struct ort_apart { /* of one worker; all zero at first */
    bool begun, left_alone;
    int processor;                                /* left out */
    uint64_t before[ORT_APART_PROCESSORS / 64];   /* bits of processors: at first */
    uint64_t ours[ORT_APART_PROCESSORS / 64];     /* as set last */
} ort_apart;

/* `processor` is the caller's, as sched_getcpu has it, or -1: none is left out; `threads`: that
 * take part in loops, which have to have a processor each. Does nothing but compare while the
 * caller stays where it is. */
void ort_apart_keep(ort_apart *a, pthread_t worker, int threads, int processor);

#endif
