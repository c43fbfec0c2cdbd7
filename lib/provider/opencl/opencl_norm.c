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

/* ---- norms that the items of a product make */

/* Which input is the value; -1: the norm can't be made with it. */
static int norm_input(const ort_cl_step *norm, ort_id id, int64_t count)
{
    const ort_node *node = norm->node;
    const ort_fact *x = ort_cl_in(norm, 0);
    bool skips = norm->row->emit == emit_skip || norm->row->emit == emit_skip_rms;
    int input = node->inputs[0] == id ? 0 : 1;
    if (skips)
        return ort_cl_dim(x, x->type.rank - 1) == count ? input : -1;
    bool plain = norm->row->emit == emit_norm || norm->row->emit == emit_rms;
    return plain && !input && !ort_cl_gives(node, 1) && !ort_cl_gives(node, 2) &&
                   row_of(x, axis_of(node, x->type.rank)) == count
               ? input
               : -1;
}

/* Who makes rows by items that are alone sees what others wrote by atomics only on a CPU. */
bool ort_cl_norm_behind(ort_cl_step *s, int64_t count, ort_cl_norm *norm, int *to)
{
    ort_cl_plan *p = s->plan;
    const ort_device_step *step = ort_cl_only_reader(s);
    if (!step || !(p->device->type & CL_DEVICE_TYPE_CPU) || p->device->measuring)
        return false;
    ort_cl_step n = ort_cl_step_of(s, step);
    int input = norm_input(&n, ort_cl_last_node(s)->outputs[0], count);
    if (input < 0)
        return false;
    for (int i = 0; i < n.node->input_count; i++)
        if (i != input && ort_cl_has(n.node, i) && !ort_cl_is_there(s, n.node->inputs[i]))
            return false;
    bool skips = n.row->emit == emit_skip || n.row->emit == emit_skip_rms;
    bool mean = n.row->emit == emit_skip || n.row->emit == emit_norm;
    int scale = skips ? 2 : 1, shift = mean ? scale + 1 : -1, more = mean ? 4 : 3;
    norm->kind = mean ? 2 : 1;
    norm->scale = ort_cl_read(&n, scale);
    norm->shift = mean && ort_cl_has(n.node, shift) ? ort_cl_read(&n, shift) : -1;
    norm->skip = skips ? ort_cl_read(&n, 1 - input) : -1;
    norm->more = skips && ort_cl_has(n.node, more) ? ort_cl_read(&n, more) : -1;
    norm->epsilon = (double)ort_node_attr_float(n.node, "epsilon");
    norm->out = ort_cl_write(&n, 0);
    *to = skips && ort_cl_gives(n.node, 3) ? ort_cl_write(&n, 3) : norm->out;
    ort_cl_set_made(&n);
    return true;
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
