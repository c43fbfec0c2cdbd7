/* quant_elementwise.c - operators on 8-bit codes, element by element: QLinearAdd, QLinearMul,
 * QLinearSigmoid, QLinearLeakyRelu, QLinearConcat, and any function of one code (LookUp).
 *
 * What depends on one code alone is a table of 256 codes, made when the step is prepared. Tables
 * are computed on the scalar tier: they are the same on all.
 */
#include <string.h>

#include "base/checked.h"
#include "op/shared/codes.h"
#include "op/shared/bcast_block.h"

enum {
    GRAIN = 1 << 15,
    TABLE_PAYS = 1024, /* codes that meet one other */
};

/* ---- QLinearAdd, QLinearMul: A, scale, zero, B, scale, zero, scale, zero */

typedef struct binary_plan {
    ort_bcast all;
    ort_bcast rows; /* where one operand repeats ORT_BYTE_ROW codes over and over, as factors per
                       channel of the blocked layout do: each stretch of rows one run, along which
                       it stands */
    bool in_rows;
} binary_plan;

static bool find_rows(const ort_bcast *all, ort_bcast *rows)
{
    const int last = all->rank - 1;
    if (last < 1 || all->dim[last] != ORT_BYTE_ROW)
        return false;
    for (int k = 0; k < 2; k++) {
        const int64_t *stands = all->stride[k], *runs = all->stride[1 - k];
        if (stands[last] != 1 || runs[last] != 1 || stands[last - 1] != 0 ||
            runs[last - 1] != ORT_BYTE_ROW)
            continue;
        *rows = *all;
        rows->rank = last;
        rows->dim[last - 1] *= ORT_BYTE_ROW;
        rows->stride[1 - k][last - 1] = 1;
        return true;
    }
    return false;
}

static ort_status binary_shape(ort_shaping *s, ort_error *err)
{
    static const int single[] = {1, 2, 4, 5, 6, 7};
    const ort_shape *in[] = {&s->in[0]->shape, &s->in[3]->shape};
    binary_plan *plan = ort_arena_alloc(s->arena, sizeof *plan);
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    ort_bcast_make(&plan->all, &s->out[0]->shape, in, 2);
    plan->in_rows = find_rows(&plan->all, &plan->rows);
    s->plan_state = plan;
    return ort_codes_need_single(s, single, 6, err);
}

/* The roundings are those of onnxruntime's kernels, which are all that defines these operators;
 * sums and products of bytes end in exact halves often enough that others show. With integers a, b:
 *   Add: round(fma(a, ra, fma(b, rb, fixed))), ra and rb the ratios of the scales to y's, fixed =
 *        y_zero - (ra * a_zero + rb * b_zero); with a single a, the other way round;
 *   Mul: round((a - a_zero) * (b - b_zero) * ratio + y_zero), nothing fused. */
typedef struct binary_job {
    const ort_code_kernels *codes;
    const ort_bcast *plan;
    const uint8_t *a, *b;
    uint8_t *y;
    bool multiply, a_stands, b_stands; /* a, b: one element along the innermost axis */
    ort_byte_sum sum;
    ort_byte_product product;
} binary_job;

/* n elements of both, side by side. */
static void binary_apply(const binary_job *j, const uint8_t *a, const uint8_t *b, uint8_t *y,
                         int64_t n)
{
    if (j->multiply) {
        j->codes->multiply(a, b, y, (size_t)n, &j->product);
    } else if (j->a_stands) {
        ort_byte_sum turned = {j->sum.b_ratio, j->sum.a_ratio, j->sum.fixed, j->sum.is_signed};
        j->codes->add(b, a, y, (size_t)n, &turned);
    } else {
        j->codes->add(a, b, y, (size_t)n, &j->sum);
    }
}

/* What each code gives with the one that stands: a table. */
static void binary_table(const binary_job *j, const uint8_t *spread, uint8_t table[256])
{
    uint8_t every[256];
    for (int i = 0; i < 256; i++)
        every[i] = (uint8_t)i;
    binary_apply(j, j->a_stands ? spread : every, j->a_stands ? every : spread, table, 256);
}

