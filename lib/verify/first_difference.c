/* first_difference.c - where two sessions part on the same inputs (ort_sessions_compare).
 *
 * Values of the two graphs are matched by structure first (how a value is computed, from the names
 * of the graph inputs down: graph/hash.h), else by name; graph outputs always by name. Matched
 * values are compared in the order of the first graph, so the first that differs lies where the
 * cause is: all that feeds it agrees.
 *
 * What is left is matched by form, the structure but for the numbers of weights, where only one
 * value of either graph has it. Such values may well differ (folding scales weights), so they say
 * nothing by themselves; where others differ, one that does so earlier is nearer to the cause.
 */
#pragma GCC optimize("Os") /* once a session or less */
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "exec/session.h"
#include "graph/hash.h"
#include "verify/agree.h"

typedef enum match_kind {
    MATCH_NONE,
    MATCH_STRUCTURE,
    MATCH_NAME,
    MATCH_FORM,
    MATCH_OUTPUT
} match_kind;

typedef struct pairing { /* a computed value of the first graph, in its order */
    ort_id a, b;
    match_kind kind;
    ort_value *value; /* of the first run; ours */
} pairing;

typedef struct comparison {
    const ort_session *a, *b;
    const ort_locate_options *options;
    const ort_run_options *run;
    ort_first_difference *result;
    ORT_VEC(pairing) pairs;
    ort_hashmap by_name_a, by_name_b; /* to the index of a pair; by_name_b chains through next */
    ORT_VEC(uint32_t) next;         /* per pair: another pair of the same value of b, plus 1 */
    uint32_t first;                 /* pair that differs so far; UINT32_MAX: none */
    uint32_t first_form;            /* the same of those matched by form */
    char form_text[512];            /* how it differs */
    ort_status status;
    ort_error *err;
} comparison;

static const ort_graph *graph_of(const ort_session *session) { return session->program->graph; }

static const char *name_of(const ort_session *session, ort_id id)
{
    return graph_of(session)->values.data[id]->name;
}

/* ---- matching */

static bool put(ort_hashmap *map, const void *key, size_t bytes, uint64_t value)
{
    return ort_hashmap_get(map, key, bytes, NULL) || ort_hashmap_put(map, key, bytes, value);
}

static ort_id output_of(const ort_session *session, const char *name)
{
    for (int i = 0; i < session->output_count; i++)
        if (!strcmp(session->outputs[i].name, name))
            return session->outputs[i].id;
    return ORT_ID_NONE;
}

/* The output of b that stands for output `id` of a: by name, by position when no name is common. */
static ort_id output_match(const comparison *c, ort_id id)
{
    bool common = false;
    int place = -1;
    for (int i = 0; i < c->a->output_count; i++) {
        common = common || output_of(c->b, c->a->outputs[i].name) != ORT_ID_NONE;
        if (c->a->outputs[i].id == id)
            place = i;
    }
    if (place < 0)
        return ORT_ID_NONE;
    if (common)
        return output_of(c->b, c->a->outputs[place].name);
    return c->a->output_count == c->b->output_count ? c->b->outputs[place].id : ORT_ID_NONE;
}

typedef struct lookup { /* of the values that a graph computes */
    ort_graph_hashes hashes, forms;
    ort_hashmap by_hash, by_name;
    ort_hashmap by_form; /* to its value; ORT_ID_NONE when there are more */
} lookup;

static bool put_form(lookup *l, ort_id id)
{
    const uint64_t *form = &l->forms.values[id];
    bool again = ort_hashmap_get(&l->by_form, (const char *)form, sizeof *form, NULL);
    return ort_hashmap_put(&l->by_form, (const char *)form, sizeof *form,
                           again ? ORT_ID_NONE : id);
}

static ort_status index_values(const ort_graph *graph, lookup *l, ort_error *err)
{
    const ort_node *node;
    ORT_TRY(ort_graph_hashes_init(graph, false, &l->hashes, err));
    ORT_TRY(ort_graph_hashes_init(graph, true, &l->forms, err));
    ORT_EACH_NODE(graph, node)
        for (int i = 0; i < node->output_count; i++) {
            ort_id id = node->outputs[i];
            if (id == ORT_ID_NONE)
                continue;
            const char *name = graph->values.data[id]->name;
            if (!put(&l->by_hash, &l->hashes.values[id], sizeof *l->hashes.values, id) ||
                !put(&l->by_name, name, strlen(name), id) || !put_form(l, id))
                return ort_error_memory(err, sizeof id);
        }
    return ORT_OK;
}

