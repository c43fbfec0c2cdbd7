/* chain_steps.c - see chain_steps.h. */
#pragma GCC optimize("Os") /* runs once for a model */
#include "provider/cpu/chain_steps.h"

#include <math.h>
#include <string.h>

#include "op/edit.h"
#include "op/shared/unary_apply.h"
#include "pass/facts/facts.h"

static const struct {
    const char *name;
    ort_binary op;
} binaries[] = {
    {"Add", ORT_BINARY_ADD}, {"Sub", ORT_BINARY_SUB}, {"Mul", ORT_BINARY_MUL},
    {"Div", ORT_BINARY_DIV}, {"Pow", ORT_BINARY_POW}, {"Max", ORT_BINARY_MAX},
    {"Min", ORT_BINARY_MIN},
};

int ort_chain_binary(const ort_node *node)
{
    if (node->domain[0] != '\0' || node->opset < 7 || node->input_count != 2 ||
        node->inputs[0] == ORT_ID_NONE || node->inputs[1] == ORT_ID_NONE)
        return -1;
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
        if (!strcmp(node->op_type, binaries[i].name))
            return (int)binaries[i].op;
    return -1;
}

bool ort_chain_unary(const ort_graph *graph, const ort_node *node, ort_unary *id, float *a,
                     float *b)
{
    if (node->op && ort_edit_is(node, ONNX, "Clip")) {
        double low = -INFINITY, high = INFINITY;
        bool known = ort_fact_bounds(graph, node, &low, &high);
        *id = ORT_UNARY_CLIP;
        *a = (float)low;
        *b = (float)high;
        return known;
    }
    return node->input_count == 1 && ort_unary_of_node(node, id, a, b);
}

bool ort_chain_is_float(const ort_type *type)
{
    return type->dtype == ORT_DTYPE_FLOAT && ort_type_rank(type) >= 0;
}

bool ort_chain_append(const ort_graph *graph, ort_chain_steps *steps, ort_node *node, ort_id value,
                      ort_chain_operand_fn *operand, void *chain)
{
    ort_unary id = ORT_UNARY_COUNT;
    float a = 0, b = 0;
    int64_t code, input = 0;
    if (steps->count == ORT_CHAIN_STEPS || node->output_count != 1 || !node->op ||
        node->outputs[0] == ORT_ID_NONE ||
        !ort_chain_is_float(ort_fact_type(graph, node->outputs[0])) ||
        !ort_facts_same_shape(ort_fact_type(graph, value), ort_fact_type(graph, node->outputs[0])))
        return false;
    const int binary = ort_chain_binary(node);
    if (binary >= 0) {
        const bool right = node->inputs[0] != value;
        const ort_id other = node->inputs[right ? 0 : 1];
        if (!ort_chain_is_float(ort_fact_type(graph, other)) ||
            (input = operand(graph, chain, value, other)) < 0)
            return false;
        code = binary + (right ? ORT_CHAIN_RIGHT : ORT_CHAIN_LEFT);
    } else if (node->inputs[0] == value && ort_chain_unary(graph, node, &id, &a, &b)) {
        code = (int64_t)id;
    } else {
        return false;
    }
    steps->program[2 * steps->count] = code;
    steps->program[2 * steps->count + 1] = input;
    steps->params[2 * steps->count] = a;
    steps->params[2 * steps->count + 1] = b;
    steps->nodes[steps->count++] = node;
    return true;
}

void ort_chain_attrs(const ort_chain_steps *steps, ort_attr set[2])
{
    set[0] = ort_attr_ints("program", steps->program, 2 * steps->count);
    set[1] = (ort_attr){.name = "params", .type = ORT_ATTR_FLOATS, .floats = steps->params,
                        .count = (size_t)(2 * steps->count)};
}
