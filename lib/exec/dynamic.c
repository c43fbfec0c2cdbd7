/* dynamic.c - a step whose shapes are only found while it runs: infer with the values at hand, take
 * storage from the run's buffers, call `shape`, call `run`. Later steps rely on what the plan
 * promised of its results, so this is checked before any of them reads one.
 */
#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "exec/frame.h"
#include "op/eval.h"

static const ort_fact **input_facts(ort_frame *frame, const ort_exec_call *c)
{
    const ort_step *s = c->ps->step;
    const ort_graph *graph = frame->plan->program->graph;
    const ort_fact **list = ort_arena_array(&frame->scratch, (size_t)s->in_count + 1, sizeof *list);
    ort_fact *facts = ort_arena_array(&frame->scratch, (size_t)s->in_count + 1, sizeof *facts);
    if (!list || !facts)
        return NULL;
    for (int i = 0; i < s->in_count; i++) {
        if (!c->call.in[i])
            continue;
        facts[i] = ort_fact_of_value(c->call.in[i]);
        if (facts[i].type.kind != ORT_TYPE_TENSOR)
            facts[i].type = graph->values.data[s->in[i]]->fact.type;
        list[i] = &facts[i];
    }
    return list;
}

static ort_status give_storage(ort_frame *frame, ort_slot *slot, ort_dtype dtype,
                               const ort_shape *shape, ort_error *err)
{
    ort_tensor tensor = {.dtype = dtype, .shape = *shape};
    ort_block *block;
    ORT_TRY(ort_shape_check(shape, dtype, err));
    ORT_TRY(ort_buffers_get(&frame->context->buffers, ort_tensor_bytes(&tensor), &block, err));
    ort_slot_drop(slot);
    slot->block = block;
    tensor.data = ort_block_data(block);
    slot->view.kind = ORT_KIND_TENSOR;
    slot->view.tensor = tensor;
    slot->set = true;
    return ORT_OK;
}

static bool touches_other_kinds(const ort_frame *frame, const ort_exec_call *c,
                                const ort_fact *out)
{
    for (int i = 0; i < c->call.in_count; i++)
        if (c->call.in[i] && c->call.in[i]->kind != ORT_KIND_TENSOR)
            return true;
    for (int i = 0; i < c->call.out_count; i++)
        if (out[i].type.kind != ORT_TYPE_TENSOR && out[i].type.kind != ORT_TYPE_UNKNOWN)
            return true;
    return c->call.in_count == 0;
}

static ort_status infer_and_allocate(ort_frame *frame, ort_exec_call *c, ort_error *err)
{
    const ort_step *s = c->ps->step;
    const ort_fact **in = input_facts(frame, c);
    ort_fact *out = ort_arena_array(&frame->scratch, (size_t)s->out_count + 1, sizeof *out);
    if (!in || !out)
        return ort_error_memory(err, sizeof *out);
    for (int i = 0; i < s->out_count; i++)
        out[i].type.rank = -1;
    ort_infer x = {.node = s->node,
                   .op = s->op,
                   .opset = s->node->opset,
                   .in_count = s->in_count,
                   .out_count = s->out_count,
                   .in = in,
                   .out = out,
                   .arena = &frame->scratch,
                   .graph = frame->plan->program->graph};
    ort_status status = ort_op_infer(&x, err);
    if (status != ORT_OK)
        return ort_error_recast(err, status == ORT_ERROR_MODEL ? ORT_ERROR_RUN : status,
                                "these values don't fit");
    for (int i = 0; i < s->out_count; i++) {
        ort_shape shape;
        if (s->out[i] == ORT_ID_NONE)
            continue;
        if (ort_type_concrete(&out[i].type, &shape))
            ORT_TRY(give_storage(frame, &frame->slots[s->out[i]], out[i].type.dtype, &shape, err));
        else if (!touches_other_kinds(frame, c, out))
            return ort_error_set(err, ORT_ERROR_RUN,
                                 "the shape of output %d can't be determined from these inputs", i);
    }
    return ORT_OK;
}

/* Same data, another shape: share what is counted, copy what is not. */
static bool share_input(ort_frame *frame, const ort_exec_call *c)
{
    const ort_step *s = c->ps->step;
    assert(ort_value_is_view(c->call.in[0]));
    ort_slot *from = ort_slot_of(c->call.in[0]), *to = &frame->slots[s->out[0]];
    ort_tensor tensor = to->view.tensor;
    assert(ort_tensor_bytes(&tensor) == ort_tensor_bytes(&from->view.tensor));
    tensor.data = from->view.tensor.data;
    if (from->block) {
        ort_block_drop(to->block);
        to->block = from->block;
        to->block->references++;
    } else if (from->held) {
        ort_block_drop(to->block);
        to->block = NULL;
        to->held = ort_value_retain(from->held);
    } else {
        return false;
    }
    to->view.tensor = tensor;
    return true;
}

