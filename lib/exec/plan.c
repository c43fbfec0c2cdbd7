/* plan.c - making a plan: facts, the steps that are needed, a place for every value.
 *
 * A storage is one stretch of memory. Values share it when a step works in place, or only gives
 * data another shape. A storage that holds a graph output lives to the end of the run, and where
 * possible its memory is that of the result. A position is a step's number among all needed steps,
 * also counting those that planning makes unnecessary.
 */
#include "exec/plan.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "op/eval.h"

typedef struct planner {
    ort_plan *plan;
    const ort_program *program;
    ort_fact *facts;
    int *last_use; /* by value id: position of the last step that reads it; -1 never */
    bool *needed;  /* by value id */
    const ort_step **kept;
    int kept_count;
    ort_parts *parts; /* NULL: the host runs all */
    ORT_VEC(ort_storage) storages;
    ORT_VEC(ort_plan_step) steps;
    ort_error *err;
} planner;

/* ---- which steps are needed */

static void need_value(planner *p, ort_id id)
{
    assert(id == ORT_ID_NONE || id < (ort_id)p->program->value_count);
    if (id != ORT_ID_NONE)
        p->needed[id] = true;
}

static bool step_needed(const planner *p, const ort_step *s)
{
    for (int i = 0; i < s->out_count; i++)
        if (s->out[i] != ORT_ID_NONE && p->needed[s->out[i]] && !p->facts[s->out[i]].value)
            return true;
    return false;
}

/* Backward from the outputs: constants need nobody. What bodies capture is an input of the step. */
static void find_needed(planner *p)
{
    const ort_program *program = p->program;
    for (int i = 0; i < program->output_count; i++)
        if (ort_plan_wants(p->plan, i))
            need_value(p, program->outputs[i]);
    for (int i = 0; program->keep_all && i < program->step_count; i++)
        for (int k = 0; k < program->steps[i].out_count; k++)
            need_value(p, program->steps[i].out[k]);
    for (int i = 0; i < program->step_count && program->watches; i++)
        for (int k = 0; k < program->steps[i].out_count; k++)
            if (ort_program_shows(program, program->steps[i].out[k]))
                need_value(p, program->steps[i].out[k]);
    for (int id = 0; program->keep_all && id < program->value_count; id++)
        if (ort_program_is_known_result(program, id))
            need_value(p, (ort_id)id);
    for (int i = program->step_count - 1; i >= 0; i--) {
        const ort_step *s = &program->steps[i];
        if (!step_needed(p, s))
            continue;
        p->kept[p->kept_count++] = s;
        for (int k = 0; k < s->in_count; k++)
            need_value(p, s->in[k]);
        for (int b = 0; b < s->body_count; b++)
            for (int c = 0; c < s->bodies[b]->capture_count; c++)
                need_value(p, s->bodies[b]->captures[c].outer);
    }
    for (int i = 0, k = p->kept_count - 1; i < k; i++, k--) {
        const ort_step *t = p->kept[i];
        p->kept[i] = p->kept[k];
        p->kept[k] = t;
    }
}

static void find_last_uses(planner *p)
{
    for (int id = 0; id < p->program->value_count; id++)
        p->last_use[id] = -1;
    for (int i = 0; i < p->kept_count; i++) {
        const ort_step *s = p->kept[i];
        for (int k = 0; k < s->in_count; k++)
            if (s->in[k] != ORT_ID_NONE)
                p->last_use[s->in[k]] = i;
        for (int b = 0; b < s->body_count; b++)
            for (int c = 0; c < s->bodies[b]->capture_count; c++)
                p->last_use[s->bodies[b]->captures[c].outer] = i;
    }
    for (int i = 0; i < p->program->output_count; i++)
        if (ort_plan_wants(p->plan, i))
            p->last_use[p->program->outputs[i]] = INT_MAX;
    for (int id = 0; p->program->keep_all && id < p->program->value_count; id++)
        if (p->needed[id])
            p->last_use[id] = INT_MAX;
}

/* ---- places */

