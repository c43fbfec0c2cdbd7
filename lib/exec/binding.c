/* binding.c - one caller's inputs, outputs and working memory, kept between runs. */
#include "exec/away.h"

#include <stdlib.h>
#include <string.h>

#include "base/options.h"

struct ort_binding {
    const ort_session *session;
    ort_context *context;
    ort_value **inputs;  /* references */
    ort_value **outputs; /* references: the caller's, or made by a run */
    ort_device **devices; /* references: where it keeps its own outputs; NULL: on the host */
    bool *reuse;         /* the binding's own output: replaced when its shape changes */
    ort_states states;
    ort_value **taken;   /* what a run takes: `inputs`, and values of states; not counted */
    bool *wanted;        /* outputs of the last run, states among them */
    bool partial;        /* not all of them */
};

ort_status ort_binding_new(const ort_session *session, ort_binding **binding, ort_error *err)
{
    if (!session || !binding)
        return ort_error_null(err, __func__);
    ort_binding *b = calloc(1, sizeof *b);
    ort_status status = ORT_OK;
    *binding = NULL;
    if (!b)
        return ort_error_memory(err, sizeof *b);
    b->session = session;
    b->inputs = calloc((size_t)session->input_count + 1, sizeof *b->inputs);
    b->outputs = calloc((size_t)session->output_count + 1, sizeof *b->outputs);
    b->devices = calloc((size_t)session->output_count + 1, sizeof *b->devices);
    b->reuse = malloc((size_t)session->output_count + 1);
    b->taken = calloc((size_t)session->input_count + 1, sizeof *b->taken);
    b->wanted = calloc((size_t)session->output_count + 1, sizeof *b->wanted);
    if (!b->inputs || !b->outputs || !b->devices || !b->reuse || !b->taken || !b->wanted)
        status = ort_error_memory(err, sizeof *b->inputs);
    if (status == ORT_OK)
        status = ort_context_new(session, &b->context, err);
    if (status != ORT_OK) {
        ort_binding_free(b);
        return status;
    }
    memset(b->reuse, true, (size_t)session->output_count + 1);
    b->states = (ort_states){.session = session, .buffers = &b->context->buffers};
    *binding = b;
    return ORT_OK;
}

void ort_binding_free(ort_binding *binding)
{
    if (!binding)
        return;
    for (int i = 0; binding->inputs && i < binding->session->input_count; i++)
        ort_value_free(binding->inputs[i]);
    for (int i = 0; binding->outputs && i < binding->session->output_count; i++)
        ort_value_free(binding->outputs[i]);
    for (int i = 0; binding->devices && i < binding->session->output_count; i++)
        ort_device_free(binding->devices[i]);
    ort_states_release(&binding->states);
    ort_context_free(binding->context);
    free(binding->taken);
    free(binding->wanted);
    free(binding->inputs);
    free(binding->outputs);
    free(binding->devices);
    free(binding->reuse);
    free(binding);
}

static ort_status state_is_here(const char *input, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_USAGE, "input '%s' is a state, which lies on the host",
                         input);
}

ort_status ort_binding_set_input(ort_binding *binding, const char *name, ort_value *value,
                                 ort_error *err)
{
    if (!binding || !name)
        return ort_error_null(err, __func__);
    int index = 0;
    ORT_TRY(ort_exec_find_port(binding->session->inputs, binding->session->input_count, "input",
                               name, 0, &index, err));
    ort_state *state = ort_states_of_input(&binding->states, index);
    if (state && ort_value_is_away(value))
        return state_is_here(name, err);
    if (ort_value_is_away(value))
        ORT_TRY(ort_device_check(binding->session, ort_value_device(value), "input", name, err));
    ort_value **place = state ? &state->start : &binding->inputs[index];
    if (state)
        state->started = false;
    ort_value_retain(value);
    ort_value_free(*place);
    *place = value;
    return ORT_OK;
}

ort_status ort_binding_set_output(ort_binding *binding, const char *name, ort_value *value,
                                  ort_error *err)
{
    if (!binding || !name)
        return ort_error_null(err, __func__);
    int index = 0;
    ORT_TRY(ort_exec_find_port(binding->session->outputs, binding->session->output_count, "output",
                               name, 0, &index, err));
    if (value && ort_states_of_output(&binding->states, index))
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "output '%s' is the next value of a state; the binding keeps it",
                             name);
    if (ort_value_is_away(value))
        ORT_TRY(ort_device_check(binding->session, ort_value_device(value), "output", name, err));
    ort_value_retain(value);
    ort_value_free(binding->outputs[index]);
    binding->outputs[index] = value;
    binding->reuse[index] = !value;
    ort_device_free(binding->devices[index]);
    binding->devices[index] = NULL;
    return ORT_OK;
}

