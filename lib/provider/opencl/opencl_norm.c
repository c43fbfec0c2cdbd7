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

/* ---- norms over the last axes, from `axis` on */

/* Has the input (if it is there) the shape of x from `axis` on, or none of its own? */
static bool is_behind(const ort_graph *graph, const ort_node *node, int input, const ort_type *x,
                      int axis)
{
    if (!ort_cl_has(node, input))
        return true;
    const ort_type *type = &graph->values.data[node->inputs[input]]->fact.type;
    if (type->rank != x->rank - axis)
        return false;
    for (int d = 0; d < type->rank; d++)
        if (!ort_dim_known(type->dim[d]) || !ort_dim_equal(type->dim[d], x->dim[axis + d]))
            return false;
    return true;
}

static int axis_of(const ort_node *node, int rank)
{
    int64_t axis = ort_node_int(node, "axis", -1);
    return (int)(axis < 0 ? axis + rank : axis);
}

static bool claim_norm(const ort_graph *graph, const ort_node *node, const char **why)
{
    const ort_type *x = &graph->values.data[node->inputs[0]]->fact.type;
    int axis = axis_of(node, x->rank);
    *why = "a scale that is spread has no kernel";
    return ort_cl_floats(graph, node) && x->rank > 0 && is_behind(graph, node, 1, x, axis) &&
           is_behind(graph, node, 2, x, axis);
}

/* Elements of a row. */
static int64_t row_of(const ort_fact *x, int axis)
{
    int64_t count = 1;
    for (int d = axis; d < x->type.rank; d++)
        count *= ort_cl_dim(x, d);
    return count;
}

static ort_status emit_norm(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0);
    int64_t count = row_of(x, axis_of(s->node, x->type.rank));
    const int64_t grid[3] = {count ? ort_cl_count(x) / count : 0, 1, 1};
    bool bias = ort_cl_has(s->node, 2), mean = ort_cl_gives(s->node, 1);
    bool over = ort_cl_gives(s->node, 2);
    double epsilon = ort_node_attr_float(s->node, "epsilon");
    int from = ort_cl_read(s, 0), scale = ort_cl_read(s, 1), to = ort_cl_write(s, 0);
    ort_cl_launch_grid(s, "rows", "layer_norm", grid, NULL, "bbbbbbb|iiiiif", from, from, scale,
                       scale, bias ? ort_cl_read(s, 2) : scale, to, to, (int64_t)0, (int64_t)0,
                       (int64_t)bias, (int64_t)0, count, epsilon);
    if (mean || over)
        ort_cl_launch_grid(s, "rows", "row_facts", grid, NULL, "bbbiiif", from,
                           mean ? ort_cl_write(s, 1) : to, over ? ort_cl_write(s, 2) : to,
                           (int64_t)mean, (int64_t)over, count, epsilon);
    return ORT_OK;
}

static bool claim_rms(const ort_graph *graph, const ort_node *node, const char **why)
{
    return !ort_cl_gives(node, 1) && claim_norm(graph, node, why);
}

static ort_status emit_rms(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0);
    int64_t count = row_of(x, axis_of(s->node, x->type.rank));
    const int64_t grid[3] = {count ? ort_cl_count(x) / count : 0, 1, 1};
    int from = ort_cl_read(s, 0), scale = ort_cl_read(s, 1), to = ort_cl_write(s, 0);
    ort_cl_launch_grid(s, "rows", "rms_norm", grid, NULL, "bbbbbb|iiiiif", from, from, scale, scale,
                       to, to, (int64_t)0, (int64_t)0, (int64_t)0, (int64_t)0, count,
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
    ort_cl_launch_grid(s, "rows", "layer_norm", grid, NULL, "bbbbbbb|iiiiif", ort_cl_read(s, 0),
                       ort_cl_read(s, 1), more ? ort_cl_read(s, 4) : scale, scale,
                       bias ? ort_cl_read(s, 3) : scale, to, whole ? ort_cl_write(s, 3) : to,
                       (int64_t)1, (int64_t)more, (int64_t)bias, (int64_t)whole, count,
                       (double)ort_node_attr_float(s->node, "epsilon"));
    return ORT_OK;
}

static ort_status emit_skip_rms(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0);
    int64_t count = ort_cl_dim(x, x->type.rank - 1);
    const int64_t grid[3] = {count ? ort_cl_count(x) / count : 0, 1, 1};
    bool more = ort_cl_has(s->node, 3), whole = ort_cl_gives(s->node, 3);
    int scale = ort_cl_read(s, 2), to = ort_cl_write(s, 0);
    ort_cl_launch_grid(s, "rows", "rms_norm", grid, NULL, "bbbbbb|iiiiif", ort_cl_read(s, 0),
                       ort_cl_read(s, 1), more ? ort_cl_read(s, 3) : scale, scale, to,
                       whole ? ort_cl_write(s, 3) : to, (int64_t)1, (int64_t)more, (int64_t)false,
                       (int64_t)whole, count,
                       (double)ort_node_attr_float(s->node, "epsilon"));
    return ORT_OK;
}

/* ---- norms of channels */

static bool claim_channels(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "this form has no kernel";
    return ort_cl_floats(graph, node) && ort_cl_rank(graph, node, 0) >= 2 && node->opset >= 6;
}

static ort_status emit_channels(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0);
    int64_t channels = ort_cl_dim(x, 1), rows = ort_cl_dim(x, 0) * channels;
    int64_t groups = ort_node_int(s->node, "num_groups", channels);
    bool by_group = ort_cl_count(ort_cl_in(s, 1)) == groups && groups != channels;
    const int64_t grid[3] = {ort_cl_count(x) ? ort_cl_dim(x, 0) * groups : 0, 1, 1};
    ort_cl_launch_grid(s, "rows", "group_norm", grid, NULL, "bbbbiiiif", ort_cl_read(s, 0),
                       ort_cl_read(s, 1), ort_cl_read(s, 2), ort_cl_write(s, 0), groups, channels,
                       rows ? ort_cl_count(x) / rows : 1, (int64_t)by_group,
                       (double)ort_node_attr_float(s->node, "epsilon"));
    return ORT_OK;
}

const ort_cl_row ort_cl_norm_rows[] = {
    {ONNX, "Softmax", claim_ranked, emit_softmax, .half = true},
    {ONNX, "LogSoftmax", claim_ranked, emit_log_softmax, .half = true},
    {ONNX, "LayerNormalization", claim_norm, emit_norm, .half = true},
    {MS, "SkipLayerNormalization", claim_skip, emit_skip, .half = true},
    {ONNX, "RMSNormalization", claim_rms, emit_rms, .half = true},
    {ONNX, "SimplifiedLayerNormalization", claim_rms, emit_rms, .half = true},
    {MS, "SkipSimplifiedLayerNormalization", claim_skip, emit_skip_rms, .half = true},
    {ONNX, "InstanceNormalization", claim_channels, emit_channels, .half = true},
    {ONNX, "GroupNormalization", claim_channels, emit_channels, .half = true},
    {0},
};
