/* plan_parts.c - the steps of a plan that other providers run, cut into parts.
 *
 * A part is a stretch of consecutive steps of one provider, all of whose shapes the plan knows. A
 * value comes to a device once, before the first part that reads it, and stays there. It comes from
 * a device once, behind the part that computes it, if anybody else reads it. These copies are the
 * inputs and outputs of the part's step; between parts of one device nothing is copied. A value
 * that besides its own device only bodies read, and these on that device, isn't copied either: it
 * is computed where bodies read it (ort_plan.lent).
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "exec/plan.h"
#include "op/eval.h"

typedef struct share { /* of one provider */
    ORT_VEC(ort_device_step) steps;
    ORT_VEC(ort_device_part) parts;
    int copies_in, copies_out;
} share;

struct ort_parts {
    ort_plan *plan;
    const ort_partition *partition;
    const ort_fact *facts;
    const ort_step *const *kept;
    int kept_count;
    int8_t *device;    /* by kept step: index into the partition's list; -1: the host */
    uint32_t *readers; /* by value id: who reads it, but for those whom a run shows it to */
    uint32_t *inner;   /* the same of bodies */
    bool *shown;       /* by value id: to these, too */
    uint32_t *present; /* by value id: which devices have it */
    share shares[ORT_PROVIDERS_MAX];
};

/* ---- who runs what */

static bool is_settled(const ort_parts *p, ort_id id)
{
    ort_shape shape;
    const ort_type *type = id == ORT_ID_NONE ? NULL : &p->facts[id].type;
    return !type || (ort_type_concrete(type, &shape) &&
                     ort_shape_check(&shape, type->dtype, NULL) == ORT_OK);
}

static int device_of(const ort_parts *p, const ort_step *s)
{
    for (int i = 0; s->device >= 0 && i < s->in_count; i++)
        if (!is_settled(p, s->in[i]))
            return -1;
    for (int i = 0; s->device >= 0 && i < s->out_count; i++)
        if (!is_settled(p, s->out[i]))
            return -1;
    return s->device;
}

uint32_t ort_program_readers(const ort_program *body, ort_id id)
{
    uint32_t readers = 0;
    for (int i = 0; i < body->step_count; i++) {
        const ort_step *s = &body->steps[i];
        for (int k = 0; k < s->in_count; k++)
            if (s->in[k] == id)
                readers |= s->device < 0 ? ORT_PLAN_HOST : 1u << s->device;
        for (int b = 0; b < s->body_count; b++)
            for (int c = 0; c < s->bodies[b]->capture_count; c++)
                if (s->bodies[b]->captures[c].outer == id)
                    readers |= ort_program_readers(s->bodies[b], s->bodies[b]->captures[c].inner);
    }
    for (int o = 0; o < body->output_count; o++)
        if (body->outputs[o] == id)
            readers |= ORT_PLAN_HOST;
    return ort_program_shows(body, id) ? readers | ORT_PLAN_HOST : readers;
}

static void note_readers(ort_parts *p, int index)
{
    const ort_step *s = p->kept[index];
    uint32_t bit = p->device[index] < 0 ? ORT_PLAN_HOST : 1u << p->device[index];
    for (int i = 0; i < s->in_count; i++)
        if (s->in[i] != ORT_ID_NONE)
            p->readers[s->in[i]] |= bit;
    for (int b = 0; b < s->body_count; b++)
        for (int c = 0; c < s->bodies[b]->capture_count; c++) {
            const ort_capture *capture = &s->bodies[b]->captures[c];
            p->inner[capture->outer] |= ort_program_readers(s->bodies[b], capture->inner);
        }
}

/* What a caller gets, or is shown. */
static void note_results(ort_parts *p, const int *last_use)
{
    const ort_program *program = p->plan->program;
    for (int id = 0; id < program->value_count; id++)
        p->shown[id] = last_use[id] >= p->kept_count || ort_program_shows(program, (ort_id)id);
}

static void lend_results(ort_parts *p, const ort_step *s, int device)
{
    uint32_t bit = 1u << device;
    bool can = p->partition->list[device].memory;
    for (int k = 0; can && k < s->out_count; k++) {
        ort_id id = s->out[k];
        if (id != ORT_ID_NONE && p->inner[id] == bit && !(p->readers[id] & ~bit) &&
            !p->shown[id] && !p->facts[id].value)
            p->plan->lent[id] = (int8_t)device;
    }
}

/* Values that are computed on a device where bodies read them; bodies read others on the host, or
 * bring them there themselves. */
