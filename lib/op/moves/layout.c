/* layout.c - operators that rearrange whole blocks: Transpose, Expand, Tile, Concat, Split,
 * DepthToSpace, SpaceToDepth.
 *
 * Invariant: each run is one or a few strided copies (move.h); an element is never interpreted, so
 * one body serves every element type.
 */
#include <string.h>

#include "base/checked.h"
#include "op/shared/axes.h"
#include "op/shared/move.h"

/* ---- Transpose */

typedef struct perm_state {
    ort_ints perm; /* none: reversed */
} perm_state;

static const ort_bind perm_bind[] = {ORT_BIND(perm_state, perm), {0}};

/* Whatever the input's rank, which may be known to a run alone. */
static ort_status perm_check(const ort_infer *x, const int64_t *perm, size_t count, ort_error *err)
{
    if (count > ORT_MAX_RANK)
        return ort_infer_fail(x, err, "perm has %zu entries; at most %d are supported", count,
                              ORT_MAX_RANK);
    for (size_t d = 0; d < count; d++)
        if (perm[d] < 0 || perm[d] >= (int64_t)count)
            return ort_infer_fail(x, err, "perm[%zu] is %lld; each of 0 to %zu is needed once", d,
                                  (long long)perm[d], count - 1);
    if (!ort_axes_permute(perm, count))
        return ort_infer_fail(x, err, "perm names an axis twice; each of 0 to %zu is needed once",
                              count - 1);
    return ORT_OK;
}

/* perm attribute as a permutation of [0, rank); the reversal when absent. */
static ort_status perm_read(const ort_infer *x, int rank, int *perm, ort_error *err)
{
    size_t count = 0;
    const int64_t *given = ort_node_ints(x->node, "perm", &count);
    bool reverses = !ort_node_has(x->node, "perm") || (!given && rank == 0);
    if (!reverses && (int)count != rank)
        return ort_infer_fail(x, err, "perm has %zu entries, the input has rank %d", count, rank);
    for (int d = 0; d < rank; d++)
        perm[d] = reverses ? rank - 1 - d : (int)given[d];
    return ORT_OK;
}

static ort_status transpose_infer(ort_infer *x, ort_error *err)
{
    int perm[ORT_MAX_RANK];
    ort_dim dims[ORT_MAX_RANK];
    size_t count = 0;
    const int64_t *given = ort_node_ints(x->node, "perm", &count);
    ORT_TRY(perm_check(x, given, count, err));
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    const ort_type *in = &x->in[0]->type;
    ORT_TRY(perm_read(x, in->rank, perm, err));
    for (int d = 0; d < in->rank; d++)
        dims[d] = in->dim[perm[d]];
    ort_infer_set_shape(x, 0, in->rank, dims);
    ort_infer_pass_symbolic(x, 0, 0);
    return ORT_OK;
}

static ort_status transpose_prepare(ort_prep *p, ort_error *err)
{
    const perm_state *state = p->state;
    if (!ort_axes_permute(state->perm.ptr, state->perm.count))
        return ort_prep_fail(p, err, "perm is no permutation");
    return ORT_OK;
}

static ort_status transpose_run(ort_call *call, ort_error *err)
{
    const ort_ints *perm = &((const perm_state *)call->state)->perm;
    const ort_tensor *in = ort_call_in(call, 0);
    ort_tensor *out = ort_call_out(call, 0);
    ort_move move = ort_move_between(in, out);
    int64_t from[ORT_MAX_RANK], to[ORT_MAX_RANK];
    int rank = in->shape.rank;
    if (perm->count && perm->count != (size_t)rank)
        return ort_call_fail(call, err, "perm has %zu entries, the input has rank %d", perm->count,
                             rank);
    ort_shape_strides(&in->shape, from);
    ort_shape_strides(&out->shape, to);
    for (int d = 0; d < rank; d++)
        ort_move_add(&move, out->shape.dim[d], from[perm->count ? perm->ptr[d] : rank - 1 - d],
                     to[d]);
    ort_move_run(&move, call->pool);
    return ORT_OK;
}

static const ort_op_impl transpose_impl = {
    .state = sizeof(perm_state), .bind = perm_bind,
    .infer = transpose_infer, .prepare = transpose_prepare, .run = transpose_run,
};

/* ---- Expand */

