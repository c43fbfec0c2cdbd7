/* results.h - weights whose numbers somebody wants as floats: a model gives them as results, or
 * what stays float reads them. */
#ifndef ORT_QUANTIZE_RESULTS_H
#define ORT_QUANTIZE_RESULTS_H

#include "graph/graph.h"

/* Is the constant an output of the model, as it is or turned? */
bool ort_quantize_is_result(const ort_graph *graph, ort_id id);
/* Why what multiplies by it stays float. */
extern const char ort_quantize_result_stays[];

/* Does anything else than nodes on codes read the constant, as it is or turned, bodies that capture
 * it among them? on_codes(arg, graph, node): that node will read codes of it. */
typedef bool ort_quantize_on_codes(void *arg, const ort_graph *graph, const ort_node *node);
bool ort_quantize_has_float_reader(const ort_graph *graph, ort_id id,
                                   ort_quantize_on_codes *on_codes, void *arg);
/* Why a table stays float then: of a lookup codes save bytes alone. */
extern const char ort_quantize_table_stays[];

#endif
