/* test_pass_shapes.c - shapes that are computed become constants, Reshapes around what works on
 * rows go, and Transposes that are their own inverse: what fits, what stays, a second run finds
 * nothing, the same results. */
#include "rewrite.h"
#include "test.h"

#define BATCH "is zero 0; i one 1; Shape x -> s; Gather s zero -> b; i a0 0; Unsqueeze b a0 -> ub;"

/* What Expand is told through Shape, Concat, Equal and Where, as exporters of torch do. */
static void expands(test_state *test)
{
    static const net_case cases[] = {
        {"in x n,2,1,m,4;" BATCH "i two 2; i four 4; is three 3; Gather s three -> t;"
         "Unsqueeze t a0 -> ut; Concat ub two two ut four -> want axis=0; Expand x want -> e;"
         "Neg e -> y; out y", "Expand Neg"},
        {"in x 2,1,4; in z 2,n,4; Shape z -> want; Expand x want -> y; out y", "Shape Expand"},
        {"in x 2,3; ini want 2; Expand x want -> y; out y", "Expand"},
    };
    CHECK_CASES(cases, 0);
}

/* What is repeated for an operator that repeats it anyway. */
static void spreads(test_state *test)
{
    static const net_case cases[] = {
        {"in x n,1; in z n,3; Shape z -> want; Expand x want -> e; Add e z -> y; out y", "Add"},
        {"in x n,1,4; in z n,3,4; Shape z -> want; Expand x want -> e; Less e z -> c;"
         "Where c z e -> y; out y", "Less Where"},
        {"in x n,3; Shape x -> s; i zero 0; Expand zero s -> k; f w 2,4; Gather w k -> g;"
         "i last -1; Unsqueeze x last -> u; i wide 1,1,4; Expand u wide -> v; Tanh v -> z;"
         "Add z g -> y; out y", "Unsqueeze Expand Tanh Add"},
        /* the other operand is repeated, too; rows that differ */
        {"in x n,1; in z 1,3; Shape x -> a; Shape z -> b; i zero 0; i one 1; Slice a zero one -> r;"
         "i two 2; Slice b one two -> s; Concat r s -> want axis=0; Expand x want -> e;"
         "Expand z want -> o; Add e o -> y; out y", "Add"},
        {"in x n,1; in z n,1; i want 1,3; Expand x want -> e; Add e z -> y; out y", "Expand Add"},
    };
    CHECK_CASES(cases, 0);
}

#define ROWS "f w 4,5; i flat -1,4; i back 2,-1,5; "

static void products_of_rows(test_state *test)
{
    static const net_case cases[] = {
        {"in x 2,n,4;" ROWS "Reshape x flat -> r; MatMul r w -> m; Reshape m back -> y; out y",
         "MatMul"},
        {"in x 2,3,4;" ROWS "Reshape x flat -> r; Relu r -> a; MatMul a w -> m; Tanh m -> t;"
         "Reshape t back -> y; out y", "Relu MatMul Tanh"},
        /* two products of the same rows; rows that others read */
        {"in x 2,3,4;" ROWS "Reshape x flat -> r; MatMul r w -> m; Reshape m back -> a; Neg r -> o;"
         "MatMul o w -> q; Reshape q back -> b; Add a b -> y; out y", "MatMul Neg MatMul Add"},
        {"in x 2,3,4;" ROWS "Reshape x flat -> r; MatMul r w -> m; Reshape m back -> y; "
         "ReduceSum r -> z keepdims=0; out y z", "Reshape ReduceSum MatMul"},
        /* rows parted in another way, an inner value with another reader, no constant matrix,
         * columns that change */
        {"in x 2,3,4;" ROWS "i other 3,2,5; Reshape x flat -> r; MatMul r w -> m;"
         "Reshape m other -> y; out y", "Reshape MatMul Reshape"},
        {"in x 2,3,4;" ROWS "Reshape x flat -> r; MatMul r w -> m; Reshape m back -> y; out y m",
         "Reshape MatMul Reshape"},
        {"in x 2,3,4; in u 4,5;" ROWS "Reshape x flat -> r; MatMul r u -> m; Reshape m back -> y;"
         "out y", "Reshape MatMul Reshape"},
        {"in x 2,3,4; f w 2,5; i flat -1,2; i back 2,3,10; Reshape x flat -> r; MatMul r w -> m;"
         "Reshape m back -> y; out y", "Reshape MatMul Reshape"},
        {"in x 2,3,4; i flat 6,4; i back 2,3,4; Reshape x flat -> r; Relu r -> a;"
         "Softmax a -> m axis=0; Reshape m back -> y; out y", "Reshape Relu Softmax Reshape"},
    };
    CHECK_CASES(cases, 0);
}

