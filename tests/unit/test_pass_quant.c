/* test_pass_quant.c - operators on codes that need no scale of their own, or none for results:
 * Where with constant branches, ArgMax, Resize, products of float results; and what keeps them as
 * they are. */
#include "rewrite.h"
#include "test.h"

#define PARAMS "fs sx 0.02; u zx 120; fs sy 0.06; u zy 60; fs sz 0.03; u zz 100; "
#define CODED(name, x, p)                                                                          \
    "QuantizeLinear " x " s" p " z" p " -> " name "q; DequantizeLinear " name "q s" p " z" p       \
    " -> " name "d; "
#define RESULT(r, p)                                                                               \
    "QuantizeLinear " r " s" p " z" p " -> rq; DequantizeLinear rq s" p " z" p " -> y; out y"

static void branches(test_state *test)
{
    static const net_case cases[] = {
        {"in x 2,3; in w 2,3; inb c 2,3;" PARAMS CODED("x", "x", "x") CODED("w", "w", "y")
         "Where c xd wd -> r; " RESULT("r", "z"),
         "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear Where QuantizeLinear "
         "DequantizeLinear"},
        {"in x 2,3; in w 2,3; inb c 2,3;" PARAMS CODED("x", "x", "x") CODED("w", "w", "x")
         "Where c xd wd -> r; " RESULT("r", "x"),
         "QuantizeLinear QuantizeLinear Where DequantizeLinear"},
        /* a constant takes the codes it would get, one below all of them as well */
        {"in x 2,3; inb c 2,3; fs low -1e30;" PARAMS CODED("x", "x", "x")
         "Where c low xd -> r; " RESULT("r", "x"), "QuantizeLinear Where DequantizeLinear"},
    };
    static const net_case contrib[] = {
        {"in x 2,3; in w 2,3; inb c 2,3;" PARAMS CODED("x", "x", "x") CODED("w", "w", "y")
         "Where c xd wd -> r; " RESULT("r", "z"),
         "QuantizeLinear QuantizeLinear QLinearWhere DequantizeLinear"},
        {"in x 2,3; inb c 2,3; f1 k 0.5,-0.25,9;" PARAMS CODED("x", "x", "x")
         "Where c xd k -> r; " RESULT("r", "z"),
         "QuantizeLinear QLinearWhere DequantizeLinear"},
        {"in x 2,3; inb c 2,3; fs k +nan;" PARAMS CODED("x", "x", "x")
         "Where c xd k -> r; " RESULT("r", "x"),
         "QuantizeLinear DequantizeLinear Where QuantizeLinear DequantizeLinear"},
        /* a branch that others compute */
        {"in x 2,3; in w 2,3; inb c 2,3;" PARAMS CODED("x", "x", "x") "Where c xd w -> r; "
         RESULT("r", "x"),
         "QuantizeLinear DequantizeLinear Where QuantizeLinear DequantizeLinear"},
    };
    CHECK_CASES(cases, 0.0301);
    CHECK_CONTRIB_CASES(contrib, 0.0301);
}

static void choices(test_state *test)
{
    static const net_case cases[] = {
        {"in x 2,30;" PARAMS CODED("x", "x", "x") "ArgMax xd -> y axis=1 keepdims=0; out y",
         "QuantizeLinear ArgMax"},
        {"in x 2,30;" PARAMS CODED("x", "x", "x") "ArgMin xd -> y axis=0; Neg xd -> z; out y z",
         "QuantizeLinear DequantizeLinear ArgMin Neg"},
        {"in x 2,3; f s 3; uw z 3; QuantizeLinear x s z -> q; DequantizeLinear q s z -> d; "
         "ArgMax d -> y axis=1; out y", "QuantizeLinear DequantizeLinear ArgMax"},
        {"in x 2,30; fs s 1e-42; u z 120; QuantizeLinear x s z -> q; DequantizeLinear q s z -> d; "
         "ArgMax d -> y axis=1; out y", "QuantizeLinear DequantizeLinear ArgMax"},
        {"in x 1,2,3,4; f1 k 1,1,2,2;" PARAMS CODED("x", "x", "x") "Resize xd - k -> r; "
         RESULT("r", "x"), "QuantizeLinear Resize DequantizeLinear"},
        {"in x 1,2,3,4; f1 k 1,1,2,2;" PARAMS CODED("x", "x", "x")
         "Resize xd - k -> r mode:=linear; " RESULT("r", "x"),
         "QuantizeLinear DequantizeLinear Resize QuantizeLinear DequantizeLinear"},
    };
    CHECK_CASES(cases, 0);
}

#define WEIGHTS "uw w 4,5; f sw 5; uw zeros 5; fs sp 0.01; u zp 17; "

static void products(test_state *test)
{
    static const net_case cases[] = {
        {"in x 2,3,4;" PARAMS WEIGHTS CODED("x", "x", "x") "DequantizeLinear w sp zp -> wd; "
         "MatMul xd wd -> m; Tanh m -> y; out y",
         "QuantizeLinear DequantizeLinear DequantizeLinear MatMul Tanh"},
    };
    static const net_case contrib[] = {
        {"in x 2,3,4;" PARAMS WEIGHTS CODED("x", "x", "x") "DequantizeLinear w sp zp -> wd; "
         "MatMul xd wd -> m; Tanh m -> y; out y", "QuantizeLinear MatMulIntegerToFloat Tanh"},
        {"in x 2,3,4;" PARAMS WEIGHTS CODED("x", "x", "x") "DequantizeLinear w sw -> wd axis=1; "
         "MatMul xd wd -> m; Tanh m -> y; out y", "QuantizeLinear MatMulIntegerToFloat Tanh"},
        {"in x 2,3,4;" PARAMS WEIGHTS CODED("x", "x", "x")
         "DequantizeLinear w sw zeros -> wd axis=1; MatMul xd wd -> m; Tanh m -> y; out y",
         "QuantizeLinear DequantizeLinear DequantizeLinear MatMul Tanh"},
        {"in x 3,4;" PARAMS WEIGHTS CODED("x", "x", "x") "DequantizeLinear w sp zp -> wd; "
         "Gemm xd wd -> m; Tanh m -> y; out y", "QuantizeLinear QGemm Tanh"},
        {"in x 3,4; f b 5;" PARAMS WEIGHTS CODED("x", "x", "x") "DequantizeLinear w sp zp -> wd; "
         "Gemm xd wd b -> m; Tanh m -> y; out y",
         "QuantizeLinear DequantizeLinear DequantizeLinear FusedGemm"},
        {"in x 3,4; in v 4,5;" PARAMS CODED("x", "x", "x") CODED("v", "v", "z")
         "MatMul xd vd -> y; out y", "QuantizeLinear QuantizeLinear MatMulIntegerToFloat"},
    };
    CHECK_CASES(cases, 2e-5);
    CHECK_CONTRIB_CASES(contrib, 2e-5);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, branches);
    RUN(test, choices);
    RUN(test, products);
    return test->failures != 0;
}
