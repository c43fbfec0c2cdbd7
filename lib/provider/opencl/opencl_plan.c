/* opencl_plan.c - what rows make plans of: buffers, arguments, launches. A buffer lives from the
 * launch that writes it (or from its copy to the device) to the last one that reads it (or to its
 * copy back).
 */
#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "op/eval.h"
#include "provider/opencl/opencl.h"

static bool keep(ort_cl_plan *p, ort_status status)
{
    if (p->status == ORT_OK)
        p->status = status;
    return p->status == ORT_OK;
}

static int new_buffer(ort_cl_plan *p, size_t bytes)
{
    int now = (int)p->launches.count, part = (int)p->ends.count;
    ort_cl_buffer buffer = {.bytes = bytes ? bytes : 1, .whole = -1, .first = now, .last = now,
                            .first_part = part, .last_part = part};
    if (!ort_vec_push(&p->buffers, buffer)) {
        keep(p, ort_error_memory(p->error, sizeof buffer));
        return 0;
    }
    return (int)p->buffers.count - 1;
}

static void touch(ort_cl_plan *p, int buffer)
{
    int now = (int)p->launches.count;
    for (; p->status == ORT_OK && buffer >= 0; buffer = p->buffers.data[buffer].whole) {
        ort_cl_buffer *b = &p->buffers.data[buffer];
        b->last = b->last < now ? now : b->last;
        b->last_part = (int)p->ends.count;
    }
}

size_t ort_cl_bytes(const ort_fact *fact)
{
    ort_shape shape;
    ort_tensor tensor = {.dtype = fact->type.dtype};
    if (!ort_type_concrete(&fact->type, &shape))
        return 0;
    tensor.shape = shape;
    return ort_tensor_bytes(&tensor);
}

/* ---- constants */

static int add_memory(ort_cl_plan *p, cl_mem memory, bool owned)
{
    int buffer = new_buffer(p, 0);
    if (p->status != ORT_OK) {
        if (owned)
            p->device->api.clReleaseMemObject(memory);
        return 0;
    }
    p->buffers.data[buffer].memory = memory;
    p->buffers.data[buffer].owned = owned;
    return buffer;
}

static int add_constant(ort_cl_plan *p, ort_id id, const ort_cl_strips *strips)
{
    const ort_tensor *weight = p->request->constants[id];
    const ort_fact *fact = &p->request->facts[id];
    cl_mem memory = NULL;
    if (p->status != ORT_OK ||
        !keep(p, ort_cl_weight(p->device, weight ? weight : fact->value, fact, strips, weight,
                               &memory, p->error)))
        return 0;
    return add_memory(p, memory, !weight);
}

/* ---- what rows are made of */

const ort_fact *ort_cl_in(const ort_cl_step *s, int input)
{
    ort_id id = input < s->node->input_count ? s->node->inputs[input] : ORT_ID_NONE;
    return id == ORT_ID_NONE ? NULL : &s->plan->request->facts[id];
}

const ort_fact *ort_cl_out(const ort_cl_step *s, int output)
{
    ort_id id = output < s->node->output_count ? s->node->outputs[output] : ORT_ID_NONE;
    return id == ORT_ID_NONE ? NULL : &s->plan->request->facts[id];
}

int64_t ort_cl_count(const ort_fact *fact)
{
    int64_t count = 1;
    for (int d = 0; d < fact->type.rank; d++)
        count *= fact->type.dim[d].size;
    return count;
}

bool ort_cl_constant_input(const ort_cl_step *s, int input)
{
    return s->plan->request->facts[s->node->inputs[input]].value;
}

/* ---- the two forms of a value */

static bool is_float(const ort_cl_plan *p, ort_id id)
{
    return p->request->facts[id].type.dtype == ORT_DTYPE_FLOAT;
}

bool ort_cl_halves(const ort_cl_plan *p, ort_id id)
{
    return p->device->half && is_float(p, id) && !p->request->facts[id].value;
}

static int *form_of(const ort_cl_plan *p, ort_id id, bool half)
{
    return half && is_float(p, id) ? &p->half_of[id] : &p->buffer_of[id];
}

