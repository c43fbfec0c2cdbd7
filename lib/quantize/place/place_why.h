/* place_why.h - why a node stays float whatever stands around it. */
#ifndef ORT_QUANTIZE_PLACE_WHY_H
#define ORT_QUANTIZE_PLACE_WHY_H

#include "graph/graph.h"

/* Is it between codes already: reads what a DequantizeLinear gives, or gives what a QuantizeLinear
 * reads? */
const char *ort_place_already(const ort_graph *graph, const ort_node *node);
/* Of an operator that never computes on codes here. */
const char *ort_place_foreign(const ort_node *node);
/* The first node of com.microsoft that a product was fused into, with a text that says so: such
 * models came here after what should come later. False: there is none. */
bool ort_place_fused(const ort_graph *graph, char *text, size_t size);

#endif
