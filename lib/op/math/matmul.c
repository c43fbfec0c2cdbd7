/* matmul.c - MatMul, Gemm and their fused forms (com.microsoft FusedMatMul, FusedGemm; Linear of
 * sessions).
 *
 * All reduce to one problem: a batch of C = act(alpha * A * B + beta * C) with strides, described
 * once per set of shapes (op/shared/matmul_shape.h). f32 runs on packed panels; f16 and bf16 are
 * widened to f32 and rounded once, large constants of theirs stay packed in 16 bits; f64 has its
 * own tiles; integers are summed modulo 2^bits.
 */
#include <string.h>

#include "op/half_weight.h"
#include "op/math/matmul.h"

/* ---- inference */

/* ---- prepare */

typedef struct constant_b { /* how a constant B is packed */
    const ort_tensor *b;
    int64_t n, k, row, column, count; /* count: matrices */
    ort_dtype form;
} constant_b;

enum { PART_ROWS = 64, PART_PANELS = 4 };

typedef struct pack_job {
    const ort_kernels *k;
    const constant_b *c;
    const float *from;
    float *packed;
} pack_job;

/* Some rows, where they lie in one piece each, or some panels. */
static void task_pack(void *arg, size_t task, int thread)
{
    const pack_job *j = arg;
    const constant_b *c = j->c;
    const int64_t nr = j->k->gemm.nr;
    if (c->column == 1) {
        const int64_t first = (int64_t)task * PART_ROWS;
        ort_matrix_stream_f32(j->k, ort_min_i64(PART_ROWS, c->k - first), c->n,
                              j->from + first * c->row, c->row, 1, c->k, j->packed + first * nr);
    } else {
        const int64_t first = (int64_t)task * PART_PANELS * nr;
        ort_matrix_stream_f32(j->k, c->k, ort_min_i64(PART_PANELS * nr, c->n - first),
                              j->from + first * c->column, c->row, c->column, c->k,
                              j->packed + first * c->k);
    }
}

static void pack_floats(const ort_prep *p, const constant_b *c, const float *from, float *packed,
                        size_t bytes)
{
    pack_job job = {p->k, c, from, packed};
    const int64_t all = c->column == 1 ? c->k : c->n;
    const int64_t part = c->column == 1 ? PART_ROWS : PART_PANELS * p->k->gemm.nr;
    ort_prep_fill(p, bytes, (size_t)((all + part - 1) / part), task_pack, &job);
}

static void pack_matrices(const ort_prep *p, const constant_b *c, const void *from, char *packed,
                          size_t bytes)
{
    for (int64_t i = 0; i < c->count; i++, packed += bytes) {
        int64_t first = i * c->k * c->n;
        if (c->form == ORT_DTYPE_DOUBLE)
            ort_matrix_pack_f64(p->k, c->k, c->n, (const double *)from + first, c->row, c->column,
                                (double *)(void *)packed);
        else if (c->form == ORT_DTYPE_FLOAT)
            pack_floats(p, c, (const float *)from + first, (float *)(void *)packed, bytes);
        else
            ort_matrix_pack_16(p->k, c->k, c->n, (const uint16_t *)from + first, c->row, c->column,
                               (uint16_t *)(void *)packed);
    }
}

static ort_status fill_packed(const ort_prep *p, const constant_b *c, char *packed, size_t bytes,
                              ort_error *err)
{
    float *widened = NULL;
    if (c->form != c->b->dtype) {
        widened = malloc((size_t)ort_tensor_count(c->b) * sizeof(float));
        if (!widened)
            return ort_error_memory(err, (size_t)ort_tensor_count(c->b) * sizeof(float));
        ort_tensor_to_f32(c->b, 0, ort_tensor_count(c->b), widened);
    }
    pack_matrices(p, c, widened ? widened : c->b->data, packed, bytes);
    free(widened);
    return ORT_OK;
}

