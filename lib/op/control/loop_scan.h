/* loop_scan.h - inference that Loop and Scan share. */
#ifndef ORT_OP_CONTROL_LOOP_SCAN_H
#define ORT_OP_CONTROL_LOOP_SCAN_H

#include "op/op.h"

/* in[first .. first + carried) enter body `body` as carried values, out[out_first ..) come back. */
typedef struct ort_loop_form {
    int body, in_count, first, carried, out_first, out_count;
    bool fixed; /* a carried value keeps its shape through all iterations (Scan) */
} ort_loop_form;

/* Infer the body until its carried values are stable: `in` becomes the join of what enters and what
 * comes back. */
ort_status ort_loop_infer_carried(ort_infer *x, const ort_loop_form *form, ort_fact *in,
                                  ort_fact *out, ort_error *err);
/* Output `output` of the node stacks `trips` slices of type `element` along `axis`. */
ort_status ort_loop_infer_scan_output(ort_infer *x, int output, const ort_fact *element,
                                      int64_t axis, ort_dim trips, ort_error *err);

#endif
