/* export.h - how a model is written: which weights go to a data file, and the builder of messages.
 *
 * What did not change keeps its message, unknown fields included; changed nodes, values and graphs
 * get new ones. Payloads are never copied: a message refers to them, and the sink gets them from
 * where they lie.
 */
#ifndef ORT_GRAPH_EXPORT_H
#define ORT_GRAPH_EXPORT_H

#include "graph/graph.h"
#include "io/message.h"

/* The largest message that protobuf readers take, with room for the skeleton. */
#define ORT_EXPORT_LIMIT_BYTES ((size_t)1900000000)
#define ORT_EXPORT_ALIGNMENT 64 /* of tensors in a data file */

typedef struct ort_save_plan {
    const char *location;    /* file name of external data beside the model; NULL: all inline */
    size_t threshold_bytes;  /* smaller tensors stay inline */
    ort_sink_fn *data;       /* gets the data file's bytes; NULL: a dry run */
    void *data_arg;
    /* In place of data: where this tensor's bytes were put; ORT_EXPORT_NOWHERE: left out. */
    ort_status (*place)(void *arg, const ort_tensor *tensor, uint64_t *offset, ort_error *err);
} ort_save_plan;

#define ORT_EXPORT_NOWHERE UINT64_MAX

/* Files of a model that is being saved: complete, under temporary names. */
typedef struct ort_saved_files {
    const char *model;
    const char *data, *data_name; /* external data and the name that it will have; or NULL */
} ort_saved_files;

/* ort_model_save that calls `before` when all bytes are written and nothing has appeared; its
 * failure is the saving's. Only for regular files (save.c). */
ort_status ort_model_save_after(const ort_model *model, const char *path,
                                const ort_save_options *options,
                                ort_status (*before)(void *arg, const ort_saved_files *files,
                                                     ort_error *err),
                                void *arg, ort_error *err);

/* Bytes of all weights that would be inline in one file. */
size_t ort_export_weight_bytes(const ort_model *model);

/* ---- internal to export*.c */

typedef struct ort_exporter {
    const ort_model *model;
    const ort_save_plan *plan; /* may be NULL */
    ort_arena arena;           /* new messages */
    ORT_VEC(ort_wire_payload) payloads; /* the model's, then new ones */
    uint64_t data_offset;
    bool rebuild; /* also graphs that did not change: external data comes in or goes out */
    bool failed;  /* memory */
    ort_status status;
    ort_error *err;
} ort_exporter;

/* export_parts.c: NULL on failure (x->failed or x->status). */
void *ort_export_array(ort_exporter *x, size_t count, size_t size);
/* A new message of this type: a copy of `old`, or with NULL an empty one. */
void *ort_export_message(ort_exporter *x, const ProtobufCMessageDescriptor *type, const void *old);
/* Key and value, which are copied. */
Onnx__StringStringEntryProto *ort_export_pair(ort_exporter *x, const char *key, const char *value);
/* Does the attribute's message refer to a data file? */
bool ort_export_is_external(const Onnx__AttributeProto *attr);
/* protobuf-c's strings aren't const; packing only reads. */
static inline char *ort_export_text(const char *text)
{
    return (char *)(uintptr_t)text;
}
Onnx__TensorProto *ort_export_tensor(ort_exporter *x, const char *name, const ort_tensor *tensor,
                                     bool may_spill);
Onnx__ValueInfoProto *ort_export_value_info(ort_exporter *x, const ort_graph_value *value);
/* One that holds graphs is a new message, without them: they are for export.c to add. */
Onnx__AttributeProto *ort_export_attr(ort_exporter *x, const ort_attr *attr);

#endif