static bool concrete(const planner *p, ort_id id, ort_tensor *tensor)
{
    const ort_type *type = &p->facts[id].type;
    tensor->dtype = type->dtype;
    return ort_type_concrete(type, &tensor->shape) &&
           ort_shape_check(&tensor->shape, type->dtype, NULL) == ORT_OK;
}

static void place_given(planner *p, int index, ort_id id)
{
    ort_slot_plan *slot = &p->plan->slots[id];
    assert(index < p->plan->given_count);
    if (p->facts[id].value)
        return;
    slot->place = ORT_PLACE_GIVEN;
    slot->port = index;
    slot->fixed = p->plan->given[index].kind == ORT_KIND_TENSOR && !p->plan->given[index].absent;
    slot->tensor.dtype = p->plan->given[index].dtype;
    slot->tensor.shape = p->plan->given[index].shape;
}

static void place_sources(planner *p)
{
    const ort_program *program = p->program;
    for (int i = 0; i < program->input_count; i++)
        place_given(p, i, program->inputs[i]);
    for (int i = 0; i < program->capture_count; i++)
        place_given(p, program->input_count + i, program->captures[i].inner);
    for (int id = 0; id < program->value_count; id++) {
        ort_slot_plan *slot = &p->plan->slots[id];
        if (!p->facts[id].value || !p->needed[id])
            continue;
        slot->place = ORT_PLACE_CONSTANT;
        slot->fixed = true;
        slot->tensor = *p->facts[id].value;
    }
}

static bool new_storage(planner *p, ort_id id, size_t bytes, int first, int last, int *index)
{
    ort_storage storage = {.bytes = bytes, .first = first, .last = last, .output = -1,
                           .within = -1, .value = id};
    assert(first >= 0 && first <= last);
    *index = (int)p->storages.count;
    return ort_vec_push(&p->storages, storage);
}

static void share_storage(planner *p, ort_id id, ort_id with)
{
    int index = p->plan->storage_of[with];
    assert(index >= 0 && (size_t)index < p->storages.count && p->plan->storage_of[id] < 0);
    ort_storage *storage = &p->storages.data[index];
    p->plan->storage_of[id] = index;
    p->plan->slots[id].place = ORT_PLACE_ARENA;
    if (p->last_use[id] > storage->last)
        storage->last = p->last_use[id];
}

/* Can value `id` lie where `with` does, which has its elements? */
static bool may_lie_with(const planner *p, ort_id id, ort_id with)
{
    const ort_slot_plan *from = &p->plan->slots[with];
    ort_tensor tensor;
    return from->place != ORT_PLACE_DYNAMIC && from->place != ORT_PLACE_NONE &&
           concrete(p, id, &tensor) && ort_tensor_bytes(&from->tensor) == ort_tensor_bytes(&tensor);
}

static void lie_with(planner *p, ort_id id, ort_id with)
{
    const ort_slot_plan *from = &p->plan->slots[with];
    ort_slot_plan *to = &p->plan->slots[id];
    if (from->place == ORT_PLACE_ARENA) {
        share_storage(p, id, with);
    } else {
        to->place = from->place;
        to->port = from->port;
        to->tensor.data = from->tensor.data;
    }
}

/* Does this step only give its input another shape, decided here? */
static bool place_alias(planner *p, const ort_step *s)
{
    if (!(s->traits & ORT_TRAIT_ALIAS) || s->in[0] == ORT_ID_NONE || s->out[0] == ORT_ID_NONE ||
        !may_lie_with(p, s->out[0], s->in[0]))
        return false;
    for (int i = 1; i < s->out_count; i++)
        if (s->out[i] != ORT_ID_NONE)
            return false;
    lie_with(p, s->out[0], s->in[0]);
    return true;
}

static bool wants_place(const planner *p, ort_id id)
{
    return id != ORT_ID_NONE && p->needed[id] && p->plan->slots[id].place != ORT_PLACE_CONSTANT;
}

/* An If whose branch is known and only hands on what it captures: models that ask for the rank of
 * what they were given have many. Who wants to see values inside of bodies has it run. */
