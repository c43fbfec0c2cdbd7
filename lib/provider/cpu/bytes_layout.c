/* bytes_layout.c - quantized convolutions, and what stands between them, run in the blocked layout
 * of bytes (op/blocked/bytes_op.h). As blocked_layout.c does for floats: conversions stand where a
 * region begins with many channels and where somebody outside reads its values. Bytes are
 * converted for a fraction of what a convolution takes, so each one that the layout serves goes
 * there. Level 3: nothing of this is saved.
 */
#pragma GCC optimize("Os") /* runs once for a model */
#include "provider/cpu/bytes_layout.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "pass/facts/perm.h"

/* A zero point as the layout has it. */
static ort_status move_zero(ort_bytes_layout *l, ort_id *zero, ort_error *err)
{
    const ort_tensor *from = l->edit.graph->values.data[*zero]->fact.value;
    int code = ort_bytes_zero(from, from->dtype);
    ort_tensor made;
    ort_shape scalar = ort_shape_make(0, NULL);
    if (from->dtype == ORT_DTYPE_UINT8)
        return ORT_OK;
    if (l->zero[code] == ORT_ID_NONE) {
        ORT_TRY(ort_edit_new_constant(l->edit.graph, "zero_point", ORT_DTYPE_UINT8, &scalar, &made,
                                      &l->zero[code], err));
        ort_tensor_set_i64(&made, 0, code);
    }
    *zero = l->zero[code];
    return ORT_OK;
}

/* The node's inputs as its form in the layout has them. */
static ort_status convert_inputs(ort_bytes_layout *l, const ort_node *node, ort_id *inputs,
                                 ort_error *err)
{
    ort_bytes_role r = l->role[node->id];
    bool plain = r == ORT_BYTES_CONV && ort_bytes_reads_plain(l->edit.graph, l, node);
    for (int i = 0; i < node->input_count; i++) {
        inputs[i] = node->inputs[i];
        if (ort_bytes_is_data(r, node, i) && !plain)
            ORT_TRY(ort_bytes_form(l, node->inputs[i], &inputs[i], err));
        else if (ort_bytes_is_zero(r, node, i))
            ORT_TRY(move_zero(l, &inputs[i], err));
    }
    return ORT_OK;
}

/* QLinearConv's inputs in the order of BytesConv's. */
static void order_conv(const ort_node *node, ort_id *inputs)
{
    static const int from[] = {0, 3, 8, 1, 2, 4, 5, 6, 7};
    ort_id old[9];
    for (int i = 0; i < 9; i++)
        old[i] = i < node->input_count ? inputs[i] : ORT_ID_NONE;
    for (int i = 0; i < 9; i++)
        inputs[i] = old[from[i]];
}

/* A table of codes of the layout. */
static ort_status move_table(ort_bytes_layout *l, const ort_node *look_up, ort_id *table,
                             ort_error *err)
{
    ort_graph *graph = l->edit.graph;
    const ort_tensor *from = ort_edit_constant(graph, look_up, 1);
    const uint8_t in = ort_bytes_flip(ort_fact_type(graph, look_up->inputs[0])->dtype);
    const uint8_t out = ort_bytes_flip(from->dtype);
    ort_shape shape = {1, {256}};
    ort_tensor made;
    ORT_TRY(ort_edit_new_constant(graph, "table", ORT_DTYPE_UINT8, &shape, &made, table, err));
    for (int i = 0; i < 256; i++)
        ((uint8_t *)made.data)[i ^ in] = ((const uint8_t *)from->data)[i] ^ out;
    return ORT_OK;
}

/* Scales or sizes of height and width alone. */
static ort_status cut_numbers(ort_bytes_layout *l, ort_id *numbers, ort_error *err)
{
    const ort_tensor *all = *numbers == ORT_ID_NONE
                                ? NULL : l->edit.graph->values.data[*numbers]->fact.value;
    ort_shape shape = {1, {2}};
    ort_tensor made;
    if (!all || ort_tensor_count(all) != 4)
        return ORT_OK;
    ORT_TRY(ort_edit_new_constant(l->edit.graph, "numbers", all->dtype, &shape, &made, numbers,
                                  err));
    const size_t half = ort_tensor_bytes(&made);
    memcpy(made.data, (const char *)all->data + half, half);
    return ORT_OK;
}

