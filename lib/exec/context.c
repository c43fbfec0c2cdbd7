/* context.c - making and freeing what an outermost run and its bodies share (frame.h). */
#include <stdlib.h>

#include "base/error.h"
#include "exec/seen.h"

/* What a run may take: the limit, less what the session holds beside its weights. */
static size_t run_limit(const ort_session *session)
{
    size_t limit = session->env->options.max_memory_bytes;
    size_t taken = ort_account_excess(session->account);
    return taken < limit ? limit - taken : 1;
}

ort_status ort_context_new(const ort_session *session, ort_context **context, ort_error *err)
{
    ort_context *c = calloc(1, sizeof *c);
    *context = NULL;
    if (!c)
        return ort_error_memory(err, sizeof *c);
    c->env = session->env;
    c->services = &ort_exec_services;
    if (c->env->options.max_memory_bytes) {
        c->buffers.account = ort_account_new(run_limit(session), "of a run",
                                             c->env->limits.whole);
        if (!c->buffers.account) {
            free(c);
            return ort_error_memory(err, sizeof *c);
        }
    }
    *context = c;
    return ORT_OK;
}

void ort_context_free(ort_context *context)
{
    if (!context)
        return;
    ort_frames_release(&context->frames);
    ort_buffers_release(&context->buffers);
    free(context->results);
    ort_sights_free(context->sights);
    free(context);
}
