/* constants.h - small constants that passes make and ask about. */
#ifndef ORT_PASS_CONSTANTS_H
#define ORT_PASS_CONSTANTS_H

#include "op/edit.h"

/* Is every element this number? False for none, strings and complex numbers, and for more than
 * 65536, which aren't looked at. t may be NULL. */
bool ort_constant_is_all(const ort_tensor *t, double number);
/* A constant that may be laid anew: nobody else reads it as it is, or it is small. */
bool ort_constant_moves(const ort_graph *graph, ort_id id);
/* The same elements in another shape. */
ort_status ort_constant_reshaped(ort_graph *graph, const ort_tensor *t, int rank,
                                 const int64_t *dims, ort_id *id, ort_error *err);
/* A tensor of one number. */
ort_status ort_constant_filled(ort_graph *graph, ort_dtype dtype, int rank, const int64_t *dims,
                               double number, ort_id *id, ort_error *err);
/* A list of int64, with a name or without. */
ort_status ort_constant_named(ort_graph *graph, const char *name, const int64_t *list, int count,
                              ort_id *id, ort_error *err);
ort_status ort_constant_list(ort_graph *graph, const int64_t *list, int count, ort_id *id,
                             ort_error *err);

#endif
