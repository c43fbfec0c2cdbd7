/* bytes_layout.c - quantized convolutions, and what stands between them, run in the blocked layout
 * of bytes (op/blocked/bytes_op.h). As blocked_layout.c does for floats: conversions stand where a
 * region begins with many channels and where somebody outside reads its values. Bytes are
 * converted for a fraction of what a convolution takes, so each one that the layout serves goes
 * there. Level 3: nothing of this is saved.
 */
#include <string.h>

#include "base/error.h"
#include "op/blocked/bytes_op.h"
#include "op/edit.h"
#include "pass/facts/facts.h"
#include "provider/cpu/layout_edit.h"

enum { PLAIN_CHANNELS = 4 };

typedef enum role {
    NONE,
    CONV,
    POOL,   /* MaxPool */
    MEAN,   /* QLinearGlobalAveragePool */
    SAME,   /* elementwise: the same operator on blocked tensors */
    CONCAT, /* along whole blocks of channels */
} role;

typedef struct layout {
    ort_layout edit;
    role *role;       /* by node id */
    bool *blocked;    /* by value id: some node gives it in the layout */
    int *uses;        /* by value id: inputs that take it as it lies in the layout */
    ort_id zero[256]; /* zero points of uint8 made here; ORT_ID_NONE: none so far */
} layout;

static bool is_bytes(const ort_graph *graph, ort_id value)
{
    const ort_type *t = ort_fact_type(graph, value);
    return t->kind == ORT_TYPE_TENSOR && (t->rank == 3 || t->rank == 4) &&
           (t->dtype == ORT_DTYPE_UINT8 || t->dtype == ORT_DTYPE_INT8) && ort_dim_known(t->dim[1]);
}

/* ---- which nodes */

static bool is_conv(const ort_node *node)
{
    return ort_edit_is_any(node, "QLinearConv|ms.QLinearConv") &&
           !(ort_node_has(node, "channels_last") && ort_node_attr_int(node, "channels_last"));
}

/* One number where a convolution has one; scales and zero points of its weight may be lists. */
static bool constants_fit(const ort_graph *graph, const ort_node *node, const ort_tensor *w)
{
    for (int i = 1; i < 8; i++) {
        const ort_tensor *t = ort_edit_constant(graph, node, i);
        bool of_weight = i == 4 || i == 5;
        if (!t || (i != 3 && ort_tensor_count(t) != 1 &&
                   !(of_weight && ort_tensor_count(t) == w->shape.dim[0])))
            return false;
    }
    const ort_tensor *bias = ort_edit_constant(graph, node, 8);
    return ort_edit_input(node, 8) == ORT_ID_NONE ||
           (bias && ort_tensor_count(bias) == w->shape.dim[0]);
}

/* Why a convolution can't run in the layout; NULL: it can. */
static const char *conv_stays(const ort_graph *graph, const layout *l, const ort_node *node)
{
    const ort_tensor *w = ort_edit_constant(graph, node, 3);
    const ort_type *x = ort_fact_type(graph, node->inputs[0]);
    if (!is_bytes(graph, node->inputs[0]) || !is_bytes(graph, node->outputs[0]))
        return "it isn't over one or two axes with known channels";
    if (!w || w->shape.rank != x->rank || ort_tensor_count(w) == 0 ||
        !constants_fit(graph, node, w))
        return "its weight, a scale, a zero point or its bias isn't constant";
    if (!ort_bytes_serves(w, ort_edit_constant(graph, node, 5)))
        return "its weights without their zero points don't fit in int8";
    int64_t group = ort_node_attr_int(node, "group"), maps = w->shape.dim[0];
    int64_t channels = w->shape.dim[1];
    if (group < 1 || maps % group || x->dim[1].size != channels * group)
        return "its filters don't fit";
    if (group > 1 && (channels != 1 || maps != group) &&
        (channels % ORT_BYTES_BLOCK || maps / group % ORT_BYTES_BLOCK))
        return "its groups aren't of whole blocks of channels";
    if (!l->blocked[node->inputs[0]] && maps < ORT_BYTES_BLOCK / 2)
        return "its channels would fill less than half of their block";
    return NULL;
}

