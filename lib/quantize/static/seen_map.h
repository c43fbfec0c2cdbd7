/* seen_map.h - which of what samples showed belongs to a value of a graph. */
#ifndef ORT_QUANTIZE_SEEN_MAP_H
#define ORT_QUANTIZE_SEEN_MAP_H

#include "quantize/static/design.h"
#include "quantize/seen/ranges.h"

typedef struct ort_seen_map {
    size_t **at; /* [sites][values]: one more than the number among ranges, or 0 */
    size_t sites;
} ort_seen_map;

/* Anew. `adds`: what isn't among the ranges joins them, without numbers so far. */
ort_status ort_seen_map_make(ort_seen_map *map, const ort_design *design, ort_ranges *ranges,
                             bool adds, ort_error *err);
void ort_seen_map_release(ort_seen_map *map);
/* What samples said of a value, or of what it has its codes from; NULL: nothing. */
const ort_observed *ort_seen_find(const ort_seen_map *map, const ort_design *design,
                                  const ort_ranges *ranges, const ort_site *site, ort_id id);

#endif
