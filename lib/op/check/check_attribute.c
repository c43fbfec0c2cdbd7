/* check_attribute.c - attributes, tensors and sparse tensors of a message (check_message.h): each
 * holds one value, in the field that its type names. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "op/check/check.h"
#include "op/check/check_message.h"

/* ---- tensors */

static const struct {
    uint32_t field;
    const char *name;
} data_fields[] = {
    {ORT_WIRE_FLOAT_DATA, "float_data"}, {ORT_WIRE_INT32_DATA, "int32_data"},
    {6, "string_data"},                  {ORT_WIRE_INT64_DATA, "int64_data"},
    {ORT_WIRE_RAW_DATA, "raw_data"},     {ORT_WIRE_DOUBLE_DATA, "double_data"},
    {ORT_WIRE_UINT64_DATA, "uint64_data"},
};

/* A bit for each field that holds values, there or in a payload. */
static unsigned data_of(const ort_message_check *c, const Onnx__TensorProto *t)
{
    unsigned mask = (t->n_float_data ? 1u << ORT_WIRE_FLOAT_DATA : 0) |
                    (t->n_int32_data ? 1u << ORT_WIRE_INT32_DATA : 0) |
                    (t->n_string_data ? 1u << 6 : 0) |
                    (t->n_int64_data ? 1u << ORT_WIRE_INT64_DATA : 0) |
                    (t->has_raw_data ? 1u << ORT_WIRE_RAW_DATA : 0) |
                    (t->n_double_data ? 1u << ORT_WIRE_DOUBLE_DATA : 0) |
                    (t->n_uint64_data ? 1u << ORT_WIRE_UINT64_DATA : 0);
    for (size_t i = 0; i < t->n_payload; i++)
        if (t->payload[i] < c->model->payload_count)
            mask |= 1u << c->model->payloads[t->payload[i]].field;
    return mask;
}

/* "raw_data and float_data"; how many. */
static int name_fields(unsigned mask, char *text, size_t size)
{
    int count = 0;
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof data_fields / sizeof *data_fields; i++) {
        if (!(mask & 1u << data_fields[i].field))
            continue;
        int n = snprintf(text + used, size - used, "%s%s", count++ ? " and " : "",
                         data_fields[i].name);
        used += n > 0 && (size_t)n < size - used ? (size_t)n : 0;
    }
    return count;
}

static bool is_empty(const Onnx__TensorProto *t)
{
    for (size_t i = 0; i < t->n_dims; i++)
        if (t->dims[i] == 0)
            return true;
    return false;
}

static bool is_known_key(const char *key)
{
    return !strcmp(key, "location") || !strcmp(key, "offset") || !strcmp(key, "length") ||
           !strcmp(key, "checksum") || !strncmp(key, "prepacked", 9);
}

static void check_external(ort_message_check *c, const Onnx__TensorProto *t, const char *place)
{
    bool located = false;
    ort_hashmap seen = {0};
    for (size_t i = 0; i < t->n_external_data; i++) {
        const Onnx__StringStringEntryProto *e = t->external_data[i];
        if (!e->key || !e->value)
            ort_findings_add(c->findings, ORT_FINDING_ERROR,
                             "%stensor '%s': external data entry %zu has no %s", place,
                             ort_check_text(t->name), i, e->key ? "value" : "key");
        else if (!is_known_key(e->key))
            ort_findings_add(c->findings, ORT_FINDING_ERROR,
                             "%stensor '%s': external data has the unknown key '%.60s' (location, "
                             "offset, length and checksum are known)",
                             place, ort_check_text(t->name), e->key);
        if (e->key && !ort_check_first(c, &seen, e->key))
            ort_findings_add(c->findings,
                             strcmp(e->key, "location") ? ORT_FINDING_WARNING : ORT_FINDING_ERROR,
                             "%stensor '%s': external data has the key '%.60s' twice", place,
                             ort_check_text(t->name), e->key);
        if (e->key && e->value && !strcmp(e->key, "length") && is_empty(t) &&
            strcmp(e->value, "0"))
            ort_findings_add(c->findings, ORT_FINDING_ERROR,
                             "%stensor '%s' has no elements, but external data of length %.20s",
                             place, ort_check_text(t->name), e->value);
        located = located || (e->key && !strcmp(e->key, "location"));
    }
    ort_hashmap_release(&seen);
    if (!located) /* with elements it wasn't even read */
        ort_findings_add(c->findings, ORT_FINDING_ERROR,
                         "%stensor '%s': external data has no location", place,
                         ort_check_text(t->name));
}

