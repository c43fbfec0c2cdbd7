/* onednn_plan.c - from steps to primitives, and a place for every buffer. */
#include "onednn.h"

#include <stdio.h>

bool onednn_check(plan *p, dnnl_status_t status)
{
    if (status != dnnl_success && p->status == dnnl_success)
        p->status = status;
    return status == dnnl_success && !p->failed;
}

/* ---- buffers */

static int new_buffer(plan *p, size_t bytes, void *data)
{
    buffer *more = realloc(p->buffers, (size_t)(p->buffer_count + 1) * sizeof *more);
    if (!more) {
        free(data);
        p->failed = true;
        return 0;
    }
    p->buffers = more;
    more[p->buffer_count] = (buffer){.bytes = bytes, .offset = p->frame_bytes, .data = data};
    p->frame_bytes += data ? 0 : (bytes + 127) / 64 * 64;
    return p->buffer_count++;
}

int onednn_scratch(plan *p, const dnnl_memory_desc_t *md)
{
    return new_buffer(p, dnnl_memory_desc_get_size(md), NULL);
}

int onednn_filled(plan *p, int64_t count, float value)
{
    float *data = malloc((size_t)(count + 1) * sizeof *data);
    for (int64_t i = 0; data && i < count; i++)
        data[i] = value;
    p->failed = p->failed || !data;
    return data ? new_buffer(p, (size_t)count * sizeof *data, data) : 0;
}

/* ---- descriptors */

dnnl_memory_desc_t onednn_dims(int rank, const int64_t *dims)
{
    dnnl_memory_desc_t md;
    dnnl_dims_t sizes = {1}, strides;
    int64_t stride = 1;
    for (int d = 0; d < rank; d++)
        sizes[d] = dims[d];
    for (int d = rank ? rank - 1 : 0; d >= 0; d--) {
        strides[d] = stride;
        stride *= sizes[d];
    }
    dnnl_memory_desc_init_by_strides(&md, rank ? rank : 1, sizes, dnnl_f32, strides);
    return md;
}

dnnl_memory_desc_t onednn_plain(const ort_device_value *value)
{
    return onednn_dims(value->rank, value->dims);
}

ort_device_value onednn_in(const task *t, int slot)
{
    ort_device_value v;
    t->p->r->api->settled(t->p->r, t->p->r->api->input(t->node, slot), &v);
    return v;
}

ort_device_value onednn_out(const task *t, int slot)
{
    ort_device_value v;
    t->p->r->api->settled(t->p->r, t->p->r->api->output(t->node, slot), &v);
    return v;
}

bool onednn_has(const task *t, int slot)
{
    return t->p->r->api->input(t->node, slot) != ORT_ID_NONE;
}

/* ---- operations */

operation *onednn_add_chosen(plan *p, dnnl_primitive_desc_t chosen)
{
    operation **more = realloc(p->operations, (size_t)(p->operation_count + 1) * sizeof *more);
    operation *o = calloc(1, sizeof *o);
    if (more)
        p->operations = more;
    if (!more || !o) {
        free(o);
        p->failed = true;
        return NULL;
    }
    if (!onednn_check(p, dnnl_primitive_create(&o->primitive, chosen))) {
        free(o);
        return NULL;
    }
    p->operations[p->operation_count++] = o;
    return o;
}

operation *onednn_add(plan *p, const_dnnl_op_desc_t desc, const_dnnl_primitive_attr_t attr,
                      dnnl_primitive_desc_t *chosen)
{
    dnnl_primitive_desc_t pd = NULL;
    if (!onednn_check(p, dnnl_primitive_desc_create(&pd, desc, attr, p->d->engine, NULL)))
        return NULL;
    operation *o = onednn_add_chosen(p, pd);
    if (chosen && o)
        *chosen = pd;
    else
        dnnl_primitive_desc_destroy(pd);
    return o;
}

void onednn_arg(operation *o, int name, int buffer, const dnnl_memory_desc_t *md)
{
    if (o)
        o->args[o->count++] = (argument){name, buffer, *md};
}

/* Of a constant: once, when the plan is made. */
static int reorder_constant(plan *p, dnnl_primitive_desc_t pd, int from,
                            const dnnl_memory_desc_t *md, const dnnl_memory_desc_t *wanted)
{
    size_t bytes = dnnl_memory_desc_get_size(wanted);
    void *data = aligned_alloc(64, (bytes + 127) / 64 * 64);
    dnnl_primitive_t reorder = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
    p->failed = p->failed || !data;
    if (data && onednn_check(p, dnnl_primitive_create(&reorder, pd)) &&
        onednn_check(p, dnnl_stream_create(&stream, p->d->engine, dnnl_stream_default_flags)) &&
        onednn_check(p, dnnl_memory_create(&args[0].memory, md, p->d->engine,
                                           p->buffers[from].data)) &&
        onednn_check(p, dnnl_memory_create(&args[1].memory, wanted, p->d->engine, data)) &&
        onednn_check(p, dnnl_primitive_execute(reorder, stream, 2, args)))
        onednn_check(p, dnnl_stream_wait(stream));
    for (int i = 0; i < 2; i++)
        if (args[i].memory)
            dnnl_memory_destroy(args[i].memory);
    if (stream)
        dnnl_stream_destroy(stream);
    if (reorder)
        dnnl_primitive_destroy(reorder);
    return data ? new_buffer(p, bytes, data) : from;
}

