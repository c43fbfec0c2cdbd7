/* distance.c - com.microsoft CDist and DynamicTimeWarping.
 *
 * CDist: distances between all rows of two matrices, Euclidean or its square. DynamicTimeWarping:
 * the cheapest path through a cost matrix from its first to its last element, in steps down, right
 * or both; of equal costs a step right comes first.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/op.h"

/* ---- CDist */

static ort_status cdist_infer(ort_infer *x, ort_error *err)
{
    char text[41];
    const char *metric = ort_node_attr_text(x->node, "metric", text, sizeof text);
    if (strcmp(metric, "sqeuclidean") && strcmp(metric, "euclidean"))
        return ort_infer_fail(x, err, "metric '%s' is none of euclidean and sqeuclidean",
                              metric);
    return ORT_OK;
}

enum { COLUMNS = 8 }; /* rows of B that are done together */

typedef struct cdist_job {
    const ort_call *call;
    const double *columns; /* B by blocks of COLUMNS rows: [block][feature][COLUMNS], zero padded */
    int64_t features, rows;
    bool root;
} cdist_job;

static void cdist_block(const double *a, const double *columns, int64_t n, double *sum)
{
    double s[COLUMNS] = {0};
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < COLUMNS; j++) {
            double d = a[i] - columns[i * COLUMNS + j];
            s[j] += d * d;
        }
    memcpy(sum, s, sizeof s);
}

static void load_row(const ort_tensor *t, int64_t row, int64_t n, double *out)
{
    if (t->dtype == ORT_DTYPE_DOUBLE && n > 0)
        memcpy(out, (const double *)t->data + row * n, (size_t)n * sizeof *out);
    for (int64_t i = 0; i < n && t->dtype != ORT_DTYPE_DOUBLE; i++)
        out[i] = (double)((const float *)t->data)[row * n + i];
}

static void cdist_task(void *arg, size_t task, int thread)
{
    const cdist_job *job = arg;
    ort_tensor *y = ort_call_out(job->call, 0);
    int64_t n = job->features, row = (int64_t)task;
    double *a = ort_call_scratch(job->call, thread), sum[COLUMNS];
    load_row(ort_call_in(job->call, 0), row, n, a);
    for (int64_t j0 = 0; j0 < job->rows; j0 += COLUMNS) {
        int64_t count = ort_min_i64(COLUMNS, job->rows - j0);
        cdist_block(a, job->columns + j0 * n, n, sum);
        for (int64_t j = 0; j < count; j++) {
            double value = job->root ? sqrt(sum[j]) : sum[j];
            int64_t at = row * job->rows + j0 + j;
            if (y->dtype == ORT_DTYPE_DOUBLE)
                ((double *)y->data)[at] = value;
            else
                ((float *)y->data)[at] = (float)value;
        }
    }
}

typedef struct cdist_state {
    bool root; /* distances, not their squares */
} cdist_state;

static const ort_bind cdist_bind[] = {
    ORT_BIND_AS(cdist_state, root, "metric", ORT_WORDS("sqeuclidean euclidean")), {0}};

static ort_status cdist_shape(ort_shaping *s, ort_error *err)
{
    const ort_shape *a = &s->in[0]->shape, *b = &s->in[1]->shape;
    if (a->rank != 2 || b->rank != 2) /* said when it runs */
        return ORT_OK;
    int64_t blocks = (b->dim[0] + COLUMNS - 1) / COLUMNS;
    s->thread_bytes = (size_t)a->dim[1] * sizeof(double);
    if (!ort_mul_size((size_t)(blocks * COLUMNS), (size_t)b->dim[1] * sizeof(double),
                      &s->workspace_bytes))
        return ort_error_memory(err, SIZE_MAX);
    return ORT_OK;
}

static ort_status cdist_run(ort_call *call, ort_error *err)
{
    const ort_tensor *b = ort_call_in(call, 1);
    const ort_shape *a = &ort_call_in(call, 0)->shape;
    if (a->rank != 2 || b->shape.rank != 2 || a->dim[1] != b->shape.dim[1])
        return ort_call_fail(call, err, "A and B need rows of one length");
    const cdist_state *state = call->state;
    int64_t n = a->dim[1], rows = b->shape.dim[0];
    double *columns = call->workspace, *row = ort_call_scratch(call, 0);
    cdist_job job = {call, columns, n, rows, state->root};
    for (int64_t j = 0; j < (int64_t)ort_round_up((size_t)rows, COLUMNS); j++) {
        double *to = columns + j / COLUMNS * COLUMNS * n + j % COLUMNS;
        if (j < rows)
            load_row(b, j, n, row);
        for (int64_t i = 0; i < n; i++)
            to[i * COLUMNS] = j < rows ? row[i] : 0;
    }
    ort_call_parallel(call, (size_t)a->dim[0], cdist_task, &job);
    return ORT_OK;
}