static void binary_segment(void *arg, int64_t out, const int64_t *in, int64_t n)
{
    const binary_job *j = arg;
    const uint8_t *a = j->a + in[0], *b = j->b + in[1];
    uint8_t spread[ORT_BCAST_BLOCK], table[256];
    if (!j->a_stands && !j->b_stands) {
        binary_apply(j, a, b, j->y + out, n);
        return;
    }
    memset(spread, j->a_stands ? *a : *b, (size_t)ort_min_i64(n, sizeof spread));
    if (n >= TABLE_PAYS) {
        binary_table(j, spread, table);
        j->codes->look_up(j->a_stands ? b : a, j->y + out, (size_t)n, table);
        return;
    }
    for (int64_t i = 0; i < n; i += ORT_BCAST_BLOCK)
        binary_apply(j, j->a_stands ? spread : a + i, j->a_stands ? b + i : spread, j->y + out + i,
                     ort_min_i64(ORT_BCAST_BLOCK, n - i));
}

static void binary_blocks(const binary_job *j, int64_t first, int64_t end)
{
    char a_space[ORT_BCAST_SPACE(1)], b_space[ORT_BCAST_SPACE(1)];
    ort_bcast_operand a, b;
    ort_bcast_operand_begin(&a, j->plan, 0, j->a, 1, a_space);
    ort_bcast_operand_begin(&b, j->plan, 1, j->b, 1, b_space);
    for (int64_t n = 0; first < end; first += n) {
        n = ort_min_i64(end - first, ORT_BCAST_BLOCK);
        const uint8_t *left = ort_bcast_operand_block(&a, first, n);
        binary_apply(j, left, ort_bcast_operand_block(&b, first, n), j->y + first, n);
    }
}

static void binary_task(void *arg, int64_t first, int64_t end, int thread)
{
    const binary_job *j = arg;
    if (j->plan->flat)
        binary_apply(j, j->a + first, j->b + first, j->y + first, end - first);
    else if (ort_bcast_has_short_runs(j->plan))
        binary_blocks(j, first, end);
    else
        ort_bcast_walk(j->plan, first, end - first, binary_segment, arg);
}

static void rows_segment(void *arg, int64_t out, const int64_t *in, int64_t n)
{
    const binary_job *j = arg;
    const size_t rows = (size_t)(n / ORT_BYTE_ROW);
    ort_byte_product turned = j->product;
    turned.a_zero = j->product.b_zero;
    turned.b_zero = j->product.a_zero;
    if (j->plan->stride[1][j->plan->rank - 1] == 0)
        j->codes->multiply_rows(j->a + in[0], j->b + in[1], j->y + out, rows, &j->product);
    else
        j->codes->multiply_rows(j->b + in[1], j->a + in[0], j->y + out, rows, &turned);
}

static void rows_task(void *arg, int64_t first, int64_t end, int thread)
{
    const binary_job *j = arg;
    ort_bcast_walk(j->plan, first * ORT_BYTE_ROW, (end - first) * ORT_BYTE_ROW, rows_segment, arg);
}

static void binary_numbers(binary_job *j, const ort_codes *a, const ort_codes *b,
                           const ort_codes *y)
{
    j->sum = ort_codes_sum(a, b, y);
    j->product = (ort_byte_product){a->zero, b->zero, a->scale * b->scale / y->scale,
                                    (float)y->zero, y->is_signed};
}

static ort_status binary_run(ort_call *call, bool multiply)
{
    ort_tensor *y = ort_call_out(call, 0);
    const binary_plan *plans = call->plan_state;
    const bool in_rows = multiply && plans->in_rows;
    const ort_bcast *plan = in_rows ? &plans->rows : &plans->all;
    if (!y || plan->total == 0)
        return ORT_OK;
    ort_codes a = ort_codes_of(call, y->dtype, 1, 2), b = ort_codes_of(call, y->dtype, 4, 5);
    ort_codes to = ort_codes_of(call, y->dtype, 6, 7);
    binary_job j = {.codes = &call->k->codes, .plan = plan, .a = ort_call_in(call, 0)->data,
                    .b = ort_call_in(call, 3)->data, .y = y->data, .multiply = multiply,
                    .a_stands = plan->stride[0][plan->rank - 1] == 0,
                    .b_stands = plan->stride[1][plan->rank - 1] == 0};
    binary_numbers(&j, &a, &b, &to);
    if (in_rows)
        ort_call_range(call, plan->total / ORT_BYTE_ROW, GRAIN / ORT_BYTE_ROW, rows_task, &j);
    else
        ort_call_range(call, plan->total, GRAIN, binary_task, &j);
    return ORT_OK;
}

