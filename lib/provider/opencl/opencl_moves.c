/* opencl_moves.c - operators that only move elements, or only change a shape. */
#include <string.h>

#include "provider/opencl/opencl_parts.h"

/* ---- another shape */

static ort_status emit_alias(ort_cl_step *s, ort_error *err)
{
    ort_cl_alias(s);
    return ORT_OK;
}

/* Of elements that have whole bytes; strings are places in the host's memory. */
static bool claim_alias(const ort_graph *graph, const ort_node *node, const char **why)
{
    bool drops = !strcmp(node->op_type, "Dropout");
    ort_dtype type = ort_cl_type(graph, node, 0);
    *why = "the element type has no kernel";
    if (type == ORT_DTYPE_STRING || ort_dtype_bits(type) < 8)
        return false;
    *why = "a mask, and training, have no kernel";
    return !ort_cl_gives(node, 1) && !(drops && ort_cl_has(node, 2)) &&
           (!drops || node->opset >= 7);
}

static bool claim_moved(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "the element type has no kernel";
    return ort_cl_mover(ort_cl_type(graph, node, 0)) != NULL;
}

static void move(ort_cl_step *s, int from, int to, ort_cl_walk w, int64_t first, int64_t at)
{
    ort_cl_move_with(s, ort_cl_mover(ort_cl_in(s, 0)->type.dtype), from, to, w, first, at);
}

/* ---- Transpose, Expand */

static ort_status emit_transpose(ort_cl_step *s, ort_error *err)
{
    const ort_type *x = &ort_cl_in(s, 0)->type, *y = &ort_cl_out(s, 0)->type;
    size_t count = 0;
    const int64_t *perm = ort_node_ints(s->node, "perm", &count);
    int64_t stride[ORT_CL_AXES];
    ort_cl_walk w = ort_cl_walk_of(y);
    ort_cl_spread(x, x->rank, stride);
    ort_cl_spread(y, ORT_CL_AXES, w.y);
    for (int d = 0; d < y->rank; d++) {
        int from = count ? (int)perm[d] : y->rank - 1 - d;
        w.x[ORT_CL_AXES - y->rank + d] = stride[from];
    }
    move(s, ort_cl_read(s, 0), ort_cl_write(s, 0), w, 0, 0);
    return ORT_OK;
}

static ort_status emit_expand(ort_cl_step *s, ort_error *err)
{
    const ort_type *y = &ort_cl_out(s, 0)->type;
    ort_cl_walk w = ort_cl_walk_of(y);
    ort_cl_spread(&ort_cl_in(s, 0)->type, ORT_CL_AXES, w.x);
    ort_cl_spread(y, ORT_CL_AXES, w.y);
    move(s, ort_cl_read(s, 0), ort_cl_write(s, 0), w, 0, 0);
    return ORT_OK;
}

/* ---- Concat, Split */

static int axis_of(const ort_cl_step *s, int rank, int64_t none)
{
    int64_t axis = ort_node_int(s->node, "axis", none);
    return (int)(axis < 0 ? axis + rank : axis);
}

static bool claim_joined(const ort_graph *graph, const ort_node *node, const char **why)
{
    return claim_moved(graph, node, why) && ort_cl_rank(graph, node, 0) > 0;
}

static int64_t behind(const ort_type *type, int axis)
{
    int64_t count = 1;
    for (int d = axis + 1; d < type->rank; d++)
        count *= type->dim[d].size;
    return count;
}

/* Was it written there (opencl_ahead.c)? Offsets of parts are in the whole while a plan is made. */
static bool is_in_place(const ort_cl_step *s, int from, int to, int64_t at)
{
    const ort_cl_plan *p = s->plan;
    if (p->status != ORT_OK)
        return true;
    const ort_cl_buffer *b = &p->buffers.data[from];
    return b->whole == to &&
           b->offset == (size_t)at * ort_cl_size(p, s->node->outputs[0], s->half);
}

enum { JOINED = 6 }; /* of a launch, map.cl */

typedef struct joint { /* what a launch joins: rows of n elements each, `at` a place of theirs */
    int count, from[JOINED], to;
    int64_t n[JOINED], at[JOINED], rows, row, most; /* row: of the result; most: of the n */
    bool turned;
} joint;

static void join(ort_cl_step *s, joint *j)
{
    bool wide = s->plan->device->lanes, turned = j->turned;
    int64_t across = !wide ? 1 : turned ? 32 : 256, down = !wide ? 1 : turned ? 128 : 16;
    const int64_t grid[3] = {(j->most + across - 1) / across, (j->rows + down - 1) / down,
                             j->count};
    for (int i = j->count; i < JOINED; i++)
        j->from[i] = j->from[0];
    ort_cl_launch_grid(s, "map", "join", grid, NULL, "bbbbbbb|vviiiii", j->from[0], j->from[1],
                       j->from[2], j->from[3], j->from[4], j->from[5], j->to, j->n, j->at, j->rows,
                       turned ? 1 : j->row, turned ? j->rows : 1, down, across);
}

