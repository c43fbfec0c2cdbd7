/* test_pass_fusion.c - how exporters spell what is one operator: each spelling becomes it where the
 * file may hold it, computes what it did, and stays where a condition fails. */
#include "fusion.h"

/* ---- activations */

#define ERF "(Add (Erf (Div x 1.41421356)) 1)"
#define CUBE "(Add (Tanh (Mul (Add x (Mul (Pow x 3) 0.044715)) 0.79788456)) 1)"

static void activations(test_state *test)
{
    const fusion list[] = {
        {"y = (Mul (Mul x 0.5) " ERF ")", "2,8", 20, 0, "Gelu", 1, 0},
        {"y = (Mul x (Mul 0.5 " ERF "))", "2,8", 20, 0, "Gelu", 1, 0},
        {"y = (Div (Mul x " ERF ") 2)", "2,8", 20, 0, "Gelu", 1, 0},
        {"y = (Mul (Mul x 0.5) " ERF ")", "2,8", 19, 0, "!Gelu", 5, 0},
        {"y = (Mul (Mul x 0.5) " ERF ")", "2,8", 19, CONTRIB, "Gelu", 1, 0},
        {"y = (Mul (Mul x 0.5) " ERF ")", "2,8", 13, SESSION, "Gelu", 1, 0},
        {"y = (Mul (Mul x 0.5) " ERF ")", "2,8", 20, HALF, "Gelu", 1, 2e-3},
        {"y = (Mul (Mul x 0.6) " ERF ")", "2,8", 20, 0, "!Gelu", 5, 0},
        {"y = (Mul (Mul x 0.5) " CUBE ")", "2,8", 20, 0, "Gelu", 1, 0},
        {"y = (Mul (Mul x 0.5) " CUBE ")", "2,8", 17, CONTRIB, "FastGelu", 1, 0},
        {"y = (Mul x (Mul 0.5 (Add 1 (Tanh (Mul (Mul x 0.79788456) "
         "(Add 1 (Mul 0.044715 (Mul x x))))))))", "2,8", 20, 0, "Gelu", 1, 0},
        {"h = (Add x #b:8); y = (Mul (Mul h 0.5) (Add (Erf (Div h 1.41421356)) 1))", "2,8", 17,
         CONTRIB, "BiasGelu", 1, 0},
        {"y = (Gelu (Add x #b:8))", "2,8", 20, CONTRIB, "BiasGelu", 1, 0},
        {"y = (Gelu (Add #b:8 x) approximate=tanh)", "2,8", 20, CONTRIB, "FastGelu", 1, 0},
        {"y = (Gelu (Add #b:8 x) approximate=none)", "2,8", 20, CONTRIB, "BiasGelu", 1, 0},
        {"y = (ms.FastGelu (Add x #b:8))", "2,8", 17, CONTRIB, "FastGelu", 1, 0},
        {"y = (Gelu (Add x #b:8))", "2,8", 20, 0, "!BiasGelu", 2, 0},
        {"y = (Gelu (Add x #b:2,8))", "2,8", 20, CONTRIB, "!BiasGelu", 2, 0},
        {"y = (Mul x (Tanh (Softplus x)))", "2,8", 18, 0, "Mish", 1, 0},
        {"y = (Mul (Tanh (Log (Add 1 (Exp x)))) x)", "2,8", 18, 0, "Mish", 1, 0},
        {"y = (Mul x (Tanh (Softplus x)))", "2,8", 17, 0, "!Mish", 3, 0},
        {"y = (Mul x (Tanh (Softplus x)))", "2,8", 17, SESSION, "Mish", 1, 0},
        {"y = (Mul x (Tanh (Softplus (Neg x))))", "2,8", 18, 0, "!Mish", 4, 0},
        {"y = (Mul x (Sigmoid x))", "2,8", 24, CONTRIB, "Swish", 1, 0},
        {"y = (Mul x (Sigmoid (Mul x 1.702)))", "2,8", 23, CONTRIB, "QuickGelu", 1, 0},
        {"y = (Mul x (Sigmoid x))", "2,8", 23, 0, "!QuickGelu", 2, 0},
        {"y = (Div (Mul x (Clip (Add x 3.0) 0.0 6.0)) 6.0)", "2,8", 14, 0, "HardSwish", 1, 0},
        {"y = (Mul (Div (Clip (Add 3.0 x) 0.0 6.0) 6.0) x)", "2,8", 13, 0, "HardSigmoid", 2, 0},
        {"y = (Mul x (Div (Clip (Add x 3.0) min=0.0 max=6.0) 6.0))", "2,8", 10, 0, "HardSigmoid", 2,
         0},
        {"y = (Mul x (Div (Clip (Add x 3.0) min=0.0 max=6.5) 6.0))", "2,8", 10, 0, "!HardSigmoid",
         4, 0},
    };
    ALL(list);
}

