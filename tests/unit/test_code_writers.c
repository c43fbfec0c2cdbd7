/* test_code_writers.c - small nets in the spelling of each writer that doesn't run here: all of it
 * on codes. Those of onnxruntime and NNCF are written by themselves
 * (tests/tools/check_spellings.py). */
#include "code_regions.h"

#define ZEROS16 "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0"
#define SCALES4 "0.02,0.03,0.01,0.02"
#define EACH16 "#sw=" SCALES4 "," SCALES4 "," SCALES4 "," SCALES4 "; "
#define FOLDED(y, x, s, z) y "q = (QuantizeLinear " x " " s " " z " axis=0); "                     \
                           y "d = (DequantizeLinear " y "q " s " " z " axis=0); "

static void exporters(test_state *test)
{
    static const spelling rows[] = {
        {"PyTorch's quantization-aware training: fake quantization of float weights, float biases",
         "x:1,3,16,16; #w:16,3,3,3; #b:16; #v:16,16,3,3; #e:16; #f:10,16; #g:10; " EACH16
         "#zw.i8=" ZEROS16 "; #sf=0.02; #zf.i8=0; " U8 CODED("x", "x") FOLDED("w", "w", "sw", "zw")
         "c = (Conv xd wd b strides=2,2 pads=1,1,1,1); k = (Relu c); " CODED("k", "y")
         FOLDED("v", "v", "sw", "zw") "d = (Conv kd vd e pads=1,1,1,1); " CODED("d", "z")
         "a = (Add dd kd); l = (Relu a); " CODED("l", "z") "p = (GlobalAveragePool ld); "
         CODED("p", "z") "h = (Flatten pd axis=1); fq = (QuantizeLinear f sf zf); "
         "fd = (DequantizeLinear fq sf zf); r = (Gemm h fd g transB=1); " RESULT("r", "z"),
         "QuantizeLinear BytesConv BytesConv BytesMean UnblockBytes Flatten QGemm "
         "DequantizeLinear", 0.03},
        {"torchao by torch.export: int8 everywhere, codes of weights, permuted linear weights",
         "x:1,16,8,8; #w.i8:16,16,1,1; #b:16; #f.i8:10,16; #g:10; " EACH16 "#zw.i8=" ZEROS16 "; "
         "#sf=0.01,0.02,0.03,0.01,0.02,0.03,0.01,0.02,0.03,0.01; #zf.i8=0,0,0,0,0,0,0,0,0,0; "
         S8 CODED("x", "x") "wd = (DequantizeLinear w sw zw axis=0); c = (Conv xd wd b); "
         "k = (HardSwish c); " CODED("k", "y") "m = (ReduceMean kd axes=2,3 keepdims=1); "
         CODED("m", "y") "#to.i64=1,16; h = (Reshape md to); "
         "fd = (DequantizeLinear f sf zf axis=0); t = (Transpose fd perm=1,0); "
         "n = (MatMul h t); r = (Add n g); " RESULT("r", "z"),
         "QuantizeLinear BlockBytes BytesConvThrough CodeMean UnblockSignedBytes Reshape QGemm "
         "DequantizeLinear", 0.03},
        {"tf2onnx of tflite: channels last between transposes, biases of int32 codes",
         "x:1,9,8,16; #w.i8:16,16,3,3; #b.i32:16; #v.i8:16,1,3,3; " EACH16
         "#sb=0.0004,0.0006,0.0002,0.0004,0.0004,0.0006,0.0002,0.0004,0.0004,0.0006,0.0002,0.0004,"
         "0.0004,0.0006,0.0002,0.0004; #zw.i8=" ZEROS16 "; #zb.i32=" ZEROS16 "; " S8
         CODED("x", "x") "wd = (DequantizeLinear w sw zw axis=0); "
         "bd = (DequantizeLinear b sb zb axis=0); a = (Transpose xd perm=0,3,1,2); "
         "c = (Conv a wd bd pads=0,0,1,1 strides=2,2); n = (Transpose c perm=0,2,3,1); "
         CODED("n", "y") "vd = (DequantizeLinear v sw zw axis=0); "
         "e = (Transpose nd perm=0,3,1,2); d = (Conv e vd group=16 pads=1,1,1,1); "
         "o = (Transpose d perm=0,2,3,1); " CODED("o", "z") "k = (Add od nd); " CODED("k", "z")
         "r = (ReduceMean kd axes=1,2 keepdims=0); " RESULT("r", "z"),
         "QuantizeLinear Transpose BlockBytes BytesConv BytesConv UnblockSignedBytes CodeMean "
         "DequantizeLinear", 0.03},
    };
    CHECK_SPELLINGS(rows);
}

