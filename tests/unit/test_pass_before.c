/* test_pass_before.c - scales and shifts before a linear operator, behind its Relu or Reshape, and
 * behind a Gemm that scales by itself: into the weights where that is exact, and left alone where
 * padding, a reader or a shape forbids it. */
#include "rewrite.h"
#include "test.h"

#define NORM "#g:4; #h:4; #u:4; #v:4; b = (BatchNormalization x g h u v);"

static void filters(test_state *test)
{
    static const net_case cases[] = {
        {"x:1,4,6,6; " NORM "#w:3,4,3,3; #c:3; y = (Conv b w c); y", "Conv"},
        {"x:1,4,6,6; " NORM "#w:3,4,1,1; y = (Conv b w); y", "Conv"},
        {"x:n,4,6,6; " NORM "#w:6,2,1,1; #c:6; y = (Conv b w c group=2); y", "Conv"},
        {"x:1,4,6,6; #s:1,4,1,1; #w:3,4,3,3; b = (Mul s x); y = (Conv b w pads=1,1,1,1); y",
         "Conv"},
        {"x:1,4,6,6; #s:4,1,1; #w:3,4,3,3; b = (Div x s); y = (Conv b w auto_pad=SAME_UPPER); y",
         "Conv"},
        {"x:1,4,6,6; #s:4,1,1; #w:3,4,3,3; b = (Sub s x); y = (Conv b w); y", "Conv"},
        {"x:1,4,6,6; #s:4,1,1; #w:4,3,3,3; b = (Mul x s); y = (ConvTranspose b w); y",
         "ConvTranspose"},
        {"x:1,4,6,6; #s:4,1,1; #w:4,2,2,2; b = (Mul x s); y = (ConvTranspose b w group=2); y",
         "ConvTranspose"},
        /* padding, borders, another reader, a divisor, per pixel, a bias that wasn't there */
        {"x:1,4,6,6; " NORM "#w:3,4,3,3; y = (Conv b w pads=1,1,1,1); y",
         "BatchNormalization Conv"},
        {"x:1,4,6,6; " NORM "#w:4,3,3,3; y = (ConvTranspose b w); y",
         "BatchNormalization ConvTranspose"},
        {"x:1,4,6,6; " NORM "#w:3,4,3,3; y = (Conv b w); y, b", "BatchNormalization Conv"},
        {"x:1,4,6,6; #s:4,1,1; #w:3,4,3,3; b = (Div s x); y = (Conv b w); y", "Div Conv"},
        {"x:1,4,6,6; #s:6,6; #w:3,4,3,3; b = (Mul x s); y = (Conv b w); y", "Mul Conv"},
        {"x:1,4,6,6; #s=0.5; #w:3,4,3,3; b = (Add x s); y = (Conv b w); y", "Add Conv"},
        {"x:1,1,6,6; #s:1,4,1,1; #w:3,4,3,3; b = (Mul x s); y = (Conv b w); y", "Mul Conv"},
    };
    CHECK_CASES(cases, 1e-4);
}

