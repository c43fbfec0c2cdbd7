/* opencl_weight.c - constants on the device: uploaded when the first plan needs them, in the form
 * that their kernels read, and kept for all plans of the session.
 *
 * Strips are made by the device: the tensor is uploaded as it is, packed into other memory, and
 * released again.
 */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "provider/opencl/opencl.h"

/* Its bytes as kernels read them: 16 bits are widened, or 32 rounded. */
static void *converted(const ort_tensor *t, ort_dtype dtype)
{
    if (t->dtype == dtype)
        return NULL;
    ort_tensor other = {.dtype = dtype, .shape = t->shape};
    other.data = malloc(ort_tensor_bytes(&other) + 1);
    if (other.data)
        ort_tensor_convert(&other, t, NULL);
    return other.data;
}

/* A number beyond the largest half becomes the largest, as in kernels (kept() of cl/common.cl). The
 * device counts such, and the energy of weights and of what rounding took from them. */
static void note_halves(ort_cl_device *d, const ort_tensor *t, uint16_t *halves)
{
    const float *floats = t->data;
    int64_t count = ort_tensor_count(t), beyond = 0;
    double signal = 0, noise = 0;
    for (int64_t i = 0; i < count; i++) {
        float x;
        memcpy(&x, floats + i, sizeof x); /* any alignment */
        if (!isfinite(x))
            continue;
        if ((halves[i] & 0x7fff) == 0x7c00) {
            halves[i]--;
            beyond++;
            continue;
        }
        double error = (double)ort_f16_to_f32(halves[i]) - x;
        signal += (double)x * x;
        noise += error * error;
    }
    pthread_mutex_lock(&d->lock);
    d->half_signal += signal;
    d->half_noise += noise;
    d->half_beyond += beyond;
    pthread_mutex_unlock(&d->lock);
}

ort_status ort_cl_upload(ort_cl_device *d, const void *data, size_t bytes, cl_mem *memory,
                         ort_error *err)
{
    cl_int code;
    *memory = d->api.clCreateBuffer(d->context, CL_MEM_READ_WRITE, bytes ? bytes : 1, NULL, &code);
    if (code != CL_SUCCESS)
        return ort_cl_fail(code, "memory of a weight", err);
    if (bytes)
        code = d->api.clEnqueueWriteBuffer(d->queue, *memory, CL_TRUE, 0, bytes, data, 0, NULL,
                                           NULL);
    if (code == CL_SUCCESS)
        return ORT_OK;
    d->api.clReleaseMemObject(*memory);
    *memory = NULL;
    return ort_cl_fail(code, "a weight", err);
}

static ort_status upload(ort_cl_device *d, const ort_tensor *t, const ort_fact *fact, bool half,
                         cl_mem *memory, ort_error *err)
{
    ort_tensor as = {.dtype = half ? ORT_DTYPE_FLOAT16 : fact->type.dtype, .shape = t->shape};
    void *made = converted(t, as.dtype);
    if (!made && t->dtype != as.dtype)
        return ort_error_memory(err, ort_tensor_bytes(&as));
    if (made && half && t->dtype == ORT_DTYPE_FLOAT)
        note_halves(d, t, made);
    ort_status status = ort_cl_upload(d, made ? made : t->data, ort_tensor_bytes(&as), memory, err);
    free(made);
    return status;
}

/* ---- strips */

/* Of floats or halves; in strips it is no matter what tensor they are of. */
static size_t bytes_of(const ort_tensor *t, const ort_cl_strips *x)
{
    int64_t strips = x->strip ? x->batch * ((x->outer + x->strip - 1) / x->strip) : 0;
    int64_t count = x->strip ? strips * x->strip * x->k : ort_tensor_count(t);
    return (size_t)count * (x->half ? 2 : 4);
}

static cl_int launch_pack(ort_cl_device *d, cl_kernel kernel, cl_mem from, cl_mem to,
                          const ort_cl_strips *x)
{
    const cl_int numbers[] = {(cl_int)x->start,  (cl_int)x->batch_step, (cl_int)x->outer_step,
                              (cl_int)x->k_step, (cl_int)x->outer,      (cl_int)x->k,
                              (cl_int)x->strip};
    size_t strips = (size_t)(x->batch * ((x->outer + x->strip - 1) / x->strip));
    const size_t grid[2] = {d->lanes ? 1 : (size_t)x->k, strips}, local[2] = {1, 1};
    cl_int code = d->api.clSetKernelArg(kernel, 0, sizeof from, &from);
    if (code == CL_SUCCESS)
        code = d->api.clSetKernelArg(kernel, 1, sizeof to, &to);
    for (cl_uint i = 0; i < sizeof numbers / sizeof *numbers && code == CL_SUCCESS; i++)
        code = d->api.clSetKernelArg(kernel, i + 2, sizeof *numbers, &numbers[i]);
    if (code == CL_SUCCESS)
        code = d->api.clEnqueueNDRangeKernel(d->queue, kernel, 2, NULL, grid,
                                             d->lanes ? local : NULL, 0, NULL, NULL);
    return code == CL_SUCCESS ? d->api.clFinish(d->queue) : code;
}

