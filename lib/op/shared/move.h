/* move.h - moving elements without looking at them: strided copies, index maps, fills.
 *
 * All counts, offsets and strides are in elements; every element type is served: 1, 2, 4, 8 and 16
 * bytes as blocks (string records included, their bytes stay where they are), 2- and 4-bit types
 * through the packed accessors on one thread, because neighbours share a byte.
 */
#ifndef ORT_OP_SHARED_MOVE_H
#define ORT_OP_SHARED_MOVE_H

#include <string.h>

#include "op/op.h"

#define ORT_MOVE_MAX (2 * ORT_MAX_RANK)

/* A copy dst[dst_offset + sum i*dst_stride] = src[src_offset + sum i*src_stride]. Dims are added
 * outermost first, in the order of the destination. Source strides may be 0 or negative. */
typedef struct ort_move {
    ort_dtype dtype;
    const void *src;
    void *dst;
    int64_t src_offset, dst_offset;
    int rank;
    int64_t dim[ORT_MOVE_MAX], src_stride[ORT_MOVE_MAX], dst_stride[ORT_MOVE_MAX];
} ort_move;

/* No dims yet. */
static inline ort_move ort_move_between(const ort_tensor *src, ort_tensor *dst)
{
    ort_move move; /* of whose lists only what `rank` counts is ever read: 768 bytes cost a call */
    move.dtype = dst->dtype;
    move.src = src->data;
    move.dst = dst->data;
    move.src_offset = move.dst_offset = 0;
    move.rank = 0;
    return move;
}
/* Merges with the dim before it where both sides are contiguous. */
void ort_move_add(ort_move *move, int64_t dim, int64_t src_stride, int64_t dst_stride);
void ort_move_run(const ort_move *move, ort_pool *pool);

/* Each output axis d takes source index map[d][i] (-1: the fill element); NULL: the identity, and
 * both shapes have the same dim there. Ranks are equal. */
typedef struct ort_move_map {
    const int64_t *axis[ORT_MAX_RANK];
    const void *fill; /* one element (string record; packed: in the low bits); NULL: zero bits */
} ort_move_map;
void ort_move_mapped(const ort_tensor *src, ort_tensor *dst, const ort_move_map *map,
                     ort_pool *pool);

/* count elements starting at `first` become element `index` of `src`; src NULL: zero bits. */
void ort_move_fill(ort_dtype dtype, void *dst, int64_t first, int64_t count, const void *src,
                   int64_t index);
/* Contiguous copy of count elements (regions do not overlap). */
void ort_move_span(ort_dtype dtype, void *dst, int64_t dst_first, const void *src,
                   int64_t src_first, int64_t count);
/* Contiguous copy (regions do not overlap); a short one costs no call. */
static inline void ort_move_bytes(void *dst, const void *src, size_t bytes)
{
    char *to = dst;
    const char *from = src;
    if (bytes > 256) {
        memcpy(to, from, bytes);
        return;
    }
    for (; bytes >= 16; bytes -= 16, to += 16, from += 16)
        memcpy(to, from, 16);
    for (size_t part = 8; part > 0; part /= 2)
        if (bytes & part) {
            memcpy(to, from, part);
            to += part;
            from += part;
        }
}
/* Bytes of an element; 0 for packed types. */
size_t ort_move_element_bytes(ort_dtype dtype);

/* Infer: if input `input` is an integer tensor whose elements are known or symbolic and output
 * `output` has the same elements in rank 0 or 1, pass them on. */
void ort_infer_pass_symbolic(ort_infer *x, int input, int output);
/* Most elements that inference follows as symbolic values. */
#define ORT_SYMBOLIC_MAX 128
/* Elements of an integer input as dims, unknown ones included; -1 when the count is unknown or
 * beyond ORT_SYMBOLIC_MAX. */
int ort_infer_elements(const ort_infer *x, int input, ort_dim *out);
/* True when any element is a number or an expression. */
bool ort_infer_any_known(const ort_dim *elements, int count);
/* dtype of an input; UNDEFINED when absent or unknown. */
ort_dtype ort_infer_dtype(const ort_infer *x, int input);

#endif
