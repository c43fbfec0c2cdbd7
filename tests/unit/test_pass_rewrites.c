/* test_pass_rewrites.c - rewrites of a portable file: where they apply, where they must not, and
 * that a second run finds nothing. */
#include <math.h>

#include "graph/follow.h"
#include "op/edit.h"
#include "rewrite.h"
#include "test.h"

/* ---- quantized units */

/* A scale "s<name>" and zero point "z<name>" of uint8. */
static void parameters(net *n, const char *name, float scale, uint8_t zero)
{
    char label[32];
    snprintf(label, sizeof label, "s%s", name);
    net_constant(n, label, ORT_DTYPE_FLOAT, 0, NULL, &scale);
    snprintf(label, sizeof label, "z%s", name);
    net_constant(n, label, ORT_DTYPE_UINT8, 0, NULL, &zero);
}

typedef struct quant_case {
    const char *activation; /* after the Conv */
    float pool_scale;       /* of the QuantizeLinear after the MaxPool */
    bool float_bias, reader; /* the Conv's result has another reader */
    int convs, relus, pools_of_codes;
} quant_case;

/* x -> codes -> Conv -> activation -> codes -> MaxPool -> codes -> y */
static void build_quantized(net *n, const quant_case *q)
{
    int8_t weights[4 * 8];
    int32_t codes[4] = {100, -200, 0, 77};
    float ws[4] = {0.01f, 0.02f, 0.015f, 0.005f}, bs[4], bias[4] = {0.1f, -0.3f, 0.02f, 0};
    for (int i = 0; i < 32; i++)
        weights[i] = (int8_t)(i * 37 % 200 - 100);
    for (int i = 0; i < 4; i++)
        bs[i] = 0.02f * ws[i];
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 8, 4, 4));
    parameters(n, "x", 0.02f, 120);
    parameters(n, "c", 0.05f, 0);
    parameters(n, "p", q->pool_scale, 0);
    net_constant(n, "w", ORT_DTYPE_INT8, 4, DIMS(4, 8, 1, 1), weights);
    net_constant(n, "ws", ORT_DTYPE_FLOAT, 1, DIMS(4), ws);
    net_node(n, "QuantizeLinear", "x sx zx", "xq");
    net_node(n, "DequantizeLinear", "xq sx zx", "xd");
    net_int(n, net_node(n, "DequantizeLinear", "w ws", "wd"), "axis", 0);
    net_constant(n, "b", q->float_bias ? ORT_DTYPE_FLOAT : ORT_DTYPE_INT32, 1, DIMS(4),
                 q->float_bias ? (void *)bias : (void *)codes);
    net_constant(n, "bs", ORT_DTYPE_FLOAT, 1, DIMS(4), bs);
    if (!q->float_bias)
        net_int(n, net_node(n, "DequantizeLinear", "b bs", "bd"), "axis", 0);
    net_node(n, "Conv", q->float_bias ? "xd wd b" : "xd wd bd", "c");
    net_node(n, q->activation, "c", "a");
    net_node(n, "QuantizeLinear", "a sc zc", "cq");
    net_node(n, "DequantizeLinear", "cq sc zc", "cd");
    ort_attr kernel = {.name = "kernel_shape", .type = ORT_ATTR_INTS, .ints = DIMS(2, 2),
                       .count = 2};
    (void)!ort_node_set_attr(n->graph, net_node(n, "MaxPool", "cd", "m"), &kernel, NULL);
    net_node(n, "QuantizeLinear", "m sp zp", "mq");
    net_node(n, "DequantizeLinear", "mq sp zp", "y");
    net_output(n, "y");
    if (q->reader)
        net_output(n, "c");
}

