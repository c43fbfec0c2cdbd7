/* uneven.h - values side by side that one scale can't hold: boxes and scores of a detector in one
 * Concat, where the scores would all become 0.
 */
#ifndef ORT_QUANTIZE_UNEVEN_H
#define ORT_QUANTIZE_UNEVEN_H

#include "quantize/static/design.h"

/* How far from 0 the codes of a value reach in a form. */
typedef double ort_uneven_reach(void *arg, const ort_site *site, ort_id value,
                                const ort_code_form *form);

/* Each Concat on codes of 8 bits or fewer whose inputs reach differently, by more than a factor of
 * ORT_UNEVEN, stays float, and so do the products that read it. Places again where there is one. */
enum { ORT_UNEVEN = 32 };
ort_status ort_uneven_part(ort_design *design, ort_uneven_reach *reach, void *arg, ort_error *err);

#endif
