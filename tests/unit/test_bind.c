/* test_bind.c - the tables that tie attributes to states, beside the rows that use them; and what a
 * state is filled with. */
#include <math.h>
#include <stdlib.h>

#include "op/op.h"
#include "test.h"

/* ---- all rows */

static const ort_attr_spec *find_spec(const ort_schema *schema, const char *name)
{
    for (int i = 0; i < schema->attr_count; i++)
        if (!strcmp(schema->attrs[i].name, name))
            return &schema->attrs[i];
    return NULL;
}

static bool is_scalar(const ort_bind *b)
{
    return b->kind <= ORT_BIND_DOUBLE;
}

/* NULL, or what is wrong with a binding of a row. */
static const char *misfit(const ort_op *op, const ort_bind *b, const ort_attr_spec *spec)
{
    const char *text;
    ort_attr_type type = ort_bind_type(b);
    if (ort_schema_attr(op, b->attr, &text) != (spec ? spec->type : ORT_ATTR_UNDEFINED))
        return "isn't read as the schema is";
    if (!spec)
        return b->optional ? NULL : "isn't in the row";
    if (type != ORT_ATTR_UNDEFINED && type != spec->type)
        return "has another type";
    if (is_scalar(b) && !spec->required && !spec->fallback[0] && !b->optional)
        return "has no default";
    if (b->words && spec->fallback[0] &&
        ort_word_find(b->words, spec->fallback, strlen(spec->fallback)) < 0)
        return "has a default that is none of its words";
    if (b->ranged && !b->words && spec->fallback[0] &&
        (atoll(spec->fallback) < b->least || atoll(spec->fallback) > b->most))
        return "has a default out of its range";
    return NULL;
}

static bool is_bound_twice(const ort_bind *table, const ort_bind *b)
{
    for (const ort_bind *a = table; a < b; a++)
        if (a->at == b->at)
            return true;
    return false;
}

static bool holds(const ort_op *op, int *used)
{
    static ort_schema schema;
    if (ort_schema_parse(op, &schema, NULL) != ORT_OK)
        return false;
    for (const ort_bind *b = op->impl->bind; b->attr; b++) {
        const ort_attr_spec *spec = find_spec(&schema, b->attr);
        const char *wrong = misfit(op, b, spec);
        if (!wrong && (b->at >= op->impl->state || is_bound_twice(op->impl->bind, b)))
            wrong = "has no member of its own";
        if (wrong)
            printf("# %s %d: %s %s\n", op->name, op->since, b->attr, wrong);
        if (wrong)
            return false;
        *used += spec != NULL;
    }
    return true;
}

static void rows(test_state *test)
{
    ort_registry *registry;
    int used = 0;
    bool all = true;
    CHECK(ort_registry_new(&registry, NULL) == ORT_OK);
    for (size_t i = 0; i < ort_registry_count(registry); i++) {
        const ort_op *op = ort_registry_at(registry, i);
        if (op->impl->bind)
            all = holds(op, &used) && all;
    }
    ort_registry_free(registry);
    CHECK(all);
    CHECK(used > 20);
}

/* ---- one state */

typedef struct state {
    int64_t wide;
    int narrow, mode, absent;
    bool flag, has_wide, has_flag;
    float single;
    double twice;
    ort_ints list, empty;
    ort_string text;
} state;

static const ort_bind table[] = {
    ORT_BIND(state, wide),
    ORT_BIND(state, narrow, ORT_WITHIN(0, 2)),
    ORT_BIND(state, mode, ORT_WORDS("near linear|bilinear cubic")),
    ORT_BIND(state, absent, ORT_ELSE(-7)),
    ORT_BIND(state, flag),
    ORT_BIND_HAS(state, has_wide, "wide"),
    ORT_BIND_HAS(state, has_flag, "flag"),
    ORT_BIND(state, single),
    ORT_BIND(state, twice, ORT_ELSE(INFINITY)),
    ORT_BIND(state, list),
    ORT_BIND(state, empty),
    ORT_BIND(state, text), {0}};
