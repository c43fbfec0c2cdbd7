/* build_attr.c - attributes, but for graphs in them, and types from ONNX messages. Short lists are
 * used where protobuf-c put them, long ones are read from the file (io/wire_list.h). */
#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/build.h"
#include "io/wire_list.h"

/* ---- types */

static ort_dim dim_of(ort_model *model, const Onnx__TensorShapeProto__Dimension *dim)
{
    if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
        return dim->dim_value >= 0 ? ort_dim_of(dim->dim_value) : ort_dim_unknown();
    /* "?" is how some exporters write an unknown size: twice the name is not twice the same size.
     */
    if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
        strcmp(ort_build_text(dim->dim_param), "?"))
        return ort_dim_parse(model->dims, ort_build_text(dim->dim_param));
    return ort_dim_unknown();
}

static ort_status build_tensor_type(ort_model *model, int32_t elem_type,
                                    const Onnx__TensorShapeProto *shape, ort_type *type,
                                    ort_error *err)
{
    type->dtype = elem_type > 0 && elem_type < ORT_DTYPE_COUNT ? (ort_dtype)elem_type
                                                               : ORT_DTYPE_UNDEFINED;
    if (elem_type < 0 || elem_type >= ORT_DTYPE_COUNT)
        return ort_error_set(err, ORT_ERROR_MODEL, "element type %d doesn't exist", elem_type);
    type->rank = -1;
    if (!shape)
        return ORT_OK;
    if (shape->n_dim > ORT_MAX_RANK)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "a value of rank %zu, the most is %d",
                             shape->n_dim, ORT_MAX_RANK);
    type->rank = (int)shape->n_dim;
    for (int i = 0; i < type->rank; i++)
        type->dim[i] = dim_of(model, shape->dim[i]);
    return ORT_OK;
}

static ort_status build_element(ort_model *model, const Onnx__TypeProto *proto, ort_type *type,
                                ort_error *err)
{
    ort_type *element = ort_arena_alloc(&model->arena, sizeof *element);
    if (!element)
        return ort_error_memory(err, sizeof *element);
    element->rank = -1;
    type->element = element;
    return proto ? ort_build_type(model, proto, element, err) : ORT_OK;
}

ort_status ort_build_type(ort_model *model, const Onnx__TypeProto *proto, ort_type *type,
                          ort_error *err)
{
    *type = (ort_type){.rank = -1};
    switch (proto->value_case) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        type->kind = ORT_TYPE_TENSOR;
        return build_tensor_type(model, proto->tensor_type->elem_type, proto->tensor_type->shape,
                                 type, err);
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        type->kind = ORT_TYPE_SPARSE;
        return build_tensor_type(model, proto->sparse_tensor_type->elem_type,
                                 proto->sparse_tensor_type->shape, type, err);
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        type->kind = ORT_TYPE_SEQUENCE;
        return build_element(model, proto->sequence_type->elem_type, type, err);
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        type->kind = ORT_TYPE_OPTIONAL;
        return build_element(model, proto->optional_type->elem_type, type, err);
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE: {
        int32_t key = proto->map_type->key_type;
        type->kind = ORT_TYPE_MAP;
        if (key < 0 || key >= ORT_DTYPE_COUNT)
            return ort_error_set(err, ORT_ERROR_MODEL, "map key type %d doesn't exist", key);
        type->dtype = (ort_dtype)key;
        return build_element(model, proto->map_type->value_type, type, err);
    }
    case ONNX__TYPE_PROTO__VALUE_OPAQUE_TYPE: type->kind = ORT_TYPE_OPAQUE; return ORT_OK;
    default: return ORT_OK;
    }
}

/* ---- attributes */

/* The elements of a list that aren't in the message but in payloads; they follow those in it. */
static size_t long_list(const ort_builder *b, const Onnx__AttributeProto *p, uint32_t field,
                        size_t *bytes)
{
    size_t elements = 0, total = 0;
    for (size_t i = 0; i < p->n_payload; i++) {
        const ort_wire_payload *piece = ort_codec_payload(&b->codec, p->payload[i], field);
        elements += piece ? piece->elements : 0;
        total += piece ? piece->count : 0;
    }
    if (bytes)
        *bytes = total;
    return elements;
}

