/* api_inspect.c - looking at models: reports, pictures, differences, parts (ort.h). */
#include <stdlib.h>
#include <string.h>

#include "base/findings.h"
#include "base/options.h"
#include "exec/env.h"
#include "graph/diff.h"
#include "graph/draw.h"
#include "graph/extract.h"
#include "io/source.h"
#include "op/types.h"
#include "provider/partition.h"
#include "report/memory_report.h"
#include "report/pack_report.h"
#include "report/partition_report.h"
#include "report/report.h"

/* The buffer's text becomes the caller's. */
static ort_status hand_over(ort_status status, ort_strbuf *buf, char **text, ort_error *err)
{
    *text = NULL;
    if (status == ORT_OK && !buf->data)
        ort_strbuf_add(buf, "");
    if (status == ORT_OK && buf->failed)
        status = ort_error_memory(err, buf->length);
    if (status == ORT_OK)
        *text = buf->data ? buf->data : strdup("");
    else
        ort_strbuf_release(buf);
    return status == ORT_OK && !*text ? ort_error_memory(err, 1) : status;
}

void ort_text_free(char *text)
{
    free(text);
}

ort_status ort_model_report(ort_model *model, ort_report report, char **json, ort_error *err)
{
    if (!model || !json)
        return ort_error_null(err, __func__);
    ort_strbuf out = {0};
    ort_loading loading;
    *json = NULL;
    if ((unsigned)report > ORT_REPORT_STORED)
        return ort_error_set(err, ORT_ERROR_USAGE, "there is no report %d", (int)report);
    ORT_TRY(ort_loading_begin(&loading, &model->limits, model->account, err));
    ort_status status = report == ORT_REPORT_MEMORY
                            ? ort_exec_memory_report(NULL, model, NULL, &out, err)
                            : ort_report_write(model, report, &out, err);
    return hand_over(ort_loading_end(&loading, status, err), &out, json, err);
}

ort_status ort_memory_report(ort_env *env, ort_model *model, const ort_session_options *options,
                             char **json, ort_error *err)
{
    if (!env || !model || !json)
        return ort_error_null(err, __func__);
    ort_session_options own = ORT_SESSION_OPTIONS_INIT;
    ort_strbuf out = {0};
    ort_loading loading;
    *json = NULL;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    ORT_TRY(ort_loading_begin(&loading, &model->limits, model->account, err));
    ort_status status = ort_exec_memory_report(env, model, options, &out, err);
    return hand_over(ort_loading_end(&loading, status, err), &out, json, err);
}

const char *ort_provider_name(int index)
{
    const ort_provider *provider = ort_provider_at(index);
    return provider ? provider->name : NULL;
}

const char *ort_provider_foreign_name(int index)
{
    return ort_partition_foreign(index);
}

ort_status ort_providers_check(const char *list, ort_error *err)
{
    return ort_partition_check_list(ort_provider_table(), list, err);
}

ort_status ort_partition_report(ort_env *env, const ort_model *model,
                                const ort_session_options *options, char **json, ort_error *err)
{
    if (!env || !model || !json)
        return ort_error_null(err, __func__);
    ort_session_options own = ORT_SESSION_OPTIONS_INIT;
    ort_strbuf out = {0};
    *json = NULL;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    return hand_over(ort_exec_partition_report(env, model, options, &out, err), &out, json, err);
}

ort_status ort_providers_report(char **json, ort_error *err)
{
    if (!json)
        return ort_error_null(err, __func__);
    ort_strbuf out = {0};
    ort_report_providers(ort_provider_table(), &out);
    return hand_over(ORT_OK, &out, json, err);
}

const char *ort_env_provider_name(const ort_env *env, int index)
{
    for (int i = 0; env && index >= 0 && env->providers[i]; i++)
        if (i == index)
            return env->providers[i]->name;
    return NULL;
}

ort_status ort_env_providers_check(const ort_env *env, const char *list, ort_error *err)
{
    if (!env)
        return ort_error_null(err, __func__);
    return ort_partition_check_list(env->providers, list, err);
}

ort_status ort_env_providers_report(const ort_env *env, char **json, ort_error *err)
{
    if (!env || !json)
        return ort_error_null(err, __func__);
    ort_strbuf out = {0};
    ort_report_providers(env->providers, &out);
    return hand_over(ORT_OK, &out, json, err);
}

