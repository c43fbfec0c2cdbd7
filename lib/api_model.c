/* api_model.c - models of ort.h: loading, checking, fixing dimensions, constants. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "exec/packing.h"
#include "graph/override.h"
#include "io/pack.h"
#include "io/source.h"
#include "op/check/check.h"

static ort_status import(ort_env *env, ort_source *source, const ort_load_options *options,
                         ort_model **model, ort_error *err)
{
    ort_loading loading;
    ort_status status = ort_loading_begin(&loading, &env->limits, NULL, err);
    if (status == ORT_OK)
        status = ort_loading_end(&loading, ort_model_import(source, env->registry, model, err),
                                 err);
    ort_source_release(source);
    if (status == ORT_OK)
        (*model)->limits = env->limits;
    if (status == ORT_OK && !options->allow_newer)
        status = ort_check_newer(*model, err);
    if (status != ORT_OK) {
        ort_model_free(*model);
        *model = NULL;
    }
    return status;
}

ort_status ort_model_load(ort_env *env, const char *path, const ort_load_options *options,
                          ort_model **model, ort_error *err)
{
    if (!env || !path || !model)
        return ort_error_null(err, __func__);
    ort_source source;
    ort_load_options own = ORT_LOAD_OPTIONS_INIT;
    *model = NULL;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    ORT_TRY(ort_source_open(path, options, &source, err));
    return import(env, &source, options, model, err);
}

ort_status ort_model_load_memory(ort_env *env, const void *bytes, size_t count,
                                 const ort_load_options *options, ort_model **model, ort_error *err)
{
    if (!env || !(bytes || !count) || !model)
        return ort_error_null(err, __func__);
    ort_source source;
    ort_load_options own = ORT_LOAD_OPTIONS_INIT;
    *model = NULL;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    ORT_TRY(ort_source_memory(bytes, count, options, &source, err));
    return import(env, &source, options, model, err);
}

ort_status ort_model_save_packed(ort_env *env, ort_model *model, const char *path,
                                 const ort_save_options *options, ort_error *err)
{
    if (!env || !model || !path)
        return ort_error_null(err, __func__);
    char digest[20];
    snprintf(digest, sizeof digest, "%016llx",
             (unsigned long long)ort_pack_weights_digest(model));
    ORT_TRY(ort_graph_set_metadata(model, ORT_PACK_DIGEST_KEY, digest, err));
    ort_loading loading;
    ORT_TRY(ort_loading_begin_apart(&loading, &env->limits, model->account, err));
    return ort_loading_end(&loading, ort_exec_save_packed(env, model, path, options, err), err);
}

ort_status ort_model_check(const ort_model *model, ort_findings **findings, ort_error *err)
{
    if (!model || !findings)
        return ort_error_null(err, __func__);
    ort_model *copy = NULL;
    ort_loading loading;
    *findings = NULL;
    ORT_TRY(ort_loading_begin(&loading, &model->limits, model->account, err));
    ort_status status = ort_findings_new(findings, err);
    if (status == ORT_OK)
        status = ort_check_message(model, *findings, err);
    if (status == ORT_OK)
        status = ort_model_clone(model, &copy, err);
    if (status == ORT_OK)
        status = ort_graph_check(copy, model->registry, *findings, err);
    if (status == ORT_OK && ort_findings_errors(*findings) == 0)
        status = ort_check_prepare(copy->graph, *findings, err);
    ort_model_free(copy);
    status = ort_loading_end(&loading, status, err);
    if (status != ORT_OK) {
        ort_findings_free(*findings);
        *findings = NULL;
    }
    return status;
}

ort_status ort_model_set_dim(ort_model *model, const char *name, int64_t size, ort_error *err)
{
    if (!model || !name)
        return ort_error_null(err, __func__);
    return ort_graph_set_dim(model, name, size, err);
}

ort_status ort_model_set_shape(ort_model *model, const char *input, int rank, const int64_t *dims,
                               ort_error *err)
{
    if (!model || !input || !(rank <= 0 || dims))
        return ort_error_null(err, __func__);
    return ort_graph_set_shape(model, input, rank, dims, err);
}

ort_status ort_model_constant(const ort_model *model, const char *name, ort_value **value,
                              ort_error *err)
{
    if (!model || !name || !value)
        return ort_error_null(err, __func__);
    const ort_tensor *tensor = ort_graph_find_constant(model->graph, name);
    ort_value *view = NULL;
    *value = NULL;
    if (!tensor)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "the model has no constant '%s' (--initializers lists them)", name);
    if (!tensor->data && ort_tensor_count(tensor) > 0)
        return ort_error_set(err, ORT_ERROR_MODEL, "the data of '%s' was not loaded", name);
    ORT_TRY(ort_value_new_view(tensor, &view, err));
    ort_status status = ort_value_clone(view, value, err);
    ort_value_free(view);
    return status;
}
