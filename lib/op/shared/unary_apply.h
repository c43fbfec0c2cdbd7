/* unary_apply.h - running y = f(x) for every element type.
 *
 * f32 goes straight to the kernel, f64 to its double form, 16-bit floats through blocks of f32 (one
 * rounding at the end); integers have loops of their own where the function is exact, else they are
 * computed in double.
 */
#ifndef ORT_OP_SHARED_UNARY_APPLY_H
#define ORT_OP_SHARED_UNARY_APPLY_H

#include "op/shared/halves.h"

/* Elements per task of elementwise loops: depends on nothing, so results don't depend on threads.
 * */
#define ORT_ELEMENTWISE_GRAIN 32768
typedef struct ort_unary_state {
    ort_unary id;
    ort_dtype dtype;
    float a, b;
} ort_unary_state;

/* prepare: the function and its parameters, for the element type of input 0. */
ort_status ort_unary_prepare(ort_prep *p, ort_unary id, float a, float b, ort_error *err);
/* run: input 0 to output 0. */
ort_status ort_unary_run(ort_call *call, ort_error *err);
/* The function that a node of one input applies to floats, with its parameters; false when the
 * node is no such operator (Clip is not: its bounds are inputs). */
bool ort_unary_of_node(const ort_node *node, ort_unary *id, float *a, float *b);
/* By operator name, functions without parameters. */
bool ort_unary_find(const char *op_type, ort_unary *id);

#endif
