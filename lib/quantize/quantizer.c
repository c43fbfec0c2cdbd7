/* quantizer.c - a float model, samples, and the model on codes that comes of them.
 *
 * What is placed is a copy of the model. Samples run through a session of it that shows the values
 * whose ranges count as soon as they are computed, so that memory is that of a float run and a
 * histogram a value. Calibration runs on one kernel tier, whatever the machine has beyond it: sums
 * of floats differ between tiers.
 */
#include "quantize/quantizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "exec/session.h"
#include "op/edit.h"
#include "op/op.h"
#include "pass/numbers/narrow.h"
#include "quantize/design.h"
#include "quantize/model_mark.h"
#include "quantize/qdq.h"
#include "quantize/qoperator.h"
#include "quantize/uneven.h"
#include "quantize/range.h"
#include "quantize/refine.h"

static const char calibration_tier[] = "avx2";

struct ort_quantizer {
    ort_quantize_options options;
    ort_model *model;
    ort_design design;
    const ort_registry *registry;
    ort_log log;
    ort_env *env; /* of the calibration tier */
    ort_kernels kernels; /* its, but for sums that depend on the number of rows */
    ort_session *session;
    const char **inputs; /* [input_count] of the model as it was given: passes may take weights out
                          * of them; in the model's arena */
    size_t input_count;
    ort_ranges *ranges;  /* of what holds the numbers of roots of grids */
    size_t *observed_at; /* [values of the graph]: one more than the number among these, or 0 */
    const char **watched;
    ort_kept_samples kept; /* where more effort asks for them */
};

/* ---- values to observe */

/* What holds the same numbers and is computed: runs don't show what is only another shape of it. */
static ort_id source_of(const ort_graph *graph, ort_id id)
{
    const ort_node *node = ort_edit_producer(graph, id);
    while (node && node->op && (node->op->traits & ORT_TRAIT_ALIAS)) {
        id = node->inputs[0];
        node = ort_edit_producer(graph, id);
    }
    return id;
}

static ort_status note_value(ort_quantizer *q, ort_id id, ort_error *err)
{
    const ort_graph *graph = q->model->graph;
    const char *name = graph->values.data[source_of(graph, id)]->name;
    const ort_observed *found = ort_ranges_find(q->ranges, name);
    if (!found) {
        q->watched[q->ranges->values.count] = name;
        ORT_TRY(ort_ranges_add(q->ranges, name, err));
        found = ort_ranges_find(q->ranges, name);
    }
    q->observed_at[id] = (size_t)(found - q->ranges->values.data) + 1;
    return ORT_OK;
}

static ort_id root_of(const ort_placement *place, ort_id id)
{
    while (place->values[id].grid != id)
        id = place->values[id].grid;
    return id;
}

/* Values whose grid depends on samples: each root of what could become codes, constants not. NULL:
 * no memory. */
static bool *roots_of(const ort_quantizer *q)
{
    const ort_placement *place = &q->design.widest;
    const ort_graph *graph = q->model->graph;
    bool *wanted = calloc(graph->values.count + 1, sizeof *wanted);
    for (size_t i = 0; wanted && i < graph->values.count; i++)
        if (place->values[i].coded && !graph->values.data[i]->fact.value)
            wanted[root_of(place, (ort_id)i)] = true;
    return wanted;
}

static ort_status collect(ort_quantizer *q, ort_error *err)
{
    size_t count = q->model->graph->values.count;
    q->watched = calloc(count + 1, sizeof *q->watched);
    q->observed_at = calloc(count + 1, sizeof *q->observed_at);
    bool *wanted = roots_of(q);
    ort_status status = q->watched && q->observed_at && wanted
                            ? ORT_OK
                            : ort_error_memory(err, count * sizeof *q->watched);
    for (size_t i = 0; i < count && status == ORT_OK; i++)
        if (wanted[i])
            status = note_value(q, (ort_id)i, err);
    free(wanted);
    return status;
}

/* What is kept of values: what the observer needs, or one of a rule. */
static ort_status begin_ranges(ort_quantizer *q, const ort_model *model, ort_error *err)
{
    const ort_observer_row *observer = ort_observer_find(q->options.observer);
    bool rules = ort_code_rules_observe(&q->design.rules);
    if (!observer)
        return ort_error_set(err, ORT_ERROR_USAGE, "there is no observer %d",
                             (int)q->options.observer);
    if (rules && observer->kept == ORT_KEPT_AVERAGES)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "rules with an observer of their own don't go with %s",
                             observer->name);
    ORT_TRY(ort_ranges_make(&q->ranges, err));
    ort_ranges_set(q->ranges, ort_model_mark(model), rules ? ORT_KEPT_BINS : observer->kept);
    return ORT_OK;
}