/* ---- normalizations */

#define D "d:(Sub x (ReduceMean x axes=-1,))"
#define SQUARES(d) "(Sqrt (Add (ReduceMean (Pow " d " 2.0) axes=-1,) 0.00001))"

static void norms(test_state *test)
{
    const fusion list[] = {
        {"y = (Add (Mul (Div " D " " SQUARES("d") ") #g:8) #b:8)", "2,3,8", 17, 0,
         "LayerNormalization", 1, 1e-5},
        {"y = (Mul (Div " D " " SQUARES("d") ") #g:1,1,8)", "2,3,8", 17, 0, "LayerNormalization", 1,
         1e-5},
        {"y = (Div " D " " SQUARES("d") ")", "n,m,8", 17, 0, "LayerNormalization", 1, 1e-5},
        {"y = (Div " D " " SQUARES("d") ")", "2,8,n", 17, 0, "!LayerNormalization", 7, 1e-5},
        {"y = (Mul " D " (Pow (Add (ReduceMean (Mul d d) axes=-1,) 0.00001) -0.5))", "2,3,8", 17, 0,
         "LayerNormalization", 1, 1e-5},
        {"y = (Add (Mul (Div " D " " SQUARES("d") ") #g:8) #b:8)", "2,3,8", 16, 0,
         "!LayerNormalization", 9, 1e-5},
        {"y = (Mul (Mul x (Reciprocal (Sqrt (Add (ReduceMean (Pow x 2.0) [-1]) 0.00001)))) #g:8)",
         "2,3,8", 23, 0, "RMSNormalization", 1, 1e-5},
        {"y = (Div x (Sqrt (Add (ReduceMean (Mul x x) [-1]) 0.00001)))", "2,3,8", 23, 0,
         "RMSNormalization", 1, 1e-5},
        {"y = (Div x (Sqrt (Add (ReduceMean (Mul x x) [-2]) 0.00001)))", "2,3,8", 23, 0,
         "!RMSNormalization", 5, 1e-5},
        {"c = (Cast x to=1); y = (Mul (Cast (Mul c (Reciprocal (Sqrt (Add (ReduceMean (Pow c "
         "(Cast 2.0 to=1)) [-1]) (Cast 0.00001 to=1))))) to=10) #g:8)", "2,3,8", 23, HALF,
         "RMSNormalization", 1, 2e-3},
        {"c = (Cast x to=1); d = (Sub c (ReduceMean c [-1])); y = (Add (Mul (Cast (Div d (Sqrt "
         "(Add (ReduceMean (Mul d d) [-1]) (Cast 0.00001 to=1)))) to=10) #g:8) #b:8)", "2,3,8", 18,
         HALF, "LayerNormalization", 1, 4e-3},
        {"y = (Add (Mul (Div d:(Sub x (ReduceMean x [2 3])) (Sqrt (Add (ReduceMean (Mul d d) "
         "[2 3]) 0.00001))) #g:4,1,1) #b:1,4,1,1)", "2,4,3,5", 18, 0, "InstanceNormalization", 1,
         1e-5},
        {"y = (Div d:(Sub x (ReduceMean x [2 3])) (Sqrt (Add (ReduceMean (Mul d d) [2 3]) "
         "0.00001)))", "2,4,m,3", 18, 0, "InstanceNormalization", 1, 1e-5},
    };
    ALL(list);
}

