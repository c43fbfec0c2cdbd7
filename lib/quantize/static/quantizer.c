/* quantizer.c - a float model, samples, and the model on codes that comes of them. Bodies of
 * control flow are observed and written as the main graph is.
 *
 * What is placed is a copy of the model. Samples run through a session of it that shows the values
 * whose ranges count as soon as they are computed, so that memory is that of a float run and a
 * histogram a value. Calibration runs on one kernel tier, whatever the machine has beyond it: sums
 * of floats differ between tiers.
 */
#include "quantize/static/quantizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "exec/session.h"
#include "op/edit.h"
#include "op/op.h"
#include "op/spacer.h"
#include "pass/numbers/narrow.h"
#include "quantize/static/design.h"
#include "quantize/seen/model_mark.h"
#include "quantize/form/qdq.h"
#include "quantize/form/qoperator.h"
#include "quantize/static/uneven.h"
#include "quantize/static/unseen.h"
#include "quantize/static/seen_range.h"
#include "quantize/effort/refine.h"
#include "quantize/static/seen_map.h"

/* Values of an equalized model are others than those of the model itself. */
static const uint64_t equalized_mark = 0x9e3779b97f4a7c15u;

struct ort_quantizer {
    ort_quantize_options options;
    ort_model *model;
    ort_design design;
    const ort_registry *registry;
    ort_log log;
    ort_pool *pool; /* the caller's */
    ort_env *env; /* of the calibration tier */
    ort_session *session;
    const char **inputs; /* [input_count] of the model as it was given: passes may take weights out
                          * of them; in the model's arena */
    size_t input_count;
    ort_ranges *ranges;  /* of what holds the numbers of roots of grids */
    ort_seen_map map;
    const char **watched;
    ort_kept_samples kept; /* where more effort asks for them */
    uint64_t mark;           /* of the model that was given */
    ort_smoothing smoothing; /* what samples say of channels, until ort_quantizer_even */
    const char **smoothed;   /* names of what it watches; in the model's arena */
    bool smooths;
    ort_shares shares; /* of ort_quantizer_write */
};

/* ---- values to observe */

static ort_status collect(ort_quantizer *q, ort_error *err)
{
    ORT_TRY(ort_seen_map_make(&q->map, &q->design, q->ranges, true, err));
    const size_t count = q->ranges->values.count;
    q->watched = calloc(count + 1, sizeof *q->watched);
    if (!q->watched)
        return ort_error_memory(err, count * sizeof *q->watched);
    for (size_t i = 0; i < count; i++)
        q->watched[i] = q->ranges->values.data[i].name;
    return ORT_OK;
}

/* What is kept of values: what the observer needs, or one of a rule. */
static ort_status begin_ranges(ort_quantizer *q, ort_error *err)
{
    const ort_observer_row *observer = ort_observer_find(q->options.observer);
    bool rules = ort_code_rules_observe(&q->design.rules);
    if (!observer)
        return ort_error_set(err, ORT_ERROR_USAGE, "there is no observer %d",
                             (int)q->options.observer);
    q->design.rules_refused = rules && observer->kept == ORT_KEPT_AVERAGES;
    if (q->design.rules_refused)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "rules with an observer of their own don't go with %s",
                             observer->name);
    ORT_TRY(ort_ranges_make(&q->ranges, err));
    ort_ranges_set(q->ranges, q->mark, rules ? ORT_KEPT_BINS : observer->kept);
    return ORT_OK;
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

/* Of constants that passes compute, and of codes. */
static ort_status spool(ort_quantizer *q, ort_error *err)
{
    const char *folder = q->options.folder;
    if (!folder)
        return ORT_OK;
    q->options.folder = ort_arena_strdup(&q->model->arena, folder);
    return q->options.folder ? ort_model_spool(q->model, folder, err)
                             : ort_error_memory(err, strlen(folder));
}

