/* sparse_matmul.c - SparseToDenseMatMul of com.microsoft: a sparse matrix times a dense one.
 *
 * A value is always dense here (import makes sparse initializers so, and a sparse input of a graph
 * is fed with a dense tensor); what A doesn't hold, its zeros, is skipped all the same: 0 x inf
 * adds nothing. The places of a constant A's other elements are found once, in the order of the
 * rows of the result. alpha scales floats only, as in onnxruntime.
 */
#include <string.h>

#include "op/op.h"

typedef struct place { /* of an element of A */
    int64_t at, k;     /* in A's data, and the row of op(B) that it multiplies */
} place;

typedef struct sparse_state {
    bool trans_a, trans_b;
    float alpha;
    const int64_t *first; /* [rows + 1] in places of each row of op(A); NULL: A isn't constant */
    const place *places;
} sparse_state;

static const ort_bind sparse_bind[] = {
    ORT_BIND_AS(sparse_state, trans_a, "transA"),
    ORT_BIND_AS(sparse_state, trans_b, "transB"),
    ORT_BIND(sparse_state, alpha), {0}};

/* ---- inference */

/* A dim of A, which may be declared sparse. */
static ort_dim dim_of_a(const ort_infer *x, int axis)
{
    const ort_fact *a = ort_infer_in(x, 0);
    return a && a->type.rank == 2 ? a->type.dim[axis] : ort_dim_unknown();
}

static ort_status sparse_infer(ort_infer *x, ort_error *err)
{
    bool trans_a = ort_node_attr_int(x->node, "transA") != 0;
    bool trans_b = ort_node_attr_int(x->node, "transB") != 0;
    ort_dim inner = dim_of_a(x, !trans_a), other = ort_infer_dim(x, 1, trans_b);
    if (ort_dim_differ(inner, other))
        return ort_infer_fail(x, err, "A has %lld columns, B %lld rows", (long long)inner.size,
                              (long long)other.size);
    ort_infer_set_shape(x, 0, 2, (ort_dim[]){dim_of_a(x, trans_a), ort_infer_dim(x, 1, !trans_b)});
    return ORT_OK;
}

/* ---- prepare */

static bool is_zero(const ort_tensor *a, int64_t at)
{
    switch (a->dtype) {
    case ORT_DTYPE_FLOAT: return ((const float *)a->data)[at] == 0;
    case ORT_DTYPE_DOUBLE: return ((const double *)a->data)[at] == 0;
    case ORT_DTYPE_INT32:
    case ORT_DTYPE_UINT32: return ((const uint32_t *)a->data)[at] == 0;
    default: return ((const uint64_t *)a->data)[at] == 0;
    }
}

/* Position in A's data of element (row, k) of op(A). */
static int64_t position(const sparse_state *s, const ort_shape *a, int64_t row, int64_t k)
{
    return s->trans_a ? k * a->dim[1] + row : row * a->dim[1] + k;
}

static ort_status find_places(ort_prep *p, sparse_state *s, const ort_tensor *a, ort_error *err)
{
    int64_t rows = a->shape.dim[s->trans_a], depth = a->shape.dim[!s->trans_a], count = 0;
    for (int64_t i = 0; i < rows * depth; i++)
        count += !is_zero(a, i);
    /* Not for a pack file: damage there would be read outside of A. */
    int64_t *first = ort_arena_array(p->arena, (size_t)rows + 1, sizeof *first);
    place *places = ort_arena_array(p->arena, (size_t)count + 1, sizeof *places);
    if (!first || !places)
        return ort_error_memory(err, (size_t)(count + 1) * sizeof *places);
    count = 0;
    for (int64_t row = 0; row < rows; row++) {
        first[row] = count;
        for (int64_t k = 0; k < depth; k++) {
            int64_t at = position(s, &a->shape, row, k);
            if (!is_zero(a, at))
                places[count++] = (place){at, k};
        }
    }
    first[rows] = count;
    s->first = first;
    s->places = places;
    return ORT_OK;
}

