/* test_pass_before.c - scales and shifts before a linear operator, behind its Relu or Reshape, and
 * behind a Gemm that scales by itself: into the weights where that is exact, and left alone where
 * padding, a reader or a shape forbids it. */
#include "rewrite.h"
#include "test.h"

#define NORM "f g 4; f h 4; f u 4; f v 4; BatchNormalization x g h u v -> b; "

static void filters(test_state *test)
{
    static const net_case cases[] = {
        {"in x 1,4,6,6;" NORM "f w 3,4,3,3; f c 3; Conv b w c -> y; out y", "Conv"},
        {"in x 1,4,6,6;" NORM "f w 3,4,1,1; Conv b w -> y; out y", "Conv"},
        {"in x n,4,6,6;" NORM "f w 6,2,1,1; f c 6; Conv b w c -> y group=2; out y", "Conv"},
        {"in x 1,4,6,6; f s 1,4,1,1; f w 3,4,3,3; Mul s x -> b; Conv b w -> y pads=1,1,1,1; out y",
         "Conv"},
        {"in x 1,4,6,6; f s 4,1,1; f w 3,4,3,3; Div x s -> b; Conv b w -> y auto_pad:=SAME_UPPER;"
         "out y", "Conv"},
        {"in x 1,4,6,6; f s 4,1,1; f w 3,4,3,3; Sub s x -> b; Conv b w -> y; out y", "Conv"},
        {"in x 1,4,6,6; f s 4,1,1; f w 4,3,3,3; Mul x s -> b; ConvTranspose b w -> y; out y",
         "ConvTranspose"},
        {"in x 1,4,6,6; f s 4,1,1; f w 4,2,2,2; Mul x s -> b; ConvTranspose b w -> y group=2; "
         "out y",
         "ConvTranspose"},
        /* padding, borders, another reader, a divisor, per pixel, a bias that wasn't there */
        {"in x 1,4,6,6;" NORM "f w 3,4,3,3; Conv b w -> y pads=1,1,1,1; out y",
         "BatchNormalization Conv"},
        {"in x 1,4,6,6;" NORM "f w 4,3,3,3; ConvTranspose b w -> y; out y",
         "BatchNormalization ConvTranspose"},
        {"in x 1,4,6,6;" NORM "f w 3,4,3,3; Conv b w -> y; out y b", "BatchNormalization Conv"},
        {"in x 1,4,6,6; f s 4,1,1; f w 3,4,3,3; Div s x -> b; Conv b w -> y; out y", "Div Conv"},
        {"in x 1,4,6,6; f s 6,6; f w 3,4,3,3; Mul x s -> b; Conv b w -> y; out y", "Mul Conv"},
        {"in x 1,4,6,6; fs s 0.5; f w 3,4,3,3; Add x s -> b; Conv b w -> y; out y", "Add Conv"},
        {"in x 1,1,6,6; f s 1,4,1,1; f w 3,4,3,3; Mul x s -> b; Conv b w -> y; out y", "Mul Conv"},
    };
    CHECK_CASES(cases, 1e-4);
}

static void matrices(test_state *test)
{
    static const net_case cases[] = {
        {"in x n,4; f s 4; f w 4,3; Mul x s -> b; MatMul b w -> y; out y", "MatMul"},
        {"in x 2,n,4; f s 1,4; f w 4,3; Div x s -> b; MatMul b w -> y; out y", "MatMul"},
        {"in x n,4; f s 4; f w 4,3; Add x s -> b; MatMul b w -> y; out y", "Gemm"},
        {"in x n,4; f s 4; f w 3,4; f c 3; Sub x s -> b; Gemm b w c -> y transB=1; out y",
         "Gemm"},
        {"in x n,4;" NORM "f w 4,3; fs c 0.5; Gemm b w c -> y; out y", "Gemm"},
        /* no bias, a Gemm that scales, shared weights */
        {"in x 2,n,4; f s 4; f w 4,3; Add x s -> b; MatMul b w -> y; out y", "Add MatMul"},
        {"in x n,4; f s 4; f w 4,3; Mul x s -> b; Gemm b w -> y alpha~0.5; out y", "Mul Gemm"},
        {"in x 4,n; f s 4,1; f w 4,3; Mul x s -> b; Gemm b w -> y transA=1; out y", "Mul Gemm"},
        {"in x n,4; in z n,4; f s 4; f w 4,3; Mul x s -> b; MatMul b w -> y; MatMul z w -> u;"
         "out y u", "Mul MatMul MatMul"},
    };
    CHECK_CASES(cases, 1e-4);
}

