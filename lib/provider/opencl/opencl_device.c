/* opencl_device.c - which devices there are, and opening one. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "provider/opencl/opencl.h"

enum { MOST_PLATFORMS = 16, MOST_DEVICES = 64 };

typedef struct found { /* every device of every platform, in the loader's order */
    cl_platform_id platforms[MOST_DEVICES];
    cl_device_id devices[MOST_DEVICES];
    int count;
} found;

static ort_status find_devices(const ort_cl_api *api, found *f, ort_error *err)
{
    cl_platform_id platforms[MOST_PLATFORMS];
    cl_uint count = 0, devices;
    f->count = 0;
    cl_int code = api->clGetPlatformIDs(MOST_PLATFORMS, platforms, &count);
    if (code != CL_SUCCESS || !count)
        return ort_error_set(err, ORT_ERROR_DEVICE,
                             "OpenCL has no driver here (on Debian, pocl-opencl-icd runs it on the "
                             "CPU)");
    count = count < MOST_PLATFORMS ? count : MOST_PLATFORMS;
    for (cl_uint p = 0; p < count && f->count < MOST_DEVICES; p++) {
        devices = 0;
        if (api->clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL,
                                (cl_uint)(MOST_DEVICES - f->count), f->devices + f->count,
                                &devices) != CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < devices && f->count < MOST_DEVICES; d++)
            f->platforms[f->count++] = platforms[p];
    }
    return f->count ? ORT_OK : ort_error_set(err, ORT_ERROR_DEVICE, "OpenCL has no device here");
}

typedef struct facts {
    char name[200], vendor[200], platform[200], driver[100], version[200], extensions[4096];
    cl_device_type type;
    cl_ulong memory;
    cl_uint units, clock;
    cl_bool unified;
} facts;

static void read_facts(const ort_cl_api *api, cl_platform_id platform, cl_device_id id, facts *f)
{
    memset(f, 0, sizeof *f);
    api->clGetDeviceInfo(id, CL_DEVICE_NAME, sizeof f->name - 1, f->name, NULL);
    api->clGetDeviceInfo(id, CL_DEVICE_VENDOR, sizeof f->vendor - 1, f->vendor, NULL);
    api->clGetDeviceInfo(id, CL_DRIVER_VERSION, sizeof f->driver - 1, f->driver, NULL);
    api->clGetDeviceInfo(id, CL_DEVICE_VERSION, sizeof f->version - 1, f->version, NULL);
    api->clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, sizeof f->extensions - 1, f->extensions, NULL);
    api->clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof f->type, &f->type, NULL);
    api->clGetDeviceInfo(id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof f->memory, &f->memory, NULL);
    api->clGetDeviceInfo(id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof f->units, &f->units, NULL);
    api->clGetDeviceInfo(id, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof f->clock, &f->clock, NULL);
    api->clGetDeviceInfo(id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof f->unified, &f->unified, NULL);
    api->clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof f->platform - 1, f->platform, NULL);
}

static const char *kind_of(cl_device_type type)
{
    return type & CL_DEVICE_TYPE_GPU           ? "gpu"
           : type & CL_DEVICE_TYPE_CPU         ? "cpu"
           : type & CL_DEVICE_TYPE_ACCELERATOR ? "accelerator"
                                               : "other";
}

ort_status ort_cl_devices(ort_device_fn *tell, void *arg, ort_error *err)
{
    ort_cl_api api;
    found f;
    facts x;
    ORT_TRY(ort_cl_api_open(&api, err));
    ORT_TRY(find_devices(&api, &f, err));
    for (int i = 0; i < f.count; i++) {
        read_facts(&api, f.platforms[i], f.devices[i], &x);
        const ort_device_info info = {
            .name = x.name,
            .vendor = x.vendor,
            .platform = x.platform,
            .driver = x.driver,
            .version = x.version,
            .kind = kind_of(x.type),
            .memory_bytes = x.memory,
            .units = x.units,
            .clock_mhz = x.clock,
            .half = strstr(x.extensions, "cl_khr_fp16") != NULL,
            .int8_dot = strstr(x.extensions, "cl_khr_integer_dot_product") != NULL,
            .unified = x.unified,
        };
        tell(arg, &info);
    }
    return ORT_OK;
}

/* ---- opening */

typedef struct wishes { /* of the user */
    int device;
    const char *tiles; /* where products make them: "registers", "local"; "": the device's class */
    bool chains;
    int half; /* 1: values of 16 bits; 2: products, too */
    const char *tuning; /* "on": as a file of ORT_CACHE says; "off"; "measure" */
} wishes;

static bool find_half(const char *value, int *half)
{
    static const char *const words[] = {"0", "1", "math"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(words[i], value)) {
            *half = i;
            return true;
        }
    return false;
}

