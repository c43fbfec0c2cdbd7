/* nbits.c - com.microsoft MatMulNBits: A[m][K] times a weight of 2 to 8 bits in blocks along K.
 *
 * B is [N][blocks][bytes of block * bits] as the model stores it. Constants are packed into groups
 * of columns (ort_nbits), of 2, 4 or 8 bits; what is between goes into the next of them. Rows of A
 * multiply those straight, in fixed point: of one byte an element where accuracy_level is 4, of
 * three otherwise. Another B, rows that don't go into fixed point, and many rows of three bytes
 * where that is quicker (pays): a task widens its columns of B to float panels, kc at a time, and
 * multiplies.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "op/shared/halves.h"
#include "op/shared/matrix.h"

enum { TASK_BYTES = 64 << 10, /* of packed weights */
       FIX_BYTES = 16 << 10,  /* of A */
       RUN = 128,             /* weights, at most */
       CUT_ROWS = 16,         /* of A, that are worth a copy */
       PAIRS_ROWS = 12,       /* of three bytes, that pay where bytes are multiplied by pairs */
       SHORT_RUN = 32, MANY_ROWS = 32, FEW_COLUMNS = 1024 }; /* for which floats may pay */

typedef struct nbits_state {
    int64_t k, n, block, bits, blocks;
    int64_t accuracy; /* accuracy_level: 4 allows fixed point of one byte */
    bool prepacked;
    const float *scale, *zero; /* [N][blocks] from constants; zero NULL: the middle of the range */
    const float *bias;
    ort_nbits packed; /* what doesn't change with A; words NULL: B isn't packed */
    bool zero_is_middle, reordered; /* reordered: g_idx says which block's scale a row of K has */
} nbits_state;

static const ort_bind nbits_bind[] = {
    ORT_BIND_AS(nbits_state, k, "K", ORT_WITHIN(1, INT32_MAX)),
    ORT_BIND_AS(nbits_state, n, "N", ORT_WITHIN(1, INT32_MAX)),
    ORT_BIND(nbits_state, bits), ORT_BIND_AS(nbits_state, block, "block_size"),
    ORT_BIND_AS(nbits_state, accuracy, "accuracy_level"),
    ORT_BIND_AS(nbits_state, prepacked, "weight_prepacked"), {0}};

typedef struct nbits_plan {
    int64_t m;
    bool fixes;        /* rows of A are put in fixed point */
    int64_t fixed_row; /* words of a row of A in fixed point */
    size_t a, y, scale, zero, bias, sums, fixed, fits, units, pieces;
    bool cut;          /* rows of A are cut into pieces */
} nbits_plan;

static ort_status nbits_infer(ort_infer *x, ort_error *err)
{
    int64_t n = ort_node_attr_int(x->node, "N"), k = ort_node_attr_int(x->node, "K");
    ort_dim columns = ort_infer_dim(x, 0, ort_infer_in_ranked(x, 0) ? x->in[0]->type.rank - 1 : 0);
    if (n < 1 || k < 1)
        return ort_infer_fail(x, err, "attributes N and K are %lld and %lld", (long long)n,
                              (long long)k);
    if (ort_dim_differ(columns, ort_dim_of(k)))
        return ort_infer_fail(x, err, "A has %lld columns, attribute K says %lld",
                              (long long)columns.size, (long long)k);
    return ORT_OK;
}

static void nbits_cost(const ort_infer *x, ort_cost *cost)
{
    const ort_type *y = &x->out[0].type;
    double macs = (double)ort_node_attr_int(x->node, "K");
    for (int d = 0; d < y->rank; d++)
        macs *= ort_dim_known(y->dim[d]) ? (double)y->dim[d].size : 0;
    cost->macs = y->rank > 0 ? macs : 0;
    cost->of_bytes = ort_node_attr_int(x->node, "accuracy_level") == 4;
}

/* ---- prepare */

