/* cpu_provider.c - the provider that is always there: it runs every operator that has a run
 * function.
 */
#include "base/cpu.h"
#include "provider/provider.h"

static ort_status cpu_devices(ort_device_fn *tell, void *arg, ort_error *err)
{
    char name[128];
    ort_cpu_name(name, sizeof name);
    ort_device_info info = {.name = name,
                            .vendor = "",
                            .platform = "this process",
                            .driver = "libort",
                            .version = ort_version(),
                            .kind = "cpu",
                            .memory_bytes = ort_cpu_memory(),
                            .units = (unsigned)ort_cpu_count_usable(),
                            .unified = true};
    tell(arg, &info);
    return ORT_OK;
}

static ort_status cpu_open(const ort_provider_setup *setup, void **device, ort_error *err)
{
    *device = (void *)(uintptr_t)setup->threads; /* all that costs depend on */
    return ORT_OK;
}

static void cpu_close(void *device)
{
}

static bool cpu_claim(void *device, const ort_graph *graph, const ort_node *node, const char **why)
{
    if (node->op && node->op->impl && node->op->impl->run)
        return true;
    *why = node->op ? "the operator is known but not implemented" : "the operator is unknown";
    return false;
}

static bool cpu_supports(const ort_provider_api *api, const ort_op *op)
{
    return ort_op_runs(op) && !(op->traits & ORT_TRAIT_DEPRECATED);
}

/* What one thread multiplies and adds in a second, in large convolutions and products: about 0.6 of
 * what such processors can at 2 to 3 GHz. */
static double flops_of_thread(void)
{
    const ort_cpu *cpu = ort_cpu_get();
    return cpu->avx512 ? 100e9 : cpu->avx2 ? 45e9 : 4e9;
}

/* Sums of products (of bytes three times as many), other arithmetic, memory, a step's own time. */
static double cpu_cost(void *device, const ort_node_work *work)
{
    double threads = (double)(uintptr_t)device, bytes = work->of_bytes ? 3 : 1;
    return work->macs * 2 / (flops_of_thread() * bytes * threads) +
           work->flops / (4e9 * threads) + work->bytes / 15e9 + 0.5e-6;
}

static const ort_pass *const lowering[] = {
    &ort_pass_quant_sink,     &ort_pass_quant_means,     &ort_pass_quant_wide,
    &ort_pass_quant_biased,   &ort_pass_wide_convs,      &ort_pass_quant_tables,
    &ort_pass_code_chains,    &ort_pass_coded_attention, &ort_pass_coded_rnns,
    &ort_pass_coded_convs,    &ort_pass_conv_gate,       &ort_pass_dynamic_convs,
    &ort_pass_bytes_layout,   &ort_pass_bytes_epilogue,  &ort_pass_blocked_layout,
    &ort_pass_blocked_affine, &ort_pass_blocked_strides, &ort_pass_blocked_chains,
    &ort_pass_linear_layer,   &ort_pass_shared_rows,     &ort_pass_lstm_cells,
    &ort_pass_chain_fusion,
    NULL,
};

const ort_provider ort_provider_cpu = {
    .size = sizeof(ort_provider),
    .name = "cpu",
    .doc = "this processor",
    .host = true,
    .devices = cpu_devices,
    .open = cpu_open,
    .close = cpu_close,
    .claim = cpu_claim,
    .supports = cpu_supports,
    .lower = lowering,
    .cost = cpu_cost,
};
