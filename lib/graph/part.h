/* part.h - some nodes of a graph as an ONNX model, for a provider that compiles them as a whole. */
#ifndef ORT_GRAPH_PART_H
#define ORT_GRAPH_PART_H

#include "graph/graph.h"

typedef struct ort_graph_part {
    const ort_graph *graph;
    const ort_node *const *nodes; /* in the order in which they run */
    size_t node_count;
    const ort_fact *facts;              /* by value id: settled types, and values known by now */
    const ort_tensor *const *constants; /* by value id, or NULL; as in a session's program */
    const ort_id *inputs, *outputs;     /* values that it takes and gives */
    size_t input_count, output_count;
} ort_graph_part;

/* The bytes, which the caller frees. Values are called "v" and their number. A node of another
 * opset than the model's is ORT_ERROR_UNSUPPORTED. */
ort_status ort_graph_part_export(const ort_graph_part *part, void **bytes, size_t *count,
                                 ort_error *err);

#endif
