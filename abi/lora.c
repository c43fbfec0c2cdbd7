/* lora.c - LoRA adapters: named weights that a run takes in place of the defaults of inputs.
 *
 * Their files are flatbuffers with the identifier TORT: a table {0 format version, 1 adapter
 * version, 2 model version, 3 parameters}, each parameter a table {0 name, 1 dims, 2 element type,
 * 3 bytes}. A table begins with the distance back to its vtable, which holds the place of each
 * field; lists and texts lie behind a distance forward. Every step is checked against the end of
 * the file.
 */
#include "abi.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct flat {
    const unsigned char *bytes;
    size_t size;
} flat;

struct OrtLoraAdapter {
    abi_named *parameters;
    size_t count;
};

/* -------------------------------------------------------------------------------- flatbuffers */

/* A little-endian number of the file; false: it ends before. */
static bool number(const flat *f, size_t at, size_t bytes, uint64_t *out)
{
    if (at > f->size || bytes > f->size - at)
        return false;
    *out = 0;
    for (size_t i = 0; i < bytes; i++)
        *out |= (uint64_t)f->bytes[at + i] << (8 * i);
    return true;
}

/* Where a field of the table lies; 0: it isn't there. False: the file is damaged. */
static bool field(const flat *f, size_t table, unsigned index, size_t *at)
{
    uint64_t back, size, place;
    *at = 0;
    if (!number(f, table, 4, &back))
        return false;
    int64_t vtable = (int64_t)table - (int32_t)(uint32_t)back;
    if (vtable < 0 || !number(f, (size_t)vtable, 2, &size))
        return false;
    if (4 + 2 * index + 2 > size)
        return true;
    if (!number(f, (size_t)vtable + 4 + 2 * index, 2, &place))
        return false;
    *at = place ? table + place : 0;
    return true;
}

/* What a distance at `at` leads to. */
static bool follow(const flat *f, size_t at, size_t *target)
{
    uint64_t distance;
    if (!at || !number(f, at, 4, &distance))
        return false;
    *target = at + distance;
    return *target < f->size;
}

/* A list of elements of `element` bytes, or a text. */
static bool list(const flat *f, size_t table, unsigned index, size_t element, size_t *first,
                 size_t *count)
{
    size_t at, start;
    uint64_t length;
    *first = *count = 0;
    if (!field(f, table, index, &at))
        return false;
    if (!at)
        return true;
    if (!follow(f, at, &start) || !number(f, start, 4, &length))
        return false;
    *first = start + 4;
    *count = length;
    return *first <= f->size && length <= (f->size - *first) / element;
}

/* ------------------------------------------------------------------------------------ adapters */

static OrtStatus *damaged(void)
{
    return abi_fail(ABI_FAIL, "The buffer fails lora adapter format verification: a part lies "
                              "outside of it");
}

static OrtStatus *make_value(const flat *f, size_t table, ort_value **out)
{
    size_t first, rank, at, data, bytes;
    uint64_t type = 0;
    int64_t dims[ABI_MAX_RANK];
    ort_error err = ORT_ERROR_INIT;
    if (!list(f, table, 1, 8, &first, &rank) || !field(f, table, 2, &at) ||
        (at && !number(f, at, 4, &type)) || !list(f, table, 3, 1, &data, &bytes))
        return damaged();
    ABI_CHECK(rank <= ABI_MAX_RANK, "A parameter of the LoRA adapter has %zu dimensions", rank);
    for (size_t i = 0; i < rank; i++) {
        uint64_t dim = 0;
        number(f, first + 8 * i, 8, &dim);
        dims[i] = (int64_t)dim;
    }
    ort_dtype dtype = type < 24 ? (ort_dtype)type : ORT_DTYPE_UNDEFINED;
    ABI_CHECK(dtype && dtype != ORT_DTYPE_STRING,
              "A parameter of the LoRA adapter has element type %u", (unsigned)type);
    if (ort_value_new_tensor(dtype, (int)rank, dims, out, &err) != ORT_OK)
        return abi_from_error(&err);
    if (ort_value_bytes(*out) != bytes) {
        ort_value_free(*out);
        return abi_fail(ABI_INVALID_ARGUMENT, "A parameter of the LoRA adapter has %zu bytes, its "
                                              "shape needs another number", bytes);
    }
    if (bytes)
        memcpy(ort_value_data(*out), f->bytes + data, bytes);
    return NULL;
}

