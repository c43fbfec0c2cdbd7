/* test_code_regions.c - what lies between Q and DQ runs on codes: spellings of writers of files, in
 * small. Each row tells the operators that a session runs in the end; a float operator among them
 * fails. Results lie within a code of what the same model gives without any rewriting, and are the
 * same bits on every tier and number of threads. */
#include "code_regions.h"

/* Any chain of functions of one code. */
static void tables(test_state *test)
{
    static const spelling rows[] = {
        {"HardSwish between Q and DQ", "x:3,50; " U8 CODED("x", "x") "r = (HardSwish xd); "
         RESULT("r", "z"), ENDS("LookUp"), 0.03},
        {"HardSwish as tf2onnx spells tflite's",
         "x:3,50; " S8 CODED("x", "x") "a = (Add xd 3); c = (Clip a 0 6); m = (Mul xd c); "
         "r = (Mul m 0.16666667); " RESULT("r", "z"), ENDS("LookUp"), 0.03},
        {"SiLU with Q and DQ inside, as static quantization leaves it",
         "x:3,50; " U8 P("w", "0.0039", "u8", "0") CODED("x", "x") "a = (Sigmoid xd); "
         Q("aq", "a", "w") DQ("ad", "aq", "w") "r = (Mul xd ad); " RESULT("r", "z"),
         ENDS("LookUp"), 0.03},
        {"SiLU without, as a quantizer of the result alone leaves it",
         "x:3,50; " U8 CODED("x", "x") "a = (Sigmoid xd); r = (Mul xd a); " RESULT("r", "z"),
         ENDS("LookUp"), 0.03},
        {"two readers, each with a DQ of its own",
         "x:3,50; " U8 Q("xq", "x", "x") DQ("xd", "xq", "x") DQ("xe", "xq", "x")
         "a = (Sigmoid xd); r = (Mul a xe); " RESULT("r", "z"), ENDS("LookUp"), 0.03},
        {"Gelu by erf, as PyTorch exports it",
         "x:3,50; " S8 CODED("x", "x") "a = (Div xd 1.41421354); b = (Erf a); c = (Add b 1); "
         "m = (Mul xd c); r = (Mul m 0.5); " RESULT("r", "z"), ENDS("LookUp"), 0.03},
        {"Mish", "x:3,50; " U8 CODED("x", "x") "a = (Softplus xd); b = (Tanh a); r = (Mul xd b); "
         RESULT("r", "z"), ENDS("LookUp"), 0.03},
        {"another scale", "x:3,50; " U8 CODED("x", "x") RESULT("xd", "z"), ENDS("LookUp"), 0.03},
        {"a scale behind a Reshape",
         "x:3,50; " U8 CODED("x", "x") "#to.i64=50,3; t = (Tanh xd); r = (Reshape t to); "
         RESULT("r", "z"), ENDS("LookUp Reshape"), 0.03},
    };
    CHECK_SPELLINGS(rows);
}

/* Operators of two tensors, pools, softmax: exact on every tier. */
static void units(test_state *test)
{
    static const spelling rows[] = {
        {"a residual", "x:2,3,50; w:2,3,50; " U8 CODED("x", "x") CODED("w", "y") "r = (Add xd wd); "
         RESULT("r", "z"),
         "QuantizeLinear QuantizeLinear QLinearAdd DequantizeLinear", 0.03},
        {"a row for all", "x:2,3,50; w:50; " S8 CODED("x", "x") CODED("w", "y") "r = (Add xd wd); "
         RESULT("r", "z"),
         "QuantizeLinear QuantizeLinear QLinearAdd DequantizeLinear", 0.03},
        {"squeeze and excitation", "x:2,3,40,40; w:2,3,1,1; " U8 CODED("x", "x") CODED("w", "y")
         "r = (Mul xd wd); " RESULT("r", "z"),
         "QuantizeLinear QuantizeLinear QLinearMul DequantizeLinear", 0.03},
        {"attention", "x:2,4,300; " S8 CODED("x", "x") "r = (Softmax xd axis=-1); "
         RESULT("r", "z"), ENDS("QLinearSoftmax"), 0.03},
        {"a softmax of classes", "x:2,10,3; " U8 CODED("x", "x") "r = (Softmax xd axis=1); "
         RESULT("r", "z"), ENDS("QLinearSoftmax"), 0.03},
        {"a softmax of many rows beside each other, of signed codes", "x:2,21,9,17; " S8
         CODED("x", "x") "r = (Softmax xd axis=1); " RESULT("r", "z"), ENDS("QLinearSoftmax"),
         0.03},
        {"a mean of planes", "x:2,5,7,9; " U8 CODED("x", "x") "r = (GlobalAveragePool xd); "
         RESULT("r", "z"), ENDS("QLinearGlobalAveragePool"), 0.03},
        {"a mean of windows", "x:2,5,7,9; " S8 CODED("x", "x")
         "r = (AveragePool xd kernel_shape=3,3 pads=1,1,1,1 strides=2,1); " RESULT("r", "z"),
         ENDS("QLinearAveragePool"), 0.03},
        {"a mean of one window", "x:2,5,7,9; " S8 CODED("x", "x")
         "r = (AveragePool xd kernel_shape=7,9); " RESULT("r", "z"),
         ENDS("QLinearAveragePool"), 0.03},
        {"joined channels of other scales", "x:2,5,70; w:2,3,70; " U8 CODED("x", "x")
         CODED("w", "y") "r = (Concat xd wd axis=1); " RESULT("r", "z"),
         "QuantizeLinear QuantizeLinear QLinearConcat DequantizeLinear", 0.03},
        {"a mask", "x:2,5,70; w:2,5,70; c.bool:2,1,70; " U8 CODED("x", "x") CODED("w", "y")
         "r = (Where c xd wd); " RESULT("r", "z"),
         "QuantizeLinear QuantizeLinear QLinearWhere DequantizeLinear", 0.03},
    };
    CHECK_SPELLINGS(rows);
}

