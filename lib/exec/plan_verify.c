/* plan_verify.c - checks a plan by going through its steps with the names of values instead of
 * their data.
 *
 * For each stretch of the arena it notes which value a step wrote there last. A step that reads the
 * stretch must mean that value. Lifetimes and storages, from which plan.c derived the places,
 * aren't consulted, so that a mistake in them is found.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"
#include "exec/plan.h"

typedef struct stretch { /* of the arena, or of an output's memory */
    uint64_t begin, end;
    ort_id value; /* that was written there last; ORT_ID_NONE: scratch */
} stretch;

typedef ORT_VEC(stretch) stretches;

typedef struct audit {
    const ort_plan *plan;
    const ort_graph *graph;
    uint8_t *written; /* by value: a step of the plan writes it */
    stretches content; /* by place, none over another */
    ort_error *err;
} audit;

static ort_status broken(const audit *a, const ort_node *node, ort_id value, const char *what,
                         ort_id other)
{
    char label[256];
    const ort_graph_value *v = ort_graph_value_at(a->graph, value);
    const ort_graph_value *o = ort_graph_value_at(a->graph, other);
    return ort_error_set(a->err, ORT_ERROR_RUN, "the plan is broken: %s: '%s' %s '%s'",
                         node ? ort_node_label(node, label, sizeof label) : "an output",
                         v ? v->name : "scratch", what, o ? o->name : "scratch");
}

/* ---- stretches */

static bool meet(const stretch *a, const stretch *b)
{
    return a->begin < b->end && b->begin < a->end;
}

/* The memory of each output, as if it lay far behind the arena. */
static uint64_t output_base(int port)
{
    return ((uint64_t)port + 1) << 44;
}

/* Where a value lies in the arena or in an output; empty elsewhere. */
static stretch place_of(const audit *a, ort_id id)
{
    const ort_slot_plan *slot = id == ORT_ID_NONE ? NULL : &a->plan->slots[id];
    if (!slot || (slot->place != ORT_PLACE_ARENA && slot->place != ORT_PLACE_OUTPUT))
        return (stretch){0};
    uint64_t at = slot->place == ORT_PLACE_OUTPUT ? output_base(slot->port) : slot->offset;
    return (stretch){at, at + ort_tensor_bytes(&slot->tensor), id};
}

static stretch scratch(size_t offset, size_t bytes)
{
    return (stretch){offset, offset + bytes, ORT_ID_NONE};
}

/* What lay there is there no more. */
static ort_status write_over(audit *a, const stretch *place)
{
    stretches kept = {0};
    bool ok = true;
    for (size_t i = 0; i < a->content.count && ok; i++) {
        const stretch *old = &a->content.data[i];
        stretch before = {old->begin, old->end < place->begin ? old->end : place->begin,
                          old->value};
        stretch after = {old->begin > place->end ? old->begin : place->end, old->end, old->value};
        ok = (before.begin >= before.end || ort_vec_push(&kept, before)) &&
             (after.begin >= after.end || ort_vec_push(&kept, after));
    }
    ok = ok && (place->begin == place->end || ort_vec_push(&kept, *place));
    ort_vec_release(&a->content);
    a->content.data = kept.data;
    a->content.count = kept.count;
    a->content.capacity = kept.capacity;
    return ok ? ORT_OK : ort_error_memory(a->err, kept.count * sizeof *kept.data);
}

/* ---- steps */

/* The value that was written where this one lies: steps that only change a shape are gone. */
static ort_id origin_of(const audit *a, ort_id id)
{
    while (id != ORT_ID_NONE && !a->written[id]) {
        ort_id producer = a->graph->producers.data[id];
        const ort_node *node = producer == ORT_ID_NONE ? NULL : a->graph->nodes.data[producer];
        if (a->plan->same[id] != id)
            id = a->plan->same[id];
        else
            id = node && node->input_count ? node->inputs[0] : ORT_ID_NONE;
    }
    return id;
}

static ort_status verify_read(const audit *a, const ort_node *node, ort_id id)
{
    stretch place = place_of(a, id);
    ort_id origin = place.begin < place.end ? origin_of(a, id) : ORT_ID_NONE;
    uint64_t found = 0;
    for (size_t i = 0; i < a->content.count; i++) {
        const stretch *s = &a->content.data[i];
        if (!meet(s, &place))
            continue;
        if (s->value != origin)
            return broken(a, node, id, "is read where now lies", s->value);
        found += (s->end < place.end ? s->end : place.end) -
                 (s->begin > place.begin ? s->begin : place.begin);
    }
    return found == place.end - place.begin ? ORT_OK
                                            : broken(a, node, id, "is read and was never", id);
}

/* In place over an input of the same elements, or the whole that parts lie within. */
static bool may_share(const ort_step *s, const stretch *in, const stretch *out)
{
    return (s->traits & ORT_TRAIT_JOINS) ||
           ((s->traits & ORT_TRAIT_INPLACE) && in->begin == out->begin && in->end == out->end);
}

