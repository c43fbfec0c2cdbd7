/* export_parts.c - messages for tensors, types, value infos and attributes (export.h). Graphs in
 * attributes are not made here but where those of nodes are, in export.c. */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "graph/export.h"

void *ort_export_array(ort_exporter *x, size_t count, size_t size)
{
    void *array = ort_arena_array(&x->arena, count ? count : 1, size);
    x->failed = x->failed || !array;
    return array;
}

void *ort_export_message(ort_exporter *x, const ProtobufCMessageDescriptor *type, const void *old)
{
    void *message = ort_export_array(x, 1, type->sizeof_message);
    if (message && old)
        memcpy(message, old, type->sizeof_message);
    else if (message)
        protobuf_c_message_init(type, message);
    return message;
}

/* ---- tensors */

Onnx__StringStringEntryProto *ort_export_pair(ort_exporter *x, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *p =
        ort_export_message(x, &onnx__string_string_entry_proto__descriptor, NULL);
    if (!p)
        return NULL;
    p->key = ort_export_text(key);
    p->value = ort_arena_strdup(&x->arena, value);
    x->failed = x->failed || !p->value;
    return p;
}

/* Append the bytes to the data file and say where they are. */
static bool spill(ort_exporter *x, Onnx__TensorProto *p, const ort_tensor *t, size_t count)
{
    static const uint8_t zeros[ORT_EXPORT_ALIGNMENT];
    char number[32];
    size_t gap = (size_t)(-x->data_offset % ORT_EXPORT_ALIGNMENT);
    const ort_save_plan *plan = x->plan;
    assert(plan->location && !t->stride && count == ort_tensor_bytes(t));
    assert(!(plan->place && plan->data)); /* one of them says where the bytes are */
    if (plan->place)
        gap = 0, x->status = plan->place(plan->data_arg, t, &x->data_offset, x->err);
    if (plan->data && gap)
        x->status = plan->data(plan->data_arg, zeros, gap, x->err);
    if (plan->data && x->status == ORT_OK)
        x->status = plan->data(plan->data_arg, t->data, count, x->err);
    if (x->status != ORT_OK)
        return false;
    x->data_offset += gap;
    assert(plan->place || x->data_offset % ORT_EXPORT_ALIGNMENT == 0);
    bool nowhere = plan->place && x->data_offset == ORT_EXPORT_NOWHERE;
    p->external_data = ort_export_array(x, 3, sizeof *p->external_data);
    if (!p->external_data)
        return false;
    p->n_external_data = nowhere ? 1 : 3;
    p->external_data[0] = ort_export_pair(x, "location", plan->location);
    snprintf(number, sizeof number, "%llu", (unsigned long long)x->data_offset);
    p->external_data[1] = ort_export_pair(x, "offset", number);
    snprintf(number, sizeof number, "%zu", count);
    p->external_data[2] = ort_export_pair(x, "length", number);
    p->has_data_location = 1;
    p->data_location = 1;
    x->data_offset += plan->place ? 0 : count;
    return !x->failed;
}

static bool set_payload(ort_exporter *x, Onnx__TensorProto *p, const void *bytes, size_t count)
{
    p->payload = ort_export_array(x, 1, sizeof *p->payload);
    if (!p->payload)
        return false;
    assert(x->payloads.count < UINT32_MAX);
    p->n_payload = 1;
    p->payload[0] = (uint32_t)x->payloads.count;
    x->failed = !ort_vec_push(&x->payloads, (ort_wire_payload){bytes, count, 0, ORT_WIRE_RAW_DATA});
    return !x->failed;
}

static ProtobufCBinaryData bytes_of(const ort_string *s)
{
    return (ProtobufCBinaryData){s->length, (uint8_t *)(uintptr_t)s->ptr};
}

static bool set_strings(ort_exporter *x, const ort_string *strings, size_t count,
                        ProtobufCBinaryData **list, size_t *list_count)
{
    *list = ort_export_array(x, count, sizeof **list);
    *list_count = *list ? count : 0;
    for (size_t i = 0; i < *list_count; i++)
        (*list)[i] = bytes_of(&strings[i]);
    return *list != NULL;
}

Onnx__TensorProto *ort_export_tensor(ort_exporter *x, const char *name, const ort_tensor *t,
                                     bool may_spill)
{
    Onnx__TensorProto *p = ort_export_message(x, &onnx__tensor_proto__descriptor, NULL);
    if (!p)
        return NULL;
    p->name = *name ? ort_export_text(name) : NULL;
    p->has_data_type = 1;
    p->data_type = t->dtype;
    assert(!t->stride && t->shape.rank >= 0 && t->shape.rank <= ORT_MAX_RANK);
    p->n_dims = (size_t)t->shape.rank;
    p->dims = ort_export_array(x, p->n_dims, sizeof *p->dims);
    if (!p->dims)
        return NULL;
    memcpy(p->dims, t->shape.dim, p->n_dims * sizeof *p->dims);
    size_t bytes = ort_tensor_count(t) ? ort_tensor_bytes(t) : 0;
    if (bytes && !t->data) {
        x->status = ort_error_set(x->err, ORT_ERROR_MODEL,
                                  "tensor '%s' has no data here: the model was loaded without it",
                                  name);
        return NULL;
    }
    bool ok, spills = may_spill && bytes && x->plan && x->plan->location;
    if (t->dtype == ORT_DTYPE_STRING)
        ok = set_strings(x, t->data, (size_t)ort_tensor_count(t), &p->string_data,
                         &p->n_string_data);
    else if (spills && bytes >= x->plan->threshold_bytes)
        ok = spill(x, p, t, bytes);
    else
        ok = set_payload(x, p, t->data, bytes);
    return ok ? p : NULL;
}