static ort_status expand_infer(ort_infer *x, ort_error *err)
{
    ort_dim want[ORT_SYMBOLIC_MAX], dims[ORT_MAX_RANK];
    int count = ort_infer_elements(x, 1, want);
    if (count < 0 || !ort_infer_in_ranked(x, 0))
        return ORT_OK;
    const ort_type *in = &x->in[0]->type;
    int rank = count > in->rank ? count : in->rank;
    if (rank > ORT_MAX_RANK)
        return ort_infer_fail(x, err, "shape has %d dims; at most %d are supported", rank,
                              ORT_MAX_RANK);
    for (int d = 0; d < rank; d++) {
        int i = d - (rank - in->rank), k = d - (rank - count);
        ort_dim a = i < 0 ? ort_dim_of(1) : in->dim[i], b = k < 0 ? ort_dim_of(1) : want[k];
        if (ort_dim_known(b) && b.size < 0)
            return ort_infer_fail(x, err, "shape[%d] is %lld; a size is needed", k,
                                  (long long)b.size);
        if (!ort_dim_broadcast(x->dims, a, b, &dims[d]))
            return ort_infer_fail(x, err, "input dim %lld (axis %d of the output) does not "
                                  "broadcast to %lld", (long long)a.size, d, (long long)b.size);
    }
    ort_infer_set_shape(x, 0, rank, dims);
    if (rank == 1 && ort_dim_known(dims[0]) && dims[0].size <= ORT_SYMBOLIC_MAX) {
        ort_dim value[ORT_SYMBOLIC_MAX];
        int have = ort_infer_elements(x, 0, value);
        if (have == 1 || have == dims[0].size) {
            for (int i = 1; have == 1 && i < dims[0].size; i++)
                value[i] = value[0];
            ort_infer_set_symbolic(x, 0, value, (int)dims[0].size);
        }
    } else if (rank == 0) { /* a vector of unknown size may hold its element many times */
        ort_infer_pass_symbolic(x, 0, 0);
    }
    return ORT_OK;
}

static ort_status expand_run(ort_call *call, ort_error *err)
{
    const ort_tensor *in = ort_call_in(call, 0);
    ort_tensor *out = ort_call_out(call, 0);
    ort_move move = ort_move_between(in, out);
    int64_t from[ORT_MAX_RANK], to[ORT_MAX_RANK];
    ort_shape_broadcast_strides(&in->shape, &out->shape, from);
    ort_shape_strides(&out->shape, to);
    for (int d = 0; d < out->shape.rank; d++)
        ort_move_add(&move, out->shape.dim[d], from[d], to[d]);
    ort_move_run(&move, call->pool);
    return ORT_OK;
}

static const ort_op_impl expand_impl = {.rule = "- [_]", .infer = expand_infer, .run = expand_run};

/* ---- Tile */

static ort_status tile_infer(ort_infer *x, ort_error *err)
{
    ort_dim times[ORT_SYMBOLIC_MAX], dims[ORT_MAX_RANK], value[ORT_SYMBOLIC_MAX];
    int count = ort_infer_elements(x, 1, times);
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    const ort_type *in = &x->in[0]->type;
    if (count >= 0 && count != in->rank)
        return ort_infer_fail(x, err, "repeats has %d elements, the input has rank %d", count,
                              in->rank);
    for (int d = 0; d < in->rank; d++) {
        if (count >= 0 && ort_dim_known(times[d]) && times[d].size < 0)
            return ort_infer_fail(x, err, "repeats[%d] is %lld; it must not be negative", d,
                                  (long long)times[d].size);
        dims[d] = count < 0 ? ort_dim_unknown() : ort_dim_mul(x->dims, in->dim[d], times[d]);
    }
    ort_infer_set_shape(x, 0, in->rank, dims);
    int have = in->rank == 1 ? ort_infer_elements(x, 0, value) : -1;
    if (have > 0 && ort_dim_known(dims[0]) && dims[0].size <= ORT_SYMBOLIC_MAX) {
        for (int i = have; i < dims[0].size; i++)
            value[i] = value[i - have];
        ort_infer_set_symbolic(x, 0, value, (int)dims[0].size);
    }
    return ORT_OK;
}

static ort_status tile_run(ort_call *call, ort_error *err)
{
    const ort_tensor *in = ort_call_in(call, 0);
    ort_tensor *out = ort_call_out(call, 0);
    ort_move move = ort_move_between(in, out);
    int64_t from[ORT_MAX_RANK], to[ORT_MAX_RANK];
    if (ort_tensor_count(out) == 0)
        return ORT_OK;
    ort_shape_strides(&in->shape, from);
    ort_shape_strides(&out->shape, to);
    for (int d = 0; d < in->shape.rank; d++) {
        int64_t n = in->shape.dim[d];
        ort_move_add(&move, out->shape.dim[d] / n, 0, n * to[d]);
        ort_move_add(&move, n, from[d], to[d]);
    }
    ort_move_run(&move, call->pool);
    return ORT_OK;
}

