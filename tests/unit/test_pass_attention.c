/* test_pass_attention.c - attention as exporters spell it: scales, masks, conditions, softcap,
 * heads split and joined, packed, grouped, cached; and what keeps it as it is. */
#include "fusion.h"

/* x is [B,S,24]: 2 heads of 4 for each of q, k and v */
#define PROJECTED(name) name "x = (MatMul x #w" name ":24,8); "
#define HEADS(name) "(Transpose (Reshape " name "x [0 0 2 4]) perm=0,2,1,3,)"
#define QKV PROJECTED("q") PROJECTED("k") PROJECTED("v")
#define KEYS "(Transpose (Reshape kx [0 0 2 4]) perm=0,2,3,1,)"
#define JOINED(heads) "y = (Reshape (Transpose " heads " perm=0,2,1,3,) [0 0 8])"
#define CORE(scores) JOINED("(MatMul (Softmax " scores ") " HEADS("v") ")")
#define SCORES "(Div (MatMul " HEADS("q") " " KEYS ") 2.0)"
#define LOW "-10000000000.0"

static void scales(test_state *test)
{
    const char *const swap = "(Transpose " HEADS("k") " perm=0,1,3,2,)";
    char text[4][1200];
    snprintf(text[0], sizeof text[0], QKV JOINED("(MatMul (Softmax (MatMul (Mul %s 0.7) (Mul %s "
             "0.7))) %s)"), HEADS("q"), swap, HEADS("v"));
    snprintf(text[1], sizeof text[1], QKV JOINED("(MatMul (Softmax (Mul (MatMul (Div %s 2.0) %s) "
             "3.0)) %s)"), HEADS("q"), swap, HEADS("v"));
    snprintf(text[2], sizeof text[2], QKV JOINED("(MatMul (Softmax (Mul (Tanh (Div (MatMul %s %s) "
             "5.0)) 5.0)) %s)"), HEADS("q"), swap, HEADS("v"));
    snprintf(text[3], sizeof text[3], QKV JOINED("(MatMul (Softmax (MatMul %s %s) axis=2) %s)"),
             HEADS("q"), swap, HEADS("v"));
    const fusion list[] = {
        {QKV CORE(SCORES), "n,m,24", 23, 0, "Attention", 4, 1e-5},
        {QKV CORE(SCORES), "n,m,24", 22, 0, "!Attention", -1, 1e-5},
        {QKV CORE(SCORES), "n,m,24", 13, SESSION, "Attention", 4, 1e-5},
        {QKV CORE(SCORES), "n,m,24", 17, CONTRIB, "MultiHeadAttention", 4, 1e-5},
        {text[0], "2,3,24", 23, 0, "Attention", 4, 1e-5},
        {text[1], "2,3,24", 23, 0, "Attention", 4, 1e-5},
        {text[2], "2,3,24", 23, 0, "Attention", 4, 1e-5},
        {text[2], "2,3,24", 17, CONTRIB, "!MultiHeadAttention", -1, 1e-5},
        {text[3], "2,3,24", 23, 0, "!Attention", -1, 1e-5},
    };
    ALL(list);
}

static void masks(test_state *test)
{
    const fusion list[] = {
        {QKV CORE("(Add " SCORES " #m:3,3)"), "2,3,24", 23, 0, "Attention", 4, 1e-5},
        {QKV CORE("(Add #m:2,1,1,3 (Add " SCORES " #n:1,2,3,3))"), "2,3,24", 23, 0, "Attention", -1,
         1e-5},
        {QKV CORE("(Add " SCORES " #m:3)"), "2,3,24", 23, 0, "!Attention", -1, 1e-5},
        {QKV CORE("(Add " SCORES " #m:2,1,1,3)"), "2,3,24", 17, CONTRIB, "MultiHeadAttention", -1,
         1e-5},
        {"m = (Unsqueeze (Sub 1.0 (ReduceMax x [-1] keepdims=0)) [1 2]); " QKV
         CORE("(Add " SCORES " m)"), "n,m,24", 18, CONTRIB, "MultiHeadAttention", -1, 1e-5},
        {QKV CORE("(Where (Cast #c:1,1,3,3 to=9) " SCORES " " LOW ")"), "2,3,24", 23, 0,
         "Attention", 4, 1e-5},
        {QKV CORE("(Where (Greater #c:2,1,1,3 0.0) " LOW " " SCORES ")"), "2,3,24", 23, 0,
         "Attention", 4, 1e-5},
        {QKV CORE("(Where (Greater #c:2,1,1,3 0.0) -1000.0 " SCORES ")"), "2,3,24", 23, 0,
         "!Attention", -1, 1e-5},
        {QKV CORE("(Mul (Add (MatMul " HEADS("q") " " KEYS ") #m:3,3) 0.5)"), "2,3,24", 23, 0,
         "!Attention", -1, 1e-5},
        {QKV "z = (Softmax " SCORES "); " JOINED("(MatMul z " HEADS("v") ")"), "2,3,24", 23, 0,
         "!Attention", -1, 1e-5},
    };
    ALL(list);
}

/* Heads that something is done to between their splitting and the product. */
#define NORMED(name) "(Relu " HEADS(name) ")"
#define NORMED_CORE(joined)                                                                        \
    QKV joined("(MatMul (Softmax (Mul (MatMul " NORMED("q") " (Transpose " NORMED("k")             \
               " perm=0,1,3,2,)) 0.5)) " HEADS("v") ")")
#define PARTED_CORE(sizes, width)                                                                  \
    "q,k,v = (Split (Transpose (Reshape (MatMul x #w:24,24) [0 0 2 12]) perm=0,2,1,3,) " sizes     \
    " axis=3); y = (Reshape (Transpose (MatMul (Softmax (Mul (MatMul q (Transpose k "              \
    "perm=0,1,3,2,)) 0.5)) v) perm=0,2,1,3,) [0 0 " width "])"
#define APART_HEADS(heads) "y = " heads

static void normed_heads(test_state *test)
{
    const fusion list[] = {
        {NORMED_CORE(JOINED), "n,m,24", 17, CONTRIB, "MultiHeadAttention", -1, 1e-5},
        {NORMED_CORE(JOINED), "n,m,24", 23, 0, "Attention", -1, 1e-5},
        {NORMED_CORE(APART_HEADS), "n,m,24", 17, CONTRIB, "!MultiHeadAttention", -1, 1e-5},
        /* heads of v of another size: all are put together, which leaves no Transpose */
        {PARTED_CORE("[3 3 6]", "12"), "n,m,24", 17, CONTRIB, "!Transpose", -1, 1e-5},
        {PARTED_CORE("[4 4 4]", "8"), "n,m,24", 17, CONTRIB, "MultiHeadAttention", -1, 1e-5},
        {PARTED_CORE("[3 3 6]", "12"), "n,m,24", 23, 0, "Attention", -1, 1e-5},
    };
    ALL(list);
}

/* One head, which a Reshape splits off; keys that are turned before; one row of queries. */
#define LONE(name) "(Unsqueeze " name "x [1])"
#define TOGETHER "[0 -1 8]"
#define ONE_CORE(keys, shape)                                                                      \
    QKV "y = (Reshape (MatMul (Softmax (Mul (MatMul " LONE("q") " " keys ") 0.3)) "                \
    LONE("v") ") " shape ")"
#define KEYS_OF_ONE "(Transpose " LONE("k") " perm=0,1,3,2,)"
#define TURNED_EARLY "(Unsqueeze (Transpose kx perm=0,2,1,) [1])"
#define NORMED_ONE                                                                                 \
    QKV "y = (Reshape (MatMul (Softmax (MatMul (Relu " LONE("q") ") " TURNED_EARLY ")) (Relu "     \
    LONE("v") ")) " TOGETHER ")"
#define ROW_CORE(shape)                                                                            \
    "qx = (MatMul (Slice x [0] [1] [1]) #wq:24,8); " PROJECTED("k") PROJECTED("v")                 \
    "y = (Reshape (MatMul (Softmax (MatMul (Reshape qx [0 2 1 4]) " KEYS ")) " HEADS("v") ") "     \
    shape ")"