static void group_norms(test_state *test)
{
    const char *const text = "y = (Add (Mul (Reshape (InstanceNormalization (Reshape x [0 2 -1]) "
                             "(Cast [1 1] to=1) (Cast [0 0] to=1) epsilon=0.001) (Shape x)) "
                             "#g:4,1,1) #b:4,1,1)";
    const fusion list[] = {
        {text, "n,4,3,5", 21, 0, "GroupNormalization", 1, 1e-5},
        {text, "n,4,3,5", 20, 0, "!GroupNormalization", -1, 1e-5},
        {text, "n,4,3,5", 20, SESSION, "GroupNormalization", 1, 1e-5},
        {"y = (Mul (Reshape (InstanceNormalization (Reshape x [0 2 -1]) (Cast [1 1] to=1) "
         "(Cast [0 0] to=1)) (Shape x)) #g:4,1)", "n,4,m", 21, 0, "GroupNormalization", 1, 1e-5},
        {"y = (Reshape (InstanceNormalization (Reshape x [0 2 -1]) (Cast [1 2] to=1) "
         "(Cast [0 0] to=1)) (Shape x))", "n,4,m", 21, 0, "!GroupNormalization", -1, 1e-5},
    };
    ALL(list);
}

/* A sum goes into its norm: in a session, and in a file whose opset has no operator for that. */
#define SUM "s = (Add (Add #bias:8 (Tanh x)) x); "
#define LAYER "y = (Add (LayerNormalization s #g:8 #b:8) x)"
#define SPELLED                                                                                    \
    "y = (Add (Add (Mul (Div d:(Sub s (ReduceMean s axes=-1,)) " SQUARES("d") ") #g:8) #b:8) x)"
#define ROOT "y = (Mul (Div s " SQUARES("s") ") #g:8)"

static void residuals(test_state *test)
{
    const fusion list[] = {
        {SUM LAYER, "1,3,8", 17, SESSION, "SkipLayerNormalization", 3, 1e-5},
        {SUM LAYER, "1,3,8", 17, CONTRIB, "!SkipLayerNormalization", 5, 1e-5},
        {"s = (Add (Tanh x) #bias:8); " LAYER, "1,3,8", 17, SESSION, "!SkipLayerNormalization", 4,
         1e-5},
        {SUM "y = (Add (LayerNormalization s #g:8 #b:8) s)", "1,3,8", 17, SESSION,
         "SkipLayerNormalization", 3, 1e-5},
        {SUM "c = (DynamicQuantizeLinear (LayerNormalization s #g:8 #b:8)); y = (Cast c to=1)",
         "1,3,8", 17, SESSION, "SkipLayerNormalization", 5, 0},
        {SUM SPELLED, "1,3,8", 13, CONTRIB, "SkipLayerNormalization", 3, 1e-5},
        {SUM SPELLED, "1,3,8", 13, 0, "!SkipLayerNormalization", 13, 1e-5},
        {SUM ROOT, "1,3,8", 17, CONTRIB, "SkipSimplifiedLayerNormalization", 2, 1e-5},
        {SUM "y = (Div s " SQUARES("s") ")", "1,3,8", 17, CONTRIB,
         "SkipSimplifiedLayerNormalization", 2, 1e-5},
        {SUM "y = (RMSNormalization s #g:8)", "1,3,8", 23, SESSION,
         "SkipSimplifiedLayerNormalization", 2, 1e-5},
    };
    ALL(list);
}

static void softmaxes(test_state *test)
{
    const fusion list[] = {
        {"e = (Exp (Sub x (ReduceMax x [-1]))); y = (Div e (ReduceSum e [-1]))", "2,3,8", 18, 0,
         "Softmax", 1, 0},
        {"e = (Exp x); y = (Div e (ReduceSum e [1]))", "2,3,8", 18, 0, "Softmax", 1, 0},
        {"e = (Exp x); y = (Div e (ReduceSum e [1] keepdims=0))", "3,3,3", 18, 0, "!Softmax", 3, 0},
        {"e = (Exp x); y = (Div e (ReduceSum e [1 2]))", "2,3,8", 18, 0, "!Softmax", 3, 0},
        {"e = (Exp x); y = (Div e (ReduceSum e axes=2,))", "2,3,8", 11, 0, "Softmax", 1, 0},
        {"e = (Exp x); y = (Div e (ReduceSum e axes=1,))", "2,3,8", 11, 0, "!Softmax", 3, 0},
        {"y = (Log (Softmax x axis=1))", "2,3,8", 18, 0, "LogSoftmax", 1, 0},
        {"d = (Sub x (ReduceMax x [-1])); y = (Sub d (Log (ReduceSum (Exp d) [-1])))", "2,3,8", 18,
         0, "LogSoftmax", 1, 0},
        {"y = (Sub x (ReduceLogSumExp x [-1]))", "2,3,8", 18, 0, "LogSoftmax", 1, 0},
    };
    ALL(list);
}