/* The operator itself, on blocked tensors. */
static ort_status add_same(ort_bytes_layout *l, const ort_node *node, ort_id *inputs,
                           ort_id output, ort_error *err)
{
    static const int64_t planes[] = {2, 3};
    const ort_bytes_role r = l->role[node->id];
    ort_node_spec spec = ort_edit_again(node);
    ort_attr axes = ort_attr_ints("axes", planes, 2);
    spec.inputs = inputs;
    spec.input_count = node->input_count;
    spec.outputs = &output;
    spec.output_count = 1;
    if (r == ORT_BYTES_TABLE)
        ORT_TRY(move_table(l, node, &inputs[1], err));
    if (r == ORT_BYTES_RESIZE) {
        for (int i = 2; i < node->input_count; i++)
            ORT_TRY(cut_numbers(l, &inputs[i], err));
        spec.opset = 19; /* which has axes */
        spec.set = &axes;
        spec.set_count = 1;
    }
    return ort_edit_add_node(l->edit.graph, &spec, NULL, err);
}

/* Those outside read a value as it was. */
static ort_status give_outside(ort_bytes_layout *l, ort_id value, ort_error *err)
{
    const ort_graph_value *v = l->edit.graph->values.data[value];
    const ort_type *type = ort_fact_type(l->edit.graph, value);
    const char *op_type = type->dtype == ORT_DTYPE_INT8 ? "UnblockSignedBytes" : "UnblockBytes";
    const ort_attr channels = ort_attr_int("channels", type->dim[1].size);
    ort_id blocked;
    if (v->use_count <= l->uses[value] && !v->is_output)
        return ORT_OK;
    ORT_TRY(ort_bytes_form(l, value, &blocked, err));
    return ort_layout_node(&l->edit, NULL, op_type, &blocked, 1, value, &channels, 1, err);
}

/* Nothing runs until somebody reads what is moved. */
static ort_status convert_move(ort_bytes_layout *l, ort_node *node, ort_error *err)
{
    ort_graph *graph = l->edit.graph;
    ort_id outputs[ORT_LAYOUT_INPUTS];
    ort_node *before[2] = {NULL, NULL};
    const int count = node->output_count;
    ORT_TRY(ort_bytes_note_move(l, node, err));
    ort_bytes_shuffles(graph, node, before);
    memcpy(outputs, node->outputs, (size_t)count * sizeof *outputs);
    ort_graph_remove_node(graph, node);
    for (int i = 1; i >= 0 && before[i]; i--)
        ort_graph_remove_node(graph, before[i]);
    for (int i = 0; i < count; i++)
        ORT_TRY(give_outside(l, outputs[i], err));
    return ORT_OK;
}

/* Channels of groups that fill no block, each group from a block of its own on; `from`: where they
 * are then, or what lies there. */
static int64_t spread_groups(int64_t group, int64_t each, bool back, int64_t *from)
{
    const int64_t wide = ort_blocked_count(each, ORT_BYTES_BLOCK) * ORT_BYTES_BLOCK;
    for (int64_t i = 0; i < group * (back ? each : wide); i++)
        from[i] = back ? i / each * wide + i % each
                  : i % wide < each ? i / wide * each + i % wide : -1;
    return group * (back ? each : wide);
}

/* Before a convolution: its groups from blocks of their own on. Groups of one channel with several
 * filters: that channel for each of them. */
static ort_status split_input(ort_bytes_layout *l, ort_node *conv, const ort_tensor *w, ort_id *x,
                              ort_error *err)
{
    const int64_t group = ort_node_attr_int(conv, "group"), each = w->shape.dim[1];
    const int64_t maps = w->shape.dim[0];
    const int64_t most = ort_max_i64(group * (each + ORT_BYTES_BLOCK), maps);
    int64_t *from = ort_arena_array(l->space, (size_t)most, sizeof *from), count = maps;
    if (!from)
        return ort_error_memory(err, (size_t)most * sizeof *from);
    if (each > 1) {
        count = spread_groups(group, each, false, from);
    } else {
        const ort_attr attr = ort_attr_int("group", maps);
        for (int64_t i = 0; i < maps; i++)
            from[i] = i / (maps / group);
        ORT_TRY(ort_node_set_attr(l->edit.graph, conv, &attr, err));
    }
    return ort_bytes_pick(l, *x, group * each, from, count, conv->inputs[0], x, err);
}

