/* matmul.h - what the files of the matrix product family share. */
#ifndef ORT_OP_MATH_MATMUL_H
#define ORT_OP_MATH_MATMUL_H

#include "op/shared/matmul_shape.h"

ort_status ort_matmul_run(ort_call *call, ort_error *err);

#endif
