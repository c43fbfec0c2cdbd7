/* message.h - from bytes to an unpacked ONNX message: the wire walker, then protobuf-c on the
 * skeleton, all in one arena. */
#ifndef ORT_IO_MESSAGE_H
#define ORT_IO_MESSAGE_H

#include "base/arena.h"
#include "io/wire.h"
#include "onnx.pb-c.h"

typedef struct ort_message {
    ProtobufCMessage *root;             /* in the arena */
    const ort_wire_payload *payloads;   /* in the arena; the bytes they point to are the input's */
    size_t payload_count;
} ort_message;

ort_status ort_message_unpack(ort_wire_root root, const uint8_t *bytes, size_t count, bool strict,
                              ort_arena *arena, ort_message *message, ort_error *err);

#endif
