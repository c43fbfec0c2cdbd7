/* value.c - reference-counted values: tensors with their storage, sequences, maps, absent ones.
 *
 * String tensors own their bytes through the value's arena; a string that is replaced stays there
 * until the value goes. A reference that is handed over ("take") is consumed on failure too. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hashmap.h"
#include "tensor/tensor.h"
#include "tensor/value_block.h"

enum { STORAGE_ALIGNMENT = 64, MOST_NESTED = 64 };

/* `bytes`: of the storage it is going to have. */
static ort_status new_value(ort_kind kind, size_t bytes, ort_value **value, ort_error *err)
{
    const ort_budget *budget = ort_budget_current();
    ort_account *account = budget ? budget->account : NULL;
    size_t total;
    *value = NULL;
    if (!ort_add_size(bytes, sizeof **value, &total))
        return ort_error_memory(err, bytes);
    if (!ort_account_charge(account, total))
        return ort_account_refuse(account, total, "a value", err);
    *value = malloc(sizeof **value); /* glibc's calloc passes by what the thread keeps, */
    __asm__("" : "+r"(*value));      /* and gcc makes a calloc of malloc and memset */
    if (!*value) {
        ort_account_refund(account, total);
        return ort_error_memory(err, sizeof **value);
    }
    size_t size = sizeof **value;
    __asm__("" : "+r"(size)); /* or else by a string instruction, which takes long to begin */
    memset(*value, 0, size);
    (*value)->kind = kind;
    (*value)->references = 1;
    (*value)->account = ort_account_retain(account);
    (*value)->charged_bytes = total;
    return ORT_OK;
}

static void leave_account(ort_value *value)
{
    ort_account_refund(value->account, value->charged_bytes);
    ort_account_release(value->account);
    value->account = NULL;
}

void ort_value_uncharge(ort_value *value)
{
    leave_account(value);
    value->charged_bytes = 0;
}

ort_status ort_value_charge(ort_value *value, size_t bytes, ort_error *err)
{
    if (!ort_account_charge(value->account, bytes))
        return ort_account_refuse(value->account, bytes, "a result", err);
    value->charged_bytes += bytes;
    return ORT_OK;
}

void ort_value_leave_account(ort_value *value)
{
    if (!value)
        return;
    ort_account *outer = ort_account_hand_out(value->account, value->charged_bytes);
    ort_account_release(value->account);
    value->account = outer;
    for (size_t i = 0; i < value->count; i++)
        ort_value_leave_account(value->items[i]);
}

static ort_status new_tensor(ort_dtype dtype, const ort_shape *shape, bool zeroed,
                             ort_value **value, ort_error *err)
{
    *value = NULL;
    if (ort_dtype_get(dtype)->bits == 0)
        return ort_error_set(err, ORT_ERROR_DATA, "element type %d is unknown", (int)dtype);
    ORT_TRY(ort_shape_check(shape, dtype, err));
    ort_value *made;
    ort_tensor tensor = {.dtype = dtype, .shape = *shape};
    size_t bytes = ort_tensor_bytes(&tensor);
    ORT_TRY(new_value(ORT_KIND_TENSOR, bytes, &made, err));
    made->tensor = tensor;
    /* Not aligned_alloc: large zeroed pages come from the system untouched; and what it cuts off a
     * block keeps glibc from using that again for as much, so that repeated results pile up. */
    made->storage = zeroed ? calloc(1, bytes + STORAGE_ALIGNMENT)
                           : malloc(bytes + STORAGE_ALIGNMENT);
    if (!made->storage) {
        ort_value_free(made);
        return ort_error_memory(err, bytes);
    }
    uintptr_t at = (uintptr_t)made->storage;
    made->tensor.data = (char *)made->storage + (STORAGE_ALIGNMENT - at % STORAGE_ALIGNMENT);
    *value = made;
    return ORT_OK;
}

