/* design.c - from options and rules to parts and forms.
 *
 * The passes of level 1 come first because they fold what would otherwise stand between products
 * and their codes: BatchNormalization goes into the weights before these are rounded. Names that
 * options and rules mention are followed through the passes.
 */
#include "quantize/static/design.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/findings.h"
#include "graph/follow.h"
#include "op/op.h"
#include "opset/opset.h"
#include "pass/optimize.h"
#include "quantize/folded.h"
#include "quantize/node_names.h"
#include "quantize/place/place_why.h"

/* ---- patterns */

static ort_status copy_list(ort_design *d, const char *const *from, const char ***to,
                            ort_error *err)
{
    size_t count = 0;
    while (from && from[count])
        count++;
    *to = NULL;
    if (count == 0)
        return ORT_OK;
    *to = ort_arena_array(&d->model->arena, count + 1, sizeof **to);
    for (size_t i = 0; *to && i < count; i++) {
        (*to)[i] = ort_arena_printf(&d->model->arena, "%s", from[i]);
        if (!(*to)[i])
            return ort_error_memory(err, strlen(from[i]));
    }
    if (*to)
        (*to)[count] = NULL;
    return *to ? ORT_OK : ort_error_memory(err, count * sizeof **to);
}

static bool is_ruled(const ort_design *d, const ort_node *node)
{
    for (size_t i = 0; i < d->rules.list.count; i++)
        if (ort_code_rule_meets(&d->rules.list.data[i], node))
            return true;
    return false;
}

typedef ORT_VEC(const char *) name_list;

static bool list_named(const ort_design *d, const ort_graph *graph, name_list *names)
{
    ort_node *node;
    bool ok = true;
    ORT_EACH_NODE(graph, node)
    {
        if (ok && node->name[0] &&
            (ort_node_is_listed(graph, node, d->exclude) ||
             ort_node_is_listed(graph, node, d->include) || is_ruled(d, node)))
            ok = ort_vec_push(names, node->name);
        for (int b = 0; b < node->body_count && ok; b++)
            ok = list_named(d, node->bodies[b], names);
    }
    return ok;
}

/* Nodes that someone names keep their names in the origins of what passes make of them. */
static ort_status follow_names(ort_design *d, ort_error *err)
{
    name_list names = {0};
    bool ok = list_named(d, d->model->graph, &names) && ort_vec_push(&names, NULL);
    ort_status status = ok ? ORT_OK : ort_error_memory(err, names.count * sizeof *names.data);
    if (ok && names.count > 1)
        status = ort_model_follow_names(d->model, names.data, err);
    ort_vec_release(&names);
    return status;
}

/* ---- the model */

/* passes NULL: those of level 1. */
static ort_status run_passes(ort_design *d, const char *const *passes,
                             const ort_registry *registry, const ort_log *log, ort_error *err)
{
    ort_optimize_options options = ORT_OPTIMIZE_OPTIONS_INIT;
    options.level = 1;
    options.passes = passes;
    ort_pass_options pass = ort_rewrite_options(d->model, &options, registry, log);
    pass.growing = &ort_quantize_growing;
    return ort_model_rewrite(d->model, &pass, false, err);
}

static ort_status raise_opset(ort_design *d, const ort_registry *registry, ort_error *err)
{
    enum { PER_AXIS_OPSET = 13, HARD_SWISH_OPSET = 14 };
    int wanted = d->options.contrib ? PER_AXIS_OPSET : ort_code_plan_opset(&d->options, &d->rules);
    if (!d->options.without_passes && wanted < HARD_SWISH_OPSET)
        wanted = HARD_SWISH_OPSET;
    int ir = ort_code_plan_ir(&d->options, &d->rules), reach = wanted;
    ort_findings *found = NULL;
    if (ort_model_opset(d->model, "") < wanted) {
        ORT_TRY(ort_findings_new(&found, err));
        ort_status status = ort_model_convert_opset(d->model, registry, wanted, false, found,
                                                    &reach, err);
        if (status == ORT_OK)
            status = ort_findings_to_error(found, ORT_ERROR_UNSUPPORTED, err);
        ort_findings_free(found);
        ORT_TRY(status);
    }
    if (d->model->ir_version < ir) {
        d->model->ir_version = ir;
        d->model->changed = true;
    }
    return ort_graph_infer(d->model->graph, registry, NULL, err);
}

