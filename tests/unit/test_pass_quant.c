/* test_pass_quant.c - operators on codes that need no scale of their own, or none for results:
 * Where with constant branches, ArgMax, Resize, products of float results; and what keeps them as
 * they are. */
#include "rewrite.h"
#include "test.h"

#define PARAMS "#sx=0.02; #zx.u8=120; #sy=0.06; #zy.u8=60; #sz=0.03; #zz.u8=100;"
#define CODED(name, x, p)                                                                          \
    name "q = (QuantizeLinear " x " s" p " z" p "); "                                              \
    name "d = (DequantizeLinear " name "q s" p " z" p "); "
#define RESULT(r, p)                                                                               \
    "rq = (QuantizeLinear " r " s" p " z" p "); y = (DequantizeLinear rq s" p " z" p "); y"

static void branches(test_state *test)
{
    static const net_case cases[] = {
        {"x:2,3; w:2,3; c.bool:2,3; " PARAMS CODED("x", "x", "x") CODED("w", "w", "y")
         "r = (Where c xd wd); " RESULT("r", "z"),
         "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear Where QuantizeLinear "
         "DequantizeLinear"},
        {"x:2,3; w:2,3; c.bool:2,3; " PARAMS CODED("x", "x", "x") CODED("w", "w", "x")
         "r = (Where c xd wd); " RESULT("r", "x"),
         "QuantizeLinear QuantizeLinear Where DequantizeLinear"},
        /* a constant takes the codes it would get, one below all of them as well */
        {"x:2,3; c.bool:2,3; #low=-1e30; " PARAMS CODED("x", "x", "x") "r = (Where c low xd); "
         RESULT("r", "x"), "QuantizeLinear Where DequantizeLinear"},
    };
    static const net_case contrib[] = {
        {"x:2,3; w:2,3; c.bool:2,3; " PARAMS CODED("x", "x", "x") CODED("w", "w", "y")
         "r = (Where c xd wd); " RESULT("r", "z"),
         "QuantizeLinear QuantizeLinear QLinearWhere DequantizeLinear"},
        {"x:2,3; c.bool:2,3; #k=0.5,-0.25,9; " PARAMS CODED("x", "x", "x") "r = (Where c xd k); "
         RESULT("r", "z"),
         "QuantizeLinear QLinearWhere DequantizeLinear"},
        {"x:2,3; c.bool:2,3; #k=nan; " PARAMS CODED("x", "x", "x") "r = (Where c xd k); "
         RESULT("r", "x"),
         "QuantizeLinear DequantizeLinear Where QuantizeLinear DequantizeLinear"},
        /* a branch that others compute */
        {"x:2,3; w:2,3; c.bool:2,3; " PARAMS CODED("x", "x", "x") "r = (Where c xd w); "
         RESULT("r", "x"),
         "QuantizeLinear DequantizeLinear Where QuantizeLinear DequantizeLinear"},
    };
    CHECK_CASES(cases, 0.0301);
    CHECK_CONTRIB_CASES(contrib, 0.0301);
}

static void choices(test_state *test)
{
    static const net_case cases[] = {
        {"x:2,30; " PARAMS CODED("x", "x", "x") "y = (ArgMax xd axis=1 keepdims=0); y",
         "QuantizeLinear ArgMax"},
        {"x:2,30; " PARAMS CODED("x", "x", "x") "y = (ArgMin xd axis=0); z = (Neg xd); y, z",
         "QuantizeLinear DequantizeLinear ArgMin Neg"},
        {"x:2,3; #s:3; #z.u8:3; q = (QuantizeLinear x s z); d = (DequantizeLinear q s z); "
         "y = (ArgMax d axis=1); y", "QuantizeLinear DequantizeLinear ArgMax"},
        {"x:2,30; #s=1e-42; #z.u8=120; q = (QuantizeLinear x s z); d = (DequantizeLinear q s z); "
         "y = (ArgMax d axis=1); y", "QuantizeLinear DequantizeLinear ArgMax"},
        {"x:1,2,3,4; #k=1,1,2,2; " PARAMS CODED("x", "x", "x") "r = (Resize xd - k); "
         RESULT("r", "x"), "QuantizeLinear Resize DequantizeLinear"},
        {"x:1,2,3,4; #k=1,1,2,2; " PARAMS CODED("x", "x", "x") "r = (Resize xd - k mode=linear); "
         RESULT("r", "x"),
         "QuantizeLinear DequantizeLinear Resize QuantizeLinear DequantizeLinear"},
    };
    CHECK_CASES(cases, 0);
}

#define WEIGHTS "#w.u8:4,5; #sw:5; #zeros.u8:5; #sp=0.01; #zp.u8=17;"

