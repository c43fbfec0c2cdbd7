/* merge_pads.c - a Pad of a Pad with the same constant is one Pad.
 *
 *     Pad p of v, Pad q of v     Pad p + q of v
 *
 * Both are of mode constant: the number v is the same to the bit, or both leave it out, amounts are
 * constant and none is negative, since what the second cuts the first may have put there. Mode edge
 * and its like stay: their second Pad copies what the first has made. The first Pad stays when
 * others read it.
 */
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "pass/facts/constants.h"
#include "pass/pass.h"

typedef struct margins {
    int rank;
    int64_t amount[2 * ORT_MAX_RANK]; /* [begin..., end...] */
    const ort_tensor *number;         /* NULL: zero */
    float attr;                       /* before opset 11 */
} margins;

static bool has(const ort_node *node, int slot)
{
    return slot < node->input_count && node->inputs[slot] != ORT_ID_NONE;
}

/* Amounts as inputs, of some axes from opset 18 on. */
static bool read_inputs(const ort_graph *graph, const ort_node *pad, margins *m)
{
    const ort_tensor *amounts = ort_edit_constant(graph, pad, 1);
    const ort_tensor *axes = has(pad, 3) ? ort_edit_constant(graph, pad, 3) : NULL;
    if (!amounts || !amounts->data || (has(pad, 3) && (!axes || !axes->data)))
        return false;
    int64_t count = axes ? ort_tensor_count(axes) : m->rank;
    if (count > m->rank || ort_tensor_count(amounts) != 2 * count)
        return false;
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = axes ? ort_tensor_get_i64(axes, i) : i;
        axis += axis < 0 ? m->rank : 0;
        if (axis < 0 || axis >= m->rank)
            return false;
        m->amount[axis] = ort_tensor_get_i64(amounts, i);
        m->amount[m->rank + axis] = ort_tensor_get_i64(amounts, count + i);
    }
    if (!has(pad, 2))
        return true;
    m->number = ort_edit_constant(graph, pad, 2);
    return m->number && m->number->data && ort_tensor_count(m->number) == 1 &&
           m->number->dtype != ORT_DTYPE_STRING;
}

static bool read_margins(const ort_graph *graph, const ort_node *pad, margins *m)
{
    size_t count;
    const ort_type *in = &graph->values.data[pad->inputs[0]]->fact.type;
    *m = (margins){.rank = in->rank};
    if (strcmp(ort_node_string(pad, "mode", "constant"), "constant") ||
        in->kind != ORT_TYPE_TENSOR || in->rank < 0)
        return false;
    if (pad->opset >= 11) {
        if (!read_inputs(graph, pad, m))
            return false;
    } else {
        const int64_t *list = ort_node_ints(pad, "pads", &count);
        if (!list || count != (size_t)m->rank * 2)
            return false;
        memcpy(m->amount, list, count * sizeof *list);
        m->attr = ort_node_float(pad, "value", 0.0f);
    }
    for (int i = 0; i < 2 * m->rank; i++)
        if (m->amount[i] < 0 || m->amount[i] > INT32_MAX)
            return false;
    return true;
}

static bool same_number(const margins *a, const margins *b)
{
    if (!a->number || !b->number)
        return a->number == b->number && !memcmp(&a->attr, &b->attr, sizeof a->attr);
    return a->number->dtype == b->number->dtype &&
           !memcmp(a->number->data, b->number->data, ort_tensor_bytes(a->number));
}

/* The second takes the input of the first, and both amounts, over all axes. */
static ort_status merge(ort_pass_context *c, ort_node *first, ort_node *second, const margins *sum,
                        ort_error *err)
{
    int count = 2 * sum->rank;
    ort_attr pads = {.name = "pads", .type = ORT_ATTR_INTS, .ints = sum->amount,
                     .count = (size_t)count};
    ort_id inputs[3] = {first->inputs[0], ORT_ID_NONE, ORT_ID_NONE}, output = second->outputs[0];
    bool listed = second->opset >= 11;
    if (listed)
        ORT_TRY(ort_constant_list(c->graph, sum->amount, count, &inputs[1], err));
    if (has(second, 2))
        inputs[2] = second->inputs[2];
    ort_node_spec spec = {.domain = ONNX, .op_type = "Pad", .name = second->name, .inputs = inputs,
                          .input_count = !listed ? 1 : inputs[2] == ORT_ID_NONE ? 2 : 3,
                          .outputs = &output, .output_count = 1, .attrs = second->attrs,
                          .attr_count = second->attr_count, .set = &pads,
                          .set_count = listed ? 0 : 1, .opset = second->opset,
                          .origin = ort_edit_origin(c->graph, first, second)};
    ort_graph_remove_node(c->graph, second);
    ort_graph_remove_node(c->graph, first);
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        margins a, b;
        if (!ort_edit_is(node, ONNX, "Pad"))
            continue;
        ort_node *first = ort_edit_producer(c->graph, node->inputs[0]);
        if (!ort_edit_is(first, ONNX, "Pad"))
            continue;
        if (ort_edit_only_reader(c->graph, node->inputs[0]) != node) {
            ort_pass_note(c, node, "the pad before it has another reader");
            continue;
        }
        if (!read_margins(c->graph, first, &a) || !read_margins(c->graph, node, &b) ||
            !same_number(&a, &b)) {
            ort_pass_note(c, node, "the pad before it isn't of the same constant");
            continue;
        }
        for (int i = 0; i < 2 * a.rank; i++)
            b.amount[i] += a.amount[i];
        ORT_TRY(merge(c, first, node, &b, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_merge_pads = {
    .name = "merge_pads",
    .level = 1,
    .doc = "two pads in a row of the same constant become one",
    .apply = apply,
};