void ort_check_tensor(ort_message_check *c, const Onnx__TensorProto *t, const char *place)
{
    char fields[160];
    int count = name_fields(data_of(c, t), fields, sizeof fields);
    const char *name = ort_check_text(t->name);
    if (t->data_location == 1) {
        check_external(c, t, place);
        if (count)
            ort_findings_add(c->findings, ORT_FINDING_ERROR,
                             "%stensor '%s' lies in external data, but holds %s as well: that is "
                             "never read, take it out",
                             place, name, fields);
    } else if (count > 1) {
        ort_findings_add(c->findings, ORT_FINDING_ERROR,
                         "%stensor '%s' holds %s: which of them is its value isn't said; keep one",
                         place, name, fields);
    } else if (count && is_empty(t) && !t->has_raw_data) {
        ort_findings_add(c->findings, ORT_FINDING_WARNING,
                         "%stensor '%s' has no elements, but a field %s", place, name, fields);
    }
}

/* The indices of a sparse tensor in turn. They are int64: import has seen to it. */
typedef struct index_walk {
    const ort_message_check *c;
    const Onnx__TensorProto *t;
    size_t next, piece, at;
} index_walk;

static bool raw_index(index_walk *w, const uint8_t *bytes, size_t count, int64_t *value)
{
    if (w->at + sizeof *value > count)
        return false;
    memcpy(value, bytes + w->at, sizeof *value);
    w->at += sizeof *value;
    return true;
}

static bool next_index(index_walk *w, int64_t *value)
{
    const Onnx__TensorProto *t = w->t;
    uint64_t number;
    if (w->next < t->n_int64_data) {
        *value = t->int64_data[w->next++];
        return true;
    }
    for (; w->piece < t->n_payload; w->piece++, w->at = 0) {
        uint32_t index = t->payload[w->piece];
        if (index >= w->c->model->payload_count)
            continue;
        const ort_wire_payload *p = &w->c->model->payloads[index];
        if (p->field == ORT_WIRE_RAW_DATA && raw_index(w, p->bytes, p->count, value))
            return true;
        if (p->field == ORT_WIRE_INT64_DATA && w->at < p->count &&
            ort_wire_varint(p->bytes, p->count, &w->at, &number)) {
            *value = (int64_t)number;
            return true;
        }
    }
    return t->has_raw_data && raw_index(w, t->raw_data.data, t->raw_data.len, value);
}

/* Places one behind the other, each once. */
static void check_order(ort_message_check *c, const Onnx__SparseTensorProto *s, const char *place)
{
    size_t width = s->indices->n_dims == 2 ? s->n_dims : 1;
    int64_t last[ORT_MAX_RANK], now[ORT_MAX_RANK];
    index_walk walk = {.c = c, .t = s->indices};
    for (size_t i = 0; width && width <= ORT_MAX_RANK; i++) {
        int order = 0;
        for (size_t d = 0; d < width; d++) {
            if (!next_index(&walk, &now[d]))
                return;
            if (i && !order)
                order = now[d] > last[d] ? 1 : now[d] < last[d] ? -1 : 0;
        }
        if (i && order <= 0) {
            ort_findings_add(c->findings, ORT_FINDING_WARNING,
                             "%ssparse tensor '%s': index %zu doesn't come behind the one before "
                             "it: they are sorted, each is there once",
                             place, ort_check_text(s->values->name), i);
            return;
        }
        memcpy(last, now, sizeof last);
    }
}

