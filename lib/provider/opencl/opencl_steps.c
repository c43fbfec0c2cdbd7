/* opencl_steps.c - from the steps of a request to a plan: launches in order, and a place for every
 * buffer. Buffers whose lives don't meet share memory.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "op/eval.h"
#include "provider/opencl/opencl.h"

/* ---- the steps */

/* By the step before? */
static bool is_made(const ort_cl_plan *p, const ort_node *node)
{
    return node->outputs[0] != ORT_ID_NONE && p->ahead[node->outputs[0]].made;
}

static ort_status add_step(ort_cl_plan *p, const ort_device_step *step, ort_error *err)
{
    ort_cl_step s = {p, step->node, step->op, p->device->row_of(step->op), NULL, false,
                     p->device->own, NULL};
    bool taken = false;
    assert(s.row); /* it was claimed */
    s.half = p->device->half && s.row->half;
    s.next = ort_cl_next(p, &s);
    if (is_made(p, step->node)) {
        p->half_steps += p->device->half != 0;
        return ORT_OK;
    }
    ort_status status = ort_cl_chain_step(p, step, &taken, err);
    if (status == ORT_OK && !taken)
        status = s.row->emit(&s, err);
    if (s.next)
        p->ahead[s.next->node->outputs[0]].made = true;
    ort_cl_set_past(p, s.next ? s.next->node : step->node);
    ort_cl_set_past(p, step->node);
    p->half_steps += s.half || (taken && p->device->half);
    if (status == ORT_OK)
        status = p->status;
    return status != ORT_OK ? ort_node_wrap_error(step->node, err, status) : ORT_OK;
}

static ort_status add_copy(ort_cl_plan *p, bool in, ort_id id, ort_error *err)
{
    const ort_cl_copy copy = {in ? ort_cl_write_value(p, id, false)
                                 : ort_cl_read_value(p, id, false),
                              ort_cl_bytes(&p->request->facts[id])};
    if (p->status != ORT_OK)
        return p->status;
    p->ahead[id].past |= in;
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
    ORT_TRY(ort_cl_chain_end(p, err));
    for (int i = 0; i < part->out_count; i++) /* as floats, all of which live to the part's end */
        ort_cl_read_value(p, part->out[i].id, false);
    for (int i = 0; i < part->out_count; i++)
        ORT_TRY(add_copy(p, false, part->out[i].id, err));
    int end = (int)p->launches.count, out_end = (int)p->out.count;
    return ort_vec_push(&p->ends, end) && ort_vec_push(&p->out_ends, out_end)
               ? ORT_OK
               : ort_error_memory(err, sizeof end);
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
        if (!p->buffers.data[i].memory && p->buffers.data[i].whole < 0)
            order[count++] = &p->buffers.data[i];
    }
    qsort(order, (size_t)count, sizeof *order, by_size);
    for (int i = 0; i < count; i++) {
        order[i]->offset = find_gap(order, i, order[i]);
        if (order[i]->offset + order[i]->bytes > p->memory_bytes)
            p->memory_bytes = order[i]->offset + order[i]->bytes;
    }
    free(order);
    for (size_t i = 0; i < p->buffers.count; i++) /* each behind what it is a part of */
        if (p->buffers.data[i].whole >= 0)
            p->buffers.data[i].offset += p->buffers.data[p->buffers.data[i].whole].offset;
    if (p->memory_bytes > p->device->most_bytes)
        return ort_error_set(err, ORT_ERROR_MEMORY, "the values of this plan take %zu bytes; a "
                             "buffer of %s has %zu", p->memory_bytes, p->device->name,
                             p->device->most_bytes);
    return ORT_OK;
}

/* How many steps compute on halves, and what that took from the weights. */
static void tell_halves(ort_cl_plan *p)
{
    ort_cl_device *d = p->device;
    pthread_mutex_lock(&d->lock);
    double ratio = d->half_noise > 0 ? 10 * log10(d->half_signal / d->half_noise) : 0;
    long long beyond = d->half_beyond;
    pthread_mutex_unlock(&d->lock);
    ort_log_write(d->log, ORT_LOG_INFO, "opencl: %d of %d nodes on values of 16 bits%s",
                  p->half_steps, p->request->step_count,
                  d->half == 2 ? ", products in 16 bits" : "");
    if (ratio > 0)
        ort_log_write(d->log, ORT_LOG_INFO, "opencl: weights in 16 bits: %.1f dB to what rounding "
                      "took from them", ratio);
    if (beyond)
        ort_log_write(d->log, ORT_LOG_WARNING, "opencl: fp16: %lld weights are beyond 65504, the "
                      "largest value of 16 bits, which stands for them", beyond);
}

static ort_status make(ort_cl_plan *p, ort_error *err)
{
    size_t values = p->request->graph->values.count;
    p->buffer_of = malloc((values + 1) * sizeof *p->buffer_of);
    p->half_of = malloc((values + 1) * sizeof *p->half_of);
    p->view_of = malloc((values + 1) * sizeof *p->view_of);
    if (!p->buffer_of || !p->half_of || !p->view_of)
        return ort_error_memory(err, values * sizeof *p->view_of);
    for (size_t i = 0; i < values; i++)
        p->buffer_of[i] = p->half_of[i] = p->view_of[i].whole = -1;
    ORT_TRY(ort_cl_look_ahead(p, err));
    ORT_TRY(ort_cl_chains_new(p, err));
    for (int i = 0; i < p->request->part_count; i++)
        ORT_TRY(add_part(p, &p->request->parts[i], err));
    ORT_TRY(ort_cl_chains_finish(p, err));
    if (p->device->half)
        tell_halves(p);
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
    p->fault = p->counters = -1;
    ort_status status = make(p, err);
    free(p->ahead);
    free(p->buffer_of);
    free(p->half_of);
    free(p->view_of);
    p->ahead = NULL;
    p->buffer_of = p->half_of = NULL;
    p->view_of = NULL;
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
    ort_vec_release(&p->out_ends);
    ort_vec_release(&p->in);
    ort_vec_release(&p->out);
    ort_vec_release(&p->trials);
    ort_vec_release(&p->checks);
    ort_cl_chains_free(p);
    free(p);
}
