/* part_run.c - runs a part on its device: what it needs is copied there, its steps run, what others
 * need is copied back.
 */
#include <stdlib.h>

#include "base/error.h"
#include "exec/away.h"
#include "exec/twin.h"
#include "op/eval.h"
#include "profile/profile.h"

typedef struct watching { /* a part of which a profile wants the times */
    ort_profile *profile; /* NULL: nobody does */
    const ort_provider *row;
    ort_device *memory; /* on which values lie that it takes as they are; or NULL */
    ort_frame *frame;
    uint64_t begin_ns;
} watching;

static void note_time(void *arg, const ort_device_time *t)
{
    const watching *w = arg;
    const ort_device_event event = {.provider = w->row->name, .kind = t->kind, .name = t->name,
                                    .queued_ns = t->queued_ns, .begin_ns = t->begin_ns,
                                    .end_ns = t->end_ns};
    ort_profile_add_device(w->profile, &event);
}

/* Of a provider that keeps no times: what the call took, which waits or not as it likes. */
static void note_call(watching *w, const char *kind)
{
    uint64_t now;
    if (!w->profile || w->row->times)
        return;
    now = ort_clock_ns();
    const ort_device_time time = {kind, "", w->begin_ns, w->begin_ns, now};
    note_time(w, &time);
    w->begin_ns = ort_clock_ns();
}

/* ---- what lies on the device already */

/* A value of the host lies on no device, as those of a provider that has no memory for values. */
static bool is_here(const watching *w, const ort_value *value)
{
    return w->memory && value && ort_value_device(value) == w->memory;
}

/* What lies behind an input of the part on the part's device: the caller's value, or one that a
 * body left there; NULL. */
static const ort_value *lent_input(const watching *w, ort_id id)
{
    const ort_slot_plan *slot = &w->frame->plan->slots[id];
    const ort_loan *loan = w->frame->loan;
    const ort_value *value = loan && slot->place == ORT_PLACE_GIVEN ? loan->in[slot->port]
                                                                    : w->frame->slots[id].held;
    return is_here(w, value) ? value : NULL;
}

static const ort_value *lent_output(const watching *w, ort_id id)
{
    const ort_program *program = w->frame->plan->program;
    const ort_loan *loan = w->frame->loan;
    for (int o = 0; loan && o < program->output_count; o++)
        if (program->outputs[o] == id && is_here(w, loan->out[o]))
            return loan->out[o];
    return w->frame->plan->lent[id] >= 0 ? ort_frame_known_twin(w->frame, id) : NULL;
}

static bool changes(const watching *w)
{
    return w->memory && (w->frame->loan || w->frame->lent || w->frame->plan->has_bodies);
}

static ort_status place_output(const watching *w, void *frame, const ort_device_copy *copy,
                               const ort_value *to, ort_error *err)
{
    ort_value *twin;
    if (changes(w) && w->frame->plan->lent[copy->id] >= 0)
        ORT_TRY(ort_frame_lent_twin(w->frame, copy->id, w->memory, &twin, err));
    const ort_value *value = lent_output(w, copy->id);
    if (changes(w))
        ORT_TRY(w->row->use_out(frame, copy->index, value ? ort_device_value_memory(value) : NULL,
                                err));
    return value || !w->row->place_out
               ? ORT_OK
               : w->row->place_out(frame, copy->index, to->tensor.data, err);
}

/* ---- the queue */

static void note_bytes(const watching *w, bool in, const ort_value *value)
{
    if (w->profile)
        ort_profile_add_copy(w->profile, w->row->name, in, ort_tensor_bytes(&value->tensor));
}

static ort_status bring(watching *w, void *frame, const ort_device_copy *copy, ort_value *from,
                        ort_error *err)
{
    const ort_value *value = lent_input(w, copy->id);
    if (changes(w))
        ORT_TRY(w->row->use_in(frame, copy->index, value ? ort_device_value_memory(value) : NULL,
                               err));
    if (value)
        return ORT_OK;
    ORT_TRY(w->row->copy_in(frame, copy->index, from->tensor.data, err));
    note_bytes(w, true, from);
    note_call(w, "copy in");
    return ORT_OK;
}