static ort_status read_wishes(const ort_provider_setup *setup, wishes *w, ort_error *err)
{
    *w = (wishes){0, "", true, 0, "on"};
    for (int i = 0; i < setup->option_count; i++) {
        const ort_provider_option *o = &setup->options[i];
        char *end;
        long number = strtol(o->value, &end, 10);
        if (!strcmp(o->key, "tiles")) {
            w->tiles = o->value;
            if (strcmp(w->tiles, "local") && strcmp(w->tiles, "registers"))
                return ort_error_set(err, ORT_ERROR_USAGE, "tiles=%s: tiles are made in local "
                                     "memory (local) or in registers", o->value);
        } else if (!strcmp(o->key, "chains")) {
            w->chains = !strcmp(o->value, "on");
            if (!w->chains && strcmp(o->value, "off"))
                return ort_error_set(err, ORT_ERROR_USAGE, "chains=%s: elementwise operators run "
                                     "as chains (on) or one by one (off)", o->value);
        } else if (!strcmp(o->key, "fp16")) {
            if (!find_half(o->value, &w->half))
                return ort_error_set(err, ORT_ERROR_USAGE, "fp16=%s: values are floats (0), have "
                                     "16 bits (1), or are computed with in 16 bits, too (math)",
                                     o->value);
        } else if (!strcmp(o->key, "tuning")) {
            w->tuning = o->value;
            if (strcmp(o->value, "on") && strcmp(o->value, "off") && strcmp(o->value, "measure"))
                return ort_error_set(err, ORT_ERROR_USAGE, "tuning=%s: what was measured of the "
                                     "device is used (on) or not (off), or is measured (measure)",
                                     o->value);
        } else if (*end || number < 0 || number >= MOST_DEVICES) {
            return ort_error_set(err, ORT_ERROR_USAGE, "device=%s: a device is a number from 0 to "
                                 "%d", o->value, MOST_DEVICES - 1);
        } else {
            w->device = (int)number;
        }
    }
    if (*w->tiles && !strcmp(w->tuning, "measure"))
        return ort_error_set(err, ORT_ERROR_USAGE, "tiles=%s and tuning=measure: it is measured "
                             "which tiles are fastest", w->tiles);
    return ORT_OK;
}

enum { REGISTERS_SPAN = 4096 };

static void write_forms(ort_cl_device *d, int lanes, bool dots)
{
    static const ort_cl_tile forms[ORT_CL_TILES] = {
        [ORT_CL_REGISTERS] = {.name = "registers"},
        [ORT_CL_LOCAL] = {.name = "local", .tile = 32, .side = 8},
        [ORT_CL_LOCAL16] = {.name = "local16", .tile = 16, .side = 8},
        [ORT_CL_LOCAL64] = {.name = "local64", .tile = 64, .side = 16},
    };
    for (int i = 0; i < ORT_CL_TILES; i++) {
        ort_cl_tile *t = &d->tiles[i];
        *t = forms[i];
        if (i == ORT_CL_REGISTERS) {
            t->lanes = lanes;
            t->rows = lanes == 16 ? 8 : lanes == 8 ? 6 : 4; /* twice as many sums in registers */
        }
        for (int half = 0; half < 2; half++)
            snprintf(t->options[half], sizeof t->options[half],
                     "-cl-std=CL1.2 -w -DLANES=%d -DROWS=%d -DTILE=%d -DSIDE=%d -DSPAN=%d "
                     "-DHALF=%d%s", t->lanes, t->rows, t->tile, t->side,
                     t->lanes ? REGISTERS_SPAN : 1, half ? d->half : 0, dots ? " -DDOTS" : "");
    }
}

/* How kernels are written for this class of device. */
static void choose_class(ort_cl_device *d, const char *tiles, bool dots)
{
    cl_uint lanes = 0;
    bool registers = *tiles ? !strcmp(tiles, "registers") : d->type & CL_DEVICE_TYPE_CPU;
    d->api.clGetDeviceInfo(d->id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof lanes, &lanes, NULL);
    write_forms(d, lanes >= 16 ? 16 : lanes >= 8 ? 8 : 4, dots);
    d->own = registers ? ORT_CL_REGISTERS : ORT_CL_LOCAL;
    d->lanes = d->tiles[d->own].lanes;
    d->span = registers ? REGISTERS_SPAN : 1;
}

/* Reading and writing halves is in every OpenCL; computing with them is an extension. */
static ort_status choose_half(ort_cl_device *d, const wishes *w, const facts *x, ort_error *err)
{
    d->half = w->half;
    if (d->half < 2 || strstr(x->extensions, "cl_khr_fp16"))
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_USAGE, "fp16=math: %s has no cl_khr_fp16; fp16=1 keeps "
                         "values in 16 bits on any device", d->name);
}

