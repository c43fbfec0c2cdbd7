/* pass.c - the table of passes and its driver. Two passes that feed each other would be one: each
 * runs alone until it changes nothing more. */
#include "pass/pass.h"

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/strbuf.h"
#include "graph/invariants.h"
#include "op/edit.h"
#include "pass/note.h"
#include "pass/rewrite.h"

/* A sweep that always finds something is a defect; this bounds what it can cost. */
#define SWEEPS_MAX 100

/* Rounds over the whole table: passes that undo each other are a defect. */
#define ROUNDS_MAX 20

/* Bodies are visited in batches of so many nodes, which stay in the second-level cache while all
 * passes look at them: a model may have tens of thousands of bodies of a node or two. */
#define BATCH_NODES 256

static const ort_pass *const passes[] = {
#define X(name) &ort_pass_##name,
#include "pass/passes.def"
#undef X
    NULL,
};
#define PASS_COUNT (sizeof passes / sizeof *passes - 1)

const ort_pass *ort_pass_at(int index)
{
    return index >= 0 && index < (int)PASS_COUNT ? passes[index] : NULL;
}

const ort_pass *const *ort_pass_all(void)
{
    return passes;
}

static bool listed(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (!strcmp(*names, name))
            return true;
    return false;
}

static const ort_pass *const *table_of(const ort_pass_options *options)
{
    return options->table ? options->table : passes;
}

enum { FEW_PASSES = 12 };

/* The nearest ones; of a handful, all. */
static ort_status unknown_pass(const char *name, const ort_pass *const *table, ort_error *err)
{
    ort_strbuf list = {0};
    ort_nearest near;
    char meant[300];
    int count = 0;
    ort_nearest_begin(&near, name);
    for (; table[count]; count++) {
        ort_nearest_try(&near, table[count]->name);
        ort_strbuf_addf(&list, "%s%s", count ? ", " : "", table[count]->name);
    }
    bool few = count <= FEW_PASSES;
    ort_status status = ort_error_set(err, ORT_ERROR_USAGE, "no pass is named '%s'%s; %s%s", name,
                                      ort_nearest_text(&near, meant, sizeof meant),
                                      few ? "the passes are: " : "ort-optimize --list-passes lists "
                                                                 "them",
                                      few ? ort_strbuf_text(&list) : "");
    ort_strbuf_release(&list);
    return status;
}

static ort_status check_names(const ort_pass *const *table, const char *const *names,
                              bool left_out, ort_error *err)
{
    for (; names && *names; names++) {
        bool found = false;
        for (int i = 0; table[i]; i++) {
            bool same = !strcmp(table[i]->name, *names);
            if (same && left_out && !table[i]->level)
                return ort_error_set(err, ORT_ERROR_USAGE, "pass '%s' can't be left out", *names);
            found = found || same;
        }
        if (found)
            continue;
        return unknown_pass(*names, table, err);
    }
    return ORT_OK;
}

/* What every edit keeps, asked of the whole graph: in builds for development (make DEBUG=1, those
 * with sanitizers) after each sweep that changed something, so that the pass which broke it is
 * named. */
static ort_status verify(const ort_graph *graph, ort_error *err)
{
#ifdef NDEBUG
    return ORT_OK;
#else
    ORT_TRY(ort_graph_verify(graph, err));
    return ort_facts_verify(graph, err);
#endif
}

static ort_status apply(ort_pass_context *context, int *changes, ort_error *err)
{
    return context->pass->apply ? context->pass->apply(context, changes, err)
                                : ort_rewrites_apply(context, changes, err);
}

/* To the pass's fixed point on this graph, its bodies not. */
static ort_status run_on(ort_pass_context *context, ort_graph *graph, int *total, ort_error *err)
{
    for (int sweep = 0; sweep < SWEEPS_MAX; sweep++) {
        int changes = 0;
        context->graph = graph;
        ORT_TRY(apply(context, &changes, err));
        ORT_TRY(ort_budget_check(err));
        if (!changes)
            break;
        *total += changes;
        ORT_TRY(ort_edit_finish(graph, err));
        ORT_TRY(verify(graph, err));
    }
    return ORT_OK;
}

/* Level 0 runs before any other, since no other sees what a Gradient node names; and in every
 * session, where nothing runs without it. */
static bool allowed(const ort_pass_options *options, const ort_pass *pass)
{
    bool chosen = options->only ? listed(options->only, pass->name) : pass->level <= options->level;
    if (!pass->level)
        return !options->portable || options->only || options->level > 0;
    return chosen && !listed(options->disable, pass->name) &&
           !(options->math_strict && pass->reassociates);
}