/* PyTorch's torch.ao.quantization in training: fbgemm's codes of 7 bits, cut by a Clip of codes;
 * BatchNormalization behind the convolution, whose weights were scaled for it and whose result is
 * divided again; linear layers of three dimensions. */
static void trained(test_state *test)
{
    static const spelling rows[] = {
        {"codes of 7 bits", "x:1,3,16,16; #w:16,3,3,3; #b:16; #most.u8=127; " EACH16
         "#zw.i8=" ZEROS16 "; " P("x", "0.04", "u8", "64") P("y", "0.03", "u8", "0")
         "xc = (QuantizeLinear x sx zx); xq = (Clip xc - most); " DQ("xd", "xq", "x")
         FOLDED("w", "w", "sw", "zw") "c = (Conv xd wd b pads=1,1,1,1); k = (Relu c); "
         "kc = (QuantizeLinear k sy zy); kq = (Clip kc - most); " DQ("y", "kq", "y") "y",
         "QuantizeLinear LookUp BytesConv UnblockBytes DequantizeLinear", 0.03},
        {"the norm behind, and the factor that is taken back",
         "x:1,3,16,16; #w:16,3,3,3; #f:1,16,1,1; #g:16; #h:16; #m:16; #v=" SCALES4 "," SCALES4 ","
         SCALES4 "," SCALES4 "; " EACH16 "#zw.i8=" ZEROS16 "; " U8 CODED("x", "x")
         FOLDED("w", "w", "sw", "zw") "c = (Conv xd wd pads=1,1,1,1); d = (Div c f); "
         "n = (BatchNormalization d g h m v); k = (Relu n); " RESULT("k", "y"),
         "QuantizeLinear BytesConv UnblockBytes DequantizeLinear", 0.03},
        {"the same behind what doubles the size, and behind a layer",
         "x:1,16,5,6; #w.i8:16,8,2,2; #g:8; #h:8; #m:8; #v=" SCALES4 "," SCALES4 "; #sw=0.01; "
         "#zw.i8=3; " U8 CODED("x", "x") "wd = (DequantizeLinear w sw zw); "
         "c = (ConvTranspose xd wd strides=2,2); n = (BatchNormalization c g h m v); "
         RESULT("n", "z"),
         "QuantizeLinear BlockBytes BytesConv UnblockBytes DepthToSpace DequantizeLinear", 0.03},
        {"factors of a layer's results", "x:5,24; #w.i8:10,24; #f:10; #b:10; "
         "#sw=0.01,0.02,0.03,0.01,0.02,0.03,0.01,0.02,0.03,0.01; #zw.i8=0,0,0,0,0,0,0,0,0,0; " U8
         CODED("x", "x") "wd = (DequantizeLinear w sw zw axis=0); m = (Gemm xd wd b transB=1); "
         "r = (Mul f m); " RESULT("r", "z"), ENDS("QGemm"), 0.03},
        {"a residual behind it, without codes in between",
         "x:1,16,9,9; #w:16,16,3,3; #g:16; #h:16; #m:16; #v=" SCALES4 "," SCALES4 "," SCALES4 ","
         SCALES4 "; " EACH16 "#zw.i8=" ZEROS16 "; " U8 CODED("x", "x") FOLDED("w", "w", "sw", "zw")
         "c = (Conv xd wd pads=1,1,1,1); n = (BatchNormalization c g h m v); a = (Add n xd); "
         "k = (Relu a); " RESULT("k", "y"),
         "QuantizeLinear BlockBytes BytesConvFloat CodeChain DequantizeLinear", 0.03},
        {"weights of a layer by results, behind a Clip of codes",
         "x:2,3,256; #w:16,256; #b:16; #most.u8=127; " EACH16 "#zw.i8=" ZEROS16 "; " U8
         "xc = (QuantizeLinear x sx zx); xq = (Clip xc - most); " DQ("xd", "xq", "x")
         FOLDED("w", "w", "sw", "zw") "t = (Transpose wd perm=1,0); "
         "m = (MatMul xd t); r = (Add b m); " RESULT("r", "z"),
         "QuantizeLinear LookUp CodeMatMul DequantizeLinear", 0.03},
    };
    CHECK_SPELLINGS(rows);
}