static const ort_op_impl tile_impl = {.infer = tile_infer, .run = tile_run};

/* ---- Concat and Split */

typedef struct concat_state {
    int64_t axis;
} concat_state;

static const ort_bind concat_bind[] = {ORT_BIND(concat_state, axis), {0}};

static void concat_values(ort_infer *x)
{
    ort_dim all[ORT_SYMBOLIC_MAX], part[ORT_SYMBOLIC_MAX];
    int count = 0;
    for (int i = 0; i < x->in_count; i++) {
        int n = ort_infer_elements(x, i, part);
        if (n < 0 || count + n > ORT_SYMBOLIC_MAX)
            return;
        memcpy(all + count, part, (size_t)n * sizeof *part);
        count += n;
    }
    if (ort_infer_any_known(all, count))
        ort_infer_set_symbolic(x, 0, all, count);
}

static ort_status concat_infer(ort_infer *x, ort_error *err)
{
    ort_dim dims[ORT_MAX_RANK], sum = ort_dim_of(0);
    int rank = -1, axis = 0;
    for (int i = 0; i < x->in_count; i++)
        if (ort_infer_in_ranked(x, i) && rank < 0) {
            rank = x->in[i]->type.rank;
            memcpy(dims, x->in[i]->type.dim, sizeof dims);
        }
    if (rank < 0)
        return ORT_OK;
    if (rank == 0)
        return ort_infer_fail(x, err, "scalars can't be concatenated; inputs need rank 1 or more");
    ORT_TRY(ort_infer_axis(x, ort_node_attr_int(x->node, "axis"), rank, &axis, err));
    for (int i = 0; i < x->in_count; i++) {
        if (!ort_infer_in_ranked(x, i)) {
            sum = ort_dim_unknown();
            continue;
        }
        const ort_type *in = &x->in[i]->type;
        if (in->rank != rank)
            return ort_infer_fail(x, err, "input %d has rank %d, the others %d", i, in->rank, rank);
        sum = ort_dim_add(x->dims, sum, in->dim[axis]);
        for (int d = 0; d < rank; d++) {
            if (d != axis && ort_dim_known(in->dim[d]) && ort_dim_known(dims[d]) &&
                in->dim[d].size != dims[d].size)
                return ort_infer_fail(x, err, "axis %d of input %d is %lld, of the others %lld", d,
                                      i, (long long)in->dim[d].size, (long long)dims[d].size);
            dims[d] = ort_dim_merge(dims[d], in->dim[d]);
        }
    }
    dims[axis] = sum;
    ort_infer_set_shape(x, 0, rank, dims);
    if (rank == 1)
        concat_values(x);
    return ORT_OK;
}

enum { SMALL_SLAB = 4 << 10 }; /* bytes that are copied before a move is described */

/* Copy of the slab [from, from + n) along axis of `src` to [to, to + n) of `dst`. */
static void copy_slab(const ort_tensor *src, int64_t from, ort_tensor *dst, int64_t to, int64_t n,
                      int axis, ort_pool *pool)
{
    const int rank = src->shape.rank;
    const int64_t outer = ort_shape_count_range(&src->shape, 0, axis);
    const int64_t inner = ort_shape_count_range(&src->shape, axis + 1, rank);
    const int64_t src_step = src->shape.dim[axis] * inner, dst_step = dst->shape.dim[axis] * inner;
    const int64_t each = (int64_t)ort_move_element_bytes(dst->dtype), row = n * inner * each;
    if (outer <= 0 || n * inner <= 0)
        return;
    if (each && row <= SMALL_SLAB && outer <= SMALL_SLAB && outer * row <= SMALL_SLAB) {
        const char *in = (const char *)src->data + from * inner * each;
        char *out = (char *)dst->data + to * inner * each;
        for (int64_t i = 0; i < outer; i++, in += src_step * each, out += dst_step * each)
            ort_move_bytes(out, in, (size_t)row);
        return;
    }
    ort_move move = ort_move_between(src, dst);
    move.src_offset = from * inner;
    move.dst_offset = to * inner;
    ort_move_add(&move, outer, src_step, dst_step);
    ort_move_add(&move, n * inner, 1, 1);
    ort_move_run(&move, pool);
}

