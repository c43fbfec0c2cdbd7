/* gradient_moves.c - derivatives of operators that put elements elsewhere.
 *
 * An operator whose output elements are each a copy of one input element is applied to the input's
 * flat indices as well: they say where each gradient belongs (move_back).
 */
#include <string.h>

#include "gradient/gradient.h"

/* ---- by indices */

/* The node again with the indices of x instead of x. */
static ort_id moved_indices(ort_emit *g, const ort_node *node)
{
    ort_id in[8];
    int count = node->input_count < 8 ? node->input_count : 8;
    memcpy(in, node->inputs, (size_t)count * sizeof *in);
    in[0] = ort_emit_iota(g, node->inputs[0]);
    return ort_emit_op(g, node->op_type, in, count, node->attrs, node->attr_count);
}

static void move_back(ort_emit *g, const ort_node *node)
{
    bool repeated = strcmp(node->op_type, "Compress") && strcmp(node->op_type, "DepthToSpace") &&
                    strcmp(node->op_type, "ReverseSequence") &&
                    strcmp(node->op_type, "Slice") && strcmp(node->op_type, "SpaceToDepth");
    ort_id x = node->inputs[0], gy = ort_grad_of(g, node, 0);
    if (ort_grad_wants(g, node, 0))
        ort_grad_add(g, node, 0, ort_emit_scatter(g, x, moved_indices(g, node), gy, repeated));
}

static ort_attr reduction_attr(void)
{
    return (ort_attr){.name = "reduction", .type = ORT_ATTR_STRING, .s = {"add", 3}};
}

static void gather_elements_back(ort_emit *g, const ort_node *node)
{
    ort_attr attrs[] = {ort_emit_int_attr("axis", ort_node_attr_int(node, "axis")),
                        reduction_attr()};
    ort_id in[] = {ort_emit_zeros(g, node->inputs[0]), node->inputs[1], ort_grad_of(g, node, 0)};
    if (ort_emit_need_opset(g, 16, "ScatterElements with reduction"))
        ort_grad_add(g, node, 0, ort_emit_op(g, "ScatterElements", in, 3, attrs, 2));
}

/* ScatterElements and ScatterND, where updates replace or are added. */
static void scatter_back(ort_emit *g, const ort_node *node)
{
    const char *reduction = ort_node_string(node, "reduction", "none");
    bool elements = !strcmp(node->op_type, "ScatterElements"), add = !strcmp(reduction, "add");
    ort_attr axis = ort_emit_int_attr("axis", ort_node_int(node, "axis", 0));
    ort_id gy = ort_grad_of(g, node, 0), indices = node->inputs[1];
    if (!add && strcmp(reduction, "none")) {
        ort_emit_refuse(g, "there is no gradient for reduction '%s'", reduction);
        return;
    }
    if (ort_grad_wants(g, node, 0)) {
        ort_id in[] = {gy, indices, ORT_ID_NONE};
        if (!add) {
            in[2] = ort_emit_zeros(g, node->inputs[2]);
            gy = ort_emit_op(g, node->op_type, in, 3, &axis, elements);
        }
        ort_grad_add(g, node, 0, gy);
    }
    if (ort_grad_wants(g, node, 2)) {
        ort_id in[] = {ort_grad_of(g, node, 0), indices};
        ort_grad_add(g, node, 2,
                     ort_emit_op(g, elements ? "GatherElements" : "GatherND", in, 2, &axis,
                                 elements));
    }
}

static void topk_back(ort_emit *g, const ort_node *node)
{
    ort_attr axis = ort_emit_int_attr("axis", ort_node_attr_int(node, "axis"));
    ort_id gy = ort_grad_of(g, node, 0);
    if (node->output_count < 2 || node->outputs[1] == ORT_ID_NONE) {
        ort_emit_refuse(g, "it doesn't give its indices; name its second output");
        return;
    }
    ort_id in[] = {ort_emit_zeros(g, node->inputs[0]), node->outputs[1], gy};
    ort_grad_add(g, node, 0, ort_emit_op(g, "ScatterElements", in, 3, &axis, 1));
}