void ort_check_sparse(ort_message_check *c, const Onnx__SparseTensorProto *sparse,
                      const char *place)
{
    if (!sparse->values || !sparse->indices)
        return; /* it could not be read */
    ort_check_tensor(c, sparse->values, place);
    ort_check_tensor(c, sparse->indices, place);
    if (!sparse->n_dims)
        ort_findings_add(c->findings, ORT_FINDING_WARNING,
                         "%ssparse tensor '%s' has no dims: it needs one at least", place,
                         ort_check_text(sparse->values->name));
    for (size_t i = 0; i < sparse->n_dims; i++)
        if (sparse->dims[i] == 0) /* below zero it wasn't even read */
            ort_findings_add(c->findings, ORT_FINDING_WARNING,
                             "%ssparse tensor '%s': dimension %zu is 0: each must be at least 1",
                             place, ort_check_text(sparse->values->name), i);
    check_order(c, sparse, place);
}

/* ---- attributes */

static size_t in_payloads(const ort_message_check *c, const Onnx__AttributeProto *a,
                          uint32_t field)
{
    size_t elements = 0;
    for (size_t i = 0; i < a->n_payload; i++)
        if (a->payload[i] < c->model->payload_count &&
            c->model->payloads[a->payload[i]].field == field)
            elements += c->model->payloads[a->payload[i]].elements;
    return elements;
}

/* A bit for each type whose field holds a value; an empty list is none. */
static unsigned values_of(const ort_message_check *c, const Onnx__AttributeProto *a)
{
    const bool there[] = {
        [ORT_ATTR_FLOAT] = a->has_f,
        [ORT_ATTR_INT] = a->has_i,
        [ORT_ATTR_STRING] = a->has_s,
        [ORT_ATTR_TENSOR] = a->t,
        [ORT_ATTR_GRAPH] = a->g,
        [ORT_ATTR_FLOATS] = a->n_floats || in_payloads(c, a, ORT_WIRE_FLOATS),
        [ORT_ATTR_INTS] = a->n_ints || in_payloads(c, a, ORT_WIRE_INTS),
        [ORT_ATTR_STRINGS] = a->n_strings || in_payloads(c, a, ORT_WIRE_STRINGS),
        [ORT_ATTR_TENSORS] = a->n_tensors,
        [ORT_ATTR_GRAPHS] = a->n_graphs,
        [ORT_ATTR_SPARSE_TENSOR] = a->sparse_tensor,
        [ORT_ATTR_SPARSE_TENSORS] = a->n_sparse_tensors,
        [ORT_ATTR_TYPE_PROTO] = a->tp,
        [ORT_ATTR_TYPE_PROTOS] = a->n_type_protos,
    };
    unsigned mask = 0;
    for (unsigned i = 0; i < sizeof there / sizeof *there; i++)
        mask |= there[i] ? 1u << i : 0;
    return mask;
}

static void check_value(ort_message_check *c, const Onnx__AttributeProto *a, const char *place)
{
    unsigned mask = values_of(c, a);
    ort_attr_type first = 0;
    const char *name = ort_check_text(a->name);
    bool typed = a->has_type && a->type >= 0 && a->type <= ORT_ATTR_TYPE_PROTOS;
    for (unsigned i = ORT_ATTR_TYPE_PROTOS; i > 0; i--)
        first = mask & 1u << i ? (ort_attr_type)i : first;
    if (mask & (mask - 1))
        ort_findings_add(c->findings, ORT_FINDING_ERROR,
                         "%sattribute '%s' holds several values (of type %s among others): which "
                         "one counts isn't said; keep one",
                         place, name, ort_check_type_name(first));
    else if (typed && mask && !(mask & 1u << a->type))
        ort_findings_add(c->findings, ORT_FINDING_ERROR,
                         "%sattribute '%s' is marked %s, but holds a value of type %s", place,
                         name, ort_check_type_name((ort_attr_type)a->type),
                         ort_check_type_name(first));
    if (typed && !mask && !(a->ref_attr_name && *a->ref_attr_name) &&
        (a->type == ORT_ATTR_FLOAT || a->type == ORT_ATTR_INT))
        ort_findings_add(c->findings, ORT_FINDING_WARNING,
                         "%sattribute '%s' holds no value: read as 0", place, name);
    if (a->ref_attr_name && *a->ref_attr_name && mask)
        ort_findings_add(c->findings, ORT_FINDING_ERROR,
                         "%sattribute '%s' refers to '%s', but holds a value as well", place, name,
                         a->ref_attr_name);
    /* Before IR 2 there was no type. */
    if (!typed && c->model->ir_version >= 2)
        ort_findings_add(c->findings, ORT_FINDING_ERROR,
                         "%sattribute '%s' has no type (its value says: %s)", place, name,
                         ort_check_type_name(first));
}

