/* opencl_memory.c - memory for values of callers: of the context that all devices of an environment
 * with the same number share. Serial numbers tell frames whether what they are lent is what their
 * kernels have; an address may be used again.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/error.h"
#include "provider/opencl/opencl.h"

uint64_t ort_cl_memory_serial(void)
{
    static atomic_uint_fast64_t last; /* a device may be open twice, and take the other's memory */
    return (uint64_t)atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

static ort_cl_memory *new_memory(ort_cl_device *d)
{
    ort_cl_memory *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->device = d;
    m->serial = ort_cl_memory_serial();
    return m;
}

/* Takes the object, if there is one. */
static ort_status give(ort_cl_memory *m, cl_int code, void **memory, ort_error *err)
{
    if (code != CL_SUCCESS) {
        free(m);
        return ort_cl_fail(code, "a buffer", err);
    }
    *memory = m;
    return ORT_OK;
}

ort_status ort_cl_memory_new(void *device, size_t bytes, void **memory, ort_error *err)
{
    ort_cl_device *d = device;
    cl_int code;
    if (bytes > d->most_bytes)
        return ort_error_set(err, ORT_ERROR_MEMORY, "%zu bytes; a buffer of %s has %zu at most",
                             bytes, d->name, d->most_bytes);
    ort_cl_memory *m = new_memory(d);
    if (!m)
        return ort_error_memory(err, sizeof *m);
    m->object = d->api.clCreateBuffer(d->context, CL_MEM_READ_WRITE,
                                      ort_round_up(bytes, d->alignment), NULL, &code);
    return give(m, code, memory, err);
}

ort_status ort_cl_memory_part(void *memory, size_t offset, size_t bytes, void **part,
                              ort_error *err)
{
    const ort_cl_memory *whole = memory;
    ort_cl_device *d = whole->device;
    cl_buffer_region region = {offset, bytes};
    cl_int code;
    ort_cl_memory *m = new_memory(d);
    if (!m)
        return ort_error_memory(err, sizeof *m);
    m->object = d->api.clCreateSubBuffer(whole->object, CL_MEM_READ_WRITE,
                                         CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    return give(m, code, part, err);
}

void ort_cl_memory_free(void *memory)
{
    ort_cl_memory *m = memory;
    m->device->api.clReleaseMemObject(m->object);
    free(m);
}

size_t ort_cl_memory_alignment(void *device)
{
    const ort_cl_device *d = device;
    return d->alignment;
}

ort_status ort_cl_memory_write(void *memory, const void *data, size_t bytes, ort_error *err)
{
    const ort_cl_memory *m = memory;
    cl_int code = m->device->api.clEnqueueWriteBuffer(m->device->queue, m->object, CL_TRUE, 0,
                                                      bytes, data, 0, NULL, NULL);
    return code == CL_SUCCESS ? ORT_OK : ort_cl_fail(code, "a copy to the device", err);
}

ort_status ort_cl_memory_read(void *memory, void *data, size_t bytes, ort_error *err)
{
    const ort_cl_memory *m = memory;
    cl_int code = m->device->api.clEnqueueReadBuffer(m->device->queue, m->object, CL_TRUE, 0,
                                                     bytes, data, 0, NULL, NULL);
    return code == CL_SUCCESS ? ORT_OK : ort_cl_fail(code, "a copy from the device", err);
}
