/* opencl_norm.c - Softmax, norms and means over the last axes. */
#include "provider/opencl/opencl_parts.h"

static bool claim_ranked(const ort_graph *graph, const ort_node *node, const char **why)
{
    return ort_cl_rank(graph, node, 0) > 0;
}

/* Up to opset 12 what stands behind the axis is one row. */
static ort_status softmax(ort_cl_step *s, bool as_log)
{
    const ort_fact *x = ort_cl_in(s, 0);
    bool whole = s->node->opset < 13;
    int rank = x->type.rank;
    int64_t axis = ort_node_int(s->node, "axis", whole ? 1 : -1), count = 1, step = 1;
    axis += axis < 0 ? rank : 0;
    for (int d = (int)axis; d < rank; d++) {
        if (d == axis || whole)
            count *= ort_cl_dim(x, d);
        else
            step *= ort_cl_dim(x, d);
    }
    int from = ort_cl_read(s, 0), to = ort_cl_write(s, 0);
    if (count)
        ort_cl_softmax_rows(s, from, to, ort_cl_count(x) / count, count, step, as_log);
    return ORT_OK;
}

static ort_status emit_softmax(ort_cl_step *s, ort_error *err)
{
    return softmax(s, false);
}

static ort_status emit_log_softmax(ort_cl_step *s, ort_error *err)
{
    return softmax(s, true);
}

/* ---- norms over the last axis */

static bool is_vector(const ort_graph *graph, const ort_node *node, int input, ort_dim size)
{
    if (!ort_cl_has(node, input))
        return true;
    const ort_type *type = &graph->values.data[node->inputs[input]]->fact.type;
    return type->rank == 1 && ort_dim_equal(type->dim[0], size);
}

static bool claim_norm(const ort_graph *graph, const ort_node *node, const char **why)
{
    const ort_type *x = &graph->values.data[node->inputs[0]]->fact.type;
    int64_t axis = ort_node_int(node, "axis", -1);
    *why = "other axes than the last have no kernel";
    return ort_cl_floats(graph, node) && x->rank > 0 && (axis == -1 || axis == x->rank - 1) &&
           !ort_cl_gives(node, 1) && !ort_cl_gives(node, 2) && ort_dim_known(x->dim[x->rank - 1]) &&
           is_vector(graph, node, 1, x->dim[x->rank - 1]) &&
           is_vector(graph, node, 2, x->dim[x->rank - 1]);
}

static ort_status emit_norm(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0);
    int64_t count = ort_cl_dim(x, x->type.rank - 1);
    const int64_t grid[3] = {count ? ort_cl_count(x) / count : 0, 1, 1};
    bool bias = ort_cl_has(s->node, 2);
    int from = ort_cl_read(s, 0), scale = ort_cl_read(s, 1), to = ort_cl_write(s, 0);
    ort_cl_launch_grid(s, "rows", "layer_norm", grid, NULL, "bbbbbbbiiiiif", from, from, scale,
                       scale, bias ? ort_cl_read(s, 2) : scale, to, to, (int64_t)0, (int64_t)0,
                       (int64_t)bias, (int64_t)0, count,
                       (double)ort_node_attr_float(s->node, "epsilon"));
    return ORT_OK;
}

static bool claim_skip(const ort_graph *graph, const ort_node *node, const char **why)
{
    const ort_type *x = &graph->values.data[node->inputs[0]]->fact.type;
    const ort_type *skip = &graph->values.data[node->inputs[1]]->fact.type;
    *why = "a skip of another shape has no kernel";
    if (!ort_cl_floats(graph, node) || x->rank != skip->rank || x->rank < 1 ||
        ort_cl_gives(node, 1) || ort_cl_gives(node, 2))
        return false;
    for (int d = 0; d < x->rank; d++)
        if (!ort_dim_equal(x->dim[d], skip->dim[d]))
            return false;
    return true;
}

static ort_status emit_skip(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0);
    int64_t count = ort_cl_dim(x, x->type.rank - 1);
    const int64_t grid[3] = {count ? ort_cl_count(x) / count : 0, 1, 1};
    bool bias = ort_cl_has(s->node, 3), more = ort_cl_has(s->node, 4);
    bool whole = ort_cl_gives(s->node, 3);
    int scale = ort_cl_read(s, 2), to = ort_cl_write(s, 0);
    ort_cl_launch_grid(s, "rows", "layer_norm", grid, NULL, "bbbbbbbiiiiif", ort_cl_read(s, 0),
                       ort_cl_read(s, 1), more ? ort_cl_read(s, 4) : scale, scale,
                       bias ? ort_cl_read(s, 3) : scale, to, whole ? ort_cl_write(s, 3) : to,
                       (int64_t)1, (int64_t)more, (int64_t)bias, (int64_t)whole, count,
                       (double)ort_node_attr_float(s->node, "epsilon"));
    return ORT_OK;
}

const ort_cl_row ort_cl_norm_rows[] = {
    {ONNX, "Softmax", claim_ranked, emit_softmax, NULL},
    {ONNX, "LogSoftmax", claim_ranked, emit_log_softmax, NULL},
    {ONNX, "LayerNormalization", claim_norm, emit_norm, NULL},
    {MS, "SkipLayerNormalization", claim_skip, emit_skip, NULL},
    {0},
};
