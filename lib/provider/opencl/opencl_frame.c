/* opencl_frame.c - what one run at a time uses: memory, a queue, kernel objects with their
 * arguments. Buffers are parts of one allocation; those of equal place are the same object.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "provider/opencl/opencl.h"

typedef struct timed { /* while a profile watches */
    cl_event event;
    const char *kind, *name;
    uint64_t asked_ns; /* by the host's clock */
    int launch;        /* -1: a copy */
} timed;

typedef struct ort_cl_frame {
    ort_cl_plan *plan;
    cl_command_queue queue;
    cl_command_queue plain, timing; /* which of these it is; NULL: not made yet */
    ORT_VEC(timed) events;
    bool watched;    /* by a profile */
    double *seen_ns; /* while the device is measured: by launch, its time; below 0: not seen */
    cl_mem memory;
    cl_mem *own;        /* by buffer of the plan; of constants, theirs */
    cl_mem *buffers;    /* these, or what callers lend in their place */
    uint64_t *lent;     /* by buffer: the serial number of that; 0: none */
    cl_mem *sent;       /* by copy out: where it goes on the device besides; or NULL */
    ORT_VEC(cl_mem) shared; /* memory of the host, as buffers until the device is done with it */
    void **placed;      /* by copy out: such memory, where its buffer is; or NULL */
    cl_kernel *kernels; /* by launch */
    cl_int fault[3]; /* of a check: which, where, what; 0: none failed */
} ort_cl_frame;

static ort_status make_buffers(ort_cl_frame *f, ort_error *err)
{
    const ort_cl_plan *p = f->plan;
    const ort_cl_api *api = &p->device->api;
    cl_int code = CL_SUCCESS;
    if (p->memory_bytes)
        f->memory = api->clCreateBuffer(p->device->context, CL_MEM_READ_WRITE, p->memory_bytes,
                                        NULL, &code);
    for (size_t i = 0; i < p->buffers.count && code == CL_SUCCESS; i++) {
        const ort_cl_buffer *b = &p->buffers.data[i];
        cl_buffer_region region = {b->offset, b->bytes};
        f->own[i] = b->memory ? b->memory
                                  : api->clCreateSubBuffer(f->memory, CL_MEM_READ_WRITE,
                                                           CL_BUFFER_CREATE_TYPE_REGION, &region,
                                                           &code);
    }
    memcpy(f->buffers, f->own, p->buffers.count * sizeof *f->own);
    return code == CL_SUCCESS ? ORT_OK : ort_cl_fail(code, "memory of the device", err);
}

typedef union number { /* of four bytes, as kernels have them */
    cl_int i;
    cl_float f;
} number;

static number number_of(const ort_cl_arg *a)
{
    return a->kind == 'f' ? (number){.f = a->f} : (number){.i = a->i};
}

static cl_int set_packed(const ort_cl_frame *f, const ort_cl_launch *l, cl_kernel kernel)
{
    number all[ORT_CL_ARGS];
    for (int i = l->packed; i < l->arg_count; i++)
        all[i - l->packed] = number_of(&l->args[i]);
    return f->plan->device->api.clSetKernelArg(
        kernel, (cl_uint)l->packed, (size_t)(l->arg_count - l->packed) * sizeof *all, all);
}

static ort_status set_args(const ort_cl_frame *f, const ort_cl_launch *l, cl_kernel kernel,
                           ort_error *err)
{
    const ort_cl_api *api = &f->plan->device->api;
    int alone = l->packed ? l->packed : l->arg_count;
    cl_int code = CL_SUCCESS;
    for (int i = 0; i < alone && code == CL_SUCCESS; i++) {
        const ort_cl_arg *a = &l->args[i];
        const number n = number_of(a);
        code = a->kind == 'b'
                   ? api->clSetKernelArg(kernel, (cl_uint)i, sizeof(cl_mem), &f->buffers[a->i])
                   : api->clSetKernelArg(kernel, (cl_uint)i, sizeof n, &n);
    }
    if (code == CL_SUCCESS && l->packed)
        code = set_packed(f, l, kernel);
    return code == CL_SUCCESS ? ORT_OK : ort_cl_fail(code, l->kernel, err);
}