static ort_status fetch(watching *w, void *frame, const ort_device_copy *copy, ort_value *to,
                        ort_error *err)
{
    if (lent_output(w, copy->id))
        return ORT_OK;
    ORT_TRY(w->row->copy_out(frame, copy->index, to->tensor.data, err));
    note_bytes(w, false, to);
    note_call(w, "copy out");
    return ORT_OK;
}

static ort_status run_queue(watching *w, void *frame, const ort_plan_part *part, ort_call *call,
                            ort_error *err)
{
    const ort_provider *row = w->row;
    if (row->watch)
        ORT_TRY(row->watch(frame, w->profile != NULL, err));
    w->begin_ns = w->profile ? ort_clock_ns() : 0;
    for (int i = 0; i < call->in_count; i++)
        ORT_TRY(bring(w, frame, &part->in[i], call->in[i], err));
    for (int i = 0; i < call->out_count; i++)
        ORT_TRY(place_output(w, frame, &part->out[i], call->out[i], err));
    ORT_TRY(row->run(frame, part->index, err));
    note_call(w, "kernel");
    for (int i = 0; i < call->out_count; i++)
        ORT_TRY(fetch(w, frame, &part->out[i], call->out[i], err));
    return ORT_OK;
}

/* The host's memory is the host's again when this returns, also after a failure. */
static ort_status run_part(ort_call *call, ort_error *err)
{
    ort_exec_call *c = call->executor;
    const ort_plan_part *part = call->plan_state;
    const ort_open_provider *provider = &c->frame->plan->program->partition->list[part->device];
    const ort_provider *row = provider->row;
    void *frame = c->frame->devices[part->device];
    ort_error own = ORT_ERROR_INIT;
    err = err ? err : &own;
    err->message[0] = '\0';
    const ort_run_options *options = c->frame->context->options;
    watching w = {.profile = options ? options->profile : NULL, .row = row,
                  .memory = provider->memory, .frame = c->frame};
    ort_status status = run_queue(&w, frame, part, call, err);
    ort_error unheard;
    ort_status synced = row->sync(frame, status == ORT_OK ? err : &unheard);
    if (status == ORT_OK && synced == ORT_OK && w.profile && row->times)
        status = row->times(frame, note_time, &w, err);
    return ort_device_status(status != ORT_OK ? status : synced, row, err);
}

ort_status ort_device_status(ort_status status, const ort_provider *row, ort_error *err)
{
    if (status == ORT_OK)
        return ORT_OK;
    if (!err->message[0])
        return ort_error_set(err, ORT_ERROR_DEVICE, "provider '%s' failed and doesn't say why",
                             row->name);
    err->count = err->count ? err->count : 1;
    if (status == ORT_ERROR_DATA) /* wrong for everybody */
        return err->status = status;
    return err->status = ORT_ERROR_DEVICE;
}

static const ort_op_impl part_impl = {.run = run_part};

const ort_op ort_part_op = {ORT_INTERNAL, "Part", 1, "", "", "", 0, &part_impl};

ort_status ort_run_unprepared(ort_call *call, ort_error *err)
{
    ort_status status = ORT_ERROR_MEMORY;
    ort_fact *facts = calloc((size_t)call->in_count + 1, sizeof *facts);
    const ort_fact **in = calloc((size_t)call->in_count + 1, sizeof *in);
    ort_value **out = calloc((size_t)call->out_count + 1, sizeof *out);
    if (!facts || !in || !out) {
        ort_error_memory(err, sizeof *facts);
        goto done;
    }
    for (int i = 0; i < call->in_count; i++) {
        if (!call->in[i])
            continue;
        facts[i] = ort_fact_of_value(call->in[i]);
        in[i] = &facts[i];
    }
    status = ort_node_eval(call->node, in, call->k, call->pool, call->in, call->in_count, out,
                           call->out_count, err);
    for (int i = 0; status == ORT_OK && i < call->out_count; i++) {
        if (out[i])
            ort_call_set_output(call, i, out[i]);
        out[i] = NULL;
    }
    for (int i = 0; out && i < call->out_count; i++)
        ort_value_free(out[i]);
done:
    free(facts);
    free(in);
    free(out);
    return status;
}
