/* quant_rows.c - operators of com.microsoft on quantized rows: QLinearSoftmax, QLinearWhere,
 * GatherBlockQuantized.
 *
 * 8-bit values pass through tables of 256 entries. Blocks of GatherBlockQuantized lie along one
 * axis, each with a scale and maybe a zero point.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/num.h"
#include "op/number.h"
#include "op/op.h"
#include "op/shared/codes.h"
#include "op/shared/bcast.h"

enum { GRAIN = 1 << 15, PIECE = 256, PART = 64, SIDE = 64, SIDE_ROWS = 128 };

/* ---- QLinearSoftmax
 *
 * Exponentials of the 256 differences to the largest code are whole multiples of 2^-47. So their
 * sum is exact whatever its order, and a probability becomes a code as it is computed in double.
 */

typedef struct softmax_state {
    int64_t opset, axis;
    bool has_axis;
    const struct exponentials *known; /* made when the step was prepared, or NULL */
} softmax_state;

static const ort_bind softmax_bind[] = {
    ORT_BIND(softmax_state, opset), ORT_BIND(softmax_state, axis, ORT_MAYBE),
    ORT_BIND_HAS(softmax_state, has_axis, "axis"), {0}};

typedef struct exponentials {
    ort_byte_exps exps;
    double values[256]; /* the same numbers */
} exponentials;

static void fill_exponentials(float scale, exponentials *e)
{
    for (int i = 0; i < 256; i++) {
        uint64_t whole = (uint64_t)llrint(exp((double)scale * (i - 255)) * 0x1p47);
        e->exps.whole[i] = whole;
        e->values[i] = (double)whole;
        for (int p = 0; p < ORT_BYTE_PLANES; p++)
            e->exps.planes[p][i] = (uint8_t)(whole >> 8 * p);
    }
}

static bool has_exponentials(float scale)
{
    return scale >= 0 && isfinite(scale);
}

static ort_status softmax_prepare(ort_prep *p, ort_error *err)
{
    softmax_state *state = p->state;
    ort_codes codes;
    if (!ort_codes_known(p, ort_prep_dtype(p, 0), 1, 2, &codes) || !has_exponentials(codes.scale))
        return ORT_OK;
    exponentials *e = ort_arena_alloc(p->arena, sizeof *e);
    if (!e)
        return ort_error_memory(err, sizeof *e);
    fill_exponentials(codes.scale, e);
    state->known = e;
    return ORT_OK;
}

typedef struct softmax_walk {
    const ort_call *call;
    const exponentials *e;
    const uint8_t *x;
    uint8_t *y;
    int64_t extent, inner;
    int used; /* entries of the tables, the last ones: the others are below half a code */
    uint8_t flip; /* makes unsigned codes of the row's bytes */
    ort_codes to;
} softmax_walk;

/* A row's exponentials for `n` entries of them, quantized. */
static void quantize_exponentials(const softmax_walk *w, const double *values, double factor,
                                  uint8_t *codes, int64_t n)
{
    w->call->k->codes.round_f64(values, factor, w->to.zero, w->to.is_signed, codes, (size_t)n);
}

/* Each element on its own: of rows that are much shorter than the table. */
static void softmax_short(const softmax_walk *w, const uint8_t *x, uint8_t *y, int top,
                          double factor)
{
    const double *values = w->e->values + (255 - top);
    for (int64_t i = 0; i < w->extent; i += PIECE) {
        int64_t n = ort_min_i64(PIECE, w->extent - i);
        double v[PIECE];
        for (int64_t k = 0; k < n; k++)
            v[k] = values[x[i + k] ^ w->flip];
        quantize_exponentials(w, v, factor, y + i, n);
    }
}

