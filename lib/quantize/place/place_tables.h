/* place_tables.h - tables whose numbers the file must hold as floats anyway. */
#ifndef ORT_QUANTIZE_PLACE_TABLES_H
#define ORT_QUANTIZE_PLACE_TABLES_H

#include "quantize/place/place.h"

/* A table that another node reads as floats stays float: of a lookup codes save bytes alone, and
 * there they would be a second copy. All other parts are settled. */
void ort_place_tables(const ort_graph *graph, ort_placement *place);

#endif
