/* unseen.h - what no sample came by has no range, and stays float: a branch that was never taken,
 * or a value that was 0 whenever samples came by, as behind a mask that hid all.
 */
#ifndef ORT_QUANTIZE_UNSEEN_H
#define ORT_QUANTIZE_UNSEEN_H

#include "quantize/static/design.h"

/* Did samples hold numbers but 0 of the value, which is read in that form? */
typedef bool ort_seen_fn(void *arg, const ort_site *site, ort_id value, const ort_code_form *form);

/* Places again where there is such a node; *count: how many. */
ort_status ort_unseen_part(ort_design *design, ort_seen_fn *seen, void *arg, size_t *count,
                           ort_error *err);

#endif