/* Of samples, how far channels reach comes first. */
static ort_status begin_smoothing(ort_quantizer *q, ort_error *err)
{
    if (!(q->options.smooth <= 1))
        return ort_error_set(err, ORT_ERROR_USAGE, "smooth is an exponent of 0 to 1, not %g",
                             q->options.smooth);
    q->smooths = true;
    return ort_smoothing_find(&q->smoothing, q->model->graph, err);
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
    q->pool = env->pool;
    q->mark = ort_model_mark(model) + (options->equalize ? equalized_mark : 0);
    ort_status status = ort_model_clone(model, &q->model, err);
    if (status == ORT_OK)
        status = spool(q, err);
    if (status == ORT_OK)
        status = note_inputs(q, err);
    if (status == ORT_OK)
        status = ort_design_make(&q->design, q->model, env->registry, &env->log, options, err);
    if (status == ORT_OK)
        status = begin_ranges(q, err);
    if (status == ORT_OK)
        status = collect(q, err);
    if (status == ORT_OK && options->smooth > 0)
        status = begin_smoothing(q, err);
    if (status != ORT_OK && options->overrides_refused)
        *options->overrides_refused = q->design.rules_refused;
    if (status == ORT_OK)
        *quantizer = q;
    else
        ort_quantizer_release(q);
    return status;
}

/* ---- calibration */

static ort_status watch_smoothed(ort_quantizer *q, ort_error *err)
{
    const size_t count = q->smoothing.list.count;
    if (!q->smooths)
        return ORT_OK;
    q->smoothed = ort_arena_array(&q->model->arena, count + 1, sizeof *q->smoothed);
    if (!q->smoothed)
        return ort_error_memory(err, count * sizeof *q->smoothed);
    for (size_t i = 0; i <= count; i++)
        q->smoothed[i] = i < count ? q->smoothing.list.data[i].name : NULL;
    return ORT_OK;
}

static void observe_extremes(void *arg, const char *name, const ort_extremes *found)
{
    ort_quantizer *q = arg;
    ort_observed *observed = ort_ranges_find(q->ranges, name);
    if (observed)
        ort_histogram_add_extremes(&observed->histogram, found);
}

static ort_status open_session(ort_quantizer *q, ort_error *err)
{
    ort_env_options env = ORT_ENV_OPTIONS_INIT;
    ort_session_options session = ORT_SESSION_OPTIONS_INIT;
    env.isa = ort_quantize_tier();
    env.threads = q->options.threads;
    ORT_TRY(watch_smoothed(q, err));
    session.watched = q->smooths ? q->smoothed : q->watched;
    if (!q->env)
        ORT_TRY(ort_env_new(&env, &q->env, err));
    /* Ends and bins are the same in any order. */
    ORT_TRY(q->smooths ? ort_exec_session_new(q->env, q->model, &session, &q->session, err)
                       : ort_exec_session_watching(q->env, q->model, &session, &q->session, err));
    if (!q->smooths && q->ranges->kept == ORT_KEPT_ENDS)
        q->session->on_extremes = observe_extremes;
    return ORT_OK;
}

static void observe(void *arg, const char *name, const ort_value *value)
{
    ort_quantizer *q = arg;
    ort_observed *observed = q->smooths ? NULL : ort_ranges_find(q->ranges, name);
    if (q->smooths && value->kind == ORT_KIND_TENSOR)
        ort_smoothing_see(&q->smoothing, name, &value->tensor);
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
    if (q->smooths) {
        free(own);
        return status;
    }
    if (status == ORT_OK) {
        q->ranges->samples++;
        q->ranges->tier = q->env->k->isa;
    }
    if (status == ORT_OK && (q->options.correct_biases || q->options.adaptive_rounding))
        status = ort_keep_sample(&q->kept, own, own_count, err);
    free(own);
    return status;
}

