/* write_parts.c - what stands in a text without being a node: names, attributes, numbers, lists. */
#include "emit/write_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

/* ---- names */

const ort_bound *ort_write_bound(const ort_writer *w, const char *name, int length)
{
    return w->match ? ort_match_bound(w->match, name, length) : NULL;
}

/* Of what was found, or of a model that is built: there names may stand for nothing. */
static bool may_lack(const ort_writer *w)
{
    return w->match ? w->match->text != w->text : w->source != NULL;
}

/* What $name stands for. */
static ort_bound called(const ort_writer *w, const char *name, int length)
{
    const ort_bound *b = ort_write_bound(w, name, length);
    return b             ? *b
           : may_lack(w) ? (ort_bound){.value = ORT_ID_NONE}
                         : ort_emit_attribute(w->e, name, length);
}

static double number_called(const ort_writer *w, const char *name, int length)
{
    ort_bound b = called(w, name, length);
    assert(b.is_number);
    return b.number;
}

const ort_node *ort_write_node(const ort_writer *w, const char *name, int length)
{
    if (length == 1 && *name == '_')
        return w->e->at;
    const ort_bound *b = ort_write_bound(w, name, length);
    assert(b && b->node);
    return b->node;
}

/* ---- attributes */

const char *ort_write_copied(const ort_writer *w, const char *text, int length)
{
    char *copy = ort_arena_alloc_aligned(&w->e->graph->model->arena, (size_t)length + 1, 1, 0);
    if (!copy) {
        ort_emit_fail_memory(w->e);
        return "";
    }
    memcpy(copy, text, (size_t)length);
    copy[length] = '\0';
    return copy;
}

/* "0,2," into `list`; how many. */
static int integers_of(const char *text, const char *end, int64_t *list)
{
    int count = 0;
    while (text < end && count < ORT_MAX_RANK) {
        char *stop;
        list[count++] = strtoll(text, &stop, 10);
        text = stop + (*stop == ',');
    }
    return count;
}

/* Without a row any kind will do: a node of it is refused. */
static ort_attr_type kind_of(const ort_op *op, const char *name)
{
    const char *fallback;
    ort_attr_type type = op ? ort_schema_attr(op, name, &fallback) : ORT_ATTR_INT;
    assert(type != ORT_ATTR_UNDEFINED && "an attribute of the operator");
    return type;
}

bool ort_write_has_attr(const ort_writer *w, const ort_text_attr *a)
{
    const char *at = a->value, *end = a->value + a->value_length;
    if ((*at != '$' && *at != '&') || !may_lack(w))
        return true;
    for (int length; at < end; at += length + 1) {
        length = (int)strcspn(++at, ", \n)");
        if (ort_write_bound(w, at, length))
            return true;
    }
    return false;
}

/* "0.5,2", "$a,$b": those that stand for something. */
static void set_floats(ort_writer *w, ort_attr *attr, const ort_text_attr *a)
{
    const char *at = a->value, *end = a->value + a->value_length;
    ort_arena *arena = &w->e->graph->model->arena;
    float *list = ort_arena_array(arena, (size_t)a->value_length, sizeof *list);
    if (!list)
        ort_emit_fail_memory(w->e);
    for (int length; list && at < end; at += length + 1) {
        length = (int)strcspn(at, ", \n)");
        ort_bound b = {.is_number = *at != '$', .number = ort_parse_double(at, NULL)};
        if (*at == '$')
            b = called(w, at + 1, length - 1);
        if (b.is_number)
            list[attr->count++] = (float)b.number;
    }
    attr->floats = list;
}

ort_attr ort_write_attr(ort_writer *w, const ort_op *op, const ort_text_attr *a, int64_t *list)
{
    ort_attr attr = {.name = ort_write_copied(w, a->name, a->name_length)};
    bool named = *a->value == '$';
    if (w->e->status != ORT_OK)
        return attr;
    ort_bound b = named ? called(w, a->value + 1, a->value_length - 1) : (ort_bound){0};
    attr.type = kind_of(op, attr.name);
    assert(!op || !named || attr.type == ORT_ATTR_FLOATS ||
           (attr.type == ORT_ATTR_INTS ? b.list != NULL : b.is_number));
    switch (attr.type) {
    case ORT_ATTR_FLOAT:
        attr.f = (float)(named ? b.number : ort_parse_double(a->value, NULL));
        break;
    case ORT_ATTR_FLOATS: set_floats(w, &attr, a); break;
    case ORT_ATTR_STRING: {
        const char *text = *a->value == '&'
                               ? ort_write_node(w, a->value + 1, a->value_length - 1)->op_type
                               : ort_write_copied(w, a->value, a->value_length);
        attr.s = (ort_string){(char *)(uintptr_t)text, strlen(text)};
        break;
    }
    case ORT_ATTR_INTS:
        attr.ints = named ? b.list : list;
        attr.count = (size_t)(named ? b.count
                                    : integers_of(a->value, a->value + a->value_length, list));
        break;
    default:
        assert(attr.type == ORT_ATTR_INT);
        attr.i = named ? (int64_t)b.number : strtoll(a->value, NULL, 10);
    }
    return attr;
}