static bool place_handed_on(planner *p, const ort_step *s)
{
    if (!s->body_count || p->parts || p->program->keep_all || p->program->watches)
        return false;
    for (int i = 0; i < s->out_count; i++) {
        if (!wants_place(p, s->out[i]))
            continue;
        const ort_id with = p->plan->same[s->out[i]];
        if (with == s->out[i] || p->facts[with].type.kind != ORT_TYPE_TENSOR ||
            p->facts[with].type.dtype != p->facts[s->out[i]].type.dtype ||
            !p->plan->slots[with].fixed || !may_lie_with(p, s->out[i], with) ||
            (p->plan->slots[with].place == ORT_PLACE_GIVEN &&
             p->plan->given[p->plan->slots[with].port].strided))
            return false;
    }
    for (int i = 0; i < s->out_count; i++)
        if (wants_place(p, s->out[i])) {
            ort_slot_plan *slot = &p->plan->slots[s->out[i]];
            slot->fixed = concrete(p, s->out[i], &slot->tensor);
            lie_with(p, s->out[i], p->plan->same[s->out[i]]);
        }
    return true;
}

/* Of equal bytes and of equal elements: 16 floats that are read again and again aren't the place
 * of 32 halves. */
static bool place_in_place(planner *p, const ort_step *s, int position)
{
    assert(s->out[0] != ORT_ID_NONE && p->plan->slots[s->out[0]].fixed);
    const ort_tensor *out = &p->plan->slots[s->out[0]].tensor;
    size_t bytes = ort_tensor_bytes(out);
    if (!(s->traits & ORT_TRAIT_INPLACE))
        return false;
    for (int i = 0; i < s->in_count; i++) {
        ort_id id = s->in[i];
        if (id == ORT_ID_NONE || p->plan->slots[id].place != ORT_PLACE_ARENA)
            continue;
        const ort_storage *storage = &p->storages.data[p->plan->storage_of[id]];
        if (storage->last != position || storage->bytes != bytes ||
            ort_tensor_bytes(&p->plan->slots[id].tensor) != bytes ||
            ort_tensor_count(&p->plan->slots[id].tensor) != ort_tensor_count(out))
            continue;
        share_storage(p, s->out[0], id);
        return true;
    }
    return false;
}

static bool is_static(planner *p, const ort_step *s)
{
    ort_tensor tensor = {0};
    if (s->traits & (ORT_TRAIT_DYNAMIC | ORT_TRAIT_CONTROL))
        return false;
    for (int i = 0; i < s->in_count; i++)
        if (s->in[i] != ORT_ID_NONE && !p->plan->slots[s->in[i]].fixed)
            return false;
    for (int i = 0; i < s->out_count; i++)
        if (s->out[i] != ORT_ID_NONE && !concrete(p, s->out[i], &tensor))
            return false;
    return true;
}

static void place_dynamic(planner *p, const ort_step *s)
{
    for (int i = 0; i < s->out_count; i++) {
        if (s->out[i] == ORT_ID_NONE)
            continue;
        ort_slot_plan *slot = &p->plan->slots[s->out[i]];
        if (slot->place == ORT_PLACE_CONSTANT)
            continue;
        assert(p->plan->dynamic_count < p->program->value_count);
        slot->place = ORT_PLACE_DYNAMIC;
        slot->fixed = concrete(p, s->out[i], &slot->tensor);
        p->plan->dynamic[p->plan->dynamic_count++] = s->out[i];
    }
}

