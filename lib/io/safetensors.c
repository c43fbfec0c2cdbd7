/* safetensors.c - a 64-bit header length, a JSON object, then the bytes of all tensors.
 *
 *     {"x": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {...}}
 *
 * Offsets count from the end of the header. Every tensor is checked to lie inside the file. Element
 * types that the format lacks (4-bit integers, strings) are refused when writing. */
#include <assert.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "io/format.h"
#include "io/tensor_json.h"

static ort_dtype find_dtype(const char *name)
{
    for (int i = 1; i < ORT_DTYPE_COUNT; i++) {
        const char *code = ort_dtype_get((ort_dtype)i)->safetensors;
        if (code && !strcmp(code, name))
            return (ort_dtype)i;
    }
    return ORT_DTYPE_UNDEFINED;
}

static struct json_object *get_array(struct json_object *entry, const char *key)
{
    struct json_object *array;
    if (!json_object_object_get_ex(entry, key, &array) ||
        !json_object_is_type(array, json_type_array))
        return NULL;
    for (size_t i = 0; i < json_object_array_length(array); i++)
        if (!json_object_is_type(json_object_array_get_idx(array, i), json_type_int))
            return NULL;
    return array;
}

static int64_t item(struct json_object *array, size_t index)
{
    return json_object_get_int64(json_object_array_get_idx(array, index));
}

static ort_status read_entry(struct json_object *entry, const unsigned char *data, size_t size,
                             ort_value **value, ort_error *err)
{
    struct json_object *type, *shape = get_array(entry, "shape");
    struct json_object *offsets = get_array(entry, "data_offsets");
    if (!json_object_object_get_ex(entry, "dtype", &type) || !shape || !offsets ||
        json_object_array_length(offsets) != 2)
        return ort_error_set(err, ORT_ERROR_DATA, "needs dtype, shape and data_offsets");
    ort_dtype dtype = find_dtype(json_object_get_string(type));
    if (dtype == ORT_DTYPE_UNDEFINED)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "dtype %s has no ONNX equivalent",
                             json_object_get_string(type));
    ort_tensor t = {.dtype = dtype};
    size_t rank = json_object_array_length(shape);
    t.shape.rank = rank > ORT_MAX_RANK ? ORT_MAX_RANK + 1 : (int)rank;
    for (size_t i = 0; i < rank && i < ORT_MAX_RANK; i++)
        t.shape.dim[i] = item(shape, i);
    ORT_TRY(ort_shape_check(&t.shape, dtype, err));
    int64_t begin = item(offsets, 0), end = item(offsets, 1);
    if (begin < 0 || end < begin || (uint64_t)end > size)
        return ort_error_set(err, ORT_ERROR_DATA, "data_offsets [%lld, %lld] lie outside the %zu "
                             "bytes of data; the file may be truncated", (long long)begin,
                             (long long)end, size);
    if ((uint64_t)(end - begin) != ort_tensor_bytes(&t))
        return ort_error_set(err, ORT_ERROR_DATA, "has %lld bytes, its type and shape need %zu",
                             (long long)(end - begin), ort_tensor_bytes(&t));
    ORT_TRY(ort_value_new_tensor_(dtype, &t.shape, value, err));
    assert(ort_tensor_bytes(&(*value)->tensor) == (size_t)(end - begin));
    if (end > begin)
        memcpy((*value)->tensor.data, data + begin, (size_t)(end - begin));
    return ORT_OK;
}

static ort_status read_file(const unsigned char *bytes, size_t count,
                            const ort_read_options *options, ort_tensors *tensors, ort_error *err)
{
    uint64_t length = count >= 8 ? ort_load_u64(bytes) : 0;
    if (count < 8 || length > count - 8 || length > INT_MAX)
        return ort_error_set(err, ORT_ERROR_DATA, "truncated at byte %zu: the header of a "
                             ".safetensors file needs %llu more bytes", count,
                             (unsigned long long)(count < 8 ? 8 - count : length - (count - 8)));
    struct json_object *root;
    ORT_TRY(ort_json_parse_object(bytes + 8, (size_t)length, &root, err));
    ort_status status = ORT_OK;
    if (!root)
        return ort_error_set(err, ORT_ERROR_DATA, "the header is no JSON object");
    json_object_object_foreach(root, name, entry) {
        if (!strcmp(name, "__metadata__"))
            continue;
        ort_value *value = NULL;
        status = read_entry(entry, bytes + 8 + length, count - 8 - (size_t)length, &value, err);
        status = status == ORT_OK ? ort_tensors_add_take(tensors, name, value, err)
                                  : ort_error_wrap(err, status, "tensor '%s'", name);
        if (status != ORT_OK)
            break;
    }
    json_object_put(root);
    return status;
}

