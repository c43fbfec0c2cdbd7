/* rnn_bytes.c - the recurrences in float, their products with 8-bit weights in integers, as
 * onnxruntime computes DynamicQuantizeLSTM: X is quantized as a whole, by the formula of
 * DynamicQuantizeLinear, and the state at each step, all rows of a chunk of the batch together
 * (ORT_RNN_CHUNK, whatever the number of threads). Sums are exact and are scaled to float.
 */
#include <string.h>

#include "base/checked.h"
#include "op/sequence/rnn_common.h"
#include "op/sequence/rnn_float.h"
#include "op/sequence/rnn_sums.h"
#include "op/shared/dynamic_range.h"

typedef struct byte_product {
    int64_t m, n, depth;
    const float *a;
    int64_t lda;
    const void *packed; /* a scale for each column, then the weights */
    float *c;
    int64_t ldc;
} byte_product;

static size_t scale_bytes(int64_t n)
{
    return ort_round_up((size_t)n * sizeof(float), 64);
}

static bool packed_bytes(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes)
{
    return n < INT32_MAX && ort_integer_fours_bytes(k, depth, n, bytes) &&
           ort_add_size(*bytes, scale_bytes(n), bytes);
}

static bool run_bytes(const ort_kernels *k, const ort_rnn_sizes *s, size_t *codes, size_t *thread)
{
    size_t state;
    int64_t rows;
    return ort_mul_i64(s->T, s->B, &rows) && ort_integer_rows_bytes(k, rows, s->I, codes) &&
           ort_integer_rows_bytes(k, ORT_RNN_CHUNK, s->H, &state) &&
           ort_add_size(state, ort_integer_thread_bytes(k), &state) &&
           (*thread = ort_round_up(state, 64)) > 0;
}

#define REAL float
#define CORE ort_rnn_core_bytes
#define PACKED_BYTES packed_bytes
#define OWN_PACK
#define RUN_BYTES run_bytes
#define PRODUCT byte_product

static void *take(char **at, size_t bytes);

/* Columns [first, first + count) of all directions' codes, packed behind their scales. */
static const void *pack_rows(const ort_kernels *k, const ort_rnn_source *source,
                             const ort_tensor *t, int64_t first, int64_t count, int64_t depth,
                             float *temporary, char **at)
{
    const ort_tensor *scale = t == source->W ? source->w_scale : source->r_scale;
    const ort_tensor *zero = t == source->W ? source->w_zero : source->r_zero;
    size_t bytes = 0;
    packed_bytes(k, depth, count, &bytes);
    char *packed = take(at, bytes);
    if (!temporary)
        return packed;
    const int64_t columns = t->shape.dim[1], d = first / columns;
    const bool shared = ort_tensor_count(scale) == t->shape.dim[0];
    const ort_bytes b = {(const char *)t->data + d * depth * columns + first % columns,
                         t->dtype == ORT_DTYPE_INT8, columns, 1};
    const ort_zeros zeros = {(const char *)zero->data + (shared ? d : first), b.is_signed,
                             shared ? 1 : count};
    float *scales = (float *)(void *)packed;
    memset(scales, 0, scale_bytes(count));
    ort_tensor_to_f32(scale, shared ? d : first, shared ? 1 : count, scales);
    for (int64_t j = 1; j < count && shared; j++)
        scales[j] = scales[0];
    ort_integer_pack_fours(k, depth, count, &b, &zeros, packed + scale_bytes(count));
    return packed;
}

static void quantized_product(const ort_call *call, byte_product *p, ort_rnn_scaling *s,
                              void *codes)
{
    float low = 0.0f, high = 0.0f;
    if (p->depth > 0)
        call->k->math.min_max(p->a, (size_t)(p->m * p->depth), &low, &high);
    uint8_t zero = (uint8_t)ort_dynamic_range(low, high, &s->scale);
    s->k = call->k;
    s->columns = p->packed;
    s->c = p->c;
    s->ldc = p->ldc;
    ort_integer_product q = {.m = p->m, .n = p->n, .depth = p->depth, .floats = p->a,
                             .scale = s->scale, .a_zero = {&zero, false, 1},
                             .packed = (const char *)p->packed + scale_bytes(p->n),
                             .space = codes, .finish = ort_rnn_scale_sums, .arg = s};
    ort_integer_multiply(call, &q);
}

/* The codes of the state lie behind the first thread's own scratch. Gates, which come from farther
 * away than weights of bytes where steps are many, are asked for before the sums. */
static void multiply(const ort_call *call, bool pooled, bool odd, byte_product *p, bool add)
{
    ort_rnn_scaling s = {.add = add};
    (void)pooled; /* otherwise the call has no pool */
    for (int64_t i = 0; add && i < p->m; i++)
        for (int64_t j = 0; j < p->n; j += 64 / (int64_t)sizeof *p->c)
            __builtin_prefetch(p->c + i * p->ldc + j);
    quantized_product(call, p, &s,
                      (char *)ort_call_scratch(call, 0) + ort_integer_thread_bytes(call->k));
}

static void input_product(const ort_rnn_run *run, byte_product *p, const float *bias)
{
    ort_rnn_scaling s = {.bias = bias};
    quantized_product(run->call, p, &s, run->codes);
}

#include "op/sequence/rnn_core.inc"
