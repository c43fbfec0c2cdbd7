/* opset_norms.c - conversion of normalizations, Dropout and recurrent operators. */
#include <string.h>

#include "opset/opset.h"
#include "tensor/scalar.h"

/* ---- BatchNormalization */

/* is_test: statistics are given. Without it, and with more than one output, they were computed. */
static void batch_norm_up_7(ort_opset_step *s)
{
    if (!ort_node_attr_int(s->node, "is_test") && s->node->output_count > 1)
        return; /* so it is in opset 7 */
    if (ort_node_attr_int(s->node, "is_test"))
        for (int i = 1; i < s->node->output_count; i++)
            if (ort_opset_has_output(s, i)) {
                ort_opset_block(s, "'is_test' with outputs of training");
                return;
            }
    ort_opset_drop(s, "is_test");
}

static bool is_read(const ort_opset_step *s, int output)
{
    const ort_graph_value *v = ort_graph_value_at(s->g.graph, s->node->outputs[output]);
    return v && (v->use_count > 0 || v->is_output);
}

static void batch_norm_up_14(ort_opset_step *s)
{
    for (int i = s->node->output_count - 1; i >= 3; i--)
        if (!is_read(s, i))
            s->node->output_count = i;
    if (ort_opset_has_output(s, 3) || ort_opset_has_output(s, 4))
        ort_opset_block(s, "outputs 'saved_mean' and 'saved_var' aren't there from opset 14 on");
    if (ort_opset_has_output(s, 1) || ort_opset_has_output(s, 2))
        ort_opset_set_int(s, "training_mode", 1);
}

/* Outputs 3 and 4 exist, for nobody: older ones have one output or five. */
static void add_saved_statistics(ort_opset_step *s)
{
    ort_graph *graph = s->g.graph;
    ort_node *node = s->node;
    ort_id *outputs = ort_arena_array(&graph->model->arena, 5, sizeof *outputs);
    for (int i = 0; outputs && i < 5; i++) {
        outputs[i] = i < node->output_count ? node->outputs[i] : ORT_ID_NONE;
        if (outputs[i] != ORT_ID_NONE)
            continue;
        outputs[i] = ort_graph_add_value(graph, "");
        if (outputs[i] == ORT_ID_NONE)
            break;
        graph->producers.data[outputs[i]] = node->id;
        graph->values.data[outputs[i]]->producer_slot = i;
    }
    if (!outputs || outputs[4] == ORT_ID_NONE) {
        ort_emit_fail_memory(&s->g);
        return;
    }
    node->outputs = outputs;
    node->output_count = 5;
    ort_graph_touch(graph, node);
}

/* More than one output says that it trains. */
static void batch_norm_down_14(ort_opset_step *s)
{
    bool trains = ort_node_attr_int(s->node, "training_mode") != 0;
    if (trains && !ort_opset_has_output(s, 1) && !ort_opset_has_output(s, 2))
        ort_opset_block(s, "'training_mode' without statistics as outputs");
    else
        ort_opset_drop(s, "training_mode");
    if (trains && !s->blocked)
        add_saved_statistics(s);
}

/* ---- GroupNormalization: scale and bias were per group before opset 21 */

static ort_id per_channel(ort_opset_step *s, ort_id value, int64_t groups)
{
    int64_t channels = ort_opset_dim(s, s->node->inputs[0], 1);
    if (channels <= 0 || groups <= 0) {
        ort_opset_block(s, "the number of channels isn't known");
        return value;
    }
    return ort_emit_formula(&s->g, "wide = (Expand (Reshape x [$groups 1]) [$groups $each]);"
                            "(Reshape wide [-1])", "x $groups $each", value, (double)groups,
                            (double)(channels / groups));
}

static void group_norm_up_21(ort_opset_step *s)
{
    int64_t groups = ort_node_attr_int(s->node, "num_groups");
    if (groups == ort_opset_dim(s, s->node->inputs[0], 1))
        return;
    ort_id scale = per_channel(s, s->node->inputs[1], groups);
    ort_id bias = per_channel(s, s->node->inputs[2], groups);
    ort_opset_set_input(s, 1, scale);
    ort_opset_set_input(s, 2, bias);
}

