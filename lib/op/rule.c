/* rule.c - reads the signature and the shape rule of a row for one node (rule.h). Both are read in
 * place, each time: a rule is no longer than a few dozen characters, and a table of parsed ones
 * would have to be made whenever a process starts.
 */
#include "op/rule.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 24 };

typedef struct word {
    const char *text;
    size_t length;
} word;

/* A word as a string; "" where it is longer than any name. */
typedef char word_text[64];
static const char *spell(word w, word_text text)
{
    size_t length = w.length < sizeof(word_text) ? w.length : 0;
    memcpy(text, w.text, length);
    text[length] = '\0';
    return text;
}

static bool same_word(word a, word b)
{
    return a.length == b.length && !memcmp(a.text, b.text, a.length);
}

/* ---- element types */

/* A parameter of the signature and the slots that it serves. */
typedef struct slot {
    word type;
    bool variadic, mixed;
} slot;

/* Reads a parameter; what follows it, behind a comma. */
static const char *read_slot(const char *p, slot *s)
{
    int depth = 0, stars = 0;
    for (; *p != ':' && *p != '\0'; p++)
        stars += *p == '*';
    p += *p == ':';
    *s = (slot){.type.text = p, .variadic = stars > 0, .mixed = stars > 1};
    for (; *p != '\0' && *p != ' ' && (*p != ',' || depth > 0); p++)
        if (*p < ',') /* one of ( and ) */
            depth += *p == '(' ? 1 : -1;
    s->type.length = (size_t)(p - s->type.text);
    return p + (*p == ',');
}

/* The first known type of an input of this type variable. */
static ort_dtype type_of_inputs(const ort_infer *x, word type)
{
    slot s = {.variadic = false};
    const char *p = x->op->sig;
    for (int i = 0; i < x->in_count; i++) {
        if (*p != '\0' && *p != ' ')
            p = read_slot(p, &s);
        else if (!s.variadic)
            break;
        if (x->in[i] && !s.mixed && same_word(s.type, type) &&
            x->in[i]->type.kind == ORT_TYPE_TENSOR && x->in[i]->type.dtype)
            return x->in[i]->type.dtype;
    }
    return ORT_DTYPE_UNDEFINED;
}

/* The types of a variable, as they are written in the row; a code is its own. */
static word types_of(const ort_op *op, word type)
{
    for (const char *p = op->types; *p != '\0'; p += strspn(p, " ")) {
        word name = {p, strcspn(p, ": ")}, list = {p + name.length + 1, 0};
        list.length = p[name.length] == ':' ? strcspn(list.text, " ") : 0;
        if (same_word(name, type))
            return list;
        p = list.text + list.length;
    }
    return type;
}

/* Does any version add types to this variable? */
static bool grows(const ort_op *op, word type)
{
    for (const char *p = op->history; p && (p = strchr(p, '+')); p++)
        if ((size_t)(p - op->history) > type.length &&
            !memcmp(p - type.length, type.text, type.length))
            return true;
    return false;
}

/* The type that a list is; UNDEFINED when there are more. */
static ort_dtype only_type(word list)
{
    for (int i = 1; i < ORT_DTYPE_COUNT; i++) {
        const char *code = ort_dtype_get((ort_dtype)i)->code;
        if (*code == *list.text && same_word((word){code, strlen(code)}, list))
            return (ort_dtype)i;
    }
    return ORT_DTYPE_UNDEFINED;
}

static void set_type(ort_infer *x, int output, word type)
{
    ort_dtype dtype = type_of_inputs(x, type);
    if (!dtype) {
        word types = types_of(x->op, type);
        if (memchr(types.text, '(', types.length) || same_word(types, (word){"any", 3}))
            return;
        dtype = grows(x->op, type) ? ORT_DTYPE_UNDEFINED : only_type(types);
    }
    ort_type *out = &x->out[output].type;
    out->kind = ORT_TYPE_TENSOR;
    out->dtype = dtype;
    out->rank = -1;
}

void ort_infer_signature(ort_infer *x)
{
    slot s = {.variadic = false};
    const char *p = strchr(x->op->sig, ' ');
    while (p && (*p == ' ' || *p == '-' || *p == '>'))
        p++;
    for (int i = 0; p && i < x->out_count; i++) {
        if (*p != '\0')
            p = read_slot(p, &s);
        else if (!s.variadic)
            break;
        if (!s.mixed)
            set_type(x, i, s.type);
    }
}

/* ---- names */

typedef struct bound {
    word name;
    int count; /* of dims; -1: not known; ALONE: the one dim below */
    const ort_dim *dims;
    ort_dim dim;
} bound;

enum { ALONE = -2 };

typedef struct reading {
    ort_infer *x;
    const char *p; /* what of the rule is not read yet */
    int count;
    bound names[NAMES_MAX];
    bool malformed;
} reading;