/* Values got other numbers; what was observed is found by its name. */
static ort_status map_values(ort_quantizer *q, ort_error *err)
{
    const ort_graph *graph = q->model->graph;
    size_t count = graph->values.count;
    size_t *at = calloc(count + 1, sizeof *at);
    bool *wanted = roots_of(q);
    for (size_t i = 0; at && wanted && i < count; i++) {
        const char *name = graph->values.data[source_of(graph, (ort_id)i)]->name;
        const ort_observed *found = wanted[i] ? ort_ranges_find(q->ranges, name) : NULL;
        if (found)
            at[i] = (size_t)(found - q->ranges->values.data) + 1;
    }
    bool ok = at && wanted;
    free(wanted);
    free(q->observed_at);
    q->observed_at = at;
    return ok ? ORT_OK : ort_error_memory(err, count * sizeof *at);
}

static ort_status note_inputs(ort_quantizer *q, ort_error *err)
{
    const ort_graph *graph = q->model->graph;
    q->input_count = graph->inputs.count;
    q->inputs = ort_arena_array(&q->model->arena, q->input_count + 1, sizeof *q->inputs);
    if (!q->inputs)
        return ort_error_memory(err, q->input_count * sizeof *q->inputs);
    for (size_t i = 0; i < q->input_count; i++)
        q->inputs[i] = graph->values.data[graph->inputs.data[i]]->name;
    return ORT_OK;
}

ort_status ort_quantizer_make(ort_env *env, const ort_model *model,
                              const ort_quantize_options *options, ort_quantizer **quantizer,
                              ort_error *err)
{
    ort_quantizer *q = calloc(1, sizeof *q);
    if (!q)
        return ort_error_memory(err, sizeof *q);
    q->options = *options;
    q->registry = env->registry;
    q->log = env->log;
    ort_status status = ort_model_clone(model, &q->model, err);
    if (status == ORT_OK)
        status = note_inputs(q, err);
    if (status == ORT_OK)
        status = ort_design_make(&q->design, q->model, env->registry, &env->log, options, err);
    if (status == ORT_OK)
        status = begin_ranges(q, model, err);
    if (status == ORT_OK)
        status = collect(q, err);
    if (status == ORT_OK)
        *quantizer = q;
    else
        ort_quantizer_release(q);
    return status;
}

/* ---- calibration */

static ort_status open_session(ort_quantizer *q, ort_error *err)
{
    ort_env_options env = ORT_ENV_OPTIONS_INIT;
    ort_session_options session = ORT_SESSION_OPTIONS_INIT;
    const char *tiers[8];
    int count = ort_isa_list(tiers, 8);
    for (int i = 0; i < count; i++)
        if (!strcmp(tiers[i], calibration_tier))
            env.isa = calibration_tier;
    env.threads = q->options.threads;
    session.watched = q->watched;
    if (!q->env)
        ORT_TRY(ort_env_new(&env, &q->env, err));
    q->kernels = *q->env->k; /* batches give the bits of their samples alone */
    q->kernels.gemm.whole_rows = 0;
    q->env->k = &q->kernels;
    return ort_exec_session_new(q->env, q->model, &session, &q->session, err);
}

static void observe(void *arg, const char *name, const ort_value *value)
{
    ort_quantizer *q = arg;
    ort_observed *observed = ort_ranges_find(q->ranges, name);
    if (observed && value->kind == ORT_KIND_TENSOR)
        ort_ranges_observe(q->ranges, observed, &value->tensor, q->env->pool);
}

/* A sample run; own: of the session's inputs. */
static ort_status run_sample(ort_quantizer *q, ort_value *const *own, ort_error *err)
{
    const size_t count = (size_t)q->session->input_count;
    const size_t outputs = (size_t)q->session->output_count;
    ort_run_options run = ORT_RUN_OPTIONS_INIT;
    const char **names = calloc(count + outputs + 1, sizeof *names);
    ort_value **results = calloc(outputs + 1, sizeof *results);
    run.on_value = observe;
    run.callback_arg = q;
    ort_status status = names && results ? ORT_OK : ort_error_memory(err, sizeof *names);
    for (size_t i = 0; i < count && status == ORT_OK; i++) {
        names[i] = q->session->inputs[i].name;
        if (own[i])
            observe(q, names[i], own[i]);
    }
    for (size_t i = 0; i < outputs && status == ORT_OK; i++)
        names[count + i] = q->session->outputs[i].name;
    if (status == ORT_OK)
        status = ort_session_run(q->session, names, own, count, names + count, results, outputs,
                                 &run, err);
    for (size_t i = 0; i < outputs && results; i++)
        ort_value_free(results[i]);
    free(names);
    free(results);
    return status;
}

