/* shared_rows.c - products with weights of a few bits that read the same rows become one step,
 * which puts these in fixed point once (op/quant/nbits.c): queries, keys and values of attention,
 * gate and value of a layer that is gated.
 *
 *     MatMulNBits(a, B), MatMulNBits(a, B2), ..       MatMulNBitsShared(a, B, B2, ..)
 *
 * Floats by constant weights, whose attributes are equal but for the number of columns. Bits are
 * those of the products alone. Level 3: nothing of this is saved.
 */
#include "base/error.h"
#include "graph/uses.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"

enum { PARTS = 3, WEIGHT = 5, /* inputs: B, scales, zero_points, g_idx, bias */
       GROUP = 4 };

static bool is_constant(const ort_graph *graph, const ort_node *node, int slot)
{
    return slot >= node->input_count || node->inputs[slot] == ORT_ID_NONE ||
           ort_edit_constant(graph, node, slot);
}

static bool is_product(const ort_graph *graph, const ort_node *node)
{
    if (!node->op || !ort_edit_is(node, MS, "MatMulNBits") || node->output_count != 1 ||
        ort_node_attr_int(node, "weight_prepacked") ||
        (GROUP < node->input_count && node->inputs[GROUP] != ORT_ID_NONE))
        return false;
    for (int slot = 1; slot <= WEIGHT; slot++)
        if (!is_constant(graph, node, slot))
            return false;
    const ort_tensor *b = ort_edit_constant(graph, node, 1);
    const ort_tensor *zero = node->input_count > 3 ? ort_edit_constant(graph, node, 3) : NULL;
    return b && b->shape.rank == 3 && b->shape.dim[0] == ort_node_attr_int(node, "N") &&
           ort_fact_type(graph, node->inputs[0])->dtype == ORT_DTYPE_FLOAT &&
           (!zero || zero->dtype == ORT_DTYPE_UINT8 || zero->dtype == ORT_DTYPE_FLOAT);
}

static bool is_alike(const ort_node *a, const ort_node *b)
{
    static const char *const names[] = {"K", "bits", "block_size", "accuracy_level"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ort_node_attr_int(a, names[i]) != ort_node_attr_int(b, names[i]))
            return false;
    return true;
}

/* The first and those that may join it, in the order in which they are read. */
static int find(const ort_graph *graph, ort_node *first, ort_node **parts)
{
    int count = 0;
    if (!is_product(graph, first))
        return 0;
    parts[count++] = first;
    ort_readers readers = ort_readers_of(graph, first->inputs[0]);
    for (ort_node *node; count < PARTS && (node = ort_readers_next(&readers));)
        if (node != first && readers.slot == 0 && is_product(graph, node) && is_alike(first, node))
            parts[count++] = node;
    return count;
}

static ort_status join(ort_graph *graph, ort_node **parts, int count, ort_error *err)
{
    ort_id inputs[1 + PARTS * WEIGHT], outputs[PARTS];
    ort_node merged = *parts[0];
    inputs[0] = merged.inputs[0];
    for (int i = 0; i < count; i++) {
        for (int slot = 1; slot <= WEIGHT; slot++)
            inputs[i * WEIGHT + slot] =
                slot < parts[i]->input_count ? parts[i]->inputs[slot] : ORT_ID_NONE;
        outputs[i] = parts[i]->outputs[0];
        if (i > 0)
            merged.origin = ort_edit_origin(graph, &merged, parts[i]);
    }
    const ort_attr set[] = {
        ort_attr_int("K", ort_node_attr_int(&merged, "K")),
        ort_attr_int("bits", ort_node_attr_int(&merged, "bits")),
        ort_attr_int("block_size", ort_node_attr_int(&merged, "block_size")),
        ort_attr_int("accuracy_level", ort_node_attr_int(&merged, "accuracy_level"))};
    const ort_node_spec spec = {
        .domain = ORT_INTERNAL, .op_type = "MatMulNBitsShared", .name = merged.name,
        .inputs = inputs, .input_count = 1 + count * WEIGHT, .outputs = outputs,
        .output_count = count, .set = set, .set_count = sizeof set / sizeof *set,
        .origin = merged.origin};
    for (int i = 0; i < count; i++)
        ort_graph_remove_node(graph, parts[i]);
    return ort_edit_add_node(graph, &spec, NULL, err);
}

static ort_status apply(ort_pass_context *p, int *changes, ort_error *err)
{
    ort_node *node, *parts[PARTS];
    if (!p->target || p->portable)
        return ORT_OK;
    ORT_PASS_EACH_NODE(p->graph, node)
    {
        const int count = find(p->graph, node, parts);
        if (count < 2)
            continue;
        ORT_TRY(join(p->graph, parts, count, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_shared_rows = {
    .name = "shared_rows",
    .level = 3,
    .doc = "products of one value with weights of a few bits put it in fixed point once (cpu only)",
    .apply = apply,
};
