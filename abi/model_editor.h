/* model_editor.h - models in pieces, as a client builds them, and how they are written. */
#ifndef ABI_MODEL_EDITOR_H
#define ABI_MODEL_EDITOR_H

#include "custom.h"
#include "proto.h"

struct OrtValueInfo {
    char *name;
    OrtTypeInfo *type;
};
struct OrtNode {
    char *name, *type, *domain;
    char **inputs, **outputs;
    size_t input_count, output_count;
    OrtOpAttr **attrs;
    size_t attr_count;
};
struct OrtGraph {
    OrtValueInfo **inputs, **outputs;
    size_t input_count, output_count;
    OrtNode **nodes;
    size_t node_count;
    abi_named *initializers;
    size_t initializer_count;
};
struct OrtModel {
    OrtGraph *graph;
    char **domains;
    int *versions;
    size_t count;
};

void abi_put_graph(abi_proto *p, const OrtGraph *graph);
void abi_put_opset(abi_proto *p, const char *domain, int version);
void abi_put_model(abi_proto *p, const OrtModel *model);
/* The model of these bytes with the pieces added; the bytes are a message that was read already. */
void abi_merge_model(abi_proto *p, const unsigned char *bytes, size_t count,
                     const OrtModel *pieces);
#endif
