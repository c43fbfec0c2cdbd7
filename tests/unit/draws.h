/* draws.h - calls of an operator that its row allows: types from its table, as many inputs as it
 * takes, attributes that it knows, shapes as operators of its kind have them (one in six is
 * another). Static functions only. What they don't fit, the operator refuses. */
#ifndef TESTS_UNIT_DRAWS_H
#define TESTS_UNIT_DRAWS_H

#include <stdlib.h>
#include <string.h>

#include "op/op.h"

enum { MOST_INPUTS = 6, MOST_OUTPUTS = 4, MOST_ATTRIBUTES = 12, MOST_RANK = 5 };

static uint64_t draw_state;

static unsigned draw(unsigned limit)
{
    draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(draw_state >> 33) % limit;
}

static void set_word(ort_value *v, int64_t index, const char *word)
{
    (void)!ort_value_set_string(v, index, word, strlen(word), NULL);
}

/* Small numbers: it is about kinds, not about amounts. */
static ort_value *filled(ort_dtype dtype, int rank, const int64_t *dims, unsigned least,
                         unsigned limit)
{
    static const char *const words[] = {"", "1", "a b"};
    ort_value *v = NULL;
    if (ort_value_new_tensor(dtype, rank, dims, &v, NULL))
        return NULL;
    for (int64_t i = 0; i < ort_value_count(v); i++)
        if (dtype == ORT_DTYPE_STRING)
            set_word(v, i, words[draw(3)]);
        else
            ort_value_set_double(v, i, (double)draw(limit) - (1 - (double)least));
    return v;
}

typedef enum form { ALIKE, MATRICES, IMAGES, ROWS, FORMS } form;

typedef struct fitting {
    const ort_op *op;
    const ort_schema *schema;
    form form;
    int rank, axis;
    int64_t dims[MOST_RANK]; /* of inputs that are alike */
    int64_t m, n;
    struct {
        const char *variable;
        ort_dtype dtype;
    } chosen[MOST_INPUTS];
    int chosen_count;
    int64_t lists[MOST_ATTRIBUTES][MOST_RANK];
    float floats[MOST_RANK];
    ort_attribute_spec attributes[MOST_ATTRIBUTES];
    size_t attribute_count;
} fitting;

/* ---- types */

static bool allows(const fitting *f, const char *type, ort_type_kind kind, ort_dtype dtype)
{
    ort_type element = ort_type_tensor(dtype, -1, NULL), actual = element;
    if (kind != ORT_TYPE_TENSOR)
        actual = (ort_type){.kind = kind, .rank = -1, .element = &element};
    return ort_schema_allows(f->op, type, &actual);
}

/* One type for all slots of a variable; UNDEFINED: it takes no tensor. */
static ort_dtype choose_type(fitting *f, const char *variable, ort_type_kind kind)
{
    static const ort_dtype usual[] = {ORT_DTYPE_FLOAT, ORT_DTYPE_INT64, ORT_DTYPE_INT32,
                                      ORT_DTYPE_UINT8};
    ort_dtype dtype = ORT_DTYPE_UNDEFINED;
    for (int i = 0; i < f->chosen_count; i++)
        if (!strcmp(f->chosen[i].variable, variable))
            return f->chosen[i].dtype;
    for (int i = 0; i < 4 && !dtype && draw(2); i++)
        dtype = allows(f, variable, kind, usual[i]) ? usual[i] : ORT_DTYPE_UNDEFINED;
    for (unsigned i = 0, start = draw(28); i < 28 && !dtype; i++) {
        ort_dtype other = (ort_dtype)(1 + (start + i) % 28);
        dtype = allows(f, variable, kind, other) ? other : ORT_DTYPE_UNDEFINED;
    }
    if (dtype && f->chosen_count < MOST_INPUTS) {
        f->chosen[f->chosen_count].variable = variable;
        f->chosen[f->chosen_count++].dtype = dtype;
    }
    return dtype;
}

/* ---- shapes */

static int shape_alike(const fitting *f, int64_t *dims)
{
    memcpy(dims, f->dims, sizeof f->dims);
    return f->rank;
}

/* [.., m, n] times [n, m], then a row. */
static int shape_matrix(const fitting *f, int slot, int64_t *dims)
{
    const int64_t sides[2] = {slot == 1 ? f->n : f->m, slot == 1 ? f->m : f->n};
    dims[0] = 2;
    memcpy(dims + (slot == 0 && f->rank == 3), sides, sizeof sides);
    dims[slot > 1 ? 0 : 3] = f->m;
    return slot > 1 ? 1 : slot == 0 && f->rank == 3 ? 3 : 2;
}

