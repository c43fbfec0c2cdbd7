/* quant_moves.c - between DequantizeLinear and QuantizeLinear, some operators can work on the codes
 * themselves.
 *
 *     DequantizeLinear, move, QuantizeLinear      the move alone, with the same parameters
 *     Relu or Clip, QuantizeLinear                the latter alone where it saturates there anyway;
 *                                                 else, behind a product of codes, its result is
 *                                                 quantized and bounded as codes (session)
 *     DequantizeLinear, ArgMax or ArgMin          the latter alone: codes have the same order
 *
 * All of this is exact (quant_pair.h), since a move only gives back elements that it was given. If
 * there are several DequantizeLinear (before a Concat) or QuantizeLinear (behind a Split), all must
 * have the same parameters.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "graph/uses.h"
#include "pass/facts/facts.h"
#include "pass/numbers/quant_pair.h"
#include "tensor/scalar.h"

/* ---- quant_pair.h */

bool ort_quant_read(const ort_graph *graph, ort_node *node, const char *op_type, ort_quant *q)
{
    if (!ort_edit_is(node, ONNX, op_type) || ort_node_attr_int(node, "block_size"))
        return false;
    bool quantizes = op_type[0] == 'Q';
    ort_id coded = quantizes ? node->outputs[0] : node->inputs[0];
    ort_id number = quantizes ? node->inputs[0] : node->outputs[0];
    int64_t precision = ort_node_attr_int(node, "precision");
    if (ort_fact_type(graph, number)->dtype != ORT_DTYPE_FLOAT ||
        (precision && precision != ORT_DTYPE_FLOAT))
        return false;
    *q = (ort_quant){.node = node, .scale = ort_edit_constant(graph, node, 1),
                     .zero = ort_edit_constant(graph, node, 2),
                     .dtype = ort_fact_type(graph, coded)->dtype,
                     .axis = ort_node_attr_int(node, "axis")};
    bool has_zero = ort_edit_input(node, 2) != ORT_ID_NONE;
    return q->scale && q->scale->data && q->scale->dtype == ORT_DTYPE_FLOAT &&
           ort_tensor_count(q->scale) > 0 && q->scale->shape.rank <= 1 &&
           (!has_zero || (q->zero && q->zero->data &&
                          ort_tensor_count(q->zero) == ort_tensor_count(q->scale)));
}

bool ort_quant_is_plain(const ort_quant *q)
{
    return ort_tensor_count(q->scale) == 1;
}

double ort_quant_scale(const ort_quant *q)
{
    double scale = 0;
    ort_tensor_one_f64(q->scale, &scale);
    return scale;
}

int64_t ort_quant_zero(const ort_quant *q)
{
    int64_t zero = 0;
    ort_tensor_one_i64(q->zero, &zero);
    return zero;
}

/* Can (q - z) s / s be told from no other code, without a step out of the normal numbers? */
static bool scales_are_exact(const ort_tensor *scale)
{
    for (int64_t i = 0; i < ort_tensor_count(scale); i++) {
        double s = ort_tensor_get_f64(scale, i);
        if (!(s >= (double)FLT_MIN && s <= (double)FLT_MAX * 0x1p-17))
            return false;
    }
    return true;
}

bool ort_quant_same(const ort_quant *a, const ort_quant *b)
{
    int64_t count = ort_tensor_count(a->scale);
    if (a->dtype != b->dtype || count != ort_tensor_count(b->scale) ||
        (count > 1 && a->axis != b->axis) || !scales_are_exact(a->scale))
        return false;
    for (int64_t i = 0; i < count; i++)
        if (ort_tensor_get_f64(a->scale, i) != ort_tensor_get_f64(b->scale, i) ||
            (a->zero ? ort_tensor_get_i64(a->zero, i) : 0) !=
                (b->zero ? ort_tensor_get_i64(b->zero, i) : 0))
            return false;
    return true;
}

