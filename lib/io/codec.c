/* codec.c - TensorProto to tensor (codec.h). Sizes are checked against the data that is there
 * before anything is allocated, so a hostile shape costs nothing. */
#include "io/codec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/num.h"

static const char *name_of(const Onnx__TensorProto *proto)
{
    return proto->name ? proto->name : "";
}

/* Memory for `bytes` of decoded data, 64-byte aligned; NULL when exhausted. */
static void *alloc(ort_codec *codec, size_t bytes)
{
    if (bytes <= ORT_CODEC_SMALL_BYTES)
        return ort_arena_alloc_aligned(codec->arena, bytes, 64, 0);
    if (bytes > SIZE_MAX - 64)
        return NULL;
    ort_account *account = ort_account_of_work();
    ort_blob *blob;
    bool charged = ort_account_charge(account, bytes);
    void *data = charged ? aligned_alloc(64, ort_round_up(bytes, 64)) : NULL;
    if (!data || ort_blob_new(ORT_BLOB_HEAP, data, bytes, &blob, NULL) != ORT_OK) {
        if (charged)
            ort_account_refund(account, bytes);
        ort_account_release(account);
        return NULL;
    }
    blob->account = account;
    if (!ort_vec_push(&codec->blobs, blob)) {
        ort_blob_release(blob);
        return NULL;
    }
    return data;
}

void ort_codec_release(ort_codec *codec)
{
    for (size_t i = 0; i < codec->blobs.count; i++)
        ort_blob_release(codec->blobs.data[i]);
    ort_vec_release(&codec->blobs);
    ort_hashmap_release(&codec->locations);
}

/* ---- which field holds the elements */

typedef struct stored { /* a typed array: values that protobuf-c unpacked, then payloads */
    const Onnx__TensorProto *proto;
    uint32_t field;
    const char *name;
    size_t inline_count; /* elements */
    size_t payload_bytes, payload_pieces;
    const ort_wire_payload *only; /* the payload, when it is all there is */
} stored;

const ort_wire_payload *ort_codec_payload(const ort_codec *codec, uint32_t index, uint32_t field)
{
    const ort_wire_payload *p = index < codec->payload_count ? &codec->payloads[index] : NULL;
    return p && p->field == field ? p : NULL;
}

static stored find_stored(const ort_codec *codec, const Onnx__TensorProto *p, ort_dtype dtype)
{
    stored s = {.proto = p};
    switch (dtype) {
    case ORT_DTYPE_FLOAT:
    case ORT_DTYPE_COMPLEX64:
        s.field = ORT_WIRE_FLOAT_DATA, s.name = "float_data", s.inline_count = p->n_float_data;
        break;
    case ORT_DTYPE_DOUBLE:
    case ORT_DTYPE_COMPLEX128:
        s.field = ORT_WIRE_DOUBLE_DATA, s.name = "double_data", s.inline_count = p->n_double_data;
        break;
    case ORT_DTYPE_INT64:
        s.field = ORT_WIRE_INT64_DATA, s.name = "int64_data", s.inline_count = p->n_int64_data;
        break;
    case ORT_DTYPE_UINT32:
    case ORT_DTYPE_UINT64:
        s.field = ORT_WIRE_UINT64_DATA, s.name = "uint64_data", s.inline_count = p->n_uint64_data;
        break;
    default:
        s.field = ORT_WIRE_INT32_DATA, s.name = "int32_data", s.inline_count = p->n_int32_data;
        break;
    }
    for (size_t i = 0; i < p->n_payload; i++) {
        const ort_wire_payload *payload = ort_codec_payload(codec, p->payload[i], s.field);
        if (!payload)
            continue;
        s.payload_bytes += payload->count;
        s.payload_pieces++;
        s.only = payload;
    }
    if (s.payload_pieces != 1 || s.inline_count)
        s.only = NULL;
    return s;
}