/* A permutation that is its own inverse: the second Transpose leaves what the first enters. */
static void swapped_twice(test_state *test)
{
    static const net_case cases[] = {
        {"in x 2,3,4; Transpose x -> t perm=0,2,1; Relu t -> r; Transpose r -> u perm=0,2,1;"
         "Neg u -> y; out y", "Relu Neg"},
        {"in x 2,3,4; in z 2,3,4; Transpose x -> t perm=0,2,1; Transpose z -> s perm=0,2,1;"
         "Add t s -> a; Softmax a -> p axis=1; Transpose p -> y perm=0,2,1; out y",
         "Add Softmax"},
        {"in x 2,3,4; Transpose x -> t perm=0,2,1; Relu t -> r; Transpose r -> u perm=0,2,1;"
         "Neg u -> n; Transpose n -> v perm=0,2,1; Tanh v -> w; Transpose w -> y perm=0,2,1; out y",
         "Relu Neg Tanh"},
        /* the value between is wanted as it is; nothing stands between; another permutation */
        {"in x 2,3,4; Transpose x -> t perm=0,2,1; Relu t -> r; Transpose r -> u perm=0,2,1;"
         "Neg u -> y; out y r", "Relu Neg Transpose"},
        {"in x 2,3,4; Transpose x -> t perm=0,2,1; Relu t -> y; out y", "Transpose Relu"},
        {"in x 2,3,3; Transpose x -> t perm=0,2,1; Relu t -> r; Transpose r -> y perm=1,0,2; out y",
         "Relu Transpose"},
    };
    CHECK_CASES(cases, 1e-6);
}

/* A transposition while dimensions are folded. */
static void folded_transposes(test_state *test)
{
    static const net_case cases[] = {
        {"in x 2,3,4,5; i fold -1,4,5; i back 2,3,5,4; Reshape x fold -> r;"
         "Transpose r -> t perm=0,2,1; Reshape t back -> u; Neg u -> y; out y", "Transpose Neg"},
        {"in x n,3,m,5; Shape x -> s; i mid 2; i three 3; i five 5; i minus -1;"
         "Slice s mid three -> t1;"
         "Concat minus t1 five -> fold axis=0; Reshape x fold -> r; Transpose r -> t perm=0,2,1;"
         "i zero 0; i two 2; Slice s zero two -> lead; Concat lead five t1 -> back axis=0;"
         "Reshape t back -> u; Neg u -> y; out y", "Transpose Neg"},
        {"in x 2,3,4,5; i fold 2,-1,5; i back 5,3,4,2; Reshape x fold -> r;"
         "Transpose r -> t perm=2,1,0; Reshape t back -> u; Neg u -> y; out y", "Transpose Neg"},
        /* which dimension is folded is ambiguous */
        {"in x 2,1,3,5; i fold -1,3,5; i back 2,1,5,3; Reshape x fold -> r;"
         "Transpose r -> t perm=0,2,1; Reshape t back -> u; Neg u -> y; out y", "Transpose Neg"},
        /* a row of more: its 1 goes before; not where it is elsewhere */
        {"in x 1,2,3,4,5; i fold -1,4,5; i back 2,3,5,4; Reshape x fold -> r;"
         "Transpose r -> t perm=0,2,1; Reshape t back -> u; Neg u -> y; out y",
         "Squeeze Transpose Neg"},
        {"in x 2,1,3,4,5; i fold -1,4,5; i back 2,3,5,4; Reshape x fold -> r;"
         "Transpose r -> t perm=0,2,1; Reshape t back -> u; Neg u -> y; out y",
         "Reshape Transpose Reshape Neg"},
        /* what others read stays, and another unfolding, and another fold */
        {"in x 2,3,4,5; i fold -1,4,5; i back 2,3,5,4; Reshape x fold -> r;"
         "Transpose r -> t perm=0,2,1; Reshape t back -> u; Neg u -> y; Tanh r -> z; out y z",
         "Reshape Transpose Neg Tanh"},
        {"in x 2,3,4,5; i fold -1,4,5; i back 3,2,5,4; Reshape x fold -> r;"
         "Transpose r -> t perm=0,2,1; Reshape t back -> u; Neg u -> y; out y",
         "Reshape Transpose Reshape Neg"},
        {"in x 2,3,4,5; i fold -1,4,5; i back 2,3,5,4; Reshape x fold -> r;"
         "Transpose r -> t perm=0,2,1; Reshape t back -> u; Neg u -> y; Tanh t -> z; out y z",
         "Reshape Transpose Reshape Neg Tanh"},
        {"in x 2,6,2,5; i fold 4,3,10; i back 4,10,3,1; Reshape x fold -> r;"
         "Transpose r -> t perm=0,2,1; Reshape t back -> u; Neg u -> y; out y",
         "Reshape Transpose Reshape Neg"},
    };
    CHECK_CASES(cases, 0);
}

