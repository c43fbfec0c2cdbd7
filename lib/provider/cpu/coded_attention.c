/* coded_attention.c - attention whose products a file quantizes runs a block of rows at a time
 * (op/quant/code_attention.c):
 *
 *     MatMulIntegerToFloat, Mul | Add | .., Softmax, QuantizeLinear,
 *     QLinearMatMul | MatMulIntegerToFloat                                     CodeAttention
 *
 * Each value has one reader. Scales are those of whole tensors; queries, keys and values have the
 * same batch. What lies between product and Softmax are steps of a chain, whose other operands are
 * floats that broadcast onto the scores: a scale, a mask. Level 3: nothing of this is saved.
 */
#pragma GCC optimize("Os") /* runs once for a model */
#include <string.h>

#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/numbers/quant_pair.h"
#include "provider/cpu/chain_steps.h"

enum { FIRST_OPERAND = 15, /* of the operator's inputs */
       INPUTS = FIRST_OPERAND + ORT_CHAIN_INPUTS };

/* The inputs of a product that its operators have in common. */
typedef struct product {
    ort_node *node;
    ort_id a, b, a_scale, b_scale, a_zero, b_zero, y_scale, y_zero;
} product;

typedef struct coded_attention {
    product scores, results;
    ort_chain_steps steps;
    ort_node *softmax;
    ort_quant codes; /* of what it gives */
    ort_id operands[ORT_CHAIN_INPUTS];
    int operand_count;
} coded_attention;

static ort_id input_of(const ort_node *node, int slot)
{
    return slot < node->input_count ? node->inputs[slot] : ORT_ID_NONE;
}

static bool is_single(const ort_graph *graph, ort_id id)
{
    const ort_tensor *t = ort_fact_constant(graph, id);
    return t && ort_tensor_count(t) == 1;
}

static bool is_bytes(const ort_graph *graph, ort_id id)
{
    const ort_type *type = ort_fact_type(graph, id);
    return ort_quant_is_byte(type->dtype) && ort_type_rank(type) >= 2;
}

/* A product of bytes with single scales, of floats or of codes if `codes`. */
static bool read_product(const ort_graph *graph, ort_node *node, bool codes, product *p)
{
    if (codes && ort_edit_is(node, ONNX, "QLinearMatMul"))
        *p = (product){node, input_of(node, 0), input_of(node, 3), input_of(node, 1),
                       input_of(node, 4), input_of(node, 2), input_of(node, 5), input_of(node, 6),
                       input_of(node, 7)};
    else if (ort_edit_is(node, MS, "MatMulIntegerToFloat") && input_of(node, 6) == ORT_ID_NONE)
        *p = (product){node, input_of(node, 0), input_of(node, 1), input_of(node, 2),
                       input_of(node, 3), input_of(node, 4), input_of(node, 5), ORT_ID_NONE,
                       ORT_ID_NONE};
    else
        return false;
    const ort_id single[] = {p->a_zero, p->b_zero, p->y_scale, p->y_zero};
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        if (single[i] != ORT_ID_NONE && !is_single(graph, single[i]))
            return false;
    return is_bytes(graph, p->a) && is_bytes(graph, p->b) && is_single(graph, p->a_scale) &&
           is_single(graph, p->b_scale) &&
           ort_fact_type(graph, p->a_scale)->dtype == ORT_DTYPE_FLOAT;
}

/* Do A and B of a product have the same batch? */
static bool same_batch(const ort_graph *graph, ort_id a, ort_id b)
{
    const ort_type *x = ort_fact_type(graph, a), *y = ort_fact_type(graph, b);
    if (x->rank != y->rank)
        return false;
    for (int d = 0; d < x->rank - 2; d++)
        if (!ort_dim_equal(x->dim[d], y->dim[d]))
            return false;
    return true;
}

/* An ort_chain_operand_fn: what broadcasts onto the scores. */
static int operand(const ort_graph *graph, void *arg, ort_id value, ort_id other)
{
    coded_attention *c = arg;
    const ort_type *x = ort_fact_type(graph, other), *y = ort_fact_type(graph, value);
    if (other == value || x->rank > y->rank || c->operand_count == ORT_CHAIN_INPUTS)
        return -1;
    for (int d = 0; d < x->rank; d++)
        if (!ort_dim_is(x->dim[d], 1) && !ort_dim_equal(x->dim[d], y->dim[y->rank - x->rank + d]))
            return -1;
    c->operands[c->operand_count] = other;
    return FIRST_OPERAND + c->operand_count++;
}