const ort_pass *ort_pass_selected(const ort_pass_options *options, int n)
{
    for (const ort_pass *const *at = table_of(options); *at; at++)
        if (allowed(options, *at) && n-- == 0)
            return *at;
    return NULL;
}

/* One of the passes that are run. */
typedef struct pass_state {
    const ort_pass *pass;
    uint64_t ns;
    int changes;
    /* What run->changes was when it left the main graph in the last round: unless something changed
     * since, there or in a body, it would change nothing again. -1: it must run. */
    int settled, left; /* left: of this round */
    struct ort_rewrite_table *table; /* of a pass with rows */
} pass_state;

typedef struct pass_run {
    const ort_pass_options *options;
    size_t growth_bytes;
    int count, changes; /* of the passes; of all of them */
    pass_state *states; /* of each */
    ort_near_misses *near_misses; /* NULL: they aren't asked for, or not yet */
} pass_run;

/* On a batch of graphs. */
static ort_status run_pass(pass_run *run, pass_state *state, ort_graph *const *graphs,
                           size_t count, ort_error *err)
{
    const ort_pass_options *options = run->options;
    ort_status status = ORT_OK;
    uint64_t begin = ort_clock_ns();
    int changes = 0;
    ort_pass_context context = {.registry = options->registry,
                                .k = ort_kernels_get("scalar"),
                                .target = options->target,
                                .log = options->log,
                                .portable = options->portable,
                                .contrib = options->contrib,
                                .any_order = options->any_order,
                                .growth_bytes = &run->growth_bytes,
                                .growing = options->growing,
                                .hidden = options->hidden,
                                .near_misses = run->near_misses,
                                .pass = state->pass,
                                .table = state->table};
    for (size_t i = 0; status == ORT_OK && i < count; i++)
        status = run_on(&context, graphs[i], &changes, err);
    state->table = context.table;
    if (!run->near_misses)
        state->ns += ort_clock_ns() - begin;
    state->changes += changes;
    run->changes += changes;
    return status != ORT_OK ? ort_error_wrap(err, status, "pass %s", state->pass->name) : ORT_OK;
}

typedef ORT_VEC(ort_graph *) graph_list;

static bool add_bodies(graph_list *graphs, const ort_graph *graph)
{
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
        for (int i = 0; i < node->body_count; i++)
            if (!ort_vec_push(graphs, node->bodies[i]))
                return false;
    return true;
}

/* What became known around a body since it was inferred is known in it. */
static void refresh_captures(ort_graph *body)
{
    for (size_t i = 0; i < body->values.count; i++) {
        ort_graph_value *value = body->values.data[i];
        if (value->outer == ORT_ID_NONE || value->fact.value)
            continue;
        const ort_fact *around = &body->parent->values.data[value->outer]->fact;
        if (around->value)
            value->fact = *around;
    }
}

/* Where the batch ends that begins at `first`. */
static size_t batch_end(const graph_list *graphs, size_t first)
{
    size_t nodes = graphs->data[first]->order.count, at = first + 1;
    while (first && at < graphs->count &&
           nodes + graphs->data[at]->order.count <= BATCH_NODES)
        nodes += graphs->data[at++]->order.count;
    return at;
}

/* The passes from `from` up to `to` on a batch of graphs, then on the next: the main graph by
 * itself, after it bodies, after them those within. All passes, or (not `all`) those that
 * something changed for. */
static ort_status run_batches(pass_run *run, graph_list *graphs, int from, int to, bool all,
                              ort_error *err)
{
    for (size_t first = 0, end; first < graphs->count; first = end) {
        end = batch_end(graphs, first);
        for (size_t i = first; first && i < end; i++)
            refresh_captures(graphs->data[i]);
        for (int i = from; i < to; i++) {
            pass_state *state = &run->states[i];
            if (all || state->settled != run->changes)
                ORT_TRY(run_pass(run, state, graphs->data + first, end - first, err));
            if (!first)
                state->left = run->changes;
        }
        for (size_t i = first; i < end; i++)
            if (!add_bodies(graphs, graphs->data[i]))
                return ort_error_memory(err, graphs->count * sizeof(ort_graph *));
    }
    for (int i = from; i < to; i++)
        run->states[i].settled = run->states[i].left;
    return ORT_OK;
}

