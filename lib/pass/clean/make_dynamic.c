/* make_dynamic.c - makes what an exporter wrote for one size follow the input (make_dynamic.h).
 *
 * In the target shape of a Reshape, a number that repeats a size becomes "as the input" (0) or
 * "what is left" (-1). At the old size both mean what the number meant, so the model stays right.
 * It may still run at no other size; verification finds that.
 */
#include "pass/clean/make_dynamic.h"

#include <string.h>

#include "base/error.h"
#include "graph/override.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"

static bool is_int64_list(const ort_tensor *t)
{
    return t && t->dtype == ORT_DTYPE_INT64 && t->shape.rank == 1 && t->data &&
           t->shape.dim[0] <= ORT_MAX_RANK;
}

/* 0 where the target repeats the data's size; -1 for the entry that holds the old size in a
 * product, when no other is -1. True when anything changed. */
static bool loosen(int64_t *target, int count, const ort_type *data, int axis, int64_t old)
{
    bool changed = false, open = false;
    for (int i = 0; i < count; i++)
        open = open || target[i] == -1;
    for (int i = 0; i < count && i < data->rank; i++)
        if (i == axis && target[i] > 0 && ort_dim_is(data->dim[i], target[i])) {
            target[i] = 0;
            changed = true;
        }
    if (changed || open || axis >= count || target[axis] <= 0 || target[axis] % old)
        return changed;
    target[axis] = -1;
    return true;
}

static ort_status loosen_reshape(ort_graph *graph, ort_node *node, int axis, int64_t old,
                                 ort_error *err)
{
    const ort_tensor *shape = ort_edit_constant(graph, node, 1);
    const ort_type *data = ort_fact_tensor(graph, node->inputs[0]);
    int64_t target[ORT_MAX_RANK];
    ort_id id;
    if (!is_int64_list(shape) || !data || graph->values.data[node->inputs[0]]->fact.value ||
        ort_node_attr_int(node, "allowzero"))
        return ORT_OK;
    int count = (int)shape->shape.dim[0];
    memcpy(target, shape->data, (size_t)count * sizeof *target);
    if (!loosen(target, count, data, axis, old))
        return ORT_OK;
    ORT_TRY(ort_constant_named(graph, graph->values.data[node->inputs[1]]->name, target, count, &id,
                               err));
    ort_node_set_input(graph, node, 1, id);
    return ORT_OK;
}

ort_status ort_model_open_axis(ort_model *model, const ort_registry *registry, const char *input,
                               int axis, const char *symbol, ort_error *err)
{
    ort_graph *graph = model->graph;
    ort_id id = ort_graph_find_value(graph, input);
    const ort_type *type = ort_fact_tensor(graph, id);
    bool sized = type && axis >= 0 && axis < type->rank &&
                 ort_dim_known(type->dim[axis]) && type->dim[axis].size > 0;
    int64_t old = sized ? type->dim[axis].size : 0;
    ort_node *node;
    if (sized) {
        ORT_TRY(ort_graph_inline_functions(graph, err));
        ORT_TRY(ort_graph_infer(graph, registry, NULL, err));
        ORT_EACH_NODE(graph, node)
            if (ort_edit_is(node, ONNX, "Reshape"))
                ORT_TRY(loosen_reshape(graph, node, axis, old, err));
    }
    return ort_graph_open_dim(model, input, axis, symbol, err);
}
