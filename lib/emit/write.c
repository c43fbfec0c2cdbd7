/* write.c - texts into nodes (write.h), inputs before what reads them. */
#include "emit/write.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"

enum { MAX_INPUTS = 32, MAX_ATTRS = 12, NAME_BYTES = 64 };

static ort_id write_term(ort_writer *w, short index);

/* ---- operators */

typedef struct operator {
    const char *domain;
    char name[NAME_BYTES];
} operator;

/* The i-th of "A|ms.B". */
static operator operator_of(const char *text, int length, int i)
{
    operator op = {.domain = ONNX};
    const char *end = text + length, *stop = text;
    for (; (stop = memchr(text, '|', (size_t)(end - text))) && i > 0; i--)
        text = stop + 1;
    stop = stop ? stop : end;
    if (!strncmp(text, "ms.", 3)) {
        op.domain = MS;
        text += 3;
    }
    assert(stop - text < NAME_BYTES);
    memcpy(op.name, text, (size_t)(stop - text));
    return op;
}

static int operator_count(const ort_term *t)
{
    int count = 1;
    for (int i = 0; i < t->length; i++)
        count += t->text[i] == '|';
    return count;
}

static int choose(const ort_writer *w, const ort_term *t, int count)
{
    return count > 1 && w->source && w->source->alternative
               ? w->source->alternative(w->source->arg, t, count)
               : 0;
}

/* ---- names */

static const ort_bound *bound_of(const ort_writer *w, const char *name, int length)
{
    return w->match ? ort_match_bound(w->match, name, length) : NULL;
}

/* What $name stands for. */
static ort_bound called(const ort_writer *w, const char *name, int length)
{
    const ort_bound *b = bound_of(w, name, length);
    return b ? *b : ort_emit_attribute(w->e, name, length);
}

static double number_called(const ort_writer *w, const char *name, int length)
{
    ort_bound b = called(w, name, length);
    assert(b.is_number);
    return b.number;
}

/* ---- attributes */

static const char *copied(const ort_writer *w, const char *text, int length)
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

