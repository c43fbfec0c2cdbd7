/* winograd_place.h - what a task of tiles by output channels stands for: some tiles of one image,
 * for some of the output channels, in vectors or panels.
 */
#ifndef ORT_OP_BLOCKED_WINOGRAD_PLACE_H
#define ORT_OP_BLOCKED_WINOGRAD_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/checked.h"

typedef struct ort_winograd_cut { /* `all` in `parts` of `each`; the last one may be shorter */
    int64_t all, each, parts;
} ort_winograd_cut;

/* As many parts for each of the threads that share a loop of so many tasks, where each part keeps
 * `least`. None is longer than before, and where there are many it doesn't matter. */
static inline ort_winograd_cut ort_winograd_even(ort_winograd_cut cut, int64_t tasks,
                                                 int64_t threads, int64_t least)
{
    enum { MANY = 2 };
    const int64_t parts = (cut.parts + threads - 1) / threads * threads;
    if (threads < 2 || tasks >= MANY * threads || cut.all < parts * least)
        return cut;
    cut.each = (cut.all + parts - 1) / parts;
    cut.parts = (cut.all + cut.each - 1) / cut.each;
    return cut;
}

/* Few tiles of so many images are cut for the threads, which read all the weights each; where that
 * leaves less than `least` tiles to each they stay together, and each thread transforms all of them
 * for outputs of its own, by whole panels. */
static inline void ort_winograd_spread(ort_winograd_cut *tiles, ort_winograd_cut *outs,
                                       int64_t images, int64_t threads, int64_t least,
                                       int64_t panel)
{
    if (threads == 1) { /* each task along the outputs would transform its input again */
        *outs = (ort_winograd_cut){outs->all, outs->all, 1};
        return;
    }
    *tiles = ort_winograd_even(*tiles, images * tiles->parts * outs->parts, threads, least);
    while (images * tiles->parts * outs->parts < threads && outs->each > panel) {
        outs->each = (outs->each / panel + 1) / 2 * panel;
        outs->parts = (outs->all + outs->each - 1) / outs->each;
    }
}

typedef struct ort_winograd_place {
    int64_t image, first, tiles, first_out, outs;
} ort_winograd_place;

/* Tasks that share their tiles follow one another. */
static inline ort_winograd_place ort_winograd_place_of(size_t task, ort_winograd_cut tiles,
                                                       ort_winograd_cut outs)
{
    const int64_t index = (int64_t)task / outs.parts;
    const int64_t out = (int64_t)task % outs.parts * outs.each;
    const int64_t first = index % tiles.parts * tiles.each;
    return (ort_winograd_place){index / tiles.parts, first,
                                ort_min_i64(tiles.each, tiles.all - first), out,
                                ort_min_i64(outs.each, outs.all - out)};
}

/* Elements from one position of tiles to the next, for at least so many: an odd number of cache
 * lines. At a multiple of 1 KB a nearest cache of 32 KB would hold lines of 32 of the 36 positions,
 * at 4 KB of 8; they are written by halves, and read again at once. */
static inline int64_t ort_winograd_odd_lines(int64_t count, int64_t size)
{
    const int64_t line = 64 / size;
    return ((count + line - 1) / line | 1) * line;
}

#endif