static ort_status wrong_size(const Onnx__TensorProto *proto, const ort_tensor *t, const char *field,
                             size_t has, size_t needs, const char *unit, ort_error *err)
{
    char shape[256];
    return ort_error_set(err, ORT_ERROR_MODEL, "tensor '%s': %s has %zu %s, %s[%s] needs %zu",
                         name_of(proto), field, has, unit, ort_dtype_get(t->dtype)->name,
                         ort_shape_list(&t->shape, shape, sizeof shape), needs);
}

/* ---- elements stored as they compute */

/* Programs copy what runs read, and pack most weights as they lie. Numbers of a line or two are
 * looked at by passes, and their copies cost nothing. */
static bool may_lie_anywhere(const ort_codec *codec, const ort_tensor *t, size_t count)
{
    enum { FEW_BYTES = 4096 };
    bool floats = codec->weights && t->dtype == ORT_DTYPE_FLOAT;
    return codec->as_stored && count > (floats ? FEW_BYTES : ORT_CODEC_SMALL_BYTES);
}

/* In place when aligned, else a copy. */
static ort_status use_bytes(ort_codec *codec, const uint8_t *bytes, size_t count, ort_tensor *t,
                            ort_error *err)
{
    assert(count == ort_tensor_bytes(t));
    if (codec->skeleton && count > ORT_CODEC_SMALL_BYTES)
        return ORT_OK;
    t->data = (void *)(uintptr_t)bytes;
    if (ort_tensor_aligned(t) || may_lie_anywhere(codec, t, count))
        return ORT_OK;
    t->data = alloc(codec, count);
    if (!t->data)
        return ort_error_memory(err, count);
    assert(ort_tensor_aligned(t));
    memcpy(t->data, bytes, count);
    return ORT_OK;
}

static ort_status read_raw(ort_codec *codec, const Onnx__TensorProto *proto, ort_tensor *t,
                           const uint8_t *bytes, size_t count, size_t need, ort_error *err)
{
    if (count != need)
        return wrong_size(proto, t, "raw_data", count, need, "bytes", err);
    return need ? use_bytes(codec, bytes, count, t, err) : ORT_OK;
}

/* float_data, double_data: little-endian IEEE, the same as in memory. */
static ort_status read_fixed(ort_codec *codec, const stored *s, ort_tensor *t, size_t need,
                             ort_error *err)
{
    size_t width = s->field == ORT_WIRE_FLOAT_DATA ? 4 : 8;
    const void *values = s->field == ORT_WIRE_FLOAT_DATA ? (const void *)s->proto->float_data
                                                         : (const void *)s->proto->double_data;
    size_t inline_bytes = s->inline_count * width;
    if (inline_bytes + s->payload_bytes != need)
        return wrong_size(s->proto, t, s->name, (inline_bytes + s->payload_bytes) / width,
                          need / width, "values", err);
    if (!need)
        return ORT_OK;
    if (s->only)
        return use_bytes(codec, s->only->bytes, need, t, err);
    if (!s->payload_pieces)
        return use_bytes(codec, values, need, t, err);
    uint8_t *out = alloc(codec, need);
    if (!out)
        return ort_error_memory(err, need);
    t->data = out;
    if (inline_bytes)
        memcpy(out, values, inline_bytes);
    out += inline_bytes;
    for (size_t i = 0; i < s->proto->n_payload; i++) {
        const ort_wire_payload *p = ort_codec_payload(codec, s->proto->payload[i], s->field);
        if (!p)
            continue;
        memcpy(out, p->bytes, p->count);
        out += p->count;
    }
    assert(out == (uint8_t *)t->data + need);
    return ORT_OK;
}

/* ---- varint arrays */

static uint64_t inline_value(const stored *s, size_t index)
{
    switch (s->field) {
    case ORT_WIRE_INT32_DATA: return (uint64_t)(int64_t)s->proto->int32_data[index];
    case ORT_WIRE_INT64_DATA: return (uint64_t)s->proto->int64_data[index];
    default: return s->proto->uint64_data[index];
    }
}