/* ---- types */

static Onnx__TensorShapeProto__Dimension *dim_of(ort_exporter *x, ort_dim dim)
{
    Onnx__TensorShapeProto__Dimension *p =
        ort_export_message(x, &onnx__tensor_shape_proto__dimension__descriptor, NULL);
    char name[512];
    if (p && ort_dim_known(dim)) {
        p->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        p->dim_value = dim.size;
    } else if (p && dim.expr != ORT_DIM_UNKNOWN) {
        ort_dim_format(x->model->dims, dim, name, sizeof name);
        p->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        p->dim_param = ort_arena_strdup(&x->arena, name);
        x->failed = x->failed || !p->dim_param;
    }
    return p;
}

/* NULL for an unknown rank, too. */
static Onnx__TensorShapeProto *shape_of(ort_exporter *x, const ort_type *type)
{
    if (type->rank < 0)
        return NULL;
    assert(type->rank <= ORT_MAX_RANK);
    Onnx__TensorShapeProto *shape =
        ort_export_message(x, &onnx__tensor_shape_proto__descriptor, NULL);
    if (!shape)
        return NULL;
    shape->n_dim = (size_t)type->rank;
    shape->dim = ort_export_array(x, shape->n_dim, sizeof *shape->dim);
    for (size_t i = 0; shape->dim && i < shape->n_dim; i++)
        shape->dim[i] = dim_of(x, type->dim[i]);
    return shape;
}

static Onnx__TypeProto *export_type(ort_exporter *x, const ort_type *type);

static void set_kind(ort_exporter *x, Onnx__TypeProto *p, const ort_type *type)
{
    static const struct {
        Onnx__TypeProto__ValueCase value_case;
        const ProtobufCMessageDescriptor *type;
    } kinds[] = {
#define ROW(name, message) {ONNX__TYPE_PROTO__VALUE_##name##_TYPE, &onnx__type_proto__##message}
        [ORT_TYPE_TENSOR] = ROW(TENSOR, tensor__descriptor),
        [ORT_TYPE_SPARSE] = ROW(SPARSE_TENSOR, sparse_tensor__descriptor),
        [ORT_TYPE_SEQUENCE] = ROW(SEQUENCE, sequence__descriptor),
        [ORT_TYPE_OPTIONAL] = ROW(OPTIONAL, optional__descriptor),
        [ORT_TYPE_MAP] = ROW(MAP, map__descriptor),
        [ORT_TYPE_OPAQUE] = ROW(OPAQUE, opaque__descriptor),
#undef ROW
    };
    void *what = ort_export_message(x, kinds[type->kind].type, NULL);
    if (!what)
        return;
    p->value_case = kinds[type->kind].value_case;
    switch (type->kind) {
    case ORT_TYPE_TENSOR:
        p->tensor_type = what;
        p->tensor_type->has_elem_type = 1;
        p->tensor_type->elem_type = type->dtype;
        p->tensor_type->shape = shape_of(x, type);
        break;
    case ORT_TYPE_SPARSE:
        p->sparse_tensor_type = what;
        p->sparse_tensor_type->has_elem_type = 1;
        p->sparse_tensor_type->elem_type = type->dtype;
        p->sparse_tensor_type->shape = shape_of(x, type);
        break;
    case ORT_TYPE_SEQUENCE:
        p->sequence_type = what;
        p->sequence_type->elem_type = export_type(x, type->element);
        break;
    case ORT_TYPE_OPTIONAL:
        p->optional_type = what;
        p->optional_type->elem_type = export_type(x, type->element);
        break;
    case ORT_TYPE_MAP:
        p->map_type = what;
        p->map_type->has_key_type = 1;
        p->map_type->key_type = type->dtype;
        p->map_type->value_type = export_type(x, type->element);
        break;
    default: p->opaque_type = what; break;
    }
}

/* NULL for none, too. */
static Onnx__TypeProto *export_type(ort_exporter *x, const ort_type *type)
{
    Onnx__TypeProto *p =
        type ? ort_export_message(x, &onnx__type_proto__descriptor, NULL) : NULL;
    if (p && type->kind != ORT_TYPE_UNKNOWN)
        set_kind(x, p, type);
    return x->failed ? NULL : p;
}