/* Bytes of a block of B; rows of packed zero points begin at whole bytes, too. */
static int64_t code_bytes(int64_t codes, int64_t bits)
{
    return (codes * bits + 7) / 8;
}

/* Codes follow each other bit by bit, the first in the low bits. */
static unsigned code_at(const uint8_t *codes, int64_t index, int64_t bits)
{
    const int64_t from = index * bits, left = from % 8;
    unsigned word = codes[from / 8];
    if (left + bits > 8)
        word |= (unsigned)codes[from / 8 + 1] << 8;
    return word >> left & ((1u << bits) - 1u);
}

/* Zero points as floats: given as T, or packed `bits` each with rows of whole bytes. */
static void unpack_zeros(const nbits_state *s, const ort_tensor *zero, float *out)
{
    if (zero->dtype != ORT_DTYPE_UINT8) {
        ort_tensor_to_f32(zero, 0, s->n * s->blocks, out);
        return;
    }
    for (int64_t j = 0; j < s->n; j++) {
        const uint8_t *row = (const uint8_t *)zero->data + j * code_bytes(s->blocks, s->bits);
        for (int64_t at = 0; at < s->blocks; at++)
            *out++ = (float)code_at(row, at, s->bits);
    }
}

static ort_status check_sizes(const nbits_state *s, const ort_tensor *b, const ort_tensor *scale,
                              const ort_tensor *zero, const ort_tensor *bias, ort_error *err)
{
    int64_t blob = code_bytes(s->block, s->bits), blocks = s->n * s->blocks;
    int64_t zero_bytes = s->n * code_bytes(s->blocks, s->bits);
    if (b && ort_tensor_count(b) != blocks * blob)
        return ort_error_set(err, ORT_ERROR_MODEL, "B has %lld bytes, needs %lld x %lld x %lld",
                             (long long)ort_tensor_count(b), (long long)s->n, (long long)s->blocks,
                             (long long)blob);
    if (scale && ort_tensor_count(scale) != blocks)
        return ort_error_set(err, ORT_ERROR_MODEL, "scales has %lld elements, needs %lld",
                             (long long)ort_tensor_count(scale), (long long)blocks);
    if (zero && ort_tensor_count(zero) !=
                    (zero->dtype == ORT_DTYPE_UINT8 ? zero_bytes : blocks))
        return ort_error_set(err, ORT_ERROR_MODEL, "zero_points has %lld elements, needs %lld",
                             (long long)ort_tensor_count(zero),
                             (long long)(zero->dtype == ORT_DTYPE_UINT8 ? zero_bytes : blocks));
    if (bias && ort_tensor_count(bias) != s->n)
        return ort_error_set(err, ORT_ERROR_MODEL, "bias has %lld elements, needs %lld",
                             (long long)ort_tensor_count(bias), (long long)s->n);
    return ORT_OK;
}

static ort_status floats_of_constant(ort_prep *p, int input, int64_t count, const nbits_state *s,
                                     const float **out, ort_error *err)
{
    const ort_tensor *t = ort_prep_constant(p, input);
    if (!t)
        return ORT_OK;
    if (t->dtype == ORT_DTYPE_FLOAT && input != 3) {
        *out = t->data;
        return ORT_OK;
    }
    bool fill;
    const char *kind = input == 2 ? "scales" : input == 3 ? "zeros" : "bias";
    float *to = ort_prep_pack(p, kind, 1u << input, (size_t)count * sizeof(float), &fill);
    if (!to)
        return ort_error_memory(err, (size_t)count * sizeof(float));
    if (fill && input == 3)
        unpack_zeros(s, t, to);
    else if (fill)
        ort_tensor_to_f32(t, 0, count, to);
    ort_prep_absorb(p, input);
    *out = to;
    return ORT_OK;
}

/* ---- packed */