static void matrices(test_state *test)
{
    static const net_case cases[] = {
        {"x:n,4; #s:4; #w:4,3; b = (Mul x s); y = (MatMul b w); y", "MatMul"},
        {"x:2,n,4; #s:1,4; #w:4,3; b = (Div x s); y = (MatMul b w); y", "MatMul"},
        {"x:n,4; #s:4; #w:4,3; b = (Add x s); y = (MatMul b w); y", "Gemm"},
        {"x:n,4; #s:4; #w:3,4; #c:3; b = (Sub x s); y = (Gemm b w c transB=1); y",
         "Gemm"},
        {"x:n,4; " NORM "#w:4,3; #c=0.5; y = (Gemm b w c); y", "Gemm"},
        /* more than a block of each row */
        {"x:n,150; #s:150; #w:150,131; b = (Mul x s); y = (MatMul b w); y", "MatMul"},
        {"x:n,150; #s:150; #w:150,131; b = (Sub x s); y = (MatMul b w); y", "Gemm"},
        {"x:n,150; #s:150; #w:131,150; #c:131; b = (Mul x s); y = (Gemm b w c transB=1); y",
         "Gemm"},
        {"x:n,150; #s:150; #w:131,150; #c:131; b = (Add x s); y = (Gemm b w c transB=1); y",
         "Gemm"},
        {"x:2,n,5; #w:5,131; #s:131; l = (MatMul x w); y = (Mul l s); y", "MatMul"},
        {"x:1,4,6,6; #w:4,70,1,1; #s:140,1,1; l = (ConvTranspose x w group=2); y = (Mul l s); y",
         "ConvTranspose"},
        {"x:1,3,6,6; #w:210,1,1,1; #s:210,1,1; l = (Conv x w group=3); y = (Mul l s); y", "Conv"},
        /* no bias, a Gemm that scales, shared weights */
        {"x:2,n,4; #s:4; #w:4,3; b = (Add x s); y = (MatMul b w); y", "Add MatMul"},
        {"x:n,4; #s:4; #w:4,3; b = (Mul x s); y = (Gemm b w alpha=0.5); y", "Mul Gemm"},
        {"x:4,n; #s:4,1; #w:4,3; b = (Mul x s); y = (Gemm b w transA=1); y", "Mul Gemm"},
        {"x:n,4; z:n,4; #s:4; #w:4,3; b = (Mul x s); y = (MatMul b w); u = (MatMul z w); y, u",
         "Mul MatMul MatMul"},
    };
    CHECK_CASES(cases, 1e-4);
}

/* The new bias holds what the old one was multiplied with. */
static void behind_gemm(test_state *test)
{
    static const net_case cases[] = {
        {"x:n,4; #w:4,3; #c:3; #s:3; l = (Gemm x w c alpha=0.5 beta=2.0); y = (Sub s l); y",
         "Gemm"},
        {"x:n,4; #w:4,3; #c:3; #s:3; l = (Gemm x w c beta=-0.5); y = (Mul l s); y", "Gemm"},
        {"x:n,4; #w:3,4; #s:3; l = (Gemm x w beta=0.0 transB=1); y = (Add l s); y", "Gemm"},
        {"x:n,4; #w:4,3; #c:3; #s:3; l = (Gemm x w c beta=0.0); y = (Add l s); y", "Gemm"},
        {"x:2,4; #w:4,3; #c:2,1; #s:3; l = (Gemm x w c beta=2.0); y = (Mul l s); y",
         "Gemm Mul"},
    };
    CHECK_CASES(cases, 1e-4);
}

#define FILTERS "x:1,3,6,6; #w:4,3,3,3; #c:4; l = (Conv x w c); r = (Relu l);"
#define NORM_R "#g:4; #h:4; #u:4; #v:4; b = (BatchNormalization r g h u v);"

static void behind_relu(test_state *test)
{
    static const net_case cases[] = {
        {FILTERS NORM_R "b", "Conv Max"},
        {FILTERS NORM_R "y = (MaxPool b kernel_shape=2,2); #p.i64=0,0,1,1,0,0,1,1; "
         "z = (Pad y p); z",
         "Conv Max MaxPool Pad"},
        {FILTERS "#s:4,1,1; b = (Mul s r); b", "Conv Relu"},
        {FILTERS "#s:4,1,1; b = (Div r s); y = (Sigmoid b); y", "Conv Relu Sigmoid"},
        {FILTERS "#s:4,1,1; b = (Add r s); b", "Conv Max"},
        {"x:n,3; #w:3,4; #c:4; l = (Gemm x w c); r = (Relu l); #s:1,4; b = (Sub r s); "
         "y = (Neg b); y", "Gemm Max Neg"},
        {"x:n,3; #w:3,4; l = (MatMul x w); r = (Relu l); " NORM_R "b", "Gemm Max"},
        {"x:2,n,3; #w:3,4; l = (MatMul x w); r = (Relu l); #s:4; b = (Mul r s); b",
         "MatMul Relu"},
        {"x:1,3,5; #w:3,4,2; l = (ConvTranspose x w); r = (Relu l); " NORM_R "y = (Relu b); y",
         "ConvTranspose Max Relu"},
        /* below zero, another reader, per pixel, what onnxruntime keeps in blocks, no bias */
        {FILTERS "#s=-1,2,3,4; #p.i64=4,1,1; q = (Reshape s p); b = (Mul r q); b",
         "Conv Relu Mul"},
        {FILTERS "#s=0; b = (Mul r s); b", "Conv Relu Mul"},
        {FILTERS NORM_R "b, r", "Conv Relu BatchNormalization"},
        {FILTERS NORM_R "y = (Sigmoid l); b, y", "Conv Relu BatchNormalization Sigmoid"},
        {FILTERS "#s:4,4; b = (Mul r s); b", "Conv Relu Mul"},
        {FILTERS "#s=1; b = (Div s r); b", "Conv Relu Div"},
        {FILTERS NORM_R "y = (MaxPool b kernel_shape=2,2); #k:2,4,1,1; "
         "z = (Conv y k pads=1,1,1,1); z", "Conv Relu BatchNormalization MaxPool Conv"},
        {"x:2,n,3; #w:3,4; l = (MatMul x w); r = (Relu l); #s:4; b = (Add r s); b",
         "MatMul Relu Add"},
    };
    CHECK_CASES(cases, 1e-4);
}

