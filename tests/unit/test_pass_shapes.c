/* test_pass_shapes.c - shapes that are computed become constants, Reshapes around what works on
 * rows go, and Transposes that are their own inverse: what fits, what stays, a second run finds
 * nothing, the same results. */
#include "rewrite.h"
#include "test.h"

#define BATCH                                                                                      \
    "#zero.i64=0; #one.i64=1,; s = (Shape x); b = (Gather s zero); "                               \
    "#a0.i64=0,; ub = (Unsqueeze b a0); "

/* What Expand is told through Shape, Concat, Equal and Where, as exporters of torch do. */
static void expands(test_state *test)
{
    static const net_case cases[] = {
        {"x:n,2,1,m,4; " BATCH "#two.i64=2,; #four.i64=4,; #three.i64=3; t = (Gather s three); "
         "ut = (Unsqueeze t a0); want = (Concat ub two two ut four axis=0); e = (Expand x want); "
         "y = (Neg e); y", "Expand Neg"},
        {"x:2,1,4; z:2,n,4; want = (Shape z); y = (Expand x want); y", "Shape Expand"},
        {"x:2,3; want.i64:2; y = (Expand x want); y", "Expand"},
    };
    CHECK_CASES(cases, 0);
}

/* What is repeated for an operator that repeats it anyway. */
static void spreads(test_state *test)
{
    static const net_case cases[] = {
        {"x:n,1; z:n,3; want = (Shape z); e = (Expand x want); y = (Add e z); y", "Add"},
        {"x:n,1; z:n,3; want = (Shape z); e = (Expand x want); y = (Max e z); y", "Max"},
        {"x:n,1; z:n,3; want = (Shape z); e = (Expand x want); y = (PRelu z e); y", "PRelu"},
        {"x:n,1; z:n,3; want = (Shape z); e = (Expand x want); y = (PRelu e z); y", "Expand PRelu"},
        {"x:n,1; z:n,3; want = (Shape z); e = (Expand x want); y = (CastLike e z); y",
         "Expand CastLike"},
        {"x:n,1,4; z:n,3,4; want = (Shape z); e = (Expand x want); c = (Less e z); "
         "y = (Where c z e); y", "Less Where"},
        {"x:n,3; s = (Shape x); #zero.i64=0,; k = (Expand zero s); #w:2,4; g = (Gather w k); "
         "#last.i64=-1,; u = (Unsqueeze x last); #wide.i64=1,1,4; v = (Expand u wide); "
         "z = (Tanh v); y = (Add z g); y", "Unsqueeze Expand Tanh Add"},
        /* the other operand is repeated, too; rows that differ */
        {"x:n,1; z:1,3; a = (Shape x); b = (Shape z); #zero.i64=0,; #one.i64=1,; "
         "r = (Slice a zero one); #two.i64=2,; s = (Slice b one two); "
         "want = (Concat r s axis=0); e = (Expand x want); o = (Expand z want); y = (Add e o); y",
         "Add"},
        {"x:n,1; z:n,1; #want.i64=1,3; e = (Expand x want); y = (Add e z); y", "Expand Add"},
        /* elementwise, and doesn't broadcast */
        {"x:n,1; z:n,3; #want.i64=1,3; e = (Expand x want); y = (SwiGLU z e); y", "Expand SwiGLU",
         .opset = 28},
    };
    CHECK_CASES(cases, 0);
}

#define ROWS "#w:4,5; #flat.i64=-1,4; #back.i64=2,-1,5;"

static void products_of_rows(test_state *test)
{
    static const net_case cases[] = {
        {"x:2,n,4; " ROWS "r = (Reshape x flat); m = (MatMul r w); y = (Reshape m back); y",
         "MatMul"},
        {"x:2,3,4; " ROWS "r = (Reshape x flat); a = (Relu r); m = (MatMul a w); t = (Tanh m); "
         "y = (Reshape t back); y", "Relu MatMul Tanh"},
        /* two products of the same rows; rows that others read */
        {"x:2,3,4; " ROWS "r = (Reshape x flat); m = (MatMul r w); a = (Reshape m back); "
         "o = (Neg r); q = (MatMul o w); b = (Reshape q back); y = (Add a b); y",
         "MatMul Neg MatMul Add"},
        {"x:2,3,4; " ROWS "r = (Reshape x flat); m = (MatMul r w); y = (Reshape m back); "
         "z = (ReduceSum r keepdims=0); y, z", "Reshape ReduceSum MatMul"},
        /* rows parted in another way, an inner value with another reader, no constant matrix,
         * columns that change */
        {"x:2,3,4; " ROWS "#other.i64=3,2,5; r = (Reshape x flat); m = (MatMul r w); "
         "y = (Reshape m other); y", "Reshape MatMul Reshape"},
        {"x:2,3,4; " ROWS "r = (Reshape x flat); m = (MatMul r w); y = (Reshape m back); y, m",
         "Reshape MatMul Reshape"},
        {"x:2,3,4; u:4,5; " ROWS "r = (Reshape x flat); m = (MatMul r u); y = (Reshape m back); "
         "y", "Reshape MatMul Reshape"},
        {"x:2,3,4; #w:2,5; #flat.i64=-1,2; #back.i64=2,3,10; r = (Reshape x flat); "
         "m = (MatMul r w); y = (Reshape m back); y", "Reshape MatMul Reshape"},
        {"x:2,3,4; #flat.i64=6,4; #back.i64=2,3,4; r = (Reshape x flat); a = (Relu r); "
         "m = (Softmax a axis=0); y = (Reshape m back); y", "Reshape Relu Softmax Reshape"},
    };
    CHECK_CASES(cases, 0);
}