static void quantized(test_state *test)
{
    const quant_case cases[] = {
        {"Relu", 0.05f, false, false, 0, 0, 1}, {"Relu", 0.05f, true, false, 0, 0, 1},
        {"Relu", 0.07f, false, false, 0, 0, 0}, {"Relu", 0.05f, false, true, 1, 0, 1},
        {"Tanh", 0.05f, false, false, 1, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        net n;
        CHECK(net_init(&n, NULL));
        build_quantized(&n, &cases[i]);
        CHECK(holds(&n, false, net_floats(4, DIMS(1, 8, 4, 4), -2, 0.03f), 0.0501));
        CHECK(count_ops(&n, "Conv") == cases[i].convs && count_ops(&n, "Relu") == 0);
        CHECK(count_ops(&n, "QLinearConv") == 1 - cases[i].convs);
        const ort_node *pool = node_of(&n, "MaxPool");
        CHECK((n.model->graph->values.data[pool->inputs[0]]->fact.type.dtype ==
               ORT_DTYPE_UINT8) == cases[i].pools_of_codes);
        net_free(&n);
    }
}

/* Q(x) * Q(x) and its like: of com.microsoft, so only where it is allowed. */
static void quantized_contrib(test_state *test)
{
    const char *const operators[][2] = {{"Add", "QLinearAdd"},
                                        {"Mul", "QLinearMul"},
                                        {"Sigmoid", "QLinearSigmoid"},
                                        {"LeakyRelu", "QLinearLeakyRelu"},
                                        {"Softmax", "QLinearSoftmax"},
                                        {"GlobalAveragePool", "QLinearGlobalAveragePool"},
                                        {"Concat", "QLinearConcat"}};
    for (int i = 0; i < 14; i++) {
        net n;
        const char *op_type = operators[i / 2][0];
        CHECK(net_init(&n, NULL));
        net_input(&n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 2, 4, 4));
        parameters(&n, "x", 0.02f, 120);
        parameters(&n, "y", 0.06f, 60);
        net_node(&n, "QuantizeLinear", "x sx zx", "xq");
        net_node(&n, "DequantizeLinear", "xq sx zx", "xd");
        ort_node *node = net_node(&n, op_type, i / 2 < 2 || i / 2 == 6 ? "xd xd" : "xd", "f");
        if (i / 2 == 6)
            net_int(&n, node, "axis", 1);
        net_node(&n, "QuantizeLinear", "f sy zy", "yq");
        net_node(&n, "DequantizeLinear", "yq sy zy", "y");
        net_output(&n, "y");
        CHECK(holds(&n, i % 2, net_floats(4, DIMS(1, 2, 4, 4), -2, 0.13f), 0.0601));
        CHECK(count_ops(&n, operators[i / 2][1]) == i % 2 && count_ops(&n, op_type) == 1 - i % 2);
        net_free(&n);
    }
}

typedef struct pair_case {
    float scale[2][2];
    uint8_t zero[2][2];
    int axis[2], channels; /* 1: one scale for all */
    bool between;          /* another reader of the numbers between the pairs */
    int nodes;
} pair_case;

/* One number, or one per channel. */
static void pair_parameters(net *n, const char *name, const pair_case *p, int which)
{
    char label[32];
    int rank = p->channels > 1;
    snprintf(label, sizeof label, "s%s", name);
    net_constant(n, label, ORT_DTYPE_FLOAT, rank, DIMS(p->channels), p->scale[which]);
    snprintf(label, sizeof label, "z%s", name);
    net_constant(n, label, ORT_DTYPE_UINT8, rank, DIMS(p->channels), p->zero[which]);
}

/* Codes made floats and the same codes again, which elimination alone undoes. */
static void codes_undone(test_state *test)
{
    static const char *const only[] = {"quant_pairs", "dead_nodes", NULL};
    static const pair_case cases[] = {
        {{{0.02f}, {0.02f}}, {{120}, {120}}, {1, 1}, 1, false, 2},
        {{{0.02f}, {0.02f}}, {{120}, {120}}, {0, 1}, 1, false, 2}, /* of no meaning */
        {{{0.02f}, {0.02f}}, {{120}, {120}}, {1, 1}, 1, true, 4},
        {{{0.02f, 0.3f}, {0.02f, 0.3f}}, {{120, 3}, {120, 3}}, {1, 1}, 2, false, 2},
        /* another scale, zero point, axis; a scale that loses bits */
        {{{0.02f}, {0.025f}}, {{120}, {120}}, {1, 1}, 1, false, 4},
        {{{0.02f}, {0.02f}}, {{120}, {121}}, {1, 1}, 1, false, 4},
        {{{0.02f, 0.3f}, {0.02f, 0.31f}}, {{120, 3}, {120, 3}}, {1, 1}, 2, false, 4},
        {{{0.02f, 0.3f}, {0.02f, 0.3f}}, {{120, 3}, {120, 3}}, {1, 0}, 2, false, 4},
        {{{1e-44f}, {1e-44f}}, {{120}, {120}}, {1, 1}, 1, false, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pair_case *p = &cases[i];
        net n;
        CHECK(net_init(&n, NULL));
        net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(2, 2));
        pair_parameters(&n, "x", p, 0);
        pair_parameters(&n, "y", p, 1);
        net_int(&n, net_node(&n, "QuantizeLinear", "x sx zx", "xq"), "axis", p->axis[0]);
        net_int(&n, net_node(&n, "DequantizeLinear", "xq sx zx", "xd"), "axis", p->axis[0]);
        net_int(&n, net_node(&n, "QuantizeLinear", "xd sy zy", "yq"), "axis", p->axis[1]);
        net_int(&n, net_node(&n, "DequantizeLinear", "yq sy zy", "y"), "axis", p->axis[1]);
        net_output(&n, "y");
        if (p->between) {
            net_node(&n, "Relu", "xd", "z");
            net_output(&n, "z");
        }
        CHECK(*net_rewritten(&n, only, 0, 0));
        CHECK(count_ops(&n, NULL) == p->nodes);
        net_free(&n);
    }
}