static ort_status make_kernels(ort_cl_frame *f, ort_error *err)
{
    const ort_cl_plan *p = f->plan;
    for (size_t i = 0; i < p->launches.count; i++) {
        const ort_cl_launch *l = &p->launches.data[i];
        if (!strcmp(l->program, "chains"))
            ORT_TRY(ort_cl_generated_kernel(p->device, p->generated, l->kernel, &f->kernels[i],
                                            err));
        else
            ORT_TRY(ort_cl_kernel(p->device, l->tiles, l->program, l->half, l->kernel,
                                  &f->kernels[i], err));
        ORT_TRY(set_args(f, l, f->kernels[i], err));
    }
    return ORT_OK;
}

/* No check has failed. */
static ort_status clear_fault(ort_cl_frame *f, ort_error *err)
{
    const ort_cl_plan *p = f->plan;
    static const cl_int none[3];
    cl_int code = CL_SUCCESS;
    if (p->fault >= 0)
        code = p->device->api.clEnqueueWriteBuffer(f->queue, f->buffers[p->fault], CL_TRUE, 0,
                                                   sizeof none, none, 0, NULL, NULL);
    return code == CL_SUCCESS ? ORT_OK : ort_cl_fail(code, "a copy to the device", err);
}

static ort_status clear_counters(ort_cl_frame *f, ort_error *err)
{
    const ort_cl_plan *p = f->plan;
    cl_int code = CL_SUCCESS;
    if (p->counters < 0)
        return ORT_OK;
    size_t bytes = p->buffers.data[p->counters].bytes;
    void *none = calloc(1, bytes);
    if (!none)
        return ort_error_memory(err, bytes);
    code = p->device->api.clEnqueueWriteBuffer(f->queue, f->buffers[p->counters], CL_TRUE, 0, bytes,
                                               none, 0, NULL, NULL);
    free(none);
    return code == CL_SUCCESS ? ORT_OK : ort_cl_fail(code, "a copy to the device", err);
}

static ort_status choose_queue(ort_cl_frame *f, bool timing, ort_error *err)
{
    const ort_cl_device *d = f->plan->device;
    cl_int code = CL_SUCCESS;
    if (timing && !f->timing)
        f->timing = d->api.clCreateCommandQueue(d->context, d->id, CL_QUEUE_PROFILING_ENABLE,
                                                &code);
    if (code != CL_SUCCESS) {
        f->timing = NULL;
        return ort_cl_fail(code, "a queue that tells times", err);
    }
    f->queue = timing ? f->timing : f->plain;
    return ORT_OK;
}

static ort_status start_measuring(ort_cl_frame *f, ort_error *err)
{
    size_t count = f->plan->launches.count;
    f->seen_ns = calloc(count + 1, sizeof *f->seen_ns);
    if (!f->seen_ns)
        return ort_error_memory(err, count * sizeof *f->seen_ns);
    return choose_queue(f, true, err);
}

static ort_status make(ort_cl_frame *f, ort_error *err)
{
    ort_cl_plan *p = f->plan;
    cl_int code;
    f->own = calloc(p->buffers.count + 1, sizeof *f->own);
    f->buffers = calloc(p->buffers.count + 1, sizeof *f->buffers);
    f->lent = calloc(p->buffers.count + 1, sizeof *f->lent);
    f->sent = calloc(p->out.count + 1, sizeof *f->sent);
    f->placed = calloc(p->out.count + 1, sizeof *f->placed);
    f->kernels = calloc(p->launches.count + 1, sizeof *f->kernels);
    if (!f->own || !f->buffers || !f->lent || !f->sent || !f->placed || !f->kernels)
        return ort_error_memory(err, p->launches.count * sizeof *f->kernels);
    f->queue = p->device->api.clCreateCommandQueue(p->device->context, p->device->id, 0, &code);
    if (code != CL_SUCCESS)
        return ort_cl_fail(code, "a queue", err);
    f->plain = f->queue;
    if (p->device->measuring)
        ORT_TRY(start_measuring(f, err));
    ORT_TRY(make_buffers(f, err));
    ORT_TRY(clear_fault(f, err));
    ORT_TRY(clear_counters(f, err));
    return make_kernels(f, err);
}

