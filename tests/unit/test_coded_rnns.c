/* test_coded_rnns.c - recurrences with dequantized weights: they keep them in 8 bits, give on every
 * tier what the float operators give but for roundings, and the same bits on any number of threads.
 */
#include "rewrite.h"
#include "test.h"
#include "workers.h"

typedef struct coded_case {
    const char *what, *text, *op; /* op: what becomes of the recurrences */
} coded_case;

/* W and R as codes of a type, [ways, rows, inputs or hidden], with scales along an axis. */
#define WEIGHTS(type, ways, rows, inputs, hidden, w_scales, r_scales, axis)                        \
    "#wq." type ":" ways "," rows "," inputs "; #rq." type ":" ways "," rows "," hidden "; "       \
    "sw = (Mul #s0" w_scales " 0.0007); sr = (Mul #s1" r_scales " 0.0004); "                       \
    "#zw." type w_scales "; #zr." type r_scales "; "                                               \
    "w = (DequantizeLinear wq sw zw axis=" axis "); r = (DequantizeLinear rq sr zr axis=" axis "); "
#define ONE "=2"
#define X "x:5,3,24; "
#define CODED_X                                                                                    \
    "v:5,3,24; #sx=0.03; #zx.u8=131; x = (DequantizeLinear (QuantizeLinear v sx zx) sx zx); "
#define LSTM "y, h, c = (LSTM x w r #b:1,320 hidden_size=40); y, h, c"
#define WIDE_LSTM "y, h, c = (LSTM x w r #b:1,1120 hidden_size=140); y, h, c"
#define WIDE WEIGHTS("i8", "1", "560", "24", "140", ":560", ":560", "1")
#define GRU(rest)                                                                                  \
    "y, h = (GRU x w r #b:2,1560 hidden_size=260 direction=bidirectional " rest "); y, h"

static const coded_case cases[] = {
    {"one scale", X WEIGHTS("i8", "1", "160", "24", "40", ONE, ONE, "1") LSTM, "CodedLSTM"},
    {"no zero points", X "#wq.i8:1,160,24; #rq.i8:1,160,40; w = (DequantizeLinear wq #sw=0.002); "
     "r = (DequantizeLinear rq #sr=0.001); " LSTM, "CodedLSTM"},
    {"rows of bytes without a sign",
     X WEIGHTS("u8", "1", "160", "24", "40", ":160", ":160", "1") LSTM, "CodedLSTM"},
    {"scales of directions",
     X WEIGHTS("i8", "2", "160", "24", "40", ":2", ":2", "-3")
     "y, h, c = (LSTM x w r #b:2,320 hidden_size=40 direction=bidirectional); y, h, c",
     "CodedLSTM"},
    {"W by rows, R by one scale",
     X WEIGHTS("i8", "1", "160", "24", "40", ":160", ONE, "1") LSTM, "CodedLSTM"},
    {"codes of X", CODED_X WEIGHTS("i8", "1", "160", "24", "40", ":160", ":160", "1") LSTM,
     "CodedLSTM"},
    {"many columns", X WIDE "y, h, c = (LSTM x w r #b:1,1120 hidden_size=140); y, h, c",
     "CodedLSTM"},
    {"many columns of codes of X, without a bias",
     CODED_X WIDE "y, h, c = (LSTM x w r hidden_size=140); y, h, c", "CodedLSTM"},
    {"chunks of rows, states, peepholes, a length for each",
     "x:4,19,24; #l.i32=3,0,4,1,2,3,4,0,1,2,3,4,3,2,1,4,4,3,2; h0:1,19,140; c0:1,19,140; " WIDE
     "y, h, c = (LSTM x w r - l h0 c0 #p:1,420 hidden_size=140 direction=reverse); y, h, c",
     "CodedLSTM"},
    {"numbers that no fixed point holds",
     "v:5,3,24; x = (Mul v 1e33); " WIDE WIDE_LSTM, "CodedLSTM"},
    {"zeros", "v:5,3,24; x = (Mul v 0); " WIDE WIDE_LSTM, "CodedLSTM"},
    {"a bias that comes with each run", X "b:1,1120; " WIDE
     "y, h, c = (LSTM x w r b hidden_size=140); y, h, c", "CodedLSTM"},
    {"GRU", X WEIGHTS("i8", "2", "780", "24", "260", ":780", ":780", "1") GRU(""), "CodedGRU"},
    {"GRU of which only some weights are wide",
     X WEIGHTS("i8", "1", "288", "24", "96", ":288", ":288", "1")
     "y, h = (GRU x w r #b:1,576 hidden_size=96); y, h", "CodedGRU"},
    {"GRU, linear before reset",
     CODED_X WEIGHTS("u8", "2", "780", "24", "260", ONE, ONE, "1") GRU("linear_before_reset=1"),
     "CodedGRU"},
    {"RNN, batch first",
     "x:3,5,24; " WEIGHTS("i8", "1", "280", "24", "280", ":280", ":280", "1")
     "y, h = (RNN x w r #b:1,560 hidden_size=280 layout=1); y, h", "CodedRNN"},
    {"two layers", CODED_X WEIGHTS("i8", "1", "160", "24", "40", ":160", ":160", "1")
     "y, h, c = (LSTM x w r #b:1,320 hidden_size=40); "
     "#w2.i8:1,160,40; x2 = (Squeeze y #axes.i64=1,); "
     "y2, h2, c2 = (LSTM x2 (DequantizeLinear w2 #sw2=0.001) (DequantizeLinear w2 #sr2=0.002) "
     "#b2:1,320 hidden_size=40); y2, h, c2", "CodedLSTM"},
    {"weights that moved as codes",
     X "#wq.i8:160,24; #rq.i8:160,40; #first.i64=0,; "
     "w = (Unsqueeze (DequantizeLinear wq #sw=0.002) first); "
     "r = (Unsqueeze (DequantizeLinear rq #sr=0.001) first); " LSTM, "CodedLSTM"},
    {"X that moved as codes, weights in parts",
     "v:3,5,24; #sx=0.03; #zx.u8=131; "
     "x = (Transpose (DequantizeLinear (QuantizeLinear v sx zx) sx zx) perm=1,0,2); "
     "#wa.i8:1,60,24; #wb.i8:1,100,24; #rq.i8:1,160,40; #s=0.002; "
     "w = (Concat (DequantizeLinear wa s) (DequantizeLinear wb s) axis=1); "
     "r = (DequantizeLinear rq #sr=0.001); " LSTM, "CodedLSTM"},
    {"weights of 4 bits",
     X "#wq.i4:1,160,24; #rq.i4:1,160,40; #zr.i4=3; "
     "w = (ms.DequantizeLinear wq #sw=0.02); r = (ms.DequantizeLinear rq #sr=0.01 zr); " LSTM,
     "CodedLSTM"},
    {"scales along columns stay float",
     X WEIGHTS("i8", "1", "160", "24", "40", ":24", ":40", "2") LSTM, "LSTM"},
    {"weights of 16 bits stay float",
     X "#wq.i16:1,160,24; #rq.i16:1,160,40; w = (ms.DequantizeLinear wq #sw=0.0001); "
     "r = (ms.DequantizeLinear rq #sr=0.0001); " LSTM, "LSTM"},
    {"R alone stays float",
     X "#w:1,160,24; #rq.i8:1,160,40; r = (DequantizeLinear rq #sr=0.001); " LSTM, "LSTM"},
};