/* Codes pass through moves whatever the scale behind them. */
static void moves(test_state *test)
{
    static const spelling rows[] = {
        {"a pool of another scale", "x:1,3,9,8; " U8 CODED("x", "x")
         "r = (MaxPool xd kernel_shape=3,3 strides=2,2); " RESULT("r", "z"),
         ENDS("MaxPool LookUp"), 0.03},
        {"TensorFlow's padding of its own", "x:1,3,9,8; #p.i64=0,0,0,1,0,0,2,1; " S8
         CODED("x", "x") "r = (Pad xd p); " RESULT("r", "x"), ENDS("Pad"), 0.02},
        {"rows of a quantized table", "i.i64:5; #w.u8:40,8; " U8 DQ("wd", "w", "x")
         "r = (Gather wd i); y = (Neg r); y", "Gather DequantizeLinear Neg", 0.03},
        {"moves, a function, moves",
         "x:2,3,8; #to.i64=6,8; " U8 CODED("x", "x") "a = (Transpose xd perm=0,2,1); "
         "b = (HardSigmoid a); e = (Reshape b to); " RESULT("e", "z"),
         ENDS("Transpose LookUp Reshape"), 0.03},
        {"linear Resize", "x:1,3,9,8; #k=1,1,2,2; " U8 CODED("x", "x")
         "r = (Resize xd - k mode=linear); " RESULT("r", "x"), ENDS("Resize"), 0.02},
        {"parts of one grid that begins behind them",
         "x:2,6,8; " U8 CODED("x", "x") "t = (Tanh xd); a, b = (Split t axis=1); "
         CODED("a", "z") CODED("b", "z") "r = (Concat bd ad axis=1); " RESULT("r", "z"),
         ENDS("LookUp Split Concat"), 0.03},
        {"parts of a channel shuffle", "x:1,4,6; " S8 CODED("x", "x")
         "a, b = (Split xd axis=1); e = (Relu a); " CODED("e", "x")
         "f = (Concat ed b axis=1); " RESULT("f", "x"), ENDS("Split LookUp Concat"), 0.02},
    };
    CHECK_SPELLINGS(rows);
}

#define MQ(y, x, p) y " = (ms.QuantizeLinear " x " s" p " z" p "); "
#define MDQ(y, x, p) y " = (ms.DequantizeLinear " x " s" p " z" p "); "
#define NNCF P("x", "0.02", "u8", "0") P("y", "0.015", "i8", "0") P("z", "0.6", "i8", "0")

#define U16 P("x", "0.0001", "u16", "30000") P("z", "0.0002", "u16", "33000")
#define S16 P("x", "0.0001", "i16", "-300") P("z", "0.0002", "i16", "5")

/* Codes of 16 bits by weights of 8, in Q and DQ of com.microsoft as onnxruntime writes them. Of
 * batches, long sums, odd sizes and rows enough for tiles; extremes of zero points and types. */
static void wide_products(test_state *test)
{
    static const spelling rows[] = {
        {"uint16 by int8", "x:3,50; #w.i8:50,20; #sw=0.01; #zw.i8=0; " U16 MQ("xq", "x", "x")
         MDQ("xd", "xq", "x") "wd = (DequantizeLinear w sw zw); r = (MatMul xd wd); "
         MQ("rq", "r", "z") MDQ("y", "rq", "z") "y",
         "QuantizeLinear WideMatMul DequantizeLinear", 0.0002},
        {"the same with a row added between codes",
         "x:3,50; #w.i8:50,20; #sw=0.01; #zw.i8=0; #b:20; " U16 MQ("xq", "x", "x")
         MDQ("xd", "xq", "x") "wd = (DequantizeLinear w sw zw); r = (MatMul xd wd); "
         MQ("mq", "r", "z") MDQ("md", "mq", "z") "a = (Add md b); " MQ("rq", "a", "z")
         MDQ("y", "rq", "z") "y", "QuantizeLinear WideMatMul CodeChain DequantizeLinear", 0.0004},
        {"int16 by uint8 with zero points of columns, many rows of a batch",
         "x:2,40,65; #w.u8:65,33; #sw:33; #zw.u8:33; " S16 MQ("xq", "x", "x")
         MDQ("xd", "xq", "x") "wd = (DequantizeLinear w sw zw axis=1); y = (MatMul xd wd); y",
         "QuantizeLinear WideMatMul", 2e-3},
        {"int16 of the lowest zero point by weights of 4 bits",
         "x:70,96; #w.i4:96,48; #sw=0.1; #zw.i4=1; " P("x", "0.0001", "i16", "-32768")
         MQ("xq", "x", "x") MDQ("xd", "xq", "x") MDQ("wd", "w", "w") "y = (MatMul xd wd); y",
         "QuantizeLinear WideMatMul", 1e-3},
        {"a layer with a bias, weights by results",
         "x:5,1000; #w.i8:10,1000; #sw=0.01,0.02,0.03,0.01,0.02,0.03,0.01,0.02,0.03,0.01; "
         "#zw.i8=0,0,0,0,0,0,0,0,0,0; #b:10; " U16 MQ("xq", "x", "x") MDQ("xd", "xq", "x")
         "wd = (DequantizeLinear w sw zw axis=0); y = (Gemm xd wd b transB=1); y",
         "QuantizeLinear WideMatMul", 1e-2},
        {"columns of codes", "x:24,6; #w.i8:24,7; #sw=0.01; #zw.i8=3; #b:7; " U16
         MQ("xq", "x", "x") MDQ("xd", "xq", "x") "wd = (DequantizeLinear w sw zw); "
         "y = (Gemm xd wd b transA=1); y", "QuantizeLinear WideMatMul", 1e-3},
        {"a vector", "x:24; #w.i8:24,7; #sw=0.01; #zw.i8=3; " U16 MQ("xq", "x", "x")
         MDQ("xd", "xq", "x") "wd = (DequantizeLinear w sw zw); y = (MatMul xd wd); y",
         "QuantizeLinear WideMatMul", 1e-3},
    };
    CHECK_SPELLINGS(rows);
}

