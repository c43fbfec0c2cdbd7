/* schema.c - parses the signature, type and attribute strings of an operator row, and what its
 * history adds to them (op.h says how they are written). Only check, reports and coverage need the
 * parsed form, so nothing is kept: parsing a row takes a microsecond or two.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "op/op.h"

/* ---- history */

/* "name" and behind it `mark`. */
static bool begins(const char *text, const char *name, size_t length, char mark)
{
    return !strncmp(text, name, length) && text[length] == mark;
}

/* The blank behind a word, or the end; a list in brackets belongs to its word. Words are short:
 * strcspn takes longer. */
static const char *word_end(const char *p)
{
    while (*p != '\0' && *p != ' ' && *p != '[')
        p++;
    return *p == '[' ? p + strcspn(p, "]") + 1 : p;
}

/* The next change up to the version that `op` is: "T+bf16" or "+name:kind"; NULL: none is left. */
static const char *next_change(const ort_op *op, const char **rest)
{
    const char *p = *rest;
    while (p != NULL && *p >= '0' && *p <= '9') {
        int version = 0;
        for (; *p >= '0' && *p <= '9'; p++)
            version = version * 10 + (*p - '0');
        if (version > op->since)
            return NULL;
        p += *p == ':' || *p == ' ';
    }
    if (p == NULL || *p == '\0')
        return NULL;
    *rest = word_end(p);
    *rest += **rest == ' ';
    return p;
}

/* ---- signature */

static ort_status bad_row(const ort_op *op, const char *what, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_RUN, "operator table: %s-%d: malformed %s", op->name,
                         op->since, what);
}

/* One parameter "name?:T", "name*0:T"; *text is left at ',' or the end. */
static bool parse_param(const char **text, ort_param *param)
{
    const char *p = *text;
    size_t length = strcspn(p, "?*:,");
    memset(param, 0, sizeof *param);
    if (length == 0 || length >= sizeof param->name)
        return false;
    memcpy(param->name, p, length);
    p += length;
    param->minimum = 1;
    for (; *p == '?' || *p == '*'; p++) {
        if (*p == '?')
            param->optional = true;
        else if (param->variadic)
            param->mixed = true;
        else
            param->variadic = true;
    }
    if (isdigit((unsigned char)*p)) {
        char *end;
        param->minimum = (int)strtol(p, &end, 10);
        p = end;
    }
    if (*p++ != ':')
        return false;
    /* A type may hold commas inside parentheses: "map(str,f32)". */
    int depth = 0;
    for (length = 0; p[length] != '\0' && p[length] != ' '; length++) {
        if (p[length] == '(')
            depth++;
        else if (p[length] == ')')
            depth--;
        else if (p[length] == ',' && depth == 0)
            break;
    }
    if (length == 0 || length >= sizeof param->type)
        return false;
    memcpy(param->type, p, length);
    *text = p + length;
    return true;
}

/* A comma-separated list up to ' ' or the end; returns the count or -1. */
static int parse_params(const char **text, ort_param *params)
{
    int count = 0;
    while (**text != '\0' && **text != ' ' && **text != '-') {
        if (count == ORT_SCHEMA_MAX || !parse_param(text, &params[count++]))
            return -1;
        if (**text == ',')
            ++*text;
    }
    return count;
}

static void arity(const ort_param *params, int count, int *minimum, int *maximum)
{
    *minimum = 0;
    *maximum = count;
    for (int i = 0; i < count; i++) {
        if (params[i].variadic) {
            *maximum = -1;
            if (params[i].minimum > 0)
                *minimum = i + params[i].minimum;
        } else if (!params[i].optional) {
            *minimum = i + 1;
        }
    }
}

/* Skip one parameter of a signature; what its flags say. */
static const char *skip_param(const char *p, bool *optional, int *stars, int *minimum)
{
    int depth = 0;
    *optional = false;
    *stars = 0;
    *minimum = 1;
    for (; *p != ':' && *p != '\0'; p++) {
        *optional = *optional || *p == '?';
        *stars += *p == '*';
        if (isdigit((unsigned char)*p) && *stars)
            *minimum = *p - '0';
    }
    for (; *p != '\0' && *p != ' ' && (*p != ',' || depth > 0); p++)
        depth += (*p == '(') - (*p == ')');
    return *p == ',' ? p + 1 : p;
}

static bool any_absent(const ort_id *ids, int count)
{
    for (int i = 0; i < count; i++)
        if (ids[i] == ORT_ID_NONE)
            return true;
    return false;
}