int onednn_reorder(plan *p, int from, const dnnl_memory_desc_t *md,
                   const dnnl_memory_desc_t *wanted)
{
    dnnl_primitive_desc_t pd = NULL;
    int to = from;
    if (p->failed || dnnl_memory_desc_equal(md, wanted) ||
        !onednn_check(p, dnnl_reorder_primitive_desc_create(&pd, md, p->d->engine, wanted,
                                                            p->d->engine, NULL)))
        return from;
    if (p->buffers[from].data) {
        to = reorder_constant(p, pd, from, md, wanted);
    } else {
        to = onednn_scratch(p, wanted);
        operation *o = onednn_add_chosen(p, pd);
        onednn_arg(o, DNNL_ARG_FROM, from, md);
        onednn_arg(o, DNNL_ARG_TO, to, wanted);
    }
    dnnl_primitive_desc_destroy(pd);
    return to;
}

/* ---- values */

static place *place_of(plan *p, ort_id id)
{
    place *at = &p->places[id];
    ort_device_value v;
    if (at->buffer >= 0)
        return at;
    p->r->api->settled(p->r, id, &v);
    size_t bytes = (size_t)v.count * 4;
    void *data = v.constant ? malloc(bytes + 4) : NULL;
    if (v.constant && (!data || !p->r->api->constant(p->r, id, data, bytes)))
        p->failed = true;
    at->md = at->plain_md = onednn_plain(&v);
    at->buffer = at->plain = new_buffer(p, bytes, data);
    return at;
}

int onednn_read(task *t, int slot, dnnl_memory_desc_t *md)
{
    const place *at = place_of(t->p, t->p->r->api->input(t->node, slot));
    *md = at->md;
    return at->buffer;
}

static int plain_of(plan *p, ort_id id, dnnl_memory_desc_t *md)
{
    place *at = place_of(p, id);
    if (at->plain < 0)
        at->plain = onednn_reorder(p, at->buffer, &at->md, &at->plain_md);
    *md = at->plain_md;
    return at->plain;
}

int onednn_read_plain(task *t, int slot, dnnl_memory_desc_t *md)
{
    return plain_of(t->p, t->p->r->api->input(t->node, slot), md);
}

void onednn_set(task *t, int slot, int buffer, const dnnl_memory_desc_t *md)
{
    ort_device_value v = onednn_out(t, slot);
    place *at = &t->p->places[t->p->r->api->output(t->node, slot)];
    at->md = *md;
    at->plain_md = onednn_plain(&v);
    at->buffer = buffer;
    at->plain = dnnl_memory_desc_equal(md, &at->plain_md) ? buffer : -1;
}

int onednn_write(task *t, int slot, const dnnl_memory_desc_t *md)
{
    int buffer = onednn_scratch(t->p, md);
    onednn_set(t, slot, buffer, md);
    return buffer;
}

/* ---- plans */

static void add_part(plan *p, int index)
{
    const ort_device_part *part = &p->r->parts[index];
    const ort_provider_api *api = p->r->api;
    dnnl_memory_desc_t md;
    for (int i = 0; i < part->in_count && !p->failed; i++) {
        const place *at = place_of(p, part->in[i].id);
        p->in[part->in[i].index] = (copy){at->buffer, p->buffers[at->buffer].bytes};
    }
    for (int i = part->first; i < part->first + part->count; i++) {
        task t = {p, p->r->steps[i].node, NULL};
        t.row = onednn_find(api->node_domain(t.node), api->node_type(t.node));
        if (!p->failed && p->status == dnnl_success)
            t.row->emit(&t);
    }
    for (int i = 0; i < part->out_count && !p->failed && p->status == dnnl_success; i++) {
        int buffer = plain_of(p, part->out[i].id, &md);
        p->out[part->out[i].index] = (copy){buffer, dnnl_memory_desc_get_size(&md)};
    }
    p->ends[index] = p->operation_count;
}

void onednn_plan_free(void *made)
{
    plan *p = made;
    for (int i = 0; i < p->operation_count; i++) {
        dnnl_primitive_destroy(p->operations[i]->primitive);
        free(p->operations[i]);
    }
    for (int i = 0; i < p->buffer_count; i++)
        free(p->buffers[i].data);
    free(p->operations);
    free(p->buffers);
    free(p->ends);
    free(p->in);
    free(p->out);
    free(p);
}

static bool allocate(plan *p)
{
    size_t ins = 1, outs = 1, values = p->r->api->value_count(p->r->graph);
    for (int i = 0; i < p->part_count; i++) {
        ins += (size_t)p->r->parts[i].in_count;
        outs += (size_t)p->r->parts[i].out_count;
    }
    p->ends = calloc((size_t)p->part_count + 1, sizeof *p->ends);
    p->in = calloc(ins, sizeof *p->in);
    p->out = calloc(outs, sizeof *p->out);
    p->places = malloc((values + 1) * sizeof *p->places);
    for (size_t i = 0; p->places && i < values; i++)
        p->places[i].buffer = p->places[i].plain = -1;
    return p->ends && p->in && p->out && p->places;
}

ort_status onednn_plan(void *opened, const ort_device_request *request, void **made,
                       ort_error *err)
{
    device *d = opened;
    plan *p = calloc(1, sizeof *p);
    if (!p)
        return d->api->fail(err, ORT_ERROR_MEMORY, "no memory for a plan");
    p->d = d;
    p->r = request;
    p->part_count = request->part_count;
    p->failed = !allocate(p);
    for (int i = 0; i < p->part_count && !p->failed && p->status == dnnl_success; i++)
        add_part(p, i);
    free(p->places);
    p->places = NULL;
    p->r = NULL;
    ort_status status = ORT_OK;
    if (p->failed || p->status == dnnl_out_of_memory)
        status = d->api->fail(err, ORT_ERROR_MEMORY, "no memory for a plan");
    else if (p->status != dnnl_success)
        status = d->api->fail(err, ORT_ERROR_DEVICE, "oneDNN makes no primitive (status %d)",
                              (int)p->status);
    if (status != ORT_OK)
        onednn_plan_free(p);
    else
        *made = p;
    return status;
}
