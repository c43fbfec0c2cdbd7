/* unspread.c - an operator that broadcasts reads a value itself instead of copies of it that were
 * made before:
 *
 *     Expand(x, shape)                x
 *     Gather(table, numbers)          the row, where all numbers are the same (a constant table)
 *     any value of one number         that number, whatever computed its shape
 *
 * This needs a result whose shape the other operands give already. It is exact, since the same
 * elements meet. Exporters write Gather for the token types of a model that is given none (BERT),
 * and Expand for masks; what computed the shapes goes with them.
 */
#include <string.h>

#include "base/error.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"

enum {
    DEPTH = 12,
    INPUTS = 8,
    ROW_BYTES = 4096 /* of a row that is written beside its table, which others read */
};

/* ---- values of one number */

static bool is_uniform(const ort_graph *graph, ort_id id, int64_t *number, int depth);

/* A tensor of integers or conditions that are all the same. */
static bool is_all_same(const ort_tensor *t, int64_t *number)
{
    ort_dtype_class class_ = ort_dtype_get(t->dtype)->class_;
    if ((class_ != ORT_CLASS_INT && class_ != ORT_CLASS_BOOL) || ort_tensor_count(t) < 1)
        return false;
    *number = ort_tensor_get_i64(t, 0); /* first of several: counted above */
    return ort_constant_is_all(t, (double)*number);
}

static bool is_filled(const ort_node *node, int64_t *number)
{
    const ort_attr *value = ort_node_attr(node, "value");
    return value && value->type == ORT_ATTR_TENSOR && value->t->data &&
           is_all_same(value->t, number);
}

static bool is_uniform(const ort_graph *graph, ort_id id, int64_t *number, int depth)
{
    const ort_node *node = ort_edit_producer(graph, id);
    const ort_tensor *t = ort_fact_constant(graph, id);
    int64_t other;
    if (t)
        return is_all_same(t, number);
    if (!node || depth > DEPTH)
        return false;
    if (ort_edit_is(node, ONNX, "ConstantOfShape"))
        return is_filled(node, number);
    if (ort_node_has_trait(node, ORT_TRAITS_MOVE))
        return is_uniform(graph, node->inputs[0], number, depth + 1);
    if (!ort_edit_is(node, ONNX, "Sub") || ort_fact_type(graph, id)->dtype != ORT_DTYPE_INT64 ||
        !is_uniform(graph, node->inputs[0], number, depth + 1) ||
        !is_uniform(graph, node->inputs[1], &other, depth + 1))
        return false;
    return !__builtin_sub_overflow(*number, other, number);
}

/* ---- operators that broadcast */

/* Elementwise operators of several values broadcast since opset 7, those of any number since 8. */
static bool broadcasts(const ort_node *node)
{
    return ort_node_has_trait(node, ORT_TRAIT_ELEMENTWISE) && !strcmp(node->op->domain, ONNX) &&
           node->input_count > 1 && node->input_count <= INPUTS && node->output_count == 1 &&
           node->opset >= (strchr(node->op->sig, '*') ? 8 : 7);
}

/* Has the result the same shape when `slot` has another? */
static bool keeps_shape(const ort_graph *graph, const ort_node *node, int slot,
                        const ort_type *instead)
{
    const ort_fact *in[INPUTS], other = {.type = *instead};
    ort_fact out;
    for (int i = 0; i < node->input_count; i++) {
        const ort_graph_value *value = ort_graph_value_at(graph, node->inputs[i]);
        in[i] = i == slot ? &other : value ? &value->fact : NULL;
    }
    return ort_infer_call(graph, node, in, node->input_count, &out, 1, graph->model->dims,
                          &graph->model->arena, NULL) == ORT_OK &&
           ort_facts_same_type(&out.type, ort_fact_type(graph, node->outputs[0]));
}

/* ---- what was spread */

/* The row [H] of a constant table whose number all tokens have. */
static ort_status row_of(ort_pass_context *c, const ort_tensor *table, int64_t row, ort_id *id,
                         ort_error *err)
{
    ort_tensor view = *table;
    view.shape = ort_shape_make(1, &table->shape.dim[1]);
    view.data = (char *)table->data +
                (size_t)row * ort_tensor_bytes(table) / (size_t)table->shape.dim[0];
    return ort_edit_add_constant(c->graph, "", &view, id, err);
}

static ort_status take_row(ort_pass_context *c, ort_node *node, int slot, const ort_node *gather,
                           int *changes, ort_error *err)
{
    const ort_tensor *table = ort_fact_constant(c->graph, gather->inputs[0]);
    int64_t row;
    ort_id id;
    if (!table || table->shape.rank != 2 || ort_dtype_get(table->dtype)->bits < 8 ||
        table->dtype == ORT_DTYPE_STRING || ort_node_attr_int(gather, "axis") != 0 ||
        !is_uniform(c->graph, gather->inputs[1], &row, 0) || row < 0 ||
        row >= table->shape.dim[0])
        return ORT_OK;
    ort_dim width = ort_dim_of(table->shape.dim[1]);
    ort_type type = ort_type_tensor(table->dtype, 1, &width);
    if (!keeps_shape(c->graph, node, slot, &type) ||
        (c->graph->values.data[gather->inputs[0]]->use_count > 1 &&
         ort_tensor_bytes(table) / (size_t)table->shape.dim[0] > ROW_BYTES))
        return ORT_OK;
    ++*changes;
    ORT_TRY(row_of(c, table, row, &id, err));
    ort_node_set_input(c->graph, node, slot, id);
    return ORT_OK;
}

static ort_status take_back(ort_pass_context *c, ort_node *node, int slot, int *changes,
                            ort_error *err)
{
    const ort_node *from = ort_edit_producer(c->graph, node->inputs[slot]);
    if (ort_edit_is(from, ONNX, "Gather"))
        return take_row(c, node, slot, from, changes, err);
    if (!ort_edit_is(from, ONNX, "Expand") || ort_fact_constant(c->graph, node->inputs[slot]) ||
        ort_fact_type(c->graph, from->inputs[0])->rank < 0 ||
        !keeps_shape(c->graph, node, slot, ort_fact_type(c->graph, from->inputs[0])))
        return ORT_OK;
    ++*changes;
    ort_node_set_input(c->graph, node, slot, from->inputs[0]);
    return ORT_OK;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
        for (int i = 0; i < node->input_count && broadcasts(node); i++)
            if (node->inputs[i] != ORT_ID_NONE)
                ORT_TRY(take_back(c, node, i, changes, err));
    return ORT_OK;
}

const ort_pass ort_pass_unspread = {
    .name = "unspread",
    .level = 1,
    .exact = true,
    .doc = "operators that broadcast read what an Expand repeats, or the row that tokens share",
    .apply = apply,
};
