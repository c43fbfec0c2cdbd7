/* range.h - which part of what a value held its codes cover. */
#ifndef ORT_QUANTIZE_RANGE_H
#define ORT_QUANTIZE_RANGE_H

#include "quantize/code_grid.h"
#include "quantize/seen/ranges.h"

typedef struct ort_range {
    float least, most; /* 0 among them */
} ort_range;

/* A way to choose: the table has one of each ort_observer, by its number. */
typedef struct ort_observer_row {
    const char *name, *doc;
    ort_kept kept; /* what it needs to know of a value */
    /* Of a value that isn't 0 throughout. percentile: of the numbers that stay in the range, in
     * (0, 100]; half of the others lie beyond each end, or, for symmetric codes, all beyond the
     * ends of [-most, most]. */
    ort_range (*choose)(const ort_observed *value, double percentile,
                        const ort_codes_range *codes);
} ort_observer_row;
const ort_observer_row *ort_observer_find(ort_observer observer); /* NULL: there is none */

/* A value without what the observer needs gives all of its range. */
ort_range ort_range_choose(const ort_observed *value, ort_observer observer, double percentile,
                           const ort_codes_range *codes);

/* The sum of squared errors of codes on such a grid over that of squared numbers; 0 where no bins
 * are known. */
double ort_range_noise(const ort_observed *value, const ort_codes_range *codes, ort_grid grid);

#endif
