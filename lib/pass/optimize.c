/* optimize.c - a model rewritten for a file: checked, its functions expanded, inferred, passes run,
 * what became useless dropped. Sessions have a walk of their own (exec/session.c). */
#include "pass/optimize.h"

#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/findings.h"
#include "base/log.h"
#include "graph/defaults.h"
#include "op/check/check.h"
#include "opset/opset.h"

/* Do all functions import the versions that the model does? */
static bool has_one_version(const ort_model *model)
{
    for (size_t i = 0; i < model->functions.count; i++) {
        const ort_function *f = &model->functions.data[i];
        for (int k = 0; k < f->opset_count; k++) {
            int64_t own = ort_model_opset(model, f->opsets[k].domain);
            if (own && own != f->opsets[k].version)
                return false;
        }
    }
    return true;
}

static ort_status expand_and_settle(ort_model *model, const ort_registry *registry,
                                    ort_findings *blockers, ort_error *err)
{
    ORT_TRY(ort_model_inline_functions(model, err));
    return ort_model_settle_opsets(model, registry, blockers, err);
}

/* What can't be written in the model's version is tried on a copy; then all functions stay. */
static ort_status expand(ort_model *model, const ort_pass_options *options, ort_error *err)
{
    ort_model *copy = NULL;
    ort_findings *blockers = NULL;
    ort_error why = {0};
    if (has_one_version(model))
        return ort_model_inline_functions(model, err);
    ORT_TRY(ort_findings_new(&blockers, err));
    ort_status status = ort_model_clone(model, &copy, err);
    if (status == ORT_OK)
        status = expand_and_settle(copy, options->registry, blockers, err);
    ort_model_free(copy);
    if (status == ORT_OK && ort_findings_to_error(blockers, ORT_ERROR_UNSUPPORTED, &why))
        ort_log_write(options->log, ORT_LOG_WARNING, "functions stay: %s", why.message);
    else if (status == ORT_OK)
        status = expand_and_settle(model, options->registry, blockers, err);
    ort_findings_free(blockers);
    return status;
}

/* Of initializers and Constant nodes, in bodies too. */
static size_t weight_bytes(const ort_graph *graph)
{
    const ort_node *node;
    size_t bytes = 0;
    for (size_t i = 0; i < graph->initializers.count; i++) {
        const ort_graph_value *v = graph->values.data[graph->initializers.data[i]];
        bytes += v->fact.value ? ort_tensor_bytes(v->fact.value) : 0;
    }
    ORT_EACH_NODE(graph, node)
    {
        const ort_tensor *constant = ort_node_constant(node);
        bytes += constant ? ort_tensor_bytes(constant) : 0;
        for (int b = 0; b < node->body_count; b++)
            bytes += weight_bytes(node->bodies[b]);
    }
    return bytes;
}

/* What folding may add to the weights. */
static size_t growth_budget(const ort_model *model, const ort_optimize_options *o)
{
    double factor = o->max_growth > 1 ? o->max_growth - 1 : 0;
    double bytes = factor * (double)weight_bytes(model->graph) + (double)o->growth_bytes;
    return bytes < (double)(SIZE_MAX / 2) ? (size_t)bytes : SIZE_MAX / 2;
}

ort_pass_options ort_rewrite_options(const ort_model *model, const ort_optimize_options *options,
                                     const ort_registry *registry, const ort_log *log)
{
    return (ort_pass_options){.level = options->level < 0 || options->level > 2 ? 2
                                                                                : options->level,
                              .only = options->passes,
                              .disable = options->disable,
                              .limit = options->limit,
                              .growth_bytes = growth_budget(model, options),
                              .registry = registry,
                              .log = log,
                              .portable = true,
                              .contrib = options->contrib};
}

/* Nothing to expand and nothing to hide: what the check infers is what the passes need. */
static bool is_plain(const ort_model *model)
{
    const ort_graph *graph = model->graph;
    for (size_t i = 0; i < graph->inputs.count; i++)
        if (graph->values.data[graph->inputs.data[i]]->fact.value)
            return false;
    return model->functions.count == 0;
}

static ort_status rewrite(ort_model *model, const ort_pass_options *options, bool keep_functions,
                          ort_error *err)
{
    ort_hidden_defaults hidden = {0};
    ort_status status = ORT_OK;
    if (is_plain(model)) {
        ORT_TRY(ort_check_whole(model, options->registry, err));
        return ort_passes_run(model, options, err);
    }
    ORT_TRY(ort_check_copy(model, options->registry, err));
    if (!keep_functions && (options->level > 0 || options->only))
        ORT_TRY(expand(model, options, err));
    ORT_TRY_GOTO(status, ort_defaults_hide(model->graph, &hidden, err), done);
    ORT_TRY_GOTO(status, ort_graph_infer(model->graph, options->registry, NULL, err), done);
    ort_pass_options with_hidden = *options;
    with_hidden.hidden = &hidden;
    status = ort_passes_run(model, &with_hidden, err);
done:
    ort_defaults_restore(model->graph, &hidden);
    return status;
}

/* Inference evaluates small constants already. */
ort_status ort_model_rewrite(ort_model *model, const ort_pass_options *options,
                             bool keep_functions, ort_error *err)
{
    unsigned control = ort_cpu_set_flush(!options->keep_denormals);
    ort_status status = rewrite(model, options, keep_functions, err);
    ort_cpu_restore_fp(control);
    return status;
}