static ort_status pack(ort_cl_device *d, cl_mem from, const ort_cl_strips *x, cl_mem *to,
                       ort_error *err)
{
    cl_kernel kernel;
    cl_int code;
    size_t bytes = bytes_of(NULL, x);
    ORT_TRY(ort_cl_kernel(d, d->own, "gemm", x->half, "pack", &kernel, err));
    *to = d->api.clCreateBuffer(d->context, CL_MEM_READ_WRITE, bytes ? bytes : 1, NULL, &code);
    if (code == CL_SUCCESS && bytes) {
        code = launch_pack(d, kernel, from, *to, x);
        if (code != CL_SUCCESS) {
            d->api.clReleaseMemObject(*to);
            *to = NULL;
        }
    }
    d->api.clReleaseKernel(kernel);
    return code == CL_SUCCESS ? ORT_OK : ort_cl_fail(code, "packing a weight", err);
}

static ort_status make(ort_cl_device *d, const ort_tensor *t, const ort_fact *fact,
                       const ort_cl_strips *strips, cl_mem *memory, ort_error *err)
{
    cl_mem plain = NULL;
    if (!strips->strip)
        return upload(d, t, fact, strips->half, memory, err);
    ORT_TRY(upload(d, t, fact, strips->half, &plain, err));
    ort_status status = pack(d, plain, strips, memory, err);
    d->api.clReleaseMemObject(plain);
    return status;
}

/* ---- those of the session */

static cl_mem find(const ort_cl_device *d, const ort_tensor *t, const ort_cl_strips *strips)
{
    for (size_t i = 0; i < d->constants.count; i++)
        if (d->constants.data[i].tensor == t &&
            !memcmp(&d->constants.data[i].strips, strips, sizeof *strips))
            return d->constants.data[i].memory;
    return NULL;
}

ort_status ort_cl_keep(ort_cl_device *d, const ort_tensor *t, const ort_cl_strips *strips,
                       cl_mem *memory, ort_error *err)
{
    ort_status status = ORT_OK;
    const ort_cl_constant constant = {t, *strips, *memory};
    pthread_mutex_lock(&d->lock);
    cl_mem other = find(d, t, strips); /* made by another thread meanwhile */
    if (other || !ort_vec_push(&d->constants, constant)) {
        d->api.clReleaseMemObject(*memory);
        status = other ? ORT_OK : ort_error_memory(err, sizeof constant);
        *memory = other;
    }
    pthread_mutex_unlock(&d->lock);
    return status;
}

cl_mem ort_cl_kept(ort_cl_device *d, const ort_tensor *t, const ort_cl_strips *strips)
{
    pthread_mutex_lock(&d->lock);
    cl_mem memory = find(d, t, strips);
    pthread_mutex_unlock(&d->lock);
    return memory;
}

ort_status ort_cl_weight(ort_cl_device *d, const ort_tensor *t, const ort_fact *fact,
                         const ort_cl_strips *strips, bool shared, cl_mem *memory,
                         ort_error *err)
{
    if (!shared)
        return make(d, t, fact, strips, memory, err);
    *memory = ort_cl_kept(d, t, strips);
    if (*memory)
        return ORT_OK;
    ORT_TRY(make(d, t, fact, strips, memory, err));
    return ort_cl_keep(d, t, strips, memory, err);
}

/* ---- several of one shape */

static cl_int copy_behind(ort_cl_device *d, cl_mem from, cl_mem to, size_t at, size_t bytes)
{
    cl_int code = bytes ? d->api.clEnqueueCopyBuffer(d->queue, from, to, 0, at, bytes, 0, NULL,
                                                     NULL)
                        : CL_SUCCESS;
    return code == CL_SUCCESS ? d->api.clFinish(d->queue) : code;
}

static ort_status fill_all(ort_cl_device *d, const ort_tensor *const *tensors, int count,
                           const ort_fact *fact, const ort_cl_strips *strips, cl_mem to,
                           ort_error *err)
{
    size_t bytes = bytes_of(tensors[0], strips);
    for (int i = 0; i < count; i++) {
        cl_mem one;
        ORT_TRY(make(d, tensors[i], fact, strips, &one, err));
        cl_int code = copy_behind(d, one, to, (size_t)i * bytes, bytes);
        d->api.clReleaseMemObject(one);
        if (code != CL_SUCCESS)
            return ort_cl_fail(code, "a weight", err);
    }
    return ORT_OK;
}

ort_status ort_cl_weights(ort_cl_device *d, const ort_tensor *const *tensors, int count,
                          const ort_fact *fact, const ort_cl_strips *strips, cl_mem *memory,
                          ort_error *err)
{
    ort_cl_strips form = *strips;
    cl_int code;
    assert(count > 1 && count - 1 <= (int)(sizeof form.others / sizeof *form.others));
    for (int i = 1; i < count; i++)
        form.others[i - 1] = (int64_t)(intptr_t)tensors[i];
    *memory = ort_cl_kept(d, tensors[0], &form);
    if (*memory)
        return ORT_OK;
    size_t bytes = (size_t)count * bytes_of(tensors[0], strips);
    *memory = d->api.clCreateBuffer(d->context, CL_MEM_READ_WRITE, bytes ? bytes : 1, NULL, &code);
    if (code != CL_SUCCESS)
        return ort_cl_fail(code, "memory of weights", err);
    ort_status status = fill_all(d, tensors, count, fact, strips, *memory, err);
    if (status != ORT_OK) {
        d->api.clReleaseMemObject(*memory);
        return status;
    }
    return ort_cl_keep(d, tensors[0], &form, memory, err);
}
