/* code_chains.c - elementwise operators between codes that have no integer form pass through memory
 * as codes alone:
 *
 *     DequantizeLinear, Add | Mul | HardSwish | .., QuantizeLinear               CodeChain
 *
 * Other operands are codes too, or floats, as large or repeated along the last axes. This is what
 * 16-bit files have between convolutions (a table of 65,536 codes is slower than the formula: it
 * doesn't fit the nearest cache), and what 8-bit ones have where no table or QLinear operator
 * serves. The numbers are those of the operators. Level 3: nothing of this is saved.
 */
#pragma GCC optimize("Os") /* runs once for a model */
#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/numbers/quant_pair.h"
#include "provider/cpu/chain_steps.h"

typedef struct code_chain {
    ort_chain_steps steps;
    ort_node *last; /* quantizes */
    ort_id inputs[ORT_CHAIN_INPUTS];
    ort_id read[ORT_CHAIN_INPUTS]; /* the numbers that stood there */
    float scales[ORT_CHAIN_INPUTS];
    int64_t zeros[ORT_CHAIN_INPUTS];
    int input_count;
    ort_quant out;
} code_chain;

static bool is_coded(const ort_quant *q)
{
    return ort_quant_is_plain(q) && (ort_quant_is_byte(q->dtype) || ort_quant_is_wide(q->dtype));
}

/* Are these numbers dequantized codes? *q tells which. */
static bool codes_of(const ort_graph *graph, ort_id id, ort_quant *q)
{
    return ort_quant_read(graph, ort_edit_producer(graph, id), "DequantizeLinear", q) &&
           is_coded(q);
}

/* A number of the chain's inputs; -1: there is no room. */
static int add_input(const ort_graph *graph, code_chain *c, ort_id id)
{
    ort_quant q;
    for (int i = 0; i < c->input_count; i++)
        if (c->read[i] == id)
            return i;
    if (c->input_count == ORT_CHAIN_INPUTS)
        return -1;
    const bool coded = codes_of(graph, id, &q);
    c->read[c->input_count] = id;
    c->inputs[c->input_count] = coded ? q.node->inputs[0] : id;
    c->scales[c->input_count] = coded ? (float)ort_quant_scale(&q) : 1;
    c->zeros[c->input_count] = coded ? ort_quant_zero(&q) : 0;
    return c->input_count++;
}

/* An ort_chain_operand_fn: what is as large as `value`, or repeated along its last axes. */
static int operand(const ort_graph *graph, void *arg, ort_id value, ort_id other)
{
    const ort_type *x = ort_fact_type(graph, other), *y = ort_fact_type(graph, value);
    int ones = 0;
    if (other == value || x->rank > y->rank)
        return -1;
    while (ones < x->rank && ort_dim_is(x->dim[ones], 1))
        ones++;
    for (int d = ones; d < x->rank; d++)
        if (!ort_dim_equal(x->dim[d], y->dim[y->rank - x->rank + d]))
            return -1;
    return add_input(graph, arg, other);
}

/* The chain from the numbers of these codes on, whose first operator is `node`. */
static bool find(const ort_graph *graph, code_chain *c, ort_id value, ort_node *node)
{
    *c = (code_chain){.input_count = 0};
    if (!ort_chain_is_float(ort_fact_type(graph, value)))
        return false;
    (void)add_input(graph, c, value);
    while (node && ort_chain_append(graph, &c->steps, node, value, operand, c)) {
        value = node->outputs[0];
        node = ort_edit_only_reader(graph, value);
    }
    if (!ort_quant_read(graph, node, "QuantizeLinear", &c->out) || !is_coded(&c->out) ||
        node->inputs[0] != value)
        return false;
    c->last = node;
    return true;
}

static ort_status replace(ort_graph *graph, code_chain *c, ort_error *err)
{
    const ort_id out = c->last->outputs[0];
    ort_node merged = c->steps.count > 0 ? *c->steps.nodes[0] : *c->last;
    ort_attr steps[2];
    ort_chain_attrs(&c->steps, steps);
    const ort_attr set[] = {
        steps[0], steps[1],
        {.name = "scales", .type = ORT_ATTR_FLOATS, .floats = c->scales,
         .count = (size_t)c->input_count},
        ort_attr_ints("zeros", c->zeros, c->input_count), ort_attr_int("to", c->out.dtype),
        ort_attr_float("y_scale", ort_quant_scale(&c->out)),
        ort_attr_int("y_zero", ort_quant_zero(&c->out))};
    for (int i = 1; i < c->steps.count; i++)
        merged.origin = ort_edit_origin(graph, &merged, c->steps.nodes[i]);
    if (c->steps.count > 0)
        merged.origin = ort_edit_origin(graph, &merged, c->last);
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = "CodeChain", .name = merged.name,
                          .inputs = c->inputs, .input_count = c->input_count, .outputs = &out,
                          .output_count = 1, .set = set, .set_count = sizeof set / sizeof *set,
                          .origin = merged.origin};
    ort_graph_remove_node(graph, c->last);
    for (int i = c->steps.count - 1; i >= 0; i--)
        ort_graph_remove_node(graph, c->steps.nodes[i]);
    ORT_TRY(ort_edit_add_node(graph, &spec, NULL, err));
    for (int i = 0; i < c->input_count; i++)
        if (c->inputs[i] != c->read[i])
            ort_quant_drop_unread(graph, c->read[i]);
    return ORT_OK;
}

/* The first operator of a chain reads codes by one of its inputs. */
static bool begins(const ort_graph *graph, code_chain *c, ort_node *node)
{
    ort_quant q;
    for (int i = 0; i < node->input_count && i < 2; i++)
        if (node->inputs[i] != ORT_ID_NONE && codes_of(graph, node->inputs[i], &q) &&
            find(graph, c, node->inputs[i], node))
            return true;
    return false;
}

static ort_status apply(ort_pass_context *p, int *changes, ort_error *err)
{
    ort_node *node;
    code_chain c;
    if (!p->target || p->portable)
        return ORT_OK;
    ORT_PASS_EACH_NODE(p->graph, node)
    {
        if (!node->op || ort_edit_is(node, ONNX, "DequantizeLinear") || !begins(p->graph, &c, node))
            continue;
        ORT_TRY(replace(p->graph, &c, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_code_chains = {
    .name = "code_chains",
    .level = 3,
    .doc = "elementwise operators between codes pass codes alone through memory (cpu only)",
    .apply = apply,
};
