/* run.c - runs: values in and out by name.
 *
 * The path of a run that succeeds is as short as can be: the library looks names up and checks
 * types and shapes itself, so nothing is checked twice. Only when it refuses, explain.c looks for
 * the ABI's own words for what is wrong.
 */
#include "custom.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 32 }; /* values of a run that lie on the stack */

typedef struct request {
    OrtSession *session;
    const OrtRunOptions *options;
    const char *const *input_names;
    const OrtValue *const *inputs;
    size_t input_count;
    const char *const *output_names;
    size_t output_count;
    OrtValue **outputs;
} request;

/* That of a client's operator, whose words they are; atomic: other runs may fail, too. */
static enum abi_code code_of(const OrtSession *session)
{
    int code = session->custom
                   ? __atomic_exchange_n(&session->custom->code, 0, __ATOMIC_ACQ_REL)
                   : 0;
    return code ? code : ABI_FAIL;
}

static OrtStatus *explain(const request *r, const ort_error *err)
{
    if (err->status == ORT_ERROR_CANCELLED)
        return abi_fail(ABI_FAIL, "Exiting due to terminate flag being set to true.");
    OrtStatus *status = abi_explain_run(r->session, r->input_names, r->inputs, r->input_count,
                                        r->output_names, r->output_count, r->outputs);
    if (!status && err->status == ORT_ERROR_RUN)
        status = abi_explain_node(code_of(r->session), err);
    return status ? status : abi_from_error(err);
}

/* Outputs that the client left NULL become values; those that it gave were written in place. */
static OrtStatus *wrap_outputs(const request *r, ort_value **outputs)
{
    OrtStatus *status = NULL;
    for (size_t i = 0; i < r->output_count; i++) {
        if (r->outputs[i])
            continue;
        if (status)
            ort_value_free(outputs[i]);
        else
            status = abi_wrap(outputs[i], &r->outputs[i]);
    }
    return status;
}

/* The trace of a run that asks for one of its own is written when it ends; that of the session
 * lacks it. */
static OrtStatus *run_with_options(const request *r, ort_value **inputs, ort_value **outputs)
{
    const char *prefix = r->options ? r->options->profile_prefix : NULL;
    struct abi_profiler *own = NULL, *profiler = r->session->profiler;
    if (prefix && !(profiler = own = abi_profiler_new(r->session->session, prefix)))
        return abi_no_memory();
    ort_error err = ORT_ERROR_INIT;
    ort_run_options options;
    ort_run_options_init(&options);
    options.cancel = r->options ? r->options->cancel : NULL;
    options.profile = profiler ? abi_profiler_begin(profiler) : NULL;
    ort_status ran = ort_session_run(r->session->session, r->input_names, inputs, r->input_count,
                                     r->output_names, outputs, r->output_count, &options, &err);
    if (options.profile)
        abi_profiler_end(profiler);
    OrtStatus *status = ran == ORT_OK ? wrap_outputs(r, outputs) : explain(r, &err);
    OrtStatus *written = abi_profiler_free(own);
    if (!status)
        return written;
    abi_ReleaseStatus(written);
    return status;
}

static OrtStatus *run_values(const request *r, ort_value **inputs, ort_value **outputs)
{
    ort_error err;
    err.status = ORT_OK;
    for (size_t i = 0; i < r->input_count; i++) {
        ABI_CHECK(r->inputs[i], "NULL input supplied for input %s", r->input_names[i]);
        ABI_CHECK(r->inputs[i]->value, "input '%s' is a sparse tensor: not supported",
                  r->input_names[i]);
        inputs[i] = r->inputs[i]->value;
    }
    for (size_t i = 0; i < r->output_count; i++)
        outputs[i] = r->outputs[i] ? r->outputs[i]->value : NULL;
    if (r->session->profiler || r->options)
        return run_with_options(r, inputs, outputs);
    ort_status status = ort_session_run(r->session->session, r->input_names, inputs, r->input_count,
                                        r->output_names, outputs, r->output_count, NULL, &err);
    return status == ORT_OK ? wrap_outputs(r, outputs) : explain(r, &err);
}

/* Values without names would be all of the session's: the ABI has no such call. */
static OrtStatus *check_request(const request *r)
{
    static const char *const none[1];
    ABI_CHECK(r->session, "session is NULL");
    if (r->session->edited)
        return abi_fail(ABI_FAIL, "Session not initialized.");
    ABI_CHECK(r->output_count, "At least one output should be requested.");
    ABI_CHECK(r->output_names && r->outputs, "output_names is NULL");
    ABI_CHECK((r->input_names && r->inputs) || !r->input_count, "input_names is NULL");
    for (size_t i = 0; i < r->input_count; i++)
        ABI_CHECK(r->input_names[i] && *r->input_names[i], "input name cannot be empty");
    for (size_t i = 0; i < r->output_count; i++)
        ABI_CHECK(r->output_names[i] && *r->output_names[i], "output name cannot be empty");
    if (!r->input_names)
        ((request *)r)->input_names = none;
    return NULL;
}

