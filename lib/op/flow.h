/* flow.h - what the operators that pass values around (control flow, sequences, optionals) share:
 * joining types, keeping values beyond a call, cutting and gluing slices along an axis.
 */
#ifndef ORT_OP_FLOW_H
#define ORT_OP_FLOW_H

#include "op/op.h"

/* *a keeps only what a and b agree on: the type of a value that may be either. New element types
 * of sequences come from `arena`. */
void ort_flow_join_type(ort_arena *arena, ort_type *a, const ort_type *b);
/* Is everything that `a` says also said by `b`, and nothing more? */
bool ort_flow_same_type(const ort_type *a, const ort_type *b);
/* A sequence (or optional) type of this element; the element is copied into `arena`. */
ort_type ort_flow_type_of(ort_arena *arena, ort_type_kind kind, const ort_type *element);

/* A reference that outlives the call: `value` itself when it owns its bytes, else a copy. */
ort_status ort_flow_keep(ort_value *value, ort_value **kept, ort_error *err);
/* Output `index` becomes a kept form of `value` (the caller keeps its own reference). */
ort_status ort_flow_set_output(ort_call *call, int index, ort_value *value, ort_error *err);

/* Copy `count` elements of one contiguous tensor to another of the same type (any type, sub-byte
 * included). String records are copied, their bytes are not. */
void ort_flow_copy(ort_tensor *dst, int64_t dst_first, const ort_tensor *src, int64_t src_first,
                   int64_t count);
/* Element `index` along `axis` of `src`, the axis removed: a view where the slice is contiguous and
 * byte-aligned, else a copy. *value: NULL, or what another slice of such a tensor was, which is
 * freed, or is the view that moves on if nobody else holds it. */
ort_status ort_flow_slice(const ort_tensor *src, int axis, int64_t index, ort_value **value,
                          ort_error *err);
/* Write `part` (shape of dst without `axis`) at `index` along `axis` of dst. */
void ort_flow_put(ort_tensor *dst, int axis, int64_t index, const ort_tensor *part);
/* Shape of `part` with a new dim at `axis`. */
ort_shape ort_flow_insert_dim(const ort_shape *part, int axis, int64_t size);
/* Strings of `value` get bytes that live until the run ends. */
ort_status ort_flow_own_strings(ort_call *call, ort_tensor *tensor, ort_error *err);

/* The shape a body output is known to have, unknown dims 0: for loops that never ran. */
void ort_flow_empty_form(const ort_graph *body, int output, ort_dtype *dtype, ort_shape *shape);

#endif