#define WIDE_CONV(x) "wd = (DequantizeLinear w sw zw); c = (Conv " x "d wd b pads=1,1,1,1); "

/* Convolutions of them, their bounds and functions; halves of sums that int32 holds no more. */
static void wide_convolutions(test_state *test)
{
    static const spelling rows[] = {
        {"uint16 by int8, with a bias in float",
         "x:2,7,9,8; #w.i8:12,7,3,3; #sw=0.01; #zw.i8=0; #b:12; " U16 MQ("xq", "x", "x")
         MDQ("xd", "xq", "x") WIDE_CONV("x") MQ("rq", "c", "z") MDQ("y", "rq", "z") "y",
         "QuantizeLinear WideConv DequantizeLinear", 0.0002},
        {"int16, and bounds",
         "x:1,16,9,8; #w.i8:12,16,3,3; #sw=0.01; #zw.i8=0; #b:12; " S16
         MQ("xq", "x", "x") MDQ("xd", "xq", "x") WIDE_CONV("x") "r = (Clip c 0 1.5); "
         MQ("rq", "r", "z") MDQ("y", "rq", "z") "y",
         "QuantizeLinear WideConv DequantizeLinear", 0.0002},
        {"int16, and a result of 8 bits",
         "x:1,16,9,8; #w.i8:12,16,3,3; #sw=0.01; #zw.i8=0; #b:12; " S16 P("y", "0.02", "u8", "3")
         MQ("xq", "x", "x") MDQ("xd", "xq", "x") WIDE_CONV("x") MQ("rq", "c", "y")
         MDQ("y", "rq", "y") "y", "QuantizeLinear WideConv DequantizeLinear", 0.02},
        {"a function, and a convolution that reads its codes",
         "x:1,6,11,8; #w.i8:6,6,3,3; #sw=0.03; #zw.i8=2; #b:6; " U16 MQ("xq", "x", "x")
         MDQ("xd", "xq", "x") WIDE_CONV("x") "h = (HardSwish c); " MQ("hq", "h", "z")
         MDQ("hd", "hq", "z") "vd = (DequantizeLinear w sw zw); r = (Conv hd vd); "
         MQ("rq", "r", "z") MDQ("y", "rq", "z") "y",
         "QuantizeLinear WideConv WideConv DequantizeLinear", 0.0002},
        {"depthwise, strided, of unsigned weights and scales of channels",
         "x:1,6,11,8; #w.u8:6,1,3,3; #sw:6; #zw.u8:6; " S16 MQ("xq", "x", "x") MDQ("xd", "xq", "x")
         "wd = (DequantizeLinear w sw zw axis=0); "
         "r = (Conv xd wd group=6 strides=2,2 dilations=1,2); y = (LeakyRelu r alpha=0.2); y",
         "QuantizeLinear WideConv", 2e-3},
        {"sums of 2,304 products, the lowest zero point, groups",
         "x:1,512,5,6; #w.i8:4,256,3,3; #sw=0.01; #zw.i8=-128; "
         P("x", "0.0001", "u16", "0") P("z", "0.5", "i16", "9") MQ("xq", "x", "x")
         MDQ("xd", "xq", "x") "wd = (DequantizeLinear w sw zw); r = (Conv xd wd group=2); "
         MQ("rq", "r", "z") MDQ("y", "rq", "z") "y",
         "QuantizeLinear WideConv DequantizeLinear", 0.5},
        {"one axis, weights of 4 bits, a codes' bias",
         "x:2,3,21; #w.i4:5,3,4; #sw=0.1; #zw.i4=1; #b.i32:5; #sb=0.00001; #zb.i32=0; "
         P("x", "0.0001", "i16", "-32768") P("z", "0.001", "i16", "9")
         MQ("xq", "x", "x") MDQ("xd", "xq", "x") MDQ("wd", "w", "w") MDQ("bd", "b", "b")
         "r = (Conv xd wd bd strides=3); " MQ("rq", "r", "z") MDQ("y", "rq", "z") "y",
         "QuantizeLinear WideConv DequantizeLinear", 0.001},
    };
    CHECK_SPELLINGS(rows);
}

#define WIDE_BIAS "#b.i32:6; #sb=0.000001; #zb.i32=0; " MDQ("bd", "b", "b")
#define WIDE_DEPTHWISE(attributes)                                                                 \
    MQ("xq", "x", "x") MDQ("xd", "xq", "x") "wd = (DequantizeLinear w sw zw); "                    \
    "c = (Conv xd wd bd " attributes "); "

/* Windows on each channel alone: bands of rows, short rows, several filters a channel, kernels of
 * any width; biases that are whole and that aren't, bounds, floats. */