static OrtStatus *read_parameter(const flat *f, size_t table, abi_named *out)
{
    size_t text, length;
    if (!list(f, table, 0, 1, &text, &length))
        return damaged();
    ABI_CHECK(length, "A parameter of the LoRA adapter has no name");
    ABI_TRY(make_value(f, table, &out->value));
    out->name = strndup((const char *)f->bytes + text, length);
    return out->name ? NULL : abi_no_memory();
}

static OrtStatus *read_adapter(const flat *f, OrtLoraAdapter *adapter)
{
    size_t root, first, count, at, table;
    uint64_t offset, version = 0;
    if (f->size < 8 || memcmp(f->bytes + 4, "TORT", 4))
        return abi_fail(ABI_FAIL, "The buffer does not appear to be a valid lora parameter format: "
                                  "it has no identifier 'TORT'");
    if (!number(f, 0, 4, &offset) || offset >= f->size)
        return damaged();
    root = offset;
    if (!field(f, root, 0, &at) || (at && !number(f, at, 4, &version)) ||
        !list(f, root, 3, 4, &first, &count))
        return damaged();
    ABI_CHECK(version == 1, "The LoRA adapter has format version %u; 1 is supported",
              (unsigned)version);
    adapter->parameters = calloc(count + 1, sizeof *adapter->parameters);
    if (!adapter->parameters)
        return abi_no_memory();
    for (; adapter->count < count; adapter->count++) {
        if (!follow(f, first + 4 * adapter->count, &table))
            return damaged();
        ABI_TRY(read_parameter(f, table, &adapter->parameters[adapter->count]));
    }
    return NULL;
}

void abi_ReleaseLoraAdapter(OrtLoraAdapter *adapter)
{
    if (!adapter)
        return;
    for (size_t i = 0; adapter->parameters && i <= adapter->count; i++) {
        free(adapter->parameters[i].name);
        ort_value_free(adapter->parameters[i].value);
    }
    free(adapter->parameters);
    free(adapter);
}

/* The allocator would give memory of a device; there is none. */
OrtStatus *abi_CreateLoraAdapterFromArray(const void *bytes, size_t size, OrtAllocator *allocator,
                                          OrtLoraAdapter **out)
{
    ABI_CHECK(bytes && out, "bytes is NULL");
    OrtLoraAdapter *adapter = calloc(1, sizeof *adapter);
    if (!adapter)
        return abi_no_memory();
    OrtStatus *status = read_adapter(&(flat){bytes, size}, adapter);
    if (status)
        abi_ReleaseLoraAdapter(adapter);
    else
        *out = adapter;
    return status;
}

static OrtStatus *read_file(int file, size_t size, void *bytes)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = read(file, (char *)bytes + done, size - done);
        if (got <= 0)
            return abi_fail(ABI_FAIL, "The LoRA adapter can't be read");
        done += (size_t)got;
    }
    return NULL;
}

OrtStatus *abi_CreateLoraAdapter(const char *path, OrtAllocator *allocator, OrtLoraAdapter **out)
{
    struct stat info;
    ABI_CHECK(path && out, "adapter_file_path is NULL");
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &info)) {
        if (file >= 0)
            close(file);
        return abi_fail(ABI_INVALID_ARGUMENT, "Load LoRA adapter from %s failed: it can't be "
                                              "opened", path);
    }
    size_t size = (size_t)info.st_size;
    void *bytes = malloc(size + 1);
    OrtStatus *status = bytes ? read_file(file, size, bytes) : abi_no_memory();
    close(file);
    if (!status)
        status = abi_CreateLoraAdapterFromArray(bytes, size, allocator, out);
    free(bytes);
    return status;
}

OrtStatus *abi_RunOptionsAddActiveLoraAdapter(OrtRunOptions *options, const OrtLoraAdapter *adapter)
{
    ABI_CHECK(options && adapter, "options or adapter is NULL");
    for (size_t i = 0; i < adapter->count; i++) {
        abi_named *list = abi_grow(options->adapted, options->adapted_count, sizeof *list);
        if (!list)
            return abi_no_memory();
        options->adapted = list;
        char *name = strdup(adapter->parameters[i].name);
        if (!name)
            return abi_no_memory();
        list[options->adapted_count++] =
            (abi_named){name, ort_value_retain(adapter->parameters[i].value)};
    }
    return NULL;
}
