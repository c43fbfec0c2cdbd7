/* check_type.c - declared types and shapes of a message (check_message.h). */
#include <stdio.h>

#include "op/check/check_message.h"

static void check_dims(ort_message_check *c, const Onnx__TensorShapeProto *shape,
                       const char *place)
{
    for (size_t i = 0; shape && i < shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
            dim->dim_value < 0) /* -1 is what several exporters write */
            ort_findings_add(c->findings,
                             dim->dim_value == -1 ? ORT_FINDING_NOTE : ORT_FINDING_WARNING,
                             "%sdimension %zu is declared %lld: read as unknown, which is said by "
                             "a name or by leaving the size out",
                             place, i, (long long)dim->dim_value);
    }
}

static void check_element_type(ort_message_check *c, bool there, int32_t type, bool needed,
                               const char *what, const char *place)
{
    if (!there || type == ORT_DTYPE_UNDEFINED)
        ort_findings_add(c->findings, needed ? ORT_FINDING_ERROR : ORT_FINDING_WARNING,
                         "%sthe %s is %s: declare one, or leave the whole type out", place, what,
                         there ? "0 (undefined)" : "missing");
}

static void check_inner(ort_message_check *c, const Onnx__TypeProto *type, bool needed,
                        const char *what, const char *place)
{
    char inner[420];
    if (!type) {
        ort_findings_add(c->findings, needed ? ORT_FINDING_ERROR : ORT_FINDING_WARNING,
                         "%sthe type of the %s is missing", place, what);
        return;
    }
    snprintf(inner, sizeof inner, "%s%s: ", place, what);
    ort_check_type(c, type, needed, inner);
}

void ort_check_type(ort_message_check *c, const Onnx__TypeProto *type, bool needed,
                    const char *place)
{
    switch (type->value_case) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        check_element_type(c, type->tensor_type->has_elem_type, type->tensor_type->elem_type,
                           needed, "element type", place);
        check_dims(c, type->tensor_type->shape, place);
        break;
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        check_element_type(c, type->sparse_tensor_type->has_elem_type,
                           type->sparse_tensor_type->elem_type, needed, "element type", place);
        check_dims(c, type->sparse_tensor_type->shape, place);
        break;
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        check_inner(c, type->sequence_type->elem_type, needed, "items of the sequence", place);
        break;
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        check_inner(c, type->optional_type->elem_type, needed, "optional", place);
        break;
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        check_element_type(c, type->map_type->has_key_type, type->map_type->key_type, needed,
                           "key type", place);
        check_inner(c, type->map_type->value_type, needed, "values of the map", place);
        break;
    case ONNX__TYPE_PROTO__VALUE_OPAQUE_TYPE:
        if (!*ort_check_text(type->opaque_type->name))
            ort_findings_add(c->findings, needed ? ORT_FINDING_ERROR : ORT_FINDING_WARNING,
                             "%sthe opaque type has no name", place);
        break;
    default: /* in bodies exporters write such */
        ort_findings_add(c->findings, needed ? ORT_FINDING_ERROR : ORT_FINDING_NOTE,
                         "%sthe declared type is empty", place);
    }
}

static bool lacks_shape(const Onnx__TypeProto *type)
{
    return (type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE && !type->tensor_type->shape) ||
           (type->value_case == ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE &&
            !type->sparse_tensor_type->shape);
}

void ort_check_value_info(ort_message_check *c, const Onnx__ValueInfoProto *info,
                          ort_value_role role, bool is_main, const char *place)
{
    static const char *const roles[] = {"graph input", "graph output", "value"};
    bool needed = is_main && role != ORT_ROLE_INSIDE;
    char inner[420];
    snprintf(inner, sizeof inner, "%s%s '%.100s': ", place, roles[role],
             ort_check_text(info->name));
    if (needed && !*ort_check_text(info->name))
        ort_findings_add(c->findings, ORT_FINDING_ERROR, "%sthere is no name", inner);
    if (info->type)
        ort_check_type(c, info->type, needed, inner);
    else if (needed) /* what an output is can be inferred */
        ort_findings_add(c->findings,
                         role == ORT_ROLE_INPUT ? ORT_FINDING_ERROR : ORT_FINDING_WARNING,
                         "%sthere is no declared type", inner);
    if (needed && info->type && lacks_shape(info->type))
        ort_findings_add(c->findings, ORT_FINDING_NOTE,
                         "%sthere is no declared shape: the rank is open", inner);
}
