/* opencl_take.c - results whose elements are looked up by tables, one for each axis: Pad, Gather of
 * constant indices, also of what SpaceToDepth makes, Resize, Tile. The tables are made with the
 * plan: kernels ask nothing about borders.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/shared/resample.h"
#include "provider/opencl/opencl_parts.h"

/* ---- tables of all axes of a result, behind one another: offsets in the source, or -1 */

typedef struct look_up {
    int64_t *table, *axis[ORT_CL_AXES]; /* axis: by axis of the result */
    int64_t count;
} look_up;

static bool new_tables(ort_cl_step *s, const ort_type *y, look_up *l)
{
    l->count = ORT_CL_AXES - y->rank;
    for (int d = 0; d < y->rank; d++)
        l->count += y->dim[d].size;
    l->table = calloc((size_t)l->count + 1, sizeof *l->table);
    if (!l->table) {
        s->plan->status = ort_error_memory(s->plan->error, (size_t)l->count * sizeof *l->table);
        return false;
    }
    int64_t *at = l->table + ORT_CL_AXES - y->rank;
    for (int d = 0; d < y->rank; at += y->dim[d++].size)
        l->axis[d] = at;
    return true;
}

/* Does what is taken along the last axis lie there as it lies in the result? */
static bool in_rows(const look_up *l, int64_t row)
{
    const int64_t *table = l->table + l->count - row;
    for (int64_t i = 0; i < row; i++)
        if (table[i] < 0 || table[i] != table[0] + i)
            return false;
    return true;
}

static void take_from(ort_cl_step *s, int from, look_up *l, double fill)
{
    const ort_fact *y = ort_cl_out(s, 0);
    ort_cl_walk w = ort_cl_walk_of(&y->type);
    int64_t rows = in_rows(l, w.n[ORT_CL_AXES - 1]);
    const int64_t grid[3] = {ort_cl_items(s, ort_cl_count(y)), 1, 1};
    int table = ort_cl_table(s, l->table, l->count);
    free(l->table);
    ort_cl_launch_grid(s, "take", "take", grid, NULL, "bbbiiiiiifii", from, ort_cl_write(s, 0),
                       table, w.n[0], w.n[1], w.n[2], w.n[3], w.n[4], w.n[5], fill, rows,
                       ort_cl_count(y));
}

static void take(ort_cl_step *s, look_up *l, double fill)
{
    take_from(s, ort_cl_read(s, 0), l, fill);
}

static void strides_of(const ort_type *type, int64_t *stride)
{
    int64_t step = 1;
    for (int d = type->rank - 1; d >= 0; d--) {
        stride[d] = step;
        step *= type->dim[d].size;
    }
}

/* ---- Pad */

static const char *const pad_modes[] = {"constant", "reflect", "edge", "wrap"};

static bool claim_pad(const ort_graph *graph, const ort_node *node, const char **why)
{
    const char *mode = ort_node_string(node, "mode", "constant");
    bool known = false;
    for (int i = 0; i < 4; i++)
        known = known || !strcmp(mode, pad_modes[i]);
    *why = "pads that aren't constants have no kernel";
    if (!known || node->opset < 2 || ort_cl_rank(graph, node, 0) == 0)
        return false;
    for (int i = 1; i < 4; i++)
        if (!ort_cl_is_given(graph, node, i))
            return false;
    return node->opset < 11 || ort_cl_has(node, 1);
}

/* -1: a constant stands there. */
static int64_t source_of(int64_t i, int64_t size, const char *mode)
{
    if (i >= 0 && i < size)
        return i;
    if (size == 0 || !strcmp(mode, "constant"))
        return -1;
    if (!strcmp(mode, "edge"))
        return i < 0 ? 0 : size - 1;
    if (!strcmp(mode, "wrap"))
        return (i % size + size) % size;
    int64_t turn = size > 1 ? 2 * (size - 1) : 1;
    i = (i % turn + turn) % turn;
    return i < size ? i : turn - i;
}

/* What stands before each axis. */
static void pad_starts(const ort_cl_step *s, int rank, int64_t *start)
{
    size_t count = 0;
    const int64_t *list = ort_node_ints(s->node, "pads", &count);
    const ort_fact *pads = ort_cl_in(s, 1), *axes = ort_cl_in(s, 3);
    int64_t given = pads ? ort_tensor_count(pads->value) / 2 : (int64_t)count / 2;
    memset(start, 0, ORT_CL_AXES * sizeof *start);
    for (int64_t i = 0; i < given; i++) {
        int64_t axis = axes ? ort_tensor_get_i64(axes->value, i) : i;
        start[axis < 0 ? axis + rank : axis] =
            pads ? ort_tensor_get_i64(pads->value, i) : list[i];
    }
}

