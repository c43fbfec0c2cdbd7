/* hash.h - structural hashes of a graph: how each value is computed, blind to names of temporaries
 * and nodes and to the order of nodes. Constants hash by content, wherever they are stored. */
#ifndef ORT_GRAPH_HASH_H
#define ORT_GRAPH_HASH_H

#include "graph/graph.h"

typedef struct ort_graph_hashes {
    uint64_t *values; /* by id */
    uint64_t *nodes;  /* by id; 0 for Constant nodes */
    uint64_t whole;   /* of the outputs */
    bool forms;       /* as ort_graph_hashes_init was asked */
    ort_arena arena;
} ort_graph_hashes;

/* forms: blind to the numbers of weights as well: floats and bytes. Integers of 16 bits and more
 * say how something is computed: axes, shapes. */
ort_status ort_graph_hashes_init(const ort_graph *graph, bool forms, ort_graph_hashes *hashes,
                                 ort_error *err);
void ort_graph_hashes_release(ort_graph_hashes *hashes);
uint64_t ort_hash_tensor(const ort_tensor *tensor);
uint64_t ort_hash_attr(const ort_dim_table *dims, const ort_attr *attr);

#endif