static bound *find_name(reading *r, word name)
{
    for (int i = 0; i < r->count; i++)
        if (same_word(r->names[i].name, name))
            return &r->names[i];
    return NULL;
}

static ort_status differ(const reading *r, word name, int input, int axis, ort_dim a, ort_dim b,
                         ort_error *err)
{
    char left[64], right[64];
    return ort_infer_fail(r->x, err, "dim %d of input %d is %s, but %.*s is %s elsewhere", axis,
                          input, ort_dim_format(r->x->dims, a, left, sizeof left),
                          (int)name.length, name.text,
                          ort_dim_format(r->x->dims, b, right, sizeof right));
}

/* A name is one dim, or (`count` not ALONE) several. */
static ort_status bind(reading *r, word name, int count, const ort_dim *dims, int input, int axis,
                       ort_error *err)
{
    bound *b = find_name(r, name);
    if (!b && r->count < NAMES_MAX) {
        b = &r->names[r->count++];
        *b = (bound){name, count, dims, count == ALONE ? *dims : ort_dim_unknown()};
        return ORT_OK;
    }
    r->malformed = r->malformed || !b || (b->count == ALONE) != (count == ALONE);
    if (r->malformed)
        return ORT_OK;
    if (count == ALONE) {
        if (ort_dim_differ(*dims, b->dim))
            return differ(r, name, input, axis, *dims, b->dim, err);
        b->dim = ort_dim_merge(b->dim, *dims);
        return ORT_OK;
    }
    if (b->count >= 0 && count >= 0 && b->count != count)
        return ort_infer_fail(r->x, err, "input %d has %d dims for %.*s, another one has %d", input,
                              count, (int)name.length, name.text, b->count);
    for (int i = 0; i < count && i < b->count; i++)
        if (ort_dim_differ(dims[i], b->dims[i]))
            return differ(r, name, input, axis + i, dims[i], b->dims[i], err);
    if (b->count < 0) {
        b->count = count;
        b->dims = dims;
    }
    return ORT_OK;
}

/* ---- shapes of inputs */

/* One item of "[A,B..,3]", and whether it is of any number of dims. */
static word read_item(const char **p, bool *rest)
{
    word item = {*p, 0};
    while (**p != ',' && **p != ']' && **p != '\0')
        ++*p;
    item.length = (size_t)(*p - item.text);
    *rest = item.length >= 2 && !memcmp(*p - 2, "..", 2);
    item.length -= *rest ? 2 : 0;
    return item;
}

static bool more_items(const char **p)
{
    *p += **p == '[' || **p == ',';
    return **p != ']' && **p != '\0';
}

/* How many dims have an item each, and how many items are of any number. */
static int count_items(const char *p, int *rests)
{
    int alone = 0;
    for (*rests = 0; more_items(&p);) {
        bool rest;
        (void)read_item(&p, &rest);
        *rests += rest;
        alone += !rest;
    }
    return alone;
}

static ort_status wrong_rank(const reading *r, int input, int rank, bool least, ort_error *err)
{
    char text[300];
    return ort_infer_fail(
        r->x, err, "input %d is %s, needs rank %d%s", input,
        ort_type_format(r->x->dims, &r->x->in[input]->type, text, sizeof text), rank,
        least ? " or more" : "");
}

/* "@axis" behind a shape: the number of dims before that axis. */
static ort_status read_axis(reading *r, const ort_type *type, int *before, ort_error *err)
{
    word_text name;
    word attr = {r->p + 1, strcspn(r->p + 1, " ")};
    r->p = attr.text + attr.length;
    if (!type)
        return ORT_OK;
    int64_t axis = ort_node_attr_int(r->x->node, spell(attr, name));
    return ort_infer_axis(r->x, axis, type->rank, before, err);
}

static ort_status match_dim(reading *r, word item, int input, int axis, ort_dim dim, ort_error *err)
{
    if (*item.text == '_')
        return ORT_OK;
    if (!isdigit((unsigned char)*item.text))
        return bind(r, item, ALONE, &dim, input, axis, err);
    if (ort_dim_differ(dim, ort_dim_of(strtol(item.text, NULL, 10))))
        return ort_infer_fail(r->x, err, "dim %d of input %d is %lld, needs %.*s", axis, input,
                              (long long)dim.size, (int)item.length, item.text);
    return ORT_OK;
}

