/* moments.c - runs of a model whose products' inputs are watched, and sums over their rows. */
#include "quantize/weights/moments.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { SLAB_BYTES = 4 << 20 }; /* of sums that are added at a time */

static ort_status take_room(ort_moments *m, size_t bytes, ort_blob **blob, void *room,
                            ort_error *err)
{
    *blob = NULL;
    if (m->spool)
        ORT_TRY(ort_spool_share(m->spool, bytes, blob, err));
    void *data = *blob ? (void *)(uintptr_t)(*blob)->bytes : calloc(1, bytes);
    memcpy(room, &data, sizeof data);
    return data ? ORT_OK : ort_error_memory(err, bytes);
}

static void give_room(ort_blob *blob, void *data)
{
    if (!blob)
        free(data);
    ort_blob_release(blob);
}

ort_status ort_moments_open(ort_moments *m, const char *folder, size_t most, ort_error *err)
{
    if (folder)
        ORT_TRY(ort_spool_new(folder, &m->spool, err));
    return take_room(m, (most + 1) * sizeof *m->counts, &m->counted, &m->counts, err);
}

ort_status ort_moments_env(ort_moments *m, int threads, ort_error *err)
{
    ort_env_options options = ORT_ENV_OPTIONS_INIT;
    options.isa = ort_quantize_tier();
    options.threads = threads;
    return m->env ? ORT_OK : ort_env_new(&options, &m->env, err);
}

void ort_moments_close_session(ort_moments *m)
{
    ort_exec_session_release(m->session);
    m->session = NULL;
}

void ort_moments_release(ort_moments *m)
{
    ort_moments_close_session(m);
    for (size_t i = 0; i < m->list.count; i++) {
        give_room(m->list.data[i].blob, m->list.data[i].sum);
        free(m->list.data[i].order);
    }
    give_room(m->counted, m->counts);
    ort_spool_free(m->spool);
    ort_vec_release(&m->list);
    ort_vec_release(&m->watched);
    ort_hashmap_release(&m->by_name);
    ort_env_free(m->env);
}

ort_status ort_moments_add(ort_moments *m, const char *name, int64_t k, size_t *at, ort_error *err)
{
    ort_moment one = {.name = name, .k = k};
    const size_t bytes = (size_t)(k * k) * sizeof(float);
    uint64_t have;
    if (ort_hashmap_get_str(&m->by_name, name, &have)) {
        *at = have;
        return ORT_OK;
    }
    *at = m->list.count;
    one.rows = &m->counts[1 + *at];
    ORT_TRY(take_room(m, bytes, &one.blob, &one.sum, err));
    if (ort_vec_push(&m->list, one)) {
        if (ort_hashmap_put_str(&m->by_name, name, *at))
            return ORT_OK;
    } else {
        give_room(one.blob, one.sum);
    }
    return ort_error_memory(err, bytes);
}

static void forget(const ort_moment *one, int64_t first, int64_t count)
{
    const size_t row = (size_t)one->k * sizeof *one->sum;
    if (one->blob)
        ort_blobs_forget(&one->blob, 1, one->sum + first * one->k, (size_t)count * row);
}

void ort_moment_forget(const ort_moment *one)
{
    forget(one, 0, one->k);
}

void ort_moment_mirror(ort_moment *one)
{
    for (int64_t i = 0; i < one->k; i++)
        for (int64_t j = 0; j < i; j++)
            one->sum[j * one->k + i] = one->sum[i * one->k + j];
}

/* ---- products */

ort_status ort_moments_multiply(ort_env *env, const float *a, bool turned, const float *b,
                                int64_t m, int64_t k, int64_t n, ort_value **product,
                                ort_error *err)
{
    const int64_t left[2] = {turned ? k : m, turned ? m : k}, right[2] = {k, n};
    const ort_attribute_spec turn = {.name = "transA", .kind = 'i', .i = turned};
    ort_value *inputs[2] = {NULL, NULL};
    *product = NULL;
    ort_status status = ort_value_new_borrowed(ORT_DTYPE_FLOAT, 2, left, (void *)(uintptr_t)a,
                                               (size_t)(m * k) * sizeof *a, &inputs[0], err);
    if (status == ORT_OK)
        status = ort_value_new_borrowed(ORT_DTYPE_FLOAT, 2, right, (void *)(uintptr_t)b,
                                        (size_t)(k * n) * sizeof *b, &inputs[1], err);
    if (status == ORT_OK)
        status = ort_op_run(env, "", "Gemm", 13, &turn, 1, inputs, 2, product, 1, err);
    ort_value_free(inputs[0]);
    ort_value_free(inputs[1]);
    return status;
}

/* ---- sums */

/* Rows of the sum, so many columns of them. */
typedef struct adding {
    float *to;
    const float *from;
    int64_t stride, columns;
} adding;