/* A permutation that is its own inverse: the second Transpose leaves what the first enters. */
static void swapped_twice(test_state *test)
{
    static const net_case cases[] = {
        {"x:2,3,4; t = (Transpose x perm=0,2,1); r = (Relu t); u = (Transpose r perm=0,2,1); "
         "y = (Neg u); y", "Relu Neg"},
        {"x:2,3,4; z:2,3,4; t = (Transpose x perm=0,2,1); s = (Transpose z perm=0,2,1); "
         "a = (Add t s); p = (Softmax a axis=1); y = (Transpose p perm=0,2,1); y",
         "Add Softmax"},
        {"x:2,3,4; t = (Transpose x perm=0,2,1); r = (Relu t); u = (Transpose r perm=0,2,1); "
         "n = (Neg u); v = (Transpose n perm=0,2,1); w = (Tanh v); y = (Transpose w perm=0,2,1); "
         "y",
         "Relu Neg Tanh"},
        /* the value between is wanted as it is; nothing stands between; another permutation */
        {"x:2,3,4; t = (Transpose x perm=0,2,1); r = (Relu t); u = (Transpose r perm=0,2,1); "
         "y = (Neg u); y, r", "Relu Neg Transpose"},
        {"x:2,3,4; t = (Transpose x perm=0,2,1); y = (Relu t); y", "Transpose Relu"},
        {"x:2,3,3; t = (Transpose x perm=0,2,1); r = (Relu t); y = (Transpose r perm=1,0,2); y",
         "Relu Transpose"},
    };
    CHECK_CASES(cases, 1e-6);
}

/* A transposition while dimensions are folded. */
static void folded_transposes(test_state *test)
{
    static const net_case cases[] = {
        {"x:2,3,4,5; #fold.i64=-1,4,5; #back.i64=2,3,5,4; r = (Reshape x fold); "
         "t = (Transpose r perm=0,2,1); u = (Reshape t back); y = (Neg u); y", "Transpose Neg"},
        {"x:n,3,m,5; s = (Shape x); #mid.i64=2,; #three.i64=3,; #five.i64=5,; #minus.i64=-1,; "
         "t1 = (Slice s mid three); fold = (Concat minus t1 five axis=0); r = (Reshape x fold); "
         "t = (Transpose r perm=0,2,1); #zero.i64=0,; #two.i64=2,; lead = (Slice s zero two); "
         "back = (Concat lead five t1 axis=0); u = (Reshape t back); y = (Neg u); y",
         "Transpose Neg"},
        {"x:2,3,4,5; #fold.i64=2,-1,5; #back.i64=5,3,4,2; r = (Reshape x fold); "
         "t = (Transpose r perm=2,1,0); u = (Reshape t back); y = (Neg u); y", "Transpose Neg"},
        /* which dimension is folded is ambiguous */
        {"x:2,1,3,5; #fold.i64=-1,3,5; #back.i64=2,1,5,3; r = (Reshape x fold); "
         "t = (Transpose r perm=0,2,1); u = (Reshape t back); y = (Neg u); y", "Transpose Neg"},
        /* a row of more: its 1 goes before; not where it is elsewhere */
        {"x:1,2,3,4,5; #fold.i64=-1,4,5; #back.i64=2,3,5,4; r = (Reshape x fold); "
         "t = (Transpose r perm=0,2,1); u = (Reshape t back); y = (Neg u); y",
         "Squeeze Transpose Neg"},
        {"x:2,1,3,4,5; #fold.i64=-1,4,5; #back.i64=2,3,5,4; r = (Reshape x fold); "
         "t = (Transpose r perm=0,2,1); u = (Reshape t back); y = (Neg u); y",
         "Reshape Transpose Reshape Neg"},
        /* what others read stays, and another unfolding, and another fold */
        {"x:2,3,4,5; #fold.i64=-1,4,5; #back.i64=2,3,5,4; r = (Reshape x fold); "
         "t = (Transpose r perm=0,2,1); u = (Reshape t back); y = (Neg u); z = (Tanh r); y, z",
         "Reshape Transpose Neg Tanh"},
        {"x:2,3,4,5; #fold.i64=-1,4,5; #back.i64=3,2,5,4; r = (Reshape x fold); "
         "t = (Transpose r perm=0,2,1); u = (Reshape t back); y = (Neg u); y",
         "Reshape Transpose Reshape Neg"},
        {"x:2,3,4,5; #fold.i64=-1,4,5; #back.i64=2,3,5,4; r = (Reshape x fold); "
         "t = (Transpose r perm=0,2,1); u = (Reshape t back); y = (Neg u); z = (Tanh t); y, z",
         "Reshape Transpose Reshape Neg Tanh"},
        {"x:2,6,2,5; #fold.i64=4,3,10; #back.i64=4,10,3,1; r = (Reshape x fold); "
         "t = (Transpose r perm=0,2,1); u = (Reshape t back); y = (Neg u); y",
         "Reshape Transpose Reshape Neg"},
    };
    CHECK_CASES(cases, 0);
}

