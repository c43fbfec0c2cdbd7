/* check_value.c - numbers of a node that run here and that others refuse or misread: integers
 * divided by a constant 0, axes counted from the end before ONNX had that. All are warnings. */
#include <string.h>

#include "op/check/check.h"

static bool reads_zero(const ort_tensor *tensor)
{
    for (int64_t i = 0; i < ort_tensor_count(tensor); i++)
        if (ort_tensor_get_i64(tensor, i) == 0)
            return true;
    return false;
}

/* As reads_zero; many nodes may divide by one constant, which is read once. */
static bool holds_zero(const ort_tensor *tensor, ort_arena *arena, ort_hashmap *divisors)
{
    uint64_t found;
    const char *address = (const char *)&tensor;
    if (ort_hashmap_get(divisors, address, sizeof tensor, &found))
        return found != 0;
    found = reads_zero(tensor);
    const char *kept = ort_arena_strndup(arena, address, sizeof tensor);
    if (kept)
        (void)ort_hashmap_put(divisors, kept, sizeof tensor, found);
    return found != 0;
}

/* ONNX leaves it open; onnxruntime makes no session (element_wise_ops.h, Div and Mod). */
static void check_divisor(const ort_graph *graph, const ort_node *node, ort_arena *arena,
                          ort_hashmap *divisors, ort_findings *findings)
{
    char label[256];
    const ort_graph_value *value =
        node->input_count > 1 ? ort_graph_value_at(graph, node->inputs[1]) : NULL;
    const ort_tensor *tensor = value ? value->fact.value : NULL;
    if (!tensor || !tensor->data)
        return;
    ort_dtype_class kind = ort_dtype_get(tensor->dtype)->class_;
    if ((kind == ORT_CLASS_INT || kind == ORT_CLASS_UINT) && holds_zero(tensor, arena, divisors))
        ort_findings_add(findings, ORT_FINDING_WARNING,
                         "%s: input 1 (B) holds 0: integers divided by it give 0 here, other "
                         "runtimes don't take it",
                         ort_node_label(node, label, sizeof label));
}

/* "List of non-negative integers" until opset 11; others' inference leaves such axes out. */
static void check_axes(const ort_node *node, const ort_op *op, ort_findings *findings)
{
    char label[256];
    size_t count = 0;
    const int64_t *axes = ort_node_ints(node, "axes", &count);
    for (size_t i = 0; axes && i < count; i++) {
        if (axes[i] >= 0)
            continue;
        ort_findings_add(findings, ORT_FINDING_WARNING,
                         "%s: axes[%zu] is %lld: counted from the end, which %s-%d doesn't offer",
                         ort_node_label(node, label, sizeof label), i, (long long)axes[i],
                         op->name, op->since);
        return;
    }
}

void ort_check_values(const ort_graph *graph, const ort_node *node, const ort_op *op,
                      ort_arena *arena, ort_hashmap *divisors, ort_findings *findings)
{
    if (*op->domain)
        return;
    if (!strcmp(op->name, "Div") || !strcmp(op->name, "Mod"))
        check_divisor(graph, node, arena, divisors, findings);
    else if (op->since < 11 && (!strcmp(op->name, "Unsqueeze") || !strcmp(op->name, "Squeeze")))
        check_axes(node, op, findings);
}