/* Does it normalize the last axis of floats? */
static bool is_softmax(const ort_graph *graph, const ort_node *node)
{
    if (!ort_edit_is(node, ONNX, "Softmax"))
        return false;
    const ort_type *type = ort_fact_type(graph, node->inputs[0]);
    return ort_chain_is_float(type) && type->rank >= 2 &&
           ort_fact_axis(node, type->rank) == type->rank - 1;
}

static bool find(const ort_graph *graph, ort_node *node, coded_attention *c)
{
    *c = (coded_attention){.operand_count = 0};
    if (!read_product(graph, node, false, &c->scores) ||
        !same_batch(graph, c->scores.a, c->scores.b))
        return false;
    ort_id value = node->outputs[0];
    node = ort_edit_only_reader(graph, value);
    while (node && ort_chain_append(graph, &c->steps, node, value, operand, c)) {
        value = node->outputs[0];
        node = ort_edit_only_reader(graph, value);
    }
    if (!node || !is_softmax(graph, node) || node->inputs[0] != value)
        return false;
    c->softmax = node;
    node = ort_edit_only_reader(graph, node->outputs[0]);
    if (!ort_quant_read(graph, node, "QuantizeLinear", &c->codes) ||
        !ort_quant_is_plain(&c->codes) || !ort_quant_is_byte(c->codes.dtype) ||
        node->inputs[0] != c->softmax->outputs[0])
        return false;
    value = node->outputs[0];
    node = ort_edit_only_reader(graph, value);
    return node && read_product(graph, node, true, &c->results) && c->results.a == value &&
           same_batch(graph, c->scores.a, c->results.b);
}

static ort_status replace(ort_graph *graph, coded_attention *c, ort_error *err)
{
    const ort_node *quantize = c->codes.node;
    const ort_id out = c->results.node->outputs[0];
    ort_id inputs[INPUTS] = {
        c->scores.a, c->scores.b, c->scores.a_scale, c->scores.b_scale, c->scores.a_zero,
        c->scores.b_zero, input_of(quantize, 1), input_of(quantize, 2), c->results.a_scale,
        c->results.a_zero, c->results.b, c->results.b_scale, c->results.b_zero,
        c->results.y_scale, c->results.y_zero};
    memcpy(inputs + FIRST_OPERAND, c->operands, (size_t)c->operand_count * sizeof *inputs);
    ort_attr set[3];
    ort_chain_attrs(&c->steps, set);
    set[2] = ort_attr_int("to", c->codes.dtype);
    ort_node *nodes[ORT_CHAIN_STEPS + 4] = {c->scores.node};
    int count = 1;
    for (int i = 0; i < c->steps.count; i++)
        nodes[count++] = c->steps.nodes[i];
    nodes[count++] = c->softmax;
    nodes[count++] = c->codes.node;
    nodes[count++] = c->results.node;
    ort_node merged = *nodes[0];
    for (int i = 1; i < count; i++)
        merged.origin = ort_edit_origin(graph, &merged, nodes[i]);
    const ort_node_spec spec = {
        .domain = ORT_INTERNAL, .op_type = "CodeAttention", .name = c->results.node->name,
        .inputs = inputs, .input_count = FIRST_OPERAND + c->operand_count, .outputs = &out,
        .output_count = 1, .set = set, .set_count = sizeof set / sizeof *set,
        .origin = merged.origin};
    for (int i = count - 1; i >= 0; i--)
        ort_graph_remove_node(graph, nodes[i]);
    return ort_edit_add_node(graph, &spec, NULL, err);
}

static ort_status apply(ort_pass_context *p, int *changes, ort_error *err)
{
    ort_node *node;
    coded_attention c;
    if (!p->target || p->portable)
        return ORT_OK;
    ORT_PASS_EACH_NODE(p->graph, node)
    {
        if (!node->op || !find(p->graph, node, &c))
            continue;
        ORT_TRY(replace(p->graph, &c, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_coded_attention = {
    .name = "coded_attention",
    .level = 3,
    .doc = "attention between codes runs a block of rows at a time (cpu only)",
    .apply = apply,
};