static void wide_windows(test_state *test)
{
    static const spelling rows[] = {
        {"bands of long rows", "x:1,6,70,301; #w.i8:6,1,3,3; #sw=0.01; #zw.i8=0; " U16 WIDE_BIAS
         WIDE_DEPTHWISE("group=6 pads=1,1,1,1") MQ("rq", "c", "z") MDQ("y", "rq", "z") "y",
         "QuantizeLinear WideConv DequantizeLinear", 0.0002},
        {"5x5 of stride 2 on an odd plane, bounds, another type",
         "x:2,6,61,75; #w.i8:6,1,5,5; #sw=0.01; #zw.i8=3; " S16 P("y", "0.0002", "u16", "9")
         WIDE_BIAS WIDE_DEPTHWISE("group=6 pads=2,1,0,2 strides=2,2") "r = (Clip c -0.3 2.5); "
         MQ("rq", "r", "y") MDQ("y", "rq", "y") "y",
         "QuantizeLinear WideConv DequantizeLinear", 0.0002},
        {"two filters a channel, columns of four taps, strides apart, dilated rows",
         "x:1,3,23,9; #w.u8:6,1,3,4; #sw=0.01; #zw.u8=255; " U16 WIDE_BIAS
         WIDE_DEPTHWISE("group=3 pads=0,3,2,0 strides=3,1 dilations=2,1") MQ("rq", "c", "z")
         MDQ("y", "rq", "z") "y", "QuantizeLinear WideConv DequantizeLinear", 0.0002},
        {"small planes, a bias that is no code, floats",
         "x:3,6,7,7; #w.i8:6,1,3,3; #sw=0.01; #zw.i8=0; #bd:6; " U16
         WIDE_DEPTHWISE("group=6 pads=1,1,1,1") "y = (Relu c); y",
         "QuantizeLinear WideConv", 2e-3},
        {"a transposed convolution, a window for each phase",
         "x:1,6,9,7; #w.i8:6,4,3,3; #sw=0.01; #zw.i8=0; #bd:4; " U16 MQ("xq", "x", "x")
         MDQ("xd", "xq", "x") "wd = (DequantizeLinear w sw zw); "
         "c = (ConvTranspose xd wd bd strides=2,2 pads=1,1,1,1 output_padding=1,1); "
         MQ("rq", "c", "z") MDQ("y", "rq", "z") "y",
         "QuantizeLinear WideConv DepthToSpace Slice DequantizeLinear", 0.0002},
        {"the same to codes, and a function",
         "x:3,6,14,14; #w.i8:6,1,3,3; #sw=0.01; #zw.i8=0; #bd:6; " U16
         WIDE_DEPTHWISE("group=6 pads=1,1,1,1") "r = (HardSwish c); " MQ("rq", "r", "z")
         MDQ("y", "rq", "z") "y", "QuantizeLinear WideConv DequantizeLinear", 0.0002},
        {"one axis, one tap, and a result of 8 bits",
         "x:2,6,5000; #w.i8:6,1,1; #sw=0.01; #zw.i8=0; " S16 P("y", "0.02", "i8", "3") WIDE_BIAS
         WIDE_DEPTHWISE("group=6 strides=2") MQ("rq", "c", "y") MDQ("y", "rq", "y") "y",
         "QuantizeLinear WideConv DequantizeLinear", 0.02},
        {"31 taps along a line", "x:2,6,300; #w.i8:6,1,31; #sw=0.01; #zw.i8=-128; " S16 WIDE_BIAS
         WIDE_DEPTHWISE("group=6 pads=15,15") MQ("rq", "c", "z") MDQ("y", "rq", "z") "y",
         "QuantizeLinear WideConv DequantizeLinear", 0.0002},
    };
    CHECK_SPELLINGS(rows);
}

/* Elementwise operators between codes that no table holds, or of operators that have no form on
 * codes. */
static void chains(test_state *test)
{
    static const spelling rows[] = {
        {"a residual of 16 bits, and a bound", "x:2,3,70; w:2,3,70; " U16
         P("y", "0.0001", "i16", "-9") MQ("xq", "x", "x") MDQ("xd", "xq", "x") MQ("wq", "w", "y")
         MDQ("wd", "wq", "y") "a = (Add xd wd); r = (Relu a); " MQ("rq", "r", "z")
         MDQ("y", "rq", "z") "y", "QuantizeLinear QuantizeLinear CodeChain DequantizeLinear",
         0.0002},
        {"SiLU of 16 bits, as static quantization leaves it", "x:2,3,70; " U16
         P("w", "0.00002", "u16", "0") MQ("xq", "x", "x") MDQ("xd", "xq", "x")
         "s = (Sigmoid xd); " MQ("sq", "s", "w") MDQ("sd", "sq", "w") "r = (Mul xd sd); "
         MQ("rq", "r", "z") MDQ("y", "rq", "z") "y",
         "QuantizeLinear CodeChain CodeChain DequantizeLinear", 0.0003},
        {"16 bits to 8, a number subtracted from the left", "x:2,3,7000; " S16
         P("y", "0.02", "u8", "3") MQ("xq", "x", "x") MDQ("xd", "xq", "x")
         "t = (Sub 1 xd); r = (Div t 0.5); " MQ("rq", "r", "y") MDQ("y", "rq", "y") "y",
         "QuantizeLinear CodeChain DequantizeLinear", 0.02},
        {"another scale of 16 bits", "x:3,50; " U16 MQ("xq", "x", "x") MDQ("xd", "xq", "x")
         MQ("rq", "xd", "z") MDQ("y", "rq", "z") "y", "QuantizeLinear CodeChain DequantizeLinear",
         0.0002},
        {"the larger of 8-bit codes of two scales", "x:3,50; w:3,50; " U8 CODED("x", "x")
         CODED("w", "y") "r = (Max xd wd); " RESULT("r", "z"),
         "QuantizeLinear QuantizeLinear CodeChain DequantizeLinear", 0.03},
        {"floats beside codes", "x:3,50; w:3,50; " U8 CODED("x", "x")
         "r = (Add w xd); " RESULT("r", "z"),
         "QuantizeLinear CodeChain DequantizeLinear", 0.03},
    };
    CHECK_SPELLINGS(rows);
}

