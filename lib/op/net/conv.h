/* conv.h - what the files of the convolution family share. */
#ifndef ORT_OP_NET_CONV_H
#define ORT_OP_NET_CONV_H

#include "op/shared/conv_shape.h"

/* conv_f32.c */
ort_status ort_conv_plan_f32(ort_shaping *s, conv_plan *plan, size_t *workspace, ort_error *err);
void ort_conv_run_f32(ort_call *call, const float *x, const float *w, const float *b,
                      const float *z, float *y);
/* conv_few.c: does it run a plan of these sizes? The rest as above. */
bool ort_conv_few(const conv_plan *plan);
ort_status ort_conv_plan_few(conv_plan *plan, size_t *workspace, ort_error *err);
void ort_conv_run_few(ort_call *call, const float *x, const float *w, const float *b,
                      const float *z, float *y);
/* conv_f64.c; b and z may be NULL */
void ort_conv_run_f64(ort_call *call, const ort_epilogue *epilogue, const double *x,
                      const double *w, const double *b, const double *z, double *y);

#endif