ort_status ort_quant_zero_input(ort_graph *graph, const ort_quant *q, ort_id *id, ort_error *err)
{
    ort_tensor zero;
    *id = ort_edit_input(q->node, 2);
    if (*id != ORT_ID_NONE)
        return ORT_OK;
    ORT_TRY(ort_edit_new_constant(graph, "zero_point", q->dtype, &q->scale->shape, &zero, id, err));
    memset(zero.data, 0, ort_tensor_bytes(&zero));
    return ORT_OK;
}

void ort_quant_drop_unread(ort_graph *graph, ort_id id)
{
    ort_node *node = ort_edit_producer(graph, id);
    const ort_graph_value *value = graph->values.data[id];
    if (node && !value->is_output && value->use_count == 0)
        ort_graph_remove_node(graph, node);
}

/* ---- saturation */

/* Does every value up to `low` become the lowest code, and from `high` on the highest? */
static bool saturates(const ort_quant *q, double low, double high)
{
    int64_t first = q->dtype == ORT_DTYPE_INT8 ? -128 : 0;
    double s = ort_quant_scale(q), z = (double)ort_quant_zero(q);
    return low / s + z < (double)first + 0.5 && high / s + z > (double)first + 254.5;
}

/* The DequantizeLinear of the first factor of the product that computes this; NULL: there is none,
 * or others read the product, too. */
static ort_node *coded_factor(const ort_graph *graph, const ort_node *activation)
{
    ort_node *product = ort_edit_producer(graph, activation->inputs[0]);
    if (!ort_edit_is_any(product, "Conv|ConvTranspose|MatMul|Gemm|Add") ||
        ort_edit_only_reader(graph, product->outputs[0]) != activation)
        return NULL;
    ort_node *d = ort_edit_producer(graph, product->inputs[0]);
    return ort_edit_is(d, ONNX, "DequantizeLinear") ? d : NULL;
}

/* Bounds keep the order and the codes of what they let pass: of x they give the codes that they
 * give of the numbers of x's codes. */
static ort_status code_before(ort_pass_context *c, const ort_quant *q, ort_node *activation,
                              ort_node *d, ort_error *err)
{
    ort_graph *graph = c->graph;
    const char *name = graph->values.data[activation->inputs[0]]->name;
    ort_id codes = ort_graph_add_value(graph, name), number = ort_graph_add_value(graph, name);
    ort_id zero = ort_edit_input(q->node, 2);
    ort_id from[3] = {activation->inputs[0], q->node->inputs[1], zero};
    ort_id to[3] = {codes, q->node->inputs[1], zero};
    if (codes == ORT_ID_NONE || number == ORT_ID_NONE)
        return ort_error_memory(err, sizeof codes);
    ort_node_spec first = ort_edit_again(q->node), second = ort_edit_again(d);
    first.inputs = from;
    first.outputs = &codes;
    second.inputs = to;
    second.input_count = first.input_count;
    second.outputs = &number;
    ORT_TRY(ort_edit_add_node(graph, &first, NULL, err));
    ORT_TRY(ort_edit_add_node(graph, &second, NULL, err));
    ort_node_set_input(graph, activation, 0, number);
    return ORT_OK;
}

static ort_status drop_activation(ort_pass_context *c, ort_node *node, int *changes,
                                  ort_error *err)
{
    ort_quant q;
    ort_node *activation = ort_edit_producer(c->graph, node->inputs[0]), *d;
    bool relu = ort_edit_is(activation, ONNX, "Relu");
    double low = relu ? 0 : -INFINITY, high = INFINITY;
    if ((!relu && (!ort_edit_is(activation, ONNX, "Clip") ||
                   !ort_fact_bounds(c->graph, activation, &low, &high))) ||
        !ort_quant_read(c->graph, node, "QuantizeLinear", &q) || !ort_quant_is_byte(q.dtype) ||
        !ort_quant_is_plain(&q))
        return ORT_OK;
    if (saturates(&q, low, high)) {
        ort_node_set_input(c->graph, node, 0, activation->inputs[0]);
        ++*changes;
    } else if (!c->portable && ort_edit_only_reader(c->graph, node->inputs[0]) == node &&
               ort_quant_same(&q, &q) && (d = coded_factor(c->graph, activation))) {
        ORT_TRY(code_before(c, &q, activation, d, err));
        ++*changes;
    } else {
        ort_pass_note(c, activation, "it bounds values within the range of the codes");
    }
    return ORT_OK;
}

