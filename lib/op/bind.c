/* bind.c - states of nodes filled from attributes, as the tables of families say (bind.h). */
#include "op/bind.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "op/op.h"

ort_attr_type ort_bind_type(const ort_bind *bind)
{
    switch (bind->kind) {
    case ORT_BIND_FLOAT:
    case ORT_BIND_DOUBLE: return ORT_ATTR_FLOAT;
    case ORT_BIND_STRING: return ORT_ATTR_STRING;
    case ORT_BIND_INTS: return ORT_ATTR_INTS;
    case ORT_BIND_FLOATS: return ORT_ATTR_FLOATS;
    case ORT_BIND_STRINGS: return ORT_ATTR_STRINGS;
    case ORT_BIND_TENSOR: return ORT_ATTR_TENSOR;
    case ORT_BIND_GIVEN:
    case ORT_BIND_READ: return ORT_ATTR_UNDEFINED;
    default: return bind->words ? ORT_ATTR_STRING : ORT_ATTR_INT;
    }
}

int ort_word_find(const char *words, const char *text, size_t length)
{
    for (int number = 0;;) {
        size_t n = strcspn(words, " |");
        if (n == length && !memcmp(words, text, n))
            return number;
        if (words[n] == '\0')
            return -1;
        number += words[n] == ' ';
        words += n + 1;
    }
}

/* ---- messages */

static void append(char *text, size_t size, const char *separator, const char *word, int length)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%.*s", used ? separator : "", length, word);
}

/* "nearest, linear or cubic": the first name of each word. */
static const char *words_text(const char *words, char *text, size_t size)
{
    text[0] = '\0';
    for (;;) {
        const char *next = strchr(words, ' ');
        append(text, size, next ? ", " : " or ", words, (int)strcspn(words, " |"));
        if (!next)
            return text;
        words = next + 1;
    }
}

/* "1 or more", "0, 1 or 2", "0 to 8" */
static const char *range_text(const ort_bind *b, char *text, size_t size)
{
    long long least = b->least, most = b->most;
    if (b->most == INT64_MAX)
        snprintf(text, size, "%lld or more", least);
    else if (b->most - b->least > 2)
        snprintf(text, size, "%lld to %lld", least, most);
    else if (b->most - b->least == 2)
        snprintf(text, size, "%lld, %lld or %lld", least, least + 1, most);
    else
        snprintf(text, size, "%lld or %lld", least, most);
    return text;
}

static ort_status bad_word(const ort_bind *b, ort_string s, ort_error *err)
{
    char text[200];
    return ort_error_set(err, ORT_ERROR_MODEL, "attribute %s is '%.*s', needs %s", b->attr,
                         (int)ort_min_i64((int64_t)s.length, 40), s.ptr,
                         words_text(b->words, text, sizeof text));
}

static ort_status bad_number(const ort_bind *b, int64_t value, ort_error *err)
{
    char text[80];
    if (!b->ranged)
        return ort_error_set(err, ORT_ERROR_MODEL, "attribute %s is %lld, beyond 32 bits", b->attr,
                             (long long)value);
    return ort_error_set(err, ORT_ERROR_MODEL, "attribute %s is %lld, needs %s", b->attr,
                         (long long)value, range_text(b, text, sizeof text));
}

/* ---- values */

/* "[0 2 3]" of a row */
static const int64_t *parse_list(const char *text, ort_arena *arena, size_t *count)
{
    int64_t *list = ort_arena_array(arena, strcspn(text, "]"), sizeof *list);
    while (list && *(text += strspn(text, "[ ")) != ']') {
        char *end;
        list[(*count)++] = strtoll(text, &end, 10);
        text = end;
    }
    return list;
}

/* What the node says, or else its row, into *own. NULL: neither; what the row doesn't know counts
 * for nothing in the node. */
static const ort_attr *find_value(const ort_bind *b, const ort_node *node, ort_arena *arena,
                                  ort_attr *own)
{
    const char *text;
    ort_attr_type type = ort_bind_type(b), row = ort_schema_attr(node->op, b->attr, &text);
    assert(row == type || (row == ORT_ATTR_UNDEFINED && b->optional));
    const ort_attr *attr = row == type ? ort_node_attr_of(node, b->attr, type) : NULL;
    if (attr || !text || row != type)
        return attr;
    *own = (ort_attr){.type = type};
    if (type == ORT_ATTR_INT)
        own->i = strtoll(text, NULL, 10);
    else if (type == ORT_ATTR_FLOAT)
        own->f = (float)ort_parse_double(text, NULL);
    else if (type == ORT_ATTR_STRING)
        own->s = (ort_string){text, strcspn(text, " ")};
    else if (type == ORT_ATTR_INTS)
        own->ints = parse_list(text, arena, &own->count);
    return own; /* other lists: empty */
}