/* One alone is a move, of any type. */
static void flush(ort_cl_step *s, joint *j)
{
    ort_cl_walk w = {{1, 1, 1, 1, j->rows, j->n[0]}, {0, 0, 0, 0, j->n[0], 1},
                     {0, 0, 0, 0, j->row, 1}};
    if (j->count == 1 && !j->turned)
        move(s, j->from[0], j->to, w, 0, j->at[0]);
    else if (j->count)
        join(s, j);
    j->count = 0;
    j->most = 0;
}

/* Does the Transpose turn a matrix whose columns begin with the axis? Axes of size 1 don't
 * count. */
static bool turns(const ort_node *node, const ort_type *type, int axis)
{
    size_t count = 0;
    const int64_t *perm = ort_node_ints(node, "perm", &count);
    int order[ORT_MAX_RANK], long_axes = 0;
    for (int part = 0; part < 2; part++)
        for (int d = part ? 0 : axis; d < (part ? axis : type->rank); d++)
            if (type->dim[d].size != 1)
                order[long_axes++] = d;
    for (int d = 0, next = 0; d < type->rank; d++) {
        int from = count ? (int)perm[d] : type->rank - 1 - d;
        if (type->dim[from].size != 1 && order[next++] != from)
            return false;
    }
    return true;
}

/* The Transpose that alone reads the result, and turns it. */
static bool find_turn(const ort_cl_step *s, int axis, int64_t rows, ort_cl_step *turn)
{
    const ort_device_step *step = ort_cl_only_reader(s);
    if (!step || rows == 1 || strcmp(step->op->name, "Transpose"))
        return false;
    *turn = ort_cl_step_of(s, step);
    return turns(step->node, &ort_cl_out(s, 0)->type, axis);
}

static ort_status emit_concat(ort_cl_step *s, ort_error *err)
{
    const ort_type *y = &ort_cl_out(s, 0)->type;
    int axis = axis_of(s, y->rank, 1);
    int64_t at = 0, row = y->dim[axis].size * behind(y, axis);
    const char *mover = ort_cl_mover(y->dtype);
    ort_cl_step turn;
    joint j = {.row = row, .rows = row ? ort_cl_count(ort_cl_out(s, 0)) / row : 0};
    j.turned = !strcmp(mover, "move") && find_turn(s, axis, j.rows, &turn);
    j.to = ort_cl_write(j.turned ? &turn : s, 0);
    for (int i = 0; i < s->node->input_count; i++) {
        const ort_type *x = &ort_cl_in(s, i)->type;
        bool placed = s->plan->ahead[s->node->inputs[i]].placed;
        int64_t n = x->dim[axis].size * behind(y, axis);
        int from = placed ? -1 : ort_cl_read(s, i);
        if (!placed && n && (j.turned || !is_in_place(s, from, j.to, at))) {
            j.from[j.count] = from;
            j.n[j.count] = n;
            j.at[j.count++] = at;
            j.most = n > j.most ? n : j.most;
        }
        at += n;
        if (j.count == JOINED || (j.count == 1 && strcmp(mover, "move")))
            flush(s, &j);
    }
    flush(s, &j);
    if (j.turned)
        ort_cl_set_made(&turn);
    return ORT_OK;
}

/* Are elements read one behind the other, as they are written? */
static bool follows(const ort_cl_walk *walk)
{
    for (int d = 0; d < ORT_CL_AXES; d++)
        if (walk->n[d] != 1 && walk->x[d] != walk->y[d])
            return false;
    return true;
}

static ort_status emit_split(ort_cl_step *s, ort_error *err)
{
    const ort_type *x = &ort_cl_in(s, 0)->type;
    int axis = axis_of(s, x->rank, 0);
    int64_t at = 0;
    for (int i = 0; i < s->node->output_count; i++) {
        if (!ort_cl_gives(s->node, i))
            continue;
        const ort_type *y = &ort_cl_out(s, i)->type;
        int64_t row = y->dim[axis].size * behind(x, axis);
        ort_cl_walk w = ort_cl_walk_of(y);
        ort_cl_spread(x, ORT_CL_AXES, w.x);
        ort_cl_spread(y, ORT_CL_AXES, w.y);
        if (!follows(&w) || !ort_cl_is_part(s, i, 0, at))
            ort_cl_columns(s, i, at, x->dim[axis].size * behind(x, axis), row);
        at += row;
    }
    return ORT_OK;
}

/* Every part must be wanted: a missing one's size isn't told. */
static bool claim_split(const ort_graph *graph, const ort_node *node, const char **why)
{
    for (int i = 0; i < node->output_count; i++)
        if (!ort_cl_gives(node, i))
            return false;
    return claim_moved(graph, node, why) && ort_cl_rank(graph, node, 0) > 0;
}

/* ---- Slice */