/* From the form that is there. */
static int converted(ort_cl_plan *p, ort_id id, bool to_half)
{
    int from = *form_of(p, id, !to_half);
    int64_t count = ort_cl_count(&p->request->facts[id]);
    ort_cl_step s = {.plan = p, .half = true, .tiles = p->device->own};
    assert(from >= 0);
    int to = new_buffer(p, (size_t)count * (to_half ? 2 : 4));
    const int64_t grid[3] = {ort_cl_items(&s, count), 1, 1};
    ort_cl_launch_grid(&s, "map", to_half ? "narrow" : "widen_all", grid, NULL, "bbi", from, to,
                       count);
    return to;
}

size_t ort_cl_size(const ort_cl_plan *p, ort_id id, bool half)
{
    return half && is_float(p, id) ? 2 : ort_dtype_bits(p->request->facts[id].type.dtype) / 8;
}

static void copy_columns(ort_cl_plan *p, ort_id id);

int ort_cl_read_value(ort_cl_plan *p, ort_id id, bool half)
{
    int *form = form_of(p, id, half);
    const ort_cl_strips plain = {.half = form == &p->half_of[id]};
    if (p->view_of[id].whole >= 0)
        copy_columns(p, id);
    if (p->status == ORT_OK && *form < 0)
        *form = p->request->facts[id].value ? add_constant(p, id, &plain)
                                            : converted(p, id, plain.half);
    if (p->status != ORT_OK)
        return 0;
    touch(p, *form);
    return *form;
}

int ort_cl_read(ort_cl_step *s, int input)
{
    return ort_cl_read_value(s->plan, s->node->inputs[input], s->half);
}

int ort_cl_read_strips(ort_cl_step *s, int input, const ort_cl_strips *x)
{
    if (ort_cl_constant_input(s, input)) {
        ort_cl_strips strips = *x;
        strips.half = s->half;
        int buffer = add_constant(s->plan, s->node->inputs[input], &strips);
        touch(s->plan, buffer);
        return buffer;
    }
    int64_t strips = x->batch * ((x->outer + x->strip - 1) / x->strip);
    int from = ort_cl_read(s, input), to = ort_cl_scratch(s, strips * x->strip * x->k);
    const int64_t grid[3] = {ort_cl_along(s, x->k), strips, 1};
    ort_cl_launch_grid(s, "gemm", "pack", grid, NULL, "bbiiiiiii", from, to, x->start,
                       x->batch_step, x->outer_step, x->k_step, x->outer, x->k, x->strip);
    return to;
}

int ort_cl_read_weights(ort_cl_step *s, const ort_node *const *nodes, int count, int input,
                        const ort_cl_strips *x)
{
    ort_cl_plan *p = s->plan;
    const ort_tensor *tensors[ORT_CL_SIBLINGS];
    ort_cl_strips strips = *x;
    cl_mem memory = NULL;
    strips.half = s->half;
    for (int i = 0; i < count; i++)
        tensors[i] = p->request->constants[nodes[i]->inputs[input]];
    if (p->status != ORT_OK ||
        !keep(p, ort_cl_weights(p->device, tensors, count, ort_cl_in(s, input), &strips, &memory,
                                p->error)))
        return 0;
    return add_memory(p, memory, false);
}

static int add_data(ort_cl_step *s, const void *data, size_t bytes)
{
    cl_mem memory = NULL;
    ort_cl_plan *p = s->plan;
    if (p->status != ORT_OK ||
        !keep(p, ort_cl_upload(p->device, data, bytes, &memory, p->error)))
        return 0;
    return add_memory(p, memory, true);
}

static ort_status make_form(ort_cl_plan *p, size_t bytes,
                            void (*fill)(const void *arg, void *to), const void *arg,
                            cl_mem *memory)
{
    void *to = calloc(bytes + 1, 1);
    if (!to)
        return ort_error_memory(p->error, bytes);
    fill(arg, to);
    ort_status status = ort_cl_upload(p->device, to, bytes, memory, p->error);
    free(to);
    return status;
}

