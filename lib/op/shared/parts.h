/* parts.h - tasks that are rows by columns, in an order that leaves each thread its own rows.
 *
 * A pool's threads take the same parts of the numbers of each loop (pool.c). Where loops one after
 * the other put the same rows into the same part, a thread finds in its own caches what it wrote;
 * from another core it comes at a quarter of the speed. Within a part the order is the one that is
 * best for one thread: all rows of a column, then the next column.
 */
#ifndef ORT_OP_PARTS_H
#define ORT_OP_PARTS_H

#include <stdint.h>

typedef struct ort_cell {
    int64_t row, column;
} ort_cell;

/* Task number `index` of rows * columns, in `parts` (1..rows) parts. */
static inline ort_cell ort_parts_cell(int64_t index, int64_t rows, int64_t columns, int64_t parts)
{
    int64_t part = 0;
    while (index >= columns * (rows * (part + 1) / parts))
        part++;
    int64_t first = rows * part / parts, count = rows * (part + 1) / parts - first;
    index -= first * columns;
    return (ort_cell){first + index % count, index / count};
}

#endif