/* Attention whose products read codes: a block of rows at a time, through Softmax. */
static void attention(test_state *test)
{
#define HEADS "w:2,3,16,72; v:2,3,72,20; " U8 P("p", "0.0039", "u8", "0") \
    P("v", "0.02", "u8", "9") CODED("x", "x") CODED("w", "y") CODED("v", "v") \
    "a = (MatMul xd wd); "
#define OPS "QuantizeLinear QuantizeLinear QuantizeLinear CodeAttention"
    static const spelling rows[] = {
        {"scores alone", "x:2,3,140,16; " HEADS "p = (Softmax a); " CODED("p", "p")
         "r = (MatMul pd vd); " RESULT("r", "z"), OPS " DequantizeLinear", 0.03},
        {"a scale and a mask, floats behind",
         "x:2,3,140,16; m:2,1,140,72; " HEADS "s = (Div a 4); t = (Add s m); p = (Softmax t); "
         CODED("p", "p") "y = (MatMul pd vd); y", OPS, 0.01},
        {"a mask of keys, and bounds", "x:2,3,1,16; m:1,1,1,72; " HEADS
         "s = (Mul 0.25 a); t = (Add m s); c = (Clip t -3 3); p = (Softmax c); " CODED("p", "p")
         "r = (MatMul pd vd); " RESULT("r", "z"), OPS " DequantizeLinear", 0.03},
        {"signed codes, a column that is subtracted from",
         "x:40,16; w:16,9; v:9,33; m:40,1; " S8 P("p", "0.0078", "i8", "-128")
         CODED("x", "x") CODED("w", "y") CODED("v", "y") "a = (MatMul xd wd); s = (Sub m a); "
         "p = (Softmax s); " CODED("p", "p") "r = (MatMul pd vd); " RESULT("r", "z"),
         OPS " DequantizeLinear", 0.03},
        {"scores that others read, too", "x:2,3,8,16; " HEADS "p = (Softmax a); " CODED("p", "p")
         "m = (MatMul pd vd); n = (ReduceSum a keepdims=1); r = (Add m n); " RESULT("r", "z"),
         "QuantizeLinear QuantizeLinear QuantizeLinear MatMulIntegerToFloat Softmax QuantizeLinear "
         "ReduceSum MatMulIntegerToFloat Add QuantizeLinear DequantizeLinear", 0.03},
        {"heads that keys have in common", "x:2,3,8,16; w:16,72; v:2,3,72,20; " U8
         P("p", "0.0039", "u8", "0") CODED("x", "x") CODED("w", "y") CODED("v", "x")
         "a = (MatMul xd wd); p = (Softmax a); " CODED("p", "p") "r = (MatMul pd vd); "
         RESULT("r", "z"),
         "QuantizeLinear QuantizeLinear QuantizeLinear MatMulIntegerToFloat Softmax QuantizeLinear "
         "QLinearMatMul DequantizeLinear", 0.03},
    };
    CHECK_SPELLINGS(rows);
#undef HEADS
#undef OPS
}