/* The new bias holds what the old one was multiplied with. */
static void behind_gemm(test_state *test)
{
    static const net_case cases[] = {
        {"in x n,4; f w 4,3; f c 3; f s 3; Gemm x w c -> l alpha~0.5 beta~2; Sub s l -> y; out y",
         "Gemm"},
        {"in x n,4; f w 4,3; f c 3; f s 3; Gemm x w c -> l beta~-0.5; Mul l s -> y; out y", "Gemm"},
        {"in x n,4; f w 3,4; f s 3; Gemm x w -> l beta~0 transB=1; Add l s -> y; out y", "Gemm"},
        {"in x n,4; f w 4,3; f c 3; f s 3; Gemm x w c -> l beta~0; Add l s -> y; out y", "Gemm"},
        {"in x 2,4; f w 4,3; f c 2,1; f s 3; Gemm x w c -> l beta~2; Mul l s -> y; out y",
         "Gemm Mul"},
    };
    CHECK_CASES(cases, 1e-4);
}

#define FILTERS "in x 1,3,6,6; f w 4,3,3,3; f c 4; Conv x w c -> l; Relu l -> r; "
#define NORM_R "f g 4; f h 4; f u 4; f v 4; BatchNormalization r g h u v -> b; "

static void behind_relu(test_state *test)
{
    static const net_case cases[] = {
        {FILTERS NORM_R "out b", "Conv Max"},
        {FILTERS NORM_R "MaxPool b -> y kernel_shape=2,2; i p 0,0,1,1,0,0,1,1; Pad y p -> z; out z",
         "Conv Max MaxPool Pad"},
        {FILTERS "f s 4,1,1; Mul s r -> b; out b", "Conv Relu"},
        {FILTERS "f s 4,1,1; Div r s -> b; Sigmoid b -> y; out y", "Conv Relu Sigmoid"},
        {FILTERS "f s 4,1,1; Add r s -> b; out b", "Conv Max"},
        {"in x n,3; f w 3,4; f c 4; Gemm x w c -> l; Relu l -> r; f s 1,4; Sub r s -> b;"
         "Neg b -> y; out y", "Gemm Max Neg"},
        {"in x n,3; f w 3,4; MatMul x w -> l; Relu l -> r;" NORM_R "out b", "Gemm Max"},
        {"in x 2,n,3; f w 3,4; MatMul x w -> l; Relu l -> r; f s 4; Mul r s -> b; out b",
         "MatMul Relu"},
        {"in x 1,3,5; f w 3,4,2; ConvTranspose x w -> l; Relu l -> r;" NORM_R "Relu b -> y; out y",
         "ConvTranspose Max Relu"},
        /* below zero, another reader, per pixel, what onnxruntime keeps in blocks, no bias */
        {FILTERS "f1 s -1,2,3,4; i p 4,1,1; Reshape s p -> q; Mul r q -> b; out b",
         "Conv Relu Mul"},
        {FILTERS "fs s 0; Mul r s -> b; out b", "Conv Relu Mul"},
        {FILTERS NORM_R "out b r", "Conv Relu BatchNormalization"},
        {FILTERS NORM_R "Sigmoid l -> y; out b y", "Conv Relu BatchNormalization Sigmoid"},
        {FILTERS "f s 4,4; Mul r s -> b; out b", "Conv Relu Mul"},
        {FILTERS "fs s 1; Div s r -> b; out b", "Conv Relu Div"},
        {FILTERS NORM_R "MaxPool b -> y kernel_shape=2,2; f k 2,4,1,1; Conv y k -> z pads=1,1,1,1;"
         "out z", "Conv Relu BatchNormalization MaxPool Conv"},
        {"in x 2,n,3; f w 3,4; MatMul x w -> l; Relu l -> r; f s 4; Add r s -> b; out b",
         "MatMul Relu Add"},
    };
    CHECK_CASES(cases, 1e-4);
}

