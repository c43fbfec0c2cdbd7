/* export.c - the model as protobuf bytes (export.h): messages of nodes, graphs and the model,
 * packed as a skeleton, joined with their payloads on the way out. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/export.h"

/* ---- attributes */

static Onnx__GraphProto *build_graph(ort_exporter *x, const ort_graph *graph);

static bool put_bodies(ort_exporter *x, Onnx__AttributeProto *p, const ort_attr *attr)
{
    if (attr->type == ORT_ATTR_GRAPH) {
        p->g = build_graph(x, attr->g);
        return p->g != NULL;
    }
    p->n_graphs = attr->count;
    p->graphs = ort_export_array(x, attr->count, sizeof *p->graphs);
    for (size_t i = 0; p->graphs && i < attr->count; i++) {
        p->graphs[i] = build_graph(x, attr->graphs[i]);
        if (!p->graphs[i])
            return false;
    }
    return p->graphs != NULL;
}

static Onnx__AttributeProto *build_attr(ort_exporter *x, const ort_attr *attr)
{
    Onnx__AttributeProto *p = ort_export_attr(x, attr);
    bool graphs = attr->type == ORT_ATTR_GRAPH || attr->type == ORT_ATTR_GRAPHS;
    if (p && graphs && !attr->reference && !put_bodies(x, p, attr))
        return NULL;
    return p;
}

/* ---- nodes */

static bool same_names(const ort_graph *graph, const ort_id *ids, int count, char *const *names,
                       size_t name_count)
{
    if (name_count != (size_t)count)
        return false;
    for (int i = 0; i < count; i++) {
        assert(ids[i] == ORT_ID_NONE || ort_graph_has_value(graph, ids[i]));
        const char *name = ids[i] == ORT_ID_NONE ? "" : graph->values.data[ids[i]]->name;
        if (name != names[i] && strcmp(name, names[i]))
            return false;
    }
    return true;
}

static bool same_text(const char *ours, const char *theirs)
{
    return !strcmp(ours, theirs ? theirs : "");
}

static bool has_external_attr(const Onnx__NodeProto *p)
{
    for (size_t i = 0; i < p->n_attribute; i++)
        if (ort_export_is_external(p->attribute[i]))
            return true;
    return false;
}

/* The node's message still says what the node is. */
static bool reusable(const ort_exporter *x, const ort_graph *graph, const ort_node *node)
{
    const Onnx__NodeProto *p = node->proto;
    if (!p || node->changed || !same_text(node->name, p->name) ||
        !same_text(node->doc, p->doc_string))
        return false;
    return !(x->rebuild && (node->body_count || has_external_attr(p))) &&
           same_names(graph, node->inputs, node->input_count, p->input, p->n_input) &&
           same_names(graph, node->outputs, node->output_count, p->output, p->n_output);
}

static char **names_of(ort_exporter *x, const ort_graph *graph, const ort_id *ids, int count)
{
    char **names = ort_export_array(x, (size_t)count, sizeof *names);
    for (int i = 0; names && i < count; i++)
        names[i] = ort_export_text(ids[i] == ORT_ID_NONE ? "" : graph->values.data[ids[i]]->name);
    return names;
}

static Onnx__NodeProto *build_node(ort_exporter *x, const ort_graph *graph, const ort_node *node)
{
    char label[256];
    int64_t opset = ort_model_opset(x->model, node->domain);
    if (node->opset && opset && node->opset != opset) {
        x->status = ort_error_set(x->err, ORT_ERROR_UNSUPPORTED,
                                  "%s comes from a function of opset %d, the model has %lld: it "
                                  "can't be saved with its functions expanded",
                                  ort_node_label(node, label, sizeof label), node->opset,
                                  (long long)opset);
        return NULL;
    }
    const Onnx__NodeProto *old = node->proto;
    Onnx__NodeProto *p = ort_export_message(x, &onnx__node_proto__descriptor, old);
    if (!p)
        return NULL;
    p->op_type = ort_export_text(node->op_type);
    p->name = *node->name ? ort_export_text(node->name) : NULL;
    p->domain = *node->domain ? ort_export_text(node->domain) : NULL;
    p->overload = *node->overload ? ort_export_text(node->overload) : NULL;
    p->doc_string = *node->doc ? ort_export_text(node->doc) : NULL;
    p->n_input = (size_t)node->input_count;
    p->input = names_of(x, graph, node->inputs, node->input_count);
    p->n_output = (size_t)node->output_count;
    p->output = names_of(x, graph, node->outputs, node->output_count);
    p->n_attribute = (size_t)node->attr_count;
    p->attribute = ort_export_array(x, p->n_attribute, sizeof *p->attribute);
    for (size_t i = 0; p->attribute && i < p->n_attribute; i++) {
        p->attribute[i] = build_attr(x, &node->attrs[i]);
        if (!p->attribute[i])
            return NULL;
    }
    return x->failed ? NULL : p;
}

