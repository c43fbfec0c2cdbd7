/* properties.c - visits the metadata properties of a model's parts (properties.h), which the IR
 * leaves in the messages that the parts came from. */
#include "graph/properties.h"

#include <stdio.h>

#include "onnx.pb-c.h"

typedef struct visit {
    ort_property_fn *fn;
    void *arg;
    const char *inside; /* "node 'loop' (Loop): ", or "" */
} visit;

static void tell(const visit *v, size_t count, Onnx__StringStringEntryProto *const *list,
                 const char *what, const char *name)
{
    char owner[640];
    const char *quote = name ? "'" : "";
    snprintf(owner, sizeof owner, "%s%s%s%s%s%s", v->inside, what, name ? " " : "", quote,
             name ? name : "", quote);
    for (size_t i = 0; i < count; i++)
        v->fn(v->arg, owner, list[i]->key ? list[i]->key : "",
              list[i]->value ? list[i]->value : "");
}

static void tell_values(const visit *v, const ort_graph *graph)
{
    for (size_t i = 0; i < graph->values.count; i++) {
        const ort_graph_value *value = graph->values.data[i];
        const Onnx__ValueInfoProto *info = value->info_proto;
        const Onnx__TensorProto *tensor = value->is_sparse ? NULL : value->initializer_proto;
        if (info)
            tell(v, info->n_metadata_props, info->metadata_props, "value", value->name);
        if (tensor)
            tell(v, tensor->n_metadata_props, tensor->metadata_props, "initializer", value->name);
    }
}

static void tell_graph(const visit *v, const ort_graph *graph)
{
    const Onnx__GraphProto *proto = graph->proto;
    const ort_node *node;
    char label[256], inside[400];
    if (proto)
        tell(v, proto->n_metadata_props, proto->metadata_props, "graph", NULL);
    ORT_EACH_NODE(graph, node)
    {
        const Onnx__NodeProto *p = node->proto;
        ort_node_label(node, label, sizeof label);
        if (p)
            tell(v, p->n_metadata_props, p->metadata_props, label, NULL);
        snprintf(inside, sizeof inside, "%s: ", label);
        visit inner = {v->fn, v->arg, inside};
        for (int b = 0; b < node->body_count; b++)
            tell_graph(&inner, node->bodies[b]);
    }
    tell_values(v, graph);
}

void ort_properties_each(const ort_model *model, ort_property_fn *fn, void *arg)
{
    visit v = {fn, arg, ""};
    tell_graph(&v, model->graph);
    for (size_t i = 0; i < model->functions.count; i++) {
        const ort_function *f = &model->functions.data[i];
        const Onnx__FunctionProto *proto = f->proto;
        char name[400];
        snprintf(name, sizeof name, "%s.%s", f->domain, f->name);
        if (proto)
            tell(&v, proto->n_metadata_props, proto->metadata_props, "function", name);
        for (size_t k = 0; proto && k < proto->n_node; k++) {
            const Onnx__NodeProto *p = proto->node[k];
            char inside[440];
            snprintf(inside, sizeof inside, "function '%s': ", name);
            visit inner = {fn, arg, inside};
            tell(&inner, p->n_metadata_props, p->metadata_props, "node",
                 p->name && *p->name ? p->name : p->op_type ? p->op_type : "");
        }
    }
}
