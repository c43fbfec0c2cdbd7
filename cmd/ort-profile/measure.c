/* measure.c - the runs of a profile, through a binding: the steady state allocates nothing. */
#include <time.h>

#include "common/misfit.h"
#include "common/progress.h"
#include "profile_tool.h"

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --repeat counts, --seconds ends after that time; without either a second, of at least 7 runs. */
static bool enough(const profile_options *o, int64_t runs, double seconds)
{
    if (o->repeat > 0 && runs >= o->repeat)
        return true;
    if (o->seconds > 0)
        return runs > 0 && seconds >= o->seconds;
    return o->repeat <= 0 && runs >= 7 && seconds >= 1;
}

static ort_status run_all(ort_binding *binding, const profile_options *o, ort_profile *profile,
                          ort_error *err)
{
    const ort_run_options how = {
        .size = sizeof how, .timeout_s = o->settings.timeout, .profile = profile};
    for (int64_t i = 0; i <= o->warmup; i++) { /* the first run, then the warm-up */
        ort_status status = ort_binding_run(binding, &how, err);
        if (status != ORT_OK)
            return status;
    }
    ort_profile_start(profile);
    double begin = now_s();
    ort_status status = ORT_OK;
    progress p;
    progress_begin(&p, "runs", o->settings.no_progress || o->settings.quiet);
    for (int64_t runs = 0; status == ORT_OK && !enough(o, runs, now_s() - begin); runs++) {
        status = ort_binding_run(binding, &how, err);
        double least = o->seconds > 0 ? o->seconds : 1;
        progress_share(&p, (uint64_t)runs, o->repeat > 0 ? (double)runs / (double)o->repeat
                                                         : (now_s() - begin) / least);
    }
    progress_end(&p);
    return status;
}

int profile_runs(const ort_session *session, const profile_options *o, ort_profile *profile,
                 ort_value *const *inputs, const char *label)
{
    ort_binding *binding = NULL;
    ort_error err = {0};
    ort_status status = ort_binding_new(session, &binding, &err);
    for (size_t i = 0; i < ort_session_input_count(session) && status == ORT_OK; i++)
        if (inputs[i] != NULL)
            status = ort_binding_set_input(binding, ort_session_input_name(session, i), inputs[i],
                                           &err);
    if (status == ORT_OK)
        status = run_all(binding, o, profile, &err);
    ort_binding_free(binding);
    if (status != ORT_OK)
        misfit_explain(session, inputs, &err);
    return status != ORT_OK ? tool_fail_in(label, &err) : 0;
}
