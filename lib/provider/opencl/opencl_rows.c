/* opencl_rows.c - the provider's row, and which operators it has. */
#include <string.h>

#include "provider/opencl/opencl.h"

static const ort_cl_row *const tables[] = {ort_cl_net_rows, ort_cl_math_rows, ort_cl_moves_rows,
                                           ort_cl_norm_rows, ort_cl_attention_rows,
                                           ort_cl_attention_fused_rows,
                                           ort_cl_attention_group_rows,
                                           ort_cl_take_rows, ort_cl_reduce_rows,
                                           ort_cl_transpose_rows, ort_cl_tokens_rows,
                                           ort_cl_codes_rows, ort_cl_bytes_rows,
                                           ort_cl_rnn_rows};

static const ort_cl_row *row_of(const ort_op *op)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const ort_cl_row *row = tables[t]; row->op_type; row++)
            if (!strcmp(row->op_type, op->name) && !strcmp(row->domain, op->domain))
                return row;
    return NULL;
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