ort_status ort_value_new_tensor_(ort_dtype dtype, const ort_shape *shape, ort_value **value,
                                 ort_error *err)
{
    return new_tensor(dtype, shape, true, value, err);
}

ort_status ort_value_new_unset_(ort_dtype dtype, const ort_shape *shape, ort_value **value,
                                ort_error *err)
{
    return new_tensor(dtype, shape, dtype == ORT_DTYPE_STRING, value, err);
}

ort_status ort_value_new_tensor(ort_dtype dtype, int rank, const int64_t *dims, ort_value **value,
                                ort_error *err)
{
    if (!value || !(!rank || dims))
        return ort_error_null(err, __func__);
    *value = NULL;
    if (rank < 0 || rank > ORT_MAX_RANK)
        return ort_error_set(err, ORT_ERROR_DATA, "rank %d is outside 0..%d", rank, ORT_MAX_RANK);
    ort_shape shape = ort_shape_make(rank, dims);
    return ort_value_new_tensor_(dtype, &shape, value, err);
}

ort_status ort_value_for_kernel(const ort_tensor *tensor, ort_value **value, ort_error *err)
{
    ort_value *view = NULL;
    ORT_TRY(ort_value_new_view(tensor, &view, err));
    if (!tensor->data || ort_tensor_aligned(tensor)) {
        *value = view;
        return ORT_OK;
    }
    ort_status status = ort_value_clone(view, value, err);
    ort_value_free(view);
    return status;
}

ort_status ort_value_new_view(const ort_tensor *tensor, ort_value **value, ort_error *err)
{
    ORT_TRY(new_value(ORT_KIND_TENSOR, 0, value, err));
    (*value)->tensor = *tensor;
    return ORT_OK;
}

ort_status ort_value_new_borrowed(ort_dtype dtype, int rank, const int64_t *dims, void *data,
                                  size_t bytes, ort_value **value, ort_error *err)
{
    if (!value || !(!rank || dims))
        return ort_error_null(err, __func__);
    *value = NULL;
    if (rank < 0 || rank > ORT_MAX_RANK)
        return ort_error_set(err, ORT_ERROR_DATA, "rank %d is outside 0..%d", rank, ORT_MAX_RANK);
    if (dtype == ORT_DTYPE_STRING || ort_dtype_get(dtype)->bits == 0)
        return ort_error_set(err, ORT_ERROR_DATA,
                             "a tensor over the caller's memory can't have element type %s",
                             ort_dtype_name(dtype));
    ort_tensor tensor = {.dtype = dtype, .shape = ort_shape_make(rank, dims), .data = data};
    ORT_TRY(ort_shape_check(&tensor.shape, dtype, err));
    if (ort_tensor_bytes(&tensor) != bytes)
        return ort_error_set(err, ORT_ERROR_DATA,
                             "the memory given has %zu bytes, this type and shape need %zu", bytes,
                             ort_tensor_bytes(&tensor));
    if (bytes && !data)
        return ort_error_null(err, __func__);
    if (!ort_tensor_aligned(&tensor))
        return ort_error_set(err, ORT_ERROR_DATA, "the memory given isn't aligned for %s",
                             ort_dtype_name(dtype));
    return ort_value_new_view(&tensor, value, err);
}

ort_status ort_value_new_taking(ort_dtype dtype, int rank, const int64_t *dims, void *data,
                                size_t bytes, ort_release_fn *release, void *release_arg,
                                ort_value **value, ort_error *err)
{
    if (!release)
        return ort_error_null(err, __func__);
    ORT_TRY(ort_value_new_borrowed(dtype, rank, dims, data, bytes, value, err));
    (*value)->given = true;
    (*value)->storage = data;
    (*value)->release = release;
    (*value)->release_arg = release_arg;
    return ORT_OK;
}

ort_status ort_value_new_sequence_(ort_value **value, ort_error *err)
{
    return new_value(ORT_KIND_SEQUENCE, 0, value, err);
}