static void one_head(test_state *test)
{
    const fusion list[] = {
        {ONE_CORE(KEYS_OF_ONE, TOGETHER), "n,m,24", 23, 0, "Attention", 4, 1e-5},
        {ONE_CORE(KEYS_OF_ONE, TOGETHER), "n,m,24", 17, CONTRIB, "MultiHeadAttention", 4, 1e-5},
        {ONE_CORE(TURNED_EARLY, TOGETHER), "n,m,24", 23, 0, "Attention", 4, 1e-5},
        {ONE_CORE(TURNED_EARLY, TOGETHER), "n,m,24", 17, CONTRIB, "MultiHeadAttention", 4, 1e-5},
        {QKV "y = (Squeeze (MatMul (Softmax (MatMul " LONE("q") " " TURNED_EARLY ")) " LONE("v")
         ") [1])", "2,3,24", 17, CONTRIB, "MultiHeadAttention", 4, 1e-5},
        /* heads of q that aren't split off: normed */
        {NORMED_ONE, "2,3,24", 17, CONTRIB, "MultiHeadAttention", -1, 1e-5},
        {NORMED_ONE, "2,3,24", 23, 0, "Attention", -1, 1e-5},
        /* another shape, and keys whose rows become heads */
        {ONE_CORE(TURNED_EARLY, "[0 4 -1]"), "2,3,24", 17, CONTRIB, "!MultiHeadAttention", -1,
         1e-5},
        {QKV "y = (MatMul (Softmax (MatMul (Reshape qx [0 8 3 1]) (Unsqueeze (Transpose kx "
         "perm=0,2,1,) [2]))) (Reshape vx [0 8 3 1]))", "2,3,24", 23, 0, "!Attention", -1, 1e-5},
        {ROW_CORE("[0 1 8]"), "2,3,24", 17, CONTRIB, "MultiHeadAttention", -1, 1e-5},
        {ROW_CORE("[0 1 8]"), "2,3,24", 23, 0, "!Softmax", -1, 1e-5},
        {ROW_CORE("[0 8 1]"), "2,3,24", 17, CONTRIB, "!MultiHeadAttention", -1, 1e-5},
    };
    ALL(list);
}

/* A scale for each head, as of cosine attention. */
#define SCALED_BY(scales, mask)                                                                    \
    CORE("(Add (Mul (MatMul " HEADS("q") " " KEYS ") " scales ") " mask ")")

static void scaled_heads(test_state *test)
{
    const fusion list[] = {
        {QKV SCALED_BY("#s:2,1,1", "#m:2,3,3"), "2,3,24", 23, 0, "Attention", -1, 1e-5},
        {QKV SCALED_BY("#s:1,2,1,1", "#m:1,1,3,3"), "2,3,24", 17, CONTRIB, "MultiHeadAttention", -1,
         1e-5},
        {QKV CORE("(Mul #s:2,1,1 " SCORES ")"), "n,m,24", 17, CONTRIB, "!Softmax", -1, 1e-5},
        /* of rows, of keys, on a sum, twice */
        {QKV SCALED_BY("#s:3,1", "#m:2,3,3"), "2,3,24", 23, 0, "!Attention", -1, 1e-5},
        {QKV SCALED_BY("#s:2,1,3", "#m:2,3,3"), "2,3,24", 23, 0, "!Attention", -1, 1e-5},
        {QKV CORE("(Mul (Add " SCORES " #m:3,3) #s:2,1,1)"), "2,3,24", 23, 0, "!Attention", -1,
         1e-5},
        {QKV CORE("(Mul (Where (Greater #c:3,3 0.0) " LOW " " SCORES ") #s:2,1,1)"), "2,3,24", 23,
         0, "!Attention", -1, 1e-5},
        {QKV CORE("(Mul (Mul (Tanh (Div " SCORES " 5.0)) 5.0) #s:2,1,1)"), "2,3,24", 23, 0,
         "!Attention", -1, 1e-5},
    };
    ALL(list);
}

/* A condition before a mask, and after it. Numbers of #m are small: every row has a key. */
#define KEEP_ONE(scores)                                                                           \
    "(Where (Cast (Trilu (Expand 1.0 [3 3]) @0 upper=0) to=9) " scores " " LOW ")"

static void masks_and_conditions(test_state *test)
{
    const fusion list[] = {
        {QKV CORE("(Add " KEEP_ONE(SCORES) " #m:2,1,1,3)"), "2,3,24", 23, 0, "Attention", 4, 1e-5},
        {QKV CORE("(Add " KEEP_ONE(SCORES) " #m:2,1,1,3)"), "2,3,24", 17, CONTRIB,
         "MultiHeadAttention", 4, 1e-5},
        {QKV CORE(KEEP_ONE("(Add " SCORES " #m:2,1,1,3)")), "2,3,24", 23, 0, "Attention", 4, 1e-5},
        {QKV CORE("(Add " KEEP_ONE("(Add " SCORES " #n:1,2,3,3)") " #m:2,1,1,3)"), "2,3,24", 23, 0,
         "Attention", 4, 1e-5},
        {QKV CORE("(Add (Where (Greater #c:2,1,1,3 0.0) -1000.0 " SCORES ") #m:3,3)"), "2,3,24",
         23, 0, "!Attention", -1, 1e-5},
    };
    ALL(list);
}

/* In a file of opset 23 the lowest number is halved, where it stands or where it arises; in a
 * session it isn't, nor are other numbers. */
#define LOWEST "-340282346638528859811704183484516925440.0"
#define CHOSEN(low) "(Slice (Where (Greater x 0.0) 0.0 " low ") [0] [3] [2])"

static void lowest(test_state *test)
{
    const fusion list[] = {
        {QKV CORE("(Add " SCORES " " CHOSEN(LOWEST) ")"), "2,3,24", 23, 0, "!Equal", -1, 1e-5},
        {QKV CORE("(Add " SCORES " " CHOSEN(LOWEST) ")"), "2,3,24", 23, 0, "Attention", -1, 1e-5},
        {QKV CORE("(Add " SCORES " (Mul " CHOSEN("1.0") " " LOWEST "))"), "2,3,24", 23, 0,
         "Equal", -1, 1e-5},
        {QKV CORE("(Add " SCORES " (Mul " CHOSEN("1.0") " " LOWEST "))"), "2,3,24", 23, SESSION,
         "!Equal", -1, 1e-5},
        {QKV CORE("(Add " SCORES " (Mul " CHOSEN("1.0") " " LOW "))"), "2,3,24", 23, 0, "!Equal",
         -1, 1e-5},
        {QKV CORE("(Where (Greater #c:2,1,1,3 0.0) " LOWEST " " SCORES ")"), "2,3,24", 23, 0,
         "Attention", 4, 1e-5},
    };
    ALL(list);
}

/* A guard of rows that an infinite mask leaves no key: the first row here. */
#define GUARDED(mask)                                                                              \
    QKV "p = (Softmax (Add " SCORES " " mask ")); "                                                \
    JOINED("(MatMul (Where (IsNaN p) 0.0 p) " HEADS("v") ")")
#define NO_KEYS "(Trilu (Expand (Log 0.0) [3 3]) @0)"

#define SOME_KEYS                                                                                  \
    "(Log (Cast (Greater (Unsqueeze (Slice x [0] [3] [2]) [1]) 0.0) to=1))"

static void guarded(test_state *test)
{
    const fusion list[] = {
        {GUARDED("#m:3,3"), "2,3,24", 23, 0, "!Where", 4, 1e-5},
        {GUARDED("#m:3,3"), "2,3,24", 17, CONTRIB, "!Where", -1, 1e-5},
        {GUARDED(NO_KEYS), "2,3,24", 23, 0, "!Where", 4, 1e-5},
        {GUARDED(NO_KEYS), "2,3,24", 14, SESSION, "!Where", -1, 1e-5},
        {GUARDED(NO_KEYS), "2,3,24", 17, CONTRIB, "MultiHeadAttention", -1, 1e-5},
        {GUARDED(NO_KEYS), "2,3,24", 17, CONTRIB, "Where", -1, 1e-5},
        {GUARDED(SOME_KEYS), "n,3,24", 13, CONTRIB, "MultiHeadAttention", -1, 1e-5},
        {GUARDED(SOME_KEYS), "n,3,24", 18, CONTRIB, "MultiHeadAttention", -1, 1e-5},
        {GUARDED(SOME_KEYS), "n,3,24", 18, CONTRIB, "Where", -1, 1e-5},
        {GUARDED("(Slice (Where (Greater x 0.0) 0.0 " LOW ") [0] [3] [2])"), "2,3,24", 17, CONTRIB,
         "!Softmax", -1, 1e-5},
        {GUARDED("(Slice x [0] [3] [2])"), "2,3,24", 17, CONTRIB, "Softmax", -1, 1e-5},
        /* another number for them, probabilities that others read */
        {QKV "p = (Softmax " SCORES "); " JOINED("(MatMul (Where (IsNaN p) 1.0 p) " HEADS("v") ")"),
         "2,3,24", 23, 0, "!Attention", -1, 1e-5},
        {QKV "p = (Softmax " SCORES "); z = (Neg p); "
         JOINED("(MatMul (Where (IsNaN p) 0.0 p) " HEADS("v") ")"), "2,3,24", 23, 0, "!Attention",
         -1, 1e-5},
    };
    ALL(list);
}

