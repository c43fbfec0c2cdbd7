/* bcast_block.h - operands of a broadcast in the order of the output, block by block.
 *
 * Where runs are short, a function sees vectors only if it gets operands that were laid out before.
 * An operand that advances with the output stays where it lies; one that repeats itself after a few
 * elements is laid out once; others are laid out a block at a time.
 */
#ifndef ORT_OP_SHARED_BCAST_BLOCK_H
#define ORT_OP_SHARED_BCAST_BLOCK_H

#include "op/shared/bcast.h"

#define ORT_BCAST_BLOCK 512 /* elements of a block at most */
#define ORT_BCAST_SHORT 64  /* a run of more elements is no short one */
/* Bytes that hold a block of elements of so many bytes, with whole runs at both ends. */
#define ORT_BCAST_SPACE(bytes) ((ORT_BCAST_BLOCK + 2 * ORT_BCAST_SHORT) * (bytes) + 16)

typedef struct ort_bcast_operand {
    ort_bcast alone; /* the output's axes, as far as this operand tells them apart */
    const char *data;
    char *space;
    size_t bytes;    /* of an element: 1, 2, 4, 8 or 16 */
    bool repeats;    /* space holds its runs, over and over */
} ort_bcast_operand;

/* Whether it is faster to lay operands out than to call a function for each run. */
bool ort_bcast_has_short_runs(const ort_bcast *b);
/* Operand k of `b`, whose elements begin at `data`; space: ORT_BCAST_SPACE(bytes) that nobody else
 * uses, aligned as the elements are. */
void ort_bcast_operand_begin(ort_bcast_operand *o, const ort_bcast *b, int k, const void *data,
                             size_t bytes, void *space);
/* Its elements for outputs [first, first + n), n <= ORT_BCAST_BLOCK, until the next call. */
const void *ort_bcast_operand_block(ort_bcast_operand *o, int64_t first, int64_t n);

#endif
