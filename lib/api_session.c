/* api_session.c - public calls on sessions: thin. */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "exec/session.h"
#include "graph/graph.h"

static ort_status load_session(ort_env *env, const char *path, const ort_session_options *options,
                               ort_session **session, ort_error *err)
{
    if (!env || !path || !session)
        return ort_error_null(err, __func__);
    /* Weights that are packed need no aligned copy but while they are. */
    ort_load_options load = {.size = sizeof load, .as_stored = true};
    ort_model *model = NULL;
    uint64_t begin = ort_clock_ns();
    ort_session_options own = ORT_SESSION_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    load.allow_newer = options->allow_newer;
    load.external_root = options->external_root;
    if (!options->no_pack) {
        ORT_TRY(ort_exec_session_beside(env, path, options, session, err));
        if (*session)
            return ORT_OK;
    }
    ORT_TRY(ort_model_load(env, path, &load, &model, err));
    const ort_session_parts parts = {.env = env, .model = model, .options = options,
                                     .load_ns = ort_clock_ns() - begin};
    return ort_exec_session_make(&parts, session, err);
}

ort_status ort_session_load(ort_env *env, const char *path, const ort_session_options *options,
                            ort_session **session, ort_error *err)
{
    if (!env || !path || !session)
        return ort_error_null(err, __func__);
    ort_loading loading;
    *session = NULL;
    ORT_TRY(ort_loading_begin(&loading, &env->limits, NULL, err));
    return ort_loading_end(&loading, load_session(env, path, options, session, err), err);
}

ort_status ort_session_new(ort_env *env, ort_model *model, const ort_session_options *options,
                           ort_session **session, ort_error *err)
{
    if (!env || !model || !session)
        return ort_error_null(err, __func__);
    ort_session_options own = ORT_SESSION_OPTIONS_INIT;
    *session = NULL;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    return options ? ort_exec_session_new(env, model, options, session, err) : ORT_ERROR_USAGE;
}

void ort_session_free(ort_session *session)
{
    ort_exec_session_release(session);
}

size_t ort_session_input_count(const ort_session *session)
{
    if (!session)
        return 0;
    return (size_t)session->input_count;
}

size_t ort_session_output_count(const ort_session *session)
{
    if (!session)
        return 0;
    return (size_t)session->output_count;
}

const char *ort_session_input_name(const ort_session *session, size_t index)
{
    if (!session)
        return NULL;
    return index < (size_t)session->input_count ? session->inputs[index].name : NULL;
}

const char *ort_session_output_name(const ort_session *session, size_t index)
{
    if (!session)
        return NULL;
    return index < (size_t)session->output_count ? session->outputs[index].name : NULL;
}

const ort_type_info *ort_session_input_type(const ort_session *session, size_t index)
{
    if (!session)
        return NULL;
    return index < (size_t)session->input_count ? session->inputs[index].info : NULL;
}

const ort_type_info *ort_session_output_type(const ort_session *session, size_t index)
{
    if (!session)
        return NULL;
    return index < (size_t)session->output_count ? session->outputs[index].info : NULL;
}

ort_dtype ort_session_input_dtype(const ort_session *session, size_t index)
{
    if (!session)
        return ORT_DTYPE_UNDEFINED;
    if (index >= (size_t)session->input_count ||
        session->inputs[index].type.kind != ORT_TYPE_TENSOR)
        return ORT_DTYPE_UNDEFINED;
    return session->inputs[index].type.dtype;
}

int ort_session_input_dims(const ort_session *session, size_t index, int64_t *dims, int capacity)
{
    if (!session || !(dims || capacity <= 0))
        return -1;
    const ort_type *type;
    if (index >= (size_t)session->input_count)
        return -1;
    type = &session->inputs[index].type;
    if (type->kind != ORT_TYPE_TENSOR)
        return -1;
    for (int i = 0; i < type->rank && i < capacity; i++)
        dims[i] = ort_dim_known(type->dim[i]) ? type->dim[i].size : -1;
    return type->rank;
}

bool ort_session_input_optional(const ort_session *session, size_t index)
{
    if (!session)
        return false;
    return index < (size_t)session->input_count && session->inputs[index].default_value;
}

size_t ort_session_phase_count(const ort_session *session)
{
    if (!session)
        return 0;
    return session->phases.count;
}

const char *ort_session_phase(const ort_session *session, size_t index, uint64_t *ns, int *changes)
{
    if (!session)
        return NULL;
    if (index >= session->phases.count)
        return NULL;
    if (ns)
        *ns = session->phases.data[index].ns;
    if (changes)
        *changes = session->phases.data[index].changes;
    return session->phases.data[index].name;
}