/* Products as their writers put them. */
static void products(test_state *test)
{
    static const spelling rows[] = {
        {"Q and DQ of com.microsoft, as onnxruntime writes them for 16 and 4 bits beside",
         "x:3,50; " U8 MQ("xq", "x", "x") MDQ("xd", "xq", "x") "r = (HardSwish xd); "
         MQ("rq", "r", "z") MDQ("y", "rq", "z") "y", ENDS("LookUp"), 0.03},
        {"weights of 4 bits between them",
         "x:3,8; #w.i4:8,6; #sw=0.1; #zw.i4=1; " P("x", "0.02", "u8", "120")
         P("z", "0.1", "u8", "100") MQ("xq", "x", "x") MDQ("xd", "xq", "x") MDQ("wd", "w", "w")
         "r = (MatMul xd wd); " MQ("rq", "r", "z") MDQ("y", "rq", "z") "y", ENDS("QLinearMatMul"),
         0.1},
        {"a linear layer's weights by results, as PyTorch stores them",
         "x:2,3,8; #w.i8:6,8; #sw:6; #zw.i8=0,0,0,0,0,0; " U8 CODED("x", "x")
         "wd = (DequantizeLinear w sw zw axis=0); t = (Transpose wd perm=1,0); "
         "r = (MatMul xd t); " RESULT("r", "z"), ENDS("QLinearMatMul"), 0.03},
        {"its bias, which it adds behind", "x:2,3,8; #w.i8:6,8; #sw=0.01; #zw.i8=0; #b:6; " U8
         CODED("x", "x") "wd = (DequantizeLinear w sw zw); t = (Transpose wd perm=1,0); "
         "m = (MatMul xd t); r = (Add m b); " RESULT("r", "z"),
         ENDS("CodeMatMul"), 0.03},
        {"one that is split to heads before it becomes codes",
         "x:2,3,8; #w.i8:8,6; #sw=0.01; #zw.i8=3; #b:6; #to.i64=2,3,2,3; " S8 CODED("x", "x")
         "wd = (DequantizeLinear w sw zw); m = (MatMul xd wd); a = (Add b m); "
         "h = (Reshape a to); r = (Transpose h perm=0,2,1,3); " RESULT("r", "z"),
         ENDS("CodeMatMul Reshape Transpose"), 0.03},
        {"scales of columns, a bias that isn't small",
         "x:3,1,1,70; #w.i8:70,40; #sw:40; #zw.i8=0,0,0,0,"
         "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0; #b:40; " U8
         P("v", "2", "i8", "-3") CODED("x", "x") "wd = (DequantizeLinear w sw zw axis=1); "
         "m = (MatMul xd wd); r = (Add m b); " RESULT("r", "v"),
         ENDS("CodeMatMul"), 2},
        {"a bias that codes of the result are finer than",
         "x:2,3,8; #w.i8:8,6; #sw=0.01; #zw.i8=0; #b:6; " P("v", "0.0001", "u8", "100") U8
         CODED("x", "x") "wd = (DequantizeLinear w sw zw); m = (MatMul xd wd); r = (Add m b); "
         RESULT("r", "v"),
         "QuantizeLinear MatMulIntegerToFloat QuantizeLinear DequantizeLinear", 0.0001},
        {"uint8 where numbers aren't negative, else int8, as NNCF has them",
         "x:1,16,9,9; #w.i8:16,16,3,3; #sw=0.01; #zw.i8=0; " NNCF CODED("x", "x")
         "wd = (DequantizeLinear w sw zw); r = (Conv xd wd pads=1,1,1,1); " RESULT("r", "z"),
         "QuantizeLinear BlockBytes BytesConv UnblockBytes DequantizeLinear", 0.6},
        {"the same where int8 codes are moved",
         "x:1,16,9,9; #w.i8:16,16,3,3; #sw=0.01; #zw.i8=0; " NNCF CODED("x", "x")
         "wd = (DequantizeLinear w sw zw); r = (Conv xd wd pads=1,1,1,1); " Q("rq", "r", "z")
         "t = (Transpose rq perm=0,2,3,1); " DQ("y", "t", "z") "y",
         "QuantizeLinear BlockBytes BytesConv UnblockSignedBytes Transpose DequantizeLinear", 0.6},
        {"twice the size, as segmentation nets have it", "x:1,16,5,6; #w.i8:16,8,2,2; #sw=0.01; "
         "#zw.i8=0; " S8 CODED("x", "x") "wd = (DequantizeLinear w sw zw); "
         "r = (ConvTranspose xd wd strides=2,2 kernel_shape=2,2); " RESULT("r", "z"),
         "QuantizeLinear BlockBytes BytesConv UnblockSignedBytes DepthToSpace DequantizeLinear",
         0.03},
        {"the same with pads, a longer kernel, groups, scales and biases of maps",
         "x:2,6,5,7; #w.i8:6,3,4,3; #sw=0.1; #zw.i8=3; #b:6; " U8 CODED("x", "x")
         "wd = (DequantizeLinear w sw zw); r = (ConvTranspose xd wd b strides=2,2 group=2 "
         "pads=1,0,2,1 output_padding=1,0); " RESULT("r", "z"),
         "QuantizeLinear BlockBytes BytesChannels BytesConv BytesChannels UnblockBytes "
         "DepthToSpace Slice DequantizeLinear", 0.03},
        {"stride 3, codes of biases", "x:1,4,3,4; #w.i8:4,2,5,5; #sw=0.1,0.05; "
         "#zw.i8=0,0; #b.i32:2; #sb=0.002,0.001; " U8 CODED("x", "x")
         "wd = (DequantizeLinear w sw zw axis=1); bd = (DequantizeLinear b sb axis=0); "
         "r = (ConvTranspose xd wd bd strides=3,3 output_padding=2,1); " RESULT("r", "z"),
         "QuantizeLinear BytesConv UnblockBytes DepthToSpace Slice DequantizeLinear", 0.03},
        {"stride 1", "x:1,4,6,7; #w.i8:4,2,3,3; #sw=0.1; #zw.i8=0; " U8 CODED("x", "x")
         "wd = (DequantizeLinear w sw zw); r = (ConvTranspose xd wd pads=1,1,1,1); "
         RESULT("r", "z"), ENDS("QLinearConv Slice"), 0.03},
        {"codes before a pool that keeps them, as NNCF has them",
         "x:1,16,9,9; #w.i8:16,16,3,3; #sw=0.01; #zw.i8=0; " S8 CODED("x", "x")
         "p = (MaxPool xd kernel_shape=2,2); wd = (DequantizeLinear w sw zw); r = (Conv p wd); "
         RESULT("r", "z"),
         "QuantizeLinear MaxPool BlockBytes BytesConv UnblockSignedBytes DequantizeLinear",
         0.03},
        {"bounds within the codes, behind a product, as NNCF has them before a Concat",
         "x:1,16,9,9; #w.i8:16,16,3,3; #sw=0.01; #zw.i8=0; " U8 CODED("x", "x")
         "wd = (DequantizeLinear w sw zw); c = (Conv xd wd); r = (Relu c); " RESULT("r", "z"),
         "QuantizeLinear BlockBytes BytesConv UnblockBytes DequantizeLinear", 0.03},
        {"a convolution and LeakyRelu without codes in between, as NNCF leaves it",
         "x:1,16,9,9; #w.i8:16,16,3,3; #sw=0.01; #zw.i8=0; " U8 CODED("x", "x")
         "wd = (DequantizeLinear w sw zw); c = (Conv xd wd); "
         "r = (LeakyRelu c alpha=0.1); " RESULT("r", "z"),
         "QuantizeLinear BlockBytes BytesConvThrough UnblockBytes DequantizeLinear", 0.03},
        {"a convolution and its gate, likewise",
         "x:1,16,9,9; #w.i8:16,16,3,3; #sw=0.01; #zw.i8=0; " U8 CODED("x", "x")
         "wd = (DequantizeLinear w sw zw); c = (Conv xd wd); g = (Sigmoid c); "
         "r = (Mul c g); " RESULT("r", "z"),
         "QuantizeLinear BlockBytes BytesConvThrough UnblockBytes DequantizeLinear", 0.03},
        {"HardSwish behind it, and a convolution that reads the codes",
         "x:1,16,9,9; #w.i8:24,16,3,3; #v.i8:16,24,1,1; #sw=0.01; #zw.i8=0; " S8 CODED("x", "x")
         "wd = (DequantizeLinear w sw zw); vd = (DequantizeLinear v sw zw); c = (Conv xd wd); "
         "h = (HardSwish c); " CODED("h", "y") "r = (Conv hd vd); " RESULT("r", "z"),
         "QuantizeLinear BlockBytes BytesConvThrough BytesConv UnblockSignedBytes DequantizeLinear",
         0.03},
        {"Gelu, Mish, of three channels and of channels by themselves",
         "x:2,3,12,9; #w.i8:16,3,3,3; #v.i8:16,1,3,3; #sw=0.02; #zw.i8=0; #b:16; " U8
         CODED("x", "x") "wd = (DequantizeLinear w sw zw); vd = (DequantizeLinear v sw zw); "
         "c = (Conv xd wd b strides=2,2); g = (ms.Gelu c); " CODED("g", "y")
         "r = (Conv gd vd b group=16 pads=1,1,1,1); t = (Softplus r); u = (Tanh t); "
         "s = (Mul r u); " RESULT("s", "z"),
         "QuantizeLinear BytesConvThrough BytesConvThrough UnblockBytes DequantizeLinear", 0.03},
        {"PRelu of channels, before a sum",
         "x:1,16,9,9; #w.i8:16,16,1,1; #a:16,1,1; #sw=0.01; #zw.i8=0; " U8 CODED("x", "x")
         "wd = (DequantizeLinear w sw zw); c = (Conv xd wd); p = (PRelu c a); " CODED("p", "y")
         "r = (Add pd xd); " RESULT("r", "z"),
         "QuantizeLinear BlockBytes BytesConvThrough QLinearAdd UnblockBytes DequantizeLinear",
         0.03},
        {"PRelu of one slope", "x:1,16,9; #w.i8:10,16,3; #a=0.3; #sw=0.01; #zw.i8=0; " S8
         CODED("x", "x") "wd = (DequantizeLinear w sw zw); c = (Conv xd wd); p = (PRelu c a); "
         RESULT("p", "z"),
         "QuantizeLinear BlockBytes BytesConvThrough UnblockSignedBytes DequantizeLinear", 0.03},
        {"a function that others read, too", "x:1,16,9,9; #w.i8:16,16,3,3; #sw=0.01; #zw.i8=0; "
         U8 CODED("x", "x") "wd = (DequantizeLinear w sw zw); c = (Conv xd wd); "
         "r = (HardSwish c); " Q("rq", "r", "z") "s = (Neg r); " Q("sq", "s", "z")
         "j = (Concat rq sq axis=1); " DQ("y", "j", "z") "y",
         "QuantizeLinear BlockBytes BytesConvFloat HardSwish QuantizeLinear Neg QuantizeLinear "
         "Concat DequantizeLinear", 0.03},
        {"a mean of the largest", "x:2,16,9,9; " U8 CODED("x", "x")
         "p = (MaxPool xd kernel_shape=2,2); "
         "r = (AveragePool p kernel_shape=2,2 strides=2,2); " RESULT("r", "z"),
         ENDS("MaxPool QLinearAveragePool"), 0.03},
        {"a layer whose bias and result are floats", "x:5,24; #w.i8:10,24; "
         "#sw=0.01,0.02,0.03,0.01,0.02,0.03,0.01,0.02,0.03,0.01; #zw.i8=0,0,0,0,0,0,0,0,0,0; "
         "#b:10; " U8 CODED("x", "x") "wd = (DequantizeLinear w sw zw axis=0); "
         "y = (Gemm xd wd b transB=1); y", "QuantizeLinear MatMulIntegerToFloat", 1e-4},
        {"heads that are turned between codes and product", "x:2,5,4,8; w:2,5,4,8; " U8
         CODED("x", "x") CODED("w", "y") "a = (Transpose xd perm=0,2,1,3); "
         "b = (Transpose wd perm=0,2,3,1); r = (MatMul a b); " RESULT("r", "z"),
         "QuantizeLinear QuantizeLinear Transpose Transpose QLinearMatMul DequantizeLinear", 0.03},
        {"a sum of both", "x:2,3,50; w:2,3,50; " NNCF CODED("x", "x") CODED("w", "y")
         "r = (Add xd wd); " RESULT("r", "z"),
         "QuantizeLinear QuantizeLinear QLinearAdd DequantizeLinear", 0.6},
        {"a difference, as tf2onnx has tflite's", "x:2,3,50; w:2,3,50; " S8 CODED("x", "x")
         CODED("w", "y") "r = (Sub xd wd); " RESULT("r", "z"),
         "QuantizeLinear QuantizeLinear QLinearAdd DequantizeLinear", 0.03},
    };
    CHECK_SPELLINGS(rows);
}