ort_status ort_value_new_none(ort_value **value, ort_error *err)
{
    return new_value(ORT_KIND_NONE, 0, value, err);
}

ort_status ort_value_new_sequence(ort_value **value, ort_error *err)
{
    if (!value)
        return ort_error_null(err, __func__);
    return ort_value_new_sequence_(value, err);
}

ort_status ort_value_check_host(const ort_value *value, ort_error *err)
{
    if (!value || value->kind != ORT_KIND_DEVICE)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_USAGE, "the value lies on a device, where nothing but runs "
                         "and ort_value_copy reach it; ort_value_to_host gives a copy");
}

ort_status ort_value_reserve(ort_value *value, size_t more, ort_error *err)
{
    size_t wanted, bytes, capacity = value->capacity ? value->capacity * 2 : 8;
    if (!ort_add_size(value->count, more, &wanted))
        return ort_error_memory(err, SIZE_MAX);
    if (wanted <= value->capacity)
        return ORT_OK;
    capacity = capacity < wanted ? wanted : capacity;
    if (!ort_mul_size(capacity, sizeof *value->items, &bytes))
        return ort_error_memory(err, SIZE_MAX);
    ort_value **items = realloc(value->items, bytes);
    if (!items)
        return ort_error_memory(err, bytes);
    value->items = items;
    value->capacity = capacity;
    return ORT_OK;
}

static ort_status refuse_depth(ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_DATA, "sequences are nested %d deep at most", MOST_NESTED);
}

/* Freeing, copying and writing go down by recursion: so nothing is nested without a bound. */
ort_status ort_value_append_take(ort_value *sequence, ort_value *item, ort_error *err)
{
    bool too_deep = item && item->depth >= MOST_NESTED;
    ort_status status = too_deep ? refuse_depth(err)
                                 : ort_value_reserve(sequence, 1, err);
    if (status != ORT_OK) {
        ort_value_free(item);
        return status;
    }
    if (item && item->kind == ORT_KIND_TENSOR && sequence->item_dtype == ORT_DTYPE_UNDEFINED)
        sequence->item_dtype = item->tensor.dtype;
    sequence->items[sequence->count++] = item;
    if (item && item->kind != ORT_KIND_TENSOR) {
        item->is_item = true; /* whoever lets it grow could make a circle */
        sequence->depth = sequence->depth > item->depth ? sequence->depth : item->depth + 1;
    }
    return ORT_OK;
}

ort_status ort_value_append(ort_value *sequence, ort_value *item, ort_error *err)
{
    if (!sequence || sequence->kind != ORT_KIND_SEQUENCE || !item || item == sequence)
        return ort_error_set(err, ORT_ERROR_DATA, "only another value can be appended, and only to "
                                                  "a sequence");
    if (sequence->is_item)
        return ort_error_set(err, ORT_ERROR_DATA,
                             "a sequence that is an item of another can't grow any more");
    ORT_TRY(ort_value_check_host(item, err));
    return ort_value_append_take(sequence, ort_value_retain(item), err);
}

ort_status ort_value_new_map_take(ort_value *keys, ort_value *values, ort_value **value,
                                  ort_error *err)
{
    ort_value *map = NULL;
    ort_status status = new_value(ORT_KIND_MAP, 0, &map, err);
    if (status == ORT_OK)
        status = ort_value_reserve(map, 2, err);
    if (status != ORT_OK) {
        ort_value_free(keys);
        ort_value_free(values);
        ort_value_free(map);
        *value = NULL;
        return status;
    }
    map->items[0] = keys;
    map->items[1] = values;
    map->count = 2;
    *value = map;
    return ORT_OK;
}

static bool is_vector(const ort_value *value)
{
    return value && value->kind == ORT_KIND_TENSOR && value->tensor.shape.rank == 1;
}

