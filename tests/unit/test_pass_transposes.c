/* test_pass_transposes.c - regions of operators in another layout: what Transposes pass, what takes
 * them in, and where they stay. */
#include "rewrite.h"
#include "test.h"

/* What a converter makes of a net in NHWC: a Transpose on each side of what needs NCHW. */
#define INTO " perm=0,3,1,2); "
#define BACK " perm=0,2,3,1); "

static void regions(test_state *test)
{
    static const net_case cases[] = {
        /* between two convolutions: a constant by channel, a residual, an activation */
        {"x:1,2,6,5; #w:2,2,3,3; #c:2; a = (Conv x w pads=1,1,1,1); b = (Transpose a" BACK
         "d = (Mul b c); e = (Sigmoid d); f = (Add e b); g = (Transpose f" INTO
         "y = (Conv g w pads=1,1,1,1); y", "Conv Mul Sigmoid Add Conv"},
        /* along the channels: Concat, Split, Slice, Pad, Softmax, ReduceMean */
        {"x:1,4,6,5; r = (Relu x); b = (Transpose r" BACK "p,q = (Split b axis=3); "
         "d = (Concat q p axis=3); y = (Transpose d" INTO "y", "Relu Split Concat"},
        {"x:1,4,6,5; #s.i64=1,0; #e.i64=5,3; #a.i64=1,-1; #pads.i64=0,0,1,0,0,0,2,0; #v=0; "
         "r = (Relu x); b = (Transpose r" BACK "c = (Slice b s e a); d = (Pad c pads v); "
         "f = (Softmax d axis=3); y = (Transpose f" INTO "y", "Relu Slice Pad Softmax"},
        {"x:1,4,6,5; r = (Relu x); b = (Transpose r" BACK "m = (ReduceMean b axes=1,2); "
         "d = (Sub b m); y = (Transpose d" INTO "y", "Relu ReduceMean Sub"},
        /* dimensions that go need no Transpose at all */
        {"x:2,4,6,5; r = (Relu x); b = (Transpose r" BACK
         "y = (ReduceMax b axes=1,2 keepdims=0); z = (Exp y); z", "Relu ReduceMax Exp"},
        {"x:1,4,6,5; #a.i64=0,; b = (Transpose x" BACK "c = (Squeeze b a); d = (Unsqueeze c a); "
         "e = (Exp d); y = (Transpose e" INTO "y", "Exp"},
        /* both operands of a product change places */
        {"x:2,4,3; z:2,3,5; a = (Transpose x perm=0,2,1); b = (Transpose z perm=0,2,1); "
         "d = (Exp b); e = (Exp a); c = (MatMul d e); y = (Transpose c perm=0,2,1); y",
         "Exp Exp MatMul"},
        /* Resize: a list by dimension */
        {"x:1,2,3,4; #s=1,2,2,1; b = (Transpose x" BACK "c = (Resize b - s mode=nearest); "
         "y = (Transpose c" INTO "y", "Resize"},
        /* codes by channel */
        {"x:1,2,3,4; #s=0.5,0.25; r = (Relu x); b = (Transpose r" BACK
         "q = (QuantizeLinear b s axis=3); c = (DequantizeLinear q s axis=3); y = (Transpose c"
         INTO "y", "Relu QuantizeLinear DequantizeLinear"},
    };
    CHECK_CASES(cases, 1e-6);
}

/* Where nothing is saved nothing moves; where not all can be saved, what can. */
static void stay(test_state *test)
{
    static const net_case cases[] = {
        {"x:1,4,6,5; b = (Transpose x" BACK "y = (Relu b); y", "Transpose Relu"},
        /* to another permutation: one of both */
        {"x:1,4,6,5; b = (Transpose x" BACK "c = (Relu b); y = (Transpose c perm=0,2,1,3); y",
         "Relu Transpose"},
        /* an operator that knows its layout stands between */
        {"x:1,4,6,5; #w:4,6,1,1; b = (Transpose x" BACK "c = (Conv b w); y = (Transpose c" INTO
         "y", "Transpose Conv Transpose"},
        /* a large constant that others read as it is gets a Transpose: the file must not grow */
        {"x:1,4,6,5; #c:1,6,5,4; b = (Transpose x" BACK "d = (Add b c); y = (Transpose d" INTO
         "z:1,6,5,4; u = (Sub z c); y, u", "Transpose Add Sub"},
    };
    CHECK_CASES(cases, 0);
}

/* A large value moves while it is small: after what shrinks it. */
static void fewer_elements(test_state *test)
{
    static const net_case cases[] = {
        {"x:1,4,60,50; #a.i64=1,2; b = (Transpose x" BACK "y = (ReduceSum b a); z = (Relu y); z",
         "ReduceSum Transpose Relu"},
    };
    CHECK_CASES(cases, 1e-5);
}

