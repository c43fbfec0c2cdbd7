/* rnn_coded.c - the recurrences in float, with weights that a file dequantizes kept as its codes.
 *
 * What such a file means is the float operator on (code - zero) * scale. Here codes stay bytes,
 * and products are the same but for roundings: those with the state are products of floats with
 * codes (op/shared/coded_weight.h), for a file says nothing of codes of the state. Where X is
 * dequantized too, the product with its codes is one of whole numbers, scaled once.
 *
 * Weights that are read out of near caches become floats once: few columns don't pay for the state
 * in fixed point, and bytes that are multiplied by pairs take more arithmetic than floats, which
 * only memory makes up for.
 */
#include <string.h>

#include "base/checked.h"
#include "op/sequence/rnn_common.h"
#include "op/sequence/rnn_float.h"
#include "op/sequence/rnn_sums.h"
#include "op/shared/coded_weight.h"
#include "op/shared/matrix.h"

enum { COLUMNS = 256,           /* that pay for a row in fixed point */
       PAIRS_WEIGHTS = 1 << 19 }; /* that floats would make too many for the second-level cache */

typedef struct coded_product {
    int64_t m, n, depth;
    const void *a; /* floats, or codes of X */
    int64_t lda;
    const void *packed;
    float *c;
    int64_t ldc;
} coded_product;

/* Do weights that floats multiply stay codes? */
static bool stays(const ort_kernels *k, int64_t depth, int64_t n)
{
    return k->gemm.word == 4 ? n >= COLUMNS : n * depth >= PAIRS_WEIGHTS;
}

/* Of weights that codes of X multiply: a scale for each column stands before them. */
static size_t scale_bytes(int64_t n)
{
    return ort_round_up((size_t)n * sizeof(float), 64);
}

/* Enough for those that codes of X multiply, and for those that floats do. */
static bool packed_bytes(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes)
{
    size_t whole, other;
    int64_t count;
    if (n >= INT32_MAX || !ort_mul_i64(depth, n, &count) ||
        !ort_integer_fours_bytes(k, depth, n, &whole) ||
        !(stays(k, depth, n) ? ort_coded_packed_bytes : ort_matrix_packed_bytes_f32)(k, depth, n,
                                                                                    &other) ||
        !ort_add_size(whole, scale_bytes(n), bytes))
        return false;
    *bytes = *bytes > other ? *bytes : other;
    return true;
}

static bool run_bytes(const ort_kernels *k, const ort_rnn_sizes *s, size_t *codes, size_t *thread)
{
    size_t whole, state, own = ort_coded_thread_bytes(k);
    int64_t rows;
    if (!ort_mul_i64(s->T, s->B, &rows) || !ort_integer_rows_bytes(k, rows, s->I, &whole) ||
        !ort_coded_rows_bytes(k, rows, s->I, codes) ||
        !ort_coded_rows_bytes(k, ORT_RNN_CHUNK, s->H, &state) || !ort_add_size(own, state, &own))
        return false;
    *codes = *codes > whole ? *codes : whole;
    own = own > ort_integer_thread_bytes(k) ? own : ort_integer_thread_bytes(k);
    *thread = ort_round_up(own, 64);
    return true;
}

#define REAL float
#define CORE ort_rnn_core_coded
#define PACKED_BYTES packed_bytes
#define OWN_PACK
#define RUN_BYTES run_bytes
#define PRODUCT coded_product

static void *take(char **at, size_t bytes);

/* Weights as floats. */
static void pack_floats(const ort_kernels *k, int64_t depth, int64_t n, const ort_bytes *b,
                        const float *scale, const ort_zeros *zeros, float *temporary, void *packed)
{
    for (int64_t j = 0; j < n; j++) {
        float *row = temporary + j * depth;
        k->gemm.widen_f32(depth, (const char *)b->data + j * depth, b->is_signed,
                          ort_zero_at(zeros, j), row);
        for (int64_t i = 0; i < depth; i++)
            row[i] *= scale[j];
    }
    ort_matrix_pack_f32(k, depth, n, temporary, 1, depth, packed);
}