/* Probabilities put to 0 where the scores were lowered: rows that have no key give 0. */
#define KEEP "c = (Greater (Slice (Unsqueeze x [1]) [0] [3] [3]) 0.9); "
#define NO_ROWS "c = (Greater (Slice (Unsqueeze x [1]) [0] [3] [3]) 9.0); "
#define ZEROED(lowered, zeroed)                                                                    \
    "p = (Softmax (Where c " lowered ")); " JOINED("(MatMul (Where " zeroed ") " HEADS("v") ")")

static void zeroed(test_state *test)
{
    const fusion list[] = {
        {QKV KEEP ZEROED(SCORES " " LOW, "c p 0.0"), "2,3,24", 23, 0, "!Softmax", -1, 1e-5},
        {QKV KEEP ZEROED(SCORES " " LOW, "c p 0.0"), "2,3,24", 17, CONTRIB, "!Softmax", -1, 1e-5},
        {QKV KEEP ZEROED(LOW " " SCORES, "c 0.0 p"), "2,3,24", 18, CONTRIB, "!Softmax", -1, 1e-5},
        {QKV KEEP ZEROED(LOW " " SCORES, "c 0.0 p"), "2,3,24", 14, SESSION, "!Softmax", -1, 1e-5},
        {QKV NO_ROWS ZEROED(SCORES " " LOW, "c p 0.0"), "2,3,24", 17, CONTRIB, "!Softmax", -1,
         1e-5},
        {QKV KEEP ZEROED(SCORES " " LOW, "c 0.0 p"), "2,3,24", 17, CONTRIB, "Softmax", -1, 1e-5},
        {QKV KEEP ZEROED(SCORES " " LOW, "(Not c) p 0.0"), "2,3,24", 23, 0, "Softmax", -1, 1e-5},
        {QKV KEEP ZEROED(SCORES " " LOW, "c p 1.0"), "2,3,24", 23, 0, "Softmax", -1, 1e-5},
        /* a condition for each head */
        {QKV "c = (Greater (Mul (Slice (Unsqueeze x [1]) [0] [3] [3]) #h:1,2,1,1) 0.1); "
         ZEROED(SCORES " " LOW, "c p 0.0"), "2,3,24", 17, CONTRIB, "Softmax", -1, 1e-5},
        {QKV "c = (Greater (Mul (Slice (Unsqueeze x [1]) [0] [3] [3]) #h:1,2,1,1) 0.1); "
         ZEROED(SCORES " " LOW, "c p 0.0"), "2,3,24", 23, 0, "!Softmax", -1, 1e-5},
        /* probabilities that others read */
        {QKV KEEP "p = (Softmax (Where c " SCORES " " LOW ")); z = (Neg p); "
         JOINED("(MatMul (Where c p 0.0) " HEADS("v") ")"), "2,3,24", 23, 0, "Softmax", -1, 1e-5},
    };
    ALL(list);
}

/* Scores folded where a mask is added, unfolded where they are lowered, then folded again. */
#define BATCHED(name) "(Reshape " HEADS(name) " [-1 3 4])"
#define REFOLDED(mask)                                                                             \
    QKV "s = (Add (MatMul " BATCHED("q") " (Transpose " BATCHED("k") " perm=0,2,1,)) " mask "); " \
    KEEP "p = (Softmax (Where c (Reshape s [-1 2 3 3]) " LOW ")); "                                \
    JOINED("(Reshape (MatMul (Reshape p [-1 3 3]) " BATCHED("v") ") [-1 2 3 4])")

static void refolded(test_state *test)
{
    const fusion list[] = {
        {REFOLDED("#m:4,3,3"), "2,3,24", 23, 0, "!Softmax", -1, 1e-5},
        {REFOLDED("#m:4,3,3"), "2,3,24", 17, CONTRIB, "!Softmax", -1, 1e-5},
        {REFOLDED("#m:1,3,3"), "2,3,24", 17, CONTRIB, "!Softmax", -1, 1e-5},
        {REFOLDED("#m:4,1,3"), "2,3,24", 23, 0, "Softmax", -1, 1e-5},
        {REFOLDED("#m:4,1,3"), "2,3,24", 17, CONTRIB, "Softmax", -1, 1e-5},
    };
    ALL(list);
}

/* Products that have taken in what turns keys, and the scale. */
static void fused_products(test_state *test)
{
    const fusion list[] = {
        {QKV CORE("(ms.FusedMatMul " HEADS("q") " " HEADS("k") " transB=1 alpha=0.5)"), "n,m,24",
         17, CONTRIB, "MultiHeadAttention", 4, 1e-5},
        {QKV CORE("(ms.FusedMatMul " HEADS("q") " " KEYS " alpha=0.5)"), "n,m,24", 17, CONTRIB,
         "MultiHeadAttention", 4, 1e-5},
        {QKV CORE("(ms.FusedMatMul " HEADS("q") " " HEADS("k") " transB=1 alpha=-0.5)"), "n,m,24",
         17, CONTRIB, "!MultiHeadAttention", -1, 1e-5},
    };
    ALL(list);
}

/* One product for q, k and v: split along its columns, or along a dimension of its own. */
#define PACKED "p = (Transpose (Reshape (MatMul x #w:24,24) [0 0 3 2 4]) perm=2,0,3,1,4,); "
#define PART(i) "(Gather p @" #i ")"
#define LAID(i, j) "(Squeeze (Slice p [" i "] [" j "] [0]) [0])"
#define PACKED_CORE(q, k, v)                                                                       \
    JOINED("(MatMul (Softmax (Mul (MatMul " q " (Transpose " k " perm=0,1,3,2,)) 0.5)) " v ")")

static void packed(test_state *test)
{
    const fusion list[] = {
        {PACKED PACKED_CORE(PART(0), PART(1), PART(2)), "n,m,24", 23, 0, "Attention", 3, 1e-5},
        {PACKED PACKED_CORE(PART(0), PART(1), PART(2)), "n,m,24", 17, CONTRIB,
         "MultiHeadAttention", 3, 1e-5},
        {PACKED PACKED_CORE(PART(1), PART(0), PART(2)), "n,m,24", 23, 0, "Attention", -1, 1e-5},
        /* heads of q that aren't those of a product: normalized, or of a Slice */
        {PACKED PACKED_CORE("(Tanh " PART(0) ")", PART(1), PART(2)), "n,m,24", 17, CONTRIB,
         "MultiHeadAttention", -1, 1e-5},
        {PACKED PACKED_CORE("(Tanh " PART(0) ")", PART(1), PART(2)), "n,m,24", 17, CONTRIB,
         "!Softmax", -1, 1e-5},
        {"q,k,v = (Split (Reshape (MatMul x #w:24,24) [0 0 2 12]) [4 4 4] axis=3); " JOINED(
         "(MatMul (Softmax (MatMul (Transpose q perm=0,2,1,3,) (Transpose k perm=0,2,3,1,))) "
         "(Transpose v perm=0,2,1,3,))"), "n,m,24", 17, CONTRIB, "MultiHeadAttention", 7, 1e-5},
        {PACKED PACKED_CORE(LAID("0", "1"), LAID("1", "2"), LAID("2", "9")), "n,m,24", 23,
         0, "Attention", 3, 1e-5},
        {PACKED PACKED_CORE(LAID("0", "1"), LAID("1", "2"), LAID("1", "2")), "n,m,24", 23, 0,
         "!Split", -1, 1e-5},
    };
    ALL(list);
}

