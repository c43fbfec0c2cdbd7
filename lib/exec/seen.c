/* seen.c - showing values (seen.h).
 *
 * Behind a convolution in blocks of channels stands a conversion that only the watcher reads: it
 * isn't run where whole blocks hold the numbers, in another order.
 *
 * Where extremes are wanted, values are scanned by the tasks that write them. A step that reads
 * such a value element by element, which would be fused with the one before if nobody watched what
 * lies between, goes along with these tasks, part by part. It is made before its turn then, so its
 * place in memory must be none that the step before still needs.
 */
#include "exec/seen.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/uses.h"
#include "op/edit.h"
#include "op/written.h"
#include "profile/profile.h"

/* A step whose output is handed on, and the one that goes along. */
typedef struct watching {
    const float *y[2];
    ort_extremes_part *parts[2]; /* [threads] each; NULL: nobody looks */
    const ort_call *along;       /* or NULL */
} watching;

struct ort_sights {
    const ort_session *session;
    int threads;
    ort_extremes_part *parts[2]; /* [threads] */
    ort_extremes *found;         /* [values of the main program]; of no numbers: not found */
    size_t count;
    const ort_exec_call *done;   /* went along with the step before it; or NULL */
};

void ort_sights_free(ort_sights *sights)
{
    if (!sights)
        return;
    free(sights->parts[0]);
    free(sights->parts[1]);
    free(sights->found);
    free(sights);
}

static ort_status make(const ort_session *session, ort_sights **sights, ort_error *err)
{
    ort_sights *s = calloc(1, sizeof *s);
    const size_t count = (size_t)session->program->value_count;
    if (!s)
        return ort_error_memory(err, sizeof *s);
    s->session = session;
    s->threads = session->env->pool ? ort_pool_threads(session->env->pool) : 1;
    s->count = count;
    s->found = calloc(count + 1, sizeof *s->found);
    for (int k = 0; k < 2; k++)
        s->parts[k] = aligned_alloc(_Alignof(ort_extremes_part),
                                    (size_t)s->threads * sizeof *s->parts[k]);
    if (s->found && s->parts[0] && s->parts[1]) {
        *sights = s;
        return ORT_OK;
    }
    ort_sights_free(s);
    return ort_error_memory(err, count * sizeof *s->found);
}

ort_status ort_sights_begin(const ort_session *session, ort_sights **sights, ort_error *err)
{
    if (session->on_extremes && !*sights)
        ORT_TRY(make(session, sights, err));
    if (*sights) {
        memset((*sights)->found, 0, (*sights)->count * sizeof *(*sights)->found);
        (*sights)->done = NULL;
    }
    return ORT_OK;
}

/* A value that is watched and read by nobody, in whole blocks before this node. */
static bool is_seen_in_blocks(const ort_frame *frame, const ort_node *node)
{
    const ort_graph_value *out = node->output_count == 1 && node->outputs[0] != ORT_ID_NONE
                                     ? frame->plan->program->graph->values.data[node->outputs[0]]
                                     : NULL;
    const ort_run_options *options = frame->context->options;
    if (!frame->context->any_order || !options || !options->on_value || !out ||
        !out->is_watched || out->use_count != 1 ||
        !ort_edit_is(node, ORT_INTERNAL, "UnblockChannels"))
        return false;
    const ort_shape *in = &frame->slots[node->inputs[0]].view.tensor.shape;
    return in->rank > 1 &&
           in->dim[1] * in->dim[in->rank - 1] == ort_node_int(node, "channels", 0);
}

/* ---- extremes, of the main graph's values */

/* Does the watcher look at the value, or at what only converts it? */
static bool is_asked(const ort_frame *frame, ort_id id)
{
    const ort_program *program = frame->plan->program;
    bool asked = ort_program_shows(program, id);
    ort_readers readers = ort_readers_of(program->graph, id);
    for (ort_node *node; !asked && (node = ort_readers_next(&readers));)
        asked = is_seen_in_blocks(frame, node);
    return asked;
}

/* A planned step with one float output. */
static bool hands_on(const ort_exec_call *c)
{
    const ort_step *step = c->ps->step;
    return !c->ps->dynamic && !c->ps->special && step->device < 0 && step->out_count == 1 &&
           step->out[0] != ORT_ID_NONE && c->call.out[0]->kind == ORT_KIND_TENSOR &&
           c->call.out[0]->tensor.dtype == ORT_DTYPE_FLOAT;
}

static bool is_apart(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const char *x = a, *y = b;
    return a_bytes == 0 || b_bytes == 0 || x + a_bytes <= y || y + b_bytes <= x;
}

/* Does the step leave this memory alone? But for its output, where it begins there, too. */
static bool leaves_alone(const ort_frame *frame, const ort_exec_call *c, const ort_tensor *t)
{
    const size_t bytes = ort_tensor_bytes(t);
    const size_t threads = (size_t)frame->plan->program->env->threads;
    const ort_tensor *out = ort_call_out(&c->call, 0);
    bool alone = is_apart(t->data, bytes, c->call.workspace, c->ps->workspace_bytes) &&
                 is_apart(t->data, bytes, c->call.thread_space, threads * c->ps->thread_bytes) &&
                 (t->data == out->data ||
                  is_apart(t->data, bytes, out->data, ort_tensor_bytes(out)));
    for (int i = 0; i < c->call.in_count && alone; i++) {
        const ort_tensor *in = ort_call_in(&c->call, i);
        alone = !in || is_apart(t->data, bytes, in->data, ort_tensor_bytes(in));
    }
    return alone;
}

