/* custom_row.c - from the table of an operator library to registry rows: everything that can be
 * wrong with a row is found here, once, so that check, inference and reports may trust it as they
 * trust built-in rows.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "op/custom.h"

/* Members of later versions lie behind these. */
#define SMALLEST_ROW (offsetof(ort_ops_row, run) + sizeof((ort_ops_row *)0)->run)
#define LARGEST_ROW 4096
#define ALL_FLAGS                                                                                  \
    ((unsigned)ORT_OPS_IMPURE | (unsigned)ORT_OPS_DYNAMIC | (unsigned)ORT_OPS_ANY_ATTRIBUTES)

const ort_ops_library *ort_op_library(const ort_op *op)
{
    return op->impl == &ort_custom_impl ? ort_custom_of(op)->library : NULL;
}

static ort_status bad_row(const ort_ops_row *row, ort_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static ort_status bad_row(const ort_ops_row *row, ort_error *err, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return ort_error_set(err, ORT_ERROR_USAGE, "operator %s-%d: %s", row->name ? row->name : "?",
                         row->since, text);
}

/* ---- names */

static bool is_identifier(const char *text)
{
    if (!text || strlen(text) > 63 || !(isalpha((unsigned char)*text) || *text == '_'))
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && *text != '_')
            return false;
    return true;
}

/* ':' separates domain and name in the index. */
static bool is_domain(const char *text)
{
    if (strlen(text) > 127)
        return false;
    for (; *text; text++)
        if (!isgraph((unsigned char)*text) || *text == ':')
            return false;
    return true;
}

/* ---- signature and types */

static bool is_type_code(const char *token, size_t length)
{
    char code[16];
    if (length == 0 || length >= sizeof code)
        return false;
    memcpy(code, token, length);
    code[length] = '\0';
    ort_dtype dtype = ort_dtype_find(code);
    return dtype != ORT_DTYPE_UNDEFINED && !strcmp(ort_dtype_get(dtype)->code, code);
}

/* Every code or group of the list; *bad is the first unknown one. */
static bool known_types(const char *list, const char **bad)
{
    for (;;) {
        size_t length = strcspn(list, ", ");
        if (!ort_schema_is_group(list, length) && !is_type_code(list, length)) {
            *bad = list;
            return false;
        }
        if (list[length] != ',')
            return true;
        list += length + 1;
    }
}

static ort_status check_types(const custom_op *c, ort_error *err)
{
    const char *p = c->op.types, *bad;
    while (*p) {
        size_t name = strcspn(p, ": "), token = strcspn(p, " ");
        if (p[name] != ':' || name == 0 || name > 31)
            return bad_row(&c->row, err, "types '%s': '%.*s' is not \"T:f32,i64\"", c->op.types,
                           (int)token, p);
        if (!known_types(p + name + 1, &bad))
            return bad_row(&c->row, err, "types '%s': '%.*s' is no element type", c->op.types,
                           (int)strcspn(bad, ", "), bad);
        p += token;
        p += strspn(p, " ");
    }
    return ORT_OK;
}

static ort_status check_params(const custom_op *c, const ort_param *params, int count,
                               ort_error *err)
{
    const char *bad;
    for (int i = 0; i < count; i++) {
        if (!is_identifier(params[i].name))
            return bad_row(&c->row, err, "signature '%s': '%s' is no name", c->op.sig,
                           params[i].name);
        if (params[i].variadic && i + 1 < count)
            return bad_row(&c->row, err, "signature '%s': '%s' is variadic, but not the last",
                           c->op.sig, params[i].name);
        if (ort_schema_is_variable(&c->op, params[i].type))
            continue;
        if (strchr(params[i].type, ',') || !known_types(params[i].type, &bad))
            return bad_row(&c->row, err,
                           "signature '%s': '%s' has type '%s', which is neither a variable of "
                           "types nor an element type",
                           c->op.sig, params[i].name, params[i].type);
    }
    return ORT_OK;
}