static ort_status emit_pad(ort_cl_step *s, ort_error *err)
{
    const ort_type *x = &ort_cl_in(s, 0)->type, *y = &ort_cl_out(s, 0)->type;
    const char *mode = ort_node_string(s->node, "mode", "constant");
    const ort_fact *value = ort_cl_in(s, 2);
    int64_t stride[ORT_CL_AXES], start[ORT_CL_AXES];
    float fill = ort_node_float(s->node, "value", 0);
    look_up l;
    for (int i = 1; i < 4; i++)
        ORT_TRY(ort_cl_known(s, i, err));
    if (value && ort_tensor_count(value->value))
        ort_tensor_to_f32(value->value, 0, 1, &fill);
    if (!new_tables(s, y, &l))
        return s->plan->status;
    strides_of(x, stride);
    pad_starts(s, y->rank, start);
    for (int d = 0; d < y->rank; d++)
        for (int64_t i = 0; i < y->dim[d].size; i++) {
            int64_t from = source_of(i - start[d], x->dim[d].size, mode);
            l.axis[d][i] = from < 0 ? -1 : from * stride[d];
        }
    take(s, &l, fill);
    return ORT_OK;
}

/* ---- Gather of constant indices (others: opencl_tokens.c) */

ort_status ort_cl_gather_table(ort_cl_step *s, ort_error *err)
{
    const ort_type *x = &ort_cl_in(s, 0)->type, *y = &ort_cl_out(s, 0)->type;
    const ort_tensor *indices = ort_cl_in(s, 1)->value;
    int64_t axis = ort_node_int(s->node, "axis", 0), stride[ORT_CL_AXES];
    axis += axis < 0 ? x->rank : 0;
    int64_t size = x->dim[axis].size, count = ort_tensor_count(indices);
    look_up l;
    if (!new_tables(s, y, &l))
        return s->plan->status;
    strides_of(x, stride);
    for (int d = 0; d < x->rank; d++) { /* an index without axes leaves its axis out */
        int to = indices->shape.rank || d < axis ? d : d - 1;
        for (int64_t i = 0; d != axis && i < x->dim[d].size; i++)
            l.axis[to][i] = i * stride[d];
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t index = ort_tensor_get_i64(indices, i);
        if (index < -size || index >= size) {
            free(l.table);
            return ort_error_set(err, ORT_ERROR_DATA, "indices[%lld] is %lld, must be in [%lld, "
                                 "%lld]", (long long)i, (long long)index, (long long)-size,
                                 (long long)size - 1);
        }
        index = (index < 0 ? index + size : index) * stride[axis];
        if (indices->shape.rank)
            l.axis[axis][i] = index;
        else
            l.table[0] = index; /* of an axis of size 1 in front */
    }
    take(s, &l, 0);
    return ORT_OK;
}

/* Channels as blocks have them: row and column of the block, then channel. */
static void block_tables(const ort_cl_step *s, const ort_tensor *chosen, look_up *l)
{
    const ort_type *x = &ort_cl_in(s, 0)->type, *y = &ort_cl_out(s, 0)->type;
    int64_t block = ort_node_int(s->node, "blocksize", 1), stride[ORT_CL_AXES];
    int64_t channels = x->dim[1].size, all = channels * block * block;
    strides_of(x, stride);
    for (int64_t i = 0; i < x->dim[0].size; i++)
        l->axis[0][i] = i * stride[0];
    for (int64_t i = 0; i < ort_tensor_count(chosen); i++) {
        int64_t index = ort_tensor_get_i64(chosen, i), at = index < 0 ? index + all : index;
        l->axis[1][i] = at % channels * stride[1] + at / channels / block * stride[2] +
                        at / channels % block;
    }
    for (int64_t i = 0; i < y->dim[2].size; i++)
        l->axis[2][i] = i * block * stride[2];
    for (int64_t i = 0; i < y->dim[3].size; i++)
        l->axis[3][i] = i * block;
}