static void put_six_bits(uint8_t *out, size_t index, unsigned value)
{
    size_t bit = index * 6;
    unsigned wide = (value & 0x3f) << (bit % 8);
    out[bit / 8] = (uint8_t)(out[bit / 8] | wide);
    if (wide > 0xff)
        out[bit / 8 + 1] = (uint8_t)(out[bit / 8 + 1] | wide >> 8);
}

/* `width` bytes per stored value; 0: six bits. */
static void put_value(uint8_t *out, size_t index, size_t width, bool is_bool, uint64_t value)
{
    assert(width <= sizeof value);
    if (is_bool)
        value = value != 0;
    if (width == 0)
        put_six_bits(out, index, (unsigned)value);
    else
        memcpy(out + index * width, &value, width);
}

/* Values one by one from the payloads; returns how many there are, at most `limit` are stored. */
static size_t read_payload_values(const ort_codec *codec, const stored *s, uint8_t *out,
                                  size_t index, size_t limit, size_t width, bool is_bool)
{
    for (size_t i = 0; i < s->proto->n_payload; i++) {
        const ort_wire_payload *p = ort_codec_payload(codec, s->proto->payload[i], s->field);
        if (!p)
            continue;
        assert(!p->elements); /* a field of a tensor, no list */
        for (size_t at = 0; at < p->count; index++) {
            uint64_t value;
            if (!ort_wire_varint(p->bytes, p->count, &at, &value))
                return SIZE_MAX;
            if (index < limit)
                put_value(out, index, width, is_bool, value);
        }
    }
    return index;
}

static ort_status read_varints(ort_codec *codec, const stored *s, ort_tensor *t, size_t need,
                               ort_error *err)
{
    int bits = ort_dtype_get(t->dtype)->bits;
    bool six = bits == 6, is_bool = t->dtype == ORT_DTYPE_BOOL;
    size_t width = six ? 0 : bits < 8 ? 1 : (size_t)bits / 8;
    /* Stored values: elements, but bytes of packed elements for types of 4 and 2 bits. */
    size_t count = six ? (size_t)ort_tensor_count(t) : width ? need / width : 0;
    if (count > s->inline_count + s->payload_bytes)
        return wrong_size(s->proto, t, s->name, s->inline_count + s->payload_bytes, count,
                          "values at most", err);
    if (codec->skeleton && need > ORT_CODEC_SMALL_BYTES)
        return ORT_OK;
    uint8_t *out = alloc(codec, need);
    if (!out)
        return ort_error_memory(err, need);
    if (six)
        memset(out, 0, need);
    t->data = out;
    size_t index = 0;
    for (; index < s->inline_count && index < count; index++)
        put_value(out, index, width, is_bool, inline_value(s, index));
    index = s->inline_count;
    index = read_payload_values(codec, s, out, index, count, width, is_bool);
    if (index == SIZE_MAX)
        return ort_error_set(err, ORT_ERROR_MODEL, "tensor '%s': %s holds a broken number",
                             name_of(s->proto), s->name);
    return index == count ? ORT_OK
                          : wrong_size(s->proto, t, s->name, index, count, "values", err);
}

/* ---- strings */

static ort_status read_strings(ort_codec *codec, const Onnx__TensorProto *proto, ort_tensor *t,
                               ort_error *err)
{
    size_t count = (size_t)ort_tensor_count(t);
    if (proto->n_string_data != count)
        return wrong_size(proto, t, "string_data", proto->n_string_data, count, "values", err);
    if (!count)
        return ORT_OK;
    ort_string *out = alloc(codec, count * sizeof *out);
    if (!out)
        return ort_error_memory(err, count * sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = (ort_string){(const char *)proto->string_data[i].data, proto->string_data[i].len};
    t->data = out;
    return ORT_OK;
}

/* ---- the whole */

static ort_status read_type(const Onnx__TensorProto *proto, ort_tensor *t, size_t *need,
                            ort_error *err)
{
    *t = (ort_tensor){.dtype = (ort_dtype)proto->data_type};
    if (proto->data_type <= 0 || proto->data_type >= ORT_DTYPE_COUNT)
        return ort_error_set(err, ORT_ERROR_MODEL, "tensor '%s': element type %d doesn't exist",
                             name_of(proto), proto->data_type);
    if (proto->n_dims > ORT_MAX_RANK)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "tensor '%s' has rank %zu, the most is %d", name_of(proto),
                             proto->n_dims, ORT_MAX_RANK);
    t->shape = ort_shape_make((int)proto->n_dims, proto->dims);
    ort_status status = ort_shape_check(&t->shape, t->dtype, err);
    if (status == ORT_OK && !ort_dtype_bytes(t->dtype, ort_tensor_count(t), need))
        status = ort_error_set(err, ORT_ERROR_MODEL, "is too large");
    if (status != ORT_OK)
        return ort_error_recast(err, ORT_ERROR_MODEL, "tensor '%s'", name_of(proto));
    if (proto->segment)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "tensor '%s' is stored in segments, which no tool writes: save the "
                             "model without them",
                             name_of(proto));
    return ORT_OK;
}

