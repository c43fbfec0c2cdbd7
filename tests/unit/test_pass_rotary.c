/* test_pass_rotary.c - rotations of elements side by side, of heads behind the tokens, of tables
 * that are there once; and what looks like one and isn't. */
#include "fusion.h"

/* Pairs side by side: heads of 4 in [B,S,2,4]; tables of angles, each number twice in turn. */
#define ROWS "h = (Reshape (MatMul x #w:24,8) [0 0 2 4]); "
#define EVERY(start) "(Unsqueeze " start " [4])"
#define EVEN "(Slice h [0] [99] [3] [2])"
#define ODD "(Slice h [1] [99] [3] [2])"
#define TURNED(odd, even)                                                                          \
    "(Reshape (Concat " EVERY("(Neg " odd ")") " " EVERY(even) " axis=4) [0 0 2 4])"
#define TWICE_EACH(f) "(Reshape (Expand (Unsqueeze " f " [2 4]) [1 1 1 1 2]) [0 0 1 4])"
#define IN_PAIRS(cos, sin, turned) "y = (Add (Mul h " cos ") (Mul " turned " " sin "))"
#define PAIRED                                                                                     \
    "l,k = (Split (Reshape h [0 0 2 2 2]) [1 1] axis=-1); l0 = (Squeeze l [4]); "                  \
    "k0 = (Squeeze k [4]); c = (Unsqueeze (Cos e) [2]); s = (Unsqueeze (Sin e) [2]); "
#define REAL(op) "(Unsqueeze (" op " (Mul l0 c) (Mul k0 s)) [-1])"
#define IMAGINARY "(Unsqueeze (Add (Mul s l0) (Mul k0 c)) [-1])"

static void rotary_pairs(test_state *test)
{
    const char *const halves = ROWS "e = (MatMul x #f:24,2); c = (Unsqueeze (Cos (Concat e e "
                               "axis=-1)) [2]); " IN_PAIRS("c", "c", TURNED(ODD, EVEN));
    const fusion list[] = {
        {ROWS "e = (MatMul x #f:24,2); " IN_PAIRS(TWICE_EACH("(Cos e)"), TWICE_EACH("(Sin e)"),
         TURNED(ODD, EVEN)), "n,m,24", 23, 0, "RotaryEmbedding", 6, 1e-5},
        {ROWS "e = (MatMul x #f:24,2); " IN_PAIRS(TWICE_EACH("(Cos e)"), TWICE_EACH("(Sin e)"),
         TURNED(ODD, EVEN)), "n,m,24", 17, CONTRIB, "RotaryEmbedding", -1, 1e-5},
        {ROWS "e = (MatMul x #f:24,2); " IN_PAIRS(TWICE_EACH("(Cos e)"), TWICE_EACH("(Sin e)"),
         TURNED(ODD, EVEN)), "n,m,24", 13, SESSION, "RotaryEmbedding", -1, 1e-5},
        /* odd and even changed, tables of halves, one table read in two ways */
        {ROWS "e = (MatMul x #f:24,2); " IN_PAIRS(TWICE_EACH("(Cos e)"), TWICE_EACH("(Sin e)"),
         TURNED(EVEN, ODD)), "n,m,24", 23, 0, "!RotaryEmbedding", -1, 1e-5},
        {halves, "n,m,24", 23, 0, "!RotaryEmbedding", -1, 1e-5},
        {ROWS "e = (MatMul x #f:24,2); " PAIRED "y = (Reshape (Concat " REAL("Sub") " " IMAGINARY
         " axis=-1) [0 0 2 4])", "n,m,24", 23, 0, "RotaryEmbedding", 6, 1e-5},
        {ROWS "e = (MatMul x #f:24,2); " PAIRED "y = (Reshape (Concat " REAL("Sub") " " IMAGINARY
         " axis=-1) [0 0 2 4])", "2,3,24", 17, CONTRIB, "RotaryEmbedding", -1, 1e-5},
        {ROWS "e = (MatMul x #f:24,2); " PAIRED "y = (Reshape (Concat " REAL("Add") " " IMAGINARY
         " axis=-1) [0 0 2 4])", "n,m,24", 23, 0, "!RotaryEmbedding", -1, 1e-5},
        {ROWS "e = (MatMul x #f:24,2); " PAIRED "y = (Reshape (Concat " REAL("Sub") " " IMAGINARY
         " axis=-2) [0 0 2 4])", "n,m,24", 23, 0, "!RotaryEmbedding", -1, 1e-5},
        /* constants for three tokens, whatever the batch */
        {ROWS "u = (Neg h); l,k = (Split u [2 2] axis=-1); y = (Concat (Sub (Mul l #c:1,3,1,2) "
         "(Mul k #s:1,3,1,2)) (Add (Mul k #c:1,3,1,2) (Mul l #s:1,3,1,2)) axis=-1)", "n,3,24",
         23, 0, "RotaryEmbedding", -1, 1e-5},
        {ROWS "u = (Neg h); l,k = (Split u [2 2] axis=-1); y = (Concat (Sub (Mul l #c:1,3,1,2) "
         "(Mul k #s:1,3,1,2)) (Add (Mul k #c:1,3,1,2) (Mul l #s:1,3,1,2)) axis=-1)", "2,3,24", 17,
         CONTRIB, "RotaryEmbedding", -1, 1e-5},
        {ROWS "l,k = (Split h [2 2] axis=-1); y = (Concat (Sub (Mul l #c:1,3,2,2) "
         "(Mul k #s:1,3,2,2)) (Add (Mul k #c:1,3,2,2) (Mul l #s:1,3,2,2)) axis=-1)", "n,3,24",
         23, 0, "!RotaryEmbedding", -1, 1e-5},
    };
    ALL(list);
}

/* The same tables, column by column. */
#define COLUMNS(a, b, f) a "," b " = (Split (Unsqueeze " f " [2]) [1 1] axis=-1); "
#define COLUMN(part) "(Reshape (Expand (Unsqueeze " part " [4]) [1 1 1 1 2]) [0 0 1 2])"
#define TOGETHER(a, b) "(Concat " COLUMN(a) " " COLUMN(b) " axis=-1)"
#define BY_COLUMNS ROWS "e = (MatMul x #f:24,2); " COLUMNS("c", "d", "(Cos e)")                    \
    COLUMNS("s", "t", "(Sin e)")

static void rotary_columns(test_state *test)
{
    const fusion list[] = {
        {BY_COLUMNS IN_PAIRS(TOGETHER("c", "d"), TOGETHER("s", "t"), TURNED(ODD, EVEN)), "n,m,24",
         23, 0, "RotaryEmbedding", 6, 1e-5},
        {BY_COLUMNS IN_PAIRS(TOGETHER("c", "d"), TOGETHER("s", "t"), TURNED(ODD, EVEN)), "n,m,24",
         17, CONTRIB, "RotaryEmbedding", -1, 1e-5},
        {BY_COLUMNS IN_PAIRS(TOGETHER("d", "c"), TOGETHER("t", "s"), TURNED(ODD, EVEN)), "n,m,24",
         23, 0, "!RotaryEmbedding", -1, 1e-5},
        {BY_COLUMNS IN_PAIRS(TOGETHER("c", "d"), TOGETHER("c", "t"), TURNED(ODD, EVEN)), "n,m,24",
         23, 0, "!RotaryEmbedding", -1, 1e-5},
    };
    ALL(list);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, rotary_pairs);
    RUN(test, rotary_columns);
    return test->failures != 0;
}
