/* codec.h - TensorProto to tensor: the one place that knows how ONNX stores elements.
 *
 * Weights are used where they lie (mapping, stream buffer, external file) when they are aligned
 * for their element type, or may stay as they are stored; otherwise, and for the typed arrays that
 * are not stored as they compute, they are decoded into memory that the codec's owner takes over
 * (arena, blobs).
 */
#ifndef ORT_IO_CODEC_H
#define ORT_IO_CODEC_H

#include "base/arena.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "io/blob.h"
#include "io/message.h"
#include "io/reach.h"
#include "tensor/tensor.h"

/* Tensors up to this size are decoded even when only the skeleton is wanted (shapes, axes). */
#define ORT_CODEC_SMALL_BYTES 65536

typedef struct ort_codec {
    const ort_reach *reach;           /* where external data may lie */
    const ort_blob *stored, *absent;  /* of the source (io/source.h), or NULL */
    const ort_wire_payload *payloads; /* of the message */
    size_t payload_count;
    ort_arena *arena;                 /* for small results */
    bool skeleton;                    /* large data stays NULL and untouched */
    bool as_stored;                   /* large data may stay unaligned */
    bool weights;                     /* what is read now are initializers: small floats, too */
    ORT_VEC(ort_blob *) blobs;        /* external files and large copies */
    ort_hashmap locations;            /* of an external file to its index in blobs */
    size_t external_bytes;            /* sum of external tensors */
} ort_codec;

/* A view whose data lives as long as the source, the arena and the codec's blobs. Strings too. */
ort_status ort_codec_tensor(ort_codec *codec, const Onnx__TensorProto *proto, ort_tensor *tensor,
                            ort_error *err);
/* The dense form. */
ort_status ort_codec_sparse(ort_codec *codec, const Onnx__SparseTensorProto *proto,
                            ort_tensor *tensor, ort_error *err);
/* Drops what its owner did not take. */
void ort_codec_release(ort_codec *codec);

/* The payload of this number when it is of that field of its message; NULL. */
const ort_wire_payload *ort_codec_payload(const ort_codec *codec, uint32_t index, uint32_t field);

/* external.c: the `need` bytes of a tensor in a file below the codec's directory. For a skeleton
 * only the place is checked, nothing is opened and *bytes stays NULL. */
ort_status ort_codec_external(ort_codec *codec, const Onnx__TensorProto *proto, size_t need,
                              const uint8_t **bytes, ort_error *err);

#endif