/* Brevitas, Quark, AIMET and tf2onnx: factors of means, means that are flattened before they are
 * codes, PRelu with a slope for each channel. */
static void means_and_slopes(test_state *test)
{
    static const spelling rows[] = {
        {"a factor behind a mean, as Brevitas and Quark have it", "x:2,16,8,8; " U8 CODED("x", "x")
         "p = (AveragePool xd kernel_shape=3,3 pads=1,1,1,1 count_include_pad=1); "
         "r = (Mul p 0.984375); " RESULT("r", "z"), ENDS("QLinearAveragePool"), 0.03},
        {"behind a mean of the largest", "x:2,16,8,8; " U8 CODED("x", "x")
         "m = (MaxPool xd kernel_shape=2,2 strides=2,2); p = (GlobalAveragePool m); "
         "r = (Div p 1.1); " RESULT("r", "z"), ENDS("MaxPool QLinearGlobalAveragePool"), 0.03},
        {"scores of attention", "x:2,4,8; w:2,8,5; " U8 CODED("x", "x") CODED("w", "y")
         "m = (MatMul xd wd); r = (Mul m 0.35355338); " RESULT("r", "z"),
         "QuantizeLinear QuantizeLinear QLinearMatMul DequantizeLinear", 0.03},
        {"a mean of joined channels, flattened before it is codes", "x:2,16,8,8; " U8
         CODED("x", "x") "m = (MaxPool xd kernel_shape=2,2 strides=2,2); "
         "p = (AveragePool m kernel_shape=3,3 pads=1,1,1,1); " CODED("p", "x")
         "j = (Concat m pd axis=1); g = (GlobalAveragePool j); f = (Flatten g axis=1); "
         RESULT("f", "z"),
         ENDS("MaxPool QLinearAveragePool Concat QLinearGlobalAveragePool Flatten"), 0.03},
        {"a slope of each channel", "x:2,5,9,8; #a:5,1,1; " U8 CODED("x", "x")
         "r = (PRelu xd a); " RESULT("r", "z"), ENDS("LookUpEach"), 0.03},
        {"the same, and a table behind", "x:2,5,40; #a:5,1; " S8
         CODED("x", "x") "p = (PRelu xd a); " CODED("p", "y") "t = (Tanh pd); " RESULT("t", "z"),
         ENDS("LookUpEach LookUp"), 0.03},
        {"factors of channels", "x:2,5,40; #a:5,1; #b:1,5,1; " S8 CODED("x", "x")
         "m = (Mul a xd); s = (Add m b); r = (HardSwish s); " RESULT("r", "z"), ENDS("LookUpEach"),
         0.03},
    };
    CHECK_SPELLINGS(rows);
}

/* Codes of biases that onnxruntime's dynamic quantizer has made in the run, and codes behind. */
static void made_in_the_run(test_state *test)
{
    static const spelling rows[] = {
        {"a convolution", "x:1,16,9,9; #w.i8:16,16,3,3; #wz.i8=0; #ws=0.01; #b:16; "
         "#by.i64=1,-1,1,1; " U8 "q, s, z = (DynamicQuantizeLinear x); both = (Mul s ws); "
         "n = (ConvInteger q w z wz); d = (Div b both); f = (Floor d); c = (Cast f to=6); "
         "k = (Reshape c by); a = (Add n k); e = (Cast a to=1); r = (Mul e both); "
         RESULT("r", "z"),
         "DynamicQuantizeLinear Mul ElementwiseChain Cast Reshape BlockBytes BytesConvFloat "
         "QuantizeLinear DequantizeLinear", 0.03},
    };
    CHECK_SPELLINGS(rows);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, exporters);
    RUN(test, trained);
    RUN(test, means_and_slopes);
    RUN(test, made_in_the_run);
    return test->failures != 0;
}