int ort_cl_read_form(ort_cl_step *s, int input, const ort_cl_strips *form, size_t bytes,
                     void (*fill)(const void *arg, void *to), const void *arg)
{
    ort_cl_plan *p = s->plan;
    const ort_tensor *weight = p->request->constants[s->node->inputs[input]];
    cl_mem memory = weight ? ort_cl_kept(p->device, weight, form) : NULL;
    if (p->status != ORT_OK)
        return 0;
    if (!memory) {
        if (!keep(p, make_form(p, bytes, fill, arg, &memory)))
            return 0;
        if (weight && !keep(p, ort_cl_keep(p->device, weight, form, &memory, p->error)))
            return 0;
    }
    return add_memory(p, memory, !weight);
}

int ort_cl_table(ort_cl_step *s, const int64_t *numbers, int64_t count)
{
    size_t bytes = (size_t)count * sizeof(cl_int);
    cl_int *ints = malloc(bytes + 1);
    if (!ints) {
        keep(s->plan, ort_error_memory(s->plan->error, bytes));
        return 0;
    }
    for (int64_t i = 0; i < count; i++)
        ints[i] = (cl_int)numbers[i];
    int buffer = add_data(s, ints, bytes);
    free(ints);
    return buffer;
}

int ort_cl_numbers(ort_cl_step *s, const float *numbers, int64_t count)
{
    return add_data(s, numbers, (size_t)count * sizeof *numbers);
}

/* A part of a buffer from `at` on, where devices allow one to begin; -1: they don't. */
static int new_part(ort_cl_plan *p, int whole, size_t at, size_t bytes)
{
    if (at % p->device->alignment)
        return -1;
    int part = new_buffer(p, bytes);
    if (p->status != ORT_OK)
        return part;
    p->buffers.data[part].whole = whole;
    p->buffers.data[part].offset = at;
    p->buffers.data[whole].divided = true;
    return part;
}

int ort_cl_write_parts(ort_cl_step *s, const ort_node *const *nodes, int count)
{
    ort_cl_plan *p = s->plan;
    ort_id first = nodes[0]->outputs[0];
    const ort_type *type = &p->request->facts[first].type;
    size_t row = (size_t)type->dim[type->rank - 1].size * ort_cl_size(p, first, s->half);
    size_t bytes = (size_t)ort_cl_count(&p->request->facts[first]) * ort_cl_size(p, first, s->half);
    if (!bytes || row % p->device->alignment)
        return -1;
    int whole = new_buffer(p, (size_t)count * bytes);
    for (int i = 0; i < count && p->status == ORT_OK; i++)
        *form_of(p, nodes[i]->outputs[0], s->half) = new_part(p, whole, (size_t)i * bytes, bytes);
    return whole;
}

/* What a Concat joins lies in its result from the start, in the form that the Concat reads. */
static int new_value(ort_cl_plan *p, ort_id id, bool half)
{
    const ort_cl_ahead *ahead = &p->ahead[id];
    size_t size = ort_cl_size(p, id, half);
    size_t bytes = ort_cl_bytes(&p->request->facts[id]) / (half ? 2 : 1);
    int part = -1;
    if (ahead->joined != ORT_ID_NONE && half == (p->device->half != 0) &&
        (size_t)ahead->at * size % p->device->alignment == 0)
        part = new_part(p, ort_cl_write_value(p, ahead->joined, half), (size_t)ahead->at * size,
                        bytes);
    return part >= 0 ? part : new_buffer(p, bytes);
}

int ort_cl_write_value(ort_cl_plan *p, ort_id id, bool half)
{
    int *form = form_of(p, id, half);
    if (*form < 0)
        *form = new_value(p, id, form == &p->half_of[id]);
    touch(p, *form);
    return *form;
}

/* ---- columns of rows */

void ort_cl_columns(ort_cl_step *s, int output, int64_t start, int64_t row_step, int64_t row)
{
    int whole = ort_cl_read(s, 0);
    if (s->plan->status == ORT_OK)
        s->plan->view_of[s->node->outputs[output]] =
            (ort_cl_view){whole, start, row_step, row, s->half};
}

const char *ort_cl_mover(ort_dtype type)
{
    return type == ORT_DTYPE_FLOAT ? "move" : ort_dtype_bits(type) == 8 ? "move_bytes" : NULL;
}