/* A BatchNormalization of rows: Linear and BatchNorm1d with a Flatten between them. */
static void behind_reshape(test_state *test)
{
    static const net_case cases[] = {
        {"x:2,n,3; #w:3,4; l = (MatMul x w); r = (Flatten l axis=2); " NORM_R "y = (Tanh b); y",
         "MatMul Add Flatten Tanh"},
        {"x:2,5,3; #w:3,4; #s.i64=-1,4; #t.i64=2,5,4; l = (MatMul x w); r = (Reshape l s); "
         NORM_R "y = (Reshape b t); z = (Tanh y); z", "MatMul Add Tanh"},
        {"x:2,5,3; #w:3,4; #c:4; #s.i64=-1,4; l = (MatMul x w); m = (Add c l); "
         "r = (Reshape m s); " NORM_R "y = (Tanh b); y", "MatMul Add Reshape Tanh"},
        {"x:2,5,3; #w:3,4; #s.i64=10,4; l = (MatMul x w); r = (Reshape l s); " NORM_R "b",
         "MatMul Add Reshape"},
        {"x:n,3; #w:3,4; #s.i64=-1,4,1; l = (MatMul x w); r = (Reshape l s); " NORM_R
         "y = (Tanh b); y", "Gemm Reshape Tanh"},
        {"x:2,3; #w:4,3; #s.i64=2,4,1; l = (Gemm x w transB=1); r = (Reshape l s); " NORM_R
         "y = (Tanh b); y", "Gemm Reshape Tanh"},
        {"x:2,3,5; #w:4,3,2; #s.i64=0,0,2,2; l = (Conv x w); r = (Reshape l s); " NORM_R
         "y = (Tanh b); y", "Conv Reshape Tanh"},
        /* other channels, as many of them; other readers; more than a bias between */
        {"x:2,4,5; #w:5,4; r = (MatMul x w); " NORM_R "y = (Tanh b); y",
         "MatMul BatchNormalization Tanh"},
        {"x:2,4,5; #w:5,4; #s.i64=2,4,2,2; l = (MatMul x w); r = (Reshape l s); " NORM_R
         "y = (Tanh b); y", "MatMul Reshape BatchNormalization Tanh"},
        {"x:4,3,5; #w:2,3,2; #s.i64=2,4,4; l = (Conv x w); r = (Reshape l s); " NORM_R
         "y = (Tanh b); y", "Conv Reshape BatchNormalization Tanh"},
        {"x:2,5,3; #w:3,4; #s.i64=-1,4; l = (MatMul x w); r = (Reshape l s); " NORM_R
         "y = (Tanh b); z = (Neg r); y, z", "MatMul Reshape BatchNormalization Tanh Neg"},
        {"x:2,5,3; #w:3,4; #s.i64=-1,4; l = (MatMul x w); r = (Reshape l s); " NORM_R
         "y = (Tanh b); z = (Neg l); y, z", "MatMul Reshape BatchNormalization Tanh Neg"},
        {"x:2,5,3; c:2,5,4; #w:3,4; #s.i64=-1,4; l = (MatMul x w); m = (Add l c); "
         "r = (Reshape m s); " NORM_R "y = (Tanh b); y",
         "MatMul Add Reshape BatchNormalization Tanh"},
    };
    CHECK_CASES(cases, 1e-4);
}

