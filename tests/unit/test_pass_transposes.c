/* test_pass_transposes.c - regions of operators in another layout: what Transposes pass, what takes
 * them in, and where they stay. */
#include "rewrite.h"
#include "test.h"

/* What a converter makes of a net in NHWC: a Transpose on each side of what needs NCHW. */
#define INTO " perm=0,3,1,2;"
#define BACK " perm=0,2,3,1;"

static void regions(test_state *test)
{
    static const net_case cases[] = {
        /* between two convolutions: a constant by channel, a residual, an activation */
        {"in x 1,2,6,5; f w 2,2,3,3; f c 2; Conv x w -> a pads=1,1,1,1; Transpose a -> b" BACK
         "Mul b c -> d; Sigmoid d -> e; Add e b -> f; Transpose f -> g" INTO
         "Conv g w -> y pads=1,1,1,1; out y", "Conv Mul Sigmoid Add Conv"},
        /* along the channels: Concat, Split, Slice, Pad, Softmax, ReduceMean */
        {"in x 1,4,6,5; Relu x -> r; Transpose r -> b" BACK "Split b -> p q axis=3;"
         "Concat q p -> d axis=3; Transpose d -> y" INTO "out y", "Relu Split Concat"},
        {"in x 1,4,6,5; i s 1,0; i e 5,3; i a 1,-1; i pads 0,0,1,0,0,0,2,0; fs v 0;"
         "Relu x -> r; Transpose r -> b" BACK "Slice b s e a -> c; Pad c pads v -> d;"
         "Softmax d -> f axis=3; Transpose f -> y" INTO "out y", "Relu Slice Pad Softmax"},
        {"in x 1,4,6,5; Relu x -> r; Transpose r -> b" BACK "ReduceMean b -> m axes=1,2;"
         "Sub b m -> d; Transpose d -> y" INTO "out y", "Relu ReduceMean Sub"},
        /* dimensions that go need no Transpose at all */
        {"in x 2,4,6,5; Relu x -> r; Transpose r -> b" BACK "ReduceMax b -> y axes=1,2 keepdims=0;"
         "Exp y -> z; out z", "Relu ReduceMax Exp"},
        {"in x 1,4,6,5; i a 0,; Transpose x -> b" BACK "Squeeze b a -> c; Unsqueeze c a -> d;"
         "Exp d -> e; Transpose e -> y" INTO "out y", "Exp"},
        /* both operands of a product change places */
        {"in x 2,4,3; in z 2,3,5; Transpose x -> a perm=0,2,1; Transpose z -> b perm=0,2,1;"
         "Exp b -> d; Exp a -> e; MatMul d e -> c; Transpose c -> y perm=0,2,1; out y",
         "Exp Exp MatMul"},
        /* Resize: a list by dimension */
        {"in x 1,2,3,4; f1 s 1,2,2,1; Transpose x -> b" BACK
         "Resize b - s -> c mode:=nearest; Transpose c -> y" INTO "out y", "Resize"},
        /* codes by channel */
        {"in x 1,2,3,4; f1 s 0.5,0.25; Relu x -> r; Transpose r -> b" BACK
         "QuantizeLinear b s -> q axis=3; DequantizeLinear q s -> c axis=3;"
         "Transpose c -> y" INTO "out y", "Relu QuantizeLinear DequantizeLinear"},
    };
    CHECK_CASES(cases, 1e-6);
}

/* Where nothing is saved nothing moves; where not all can be saved, what can. */
static void stay(test_state *test)
{
    static const net_case cases[] = {
        {"in x 1,4,6,5; Transpose x -> b" BACK "Relu b -> y; out y", "Transpose Relu"},
        /* to another permutation: one of both */
        {"in x 1,4,6,5; Transpose x -> b" BACK "Relu b -> c; Transpose c -> y perm=0,2,1,3; out y",
         "Relu Transpose"},
        /* an operator that knows its layout stands between */
        {"in x 1,4,6,5; f w 4,6,1,1; Transpose x -> b" BACK "Conv b w -> c;"
         "Transpose c -> y" INTO "out y", "Transpose Conv Transpose"},
        /* a large constant that others read as it is gets a Transpose: the file must not grow */
        {"in x 1,4,6,5; f c 1,6,5,4; Transpose x -> b" BACK "Add b c -> d; Transpose d -> y" INTO
         "in z 1,6,5,4; Sub z c -> u; out y u", "Transpose Add Sub"},
    };
    CHECK_CASES(cases, 0);
}

