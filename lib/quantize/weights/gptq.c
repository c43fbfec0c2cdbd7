/* gptq.c - rows by panels: what earlier panels owe a panel is a product by the environment's
 * kernels; within the panel, tasks have columns of their own, and go by groups of rows: what
 * earlier groups owe a group is a small product, too.
 *
 * `work` holds rows of the matrix in the order in which they go. A row that was rounded leaves its
 * errors there, which is what later rows need of it. Where rows go as they lie, a block's grid is
 * fitted to what its rows would be if nothing in the block had been rounded; else, and for blocks
 * longer than a panel, to the weights, before anything is rounded.
 */
#include "quantize/weights/gptq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { PANEL = 256, SHORT_PANEL = 128, GROUP = 32, LANES = ORT_BLOCK_LANES };

typedef struct rounding {
    ort_env *env; /* of the products */
    const ort_grid_kernels *kernels;
    const ort_moment *moment;
    ort_block_store *store;
    const ort_block_matrix *m; /* columns that are rounded, and where they are stored */
    int64_t at;
    float *work;           /* [K][width] */
    uint8_t *codes;        /* [K as it lies][width] */
    ort_block_grid *grids; /* [width / LANES][blocks] */
    float *squares;        /* [K]: what the square of a row's error weighs */
    int64_t width;         /* N in whole lanes */
    int64_t panel, group;  /* rows of one, at most */
    int64_t first, end;    /* rows of the panel */
    float *factor;         /* [panel / group][group][group]: of the groups themselves, turned */
    float *back;           /* [panel]: reciprocals of pivots */
    const float *owed;     /* [rows of the panel][width], or NULL: nothing */
    int64_t stride;        /* columns of a task */
    bool ahead;            /* grids are fitted before anything is rounded */
    bool failed, infinite;
} rounding;

static int64_t row_at(const rounding *r, int64_t k)
{
    return r->moment->order ? r->moment->order[k] : k;
}

static ort_block_grid *grid_at(const rounding *r, int64_t n, int64_t row)
{
    return r->grids + n / LANES * r->m->blocks + row / r->m->block;
}

/* ---- before */

static void read_lanes(rounding *r, int64_t n, float *x)
{
    const ort_block_matrix *m = r->m;
    if (!ort_block_columns(m, n, x))
        __atomic_store_n(&r->infinite, true, __ATOMIC_RELAXED);
    for (int64_t k = 0; k < m->k; k++)
        memcpy(r->work + k * r->width + n, x + row_at(r, k) * LANES, LANES * sizeof *x);
    for (int64_t b = 0; r->ahead && b < m->blocks; b++) {
        const int64_t at = b * m->block, left = m->k - at;
        r->kernels->fit(&r->store->form, x + at * LANES, r->squares + at,
                        left < m->block ? left : m->block, grid_at(r, n, at));
    }
}

static void read_task(void *arg, size_t task, int thread)
{
    rounding *r = arg;
    const int64_t first = (int64_t)task * r->stride;
    float *x = malloc((size_t)(r->m->k * LANES) * sizeof *x);
    (void)thread;
    if (!x)
        __atomic_store_n(&r->failed, true, __ATOMIC_RELAXED);
    for (int64_t n = first; x && n < first + r->stride && n < r->width; n += LANES)
        read_lanes(r, n, x);
    free(x);
}

/* ---- a panel */

/* Of one group of lanes. */
typedef struct lane_room {
    float errors[PANEL * LANES]; /* of the panel's rows so far */
    float targets[PANEL * LANES];
    float owed[GROUP * LANES], x[GROUP * LANES];
    uint8_t codes[GROUP * LANES];
    const ort_block_grid *grids[GROUP];
} lane_room;

static int rows_from(const rounding *r, int64_t k, int64_t end)
{
    return (int)(end - k < r->group ? end - k : r->group);
}

