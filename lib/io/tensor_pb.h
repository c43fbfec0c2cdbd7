/* tensor_pb.h - values as protobuf bytes: TensorProto, SparseTensorProto, SequenceProto, MapProto
 * and OptionalProto files (input_0.pb). The files carry no tag that says which message they hold:
 * reading tells them apart by structure. */
#ifndef ORT_IO_TENSOR_PB_H
#define ORT_IO_TENSOR_PB_H

#include "base/strbuf.h"
#include "tensor/tensor.h"

/* One message from memory; the value owns all its data. name: the message's ("" when it has none,
 * cut to fit). An optional that holds a tensor is that tensor. A SequenceProto of up to one item
 * and an OptionalProto of the same have the same bytes: they are a sequence unless `optional` says
 * that the model declares an optional value. */
ort_status ort_tensor_pb_read(const void *bytes, size_t count, bool optional, ort_value **value,
                              char name[256], ort_error *err);
/* Appends the message to `out`; an absent optional becomes an OptionalProto. name may be NULL.
 * ORT_ERROR_DATA above 2 GB, which protobuf refuses to read. */
ort_status ort_tensor_pb_write(const ort_value *value, const char *name, ort_strbuf *out,
                               ort_error *err);

#endif