static void read_limits(ort_cl_device *d, const facts *x)
{
    cl_uint align_bits = 0;
    cl_ulong most = 0;
    d->api.clGetDeviceInfo(d->id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof align_bits, &align_bits,
                           NULL);
    d->api.clGetDeviceInfo(d->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most, &most, NULL);
    d->api.clGetDeviceInfo(d->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof d->most_group,
                           &d->most_group, NULL);
    d->alignment = align_bits / 8 > 64 ? align_bits / 8 : 64;
    d->most_bytes = (size_t)most;
    d->type = x->type;
    d->units = x->units;
    d->clock_mhz = x->clock;
    snprintf(d->name, sizeof d->name, "%s", x->name);
    snprintf(d->driver, sizeof d->driver, "%s", x->driver);
}

/* Memory belongs to a context. */
static ort_status make_context(ort_cl_device *d, const ort_cl_device *beside, ort_error *err)
{
    cl_int code;
    cl_context context = beside ? beside->context : NULL;
    if (beside)
        code = d->api.clRetainContext(context);
    else
        context = d->api.clCreateContext(NULL, 1, &d->id, NULL, NULL, &code);
    if (code != CL_SUCCESS)
        return ort_cl_fail(code, "a context", err);
    d->context = context;
    d->queue = d->api.clCreateCommandQueue(d->context, d->id, 0, &code);
    return code == CL_SUCCESS ? ORT_OK : ort_cl_fail(code, "a queue", err);
}

/* A form that the user chose is no matter of measurements. */
static ort_status start_tuning(ort_cl_device *d, const wishes *w, bool first, ort_error *err)
{
    d->measuring = !strcmp(w->tuning, "measure");
    if (!strcmp(w->tuning, "off") || *w->tiles)
        return ORT_OK;
    if (!ort_cl_tuning_path(d))
        return d->measuring ? ort_error_set(err, ORT_ERROR_USAGE, "tuning=measure: what is "
                                            "measured is kept in the folder ORT_CACHE, which "
                                            "isn't set")
                            : ORT_OK;
    ort_cl_tuning_read(d, first);
    return d->measuring ? ort_cl_measure_rates(d, err) : ORT_OK;
}

static ort_status open_device(ort_cl_device *d, const wishes *w, const ort_provider_setup *setup,
                              ort_error *err)
{
    const ort_cl_device *beside = setup->beside;
    int index = w->device;
    found f;
    facts x;
    ORT_TRY(ort_cl_api_open(&d->api, err));
    ORT_TRY(find_devices(&d->api, &f, err));
    if (index >= f.count)
        return ort_error_set(err, ORT_ERROR_DEVICE, "there is no device %d; OpenCL has %d here, "
                             "which ort-inspect --providers lists", index, f.count);
    d->id = beside ? beside->id : f.devices[index];
    d->index = index;
    read_facts(&d->api, f.platforms[index], d->id, &x);
    read_limits(d, &x);
    ORT_TRY(choose_half(d, w, &x, err));
    choose_class(d, w->tiles, strstr(x.extensions, "cl_khr_integer_dot_product"));
    ort_cl_guess_rates(d, setup->threads);
    d->chain = w->chains ? INT_MAX : 1;
    ORT_TRY(make_context(d, beside, err));
    if (!beside)
        ort_log_write(d->log, ORT_LOG_INFO, "opencl: device %d, %s, driver %s", index, d->name,
                      d->driver);
    return start_tuning(d, w, !beside, err);
}

ort_status ort_cl_open(const ort_provider_setup *setup, void **device, ort_error *err)
{
    wishes w;
    ORT_TRY(read_wishes(setup, &w, err));
    ort_cl_device *d = calloc(1, sizeof *d);
    if (!d)
        return ort_error_memory(err, sizeof *d);
    d->log = setup->log;
    pthread_mutex_init(&d->lock, NULL);
    ort_status status = open_device(d, &w, setup, err);
    if (status != ORT_OK)
        ort_cl_close(d);
    else
        *device = d;
    return status;
}

bool ort_cl_shares(void *device, const ort_provider_setup *setup)
{
    const ort_cl_device *d = device;
    wishes w;
    return read_wishes(setup, &w, NULL) == ORT_OK && w.device == d->index;
}

void ort_cl_close(void *device)
{
    ort_cl_device *d = device;
    for (size_t i = 0; i < d->constants.count; i++)
        d->api.clReleaseMemObject(d->constants.data[i].memory);
    ort_vec_release(&d->constants);
    ort_vec_release(&d->measured);
    ort_vec_release(&d->tuned);
    ort_cl_programs_release(d);
    if (d->queue)
        d->api.clReleaseCommandQueue(d->queue);
    if (d->context)
        d->api.clReleaseContext(d->context);
    ort_cl_api_close(&d->api);
    pthread_mutex_destroy(&d->lock);
    free(d);
}