ort_status ort_value_new_map(ort_value *keys, ort_value *values, ort_value **map, ort_error *err)
{
    if (!map)
        return ort_error_null(err, __func__);
    *map = NULL;
    if (!is_vector(keys) || !is_vector(values) ||
        keys->tensor.shape.dim[0] != values->tensor.shape.dim[0])
        return ort_error_set(err, ORT_ERROR_DATA, "keys and values of a map must be "
                                                  "one-dimensional tensors of equal length");
    ort_dtype dtype = keys->tensor.dtype;
    ort_dtype_class class_ = ort_dtype_get(dtype)->class_;
    if ((class_ != ORT_CLASS_STRING && class_ != ORT_CLASS_INT && class_ != ORT_CLASS_UINT) ||
        ort_dtype_get(dtype)->bits < 8)
        return ort_error_set(err, ORT_ERROR_DATA, "keys of a map must be integers or strings, not "
                                                  "%s", ort_dtype_name(dtype));
    return ort_value_new_map_take(ort_value_retain(keys), ort_value_retain(values), map, err);
}

ort_value *ort_value_retain(ort_value *value)
{
    if (value)
        __atomic_add_fetch(&value->references, 1, __ATOMIC_RELAXED);
    return value;
}

void ort_value_block_drop(struct ort_value_block *block)
{
    if (__atomic_sub_fetch(&block->references, 1, __ATOMIC_ACQ_REL) == 0)
        free(block);
}

void ort_value_free(ort_value *value)
{
    if (!value || __atomic_sub_fetch(&value->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = 0; i < value->count; i++)
        ort_value_free(value->items[i]);
    if (!value->block)
        free(value->items);
    if (value->release && (value->storage || value->given))
        value->release(value->release_arg, value->storage);
    else
        free(value->storage);
    ort_arena_release(&value->strings);
    leave_account(value);
    if (value->block)
        ort_value_block_drop(value->block);
    else
        free(value);
}

/* Packed elements (types below 8 bits) of strided tensors are moved by number. */
static void copy_strided(ort_tensor *dst, const ort_tensor *src)
{
    int bits = ort_dtype_get(src->dtype)->bits;
    int64_t count = ort_tensor_count(src), index[ORT_MAX_RANK] = {0}, offset = 0;
    size_t size = (size_t)bits / 8;
    for (int64_t i = 0; i < count; i++) {
        if (bits < 8)
            ort_tensor_set_f64(dst, i, ort_tensor_get_f64(src, i));
        else
            memcpy((char *)dst->data + (size_t)i * size,
                   (const char *)src->data + offset * (int64_t)size, size);
        for (int axis = src->shape.rank - 1; axis >= 0; axis--) {
            offset += src->stride[axis];
            if (++index[axis] < src->shape.dim[axis])
                break;
            offset -= src->stride[axis] * src->shape.dim[axis];
            index[axis] = 0;
        }
    }
}

static ort_status clone_tensor(const ort_tensor *source, ort_value **value, ort_error *err)
{
    ort_value *copy;
    ORT_TRY(new_tensor(source->dtype, &source->shape,
                       source->stride || source->dtype == ORT_DTYPE_STRING, &copy, err));
    if (source->stride)
        copy_strided(&copy->tensor, source);
    else
        ort_tensor_copy_data(&copy->tensor, source);
    *value = copy;
    if (source->dtype != ORT_DTYPE_STRING)
        return ORT_OK;
    ort_string *strings = copy->tensor.data;
    int64_t count = ort_tensor_count(&copy->tensor);
    for (int64_t i = 0; i < count; i++) {
        char *bytes = ort_arena_strndup(&copy->strings, strings[i].ptr, strings[i].length);
        if (!bytes) {
            size_t length = strings[i].length;
            ort_value_free(copy);
            *value = NULL;
            return ort_error_memory(err, length);
        }
        strings[i].ptr = bytes;
    }
    return ORT_OK;
}

ort_status ort_value_clone(const ort_value *source, ort_value **value, ort_error *err)
{
    *value = NULL;
    ORT_TRY(ort_value_check_host(source, err));
    if (source->kind == ORT_KIND_TENSOR)
        return clone_tensor(&source->tensor, value, err);
    ort_value *copy;
    ORT_TRY(new_value(source->kind, 0, &copy, err));
    copy->item_dtype = source->item_dtype;
    copy->depth = source->depth;
    for (size_t i = 0; i < source->count; i++) {
        ort_value *item = NULL;
        ort_status status = ort_value_reserve(copy, 1, err);
        if (status == ORT_OK && source->items[i])
            status = ort_value_clone(source->items[i], &item, err);
        if (status == ORT_OK && item)
            item->is_item = source->items[i]->is_item;
        if (status != ORT_OK) {
            ort_value_free(copy);
            return status;
        }
        copy->items[copy->count++] = item;
    }
    *value = copy;
    return ORT_OK;
}

ort_status ort_value_set_string_(ort_value *value, int64_t index, const char *text, size_t length,
                                 ort_error *err)
{
    char *copy = ort_arena_strndup(&value->strings, text, length);
    if (!copy)
        return ort_error_memory(err, length);
    ((ort_string *)value->tensor.data)[index] = (ort_string){copy, length};
    return ORT_OK;
}

static bool is_tensor(const ort_value *value)
{
    return value && value->kind == ORT_KIND_TENSOR;
}

static bool has_type(const ort_value *value)
{
    return value && (value->kind == ORT_KIND_TENSOR || value->kind == ORT_KIND_DEVICE);
}

static bool has_element(const ort_value *value, int64_t index)
{
    return is_tensor(value) && index >= 0 && index < ort_tensor_count(&value->tensor);
}

static bool has_string(const ort_value *value, int64_t index)
{
    return has_element(value, index) && value->tensor.dtype == ORT_DTYPE_STRING &&
           !value->tensor.stride;
}

static ort_status no_string(int64_t index, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_DATA, "the value has no string element %lld",
                         (long long)index);
}