static ort_status verify_apart(const audit *a, const ort_plan_step *ps, const stretch *place)
{
    const ort_step *s = ps->step;
    for (int i = 0; i < s->in_count; i++) {
        stretch in = place_of(a, s->in[i]);
        if (meet(&in, place) && (place->value == ORT_ID_NONE || !may_share(s, &in, place)))
            return broken(a, s->node, place->value, "lies over its own input", in.value);
    }
    for (int i = 0; i < s->out_count; i++) {
        stretch out = place_of(a, s->out[i]);
        if (meet(&out, place) && out.value != place->value)
            return broken(a, s->node, place->value, "lies over its own output", out.value);
    }
    return ORT_OK;
}

static ort_status verify_step(audit *a, const ort_plan_step *ps)
{
    const ort_step *s = ps->step;
    stretch own[2] = {scratch(ps->workspace_offset, ps->workspace_bytes),
                      scratch(ps->thread_offset, ps->thread_bytes)};
    for (int i = 0; i < s->in_count; i++)
        ORT_TRY(verify_read(a, s->node, s->in[i]));
    for (int i = 0; i < s->node->implicit_count; i++)
        ORT_TRY(verify_read(a, s->node, s->node->implicit[i]));
    for (int i = 0; i < 2; i++) {
        ORT_TRY(verify_apart(a, ps, &own[i]));
        ORT_TRY(write_over(a, &own[i]));
    }
    if (meet(&own[0], &own[1]))
        return broken(a, s->node, ORT_ID_NONE, "lies over its own", ORT_ID_NONE);
    for (int i = 0; i < s->out_count; i++) {
        stretch out = place_of(a, s->out[i]);
        ORT_TRY(verify_apart(a, ps, &out));
        ORT_TRY(write_over(a, &out));
    }
    return ORT_OK;
}

/* ---- branches, which run side by side */

/* Does `writer` write what `other` touches? */
static ort_status verify_pair(const audit *a, const ort_plan_step *writer,
                              const ort_plan_step *other)
{
    const ort_step *w = writer->step, *s = other->step;
    for (int o = 0; o < w->out_count + 2; o++) {
        stretch out = o < w->out_count ? place_of(a, w->out[o])
                      : o == w->out_count
                          ? scratch(writer->workspace_offset, writer->workspace_bytes)
                          : scratch(writer->thread_offset, writer->thread_bytes);
        for (int i = 0; i < s->in_count + s->out_count; i++) {
            stretch in = place_of(a, i < s->in_count ? s->in[i] : s->out[i - s->in_count]);
            if (meet(&out, &in))
                return broken(a, w->node, out.value, "is written while another branch uses",
                              in.value);
        }
        stretch theirs = scratch(other->workspace_offset, other->workspace_bytes);
        if (meet(&out, &theirs))
            return broken(a, w->node, out.value, "is written while another branch uses",
                          ORT_ID_NONE);
    }
    return ORT_OK;
}

static ort_status verify_group(const audit *a, const ort_branch_group *g)
{
    for (int i = 0, branch = 0; i < g->count; i++) {
        branch += i >= g->ends[branch];
        for (int k = 0, of = 0; k < g->count; k++) {
            of += k >= g->ends[of];
            if (of != branch)
                ORT_TRY(verify_pair(a, &a->plan->steps[g->order[i]],
                                    &a->plan->steps[g->order[k]]));
        }
    }
    return ORT_OK;
}

/* ---- the whole */

static ort_status verify(audit *a)
{
    const ort_plan *plan = a->plan;
    for (int i = 0; i < plan->step_count; i++)
        for (int o = 0; o < plan->steps[i].step->out_count; o++)
            if (plan->steps[i].step->out[o] != ORT_ID_NONE)
                a->written[plan->steps[i].step->out[o]] = 1;
    for (int i = 0; i < plan->step_count; i++)
        ORT_TRY(verify_step(a, &plan->steps[i]));
    for (int g = 0; g < plan->group_count; g++)
        ORT_TRY(verify_group(a, &plan->groups[g]));
    for (int o = 0; o < plan->program->output_count; o++)
        if (ort_plan_wants(plan, o))
            ORT_TRY(verify_read(a, NULL, plan->program->outputs[o]));
    return ORT_OK;
}

ort_status ort_plan_verify(const ort_plan *plan, ort_error *err)
{
    audit a = {.plan = plan, .graph = plan->program->graph, .err = err,
               .written = calloc((size_t)plan->program->value_count + 1, 1)};
    ort_status status = a.written ? verify(&a)
                                  : ort_error_memory(err, (size_t)plan->program->value_count);
    ort_vec_release(&a.content);
    free(a.written);
    return status;
}