/* ---- Dropout: inference, unless the training_mode of opset 12 says otherwise */

static void dropout_up_7(ort_opset_step *s)
{
    ort_opset_drop(s, "is_test"); /* nobody trains with files of that time */
}

static void convert_mask(ort_opset_step *s, ort_dtype inside)
{
    if (!ort_opset_has_output(s, 1))
        return;
    ort_id out = s->node->outputs[1];
    ort_type type = *ort_emit_type(&s->g, out);
    ort_dtype outside = type.dtype;
    type.dtype = inside;
    ort_id mask = ort_opset_take_output(s, 1, &type);
    ort_opset_give(s, out, ort_emit_formula(&s->g, "(Cast m to=$to)", "m $to", mask,
                                            (double)outside));
}

static void dropout_up_10(ort_opset_step *s)
{
    convert_mask(s, ORT_DTYPE_BOOL);
}

static void dropout_down_10(ort_opset_step *s)
{
    convert_mask(s, ort_opset_dtype(s, s->node->inputs[0]));
}

static void dropout_down_12(ort_opset_step *s)
{
    const ort_tensor *mode = ort_opset_constant(s, 2);
    int64_t training;
    if (ort_opset_in(s, 2) != ORT_ID_NONE && (!ort_tensor_one_i64(mode, &training) || training)) {
        ort_opset_block(s, "'training_mode' is true, or computed");
        return;
    }
    ort_opset_set_input(s, 2, ORT_ID_NONE);
    if (!ort_opset_constant(s, 1))
        ort_opset_set_input(s, 1, ORT_ID_NONE); /* it has no say when nothing is dropped */
    ort_opset_drop(s, "seed");
}

/* ---- recurrent operators */

static void recurrent_up_7(ort_opset_step *s) { ort_opset_drop(s, "output_sequence"); }

static void permute_input(ort_opset_step *s, int slot, const int64_t *perm)
{
    if (ort_opset_in(s, slot) != ORT_ID_NONE)
        ort_opset_set_input(s, slot,
                            ort_emit_transpose(&s->g, s->node->inputs[slot], perm, 3));
}

/* The operator computes the output in its older order of dims; perm leads to the newer one. */
static void permute_output(ort_opset_step *s, int slot, const int64_t *perm, int rank)
{
    if (!ort_opset_has_output(s, slot))
        return;
    ort_id out = s->node->outputs[slot];
    ort_type type = *ort_emit_type(&s->g, out), inside = type;
    for (int i = 0; i < type.rank && type.rank == rank; i++)
        inside.dim[perm[i]] = type.dim[i];
    ort_id made = ort_opset_take_output(s, slot, &inside);
    ort_opset_give(s, out, ort_emit_transpose(&s->g, made, perm, rank));
}

/* layout 1: the batch comes first. */
static void recurrent_down_14(ort_opset_step *s)
{
    static const int64_t swap[] = {1, 0, 2}, whole[] = {2, 0, 1, 3};
    if (!ort_node_attr_int(s->node, "layout"))
        return;
    permute_input(s, 0, swap);
    permute_input(s, 5, swap);
    permute_output(s, 0, whole, 4);
    permute_output(s, 1, swap, 3);
    if (!strcmp(s->node->op_type, "LSTM")) {
        permute_input(s, 6, swap);
        permute_output(s, 2, swap, 3);
    }
    ort_opset_drop(s, "layout");
}

const ort_opset_rule ort_opset_norms[] = {
    {"BatchNormalization", 7, batch_norm_up_7, NULL},
    {"BatchNormalization", 14, batch_norm_up_14, batch_norm_down_14},
    {"Dropout", 7, dropout_up_7, NULL},
    {"Dropout", 10, dropout_up_10, dropout_down_10},
    {"Dropout", 12, NULL, dropout_down_12},
    {"GRU", 7, recurrent_up_7, NULL},
    {"GRU", 14, NULL, recurrent_down_14},
    {"GroupNormalization", 21, group_norm_up_21, NULL},
    {"LSTM", 7, recurrent_up_7, NULL},
    {"LSTM", 14, NULL, recurrent_down_14},
    {"RNN", 7, recurrent_up_7, NULL},
    {"RNN", 14, NULL, recurrent_down_14},
    {0},
};
