/* test_byte_threads.c - products of bytes that are divided among threads by the entries of a batch,
 * directions of a net, chunks of rows, rows of each thread, tiles or outputs give the bits of one,
 * on every tier. */
#include "rewrite.h"
#include "test.h"

static bool same(ort_value *const *a, ort_value *const *b, size_t count)
{
    ort_compare_options options = {sizeof options, 0, 0};
    for (size_t i = 0; i < count; i++) {
        ort_difference difference = ORT_DIFFERENCE_INIT;
        if (ort_value_compare(a[i], b[i], &options, &difference, NULL) || !difference.equal)
            return false;
    }
    return true;
}

/* Results of the net with this many threads; what is wrong, or NULL. */
static const char *run_with(const char *text, const char *isa, int threads, ort_value **y)
{
    ort_value *x[8] = {NULL};
    const char *why = NULL;
    net n;
    if (!net_on(&n, isa, threads))
        return "memory";
    net_text(&n, text);
    ort_session *s = net_session(&n, NULL, NULL);
    if (!s || ort_session_random_inputs(s, 11, x, ort_session_input_count(s), NULL))
        why = "no session";
    else if (run_whole(s, x, y, NULL, NULL))
        why = "no result";
    net_free_values(x, 8);
    ort_session_free(s);
    net_free(&n);
    return why;
}

static void check(test_state *test, const char *what, const char *text, size_t results)
{
    static const int threads[] = {1, 2, 3, 7};
    for (int i = 0; ort_kernel_tier_at(i) && !test->failed; i++) {
        const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(i)->name);
        ort_value *first[3] = {NULL};
        for (int t = 0; k && t < 4 && !test->failed; t++) {
            ort_value *y[3] = {NULL};
            const char *why = run_with(text, k->isa, threads[t], t ? y : first);
            if (!why && t && !same(first, y, results))
                why = "other bits than with one thread";
            if (why) {
                snprintf(test->why, sizeof test->why, "%s on %s, %d threads: %s", what, k->isa,
                         threads[t], why);
                test->failed = true;
            }
            net_free_values(y, 3);
        }
        net_free_values(first, 3);
    }
}

#define A "a.u8:3,7,33,70; #za.u8=131; "
#define CODES "#sa=0.02; #sb=0.03; #sy=0.9; #zb.i8=-3; #zy.u8=120; "

/* Entries that are each a task of its own, and some that are too large for that. */
static void batches(test_state *test)
{
    check(test, "codes of scores", A "b.i8:3,7,70,65; " CODES
          "y = (QLinearMatMul a sa za b sb zb sy zy); y", 1);
    check(test, "sums of scores", A "b.i8:3,7,70,65; " CODES "y = (MatMulInteger a b za zb); y", 1);
    check(test, "scaled scores", A "b.i8:7,70,65; " CODES
          "y = (ms.MatMulIntegerToFloat a b sa sb za zb); y", 1);
    check(test, "weights for all", A "#b.i8:70,65; " CODES
          "y = (QLinearMatMul a sa za b sb zb sy zy); y", 1);
    check(test, "quantized here", "a:5,40,70; #b.i8:70,300; #sb=0.03; #zb.i8=-3; "
          "y = (ms.DynamicQuantizeMatMul a b sb zb); y", 1);
    check(test, "large ones", "a.u8:2,200,300; b.u8:2,300,260; #za.u8=255; #zb.u8=0; "
          "y = (MatMulInteger a b za zb); y", 1);
}

#define LSTM(batch, ways, direction)                                                               \
    "x:5," batch ",24; #w.i8:" ways ",24,160; #r.i8:" ways ",40,160; #b:" ways ",320; "            \
    "#sw:" ways "; #zw.i8:" ways "; #sr:" ways "; #zr.i8:" ways "; "                               \
    "y, h, c = (ms.DynamicQuantizeLSTM x w r b - - - - sw zw sr zr hidden_size=40 direction="      \
    direction "); y, h, c"

/* Directions, and chunks of 8 rows. */
static void recurrent(test_state *test)
{
    check(test, "one direction", LSTM("3", "1", "forward"), 3);
    check(test, "two directions", LSTM("8", "2", "bidirectional"), 3);
    check(test, "chunks of rows", LSTM("19", "1", "reverse"), 3);
    check(test, "both", LSTM("19", "2", "bidirectional"), 3);
}

#define FEW(level) \
    "x:131,192; #q.u8:96,6,16; #s:96,6; #z.u8:96,3; " \
    "y = (ms.MatMulNBits x q s K=192 N=96 bits=4 block_size=32 accuracy_level=" level "); " \
    "w = (ms.MatMulNBits x q s z K=192 N=96 bits=4 block_size=32 accuracy_level=" level "); y, w"

/* Rows of each thread, of narrow weights. */
static void few_bits(test_state *test)
{
    check(test, "weights of 4 bits", FEW("0"), 2);
    check(test, "the same by codes", FEW("4"), 2);
}

#define CONV(c, m, side, more)                                                                     \
    "x.u8:1," c "," side "," side "; #w.i8:" m "," c ",3,3; #zx.u8=3; #zw.i8=0; #zy.u8=120; "      \
    "#sx=0.02; #sw=0.03; #sy=0.9; "                                                                \
    "y = (QLinearConv x sx zx w sw zw sy zy pads=1,1,1,1" more "); y"

/* Tiles too few for a task of each thread, tiles and outputs that are cut, two tasks of rows. */
static void convolutions(test_state *test)
{
    check(test, "four tiles", CONV("64", "64", "8", ""), 1);
    check(test, "16 tiles", CONV("32", "48", "16", ""), 1);
    check(test, "30 tiles", CONV("48", "80", "22", ""), 1);
    check(test, "rows", CONV("16", "32", "32", " strides=2,2"), 1);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, batches);
    RUN(test, recurrent);
    RUN(test, few_bits);
    RUN(test, convolutions);
    return test->failures != 0;
}