static ort_status concat_run(ort_call *call, ort_error *err)
{
    ort_tensor *out = ort_call_out(call, 0);
    int64_t axis = ((const concat_state *)call->state)->axis, to = 0;
    const char *at = out->data; /* where input i lies when it is a part of the output (JOINS) */
    axis = axis < 0 ? axis + out->shape.rank : axis;
    for (int i = 0; i < call->in_count; i++) {
        const ort_tensor *in = ort_call_in(call, i);
        int64_t n = in->shape.dim[axis];
        if (in->data != at)
            copy_slab(in, 0, out, to, n, (int)axis, call->pool);
        at += ort_tensor_bytes(in);
        to += n;
    }
    return ORT_OK;
}

static const ort_op_impl concat_impl = {
    .state = sizeof(concat_state), .bind = concat_bind, .infer = concat_infer, .run = concat_run,
};

/* Size of part `i` of `parts` when none are given: equal, or ceil and a smaller last one. */
static ort_dim split_part(ort_infer *x, ort_dim total, int parts, int i)
{
    ort_dim chunk = ort_dim_ceil_div(x->dims, total, ort_dim_of(parts));
    if (i + 1 < parts)
        return chunk;
    return ort_dim_sub(x->dims, total, ort_dim_mul(x->dims, chunk, ort_dim_of(parts - 1)));
}

static ort_status split_sizes(ort_infer *x, ort_dim total, ort_dim *sizes, ort_error *err)
{
    size_t given = 0;
    const int64_t *attr = ort_node_ints(x->node, "split", &given);
    ort_dim sum = ort_dim_of(0);
    bool input = x->node->input_count > 1 && x->node->inputs[1] != ORT_ID_NONE;
    if (!input && !attr) {
        int64_t parts = ort_node_int(x->node, "num_outputs", x->out_count);
        if (x->op->since >= 18 && !ort_node_has(x->node, "num_outputs"))
            return ort_infer_fail(x, err, "neither input split nor attribute num_outputs is given");
        if (parts != x->out_count)
            return ort_infer_fail(x, err, "num_outputs is %lld, the node has %d outputs",
                                  (long long)parts, x->out_count);
        if (x->opset < 18 && ort_dim_known(total) && total.size % parts != 0)
            return ort_infer_fail(x, err, "%lld elements can't be split into %lld equal parts",
                                  (long long)total.size, (long long)parts);
        for (int i = 0; i < x->out_count; i++)
            sizes[i] = split_part(x, total, x->out_count, i);
        if (ort_dim_known(sizes[x->out_count - 1]) && sizes[x->out_count - 1].size < 0)
            return ort_infer_fail(x, err, "%lld elements can't be split into %d parts",
                                  (long long)total.size, x->out_count);
        return ORT_OK;
    }
    int count = attr && !input ? (int)given : ort_infer_int_count(x, 1);
    if (count >= 0 && count != x->out_count)
        return ort_infer_fail(x, err, "split has %d entries, the node has %d outputs", count,
                              x->out_count);
    for (int i = 0; i < x->out_count; i++) {
        if (attr && !input)
            sizes[i] = ort_dim_of(attr[i]);
        else if (!ort_infer_int(x, 1, i, &sizes[i]))
            sizes[i] = ort_dim_unknown();
        if (ort_dim_known(sizes[i]) && sizes[i].size < 0)
            return ort_infer_fail(x, err, "split[%d] is negative", i);
        sum = ort_dim_add(x->dims, sum, sizes[i]);
    }
    if (ort_dim_known(sum) && ort_dim_known(total) && sum.size != total.size)
        return ort_infer_fail(x, err, "the sizes in split sum to %lld, the axis has %lld",
                              (long long)sum.size, (long long)total.size);
    return ORT_OK;
}

