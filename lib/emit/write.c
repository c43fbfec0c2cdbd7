/* write.c - texts into nodes (write.h), inputs before what reads them. */
#include "emit/write_parts.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"

enum { MAX_ATTRS = 12 };

static ort_id write_term(ort_writer *w, short index);

/* ---- operators */

typedef struct operator {
    const char *domain;
    char name[ORT_WRITE_NAME];
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
    assert(stop - text < ORT_WRITE_NAME);
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

/* ---- inputs */

/* Values first: they tell the types of numbers. What is no input of this version goes into `set`,
 * with `lists`; how many. */
static int write_inputs(ort_writer *w, const ort_term *t, const ort_op *op, ort_id *inputs,
                        ort_attr *set, int64_t (*lists)[ORT_WRITE_INPUTS])
{
    bool waits[ORT_WRITE_INPUTS] = {false};
    int attrs = 0;
    for (int i = 0; i < t->count; i++) {
        short child = w->text->terms_of.data[t->first + i];
        inputs[i] = ORT_ID_NONE;
        if (ort_write_attribute_of(w, t, op, i, &set[attrs], lists[attrs]))
            attrs++;
        else if (!(waits[i] = ort_write_is_number(w, &w->text->terms.data[child])))
            inputs[i] = write_term(w, child);
    }
    for (int i = 0; i < t->count; i++)
        if (waits[i])
            inputs[i] = ort_write_number(w, ort_text_child(w->text, t, i),
                                         ort_write_number_type(w, op, inputs, t->count, i));
    return attrs;
}

/* ---- nodes */

/* n:(Op a) */
static void keep_name(const ort_writer *w, const ort_term *t, ort_node_spec *spec)
{
    const ort_text_name *n = &w->text->names.data[t->name];
    const ort_bound *b = ort_write_bound(w, n->text, n->length);
    if (b && b->node)
        spec->name = b->node->name;
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
    ort_id inputs[ORT_WRITE_INPUTS];
    ort_attr set[MAX_ATTRS];
    int64_t lists[MAX_ATTRS][ORT_WRITE_INPUTS];
    operator named = operator_of(t->text, t->length, choose(w, t, operator_count(t)));
    spec->domain = named.domain;
    spec->op_type = *named.name == '_' ? w->e->at->op_type
                                       : ort_write_copied(w, named.name, (int)strlen(named.name));
    int opset = ort_emit_opset(w->e, named.domain, spec->op_type, since_of(w->e, t, spec));
    const ort_op *op = ort_registry_find(w->e->graph->model->registry, named.domain,
                                         spec->op_type, opset);
    spec->opset = w->e->opset_of ? opset : 0;
    int sets = write_inputs(w, t, op, inputs, set, lists);
    if (w->source && w->source->attributes)
        sets += w->source->attributes(w->source->arg, spec->op_type, set + sets, MAX_ATTRS - sets);
    assert(sets + t->attr_count <= MAX_ATTRS);
    for (int i = 0; i < t->attr_count; i++) {
        const ort_text_attr *a = &w->text->attrs.data[t->first_attr + i];
        if (!ort_write_has_attr(w, a))
            continue;
        set[sets] = ort_write_attr(w, op, a, lists[sets]);
        sets++;
    }
    spec->inputs = inputs;
    spec->input_count = t->count;
    while (spec->input_count && inputs[spec->input_count - 1] == ORT_ID_NONE)
        spec->input_count--;
    if (t->like >= 0) {
        const ort_text_name *n = &w->text->names.data[t->like];
        const ort_node *like = ort_write_node(w, n->text, n->length);
        spec->attrs = like->attrs;
        spec->attr_count = like->attr_count;
    }
    if (t->name >= 0)
        keep_name(w, t, spec);
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
    return ort_emit_dims(w->e, x, (int)ort_write_term_number(w, ort_text_child(w->text, t, 1)),
                         (int)ort_write_term_number(w, ort_text_child(w->text, t, 2)));
}

/* A node of two operands, one of which is absent, is the other one. */
static bool has_absent_operand(ort_writer *w, const ort_term *t, ort_id *other)
{
    ort_id operand[2];
    for (int i = 0; i < 2 && t->commutative; i++) {
        short child = w->text->terms_of.data[t->first + i];
        if (ort_write_is_number(w, &w->text->terms.data[child]))
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
    ort_dtype dtype = ort_emit_type(w->e, like)->dtype;
    ort_id own = ort_write_is_number(w, first) ? ort_write_number(w, first, dtype)
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
    const ort_bound *b = name ? ort_write_bound(w, name->text, name->length) : NULL;
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
    int64_t own[ORT_WRITE_INPUTS];
    int count;
    const int64_t *list = ort_write_list(w, t, own, &count);
    return ort_emit_ints(w->e, list, count);
}

/* A value of this name, where names are kept. */
static ort_id add_called(ort_writer *w, short name)
{
    const ort_text_name *n = &w->text->names.data[name];
    ort_id id = ort_graph_add_value(w->e->graph, ort_write_copied(w, n->text, n->length));
    if (id == ORT_ID_NONE)
        ort_emit_fail_memory(w->e);
    return id;
}

static ort_id write_node_of(ort_writer *w, const ort_term *t, ort_id *own)
{
    ort_node_spec spec = {0};
    if (w->source && t->name >= 0) {
        *own = add_called(w, t->name);
        spec.name = w->e->graph->values.data[*own]->name;
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
    if (t->optional && choose(w, t, 2)) /* it is absent */
        return ORT_ID_NONE;
    if (t->name >= 0 && *stated(w, t->name) != ORT_ID_NONE)
        return *stated(w, t->name);
    switch (t->kind) {
    case '-': return ORT_ID_NONE;
    case '0': return ort_write_number(w, t, ORT_DTYPE_UNDEFINED);
    case 'i': return *own = ort_emit_int(w->e, (int64_t)t->number);
    case '[': return *own = write_list(w, t);
    case '$':
        return ort_write_is_number(w, t) ? ort_write_number(w, t, ORT_DTYPE_UNDEFINED)
               : ort_write_is_list(w, t) ? write_list(w, t)
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
    ort_id outputs[ORT_WRITE_INPUTS] = {ORT_ID_NONE};
    ort_node_spec spec = {0};
    if (!s->count)
        return write_term(w, s->term);
    const ort_term *t = &w->text->terms.data[s->term];
    if (w->source) {
        for (int i = 0; i < s->count; i++)
            outputs[i] = add_called(w, w->text->terms_of.data[s->first + i]);
        spec.name = w->e->graph->values.data[outputs[0]]->name;
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