ort_status ort_cl_frame_new(void *plan, void **frame, size_t *bytes, ort_error *err)
{
    ort_cl_frame *f = calloc(1, sizeof *f);
    if (!f)
        return ort_error_memory(err, sizeof *f);
    f->plan = plan;
    ort_status status = make(f, err);
    if (status != ORT_OK) {
        ort_cl_frame_free(f);
        return status;
    }
    *bytes = f->plan->memory_bytes;
    *frame = f;
    return ORT_OK;
}

static void let_go(ort_cl_frame *f)
{
    for (size_t i = 0; i < f->shared.count; i++)
        f->plan->device->api.clReleaseMemObject(f->shared.data[i]);
    f->shared.count = 0;
}

void ort_cl_frame_free(void *frame)
{
    ort_cl_frame *f = frame;
    const ort_cl_plan *p = f->plan;
    const ort_cl_api *api = &p->device->api;
    if (f->queue)
        api->clFinish(f->queue);
    let_go(f);
    ort_vec_release(&f->shared);
    for (size_t i = 0; f->kernels && i < p->launches.count; i++)
        if (f->kernels[i])
            api->clReleaseKernel(f->kernels[i]);
    for (size_t i = 0; f->own && i < p->buffers.count; i++)
        if (f->own[i] && !p->buffers.data[i].memory)
            api->clReleaseMemObject(f->own[i]);
    if (f->memory)
        api->clReleaseMemObject(f->memory);
    for (size_t i = 0; i < f->events.count; i++)
        api->clReleaseEvent(f->events.data[i].event);
    ort_vec_release(&f->events);
    if (f->plain)
        api->clReleaseCommandQueue(f->plain);
    if (f->timing)
        api->clReleaseCommandQueue(f->timing);
    free(f->own);
    free(f->buffers);
    free(f->lent);
    free(f->sent);
    free(f->placed);
    free(f->kernels);
    free(f->seen_ns);
    free(f);
}

/* ---- times */

ort_status ort_cl_watch(void *frame, bool on, ort_error *err)
{
    ort_cl_frame *f = frame;
    f->watched = on;
    return choose_queue(f, on || f->seen_ns, err);
}

/* Room for what is enqueued next; NULL: nobody watches. */
static timed *next_event(ort_cl_frame *f, const char *kind, const char *name, int launch)
{
    timed event = {NULL, kind, name, ort_clock_ns(), launch};
    if (f->queue != f->timing || !ort_vec_push(&f->events, event))
        return NULL;
    return &f->events.data[f->events.count - 1];
}

static cl_int noted(ort_cl_frame *f, const timed *event, cl_int code)
{
    if (event && code != CL_SUCCESS)
        f->events.count--;
    return code;
}

static uint64_t time_of(const ort_cl_frame *f, const timed *t, cl_profiling_info what)
{
    cl_ulong ns = 0;
    f->plan->device->api.clGetEventProfilingInfo(t->event, what, sizeof ns, &ns, NULL);
    return ns;
}

/* The device has a clock of its own. Something was queued just after it was asked for: the least
 * gap of all tells how far the clocks are apart. */
