/* nbits.c - com.microsoft MatMulNBits: A[m][K] times a weight of 2 to 8 bits in blocks along K; and
 * several of them that read the same rows, which are put in fixed point once
 * (provider/cpu/shared_rows.c).
 *
 * B is [N][blocks][bytes of block * bits] as the model stores it. Constants are packed into groups
 * of columns (ort_nbits), of 2, 4 or 8 bits; what is between goes into the next of them. Rows of A
 * multiply those straight, in fixed point: of one byte an element where accuracy_level is 4, of
 * three otherwise. Many rows take a tier's tiles where it has them: rounded to bfloat16 at level 4,
 * within the bound of one byte, else as floats (nbits_tiles.c). Another B, rows that don't go into
 * fixed point, and many rows of three bytes where that is quicker (pays): a task widens its columns
 * of B to float panels, as much of k at a time as a call takes, and multiplies.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "op/quant/nbits.h"
#include "op/quant/nbits_tiles.h"
#include "op/shared/halves.h"
#include "op/shared/matrix.h"

enum { PARTS = 3, /* products that share their rows, at most */
       TASK_BYTES = 64 << 10, /* of packed weights */
       FIX_BYTES = 16 << 10,  /* of A */
       CALL_PARTS = 4,        /* of kc in a call */
       CUT_ROWS = 16,         /* of A, that are worth a copy, */
       FAR_STEP = 512,        /* floats from one to the next, */
       NEAR_ROWS = 8,         /* where tiles have no more */
       TASK_WORK = 4 << 20,   /* multiply-adds of many rows */
       THREAD_TASKS = 4,      /* of columns, that are enough to share evenly, */
       THREAD_ROWS = 32,      /* else rows that a thread has for its own */
       ROW_PAIRS = 2,         /* of groups that kernels of one row take at a time */
       PAIRS_ROWS = 12,       /* of three bytes, that pay where bytes are multiplied by pairs */
       SHORT_RUN = 32, MANY_ROWS = 32, FEW_COLUMNS = 1024 }; /* for which floats may pay */

static const ort_bind nbits_bind[] = {
    ORT_BIND_AS(ort_nbits_state, k, "K", ORT_WITHIN(1, INT32_MAX)),
    ORT_BIND_AS(ort_nbits_state, n, "N", ORT_WITHIN(1, INT32_MAX)),
    ORT_BIND(ort_nbits_state, bits), ORT_BIND_AS(ort_nbits_state, block, "block_size"),
    ORT_BIND_AS(ort_nbits_state, accuracy, "accuracy_level"),
    ORT_BIND_AS(ort_nbits_state, prepacked, "weight_prepacked"), {0}};

