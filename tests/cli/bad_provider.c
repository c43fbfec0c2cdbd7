/* bad_provider.c - libraries of providers that must be refused, one by each value of CASE. */
#include <ort_provider.h>

static ort_status devices(ort_device_fn *tell, void *arg, ort_error *err)
{
    return ORT_OK;
}

static ort_status open_device(const ort_provider_setup *setup, void **device, ort_error *err)
{
    return setup->api->fail(err, ORT_ERROR_DEVICE, "nobody is at home");
}

static void nothing(void *what)
{
}

static bool claim(void *device, const ort_graph *graph, const ort_node *node, const char **why)
{
    return false;
}

static bool supports(const ort_provider_api *api, const ort_op *op)
{
    return false;
}

static double cost(void *device, const ort_node_work *work)
{
    return 1;
}

static double copy_cost(void *device, double bytes)
{
    return 1;
}

static ort_status plan(void *device, const ort_device_request *r, void **made, ort_error *err)
{
    return ORT_ERROR_DEVICE;
}

static ort_status frame(void *plan, void **frame, size_t *bytes, ort_error *err)
{
    return ORT_ERROR_DEVICE;
}

static ort_status copy_in(void *frame, int index, const void *data, ort_error *err)
{
    return ORT_ERROR_DEVICE;
}

static ort_status copy_out(void *frame, int index, void *data, ort_error *err)
{
    return ORT_ERROR_DEVICE;
}

static ort_status run(void *frame, int part, ort_error *err)
{
    return ORT_ERROR_DEVICE;
}

static ort_status sync_frame(void *frame, ort_error *err)
{
    return ORT_ERROR_DEVICE;
}

#if CASE == 1 /* one that is built in */
#define NAME "cpu"
#elif CASE == 2 /* of the example */
#define NAME "example"
#elif CASE == 3 /* what lists take for themselves */
#define NAME "a,b"
#else
#define NAME "absent"
#endif
#if CASE == 4 /* a callback is missing */
#define SYNC NULL
#else
#define SYNC sync_frame
#endif
#if CASE == 5 /* more members than this version has */
#define SIZE sizeof(ort_provider) + 8
#elif CASE == 6 /* too few */
#define SIZE sizeof(void *)
#else
#define SIZE sizeof(ort_provider)
#endif

static const ort_provider row = {
    .size = SIZE, .name = NAME, .doc = "a test", .devices = devices, .open = open_device,
    .close = nothing, .claim = claim, .supports = supports, .cost = cost, .copy_cost = copy_cost,
    .plan = plan, .plan_free = nothing, .frame = frame, .frame_free = nothing, .copy_in = copy_in,
    .run = run, .copy_out = copy_out, .sync = SYNC,
};
#if CASE == 12 /* the second doesn't fit: neither stays */
static const ort_provider other = {.size = sizeof(ort_provider), .name = "other"};
static const ort_provider *const rows[] = {&row, &other, NULL};
#elif CASE == 7 /* none */
static const ort_provider *const rows[] = {NULL};
#else
static const ort_provider *const rows[] = {&row, NULL};
#endif

#if CASE == 8 /* no table under the name that is looked for */
#define ort_provider_entry another_name
extern const ort_provider_library ort_provider_entry;
#endif
#if CASE == 10 /* needs a symbol that nobody has */
int nobody_has_this(void);
int (*need)(void) = nobody_has_this;
#endif
#if CASE == 9 /* of a runtime to come */
#define ABI (ORT_PROVIDER_ABI + 1)
#else
#define ABI 1
#endif
#if CASE == 11
#define TABLE_SIZE 4
#else
#define TABLE_SIZE sizeof(ort_provider_library)
#endif

const ort_provider_library ort_provider_entry = {
    .abi = ABI, .size = TABLE_SIZE, .name = "bad", .providers = rows};
