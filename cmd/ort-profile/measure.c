/* measure.c - the runs of a profile, through a binding: the steady state allocates nothing. */
#include <time.h>

#include "common/misfit.h"
#include "common/progress.h"
#include "profile_tool.h"

double profile_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

enum { TUNING_RUNS = 6 };

/* --repeat counts, --seconds ends after that time; without either a second, of at least 7 runs, or
 * as many runs as tuning wants. */
static bool enough(const profile_options *o, bool profiled, int64_t runs, double seconds)
{
    if (o->repeat > 0 && runs >= o->repeat)
        return true;
    if (o->seconds > 0)
        return runs > 0 && seconds >= o->seconds;
    if (!profiled)
        return o->repeat <= 0 && runs >= TUNING_RUNS;
    return o->repeat <= 0 && runs >= 7 && seconds >= 1;
}

static ort_status run_all(ort_binding *binding, const profile_options *o, ort_profile *profile,
                          ort_error *err)
{
    const ort_run_options how = {
        .size = sizeof how, .timeout_s = o->settings.timeout, .profile = profile};
    bool profiled = profile != NULL;
    int64_t before = profiled ? o->warmup : 0;
    for (int64_t i = 0; i <= before; i++) { /* the first run, then the warm-up */
        ort_status status = ort_binding_run(binding, &how, err);
        if (status != ORT_OK)
            return status;
    }
    if (profiled)
        ort_profile_start(profile);
    double begin = profile_now_s(), seconds = 0;
    ort_status status = ORT_OK;
    progress p;
    progress_begin(&p, profiled ? "runs" : "tuning", o->settings.no_progress || o->settings.quiet);
    for (int64_t runs = 0; status == ORT_OK && !enough(o, profiled, runs, seconds); runs++) {
        double least = o->seconds > 0 ? o->seconds : 1;
        int64_t most = o->repeat > 0 ? o->repeat : profiled || o->seconds > 0 ? 0 : TUNING_RUNS;
        status = ort_binding_run(binding, &how, err);
        seconds = profile_now_s() - begin;
        progress_share(&p, (uint64_t)runs, most > 0 ? (double)runs / (double)most
                                                    : seconds / least);
    }
    progress_end(&p);
    return status;
}

ort_status profile_bind(const ort_session *session, ort_value *const *inputs,
                        ort_binding **binding, ort_error *err)
{
    ort_status status = ort_binding_new(session, binding, err);
    for (size_t i = 0; i < ort_session_input_count(session) && status == ORT_OK; i++)
        if (inputs[i] != NULL)
            status = ort_binding_set_input(*binding, ort_session_input_name(session, i), inputs[i],
                                           err);
    return status;
}

int profile_runs(const ort_session *session, const profile_options *o, ort_profile *profile,
                 ort_value *const *inputs, const char *label)
{
    ort_binding *binding = NULL;
    ort_error err = {0};
    ort_status status = profile_bind(session, inputs, &binding, &err);
    if (status == ORT_OK)
        status = run_all(binding, o, profile, &err);
    ort_binding_free(binding);
    if (status != ORT_OK)
        misfit_explain(session, inputs, &err);
    return status != ORT_OK ? tool_fail_in(label, &err) : 0;
}