static void add_row(void *arg, size_t row, int thread)
{
    const adding *a = arg;
    float *to = a->to + (int64_t)row * a->stride;
    const float *from = a->from + (int64_t)row * a->columns;
    (void)thread;
    for (int64_t i = 0; i < a->columns; i++)
        to[i] += from[i];
}

/* Columns [first, first + count) of x as a matrix of their own. */
static void take_columns(const float *x, int64_t rows, int64_t k, int64_t first, int64_t count,
                         float *to)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + r * count, x + r * k + first, (size_t)count * sizeof *to);
}

/* Rows [at, at + some) of the sum gain products of columns: those up to the diagonal, for the sum
 * is symmetric. */
static ort_status add_slab(ort_moments *m, ort_moment *one, const float *x, int64_t rows,
                           int64_t at, int64_t some, float *room, ort_error *err)
{
    const int64_t width = at + some;
    float *left = room, *right = room + rows * some;
    ort_value *product;
    take_columns(x, rows, one->k, at, some, left);
    take_columns(x, rows, one->k, 0, width, right);
    ORT_TRY(ort_moments_multiply(m->env, left, true, right, some, rows, width, &product, err));
    adding a = {one->sum + at * one->k, ort_value_data(product), one->k, width};
    ort_pool_run(m->env->pool, (size_t)some, add_row, &a);
    ort_value_free(product);
    forget(one, at, some);
    return ORT_OK;
}

static ort_status add_rows(ort_moments *m, ort_moment *one, const float *x, int64_t rows,
                           ort_error *err)
{
    int64_t slab = SLAB_BYTES / ((int64_t)sizeof *x * one->k);
    slab = slab < 64 ? 64 : slab;
    const size_t bytes = (size_t)(rows * (slab + one->k)) * sizeof *x;
    float *room = malloc(bytes);
    ort_status status = room ? ORT_OK : ort_error_memory(err, bytes);
    for (int64_t at = 0; at < one->k && status == ORT_OK; at += slab)
        status = add_slab(m, one, x, rows, at, one->k - at < slab ? one->k - at : slab, room, err);
    free(room);
    *one->rows += rows;
    return status;
}

static ort_status add_value(ort_moments *m, ort_moment *one, const ort_tensor *t, ort_error *err)
{
    const int64_t count = ort_tensor_count(t), rows = count / one->k;
    if (t->shape.rank < 1 || t->shape.dim[t->shape.rank - 1] != one->k || rows == 0)
        return ORT_OK;
    if (t->dtype == ORT_DTYPE_FLOAT)
        return add_rows(m, one, t->data, rows, err);
    float *floats = malloc((size_t)count * sizeof *floats);
    if (!floats)
        return ort_error_memory(err, (size_t)count * sizeof *floats);
    ort_tensor_to_f32(t, 0, count, floats);
    ort_status status = add_rows(m, one, floats, rows, err);
    free(floats);
    return status;
}

/* ---- runs */

static void on_value(void *arg, const char *name, const ort_value *value)
{
    ort_moments *m = arg;
    uint64_t at;
    if (m->status == ORT_OK && value->kind == ORT_KIND_TENSOR &&
        ort_hashmap_get_str(&m->by_name, name, &at))
        m->status = add_value(m, &m->list.data[at], &value->tensor, &m->err);
}

static ort_status open_session(ort_moments *m, const ort_model *model, ort_error *err)
{
    ort_session_options options = ORT_SESSION_OPTIONS_INIT;
    for (size_t i = 0; i <= m->list.count; i++)
        if (!ort_vec_push(&m->watched, i < m->list.count ? m->list.data[i].name : NULL))
            return ort_error_memory(err, sizeof(char *));
    options.watched = m->watched.data;
    return ort_exec_session_new(m->env, model, &options, &m->session, err);
}

ort_status ort_moments_observe(ort_moments *m, const ort_model *model, ort_value *const *inputs,
                               size_t count, ort_error *err)
{
    ort_run_options run = ORT_RUN_OPTIONS_INIT;
    if (!m->session)
        ORT_TRY(open_session(m, model, err));
    const size_t outputs = (size_t)m->session->output_count;
    ORT_TRY(ort_exec_check_count(m->session->input_count, "inputs", count, err));
    ort_value **results = calloc(outputs + 1, sizeof *results);
    if (!results)
        return ort_error_memory(err, outputs * sizeof *results);
    run.on_value = on_value;
    run.callback_arg = m;
    for (size_t i = 0; i < count; i++)
        if (inputs[i]) /* a product may read an input itself */
            on_value(m, m->session->inputs[i].name, inputs[i]);
    ort_status status = ort_session_run_all(m->session, inputs, results, &run, err);
    for (size_t i = 0; i < outputs; i++)
        ort_value_free(results[i]);
    free(results);
    if (status == ORT_OK && m->status != ORT_OK)
        status = ort_error_set(err, m->status, "%s", m->err.message);
    m->counts[0] += status == ORT_OK;
    return status;
}
