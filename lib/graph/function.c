/* function.c - model-local functions as they are, without expanding them: who calls one, the
 * operators in one, and the versions that it imports. */
#include <string.h>

#include "base/error.h"
#include "graph/build.h"

bool ort_graph_calls_functions(const ort_graph *graph)
{
    const ort_model *model = graph->model;
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        for (size_t i = 0; i < model->functions.count; i++)
            if (!strcmp(model->functions.data[i].name, node->op_type) &&
                !strcmp(model->functions.data[i].domain, node->domain))
                return true;
        for (int b = 0; b < node->body_count; b++)
            if (ort_graph_calls_functions(node->bodies[b]))
                return true;
    }
    return false;
}

static bool visit_nodes(Onnx__NodeProto *const *nodes, size_t count, ort_function_visit *visit,
                        void *arg)
{
    for (size_t i = 0; i < count; i++) {
        const Onnx__NodeProto *node = nodes[i];
        if (!visit(arg, ort_build_domain(node->domain), ort_build_text(node->op_type)))
            return false;
        for (size_t a = 0; a < node->n_attribute; a++) {
            const Onnx__AttributeProto *attr = node->attribute[a];
            if (attr->g && !visit_nodes(attr->g->node, attr->g->n_node, visit, arg))
                return false;
            for (size_t g = 0; g < attr->n_graphs; g++)
                if (!visit_nodes(attr->graphs[g]->node, attr->graphs[g]->n_node, visit, arg))
                    return false;
        }
    }
    return true;
}

bool ort_function_each_operator(const ort_function *function, ort_function_visit *visit, void *arg)
{
    const Onnx__FunctionProto *proto = function->proto;
    return visit_nodes(proto->node, proto->n_node, visit, arg);
}

ort_status ort_function_set_opset(ort_model *model, ort_function *function, const char *domain,
                                  int64_t version, ort_error *err)
{
    size_t count = (size_t)function->opset_count;
    ort_opset *opsets = ort_arena_array(&model->arena, count, sizeof *opsets);
    if (!opsets)
        return ort_error_memory(err, count * sizeof *opsets);
    for (size_t i = 0; i < count; i++) {
        opsets[i] = function->opsets[i];
        if (!strcmp(opsets[i].domain, domain))
            opsets[i].version = version;
    }
    function->opsets = opsets;
    function->opsets_changed = model->changed = true;
    return ORT_OK;
}
