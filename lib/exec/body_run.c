/* body_run.c - running a body: what it is given, its frame, what it gives.
 *
 * Values stay on a device where only its parts read them. What a body gives to its own next run (or
 * its operator hands on) is written to memory of the device and read there again. What it captures
 * has a twin there (twin.h), made once a run however often the body runs. Whoever reads such
 * a value on the host finds it fetched when the body's frame is known.
 */
#include "exec/body_run.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "exec/away.h"
#include "exec/twin.h"

typedef struct body_run {
    ort_exec_call *call;
    ort_program *body;
    ort_value **real;  /* what it is given: the operator's values, then captured ones */
    ort_value **stand; /* by given value: seen in the place of one on a device; or NULL */
    ort_value **seen;  /* each of them as the body sees it */
    int count;
    ort_frame *frame;
    ort_loan *loan; /* NULL: the host runs all of the body */
} body_run;

/* ---- what the body is given */

/* A captured value as it lies: in the frame, or on a device alone. */
static ort_value *captured(ort_frame *frame, ort_id id)
{
    ort_slot *slot = &frame->slots[id];
    const ort_slot_plan *place = &frame->plan->slots[id];
    if (frame->plan->lent && frame->plan->lent[id] >= 0)
        return ort_frame_known_twin(frame, id);
    if (place->place == ORT_PLACE_GIVEN && frame->loan && frame->loan->in[place->port] &&
        !slot->view.tensor.data)
        return (ort_value *)(uintptr_t)frame->loan->in[place->port]; /* read alone */
    return &slot->view;
}

static ort_status stand_in(body_run *r, ort_error *err)
{
    for (int i = 0; i < r->count; i++) {
        r->seen[i] = r->real[i];
        if (!ort_value_is_away(r->real[i]))
            continue;
        ORT_TRY(ort_value_new_view(&r->real[i]->tensor, &r->stand[i], err));
        r->seen[i] = r->stand[i];
    }
    return ORT_OK;
}

/* The elements of one on a device, for those who read them on the host. */
static ort_status fetch(const body_run *r, int i, ort_error *err)
{
    ort_value *copy;
    ORT_TRY(ort_value_to_host(r->real[i], &copy, err));
    ort_frame_note_copy(r->call->frame, r->real[i], false);
    ort_value_free(r->stand[i]);
    r->stand[i] = r->seen[i] = copy;
    return ORT_OK;
}

static const ort_open_provider *provider_of(const body_run *r, uint32_t readers)
{
    const ort_partition *p = r->body->partition;
    for (int d = 0; p && d < p->count - 1; d++)
        if ((readers >> d & 1) && p->list[d].memory)
            return &p->list[d];
    return NULL;
}

static ort_status lend_one(body_run *r, int i, ort_error *err)
{
    const ort_plan *plan = r->frame->plan;
    const ort_value *real = r->real[i];
    uint32_t readers = plan->given_readers ? plan->given_readers[i] : ORT_PLAN_HOST;
    int captures = i - r->body->input_count;
    if (ort_value_is_away(real)) {
        uint32_t own = 0;
        if (r->loan) {
            own = 1u << ort_device_index(r->body->partition, ort_value_device(real));
            r->loan->in[i] = real;
        }
        return readers & ~own ? fetch(r, i, err) : ORT_OK;
    }
    const ort_open_provider *o = r->loan && captures >= 0 ? provider_of(r, readers) : NULL;
    if (!o || !real || real->kind != ORT_KIND_TENSOR || real->tensor.stride)
        return ORT_OK;
    ort_value *twin = NULL;
    ORT_TRY(ort_frame_copied_twin(r->call->frame, r->body->captures[captures].outer, o->memory,
                                  &twin, err));
    r->loan->in[i] = twin;
    return ORT_OK;
}

/* The frame's own, made once: at most one of its runs goes on at a time. */
static ort_status borrow(body_run *r, ort_error *err)
{
    ort_frame *f = r->frame;
    size_t ins = (size_t)r->count, outs = (size_t)r->body->output_count;
    f->outer = r->call->frame;
    if (!f->plan->given_readers)
        return ORT_OK;
    if (!f->own_loan) {
        ort_loan *loan = calloc(1, sizeof *loan + (ins + 3 * outs) * sizeof(ort_value *));
        if (!loan)
            return ort_error_memory(err, sizeof *loan);
        loan->in = (const ort_value **)(loan + 1);
        loan->out = (ort_value **)(loan->in + ins);
        f->own_loan = loan;
        f->made = loan->out + outs;
        f->made_count = (int)(2 * outs);
    }
    memset(f->own_loan->in, 0, (ins + outs) * sizeof(ort_value *));
    r->loan = f->loan = f->own_loan;
    return ORT_OK;
}

/* ---- what it gives */

/* One of two that take turns: what the last run gave is what this one reads. */
static ort_status make_output(const body_run *r, int o, ort_device *device, ort_value **value,
                              ort_error *err)
{
    const ort_slot_plan *slot = &r->frame->plan->slots[r->body->outputs[o]];
    ort_value **made = &r->frame->made[2 * o];
    int free_one = made[0] && made[0]->references > 1 ? 1 : 0;
    if (made[free_one] && made[free_one]->references > 1) { /* the operator keeps them */
        ort_value_free(made[free_one]);
        made[free_one] = NULL;
    }
    if (!made[free_one])
        ORT_TRY(ort_device_value_new(device, slot->tensor.dtype, &slot->tensor.shape,
                                     &made[free_one], err));
    *value = ort_value_retain(made[free_one]);
    return ORT_OK;
}

