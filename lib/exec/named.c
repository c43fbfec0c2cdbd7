/* named.c - the caller's choice of inputs and outputs: names become places among the session's, and
 * outputs that nobody asks for leave the run. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/options.h"
#include "base/strbuf.h"
#include "exec/session.h"

static ort_status unknown_port(const ort_port *ports, int count, const char *what,
                               const char *name, ort_error *err)
{
    ort_strbuf names = {0};
    ort_nearest near;
    char meant[300];
    ort_nearest_begin(&near, name);
    for (int i = 0; i < count; i++) {
        ort_nearest_try(&near, ports[i].name);
        ort_strbuf_addf(&names, "%s%s", i ? ", " : "", ports[i].name);
    }
    ort_status status = ort_error_set(err, ORT_ERROR_USAGE,
                                      "the model has no %s '%s'%s; it has: %s", what, name,
                                      ort_nearest_text(&near, meant, sizeof meant),
                                      ort_strbuf_text(&names));
    ort_strbuf_release(&names);
    return status;
}

ort_status ort_exec_find_port(const ort_port *ports, int count, const char *what, const char *name,
                              int hint, int *index, ort_error *err)
{
    if (!name)
        return ort_error_set(err, ORT_ERROR_USAGE, "the name of an %s is NULL", what);
    for (int i = 0; i < count; i++) {
        *index = (hint + i) % count;
        if (!strcmp(ports[*index].name, name))
            return ORT_OK;
    }
    return unknown_port(ports, count, what, name, err);
}

ort_status ort_exec_check_count(int count, const char *what, size_t given, ort_error *err)
{
    if (given == (size_t)count)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_USAGE, "%zu %s are given, the model has %d", given, what,
                         count);
}

ort_status ort_exec_wanted(const ort_session *session, const ort_run_options *options,
                           const bool **wanted, ort_error *err)
{
    *wanted = NULL;
    if (!options->wanted)
        return ORT_OK;
    ORT_TRY(ort_exec_check_count(session->output_count, "entries of options->wanted",
                                 options->wanted_count, err));
    for (int i = 0; i < session->output_count; i++)
        if (!options->wanted[i])
            *wanted = options->wanted;
    return ORT_OK;
}

/* ---- contexts */

/* A context of the idle ones (any will do: its frames are found by shape), or a new one. */
static ort_status take_context(ort_session *session, ort_context **context, ort_error *err)
{
    *context = NULL;
    pthread_mutex_lock(&session->lock);
    if (session->idle_count)
        *context = session->idle[--session->idle_count];
    pthread_mutex_unlock(&session->lock);
    return *context ? ORT_OK : ort_context_new(session, context, err);
}

static void return_context(ort_session *session, ort_context *context)
{
    assert(!context->options); /* its run has ended */
    pthread_mutex_lock(&session->lock);
    if (session->idle_count < ORT_IDLE_CONTEXTS) {
        session->idle[session->idle_count++] = context;
        context = NULL;
    }
    pthread_mutex_unlock(&session->lock);
    ort_context_free(context);
}

ort_status ort_exec_run_once(const ort_session *session, ort_value *const *inputs,
                             ort_value **outputs, const bool *wanted,
                             const ort_run_options *options, ort_error *err)
{
    ort_session *s = (ort_session *)(uintptr_t)session; /* only its idle list, under its lock */
    ort_context *context = NULL;
    ORT_TRY(take_context(s, &context, err));
    ort_execution x = {.session = session,
                       .context = context,
                       .inputs = inputs,
                       .outputs = outputs,
                       .wanted = wanted,
                       .options = options};
    ort_status status = ort_exec_run(&x, err);
    return_context(s, context);
    return status;
}

/* ---- runs by name */

enum { FEW = 16 };

typedef struct named { /* the session's inputs and outputs, as this run has them */
    const ort_session *session;
    ort_value **in, **out;
    bool *is_given, *is_wanted;
    int *place; /* of each named output */
    ort_value *few_values[2 * FEW];
    bool few_flags[2 * FEW];
    int few_places[FEW];
    void *memory;
} named;

static ort_status begin(named *n, const ort_session *s, ort_error *err)
{
    size_t in = (size_t)s->input_count, out = (size_t)s->output_count, count = in + out;
    n->session = s;
    n->memory = NULL;
    if (in <= FEW && out <= FEW) {
        n->in = n->few_values;
        n->is_given = n->few_flags;
        n->place = n->few_places;
        memset(n->in, 0, count * sizeof *n->in);
        memset(n->is_given, 0, count);
    } else {
        n->memory = calloc(count, sizeof *n->in + sizeof *n->is_given + sizeof *n->place);
        if (!n->memory)
            return ort_error_memory(err, count * sizeof *n->in);
        n->in = n->memory;
        n->place = (int *)(void *)(n->in + count);
        n->is_given = (bool *)(n->place + count);
    }
    n->out = n->in + in;
    n->is_wanted = n->is_given + in;
    return ORT_OK;
}