ort_attr_type ort_build_attr_type(const ort_builder *b, const Onnx__AttributeProto *p)
{
    if (p->type || p->ref_attr_name)
        return p->type >= 0 && p->type <= ORT_ATTR_TYPE_PROTOS ? (ort_attr_type)p->type
                                                               : ORT_ATTR_UNDEFINED;
    return p->has_f       ? ORT_ATTR_FLOAT
           : p->has_i     ? ORT_ATTR_INT
           : p->has_s     ? ORT_ATTR_STRING
           : p->t         ? ORT_ATTR_TENSOR
           : p->g         ? ORT_ATTR_GRAPH
           : p->n_floats || long_list(b, p, ORT_WIRE_FLOATS, NULL)   ? ORT_ATTR_FLOATS
           : p->n_ints || long_list(b, p, ORT_WIRE_INTS, NULL)       ? ORT_ATTR_INTS
           : p->n_strings || long_list(b, p, ORT_WIRE_STRINGS, NULL) ? ORT_ATTR_STRINGS
           : p->n_tensors ? ORT_ATTR_TENSORS
           : p->n_graphs  ? ORT_ATTR_GRAPHS
                          : ORT_ATTR_UNDEFINED;
}

static ort_status copy_string(ort_arena *arena, const ProtobufCBinaryData *from, ort_string *to,
                              ort_error *err)
{
    *to = (ort_string){(const char *)from->data, from->len};
    return ort_string_own(arena, to) ? ORT_OK : ort_error_memory(err, from->len);
}

static ort_status build_strings(ort_builder *b, const Onnx__AttributeProto *p, ort_attr *attr,
                                ort_error *err)
{
    size_t bytes;
    size_t count = p->n_strings + long_list(b, p, ORT_WIRE_STRINGS, &bytes);
    ort_string *list = ort_arena_array(&b->model->arena, count, sizeof *list);
    /* The header of a field is longer than the NUL that its copy ends with. */
    char *text = ort_arena_alloc_aligned(&b->model->arena, bytes, 1, 0);
    if (!list || !text)
        return ort_error_memory(err, count * sizeof *list + bytes);
    attr->strings = list;
    attr->count = count;
    for (size_t i = 0; i < p->n_strings; i++)
        ORT_TRY(copy_string(&b->model->arena, &p->strings[i], list++, err));
    for (size_t i = 0; i < p->n_payload; i++) {
        const ort_wire_payload *piece =
            ort_codec_payload(&b->codec, p->payload[i], ORT_WIRE_STRINGS);
        if (piece)
            list = ort_wire_list_strings(piece, list, text), text += piece->count;
    }
    assert(list == attr->strings + count);
    return ORT_OK;
}

/* Where payloads hold some of them, the list is a new one of all; else the message's own. */
static ort_status build_numbers(ort_builder *b, const Onnx__AttributeProto *p, ort_attr *attr,
                                ort_error *err)
{
    bool floats = attr->type == ORT_ATTR_FLOATS;
    uint32_t field = floats ? ORT_WIRE_FLOATS : ORT_WIRE_INTS;
    size_t own = floats ? p->n_floats : p->n_ints, more = long_list(b, p, field, NULL), bytes;
    size_t width = floats ? sizeof *p->floats : sizeof *p->ints;
    attr->floats = floats ? p->floats : NULL;
    attr->ints = floats ? NULL : p->ints;
    attr->count = own + more;
    if (!more)
        return ORT_OK;
    char *made = ort_mul_size(attr->count, width, &bytes)
                     ? ort_arena_alloc_aligned(&b->model->arena, bytes, 16, 0)
                     : NULL;
    if (!made)
        return ort_error_memory(err, attr->count * width);
    if (own)
        memcpy(made, floats ? (const void *)p->floats : p->ints, own * width);
    void *next = made + own * width;
    for (size_t i = 0; i < p->n_payload; i++) {
        const ort_wire_payload *piece = ort_codec_payload(&b->codec, p->payload[i], field);
        next = piece ? ort_wire_list_numbers(piece, next) : next;
    }
    assert(next == (void *)(made + bytes));
    attr->floats = floats ? (const void *)made : NULL;
    attr->ints = floats ? NULL : (const void *)made;
    return ORT_OK;
}

