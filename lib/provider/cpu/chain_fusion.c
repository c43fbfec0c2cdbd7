/* chain_fusion.c - elementwise operators that follow one another become one ElementwiseChain
 * (op/shared/chain.h), which runs them tile by tile. A chain grows while its value has one reader
 * that keeps the shape; the other operands may be anything that broadcasts onto it, the chain's own
 * inputs included (x * sigmoid(x)). float only. Level 3: the operator is ours, so it is never
 * saved.
 */
#include <string.h>

#include "base/error.h"
#include "graph/uses.h"
#include "op/shared/chain.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"
#include "provider/cpu/chain_steps.h"

typedef struct chain {
    ort_node *nodes[ORT_CHAIN_STEPS];
    int count;
    ort_id inputs[ORT_CHAIN_INPUTS];
    int input_count;
    int64_t program[2 * ORT_CHAIN_STEPS];
    float params[2 * ORT_CHAIN_STEPS];
} chain;

static bool is_float(const ort_type *type)
{
    return type->dtype == ORT_DTYPE_FLOAT && ort_type_rank(type) >= 0;
}

/* The chain's number of a value it reads; -1 when there is no room. */
static int input_index(chain *c, ort_id id)
{
    for (int i = 0; i < c->input_count; i++)
        if (c->inputs[i] == id)
            return i;
    if (c->input_count == ORT_CHAIN_INPUTS)
        return -1;
    c->inputs[c->input_count] = id;
    return c->input_count++;
}

/* Append `node`, which reads `value`. False when it isn't elementwise or changes the shape. */
static bool append(const ort_graph *graph, chain *c, ort_node *node, ort_id value)
{
    ort_unary id = ORT_UNARY_COUNT;
    float a = 0, b = 0;
    int64_t code, input = 0;
    if (c->count == ORT_CHAIN_STEPS || node->output_count != 1 || !node->op ||
        node->outputs[0] == ORT_ID_NONE || !is_float(ort_fact_type(graph, node->outputs[0])) ||
        !ort_facts_same_shape(ort_fact_type(graph, value), ort_fact_type(graph, node->outputs[0])))
        return false;
    int binary = ort_chain_binary(node);
    if (binary >= 0) {
        bool right = node->inputs[0] != value;
        ort_id other = node->inputs[right ? 0 : 1];
        const ort_type *type = ort_fact_type(graph, other);
        if (!is_float(type) || (other == value && c->count > 0))
            return false;
        input = input_index(c, other);
        code = binary + (right ? ORT_CHAIN_RIGHT : ORT_CHAIN_LEFT);
        if (input < 0)
            return false;
    } else if (node->inputs[0] == value && ort_chain_unary(graph, node, &id, &a, &b)) {
        code = (int64_t)id;
    } else {
        return false;
    }
    c->program[2 * c->count] = code;
    c->program[2 * c->count + 1] = input;
    c->params[2 * c->count] = a;
    c->params[2 * c->count + 1] = b;
    c->nodes[c->count++] = node;
    return true;
}

/* A chain that starts at `node`: with the operand that has the shape of the result. */
static bool start(const ort_graph *graph, chain *c, ort_node *node)
{
    for (int k = 0; k < node->input_count && k < 2; k++) {
        memset(c, 0, sizeof *c);
        if (node->inputs[k] == ORT_ID_NONE || !is_float(ort_fact_type(graph, node->inputs[k])))
            continue;
        c->inputs[c->input_count++] = node->inputs[k];
        if (append(graph, c, node, node->inputs[k]))
            return true;
    }
    return false;
}

static ort_status replace(ort_pass_context *p, chain *c, ort_error *err)
{
    ort_node *last = c->nodes[c->count - 1];
    ort_node merged = *c->nodes[0];
    for (int i = 1; i < c->count; i++)
        merged.origin = ort_edit_origin(p->graph, &merged, c->nodes[i]);
    ort_attr set[2] = {ort_attr_ints("program", c->program, 2 * c->count),
                       {.name = "params", .type = ORT_ATTR_FLOATS, .floats = c->params,
                        .count = (size_t)(2 * c->count)}};
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = "ElementwiseChain",
                          .inputs = c->inputs, .input_count = c->input_count, .set = set,
                          .set_count = 2, .origin = merged.origin};
    for (int i = c->count - 2; i >= 0; i--)
        ort_graph_remove_node(p->graph, c->nodes[i]);
    return ort_edit_replace(p->graph, last, NULL, &spec, err);
}

/* The longest chain from `node` on; false when it is alone. */
static bool find(const ort_graph *graph, chain *c, ort_node *node)
{
    if (!node->op || !start(graph, c, node))
        return false;
    for (;;) {
        ort_id value = c->nodes[c->count - 1]->outputs[0];
        ort_node *next = ort_edit_only_reader(graph, value);
        if (!next || !append(graph, c, next, value))
            return c->count > 1;
    }
}

/* Why what reads the result of `node`, elementwise itself, doesn't follow it; or NULL. */
static const char *why_alone(const ort_graph *graph, const ort_node *node)
{
    chain c;
    float a, b;
    ort_unary id;
    ort_id value = node->outputs[0];
    ort_readers readers = ort_readers_of(graph, value);
    ort_node *next;
    while ((next = ort_readers_next(&readers))) {
        if (!next->op || (ort_chain_binary(next) < 0 && !ort_chain_unary(graph, next, &id, &a, &b)))
            continue;
        if (!ort_edit_only_reader(graph, value))
            return "its result is read elsewhere than by what would follow";
        if (!is_float(ort_fact_type(graph, next->outputs[0])))
            return "what would follow isn't float";
        return start(graph, &c, next) &&
                       !ort_facts_same_shape(ort_fact_type(graph, value),
                                              ort_fact_type(graph, next->outputs[0]))
                   ? "what follows isn't known to keep its shape" : NULL;
    }
    return NULL;
}

static ort_status apply(ort_pass_context *p, int *changes, ort_error *err)
{
    ort_node *node;
    chain c;
    ORT_EACH_NODE(p->graph, node)
    {
        c.count = 0;
        if (!find(p->graph, &c, node)) {
            const char *why = p->near_misses && c.count == 1 ? why_alone(p->graph, node) : NULL;
            if (why)
                ort_pass_note(p, node, "%s", why);
            continue;
        }
        ORT_TRY(replace(p, &c, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_chain_fusion = {
    .name = "chain_fusion",
    .level = 3,
    .doc = "elementwise operators in a row run tile by tile",
    .apply = apply,
};