static ort_status run_alias(ort_frame *frame, ort_exec_call *c)
{
    ort_value *in = c->call.in[0], *out = c->call.out[0];
    if (share_input(frame, c))
        return ORT_OK;
    ort_tensor_copy_data(&out->tensor, &in->tensor);
    return ORT_OK;
}

static ort_status shape_step(ort_frame *frame, ort_exec_call *c, ort_block **scratch,
                             ort_error *err)
{
    const ort_step *s = c->ps->step;
    const ort_tensor **views;
    size_t threads = (size_t)frame->plan->program->env->threads, bytes, total;
    if (!s->op->impl->shape || s->device >= 0)
        return ORT_OK;
    views = ort_arena_array(&frame->scratch, (size_t)(s->in_count + s->out_count) + 1,
                            sizeof *views);
    if (!views)
        return ort_error_memory(err, sizeof *views);
    for (int i = 0; i < s->in_count + s->out_count; i++)
        if (c->call.in[i]) /* out pointers follow the in pointers */
            views[i] = &c->call.in[i]->tensor;
    ort_shaping shaping = {.node = s->node,
                           .state = s->state,
                           .in_count = s->in_count,
                           .out_count = s->out_count,
                           .in = views,
                           .out = views + s->in_count,
                           .k = c->call.k,
                           .arena = &frame->scratch};
    ORT_TRY(s->op->impl->shape(&shaping, err));
    c->call.plan_state = shaping.plan_state;
    c->call.thread_bytes = ort_round_up(shaping.thread_bytes, 64);
    total = ort_round_up(shaping.workspace_bytes, 64);
    if (!ort_mul_size(c->call.thread_bytes, threads, &bytes) || !ort_add_size(total, bytes, &bytes))
        return ort_error_memory(err, shaping.thread_bytes);
    if (!bytes)
        return ORT_OK;
    ORT_TRY(ort_buffers_get(&frame->context->buffers, bytes, scratch, err));
    c->call.workspace = ort_block_data(*scratch);
    c->call.thread_space = (char *)ort_block_data(*scratch) + total;
    return ORT_OK;
}

static ort_status check_results(const ort_frame *frame, const ort_exec_call *c, ort_error *err)
{
    const ort_step *s = c->ps->step;
    char got[200], want[200];
    for (int i = 0; i < s->out_count; i++) {
        if (s->out[i] == ORT_ID_NONE)
            continue;
        const ort_slot_plan *sp = &frame->plan->slots[s->out[i]];
        const ort_slot *slot = &frame->slots[s->out[i]];
        if (sp->place != ORT_PLACE_DYNAMIC)
            continue;
        if (!slot->set)
            return ort_error_set(err, ORT_ERROR_RUN, "output %d was not computed", i);
        if (!sp->fixed)
            continue;
        bool tensor = slot->view.kind == ORT_KIND_TENSOR || slot->view.kind == ORT_KIND_DEVICE;
        if (tensor && slot->view.tensor.dtype == sp->tensor.dtype &&
            ort_shape_equal(&slot->view.tensor.shape, &sp->tensor.shape))
            continue;
        return ort_error_set(err, ORT_ERROR_RUN,
                             "output %d is %s[%s], inference promised %s[%s]; this is a defect of "
                             "the operator or of a declared shape",
                             i, ort_dtype_name(slot->view.tensor.dtype),
                             ort_shape_list(&slot->view.tensor.shape, got, sizeof got),
                             ort_dtype_name(sp->tensor.dtype),
                             ort_shape_list(&sp->tensor.shape, want, sizeof want));
    }
    return ORT_OK;
}

ort_status ort_frame_run_dynamic(ort_frame *frame, ort_exec_call *c, ort_error *err)
{
    const ort_step *s = c->ps->step;
    ort_block *scratch = NULL;
    ort_status status = ORT_OK;
    assert(c->ps->dynamic && c->frame == frame);
    c->failure = ORT_OK;
    for (int i = 0; i < s->out_count; i++)
        if (s->out[i] != ORT_ID_NONE && frame->plan->slots[s->out[i]].place == ORT_PLACE_DYNAMIC)
            ort_slot_drop(&frame->slots[s->out[i]]);
    if (!(s->traits & (ORT_TRAIT_DYNAMIC | ORT_TRAIT_CONTROL)))
        ORT_TRY(infer_and_allocate(frame, c, err));
    if ((s->traits & ORT_TRAIT_ALIAS) && c->call.out[0] && c->call.in[0] &&
        c->call.out[0]->kind == ORT_KIND_TENSOR && c->call.in[0]->kind == ORT_KIND_TENSOR) {
        status = run_alias(frame, c);
    } else {
        status = shape_step(frame, c, &scratch, err);
        if (status == ORT_OK)
            status = c->run(&c->call, err);
    }
    ort_block_drop(scratch);
    if (status == ORT_OK && c->failure)
        status = ort_error_set(err, c->failure, "an output could not be kept");
    if (status == ORT_OK)
        status = check_results(frame, c, err);
    return status;
}
