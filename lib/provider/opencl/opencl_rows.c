/* opencl_rows.c - the provider's row, and which operators it has. */
#include <string.h>

#include "base/error.h"
#include "provider/opencl/opencl.h"

const ort_cl_row *const ort_cl_row_tables[] = {
    ort_cl_net_rows,    ort_cl_math_rows,      ort_cl_moves_rows,  ort_cl_pool_rows,
    ort_cl_norm_rows,   ort_cl_attention_rows, ort_cl_attention_fused_rows,
    ort_cl_attention_group_rows,               ort_cl_take_rows,
    ort_cl_reduce_rows, ort_cl_transpose_rows, ort_cl_tokens_rows,
    ort_cl_codes_rows,  ort_cl_bytes_rows,     ort_cl_rnn_rows,
    NULL,
};

static const ort_cl_row *find(const ort_cl_row *const *tables, const char *domain,
                              const char *op_type)
{
    for (; *tables; tables++)
        for (const ort_cl_row *row = *tables; row->op_type; row++)
            if (!strcmp(row->op_type, op_type) && !strcmp(row->domain, domain))
                return row;
    return NULL;
}

static const ort_cl_row *row_of(const ort_op *op)
{
    return find(ort_cl_row_tables, op->domain, op->name);
}

static const char *wrong_with(const ort_cl_row *const *tables, const ort_cl_row *row,
                              const ort_registry *registry)
{
    if (find(tables, row->domain, row->op_type) != row)
        return "is there twice";
    if (!ort_registry_oldest(registry, row->domain, row->op_type))
        return "is no operator";
    if (!row->emit == !row->form || (row->form && !row->kernel))
        return "is either made by a function or of a form, which has a name";
    return NULL;
}

ort_status ort_cl_rows_check(const ort_cl_row *const *tables, const ort_registry *registry,
                             ort_error *err)
{
    for (const ort_cl_row *const *t = tables; *t; t++)
        for (const ort_cl_row *row = *t; row->op_type; row++) {
            const char *wrong = wrong_with(tables, row, registry);
            if (wrong)
                return ort_error_set(err, ORT_ERROR_USAGE, "opencl: a row for '%s%s%s' %s",
                                     row->domain, *row->domain ? "." : "", row->op_type, wrong);
        }
    return ORT_OK;
}

/* Numbers of inputs that say how, not what, may be integers: claims of rows look at them. */
static bool is_float(const ort_graph *graph, ort_id id)
{
    const ort_type *type = &graph->values.data[id]->fact.type;
    return type->dtype == ORT_DTYPE_FLOAT;
}

static bool claim(void *device, const ort_graph *graph, const ort_node *node, const char **why)
{
    const ort_cl_row *row = row_of(node->op);
    *why = "no kernel";
    if (!row)
        return false;
    *why = "the element type isn't float";
    if (!node->input_count || node->inputs[0] == ORT_ID_NONE)
        return false;
    if (!row->typed && !is_float(graph, node->inputs[0]))
        return false;
    for (int i = 0; i < node->output_count && !row->typed; i++)
        if (node->outputs[i] != ORT_ID_NONE && !is_float(graph, node->outputs[i]))
            return false;
    for (int i = 0; i < node->input_count + node->output_count; i++) {
        ort_id id = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
        *why = "more than 6 axes";
        if (id != ORT_ID_NONE && graph->values.data[id]->fact.type.rank > 6)
            return false;
    }
    *why = "this form has no kernel";
    return !row->claim || row->claim(graph, node, why);
}

static ort_status open_device(const ort_provider_setup *setup, void **device, ort_error *err)
{
    ORT_TRY(ort_cl_open(setup, device, err));
    ((ort_cl_device *)*device)->row_of = row_of;
    return ORT_OK;
}

static bool supports(const ort_provider_api *api, const ort_op *op)
{
    return row_of(op) && ort_op_runs(op);
}

static const char *const options[] = {"device=N", "tiles=local|registers", "chains=on|off",
                                      "fp16=0|1|math", "tuning=on|off|measure", NULL};

const ort_provider ort_provider_opencl = {
    .size = sizeof(ort_provider),
    .name = "opencl",
    .doc = "a device of OpenCL 1.2",
    .options = options,
    .devices = ort_cl_devices,
    .open = open_device,
    .close = ort_cl_close,
    .claim = claim,
    .supports = supports,
    .cost = ort_cl_cost,
    .copy_cost = ort_cl_copy_cost,
    .plan = ort_cl_plan_new,
    .plan_free = ort_cl_plan_free,
    .frame = ort_cl_frame_new,
    .frame_free = ort_cl_frame_free,
    .copy_in = ort_cl_copy_in,
    .run = ort_cl_run,
    .copy_out = ort_cl_copy_out,
    .sync = ort_cl_sync,
    .watch = ort_cl_watch,
    .times = ort_cl_times,
    .shares = ort_cl_shares,
    .memory = ort_cl_memory_new,
    .memory_free = ort_cl_memory_free,
    .memory_part = ort_cl_memory_part,
    .memory_alignment = ort_cl_memory_alignment,
    .memory_write = ort_cl_memory_write,
    .memory_read = ort_cl_memory_read,
    .use_in = ort_cl_use_in,
    .use_out = ort_cl_use_out,
    .place_out = ort_cl_place_out,
};