static ort_status shape_step(planner *p, const ort_step *s, ort_plan_step *ps)
{
    const ort_tensor **views;
    if (!s->op->impl->shape || s->device >= 0)
        return ORT_OK;
    views = ort_arena_array(&p->plan->memory, (size_t)(s->in_count + s->out_count) + 1,
                            sizeof *views);
    if (!views)
        return ort_error_memory(p->err, sizeof *views);
    for (int i = 0; i < s->in_count; i++)
        if (s->in[i] != ORT_ID_NONE)
            views[i] = &p->plan->slots[s->in[i]].tensor;
    for (int i = 0; i < s->out_count; i++)
        if (s->out[i] != ORT_ID_NONE)
            views[s->in_count + i] = &p->plan->slots[s->out[i]].tensor;
    ort_shaping shaping = {.node = s->node,
                           .state = s->state,
                           .in_count = s->in_count,
                           .out_count = s->out_count,
                           .in = views,
                           .out = views + s->in_count,
                           .k = p->program->env->k,
                           .arena = &p->plan->memory};
    ort_status status = s->op->impl->shape(&shaping, p->err);
    if (status != ORT_OK)
        return ort_node_wrap_error(s->node, p->err, status);
    ps->plan_state = shaping.plan_state;
    ps->workspace_bytes = shaping.workspace_bytes;
    ps->thread_bytes = ort_round_up(shaping.thread_bytes, 64);
    if (ps->workspace_bytes) {
        if (!new_storage(p, ORT_ID_NONE, ps->workspace_bytes, ps->position, ps->position,
                         &ps->workspace))
            return ort_error_memory(p->err, sizeof(ort_storage));
    }
    if (ps->thread_bytes) {
        size_t bytes;
        if (!ort_mul_size(ps->thread_bytes, (size_t)p->program->env->threads, &bytes) ||
            !new_storage(p, ORT_ID_NONE, bytes, ps->position, ps->position, &ps->threads))
            return ort_error_memory(p->err, sizeof(ort_storage));
    }
    return ORT_OK;
}

static ort_status place_static(planner *p, const ort_step *s, int position)
{
    for (int i = 0; i < s->out_count; i++) {
        ort_id id = s->out[i];
        ort_slot_plan *slot;
        int last;
        if (id == ORT_ID_NONE)
            continue;
        slot = &p->plan->slots[id];
        if (i == 0 && place_in_place(p, s, position))
            continue;
        if (slot->place == ORT_PLACE_CONSTANT) /* known, but written again beside its siblings */
            slot->tensor.data = NULL;
        assert(p->plan->storage_of[id] < 0); /* it is computed once */
        slot->place = ORT_PLACE_ARENA;
        last = p->last_use[id] < position ? position : p->last_use[id];
        if (!new_storage(p, id, ort_tensor_bytes(&slot->tensor), position, last,
                         &p->plan->storage_of[id]))
            return ort_error_memory(p->err, sizeof(ort_storage));
    }
    return ORT_OK;
}

static ort_status place_step(planner *p, const ort_step *s, int position)
{
    ort_plan_step ps = {.step = s, .position = position};
    if (place_handed_on(p, s))
        return ORT_OK;
    if (!is_static(p, s)) {
        ps.dynamic = ps.special = true;
        place_dynamic(p, s);
    } else {
        for (int i = 0; i < s->out_count; i++)
            if (s->out[i] != ORT_ID_NONE) {
                concrete(p, s->out[i], &p->plan->slots[s->out[i]].tensor);
                p->plan->slots[s->out[i]].fixed = true;
            }
        if (place_alias(p, s))
            return ORT_OK;
        if ((s->traits & ORT_TRAIT_ALIAS) && s->in[0] != ORT_ID_NONE &&
            p->plan->slots[s->in[0]].place == ORT_PLACE_DYNAMIC) {
            ps.dynamic = ps.special = true;
            place_dynamic(p, s);
        } else {
            ORT_TRY(place_static(p, s, position));
            ORT_TRY(shape_step(p, s, &ps));
        }
        ps.special = ps.special || (s->traits & ORT_TRAIT_RANDOM);
    }
    if (!ort_vec_push(&p->steps, ps))
        return ort_error_memory(p->err, sizeof ps);
    return ORT_OK;
}

/* ---- parts that other providers run */

/* Memory of the host that the part writes or reads as a whole. */
static ort_status place_copies(planner *p, const ort_step *s, int first, int last)
{
    for (int i = 0; i < s->in_count; i++) {
        int at = p->plan->storage_of[s->in[i]];
        if (p->last_use[s->in[i]] < last)
            p->last_use[s->in[i]] = last;
        if (at >= 0 && p->storages.data[at].last < last)
            p->storages.data[at].last = last;
    }
    for (int i = 0; i < s->out_count; i++) {
        ort_id id = s->out[i];
        ort_slot_plan *slot = &p->plan->slots[id];
        slot->place = ORT_PLACE_ARENA;
        if (!new_storage(p, id, ort_tensor_bytes(&slot->tensor), first,
                         p->last_use[id] < last ? last : p->last_use[id],
                         &p->plan->storage_of[id]))
            return ort_error_memory(p->err, sizeof(ort_storage));
    }
    return ORT_OK;
}