/* Codes that are a result of the graph keep their name. */
static void codes_returned(test_state *test)
{
    net n;
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_UINT8, 1, DIMS(40));
    parameters(&n, "x", 0.02f, 120);
    net_node(&n, "DequantizeLinear", "x sx zx", "xd");
    net_node(&n, "QuantizeLinear", "xd sx zx", "y");
    net_output(&n, "y");
    CHECK_TEXT(net_rewritten(&n, NULL, 0, 0), "DequantizeLinear QuantizeLinear");
    net_free(&n);
}

/* A scale and a zero point of int8. */
static void signed_parameters(net *n, const char *name, float scale, int8_t zero)
{
    char label[32];
    snprintf(label, sizeof label, "s%s", name);
    net_constant(n, label, ORT_DTYPE_FLOAT, 0, NULL, &scale);
    snprintf(label, sizeof label, "z%s", name);
    net_constant(n, label, ORT_DTYPE_INT8, 0, NULL, &zero);
}

/* int8 between Q and DQ becomes uint8, with the same bits behind it, also where readers dequantize
 * by other numbers; codes that somebody else reads stay. */
static void unsigned_codes(test_state *test)
{
    static const char *const only[] = {"quant_unsigned", "dead_nodes", NULL};
    static const char *const readers[] = {"", "the graph", "Cast"};
    for (int i = 0; i < 3; i++) {
        net n;
        CHECK(net_init(&n, NULL));
        net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(3, 50));
        signed_parameters(&n, "a", 0.02f, -7);
        signed_parameters(&n, "b", 0.03f, 127);
        net_node(&n, "QuantizeLinear", "x sa za", "q");
        net_node(&n, "DequantizeLinear", "q sa za", "d");
        net_node(&n, "DequantizeLinear", "q sb zb", "e");
        net_node(&n, "DequantizeLinear", "q sb", "f");
        net_node(&n, "Sum", "d e f", "y");
        net_output(&n, "y");
        if (i == 1)
            net_output(&n, "q");
        if (i == 2) {
            net_int(&n, net_node(&n, "Cast", "q", "z"), "to", ORT_DTYPE_FLOAT);
            net_output(&n, "z");
        }
        CHECK(*net_rewritten(&n, only, 0, 0));
        const ort_node *q = node_of(&n, "QuantizeLinear");
        ort_dtype dtype = n.model->graph->values.data[q->outputs[0]]->fact.type.dtype;
        bool same = dtype == (*readers[i] ? ORT_DTYPE_INT8 : ORT_DTYPE_UINT8);
        CHECK_TEXT(same ? "" : readers[i], "");
        net_free(&n);
    }
}

/* So that a unit of int8 is one of the operators that a file may hold. */
static void signed_units(test_state *test)
{
    int8_t weights[4 * 8];
    float scale = 0.01f;
    net n;
    for (int i = 0; i < 32; i++)
        weights[i] = (int8_t)(i * 37 % 200 - 100);
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 8, 4, 4));
    signed_parameters(&n, "x", 0.02f, -8);
    signed_parameters(&n, "y", 0.05f, -128);
    net_constant(&n, "w", ORT_DTYPE_INT8, 4, DIMS(4, 8, 1, 1), weights);
    net_constant(&n, "ws", ORT_DTYPE_FLOAT, 0, NULL, &scale);
    net_node(&n, "QuantizeLinear", "x sx zx", "xq");
    net_node(&n, "DequantizeLinear", "xq sx zx", "xd");
    net_node(&n, "DequantizeLinear", "w ws", "wd");
    net_node(&n, "Conv", "xd wd", "c");
    net_node(&n, "Relu", "c", "r");
    net_node(&n, "QuantizeLinear", "r sy zy", "yq");
    net_node(&n, "DequantizeLinear", "yq sy zy", "y");
    net_output(&n, "y");
    CHECK(holds(&n, false, net_floats(4, DIMS(1, 8, 4, 4), -2, 0.03f), 0.0501));
    CHECK(count_ops(&n, "QLinearConv") == 1 && count_ops(&n, NULL) == 3);
    net_free(&n);
}