/* Slots of one side against its part of the signature, which ends at ' ' or '\0'. A variadic input
 * of one type has no holes. */
static bool slots_fit(const char **sig, const ort_id *ids, int count, bool all_required,
                      bool inputs)
{
    int slot = 0;
    bool unbounded = false;
    while (count > 0 && ids[count - 1] == ORT_ID_NONE)
        count--;
    while (**sig != '\0' && **sig != ' ' && **sig != '-') {
        bool optional;
        int minimum, stars;
        *sig = skip_param(*sig, &optional, &stars, &minimum);
        if (stars) {
            unbounded = true;
            if (all_required && count - slot < minimum)
                return false;
            if (inputs && stars == 1 && any_absent(ids + slot, count - slot))
                return false;
        } else if (!optional && all_required && (slot >= count || ids[slot] == ORT_ID_NONE)) {
            return false;
        }
        slot++;
    }
    return unbounded || count <= slot;
}

bool ort_schema_fits(const ort_op *op, const ort_node *node)
{
    const char *p = op->sig;
    if (!slots_fit(&p, node->inputs, node->input_count, true, true))
        return false;
    while (*p == ' ' || *p == '-' || *p == '>')
        p++;
    bool single = strchr(p, ',') == NULL;
    return slots_fit(&p, node->outputs, node->output_count, single, false) &&
           node->output_count > 0;
}

/* ---- attributes */

static ort_attr_type attr_kind(const char *text, size_t length)
{
    static const struct {
        const char *code;
        ort_attr_type type;
    } kinds[] = {
        {"f", ORT_ATTR_FLOAT},          {"i", ORT_ATTR_INT},      {"s", ORT_ATTR_STRING},
        {"t", ORT_ATTR_TENSOR},         {"g", ORT_ATTR_GRAPH},    {"fs", ORT_ATTR_FLOATS},
        {"is", ORT_ATTR_INTS},          {"ss", ORT_ATTR_STRINGS}, {"ts", ORT_ATTR_TENSORS},
        {"sp", ORT_ATTR_SPARSE_TENSOR}, {"tp", ORT_ATTR_TYPE_PROTO},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].code) == length && !memcmp(kinds[i].code, text, length))
            return kinds[i].type;
    return ORT_ATTR_UNDEFINED;
}

/* "name:kind", "name:kind!", "name:kind=default"; a default in brackets may hold spaces. */
static bool parse_attr(const char **text, ort_attr_spec *spec)
{
    const char *p = *text;
    size_t length = strcspn(p, ":");
    memset(spec, 0, sizeof *spec);
    if (p[length] != ':' || length == 0 || length >= sizeof spec->name)
        return false;
    memcpy(spec->name, p, length);
    p += length + 1;
    length = strcspn(p, "=! ");
    spec->type = attr_kind(p, length);
    p += length;
    if (*p == '!') {
        spec->required = true;
        p++;
    } else if (*p == '=') {
        p++;
        length = *p == '[' ? strcspn(p, "]") + 1 : strcspn(p, " ");
        if (length >= sizeof spec->fallback)
            return false;
        memcpy(spec->fallback, p, length);
        p += length;
    }
    *text = p;
    return spec->type != ORT_ATTR_UNDEFINED;
}

static bool add_attr(const char **text, ort_schema *schema)
{
    return schema->attr_count < ORT_SCHEMA_MAX &&
           parse_attr(text, &schema->attrs[schema->attr_count++]);
}

static bool parse_attrs(const char *p, ort_schema *schema)
{
    for (p += strspn(p, " "); *p != '\0'; p += strspn(p, " "))
        if (!add_attr(&p, schema))
            return false;
    return true;
}

ort_status ort_schema_parse(const ort_op *op, ort_schema *schema, ort_error *err)
{
    const char *p = op->sig;
    /* 16 KB need no clearing */
    schema->input_count = schema->output_count = schema->attr_count = 0;
    schema->input_count = parse_params(&p, schema->inputs);
    while (*p == ' ' || *p == '-' || *p == '>')
        p++;
    schema->output_count = parse_params(&p, schema->outputs);
    if (schema->input_count < 0 || schema->output_count < 0 || *p != '\0')
        return bad_row(op, "signature", err);
    arity(schema->inputs, schema->input_count, &schema->min_inputs, &schema->max_inputs);
    arity(schema->outputs, schema->output_count, &schema->min_outputs, &schema->max_outputs);

    if (!parse_attrs(op->attrs, schema))
        return bad_row(op, "attributes", err);
    const char *change = op->history;
    while ((p = next_change(op, &change)) != NULL) {
        bool is_attr = *p++ == '+';
        if (is_attr && !add_attr(&p, schema))
            return bad_row(op, "history", err);
    }
    return ORT_OK;
}