/* `list` of ORT_MAX_RANK elements holds what the attribute points to. */
static ort_attr attr_of(ort_writer *w, const ort_op *op, const ort_text_attr *a, int64_t *list)
{
    ort_attr attr = {.name = copied(w, a->name, a->name_length)};
    bool named = *a->value == '$';
    if (w->e->status != ORT_OK)
        return attr;
    ort_bound b = named ? called(w, a->value + 1, a->value_length - 1) : (ort_bound){0};
    attr.type = kind_of(op, attr.name);
    assert(!op || !named || (attr.type == ORT_ATTR_INTS ? b.list != NULL : b.is_number));
    switch (attr.type) {
    case ORT_ATTR_FLOAT:
        attr.f = (float)(named ? b.number : ort_parse_double(a->value, NULL));
        break;
    case ORT_ATTR_STRING:
        attr.s.ptr = copied(w, a->value, a->value_length);
        attr.s.length = (size_t)a->value_length;
        break;
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

/* ---- inputs */

/* The element type that a number has as input `slot`: ORT_DTYPE_UNDEFINED when the others don't
 * say. */
static ort_dtype number_type(const ort_writer *w, const ort_op *op, const ort_id *inputs,
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

static bool is_number(const ort_writer *w, const ort_term *t)
{
    return t->kind == '0' || (t->kind == '$' && term_bound(w, t).is_number);
}

static bool is_list(const ort_writer *w, const ort_term *t)
{
    return t->kind == '[' || (t->kind == '$' && term_bound(w, t).list);
}

static double term_number(const ort_writer *w, const ort_term *t)
{
    const ort_text_name *name = t->name < 0 ? NULL : &w->text->names.data[t->name];
    return name ? number_called(w, name->text, name->length) : t->number;
}

static ort_id write_number(ort_writer *w, const ort_term *t, ort_dtype dtype)
{
    if (dtype == ORT_DTYPE_UNDEFINED)
        dtype = ort_emit_type(w->e, w->like)->dtype;
    return ort_emit_number_of(w->e, dtype, term_number(w, t));
}

/* The numbers of "[0 $n -1]", which go to `list` of MAX_INPUTS, or of a list that has a name. */
static const int64_t *list_of(const ort_writer *w, const ort_term *t, int64_t *list, int *count)
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
        assert(*count < MAX_INPUTS);
        list[(*count)++] = *at == '$' ? (int64_t)number_called(w, at + 1, length - 1)
                                      : strtoll(at, NULL, 10);
        at += length;
    }
    return list;
}

/* A list or number that this version of the operator has as an attribute, as axes and bounds were:
 * that attribute. False: it is an input. */
static bool is_attribute(const ort_writer *w, const ort_term *t, const ort_op *op, int slot,
                         ort_attr *attr, int64_t *list)
{
    const ort_term *child = ort_text_child(w->text, t, slot);
    const ort_registry *registry = w->e->graph->model->registry;
    char name[NAME_BYTES];
    if (!op || (!is_list(w, child) && !is_number(w, child)) ||
        !ort_text_attribute_of(registry, op, slot, name))
        return false;
    *attr = (ort_attr){.name = copied(w, name, (int)strlen(name))};
    attr->type = kind_of(op, name);
    if (attr->type == ORT_ATTR_INTS) {
        int count;
        attr->ints = list_of(w, child, list, &count);
        attr->count = (size_t)count;
    } else if (attr->type == ORT_ATTR_INT) {
        attr->i = (int64_t)term_number(w, child);
    } else {
        attr->f = (float)term_number(w, child);
    }
    return true;
}

/* Values first: they tell the types of numbers. What is no input of this version goes into `set`,
 * with `lists`; how many. */
static int write_inputs(ort_writer *w, const ort_term *t, const ort_op *op, ort_id *inputs,
                        ort_attr *set, int64_t (*lists)[MAX_INPUTS])
{
    int attrs = 0;
    for (int i = 0; i < t->count; i++) {
        short child = w->text->terms_of.data[t->first + i];
        inputs[i] = ORT_ID_NONE;
        if (is_attribute(w, t, op, i, &set[attrs], lists[attrs]))
            attrs++;
        else if (!is_number(w, &w->text->terms.data[child]))
            inputs[i] = write_term(w, child);
    }
    for (int i = 0; i < t->count && !attrs; i++) {
        const ort_term *child = ort_text_child(w->text, t, i);
        if (is_number(w, child))
            inputs[i] = write_number(w, child, number_type(w, op, inputs, t->count, i));
    }
    return attrs;
}

/* ---- nodes */

static const ort_node *node_called(const ort_writer *w, short name)
{
    const ort_text_name *n = &w->text->names.data[name];
    if (n->length == 1 && *n->text == '_')
        return w->e->at;
    const ort_bound *b = bound_of(w, n->text, n->length);
    assert(b && b->node);
    return b->node;
}

/* The first version that may be written: what the text asks for, else the operator's first. */
static int since_of(const ort_emit *e, const ort_term *t, const ort_node_spec *spec)
{
    return t->since ? t->since
                    : ort_registry_oldest(e->graph->model->registry, spec->domain, spec->op_type);
}

static void write_node(ort_writer *w, const ort_term *t, ort_node_spec *spec, ort_id *outputs,
                       int output_count)
{
    ort_id inputs[MAX_INPUTS];
    ort_attr set[MAX_ATTRS];
    int64_t lists[MAX_ATTRS][MAX_INPUTS];
    operator named = operator_of(t->text, t->length, choose(w, t, operator_count(t)));
    spec->domain = named.domain;
    spec->op_type = *named.name == '_' ? w->e->at->op_type
                                       : copied(w, named.name, (int)strlen(named.name));
    int opset = ort_emit_opset(w->e, named.domain, spec->op_type, since_of(w->e, t, spec));
    const ort_op *op = ort_registry_find(w->e->graph->model->registry, named.domain,
                                         spec->op_type, opset);
    spec->opset = w->e->opset_of ? opset : 0;
    int sets = write_inputs(w, t, op, inputs, set, lists);
    if (w->source && w->source->attributes)
        sets += w->source->attributes(w->source->arg, spec->op_type, set + sets, MAX_ATTRS - sets);
    assert(sets + t->attr_count <= MAX_ATTRS);
    for (int i = 0; i < t->attr_count; i++, sets++)
        set[sets] = attr_of(w, op, &w->text->attrs.data[t->first_attr + i], lists[sets]);
    spec->inputs = inputs;
    spec->input_count = t->count;
    while (spec->input_count && inputs[spec->input_count - 1] == ORT_ID_NONE)
        spec->input_count--;
    if (t->like >= 0) {
        spec->attrs = node_called(w, t->like)->attrs;
        spec->attr_count = node_called(w, t->like)->attr_count;
    }
    spec->set = set;
    spec->set_count = sets;
    ort_emit_spec(w->e, spec, outputs, output_count);
}

/* ---- what isn't always a node */

static bool is_called(const ort_term *t, const char *name)
{
    return t->length == (int)strlen(name) && !memcmp(t->text, name, (size_t)t->length);
}

/* "(Dims x)", "(Dims x 2 $n)" */
static ort_id write_dims(ort_writer *w, const ort_term *t)
{
    ort_id x = write_term(w, w->text->terms_of.data[t->first]);
    if (t->count == 1)
        return ort_emit_shape(w->e, x);
    return ort_emit_dims(w->e, x, (int)term_number(w, ort_text_child(w->text, t, 1)),
                         (int)term_number(w, ort_text_child(w->text, t, 2)));
}

/* A node of two operands, one of which is absent, is the other one. */
static bool has_absent_operand(ort_writer *w, const ort_term *t, ort_id *other)
{
    ort_id operand[2];
    for (int i = 0; i < 2 && t->commutative; i++) {
        short child = w->text->terms_of.data[t->first + i];
        if (is_number(w, &w->text->terms.data[child]))
            return false;
        operand[i] = write_term(w, child);
    }
    if (!t->commutative || (operand[0] != ORT_ID_NONE && operand[1] != ORT_ID_NONE))
        return false;
    *other = operand[operand[0] == ORT_ID_NONE];
    return true;
}

/* A word, or an operand alone: its value in *value. False: a node as any other. */
static bool write_word(ort_writer *w, const ort_term *t, ort_id *value)
{
    const ort_word *word = w->words;
    while (word && word->name && !is_called(t, word->name))
        word++;
    if (!word)
        return false;
    if (!word->name && !is_called(t, "Dims"))
        return has_absent_operand(w, t, value);
    if (!word->name) {
        *value = write_dims(w, t);
        return true;
    }
    const ort_term *first = ort_text_child(w->text, t, 0);
    ort_id like = write_term(w, w->text->terms_of.data[t->first + 1]);
    ort_id own = is_number(w, first) ? write_number(w, first, ort_emit_type(w->e, like)->dtype)
                                     : write_term(w, w->text->terms_of.data[t->first]);
    *value = w->e->status == ORT_OK ? word->emit(w->e, own, like) : ORT_ID_NONE;
    return true;
}

/* ---- values */

/* The term that defines a name: a node, or a named form. */
static int definition_of(const ort_writer *w, short name)
{
    for (size_t i = 0; i < w->text->terms.count; i++) {
        const ort_term *t = &w->text->terms.data[i];
        if (t->name == name && (t->kind == '(' || t->kind == '@'))
            return (int)i;
    }
    return -1;
}

/* The value that a statement of the text gave a name: its place follows those of the terms. */
static ort_id *stated(const ort_writer *w, short name)
{
    return &w->written[w->text->terms.count + (size_t)name];
}

static ort_id write_value(ort_writer *w, const ort_term *t)
{
    const ort_text_name *name = t->name < 0 ? NULL : &w->text->names.data[t->name];
    if (name && *stated(w, t->name) != ORT_ID_NONE)
        return *stated(w, t->name);
    int definition = name ? definition_of(w, t->name) : -1;
    if (definition >= 0)
        return write_term(w, (short)definition);
    const ort_bound *b = name ? bound_of(w, name->text, name->length) : NULL;
    if (b)
        return b->value;
    if (!w->source || !w->source->unbound)
        return ORT_ID_NONE;
    ort_id id = w->source->unbound(w->source->arg, t, name);
    if (name)
        *stated(w, t->name) = id;
    return id;
}

static ort_id write_list(ort_writer *w, const ort_term *t)
{
    int64_t own[MAX_INPUTS];
    int count;
    const int64_t *list = list_of(w, t, own, &count);
    return ort_emit_ints(w->e, list, count);
}

/* A value of this name, where names are kept. */
static ort_id add_called(ort_writer *w, short name)
{
    const ort_text_name *n = &w->text->names.data[name];
    ort_id id = ort_graph_add_value(w->e->graph, copied(w, n->text, n->length));
    if (id == ORT_ID_NONE)
        ort_emit_fail_memory(w->e);
    return id;
}

static ort_id write_node_of(ort_writer *w, const ort_term *t, ort_id *own)
{
    ort_node_spec spec = {0};
    if (w->source && t->name >= 0) {
        *own = add_called(w, t->name);
        spec.outputs = own;
        spec.output_count = 1;
        write_node(w, t, &spec, NULL, 0);
    } else {
        write_node(w, t, &spec, own, 1);
    }
    return *own;
}

static ort_id write_term(ort_writer *w, short index)
{
    const ort_term *t = &w->text->terms.data[index];
    ort_id *own = &w->written[index];
    if (w->e->status != ORT_OK || *own != ORT_ID_NONE)
        return *own;
    if (t->name >= 0 && *stated(w, t->name) != ORT_ID_NONE)
        return *stated(w, t->name);
    switch (t->kind) {
    case '-': return ORT_ID_NONE;
    case '0': return write_number(w, t, ORT_DTYPE_UNDEFINED);
    case 'i': return ort_emit_int(w->e, (int64_t)t->number);
    case '[': return write_list(w, t);
    case '$':
        return is_number(w, t) ? write_number(w, t, ORT_DTYPE_UNDEFINED)
               : is_list(w, t) ? write_list(w, t)
                               : write_value(w, t);
    case '(': return write_word(w, t, own) ? *own : write_node_of(w, t, own);
    case '@':
        return *own = write_term(w, w->text->terms_of.data[t->first + choose(w, t, t->count)]);
    default: return *own = write_value(w, t);
    }
}

/* "a,b = (Op ...)": its outputs get names. */
static ort_id write_statement(ort_writer *w, const ort_statement *s)
{
    ort_id outputs[MAX_INPUTS] = {ORT_ID_NONE};
    ort_node_spec spec = {0};
    if (!s->count)
        return write_term(w, s->term);
    const ort_term *t = &w->text->terms.data[s->term];
    if (w->source) {
        for (int i = 0; i < s->count; i++)
            outputs[i] = add_called(w, w->text->terms_of.data[s->first + i]);
        spec.outputs = outputs;
        spec.output_count = s->count;
    }
    if (t->kind == '(' && (w->source || s->count > 1))
        write_node(w, t, &spec, w->source ? NULL : outputs, w->source ? 0 : s->count);
    else
        outputs[0] = write_term(w, s->term);
    for (int i = 0; i < s->count; i++)
        *stated(w, w->text->terms_of.data[s->first + i]) = outputs[i];
    return outputs[0];
}

/* The node that stands for the whole: it has the name, origin and outputs that are given. */
static ort_id write_root(ort_writer *w, short index)
{
    static const char identity[] = "Identity";
    const ort_term *t = &w->text->terms.data[index];
    ort_node_spec spec = {.name = w->name, .origin = w->origin, .outputs = w->outputs,
                          .output_count = w->output_count};
    if (t->kind == '(') {
        write_node(w, t, &spec, NULL, 0);
    } else {
        ort_id value = write_term(w, index);
        spec.domain = ONNX;
        spec.op_type = identity;
        spec.opset = w->e->opset_of ? ort_emit_opset(w->e, ONNX, identity, 1) : 0;
        spec.inputs = &value;
        spec.input_count = 1;
        ort_emit_spec(w->e, &spec, NULL, 0);
    }
    return w->outputs[0];
}

ort_id ort_write(ort_writer *w, const ort_choice *choice)
{
    size_t places = w->text->terms.count + w->text->names.count;
    ort_id result = ORT_ID_NONE;
    w->written = malloc(places * sizeof *w->written + 1);
    if (!w->written) {
        ort_emit_fail_memory(w->e);
        return result;
    }
    for (size_t i = 0; i < places; i++)
        w->written[i] = ORT_ID_NONE;
    for (int i = 0; i < choice->count && w->e->status == ORT_OK; i++) {
        const ort_statement *s = &w->text->statements.data[choice->first + i];
        bool is_root = w->outputs && i == choice->count - 1;
        result = is_root ? write_root(w, s->term) : write_statement(w, s);
    }
    free(w->written);
    w->written = NULL;
    return w->e->status == ORT_OK ? result : ORT_ID_NONE;
}

static bool may_write_term(const ort_text *text, short index,
                           int (*opset)(void *, const char *, const char *, int), void *arg)
{
    const ort_term *t = &text->terms.data[index];
    if (t->kind == '(') {
        operator op = operator_of(t->text, t->length, 0);
        if (!opset(arg, op.domain, op.name, t->since))
            return false;
    }
    for (int i = 0; i < t->count && (t->kind == '(' || t->kind == '@'); i++)
        if (!may_write_term(text, text->terms_of.data[t->first + i], opset, arg))
            return false;
    return true;
}

bool ort_may_write(const ort_text *text, const ort_choice *choice,
                   int (*opset)(void *, const char *, const char *, int), void *arg)
{
    for (int i = 0; i < choice->count; i++)
        if (!may_write_term(text, text->statements.data[choice->first + i].term, opset, arg))
            return false;
    return true;
}