/* ---- products */

/* y = op(x) w + b; kind 0: MatMul and Add, 1: Transpose and Gemm, 2: what is added is larger */
static void products(test_state *test)
{
    for (int kind = 0; kind < 4; kind++) {
        net n;
        float w[12], b[12];
        CHECK(net_init(&n, NULL));
        for (int i = 0; i < 12; i++) {
            w[i] = (float)(i % 5) - 2;
            b[i] = (float)i;
        }
        net_input(&n, "x", ORT_DTYPE_FLOAT, 2, kind == 1 ? DIMS(4, 1) : DIMS(1, 4));
        net_constant(&n, "w", ORT_DTYPE_FLOAT, 2, DIMS(4, 3), w);
        net_constant(&n, "b", ORT_DTYPE_FLOAT, 2, kind == 2 ? DIMS(4, 3) : DIMS(1, 3), b);
        if (kind == 1)
            net_node(&n, "Transpose", "x", "t");
        net_node(&n, "MatMul", kind == 1 ? "t w" : "x w", "m");
        net_node(&n, kind == 3 ? "Sub" : "Add", kind == 3 ? "m b" : "b m", "y");
        net_output(&n, "y");
        CHECK(holds(&n, false, net_floats(2, kind == 1 ? DIMS(4, 1) : DIMS(1, 4), 1, 0.5f), 1e-6));
        CHECK(count_ops(&n, "Gemm") == (kind != 2) && count_ops(&n, "Transpose") == 0);
        CHECK(count_ops(&n, NULL) == (kind == 2 ? 2 : 1));
        net_free(&n);
    }
}

/* ---- dynamic quantization; bit 0: a bias, 1: codes have another reader, 2: not allowed */
static void build_dynamic(net *n, int bits)
{
    int8_t weights[12], zeros[3] = {0, 0, 0};
    const float scales[3] = {0.01f, 0.02f, 0.03f}, bias[3] = {1, -1, 0.5f};
    for (int i = 0; i < 12; i++)
        weights[i] = (int8_t)(i * 37 % 200 - 100);
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(5, 4));
    net_constant(n, "w", ORT_DTYPE_INT8, 2, DIMS(4, 3), weights);
    net_constant(n, "zw", ORT_DTYPE_INT8, 1, DIMS(3), zeros);
    net_constant(n, "sw", ORT_DTYPE_FLOAT, 1, DIMS(3), scales);
    net_constant(n, "b", ORT_DTYPE_FLOAT, 1, DIMS(3), bias);
    net_node(n, "DynamicQuantizeLinear", "x", "a sa za");
    net_node(n, "MatMulInteger", "a w za zw", "p");
    net_int(n, net_node(n, "Cast", "p", "f"), "to", ORT_DTYPE_FLOAT);
    net_node(n, "Mul", "sa sw", "s");
    net_node(n, "Mul", "f s", bits & 1 ? "m" : "y");
    if (bits & 1)
        net_node(n, "Add", "m b", "y");
    net_output(n, "y");
    if (bits & 2)
        net_output(n, "a");
}

static void dynamic_products(test_state *test)
{
    for (int bits = 0; bits < 8; bits++) {
        net n;
        bool allowed = !(bits & 4);
        CHECK(net_init(&n, NULL));
        build_dynamic(&n, bits);
        CHECK(holds(&n, allowed, net_floats(2, DIMS(5, 4), -2, 0.3f), 1e-6));
        CHECK(count_ops(&n, "MatMulIntegerToFloat") == (allowed && (bits & 2)));
        CHECK(count_ops(&n, "DynamicQuantizeMatMul") == (allowed && !(bits & 2)));
        net_free(&n);
    }
}

/* ---- moves */

