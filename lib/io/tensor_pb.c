/* tensor_pb.c - values as protobuf bytes (tensor_pb.h). A candidate message is accepted when its
 * bytes walk strictly (no unknown field, right wire types) and its content is consistent: a tensor
 * has as much data as its shape needs, a map as many values as keys. */
#include "io/tensor_pb.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/codec.h"
#include "io/format.h"
#include "io/message.h"
#include "io/purpose.h"

/* ---- reading */

static ort_status read_sequence(ort_codec *codec, const Onnx__SequenceProto *p, ort_value **value,
                                ort_error *err);
static ort_status read_map(ort_codec *codec, const Onnx__MapProto *p, ort_value **value,
                           ort_error *err);
static ort_status read_optional(ort_codec *codec, const Onnx__OptionalProto *p, ort_value **value,
                                ort_error *err);

static ort_status own_tensor(const ort_tensor *view, ort_value **value, ort_error *err)
{
    ort_value *borrowed;
    assert(view->data || !ort_tensor_count(view)); /* no skeleton: all data is there */
    ORT_TRY(ort_value_new_view(view, &borrowed, err));
    ort_status status = ort_value_clone(borrowed, value, err);
    ort_value_free(borrowed);
    return status;
}

static ort_status read_tensor(ort_codec *codec, const Onnx__TensorProto *p, ort_value **value,
                              ort_error *err)
{
    ort_tensor view;
    if (p->data_location)
        return ort_error_set(err, ORT_ERROR_DATA, "external data in a tensor file");
    ORT_TRY(ort_codec_tensor(codec, p, &view, err));
    return own_tensor(&view, value, err);
}

static ort_status read_sparse(ort_codec *codec, const Onnx__SparseTensorProto *p, ort_value **value,
                              ort_error *err)
{
    ort_tensor view;
    ORT_TRY(ort_codec_sparse(codec, p, &view, err));
    return own_tensor(&view, value, err);
}

static ort_status read_item(ort_codec *codec, const Onnx__SequenceProto *p, size_t index,
                            ort_value **item, ort_error *err)
{
    if (index < p->n_tensor_values)
        return read_tensor(codec, p->tensor_values[index], item, err);
    index -= p->n_tensor_values;
    if (index < p->n_sparse_tensor_values)
        return read_sparse(codec, p->sparse_tensor_values[index], item, err);
    index -= p->n_sparse_tensor_values;
    if (index < p->n_sequence_values)
        return read_sequence(codec, p->sequence_values[index], item, err);
    index -= p->n_sequence_values;
    if (index < p->n_map_values)
        return read_map(codec, p->map_values[index], item, err);
    assert(index - p->n_map_values < p->n_optional_values);
    return read_optional(codec, p->optional_values[index - p->n_map_values], item, err);
}

static size_t item_count(const Onnx__SequenceProto *p)
{
    return p->n_tensor_values + p->n_sparse_tensor_values + p->n_sequence_values +
           p->n_map_values + p->n_optional_values;
}

static ort_status read_sequence(ort_codec *codec, const Onnx__SequenceProto *p, ort_value **value,
                                ort_error *err)
{
    *value = NULL;
    if (!p->elem_type || p->elem_type > 5)
        return ort_error_set(err, ORT_ERROR_DATA, "a sequence without an element type");
    ORT_TRY(ort_value_new_sequence_(value, err));
    ort_status status = ORT_OK;
    for (size_t i = 0; i < item_count(p) && status == ORT_OK; i++) {
        ort_value *item = NULL;
        status = read_item(codec, p, i, &item, err);
        if (status == ORT_OK)
            status = ort_value_append_take(*value, item, err);
    }
    return ort_value_hand(status, *value, value);
}

static ort_status read_keys(const Onnx__MapProto *p, ort_value **keys, ort_error *err)
{
    bool strings = p->key_type == ORT_DTYPE_STRING;
    size_t count = strings ? p->n_string_keys : p->n_keys;
    if (p->key_type < 2 || p->key_type > 13 || p->key_type == 9 || p->key_type == 10 ||
        p->key_type == 11 || p->n_keys + p->n_string_keys != count)
        return ort_error_set(err, ORT_ERROR_DATA, "a map with key type %d", p->key_type);
    ort_shape shape = {1, {(int64_t)count}};
    ORT_TRY(ort_value_new_tensor_(strings ? ORT_DTYPE_STRING : (ort_dtype)p->key_type, &shape, keys,
                                  err));
    for (size_t i = 0; i < count; i++) /* the caller frees the keys */
        if (strings)
            ORT_TRY(ort_value_set_string_(*keys, (int64_t)i, (const char *)p->string_keys[i].data,
                                          p->string_keys[i].len, err));
        else
            ort_tensor_set_i64(&(*keys)->tensor, (int64_t)i, p->keys[i]);
    return ORT_OK;
}

