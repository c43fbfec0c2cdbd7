/* cpu_provider.c - the provider that is always there: it runs every operator that has a run
 * function.
 */
#include "provider/provider.h"

static ort_status cpu_open(void **device, ort_error *err)
{
    *device = NULL;
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

static bool cpu_supports(const ort_op *op)
{
    return ort_op_runs(op) && !(op->traits & ORT_TRAIT_DEPRECATED);
}

static const ort_pass *const lowering[] = {
    &ort_pass_quant_sink,     &ort_pass_quant_means,      &ort_pass_quant_tables,
    &ort_pass_coded_rnns,     &ort_pass_coded_convs,      &ort_pass_conv_gate,
    &ort_pass_dynamic_convs,  &ort_pass_bytes_layout,     &ort_pass_blocked_layout,
    &ort_pass_blocked_affine, &ort_pass_blocked_strides,  &ort_pass_blocked_chains,
    &ort_pass_linear_layer,   &ort_pass_chain_fusion,     NULL,
};

const ort_provider ort_provider_cpu = {
    .name = "cpu",
    .doc = "this processor",
    .open = cpu_open,
    .close = cpu_close,
    .claim = cpu_claim,
    .supports = cpu_supports,
    .lower = lowering,
};