static ort_status add_run(ort_call *call, ort_error *err)
{
    return binary_run(call, false);
}
static ort_status mul_run(ort_call *call, ort_error *err)
{
    return binary_run(call, true);
}

/* ---- functions of one byte: X, scale, zero, scale, zero */

static ort_status table_shape(ort_shaping *s, ort_error *err)
{
    static const int single[] = {1, 2, 3, 4};
    return ort_codes_need_single(s, single, 4, err);
}

typedef struct table_job {
    const ort_code_kernels *codes;
    const uint8_t *x, *table; /* by the input's bits */
    uint8_t *y;
} table_job;

static void table_task(void *arg, int64_t first, int64_t end, int thread)
{
    const table_job *j = arg;
    j->codes->look_up(j->x + first, j->y + first, (size_t)(end - first), j->table);
}

static void table_apply(ort_call *call, const uint8_t *table)
{
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0);
    if (!y)
        return;
    table_job j = {&call->k->codes, x->data, table, y->data};
    ort_call_range(call, ort_tensor_count(x), GRAIN, table_task, &j);
}

typedef struct table_state {
    float alpha;
    bool known; /* made when the step was prepared */
    uint8_t table[256];
} table_state;

static const ort_bind leaky_bind[] = {ORT_BIND(table_state, alpha), {0}};

static void fill_table(const ort_codes *from, const ort_codes *to, ort_unary function, float a,
                       uint8_t *table)
{
    const ort_kernels *k = ort_kernels_get("scalar");
    float values[256];
    ort_codes_values(from, values);
    k->math.unary[function](values, values, 256, a, 0.0f);
    ort_codes_quantize(k, to, values, table, 256);
}

static ort_unary function_of(const ort_node *node)
{
    return node->op->variant ? ORT_UNARY_LEAKY_RELU : ORT_UNARY_SIGMOID;
}

static ort_status table_prepare(ort_prep *p, ort_error *err)
{
    table_state *state = p->state;
    ort_codes from, to;
    ort_dtype dtype = ort_prep_dtype(p, 0);
    bool is_known = ort_codes_known(p, dtype, 1, 2, &from);
    state->known = ort_codes_known(p, dtype, 3, 4, &to) && is_known;
    if (state->known)
        fill_table(&from, &to, function_of(p->node), state->alpha, state->table);
    return ORT_OK;
}

static ort_status table_run(ort_call *call, ort_error *err)
{
    const table_state *state = call->state;
    ort_dtype dtype = ort_call_in(call, 0)->dtype;
    uint8_t table[256];
    if (state->known) {
        table_apply(call, state->table);
        return ORT_OK;
    }
    ort_codes from = ort_codes_of(call, dtype, 1, 2), to = ort_codes_of(call, dtype, 3, 4);
    fill_table(&from, &to, function_of(call->node), state->alpha, table);
    table_apply(call, table);
    return ORT_OK;
}

/* ---- LookUp: X, table */

static ort_status look_up_run(ort_call *call, ort_error *err)
{
    table_apply(call, ort_call_in(call, 1)->data);
    return ORT_OK;
}

/* ---- LookUpEach: X, a table of each channel; before so many axes */

typedef struct each_state {
    int64_t behind;
} each_state;

static const ort_bind each_bind[] = {ORT_BIND(each_state, behind), {0}};

typedef struct each_job {
    table_job of; /* the table of channel 0 */
    int64_t run, channels;
} each_job;

static void each_task(void *arg, int64_t first, int64_t end, int thread)
{
    const each_job *j = arg;
    for (int64_t i = first; i < end; i++)
        j->of.codes->look_up(j->of.x + i * j->run, j->of.y + i * j->run, (size_t)j->run,
                             j->of.table + i % j->channels * 256);
}