static void lookup_release(lookup *l)
{
    ort_graph_hashes_release(&l->hashes);
    ort_graph_hashes_release(&l->forms);
    ort_hashmap_release(&l->by_form);
    ort_hashmap_release(&l->by_hash);
    ort_hashmap_release(&l->by_name);
}

/* The only value of b with the form that this one alone has in a, and that nothing of a matches
 * better; ORT_ID_NONE. */
static ort_id form_match(const comparison *c, const lookup *a, const lookup *b, ort_id id)
{
    const char *form = (const char *)&a->forms.values[id];
    uint64_t own, found;
    if (!ort_hashmap_get(&a->by_form, form, sizeof own, &own) || own != id ||
        !ort_hashmap_get(&b->by_form, form, sizeof own, &found) || found == ORT_ID_NONE ||
        ort_hashmap_get_str(&a->by_name, name_of(c->b, (ort_id)found), NULL) ||
        ort_hashmap_get(&a->by_hash, (const char *)&b->hashes.values[found], sizeof own, NULL))
        return ORT_ID_NONE;
    return (ort_id)found;
}

static pairing match(const comparison *c, const lookup *own, const lookup *l, ort_id id)
{
    pairing p = {.a = id, .b = output_match(c, id), .kind = MATCH_OUTPUT};
    uint64_t found;
    const char *name = name_of(c->a, id);
    if (p.b != ORT_ID_NONE)
        return p;
    p.kind = MATCH_STRUCTURE;
    if (ort_hashmap_get(&l->by_hash, (const char *)&own->hashes.values[id], sizeof found, &found)) {
        p.b = (ort_id)found;
    } else if (*name && ort_hashmap_get_str(&l->by_name, name, &found)) {
        p.kind = MATCH_NAME;
        p.b = (ort_id)found;
    } else {
        p.kind = MATCH_FORM;
        p.b = form_match(c, own, l, id);
    }
    return p;
}

static ort_status add_pair(comparison *c, pairing p, ort_error *err)
{
    const char *name = name_of(c->a, p.a);
    uint64_t before = 0;
    bool chained = p.b != ORT_ID_NONE &&
                   ort_hashmap_get(&c->by_name_b, name_of(c->b, p.b), strlen(name_of(c->b, p.b)),
                                   &before);
    uint32_t index = (uint32_t)c->pairs.count, link = chained ? (uint32_t)before + 1 : 0;
    if (!ort_vec_push(&c->pairs, p) || !ort_vec_push(&c->next, link) ||
        !put(&c->by_name_a, name, strlen(name), index) ||
        (p.b != ORT_ID_NONE && !ort_hashmap_put_str(&c->by_name_b, name_of(c->b, p.b), index)))
        return ort_error_memory(err, sizeof p);
    return ORT_OK;
}

static ort_status pair_values(comparison *c, ort_error *err)
{
    lookup own = {0}, l = {0};
    const ort_node *node;
    ort_status status = index_values(graph_of(c->a), &own, err);
    if (status == ORT_OK)
        status = index_values(graph_of(c->b), &l, err);
    ORT_EACH_NODE(graph_of(c->a), node)
        for (int i = 0; i < node->output_count && status == ORT_OK; i++)
            if (node->outputs[i] != ORT_ID_NONE)
                status = add_pair(c, match(c, &own, &l, node->outputs[i]), err);
    lookup_release(&own);
    lookup_release(&l);
    return status;
}

/* ---- comparing */

static bool same_shape(const ort_value *a, const ort_value *b)
{
    return a->kind == b->kind &&
           (a->kind != ORT_KIND_TENSOR || ort_shape_equal(&a->tensor.shape, &b->tensor.shape));
}

/* Exporters number values: two that only share a name are one thing when they look alike. */
static bool accidental(const comparison *c, const pairing *p, const ort_value *b)
{
    const ort_graph *ga = graph_of(c->a), *gb = graph_of(c->b);
    if (p->kind != MATCH_NAME || same_shape(p->value, b))
        return false;
    return strcmp(ga->nodes.data[ga->producers.data[p->a]]->op_type,
                  gb->nodes.data[gb->producers.data[p->b]]->op_type);
}