ort_status ort_value_set_string(ort_value *value, int64_t index, const char *text, size_t length,
                                ort_error *err)
{
    if (!(text || !length))
        return ort_error_null(err, __func__);
    if (!has_string(value, index))
        return no_string(index, err);
    return ort_value_set_string_(value, index, text, length, err);
}

ort_status ort_value_resize_string(ort_value *value, int64_t index, size_t length, char **text,
                                   ort_error *err)
{
    if (!text)
        return ort_error_null(err, __func__);
    *text = NULL;
    if (!has_string(value, index))
        return no_string(index, err);
    char *bytes = length == SIZE_MAX ? NULL
                                     : ort_arena_alloc_aligned(&value->strings, length + 1, 1, 1);
    if (!bytes)
        return ort_error_memory(err, length);
    ((ort_string *)value->tensor.data)[index] = (ort_string){bytes, length};
    *text = bytes;
    return ORT_OK;
}

const char *ort_value_string(const ort_value *value, int64_t index, size_t *length)
{
    ort_string none = {"", 0};
    ort_string s = has_string(value, index) ? ((const ort_string *)value->tensor.data)[index]
                                            : none;
    if (length)
        *length = s.length;
    return s.ptr ? s.ptr : "";
}

ort_value_kind ort_value_get_kind(const ort_value *value)
{
    return has_type(value) ? ORT_VALUE_TENSOR
           : value        ? (ort_value_kind)value->kind
                          : ORT_VALUE_NONE;
}

ort_dtype ort_value_dtype(const ort_value *value)
{
    return has_type(value) ? value->tensor.dtype
           : value         ? value->item_dtype
                           : ORT_DTYPE_UNDEFINED;
}

int ort_value_rank(const ort_value *value)
{
    return has_type(value) ? value->tensor.shape.rank : 0;
}

const int64_t *ort_value_dims(const ort_value *value)
{
    return has_type(value) ? value->tensor.shape.dim : NULL;
}

