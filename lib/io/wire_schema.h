/* wire_schema.h - the ONNX messages as the wire walker sees them: one row per field. Internal to
 * wire.c. A field that is not here is unknown: it is kept as it is. */
#ifndef ORT_IO_WIRE_SCHEMA_H
#define ORT_IO_WIRE_SCHEMA_H

#include <stdint.h>

/* The fields `payload` of onnx.proto. */
#define ORT_WIRE_PAYLOAD 536870900 /* of TensorProto */
#define ORT_WIRE_LIST_PAYLOAD 19   /* of AttributeProto */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

typedef enum message_id {
    M_NONE, M_MODEL, M_GRAPH, M_NODE, M_ATTRIBUTE, M_TENSOR, M_SPARSE, M_SEGMENT, M_TYPE,
    M_TYPE_TENSOR, M_TYPE_WRAP, M_TYPE_MAP, M_OPAQUE, M_SHAPE, M_DIMENSION, M_VALUE_INFO,
    M_FUNCTION, M_OPSET, M_PAIR, M_ANNOTATION, M_TRAINING, M_NODE_DEVICE, M_SHARDING,
    M_SHARDED_DIM, M_SIMPLE_DIM, M_INT_LIST,
    M_DEVICE, M_SEQUENCE, M_MAP, M_OPTIONAL, M_COUNT
} message_id;

enum { IN_PLACE, OF_TENSOR, LIST };

typedef struct field_row {
    uint32_t number;
    uint8_t wire;   /* of one element */
    uint8_t packed; /* the packed form is accepted too */
    uint8_t bulk;   /* a payload when large: */
    uint8_t message;
    const char *name;
} field_row;

typedef struct message_row {
    const char *name;
    const field_row *fields; /* ended by number 0 */
} message_row;

#define INT(number, name) {number, VARINT, 0, 0, 0, name}
#define INTS(number, name) {number, VARINT, 1, 0, 0, name}
#define FLT(number, name) {number, FIXED32, 0, 0, 0, name}
#define FLTS(number, name) {number, FIXED32, 1, 0, 0, name}
#define STR(number, name) {number, BYTES, 0, 0, 0, name}
#define MSG(number, name, message) {number, BYTES, 0, 0, message, name}
#define BULK(number, wire, name) {number, wire, 1, OF_TENSOR, 0, name}
#define END {0, 0, 0, 0, 0, 0}

static const field_row model_fields[] = {
    INT(1, "ir_version"), STR(2, "producer_name"), STR(3, "producer_version"), STR(4, "domain"),
    INT(5, "model_version"), STR(6, "doc_string"), MSG(7, "graph", M_GRAPH),
    MSG(8, "opset_import", M_OPSET), MSG(14, "metadata_props", M_PAIR),
    MSG(20, "training_info", M_TRAINING), MSG(25, "functions", M_FUNCTION),
    MSG(26, "configuration", M_DEVICE), END};
static const field_row graph_fields[] = {
    MSG(1, "node", M_NODE), STR(2, "name"), MSG(5, "initializer", M_TENSOR), STR(10, "doc_string"),
    MSG(11, "input", M_VALUE_INFO), MSG(12, "output", M_VALUE_INFO),
    MSG(13, "value_info", M_VALUE_INFO), MSG(14, "quantization_annotation", M_ANNOTATION),
    MSG(15, "sparse_initializer", M_SPARSE), MSG(16, "metadata_props", M_PAIR), END};
static const field_row node_fields[] = {
    STR(1, "input"), STR(2, "output"), STR(3, "name"), STR(4, "op_type"),
    MSG(5, "attribute", M_ATTRIBUTE), STR(6, "doc_string"), STR(7, "domain"), STR(8, "overload"),
    MSG(9, "metadata_props", M_PAIR), MSG(10, "device_configurations", M_NODE_DEVICE), END};
