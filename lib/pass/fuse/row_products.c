/* row_products.c - a product of rows takes them in as many dimensions as they come: the Reshape
 * before it and the one after it go.
 *
 *     [B,S,K] -> Reshape [B*S,K] -> MatMul [K,N] -> Reshape [B,S,N]        (Tensordot, Dense)
 *     becomes  [B,S,K] -> MatMul [K,N] -> [B,S,N]
 *
 * Between the two may stand products with constant matrices and functions of each element, read by
 * the next alone. The first Reshape stays as long as others read it. The same sums in the same
 * order: runtimes count rows over all leading dimensions when the second operand is a matrix.
 */
#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"

enum { CHAIN_MAX = 8 };

typedef struct chain {
    ort_node *first, *last; /* Reshapes */
    ort_node *nodes[CHAIN_MAX]; /* between them, from the last up */
    int count, products;
} chain;

static bool is_product(const ort_graph *graph, const ort_node *node)
{
    const ort_tensor *matrix =
        ort_edit_is(node, ONNX, "MatMul") ? ort_edit_constant(graph, node, 1) : NULL;
    return matrix && matrix->shape.rank == 2;
}

static bool is_function(const ort_node *node)
{
    return ort_edit_is_any(node, "Relu|Gelu|Erf|Tanh|Sigmoid|Sqrt|Exp|Neg|Cast|LeakyRelu");
}

/* Do `in` [L...,K] and `out` [L...,N] have the same L, and the rows in between K and N? */
static bool keeps_rows(const ort_graph *graph, const chain *c)
{
    const ort_type *in = ort_fact_type(graph, c->first->inputs[0]);
    const ort_type *rows = ort_fact_type(graph, c->first->outputs[0]);
    const ort_type *results = ort_fact_type(graph, c->last->inputs[0]);
    const ort_type *out = ort_fact_type(graph, c->last->outputs[0]);
    if (ort_type_rank(in) < 2 || ort_type_rank(rows) < 2 || ort_type_rank(results) < 2 ||
        ort_type_rank(out) != in->rank ||
        !ort_dim_equal(in->dim[in->rank - 1], rows->dim[rows->rank - 1]) ||
        !ort_dim_equal(results->dim[results->rank - 1], out->dim[out->rank - 1]))
        return false;
    for (int d = 0; d < in->rank - 1; d++)
        if (!ort_dim_equal(in->dim[d], out->dim[d]))
            return false;
    return true;
}

static bool match(const ort_pass_context *context, ort_node *last, chain *c)
{
    const ort_graph *graph = context->graph;
    const ort_node *reader = last;
    *c = (chain){.last = last};
    for (;;) {
        ort_id id = reader->inputs[0];
        ort_node *node = ort_edit_producer(graph, id);
        if (ort_edit_is(node, ONNX, "Reshape")) {
            c->first = node;
            break;
        }
        bool product = node && is_product(graph, node);
        if ((!product && !is_function(node)) || c->count == CHAIN_MAX)
            return false;
        c->nodes[c->count++] = node;
        c->products += product;
        if (ort_edit_only_reader(graph, id) != reader)
            return false;
        reader = node;
    }
    if (!c->products)
        return false;
    if (keeps_rows(graph, c))
        return true;
    ort_pass_note(context, last, "its leading dimensions aren't known to be those before %s",
                  c->first->name[0] ? c->first->name : "the first Reshape");
    return false;
}

/* The node once more on another first input. */
static ort_status add_again(ort_pass_context *context, const ort_node *node, ort_id in, ort_id out,
                            ort_error *err)
{
    ort_id inputs[2] = {in, ort_edit_input(node, 1)};
    ort_node_spec spec = ort_edit_again(node);
    spec.inputs = inputs;
    spec.outputs = &out;
    return ort_edit_add_node(context->graph, &spec, NULL, err);
}

static ort_status rewrite(ort_pass_context *context, const chain *c, ort_error *err)
{
    ort_graph *graph = context->graph;
    ort_id at = c->first->inputs[0], result = c->last->outputs[0];
    ort_graph_remove_node(graph, c->last);
    for (int i = 0; i < c->count; i++)
        ort_graph_remove_node(graph, c->nodes[i]);
    for (int i = c->count - 1; i >= 0; i--) {
        ort_id next = i ? ort_graph_add_value(graph, "") : result;
        if (next == ORT_ID_NONE)
            return ort_error_memory(err, sizeof next);
        ORT_TRY(add_again(context, c->nodes[i], at, next, err));
        at = next;
    }
    return ORT_OK;
}

static ort_status apply(ort_pass_context *context, int *changes, ort_error *err)
{
    ort_node *node;
    chain c;
    ORT_PASS_EACH_NODE(context->graph, node)
    {
        if (!ort_edit_is(node, ONNX, "Reshape") || !match(context, node, &c))
            continue;
        ORT_TRY(rewrite(context, &c, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_row_products = {
    .name = "row_products",
    .level = 1,
    .exact = true,
    .doc = "Reshapes around a product of rows with a matrix go",
    .apply = apply,
};