/* ---- products */

static void products(test_state *test)
{
    const fusion list[] = {
        {"y = (Mul (MatMul (Transpose x perm=0,2,1,) #w:2,3,4) 0.3)", "2,3,5", 17, CONTRIB,
         "FusedMatMul", 1, 0},
        {"y = (Mul (MatMul (Transpose x perm=0,2,1,) #w:2,3,4) 0.3)", "2,3,5", 17, 0,
         "!FusedMatMul", 3, 0},
        {"y = (MatMul (Div x 4.0) (Transpose (Mul x 3.0) perm=0,2,1,))", "2,3,5", 17, SESSION,
         "FusedMatMul", 1, 0},
        {"y = (MatMul (Transpose x) (Mul 0.5 (Transpose (Tanh x) perm=0,1,)))", "4,4", 17, 0,
         "Gemm", 2, 0},
        {"y = (MatMul (Transpose x perm=1,0,2,) #w:3,5,4)", "2,3,5", 17, CONTRIB, "FusedMatMul",
         1, 0},
        {"y = (MatMul (Transpose (Transpose x perm=0,2,1,) perm=2,0,1,) (Transpose #w:4,5,3 "
         "perm=1,2,0,))", "2,5,3", 17, CONTRIB, "FusedMatMul", 1, 0},
        {"y = (MatMul (Transpose x perm=1,0,2,) #w:5,4)", "2,3,5", 17, CONTRIB, "!FusedMatMul", 2,
         0},
        {"y = (MatMul (Transpose x perm=1,2,0,) #w:3,2,4)", "2,3,5", 17, CONTRIB, "!Transpose", 1,
         0},
        {"y = (MatMul (Transpose x perm=2,0,1,) #w:5,3,4)", "2,3,5", 17, CONTRIB, "!FusedMatMul",
         2, 0},
        {"t = (Transpose x perm=0,2,1,); y = (Add (MatMul t #w:2,3,3) t)", "2,3,5", 17, CONTRIB,
         "!FusedMatMul", 3, 0},
        {"y = (MatMul (Mul x #s:1,1,1,1) #w:2,5,4)", "2,3,5", 17, CONTRIB, "!FusedMatMul", 2, 0},
        {"y = (Mul (ms.FusedMatMul x #w:2,5,4 alpha=2.0) 0.3)", "2,3,5", 17, CONTRIB, "FusedMatMul",
         1, 0},
    };
    ALL(list);
}

/* Weights in blocks of 16 and 32 codes, of 40 rows, so that the last block isn't full. */
#define CODES "(Cast (Mul x 3.0) to=7)" /* some below and some beyond what is compared with */

static void one_hot_rows(test_state *test)
{
    static const fusion fusions[] = {
        {"y = (MatMul (Cast (Equal " CODES " [0 1 2 3]) to=1) #w:4,5)", "2,8,1", 17, 0, "Gather", 5,
         0},
        {"y = (MatMul (Cast (Equal [0 1 2 3] " CODES ") to=1) #w:4,5)", "n,1", 13, 0, "Gather", 5,
         0},
        {"y = (MatMul (Cast (Equal " CODES " [0 1 2 3]) to=1) #w:4,5)", "2,8,1", 12, 0, "!Gather",
         5, 0},
        {"y = (MatMul (Cast (Equal " CODES " [0 2 1 3]) to=1) #w:4,5)", "2,8,1", 17, 0, "!Gather",
         5, 0},
        {"y = (MatMul (Cast (Equal " CODES " [0 1 2 3]) to=1) #w:4,5)", "2,3,4", 17, 0, "!Gather",
         5, 0},
    };
    for (size_t i = 0; i < sizeof fusions / sizeof *fusions; i++)
        check_fusion(test, &fusions[i]);
}

