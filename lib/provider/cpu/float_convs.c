/* float_convs.c - see float_convs.h. */
#include "provider/cpu/float_convs.h"

#include <string.h>

#include "op/blocked/bytes_op.h"
#include "op/edit.h"
#include "pass/facts/facts.h"
#include "tensor/scalar.h"

enum { PLAIN_CHANNELS = 4 };

bool ort_bytes_weights_fit(const ort_tensor *w, const ort_tensor *zero)
{
    const bool is_signed = w->dtype == ORT_DTYPE_INT8;
    bool lowest = !zero && !is_signed;
    for (int64_t i = 0; zero && i < ort_tensor_count(zero); i++)
        lowest = lowest || ort_tensor_get_i64(zero, i) == (is_signed ? -128 : 0);
    return !lowest || !w->data || !memchr(w->data, is_signed ? 127 : 255, ort_tensor_bytes(w));
}

const char *ort_float_conv_stays(const ort_node *conv, const ort_type *x, const ort_tensor *w,
                                 const ort_tensor *zero)
{
    if ((x->rank != 3 && x->rank != 4) || x->rank != w->shape.rank || !ort_dim_known(x->dim[1]) ||
        ort_tensor_count(w) == 0)
        return "it isn't over one or two axes with known channels";
    int64_t group = ort_node_attr_int(conv, "group"), maps = w->shape.dim[0];
    if (group < 1 || maps % group || x->dim[1].size != w->shape.dim[1] * group)
        return "its filters don't fit";
    if (group > 1 && (w->shape.dim[1] > 1 || maps > group) &&
        (w->shape.dim[1] % ORT_BYTES_BLOCK || maps / group % ORT_BYTES_BLOCK))
        return "its groups aren't of whole blocks of channels";
    if (zero && ort_tensor_count(zero) != 1 && ort_tensor_count(zero) != maps)
        return "its weight's zero points don't fit";
    if (!ort_bytes_weights_fit(w, zero))
        return "a weight is 255 more than its zero point";
    return NULL;
}

ort_node *ort_dequantizer_of(const ort_graph *graph, const ort_node *node, int slot)
{
    ort_id id = ort_edit_input(node, slot);
    ort_node *found = id == ORT_ID_NONE ? NULL : ort_edit_producer(graph, id);
    return found && ort_edit_is(found, ONNX, "DequantizeLinear") ? found : NULL;
}

bool ort_float_conv_knows_bias(const ort_graph *graph, const ort_node *conv)
{
    const ort_id bias = ort_edit_input(conv, 2);
    const ort_node *codes = ort_dequantizer_of(graph, conv, 2);
    return bias == ORT_ID_NONE || ort_fact_constant(graph, bias) ||
           (codes && ort_edit_constant(graph, codes, 0) && ort_edit_constant(graph, codes, 1));
}

ort_status ort_float_conv_bias(ort_graph *graph, const ort_node *conv, ort_id *id, ort_error *err)
{
    const ort_node *from = ort_dequantizer_of(graph, conv, 2);
    *id = ort_edit_input(conv, 2);
    if (!from)
        return ORT_OK;
    const ort_tensor *codes = ort_edit_constant(graph, from, 0);
    const ort_tensor *scale = ort_edit_constant(graph, from, 1);
    const ort_tensor *zero = ort_edit_constant(graph, from, 2);
    const int64_t n = ort_tensor_count(codes);
    ort_tensor made;
    ORT_TRY(ort_edit_new_constant(graph, "bias", ORT_DTYPE_FLOAT, &codes->shape, &made, id, err));
    for (int64_t i = 0; i < n; i++) {
        const float *s = scale->data;
        double z = zero ? ort_tensor_get_f64(zero, ort_tensor_count(zero) == n ? i : 0) : 0;
        ((float *)made.data)[i] = (float)((ort_tensor_get_f64(codes, i) - z) *
                                          (double)s[ort_tensor_count(scale) == n ? i : 0]);
    }
    return ORT_OK;
}

ort_status ort_float_conv_add(ort_layout *l, const ort_node *conv, const ort_float_conv *made,
                              ort_id out, ort_error *err)
{
    const ort_attr bounds[] = {ort_attr_float("low", made->low),
                               ort_attr_float("high", made->high)};
    ort_id inputs[8];
    memcpy(inputs, made->inputs, sizeof inputs);
    if (ort_node_attr_int(conv, "group") > 1 ||
        ort_fact_type(l->graph, inputs[0])->dim[1].size > PLAIN_CHANNELS)
        ORT_TRY(ort_layout_input(l, inputs[0], "BlockBytes", &inputs[0], err));
    return ort_layout_node(l, conv, "BytesConvFloat", inputs, 8, out, bounds, 2, err);
}

ort_status ort_float_convs_apply(ort_pass_context *c, const ort_float_convs *kind, void *found,
                                 int *changes, ort_error *err)
{
    const size_t nodes = c->graph->nodes.count;
    ort_arena scratch = {0};
    ort_layout l;
    if (!c->target || c->portable)
        return ORT_OK;
    ort_status status = ort_layout_begin(&l, c->graph, ORT_BYTES_BLOCK, &scratch, err);
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (status != ORT_OK || node->id >= nodes) /* made here */
            break;
        if (!kind->concerns(c->graph, node))
            continue;
        const char *why = kind->read(c->graph, node, found);
        if (why) {
            ort_pass_note(c, node, "%s", why);
            continue;
        }
        status = kind->replace(&l, found, err);
        ++*changes;
    }
    ort_arena_release(&scratch);
    return status;
}