/* What rows before k, in this panel and in earlier ones, ask of those of its group. */
static ort_block_debt debt_of(const rounding *r, int64_t n, int64_t k, int rows, lane_room *room)
{
    const int64_t before = k - r->first;
    for (int i = 0; i < rows; i++)
        if (r->owed)
            memcpy(room->owed + i * LANES, r->owed + (before + i) * r->width + n,
                   LANES * sizeof *room->owed);
    if (!r->owed)
        memset(room->owed, 0, (size_t)rows * LANES * sizeof *room->owed);
    r->kernels->owe(r->moment->sum + k * r->m->k + r->first, r->m->k, rows, room->errors, before,
                    room->owed);
    return (ort_block_debt){rows, r->factor + before * r->group, r->back + before, room->owed};
}

static void take_rows(const rounding *r, int64_t n, int64_t k, int rows, float *x)
{
    for (int i = 0; i < rows; i++)
        memcpy(x + i * LANES, r->work + (k + i) * r->width + n, LANES * sizeof *x);
}

/* The grid of rows [k, end), a block, to their values if what is owed so far were all: errors of
 * the block itself are then those that pay it. */
static void fit_block(const rounding *r, int64_t n, int64_t k, int64_t end, lane_room *room)
{
    for (int64_t i = k; i < end; i += r->group) {
        const int rows = rows_from(r, i, end);
        float *targets = room->targets + (i - k) * LANES;
        const ort_block_debt debt = debt_of(r, n, i, rows, room);
        take_rows(r, n, i, rows, targets);
        r->kernels->pay(&debt, targets);
        memcpy(room->errors + (i - r->first) * LANES, room->owed,
               (size_t)rows * LANES * sizeof *room->owed);
    }
    r->kernels->fit(&r->store->form, room->targets, r->squares + k, end - k, grid_at(r, n, k));
}

static void round_group(rounding *r, int64_t n, int64_t k, lane_room *room)
{
    const int rows = rows_from(r, k, r->end);
    const ort_block_debt debt = debt_of(r, n, k, rows, room);
    float *errors = room->errors + (k - r->first) * LANES;
    take_rows(r, n, k, rows, errors);
    for (int i = 0; i < rows; i++)
        room->grids[i] = grid_at(r, n, row_at(r, k + i));
    r->kernels->pay_codes(&r->store->form, room->grids, &debt, errors, room->codes);
    for (int i = 0; i < rows; i++) {
        memcpy(r->work + (k + i) * r->width + n, errors + i * LANES, LANES * sizeof *errors);
        memcpy(r->codes + row_at(r, k + i) * r->width + n, room->codes + i * LANES, LANES);
    }
}

static void panel_task(void *arg, size_t task, int thread)
{
    rounding *r = arg;
    const int64_t first = (int64_t)task * r->stride, block = r->m->block;
    lane_room room;
    (void)thread;
    for (int64_t n = first; n < first + r->stride && n < r->width; n += LANES)
        for (int64_t k = r->first; k < r->end; k += r->group) {
            if (!r->ahead && k % block == 0)
                fit_block(r, n, k, k + block < r->m->k ? k + block : r->m->k, &room);
            round_group(r, n, k, &room);
        }
}

/* Pivots of the panel, and what rows of a group owe each other. */
static void take_factor(rounding *r)
{
    for (int64_t k = r->first; k < r->end; k += r->group) {
        const int rows = rows_from(r, k, r->end);
        const float *g = r->moment->sum + k * r->m->k + k;
        float *factor = r->factor + (k - r->first) * r->group;
        for (int i = 0; i < rows; i++) {
            r->back[k - r->first + i] = 1.0f / g[i * r->m->k + i];
            for (int j = 0; j < i; j++)
                factor[j * rows + i] = g[i * r->m->k + j];
        }
    }
}