/* The step that reads the result next, and can go along. */
static const ort_exec_call *follower(const ort_frame *frame, const ort_exec_call *c)
{
    const ort_exec_call *next = c + 1, *end = frame->calls + frame->plan->step_count;
    const ort_run_options *options = frame->context->options;
    if (next < end && is_seen_in_blocks(frame, next->ps->step->node))
        next++;
    if (next >= end || options->profile || options->on_node || !hands_on(next) ||
        !next->ps->step->op->impl->part || !next->ps->step->op->impl->has_parts(&next->call) ||
        !leaves_alone(frame, c, ort_call_out(&next->call, 0)))
        return NULL;
    for (int i = 0; i < next->ps->step->in_count; i++)
        if (next->ps->step->in[i] == c->ps->step->out[0])
            return next;
    return NULL;
}

static void see_part(void *arg, int64_t first, int64_t n, int thread)
{
    const watching *w = arg;
    if (w->parts[0])
        ort_extremes_add(&w->parts[0][thread].found, w->y[0] + first, (size_t)n);
    if (!w->along)
        return;
    w->along->node->op->impl->part(w->along, first, n, thread);
    if (w->parts[1])
        ort_extremes_add(&w->parts[1][thread].found, w->y[1] + first, (size_t)n);
}

/* Of the step's value, where somebody looks. */
static void begin_look(ort_sights *s, const ort_frame *frame, const ort_exec_call *c, int which,
                       watching *w)
{
    w->y[which] = ort_call_out(&c->call, 0)->data;
    if (!is_asked(frame, c->ps->step->out[0]))
        return;
    w->parts[which] = s->parts[which];
    for (int i = 0; i < s->threads; i++)
        w->parts[which][i].found = (ort_extremes){0};
}

static void end_look(ort_sights *s, const ort_exec_call *c, const ort_extremes_part *parts)
{
    assert((size_t)c->ps->step->out[0] < s->count);
    if (parts)
        s->found[c->ps->step->out[0]] = ort_extremes_sum(parts, s->threads);
}

static ort_status run_looking(ort_frame *frame, ort_exec_call *c, ort_error *err)
{
    ort_sights *s = frame->context->sights;
    const ort_exec_call *next = follower(frame, c);
    watching w = {.along = next ? &next->call : NULL};
    ort_written written = {see_part, &w, false};
    begin_look(s, frame, c, 0, &w);
    if (next)
        begin_look(s, frame, next, 1, &w);
    c->call.written = w.parts[0] || next ? &written : NULL;
    ort_status status = ort_frame_run_step(frame, c, err);
    c->call.written = NULL;
    if (status != ORT_OK || !written.answered)
        return status;
    end_look(s, c, w.parts[0]);
    if (next)
        end_look(s, next, w.parts[1]);
    s->done = next;
    return ORT_OK;
}

static ort_status run(ort_frame *frame, ort_exec_call *c, ort_error *err)
{
    ort_sights *s = frame->context->sights;
    const ort_run_options *options = frame->context->options;
    if (!s || !options || !options->on_value || frame->plan->program->parent)
        return ort_frame_run_step(frame, c, err);
    if (s->done == c) {
        s->done = NULL;
        return ORT_OK;
    }
    return hands_on(c) ? run_looking(frame, c, err) : ort_frame_run_step(frame, c, err);
}

static const ort_extremes *found_of(const ort_frame *frame, ort_id id)
{
    const ort_sights *sights = frame->context->sights;
    return sights && !frame->plan->program->parent && sights->found[id].count > 0
               ? &sights->found[id] : NULL;
}

/* ---- */

/* What the session watches, and its outputs, as soon as they are there, in `values`. */
static void show_results(const ort_frame *frame, const ort_step *step, const ort_id *values)
{
    const ort_program *program = frame->plan->program;
    const ort_run_options *options = frame->context->options;
    for (int k = 0; options && options->on_value && k < step->out_count; k++) {
        if (!ort_program_shows(program, step->out[k]))
            continue;
        const char *name = program->graph->values.data[step->out[k]]->name;
        const ort_extremes *found = found_of(frame, values[k]);
        if (found)
            frame->context->sights->session->on_extremes(options->callback_arg, name, found);
        else
            options->on_value(options->callback_arg, name, &frame->slots[values[k]].view);
    }
}

ort_status ort_seen_run(ort_frame *frame, ort_exec_call *c, ort_error *err)
{
    const ort_run_options *options = frame->context->options;
    ort_profile *profile = options ? options->profile : NULL;
    const ort_step *step = c->ps->step;
    const bool in_blocks = is_seen_in_blocks(frame, step->node);
    if (profile)
        ort_profile_begin_step(profile);
    ort_status status = in_blocks ? ORT_OK : run(frame, c, err);
    if (status == ORT_OK && profile)
        ort_profile_end_step(profile, &c->call, step->op, step->provider,
                             frame->plan->program->graph);
    if (status == ORT_OK)
        show_results(frame, step, in_blocks ? step->in : step->out);
    return status;
}
