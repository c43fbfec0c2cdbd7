/* tensor_shape.c - shape arithmetic. Everything but ort_shape_check assumes checked dims: none is
 * negative, and their product (zeros counted as ones) fits the address space. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/tensor.h"

int64_t ort_shape_count_range(const ort_shape *shape, int first, int last)
{
    int64_t count = 1;
    for (int i = first; i < last; i++)
        count *= shape->dim[i];
    return count;
}

int64_t ort_shape_count(const ort_shape *shape)
{
    return ort_shape_count_range(shape, 0, shape->rank);
}

bool ort_shape_equal(const ort_shape *a, const ort_shape *b)
{
    return a->rank == b->rank &&
           !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]);
}

ort_status ort_shape_check(const ort_shape *shape, ort_dtype dtype, ort_error *err)
{
    char text[ORT_MAX_RANK * 21 + 8];
    if (shape->rank < 0 || shape->rank > ORT_MAX_RANK)
        return ort_error_set(err, ORT_ERROR_DATA, "rank %d is outside 0..%d", shape->rank,
                             ORT_MAX_RANK);
    /* Zeros count as ones: strides and partial products must not overflow either. */
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) {
        int64_t dim = shape->dim[i];
        if (dim < 0)
            return ort_error_set(err, ORT_ERROR_DATA, "shape %s has a negative dimension",
                                 ort_shape_format(shape, text, sizeof text));
        if (!ort_mul_i64(count, dim ? dim : 1, &count))
            return ort_error_set(err, ORT_ERROR_DATA, "shape %s has too many elements",
                                 ort_shape_format(shape, text, sizeof text));
    }
    size_t bytes;
    if (!ort_dtype_bytes(dtype, count, &bytes))
        return ort_error_set(err, ORT_ERROR_DATA, "a %s tensor of shape %s is too large",
                             ort_dtype_name(dtype), ort_shape_format(shape, text, sizeof text));
    return ORT_OK;
}

bool ort_shape_broadcast(const ort_shape *a, const ort_shape *b, ort_shape *out)
{
    const ort_shape *longer = a->rank >= b->rank ? a : b, *shorter = longer == a ? b : a;
    ort_shape result = *longer;
    int offset = longer->rank - shorter->rank;
    for (int i = 0; i < shorter->rank; i++) {
        int64_t mine = shorter->dim[i], theirs = longer->dim[i + offset];
        if (theirs == 1)
            result.dim[i + offset] = mine;
        else if (mine != 1 && mine != theirs)
            return false;
    }
    *out = result;
    return true;
}

void ort_shape_strides(const ort_shape *shape, int64_t *stride)
{
    int64_t step = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= shape->dim[i];
    }
}

void ort_shape_broadcast_strides(const ort_shape *in, const ort_shape *out, int64_t *stride)
{
    assert(in->rank <= out->rank);
    int offset = out->rank - in->rank;
    int64_t step = 1;
    for (int i = out->rank - 1; i >= 0; i--) {
        int64_t dim = i >= offset ? in->dim[i - offset] : 1;
        stride[i] = dim == 1 && out->dim[i] != 1 ? 0 : step;
        if (i < offset)
            stride[i] = 0;
        step *= dim;
    }
}

static char *join_dims(const ort_shape *shape, char between, char *text, size_t size)
{
    size_t used = 0;
    if (size > 0)
        text[0] = '\0';
    for (int i = 0; i < shape->rank && i < ORT_MAX_RANK && used < size; i++) {
        int n = i ? snprintf(text + used, size - used, "%c%lld", between, (long long)shape->dim[i])
                  : snprintf(text + used, size - used, "%lld", (long long)shape->dim[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    return text;
}

char *ort_shape_format(const ort_shape *shape, char *text, size_t size)
{
    if (shape->rank > 0)
        return join_dims(shape, 'x', text, size);
    if (size > 0)
        snprintf(text, size, "[]");
    return text;
}

char *ort_shape_list(const ort_shape *shape, char *text, size_t size)
{
    return join_dims(shape, ',', text, size);
}

ort_shape ort_shape_make(int rank, const int64_t *dims)
{
    assert(rank >= 0 && rank <= ORT_MAX_RANK);
    ort_shape shape = {.rank = rank};
    if (rank > 0)
        memcpy(shape.dim, dims, (size_t)rank * sizeof *dims);
    return shape;
}