/* The items of a map's values as one tensor: either one tensor of `count`, or `count` single
 * elements. */
static ort_status join_items(const ort_value *items, size_t count, ort_value **joined,
                             ort_error *err)
{
    const char *why = "a map whose values aren't as many as its keys, or aren't tensors";
    ort_shape shape = {1, {(int64_t)count}};
    for (size_t i = 0; i < items->count; i++)
        if (items->items[i]->kind != ORT_KIND_TENSOR ||
            items->items[i]->tensor.dtype != items->items[0]->tensor.dtype)
            return ort_error_set(err, ORT_ERROR_DATA, "%s", why);
    if (items->count == 1 && ort_tensor_count(&items->items[0]->tensor) == (int64_t)count) {
        *joined = ort_value_retain(items->items[0]);
        (*joined)->tensor.shape = shape;
        return ORT_OK;
    }
    if (items->count != count)
        return ort_error_set(err, ORT_ERROR_DATA, "%s", why);
    ort_dtype dtype = count ? items->items[0]->tensor.dtype : ORT_DTYPE_FLOAT;
    ORT_TRY(ort_value_new_tensor_(dtype, &shape, joined, err));
    size_t width = (size_t)ort_dtype_get(dtype)->bits / 8;
    for (size_t i = 0; i < count; i++) {
        const ort_tensor *t = &items->items[i]->tensor;
        if (ort_tensor_count(t) != 1 || width == 0)
            return ort_error_set(err, ORT_ERROR_DATA, "%s", why);
        if (dtype != ORT_DTYPE_STRING) {
            memcpy((uint8_t *)(*joined)->tensor.data + i * width, t->data, width);
            continue;
        }
        const ort_string *s = t->data;
        ORT_TRY(ort_value_set_string_(*joined, (int64_t)i, s->ptr, s->length, err));
    }
    return ORT_OK;
}

static ort_status read_map(ort_codec *codec, const Onnx__MapProto *p, ort_value **value,
                           ort_error *err)
{
    ort_value *keys = NULL, *items = NULL, *values = NULL;
    *value = NULL;
    ort_status status = p->values ? read_keys(p, &keys, err)
                                  : ort_error_set(err, ORT_ERROR_DATA, "a map without values");
    if (status == ORT_OK)
        status = read_sequence(codec, p->values, &items, err);
    if (status == ORT_OK)
        status = join_items(items, (size_t)ort_tensor_count(&keys->tensor), &values, err);
    if (status == ORT_OK) {
        status = ort_value_new_map_take(keys, values, value, err);
        keys = values = NULL;
    }
    ort_value_free(keys);
    ort_value_free(items);
    ort_value_free(values);
    return status;
}

static ort_status read_optional(ort_codec *codec, const Onnx__OptionalProto *p, ort_value **value,
                                ort_error *err)
{
    if (p->tensor_value)
        return read_tensor(codec, p->tensor_value, value, err);
    if (p->sparse_tensor_value)
        return read_sparse(codec, p->sparse_tensor_value, value, err);
    if (p->sequence_value)
        return read_sequence(codec, p->sequence_value, value, err);
    if (p->map_value)
        return read_map(codec, p->map_value, value, err);
    if (p->optional_value)
        return read_optional(codec, p->optional_value, value, err);
    return ort_value_new_none(value, err);
}

static ort_status read_root(ort_codec *codec, ort_wire_root root, const void *message,
                            ort_value **value, const char **name, ort_error *err)
{
    const Onnx__SparseTensorProto *sparse = message;
    switch (root) {
    case ORT_WIRE_TENSOR:
        *name = ((const Onnx__TensorProto *)message)->name;
        return read_tensor(codec, message, value, err);
    case ORT_WIRE_SPARSE:
        *name = sparse->values ? sparse->values->name : NULL;
        return read_sparse(codec, sparse, value, err);
    case ORT_WIRE_MAP:
        *name = ((const Onnx__MapProto *)message)->name;
        return read_map(codec, message, value, err);
    case ORT_WIRE_SEQUENCE:
        *name = ((const Onnx__SequenceProto *)message)->name;
        return read_sequence(codec, message, value, err);
    default:
        *name = ((const Onnx__OptionalProto *)message)->name;
        return read_optional(codec, message, value, err);
    }
}

static ort_status read_as(ort_wire_root root, bool strict, const void *bytes, size_t count,
                          ort_value **value, char name[256], ort_error *err)
{
    ort_arena arena = {0};
    ort_message message;
    *value = NULL;
    ort_status status = ort_message_unpack(root, bytes, count, strict, &arena, &message, err);
    if (status == ORT_OK) {
        ort_codec codec = {.payloads = message.payloads, .payload_count = message.payload_count,
                           .arena = &arena};
        const char *text;
        status = read_root(&codec, root, message.root, value, &text, err);
        snprintf(name, 256, "%s", text ? text : "");
        ort_codec_release(&codec);
    }
    ort_arena_release(&arena);
    return status;
}