/* Projections with and without a bias, of one product, read elsewhere, of shared weights. */
#define WITH_BIAS(name) name "x = (Add (MatMul x #w" name ":24,8) #b" name ":8); "
#define SPLIT "qx,kx,vx = (Split (Add (MatMul x #w:24,24) #b:24) [8 8 8] axis=-1); "

static void projections(test_state *test)
{
    const fusion list[] = {
        {WITH_BIAS("q") WITH_BIAS("k") WITH_BIAS("v") CORE(SCORES), "n,m,24", 17, CONTRIB,
         "Attention", 1, 1e-5},
        {WITH_BIAS("q") PROJECTED("k") WITH_BIAS("v") CORE(SCORES), "n,m,24", 17, CONTRIB,
         "Attention", 1, 1e-5},
        {SPLIT CORE(SCORES), "n,m,24", 17, CONTRIB, "Attention", 1, 1e-5},
        {"o = (Neg x); " WITH_BIAS("q") "kx = (MatMul o #wk:24,8); " WITH_BIAS("v") CORE(SCORES),
         "n,m,24", 17, CONTRIB, "MultiHeadAttention", -1, 1e-5},
        {WITH_BIAS("q") WITH_BIAS("k") WITH_BIAS("v") CORE("(Add " SCORES " #m:2,1,1,3)"), "2,3,24",
         17, CONTRIB, "Attention", 1, 1e-5},
        {SPLIT CORE(SCORES), "n,m,24", 17, 0, "!Attention", -1, 1e-5},
        {SPLIT CORE(SCORES), "n,m,24", 23, CONTRIB, "Split", 4, 1e-5},
        {SPLIT "z = (Neg vx); " CORE(SCORES), "n,m,24", 17, CONTRIB, "MultiHeadAttention", 5,
         1e-5},
        {"vx,kx,qx = (Split (MatMul x #w:24,24) [8 8 8] axis=-1); " CORE(SCORES), "n,m,24", 17,
         CONTRIB, "MultiHeadAttention", 3, 1e-5},
        {"w = (Identity #w:24,8); qx = (MatMul x w); kx = (MatMul x w); vx = (MatMul x #wv:24,8); "
         CORE(SCORES), "n,m,24", 17, CONTRIB, "MultiHeadAttention", 3, 1e-5},
        /* relative positions: numbers for each head, row and column */
        {QKV CORE("(Add " SCORES " #r:1,2,3,3)"), "2,3,24", 17, CONTRIB, "MultiHeadAttention", -1,
         1e-5},
        {QKV CORE("(Add (Add " SCORES " #r:1,2,3,3) #m:2,1,1,3)"), "2,3,24", 23, 0, "Attention",
         -1, 1e-5},
    };
    ALL(list);
}

/* Masks made of the keys that count, c [B,S] */
#define COUNTING "c = (Greater (ReduceMean x axes=-1, keepdims=0) 0.0); "
#define TOKENS COUNTING "t = (Cast c to=7); "
#define WIDE(keys) "(Unsqueeze " keys " [1 2])"
#define BIASED WITH_BIAS("q") WITH_BIAS("k") WITH_BIAS("v")
#define LOWERED(mask) BIASED CORE("(Add " SCORES " " mask ")")

static void key_masks(test_state *test)
{
    const fusion list[] = {
        {TOKENS LOWERED("(Mul (Sub 1.0 (Cast " WIDE("t") " to=1)) " LOW ")"), "n,m,24", 17,
         CONTRIB, "!Mul", 4, 1e-5},
        {COUNTING LOWERED("(Mul (Sub 1.0 (Cast " WIDE("c") " to=1)) -30.0)"), "n,m,24", 17,
         CONTRIB, "!Mul", 4, 1e-5},
        {COUNTING LOWERED("(Where " WIDE("c") " 0.0 " LOW ")"), "n,m,24", 14, CONTRIB, "!Where", 4,
         1e-5},
        {COUNTING LOWERED("(Where " WIDE("c") " " LOW " 0.0)"), "n,m,24", 17, CONTRIB, "!Where", 5,
         1e-5},
        {TOKENS BIASED CORE("(Where (Equal " WIDE("t") " @0) " LOW " " SCORES ")"), "n,m,24", 17,
         CONTRIB, "!Where", 4, 1e-5},
        {TOKENS BIASED CORE("(Where " WIDE("(Greater t @0)") " " SCORES " " LOW ")"), "n,m,24", 17,
         CONTRIB, "!Where", 4, 1e-5},
        {TOKENS PROJECTED("q") PROJECTED("k") WITH_BIAS("v") CORE("(Add (Add " SCORES
         " #r:1,2,3,3) (Mul (Sub 1.0 (Cast " WIDE("t") " to=1)) " LOW "))"), "n,3,24", 17, CONTRIB,
         "Attention", 4, 1e-5},
        {TOKENS "m = (Add #r:1,2,3,3 (Mul (Sub 1.0 (Cast " WIDE("t") " to=1)) " LOW ")); "
         LOWERED("m"), "n,3,24", 14, CONTRIB, "Attention", 4, 1e-5},
        {"u = (Neg x); " TOKENS PROJECTED("q") "kx = (MatMul u #wk:24,8); vx = (MatMul u #wv:24,8);"
         CORE("(Add " SCORES " (Mul (Sub 1.0 (Cast " WIDE("t") " to=1)) " LOW "))"), "n,m,24", 17,
         CONTRIB, "MultiHeadAttention", 8, 1e-5},
        /* compared with another number than 0: the condition itself */
        {"t = (Cast (ReduceMean x axes=-1, keepdims=0) to=7); "
         LOWERED("(Where " WIDE("(Equal (Add t t) @2)") " 0.0 " LOW ")"), "n,m,24", 17, CONTRIB,
         "Equal", 6, 1e-5},
        {"t = (Cast (ReduceMean x axes=-1, keepdims=0) to=7); "
         LOWERED("(Where " WIDE("(Equal t @1)") " " LOW " 0.0)"), "n,m,24", 17, CONTRIB, "Equal",
         6, 1e-5},
        /* a mask of queries, of floats, of what isn't lowered; ONNX's operator */
        {COUNTING LOWERED("(Where (Unsqueeze c [1 3]) 0.0 " LOW ")"), "n,m,24", 17, CONTRIB,
         "Where", -1, 1e-5},
        {"f = (ReduceMean x axes=-1, keepdims=0); " LOWERED("(Mul " WIDE("(Sub 1.0 f)") " -1.0)"),
         "n,m,24", 17, CONTRIB, "Expand", -1, 1e-5},
        {COUNTING LOWERED("(Where " WIDE("c") " 1.0 " LOW ")"), "n,m,24", 17, CONTRIB, "Where", -1,
         1e-5},
        {"c = (Greater (ReduceMean x [-1] keepdims=0) 0.0); " LOWERED("(Where " WIDE("c") " 0.0 "
         LOW ")"), "n,m,24", 23, 0, "Where", -1, 1e-5},
    };
    ALL(list);
}

/* Heads folded into the batch of 2: [4,S,4]. */
#define FOLDED(name) "(Reshape " HEADS(name) " [4 3 4])"
#define TURNED_KEYS "(Transpose " FOLDED("k") " perm=0,2,1,)"
#define UNFOLDED(scores, shape)                                                                    \
    QKV JOINED("(Reshape (MatMul (Softmax " scores ") " FOLDED("v") ") " shape ")")
#define FOLDED_SCORES "(MatMul (Mul " FOLDED("q") " 0.5) " TURNED_KEYS ")"

