/* binary_apply.h - running a function of two operands that broadcast. */
#ifndef ORT_OP_SHARED_BINARY_APPLY_H
#define ORT_OP_SHARED_BINARY_APPLY_H

#include "op/op.h"

typedef struct ort_binary_state {
    ort_binary_fn *fn;      /* NULL where another run function is used */
    ort_dtype dtype;        /* of the operands */
    bool widen;             /* 16-bit floats: fn takes f32 */
    bool bytes_out;         /* fn gives uint8 */
    bool legacy;            /* opset 6: `axis` aligns B */
    bool has_axis;
    int64_t axis;
    int64_t parameter;      /* of the operator */
} ort_binary_state;

/* shape's share: two operands of one element type, or an error that names both. */
ort_status ort_binary_check_types(const ort_tensor *a, const ort_tensor *b, ort_error *err);
/* What impls begin with: the state and the opset-6 attributes. */
#define ORT_BINARY_STATE .state = sizeof(ort_binary_state), .bind = ort_binary_bind
extern const ort_bind ort_binary_bind[];
ort_status ort_binary_prepare(ort_prep *p, ort_error *err);
ort_status ort_binary_shape(ort_shaping *s, ort_error *err); /* plan_state: an ort_bcast */
ort_status ort_binary_run(ort_call *call, ort_error *err);
/* Types and shape (opset 6 included). `boolean`: the output is bool. */
ort_status ort_binary_infer(ort_infer *x, ort_error *err);

#endif