/* Every kind of value has one field 2, an element type or the like: two are two messages, one after
 * another, which protobuf would merge without a word. */
static bool is_several(const uint8_t *bytes, size_t count)
{
    ort_wire_field field;
    size_t at = 0, seen = 0;
    while (ort_wire_next(bytes, count, &at, &field))
        seen += field.tag >> 3 == 2;
    return at == count && seen > 1;
}

ort_status ort_tensor_pb_read(const void *bytes, size_t count, bool optional, ort_value **value,
                              char name[256], ort_error *err)
{
    static const ort_wire_root usual[] = {ORT_WIRE_TENSOR, ORT_WIRE_SPARSE, ORT_WIRE_MAP,
                                          ORT_WIRE_SEQUENCE, ORT_WIRE_OPTIONAL};
    /* A sequence of one tensor and an optional tensor are the same bytes. */
    static const ort_wire_root declared[] = {ORT_WIRE_TENSOR, ORT_WIRE_SPARSE, ORT_WIRE_OPTIONAL,
                                             ORT_WIRE_MAP, ORT_WIRE_SEQUENCE};
    const ort_wire_root *order = optional ? declared : usual;
    *value = NULL;
    if (count == 0)
        return ort_error_set(err, ORT_ERROR_DATA, "is empty, not a TensorProto");
    if (is_several(bytes, count))
        return ort_error_set(err, ORT_ERROR_DATA, "holds several messages, .pb is one; give each "
                             "its file, or a stream of .npz");
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        ort_status status = read_as(order[i], true, bytes, count, value, name, NULL);
        if (status == ORT_OK || status == ORT_ERROR_MEMORY)
            return status == ORT_OK ? ORT_OK : ort_error_memory(err, count);
    }
    /* Not one of them strictly: a tensor with unknown fields, or the message that says what's
     * wrong. */
    ort_status status = read_as(ORT_WIRE_TENSOR, false, bytes, count, value, name, err);
    if (status == ORT_OK)
        return ORT_OK;
    return ort_error_recast(err, status == ORT_ERROR_MODEL ? ORT_ERROR_DATA : status,
                            "not a TensorProto, nor another ONNX value");
}

/* ---- writing */

static void write_value(const ort_value *value, const char *name, ort_strbuf *out);

static void write_tensor(const ort_tensor *t, const char *name, ort_strbuf *out)
{
    for (int i = 0; i < t->shape.rank; i++)
        ort_wire_put_int(out, 1, t->shape.dim[i]);
    ort_wire_put_int(out, 2, t->dtype);
    int64_t count = ort_tensor_count(t);
    if (t->dtype == ORT_DTYPE_STRING)
        for (int64_t i = 0; i < count; i++) {
            const ort_string *s = (const ort_string *)t->data + i;
            ort_wire_put_bytes(out, 6, s->ptr, s->length);
        }
    if (name && *name)
        ort_wire_put_bytes(out, 8, name, strlen(name));
    if (t->dtype != ORT_DTYPE_STRING)
        ort_wire_put_bytes(out, ORT_WIRE_RAW_DATA, t->data, count ? ort_tensor_bytes(t) : 0);
}

/* ONNX's SequenceProto.DataType; items of type n are in field n + 2. */
static int item_type(const ort_value *item)
{
    switch (item->kind) {
    case ORT_KIND_TENSOR: return 1;
    case ORT_KIND_SEQUENCE: return 3;
    case ORT_KIND_MAP: return 4;
    default: return 5;
    }
}

static void write_nested(const ort_value *value, uint32_t field, ort_strbuf *out)
{
    ort_strbuf inner = {0};
    write_value(value, NULL, &inner);
    ort_wire_put_bytes(out, field, inner.data, inner.length);
    out->failed = out->failed || inner.failed;
    ort_strbuf_release(&inner);
}

static void write_sequence(const ort_value *value, const char *name, ort_strbuf *out)
{
    if (name && *name)
        ort_wire_put_bytes(out, 1, name, strlen(name));
    ort_wire_put_int(out, 2, value->count ? item_type(value->items[0]) : 1);
    for (size_t i = 0; i < value->count; i++)
        write_nested(value->items[i], (uint32_t)item_type(value->items[i]) + 2, out);
}

