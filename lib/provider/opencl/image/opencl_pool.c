/* opencl_pool.c - pools, means of planes, BatchNormalization; windows as convolutions have them.
 *
 * Pools of one input with results of one size, as pyramids of pools have them, are a launch.
 */
#include <string.h>

#include "base/error.h"
#include "provider/opencl/image/opencl_window.h"

/* ---- windows */

bool ort_cl_fits_window(const ort_graph *graph, const ort_node *node, const char **why)
{
    int rank = ort_cl_rank(graph, node, 0);
    *why = "windows of more than three axes have no kernel";
    return rank >= 3 && rank <= 5;
}

void ort_cl_spatial(const ort_fact *fact, int64_t *dims)
{
    for (int d = 2; d < fact->type.rank; d++)
        dims[d - 2] = ort_cl_dim(fact, d);
}

ort_status ort_cl_window_of(const ort_cl_step *s, const int64_t *kernel, ort_window *w,
                            ort_error *err)
{
    ort_window_spec spec = {0};
    int64_t in[ORT_WINDOW_MAX];
    ort_cl_spatial(ort_cl_in(s, 0), in);
    ORT_TRY(ort_window_read(s->node, &spec, err));
    ORT_TRY(ort_window_resolve(&spec, ort_cl_in(s, 0)->type.rank - 2, in, kernel, w, err));
    ort_window_pad_to_3d(w);
    return ORT_OK;
}

/* ---- pools */

static const char *pool_kernel(ort_dtype type)
{
    return type == ORT_DTYPE_FLOAT   ? "pool"
           : type == ORT_DTYPE_UINT8 ? "pool_bytes"
           : type == ORT_DTYPE_INT8  ? "pool_chars"
                                     : NULL;
}

static bool claim_pool(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "indices have no kernel";
    if (ort_cl_gives(node, 1))
        return false;
    *why = "the element type has no kernel";
    return pool_kernel(ort_cl_type(graph, node, 0)) && ort_cl_fits_window(graph, node, why);
}

enum { MOST_POOLS = 3 }; /* of a launch, pool.cl */

typedef struct pool { /* one of a launch */
    ort_window w;
    int64_t kind, start; /* start: in `to`, of the result */
    int to;
} pool;

static ort_status emit_pool(ort_cl_step *s, ort_error *err);

static ort_status read_pool(const ort_cl_step *s, pool *l, ort_error *err)
{
    bool most = !strcmp(s->node->op_type, "MaxPool");
    bool padding = ort_node_int(s->node, "count_include_pad", 0);
    *l = (pool){.kind = most ? 0 : padding ? 2 : 1};
    return ort_cl_window_of(s, NULL, &l->w, err);
}

/* Windows of the same input, as far apart, that make as many results. */
static bool is_pool_alike(const pool *l, const pool *other)
{
    const ort_window *w = &l->w, *o = &other->w;
    return l->kind == other->kind && !memcmp(w->out, o->out, sizeof w->out) &&
           !memcmp(w->stride, o->stride, sizeof w->stride) &&
           !memcmp(w->dilation, o->dilation, sizeof w->dilation);
}

/* Other pools of the input ride with the first one. Their number, with it. */
static int find_pools(const ort_cl_step *s, pool *list)
{
    const ort_device_step *end, *step = ort_cl_steps_behind(s, &end);
    int count = 1;
    for (; step < end && count < MOST_POOLS && s->plan->device->chain != 1; step++) {
        ort_error ignored;
        ort_cl_step other = ort_cl_step_of(s, step);
        if (other.row->emit != emit_pool || step->node->inputs[0] != s->node->inputs[0] ||
            s->plan->ahead[step->node->outputs[0]].made ||
            read_pool(&other, &list[count], &ignored) != ORT_OK ||
            !is_pool_alike(&list[0], &list[count]))
            continue;
        list[count].to = ort_cl_write_at(&other, &list[count].start);
        ort_cl_set_made(&other);
        count++;
    }
    return count;
}

static ort_status emit_pool(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0);
    pool list[MOST_POOLS];
    ORT_TRY(read_pool(s, &list[0], err));
    bool floats = x->type.dtype == ORT_DTYPE_FLOAT;
    list[0].to = floats ? ort_cl_write_at(s, &list[0].start) : ort_cl_write(s, 0);
    int count = floats ? find_pools(s, list) : 1;
    for (int i = count; i < MOST_POOLS; i++)
        list[i] = list[0];
    const pool *b = &list[1], *c = &list[2];
    const ort_window *w = &list[0].w, *w2 = &b->w, *w3 = &c->w;
    const int64_t items[3] = {ort_cl_along(s, w->out[2]), w->out[0] * w->out[1],
                              ort_cl_dim(x, 0) * ort_cl_dim(x, 1) * count};
    ort_cl_launch_grid(s, "pool", pool_kernel(x->type.dtype), items, NULL,
                       "bbbb|iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii", ort_cl_read(s, 0),
                       list[0].to, b->to, c->to, w->in[0], w->in[1], w->in[2], w->out[1],
                       w->out[2], w->kernel[0], w->kernel[1], w->kernel[2], w->stride[0],
                       w->stride[1], w->stride[2], w->begin[0], w->begin[1], w->begin[2],
                       w->dilation[0], w->dilation[1], w->dilation[2], w->end[0], w->end[1],
                       w->end[2], list[0].kind, (int64_t)count, list[0].start, b->start, c->start,
                       w2->kernel[0], w2->kernel[1], w2->kernel[2], w2->begin[0], w2->begin[1],
                       w2->begin[2], w2->end[0], w2->end[1], w2->end[2], w3->kernel[0],
                       w3->kernel[1], w3->kernel[2], w3->begin[0], w3->begin[1], w3->begin[2],
                       w3->end[0], w3->end[1], w3->end[2]);
    return ORT_OK;
}

