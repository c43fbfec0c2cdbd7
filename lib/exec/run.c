/* run.c - the loop over the steps of a frame. */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "exec/seen.h"
#include "op/eval.h"

static void drop_dead(ort_frame *frame, const ort_exec_call *c)
{
    for (int i = 0; i < c->ps->drop_count; i++) {
        assert(frame->plan->slots[c->ps->drops[i]].place == ORT_PLACE_DYNAMIC);
        ort_slot_drop(&frame->slots[c->ps->drops[i]]);
    }
}

static ort_status run_special(ort_frame *frame, ort_exec_call *c, ort_error *err)
{
    ort_status status = ort_frame_run_step(frame, c, err);
    drop_dead(frame, c);
    return status;
}

static ort_status run_watched(ort_frame *frame, ort_exec_call *c, ort_error *err)
{
    const ort_run_options *options = frame->context->options;
    const ort_step *step = c->ps->step;
    uint64_t begin = 0;
    ORT_TRY(ort_budget_check(err));
    if (options && options->on_node)
        begin = ort_clock_ns();
    ort_status status = ort_seen_run(frame, c, err);
    drop_dead(frame, c);
    if (status == ORT_OK) /* tasks that were left out leave no result */
        status = ort_budget_stopped(&frame->context->budget, err);
    if (status == ORT_OK && options && options->on_node)
        options->on_node(options->callback_arg, step->node->name, step->node->op_type,
                         step->provider, begin, ort_clock_ns());
    return status;
}

typedef struct branch_run {
    ort_frame *frame;
    const ort_branch_group *group;
    ort_exec_call *failed[ORT_MAX_BRANCHES]; /* NULL: the branch went through */
    ort_status status[ORT_MAX_BRANCHES];
    ort_error *errors; /* one per branch, or NULL */
} branch_run;

static void run_branch(void *arg, size_t branch, int thread)
{
    branch_run *r = arg;
    const ort_branch_group *group = r->group;
    r->failed[branch] = NULL;
    for (int i = branch ? group->ends[branch - 1] : 0; i < group->ends[branch]; i++) {
        ort_exec_call *c = &r->frame->calls[group->order[i]];
        assert(!c->ps->special); /* it touches nothing that branches share */
        r->status[branch] = c->run(&c->call, r->errors ? &r->errors[branch] : NULL);
        if (r->status[branch] == ORT_OK)
            continue;
        r->failed[branch] = c;
        return;
    }
}

/* The error of the step that comes first in order is the run's, as with one thread. *at: one past
 * that step, or past the group. */
static ort_status run_group(ort_frame *frame, const ort_branch_group *group, ort_exec_call **at,
                            ort_error *err)
{
    ort_error errors[ORT_MAX_BRANCHES];
    branch_run r = {.frame = frame, .group = group, .errors = err ? errors : NULL};
    int first = -1;
    assert(group->branch_count > 0 && group->branch_count <= ORT_MAX_BRANCHES);
    assert(group->ends[group->branch_count - 1] == group->count);
    for (int b = 0; err && b < group->branch_count; b++) { /* not their texts, two kilobytes each */
        errors[b].status = ORT_OK;
        errors[b].count = 0;
        errors[b].message[0] = '\0';
    }
    ort_pool_run_again(frame->calls->call.pool, group, (size_t)group->branch_count, run_branch, &r);
    *at = frame->calls + group->first + group->count;
    for (int b = 0; b < group->branch_count; b++)
        if (r.failed[b] && (first < 0 || r.failed[b] < r.failed[first]))
            first = b;
    if (first < 0)
        return ORT_OK;
    if (err)
        *err = errors[first];
    *at = r.failed[first] + 1;
    return r.status[first];
}

static ort_status run_grouped(ort_frame *frame, ort_exec_call **at, ort_error *err)
{
    const ort_branch_group *group = frame->plan->groups;
    const ort_branch_group *last = group + frame->plan->group_count;
    ort_exec_call *c = frame->calls, *end = c + frame->plan->step_count;
    ort_status status = ORT_OK;
    while (c < end && status == ORT_OK) {
        if (group < last && c == frame->calls + group->first) {
            status = run_group(frame, group++, &c, err);
            continue;
        }
        status = c->ps->special ? run_special(frame, c, err) : c->run(&c->call, err);
        c++;
    }
    *at = c;
    return status;
}

ort_status ort_frame_run(ort_frame *frame, ort_error *err)
{
    ort_exec_call *c = frame->calls, *end = c + frame->plan->step_count;
    ort_status status = ORT_OK;
    if (frame->context->watched) {
        for (; c < end && status == ORT_OK; c++)
            status = run_watched(frame, c, err);
    } else if (frame->plan->plain) {
        for (; c < end && status == ORT_OK; c++)
            status = c->run(&c->call, err);
    } else if (frame->plan->group_count) {
        status = run_grouped(frame, &c, err);
    } else {
        for (; c < end && status == ORT_OK; c++)
            status = c->ps->special ? run_special(frame, c, err) : c->run(&c->call, err);
    }
    if (status != ORT_OK) {
        assert(c > frame->calls); /* the step before it failed */
        if (frame->context->watched) { /* what an operator that was stopped says isn't the reason */
            ort_status why = ort_budget_stopped(&frame->context->budget, err);
            status = why ? why : status;
        }
        /* The model was found valid when it was loaded: it is these values that don't fit it. */
        if (status == ORT_ERROR_MODEL || status == ORT_ERROR_DATA) {
            status = ORT_ERROR_RUN;
            if (err)
                err->status = status;
        }
        if (status != ORT_ERROR_CANCELLED && status != ORT_ERROR_TIMEOUT)
            ort_node_wrap_error(c[-1].ps->step->node, err, status);
        ort_frame_clear(frame);
    }
    return status;
}
