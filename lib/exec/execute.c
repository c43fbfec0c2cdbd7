/* execute.c - one outermost run: a frame, the caller's memory bound to it, the steps, the results.
 *
 * Results whose place the plan knows are written where the caller wants them; the others are handed
 * over or copied at the end. Nothing of the run's memory leaves it.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/huge.h"
#include "exec/away.h"
#include "exec/seen.h"
#include "profile/profile.h"

static ort_status begin(ort_execution *x, ort_error *err)
{
    ort_context *context = x->context;
    const ort_run_options *options = x->options;
    size_t count = (size_t)x->session->output_count;
    if (context->result_count < x->session->output_count) {
        ort_result *results = realloc(context->results, count * sizeof *results);
        if (!results)
            return ort_error_memory(err, count * sizeof *results);
        context->results = results;
        context->result_count = x->session->output_count;
    }
    if (count)
        memset(context->results, 0, count * sizeof *context->results);
    ORT_TRY(ort_sights_begin(x->session, &context->sights, err));
    context->options = options;
    context->random = 0;
    if (options && options->one_stream) {
        ort_mt19937_seed(&context->stream, options->seed);
        ort_mt19937_skip(&context->stream, options->stream_skip);
    }
    context->watched = ort_budget_current() ||
                       (options && (options->cancel || options->on_node || options->profile ||
                                    (options->on_value && x->session->watches) ||
                                    options->timeout_s > 0));
    context->any_order = x->session->any_order;
    context->budgeted = context->watched || context->buffers.account;
    if (context->budgeted)
        ort_budget_begin(&context->budget, context->buffers.account,
                         options ? options->timeout_s : 0.0, options ? options->cancel : NULL);
    if (options && options->profile)
        ort_profile_begin_run(options->profile);
    return ORT_OK;
}

/* ---- results */

/* Is it the same buffer as the input that the output extends in place? */
static bool is_own_past(const ort_execution *x, ort_value *const *given, int o)
{
    const ort_program *program = x->session->program;
    const ort_value *output = x->outputs[o];
    for (int i = 0; i < program->growth_count; i++) {
        const ort_value *past = given[program->growths[i].given];
        if (program->growths[i].output == o)
            return past && past->kind == ORT_KIND_TENSOR &&
                   past->tensor.data == output->tensor.data &&
                   ort_shape_equal(&past->tensor.shape, &output->tensor.shape);
    }
    return false;
}

/* Memory that an input reads must not be written before the end of the run. The bytes of an input
 * are asked for where it begins before the output: caches have as many inputs as outputs. */
static bool is_also_input(const ort_execution *x, const ort_value *output)
{
    const char *first = output->tensor.data;
    const char *end = first ? first + ort_tensor_bytes(&output->tensor) : NULL;
    for (int i = 0; first && i < x->session->input_count; i++) {
        const ort_value *in = x->inputs[i];
        const char *at = in && in->kind == ORT_KIND_TENSOR ? in->tensor.data : NULL;
        if (at && at < end && (at > first || at + ort_tensor_bytes(&in->tensor) > first))
            return true;
    }
    return false;
}

static ort_status check_given(const ort_execution *x, int o, const ort_value *result,
                              ort_error *err)
{
    const ort_value *given = x->outputs[o];
    char got[200], want[200];
    bool tensors = ort_value_get_kind(given) == ORT_VALUE_TENSOR && result->kind == ORT_KIND_TENSOR;
    if (ort_value_is_away(given))
        ORT_TRY(ort_device_check(x->session, ort_value_device(given), "output",
                                 x->session->outputs[o].name, err));
    if (tensors && given->tensor.dtype == result->tensor.dtype &&
        ort_shape_equal(&given->tensor.shape, &result->tensor.shape))
        return ORT_OK;
    if (!tensors)
        return ort_error_set(err, ORT_ERROR_DATA,
                             "output '%s' can't be written in place: it isn't a tensor",
                             x->session->outputs[o].name);
    return ort_error_set(err, ORT_ERROR_DATA,
                         "output '%s' is %s[%s], the memory given for it is %s[%s]",
                         x->session->outputs[o].name, ort_dtype_name(result->tensor.dtype),
                         ort_shape_list(&result->tensor.shape, want, sizeof want),
                         ort_dtype_name(given->tensor.dtype),
                         ort_shape_list(&given->tensor.shape, got, sizeof got));
}

