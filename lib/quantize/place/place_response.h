/* place_response.h - the activation that all readers of a value compute from it, if they do. */
#ifndef ORT_QUANTIZE_PLACE_RESPONSE_H
#define ORT_QUANTIZE_PLACE_RESPONSE_H

#include "quantize/place/place.h"
#include "quantize/seen/response.h"

/* ORT_RESPONSE_ALL where they don't, or another value shares its grid. */
ort_response ort_place_response(const ort_graph *graph, const ort_placement *place, ort_id value);

#endif