ort_status ort_cl_times(void *frame, ort_device_time_fn *tell, void *arg, ort_error *err)
{
    ort_cl_frame *f = frame;
    uint64_t shift = 0;
    for (size_t i = 0; i < f->events.count; i++) {
        const timed *t = &f->events.data[i];
        uint64_t apart = t->asked_ns - time_of(f, t, CL_PROFILING_COMMAND_QUEUED);
        shift = i == 0 || (int64_t)(apart - shift) > 0 ? apart : shift;
    }
    for (size_t i = 0; i < f->events.count; i++) {
        const timed *t = &f->events.data[i];
        const ort_device_time time = {
            .kind = t->kind,
            .name = t->name,
            .queued_ns = time_of(f, t, CL_PROFILING_COMMAND_QUEUED) + shift,
            .begin_ns = time_of(f, t, CL_PROFILING_COMMAND_START) + shift,
            .end_ns = time_of(f, t, CL_PROFILING_COMMAND_END) + shift,
        };
        tell(arg, &time);
        f->plan->device->api.clReleaseEvent(t->event);
    }
    f->events.count = 0;
    return ORT_OK;
}

/* What launches took, to who measures. Events stay for a profile, where one watches. */
static ort_status note_times(ort_cl_frame *f, ort_error *err)
{
    for (size_t i = 0; i < f->plan->launches.count; i++)
        f->seen_ns[i] = -1;
    for (size_t i = 0; i < f->events.count; i++) {
        const timed *t = &f->events.data[i];
        if (t->launch >= 0)
            f->seen_ns[t->launch] = (double)(time_of(f, t, CL_PROFILING_COMMAND_END) -
                                             time_of(f, t, CL_PROFILING_COMMAND_START));
        if (!f->watched)
            f->plan->device->api.clReleaseEvent(t->event);
    }
    if (!f->watched)
        f->events.count = 0;
    return ort_cl_trials_note(f->plan, f->seen_ns, err);
}

/* ---- memory of callers */

/* Every kernel that has the buffer gets the memory; NULL: the frame's own. */
static ort_status lend(ort_cl_frame *f, int buffer, const ort_cl_memory *m, ort_error *err)
{
    const ort_cl_plan *p = f->plan;
    cl_mem object = m ? m->object : f->own[buffer];
    if (f->lent[buffer] == (m ? m->serial : 0))
        return ORT_OK;
    f->lent[buffer] = UINT64_MAX; /* neither, until all of them have it */
    for (size_t i = 0; i < p->launches.count; i++) {
        const ort_cl_launch *l = &p->launches.data[i];
        for (int k = 0; k < l->arg_count; k++) {
            if (l->args[k].kind != 'b' || l->args[k].i != buffer)
                continue;
            cl_int code = p->device->api.clSetKernelArg(f->kernels[i], (cl_uint)k, sizeof object,
                                                        &object);
            if (code != CL_SUCCESS)
                return ort_cl_fail(code, l->kernel, err);
        }
    }
    f->buffers[buffer] = object;
    f->lent[buffer] = m ? m->serial : 0;
    return ORT_OK;
}

ort_status ort_cl_use_in(void *frame, int index, void *memory, ort_error *err)
{
    ort_cl_frame *f = frame;
    return lend(f, f->plan->in.data[index].buffer, memory, err);
}

/* A value that is also brought in, a constant, another result, or a part or a whole can't move: it
 * is copied. */
static bool can_move(const ort_cl_plan *p, int index)
{
    int buffer = p->out.data[index].buffer;
    for (size_t i = 0; i < p->in.count; i++)
        if (p->in.data[i].buffer == buffer)
            return false;
    for (size_t i = 0; i < p->out.count; i++)
        if ((int)i != index && p->out.data[i].buffer == buffer)
            return false;
    const ort_cl_buffer *b = &p->buffers.data[buffer];
    return !b->memory && b->whole < 0 && !b->divided;
}

ort_status ort_cl_use_out(void *frame, int index, void *memory, ort_error *err)
{
    ort_cl_frame *f = frame;
    const ort_cl_memory *m = memory;
    if (can_move(f->plan, index))
        return lend(f, f->plan->out.data[index].buffer, m, err);
    f->sent[index] = m ? m->object : NULL;
    return ORT_OK;
}