static ort_status round_panel(rounding *r, float *left, ort_error *err)
{
    const int64_t rows = r->end - r->first;
    ort_value *owed = NULL;
    r->owed = NULL;
    take_factor(r);
    for (int64_t i = 0; i < rows; i++)
        memcpy(left + i * r->first, r->moment->sum + (r->first + i) * r->m->k,
               (size_t)r->first * sizeof *left);
    if (r->first > 0) {
        ORT_TRY(ort_moments_multiply(r->env, left, false, r->work, rows, r->first, r->width, &owed,
                                     err));
        r->owed = ort_value_data(owed);
    }
    ort_pool_run(r->env->pool, (size_t)((r->width + r->stride - 1) / r->stride), panel_task, r);
    ort_value_free(owed);
    return ORT_OK;
}

/* ---- after */

static void store_task(void *arg, size_t task, int thread)
{
    rounding *r = arg;
    const ort_block_matrix *m = r->m;
    const int64_t stride = ort_block_store_stride(r->store), first = (int64_t)task * stride;
    uint8_t *codes = malloc((size_t)(m->block * LANES));
    (void)thread;
    if (!codes)
        __atomic_store_n(&r->failed, true, __ATOMIC_RELAXED);
    for (int64_t n = first; codes && n < first + stride && n < m->n; n += LANES)
        for (int64_t b = 0; b < m->blocks; b++) {
            for (int64_t i = 0; i < m->block && b * m->block + i < m->k; i++)
                memcpy(codes + i * LANES, r->codes + (b * m->block + i) * r->width + n, LANES);
            ort_block_store_put(r->store, r->at + n, b, grid_at(r, n, b * m->block), codes);
        }
    free(codes);
}

static void weigh_rows(rounding *r)
{
    for (int64_t k = 0; k < r->m->k; k++) {
        const float pivot = r->moment->sum[k * r->m->k + k];
        r->squares[row_at(r, k)] = pivot * pivot;
    }
}

static ort_status round_all(rounding *r, float *left, ort_error *err)
{
    const int64_t stride = ort_block_store_stride(r->store);
    weigh_rows(r);
    ort_pool_run(r->env->pool, (size_t)((r->width + r->stride - 1) / r->stride), read_task, r);
    for (r->first = 0; r->first < r->m->k && !r->infinite && !r->failed; r->first = r->end) {
        r->end = r->first + r->panel < r->m->k ? r->first + r->panel : r->m->k;
        ORT_TRY(round_panel(r, left, err));
    }
    if (!r->infinite && !r->failed)
        ort_pool_run(r->env->pool, (size_t)((r->m->n + stride - 1) / stride), store_task, r);
    return r->failed ? ort_error_memory(err, (size_t)(r->m->k * LANES) * sizeof(float)) : ORT_OK;
}

ort_status ort_gptq_quantize(ort_env *env, const ort_grid_kernels *kernels,
                             const ort_moment *moment, const ort_block_matrix *m, int64_t first,
                             ort_block_store *store, bool *infinite, ort_error *err)
{
    rounding r = {.env = env, .kernels = kernels, .moment = moment, .store = store, .m = m,
                  .at = first, .stride = 64};
    r.width = (m->n + LANES - 1) / LANES * LANES;
    r.ahead = moment->order || m->block > PANEL;
    r.panel = m->block > SHORT_PANEL ? PANEL : SHORT_PANEL;
    r.group = !r.ahead && m->block < GROUP ? m->block : GROUP;
    const size_t count = (size_t)(m->k * r.width);
    r.work = malloc(count * sizeof *r.work);
    r.codes = malloc(count);
    r.grids = malloc((size_t)(r.width / LANES * m->blocks) * sizeof *r.grids);
    r.squares = malloc((size_t)m->k * sizeof *r.squares);
    r.factor = malloc(PANEL * (GROUP + 1) * sizeof *r.factor);
    float *left = malloc((size_t)(PANEL * m->k) * sizeof *left);
    r.back = r.factor ? r.factor + PANEL * GROUP : NULL;
    ort_status status = r.work && r.codes && r.grids && r.squares && r.factor && left
                            ? round_all(&r, left, err)
                            : ort_error_memory(err, count * sizeof *r.work);
    *infinite = r.infinite;
    free(r.work);
    free(r.codes);
    free(r.grids);
    free(r.squares);
    free(r.factor);
    free(left);
    return status;
}