static ort_status add_header(const ort_tensors *tensors, ort_strbuf *header, ort_error *err)
{
    ort_json json;
    uint64_t offset = 0;
    ort_json_init(&json, header, 0);
    ort_json_begin_object(&json);
    for (size_t i = 0; i < tensors->list.count; i++) {
        const ort_value *value = tensors->list.data[i].value;
        if (!value || value->kind != ORT_KIND_TENSOR)
            return ort_format_tensors_only(err, ".safetensors");
        const ort_tensor *t = &value->tensor;
        const char *code = ort_dtype_get(t->dtype)->safetensors;
        if (!code)
            return ort_format_lacks(err, ".safetensors", t->dtype);
        char number[32];
        ort_json_key(&json, ort_tensors_full_name(tensors, i, number));
        ort_json_begin_object(&json);
        ort_tensor_json_add_type(&json, code, &t->shape);
        ort_json_key(&json, "data_offsets");
        ort_json_begin_array(&json);
        ort_json_uint(&json, offset);
        offset += ort_tensor_bytes(t);
        ort_json_uint(&json, offset);
        ort_json_end_array(&json);
        ort_json_end_object(&json);
    }
    ort_json_end_object(&json);
    while (header->length % 8 != 0 && !header->failed)
        ort_strbuf_add_char(header, ' '); /* the data stays aligned */
    return header->failed ? ort_error_memory(err, header->length) : ORT_OK;
}

static ort_status write_file(const ort_tensors *tensors, FILE *stream,
                             const ort_write_options *options, ort_error *err)
{
    ort_strbuf header = {0};
    ort_status status = add_header(tensors, &header, err);
    if (status == ORT_OK) {
        unsigned char length[8];
        ort_store_u32(length, (uint32_t)header.length);
        ort_store_u32(length + 4, (uint32_t)((uint64_t)header.length >> 32));
        fwrite(length, 1, sizeof length, stream);
        fwrite(header.data, 1, header.length, stream);
        for (size_t i = 0; i < tensors->list.count; i++) {
            const ort_tensor *t = &tensors->list.data[i].value->tensor;
            size_t bytes = ort_tensor_bytes(t);
            if (bytes)
                fwrite(t->data, 1, bytes, stream);
        }
    }
    ort_strbuf_release(&header);
    return status;
}

/* A 64-bit length, then JSON. */
static bool matches(const unsigned char *bytes, size_t count)
{
    return count >= 9 && bytes[8] == '{' && ort_load_u64(bytes) < UINT32_MAX;
}

static bool has_dtype(ort_dtype dtype)
{
    return ort_dtype_get(dtype)->safetensors != NULL;
}

/* The largest second number of "data_offsets": [begin, end] in the header. */
static uint64_t data_size(const unsigned char *text, size_t length)
{
    struct json_object *root;
    int64_t largest = 0;
    if (ort_json_parse_object(text, length, &root, NULL) != ORT_OK || !root)
        return 0;
    json_object_object_foreach(root, name, entry) {
        struct json_object *offsets = get_array(entry, "data_offsets");
        (void)name;
        bool pair = offsets && json_object_array_length(offsets) == 2;
        if (pair && item(offsets, 1) > largest)
            largest = item(offsets, 1);
    }
    json_object_put(root);
    return (uint64_t)largest;
}

static void frame_file(ort_frame *f)
{
    if (!ort_frame_take(f, 8))
        return;
    uint64_t length = ort_load_u64(f->bytes);
    if (ort_frame_take(f, length))
        ort_frame_take(f, data_size(f->bytes + 8, (size_t)length));
}

const ort_format_row ort_format_row_safetensors = {
    .format = ORT_FORMAT_SAFETENSORS,
    .name = "safetensors",
    .endings = "safetensors",
    .traits = ORT_FORMAT_MANY,
    .has_dtype = has_dtype,
    .matches = matches,
    .read = read_file,
    .frame = frame_file,
    .write = write_file,
};