static ort_status read_input(reading *r, int input, ort_error *err)
{
    int rests, alone = count_items(r->p, &rests);
    const ort_type *t = ort_infer_in_ranked(r->x, input) ? &r->x->in[input]->type : NULL;
    int spare = t ? t->rank - alone : -1, before = spare;
    if (t && (rests ? spare < 0 : spare != 0))
        return wrong_rank(r, input, alone, rests > 0, err);
    const char *p = r->p;
    r->p = strchr(p, ']') + 1;
    if (*r->p == '@')
        ORT_TRY(read_axis(r, t, &before, err));
    for (int axis = 0; more_items(&p);) {
        bool rest;
        word item = read_item(&p, &rest);
        int count = !rest ? 1 : t ? before : 0;
        if (rest) {
            ORT_TRY(bind(r, item, t ? count : -1, t ? t->dim + axis : NULL, input, axis, err));
            before = spare - before;
        } else {
            ORT_TRY(match_dim(r, item, input, axis, t ? t->dim[axis] : ort_dim_unknown(), err));
        }
        axis += count;
    }
    return ORT_OK;
}

/* ---- shapes of outputs */

/* The input of this name in the signature; -1. */
static int find_input(const ort_op *op, word name)
{
    slot s;
    const char *p = op->sig;
    for (int i = 0; *p != '\0' && *p != ' '; i++) {
        if (same_word(name, (word){p, strcspn(p, "?*:")}))
            return i;
        p = read_slot(p, &s);
    }
    return -1;
}

/* An attribute's number, or an input's. */
static ort_dim outer_number(reading *r, word named)
{
    word_text name;
    const char *fallback;
    ort_dim number;
    if (ort_schema_attr(r->x->op, spell(named, name), &fallback) == ORT_ATTR_INT)
        return fallback || ort_node_has(r->x->node, name)
                   ? ort_dim_of(ort_node_attr_int(r->x->node, name)) : ort_dim_unknown();
    int input = find_input(r->x->op, named);
    r->malformed = r->malformed || input < 0;
    return ort_infer_int(r->x, input, 0, &number) ? number : ort_dim_unknown();
}

static word read_name(reading *r)
{
    word name = {r->p, 0};
    while (isalnum((unsigned char)r->p[name.length]) || r->p[name.length] == '_')
        name.length++;
    r->p += name.length;
    r->malformed = r->malformed || name.length == 0;
    return name;
}

static ort_dim read_sum(reading *r);

static ort_dim read_factor(reading *r)
{
    if (*r->p == '(') {
        r->p++;
        ort_dim sum = read_sum(r);
        r->malformed = r->malformed || *r->p != ')';
        r->p += *r->p == ')';
        return sum;
    }
    word name = read_name(r);
    if (name.length == 1 && *name.text == '_')
        return ort_dim_unknown();
    if (isdigit((unsigned char)*name.text))
        return ort_dim_of(strtol(name.text, NULL, 10));
    const bound *b = find_name(r, name);
    r->malformed = r->malformed || (b && b->count != ALONE);
    return b ? b->dim : outer_number(r, name);
}

static ort_dim read_product(reading *r)
{
    ort_dim product = read_factor(r);
    while (*r->p == '*' || *r->p == '/') {
        bool times = *r->p++ == '*';
        ort_dim factor = read_factor(r);
        product = times ? ort_dim_mul(r->x->dims, product, factor)
                        : ort_dim_div(r->x->dims, product, factor);
    }
    return product;
}

static ort_dim read_sum(reading *r)
{
    ort_dim sum = read_product(r);
    while (*r->p == '+' || *r->p == '-') {
        bool plus = *r->p++ == '+';
        ort_dim term = read_product(r);
        sum = plus ? ort_dim_add(r->x->dims, sum, term) : ort_dim_sub(r->x->dims, sum, term);
    }
    return sum;
}

/* The dims of an output, as far as they are read. */
typedef struct made {
    ort_dim dims[ORT_MAX_RANK];
    int rank;
    bool open; /* its rank is not known */
} made;

static ort_status add_dim(const reading *r, made *m, ort_dim dim, word text, ort_error *err)
{
    if (m->rank == ORT_MAX_RANK)
        return ort_infer_fail(r->x, err, "the output would have more than %d dims", ORT_MAX_RANK);
    if (ort_dim_known(dim) && dim.size < 0)
        return ort_infer_fail(r->x, err, "%.*s is %lld; a size is needed", (int)text.length,
                              text.text, (long long)dim.size);
    m->dims[m->rank++] = dim;
    return ORT_OK;
}

/* D..: dims of an input, or an attribute's list; `ones`: 1^D. */
static ort_status add_rest(reading *r, made *m, word name, bool ones, ort_error *err)
{
    word_text attr;
    size_t count = 0;
    const bound *b = find_name(r, name);
    m->open = m->open || (b && b->count < 0);
    for (int i = 0; b && i < b->count; i++)
        ORT_TRY(add_dim(r, m, ones ? ort_dim_of(1) : b->dims[i], name, err));
    if (b)
        return ORT_OK;
    const int64_t *list = ort_node_ints(r->x->node, spell(name, attr), &count);
    r->malformed = r->malformed || !ort_op_has_attr(r->x->op, attr);
    for (size_t i = 0; i < count; i++)
        ORT_TRY(add_dim(r, m, ort_dim_of(list[i]), name, err));
    return ORT_OK;
}

