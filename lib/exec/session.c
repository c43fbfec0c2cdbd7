/* session.c - from a model to a session: inline, check, infer, passes, partition, prepare.
 *
 * Every stage that can find several problems reports all of them. Values asked for by name become
 * graph outputs before the passes run, so no fusion removes them.
 */
#include "exec/session.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/findings.h"
#include "base/nearest.h"
#include "base/strbuf.h"
#include "exec/packing.h"
#include "exec/step_packs.h"
#include "op/check/check.h"

#define LISTED_NAMES 40

typedef struct creation {
    ort_env *env;
    const ort_session_options *options;
    ort_session *session;
    ort_graph *graph;
    ort_packing *packing; /* NULL: packed constants stay in memory */
    ort_findings *findings; /* nodes that nobody runs */
    uint64_t mark; /* when the present phase began */
} creation;

static bool from_pack(const creation *c)
{
    return c->packing && c->packing->from;
}

/* ---- phases */

static void add_phase(ort_session *session, const char *name, uint64_t ns, int changes)
{
    ort_phase phase = {.ns = ns, .changes = changes};
    memcpy(phase.name, name, strnlen(name, sizeof phase.name - 1));
    (void)ort_vec_push(&session->phases, phase);
}

static void end_phase(creation *c, const char *name)
{
    uint64_t now = ort_clock_ns();
    add_phase(c->session, name, now - c->mark, -1);
    c->mark = now;
}

static void report_pass(void *arg, const ort_pass *pass, uint64_t ns, int changes)
{
    add_phase(arg, pass->name, ns, changes);
}

/* ---- check */

static void find_unknown(const creation *c, const ort_graph *graph, ort_findings *findings)
{
    const ort_node *node;
    char label[256];
    ORT_EACH_NODE(graph, node)
    {
        int64_t version = node->opset ? node->opset : ort_model_opset(graph->model, node->domain);
        const char *dot = node->domain[0] ? "." : "";
        for (int i = 0; i < node->body_count; i++)
            find_unknown(c, node->bodies[i], findings);
        if (version <= 0 ||
            ort_registry_find(c->env->registry, node->domain, node->op_type, version))
            continue;
        int oldest = ort_registry_oldest(c->env->registry, node->domain, node->op_type);
        ort_node_label(node, label, sizeof label);
        if (!*node->op_type)
            ort_findings_add(findings, ORT_FINDING_ERROR,
                             "%s: has no operator: its op_type is empty", label);
        else if (oldest)
            ort_findings_add(findings, ORT_FINDING_ERROR,
                             "%s: operator %s%s%s isn't available in opset %lld (it starts at %d)",
                             label, node->domain, dot, node->op_type, (long long)version, oldest);
        else
            ort_findings_add(findings, ORT_FINDING_ERROR,
                             "%s: operator %s%s%s of opset %lld is unknown%s", label, node->domain,
                             dot, node->op_type, (long long)version,
                             ort_registry_hint(c->env->registry, node->domain));
    }
}

static ort_status check(creation *c, ort_error *err)
{
    ort_findings *findings = NULL;
    ort_status status = ort_findings_new(&findings, err);
    if (status != ORT_OK)
        return status;
    find_unknown(c, c->graph, findings);
    status = ort_findings_to_error(findings, ORT_ERROR_UNSUPPORTED, err);
    ort_findings_free(findings);
    if (status != ORT_OK)
        return status;
    return ort_check_whole(c->session->model, c->env->registry, err);
}

/* ---- inputs with defaults */

static ort_status allocate_inputs(ort_session *s, ort_error *err)
{
    size_t count = (size_t)s->input_count + 1;
    s->inputs = ort_arena_array(&s->memory, count, sizeof *s->inputs);
    s->defaults = ort_arena_array(&s->memory, count, sizeof *s->defaults);
    s->input_ids = ort_arena_array(&s->memory, count, sizeof *s->input_ids);
    s->program_inputs = ort_arena_array(&s->memory, count, sizeof *s->program_inputs);
    if (!s->inputs || !s->defaults || !s->input_ids || !s->program_inputs)
        return ort_error_memory(err, sizeof *s->inputs * count);
    return ORT_OK;
}

