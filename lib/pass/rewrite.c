/* rewrite.c - the rows of a pass (rewrite.h), tried at every node of a graph.
 *
 * Most rows fit nowhere in a model. Sets of operators in 64 bits, where two operators may share a
 * bit, tell most of that: a row is parsed when all operators that its text names are in the graph;
 * it is tried at nodes that may be its root and have one of the operators before them that it asks
 * for there. */
#include "pass/rewrite.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "graph/follow.h"

enum { MAX_NEEDS = 2 };

typedef struct row {
    uint64_t missing; /* it fits nowhere before one of these operators is there */
    bool parsed;
    ort_text from, to;
} row;

typedef struct candidate { /* a row whose root may be a node of some operator */
    int row;
    uint64_t needs[MAX_NEEDS]; /* by input of the root: any of these operators; 0: no more */
} candidate;

typedef struct root_list { /* the candidates at nodes of this operator */
    const ort_op *op;
    int first, count;
} root_list;

struct ort_rewrite_table {
    const ort_rewrite *rewrites;
    const char *const *forms;
    row *rows;
    int count;
    uint64_t operators;     /* of all graphs so far */
    bool may_fit;           /* has one of the rows all of its operators in them? */
    ORT_VEC(candidate) candidates;
    ORT_VEC(root_list) lists;
    uint16_t slots[256];    /* by hash of the operator: where its list may be, plus 1 */
};

/* ---- sets of operators */

static uint64_t operator_bit(const char *name)
{
    return (uint64_t)1 << ((unsigned char)name[0] * 5 + (unsigned char)name[1]) % 64;
}

/* "A|ms.B" */
static uint64_t operator_set(const char *text, int length)
{
    uint64_t set = 0;
    for (const char *at = text, *end = text + length, *stop; at < end; at = stop + 1) {
        stop = memchr(at, '|', (size_t)(end - at));
        if (!stop)
            stop = end;
        at += strncmp(at, "ms.", 3) ? 0 : 3;
        assert(stop - at > 1);
        set |= operator_bit(at);
    }
    return set;
}

static int operators_length(const char *text)
{
    int length = 0;
    while (ort_text_is_name(text[length]) || text[length] == '.' || text[length] == '|')
        length++;
    return length;
}

static uint64_t missing_in(const char *text, const char *const *forms, uint64_t have);

static uint64_t missing_in_form(const char *name, const char *const *forms, uint64_t have)
{
    size_t length = strcspn(name, "(");
    for (; forms && *forms; forms++)
        if (!strncmp(*forms, name, length + 1))
            return missing_in(strchr(*forms, ':') + 1, forms, have);
    return 0;
}

/* The operator that begins at this letter of a text; 0: none, or one of several. */
static uint64_t operator_at(const char *at)
{
    bool between = *at == ' ' && at[1] && at[2] == ' ';
    if (*at == '(' && (isupper((unsigned char)at[1]) || !strncmp(at + 1, "ms.", 3))) {
        int length = operators_length(at + 1);
        return memchr(at + 1, '|', (size_t)length) ? 0 : operator_set(at + 1, length);
    }
    if (between && (at[1] == '*' || at[1] == '/' || at[1] == '+'))
        return operator_bit(at[1] == '*' ? "Mul" : at[1] == '/' ? "Div" : "Add");
    return 0;
}

/* 0: operators that every place has where the text fits are in `have`. Else one that isn't; of
 * alternatives, one of each. Read from the letters, up to the first that is missing. */
static uint64_t missing_in(const char *text, const char *const *forms, uint64_t have)
{
    uint64_t missing = 0, all = 0;
    for (const char *at = text; *at; at++) {
        if (!strncmp(at, " | ", 3)) {
            if (!missing)
                return 0;
            all |= missing;
            missing = 0;
        } else if (!missing) {
            missing = *at == '@' && isalpha((unsigned char)at[1])
                          ? missing_in_form(at + 1, forms, have)
                          : operator_at(at) & ~have;
        }
    }
    return missing ? all | missing : 0;
}

static uint64_t operators_in(const ort_graph *graph)
{
    uint64_t set = 0;
    for (size_t k = 0; k < graph->order.count; k++) {
        const ort_node *node = graph->nodes.data[graph->order.data[k]];
        if (!node->removed && node->op)
            set |= operator_bit(node->op->name);
    }
    return set;
}