static void folded(test_state *test)
{
    const fusion list[] = {
        {UNFOLDED(FOLDED_SCORES, "[2 2 3 4]"), "2,3,24", 23, 0, "Attention", 4, 1e-5},
        {UNFOLDED(FOLDED_SCORES, "[2 2 3 4]"), "2,3,24", 17, CONTRIB, "MultiHeadAttention", 4,
         1e-5},
        {UNFOLDED("(Add " FOLDED_SCORES " #m:3,3)", "[2 2 3 4]"), "2,3,24", 23, 0, "Attention", 4,
         1e-5},
        {UNFOLDED("(Reshape (Add (Reshape " FOLDED_SCORES " [2 2 3 3]) #m:2,1,3,3) [4 3 3])",
         "[2 2 3 4]"), "2,3,24", 23, 0, "Attention", 4, 1e-5},
        /* another batch when it is unfolded, a mask of all heads, a result that is read folded */
        {QKV "y = (Relu (Reshape (MatMul (Softmax " FOLDED_SCORES ") " FOLDED("v") ") [4 1 3 4]))",
         "2,3,24", 23, 0, "!Attention", -1, 1e-5},
        {UNFOLDED("(Reshape (Add (Reshape " FOLDED_SCORES " [4 1 3 3]) #m:4,1,3,3) [4 3 3])",
         "[2 2 3 4]"), "2,3,24", 23, 0, "!Attention", -1, 1e-5},
        {UNFOLDED("(Add " FOLDED_SCORES " #m:4,3,3)", "[2 2 3 4]"), "2,3,24", 23, 0, "!Attention",
         -1, 1e-5},
        {QKV "z = (MatMul (Softmax " FOLDED_SCORES ") " FOLDED("v") "); " JOINED(
         "(Reshape z [2 2 3 4])"), "2,3,24", 23, 0, "!Attention", -1, 1e-5},
    };
    ALL(list);
}

/* Steps first: x is [S,B,24], two heads folded into the batch. */
#define STEPPED(name) "(Transpose (Reshape " name "x [0 -1 4]) perm=1,0,2,)"
#define STEPPED_SCORES                                                                             \
    "(MatMul (Div " STEPPED("q") " 2.0) (Transpose " STEPPED("k") " perm=0,2,1,))"
#define STEPS_BACK(scores)                                                                         \
    BIASED "y = (Reshape (Transpose (MatMul (Softmax " scores ") " STEPPED("v") ") perm=1,0,2,) "  \
           "[0 -1 8])"
#define PARTED(name) "(Reshape " STEPPED(name) " [-1 2 3 4])"
#define PADDING "c = (Transpose (Greater (ReduceMean x axes=-1, keepdims=0) 0.0) perm=1,0,); "
#define OF_HEADS(mask) "(Reshape (Expand " mask " [1 2 1 1]) [4 1 3])"

static void steps_first(test_state *test)
{
    const fusion list[] = {
        {STEPS_BACK(STEPPED_SCORES), "n,m,24", 17, CONTRIB, "MultiHeadAttention", -1, 1e-5},
        {STEPS_BACK(STEPPED_SCORES), "n,m,24", 13, SESSION, "Attention", -1, 1e-5},
        {STEPS_BACK(STEPPED_SCORES), "n,m,24", 17, 0, "Softmax", -1, 1e-5},
        {STEPS_BACK("(Add " STEPPED_SCORES " #m:1,3,3)"), "3,2,24", 17, CONTRIB,
         "MultiHeadAttention", -1, 1e-5},
        {PADDING STEPS_BACK("(Add " STEPPED_SCORES " " OF_HEADS("(Where " WIDE("c") " 0.0 " LOW
         ")") ")"), "3,2,24", 17, CONTRIB, "!Where", -1, 1e-5},
        {PADDING STEPS_BACK("(Add " STEPPED_SCORES " " OF_HEADS("(Where " WIDE("c") " 0.0 " LOW
         ")") ")"), "3,2,24", 13, SESSION, "!Softmax", -1, 1e-5},
        {BIASED "y = (Reshape (Transpose (MatMul (Softmax (Mul (MatMul " PARTED("q") " (Transpose "
         PARTED("k") " perm=0,1,3,2,)) 0.5)) " PARTED("v") ") perm=2,0,1,3,) [3 2 8])", "3,2,24",
         17, CONTRIB, "MultiHeadAttention", -1, 1e-5},
        /* a mask of folded heads that isn't one of keys, a result that stays batch first */
        {STEPS_BACK("(Add " STEPPED_SCORES " #m:4,3,3)"), "3,2,24", 17, CONTRIB, "Softmax", -1,
         1e-5},
        {BIASED "y = (Relu (MatMul (Softmax " STEPPED_SCORES ") " STEPPED("v") "))", "3,2,24", 17,
         CONTRIB, "Softmax", -1, 1e-5},
    };
    ALL(list);
}

/* A batch of 4, two windows of each of two images. */
#define APART(mask)                                                                                \
    "(Reshape (Add (Reshape (Add " SCORES " #b:1,2,3,3) [2 2 2 3 3]) " mask ") [4 2 3 3])"

/* A batch of any even number. */
#define SOME_APART(mask)                                                                           \
    "(Reshape (Add (Reshape (Add " SCORES " #b:1,2,3,3) [-1 2 2 3 3]) " mask ") [-1 2 3 3])"

static void windows(test_state *test)
{
    const fusion list[] = {
        {QKV CORE(APART("#m:1,2,1,3,3")), "4,3,24", 23, 0, "!Softmax", -1, 1e-5},
        {QKV CORE(APART("#m:1,2,1,3,3")), "4,3,24", 17, CONTRIB, "!Softmax", -1, 1e-5},
        {QKV CORE(APART("#m:1,2,1,3,3")), "4,3,24", 13, SESSION, "Attention", -1, 1e-5},
        /* a batch that isn't known: as many times as the input says */
        {QKV CORE(SOME_APART("#m:1,2,1,3,3")), "n,3,24", 23, 0, "Tile", 8, 1e-5},
        {QKV CORE(SOME_APART("#m:2,1,3,3")), "n,3,24", 23, 0, "Attention", 8, 1e-5},
        {QKV CORE(SOME_APART("#m:1,2,1,3,3")), "n,3,24", 17, CONTRIB, "!Softmax", 8, 1e-5},
        {QKV CORE(SOME_APART("#m:1,2,2,3,3")), "n,3,24", 13, CONTRIB, "!Softmax", 9, 1e-5},
        {QKV CORE(SOME_APART("#m:1,2,1,1,3")), "n,3,24", 17, CONTRIB, "!Softmax", -1, 1e-5},
        {QKV CORE("(Add " SOME_APART("#m:1,2,1,3,3") " #b:1,2,3,3)"), "n,3,24", 23, 0, "Attention",
         -1, 1e-5},
        {QKV CORE("(Add " APART("#m:1,2,1,3,3") " #k:4,1,1,3)"), "4,3,24", 23, 0, "Attention", -1,
         1e-5},
        /* a mask of images, one of all windows */
        {QKV CORE(APART("#m:2,1,1,3,3")), "4,3,24", 23, 0, "!Attention", -1, 1e-5},
        {QKV CORE(APART("#m:1,1,1,3,3")), "4,3,24", 23, 0, "!Attention", -1, 1e-5},
        {QKV CORE("(Reshape (Add (Reshape " SCORES " [2 2 2 3 3]) #m:2,3,3) [4 2 3 3])"), "4,3,24",
         23, 0, "!Attention", -1, 1e-5},
    };
    ALL(list);
}

/* Two queries to a key: k and v of one head are repeated. */
#define ONE(name) "(Transpose (Reshape (MatMul x #w" name ":24,4) [0 0 1 4]) perm=0,2,1,3,)"
#define REPEATED(heads) "(Reshape (Expand (Unsqueeze " heads " [2]) [1 1 2 1 1]) [0 2 -1 4])"
#define GROUPED(k, v)                                                                              \
    PROJECTED("q")                                                                                 \
    JOINED("(MatMul (Softmax (Mul (MatMul " HEADS("q") " (Transpose " k " perm=0,1,3,2,)) 0.5)) "  \
           v ")")

static void groups(test_state *test)
{
    const fusion list[] = {
        {GROUPED(REPEATED(ONE("k")), REPEATED(ONE("v"))), "n,m,24", 23, 0, "Attention", 4, 1e-5},
        {GROUPED(REPEATED(ONE("k")), REPEATED(ONE("v"))), "n,m,24", 17, CONTRIB,
         "MultiHeadAttention", -1, 1e-5},
        {GROUPED(REPEATED("z:" ONE("k")), REPEATED(ONE("v"))), "n,m,24", 23, 0, "Attention", -1,
         1e-5},
    };
    ALL(list);
}

/* Past keys and values of 5 rows. */
#define GROWN(name, past) "(Concat #p" name ":" past " " HEADS(name) " axis=2)"
#define CACHED(k, v)                                                                               \
    QKV JOINED("(MatMul (Softmax (Mul (MatMul " HEADS("q") " (Transpose " k " perm=0,1,3,2,)) "    \
               "0.5)) " v ")")