/* [1, m, 5, 5], [m, m, 3, 3], [m]: what convolutions and normalizations take. */
static int shape_image(const fitting *f, int slot, int64_t *dims)
{
    dims[0] = slot ? f->m : 1;
    dims[1] = f->m;
    dims[2] = dims[3] = slot ? 3 : 5;
    return slot == 0 || (slot == 1 && f->axis) ? 4 : 1;
}

/* [2, 3, m], [m], [m]: a batch of rows and what scales each. */
static int shape_row(const fitting *f, int slot, int64_t *dims)
{
    dims[0] = slot ? f->m : 2;
    dims[1] = 3;
    dims[2] = f->m;
    return slot ? f->axis ? 1 : 0 : 3;
}

static int shape_any(int64_t *dims)
{
    int rank = (int)draw(MOST_RANK);
    for (int d = 0; d < rank; d++)
        dims[d] = draw(4) ? 1 + draw(3) : draw(5);
    return rank;
}

static int shape_of(const fitting *f, int slot, int64_t *dims)
{
    if (!draw(6))
        return shape_any(dims);
    switch (f->form) {
    case MATRICES: return shape_matrix(f, slot, dims);
    case IMAGES: return shape_image(f, slot, dims);
    case ROWS: return shape_row(f, slot, dims);
    default: return shape_alike(f, dims);
    }
}

/* Numbers that say how: axes, sizes, indices. A list as long as the first input has axes, one
 * number, or a tensor like it. */
static ort_value *parameter(const fitting *f, const char *name, ort_dtype dtype)
{
    int64_t dims[MOST_RANK];
    int64_t count = draw(3) ? f->rank : 1;
    if (!strcmp(name, "shape") && draw(4)) {
        ort_value *v = filled(dtype, 1, &(int64_t){f->rank}, 1, 3);
        for (int i = 0; v && i < f->rank; i++)
            ort_value_set_double(v, i, (double)f->dims[i]);
        return v;
    }
    switch (draw(3)) {
    case 0: return filled(dtype, 0, NULL, draw(2), 3);
    case 1: return filled(dtype, 1, &count, draw(2), 3);
    default: return filled(dtype, shape_alike(f, dims), dims, 1, 2);
    }
}

static ort_value *fitting_value(fitting *f, const ort_param *p, int slot)
{
    int64_t dims[MOST_RANK] = {0};
    ort_dtype dtype = choose_type(f, p->type, ORT_TYPE_TENSOR);
    bool own_type = slot > 0 && strcmp(p->type, f->schema->inputs[0].type);
    if (dtype && own_type && ort_dtype_get(dtype)->class_ == ORT_CLASS_INT && draw(6))
        return parameter(f, p->name, dtype);
    if (dtype) {
        int rank = shape_of(f, slot, dims);
        return filled(dtype, rank, dims, draw(2), 4);
    }
    ort_value *item = NULL, *list = NULL;
    dtype = choose_type(f, p->type, ORT_TYPE_SEQUENCE);
    if (!dtype || ort_value_new_sequence(&list, NULL))
        return NULL;
    for (unsigned i = draw(4); i > 0; i--) {
        item = filled(dtype, shape_alike(f, dims), dims, 0, 4);
        (void)!ort_value_append(list, item, NULL);
        ort_value_free(item);
    }
    return list;
}

/* ---- attributes */

static int64_t whole_number(const fitting *f, const char *name)
{
    static const char *const types[] = {"to", "dtype", "output_dtype", "stash_type"};
    static const char *const counts[] = {"num_heads", "kv_num_heads", "q_num_heads", "group",
                                         "num_groups", "num_outputs", "n_targets"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(name, types[i]))
            return draw(2) ? ORT_DTYPE_FLOAT : 1 + draw(28);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (!strcmp(name, counts[i]))
            return draw(2) ? 1 : f->m;
    if (strstr(name, "axis"))
        return f->rank ? (int64_t)draw((unsigned)f->rank) - (draw(2) ? 0 : f->rank) : 0;
    if (strstr(name, "block") || !strcmp(name, "hidden_size"))
        return draw(2) ? f->m : 16;
    return !strcmp(name, "bits") ? 4 : !strcmp(name, "K") ? f->m : draw(3);
}

