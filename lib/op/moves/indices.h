/* indices.h - tensors of int64 or int32 that say where elements lie: reading and checking them. */
#ifndef ORT_OP_MOVES_INDICES_H
#define ORT_OP_MOVES_INDICES_H

#include "op/op.h"

static inline int64_t ort_index_at(const ort_tensor *indices, int64_t i)
{
    return indices->dtype == ORT_DTYPE_INT64 ? ((const int64_t *)indices->data)[i]
                                             : ((const int32_t *)indices->data)[i];
}

/* The element of an axis of `limit` that index k means. */
static inline int64_t ort_index_from_end(int64_t k, int64_t limit)
{
    return k < 0 ? k + limit : k;
}

static inline bool ort_index_outside(int64_t k, int64_t limit)
{
    return (uint64_t)k + (uint64_t)limit >= 2 * (uint64_t)limit;
}

#define ORT_COUNT_OUTSIDE(type)                                                                    \
    do {                                                                                           \
        const type *p = indices->data;                                                             \
        for (int64_t i = 0; i < count; i++)                                                        \
            outside |= ort_index_outside(p[i], limit);                                             \
    } while (0)

/* The first that is outside of [-limit, limit); -1: none is. */
static inline int64_t ort_indices_first_outside(const ort_tensor *indices, int64_t limit)
{
    int64_t count = ort_tensor_count(indices);
    int outside = 0;
    if (indices->dtype == ORT_DTYPE_INT64)
        ORT_COUNT_OUTSIDE(int64_t);
    else
        ORT_COUNT_OUTSIDE(int32_t);
    for (int64_t i = 0; outside && i < count; i++)
        if (ort_index_outside(ort_index_at(indices, i), limit))
            return i;
    return -1;
}
#undef ORT_COUNT_OUTSIDE

/* An error unless each row of `tuple` indices lies within the dims from `dim` on. */
static inline ort_status ort_indices_check_tuples(const ort_call *call, const ort_tensor *indices,
                                                  const int64_t *dim, int tuple, ort_error *err)
{
    int64_t count = ort_tensor_count(indices);
    if (tuple == 1 && ort_indices_first_outside(indices, *dim) < 0)
        return ORT_OK;
    for (int64_t i = 0, d = 0; i < count; i++, d = d + 1 < tuple ? d + 1 : 0)
        if (ort_index_outside(ort_index_at(indices, i), dim[d]))
            return ort_call_fail(call, err, "index %lld (%lld) is outside [-%lld, %lld]",
                                 (long long)i, (long long)ort_index_at(indices, i),
                                 (long long)dim[d], (long long)dim[d] - 1);
    return ORT_OK;
}

#endif