/* ---- axes that come, go, part and join */

#define NHWC "x:n,4,2,3; b = (Transpose x" BACK

static void reshapes(test_state *test)
{
    static const net_case cases[] = {
        /* the pixels of an image joined and parted again */
        {"x:n,4,2,3; r = (Relu x); b = (Transpose r" BACK "#s.i64=0,6,4; c = (Reshape b s); "
         "d = (Tanh c); y = (Transpose d perm=0,2,1); y", "Relu Reshape Tanh"},
        {"x:n,6,4; a = (Transpose x perm=0,2,1); #s.i64=-1,4,2,3; c = (Reshape a s); "
         "d = (Tanh c); y = (Transpose d" BACK "y", "Reshape Tanh"},
        /* one row of the pooled */
        {NHWC "m = (ReduceMean b axes=1,2); c = (Flatten m); y = (Exp c); y",
         "ReduceMean Reshape Exp"},
        /* a gate: from one row back to an image of one pixel */
        {NHWC "m = (ReduceMax b axes=1,2 keepdims=0); #w:4,4; p = (MatMul m w); #s.i64=-1,1,1,4; "
         "q = (Reshape p s); d = (Mul b q); y = (Transpose d" INTO "y",
         "ReduceMax MatMul Reshape Mul"},
        /* an axis comes where the region wants it, and goes from there */
        {"x:n,6,4; #one.i64=1,; u = (Unsqueeze x one); b = (Transpose u" INTO "#w:4,4,1,3; "
         "c = (Conv b w pads=0,1,0,1); d = (Transpose c" BACK "e = (Squeeze d one); "
         "f = (Relu e); g = (Unsqueeze f one); h = (Transpose g" INTO
         "k = (Conv h w pads=0,1,0,1); k",
         "Unsqueeze Transpose Conv Squeeze Relu Unsqueeze Conv"},
        /* rows of the weights change places */
        {NHWC "c = (Flatten b); #w:24,3; #k:3; p = (MatMul c w); y = (Add p k); y",
         "Reshape Gemm"},
        {NHWC "#s.i64=-1,24; c = (Reshape b s); #w:3,24; y = (Gemm c w transB=1); y",
         "Reshape Gemm"},
    };
    CHECK_CASES(cases, 1e-5);
}

static void reshapes_that_stay(test_state *test)
{
    static const net_case cases[] = {
        /* channels join pixels; the row is a result; weights are an input; another operator */
        {NHWC "#s.i64=0,3,8; c = (Reshape b s); y = (Exp c); y", "Transpose Reshape Exp"},
        {NHWC "c = (Flatten b); #w:24,3; y = (MatMul c w); y, c", "Transpose Flatten MatMul"},
        {NHWC "c = (Flatten b); w:24,3; y = (MatMul c w); y", "Transpose Flatten MatMul"},
        {NHWC "c = (Flatten b); #w:24,3; y = (MatMul c w); z = (Softmax c); y, z",
         "Transpose Flatten MatMul Softmax"},
    };
    CHECK_CASES(cases, 1e-5);
}

/* ---- products */

static void products(test_state *test)
{
    static const net_case cases[] = {
        /* a matrix serves batches in any order; both change places for its other side */
        {"x:2,5,4; b = (Transpose x perm=1,0,2); #w:4,3; #k:3; p = (MatMul b w); q = (Add p k); "
         "y = (Transpose q perm=1,0,2); y", "MatMul Add"},
        {"x:2,5,4; b = (Transpose x perm=0,2,1); #w:5,3; #k:3; p = (MatMul b w); q = (Add p k); "
         "y = (Transpose q perm=0,2,1); y", "MatMul Add"},
        {"x:2,5,4; b = (Transpose x perm=0,2,1); #w:3,4; p = (MatMul w b); "
         "y = (Transpose p perm=0,2,1); y", "MatMul"},
        /* a matrix of 1 MB still turns, on either side */
        {"x:2,4,3; b = (Transpose x perm=0,2,1); #w:4,65536; p = (MatMul b w); q = (Relu p); "
         "y = (Transpose q perm=0,2,1); y", "MatMul Relu"},
        {"x:2,3,4; b = (Transpose x perm=0,2,1); #w:65536,4; p = (MatMul w b); q = (Relu p); "
         "y = (Transpose q perm=0,2,1); y", "MatMul Relu"},
        /* of two dimensions Gemm takes them, its result's as well */
        {"x:4,5; #w:4,3; #k:3; a = (Transpose x); g = (Gemm a w k); y = (Transpose g); y",
         "Gemm"},
        {"x:5,4; #w:4,3; g = (MatMul x w); y = (Transpose g); y", "Gemm"},
        /* letters change places */
        {"x:2,4,5; a = (Transpose x perm=0,2,1); #w:4,3; e = (Einsum a w equation=bij,jk->bik); "
         "y = (Transpose e perm=2,0,1); y", "Einsum"},
    };
    CHECK_CASES(cases, 1e-5);
}

