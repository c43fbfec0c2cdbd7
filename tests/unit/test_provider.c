/* Providers: the table, lists of them. */
#include "net.h"
#include "provider/partition.h"
#include "test.h"

/* ---- a device that isn't there */

static ort_status no_devices(ort_device_fn *tell, void *arg, ort_error *err)
{
    return ORT_ERROR_DEVICE;
}

static ort_status open_none(const ort_provider_setup *setup, void **device, ort_error *err)
{
    if (err)
        *err = (ort_error){ORT_ERROR_DEVICE, 1, "no such device"};
    return ORT_ERROR_DEVICE;
}

static ort_status open_one(const ort_provider_setup *setup, void **device, ort_error *err)
{
    return ORT_OK;
}

static void close_one(void *device)
{
}

static bool claim_none(void *device, const ort_graph *graph, const ort_node *node,
                       const char **why)
{
    return false;
}

static bool support_none(const ort_provider_api *api, const ort_op *op)
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

static ort_status plan(void *device, const ort_device_request *request, void **plan,
                       ort_error *err)
{
    return ORT_ERROR_RUN;
}

static ort_status frame(void *plan, void **frame, size_t *bytes, ort_error *err)
{
    return ORT_ERROR_RUN;
}

static ort_status copy_in(void *frame, int index, const void *data, ort_error *err)
{
    return ORT_ERROR_RUN;
}

static ort_status copy_out(void *frame, int index, void *data, ort_error *err)
{
    return ORT_ERROR_RUN;
}

static ort_status run(void *frame, int part, ort_error *err)
{
    return ORT_ERROR_RUN;
}

static ort_status sync_none(void *frame, ort_error *err)
{
    return ORT_ERROR_RUN;
}

#define DEVICE(NAME, OPEN)                                                                         \
    {.size = sizeof(ort_provider), .name = NAME, .doc = "a test", .devices = no_devices,           \
     .open = OPEN, .close = close_one, .claim = claim_none, .supports = support_none,              \
     .cost = cost, .copy_cost = copy_cost, .plan = plan, .plan_free = close_one,                   \
     .frame = frame, .frame_free = close_one, .copy_in = copy_in, .run = run,                      \
     .copy_out = copy_out, .sync = sync_none}

static const char *const options[] = {"device=N", "half=0|1", NULL};
static const ort_provider missing = DEVICE("missing", open_none), there = DEVICE("there", open_one);

/* ---- the table */

static void tables(test_state *test)
{
    ort_provider twin = there, comma = there, whole = there, part = there, old = there;
    ort_provider host = *ort_provider_at(0);
    comma.name = "a,b";
    part.sync = NULL;
    old.size -= 8;
    host.name = "second";
    twin.doc = "another of that name";
    whole.options = options;
    const struct {
        const ort_provider *rows[4];
        const char *says; /* NULL: nothing is wrong */
    } cases[] = {
        {{ort_provider_at(0), &missing, &whole}, NULL},
        {{ort_provider_at(0), &there, &twin}, "'there' is there twice"},
        {{ort_provider_at(0), &comma}, "'a,b' isn't whole"},
        {{ort_provider_at(0), &part}, "'there' isn't whole"},
        {{ort_provider_at(0), &old}, "'there' isn't whole"},
        {{ort_provider_at(0), &host}, "'second': the first row is the host, and no other"},
        {{&there}, "'there': the first row is the host, and no other"},
        {{NULL}, "there is no provider"},
    };
    CHECK(ort_provider_table_check(ort_provider_table(), NULL) == ORT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ort_error err = {0};
        ort_status status = ort_provider_table_check(cases[i].rows, &err);
        CHECK(status == (cases[i].says ? ORT_ERROR_USAGE : ORT_OK));
        if (cases[i].says)
            CHECK(strstr(err.message, cases[i].says));
    }
}

/* ---- lists */

static void log_line(void *arg, ort_log_level level, const char *message)
{
    snprintf(arg, 300, "%s", message);
}

static void lists(test_state *test)
{
    ort_provider with = there;
    with.options = options;
    const ort_provider *const table[] = {ort_provider_at(0), &with, &missing, NULL};
    static const struct {
        const char *list;
        bool strict;
        ort_status status;
        const char *says; /* the names that were opened, or a part of the message */
        const char *warns;
    } cases[] = {
        {NULL, false, ORT_OK, "cpu", ""},
        {"cpu", false, ORT_OK, "cpu", ""},
        {"there", false, ORT_OK, "there,cpu", ""},
        {"cpu,there:device=1:half=0:cost=off", false, ORT_OK, "there,cpu", ""},
        {"missing,cpu", false, ORT_OK, "cpu", "'missing' is left out: no such device"},
        {"missing,there", false, ORT_OK, "there,cpu", "'missing' is left out"},
        {"there,missing", false, ORT_OK, "there,cpu", "'missing' is left out"},
        {"missing", false, ORT_ERROR_DEVICE, "'missing': no such device", ""},
        {"missing,cpu", true, ORT_ERROR_DEVICE, "no such device", ""},
        {"cuda", false, ORT_ERROR_USAGE, "'cuda' is not in this build; this build has: cpu, the",
         ""},
        {"tpu", false, ORT_ERROR_USAGE, "'tpu' is unknown (did you mean 'cpu'?); this build has",
         ""},
        {"there,there", false, ORT_ERROR_USAGE, "'there' comes twice", ""},
        {"cpu,cpu", false, ORT_ERROR_USAGE, "'cpu' comes twice", ""},
        {"there,", false, ORT_OK, "there,cpu", ""},
        {",there", false, ORT_ERROR_USAGE, "'' is unknown", ""},
        {"there:color=red", false, ORT_ERROR_USAGE,
         "no option 'color'; it has: cost=on|off, device=N, half=0|1", ""},
        {"there:device", false, ORT_ERROR_USAGE, "KEY=VALUE", ""},
        {"there:device=", false, ORT_ERROR_USAGE, "KEY=VALUE", ""},
        {"there:devic=1", false, ORT_ERROR_USAGE, "no option 'devic'", ""},
        {"there:device=1:device=1", false, ORT_ERROR_USAGE, "'device' comes twice", ""},
        {"there:cost=on:cost=off", false, ORT_ERROR_USAGE, "'cost' comes twice", ""},
        {"there:cost=maybe", false, ORT_ERROR_USAGE, "cost is on or off", ""},
        {"cpu:cost=off", false, ORT_ERROR_USAGE, "'cpu' has no options", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char warned[300] = "", names[100];
        ort_log log = {log_line, warned, ORT_LOG_WARNING};
        const ort_partition_setup setup = {table, cases[i].list, cases[i].strict, 1, &log};
        ort_partition partition = {0};
        ort_error err = {0};
        ort_status status = ort_partition_open(&partition, &setup, &err);
        ort_partition_names(&partition, names, sizeof names);
        ort_partition_release(&partition);
        CHECK(status == cases[i].status);
        if (status == ORT_OK)
            CHECK_TEXT(names, cases[i].says);
        else
            CHECK(strstr(err.message, cases[i].says));
        CHECK(*cases[i].warns ? strstr(warned, cases[i].warns) != NULL : !*warned);
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, tables);
    RUN(&test, lists);
    return test.failures != 0;
}