/* Each step of an unrolled net depends on all before it: the region of one code ends nearby. */
static void unrolled(test_state *test)
{
    char text[6000] = "x:3,50; " U8 CODED("x", "x");
    size_t used = strlen(text);
    char names[2][16] = {"xd", ""};
    for (int i = 0; i < 14; i++) {
        char *next = names[(i + 1) & 1];
        snprintf(next, sizeof names[0], "d%d", i);
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "t%d = (Tanh %s); q%d = (QuantizeLinear t%d sz zz); "
                                 "u%d = (DequantizeLinear q%d sz zz); a%d = (Add %s u%d); "
                                 "p%d = (QuantizeLinear a%d sx zx); "
                                 "d%d = (DequantizeLinear p%d sx zx); ",
                                 i, names[i & 1], i, i, i, i, i, names[i & 1], i, i, i, i, i);
    }
    snprintf(text + used, sizeof text - used, "%s", names[0]);
    net n;
    CHECK(net_init(&n, NULL));
    net_text(&n, text);
    ort_session *s = net_session(&n, NULL, NULL);
    CHECK(s && !strstr(session_ops(s), "Tanh"));
    ort_session_free(s);
    net_free(&n);
}

/* Sums of whole numbers: the same bits on every tier. */
static void means(test_state *test)
{
    static const spelling rows[] = {
        {"a mean that tf2onnx writes for a pool", "x:2,5,7,9; " S8 CODED("x", "x")
         "r = (ReduceMean xd axes=2,3 keepdims=1); " RESULT("r", "z"), ENDS("CodeMean"), 0.03},
        {"the same squeezed", "x:2,5,7,9; " U8 CODED("x", "x")
         "r = (ReduceMean xd axes=2,3 keepdims=0); " RESULT("r", "z"), ENDS("CodeMean"), 0.03},
        {"a mean of tokens", "x:2,33,20; " U8 CODED("x", "x")
         "r = (ReduceMean xd axes=1, keepdims=0); " RESULT("r", "z"), ENDS("CodeMean"), 0.03},
        {"a mean of 16-bit codes", "x:2,5,7,9; " U16 MQ("xq", "x", "x") MDQ("xd", "xq", "x")
         "r = (GlobalAveragePool xd); " MQ("rq", "r", "z") MDQ("y", "rq", "z") "y",
         ENDS("CodeMean"), 0.0003},
        {"of windows with padding", "x:2,5,7,9; " S16 MQ("xq", "x", "x") MDQ("xd", "xq", "x")
         "r = (AveragePool xd kernel_shape=3,2 strides=2,1 pads=1,0,1,1); " MQ("rq", "r", "z")
         MDQ("y", "rq", "z") "y", ENDS("CodeAveragePool"), 0.0003},
        {"and of tokens, signed ones", "x:2,33,20; " S16 MQ("xq", "x", "x") MDQ("xd", "xq", "x")
         "r = (ReduceMean xd axes=1 keepdims=0); " MQ("rq", "r", "z") MDQ("y", "rq", "z") "y",
         ENDS("CodeMean"), 0.0003},
        {"a norm", "x:2,9,70; #g:70; #b:70; " S8 CODED("x", "x")
         "r = (LayerNormalization xd g b axis=-1); " RESULT("r", "z"), ENDS("CodeLayerNorm"), 0.03},
        {"a norm of quantized weights, as static quantization has them",
         "x:2,9,70; #g.i8:70; #b.i32:70; #sg=0.01; #sb=0.001; " U8 CODED("x", "x")
         "gd = (DequantizeLinear g sg); bd = (DequantizeLinear b sb); "
         "r = (LayerNormalization xd gd bd axis=-1); " RESULT("r", "z"), ENDS("CodeLayerNorm"),
         0.03},
    };
    CHECK_SPELLINGS(rows);
}

