/* twin.c - values of a frame on devices: found, made, filled. */
#include "exec/twin.h"

#include "base/error.h"
#include "exec/away.h"
#include "profile/profile.h"

void ort_frame_note_copy(const ort_frame *frame, const ort_value *value, bool in)
{
    const ort_run_options *options = frame->context->options;
    if (options && options->profile)
        ort_profile_add_copy(options->profile, ort_value_device(value)->row->name, in,
                             ort_tensor_bytes(&value->tensor));
}

static bool fits(const ort_value *twin, const ort_device *device, const ort_tensor *type)
{
    return twin && ort_value_device(twin) == device && twin->tensor.dtype == type->dtype &&
           ort_shape_equal(&twin->tensor.shape, &type->shape);
}

static ort_status find_twin(ort_frame *frame, ort_id id, ort_twin **twin, ort_error *err)
{
    const ort_twin one = {.id = id};
    for (size_t i = 0; i < frame->twins.count; i++)
        if (frame->twins.data[i].id == id) {
            *twin = &frame->twins.data[i];
            return ORT_OK;
        }
    if (!ort_vec_push(&frame->twins, one))
        return ort_error_memory(err, sizeof one);
    *twin = &frame->twins.data[frame->twins.count - 1];
    return ORT_OK;
}

static ort_status make_twin(ort_frame *frame, ort_id id, ort_device *device, ort_twin **twin,
                            ort_error *err)
{
    const ort_tensor *type = &frame->slots[id].view.tensor;
    ORT_TRY(find_twin(frame, id, twin, err));
    if (fits((*twin)->value, device, type))
        return ORT_OK;
    ort_value_free((*twin)->value);
    (*twin)->value = NULL;
    (*twin)->valid = false;
    return ort_device_value_new(device, type->dtype, &type->shape, &(*twin)->value, err);
}

/* Of a value that a frame further out has: there it outlives this frame's runs. */
ort_status ort_frame_copied_twin(ort_frame *frame, ort_id id, ort_device *device,
                                 ort_value **value, ort_error *err)
{
    const ort_program *program = frame->plan->program;
    const ort_slot_plan *slot = &frame->plan->slots[id];
    ort_twin *twin;
    int capture = slot->port - program->input_count;
    if (frame->outer && slot->place == ORT_PLACE_GIVEN && capture >= 0 &&
        program->captures[capture].inner == id)
        return ort_frame_copied_twin(frame->outer, program->captures[capture].outer, device, value,
                                     err);
    ORT_TRY(make_twin(frame, id, device, &twin, err));
    *value = twin->value;
    if (twin->valid)
        return ORT_OK;
    ORT_TRY(ort_device_value_write(twin->value, frame->slots[id].view.tensor.data, err));
    ort_frame_note_copy(frame, twin->value, true);
    twin->valid = true;
    return ORT_OK;
}

ort_status ort_frame_lent_twin(ort_frame *frame, ort_id id, ort_device *device, ort_value **value,
                               ort_error *err)
{
    ort_twin *twin;
    ORT_TRY(make_twin(frame, id, device, &twin, err));
    twin->valid = true;
    *value = twin->value;
    return ORT_OK;
}

ort_value *ort_frame_known_twin(const ort_frame *frame, ort_id id)
{
    for (size_t i = 0; i < frame->twins.count; i++)
        if (frame->twins.data[i].id == id)
            return frame->twins.data[i].valid ? frame->twins.data[i].value : NULL;
    return NULL;
}