static ort_status note_lent(ort_parts *p, ort_error *err)
{
    ort_plan *plan = p->plan;
    size_t count = (size_t)plan->program->value_count;
    plan->readers = ort_arena_array(&plan->memory, count + 1, sizeof *plan->readers);
    plan->lent = ort_arena_array(&plan->memory, count + 1, sizeof *plan->lent);
    if (!plan->readers || !plan->lent)
        return ort_error_memory(err, count * sizeof *plan->readers);
    memset(plan->lent, -1, count + 1);
    for (int i = 0; i < p->kept_count; i++) {
        plan->has_bodies = plan->has_bodies || p->kept[i]->body_count;
        if (p->device[i] >= 0)
            lend_results(p, p->kept[i], p->device[i]);
    }
    for (size_t id = 0; id < count; id++)
        plan->readers[id] = p->readers[id] | (p->inner[id] || p->shown[id] ? ORT_PLAN_HOST : 0);
    return ORT_OK;
}

ort_status ort_parts_new(ort_plan *plan, const ort_fact *facts, const ort_step *const *kept,
                         int count, const int *last_use, ort_parts **parts, ort_error *err)
{
    size_t values = (size_t)plan->program->value_count + 1;
    ort_parts *p = calloc(1, sizeof *p);
    *parts = p;
    if (!p)
        return ort_error_memory(err, sizeof *p);
    p->plan = plan;
    p->partition = plan->program->partition;
    p->facts = facts;
    p->kept = kept;
    p->kept_count = count;
    p->device = calloc((size_t)count + 1, sizeof *p->device);
    p->readers = calloc(values, sizeof *p->readers);
    p->inner = calloc(values, sizeof *p->inner);
    p->present = calloc(values, sizeof *p->present);
    p->shown = calloc(values, sizeof *p->shown);
    if (!p->device || !p->readers || !p->inner || !p->present || !p->shown)
        return ort_error_memory(err, values * sizeof *p->readers);
    for (int i = 0; i < count; i++) {
        p->device[i] = (int8_t)device_of(p, kept[i]);
        note_readers(p, i);
    }
    note_results(p, last_use);
    return note_lent(p, err);
}

int ort_parts_end(const ort_parts *parts, int first)
{
    int device = parts->device[first], last = first;
    if (device < 0)
        return -1;
    while (last + 1 < parts->kept_count && parts->device[last + 1] == device)
        last++;
    return last;
}

/* ---- one part */

typedef struct copies { /* of a part: what comes, what goes */
    ort_id *ids;
    ort_device_copy *list;
    int count;
} copies;

static bool new_copies(ort_plan *plan, copies *c, int most)
{
    c->count = 0;
    c->ids = ort_arena_array(&plan->memory, (size_t)most + 1, sizeof *c->ids);
    c->list = ort_arena_array(&plan->memory, (size_t)most + 1, sizeof *c->list);
    return c->ids && c->list;
}

static void add_copy(copies *c, ort_id id, int *index)
{
    c->ids[c->count] = id;
    c->list[c->count++] = (ort_device_copy){id, (*index)++};
}

static void note_step(ort_parts *p, const ort_step *s, int device, copies *in, copies *out)
{
    share *own = &p->shares[device];
    uint32_t bit = 1u << device;
    for (int i = 0; i < s->in_count; i++) {
        ort_id id = s->in[i];
        if (id == ORT_ID_NONE || p->facts[id].value || (p->present[id] & bit))
            continue;
        p->present[id] |= bit;
        add_copy(in, id, &own->copies_in);
    }
    for (int i = 0; i < s->out_count; i++) {
        ort_id id = s->out[i];
        if (id == ORT_ID_NONE)
            continue;
        p->present[id] |= bit;
        if (!p->facts[id].value && (p->shown[id] || p->inner[id] || (p->readers[id] & ~bit)))
            add_copy(out, id, &own->copies_out);
    }
}

/* Reports and errors see a part as a node of its own. */
static ort_step *new_step(ort_parts *p, int device, int count, const copies *in, const copies *out)
{
    ort_arena *memory = &p->plan->memory;
    const char *provider = p->partition->list[device].row->name;
    char name[200];
    snprintf(name, sizeof name, "%s part %zu: %d nodes", provider,
             p->shares[device].parts.count, count);
    ort_step *step = ort_arena_alloc(memory, sizeof *step);
    ort_node *node = ort_arena_alloc(memory, sizeof *node);
    char *text = ort_arena_strdup(memory, name);
    if (!step || !node || !text)
        return NULL;
    *node = (ort_node){.op = &ort_part_op, .op_type = ort_part_op.name, .name = text,
                       .domain = ORT_INTERNAL, .overload = "", .doc = "", .opset = 1,
                       .inputs = in->ids, .outputs = out->ids, .input_count = in->count,
                       .output_count = out->count};
    *step = (ort_step){.node = node, .op = node->op, .provider = provider, .device = -1,
                       .in_count = in->count, .out_count = out->count, .in = in->ids,
                       .out = out->ids};
    return step;
}

