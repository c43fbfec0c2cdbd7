/* seen_range.h - the range of a value's codes: what samples showed of it, as far as its readers
 * tell numbers apart.
 */
#ifndef ORT_QUANTIZE_SEEN_RANGE_H
#define ORT_QUANTIZE_SEEN_RANGE_H

#include "quantize/seen/range.h"
#include "quantize/static/design.h"

/* root: the value whose grid it is (ort_place_root), and what samples showed of it; no rule says
 * the form's range. */
ort_range ort_seen_range(const ort_site *site, ort_id root, const ort_observed *seen,
                         const ort_code_form *form);
/* ort_range_noise in that range. */
double ort_seen_noise(const ort_site *site, ort_id root, const ort_observed *seen,
                      const ort_code_form *form);

#endif
