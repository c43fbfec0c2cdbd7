/* loan.c - a run whose inputs or results lie on devices (away.h). */
#include <stdlib.h>

#include "base/error.h"
#include "exec/away.h"
#include "profile/profile.h"

bool ort_loan_takes(const ort_execution *x, int o)
{
    return ort_value_is_away(x->outputs[o]) || (x->devices && x->devices[o]);
}

bool ort_loan_needed(const ort_execution *x)
{
    ort_value *const *inputs = x->origins ? x->origins : x->inputs;
    for (int i = 0; i < x->session->input_count; i++)
        if (ort_value_is_away(inputs[i]))
            return true;
    for (int o = 0; o < x->session->output_count; o++)
        if ((!x->wanted || x->wanted[o]) && ort_loan_takes(x, o))
            return true;
    return false;
}

ort_status ort_loan_stand_in(const ort_execution *x, int input, ort_value **stand_in,
                             ort_error *err)
{
    const ort_value *value = x->inputs[input];
    ORT_TRY(ort_device_check(x->session, ort_value_device(value), "input",
                             x->session->inputs[input].name, err));
    return ort_value_new_view(&value->tensor, stand_in, err);
}

static void note_copy(const ort_execution *x, const ort_value *value, bool in)
{
    if (x->options && x->options->profile)
        ort_profile_add_copy(x->options->profile, ort_value_device(value)->row->name, in,
                             ort_tensor_bytes(&value->tensor));
}

/* The host's copy, for those that aren't parts of the value's device. */
static ort_status fetch(const ort_execution *x, const ort_value *value, ort_value *stand_in,
                        ort_error *err)
{
    ort_value *copy;
    ORT_TRY(ort_value_to_host(value, &copy, err));
    free(stand_in->storage);
    stand_in->storage = copy->storage;
    stand_in->tensor.data = copy->tensor.data;
    copy->storage = NULL;
    ort_value_free(copy);
    note_copy(x, value, false);
    return ORT_OK;
}

static ort_status lend_inputs(const ort_execution *x, ort_value *const *given, ort_frame *frame,
                              ort_error *err)
{
    const ort_session *s = x->session;
    const ort_plan *plan = frame->plan;
    for (int i = 0; i < plan->given_count && x->origins; i++) {
        const ort_value *value = x->origins[s->assumes_defaults ? s->program_inputs[i] : i];
        if (!ort_value_is_away(value))
            continue;
        int device = ort_device_index(&s->partition, ort_value_device(value));
        uint32_t readers = plan->given_readers ? plan->given_readers[i] : ORT_PLAN_HOST;
        frame->loan->in[i] = value;
        if (readers & ~(1u << device))
            ORT_TRY(fetch(x, value, given[i], err));
    }
    return ORT_OK;
}

ort_status ort_loan_begin(const ort_execution *x, ort_value *const *given, ort_frame *frame,
                          ort_error *err)
{
    size_t ins = (size_t)frame->plan->given_count, outs = (size_t)x->session->output_count;
    ort_loan *loan = calloc(1, sizeof *loan + (ins + outs) * sizeof(ort_value *));
    if (!loan)
        return ort_error_memory(err, sizeof *loan);
    loan->in = (const ort_value **)(loan + 1);
    loan->out = (ort_value **)(loan->in + ins);
    frame->loan = loan;
    return lend_inputs(x, given, frame, err);
}

/* Bindings of devices are changed by the next run at the latest. */
void ort_loan_end(ort_frame *frame, ort_status status)
{
    frame->lent = frame->loan || (status != ORT_OK && frame->lent);
    free(frame->loan);
    frame->loan = NULL;
}

/* ---- results */

static bool meets_others(const ort_execution *x, const ort_frame *frame, int o)
{
    const ort_value *value = x->outputs[o];
    for (int i = 0; i < frame->plan->given_count; i++)
        if (frame->loan->in[i] && ort_device_values_meet(value, frame->loan->in[i]))
            return true;
    for (int k = 0; k < x->session->output_count; k++)
        if (frame->loan->out[k] && ort_device_values_meet(value, frame->loan->out[k]))
            return true;
    return false;
}

static ort_status new_output(const ort_execution *x, int o, const ort_tensor *type, ort_error *err)
{
    if (x->outputs[o])
        return ORT_OK;
    ORT_TRY(ort_device_value_new(x->devices[o], type->dtype, &type->shape, &x->outputs[o], err));
    x->context->results[o].own = true;
    return ORT_OK;
}

ort_status ort_loan_bind_output(const ort_execution *x, ort_frame *frame, int o, ort_error *err)
{
    const ort_tensor *type = &frame->slots[frame->plan->program->outputs[o]].view.tensor;
    ort_result *result = &x->context->results[o];
    ORT_TRY(new_output(x, o, type, err));
    int device = ort_device_index(&x->session->partition, ort_value_device(x->outputs[o]));
    if (frame->plan->makers && frame->plan->makers[o] == device && !meets_others(x, frame, o)) {
        frame->loan->out[o] = x->outputs[o];
        ort_frame_bind_output(frame, o, NULL);
        return ORT_OK;
    }
    ORT_TRY(ort_value_new_unset_(type->dtype, &type->shape, &result->temporary, err));
    ort_frame_bind_output(frame, o, result->temporary->tensor.data);
    return ORT_OK;
}

ort_status ort_loan_finish_output(const ort_execution *x, ort_frame *frame, int o, ort_error *err)
{
    const ort_value *from = x->context->results[o].temporary;
    ort_value *copy = NULL;
    if (frame->loan->out[o])
        return ORT_OK;
    if (!from)
        from = &frame->slots[frame->plan->program->outputs[o]].view;
    if (from->kind != ORT_KIND_TENSOR)
        return ort_error_set(err, ORT_ERROR_DATA, "output '%s' isn't a tensor: it can't lie on a "
                             "device", x->session->outputs[o].name);
    ORT_TRY(new_output(x, o, &from->tensor, err));
    if (from->tensor.stride)
        ORT_TRY(ort_value_clone(from, &copy, err));
    ort_status status = ort_device_value_write(
        x->outputs[o], copy ? copy->tensor.data : from->tensor.data, err);
    ort_value_free(copy);
    note_copy(x, x->outputs[o], true);
    return status;
}
