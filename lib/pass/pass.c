/* pass.c - the table of passes and its driver. Two passes that feed each other would be one: each
 * runs alone until it changes nothing more. */
#include "pass/pass.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "op/edit.h"

/* A sweep that always finds something is a defect; this bounds what it can cost. */
#define SWEEPS_MAX 100

/* Rounds over the whole table: passes that undo each other are a defect. */
#define ROUNDS_MAX 20

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

/* ---- near-misses */

typedef struct near_miss {
    const ort_pass *pass;
    const ort_node *node;
    const char *label, *condition;
} near_miss;

struct ort_near_misses {
    ort_arena arena;
    ORT_VEC(near_miss) list;
};

/* Passes try several forms at one node: the same condition comes in a row. */
static bool noted(const ort_near_misses *m, const ort_pass *pass, const ort_node *node,
                  const char *condition)
{
    for (size_t i = m->list.count; i-- > 0;) {
        const near_miss *miss = &m->list.data[i];
        if (miss->pass != pass || miss->node != node)
            return false;
        if (!strcmp(miss->condition, condition))
            return true;
    }
    return false;
}

/* Without memory a near-miss is lost: it is talk. */
void ort_pass_note(const ort_pass_context *context, const ort_node *node, const char *format, ...)
{
    ort_near_misses *m = context->near_misses;
    char text[512], label[256];
    va_list args;
    if (!m)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (noted(m, context->pass, node, text))
        return;
    near_miss miss = {context->pass, node,
                      ort_arena_strdup(&m->arena, ort_node_label(node, label, sizeof label)),
                      ort_arena_strdup(&m->arena, text)};
    if (miss.label && miss.condition)
        (void)!ort_vec_push(&m->list, miss);
}

static void tell_near_misses(const ort_pass_options *o, const ort_near_misses *m)
{
    for (size_t i = 0; m && i < m->list.count; i++) {
        const near_miss *miss = &m->list.data[i];
        if (o->near_miss)
            o->near_miss(o->near_miss_arg, miss->pass, miss->label, miss->condition);
        else
            ort_log_write(o->log, ORT_LOG_DEBUG, "pass %s leaves %s alone: %s", miss->pass->name,
                          miss->label, miss->condition);
    }
}

static void drop_near_misses(ort_near_misses *m)
{
    if (!m)
        return;
    ort_arena_release(&m->arena);
    ort_vec_release(&m->list);
    *m = (ort_near_misses){0};
}

/* ---- what may be written */

int ort_pass_opset(const ort_pass_context *c, const ort_node *node, const char *domain,
                   const char *op_type, int since)
{
    int have = (int)ort_model_opset(c->graph->model, domain);
    if (c->portable && !strcmp(domain, MS) && !c->contrib) {
        ort_pass_note(c, node, "com.microsoft %s would fit: --contrib allows it", op_type);
        return 0;
    }
    if (have >= since)
        return have;
    if (c->portable && !domain[0]) {
        ort_pass_note(c, node, "%s would fit: it came with opset %d, the model has %d", op_type,
                      since, have);
        return 0;
    }
    return since;
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
        ort_strbuf list = {0};
        for (int i = 0; table[i]; i++)
            ort_strbuf_addf(&list, "%s%s", i ? ", " : "", table[i]->name);
        ort_status status = ort_error_set(err, ORT_ERROR_USAGE,
                                          "no pass is named '%s'; the passes are: %s", *names,
                                          ort_strbuf_text(&list));
        ort_strbuf_release(&list);
        return status;
    }
    return ORT_OK;
}

static ort_status run_on(ort_pass_context *context, ort_graph *graph, int *total, ort_error *err)
{
    ort_node *node;
    for (int sweep = 0; sweep < SWEEPS_MAX; sweep++) {
        int changes = 0;
        context->graph = graph;
        ORT_TRY(context->pass->apply(context, &changes, err));
        if (!changes)
            break;
        *total += changes;
        ORT_TRY(ort_edit_finish(graph, err));
    }
    ORT_EACH_NODE(graph, node)
        for (int i = 0; i < node->body_count; i++)
            ORT_TRY(run_on(context, node->bodies[i], total, err));
    return ORT_OK;
}