static bool reads_plain(const ort_graph *graph, const layout *l, const ort_node *conv)
{
    return !l->blocked[conv->inputs[0]] && ort_node_attr_int(conv, "group") == 1 &&
           ort_fact_type(graph, conv->inputs[0])->dim[1].size <= PLAIN_CHANNELS;
}

/* Slots that hold tensors of the layout: of a QLinearConcat the first of every three after the
 * output's scale and zero point. */
static bool is_data(role r, const ort_node *node, int slot)
{
    return r == CONCAT ? slot % 3 == 2
                       : slot == 0 || (r == SAME && slot == 3 && node->input_count == 8);
}

/* Zero points stand two behind the data; the output's last, or second. */
static bool is_zero(role r, const ort_node *node, int slot)
{
    if (r == CONCAT)
        return slot == 1 || (slot > 3 && slot % 3 == 1);
    return r == SAME && (slot % 3 == 2 || slot == node->input_count - 1);
}

/* Are all tensors of data in the layout, of one shape but for channels where they are put behind
 * each other, and all zero points there? */
static bool serves_all(const ort_graph *graph, const layout *l, const ort_node *node, role r)
{
    const ort_type *y = ort_fact_type(graph, node->outputs[0]);
    for (int i = 0; i < node->input_count; i++) {
        ort_id in = node->inputs[i];
        if (is_data(r, node, i)) {
            if (in == ORT_ID_NONE || !l->blocked[in])
                return false;
            const ort_type *t = ort_fact_type(graph, in);
            for (int d = 0; d < y->rank; d++)
                if (t->rank != y->rank ||
                    ((r != CONCAT || d != 1) && !ort_dim_equal(t->dim[d], y->dim[d])))
                    return false;
            if (r == CONCAT && i + 3 < node->input_count && t->dim[1].size % ORT_BYTES_BLOCK)
                return false;
        } else if (is_zero(r, node, i)) {
            const ort_tensor *zero = ort_edit_constant(graph, node, i);
            if (!zero || ort_tensor_count(zero) != 1)
                return false;
        }
    }
    return true;
}

static role role_of(const ort_graph *graph, const layout *l, const ort_node *node)
{
    if (!node->op || node->output_count < 1 || node->input_count < 1 ||
        node->input_count > ORT_LAYOUT_INPUTS ||
        node->inputs[0] == ORT_ID_NONE || node->outputs[0] == ORT_ID_NONE ||
        !is_bytes(graph, node->outputs[0]))
        return NONE;
    if (is_conv(node))
        return conv_stays(graph, l, node) ? NONE : CONV;
    bool blocked = l->blocked[node->inputs[0]];
    if (ort_edit_is(node, ONNX, "MaxPool"))
        return blocked && (node->output_count < 2 || node->outputs[1] == ORT_ID_NONE) ? POOL : NONE;
    if (ort_edit_is(node, MS, "QLinearGlobalAveragePool"))
        return blocked && !ort_node_attr_int(node, "channels_last") && node->input_count == 5 &&
                       ort_edit_constant(graph, node, 2) && ort_edit_constant(graph, node, 4)
                   ? MEAN : NONE;
    if (ort_edit_is_any(node, "ms.QLinearAdd|ms.QLinearMul") && node->input_count == 8)
        return serves_all(graph, l, node, SAME) ? SAME : NONE;
    if (ort_edit_is_any(node, "ms.QLinearSigmoid|ms.QLinearLeakyRelu") && node->input_count == 5)
        return serves_all(graph, l, node, SAME) ? SAME : NONE;
    if (ort_edit_is(node, MS, "QLinearConcat")) {
        int64_t axis = ort_node_attr_int(node, "axis");
        bool channels = axis == 1 || axis == 1 - ort_fact_type(graph, node->outputs[0])->rank;
        return channels && serves_all(graph, l, node, CONCAT) ? CONCAT : NONE;
    }
    return NONE;
}

static void choose(const ort_graph *graph, layout *l)
{
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        l->role[node->id] = role_of(graph, l, node);
        if (l->role[node->id])
            l->blocked[node->outputs[0]] = true;
    }
    ORT_EACH_NODE(graph, node)
        for (int i = 0; l->role[node->id] && i < node->input_count; i++)
            if (is_data(l->role[node->id], node, i) && l->blocked[node->inputs[i]])
                l->uses[node->inputs[i]]++;
}

