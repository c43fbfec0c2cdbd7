/* quant_units.c - a float operator between DequantizeLinear and QuantizeLinear becomes an operator
 * on the codes.
 *
 *     Conv      QLinearConv          Add      QLinearAdd        AveragePool  QLinearAveragePool
 *     MatMul    QLinearMatMul        Mul      QLinearMul        GlobalAveragePool
 *     Gemm      QGemm                Sigmoid  QLinearSigmoid        QLinearGlobalAveragePool
 *     Softmax   QLinearSoftmax       Concat   QLinearConcat     LeakyRelu    QLinearLeakyRelu
 *     Sub       QLinearAdd with the second scale negated, in a session: others may not take that
 *     Where     QLinearWhere; Where itself with one scale for all. Of a constant branch the codes
 *               are those that the QuantizeLinear would give, -inf included.
 *
 * Without a QuantizeLinear a MatMul becomes MatMulIntegerToFloat, a Gemm a QGemm of float results,
 * or where its bias has no codes of the product's scale (NNCF's stays float) MatMulIntegerToFloat.
 * A Reshape or Transpose between operator and QuantizeLinear moves the codes instead.
 * QLinearConv and QLinearMatMul are ONNX's, the others of com.microsoft. Results may differ by one
 * code: sums are exact here and rounded in float there. A bias becomes int32 codes of scale x w;
 * those codes must be fine against the result's. Element types are those that onnxruntime's
 * operators take as well: one type for all activations (products in a session may change it),
 * weights of int8 where these are int8.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/numbers/quant_bias.h"
#include "pass/numbers/quant_pair.h"
#include "tensor/scalar.h"

enum { INPUTS_MAX = 128 };

typedef enum unit_kind {
    UNIT_CONV,
    UNIT_MATMUL,
    UNIT_GEMM,
    UNIT_OTHER,
    UNIT_CONCAT,
    UNIT_WHERE
} unit_kind;

typedef struct unit_row {
    const char *op_type, *domain, *quantized;
    unit_kind kind;
    int inputs; /* quantized ones; of a Concat all */
} unit_row;

static const unit_row rows[] = {
    {"Conv", ONNX, "QLinearConv", UNIT_CONV, 2},
    {"MatMul", ONNX, "QLinearMatMul", UNIT_MATMUL, 2},
    {"Gemm", MS, "QGemm", UNIT_GEMM, 2},
    {"Add", MS, "QLinearAdd", UNIT_OTHER, 2},
    {"Sub", MS, "QLinearAdd", UNIT_OTHER, 2},
    {"Mul", MS, "QLinearMul", UNIT_OTHER, 2},
    {"Sigmoid", MS, "QLinearSigmoid", UNIT_OTHER, 1},
    {"LeakyRelu", MS, "QLinearLeakyRelu", UNIT_OTHER, 1},
    {"Softmax", MS, "QLinearSoftmax", UNIT_OTHER, 1},
    {"AveragePool", MS, "QLinearAveragePool", UNIT_OTHER, 1},
    {"GlobalAveragePool", MS, "QLinearGlobalAveragePool", UNIT_OTHER, 1},
    {"Concat", MS, "QLinearConcat", UNIT_CONCAT, 0},
    {"Where", MS, "QLinearWhere", UNIT_WHERE, 2},
};

static const unit_row plain_where = {"Where", ONNX, "Where", UNIT_WHERE, 2};
static const unit_row to_float = {"MatMul", MS, "MatMulIntegerToFloat", UNIT_MATMUL, 2};

typedef struct unit {
    ort_pass_context *c;
    const unit_row *row;
    ort_node *node;
    ort_quant in[INPUTS_MAX], out; /* in: node NULL for a constant, which takes out's numbers */
    int in_count;
    ort_id inputs[3 * INPUTS_MAX + 2]; /* of the new node */
    int input_count;
} unit;

static const unit_row *row_of(const ort_node *node)
{
    for (size_t i = 0; node && i < sizeof rows / sizeof *rows; i++)
        if (ort_edit_is(node, ONNX, rows[i].op_type))
            return &rows[i];
    return NULL;
}

/* ---- what fits */

/* The axis of the weights that may have one scale per index; -1: none. */
static int64_t channel_axis(const unit *u, int rank)
{
    switch (u->row->kind) {
    case UNIT_CONV: return 0;
    case UNIT_MATMUL: return rank == 2 ? 1 : -1;
    case UNIT_GEMM: return ort_node_attr_int(u->node, "transB") ? 0 : 1;
    default: return -1;
    }
}