/* [N][blocks] in the order of a block [group][blocks][lanes]; columns beyond N have 0. */
static void by_lanes(const ort_prep *p, const nbits_state *s, const float *plain, float *out)
{
    const int64_t lanes = p->k->gemm.nbits_lanes;
    for (int64_t g = 0; g < s->n; g += lanes)
        for (int64_t b = 0; b < s->blocks; b++)
            for (int64_t j = g; j < g + lanes; j++)
                *out++ = j < s->n ? plain[j * s->blocks + b] : 0.0f;
}

/* Does a float16 hold each scale? Kept with what is packed, for a pack file has no scales. */
static ort_status fit_half(ort_prep *p, const float *scale, int64_t count, bool *fits,
                           ort_error *err)
{
    enum { SOME = 256 };
    bool fill;
    int32_t *kept = ort_prep_pack(p, "scale form", 1u << 2, sizeof *kept, &fill);
    if (!kept)
        return ort_error_memory(err, sizeof *kept);
    if (fill)
        *kept = 1;
    for (int64_t i = 0; fill && i < count && *kept; i += SOME) {
        const size_t some = (size_t)ort_min_i64(SOME, count - i);
        uint16_t half[SOME];
        float back[SOME];
        p->k->math.f32_to_f16(scale + i, half, some);
        p->k->math.f16_to_f32(half, back, some);
        *kept = !memcmp(back, scale + i, some * sizeof *back);
    }
    *fits = *kept != 0;
    return ORT_OK;
}

static ort_status pack_scales(ort_prep *p, nbits_state *s, const float *scale, int64_t count,
                              ort_error *err)
{
    ort_nbits *w = &s->packed;
    bool half = false, fill;
    ORT_TRY(fit_half(p, scale, count, &half, err));
    const size_t bytes = (size_t)count * (half ? sizeof(uint16_t) : sizeof(float));
    void *to = ort_prep_pack(p, half ? "half scales" : "scales", 1u << 2, bytes, &fill);
    if (!to)
        return ort_error_memory(err, bytes);
    if (fill && half)
        p->k->math.f32_to_f16(scale, to, (size_t)count);
    else if (fill)
        memcpy(to, scale, bytes);
    w->scale = half ? NULL : to;
    w->scale_half = half ? to : NULL;
    ort_prep_absorb(p, 2);
    return ORT_OK;
}

/* Packed zero points become bytes, others floats. */
static ort_status pack_zeros(ort_prep *p, nbits_state *s, const float *zero, int64_t count,
                             ort_error *err)
{
    const bool codes = ort_prep_constant(p, 3)->dtype == ORT_DTYPE_UINT8;
    const size_t bytes = (size_t)count * (codes ? 1 : sizeof(float));
    bool fill;
    void *to = ort_prep_pack(p, "zeros", 1u << 3, bytes, &fill);
    if (!to)
        return ort_error_memory(err, bytes);
    for (int64_t i = 0; fill && codes && i < count; i++)
        ((uint8_t *)to)[i] = (uint8_t)zero[i];
    if (fill && !codes)
        memcpy(to, zero, bytes);
    s->packed.zero = codes ? NULL : to;
    s->packed.zero_byte = codes ? to : NULL;
    ort_prep_absorb(p, 3);
    return ORT_OK;
}

/* Columns [j, j + lanes) of a B of other bits, as rows of codes of w->bits. */
static void recode(const nbits_state *s, const uint8_t *b, int64_t j, int64_t end, uint8_t *out)
{
    const int64_t bits = s->packed.bits, blob = code_bytes(s->block, s->bits);
    const int64_t row = 4 * s->packed.row_words;
    memset(out, 0, (size_t)((end - j) * row));
    for (int64_t l = j; l < end; l++)
        for (int64_t i = 0; i < s->blocks * s->block; i++) {
            const uint8_t *block = b + (l * s->blocks + i / s->block) * blob;
            const int64_t at = (l - j) * row * 8 + i * bits;
            out[at / 8] = (uint8_t)(out[at / 8] |
                                    code_at(block, i % s->block, s->bits) << at % 8);
        }
}

