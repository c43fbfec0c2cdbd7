/* state.c - states of a binding: starting, growing, handing over (state.h). */
#include "exec/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "exec/session.h"

#define FIRST_ROOM 64 /* rows */

void ort_states_release(ort_states *states)
{
    for (int i = 0; i < states->count; i++) {
        ort_state *st = states->data[i];
        ort_buffers_refund(states->buffers, st->bytes);
        ort_value_free(st->start);
        ort_value_free(st->value);
        ort_value_free(st->shown);
        free(st);
    }
    free(states->data);
}

ort_state *ort_states_of_input(const ort_states *states, int input)
{
    for (int i = 0; i < states->count; i++)
        if (states->data[i]->input == input)
            return states->data[i];
    return NULL;
}

ort_state *ort_states_of_output(const ort_states *states, int output)
{
    for (int i = 0; i < states->count; i++)
        if (states->data[i]->output == output)
            return states->data[i];
    return NULL;
}

/* ---- new states */

static const ort_growth *growth_of(const ort_session *s, int input, int output)
{
    int given = input;
    if (s->assumes_defaults)
        for (given = 0; given < s->program_input_count; given++)
            if (s->program_inputs[given] == input)
                break;
    const ort_growth *growth = ort_program_growth(s->program, given);
    if (!growth || growth->output != output || s->inputs[input].type.rank <= growth->axis)
        return NULL;
    return growth;
}

static ort_status check_pair(const ort_states *states, const ort_port *in, const ort_port *out,
                             int input, int output, ort_error *err)
{
    const ort_state *taken = ort_states_of_output(states, output);
    if (ort_states_of_input(states, input))
        return ort_error_set(err, ORT_ERROR_USAGE, "input '%s' is a state already", in->name);
    if (taken)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "output '%s' is the next value of input '%s' already", out->name,
                             states->session->inputs[taken->input].name);
    if (in->type.kind == out->type.kind &&
        (in->type.kind != ORT_TYPE_TENSOR || in->type.dtype == out->type.dtype) &&
        (in->type.rank < 0 || out->type.rank < 0 || in->type.rank == out->type.rank))
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_USAGE, "output '%s' is %s, which input '%s' (%s) can't "
                         "take as its next value", out->name, out->type_text, in->name,
                         in->type_text);
}

ort_status ort_states_add(ort_states *states, int input, int output, ort_error *err)
{
    const ort_session *s = states->session;
    ORT_TRY(check_pair(states, &s->inputs[input], &s->outputs[output], input, output, err));
    size_t count = (size_t)states->count + 1;
    ort_state **data = realloc(states->data, count * sizeof *data);
    if (!data)
        return ort_error_memory(err, count * sizeof *data);
    states->data = data;
    ort_state *st = calloc(1, sizeof *st);
    if (!st)
        return ort_error_memory(err, sizeof *st);
    st->input = input;
    st->output = output;
    st->growth = growth_of(s, input, output);
    data[states->count++] = st;
    return ORT_OK;
}

/* ---- memory of growing states */

static int64_t rows_of(const ort_state *st)
{
    return st->value->tensor.shape.dim[st->growth->axis];
}

/* Elements of a row, of all axes behind the growing one. */
static int64_t row_count(const ort_state *st, const ort_shape *shape)
{
    return ort_shape_count_range(shape, st->growth->axis + 1, shape->rank);
}

static void copy_rows(const ort_state *st, const ort_tensor *from, ort_tensor *to)
{
    int axis = st->growth->axis;
    assert(axis > 0 && axis < from->shape.rank && from->dtype == to->dtype);
    assert(ort_shape_equal(&from->shape, &to->shape));
    int64_t row = row_count(st, &from->shape), rows = from->shape.dim[axis];
    int64_t heads = ort_shape_count_range(&from->shape, 0, axis);
    size_t each = (size_t)ort_dtype_bits(from->dtype) / 8;
    size_t bytes = (size_t)(rows * row) * each;
    size_t from_head = (size_t)(from->stride ? from->stride[axis - 1] : rows * row) * each;
    size_t to_head = (size_t)(to->stride ? to->stride[axis - 1] : rows * row) * each;
    assert(!bytes || (from_head >= bytes && to_head >= bytes)); /* heads don't overlap */
    for (int64_t h = 0; bytes && h < heads; h++)
        memcpy((char *)to->data + (size_t)h * to_head, (char *)from->data + (size_t)h * from_head,
               bytes);
}