static bool claim_slice(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "bounds that aren't constants have no kernel";
    if (node->opset < 10)
        return false;
    for (int i = 1; i < 5; i++)
        if (!ort_cl_is_given(graph, node, i))
            return false;
    return claim_moved(graph, node, why) && ort_cl_rank(graph, node, 0) > 0;
}

static int64_t number_at(const ort_fact *fact, int64_t index, int64_t none)
{
    return fact && fact->value ? ort_tensor_get_i64(fact->value, index) : none;
}

static ort_status emit_slice(ort_cl_step *s, ort_error *err)
{
    const ort_type *x = &ort_cl_in(s, 0)->type, *y = &ort_cl_out(s, 0)->type;
    const ort_fact *starts = ort_cl_in(s, 1), *axes = ort_cl_in(s, 3), *steps = ort_cl_in(s, 4);
    int64_t stride[ORT_CL_AXES] = {0}, step[ORT_CL_AXES], first = 0;
    ort_cl_walk w = ort_cl_walk_of(y);
    for (int i = 1; i < 5; i++)
        ORT_TRY(ort_cl_known(s, i, err));
    int64_t count = ort_tensor_count(starts->value);
    ort_cl_spread(x, x->rank, stride);
    ort_cl_spread(y, ORT_CL_AXES, w.y);
    for (int d = 0; d < x->rank; d++)
        step[d] = 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = number_at(axes, i, i), start = number_at(starts, i, 0);
        axis += axis < 0 ? x->rank : 0;
        int64_t size = x->dim[axis].size;
        step[axis] = number_at(steps, i, 1);
        start += start < 0 ? size : 0;
        start = start < 0 ? 0 : start;
        start = start > size - (step[axis] < 0) ? size - (step[axis] < 0) : start;
        first += start * stride[axis];
    }
    for (int d = 0; d < x->rank; d++)
        w.x[ORT_CL_AXES - x->rank + d] = stride[d] * step[d];
    if (!follows(&w) || !ort_cl_is_part(s, 0, 0, first))
        move(s, ort_cl_read(s, 0), ort_cl_write(s, 0), w, first, 0);
    return ORT_OK;
}

/* ---- DepthToSpace, SpaceToDepth: a transposition of six axes */

static ort_status emit_blocks(ort_cl_step *s, ort_error *err)
{
    bool deep = !strcmp(s->node->op_type, "SpaceToDepth");
    const ort_type *small = &(deep ? ort_cl_out(s, 0) : ort_cl_in(s, 0))->type;
    int64_t b = ort_node_int(s->node, "blocksize", 1), n = small->dim[0].size;
    int64_t h = small->dim[2].size, w = small->dim[3].size, c = small->dim[1].size / b / b;
    bool crd = !strcmp(ort_node_string(s->node, "mode", "DCR"), "CRD");
    /* image, channel, row, row in block, column, column in block */
    const int64_t plane = h * w;
    ort_cl_walk in_depth = {{n, c, h, b, w, b},
                            {c * b * b * plane, crd ? b * b * plane : plane, w,
                             crd ? b * plane : b * c * plane, 1, crd ? plane : c * plane},
                            {c * b * b * plane, b * b * plane, b * b * w, b * w, b, 1}};
    bool taken = false;
    if (deep)
        ORT_TRY(ort_cl_take_blocks(s, &taken, err));
    if (taken)
        return ORT_OK;
    if (deep)
        for (int d = 0; d < ORT_CL_AXES; d++) {
            int64_t x = in_depth.x[d];
            in_depth.x[d] = in_depth.y[d];
            in_depth.y[d] = x;
        }
    move(s, ort_cl_read(s, 0), ort_cl_write(s, 0), in_depth, 0, 0);
    return ORT_OK;
}

static bool claim_blocks(const ort_graph *graph, const ort_node *node, const char **why)
{
    return ort_cl_rank(graph, node, 0) == 4;
}

const ort_cl_row ort_cl_moves_rows[] = {
    {ONNX, "DepthToSpace", claim_blocks, emit_blocks, .half = true},
    {ONNX, "SpaceToDepth", claim_blocks, emit_blocks, .half = true},
    {ONNX, "Dropout", claim_alias, emit_alias, .typed = true},
    {ONNX, "Reshape", claim_alias, emit_alias, .typed = true},
    {ONNX, "Flatten", claim_alias, emit_alias, .typed = true},
    {ONNX, "Squeeze", claim_alias, emit_alias, .typed = true},
    {ONNX, "Unsqueeze", claim_alias, emit_alias, .typed = true},
    {ONNX, "Identity", claim_alias, emit_alias, .typed = true},
    {ONNX, "Transpose", claim_moved, emit_transpose, .half = true, .typed = true},
    {ONNX, "Expand", NULL, emit_expand, .half = true},
    {ONNX, "Concat", claim_joined, emit_concat, .half = true, .typed = true},
    {ONNX, "Split", claim_split, emit_split, .half = true, .typed = true},
    {ONNX, "Slice", claim_slice, emit_slice, .half = true, .typed = true},
    {0},
};
