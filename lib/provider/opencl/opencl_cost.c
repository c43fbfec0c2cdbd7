/* opencl_cost.c - what a device is guessed to take, by its class. These numbers are chosen so that
 * a wrong guess leaves work on the host. Those of "cpu" were measured with PoCL; those of GPUs
 * follow from what devices say of themselves and from buses, since none was at hand.
 *
 *     class        multiply-adds      other        memory    a launch   copies
 *     cpu          0.7 a lane, clock  1 a ns,unit  5 GB/s    30 us      5 GB/s and 10 us
 *     integrated   0.25               half of it   20 GB/s   15 us      8 GB/s and 15 us
 *     discrete     0.25               half of it   150 GB/s  8 us       6 GB/s and 20 us
 *
 * A device that is this machine's processor has no more of it than the session's threads have.
 */
#include <stddef.h>

#include "provider/opencl/opencl.h"

typedef struct class {
    const char *name;
    double share;        /* of its lanes' products that kernels reach */
    double bytes, launch; /* of memory in a second; seconds */
    double copy_bytes, copy;
} class;

static const class classes[] = {
    {"cpu", 0.7, 5e9, 30e-6, 5e9, 10e-6},
    {"integrated GPU", 0.25, 20e9, 15e-6, 8e9, 15e-6},
    {"discrete GPU", 0.25, 150e9, 8e-6, 6e9, 20e-6},
};

/* How many products a unit makes in a clock, by what vendors call a unit. */
static double lanes_of(cl_uint vendor)
{
    static const struct {
        cl_uint vendor;
        int lanes;
    } known[] = {
        {0x8086, 8},   /* Intel: an execution unit */
        {0x10de, 128}, /* NVIDIA: a multiprocessor */
        {0x1002, 64},  /* AMD: a compute unit */
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].vendor == vendor)
            return known[i].lanes;
    return 32;
}

void ort_cl_guess_rates(ort_cl_device *d, int threads)
{
    cl_uint vendor = 0, width = 0;
    cl_bool unified = 0;
    bool cpu = d->type & CL_DEVICE_TYPE_CPU;
    double units = d->units ? d->units : 1, clock = (d->clock_mhz ? d->clock_mhz : 1000) * 1e6;
    d->api.clGetDeviceInfo(d->id, CL_DEVICE_VENDOR_ID, sizeof vendor, &vendor, NULL);
    d->api.clGetDeviceInfo(d->id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified, NULL);
    d->api.clGetDeviceInfo(d->id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof width, &width, NULL);
    const class *c = &classes[cpu ? 0 : unified ? 1 : 2];
    double lanes = !cpu ? lanes_of(vendor) : width ? width : 4;
    if (cpu && threads > 0 && threads < units)
        units = threads;
    d->rates = (ort_cl_rates){
        .class = c->name,
        .products = units * clock * lanes * c->share,
        .other = cpu ? 1e9 * units : units * clock * lanes * c->share / 2,
        .bytes = c->bytes,
        .launch = c->launch,
        .copy_bytes = c->copy_bytes,
        .copy = c->copy,
        .share = cpu ? units / (d->units ? d->units : 1) : 1,
        .doubt = 1.25,
    };
}

double ort_cl_cost(void *device, const ort_node_work *work)
{
    const ort_cl_rates *r = &((const ort_cl_device *)device)->rates;
    return r->doubt * (work->macs / r->products + work->flops / r->other +
                       work->bytes / r->bytes + r->launch);
}

double ort_cl_copy_cost(void *device, double bytes)
{
    const ort_cl_rates *r = &((const ort_cl_device *)device)->rates;
    return r->doubt * (bytes / r->copy_bytes + r->copy);
}