static void products(test_state *test)
{
    static const net_case cases[] = {
        {"x:2,3,4; " PARAMS WEIGHTS CODED("x", "x", "x") "wd = (DequantizeLinear w sp zp); "
         "m = (MatMul xd wd); y = (Tanh m); y",
         "QuantizeLinear DequantizeLinear DequantizeLinear MatMul Tanh"},
    };
    static const net_case contrib[] = {
        {"x:2,3,4; " PARAMS WEIGHTS CODED("x", "x", "x") "wd = (DequantizeLinear w sp zp); "
         "m = (MatMul xd wd); y = (Tanh m); y", "QuantizeLinear MatMulIntegerToFloat Tanh"},
        {"x:2,3,4; " PARAMS WEIGHTS CODED("x", "x", "x") "wd = (DequantizeLinear w sw axis=1); "
         "m = (MatMul xd wd); y = (Tanh m); y", "QuantizeLinear MatMulIntegerToFloat Tanh"},
        {"x:2,3,4; " PARAMS WEIGHTS CODED("x", "x", "x")
         "wd = (DequantizeLinear w sw zeros axis=1); m = (MatMul xd wd); y = (Tanh m); y",
         "QuantizeLinear DequantizeLinear DequantizeLinear MatMul Tanh"},
        {"x:3,4; " PARAMS WEIGHTS CODED("x", "x", "x") "wd = (DequantizeLinear w sp zp); "
         "m = (Gemm xd wd); y = (Tanh m); y", "QuantizeLinear QGemm Tanh"},
        {"x:3,4; #b:5; " PARAMS WEIGHTS CODED("x", "x", "x") "wd = (DequantizeLinear w sp zp); "
         "m = (Gemm xd wd b); y = (Tanh m); y", "QuantizeLinear MatMulIntegerToFloat Tanh"},
        {"x:3,4; v:4,5; " PARAMS CODED("x", "x", "x") CODED("v", "v", "z") "y = (MatMul xd vd); "
         "y", "QuantizeLinear QuantizeLinear MatMulIntegerToFloat"},
    };
    CHECK_CASES(cases, 2e-5);
    CHECK_CONTRIB_CASES(contrib, 2e-5);
}

/* alpha and beta go into scales, where these stay normal numbers above zero. */
static void scaled_products(test_state *test)
{
#define SCALED "x:3,4; #sn=0.01,0.02,0.015,0.005,0.01; " PARAMS WEIGHTS CODED("x", "x", "x")       \
    "wd = (DequantizeLinear w sp zp); vd = (DequantizeLinear w sn axis=1); "
    static const net_case contrib[] = {
        {SCALED "m = (Gemm xd wd alpha=0.3); y = (Tanh m); y", "QuantizeLinear QGemm Tanh"},
        {SCALED "m = (Gemm xd vd alpha=0.3); y = (Tanh m); y", "QuantizeLinear QGemm Tanh"},
        {SCALED "#b:5; m = (Gemm xd vd b alpha=0.3 beta=2.5); y = (Tanh m); y",
         "QuantizeLinear MatMulIntegerToFloat Tanh"},
        {SCALED "b:5; m = (Gemm xd wd b beta=0); y = (Tanh m); y", "QuantizeLinear QGemm Tanh"},
        {SCALED "m = (Gemm xd wd alpha=0.3); n = (Gemm xd wd); y = (Sub m n); y",
         "QuantizeLinear QGemm QGemm Sub"}, /* one copy of codes for both */
        {SCALED "b:5; m = (Gemm xd wd b beta=2); y = (Tanh m); y",
         "QuantizeLinear DequantizeLinear DequantizeLinear FusedGemm"},
        {SCALED "m = (Gemm xd wd alpha=-1); y = (Tanh m); y",
         "QuantizeLinear DequantizeLinear DequantizeLinear FusedGemm"},
        {SCALED "#sm=1e-30; wm = (DequantizeLinear w sm zp); m = (Gemm xd wm alpha=1e-20); "
         "y = (Tanh m); y", "QuantizeLinear DequantizeLinear DequantizeLinear FusedGemm"},
    };
    static const net_case coded[] = {
        {SCALED "#b:5; m = (Gemm xd vd b beta=-2.5); " RESULT("m", "y"),
         "QuantizeLinear QGemm DequantizeLinear"},
        {SCALED "#b.i32:5; #sb=0.001; bd = (DequantizeLinear b sb); "
         "m = (Gemm xd wd bd alpha=1.7 beta=3); " RESULT("m", "y"),
         "QuantizeLinear QGemm DequantizeLinear"},
    };
    CHECK_CONTRIB_CASES(contrib, 2e-5);
    CHECK_CONTRIB_CASES(coded, 0.0601); /* one code */
}

/* onnxruntime refuses a QLinearAdd whose numbers have a dimension, as PyTorch's exporter gives them
 * to QuantizeLinear. */
static void numbers_of_files(test_state *test)
{
    net n;
    ort_node *node;
    int found = 0;
    CHECK(net_init(&n, NULL));
    net_text(&n, "x:2,3; w:2,3; #s=0.02,; #z.u8=120,; xq = (QuantizeLinear x s z); "
                 "xd = (DequantizeLinear xq s z); wq = (QuantizeLinear w s z); "
                 "wd = (DequantizeLinear wq s z); r = (Add xd wd); rq = (QuantizeLinear r s z); "
                 "y = (DequantizeLinear rq s z); y");
    CHECK_TEXT(net_rewritten_for(&n, NULL, true, 0, 0.021),
               "QuantizeLinear QuantizeLinear QLinearAdd DequantizeLinear");
    ORT_EACH_NODE(n.model->graph, node)
        for (int i = 1; !strcmp(node->op_type, "QLinearAdd") && i < 8; i++)
            found += i != 3 && ort_edit_constant(n.model->graph, node, i)->shape.rank == 0;
    CHECK(found == 6);
    net_free(&n);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, scaled_products);
    RUN(test, branches);
    RUN(test, choices);
    RUN(test, products);
    RUN(test, numbers_of_files);
    return test->failures != 0;
}
