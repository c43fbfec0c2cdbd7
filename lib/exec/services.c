/* services.c - what a running operator may ask of its session: memory, outputs, and running a
 * body (body_run.c).
 */
#include <assert.h>

#include "base/error.h"
#include "exec/away.h"
#include "exec/body_run.h"
#include "exec/slices.h"
#include "exec/twin.h"

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

/* A result on a device that only parts of it read. */
static bool stays_away(const ort_exec_call *c, int index, const ort_value *value)
{
    const ort_plan *plan = c->frame->plan;
    ort_id id = c->ps->step->out[index];
    int device = plan->program->partition
                     ? ort_device_index(plan->program->partition, ort_value_device(value))
                     : -1;
    return device >= 0 && !planned(c, index) && plan->readers[id] &&
           !(plan->readers[id] & ~(1u << device));
}

static void service_set_output(ort_call *call, int index, ort_value *value)
{
    ort_exec_call *c = call->executor;
    ort_value *owned = NULL, *host = NULL;
    ort_status status = ORT_OK;
    if (index >= call->out_count || !call->out[index] || unwanted(c, index)) {
        ort_value_free(value);
        return;
    }
    if (ort_value_is_away(value) && !stays_away(c, index, value)) {
        status = ort_value_to_host(value, &host, NULL);
        ort_frame_note_copy(c->frame, value, false);
        ort_value_free(value);
        value = host;
    }
    if (status != ORT_OK) {
        c->failure = status;
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

static ort_status service_body(ort_call *call, int index, ort_value *const *inputs, int input_count,
                               ort_value **outputs, int output_count, ort_handed handed,
                               ort_error *err)
{
    ort_exec_call *c = call->executor;
    assert(index >= 0 && index < c->ps->step->body_count);
    ort_program *body = c->ps->step->bodies[index];
    if (input_count != body->input_count || output_count != body->output_count)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "its body has %d inputs and %d outputs, the operator needs %d and %d",
                             body->input_count, body->output_count, input_count, output_count);
    return ort_body_run(c, body, inputs, outputs, handed, err);
}

const ort_call_services ort_exec_services = {
    .alloc = service_alloc,
    .output = service_output,
    .body = service_body,
    .set_output = service_set_output,
    .slices = &ort_exec_slices,
};
