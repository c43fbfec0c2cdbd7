/* infer_util.c - what infer functions are made of: access to input facts, shape arithmetic on dims
 * that may be symbolic, broadcasting.
 */
#include <stdarg.h>
#include <string.h>

#include "op/op.h"

const ort_fact *ort_infer_in(const ort_infer *x, int index)
{
    return index >= 0 && index < x->in_count ? x->in[index] : NULL;
}

bool ort_infer_in_ranked(const ort_infer *x, int index)
{
    const ort_fact *fact = ort_infer_in(x, index);
    return fact != NULL && fact->type.kind == ORT_TYPE_TENSOR && fact->type.rank >= 0;
}

ort_dim ort_infer_dim(const ort_infer *x, int input, int axis)
{
    bool there = ort_infer_in_ranked(x, input) && axis < x->in[input]->type.rank;
    return there ? x->in[input]->type.dim[axis] : ort_dim_unknown();
}

void ort_infer_set_type(ort_infer *x, int output, ort_dtype dtype, int rank, const ort_dim *dims)
{
    if (output < x->out_count)
        x->out[output].type = ort_type_tensor(dtype, rank, dims);
}

void ort_infer_set_shape(ort_infer *x, int output, int rank, const ort_dim *dims)
{
    if (output >= x->out_count)
        return;
    ort_type *type = &x->out[output].type;
    type->kind = ORT_TYPE_TENSOR;
    type->rank = rank;
    for (int i = 0; i < rank; i++)
        type->dim[i] = dims[i];
}

void ort_infer_set_dtype(ort_infer *x, int output, ort_dtype dtype)
{
    ort_infer_set_type(x, output, dtype, -1, NULL);
}

ort_status ort_infer_fail(const ort_infer *x, ort_error *err, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return ort_error_set(err, ORT_ERROR_MODEL, "%s", text);
}

ort_status ort_infer_axis(const ort_infer *x, int64_t axis, int rank, int *out, ort_error *err)
{
    if (axis < -rank || axis >= rank)
        return ort_infer_fail(x, err, "axis %lld is outside [%d, %d)", (long long)axis, -rank,
                              rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return ORT_OK;
}

ort_status ort_infer_need_rank(const ort_infer *x, int input, int rank, ort_error *err)
{
    if (ort_infer_in_ranked(x, input) && x->in[input]->type.rank != rank) {
        char text[300];
        return ort_infer_fail(x, err, "input %d is %s, needs rank %d", input,
                              ort_type_format(x->dims, &x->in[input]->type, text, sizeof text),
                              rank);
    }
    return ORT_OK;
}

bool ort_infer_int(const ort_infer *x, int input, int index, ort_dim *out)
{
    const ort_fact *fact = ort_infer_in(x, input);
    if (fact == NULL || index < 0)
        return false;
    if (fact->value != NULL) {
        if (index >= ort_tensor_count(fact->value) || fact->value->dtype == ORT_DTYPE_STRING)
            return false;
        *out = ort_dim_of(ort_tensor_get_i64(fact->value, index));
        return true;
    }
    if (fact->symbolic != NULL && index < fact->symbolic_count) {
        *out = fact->symbolic[index];
        return out->expr != ORT_DIM_UNKNOWN;
    }
    return false;
}

int ort_infer_int_count(const ort_infer *x, int input)
{
    const ort_fact *fact = ort_infer_in(x, input);
    if (fact == NULL)
        return -1;
    if (fact->value != NULL) {
        int64_t count = ort_tensor_count(fact->value);
        return count <= INT32_MAX ? (int)count : -1;
    }
    if (fact->symbolic != NULL)
        return fact->symbolic_count;
    if (fact->type.kind != ORT_TYPE_TENSOR)
        return -1;
    if (fact->type.rank == 0)
        return 1;
    if (fact->type.rank == 1 && ort_dim_known(fact->type.dim[0]) &&
        fact->type.dim[0].size <= INT32_MAX)
        return (int)fact->type.dim[0].size;
    return -1;
}

bool ort_infer_ints(const ort_infer *x, int input, int64_t *out, int capacity, int *count)
{
    const ort_fact *fact = ort_infer_in(x, input);
    if (fact == NULL || (fact->value == NULL && fact->symbolic == NULL))
        return false;
    int n = ort_infer_int_count(x, input);
    if (n < 0 || n > capacity)
        return false;
    for (int i = 0; i < n; i++) {
        ort_dim d;
        if (!ort_infer_int(x, input, i, &d) || !ort_dim_known(d))
            return false;
        out[i] = d.size;
    }
    *count = n;
    return true;
}

void ort_infer_set_symbolic(ort_infer *x, int output, const ort_dim *elements, int count)
{
    if (output >= x->out_count)
        return;
    ort_dim *copy = ort_arena_array(x->arena, (size_t)count + 1, sizeof *copy);
    if (copy == NULL)
        return;
    if (count > 0)
        memcpy(copy, elements, (size_t)count * sizeof *copy);
    x->out[output].symbolic = copy;
    x->out[output].symbolic_count = count;
}

/* ---- broadcasting */

/* Broadcast `in` onto the running result (aligned right). */
static ort_status broadcast_onto(ort_infer *x, ort_type *result, const ort_type *in, int slot,
                                 ort_error *err)
{
    ort_type merged = *result;
    merged.rank = result->rank > in->rank ? result->rank : in->rank;
    for (int i = 0; i < merged.rank; i++) {
        int ia = result->rank - merged.rank + i, ib = in->rank - merged.rank + i;
        ort_dim a = ia >= 0 ? result->dim[ia] : ort_dim_of(1);
        ort_dim b = ib >= 0 ? in->dim[ib] : ort_dim_of(1);
        if (!ort_dim_broadcast(x->dims, a, b, &merged.dim[i])) {
            char ta[300], tb[300];
            return ort_infer_fail(x, err, "input %d is %s, which does not broadcast with %s", slot,
                                  ort_type_format(x->dims, in, ta, sizeof ta),
                                  ort_type_format(x->dims, result, tb, sizeof tb));
        }
    }
    *result = merged;
    return ORT_OK;
}

ort_status ort_infer_broadcast_shape(ort_infer *x, int first, int count, ort_type *type,
                                     ort_error *err)
{
    ort_type result = ort_type_tensor(ORT_DTYPE_UNDEFINED, 0, NULL);
    for (int i = first; i < first + count; i++) {
        const ort_fact *fact = ort_infer_in(x, i);
        if (fact == NULL)
            continue;
        if (result.dtype == ORT_DTYPE_UNDEFINED)
            result.dtype = fact->type.dtype;
        if (fact->type.kind != ORT_TYPE_TENSOR || fact->type.rank < 0) {
            *type = ort_type_tensor(result.dtype, -1, NULL);
            return ORT_OK;
        }
        ORT_TRY(broadcast_onto(x, &result, &fact->type, i, err));
    }
    *type = result;
    return ORT_OK;
}