/* Chains of a [n,3,1,4]: each becomes `left` nodes, the last of them of the given kind. */
static void moves(test_state *test)
{
    const struct {
        const char *first, *second; /* operator and constants */
        int left;
        const char *kind;
    } cases[] = {
        {"Reshape flat", "Unsqueeze two", 1, "Reshape"},
        {"Unsqueeze two", "Unsqueeze zero", 1, "Reshape"},
        {"Squeeze two", "Unsqueeze two", 0, ""},
        {"Transpose", "Reshape flat", 2, "Reshape"},
        {"Reshape flat", "Flatten", 1, "Reshape"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char op_type[32], constant[16], in[40];
        net n;
        CHECK(net_init(&n, NULL));
        net_input(&n, "x", ORT_DTYPE_FLOAT, 4, DIMS(-1, 3, 1, 4));
        ints(&n, "flat", 3, DIMS(-1, 2, 6));
        ints(&n, "two", 1, DIMS(2));
        ints(&n, "zero", 1, DIMS(0));
        for (int k = 0; k < 2; k++) {
            const char *text = k ? cases[i].second : cases[i].first;
            bool has = sscanf(text, "%31s %15s", op_type, constant) == 2;
            snprintf(in, sizeof in, "%s%s%s", k ? "a" : "x", has ? " " : "", has ? constant : "");
            net_node(&n, op_type, in, k ? "b" : "a");
        }
        net_node(&n, "Relu", "b", "y");
        net_output(&n, "y");
        CHECK(holds(&n, false, net_floats(4, DIMS(2, 3, 1, 4), -2, 0.3f), 0));
        CHECK(count_ops(&n, NULL) == cases[i].left + 1);
        CHECK(!cases[i].left || count_ops(&n, cases[i].kind) == 1);
        net_free(&n);
    }
}

/* A Transpose of dims of 1 goes with the Reshape after it; two open dims leave an Unsqueeze. */
static void idle_moves(test_state *test)
{
    for (int open = 0; open < 2; open++) {
        net n;
        CHECK(net_init(&n, NULL));
        net_input(&n, "x", ORT_DTYPE_FLOAT, 4, open ? DIMS(2, -1, 3, -2) : DIMS(1, 1, 6, 4));
        ints(&n, "list", open ? 1 : 2, open ? DIMS(0) : DIMS(-1, 8));
        ort_attr perm = {.name = "perm", .type = ORT_ATTR_INTS, .ints = DIMS(0, 2, 3, 1),
                         .count = 4};
        ort_node *first = open ? net_node(&n, "Unsqueeze", "x list", "a")
                               : net_node(&n, "Transpose", "x", "a");
        if (!open)
            (void)!ort_node_set_attr(n.graph, first, &perm, NULL);
        net_node(&n, open ? "Unsqueeze" : "Reshape", "a list", "b");
        net_node(&n, "Relu", "b", "y");
        net_output(&n, "y");
        ort_value *x = net_floats(4, open ? DIMS(2, 4, 3, 2) : DIMS(1, 1, 6, 4), -2, 0.1f);
        CHECK(holds(&n, false, x, 0));
        CHECK(count_ops(&n, NULL) == 2 && count_ops(&n, open ? "Unsqueeze" : "Reshape") == 1);
        net_free(&n);
    }
}

/* Slices along other axes are one, along the same axis two. */
static void slices(test_state *test)
{
    for (int same = 0; same < 2; same++) {
        net n;
        CHECK(net_init(&n, NULL));
        net_input(&n, "x", ORT_DTYPE_FLOAT, 3, DIMS(-1, 6, 8));
        ints(&n, "one", 1, DIMS(1));
        ints(&n, "end", 1, DIMS(5));
        ints(&n, "last", 1, same ? DIMS(1) : DIMS(-1));
        ints(&n, "two", 1, DIMS(2));
        net_node(&n, "Slice", "x one end one", "a");
        net_node(&n, "Slice", "a one end last two", "b");
        net_node(&n, "Relu", "b", "y");
        net_output(&n, "y");
        CHECK(holds(&n, false, net_floats(3, DIMS(2, 6, 8), -2, 0.1f), 0));
        CHECK(count_ops(&n, "Slice") == 1 + same);
        net_free(&n);
    }
}

/* ---- zero states: made of the batch size; not zero; given from outside */
static void states(test_state *test)
{
    for (int variant = 0; variant < 2; variant++) {
        float weights[3 * 4 * 2], one = (float)variant;
        const int64_t batch = 1;
        net n;
        CHECK(net_init(&n, NULL));
        for (int i = 0; i < 24; i++)
            weights[i] = (float)(i % 5 - 2) / 4;
        net_input(&n, "x", ORT_DTYPE_FLOAT, 3, DIMS(5, -1, 4));
        net_constant(&n, "w", ORT_DTYPE_FLOAT, 3, DIMS(1, 6, 4), weights);
        net_constant(&n, "r", ORT_DTYPE_FLOAT, 3, DIMS(1, 6, 2), weights);
        net_constant(&n, "at", ORT_DTYPE_INT64, 1, DIMS(1), &batch);
        ints(&n, "one", 1, DIMS(1));
        ints(&n, "two", 1, DIMS(2));
        net_node(&n, "Shape", "x", "shape");
        net_node(&n, "Gather", "shape at", "size");
        net_node(&n, "Concat", "one size two", "list");
        net_int(&n, node_of(&n, "Concat"), "axis", 0);
        ort_tensor fill = {.dtype = ORT_DTYPE_FLOAT, .shape = {.rank = 1, .dim = {1}},
                           .data = &one};
        ort_attr value = {.name = "value", .type = ORT_ATTR_TENSOR, .t = &fill};
        (void)!ort_node_set_attr(n.graph, net_node(&n, "ConstantOfShape", "list", "h"), &value,
                                 NULL);
        net_int(&n, net_node(&n, "GRU", "x w r - - h", "y"), "hidden_size", 2);
        net_output(&n, "y");
        CHECK(holds(&n, false, net_floats(3, DIMS(5, 3, 4), -2, 0.05f), 1e-6));
        CHECK((count_ops(&n, NULL) == 1) == (variant == 0));
        CHECK(node_of(&n, "GRU")->input_count == (variant == 0 ? 3 : 6));
        net_free(&n);
    }
}

/* Codes of a Concat are made before its result is reshaped. */
static void codes_through_moves(test_state *test)
{
    for (int reader = 0; reader < 2; reader++) {
        net n;
        CHECK(net_init(&n, NULL));
        net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(2, 6));
        parameters(&n, "x", 0.02f, 120);
        parameters(&n, "y", 0.03f, 100);
        ints(&n, "list", 2, DIMS(3, 8));
        net_node(&n, "QuantizeLinear", "x sx zx", "xq");
        net_node(&n, "DequantizeLinear", "xq sx zx", "xd");
        net_int(&n, net_node(&n, "Concat", "xd xd", "c"), "axis", 0);
        net_node(&n, "Transpose", "c", "t");
        net_node(&n, "Reshape", "t list", "r");
        net_node(&n, "QuantizeLinear", "r sy zy", "yq");
        net_node(&n, "DequantizeLinear", "yq sy zy", "y");
        net_output(&n, "y");
        if (reader)
            net_output(&n, "t");
        CHECK(holds(&n, true, net_floats(2, DIMS(2, 6), -2, 0.3f), 0.0301));
        CHECK(count_ops(&n, "QLinearConcat") == !reader && count_ops(&n, "Concat") == reader);
        CHECK(count_ops(&n, NULL) == (reader ? 7 : 5));
        net_free(&n);
    }
}

