/* opencl_plan.c - from steps to launches, and a place for every buffer.
 *
 * Buffers live from the launch that writes them (or from their copy to the device) to the last one
 * that reads them (or to their copy back). Launches run in order, so that buffers whose lives
 * don't meet share memory.
 */
#include <assert.h>
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
    int now = (int)p->launches.count;
    ort_cl_buffer buffer = {.bytes = bytes ? bytes : 1, .first = now, .last = now};
    if (!ort_vec_push(&p->buffers, buffer)) {
        keep(p, ort_error_memory(p->error, sizeof buffer));
        return 0;
    }
    return (int)p->buffers.count - 1;
}

static void touch(ort_cl_plan *p, int buffer)
{
    int now = (int)p->launches.count;
    if (p->status == ORT_OK && p->buffers.data[buffer].last < now)
        p->buffers.data[buffer].last = now;
}

static size_t bytes_of(const ort_fact *fact)
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

int ort_cl_read(ort_cl_step *s, int input)
{
    ort_cl_plan *p = s->plan;
    ort_id id = s->node->inputs[input];
    if (p->buffer_of[id] < 0 && p->request->facts[id].value)
        p->buffer_of[id] = add_constant(p, id, NULL);
    if (p->status != ORT_OK)
        return 0;
    assert(p->buffer_of[id] >= 0);
    touch(p, p->buffer_of[id]);
    return p->buffer_of[id];
}

