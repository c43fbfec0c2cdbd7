/* model_bytes.c - a model in pieces as the bytes of a model file: messages of ONNX. */
#include "model_editor.h"

#include <string.h>

static void put_shape(abi_proto *p, const OrtTensorTypeAndShapeInfo *shape)
{
    abi_proto_number(p, 1, (uint64_t)abi_dtype_in(shape->dtype));
    if (!shape->has_shape)
        return;
    abi_proto_begin(p, 2);
    for (size_t i = 0; i < shape->rank; i++) {
        abi_proto_begin(p, 1);
        if (shape->dims[i] >= 0)
            abi_proto_number(p, 1, (uint64_t)shape->dims[i]);
        else if (shape->symbols[i][0])
            abi_proto_text(p, 2, shape->symbols[i]);
        abi_proto_end(p);
    }
    abi_proto_end(p);
}

static void put_type(abi_proto *p, const OrtTypeInfo *type)
{
    static const unsigned fields[] = {[ABI_TENSOR] = 1, [ABI_SEQUENCE] = 4, [ABI_MAP] = 5,
                                      [ABI_SPARSE] = 8, [ABI_OPTIONAL] = 9};
    abi_proto_begin(p, fields[type->type]);
    if (type->type == ABI_TENSOR || type->type == ABI_SPARSE) {
        put_shape(p, &type->tensor);
    } else {
        bool map = type->type == ABI_MAP;
        if (map)
            abi_proto_number(p, 1, (uint64_t)abi_dtype_in(type->key));
        abi_proto_begin(p, map ? 2 : 1);
        put_type(p, type->element);
        abi_proto_end(p);
    }
    abi_proto_end(p);
}

static void put_info(abi_proto *p, unsigned field, const OrtValueInfo *info)
{
    abi_proto_begin(p, field);
    abi_proto_text(p, 1, info->name);
    abi_proto_begin(p, 2);
    put_type(p, info->type);
    abi_proto_end(p);
    abi_proto_end(p);
}

static void put_tensor(abi_proto *p, unsigned field, const char *name, const ort_value *value)
{
    abi_proto_begin(p, field);
    for (int i = 0; i < ort_value_rank(value); i++)
        abi_proto_number(p, 1, (uint64_t)ort_value_dims(value)[i]);
    abi_proto_number(p, 2, (uint64_t)ort_value_dtype(value));
    if (ort_value_dtype(value) == ORT_DTYPE_STRING) {
        for (int64_t i = 0; i < ort_value_count(value); i++) {
            size_t length;
            const char *text = ort_value_string(value, i, &length);
            abi_proto_bytes(p, 6, text, length);
        }
    }
    abi_proto_text(p, 8, name);
    if (ort_value_dtype(value) != ORT_DTYPE_STRING)
        abi_proto_bytes(p, 9, ort_value_data((ort_value *)value), ort_value_bytes(value));
    abi_proto_end(p);
}

static void put_attribute(abi_proto *p, const ort_attribute_spec *a)
{
    static const char kinds[] = "\0fist_FIST"; /* by AttributeProto's numbers */
    abi_proto_begin(p, 5);
    abi_proto_text(p, 1, a->name);
    if (a->kind == 'f')
        abi_proto_float(p, 2, a->f);
    if (a->kind == 'i')
        abi_proto_number(p, 3, (uint64_t)a->i);
    if (a->kind == 's')
        abi_proto_bytes(p, 4, a->s, a->lengths[0]);
    if (a->kind == 't')
        put_tensor(p, 5, "", a->t);
    for (size_t i = 0; i < a->count; i++) {
        if (a->kind == 'F')
            abi_proto_float(p, 7, a->floats[i]);
        if (a->kind == 'I')
            abi_proto_number(p, 8, (uint64_t)a->ints[i]);
        if (a->kind == 'S')
            abi_proto_bytes(p, 9, a->strings[i], a->lengths[i]);
    }
    abi_proto_number(p, 20, (uint64_t)(strchr(kinds + 1, a->kind) - kinds));
    abi_proto_end(p);
}

static void put_node(abi_proto *p, const OrtNode *node)
{
    abi_proto_begin(p, 1);
    for (size_t i = 0; i < node->input_count; i++)
        abi_proto_text(p, 1, node->inputs[i]);
    for (size_t i = 0; i < node->output_count; i++)
        abi_proto_text(p, 2, node->outputs[i]);
    abi_proto_text(p, 3, node->name);
    abi_proto_text(p, 4, node->type);
    for (size_t i = 0; i < node->attr_count; i++)
        put_attribute(p, &node->attrs[i]->spec);
    abi_proto_text(p, 7, node->domain);
    abi_proto_end(p);
}

void abi_put_graph(abi_proto *p, const OrtGraph *graph)
{
    for (size_t i = 0; i < graph->node_count; i++)
        put_node(p, graph->nodes[i]);
    for (size_t i = 0; i < graph->initializer_count; i++)
        put_tensor(p, 5, graph->initializers[i].name, graph->initializers[i].value);
    for (size_t i = 0; i < graph->input_count; i++)
        put_info(p, 11, graph->inputs[i]);
    for (size_t i = 0; i < graph->output_count; i++)
        put_info(p, 12, graph->outputs[i]);
}

void abi_put_opset(abi_proto *p, const char *domain, int version)
{
    abi_proto_begin(p, 8);
    abi_proto_text(p, 1, domain);
    abi_proto_number(p, 2, (uint64_t)version);
    abi_proto_end(p);
}

void abi_put_model(abi_proto *p, const OrtModel *model)
{
    enum { IR_VERSION = 10 };
    abi_proto_number(p, 1, IR_VERSION);
    abi_proto_begin(p, 7);
    abi_proto_text(p, 2, "OrtGraph");
    abi_put_graph(p, model->graph);
    abi_proto_end(p);
    for (size_t i = 0; i < model->count; i++)
        abi_put_opset(p, model->domains[i], model->versions[i]);
}