ort_status ort_parts_add(ort_parts *parts, int first, int last, ort_plan_step *step,
                         ort_error *err)
{
    int device = parts->device[first], ins = 0, outs = 0;
    share *own = &parts->shares[device];
    copies in, out;
    for (int i = first; i <= last; i++) {
        ins += parts->kept[i]->in_count;
        outs += parts->kept[i]->out_count;
    }
    ort_plan_part *part = ort_arena_alloc(&parts->plan->memory, sizeof *part);
    if (!part || !new_copies(parts->plan, &in, ins) || !new_copies(parts->plan, &out, outs))
        return ort_error_memory(err, sizeof *part);
    for (int i = first; i <= last; i++) {
        ort_device_step one = {parts->kept[i]->node, parts->kept[i]->op};
        note_step(parts, parts->kept[i], device, &in, &out);
        if (!ort_vec_push(&own->steps, one))
            return ort_error_memory(err, sizeof one);
    }
    ort_device_part request = {.first = (int)own->steps.count - (last - first + 1),
                               .count = last - first + 1,
                               .in = in.list,
                               .out = out.list,
                               .in_count = in.count,
                               .out_count = out.count};
    *part = (ort_plan_part){device, (int)own->parts.count, in.list, out.list};
    step->step = new_step(parts, device, request.count, &in, &out);
    step->plan_state = part;
    return step->step && ort_vec_push(&own->parts, request) ? ORT_OK
                                                            : ort_error_memory(err, sizeof *part);
}

/* ---- all of them */

/* The provider that computes output o, when its host memory is of no use but to the caller. */
static int8_t maker_of(const ort_parts *p, int o)
{
    const ort_program *program = p->plan->program;
    ort_id id = program->outputs[o];
    for (int k = 0; k < program->output_count; k++)
        if (k != o && program->outputs[k] == id)
            return -1;
    if (program->keep_all || ort_program_shows(program, id) || !p->plan->direct[o])
        return -1;
    for (int i = 0; i < p->kept_count; i++)
        for (int k = 0; k < p->kept[i]->out_count; k++)
            if (p->kept[i]->out[k] == id)
                return p->device[i] < 0 || p->inner[id] || (p->readers[id] & ~(1u << p->device[i]))
                           ? -1
                           : p->device[i];
    return -1;
}

/* What runs ask whose callers have values on devices. */
static ort_status note_places(const ort_parts *p, ort_error *err)
{
    ort_plan *plan = p->plan;
    const ort_program *program = plan->program;
    plan->given_readers = ort_arena_array(&plan->memory, (size_t)plan->given_count + 1,
                                          sizeof *plan->given_readers);
    plan->makers = ort_arena_array(&plan->memory, (size_t)program->output_count + 1,
                                   sizeof *plan->makers);
    if (!plan->given_readers || !plan->makers)
        return ort_error_memory(err, sizeof *plan->given_readers * (size_t)plan->given_count);
    for (int i = 0; i < plan->given_count; i++) {
        ort_id id = i < program->input_count ? program->inputs[i]
                                             : program->captures[i - program->input_count].inner;
        bool shown = program->parent ? ort_program_shows(program, id) : p->shown[id];
        plan->given_readers[i] = p->readers[id] | p->inner[id] | (shown ? ORT_PLAN_HOST : 0);
    }
    for (int o = 0; o < program->output_count; o++)
        plan->makers[o] = maker_of(p, o);
    return ORT_OK;
}

ort_status ort_parts_finish(ort_parts *parts, ort_error *err)
{
    ort_error own; /* providers always get one */
    err = err ? err : &own;
    err->message[0] = '\0';
    ORT_TRY(note_places(parts, err));
    for (int i = 0; i < parts->partition->count - 1; i++) {
        share *mine = &parts->shares[i];
        const ort_open_provider *o = &parts->partition->list[i];
        const ort_device_request request = {.graph = parts->plan->program->graph,
                                          .steps = mine->steps.data,
                                          .parts = mine->parts.data,
                                          .step_count = (int)mine->steps.count,
                                          .part_count = (int)mine->parts.count,
                                          .facts = parts->facts,
                                          .constants = parts->plan->program->constants,
                                          .api = &ort_provider_functions};
        if (mine->parts.count)
            ORT_TRY(ort_device_status(o->row->plan(o->device, &request, &parts->plan->devices[i],
                                                   err), o->row, err));
    }
    return ORT_OK;
}

void ort_parts_free(ort_parts *parts)
{
    if (!parts)
        return;
    for (int i = 0; i < ORT_PROVIDERS_MAX; i++) {
        ort_vec_release(&parts->shares[i].steps);
        ort_vec_release(&parts->shares[i].parts);
    }
    free(parts->device);
    free(parts->readers);
    free(parts->inner);
    free(parts->present);
    free(parts->shown);
    free(parts);
}