/* ---- placing */

/* Whatever is excluded: what is observed doesn't depend on that. */
static const char *stays_evened(void *arg, const ort_node *node)
{
    const ort_site *site = arg;
    return site->stays[node->id];
}

typedef struct staying {
    const ort_design *design;
    const ort_site *site;
} staying;

static const char *stays_float(void *arg, const ort_node *node)
{
    const staying *s = arg;
    const ort_design *d = s->design;
    if (s->site->stays[node->id])
        return s->site->stays[node->id];
    const char *unwanted = ort_node_unwanted(s->site->graph, node, d->include, d->exclude);
    return unwanted ? unwanted : ort_code_plan_float(&s->site->plan, node);
}

ort_status ort_design_place(ort_design *d, ort_error *err)
{
    for (size_t i = 0; i < d->sites.count; i++) {
        ort_site *site = &d->sites.data[i];
        staying s = {d, site};
        ORT_TRY(ort_place_graph(site->graph, stays_float, &s, d->options.qoperator, site->finite,
                                &site->place, err));
        ORT_TRY(ort_code_plan_settle(&site->plan, &site->place, err));
    }
    return ORT_OK;
}

static void release_sites(ort_design *d)
{
    for (size_t i = 0; i < d->sites.count; i++)
        ort_code_plan_release(&d->sites.data[i].plan);
    ort_vec_clear(&d->sites);
}

/* The graph is of site `parent`, or the main one. */
static bool add_sites(ort_design *d, ort_graph *graph, size_t parent, ort_id of, int body)
{
    const size_t own = d->sites.count;
    ort_node *node;
    bool ok = ort_vec_push(&d->sites, ((ort_site){.graph = graph, .parent = parent, .node = of,
                                                  .body = body}));
    ORT_EACH_NODE(graph, node)
        for (int b = 0; b < node->body_count && ok; b++)
            ok = add_sites(d, node->bodies[b], own, node->id, b);
    return ok;
}

ort_graph *ort_design_graph(const ort_design *d, const ort_site *site, const ort_model *copy)
{
    if (site->body < 0)
        return copy->graph;
    const ort_graph *around = ort_design_graph(d, &d->sites.data[site->parent], copy);
    return around->nodes.data[site->node]->bodies[site->body];
}

static ort_status plan_site(ort_design *d, ort_site *site, size_t *met, ort_error *err)
{
    const size_t nodes = site->graph->nodes.count, values = site->graph->values.count;
    ORT_TRY(ort_code_plan_make(&site->plan, site->graph, &d->options, &d->rules, met, err));
    site->stays = ort_arena_array(&d->model->arena, nodes + 1, sizeof *site->stays);
    site->halves = ort_arena_array(&d->model->arena, nodes + 1, sizeof *site->halves);
    site->finite = ort_arena_array(&d->model->arena, values + 1, sizeof *site->finite);
    if (!site->stays || !site->halves || !site->finite)
        return ort_error_memory(err, nodes * sizeof *site->stays);
    memset(site->stays, 0, nodes * sizeof *site->stays);
    memset(site->halves, 0, nodes * sizeof *site->halves);
    memset(site->finite, 0, values * sizeof *site->finite);
    for (size_t i = 0; i < d->muls.count && site->body < 0; i++)
        site->stays[d->muls.data[i]] = "it evens channels before they become codes";
    ORT_TRY(ort_place_graph(site->graph, stays_evened, site, true, site->finite, &site->widest,
                            err));
    return ort_place_graph(site->graph, stays_evened, site, d->options.qoperator, site->finite,
                           &site->whole, err);
}