/* Values got other numbers, and there are new ones: what is watched is collected anew. */
ort_status ort_quantizer_even(ort_quantizer *q, ort_error *err)
{
    if (!q->smooths)
        return ort_error_set(err, ORT_ERROR_USAGE, "nothing is to be smoothed, or it was already");
    ort_exec_session_release(q->session);
    q->session = NULL;
    q->smooths = false;
    ORT_TRY(ort_design_smooth(&q->design, &q->smoothing, q->registry, err));
    ort_smoothing_release(&q->smoothing);
    ort_ranges_release(q->ranges);
    free(q->watched);
    q->ranges = NULL;
    q->watched = NULL;
    ORT_TRY(begin_ranges(q, err));
    return collect(q, err);
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

/* A graph of the model, for the writer. */
typedef struct seen_site {
    const ort_quantizer *q;
    const ort_site *site;
} seen_site;

static const ort_observed *observed_of(const seen_site *s, ort_id id)
{
    return ort_seen_find(&s->q->map, &s->q->design, s->q->ranges, s->site, id);
}

static ort_grid grid_of(void *arg, ort_id id, const ort_code_form *form)
{
    const ort_observed *o = observed_of(arg, id);
    if (form->has_range)
        return ort_grid_of(&form->codes, form->least, form->most);
    if (!o)
        return ort_grid_of(&form->codes, 0, 0);
    const ort_site *site = ((const seen_site *)arg)->site;
    ort_range r = ort_seen_range(site, ort_place_root(&site->place, id), o, form);
    return ort_grid_of(&form->codes, r.least, r.most);
}

static double reach_of(void *arg, const ort_site *site, ort_id id, const ort_code_form *form)
{
    const seen_site seen = {arg, site};
    const ort_observed *o = observed_of(&seen, ort_place_root(&site->place, id));
    if (!o && !form->has_range)
        return 0;
    ort_range r = {form->least, form->most};
    if (!form->has_range)
        r = ort_seen_range(site, ort_place_root(&site->place, id), o, form);
    return (double)(-r.least > r.most ? -r.least : r.most);
}

static bool holds_numbers(const ort_observed *o)
{
    const ort_histogram *h = &o->histogram;
    return (h->count > 0 && (h->least < 0 || h->most > 0)) ||
           (o->average.known && (o->average.least < 0 || o->average.most > 0));
}

static bool was_seen(void *arg, const ort_site *site, ort_id id, const ort_code_form *form)
{
    const seen_site seen = {arg, site};
    const ort_observed *o = observed_of(&seen, ort_place_root(&site->place, id));
    return form->has_range || (o && holds_numbers(o));
}

/* What ranges say of where codes can stand. */
static ort_status settle_ranges(ort_quantizer *q, ort_error *err)
{
    size_t unseen;
    ORT_TRY(ort_unseen_part(&q->design, was_seen, q, &unseen, err));
    if (unseen)
        ort_log_write(&q->log, ORT_LOG_WARNING,
                      "samples showed nothing, or zeros alone, at %zu node%s that could compute on "
                      "codes: %s float", unseen, unseen == 1 ? "" : "s",
                      unseen == 1 ? "it stays" : "they stay");
    return ort_uneven_part(&q->design, reach_of, q, err);
}

static ort_status refine(ort_quantizer *q, ort_model *model, ort_error *err)
{
    const ort_refining r = {q->env, q->model, &q->kept, q->options.adaptive_rounding,
                            q->options.correct_biases, q->options.full_range, &q->shares};
    if (!r.round && !r.correct)
        return ORT_OK;
    if (q->kept.count == 0)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "adaptive rounding and bias correction take samples, not only ranges");
    return ort_refine(&r, model, err);
}

/* Which nodes are to be float16: those of rules, all or one of them; of all, what is kept, too. */
typedef struct halves {
    const ort_site *site;
    const ort_node *only;
} halves;

static bool is_half(void *arg, const ort_node *node)
{
    const halves *h = arg;
    if (node->id >= h->site->graph->nodes.count)
        return false;
    if (h->only)
        return node->id == h->only->id && ort_code_plan_half(&h->site->plan, node);
    return ort_code_plan_half(&h->site->plan, node) || h->site->halves[node->id];
}