int64_t ort_value_count(const ort_value *value)
{
    if (has_type(value))
        return ort_tensor_count(&value->tensor);
    if (value && value->kind == ORT_KIND_MAP)
        return ort_value_count(value->items[0]);
    return value ? (int64_t)value->count : 0;
}

void *ort_value_data(ort_value *value)
{
    return is_tensor(value) && value->tensor.dtype != ORT_DTYPE_STRING ? value->tensor.data : NULL;
}

size_t ort_value_bytes(const ort_value *value)
{
    return has_type(value) ? ort_tensor_bytes(&value->tensor) : 0;
}

ort_value *ort_value_item(const ort_value *value, size_t index)
{
    return value && index < value->count ? value->items[index] : NULL;
}

static bool has_number(const ort_value *value, int64_t index)
{
    if (!has_element(value, index))
        return false;
    ort_dtype_class class_ = ort_dtype_get(value->tensor.dtype)->class_;
    return value->tensor.data && class_ != ORT_CLASS_STRING && class_ != ORT_CLASS_COMPLEX &&
           class_ != ORT_CLASS_NONE;
}

double ort_value_get_double(const ort_value *value, int64_t index)
{
    return has_number(value, index) ? ort_tensor_get_f64(&value->tensor, index) : NAN;
}

void ort_value_set_double(ort_value *value, int64_t index, double number)
{
    if (has_number(value, index))
        ort_tensor_set_f64(&value->tensor, index, number);
}

/* The bits that pad the last byte of packed elements are nobody's. */
static uint64_t digest_data(const ort_tensor *t, uint64_t digest)
{
    size_t bytes = ort_tensor_bytes(t);
    int used = (int)(ort_tensor_count(t) * ort_dtype_get(t->dtype)->bits % 8);
    if (bytes == 0)
        return digest;
    if (used == 0)
        return ort_hash_bytes(t->data, bytes, digest);
    uint8_t last = ((const uint8_t *)t->data)[bytes - 1] & (uint8_t)((1 << used) - 1);
    return ort_hash_bytes(&last, 1, ort_hash_bytes(t->data, bytes - 1, digest));
}

static uint64_t digest_tensor(const ort_tensor *t, uint64_t seed)
{
    uint64_t head[2 + ORT_MAX_RANK] = {(uint64_t)t->dtype, (uint64_t)t->shape.rank};
    for (int i = 0; i < t->shape.rank; i++)
        head[2 + i] = (uint64_t)t->shape.dim[i];
    uint64_t digest = ort_hash_bytes(head, (size_t)(2 + t->shape.rank) * sizeof head[0], seed);
    if (t->dtype != ORT_DTYPE_STRING)
        return digest_data(t, digest);
    const ort_string *strings = t->data;
    int64_t count = ort_tensor_count(t);
    for (int64_t i = 0; i < count; i++)
        digest = ort_hash_bytes(strings[i].ptr, strings[i].length, digest);
    return digest;
}

static uint64_t digest_value(const ort_value *value, uint64_t seed)
{
    if (!value)
        return ort_hash_bytes("none", 4, seed);
    if (value->kind == ORT_KIND_TENSOR && !value->tensor.stride)
        return digest_tensor(&value->tensor, seed);
    if (value->kind == ORT_KIND_TENSOR) {
        ort_value *copy;
        if (ort_value_clone(value, &copy, NULL) != ORT_OK)
            return 0;
        uint64_t digest = digest_tensor(&copy->tensor, seed);
        ort_value_free(copy);
        return digest;
    }
    uint64_t head[2] = {1000u + (uint64_t)value->kind, value->count};
    uint64_t digest = ort_hash_bytes(head, sizeof head, seed);
    for (size_t i = 0; i < value->count; i++)
        digest = digest_value(value->items[i], digest);
    return digest;
}

uint64_t ort_value_digest(const ort_value *value)
{
    return digest_value(value, 0);
}