/* ---- the same elements in another shape */

static void reshape_back(ort_emit *g, const ort_node *node)
{
    ort_grad_add(g, node, 0,
                 ort_emit_reshape_like(g, ort_grad_of(g, node, 0), node->inputs[0]));
}

static void transpose_back(ort_emit *g, const ort_node *node)
{
    size_t count = 0;
    const int64_t *perm = ort_node_ints(node, "perm", &count);
    int64_t inverse[ORT_MAX_RANK] = {0};
    ort_id gy = ort_grad_of(g, node, 0);
    if (!perm) {
        ort_grad_add(g, node, 0, ort_emit_op1(g, "Transpose", gy));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (count > ORT_MAX_RANK || perm[i] < 0 || perm[i] >= (int64_t)count) {
            ort_emit_refuse(g, "its perm is no permutation");
            return;
        }
        inverse[perm[i]] = (int64_t)i;
    }
    ort_grad_add(g, node, 0, ort_emit_transpose(g, gy, inverse, (int)count));
}

/* ---- copies */

static void expand_back(ort_emit *g, const ort_node *node)
{
    ort_grad_add_summed(g, node, 0, ort_grad_of(g, node, 0));
}

/* Seen as [repeats[0], dim[0], repeats[1], dim[1], ...], every other axis is summed. */
static void tile_back(ort_emit *g, const ort_node *node)
{
    static const int64_t column[] = {1};
    int64_t axes[ORT_MAX_RANK];
    ort_attr axis = ort_emit_int_attr("axis", 1);
    ort_id x = node->inputs[0];
    int rank = ort_emit_rank(g, x);
    ort_id pair[] = {ort_emit_unsqueeze(g, node->inputs[1], column, 1),
                     ort_emit_unsqueeze(g, ort_emit_shape(g, x), column, 1)};
    ort_id flat = ort_emit_reshape(g, ort_emit_op(g, "Concat", pair, 2, &axis, 1),
                                   ort_emit_ints(g, (const int64_t[]){-1}, 1));
    for (int i = 0; i < rank; i++)
        axes[i] = 2 * i;
    if (rank > ORT_MAX_RANK / 2) {
        ort_emit_refuse(g, "its gradient takes %d dimensions, at most %d are possible", 2 * rank,
                        ORT_MAX_RANK);
        return;
    }
    ort_id wide = ort_emit_reshape(g, ort_grad_of(g, node, 0), flat);
    ort_id sum = rank ? ort_emit_reduce(g, "ReduceSum", wide, axes, rank, false) : wide;
    ort_grad_add(g, node, 0, ort_emit_reshape_like(g, sum, x));
}

/* ---- parts and wholes */

/* Elements [begin, end) along an axis; begin and end are lists of one number. */
static ort_id part(ort_emit *g, ort_id value, int64_t axis, ort_id begin, ort_id end)
{
    ort_id in[] = {value, begin, end, ort_emit_ints(g, &axis, 1)};
    return ort_emit_op(g, "Slice", in, 4, NULL, 0);
}

static void concat_back(ort_emit *g, const ort_node *node)
{
    int64_t axis = ort_emit_axis(g, node, ort_emit_rank(g, node->inputs[0])), zero = 0;
    ort_id gy = ort_grad_of(g, node, 0), begin = ort_emit_ints(g, &zero, 1);
    for (int i = 0; i < node->input_count && g->status == ORT_OK; i++) {
        ort_id size = ort_emit_dims(g, node->inputs[i], (int)axis, (int)axis + 1);
        ort_id end = ort_emit_op2(g, "Add", begin, size);
        if (ort_grad_wants(g, node, i))
            ort_grad_add(g, node, i, part(g, gy, axis, begin, end));
        begin = end;
    }
}

