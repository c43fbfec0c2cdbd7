/* awq.c - one value after the other: the products that read it, exponents tried, factors moved. */
#include "quantize/weights/awq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "quantize/channels/channel_move.h"

enum { EXPONENTS = 20, MOST_COLUMNS = 256, LANES = ORT_BLOCK_LANES };

/* A value, and one exponent for it. */
typedef struct scaling {
    ort_weights *w;
    const ort_moment *moment;
    ort_channel_move move;
    float *factors, *importance, *errors; /* [K], [K], [K][columns] */
    const ort_weight *weight; /* whose columns are tried */
    int64_t columns;          /* so many of them, in lanes */
    bool failed;
} scaling;

/* ---- the error of an exponent */

static float square_of(const ort_moment *m, int64_t k)
{
    return m->sum[k * m->k + k];
}

/* m[k]^a, the middle of the largest and the least being 1. */
static void set_exponent(scaling *s, double a)
{
    const int64_t k = s->moment->k;
    float least = 0, most = 0;
    for (int64_t i = 0; i < k; i++) {
        const float x = square_of(s->moment, i);
        most = x > most ? x : most;
        least = x > 0 && (least == 0 || x < least) ? x : least;
    }
    const double middle = sqrt(sqrt((double)least * (double)most)); /* of roots */
    for (int64_t i = 0; i < k; i++) {
        const double root = sqrt((double)square_of(s->moment, i));
        s->factors[i] = middle > 0 ? ort_channel_factor(root / middle, 1, a) : 1;
        s->importance[i] = square_of(s->moment, i) / (s->factors[i] * s->factors[i]);
    }
}

static void column_errors(const scaling *s, int64_t column, float *x, float *y, uint8_t *codes)
{
    const ort_block_matrix *m = &s->weight->shape;
    const ort_block_form form = {.bits = s->w->options.bits,
                                 .symmetric = !s->w->options.asymmetric, .scale = m->from->dtype};
    const ort_grid_kernels *grids = &s->w->env->k->grids;
    const int64_t groups = (m->n + LANES - 1) / LANES, taken = s->columns / LANES;
    if (!ort_block_columns(m, column / LANES * groups / taken * LANES, x))
        memset(x, 0, (size_t)(m->k * LANES) * sizeof *x); /* it will be left */
    for (int64_t i = 0; i < m->k * LANES; i++)
        y[i] = x[i] * s->factors[i / LANES];
    for (int64_t b = 0; b < m->blocks; b++) {
        const int64_t at = b * m->block, left = m->k - at;
        const int64_t count = left < m->block ? left : m->block;
        ort_block_grid grid;
        grids->fit(&form, y + at * LANES, s->importance + at, count, &grid);
        grids->codes(&form, &grid, y + at * LANES, count, codes);
        for (int64_t i = 0; i < count * LANES; i++) {
            const float number = ((float)codes[i] - grid.zero[i % LANES]) * grid.scale[i % LANES];
            const int64_t k = at + i / LANES;
            s->errors[k * s->columns + column + i % LANES] =
                number / s->factors[k] - x[at * LANES + i];
        }
    }
}

static void column_task(void *arg, size_t task, int thread)
{
    scaling *s = arg;
    const ort_block_matrix *m = &s->weight->shape;
    float *x = malloc((size_t)(2 * m->k * LANES) * sizeof *x);
    uint8_t *codes = malloc((size_t)(m->block * LANES));
    (void)thread;
    if (!x || !codes)
        __atomic_store_n(&s->failed, true, __ATOMIC_RELAXED);
    else
        column_errors(s, (int64_t)task * LANES, x, x + m->k * LANES, codes);
    free(x);
    free(codes);
}

/* Of so many columns as of all, so that wide matrices count more. */
static ort_status weight_error(scaling *s, double *error, ort_error *err)
{
    const int64_t k = s->moment->k, count = k * s->columns;
    ort_value *product = NULL;
    ort_pool_run(s->w->env->pool, (size_t)(s->columns / LANES), column_task, s);
    if (s->failed)
        return ort_error_memory(err, (size_t)(2 * k * LANES) * sizeof(float));
    ORT_TRY(ort_moments_multiply(s->w->moments.env, s->moment->sum, false, s->errors, k, k,
                                 s->columns, &product, err));
    const float *owed = ort_value_data(product);
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)owed[i] * (double)s->errors[i];
    ort_value_free(product);
    *error += sum * (double)s->weight->shape.n / (double)s->columns;
    return ORT_OK;
}

static ort_weight *weight_of(const scaling *s, const ort_node *node)
{
    for (size_t i = 0; i < s->w->readers.count; i++) {
        const ort_weight_reader *r = &s->w->readers.data[i];
        if (r->node == node && !r->why && r->weight != SIZE_MAX)
            return &s->w->weights.data[r->weight];
    }
    return NULL;
}