static ort_status split_infer(ort_infer *x, ort_error *err)
{
    ort_dim value[ORT_SYMBOLIC_MAX];
    int axis;
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    ort_type type = x->in[0]->type;
    ORT_TRY(ort_infer_axis(x, ort_node_attr_int(x->node, "axis"), type.rank, &axis, err));
    ort_dim *sizes = ort_arena_array(x->arena, (size_t)x->out_count, sizeof *sizes);
    if (!sizes)
        return ort_error_memory(err, (size_t)x->out_count * sizeof *sizes);
    ORT_TRY(split_sizes(x, type.dim[axis], sizes, err));
    int have = type.rank == 1 ? ort_infer_elements(x, 0, value) : -1;
    for (int i = 0, first = 0; i < x->out_count; i++) {
        type.dim[axis] = sizes[i];
        ort_infer_set_shape(x, i, type.rank, type.dim);
        if (!ort_dim_known(sizes[i]) || first + sizes[i].size > have)
            have = -1;
        else
            ort_infer_set_symbolic(x, i, value + first, (int)sizes[i].size);
        first += have < 0 ? 0 : (int)sizes[i].size;
    }
    return ORT_OK;
}

typedef struct split_state {
    int64_t axis;
    ort_ints sizes; /* of the attribute */
} split_state;

static const ort_bind split_bind[] = {
    ORT_BIND(split_state, axis), ORT_BIND_AS(split_state, sizes, "split", ORT_MAYBE), {0}};

static int64_t split_size(const ort_call *call, int i, int64_t total, int axis)
{
    const split_state *state = call->state;
    const ort_tensor *out = ort_call_out(call, i), *split = ort_call_in(call, 1);
    if (out)
        return out->shape.dim[axis];
    if (split)
        return ort_tensor_get_i64(split, i);
    if (state->sizes.count >= (size_t)call->out_count)
        return state->sizes.ptr[i];
    return (total + call->out_count - 1) / call->out_count;
}

static ort_status split_run(ort_call *call, ort_error *err)
{
    const split_state *state = call->state;
    const ort_tensor *in = ort_call_in(call, 0);
    int axis = (int)(state->axis < 0 ? state->axis + in->shape.rank : state->axis);
    int64_t from = 0, total = in->shape.dim[axis];
    for (int i = 0; i < call->out_count; i++) {
        int64_t n = split_size(call, i, total, axis);
        ort_tensor *out = ort_call_out(call, i);
        if (n < 0 || from + n > total)
            return ort_call_fail(call, err, "part %d of the split ends at %lld, the axis has %lld "
                                 "elements", i, (long long)(from + n), (long long)total);
        if (out)
            copy_slab(in, from, out, 0, n, axis, call->pool);
        from += n;
    }
    return ORT_OK;
}

static const ort_op_impl split_impl = {
    .state = sizeof(split_state), .bind = split_bind, .infer = split_infer, .run = split_run,
};

/* ---- DepthToSpace and SpaceToDepth */

typedef struct block_state {
    int64_t size;
    bool depth_last; /* CRD */
} block_state;

static const ort_bind block_bind[] = {
    ORT_BIND_AS(block_state, size, "blocksize"),
    ORT_BIND_AS(block_state, depth_last, "mode", ORT_WORDS("DCR CRD"), ORT_MAYBE), {0}};

static ort_status block_infer(ort_infer *x, bool to_space, ort_error *err)
{
    int64_t size = ort_node_attr_int(x->node, "blocksize");
    if (size < 1 || size > 65536)
        return ort_infer_fail(x, err, "blocksize is %lld; it must be at least 1", (long long)size);
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    ort_type type = x->in[0]->type;
    ort_dim b = ort_dim_of(size), area = ort_dim_of(size * size);
    for (int d = 1; d < 4; d++) {
        bool grows = to_space == (d > 1);
        ort_dim by = d == 1 ? area : b;
        if (!grows && ort_dim_known(type.dim[d]) && type.dim[d].size % by.size != 0)
            return ort_infer_fail(x, err, "axis %d of the input (%lld) is no multiple of %lld", d,
                                  (long long)type.dim[d].size, (long long)by.size);
        type.dim[d] = grows ? ort_dim_mul(x->dims, type.dim[d], by)
                            : ort_dim_div(x->dims, type.dim[d], by);
    }
    ort_infer_set_shape(x, 0, 4, type.dim);
    return ORT_OK;
}

static ort_status depth_to_space_infer(ort_infer *x, ort_error *err)
{
    return block_infer(x, true, err);
}

static ort_status space_to_depth_infer(ort_infer *x, ort_error *err)
{
    return block_infer(x, false, err);
}

/* The deep tensor [n, C*b*b, h, w] and the wide one [n, C, h*b, w*b] as strides over the common
 * index (n, c, h, bh, w, bw). */
