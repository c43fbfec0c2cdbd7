/* services.c - what a running operator may ask of its session: memory, outputs, and running a body.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "exec/frame.h"

static void *service_alloc(ort_call *call, size_t bytes)
{
    ort_exec_call *c = call->executor;
    return ort_arena_alloc(&c->frame->context->buffers.strings, bytes);
}

/* True when the slot's place is fixed by the plan: then an operator can't move it. */
static bool planned(const ort_exec_call *c, int index)
{
    assert(index >= 0 && index < c->call.out_count);
    ort_id id = c->ps->step->out[index];
    return c->frame->plan->slots[id].place != ORT_PLACE_DYNAMIC;
}

/* True when nobody waits for the value: not needed, or known since planning. */
static bool unwanted(const ort_exec_call *c, int index)
{
    ort_place place = c->frame->plan->slots[c->ps->step->out[index]].place;
    return place == ORT_PLACE_NONE || place == ORT_PLACE_CONSTANT;
}

static bool same_type(const ort_tensor *a, ort_dtype dtype, const ort_shape *shape)
{
    return a->dtype == dtype && ort_shape_equal(&a->shape, shape);
}

static ort_status service_output(ort_call *call, int index, ort_dtype dtype, const ort_shape *shape,
                                 ort_error *err)
{
    ort_exec_call *c = call->executor;
    ort_tensor tensor = {.dtype = dtype, .shape = *shape};
    ort_block *block;
    ort_slot *slot;
    if (index >= call->out_count || !call->out[index])
        return ORT_OK;
    slot = ort_slot_of(call->out[index]);
    if (planned(c, index))
        return same_type(&slot->view.tensor, dtype, shape)
                   ? ORT_OK
                   : ort_error_set(err, ORT_ERROR_RUN,
                                   "output %d has another shape than inference promised", index);
    ORT_TRY(ort_shape_check(shape, dtype, err));
    ORT_TRY(ort_buffers_get(&c->frame->context->buffers, ort_tensor_bytes(&tensor), &block, err));
    ort_slot_drop(slot);
    slot->block = block;
    tensor.data = ort_block_data(block);
    slot->view.kind = ORT_KIND_TENSOR;
    slot->view.tensor = tensor;
    slot->set = true;
    return ORT_OK;
}

static void service_set_output(ort_call *call, int index, ort_value *value)
{
    ort_exec_call *c = call->executor;
    ort_value *owned = NULL;
    ort_status status;
    if (index >= call->out_count || !call->out[index] || unwanted(c, index)) {
        ort_value_free(value);
        return;
    }
    if (planned(c, index)) {
        ort_tensor *place = &call->out[index]->tensor;
        if (value->kind == ORT_KIND_TENSOR &&
            same_type(place, value->tensor.dtype, &value->tensor.shape))
            ort_tensor_copy_data(place, &value->tensor);
        else
            c->failure = ORT_ERROR_RUN;
        ort_value_free(value);
        return;
    }
    status = ort_frame_own(c->frame->context, value, &owned, NULL);
    ort_value_free(value);
    if (status != ORT_OK)
        c->failure = status;
    else
        ort_slot_hold(ort_slot_of(call->out[index]), owned);
}

/* ---- bodies */

static ort_status bind_results(ort_frame *frame, ort_value **outputs, ort_error *err)
{
    const ort_program *program = frame->plan->program;
    for (int o = 0; o < program->output_count; o++) {
        const ort_slot_plan *sp = &frame->plan->slots[program->outputs[o]];
        if (!frame->plan->direct[o])
            continue;
        ORT_TRY(ort_buffers_new_value(&frame->context->buffers, sp->tensor.dtype,
                                      &sp->tensor.shape, &outputs[o], err));
        ort_frame_bind_output(frame, o, outputs[o]->tensor.data);
    }
    return ORT_OK;
}

/* What the session watches of the body's inputs: no step of it computes them. */
static void show_inputs(const ort_frame *frame)
{
    const ort_program *body = frame->plan->program;
    const ort_run_options *options = frame->context->options;
    for (int i = 0; options && options->on_value && i < body->input_count; i++) {
        ort_id id = body->inputs[i];
        if (ort_program_shows(body, id))
            options->on_value(options->callback_arg, body->graph->values.data[id]->name,
                              &frame->slots[id].view);
    }
}

static ort_status run_body(ort_exec_call *c, ort_program *body, ort_value *const *given,
                           ort_value **outputs, ort_error *err)
{
    ort_context *context = c->frame->context;
    ort_frame *frame;
    ort_status status;
    ORT_TRY(ort_frame_get(context, &c->frame->children, body, given, NULL, &frame, err));
    ort_frame_bind_given(frame, given);
    show_inputs(frame);
    ORT_TRY(bind_results(frame, outputs, err));
    ORT_TRY(ort_frame_run(frame, err));
    for (int o = 0; o < body->output_count; o++) {
        if (outputs[o])
            continue;
        status = ort_frame_own(context, &frame->slots[body->outputs[o]].view, &outputs[o], err);
        if (status != ORT_OK) {
            ort_frame_clear(frame);
            return status;
        }
    }
    ort_frame_clear(frame);
    return ORT_OK;
}

static ort_status service_body(ort_call *call, int index, ort_value *const *inputs, int input_count,
                               ort_value **outputs, int output_count, ort_error *err)
{
    ort_exec_call *c = call->executor;
    assert(index >= 0 && index < c->ps->step->body_count);
    ort_program *body = c->ps->step->bodies[index];
    ort_value *small[32], **given = small;
    int count = body->input_count + body->capture_count;
    ort_status status;

    if (input_count != body->input_count || output_count != body->output_count)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "its body has %d inputs and %d outputs, the operator needs %d and %d",
                             body->input_count, body->output_count, input_count, output_count);
    if (count > 32)
        given = malloc(sizeof *given * (size_t)count);
    if (!given)
        return ort_error_memory(err, sizeof *given * (size_t)count);
    for (int i = 0; i < input_count; i++)
        given[i] = inputs[i];
    assert(body->parent == c->frame->plan->program); /* captures are values of this frame */
    for (int i = 0; i < body->capture_count; i++)
        given[input_count + i] = &c->frame->slots[body->captures[i].outer].view;
    for (int i = 0; i < output_count; i++)
        outputs[i] = NULL;
    status = run_body(c, body, given, outputs, err);
    for (int i = 0; status != ORT_OK && i < output_count; i++) {
        ort_value_free(outputs[i]);
        outputs[i] = NULL;
    }
    if (given != small)
        free(given);
    return status;
}

const ort_call_services ort_exec_services = {
    .alloc = service_alloc,
    .output = service_output,
    .body = service_body,
    .set_output = service_set_output,
};