static const ort_op row = {
    "", "Op", 1, "X:T -> Y:T", "T:F",
    "empty:is flag:i=1 list:is=[0 -2 3] mode:s=bilinear narrow:i=2 single:f=0.1 text:s=abc "
    "twice:f wide:i!", 0, NULL};

static ort_status read(ort_attr *attrs, int count, state *s, ort_error *err)
{
    ort_arena arena = {0};
    ort_node node = {.op = &row, .op_type = "Op", .attrs = attrs, .attr_count = count};
    memset(s, 0, sizeof *s);
    ort_status status = ort_bind_attrs(table, &node, &arena, s, err);
    if (status == ORT_OK && s->list.count == 3 &&
        (s->list.ptr[0] != 0 || s->list.ptr[1] != -2 || s->list.ptr[2] != 3))
        status = ORT_ERROR_RUN;
    ort_arena_release(&arena);
    return status;
}

static void defaults(test_state *test)
{
    ort_attr wide = {.name = "wide", .type = ORT_ATTR_INT, .i = (int64_t)1 << 40};
    state s;
    CHECK(read(&wide, 1, &s, NULL) == ORT_OK);
    CHECK(s.wide == (int64_t)1 << 40 && s.narrow == 2 && s.mode == 1 && s.absent == -7);
    CHECK(s.flag && s.has_wide && !s.has_flag);
    CHECK(s.single == 0.1f && isinf(s.twice));
    CHECK(s.list.count == 3 && s.empty.count == 0 && !s.empty.ptr);
    CHECK(s.text.length == 3 && !memcmp(s.text.ptr, "abc", 3));
}

static void values(test_state *test)
{
    const int64_t list[] = {5, 6};
    ort_attr attrs[] = {
        {.name = "wide", .type = ORT_ATTR_INT, .i = 3},
        {.name = "flag", .type = ORT_ATTR_INT, .i = 0},
        {.name = "mode", .type = ORT_ATTR_STRING, .s = {"cubic", 5}},
        {.name = "twice", .type = ORT_ATTR_FLOAT, .f = 0.5f},
        {.name = "single", .type = ORT_ATTR_INT, .i = 9}, /* another type: as if it weren't there */
        {.name = "absent", .type = ORT_ATTR_INT, .i = 9}, /* the row doesn't know it */
        {.name = "list", .type = ORT_ATTR_INTS, .ints = list, .count = 2},
    };
    state s;
    CHECK(read(attrs, 7, &s, NULL) == ORT_OK);
    CHECK(s.wide == 3 && !s.flag && s.has_flag && s.mode == 2 && s.twice == 0.5);
    CHECK(s.single == 0.1f && s.absent == -7 && s.list.count == 2 && s.list.ptr == list);
}

static void refusals(test_state *test)
{
    ort_attr attrs[] = {
        {.name = "wide", .type = ORT_ATTR_INT, .i = 3},
        {.name = "narrow", .type = ORT_ATTR_INT, .i = 3},
    };
    ort_error err = {0};
    state s;
    CHECK(read(attrs, 2, &s, &err) == ORT_ERROR_MODEL);
    CHECK_TEXT(err.message, "attribute narrow is 3, needs 0, 1 or 2");
    attrs[1] = (ort_attr){.name = "mode", .type = ORT_ATTR_STRING, .s = {"nearby", 6}};
    CHECK(read(attrs, 2, &s, &err) == ORT_ERROR_MODEL);
    CHECK_TEXT(err.message, "attribute mode is 'nearby', needs near, linear or cubic");
    CHECK(read(NULL, 0, &s, &err) == ORT_ERROR_MODEL);
    CHECK_TEXT(err.message, "attribute wide is missing");
}

int main(void)
{
    test_state test = {0};
    RUN(&test, rows);
    RUN(&test, defaults);
    RUN(&test, values);
    RUN(&test, refusals);
    return test.failures != 0;
}