static ort_status fill_words(const ort_prep *p, const nbits_state *s, int32_t *words,
                             ort_error *err)
{
    const ort_gemm_kernels *g = &p->k->gemm;
    const ort_nbits *w = &s->packed;
    const uint8_t *b = ort_prep_constant(p, 1)->data;
    const int64_t lanes = g->nbits_lanes, row = 4 * w->row_words;
    uint8_t *codes = w->bits == s->bits ? NULL : malloc((size_t)(lanes * row));
    if (!codes && w->bits != s->bits)
        return ort_error_memory(err, (size_t)(lanes * row));
    for (int64_t j = 0; j < s->n; j += lanes) {
        const int64_t end = ort_min_i64(j + lanes, s->n);
        if (codes)
            recode(s, b, j, end, codes);
        g->nbits_pack(codes ? end - j : s->n, w->row_words, w->bits, codes ? codes : b,
                      codes ? 0 : j, words + j * w->row_words);
    }
    free(codes);
    return ORT_OK;
}

static ort_status pack_words(ort_prep *p, nbits_state *s, ort_error *err)
{
    const int64_t lanes = p->k->gemm.nbits_lanes, groups = (s->n + lanes - 1) / lanes;
    ort_nbits *w = &s->packed;
    w->bits = s->bits <= 2 ? 2 : s->bits <= 4 ? 4 : 8;
    w->middle = 1 << (s->bits - 1);
    w->n = s->n;
    w->row_words = s->blocks * s->block * w->bits / 32;
    w->run_words = ort_min_i64(s->block, RUN) * w->bits / 32;
    w->block_runs = ort_max_i64(s->block / RUN, 1);
    w->digits = s->accuracy == 4 || p->math_fast ? 1 : 3;
    p->rounds = s->accuracy == 4 || !p->math_fast ? 0 : ort_min_i64(s->block, RUN);
    const size_t bytes = (size_t)(groups * lanes * w->row_words) * sizeof(int32_t);
    bool fill;
    int32_t *words = ort_prep_pack(p, "words", 1u << 1, bytes, &fill);
    if (!words)
        return ort_error_memory(err, bytes);
    if (fill)
        ORT_TRY(fill_words(p, s, words, err));
    ort_prep_absorb(p, 1);
    w->words = words;
    return ORT_OK;
}

static ort_status pack_weight(ort_prep *p, nbits_state *s, ort_error *err)
{
    const ort_tensor *scale = ort_prep_constant(p, 2), *zero = ort_prep_constant(p, 3);
    const int64_t lanes = p->k->gemm.nbits_lanes, columns = (s->n + lanes - 1) / lanes * lanes;
    const int64_t plain = s->n * s->blocks, count = columns * s->blocks;
    if (s->reordered || !ort_prep_constant(p, 1) || !scale || (!s->zero_is_middle && !zero))
        return ORT_OK;
    float *floats = malloc((size_t)(plain + count) * sizeof *floats);
    if (!floats)
        return ort_error_memory(err, (size_t)(plain + count) * sizeof *floats);
    float *packed = floats + plain;
    ort_tensor_to_f32(scale, 0, plain, floats);
    by_lanes(p, s, floats, packed);
    ort_status status = pack_scales(p, s, packed, count, err);
    if (status == ORT_OK && zero) {
        unpack_zeros(s, zero, floats);
        by_lanes(p, s, floats, packed);
        status = pack_zeros(p, s, packed, count, err);
    }
    free(floats);
    return status != ORT_OK ? status : pack_words(p, s, err);
}