/* Defaults are constants of a session that assumes them: those inputs leave the graph's list. In
 * the general session a default may be overridden at each run: inference and passes must not see
 * it. */
static ort_status settle_inputs(creation *c, ort_error *err)
{
    ort_session *s = c->session;
    size_t kept = 0;
    s->input_count = (int)c->graph->inputs.count;
    ORT_TRY(allocate_inputs(s, err));
    for (int i = 0; i < s->input_count; i++) {
        ort_port *port = &s->inputs[i];
        port->id = c->graph->inputs.data[i];
        ort_graph_value *value = c->graph->values.data[port->id];
        port->default_value = value->fact.value;
        if (s->assumes_defaults && port->default_value) {
            value->is_input = false;
            continue;
        }
        value->fact.value = NULL;
        s->defaults[kept] = port->default_value;
        s->program_inputs[kept] = i;
        s->input_ids[kept] = port->id;
        c->graph->inputs.data[kept++] = port->id;
    }
    assert(s->assumes_defaults || kept == c->graph->inputs.count);
    c->graph->inputs.count = kept;
    s->program_input_count = (int)kept;
    return ORT_OK;
}

static bool has_defaults(const ort_graph *graph)
{
    for (size_t i = 0; i < graph->inputs.count; i++)
        if (graph->values.data[graph->inputs.data[i]]->fact.value)
            return true;
    return false;
}

/* ---- extra outputs */

static ort_status unknown_value(const ort_graph *graph, const char *name, ort_error *err)
{
    ort_strbuf names = {0};
    ort_nearest near;
    char meant[300];
    size_t listed = 0;
    const ort_node *node;
    ort_nearest_begin(&near, name);
    for (size_t i = 0; i < graph->outputs.count; i++) { /* first what is most likely meant */
        const char *output = graph->values.data[graph->outputs.data[i]]->name;
        ort_nearest_try(&near, output);
        if (listed++ < LISTED_NAMES)
            ort_strbuf_addf(&names, "%s%s", listed > 1 ? ", " : "", output);
    }
    ORT_EACH_NODE(graph, node)
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != ORT_ID_NONE)
                ort_nearest_try(&near, graph->values.data[node->outputs[i]]->name);
    ort_status status =
        ort_error_set(err, ORT_ERROR_USAGE, "the graph has no value '%s'%s; its outputs are %s%s, "
                      "and ort-inspect --shapes lists all values", name,
                      ort_nearest_text(&near, meant, sizeof meant), ort_strbuf_text(&names),
                      listed > LISTED_NAMES ? ", ..." : "");
    ort_strbuf_release(&names);
    return status;
}

/* Passes leave outputs alone; that is all that keeping a value needs. */
static void keep_from_passes(ort_graph *graph, ort_id id)
{
    graph->values.data[id]->is_output = true;
    graph->values.data[id]->use_count++;
}

/* In the graph and in all bodies: branches may have values of one name. False: there is none. */
static bool watch(ort_graph *graph, const char *name)
{
    ort_id id = ort_graph_find_value(graph, name);
    bool found = id != ORT_ID_NONE && graph->values.data[id]->outer == ORT_ID_NONE;
    ort_node *node;
    if (found) {
        keep_from_passes(graph, id);
        graph->values.data[id]->is_watched = true;
    }
    ORT_EACH_NODE(graph, node)
        for (int b = 0; b < node->body_count; b++)
            found = watch(node->bodies[b], name) || found;
    return found;
}

static ort_status add_extra_outputs(creation *c, ort_error *err)
{
    ort_graph *graph = c->graph;
    const char *const *names = c->options->extra_outputs;
    for (; names && *names; names++) {
        ort_id id = ort_graph_find_value(graph, *names);
        if (id == ORT_ID_NONE)
            return unknown_value(graph, *names, err);
        ort_graph_value *value = graph->values.data[id];
        if (value->is_output)
            continue;
        value->is_output = true;
        value->use_count++;
        if (!ort_vec_push(&graph->outputs, id))
            return ort_error_memory(err, sizeof id);
        ort_graph_touch(graph, NULL);
    }
    for (names = c->options->watched; names && *names; names++)
        if (!watch(graph, *names))
            return unknown_value(graph, *names, err);
    for (size_t i = 0; c->options->keep_all && i < graph->values.count; i++)
        if (graph->producers.data[i] != ORT_ID_NONE)
            keep_from_passes(graph, (ort_id)i);
    return ORT_OK;
}

