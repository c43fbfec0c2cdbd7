/* message.c - from bytes to an unpacked ONNX message (message.h). protobuf-c allocates from the
 * arena, so a message with a million parts is given back at once; what it frees early (scan
 * tables) stays in the arena unless large. */
#include "io/message.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef struct allocations {
    ort_arena *arena;
    size_t refused_bytes; /* of the request that failed; protobuf-c only says that it gave up */
} allocations;

static void *arena_alloc(void *arg, size_t bytes)
{
    allocations *a = arg;
    void *memory = ort_arena_alloc_aligned(a->arena, bytes, sizeof(void *), 0);
    if (!memory)
        a->refused_bytes = bytes ? bytes : 1;
    return memory;
}

static void arena_free(void *arg, void *pointer)
{
}

static const ProtobufCMessageDescriptor *const descriptors[] = {
    [ORT_WIRE_MODEL] = &onnx__model_proto__descriptor,
    [ORT_WIRE_TENSOR] = &onnx__tensor_proto__descriptor,
    [ORT_WIRE_SPARSE] = &onnx__sparse_tensor_proto__descriptor,
    [ORT_WIRE_SEQUENCE] = &onnx__sequence_proto__descriptor,
    [ORT_WIRE_MAP] = &onnx__map_proto__descriptor,
    [ORT_WIRE_OPTIONAL] = &onnx__optional_proto__descriptor,
    [ORT_WIRE_FUNCTION] = &onnx__function_proto__descriptor,
};

ort_status ort_message_unpack(ort_wire_root root, const uint8_t *bytes, size_t count, bool strict,
                              ort_arena *arena, ort_message *message, ort_error *err)
{
    ort_wire wire;
    *message = (ort_message){0};
    ORT_TRY(ort_wire_split(root, bytes, count, strict, &wire, err));
    allocations made = {arena, 0};
    ProtobufCAllocator allocator = {arena_alloc, arena_free, &made};
    message->root = protobuf_c_message_unpack(descriptors[root], &allocator, wire.skeleton_count,
                                              wire.skeleton);
    size_t payload_bytes = wire.payloads.count * sizeof *wire.payloads.data;
    ort_wire_payload *payloads = ort_arena_alloc(arena, payload_bytes);
    if (payloads && payload_bytes)
        memcpy(payloads, wire.payloads.data, payload_bytes);
    message->payloads = payloads;
    message->payload_count = wire.payloads.count;
    size_t skeleton_count = wire.skeleton_count;
    ort_wire_release(&wire);
    if (!payloads)
        return ort_error_memory(err, payload_bytes);
    if (made.refused_bytes)
        return ort_error_memory(err, made.refused_bytes);
    if (!message->root)
        return ort_error_set(err, ORT_ERROR_MODEL, "can't be unpacked: damaged (%zu bytes)",
                             skeleton_count);
    return ORT_OK;
}
