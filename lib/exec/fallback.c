/* fallback.c - a session whose device fails goes on on the host, where its list of providers names
 * the host and --strict doesn't forbid it: another session of the same model, made when it is first
 * needed from the copy that the first one kept. */
#include <stdlib.h>

#include "base/error.h"
#include "exec/session.h"

bool ort_exec_falls_back(const ort_session *session)
{
    return session->falls_back && ort_partition_has_device(&session->partition);
}

ort_session *ort_exec_session_host(const ort_session *session)
{
    return __atomic_load_n(&session->host, __ATOMIC_ACQUIRE);
}

static ort_status make_host(ort_session *s, ort_session **host, ort_error *err)
{
    ort_session_options options = s->options;
    ort_session_parts b = {.env = (ort_env *)(uintptr_t)s->env, .options = &options};
    ort_loading loading;
    options.providers = NULL;
    ORT_TRY(ort_loading_begin_apart(&loading, &s->env->limits, s->account, err));
    ort_status status = ort_model_clone(s->pristine, &b.model, err);
    if (status == ORT_OK)
        status = ort_exec_session_make(&b, host, err);
    return ort_loading_end(&loading, status, err);
}

ort_status ort_exec_fall_back(const ort_session *session, const char *why, ort_session **host,
                              ort_error *err)
{
    ort_session *s = (ort_session *)(uintptr_t)session; /* made once, under the lock */
    ort_status status = ORT_OK;
    pthread_mutex_lock(&s->lock);
    if (!s->host) {
        ort_session *made = NULL;
        ort_log_write(&s->env->log, ORT_LOG_WARNING, "%s; the session goes on on %s", why,
                      ort_partition_host(&s->partition)->name);
        status = make_host(s, &made, err);
        __atomic_store_n(&s->host, made, __ATOMIC_RELEASE);
    }
    *host = s->host;
    pthread_mutex_unlock(&s->lock);
    return status;
}