static void softmax_row(const softmax_walk *w, const uint8_t *x, uint8_t *y)
{
    const ort_code_kernels *kernels = &w->call->k->codes;
    int top = kernels->largest(x, (size_t)w->extent, w->flip);
    int range = kernels->largest(x, (size_t)w->extent, w->flip ^ 255) + top - 254;
    int entries = range < w->used ? range : w->used, unused = (256 - entries) / PART * PART;
    uint8_t codes[512] = {0}, turned[256];
    double sum = 0;
    for (int64_t i = 0; i < w->extent; i += 1 << 16) /* what 64 bits hold */
        sum += (double)kernels->exp_sum(x + i, (size_t)ort_min_i64(1 << 16, w->extent - i), top,
                                        w->flip, &w->e->exps);
    const double factor = 1 / (sum * (double)w->to.scale);
    if (w->extent * 2 < entries) {
        softmax_short(w, x, y, top, factor);
        return;
    }
    memset(codes, w->to.zero, (size_t)unused);
    quantize_exponentials(w, w->e->values + unused, factor, codes + unused, 256 - unused);
    const uint8_t *table = codes + (255 - top);
    if (w->flip) {
        memcpy(turned, table + 128, 128);
        memcpy(turned + 128, table, 128);
        table = turned;
    }
    kernels->look_up(x, y, (size_t)w->extent, table);
}

/* `n` rows beside each other, of few elements that lie `inner` apart: element by element, to the
 * codes that rows of their own would give. */
static void softmax_side(const softmax_walk *w, int64_t at, int64_t n)
{
    const uint8_t *x = w->x + at;
    uint8_t top[SIDE] = {0}, row[SIDE];
    uint64_t sum[SIDE] = {0};
    double factor[SIDE], v[SIDE];
    for (int64_t k = 0; k < w->extent; k++)
        for (int64_t i = 0; i < n; i++) {
            const uint8_t code = x[k * w->inner + i] ^ w->flip;
            top[i] = code > top[i] ? code : top[i];
        }
    for (int64_t k = 0; k < w->extent; k++)
        for (int64_t i = 0; i < n; i++)
            sum[i] += w->e->exps.whole[255 - top[i] + (x[k * w->inner + i] ^ w->flip)];
    for (int64_t i = 0; i < n; i++)
        factor[i] = 1 / ((double)sum[i] * (double)w->to.scale);
    for (int64_t k = 0; k < w->extent; k++) {
        for (int64_t i = 0; i < n; i++)
            v[i] = w->e->values[255 - top[i] + (x[k * w->inner + i] ^ w->flip)] * factor[i];
        quantize_exponentials(w, v, 1, row, n);
        memcpy(w->y + at + k * w->inner, row, (size_t)n);
    }
}

/* Rows [first, end), beside each other as far as they are. */
static void softmax_sides(const softmax_walk *w, int64_t first, int64_t end)
{
    for (int64_t n; first < end; first += n) {
        const int64_t in = first % w->inner;
        n = ort_min_i64(SIDE, ort_min_i64(end - first, w->inner - in));
        softmax_side(w, first / w->inner * w->extent * w->inner + in, n);
    }
}

/* Rows whose elements lie apart are copied first, unless they are short. */
static void softmax_task(void *arg, int64_t first, int64_t end, int thread)
{
    const softmax_walk *w = arg;
    if (w->inner > 1 && w->extent <= SIDE_ROWS) {
        softmax_sides(w, first, end);
        return;
    }
    for (; first < end; first++) {
        int64_t at = first / w->inner * w->extent * w->inner + first % w->inner;
        if (w->inner == 1) {
            softmax_row(w, w->x + at, w->y + at);
            continue;
        }
        uint8_t *row = ort_call_scratch(w->call, thread);
        for (int64_t k = 0; k < w->extent; k++)
            row[k] = w->x[at + k * w->inner];
        softmax_row(w, row, row);
        for (int64_t k = 0; k < w->extent; k++)
            w->y[at + k * w->inner] = row[k];
    }
}

/* From which entry on probabilities, the sum being 1 or more, may reach half a code. */
static int used_entries(const exponentials *e, float y_scale)
{
    int low = 0, high = 255;
    while (low < high) {
        int middle = (low + high) / 2;
        if (e->values[middle] * 0x1p-47 < 0.499 * (double)y_scale)
            low = middle + 1;
        else
            high = middle;
    }
    return 256 - low;
}

