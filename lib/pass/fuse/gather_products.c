/* gather_products.c - rows that are gathered several times each are multiplied before.
 *
 *     Gemm(Concat(Gather(t, i), Gather(u, j), x), W, b)      messages along the edges of a graph
 *     becomes    Gather(t W1, i) + Gather(u W2, j) + Gemm(x, W3, b)
 *
 * where W1, W2, W3 are the rows of W that meet t, u and x. A graph has several edges for each node,
 * so most products are saved, and the Concat. In a session alone: a file keeps its form. Sums are
 * rounded in another order, so not where math is strict.
 */
#include "base/checked.h"
#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"

enum { PARTS_MAX = 8, ADD_COST = 8, MOVE_COST = 4 }; /* products that take as long as an element */

typedef struct part {
    ort_id value, table, indices; /* table NONE: stays a part */
    int64_t at, length, rows;     /* of the columns; rows of the table */
} part;

typedef struct site {
    ort_node *product, *concat;
    const ort_tensor *weights;
    bool turned; /* W is [N][K] */
    ort_id bias;
    int64_t edges, results;
    part parts[PARTS_MAX];
    int count, moved;
} site;

static bool read_product(const ort_graph *graph, ort_node *node, site *s)
{
    bool gemm = ort_edit_is(node, ONNX, "Gemm");
    if (!gemm && !ort_edit_is(node, ONNX, "MatMul"))
        return false;
    *s = (site){.product = node, .concat = ort_edit_producer(graph, node->inputs[0]),
                .weights = ort_edit_constant(graph, node, 1),
                .turned = gemm && ort_node_attr_int(node, "transB"),
                .bias = gemm ? ort_edit_input(node, 2) : ORT_ID_NONE};
    const ort_type *type = ort_fact_tensor(graph, node->outputs[0]);
    if (!ort_edit_is(s->concat, ONNX, "Concat") || !s->weights || !type || type->rank != 2 ||
        type->dtype != ORT_DTYPE_FLOAT || s->weights->shape.rank != 2 ||
        !ort_dim_known(type->dim[0]) || !ort_dim_known(type->dim[1]) ||
        s->concat->input_count > PARTS_MAX)
        return false;
    s->edges = type->dim[0].size;
    s->results = type->dim[1].size;
    return !gemm || (node->opset >= 11 && !ort_node_attr_int(node, "transA") &&
                     ort_node_attr_float(node, "alpha") == 1 &&
                     ort_node_attr_float(node, "beta") == 1);
}

/* A part that repeats the rows of a table, or any other. */
static void read_part(const ort_graph *graph, const site *s, part *p)
{
    ort_node *gather = ort_edit_producer(graph, p->value);
    p->table = ORT_ID_NONE;
    if (!ort_edit_is(gather, ONNX, "Gather") ||
        ort_edit_only_reader(graph, p->value) != s->concat)
        return;
    const ort_type *table = ort_fact_tensor(graph, gather->inputs[0]);
    const ort_type *indices = ort_fact_tensor(graph, gather->inputs[1]);
    if (!table || table->rank != 2 || !ort_dim_known(table->dim[0]) || !indices ||
        indices->rank != 1 || ort_axis_in(ort_node_attr_int(gather, "axis"), 2) != 0 ||
        ort_fact_value(graph, gather->inputs[0]) || 2 * table->dim[0].size > s->edges)
        return;
    p->table = gather->inputs[0];
    p->indices = gather->inputs[1];
    p->rows = table->dim[0].size;
}

/* Why the place is left alone; "": it is something else; NULL: it isn't. */
static const char *match(const ort_graph *graph, site *s)
{
    int64_t at = 0, gain = 0;
    if (ort_edit_only_reader(graph, s->concat->outputs[0]) != s->product ||
        ort_axis_in(ort_node_attr_int(s->concat, "axis"), 2) != 1)
        return "";
    for (int i = 0; i < s->concat->input_count; i++) {
        part *p = &s->parts[s->count++];
        const ort_type *type = ort_fact_tensor(graph, s->concat->inputs[i]);
        if (!type || type->rank != 2 || !ort_dim_known(type->dim[1]))
            return "";
        *p = (part){.value = s->concat->inputs[i], .at = at, .length = type->dim[1].size};
        at += p->length;
        read_part(graph, s, p);
        if (p->table == ORT_ID_NONE)
            continue;
        s->moved++;
        gain += p->length * (s->edges - p->rows) - ADD_COST * s->edges -
                MOVE_COST * s->edges * ort_max_i64(s->results - p->length, 0);
    }
    if (s->moved == 0 || at != s->weights->shape.dim[s->turned ? 1 : 0])
        return "";
    return gain > 0 ? NULL : "its rows are too few or too short";
}

