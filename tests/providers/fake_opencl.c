/* fake_opencl.c - a library of OpenCL for tests, loaded through ORT_OPENCL_LIB. It forwards to the
 * library of the system, or with FAKE_CL_OWN=1 answers by itself: a device whose memory is the
 * host's and whose kernels compute nothing, so that sanitizers see our code and no driver's.
 *
 *   FAKE_CL_AT=N      the N-th call fails
 *   FAKE_CL_FROM=N    that one and all behind it: the device is lost
 *   FAKE_CL_EXTRA=S   extensions that the device says to have besides its own; what kernels use of
 *                     cl_khr_fp16 and cl_khr_integer_dot_product is computed by other means
 *   FAKE_CL_GROUP=N   the largest work group; FAKE_CL_ALLOC=N, the largest buffer, in bytes
 *   FAKE_CL_KIND=K    what the device of its own is: "discrete", "integrated" (GPUs of usual size),
 *                     "cpu"; else a small GPU
 *   FAKE_CL_FAST=N    products and convolutions of the device of its own take 2 ms, those of
 *                     programs with tiles of N x N a tenth; FAKE_CL_LIES=1: they say the opposite
 *   FAKE_CL_COUNT=F   at the end "CALLS calls, OBJECTS open" is written to the file, the bytes of
 *                     buffers of its own, at most and now, and which call failed first
 *   FAKE_CL_UPLOADS=F the bytes of each copy to the device of its own are a line of the file
 *
 * What isn't defined here is the system's: this is linked with it, and dlsym looks there, too.
 */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ENTRY __attribute__((visibility("default"))) CL_API_ENTRY

#define SLOW_NS 2000000

static atomic_long calls, objects;
static atomic_long bytes_now, bytes_most; /* of buffers of its own */
static _Atomic(const char *) first_failed;
static _Thread_local const char *seen; /* the call that failed first, where this thread made it */