static ort_status softmax_shape(ort_shaping *s, ort_error *err)
{
    const softmax_state *state = s->state;
    const ort_shape *x = &s->in[0]->shape;
    for (int d = 0; d < x->rank; d++)
        s->thread_bytes = (size_t)ort_max_i64(x->dim[d], (int64_t)s->thread_bytes);
    s->workspace_bytes = state->known ? 0 : sizeof(exponentials);
    return ORT_OK;
}

static ort_status softmax_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    const softmax_state *state = call->state;
    bool flat = state->opset < 13; /* all dims from the axis on */
    int64_t axis = state->has_axis ? state->axis : flat ? 1 : -1;
    softmax_walk w = {.call = call, .e = state->known, .x = x->data,
                      .y = ort_call_out(call, 0)->data, .inner = 1,
                      .flip = x->dtype == ORT_DTYPE_INT8 ? 128 : 0};
    axis += axis < 0 ? x->shape.rank : 0;
    ORT_TRY(ort_call_need_numbers(call, (int[]){1, 2, 3, 4}, 4, err));
    if (axis < 0 || axis >= x->shape.rank)
        return ort_call_fail(call, err, "the axis is outside its input");
    ort_codes from = ort_codes_of(call, x->dtype, 1, 2);
    if (!has_exponentials(from.scale))
        return ort_call_fail(call, err, "the scale of its input is no positive number");
    w.to = ort_codes_of(call, x->dtype, 3, 4);
    w.extent = flat ? ort_shape_count_range(&x->shape, (int)axis, x->shape.rank)
                    : x->shape.dim[axis];
    if (!flat)
        w.inner = ort_shape_count_range(&x->shape, (int)axis + 1, x->shape.rank);
    if (!w.e) {
        fill_exponentials(from.scale, call->workspace);
        w.e = call->workspace;
    }
    w.used = used_entries(w.e, w.to.scale);
    int64_t rows = w.extent > 0 ? ort_tensor_count(x) / w.extent : 0;
    ort_call_range(call, rows, ort_max_i64(GRAIN / ort_max_i64(w.extent, 1), 1), softmax_task, &w);
    return ORT_OK;
}

static const ort_op_impl softmax_impl = {
    .state = sizeof(softmax_state), .bind = softmax_bind,
    .rule = "same", .prepare = softmax_prepare, .shape = softmax_shape, .run = softmax_run,
    .numbers = 0x1e,
};

/* ---- QLinearWhere */

typedef struct where_job {
    const ort_code_kernels *codes;
    ort_bcast plan;
    const uint8_t *c, *in[2]; /* in[0] where c is true */
    uint8_t *z;
    bool same[2];             /* codes stay what they are */
    uint8_t table[2][256];
} where_job;

/* n codes of a branch, or the one that stands for all of them, as codes of the result. */
static const uint8_t *branch_codes(const where_job *j, int branch, int64_t at, int64_t n,
                                   uint8_t *space)
{
    const uint8_t *from = j->in[branch] + at;
    if (j->plan.stride[1 + branch][j->plan.rank - 1] == 0)
        memset(space, j->table[branch][*from], (size_t)n);
    else if (j->same[branch])
        return from;
    else
        j->codes->look_up(from, space, (size_t)n, j->table[branch]);
    return space;
}

static void where_segment(void *arg, int64_t out, const int64_t *in, int64_t n)
{
    const where_job *j = arg;
    int last = j->plan.rank - 1;
    uint8_t space[2][PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t count = ort_min_i64(PIECE, n - i);
        const int64_t at[2] = {in[1] + i * j->plan.stride[1][last],
                               in[2] + i * j->plan.stride[2][last]};
        if (j->plan.stride[0][last] == 0) {
            int branch = j->c[in[0]] ? 0 : 1;
            memcpy(j->z + out + i, branch_codes(j, branch, at[branch], count, space[0]),
                   (size_t)count);
        } else {
            j->codes->choose(j->c + in[0] + i, branch_codes(j, 0, at[0], count, space[0]),
                             branch_codes(j, 1, at[1], count, space[1]), j->z + out + i,
                             (size_t)count);
        }
    }
}