static ort_status nbits_prepare(ort_prep *p, ort_error *err)
{
    nbits_state *s = p->state;
    if (s->bits < 2 || s->bits > 8)
        return ort_prep_fail(p, err, "attribute bits is %lld, needs 2 to 8", (long long)s->bits);
    if (s->block < 16 || s->block > (1 << 20) || (s->block & (s->block - 1)))
        return ort_prep_fail(p, err, "attribute block_size is %lld, needs a power of two from 16 "
                             "on", (long long)s->block);
    s->reordered = ort_prep_dtype(p, 4) != ORT_DTYPE_UNDEFINED;
    if (s->prepacked)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "weight_prepacked is another program's private layout of the weight");
    s->blocks = (s->k + s->block - 1) / s->block;
    s->zero_is_middle = ort_prep_dtype(p, 3) == ORT_DTYPE_UNDEFINED;
    ort_dtype a = ort_prep_dtype(p, 0);
    if (a != ORT_DTYPE_FLOAT && a != ORT_DTYPE_FLOAT16 && a != ORT_DTYPE_BFLOAT16)
        return ort_prep_unsupported_dtype(p, 0, err);
    ORT_TRY(check_sizes(s, ort_prep_constant(p, 1), ort_prep_constant(p, 2),
                        ort_prep_constant(p, 3), ort_prep_constant(p, 5), err));
    ORT_TRY(floats_of_constant(p, 5, s->n, s, &s->bias, err));
    ORT_TRY(pack_weight(p, s, err));
    if (s->packed.words)
        return ORT_OK;
    ORT_TRY(floats_of_constant(p, 2, s->n * s->blocks, s, &s->scale, err));
    return floats_of_constant(p, 3, s->n * s->blocks, s, &s->zero, err);
}

/* ---- shape */

static ort_status take(size_t *total, int64_t count, size_t *offset, ort_error *err)
{
    size_t bytes;
    *offset = *total;
    if (count < 0 || !ort_mul_size((size_t)count, sizeof(float), &bytes) || bytes > SIZE_MAX / 2 ||
        !ort_add_size(*total, ort_round_up(bytes, 64), total))
        return ort_error_memory(err, SIZE_MAX);
    return ORT_OK;
}

static int64_t panel_columns(const ort_kernels *k)
{
    return 2 * k->gemm.nr;
}

/* Is a packed product of m rows quicker in fixed point than in floats? Weights of 8 bits take twice
 * as long in pairs. Three products of bytes take three quarters of the time of one of floats, and
 * what ends a run is free only where such products have units of their own: where all work on 512
 * bits shares two, it costs more than that quarter in short runs, as do rows that few columns
 * read. */
static bool pays(const nbits_state *s, const ort_kernels *k, int64_t m)
{
    const ort_nbits *w = &s->packed;
    if (w->digits == 1)
        return true;
    if (k->gemm.word != 4)
        return m <= (w->bits == 8 ? PAIRS_ROWS / 2 : PAIRS_ROWS);
    return !ort_cpu_get()->avx512_shares_units || k->gemm.nbits_lanes != 16 ||
           w->run_words * 32 / w->bits > SHORT_RUN || m < MANY_ROWS || s->n > FEW_COLUMNS;
}

