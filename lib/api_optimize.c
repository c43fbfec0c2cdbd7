/* api_optimize.c - the optimizer of ort.h: thin. */
#include <string.h>

#include "base/findings.h"
#include "base/options.h"
#include "exec/env.h"
#include "graph/follow.h"
#include "graph/override.h"
#include "graph/strip.h"
#include "io/pack.h"
#include "opset/opset.h"
#include "pass/clean/make_dynamic.h"
#include "pass/numbers/narrow.h"
#include "pass/optimize.h"

typedef struct relay {
    const ort_optimize_options *options;
} relay;

static void report(void *arg, const ort_pass *pass, uint64_t ns, int changes)
{
    const ort_optimize_options *o = ((const relay *)arg)->options;
    o->on_pass(o->arg, pass->name, changes, ns);
}

static void near_miss(void *arg, const ort_pass *pass, const char *node, const char *condition)
{
    const ort_optimize_options *o = ((const relay *)arg)->options;
    o->on_near_miss(o->arg, pass->name, node, condition);
}

ort_status ort_model_optimize(ort_env *env, ort_model *model, const ort_optimize_options *options,
                              ort_error *err)
{
    if (!env || !model)
        return ort_error_null(err, __func__);
    ort_optimize_options own = ORT_OPTIMIZE_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    const ort_optimize_options *o = options;
    relay r = {o};
    ort_pass_options pass = ort_rewrite_options(model, o, env->registry, &env->log);
    pass.keep_denormals = env->options.keep_denormals;
    pass.report = o->on_pass ? report : NULL;
    pass.report_arg = &r;
    pass.near_miss = o->on_near_miss ? near_miss : NULL;
    pass.near_miss_arg = &r;
    pass.near_miss_ns = o->near_miss_ns;
    ort_loading loading;
    ORT_TRY(ort_loading_begin(&loading, &env->limits, model->account, err));
    /* It may say too much soon; ort_model_save_packed states it anew. */
    ort_status status = ort_graph_set_metadata(model, ORT_PACK_DIGEST_KEY, NULL, err);
    if (status == ORT_OK)
        status = ort_model_rewrite(model, &pass, o->keep_functions, err);
    return ort_loading_end(&loading, status, err);
}

ort_status ort_model_narrow(ort_env *env, ort_model *model, const ort_narrow_options *options,
                            ort_error *err)
{
    if (!env || !model)
        return ort_error_null(err, __func__);
    ort_narrow_options own = ORT_NARROW_OPTIONS_INIT;
    ort_loading loading;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    ORT_TRY(ort_loading_begin(&loading, &env->limits, model->account, err));
    return ort_loading_end(&loading, ort_graph_narrow(model, env->registry, options, err), err);
}

ort_status ort_model_follow(ort_model *model, const char *const *names, ort_error *err)
{
    if (!model)
        return ort_error_null(err, __func__);
    return ort_model_follow_names(model, names, err);
}

ort_status ort_model_set_opset(ort_env *env, ort_model *model, int opset, bool keep_functions,
                               ort_findings **blockers, int *reach, ort_error *err)
{
    if (!env || !model)
        return ort_error_null(err, __func__);
    ort_findings *found = NULL;
    int nearest = opset;
    if (blockers)
        *blockers = NULL;
    ort_loading loading;
    ORT_TRY(ort_findings_new(&found, err));
    ort_status status = ort_loading_begin(&loading, &env->limits, model->account, err);
    if (status == ORT_OK) {
        status = ort_model_convert_opset(model, env->registry, opset, keep_functions, found,
                                         &nearest, err);
        status = ort_loading_end(&loading, status, err);
    }
    if (reach)
        *reach = nearest;
    if (blockers)
        *blockers = found;
    else
        ort_findings_free(found);
    return status;
}

void ort_model_strip(ort_model *model, unsigned what)
{
    if (!model)
        return;
    ort_graph_strip(model, what);
}

ort_status ort_model_make_dynamic(ort_env *env, ort_model *model, const char *input, int axis,
                                  const char *symbol, ort_error *err)
{
    if (!env || !model || !input || !symbol)
        return ort_error_null(err, __func__);
    ort_loading loading;
    ORT_TRY(ort_loading_begin(&loading, &env->limits, model->account, err));
    ort_status status = ort_model_open_axis(model, env->registry, input, axis, symbol, err);
    return ort_loading_end(&loading, status, err);
}

const char *ort_pass_name(int index, int *level, const char **doc)
{
    const ort_pass *pass = ort_pass_at(index);
    if (!pass)
        return NULL;
    if (level)
        *level = pass->level;
    if (doc)
        *doc = pass->doc;
    return pass->name;
}

bool ort_pass_is_exact(const char *name)
{
    if (!name)
        return false;
    const ort_pass *pass;
    for (int i = 0; (pass = ort_pass_at(i)); i++)
        if (!strcmp(pass->name, name))
            return pass->exact;
    return false;
}

ort_status ort_model_copy(const ort_model *model, ort_model **copy, ort_error *err)
{
    if (!model || !copy)
        return ort_error_null(err, __func__);
    ort_loading loading;
    *copy = NULL;
    ORT_TRY(ort_loading_begin_apart(&loading, &model->limits, model->account, err));
    return ort_loading_end(&loading, ort_model_clone(model, copy, err), err);
}
