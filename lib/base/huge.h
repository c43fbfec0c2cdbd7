/* huge.h - pages of two megabytes, as long as they are cheap.
 *
 * One fault for 2 MB takes a quarter of the time of 512 faults for 4 KB, and is most of the time of
 * packing weights otherwise. But free memory in blocks of that size is what a virtual machine
 * reports to its host, which takes it away (Documentation/mm/free_page_reporting.rst): there huge
 * pages are the cold ones. One of those takes 5 to 7 ms (a warm one 0.2, its 4 KB pages 0.9), a
 * session of 100 MB half a second. So they are touched one after another, and the first that takes
 * a thread's own time for long ends it for this process.
 */
#ifndef ORT_BASE_HUGE_H
#define ORT_BASE_HUGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ORT_HUGE_PAGE = 2 << 20,
    ORT_HUGE_FROM = 1 << 20, /* bytes of a model, or in use: less gains less by a huge page than is
                                lost where a host has taken one in sixteen back */
};

/* Ask for huge pages of memory that begins at a multiple of ORT_HUGE_PAGE; false where that doesn't
 * pay. Its last, partial page is left out. */
bool ort_huge_ask(void *memory, size_t bytes);
/* Touch the page, writing a zero at its start; `rest`: bytes from there to the end of what was
 * asked for. False when it was slow: the rest then comes in small pages. */
bool ort_huge_touch(void *page, size_t rest);
/* Let the system provide these pages now, in one call, where they would come one by one at the
 * first access to each: on a virtual machine 1.2 us for 4 KB instead of 1.9. Contents stay. */
void ort_pages_touch(void *memory, size_t bytes);

struct ort_arena;
/* The arena begins in huge pages, where its owner knows that it will hold ORT_HUGE_FROM or more.
 * Else it does so later (arena.h). */
void ort_huge_begin(struct ort_arena *arena);

#endif