static ort_status nbits_shape(ort_shaping *s, ort_error *err)
{
    const nbits_state *state = s->state;
    const ort_tensor *a = s->in[0];
    nbits_plan *p = ort_arena_alloc(s->arena, sizeof *p);
    size_t total = 0;
    if (!p)
        return ort_error_memory(err, sizeof *p);
    s->plan_state = p;
    ORT_TRY(check_sizes(state, s->in[1], s->in[2], s->in_count > 3 ? s->in[3] : NULL,
                        s->in_count > 5 ? s->in[5] : NULL, err));
    if (a->shape.rank < 1 || a->shape.dim[a->shape.rank - 1] != state->k)
        return ort_error_set(err, ORT_ERROR_MODEL, "A needs %lld columns", (long long)state->k);
    p->m = ort_shape_count_range(&a->shape, 0, a->shape.rank - 1);
    if (a->dtype != ORT_DTYPE_FLOAT) {
        ORT_TRY(take(&total, p->m * state->k, &p->a, err));
        ORT_TRY(take(&total, p->m * state->n, &p->y, err));
    }
    int64_t count = state->n * state->blocks;
    if (!state->scale && !state->packed.words)
        ORT_TRY(take(&total, count, &p->scale, err));
    if (!state->zero && !state->zero_is_middle && !state->packed.words)
        ORT_TRY(take(&total, count, &p->zero, err));
    if (!state->bias)
        ORT_TRY(take(&total, state->n, &p->bias, err));
    p->fixes = state->packed.words && pays(state, s->k, p->m);
    if (p->fixes) {
        const ort_nbits *w = &state->packed;
        int64_t runs = w->row_words / w->run_words;
        p->fixed_row = w->digits * (w->row_words * 8 / w->bits + runs);
        ORT_TRY(take(&total, p->m * runs, &p->sums, err));
        ORT_TRY(take(&total, p->m * runs, &p->units, err));
        ORT_TRY(take(&total, p->m * p->fixed_row, &p->fixed, err));
        ORT_TRY(take(&total, p->m, &p->fits, err));
    }
    p->cut = !p->fixes && p->m >= CUT_ROWS && state->k > s->k->gemm.kc;
    if (p->cut)
        ORT_TRY(take(&total, p->m * state->k, &p->pieces, err));
    int64_t columns = panel_columns(s->k) + s->k->gemm.nr;
    s->thread_bytes = (size_t)(columns * s->k->gemm.kc) * sizeof(float);
    s->workspace_bytes = total;
    return ORT_OK;
}

/* ---- run */

typedef struct nbits_job {
    const ort_call *call;
    const nbits_state *s;
    const nbits_plan *p;
    const uint8_t *b;
    const float *a, *scale, *zero, *bias;
    const int32_t *group; /* [K] of g_idx, or NULL */
    float *y;
    ort_nbits w;
} nbits_job;

static float *at(const ort_call *call, size_t offset)
{
    return (float *)(void *)((char *)call->workspace + offset);
}

/* A row's place in fixed point; was it put there? */
static int32_t *fits_of(const nbits_job *j)
{
    return (int32_t *)(void *)at(j->call, j->p->fits);
}

static void task_fix(void *arg, int64_t first, int64_t end, int thread)
{
    const nbits_job *j = arg;
    const int64_t runs = j->w.row_words / j->w.run_words;
    int32_t *fixed = (int32_t *)(void *)at(j->call, j->p->fixed);
    float *units = at(j->call, j->p->units), *sums = at(j->call, j->p->sums);
    for (int64_t row = first; row < end; row++)
        fits_of(j)[row] = j->call->k->gemm.nbits_fix(j->s->k, &j->w, j->a + row * j->s->k,
                                                     fixed + row * j->p->fixed_row,
                                                     units + row * runs, sums + row * runs);
}

/* Rows of A in fixed point; false when floats pay more, or one of them doesn't go into it. */
static bool fix_rows(nbits_job *j)
{
    const nbits_state *s = j->s;
    ort_nbits *w = &j->w;
    if (!j->p->fixes)
        return false;
    w->rows = j->p->m;
    w->sums = at(j->call, j->p->sums);
    w->units = at(j->call, j->p->units);
    w->fixed = (const int32_t *)(const void *)at(j->call, j->p->fixed);
    w->fixed_row = j->p->fixed_row;
    w->y = j->y;
    w->y_row = s->n;
    ort_call_range(j->call, w->rows, ort_max_i64(FIX_BYTES / (4 * s->k), 1), task_fix, j);
    for (int64_t row = 0; row < w->rows; row++)
        if (!fits_of(j)[row])
            return false;
    return true;
}

static void task_product(void *arg, int64_t first, int64_t end, int thread)
{
    const nbits_job *j = arg;
    j->call->k->gemm.nbits(first, end, &j->w);
}

