/* onednn_frame.c - what one run at a time uses: its memory, a stream, a memory object for each
 * argument of each primitive. */
#include "onednn.h"

#include <omp.h>

typedef struct frame {
    plan *p;
    char *memory;
    dnnl_stream_t stream;
    dnnl_exec_arg_t **args; /* by operation */
} frame;

static void *data_of(const frame *f, int index)
{
    const buffer *b = &f->p->buffers[index];
    return b->data ? b->data : f->memory + b->offset;
}

void onednn_frame_free(void *opened)
{
    frame *f = opened;
    for (int i = 0; f->args && i < f->p->operation_count; i++) {
        for (int k = 0; f->args[i] && k < f->p->operations[i]->count; k++)
            if (f->args[i][k].memory)
                dnnl_memory_destroy(f->args[i][k].memory);
        free(f->args[i]);
    }
    if (f->stream)
        dnnl_stream_destroy(f->stream);
    free(f->args);
    free(f->memory);
    free(f);
}

static dnnl_status_t bind(frame *f, int index)
{
    const operation *o = f->p->operations[index];
    dnnl_exec_arg_t *list = f->args[index] = calloc((size_t)o->count + 1, sizeof *list);
    dnnl_status_t status = list ? dnnl_success : dnnl_out_of_memory;
    for (int k = 0; k < o->count && status == dnnl_success; k++) {
        list[k].arg = o->args[k].name;
        status = dnnl_memory_create(&list[k].memory, &o->args[k].md, f->p->d->engine,
                                    data_of(f, o->args[k].buffer));
    }
    return status;
}

ort_status onednn_frame(void *made, void **opened, size_t *bytes, ort_error *err)
{
    plan *p = made;
    frame *f = calloc(1, sizeof *f);
    if (!f)
        return p->d->api->fail(err, ORT_ERROR_MEMORY, "no memory for a run");
    f->p = p;
    f->memory = aligned_alloc(64, (p->frame_bytes + 127) / 64 * 64);
    f->args = calloc((size_t)p->operation_count + 1, sizeof *f->args);
    dnnl_status_t status = f->memory && f->args ? dnnl_stream_create(&f->stream, p->d->engine,
                                                                     dnnl_stream_default_flags)
                                                : dnnl_out_of_memory;
    for (int i = 0; i < p->operation_count && status == dnnl_success; i++)
        status = bind(f, i);
    if (status != dnnl_success) {
        onednn_frame_free(f);
        return p->d->api->fail(err, status == dnnl_out_of_memory ? ORT_ERROR_MEMORY
                                                                 : ORT_ERROR_DEVICE,
                               "oneDNN: the memory of a run (status %d)", (int)status);
    }
    *bytes = p->frame_bytes;
    *opened = f;
    return ORT_OK;
}

ort_status onednn_copy_in(void *opened, int index, const void *data, ort_error *err)
{
    frame *f = opened;
    const copy *c = &f->p->in[index];
    if (c->bytes)
        memcpy(data_of(f, c->buffer), data, c->bytes);
    return ORT_OK;
}

ort_status onednn_copy_out(void *opened, int index, void *data, ort_error *err)
{
    frame *f = opened;
    const copy *c = &f->p->out[index];
    if (c->bytes)
        memcpy(data, data_of(f, c->buffer), c->bytes);
    return ORT_OK;
}

/* The number of threads belongs to the thread that calls. */
ort_status onednn_run(void *opened, int part, ort_error *err)
{
    frame *f = opened;
    plan *p = f->p;
    int before = omp_get_max_threads();
    dnnl_status_t status = dnnl_success;
    omp_set_num_threads(p->d->threads);
    for (int i = part ? p->ends[part - 1] : 0; i < p->ends[part] && status == dnnl_success; i++)
        status = dnnl_primitive_execute(p->operations[i]->primitive, f->stream,
                                        p->operations[i]->count, f->args[i]);
    omp_set_num_threads(before);
    return status == dnnl_success ? ORT_OK
                                  : p->d->api->fail(err, ORT_ERROR_DEVICE,
                                                    "oneDNN: a primitive failed (status %d)",
                                                    (int)status);
}

ort_status onednn_sync(void *opened, ort_error *err)
{
    frame *f = opened;
    dnnl_status_t status = dnnl_stream_wait(f->stream);
    return status == dnnl_success ? ORT_OK
                                  : f->p->d->api->fail(err, ORT_ERROR_DEVICE,
                                                       "oneDNN: waiting failed (status %d)",
                                                       (int)status);
}