/* And behind it: one behind the other. */
static ort_status join_output(ort_bytes_layout *l, int64_t group, int64_t each, ort_id like,
                              ort_id *y, ort_error *err)
{
    const int64_t wide = ort_blocked_count(each, ORT_BYTES_BLOCK) * ORT_BYTES_BLOCK;
    int64_t *from = ort_arena_array(l->space, (size_t)(group * each), sizeof *from);
    if (!from)
        return ort_error_memory(err, (size_t)(group * each) * sizeof *from);
    int64_t count = spread_groups(group, each, true, from);
    return ort_bytes_pick(l, *y, group * wide, from, count, like, y, err);
}

/* Its reader takes the value as it lies there. */
static ort_status convert_coming(ort_bytes_layout *l, ort_node *node, ort_error *err)
{
    const ort_id value = node->inputs[0], out = node->outputs[0];
    ort_id blocked;
    ort_graph_remove_node(l->edit.graph, node);
    ORT_TRY(ort_bytes_form(l, value, &blocked, err));
    ort_graph_replace_uses(l->edit.graph, out, blocked);
    return ORT_OK;
}

/* A Transpose that brings the channels of a convolution's plain input to the front, where the
 * convolution reads them side by side; or NULL. */
static ort_node *channels_before(const ort_bytes_layout *l, const ort_node *conv)
{
    const ort_graph *graph = l->edit.graph;
    ort_node *node = ort_edit_producer(graph, conv->inputs[0]);
    size_t count = 0;
    ort_perm perm;
    if (!l->lines || !ort_bytes_reads_plain(graph, l, conv) ||
        !ort_edit_is(node, ONNX, "Transpose") || !ort_perm_of_node(graph, node, &perm))
        return NULL;
    for (int d = 0; d < perm.rank; d++)
        if (perm.to[d] != (d == 0 ? 0 : d == 1 ? perm.rank - 1 : d - 1))
            return NULL;
    const int64_t *dilations = ort_node_ints(conv, "dilations", &count);
    return count && dilations[count - 1] != 1 ? NULL : node;
}

static void drop_unread(ort_graph *graph, ort_node *node)
{
    const ort_graph_value *v = node ? graph->values.data[node->outputs[0]] : NULL;
    if (v && !v->use_count && !v->is_output)
        ort_graph_remove_node(graph, node);
}

/* The convolution gives codes of the layout itself, its floats stay where they are made. */
static ort_status convert_coded(ort_bytes_layout *l, ort_node *quantize, ort_error *err)
{
    ort_graph *graph = l->edit.graph;
    const ort_id out = quantize->outputs[0], made = ort_layout_value(&l->edit, out);
    ort_bytes_coded c;
    ort_id inputs[10];
    if (made == ORT_ID_NONE)
        return ort_error_memory(err, sizeof made);
    const bool found = ort_bytes_read_coded(graph, quantize, &c);
    assert(found); /* its role says so */
    (void)found;
    for (int i = 0; i < 7; i++)
        inputs[i] = ort_edit_input(c.conv, i);
    inputs[7] = quantize->inputs[1];
    ORT_TRY(ort_quant_zero_input(graph, &c.out, &inputs[8], err));
    inputs[9] = c.slope;
    const ort_attr own[] = {ort_attr_int("act", c.act), ort_attr_float("act_a", (double)c.act_a),
                            ort_attr_float("act_b", (double)c.act_b)};
    ort_node like = *c.conv;
    if (c.function)
        like.origin = ort_edit_origin(graph, &like, c.function);
    like.origin = ort_edit_origin(graph, &like, quantize);
    ort_graph_remove_node(graph, quantize);
    if (c.function)
        ort_graph_remove_node(graph, c.function);
    ort_graph_remove_node(graph, c.conv);
    ORT_TRY(ort_layout_node(&l->edit, &like, "BytesConvThrough", inputs,
                            c.slope == ORT_ID_NONE ? 9 : 10, made, own, 3, err));
    l->edit.blocked_of[out] = made;
    return give_outside(l, out, err);
}