static void caches(test_state *test)
{
    const fusion list[] = {
        {CACHED(GROWN("k", "2,2,5,4"), GROWN("v", "2,2,5,4")), "2,m,24", 23, 0, "!Concat", 4, 1e-5},
        {CACHED("z:" GROWN("k", "2,2,5,4"), GROWN("v", "2,2,5,4")), "2,m,24", 23, 0, "!Concat", 4,
         1e-5},
        {CACHED("z:" GROWN("k", "2,2,5,4"), GROWN("v", "2,2,5,4")), "2,m,24", 17, CONTRIB,
         "MultiHeadAttention", 4, 1e-5},
        {CACHED("k:" GROWN("k", "2,2,5,4"), GROWN("v", "2,2,5,4")) "; z = (Neg k)", "2,m,24", 23, 0,
         "Concat", -1, 1e-5},
    };
    ALL(list);
}

/* One head of keys and values, that of the first queries, for all. */
#define FIRST(name) "(Slice " HEADS(name) " [0] [1] [1])"

static void shared_head(test_state *test)
{
    const fusion list[] = {
        {CACHED(FIRST("k"), FIRST("v")), "n,m,24", 23, 0, "Attention", -1, 1e-5},
        {CACHED("(Concat #pk:2,1,5,4 " FIRST("k") " axis=2)", "z:(Concat #pv:2,1,5,4 " FIRST("v")
         " axis=2)"), "2,m,24", 23, 0, "!Concat", -1, 1e-5},
        {CACHED(FIRST("k"), FIRST("v")), "n,m,24", 17, SESSION, "Attention", -1, 1e-5},
        {CACHED(FIRST("k"), FIRST("v")), "n,m,24", 17, CONTRIB, "!MultiHeadAttention", -1, 1e-5},
        {CACHED(FIRST("k"), HEADS("v")), "n,m,24", 23, 0, "!Attention", -1, 1e-5},
        {CACHED("(Slice " FIRST("k") " [0] [1] [0])", "(Slice " FIRST("v") " [0] [1] [0])"),
         "2,m,24", 23, 0, "!Attention", -1, 1e-5},
    };
    ALL(list);
}

/* Scores that have a lowest number. */
static void floored(test_state *test)
{
    const fusion list[] = {
        {QKV CORE("(Max (Add " SCORES " (Where (Greater (Slice x [0] [3] [2]) 0.0) 0.0 " LOWEST
         ")) " LOWEST ")"), "1,3,24", 17, CONTRIB, "!Max", -1, 1e-5},
        {QKV CORE("(Max (Add " SCORES " #m:3,3) " LOWEST ")"), "2,3,24", 23, 0, "!Max", -1, 1e-5},
        {QKV CORE("(Max (Add " SCORES " (Concat (Expand 0.0 [3 1]) (Trilu (Expand " LOW " [3 2])) "
         "axis=1)) " LOWEST ")"), "2,3,24", 23, 0, "!Max", -1, 1e-5},
        {QKV CORE("(Max (Add " SCORES " " NO_KEYS ") " LOWEST ")"), "2,3,24", 23, 0, "Max", -1,
         1e-5},
        {QKV CORE("(Max (Add " SCORES " #m:3,3) -1000.0)"), "2,3,24", 23, 0, "Max", -1, 1e-5},
        {QKV CORE("(Max (Add " SCORES " (Unsqueeze (Slice x [0] [3] [2]) [1])) " LOWEST ")"),
         "2,3,24", 23, 0, "Max", -1, 1e-5},
    };
    ALL(list);
}

/* One query: x is [B,1,24]. */
#define ROW(name) "(Reshape " name "x [0 2 1 4])"
#define ROW_GROWN(name) "z:(Concat #p" name ":2,2,5,4 " ROW(name) " axis=2)"
#define SINGLE(k, v, joined)                                                                       \
    QKV joined("(MatMul (Softmax (Mul (MatMul " ROW("q") " (Transpose " k " perm=0,1,3,2,)) "      \
               "0.5)) " v ")")
#define ROW_JOINED(heads) "y = (Reshape " heads " [0 1 8])"
#define ROW_APART(heads) "y = (Neg " heads ")"
#define OTHERS(dims) "(Relu (Reshape (MatMul (Concat x x x axis=1) #w:24,8) " dims "))"
#define FOLDED_ROW(q, k, v, joined)                                                                \
    QKV "y = (Reshape (MatMul (Softmax (MatMul (Mul (Reshape qx " q ") 0.5) (Transpose " k         \
        " perm=0,2,1,))) " v ") " joined ")"
#define FOLD_OTHERS(dims) "(Reshape " OTHERS(dims) " [4 3 4])"
#define FOLD_GROWN(name) "(Reshape (Concat #p" name ":2,2,5,4 " ROW(name) " axis=2) [4 6 4])"

static void one_query(test_state *test)
{
    const fusion list[] = {
        {SINGLE("(Concat #p:2,2,5,4 " ROW("k") " axis=2)", ROW_GROWN("v"), ROW_JOINED), "2,1,24",
         17, CONTRIB, "MultiHeadAttention", 4, 1e-5},
        {SINGLE("(Concat #p:2,2,5,4 " ROW("k") " axis=2)", ROW_GROWN("v"), ROW_JOINED), "2,1,24",
         23, 0, "Attention", 4, 1e-5},
        {SINGLE(OTHERS("[2 2 3 4]"), OTHERS("[2 2 3 4]"), ROW_JOINED), "2,1,24", 17, CONTRIB,
         "MultiHeadAttention", -1, 1e-5},
        {SINGLE(OTHERS("[2 2 3 4]"), OTHERS("[2 2 3 4]"), ROW_APART), "2,1,24", 17, CONTRIB,
         "!MultiHeadAttention", -1, 1e-5},
        {SINGLE(OTHERS("[-1 2 3 4]"), OTHERS("[-1 2 3 4]"), ROW_JOINED), "n,1,24", 17, CONTRIB,
         "MultiHeadAttention", -1, 1e-5},
        {SINGLE(OTHERS("[-1 2 3 4]"), OTHERS("[-1 2 3 4]"), ROW_JOINED), "n,1,24", 17, 0, "Softmax",
         -1, 1e-5},
    };
    ALL(list);
}

static void one_folded_query(test_state *test)
{
    const fusion list[] = {
        {FOLDED_ROW("[4 1 4]", FOLD_GROWN("k"), FOLD_GROWN("v"), "[2 1 8]"), "2,1,24", 17, CONTRIB,
         "MultiHeadAttention", 4, 1e-5},
        {FOLDED_ROW("[4 1 4]", FOLD_GROWN("k"), FOLD_GROWN("v"), "[2 1 8]"), "2,1,24", 23, 0,
         "Attention", 4, 1e-5},
        {FOLDED_ROW("[4 1 4]", FOLD_OTHERS("[2 2 3 4]"), FOLD_OTHERS("[2 2 3 4]"), "[2 1 8]"),
         "2,1,24", 17, CONTRIB, "MultiHeadAttention", -1, 1e-5},
        {FOLDED_ROW("[4 1 4]", FOLD_OTHERS("[2 2 3 4]"), FOLD_OTHERS("[2 2 3 4]"), "[2 1 8]"),
         "2,1,24", 23, 0, "Attention", -1, 1e-5},
        {FOLDED_ROW("[4 1 4]", FOLD_OTHERS("[2 2 3 4]"), FOLD_OTHERS("[2 2 3 4]"), "[2 1 8]"),
         "2,1,24", 17, 0, "Softmax", -1, 1e-5},
        {QKV "y = (Reshape (MatMul (Softmax (Reshape (MatMul (Reshape qx [4 1 4]) (Transpose "
         FOLD_OTHERS("[2 2 3 4]") " perm=0,2,1,)) [2 2 1 3])) " OTHERS("[2 2 3 4]") ") [2 1 8])",
         "2,1,24", 23, 0, "!Attention", -1, 1e-5},
        /* another batch of keys, of the result, two rows of queries */
        {FOLDED_ROW("[4 1 4]", FOLD_OTHERS("[1 4 3 4]"), FOLD_OTHERS("[1 4 3 4]"), "[2 1 8]"),
         "2,1,24", 23, 0, "!Attention", -1, 1e-5},
        {FOLDED_ROW("[4 1 4]", FOLD_OTHERS("[2 2 3 4]"), FOLD_OTHERS("[2 2 3 4]"), "[1 1 16]"),
         "2,1,24", 23, 0, "!Attention", -1, 1e-5},
        {FOLDED_ROW("[4 2 4]", "(Reshape " OTHERS("[2 2 6 4]") " [4 6 4])",
                    "(Reshape " OTHERS("[2 2 6 4]") " [4 6 4])", "[2 2 8]"),
         "2,2,24", 23, 0, "!Attention", -1, 1e-5},
    };
    ALL(list);
}

