/* pooling.h - what the files of the pooling family share. */
#ifndef ORT_OP_NET_POOLING_H
#define ORT_OP_NET_POOLING_H

#include "op/shared/pool_shape.h"

/* pooling_scalar.c: any element type the operator allows, with indices or without. */
void ort_pool_run_scalar(ort_call *call, const ort_tensor *x, ort_tensor *y, int64_t *indices);

#endif
