/* slices.c - tensors that bodies go over slice by slice, on the device where their parts do: one
 * copy, or none, in the place of one for each run of the body.
 */
#include "exec/slices.h"

#include "base/error.h"
#include "exec/away.h"
#include "exec/twin.h"

static size_t slice_bytes(const ort_tensor *whole)
{
    int64_t count = whole->shape.dim[0];
    return count ? ort_tensor_bytes(whole) / (size_t)count : 0;
}

/* Can each slice be a part of memory of the device? */
static bool can_be_parts(const ort_device *device, size_t bytes)
{
    size_t step = device->row->memory_alignment(device->device);
    return bytes && (!step || bytes % step == 0);
}

/* The device of the list that a set of readers is; NULL. */
static ort_device *only_device(const ort_partition *p, uint32_t readers)
{
    for (int d = 0; p && d < p->count - 1; d++)
        if (readers == 1u << d)
            return p->list[d].memory;
    return NULL;
}

static const ort_program *body_of(const ort_call *call, int body)
{
    const ort_exec_call *c = call->executor;
    return c->ps->step->bodies[body];
}

static ort_status input(ort_call *call, int body, int formal, int input, ort_value **whole,
                        ort_error *err)
{
    ort_exec_call *c = call->executor;
    const ort_program *program = body_of(call, body);
    const ort_tensor *tensor = &call->in[input]->tensor;
    ort_device *device = only_device(program->partition,
                                     ort_program_readers(program, program->inputs[formal]));
    ort_value *twin;
    *whole = NULL;
    if (!device || call->in[input]->kind != ORT_KIND_TENSOR || tensor->stride ||
        !can_be_parts(device, slice_bytes(tensor)))
        return ORT_OK;
    ORT_TRY(ort_frame_copied_twin(c->frame, c->ps->step->in[input], device, &twin, err));
    *whole = ort_value_retain(twin);
    return ORT_OK;
}

static ort_device *maker_of(const ort_program *program, ort_id id)
{
    for (int i = 0; program->partition && i < program->step_count; i++)
        for (int k = 0; k < program->steps[i].out_count; k++)
            if (program->steps[i].out[k] == id && program->steps[i].device >= 0)
                return program->partition->list[program->steps[i].device].memory;
    return NULL;
}

static ort_status room(ort_call *call, int body, int output, const ort_tensor *slice,
                       int64_t count, ort_value **whole, ort_error *err)
{
    const ort_program *program = body_of(call, body);
    ort_device *device = maker_of(program, program->outputs[output]);
    ort_shape shape = {.rank = slice->shape.rank + 1, .dim = {count}};
    *whole = NULL;
    if (!device || !count || shape.rank > ORT_MAX_RANK ||
        !can_be_parts(device, ort_tensor_bytes(slice)))
        return ORT_OK;
    for (int d = 0; d < slice->shape.rank; d++)
        shape.dim[d + 1] = slice->shape.dim[d];
    return ort_device_value_new(device, slice->dtype, &shape, whole, err);
}

static ort_status part(ort_value *whole, int64_t index, ort_value **slice, ort_error *err)
{
    const ort_tensor *t = &whole->tensor;
    return ort_value_new_part(whole, (size_t)index * slice_bytes(t), t->dtype, t->shape.rank - 1,
                              t->shape.dim + 1, slice, err);
}

static ort_status fill(ort_call *call, ort_value *slice, const ort_value *from, ort_error *err)
{
    const ort_exec_call *c = call->executor;
    ORT_TRY(ort_value_copy(slice, from, err));
    ort_frame_note_copy(c->frame, slice, true);
    return ORT_OK;
}

const ort_slice_services ort_exec_slices = {
    .input = input,
    .room = room,
    .part = part,
    .fill = fill,
};
