/* loop_scan.h - inference that Loop and Scan share. */
#ifndef ORT_OP_LOOP_SCAN_H
#define ORT_OP_LOOP_SCAN_H

#include "op/op.h"

/* Infer body `body` until its carried values are stable: in[first .. first + carried) enter it,
 * out[out_first ..) come back; in becomes the join of both. */
ort_status ort_loop_infer_carried(ort_infer *x, int body, ort_fact *in, int in_count, int first,
                                  int carried, ort_fact *out, int out_first, int out_count,
                                  ort_error *err);
/* Output `output` of the node stacks `trips` slices of type `element` along `axis`. */
ort_status ort_loop_infer_scan_output(ort_infer *x, int output, const ort_fact *element,
                                      int64_t axis, ort_dim trips, ort_error *err);

#endif