ort_status ort_supports_report(const ort_env *env, char **json, ort_error *err)
{
    if (!env || !json)
        return ort_error_null(err, __func__);
    ort_strbuf out = {0};
    ort_status status = ort_report_supports(env->registry, ort_env_isa(env), env->providers, &out,
                                            err);
    return hand_over(status, &out, json, err);
}

/* The walker leaves the weights alone, so only the pages of the skeleton are read. */
ort_status ort_summary_report(const char *path, char **json, ort_error *err)
{
    if (!path || !json)
        return ort_error_null(err, __func__);
    ort_load_options options = {.size = sizeof options, .skeleton = true};
    ort_source source;
    ort_model *model = NULL;
    ort_strbuf out = {0};
    ort_loading loading;
    *json = NULL;
    ORT_TRY(ort_source_open(path, &options, &source, err));
    ort_status status = ort_loading_begin(&loading, NULL, NULL, err);
    if (status == ORT_OK) {
        status = ort_model_import(&source, NULL, &model, err);
        if (status == ORT_OK)
            status = ort_report_write(model, ORT_REPORT_SUMMARY, &out, err);
        ort_model_free(model);
        status = ort_loading_end(&loading, status, err);
    }
    ort_source_release(&source);
    return hand_over(status, &out, json, err);
}

ort_status ort_pack_report_with(ort_env *env, const char *path, const ort_load_options *options,
                                bool verify, bool *fits, char **json, ort_error *err)
{
    if (!env || !path || !fits || !json)
        return ort_error_null(err, __func__);
    ort_strbuf out = {0};
    ort_status status = ort_exec_pack_report(env, path, options, verify, fits, &out, err);
    return hand_over(status, &out, json, err);
}

ort_status ort_pack_report(ort_env *env, const char *path, bool verify, bool *fits, char **json,
                           ort_error *err)
{
    return ort_pack_report_with(env, path, NULL, verify, fits, json, err);
}

/* Work on a copy of the model whose types are inferred, until end_typed; none is begun where this
 * fails. */
static ort_status begin_typed(const ort_model *model, ort_loading *loading, ort_model **typed,
                              ort_error *err)
{
    ORT_TRY(ort_loading_begin(loading, &model->limits, model->account, err));
    ort_status status = ort_model_typed_copy(model, typed, err);
    return status != ORT_OK ? ort_loading_end(loading, status, err) : ORT_OK;
}

static ort_status end_typed(ort_loading *loading, ort_model *typed, ort_status status,
                            ort_error *err)
{
    ort_model_free(typed);
    return ort_loading_end(loading, status, err);
}

ort_status ort_model_draw(ort_model *model, bool svg, char **text, ort_error *err)
{
    if (!model || !text)
        return ort_error_null(err, __func__);
    ort_model *copy = NULL;
    ort_strbuf out = {0};
    ort_loading loading;
    *text = NULL;
    ORT_TRY(begin_typed(model, &loading, &copy, err));
    ort_status status = svg ? ort_graph_draw_svg(copy, &out, err)
                            : ort_graph_draw_dot(copy, &out, err);
    return hand_over(end_typed(&loading, copy, status, err), &out, text, err);
}

ort_status ort_model_diff(const ort_model *a, const ort_model *b, bool *equal, char **text,
                          ort_error *err)
{
    if (!a || !b || !equal || !text)
        return ort_error_null(err, __func__);
    ort_strbuf out = {0};
    return hand_over(ort_graph_diff(a, b, equal, &out, err), &out, text, err);
}

ort_status ort_model_extract(const ort_model *model, const char *const *inputs, size_t input_count,
                             const char *const *outputs, size_t output_count, ort_model **part,
                             ort_error *err)
{
    if (!model || !part || !(inputs || !input_count) || !(outputs || !output_count))
        return ort_error_null(err, __func__);
    ort_model *typed = NULL;
    ort_loading loading;
    *part = NULL;
    ORT_TRY(begin_typed(model, &loading, &typed, err));
    ort_status status = ort_graph_extract(model, typed, inputs, input_count, outputs, output_count,
                                          part, err);
    return end_typed(&loading, typed, status, err);
}

ort_status ort_model_types(const ort_model *model, ort_types_of which, ort_types **types,
                           ort_error *err)
{
    if (!model || !types)
        return ort_error_null(err, __func__);
    ort_model *typed = NULL;
    ort_loading loading;
    *types = NULL;
    ORT_TRY(begin_typed(model, &loading, &typed, err));
    return end_typed(&loading, typed, ort_types_collect(typed, which, types, err), err);
}