static const char *check_weights(const unit *u)
{
    const ort_quant *w = &u->in[1];
    int rank = ort_fact_type(u->c->graph, w->node->inputs[0])->rank;
    int axis = ort_axis_in(w->axis, rank);
    if (u->in[0].dtype == ORT_DTYPE_INT8 && w->dtype != ORT_DTYPE_INT8)
        return "activations of int8 need weights of int8";
    if (ort_quant_is_plain(w))
        return NULL;
    if (rank < 1 || axis != channel_axis(u, rank))
        return "the scales of the weights aren't one per channel";
    for (int64_t i = 1; w->zero && i < ort_tensor_count(w->zero); i++)
        if (ort_tensor_get_i64(w->zero, i) != ort_tensor_get_i64(w->zero, i - 1))
            return "zero points of the weights differ";
    return NULL;
}

static const char *check_attributes(const unit *u)
{
    const ort_node *n = u->node;
    if (u->row->kind == UNIT_GEMM &&
        (ort_node_attr_float(n, "alpha") != 1 || ort_node_attr_float(n, "beta") != 1))
        return "alpha or beta isn't 1";
    if (ort_edit_is(n, ONNX, "AveragePool") && ort_node_has(n, "dilations"))
        return "it has dilations";
    if (u->c->portable && ort_edit_is(n, ONNX, "Sub"))
        return "only QLinearAdd with a negative scale would be it";
    if (u->row->kind == UNIT_OTHER && u->row->inputs == 2 && n->opset < 7)
        return "it broadcasts by attribute";
    return NULL;
}

/* Input i of the operator among those that are quantized. */
static int slot_of(const unit *u, int i)
{
    return u->row->kind == UNIT_WHERE ? i + 1 : i;
}

/* A constant branch of a Where that has codes. */
static const ort_tensor *codable(const unit *u, int slot)
{
    const ort_tensor *t = u->row->kind == UNIT_WHERE
                              ? ort_edit_constant(u->c->graph, u->node, slot) : NULL;
    if (!t || !t->data || t->dtype != ORT_DTYPE_FLOAT)
        return NULL;
    for (int64_t i = 0; i < ort_tensor_count(t); i++)
        if (isnan(ort_tensor_get_f64(t, i)))
            return NULL;
    return t;
}

/* onnxruntime's products have one type for all activations; ours in a session need not. */
static bool fits_result(const unit *u, ort_dtype dtype)
{
    return dtype == u->out.dtype || (u->row->kind <= UNIT_GEMM && !u->c->portable);
}

static const char *read_inputs(unit *u)
{
    bool weighs = u->row->kind <= UNIT_GEMM;
    u->in_count = u->row->kind == UNIT_CONCAT ? u->node->input_count : u->row->inputs;
    if (u->in_count > INPUTS_MAX || u->in_count > u->node->input_count)
        return "it has too many inputs";
    for (int i = 0; i < u->in_count; i++) {
        ort_quant *q = &u->in[i];
        int slot = slot_of(u, i);
        if (codable(u, slot)) {
            *q = u->out;
            q->node = NULL;
            continue;
        }
        if (!ort_quant_read(u->c->graph, ort_edit_producer(u->c->graph, u->node->inputs[slot]),
                            "DequantizeLinear", q) ||
            !ort_quant_is_byte(q->dtype))
            return "an input isn't dequantized from 8 bits by constants";
        if ((i == 0 || !weighs) && (!ort_quant_is_plain(q) || !fits_result(u, q->dtype)))
            return "an input hasn't the result's type and one scale";
    }
    return weighs ? check_weights(u) : NULL;
}

/* A Where whose branches and result have one scale and zero point moves the codes. */
static void settle_where(unit *u)
{
    if (u->row->kind == UNIT_WHERE && ort_quant_same(&u->in[0], &u->out) &&
        ort_quant_same(&u->in[1], &u->out))
        u->row = &plain_where;
}

