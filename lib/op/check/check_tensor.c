/* check_tensor.c - tensors and sparse tensors of a message (check_message.h): data lies in one
 * field, indices in order. */
#include <stdio.h>
#include <string.h>

#include "op/check/check_message.h"

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
