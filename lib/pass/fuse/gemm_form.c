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
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "pass/facts/constants.h"
#include "pass/facts/perm.h"
#include "pass/pass.h"

static const ort_type *type_at(const ort_graph *graph, ort_id id)
{
    return &graph->values.data[id]->fact.type;
}

static bool is_matrix(const ort_type *type)
{
    return type->kind == ORT_TYPE_TENSOR && type->rank == 2;
}

static bool floating(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT || dtype == ORT_DTYPE_DOUBLE || dtype == ORT_DTYPE_FLOAT16 ||
           dtype == ORT_DTYPE_BFLOAT16;
}

/* Gemm, or MatMul that Gemm could be. */
static bool is_product(const ort_graph *graph, const ort_node *node)
{
    if (!ort_edit_is(node, ONNX, "Gemm") && !ort_edit_is(node, ONNX, "MatMul"))
        return false;
    int opset = (int)ort_model_opset(graph->model, ONNX);
    ort_dtype dtype = type_at(graph, node->outputs[0])->dtype;
    return opset >= 7 && is_matrix(type_at(graph, node->inputs[0])) &&
           is_matrix(type_at(graph, node->inputs[1])) && floating(dtype) &&
           (dtype != ORT_DTYPE_BFLOAT16 || opset >= 13);
}

static bool has_bias(const ort_node *node)
{
    return node->input_count > 2 && node->inputs[2] != ORT_ID_NONE;
}

/* Does this shape broadcast to that of the product without making it larger? */
static bool broadcasts_to(const ort_type *bias, const ort_type *product)
{
    if (bias->kind != ORT_TYPE_TENSOR || bias->rank < 0 || bias->rank > 2)
        return false;
    for (int i = 1; i <= bias->rank; i++) {
        ort_dim b = bias->dim[bias->rank - i], p = product->dim[2 - i];
        if (!ort_dim_equal(b, p) && !(ort_dim_known(b) && b.size == 1))
            return false;
    }
    return true;
}

static ort_status add_gemm(ort_pass_context *c, const ort_node *product, const ort_id *inputs,
                           ort_id output, const ort_attr *set, int set_count, const char *origin,
                           ort_error *err)
{
    bool gemm = !strcmp(product->op_type, "Gemm"); /* it is removed by now */
    ort_node_spec spec = {.domain = ONNX, .op_type = "Gemm", .name = product->name,
                          .inputs = inputs, .input_count = inputs[2] == ORT_ID_NONE ? 2 : 3,
                          .outputs = &output, .output_count = 1,
                          .attrs = gemm ? product->attrs : NULL,
                          .attr_count = gemm ? product->attr_count : 0, .set = set,
                          .set_count = set_count, .origin = origin};
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

static ort_status take_bias(ort_pass_context *c, ort_node *add, int slot, int *changes,
                            ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_node *product = ort_edit_producer(graph, add->inputs[slot]);
    if (!product || product->outputs[0] != add->inputs[slot] || !is_product(graph, product) ||
        has_bias(product) || add->opset < 7 || add->inputs[0] == add->inputs[1])
        return ORT_OK;
    if (ort_edit_only_reader(graph, product->outputs[0]) != add) {
        ort_pass_note(c, add, "the product has another reader");
        return ORT_OK;
    }
    if (!broadcasts_to(type_at(graph, add->inputs[1 - slot]),
                       type_at(graph, product->outputs[0]))) {
        ort_pass_note(c, add, "what is added may be larger than the product");
        return ORT_OK;
    }
    ort_id inputs[3] = {product->inputs[0], product->inputs[1], add->inputs[1 - slot]};
    ort_id output = add->outputs[0];
    ort_attr beta = {.name = "beta", .type = ORT_ATTR_FLOAT, .f = 1};
    const char *origin = ort_edit_origin(graph, product, add);
    ort_graph_remove_node(graph, add);
    ort_graph_remove_node(graph, product);
    ++*changes;
    return add_gemm(c, product, inputs, output, &beta, ort_node_has(product, "beta"), origin, err);
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
    ort_id inputs[3] = {product->inputs[0], product->inputs[1],
                        has_bias(product) ? product->inputs[2] : ORT_ID_NONE};
    const char *origin = product->origin;
    for (int slot = 0; slot < 2; slot++) {
        ort_node *transpose = turned(graph, product, slot);
        if (!transpose)
            continue;
        inputs[slot] = transpose->inputs[0];
        set[set_count++] = (ort_attr){.name = names[slot], .type = ORT_ATTR_INT,
                                      .i = !ort_node_int(product, names[slot], 0)};
        if (ort_edit_only_reader(graph, transpose->outputs[0]) == product)
            origin = ort_edit_origin(graph, transpose, product);
    }
    if (!set_count || (inputs[2] == ORT_ID_NONE && ort_model_opset(graph->model, ONNX) < 11))
        return ORT_OK;
    ort_id output = product->outputs[0];
    ort_graph_remove_node(graph, product);
    ++*changes;
    return add_gemm(c, product, inputs, output, set, set_count, origin, err);
}

/* Can C of a Gemm lie transposed? Numbers do anyway. */
static bool bias_turns(const ort_graph *graph, const ort_node *product)
{
    const ort_type *type;
    if (!has_bias(product))
        return ort_model_opset(graph->model, ONNX) >= 11;
    type = type_at(graph, product->inputs[2]);
    return (type->kind == ORT_TYPE_TENSOR && type->rank == 0) ||
           ort_constant_moves(graph, product->inputs[2]);
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
    ort_attr set[2] = {{.name = "transA", .type = ORT_ATTR_INT,
                        .i = !ort_node_int(product, "transB", 0)},
                       {.name = "transB", .type = ORT_ATTR_INT,
                        .i = !ort_node_int(product, "transA", 0)}};
    ort_id inputs[3] = {product->inputs[1], product->inputs[0],
                        has_bias(product) ? product->inputs[2] : ORT_ID_NONE};
    ort_id output = transpose->outputs[0];
    if (inputs[2] != ORT_ID_NONE && type_at(graph, inputs[2])->rank > 0)
        ORT_TRY(ort_constant_permuted(graph, product->inputs[2], &turn, &inputs[2], err));
    const char *origin = ort_edit_origin(graph, product, transpose);
    ort_graph_remove_node(graph, transpose);
    ort_graph_remove_node(graph, product);
    ++*changes;
    return add_gemm(c, product, inputs, output, set, 2, origin, err);
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
