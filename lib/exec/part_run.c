/* part_run.c - runs a part on its device: what it needs is copied there, its steps run, what others
 * need is copied back.
 */
#include <stdlib.h>

#include "base/error.h"
#include "exec/frame.h"
#include "op/eval.h"

static ort_status run_queue(const ort_provider *row, void *frame, const ort_plan_part *part,
                            ort_call *call, ort_error *err)
{
    for (int i = 0; i < call->in_count; i++)
        ORT_TRY(row->copy_in(frame, part->in[i].index, call->in[i]->tensor.data, err));
    ORT_TRY(row->run(frame, part->index, err));
    for (int i = 0; i < call->out_count; i++)
        ORT_TRY(row->copy_out(frame, part->out[i].index, call->out[i]->tensor.data, err));
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
    ort_status status = run_queue(row, frame, part, call, err);
    ort_error unheard;
    ort_status synced = row->sync(frame, status == ORT_OK ? err : &unheard);
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