static void tell(comparison *c, uint32_t index, const ort_difference *d)
{
    const pairing *p = &c->pairs.data[index];
    const ort_graph *graph = graph_of(c->a);
    ort_first_difference *r = c->result;
    c->first = index;
    r->differs = true;
    r->is_output = p->kind == MATCH_OUTPUT || p->b == ORT_ID_NONE;
    snprintf(r->name, sizeof r->name, "%s", name_of(c->a, p->a));
    snprintf(r->other, sizeof r->other, "%s", p->b == ORT_ID_NONE ? r->name : name_of(c->b, p->b));
    ort_node_label(graph->nodes.data[graph->producers.data[p->a]], r->node, sizeof r->node);
    snprintf(r->text, sizeof r->text, "%s", d->text);
}

static void count_pair(comparison *c, uint32_t index, const ort_difference *d)
{
    const pairing *p = &c->pairs.data[index];
    ort_first_difference *r = c->result;
    r->compared++;
    r->by_structure += p->kind == MATCH_STRUCTURE;
    if (d->max_abs > r->max_abs) {
        r->max_abs = d->max_abs;
        snprintf(r->worst, sizeof r->worst, "%s", name_of(c->a, p->a));
    }
    if (!d->equal && index < c->first)
        tell(c, index, d);
}

/* Does this output show anything? NaN agrees with NaN. */
static void look_at_output(comparison *c, const pairing *p)
{
    ort_first_difference *r = c->result;
    if (output_of(c->a, name_of(c->a, p->a)) == ORT_ID_NONE)
        return;
    bool empty = ort_agree_is_empty(p->value);
    if (!empty && ort_agree_is_float(p->value) && ort_agree_magnitude(p->value) < 0)
        snprintf(r->blank, sizeof r->blank, "%s", name_of(c->a, p->a));
    else
        r->telling += !empty;
}

static ort_status compare_pair(comparison *c, uint32_t index, const ort_value *b, ort_error *err)
{
    pairing *p = &c->pairs.data[index];
    ort_difference d;
    if (!p->value || accidental(c, p, b))
        return ORT_OK;
    ort_agreement how = {.tolerance = c->options->rtol, .atol = c->options->atol};
    ORT_TRY(ort_agree_compare(p->value, b, &how, &d, err));
    if (p->kind == MATCH_FORM) {
        if (!d.equal && index < c->first_form) {
            c->first_form = index;
            snprintf(c->form_text, sizeof c->form_text, "%s", d.text);
        }
    } else {
        count_pair(c, index, &d);
        look_at_output(c, p);
    }
    ort_value_free(p->value);
    p->value = NULL;
    return ORT_OK;
}

/* An output of a that b has in no way. What differed before says more. */
static void find_missing(comparison *c)
{
    ort_difference d = {.text = "the other model has no such output"};
    for (uint32_t i = 0; i < c->pairs.count && c->first == UINT32_MAX; i++) {
        const pairing *p = &c->pairs.data[i];
        if (p->b == ORT_ID_NONE && output_of(c->a, name_of(c->a, p->a)) != ORT_ID_NONE)
            tell(c, i, &d);
    }
}

static void look_before(comparison *c)
{
    ort_difference d;
    if (c->first == UINT32_MAX || c->first_form > c->first)
        return;
    snprintf(d.text, sizeof d.text, "%s", c->form_text);
    tell(c, c->first_form, &d);
}

/* ---- running */

static void keep_value(void *arg, const char *name, const ort_value *value)
{
    comparison *c = arg;
    uint64_t index;
    if (c->status != ORT_OK || !ort_hashmap_get_str(&c->by_name_a, name, &index))
        return;
    pairing *p = &c->pairs.data[index];
    if (p->b != ORT_ID_NONE && !p->value)
        c->status = ort_value_clone(value, &p->value, c->err);
}

static void compare_value(void *arg, const char *name, const ort_value *value)
{
    comparison *c = arg;
    uint64_t index;
    if (c->status != ORT_OK || !ort_hashmap_get_str(&c->by_name_b, name, &index))
        return;
    for (uint32_t next = (uint32_t)index + 1; next && c->status == ORT_OK;
         next = c->next.data[next - 1])
        c->status = compare_pair(c, next - 1, value, c->err);
}