static ort_status build_tensors(ort_builder *b, const Onnx__AttributeProto *p, ort_attr *attr,
                                ort_error *err)
{
    bool one = attr->type == ORT_ATTR_TENSOR || attr->type == ORT_ATTR_SPARSE_TENSOR;
    bool sparse = attr->type == ORT_ATTR_SPARSE_TENSOR || attr->type == ORT_ATTR_SPARSE_TENSORS;
    size_t count = one ? 1 : sparse ? p->n_sparse_tensors : p->n_tensors;
    if (one && !(sparse ? (const void *)p->sparse_tensor : (const void *)p->t))
        return ort_error_set(err, ORT_ERROR_MODEL, "attribute '%s' has no tensor", attr->name);
    ort_tensor *list = ort_arena_array(&b->model->arena, count, sizeof *list);
    if (!list)
        return ort_error_memory(err, count * sizeof *list);
    attr->tensors = list;
    attr->count = count;
    attr->t = one ? list : NULL;
    for (size_t i = 0; i < count; i++) {
        ort_status status =
            sparse ? ort_codec_sparse(&b->codec, one ? p->sparse_tensor : p->sparse_tensors[i],
                                      &list[i], err)
                   : ort_codec_tensor(&b->codec, one ? p->t : p->tensors[i], &list[i], err);
        if (status != ORT_OK)
            return ort_error_wrap(err, status, "attribute '%s'", attr->name);
    }
    return ORT_OK;
}

static ort_status build_types(ort_builder *b, const Onnx__AttributeProto *p, ort_attr *attr,
                              ort_error *err)
{
    bool one = attr->type == ORT_ATTR_TYPE_PROTO;
    size_t count = one ? 1 : p->n_type_protos;
    if (one && !p->tp)
        return ort_error_set(err, ORT_ERROR_MODEL, "attribute '%s' has no type", attr->name);
    ort_type *list = ort_arena_array(&b->model->arena, count, sizeof *list);
    if (!list)
        return ort_error_memory(err, count * sizeof *list);
    attr->type_proto = list;
    attr->count = count;
    for (size_t i = 0; i < count; i++)
        ORT_TRY(ort_build_type(b->model, one ? p->tp : p->type_protos[i], &list[i], err));
    return ORT_OK;
}

ort_status ort_build_attr(ort_builder *b, const Onnx__AttributeProto *p, ort_attr *attr,
                          ort_error *err)
{
    *attr = (ort_attr){.name = ort_build_text(p->name),
                       .type = ort_build_attr_type(b, p),
                       .proto = p};
    if (p->ref_attr_name && *p->ref_attr_name) {
        attr->reference = p->ref_attr_name;
        return ORT_OK;
    }
    switch (attr->type) {
    case ORT_ATTR_FLOAT: attr->f = p->f; break;
    case ORT_ATTR_INT: attr->i = p->i; break;
    case ORT_ATTR_STRING: return copy_string(&b->model->arena, &p->s, &attr->s, err);
    case ORT_ATTR_FLOATS:
    case ORT_ATTR_INTS: return build_numbers(b, p, attr, err);
    case ORT_ATTR_STRINGS: return build_strings(b, p, attr, err);
    case ORT_ATTR_TENSOR:
    case ORT_ATTR_TENSORS:
    case ORT_ATTR_SPARSE_TENSOR:
    case ORT_ATTR_SPARSE_TENSORS: return build_tensors(b, p, attr, err);
    case ORT_ATTR_TYPE_PROTO:
    case ORT_ATTR_TYPE_PROTOS: return build_types(b, p, attr, err);
    default: break;
    }
    return ORT_OK;
}
