/* cycles.c - one inherited perf_event counter. Containers and kernels with perf_event_paranoid > 2
 * refuse it; then profiles have times only. */
#include "profile/cycles.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/perf_event.h>
#include <sys/syscall.h>

int ort_cycles_open(char *note, size_t size)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_HW_CPU_CYCLES,
                                   .inherit = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    long counter = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    note[0] = '\0';
    if (counter < 0)
        snprintf(note, size, "no cycle counts: perf_event_open: %s%s", strerror(errno),
                 errno == EACCES || errno == EPERM ? " (see kernel.perf_event_paranoid)" : "");
    return (int)counter;
}
#else
int ort_cycles_open(char *note, size_t size)
{
    snprintf(note, size, "no cycle counts: this system has no perf_event");
    return -1;
}
#endif

uint64_t ort_cycles_read(int counter)
{
    uint64_t count = 0;
    if (counter < 0 || read(counter, &count, sizeof count) != (ssize_t)sizeof count)
        return 0;
    return count;
}

void ort_cycles_close(int counter)
{
    if (counter >= 0)
        close(counter);
}