static long number(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static bool is_own(void)
{
    return number("FAKE_CL_OWN") != 0;
}

/* For programs that want to know which of their threads met the failure. */
__attribute__((visibility("default"))) const char *fault_seen(void)
{
    return seen;
}

/* Does this call fail? */
static bool fails_in(const char *name)
{
    long now = atomic_fetch_add(&calls, 1) + 1;
    long at = number("FAKE_CL_AT"), from = number("FAKE_CL_FROM");
    if (now == at || now == from)
        atomic_store(&first_failed, name);
    if (now == at || now == from)
        seen = name;
    return now == at || (from && now >= from);
}
#define fails() fails_in(__func__)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;

static void open_system(void)
{
    library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
}

static void *system_function(const char *name)
{
    pthread_once(&once, open_system);
    return library ? dlsym(library, name) : NULL;
}

#define SYSTEM(name) ((__typeof__(&name))system_function(#name))

__attribute__((destructor)) static void write_count(void)
{
    const char *path = getenv("FAKE_CL_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    const char *failed = atomic_load(&first_failed);
    fprintf(file, "%ld calls, %ld open, most %ld bytes, now %ld%s%s\n", atomic_load(&calls),
            atomic_load(&objects), atomic_load(&bytes_most), atomic_load(&bytes_now),
            failed ? ", failed: " : "", failed ? failed : "");
    fclose(file);
}

/* ---- objects of its own: anything that is counted */

typedef struct object {
    atomic_int references;
    struct object *parent; /* of a part of a buffer */
    size_t size;
    char *data;
    bool fast;  /* a program, and kernels of it */
    cl_ulong ns; /* that a kernel says it takes; of an event, that it took */
} object;

static object *new_object(size_t size)
{
    object *o = calloc(1, sizeof *o);
    atomic_store(&o->references, 1);
    o->size = size;
    o->data = size ? calloc(1, size) : NULL;
    long now = atomic_fetch_add(&bytes_now, (long)size) + (long)size;
    long most = atomic_load(&bytes_most);
    while (now > most && !atomic_compare_exchange_weak(&bytes_most, &most, now))
        ;
    return o;
}

static void release(object *o)
{
    if (atomic_fetch_sub(&o->references, 1) > 1)
        return;
    if (o->parent) {
        release(o->parent);
    } else {
        atomic_fetch_sub(&bytes_now, (long)o->size);
        free(o->data);
    }
    free(o);
}

static void *give(void *made, cl_int *code, cl_int failed)
{
    if (made)
        atomic_fetch_add(&objects, 1);
    if (code)
        *code = made ? CL_SUCCESS : failed;
    return made;
}

/* A constructor: fails, or makes one of our own, or asks the system. */
#define MAKES(type, name, parameters, own, arguments)                                              \
    ENTRY type CL_API_CALL name parameters                                                         \
    {                                                                                              \
        if (fails())                                                                               \
            return give(NULL, code, CL_OUT_OF_RESOURCES);                                          \
        if (is_own())                                                                              \
            return give(own, code, CL_OUT_OF_HOST_MEMORY);                                         \
        cl_int said = CL_SUCCESS;                                                                  \
        type made = SYSTEM(name) arguments;                                                        \
        return give(made, code, said);                                                             \
    }

#define RELEASES(type, name)                                                                       \
    ENTRY cl_int CL_API_CALL name(type what)                                                       \
    {                                                                                              \
        atomic_fetch_sub(&objects, 1);                                                             \
        if (!is_own())                                                                             \
            return SYSTEM(name)(what);                                                             \
        release((object *)what);                                                                   \
        return CL_SUCCESS;                                                                         \
    }

#define DOES(name, parameters, own, arguments)                                                     \
    ENTRY cl_int CL_API_CALL name parameters                                                       \
    {                                                                                              \
        if (fails())                                                                               \
            return CL_OUT_OF_RESOURCES;                                                            \
        return is_own() ? own : SYSTEM(name) arguments;                                            \
    }

/* ---- platforms and devices */

static object own_platform, own_device;

static cl_int give_one(void *what, void **list, cl_uint *count)
{
    if (list)
        *list = what;
    if (count)
        *count = 1;
    return CL_SUCCESS;
}

DOES(clGetPlatformIDs, (cl_uint most, cl_platform_id *list, cl_uint *count),
     give_one(&own_platform, (void **)list, count), (most, list, count))
DOES(clGetDeviceIDs,
     (cl_platform_id platform, cl_device_type type, cl_uint most, cl_device_id *list,
      cl_uint *count),
     give_one(&own_device, (void **)list, count), (platform, type, most, list, count))

static cl_int give_bytes(const void *value, size_t bytes, size_t room, void *to, size_t *size)
{
    if (size)
        *size = bytes;
    if (to)
        memcpy(to, value, bytes < room ? bytes : room);
    return CL_SUCCESS;
}

static cl_int own_platform_info(cl_platform_info what, size_t room, void *to, size_t *size)
{
    (void)what;
    return give_bytes("tests", 6, room, to, size);
}

static const struct kind {
    const char *name;
    cl_device_type type;
    cl_uint units, clock, vendor, width;
    cl_bool unified;
    cl_ulong memory, most;
} kinds[] = {
    {"", CL_DEVICE_TYPE_GPU, 2, 1000, 0, 1, 1, 1 << 30, 1 << 28},
    {"discrete", CL_DEVICE_TYPE_GPU, 46, 1700, 0x10de, 1, 0, 8ul << 30, 2ul << 30},
    {"integrated", CL_DEVICE_TYPE_GPU, 96, 1300, 0x8086, 1, 1, 8ul << 30, 2ul << 30},
    {"cpu", CL_DEVICE_TYPE_CPU, 2, 2500, 0x8086, 8, 1, 8ul << 30, 2ul << 30},
};

static const struct kind *own_kind(void)
{
    const char *name = getenv("FAKE_CL_KIND");
    for (size_t i = 1; name && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return &kinds[0];
}

static cl_int own_device_info(cl_device_info what, size_t room, void *to, size_t *size)
{
    static const cl_uint align = 1024;
    const struct kind *k = own_kind();
    static const size_t group = 256, groups[3] = {256, 256, 64};
    switch (what) {
    case CL_DEVICE_TYPE: return give_bytes(&k->type, sizeof k->type, room, to, size);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: return give_bytes(&group, sizeof group, room, to, size);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES: return give_bytes(groups, sizeof groups, room, to, size);
    case CL_DEVICE_GLOBAL_MEM_SIZE: return give_bytes(&k->memory, sizeof k->memory, room, to, size);
    case CL_DEVICE_LOCAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return give_bytes(&k->most, sizeof k->most, room, to, size);
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
        return give_bytes(&k->clock, sizeof k->clock, room, to, size);
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN: return give_bytes(&align, sizeof align, room, to, size);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        return give_bytes(&k->unified, sizeof k->unified, room, to, size);
    case CL_DEVICE_MAX_COMPUTE_UNITS: return give_bytes(&k->units, sizeof k->units, room, to, size);
    case CL_DEVICE_VENDOR_ID: return give_bytes(&k->vendor, sizeof k->vendor, room, to, size);
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
        return give_bytes(&k->width, sizeof k->width, room, to, size);
    case CL_DEVICE_EXTENSIONS: return give_bytes("", 1, room, to, size);
    default: return give_bytes("tests", 6, room, to, size);
    }
}

/* What the variables say in place of the device. */
static void overrule(cl_device_info what, size_t room, void *to)
{
    size_t group = (size_t)number("FAKE_CL_GROUP");
    cl_ulong most = (cl_ulong)number("FAKE_CL_ALLOC");
    const char *extra = getenv("FAKE_CL_EXTRA");
    if (!to)
        return;
    if (what == CL_DEVICE_MAX_WORK_GROUP_SIZE && group && room >= sizeof group)
        memcpy(to, &group, sizeof group);
    if (what == CL_DEVICE_MAX_MEM_ALLOC_SIZE && most && room >= sizeof most)
        memcpy(to, &most, sizeof most);
    if (what == CL_DEVICE_EXTENSIONS && extra)
        snprintf((char *)to + strlen(to), room - strlen(to), " %s", extra);
}

DOES(clGetPlatformInfo,
     (cl_platform_id platform, cl_platform_info what, size_t room, void *to, size_t *size),
     own_platform_info(what, room, to, size), (platform, what, room, to, size))

ENTRY cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room,
                                         void *to, size_t *size)
{
    if (fails())
        return CL_OUT_OF_RESOURCES;
    cl_int code = is_own() ? own_device_info(what, room, to, size)
                           : SYSTEM(clGetDeviceInfo)(device, what, room, to, size);
    if (code == CL_SUCCESS)
        overrule(what, room, to);
    return code;
}

/* ---- contexts, queues, memory */

MAKES(cl_context, clCreateContext,
      (const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
       void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *arg,
       cl_int *code),
      new_object(0), (properties, count, devices, notify, arg, &said))
RELEASES(cl_context, clReleaseContext)

ENTRY cl_int CL_API_CALL clRetainContext(cl_context context)
{
    if (fails())
        return CL_OUT_OF_RESOURCES;
    atomic_fetch_add(&objects, 1);
    if (!is_own())
        return SYSTEM(clRetainContext)(context);
    atomic_fetch_add(&((object *)context)->references, 1);
    return CL_SUCCESS;
}

MAKES(cl_command_queue, clCreateCommandQueue,
      (cl_context context, cl_device_id device, cl_command_queue_properties properties,
       cl_int *code),
      new_object(0), (context, device, properties, &said))
RELEASES(cl_command_queue, clReleaseCommandQueue)

MAKES(cl_mem, clCreateBuffer,
      (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *code),
      (cl_mem)new_object(size), (context, flags, size, host, &said))
RELEASES(cl_mem, clReleaseMemObject)

static object *part_of(object *whole, const cl_buffer_region *region)
{
    object *o = new_object(0);
    atomic_fetch_add(&whole->references, 1);
    o->parent = whole;
    o->data = whole->data + region->origin;
    o->size = region->size;
    return o;
}

MAKES(cl_mem, clCreateSubBuffer,
      (cl_mem whole, cl_mem_flags flags, cl_buffer_create_type type, const void *region,
       cl_int *code),
      (cl_mem)part_of((object *)whole, region), (whole, flags, type, region, &said))

static cl_int put(cl_mem memory, size_t at, size_t size, const void *from)
{
    object *o = (object *)memory;
    if (at + size > o->size)
        return CL_INVALID_VALUE;
    memcpy(o->data + at, from, size);
    return CL_SUCCESS;
}

static cl_int get(cl_mem memory, size_t at, size_t size, void *to)
{
    object *o = (object *)memory;
    if (at + size > o->size)
        return CL_INVALID_VALUE;
    memcpy(to, o->data + at, size);
    return CL_SUCCESS;
}

static _Thread_local cl_ulong told_ns; /* of what was enqueued just now */

static cl_int with_event(cl_int code, cl_event *event)
{
    if (event && code == CL_SUCCESS) {
        *event = (cl_event)new_object(0);
        ((object *)*event)->ns = told_ns;
    }
    told_ns = 0;
    if (event && code == CL_SUCCESS)
        atomic_fetch_add(&objects, 1);
    return code;
}

/* Of the system's events only those that were asked for are counted. */
#define ENQUEUES(name, parameters, own, arguments)                                                 \
    ENTRY cl_int CL_API_CALL name parameters                                                       \
    {                                                                                              \
        if (fails())                                                                               \
            return CL_OUT_OF_RESOURCES;                                                            \
        if (is_own())                                                                              \
            return with_event(own, event);                                                         \
        cl_int said = SYSTEM(name) arguments;                                                      \
        if (event && said == CL_SUCCESS)                                                           \
            atomic_fetch_add(&objects, 1);                                                         \
        return said;                                                                               \
    }

static cl_int upload(cl_mem memory, size_t at, size_t size, const void *from)
{
    const char *path = getenv("FAKE_CL_UPLOADS");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%zu\n", size);
        fclose(file);
    }
    return put(memory, at, size, from);
}

ENQUEUES(clEnqueueWriteBuffer,
         (cl_command_queue queue, cl_mem memory, cl_bool waits, size_t at, size_t size,
          const void *from, cl_uint count, const cl_event *events, cl_event *event),
         upload(memory, at, size, from),
         (queue, memory, waits, at, size, from, count, events, event))
ENQUEUES(clEnqueueReadBuffer,
         (cl_command_queue queue, cl_mem memory, cl_bool waits, size_t at, size_t size, void *to,
          cl_uint count, const cl_event *events, cl_event *event),
         get(memory, at, size, to), (queue, memory, waits, at, size, to, count, events, event))
ENQUEUES(clEnqueueCopyBuffer,
         (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_at, size_t to_at,
          size_t size, cl_uint count, const cl_event *events, cl_event *event),
         put(to, to_at, size, ((object *)from)->data + from_at),
         (queue, from, to, from_at, to_at, size, count, events, event))
ENQUEUES(clEnqueueUnmapMemObject,
         (cl_command_queue queue, cl_mem memory, void *at, cl_uint count, const cl_event *events,
          cl_event *event),
         CL_SUCCESS, (queue, memory, at, count, events, event))

ENTRY void *CL_API_CALL clEnqueueMapBuffer(cl_command_queue queue, cl_mem memory, cl_bool waits,
                                           cl_map_flags flags, size_t at, size_t size,
                                           cl_uint count, const cl_event *events, cl_event *event,
                                           cl_int *code)
{
    cl_int said = fails() ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
    void *mapped = NULL;
    if (said == CL_SUCCESS && is_own()) {
        mapped = ((object *)memory)->data + at;
        said = with_event(CL_SUCCESS, event);
    } else if (said == CL_SUCCESS) {
        mapped = SYSTEM(clEnqueueMapBuffer)(queue, memory, waits, flags, at, size, count, events,
                                            event, &said);
        if (event && said == CL_SUCCESS)
            atomic_fetch_add(&objects, 1);
    }
    *code = said;
    return mapped;
}

static cl_int take_time(const object *kernel)
{
    const struct timespec time = {.tv_nsec = kernel->fast ? SLOW_NS / 10 : SLOW_NS};
    told_ns = 0;
    if (!kernel->ns)
        return CL_SUCCESS;
    nanosleep(&time, NULL);
    told_ns = kernel->ns;
    return CL_SUCCESS;
}

ENQUEUES(clEnqueueNDRangeKernel,
         (cl_command_queue queue, cl_kernel kernel, cl_uint axes, const size_t *offset,
          const size_t *global, const size_t *local, cl_uint count, const cl_event *events,
          cl_event *event),
         take_time((const object *)kernel),
         (queue, kernel, axes, offset, global, local, count, events, event))
RELEASES(cl_event, clReleaseEvent)
/* A device that is lost writes nothing any more: what the system still does ends before. */
ENTRY cl_int CL_API_CALL clFinish(cl_command_queue queue)
{
    bool failed = fails();
    cl_int code = is_own() ? CL_SUCCESS : SYSTEM(clFinish)(queue);
    return failed ? CL_OUT_OF_RESOURCES : code;
}
DOES(clFlush, (cl_command_queue queue), CL_SUCCESS, (queue))

static cl_int own_times(cl_event event, cl_profiling_info what, size_t room, void *to,
                        size_t *size)
{
    cl_ulong ns = what == CL_PROFILING_COMMAND_END ? ((object *)event)->ns : 0;
    return give_bytes(&ns, sizeof ns, room, to, size);
}

DOES(clGetEventProfilingInfo,
     (cl_event event, cl_profiling_info what, size_t room, void *to, size_t *size),
     own_times(event, what, room, to, size), (event, what, room, to, size))

/* ---- programs */

/* A driver without an extension still runs what is written on it: products of halves as products
 * of floats, of four codes as a function. */
static const char *emulation(void)
{
    static const char half[] = "#define NUMBER float\n";
    static const char both[] =
        "#define NUMBER float\n"
        "static int dot_4x8packed_ss_int(uint a, uint b)\n"
        "{\n"
        "    char4 x = as_char4(a), y = as_char4(b);\n"
        "    return x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;\n"
        "}\n";
    const char *extra = getenv("FAKE_CL_EXTRA");
    if (extra && strstr(extra, "cl_khr_integer_dot_product"))
        return both;
    return extra && strstr(extra, "cl_khr_fp16") ? half : "";
}

enum { MOST_TEXTS = 16 };

static cl_program from_texts(cl_context context, cl_uint count, const char **texts,
                             const size_t *lengths, cl_int *code)
{
    const char *all[MOST_TEXTS] = {emulation()};
    if (count >= MOST_TEXTS || lengths)
        abort();
    memcpy(all + 1, texts, count * sizeof *texts);
    return SYSTEM(clCreateProgramWithSource)(context, count + 1, all, NULL, code);
}

ENTRY cl_program CL_API_CALL clCreateProgramWithSource(cl_context context, cl_uint count,
                                                       const char **texts, const size_t *lengths,
                                                       cl_int *code)
{
    cl_int said = CL_SUCCESS;
    if (fails())
        return give(NULL, code, CL_OUT_OF_RESOURCES);
    if (is_own())
        return give(new_object(8), code, CL_OUT_OF_HOST_MEMORY);
    cl_program made = from_texts(context, count, texts, lengths, &said);
    return give(made, code, said);
}
MAKES(cl_program, clCreateProgramWithBinary,
      (cl_context context, cl_uint count, const cl_device_id *devices, const size_t *lengths,
       const unsigned char **binaries, cl_int *states, cl_int *code),
      (cl_program)new_object(8), (context, count, devices, lengths, binaries, states, &said))
static cl_int build_own(object *program, const char *options)
{
    char tiles[40];
    snprintf(tiles, sizeof tiles, "-DTILE=%ld ", number("FAKE_CL_FAST"));
    program->fast = options && strstr(options, tiles);
    return CL_SUCCESS;
}

static object *own_kernel(const object *program, const char *name)
{
    object *o = new_object(8);
    o->fast = program->fast;
    if (number("FAKE_CL_FAST") && (!strcmp(name, "gemm") || !strcmp(name, "conv")))
        o->ns = o->fast == !number("FAKE_CL_LIES") ? SLOW_NS / 10 : SLOW_NS;
    return o;
}

DOES(clBuildProgram,
     (cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
      void(CL_CALLBACK *notify)(cl_program, void *), void *arg),
     build_own((object *)program, options), (program, count, devices, options, notify, arg))
DOES(clGetProgramInfo,
     (cl_program program, cl_program_info what, size_t room, void *to, size_t *size),
     CL_INVALID_VALUE, (program, what, room, to, size))
DOES(clGetProgramBuildInfo,
     (cl_program program, cl_device_id device, cl_program_build_info what, size_t room, void *to,
      size_t *size),
     give_bytes("", 1, room, to, size), (program, device, what, room, to, size))
RELEASES(cl_program, clReleaseProgram)
MAKES(cl_kernel, clCreateKernel, (cl_program program, const char *name, cl_int *code),
      (cl_kernel)own_kernel((const object *)program, name), (program, name, &said))
RELEASES(cl_kernel, clReleaseKernel)
DOES(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void *value), CL_SUCCESS,
     (kernel, index, size, value))
