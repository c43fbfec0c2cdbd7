/* match.c - where a text fits (match.h). A commutative node is tried in both orders, its more
 * telling operand first, and a named form in each of its alternatives; what an attempt bound is
 * taken back when it fails. One that fits is not given up when something outside of the node fails
 * later, but for operands that look alike: then the whole is tried once more, the other order
 * first. */
#include "emit/match.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "graph/uses.h"
#include "tensor/scalar.h"

typedef struct matcher {
    const ort_text *text;
    const ort_graph *graph;
    ort_match *m;
    bool lenient; /* one condition may fail: then miss tells which */
    char *miss;   /* "": none yet */
} matcher;

/* Does a failing condition pass for the near-miss? */
static bool forgives(matcher *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool forgives(matcher *x, const char *format, ...)
{
    va_list args;
    if (!x->lenient || x->miss[0])
        return false;
    va_start(args, format);
    vsnprintf(x->miss, ORT_MATCH_MISS, format, args);
    va_end(args);
    return true;
}

static bool is_named(const char *name, const char *text, size_t length)
{
    return name[0] == text[0] && !strncmp(name, text, length) && !name[length];
}

static bool operator_fits(const ort_term *t, const ort_node *node)
{
    if (!node || node->removed || !node->op)
        return false;
    if (t->plain)
        return is_named(node->op->name, t->text, (size_t)t->length) && !node->op->domain[0];
    return ort_edit_names(t->text, (size_t)t->length, node->op);
}

/* ---- attributes */

static bool integers_fit(const char *text, const ort_attr *attr)
{
    const int64_t *list = attr->type == ORT_ATTR_INT ? &attr->i : attr->ints;
    size_t count = attr->type == ORT_ATTR_INT ? 1 : attr->count, i = 0;
    for (const char *at = text;; at++) {
        char *end;
        int64_t wanted = strtoll(at, &end, 10);
        if (i >= count || list[i++] != wanted)
            return false;
        at = end;
        if (*at != ',' || at[1] == ' ' || at[1] == ')')
            return i == count;
    }
}

static bool near(double number, double wanted, double tolerance)
{
    return fabs(number - wanted) <= tolerance * fabs(wanted);
}

static bool bind_number(matcher *x, int name, double number)
{
    ort_bound *b = &x->m->bound[name];
    if (b->is_number)
        return b->number == number;
    b->is_number = true;
    b->number = number;
    return true;
}

static bool attribute_fits(matcher *x, const ort_text_attr *wanted, const ort_node *node)
{
    char name[32];
    const char *value = wanted->value;
    ort_attr own;
    assert(wanted->name_length < (int)sizeof name);
    memcpy(name, wanted->name, (size_t)wanted->name_length);
    name[wanted->name_length] = '\0';
    const ort_attr *attr = ort_edit_attr(node, name, &own);
    if (!attr)
        return false;
    if (*value == '$') {
        int at = ort_text_find(x->text, value + 1, wanted->value_length - 1);
        return (attr->type == ORT_ATTR_INT && bind_number(x, at, (double)attr->i)) ||
               (attr->type == ORT_ATTR_FLOAT && bind_number(x, at, (double)attr->f));
    }
    switch (attr->type) {
    case ORT_ATTR_INT:
    case ORT_ATTR_INTS: return integers_fit(value, attr);
    case ORT_ATTR_FLOAT: return near((double)attr->f, ort_parse_double(value, NULL), 1e-5);
    case ORT_ATTR_STRING:
        return attr->s.length == (size_t)wanted->value_length &&
               !memcmp(attr->s.ptr, value, attr->s.length);
    default: return false;
    }
}

static bool attributes_fit(matcher *x, const ort_term *t, const ort_node *node)
{
    for (int i = 0; i < t->attr_count; i++) {
        const ort_text_attr *a = &x->text->attrs.data[t->first_attr + i];
        if (!attribute_fits(x, a, node) &&
            !forgives(x, "%s isn't %.*s", ort_edit_origin_of(node),
                      (int)(a->value + a->value_length - a->name), a->name))
            return false;
    }
    return true;
}

/* ---- constants */

/* Half a unit in the last place of the constant's own type, and what exporters round away. */
static double tolerance_of(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT16 ? 0x1p-11 : dtype == ORT_DTYPE_BFLOAT16 ? 0x1p-8 : 1e-5;
}

static bool number_fits(const ort_tensor *t, double number)
{
    int64_t count = t ? ort_tensor_count(t) : 0;
    if (count < 1 || count > 64 || !t->data || t->dtype == ORT_DTYPE_STRING)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (!near(ort_tensor_get_f64(t, i), number, tolerance_of(t->dtype)))
            return false;
    return true;
}

/* "0 $n -1" */
static bool list_is(matcher *x, const ort_term *t, const int64_t *list, int64_t count)
{
    int64_t i = 0;
    const char *at = t->text, *end = t->text + t->length;
    for (at += strspn(at, " "); at < end; at += strspn(at, " ")) {
        int length = (int)strcspn(at, " ]");
        if (i >= count)
            return false;
        if (*at == '$' ? !bind_number(x, ort_text_find(x->text, at + 1, length - 1),
                                      (double)list[i])
                       : strtoll(at, NULL, 10) != list[i])
            return false;
        i++;
        at += length;
    }
    return i == count;
}

static bool list_fits(matcher *x, const ort_tensor *constant, const ort_term *t)
{
    int64_t list[64], count = constant ? ort_tensor_count(constant) : -1;
    if (count < 0 || count > 64 || constant->dtype != ORT_DTYPE_INT64)
        return false;
    for (int64_t i = 0; i < count; i++)
        list[i] = ort_tensor_get_i64(constant, i);
    return list_is(x, t, list, count);
}

/* ---- terms */

static bool bind(matcher *x, short name, ort_id value, ort_node *node)
{
    if (name < 0)
        return true;
    ort_bound *b = &x->m->bound[name];
    if (b->value != ORT_ID_NONE) {
        if (b->value == value && node)
            b->node = node;
        return b->value == value;
    }
    b->value = value;
    b->node = node;
    return true;
}

static bool fits(matcher *x, const ort_term *t, ort_id value);

bool ort_text_attribute_of(const ort_registry *registry, const ort_op *op, int slot, char *name)
{
    ort_schema schema;
    const ort_op *newest = ort_registry_find(registry, op->domain, op->name, ORT_NEWEST_OPSET);
    if (ort_schema_parse(op, &schema, NULL) != ORT_OK ||
        ort_schema_param(schema.inputs, schema.input_count, slot) || !newest ||
        ort_schema_parse(newest, &schema, NULL) != ORT_OK)
        return false;
    const ort_param *param = ort_schema_param(schema.inputs, schema.input_count, slot);
    if (param)
        memcpy(name, param->name, sizeof param->name);
    return param != NULL;
}

/* A list or number as the attribute that it was in this version. */
static bool attribute_form_fits(matcher *x, const ort_term *t, const ort_node *node, int slot)
{
    char name[64];
    ort_attr own;
    const ort_attr *attr = ort_text_attribute_of(x->graph->model->registry, node->op, slot, name)
                               ? ort_edit_attr(node, name, &own)
                               : NULL;
    if (!attr)
        return false;
    switch (attr->type) {
    case ORT_ATTR_INTS:
        return t->kind == '[' && list_is(x, t, attr->ints, (int64_t)attr->count);
    case ORT_ATTR_FLOAT:
        return t->kind == '$' ? bind_number(x, t->name, (double)attr->f)
                              : t->kind == '0' && near((double)attr->f, t->number, 1e-5);
    default: return false;
    }
}

static bool inputs_fit(matcher *x, const ort_term *t, const ort_node *node)
{
    for (int i = 0; i < t->count; i++) {
        const ort_term *child = ort_text_child(x->text, t, i);
        bool stated = child->kind == '[' || child->kind == '0' || child->kind == '$';
        if ((!stated || i < node->input_count || !attribute_form_fits(x, child, node, i)) &&
            !fits(x, child, ort_edit_input(node, i)))
            return false;
    }
    return true;
}

static bool is_telling(const ort_term *t)
{
    return t->kind == '(' || t->kind == '0' || t->kind == '[' || t->kind == '@';
}

typedef struct before { /* what a failed attempt is taken back to */
    ort_bound bound[ORT_MATCH_NAMES];
    int node_count;
} before;

static void remember(const matcher *x, before *b)
{
    memcpy(b->bound, x->m->bound, x->text->names.count * sizeof *b->bound);
    b->node_count = x->m->node_count;
}

static void take_back(matcher *x, const before *b)
{
    memcpy(x->m->bound, b->bound, x->text->names.count * sizeof *b->bound);
    x->m->node_count = b->node_count;
}

/* One of `count` attempts that succeeds; all of them exactly, before one with a condition that
 * fails. */
static bool any_fits(matcher *x, int count, const ort_term *t, const ort_node *node, ort_id value,
                     bool (*attempt)(matcher *, int, const ort_term *, const ort_node *, ort_id))
{
    before b;
    bool lenient = x->lenient && !x->miss[0];
    remember(x, &b);
    for (int i = 0; i < count * (lenient ? 2 : 1); i++) {
        x->lenient = i >= count;
        if (attempt(x, i % count, t, node, value)) {
            x->lenient = x->lenient || lenient;
            return true;
        }
        take_back(x, &b);
        if (lenient)
            x->miss[0] = '\0';
    }
    x->lenient = lenient;
    return false;
}

static bool order_fits(matcher *x, int order, const ort_term *t, const ort_node *node, ort_id value)
{
    const ort_term *a = ort_text_child(x->text, t, 0), *b = ort_text_child(x->text, t, 1);
    ort_id for_a = ort_edit_input(node, order ^ x->m->turned);
    ort_id for_b = ort_edit_input(node, order ^ !x->m->turned);
    return is_telling(b) && !is_telling(a) ? fits(x, b, for_b) && fits(x, a, for_a)
                                           : fits(x, a, for_a) && fits(x, b, for_b);
}

static bool alternative_fits(matcher *x, int i, const ort_term *t, const ort_node *node,
                             ort_id value)
{
    return fits(x, ort_text_child(x->text, t, i), value);
}

static void add_to_match(ort_match *m, ort_node *node, bool shared)
{
    for (int i = 0; i < m->node_count; i++)
        if (m->nodes[i] == node)
            return;
    assert(m->node_count < ORT_MATCH_NODES);
    m->nodes[m->node_count] = node;
    m->shared[m->node_count++] = shared;
}

static bool node_fits(matcher *x, const ort_term *t, ort_node *node)
{
    if (!operator_fits(t, node) || !attributes_fit(x, t, node))
        return false;
    for (int i = t->count; !t->open && i < node->input_count; i++)
        if (node->inputs[i] != ORT_ID_NONE)
            return false;
    add_to_match(x->m, node, t->shared);
    if (!bind(x, t->name, node->outputs[0], node))
        return false;
    return t->commutative ? any_fits(x, 2, t, node, ORT_ID_NONE, order_fits)
                          : inputs_fit(x, t, node);
}

static const char *value_name(const matcher *x, ort_id value)
{
    return x->graph->values.data[value]->name;
}

/* $n */
static bool single_fits(matcher *x, const ort_term *t, ort_id value)
{
    double number = 0;
    if (!ort_tensor_one_f64(ort_fact_value(x->graph, value), &number))
        return forgives(x, "'%s' isn't one constant number", value_name(x, value));
    return bind_number(x, t->name, number);
}

/* A value that is there. */
static bool value_fits(matcher *x, const ort_term *t, ort_id value)
{
    const ort_tensor *constant;
    switch (t->kind) {
    case '_':
    case 'x': return bind(x, t->name, value, NULL);
    case '$': return single_fits(x, t, value);
    case '#':
        return (ort_fact_value(x->graph, value) ||
                forgives(x, "'%s' isn't constant", value_name(x, value))) &&
               bind(x, t->name, value, NULL);
    case '0':
    case 'i':
        return number_fits(ort_fact_value(x->graph, value), t->number) ||
               forgives(x, "'%s' isn't %g", value_name(x, value), t->number);
    case '[':
        constant = ort_fact_value(x->graph, value);
        return list_fits(x, constant, t) || forgives(x, "'%s' isn't [%.*s]", value_name(x, value),
                                                  t->length, t->text);
    case '@':
        return any_fits(x, t->count, t, NULL, value, alternative_fits) &&
               bind(x, t->name, value, ort_edit_producer(x->graph, value));
    default: {
        ort_node *node = ort_edit_producer(x->graph, value);
        return node && node->outputs[0] == value && node_fits(x, t, node);
    }
    }
}

static bool fits(matcher *x, const ort_term *t, ort_id value)
{
    if (value == ORT_ID_NONE)
        return t->kind == '-' || t->optional;
    return t->kind != '-' && value_fits(x, t, value);
}

/* ---- the whole */

static bool goes(const ort_match *m, const ort_node *node)
{
    for (int i = 0; i < m->node_count; i++)
        if (m->nodes[i] == node)
            return !m->shared[i];
    return false;
}

/* An output of the node that is read by what stays, or ORT_ID_NONE. */
static ort_id read_by_others(const ort_graph *graph, const ort_match *m, const ort_node *node)
{
    for (int k = 0; k < node->output_count; k++) {
        if (node->outputs[k] == ORT_ID_NONE)
            continue;
        if (graph->values.data[node->outputs[k]]->is_output)
            return node->outputs[k];
        ort_readers readers = ort_readers_of(graph, node->outputs[k]);
        const ort_node *reader;
        while ((reader = ort_readers_next(&readers)))
            if (!goes(m, reader))
                return node->outputs[k];
    }
    return ORT_ID_NONE;
}

/* A value that would go though somebody else reads it, or ORT_ID_NONE. What may stay stays where
 * others read it. */
static ort_id read_outside(const ort_graph *graph, ort_match *m)
{
    ort_id outside = ORT_ID_NONE;
    bool may_stay[ORT_MATCH_NODES];
    memcpy(may_stay, m->shared, sizeof may_stay);
    memset(m->shared, 0, sizeof m->shared);
    for (int i = 1; i < m->node_count; i++) {
        ort_id read = m->shared[i] ? ORT_ID_NONE : read_by_others(graph, m, m->nodes[i]);
        if (read != ORT_ID_NONE && may_stay[i]) {
            m->shared[i] = true;
            i = 0; /* what it reads stays as well */
        } else if (read != ORT_ID_NONE && outside == ORT_ID_NONE) {
            outside = read;
        }
    }
    return outside;
}

/* An operand that goes itself: a value that was found in the place of a node and in that of an
 * operand, as the result of a Conv that is added to itself; or ORT_ID_NONE. */
static ort_id read_inside(const ort_graph *graph, const ort_match *m)
{
    for (size_t i = 0; i < m->text->names.count; i++) {
        const ort_bound *b = &m->bound[i];
        if (b->value != ORT_ID_NONE && !b->node && goes(m, ort_edit_producer(graph, b->value)))
            return b->value;
    }
    return ORT_ID_NONE;
}

static void begin(ort_match *m, const ort_text *text, ort_graph *graph)
{
    assert(text->names.count <= ORT_MATCH_NAMES);
    m->text = text;
    m->graph = graph;
    m->node_count = m->extra_count = 0;
    for (size_t i = 0; i < text->names.count; i++)
        m->bound[i] = (ort_bound){.value = ORT_ID_NONE};
}

/* Does the root, a node or one of several spellings of it, fit at the node itself? */
static bool root_fits(matcher *x, const ort_term *t, ort_node *node)
{
    if (t->kind == '(')
        return node_fits(x, t, node);
    return node->output_count > 0 && fits(x, t, node->outputs[0]);
}

bool ort_text_match(const ort_text *text, ort_graph *graph, ort_node *node, bool turned,
                    ort_match *match, char *miss)
{
    matcher x = {.text = text, .graph = graph, .m = match, .lenient = miss, .miss = miss};
    for (size_t i = 0; i < text->choices.count; i++) {
        const ort_statement *s = &text->statements.data[text->choices.data[i].first];
        for (match->turned = turned;; match->turned = true) {
            if (miss)
                miss[0] = '\0';
            x.lenient = miss;
            begin(match, text, graph);
            if (!root_fits(&x, &text->terms.data[s->term], node))
                break;
            ort_id outside = read_outside(graph, match);
            if (outside == ORT_ID_NONE)
                outside = read_inside(graph, match);
            if (outside == ORT_ID_NONE ||
                forgives(&x, "'%s' has another reader", value_name(&x, outside)))
                return true;
            if (match->turned)
                break;
        }
    }
    return false;
}

/* ---- what was found */

const ort_bound *ort_match_bound(const ort_match *m, const char *name, int length)
{
    int at = ort_text_find(m->text, name, length);
    for (int i = 0; at < 0 && i < m->extra_count; i++)
        if (!strncmp(m->extra[i], name, (size_t)length) && !m->extra[i][length])
            at = (int)m->text->names.count + i;
    const ort_bound *b = at < 0 ? NULL : &m->bound[at];
    return b && (b->value != ORT_ID_NONE || b->is_number || b->list) ? b : NULL;
}

static const ort_bound *bound_of(const ort_match *m, const char *name)
{
    return ort_match_bound(m, name, (int)strlen(name));
}

bool ort_match_has(const ort_match *m, const char *name)
{
    return bound_of(m, name) != NULL;
}

ort_id ort_match_value(const ort_match *m, const char *name)
{
    const ort_bound *b = bound_of(m, name);
    return b ? b->value : ORT_ID_NONE;
}

ort_node *ort_match_node(const ort_match *m, const char *name)
{
    const ort_bound *b = bound_of(m, name);
    return b ? b->node : NULL;
}

const ort_type *ort_match_type(const ort_match *m, const char *name)
{
    const ort_bound *b = bound_of(m, name);
    assert(b && b->value != ORT_ID_NONE);
    return &m->graph->values.data[b->value]->fact.type;
}

const ort_tensor *ort_match_constant(const ort_match *m, const char *name)
{
    return ort_fact_value(m->graph, ort_match_value(m, name));
}

double ort_match_number(const ort_match *m, const char *name)
{
    const ort_bound *b = bound_of(m, name);
    assert(b && b->is_number);
    return b->number;
}

static ort_bound *let(ort_match *m, const char *name)
{
    int at = ort_text_find(m->text, name, (int)strlen(name));
    for (int i = 0; at < 0 && i < m->extra_count; i++)
        if (!strcmp(m->extra[i], name))
            at = (int)m->text->names.count + i;
    if (at < 0) {
        assert(m->extra_count < (int)(sizeof m->extra / sizeof *m->extra));
        at = (int)m->text->names.count + m->extra_count;
        m->extra[m->extra_count++] = name;
    }
    assert(at < ORT_MATCH_NAMES);
    m->bound[at] = (ort_bound){.value = ORT_ID_NONE};
    return &m->bound[at];
}

void ort_match_let(ort_match *m, const char *name, double number)
{
    ort_bound *b = let(m, name);
    b->is_number = true;
    b->number = number;
}

void ort_match_let_value(ort_match *m, const char *name, ort_id value)
{
    let(m, name)->value = value;
}