typedef struct nbits_plan {
    int64_t m;
    bool fixes;        /* rows of A are put in fixed point, */
    bool rounds;       /* or rounded for the kernel of many rows; */
    bool tiles;        /* or split for tiles of floats */
    bool again;        /* in the fixed point of the first part */
    int64_t fixed_row; /* words of a row of A in fixed point */
    size_t a, y, scale, zero, bias, sums, fixed, fits, units, pieces, split;
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

static ort_status check_sizes(const ort_nbits_state *s, const ort_tensor *b,
                              const ort_tensor *scale, const ort_tensor *zero,
                              const ort_tensor *bias, ort_error *err)
{
    int64_t blob = ort_nbits_code_bytes(s->block, s->bits), blocks = s->n * s->blocks;
    int64_t zero_bytes = s->n * ort_nbits_code_bytes(s->blocks, s->bits);
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

static ort_status floats_of_constant(ort_prep *p, int slot, int64_t count,
                                     const ort_nbits_state *s, const float **out, ort_error *err)
{
    const int input = s->at + slot;
    const ort_tensor *t = ort_prep_constant(p, input);
    if (!t)
        return ORT_OK;
    if (t->dtype == ORT_DTYPE_FLOAT && slot != ORT_NBITS_ZERO) {
        *out = t->data;
        return ORT_OK;
    }
    bool fill;
    const char *kind = slot == ORT_NBITS_SCALES ? "scales"
                       : slot == ORT_NBITS_ZERO ? "zeros"
                                                : "bias";
    float *to = ort_prep_pack(p, kind, 1u << input, (size_t)count * sizeof(float), &fill);
    if (!to)
        return ort_error_memory(err, (size_t)count * sizeof(float));
    if (fill && slot == ORT_NBITS_ZERO)
        ort_nbits_unpack_zeros(s, t, to);
    else if (fill)
        ort_tensor_to_f32(t, 0, count, to);
    ort_prep_absorb(p, input);
    *out = to;
    return ORT_OK;
}

static ort_status prepare_part(ort_prep *p, ort_nbits_state *s, ort_error *err)
{
    if (s->bits < 2 || s->bits > 8)
        return ort_prep_fail(p, err, "attribute bits is %lld, needs 2 to 8", (long long)s->bits);
    if (s->block < 16 || s->block > (1 << 20) || (s->block & (s->block - 1)))
        return ort_prep_fail(p, err, "attribute block_size is %lld, needs a power of two from 16 "
                             "on", (long long)s->block);
    s->reordered = ort_prep_dtype(p, s->at + ORT_NBITS_GROUP) != ORT_DTYPE_UNDEFINED;
    if (s->prepacked)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "weight_prepacked is another program's private layout of the weight");
    s->blocks = (s->k + s->block - 1) / s->block;
    s->zero_is_middle = ort_prep_dtype(p, s->at + ORT_NBITS_ZERO) == ORT_DTYPE_UNDEFINED;
    ort_dtype a = ort_prep_dtype(p, 0);
    if (a != ORT_DTYPE_FLOAT && a != ORT_DTYPE_FLOAT16 && a != ORT_DTYPE_BFLOAT16)
        return ort_prep_unsupported_dtype(p, 0, err);
    ORT_TRY(check_sizes(s, ort_prep_constant(p, s->at + ORT_NBITS_B),
                        ort_prep_constant(p, s->at + ORT_NBITS_SCALES),
                        ort_prep_constant(p, s->at + ORT_NBITS_ZERO),
                        ort_prep_constant(p, s->at + ORT_NBITS_BIAS), err));
    ORT_TRY(floats_of_constant(p, ORT_NBITS_BIAS, s->n, s, &s->bias, err));
    ORT_TRY(ort_nbits_pack(p, s, err));
    if (s->packed.words)
        return ORT_OK;
    ORT_TRY(floats_of_constant(p, ORT_NBITS_SCALES, s->n * s->blocks, s, &s->scale, err));
    return floats_of_constant(p, ORT_NBITS_ZERO, s->n * s->blocks, s, &s->zero, err);
}

static ort_status nbits_prepare(ort_prep *p, ort_error *err)
{
    ort_nbits_state *s = p->state;
    s->at = 1;
    return prepare_part(p, s, err);
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

/* k of one call in floats: as even numbers of parts of kc as can be, of as many as one takes. */
static int64_t call_depth(const ort_kernels *k, int64_t depth)
{
    const int64_t kc = k->gemm.kc, most = ort_gemm_parts(&k->gemm) > 1 ? CALL_PARTS : 1;
    const int64_t parts = (depth + kc - 1) / kc, calls = (parts + most - 1) / most;
    return (parts + calls - 1) / calls * kc;
}

/* Is a packed product of m rows quicker in fixed point than in floats? Weights of 8 bits take twice
 * as long in pairs. Three products of bytes take three quarters of the time of one of floats, and
 * what ends a run is free only where such products have units of their own: where all work on 512
 * bits shares two, it costs more than that quarter in short runs, as do rows that few columns
 * read. */
static bool pays(const ort_nbits_state *s, const ort_kernels *k, int64_t m)
{
    const ort_nbits *w = &s->packed;
    if (w->digits == 1)
        return true;
    if (k->gemm.word != 4)
        return m <= (w->bits == 8 ? PAIRS_ROWS / 2 : PAIRS_ROWS);
    return !ort_cpu_get()->avx512_shares_units || k->gemm.nbits_lanes != 16 ||
           w->run_words * 32 / w->bits > SHORT_RUN || m < MANY_ROWS || s->n > FEW_COLUMNS;
}

/* Are m rows rounded for the kernel of many? */
static bool rounds(const ort_nbits_state *s, const ort_kernels *k, int64_t m)
{
    const ort_nbits *w = &s->packed;
    return w->digits == 1 && k->gemm.nbits_rounded && m >= k->gemm.nbits_round_rows &&
           s->scales_round && !w->zero && w->run_words * 32 / w->bits >= SHORT_RUN;
}

/* first: the plan of the first part, or NULL. */
static ort_status plan_rows(const ort_nbits_state *state, ort_shaping *s, const nbits_plan *first,
                            nbits_plan *p, size_t *total, ort_error *err)
{
    const ort_nbits *w = &state->packed;
    const int64_t runs = w->row_words / w->run_words;
    p->rounds = rounds(state, s->k, p->m);
    p->tiles = w->digits == 3 && ort_nbits_tiles_pay(s->k, p->m, state->n, state->k);
    p->fixes = p->rounds || (!p->tiles && pays(state, s->k, p->m));
    if (p->tiles) {
        const size_t bytes = ort_nbits_tiles_space(s->k, p->m, state->k);
        ORT_TRY(take(total, (int64_t)(bytes / sizeof(float)), &p->split, err));
    }
    if (!p->fixes)
        return ORT_OK;
    p->fixed_row = w->digits * (w->row_words * 8 / w->bits + runs);
    if (p->rounds)
        p->fixed_row = 16 * (w->row_words / w->bits | 1);
    if (first && first->fixes && first->rounds == p->rounds && first->fixed_row == p->fixed_row) {
        p->again = true;
        p->sums = first->sums;
        p->units = first->units;
        p->fixed = first->fixed;
        p->fits = first->fits;
        return ORT_OK;
    }
    ORT_TRY(take(total, p->rounds ? 0 : p->m * runs, &p->sums, err));
    ORT_TRY(take(total, p->rounds ? 0 : p->m * runs, &p->units, err));
    ORT_TRY(take(total, p->m * p->fixed_row, &p->fixed, err));
    return take(total, p->m, &p->fits, err);
}

static const ort_tensor *shaping_in(const ort_shaping *s, int input)
{
    return input < s->in_count ? s->in[input] : NULL;
}

static ort_status shape_part(const ort_nbits_state *state, ort_shaping *s, const nbits_plan *first,
                             nbits_plan *p, size_t *total, ort_error *err)
{
    const ort_tensor *a = s->in[0];
    ORT_TRY(check_sizes(state, shaping_in(s, state->at + ORT_NBITS_B),
                        shaping_in(s, state->at + ORT_NBITS_SCALES),
                        shaping_in(s, state->at + ORT_NBITS_ZERO),
                        shaping_in(s, state->at + ORT_NBITS_BIAS), err));
    if (a->shape.rank < 1 || a->shape.dim[a->shape.rank - 1] != state->k)
        return ort_error_set(err, ORT_ERROR_MODEL, "A needs %lld columns", (long long)state->k);
    p->m = ort_shape_count_range(&a->shape, 0, a->shape.rank - 1);
    if (a->dtype != ORT_DTYPE_FLOAT) {
        ORT_TRY(take(total, p->m * state->k, &p->a, err));
        ORT_TRY(take(total, p->m * state->n, &p->y, err));
    }
    int64_t count = state->n * state->blocks;
    if (!state->scale && !state->packed.words)
        ORT_TRY(take(total, count, &p->scale, err));
    if (!state->zero && !state->zero_is_middle && !state->packed.words)
        ORT_TRY(take(total, count, &p->zero, err));
    if (!state->bias)
        ORT_TRY(take(total, state->n, &p->bias, err));
    if (state->packed.words)
        ORT_TRY(plan_rows(state, s, first, p, total, err));
    p->cut = !p->fixes && !p->tiles && p->m >= CUT_ROWS && state->k > call_depth(s->k, state->k) &&
             (s->k->gemm.mr > NEAR_ROWS || state->k % FAR_STEP == 0);
    if (p->cut)
        ORT_TRY(take(total, p->m * state->k, &p->pieces, err));
    int64_t columns = panel_columns(s->k) + s->k->gemm.nr;
    size_t scratch = (size_t)(columns * call_depth(s->k, state->k)) * sizeof(float);
    if (p->tiles)
        scratch = ort_nbits_tiles_scratch(s->k);
    if (s->thread_bytes < scratch)
        s->thread_bytes = scratch;
    s->workspace_bytes = *total;
    return ORT_OK;
}

static ort_status shape_parts(const ort_nbits_state *part, int parts, ort_shaping *s,
                              ort_error *err)
{
    nbits_plan *p = ort_arena_alloc(s->arena, (size_t)parts * sizeof *p);
    size_t total = 0;
    if (!p)
        return ort_error_memory(err, (size_t)parts * sizeof *p);
    s->plan_state = p;
    for (int i = 0; i < parts; i++)
        ORT_TRY(shape_part(part + i, s, i ? p : NULL, p + i, &total, err));
    return ORT_OK;
}

static ort_status nbits_shape(ort_shaping *s, ort_error *err)
{
    return shape_parts(s->state, 1, s, err);
}

/* ---- run */

typedef struct nbits_job {
    const ort_call *call;
    const ort_nbits_state *s;
    const nbits_plan *p;
    const uint8_t *b;
    const float *a, *scale, *zero, *bias;
    const int32_t *group; /* [K] of g_idx, or NULL */
    float *y;
    ort_nbits w;
    int64_t parts, columns, column_tasks; /* of rows; of a task, and how many */
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
    for (int64_t row = first; row < end; row++) {
        const float *a = j->a + row * j->s->k;
        int32_t *to = fixed + row * j->p->fixed_row;
        fits_of(j)[row] = j->p->rounds ? j->call->k->gemm.nbits_round(j->s->k, &j->w, a, to)
                                       : j->call->k->gemm.nbits_fix(j->s->k, &j->w, a, to,
                                                                    units + row * runs,
                                                                    sums + row * runs);
    }
}

/* Rows of A in fixed point; false when floats pay more, or one of them doesn't go into it. there:
 * were the first part's rows put there? */
static bool fix_rows(nbits_job *j, bool *there)
{
    const ort_nbits_state *s = j->s;
    ort_nbits *w = &j->w;
    if (!j->p->fixes)
        return false;
    w->rows = j->p->m;
    w->sums = at(j->call, j->p->sums);
    w->units = at(j->call, j->p->units);
    w->fixed = (const int32_t *)(const void *)at(j->call, j->p->fixed);
    w->fixed_row = j->p->fixed_row;
    if (!j->p->again || !*there)
        ort_call_range(j->call, w->rows, ort_max_i64(FIX_BYTES / (4 * s->k), 1), task_fix, j);
    *there = true;
    for (int64_t row = 0; row < w->rows; row++)
        if (!fits_of(j)[row])
            return false;
    return true;
}

/* Some columns of a part of the rows: a row's numbers are the same whatever is beside it. */
static void task_product(void *arg, size_t task, int thread)
{
    const nbits_job *j = arg;
    const int64_t part = (int64_t)task / j->column_tasks;
    const int64_t column = (int64_t)task % j->column_tasks * j->columns;
    const int64_t end = ort_min_i64(column + j->columns, j->s->n);
    const int64_t row = j->w.rows * part / j->parts, runs = j->w.row_words / j->w.run_words;
    ort_nbits w = j->w;
    w.rows = j->w.rows * (part + 1) / j->parts - row;
    w.fixed += row * w.fixed_row;
    w.units += row * runs;
    w.sums += row * runs;
    w.y += row * w.y_row;
    if (j->p->rounds)
        j->call->k->gemm.nbits_rounded(column, end, &w);
    else
        j->call->k->gemm.nbits(column, end, &w);
}

/* Columns of a task, of so many rows: pairs of groups, as even as can be, of so many bytes of
 * weights for few rows, of so much work for many. */
static int64_t columns_of_task(const nbits_job *j, int64_t rows)
{
    const int64_t pair = 2 * j->call->k->gemm.nbits_lanes, all = (j->s->n + pair - 1) / pair;
    const int64_t bytes = 4 * j->w.row_words * pair, work = rows * j->s->k * pair;
    const int64_t least = j->p->m == 1 ? ROW_PAIRS : 1;
    const int64_t most = ort_max_i64(ort_min_i64(TASK_BYTES / bytes, TASK_WORK / work), least);
    const int64_t tasks = (all + most - 1) / most;
    return (all + tasks - 1) / tasks * pair;
}

/* Columns alone where there are enough of them. A few don't come out even, and narrow weights are
 * one task: there each thread has its own rows, which it finds in its caches in the steps behind,
 * and reads all weights. */
static void cut_product(nbits_job *j)
{
    const int64_t width = ort_call_width(j->call), n = j->s->n;
    j->parts = 1;
    j->columns = columns_of_task(j, j->p->m);
    j->column_tasks = (n + j->columns - 1) / j->columns;
    if (width == 1 || j->column_tasks >= THREAD_TASKS * width)
        return;
    j->parts = ort_max_i64(ort_min_i64(width, j->p->m / THREAD_ROWS), 1);
    j->columns = columns_of_task(j, (j->p->m + j->parts - 1) / j->parts);
    j->column_tasks = (n + j->columns - 1) / j->columns;
}

/* ---- run, in floats */

/* k in [k0, k0 + depth) of one column of B. */
static void widen_column(const nbits_job *j, int64_t column, int64_t k0, int64_t depth, float *out)
{
    const ort_nbits_state *s = j->s;
    const int64_t blob = ort_nbits_code_bytes(s->block, s->bits);
    const uint8_t *q = j->b + column * s->blocks * blob;
    const float *scale = j->scale + column * s->blocks;
    const float *zeros = j->zero ? j->zero + column * s->blocks : NULL;
    for (int64_t kk = k0, end; kk < k0 + depth; kk = end) {
        const int64_t in = kk / s->block, of = j->group ? j->group[kk] : in;
        float zero = zeros ? zeros[of] : (float)(1u << (s->bits - 1));
        end = j->group ? kk + 1 : ort_min_i64((in + 1) * s->block, k0 + depth);
        for (int64_t i = kk; i < end; i++) {
            float code = (float)ort_nbits_code_at(q + in * blob, i - in * s->block, s->bits);
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

/* Pieces of all rows of A, as long as a call, one behind the other: rows that are a power of two
 * apart would meet in few lines of the first-level cache. */
static void task_cut(void *arg, int64_t first, int64_t end, int thread)
{
    const nbits_job *j = arg;
    const int64_t k = j->s->k, most = call_depth(j->call->k, k), m = j->p->m;
    float *pieces = at(j->call, j->p->pieces);
    for (int64_t k0 = 0; k0 < k; k0 += most) {
        const int64_t depth = ort_min_i64(most, k - k0);
        for (int64_t row = first; row < end; row++)
            memcpy(pieces + k0 * m + row * depth, j->a + row * k + k0,
                   (size_t)depth * sizeof *pieces);
    }
}

/* Words of the columns that come next, which are read again only when this task is done. */
static void bring_words(const nbits_job *j, int64_t first, int64_t end)
{
    const ort_nbits *w = &j->w;
    const int64_t line = 64 / sizeof *w->words;
    if (!w->words)
        return;
    for (int64_t i = first * w->row_words; i < ort_min_i64(end, w->n) * w->row_words; i += line)
        __builtin_prefetch(w->words + i, 0, 2);
}

static void task_panels(void *arg, int64_t first, int64_t end, int thread)
{
    const nbits_job *j = arg;
    const ort_nbits_state *s = j->s;
    const ort_gemm_kernels *g = &j->call->k->gemm;
    const int64_t n = end - first, most = call_depth(j->call->k, s->k);
    float *panels = ort_call_scratch(j->call, thread);
    float *columns = panels + panel_columns(j->call->k) * most;
    const float *bias = j->bias ? j->bias + first : NULL;
    /* Sums of each width in the same order where another machine has to give the same bits. */
    const int64_t part = g->whole_rows ? 0 : g->kc;
    for (int64_t k0 = 0; k0 < s->k; k0 += most) {
        const int64_t depth = ort_min_i64(most, s->k - k0);
        widen_panels(j, first, n, k0, depth, columns, panels);
        if (k0 == 0)
            bring_words(j, end, end + n);
        const bool cut = j->p->cut;
        ort_tile_f32 t = {.a = cut ? at(j->call, j->p->pieces) + k0 * j->p->m : j->a + k0,
                          .lda = cut ? depth : s->k, .b = panels, .b_step = g->nr,
                          .b_panel = depth * g->nr, .c = j->y + first, .ldc = s->n,
                          .add = k0 ? j->y + first : bias, .ldadd = k0 ? s->n : 0, .alpha = 1.0f,
                          .lo = -INFINITY, .hi = INFINITY, .part = depth > part ? part : 0};
        g->f32(j->p->m, n, depth, &t);
    }
}

static void fill_parameters(nbits_job *j, const ort_call *call)
{
    const ort_nbits_state *s = j->s;
    const ort_tensor *scale = ort_call_in(call, s->at + ORT_NBITS_SCALES);
    const ort_tensor *zero = ort_call_in(call, s->at + ORT_NBITS_ZERO);
    const ort_tensor *bias = ort_call_in(call, s->at + ORT_NBITS_BIAS);
    j->scale = s->scale;
    j->zero = s->zero;
    j->bias = s->bias;
    if (!j->scale && !j->w.words) {
        ort_tensor_to_f32(scale, 0, s->n * s->blocks, at(call, j->p->scale));
        j->scale = at(call, j->p->scale);
    }
    if (!j->zero && zero && !j->w.words) {
        ort_nbits_unpack_zeros(s, zero, at(call, j->p->zero));
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
    const ort_nbits_state *s = j->s;
    const ort_tensor *groups = s->reordered ? ort_call_in(j->call, s->at + ORT_NBITS_GROUP) : NULL;
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

static ort_status run_part(ort_call *call, const ort_nbits_state *s, const nbits_plan *p,
                           ort_tensor *y, bool *there, ort_error *err)
{
    const ort_tensor *a = ort_call_in(call, 0);
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    nbits_job j = {.call = call, .s = s, .p = p, .b = ort_call_in(call, s->at + ORT_NBITS_B)->data,
                   .a = a->data, .y = y->data, .w = s->packed};
    bool half = a->dtype != ORT_DTYPE_FLOAT;
    ORT_TRY(check_groups(&j, err));
    fill_parameters(&j, call);
    j.w.bias = j.bias;
    j.w.y_row = s->n;
    if (half) {
        ort_call_widen(call, a, at(call, p->a));
        j.a = at(call, p->a);
        j.y = at(call, p->y);
    }
    j.w.y = j.y;
    if (fix_rows(&j, there)) {
        cut_product(&j);
        ort_call_parallel(call, (size_t)(j.parts * j.column_tasks), task_product, &j);
    } else if (p->tiles) {
        ort_nbits_product product = {.m = p->m, .k = s->k, .a = j.a, .w = &j.w,
                                     .space = at(call, p->split)};
        ort_nbits_tiles_multiply(call, &product);
    } else {
        if (p->cut)
            ort_call_range(call, p->m, ort_max_i64(FIX_BYTES / (4 * s->k), 1), task_cut, &j);
        ort_call_range(call, s->n, panel_columns(call->k), task_panels, &j);
    }
    if (half)
        ort_call_narrow(call, j.y, y);
    return ORT_OK;
}

static ort_status nbits_run(ort_call *call, ort_error *err)
{
    bool there = false;
    return run_part(call, call->state, call->plan_state, ort_call_out(call, 0), &there, err);
}

/* ---- products that share their rows */

typedef struct shared_state {
    int64_t k, block, bits, accuracy;
    int parts;
    ort_nbits_state part[PARTS];
} shared_state;

static const ort_bind shared_bind[] = {
    ORT_BIND_AS(shared_state, k, "K", ORT_WITHIN(1, INT32_MAX)), ORT_BIND(shared_state, bits),
    ORT_BIND_AS(shared_state, block, "block_size"),
    ORT_BIND_AS(shared_state, accuracy, "accuracy_level"), {0}};

static void shared_cost(const ort_infer *x, ort_cost *cost)
{
    cost->macs = 0;
    for (int i = 0; i < x->out_count; i++) {
        const ort_type *y = &x->out[i].type;
        double macs = (double)ort_node_attr_int(x->node, "K");
        for (int d = 0; d < y->rank; d++)
            macs *= ort_dim_known(y->dim[d]) ? (double)y->dim[d].size : 0;
        cost->macs += y->rank > 0 ? macs : 0;
    }
    cost->of_bytes = ort_node_attr_int(x->node, "accuracy_level") == 4;
}

static ort_status shared_prepare(ort_prep *p, ort_error *err)
{
    shared_state *s = p->state;
    for (s->parts = 0; s->parts < p->out_count && s->parts < PARTS; s->parts++) {
        const int at = 1 + s->parts * ORT_NBITS_INPUTS;
        const ort_tensor *b = ort_prep_constant(p, at + ORT_NBITS_B);
        if (!b || b->shape.rank < 1)
            return ort_prep_fail(p, err, "weight %d isn't constant", s->parts);
        ort_nbits_state *part = s->part + s->parts;
        *part = (ort_nbits_state){.at = at, .k = s->k, .n = b->shape.dim[0], .block = s->block,
                                  .bits = s->bits, .accuracy = s->accuracy};
        ORT_TRY(prepare_part(p, part, err));
    }
    return ORT_OK;
}

static ort_status shared_shape(ort_shaping *s, ort_error *err)
{
    const shared_state *state = s->state;
    return shape_parts(state->part, state->parts, s, err);
}

static ort_status shared_run(ort_call *call, ort_error *err)
{
    const shared_state *s = call->state;
    const nbits_plan *plan = call->plan_state;
    bool there = false;
    for (int i = 0; i < s->parts; i++)
        ORT_TRY(run_part(call, s->part + i, plan + i, ort_call_out(call, i), &there, err));
    return ORT_OK;
}

static const ort_op_impl shared_impl = {
    .state = sizeof(shared_state), .bind = shared_bind,
    .rule = "[A..,_] [L,_,_] - - - - [M,_,_] - - - - [N,_,_] -> [A..,L] [A..,M] [A..,N]",
    .prepare = shared_prepare, .shape = shared_shape, .run = shared_run, .cost = shared_cost,
};

static const ort_op_impl nbits_impl = {
    .state = sizeof(ort_nbits_state), .bind = nbits_bind, .rule = "[A..,_] -> [A..,N]",
    .infer = nbits_infer, .prepare = nbits_prepare, .shape = nbits_shape, .run = nbits_run,
    .cost = nbits_cost,
};

const ort_op ort_ops_nbits[] = {
    {MS, "MatMulNBits", 1,
     "A:T1,B:T2,scales:T1,zero_points?:T3,g_idx?:T4,bias?:T1 -> Y:T1",
     "T1:f32,f16,bf16 T2:u8 T3:u8,f16,f32,bf16 T4:i32",
     "K:i! N:i! accuracy_level:i=0 bits:i=4 block_size:i! weight_prepacked:i=0", 0, &nbits_impl},
    {ORT_INTERNAL, "MatMulNBitsShared", 1,
     "A:f32,B:u8,scales:f32,zero_points?:T1,g_idx?:i32,bias?:f32,B2:u8,scales2:f32,"
     "zero_points2?:T2,g_idx2?:i32,bias2?:f32,B3?:u8,scales3?:f32,zero_points3?:T3,g_idx3?:i32,"
     "bias3?:f32 -> "
     "Y:f32,Y2:f32,Y3?:f32",
     "T1:u8,f32 T2:u8,f32 T3:u8,f32",
     "K:i! accuracy_level:i=0 bits:i=4 block_size:i!", 0, &shared_impl},
    {0},
};