/* ---- ports */

static ort_status describe(creation *c, ort_port *port, const ort_graph_value *value,
                           ort_error *err)
{
    port->name = value->name;
    port->type = value->fact.type;
    port->info = ort_value_describe(c->session->model->dims, value, &c->session->memory);
    if (!port->info)
        return ort_error_memory(err, sizeof *port->info);
    port->type_text = port->info->text;
    return ORT_OK;
}

static ort_status describe_inputs(creation *c, ort_error *err)
{
    for (int i = 0; i < c->session->input_count; i++) {
        ort_port *port = &c->session->inputs[i];
        const ort_graph_value *value = c->graph->values.data[port->id];
        ORT_TRY(describe(c, port, value, err));
        c->session->has_scalars = c->session->has_scalars ||
                                  (port->type.kind == ORT_TYPE_TENSOR && port->type.rank == 0);
    }
    return ORT_OK;
}

static ort_status describe_outputs(creation *c, ort_error *err)
{
    ort_session *s = c->session;
    s->output_count = (int)c->graph->outputs.count;
    s->outputs = ort_arena_array(&s->memory, (size_t)s->output_count + 1, sizeof *s->outputs);
    if (!s->outputs)
        return ort_error_memory(err, sizeof *s->outputs * (size_t)s->output_count);
    for (int i = 0; i < s->output_count; i++) {
        ort_port *port = &s->outputs[i];
        port->id = c->graph->outputs.data[i];
        const ort_graph_value *value = c->graph->values.data[port->id];
        ORT_TRY(describe(c, port, value, err));
    }
    return ORT_OK;
}

/* ---- stages */

/* Dims of inputs that the model leaves open without a name get one, so that inference can tell
 * which other dims are the same: layouts and fusions ask. *named: was there any? */
static ort_status name_open_dims(creation *c, bool *named, ort_error *err)
{
    *named = false;
    ort_dim_table *dims = c->session->model->dims;
    for (size_t i = 0; i < c->graph->inputs.count; i++) {
        ort_graph_value *value = c->graph->values.data[c->graph->inputs.data[i]];
        ort_type *type = &value->fact.type;
        char name[256];
        for (int d = 0; type->kind == ORT_TYPE_TENSOR && d < type->rank; d++) {
            if (type->dim[d].expr != ORT_DIM_UNKNOWN)
                continue;
            snprintf(name, sizeof name, "%.200s[%d]", value->name, d);
            type->dim[d] = ort_dim_symbol(dims, name);
            *named = true;
        }
    }
    return ort_dim_table_take_failure(dims) ? ort_error_memory(err, 256) : ORT_OK;
}

enum { PORTABLE_LEVEL = 2, LOWERING_LEVEL = 3 };

static ort_pass_options pass_options(const creation *c, int most)
{
    int level = c->options->level < 0 ? LOWERING_LEVEL : c->options->level;
    return (ort_pass_options){.level = level < most ? level : most,
                              .names = ort_pass_all(),
                              .disable = c->options->disable,
                              .registry = c->env->registry,
                              .target = c->env->k,
                              .growth_bytes = ORT_PASS_SESSION_GROWTH,
                              .keep_denormals = c->env->options.keep_denormals,
                              .math_strict = c->env->options.math_strict,
                              .any_order = c->session->any_order,
                              .log = &c->env->log,
                              .report = report_pass,
                              .report_arg = c->session};
}

/* What any provider runs: ONNX and contrib operators. */
static ort_status simplify(creation *c, ort_error *err)
{
    ort_pass_options options = pass_options(c, PORTABLE_LEVEL);
    ORT_TRY(ort_passes_run(c->session->model, &options, err));
    c->mark = ort_clock_ns();
    return ORT_OK;
}

static ort_status open_providers(creation *c, ort_error *err)
{
    const ort_provider *const *own = c->env->providers; /* an environment of a report has none */
    const ort_partition_setup setup = {.table = own ? own : ort_provider_table(),
                                       .list = c->options->providers,
                                       .strict = c->options->strict,
                                       .threads = c->env->threads,
                                       .log = &c->env->log,
                                       .devices = c->env->devices};
    return ort_partition_open(&c->session->partition, &setup, err);
}