/* ---- memory of the host
 *
 * A device that is this machine's processor reads inputs where they lie, and writes results where
 * they are to lie. Its driver may keep a copy of what a buffer was made of: the buffer is a new one
 * in each run, and is mapped before the host reads it. */

/* Bytes. A copy to the device is a command, which takes longer than a buffer; maps are two. */
enum { LEAST_READ = 1, LEAST_WRITTEN = 1 << 18, SHARED_ALIGNMENT = 64 };

/* What other parts use isn't in the host's memory, which is the host's again then; nor what is read
 * where another buffer has it. */
static bool can_share(const ort_cl_plan *p, const ort_cl_copy *c, const void *data, size_t least)
{
    const ort_cl_buffer *b = &p->buffers.data[c->buffer];
    return p->device->type & CL_DEVICE_TYPE_CPU && c->bytes >= least &&
           (uintptr_t)data % SHARED_ALIGNMENT == 0 && b->first_part == b->last_part &&
           b->whole < 0 && !b->divided && !b->memory;
}

static ort_status share(ort_cl_frame *f, const ort_cl_copy *c, cl_mem_flags flags, void *data,
                        ort_error *err)
{
    ort_cl_device *d = f->plan->device;
    cl_int code;
    ort_cl_memory m = {.device = d, .serial = ort_cl_memory_serial()};
    m.object = d->api.clCreateBuffer(d->context, flags | CL_MEM_USE_HOST_PTR, c->bytes, data,
                                     &code);
    if (code != CL_SUCCESS)
        return ort_cl_fail(code, "a buffer", err);
    if (!ort_vec_push(&f->shared, m.object)) {
        d->api.clReleaseMemObject(m.object);
        return ort_error_memory(err, sizeof m.object);
    }
    return lend(f, c->buffer, &m, err);
}

ort_status ort_cl_place_out(void *frame, int index, void *data, ort_error *err)
{
    ort_cl_frame *f = frame;
    const ort_cl_copy *c = &f->plan->out.data[index];
    f->placed[index] = NULL;
    if (!can_move(f->plan, index))
        return ORT_OK;
    if (!can_share(f->plan, c, data, LEAST_WRITTEN))
        return lend(f, c->buffer, NULL, err);
    ORT_TRY(share(f, c, CL_MEM_READ_WRITE, data, err));
    f->placed[index] = data;
    return ORT_OK;
}

/* The host's memory has what the device wrote there. */
static cl_int show(const ort_cl_frame *f, const ort_cl_copy *c, cl_event *event)
{
    const ort_cl_api *api = &f->plan->device->api;
    cl_mem object = f->buffers[c->buffer];
    cl_int code;
    void *at = api->clEnqueueMapBuffer(f->queue, object, CL_FALSE, CL_MAP_READ, 0, c->bytes, 0,
                                       NULL, event, &code);
    if (code != CL_SUCCESS)
        return code;
    code = api->clEnqueueUnmapMemObject(f->queue, object, at, 0, NULL, NULL);
    if (code != CL_SUCCESS && event)
        api->clReleaseEvent(*event);
    return code;
}

static ort_status send(const ort_cl_frame *f, int part, ort_error *err)
{
    const ort_cl_plan *p = f->plan;
    for (int i = part ? p->out_ends.data[part - 1] : 0; i < p->out_ends.data[part]; i++) {
        const ort_cl_copy *c = &p->out.data[i];
        cl_int code = CL_SUCCESS;
        if (f->sent[i] && c->bytes)
            code = p->device->api.clEnqueueCopyBuffer(f->queue, f->buffers[c->buffer], f->sent[i],
                                                      0, 0, c->bytes, 0, NULL, NULL);
        if (code != CL_SUCCESS)
            return ort_cl_fail(code, "a copy on the device", err);
    }
    return ORT_OK;
}

/* ---- a run */