/* Of the model's inputs those that the session has. */
static void pick_inputs(const ort_quantizer *q, ort_value *const *inputs, ort_value **own)
{
    for (int s = 0; s < q->session->input_count; s++)
        for (size_t i = 0; i < q->input_count && !own[s]; i++)
            if (!strcmp(q->inputs[i], q->session->inputs[s].name))
                own[s] = inputs[i];
}

ort_status ort_quantizer_observe(ort_quantizer *q, ort_value *const *inputs, size_t count,
                                 ort_error *err)
{
    if (!q->session)
        ORT_TRY(open_session(q, err));
    if (count != q->input_count)
        return ort_error_set(err, ORT_ERROR_USAGE, "%zu inputs given, the model has %zu", count,
                             q->input_count);
    const size_t own_count = (size_t)q->session->input_count;
    ort_value **own = calloc(own_count + 1, sizeof *own);
    if (!own)
        return ort_error_memory(err, own_count * sizeof *own);
    pick_inputs(q, inputs, own);
    ort_status status = run_sample(q, own, err);
    if (status == ORT_OK) {
        q->ranges->samples++;
        q->ranges->tier = q->env->k->isa;
    }
    if (status == ORT_OK && (q->options.correct_biases || q->options.adaptive_rounding))
        status = ort_keep_sample(&q->kept, own, own_count, err);
    free(own);
    return status;
}

const ort_ranges *ort_quantizer_seen(const ort_quantizer *q)
{
    return q->ranges;
}

ort_status ort_quantizer_take(ort_quantizer *q, const ort_ranges *ranges, const char *name,
                              ort_error *err)
{
    return ort_ranges_merge(q->ranges, ranges, true, name, err);
}

/* ---- the model on codes */

/* What samples said of a value, or of what it has its codes from. */
static const ort_observed *observed_of(const ort_quantizer *q, ort_id id)
{
    size_t at = q->observed_at[id];
    if (!at)
        at = q->observed_at[root_of(&q->design.widest, id)];
    return at ? &q->ranges->values.data[at - 1] : NULL;
}

static ort_grid grid_of(void *arg, ort_id id, const ort_code_form *form)
{
    const ort_quantizer *q = arg;
    const ort_observed *o = observed_of(q, id);
    if (form->has_range)
        return ort_grid_of(&form->codes, form->least, form->most);
    if (!o)
        return ort_grid_of(&form->codes, 0, 0);
    ort_range r = ort_range_choose(o, form->observer, form->percentile, &form->codes);
    return ort_grid_of(&form->codes, r.least, r.most);
}

static double reach_of(void *arg, ort_id id, const ort_code_form *form)
{
    const ort_quantizer *q = arg;
    const ort_observed *o = observed_of(q, root_of(&q->design.place, id));
    if (!o && !form->has_range)
        return 0;
    ort_range r = {form->least, form->most};
    if (!form->has_range)
        r = ort_range_choose(o, form->observer, form->percentile, &form->codes);
    return (double)(-r.least > r.most ? -r.least : r.most);
}

static ort_status refine(ort_quantizer *q, ort_model *model, ort_error *err)
{
    const ort_refining r = {q->env, q->model, &q->kept, q->options.adaptive_rounding,
                            q->options.correct_biases};
    if (!r.round && !r.correct)
        return ORT_OK;
    if (q->kept.count == 0)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "adaptive rounding and bias correction take samples, not only ranges");
    return ort_refine(&r, model, err);
}

/* Which nodes are to be float16: those of rules, all or one of them. */
typedef struct halves {
    const ort_code_plan *plan;
    const ort_node *only;
} halves;

static bool is_half(void *arg, const ort_node *node)
{
    const halves *h = arg;
    return (!h->only || node->id == h->only->id) && ort_code_plan_half(h->plan, node);
}

/* Nodes keep their numbers in the copy until they are rebuilt. */
static ort_status write_halves(const ort_quantizer *q, ort_model *copy, const ort_node *only,
                               ort_error *err)
{
    const ort_narrow_options options = ORT_NARROW_OPTIONS_INIT;
    halves h = {&q->design.plan, only};
    char label[256];
    ort_node *node;
    ORT_TRY(ort_graph_narrow_nodes(copy->graph, &options, is_half, &h, err));
    ORT_EACH_NODE(copy->graph, node)
    {
        if (node->id < q->model->graph->nodes.count && is_half(&h, node))
            ort_log_write(&q->log, ORT_LOG_INFO, "%s stays float: its operator has no float16 "
                          "form, or it reads neither a weight nor a result in float16",
                          ort_node_label(node, label, sizeof label));
    }
    return ORT_OK;
}