typedef struct refusals { /* of a provider that should have run all */
    int count;
    char first[300];
} refusals;

/* Not of nodes that have bodies: they are what these are. */
static void note_refusal(void *arg, const ort_partition *p, const ort_node *node,
                         const ort_provider *by, const char *why)
{
    refusals *r = arg;
    char label[200];
    if (!node->body_count && !ort_partition_idles(p, node) && !r->count++)
        snprintf(r->first, sizeof r->first, "%s: %s", ort_node_label(node, label, sizeof label),
                 why);
}

/* Who runs which node, and one line that says it. */
static ort_status divide(creation *c, ort_error *err)
{
    ort_partition *p = &c->session->partition;
    refusals refused = {0};
    ort_tally tally;
    char line[300];
    bool asks = p->count > 1;
    ORT_TRY(ort_partition_assign(p, c->graph, c->findings, asks ? note_refusal : NULL, &refused,
                                 err));
    if (!asks)
        return ORT_OK;
    ORT_TRY(ort_partition_order(p, c->graph, err));
    ORT_TRY(ort_partition_tally(p, c->graph, &tally, err));
    ort_log_write(&c->env->log, ORT_LOG_INFO, "%s",
                  ort_partition_line(p, &tally, line, sizeof line));
    int left = tally.nodes[p->count - 1] - tally.around;
    if (p->host_named || !left)
        return ORT_OK;
    if (c->options->strict)
        return ort_error_set(err, ORT_ERROR_GATE, "provider '%s' doesn't run %d nodes; first %s",
                             p->list[0].row->name, left, refused.first);
    ort_log_write(&c->env->log, ORT_LOG_WARNING, "%d nodes run on %s; first %s", left,
                  ort_partition_host(p)->name, refused.first);
    return ORT_OK;
}

/* Each provider's own forms, inside of its part. */
static ort_status lower(creation *c, ort_error *err)
{
    ort_pass_options options = pass_options(c, LOWERING_LEVEL);
    if (options.level == LOWERING_LEVEL)
        ORT_TRY(ort_partition_lower(&c->session->partition, c->session->model, &options, err));
    c->mark = ort_clock_ns();
    return ORT_OK;
}

static ort_status prepare(creation *c, ort_error *err)
{
    ort_session *s = c->session;
    ort_blob *spare = NULL;
    ort_shared_packs shared = {0};
    ort_program_options options = {.env = c->env,
                                   .spare = &spare,
                                   .arena = &s->model->arena,
                                   .findings = c->findings,
                                   .partition = &s->partition,
                                   .inputs = s->input_ids,
                                   .input_count = s->program_input_count,
                                   .defaults = s->defaults,
                                   .keep_all = s->keep_all,
                                   .watches = s->watches,
                                   .packing = c->packing,
                                   .shared = &shared};
    ort_loading_leave_to_runs(&c->env->limits);
    end_phase(c, "plan");
    size_t before = options.arena->used_bytes;
    ort_status status = ort_program_new(&options, c->graph, NULL, &s->program, err);
    s->prepared_bytes = options.arena->used_bytes - before;
    ort_blob_release(spare);
    ort_shared_packs_release(&shared);
    if (status == ORT_OK)
        end_phase(c, "prepack");
    if (status != ORT_OK)
        return status;
    return ort_findings_to_error(c->findings, ORT_ERROR_UNSUPPORTED, err);
}

/* The walk from a model to a session. */
static ort_status create(creation *c, ort_error *err)
{
    bool named;
    ORT_TRY(ort_findings_new(&c->findings, err));
    ORT_TRY(open_providers(c, err));
    ORT_TRY(ort_graph_inline_functions(c->graph, err));
    ORT_TRY(settle_inputs(c, err));
    ORT_TRY(check(c, err));
    end_phase(c, "check");
    ORT_TRY(describe_inputs(c, err));
    ORT_TRY(name_open_dims(c, &named, err));
    if (named) /* otherwise the check inferred from the same inputs */
        ORT_TRY(ort_graph_infer(c->graph, c->env->registry, NULL, err));
    end_phase(c, "infer");
    ORT_TRY(add_extra_outputs(c, err));
    if (!from_pack(c)) /* whose graph is lowered already */
        ORT_TRY(simplify(c, err));
    ORT_TRY(divide(c, err));
    if (!from_pack(c))
        ORT_TRY(lower(c, err));
    ORT_TRY(ort_partition_order(&c->session->partition, c->graph, err));
    ORT_TRY(describe_outputs(c, err));
    return prepare(c, err);
}