static const field_row attribute_fields[] = {
    STR(1, "name"), FLT(2, "f"), INT(3, "i"), STR(4, "s"), MSG(5, "t", M_TENSOR),
    MSG(6, "g", M_GRAPH), {7, FIXED32, 1, LIST, 0, "floats"},
    {8, VARINT, 1, LIST, 0, "ints"}, {9, BYTES, 0, LIST, 0, "strings"},
    MSG(10, "tensors", M_TENSOR), MSG(11, "graphs", M_GRAPH), STR(13, "doc_string"),
    MSG(14, "tp", M_TYPE), MSG(15, "type_protos", M_TYPE), INT(20, "type"),
    STR(21, "ref_attr_name"), MSG(22, "sparse_tensor", M_SPARSE),
    MSG(23, "sparse_tensors", M_SPARSE), END};
static const field_row tensor_fields[] = {
    INTS(1, "dims"), INT(2, "data_type"), MSG(3, "segment", M_SEGMENT),
    BULK(4, FIXED32, "float_data"), BULK(5, VARINT, "int32_data"), STR(6, "string_data"),
    BULK(7, VARINT, "int64_data"), STR(8, "name"), {9, BYTES, 0, OF_TENSOR, 0, "raw_data"},
    BULK(10, FIXED64, "double_data"), BULK(11, VARINT, "uint64_data"), STR(12, "doc_string"),
    MSG(13, "external_data", M_PAIR), INT(14, "data_location"), MSG(16, "metadata_props", M_PAIR),
    END};
static const field_row sparse_fields[] = {
    MSG(1, "values", M_TENSOR), MSG(2, "indices", M_TENSOR), INTS(3, "dims"), END};
static const field_row segment_fields[] = {INT(1, "begin"), INT(2, "end"), END};
static const field_row type_fields[] = {
    MSG(1, "tensor_type", M_TYPE_TENSOR), MSG(4, "sequence_type", M_TYPE_WRAP),
    MSG(5, "map_type", M_TYPE_MAP), STR(6, "denotation"), MSG(7, "opaque_type", M_OPAQUE),
    MSG(8, "sparse_tensor_type", M_TYPE_TENSOR), MSG(9, "optional_type", M_TYPE_WRAP), END};
static const field_row type_tensor_fields[] = {
    INT(1, "elem_type"), MSG(2, "shape", M_SHAPE), END};
static const field_row type_wrap_fields[] = {MSG(1, "elem_type", M_TYPE), END};
static const field_row type_map_fields[] = {
    INT(1, "key_type"), MSG(2, "value_type", M_TYPE), END};
static const field_row opaque_fields[] = {STR(1, "domain"), STR(2, "name"), END};
static const field_row shape_fields[] = {MSG(1, "dim", M_DIMENSION), END};
static const field_row dimension_fields[] = {
    INT(1, "dim_value"), STR(2, "dim_param"), STR(3, "denotation"), END};
static const field_row value_info_fields[] = {
    STR(1, "name"), MSG(2, "type", M_TYPE), STR(3, "doc_string"),
    MSG(4, "metadata_props", M_PAIR), END};
static const field_row function_fields[] = {
    STR(1, "name"), STR(4, "input"), STR(5, "output"), STR(6, "attribute"), MSG(7, "node", M_NODE),
    STR(8, "doc_string"), MSG(9, "opset_import", M_OPSET), STR(10, "domain"),
    MSG(11, "attribute_proto", M_ATTRIBUTE), MSG(12, "value_info", M_VALUE_INFO),
    STR(13, "overload"), MSG(14, "metadata_props", M_PAIR), END};
static const field_row opset_fields[] = {STR(1, "domain"), INT(2, "version"), END};
static const field_row pair_fields[] = {STR(1, "key"), STR(2, "value"), END};
static const field_row annotation_fields[] = {
    STR(1, "tensor_name"), MSG(2, "quant_parameter_tensor_names", M_PAIR), END};
static const field_row training_fields[] = {
    MSG(1, "initialization", M_GRAPH), MSG(2, "algorithm", M_GRAPH),
    MSG(3, "initialization_binding", M_PAIR), MSG(4, "update_binding", M_PAIR), END};
static const field_row node_device_fields[] = {
    STR(1, "configuration_id"), MSG(2, "sharding_spec", M_SHARDING), INT(3, "pipeline_stage"), END};
