/* api_profile.c - profiles of ort.h: what a profile needs to know of a session, and its writers. */
#include <stdlib.h>

#include "base/options.h"
#include "exec/session.h"
#include "profile/profile.h"

/* Who has how many nodes, where a device has some. */
static ort_status add_shares(const ort_session *session, ort_profile *profile, ort_error *err)
{
    const ort_partition *p = &session->partition;
    ort_tally tally;
    if (p->count < 2)
        return ORT_OK;
    ort_status status = ort_partition_tally(p, session->model->graph, &tally, err);
    for (int i = 0; i < p->count && status == ORT_OK; i++)
        ort_profile_add_share(profile, p->list[i].row->name, tally.nodes[i]);
    return status;
}

ort_status ort_profile_new(const ort_session *session, const ort_profile_options *options,
                           ort_profile **profile, ort_error *err)
{
    if (!session || !profile)
        return ort_error_null(err, __func__);
    const ort_env *env = session->env;
    ort_profile_options own = ORT_PROFILE_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    char providers[128];
    ORT_TRY(ort_profile_create(session->model->path,
                               ort_partition_names(&session->partition, providers,
                                                   sizeof providers),
                               env->k->isa, env->threads, options, profile, err));
    ORT_TRY(add_shares(session, *profile, err));
    if (options->load_ns)
        ort_profile_add_phase(*profile, "load", options->load_ns, -1);
    for (size_t i = 0; i < session->phases.count; i++) {
        const ort_phase *phase = &session->phases.data[i];
        ort_profile_add_phase(*profile, phase->name, phase->ns, phase->changes);
    }
    return ORT_OK;
}

ort_status ort_env_measure_peak(const ort_env *env, ort_peak *peak, ort_error *err)
{
    if (!env)
        return ort_error_null(err, __func__);
    ort_peak found = ORT_PEAK_INIT;
    ORT_TRY(ORT_RESULT_CHECK(peak, err));
    ORT_TRY(ort_peak_measure(env->k, env->pool, &found, err));
    return ORT_RESULT_GIVE(peak, &found, err);
}

ort_status ort_profile_report(const ort_profile *profile, const ort_peak *peak, char **json,
                              ort_error *err)
{
    if (!profile || !json)
        return ort_error_null(err, __func__);
    ort_strbuf out = {0};
    ort_peak own = ORT_PEAK_INIT;
    *json = NULL;
    if (peak) {
        peak = ORT_OPTIONS_KNOWN(peak, &own, err);
        if (!peak)
            return ORT_ERROR_USAGE;
    }
    ort_status status = ort_profile_write_json(profile, peak, &out, err);
    if (status != ORT_OK)
        ort_strbuf_release(&out);
    else
        *json = out.data;
    return status;
}

ort_status ort_profile_trace(const ort_profile *profile, FILE *stream, ort_error *err)
{
    if (!profile || !stream)
        return ort_error_null(err, __func__);
    return ort_profile_write_trace(profile, stream, err);
}
