/* dynamic_nodes.c - nodes that dynamic quantization writes, named as onnxruntime names them. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "quantize/dynamic/dynamic_parts.h"


static const char *stem_of(const ort_graph *graph, const ort_node *node)
{
    return *node->name ? node->name : graph->values.data[node->outputs[0]]->name;
}

/* LSTM alone has an attribute that its form on codes lacks; it is 0 where it is quantized. */
static ort_status own_attrs(const ort_dynamic_unit *u, ort_node_spec *spec, ort_error *err)
{
    ort_attr *list = ort_arena_array(&u->graph->model->arena, (size_t)u->node->attr_count + 1,
                                     sizeof *list);
    if (!list)
        return ort_error_memory(err, sizeof *list);
    for (int i = 0; i < u->node->attr_count; i++)
        if (strcmp(u->node->attrs[i].name, "layout"))
            list[spec->attr_count++] = u->node->attrs[i];
    spec->attrs = list;
    return ORT_OK;
}

ort_status ort_dynamic_add(const ort_dynamic_unit *u, const ort_dynamic_new *made, ort_id *result,
                           ort_error *err)
{
    char name[512];
    ort_id out = ORT_ID_NONE;
    snprintf(name, sizeof name, "%.480s_%s", stem_of(u->graph, u->node), made->what);
    ort_node_spec spec = {.domain = made->domain ? made->domain : ONNX, .op_type = made->op_type,
                          .name = name, .inputs = made->inputs, .input_count = made->input_count,
                          .outputs = &out, .output_count = 1, .set = made->set,
                          .set_count = made->set_count};
    while (spec.input_count && spec.inputs[spec.input_count - 1] == ORT_ID_NONE)
        spec.input_count--;
    if (made->keeps_attrs)
        ORT_TRY(own_attrs(u, &spec, err));
    if (made->last) {
        spec.outputs = u->node->outputs;
        spec.output_count = u->node->output_count;
        spec.origin = ort_edit_origin_of(u->node);
    } else if ((out = ort_graph_add_value(u->graph, name)) == ORT_ID_NONE) {
        return ort_error_memory(err, sizeof name);
    }
    if (result)
        *result = made->last ? u->node->outputs[0] : out;
    return ort_edit_add_node(u->graph, &spec, NULL, err);
}

static ort_status add_named(ort_graph *graph, const char *stem, const char *what, ort_id *id,
                            ort_error *err)
{
    char name[512];
    snprintf(name, sizeof name, "%.480s_%s", stem, what);
    *id = ort_graph_add_value(graph, name);
    return *id == ORT_ID_NONE ? ort_error_memory(err, sizeof name) : ORT_OK;
}

ort_status ort_dynamic_bytes_of(ort_dynamic *d, ort_graph *graph, ort_id value,
                                ort_dynamic_bytes *bytes, ort_error *err)
{
    for (size_t k = d->bytes.count; k-- > 0;)
        if (d->bytes.data[k].graph == graph && d->bytes.data[k].value == value) {
            *bytes = d->bytes.data[k];
            return ORT_OK;
        }
    const char *stem = graph->values.data[value]->name;
    char name[512];
    ort_id out[3];
    ORT_TRY(add_named(graph, stem, "quantized", &out[0], err));
    ORT_TRY(add_named(graph, stem, "scale", &out[1], err));
    ORT_TRY(add_named(graph, stem, "zero_point", &out[2], err));
    snprintf(name, sizeof name, "%.480s_QuantizeLinear", stem);
    ort_node_spec spec = {.domain = ONNX, .op_type = "DynamicQuantizeLinear", .name = name,
                          .inputs = &value, .input_count = 1, .outputs = out, .output_count = 3};
    *bytes = (ort_dynamic_bytes){graph, value, out[0], out[1], out[2]};
    return ort_vec_push(&d->bytes, *bytes) ? ort_edit_add_node(graph, &spec, NULL, err)
                                           : ort_error_memory(err, sizeof *bytes);
}
