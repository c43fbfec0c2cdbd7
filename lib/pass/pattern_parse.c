/* pattern_parse.c - the text of a pattern (pattern.h) as terms, in order of the text. */
#include "pass/pattern_match.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "base/strbuf.h"

typedef struct parser {
    ort_pattern *p;
    const char *at;
} parser;

static void skip_space(parser *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

bool ort_pattern_is_name(char c)
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
    while (ort_pattern_is_name(text[length]))
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
    while (ort_pattern_is_name(r->at[length]) || r->at[length] == '|' || r->at[length] == '.')
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
    } else if (c == '-' || (c == '_' && !ort_pattern_is_name(r->at[1]))) {
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

void ort_pattern_parse(ort_pattern *pattern, const char *text)
{
    parser r = {pattern, text};
    pattern->text = text;
    pattern->term_count = pattern->name_count = 0;
    parse_term(&r);
    skip_space(&r);
    assert(!*r.at && pattern->terms[0].kind == '(');
}