static ort_status run_one(comparison *c, const ort_session *session, ort_value *const *inputs,
                          ort_value_fn *on_value, ort_error *err)
{
    ort_run_options run = *c->run;
    ort_value **outputs = calloc((size_t)session->output_count + 1, sizeof *outputs);
    if (!outputs)
        return ort_error_memory(err, sizeof *outputs);
    run.on_value = on_value;
    run.callback_arg = c;
    c->err = err;
    ort_status status = ort_session_run_all(session, inputs, outputs, &run, err);
    for (int i = 0; i < session->output_count; i++) {
        if (status == ORT_OK && outputs[i]) /* constants come from no step */
            on_value(c, session->outputs[i].name, outputs[i]);
        ort_value_free(outputs[i]);
    }
    free(outputs);
    return status != ORT_OK ? status : c->status;
}

/* b's inputs from a's: by name, by position when no name is common. */
static ort_status share_inputs(const comparison *c, ort_value *const *inputs, ort_value **shared,
                               ort_error *err)
{
    int common = 0;
    for (int i = 0; i < c->b->input_count; i++)
        for (int k = 0; k < c->a->input_count; k++)
            if (!strcmp(c->b->inputs[i].name, c->a->inputs[k].name)) {
                shared[i] = inputs[k];
                common++;
            }
    for (int i = 0; i < c->b->input_count; i++) {
        if (!common && c->a->input_count == c->b->input_count)
            shared[i] = inputs[i];
        if (!shared[i] && !c->b->inputs[i].default_value)
            return ort_error_set(err, ORT_ERROR_USAGE,
                                 "the second model has an input '%s' that the first has not",
                                 c->b->inputs[i].name);
    }
    return ORT_OK;
}

static ort_status compare_runs(comparison *c, ort_value *const *inputs, ort_error *err)
{
    ort_value **shared = calloc((size_t)c->b->input_count + 1, sizeof *shared);
    if (!shared)
        return ort_error_memory(err, sizeof *shared);
    /* the first model first: it is the one that knows which of its inputs are missing */
    ort_status status = run_one(c, c->a, inputs, keep_value, err);
    if (status == ORT_OK)
        status = share_inputs(c, inputs, shared, err);
    if (status == ORT_OK) {
        status = run_one(c, c->b, shared, compare_value, err);
        if (status != ORT_OK)
            ort_error_wrap(err, status, "the second model");
    }
    free(shared);
    return status;
}

ort_status ort_sessions_compare(const ort_session *a, const ort_session *b,
                                ort_value *const *inputs, size_t input_count,
                                const ort_locate_options *options, ort_first_difference *result,
                                ort_error *err)
{
    if (!a || !b || !(inputs || !input_count))
        return ort_error_null(err, __func__);
    ort_run_options own_run = ORT_RUN_OPTIONS_INIT;
    ort_first_difference found = ORT_FIRST_DIFFERENCE_INIT;
    ort_locate_options own = ORT_LOCATE_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    const ort_run_options *run = ORT_OPTIONS_KNOWN(options->run, &own_run, err);
    if (!run)
        return ORT_ERROR_USAGE;
    ORT_TRY(ORT_RESULT_CHECK(result, err));
    ORT_TRY(ort_exec_check_count(a->input_count, "inputs", input_count, err));
    comparison c = {.a = a,
                    .b = b,
                    .options = options,
                    .run = run,
                    .result = &found,
                    .first = UINT32_MAX,
                    .first_form = UINT32_MAX};
    ort_status status = pair_values(&c, err);
    if (status == ORT_OK)
        status = compare_runs(&c, inputs, err);
    if (status == ORT_OK) {
        find_missing(&c);
        look_before(&c);
    }
    for (size_t i = 0; i < c.pairs.count; i++)
        ort_value_free(c.pairs.data[i].value);
    found.alone = (int)c.pairs.count - found.compared;
    ort_vec_release(&c.pairs);
    ort_vec_release(&c.next);
    ort_hashmap_release(&c.by_name_a);
    ort_hashmap_release(&c.by_name_b);
    return status != ORT_OK ? status : ORT_RESULT_GIVE(result, &found, err);
}