static ort_status check_met(ort_design *d, const size_t *met, ort_error *err)
{
    static const char *const kinds[] = {"node", "operator", "value"};
    for (size_t i = 0; i < d->rules.list.count; i++) {
        const ort_code_rule *rule = &d->rules.list.data[i];
        d->rules_refused = met[i] == 0;
        if (d->rules_refused)
            return ort_error_set(err, ORT_ERROR_USAGE, "overrides[%zu]: no %s of the model is "
                                 "called '%.200s'", i, kinds[rule->of], rule->pattern);
    }
    return ORT_OK;
}

static ort_status plan_and_place(ort_design *d, const ort_registry *registry, ort_error *err)
{
    ORT_TRY(raise_opset(d, registry, err));
    release_sites(d);
    size_t *met = calloc(d->rules.list.count + 1, sizeof *met);
    ort_status status = met && add_sites(d, d->model->graph, 0, ORT_ID_NONE, -1)
                            ? ORT_OK : ort_error_memory(err, sizeof *d->sites.data);
    for (size_t i = 0; i < d->sites.count && status == ORT_OK; i++)
        status = plan_site(d, &d->sites.data[i], met, err);
    if (status == ORT_OK)
        status = check_met(d, met, err);
    free(met);
    return status == ORT_OK ? ort_design_place(d, err) : status;
}

static ort_status equalize(ort_design *d, const ort_log *log, ort_error *err)
{
    ORT_TRY(ort_equalize(d->model->graph, &d->evened, err));
    ort_log_write(log, ORT_LOG_INFO, "equalize: %zu pairs of products got factors a channel",
                  d->evened);
    return ORT_OK;
}

ort_status ort_design_smooth(ort_design *d, ort_smoothing *smoothing,
                             const ort_registry *registry, ort_error *err)
{
    ORT_TRY(ort_smoothing_apply(smoothing, d->options.smooth, &d->muls, err));
    return plan_and_place(d, registry, err);
}

static ort_status parse_rules(ort_design *d, const char *overrides, ort_error *err)
{
    ort_status status = ort_code_rules_parse(overrides, &d->rules, err);
    d->rules_refused = status != ORT_OK;
    return status;
}

ort_status ort_design_make(ort_design *d, ort_model *model, const ort_registry *registry,
                           const ort_log *log, const ort_quantize_options *options,
                           ort_error *err)
{
    char text[512];
    d->model = model;
    d->options = *options;
    ORT_TRY(ort_code_plan_check(options, err));
    ORT_TRY(parse_rules(d, options->overrides, err));
    ORT_TRY(copy_list(d, options->exclude, &d->exclude, err));
    ORT_TRY(copy_list(d, options->include, &d->include, err));
    ORT_TRY(ort_graph_infer(model->graph, registry, NULL, err));
    ORT_TRY(ort_quantize_name_nodes(model, err));
    if (!options->keep_fused && ort_place_fused(model->graph, text, sizeof text))
        return ort_error_set(err, ORT_ERROR_MODEL, "%s", text);
    ORT_TRY(ort_nodes_check_lists(model->graph, d->include, d->exclude, err));
    ORT_TRY(follow_names(d, err));
    ORT_TRY(options->without_passes ? ort_model_inline_functions(model, err)
                                    : run_passes(d, NULL, registry, log, err));
    ORT_TRY(raise_opset(d, registry, err));
    if (!options->without_passes) /* one step on codes, where four would be float */
        ORT_TRY(run_passes(d, (const char *const[]){"hard_swish", NULL}, registry, log, err));
    if (options->equalize)
        ORT_TRY(equalize(d, log, err));
    return plan_and_place(d, registry, err);
}

ort_status ort_design_override(ort_design *d, const ort_registry *registry, const char *json,
                               ort_error *err)
{
    ort_code_rules rules = {0};
    ort_status status = ort_code_rules_parse(json, &rules, err);
    if (status != ORT_OK) {
        ort_code_rules_release(&rules);
        return status;
    }
    ort_code_rules_release(&d->rules);
    d->rules = rules;
    return plan_and_place(d, registry, err);
}

void ort_design_release(ort_design *d)
{
    release_sites(d);
    ort_vec_release(&d->sites);
    ort_code_rules_release(&d->rules);
    ort_vec_release(&d->muls);
}
