/* kernel_times.c - a library for ORT_OPENCL_LIB that passes everything on to libOpenCL, and tells
 * at the end how long kernels ran by their events: kernels of a run, nanoseconds of the run in
 * which they took least, runs; to the file that KERNEL_TIMES names. A run ends with clFinish.
 * Events are asked when a queue is released: within runs that would be time of theirs.
 */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 1000000

static cl_event events[MOST];
static int ends[MOST]; /* by run */
static int event_count, run_count;
static long kernels, runs;
static double least = 1e18; /* nanoseconds of the run whose kernels took least */

/* Looked up once. */
#define NEXT(name)                                                                                 \
    ({                                                                                             \
        static __typeof__(&name) next;                                                             \
        next = next ? next : (__typeof__(&name))dlsym(RTLD_NEXT, #name);                           \
        next;                                                                                      \
    })

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_command_queue_properties properties, cl_int *code)
{
    return NEXT(clCreateCommandQueue)(context, device, properties | CL_QUEUE_PROFILING_ENABLE,
                                      code);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint axes,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint waits, const cl_event *list, cl_event *event)
{
    if (!event && event_count < MOST)
        event = &events[event_count++];
    return NEXT(clEnqueueNDRangeKernel)(queue, kernel, axes, offset, global, local, waits, list,
                                        event);
}

cl_int clFinish(cl_command_queue queue)
{
    cl_int code = NEXT(clFinish)(queue);
    if (run_count < MOST && event_count < MOST)
        ends[run_count++] = event_count;
    return code;
}

static void judge_run(int first, int end)
{
    double sum = 0;
    for (int i = first; i < end; i++) {
        cl_ulong begin = 0, done = 0;
        clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_START, sizeof begin, &begin,
                                NULL);
        clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_END, sizeof done, &done, NULL);
        sum += (double)(done - begin);
    }
    if (end - first > kernels) { /* a run has more than the packing of a weight */
        kernels = end - first;
        runs = 0;
        least = sum;
    }
    if (end > first && end - first == kernels) {
        runs++;
        least = sum < least ? sum : least;
    }
}

cl_int clReleaseCommandQueue(cl_command_queue queue)
{
    for (int i = 0, first = 0; i < run_count; first = ends[i++])
        judge_run(first, ends[i]);
    for (int i = 0; i < event_count; i++)
        clReleaseEvent(events[i]);
    event_count = run_count = 0;
    return NEXT(clReleaseCommandQueue)(queue);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("KERNEL_TIMES");
    FILE *file = path && runs ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "%ld %.0f %ld\n", kernels, least, runs);
    fclose(file);
}