/* A large value moves while it is small: after what shrinks it. */
static void fewer_elements(test_state *test)
{
    static const net_case cases[] = {
        {"in x 1,4,60,50; i a 1,2; Transpose x -> b" BACK "ReduceSum b a -> y; Relu y -> z; out z",
         "ReduceSum Transpose Relu"},
    };
    CHECK_CASES(cases, 1e-5);
}

/* ---- axes that come, go, part and join */

#define NHWC "in x n,4,2,3; Transpose x -> b" BACK

static void reshapes(test_state *test)
{
    static const net_case cases[] = {
        /* the pixels of an image joined and parted again */
        {"in x n,4,2,3; Relu x -> r; Transpose r -> b" BACK "i s 0,6,4; Reshape b s -> c;"
         "Tanh c -> d; Transpose d -> y perm=0,2,1; out y", "Relu Reshape Tanh"},
        {"in x n,6,4; Transpose x -> a perm=0,2,1; i s -1,4,2,3; Reshape a s -> c; Tanh c -> d;"
         "Transpose d -> y" BACK "out y", "Reshape Tanh"},
        /* one row of the pooled */
        {NHWC "ReduceMean b -> m axes=1,2; Flatten m -> c; Exp c -> y; out y",
         "ReduceMean Reshape Exp"},
        /* a gate: from one row back to an image of one pixel */
        {NHWC "ReduceMax b -> m axes=1,2 keepdims=0; f w 4,4; MatMul m w -> p; i s -1,1,1,4;"
         "Reshape p s -> q; Mul b q -> d; Transpose d -> y" INTO "out y",
         "ReduceMax MatMul Reshape Mul"},
        /* an axis comes where the region wants it, and goes from there */
        {"in x n,6,4; i one 1,; Unsqueeze x one -> u; Transpose u -> b" INTO "f w 4,4,1,3;"
         "Conv b w -> c pads=0,1,0,1; Transpose c -> d" BACK "Squeeze d one -> e; Relu e -> f;"
         "Unsqueeze f one -> g; Transpose g -> h" INTO "Conv h w -> k pads=0,1,0,1; out k",
         "Unsqueeze Transpose Conv Squeeze Relu Unsqueeze Conv"},
        /* rows of the weights change places */
        {NHWC "Flatten b -> c; f w 24,3; f k 3; MatMul c w -> p; Add p k -> y; out y",
         "Reshape Gemm"},
        {NHWC "i s -1,24; Reshape b s -> c; f w 3,24; Gemm c w -> y transB=1; out y",
         "Reshape Gemm"},
    };
    CHECK_CASES(cases, 1e-5);
}

static void reshapes_that_stay(test_state *test)
{
    static const net_case cases[] = {
        /* channels join pixels; the row is a result; weights are an input; another operator */
        {NHWC "i s 0,3,8; Reshape b s -> c; Exp c -> y; out y", "Transpose Reshape Exp"},
        {NHWC "Flatten b -> c; f w 24,3; MatMul c w -> y; out y c", "Transpose Flatten MatMul"},
        {NHWC "Flatten b -> c; in w 24,3; MatMul c w -> y; out y", "Transpose Flatten MatMul"},
        {NHWC "Flatten b -> c; f w 24,3; MatMul c w -> y; Softmax c -> z; out y z",
         "Transpose Flatten MatMul Softmax"},
    };
    CHECK_CASES(cases, 1e-5);
}

/* ---- products */