int ort_cl_read_strips(ort_cl_step *s, int input, const ort_cl_strips *x)
{
    if (ort_cl_constant_input(s, input)) {
        int buffer = add_constant(s->plan, s->node->inputs[input], x);
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

static int add_data(ort_cl_step *s, const void *data, size_t bytes)
{
    cl_mem memory = NULL;
    ort_cl_plan *p = s->plan;
    if (p->status != ORT_OK ||
        !keep(p, ort_cl_upload(p->device, data, bytes, &memory, p->error)))
        return 0;
    return add_memory(p, memory, true);
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

int ort_cl_write(ort_cl_step *s, int output)
{
    ort_id id = s->node->outputs[output];
    if (s->plan->buffer_of[id] < 0)
        s->plan->buffer_of[id] = new_buffer(s->plan, bytes_of(&s->plan->request->facts[id]));
    touch(s->plan, s->plan->buffer_of[id]);
    return s->plan->buffer_of[id];
}

int ort_cl_scratch(ort_cl_step *s, int64_t floats)
{
    return new_buffer(s->plan, (size_t)floats * 4);
}

void ort_cl_alias(ort_cl_step *s)
{
    s->plan->buffer_of[s->node->outputs[0]] = ort_cl_read(s, 0);
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

static void add_arg(ort_cl_plan *p, ort_cl_launch *l, ort_cl_arg arg)
{
    assert(l->arg_count < ORT_CL_ARGS);
    l->args[l->arg_count++] = arg;
    if (arg.kind == 'b')
        touch(p, arg.i);
}

void ort_cl_launch_grid(ort_cl_step *s, const char *program, const char *kernel,
                        const int64_t *grid, const size_t *local, const char *format, ...)
{
    ort_cl_plan *p = s->plan;
    ort_cl_launch l = {.program = program, .kernel = kernel};
    va_list list;
    for (int i = 0; i < 3; i++) {
        l.local[i] = local ? local[i] : p->device->lanes ? 1 : 0;
        l.global[i] = local ? ort_round_up((size_t)grid[i], local[i]) : (size_t)grid[i];
        if (!grid[i] || p->status != ORT_OK) /* nothing to compute */
            return;
    }
    va_start(list, format);
    for (; *format; format++) {
        if (*format == 'b') {
            add_arg(p, &l, (ort_cl_arg){.kind = 'b', .i = va_arg(list, int)});
        } else if (*format == 'i') {
            add_arg(p, &l, (ort_cl_arg){.kind = 'i', .i = (int)va_arg(list, int64_t)});
        } else if (*format == 'f') {
            add_arg(p, &l, (ort_cl_arg){.kind = 'f', .f = (float)va_arg(list, double)});
        } else {
            const int64_t *six = va_arg(list, const int64_t *);
            for (int i = 0; i < 6; i++)
                add_arg(p, &l, (ort_cl_arg){.kind = 'i', .i = (int)six[i]});
        }
    }
    va_end(list);
    if (!ort_vec_push(&p->launches, l))
        keep(p, ort_error_memory(p->error, sizeof l));
}

/* ---- the steps */

static ort_status add_step(ort_cl_plan *p, const ort_device_step *step, ort_error *err)
{
    ort_cl_step s = {p, step->node, step->op, p->device->row_of(step->op)};
    assert(s.row); /* it was claimed */
    ort_status status = s.row->emit(&s, err);
    if (status == ORT_OK)
        status = p->status;
    return status != ORT_OK ? ort_node_wrap_error(step->node, err, status) : ORT_OK;
}

static ort_status add_copy(ort_cl_plan *p, bool in, ort_id id, ort_error *err)
{
    ort_cl_copy copy = {p->buffer_of[id], bytes_of(&p->request->facts[id])};
    if (in && copy.buffer < 0)
        copy.buffer = p->buffer_of[id] = new_buffer(p, copy.bytes);
    assert(copy.buffer >= 0);
    touch(p, copy.buffer);
    if (p->status != ORT_OK)
        return p->status;
    return (in ? ort_vec_push(&p->in, copy) : ort_vec_push(&p->out, copy))
               ? ORT_OK
               : ort_error_memory(err, sizeof copy);
}

static ort_status add_part(ort_cl_plan *p, const ort_device_part *part, ort_error *err)
{
    for (int i = 0; i < part->in_count; i++)
        ORT_TRY(add_copy(p, true, part->in[i].id, err));
    for (int i = 0; i < part->count; i++)
        ORT_TRY(add_step(p, &p->request->steps[part->first + i], err));
    for (int i = 0; i < part->out_count; i++)
        ORT_TRY(add_copy(p, false, part->out[i].id, err));
    int end = (int)p->launches.count;
    return ort_vec_push(&p->ends, end) ? ORT_OK : ort_error_memory(err, sizeof end);
}

/* ---- places: the largest first, each at the lowest offset that is free while it lives */

static int by_size(const void *a, const void *b)
{
    const ort_cl_buffer *x = *(ort_cl_buffer *const *)a, *y = *(ort_cl_buffer *const *)b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : x < y ? -1 : x > y;
}

static size_t find_gap(ort_cl_buffer *const *placed, int count, const ort_cl_buffer *b)
{
    size_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < count; i++) {
            const ort_cl_buffer *o = placed[i];
            if (o->last < b->first || o->first > b->last || o->offset >= at + b->bytes ||
                o->offset + o->bytes <= at)
                continue;
            at = o->offset + o->bytes;
            moved = true;
        }
    }
    return at;
}

static ort_status place(ort_cl_plan *p, ort_error *err)
{
    ort_cl_buffer **order = malloc((p->buffers.count + 1) * sizeof *order);
    int count = 0;
    if (!order)
        return ort_error_memory(err, p->buffers.count * sizeof *order);
    for (size_t i = 0; i < p->buffers.count; i++) {
        p->buffers.data[i].bytes = ort_round_up(p->buffers.data[i].bytes, p->device->alignment);
        if (!p->buffers.data[i].memory)
            order[count++] = &p->buffers.data[i];
    }
    qsort(order, (size_t)count, sizeof *order, by_size);
    for (int i = 0; i < count; i++) {
        order[i]->offset = find_gap(order, i, order[i]);
        if (order[i]->offset + order[i]->bytes > p->memory_bytes)
            p->memory_bytes = order[i]->offset + order[i]->bytes;
    }
    free(order);
    if (p->memory_bytes > p->device->most_bytes)
        return ort_error_set(err, ORT_ERROR_MEMORY, "the values of this plan take %zu bytes; a "
                             "buffer of %s has %zu", p->memory_bytes, p->device->name,
                             p->device->most_bytes);
    return ORT_OK;
}

static ort_status make(ort_cl_plan *p, ort_error *err)
{
    size_t values = p->request->graph->values.count;
    p->buffer_of = malloc((values + 1) * sizeof *p->buffer_of);
    if (!p->buffer_of)
        return ort_error_memory(err, values * sizeof *p->buffer_of);
    for (size_t i = 0; i < values; i++)
        p->buffer_of[i] = -1;
    for (int i = 0; i < p->request->part_count; i++)
        ORT_TRY(add_part(p, &p->request->parts[i], err));
    return place(p, err);
}

ort_status ort_cl_plan_new(void *device, const ort_device_request *request, void **plan,
                           ort_error *err)
{
    ort_cl_plan *p = calloc(1, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    p->device = device;
    p->request = request;
    p->error = err;
    ort_status status = make(p, err);
    free(p->buffer_of);
    p->buffer_of = NULL;
    p->request = NULL;
    p->error = NULL;
    if (status != ORT_OK)
        ort_cl_plan_free(p);
    else
        *plan = p;
    return status;
}

void ort_cl_plan_free(void *plan)
{
    ort_cl_plan *p = plan;
    for (size_t i = 0; i < p->buffers.count; i++)
        if (p->buffers.data[i].owned)
            p->device->api.clReleaseMemObject(p->buffers.data[i].memory);
    ort_vec_release(&p->buffers);
    ort_vec_release(&p->launches);
    ort_vec_release(&p->ends);
    ort_vec_release(&p->in);
    ort_vec_release(&p->out);
    free(p);
}