/* ---- what a file keeps */

/* What is still int8 here, codes that the graph takes or gives (quant_unsigned.c). Where
 * onnxruntime finds float operators between Q and DQ, it makes int8 activations uint8, for which
 * x86 has the instructions, and then makes integer operators itself; what is one already it runs
 * as it is. A resnet50 with QLinearConv on int8 takes it nine times as long (380 and 43 ms, one
 * thread), with MaxPool alone on the codes a tenth more. */
bool ort_quant_stays(const ort_pass_context *c, const ort_node *node, ort_dtype dtype)
{
    if (!c->portable || dtype != ORT_DTYPE_INT8)
        return false;
    ort_pass_note(c, node, "onnxruntime is faster when int8 activations stay between Q and DQ");
    return true;
}

/* ---- moves */

static const struct {
    const char *op_type;
    int since; /* takes 8-bit integers from here on */
    bool many; /* every input is moved, not the first alone */
} moves[] = {
    {"Reshape", 5, false},   {"Transpose", 1, false},    {"Flatten", 9, false},
    {"Squeeze", 1, false},   {"Unsqueeze", 1, false},    {"Slice", 1, false},
    {"Split", 2, false},     {"Gather", 1, false},       {"Expand", 8, false},
    {"Tile", 6, false},      {"DepthToSpace", 1, false}, {"SpaceToDepth", 1, false},
    {"MaxPool", 12, false},  {"Concat", 4, true},         {"GatherElements", 11, false},
    {"ReduceMax", 12, false}, {"ReduceMin", 12, false},   {"Resize", 11, false},
};

/* It picks elements; others it would compute, or put in. */
static bool is_nearest(const ort_node *resize)
{
    return ort_node_attr_is(resize, "mode", "nearest") &&
           !ort_node_attr_is(resize, "coordinate_transformation_mode", "tf_crop_and_resize");
}

int ort_quant_moved(const ort_node *node)
{
    for (size_t i = 0; node && i < sizeof moves / sizeof *moves; i++)
        if (ort_edit_is(node, ONNX, moves[i].op_type) && node->opset >= moves[i].since)
            return moves[i].many ? node->input_count
                                 : strcmp(node->op_type, "Resize") || is_nearest(node);
    return 0;
}

/* The QuantizeLinear that alone reads output k, with parameters d. */
static ort_node *coder_of(const ort_graph *graph, const ort_node *move, int k, const ort_quant *d)
{
    ort_quant q;
    ort_node *reader = ort_edit_only_reader(graph, move->outputs[k]);
    return reader && reader->inputs[0] == move->outputs[k] &&
                   ort_quant_read(graph, reader, "QuantizeLinear", &q) && ort_quant_same(&q, d)
               ? reader
               : NULL;
}

/* Codes of 16 bits in a session: few kernels of others move them. */
static bool takes(const ort_pass_context *c, const ort_node *move, ort_dtype dtype)
{
    return ort_quant_is_byte(dtype) ||
           (ort_quant_is_wide(dtype) && !c->portable &&
            !ort_edit_is_any(move, "MaxPool|ReduceMax|ReduceMin"));
}

static bool all_coded(const ort_pass_context *c, const ort_node *move, int inputs)
{
    const ort_graph *graph = c->graph;
    ort_quant first, other;
    for (int i = 0; i < inputs; i++)
        if (!ort_quant_read(graph, ort_edit_producer(graph, move->inputs[i]), "DequantizeLinear",
                            i ? &other : &first) ||
            (i && !ort_quant_same(&first, &other)))
            return false;
    for (int k = 0; k < move->output_count; k++)
        if (move->outputs[k] == ORT_ID_NONE || !coder_of(graph, move, k, &first))
            return false;
    return takes(c, move, first.dtype) && ort_quant_is_plain(&first) &&
           !ort_quant_stays(c, move, first.dtype);
}

