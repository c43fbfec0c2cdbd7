/* rnn_f32.c - the recurrences in float (also of 16-bit types), on the tier's kernels. */
#include <string.h>

#include "base/checked.h"
#include "op/sequence/rnn_common.h"
#include "op/sequence/rnn_float.h"
#include "op/shared/matrix.h"

#define REAL float
#define CORE ort_rnn_core_f32
#define PACKED_BYTES ort_matrix_packed_bytes_f32
#define PACK ort_matrix_pack_f32
#define RUN_BYTES NULL
#define PRODUCT ort_product_f32

/* The same where they lie, at any alignment, if they are floats; else in `temporary`. */
static const float *as_real(const ort_tensor *t, int64_t first, int64_t count, float *temporary)
{
    if (t->dtype == ORT_DTYPE_FLOAT)
        return (const float *)t->data + first;
    to_real(t, first, count, temporary);
    return temporary;
}

static void multiply(const ort_call *call, bool pooled, bool odd, PRODUCT *p, bool add)
{
    ort_epilogue e = ort_epilogue_none();
    e.add = add ? p->c : NULL;
    e.ldadd = p->ldc;
    p->epilogue = &e;
    p->backwards = odd;
    if (pooled)
        ort_matrix_multiply_f32(call, p);
    else
        ort_matrix_block_f32(call->k, p);
}

static void input_product(const ort_rnn_run *run, PRODUCT *p, const float *bias)
{
    ort_epilogue e = ort_epilogue_none();
    e.col_bias = bias;
    p->epilogue = &e;
    ort_matrix_multiply_f32(run->call, p);
}

#include "op/sequence/rnn_core.inc"