/* Make `value` a view of memory with room for `room` rows; the rows of `from` are in it. */
static ort_status lay(const ort_states *states, ort_state *st, const ort_tensor *from, int64_t room,
                      ort_error *err)
{
    ort_tensor whole = {.dtype = from->dtype, .shape = from->shape};
    int axis = st->growth->axis;
    assert(room >= from->shape.dim[axis]);
    whole.shape.dim[axis] = room;
    ORT_TRY(ort_shape_check(&whole.shape, whole.dtype, err));
    size_t bytes = ort_tensor_bytes(&whole);
    ORT_TRY(ort_buffers_account(states->buffers, bytes, "a state", err));
    void *memory = ort_memory_new(bytes);
    ort_status status = memory ? ORT_OK : ort_error_memory(err, bytes);
    if (status == ORT_OK && !st->value)
        status = ort_value_new_view(&whole, &st->value, err);
    if (status != ORT_OK) {
        free(memory);
        ort_buffers_refund(states->buffers, bytes);
        return status;
    }
    int64_t stride[ORT_MAX_RANK];
    ort_shape_strides(&whole.shape, stride);
    whole.stride = stride;
    whole.data = memory;
    whole.shape = from->shape;
    copy_rows(st, from, &whole); /* `from` may be the value itself */
    memcpy(st->stride, stride, sizeof stride);
    free(st->value->storage);
    st->value->storage = memory;
    st->value->tensor = whole;
    st->value->tensor.stride = st->stride;
    ort_buffers_refund(states->buffers, st->bytes);
    st->bytes = bytes;
    return ORT_OK;
}

/* Room for at least `rows`: doubled, so that all copies together are fewer than the rows. */
static ort_status make_room(const ort_states *states, ort_state *st, int64_t rows, ort_error *err)
{
    int64_t room = 2 * ort_plan_room(&st->value->tensor, st->growth->axis);
    return lay(states, st, &st->value->tensor, room > rows ? room : rows, err);
}

/* From here on the state is handed over. */
static ort_status flatten(const ort_states *states, ort_state *st, ort_error *err)
{
    assert(st->growth && st->value->tensor.stride == st->stride);
    ort_tensor plain = st->value->tensor;
    size_t bytes = ort_tensor_bytes(&plain);
    plain.stride = NULL;
    plain.data = ort_memory_new(bytes);
    if (!plain.data)
        return ort_error_memory(err, bytes);
    copy_rows(st, &st->value->tensor, &plain);
    free(st->value->storage);
    st->value->storage = plain.data;
    st->value->tensor = plain;
    ort_buffers_refund(states->buffers, st->bytes);
    st->bytes = 0;
    st->growth = NULL;
    return ORT_OK;
}

/* ---- the start */

/* The size that the symbol has in another input, or 0; of an axis without a name, 1. */
static int64_t size_of(const ort_session *s, ort_value *const *inputs, ort_dim dim)
{
    if (ort_dim_known(dim))
        return dim.size;
    if (dim.expr == ORT_DIM_UNKNOWN)
        return 1;
    for (int i = 0; i < s->input_count; i++) {
        const ort_type *type = &s->inputs[i].type;
        if (!inputs[i] || inputs[i]->kind != ORT_KIND_TENSOR || type->kind != ORT_TYPE_TENSOR ||
            type->rank != inputs[i]->tensor.shape.rank)
            continue;
        for (int d = 0; d < type->rank; d++)
            if (type->dim[d].expr == dim.expr)
                return inputs[i]->tensor.shape.dim[d];
    }
    return 0;
}

static ort_status empty_shape(const ort_states *states, const ort_state *st,
                              ort_value *const *inputs, ort_tensor *empty, ort_error *err)
{
    const ort_port *port = &states->session->inputs[st->input];
    if (port->type.kind != ORT_TYPE_TENSOR || port->type.rank < 0)
        return ort_error_set(err, ORT_ERROR_USAGE, "state '%s' (%s) has no size to start from; "
                             "give its first value as an input", port->name, port->type_text);
    *empty = (ort_tensor){.dtype = port->type.dtype, .shape = {.rank = port->type.rank}};
    for (int d = 0; d < port->type.rank; d++)
        empty->shape.dim[d] = st->growth && d == st->growth->axis &&
                                      !ort_dim_known(port->type.dim[d])
                                  ? 0 : size_of(states->session, inputs, port->type.dim[d]);
    return ort_shape_check(&empty->shape, empty->dtype, err);
}

/* Has the memory at hand room for this start, heads lying as they do? */
static bool fits(const ort_state *st, const ort_tensor *from)
{
    const ort_tensor *t = &st->value->tensor;
    if (t->dtype != from->dtype || t->shape.rank != from->shape.rank)
        return false;
    for (int d = 0; d < t->shape.rank; d++)
        if (d != st->growth->axis && t->shape.dim[d] != from->shape.dim[d])
            return false;
    return from->shape.dim[st->growth->axis] <= ort_plan_room(t, st->growth->axis);
}

static ort_status start_growing(const ort_states *states, ort_state *st, const ort_tensor *from,
                                ort_error *err)
{
    int64_t rows = from->shape.dim[st->growth->axis];
    int64_t room = states->reserved > FIRST_ROOM ? states->reserved : FIRST_ROOM;
    if (!st->value || !fits(st, from) ||
        ort_plan_room(&st->value->tensor, st->growth->axis) < states->reserved)
        return lay(states, st, from, rows > room ? rows : room, err);
    st->value->tensor.shape = from->shape;
    copy_rows(st, from, &st->value->tensor);
    return ORT_OK;
}