/* Masks that keep later keys out; x [B,S,24] has n rows, and 5 are past. */
#define STEPS "t = (Squeeze (Slice (Shape x) [1] [2]) [0]); i = (Range @0 t @1); "
#define ALONG "(Unsqueeze i [0])"
#define DOWN "(Unsqueeze i [1])"
#define SQUARE "(Concat (Unsqueeze t [0]) (Unsqueeze t [0]) axis=0)"
#define CAUSAL(mask) STEPS QKV CORE("(Add " SCORES " " mask ")")

static void causal(test_state *test)
{
    const fusion list[] = {
        {CAUSAL("(Where (LessOrEqual " ALONG " " DOWN ") 0.0 " LOW ")"), "2,n,24", 23, 0,
         "Attention", 4, 1e-5},
        {CAUSAL("(Where (LessOrEqual " ALONG " " DOWN ") 0.0 " LOW ")"), "2,n,24", 17, CONTRIB,
         "MultiHeadAttention", 4, 1e-5},
        {CAUSAL("(Unsqueeze (Where (Not (GreaterOrEqual " DOWN " " ALONG ")) " LOW " 0.0) [0 1])"),
         "2,n,24", 23, 0, "Attention", 4, 1e-5},
        {CAUSAL("(Where (LessOrEqual " DOWN " " ALONG ") 0.0 " LOW ")"), "2,n,24", 23, 0, "Where",
         -1, 1e-5},
        {CAUSAL("(Where (Less " ALONG " " DOWN ") 0.0 " LOW ")"), "2,n,24", 23, 0, "Where", -1,
         1e-5},
        {STEPS QKV CORE("(Where (Greater " ALONG " " DOWN ") " LOW " " SCORES ")"), "2,n,24", 23, 0,
         "!Where", 4, 1e-5},
        {STEPS QKV CORE("(Where (Greater " ALONG " " DOWN ") " SCORES " " LOW ")"), "2,n,24", 23, 0,
         "Where", -1, 1e-5},
        {CAUSAL("(Trilu (Expand " LOW " " SQUARE ") @1)"), "2,n,24", 23, 0, "!Trilu", 4, 1e-5},
        {CAUSAL("(Trilu (Expand " LOW " " SQUARE ") @2)"), "2,n,24", 23, 0, "Trilu", -1, 1e-5},
        {CAUSAL("(Mul (Sub 1.0 (Trilu (Expand 1.0 " SQUARE ") upper=0)) " LOW ")"), "2,n,24", 23, 0,
         "!Trilu", 4, 1e-5},
        {CAUSAL("(Mul (Trilu (Expand 1.0 " SQUARE ") upper=0) " LOW ")"), "2,n,24", 23, 0, "Trilu",
         -1, 1e-5},
        {CAUSAL("(Expand (Mul (Cast (Greater " ALONG " " DOWN ") to=1) " LOW ") [1 2 1 1])"),
         "2,n,24", 23, 0, "!Expand", 4, 1e-5},
        {QKV CORE(KEEP_ONE(SCORES)), "2,3,24", 23, 0, "!Where", 4, 1e-5},
        {QKV CORE("(Add " SCORES " (Trilu (Expand " LOW " [3 3]) @1))"), "2,3,24", 23, 0,
         "Attention", 4, 1e-5},
        {STEPS CACHED("z:" GROWN("k", "2,2,5,4"), GROWN("v", "2,2,5,4")), "2,n,24", 23, 0,
         "Attention", 4, 1e-5},
    };
    ALL(list);
}

#define POSITIONS                                                                                  \
    STEPS "l = (Add t @5); c = (Unsqueeze (Range @0 l @1) [0]); r = (Unsqueeze (Add i @5) [1]); "
#define PAST(mask)                                                                                 \
    POSITIONS QKV JOINED(                                                                          \
        "(MatMul (Softmax (Add (Mul (MatMul " HEADS("q") " (Transpose z:" GROWN("k", "2,2,5,4")    \
        " perm=0,1,3,2,)) 0.5) " mask ")) " GROWN("v", "2,2,5,4") ")")

static void causal_with_past(test_state *test)
{
    const fusion list[] = {
        {PAST("(Where (LessOrEqual c r) 0.0 " LOW ")"), "2,n,24", 23, 0, "!Where", 4, 1e-5},
        {PAST("(Where (LessOrEqual c r) 0.0 " LOW ")"), "2,n,24", 17, CONTRIB, "!Where", 4, 1e-5},
        {PAST("(Where (LessOrEqual c " DOWN ") 0.0 " LOW ")"), "2,n,24", 23, 0, "Where", -1, 1e-5},
    };
    ALL(list);
}

/* A key for two queries of four, causal; `past` is the shape of what is appended to. */
#define TWICE(heads) "(Reshape (Expand (Unsqueeze " heads " [2]) [1 1 2 1 1]) [0 4 -1 4])"
#define GROUP(name, past) TWICE("(Concat #p" name ":" past " " HEADS(name) " axis=2)")
#define CAUSAL_GROUP(k, v, mask)                                                                   \
    "qx = (MatMul x #wq:24,16); " PROJECTED("k") PROJECTED("v")                                    \
    "y = (Reshape (Transpose (MatMul (Softmax (Add (Mul (MatMul (Transpose (Reshape qx "           \
    "[0 0 4 4]) perm=0,2,1,3,) (Transpose " k " perm=0,1,3,2,)) 0.5) " mask ")) " v                \
    ") perm=0,2,1,3,) [0 0 16])"
#define AFTER "(Where (LessOrEqual " ALONG " " DOWN ") 0.0 " LOW ")"
#define AFTER_PAST "(Where (LessOrEqual (Unsqueeze (Range @0 (Add t @5) @1) [0]) "                 \
    "(Add " DOWN " @5)) 0.0 " LOW ")"

static void grouped_queries(test_state *test)
{
    const fusion list[] = {
        {STEPS CAUSAL_GROUP(TWICE(HEADS("k")), TWICE(HEADS("v")), AFTER), "2,n,24", 17, CONTRIB,
         "GroupQueryAttention", -1, 1e-5},
        {STEPS CAUSAL_GROUP(TWICE(HEADS("k")), TWICE(HEADS("v")), AFTER), "2,3,24", 17, CONTRIB,
         "!Shape", 4, 1e-5},
        {STEPS CAUSAL_GROUP(TWICE(HEADS("k")), TWICE(HEADS("v")), AFTER), "2,n,24", 17, 0,
         "!GroupQueryAttention", -1, 1e-5},
        {STEPS CAUSAL_GROUP(TWICE(HEADS("k")), TWICE(HEADS("v")), AFTER), "2,n,24", 14, CONTRIB,
         "!GroupQueryAttention", -1, 1e-5},
        {STEPS CAUSAL_GROUP(GROUP("k", "1,2,5,4"), GROUP("v", "1,2,5,4"), AFTER_PAST), "1,n,24", 17,
         CONTRIB, "GroupQueryAttention", -1, 1e-5},
        {STEPS CAUSAL_GROUP(GROUP("k", "2,2,5,4"), GROUP("v", "2,2,5,4"), AFTER_PAST), "2,n,24", 17,
         CONTRIB, "!GroupQueryAttention", -1, 1e-5},
        {STEPS CAUSAL_GROUP(GROUP("k", "1,2,5,4"), GROUP("v", "1,2,5,4"), "#m:1,1,1,8"), "1,3,24",
         17, CONTRIB, "!GroupQueryAttention", -1, 1e-5},
    };
    ALL(list);
}