/* Nodes keep their numbers in the copy until they are rebuilt. */
static ort_status write_halves(const ort_quantizer *q, const ort_site *site,
                               const ort_model *copy, const ort_node *only, ort_error *err)
{
    ort_graph *graph = ort_design_graph(&q->design, site, copy);
    const ort_narrow_options options = ORT_NARROW_OPTIONS_INIT;
    halves h = {site, only};
    char label[256];
    ort_node *node;
    ORT_TRY(ort_graph_narrow_nodes(graph, &options, is_half, &h, err));
    ORT_EACH_NODE(graph, node)
    {
        if (is_half(&h, node))
            ort_log_write(&q->log, ORT_LOG_INFO, "%s stays float: its operator has no float16 "
                          "form, or it reads neither a weight nor a result in float16",
                          ort_node_label(node, label, sizeof label));
    }
    return ORT_OK;
}

static ort_status check_seen(const ort_quantizer *q, ort_error *err)
{
    return q->ranges->samples > 0
               ? ORT_OK
               : ort_error_set(err, ORT_ERROR_USAGE, "no sample was observed: the ranges of values "
                               "are unknown");
}

static ort_status write_site(ort_quantizer *q, const ort_site *site, const ort_placement *place,
                             ort_model *copy, ort_error *err)
{
    seen_site seen = {q, site};
    const ort_qdq_options options = {.plan = &site->plan, .grid = grid_of, .arg = &seen,
                                     .pool = q->pool, .shares = &q->shares,
                                     .contrib = q->options.contrib};
    return ort_qdq_write(ort_design_graph(&q->design, site, copy), place, &options, err);
}

/* Bodies come before the graphs around them, which then see what is captured no more. */
static ort_status write_sites(ort_quantizer *q, ort_model *copy, ort_error *err)
{
    const ort_site *sites = q->design.sites.data;
    for (size_t i = q->design.sites.count; i-- > 0;)
        ORT_TRY(write_site(q, &sites[i], &sites[i].place, copy, err));
    ORT_TRY(refine(q, copy, err));
    for (size_t i = q->design.sites.count; i-- > 0;)
        ORT_TRY(write_halves(q, &sites[i], copy, NULL, err));
    for (size_t i = q->design.sites.count; i-- > 0;)
        ORT_TRY(ort_spacers_add(ort_design_graph(&q->design, &sites[i], copy),
                                sites[i].graph->nodes.count, err));
    return q->options.qoperator ? ort_qoperator_fold(copy, q->registry, &q->log, err) : ORT_OK;
}

ort_status ort_quantizer_write(ort_quantizer *q, ort_model **model, ort_error *err)
{
    ort_model *copy = NULL;
    if (q->smooths)
        return ort_error_set(err, ORT_ERROR_USAGE, "ort_quantizer_smooth wasn't called: channels "
                             "are to be evened by samples before ranges are observed");
    ORT_TRY(check_seen(q, err));
    ORT_TRY(settle_ranges(q, err));
    ORT_TRY(ort_model_clone(q->model, &copy, err));
    ort_status status = ort_model_spool(copy, q->options.folder, err);
    q->shares = (ort_shares){q->options.on_share, q->options.share_arg};
    if (status == ORT_OK)
        status = write_sites(q, copy, err);
    q->shares = (ort_shares){0};
    if (status == ORT_OK)
        *model = copy;
    else
        ort_model_free(copy);
    return status;
}

/* ---- what becomes of it */

/* Another opset may be needed, and values get new numbers then. */
ort_status ort_quantizer_replan(ort_quantizer *q, const char *json, ort_error *err)
{
    ORT_TRY(ort_design_override(&q->design, q->registry, json, err));
    return ort_seen_map_make(&q->map, &q->design, q->ranges, false, err);
}

/* In the order in which they run, constants not, those of bodies behind the graph around them; NULL
 * past the last one. */
static ort_node *node_at(const ort_quantizer *q, size_t index, ort_site **site)
{
    ort_node *node;
    size_t at = 0;
    for (size_t i = 0; i < q->design.sites.count; i++) {
        *site = &q->design.sites.data[i];
        ORT_EACH_NODE((*site)->graph, node)
        {
            if (!ort_node_is_constant(node) && at++ == index)
                return node;
        }
    }
    return NULL;
}

