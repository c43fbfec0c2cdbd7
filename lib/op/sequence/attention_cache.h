/* attention_cache.h - key/value caches that are stored in 8 or 4 bits.
 *
 * A row is one head of one token: n elements, each round(x / scale) clamped to the signed range. 8
 * bits: int8. 4 bits: two per byte, the first low, stored with 8 added. One scale serves a whole
 * tensor, or each channel of each head has its own. A scale of 0 counts as 1 when storing.
 */
#ifndef ORT_OP_SEQUENCE_ATTENTION_CACHE_H
#define ORT_OP_SEQUENCE_ATTENTION_CACHE_H

#include "tensor/tensor.h"

typedef struct ort_cache_format {
    int bits;         /* 8 or 4; 0: elements of a float type */
    bool per_channel; /* scale[n], else scale[1] */
} ort_cache_format;

/* Elements that the tensor holds for a row of n: bytes of packed rows count as elements. */
int64_t ort_cache_row(ort_cache_format f, int64_t n);
/* `rows` rows from row `first` on as floats. scale is NULL for float formats. */
void ort_cache_load(ort_cache_format f, const ort_tensor *t, int64_t first, int64_t rows, int64_t n,
                    const float *scale, float *out);
void ort_cache_store(ort_cache_format f, const float *from, ort_tensor *t, int64_t first,
                     int64_t rows, int64_t n, const float *scale);
/* What storing and loading would make of the rows. */
void ort_cache_round(ort_cache_format f, int64_t rows, int64_t n, const float *scale,
                     float *values);

#endif