/* ":kind" and what follows, of an attribute that the row has at this version; "". */
static const char *find_attr(const ort_op *op, const char *name)
{
    size_t length = strlen(name);
    for (const char *p = op->attrs; *p != '\0'; p += *p == ' ') {
        if (*p == *name && begins(p, name, length, ':'))
            return p + length;
        p = word_end(p);
    }
    const char *change = op->history;
    for (const char *p; (p = next_change(op, &change)) != NULL;)
        if (*p == '+' && begins(p + 1, name, length, ':'))
            return p + 1 + length;
    return "";
}

ort_attr_type ort_schema_attr(const ort_op *op, const char *name, const char **text)
{
    const char *p = find_attr(op, name);
    *text = NULL;
    if (*p != ':')
        return ORT_ATTR_UNDEFINED;
    size_t kind = strcspn(++p, "=! ");
    if (p[kind] == '=')
        *text = p + kind + 1;
    return attr_kind(p, kind);
}

bool ort_op_has_attr(const ort_op *op, const char *name) { return *find_attr(op, name) != '\0'; }

/* The default's text, up to ' ' or the end; "" without one. */
static const char *default_of(const ort_node *node, const char *name)
{
    const char *p = node->op ? find_attr(node->op, name) : "";
    p += strcspn(p, "=! ");
    return *p == '=' ? p + 1 : "";
}

int64_t ort_node_attr_int(const ort_node *node, const char *name)
{
    const ort_attr *attr = ort_node_attr_of(node, name, ORT_ATTR_INT);
    return attr ? attr->i : strtoll(default_of(node, name), NULL, 10);
}

float ort_node_attr_float(const ort_node *node, const char *name)
{
    const ort_attr *attr = ort_node_attr_of(node, name, ORT_ATTR_FLOAT);
    return attr ? attr->f : (float)ort_parse_double(default_of(node, name), NULL);
}

static ort_string string_of(const ort_node *node, const char *name)
{
    const ort_attr *attr = ort_node_attr_of(node, name, ORT_ATTR_STRING);
    const char *fallback = attr ? NULL : default_of(node, name);
    return attr ? attr->s : (ort_string){fallback, strcspn(fallback, " ")};
}

bool ort_node_attr_is(const ort_node *node, const char *name, const char *text)
{
    ort_string s = string_of(node, name);
    return strlen(text) == s.length && !memcmp(s.ptr, text, s.length);
}

const char *ort_node_attr_text(const ort_node *node, const char *name, char *text, size_t size)
{
    ort_string s = string_of(node, name);
    snprintf(text, size, "%.*s", (int)s.length, s.ptr);
    return text;
}

const ort_param *ort_schema_param(const ort_param *params, int count, int slot)
{
    if (slot < count)
        return &params[slot];
    return count && params[count - 1].variadic ? &params[count - 1] : NULL;
}

/* ---- type sets */

/* Codes behind a group letter. */
static const char *group_members(const char *token, size_t length)
{
    static const struct {
        const char *group, *members;
    } groups[] = {
        {"F", "f16,f32,f64"},     {"I", "i8,i16,i32,i64"},
        {"U", "u8,u16,u32,u64"},  {"C", "c64,c128"},
        {"F8", "f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz"},
        {"F6", "f6e2m3,f6e3m2"},  {"Q4", "i4,u4"},
        {"Q2", "i2,u2"},
    };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (strlen(groups[i].group) == length && !memcmp(groups[i].group, token, length))
            return groups[i].members;
    return NULL;
}

bool ort_schema_is_group(const char *token, size_t length)
{
    return group_members(token, length) != NULL;
}

static bool is_code_of(const char *token, size_t length, ort_dtype dtype)
{
    const char *code = ort_dtype_get(dtype)->code;
    return code != NULL && strlen(code) == length && !memcmp(code, token, length);
}

/* Does the comma-separated list [p, end) allow this type? Recurses into seq(), opt(), map(). */
static bool list_allows(const char *p, const char *end, const ort_type *type);

static const char *token_end(const char *p, const char *end)
{
    int depth = 0;
    for (; p < end; p++) {
        if (*p == '(')
            depth++;
        else if (*p == ')')
            depth--;
        else if (*p == ',' && depth == 0)
            break;
    }
    return p;
}