/* ---- rewriting */

/* A zero point as the layout has it. */
static ort_status move_zero(layout *l, ort_id *zero, ort_error *err)
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
static ort_status convert_inputs(layout *l, const ort_node *node, ort_id *inputs, ort_error *err)
{
    role r = l->role[node->id];
    bool plain = r == CONV && reads_plain(l->edit.graph, l, node);
    for (int i = 0; i < node->input_count; i++) {
        inputs[i] = node->inputs[i];
        if (is_data(r, node, i) && !plain)
            ORT_TRY(ort_layout_input(&l->edit, node->inputs[i], "BlockBytes", &inputs[i], err));
        else if (is_zero(r, node, i))
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

static ort_status add_same(layout *l, const ort_node *node, const ort_id *inputs, ort_id output,
                           ort_error *err)
{
    ort_node_spec spec = ort_edit_again(node);
    ort_attr axis = ort_attr_int("axis", 1);
    spec.inputs = inputs;
    spec.input_count = node->input_count;
    spec.outputs = &output;
    spec.output_count = 1;
    spec.set = &axis;
    spec.set_count = l->role[node->id] == CONCAT;
    return ort_edit_add_node(l->edit.graph, &spec, NULL, err);
}

static ort_status convert(layout *l, ort_node *node, ort_error *err)
{
    static const char *const names[] = {[CONV] = "BytesConv", [POOL] = "BytesMaxPool",
                                        [MEAN] = "BytesMean"};
    ort_graph *graph = l->edit.graph;
    role r = l->role[node->id];
    ort_id inputs[ORT_LAYOUT_INPUTS], out = node->outputs[0];
    ort_id made = ort_layout_value(&l->edit, out);
    const ort_type *type = ort_fact_type(graph, out);
    bool is_signed = type->dtype == ORT_DTYPE_INT8;
    ort_attr channels = ort_attr_int("channels", type->dim[1].size);
    bool outside = graph->values.data[out]->use_count > l->uses[out] ||
                   graph->values.data[out]->is_output;
    if (made == ORT_ID_NONE)
        return ort_error_memory(err, sizeof made);
    ORT_TRY(convert_inputs(l, node, inputs, err));
    if (r == CONV)
        order_conv(node, inputs);
    ort_graph_remove_node(graph, node);
    if (r == SAME || r == CONCAT)
        ORT_TRY(add_same(l, node, inputs, made, err));
    else
        ORT_TRY(ort_layout_node(&l->edit, node, names[r], inputs, r == CONV ? 9 : node->input_count,
                                made, NULL, 0, err));
    l->edit.blocked_of[out] = made;
    return outside ? ort_layout_node(&l->edit, NULL, is_signed ? "UnblockSignedBytes"
                                                               : "UnblockBytes",
                                     &made, 1, out, &channels, 1, err)
                   : ORT_OK;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    size_t nodes = c->graph->nodes.count, values = c->graph->values.count;
    ort_arena scratch = {0};
    layout l = {0};
    if (!c->target || c->portable)
        return ORT_OK;
    ort_status status = ort_layout_begin(&l.edit, c->graph, ORT_BYTES_BLOCK, &scratch, err);
    l.role = ort_arena_array(&scratch, nodes + 1, sizeof *l.role);
    l.blocked = ort_arena_array(&scratch, values + 1, sizeof *l.blocked);
    l.uses = ort_arena_array(&scratch, values + 1, sizeof *l.uses);
    memset(l.zero, 0xff, sizeof l.zero); /* ORT_ID_NONE */
    if (status != ORT_OK || !l.role || !l.blocked || !l.uses) {
        ort_arena_release(&scratch);
        return ort_error_memory(err, (nodes + values) * sizeof(ort_id));
    }
    choose(c->graph, &l);
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (status != ORT_OK || node->id >= nodes) /* made here */
            break;
        const char *why = c->near_misses && is_conv(node) ? conv_stays(c->graph, &l, node) : NULL;
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