static ort_status check_signature(custom_op *c, ort_error *err)
{
    const char *arrow = c->op.sig ? strstr(c->op.sig, " -> ") : NULL;
    /* The parser of built-in rows takes any arrow; what is left over shows here. */
    if (!arrow || strchr(c->op.sig, ' ') != arrow || strchr(arrow + 4, ' ') ||
        c->op.sig[strlen(c->op.sig) - 1] == ',' || arrow[-(arrow > c->op.sig)] == ',')
        return bad_row(&c->row, err, "signature '%s' is not of the form \"X:T,B?:T -> Y:T\"",
                       c->op.sig ? c->op.sig : "");
    if (ort_schema_parse(&c->op, &c->schema, NULL) != ORT_OK)
        return bad_row(&c->row, err,
                       "signature '%s' or attributes '%s' don't parse; they look like \"X:T,B?:T "
                       "-> Y:T\" and \"alpha:f=0.5 axis:i!\"",
                       c->op.sig, c->op.attrs);
    ORT_TRY(check_params(c, c->schema.inputs, c->schema.input_count, err));
    ORT_TRY(check_params(c, c->schema.outputs, c->schema.output_count, err));
    if (c->schema.output_count == 0)
        return bad_row(&c->row, err, "signature '%s' has no output", c->op.sig);
    return ORT_OK;
}

/* ---- attributes and their defaults */

static bool parse_int(const char *text, char **end, int64_t *out)
{
    *out = strtoll(text, end, 10);
    return *end != text;
}

static bool parse_float(const char *text, char **end, float *out)
{
    *out = (float)ort_parse_double(text, end);
    return *end != text;
}

/* "[1,2,3]" into a list of the arena; false when it isn't one. */
static bool parse_list(const char *text, ort_attr *attr, ort_arena *arena)
{
    size_t most = 1;
    for (const char *p = text; *p; p++)
        most += *p == ',';
    int64_t *ints = ort_arena_array(arena, most, sizeof *ints);
    float *floats = ort_arena_array(arena, most, sizeof *floats);
    if (*text != '[' || !ints || !floats)
        return false;
    attr->ints = ints;
    attr->floats = floats;
    attr->count = 0;
    text += 1 + strspn(text + 1, " ");
    while (*text != ']') {
        char *end;
        bool ok = attr->type == ORT_ATTR_INTS ? parse_int(text, &end, &ints[attr->count])
                                              : parse_float(text, &end, &floats[attr->count]);
        if (!ok || attr->count++ == most)
            return false;
        text = end + strspn(end, " ");
        if (*text == ',' && text[1] != ']')
            text += 1 + strspn(text + 1, " ");
        else if (*text != ']')
            return false;
    }
    return text[1] == '\0';
}

static bool parse_default(const ort_attr_spec *spec, ort_attr *attr, ort_arena *arena)
{
    char *end = NULL;
    attr->name = spec->name;
    attr->type = spec->type;
    switch (spec->type) {
    case ORT_ATTR_INT: return parse_int(spec->fallback, &end, &attr->i) && !*end;
    case ORT_ATTR_FLOAT: return parse_float(spec->fallback, &end, &attr->f) && !*end;
    case ORT_ATTR_STRING:
        attr->s = (ort_string){spec->fallback, strlen(spec->fallback)};
        return true;
    case ORT_ATTR_INTS:
    case ORT_ATTR_FLOATS: return parse_list(spec->fallback, attr, arena);
    default: return false;
    }
}

static bool kind_allowed(ort_attr_type type)
{
    return (type >= ORT_ATTR_FLOAT && type <= ORT_ATTR_TENSOR) ||
           (type >= ORT_ATTR_FLOATS && type <= ORT_ATTR_TENSORS);
}

static ort_status check_attributes(custom_op *c, ort_arena *arena, ort_error *err)
{
    c->defaults = ort_arena_array(arena, (size_t)c->schema.attr_count + 1, sizeof *c->defaults);
    if (!c->defaults)
        return ort_error_memory(err, sizeof *c->defaults);
    for (int i = 0; i < c->schema.attr_count; i++) {
        const ort_attr_spec *spec = &c->schema.attrs[i];
        if (!is_identifier(spec->name))
            return bad_row(&c->row, err, "attributes '%s': '%s' is no name", c->op.attrs,
                           spec->name);
        for (int k = 0; k < i; k++)
            if (!strcmp(c->schema.attrs[k].name, spec->name))
                return bad_row(&c->row, err, "attributes '%s': '%s' stands twice", c->op.attrs,
                               spec->name);
        if (!kind_allowed(spec->type))
            return bad_row(&c->row, err,
                           "attribute '%s' is of a kind that operator libraries can't have; those "
                           "are f i s t fs is ss ts",
                           spec->name);
        if (spec->fallback[0] && !parse_default(spec, &c->defaults[i], arena))
            return bad_row(&c->row, err, "attribute '%s': its default '%s' doesn't parse",
                           spec->name, spec->fallback);
    }
    return ORT_OK;
}