/* Those that compute the inputs of a node. */
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

/* ---- the table */

void ort_rewrite_table_free(struct ort_rewrite_table *table)
{
    if (!table)
        return;
    for (int i = 0; i < table->count; i++)
        if (table->rows[i].parsed) {
            ort_text_release(&table->rows[i].from);
            ort_text_release(&table->rows[i].to);
        }
    free(table->rows);
    ort_vec_release(&table->candidates);
    ort_vec_release(&table->lists);
    free(table);
}

static struct ort_rewrite_table *new_table(const ort_pass *pass)
{
    struct ort_rewrite_table *table = calloc(1, sizeof *table);
    int count = 0;
    while (pass->rewrites[count].from)
        count++;
    row *rows = calloc((size_t)count, sizeof *rows);
    if (!table || !rows) {
        free(table);
        free(rows);
        return NULL;
    }
    *table = (struct ort_rewrite_table){.rewrites = pass->rewrites, .forms = pass->forms,
                                        .rows = rows, .count = count};
    for (int i = 0; i < count; i++)
        rows[i].missing = UINT64_MAX;
    return table;
}

/* The operators in this graph, too, may be rows' now. */
static void widen(struct ort_rewrite_table *table, uint64_t operators)
{
    if (!(operators & ~table->operators))
        return;
    table->operators |= operators;
    ort_vec_clear(&table->candidates);
    ort_vec_clear(&table->lists);
    memset(table->slots, 0, sizeof table->slots);
    for (int i = 0; i < table->count; i++) {
        uint64_t *missing = &table->rows[i].missing;
        if (*missing & table->operators)
            *missing = missing_in(table->rewrites[i].from, table->forms, table->operators);
        table->may_fit = table->may_fit || !*missing;
    }
}

static bool parse_row(const struct ort_rewrite_table *table, int i)
{
    row *r = &table->rows[i];
    const char *to = table->rewrites[i].to;
    if (r->parsed)
        return true;
    r->parsed = true;
    return ort_text_parse(&r->from, table->rewrites[i].from, table->forms) &&
           (!to || ort_text_parse(&r->to, to, NULL));
}

/* ---- what may be a root */

/* The operators that a term is computed by; all bits: any. */
static uint64_t set_of(const ort_text *text, const ort_term *t)
{
    uint64_t set = 0;
    if (t->kind == '(')
        return operator_set(t->text, t->length);
    if (t->kind != '@')
        return UINT64_MAX;
    for (int i = 0; i < t->count; i++)
        set |= set_of(text, ort_text_child(text, t, i));
    return set;
}

/* The operators before a root of this operator that one of its spellings asks for, joined to
 * `needs`; false: it can't be the root. */
static bool add_needs(const ort_text *text, const ort_term *t, const ort_op *op, bool alone,
                      uint64_t *needs)
{
    uint64_t any = 0;
    int count = 0;
    bool fits = false;
    if (t->kind == '@') {
        for (int i = 0; i < t->count; i++)
            fits |= add_needs(text, ort_text_child(text, t, i), op, false, needs);
        return fits;
    }
    if (t->kind != '(' || !ort_edit_names(t->text, (size_t)t->length, op))
        return false;
    for (int i = 0; i < t->count; i++) {
        uint64_t set = set_of(text, ort_text_child(text, t, i));
        if (set == UINT64_MAX)
            continue;
        if (alone && count < MAX_NEEDS)
            needs[count++] = set;
        any |= set;
    }
    if (!alone)
        needs[0] |= any ? any : UINT64_MAX;
    return true;
}

/* Is the row one for nodes of this operator? */
static bool candidate_of(const struct ort_rewrite_table *table, int i, const ort_op *op,
                         candidate *c)
{
    const ort_text *text = &table->rows[i].from;
    bool fits = false, alone = text->choices.count == 1;
    *c = (candidate){.row = i};
    for (size_t k = 0; k < text->choices.count; k++) {
        short root = text->statements.data[text->choices.data[k].first].term;
        fits |= add_needs(text, &text->terms.data[root], op, alone, c->needs);
    }
    return fits;
}

