/* gemm_form.c - products of matrices take a bias and transposes as Gemm.
 *
 *     MatMul, Add b                      Gemm(a, w, b)
 *     Gemm without bias, Add b           Gemm with it
 *     Transpose a or w, Gemm or MatMul   Gemm with transA or transB
 *     Gemm or MatMul, Transpose          Gemm of (a w)' = w' a'
 *
 * For two dimensions only: of more, Gemm would need a Reshape on both sides. The bias must
 * broadcast to the product, not the product to it. Gemm broadcasts this way since opset 7 and may
 * go without a bias since 11; a Transpose that others read stays, but is no longer waited for.
 */
#include "base/error.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/facts/perm.h"
#include "pass/pass.h"

/* Gemm, or MatMul that Gemm could be. */
static bool is_product(const ort_graph *graph, const ort_node *node)
{
    if (!ort_edit_is_any(node, "Gemm|MatMul"))
        return false;
    int opset = (int)ort_model_opset(graph->model, ONNX);
    ort_dtype dtype = ort_fact_type(graph, node->outputs[0])->dtype;
    return opset >= 7 && ort_fact_ranked(graph, node->inputs[0], 2) &&
           ort_fact_ranked(graph, node->inputs[1], 2) && ort_dtype_is_real(dtype) &&
           (dtype != ORT_DTYPE_BFLOAT16 || opset >= 13);
}

/* Does this shape broadcast to that of the product without making it larger? */
static bool broadcasts_to(const ort_type *bias, const ort_type *product)
{
    if (ort_type_rank(bias) < 0 || bias->rank > 2)
        return false;
    for (int i = 1; i <= bias->rank; i++) {
        ort_dim b = bias->dim[bias->rank - i], p = product->dim[2 - i];
        if (!ort_dim_equal(b, p) && !ort_dim_is(b, 1))
            return false;
    }
    return true;
}

/* The product, and what reads it (or NULL), become a Gemm. */
static ort_status make_gemm(ort_pass_context *c, ort_node *product, ort_node *reader,
                            const ort_id inputs[3], const ort_attr *set, int set_count,
                            const char *origin, ort_error *err)
{
    bool gemm = ort_edit_is(product, ONNX, "Gemm");
    ort_node_spec spec = {.op_type = "Gemm", .inputs = inputs, .input_count = 3,
                          .attrs = product->attrs, .attr_count = gemm ? product->attr_count : 0,
                          .set = set, .set_count = set_count, .origin = origin};
    return ort_edit_replace(c->graph, product, reader, &spec, err);
}

static ort_status take_bias(ort_pass_context *c, ort_node *add, int slot, int *changes,
                            ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_node *product = ort_edit_producer(graph, add->inputs[slot]);
    if (!product || product->outputs[0] != add->inputs[slot] || !is_product(graph, product) ||
        ort_edit_input(product, 2) != ORT_ID_NONE || add->opset < 7 ||
        add->inputs[0] == add->inputs[1])
        return ORT_OK;
    if (ort_edit_only_reader(graph, product->outputs[0]) != add) {
        ort_pass_note(c, add, "the product has another reader");
        return ORT_OK;
    }
    if (!broadcasts_to(ort_fact_type(graph, add->inputs[1 - slot]),
                       ort_fact_type(graph, product->outputs[0]))) {
        ort_pass_note(c, add, "what is added may be larger than the product");
        return ORT_OK;
    }
    ort_id inputs[3] = {product->inputs[0], product->inputs[1], add->inputs[1 - slot]};
    ort_attr beta = ort_attr_float("beta", 1);
    ++*changes;
    return make_gemm(c, product, add, inputs, &beta, ort_node_has(product, "beta"), NULL, err);
}

/* The Transpose that makes input `slot`, or NULL. */
static ort_node *turned(const ort_graph *graph, const ort_node *product, int slot)
{
    size_t count = 0;
    ort_node *node = ort_edit_producer(graph, product->inputs[slot]);
    if (!ort_edit_is(node, ONNX, "Transpose"))
        return NULL;
    const int64_t *perm = ort_node_ints(node, "perm", &count);
    return !perm || (count == 2 && perm[0] == 1) ? node : NULL;
}