static ort_status emit_global_mean(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0);
    int64_t rows = ort_cl_dim(x, 0) * ort_cl_dim(x, 1);
    const int64_t grid[3] = {rows, 1, 1};
    if (rows)
        ort_cl_launch_grid(s, "rows", "mean", grid, NULL, "bbi", ort_cl_read(s, 0),
                           ort_cl_write(s, 0), ort_cl_count(x) / rows);
    else
        ort_cl_write(s, 0);
    return ORT_OK;
}

static ort_status emit_global_most(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0);
    int64_t rows = ort_cl_dim(x, 0) * ort_cl_dim(x, 1), count = rows ? ort_cl_count(x) / rows : 0;
    const int64_t grid[3] = {rows, 1, 1}, kept[] = {1, 1, 1, 1, 1, rows};
    const int64_t all[] = {1, 1, 1, 1, 1, count};
    const int64_t step[] = {0, 0, 0, 0, 0, count}, one[] = {0, 0, 0, 0, 0, 1};
    ort_cl_launch_grid(s, "rows", "reduce_max", grid, NULL, "bbvvvvi", ort_cl_read(s, 0),
                       ort_cl_write(s, 0), kept, step, all, one, count);
    return ORT_OK;
}

static bool claim_planes(const ort_graph *graph, const ort_node *node, const char **why)
{
    return ort_cl_rank(graph, node, 0) >= 2;
}

/* ---- BatchNormalization of inference */

static bool claim_batch(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "training has no kernel";
    return ort_cl_floats(graph, node) && !ort_cl_gives(node, 1) &&
           ort_cl_rank(graph, node, 0) >= 2 && ort_node_int(node, "training_mode", 0) == 0 &&
           ort_node_int(node, "spatial", 1) == 1 && node->opset >= 7;
}

static ort_status emit_batch(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0);
    int64_t count = ort_cl_count(x), planes = ort_cl_dim(x, 0) * ort_cl_dim(x, 1);
    const int64_t grid[3] = {planes ? ort_cl_along(s, count / planes) : 0, planes, 1};
    ort_cl_launch_grid(s, "map", "batch_norm", grid, NULL, "bbbbbbiif", ort_cl_read(s, 0),
                       ort_cl_read(s, 1), ort_cl_read(s, 2), ort_cl_read(s, 3), ort_cl_read(s, 4),
                       ort_cl_write(s, 0), ort_cl_dim(x, 1), planes ? count / planes : 1,
                       (double)ort_node_attr_float(s->node, "epsilon"));
    return ORT_OK;
}

/* ---- ImageScaler */

static bool claim_scaler(const ort_graph *graph, const ort_node *node, const char **why)
{
    const ort_type *x = &graph->values.data[node->inputs[0]]->fact.type;
    size_t count;
    (void)ort_node_floats(node, "bias", &count);
    *why = "this form has no kernel";
    return x->rank >= 2 && ort_dim_known(x->dim[1]) && x->dim[1].size == (int64_t)count;
}

static ort_status emit_scaler(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0);
    size_t channels;
    const float *bias = ort_node_floats(s->node, "bias", &channels);
    int64_t count = ort_cl_count(x), planes = ort_cl_dim(x, 0) * (int64_t)channels;
    int64_t plane = planes ? count / planes : 0;
    const int64_t grid[3] = {ort_cl_along(s, plane), planes, 1};
    int shift = ort_cl_numbers(s, bias, (int64_t)channels);
    ort_cl_launch_grid(s, "map", "scale_planes", grid, NULL, "bbbiif", ort_cl_read(s, 0), shift,
                       ort_cl_write(s, 0), (int64_t)channels, plane,
                       (double)ort_node_attr_float(s->node, "scale"));
    return ORT_OK;
}

const ort_cl_row ort_cl_pool_rows[] = {
    {ONNX, "MaxPool", claim_pool, emit_pool, .half = true, .typed = true},
    {ONNX, "AveragePool", claim_pool, emit_pool, .half = true},
    {ONNX, "GlobalAveragePool", claim_planes, emit_global_mean, .half = true},
    {ONNX, "GlobalMaxPool", claim_planes, emit_global_most, .half = true},
    {ONNX, "BatchNormalization", claim_batch, emit_batch, .half = true},
    {ONNX, "ImageScaler", claim_scaler, emit_scaler, .half = true},
    {0},
};
