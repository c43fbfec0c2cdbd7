/* design.c - from options and rules to parts and forms.
 *
 * The passes of level 1 come first because they fold what would otherwise stand between products
 * and their codes: BatchNormalization goes into the weights before these are rounded. Names that
 * options and rules mention are followed through the passes.
 */
#include "quantize/design.h"

#include <string.h>

#include "base/error.h"
#include "base/findings.h"
#include "base/nearest.h"
#include "graph/follow.h"
#include "op/op.h"
#include "opset/opset.h"
#include "pass/optimize.h"
#include "quantize/place_why.h"

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

static ort_status unknown_pattern(const ort_graph *graph, const char *pattern, const char *list,
                                  ort_error *err)
{
    char near[300];
    ort_node *node;
    ort_nearest n;
    ort_nearest_begin(&n, pattern);
    ORT_EACH_NODE(graph, node)
    {
        ort_nearest_try(&n, node->name);
        ort_nearest_try(&n, node->op_type);
    }
    return ort_error_set(err, ORT_ERROR_USAGE, "%s: no node or operator of the model is called "
                         "'%.200s'%s", list, pattern, ort_nearest_text(&n, near, sizeof near));
}

static ort_status check_patterns(const ort_graph *graph, const char *const *patterns,
                                 const char *list, ort_error *err)
{
    for (; patterns && *patterns; patterns++) {
        bool met = false;
        ort_node *node;
        ORT_EACH_NODE(graph, node)
        {
            met = met || ort_node_is_named(node, *patterns);
        }
        if (!met)
            return unknown_pattern(graph, *patterns, list, err);
    }
    return ORT_OK;
}

static bool is_listed(const ort_node *node, const char *const *patterns)
{
    for (; patterns && *patterns; patterns++)
        if (ort_node_is_named(node, *patterns))
            return true;
    return false;
}

static bool is_ruled(const ort_design *d, const ort_node *node)
{
    for (size_t i = 0; i < d->rules.list.count; i++)
        if (ort_code_rule_meets(&d->rules.list.data[i], node))
            return true;
    return false;
}

/* Nodes that someone names keep their names in the origins of what passes make of them. */
static ort_status follow_names(ort_design *d, ort_error *err)
{
    ORT_VEC(const char *) names = {0};
    ort_node *node;
    bool ok = true;
    ORT_EACH_NODE(d->model->graph, node)
    {
        if (ok && node->name[0] &&
            (is_listed(node, d->exclude) || is_listed(node, d->include) || is_ruled(d, node)))
            ok = ort_vec_push(&names, node->name);
    }
    ok = ok && ort_vec_push(&names, NULL);
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

static const char *stays_never(void *arg, const ort_node *node)
{
    (void)arg;
    (void)node;
    return NULL;
}

static const char *stays_float(void *arg, const ort_node *node)
{
    const ort_design *d = arg;
    if (d->stays[node->id])
        return d->stays[node->id];
    if (is_listed(node, d->exclude))
        return "it is excluded";
    if (d->include && !is_listed(node, d->include))
        return "it isn't among what is included";
    return ort_code_plan_float(&d->plan, node);
}

ort_status ort_design_place(ort_design *d, ort_error *err)
{
    ORT_TRY(ort_place_graph(d->model->graph, stays_float, d, &d->place, err));
    return ort_code_plan_settle(&d->plan, &d->place, err);
}

static ort_status plan_and_place(ort_design *d, const ort_registry *registry, ort_error *err)
{
    ort_graph *graph = d->model->graph;
    ORT_TRY(raise_opset(d, registry, err));
    ort_code_plan_release(&d->plan);
    d->plan = (ort_code_plan){0};
    ORT_TRY(ort_code_plan_make(&d->plan, graph, &d->options, &d->rules, err));
    size_t nodes = graph->nodes.count;
    d->stays = ort_arena_array(&d->model->arena, nodes + 1, sizeof *d->stays);
    if (!d->stays)
        return ort_error_memory(err, nodes * sizeof *d->stays);
    memset(d->stays, 0, nodes * sizeof *d->stays);
    ORT_TRY(ort_place_graph(graph, stays_never, d, &d->widest, err));
    return ort_design_place(d, err);
}

ort_status ort_design_make(ort_design *d, ort_model *model, const ort_registry *registry,
                           const ort_log *log, const ort_quantize_options *options,
                           ort_error *err)
{
    char text[512];
    d->model = model;
    d->options = *options;
    ORT_TRY(ort_code_plan_check(options, err));
    ORT_TRY(ort_code_rules_parse(options->overrides, &d->rules, err));
    ORT_TRY(copy_list(d, options->exclude, &d->exclude, err));
    ORT_TRY(copy_list(d, options->include, &d->include, err));
    ORT_TRY(ort_graph_infer(model->graph, registry, NULL, err));
    if (!options->keep_fused && ort_place_fused(model->graph, text, sizeof text))
        return ort_error_set(err, ORT_ERROR_MODEL, "%s", text);
    ORT_TRY(check_patterns(model->graph, d->exclude, "exclude", err));
    ORT_TRY(check_patterns(model->graph, d->include, "include", err));
    ORT_TRY(follow_names(d, err));
    ORT_TRY(options->without_passes ? ort_model_inline_functions(model, err)
                                    : run_passes(d, NULL, registry, log, err));
    ORT_TRY(raise_opset(d, registry, err));
    if (!options->without_passes) /* one step on codes, where four would be float */
        ORT_TRY(run_passes(d, (const char *const[]){"hard_swish", NULL}, registry, log, err));
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
    ort_code_plan_release(&d->plan);
    ort_code_rules_release(&d->rules);
}