static void copy_columns(ort_cl_plan *p, ort_id id)
{
    const ort_cl_view v = p->view_of[id];
    ort_cl_step s = {.plan = p, .half = v.half, .tiles = p->device->own};
    int64_t count = ort_cl_count(&p->request->facts[id]);
    p->view_of[id].whole = -1;
    touch(p, v.whole);
    const int64_t n[6] = {1, 1, 1, 1, v.row ? count / v.row : 0, v.row};
    const int64_t from[6] = {0, 0, 0, 0, v.row_step, 1}, to[6] = {0, 0, 0, 0, v.row, 1};
    const int64_t grid[3] = {ort_cl_items(&s, count), 1, 1};
    ort_cl_launch_grid(&s, "map", ort_cl_mover(p->request->facts[id].type.dtype), grid, NULL,
                       "bb|vvviii", v.whole, ort_cl_write_value(p, id, v.half), n, from, to,
                       v.start, (int64_t)0, count);
}

int ort_cl_read_rows(ort_cl_step *s, int input, int64_t *start, int64_t *row_step)
{
    ort_id id = s->node->inputs[input];
    const ort_type *type = &s->plan->request->facts[id].type;
    const ort_cl_view *v = &s->plan->view_of[id];
    int64_t row = type->dim[type->rank - 1].size;
    bool as_it_is = v->whole >= 0 && v->half == s->half && v->row == row;
    *start = as_it_is ? v->start : 0;
    *row_step = as_it_is ? v->row_step : row;
    if (!as_it_is)
        return ort_cl_read(s, input);
    touch(s->plan, v->whole);
    return v->whole;
}

int ort_cl_write(ort_cl_step *s, int output)
{
    return ort_cl_write_value(s->plan, ort_cl_last_node(s)->outputs[output], s->half);
}

int ort_cl_write_at(ort_cl_step *s, int64_t *start)
{
    ort_cl_plan *p = s->plan;
    ort_id id = ort_cl_last_node(s)->outputs[0];
    ort_cl_ahead *ahead = &p->ahead[id];
    size_t size = ort_cl_size(p, id, s->half);
    bool begins = (size_t)ahead->at * size % p->device->alignment == 0;
    *start = 0;
    if (ahead->joined == ORT_ID_NONE || ahead->uses != 1 || begins ||
        *form_of(p, id, s->half) >= 0 || s->half != (p->device->half != 0))
        return ort_cl_write(s, 0);
    ahead->placed = true;
    *start = ahead->at;
    return ort_cl_write_value(p, ahead->joined, s->half);
}

bool ort_cl_is_part(ort_cl_step *s, int output, int input, int64_t at)
{
    ort_cl_plan *p = s->plan;
    ort_id from = s->node->inputs[input], to = s->node->outputs[output];
    int whole = ort_cl_read(s, input), *form = form_of(p, to, s->half);
    const ort_fact *y = ort_cl_out(s, output);
    size_t size = ort_cl_size(p, to, s->half), bytes = (size_t)ort_cl_count(y) * size;
    if (p->status != ORT_OK || p->buffers.data[whole].memory || p->ahead[from].copied ||
        p->ahead[to].joined != ORT_ID_NONE || !bytes)
        return false;
    for (size_t i = 0; i < p->in.count; i++)
        if (p->in.data[i].buffer == whole) /* what callers lend isn't divided */
            return false;
    int part = new_part(p, whole, (size_t)at * size, bytes);
    if (part >= 0)
        *form = part;
    return part >= 0;
}

int ort_cl_scratch(ort_cl_step *s, int64_t floats)
{
    return new_buffer(s->plan, (size_t)floats * (s->half ? 2 : 4));
}

enum { FAULT_BYTES = 3 * sizeof(cl_int) }; /* which check, where, what */

int ort_cl_checks(ort_cl_step *s, int64_t least, int64_t size, int *fault)
{
    ort_cl_plan *p = s->plan;
    const ort_cl_check check = {s->node, (int)least, (int)size};
    if (p->fault < 0) { /* lives as long as the frame, which looks at it after each part */
        p->fault = new_buffer(p, FAULT_BYTES);
        if (p->status != ORT_OK)
            return 0;
        p->buffers.data[p->fault].first = 0;
        p->buffers.data[p->fault].last = INT_MAX;
    }
    *fault = p->fault;
    if (!ort_vec_push(&p->checks, check))
        keep(p, ort_error_memory(p->error, sizeof check));
    return (int)p->checks.count;
}