static OrtStatus *run(request *r)
{
    ABI_TRY(check_request(r));
    size_t count = r->input_count + r->output_count;
    ort_value *few[FEW], **values = count <= FEW ? few : malloc(count * sizeof *values);
    if (!values)
        return abi_no_memory();
    OrtStatus *status = run_values(r, values, values + r->input_count);
    if (values != few)
        free(values);
    return status;
}

/* The inputs that adapters give stand behind those of the client. */
static OrtStatus *run_adapted(request *r)
{
    const OrtRunOptions *options = r->options;
    size_t given = r->input_count, count = given + options->adapted_count;
    OrtValue *extra = calloc(options->adapted_count, sizeof *extra);
    const OrtValue **inputs = calloc(count, sizeof *inputs);
    const char **names = calloc(count, sizeof *names);
    OrtStatus *status = extra && inputs && names ? NULL : abi_no_memory();
    for (size_t i = 0; !status && i < count; i++) {
        const abi_named *adapted = i < given ? NULL : &options->adapted[i - given];
        if (adapted)
            extra[i - given] = (OrtValue){.value = adapted->value, .memory = &abi_cpu_memory};
        inputs[i] = adapted ? &extra[i - given] : r->inputs[i];
        names[i] = adapted ? adapted->name : r->input_names[i];
    }
    if (!status) {
        r->inputs = inputs;
        r->input_names = names;
        r->input_count = count;
        status = run(r);
    }
    free(extra);
    free(inputs);
    free(names);
    return status;
}

OrtStatus *abi_Run(OrtSession *session, const OrtRunOptions *options,
                   const char *const *input_names, const OrtValue *const *inputs,
                   size_t input_count, const char *const *output_names, size_t output_count,
                   OrtValue **outputs)
{
    request r = {session,     options,      input_names,  inputs,
                 input_count, output_names, output_count, outputs};
    return options && options->adapted_count ? run_adapted(&r) : run(&r);
}

/* -------------------------------------------------------------------------- in the background */

/* A session keeps its threads until they have ended: whoever has released it may unload the
 * library, in whose code they would return otherwise. */
struct abi_job {
    struct abi_job *next;
    pthread_t thread;
    request request;
    RunAsyncCallbackFn done;
    void *user_data;
    bool ended;    /* under the session's lock */
    bool orphaned; /* its own callback has released the session */
};

static void *work(void *arg)
{
    struct abi_job *j = arg;
    OrtSession *session = j->request.session;
    const OrtRunOptions *options = j->request.options;
    OrtStatus *status = options && options->adapted_count ? run_adapted(&j->request)
                                                          : run(&j->request);
    j->done(j->user_data, j->request.outputs, status ? 0 : j->request.output_count, status);
    if (j->orphaned) {
        free(j);
        return NULL;
    }
    pthread_mutex_lock(&session->lock);
    j->ended = true;
    pthread_mutex_unlock(&session->lock);
    return NULL;
}

/* Out of the session's list: those that have ended, or all. */
static struct abi_job *take_jobs(OrtSession *session, bool all)
{
    struct abi_job *taken = NULL, **at = &session->jobs;
    pthread_mutex_lock(&session->lock);
    while (*at) {
        struct abi_job *j = *at;
        if (!all && !j->ended) {
            at = &j->next;
            continue;
        }
        *at = j->next;
        j->next = taken;
        taken = j;
    }
    pthread_mutex_unlock(&session->lock);
    return taken;
}

static void join(struct abi_job *jobs)
{
    while (jobs) {
        struct abi_job *j = jobs;
        jobs = j->next;
        if (pthread_equal(j->thread, pthread_self())) {
            j->orphaned = true;
            pthread_detach(j->thread);
            continue;
        }
        pthread_join(j->thread, NULL);
        free(j);
    }
}

void abi_wait_for_jobs(OrtSession *session)
{
    join(take_jobs(session, true));
}

static int start(OrtSession *session, struct abi_job *j)
{
    pthread_mutex_lock(&session->lock); /* the job is listed before its callback can look */
    int failed = pthread_create(&j->thread, NULL, work, j);
    if (!failed) {
        j->next = session->jobs;
        session->jobs = j;
    }
    pthread_mutex_unlock(&session->lock);
    return failed;
}

/* The arrays and what they hold stay the client's until its callback is called, which frees the
 * status. */
OrtStatus *abi_RunAsync(OrtSession *session, const OrtRunOptions *options,
                        const char *const *input_names, const OrtValue *const *inputs,
                        size_t input_count, const char *const *output_names, size_t output_count,
                        OrtValue **outputs, RunAsyncCallbackFn done, void *user_data)
{
    ABI_CHECK(done, "run_async_callback is NULL");
    ABI_CHECK(session, "session is NULL");
    struct abi_job *j = malloc(sizeof *j);
    if (!j)
        return abi_no_memory();
    join(take_jobs(session, false));
    *j = (struct abi_job){
        .request = {session, options, input_names, inputs, input_count, output_names,
                    output_count, outputs},
        .done = done,
        .user_data = user_data};
    int failed = start(session, j);
    if (!failed)
        return NULL;
    free(j);
    return abi_fail(ABI_FAIL, "no thread for the run: %s", strerror(failed));
}