static void block_strides(const ort_tensor *deep, int64_t b, bool depth_last, int64_t *at_deep,
                          int64_t *at_wide, int64_t *dim)
{
    const int64_t *d = deep->shape.dim;
    int64_t depth = d[1] / (b * b), plane = d[2] * d[3];
    int64_t column = depth_last ? plane : depth * plane;
    const int64_t dims[6] = {d[0], depth, d[2], b, d[3], b};
    const int64_t deep_strides[6] = {d[1] * plane, depth_last ? b * b * plane : plane,
                                     d[3], b * column, 1, column};
    int64_t wide = 1;
    for (int i = 5; i >= 0; i--) {
        dim[i] = dims[i];
        at_deep[i] = deep_strides[i];
        at_wide[i] = wide;
        wide *= dims[i];
    }
}

static ort_status depth_to_space_run(ort_call *call, ort_error *err)
{
    const block_state *state = call->state;
    const ort_tensor *in = ort_call_in(call, 0);
    ort_move move = ort_move_between(in, ort_call_out(call, 0));
    int64_t deep[6], wide[6], dim[6];
    block_strides(in, state->size, state->depth_last, deep, wide, dim);
    for (int i = 0; i < 6; i++)
        ort_move_add(&move, dim[i], deep[i], wide[i]);
    ort_move_run(&move, call->pool);
    return ORT_OK;
}

static ort_status space_to_depth_run(ort_call *call, ort_error *err)
{
    const block_state *state = call->state;
    ort_tensor *out = ort_call_out(call, 0);
    ort_move move = ort_move_between(ort_call_in(call, 0), out);
    const int dcr[6] = {0, 3, 5, 1, 2, 4}, crd[6] = {0, 1, 3, 5, 2, 4};
    const int *order = state->depth_last ? crd : dcr;
    int64_t deep[6], wide[6], dim[6];
    block_strides(out, state->size, state->depth_last, deep, wide, dim);
    for (int i = 0; i < 6; i++)
        ort_move_add(&move, dim[order[i]], wide[order[i]], deep[order[i]]);
    ort_move_run(&move, call->pool);
    return ORT_OK;
}

static const ort_op_impl depth_to_space_impl = {
    .state = sizeof(block_state), .bind = block_bind,
    .rule = "[_,_,_,_]", .infer = depth_to_space_infer, .run = depth_to_space_run,
};
static const ort_op_impl space_to_depth_impl = {
    .state = sizeof(block_state), .bind = block_bind,
    .rule = "[_,_,_,_]", .infer = space_to_depth_infer, .run = space_to_depth_run,
};

#define PICKS ORT_TRAIT_PICKS

const ort_op ort_ops_layout[] = {
    {ONNX, "Transpose", 1, "data:T -> transposed:T", "T:F,I,U,C,str,bool", "perm:is",
     PICKS, &transpose_impl, .history = "13:T+bf16 21:T+F8,Q4 23:T+f4e2m1 24:T+f8e8m0 25:T+Q2"},
    {ONNX, "Expand", 8, "input:T,shape:i64 -> output:T", "T:F,I,U,C,str,bool", "",
     PICKS, &expand_impl, .history = "13:T+bf16"},
    {ONNX, "Tile", 6, "input:T,repeats:T1 -> output:T", "T:F,I,U,C,str,bool T1:i64", "",
     PICKS, &tile_impl, .history = "13:T+bf16"},
    {ONNX, "Concat", 4, "inputs*:T -> concat_result:T", "T:F,I,U,C,str,bool", "axis:i!",
     ORT_TRAIT_JOINS, &concat_impl, .history = "11 13:T+bf16"},
    {ONNX, "Split", 2, "input:T -> outputs*:T", "T:F,I,U,C,str,bool", "axis:i=0 split:is",
     PICKS, &split_impl, .history = "11"},
    {ONNX, "Split", 13, "input:T,split?:i64 -> outputs*:T", "T:F,I,U,C,bf16,str,bool", "axis:i=0",
     PICKS, &split_impl, .history = "18:+num_outputs:i"},
    {ONNX, "DepthToSpace", 1, "input:T -> output:T", "T:F,I,U,C,str,bool", "blocksize:i!",
     PICKS, &depth_to_space_impl, .history = "11:+mode:s=DCR 13:T+bf16 28"},
    {ONNX, "SpaceToDepth", 1, "input:T -> output:T", "T:F,I,U,C,str,bool", "blocksize:i!",
     PICKS, &space_to_depth_impl, .history = "13:T+bf16 28:+mode:s=DCR"},
    {0},
};
