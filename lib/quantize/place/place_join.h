/* place_join.h - steps side by side that together are a function of one value: x * sigmoid(x), a
 * hard swish with a factor and an offset behind it. What lies between them isn't rounded: a runtime
 * computes such steps as one, or as one table of codes, so that codes between cost accuracy for
 * nothing.
 */
#ifndef ORT_QUANTIZE_PLACE_JOIN_H
#define ORT_QUANTIZE_PLACE_JOIN_H

#include "quantize/place/place.h"

/* Marks such nodes and values of a placement whose parts are final. */
ort_status ort_place_join(ort_graph *graph, ort_placement *place, ort_error *err);

#endif
