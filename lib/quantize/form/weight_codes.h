/* weight_codes.h - weights, biases and tables as codes. */
#ifndef ORT_QUANTIZE_WEIGHT_CODES_H
#define ORT_QUANTIZE_WEIGHT_CODES_H

#include "quantize/form/qdq_parts.h"

/* Weights of all products and tables that compute on codes, one for all readers that want the same
 * form of it, with scales that hold all of their biases; and what reads them. */
ort_status ort_weights_write(ort_qdq_writer *w, ort_error *err);
/* A constant that a step reads, in a form of activations; *numbers: dequantized. */
ort_status ort_weights_constant(ort_qdq_writer *w, ort_id id, int form, ort_id *numbers,
                                ort_error *err);
void ort_weights_release(ort_qdq_writer *w);

#endif