static ort_status add_item(reading *r, made *m, ort_error *err)
{
    bool rest;
    const char *end = r->p;
    word item = read_item(&end, &rest);
    if (rest || (item.length > 2 && !memcmp(item.text, "1^", 2))) {
        word name = {item.text + (rest ? 0 : 2), item.length - (rest ? 0 : 2)};
        ORT_TRY(add_rest(r, m, name, !rest, err));
        r->p = end;
    } else {
        ORT_TRY(add_dim(r, m, read_sum(r), item, err));
        r->malformed = r->malformed || r->p != end;
        r->p = end;
    }
    return ORT_OK;
}

/* An attribute names an element type, an input has one. */
static ort_dtype outer_type(reading *r, word named)
{
    word_text name;
    const char *fallback;
    const ort_fact *in = ort_infer_in(r->x, find_input(r->x->op, named));
    if (in)
        return in->type.kind == ORT_TYPE_TENSOR ? in->type.dtype : ORT_DTYPE_UNDEFINED;
    if (ort_schema_attr(r->x->op, spell(named, name), &fallback) != ORT_ATTR_INT ||
        !(fallback || ort_node_has(r->x->node, name)))
        return ORT_DTYPE_UNDEFINED;
    return (ort_dtype)ort_node_attr_int(r->x->node, name);
}

/* ":dtype|input" behind a shape: the first of these that says a type. */
static void read_type(reading *r, int output)
{
    ort_dtype dtype = ORT_DTYPE_UNDEFINED;
    do {
        r->p++;
        word name = read_name(r);
        dtype = dtype ? dtype : outer_type(r, name);
    } while (*r->p == '|');
    if (dtype && output < r->x->out_count)
        r->x->out[output].type.dtype = dtype;
}

static ort_status read_output(reading *r, int output, ort_error *err)
{
    made m; /* dims need no clearing */
    m.rank = 0;
    m.open = false;
    while (more_items(&r->p))
        ORT_TRY(add_item(r, &m, err));
    r->p += *r->p == ']';
    ort_infer_set_shape(r->x, output, m.open ? -1 : m.rank, m.dims);
    if (*r->p == ':')
        read_type(r, output);
    return ORT_OK;
}

/* ---- rules */

static ort_status read_shapes(reading *r, ort_error *err)
{
    bool output = false;
    for (int i = 0; *r->p != '\0' && !r->malformed; r->p += *r->p == ' ') {
        if (!memcmp(r->p, "->", 2)) {
            output = true;
            i = 0;
            r->p += 2;
            continue;
        }
        if (*r->p == '-')
            r->p++;
        else if (*r->p != '[' || !strchr(r->p, ']'))
            r->malformed = true;
        else
            ORT_TRY(output ? read_output(r, i, err) : read_input(r, i, err));
        r->malformed = r->malformed || (*r->p != ' ' && *r->p != '\0');
        i++;
    }
    return ORT_OK;
}

/* Tensors in the element type of the signature, all else as it is. */
static void take_first(ort_infer *x)
{
    const ort_fact *in = ort_infer_in(x, 0);
    if (in && in->type.kind == ORT_TYPE_TENSOR && x->out[0].type.kind == ORT_TYPE_TENSOR)
        ort_infer_set_shape(x, 0, in->type.rank, in->type.dim);
    else if (in && in->type.kind != ORT_TYPE_UNKNOWN)
        x->out[0].type = in->type;
}

static ort_status broadcast(ort_infer *x, const char *which, ort_error *err)
{
    const ort_fact *in[10];
    ort_infer some = *x;
    ort_type type;
    if (*which == ' ') {
        some.in = in;
        for (some.in_count = 0; *which != '\0'; which += 2)
            in[some.in_count++] = ort_infer_in(x, which[1] - '0');
    }
    ORT_TRY(ort_infer_broadcast_shape(&some, 0, some.in_count, &type, err));
    ort_infer_set_shape(x, 0, type.rank, type.dim);
    return ORT_OK;
}

ort_status ort_infer_rule(ort_infer *x, const char *rule, ort_error *err)
{
    if (*rule == 's') {
        take_first(x);
        return ORT_OK;
    }
    if (*rule == 'b')
        return broadcast(x, rule + strlen("broadcast"), err);
    reading r; /* names need no clearing */
    r.x = x;
    r.p = rule;
    r.count = 0;
    r.malformed = false;
    ORT_TRY(read_shapes(&r, err));
    if (r.malformed)
        return ort_error_set(err, ORT_ERROR_RUN, "operator table: %s-%d: malformed rule at \"%s\"",
                             x->op->name, x->op->since, r.p);
    return ORT_OK;
}
