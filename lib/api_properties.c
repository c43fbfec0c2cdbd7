/* api_properties.c - what a model says of itself, and its weights replaced: of ort.h, thin. */
#include "base/error.h"
#include "exec/session.h"
#include "graph/override.h"

const char *ort_model_text(const ort_model *model, ort_model_text_kind what)
{
    const char *text = NULL;
    if (!model)
        return "";
    switch (what) {
    case ORT_MODEL_PRODUCER_NAME: text = model->producer_name; break;
    case ORT_MODEL_PRODUCER_VERSION: text = model->producer_version; break;
    case ORT_MODEL_DOMAIN: text = model->domain; break;
    case ORT_MODEL_DOC: text = model->doc; break;
    case ORT_MODEL_GRAPH_NAME: text = model->graph->name; break;
    case ORT_MODEL_GRAPH_DOC: text = model->graph->doc; break;
    }
    return text ? text : "";
}

int64_t ort_model_number(const ort_model *model)
{
    return model ? model->model_version : 0;
}

int64_t ort_model_ir_version(const ort_model *model)
{
    return model ? model->ir_version : 0;
}

size_t ort_model_property_count(const ort_model *model)
{
    return model ? model->metadata_count : 0;
}

const char *ort_model_property_key(const ort_model *model, size_t index)
{
    return model && index < model->metadata_count ? model->metadata[index].key : NULL;
}

const char *ort_model_property(const ort_model *model, const char *key)
{
    return model && key ? ort_graph_metadata(model, key) : NULL;
}

ort_status ort_model_set_property(ort_model *model, const char *key, const char *value,
                                  ort_error *err)
{
    if (!model || !key)
        return ort_error_null(err, __func__);
    return ort_graph_set_metadata(model, key, value, err);
}

ort_status ort_model_set_initializer(ort_model *model, const char *name, const ort_value *value,
                                     ort_error *err)
{
    if (!model || !name || !value)
        return ort_error_null(err, __func__);
    if (value->kind != ORT_KIND_TENSOR)
        return ort_error_set(err, ORT_ERROR_DATA, "initializer '%s' takes a tensor", name);
    return ort_graph_set_initializer(model, name, &value->tensor, err);
}

/* ---- of a session's model */

static const ort_model *model_of(const ort_session *session)
{
    return session ? session->model : NULL;
}

const char *ort_session_text(const ort_session *session, ort_model_text_kind what)
{
    return ort_model_text(model_of(session), what);
}

int64_t ort_session_number(const ort_session *session)
{
    return ort_model_number(model_of(session));
}

size_t ort_session_property_count(const ort_session *session)
{
    return ort_model_property_count(model_of(session));
}

const char *ort_session_property_key(const ort_session *session, size_t index)
{
    return ort_model_property_key(model_of(session), index);
}

const char *ort_session_property(const ort_session *session, const char *key)
{
    return ort_model_property(model_of(session), key);
}
