/* cycles.h - processor cycles of this process's threads in user code, through perf_event. */
#ifndef ORT_PROFILE_CYCLES_H
#define ORT_PROFILE_CYCLES_H

#include <stddef.h>
#include <stdint.h>

/* A counter for the calling thread and the threads it starts from now on; -1 when the system does
 * not allow it, with the reason in `note`. */
int ort_cycles_open(char *note, size_t size);
uint64_t ort_cycles_read(int counter); /* 0 for -1 */
void ort_cycles_close(int counter);

#endif