static ort_status place_part(planner *p, int first, int last)
{
    ort_plan_step ps = {.position = last, .special = true};
    for (int i = first; i <= last; i++)
        for (int k = 0; k < p->kept[i]->out_count; k++) {
            ort_id id = p->kept[i]->out[k];
            ort_slot_plan *slot = id == ORT_ID_NONE ? NULL : &p->plan->slots[id];
            if (!slot || slot->place == ORT_PLACE_CONSTANT)
                continue;
            concrete(p, id, &slot->tensor);
            slot->fixed = true;
            slot->place = ORT_PLACE_DEVICE;
        }
    ORT_TRY(ort_parts_add(p->parts, first, last, &ps, p->err));
    ORT_TRY(place_copies(p, ps.step, first, last));
    return ort_vec_push(&p->steps, ps) ? ORT_OK : ort_error_memory(p->err, sizeof ps);
}

static ort_status place_steps(planner *p)
{
    for (int i = 0; i < p->kept_count; i++) {
        int last = p->parts ? ort_parts_end(p->parts, i) : -1;
        if (last < 0) {
            ORT_TRY(place_step(p, p->kept[i], i));
        } else {
            ORT_TRY(place_part(p, i, last));
            i = last;
        }
    }
    return ORT_OK;
}

/* ---- outputs */

static void bind_outputs(planner *p)
{
    ort_plan *plan = p->plan;
    for (int o = 0; o < p->program->output_count; o++) {
        ort_id id = p->program->outputs[o];
        ort_slot_plan *slot = &plan->slots[id];
        if (!ort_plan_wants(plan, o) || slot->place != ORT_PLACE_ARENA ||
            slot->tensor.dtype == ORT_DTYPE_STRING)
            continue;
        ort_storage *storage = &p->storages.data[plan->storage_of[id]];
        if (storage->output >= 0)
            continue;
        storage->output = o;
        plan->direct[o] = true;
    }
}

static ort_status collect_patches(planner *p)
{
    ort_plan *plan = p->plan;
    int count = p->program->value_count;
    plan->inputs = ort_arena_array(&plan->memory, (size_t)count + 1, sizeof *plan->inputs);
    plan->outputs = ort_arena_array(&plan->memory, (size_t)count + 1, sizeof *plan->outputs);
    if (!plan->inputs || !plan->outputs)
        return ort_error_memory(p->err, sizeof *plan->inputs * (size_t)count);
    for (int id = 0; id < count; id++) {
        ort_slot_plan *slot = &plan->slots[id];
        if (slot->place == ORT_PLACE_GIVEN)
            plan->inputs[plan->input_patches++] = (ort_patch){(ort_id)id, slot->port};
        if (slot->place != ORT_PLACE_ARENA)
            continue;
        assert(plan->storage_of[id] >= 0 && plan->storage_of[id] < plan->storage_count);
        const ort_storage *storage = &p->storages.data[plan->storage_of[id]];
        slot->offset = storage->offset;
        if (storage->output < 0)
            continue;
        slot->place = ORT_PLACE_OUTPUT;
        slot->port = storage->output;
        plan->outputs[plan->output_patches++] = (ort_patch){(ort_id)id, storage->output};
    }
    return ORT_OK;
}

/* ---- dynamic values die after their last use */

/* Index of the step after which dynamic value `id` dies; -1: with the run. `index` maps positions
 * to steps that stay: a dynamic value is never read by one that vanished. */
static int drop_step(const planner *p, ort_id id, const int *born, const int *index)
{
    if (p->last_use[id] == INT_MAX)
        return -1;
    assert(p->last_use[id] < p->kept_count);
    return p->last_use[id] < 0 || index[p->last_use[id]] < born[id] ? born[id]
                                                                     : index[p->last_use[id]];
}