/* Bytes of one matrix, and the name of the packed form; NULL: too large. */
static const char *packed_form(const ort_prep *p, const constant_b *c, size_t *bytes)
{
    switch (c->form) {
    case ORT_DTYPE_DOUBLE:
        return ort_matrix_packed_bytes_f64(p->k, c->k, c->n, bytes) ? "panels" : NULL;
    case ORT_DTYPE_FLOAT:
        return ort_matrix_packed_bytes_f32(p->k, c->k, c->n, bytes) ? "panels" : NULL;
    case ORT_DTYPE_FLOAT16:
        return ort_matrix_packed_bytes_16(p->k, c->k, c->n, bytes) ? "f16 panels" : NULL;
    default:
        return ort_matrix_packed_bytes_16(p->k, c->k, c->n, bytes) ? "bf16 panels" : NULL;
    }
}

static ort_status pack_constant(ort_prep *p, matmul_state *state, ort_error *err)
{
    constant_b c = {.b = ort_prep_constant(p, 1)};
    if (!c.b || c.b->shape.rank < 2 || ort_tensor_count(c.b) == 0)
        return ORT_OK;
    int64_t stride[ORT_MAX_RANK], dim[ORT_MAX_RANK];
    int rank, n_axis = c.b->shape.rank - 1, k_axis = c.b->shape.rank - 2;
    ort_matmul_strides(&c.b->shape, state->trans_b, state->trans_batch_b, &c.row, &c.column, stride,
                       dim, &rank);
    if (state->trans_batch_b && c.b->shape.rank > 2)
        return ORT_OK; /* rare: packed at each run */
    c.n = c.b->shape.dim[state->trans_b ? k_axis : n_axis];
    c.k = c.b->shape.dim[state->trans_b ? n_axis : k_axis];
    c.count = ort_shape_count_range(&c.b->shape, 0, rank);
    bool stays = c.b->dtype == ORT_DTYPE_DOUBLE || ort_half_is_kept(c.b);
    c.form = stays ? c.b->dtype : ORT_DTYPE_FLOAT;
    size_t bytes = 0, total = 0;
    const char *kind = packed_form(p, &c, &bytes);
    if (!kind || !ort_mul_size(bytes, (size_t)c.count, &total))
        return ort_error_memory(err, SIZE_MAX);
    bool fill;
    char *packed = ort_prep_pack(p, kind, 1u << 1, total, &fill);
    if (!packed)
        return ort_error_memory(err, total);
    state->packed = packed;
    state->packed_bytes = bytes;
    state->form = c.form;
    ort_prep_absorb(p, 1);
    const size_t notes = c.count == 1 && c.form == ORT_DTYPE_FLOAT
                             ? ort_matrix_notes_f32(p->k, c.k, c.n)
                             : 0;
    state->notes = notes ? ort_arena_alloc_aligned(p->arena, notes, 64, 1) : NULL;
    if (notes && !state->notes)
        return ort_error_memory(err, notes);
    return fill ? fill_packed(p, &c, packed, bytes, err) : ORT_OK;
}

enum { MATMUL, GEMM };

static const ort_bind matmul_bind[] = {
    ORT_BIND_AS(matmul_state, trans_a, "transA", ORT_MAYBE),
    ORT_BIND_AS(matmul_state, trans_b, "transB", ORT_MAYBE),
    ORT_BIND_AS(matmul_state, trans_batch_a, "transBatchA", ORT_MAYBE),
    ORT_BIND_AS(matmul_state, trans_batch_b, "transBatchB", ORT_MAYBE),
    ORT_BIND(matmul_state, alpha, ORT_ELSE(1)),
    ORT_BIND(matmul_state, beta, ORT_ELSE(1)),
    ORT_BIND(matmul_state, activation, ORT_MAYBE), ORT_BIND_EPILOGUE(matmul_state), {0}};

