/* vec.c - growth of the typed arrays of vec.h: doubling, with overflow checks; on failure the
 * array keeps its contents. */
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

bool ort_vec_grow_(void **data, size_t *capacity, size_t wanted, size_t size)
{
    if (wanted <= *capacity)
        return true;
    size_t larger = *capacity < 8 ? 8 : *capacity;
    while (larger < wanted) {
        if (!ort_mul_size(larger, 2, &larger))
            return false;
    }
    size_t bytes;
    if (!ort_mul_size(larger, size, &bytes))
        return false;
    /* The pointer is read and written as bytes: *data is really a `type **`. */
    void *old, *grown;
    memcpy(&old, data, sizeof old);
    grown = realloc(old, bytes);
    if (!grown)
        return false;
    memcpy(data, &grown, sizeof grown);
    *capacity = larger;
    return true;
}