static ort_status read_here(ort_codec *codec, const Onnx__TensorProto *proto, ort_tensor *t,
                            size_t need, ort_error *err)
{
    const ort_wire_payload *raw = NULL;
    for (size_t i = 0; i < proto->n_payload; i++) {
        const ort_wire_payload *p = ort_codec_payload(codec, proto->payload[i], ORT_WIRE_RAW_DATA);
        raw = p ? p : raw;
    }
    if (t->dtype == ORT_DTYPE_STRING)
        return raw || (proto->has_raw_data && proto->raw_data.len)
                   ? ort_error_set(err, ORT_ERROR_MODEL, "tensor '%s': strings can't be raw_data",
                                   name_of(proto))
                   : read_strings(codec, proto, t, err);
    if (raw)
        return read_raw(codec, proto, t, raw->bytes, raw->count, need, err);
    stored s = find_stored(codec, proto, t->dtype);
    if (need && !s.inline_count && !s.payload_pieces &&
        !(proto->has_raw_data && proto->raw_data.len)) {
        char shape[256];
        if (codec->skeleton)
            return ORT_OK;
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "tensor '%s': there is no data for %s[%s] (a model stripped of its "
                             "weights?)",
                             name_of(proto), ort_dtype_get(t->dtype)->name,
                             ort_shape_list(&t->shape, shape, sizeof shape));
    }
    if (proto->has_raw_data && (proto->raw_data.len || !(s.inline_count || s.payload_pieces)))
        return read_raw(codec, proto, t, proto->raw_data.data, proto->raw_data.len, need, err);
    if (s.field == ORT_WIRE_FLOAT_DATA || s.field == ORT_WIRE_DOUBLE_DATA)
        return read_fixed(codec, &s, t, need, err);
    return read_varints(codec, &s, t, need, err);
}

ort_status ort_codec_tensor(ort_codec *codec, const Onnx__TensorProto *proto, ort_tensor *tensor,
                            ort_error *err)
{
    size_t need = 0;
    ORT_TRY(read_type(proto, tensor, &need, err));
    if (proto->data_location == 0)
        return read_here(codec, proto, tensor, need, err);
    if (proto->data_location != 1)
        return ort_error_set(err, ORT_ERROR_MODEL, "tensor '%s': data_location %d doesn't exist",
                             name_of(proto), proto->data_location);
    if (tensor->dtype == ORT_DTYPE_STRING)
        return ort_error_set(err, ORT_ERROR_MODEL, "tensor '%s': strings can't be external data",
                             name_of(proto));
    codec->external_bytes += need;
    if (need == 0)
        return ORT_OK;
    const uint8_t *bytes = NULL;
    ORT_TRY(ort_codec_external(codec, proto, need, &bytes, err));
    return !bytes ? ORT_OK : use_bytes(codec, bytes, need, tensor, err);
}

/* ---- sparse */

#define SPARSE_LIMIT_BYTES ((size_t)1 << 30)

/* Flat position of sparse element `i`; -1 when out of range. indices: [NNZ] flat, or [NNZ, rank].
 */