static void products_that_stay(test_state *test)
{
    static const net_case cases[] = {
        /* the other side isn't constant; the channels are summed; C is an input; an ellipsis */
        {"x:2,5,4; w:5,3; b = (Transpose x perm=0,2,1); p = (MatMul b w); q = (Relu p); "
         "y = (Transpose q perm=0,2,1); y", "Transpose MatMul Relu Transpose"},
        /* a larger matrix keeps its order, in which the file has it */
        {"x:2,4,3; b = (Transpose x perm=0,2,1); #w:4,65537; p = (MatMul b w); q = (Relu p); "
         "y = (Transpose q perm=0,2,1); y", "Transpose MatMul Relu Transpose"},
        {"x:2,3,4; b = (Transpose x perm=0,2,1); #w:65537,4; p = (MatMul w b); q = (Relu p); "
         "y = (Transpose q perm=0,2,1); y", "Transpose MatMul Relu Transpose"},
        {NHWC "#w:4,5; p = (MatMul b w); y = (Transpose p" INTO "y",
         "Transpose MatMul Transpose"},
        {"x:5,4; #w:4,3; k:3; g = (Gemm x w k); y = (Transpose g); y", "Gemm Transpose"},
        {"x:5,4; #w:4,3; g = (MatMul x w); y = (Transpose g); y, g", "MatMul Transpose"},
        {"x:2,4,5; a = (Transpose x perm=0,2,1); #w:4,3; "
         "y = (Einsum a w equation=...j,jk->...k); y", "Transpose Einsum"},
    };
    CHECK_CASES(cases, 1e-5);
}

/* ---- lists by dimension */

static void lists(test_state *test)
{
    static const net_case cases[] = {
        {NHWC "#s.i64=2,1,1,4; m = (ReduceMax b axes=1,2); #t.i64=1,5,7,1; e = (Expand m t); "
         "y = (Transpose e" INTO "y", "ReduceMax Expand"},
        {NHWC "#k.i64=2,; v,w = (TopK b k axis=-1); y = (Transpose v" INTO "z = (Transpose w"
         INTO "y, z", "TopK"},
        /* one that is computed costs a Gather: for two Transposes, not for one */
        {NHWC "r.i64:4; t = (Tile b r); y = (Transpose t" INTO "y", "Gather Tile"},
        {NHWC "r.i64:4; y = (Tile b r); y", "Transpose Tile"},
        {NHWC "s = (Shape b); y = (Cast s to=1); y", "Shape Gather Cast"},
        {NHWC "s = (Shape b); y = (Cast s to=1); z = (Exp b); y, z", "Transpose Shape Cast Exp"},
    };
    CHECK_CASES(cases, 1e-5);
}

/* ---- elementwise operators of another domain; a bias lies along the last axis */

static void contrib(test_state *test)
{
    static const net_case cases[] = {
        {NHWC "c = (ms.QuickGelu b); d = (ms.FastGelu c); y = (Transpose d" INTO "y",
         "QuickGelu FastGelu"},
        {NHWC "#k=0.5; c = (ms.ScaledSiLU b k); y = (Transpose c" INTO "y", "ScaledSiLU"},
        {NHWC "#k=0.5,; c = (ms.ScaledSiLU b k); y = (Transpose c" INTO "y", "ScaledSiLU"},
        {NHWC "#k:4; c = (ms.BiasGelu b k); y = (Transpose c" INTO "y",
         "Transpose BiasGelu Transpose"},
        {"x:n,4,2,3; b = (Transpose x perm=1,2,0,3); #k:3; c = (ms.BiasGelu b k); "
         "y = (Transpose c perm=2,0,1,3); y", "BiasGelu"},
    };
    CHECK_CONTRIB_CASES(cases, 1e-5);
}

/* tf2onnx calls each node after its result; what is behind it now must be called otherwise. */
static void names(test_state *test)
{
    net n;
    ort_node *node;
    const char *seen = "";
    CHECK(net_init(&n, NULL));
    net_text(&n, "x:1,4,6,5; w:1,2,6,5; a = (Transpose x" BACK "b = (Transpose w" BACK
                 "y = (Concat a b axis=3); y");
    ORT_EACH_NODE(n.model->graph, node)
        node->name = n.model->graph->values.data[node->outputs[0]]->name;
    CHECK_TEXT(net_rewritten(&n, NULL, 0, 0), "Concat Transpose");
    ORT_EACH_NODE(n.model->graph, node)
    {
        CHECK(*node->name && strcmp(node->name, seen));
        seen = node->name;
    }
    net_free(&n);
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
    RUN(test, names);
    return test->failures != 0;
}