ort_status ort_cl_copy_in(void *frame, int index, const void *data, ort_error *err)
{
    ort_cl_frame *f = frame;
    const ort_cl_copy *c = &f->plan->in.data[index];
    if (can_share(f->plan, c, data, LEAST_READ))
        return share(f, c, CL_MEM_READ_ONLY, (void *)(uintptr_t)data, err);
    ORT_TRY(lend(f, c->buffer, NULL, err));
    timed *t = c->bytes ? next_event(f, "copy in", "", -1) : NULL;
    cl_int code = CL_SUCCESS;
    if (c->bytes)
        code = f->plan->device->api.clEnqueueWriteBuffer(f->queue, f->buffers[c->buffer], CL_FALSE,
                                                         0, c->bytes, data, 0, NULL,
                                                         t ? &t->event : NULL);
    code = noted(f, t, code);
    return code == CL_SUCCESS ? ORT_OK : ort_cl_fail(code, "a copy to the device", err);
}

ort_status ort_cl_copy_out(void *frame, int index, void *data, ort_error *err)
{
    ort_cl_frame *f = frame;
    const ort_cl_copy *c = &f->plan->out.data[index];
    timed *t = c->bytes ? next_event(f, "copy out", "", -1) : NULL;
    cl_int code = CL_SUCCESS;
    if (c->bytes && f->placed[index] == data)
        code = show(f, c, t ? &t->event : NULL);
    else if (c->bytes)
        code = f->plan->device->api.clEnqueueReadBuffer(f->queue, f->buffers[c->buffer], CL_FALSE,
                                                        0, c->bytes, data, 0, NULL,
                                                        t ? &t->event : NULL);
    code = noted(f, t, code);
    return code == CL_SUCCESS ? ORT_OK : ort_cl_fail(code, "a copy from the device", err);
}

ort_status ort_cl_run(void *frame, int part, ort_error *err)
{
    ort_cl_frame *f = frame;
    const ort_cl_plan *p = f->plan;
    for (int i = part ? p->ends.data[part - 1] : 0; i < p->ends.data[part]; i++) {
        const ort_cl_launch *l = &p->launches.data[i];
        timed *t = next_event(f, "kernel", l->kernel, i);
        cl_int code = p->device->api.clEnqueueNDRangeKernel(
            f->queue, f->kernels[i], 3, NULL, l->global, l->local[0] ? l->local : NULL, 0, NULL,
            t ? &t->event : NULL);
        code = noted(f, t, code);
        if (code != CL_SUCCESS)
            return ort_cl_fail(code, l->kernel, err);
    }
    return send(f, part, err);
}

static ort_status tell_fault(ort_cl_frame *f, ort_error *err)
{
    char label[256];
    const ort_cl_check *c = &f->plan->checks.data[f->fault[0] - 1];
    ort_node_label(c->node, label, sizeof label);
    ORT_TRY(clear_fault(f, err));
    if (!c->size)
        return ort_error_set(err, ORT_ERROR_DATA, "%s: an id or position of token %d is outside "
                             "its table", label, f->fault[1]);
    return ort_error_set(err, ORT_ERROR_DATA, "%s: indices[%d] is %d, outside [%d, %d]", label,
                         f->fault[1], f->fault[2], c->least, c->size - 1);
}

ort_status ort_cl_sync(void *frame, ort_error *err)
{
    ort_cl_frame *f = frame;
    const ort_cl_plan *p = f->plan;
    const ort_cl_api *api = &p->device->api;
    cl_int code = CL_SUCCESS;
    f->fault[0] = 0;
    if (p->fault >= 0)
        code = api->clEnqueueReadBuffer(f->queue, f->buffers[p->fault], CL_FALSE, 0,
                                        sizeof f->fault, f->fault, 0, NULL, NULL);
    cl_int finished = api->clFinish(f->queue);
    code = code != CL_SUCCESS ? code : finished;
    let_go(f);
    if (code != CL_SUCCESS)
        return ort_cl_fail(code, "the device", err);
    if (f->seen_ns)
        ORT_TRY(note_times(f, err));
    return f->fault[0] ? tell_fault(f, err) : ORT_OK;
}