bool ort_quantizer_tell(const ort_quantizer *q, size_t index, ort_quantizer_node_info *info)
{
    ort_site *site;
    const ort_node *node = node_at(q, index, &site);
    if (!node)
        return false;
    const ort_place_node *place = &site->place.nodes[node->id];
    ort_quantizer_node_info told = {sizeof told, node->name, node->op_type,
                                    ort_part_word(place), place->why};
    size_t size = info->size < sizeof told ? info->size : sizeof told;
    told.size = info->size;
    memcpy(info, &told, size);
    return true;
}

static const ort_observed *harm_seen(void *arg, ort_id id)
{
    const seen_site *s = arg;
    return observed_of(s, ort_place_root(&s->site->place, id));
}

bool ort_quantizer_weigh(const ort_quantizer *q, size_t index, ort_harm *harm)
{
    ort_site *site;
    const ort_node *node = node_at(q, index, &site);
    if (node)
        *harm = ort_harm_of(site, node, harm_seen, &(seen_site){q, site});
    return node != NULL;
}

static ort_status no_node(size_t index, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_USAGE, "node %zu: the model has fewer", index);
}

ort_status ort_quantizer_keep(ort_quantizer *q, size_t index, bool stays, ort_error *err)
{
    ort_site *site;
    const ort_node *node = node_at(q, index, &site);
    if (!node)
        return no_node(index, err);
    site->stays[node->id] = stays ? "it is kept float: its codes cost too much" : NULL;
    site->halves[node->id] = false;
    return ort_design_place(&q->design, err);
}

ort_status ort_quantizer_halve(ort_quantizer *q, size_t index, ort_error *err)
{
    ort_site *site;
    const ort_node *node = node_at(q, index, &site);
    if (!node)
        return no_node(index, err);
    site->stays[node->id] = "it is kept in float16: its codes cost too much";
    site->halves[node->id] = true;
    return ort_design_place(&q->design, err);
}

static ort_status write_alone(ort_quantizer *q, ort_site *site, const ort_node *node,
                              ort_model *copy, ort_error *err)
{
    ort_placement alone;
    ORT_TRY(ort_place_alone(site->graph, &site->whole, node, &alone, err));
    if (ort_code_plan_half(&site->plan, node))
        alone.nodes[node->id].part = ORT_PART_FLOAT;
    ORT_TRY(ort_code_plan_settle(&site->plan, &alone, err));
    ort_status status = write_site(q, site, &alone, copy, err);
    if (status == ORT_OK)
        status = write_halves(q, site, copy, node, err);
    ORT_TRY(ort_code_plan_settle(&site->plan, &site->place, status == ORT_OK ? err : NULL));
    return status;
}

size_t ort_quantizer_pairs(const ort_quantizer *q)
{
    return q->design.evened;
}

ort_status ort_quantizer_write_alone(ort_quantizer *q, size_t index, ort_model **model,
                                     ort_error *err)
{
    ort_site *site;
    ort_model *copy = NULL;
    const ort_node *node = node_at(q, index, &site);
    if (!node)
        return no_node(index, err);
    if (site->whole.nodes[node->id].part == ORT_PART_FLOAT &&
        !site->whole.nodes[node->id].weights)
        return ort_error_set(err, ORT_ERROR_USAGE, "node '%s' (%s) can't compute on codes: %s",
                             node->name, node->op_type, site->whole.nodes[node->id].why);
    ORT_TRY(check_seen(q, err));
    ORT_TRY(ort_model_clone(q->model, &copy, err));
    ort_status status = write_alone(q, site, node, copy, err);
    if (status == ORT_OK)
        *model = copy;
    else
        ort_model_free(copy);
    return status;
}

void ort_quantizer_release(ort_quantizer *q)
{
    if (!q)
        return;
    ort_exec_session_release(q->session);
    ort_kept_release(&q->kept);
    ort_smoothing_release(&q->smoothing);
    ort_env_free(q->env);
    ort_ranges_release(q->ranges);
    free(q->watched);
    ort_seen_map_release(&q->map);
    ort_design_release(&q->design);
    ort_model_free(q->model);
    free(q);
}