static const field_row sharding_fields[] = {
    STR(1, "tensor_name"), INTS(2, "device"), MSG(3, "index_to_device_group_map", M_INT_LIST),
    MSG(4, "sharded_dim", M_SHARDED_DIM), END};
static const field_row sharded_dim_fields[] = {
    INT(1, "axis"), MSG(2, "simple_sharding", M_SIMPLE_DIM), END};
static const field_row simple_dim_fields[] = {
    INT(1, "dim_value"), STR(2, "dim_param"), INT(3, "num_shards"), END};
static const field_row int_list_fields[] = {INT(1, "key"), INTS(2, "value"), END};
static const field_row device_fields[] = {
    STR(1, "name"), INT(2, "num_devices"), STR(3, "device"), END};
static const field_row sequence_fields[] = {
    STR(1, "name"), INT(2, "elem_type"), MSG(3, "tensor_values", M_TENSOR),
    MSG(4, "sparse_tensor_values", M_SPARSE), MSG(5, "sequence_values", M_SEQUENCE),
    MSG(6, "map_values", M_MAP), MSG(7, "optional_values", M_OPTIONAL), END};
static const field_row map_fields[] = {
    STR(1, "name"), INT(2, "key_type"), INTS(3, "keys"), STR(4, "string_keys"),
    MSG(5, "values", M_SEQUENCE), END};
static const field_row optional_fields[] = {
    STR(1, "name"), INT(2, "elem_type"), MSG(3, "tensor_value", M_TENSOR),
    MSG(4, "sparse_tensor_value", M_SPARSE), MSG(5, "sequence_value", M_SEQUENCE),
    MSG(6, "map_value", M_MAP), MSG(7, "optional_value", M_OPTIONAL), END};

static const message_row messages[M_COUNT] = {
    [M_MODEL] = {"ModelProto", model_fields},
    [M_GRAPH] = {"GraphProto", graph_fields},
    [M_NODE] = {"NodeProto", node_fields},
    [M_ATTRIBUTE] = {"AttributeProto", attribute_fields},
    [M_TENSOR] = {"TensorProto", tensor_fields},
    [M_SPARSE] = {"SparseTensorProto", sparse_fields},
    [M_SEGMENT] = {"TensorProto.Segment", segment_fields},
    [M_TYPE] = {"TypeProto", type_fields},
    [M_TYPE_TENSOR] = {"TypeProto.Tensor", type_tensor_fields},
    [M_TYPE_WRAP] = {"TypeProto.Sequence", type_wrap_fields},
    [M_TYPE_MAP] = {"TypeProto.Map", type_map_fields},
    [M_OPAQUE] = {"TypeProto.Opaque", opaque_fields},
    [M_SHAPE] = {"TensorShapeProto", shape_fields},
    [M_DIMENSION] = {"TensorShapeProto.Dimension", dimension_fields},
    [M_VALUE_INFO] = {"ValueInfoProto", value_info_fields},
    [M_FUNCTION] = {"FunctionProto", function_fields},
    [M_OPSET] = {"OperatorSetIdProto", opset_fields},
    [M_PAIR] = {"StringStringEntryProto", pair_fields},
    [M_ANNOTATION] = {"TensorAnnotation", annotation_fields},
    [M_TRAINING] = {"TrainingInfoProto", training_fields},
    [M_NODE_DEVICE] = {"NodeDeviceConfigurationProto", node_device_fields},
    [M_SHARDING] = {"ShardingSpecProto", sharding_fields},
    [M_SHARDED_DIM] = {"ShardedDimProto", sharded_dim_fields},
    [M_SIMPLE_DIM] = {"SimpleShardedDimProto", simple_dim_fields},
    [M_INT_LIST] = {"IntIntListEntryProto", int_list_fields},
    [M_DEVICE] = {"DeviceConfigurationProto", device_fields},
    [M_SEQUENCE] = {"SequenceProto", sequence_fields},
    [M_MAP] = {"MapProto", map_fields},
    [M_OPTIONAL] = {"OptionalProto", optional_fields},
};

#undef INT
#undef INTS
#undef FLT
#undef FLTS
#undef STR
#undef MSG
#undef BULK
#undef END

#endif