static bool are_within(const ort_tensor *indices, int64_t size)
{
    for (int64_t i = 0; i < ort_tensor_count(indices); i++)
        if (ort_tensor_get_i64(indices, i) < -size || ort_tensor_get_i64(indices, i) >= size)
            return false;
    return true;
}

ort_status ort_cl_take_blocks(ort_cl_step *s, bool *taken, ort_error *err)
{
    const ort_device_step *step = ort_cl_only_reader(s);
    look_up l;
    *taken = false;
    if (!step || strcmp(step->op->name, "Gather") || ort_node_int(step->node, "axis", 0) != 1)
        return ORT_OK;
    ort_cl_step gather = ort_cl_step_of(s, step);
    const ort_tensor *chosen = ort_cl_in(&gather, 1)->value;
    if (!chosen || chosen->shape.rank != 1 || step->node->inputs[0] != s->node->outputs[0] ||
        !are_within(chosen, ort_cl_dim(ort_cl_out(s, 0), 1)))
        return ORT_OK;
    *taken = true;
    if (!new_tables(&gather, &ort_cl_out(&gather, 0)->type, &l))
        return s->plan->status;
    block_tables(s, chosen, &l);
    take_from(&gather, ort_cl_read(s, 0), &l, 0);
    ort_cl_set_made(&gather);
    return ORT_OK;
}

/* ---- Resize */

static const char *const coordinates[ORT_COORD_COUNT] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_half_pixel_for_nn", "tf_crop_and_resize"};
static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

static int word_of(const char *const *words, int count, const char *word)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(words[i], word))
            return i;
    return -1;
}

static int coordinate_of(const ort_node *node)
{
    return word_of(coordinates, ORT_COORD_COUNT,
                   node->opset < 11 ? "asymmetric"
                                    : ort_node_string(node, "coordinate_transformation_mode",
                                                      "half_pixel"));
}

static bool claim_resize(const ort_graph *graph, const ort_node *node, const char **why)
{
    int scales = node->opset < 11 ? 1 : 2;
    int coordinate = coordinate_of(node);
    *why = "this form of Resize has no kernel";
    if (coordinate < 0 || coordinate == ORT_COORD_TF_CROP_AND_RESIZE ||
        ort_cl_rank(graph, node, 0) == 0 || ort_node_int(node, "antialias", 0) ||
        strcmp(ort_node_string(node, "keep_aspect_ratio_policy", "stretch"), "stretch"))
        return false;
    *why = "scales that aren't constants have no kernel";
    return node->opset >= 10 && ort_cl_is_given(graph, node, scales) &&
           (node->opset < 11 || ort_cl_is_given(graph, node, 3));
}

/* The axis as the operator sees it; where sizes are given, the scale follows from them. */
static ort_resample_axis resize_axis(const ort_cl_step *s, int d)
{
    const ort_fact *scales = ort_cl_in(s, s->node->opset < 11 ? 1 : 2);
    size_t axis_count = 0;
    const int64_t *axes = ort_node_ints(s->node, "axes", &axis_count);
    int rank = ort_cl_in(s, 0)->type.rank, place = d;
    ort_resample_axis a = {.in = ort_cl_dim(ort_cl_in(s, 0), d),
                           .out = ort_cl_dim(ort_cl_out(s, 0), d), .scale = 1, .roi_end = 1};
    for (size_t i = 0; i < axis_count; i++)
        if ((axes[i] < 0 ? axes[i] + rank : axes[i]) == d)
            place = (int)i;
    bool by_scale = scales && scales->value && ort_tensor_count(scales->value) > place;
    if (by_scale)
        ort_tensor_to_f32(scales->value, place, 1, &a.scale);
    else if (a.in)
        a.scale = (float)a.out / (float)a.in;
    a.width = by_scale ? a.scale * (float)a.in : (float)a.out;
    return a;
}