static ort_status sparse_prepare(ort_prep *p, ort_error *err)
{
    const ort_tensor *a = ort_prep_constant(p, 0);
    return a && a->shape.rank == 2 ? find_places(p, p->state, a, err) : ORT_OK;
}

/* ---- run */

typedef struct sparse_job {
    const sparse_state *s;
    const ort_tensor *a, *b;
    ort_tensor *y;
    int64_t depth, n;
} sparse_job;

/* y[j] += scale * a[at] * op(B)[k][j]; `type` is unsigned for integers: sums wrap. */
#define ADD_ROW(name, type, scale)                                                                 \
    static void name(const sparse_job *j, int64_t row, int64_t at, int64_t k)                      \
    {                                                                                              \
        type v = (type)(scale(j->s) * ((const type *)j->a->data)[at]);                             \
        const type *b = (const type *)j->b->data + (j->s->trans_b ? k : k * j->n);                 \
        type *y = (type *)j->y->data + row * j->n;                                                 \
        int64_t step = j->s->trans_b ? j->depth : 1;                                               \
        for (int64_t i = 0; i < j->n; i++)                                                         \
            y[i] += v * b[i * step];                                                               \
    }
#define ALPHA(s) (s)->alpha
#define ONE(s) 1

ADD_ROW(add_f32, float, ALPHA)
ADD_ROW(add_f64, double, ONE)
ADD_ROW(add_u32, uint32_t, ONE)
ADD_ROW(add_u64, uint64_t, ONE)

static void row_task(void *arg, size_t task, int thread)
{
    const sparse_job *j = arg;
    int64_t row = (int64_t)task;
    ort_dtype dtype = j->y->dtype;
    void (*add)(const sparse_job *, int64_t, int64_t, int64_t) =
        dtype == ORT_DTYPE_FLOAT ? add_f32 : dtype == ORT_DTYPE_DOUBLE ? add_f64
        : ort_dtype_get(dtype)->bits == 32 ? add_u32 : add_u64;
    size_t bytes = (size_t)(j->n * ort_dtype_get(dtype)->bits / 8);
    memset((char *)j->y->data + (size_t)row * bytes, 0, bytes);
    if (j->s->first) {
        for (int64_t i = j->s->first[row]; i < j->s->first[row + 1]; i++)
            add(j, row, j->s->places[i].at, j->s->places[i].k);
        return;
    }
    for (int64_t k = 0; k < j->depth; k++) {
        int64_t at = position(j->s, &j->a->shape, row, k);
        if (!is_zero(j->a, at))
            add(j, row, at, k);
    }
}

static ort_status sparse_run(ort_call *call, ort_error *err)
{
    sparse_job j = {.s = call->state, .a = ort_call_in(call, 0), .b = ort_call_in(call, 1),
                    .y = ort_call_out(call, 0)};
    if (j.a->shape.rank != 2 || j.b->shape.rank != 2 || j.a->dtype != j.b->dtype)
        return ort_call_fail(call, err, "A and B need two dims and the same element type");
    j.depth = j.a->shape.dim[!j.s->trans_a];
    j.n = j.b->shape.dim[!j.s->trans_b];
    if (j.b->shape.dim[j.s->trans_b] != j.depth)
        return ort_call_fail(call, err, "A has %lld columns, B %lld rows", (long long)j.depth,
                             (long long)j.b->shape.dim[j.s->trans_b]);
    ort_call_parallel(call, (size_t)j.y->shape.dim[0], row_task, &j);
    return ORT_OK;
}

static const ort_op_impl sparse_impl = {
    .state = sizeof(sparse_state), .bind = sparse_bind,
    .rule = "[_,_] [_,_]", .infer = sparse_infer, .prepare = sparse_prepare, .run = sparse_run,
};

const ort_op ort_ops_sparse_matmul[] = {
    {MS, "SparseToDenseMatMul", 1, "A:T,B:T1 -> Y:T1",
     "T:f32,f64,i32,i64,u32,u64,sparse(f32,f64,i32,i64,u32,u64) T1:f32,f64,i32,i64,u32,u64",
     "alpha:f=1 transA:i=0 transB:i=0", 0, &sparse_impl},
    {0},
};