/* Make outputs[o] either a fitting given value or NULL. */
static ort_status settle_given(ort_execution *x, int o, const ort_value *result, ort_error *err)
{
    if (!x->outputs[o])
        return ORT_OK;
    ort_status status = check_given(x, o, result, x->reuse && x->reuse[o] ? NULL : err);
    if (status == ORT_OK || !x->reuse || !x->reuse[o])
        return status;
    ort_value_free(x->outputs[o]);
    x->outputs[o] = NULL;
    return ORT_OK;
}

/* Memory that is counted goes when its value does; else the session keeps it. *taken: so much of
 * that the run has. */
static ort_status new_result(const ort_execution *x, const ort_tensor *type, size_t *taken,
                             ort_value **value, ort_error *err)
{
    ort_tensor tensor = {.dtype = type->dtype, .shape = type->shape};
    size_t bytes = ort_tensor_bytes(&tensor);
    ort_spares *spares = x->context->buffers.account ? NULL : x->session->spares;
    if (bytes < (spares ? ORT_SPARE_LEAST : ORT_MEMORY_LARGE))
        return ort_value_new_unset_(type->dtype, &type->shape, value, err);
    ORT_TRY(ort_value_new_view(&tensor, value, err));
    ort_status status = ort_value_charge(*value, bytes, err);
    if (status == ORT_OK)
        tensor.data = spares ? ort_spares_take(spares, bytes, taken) : ort_memory_new(bytes);
    if (status == ORT_OK && !tensor.data)
        status = ort_error_memory(err, bytes);
    if (status != ORT_OK) {
        ort_value_free(*value);
        *value = NULL;
        return status;
    }
    (*value)->tensor.data = (*value)->storage = tensor.data;
    (*value)->release = spares ? ort_spares_give : NULL;
    (*value)->release_arg = spares;
    return ORT_OK;
}

static ort_state *state_of(const ort_execution *x, int output)
{
    return x->states ? ort_states_of_output(x->states, output) : NULL;
}

/* Direct results get their memory before the run. */
static ort_status bind_results(ort_execution *x, ort_value *const *given, ort_frame *frame,
                               ort_error *err)
{
    const ort_plan *plan = frame->plan;
    size_t taken = 0;
    assert(plan->program == x->session->program);
    assert(plan->program->output_count == x->session->output_count);
    for (int o = 0; o < x->session->output_count; o++) {
        ort_value *view = &frame->slots[plan->program->outputs[o]].view;
        ort_result *result = &x->context->results[o];
        const ort_state *state = state_of(x, o);
        ort_value *target;
        if (!plan->direct[o])
            continue;
        if (frame->loan && ort_loan_takes(x, o)) {
            ORT_TRY(settle_given(x, o, view, err));
            ORT_TRY(ort_loan_bind_output(x, frame, o, err));
            continue;
        }
        if (state && state->growth) {
            ort_frame_bind_grown(frame, o, &state->present);
            continue;
        }
        ORT_TRY(settle_given(x, o, view, err));
        if (x->outputs[o] && is_also_input(x, x->outputs[o]) && !is_own_past(x, given, o)) {
            ORT_TRY(new_result(x, &view->tensor, &taken, &result->temporary, err));
            target = result->temporary;
        } else {
            if (!x->outputs[o]) {
                ORT_TRY(new_result(x, &view->tensor, &taken, &x->outputs[o], err));
                result->own = true;
            }
            target = x->outputs[o];
        }
        ort_frame_bind_output(frame, o, target->tensor.data);
    }
    return ORT_OK;
}

static ort_status copy_tensor(ort_value *to, const ort_tensor *from, ort_error *err)
{
    assert(to->tensor.dtype == from->dtype && ort_shape_equal(&to->tensor.shape, &from->shape));
    if (from->dtype != ORT_DTYPE_STRING) {
        ort_tensor_copy_data(&to->tensor, from);
        return ORT_OK;
    }
    const ort_string *strings = from->data;
    for (int64_t i = 0; i < ort_tensor_count(from); i++)
        ORT_TRY(ort_value_set_string_(to, i, strings[i].ptr, strings[i].length, err));
    return ORT_OK;
}

/* A dynamic tensor whose memory can leave the run with it; NULL when it must be copied. */
static ort_value *take_result(ort_slot *slot)
{
    ort_value *value = NULL;
    if (slot->view.kind != ORT_KIND_TENSOR || slot->view.tensor.dtype == ORT_DTYPE_STRING)
        return NULL;
    assert(!slot->view.tensor.stride); /* what leaves the run is plain */
    if (slot->block && slot->block->references == 1) {
        if (ort_block_to_value(slot->block, &slot->view.tensor, &value, NULL))
            return NULL;
        slot->block = NULL;
        (void)ort_value_detach(value);
        return value;
    }
    if (slot->held && slot->held->references == 1 &&
        slot->held->tensor.data == slot->view.tensor.data &&
        ort_shape_equal(&slot->held->tensor.shape, &slot->view.tensor.shape) &&
        ort_value_detach(slot->held)) {
        value = slot->held;
        slot->held = NULL;
        return value;
    }
    return NULL;
}