/* A BatchNormalization of rows: Linear and BatchNorm1d with a Flatten between them. */
static void behind_reshape(test_state *test)
{
    static const net_case cases[] = {
        {"in x 2,n,3; f w 3,4; MatMul x w -> l; Flatten l -> r axis=2;" NORM_R "Tanh b -> y; out y",
         "MatMul Add Flatten Tanh"},
        {"in x 2,5,3; f w 3,4; i s -1,4; i t 2,5,4; MatMul x w -> l; Reshape l s -> r;" NORM_R
         "Reshape b t -> y; Tanh y -> z; out z", "MatMul Add Tanh"},
        {"in x 2,5,3; f w 3,4; f c 4; i s -1,4; MatMul x w -> l; Add c l -> m; Reshape m s -> r;"
         NORM_R "Tanh b -> y; out y", "MatMul Add Reshape Tanh"},
        {"in x 2,5,3; f w 3,4; i s 10,4; MatMul x w -> l; Reshape l s -> r;" NORM_R "out b",
         "MatMul Add Reshape"},
        {"in x n,3; f w 3,4; i s -1,4,1; MatMul x w -> l; Reshape l s -> r;" NORM_R
         "Tanh b -> y; out y", "Gemm Reshape Tanh"},
        {"in x 2,3; f w 4,3; i s 2,4,1; Gemm x w -> l transB=1; Reshape l s -> r;" NORM_R
         "Tanh b -> y; out y", "Gemm Reshape Tanh"},
        {"in x 2,3,5; f w 4,3,2; i s 0,0,2,2; Conv x w -> l; Reshape l s -> r;" NORM_R
         "Tanh b -> y; out y", "Conv Reshape Tanh"},
        /* other channels, as many of them; other readers; more than a bias between */
        {"in x 2,4,5; f w 5,4; MatMul x w -> r;" NORM_R "Tanh b -> y; out y",
         "MatMul BatchNormalization Tanh"},
        {"in x 2,4,5; f w 5,4; i s 2,4,2,2; MatMul x w -> l; Reshape l s -> r;" NORM_R
         "Tanh b -> y; out y", "MatMul Reshape BatchNormalization Tanh"},
        {"in x 4,3,5; f w 2,3,2; i s 2,4,4; Conv x w -> l; Reshape l s -> r;" NORM_R
         "Tanh b -> y; out y", "Conv Reshape BatchNormalization Tanh"},
        {"in x 2,5,3; f w 3,4; i s -1,4; MatMul x w -> l; Reshape l s -> r;" NORM_R
         "Tanh b -> y; Neg r -> z; out y z", "MatMul Reshape BatchNormalization Tanh Neg"},
        {"in x 2,5,3; f w 3,4; i s -1,4; MatMul x w -> l; Reshape l s -> r;" NORM_R
         "Tanh b -> y; Neg l -> z; out y z", "MatMul Reshape BatchNormalization Tanh Neg"},
        {"in x 2,5,3; in c 2,5,4; f w 3,4; i s -1,4; MatMul x w -> l; Add l c -> m;"
         "Reshape m s -> r;" NORM_R "Tanh b -> y; out y",
         "MatMul Add Reshape BatchNormalization Tanh"},
    };
    CHECK_CASES(cases, 1e-4);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, filters);
    RUN(test, matrices);
    RUN(test, behind_gemm);
    RUN(test, behind_relu);
    RUN(test, behind_reshape);
    return test->failures != 0;
}