static void cdist_cost(const ort_infer *x, ort_cost *cost)
{
    const ort_type *a = &x->in[0]->type, *y = &x->out[0].type;
    if (a->rank == 2 && y->rank == 2 && ort_dim_known(a->dim[1]) && ort_dim_known(y->dim[0]) &&
        ort_dim_known(y->dim[1]))
        cost->flops = 3.0 * (double)a->dim[1].size * (double)y->dim[0].size *
                      (double)y->dim[1].size;
}

static const ort_op_impl cdist_impl = {
    .state = sizeof(cdist_state), .bind = cdist_bind, .rule = "[M,K] [N,K] -> [M,N]",
    .infer = cdist_infer, .shape = cdist_shape, .run = cdist_run, .cost = cdist_cost,
};

/* ---- DynamicTimeWarping */

enum { STEP_BOTH, STEP_DOWN, STEP_RIGHT };

static ort_status warp_infer(ort_infer *x, ort_error *err)
{
    if (ort_infer_in_ranked(x, 0)) {
        const ort_type *t = &x->in[0]->type;
        if (t->rank != 2 && (t->rank != 3 || ort_dim_differ(t->dim[0], ort_dim_of(1))))
            return ort_infer_fail(x, err, "the cost needs the shape [M, N] or [1, M, N]");
    }
    return ORT_OK;
}

/* Workspace: two rows of sums, a step per element, the path backwards. */
static ort_status warp_shape(ort_shaping *s, ort_error *err)
{
    const ort_shape *x = &s->in[0]->shape;
    if (x->rank < 2)
        return ort_error_set(err, ORT_ERROR_MODEL, "the cost needs rank 2");
    size_t rows = (size_t)x->dim[x->rank - 2], columns = (size_t)x->dim[x->rank - 1];
    if (!ort_mul_size(rows, columns, &s->workspace_bytes) || s->workspace_bytes > SIZE_MAX / 2)
        return ort_error_memory(err, SIZE_MAX);
    s->workspace_bytes = ort_round_up(s->workspace_bytes, 8) +
                         2 * (columns + 1) * sizeof(float) + 2 * (rows + columns) * sizeof(int32_t);
    return ORT_OK;
}

/* sum[j], from those of the row above and the one to the left: the cheapest way to each element. */
static void warp_rows(const float *cost, int64_t rows, int64_t columns, float *above, float *sum,
                      int8_t *step)
{
    for (int64_t j = 0; j <= columns; j++)
        above[j] = j ? INFINITY : 0.0f;
    for (int64_t i = 0; i < rows; i++) {
        sum[0] = INFINITY;
        for (int64_t j = 1; j <= columns; j++) {
            float both = above[j - 1], down = above[j], right = sum[j - 1];
            int8_t s = both < down && both < right ? STEP_BOTH
                       : down < both && down < right ? STEP_DOWN : STEP_RIGHT;
            step[i * columns + j - 1] = s;
            sum[j] = (s == STEP_BOTH ? both : s == STEP_DOWN ? down : right) +
                     cost[i * columns + j - 1];
        }
        float *t = above;
        above = sum;
        sum = t;
    }
}

static ort_status warp_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    int64_t rows = x->shape.dim[x->shape.rank - 2], columns = x->shape.dim[x->shape.rank - 1];
    int8_t *step = call->workspace;
    float *sums = (float *)(void *)(step + ort_round_up((size_t)(rows * columns), 8));
    int32_t *path = (int32_t *)(void *)(sums + 2 * (columns + 1));
    int64_t count = 0, i = rows - 1, j = columns - 1;
    warp_rows(x->data, rows, columns, sums, sums + columns + 1, step);
    while (i >= 0 && j >= 0) {
        int8_t s = step[i * columns + j];
        path[2 * count] = (int32_t)i;
        path[2 * count++ + 1] = (int32_t)j;
        i -= s != STEP_RIGHT;
        j -= s != STEP_DOWN;
    }
    ort_shape shape = {2, {2, count}};
    ORT_TRY(ort_call_output(call, 0, ORT_DTYPE_INT32, &shape, err));
    int32_t *y = ort_call_out(call, 0)->data;
    for (int64_t k = 0; k < count; k++) {
        y[k] = path[2 * (count - 1 - k)];
        y[count + k] = path[2 * (count - 1 - k) + 1];
    }
    return ORT_OK;
}

static const ort_op_impl warp_impl = {
    .rule = "-> [2,_]", .infer = warp_infer, .shape = warp_shape, .run = warp_run,
};

/* ---- rows */

const ort_op ort_ops_distance[] = {
    {MS, "CDist", 1, "A:T,B:T -> C:T", "T:f32,f64", "metric:s=sqeuclidean", 0, &cdist_impl},
    {MS, "DynamicTimeWarping", 1, "input:F -> output:I", "F:f32 I:i32", "", ORT_TRAIT_DYNAMIC,
     &warp_impl},
    {0},
};
