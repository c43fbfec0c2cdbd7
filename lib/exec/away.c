/* away.c - values that lie on a device: made, cut, copied, asked where they are. */
#include "exec/away.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"

/* A value holds it; a part holds the whole one, too. */
typedef struct memory {
    ort_device *device;
    void *memory; /* the provider's */
    ort_value *whole;
    size_t offset, bytes;
} memory;

static const memory *memory_of(const ort_value *value)
{
    return value->storage;
}

static void free_memory(void *arg, void *storage)
{
    memory *m = storage;
    m->device->row->memory_free(m->memory);
    ort_value_free(m->whole);
    ort_device_free(m->device);
    free(m);
}

/* What a provider says without its name. */
static ort_status failed(const ort_device *device, ort_status status, const char *what,
                         ort_error *err)
{
    if (status == ORT_OK || !err)
        return status;
    if (!err->message[0])
        return ort_error_set(err, status, "%s: %s failed", device->name, what);
    return ort_error_wrap(err, status, "%s: %s", device->name, what);
}

/* Providers always get one, without words. */
static ort_error *cleared(ort_error *err, ort_error *own)
{
    err = err ? err : own;
    err->message[0] = '\0';
    return err;
}

static ort_status new_value(ort_device *device, const ort_tensor *type, ort_value **value,
                            memory **made, ort_error *err)
{
    *made = calloc(1, sizeof **made);
    if (!*made)
        return ort_error_memory(err, sizeof **made);
    ort_status status = ort_value_new_view(type, value, err);
    if (status != ORT_OK) {
        free(*made);
        return status;
    }
    (*value)->kind = ORT_KIND_DEVICE;
    (*made)->device = ort_device_retain(device);
    (*made)->bytes = ort_tensor_bytes(type);
    return ORT_OK;
}

/* The memory is there, or the value goes again. */
static ort_status finish(ort_value **value, memory *made, ort_status status, ort_error *err)
{
    if (status == ORT_OK) {
        (*value)->storage = made;
        (*value)->release = free_memory;
        return ORT_OK;
    }
    status = failed(made->device, status, "memory", err);
    ort_device_free(made->device);
    free(made);
    ort_value_free(*value);
    *value = NULL;
    return status;
}

static ort_status check_type(ort_dtype dtype, const ort_shape *shape, ort_error *err)
{
    if (dtype == ORT_DTYPE_STRING || ort_dtype_get(dtype)->bits == 0)
        return ort_error_set(err, ORT_ERROR_DATA, "a tensor on a device can't have element type %s",
                             ort_dtype_name(dtype));
    return ort_shape_check(shape, dtype, err);
}

static ort_status make_shape(int rank, const int64_t *dims, ort_shape *shape, ort_error *err)
{
    if (rank < 0 || rank > ORT_MAX_RANK)
        return ort_error_set(err, ORT_ERROR_DATA, "rank %d is outside 0..%d", rank, ORT_MAX_RANK);
    *shape = ort_shape_make(rank, dims);
    return ORT_OK;
}

ort_status ort_device_value_new(ort_device *device, ort_dtype dtype, const ort_shape *shape,
                                ort_value **value, ort_error *err)
{
    const ort_tensor type = {.dtype = dtype, .shape = *shape};
    memory *made;
    ort_error own;
    ORT_TRY(check_type(dtype, shape, err));
    ORT_TRY(new_value(device, &type, value, &made, err));
    err = cleared(err, &own);
    ort_status status = device->row->memory(device->device, made->bytes ? made->bytes : 1,
                                            &made->memory, err);
    return finish(value, made, status, err);
}

ort_status ort_value_new_on_device(ort_device *device, ort_dtype dtype, int rank,
                                   const int64_t *dims, ort_value **value, ort_error *err)
{
    if (!device || !value || (rank && !dims))
        return ort_error_null(err, __func__);
    ort_shape shape;
    *value = NULL;
    ORT_TRY(make_shape(rank, dims, &shape, err));
    return ort_device_value_new(device, dtype, &shape, value, err);
}

/* ---- parts: always of the memory as it was made */

static ort_status check_part(const memory *of, size_t offset, size_t bytes, ort_error *err)
{
    size_t end, step = of->device->row->memory_alignment(of->device->device);
    if (step && offset % step)
        return ort_error_set(err, ORT_ERROR_USAGE, "a part that begins at byte %zu: on %s, parts "
                             "begin at multiples of %zu", offset, of->device->name, step);
    if (ort_add_size(offset, bytes, &end) && end <= of->bytes)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_USAGE, "a part of %zu bytes from byte %zu on: the value "
                         "has %zu", bytes, offset, of->bytes);
}

ort_status ort_value_new_part(ort_value *whole, size_t offset, ort_dtype dtype, int rank,
                              const int64_t *dims, ort_value **part, ort_error *err)
{
    if (!whole || !part || (rank && !dims))
        return ort_error_null(err, __func__);
    ort_tensor type = {.dtype = dtype};
    memory *made;
    ort_error own;
    *part = NULL;
    if (!ort_value_is_away(whole))
        return ort_error_set(err, ORT_ERROR_USAGE, "only a tensor on a device has parts");
    ORT_TRY(make_shape(rank, dims, &type.shape, err));
    ORT_TRY(check_type(dtype, &type.shape, err));
    ORT_TRY(check_part(memory_of(whole), offset, ort_tensor_bytes(&type), err));
    const memory *m = memory_of(whole);
    offset += m->offset;
    if (m->whole)
        whole = m->whole;
    ORT_TRY(new_value(m->device, &type, part, &made, err));
    err = cleared(err, &own);
    ort_status status = m->device->row->memory_part(memory_of(whole)->memory, offset,
                                                    made->bytes ? made->bytes : 1, &made->memory,
                                                    err);
    ORT_TRY(finish(part, made, status, err));
    made->whole = ort_value_retain(whole);
    made->offset = offset;
    return ORT_OK;
}

