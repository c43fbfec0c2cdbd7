/* slices.h - what an operator may ask for tensors that its body goes over slice by slice. */
#ifndef ORT_EXEC_SLICES_H
#define ORT_EXEC_SLICES_H

#include "op/op.h"

extern const ort_slice_services ort_exec_slices;

#endif