static ort_status matmul_prepare(ort_prep *p, ort_error *err)
{
    matmul_state *state = p->state;
    state->gemm = p->op->variant == GEMM;
    state->epilogue.alpha = state->alpha;
    switch (ort_prep_dtype(p, 0)) {
    case ORT_DTYPE_FLOAT:
    case ORT_DTYPE_FLOAT16:
    case ORT_DTYPE_BFLOAT16:
        return pack_constant(p, state, err);
    case ORT_DTYPE_DOUBLE:
        if (state->activation.length == 0)
            return pack_constant(p, state, err);
        break;
    case ORT_DTYPE_INT32:
    case ORT_DTYPE_UINT32:
    case ORT_DTYPE_INT64:
    case ORT_DTYPE_UINT64:
        if (state->activation.length == 0)
            return ORT_OK;
        break;
    default:
        break;
    }
    return ort_prep_unsupported_dtype(p, 0, err);
}

/* ---- shape */

static size_t take(size_t *total, size_t bytes)
{
    size_t at = *total;
    if (bytes > SIZE_MAX / 4 || at > SIZE_MAX / 4)
        *total = SIZE_MAX / 2;
    else
        *total = at + ort_round_up(bytes, 64);
    return at;
}

static bool floats_packed(const matmul_state *state)
{
    return !state->form || state->form == ORT_DTYPE_FLOAT;
}

static ort_status common_shape(ort_shaping *s, ort_error *err)
{
    const matmul_state *state = s->state;
    const ort_tensor *a = s->in[0], *b = s->in[1], *y = s->out[0];
    const ort_tensor *c = s->in_count > 2 ? s->in[2] : NULL;
    matmul_plan *plan = ort_arena_alloc(s->arena, sizeof *plan);
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    s->plan_state = plan;
    ORT_TRY(ort_matmul_describe(&a->shape, &b->shape, state, plan, err));
    if (plan->m * plan->n * plan->batch != ort_tensor_count(y))
        return ort_error_set(err, ORT_ERROR_MODEL, "the output has another shape than the product");
    ort_shape broadcast;
    if (c && (!ort_shape_broadcast(&y->shape, &c->shape, &broadcast) ||
              !ort_shape_equal(&broadcast, &y->shape)))
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "C doesn't broadcast to the shape of the product");
    size_t total = 0, element = a->dtype == ORT_DTYPE_DOUBLE ? 8 : 4;
    bool half = a->dtype == ORT_DTYPE_FLOAT16 || a->dtype == ORT_DTYPE_BFLOAT16;
    bool floats = half || element == 8 || a->dtype == ORT_DTYPE_FLOAT;
    if (!floats)
        return ORT_OK;
    size_t mk = (size_t)plan->m * (size_t)plan->k, mn = (size_t)plan->m * (size_t)plan->n;
    if (half) {
        plan->a_wide = take(&total, (size_t)ort_tensor_count(a) * 4);
        plan->y_wide = take(&total, (size_t)ort_tensor_count(y) * 4);
        if (!state->packed)
            plan->b_wide = take(&total, (size_t)ort_tensor_count(b) * 4);
    }
    if (c)
        plan->c_space = take(&total, (element == 8 ? mn : (size_t)ort_max_i64(ort_tensor_count(c),
                                                                             plan->n)) * element);
    plan->dots = element == 4 && !state->packed && plan->a_col == 1 && plan->b_row == 1 &&
                 (plan->m <= 2 || plan->n <= 2);
    size_t packed = 0;
    if (!state->packed && !plan->dots) {
        if (element == 8) {
            if (!ort_matrix_packed_bytes_f64(s->k, plan->k, plan->n, &packed))
                return ort_error_memory(err, SIZE_MAX);
        } else {
            packed = ort_matrix_space_f32(s->k, plan->m, plan->n, plan->k, plan->b_col);
        }
    }
    const bool panels = packed || (state->packed && floats_packed(state));
    size_t split = 0;
    if (element == 4 && !plan->dots) {
        plan->tiles = ort_matrix_tiles_f32(s->k, plan->m, plan->n, plan->k, panels);
        split = ort_matrix_split_f32(s->k, plan->m, plan->n, plan->k, panels);
        plan->on_tiles = plan->tiles > 0;
        if (state->notes && !plan->on_tiles)
            plan->tiles = ort_matrix_fewer_f32(s->k, plan->m, plan->n, plan->k);
    }
    double macs = (double)plan->m * (double)plan->n * (double)plan->k;
    plan->per_batch = plan->batch > 1 && (macs < 4e6 || plan->batch >= 16);
    size_t rows = plan->a_col == 1 ? 0 : ort_round_up(mk * element, 64);
    size_t inner = ort_round_up(packed, 64);
    plan->row_bytes = rows;
    plan->split = rows + inner;
    inner += split;
    s->thread_bytes = plan->tiles;
    if (plan->per_batch)
        s->thread_bytes += rows + inner;
    else
        plan->shared = take(&total, rows + inner);
    if (total >= SIZE_MAX / 2)
        return ort_error_memory(err, total);
    s->workspace_bytes = total;
    return ORT_OK;
}

