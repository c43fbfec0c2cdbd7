/* constant.c - operators that make tensors from attributes or a few numbers: Constant,
 * ConstantOfShape, EyeLike, Range.
 *
 * Invariant: Constant's value is known to inference (fact.value), so nothing downstream needs to
 * run it; a sparse_value is dense by the time an operator sees it (import expands it).
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/num.h"
#include "op/number.h"
#include "op/shared/move.h"

/* ---- Constant */

/* The one value attribute of the node as a tensor; false when there is none, or no single one.
 * Lists and strings are borrowed from the attribute. */
static bool constant_tensor(const ort_node *node, ort_tensor *t)
{
    int found = 0;
    for (int i = 0; i < node->attr_count; i++) {
        const ort_attr *a = &node->attrs[i];
        int64_t n = (int64_t)a->count;
        if (strncmp(a->name, "value", 5) && strcmp(a->name, "sparse_value"))
            continue;
        found++;
        switch (a->type) {
        case ORT_ATTR_FLOAT:
            *t = (ort_tensor){ORT_DTYPE_FLOAT, {0, {0}}, NULL, (void *)(uintptr_t)&a->f};
            break;
        case ORT_ATTR_INT:
            *t = (ort_tensor){ORT_DTYPE_INT64, {0, {0}}, NULL, (void *)(uintptr_t)&a->i};
            break;
        case ORT_ATTR_STRING:
            *t = (ort_tensor){ORT_DTYPE_STRING, {0, {0}}, NULL, (void *)(uintptr_t)&a->s};
            break;
        case ORT_ATTR_FLOATS:
            *t = (ort_tensor){ORT_DTYPE_FLOAT, {1, {n}}, NULL, (void *)(uintptr_t)a->floats};
            break;
        case ORT_ATTR_INTS:
            *t = (ort_tensor){ORT_DTYPE_INT64, {1, {n}}, NULL, (void *)(uintptr_t)a->ints};
            break;
        case ORT_ATTR_STRINGS:
            *t = (ort_tensor){ORT_DTYPE_STRING, {1, {n}}, NULL, (void *)(uintptr_t)a->strings};
            break;
        case ORT_ATTR_TENSOR:
        case ORT_ATTR_SPARSE_TENSOR:
            if (!a->t)
                return false;
            *t = *a->t;
            break;
        default:
            return false;
        }
    }
    return found == 1;
}

static ort_status constant_infer(ort_infer *x, ort_error *err)
{
    ort_tensor *value = ort_arena_alloc(x->arena, sizeof *value);
    if (!value)
        return ort_error_memory(err, sizeof *value);
    if (!constant_tensor(x->node, value))
        return ort_infer_fail(x, err, "exactly one readable value attribute is needed");
    ort_type type = ort_type_of_tensor(value);
    ort_infer_set_type(x, 0, type.dtype, type.rank, type.dim);
    x->out[0].value = value;
    return ORT_OK;
}

static ort_status constant_prepare(ort_prep *p, ort_error *err)
{
    if (!constant_tensor(p->node, p->state))
        return ort_prep_fail(p, err, "exactly one readable value attribute is needed");
    return ORT_OK;
}

static ort_status constant_run(ort_call *call, ort_error *err)
{
    ort_tensor *out = ort_call_out(call, 0);
    if (ort_tensor_count(out) > 0)
        ort_tensor_copy_data(out, call->state);
    return ORT_OK;
}

static const ort_op_impl constant_impl = {
    .state = sizeof(ort_tensor),
    .infer = constant_infer, .prepare = constant_prepare, .run = constant_run,
};

/* ---- ConstantOfShape */

static ort_status fill_infer(ort_infer *x, ort_error *err)
{
    ort_dim dims[ORT_SYMBOLIC_MAX];
    const ort_tensor *value = ort_node_tensor(x->node, "value");
    ort_dtype dtype = value ? value->dtype : ORT_DTYPE_FLOAT;
    int rank = ort_infer_elements(x, 0, dims);
    if (value && ort_tensor_count(value) != 1)
        return ort_infer_fail(x, err, "value has %lld elements; one is needed",
                              (long long)ort_tensor_count(value));
    if (value && value->shape.rank != 1)
        return ort_infer_fail(x, err, "value has %d dims, needs the shape [1]",
                              value->shape.rank);
    ort_infer_set_dtype(x, 0, dtype);
    if (rank < 0)
        return ORT_OK;
    if (rank > ORT_MAX_RANK)
        return ort_infer_fail(x, err, "the shape has %d dims; at most %d are supported", rank,
                              ORT_MAX_RANK);
    for (int d = 0; d < rank; d++)
        if (ort_dim_known(dims[d]) && dims[d].size < 0)
            return ort_infer_fail(x, err, "dim %d of the shape is %lld", d,
                                  (long long)dims[d].size);
    ort_infer_set_type(x, 0, dtype, rank, dims);
    int64_t count = rank == 0 ? 1 : rank == 1 && ort_dim_known(dims[0]) ? dims[0].size : -1;
    if (value && (dtype == ORT_DTYPE_INT64 || dtype == ORT_DTYPE_INT32) && count >= 0 &&
        count <= ORT_SYMBOLIC_MAX) {
        int64_t number = 0;
        ort_tensor_one_i64(value, &number);
        for (int64_t i = 0; i < count; i++)
            dims[i] = ort_dim_of(number);
        ort_infer_set_symbolic(x, 0, dims, (int)count);
    }
    return ORT_OK;
}

