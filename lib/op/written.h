/* written.h - output 0 of an operator handed on in parts, by the tasks that write them.
 *
 * What a step has made comes from memory again when the next one reads it, once it is larger than
 * a cache. Whoever wants it while it is near sets ort_call.written: an operator that knows how
 * hands every element on once, as soon as it is what it stays, and says that it does. What doesn't
 * know is asked in vain.
 */
#ifndef ORT_OP_WRITTEN_H
#define ORT_OP_WRITTEN_H

#include "op/op.h"

typedef struct ort_written {
    void (*part)(void *arg, int64_t first, int64_t n, int thread); /* elements [first, first + n) */
    void *arg;
    bool answered; /* the operator hands them on */
} ort_written;

/* The call will hand on all of its output 0. NULL: nobody wants it. */
static inline const ort_written *ort_written_begin(const ort_call *call)
{
    if (call->written)
        call->written->answered = true;
    return call->written;
}

static inline void ort_written_part(const ort_written *written, int64_t first, int64_t n,
                                    int thread)
{
    if (written && n > 0)
        written->part(written->arg, first, n, thread);
}

#endif