static ort_status look_up_each_run(ort_call *call, ort_error *err)
{
    const each_state *state = call->state;
    const ort_tensor *x = ort_call_in(call, 0), *table = ort_call_in(call, 1);
    ort_tensor *y = ort_call_out(call, 0);
    const int axis = x->shape.rank - 1 - (int)state->behind;
    const int64_t run = ort_shape_count_range(&x->shape, axis + 1, x->shape.rank);
    if (!y || !ort_tensor_count(x))
        return ORT_OK;
    each_job j = {{&call->k->codes, x->data, table->data, y->data}, run, table->shape.dim[0]};
    ort_call_range(call, ort_tensor_count(x) / run, 1 + GRAIN / run, each_task, &j);
    return ORT_OK;
}

/* ---- QLinearConcat: scale, zero, then X, scale, zero of each input */

typedef struct concat_state {
    int64_t axis;
} concat_state;

static const ort_bind concat_bind[] = {ORT_BIND(concat_state, axis), {0}};

static ort_status concat_prepare(ort_prep *p, ort_error *err)
{
    for (int i = 2; i < p->in_count; i += 3)
        if (ort_prep_dtype(p, i) == ORT_DTYPE_FLOAT)
            return ort_prep_unsupported_dtype(p, i, err);
    return ORT_OK;
}

static ort_status concat_infer(ort_infer *x, ort_error *err)
{
    ort_dim out[ORT_MAX_RANK];
    int rank = -1, axis = 0;
    if (x->in_count < 5 || (x->in_count - 2) % 3)
        return ort_infer_fail(x, err, "%d inputs, needs two and three for each part", x->in_count);
    for (int i = 2; i < x->in_count; i += 3) {
        if (!ort_infer_in_ranked(x, i))
            return ORT_OK;
        const ort_type *t = &x->in[i]->type;
        if (rank < 0) {
            rank = t->rank;
            memcpy(out, t->dim, sizeof out);
            ORT_TRY(ort_infer_axis(x, ort_node_attr_int(x->node, "axis"), rank, &axis, err));
            continue;
        }
        ORT_TRY(ort_infer_need_rank(x, i, rank, err));
        for (int d = 0; d < rank; d++)
            if (d == axis)
                out[d] = ort_dim_add(x->dims, out[d], t->dim[d]);
            else if (ort_dim_differ(out[d], t->dim[d]))
                return ort_infer_fail(x, err, "input %d differs from the others along axis %d", i,
                                      d);
            else
                out[d] = ort_dim_merge(out[d], t->dim[d]);
    }
    ort_infer_set_shape(x, 0, rank, out);
    return ORT_OK;
}

typedef struct concat_part {
    const uint8_t *x;
    int64_t first, run; /* place and bytes in a line of the output */
    bool same;          /* codes stay what they are */
    uint8_t table[256];
} concat_part;

static ort_status concat_shape(ort_shaping *s, ort_error *err)
{
    for (int i = 0; i < s->in_count; i++) {
        const int one[] = {i};
        if (i < 2 || (i - 2) % 3)
            ORT_TRY(ort_codes_need_single(s, one, 1, err));
    }
    s->workspace_bytes = (size_t)s->in_count / 3 * sizeof(concat_part);
    return ORT_OK;
}

typedef struct concat_job {
    const ort_code_kernels *codes;
    const concat_part *parts;
    int count;
    int64_t line;
    uint8_t *y;
} concat_job;

static void concat_task(void *arg, int64_t first, int64_t end, int thread)
{
    const concat_job *j = arg;
    int64_t outer = first / j->line, at = first % j->line;
    for (int i = 0; first < end; i = i + 1 < j->count ? i + 1 : 0) {
        const concat_part *p = &j->parts[i];
        int64_t skip = at - p->first, n = ort_min_i64(p->run - skip, end - first);
        if (skip >= p->run)
            continue;
        const uint8_t *from = p->x + outer * p->run + skip;
        if (p->same)
            memcpy(j->y + first, from, (size_t)n);
        else
            j->codes->look_up(from, j->y + first, (size_t)n, p->table);
        first += n;
        at += n;
        if (at == j->line) {
            at = 0;
            outer++;
        }
    }
}

