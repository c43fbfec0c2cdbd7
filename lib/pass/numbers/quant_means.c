/* quant_means.c - means and norms between DequantizeLinear and QuantizeLinear, for which only this
 * library has operators on codes.
 *
 *     DequantizeLinear, ReduceMean, QuantizeLinear             CodeMean, of neighbouring axes
 *     DequantizeLinear, GlobalAveragePool, QuantizeLinear      the same, of 16-bit codes
 *     DequantizeLinear, AveragePool, QuantizeLinear            CodeAveragePool, of 16-bit codes
 *     DequantizeLinear, LayerNormalization, QuantizeLinear     CodeLayerNorm
 *
 * Results may differ by one code, as those of quant_units.c: sums are exact here and rounded in
 * float there. Moves between the operator and the QuantizeLinear move the codes instead. Level 3:
 * these operators are never saved.
 */
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "op/eval.h"
#include "pass/facts/facts.h"
#include "pass/numbers/quant_pair.h"

/* Neighbouring axes, counted from the front; false: others, or not known. */
static bool read_axes(const ort_graph *graph, const ort_node *node, int rank, int64_t *first,
                      int64_t *count)
{
    int64_t axes[ORT_MAX_RANK];
    unsigned bits = 0;
    if (ort_edit_is(node, ONNX, "GlobalAveragePool")) {
        *first = 2;
        *count = rank - 2;
        return rank > 2;
    }
    int given = ort_fact_axes(graph, node, 1, rank, axes);
    for (int i = 0; i < given; i++)
        bits |= 1u << axes[i];
    if (!given && ort_edit_input(node, 1) == ORT_ID_NONE && !ort_node_has(node, "axes") &&
        !ort_node_attr_int(node, "noop_with_empty_axes"))
        bits = (1u << rank) - 1;
    if (!bits)
        return false;
    *first = __builtin_ctz(bits);
    *count = __builtin_popcount(bits);
    return bits >> *first == (1u << *count) - 1;
}

/* Of a DequantizeLinear of a constant, the numbers, so that runs needn't make them again. */
static ort_status know_numbers(ort_pass_context *c, ort_id id, ort_error *err)
{
    ort_node *node = ort_edit_producer(c->graph, id);
    ort_value *in[3] = {NULL}, *out = NULL;
    ort_fact facts[3];
    const ort_fact *given[3] = {NULL};
    ort_status status = ORT_OK;
    if (id == ORT_ID_NONE || !ort_edit_is(node, ONNX, "DequantizeLinear"))
        return ORT_OK;
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ORT_ID_NONE && !ort_edit_constant(c->graph, node, i))
            return ORT_OK;
    for (int i = 0; i < node->input_count && status == ORT_OK; i++) {
        if (node->inputs[i] == ORT_ID_NONE)
            continue;
        status = ort_value_for_kernel(ort_edit_constant(c->graph, node, i), &in[i], err);
        if (status == ORT_OK) {
            facts[i] = ort_fact_of_value(in[i]);
            given[i] = &facts[i];
        }
    }
    if (status == ORT_OK)
        status = ort_node_eval(node, given, c->k, NULL, in, node->input_count, &out, 1, err);
    if (status == ORT_OK)
        status = ort_edit_make_constant(c->graph, id, &out->tensor, err);
    for (int i = 0; i < 3; i++)
        ort_value_free(in[i]);
    ort_value_free(out);
    return status;
}

static ort_status make_mean(ort_pass_context *c, ort_node *node, const ort_quant *d,
                            const ort_quant *q, int64_t axis, int64_t count, ort_error *err)
{
    ort_id inputs[5] = {d->node->inputs[0], d->node->inputs[1], ort_edit_input(d->node, 2),
                        q->node->inputs[1], ort_edit_input(q->node, 2)};
    const int64_t keeps = ort_edit_is(node, ONNX, "ReduceMean")
                              ? ort_node_attr_int(node, "keepdims") : 1;
    ort_attr set[3] = {ort_attr_int("axis", axis), ort_attr_int("count", count),
                       ort_attr_int("keepdims", keeps)};
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = "CodeMean", .inputs = inputs,
                          .input_count = 5, .set = set, .set_count = 3};
    return ort_edit_replace(c->graph, node, q->node, &spec, err);
}

/* A window over up to three axes, of 16-bit codes whose sums int32 holds. */
static bool pools_windows(const ort_node *node)
{
    size_t count;
    const int64_t *kernel = ort_node_ints(node, "kernel_shape", &count);
    int64_t taps = 1;
    for (size_t i = 0; i < count; i++)
        if (!ort_mul_i64(taps, kernel[i], &taps))
            return false;
    return count <= 3 && taps <= 1 << 15 && !ort_node_has(node, "dilations");
}

static ort_status make_pool(ort_pass_context *c, ort_node *node, const ort_quant *d,
                            const ort_quant *q, ort_error *err)
{
    static const char *const shared[] = {"auto_pad", "ceil_mode", "count_include_pad",
                                         "kernel_shape", "pads", "strides"};
    enum { SHARED = sizeof shared / sizeof *shared };
    ort_id inputs[5] = {d->node->inputs[0], d->node->inputs[1], ort_edit_input(d->node, 2),
                        q->node->inputs[1], ort_edit_input(q->node, 2)};
    ort_attr set[SHARED];
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = "CodeAveragePool", .inputs = inputs,
                          .input_count = 5, .set = set};
    for (int i = 0; i < SHARED; i++) {
        const ort_attr *attr = ort_node_has(node, shared[i])
                                   ? ort_edit_attr(node, shared[i], &set[spec.set_count]) : NULL;
        if (attr)
            set[spec.set_count++] = *attr;
    }
    return ort_edit_replace(c->graph, node, q->node, &spec, err);
}