/* ---- the whole */

static const char *const *copy_names(ort_arena *arena, const char *const *names)
{
    size_t count = 0;
    while (names && names[count])
        count++;
    const char **copy = ort_arena_array(arena, count + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        copy[i] = ort_arena_strdup(arena, names[i]);
    return copy;
}

/* The options outlive the caller's: the general session may be made much later. */
static ort_status keep_options(ort_session *s, const ort_session_options *options, ort_error *err)
{
    s->options = *options;
    s->options.disable = copy_names(&s->memory, options->disable);
    s->options.extra_outputs = copy_names(&s->memory, options->extra_outputs);
    s->options.watched = copy_names(&s->memory, options->watched);
    if (options->providers)
        s->options.providers = ort_arena_strdup(&s->memory, options->providers);
    return s->options.disable && s->options.extra_outputs && s->options.watched
               ? ORT_OK
               : ort_error_memory(err, 64);
}

/* The session outlives the path that the caller named it by. */
static ort_status keep_origin(ort_session *s, ort_source *origin, ort_error *err)
{
    s->origin = *origin;
    *origin = (ort_source){0};
    s->origin.label = ort_arena_strdup(&s->memory, s->origin.label);
    return s->origin.label ? ORT_OK : ort_error_memory(err, 1);
}

/* Are devices named, and the host, too? */
static bool may_fall_back(const ort_session_parts *b)
{
    const ort_provider *const *table = b->env->providers;
    return table && !b->packing && !b->options->strict &&
           ort_partition_may_fall_back(table, b->options->providers);
}

/* Takes pristine, too. */
static ort_status new_session(const ort_session_parts *b, ort_model *pristine,
                              bool assumes_defaults, ort_session **session, ort_error *err)
{
    ort_session *s = calloc(1, sizeof *s);
    *session = NULL;
    if (!s) {
        ort_model_free(b->model);
        ort_model_free(pristine);
        return ort_error_memory(err, sizeof *s);
    }
    ort_env *env = b->env;
    ort_status derived = ORT_OK;
    const ort_threads *makers = b->options->own_threads;
    if (b->options->threads > 0 && (makers || b->options->threads != env->threads)) {
        derived = ort_env_derive(env, b->options->threads, makers, &s->own_env, err);
        env = s->own_env ? s->own_env : env;
    }
    creation c = {.env = env,
                  .options = b->options,
                  .session = s,
                  .graph = b->model->graph,
                  .packing = b->packing,
                  .mark = ort_clock_ns()};
    pthread_mutex_init(&s->lock, NULL);
    s->spares = ort_spares_new();
    s->account = ort_account_of_work();
    s->env = env;
    s->model = b->model;
    s->pristine = pristine;
    s->assumes_defaults = assumes_defaults;
    s->falls_back = pristine && may_fall_back(b);
    s->keep_all = b->options->keep_all || b->options->keep_computed;
    s->shows_outputs = b->options->keep_all;
    s->watches = !s->keep_all && b->options->watched && b->options->watched[0];
    s->any_order = b->any_order;
    if (b->load_ns)
        add_phase(s, "load", b->load_ns, -1);
    /* What is known without a run is what a run would compute. */
    unsigned control = ort_cpu_set_flush(!b->env->options.keep_denormals);
    ort_status status = derived ? derived : create(&c, err);
    ort_cpu_restore_fp(control);
    ort_findings_free(c.findings);
    if (status == ORT_OK && (assumes_defaults || s->falls_back))
        status = keep_options(s, b->options, err);
    if (status == ORT_OK && b->origin)
        status = keep_origin(s, b->origin, err);
    if (status != ORT_OK) {
        ort_exec_session_release(s);
        return status;
    }
    if (!b->packing || b->packing->from) { /* a session that is only packed never runs */
        ort_exec_plan_ahead(s);
        end_phase(&c, "plan ahead");
    }
    *session = s;
    return ORT_OK;
}

ort_status ort_exec_session_make(const ort_session_parts *parts, ort_session **session,
                                 ort_error *err)
{
    const ort_session_options defaults = ORT_SESSION_OPTIONS_INIT;
    ort_session_parts b = *parts;
    ort_model *pristine = NULL;
    bool assumes_defaults = has_defaults(b.model->graph);
    *session = NULL;
    b.options = b.options ? b.options : &defaults;
    /* A pack's is read from its origin. */
    if ((assumes_defaults && !b.packing) || may_fall_back(&b)) {
        ort_status status = ort_model_clone(b.model, &pristine, err);
        if (status != ORT_OK) {
            ort_model_free(b.model);
            return status;
        }
    }
    return new_session(&b, pristine, assumes_defaults, session, err);
}

/* Where the file has less, the arena would leave most of a huge page empty, which a session that is
 * opened to watch a model has no time to win back with. */
enum { LARGE_MODEL = 512 << 10 };

static ort_status new_of_copy(ort_env *env, const ort_model *model,
                              const ort_session_options *options, bool any_order,
                              ort_session **session, ort_error *err)
{
    ort_model *copy = NULL;
    ort_loading loading;
    *session = NULL;
    ORT_TRY(ort_loading_begin_apart(&loading, &env->limits, model->account, err));
    ort_status status = ort_model_clone(model, &copy, err);
    const ort_session_parts parts = {.env = env, .model = copy, .options = options,
                                     .any_order = any_order};
    if (status == ORT_OK)
        copy->arena.huge_pages = model->file_bytes + model->external_bytes >= LARGE_MODEL;
    if (status == ORT_OK)
        status = ort_exec_session_make(&parts, session, err);
    return ort_loading_end(&loading, status, err);
}

ort_status ort_exec_session_new(ort_env *env, const ort_model *model,
                                const ort_session_options *options, ort_session **session,
                                ort_error *err)
{
    return new_of_copy(env, model, options, false, session, err);
}

ort_status ort_exec_session_watching(ort_env *env, const ort_model *model,
                                     const ort_session_options *options, ort_session **session,
                                     ort_error *err)
{
    return new_of_copy(env, model, options, true, session, err);
}

static ort_status make_general(ort_session *s, ort_error *err)
{
    ort_session_parts b = {.env = (ort_env *)(uintptr_t)s->env, .options = &s->options};
    ort_loading loading;
    ORT_TRY(ort_loading_begin_apart(&loading, &s->env->limits, s->account, err));
    ort_status status = s->pristine ? ORT_OK
                                    : ort_model_import(&s->origin, s->env->registry, &s->pristine,
                                                       err);
    if (status == ORT_OK && s->pristine->as_stored) /* its runs read defaults as they lie */
        status = ort_graph_align_weights(s->pristine->graph, err);
    if (status == ORT_OK)
        status = ort_model_clone(s->pristine, &b.model, err);
    if (status == ORT_OK)
        status = new_session(&b, NULL, false, &s->general, err);
    return ort_loading_end(&loading, status, err);
}

ort_status ort_exec_session_general(const ort_session *session, ort_session **general,
                                    ort_error *err)
{
    assert(session->assumes_defaults);
    ort_session *s = (ort_session *)(uintptr_t)session; /* made once, under the lock */
    ort_status status = ORT_OK;
    pthread_mutex_lock(&s->lock);
    if (!s->general)
        status = make_general(s, err);
    *general = s->general;
    pthread_mutex_unlock(&s->lock);
    return status;
}

void ort_exec_session_release(ort_session *session)
{
    if (!session)
        return;
    for (int i = 0; i < session->idle_count; i++)
        ort_context_free(session->idle[i]);
    ort_spares_close(session->spares);
    ort_exec_session_release(session->general);
    ort_exec_session_release(session->host);
    ort_program_free(session->program);
    ort_partition_release(&session->partition);
    ort_vec_release(&session->phases);
    pthread_mutex_destroy(&session->lock);
    ort_arena_release(&session->memory);
    ort_account_release(session->account);
    ort_model_free(session->model);
    ort_model_free(session->pristine);
    ort_source_release(&session->origin);
    ort_env_derived_free(session->own_env);
    free(session);
}