static void where_task(void *arg, int64_t first, int64_t end, int thread)
{
    const where_job *j = arg;
    ort_bcast_walk(&j->plan, first, end - first, where_segment, arg);
}

static ort_status where_run(ort_call *call, ort_error *err)
{
    const ort_tensor *c = ort_call_in(call, 0), *x = ort_call_in(call, 1);
    const ort_tensor *y = ort_call_in(call, 4);
    ort_tensor *z = ort_call_out(call, 0);
    const ort_shape *shapes[3] = {&c->shape, &x->shape, &y->shape};
    where_job j = {.codes = &call->k->codes, .c = c->data, .in = {x->data, y->data},
                   .z = z->data};
    ORT_TRY(ort_call_need_numbers(call, (int[]){2, 3, 5, 6, 7, 8}, 6, err));
    ort_codes from_x = ort_codes_of(call, x->dtype, 2, 3);
    ort_codes from_y = ort_codes_of(call, x->dtype, 5, 6), to = ort_codes_of(call, x->dtype, 7, 8);
    j.same[0] = ort_codes_table(&from_x, &to, j.table[0]);
    j.same[1] = ort_codes_table(&from_y, &to, j.table[1]);
    ort_bcast_make(&j.plan, &z->shape, shapes, 3);
    ort_call_range(call, j.plan.total, GRAIN, where_task, &j);
    return ORT_OK;
}

static const ort_op_impl where_impl = {
    .rule = "broadcast 0,1,4", .run = where_run, .numbers = 0x1ec,
};

/* ---- GatherBlockQuantized */

typedef struct gather_form {
    int64_t block, gather_axis, quant_axis;
    int bits; /* of one element; bytes hold 8 / bits of them; 0: small floats, no zero points */
} gather_form;

static gather_form form_of(const ort_node *node, ort_dtype dtype)
{
    gather_form f = {ort_node_attr_int(node, "block_size"), ort_node_attr_int(node, "gather_axis"),
                     ort_node_attr_int(node, "quantize_axis"), 4};
    if (dtype == ORT_DTYPE_UINT8) {
        int64_t bits = ort_node_attr_int(node, "bits");
        f.bits = bits > 0 && bits <= 8 ? (int)bits : -1;
    }
    else if (dtype != ORT_DTYPE_INT4 && dtype != ORT_DTYPE_UINT4)
        f.bits = 0;
    return f;
}

static ort_status gather_infer(ort_infer *x, ort_error *err)
{
    if (!ort_infer_in_ranked(x, 0) || !ort_infer_in_ranked(x, 1))
        return ORT_OK;
    const ort_type *data = &x->in[0]->type, *indices = &x->in[1]->type;
    gather_form f = form_of(x->node, data->dtype);
    ort_dim dims[ORT_MAX_RANK];
    int axis = 0, rank = 0;
    if (f.bits != 0 && f.bits != 2 && f.bits != 4 && f.bits != 8)
        return ort_infer_fail(x, err, "bits must be 2, 4 or 8");
    ORT_TRY(ort_infer_axis(x, f.gather_axis, data->rank, &axis, err));
    if (data->rank - 1 + indices->rank > ORT_MAX_RANK)
        return ort_infer_fail(x, err, "the result has more than %d dims", ORT_MAX_RANK);
    for (int d = 0; d < data->rank; d++) {
        if (d == axis)
            for (int i = 0; i < indices->rank; i++)
                dims[rank++] = indices->dim[i];
        else if (d == data->rank - 1 && data->dtype == ORT_DTYPE_UINT8)
            dims[rank++] = ort_dim_mul(x->dims, data->dim[d], ort_dim_of(8 / f.bits));
        else
            dims[rank++] = data->dim[d];
    }
    ort_infer_set_shape(x, 0, rank, dims);
    return ORT_OK;
}

