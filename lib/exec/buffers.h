/* buffers.h - memory of one run: blocks kept by size class between runs, strings, a byte limit.
 *
 * A block is reference-counted (not atomically: one run, one thread) so that outputs that are only
 * another shape of an input share it. Blocks returned to the pool are kept for the next request of
 * their class: a loop or a repeated run asks the system for memory once. A block's base is plain
 * aligned memory, so a block that leaves the run for good is given back with free().
 */
#ifndef ORT_EXEC_BUFFERS_H
#define ORT_EXEC_BUFFERS_H

#include "base/arena.h"
#include "base/budget.h"
#include "tensor/tensor.h"

typedef struct ort_block ort_block;
struct ort_block { /* 64 bytes in front of the data */
    ort_block *next; /* in its free list */
    struct ort_buffers *owner;
    size_t bytes;    /* usable */
    int size_class;
    int references;
};

#define ORT_SIZE_CLASSES 256

typedef struct ort_buffers {
    ort_block *free_blocks[ORT_SIZE_CLASSES];
    ort_arena strings;    /* until the outermost run ends */
    ort_account *account; /* of the run: blocks, arenas, states; NULL: nothing is counted */
} ort_buffers; /* all zero is valid */

void ort_buffers_release(ort_buffers *buffers);
/* The end of a run: what operators allocated for strings dies. */
void ort_buffers_reset(ort_buffers *buffers);
/* A block of at least `bytes`, with one reference; not zeroed. */
ort_status ort_buffers_get(ort_buffers *buffers, size_t bytes, ort_block **block, ort_error *err);
void ort_block_drop(ort_block *block);
static inline void *ort_block_data(ort_block *block)
{
    return (char *)block + 64;
}
/* A tensor value over a new block; freeing it returns the block to the run. */
ort_status ort_buffers_new_value(ort_buffers *buffers, ort_dtype dtype, const ort_shape *shape,
                                 ort_value **value, ort_error *err);
/* A tensor value that takes over a reference of the block. */
ort_status ort_block_to_value(ort_block *block, const ort_tensor *tensor, ort_value **value,
                              ort_error *err);
/* The value no longer depends on the run's buffers (its memory is freed with it). False when the
 * block is shared and the value must be copied instead. */
bool ort_value_detach(ort_value *value);
/* Account for memory outside blocks (arenas); ORT_ERROR_MEMORY beyond the limit. */
ort_status ort_buffers_account(ort_buffers *buffers, size_t bytes, const char *what,
                               ort_error *err);
void ort_buffers_refund(ort_buffers *buffers, size_t bytes);

#define ORT_MEMORY_LARGE ((size_t)2 << 20) /* a huge page */
/* Aligned to 64 bytes; large ones to huge pages, with the advice to use them. free() them. */
void *ort_memory_new(size_t bytes);

#endif