static void fill_drops(planner *p, ort_id *list, int *born, int *index)
{
    ort_plan *plan = p->plan;
    int used = 0;
    for (int i = 0; i < plan->step_count; i++) {
        index[plan->steps[i].position] = i;
        for (int k = 0; k < plan->steps[i].step->out_count; k++)
            if (plan->steps[i].step->out[k] != ORT_ID_NONE)
                born[plan->steps[i].step->out[k]] = i;
    }
    for (int k = 0; k < plan->dynamic_count; k++) {
        int at = drop_step(p, plan->dynamic[k], born, index);
        if (at >= 0)
            plan->steps[at].drop_count++;
    }
    for (int i = 0; i < plan->step_count; i++) {
        plan->steps[i].drops = list + used;
        used += plan->steps[i].drop_count;
        plan->steps[i].special = plan->steps[i].special || plan->steps[i].drop_count;
        plan->steps[i].drop_count = 0;
    }
    assert(used <= plan->dynamic_count);
    for (int k = 0; k < plan->dynamic_count; k++) {
        int at = drop_step(p, plan->dynamic[k], born, index);
        if (at >= 0)
            list[(plan->steps[at].drops - list) + plan->steps[at].drop_count++] =
                plan->dynamic[k];
    }
}

static ort_status collect_drops(planner *p)
{
    size_t values = (size_t)p->program->value_count, positions = (size_t)p->kept_count;
    ort_id *list = ort_arena_array(&p->plan->memory, (size_t)p->plan->dynamic_count + 1,
                                   sizeof *list);
    int *born = calloc(values + positions + 1, sizeof *born);
    if (!list || !born) {
        free(born);
        return ort_error_memory(p->err, sizeof *born * values);
    }
    fill_drops(p, list, born, born + values);
    free(born);
    return ORT_OK;
}

/* ---- the whole */

static ort_status finish_steps(planner *p)
{
    ort_plan *plan = p->plan;
    plan->steps = ort_arena_array(&plan->memory, p->steps.count + 1, sizeof *plan->steps);
    plan->storages = ort_arena_array(&plan->memory, p->storages.count + 1, sizeof *plan->storages);
    if (!plan->steps || !plan->storages)
        return ort_error_memory(p->err, sizeof *plan->steps * p->steps.count);
    if (p->steps.count)
        memcpy(plan->steps, p->steps.data, sizeof *plan->steps * p->steps.count);
    plan->step_count = (int)p->steps.count;
    plan->position_count = p->kept_count;
    bind_outputs(p);
    if (p->storages.count)
        memcpy(plan->storages, p->storages.data, sizeof *plan->storages * p->storages.count);
    plan->storage_count = (int)p->storages.count;
    ORT_TRY(ort_plan_branch(plan, p->facts, p->err));
    ort_plan_join(plan);
    ORT_TRY(ort_plan_place(plan, p->err));
    for (int i = 0; i < plan->storage_count; i++)
        p->storages.data[i] = plan->storages[i];
    plan->plain = plan->group_count == 0;
    for (int i = 0; i < plan->step_count; i++) {
        ort_plan_step *ps = &plan->steps[i];
        if (ps->workspace_bytes)
            ps->workspace_offset = plan->storages[ps->workspace].offset;
        if (ps->thread_bytes)
            ps->thread_offset = plan->storages[ps->threads].offset;
    }
    ORT_TRY(collect_patches(p));
    ORT_TRY(collect_drops(p));
    for (int i = 0; i < plan->step_count; i++)
        plan->plain = plan->plain && !plan->steps[i].special;
    return ORT_OK;
}