typedef struct gather_walk {
    const ort_tensor *data, *indices, *scales, *zeros;
    ort_tensor *y;
    gather_form f;
    int64_t outer, rows, inner, picks; /* inner: elements behind the gather axis */
    int64_t quant_extent, quant_stride, blocks;
    ort_shape shape;                   /* of the data, as elements */
    int64_t scale_stride[ORT_MAX_RANK]; /* small floats: 0 where the scales have one element */
    int quant;
} gather_walk;

/* Element `index` of codes of `bits`; rows of bytes are whole, so flat indices address them too. */
static int element(const ort_tensor *t, int64_t index, int bits)
{
    if (t->dtype == ORT_DTYPE_INT4)
        return ort_sign_extend(ort_packed_get(t->data, (size_t)index, 4), 4);
    if (bits == 8)
        return ((const uint8_t *)t->data)[index];
    return (int)ort_packed_get(t->data, (size_t)index, bits);
}

/* A small float: its scale may be shared along any axis. */
static float float_at(const gather_walk *w, int64_t at)
{
    int64_t s = 0, rest = at;
    for (int d = w->shape.rank - 1; d >= 0; d--) {
        int64_t i = rest % w->shape.dim[d];
        rest /= w->shape.dim[d];
        s += (d == w->quant ? i / w->f.block : i) * w->scale_stride[d];
    }
    return (float)(ort_tensor_get_f64(w->data, at) * ort_tensor_get_f64(w->scales, s));
}

static float value_at(const gather_walk *w, int64_t at)
{
    if (w->f.bits == 0)
        return float_at(w, at);
    int64_t low = at % w->quant_stride, along = at / w->quant_stride % w->quant_extent;
    int64_t high = at / w->quant_stride / w->quant_extent, block = along / w->f.block;
    int64_t s = (high * w->blocks + block) * w->quant_stride + low;
    int zero = w->data->dtype == ORT_DTYPE_UINT8 ? 1 << (w->f.bits - 1) : 0;
    if (w->zeros && w->data->dtype == ORT_DTYPE_UINT8 && w->f.bits < 8) {
        int64_t per = 8 / w->f.bits, bytes = (w->blocks + per - 1) / per;
        zero = element(w->zeros, high * bytes * per + block, w->f.bits);
    } else if (w->zeros) {
        zero = element(w->zeros, s, w->f.bits);
    }
    return (float)(element(w->data, at, w->f.bits) - zero) *
           (float)ort_tensor_get_f64(w->scales, s);
}

static void gather_task(void *arg, size_t task, int thread)
{
    const gather_walk *w = arg;
    int64_t o = (int64_t)task / w->picks, pick = (int64_t)task % w->picks;
    int64_t row = ort_tensor_get_i64(w->indices, pick);
    float piece[256];
    row += row < 0 ? w->rows : 0;
    bool inside = row >= 0 && row < w->rows; /* an index beyond the rows gives zeros */
    for (int64_t first = 0; first < w->inner; first += 256) {
        int64_t n = ort_min_i64(256, w->inner - first);
        for (int64_t i = 0; i < n; i++)
            piece[i] = inside ? value_at(w, (o * w->rows + row) * w->inner + first + i) : 0.0f;
        ort_tensor_from_f32(piece, w->y, (int64_t)task * w->inner + first, n);
    }
}

