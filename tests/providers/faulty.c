/* faulty.c - a provider of tests that fails on demand, over the example's: FAULTY_AT=N, the N-th
 * call of a callback that can fail fails; FAULTY_FROM=N, that one and all behind it (a device that
 * is lost); FAULTY_QUIET=1, without words; FAULTY_SIZES=1, sizes and costs that nobody has.
 * FAULTY_COUNT=FILE, what was called, made and freed, written when the device is closed. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#define ort_provider_entry example_entry
#include "../../plugins/example/example.c"
#undef ort_provider_entry

static atomic_int calls, open_things;

static long number(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static ort_status call(ort_error *err)
{
    long now = atomic_fetch_add(&calls, 1) + 1;
    long at = number("FAULTY_AT"), from = number("FAULTY_FROM");
    if (now != at && (!from || now < from))
        return ORT_OK;
    if (!number("FAULTY_QUIET"))
        snprintf(err->message, sizeof err->message, "the device fell over at call %ld", now);
    return err->status = now % 2 ? ORT_ERROR_DEVICE : ORT_ERROR_MEMORY;
}

/* What fails must not do half of its work. */
#define OR_FAIL(does)                                                                              \
    ort_status status = call(err);                                                                 \
    return status == ORT_OK ? (does) : status

static ort_status faulty_devices(ort_device_fn *tell, void *arg, ort_error *err)
{
    OR_FAIL(devices(tell, arg, err));
}

static ort_status faulty_open(const ort_provider_setup *setup, void **device, ort_error *err)
{
    OR_FAIL((open_things++, open_device(setup, device, err)));
}

static void faulty_close(void *device)
{
    const char *path = getenv("FAULTY_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    close_device(device);
    open_things--;
    if (file) {
        fprintf(file, "%d calls, %d open\n", calls, open_things);
        fclose(file);
    }
}

static double faulty_cost(void *device, const ort_node_work *work)
{
    static const double odd[] = {NAN, -1, INFINITY, 0, -INFINITY, 1e300};
    return number("FAULTY_SIZES") ? odd[atomic_fetch_add(&calls, 1) % 6] : cost(device, work);
}

static double faulty_copy_cost(void *device, double bytes)
{
    return number("FAULTY_SIZES") ? -bytes : copy_cost(device, bytes);
}

static ort_status faulty_plan(void *device, const ort_device_request *r, void **made,
                              ort_error *err)
{
    OR_FAIL((open_things++, plan_new(device, r, made, err)));
}

static void faulty_plan_free(void *made)
{
    plan_free(made);
    open_things--;
}

static ort_status faulty_frame(void *made, void **opened, size_t *bytes, ort_error *err)
{
    ort_status status = call(err);
    if (status != ORT_OK)
        return status;
    open_things++;
    status = frame_new(made, opened, bytes, err);
    if (number("FAULTY_SIZES"))
        *bytes = SIZE_MAX;
    return status;
}

static void faulty_frame_free(void *opened)
{
    free(opened);
    open_things--;
}

static ort_status faulty_copy_in(void *opened, int index, const void *data, ort_error *err)
{
    OR_FAIL(copy_in(opened, index, data, err));
}

static ort_status faulty_copy_out(void *opened, int index, void *data, ort_error *err)
{
    OR_FAIL(copy_out(opened, index, data, err));
}

static ort_status faulty_run(void *opened, int part, ort_error *err)
{
    OR_FAIL(run(opened, part, err));
}

static ort_status faulty_sync(void *opened, ort_error *err)
{
    OR_FAIL(sync_frame(opened, err));
}

static const ort_provider faulty = {
    .size = sizeof(ort_provider), .name = "faulty", .doc = "a provider that fails",
    .devices = faulty_devices, .open = faulty_open, .close = faulty_close, .claim = claim,
    .supports = supports, .cost = faulty_cost, .copy_cost = faulty_copy_cost, .plan = faulty_plan,
    .plan_free = faulty_plan_free, .frame = faulty_frame, .frame_free = faulty_frame_free,
    .copy_in = faulty_copy_in, .run = faulty_run, .copy_out = faulty_copy_out, .sync = faulty_sync,
};
static const ort_provider *const faulty_rows[] = {&faulty, NULL};

const ort_provider_library ort_provider_entry = {
    .abi = 1, .size = sizeof(ort_provider_library), .name = "faulty", .version = "1",
    .providers = faulty_rows,
};