#define EDGES "#i.i64=0,1,1,0,0,-1,1,0; #j.i64=1,1,0,0,1,-2,0,1; "
#define BOTH_ENDS EDGES "g = (Gather t i); h = (Gather u j);"

static void check_only(test_state *test, const char *const *only, const net_case *cases,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        net n;
        CHECK(net_init(&n, NULL));
        net_text(&n, cases[i].text);
        ort_session *before = plain(&n);
        CHECK(before && rewrite_with(&n, (ort_pass_options){.only = only,
                                                            .growth_bytes = 1 << 20}) >= 0);
        ort_session *after = plain(&n);
        CHECK(after && net_agree(before, after, 1e-5));
        CHECK_TEXT(net_ops(&n), cases[i].ops);
        ort_session_free(before);
        ort_session_free(after);
        net_free(&n);
    }
}

#define STEPS "#i.i64=0,; #j.i64=-1,; g = (Gather x i); h = (Gather x j); "

/* Rows of a table that edges repeat are multiplied first; in a session, with known sizes. */
static void repeated_rows(test_state *test)
{
    static const char *const only[] = {"gather_products", "dead_nodes", NULL};
    static const net_case cases[] = {
        {"t:2,16; x:8,3; #w:19,4; " EDGES "g = (Gather t i); c = (Concat g x axis=1); "
         "y = (MatMul c w); y", "MatMul Gather MatMul Add"},
        {"t:2,16; u:2,16; x:8,3; z:8,2; #w:4,37; #b:4; " BOTH_ENDS
         "c = (Concat x g h z axis=-1); y = (Gemm c w b transB=1); y",
         "MatMul Gather MatMul Gather Concat Gemm Add Add"},
        {"t:2,16; u:2,16; #w:32,4; #b:4; " BOTH_ENDS "c = (Concat g h axis=1); "
         "y = (Gemm c w b); y", "MatMul Gather MatMul Gather Add Add"},
        {"t:2,16; #w:16,4; " EDGES "g = (Gather t i); c = (Concat g axis=1); y = (MatMul c w); y",
         "MatMul Gather Identity"},
        /* few columns or rows, other readers, another axis, a Gemm that scales, unknown sizes */
        {"t:2,8; x:8,3; #w:11,4; " EDGES "g = (Gather t i); c = (Concat g x axis=1); "
         "y = (MatMul c w); y", "Gather Concat MatMul"},
        {"t:5,16; x:8,3; #w:19,4; " EDGES "g = (Gather t i); c = (Concat g x axis=1); "
         "y = (MatMul c w); y", "Gather Concat MatMul"},
        {"t:2,16; x:8,3; #w:19,4; " EDGES "g = (Gather t i); c = (Concat g x axis=1); "
         "y = (MatMul c w); y, g", "Gather Concat MatMul"},
        {"t:2,16; x:8,3; #w:19,4; " EDGES "g = (Gather t i); c = (Concat g x axis=1); "
         "y = (MatMul c w); y, c", "Gather Concat MatMul"},
        {"t:16,2; x:3,8; #w:8,4; " EDGES "g = (Gather t i axis=1); h = (Transpose g perm=0,1); "
         "c = (Concat h x axis=0); y = (Gemm c w alpha=0.5); y",
         "Gather Transpose Concat Gemm"},
        {"t:n,16; x:8,3; #w:19,4; #i.i64=0,0,0,0,-1,0,0,0; g = (Gather t i); "
         "c = (Concat g x axis=1); y = (MatMul c w); y", "Gather Concat MatMul"},
    };
    check_only(test, only, cases, sizeof cases / sizeof *cases);
}

#define STEP(k, bias)                                                                              \
    "#i" #k ".i64=" #k ",; g" #k " = (Gather x i" #k "); p" #k " = (Gemm g" #k " w " #bias "); "
#define EIGHT_GATHERS "Gather Gather Gather Gather Gather Gather Gather Gather "