static ort_status twice(const char *what, const char *name, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_USAGE, "%s '%s' is named twice", what, name);
}

static ort_status place_inputs(named *n, const char *const *names, ort_value *const *inputs,
                               size_t count, ort_error *err)
{
    const ort_session *s = n->session;
    int at = -1;
    if (!names)
        ORT_TRY(ort_exec_check_count(s->input_count, "inputs", count, err));
    for (size_t i = 0; i < count; i++) {
        if (names)
            ORT_TRY(ort_exec_find_port(s->inputs, s->input_count, "input", names[i], at + 1, &at,
                                       err));
        else
            at++;
        if (n->is_given[at])
            return twice("input", names[i], err);
        assert(at >= 0 && at < s->input_count);
        n->is_given[at] = true;
        n->in[at] = inputs[i];
    }
    return ORT_OK;
}

static ort_status place_outputs(named *n, const char *const *names, ort_value *const *outputs,
                                size_t count, ort_error *err)
{
    const ort_session *s = n->session;
    int at = -1;
    for (size_t i = 0; i < count; i++) {
        ORT_TRY(ort_exec_find_port(s->outputs, s->output_count, "output", names[i], at + 1, &at,
                                   err));
        if (n->is_wanted[at])
            return twice("output", names[i], err);
        n->is_wanted[at] = true;
        n->place[i] = at;
        n->out[at] = outputs[i];
    }
    return ORT_OK;
}

/* Outputs by name; inputs are in place. */
static ort_status run_for(named *n, const char *const *names, ort_value **outputs, size_t count,
                          const ort_run_options *options, ort_error *err)
{
    ORT_TRY(place_outputs(n, names, outputs, count, err));
    bool all = count == (size_t)n->session->output_count;
    ORT_TRY(ort_exec_run_once(n->session, n->in, n->out, all ? NULL : n->is_wanted, options, err));
    for (size_t i = 0; i < count; i++)
        outputs[i] = n->out[n->place[i]];
    return ORT_OK;
}

static ort_status run_named(const ort_session *s, const char *const *input_names,
                            ort_value *const *inputs, size_t input_count,
                            const char *const *output_names, ort_value **outputs,
                            size_t output_count, const ort_run_options *options, ort_error *err)
{
    const bool *wanted;
    named n;
    ORT_TRY(ort_exec_wanted(s, options, &wanted, err));
    if (output_names && options->wanted)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "outputs are named, and options->wanted is given: one of both");
    if (!output_names)
        ORT_TRY(ort_exec_check_count(s->output_count, "outputs", output_count, err));
    ORT_TRY(begin(&n, s, err));
    ort_status status = place_inputs(&n, input_names, inputs, input_count, err);
    if (status == ORT_OK && output_names)
        status = run_for(&n, output_names, outputs, output_count, options, err);
    else if (status == ORT_OK)
        status = ort_exec_run_once(s, n.in, outputs, wanted, options, err);
    free(n.memory);
    return status;
}

ort_status ort_session_run(const ort_session *session, const char *const *input_names,
                           ort_value *const *inputs, size_t input_count,
                           const char *const *output_names, ort_value **outputs,
                           size_t output_count, const ort_run_options *options, ort_error *err)
{
    static const ort_run_options defaults = ORT_RUN_OPTIONS_INIT;
    ort_run_options own;
    if (!session || (input_count && !inputs) || (output_count && !outputs))
        return ort_error_null(err, __func__);
    if (!options) {
        options = &defaults; /* not copied: a run of one small node takes 0.1 us */
    } else if (options->size != sizeof own) {
        own = defaults;
        options = ORT_OPTIONS_KNOWN(options, &own, err);
        if (!options)
            return ORT_ERROR_USAGE;
    }
    if (input_names || output_names || options->wanted)
        return run_named(session, input_names, inputs, input_count, output_names, outputs,
                         output_count, options, err);
    ORT_TRY(ort_exec_check_count(session->input_count, "inputs", input_count, err));
    ORT_TRY(ort_exec_check_count(session->output_count, "outputs", output_count, err));
    return ort_exec_run_once(session, inputs, outputs, NULL, options, err);
}
