/* check_attribute.c - attributes of a message (check_message.h), but for the graphs in them: each
 * holds one value, in the field that its type names. */
#include <stdio.h>
#include <string.h>

#include "op/check/check.h"
#include "op/check/check_message.h"

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
}
