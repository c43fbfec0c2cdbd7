/* axes.h - lists of axes as attributes give them: what may be asked of them before a rank is known.
 *
 * Invariant: a list that passed here indexes arrays of as many entries as it has.
 */
#ifndef ORT_OP_SHARED_AXES_H
#define ORT_OP_SHARED_AXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensor/tensor.h"

/* Is each of 0 .. count - 1 there once? Never of more than ORT_MAX_RANK entries. */
static inline bool ort_axes_permute(const int64_t *list, size_t count)
{
    unsigned seen = 0;
    if (count > ORT_MAX_RANK)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (list[i] < 0 || list[i] >= (int64_t)count || seen >> list[i] & 1u)
            return false;
        seen |= 1u << list[i];
    }
    return true;
}

#endif
