/* frame.c - making, binding and clearing frames; who owns what a slot shows. */
#include "exec/frame.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define KEPT_FRAMES 4
#define VIEW_REFERENCES (1 << 30) /* far from 0: a view is never freed by dropping references */

static void view_release(void *arg, void *storage)
{
}

bool ort_value_is_view(const ort_value *value)
{
    return value->release == view_release;
}

/* ---- slots */

void ort_slot_drop(ort_slot *slot)
{
    assert(!slot->held || !slot->block); /* one of both backs the view */
    if (slot->held) {
        ort_value_free(slot->held);
        slot->held = NULL;
        slot->view.items = NULL;
        slot->view.count = 0;
    }
    if (slot->block) {
        ort_block_drop(slot->block);
        slot->block = NULL;
    }
    slot->view.kind = ORT_KIND_NONE;
    slot->view.tensor.data = NULL;
    slot->set = false;
}

static void show(ort_slot *slot, const ort_value *value)
{
    slot->view.kind = value->kind;
    slot->view.tensor = value->tensor;
    slot->view.items = value->items;
    slot->view.count = value->count;
    slot->view.item_dtype = value->item_dtype;
}

void ort_slot_hold(ort_slot *slot, ort_value *value)
{
    assert(!ort_value_is_view(value)); /* of a frame, whose values die with its run */
    ort_slot_drop(slot);
    slot->held = value;
    show(slot, value);
    slot->set = true;
}

static ort_status own_items(ort_context *context, ort_value *value, ort_error *err)
{
    for (size_t i = 0; i < value->count; i++) {
        ort_value *owned = NULL, *item = value->items[i];
        if (!item)
            continue;
        if (ort_value_is_view(item)) {
            ORT_TRY(ort_frame_own(context, item, &owned, err));
            value->items[i] = owned;
            ort_value_free(item);
        } else if (item->kind != ORT_KIND_TENSOR) {
            ORT_TRY(own_items(context, item, err));
        }
    }
    return ORT_OK;
}

static ort_status copy_view(ort_context *context, const ort_value *view, ort_value **owned,
                            ort_error *err)
{
    if (view->kind != ORT_KIND_TENSOR || view->tensor.stride)
        return ort_value_clone(view, owned, err);
    ORT_TRY(ort_buffers_new_value(&context->buffers, view->tensor.dtype, &view->tensor.shape, owned,
                                  err));
    ort_tensor_copy_data(&(*owned)->tensor, &view->tensor);
    return ORT_OK;
}

ort_status ort_frame_own(ort_context *context, ort_value *value, ort_value **owned, ort_error *err)
{
    ort_slot *slot;
    if (!ort_value_is_view(value)) {
        if (value->kind != ORT_KIND_TENSOR)
            ORT_TRY(own_items(context, value, err));
        *owned = ort_value_retain(value);
        return ORT_OK;
    }
    slot = ort_slot_of(value);
    if (slot->held && slot->held->tensor.data == value->tensor.data &&
        ort_shape_equal(&slot->held->tensor.shape, &value->tensor.shape)) {
        *owned = ort_value_retain(slot->held);
        return ORT_OK;
    }
    if (slot->origin)
        return ort_frame_own(context, slot->origin, owned, err);
    if (slot->block) {
        ORT_TRY(ort_block_to_value(slot->block, &value->tensor, owned, err));
        slot->block->references++;
        return ORT_OK;
    }
    return copy_view(context, value, owned, err);
}

/* ---- frames */

static void free_frame(ort_frame *frame)
{
    if (!frame)
        return;
    ort_frames_release(&frame->children);
    if (frame->slots)
        ort_frame_clear(frame);
    if (frame->arena)
        ort_buffers_refund(&frame->context->buffers, frame->plan->arena_bytes);
    for (int i = 0; i < ORT_PROVIDERS_MAX; i++)
        if (frame->devices[i])
            frame->plan->program->partition->list[i].row->frame_free(frame->devices[i]);
    for (size_t i = 0; i < frame->twins.count; i++)
        ort_value_free(frame->twins.data[i].value);
    ort_vec_release(&frame->twins);
    for (int i = 0; i < frame->made_count; i++)
        ort_value_free(frame->made[i]);
    free(frame->own_loan);
    free(frame->arena);
    free(frame->slots);
    free(frame->calls);
    free(frame->pointers);
    ort_arena_release(&frame->scratch);
    ort_plan_drop(frame->plan);
    free(frame);
}

void ort_frames_release(ort_frames *frames)
{
    while (frames->first) {
        ort_frame *next = frames->first->next;
        free_frame(frames->first);
        frames->first = next;
    }
}