/* ---- graphs */

static bool put_nodes(ort_exporter *x, const ort_graph *graph, Onnx__GraphProto *p)
{
    const ort_node *node;
    p->n_node = 0;
    p->node = ort_export_array(x, graph->order.count, sizeof *p->node);
    if (!p->node)
        return false;
    ORT_EACH_NODE(graph, node)
    {
        Onnx__NodeProto *made = reusable(x, graph, node)
                                    ? (Onnx__NodeProto *)(uintptr_t)node->proto
                                    : build_node(x, graph, node);
        if (!made)
            return false;
        p->node[p->n_node++] = made;
    }
    return true;
}

static bool put_infos(ort_exporter *x, const ort_graph *graph, const ort_id *ids, size_t count,
                      Onnx__ValueInfoProto ***list, size_t *list_count)
{
    *list = ort_export_array(x, count, sizeof **list);
    *list_count = count;
    for (size_t i = 0; *list && i < count; i++) {
        (*list)[i] = ort_export_value_info(x, graph->values.data[ids[i]]);
        if (!(*list)[i])
            return false;
    }
    return *list != NULL;
}

/* Declared types of intermediate values that still exist, in the order of the nodes that give them:
 * an import numbers them so, whatever their numbers are here. */
static bool put_value_infos(ort_exporter *x, const ort_graph *graph, Onnx__GraphProto *p)
{
    const ort_node *node;
    p->n_value_info = 0;
    p->value_info = ort_export_array(x, graph->values.count, sizeof *p->value_info);
    if (!p->value_info)
        return false;
    ORT_EACH_NODE(graph, node)
    {
        for (int i = 0; i < node->output_count; i++) {
            const ort_graph_value *value = ort_graph_value_at(graph, node->outputs[i]);
            if (!value || !value->info_proto || value->is_input || value->is_output)
                continue;
            Onnx__ValueInfoProto *info = ort_export_value_info(x, value);
            if (!info)
                return false;
            p->value_info[p->n_value_info++] = info;
        }
    }
    return true;
}

static bool proto_fits(const ort_exporter *x, const ort_graph_value *value,
                       const Onnx__TensorProto *proto)
{
    return proto && !(x->rebuild && proto->data_location) &&
           !strcmp(proto->name ? proto->name : "", value->name);
}

static bool put_sparse(ort_exporter *x, const ort_graph_value *value, Onnx__GraphProto *p)
{
    const Onnx__SparseTensorProto *old = value->initializer_proto;
    assert(old->values); /* or it could not be read */
    Onnx__SparseTensorProto *s =
        ort_export_message(x, &onnx__sparse_tensor_proto__descriptor, old);
    Onnx__TensorProto *values =
        ort_export_message(x, &onnx__tensor_proto__descriptor, old->values);
    if (!s || !values)
        return false;
    values->name = ort_export_text(value->name);
    s->values = values;
    p->sparse_initializer[p->n_sparse_initializer++] = s;
    return true;
}