/* ---- distances */

typedef struct distance_case {
    const char *reduce;   /* in the body */
    int64_t axis, length; /* of the reduction; of a row of the state */
    bool reads_state, adds_zero;
    int distances;
} distance_case;

/* y[i] = |s - x[i]|^2 for each row of s: Scan over the rows of x. */
static void build_distances(net *n, const distance_case *d)
{
    const float zero = 0;
    float rows[12];
    for (int i = 0; i < 12; i++)
        rows[i] = (float)(i * i % 7) / 3;
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(5, 3));
    net_constant(n, "s", ORT_DTYPE_FLOAT, 2, DIMS(4, d->length), rows);
    net_constant(n, "zero", ORT_DTYPE_FLOAT, 0, NULL, &zero);
    ort_node *scan = net_node(n, "Scan", "s x", "end y");
    net_int(n, scan, "num_scan_inputs", 1);
    net_body(n, scan, "body");
    net_input(n, "state", ORT_DTYPE_FLOAT, 2, DIMS(4, d->length));
    net_input(n, "row", ORT_DTYPE_FLOAT, 1, DIMS(3));
    net_node(n, "Identity", "state", "state_out");
    net_node(n, "Sub", "state row", d->adds_zero ? "raw" : "difference");
    if (d->adds_zero)
        net_node(n, "Add", "raw zero", "difference");
    ort_node *sum = net_node(n, d->reduce, "difference", "sum");
    ort_attr axes = {.name = "axes", .type = ORT_ATTR_INTS, .ints = &d->axis, .count = 1};
    (void)!ort_node_set_attr(n->graph, sum, &axes, NULL);
    net_int(n, sum, "keepdims", 0);
    net_output(n, "state_out");
    net_output(n, "sum");
    net_end(n);
    net_output(n, "y");
    if (d->reads_state)
        net_output(n, "end");
}