/* Rotated halves of heads of 4; angles f [B,S,2] of each token. */
#define ANGLES "f = (MatMul x #f:24,2); e = (Concat f f axis=-1); "
#define TABLE(op) "(Unsqueeze (Mul (" op " e) 1.25) [1])"
#define TURNED(h) "(Concat (Neg (Slice " h " [2] [9] [3])) (Slice " h " [0] [2] [-1]) axis=-1)"
#define ROTATED(h, cos, sin) "(Add (Mul " h " " cos ") (Mul " TURNED(h) " " sin "))"
#define START PROJECTED("q") "h = (Transpose (Reshape qx [0 0 2 4]) perm=0,2,1,3,); "

/* Heads of 6, of which 4 elements are rotated. */
#define PARTLY(parts, rotated, other)                                                              \
    "qx = (MatMul x #wq:24,12); w = (Transpose (Reshape qx [0 0 2 6]) perm=0,2,1,3,); "            \
    parts "h = " rotated "; " ANGLES "y = (Concat " ROTATED("h", TABLE("Cos"), TABLE("Sin"))       \
    " " other " axis=-1)"

static void rotary(test_state *test)
{
    const fusion list[] = {
        {START ANGLES "y = " ROTATED("h", TABLE("Cos"), TABLE("Sin")), "n,m,24", 23, 0,
         "RotaryEmbedding", 9, 1e-5},
        {START ANGLES "y = " ROTATED("h", TABLE("Cos"), TABLE("Sin")), "n,m,24", 22, 0,
         "!RotaryEmbedding", -1, 1e-5},
        {START ANGLES "y = " ROTATED("h", TABLE("Cos"), TABLE("Sin")), "n,m,24", 17, SESSION,
         "RotaryEmbedding", 9, 1e-5},
        {START ANGLES "lo,hi = (Split h [2 2] axis=-1); "
         "y = (Add (Mul (Concat (Neg hi) lo axis=-1) " TABLE("Sin") ") (Mul h " TABLE("Cos") "))",
         "n,m,24", 23, 0, "RotaryEmbedding", 9, 1e-5},
        {START ANGLES "y = " ROTATED("h", TABLE("Cos"), TABLE("Sin")), "n,m,24", 17, CONTRIB,
         "RotaryEmbedding", 15, 1e-5},
        {START ANGLES "y = " ROTATED("h", TABLE("Cos"), TABLE("Sin")), "1,m,24", 17, CONTRIB,
         "RotaryEmbedding", 11, 1e-5},
        {START ANGLES "y = " ROTATED("h", TABLE("Cos"), TABLE("Sin")), "n,m,24", 14, CONTRIB,
         "!RotaryEmbedding", -1, 1e-5},
        {START "i = (Identity #c:7,2); t = (Concat i i axis=1); ids = (Cast (ReduceMax x axes=-1, "
         "keepdims=0) to=7); y = " ROTATED("h", "(Unsqueeze (Gather t ids) [1])",
         "(Unsqueeze (Gather t ids) [1])"), "n,m,24", 17, CONTRIB, "RotaryEmbedding", 6, 1e-5},
        {PARTLY("", "(Slice w [0] [4] [3])", "(Slice w [4] [99] [3])"), "n,m,24", 23, 0, "!Concat",
         9, 1e-5},
        {PARTLY("", "(Slice w [0] [4] [3])", "(Slice w [4] [6] [-1])"), "n,m,24", 17, CONTRIB,
         "!Concat", 15, 1e-5},
        {PARTLY("l,o = (Split w [4 2] axis=-1); ", "(Identity l)", "o"), "n,m,24", 23, 0, "!Split",
         9, 1e-5},
        {PARTLY("", "(Slice w [2] [6] [3])", "(Slice w [0] [2] [3])"), "n,m,24", 23, 0, "Concat",
         -1, 1e-5},
        {START "e = (MatMul x #f:24,4); y = " ROTATED("h", TABLE("Cos"), TABLE("Sin")),
         "n,m,24", 23, 0, "!RotaryEmbedding", -1, 1e-5},
        {START ANGLES "l = (Slice h [0] [1] [3]); y = (Add (Mul h " TABLE("Cos") ") (Mul (Concat "
         "(Neg (Slice h [1] [4] [3])) l axis=-1) " TABLE("Sin") "))", "n,m,24", 23, 0,
         "!RotaryEmbedding", -1, 1e-5},
        {START "t = (Concat #c:7,2 (Identity #d:7,2) axis=1); ids = (Cast (ReduceMax x [-1] "
         "keepdims=0) to=7); y = " ROTATED("h", "(Unsqueeze (Gather t ids) [1])",
         "(Unsqueeze (Gather t ids) [1])"), "n,m,24", 23, 0, "!RotaryEmbedding", -1, 1e-5},
        {START "i = (Identity #c:7,2); t = (Concat i i axis=1); ids = (Cast (ReduceMax x [-1] "
         "keepdims=0) to=7); y = " ROTATED("h", "(Unsqueeze (Gather t ids) [1])",
         "(Unsqueeze (Gather t ids) [1])"), "n,m,24", 23, 0, "RotaryEmbedding", 6, 1e-5},
    };
    ALL(list);
}

/* Rows of a table, cut to the length, picked by positions that all of the batch share. */
#define CUT "(Slice (Concat u u axis=1) [0] (Unsqueeze t [0]) [0])"
#define PICKED(at) "(Unsqueeze (Gather " CUT " " at ") [1])"
#define ROTATED_ROWS(at)                                                                           \
    STEPS START "u = (Identity #c:7,2); y = " ROTATED("h", PICKED(at), PICKED(at))
#define EACH "(Cast (ReduceMin (Mul x 0.0) [-1] keepdims=0) to=7)"

static void rotary_rows(test_state *test)
{
    const fusion list[] = {
        {ROTATED_ROWS("(Unsqueeze i [0])"), "2,n,24", 23, 0, "RotaryEmbedding", -1, 1e-5},
        {ROTATED_ROWS("(Unsqueeze i [0])"), "2,n,24", 17, CONTRIB, "RotaryEmbedding", -1, 1e-5},
        {ROTATED_ROWS(EACH), "2,n,24", 18, CONTRIB, "RotaryEmbedding", -1, 1e-5},
        {ROTATED_ROWS(EACH), "2,n,24", 23, 0, "RotaryEmbedding", -1, 1e-5},
        /* other numbers in the other half */
        {STEPS START "u = (Identity #c:7,2); w = (Concat u (Neg u) axis=1); y = " ROTATED("h",
         "(Unsqueeze (Gather (Slice w [0] (Unsqueeze t [0]) [0]) (Unsqueeze i [0])) [1])",
         "(Unsqueeze (Gather (Slice w [0] (Unsqueeze t [0]) [0]) (Unsqueeze i [0])) [1])"),
         "2,n,24", 23, 0, "!RotaryEmbedding", -1, 1e-5},
    };
    ALL(list);
}

/* Both around an attention: the rotation goes before the splitting of heads. */
static void rotated_attention(test_state *test)
{
    const fusion list[] = {
        {QKV ANGLES "c = " TABLE("Cos") "; s = " TABLE("Sin") "; q = " HEADS("q") "; k = "
         HEADS("k") "; a = " ROTATED("q", "c", "s") "; b = " ROTATED("k", "c", "s") "; " JOINED(
         "(MatMul (Softmax (Mul (MatMul a (Transpose b perm=0,1,3,2,)) 0.5)) " HEADS("v") ")"),
         "n,m,24", 23, 0, "!Transpose", 11, 1e-5},
    };
    ALL(list);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, scales);
    RUN(test, masks);
    RUN(test, normed_heads);
    RUN(test, one_head);
    RUN(test, scaled_heads);
    RUN(test, masks_and_conditions);
    RUN(test, lowest);
    RUN(test, guarded);
    RUN(test, zeroed);
    RUN(test, refolded);
    RUN(test, fused_products);
    RUN(test, packed);
    RUN(test, key_masks);
    RUN(test, steps_first);
    RUN(test, folded);
    RUN(test, windows);
    RUN(test, projections);
    RUN(test, groups);
    RUN(test, shared_head);
    RUN(test, floored);
    RUN(test, caches);
    RUN(test, one_query);
    RUN(test, one_folded_query);
    RUN(test, causal);
    RUN(test, causal_with_past);
    RUN(test, grouped_queries);
    RUN(test, rotary);
    RUN(test, rotary_rows);
    RUN(test, rotated_attention);
    return test->failures != 0;
}