/* Of the whole placement, or of one node alone, which nothing is refined for. */
static ort_status write_placed(ort_quantizer *q, const ort_placement *place, const ort_node *only,
                               ort_model **model, ort_error *err)
{
    const bool whole = only == NULL;
    ort_model *copy = NULL;
    if (q->ranges->samples == 0)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "no sample was observed: the ranges of values are unknown");
    if (whole)
        ORT_TRY(ort_uneven_part(&q->design, reach_of, q, err));
    ort_qdq_options options = {.plan = &q->design.plan, .grid = grid_of, .arg = q,
                               .contrib = q->options.contrib};
    ort_status status = ort_model_clone(q->model, &copy, err);
    if (status == ORT_OK)
        status = ort_qdq_write(copy->graph, place, &options, err);
    if (status == ORT_OK && whole)
        status = refine(q, copy, err);
    if (status == ORT_OK)
        status = write_halves(q, copy, only, err);
    if (status == ORT_OK && whole && q->options.qoperator)
        status = ort_qoperator_fold(copy, q->registry, &q->log, err);
    if (status == ORT_OK)
        *model = copy;
    else
        ort_model_free(copy);
    return status;
}

ort_status ort_quantizer_write(ort_quantizer *q, ort_model **model, ort_error *err)
{
    return write_placed(q, &q->design.place, NULL, model, err);
}

/* ---- what becomes of it */

/* Another opset may be needed, and values get new numbers then. */
ort_status ort_quantizer_replan(ort_quantizer *q, const char *json, ort_error *err)
{
    ORT_TRY(ort_design_override(&q->design, q->registry, json, err));
    return map_values(q, err);
}

/* In the order in which they run, constants not; NULL past the last one. */
static ort_node *node_at(const ort_quantizer *q, size_t index)
{
    ort_node *node;
    size_t at = 0;
    ORT_EACH_NODE(q->model->graph, node)
    {
        if (!ort_node_is_constant(node) && at++ == index)
            return node;
    }
    return NULL;
}

bool ort_quantizer_tell(const ort_quantizer *q, size_t index, ort_quantizer_node_info *info)
{
    const ort_node *node = node_at(q, index);
    if (!node)
        return false;
    const ort_place_node *place = &q->design.place.nodes[node->id];
    ort_quantizer_node_info told = {sizeof told, node->name, node->op_type,
                                    ort_part_word(place->part), place->why};
    size_t size = info->size < sizeof told ? info->size : sizeof told;
    told.size = info->size;
    memcpy(info, &told, size);
    return true;
}

static ort_status no_node(size_t index, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_USAGE, "node %zu: the model has fewer", index);
}

ort_status ort_quantizer_keep(ort_quantizer *q, size_t index, bool stays, ort_error *err)
{
    const ort_node *node = node_at(q, index);
    if (!node)
        return no_node(index, err);
    q->design.stays[node->id] = stays ? "it is kept float" : NULL;
    return ort_design_place(&q->design, err);
}

ort_status ort_quantizer_write_alone(ort_quantizer *q, size_t index, ort_model **model,
                                     ort_error *err)
{
    ort_design *d = &q->design;
    const ort_node *node = node_at(q, index);
    ort_placement alone;
    if (!node)
        return no_node(index, err);
    if (d->widest.nodes[node->id].part == ORT_PART_FLOAT)
        return ort_error_set(err, ORT_ERROR_USAGE, "node '%s' (%s) can't compute on codes: %s",
                             node->name, node->op_type, d->widest.nodes[node->id].why);
    ORT_TRY(ort_place_alone(q->model->graph, &d->widest, node, &alone, err));
    if (ort_code_plan_half(&d->plan, node))
        alone.nodes[node->id].part = ORT_PART_FLOAT;
    ORT_TRY(ort_code_plan_settle(&d->plan, &alone, err));
    ort_status status = write_placed(q, &alone, node, model, err);
    ORT_TRY(ort_code_plan_settle(&d->plan, &d->place, status == ORT_OK ? err : NULL));
    return status;
}

void ort_quantizer_release(ort_quantizer *q)
{
    if (!q)
        return;
    ort_exec_session_release(q->session);
    ort_kept_release(&q->kept);
    ort_env_free(q->env);
    ort_ranges_release(q->ranges);
    free(q->watched);
    free(q->observed_at);
    ort_design_release(&q->design);
    ort_model_free(q->model);
    free(q);
}