/* Columns [first, first + count) of all directions' codes [D][G*H][depth]. */
static const void *pack_rows(const ort_kernels *k, const ort_rnn_source *source,
                             const ort_tensor *t, int64_t first, int64_t count, int64_t depth,
                             float *temporary, char **at)
{
    const bool of_x = t == source->W;
    const float *scale = (const float *)(of_x ? source->w_scale : source->r_scale)->data + first;
    const ort_tensor *zero = of_x ? source->w_zero : source->r_zero;
    size_t bytes = 0;
    packed_bytes(k, depth, count, &bytes);
    char *packed = take(at, bytes);
    if (!temporary)
        return packed;
    const ort_bytes b = {(const char *)t->data + first * depth, t->dtype == ORT_DTYPE_INT8, 1,
                         depth};
    const ort_zeros zeros = {zero ? (const char *)zero->data + first : NULL, b.is_signed,
                             zero ? count : 1};
    if (of_x && source->x_coded) {
        memset(packed, 0, scale_bytes(count));
        memcpy(packed, scale, (size_t)count * sizeof *scale);
        ort_integer_pack_fours(k, depth, count, &b, &zeros, packed + scale_bytes(count));
    } else if (stays(k, depth, count)) {
        ort_coded_pack(k, depth, count, &b, scale, &zeros, packed);
    } else {
        pack_floats(k, depth, count, &b, scale, &zeros, temporary, packed);
    }
    return packed;
}

static void float_product(const ort_call *call, const coded_product *p, const float *bias, bool add,
                          void *space)
{
    if (stays(call->k, p->depth, p->n)) {
        const ort_coded_product q = {.m = p->m, .n = p->n, .depth = p->depth, .a = p->a,
                                     .packed = p->packed, .bias = bias, .add = add, .c = p->c,
                                     .ldc = p->ldc, .space = space};
        ort_coded_multiply(call, &q);
        return;
    }
    ort_epilogue e = ort_epilogue_none();
    e.col_bias = bias;
    e.add = add ? p->c : NULL;
    e.ldadd = p->ldc;
    const ort_product_f32 q = {.m = p->m, .n = p->n, .depth = p->depth, .a = p->a, .lda = p->lda,
                               .packed = p->packed, .c = p->c, .ldc = p->ldc, .epilogue = &e};
    if (call->pool)
        ort_matrix_multiply_f32(call, &q);
    else
        ort_matrix_block_f32(call->k, &q);
}

/* The state in fixed point lies behind the first thread's own scratch. */
static void multiply(const ort_call *call, bool pooled, bool odd, coded_product *p, bool add)
{
    (void)pooled; /* otherwise the call has no pool */
    float_product(call, p, NULL, add,
                  (char *)ort_call_scratch(call, 0) + ort_coded_thread_bytes(call->k));
}

static void input_product(const ort_rnn_run *run, coded_product *p, const float *bias)
{
    const ort_rnn *rnn = run->rnn;
    if (!rnn->x_coded) {
        float_product(run->call, p, bias, false, run->codes);
        return;
    }
    ort_rnn_scaling s = {.k = run->call->k, .scale = rnn->x_scale, .columns = p->packed,
                         .bias = bias, .c = p->c, .ldc = p->ldc};
    const ort_integer_product q = {.m = p->m, .n = p->n, .depth = p->depth,
                                   .a = {p->a, rnn->x_signed, p->lda, 1},
                                   .a_zero = {&rnn->x_zero, rnn->x_signed, 1},
                                   .packed = (const char *)p->packed + scale_bytes(p->n),
                                   .space = run->codes, .finish = ort_rnn_scale_sums, .arg = &s};
    ort_integer_multiply(run->call, &q);
}

#include "op/sequence/rnn_core.inc"