static __attribute__((unused)) bool is_in_arena(const ort_plan *plan, size_t offset, size_t bytes)
{
    return offset <= plan->arena_bytes && bytes <= plan->arena_bytes - offset;
}

static void init_slots(ort_frame *frame)
{
    const ort_plan *plan = frame->plan;
    for (int id = 0; id < plan->program->value_count; id++) {
        const ort_slot_plan *sp = &plan->slots[id];
        ort_slot *slot = &frame->slots[id];
        if (sp->place == ORT_PLACE_NONE)
            continue;
        slot->view.references = VIEW_REFERENCES;
        slot->view.release = view_release;
        if (sp->place == ORT_PLACE_DYNAMIC)
            continue;
        slot->view.kind = ORT_KIND_TENSOR;
        slot->view.tensor = sp->tensor;
        if (sp->place != ORT_PLACE_ARENA)
            continue;
        assert(sp->offset % ORT_PLAN_ALIGNMENT == 0);
        assert(is_in_arena(plan, sp->offset, ort_tensor_bytes(&sp->tensor)));
        slot->view.tensor.data = frame->arena + sp->offset;
    }
}

static int count_pointers(const ort_plan *plan)
{
    int count = 0;
    for (int i = 0; i < plan->step_count; i++)
        count += plan->steps[i].step->in_count + plan->steps[i].step->out_count;
    return count;
}

static ort_value *view_of(ort_frame *frame, ort_id id)
{
    assert(id == ORT_ID_NONE || id < (ort_id)frame->plan->program->value_count);
    return id == ORT_ID_NONE ? NULL : &frame->slots[id].view;
}

static void init_calls(ort_frame *frame)
{
    const ort_plan *plan = frame->plan;
    ort_value **p = frame->pointers;
    for (int i = 0; i < plan->step_count; i++) {
        const ort_plan_step *ps = &plan->steps[i];
        const ort_step *s = ps->step;
        ort_exec_call *c = &frame->calls[i];
        assert(is_in_arena(plan, ps->workspace_offset, ps->workspace_bytes));
        assert(is_in_arena(plan, ps->thread_offset,
                           ps->thread_bytes * (size_t)plan->program->env->threads));
        c->run = s->device >= 0 ? ort_run_unprepared : s->op->impl->run;
        c->frame = frame;
        c->ps = ps;
        c->call = (ort_call){.node = s->node,
                             .state = s->state,
                             .plan_state = ps->plan_state,
                             .in_count = s->in_count,
                             .out_count = s->out_count,
                             .in = p,
                             .out = p + s->in_count,
                             .workspace = frame->arena + ps->workspace_offset,
                             .thread_space = frame->arena + ps->thread_offset,
                             .thread_bytes = ps->thread_bytes,
                             .k = plan->program->env->k,
                             .pool = plan->program->env->pool,
                             .services = frame->context->services,
                             .executor = c};
        for (int k = 0; k < s->in_count; k++)
            *p++ = view_of(frame, s->in[k]);
        for (int k = 0; k < s->out_count; k++)
            *p++ = view_of(frame, s->out[k]);
    }
    assert(p == frame->pointers + count_pointers(plan));
}

static ort_status open_devices(ort_frame *f, ort_error *err)
{
    const ort_partition *p = f->plan->program->partition;
    ort_error own; /* providers always get one */
    err = err ? err : &own;
    for (int i = 0; p && i < p->count; i++) {
        size_t bytes = 0;
        if (!f->plan->devices[i])
            continue;
        err->message[0] = '\0';
        ORT_TRY(ort_device_status(p->list[i].row->frame(f->plan->devices[i], &f->devices[i],
                                                        &bytes, err), p->list[i].row, err));
    }
    return ORT_OK;
}

/* A large part of a huge page takes longer in small pages than the whole of it. */
static size_t whole_pages(size_t bytes)
{
    size_t part = bytes % ORT_MEMORY_LARGE;
    return part < ORT_MEMORY_LARGE / 4 ? bytes : bytes - part + ORT_MEMORY_LARGE;
}

