/* min_cut.h - a directed graph with capacities, divided into a side of the source and a side of
 * the sink so that what leads across is least (Dinic's algorithm: Dinitz 1970). */
#ifndef ORT_BASE_MIN_CUT_H
#define ORT_BASE_MIN_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

#define ORT_CUT_NEVER (INT64_MAX / 4) /* the capacity of what must not be cut */

typedef struct ort_cut_edge {
    uint32_t to, next; /* next: of the same vertex */
    int64_t room;      /* left of the capacity; edge i ^ 1 is its reverse */
} ort_cut_edge;

typedef struct ort_min_cut { /* zeroed: empty; vertices 0 (source) and 1 (sink) come first */
    ORT_VEC(uint32_t) heads;
    ORT_VEC(ort_cut_edge) edges;
} ort_min_cut;

/* The new vertex, or UINT32_MAX when memory is exhausted. */
uint32_t ort_min_cut_vertex(ort_min_cut *cut);
bool ort_min_cut_edge(ort_min_cut *cut, uint32_t from, uint32_t to, int64_t capacity);
/* Finds the cut; false when memory is exhausted. `sink_side` has an entry per vertex: of the cuts
 * of least cost the one with the fewest vertices on the sink's side. */
bool ort_min_cut_run(ort_min_cut *cut, bool *sink_side, int64_t *cost);
void ort_min_cut_release(ort_min_cut *cut);

#endif