bool ort_device_values_meet(const ort_value *a, const ort_value *b)
{
    const memory *x = memory_of(a), *y = memory_of(b);
    const memory *from_x = x->whole ? memory_of(x->whole) : x;
    const memory *from_y = y->whole ? memory_of(y->whole) : y;
    return from_x == from_y && x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

/* ---- where, and copies */

ort_device *ort_value_device(const ort_value *value)
{
    return ort_value_is_away(value) ? memory_of(value)->device : NULL;
}

void *ort_device_value_memory(const ort_value *value)
{
    return memory_of(value)->memory;
}

static ort_status read_value(const ort_value *value, void *data, ort_error *err)
{
    const memory *m = memory_of(value);
    ort_error own;
    err = cleared(err, &own);
    ort_status status = m->bytes ? m->device->row->memory_read(m->memory, data, m->bytes, err)
                                 : ORT_OK;
    return failed(m->device, status, "reading a value", err);
}

ort_status ort_device_value_write(ort_value *value, const void *data, ort_error *err)
{
    const memory *m = memory_of(value);
    ort_error own;
    err = cleared(err, &own);
    ort_status status = m->bytes ? m->device->row->memory_write(m->memory, data, m->bytes, err)
                                 : ORT_OK;
    return failed(m->device, status, "writing a value", err);
}

static ort_status check_copy(const ort_value *to, const ort_value *from, ort_error *err)
{
    if (ort_value_get_kind(to) != ORT_VALUE_TENSOR || ort_value_get_kind(from) != ORT_VALUE_TENSOR)
        return ort_error_set(err, ORT_ERROR_USAGE, "only the elements of tensors are copied");
    const ort_tensor *a = &to->tensor, *b = &from->tensor;
    if (a->dtype != b->dtype || ort_tensor_count(a) != ort_tensor_count(b))
        return ort_error_set(err, ORT_ERROR_DATA, "%lld elements of %s can't be copied to %lld of "
                             "%s", (long long)ort_tensor_count(b), ort_dtype_name(b->dtype),
                             (long long)ort_tensor_count(a), ort_dtype_name(a->dtype));
    if (a->dtype == ORT_DTYPE_STRING)
        return ort_error_set(err, ORT_ERROR_USAGE, "strings aren't copied; ort_value_set_string "
                             "sets one");
    return ORT_OK;
}

ort_status ort_value_copy(ort_value *to, const ort_value *from, ort_error *err)
{
    if (!to || !from)
        return ort_error_null(err, __func__);
    ort_value *copy = NULL;
    ORT_TRY(check_copy(to, from, err));
    if (ort_value_is_away(from) && !ort_value_is_away(to))
        return read_value(from, to->tensor.data, err);
    if (!ort_value_is_away(from) && from->tensor.stride) /* a cache with room between its rows */
        ORT_TRY(ort_value_clone(from, &copy, err));
    else if (ort_value_is_away(from))
        ORT_TRY(ort_value_to_host(from, &copy, err));
    const void *data = copy ? copy->tensor.data : from->tensor.data;
    ort_status status = ORT_OK;
    if (ort_value_is_away(to))
        status = ort_device_value_write(to, data, err);
    else if (ort_tensor_bytes(&to->tensor))
        memmove(to->tensor.data, data, ort_tensor_bytes(&to->tensor));
    ort_value_free(copy);
    return status;
}

ort_status ort_value_to_host(const ort_value *value, ort_value **host, ort_error *err)
{
    if (!value || !host)
        return ort_error_null(err, __func__);
    *host = NULL;
    if (!ort_value_is_away(value))
        return ort_value_clone(value, host, err);
    ORT_TRY(ort_value_new_unset_(value->tensor.dtype, &value->tensor.shape, host, err));
    ort_status status = read_value(value, (*host)->tensor.data, err);
    if (status != ORT_OK) {
        ort_value_free(*host);
        *host = NULL;
    }
    return status;
}

/* ---- devices */

ort_status ort_device_open(ort_env *env, const char *provider, ort_device **device, ort_error *err)
{
    if (!env || !provider || !device)
        return ort_error_null(err, __func__);
    const ort_partition_setup setup = {.table = env->providers,
                                       .list = provider,
                                       .threads = env->threads,
                                       .log = &env->log,
                                       .devices = env->devices};
    *device = NULL;
    return ort_partition_device_open(&setup, device, err);
}

const char *ort_device_name(const ort_device *device)
{
    return device ? device->name : "";
}

size_t ort_device_alignment(const ort_device *device)
{
    return device ? device->row->memory_alignment(device->device) : 0;
}

int ort_device_index(const ort_partition *partition, const ort_device *device)
{
    for (int i = 0; i < partition->count - 1; i++)
        if (partition->list[i].memory == device)
            return i;
    return -1;
}

ort_status ort_device_check(const ort_session *session, const ort_device *device, const char *what,
                            const char *name, ort_error *err)
{
    char names[256];
    if (ort_device_index(&session->partition, device) >= 0)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_USAGE, "%s '%s' lies on %s, which isn't a device of this "
                         "session (its providers: %s); ort_value_copy moves elements", what, name,
                         device->name,
                         ort_partition_names(&session->partition, names, sizeof names));
}
