/* attention_behind.c - what stands between the Softmax of an attention and the product with v:
 *
 *     Reshape [B*H,S,T]         for torch.bmm, where masks were added to [B,H,S,T]
 *     Where(IsNaN(p), 0, p)     PyTorch's guard of rows that a mask of -inf leaves no key
 *     Where(drop, 0, p)         DeBERTa's, drop being the condition that lowered the scores
 *
 * The first two operators do by themselves. So does Attention of opset 23 with the third, where the
 * scores are lowered to -infinity; for MultiHeadAttention see attention_empty.c.
 */
#include "pass/attention/attention_match.h"
#include "pass/attention/heads.h"
#include "pass/facts/facts.h"

static bool is_zero(const ort_graph *graph, const ort_node *node, int slot)
{
    double number;
    return ort_fact_number(graph, node, slot, &number) && number == 0;
}

/* Where(IsNaN(p), 0, p): its p, or ORT_ID_NONE. */
static ort_id unguarded(const ort_graph *graph, const ort_node *node)
{
    const ort_node *nan = ort_edit_producer(graph, node->inputs[0]);
    const ort_graph_value *p = graph->values.data[node->inputs[2]];
    return ort_edit_is(nan, ONNX, "IsNaN") && nan->inputs[0] == node->inputs[2] &&
                   is_zero(graph, node, 1) && !p->is_output && p->use_count == 2 &&
                   ort_edit_only_reader(graph, nan->outputs[0]) == node
               ? node->inputs[2]
               : ORT_ID_NONE;
}

/* Where(condition, 0, p) or Where(condition, p, 0): the slot of p, or -1. */
static int unzeroed(const ort_graph *graph, const ort_node *node)
{
    int slot = is_zero(graph, node, 1) ? 2 : 1;
    return is_zero(graph, node, 3 - slot) &&
                   ort_edit_only_reader(graph, node->inputs[slot]) == node
               ? slot
               : -1;
}

/* Is `id` [B*H,S,T] and what is reshaped to it [B,H,S,T]? */
static bool folds(const ort_graph *graph, const ort_node *reshape, ort_id id)
{
    if (!ort_fact_ranked(graph, id, 3) || !ort_fact_ranked(graph, reshape->inputs[0], 4))
        return false;
    const ort_type *to = ort_fact_type(graph, id);
    const ort_type *from = ort_fact_type(graph, reshape->inputs[0]);
    return ort_dim_equal(from->dim[2], to->dim[1]) && ort_dim_equal(from->dim[3], to->dim[2]);
}

ort_node *ort_attention_read_behind(const ort_graph *graph, const ort_node *root,
                                    ort_attention_zeros *zeros, ort_id *whole, const char **why)
{
    ort_id id = root->inputs[0];
    const ort_node *reader = root;
    ort_node *node = ort_edit_producer(graph, id);
    *zeros = (ort_attention_zeros){.zeroed = ORT_ID_NONE};
    *whole = ORT_ID_NONE;
    if (ort_edit_is(node, ONNX, "Reshape") && ort_edit_only_reader(graph, id) == reader &&
        folds(graph, node, id)) {
        reader = node;
        *whole = id = node->inputs[0];
        node = ort_edit_producer(graph, id);
    }
    if (ort_edit_is(node, ONNX, "Where") && ort_edit_only_reader(graph, id) == reader) {
        ort_id p = unguarded(graph, node);
        int slot = p == ORT_ID_NONE ? unzeroed(graph, node) : -1;
        zeros->guarded = p != ORT_ID_NONE;
        if (slot > 0) {
            *zeros = (ort_attention_zeros){.zeroed = node->inputs[0], .where_true = slot == 2};
            p = node->inputs[slot];
            reader = node;
        }
        id = p == ORT_ID_NONE ? id : p;
        node = ort_edit_producer(graph, id);
    }
    if (ort_edit_is(node, ONNX, "Softmax") && !zeros->guarded &&
        ort_edit_only_reader(graph, id) != reader)
        *why = "the probabilities are read elsewhere";
    return node;
}