static bool put_initializers(ort_exporter *x, const ort_graph *graph, Onnx__GraphProto *p)
{
    size_t count = graph->initializers.count;
    p->n_initializer = p->n_sparse_initializer = 0;
    p->initializer = ort_export_array(x, count, sizeof *p->initializer);
    p->sparse_initializer = ort_export_array(x, count, sizeof *p->sparse_initializer);
    if (!p->initializer || !p->sparse_initializer)
        return false;
    for (size_t i = 0; i < count; i++) {
        const ort_graph_value *value = graph->values.data[graph->initializers.data[i]];
        if (value->is_sparse && value->initializer_proto) {
            if (!put_sparse(x, value, p))
                return false;
            continue;
        }
        const Onnx__TensorProto *old = value->initializer_proto;
        bool spills = x->plan && x->plan->location;
        Onnx__TensorProto *t = (Onnx__TensorProto *)(uintptr_t)old;
        bool documented = old && old->doc_string && x->model->without_docs;
        if (documented || !proto_fits(x, value, old) || (spills && old->n_payload))
            t = ort_export_tensor(x, value->name, value->fact.value, true);
        if (!t)
            return false;
        if (old && t != old) {
            t->doc_string = x->model->without_docs ? NULL : old->doc_string;
            t->n_metadata_props = old->n_metadata_props;
            t->metadata_props = old->metadata_props;
        }
        p->initializer[p->n_initializer++] = t;
    }
    return true;
}

static Onnx__GraphProto *build_graph(ort_exporter *x, const ort_graph *graph)
{
    const Onnx__GraphProto *old = graph->proto;
    if (old && !graph->changed && !x->rebuild)
        return (Onnx__GraphProto *)(uintptr_t)old;
    Onnx__GraphProto *p = ort_export_message(x, &onnx__graph_proto__descriptor, old);
    if (!p)
        return NULL;
    p->name = ort_export_text(*graph->name ? graph->name : "graph");
    if (x->model->without_docs)
        p->doc_string = NULL;
    bool ok = put_nodes(x, graph, p) && put_initializers(x, graph, p) &&
              put_infos(x, graph, graph->inputs.data, graph->inputs.count, &p->input,
                        &p->n_input) &&
              put_infos(x, graph, graph->outputs.data, graph->outputs.count, &p->output,
                        &p->n_output) &&
              put_value_infos(x, graph, p);
    return ok && !x->failed ? p : NULL;
}

/* ---- the model */

static bool put_imports(ort_exporter *x, const ort_opset *opsets, size_t count,
                        Onnx__OperatorSetIdProto ***imports, size_t *import_count)
{
    *imports = ort_export_array(x, count, sizeof **imports);
    *import_count = count;
    for (size_t i = 0; !x->failed && i < count; i++) {
        Onnx__OperatorSetIdProto *p = (*imports)[i] =
            ort_export_message(x, &onnx__operator_set_id_proto__descriptor, NULL);
        if (!p)
            return false;
        p->domain = ort_export_text(opsets[i].domain);
        p->has_version = 1;
        p->version = opsets[i].version;
    }
    return !x->failed;
}

static bool put_metadata(ort_exporter *x, Onnx__ModelProto *p)
{
    const ort_model *model = x->model;
    p->n_metadata_props = model->metadata_count;
    p->metadata_props = ort_export_array(x, p->n_metadata_props, sizeof *p->metadata_props);
    for (size_t i = 0; !x->failed && i < p->n_metadata_props; i++)
        p->metadata_props[i] = ort_export_pair(x, model->metadata[i].key, model->metadata[i].value);
    return !x->failed;
}

/* Functions without their documentation, with other imports: copies of their messages. */
static bool put_functions(ort_exporter *x, Onnx__ModelProto *p)
{
    const ort_model *model = x->model;
    Onnx__FunctionProto **list = ort_export_array(x, p->n_functions, sizeof *list);
    Onnx__FunctionProto *copy = ort_export_array(x, p->n_functions, sizeof *copy);
    for (size_t i = 0, k = 0; list && copy && i < p->n_functions; i++) { /* in the same order */
        copy[i] = *p->functions[i];
        if (model->without_docs)
            copy[i].doc_string = NULL;
        list[i] = &copy[i];
        if (k == model->functions.count || model->functions.data[k].proto != p->functions[i])
            continue;
        const ort_function *f = &model->functions.data[k++];
        if (f->opsets_changed && !put_imports(x, f->opsets, (size_t)f->opset_count,
                                              &copy[i].opset_import, &copy[i].n_opset_import))
            return false;
    }
    p->functions = list;
    return !x->failed;
}