/* *why: the reason why not. The id stays ORT_ID_NONE without a bias. */
static ort_status bias_of(const unit *u, ort_id *id, const char **why, ort_error *err)
{
    const ort_node *n = u->node;
    *id = ORT_ID_NONE;
    if (ort_edit_input(n, 2) == ORT_ID_NONE ||
        (u->row->kind != UNIT_CONV && u->row->kind != UNIT_GEMM))
        return ORT_OK;
    const ort_type *out = ort_fact_type(u->c->graph, n->outputs[0]);
    ort_dim channels = ort_type_rank(out) > 1
                           ? out->dim[u->row->kind == UNIT_CONV ? 1 : out->rank - 1]
                           : ort_dim_of(-1);
    ort_quant_product product = {.x = &u->in[0], .w = &u->in[1], .out = &u->out,
                                 .channels = ort_dim_known(channels) ? channels.size : -1,
                                 .slot = 2};
    return ort_quant_bias(u->c->graph, n, &product, id, why, err);
}

/* ---- the new node */

/* A number as onnxruntime's QLinear operators of com.microsoft want it in a file: of no dimensions,
 * where PyTorch's exporter has one. */
static ort_status add_number(unit *u, ort_id id, ort_error *err)
{
    const ort_tensor *t = u->c->graph->values.data[id]->fact.value;
    ort_id *to = &u->inputs[u->input_count++];
    *to = id;
    if (!u->c->portable || !u->row->domain[0] || !t || !t->shape.rank || ort_tensor_count(t) != 1)
        return ORT_OK;
    ort_tensor one = *t;
    one.shape = ort_shape_make(0, NULL);
    return ort_edit_add_constant(u->c->graph, u->c->graph->values.data[id]->name, &one, to, err);
}

/* data (ORT_ID_NONE: none), scale, zero point */
static ort_status add_triple(unit *u, const ort_quant *q, ort_id data, ort_error *err)
{
    ort_id zero;
    ORT_TRY(ort_quant_zero_input(u->c->graph, q, &zero, err));
    if (data != ORT_ID_NONE)
        u->inputs[u->input_count++] = data;
    ORT_TRY(add_number(u, q->node->inputs[1], err));
    return add_number(u, zero, err);
}

/* The codes that QuantizeLinear would give for a constant. */
static ort_status code_constant(unit *u, int slot, ort_id *id, ort_error *err)
{
    const ort_tensor *t = codable(u, slot);
    double s = ort_quant_scale(&u->out), z = (double)ort_quant_zero(&u->out);
    double low = u->out.dtype == ORT_DTYPE_INT8 ? -128 : 0;
    ort_tensor codes;
    ORT_TRY(ort_edit_new_constant(u->c->graph, "", u->out.dtype, &t->shape, &codes, id, err));
    for (int64_t i = 0; i < ort_tensor_count(t); i++) {
        double code = rint((double)((float)ort_tensor_get_f64(t, i) / (float)s)) + z;
        ort_tensor_set_i64(&codes, i,
                           (int64_t)(code < low ? low : code > low + 255 ? low + 255 : code));
    }
    return ORT_OK;
}

static ort_status fill_where(unit *u, ort_error *err)
{
    u->inputs[u->input_count++] = u->node->inputs[0];
    for (int i = 0; i < 2; i++) {
        ort_id codes = ORT_ID_NONE;
        if (u->in[i].node)
            codes = u->in[i].node->inputs[0];
        else
            ORT_TRY(code_constant(u, i + 1, &codes, err));
        u->in[i].node = u->in[i].node ? u->in[i].node : u->out.node;
        if (u->row == &plain_where)
            u->inputs[u->input_count++] = codes;
        else
            ORT_TRY(add_triple(u, &u->in[i], codes, err));
    }
    return u->row == &plain_where ? ORT_OK : add_triple(u, &u->out, ORT_ID_NONE, err);
}

/* The codes of a Gemm's B that is transposed, as MatMul reads them. */
static ort_status turn_weights(unit *u, ort_id *id, ort_error *err)
{
    const ort_tensor *b = ort_edit_constant(u->c->graph, u->in[1].node, 0);
    const int64_t n = b->shape.dim[0], k = b->shape.dim[1];
    const ort_shape turned = {.rank = 2, .dim = {k, n}};
    ort_tensor codes;
    ORT_TRY(ort_edit_new_constant(u->c->graph, "turned", b->dtype, &turned, &codes, id, err));
    for (int64_t i = 0; i < n * k; i++)
        ((uint8_t *)codes.data)[i % k * n + i / k] = ((const uint8_t *)b->data)[i];
    return ORT_OK;
}