typedef struct fill_state {
    const ort_tensor *value;
} fill_state;

static const ort_bind fill_bind[] = {ORT_BIND(fill_state, value), {0}};

static ort_status fill_run(ort_call *call, ort_error *err)
{
    const ort_tensor *value = ((const fill_state *)call->state)->value;
    ort_tensor *out = ort_call_out(call, 0);
    ort_move_fill(out->dtype, out->data, 0, ort_tensor_count(out), value ? value->data : NULL, 0);
    return ORT_OK;
}

static const ort_op_impl fill_impl = {
    .state = sizeof(fill_state), .bind = fill_bind, .rule = "[_]", .infer = fill_infer,
    .run = fill_run,
};

/* ---- EyeLike */

typedef struct eye_state {
    int64_t k;
} eye_state;

static const ort_bind eye_bind[] = {ORT_BIND(eye_state, k), {0}};

static ort_status eye_run(ort_call *call, ort_error *err)
{
    ort_tensor *out = ort_call_out(call, 0);
    int64_t k = ((const eye_state *)call->state)->k;
    int64_t rows = out->shape.dim[0], columns = out->shape.dim[1];
    ort_move_fill(out->dtype, out->data, 0, rows * columns, NULL, 0);
    if (k <= -rows || k >= columns)
        return ORT_OK;
    for (int64_t r = ort_max_i64(0, -k); r < rows && r + k < columns; r++)
        ort_tensor_set_i64(out, r * columns + r + k, 1);
    return ORT_OK;
}

static const ort_op_impl eye_impl = {
    .state = sizeof(eye_state), .bind = eye_bind,
    .rule = "[M,N] -> [M,N]:dtype|input",
    .run = eye_run,
};

/* ---- Range */

static bool is_integer(ort_dtype dtype)
{
    ort_dtype_class c = ort_dtype_get(dtype)->class_;
    return c == ORT_CLASS_INT || c == ORT_CLASS_UINT;
}

/* max(ceil((limit - start) / delta), 0); -1 when delta is 0 or the count is absurd. */
static int64_t range_count_int(int64_t start, int64_t limit, int64_t delta)
{
    __int128 span = delta > 0 ? (__int128)limit - start : (__int128)start - limit;
    __int128 step = delta > 0 ? delta : -(__int128)delta, n;
    if (step == 0)
        return -1;
    n = span <= 0 ? 0 : (span + step - 1) / step;
    return n > INT64_MAX / 16 ? -1 : (int64_t)n;
}

static int64_t range_count_float(double start, double limit, double delta, ort_dtype dtype)
{
    double n = dtype == ORT_DTYPE_DOUBLE ? ceil((limit - start) / delta)
                                         : ceil((double)(((float)limit - (float)start) /
                                                         (float)delta));
    if (delta == 0 || isnan(n) || n > 1e15)
        return -1;
    return n < 0 ? 0 : (int64_t)n;
}

/* delta NULL: 1 (com.microsoft). */
static ort_status range_count(const ort_tensor *start, const ort_tensor *limit,
                              const ort_tensor *delta, int64_t *count)
{
    int64_t whole = 1;
    double one = 1.0;
    ort_tensor step = {.dtype = start->dtype, .data = &whole};
    if (!delta) {
        step.dtype = is_integer(start->dtype) ? ORT_DTYPE_INT64 : ORT_DTYPE_DOUBLE;
        step.data = is_integer(start->dtype) ? (void *)&whole : (void *)&one;
        delta = &step;
    }
    int64_t from, to, by;
    double first, last, each;
    *count = -1;
    if (is_integer(start->dtype) && ort_tensor_one_i64(start, &from) &&
        ort_tensor_one_i64(limit, &to) && ort_tensor_one_i64(delta, &by))
        *count = range_count_int(from, to, by);
    else if (!is_integer(start->dtype) && ort_tensor_one_f64(start, &first) &&
             ort_tensor_one_f64(limit, &last) && ort_tensor_one_f64(delta, &each))
        *count = range_count_float(first, last, each, start->dtype);
    return *count < 0 ? ORT_ERROR_RUN : ORT_OK;
}

