/* check_value.c - numbers of a node that run here and that others refuse or misread: integers
 * divided by a constant 0, axes counted from the end before ONNX had that, lists for scalars. Only
 * what all others refuse is an error. */
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

/* What the file holds as it is: an initializer or a Constant of this graph. */
static bool is_stated(const ort_graph *graph, ort_id id)
{
    const ort_graph_value *value = ort_graph_value_at(graph, id);
    ort_id producer = value ? graph->producers.data[id] : ORT_ID_NONE;
    return value && value->fact.value && value->outer == ORT_ID_NONE && !value->is_input &&
           (producer == ORT_ID_NONE || ort_node_is_constant(graph->nodes.data[producer]));
}

/* Scalars. Others run lists of one number, too, but refuse those of a file whose three values are
 * constants. ONNX's own functions compute such lists: a note. */
static void check_range(const ort_graph *graph, const ort_node *node, const ort_op *op,
                        ort_findings *findings)
{
    char label[256];
    bool stated = true;
    for (int i = 0; i < node->input_count; i++) {
        const ort_graph_value *value = ort_graph_value_at(graph, node->inputs[i]);
        if (!value || !value->fact.value)
            return;
        stated = stated && is_stated(graph, node->inputs[i]);
    }
    for (int i = 0; i < node->input_count; i++) {
        int rank = ort_graph_value_at(graph, node->inputs[i])->fact.value->shape.rank;
        if (rank == 0)
            continue;
        ort_findings_add(findings, stated ? ORT_FINDING_ERROR : ORT_FINDING_NOTE,
                         "%s: input %d has rank %d, %s-%d takes scalars",
                         ort_node_label(node, label, sizeof label), i, rank, op->name, op->since);
        return;
    }
}

/* ONNX has them optional; onnxruntime counts the classes by them (linearclassifier.cc). */
static void check_intercepts(const ort_node *node, ort_findings *findings)
{
    char label[256];
    size_t count = 0;
    (void)ort_node_floats(node, "intercepts", &count);
    if (count == 0)
        ort_findings_add(findings, ORT_FINDING_WARNING,
                         "%s: there are no intercepts: not every runtime goes without",
                         ort_node_label(node, label, sizeof label));
}

void ort_check_values(const ort_graph *graph, const ort_node *node, const ort_op *op,
                      ort_arena *arena, ort_hashmap *divisors, ort_findings *findings)
{
    if (!strcmp(op->domain, "ai.onnx.ml") && !strcmp(op->name, "LinearClassifier"))
        check_intercepts(node, findings);
    if (*op->domain)
        return;
    if (!strcmp(op->name, "Range"))
        check_range(graph, node, op, findings);
    else if (!strcmp(op->name, "Div") || !strcmp(op->name, "Mod"))
        check_divisor(graph, node, arena, divisors, findings);
    else if (op->since < 11 && (!strcmp(op->name, "Unsqueeze") || !strcmp(op->name, "Squeeze")))
        check_axes(node, op, findings);
}
