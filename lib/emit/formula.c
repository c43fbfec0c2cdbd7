/* formula.c - arithmetic expressions into nodes, by recursive descent. The texts are the
 * rule tables' own: what doesn't parse is a defect and asserts. */
#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "emit/emit.h"

typedef struct formula {
    ort_emit *e;
    const char *at;       /* next character */
    ort_id letter[26];
    ort_id like;          /* gives numbers their element type */
} formula;

static ort_id sum(formula *f);

static void skip_blanks(formula *f)
{
    while (*f->at == ' ')
        f->at++;
}

static bool take(formula *f, char c)
{
    skip_blanks(f);
    if (*f->at != c)
        return false;
    f->at++;
    return true;
}

/* The attribute of the node, or its default in the operator's row. */
static double attribute(const formula *f, const char *name)
{
    const ort_node *node = f->e->at;
    const ort_attr *attr = ort_node_attr(node, name);
    ort_schema schema;
    if (attr && attr->type == ORT_ATTR_FLOAT)
        return (double)attr->f;
    if (ort_schema_parse(node->op, &schema, NULL) == ORT_OK)
        for (int i = 0; i < schema.attr_count; i++)
            if (!strcmp(schema.attrs[i].name, name))
                return (double)strtof(schema.attrs[i].fallback, NULL);
    assert(!"a formula names an attribute that the operator hasn't");
    return 0;
}

static ort_id call(formula *f, const char *name)
{
    ort_id args[3] = {ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE};
    int count = 0;
    do {
        assert(count < 3);
        args[count++] = sum(f);
    } while (take(f, ','));
    bool closed = take(f, ')');
    assert(closed);
    (void)closed;
    return ort_emit_op(f->e, name, args, count, NULL, 0);
}

static ort_id name_or_call(formula *f)
{
    char name[32];
    size_t length = 0;
    while (isalnum((unsigned char)f->at[length]) || f->at[length] == '_')
        length++;
    assert(length > 0 && length < sizeof name);
    memcpy(name, f->at, length);
    name[length] = '\0';
    f->at += length;
    if (take(f, '('))
        return call(f, name);
    if (length == 1)
        return f->letter[name[0] - 'a'];
    return ort_emit_number(f->e, f->like, attribute(f, name));
}

static ort_id primary(formula *f)
{
    skip_blanks(f);
    if (take(f, '-'))
        return ort_emit_op1(f->e, "Neg", primary(f));
    if (take(f, '(')) {
        ort_id inner = sum(f);
        bool closed = take(f, ')');
        assert(closed);
        (void)closed;
        return inner;
    }
    if (isdigit((unsigned char)*f->at)) {
        char *end;
        double number = strtod(f->at, &end);
        f->at = end;
        return ort_emit_number(f->e, f->like, number);
    }
    return name_or_call(f);
}

static ort_id product(formula *f)
{
    ort_id left = primary(f);
    for (;;) {
        if (take(f, '*'))
            left = ort_emit_op2(f->e, "Mul", left, primary(f));
        else if (take(f, '/'))
            left = ort_emit_op2(f->e, "Div", left, primary(f));
        else
            return left;
    }
}

static ort_id sum(formula *f)
{
    ort_id left = product(f);
    for (;;) {
        if (take(f, '+'))
            left = ort_emit_op2(f->e, "Add", left, product(f));
        else if (take(f, '-'))
            left = ort_emit_op2(f->e, "Sub", left, product(f));
        else
            return left;
    }
}

ort_id ort_emit_formula(ort_emit *e, const char *text, const char *letters, ...)
{
    formula f = {.e = e, .at = text, .like = ORT_ID_NONE};
    va_list args;
    for (int i = 0; i < 26; i++)
        f.letter[i] = ORT_ID_NONE;
    va_start(args, letters);
    for (const char *p = letters; *p; p++) {
        ort_id id = va_arg(args, ort_id);
        f.letter[*p - 'a'] = id;
        if (p == letters)
            f.like = id;
    }
    va_end(args);
    ort_id result = sum(&f);
    assert(!*f.at);
    return result;
}