/* Rows that one matrix multiplies step by step are multiplied at once, if they are all. */
static void rows_step_by_step(test_state *test)
{
    static const char *const only[] = {"step_products", "dead_nodes", NULL};
    static const net_case cases[] = {
        {"x:2,8; #w:4,8; #b:4; " STEPS "p = (Gemm g w b transB=1); q = (Gemm h w b transB=1); "
         "y = (Sub p q); y", "Gemm Gather Gather Sub"},
        {"x:2,8; #w:8,4; " STEPS "p = (MatMul g w); q = (MatMul h w); y = (Sub p q); y, g",
         "Gather MatMul Gather Gather Sub"},
        {"x:2,8; #w:8,4; #v:8,4; " STEPS "p = (MatMul g w); q = (MatMul h w); r = (MatMul g v); "
         "s = (MatMul h v); t = (Sub p q); y = (Sub r s); y, t",
         "MatMul Gather Gather Sub MatMul Gather Gather Sub"},
        {"x:3,2,8; #w:4,8; #b:4; #i.i64=0; #j.i64=-1; g = (Gather x i axis=1); "
         "h = (Gather x j axis=1); p = (Gemm g w b transB=1); q = (Gemm h w b transB=1); "
         "y = (Sub p q); y", "Transpose MatMul Add Gather Gather Sub"},
        {"x:2,n,8; #w:8,4; #i.i64=0; #j.i64=1; g = (Gather x i); h = (Gather x j); "
         "p = (MatMul g w); q = (MatMul h w); y = (Sub p q); y", "MatMul Gather Gather Sub"},
        /* the first step's bias is another */
        {"x:9,8; #w:8,4; #b:4; #c:4; " STEP(0, c) STEP(1, b) STEP(2, b) STEP(3, b) STEP(4, b)
         STEP(5, b) STEP(6, b) STEP(7, b) STEP(8, b) "y = (Sum p0 p1 p2 p3 p4 p5 p6 p7 p8); y",
         "Gather Gemm Gemm " EIGHT_GATHERS "Sum"},
        /* a row that isn't multiplied, twice the same, other weights, other columns, scaled */
        {"x:3,8; #w:8,4; " STEPS "p = (MatMul g w); q = (MatMul h w); y = (Sub p q); y",
         "Gather Gather MatMul MatMul Sub"},
        {"x:2,8; #w:8,4; " STEPS "p = (MatMul h w); q = (MatMul h w); y = (Sub p q); y, g",
         "Gather Gather MatMul MatMul Sub"},
        {"x:2,8; #w:8,4; #v:8,4; " STEPS "p = (MatMul g w); q = (MatMul h v); y = (Sub p q); y",
         "Gather Gather MatMul MatMul Sub"},
        {"x:8,2; #w:8,8; #i.i64=0,; #j.i64=1,; g = (Gather x i axis=1); h = (Gather x j axis=1); "
         "p = (MatMul w g); q = (MatMul w h); y = (Sub p q); y", "Gather Gather MatMul MatMul Sub"},
        {"x:2,8; #w:8,4; " STEPS "p = (Gemm g w alpha=2.0); q = (Gemm h w alpha=2.0); "
         "y = (Sub p q); y", "Gather Gather Gemm Gemm Sub"},
    };
    check_only(test, only, cases, sizeof cases / sizeof *cases);
}

/* Strict math sums products as they are written. */
static void strict_sums(test_state *test)
{
    for (int strict = 0; strict < 2; strict++) {
        net n;
        ort_env_options options;
        ort_env_options_init(&options);
        options.math_strict = strict;
        CHECK(net_init(&n, &options));
        net_text(&n, "t:2,16; x:8,3; #w:19,4; " EDGES "g = (Gather t i); "
                     "c = (Concat g x axis=1); y = (MatMul c w); y");
        ort_session *session = net_session(&n, NULL, NULL);
        int joined = 0;
        for (int i = 0; session && i < session->program->step_count; i++)
            joined += !strcmp(session->program->steps[i].op->name, "Concat");
        CHECK(session && joined == strict);
        ort_session_free(session);
        net_free(&n);
    }
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, filters);
    RUN(test, matrices);
    RUN(test, behind_gemm);
    RUN(test, behind_relu);
    RUN(test, behind_reshape);
    RUN(test, repeated_rows);
    RUN(test, rows_step_by_step);
    RUN(test, strict_sums);
    return test->failures != 0;
}
