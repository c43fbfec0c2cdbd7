/* value.c - values: tensors on memory of the library and of clients, strings, sequences, maps.
 *
 * An OrtValue is a reference to a value of the library, so that items of sequences and outputs of
 * bindings are handed out without a copy. Sparse tensors are sparse.c's.
 */
#include "abi.h"

#include <stdlib.h>
#include <string.h>

OrtStatus *abi_wrap(ort_value *value, OrtValue **out)
{
    OrtValue *made = malloc(sizeof *made);
    if (!made) {
        ort_value_free(value);
        return abi_no_memory();
    }
    *made = (OrtValue){.value = value, .memory = &abi_cpu_memory};
    *out = made;
    return NULL;
}

void abi_ReleaseValue(OrtValue *value)
{
    if (!value)
        return;
    ort_value_free(value->value);
    abi_sparse_free(value->sparse);
    free(value);
}

static OrtStatus *wrap_made(ort_status status, const ort_error *err, ort_value **value,
                            OrtValue **out)
{
    return status == ORT_OK ? abi_wrap(*value, out) : abi_from_error(err);
}

/* Bytes of a tensor; false: a negative size, or more than there can be. */
static bool measure(ort_dtype dtype, const int64_t *dims, size_t rank, size_t *bytes)
{
    size_t count = 1;
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(count, (size_t)dims[i], &count))
            return false;
    if (__builtin_mul_overflow(count, (size_t)ort_dtype_bits(dtype), &count))
        return false;
    *bytes = count / 8 + (count % 8 != 0);
    return true;
}

static OrtStatus *check_new(const int64_t *dims, size_t rank, int type, size_t *bytes)
{
    ort_dtype dtype = abi_dtype_in(type);
    if (dtype == ORT_DTYPE_UNDEFINED || dtype == ORT_DTYPE_COMPLEX64 ||
        dtype == ORT_DTYPE_COMPLEX128)
        return abi_fail(ABI_NOT_IMPLEMENTED, "Tensor element type %d is not supported", type);
    ABI_CHECK(dims || !rank, "shape is NULL");
    ABI_CHECK(rank <= ABI_MAX_RANK, "%zu dimensions: at most %d", rank, ABI_MAX_RANK);
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0)
            return abi_fail(ABI_FAIL, "tried creating tensor with negative value in shape");
    ABI_CHECK(measure(dtype, dims, rank, bytes), "size overflow");
    return NULL;
}

/* What a client's allocator gave goes back to it. */
static void release_to(void *allocator, void *block)
{
    ((OrtAllocator *)allocator)->Free(allocator, block);
}

OrtStatus *abi_CreateTensorAsOrtValue(OrtAllocator *allocator, const int64_t *dims, size_t rank,
                                      int type, OrtValue **out)
{
    size_t bytes;
    ABI_CHECK(allocator && out, "allocator is NULL");
    ABI_TRY(check_new(dims, rank, type, &bytes));
    ort_dtype dtype = abi_dtype_in(type);
    ort_error err = ORT_ERROR_INIT;
    ort_value *value = NULL;
    if (allocator == &abi_default_allocator || dtype == ORT_DTYPE_STRING || !bytes)
        return wrap_made(ort_value_new_tensor(dtype, (int)rank, dims, &value, &err), &err, &value,
                         out);
    void *block = allocator->Alloc(allocator, bytes);
    if (!block)
        return abi_no_memory();
    ort_status status = ort_value_new_taking(dtype, (int)rank, dims, block, bytes, release_to,
                                             allocator, &value, &err);
    if (status != ORT_OK)
        allocator->Free(allocator, block);
    return wrap_made(status, &err, &value, out);
}

static OrtStatus *check_foreign(const void *data, size_t given, const int64_t *dims, size_t rank,
                                int type, size_t *bytes)
{
    ABI_TRY(check_new(dims, rank, type, bytes));
    ABI_CHECK(type != ORT_DTYPE_STRING, "Cannot create a tensor of strings on given memory: use "
                                        "CreateTensorAsOrtValue and FillStringTensor");
    ABI_CHECK(*bytes <= given, "not enough space: expected %zu, got %zu", *bytes, given);
    ABI_CHECK(data || !*bytes, "p_data is NULL");
    return NULL;
}

OrtStatus *abi_CreateTensorWithDataAsOrtValue(const OrtMemoryInfo *memory, void *data, size_t given,
                                              const int64_t *dims, size_t rank, int type,
                                              OrtValue **out)
{
    size_t bytes;
    ABI_CHECK(memory && out, "info is NULL");
    ABI_TRY(check_foreign(data, given, dims, rank, type, &bytes));
    ort_dtype dtype = abi_dtype_in(type);
    ort_error err = ORT_ERROR_INIT;
    ort_value *value = NULL;
    if (!bytes)
        return wrap_made(ort_value_new_tensor(dtype, (int)rank, dims, &value, &err), &err, &value,
                         out);
    return wrap_made(ort_value_new_borrowed(dtype, (int)rank, dims, data, bytes, &value, &err),
                     &err, &value, out);
}

OrtStatus *abi_CreateTensorWithDataAndDeleterAsOrtValue(OrtAllocator *deleter, void *data,
                                                        size_t given, const int64_t *dims,
                                                        size_t rank, int type, OrtValue **out)
{
    size_t bytes;
    ABI_CHECK(deleter && out, "deleter is NULL");
    ABI_TRY(check_foreign(data, given, dims, rank, type, &bytes));
    ort_error err = ORT_ERROR_INIT;
    ort_value *value = NULL;
    return wrap_made(ort_value_new_taking(abi_dtype_in(type), (int)rank, dims, data, bytes,
                                          release_to, deleter, &value, &err),
                     &err, &value, out);
}