static ort_status concat_run(ort_call *call, ort_error *err)
{
    ort_tensor *y = ort_call_out(call, 0);
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    int64_t axis = ((const concat_state *)call->state)->axis, offset = 0;
    int at = (int)(axis < 0 ? axis + y->shape.rank : axis);
    ort_codes to = ort_codes_of(call, y->dtype, 0, 1);
    concat_part *parts = call->workspace;
    concat_job j = {&call->k->codes, parts, 0, 0, y->data};
    for (int i = 2; i + 2 < call->in_count; i += 3) {
        const ort_tensor *x = ort_call_in(call, i);
        concat_part *p = &parts[j.count];
        ort_codes from = ort_codes_of(call, x->dtype, i + 1, i + 2);
        p->x = x->data;
        p->first = offset;
        p->run = ort_shape_count_range(&x->shape, at, x->shape.rank);
        p->same = ort_codes_table(&from, &to, p->table);
        offset += p->run;
        j.count += p->run > 0;
    }
    j.line = offset;
    ort_call_range(call, ort_tensor_count(y), GRAIN, concat_task, &j);
    return ORT_OK;
}

/* ---- rows */

static const ort_op_impl add_impl = {
    .rule = "broadcast 0,3", .shape = binary_shape, .run = add_run, .numbers = 0xf6,
};
static const ort_op_impl mul_impl = {
    .rule = "broadcast 0,3", .shape = binary_shape, .run = mul_run, .numbers = 0xf6,
};
static const ort_op_impl sigmoid_impl = {
    .state = sizeof(table_state),
    .rule = "same", .prepare = table_prepare, .shape = table_shape, .run = table_run,
    .numbers = 0x1e,
};
static const ort_op_impl leaky_impl = {
    .state = sizeof(table_state), .bind = leaky_bind,
    .rule = "same", .prepare = table_prepare, .shape = table_shape, .run = table_run,
    .numbers = 0x1e,
};
static const ort_op_impl look_up_impl = {
    .rule = "[..] [256] -> [..]", .run = look_up_run,
};
static const ort_op_impl look_up_each_impl = {
    .state = sizeof(each_state), .bind = each_bind,
    .rule = "[..] [c,256] -> [..]", .run = look_up_each_run,
};
static const ort_op_impl concat_impl = {
    .state = sizeof(concat_state), .bind = concat_bind,
    .infer = concat_infer, .prepare = concat_prepare, .shape = concat_shape, .run = concat_run,
    .numbers = 3,
};

#define BINARY_SIG                                                                                 \
    "A:T,A_scale:f32,A_zero_point?:T,B:T,B_scale:f32,B_zero_point?:T,C_scale:f32,C_zero_point?:T " \
    "-> C:T"
#define UNARY_SIG "X:T,X_scale:f32,X_zero_point?:T,Y_scale:f32,Y_zero_point?:T -> Y:T"

const ort_op ort_ops_quant_elementwise[] = {
    {MS, "QLinearAdd", 1, BINARY_SIG, "T:u8,i8", "", ORT_TRAIT_ELEMENTWISE, &add_impl},
    {MS, "QLinearMul", 1, BINARY_SIG, "T:u8,i8", "", ORT_TRAIT_ELEMENTWISE, &mul_impl},
    {MS, "QLinearSigmoid", 1, UNARY_SIG, "T:u8,i8", "", ORT_TRAIT_ELEMENTWISE, &sigmoid_impl},
    {MS, "QLinearLeakyRelu", 1, UNARY_SIG, "T:u8,i8", "alpha:f=0.01", ORT_TRAIT_ELEMENTWISE,
     &leaky_impl, .variant = 1},
    {MS, "QLinearConcat", 1, "Y_scale:TF,Y_zero_point:T8,inputs**:TV -> Y:T8",
     "T8:u8,i8 TF:f32 TV:u8,i8,f32", "axis:i!", 0, &concat_impl},
    {ORT_INTERNAL, "LookUp", 1, "X:T,table:T2 -> Y:T2", "T:u8,i8 T2:u8,i8", "", ORT_TRAIT_INPLACE,
     &look_up_impl},
    {ORT_INTERNAL, "LookUpEach", 1, "X:T,table:T2 -> Y:T2", "T:u8,i8 T2:u8,i8", "behind:i!",
     ORT_TRAIT_INPLACE, &look_up_each_impl},
    {0},
};
