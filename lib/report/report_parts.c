/* report_parts.c - what all reports are made of (report.h): their head, texts, numbers, types,
 * names of values, and the walk over nodes. */
#include <stdio.h>

#include "report/report.h"

void ort_report_begin(ort_json *json, ort_strbuf *out, const char *name, const ort_model *model)
{
    ort_json_init(json, out, 1);
    ort_json_begin_object(json);
    ort_report_text(json, "schema", "ort-inspect/1");
    ort_report_text(json, "report", name);
    if (model)
        ort_report_text(json, "model", model->path);
}

void ort_report_text(ort_json *json, const char *key, const char *text)
{
    ort_json_key(json, key);
    ort_json_string(json, text);
}

void ort_report_int(ort_json *json, const char *key, int64_t value)
{
    ort_json_key(json, key);
    ort_json_int(json, value);
}

void ort_report_type(ort_json *json, const ort_dim_table *dims, const ort_type *type)
{
    char text[4096];
    ort_report_text(json, "type", ort_type_format(dims, type, text, sizeof text));
    if (type->kind != ORT_TYPE_TENSOR && type->kind != ORT_TYPE_SPARSE)
        return;
    ort_report_text(json, "dtype",
                    type->dtype ? ort_dtype_get(type->dtype)->name : "unknown");
    ort_json_key(json, "shape");
    if (type->rank < 0) {
        ort_json_null(json);
        return;
    }
    ort_json_begin_array(json);
    for (int i = 0; i < type->rank; i++) {
        if (ort_dim_known(type->dim[i]))
            ort_json_int(json, type->dim[i].size);
        else if (type->dim[i].expr == ORT_DIM_UNKNOWN)
            ort_json_null(json);
        else
            ort_json_string(json, ort_dim_format(dims, type->dim[i], text, sizeof text));
    }
    ort_json_end_array(json);
}

void ort_report_values(ort_json *json, const char *key, const ort_graph *graph, const ort_id *ids,
                       int count)
{
    ort_json_key(json, key);
    ort_json_begin_array(json);
    for (int i = 0; i < count; i++)
        ort_json_string(json, ids[i] == ORT_ID_NONE ? "" : graph->values.data[ids[i]]->name);
    ort_json_end_array(json);
}

/* The attribute that holds body `index`. */
static const char *body_name(const ort_node *node, int index)
{
    for (int i = 0; i < node->attr_count; i++) {
        const ort_attr *a = &node->attrs[i];
        bool graphs = a->type == ORT_ATTR_GRAPH || a->type == ORT_ATTR_GRAPHS;
        for (size_t k = 0; graphs && k < a->count; k++)
            if (a->graphs[k] == node->bodies[index])
                return a->name;
    }
    return "body";
}

static void inner_path(const ort_node *node, int index, const char *path, char *text, size_t size)
{
    char own[32];
    snprintf(own, sizeof own, "%.20s_%u", node->op_type, node->id);
    snprintf(text, size, "%s%s%s/%s", path, *path ? "/" : "", *node->name ? node->name : own,
             body_name(node, index));
}

void ort_report_each_node(const ort_graph *graph, const char *path, ort_report_node_fn *fn,
                          void *arg)
{
    const ort_node *node;
    char inner[512];
    ORT_EACH_NODE(graph, node)
    {
        fn(arg, graph, node, path);
        for (int b = 0; b < node->body_count; b++) {
            inner_path(node, b, path, inner, sizeof inner);
            ort_report_each_node(node->bodies[b], inner, fn, arg);
        }
    }
}

const char *ort_report_domain(const char *domain)
{
    return *domain ? domain : "ai.onnx";
}
