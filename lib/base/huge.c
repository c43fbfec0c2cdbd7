/* huge.c - see huge.h. */
#define _GNU_SOURCE 1
#include "base/huge.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

enum { SLOW_NS = 1500000 }; /* as long as 2 MB in small pages, in a slow moment */

static atomic_bool slow; /* one of this process was */

bool ort_huge_ask(void *memory, size_t bytes)
{
    assert((uintptr_t)memory % ORT_HUGE_PAGE == 0);
    if (atomic_load_explicit(&slow, memory_order_relaxed))
        return false;
#ifdef MADV_HUGEPAGE
    return madvise(memory, bytes / ORT_HUGE_PAGE * ORT_HUGE_PAGE, MADV_HUGEPAGE) == 0;
#else
    return false;
#endif
}

/* Of this thread alone: that it had to wait for a processor meanwhile says nothing of pages. */
static uint64_t own_ns(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool ort_huge_touch(void *page, size_t rest)
{
    uint64_t begin = own_ns();
    *(volatile char *)page = 0;
    if (own_ns() - begin < SLOW_NS)
        return true;
    atomic_store_explicit(&slow, true, memory_order_relaxed);
#ifdef MADV_NOHUGEPAGE
    if (rest > ORT_HUGE_PAGE)
        (void)madvise((char *)page + ORT_HUGE_PAGE, rest - ORT_HUGE_PAGE, MADV_NOHUGEPAGE);
#endif
    return false;
}

void ort_pages_touch(void *memory, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    const uintptr_t page = 4096;
    uintptr_t first = ((uintptr_t)memory + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)memory + bytes) / page * page;
    if (first < end)
        (void)madvise((void *)first, end - first, MADV_POPULATE_WRITE);
#else
    (void)memory, (void)bytes;
#endif
}