static void split_back(ort_emit *g, const ort_node *node)
{
    ort_attr axis = ort_emit_int_attr("axis", ort_node_attr_int(node, "axis"));
    ort_id parts[ORT_SCHEMA_MAX];
    int count = node->output_count;
    if (count > ORT_SCHEMA_MAX) {
        ort_emit_refuse(g, "it has %d outputs, at most %d can be differentiated", count,
                        ORT_SCHEMA_MAX);
        return;
    }
    for (int i = 0; i < count; i++) {
        if (node->outputs[i] == ORT_ID_NONE) {
            ort_emit_refuse(g, "output %d isn't given; name it", i);
            return;
        }
        parts[i] = ort_grad_of(g, node, i);
        if (parts[i] == ORT_ID_NONE)
            parts[i] = ort_emit_zeros(g, node->outputs[i]);
    }
    ort_grad_add(g, node, 0, ort_emit_op(g, "Concat", parts, count, &axis, 1));
}

/* Padding with constants is undone by the negative padding. */
static void pad_back(ort_emit *g, const ort_node *node)
{
    ort_id gy = ort_grad_of(g, node, 0), axes = ort_emit_in(node, 3);
    if (!ort_node_attr_is(node, "mode", "constant")) {
        move_back(g, node);
        return;
    }
    ort_id in[] = {gy, ort_emit_op1(g, "Neg", node->inputs[1]), ORT_ID_NONE, axes};
    ort_id kept = ort_emit_op(g, "Pad", in, axes == ORT_ID_NONE ? 2 : 4, NULL, 0);
    ort_grad_add(g, node, 0, kept);
    if (ort_grad_wants(g, node, 2)) {
        ort_id all = ort_emit_reduce(g, "ReduceSum", gy, NULL, 0, false);
        ort_id inside = ort_emit_reduce(g, "ReduceSum", kept, NULL, 0, false);
        ort_grad_add(g, node, 2,
                     ort_emit_reshape_like(g, ort_emit_op2(g, "Sub", all, inside),
                                           node->inputs[2]));
    }
}

static void trilu_back(ort_emit *g, const ort_node *node)
{
    ort_attr upper = ort_emit_int_attr("upper", ort_node_attr_int(node, "upper"));
    ort_id in[] = {ort_grad_of(g, node, 0), ort_emit_in(node, 1)};
    ort_grad_add(g, node, 0, ort_emit_op(g, "Trilu", in, node->input_count, &upper, 1));
}

const ort_grad_rule ort_grad_moves[] = {
    {.op_type = "Compress", .back = move_back},
    {.op_type = "Concat", .back = concat_back},
    {.op_type = "DepthToSpace", .back = move_back},
    {.op_type = "Expand", .back = expand_back},
    {.op_type = "Flatten", .back = reshape_back},
    {.op_type = "Gather", .back = move_back},
    {.op_type = "GatherElements", .back = gather_elements_back},
    {.op_type = "GatherND", .back = move_back},
    {.op_type = "Pad", .back = pad_back},
    {.op_type = "Reshape", .back = reshape_back},
    {.op_type = "ReverseSequence", .back = move_back},
    {.op_type = "ScatterElements", .back = scatter_back},
    {.op_type = "ScatterND", .back = scatter_back},
    {.op_type = "Slice", .back = move_back},
    {.op_type = "SpaceToDepth", .back = move_back},
    {.op_type = "Split", .back = split_back},
    {.op_type = "Squeeze", .back = reshape_back},
    {.op_type = "Tile", .back = tile_back},
    {.op_type = "TopK", .back = topk_back},
    {.op_type = "Transpose", .back = transpose_back},
    {.op_type = "Trilu", .back = trilu_back},
    {.op_type = "Unsqueeze", .back = reshape_back},
    {.op_type = NULL},
};