static void products(test_state *test)
{
    static const net_case cases[] = {
        /* a matrix serves batches in any order; both change places for its other side */
        {"in x 2,5,4; Transpose x -> b perm=1,0,2; f w 4,3; f k 3; MatMul b w -> p; Add p k -> q;"
         "Transpose q -> y perm=1,0,2; out y", "MatMul Add"},
        {"in x 2,5,4; Transpose x -> b perm=0,2,1; f w 5,3; f k 3; MatMul b w -> p; Add p k -> q;"
         "Transpose q -> y perm=0,2,1; out y", "MatMul Add"},
        {"in x 2,5,4; Transpose x -> b perm=0,2,1; f w 3,4; MatMul w b -> p;"
         "Transpose p -> y perm=0,2,1; out y", "MatMul"},
        /* of two dimensions Gemm takes them, its result's as well */
        {"in x 4,5; f w 4,3; f k 3; Transpose x -> a; Gemm a w k -> g; Transpose g -> y; out y",
         "Gemm"},
        {"in x 5,4; f w 4,3; MatMul x w -> g; Transpose g -> y; out y", "Gemm"},
        /* letters change places */
        {"in x 2,4,5; Transpose x -> a perm=0,2,1; f w 4,3; Einsum a w -> e equation:=bij,jk->bik;"
         "Transpose e -> y perm=2,0,1; out y", "Einsum"},
    };
    CHECK_CASES(cases, 1e-5);
}

static void products_that_stay(test_state *test)
{
    static const net_case cases[] = {
        /* the other side isn't constant; the channels are summed; C is an input; an ellipsis */
        {"in x 2,5,4; in w 5,3; Transpose x -> b perm=0,2,1; MatMul b w -> p; Relu p -> q;"
         "Transpose q -> y perm=0,2,1; out y", "Transpose MatMul Relu Transpose"},
        {NHWC "f w 4,5; MatMul b w -> p; Transpose p -> y" INTO "out y",
         "Transpose MatMul Transpose"},
        {"in x 5,4; f w 4,3; in k 3; Gemm x w k -> g; Transpose g -> y; out y", "Gemm Transpose"},
        {"in x 5,4; f w 4,3; MatMul x w -> g; Transpose g -> y; out y g", "MatMul Transpose"},
        {"in x 2,4,5; Transpose x -> a perm=0,2,1; f w 4,3;"
         "Einsum a w -> y equation:=...j,jk->...k; out y", "Transpose Einsum"},
    };
    CHECK_CASES(cases, 1e-5);
}

/* ---- lists by dimension */

static void lists(test_state *test)
{
    static const net_case cases[] = {
        {NHWC "i s 2,1,1,4; ReduceMax b -> m axes=1,2; i t 1,5,7,1; Expand m t -> e;"
         "Transpose e -> y" INTO "out y", "ReduceMax Expand"},
        {NHWC "i k 2,; TopK b k -> v w axis=-1; Transpose v -> y" INTO "Transpose w -> z" INTO
         "out y z", "TopK"},
        /* one that is computed costs a Gather: for two Transposes, not for one */
        {NHWC "ini r 4; Tile b r -> t; Transpose t -> y" INTO "out y", "Gather Tile"},
        {NHWC "ini r 4; Tile b r -> y; out y", "Transpose Tile"},
        {NHWC "Shape b -> s; Cast s -> y to=1; out y", "Shape Gather Cast"},
        {NHWC "Shape b -> s; Cast s -> y to=1; Exp b -> z; out y z", "Transpose Shape Cast Exp"},
    };
    CHECK_CASES(cases, 1e-5);
}

/* ---- elementwise operators of another domain; a bias lies along the last axis */

static void contrib(test_state *test)
{
    static const net_case cases[] = {
        {NHWC "ms.QuickGelu b -> c; ms.FastGelu c -> d; Transpose d -> y" INTO "out y",
         "QuickGelu FastGelu"},
        {NHWC "fs k 0.5; ms.ScaledSiLU b k -> c; Transpose c -> y" INTO "out y", "ScaledSiLU"},
        {NHWC "f1 k 0.5; ms.ScaledSiLU b k -> c; Transpose c -> y" INTO "out y", "ScaledSiLU"},
        {NHWC "f k 4; ms.BiasGelu b k -> c; Transpose c -> y" INTO "out y",
         "Transpose BiasGelu Transpose"},
        {"in x n,4,2,3; Transpose x -> b perm=1,2,0,3; f k 3; ms.BiasGelu b k -> c;"
         "Transpose c -> y perm=2,0,1,3; out y", "BiasGelu"},
    };
    CHECK_CONTRIB_CASES(cases, 1e-5);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, regions);
    RUN(test, stay);
    RUN(test, fewer_elements);
    RUN(test, reshapes);
    RUN(test, reshapes_that_stay);
    RUN(test, products);
    RUN(test, products_that_stay);
    RUN(test, lists);
    RUN(test, contrib);
    return test->failures != 0;
}