static ort_status convert(ort_bytes_layout *l, ort_node *node, ort_error *err)
{
    static const char *const names[] = {[ORT_BYTES_CONV] = "BytesConv",
                                        [ORT_BYTES_POOL] = "BytesMaxPool",
                                        [ORT_BYTES_AVERAGE] = "BytesAveragePool",
                                        [ORT_BYTES_MEAN] = "BytesMean",
                                        [ORT_BYTES_BEGUN] = NULL};
    ort_graph *graph = l->edit.graph;
    const ort_bytes_role r = l->role[node->id];
    if (r == ORT_BYTES_BEGUN)
        return ORT_OK;
    if (r == ORT_BYTES_COMES)
        return convert_coming(l, node, err);
    if (r == ORT_BYTES_CODED)
        return convert_coded(l, node, err);
    if (r == ORT_BYTES_MOVE)
        return convert_move(l, node, err);
    ort_id inputs[ORT_LAYOUT_INPUTS], out = node->outputs[0];
    ort_id made = ort_layout_value(&l->edit, out);
    if (made == ORT_ID_NONE)
        return ort_error_memory(err, sizeof made);
    ORT_TRY(convert_inputs(l, node, inputs, err));
    ort_node *before = r == ORT_BYTES_CONV ? channels_before(l, node) : NULL;
    const ort_attr last = ort_attr_int("last", before != NULL);
    if (before)
        inputs[0] = before->inputs[0];
    const ort_tensor *w = r == ORT_BYTES_CONV ? ort_edit_constant(graph, node, 3) : NULL;
    const bool splits = w && ort_bytes_splits(node, w);
    const int64_t group = w ? ort_node_attr_int(node, "group") : 1;
    if (splits)
        ORT_TRY(split_input(l, node, w, &inputs[0], err));
    if (w)
        order_conv(node, inputs);
    ort_graph_remove_node(graph, node);
    if (names[r])
        ORT_TRY(ort_layout_node(&l->edit, node, names[r], inputs,
                                w ? 9 : node->input_count, made, &last, before != NULL, err));
    else
        ORT_TRY(add_same(l, node, inputs, made, err));
    drop_unread(graph, before);
    if (splits && w->shape.dim[1] > 1)
        ORT_TRY(join_output(l, group, w->shape.dim[0] / group, out, &made, err));
    l->edit.blocked_of[out] = made;
    return give_outside(l, out, err);
}

/* Values whose form in the layout another pass has made. */
static void find_blocked(ort_bytes_layout *l)
{
    const ort_node *node;
    ORT_EACH_NODE(l->edit.graph, node)
        if (ort_edit_is(node, ORT_INTERNAL, "BlockBytes") && !l->role[node->id])
            l->edit.blocked_of[node->inputs[0]] = node->outputs[0];
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    size_t nodes = c->graph->nodes.count, values = c->graph->values.count;
    ort_arena scratch = {0};
    ort_bytes_layout l = {.space = &scratch};
    if (!c->target || c->portable)
        return ORT_OK;
    l.lines = c->target->bytes.wide > 1;
    ort_status status = ort_layout_begin(&l.edit, c->graph, ORT_BYTES_BLOCK, &scratch, err);
    l.role = ort_arena_array(&scratch, nodes + 1, sizeof *l.role);
    l.blocked = ort_arena_array(&scratch, values + 1, sizeof *l.blocked);
    l.uses = ort_arena_array(&scratch, values + 1, sizeof *l.uses);
    l.moved = ort_arena_array(&scratch, values + 1, sizeof *l.moved);
    memset(l.zero, 0xff, sizeof l.zero); /* ORT_ID_NONE */
    if (status != ORT_OK || !l.role || !l.blocked || !l.uses || !l.moved) {
        ort_arena_release(&scratch);
        return ort_error_memory(err, (nodes + values) * sizeof(ort_id));
    }
    ort_bytes_choose(c->graph, &l);
    find_blocked(&l);
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (status != ORT_OK || node->id >= nodes) /* made here */
            break;
        const char *why = c->near_misses && ort_bytes_is_conv(node)
                              ? ort_bytes_conv_stays(c->graph, &l, node) : NULL;
        if (why)
            ort_pass_note(c, node, "%s", why);
        if (!l.role[node->id])
            continue;
        status = convert(&l, node, err);
        ++*changes;
    }
    ort_arena_release(&scratch);
    return status;
}

const ort_pass ort_pass_bytes_layout = {
    .name = "bytes_layout",
    .level = 3,
    .doc = "regions of quantized convolutions run in a blocked layout of bytes (cpu only)",
    .apply = apply,
};