static ort_status resize_nearest(ort_cl_step *s)
{
    const ort_type *x = &ort_cl_in(s, 0)->type, *y = &ort_cl_out(s, 0)->type;
    int64_t stride[ORT_CL_AXES];
    int rounding = s->node->opset < 11
                       ? (int)ORT_ROUND_SIMPLE
                       : word_of(roundings, 4, ort_node_string(s->node, "nearest_mode",
                                                               "round_prefer_floor"));
    look_up l;
    if (!new_tables(s, y, &l))
        return s->plan->status;
    strides_of(x, stride);
    for (int d = 0; d < y->rank; d++) {
        const ort_resample_axis a = resize_axis(s, d);
        if (ort_resample_needed((ort_coordinate)coordinate_of(s->node), &a))
            ort_resample_nearest((ort_coordinate)coordinate_of(s->node), (ort_rounding)rounding,
                                 &a, l.axis[d]);
        else
            for (int64_t i = 0; i < a.out; i++)
                l.axis[d][i] = i;
        for (int64_t i = 0; i < a.out; i++)
            l.axis[d][i] *= stride[d];
    }
    take(s, &l, 0);
    return ORT_OK;
}

static void *from_arena(void *arg, size_t bytes)
{
    return ort_arena_alloc(arg, bytes);
}

/* From the last axis to the first: sizes of the axes behind are those of the result. */
static void blend(ort_cl_step *s, const ort_resample *r)
{
    const ort_type *x = &ort_cl_in(s, 0)->type, *y = &ort_cl_out(s, 0)->type;
    int from = ort_cl_read(s, 0);
    for (int i = r->table_count - 1; i >= 0; i--) {
        const ort_resample_table *t = &r->table[i];
        int64_t outer = 1, inner = 1;
        for (int d = 0; d < t->axis; d++)
            outer *= x->dim[d].size;
        for (int d = t->axis + 1; d < y->rank; d++)
            inner *= y->dim[d].size;
        int to = i ? ort_cl_scratch(s, outer * t->out * inner) : ort_cl_write(s, 0);
        int index = ort_cl_table(s, t->index, t->out * t->taps);
        int weight = ort_cl_numbers(s, t->weight, t->out * t->taps);
        const int64_t grid[3] = {ort_cl_along(s, inner), t->out, outer};
        ort_cl_launch_grid(s, "take", "blend", grid, NULL, "bbbbiii", from, to, index, weight,
                           t->in, inner, (int64_t)t->taps);
        from = to;
    }
}

static ort_status emit_resize(ort_cl_step *s, ort_error *err)
{
    const char *mode = ort_node_string(s->node, "mode", "nearest");
    const ort_resample_kind kind = {
        .coordinate = (ort_coordinate)coordinate_of(s->node),
        .cubic = !strcmp(mode, "cubic"),
        .exclude_outside = ort_node_int(s->node, "exclude_outside", 0),
        .cubic_a = ort_node_float(s->node, "cubic_coeff_a", -0.75f)};
    ort_resample r = {0};
    ort_arena memory = {0};
    bool ok = true;
    for (int i = s->node->opset < 11 ? 1 : 2; i < 4; i++)
        ORT_TRY(ort_cl_known(s, i, err));
    if (!strcmp(mode, "nearest"))
        return resize_nearest(s);
    for (int d = 0; d < ort_cl_out(s, 0)->type.rank && ok; d++) {
        const ort_resample_axis a = resize_axis(s, d);
        if (ort_resample_needed(kind.coordinate, &a))
            ok = ort_resample_add(&r, d, &kind, &a, from_arena, &memory);
    }
    if (ok && r.table_count)
        blend(s, &r);
    else if (ok)
        ort_cl_alias(s);
    ort_arena_release(&memory);
    return ok ? ORT_OK : ort_error_memory(err, sizeof r);
}

/* ---- Tile */

static ort_status emit_tile(ort_cl_step *s, ort_error *err)
{
    const ort_type *x = &ort_cl_in(s, 0)->type, *y = &ort_cl_out(s, 0)->type;
    int64_t stride[ORT_CL_AXES];
    look_up l;
    if (!new_tables(s, y, &l))
        return s->plan->status;
    strides_of(x, stride);
    for (int d = 0; d < y->rank; d++)
        for (int64_t i = 0; i < y->dim[d].size; i++)
            l.axis[d][i] = i % x->dim[d].size * stride[d];
    take(s, &l, 0);
    return ORT_OK;
}

static bool claim_tile(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "this form has no kernel";
    return node->opset >= 6 && ort_cl_rank(graph, node, 0) > 0;
}

const ort_cl_row ort_cl_take_rows[] = {
    {ONNX, "Pad", claim_pad, emit_pad, .half = true},
    {ONNX, "Resize", claim_resize, emit_resize, .half = true},
    {ONNX, "Tile", claim_tile, emit_tile, .half = true},
    {0},
};