/* Those of level 0 are done with every graph before others begin. */
static ort_status run_round(ort_model *model, pass_run *run, bool all, ort_error *err)
{
    graph_list graphs = {0};
    ort_status status = ORT_OK;
    for (int from = 0, to; status == ORT_OK && from < run->count; from = to) {
        to = from + 1;
        while (to < run->count && !run->states[to].pass->level == !run->states[from].pass->level)
            to++;
        ort_vec_clear(&graphs);
        status = ort_vec_push(&graphs, model->graph)
                     ? run_batches(run, &graphs, from, to, all, err)
                     : ort_error_memory(err, sizeof(ort_graph *));
    }
    ort_vec_release(&graphs);
    return status;
}

static void report(const pass_run *run)
{
    const ort_pass_options *options = run->options;
    for (int i = 0; i < run->count; i++) {
        const pass_state *state = &run->states[i];
        if (options->report)
            options->report(options->report_arg, state->pass, state->ns, state->changes);
        if (state->changes && options->log)
            ort_log_write(options->log, ORT_LOG_INFO, "pass %s: %d changes", state->pass->name,
                          state->changes);
    }
}

static ort_status begin_run(pass_run *run, ort_error *err)
{
    const ort_pass_options *o = run->options;
    const ort_pass *const *table = table_of(o);
    size_t most = 1;
    while (table[most - 1])
        most++;
    run->states = calloc(most, sizeof *run->states);
    if (!run->states)
        return ort_error_memory(err, most * sizeof *run->states);
    for (; *table && (!o->limit || run->count < o->limit); table++)
        if (allowed(o, *table))
            run->states[run->count++] = (pass_state){.pass = *table, .settled = -1};
    return ORT_OK;
}

/* Rounds until nothing changes. */
static ort_status run_rounds(ort_model *model, pass_run *run, ort_error *err)
{
    int before = -1;
    for (int round = 0; run->changes != before && round < ROUNDS_MAX; round++) {
        before = run->changes;
        ORT_TRY(run_round(model, run, false, err));
    }
    return ORT_OK;
}

/* Another round that only asks; should it find something to do, it is done, and asked again. */
static ort_status ask_round(ort_model *model, pass_run *run, ort_near_misses *misses,
                            ort_error *err)
{
    uint64_t begin = ort_clock_ns();
    int before = -1;
    run->near_misses = misses;
    for (int round = 0; run->changes != before && round < ROUNDS_MAX; round++) {
        before = run->changes;
        ort_near_misses_drop(misses);
        ORT_TRY(run_round(model, run, true, err));
    }
    if (run->options->near_miss_ns)
        *run->options->near_miss_ns = ort_clock_ns() - begin;
    return ORT_OK;
}

static bool near_misses_asked(const pass_run *run)
{
    const ort_pass_options *o = run->options;
    bool asked = o->near_miss || (o->log && o->log->level >= ORT_LOG_DEBUG);
    for (int i = 0; i < run->count && !asked; i++)
        asked = run->states[i].pass->speaks && o->log && o->log->level >= ORT_LOG_INFO;
    return asked;
}

/* In the order of the passes. */
static void tell_near_misses(const pass_run *run, const ort_near_misses *m)
{
    for (int k = 0; k < run->count; k++)
        ort_near_misses_tell(m, run->options, run->states[k].pass);
}

static void release_run(pass_run *run)
{
    for (int i = 0; run->states && i < run->count; i++)
        ort_rewrite_table_free(run->states[i].table);
    free(run->states);
}

ort_status ort_passes_run(ort_model *model, const ort_pass_options *options, ort_error *err)
{
    ort_near_misses misses = {0};
    pass_run run = {.options = options, .growth_bytes = options->growth_bytes};
    const ort_pass *const *names = options->names ? options->names : table_of(options);
    ORT_TRY(check_names(names, options->only, false, err));
    ORT_TRY(check_names(names, options->disable, true, err));
    model->registry = options->registry;
    unsigned control = ort_cpu_set_flush(!options->keep_denormals);
    ort_status status = begin_run(&run, err);
    if (status == ORT_OK)
        status = run_rounds(model, &run, err);
    if (status == ORT_OK && near_misses_asked(&run))
        status = ask_round(model, &run, &misses, err);
    if (status == ORT_OK) {
        report(&run);
        tell_near_misses(&run, &misses);
    }
    ort_cpu_restore_fp(control);
    ort_near_misses_drop(&misses);
    release_run(&run);
    return status;
}