int ort_cl_counters(ort_cl_step *s, int64_t count)
{
    ort_cl_plan *p = s->plan;
    if (p->counters < 0) {
        p->counters = new_buffer(p, 0);
        if (p->status != ORT_OK)
            return 0;
        p->buffers.data[p->counters].first = 0;
        p->buffers.data[p->counters].last = INT_MAX;
    }
    ort_cl_buffer *b = &p->buffers.data[p->counters];
    size_t bytes = (size_t)count * sizeof(cl_int);
    b->bytes = bytes > b->bytes ? bytes : b->bytes;
    return p->counters;
}

ort_status ort_cl_known(const ort_cl_step *s, int input, ort_error *err)
{
    const ort_fact *fact = ort_cl_in(s, input);
    if (!fact || fact->value)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_DEVICE, "the value of input %d isn't known when a plan is "
                         "made", input);
}

void ort_cl_alias(ort_cl_step *s)
{
    ort_cl_plan *p = s->plan;
    ort_id from = s->node->inputs[0], to = s->node->outputs[0];
    if (p->buffer_of[from] < 0 && p->half_of[from] < 0)
        ort_cl_read(s, 0);
    p->buffer_of[to] = p->buffer_of[from];
    p->half_of[to] = p->half_of[from];
}

int64_t ort_cl_along(const ort_cl_step *s, int64_t count)
{
    return s->plan->device->lanes && count ? 1 : count;
}

int64_t ort_cl_items(const ort_cl_step *s, int64_t count)
{
    int span = s->plan->device->span;
    return (count + span - 1) / span;
}

void ort_cl_add_arg(ort_cl_plan *p, ort_cl_launch *l, ort_cl_arg arg)
{
    assert(l->arg_count < ORT_CL_ARGS);
    l->args[l->arg_count++] = arg;
    if (arg.kind == 'b')
        touch(p, arg.i);
}

void ort_cl_add_launch(ort_cl_plan *p, ort_cl_launch *l, const int64_t *grid, const size_t *local)
{
    for (int i = 0; i < 3; i++) {
        l->local[i] = local ? local[i] : p->device->lanes ? 1 : 0;
        l->global[i] = local ? ort_round_up((size_t)grid[i], local[i]) : (size_t)grid[i];
        if (!grid[i] || p->status != ORT_OK) /* nothing to compute */
            return;
    }
    if (!ort_vec_push(&p->launches, *l))
        keep(p, ort_error_memory(p->error, sizeof *l));
}

void ort_cl_launch_grid(ort_cl_step *s, const char *program, const char *kernel,
                        const int64_t *grid, const size_t *local, const char *format, ...)
{
    ort_cl_plan *p = s->plan;
    ort_cl_launch l = {.program = program, .kernel = kernel, .half = s->half, .tiles = s->tiles};
    va_list list;
    va_start(list, format);
    for (; *format; format++) {
        if (*format == 'b') {
            ort_cl_add_arg(p, &l, (ort_cl_arg){.kind = 'b', .i = va_arg(list, int)});
        } else if (*format == 'o') {
            int buffer = va_arg(list, int);
            if (buffer >= 0)
                ort_cl_add_arg(p, &l, (ort_cl_arg){.kind = 'b', .i = buffer});
        } else if (*format == 'i') {
            ort_cl_add_arg(p, &l, (ort_cl_arg){.kind = 'i', .i = (int)va_arg(list, int64_t)});
        } else if (*format == 'f') {
            ort_cl_add_arg(p, &l, (ort_cl_arg){.kind = 'f', .f = (float)va_arg(list, double)});
        } else if (*format == '|') {
            l.packed = l.arg_count;
        } else {
            const int64_t *six = va_arg(list, const int64_t *);
            for (int i = 0; i < 6; i++)
                ort_cl_add_arg(p, &l, (ort_cl_arg){.kind = 'i', .i = (int)six[i]});
        }
    }
    va_end(list);
    ort_cl_add_launch(p, &l, grid, local);
}