static void write_map(const ort_value *value, const char *name, ort_strbuf *out)
{
    const ort_tensor *keys = &value->items[0]->tensor;
    if (name && *name)
        ort_wire_put_bytes(out, 1, name, strlen(name));
    ort_wire_put_int(out, 2, keys->dtype);
    for (int64_t i = 0; i < ort_tensor_count(keys); i++) {
        const ort_string *s = (const ort_string *)keys->data + i;
        if (keys->dtype == ORT_DTYPE_STRING)
            ort_wire_put_bytes(out, 4, s->ptr, s->length);
        else
            ort_wire_put_int(out, 3, ort_tensor_get_i64(keys, i));
    }
    ort_strbuf sequence = {0}; /* the values: of one tensor */
    ort_wire_put_int(&sequence, 2, 1);
    write_nested(value->items[1], 3, &sequence);
    ort_wire_put_bytes(out, 5, sequence.data, sequence.length);
    out->failed = out->failed || sequence.failed;
    ort_strbuf_release(&sequence);
}

static void write_value(const ort_value *value, const char *name, ort_strbuf *out)
{
    switch (value->kind) {
    case ORT_KIND_TENSOR: write_tensor(&value->tensor, name, out); break;
    case ORT_KIND_SEQUENCE: write_sequence(value, name, out); break;
    case ORT_KIND_MAP: write_map(value, name, out); break;
    case ORT_KIND_DEVICE:
    case ORT_KIND_NONE:
        if (name && *name)
            ort_wire_put_bytes(out, 1, name, strlen(name));
        ort_wire_put_int(out, 2, 0);
        break;
    }
}

/* Readers of protobuf take no message above it. */
#define MESSAGE_MAX ((size_t)INT32_MAX)

static ort_status too_long(size_t bytes, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_DATA,
                         "a protobuf message holds at most %zu bytes, the value has %zu: write "
                         ".npy, .npz or .safetensors", MESSAGE_MAX, bytes);
}

/* A SequenceProto has a list for each kind of item: of several, the order would be lost. */
static ort_status check_items(const ort_value *value, ort_error *err)
{
    for (size_t i = 0; value->kind == ORT_KIND_SEQUENCE && i < value->count; i++) {
        if (value->items[i]->kind != value->items[0]->kind)
            return ort_error_set(err, ORT_ERROR_DATA, "a sequence whose items are of several kinds "
                                 "(0 and %zu differ) has no .pb; .json and .npz hold it", i);
        ORT_TRY(check_items(value->items[i], err));
    }
    return ORT_OK;
}

ort_status ort_tensor_pb_write(const ort_value *value, const char *name, ort_strbuf *out,
                               ort_error *err)
{
    size_t begin = out->length;
    assert(!out->failed);
    ORT_TRY(check_items(value, err));
    if (value->kind == ORT_KIND_TENSOR && ort_tensor_bytes(&value->tensor) > MESSAGE_MAX)
        return too_long(ort_tensor_bytes(&value->tensor), err);
    write_value(value, name, out);
    if (out->failed)
        return ort_error_memory(err, out->length);
    return out->length - begin > MESSAGE_MAX ? too_long(out->length - begin, err) : ORT_OK;
}

/* ------------------------------------------------------------------------------------- files -- */

static ort_status read_file(const unsigned char *bytes, size_t count,
                            const ort_read_options *options, ort_tensors *tensors, ort_error *err)
{
    ort_value *value = NULL;
    char name[256] = "";
    const ort_purpose *purpose = ort_purpose_find(options, "", 0);
    bool optional = purpose && purpose->type && purpose->type->kind == ORT_TYPE_OPTIONAL;
    ORT_TRY(ort_tensor_pb_read(bytes, count, optional, &value, name, err));
    return ort_tensors_add_take(tensors, name, value, err);
}

static ort_status write_file(const ort_tensors *tensors, FILE *stream,
                             const ort_write_options *options, ort_error *err)
{
    ORT_TRY(ort_format_single(tensors, ".pb", NULL, err));
    const ort_tensors_entry *entry = &tensors->list.data[0];
    ort_strbuf bytes = {0};
    ort_status status = ort_tensor_pb_write(entry->value, entry->name, &bytes, err);
    if (status == ORT_OK && bytes.length)
        fwrite(bytes.data, 1, bytes.length, stream);
    ort_strbuf_release(&bytes);
    return status;
}

/* Tags of TensorProto's first fields: nothing else that comes without a name looks so. */
static ort_status claims(const ort_format_guess *guess, bool *mine, ort_error *err)
{
    *mine = guess->unnamed && guess->count > 0 && guess->bytes[0] &&
            strchr("\x08\x0a\x10\x12", guess->bytes[0]);
    return ORT_OK;
}

const ort_format_row ort_format_row_pb = {
    .format = ORT_FORMAT_PB,
    .name = "pb",
    .endings = "pb",
    .traits = ORT_FORMAT_NESTED,
    .has_dtype = ort_format_any_dtype,
    .claims = claims,
    .read = read_file,
    .write = write_file,
};