/* k in [k0, k0 + depth) of one column of B. */
static void widen_column(const nbits_job *j, int64_t column, int64_t k0, int64_t depth, float *out)
{
    const nbits_state *s = j->s;
    const int64_t blob = code_bytes(s->block, s->bits);
    const uint8_t *q = j->b + column * s->blocks * blob;
    const float *scale = j->scale + column * s->blocks;
    const float *zeros = j->zero ? j->zero + column * s->blocks : NULL;
    for (int64_t kk = k0, end; kk < k0 + depth; kk = end) {
        const int64_t in = kk / s->block, of = j->group ? j->group[kk] : in;
        float zero = zeros ? zeros[of] : (float)(1u << (s->bits - 1));
        end = j->group ? kk + 1 : ort_min_i64((in + 1) * s->block, k0 + depth);
        for (int64_t i = kk; i < end; i++) {
            float code = (float)code_at(q + in * blob, i - in * s->block, s->bits);
            out[i - k0] = (code - zero) * scale[of];
        }
    }
}

/* Columns [first, first + n) of B, k in [k0, k0 + depth), into panels of nr columns with stride
 * depth. `columns` holds a panel of them one after the other. */
static void widen_panels(const nbits_job *j, int64_t first, int64_t n, int64_t k0, int64_t depth,
                         float *columns, float *out)
{
    const ort_gemm_kernels *g = &j->call->k->gemm;
    for (int64_t c = 0; j->w.words && c < n; c += g->nbits_lanes)
        g->nbits_widen(&j->w, (first + c) / g->nbits_lanes, k0, depth,
                       out + c / g->nr * depth * g->nr + c % g->nr, g->nr);
    for (int64_t c = 0; !j->w.words && c < n; c += g->nr, out += depth * g->nr) {
        int64_t count = ort_min_i64(g->nr, n - c);
        for (int64_t i = 0; i < count; i++)
            widen_column(j, first + c + i, k0, depth, columns + i * depth);
        g->pack_f32(depth, count, columns, 1, depth, depth, out);
    }
}

/* Pieces of kc elements of all rows of A, one behind the other: rows that are a power of two apart
 * would meet in few lines of the first-level cache. */
static void task_cut(void *arg, int64_t first, int64_t end, int thread)
{
    const nbits_job *j = arg;
    const int64_t k = j->s->k, kc = j->call->k->gemm.kc, m = j->p->m;
    float *pieces = at(j->call, j->p->pieces);
    for (int64_t k0 = 0; k0 < k; k0 += kc) {
        const int64_t depth = ort_min_i64(kc, k - k0);
        for (int64_t row = first; row < end; row++)
            memcpy(pieces + k0 * m + row * depth, j->a + row * k + k0,
                   (size_t)depth * sizeof *pieces);
    }
}

static void task_panels(void *arg, int64_t first, int64_t end, int thread)
{
    const nbits_job *j = arg;
    const nbits_state *s = j->s;
    const ort_gemm_kernels *g = &j->call->k->gemm;
    int64_t n = end - first;
    float *panels = ort_call_scratch(j->call, thread);
    float *columns = panels + panel_columns(j->call->k) * g->kc;
    for (int64_t k0 = 0; k0 < s->k; k0 += g->kc) {
        int64_t depth = ort_min_i64(g->kc, s->k - k0);
        widen_panels(j, first, n, k0, depth, columns, panels);
        const bool cut = j->p->cut;
        ort_tile_f32 t = {.a = cut ? at(j->call, j->p->pieces) + k0 * j->p->m : j->a + k0,
                          .lda = cut ? depth : s->k, .b = panels, .b_step = g->nr,
                          .b_panel = depth * g->nr, .c = j->y + first, .ldc = s->n,
                          .add = k0 ? j->y + first : NULL, .ldadd = s->n,
                          .col_bias = k0 || !j->bias ? NULL : j->bias + first, .alpha = 1.0f,
                          .lo = -INFINITY, .hi = INFINITY};
        g->f32(j->p->m, n, depth, &t);
    }
}

