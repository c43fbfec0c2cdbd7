/* bytes_after.h - what a convolution in the layout of bytes does with its codes before others see
 * them: a table, the sum with another tensor, a second table, each there or not. A task does it
 * with the blocks that it has just made, which are in the cache still; the codes are those that
 * LookUp and QLinearAdd behind the convolution would give.
 */
#ifndef ORT_OP_BLOCKED_BYTES_AFTER_H
#define ORT_OP_BLOCKED_BYTES_AFTER_H

#include "op/blocked/bytes_op.h"

/* Inputs of BytesConv. */
enum { ORT_BYTES_TABLE_IN = 9, ORT_BYTES_OTHER_IN, ORT_BYTES_SUM_SCALE_IN, ORT_BYTES_SUM_ZERO_IN,
       ORT_BYTES_OTHER_SCALE_IN, ORT_BYTES_OTHER_ZERO_IN, ORT_BYTES_Z_SCALE_IN,
       ORT_BYTES_Z_ZERO_IN, ORT_BYTES_LAST_TABLE_IN, ORT_BYTES_CONV_INPUTS };

typedef struct ort_bytes_after {
    bool any, sums;
    bool turned; /* what is convolved is the second of the sum */
    ort_byte_sum sum;
    const ort_byte_lines *table, *last; /* as lines, where that is faster; or NULL */
} ort_bytes_after;

/* Of one run. */
typedef struct ort_bytes_after_job {
    const ort_bytes_after *after;
    const ort_code_kernels *k;
    uint8_t *y;
    const uint8_t *other, *table, *last; /* NULL: not there */
} ort_bytes_after_job;

ort_status ort_bytes_after_prepare(ort_prep *p, bool turned, ort_bytes_after *after,
                                   ort_error *err);
/* The tensor that is added must have the output's shape. */
ort_status ort_bytes_after_shape(const ort_shaping *sh, const ort_bytes_after *after,
                                 ort_error *err);
ort_bytes_after_job ort_bytes_after_begin(const ort_call *call, const ort_bytes_after *after);
/* Codes [first, first + count) of the output, in place. */
void ort_bytes_after_do(const ort_bytes_after_job *j, int64_t first, int64_t count);
/* All of them. */
void ort_bytes_after_run(ort_call *call, const ort_bytes_after_job *j);

#endif