static ort_status gather_init(ort_call *call, gather_walk *w, ort_error *err)
{
    ort_shape s = ort_call_in(call, 0)->shape;
    *w = (gather_walk){.data = ort_call_in(call, 0), .indices = ort_call_in(call, 1),
                       .scales = ort_call_in(call, 2), .zeros = ort_call_in(call, 3),
                       .y = ort_call_out(call, 0)};
    w->f = form_of(call->node, w->data->dtype);
    bool bytes = w->data->dtype == ORT_DTYPE_UINT8;
    int64_t gather = w->f.gather_axis + (w->f.gather_axis < 0 ? s.rank : 0);
    int64_t quant = w->f.quant_axis + (w->f.quant_axis < 0 ? s.rank : 0);
    if (gather < 0 || gather >= s.rank || quant < 0 || quant >= s.rank || gather == quant ||
        w->f.block < (w->f.bits ? 1 : 0) || (bytes && (quant != s.rank - 1 || 8 % w->f.bits)))
        return ort_call_fail(call, err, "gather_axis, quantize_axis, bits and block_size don't fit "
                             "%d dims; the axes must differ", s.rank);
    if (bytes)
        s.dim[s.rank - 1] *= 8 / w->f.bits;
    w->shape = s;
    w->quant = (int)quant;
    w->outer = ort_shape_count_range(&s, 0, (int)gather);
    w->rows = s.dim[gather];
    w->inner = ort_shape_count_range(&s, (int)gather + 1, s.rank);
    w->picks = ort_tensor_count(w->indices);
    w->quant_extent = s.dim[quant];
    w->quant_stride = ort_shape_count_range(&s, (int)quant + 1, s.rank);
    if (w->f.block == 0) /* the whole axis */
        w->f.block = ort_max_i64(w->quant_extent, 1);
    w->blocks = w->quant_extent / w->f.block + (w->quant_extent % w->f.block != 0);
    ort_shape want = s;
    want.dim[quant] = w->blocks;
    int64_t zeros = ort_shape_count(&want);
    if (bytes && w->f.bits < 8 && w->blocks > 0)
        zeros = zeros / w->blocks * ((w->blocks * w->f.bits + 7) / 8);
    if (w->f.bits == 0) {
        for (int d = 0; d < s.rank && w->scales->shape.rank == s.rank; d++)
            if (w->scales->shape.dim[d] == 1)
                want.dim[d] = 1;
        ort_shape_broadcast_strides(&want, &s, w->scale_stride);
        w->scale_stride[quant] = ort_shape_count_range(&want, (int)quant + 1, s.rank);
    }
    if (!ort_shape_equal(&want, &w->scales->shape) ||
        (w->zeros && ort_tensor_count(w->zeros) != zeros))
        return ort_call_fail(call, err, "scales or zero_points don't fit blocks of %lld elements",
                             (long long)w->f.block);
    return ORT_OK;
}

static ort_status gather_run(ort_call *call, ort_error *err)
{
    gather_walk w;
    ORT_TRY(gather_init(call, &w, err));
    ort_call_parallel(call, (size_t)(w.outer * w.picks), gather_task, &w);
    return ORT_OK;
}

static ort_status gather_prepare(ort_prep *p, ort_error *err)
{
    ort_dtype dtype = ort_prep_dtype(p, 0);
    int bits = form_of(p->node, dtype).bits;
    if (bits == 0 && ort_prep_dtype(p, 3) != ORT_DTYPE_UNDEFINED)
        return ort_prep_fail(p, err, "data of a float type has no zero_points");
    if (bits != 0 && bits != 2 && bits != 4 && bits != 8)
        return ort_prep_fail(p, err, "bits must be 2, 4 or 8");
    return ORT_OK;
}

static const ort_op_impl gather_impl = {
    .infer = gather_infer, .prepare = gather_prepare, .run = gather_run,
};

/* ---- rows */

const ort_op ort_ops_quant_rows[] = {
    {MS, "QLinearSoftmax", 1,
     "X:T,X_scale:f32,x_zero_point?:T,y_scale:f32,y_zero_point:T -> Y:T", "T:i8,u8",
     "axis:i opset:i!", 0, &softmax_impl},
    {MS, "QLinearWhere", 1,
     "condition:B,X:T,x_scale:f32,x_zero_point:T,Y:T,y_scale:f32,y_zero_point:T,z_scale:f32,"
     "z_zero_point:T -> Z:T",
     "B:bool T:i8,u8", "", 0, &where_impl},
    {MS, "GatherBlockQuantized", 1, "data:T1,indices:Tind,scales:T2,zero_points?:T1 -> output:T2",
     "T1:Q4,u8,F8,f4e2m1 T2:f32,f16,bf16 Tind:i32,i64",
     "bits:i=4 block_size:i=128 gather_axis:i=0 quantize_axis:i=1", 0, &gather_impl},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
