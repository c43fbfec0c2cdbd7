/* pattern.c - parsing, matching and replacing (pattern.h). Terms are stored in order of the text. A
 * commutative node is tried in both orders, its more telling operand first; what an order bound is
 * taken back when it fails. An order that fits is not tried again when something outside of the
 * node fails later: patterns whose two operands look alike would need that, and there are none. */
#include "pass/pattern.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "graph/uses.h"

/* ---- parsing */

typedef struct parser {
    ort_pattern *p;
    const char *at;
} parser;

static void skip_space(parser *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static short name_of(ort_pattern *p, const char *text, int length)
{
    assert(length > 0 && length < (int)sizeof p->names[0]);
    for (int i = 0; i < p->name_count; i++)
        if (!strncmp(p->names[i], text, (size_t)length) && !p->names[i][length])
            return (short)i;
    assert(p->name_count < ORT_PATTERN_NAMES);
    memcpy(p->names[p->name_count], text, (size_t)length);
    p->names[p->name_count][length] = '\0';
    return (short)p->name_count++;
}

static int word_length(const char *text)
{
    int length = 0;
    while (is_name(text[length]))
        length++;
    return length;
}

static bool commutes(const char *text, int length)
{
    static const char *const names[] = {"Add", "Mul", "Max", "Min", "And", "Or", "Equal", "Sum"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((int)strlen(names[i]) == length && !strncmp(text, names[i], (size_t)length))
            return true;
    return false;
}

static short parse_term(parser *r);

/* After '(': operators, attributes, inputs, ')'. */
static void parse_operator(parser *r, short self)
{
    ort_pattern *p = r->p;
    short last = -1;
    int length = 0;
    while (is_name(r->at[length]) || r->at[length] == '|' || r->at[length] == '.')
        length++;
    p->terms[self].text = r->at;
    p->terms[self].length = length;
    r->at += length;
    for (skip_space(r); *r->at != ')'; skip_space(r)) {
        int word = word_length(r->at);
        assert(*r->at);
        if (!strncmp(r->at, "...", 3)) {
            p->terms[self].open = true;
            r->at += 3;
            continue;
        }
        if (word && r->at[word] == '=') {
            assert(!p->terms[self].attr);
            p->terms[self].attr = r->at;
            while (*r->at && *r->at != ')' && !isspace((unsigned char)*r->at))
                r->at++;
            continue;
        }
        short child = parse_term(r);
        if (last < 0)
            p->terms[self].first = child;
        else
            p->terms[last].next = child;
        last = child;
        p->terms[self].count++;
    }
    r->at++;
    p->terms[self].commutative = p->terms[self].count == 2 &&
                                 commutes(p->terms[self].text, length);
    p->terms[self].plain = !memchr(p->terms[self].text, '|', (size_t)length) &&
                           !memchr(p->terms[self].text, '.', (size_t)length);
}

static short parse_term(parser *r)
{
    ort_pattern *p = r->p;
    assert(p->term_count < ORT_PATTERN_TERMS);
    short self = (short)p->term_count++;
    ort_term *t = &p->terms[self];
    *t = (ort_term){.name = -1, .first = -1, .next = -1};
    skip_space(r);
    if (*r->at == '+') {
        t->shared = true;
        r->at++;
    }
    int word = word_length(r->at);
    if (word && r->at[word] == ':') {
        t->name = name_of(p, r->at, word);
        r->at += word + 1;
    }
    char c = *r->at;
    if (c == '(') {
        t->kind = '(';
        r->at++;
        parse_operator(r, self);
    } else if (c == '[') {
        t->kind = '[';
        t->text = r->at + 1;
        r->at = strchr(r->at, ']');
        assert(r->at);
        t->length = (int)(r->at++ - t->text);
    } else if (c == '#') {
        t->kind = '#';
        word = word_length(++r->at);
        t->name = name_of(p, r->at, word);
        r->at += word;
    } else if (isdigit((unsigned char)c) || (c == '-' && isdigit((unsigned char)r->at[1]))) {
        char *end;
        t->kind = '0';
        t->number = ort_parse_double(r->at, &end);
        r->at = end;
    } else if (c == '-' || (c == '_' && !is_name(r->at[1]))) {
        t->kind = c;
        r->at++;
    } else {
        word = word_length(r->at);
        t->kind = 'x';
        t->name = name_of(p, r->at, word);
        r->at += word;
    }
    return self;
}

static void parse_pattern(ort_pattern *pattern, const char *text)
{
    parser r = {pattern, text};
    pattern->text = text;
    pattern->term_count = pattern->name_count = 0;
    parse_term(&r);
    skip_space(&r);
    assert(!*r.at && pattern->terms[0].kind == '(');
}

/* ---- matching */

typedef struct matcher {
    const ort_pattern *p;
    const ort_graph *graph;
    ort_match *m;
    bool lenient;   /* one condition may fail: then miss tells which */
    char miss[200]; /* "": none yet */
} matcher;

/* Does a failing condition pass for the near-miss? */
static bool forgives(matcher *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool forgives(matcher *x, const char *format, ...)
{
    va_list args;
    if (!x->lenient || x->miss[0])
        return false;
    va_start(args, format);
    vsnprintf(x->miss, sizeof x->miss, format, args);
    va_end(args);
    return true;
}

static bool is_named(const char *name, const char *text, size_t length)
{
    return name[0] == text[0] && !strncmp(name, text, length) && !name[length];
}

/* "A|ms.B" */
static bool names_operator(const char *text, size_t length, const ort_op *op)
{
    for (const char *at = text, *end = text + length, *stop; at < end; at = stop + 1) {
        const char *domain = ONNX;
        stop = memchr(at, '|', (size_t)(end - at));
        if (!stop)
            stop = end;
        if (stop - at > 3 && !strncmp(at, "ms.", 3)) {
            domain = MS;
            at += 3;
        }
        if (is_named(op->name, at, (size_t)(stop - at)) && !strcmp(op->domain, domain))
            return true;
    }
    return false;
}

static bool operator_fits(const ort_term *t, const ort_node *node)
{
    if (!node || node->removed || !node->op)
        return false;
    if (t->plain)
        return is_named(node->op->name, t->text, (size_t)t->length) && !node->op->domain[0];
    return names_operator(t->text, (size_t)t->length, node->op);
}

/* "k=0,2" */
static bool attribute_fits(const char *text, const ort_node *node)
{
    char name[32];
    int length = word_length(text);
    assert(length < (int)sizeof name);
    memcpy(name, text, (size_t)length);
    name[length] = '\0';
    const ort_attr *attr = ort_node_attr(node, name);
    if (!attr || (attr->type != ORT_ATTR_INT && attr->type != ORT_ATTR_INTS))
        return false;
    const int64_t *list = attr->type == ORT_ATTR_INT ? &attr->i : attr->ints;
    size_t count = attr->type == ORT_ATTR_INT ? 1 : attr->count, i = 0;
    for (const char *at = text + length + 1;; at++) {
        char *end;
        int64_t wanted = strtoll(at, &end, 10);
        if (i >= count || list[i++] != wanted)
            return false;
        at = end;
        if (*at != ',')
            return i == count;
    }
}

static const ort_tensor *constant_of(const ort_graph *graph, ort_id id)
{
    const ort_graph_value *value = ort_graph_value_at(graph, id);
    return value && !value->is_input ? value->fact.value : NULL;
}

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
        if (!(fabs(ort_tensor_get_f64(t, i) - number) <= tolerance_of(t->dtype) * fabs(number)))
            return false;
    return true;
}

static bool list_fits(const ort_tensor *t, const ort_term *term)
{
    int64_t count = t ? ort_tensor_count(t) : -1, i = 0;
    const char *at = term->text, *end = term->text + term->length;
    if (count < 0 || count > 64 || t->dtype != ORT_DTYPE_INT64)
        return false;
    while (at < end) {
        char *stop;
        double wanted = (double)strtoll(at, &stop, 10);
        if (stop == at)
            break;
        if (i >= count || ort_tensor_get_f64(t, i++) != wanted)
            return false;
        at = stop;
    }
    return i == count;
}

static bool bind(matcher *x, short name, ort_id value, ort_node *node)
{
    if (name < 0)
        return true;
    if (x->m->values[name] != ORT_ID_NONE) {
        if (x->m->values[name] == value && node)
            x->m->named[name] = node;
        return x->m->values[name] == value;
    }
    x->m->values[name] = value;
    x->m->named[name] = node;
    return true;
}

static bool fits(matcher *x, const ort_term *t, ort_id value);

static ort_id input_of(const ort_node *node, int slot)
{
    return slot < node->input_count ? node->inputs[slot] : ORT_ID_NONE;
}

static bool inputs_fit(matcher *x, const ort_term *t, const ort_node *node)
{
    short child = t->first;
    for (int i = 0; i < t->count; i++, child = x->p->terms[child].next)
        if (!fits(x, &x->p->terms[child], input_of(node, i)))
            return false;
    return true;
}

static bool is_telling(const ort_term *t)
{
    return t->kind == '(' || t->kind == '0' || t->kind == '[';
}

typedef struct bindings { /* what a failed attempt is taken back to */
    ort_id values[ORT_PATTERN_NAMES];
    ort_node *named[ORT_PATTERN_NAMES];
    int node_count;
} bindings;

static void remember(const matcher *x, bindings *b)
{
    size_t count = (size_t)x->p->name_count;
    memcpy(b->values, x->m->values, count * sizeof *b->values);
    memcpy(b->named, x->m->named, count * sizeof *b->named);
    b->node_count = x->m->node_count;
}

static void take_back(matcher *x, const bindings *b)
{
    size_t count = (size_t)x->p->name_count;
    memcpy(x->m->values, b->values, count * sizeof *b->values);
    memcpy(x->m->named, b->named, count * sizeof *b->named);
    x->m->node_count = b->node_count;
}

/* Both orders exactly, before one of them with a condition that fails. */
static bool either_order_fits(matcher *x, const ort_term *t, const ort_node *node)
{
    bindings before;
    const ort_term *a = &x->p->terms[t->first], *b = &x->p->terms[a->next];
    bool b_first = is_telling(b) && !is_telling(a), lenient = x->lenient && !x->miss[0];
    remember(x, &before);
    for (int order = 0; order < (lenient ? 4 : 2); order++) {
        x->lenient = order >= 2;
        ort_id for_a = input_of(node, order % 2), for_b = input_of(node, 1 - order % 2);
        bool fit = b_first ? fits(x, b, for_b) && fits(x, a, for_a)
                           : fits(x, a, for_a) && fits(x, b, for_b);
        if (fit) {
            x->lenient = x->lenient || lenient;
            return true;
        }
        take_back(x, &before);
        if (lenient)
            x->miss[0] = '\0';
    }
    x->lenient = lenient;
    return false;
}

static bool node_fits(matcher *x, const ort_term *t, ort_node *node)
{
    ort_match *m = x->m;
    int known = -1;
    if (!operator_fits(t, node))
        return false;
    if (t->attr && !attribute_fits(t->attr, node) &&
        !forgives(x, "%s isn't %.*s", ort_edit_origin_of(node), (int)strcspn(t->attr, " )"),
                  t->attr))
        return false;
    for (int i = t->count; !t->open && i < node->input_count; i++)
        if (node->inputs[i] != ORT_ID_NONE)
            return false;
    for (int i = 0; i < m->node_count; i++)
        known = m->nodes[i] == node ? i : known;
    if (known < 0) {
        assert(m->node_count < ORT_PATTERN_NODES);
        m->nodes[m->node_count] = node;
        m->shared[m->node_count++] = t->shared;
    }
    if (!bind(x, t->name, node->outputs[0], node))
        return false;
    return t->commutative ? either_order_fits(x, t, node) : inputs_fit(x, t, node);
}

static const char *value_name(const matcher *x, ort_id value)
{
    return x->graph->values.data[value]->name;
}

static bool fits(matcher *x, const ort_term *t, ort_id value)
{
    switch (t->kind) {
    case '-':
        return value == ORT_ID_NONE;
    case '_':
        return value != ORT_ID_NONE && bind(x, t->name, value, NULL);
    case 'x':
        return value != ORT_ID_NONE && bind(x, t->name, value, NULL);
    case '#':
        return value != ORT_ID_NONE &&
               (constant_of(x->graph, value) ||
                forgives(x, "'%s' isn't constant", value_name(x, value))) &&
               bind(x, t->name, value, NULL);
    case '0':
        return number_fits(constant_of(x->graph, value), t->number) ||
               (value != ORT_ID_NONE &&
                forgives(x, "'%s' isn't %g", value_name(x, value), t->number));
    case '[':
        return list_fits(constant_of(x->graph, value), t) ||
               (value != ORT_ID_NONE && forgives(x, "'%s' isn't [%.*s]", value_name(x, value),
                                                 t->length, t->text));
    default: {
        ort_node *node = ort_edit_producer(x->graph, value);
        return node && node->outputs[0] == value && node_fits(x, t, node);
    }
    }
}

static bool inside(const ort_match *m, const ort_node *node)
{
    for (int i = 0; i < m->node_count; i++)
        if (m->nodes[i] == node)
            return true;
    return false;
}

/* A value that will go though somebody else reads it, or ORT_ID_NONE. */
static ort_id read_outside(const ort_graph *graph, const ort_match *m)
{
    for (int i = 1; i < m->node_count; i++) {
        const ort_node *node = m->nodes[i];
        for (int k = 0; !m->shared[i] && k < node->output_count; k++) {
            if (node->outputs[k] == ORT_ID_NONE)
                continue;
            if (graph->values.data[node->outputs[k]]->is_output)
                return node->outputs[k];
            ort_readers readers = ort_readers_of(graph, node->outputs[k]);
            const ort_node *reader;
            while ((reader = ort_readers_next(&readers)))
                if (!inside(m, reader))
                    return node->outputs[k];
        }
    }
    return ORT_ID_NONE;
}

static bool matches(matcher *x, ort_node *node)
{
    x->m->pattern = x->p;
    x->m->node_count = 0;
    for (int i = 0; i < x->p->name_count; i++) {
        x->m->values[i] = ORT_ID_NONE;
        x->m->named[i] = NULL;
    }
    if (!node_fits(x, &x->p->terms[0], node))
        return false;
    ort_id outside = read_outside(x->graph, x->m);
    return outside == ORT_ID_NONE ||
           forgives(x, "'%s' has another reader", value_name(x, outside));
}

/* ---- what was found */

static int find_name(const ort_match *m, const char *name)
{
    for (int i = 0; i < m->pattern->name_count; i++)
        if (!strcmp(m->pattern->names[i], name))
            return i;
    assert(!"a name of the pattern");
    return 0;
}

ort_id ort_match_value(const ort_match *match, const char *name)
{
    return match->values[find_name(match, name)];
}

ort_node *ort_match_node(const ort_match *match, const char *name)
{
    return match->named[find_name(match, name)];
}

const ort_tensor *ort_match_constant(const ort_match *match, const ort_graph *graph,
                                     const char *name)
{
    return constant_of(graph, ort_match_value(match, name));
}

const ort_type *ort_match_type(const ort_match *match, const ort_graph *graph, const char *name)
{
    return &graph->values.data[ort_match_value(match, name)]->fact.type;
}

/* ---- replacing */

const char *ort_match_remove(ort_pass_context *c, const ort_match *m)
{
    ort_strbuf text = {0};
    for (int i = m->node_count; i-- > 0;) {
        ort_node *node = m->nodes[i];
        if (m->shared[i])
            continue;
        ort_strbuf_addf(&text, "%s%s", ort_strbuf_text(&text)[0] ? "+" : "",
                        ort_edit_origin_of(node));
        ort_graph_remove_node(c->graph, node);
    }
    const char *origin = ort_arena_strdup(&c->graph->model->arena, ort_strbuf_text(&text));
    ort_strbuf_release(&text);
    return origin;
}

ort_status ort_match_replace(ort_pass_context *c, const ort_match *m, ort_node_spec *spec,
                             ort_error *err)
{
    const ort_node *root = m->nodes[0];
    spec->name = root->name;
    spec->outputs = root->outputs;
    spec->output_count = root->output_count;
    spec->origin = ort_match_remove(c, m);
    if (!spec->origin)
        return ort_error_memory(err, 64);
    return ort_edit_add_node(c->graph, spec, NULL, err);
}

/* ---- tables of forms
 *
 * A model has a few dozen kinds of nodes and a table a few dozen forms, most of which no node can
 * be the root of: which may is found once for each operator's row, and their text parsed then. */

typedef struct root_list { /* the forms whose root may be a node of this row */
    const ort_op *op;
    int first, count; /* in choices */
} root_list;

struct ort_pattern_table {
    const ort_pattern_form *forms;
    int count;
    ort_arena arena;        /* of the parsed forms */
    ort_pattern **patterns; /* by form; NULL: not needed so far */
    ORT_VEC(int) choices;
    ORT_VEC(root_list) lists;
    uint16_t slots[256];    /* by hash of the row: where its list may be, plus 1 */
};

void ort_pattern_table_free(struct ort_pattern_table *table)
{
    if (!table)
        return;
    ort_arena_release(&table->arena);
    ort_vec_release(&table->choices);
    ort_vec_release(&table->lists);
    free(table);
}

static struct ort_pattern_table *new_table(const ort_pattern_form *forms, int count)
{
    struct ort_pattern_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->forms = forms;
    table->count = count;
    table->patterns = ort_arena_array(&table->arena, (size_t)count, sizeof *table->patterns);
    if (!table->patterns) {
        ort_pattern_table_free(table);
        return NULL;
    }
    return table;
}

/* The operators of the root stand behind the first parenthesis. */
static bool may_be_root(const char *text, const ort_op *op)
{
    const char *name = strchr(text, '(') + 1;
    return names_operator(name, strcspn(name, " )"), op);
}

static bool add_choice(struct ort_pattern_table *table, int form)
{
    ort_pattern *p = table->patterns[form];
    if (!p) {
        p = ort_arena_alloc_aligned(&table->arena, sizeof *p, 16, 0);
        if (!p)
            return false;
        parse_pattern(p, table->forms[form].text);
        table->patterns[form] = p;
    }
    return ort_vec_push(&table->choices, form);
}

static const root_list *add_list(struct ort_pattern_table *table, const ort_op *op)
{
    root_list list = {.op = op, .first = (int)table->choices.count};
    for (int i = 0; i < table->count; i++)
        if (may_be_root(table->forms[i].text, op) && !add_choice(table, i))
            return NULL;
    list.count = (int)table->choices.count - list.first;
    return ort_vec_push(&table->lists, list) ? &table->lists.data[table->lists.count - 1] : NULL;
}

/* NULL: no memory. */
static const root_list *roots_of(struct ort_pattern_table *table, const ort_op *op)
{
    uintptr_t hash = (uintptr_t)op / sizeof *op;
    uint16_t *slot = &table->slots[(hash ^ hash >> 8) % 256];
    if (*slot && table->lists.data[*slot - 1].op == op)
        return &table->lists.data[*slot - 1];
    for (size_t i = 0; i < table->lists.count; i++)
        if (table->lists.data[i].op == op) {
            *slot = (uint16_t)(i + 1);
            return &table->lists.data[i];
        }
    const root_list *list = add_list(table, op);
    if (list && table->lists.count <= UINT16_MAX)
        *slot = (uint16_t)table->lists.count;
    return list;
}

static void note_near_miss(const ort_pass_context *c, const root_list *list, ort_node *node,
                           ort_match *match)
{
    for (int i = 0; i < list->count; i++) {
        matcher x = {.p = c->patterns->patterns[c->patterns->choices.data[list->first + i]],
                     .graph = c->graph, .m = match, .lenient = true};
        if (!matches(&x, node) || match->node_count < 2)
            continue;
        ort_pass_note(c, node, "%s", x.miss);
        break;
    }
}

/* The first form whose root is `node`, or -1. */
static int find_form(const ort_pass_context *c, const root_list *list, ort_node *node,
                     ort_match *match)
{
    for (int i = 0; i < list->count; i++) {
        int form = c->patterns->choices.data[list->first + i];
        matcher x = {.p = c->patterns->patterns[form], .graph = c->graph, .m = match};
        if (matches(&x, node))
            return form;
    }
    if (c->near_misses)
        note_near_miss(c, list, node, match);
    return -1;
}

ort_status ort_pattern_forms(ort_pass_context *c, const ort_pattern_form *forms, int count,
                             ort_pattern_fuse fuse, int *changes, ort_error *err)
{
    ort_match match;
    if (!c->patterns)
        c->patterns = new_table(forms, count);
    if (!c->patterns)
        return ort_error_memory(err, (size_t)count * sizeof(ort_pattern));
    assert(c->patterns->forms == forms);
    for (size_t k = c->graph->order.count; k-- > 0;) {
        ort_node *node = c->graph->nodes.data[c->graph->order.data[k]];
        if (node->removed || !node->op)
            continue;
        const root_list *list = roots_of(c->patterns, node->op);
        if (!list)
            return ort_error_memory(err, sizeof(ort_pattern));
        int found = list->count ? find_form(c, list, node, &match) : -1;
        if (found >= 0)
            ORT_TRY(fuse(c, &match, &forms[found], changes, err));
    }
    return ORT_OK;
}