static void blocked_weights(test_state *test)
{
    const fusion list[] = {
        {"y = (MatMul x (DequantizeLinear #w.i4:40,6 #s:3,6 axis=0 block_size=16))", "2,3,40", 21,
         CONTRIB, "MatMulNBits", 1, 1e-5},
        {"y = (MatMul x (DequantizeLinear #w.u4:40,6 #s:3,6 axis=0 block_size=16))", "2,3,40", 21,
         CONTRIB, "MatMulNBits", 1, 1e-5},
        {"y = (MatMul x (DequantizeLinear #w.u4:40,6 #s:3,6 #z.u4:3,6 axis=0 block_size=16))",
         "n,40", 21, SESSION, "MatMulNBits", 1, 1e-5},
        {"y = (MatMul x (DequantizeLinear #w.i8:40,6 #s:2,6 #z.i8:2,6 axis=0 block_size=32))",
         "n,40", 21, CONTRIB, "MatMulNBits", 1, 1e-5},
        {"y = (MatMul x (Transpose (DequantizeLinear #w.i4:6,40 #s:6,3 #z.i4:6,3 axis=-1 "
         "block_size=16)))", "n,40", 21, CONTRIB, "MatMulNBits", 1, 1e-5},
        {"y = (MatMul x (DequantizeLinear #w.i4:140,6 #s:3,6 #z.i4:3,6 axis=0 block_size=48))",
         "2,140", 21, CONTRIB, "MatMulNBits", 1, 1e-5},
        {"y = (MatMul x (Transpose (DequantizeLinear #w.u4:6,200 #s:6,3 axis=-1 block_size=96)))",
         "n,200", 21, CONTRIB, "MatMulNBits", 1, 1e-5},
        {"y = (MatMul x (DequantizeLinear #w.i4:40,6 #s:3,6 axis=0 block_size=16))", "2,3,40", 21,
         0, "!MatMulNBits", 2, 1e-5},
        {"y = (MatMul x (DequantizeLinear #w.i4:40,6 #s:5,6 axis=0 block_size=8))", "2,3,40", 21,
         CONTRIB, "!MatMulNBits", 2, 1e-5},
        {"y = (MatMul x (DequantizeLinear #w.i4:40,64 #s:40,2 axis=1 block_size=32))", "2,3,40",
         21, CONTRIB, "!MatMulNBits", 2, 1e-5},
    };
    ALL(list);
}

/* ---- embeddings: ids [B,S] are 0 and 1 */

#define IDS "ids = (Cast (Abs x) to=7); "
#define WORDS "(Gather #w:9,8 ids)"
#define TYPES "(Gather #t:2,8 ids)"
#define LENGTH "(Squeeze (Slice (Shape x) [1] [2]) [0])"
#define COUNTED "(Gather #p:5,8 (Unsqueeze (Range @0 " LENGTH " @1) [0]))"
#define NORMED(sum) "y = (LayerNormalization " sum " #g:8 #b:8 epsilon=0.001)"

