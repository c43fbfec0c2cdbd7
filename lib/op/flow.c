/* flow.c - helpers of control flow, sequences and optionals (contracts in flow.h).
 *
 * Invariant: whatever is stored in a sequence or handed to an output owns its bytes, or shares them
 * with a value that does; views into memory of the plan never leave the call they were made in.
 */
#include "op/flow.h"

#include <string.h>

#include "base/checked.h"
#include "base/num.h"

bool ort_flow_same_type(const ort_type *a, const ort_type *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype)
        return false;
    if (a->kind == ORT_TYPE_TENSOR) {
        if (a->rank != b->rank)
            return false;
        for (int i = 0; i < a->rank; i++) {
            bool unknown_a = a->dim[i].expr == ORT_DIM_UNKNOWN;
            bool unknown_b = b->dim[i].expr == ORT_DIM_UNKNOWN;
            if (unknown_a != unknown_b || (!unknown_a && !ort_dim_equal(a->dim[i], b->dim[i])))
                return false;
        }
        return true;
    }
    if (!a->element || !b->element)
        return a->element == b->element;
    return a->element == b->element || ort_flow_same_type(a->element, b->element);
}

ort_type ort_flow_type_of(ort_arena *arena, ort_type_kind kind, const ort_type *element)
{
    ort_type type = {.kind = kind, .rank = -1};
    ort_type *copy = ort_arena_alloc(arena, sizeof *copy);
    if (copy) {
        *copy = *element;
        type.element = copy;
    }
    return type;
}

void ort_flow_join_type(ort_arena *arena, ort_type *a, const ort_type *b)
{
    if (a->kind != b->kind) {
        *a = (ort_type){.kind = ORT_TYPE_UNKNOWN, .rank = -1};
        return;
    }
    if (a->dtype != b->dtype)
        a->dtype = ORT_DTYPE_UNDEFINED;
    if (a->kind == ORT_TYPE_TENSOR) {
        if (a->rank != b->rank)
            a->rank = -1;
        for (int i = 0; i < a->rank; i++)
            if (!ort_dim_equal(a->dim[i], b->dim[i]))
                a->dim[i] = ort_dim_unknown();
    } else if (a->element && b->element && !ort_flow_same_type(a->element, b->element)) {
        ort_type joined = *a->element;
        ort_flow_join_type(arena, &joined, b->element);
        ort_type whole = ort_flow_type_of(arena, a->kind, &joined);
        whole.dtype = a->dtype;
        *a = whole;
    } else if (!b->element) {
        a->element = NULL;
    }
}

/* A plain view shows memory of somebody else; views of the executor have a release function, and it
 * replaces them itself wherever they are stored. */
static bool is_borrowed(const ort_value *value)
{
    return value->kind == ORT_KIND_TENSOR && !value->storage && !value->release;
}

ort_status ort_flow_keep(ort_value *value, ort_value **kept, ort_error *err)
{
    if (is_borrowed(value))
        return ort_value_clone(value, kept, err);
    *kept = ort_value_retain(value);
    return ORT_OK;
}

ort_status ort_flow_set_output(ort_call *call, int index, ort_value *value, ort_error *err)
{
    ort_value *kept = NULL;
    ORT_TRY(ort_flow_keep(value, &kept, err));
    ort_call_set_output(call, index, kept);
    return ORT_OK;
}

void ort_flow_copy(ort_tensor *dst, int64_t dst_first, const ort_tensor *src, int64_t src_first,
                   int64_t count)
{
    int bits = ort_dtype_get(src->dtype)->bits;
    if (count <= 0)
        return;
    if (bits % 8 == 0) {
        size_t size = (size_t)bits / 8;
        memcpy((char *)dst->data + (size_t)dst_first * size,
               (const char *)src->data + (size_t)src_first * size, (size_t)count * size);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        ort_packed_set(dst->data, (size_t)(dst_first + i), bits,
                       ort_packed_get(src->data, (size_t)(src_first + i), bits));
}

ort_status ort_flow_slice(const ort_tensor *src, int axis, int64_t index, ort_value **value,
                          ort_error *err)
{
    int bits = ort_dtype_get(src->dtype)->bits;
    int64_t outer = ort_shape_count_range(&src->shape, 0, axis);
    int64_t inner = ort_shape_count_range(&src->shape, axis + 1, src->shape.rank);
    int64_t extent = src->shape.dim[axis];
    const bool views = outer == 1 && inner > 0 && bits % 8 == 0;
    char *at = (char *)src->data + (size_t)(views ? index * inner : 0) * ((size_t)bits / 8);
    if (views && *value && is_borrowed(*value) && (*value)->references == 1) {
        (*value)->tensor.data = at;
        return ORT_OK;
    }
    ort_value_free(*value);
    *value = NULL;
    ort_tensor part = {.dtype = src->dtype};
    for (int i = 0; i < src->shape.rank; i++)
        if (i != axis)
            part.shape.dim[part.shape.rank++] = src->shape.dim[i];
    if (views) {
        part.data = at;
        return ort_value_new_view(&part, value, err);
    }
    ORT_TRY(ort_value_new_tensor_(src->dtype, &part.shape, value, err));
    for (int64_t o = 0; o < outer; o++)
        ort_flow_copy(&(*value)->tensor, o * inner, src, (o * extent + index) * inner, inner);
    return ORT_OK;
}

void ort_flow_put(ort_tensor *dst, int axis, int64_t index, const ort_tensor *part)
{
    int64_t outer = ort_shape_count_range(&dst->shape, 0, axis);
    int64_t inner = ort_shape_count_range(&dst->shape, axis + 1, dst->shape.rank);
    int64_t extent = dst->shape.dim[axis];
    for (int64_t o = 0; o < outer; o++)
        ort_flow_copy(dst, (o * extent + index) * inner, part, o * inner, inner);
}

ort_shape ort_flow_insert_dim(const ort_shape *part, int axis, int64_t size)
{
    ort_shape shape = {.rank = part->rank + 1};
    for (int i = 0, j = 0; i < shape.rank; i++)
        shape.dim[i] = i == axis ? size : part->dim[j++];
    return shape;
}

ort_status ort_flow_own_strings(ort_call *call, ort_tensor *tensor, ort_error *err)
{
    if (tensor->dtype != ORT_DTYPE_STRING)
        return ORT_OK;
    ort_string *s = tensor->data;
    int64_t count = ort_tensor_count(tensor);
    for (int64_t i = 0; i < count; i++) {
        if (s[i].length == 0)
            continue;
        char *bytes = ort_call_alloc(call, s[i].length);
        if (!bytes)
            return ort_error_memory(err, s[i].length);
        memcpy(bytes, s[i].ptr, s[i].length);
        s[i].ptr = bytes;
    }
    return ORT_OK;
}

void ort_flow_empty_form(const ort_graph *body, int output, ort_dtype *dtype, ort_shape *shape)
{
    const ort_type *type = &ort_graph_value_at(body, body->outputs.data[output])->fact.type;
    *dtype = type->kind == ORT_TYPE_TENSOR ? type->dtype : ORT_DTYPE_UNDEFINED;
    shape->rank = type->kind == ORT_TYPE_TENSOR && type->rank > 0 ? type->rank : 0;
    for (int i = 0; i < shape->rank; i++)
        shape->dim[i] = ort_dim_known(type->dim[i]) ? type->dim[i].size : 0;
}
