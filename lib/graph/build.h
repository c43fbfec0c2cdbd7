/* build.h - from ONNX messages to graphs: what import and function expansion share. Internal to
 * graph/.
 *
 * A scope says what a name means. The main graph is the outermost scope; a body's scope lies in
 * that of its node; a function body has a scope of its own that lives in the graph of the call:
 * its names are not the graph's. A name found in an outer scope becomes a captured value of every
 * graph between.
 */
#ifndef ORT_GRAPH_BUILD_H
#define ORT_GRAPH_BUILD_H

#include "base/findings.h"
#include "graph/graph.h"
#include "io/codec.h"

typedef struct ort_scope ort_scope;
struct ort_scope {
    ort_graph *graph;
    ort_scope *parent;             /* around the node that owns the body, or NULL */
    ort_hashmap *names;            /* name to value id of `graph` */
    const char *prefix;            /* of every new name, or NULL: names are kept */
    const ort_function *function;  /* attribute references are looked up here... */
    const ort_node *call;          /* ...and in this node; both NULL outside of functions */
    const ort_opset *opsets;
    size_t opset_count;
    bool no_memory; /* resolving a name has failed for want of memory */
};

typedef struct ort_builder {
    ort_model *model;
    ort_codec codec;
    ort_findings *findings; /* duplicates, dangling names, cycles: all of them */
} ort_builder;

/* Codec and findings for a model; release in any case. */
ort_status ort_builder_init(ort_builder *builder, ort_model *model, ort_error *err);
void ort_builder_release(ort_builder *builder);
/* Findings as an error; moves the codec's blobs to the model. */
ort_status ort_builder_finish(ort_builder *builder, ort_error *err);

/* The whole graph of a message; outer is NULL for the main graph. */
ort_status ort_build_graph(ort_builder *builder, const Onnx__GraphProto *proto, ort_scope *outer,
                           ort_id parent_node, ort_graph **graph, ort_error *err);
/* A node with room for its outputs, the last of the graph's; NULL: no memory. */
ort_node *ort_build_new_node(ort_builder *builder, const Onnx__NodeProto *proto, ort_graph *graph);
/* Inputs, attributes and bodies of a node whose id and outputs are set. */
ort_status ort_build_node(ort_builder *builder, const Onnx__NodeProto *proto, ort_scope *scope,
                          ort_node *node, ort_error *err);
/* A new value; `name` must live as long as the model when there is no prefix. */
ort_id ort_scope_add(ort_builder *builder, ort_scope *scope, const char *name);

/* build_attr.c */
/* Models older than IR 3 may leave the type out; then it is that of the value. */
ort_attr_type ort_build_attr_type(const ort_builder *builder, const Onnx__AttributeProto *proto);
/* One attribute; its graphs, which need a scope, are left out. */
ort_status ort_build_attr(ort_builder *builder, const Onnx__AttributeProto *proto, ort_attr *attr,
                          ort_error *err);
ort_status ort_build_type(ort_model *model, const Onnx__TypeProto *proto, ort_type *type,
                          ort_error *err);

static inline const char *ort_build_text(const char *text) { return text ? text : ""; }
/* "" for "ai.onnx". */
const char *ort_build_domain(const char *domain);

#endif
