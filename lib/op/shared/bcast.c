/* bcast.c - collapsing and walking broadcast shapes. */
#include "op/shared/bcast.h"

#include <string.h>

#include "base/checked.h"

/* Axis `d` continues the last collapsed axis when every input's stride there is the next one
 * inward. */
static bool continues(const ort_bcast *b, const int64_t (*stride)[ORT_MAX_RANK], int d, int64_t dim)
{
    for (int k = 0; k < b->inputs; k++)
        if (b->stride[k][b->rank - 1] != stride[k][d] * dim)
            return false;
    return true;
}

void ort_bcast_make(ort_bcast *b, const ort_shape *out, const ort_shape *const *in, int inputs)
{
    int64_t stride[ORT_BCAST_MAX][ORT_MAX_RANK];
    memset(b, 0, sizeof *b);
    b->inputs = inputs;
    b->total = ort_shape_count(out);
    for (int k = 0; k < inputs; k++)
        ort_shape_broadcast_strides(in[k], out, stride[k]);
    for (int d = 0; d < out->rank; d++) {
        int64_t dim = out->dim[d];
        if (dim == 1)
            continue;
        if (b->rank > 0 && continues(b, (const int64_t(*)[ORT_MAX_RANK])stride, d, dim)) {
            b->dim[b->rank - 1] *= dim;
        } else {
            b->dim[b->rank] = dim;
            b->rank++;
        }
        for (int k = 0; k < inputs; k++)
            b->stride[k][b->rank - 1] = stride[k][d];
    }
    if (b->rank == 0) { /* one element */
        b->rank = 1;
        b->dim[0] = 1;
        for (int k = 0; k < inputs; k++)
            b->stride[k][0] = 1;
    }
    b->flat = b->rank == 1;
    for (int k = 0; k < inputs; k++)
        b->flat = b->flat && b->stride[k][0] == 1;
}

void ort_bcast_walk(const ort_bcast *b, int64_t first, int64_t count, ort_bcast_fn *fn, void *arg)
{
    int last = b->rank - 1;
    int64_t index[ORT_MAX_RANK], at[ORT_BCAST_MAX] = {0}, rest = first;
    for (int d = last; d >= 0; d--) {
        index[d] = rest % b->dim[d];
        rest /= b->dim[d];
        for (int k = 0; k < b->inputs; k++)
            at[k] += index[d] * b->stride[k][d];
    }
    while (count > 0) {
        int64_t n = ort_min_i64(count, b->dim[last] - index[last]);
        fn(arg, first, at, n);
        first += n;
        count -= n;
        if (count == 0)
            break;
        for (int k = 0; k < b->inputs; k++)
            at[k] -= index[last] * b->stride[k][last];
        index[last] = 0;
        for (int d = last - 1; d >= 0; d--) {
            for (int k = 0; k < b->inputs; k++)
                at[k] += b->stride[k][d];
            if (++index[d] < b->dim[d])
                break;
            for (int k = 0; k < b->inputs; k++)
                at[k] -= b->dim[d] * b->stride[k][d];
            index[d] = 0;
        }
    }
}