static ort_status store_int(const ort_bind *b, char *member, int64_t value, ort_error *err)
{
    bool fits = b->kind != ORT_BIND_INT || value == (int)value;
    if (!fits || (b->ranged && (value < b->least || value > b->most)))
        return bad_number(b, value, err);
    if (b->kind == ORT_BIND_BOOL)
        *(bool *)member = value != 0;
    else if (b->kind == ORT_BIND_INT64)
        memcpy(member, &value, sizeof value);
    else
        memcpy(member, &(int){(int)value}, sizeof(int));
    return ORT_OK;
}

static ort_status store_word(const ort_bind *b, char *member, ort_string s, ort_error *err)
{
    int number = ort_word_find(b->words, s.ptr, s.length);
    return number < 0 ? bad_word(b, s, err) : store_int(b, member, number, err);
}

static ort_status store(const ort_bind *b, char *member, const ort_attr *attr, ort_error *err)
{
    void *to = member;
    switch (b->kind) {
    case ORT_BIND_GIVEN:
    case ORT_BIND_READ: break; /* done before */
    case ORT_BIND_FLOAT: *(float *)to = attr->f; break;
    case ORT_BIND_DOUBLE: *(double *)to = (double)attr->f; break;
    case ORT_BIND_STRING: *(ort_string *)to = attr->s; break;
    case ORT_BIND_INTS: *(ort_ints *)to = (ort_ints){attr->ints, attr->count}; break;
    case ORT_BIND_FLOATS: *(ort_floats *)to = (ort_floats){attr->floats, attr->count}; break;
    case ORT_BIND_STRINGS: *(ort_strings *)to = (ort_strings){attr->strings, attr->count}; break;
    case ORT_BIND_TENSOR: *(const ort_tensor **)to = attr->t; break;
    default:
        return b->words ? store_word(b, member, attr->s, err) : store_int(b, member, attr->i, err);
    }
    return ORT_OK;
}

static bool is_given(const ort_bind *b, const ort_node *node)
{
    const char *text;
    return ort_node_has(node, b->attr) && ort_schema_attr(node->op, b->attr, &text);
}

/* Neither the node nor its row gives a value. */
static ort_status store_nothing(const ort_bind *b, char *member, ort_error *err)
{
    void *to = member;
    if (b->kind > ORT_BIND_DOUBLE)
        return ORT_OK;
    if (!b->optional)
        return ort_error_set(err, ORT_ERROR_MODEL, "attribute %s is missing", b->attr);
    if (b->kind == ORT_BIND_FLOAT)
        *(float *)to = (float)b->otherwise;
    else if (b->kind == ORT_BIND_DOUBLE)
        *(double *)to = b->otherwise;
    else
        return store_int(b, member, (int64_t)b->otherwise, err);
    return ORT_OK;
}

ort_status ort_bind_attrs(const ort_bind *table, const ort_node *node, ort_arena *arena,
                          void *state, ort_error *err)
{
    for (const ort_bind *b = table; b->attr; b++) {
        char *member = (char *)state + b->at;
        ort_attr own;
        if (b->kind == ORT_BIND_GIVEN) {
            *(bool *)member = is_given(b, node);
            continue;
        }
        if (b->kind == ORT_BIND_READ) {
            ORT_TRY(b->read(node, member, err));
            continue;
        }
        const ort_attr *attr = find_value(b, node, arena, &own);
        ORT_TRY(attr ? store(b, member, attr, err) : store_nothing(b, member, err));
    }
    return ORT_OK;
}

ort_status ort_op_prepare(ort_prep *p, ort_error *err)
{
    const ort_op_impl *impl = p->op->impl;
    if (impl->state && !ort_prep_state(p, impl->state))
        return ort_error_memory(err, impl->state);
    if (impl->bind)
        ORT_TRY(ort_bind_attrs(impl->bind, p->node, p->arena, p->state, err));
    return impl->prepare ? impl->prepare(p, err) : ORT_OK;
}