OrtStatus *abi_check_tensor(const OrtValue *value)
{
    ABI_CHECK(value, "value is NULL");
    ABI_CHECK(value->value && ort_value_get_kind(value->value) == ORT_VALUE_TENSOR,
              "Argument is not a tensor");
    return NULL;
}

OrtStatus *abi_IsTensor(const OrtValue *value, int *out)
{
    *out = value->value && ort_value_get_kind(value->value) == ORT_VALUE_TENSOR;
    return NULL;
}

OrtStatus *abi_HasValue(const OrtValue *value, int *out)
{
    *out = value->sparse || ort_value_get_kind(value->value) != ORT_VALUE_NONE;
    return NULL;
}

/* Strings have no memory that a client could read: it was handed out as C++ objects. */
OrtStatus *abi_GetTensorMutableData(OrtValue *value, void **out)
{
    ABI_TRY(abi_check_tensor(value));
    ABI_CHECK(ort_value_dtype(value->value) != ORT_DTYPE_STRING,
              "A tensor of strings has no data of its own: use GetStringTensorElement");
    *out = ort_value_data(value->value);
    return NULL;
}

OrtStatus *abi_GetTensorData(const OrtValue *value, const void **out)
{
    void *data = NULL;
    ABI_TRY(abi_GetTensorMutableData((OrtValue *)value, &data));
    *out = data;
    return NULL;
}

OrtStatus *abi_GetTensorSizeInBytes(const OrtValue *value, size_t *out)
{
    ABI_TRY(abi_check_tensor(value));
    ABI_CHECK(ort_value_dtype(value->value) != ORT_DTYPE_STRING,
              "String tensors are not supported");
    *out = ort_value_bytes(value->value);
    return NULL;
}

OrtStatus *abi_GetTensorMemoryInfo(const OrtValue *value, const OrtMemoryInfo **out)
{
    ABI_CHECK(value && out, "value is NULL");
    *out = value->memory;
    return NULL;
}

OrtStatus *abi_TensorAt(OrtValue *value, const int64_t *place, size_t rank, void **out)
{
    ABI_TRY(abi_check_tensor(value));
    ort_value *tensor = value->value;
    int bits = ort_dtype_bits(ort_value_dtype(tensor));
    ABI_CHECK(ort_value_dtype(tensor) != ORT_DTYPE_STRING, "this API does not support strings");
    ABI_CHECK((size_t)ort_value_rank(tensor) == rank,
              "location dimensions do not match shape size");
    ABI_CHECK(bits % 8 == 0, "this API does not support elements of %d bits", bits);
    int64_t at = 0;
    for (size_t i = 0; i < rank; i++) {
        ABI_CHECK(place[i] >= 0 && place[i] < ort_value_dims(tensor)[i], "invalid location range");
        at = at * ort_value_dims(tensor)[i] + place[i];
    }
    *out = (char *)ort_value_data(tensor) + at * (bits / 8);
    return NULL;
}

/* ------------------------------------------------------------------------- sequences and maps */

static OrtStatus *make_sequence(const OrtValue *const *items, size_t count, ort_value **out)
{
    ort_error err = ORT_ERROR_INIT;
    if (ort_value_new_sequence(out, &err) != ORT_OK)
        return abi_from_error(&err);
    for (size_t i = 0; i < count; i++) {
        if (items[i]->value && ort_value_append(*out, items[i]->value, &err) == ORT_OK)
            continue;
        ort_value_free(*out);
        return items[i]->value ? abi_from_error(&err)
                               : abi_fail(ABI_INVALID_ARGUMENT, "A sequence has no sparse tensors");
    }
    return NULL;
}

OrtStatus *abi_CreateValue(const OrtValue *const *items, size_t count, int type, OrtValue **out)
{
    ABI_CHECK(items || !count, "in is NULL");
    if (!count)
        return abi_fail(ABI_FAIL, "Number of values should be at least 1.");
    ort_error err = ORT_ERROR_INIT;
    ort_value *value = NULL;
    if (type == ABI_SEQUENCE) {
        ABI_TRY(make_sequence(items, count, &value));
        return abi_wrap(value, out);
    }
    if (type != ABI_MAP)
        return abi_fail(ABI_FAIL, "Input is not of type sequence or map.");
    if (count != 2)
        return abi_fail(ABI_FAIL, "For map type num_values MUST be 2");
    ABI_TRY(abi_check_tensor(items[0]));
    ABI_TRY(abi_check_tensor(items[1]));
    return wrap_made(ort_value_new_map(items[0]->value, items[1]->value, &value, &err), &err,
                     &value, out);
}

OrtStatus *abi_GetValueCount(const OrtValue *value, size_t *out)
{
    ort_value_kind kind = value->value ? ort_value_get_kind(value->value) : ORT_VALUE_TENSOR;
    if (kind != ORT_VALUE_SEQUENCE && kind != ORT_VALUE_MAP)
        return abi_fail(ABI_FAIL, "Input is not of type sequence or map.");
    *out = kind == ORT_VALUE_MAP ? 2 : (size_t)ort_value_count(value->value);
    return NULL;
}

OrtStatus *abi_GetValue(const OrtValue *value, int index, OrtAllocator *allocator, OrtValue **out)
{
    size_t count;
    ABI_TRY(abi_GetValueCount(value, &count));
    if (index < 0 || (size_t)index >= count)
        return abi_fail(ABI_FAIL,
                        ort_value_get_kind(value->value) == ORT_VALUE_MAP
                            ? "Invalid index requested for map type."
                            : "invalid index %d of %zu",
                        index, count);
    return abi_wrap(ort_value_retain(ort_value_item(value->value, (size_t)index)), out);
}