static ort_status error_of(scaling *s, double *error, ort_error *err)
{
    *error = 0;
    for (size_t i = 0; i < s->move.readers.count; i++) {
        s->weight = weight_of(s, s->move.readers.data[i].node);
        if (!s->weight)
            continue;
        const int64_t lanes = (s->weight->shape.n + LANES - 1) / LANES * LANES;
        s->columns = lanes < MOST_COLUMNS ? lanes : MOST_COLUMNS;
        ORT_TRY(weight_error(s, error, err));
    }
    return ORT_OK;
}

static ort_status search(scaling *s, double *best, ort_error *err)
{
    double least = INFINITY, error;
    *best = 0;
    for (int i = 0; i <= EXPONENTS; i++) {
        const double a = (double)i / EXPONENTS;
        set_exponent(s, a);
        ORT_TRY(error_of(s, &error, err));
        if (error < least) {
            least = error;
            *best = a;
        }
    }
    set_exponent(s, *best);
    return ORT_OK;
}

/* ---- values */

/* What computes the value takes the factors if it can, and nothing else reads it. */
static bool find_move(scaling *s, ort_graph *graph, ort_id value, ort_channel_ids *made)
{
    ort_node *source = ort_edit_producer(graph, value);
    if (source && ort_channel_move_from(graph, source, made, &s->move) && s->move.value == value &&
        s->move.channels == s->moment->k && s->move.axis == -1) {
        bool all = true;
        for (size_t i = 0; i < s->move.readers.count; i++)
            all = all && s->move.readers.data[i].node->inputs[0] == value;
        if (all)
            return true;
    }
    if (source)
        ort_channel_move_release(&s->move);
    return ort_channel_move_before(graph, value, made, &s->move) &&
           s->move.channels == s->moment->k;
}

/* The scaled weights are other constants, and a Mul may stand before them. */
static ort_status follow(scaling *s, ort_error *err)
{
    const size_t bytes = (size_t)s->moment->k * sizeof(float);
    float *importance = ort_arena_alloc(&s->w->arena, bytes);
    if (!importance)
        return ort_error_memory(err, bytes);
    memcpy(importance, s->importance, bytes);
    for (size_t i = 0; i < s->move.readers.count; i++) {
        const ort_node *node = s->move.readers.data[i].node;
        ort_weight *weight = weight_of(s, node);
        if (!weight)
            continue;
        weight->importance = importance;
        weight->id = node->inputs[1];
        weight->input = node->inputs[0];
        weight->shape = ort_block_matrix_of(weight->graph->values.data[weight->id]->fact.value,
                                            weight->turned, weight->shape.block);
    }
    return ORT_OK;
}

static ort_status scale_value(scaling *s, size_t *moved, size_t *muls, ort_error *err)
{
    ort_node *mul = NULL;
    double a;
    ORT_TRY(search(s, &a, err));
    if (a > 0) {
        ORT_TRY(ort_channel_move_apply(&s->move, s->factors, &mul, err));
        ++*moved;
        *muls += mul != NULL;
    }
    return follow(s, err);
}

static ort_status scale_moment(ort_weights *w, size_t at, ort_channel_ids *made, size_t *moved,
                               size_t *muls, ort_error *err)
{
    ort_moment *moment = &w->moments.list.data[at];
    const ort_weight *weight = NULL;
    for (size_t i = 0; i < w->weights.count && !weight; i++)
        if (w->weights.data[i].moments == at)
            weight = &w->weights.data[i];
    if (!weight || *moment->rows == 0)
        return ORT_OK;
    ort_moment_mirror(moment);
    scaling s = {.w = w, .moment = moment};
    const size_t k = (size_t)moment->k;
    ort_status status = ORT_OK;
    if (find_move(&s, weight->graph, weight->input, made)) {
        s.factors = malloc(2 * k * sizeof *s.factors);
        s.errors = malloc(k * MOST_COLUMNS * sizeof *s.errors);
        s.importance = s.factors + k;
        status = s.factors && s.errors ? scale_value(&s, moved, muls, err)
                                       : ort_error_memory(err, k * MOST_COLUMNS * sizeof(float));
        free(s.factors);
        free(s.errors);
    }
    ort_channel_move_release(&s.move);
    ort_moment_forget(moment);
    return status;
}

ort_status ort_awq_scale(ort_weights *w, ort_error *err)
{
    ort_channel_ids made = {0};
    size_t moved = 0, muls = 0;
    ort_status status = ORT_OK;
    ort_shares_begin(&w->shares, "finding factors", (double)w->moments.list.count);
    for (size_t i = 0; i < w->moments.list.count && status == ORT_OK; i++) {
        status = scale_moment(w, i, &made, &moved, &muls, err);
        ort_shares_add(&w->shares, 1);
    }
    ort_vec_release(&made);
    ort_log_write(&w->env->log, ORT_LOG_INFO, "awq: %zu of %zu values got factors, %zu of them by "
                  "a Mul", moved, w->moments.list.count, muls);
    return status == ORT_OK ? ort_graph_infer(w->model->graph, w->env->registry, NULL, err)
                            : status;
}