static const root_list *add_list(struct ort_rewrite_table *table, const ort_op *op)
{
    root_list list = {.op = op, .first = (int)table->candidates.count};
    for (int i = 0; i < table->count; i++) {
        candidate c;
        if (table->rows[i].missing)
            continue;
        if (!parse_row(table, i) ||
            (candidate_of(table, i, op, &c) && !ort_vec_push(&table->candidates, c)))
            return NULL;
    }
    list.count = (int)table->candidates.count - list.first;
    return ort_vec_push(&table->lists, list) ? &table->lists.data[table->lists.count - 1] : NULL;
}

/* NULL: no memory. */
static const root_list *roots_of(struct ort_rewrite_table *table, const ort_op *op)
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

static bool has_needs(const candidate *c, uint64_t before)
{
    for (int i = 0; i < MAX_NEEDS && c->needs[i]; i++)
        if (!(c->needs[i] & before))
            return false;
    return true;
}

/* ---- writing */

const char *ort_match_remove(ort_match *m)
{
    ort_strbuf text = {0};
    bool left_out = false;
    ort_model *model = m->graph->model;
    for (int i = m->node_count; i-- > 0;) {
        ort_node *node = m->nodes[i];
        if (m->shared[i])
            continue;
        const char *of = ort_edit_origin_of(node);
        left_out = left_out || text.length + strlen(of) > ORT_EDIT_ORIGIN_BYTES;
        if (!left_out || !text.length) {
            ort_strbuf_add(&text, text.length ? "+" : "");
            ort_strbuf_add(&text, of);
        }
        ort_graph_remove_node(m->graph, node);
    }
    if (left_out)
        ort_strbuf_add(&text, ORT_EDIT_ORIGIN_MORE);
    const char *origin = ort_arena_strdup(&model->arena, ort_strbuf_text(&text));
    ort_strbuf_release(&text);
    for (int i = 0; left_out && i < m->node_count; i++)
        if (!m->shared[i])
            origin = ort_follow_join(model, origin, m->nodes[i]->origin);
    return origin;
}

ort_status ort_match_replace(ort_match *m, ort_node_spec *spec, ort_error *err)
{
    const ort_node *root = m->nodes[0];
    spec->name = root->name;
    spec->outputs = root->outputs;
    spec->output_count = root->output_count;
    spec->origin = ort_match_remove(m);
    if (!spec->origin)
        return ort_error_memory(err, 64);
    return ort_edit_add_node(m->graph, spec, NULL, err);
}

typedef struct site {
    const ort_pass_context *c;
    const ort_node *at; /* whose name what is written has */
} site;

/* ort_emit.opset_of */
static int opset_at(void *arg, const char *domain, const char *op_type, int since)
{
    const site *s = arg;
    if (!since)
        since = ort_registry_oldest(s->c->registry, domain, op_type);
    return ort_pass_opset(s->c, s->at, domain, op_type, since);
}

static const ort_node *named_node(const ort_match *m, const ort_text *to, const ort_choice *choice)
{
    const ort_statement *last = &to->statements.data[choice->first + choice->count - 1];
    short name = to->terms.data[last->term].name;
    const ort_text_name *n = name < 0 ? NULL : &to->names.data[name];
    const ort_bound *b = n ? ort_match_bound(m, n->text, n->length) : NULL;
    return b && b->node ? b->node : m->nodes[0];
}

static bool is_met(const ort_pass_context *c, ort_dtype dtype, const char *condition)
{
    if (!strncmp(condition, "file?", 5))
        return c->portable;
    if (!strncmp(condition, "session?", 8))
        return !c->portable;
    if (!strncmp(condition, "float?", 6))
        return dtype == ORT_DTYPE_FLOAT;
    assert(!strncmp(condition, "real?", 5));
    return ort_dtype_get(dtype)->class_ == ORT_CLASS_FLOAT;
}

/* "file? float?" */
static bool holds(const ort_pass_context *c, const ort_match *m, const ort_choice *choice)
{
    const ort_type *type = &m->graph->values.data[m->nodes[0]->outputs[0]]->fact.type;
    const char *at = choice->condition, *end = at + choice->condition_length;
    for (; at < end; at = strchr(at, '?') + 1, at += strspn(at, " "))
        if (!is_met(c, type->dtype, at))
            return false;
    return true;
}