/* A, B, their scales, their zero points, and the bias of a Gemm */
static ort_status fill_to_float(unit *u, ort_id bias, ort_error *err)
{
    for (int i = 0; i < 2; i++) {
        u->inputs[i] = u->in[i].node->inputs[0];
        u->inputs[2 + i] = u->in[i].node->inputs[1];
        ORT_TRY(ort_quant_zero_input(u->c->graph, &u->in[i], &u->inputs[4 + i], err));
    }
    if (ort_edit_is(u->node, ONNX, "Gemm") && ort_node_attr_int(u->node, "transB"))
        ORT_TRY(turn_weights(u, &u->inputs[1], err));
    u->inputs[6] = bias;
    u->input_count = bias == ORT_ID_NONE ? 6 : 7;
    return ORT_OK;
}

/* May a Gemm of float results keep its bias of floats, as MatMulIntegerToFloat does? */
static bool keeps_bias(const unit *u)
{
    const ort_node *n = u->node;
    if (u->row->kind != UNIT_GEMM || u->out.node || ort_node_attr_int(n, "transA"))
        return false;
    const bool turned = ort_node_attr_int(n, "transB") != 0;
    const ort_tensor *b = ort_edit_constant(u->c->graph, u->in[1].node, 0);
    const ort_tensor *bias = ort_edit_constant(u->c->graph, n, 2);
    return b && b->data && b->shape.rank == 2 && bias && bias->data &&
           bias->dtype == ORT_DTYPE_FLOAT && ort_tensor_is_row(bias, b->shape.dim[turned ? 0 : 1]);
}

/* a - b as a + b with the scale of b below zero: the operator only multiplies with it. */
static ort_status negate_scale(unit *u, ort_error *err)
{
    ort_tensor scale;
    ORT_TRY(ort_edit_new_constant(u->c->graph, "", ORT_DTYPE_FLOAT, &u->in[1].scale->shape, &scale,
                                  &u->inputs[4], err));
    ort_tensor_set_f64(&scale, 0, -ort_quant_scale(&u->in[1]));
    return ORT_OK;
}

static ort_status fill_inputs(unit *u, ort_id bias, ort_error *err)
{
    unit_kind kind = u->row->kind;
    if (kind == UNIT_WHERE)
        return fill_where(u, err);
    if (u->row == &to_float)
        return fill_to_float(u, bias, err);
    if (kind == UNIT_CONCAT)
        ORT_TRY(add_triple(u, &u->out, ORT_ID_NONE, err));
    for (int i = 0; i < u->in_count; i++)
        ORT_TRY(add_triple(u, &u->in[i], u->in[i].node->inputs[0], err));
    if (ort_edit_is(u->node, ONNX, "Sub"))
        ORT_TRY(negate_scale(u, err));
    if (kind == UNIT_GEMM)
        u->inputs[u->input_count++] = bias;
    if (kind != UNIT_CONCAT && u->out.node)
        ORT_TRY(add_triple(u, &u->out, ORT_ID_NONE, err));
    if (kind == UNIT_CONV && bias != ORT_ID_NONE)
        u->inputs[u->input_count++] = bias;
    return ORT_OK;
}

/* Attributes are the float operator's, but for these. */
static void set_attributes(const unit *u, ort_node_spec *spec, ort_attr set[2])
{
    bool gemm = u->row->kind == UNIT_GEMM, softmax = ort_edit_is(u->node, ONNX, "Softmax");
    spec->attrs = u->node->attrs;
    spec->attr_count = u->row == &to_float ? 0 : u->node->attr_count;
    if (gemm) { /* beta, which QGemm hasn't, is 1 */
        set[0] = ort_attr_int("transA", ort_node_attr_int(u->node, "transA"));
        set[1] = ort_attr_int("transB", ort_node_attr_int(u->node, "transB"));
        spec->attr_count = 0;
    } else if (softmax) {
        set[0] = ort_attr_int("opset", u->node->opset);
        set[1] = ort_attr_int("axis", ort_node_attr_int(u->node, "axis"));
    }
    spec->set = set;
    spec->set_count = gemm || softmax ? 2 : 0;
}

static ort_status fuse(unit *u, ort_id bias, ort_error *err)
{
    ort_attr set[2];
    ORT_TRY(fill_inputs(u, bias, err));
    ort_node_spec spec = {.domain = u->row->domain, .op_type = u->row->quantized,
                          .inputs = u->inputs, .input_count = u->input_count};
    set_attributes(u, &spec, set);
    return ort_edit_replace(u->c->graph, u->node, u->out.node, &spec, err);
}