static ort_session *open_at(net *n, const coded_case *c, const char *isa, int threads, int level)
{
    ort_env_options options;
    ort_session_options own;
    ort_error err = {0};
    ort_env_options_init(&options);
    ort_session_options_init(&own);
    options.isa = isa;
    options.threads = threads;
    options.own_threads = &workers_at_once;
    own.level = level;
    if (!net_init(n, &options))
        return NULL;
    net_text(n, c->text);
    ort_session *s = net_session(n, &own, &err);
    if (!s)
        printf("# %s\n", err.message);
    return s;
}

static int recurrences(const ort_session *s, const char *op_type)
{
    return count_ops_in(s->model->graph, op_type);
}

/* What is wrong on this tier, or NULL. */
static const char *check_on(const coded_case *c, const char *isa)
{
    net plain, one, three;
    const char *why = NULL;
    ort_session *a = open_at(&plain, c, isa, 1, 2), *b = open_at(&one, c, isa, 1, 3);
    ort_session *d = open_at(&three, c, isa, 3, 3);
    if (!a || !b || !d)
        why = "no session";
    else if (!recurrences(b, c->op) ||
             recurrences(b, "DequantizeLinear") > (strncmp(c->op, "Coded", 5) ? 3 : 0))
        why = "other operators";
    else if (!net_agree(a, b, 3e-6))
        why = "not near the float operators";
    else if (!net_agree(b, d, 0))
        why = "other bits with three threads";
    ort_session_free(a);
    ort_session_free(b);
    ort_session_free(d);
    net_free(&plain);
    net_free(&one);
    net_free(&three);
    return why;
}

static void tiers(test_state *test)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases && !test->failed; i++)
        for (int t = 0; ort_kernel_tier_at(t) && !test->failed; t++) {
            const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(t)->name);
            const char *why = k ? check_on(&cases[i], k->isa) : NULL;
            if (why) {
                snprintf(test->why, sizeof test->why, "%s on %s: %s", cases[i].what, k->isa, why);
                test->failed = true;
            }
        }
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, tiers);
    return test->failures != 0;
}
