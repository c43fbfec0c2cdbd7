/* binding.c - one caller's inputs, outputs and working memory, kept between runs. */
#include "exec/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"

struct ort_binding {
    const ort_session *session;
    ort_context *context;
    ort_value **inputs;  /* references */
    ort_value **outputs; /* references: the caller's, or made by a run */
    bool *reuse;         /* the binding's own output: replaced when its shape changes */
};

ort_status ort_binding_new(const ort_session *session, ort_binding **binding, ort_error *err)
{
    ort_binding *b = calloc(1, sizeof *b);
    ort_status status = ORT_OK;
    *binding = NULL;
    if (!b)
        return ort_error_memory(err, sizeof *b);
    b->session = session;
    b->inputs = calloc((size_t)session->input_count + 1, sizeof *b->inputs);
    b->outputs = calloc((size_t)session->output_count + 1, sizeof *b->outputs);
    b->reuse = malloc((size_t)session->output_count + 1);
    if (!b->inputs || !b->outputs || !b->reuse)
        status = ort_error_memory(err, sizeof *b->inputs);
    if (!status)
        status = ort_context_new(session->env, &b->context, err);
    if (status) {
        ort_binding_free(b);
        return status;
    }
    memset(b->reuse, true, (size_t)session->output_count + 1);
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
    ort_context_free(binding->context);
    free(binding->inputs);
    free(binding->outputs);
    free(binding->reuse);
    free(binding);
}

static ort_status find_port(const ort_port *ports, int count, const char *what, const char *name,
                            int *index, ort_error *err)
{
    ort_strbuf names = {0};
    ort_status status;
    for (*index = 0; *index < count; ++*index)
        if (!strcmp(ports[*index].name, name))
            return ORT_OK;
    for (int i = 0; i < count; i++)
        ort_strbuf_addf(&names, "%s%s", i ? ", " : "", ports[i].name);
    status = ort_error_set(err, ORT_ERROR_USAGE, "the model has no %s '%s'; it has: %s", what, name,
                           ort_strbuf_text(&names));
    ort_strbuf_release(&names);
    return status;
}

ort_status ort_binding_set_input(ort_binding *binding, const char *name, ort_value *value,
                                 ort_error *err)
{
    int index = 0;
    ORT_TRY(find_port(binding->session->inputs, binding->session->input_count, "input", name,
                      &index, err));
    ort_value_retain(value);
    ort_value_free(binding->inputs[index]);
    binding->inputs[index] = value;
    return ORT_OK;
}

ort_status ort_binding_set_output(ort_binding *binding, const char *name, ort_value *value,
                                  ort_error *err)
{
    int index = 0;
    ORT_TRY(find_port(binding->session->outputs, binding->session->output_count, "output", name,
                      &index, err));
    ort_value_retain(value);
    ort_value_free(binding->outputs[index]);
    binding->outputs[index] = value;
    binding->reuse[index] = !value;
    return ORT_OK;
}

ort_status ort_binding_run(ort_binding *binding, const ort_run_options *options, ort_error *err)
{
    ort_execution x = {.session = binding->session,
                       .context = binding->context,
                       .inputs = binding->inputs,
                       .outputs = binding->outputs,
                       .reuse = binding->reuse,
                       .options = options};
    return ort_exec_run(&x, err);
}

ort_value *ort_binding_output(const ort_binding *binding, size_t index)
{
    return index < (size_t)binding->session->output_count ? binding->outputs[index] : NULL;
}