/* *why: the reason why not. The row becomes that of an operator that takes the bias. */
static ort_status find_bias(unit *u, ort_id *bias, const char **why, ort_error *err)
{
    ORT_TRY(bias_of(u, bias, why, err));
    if (*why && keeps_bias(u) &&
        ort_pass_opset(u->c, u->node, to_float.domain, to_float.quantized, 1)) {
        u->row = &to_float;
        *bias = u->node->inputs[2];
        *why = NULL;
    }
    return ORT_OK;
}

static ort_status try_unit(unit *u, int *changes, ort_error *err)
{
    ort_id bias = ORT_ID_NONE;
    const char *why = check_attributes(u);
    if (ort_quant_stays(u->c, u->node, u->out.dtype))
        return ORT_OK;
    if (!why)
        why = read_inputs(u);
    if (!why)
        settle_where(u);
    int since = u->row->domain[0] ? 1 : u->row == &plain_where ? 9 : 10;
    if (!why && !ort_pass_opset(u->c, u->node, u->row->domain, u->row->quantized, since))
        return ORT_OK;
    if (!why && u->out.node &&
        ort_quant_is_move(ort_edit_producer(u->c->graph, u->out.node->inputs[0]))) {
        ++*changes; /* the operator itself comes when the codes are next to it */
        return ort_quant_swap(u->c, u->out.node, err);
    }
    if (!why)
        ORT_TRY(find_bias(u, &bias, &why, err));
    if (why) {
        ort_pass_note(u->c, u->node, "%s", why);
        return ORT_OK;
    }
    ++*changes;
    return fuse(u, bias, err);
}

/* The unit that ends at this node. */
static bool find_unit(ort_pass_context *c, ort_node *node, unit *u)
{
    u->c = c;
    u->input_count = 0;
    u->node = ort_quant_source(c->graph, node);
    u->row = row_of(u->node);
    return u->row && u->node->output_count == 1 &&
           ort_quant_read(c->graph, node, "QuantizeLinear", &u->out) &&
           ort_quant_is_byte(u->out.dtype) && ort_quant_is_plain(&u->out);
}

/* Does a QuantizeLinear read what this computes, moves alone in between? Relu and Clip go first. */
static bool is_coded_later(const ort_graph *graph, const ort_node *node)
{
    do
        node = ort_edit_only_reader(graph, node->outputs[0]);
    while (ort_quant_is_move(node) || ort_edit_is_any(node, "Relu|Clip"));
    return ort_edit_is(node, ONNX, "QuantizeLinear");
}

/* A product of codes whose result stays float. */
static bool find_product(ort_pass_context *c, ort_node *node, unit *u)
{
    if (!ort_edit_is_any(node, "MatMul|Gemm"))
        return false;
    const ort_node *codes = ort_edit_producer(c->graph, node->inputs[0]);
    if (!ort_edit_is(codes, ONNX, "DequantizeLinear") ||
        !ort_edit_is(ort_edit_producer(c->graph, node->inputs[1]), ONNX, "DequantizeLinear") ||
        is_coded_later(c->graph, node))
        return false;
    u->c = c;
    u->input_count = 0;
    u->node = node;
    u->row = ort_edit_is(node, ONNX, "MatMul") ? &to_float : row_of(node);
    u->out = (ort_quant){.dtype = ort_fact_type(c->graph, codes->inputs[0])->dtype};
    return ort_quant_is_byte(u->out.dtype);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ort_status status = ORT_OK;
    unit *u = NULL; /* large: made when there is something to look at */
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        bool coded = ort_edit_is(node, ONNX, "QuantizeLinear");
        if (!coded && !ort_edit_is_any(node, "MatMul|Gemm"))
            continue;
        if (!u && !(u = calloc(1, sizeof *u)))
            return ort_error_memory(err, sizeof *u);
        if (!(coded ? find_unit(c, node, u) : find_product(c, node, u)))
            continue;
        if ((status = try_unit(u, changes, err)))
            break;
    }
    free(u);
    return status;
}

const ort_pass ort_pass_quant_units = {
    .name = "quant_units",
    .level = 2,
    .doc = "operators between DequantizeLinear and QuantizeLinear work on the codes",
    .apply = apply,
};