typedef struct told {
    int count;
    char text[256]; /* the last one */
} told;

static void tell(void *arg, const ort_pass *pass, const char *node, const char *condition)
{
    told *t = arg;
    t->count++;
    snprintf(t->text, sizeof t->text, "%s", condition);
}

/* What keeps a node in float is said. */
static void reasons(test_state *test)
{
    static const struct {
        const char *text, *reason; /* NULL: there is none */
    } rows[] = {
        {"x:3,50; w:3,50; " U8 CODED("x", "x") "r = (Add xd w); " RESULT("r", "z"),
         "not integer: input 1 isn't quantized"},
        {"x:1,4,9,9; " U16 MQ("xq", "x", "x") "xd = (DequantizeLinear xq sx zx); "
         "r = (MaxPool xd kernel_shape=2,2); rq = (QuantizeLinear r sz zz); "
         "y = (DequantizeLinear rq sz zz); y", "not integer: input 0 hasn't 8 bits"},
        {"x:3,50; w:3,50; s:1; " U8 CODED("x", "x") "wq = (QuantizeLinear w sy zy); "
         "wd = (DequantizeLinear wq s zy); r = (Add xd wd); " RESULT("r", "z"),
         "not integer: input 1 has a scale that isn't constant"},
        {"x:3,50; #s:50; #z.u8:50; " U8 "xq = (QuantizeLinear x s z axis=1); "
         "xd = (DequantizeLinear xq s z axis=1); r = (Softplus xd); " RESULT("r", "z"),
         "not integer: input 0 has several scales"},
        {"x:3,50; s:1; " U8 CODED("x", "x") "r = (Softplus xd); rq = (QuantizeLinear r s zz); "
         "y = (DequantizeLinear rq s zz); y",
         "not integer: the scale of its result isn't a constant of float32"},
        {"x:3,50; " U8 CODED("x", "x") "r = (CumSum xd 1); " RESULT("r", "z"),
         "not integer: no form on codes for these inputs"},
        {"x:2,6,50; " U8 CODED("x", "x") "c = (CumSum xd 1); s = (HardSwish c); "
         "a, b = (Split s axis=1); " CODED("a", "y") CODED("b", "z") "y = (Concat ad bd axis=1); y",
         "not integer behind it: codes begin after Split 'a', whose parts haven't one scale"},
        {"x:3,50; " U8 CODED("x", "x") "r = (Softplus xd); " RESULT("r", "z"), NULL},
    };
    static const char *const only[] = {"quant_tables", NULL};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        told heard = {0};
        ort_pass_options options = {.only = only, .near_miss = tell, .near_miss_arg = &heard};
        net n;
        CHECK(net_init(&n, NULL));
        net_text(&n, rows[i].text);
        options.registry = n.env->registry;
        CHECK(!ort_graph_infer(n.model->graph, n.env->registry, NULL, NULL));
        CHECK(!ort_passes_run(n.model, &options, NULL));
        CHECK_TEXT(heard.text, rows[i].reason ? rows[i].reason : "");
        CHECK(heard.count == (rows[i].reason != NULL));
        net_free(&n);
    }
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, tables);
    RUN(test, units);
    RUN(test, moves);
    RUN(test, wide_products);
    RUN(test, wide_convolutions);
    RUN(test, wide_windows);
    RUN(test, chains);
    RUN(test, attention);
    RUN(test, products);
    RUN(test, unrolled);
    RUN(test, means);
    RUN(test, reasons);
    return test->failures != 0;
}