/* Dimensions of computed values, read at the first input that has them. */
static void dimensions(test_state *test)
{
    static const net_case cases[] = {
        {"x:n,4,m; z:m,3; #two.i64=2; p = (MatMul x z); q = (MatMul x z); s = (Shape p); "
         "#zero.i64=0; a = (Gather s zero); t = (Shape q); b = (Gather t zero); c = (Add a b); "
         "f = (Cast c to=1); u = (Add p f); y = (Add u q); y",
         "MatMul Shape Gather Add Cast Add Add"},
        {"x:n,4,m; z:m,3; #two.i64=2; p = (MatMul x z); q = (MatMul x z); s = (Shape p); "
         "#zero.i64=0,; #one.i64=1,; #three.i64=3,; #back.i64=-3,; #near.i64=-2,; "
         "a = (Slice s zero one zero); t = (Shape q); b = (Slice t back near zero); "
         "k = (Slice t zero three zero); e = (Slice k zero one zero); c = (Add a b); "
         "d = (Add c e); f = (Cast d to=1); u = (Add p f); y = (Add u q); y",
         "MatMul Shape Slice Add Add Cast Add Add"},
        /* two inputs, of which neither has a Shape; a dimension that no input has */
        {"x:n,4; z:4,m; p = (MatMul x z); s = (Shape p); #zero.i64=0; #one.i64=1; "
         "a = (Gather s zero); b = (Gather s one); c = (Sub a b); f = (Cast c to=1); "
         "y = (Add p f); y",
         "MatMul Shape Gather Gather Sub Cast Add"},
        {"x:n,4; z:1,4; p = (Concat x z axis=0); q = (Neg p); s = (Shape p); #zero.i64=0; "
         "a = (Gather s zero); f = (Cast a to=1); y = (Mul q f); y",
         "Concat Neg Shape Gather Cast Mul"},
    };
    CHECK_CASES(cases, 1e-6);
}

#define PARTS "#zero.i64=0,; #one.i64=1,; #two.i64=2,; #four.i64=4,;"

/* What a shape was computed of in several steps is read at an input. */
static void vectors(test_state *test)
{
    static const net_case cases[] = {
        {"x:n,m,8; " PARTS "#flat.i64=-1,8; #h.i64=2,4; f = (Reshape x flat); "
         "q = (Softmax f axis=1); s = (Shape q); p = (Gather s zero); t = (Shape x); "
         "b = (Gather t zero); c = (Div p b); w = (Concat b c h axis=0); y = (Reshape q w); y",
         "Reshape Softmax Shape Shape Concat Reshape"},
        /* one that remains */
        {"x:n,m,8; " PARTS "s = (Shape x); a = (Gather s one); b = (Mul a two); "
         "e = (Gather s zero); w = (Concat b e four axis=0); y = (Reshape x w); y",
         "Shape Concat Reshape"},
        {"x:n,m,8; " PARTS "s = (Shape x); p = (Slice s zero two); r = (ReduceProd p); "
         "w = (Concat r two four axis=0); #k.i64=3,; z = (Expand k w); y = (Reshape x w); y",
         "Reshape"},
        /* which an Expand can't leave, nor a Reshape that takes 0 for none; what takes as many */
        {"x:n,m,8; " PARTS "s = (Shape x); a = (Gather s one); b = (Mul a two); "
         "e = (Gather s zero); w = (Concat b e four axis=0); #k:1; y = (Expand k w); y",
         "Shape Gather Mul Gather Concat Expand"},
        {"x:n,m,8; " PARTS "s = (Shape x); a = (Gather s one); b = (Mul a two); "
         "e = (Gather s zero); w = (Concat b e four axis=0); y = (Reshape x w allowzero=1); y",
         "Shape Gather Mul Gather Concat Reshape"},
        {"x:n,m,8; " PARTS "s = (Shape x); w = (Concat s four axis=0); #k:1; y = (Expand k w); y",
         "Shape Concat Expand"},
    };
    CHECK_CASES(cases, 0);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, expands);
    RUN(test, spreads);
    RUN(test, products_of_rows);
    RUN(test, swapped_twice);
    RUN(test, folded_transposes);
    RUN(test, dimensions);
    RUN(test, vectors);
    return test->failures != 0;
}