/* Dimensions of computed values, read at the first input that has them. */
static void dimensions(test_state *test)
{
    static const net_case cases[] = {
        {"in x n,4,m; in z m,3; is two 2; MatMul x z -> p; MatMul x z -> q; Shape p -> s;"
         "is zero 0; Gather s zero -> a; Shape q -> t; Gather t zero -> b; Add a b -> c;"
         "Cast c -> f to=1; Add p f -> u; Add u q -> y; out y",
         "MatMul Shape Gather Add Cast Add Add"},
        {"in x n,4,m; in z m,3; is two 2; MatMul x z -> p; MatMul x z -> q; Shape p -> s;"
         "i zero 0; i one 1; i three 3; i back -3; i near -2; Slice s zero one zero -> a;"
         "Shape q -> t; Slice t back near zero -> b; Slice t zero three zero -> k;"
         "Slice k zero one zero -> e; Add a b -> c; Add c e -> d; Cast d -> f to=1;"
         "Add p f -> u; Add u q -> y; out y",
         "MatMul Shape Slice Add Add Cast Add Add"},
        /* two inputs, of which neither has a Shape; a dimension that no input has */
        {"in x n,4; in z 4,m; MatMul x z -> p; Shape p -> s; is zero 0; is one 1;"
         "Gather s zero -> a; Gather s one -> b; Sub a b -> c; Cast c -> f to=1; Add p f -> y;"
         "out y",
         "MatMul Shape Gather Gather Sub Cast Add"},
        {"in x n,4; in z 1,4; Concat x z -> p axis=0; Neg p -> q; Shape p -> s; is zero 0;"
         "Gather s zero -> a; Cast a -> f to=1; Mul q f -> y; out y",
         "Concat Neg Shape Gather Cast Mul"},
    };
    CHECK_CASES(cases, 1e-6);
}

#define PARTS "i zero 0; i one 1; i two 2; i four 4; "

/* What a shape was computed of in several steps is read at an input. */
static void vectors(test_state *test)
{
    static const net_case cases[] = {
        {"in x n,m,8;" PARTS "i flat -1,8; i h 2,4; Reshape x flat -> f; Softmax f -> q axis=1;"
         "Shape q -> s; Gather s zero -> p; Shape x -> t; Gather t zero -> b; Div p b -> c;"
         "Concat b c h -> w axis=0; Reshape q w -> y; out y",
         "Reshape Softmax Shape Shape Concat Reshape"},
        /* one that remains */
        {"in x n,m,8;" PARTS "Shape x -> s; Gather s one -> a; Mul a two -> b; Gather s zero -> e;"
         "Concat b e four -> w axis=0; Reshape x w -> y; out y", "Shape Concat Reshape"},
        {"in x n,m,8;" PARTS "Shape x -> s; Slice s zero two -> p; ReduceProd p -> r;"
         "Concat r two four -> w axis=0; i k 3; Expand k w -> z; Reshape x w -> y; out y",
         "Reshape"},
        /* which an Expand can't leave, nor a Reshape that takes 0 for none; what takes as many */
        {"in x n,m,8;" PARTS "Shape x -> s; Gather s one -> a; Mul a two -> b; Gather s zero -> e;"
         "Concat b e four -> w axis=0; f k 1; Expand k w -> y; out y",
         "Shape Gather Mul Gather Concat Expand"},
        {"in x n,m,8;" PARTS "Shape x -> s; Gather s one -> a; Mul a two -> b; Gather s zero -> e;"
         "Concat b e four -> w axis=0; Reshape x w -> y allowzero=1; out y",
         "Shape Gather Mul Gather Concat Reshape"},
        {"in x n,m,8;" PARTS "Shape x -> s; Concat s four -> w axis=0; f k 1; Expand k w -> y;"
         "out y", "Shape Concat Expand"},
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