static void fill_parameters(nbits_job *j, const ort_call *call)
{
    const nbits_state *s = j->s;
    const ort_tensor *scale = ort_call_in(call, 2), *zero = ort_call_in(call, 3);
    const ort_tensor *bias = ort_call_in(call, 5);
    j->scale = s->scale;
    j->zero = s->zero;
    j->bias = s->bias;
    if (!j->scale && !j->w.words) {
        ort_tensor_to_f32(scale, 0, s->n * s->blocks, at(call, j->p->scale));
        j->scale = at(call, j->p->scale);
    }
    if (!j->zero && zero && !j->w.words) {
        unpack_zeros(s, zero, at(call, j->p->zero));
        j->zero = at(call, j->p->zero);
    }
    if (!j->bias && bias) {
        ort_tensor_to_f32(bias, 0, s->n, at(call, j->p->bias));
        j->bias = at(call, j->p->bias);
    }
}

/* g_idx holds a block for each of the K rows; what it holds beyond them isn't read. Scale and zero
 * point of that block count, as documented; onnxruntime leaves out zero points in bytes here. */
static ort_status check_groups(nbits_job *j, ort_error *err)
{
    const nbits_state *s = j->s;
    const ort_tensor *groups = s->reordered ? ort_call_in(j->call, 4) : NULL;
    j->group = groups ? groups->data : NULL;
    if (groups && ort_tensor_count(groups) < s->k)
        return ort_call_fail(j->call, err, "g_idx has %lld elements, needs %lld",
                             (long long)ort_tensor_count(groups), (long long)s->k);
    for (int64_t i = 0; groups && i < s->k; i++)
        if (j->group[i] < 0 || j->group[i] >= s->blocks)
            return ort_call_fail(j->call, err, "g_idx[%lld] is %d, outside of the %lld blocks",
                                 (long long)i, (int)j->group[i], (long long)s->blocks);
    return ORT_OK;
}

static ort_status nbits_run(ort_call *call, ort_error *err)
{
    const nbits_state *s = call->state;
    const nbits_plan *p = call->plan_state;
    const ort_tensor *a = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0);
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    nbits_job j = {.call = call, .s = s, .p = p, .b = ort_call_in(call, 1)->data, .a = a->data,
                   .y = y->data, .w = s->packed};
    bool half = a->dtype != ORT_DTYPE_FLOAT;
    ORT_TRY(check_groups(&j, err));
    fill_parameters(&j, call);
    j.w.bias = j.bias;
    if (half) {
        ort_call_widen(call, a, at(call, p->a));
        j.a = at(call, p->a);
        j.y = at(call, p->y);
    }
    if (fix_rows(&j)) {
        int64_t pair = 2 * call->k->gemm.nbits_lanes;
        int64_t columns = ort_max_i64(TASK_BYTES / (4 * s->packed.row_words) / pair, 1) * pair;
        ort_call_range(call, s->n, columns, task_product, &j);
    } else {
        if (p->cut)
            ort_call_range(call, p->m, ort_max_i64(FIX_BYTES / (4 * s->k), 1), task_cut, &j);
        ort_call_range(call, s->n, panel_columns(call->k), task_panels, &j);
    }
    if (half)
        ort_call_narrow(call, j.y, y);
    return ORT_OK;
}

static const ort_op_impl nbits_impl = {
    .state = sizeof(nbits_state), .bind = nbits_bind, .rule = "[A..,_] -> [A..,N]",
    .infer = nbits_infer, .prepare = nbits_prepare, .shape = nbits_shape, .run = nbits_run,
    .cost = nbits_cost,
};

const ort_op ort_ops_nbits[] = {
    {MS, "MatMulNBits", 1,
     "A:T1,B:T2,scales:T1,zero_points?:T3,g_idx?:T4,bias?:T1 -> Y:T1",
     "T1:f32,f16,bf16 T2:u8 T3:u8,f16,f32,bf16 T4:i32",
     "K:i! N:i! accuracy_level:i=0 bits:i=4 block_size:i! weight_prepacked:i=0", 0, &nbits_impl},
    {0},
};