static ort_status take_transposes(ort_pass_context *c, ort_node *product, int *changes,
                                  ort_error *err)
{
    static const char *const names[2] = {"transA", "transB"};
    ort_graph *graph = c->graph;
    ort_attr set[2];
    int set_count = 0;
    ort_id inputs[3] = {product->inputs[0], product->inputs[1], ort_edit_input(product, 2)};
    const char *origin = product->origin;
    for (int slot = 0; slot < 2; slot++) {
        ort_node *transpose = turned(graph, product, slot);
        if (!transpose)
            continue;
        inputs[slot] = transpose->inputs[0];
        set[set_count++] = ort_attr_int(names[slot], !ort_node_int(product, names[slot], 0));
        if (ort_edit_only_reader(graph, transpose->outputs[0]) == product)
            origin = ort_edit_origin(graph, transpose, product);
    }
    if (!set_count || (inputs[2] == ORT_ID_NONE && ort_model_opset(graph->model, ONNX) < 11))
        return ORT_OK;
    ++*changes;
    return make_gemm(c, product, NULL, inputs, set, set_count, origin, err);
}

/* Can C of a Gemm lie transposed? Numbers do anyway. */
static bool bias_turns(const ort_graph *graph, const ort_node *product)
{
    ort_id bias = ort_edit_input(product, 2);
    if (bias == ORT_ID_NONE)
        return ort_model_opset(graph->model, ONNX) >= 11;
    return ort_fact_ranked(graph, bias, 0) || ort_constant_moves(graph, bias);
}

/* The product whose result the Transpose of two dimensions turns goes into one with both operands
 * turned. */
static ort_status turn_result(ort_pass_context *c, ort_node *transpose, int *changes,
                              ort_error *err)
{
    static const ort_perm turn = {.rank = 2, .to = {1, 0}};
    ort_graph *graph = c->graph;
    ort_node *product = ort_edit_producer(graph, transpose->inputs[0]);
    ort_perm have;
    if (!product || !is_product(graph, product) || !ort_perm_of_node(graph, transpose, &have) ||
        !ort_perm_equal(&have, &turn) || !bias_turns(graph, product))
        return ORT_OK;
    if (ort_edit_only_reader(graph, product->outputs[0]) != transpose) {
        ort_pass_note(c, transpose, "the product has another reader");
        return ORT_OK;
    }
    ort_attr set[2] = {ort_attr_int("transA", !ort_node_int(product, "transB", 0)),
                       ort_attr_int("transB", !ort_node_int(product, "transA", 0))};
    ort_id inputs[3] = {product->inputs[1], product->inputs[0], ort_edit_input(product, 2)};
    if (inputs[2] != ORT_ID_NONE && ort_fact_type(graph, inputs[2])->rank > 0)
        ORT_TRY(ort_constant_permuted(graph, product->inputs[2], &turn, &inputs[2], err));
    ++*changes;
    return make_gemm(c, product, transpose, inputs, set, 2, NULL, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        bool sums = ort_edit_is(node, ONNX, "Sum") && node->input_count == 2 && node->opset >= 8;
        if (sums || ort_edit_is(node, ONNX, "Add")) {
            for (int slot = 0; slot < 2 && !node->removed; slot++)
                ORT_TRY(take_bias(c, node, slot, changes, err));
        } else if (is_product(c->graph, node)) {
            ORT_TRY(take_transposes(c, node, changes, err));
        } else if (ort_edit_is(node, ONNX, "Transpose")) {
            ORT_TRY(turn_result(c, node, changes, err));
        }
    }
    return ORT_OK;
}

const ort_pass ort_pass_gemm_form = {
    .name = "gemm_form",
    .level = 1,
    .doc = "products of two matrices take a bias and transposes as Gemm",
    .apply = apply,
};