/* ---- numbers and lists */

ort_dtype ort_write_number_type(const ort_writer *w, const ort_op *op, const ort_id *inputs,
                                int count, int slot)
{
    ort_schema schema;
    ort_dtype first = ORT_DTYPE_UNDEFINED;
    if (!op || ort_schema_parse(op, &schema, NULL) != ORT_OK)
        return first;
    const ort_param *own = ort_schema_param(schema.inputs, schema.input_count, slot);
    for (int i = 0; own && i < count; i++) {
        const ort_param *other = ort_schema_param(schema.inputs, schema.input_count, i);
        if (inputs[i] == ORT_ID_NONE || !other)
            continue;
        ort_dtype dtype = ort_emit_type(w->e, inputs[i])->dtype;
        if (!strcmp(own->type, other->type))
            return dtype;
        if (first == ORT_DTYPE_UNDEFINED && dtype != ORT_DTYPE_BOOL && /* that of a condition */
            ort_schema_is_variable(op, other->type))
            first = dtype;
    }
    return first;
}

/* $n, what stands for it. */
static ort_bound term_bound(const ort_writer *w, const ort_term *t)
{
    const ort_text_name *name = &w->text->names.data[t->name];
    bool asked = w->source && w->source->unbound && !w->match;
    return t->kind == '$' && !asked ? called(w, name->text, name->length) : (ort_bound){0};
}

bool ort_write_is_number(const ort_writer *w, const ort_term *t)
{
    return t->kind == '0' || (t->kind == '$' && term_bound(w, t).is_number);
}

bool ort_write_is_list(const ort_writer *w, const ort_term *t)
{
    return t->kind == '[' || (t->kind == '$' && term_bound(w, t).list);
}

double ort_write_term_number(const ort_writer *w, const ort_term *t)
{
    const ort_text_name *name = t->name < 0 ? NULL : &w->text->names.data[t->name];
    return name ? number_called(w, name->text, name->length) : t->number;
}

ort_id ort_write_number(ort_writer *w, const ort_term *t, ort_dtype dtype)
{
    if (dtype == ORT_DTYPE_UNDEFINED)
        dtype = ort_emit_type(w->e, w->like)->dtype;
    return ort_emit_number_of(w->e, dtype, ort_write_term_number(w, t));
}

const int64_t *ort_write_list(const ort_writer *w, const ort_term *t, int64_t *list, int *count)
{
    const char *at = t->text, *end = t->text + t->length;
    *count = 0;
    if (t->kind == '$') {
        ort_bound b = term_bound(w, t);
        *count = b.count;
        return b.list;
    }
    for (at += strspn(at, " "); at < end; at += strspn(at, " ")) {
        int length = (int)strcspn(at, " ]");
        assert(*count < ORT_WRITE_INPUTS);
        list[(*count)++] = *at == '$' ? (int64_t)number_called(w, at + 1, length - 1)
                                      : strtoll(at, NULL, 10);
        at += length;
    }
    return list;
}

bool ort_write_attribute_of(const ort_writer *w, const ort_term *t, const ort_op *op, int slot,
                            ort_attr *attr, int64_t *list)
{
    const ort_term *child = ort_text_child(w->text, t, slot);
    const ort_registry *registry = w->e->graph->model->registry;
    char name[ORT_WRITE_NAME];
    if (!op || (!ort_write_is_list(w, child) && !ort_write_is_number(w, child)) ||
        !ort_text_attribute_of(registry, op, slot, name))
        return false;
    *attr = (ort_attr){.name = ort_write_copied(w, name, (int)strlen(name))};
    attr->type = kind_of(op, name);
    if (attr->type == ORT_ATTR_INTS) {
        int count;
        attr->ints = ort_write_list(w, child, list, &count);
        attr->count = (size_t)count;
    } else if (attr->type == ORT_ATTR_INT) {
        attr->i = (int64_t)ort_write_term_number(w, child);
    } else {
        attr->f = (float)ort_write_term_number(w, child);
    }
    return true;
}