/* 2 is neither: what isn't 0 is true here. A ceil_mode of 2 is so in onnxruntime, while onnx's
 * inference asks for 1; a storage_order of 2 onnxruntime refuses. */
static void check_flag(ort_message_check *c, const Onnx__AttributeProto *a, const char *place)
{
    const char *name = ort_check_text(a->name);
    if (a->has_i && a->i != 0 && a->i != 1 &&
        (!strcmp(name, "ceil_mode") || !strcmp(name, "storage_order")))
        ort_findings_add(c->findings, ORT_FINDING_WARNING,
                         "%sattribute '%s' is %lld: read as 1, which not every runtime does", place,
                         a->name, (long long)a->i);
}

/* A text of an operator that goes on behind a NUL: some runtimes compare all of it. auto_pad no
 * runtime but this one takes then: it decides on shapes. What a function says without a node is a
 * default, that calls may replace. */
static void check_text(ort_message_check *c, const Onnx__AttributeProto *a, const char *place)
{
    bool cut = a->has_s && a->s.len && memchr(a->s.data, '\0', a->s.len);
    for (size_t i = 0; i < a->n_strings && !cut; i++)
        cut = a->strings[i].len && memchr(a->strings[i].data, '\0', a->strings[i].len);
    if (cut)
        ort_findings_add(c->findings,
                         strcmp(ort_check_text(a->name), "auto_pad") || !c->node
                             ? ORT_FINDING_WARNING
                             : ORT_FINDING_ERROR,
                         "%sattribute '%s' holds a NUL byte, where its text ends for some runtimes "
                         "and goes on for others",
                         place, ort_check_text(a->name));
}

static void check_bodies(ort_message_check *c, const Onnx__AttributeProto *a)
{
    char inner[420];
    snprintf(inner, sizeof inner, "in a body of %s: ", c->node ? c->node : "a function");
    if (a->g)
        ort_check_message_graph(c, a->g, inner);
    for (size_t i = 0; i < a->n_graphs; i++)
        ort_check_message_graph(c, a->graphs[i], inner);
}

void ort_check_attribute(ort_message_check *c, const Onnx__AttributeProto *a, const char *place)
{
    char inner[420];
    if (!*ort_check_text(a->name))
        ort_findings_add(c->findings, ORT_FINDING_ERROR, "%san attribute has no name", place);
    check_value(c, a, place);
    check_text(c, a, place);
    check_flag(c, a, place);
    snprintf(inner, sizeof inner, "%sattribute '%.100s': ", place, ort_check_text(a->name));
    if (a->t)
        ort_check_tensor(c, a->t, inner);
    for (size_t i = 0; i < a->n_tensors; i++)
        ort_check_tensor(c, a->tensors[i], inner);
    if (a->sparse_tensor)
        ort_check_sparse(c, a->sparse_tensor, inner);
    for (size_t i = 0; i < a->n_sparse_tensors; i++)
        ort_check_sparse(c, a->sparse_tensors[i], inner);
    if (a->tp)
        ort_check_type(c, a->tp, true, inner);
    check_bodies(c, a);
}
