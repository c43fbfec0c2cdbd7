/* topk.c - operators that order elements: TopK, Unique, NonZero.
 *
 * Invariant: elements are compared through order-preserving unsigned keys (TopK) or one comparison
 * function per type (Unique); NaN is above everything and equal to itself, -0 equals 0, ties go to
 * the lower index. Results do not depend on the number of threads.
 */
#include <math.h>
#include <string.h>

#include "base/budget.h"
#include "base/checked.h"
#include "base/num.h"
#include "op/shared/move.h"

/* ---- keys: larger key, larger element */

static inline uint64_t key_f64(double v)
{
    uint64_t bits;
    if (isnan(v))
        return UINT64_MAX;
    v += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static inline uint64_t key_f32(float v)
{
    uint32_t bits;
    if (isnan(v))
        return UINT64_MAX;
    v += 0.0f;
    memcpy(&bits, &v, sizeof bits);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}

static inline uint64_t key_i64(int64_t v)
{
    return (uint64_t)v ^ (uint64_t)1 << 63;
}

static inline uint64_t key_u64(uint64_t v)
{
    return v;
}

static inline uint64_t key_f16(uint16_t v)
{
    return key_f32(ort_f16_to_f32(v));
}

static inline uint64_t key_bf16(uint16_t v)
{
    return key_f32(ort_bf16_to_f32(v));
}

/* ---- TopK */

typedef struct entry {
    uint64_t key;
    int64_t index;
} entry;

/* a ranks behind b. */
static inline bool behind(entry a, entry b)
{
    return a.key != b.key ? a.key < b.key : a.index > b.index;
}

/* Restore the heap whose root is the last-ranked entry. */
static void sift(entry *heap, int64_t count, int64_t at)
{
    entry moving = heap[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && behind(heap[child + 1], heap[child]))
            child++;
        if (!behind(heap[child], moving))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moving;
}

/* flip: all ones to rank the smallest first. */
#define SELECT(name, type, key_of)                                                                 \
    static void name(const void *data, int64_t n, int64_t stride, uint64_t flip, entry *heap,      \
                     int64_t k)                                                                    \
    {                                                                                              \
        const type *p = data;                                                                      \
        for (int64_t i = 0; i < k; i++)                                                            \
            heap[i] = (entry){key_of(p[i * stride]) ^ flip, i};                                    \
        for (int64_t i = k / 2 - 1; i >= 0; i--)                                                   \
            sift(heap, k, i);                                                                      \
        for (int64_t i = k; i < n; i++) {                                                          \
            uint64_t key = key_of(p[i * stride]) ^ flip;                                           \
            if (key > heap[0].key) {                                                               \
                heap[0] = (entry){key, i};                                                         \
                sift(heap, k, 0);                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

SELECT(select_f32, float, key_f32)
SELECT(select_f64, double, key_f64)
SELECT(select_f16, uint16_t, key_f16)
SELECT(select_bf16, uint16_t, key_bf16)
SELECT(select_i8, int8_t, key_i64)
SELECT(select_i16, int16_t, key_i64)
SELECT(select_i32, int32_t, key_i64)
SELECT(select_i64, int64_t, key_i64)
SELECT(select_u8, uint8_t, key_u64)
SELECT(select_u16, uint16_t, key_u64)
SELECT(select_u32, uint32_t, key_u64)
SELECT(select_u64, uint64_t, key_u64)

typedef void select_fn(const void *data, int64_t n, int64_t stride, uint64_t flip, entry *heap,
                       int64_t k);

static const struct {
    ort_dtype dtype;
    select_fn *fn;
} selects[] = {
    {ORT_DTYPE_FLOAT, select_f32},   {ORT_DTYPE_DOUBLE, select_f64},
    {ORT_DTYPE_FLOAT16, select_f16}, {ORT_DTYPE_BFLOAT16, select_bf16},
    {ORT_DTYPE_INT8, select_i8},     {ORT_DTYPE_INT16, select_i16},
    {ORT_DTYPE_INT32, select_i32},   {ORT_DTYPE_INT64, select_i64},
    {ORT_DTYPE_UINT8, select_u8},    {ORT_DTYPE_UINT16, select_u16},
    {ORT_DTYPE_UINT32, select_u32},  {ORT_DTYPE_UINT64, select_u64},
};

typedef struct topk_state {
    select_fn *select;
    int64_t axis;
    bool largest;
} topk_state;

static const ort_bind topk_bind[] = {
    ORT_BIND(topk_state, axis), ORT_BIND(topk_state, largest, ORT_ELSE(1)), {0}};

static ort_status topk_infer(ort_infer *x, ort_error *err)
{
    ort_dim k = ort_dim_of(ort_node_int(x->node, "k", -1));
    int axis;
    if (x->op->since >= 10 && ort_dim_differ(ort_infer_dim(x, 1, 0), ort_dim_of(1)))
        return ort_infer_fail(x, err, "input 1 (K) has several elements; one is needed");
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    ort_type type = x->in[0]->type;
    ORT_TRY(ort_infer_axis(x, ort_node_attr_int(x->node, "axis"), type.rank, &axis, err));
    if (x->op->since >= 10 && !ort_infer_int(x, 1, 0, &k))
        k = ort_dim_unknown();
    if (ort_dim_known(k) && k.size < 0)
        return ort_infer_fail(x, err, "k is %lld; it must not be negative", (long long)k.size);
    if (ort_dim_known(k) && ort_dim_known(type.dim[axis]) && k.size > type.dim[axis].size)
        return ort_infer_fail(x, err, "k is %lld, axis %d has %lld elements", (long long)k.size,
                              axis, (long long)type.dim[axis].size);
    type.dim[axis] = k;
    ort_infer_set_shape(x, 0, type.rank, type.dim);
    ort_infer_set_shape(x, 1, type.rank, type.dim);
    return ORT_OK;
}

static ort_status topk_prepare(ort_prep *p, ort_error *err)
{
    topk_state *state = p->state;
    for (size_t i = 0; i < sizeof selects / sizeof *selects; i++)
        if (selects[i].dtype == ort_prep_dtype(p, 0))
            state->select = selects[i].fn;
    return state->select ? ORT_OK : ort_prep_unsupported_dtype(p, 0, err);
}

static ort_status topk_shape(ort_shaping *s, ort_error *err)
{
    const topk_state *state = s->state;
    const ort_shape *shape = &s->in[0]->shape;
    int64_t axis = state->axis < 0 ? state->axis + shape->rank : state->axis;
    s->thread_bytes = (size_t)shape->dim[axis] * sizeof(entry);
    if (s->out[0])
        s->thread_bytes = (size_t)s->out[0]->shape.dim[axis] * sizeof(entry);
    return ORT_OK;
}

typedef struct topk_job {
    const ort_call *call;
    const topk_state *state;
    const ort_tensor *in;
    ort_tensor *values, *indices;
    int64_t n, k, inner;
} topk_job;

static void topk_row(const topk_job *job, int64_t row, entry *heap)
{
    int64_t base = row / job->inner * job->n * job->inner + row % job->inner;
    int64_t to = row / job->inner * job->k * job->inner + row % job->inner;
    size_t bytes = ort_move_element_bytes(job->in->dtype);
    job->state->select((const char *)job->in->data + base * (int64_t)bytes, job->n, job->inner,
                       job->state->largest ? 0 : UINT64_MAX, heap, job->k);
    for (int64_t i = job->k - 1; i >= 0; i--) {
        entry last = heap[0];
        heap[0] = heap[i];
        if (i > 0)
            sift(heap, i, 0);
        if (job->values)
            ort_move_span(job->in->dtype, job->values->data, to + i * job->inner, job->in->data,
                          base + last.index * job->inner, 1);
        if (job->indices)
            ((int64_t *)job->indices->data)[to + i * job->inner] = last.index;
    }
}

static void topk_task(void *arg, int64_t first, int64_t end, int thread)
{
    const topk_job *job = arg;
    for (int64_t row = first; row < end; row++)
        topk_row(job, row, ort_call_scratch(job->call, thread));
}

static ort_status topk_run(ort_call *call, ort_error *err)
{
    const topk_state *state = call->state;
    topk_job job = {.call = call, .state = state, .in = ort_call_in(call, 0)};
    const ort_shape *shape = &job.in->shape;
    int64_t axis = state->axis < 0 ? state->axis + shape->rank : state->axis;
    job.values = ort_call_out(call, 0);
    job.indices = ort_call_out(call, 1);
    const ort_tensor *any = job.values ? job.values : job.indices;
    job.n = shape->dim[axis];
    job.k = any ? any->shape.dim[axis] : 0;
    if (job.k > job.n)
        return ort_call_fail(call, err, "k is %lld, the axis has %lld elements", (long long)job.k,
                             (long long)job.n);
    job.inner = ort_shape_count_range(shape, (int)axis + 1, shape->rank);
    if (job.k > 0)
        ort_call_range(call, ort_shape_count_range(shape, 0, (int)axis) * job.inner,
                       ort_max_i64(1, 16384 / ort_max_i64(1, job.n)), topk_task, &job);
    return ORT_OK;
}

static const ort_op_impl topk_impl = {
    .state = sizeof(topk_state), .bind = topk_bind, .rule = "- [_]", .infer = topk_infer,
    .prepare = topk_prepare, .shape = topk_shape, .run = topk_run,
};

/* ---- NonZero */

static ort_status nonzero_infer(ort_infer *x, ort_error *err)
{
    ort_dim dims[2] = {ort_dim_unknown(), ort_dim_unknown()};
    if (ort_infer_in_ranked(x, 0))
        dims[0] = ort_dim_of(x->in[0]->type.rank);
    ort_infer_set_shape(x, 0, 2, dims);
    return ORT_OK;
}

#define FIND(type, test)                                                                           \
    do {                                                                                           \
        const type *p = in->data;                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const type v = p[i];                                                                   \
            if (test) {                                                                            \
                if (at)                                                                            \
                    at[found] = i;                                                                 \
                found++;                                                                           \
            }                                                                                      \
        }                                                                                          \
    } while (0)

typedef struct pair32 {
    float re, im;
} pair32;
typedef struct pair64 {
    double re, im;
} pair64;

/* Number of elements that are not zero; their positions into at[] when it is given. */
static int64_t find_nonzero(const ort_tensor *in, int64_t *at)
{
    int64_t n = ort_tensor_count(in), found = 0;
    switch (in->dtype) {
    case ORT_DTYPE_FLOAT: FIND(float, v != 0); break;
    case ORT_DTYPE_DOUBLE: FIND(double, v != 0); break;
    case ORT_DTYPE_FLOAT16:
    case ORT_DTYPE_BFLOAT16: FIND(uint16_t, (v & 0x7fff) != 0); break;
    case ORT_DTYPE_STRING: FIND(ort_string, v.length != 0); break;
    case ORT_DTYPE_COMPLEX64: FIND(pair32, v.re != 0 || v.im != 0); break;
    case ORT_DTYPE_COMPLEX128: FIND(pair64, v.re != 0 || v.im != 0); break;
    default:
        switch (ort_move_element_bytes(in->dtype)) {
        case 1: FIND(uint8_t, v != 0); break;
        case 2: FIND(uint16_t, v != 0); break;
        case 4: FIND(uint32_t, v != 0); break;
        default: FIND(uint64_t, v != 0); break;
        }
    }
    return found;
}

static ort_status nonzero_run(ort_call *call, ort_error *err)
{
    const ort_tensor *in = ort_call_in(call, 0);
    int64_t count = find_nonzero(in, NULL);
    int rank = in->shape.rank;
    ort_shape shape = ort_shape_make(2, (int64_t[]){rank, count});
    ORT_TRY(ort_call_output(call, 0, ORT_DTYPE_INT64, &shape, err));
    if (count == 0 || rank == 0)
        return ORT_OK;
    int64_t *out = ort_call_out(call, 0)->data;
    find_nonzero(in, out); /* flat positions in the first row, taken apart in place */
    int64_t index[ORT_MAX_RANK] = {0}, last = rank - 1, row = -1, width = in->shape.dim[last];
    for (int64_t i = 0; i < count; i++) {
        int64_t at = out[i];
        if (row < 0 || at - row >= width) { /* another row of the last axis */
            int64_t rest = at / width;
            row = rest * width;
            for (int64_t d = last - 1; d >= 0; d--) {
                index[d] = rest % in->shape.dim[d];
                rest /= in->shape.dim[d];
            }
        }
        for (int64_t d = 0; d < last; d++)
            out[d * count + i] = index[d];
        out[last * count + i] = at - row;
    }
    return ORT_OK;
}

static const ort_op_impl nonzero_impl = {.infer = nonzero_infer, .run = nonzero_run};

/* ---- Unique */

typedef struct unique_state {
    bool has_axis, sorted;
    int64_t axis;
    int first_out, inverse_out, count_out; /* -1: the operator has none */
} unique_state;

static const ort_bind unique_bind[] = {
    ORT_BIND_HAS(unique_state, has_axis, "axis"), ORT_BIND(unique_state, axis, ORT_MAYBE),
    ORT_BIND(unique_state, sorted, ORT_MAYBE), {0}};

static ort_status unique_infer(ort_infer *x, ort_error *err)
{
    ort_dim unknown = ort_dim_unknown(), total = ort_dim_unknown();
    int axis;
    bool ranked = ort_infer_in_ranked(x, 0);
    if (!ort_node_has(x->node, "axis")) {
        ort_infer_set_shape(x, 0, 1, &unknown);
        if (ranked)
            total = ort_dim_of(1);
        for (int d = 0; ranked && d < x->in[0]->type.rank; d++)
            total = ort_dim_mul(x->dims, total, x->in[0]->type.dim[d]);
    } else if (ranked) {
        ort_type type = x->in[0]->type;
        ORT_TRY(ort_infer_axis(x, ort_node_attr_int(x->node, "axis"), type.rank, &axis, err));
        total = type.dim[axis];
        type.dim[axis] = unknown;
        ort_infer_set_shape(x, 0, type.rank, type.dim);
    }
    int inverse = !strcmp(x->op->domain, MS) ? 1 : 2;
    for (int i = 1; i < x->out_count; i++)
        ort_infer_set_shape(x, i, 1, i == inverse ? &total : &unknown);
    return ORT_OK;
}

static ort_status unique_prepare(ort_prep *p, ort_error *err)
{
    unique_state *state = p->state;
    state->first_out = 1;
    state->inverse_out = 2;
    state->count_out = 3;
    return ORT_OK;
}

/* com.microsoft: in the order of occurrence, without the places of first occurrence. */
static ort_status occurrence_prepare(ort_prep *p, ort_error *err)
{
    unique_state *state = p->state;
    state->first_out = -1;
    state->inverse_out = 1;
    state->count_out = 2;
    return ORT_OK;
}

/* The input as `outer` x `n` items x `inner`; item i is the slab [:, i, :]. */
typedef struct items {
    const ort_tensor *in;
    int64_t outer, n, inner;
} items;

static items items_of(const unique_state *state, const ort_tensor *in)
{
    items it = {in, 1, ort_tensor_count(in), 1};
    if (state->has_axis) {
        int axis = (int)(state->axis < 0 ? state->axis + in->shape.rank : state->axis);
        it.outer = ort_shape_count_range(&in->shape, 0, axis);
        it.n = in->shape.dim[axis];
        it.inner = ort_shape_count_range(&in->shape, axis + 1, in->shape.rank);
    }
    return it;
}

static ort_status unique_shape(ort_shaping *s, ort_error *err)
{
    items it = items_of(s->state, s->in[0]);
    s->workspace_bytes = 5 * (size_t)it.n * sizeof(int64_t);
    return ORT_OK;
}

static int compare_text(ort_string a, ort_string b)
{
    size_t n = a.length < b.length ? a.length : b.length;
    int order = n == 0 ? 0 : memcmp(a.ptr, b.ptr, n);
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static uint64_t element_key(const ort_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case ORT_DTYPE_FLOAT: return key_f32(((const float *)t->data)[i]);
    case ORT_DTYPE_DOUBLE: return key_f64(((const double *)t->data)[i]);
    case ORT_DTYPE_FLOAT16:
    case ORT_DTYPE_BFLOAT16: return key_f64(ort_tensor_get_f64(t, i));
    case ORT_DTYPE_UINT64: return ((const uint64_t *)t->data)[i];
    default: return key_i64(ort_tensor_get_i64(t, i));
    }
}

static int compare_keys(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_elements(const ort_tensor *t, int64_t a, int64_t b)
{
    int order;
    switch (t->dtype) {
    case ORT_DTYPE_STRING:
        return compare_text(((const ort_string *)t->data)[a], ((const ort_string *)t->data)[b]);
    case ORT_DTYPE_COMPLEX64: {
        const pair32 *p = t->data;
        order = compare_keys(key_f32(p[a].re), key_f32(p[b].re));
        return order ? order : compare_keys(key_f32(p[a].im), key_f32(p[b].im));
    }
    case ORT_DTYPE_COMPLEX128: {
        const pair64 *p = t->data;
        order = compare_keys(key_f64(p[a].re), key_f64(p[b].re));
        return order ? order : compare_keys(key_f64(p[a].im), key_f64(p[b].im));
    }
    default:
        return compare_keys(element_key(t, a), element_key(t, b));
    }
}

static int compare_items(const items *it, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < it->outer; o++)
        for (int64_t j = 0; j < it->inner; j++) {
            int order = compare_elements(it->in, (o * it->n + a) * it->inner + j,
                                         (o * it->n + b) * it->inner + j);
            if (order)
                return order;
        }
    return 0;
}

/* Stable merge sort of order[0..n) with `spare` of equal size; unfinished when work is stopped. */
static void sort_items(const items *it, int64_t *order, int64_t *spare, int64_t n)
{
    uint64_t steps = (uint64_t)ort_max_i64(1, ort_min_i64(it->outer * it->inner, ORT_PACE_STEPS));
    ort_pace pace = {0};
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t first = 0; first < n; first += 2 * width) {
            int64_t middle = ort_min_i64(first + width, n), end = ort_min_i64(first + 2 * width, n);
            int64_t a = first, b = middle;
            for (int64_t i = first; i < end; i++) {
                bool left = a < middle && (b >= end || compare_items(it, order[a], order[b]) <= 0);
                spare[i] = left ? order[a++] : order[b++];
                if (ort_pace_over(&pace, steps))
                    return;
            }
        }
        memcpy(order, spare, (size_t)n * sizeof *order);
    }
}

/* Groups in sorted order: first[g] (lowest index), count[g], group_of[i]; returns their number. */
static int64_t group_items(const items *it, int64_t *order, int64_t *spare, int64_t *first,
                           int64_t *count, int64_t *group_of)
{
    int64_t groups = 0;
    for (int64_t i = 0; i < it->n; i++)
        order[i] = i;
    sort_items(it, order, spare, it->n);
    for (int64_t i = 0; i < it->n; i++) {
        if (i == 0 || compare_items(it, order[i - 1], order[i]) != 0) {
            first[groups] = order[i];
            count[groups++] = 0;
        }
        count[groups - 1]++;
        group_of[order[i]] = groups - 1;
    }
    return groups;
}

/* Renumber groups by first occurrence; `place` (n) and `spare` are scratch. */
static void order_by_occurrence(int64_t n, int64_t groups, int64_t *place, int64_t *spare,
                                int64_t *first, int64_t *count, int64_t *group_of)
{
    int64_t next = 0;
    if (n == 0) /* without a table of any */
        return;
    for (int64_t i = 0; i < n; i++)
        if (first[group_of[i]] == i)
            place[group_of[i]] = next++;
    for (int64_t g = 0; g < groups; g++)
        spare[place[g]] = first[g];
    memcpy(first, spare, (size_t)groups * sizeof *first);
    for (int64_t g = 0; g < groups; g++)
        spare[place[g]] = count[g];
    memcpy(count, spare, (size_t)groups * sizeof *count);
    for (int64_t i = 0; i < n; i++)
        group_of[i] = place[group_of[i]];
}

static ort_status put_numbers(ort_call *call, int output, const int64_t *numbers, int64_t count,
                              ort_error *err)
{
    ort_shape shape = ort_shape_make(1, &count);
    if (output < 0 || output >= call->out_count || !call->out[output])
        return ORT_OK;
    ORT_TRY(ort_call_output(call, output, ORT_DTYPE_INT64, &shape, err));
    if (count > 0)
        memcpy(ort_call_out(call, output)->data, numbers, (size_t)count * sizeof *numbers);
    return ORT_OK;
}

static ort_status unique_run(ort_call *call, ort_error *err)
{
    const unique_state *state = call->state;
    const ort_tensor *in = ort_call_in(call, 0);
    items it = items_of(state, in);
    int64_t *order = call->workspace, *spare = order + it.n, *first = spare + it.n;
    int64_t *count = first + it.n, *group_of = count + it.n;
    int64_t groups = group_items(&it, order, spare, first, count, group_of);
    if (!state->sorted)
        order_by_occurrence(it.n, groups, order, spare, first, count, group_of);
    ort_shape shape = state->has_axis ? in->shape : ort_shape_make(1, &groups);
    if (state->has_axis)
        shape.dim[state->axis < 0 ? state->axis + in->shape.rank : state->axis] = groups;
    if (call->out[0]) {
        ORT_TRY(ort_call_output(call, 0, in->dtype, &shape, err));
        for (int64_t o = 0; o < it.outer; o++)
            for (int64_t g = 0; g < groups; g++)
                ort_move_span(in->dtype, ort_call_out(call, 0)->data, (o * groups + g) * it.inner,
                              in->data, (o * it.n + first[g]) * it.inner, it.inner);
    }
    ORT_TRY(put_numbers(call, state->first_out, first, groups, err));
    ORT_TRY(put_numbers(call, state->inverse_out, group_of, it.n, err));
    return put_numbers(call, state->count_out, count, groups, err);
}

static const ort_op_impl unique_impl = {
    .state = sizeof(unique_state), .bind = unique_bind,
    .infer = unique_infer, .prepare = unique_prepare, .shape = unique_shape, .run = unique_run,
};
static const ort_op_impl occurrence_impl = {
    .state = sizeof(unique_state), .bind = unique_bind,
    .infer = unique_infer, .prepare = occurrence_prepare, .shape = unique_shape, .run = unique_run,
};

const ort_op ort_ops_topk[] = {
    {ONNX, "TopK", 1, "X:T -> Values:T,Indices:I", "T:F I:i64", "axis:i=-1 k:i!", 0, &topk_impl},
    {ONNX, "TopK", 10, "X:T,K:i64 -> Values:T,Indices:I", "T:F I:i64", "axis:i=-1", 0, &topk_impl,
     .history = "11:T+I,U +largest:i=1 +sorted:i=1 24:T+bf16"},
    {ONNX, "NonZero", 9, "X:T -> Y:i64", "T:F,I,U,C,str,bool", "",
     ORT_TRAIT_DYNAMIC, &nonzero_impl, .history = "13:T+bf16"},
    {ONNX, "Unique", 11, "X:T -> Y:T,indices?:i64,inverse_indices?:i64,counts?:i64",
     "T:F,I,U,C,str,bool", "axis:i sorted:i=1", ORT_TRAIT_DYNAMIC, &unique_impl,
     .history = "28:T+bf16"},
    {MS, "Unique", 1, "x:T -> y:T,idx:i64,counts:i64", "T:F,I,U,C,str,bool", "",
     ORT_TRAIT_DYNAMIC, &occurrence_impl},
    {0},
};