typedef struct last_copy { /* neighbours often share an item: the keys of a row of maps */
    ort_value *from, *to;
} last_copy;

static ort_status copy_item(ort_value **item, last_copy *last, ort_error *err)
{
    if (*item != last->from) {
        ort_value *copy = NULL;
        ORT_TRY(ort_value_clone(*item, &copy, err));
        ort_value_free(last->from);
        ort_value_free(last->to);
        last->from = ort_value_retain(*item); /* no other value gets this address meanwhile */
        last->to = copy;
    }
    ort_value_free(*item);
    *item = ort_value_retain(last->to);
    return ORT_OK;
}

/* Make a sequence or map that nobody else holds fit to leave the run: items that others hold, that
 * lie in the run's memory or that point at strings of the model become copies. */
static ort_status take_items(ort_value *value, last_copy *last, ort_error *err)
{
    for (size_t i = 0; i < value->count; i++) {
        ort_value *item = value->items[i];
        bool alone = item && item->references == 1;
        if (!item)
            continue;
        if (alone && item->kind != ORT_KIND_TENSOR)
            ORT_TRY(take_items(item, last, err));
        else if (!alone || item->tensor.dtype == ORT_DTYPE_STRING || ort_value_is_view(item) ||
                 !ort_value_detach(item))
            ORT_TRY(copy_item(&value->items[i], last, err));
    }
    return ORT_OK;
}

/* A sequence or map; *result stays NULL when it must be copied as a whole. */
static ort_status take_container(ort_slot *slot, ort_value **result, ort_error *err)
{
    ort_value *value = slot->held;
    last_copy last = {NULL, NULL};
    if (!value || value->kind == ORT_KIND_TENSOR || value->references != 1)
        return ORT_OK;
    ort_status status = take_items(value, &last, err);
    ort_value_free(last.from);
    ort_value_free(last.to);
    if (status != ORT_OK)
        return status;
    *result = value;
    slot->held = NULL;
    slot->view.items = NULL;
    slot->view.count = 0;
    return ORT_OK;
}

static bool read_again(const ort_execution *x, int o)
{
    const ort_program *program = x->session->program;
    for (int k = 0; k < program->output_count; k++)
        if (k != o && program->outputs[k] == program->outputs[o])
            return true;
    return x->session->keep_all;
}

static ort_status finish_result(ort_execution *x, ort_frame *frame, int o, ort_error *err)
{
    ort_slot *slot = &frame->slots[frame->plan->program->outputs[o]];
    const ort_state *state = state_of(x, o);
    if (state && slot->origin && slot->origin == state->value) { /* the state stays as it is */
        ort_value_free(x->outputs[o]);
        x->outputs[o] = ort_value_retain(state->value);
        return ORT_OK;
    }
    ORT_TRY(settle_given(x, o, &slot->view, err));
    if (x->outputs[o])
        return copy_tensor(x->outputs[o], &slot->view.tensor, err);
    x->context->results[o].own = true;
    if (!read_again(x, o)) {
        x->outputs[o] = take_result(slot);
        ORT_TRY(take_container(slot, &x->outputs[o], err));
    }
    return x->outputs[o] ? ORT_OK : ort_value_clone(&slot->view, &x->outputs[o], err);
}

static ort_status finish_results(ort_execution *x, ort_frame *frame, ort_error *err)
{
    for (int o = 0; o < x->session->output_count; o++) {
        const ort_value *temporary = x->context->results[o].temporary;
        if (!ort_plan_wants(frame->plan, o))
            continue;
        if (frame->loan && ort_loan_takes(x, o)) {
            if (!frame->plan->direct[o])
                ORT_TRY(settle_given(x, o, &frame->slots[frame->plan->program->outputs[o]].view,
                                     err));
            ORT_TRY(ort_loan_finish_output(x, frame, o, err));
            continue;
        }
        if (temporary)
            ort_tensor_copy_data(&x->outputs[o]->tensor, &temporary->tensor);
        else if (!frame->plan->direct[o])
            ORT_TRY(finish_result(x, frame, o, err));
    }
    return ORT_OK;
}

/* ---- values for the callback of a session that keeps all */