static void float_cost(const ort_infer *x, ort_cost *cost)
{
    const matmul_plan *plan = x->plan_state;
    ort_matmul_cost(x, cost);
    cost->on_tiles = plan && plan->on_tiles;
}

static const ort_op_impl matmul_impl = {
    .state = sizeof(matmul_state), .bind = matmul_bind, .infer = ort_matmul_infer,
    .prepare = matmul_prepare, .shape = common_shape, .run = ort_matmul_run,
    .cost = float_cost,
};
static const ort_op_impl gemm_impl = {
    .state = sizeof(matmul_state), .bind = matmul_bind, .infer = ort_gemm_infer,
    .prepare = matmul_prepare, .shape = common_shape, .run = ort_matmul_run,
    .cost = float_cost,
};

#define PACKS (ORT_TRAIT_PACKS_UNALIGNED | ORT_TRAIT_PACKS_HALF)

const ort_op ort_ops_matmul[] = {
    {ONNX, "Gemm", 6, "A:T,B:T,C:T -> Y:T", "T:F",
     "alpha:f=1 beta:f=1 broadcast:i=0 transA:i=0 transB:i=0", PACKS,
     &gemm_impl, .variant = GEMM},
    {ONNX, "Gemm", 7, "A:T,B:T,C:T -> Y:T", "T:F", "alpha:f=1 beta:f=1 transA:i=0 transB:i=0",
     PACKS, &gemm_impl, .history = "9:T+i32,i64,u32,u64", .variant = GEMM},
    {ONNX, "Gemm", 11, "A:T,B:T,C?:T -> Y:T", "T:F,u32,u64,i32,i64",
     "alpha:f=1 beta:f=1 transA:i=0 transB:i=0", PACKS,
     &gemm_impl, .history = "13:T+bf16", .variant = GEMM},
    {ONNX, "MatMul", 1, "A:T,B:T -> Y:T", "T:F", "", PACKS,
     &matmul_impl, .history = "9:T+i32,i64,u32,u64 13:T+bf16"},
    {MS, "FusedMatMul", 1, "A:T,B:T -> Y:T", "T:F,bf16",
     "alpha:f=1 transA:i=0 transB:i=0 transBatchA:i=0 transBatchB:i=0", PACKS,
     &matmul_impl},
    {MS, "FusedGemm", 1, "A:T,B:T,C?:T -> Y:T", "T:F,u32,u64,i32,i64",
     "activation:s activation_alpha:f activation_beta:f activation_gamma:f alpha:f=1 beta:f=1 "
     "transA:i=0 transB:i=0", PACKS,
     &gemm_impl, .variant = GEMM},
    {MS, "TransposeMatMul", 1, "A:T,B:T -> Y:T", "T:F,bf16", "alpha:f=1 transA:i=0 transB:i=0",
     PACKS, &matmul_impl},
    /* C: a row of as many elements as columns. Made by provider/cpu/linear_layer.c. */
    {ORT_INTERNAL, "Linear", 1, "A:T,B:T,C?:T -> Y:T", "T:f32", "activation:s", PACKS,
     &matmul_impl},
    {0},
};
