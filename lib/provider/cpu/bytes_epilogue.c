/* bytes_epilogue.c - a table (LookUp) and a sum (QLinearAdd) that alone read a convolution in the
 * layout of bytes become its end (op/blocked/bytes_after.h): what it has made is then in the cache,
 * and no other step passes over it. At most a table, a sum and a table, in this order. Level 3.
 */
#pragma GCC optimize("Os") /* runs once for a model */
#include "op/blocked/bytes_after.h"
#include "op/edit.h"
#include "pass/pass.h"

/* The reader's place at the end of the convolution, whose inputs it fills; false: it has none. */
static bool take_table(const ort_graph *graph, const ort_node *reader, ort_id *inputs)
{
    const ort_tensor *table = ort_edit_constant(graph, reader, 1);
    const int to = inputs[ORT_BYTES_OTHER_IN] == ORT_ID_NONE ? ORT_BYTES_TABLE_IN
                                                             : ORT_BYTES_LAST_TABLE_IN;
    if (!table || table->dtype != ORT_DTYPE_UINT8 || inputs[to] != ORT_ID_NONE)
        return false;
    inputs[to] = reader->inputs[1];
    return true;
}

static bool take_sum(const ort_graph *graph, const ort_node *conv, const ort_node *reader,
                     ort_id *inputs, bool *turned)
{
    const ort_id y = conv->outputs[0];
    *turned = reader->inputs[0] != y;
    const int own = *turned ? 3 : 0, other = 3 - own;
    if (inputs[ORT_BYTES_OTHER_IN] != ORT_ID_NONE || reader->inputs[other] == y ||
        !ort_facts_same_shape(ort_fact_type(graph, y), ort_fact_type(graph, reader->inputs[other])))
        return false;
    for (int i = 1; i < 8; i++)
        if (i != 3 && ort_edit_input(reader, i) != ORT_ID_NONE &&
            !ort_edit_constant(graph, reader, i))
            return false;
    inputs[ORT_BYTES_OTHER_IN] = reader->inputs[other];
    inputs[ORT_BYTES_SUM_SCALE_IN] = reader->inputs[own + 1];
    inputs[ORT_BYTES_SUM_ZERO_IN] = reader->inputs[own + 2];
    inputs[ORT_BYTES_OTHER_SCALE_IN] = reader->inputs[other + 1];
    inputs[ORT_BYTES_OTHER_ZERO_IN] = reader->inputs[other + 2];
    inputs[ORT_BYTES_Z_SCALE_IN] = reader->inputs[6];
    inputs[ORT_BYTES_Z_ZERO_IN] = ort_edit_input(reader, 7);
    return true;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (!ort_edit_is(node, ORT_INTERNAL, "BytesConv"))
            continue;
        ort_node *reader = ort_edit_only_reader(c->graph, node->outputs[0]);
        ort_id inputs[ORT_BYTES_CONV_INPUTS];
        bool turned = false;
        for (int i = 0; i < ORT_BYTES_CONV_INPUTS; i++)
            inputs[i] = ort_edit_input(node, i);
        const bool sum = ort_edit_is(reader, "com.microsoft", "QLinearAdd");
        if (!(sum ? take_sum(c->graph, node, reader, inputs, &turned)
                  : ort_edit_is(reader, ORT_INTERNAL, "LookUp") &&
                        take_table(c->graph, reader, inputs)))
            continue;
        const ort_attr set = ort_attr_int("turned", turned);
        ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = "BytesConv", .inputs = inputs,
                              .input_count = ORT_BYTES_CONV_INPUTS, .attrs = node->attrs,
                              .attr_count = node->attr_count, .set = &set, .set_count = sum};
        ORT_TRY(ort_edit_replace(c->graph, node, reader, &spec, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_bytes_epilogue = {
    .name = "bytes_epilogue",
    .level = 3,
    .doc = "tables and sums behind quantized convolutions end them (cpu only)",
    .apply = apply,
};
