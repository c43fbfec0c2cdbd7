/* attention_fusion.c - softmax(q k^T scale + mask) v spelled in products becomes Attention (of
 * opset 23).
 *
 *     q[B,H,S,D], k[B,H,T,D], v[B,H,T,E]; k transposed by [0,1,3,2], or from [B,T,H,D] by [0,2,3,1]
 *     the scale by Mul or Div after the product, on q, on both sides, or in q alone already
 *
 * Then heads that were split off a [B,S,H*D] by Reshape and Transpose, and put together again in
 * the same way, are left to the operator, which takes such inputs as they are.
 */
#include <math.h>

#include "base/error.h"
#include "pass/pattern.h"

#define K_OF(inner) "t:(Transpose " inner ")"

enum { MASKED = 1, SCALED = 2, DIVIDES = 4, SQUARED = 8 }; /* the scale is s, 1/s, s^2 */

#define OUTPUT(scores) "(MatMul p:(Softmax " scores ") v)"
#define MASKED_AND_NOT(scores, flags)                                                              \
    {OUTPUT("(Add " scores " mask)"), MASKED | (flags)}, {OUTPUT(scores), flags}

static const ort_pattern_form forms[] = {
    MASKED_AND_NOT("(Div (MatMul q " K_OF("k") ") #s)", SCALED | DIVIDES),
    MASKED_AND_NOT("(Mul (MatMul q " K_OF("k") ") #s)", SCALED),
    MASKED_AND_NOT("(MatMul (Mul q #s) (Mul " K_OF("k") " #s))", SCALED | SQUARED),
    MASKED_AND_NOT("(MatMul (Mul q #s) " K_OF("k") ")", SCALED),
    MASKED_AND_NOT("(MatMul (Div q #s) " K_OF("k") ")", SCALED | DIVIDES),
    MASKED_AND_NOT("(MatMul q " K_OF("k") ")", 0),
};

static bool ranked(const ort_type *type, int rank)
{
    return type->kind == ORT_TYPE_TENSOR && type->rank == rank;
}

static bool has_perm(const ort_node *node, int64_t a, int64_t b, int64_t c, int64_t d)
{
    size_t count;
    const int64_t *perm = ort_node_ints(node, "perm", &count);
    return perm && count == 4 && perm[0] == a && perm[1] == b && perm[2] == c && perm[3] == d;
}

/* Not certainly different: 1 broadcasts in a product, but not in the operator. */
static bool same_heads(const ort_type *a, const ort_type *b)
{
    return ort_dim_equal(a->dim[0], b->dim[0]) && ort_dim_equal(a->dim[1], b->dim[1]);
}

/* The mask must broadcast onto [B,H,S,T], with T itself as its last dimension. */
static bool mask_fits(const ort_type *mask, const ort_type *q, const ort_type *scores)
{
    if (mask->kind != ORT_TYPE_TENSOR || mask->rank < 2 || mask->rank > 4 ||
        mask->dtype != q->dtype)
        return false;
    for (int i = 0; i < mask->rank; i++) {
        ort_dim m = mask->dim[mask->rank - 1 - i], s = scores->dim[3 - i];
        bool one = ort_dim_known(m) && m.size == 1;
        if (!ort_dim_equal(m, s) && (!one || i == 0))
            return false;
    }
    return true;
}

static const char *check(const ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                         double *scale)
{
    const ort_graph *graph = c->graph;
    const ort_node *softmax = ort_match_node(m, "p"), *t = ort_match_node(m, "t");
    const ort_type *q = ort_match_type(m, graph, "q"), *v = ort_match_type(m, graph, "v");
    const ort_type *scores = ort_match_type(m, graph, "p"), *kt = ort_match_type(m, graph, "t");
    int64_t axis = ort_node_int(softmax, "axis", softmax->opset >= 13 ? -1 : 1);
    if (!ranked(q, 4) || !ranked(v, 4) || !ranked(scores, 4) || !ranked(kt, 4))
        return "q, k and v don't have four dimensions";
    if (axis != -1 && axis != 3)
        return "the softmax isn't over the keys";
    if (!has_perm(t, 0, 1, 3, 2) && !has_perm(t, 0, 2, 3, 1))
        return "the keys are transposed in another way";
    if (!same_heads(q, kt) || !same_heads(q, v))
        return "batch or heads of q, k and v may differ";
    if (f->flags & MASKED && !mask_fits(ort_match_type(m, graph, "mask"), q, scores))
        return "the mask isn't one that broadcasts onto the scores";
    *scale = 1;
    if (f->flags & SCALED) {
        const ort_tensor *s = ort_match_constant(m, graph, "s");
        if (ort_tensor_count(s) != 1)
            return "the scale isn't one number";
        *scale = ort_tensor_get_f64(s, 0);
        if (f->flags & DIVIDES)
            *scale = 1 / *scale;
        else if (f->flags & SQUARED)
            *scale *= *scale;
    }
    return isfinite(*scale) && *scale > 0 ? NULL : "the scale isn't a positive number";
}

/* The keys as [B,H,T,D]: what was transposed, or that transposed to it. */
static ort_status keys_of(ort_pass_context *c, const ort_match *m, ort_id *keys, ort_error *err)
{
    static const int64_t order[4] = {0, 2, 1, 3};
    ort_attr perm = {.name = "perm", .type = ORT_ATTR_INTS, .ints = order, .count = 4};
    ort_id k = ort_match_value(m, "k");
    *keys = k;
    if (has_perm(ort_match_node(m, "t"), 0, 1, 3, 2))
        return ORT_OK;
    *keys = ort_graph_add_value(c->graph, "");
    ort_node_spec spec = {.domain = ONNX, .op_type = "Transpose", .name = "", .inputs = &k,
                          .input_count = 1, .outputs = keys, .output_count = 1, .set = &perm,
                          .set_count = 1};
    return *keys == ORT_ID_NONE ? ort_error_memory(err, sizeof *keys)
                                : ort_edit_add_node(c->graph, &spec, NULL, err);
}