static bool element_allows(const char *p, const char *end, const ort_type *type)
{
    return type->element == NULL || list_allows(p, end, type->element);
}

static bool token_allows(const char *p, const char *end, const ort_type *type)
{
    size_t length = (size_t)(end - p);
    if (length > 4 && end[-1] == ')') {
        const char *inside = strchr(p, '(') + 1;
        if (!strncmp(p, "seq(", 4))
            return type->kind == ORT_TYPE_SEQUENCE && element_allows(inside, end - 1, type);
        if (!strncmp(p, "opt(", 4))
            return type->kind == ORT_TYPE_OPTIONAL && element_allows(inside, end - 1, type);
        if (!strncmp(p, "map(", 4)) {
            const char *comma = token_end(inside, end - 1);
            return type->kind == ORT_TYPE_MAP &&
                   (type->dtype == ORT_DTYPE_UNDEFINED ||
                    is_code_of(inside, (size_t)(comma - inside), type->dtype)) &&
                   element_allows(comma + 1, end - 1, type);
        }
        if (!strncmp(p, "sparse(", 7))
            return type->kind == ORT_TYPE_SPARSE;
    }
    if (length == 3 && !memcmp(p, "any", 3))
        return true;
    if (type->kind != ORT_TYPE_TENSOR)
        return false;
    const char *members = group_members(p, length);
    if (members != NULL)
        return list_allows(members, members + strlen(members), type);
    return is_code_of(p, length, type->dtype);
}

static bool list_allows(const char *p, const char *end, const ort_type *type)
{
    if (type->kind == ORT_TYPE_UNKNOWN ||
        (type->kind == ORT_TYPE_TENSOR && type->dtype == ORT_DTYPE_UNDEFINED))
        return true;
    while (p < end) {
        const char *stop = token_end(p, end);
        if (token_allows(p, stop, type))
            return true;
        p = stop < end ? stop + 1 : end;
    }
    return false;
}

/* What a type variable stands for, list by list: that of the row, then those that versions added. A
 * code stands for itself. */
typedef struct type_lists {
    const char *begin, *end;
    const char *changes; /* of the history, not read yet; NULL: a code has none */
} type_lists;

static type_lists first_types(const ort_op *op, const char *type)
{
    size_t length = strlen(type);
    for (const char *p = op->types; *p != '\0';) {
        const char *stop = p + strcspn(p, " ");
        if (begins(p, type, length, ':'))
            return (type_lists){p + length + 1, stop, op->history};
        p = *stop == ' ' ? stop + 1 : stop;
    }
    return (type_lists){type, type + length, NULL};
}

static bool next_types(const ort_op *op, const char *type, type_lists *lists)
{
    size_t length = strlen(type);
    for (const char *p; (p = next_change(op, &lists->changes)) != NULL;) {
        const char *stop = p + strcspn(p, " ");
        if (begins(p, type, length, '+')) {
            lists->begin = p + length + 1;
            lists->end = stop;
            return true;
        }
    }
    return false;
}

bool ort_schema_is_variable(const ort_op *op, const char *type)
{
    return first_types(op, type).begin != type;
}

bool ort_schema_allows(const ort_op *op, const char *type, const ort_type *actual)
{
    type_lists lists = first_types(op, type);
    do {
        if (list_allows(lists.begin, lists.end, actual))
            return true;
    } while (next_types(op, type, &lists));
    return false;
}

/* Groups as their members. False when there is no room. */
static bool append_types(const type_lists *list, char *text, size_t size, size_t *used)
{
    for (const char *p = list->begin, *stop; p < list->end; p = stop + (stop < list->end)) {
        stop = token_end(p, list->end);
        const char *members = group_members(p, (size_t)(stop - p));
        int length = members ? (int)strlen(members) : (int)(stop - p);
        int n = snprintf(text + *used, size - *used, "%s%.*s", *used > 0 ? "," : "", length,
                         members ? members : p);
        if (n < 0 || (size_t)n >= size - *used)
            return false;
        *used += (size_t)n;
    }
    return true;
}

char *ort_schema_format_types(const ort_op *op, const char *type, char *text, size_t size)
{
    type_lists lists = first_types(op, type);
    size_t used = 0;
    if (size == 0)
        return text;
    text[0] = '\0';
    while (append_types(&lists, text, size, &used) && next_types(op, type, &lists))
        continue;
    return text;
}