static bool is_handed(ort_handed handed, int o)
{
    return o >= handed.first && o < handed.first + handed.count;
}

/* Where the caller wants it, if that is of its type and the device makes it there; NULL. */
static ort_value *place_of(ort_handed handed, int o, const ort_slot_plan *slot,
                           const ort_device *device)
{
    ort_value *place = handed.places ? handed.places[o] : NULL;
    return place && device && ort_value_device(place) == device &&
                   place->tensor.dtype == slot->tensor.dtype &&
                   ort_shape_equal(&place->tensor.shape, &slot->tensor.shape)
               ? place
               : NULL;
}

static ort_status bind_results(const body_run *r, ort_handed handed, ort_value **outputs,
                               ort_error *err)
{
    const ort_plan *plan = r->frame->plan;
    for (int o = 0; o < r->body->output_count; o++) {
        const ort_slot_plan *slot = &plan->slots[r->body->outputs[o]];
        int maker = r->loan ? plan->makers[o] : -1;
        ort_device *device = maker >= 0 ? r->body->partition->list[maker].memory : NULL;
        ort_value *place = place_of(handed, o, slot, device);
        if (!plan->direct[o])
            continue;
        if (place || (device && is_handed(handed, o))) {
            if (place)
                outputs[o] = ort_value_retain(place);
            else
                ORT_TRY(make_output(r, o, device, &outputs[o], err));
            r->loan->out[o] = outputs[o];
            ort_frame_bind_output(r->frame, o, NULL);
            continue;
        }
        ORT_TRY(ort_buffers_new_value(&r->frame->context->buffers, slot->tensor.dtype,
                                      &slot->tensor.shape, &outputs[o], err));
        ort_frame_bind_output(r->frame, o, outputs[o]->tensor.data);
    }
    return ORT_OK;
}

/* A value that passes through unchanged stays where it is. */
static ort_status own_result(const body_run *r, int o, ort_value **output, ort_error *err)
{
    ORT_TRY(ort_frame_own(r->frame->context, &r->frame->slots[r->body->outputs[o]].view, output,
                          err));
    for (int i = 0; i < r->count; i++)
        if (r->stand[i] == *output) {
            ort_value_free(*output);
            *output = ort_value_retain(r->real[i]);
            break;
        }
    return ORT_OK;
}

static bool is_in_place(ort_handed handed, int o, const ort_value *output)
{
    return output && handed.places && handed.places[o] == output;
}

static ort_status finish_result(const body_run *r, int o, bool handed, ort_value **output,
                                ort_error *err)
{
    ort_value *host;
    if (!*output)
        ORT_TRY(own_result(r, o, output, err));
    if (handed || !ort_value_is_away(*output))
        return ORT_OK;
    ORT_TRY(ort_value_to_host(*output, &host, err));
    ort_frame_note_copy(r->frame, *output, false);
    ort_value_free(*output);
    *output = host;
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

/* ---- the run */

static ort_status run(body_run *r, ort_handed handed, ort_value **outputs, ort_error *err)
{
    ort_context *context = r->call->frame->context;
    ORT_TRY(stand_in(r, err));
    ORT_TRY(ort_frame_get(context, &r->call->frame->children, r->body, r->seen, NULL, &r->frame,
                          err));
    ORT_TRY(borrow(r, err));
    for (int i = 0; i < r->count; i++)
        ORT_TRY(lend_one(r, i, err));
    ort_frame_bind_given(r->frame, r->seen);
    show_inputs(r->frame);
    ORT_TRY(bind_results(r, handed, outputs, err));
    ORT_TRY(ort_frame_run(r->frame, err));
    ort_status status = ORT_OK;
    for (int o = 0; status == ORT_OK && o < r->body->output_count; o++)
        status = finish_result(r, o, is_handed(handed, o) || is_in_place(handed, o, outputs[o]),
                               &outputs[o], err);
    ort_frame_clear(r->frame);
    return status;
}

static void list_given(body_run *r, ort_value *const *inputs)
{
    ort_frame *frame = r->call->frame;
    assert(r->body->parent == frame->plan->program); /* captures are values of this frame */
    for (int i = 0; i < r->body->input_count; i++)
        r->real[i] = inputs[i];
    for (int i = 0; i < r->body->capture_count; i++)
        r->real[r->body->input_count + i] = captured(frame, r->body->captures[i].outer);
}

ort_status ort_body_run(ort_exec_call *call, ort_program *body, ort_value *const *inputs,
                        ort_value **outputs, ort_handed handed, ort_error *err)
{
    ort_value *few[3 * 16];
    body_run r = {.call = call, .body = body, .real = few,
                  .count = body->input_count + body->capture_count};
    if (r.count > 16)
        r.real = malloc(3 * sizeof *r.real * (size_t)r.count);
    if (!r.real)
        return ort_error_memory(err, 3 * sizeof *r.real * (size_t)r.count);
    r.stand = r.real + r.count;
    r.seen = r.stand + r.count;
    memset(r.stand, 0, sizeof *r.stand * (size_t)r.count);
    memset(outputs, 0, sizeof *outputs * (size_t)body->output_count);
    list_given(&r, inputs);
    ort_status status = run(&r, handed, outputs, err);
    if (r.frame) {
        r.frame->loan = NULL;
        r.frame->lent = r.frame->lent || r.loan;
    }
    for (int i = 0; i < r.count; i++)
        ort_value_free(r.stand[i]);
    for (int o = 0; status != ORT_OK && o < body->output_count; o++) {
        ort_value_free(outputs[o]);
        outputs[o] = NULL;
    }
    if (r.real != few)
        free(r.real);
    return status;
}