static ort_status fuse(ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                       int *changes, ort_error *err)
{
    double scale;
    ort_id inputs[4] = {ort_match_value(m, "q"), ORT_ID_NONE, ort_match_value(m, "v"),
                        f->flags & MASKED ? ort_match_value(m, "mask") : ORT_ID_NONE};
    const char *why = check(c, m, f, &scale);
    int opset = why ? 0 : ort_pass_opset(c, m->nodes[0], ONNX, "Attention", 23);
    if (why)
        ort_pass_note(c, m->nodes[0], "%s", why);
    if (!opset)
        return ORT_OK;
    ORT_TRY(keys_of(c, m, &inputs[1], err));
    ort_attr set = {.name = "scale", .type = ORT_ATTR_FLOAT, .f = (float)scale};
    ort_node_spec spec = {.domain = ONNX, .op_type = "Attention", .inputs = inputs,
                          .input_count = f->flags & MASKED ? 4 : 3, .set = &set, .set_count = 1,
                          .opset = opset};
    ++*changes;
    return ort_match_replace(c, m, &spec, err);
}

/* ---- heads */

/* The [B,S,H*D] value whose heads were split off to make this [B,H,S,D], or ORT_ID_NONE. */
static ort_id unsplit(const ort_graph *graph, ort_id id, int64_t *heads)
{
    const ort_node *transpose = ort_edit_producer(graph, id);
    if (!ort_edit_is(transpose, ONNX, "Transpose") || !has_perm(transpose, 0, 2, 1, 3))
        return ORT_ID_NONE;
    const ort_node *reshape = ort_edit_producer(graph, transpose->inputs[0]);
    if (!ort_edit_is(reshape, ONNX, "Reshape"))
        return ORT_ID_NONE;
    const ort_type *whole = &graph->values.data[reshape->inputs[0]]->fact.type;
    const ort_type *parts = &graph->values.data[reshape->outputs[0]]->fact.type;
    if (!ranked(whole, 3) || !ranked(parts, 4) || !ort_dim_equal(whole->dim[0], parts->dim[0]) ||
        !ort_dim_equal(whole->dim[1], parts->dim[1]) || !ort_dim_known(parts->dim[2]) ||
        !ort_dim_known(parts->dim[3]))
        return ORT_ID_NONE;
    *heads = parts->dim[2].size;
    return reshape->inputs[0];
}

/* The Reshape that puts the heads of this [B,H,S,E] together as [B,S,H*E], or NULL. */
static ort_node *joined(const ort_graph *graph, ort_id id)
{
    ort_node *transpose = ort_edit_only_reader(graph, id);
    if (!ort_edit_is(transpose, ONNX, "Transpose") || !has_perm(transpose, 0, 2, 1, 3))
        return NULL;
    ort_node *reshape = ort_edit_only_reader(graph, transpose->outputs[0]);
    if (!ort_edit_is(reshape, ONNX, "Reshape") || reshape->inputs[0] != transpose->outputs[0])
        return NULL;
    const ort_type *parts = &graph->values.data[transpose->outputs[0]]->fact.type;
    const ort_type *whole = &graph->values.data[reshape->outputs[0]]->fact.type;
    return ranked(parts, 4) && ranked(whole, 3) && ort_dim_equal(whole->dim[0], parts->dim[0]) &&
                   ort_dim_equal(whole->dim[1], parts->dim[1])
               ? reshape
               : NULL;
}

static ort_status join_heads(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    ort_graph *graph = c->graph;
    int64_t heads[3];
    ort_id inputs[4];
    if (node->output_count != 1 || node->input_count > 4 || ort_node_has(node, "q_num_heads"))
        return ORT_OK;
    for (int i = 0; i < 3; i++) {
        inputs[i] = unsplit(graph, node->inputs[i], &heads[i]);
        if (inputs[i] == ORT_ID_NONE)
            return ORT_OK;
    }
    ort_node *reshape = joined(graph, node->outputs[0]);
    if (!reshape || heads[1] != heads[2])
        return ORT_OK;
    ort_node *transpose = ort_edit_producer(graph, reshape->inputs[0]);
    inputs[3] = node->input_count > 3 ? node->inputs[3] : ORT_ID_NONE;
    ort_attr set[2] = {{.name = "q_num_heads", .type = ORT_ATTR_INT, .i = heads[0]},
                       {.name = "kv_num_heads", .type = ORT_ATTR_INT, .i = heads[1]}};
    ort_node_spec spec = {.domain = ONNX, .op_type = "Attention", .name = node->name,
                          .inputs = inputs, .input_count = node->input_count,
                          .outputs = reshape->outputs, .output_count = 1, .attrs = node->attrs,
                          .attr_count = node->attr_count, .set = set, .set_count = 2,
                          .opset = node->opset, .origin = ort_edit_origin(graph, node, reshape)};
    ort_graph_remove_node(graph, reshape);
    ort_graph_remove_node(graph, transpose);
    ort_graph_remove_node(graph, node);
    ++*changes;
    return ort_edit_add_node(graph, &spec, NULL, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_EACH_NODE(c->graph, node)
        if (ort_edit_is(node, ONNX, "Attention"))
            ORT_TRY(join_heads(c, node, changes, err));
    return ort_pattern_forms(c, forms, sizeof forms / sizeof *forms, fuse, changes, err);
}

const ort_pass ort_pass_attention = {
    .name = "attention",
    .level = 2,
    .doc = "softmax(q k + mask) v becomes Attention",
    .apply = apply,
};
