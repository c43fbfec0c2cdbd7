/* wire.h - a bounded walker of the protobuf wire format over ONNX messages.
 *
 * It comes before protobuf-c: it refuses broken and over-deep input with the field and the byte
 * offset, and takes the bulk fields (raw_data, packed arrays and lists of attributes, of 64 bytes
 * and more) out of the bytes. What remains is the skeleton: the same message with `payload` indices
 * in place of bulk fields. The table of payloads says where the bytes lie; those of tensors are not
 * touched. ort_wire_join is the inverse.
 */
#ifndef ORT_IO_WIRE_H
#define ORT_IO_WIRE_H

#include "base/strbuf.h"
#include "base/vec.h"
#include "ort.h"

#define ORT_WIRE_BULK_BYTES 64
#define ORT_WIRE_MAX_DEPTH 100

typedef enum ort_wire_root {
    ORT_WIRE_MODEL,
    ORT_WIRE_TENSOR,
    ORT_WIRE_SPARSE,
    ORT_WIRE_SEQUENCE,
    ORT_WIRE_MAP,
    ORT_WIRE_OPTIONAL,
    ORT_WIRE_FUNCTION, /* of an operator library */
} ort_wire_root;

/* Fields of TensorProto that can be bulk. */
enum {
    ORT_WIRE_FLOAT_DATA = 4,
    ORT_WIRE_INT32_DATA = 5,
    ORT_WIRE_INT64_DATA = 7,
    ORT_WIRE_RAW_DATA = 9,
    ORT_WIRE_DOUBLE_DATA = 10,
    ORT_WIRE_UINT64_DATA = 11,
};

/* Of AttributeProto. */
enum { ORT_WIRE_FLOATS = 7, ORT_WIRE_INTS = 8, ORT_WIRE_STRINGS = 9 };

typedef struct ort_wire_payload {
    const uint8_t *bytes; /* where the value lies; of a list where its first field does */
    size_t count;
    size_t elements; /* of a list (wire_list.h); 0: a field of a tensor */
    uint32_t field;  /* number in TensorProto or AttributeProto */
} ort_wire_payload;

typedef struct ort_wire {
    uint8_t *skeleton; /* malloc */
    size_t skeleton_count;
    ORT_VEC(ort_wire_payload) payloads;
} ort_wire; /* all zero is valid and empty */

/* strict: unknown fields are an error (used to tell kinds of tensor files apart). */
ort_status ort_wire_split(ort_wire_root root, const uint8_t *bytes, size_t count, bool strict,
                          ort_wire *wire, ort_error *err);
void ort_wire_release(ort_wire *wire);

/* The message of a skeleton with its payloads put back, in pieces: `sink` gets them in order. The
 * skeleton must be well-formed (it was made by protobuf-c). */
typedef ort_status ort_wire_sink(void *arg, const void *bytes, size_t count, ort_error *err);
ort_status ort_wire_join(ort_wire_root root, const uint8_t *skeleton, size_t count,
                         const ort_wire_payload *payloads, size_t payload_count,
                         ort_wire_sink *sink, void *arg, ort_error *err);

/* Base-128 varint at *at; false at the end of the bytes or beyond ten bytes. */
bool ort_wire_varint(const uint8_t *bytes, size_t count, size_t *at, uint64_t *value);

/* One field of a message whose kind isn't known. */
typedef struct ort_wire_field {
    uint64_t tag;                     /* its number, three bits of wire type below it */
    uint64_t number;                  /* of a varint */
    size_t at, length_at, value, end; /* of the field, its length varint, its value */
} ort_wire_field;
/* The field at *at, which moves behind it; false where none begins, or it isn't whole. */
bool ort_wire_next(const uint8_t *bytes, size_t count, size_t *at, ort_wire_field *field);

/* Writing fields by hand (tensor files). */
void ort_wire_put_varint(ort_strbuf *out, uint64_t value);
void ort_wire_put_int(ort_strbuf *out, uint32_t field, int64_t value);
void ort_wire_put_bytes(ort_strbuf *out, uint32_t field, const void *bytes, size_t count);

#endif