static ort_status build(planner *p)
{
    ort_plan *plan = p->plan;
    size_t values = (size_t)p->program->value_count + 1;
    plan->slots = ort_arena_array(&plan->memory, values, sizeof *plan->slots);
    plan->storage_of = ort_arena_array(&plan->memory, values, sizeof *plan->storage_of);
    plan->dynamic = ort_arena_array(&plan->memory, values, sizeof *plan->dynamic);
    plan->direct = ort_arena_array(&plan->memory, (size_t)p->program->output_count + 1,
                                   sizeof *plan->direct);
    p->facts = malloc(sizeof *p->facts * values);
    p->last_use = malloc(sizeof *p->last_use * values);
    p->needed = calloc(values, sizeof *p->needed);
    p->kept = malloc(sizeof *p->kept * ((size_t)p->program->step_count + 1));
    if (!plan->slots || !plan->storage_of || !plan->dynamic || !plan->direct || !p->facts ||
        !p->last_use || !p->needed || !p->kept)
        return ort_error_memory(p->err, sizeof *p->facts * values);
    for (size_t i = 0; i < values; i++)
        plan->storage_of[i] = -1;
    ORT_TRY(ort_plan_infer(plan, p->facts, p->err));
    find_needed(p);
    assert(p->kept_count <= p->program->step_count);
    if (p->program->watches && !p->program->partition) /* parts are steps in their order */
        ORT_TRY(ort_plan_show_early(p->kept, p->kept_count, p->program->value_count, p->err));
    find_last_uses(p);
    place_sources(p);
    if (p->program->partition)
        ORT_TRY(ort_parts_new(plan, p->facts, p->kept, p->kept_count, p->last_use, &p->parts,
                              p->err));
    ORT_TRY(place_steps(p));
    ORT_TRY(finish_steps(p));
    return p->parts ? ort_parts_finish(p->parts, p->err) : ORT_OK;
}

/* What the plan is for: its key in the cache. */
static ort_status keep_question(ort_plan *plan, const ort_given *given, const bool *wanted,
                                ort_error *err)
{
    size_t count = (size_t)plan->given_count, outputs = (size_t)plan->program->output_count;
    plan->given = ort_arena_array(&plan->memory, count + 1, sizeof *given);
    plan->wanted = wanted ? ort_arena_array(&plan->memory, outputs + 1, sizeof *wanted) : NULL;
    if (!plan->given || (wanted && !plan->wanted))
        return ort_error_memory(err, sizeof *given * count);
    if (count)
        memcpy(plan->given, given, sizeof *given * count);
    if (wanted)
        memcpy(plan->wanted, wanted, sizeof *wanted * outputs);
    return ORT_OK;
}

ort_status ort_plan_new(const ort_program *program, const ort_given *given, const bool *wanted,
                        ort_plan **plan, ort_error *err)
{
    planner p = {.program = program, .err = err};
    ort_status status;
    int count = program->input_count + program->capture_count;
    *plan = NULL;
    p.plan = calloc(1, sizeof *p.plan);
    if (!p.plan)
        return ort_error_memory(err, sizeof *p.plan);
    p.plan->references = 1;
    p.plan->program = program;
    p.plan->given_count = count;
    status = keep_question(p.plan, given, wanted, err);
    if (status == ORT_OK)
        status = build(&p);
#ifndef NDEBUG
    if (status == ORT_OK)
        status = ort_plan_verify(p.plan, err);
#endif
    ort_parts_free(p.parts);
    free(p.facts);
    free(p.last_use);
    free(p.needed);
    free(p.kept);
    ort_vec_release(&p.storages);
    ort_vec_release(&p.steps);
    if (status != ORT_OK)
        ort_plan_drop(p.plan);
    else
        *plan = p.plan;
    return status;
}

void ort_plan_drop(ort_plan *plan)
{
    int left = plan ? __atomic_sub_fetch(&plan->references, 1, __ATOMIC_ACQ_REL) : 1;
    assert(left >= 0);
    if (left > 0)
        return;
    for (int i = 0; i < ORT_PROVIDERS_MAX; i++)
        if (plan->devices[i])
            plan->program->partition->list[i].row->plan_free(plan->devices[i]);
    for (size_t i = 0; i < plan->owned.count; i++)
        ort_value_free(plan->owned.data[i]);
    ort_vec_release(&plan->owned);
    ort_arena_release(&plan->memory);
    free(plan);
}