static ort_status write_choice(ort_pass_context *c, ort_match *m, const ort_text *to,
                               const ort_choice *choice, ort_error *err)
{
    const ort_node *root = m->nodes[0];
    site s = {c, named_node(m, to, choice)};
    const char *origin = ort_match_remove(m);
    ort_emit e = {.graph = c->graph, .at = root, .purpose = "rewrite", .origin = origin,
                  .opset_of = opset_at, .opset_arg = &s, .limit = INT_MAX, .err = err};
    ort_writer w = {.e = &e, .text = to, .match = m, .name = root->name, .origin = origin,
                    .outputs = root->outputs, .output_count = root->output_count,
                    .like = root->outputs[0]};
    if (!origin)
        return ort_error_memory(err, 64);
    ort_write(&w, choice);
    return e.status;
}

/* *done: the row was written at the match. */
static ort_status write_row(ort_pass_context *c, ort_match *m, const ort_rewrite *rewrite,
                            const ort_text *to, int *changes, bool *done, ort_error *err)
{
    const char *why = rewrite->unless ? rewrite->unless(c, m) : NULL;
    int before = *changes;
    if (why && *why)
        ort_pass_note(c, m->nodes[0], "%s", why);
    if (why)
        return ORT_OK;
    if (rewrite->write) {
        ort_status status = rewrite->write(c, m, changes, err);
        *done = *changes != before;
        return status;
    }
    for (size_t i = 0; i < to->choices.count && !*done; i++) {
        const ort_choice *choice = &to->choices.data[i];
        site s = {c, named_node(m, to, choice)};
        if (!holds(c, m, choice) || !ort_may_write(to, choice, opset_at, &s))
            continue;
        *done = true;
        ++*changes;
        if (rewrite->prepare)
            ORT_TRY(rewrite->prepare(c, m, err));
        ORT_TRY(write_choice(c, m, to, choice, err));
    }
    return ORT_OK;
}

/* ---- the sweep */

static void note_near_miss(const ort_pass_context *c, const root_list *list, uint64_t before,
                           ort_node *node, ort_match *match)
{
    const candidate *candidates = c->table->candidates.data + list->first;
    for (int i = 0; i < list->count; i++) {
        char miss[ORT_MATCH_MISS];
        if (!has_needs(&candidates[i], before))
            continue;
        const ort_text *from = &c->table->rows[candidates[i].row].from;
        if (!ort_text_match(from, c->graph, node, false, match, miss) || match->node_count < 2)
            continue;
        if (miss[0])
            ort_pass_note(c, node, "%s", miss);
        break;
    }
}

static ort_status rewrite_at(ort_pass_context *c, const root_list *list, ort_node *node,
                             int *changes, ort_error *err)
{
    ort_match match;
    uint64_t before = operators_before(c->graph, node);
    bool done = false, found = false;
    for (int i = 0; i < list->count && !done; i++) {
        const candidate *one = &c->table->candidates.data[list->first + i];
        const row *r = &c->table->rows[one->row];
        for (int order = has_needs(one, before) ? 0 : 2; order < 2 && !done; order++) {
            if (!ort_text_match(&r->from, c->graph, node, order, &match, NULL))
                break;
            found = true;
            order |= match.turned;
            match.flags = c->table->rewrites[one->row].flags;
            ORT_TRY(write_row(c, &match, &c->table->rewrites[one->row], &r->to, changes, &done,
                              err));
        }
    }
    if (!found && c->near_misses)
        note_near_miss(c, list, before, node, &match);
    return ORT_OK;
}

ort_status ort_rewrites_apply(ort_pass_context *c, int *changes, ort_error *err)
{
    if (!c->table)
        c->table = new_table(c->pass);
    if (!c->table)
        return ort_error_memory(err, sizeof *c->table);
    widen(c->table, operators_in(c->graph));
    size_t count = c->table->may_fit ? c->graph->order.count : 0;
    for (size_t k = 0; k < count; k++) {
        size_t at = c->near_misses ? k : count - 1 - k; /* people read from the inputs */
        ort_node *node = c->graph->nodes.data[c->graph->order.data[at]];
        if (node->removed || !node->op)
            continue;
        const root_list *list = roots_of(c->table, node->op);
        if (!list)
            return ort_error_memory(err, sizeof *list);
        if (list->count)
            ORT_TRY(rewrite_at(c, list, node, changes, err));
    }
    return ORT_OK;
}