static ort_status new_frame(ort_context *context, ort_plan *plan, ort_frame **frame, ort_error *err)
{
    ort_frame *f = calloc(1, sizeof *f);
    *frame = NULL;
    if (!f) {
        ort_plan_drop(plan);
        return ort_error_memory(err, sizeof *f);
    }
    f->plan = plan;
    f->context = context;
    ort_status status = ort_buffers_account(&context->buffers, plan->arena_bytes,
                                            "the arena of this model for these shapes", err);
    if (status != ORT_OK) {
        free_frame(f);
        return status;
    }
    f->arena = ort_memory_new(whole_pages(plan->arena_bytes));
    f->slots = calloc((size_t)plan->program->value_count + 1, sizeof *f->slots);
    f->calls = calloc((size_t)plan->step_count + 1, sizeof *f->calls);
    f->pointers = calloc((size_t)count_pointers(plan) + 1, sizeof *f->pointers);
    if (!f->arena || !f->slots || !f->calls || !f->pointers) {
        free_frame(f);
        return ort_error_memory(err, plan->arena_bytes);
    }
    init_slots(f);
    init_calls(f);
    status = open_devices(f, err);
    if (status != ORT_OK) {
        free_frame(f);
        return status;
    }
    *frame = f;
    return ORT_OK;
}

/* The first run is another than the one it was made for. */
static void forget_ahead(ort_frames *frames)
{
    ort_frame *f = frames->first;
    if (!f || !f->ahead)
        return;
    frames->first = f->next;
    free_frame(f);
}

static void forget_oldest(ort_frames *frames, const ort_program *program)
{
    int count = 0;
    for (ort_frame **f = &frames->first; *f; f = &(*f)->next) {
        if ((*f)->plan->program != program || ++count < KEPT_FRAMES)
            continue;
        ort_frame *old = *f;
        *f = old->next;
        free_frame(old);
        return;
    }
}

ort_status ort_frame_get(ort_context *context, ort_frames *frames, ort_program *program,
                         ort_value *const *given, const bool *wanted, ort_frame **frame,
                         ort_error *err)
{
    ort_plan *plan = NULL;
    for (ort_frame **at = &frames->first; *at; at = &(*at)->next) {
        ort_frame *f = *at;
        if (f->plan->program != program || !ort_plan_matches(f->plan, given, wanted))
            continue;
        *at = f->next;
        f->next = frames->first;
        frames->first = f;
        *frame = f;
        return ORT_OK;
    }
    forget_ahead(frames);
    ORT_TRY(ort_plan_get(program, given, wanted, &plan, err));
    forget_oldest(frames, program);
    ORT_TRY(new_frame(context, plan, frame, err));
    (*frame)->next = frames->first;
    frames->first = *frame;
    return ORT_OK;
}

void ort_frame_bind_given(ort_frame *frame, ort_value *const *given)
{
    const ort_plan *plan = frame->plan;
    for (int i = 0; i < plan->input_patches; i++) {
        const ort_patch *patch = &plan->inputs[i];
        ort_slot *slot = &frame->slots[patch->slot];
        ort_value *value = given[patch->port];
        if (value && value->kind == ORT_KIND_TENSOR) {
            assert(value->tensor.stride || ort_tensor_bytes(&value->tensor) ==
                                               ort_tensor_bytes(&slot->view.tensor));
            slot->view.kind = ORT_KIND_TENSOR;
            slot->view.tensor.data = value->tensor.data;
            slot->view.tensor.stride = value->tensor.stride;
            if (value->tensor.stride) /* with fewer rows than the plan may have been made for */
                slot->view.tensor.shape = value->tensor.shape;
        } else if (value) {
            show(slot, value);
        } else {
            slot->view.kind = ORT_KIND_NONE;
        }
        /* An alias in another shape is not the given value itself. */
        slot->origin = value && (value->kind != ORT_KIND_TENSOR ||
                                 ort_shape_equal(&slot->view.tensor.shape, &value->tensor.shape))
                           ? value
                           : NULL;
    }
}

void ort_frame_bind_output(ort_frame *frame, int output, void *data)
{
    const ort_plan *plan = frame->plan;
    assert(plan->direct[output]);
    for (int i = 0; i < plan->output_patches; i++)
        if (plan->outputs[i].port == output)
            frame->slots[plan->outputs[i].slot].view.tensor.data = data;
}

void ort_frame_bind_grown(ort_frame *frame, int output, const ort_tensor *grown)
{
    const ort_plan *plan = frame->plan;
    assert(plan->direct[output] && grown->stride);
    for (int i = 0; i < plan->output_patches; i++)
        if (plan->outputs[i].port == output)
            frame->slots[plan->outputs[i].slot].view.tensor = *grown;
}

void ort_frame_clear(ort_frame *frame)
{
    const ort_plan *plan = frame->plan;
    for (int i = 0; i < plan->dynamic_count; i++)
        ort_slot_drop(&frame->slots[plan->dynamic[i]]);
    for (size_t i = 0; i < frame->twins.count; i++)
        frame->twins.data[i].valid = false;
    if (frame->scratch.used_bytes)
        ort_arena_release(&frame->scratch);
}
