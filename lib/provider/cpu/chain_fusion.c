/* chain_fusion.c - elementwise operators that follow one another become one ElementwiseChain
 * (op/shared/chain.h), which runs them tile by tile. A chain grows while its value has one reader
 * that keeps the shape; the other operands may be anything that broadcasts onto it, the chain's own
 * inputs included (x * sigmoid(x)). float only. Level 3: the operator is ours, so it is never
 * saved.
 */
#pragma GCC optimize("Os") /* runs once for a model */
#include <string.h>

#include "base/error.h"
#include "graph/uses.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"
#include "provider/cpu/chain_steps.h"

typedef struct chain {
    ort_chain_steps steps;
    ort_id inputs[ORT_CHAIN_INPUTS];
    int input_count;
} chain;

/* An ort_chain_operand_fn. Behind its first step a chain has only `value`, which is no input. */
static int operand(const ort_graph *graph, void *arg, ort_id value, ort_id other)
{
    chain *c = arg;
    (void)graph;
    if (other == value && c->steps.count > 0)
        return -1;
    for (int i = 0; i < c->input_count; i++)
        if (c->inputs[i] == other)
            return i;
    if (c->input_count == ORT_CHAIN_INPUTS)
        return -1;
    c->inputs[c->input_count] = other;
    return c->input_count++;
}

static bool append(const ort_graph *graph, chain *c, ort_node *node, ort_id value)
{
    return ort_chain_append(graph, &c->steps, node, value, operand, c);
}

/* A chain that starts at `node`: with the operand that has the shape of the result. */
static bool start(const ort_graph *graph, chain *c, ort_node *node)
{
    for (int k = 0; k < node->input_count && k < 2; k++) {
        memset(c, 0, sizeof *c);
        if (node->inputs[k] == ORT_ID_NONE ||
            !ort_chain_is_float(ort_fact_type(graph, node->inputs[k])))
            continue;
        c->inputs[c->input_count++] = node->inputs[k];
        if (append(graph, c, node, node->inputs[k]))
            return true;
    }
    return false;
}

static ort_status replace(ort_pass_context *p, chain *c, ort_error *err)
{
    ort_node *last = c->steps.nodes[c->steps.count - 1];
    ort_node merged = *c->steps.nodes[0];
    for (int i = 1; i < c->steps.count; i++)
        merged.origin = ort_edit_origin(p->graph, &merged, c->steps.nodes[i]);
    ort_attr set[2];
    ort_chain_attrs(&c->steps, set);
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = "ElementwiseChain",
                          .inputs = c->inputs, .input_count = c->input_count, .set = set,
                          .set_count = 2, .origin = merged.origin};
    for (int i = c->steps.count - 2; i >= 0; i--)
        ort_graph_remove_node(p->graph, c->steps.nodes[i]);
    return ort_edit_replace(p->graph, last, NULL, &spec, err);
}

/* The longest chain from `node` on; false when it is alone. */
static bool find(const ort_graph *graph, chain *c, ort_node *node)
{
    if (!node->op || !start(graph, c, node))
        return false;
    for (;;) {
        ort_id value = c->steps.nodes[c->steps.count - 1]->outputs[0];
        ort_node *next = ort_edit_only_reader(graph, value);
        if (!next || !append(graph, c, next, value))
            return c->steps.count > 1;
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
        if (!ort_chain_is_float(ort_fact_type(graph, next->outputs[0])))
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
        c.steps.count = 0;
        if (!find(p->graph, &c, node)) {
            const char *why = NULL;
            if (p->near_misses && c.steps.count == 1)
                why = why_alone(p->graph, node);
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
