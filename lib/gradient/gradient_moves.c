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
    return ort_emit_formula(g, "(_ i b c d e &_)", "i b c d e", ort_emit_iota(g, node->inputs[0]),
                            ort_edit_input(node, 1), ort_edit_input(node, 2),
                            ort_edit_input(node, 3), ort_edit_input(node, 4));
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

static void gather_elements_back(ort_emit *g, const ort_node *node)
{
    if (ort_emit_need_opset(g, 16, "ScatterElements with reduction"))
        ort_grad_add(g, node, 0,
                     ort_grad_text(g, node, "(ScatterElements (ExpandLike 0 a) b g axis=$axis "
                                            "reduction=add)"));
}

/* ScatterElements and ScatterND, where updates replace or are added. */
static void scatter_back(ort_emit *g, const ort_node *node)
{
    char text[20];
    const char *reduction = ort_node_attr_text(node, "reduction", text, sizeof text);
    bool elements = !strcmp(node->op_type, "ScatterElements"), add = !strcmp(reduction, "add");
    if (!add && reduction[0] && strcmp(reduction, "none")) {
        ort_emit_refuse(g, "there is no gradient for reduction '%s'", reduction);
        return;
    }
    if (ort_grad_wants(g, node, 0))
        ort_grad_add(g, node, 0, ort_grad_text(g, node, add ? "g" : "(_ g b (ExpandLike 0 c) &_)"));
    if (ort_grad_wants(g, node, 2))
        ort_grad_add(g, node, 2, ort_grad_text(g, node, elements ? "(GatherElements g b axis=$axis)"
                                                                 : "(GatherND g b)"));
}

static void topk_back(ort_emit *g, const ort_node *node)
{
    if (node->output_count < 2 || node->outputs[1] == ORT_ID_NONE) {
        ort_emit_refuse(g, "it doesn't give its indices; name its second output");
        return;
    }
    ort_grad_add(g, node, 0,
                 ort_emit_formula(g, "(ScatterElements (ExpandLike 0 a) i g axis=$axis)", "g a i",
                                  ort_grad_of(g, node, 0), node->inputs[0], node->outputs[1]));
}

/* ---- the same elements in another shape */

static void transpose_back(ort_emit *g, const ort_node *node)
{
    size_t count = 0;
    const int64_t *perm = ort_node_ints(node, "perm", &count);
    int64_t inverse[ORT_MAX_RANK] = {0};
    ort_id gy = ort_grad_of(g, node, 0);
    if (!perm) {
        ort_grad_add(g, node, 0, ort_emit_formula(g, "(Transpose g)", "g", gy));
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

/* Seen as [repeats[0], dim[0], repeats[1], dim[1], ...], every other axis is summed. */
static void tile_back(ort_emit *g, const ort_node *node)
{
    int64_t axes[ORT_MAX_RANK];
    int rank = ort_emit_rank(g, node->inputs[0]);
    if (rank > ORT_MAX_RANK / 2) {
        ort_emit_refuse(g, "its gradient takes %d dimensions, at most %d are possible", 2 * rank,
                        ORT_MAX_RANK);
        return;
    }
    for (int i = 0; i < rank; i++)
        axes[i] = 2 * i;
    const char *text = "pairs = (Concat (Unsqueeze b [1]) (Unsqueeze (Dims a) [1]) axis=1);"
                       "w = (Reshape g (Reshape pairs [-1]));"
                       "(ReshapeLike (ReduceSum w $axes keepdims=0) a)";
    ort_grad_add(g, node, 0,
                 ort_emit_formula(g, rank ? text : "g", "g a b $axes[]", ort_grad_of(g, node, 0),
                                  node->inputs[0], node->inputs[1], axes, rank));
}

/* ---- parts and wholes */

static void concat_back(ort_emit *g, const ort_node *node)
{
    int axis = ort_emit_axis(g, node, ort_emit_rank(g, node->inputs[0]));
    ort_id gy = ort_grad_of(g, node, 0), begin = ort_emit_formula(g, "[0]", "");
    for (int i = 0; i < node->input_count && g->status == ORT_OK; i++) {
        ort_id end = ort_emit_formula(g, "begin + (Dims x $axis $next)", "x begin $axis $next",
                                      node->inputs[i], begin, (double)axis, (double)axis + 1);
        if (ort_grad_wants(g, node, i))
            ort_grad_add(g, node, i,
                         ort_emit_formula(g, "(Slice g begin end [$axis])", "g begin end $axis",
                                          gy, begin, end, (double)axis));
        begin = end;
    }
}

static void split_back(ort_emit *g, const ort_node *node)
{
    ort_attr axis = ort_attr_int("axis", ort_node_attr_int(node, "axis"));
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
    if (!ort_node_attr_is(node, "mode", "constant")) {
        move_back(g, node);
        return;
    }
    ort_id gy = ort_grad_of(g, node, 0);
    ort_id kept = ort_emit_formula(g, "(Pad g -pads - axes)", "g pads axes", gy, node->inputs[1],
                                   ort_edit_input(node, 3));
    ort_grad_add(g, node, 0, kept);
    if (ort_grad_wants(g, node, 2))
        ort_grad_add(g, node, 2,
                     ort_emit_formula(g, "(ReshapeLike ((ReduceSum g keepdims=0) - (ReduceSum kept "
                                      "keepdims=0)) value)", "g kept value", gy, kept,
                                      node->inputs[2]));
}

const ort_grad_rule ort_grad_moves[] = {
    {.op_type = "Compress", .back = move_back},
    {.op_type = "Concat", .back = concat_back},
    {.op_type = "DepthToSpace", .back = move_back},
    {.op_type = "Expand", .slope = {"g"}},
    {.op_type = "Flatten", .whole = "(ReshapeLike g a)"},
    {.op_type = "Gather", .back = move_back},
    {.op_type = "GatherElements", .back = gather_elements_back},
    {.op_type = "GatherND", .back = move_back},
    {.op_type = "Pad", .back = pad_back},
    {.op_type = "Reshape", .whole = "(ReshapeLike g a)"},
    {.op_type = "ReverseSequence", .back = move_back},
    {.op_type = "ScatterElements", .back = scatter_back},
    {.op_type = "ScatterND", .back = scatter_back},
    {.op_type = "Slice", .back = move_back},
    {.op_type = "SpaceToDepth", .back = move_back},
    {.op_type = "Split", .back = split_back},
    {.op_type = "Squeeze", .whole = "(ReshapeLike g a)"},
    {.op_type = "Tile", .back = tile_back},
    {.op_type = "TopK", .back = topk_back},
    {.op_type = "Transpose", .back = transpose_back},
    {.op_type = "Trilu", .whole = "(Trilu g b upper=$upper)"},
    {.op_type = "Unsqueeze", .whole = "(ReshapeLike g a)"},
    {.op_type = NULL},
};
