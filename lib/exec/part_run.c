/* part_run.c - runs a part on its device: what it needs is copied there, its steps run, what others
 * need is copied back.
 */
#include <stdlib.h>

#include "base/error.h"
#include "exec/frame.h"
#include "op/eval.h"
#include "profile/profile.h"

typedef struct watching { /* a part of which a profile wants the times */
    ort_profile *profile; /* NULL: nobody does */
    const ort_provider *row;
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

static ort_status run_queue(watching *w, void *frame, const ort_plan_part *part, ort_call *call,
                            ort_error *err)
{
    const ort_provider *row = w->row;
    if (row->watch)
        ORT_TRY(row->watch(frame, w->profile != NULL, err));
    w->begin_ns = w->profile ? ort_clock_ns() : 0;
    for (int i = 0; i < call->in_count; i++) {
        ORT_TRY(row->copy_in(frame, part->in[i].index, call->in[i]->tensor.data, err));
        note_call(w, "copy in");
    }
    ORT_TRY(row->run(frame, part->index, err));
    note_call(w, "kernel");
    for (int i = 0; i < call->out_count; i++) {
        ORT_TRY(row->copy_out(frame, part->out[i].index, call->out[i]->tensor.data, err));
        note_call(w, "copy out");
    }
    return ORT_OK;
}

/* The host's memory is the host's again when this returns, also after a failure. */
static ort_status run_part(ort_call *call, ort_error *err)
{
    ort_exec_call *c = call->executor;
    const ort_plan_part *part = call->plan_state;
    const ort_provider *row = c->frame->plan->program->partition->list[part->device].row;
    void *frame = c->frame->devices[part->device];
    ort_error own = ORT_ERROR_INIT;
    err = err ? err : &own;
    err->message[0] = '\0';
    const ort_run_options *options = c->frame->context->options;
    watching w = {.profile = options ? options->profile : NULL, .row = row};
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
