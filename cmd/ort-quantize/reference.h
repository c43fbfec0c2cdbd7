/* reference.h - the float model's runs, in a process of their own: its session and the quantized
 * one's are never in one memory. It goes through the samples beside its caller, one when asked.
 */
#ifndef ORT_QUANTIZE_REFERENCE_H
#define ORT_QUANTIZE_REFERENCE_H

#include "common/partner.h"
#include "quantize.h"

typedef struct reference {
    partner partner;
    string_list inputs, outputs; /* names, in order */
} reference;

/* Of q->original, whose samples must be readable again. 0 or an exit status. */
int reference_open(reference *r, quantizing *q);
/* Runs the next sample: out[outputs] become the caller's. */
ort_status reference_next(reference *r, ort_value **out, ort_error *err);
/* Runs the present one again. */
ort_status reference_time(reference *r, double *ms, ort_error *err);
void reference_close(reference *r);

#endif
