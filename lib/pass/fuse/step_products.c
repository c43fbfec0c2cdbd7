/* step_products.c - rows that one matrix multiplies step by step are multiplied at once.
 *
 *     Gemm(Gather(x, 0), W, b), Gemm(Gather(x, 1), W, b), ...      an unrolled recurrent net
 *     becomes    y = Gemm(x, W, b); Gather(y, 0), Gather(y, 1), ...
 *
 * The weights are then read once instead of at each step. Only where nearly every row of x is
 * gathered: the first step often has a bias of its own, into which its known state went. Rows are
 * [1,K] of a matrix, or matrices [B,K] of a tensor of three axes. In a session alone: a file keeps
 * its form.
 */
#include "base/error.h"
#include "graph/uses.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"
#include "tensor/scalar.h"

enum { STEPS_MAX = 4096, ROWS_OF_EACH_SPARE = 8 };

typedef struct steps {
    ort_id table, weights, bias; /* bias NONE: none */
    int rank;                    /* of the table */
    int64_t axis, count;         /* rows along it */
    bool gemm, turned;           /* turned: W is [N][K] */
} steps;

/* One step of a table whose rows are counted: which; -1: it isn't. */
static int64_t read_gather(const ort_graph *graph, const ort_node *node, steps *s)
{
    if (!ort_edit_is(node, ONNX, "Gather"))
        return -1;
    const ort_type *table = ort_fact_tensor(graph, node->inputs[0]);
    const ort_tensor *index = ort_edit_constant(graph, node, 1);
    int64_t at;
    if (!table || !index || table->dtype != ORT_DTYPE_FLOAT || table->rank < 2 ||
        table->rank > 3 || index->shape.rank != 3 - table->rank || !ort_tensor_one_i64(index, &at))
        return -1;
    s->table = node->inputs[0];
    s->rank = table->rank;
    s->axis = ort_axis_in(ort_node_attr_int(node, "axis"), table->rank);
    if (s->axis < 0 || s->axis > s->rank - 2 || !ort_dim_known(table->dim[s->axis]))
        return -1;
    s->count = table->dim[s->axis].size;
    at += at < 0 ? s->count : 0;
    return at < s->count && s->count <= STEPS_MAX ? at : -1;
}

static bool read_product(const ort_graph *graph, const ort_node *node, ort_id row, steps *s)
{
    s->gemm = ort_edit_is(node, ONNX, "Gemm");
    if ((!s->gemm && !ort_edit_is(node, ONNX, "MatMul")) || node->inputs[0] != row)
        return false;
    const ort_tensor *w = ort_edit_constant(graph, node, 1);
    s->weights = node->inputs[1];
    s->bias = s->gemm ? ort_edit_input(node, 2) : ORT_ID_NONE;
    s->turned = s->gemm && ort_node_attr_int(node, "transB");
    if (!w || w->dtype != ORT_DTYPE_FLOAT || w->shape.rank != 2)
        return false;
    const ort_type *bias = s->bias == ORT_ID_NONE ? NULL : ort_fact_tensor(graph, s->bias);
    if (s->bias != ORT_ID_NONE && (!bias || bias->rank != 1))
        return false;
    return !s->gemm || (node->opset >= 11 && !ort_node_attr_int(node, "transA") &&
                        ort_node_attr_float(node, "alpha") == 1 &&
                        ort_node_attr_float(node, "beta") == 1);
}

/* The product of s's kind that reads a row, or NULL. */
static ort_node *product_of(ort_graph *graph, ort_id row, const steps *s)
{
    ort_readers readers = ort_readers_of(graph, row);
    ort_node *node;
    while ((node = ort_readers_next(&readers))) {
        steps other = *s;
        if (read_product(graph, node, row, &other) && other.gemm == s->gemm &&
            other.weights == s->weights && other.bias == s->bias && other.turned == s->turned)
            return node;
    }
    return NULL;
}

/* Are the rows of the table multiplied so, but for a few? */
static bool covers(ort_graph *graph, const steps *s)
{
    bool seen[STEPS_MAX] = {false};
    int64_t found = 0;
    ort_node *gather;
    ort_readers readers = ort_readers_of(graph, s->table);
    while ((gather = ort_readers_next(&readers))) {
        steps other;
        int64_t at = read_gather(graph, gather, &other);
        if (at < 0 || other.table != s->table || other.axis != s->axis || seen[at] ||
            !product_of(graph, gather->outputs[0], s))
            continue;
        seen[at] = true;
        found++;
    }
    return found > 1 && found + found / ROWS_OF_EACH_SPARE >= s->count;
}

static ort_status multiply(ort_graph *graph, const steps *s, ort_id *y, ort_error *err)
{
    ort_id inputs[3] = {s->table, s->weights, s->bias};
    const ort_attr turn = ort_attr_int("transB", s->turned);
    if (s->gemm && s->rank == 2)
        return ort_edit_add_result(graph, "Gemm", inputs, s->bias == ORT_ID_NONE ? 2 : 3, &turn, 1,
                                   y, err);
    if (s->turned)
        ORT_TRY(ort_edit_add_result(graph, "Transpose", &s->weights, 1, NULL, 0, &inputs[1], err));
    ORT_TRY(ort_edit_add_result(graph, "MatMul", inputs, 2, NULL, 0, y, err));
    if (s->bias == ORT_ID_NONE)
        return ORT_OK;
    inputs[0] = *y;
    inputs[1] = s->bias;
    return ort_edit_add_result(graph, "Add", inputs, 2, NULL, 0, y, err);
}

static ort_status rewrite(ort_graph *graph, const steps *s, ort_error *err)
{
    ort_node *gather, *product;
    ort_id y;
    const ort_attr axis = ort_attr_int("axis", s->axis);
    ORT_TRY(multiply(graph, s, &y, err));
    ort_readers readers = ort_readers_of(graph, s->table);
    while ((gather = ort_readers_next(&readers))) {
        steps other;
        if (read_gather(graph, gather, &other) < 0 || other.table != s->table ||
            other.axis != s->axis)
            continue;
        while ((product = product_of(graph, gather->outputs[0], s))) {
            const ort_id inputs[] = {y, gather->inputs[1]};
            ort_node_spec spec = {.op_type = "Gather", .inputs = inputs, .input_count = 2,
                                  .set = &axis, .set_count = 1, .name = product->name};
            ORT_TRY(ort_edit_replace(graph, product, NULL, &spec, err));
        }
    }
    return ORT_OK;
}

/* Tables are met at the first two steps, once for each product of them. */
static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    if (c->portable)
        return ORT_OK;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        steps s;
        int64_t at;
        if ((!ort_edit_is(node, ONNX, "Gemm") && !ort_edit_is(node, ONNX, "MatMul")) ||
            !read_product(c->graph, node, node->inputs[0], &s) ||
            (at = read_gather(c->graph, ort_edit_producer(c->graph, node->inputs[0]), &s)) < 0 ||
            at > 1)
            continue;
        if (!covers(c->graph, &s)) {
            ort_pass_note(c, node, "too few rows of '%s' are multiplied so",
                          ort_graph_value_at(c->graph, s.table)->name);
            continue;
        }
        ORT_TRY(rewrite(c->graph, &s, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_step_products = {
    .name = "step_products",
    .level = 2,
    .doc = "rows that one matrix multiplies step by step are multiplied at once",
    .apply = apply,
};