ort_status ort_binding_set_output_device(ort_binding *binding, const char *name,
                                         ort_device *device, ort_error *err)
{
    if (!binding || !name)
        return ort_error_null(err, __func__);
    const ort_session *s = binding->session;
    int index = 0;
    ORT_TRY(ort_exec_find_port(s->outputs, s->output_count, "output", name, 0, &index, err));
    if (device)
        ORT_TRY(ort_device_check(s, device, "output", name, err));
    if (device && ort_states_of_output(&binding->states, index))
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "output '%s' is the next value of a state, which lies on the host",
                             name);
    ORT_TRY(ort_binding_set_output(binding, name, NULL, err));
    binding->devices[index] = device ? ort_device_retain(device) : NULL;
    return ORT_OK;
}

ort_status ort_binding_set_state(ort_binding *binding, const char *input, const char *output,
                                 ort_error *err)
{
    if (!binding || !input || !output)
        return ort_error_null(err, __func__);
    const ort_session *s = binding->session;
    int in = 0, out = 0;
    ORT_TRY(ort_exec_find_port(s->inputs, s->input_count, "input", input, 0, &in, err));
    ORT_TRY(ort_exec_find_port(s->outputs, s->output_count, "output", output, 0, &out, err));
    if (ort_value_is_away(binding->inputs[in]))
        return state_is_here(input, err);
    if (binding->devices[out])
        return ort_error_set(err, ORT_ERROR_USAGE, "output '%s' is kept on %s; a state lies on the "
                             "host", output, binding->devices[out]->name);
    if (!binding->reuse[out])
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "output '%s' is bound to memory of the caller; a state keeps its own",
                             output);
    ORT_TRY(ort_states_add(&binding->states, in, out, err));
    ort_states_of_input(&binding->states, in)->start = binding->inputs[in];
    binding->inputs[in] = NULL;
    return ORT_OK;
}

void ort_binding_reserve_rows(ort_binding *binding, int64_t rows)
{
    if (!binding)
        return;
    binding->states.reserved = rows;
}

void ort_binding_restart(ort_binding *binding)
{
    if (!binding)
        return;
    for (int i = 0; i < binding->states.count; i++)
        binding->states.data[i]->started = false;
}

bool ort_binding_state_grows(const ort_binding *binding, const char *input)
{
    if (!binding || !input)
        return false;
    for (int i = 0; i < binding->states.count; i++) {
        const ort_state *st = binding->states.data[i];
        if (!strcmp(binding->session->inputs[st->input].name, input))
            return st->growth != NULL;
    }
    return false;
}

static ort_status begin_states(ort_binding *b, ort_error *err)
{
    memcpy(b->taken, b->inputs, sizeof *b->taken * (size_t)b->session->input_count);
    for (int i = 0; i < b->states.count; i++) /* sizes may follow from these */
        b->taken[b->states.data[i]->input] = b->states.data[i]->start;
    ORT_TRY(ort_states_begin(&b->states, b->taken, err));
    for (int i = 0; i < b->states.count; i++)
        b->taken[b->states.data[i]->input] = b->states.data[i]->value;
    return ORT_OK;
}

/* States go on whatever the caller wants to see. */
static ort_status choose_outputs(ort_binding *b, const ort_run_options *options, ort_error *err)
{
    const bool *wanted;
    ORT_TRY(ort_exec_wanted(b->session, options, &wanted, err));
    b->partial = wanted != NULL;
    if (!wanted)
        return ORT_OK;
    memcpy(b->wanted, wanted, sizeof *wanted * (size_t)b->session->output_count);
    for (int i = 0; i < b->states.count; i++)
        b->wanted[b->states.data[i]->output] = true;
    return ORT_OK;
}

ort_status ort_binding_run(ort_binding *binding, const ort_run_options *options, ort_error *err)
{
    if (!binding)
        return ort_error_null(err, __func__);
    static const ort_run_options defaults = ORT_RUN_OPTIONS_INIT;
    ort_run_options own;
    if (!options) {
        options = &defaults;
    } else if (options->size != sizeof own) {
        own = defaults;
        options = ORT_OPTIONS_KNOWN(options, &own, err);
        if (!options)
            return ORT_ERROR_USAGE;
    }
    ORT_TRY(choose_outputs(binding, options, err));
    bool stateful = binding->states.count > 0;
    ort_execution x = {.session = binding->session,
                       .context = binding->context,
                       .inputs = stateful ? binding->taken : binding->inputs,
                       .outputs = binding->outputs,
                       .wanted = binding->partial ? binding->wanted : NULL,
                       .reuse = binding->reuse,
                       .devices = binding->devices,
                       .states = stateful ? &binding->states : NULL,
                       .options = options};
    if (stateful)
        ORT_TRY(begin_states(binding, err));
    ORT_TRY(ort_exec_run(&x, err));
    if (stateful)
        ort_states_end(&binding->states, binding->outputs);
    return ORT_OK;
}

ort_value *ort_binding_output(const ort_binding *binding, size_t index)
{
    if (!binding)
        return NULL;
    if (index >= (size_t)binding->session->output_count ||
        (binding->partial && !binding->wanted[index]))
        return NULL;
    ort_state *state = ort_states_of_output(&binding->states, (int)index);
    return state ? ort_state_show(state) : binding->outputs[index];
}