static void distances(test_state *test)
{
    const distance_case cases[] = {
        {"ReduceSumSquare", 1, 3, false, false, 1}, {"ReduceSumSquare", -1, 3, false, false, 1},
        {"ReduceSumSquare", 1, 1, false, false, 0}, {"ReduceSumSquare", 1, 3, true, false, 0},
        {"ReduceSumSquare", 1, 3, false, true, 0},  {"ReduceL1", 1, 3, false, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        net n;
        const ort_compare_options close = {sizeof close, 1e-6, 1e-6};
        ort_difference difference = ORT_DIFFERENCE_INIT;
        ort_value *x = net_floats(2, DIMS(5, 3), -1, 0.25f), *y[2] = {0}, *z[2] = {0};
        CHECK(net_init(&n, NULL));
        build_distances(&n, &cases[i]);
        ort_session *before = plain(&n);
        const char *const only[] = {"scan_distance", NULL};
        ort_pass_options options = {.level = 2, .only = only, .registry = n.env->registry};
        CHECK(before && !ort_graph_infer(n.model->graph, n.env->registry, NULL, NULL) &&
              !ort_passes_run(n.model, &options, NULL));
        CHECK(count_ops(&n, "CDist") == cases[i].distances);
        CHECK(count_ops(&n, "Scan") == 1 - cases[i].distances);
        ort_session *after = plain(&n);
        CHECK(after && !run_whole(before, &x, y, NULL, NULL) &&
              !run_whole(after, &x, z, NULL, NULL) &&
              !ort_value_compare(z[0], y[0], &close, &difference, NULL) && difference.equal);
        ort_value_free(x);
        for (int k = 0; k < 2; k++) {
            ort_value_free(y[k]);
            ort_value_free(z[k]);
        }
        ort_session_free(before);
        ort_session_free(after);
        net_free(&n);
    }
}

/* Thousands of Relus become one: its origin names the first and says that there are more; what is
 * followed stays. */
static void long_origins(test_state *test)
{
    enum { COUNT = 3000 };
    net n;
    char in[16] = "x", out[16];
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, DIMS(2));
    for (int i = 0; i < COUNT; i++) {
        snprintf(out, sizeof out, "v%d", i);
        net_node(&n, "Relu", in, out);
        memcpy(in, out, sizeof in);
    }
    net_output(&n, out);
    net_end(&n);
    const char *const followed[] = {"late", NULL};
    n.model->graph->nodes.data[COUNT - 2]->name = "late";
    CHECK(!ort_model_follow(n.model, followed, NULL));
    CHECK(rewrite(&n, false) == COUNT - 1);
    const ort_node *left = node_of(&n, "Relu");
    CHECK(left && left->origin);
    size_t length = strlen(left->origin), more = strlen(ORT_EDIT_ORIGIN_MORE);
    CHECK(length > ORT_EDIT_ORIGIN_BYTES / 2);
    CHECK(length <= ORT_EDIT_ORIGIN_BYTES + more + strlen("late+"));
    CHECK(ort_origin_lists(left->origin, "late"));
    CHECK_TEXT(left->origin + length - more, ORT_EDIT_ORIGIN_MORE);
    net_free(&n);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, quantized);
    RUN(test, quantized_contrib);
    RUN(test, codes_undone);
    RUN(test, codes_returned);
    RUN(test, unsigned_codes);
    RUN(test, signed_units);
    RUN(test, products);
    RUN(test, dynamic_products);
    RUN(test, moves);
    RUN(test, idle_moves);
    RUN(test, slices);
    RUN(test, states);
    RUN(test, codes_through_moves);
    RUN(test, distances);
    RUN(test, long_origins);
    return test->failures != 0;
}