static int64_t sparse_position(const ort_tensor *indices, const ort_shape *shape, int64_t i)
{
    int64_t total = ort_shape_count(shape);
    assert(indices->shape.rank == 1 || indices->shape.dim[1] == shape->rank);
    if (indices->shape.rank == 1) {
        int64_t at = ort_tensor_get_i64(indices, i);
        return at >= 0 && at < total ? at : -1;
    }
    int64_t at = 0;
    for (int d = 0; d < shape->rank; d++) {
        int64_t k = ort_tensor_get_i64(indices, i * shape->rank + d);
        if (k < 0 || k >= shape->dim[d])
            return -1;
        at = at * shape->dim[d] + k;
    }
    return at;
}

static ort_status read_sparse_parts(ort_codec *codec, const Onnx__SparseTensorProto *proto,
                                    ort_tensor *values, ort_tensor *indices, ort_tensor *out,
                                    ort_error *err)
{
    if (!proto->values || !proto->indices)
        return ort_error_set(err, ORT_ERROR_MODEL, "sparse tensor without values or indices");
    const char *name = name_of(proto->values);
    ORT_TRY(ort_codec_tensor(codec, proto->values, values, err));
    ORT_TRY(ort_codec_tensor(codec, proto->indices, indices, err));
    if (proto->n_dims > ORT_MAX_RANK)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "sparse tensor '%s' has rank %zu", name,
                             proto->n_dims);
    *out = (ort_tensor){.dtype = values->dtype,
                        .shape = ort_shape_make((int)proto->n_dims, proto->dims)};
    if (ort_shape_check(&out->shape, out->dtype, err))
        return ort_error_recast(err, ORT_ERROR_MODEL, "sparse tensor '%s'", name);
    int64_t count = ort_tensor_count(values);
    bool flat = indices->shape.rank == 1 && indices->shape.dim[0] == count;
    bool full = indices->shape.rank == 2 && indices->shape.dim[0] == count &&
                indices->shape.dim[1] == out->shape.rank;
    if (values->shape.rank != 1 || indices->dtype != ORT_DTYPE_INT64 || (!flat && !full))
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "sparse tensor '%s': indices must be int64[NNZ] or int64[NNZ,rank] "
                             "for values of shape [NNZ]",
                             name);
    if (values->dtype == ORT_DTYPE_STRING || ort_dtype_get(values->dtype)->bits < 8)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "sparse tensor '%s' of %s", name,
                             ort_dtype_get(values->dtype)->name);
    return ORT_OK;
}

ort_status ort_codec_sparse(ort_codec *codec, const Onnx__SparseTensorProto *proto,
                            ort_tensor *tensor, ort_error *err)
{
    ort_tensor values, indices;
    ORT_TRY(read_sparse_parts(codec, proto, &values, &indices, tensor, err));
    size_t need = ort_tensor_bytes(tensor), width = (size_t)ort_dtype_get(values.dtype)->bits / 8;
    bool absent = (ort_tensor_count(&values) > 0 && !values.data) ||
                  (ort_tensor_count(&indices) > 0 && !indices.data); /* a scalar has none */
    if (absent || (codec->skeleton && need > ORT_CODEC_SMALL_BYTES))
        return ORT_OK;
    if (need > SPARSE_LIMIT_BYTES)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "sparse tensor '%s' has %zu bytes when dense, the most is %zu",
                             name_of(proto->values), need, SPARSE_LIMIT_BYTES);
    uint8_t *out = alloc(codec, need);
    if (!out)
        return ort_error_memory(err, need);
    memset(out, 0, need);
    tensor->data = out;
    for (int64_t i = 0; i < ort_tensor_count(&values); i++) {
        int64_t at = sparse_position(&indices, &tensor->shape, i);
        if (at < 0)
            return ort_error_set(err, ORT_ERROR_MODEL,
                                 "sparse tensor '%s': index %lld is outside of its shape",
                                 name_of(proto->values), (long long)i);
        assert((size_t)at * width + width <= need);
        memcpy(out + (size_t)at * width, (const uint8_t *)values.data + (size_t)i * width, width);
    }
    return ORT_OK;
}
