/* response.h - what readers make of a value's numbers, where all of them make the same: an error
 * of codes counts as what is left of it behind an activation. A hard swish gives 0 for all below
 * -3, so codes that reach further down are lost for the others.
 *
 * Computed by sums, products and quotients alone, which are rounded alike everywhere.
 */
#ifndef ORT_QUANTIZE_RESPONSE_H
#define ORT_QUANTIZE_RESPONSE_H

typedef enum ort_response_kind {
    ORT_RESPONSE_SAME, /* whatever the ends */
    ORT_RESPONSE_CLIPPED,
    ORT_RESPONSE_HARD_SWISH,
    ORT_RESPONSE_SWISH,
    ORT_RESPONSE_SIGMOID,
    ORT_RESPONSE_TANH,
} ort_response_kind;

typedef struct ort_response {
    ort_response_kind kind;
    float least, most; /* what lies beyond gives the same as these, or nearly so; 0 among them */
} ort_response;
#define ORT_RESPONSE_ALL {ORT_RESPONSE_SAME, -__builtin_inff(), __builtin_inff()}

double ort_response_of(const ort_response *response, double x);

#endif