/* The move takes the codes; its outputs become those of the QuantizeLinear after them. */
static ort_status move_codes(ort_pass_context *c, ort_node *move, int inputs, ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_arena *arena = &graph->model->arena;
    ort_id *in = ort_arena_array(arena, (size_t)move->input_count, sizeof *in);
    ort_id *out = ort_arena_array(arena, (size_t)move->output_count, sizeof *out);
    if (!in || !out)
        return ort_error_memory(err, sizeof *in);
    for (int i = 0; i < move->input_count; i++)
        in[i] = i < inputs ? ort_edit_producer(graph, move->inputs[i])->inputs[0]
                           : move->inputs[i];
    for (int k = 0; k < move->output_count; k++) {
        ort_node *coder = ort_edit_only_reader(graph, move->outputs[k]);
        out[k] = coder->outputs[0];
        ort_graph_remove_node(graph, coder);
    }
    ort_node_spec spec = ort_edit_again(move);
    spec.inputs = in;
    spec.outputs = out;
    ort_graph_remove_node(graph, move);
    return ort_edit_add_node(graph, &spec, NULL, err);
}

/* Positive scales keep the order, and no two codes become one number. */
static bool drop_before_arg(ort_pass_context *c, ort_node *node)
{
    ort_quant q;
    if (!ort_edit_is_any(node, "ArgMax|ArgMin") || node->opset < 13 ||
        !ort_quant_read(c->graph, ort_edit_producer(c->graph, node->inputs[0]),
                        "DequantizeLinear", &q) ||
        !ort_quant_is_byte(q.dtype))
        return false;
    if (!ort_quant_is_plain(&q) || !ort_quant_same(&q, &q)) {
        ort_pass_note(c, node, "the codes haven't one scale that is a normal number");
        return false;
    }
    if (ort_quant_stays(c, node, q.dtype))
        return false;
    ort_node_set_input(c->graph, node, 0, q.node->inputs[0]);
    return true;
}

/* ---- moves between an operator and its QuantizeLinear */

bool ort_quant_is_move(const ort_node *node)
{
    return ort_edit_is_any(node, "Reshape|Transpose|Flatten|Squeeze|Unsqueeze");
}

ort_node *ort_quant_source(const ort_graph *graph, const ort_node *node)
{
    while (ort_edit_only_reader(graph, node->inputs[0]) == node) {
        ort_node *before = ort_edit_producer(graph, node->inputs[0]);
        if (!ort_quant_is_move(before))
            return before;
        node = before;
    }
    return NULL;
}

ort_status ort_quant_swap(ort_pass_context *c, ort_node *quantize, ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_node *move = ort_edit_producer(graph, quantize->inputs[0]);
    ort_id codes = ort_graph_add_value(graph, graph->values.data[move->inputs[0]]->name);
    ort_id in[3] = {move->inputs[0], quantize->inputs[1], ort_edit_input(quantize, 2)};
    ort_id moved[2] = {codes, ort_edit_input(move, 1)};
    if (codes == ORT_ID_NONE)
        return ort_error_memory(err, sizeof codes);
    ort_node_spec first = ort_edit_again(quantize), second = ort_edit_again(move);
    first.inputs = in;
    first.outputs = &codes;
    second.inputs = moved;
    second.outputs = quantize->outputs;
    ort_graph_remove_node(graph, quantize);
    ort_graph_remove_node(graph, move);
    ORT_TRY(ort_edit_add_node(graph, &first, NULL, err));
    return ort_edit_add_node(graph, &second, NULL, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        int inputs = ort_quant_moved(node);
        if (inputs && all_coded(c, node, inputs)) {
            ORT_TRY(move_codes(c, node, inputs, err));
            ++*changes;
        } else if (drop_before_arg(c, node)) {
            ++*changes;
        } else if (ort_edit_is(node, ONNX, "QuantizeLinear")) {
            ORT_TRY(drop_activation(c, node, changes, err));
        }
    }
    return ORT_OK;
}

const ort_pass ort_pass_quant_moves = {
    .name = "quant_moves",
    .level = 2,
    .doc = "moves and bounds between DequantizeLinear and QuantizeLinear keep to the integers",
    .apply = apply,
};
