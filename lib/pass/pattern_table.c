/* pattern_table.c - the forms of a pass (pattern.h), tried at every node of a graph.
 *
 * A model has a few dozen kinds of nodes and a table a few dozen forms, most of which no node can
 * be the root of: which may is found once for each operator's row.
 * Of those, most ask for operators before the root that aren't there: that is told by sets of
 * operators in 64 bits, where two operators may share a bit, before their
 * text is parsed. */
#include "pass/pattern_match.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { FORM_NEEDS = 2 };

typedef struct choice {
    int form;
    uint64_t needs[FORM_NEEDS]; /* by child of the root: any of these operators; 0: no more */
} choice;

typedef struct root_list { /* the forms whose root may be a node of this row */
    const ort_op *op;
    int first, count; /* in choices */
} root_list;

struct ort_pattern_table {
    const ort_pattern_form *forms;
    int count;
    ort_arena arena;        /* of the parsed forms */
    ort_pattern **patterns; /* by form; NULL: not needed so far */
    ORT_VEC(choice) choices;
    ORT_VEC(root_list) lists;
    uint16_t slots[256];    /* by hash of the row: where its list may be, plus 1 */
};

void ort_pattern_table_free(struct ort_pattern_table *table)
{
    if (!table)
        return;
    ort_arena_release(&table->arena);
    ort_vec_release(&table->choices);
    ort_vec_release(&table->lists);
    free(table);
}

static struct ort_pattern_table *new_table(const ort_pattern_form *forms, int count)
{
    struct ort_pattern_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->forms = forms;
    table->count = count;
    table->patterns = ort_arena_array(&table->arena, (size_t)count, sizeof *table->patterns);
    if (!table->patterns) {
        ort_pattern_table_free(table);
        return NULL;
    }
    return table;
}

/* The operators of the root stand behind the first parenthesis. */
static bool may_be_root(const char *text, const ort_op *op)
{
    const char *name = strchr(text, '(') + 1;
    return ort_pattern_names_operator(name, strcspn(name, " )"), op);
}

static uint64_t operator_bit(const char *name)
{
    return (uint64_t)1 << ((unsigned char)name[0] * 5 + (unsigned char)name[1]) % 64;
}

/* "A|ms.B" */
static uint64_t operator_set(const char *text, const char *end)
{
    uint64_t set = 0;
    for (const char *at = text, *stop; at < end; at = stop + 1) {
        stop = memchr(at, '|', (size_t)(end - at));
        if (!stop)
            stop = end;
        if (!strncmp(at, "ms.", 3))
            at += 3;
        assert(stop - at > 1);
        set |= operator_bit(at);
    }
    return set;
}

/* From the text: most forms are never parsed. */
static choice choice_of(const char *text, int form)
{
    choice c = {.form = form};
    int count = 0, depth = 0;
    for (const char *at = text; *at && count < FORM_NEEDS; at++) {
        if (*at == '(' && depth++ == 1)
            c.needs[count++] = operator_set(at + 1, at + 1 + strcspn(at + 1, " )"));
        else if (*at == ')')
            depth--;
    }
    return c;
}

/* The operators before a node. */
static uint64_t operators_before(const ort_graph *graph, const ort_node *node)
{
    uint64_t set = 0;
    for (int i = 0; i < node->input_count; i++) {
        const ort_node *producer = ort_edit_producer(graph, node->inputs[i]);
        if (producer && producer->op)
            set |= operator_bit(producer->op->name);
    }
    return set;
}

static bool has_needs(const choice *c, uint64_t before)
{
    for (int i = 0; i < FORM_NEEDS && c->needs[i]; i++)
        if (!(c->needs[i] & before))
            return false;
    return true;
}

/* NULL: no memory. */
static const ort_pattern *pattern_of(struct ort_pattern_table *table, int form)
{
    ort_pattern *p = table->patterns[form];
    if (p)
        return p;
    p = ort_arena_alloc_aligned(&table->arena, sizeof *p, 16, 0);
    if (p)
        ort_pattern_parse(p, table->forms[form].text);
    table->patterns[form] = p;
    return p;
}