Onnx__ValueInfoProto *ort_export_value_info(ort_exporter *x, const ort_graph_value *value)
{
    const Onnx__ValueInfoProto *old = value->info_proto;
    bool bare = old && old->doc_string && x->model->without_docs;
    if (old && old->name && !strcmp(old->name, value->name) && !bare)
        return (Onnx__ValueInfoProto *)(uintptr_t)old;
    Onnx__ValueInfoProto *p = ort_export_message(x, &onnx__value_info_proto__descriptor, old);
    if (!p)
        return NULL;
    p->name = ort_export_text(value->name);
    if (x->model->without_docs)
        p->doc_string = NULL;
    if (!old && value->fact.type.kind != ORT_TYPE_UNKNOWN)
        p->type = export_type(x, &value->fact.type);
    return x->failed ? NULL : p;
}

/* ---- attributes */

static bool set_attr_tensors(ort_exporter *x, Onnx__AttributeProto *p, const ort_attr *attr)
{
    bool one = attr->type == ORT_ATTR_TENSOR || attr->type == ORT_ATTR_SPARSE_TENSOR;
    size_t count = one ? 1 : attr->count;
    Onnx__TensorProto **list = ort_export_array(x, count, sizeof *list);
    for (size_t i = 0; list && i < count; i++) {
        list[i] = ort_export_tensor(x, "", one ? attr->t : &attr->tensors[i], false);
        if (!list[i])
            return false;
    }
    /* A sparse attribute made here is written dense. */
    p->type = one ? ORT_ATTR_TENSOR : ORT_ATTR_TENSORS;
    p->sparse_tensor = NULL;
    p->n_sparse_tensors = 0;
    p->t = one && list ? list[0] : NULL;
    p->tensors = one ? NULL : list;
    p->n_tensors = one ? 0 : count;
    return list != NULL;
}

static bool set_attr_types(ort_exporter *x, Onnx__AttributeProto *p, const ort_attr *attr)
{
    bool one = attr->type == ORT_ATTR_TYPE_PROTO;
    p->type_protos = one ? NULL : ort_export_array(x, attr->count, sizeof *p->type_protos);
    for (size_t i = 0; i < attr->count; i++) {
        Onnx__TypeProto *t = export_type(x, &attr->type_proto[i]);
        if (!t)
            return false;
        if (one)
            p->tp = t;
        else if (p->type_protos)
            p->type_protos[i] = t;
    }
    p->n_type_protos = one ? 0 : attr->count;
    return !x->failed;
}

static bool set_attr_value(ort_exporter *x, Onnx__AttributeProto *p, const ort_attr *attr)
{
    switch (attr->type) {
    case ORT_ATTR_FLOAT: p->has_f = 1, p->f = attr->f; break;
    case ORT_ATTR_INT: p->has_i = 1, p->i = attr->i; break;
    case ORT_ATTR_STRING: p->has_s = 1, p->s = bytes_of(&attr->s); break;
    case ORT_ATTR_FLOATS:
        p->n_floats = attr->count, p->floats = (float *)(uintptr_t)attr->floats;
        break;
    case ORT_ATTR_INTS: p->n_ints = attr->count, p->ints = (int64_t *)(uintptr_t)attr->ints; break;
    case ORT_ATTR_STRINGS:
        return set_strings(x, attr->strings, attr->count, &p->strings, &p->n_strings);
    case ORT_ATTR_TENSOR:
    case ORT_ATTR_TENSORS:
    case ORT_ATTR_SPARSE_TENSOR:
    case ORT_ATTR_SPARSE_TENSORS: return set_attr_tensors(x, p, attr);
    case ORT_ATTR_TYPE_PROTO:
    case ORT_ATTR_TYPE_PROTOS: return set_attr_types(x, p, attr);
    case ORT_ATTR_GRAPH:
    case ORT_ATTR_GRAPHS:
    case ORT_ATTR_UNDEFINED: break;
    }
    return true;
}

bool ort_export_is_external(const Onnx__AttributeProto *p)
{
    if (p->t && p->t->data_location)
        return true;
    for (size_t i = 0; i < p->n_tensors; i++)
        if (p->tensors[i]->data_location)
            return true;
    return false;
}

Onnx__AttributeProto *ort_export_attr(ort_exporter *x, const ort_attr *attr)
{
    const Onnx__AttributeProto *old = attr->proto;
    bool graphs = attr->type == ORT_ATTR_GRAPH || attr->type == ORT_ATTR_GRAPHS;
    if (old && !graphs && !ort_export_is_external(old))
        return (Onnx__AttributeProto *)(uintptr_t)old;
    Onnx__AttributeProto *p = ort_export_message(x, &onnx__attribute_proto__descriptor, old);
    if (!p)
        return NULL;
    p->name = ort_export_text(attr->name);
    p->has_type = 1;
    p->type = attr->type;
    if (attr->reference) {
        p->ref_attr_name = ort_export_text(attr->reference);
        return p;
    }
    return set_attr_value(x, p, attr) ? p : NULL;
}
