/* run.c - the loop over the steps of a frame. */
#include "base/error.h"
#include "exec/frame.h"
#include "op/eval.h"
#include "profile/profile.h"

/* One draw of a counter-based generator: a run with the same seed gives the same numbers. */
static uint64_t next_seed(ort_context *context)
{
    uint64_t x = (context->options ? context->options->seed : 0) +
                 0x9e3779b97f4a7c15u * ++context->random;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

ort_status ort_context_check(const ort_context *context, ort_error *err)
{
    const ort_run_options *options = context->options;
    if (options && ort_cancel_is_set(options->cancel))
        return ort_error_set(err, ORT_ERROR_CANCELLED, "the run was cancelled");
    if (context->deadline_ns && ort_clock_ns() > context->deadline_ns)
        return ort_error_set(err, ORT_ERROR_TIMEOUT,
                             "the run took longer than its time limit of %g s",
                             options ? options->timeout_s : 0.0);
    return ORT_OK;
}

static ort_status run_step(ort_frame *frame, ort_exec_call *c, ort_error *err)
{
    if (c->ps->step->traits & (ORT_TRAIT_RANDOM | ORT_TRAIT_CONTROL)) {
        const ort_run_options *options = frame->context->options;
        c->call.seed = next_seed(frame->context);
        c->call.stream = options && options->one_stream ? &frame->context->stream : NULL;
    }
    return c->ps->dynamic ? ort_frame_run_dynamic(frame, c, err) : c->run(&c->call, err);
}

static void drop_dead(ort_frame *frame, const ort_exec_call *c)
{
    for (int i = 0; i < c->ps->drop_count; i++)
        ort_slot_drop(&frame->slots[c->ps->drops[i]]);
}

static ort_status run_special(ort_frame *frame, ort_exec_call *c, ort_error *err)
{
    ort_status status = run_step(frame, c, err);
    drop_dead(frame, c);
    return status;
}

/* A profile looks at the step's values, so they die after it has. */
static ort_status run_profiled(ort_frame *frame, ort_exec_call *c, ort_profile *profile,
                               ort_error *err)
{
    ort_profile_begin_step(profile);
    ort_status status = run_step(frame, c, err);
    if (!status)
        ort_profile_end_step(profile, &c->call, c->ps->step->op, frame->plan->program->graph);
    drop_dead(frame, c);
    return status;
}

static ort_status run_watched(ort_frame *frame, ort_exec_call *c, ort_error *err)
{
    const ort_run_options *options = frame->context->options;
    const ort_node *node = c->ps->step->node;
    ort_status status;
    uint64_t begin = 0;
    ORT_TRY(ort_context_check(frame->context, err));
    if (options && options->on_node)
        begin = ort_clock_ns();
    if (options && options->profile)
        status = run_profiled(frame, c, options->profile, err);
    else
        status = run_special(frame, c, err);
    if (!status && options && options->on_node)
        options->on_node(options->callback_arg, node->name, node->op_type, "cpu", begin,
                         ort_clock_ns());
    return status;
}

ort_status ort_frame_run(ort_frame *frame, ort_error *err)
{
    ort_exec_call *c = frame->calls, *end = c + frame->plan->step_count;
    ort_status status = ORT_OK;
    if (frame->context->watched) {
        for (; c < end && !status; c++)
            status = run_watched(frame, c, err);
    } else if (frame->plan->plain) {
        for (; c < end && !status; c++)
            status = c->run(&c->call, err);
    } else {
        for (; c < end && !status; c++)
            status = c->ps->special ? run_special(frame, c, err) : c->run(&c->call, err);
    }
    if (status) {
        /* An operator that noticed the stop between its own steps can't tell which of the two it
         * was. */
        ort_status now =
            status == ORT_ERROR_CANCELLED ? ort_context_check(frame->context, err) : ORT_OK;
        if (now) /* asked once only: the token may be cleared meanwhile */
            status = now;
        if (status != ORT_ERROR_CANCELLED && status != ORT_ERROR_TIMEOUT)
            ort_node_wrap_error(c[-1].ps->step->node, err, status);
        ort_frame_clear(frame);
    }
    return status;
}