/* The rows of W that meet `count` columns from `at` on, as [count][N]. */
static void take_rows(const site *s, int64_t at, int64_t count, float *to)
{
    const float *w = s->weights->data;
    int64_t depth = s->weights->shape.dim[s->turned ? 1 : 0];
    for (int64_t k = at; k < at + count; k++)
        for (int64_t j = 0; j < s->results; j++)
            *to++ = s->turned ? w[j * depth + k] : w[k * s->results + j];
}

/* The same of one part, or (NULL) of those that stay. */
static ort_status add_weights(ort_graph *graph, const site *s, const part *only, ort_id *id,
                              ort_error *err)
{
    ort_shape shape = {.rank = 2, .dim = {0, s->results}};
    ort_tensor tensor;
    for (int i = 0; i < s->count; i++)
        if (only ? &s->parts[i] == only : s->parts[i].table == ORT_ID_NONE)
            shape.dim[0] += s->parts[i].length;
    ORT_TRY(ort_edit_new_constant(graph, "rows", ORT_DTYPE_FLOAT, &shape, &tensor, id, err));
    float *to = tensor.data;
    for (int i = 0; i < s->count; i++)
        if (only ? &s->parts[i] == only : s->parts[i].table == ORT_ID_NONE) {
            take_rows(s, s->parts[i].at, s->parts[i].length, to);
            to += s->parts[i].length * s->results;
        }
    return ORT_OK;
}

/* x W + b, where there is a bias, which is used up. */
static ort_status multiply(ort_graph *graph, site *s, const part *only, ort_id x, ort_id *y,
                           ort_error *err)
{
    ort_id inputs[3] = {x, ORT_ID_NONE, s->bias};
    ORT_TRY(add_weights(graph, s, only, &inputs[1], err));
    bool biased = s->bias != ORT_ID_NONE && !only;
    s->bias = biased ? ORT_ID_NONE : s->bias;
    return ort_edit_add_result(graph, biased ? "Gemm" : "MatMul", inputs, biased ? 3 : 2, NULL, 0,
                               y, err);
}

/* The product of the parts that stay, as few as they are. */
static ort_status multiply_rest(ort_graph *graph, site *s, ort_id *y, ort_error *err)
{
    ort_id rest[PARTS_MAX], x;
    int count = 0;
    const ort_attr axis = ort_attr_int("axis", 1);
    for (int i = 0; i < s->count; i++)
        if (s->parts[i].table == ORT_ID_NONE)
            rest[count++] = s->parts[i].value;
    x = rest[0];
    if (count > 1)
        ORT_TRY(ort_edit_add_result(graph, "Concat", rest, count, &axis, 1, &x, err));
    return multiply(graph, s, NULL, x, y, err);
}

static ort_status rewrite(ort_pass_context *c, site *s, ort_error *err)
{
    ort_id terms[PARTS_MAX + 1], inputs[2];
    int count = 0;
    for (int i = 0; i < s->count; i++) {
        const part *p = &s->parts[i];
        if (p->table == ORT_ID_NONE)
            continue;
        ORT_TRY(multiply(c->graph, s, p, p->table, &inputs[0], err));
        inputs[1] = p->indices;
        ORT_TRY(ort_edit_add_result(c->graph, "Gather", inputs, 2, NULL, 0, &terms[count++], err));
    }
    if (s->moved < s->count)
        ORT_TRY(multiply_rest(c->graph, s, &terms[count++], err));
    if (s->bias != ORT_ID_NONE)
        terms[count++] = s->bias;
    for (; count > 2; count--) {
        inputs[0] = terms[count - 1];
        inputs[1] = terms[count - 2];
        ORT_TRY(ort_edit_add_result(c->graph, "Add", inputs, 2, NULL, 0, &terms[count - 2], err));
    }
    ort_node_spec spec = {.op_type = count > 1 ? "Add" : "Identity", .inputs = terms,
                          .input_count = count, .name = s->product->name};
    return ort_edit_replace(c->graph, s->concat, s->product, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    if (c->portable)
        return ORT_OK;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        site s;
        if (!read_product(c->graph, node, &s))
            continue;
        const char *why = match(c->graph, &s);
        if (why) {
            if (*why)
                ort_pass_note(c, node, "%s", why);
            continue;
        }
        if (*c->growth_bytes < ort_tensor_bytes(s.weights)) {
            ort_pass_note(c, node, "the weights may not grow any more");
            continue;
        }
        *c->growth_bytes -= ort_tensor_bytes(s.weights);
        ORT_TRY(rewrite(c, &s, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_gather_products = {
    .name = "gather_products",
    .level = 2,
    .reassociates = true,
    .doc = "rows that are gathered several times each are multiplied before",
    .apply = apply,
};
