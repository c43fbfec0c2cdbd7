/* opencl_net.c - convolutions, pools, means of planes, BatchNormalization. */
#include <string.h>

#include "op/shared/window.h"
#include "provider/opencl/opencl_parts.h"

/* ---- convolutions of one and two axes */

static bool claim_conv(const ort_graph *graph, const ort_node *node, const char **why)
{
    ort_cl_activation activation;
    int rank = ort_cl_rank(graph, node, 0);
    if (rank != 3 && rank != 4) {
        *why = "windows of three axes have no kernel";
        return false;
    }
    *why = "the activation has no kernel";
    return ort_cl_floats(graph, node) && ort_cl_find_activation(node, &activation);
}

static void spatial(const ort_fact *fact, int64_t *dims)
{
    for (int d = 2; d < fact->type.rank; d++)
        dims[d - 2] = ort_cl_dim(fact, d);
}

/* With two axes; the window of an input and a kernel. */
static ort_status window_of(const ort_cl_step *s, const int64_t *kernel, ort_window *w,
                            ort_error *err)
{
    ort_window_spec spec = {0};
    int64_t in[ORT_WINDOW_MAX];
    ort_window flat;
    spatial(ort_cl_in(s, 0), in);
    ORT_TRY(ort_window_read(s->node, &spec, err));
    ORT_TRY(ort_window_resolve(&spec, ort_cl_in(s, 0)->type.rank - 2, in, kernel, w, err));
    if (w->rank == 2)
        return ORT_OK;
    flat = (ort_window){.rank = 2, .in = {1, w->in[0]}, .out = {1, w->out[0]},
                        .kernel = {1, w->kernel[0]}, .stride = {1, w->stride[0]},
                        .dilation = {1, w->dilation[0]}, .begin = {0, w->begin[0]},
                        .end = {0, w->end[0]}};
    *w = flat;
    return ORT_OK;
}

enum { CHANNELS = 8 }; /* BLOCK of conv.cl */

static ort_status emit_conv(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0), *f = ort_cl_in(s, 1), *y = ort_cl_out(s, 0);
    int64_t kernel[ORT_WINDOW_MAX], groups = ort_node_int(s->node, "group", 1);
    int64_t outs = ort_cl_dim(y, 1), channels = ort_cl_dim(x, 1);
    ort_cl_activation act;
    ort_window w;
    spatial(f, kernel);
    ORT_TRY(window_of(s, kernel, &w, err));
    (void)ort_cl_find_activation(s->node, &act);
    bool single = groups == channels, bias = ort_cl_has(s->node, 2), sum = ort_cl_has(s->node, 3);
    int64_t blocks = groups * ((outs / groups + CHANNELS - 1) / CHANNELS);
    const int64_t grid[3] = {w.out[0] * w.out[1], single ? outs : blocks, ort_cl_dim(x, 0)};
    int from = ort_cl_read(s, 0), filter = ort_cl_read(s, 1);
    ort_cl_launch_grid(s, "conv", single ? "depthwise" : "conv2d", grid, NULL,
                       "bbbbbiiiiiiiiiiiiiiiiiiff", from, filter,
                       bias ? ort_cl_read(s, 2) : filter, sum ? ort_cl_read(s, 3) : from,
                       ort_cl_write(s, 0), (int64_t)bias, (int64_t)sum, channels, w.in[0], w.in[1],
                       outs, w.out[0], w.out[1], groups, w.kernel[0], w.kernel[1], w.stride[0],
                       w.stride[1], w.begin[0], w.begin[1], w.dilation[0], w.dilation[1], act.kind,
                       act.a, act.b);
    return ORT_OK;
}

/* ---- pools */

static bool claim_pool(const ort_graph *graph, const ort_node *node, const char **why)
{
    int rank = ort_cl_rank(graph, node, 0);
    if (ort_cl_gives(node, 1)) {
        *why = "indices have no kernel";
        return false;
    }
    *why = "windows of three axes have no kernel";
    return rank == 3 || rank == 4;
}

static ort_status emit_pool(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0);
    ort_window w;
    ORT_TRY(window_of(s, NULL, &w, err));
    bool most = !strcmp(s->node->op_type, "MaxPool");
    bool padding = ort_node_int(s->node, "count_include_pad", 0);
    const int64_t grid[3] = {w.out[1], w.out[0], ort_cl_dim(x, 0) * ort_cl_dim(x, 1)};
    ort_cl_launch_grid(s, "conv", "pool", grid, NULL, "bbiiiiiiiiiiiiiii", ort_cl_read(s, 0),
                       ort_cl_write(s, 0), w.in[0], w.in[1], w.out[0], w.out[1], w.kernel[0],
                       w.kernel[1], w.stride[0], w.stride[1], w.begin[0], w.begin[1],
                       w.dilation[0], w.dilation[1], w.end[0], w.end[1],
                       (int64_t)(most ? 0 : padding ? 2 : 1));
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
    const int64_t grid[3] = {count, 1, 1};
    ort_cl_launch_grid(s, "map", "batch_norm", grid, NULL, "bbbbbbiif", ort_cl_read(s, 0),
                       ort_cl_read(s, 1), ort_cl_read(s, 2), ort_cl_read(s, 3), ort_cl_read(s, 4),
                       ort_cl_write(s, 0), ort_cl_dim(x, 1), planes ? count / planes : 1,
                       (double)ort_node_attr_float(s->node, "epsilon"));
    return ORT_OK;
}

const ort_cl_row ort_cl_net_rows[] = {
    {ONNX, "Conv", claim_conv, emit_conv, NULL},
    {MS, "FusedConv", claim_conv, emit_conv, NULL},
    {ONNX, "MaxPool", claim_pool, emit_pool, NULL},
    {ONNX, "AveragePool", claim_pool, emit_pool, NULL},
    {ONNX, "GlobalAveragePool", claim_planes, emit_global_mean, NULL},
    {ONNX, "BatchNormalization", claim_batch, emit_batch, NULL},
    {0},
};