static void show(const ort_execution *x, const ort_frame *frame, ort_id id)
{
    const ort_graph_value *value = frame->plan->program->graph->values.data[id];
    if (!x->session->shows_outputs || value->is_output) /* others were made by passes */
        x->options->on_value(x->options->callback_arg, value->name, &frame->slots[id].view);
}

static void show_values(const ort_execution *x, const ort_frame *frame)
{
    const ort_program *program = frame->plan->program;
    if (!x->session->keep_all || !x->options || !x->options->on_value)
        return;
    for (int id = 0; id < program->value_count; id++)
        if (ort_program_is_known_result(program, id))
            show(x, frame, (ort_id)id);
    for (int i = 0; i < program->step_count; i++)
        for (int k = 0; k < program->steps[i].out_count; k++) {
            ort_id id = program->steps[i].out[k];
            if (id == ORT_ID_NONE || frame->plan->slots[id].place == ORT_PLACE_NONE ||
                ort_program_is_known_result(program, id))
                continue;
            show(x, frame, id);
        }
}

/* ---- the run */

static ort_status find_frame(ort_execution *x, ort_value *const *given, ort_frame **frame,
                             ort_error *err)
{
    ort_context *context = x->context;
    *frame = context->frames.first;
    if (*frame && (*frame)->plan->program == x->session->program &&
        ort_plan_matches((*frame)->plan, given, x->wanted))
        return ORT_OK;
    ORT_TRY(ort_exec_check_inputs(x->session, x->inputs, err));
    ort_status status =
        ort_frame_get(context, &context->frames, x->session->program, given, x->wanted, frame, err);
    /* With checked inputs a contradiction is between their shapes and the model's arithmetic. */
    return status == ORT_ERROR_MODEL
               ? ort_error_recast(err, ORT_ERROR_DATA, "these input shapes don't fit")
               : status;
}

/* The frame in which all growing states have room. */
static ort_status fit_frame(ort_execution *x, ort_value *const *given, ort_frame **frame,
                            ort_error *err)
{
    const ort_program *program = x->session->program;
    bool moved = false;
    if (x->states)
        ORT_TRY(ort_states_fit(x->states, program, NULL, &moved, err));
    do {
        ORT_TRY(find_frame(x, given, frame, err));
        moved = false;
        if (x->states)
            ORT_TRY(ort_states_fit(x->states, program, (*frame)->plan, &moved, err));
    } while (moved);
    return ORT_OK;
}

static ort_status run_frame(ort_execution *x, ort_value *const *given, ort_frame *frame,
                            ort_error *err)
{
    ort_frame_bind_given(frame, given);
    ORT_TRY(bind_results(x, given, frame, err));
    ORT_TRY(ort_frame_run(frame, err));
    show_values(x, frame);
    ort_status status = finish_results(x, frame, err);
    ort_frame_clear(frame);
    return status;
}

/* The memory of the first run, which was reserved with the session, in one call. What is larger
 * comes as it is used, while it still is in near caches. */
static void touch_arena(const ort_frame *frame)
{
    const size_t most = (size_t)4 << 20, bytes = frame->plan->arena_bytes;
    ort_pages_touch(frame->arena, bytes < most ? bytes : most);
}

static ort_status run_program(ort_execution *x, ort_value *const *given, ort_error *err)
{
    ort_frame *frame = NULL;
    ort_status status;
    ORT_TRY(fit_frame(x, given, &frame, err));
    if (frame->ahead)
        touch_arena(frame);
    frame->ahead = false;
    bool lends = x->session->partition.count > 1 && ort_loan_needed(x);
    status = lends ? ort_loan_begin(x, given, frame, err) : ORT_OK;
    if (status == ORT_OK)
        status = run_frame(x, given, frame, err);
    if (lends || frame->lent)
        ort_loan_end(frame, status);
    return status;
}

/* ---- stand-ins: of values on devices, and of a scalar that comes as one element of any rank */

static bool is_one(const ort_execution *x, int i)
{
    const ort_value *value = x->inputs[i];
    const ort_type *type = &x->session->inputs[i].type;
    return ort_value_get_kind(value) == ORT_VALUE_TENSOR && value->tensor.shape.rank > 0 &&
           type->kind == ORT_TYPE_TENSOR && type->rank == 0 &&
           ort_tensor_count(&value->tensor) == 1;
}

static bool needs_stand_ins(const ort_execution *x)
{
    bool scalars = x->session->has_scalars, devices = x->session->partition.count > 1;
    for (int i = 0; (scalars || devices) && i < x->session->input_count; i++)
        if ((scalars && is_one(x, i)) || (devices && ort_value_is_away(x->inputs[i])))
            return true;
    return false;
}

static ort_status run_in(ort_execution *x, ort_error *err);

