/* onednn.c - the provider: device, claims, estimates, and the table that libort reads. */
#include "onednn.h"

#include <stdio.h>

static ort_status tell_devices(ort_device_fn *tell, void *arg, ort_error *err)
{
    char version[40];
    const dnnl_version_t *v = dnnl_version();
    snprintf(version, sizeof version, "%d.%d.%d", v->major, v->minor, v->patch);
    const ort_device_info info = {.name = "this processor", .vendor = "", .platform = "oneDNN",
                                  .driver = version, .version = "", .kind = "cpu",
                                  .unified = true};
    tell(arg, &info);
    return ORT_OK;
}

static ort_status open_device(const ort_provider_setup *setup, void **opened, ort_error *err)
{
    device *d = calloc(1, sizeof *d);
    if (!d)
        return setup->api->fail(err, ORT_ERROR_MEMORY, "no memory for a device");
    d->api = setup->api;
    d->threads = setup->threads;
    dnnl_status_t status = dnnl_engine_create(&d->engine, dnnl_cpu, 0);
    if (status != dnnl_success) {
        free(d);
        return setup->api->fail(err, ORT_ERROR_DEVICE, "oneDNN has no engine (status %d)",
                                (int)status);
    }
    *opened = d;
    return ORT_OK;
}

static void close_device(void *opened)
{
    device *d = opened;
    dnnl_engine_destroy(d->engine);
    free(d);
}

const struct row *onednn_find(const char *domain, const char *op)
{
    const struct row *const tables[] = {onednn_net_rows, onednn_math_rows};
    for (int t = 0; t < 2; t++)
        for (const struct row *r = tables[t]; r->op; r++)
            if (!strcmp(r->op, op) && !strcmp(r->domain, domain))
                return r;
    return NULL;
}

static bool supports(const ort_provider_api *api, const ort_op *op)
{
    return onednn_find(api->op_domain(op), api->op_name(op)) != NULL;
}

static bool is_tensor(const ort_provider_api *api, const ort_graph *graph, ort_id id,
                      const char **why)
{
    ort_device_value v;
    api->value(graph, id, &v);
    *why = "more than 6 axes";
    if (v.rank < 0 || v.rank > MOST_AXES)
        return false;
    *why = "a tensor without elements";
    if (v.count == 0)
        return false;
    *why = "the element type isn't float";
    return v.dtype == ORT_DTYPE_FLOAT;
}

/* The first input and all outputs are tensors of floats; rows look at the others. */
static bool claim(void *opened, const ort_graph *graph, const ort_node *node, const char **why)
{
    const ort_provider_api *api = ((device *)opened)->api;
    const struct row *row = onednn_find(api->node_domain(node), api->node_type(node));
    *why = "no kernel";
    if (!row || !is_tensor(api, graph, api->input(node, 0), why))
        return false;
    for (int i = 0; i < api->output_count(node); i++) {
        *why = "more outputs than one";
        if (i && api->output(node, i) != ORT_ID_NONE)
            return false;
        if (!i && !is_tensor(api, graph, api->output(node, i), why))
            return false;
    }
    *why = "this form has no kernel";
    return !row->claim || row->claim(api, graph, node, why);
}

static double cost(void *opened, const ort_node_work *work)
{
    const device *d = opened;
    return work->macs * 2 / (50e9 * d->threads) + work->flops / (4e9 * d->threads) +
           work->bytes / 10e9 + 3e-6;
}

static double copy_cost(void *opened, double bytes)
{
    return bytes / 8e9 + 2e-6;
}

static const ort_provider row = {
    .size = sizeof(ort_provider),
    .name = "onednn",
    .doc = "oneDNN on this processor, in float",
    .devices = tell_devices,
    .open = open_device,
    .close = close_device,
    .claim = claim,
    .supports = supports,
    .cost = cost,
    .copy_cost = copy_cost,
    .plan = onednn_plan,
    .plan_free = onednn_plan_free,
    .frame = onednn_frame,
    .frame_free = onednn_frame_free,
    .copy_in = onednn_copy_in,
    .run = onednn_run,
    .copy_out = onednn_copy_out,
    .sync = onednn_sync,
};
static const ort_provider *const rows[] = {&row, NULL};

const ort_provider_library ort_provider_entry = {
    .abi = 1, .size = sizeof(ort_provider_library), .name = "onednn", .version = "1",
    .providers = rows,
};