static bool put_header(ort_exporter *x, Onnx__ModelProto *p)
{
    const ort_model *model = x->model;
    /* Initializers that aren't inputs came with IR 4. */
    p->has_ir_version = 1;
    p->ir_version = model->ir_version < 4 ? 4 : model->ir_version;
    if (!ort_graph_calls_functions(model->graph))
        p->n_functions = 0;
    bool ok = put_imports(x, model->opsets.data, model->opsets.count, &p->opset_import,
                          &p->n_opset_import);
    if (!ok || (x->model->proto && !model->changed))
        return ok;
    p->producer_name = *model->producer_name ? ort_export_text(model->producer_name) : NULL;
    p->producer_version =
        *model->producer_version ? ort_export_text(model->producer_version) : NULL;
    p->domain = *model->domain ? ort_export_text(model->domain) : NULL;
    p->doc_string = *model->doc ? ort_export_text(model->doc) : NULL;
    if (!put_functions(x, p))
        return false;
    p->has_model_version = 1;
    p->model_version = model->model_version;
    return put_metadata(x, p);
}

static const Onnx__ModelProto *build_model(ort_exporter *x)
{
    const ort_model *model = x->model;
    const Onnx__ModelProto *old = model->proto;
    if (old && !model->graph->changed && !model->changed && !x->rebuild)
        return old;
    Onnx__ModelProto *p = ort_export_message(x, &onnx__model_proto__descriptor, old);
    if (!p)
        return NULL;
    bool changed = !old || model->graph->changed || model->changed || model->ir_version < 4;
    if (changed && !put_header(x, p))
        return NULL;
    p->graph = build_graph(x, model->graph);
    return p->graph ? p : NULL;
}

static ort_status pack(ort_exporter *x, const Onnx__ModelProto *proto, ort_sink_fn *sink, void *arg)
{
    size_t count = onnx__model_proto__get_packed_size(proto);
    uint8_t *skeleton = malloc(count ? count : 1);
    if (!skeleton)
        return ort_error_memory(x->err, count);
    size_t packed = onnx__model_proto__pack(proto, skeleton);
    assert(packed == count);
    (void)packed;
    ort_status status = ort_wire_join(ORT_WIRE_MODEL, skeleton, count, x->payloads.data,
                                      x->payloads.count, sink, arg, x->err);
    free(skeleton);
    return status;
}

ort_status ort_model_export(const ort_model *model, const struct ort_save_plan *plan,
                            ort_sink_fn *sink, void *arg, ort_error *err)
{
    ort_exporter x = {.model = model, .plan = plan, .err = err};
    x.rebuild = model->external_bytes > 0 || (plan && plan->location);
    for (size_t i = 0; i < model->payload_count && !x.failed; i++)
        x.failed = !ort_vec_push(&x.payloads, model->payloads[i]);
    const Onnx__ModelProto *proto = x.failed ? NULL : build_model(&x);
    ort_status status = x.status;
    if (proto)
        status = pack(&x, proto, sink, arg);
    else if (status == ORT_OK)
        status = ort_error_memory(err, sizeof *proto);
    ort_arena_release(&x.arena);
    ort_vec_release(&x.payloads);
    return status;
}

size_t ort_export_weight_bytes(const ort_model *model)
{
    size_t total = model->external_bytes;
    for (size_t i = 0; i < model->payload_count; i++)
        total += model->payloads[i].elements ? 0 : model->payloads[i].count;
    for (size_t i = 0; i < model->graph->initializers.count; i++) {
        const ort_graph_value *value =
            model->graph->values.data[model->graph->initializers.data[i]];
        if (!value->initializer_proto && value->fact.value && value->fact.value->data &&
            value->fact.value->dtype != ORT_DTYPE_STRING)
            total += ort_tensor_bytes(value->fact.value);
    }
    return total;
}
