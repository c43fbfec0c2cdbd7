/* chain_steps.c - see chain_steps.h. */
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