static size_t whole_numbers(const fitting *f, const char *name, int64_t *list)
{
    size_t count = f->form == IMAGES ? 2 : (size_t)f->rank;
    bool sides = f->form == IMAGES && !strcmp(name, "pads");
    count = sides ? 4 : count;
    for (size_t i = 0; i < count; i++)
        list[i] = !strcmp(name, "perm")           ? (int64_t)(count - 1 - i)
                  : !strcmp(name, "kernel_shape") ? 3
                  : sides                         ? draw(2)
                  : !strcmp(name, "axes")         ? (int64_t)i
                                                  : 1 + draw(2);
    return !strcmp(name, "axes") && count ? 1 + draw((unsigned)count) : count;
}

static const char *word(const char *name)
{
    static const char *const words[] = {"linear", "constant", "reflect", "edge", "nearest", "add",
                                        "mul", "none", "sum", "mean", "SAME_UPPER", "tanh",
                                        "bidirectional", "UPPER", "LOGISTIC", "half_pixel"};
    if (!strcmp(name, "equation"))
        return draw(2) ? "ij,jk->ik" : "...i,...i->...";
    return words[draw(sizeof words / sizeof *words)];
}

static bool set_attribute(fitting *f, const ort_attr_spec *spec)
{
    static const char *const words[] = {"a", "b", "1"};
    ort_attribute_spec *a = &f->attributes[f->attribute_count];
    int64_t *list = f->lists[f->attribute_count];
    *a = (ort_attribute_spec){.name = spec->name};
    switch (spec->type) {
    case ORT_ATTR_INT: a->kind = 'i', a->i = whole_number(f, spec->name); break;
    case ORT_ATTR_FLOAT: a->kind = 'f', a->f = (float)(1 + draw(3)) / 2; break;
    case ORT_ATTR_STRING: a->kind = 's', a->s = word(spec->name); break;
    case ORT_ATTR_INTS:
        a->kind = 'I', a->ints = list, a->count = whole_numbers(f, spec->name, list);
        break;
    case ORT_ATTR_FLOATS: a->kind = 'F', a->floats = f->floats, a->count = 1 + draw(3); break;
    case ORT_ATTR_STRINGS: a->kind = 'S', a->strings = words, a->count = 1 + draw(3); break;
    default: return false;
    }
    f->attribute_count++;
    return true;
}

static void set_attributes(fitting *f)
{
    for (int i = 0; i < MOST_RANK; i++)
        f->floats[i] = (float)(1 + i) / 2;
    for (int i = 0; i < f->schema->attr_count && f->attribute_count < MOST_ATTRIBUTES; i++) {
        const ort_attr_spec *spec = &f->schema->attrs[i];
        bool often = !strcmp(spec->name, "axis") || !strcmp(spec->name, "kernel_shape");
        if (spec->required || !draw(often ? 2 : 6))
            (void)set_attribute(f, spec);
    }
}

/* ---- a call */

static void begin_fitting(fitting *f, const ort_op *op, const ort_schema *schema)
{
    memset(f, 0, sizeof *f);
    f->op = op;
    f->schema = schema;
    f->form = draw(2) ? ALIKE : (form)draw(FORMS);
    f->m = 1 + draw(4);
    f->n = 1 + draw(4);
    f->axis = (int)draw(2);
    f->rank = 1 + (int)draw(4);
    for (int d = 0; d < f->rank; d++)
        f->dims[d] = draw(12) ? 1 + draw(4) : 0;
    set_attributes(f);
}

static size_t count_between(int least, int most, size_t limit)
{
    size_t from = (size_t)least, to = most < 0 ? from + 2 : (size_t)most;
    to = to > limit ? limit : to;
    return to > from ? from + draw((unsigned)(to - from + 1)) : from > limit ? limit : from;
}

/* Fills `in`; returns how many. */
static size_t fitting_inputs(fitting *f, ort_value **in)
{
    size_t count = count_between(f->schema->min_inputs, f->schema->max_inputs, MOST_INPUTS);
    for (size_t i = 0; i < count; i++) {
        const ort_param *p = ort_schema_param(f->schema->inputs, f->schema->input_count, (int)i);
        bool absent = !p || (p->optional && !draw(3));
        in[i] = absent ? NULL : fitting_value(f, p, (int)i);
    }
    return count;
}

#endif