/* What the state starts over from: a reference. */
static ort_status first_value(const ort_states *states, const ort_state *st,
                              ort_value *const *inputs, ort_value **from, ort_error *err)
{
    ort_tensor empty;
    if (st->start) {
        *from = ort_value_retain(st->start);
        return ORT_OK;
    }
    ORT_TRY(empty_shape(states, st, inputs, &empty, err));
    return ort_value_new_tensor_(empty.dtype, &empty.shape, from, err);
}

static bool can_grow(const ort_state *st, const ort_value *from)
{
    return from->kind == ORT_KIND_TENSOR && from->tensor.shape.rank > st->growth->axis &&
           row_count(st, &from->tensor.shape) > 0;
}

static void drop_value(const ort_states *states, ort_state *st)
{
    ort_buffers_refund(states->buffers, st->bytes);
    st->bytes = 0;
    ort_value_free(st->value);
    st->value = NULL;
}

static ort_status start(const ort_states *states, ort_state *st, ort_value *const *inputs,
                        ort_error *err)
{
    ort_value *from = NULL;
    ORT_TRY(first_value(states, st, inputs, &from, err));
    if (st->growth && !can_grow(st, from)) { /* if that is wrong the run says so */
        drop_value(states, st);
        st->growth = NULL;
    }
    ort_status status = ORT_OK;
    if (st->growth) {
        status = start_growing(states, st, &from->tensor, err);
    } else {
        drop_value(states, st);
        st->value = ort_value_retain(from);
    }
    ort_value_free(from);
    return status;
}

ort_status ort_states_begin(ort_states *states, ort_value *const *inputs, ort_error *err)
{
    for (int i = 0; i < states->count; i++) {
        ort_state *st = states->data[i];
        ort_value_free(st->shown);
        st->shown = NULL;
        if (st->started)
            continue;
        ORT_TRY(start(states, st, inputs, err));
        st->started = true;
    }
    return ORT_OK;
}

/* ---- around a run */

/* The rows that a run of this plan adds; -1: the plan doesn't extend the state where it lies. */
static int64_t fresh_rows(const ort_state *st, const ort_plan *plan)
{
    const ort_growth *g = st->growth;
    const ort_slot_plan *slot = &plan->slots[plan->program->outputs[g->output]];
    if (slot->place != ORT_PLACE_OUTPUT || !plan->direct[g->output])
        return -1;
    return slot->tensor.shape.dim[g->axis] - plan->given[g->given].shape.dim[g->axis];
}

static ort_status fit(const ort_states *states, ort_state *st, const ort_plan *plan, bool *moved,
                      ort_error *err)
{
    int axis = st->growth->axis;
    int64_t fresh = fresh_rows(st, plan), rows = rows_of(st) + fresh;
    if (fresh < 0) {
        *moved = true;
        return flatten(states, st, err);
    }
    if (rows > ort_plan_room(&st->value->tensor, axis)) {
        *moved = true;
        ORT_TRY(make_room(states, st, rows, err));
    }
    assert(rows <= ort_plan_room(&st->value->tensor, axis));
    st->present = st->value->tensor;
    st->present.shape.dim[axis] = rows;
    return ORT_OK;
}

ort_status ort_states_fit(ort_states *states, const ort_program *program, const ort_plan *plan,
                          bool *moved, ort_error *err)
{
    *moved = false;
    for (int i = 0; i < states->count; i++) {
        ort_state *st = states->data[i];
        if (!st->growth)
            continue;
        if (program != states->session->program) {
            *moved = true;
            ORT_TRY(flatten(states, st, err));
        } else if (plan) {
            ORT_TRY(fit(states, st, plan, moved, err));
        }
    }
    return ORT_OK;
}

/* Memory that nobody else holds takes the next output. */
static ort_value *reusable(ort_value *value)
{
    if (value && value->references == 1)
        return value;
    ort_value_free(value);
    return NULL;
}

void ort_states_end(ort_states *states, ort_value **outputs)
{
    for (int i = 0; i < states->count; i++) {
        ort_state *st = states->data[i];
        if (st->growth) {
            assert(st->present.data == st->value->tensor.data);
            st->value->tensor.shape = st->present.shape;
            continue;
        }
        assert(outputs[st->output]); /* states are wanted in every run */
        ort_value *before = st->value;
        st->value = outputs[st->output];
        outputs[st->output] = reusable(before);
    }
}

ort_value *ort_state_show(ort_state *st)
{
    if (!st->started)
        return NULL;
    if (!st->growth || st->shown)
        return st->growth ? st->shown : st->value;
    const ort_tensor *rows = &st->value->tensor;
    if (ort_value_new_tensor_(rows->dtype, &rows->shape, &st->shown, NULL))
        return NULL;
    copy_rows(st, rows, &st->shown->tensor);
    return st->shown;
}