static ort_status range_infer(ort_infer *x, ort_error *err)
{
    ort_dtype dtype = ort_infer_dtype(x, 0);
    ort_dim n = ort_dim_unknown(), v[3];
    bool have[3], values = true;
    bool steps = ort_infer_in(x, 2) != NULL;
    for (int i = 0; i < 3; i++) {
        bool one = i == 2 && !steps && x->node->input_count < 3;
        have[i] = one || (is_integer(dtype) && ort_infer_int(x, i, 0, &v[i]));
        v[i] = one ? ort_dim_of(1) : v[i];
        values = values && (one || (ort_infer_in(x, i) && ort_infer_in(x, i)->value));
    }
    if (values) {
        int64_t count;
        const ort_tensor *delta = steps ? x->in[2]->value : NULL;
        if (range_count(x->in[0]->value, x->in[1]->value, delta, &count) != ORT_OK)
            return ort_infer_fail(x, err, "start, limit and delta give no finite range");
        n = ort_dim_of(count);
    } else if (have[0] && have[1] && have[2] && ort_dim_known(v[2])) {
        if (ort_dim_known(v[0]) && ort_dim_known(v[1])) {
            int64_t count = range_count_int(v[0].size, v[1].size, v[2].size);
            if (count < 0)
                return ort_infer_fail(x, err, "delta is 0, or the range is too long");
            n = ort_dim_of(count);
        } else if (v[2].size > 0) { /* a symbolic limit is a length: not below start */
            n = ort_dim_ceil_div(x->dims, ort_dim_sub(x->dims, v[1], v[0]), v[2]);
        }
    }
    ort_infer_set_shape(x, 0, 1, &n);
    if (have[0] && have[2] && ort_dim_known(n) && n.size <= ORT_SYMBOLIC_MAX &&
        (dtype == ORT_DTYPE_INT64 || dtype == ORT_DTYPE_INT32)) {
        ort_dim items[ORT_SYMBOLIC_MAX];
        for (int64_t i = 0; i < n.size; i++)
            items[i] = ort_dim_add(x->dims, v[0], ort_dim_mul(x->dims, v[2], ort_dim_of(i)));
        ort_infer_set_symbolic(x, 0, items, (int)n.size);
    }
    return ORT_OK;
}

static ort_status range_run(ort_call *call, ort_error *err)
{
    ort_tensor *out = ort_call_out(call, 0);
    int64_t count = 0, n = ort_tensor_count(out), first = 0, step = 1;
    double a = 0, d = 1;
    ort_pace pace = {0};
    ORT_TRY(ort_call_need_numbers(call, (int[]){0, 1, 2}, 3, err));
    if (range_count(ort_call_in(call, 0), ort_call_in(call, 1), ort_call_in(call, 2), &count) ||
        count != n)
        return ort_call_fail(call, err, "start, limit and delta give %lld elements, %lld were "
                             "planned", (long long)count, (long long)n);
    if (is_integer(out->dtype)) {
        ORT_TRY(ort_call_i64(call, 0, &first, err));
        ORT_TRY(ort_call_i64(call, 2, &step, err));
        for (int64_t i = 0; i < n && !ort_pace_over(&pace, 4); i++)
            ort_tensor_set_i64(out, i, (int64_t)((uint64_t)first + (uint64_t)step * (uint64_t)i));
        return ORT_OK;
    }
    ORT_TRY(ort_call_f64(call, 0, &a, err));
    ORT_TRY(ort_call_f64(call, 2, &d, err));
    for (int64_t i = 0; i < n && !ort_pace_over(&pace, 4); i++)
        ort_tensor_set_f64(out, i, out->dtype == ORT_DTYPE_DOUBLE
                                       ? a + (double)i * d
                                       : (double)((float)a + (float)i * (float)d));
    return ORT_OK;
}

static const ort_op_impl range_impl = {.infer = range_infer, .run = range_run, .numbers = 7};

const ort_op ort_ops_constant[] = {
    {ONNX, "Constant", 1, " -> output:T", "T:F", "value:t!", 0, &constant_impl,
     .history = "9:T+I,U,C,str,bool"},
    {ONNX, "Constant", 11, " -> output:T", "T:F,I,U,C,str,bool", "sparse_value:sp value:t",
     0, &constant_impl,
     .history = "12:+value_float:f +value_floats:fs +value_int:i +value_ints:is +value_string:s "
                "+value_strings:ss 13:T+bf16 19:T+F8 21:T+Q4 23:T+f4e2m1 24:T+f8e8m0 25:T+Q2"},
    {ONNX, "ConstantOfShape", 9, "input:T1 -> output:T2", "T1:i64 T2:F,I,U,bool", "value:t",
     0, &fill_impl, .history = "20:T2+F8,bf16 21:T2+Q4 23:T2+f4e2m1 24:T2+f8e8m0 25:T2+Q2"},
    {ONNX, "EyeLike", 9, "input:T1 -> output:T2", "T1:F,I,U,bool T2:F,I,U,bool", "dtype:i k:i=0",
     0, &eye_impl, .history = "22:T1+bf16 T2+bf16"},
    {ONNX, "Range", 11, "start:T,limit:T,delta:T -> output:T", "T:f32,f64,i16,i32,i64", "",
     0, &range_impl, .history = "27:T+f16,bf16 +stash_type:i=1"},
    {MS, "Range", 1, "start:T,limit:T,delta?:T -> Y:T", "T:f32,f64,i16,i32,i64", "", 0,
     &range_impl},
    {0},
};