static const root_list *add_list(struct ort_pattern_table *table, const ort_op *op)
{
    root_list list = {.op = op, .first = (int)table->choices.count};
    for (int i = 0; i < table->count; i++)
        if (may_be_root(table->forms[i].text, op) &&
            !ort_vec_push(&table->choices, choice_of(table->forms[i].text, i)))
            return NULL;
    list.count = (int)table->choices.count - list.first;
    return ort_vec_push(&table->lists, list) ? &table->lists.data[table->lists.count - 1] : NULL;
}

/* NULL: no memory. */
static const root_list *roots_of(struct ort_pattern_table *table, const ort_op *op)
{
    uintptr_t hash = (uintptr_t)op / sizeof *op;
    uint16_t *slot = &table->slots[(hash ^ hash >> 8) % 256];
    if (*slot && table->lists.data[*slot - 1].op == op)
        return &table->lists.data[*slot - 1];
    for (size_t i = 0; i < table->lists.count; i++)
        if (table->lists.data[i].op == op) {
            *slot = (uint16_t)(i + 1);
            return &table->lists.data[i];
        }
    const root_list *list = add_list(table, op);
    if (list && table->lists.count <= UINT16_MAX)
        *slot = (uint16_t)table->lists.count;
    return list;
}

static void note_near_miss(const ort_pass_context *c, const root_list *list, uint64_t before,
                           ort_node *node, ort_match *match)
{
    const choice *choices = c->patterns->choices.data + list->first;
    for (int i = 0; i < list->count; i++) {
        char miss[ORT_PATTERN_MISS];
        if (!has_needs(&choices[i], before))
            continue;
        const ort_pattern *p = pattern_of(c->patterns, choices[i].form);
        if (!p || !ort_pattern_match(p, c->graph, node, match, miss) || match->node_count < 2)
            continue;
        ort_pass_note(c, node, "%s", miss);
        break;
    }
}

/* *form: the first whose root is `node`, or -1. */
static ort_status find_form(const ort_pass_context *c, const root_list *list, ort_node *node,
                            ort_match *match, int *form, ort_error *err)
{
    const choice *choices = c->patterns->choices.data + list->first;
    uint64_t before = operators_before(c->graph, node);
    for (int i = 0; i < list->count; i++) {
        if (!has_needs(&choices[i], before))
            continue;
        const ort_pattern *p = pattern_of(c->patterns, choices[i].form);
        if (!p)
            return ort_error_memory(err, sizeof *p);
        *form = choices[i].form;
        if (ort_pattern_match(p, c->graph, node, match, NULL))
            return ORT_OK;
    }
    *form = -1;
    if (c->near_misses)
        note_near_miss(c, list, before, node, match);
    return ORT_OK;
}

ort_status ort_pattern_forms(ort_pass_context *c, const ort_pattern_form *forms, int count,
                             ort_pattern_fuse fuse, int *changes, ort_error *err)
{
    ort_match match;
    if (!c->patterns)
        c->patterns = new_table(forms, count);
    if (!c->patterns)
        return ort_error_memory(err, (size_t)count * sizeof(ort_pattern));
    assert(c->patterns->forms == forms);
    for (size_t k = c->graph->order.count; k-- > 0;) {
        ort_node *node = c->graph->nodes.data[c->graph->order.data[k]];
        if (node->removed || !node->op)
            continue;
        const root_list *list = roots_of(c->patterns, node->op);
        if (!list)
            return ort_error_memory(err, sizeof(ort_pattern));
        int found = -1;
        if (list->count)
            ORT_TRY(find_form(c, list, node, &match, &found, err));
        if (found >= 0)
            ORT_TRY(fuse(c, &match, &forms[found], changes, err));
    }
    return ORT_OK;
}