static ort_status make_norm(ort_pass_context *c, ort_node *node, const ort_quant *d,
                            const ort_quant *q, ort_error *err)
{
    ort_id beta = ort_edit_input(node, 2);
    ORT_TRY(know_numbers(c, node->inputs[1], err));
    ORT_TRY(know_numbers(c, beta, err));
    ort_id inputs[7] = {d->node->inputs[0], d->node->inputs[1], ort_edit_input(d->node, 2),
                        node->inputs[1], beta, q->node->inputs[1], ort_edit_input(q->node, 2)};
    ort_attr set[2] = {ort_attr_int("axis", ort_node_attr_int(node, "axis")),
                       ort_attr_float("epsilon", ort_node_attr_float(node, "epsilon"))};
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = "CodeLayerNorm", .inputs = inputs,
                          .input_count = 7, .set = set, .set_count = 2};
    return ort_edit_replace(c->graph, node, q->node, &spec, err);
}

/* Has it scale and bias of one row of the axis, the last one, in float? */
static bool norms_rows(const ort_graph *graph, const ort_node *node)
{
    const ort_type *x = ort_fact_tensor(graph, node->inputs[0]);
    if (!x || ort_fact_axis(node, x->rank) != x->rank - 1 || node->output_count != 1 ||
        !ort_dim_known(x->dim[x->rank - 1]) || x->dim[x->rank - 1].size > 1 << 20)
        return false;
    for (int i = 1; i < node->input_count; i++) {
        const ort_type *row = ort_fact_tensor(graph, node->inputs[i]);
        if (!row || row->dtype != ORT_DTYPE_FLOAT || row->rank != 1 ||
            !ort_dim_is(row->dim[0], x->dim[x->rank - 1].size))
            return false;
    }
    return true;
}

typedef enum kind { NOTHING, MEAN, WINDOWS, NORM } kind;

/* Pools of bytes are quant_units.c's. */
static kind kind_of(const ort_node *node, bool wide)
{
    if (ort_edit_is(node, ONNX, "ReduceMean"))
        return MEAN;
    if (!wide)
        return ort_edit_is(node, ONNX, "LayerNormalization") ? NORM : NOTHING;
    if (ort_edit_is(node, ONNX, "GlobalAveragePool"))
        return MEAN;
    return ort_edit_is(node, ONNX, "AveragePool") && pools_windows(node) ? WINDOWS : NOTHING;
}

static bool fits(const ort_graph *graph, const ort_node *node, kind what, const ort_quant *d,
                 const ort_quant *q, int64_t *axis, int64_t *count)
{
    const ort_type *x = ort_fact_tensor(graph, node->inputs[0]);
    if (what == NORM)
        return ort_quant_is_byte(d->dtype) && norms_rows(graph, node);
    return d->dtype == q->dtype &&
           (what == WINDOWS || (x && read_axes(graph, node, x->rank, axis, count)));
}

static ort_status try_at(ort_pass_context *c, ort_node *last, int *changes, ort_error *err)
{
    const ort_graph *graph = c->graph;
    ort_quant d, q;
    int64_t axis = 0, count = 0;
    ort_node *node = ort_quant_source(graph, last);
    if (!node || node->input_count < 1 || !ort_quant_read(graph, last, "QuantizeLinear", &q) ||
        !ort_quant_read(graph, ort_edit_producer(graph, node->inputs[0]), "DequantizeLinear", &d) ||
        !ort_quant_is_code(q.dtype) || !ort_quant_is_plain(&q) || !ort_quant_is_plain(&d))
        return ORT_OK;
    const kind what = kind_of(node, ort_quant_is_wide(q.dtype));
    if (what == NOTHING)
        return ORT_OK;
    if (!fits(graph, node, what, &d, &q, &axis, &count)) {
        ort_pass_note(c, node, "its axes aren't neighbours, or no axes of codes of one type");
        return ORT_OK;
    }
    ++*changes;
    if (node->outputs[0] != last->inputs[0])
        return ort_quant_swap(c, last, err);
    ort_id numbers = node->inputs[0];
    if (what == WINDOWS)
        ORT_TRY(make_pool(c, node, &d, &q, err));
    else if (what == MEAN)
        ORT_TRY(make_mean(c, node, &d, &q, axis, count, err));
    else
        ORT_TRY(make_norm(c, node, &d, &q, err));
    ort_quant_drop_unread(c->graph, numbers);
    return ORT_OK;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
        if (ort_edit_is(node, ONNX, "QuantizeLinear"))
            ORT_TRY(try_at(c, node, changes, err));
    return ORT_OK;
}

const ort_pass ort_pass_quant_means = {
    .name = "quant_means",
    .level = 3,
    .doc = "means and norms between DequantizeLinear and QuantizeLinear work on the codes",
    .apply = apply,
};