/* ---- rows */

static ort_status check_row(const ort_ops_row *row, ort_error *err)
{
    if (!is_identifier(row->name))
        return bad_row(row, err, "its name must be an identifier of at most 63 characters");
    if (!row->domain || !is_domain(row->domain) || !strcmp(row->domain, ORT_INTERNAL))
        return bad_row(row, err, "'%s' can't be a domain", row->domain ? row->domain : "");
    if (row->since < 1)
        return bad_row(row, err, "since is %d, versions count from 1", row->since);
    if (row->flags & ~ALL_FLAGS)
        return bad_row(row, err, "flags 0x%x are unknown", row->flags & ~ALL_FLAGS);
    if (!row->run)
        return bad_row(row, err, "it has no run function");
    return ORT_OK;
}

static ort_status make_row(custom_op *c, ort_arena *arena, ort_error *err)
{
    const ort_ops_row *row = &c->row;
    ORT_TRY(check_row(row, err));
    c->op = (ort_op){.domain = strcmp(row->domain, "ai.onnx") ? row->domain : ONNX,
                     .name = row->name,
                     .since = row->since,
                     .sig = row->signature,
                     .types = row->types ? row->types : "",
                     .attrs = row->attributes ? row->attributes : "",
                     .impl = &ort_custom_impl};
    if (row->flags & ORT_OPS_IMPURE)
        c->op.traits |= ORT_TRAIT_RANDOM;
    if ((row->flags & ORT_OPS_DYNAMIC) || !row->infer)
        c->op.traits |= ORT_TRAIT_DYNAMIC;
    if (row->flags & ORT_OPS_ANY_ATTRIBUTES)
        c->op.traits |= ORT_TRAIT_ANY_ATTRIBUTES;
    ORT_TRY(check_types(c, err));
    ORT_TRY(check_signature(c, err));
    return check_attributes(c, arena, err);
}

/* A longer row is a newer one: it fits as long as it uses nothing new. */
static ort_status copy_row(const ort_ops_library *library, size_t index, ort_ops_row *row,
                           ort_error *err)
{
    const char *from = (const char *)library->rows + index * library->row_bytes;
    size_t known = library->row_bytes < sizeof *row ? library->row_bytes : sizeof *row;
    memcpy(row, from, known);
    for (size_t i = known; i < library->row_bytes; i++)
        if (from[i])
            return bad_row(row, err, "it uses members that came after ABI %d", ORT_OPS_ABI);
    return ORT_OK;
}

ort_status ort_custom_rows(const ort_ops_library *library, ort_arena *arena, const ort_op ***rows,
                           ort_error *err)
{
    if (library->abi > ORT_OPS_ABI)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "the operator library was built for ABI %u, this runtime (%s) has %d; "
                             "rebuild it with this runtime's ort.h, or use a newer runtime",
                             library->abi, ort_version(), ORT_OPS_ABI);
    if (library->abi < 1 || library->row_bytes < SMALLEST_ROW || library->row_bytes > LARGEST_ROW ||
        !library->rows || !library->row_count || !library->name)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "the table of the operator library is malformed: it needs abi %d, "
                             "row_bytes sizeof(ort_ops_row), a name and at least one row",
                             ORT_OPS_ABI);
    const ort_op **list = ort_arena_array(arena, library->row_count, sizeof *list);
    custom_op *made = ort_arena_array(arena, library->row_count, sizeof *made);
    if (!list || !made)
        return ort_error_memory(err, sizeof *made * library->row_count);
    for (size_t i = 0; i < library->row_count; i++) {
        made[i].library = library;
        list[i] = &made[i].op;
        ORT_TRY(copy_row(library, i, &made[i].row, err));
        ORT_TRY(make_row(&made[i], arena, err));
    }
    *rows = list;
    return ORT_OK;
}
