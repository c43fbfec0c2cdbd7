/* pattern.c - matching and replacing (pattern.h). A commutative node is tried in both orders, its
 * more telling operand first; what an order bound is taken back when it fails. An order that fits
 * is not tried again when something outside of the node fails later: patterns whose two operands
 * look alike would need that, and there are none. */
#include "pass/pattern_match.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "graph/follow.h"
#include "graph/uses.h"

typedef struct matcher {
    const ort_pattern *p;
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
    vsnprintf(x->miss, ORT_PATTERN_MISS, format, args);
    va_end(args);
    return true;
}

static bool is_named(const char *name, const char *text, size_t length)
{
    return name[0] == text[0] && !strncmp(name, text, length) && !name[length];
}

/* "A|ms.B" */
bool ort_pattern_names_operator(const char *text, size_t length, const ort_op *op)
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
    return ort_pattern_names_operator(t->text, (size_t)t->length, node->op);
}

/* "k=0,2" */
static bool attribute_fits(const char *text, const ort_node *node)
{
    char name[32];
    int length = 0;
    while (ort_pattern_is_name(text[length]))
        length++;
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

bool ort_pattern_match(const ort_pattern *pattern, const ort_graph *graph, ort_node *node,
                       ort_match *match, char *miss)
{
    matcher x = {.p = pattern, .graph = graph, .m = match, .lenient = miss, .miss = miss};
    if (miss)
        miss[0] = '\0';
    match->pattern = pattern;
    match->node_count = 0;
    for (int i = 0; i < pattern->name_count; i++) {
        match->values[i] = ORT_ID_NONE;
        match->named[i] = NULL;
    }
    if (!node_fits(&x, &pattern->terms[0], node))
        return false;
    ort_id outside = read_outside(graph, match);
    return outside == ORT_ID_NONE ||
           forgives(&x, "'%s' has another reader", value_name(&x, outside));
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
    bool left_out = false;
    for (int i = m->node_count; i-- > 0;) {
        ort_node *node = m->nodes[i];
        if (m->shared[i])
            continue;
        const char *of = ort_edit_origin_of(node);
        left_out = left_out || text.length + strlen(of) > ORT_EDIT_ORIGIN_BYTES;
        if (!left_out || !text.length)
            ort_strbuf_addf(&text, "%s%s", text.length ? "+" : "", of);
        ort_graph_remove_node(c->graph, node);
    }
    if (left_out)
        ort_strbuf_add(&text, ORT_EDIT_ORIGIN_MORE);
    const char *origin = ort_arena_strdup(&c->graph->model->arena, ort_strbuf_text(&text));
    ort_strbuf_release(&text);
    for (int i = 0; left_out && i < m->node_count; i++)
        if (!m->shared[i])
            origin = ort_follow_join(c->graph->model, origin, m->nodes[i]->origin);
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
