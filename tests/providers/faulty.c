/* faulty.c - a provider of tests that fails on demand, over the example's: FAULTY_AT=N, the N-th
 * call of a callback that can fail fails; FAULTY_FROM=N, that one and all behind it (a device that
 * is lost); FAULTY_QUIET=1, without words; FAULTY_SIZES=1, sizes and costs that nobody has.
 * FAULTY_LISTS=OP, it lists one more operator, of which it claims no node.
 * FAULTY_COUNT=FILE, what was called, made and freed, written when the device is closed. Unlike the
 * example it keeps values of callers: memory of its own, which parts read and write. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#define ort_provider_entry example_entry
#include "../../plugins/example/example.c"
#undef ort_provider_entry

static atomic_int calls, open_things;
static _Thread_local const char *seen; /* the call that failed first, where this thread made it */

/* For programs that want to know which of their threads met the failure. */
__attribute__((visibility("default"))) const char *fault_seen(void)
{
    return seen;
}

static long number(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static ort_status call_in(const char *name, ort_error *err)
{
    long now = atomic_fetch_add(&calls, 1) + 1;
    long at = number("FAULTY_AT"), from = number("FAULTY_FROM");
    if (now != at && (!from || now < from))
        return ORT_OK;
    seen = seen ? seen : name;
    if (!number("FAULTY_QUIET"))
        snprintf(err->message, sizeof err->message, "the device fell over at call %ld", now);
    return err->status = now % 2 ? ORT_ERROR_DEVICE : ORT_ERROR_MEMORY;
}

#define call(err) call_in(__func__, err)

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

static bool faulty_supports(const ort_provider_api *api, const ort_op *op)
{
    const char *more = getenv("FAULTY_LISTS");
    return supports(api, op) || (more && !*api->op_domain(op) && !strcmp(api->op_name(op), more));
}

/* ---- memory of callers */

static bool faulty_shares(void *device, const ort_provider_setup *setup)
{
    return true;
}

static ort_status faulty_memory(void *device, size_t bytes, void **memory, ort_error *err)
{
    OR_FAIL((open_things++, (*memory = malloc(bytes)) ? ORT_OK : ORT_ERROR_MEMORY));
}

typedef struct piece { /* of a memory: told apart by its first member, which no float is */
    uint64_t mark;
    float *data;
} piece;

enum { MARK = 0x7ec3 };

static float *data_of(void *memory)
{
    piece *p = memory;
    return p->mark == MARK ? p->data : memory;
}

static ort_status faulty_part(void *memory, size_t offset, size_t bytes, void **part,
                              ort_error *err)
{
    ort_status status = call(err);
    piece *p = status == ORT_OK ? malloc(sizeof *p) : NULL;
    if (!p)
        return ORT_ERROR_MEMORY;
    open_things++;
    *p = (piece){MARK, data_of(memory) + offset / sizeof(float)};
    *part = p;
    return ORT_OK;
}

static void faulty_memory_free(void *memory)
{
    free(memory);
    open_things--;
}

static size_t faulty_alignment(void *device)
{
    return 32;
}

static ort_status faulty_write(void *memory, const void *data, size_t bytes, ort_error *err)
{
    OR_FAIL((memcpy(data_of(memory), data, bytes), ORT_OK));
}

static ort_status faulty_read(void *memory, void *data, size_t bytes, ort_error *err)
{
    OR_FAIL((memcpy(data, data_of(memory), bytes), ORT_OK));
}

/* ---- frames and runs */

typedef struct faulty_opened {
    frame *f;
    void **in, **out; /* what is lent */
    int in_count, out_count;
} faulty_opened;

static ort_status faulty_frame(void *made, void **opened, size_t *bytes, ort_error *err)
{
    ort_status status = call(err);
    if (status != ORT_OK)
        return status;
    faulty_opened *o = calloc(1, sizeof *o);
    void *inner;
    if (!o || frame_new(made, &inner, bytes, err) != ORT_OK)
        abort();
    o->f = inner;
    *opened = o;
    open_things++;
    if (number("FAULTY_SIZES"))
        *bytes = SIZE_MAX;
    return status;
}

static void faulty_frame_free(void *opened)
{
    faulty_opened *o = opened;
    free(o->f);
    free(o->in);
    free(o->out);
    free(o);
    open_things--;
}

static void lend(void ***list, int *count, int index, void *memory)
{
    for (; *count <= index; ++*count) {
        *list = realloc(*list, sizeof **list * ((size_t)*count + 1));
        (*list)[*count] = NULL;
    }
    (*list)[index] = memory;
}

static ort_status faulty_use_in(void *opened, int index, void *memory, ort_error *err)
{
    faulty_opened *o = opened;
    OR_FAIL((lend(&o->in, &o->in_count, index, memory), ORT_OK));
}

static ort_status faulty_use_out(void *opened, int index, void *memory, ort_error *err)
{
    faulty_opened *o = opened;
    OR_FAIL((lend(&o->out, &o->out_count, index, memory), ORT_OK));
}

static ort_status faulty_copy_in(void *opened, int index, const void *data, ort_error *err)
{
    OR_FAIL(copy_in(((faulty_opened *)opened)->f, index, data, err));
}

static ort_status faulty_copy_out(void *opened, int index, void *data, ort_error *err)
{
    OR_FAIL(copy_out(((faulty_opened *)opened)->f, index, data, err));
}

static ort_status faulty_run(void *opened, int part, ort_error *err)
{
    faulty_opened *o = opened;
    ort_status status = call(err);
    for (int i = 0; status == ORT_OK && i < o->in_count; i++)
        if (o->in[i])
            status = copy_in(o->f, i, data_of(o->in[i]), err);
    if (status == ORT_OK)
        status = run(o->f, part, err);
    for (int i = 0; status == ORT_OK && i < o->out_count; i++)
        if (o->out[i])
            status = copy_out(o->f, i, data_of(o->out[i]), err);
    return status;
}

static ort_status faulty_sync(void *opened, ort_error *err)
{
    OR_FAIL(sync_frame(opened, err));
}

static const ort_provider faulty = {
    .size = sizeof(ort_provider), .name = "faulty", .doc = "a provider that fails",
    .devices = faulty_devices, .open = faulty_open, .close = faulty_close, .claim = claim,
    .supports = faulty_supports, .cost = faulty_cost, .copy_cost = faulty_copy_cost,
    .plan = faulty_plan, .plan_free = faulty_plan_free, .frame = faulty_frame,
    .frame_free = faulty_frame_free,
    .copy_in = faulty_copy_in, .run = faulty_run, .copy_out = faulty_copy_out, .sync = faulty_sync,
    .shares = faulty_shares, .memory = faulty_memory, .memory_free = faulty_memory_free,
    .memory_part = faulty_part, .memory_alignment = faulty_alignment,
    .memory_write = faulty_write, .memory_read = faulty_read, .use_in = faulty_use_in,
    .use_out = faulty_use_out,
};
static const ort_provider *const faulty_rows[] = {&faulty, NULL};

const ort_provider_library ort_provider_entry = {
    .abi = 1, .size = sizeof(ort_provider_library), .name = "faulty", .version = "1",
    .providers = faulty_rows,
};
