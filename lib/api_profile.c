/* api_profile.c - profiles of ort.h: what a profile needs to know of a session, and its writers. */
#include <stdlib.h>

#include "base/error.h"
#include "exec/session.h"
#include "profile/profile.h"

ort_status ort_profile_new(const ort_session *session, const ort_profile_options *options,
                           ort_profile **profile, ort_error *err)
{
    const ort_env *env = session->env;
    ORT_TRY(ort_profile_create(session->model->path, env->k->isa, env->threads, options, profile,
                               err));
    if (options && options->load_ns)
        ort_profile_add_phase(*profile, "load", options->load_ns, -1);
    for (size_t i = 0; i < session->phases.count; i++) {
        const ort_phase *phase = &session->phases.data[i];
        ort_profile_add_phase(*profile, phase->name, phase->ns, phase->changes);
    }
    return ORT_OK;
}

ort_status ort_env_measure_peak(const ort_env *env, ort_peak *peak, ort_error *err)
{
    return ort_peak_measure(env->k, env->pool, peak, err);
}

ort_status ort_profile_report(const ort_profile *profile, const ort_peak *peak, char **json,
                              ort_error *err)
{
    ort_strbuf out = {0};
    ort_status status = ort_profile_write_json(profile, peak, &out, err);
    *json = NULL;
    if (status)
        ort_strbuf_release(&out);
    else
        *json = out.data;
    return status;
}

ort_status ort_profile_trace(const ort_profile *profile, FILE *stream, ort_error *err)
{
    return ort_profile_write_trace(profile, stream, err);
}
