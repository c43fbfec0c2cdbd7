/* harm.h - what codes of a node may cost, by what samples showed of single values: no model runs
 * for it. A search takes from it which nodes to try first, and what it pays to keep them float.
 */
#ifndef ORT_QUANTIZE_HARM_H
#define ORT_QUANTIZE_HARM_H

#include "quantize/static/design.h"
#include "quantize/seen/ranges.h"

typedef struct ort_harm {
    double work;  /* multiply-adds of a product on all samples, as if padding were pixels; of a step
                   * the numbers that it reads */
    double noise; /* of what it reads in codes: squared errors over squared numbers, a sum over
                   * inputs */
} ort_harm;

/* What samples showed of a value; NULL: nothing. */
typedef const ort_observed *ort_harm_seen(void *arg, ort_id id);
/* Zeros of what stays float, of tables, and of what only moves codes. */
ort_harm ort_harm_of(const ort_site *site, const ort_node *node, ort_harm_seen *seen, void *arg);

#endif
