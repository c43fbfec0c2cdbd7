/* notation.c - the text of a graph (notation.h) as terms, by recursive descent. */
#include "emit/notation.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

enum { MAX_INPUTS = 32, MAX_PARAMS = 6, MAX_ALTERNATIVES = 12 };

/* The parameters of the form that is being read, and the terms given for them. */
typedef struct scope {
    ort_text_name param[MAX_PARAMS];
    short term[MAX_PARAMS];
    int count;
} scope;

typedef struct parser {
    ort_text *out;
    const char *at;
    const char *const *forms;
    const scope *scope; /* NULL outside of forms */
    bool failed;        /* no memory */
} parser;

static short parse_sum(parser *p);
static short parse_primary(parser *p);

static void skip_space(parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool take(parser *p, char c)
{
    skip_space(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static void expect(parser *p, char c)
{
    bool there = take(p, c);
    assert(there && "what a text of a graph needs here");
    p->failed = p->failed || !there;
}

static int word_length(const char *text)
{
    int length = 0;
    while (ort_text_is_name(text[length]))
        length++;
    return length;
}

int ort_text_find(const ort_text *parsed, const char *name, int length)
{
    for (size_t i = 0; i < parsed->names.count; i++)
        if (parsed->names.data[i].length == length &&
            !memcmp(parsed->names.data[i].text, name, (size_t)length))
            return (int)i;
    return -1;
}

static short name_of(parser *p, const char *text, int length)
{
    int known = ort_text_find(p->out, text, length);
    ort_text_name name = {text, length};
    assert(length > 0);
    if (known >= 0)
        return (short)known;
    p->failed |= !ort_vec_push(&p->out->names, name);
    return (short)(p->out->names.count - 1);
}

static short add_term(parser *p, ort_term term)
{
    p->failed |= !ort_vec_push(&p->out->terms, term);
    return (short)(p->failed ? 0 : p->out->terms.count - 1);
}

/* Appends a list of terms (or of names); its beginning. */
static short add_list(parser *p, const short *list, int count)
{
    size_t first = p->out->terms_of.count;
    for (int i = 0; i < count; i++)
        p->failed |= !ort_vec_push(&p->out->terms_of, list[i]);
    return (short)first;
}

static ort_term blank(char kind)
{
    return (ort_term){.kind = kind, .name = -1, .like = -1};
}

/* ---- operators */

/* All of "Add|Sum"? */
static bool commutes(const char *text, int length)
{
    static const char *const names[] = {"Add", "Mul", "Max", "Min", "And", "Or", "Equal", "Sum"};
    const char *stop = memchr(text, '|', (size_t)length);
    int own = stop ? (int)(stop - text) : length;
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        found |= (int)strlen(names[i]) == own && !strncmp(text, names[i], (size_t)own);
    return found && (!stop || commutes(stop + 1, length - own - 1));
}

static short add_node(parser *p, ort_term t, const short *inputs, int count)
{
    t.commutative = count == 2 && commutes(t.text, t.length);
    t.plain = !memchr(t.text, '|', (size_t)t.length) && !memchr(t.text, '.', (size_t)t.length);
    t.first = add_list(p, inputs, count);
    t.count = (short)count;
    return add_term(p, t);
}

/* "k=0,2" */
static void parse_attr(parser *p, int length)
{
    ort_text_attr attr = {.name = p->at, .name_length = length, .value = p->at + length + 1};
    attr.value_length = (int)strcspn(attr.value, " \n)");
    assert(attr.value_length > 0);
    if (*attr.value == '$')
        name_of(p, attr.value + 1, word_length(attr.value + 1));
    p->at = attr.value + attr.value_length;
    p->failed |= !ort_vec_push(&p->out->attrs, attr);
}

/* After '(' and the operators: attributes, inputs, ')'. */
static short parse_operands(parser *p, ort_term t)
{
    short inputs[MAX_INPUTS];
    int count = 0;
    t.first_attr = (short)p->out->attrs.count;
    while (!take(p, ')') && !p->failed) {
        int word = word_length(p->at);
        assert(*p->at && count < MAX_INPUTS);
        if (!strncmp(p->at, "...", 3)) {
            t.open = true;
            p->at += 3;
        } else if (*p->at == '&') {
            word = word_length(++p->at);
            t.like = name_of(p, p->at, word);
            p->at += word;
        } else if (word && p->at[word] == '=') {
            parse_attr(p, word);
            t.attr_count++;
        } else {
            inputs[count++] = parse_primary(p);
            if (!t.attr_count)
                t.first_attr = (short)p->out->attrs.count;
            /* A node's attributes stand together: no input with some of its own is between them. */
            assert(t.first_attr + t.attr_count == (int)p->out->attrs.count);
        }
    }
    return add_node(p, t, inputs, count);
}

/* After '(': "A|ms.B@13 ..." */
static short parse_operator(parser *p)
{
    ort_term t = blank('(');
    t.text = p->at;
    while (ort_text_is_name(p->at[t.length]) || p->at[t.length] == '|' || p->at[t.length] == '.')
        t.length++;
    p->at += t.length;
    if (*p->at == '@') {
        char *end;
        t.since = (short)strtol(p->at + 1, &end, 10);
        p->at = end;
    }
    return parse_operands(p, t);
}

/* ---- named forms */

static const char *form_of(const parser *p, const char *name, int length)
{
    for (const char *const *form = p->forms; form && *form; form++)
        if (!strncmp(*form, name, (size_t)length) && (*form)[length] == '(')
            return *form;
    return NULL;
}

/* "(x, g):" of the form, "(x, (Erf y))" of the text: terms by parameter. */
static scope parse_arguments(parser *p, const char **body, const char *form)
{
    scope inner = {.count = 0};
    const char *param = strchr(form, '(') + 1;
    for (expect(p, '('); *param != ')' && !p->failed; inner.count++) {
        int length = word_length(param);
        assert(inner.count < MAX_PARAMS);
        inner.param[inner.count] = (ort_text_name){param, length};
        inner.term[inner.count] = parse_sum(p);
        param += length + strspn(param + length, ", ");
        take(p, ',');
    }
    expect(p, ')');
    *body = param + 2;
    return inner;
}

/* After '@'. */
static short parse_form(parser *p)
{
    int length = word_length(p->at), count = 0;
    short alternatives[MAX_ALTERNATIVES];
    const char *form = form_of(p, p->at, length), *body;
    assert(form && "a named form of the table");
    p->at += length;
    scope inner = parse_arguments(p, &body, form);
    parser q = {.out = p->out, .at = body, .forms = p->forms, .scope = &inner,
                .failed = p->failed};
    do {
        assert(count < MAX_ALTERNATIVES);
        alternatives[count++] = parse_sum(&q);
    } while (take(&q, '|') && !q.failed);
    assert(!*q.at || q.failed);
    p->failed = q.failed;
    ort_term t = blank('@');
    t.first = add_list(p, alternatives, count);
    t.count = (short)count;
    return add_term(p, t);
}

/* ---- what stands alone */

/* The term that a parameter of the form stands for, or -1. */
static short argument_of(const parser *p, const char *name, int length)
{
    for (int i = 0; p->scope && i < p->scope->count; i++)
        if (p->scope->param[i].length == length &&
            !memcmp(p->scope->param[i].text, name, (size_t)length))
            return p->scope->term[i];
    return -1;
}

static short parse_value(parser *p, char kind)
{
    ort_term t = blank(kind);
    int word = word_length(p->at);
    short argument = kind == 'x' ? argument_of(p, p->at, word) : -1;
    assert(word > 0);
    if (argument >= 0) {
        p->at += word;
        return argument;
    }
    t.name = name_of(p, p->at, word);
    p->at += word;
    if (kind != '$' && *p->at && strchr(".:=", *p->at)) { /* ".i8:3,4" */
        t.text = p->at;
        t.length = (int)strcspn(p->at, " \n();?");
        p->at += t.length;
    }
    t.optional = *p->at == '?';
    p->at += t.optional;
    return add_term(p, t);
}

static short parse_number(parser *p, char kind)
{
    ort_term t = blank(kind);
    char *end;
    t.number = ort_parse_double(p->at, &end);
    assert(end > p->at);
    p->at = end;
    return add_term(p, t);
}

static short parse_list(parser *p)
{
    ort_term t = blank('[');
    t.text = p->at;
    t.length = (int)strcspn(p->at, "]");
    for (int i = 0; i < t.length; i++)
        if (p->at[i] == '$')
            name_of(p, p->at + i + 1, word_length(p->at + i + 1));
    p->at += t.length;
    expect(p, ']');
    return add_term(p, t);
}

/* After '(': a node, or an expression. */
static short parse_parenthesis(parser *p)
{
    skip_space(p);
    if (isupper((unsigned char)*p->at) || !strncmp(p->at, "ms.", 3) || !strncmp(p->at, "_ ", 2))
        return parse_operator(p);
    short inner = parse_sum(p);
    expect(p, ')');
    return inner;
}

/* After '-': a negative number, an absent input, the negative of what follows. */
static short parse_minus(parser *p)
{
    if (isdigit((unsigned char)*p->at)) {
        short number = parse_number(p, '0');
        if (!p->failed)
            p->out->terms.data[number].number *= -1;
        return number;
    }
    if (!*p->at || isspace((unsigned char)*p->at) || *p->at == ')')
        return add_term(p, blank('-'));
    ort_term t = blank('(');
    t.text = "Neg";
    t.length = 3;
    short operand = parse_primary(p);
    return add_node(p, t, &operand, 1);
}

static short parse_atom(parser *p)
{
    char c = *p->at;
    if (isdigit((unsigned char)c))
        return parse_number(p, '0');
    if (c == '_' && !ort_text_is_name(p->at[1])) {
        p->at++;
        return add_term(p, blank('_'));
    }
    if (ort_text_is_name(c))
        return parse_value(p, 'x');
    p->at++;
    switch (c) {
    case '(': return parse_parenthesis(p);
    case '[': return parse_list(p);
    case '-': return parse_minus(p);
    case '@': return isdigit((unsigned char)*p->at) ? parse_number(p, 'i') : parse_form(p);
    case '#':
    case '$': return parse_value(p, c);
    default:
        assert(!"a term of a graph's text");
        p->failed = true;
        return 0;
    }
}

static short parse_primary(parser *p)
{
    short name = -1;
    skip_space(p);
    bool shared = *p->at == '+';
    p->at += shared;
    int word = word_length(p->at);
    if (word && p->at[word] == ':' && (p->at[word + 1] == '(' || p->at[word + 1] == '@')) {
        name = name_of(p, p->at, word);
        p->at += word + 1;
    }
    short self = parse_atom(p);
    if (!p->failed && (shared || name >= 0)) {
        ort_term *t = &p->out->terms.data[self];
        assert(name < 0 || t->name < 0);
        t->shared = shared;
        t->name = name >= 0 ? name : t->name;
    }
    return self;
}

/* ---- arithmetic */

static short parse_binary(parser *p, short (*operand)(parser *), const char *signs,
                          const char *const *op_types)
{
    short pair[2] = {operand(p)};
    for (;;) {
        skip_space(p);
        const char *sign = *p->at ? strchr(signs, *p->at) : NULL;
        if (!sign || p->failed)
            return pair[0];
        p->at++;
        ort_term t = blank('(');
        t.text = op_types[sign - signs];
        t.length = 3;
        pair[1] = operand(p);
        pair[0] = add_node(p, t, pair, 2);
    }
}

static short parse_product(parser *p)
{
    static const char *const op_types[] = {"Mul", "Div"};
    return parse_binary(p, parse_primary, "*/", op_types);
}

static short parse_sum(parser *p)
{
    static const char *const op_types[] = {"Add", "Sub"};
    return parse_binary(p, parse_product, "+-", op_types);
}

/* ---- statements */

/* "a,b =", if it stands here. */
static void parse_outputs(parser *p, ort_statement *s)
{
    const char *at = p->at;
    short names[MAX_INPUTS];
    while (ort_text_is_name(*at) || *at == ',' || *at == ' ')
        at++;
    if (*at != '=')
        return;
    for (; !take(p, '='); take(p, ',')) {
        int word = word_length(p->at);
        assert(word && s->count < MAX_INPUTS);
        names[s->count++] = name_of(p, p->at, word);
        p->at += word;
    }
    s->first = add_list(p, names, s->count);
}

static void parse_choice(parser *p)
{
    skip_space(p);
    ort_choice choice = {.condition = p->at, .first = (short)p->out->statements.count};
    for (int word; (word = word_length(p->at)) && p->at[word] == '?'; skip_space(p)) {
        p->at += word + 1;
        choice.condition_length = (int)(p->at - choice.condition);
    }
    do {
        ort_statement s = {0};
        skip_space(p);
        if (!*p->at)
            break;
        parse_outputs(p, &s);
        s.term = parse_sum(p);
        p->failed |= !ort_vec_push(&p->out->statements, s);
        choice.count++;
    } while (take(p, ';') && !p->failed);
    p->failed |= !ort_vec_push(&p->out->choices, choice);
}

bool ort_text_parse(ort_text *parsed, const char *text, const char *const *forms)
{
    parser p = {.out = parsed, .at = text, .forms = forms};
    memset(parsed, 0, sizeof *parsed);
    do
        parse_choice(&p);
    while (take(&p, '|') && !p.failed);
    assert(!*p.at || p.failed);
    return !p.failed;
}

void ort_text_release(ort_text *parsed)
{
    ort_vec_release(&parsed->terms);
    ort_vec_release(&parsed->terms_of);
    ort_vec_release(&parsed->attrs);
    ort_vec_release(&parsed->names);
    ort_vec_release(&parsed->statements);
    ort_vec_release(&parsed->choices);
}