static ort_status stand_in(const ort_execution *x, int i, ort_value **value, ort_error *err)
{
    bool one = is_one(x, i);
    if (ort_value_is_away(x->inputs[i]))
        ORT_TRY(ort_loan_stand_in(x, i, value, err));
    else if (one)
        ORT_TRY(ort_value_clone(x->inputs[i], value, err));
    else
        *value = ort_value_retain(x->inputs[i]);
    if (one) /* the model counts on rank 0, so that is what it gets */
        (*value)->tensor.shape.rank = 0;
    return ORT_OK;
}

static ort_status run_with_stand_ins(ort_execution *x, ort_error *err)
{
    int count = x->session->input_count;
    ort_value *const *given = x->inputs;
    ort_value **inputs = calloc((size_t)count + 1, sizeof *inputs);
    ort_status status = inputs ? ORT_OK : ort_error_memory(err, sizeof *inputs);
    for (int i = 0; i < count && status == ORT_OK; i++)
        status = stand_in(x, i, &inputs[i], err);
    x->inputs = inputs;
    x->origins = given;
    if (status == ORT_OK)
        status = run_in(x, err);
    for (int i = 0; inputs && i < count; i++)
        ort_value_free(inputs[i]);
    free(inputs);
    x->inputs = given;
    x->origins = NULL;
    return status;
}

static bool overrides_default(const ort_execution *x)
{
    for (int i = 0; i < x->session->input_count; i++)
        if (x->inputs[i] && x->session->inputs[i].default_value)
            return true;
    return false;
}

/* Inputs that the session takes for constants are not given to its program. */
static ort_status run_in(ort_execution *x, ort_error *err)
{
    const ort_session *s = x->session;
    ort_value *small[32] = {0}, **given = small;
    ort_status status;
    if (!s->assumes_defaults)
        return run_program(x, x->inputs, err);
    if (s->program_input_count > 32)
        given = malloc(sizeof *given * (size_t)s->program_input_count);
    if (!given)
        return ort_error_memory(err, sizeof *given * (size_t)s->program_input_count);
    for (int i = 0; i < s->program_input_count; i++) {
        assert(s->program_inputs[i] >= 0 && s->program_inputs[i] < s->input_count);
        given[i] = x->inputs[s->program_inputs[i]];
    }
    status = run_program(x, given, err);
    if (given != small)
        free(given);
    return status;
}

static ort_status run_here(ort_execution *x, ort_error *err)
{
    if (x->session->assumes_defaults && overrides_default(x)) {
        ort_session *general = NULL;
        ORT_TRY(ort_exec_session_general(x->session, &general, err));
        x->session = general;
    }
    const ort_env *env = x->session->env;
    unsigned control;
    ort_status status;

    ORT_TRY(begin(x, err));
    control = ort_cpu_set_flush(!env->options.keep_denormals);
    ort_pool_enter(env->pool, env->spin_us, &x->context->demand);
    status = needs_stand_ins(x) ? run_with_stand_ins(x, err) : run_in(x, err);
    ort_pool_leave(env->pool, &x->context->demand);
    ort_cpu_restore_fp(control);
    ort_buffers_reset(&x->context->buffers);
    if (x->context->budgeted)
        status = ort_budget_end(&x->context->budget, status, err);
    if (x->options && x->options->profile)
        ort_profile_end_run(x->options->profile, status == ORT_OK);
    x->context->options = NULL;
    for (int o = 0; o < x->session->output_count; o++) {
        const ort_result *result = &x->context->results[o];
        ort_value_free(result->temporary);
        if (status != ORT_OK && result->own) {
            ort_value_free(x->outputs[o]);
            x->outputs[o] = NULL;
        }
        if (x->context->buffers.account && result->own)
            ort_value_leave_account(x->outputs[o]);
    }
    return status;
}

/* A device that failed has given nothing that anyone has seen: the run begins again elsewhere. */
ort_status ort_exec_run(ort_execution *x, ort_error *err)
{
    const ort_session *first = x->session;
    ort_session *host = NULL;
    ort_error own = ORT_ERROR_INIT, *problem = err ? err : &own;
    if (!ort_exec_falls_back(first) || x->states || ort_loan_needed(x))
        return run_here(x, err);
    host = ort_exec_session_host(first);
    if (!host) {
        ort_status status = run_here(x, problem);
        if (status != ORT_ERROR_DEVICE)
            return status;
        ORT_TRY(ort_exec_fall_back(first, problem->message, &host, err));
        if (err)
            *err = own;
    }
    x->session = host;
    return run_here(x, err);
}