static void embeddings(test_state *test)
{
    static const char *const spelled =
        IDS "d = (Sub s:(Add " WORDS " #p:1,3,8) (ReduceMean s axes=-1,)); y = (Add (Mul (Div d "
        SQUARES("d") ") #g:8) #b:8)";
    const fusion list[] = {
        {IDS NORMED("(Add (Add " WORDS " " TYPES ") #p:1,3,8)"), "n,3", 17, CONTRIB,
         "EmbedLayerNormalization", 4, 1e-5},
        {IDS NORMED("(Add (Add " WORDS " " TYPES ") #p:1,3,8)"), "n,3", 17, SESSION,
         "EmbedLayerNormalization", 4, 1e-5},
        {IDS NORMED("(Add (Add " WORDS " " TYPES ") #p:1,3,8)"), "n,3", 17, 0,
         "!EmbedLayerNormalization", -1, 1e-5},
        {IDS NORMED("(Add #p:3,8 (Add " WORDS " " TYPES "))"), "n,3", 17, CONTRIB,
         "EmbedLayerNormalization", 4, 1e-5},
        {IDS NORMED("(Add " TYPES " (Add " WORDS " " COUNTED "))"), "n,m", 17, CONTRIB,
         "EmbedLayerNormalization", 4, 1e-5},
        {IDS NORMED("(Add " WORDS " (Slice #p:5,8 [0] (Slice (Shape x) [1] [2]) [0]))"), "n,m", 17,
         CONTRIB, "!Slice", 4, 1e-5},
        {IDS NORMED("(Add " WORDS " (Gather #p:5,8 (Cast (Abs (Neg x)) to=6)))"), "n,m", 17,
         CONTRIB, "EmbedLayerNormalization", -1, 1e-5},
        {IDS "z = (Add (Add " WORDS " " TYPES ") #p:1,3,8); " NORMED("z"), "n,3", 17, CONTRIB,
         "EmbedLayerNormalization", 4, 1e-5},
        {IDS NORMED("(Add (Cast (Gather #w.f16:9,8 ids) to=1) (Cast (Gather #p.f16:3,8 [0 1 2]) "
                    "to=1))"),
         "n,3", 17, SESSION, "EmbedLayerNormalization", 4, 1e-5},
        {IDS NORMED("(Add (Cast (Gather #w.f16:9,8 ids) to=1) #p:1,3,8)"), "n,3", 17, SESSION,
         "EmbedLayerNormalization", 4, 1e-5},
        {IDS NORMED("(Add (Cast (Gather #w.f16:9,8 ids) to=1) #p:1,3,8)"), "n,3", 17, CONTRIB,
         "!EmbedLayerNormalization", -1, 1e-5},
        {spelled, "n,3", 16, CONTRIB, "EmbedLayerNormalization", 4, 1e-5},
        {spelled, "n,3", 16, 0, "!EmbedLayerNormalization", -1, 1e-5},
        {IDS NORMED("(Add (Add " WORDS " (Gather #t:2,8 (Expand @1 (Shape x)))) #p:1,3,8)"), "n,3",
         17, CONTRIB, "EmbedLayerNormalization", 4, 1e-5},
        {IDS NORMED("(Add (Add " WORDS " " COUNTED ") #r:8)"), "n,m", 17, CONTRIB,
         "EmbedLayerNormalization", 4, 1e-5},
        {IDS "p = (Identity #p:1,3,8); z = (Neg p); " NORMED("(Add (Add " WORDS " #r:8) p)"), "n,3",
         17, CONTRIB, "!EmbedLayerNormalization", -1, 1e-5},
        /* a term that is none, one that counts from 1, two that aren't told per token, RMS */
        {IDS NORMED("(Add (Add " WORDS " (Neg " TYPES ")) #p:1,3,8)"), "n,3", 17, CONTRIB,
         "!EmbedLayerNormalization", -1, 1e-5},
        {IDS NORMED("(Add " WORDS " (Slice #p:5,8 [1] (Add (Slice (Shape x) [1] [2]) [1]) [0]))"),
         "n,m", 17, CONTRIB, "!EmbedLayerNormalization", -1, 1e-5},
        {IDS NORMED("(Add (Add " WORDS " #q:1,3,8) (Slice #p:5,8 [0] (Slice (Shape x) [1] [2]) "
                    "[0]))"),
         "n,3", 17, CONTRIB, "!EmbedLayerNormalization", -1, 1e-5},
        {IDS "y = (RMSNormalization (Add " WORDS " #p:1,3,8) #g:8)", "n,3", 23, CONTRIB,
         "!EmbedLayerNormalization", -1, 1e-5},
    };
    ALL(list);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, activations);
    RUN(test, norms);
    RUN(test, embeddings);
    RUN(test, group_norms);
    RUN(test, residuals);
    RUN(test, softmaxes);
    RUN(test, products);
    RUN(test, one_hot_rows);
    RUN(test, blocked_weights);
    return test->failures != 0;
}
