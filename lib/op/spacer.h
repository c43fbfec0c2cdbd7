/* spacer.h - one-input Sums that keep operators apart from codes which onnxruntime misreads.
 *
 *     x -> Sum -> QuantizeLinear -> DequantizeLinear -> Sum -> operator
 *
 * onnxruntime 1.31 takes an operator between DequantizeLinear and QuantizeLinear for one on bytes,
 * whatever the codes are: of 2 bits or float8 it makes operators that have no such types, and
 * refuses the file; of float8 it drops a Relu that the codes don't imply. It moves such pairs over
 * Reshape and Transpose, which it has for bytes alone. A Sum of one value stops all of that and
 * changes no number; between a product of int8 and its bias it stops another such mistake. Sessions
 * here drop it first (pass identity); in a file it stays.
 */
#ifndef ORT_OP_SPACER_H
#define ORT_OP_SPACER_H

#include "op/edit.h"

/* Is it a Sum of one value that keeps misread codes apart from the operator behind or before it? */
bool ort_spacer_is(const ort_graph *graph, const ort_node *node);
/* The node that computes a value; where that is a spacer, the one before it. Or NULL. */
ort_node *ort_spacer_producer(const ort_graph *graph, ort_id value);
/* Spacers for the QuantizeLinear and DequantizeLinear of the graph from node `first` on that need
 * some, and behind products that are misled; bodies are graphs of their own. */
ort_status ort_spacers_add(ort_graph *graph, size_t first, ort_error *err);
/* One for whoever will read *value, which becomes its result. */
ort_status ort_spacer_of(ort_graph *graph, ort_id *value, ort_error *err);

#endif