/* Level 0 runs before any other, since no other sees what a Gradient node names; and in every
 * session, where nothing runs without it. */
static bool allowed(const ort_pass_options *options, const ort_pass *pass)
{
    bool chosen = options->only ? listed(options->only, pass->name) : pass->level <= options->level;
    if (!pass->level)
        return !options->portable || options->only || options->level > 0;
    return chosen && !listed(options->disable, pass->name);
}

const ort_pass *ort_pass_selected(const ort_pass_options *options, int n)
{
    for (const ort_pass *const *at = table_of(options); *at; at++)
        if (allowed(options, *at) && n-- == 0)
            return *at;
    return NULL;
}

typedef struct pass_total {
    uint64_t ns;
    int changes;
} pass_total;

typedef struct pass_run {
    const ort_pass_options *options;
    size_t growth_bytes;
    int count;          /* of the passes that are run */
    pass_total *totals; /* of each */
    ort_near_misses *near_misses; /* or NULL */
} pass_run;

static ort_status run_pass(ort_model *model, pass_run *run, int place, int *changed, ort_error *err)
{
    const ort_pass_options *options = run->options;
    const ort_pass *pass = ort_pass_selected(options, place);
    uint64_t begin = ort_clock_ns();
    int changes = 0;
    ort_pass_context context = {.registry = options->registry,
                                .k = ort_kernels_get("scalar"),
                                .target = options->target,
                                .log = options->log,
                                .portable = options->portable,
                                .contrib = options->contrib,
                                .growth_bytes = &run->growth_bytes,
                                .near_misses = run->near_misses,
                                .pass = pass};
    ort_status status = run_on(&context, model->graph, &changes, err);
    free(context.patterns);
    run->totals[place].ns += ort_clock_ns() - begin;
    run->totals[place].changes += changes;
    *changed += changes;
    return status ? ort_error_wrap(err, status, "pass %s", pass->name) : ORT_OK;
}

/* How many passes these options run. */
static int selected_count(const ort_pass_options *options)
{
    int count = 0;
    while ((!options->limit || count < options->limit) && ort_pass_selected(options, count))
        count++;
    return count;
}

static void report(const pass_run *run)
{
    const ort_pass_options *options = run->options;
    for (int i = 0; i < run->count; i++) {
        const ort_pass *pass = ort_pass_selected(options, i);
        const pass_total *total = &run->totals[i];
        if (options->report)
            options->report(options->report_arg, pass, total->ns, total->changes);
        if (total->changes && options->log)
            ort_log_write(options->log, ORT_LOG_INFO, "pass %s: %d changes", pass->name,
                          total->changes);
    }
}

/* Rounds until nothing changes. */
static ort_status run_rounds(ort_model *model, pass_run *run, ort_error *err)
{
    int changed = 1;
    run->count = selected_count(run->options);
    run->totals = calloc((size_t)run->count + 1, sizeof *run->totals);
    if (!run->totals)
        return ort_error_memory(err, ((size_t)run->count + 1) * sizeof *run->totals);
    for (int round = 0; changed && round < ROUNDS_MAX; round++) {
        changed = 0;
        drop_near_misses(run->near_misses);
        for (int i = 0; i < run->count; i++)
            ORT_TRY(run_pass(model, run, i, &changed, err));
    }
    return ORT_OK;
}

ort_status ort_passes_run(ort_model *model, const ort_pass_options *options, ort_error *err)
{
    ort_near_misses misses = {0};
    bool asked = options->near_miss ||
                 (options->log && options->log->level >= ORT_LOG_DEBUG);
    pass_run run = {.options = options,
                    .growth_bytes = options->growth_bytes,
                    .near_misses = asked ? &misses : NULL};
    ORT_TRY(check_names(table_of(options), options->only, false, err));
    ORT_TRY(check_names(table_of(options), options->disable, true, err));
    model->registry = options->registry;
    ort_status status = run_rounds(model, &run, err);
    if (!status) {
        report(&run);
        tell_near_misses(options, run.near_misses);
    }
    drop_near_misses(run.near_misses);
    free(run.totals);
    return status;
}
