/* test_lstm_cell.c - steps of an LSTM that a model spells out become LstmCell (provider/cpu/
 * lstm_cells.c), on every tier near what the nodes give, with the same bits for three threads; what
 * only looks like one stays. */
#include "rewrite.h"
#include "test.h"
#include "workers.h"

#define SPLIT "i, f, g, o = (Split x axis=1); "
#define SLICE(name, from, to)                                                                      \
    "#" name "b.i64=" from ",; #" name "e.i64=" to ",; " name " = (Slice x " name "b " name        \
    "e last); "
#define SLICES                                                                                     \
    "#last.i64=-1,; " SLICE("g", "0", "19") SLICE("o", "19", "38") SLICE("i", "38", "57")          \
        SLICE("f", "57", "76")
#define STEP "n = (Add (Mul (Sigmoid f) c) (Mul (Sigmoid i) (Tanh g))); "                          \
    "h = (Mul (Sigmoid o) (Tanh n)); h, n"

static const struct cell_case {
    const char *what, *text;
    int cells, opset; /* 0: the net's own */
} cases[] = {
    {"Split", "x:3,76; c:3,19; " SPLIT STEP, 1},
    {"Split of one row", "x:1,256; c:1,64; " SPLIT STEP, 1},
    {"many rows", "x:300,76; c:300,19; " SPLIT STEP, 1},
    {"Slices", "x:2,76; c:2,19; " SLICES STEP, 1},
    {"Slices by attributes",
     "x:2,8; c:2,2; g = (Slice x axes=1, starts=2, ends=4,); i = (Slice x axes=1, starts=0, "
     "ends=2,); f = (Slice x axes=-1, starts=4, ends=6,); o = (Slice x axes=1, starts=6, "
     "ends=99,); " STEP, 1, 9},
    {"three axes", "x:2,5,76; c:2,5,19; i, f, g, o = (Split x axis=2); " STEP, 1},
    {"an open axis", "x:n,76; c:n,19; " SPLIT STEP, 1},
    {"factors and terms the other way round",
     "x:3,76; c:3,19; o, g, f, i = (Split x axis=1); "
     "n = (Add (Mul (Tanh g) (Sigmoid i)) (Mul c (Sigmoid f))); h = (Mul (Tanh n) (Sigmoid o)); "
     "h, n", 1},
    {"the state before is a Tanh", "x:3,76; v:3,19; c = (Tanh v); " SPLIT STEP, 1},
    {"only h", "x:3,76; c:3,19; " SPLIT "n = (Add (Mul (Sigmoid f) c) "
     "(Mul (Sigmoid i) (Tanh g))); h = (Mul (Sigmoid o) (Tanh n)); h", 1},
    {"a part that others read, too", "x:3,76; c:3,19; " SPLIT STEP ", g", 1},
    {"two steps", "x:3,76; c:3,19; " SPLIT "n = (Add (Mul (Sigmoid f) c) "
     "(Mul (Sigmoid i) (Tanh g))); h = (Mul (Sigmoid o) (Tanh n)); "
     "y = (MatMul h #w:19,76); p, q, r, s = (Split y axis=1); "
     "m = (Add (Mul (Sigmoid q) n) (Mul (Sigmoid p) (Tanh r))); k = (Mul (Sigmoid s) (Tanh m)); "
     "k, m", 2},
    {"a gate that others read", "x:3,76; c:3,19; " SPLIT "s = (Sigmoid i); "
     "n = (Add (Mul (Sigmoid f) c) (Mul s (Tanh g))); h = (Mul (Sigmoid o) (Tanh n)); h, s", 0},
    {"a gate that comes twice", "x:3,76; c:3,19; " SPLIT "n = (Add (Mul (Sigmoid f) c) "
     "(Mul (Sigmoid i) (Tanh g))); h = (Mul (Sigmoid f) (Tanh n)); h, n, o", 0},
    {"a quarter that comes twice", "x:3,76; c:3,19; " SPLIT "#last.i64=-1,; "
     SLICE("p", "19", "38") "n = (Add (Mul (Sigmoid f) c) (Mul (Sigmoid i) (Tanh g))); "
     "h = (Mul (Sigmoid p) (Tanh n)); h, n, o", 0},
    {"quarters of two values", "x:3,76; z:3,76; c:3,19; i, f, g, q = (Split x axis=1); "
     "#last.i64=-1,; " SLICE("o", "57", "76") "r, s, t, o2 = (Split z axis=1); "
     "n = (Add (Mul (Sigmoid f) c) (Mul (Sigmoid i) (Tanh g))); "
     "h = (Mul (Sigmoid o2) (Tanh n)); h, n, q, r, s, t, o", 0},
    {"a state of one row", "x:3,76; c:1,19; " SPLIT STEP, 0},
    {"quarters of the first axis",
     "x:12,19; c:3,19; i, f, g, o = (Split x axis=0); " STEP, 0},
    {"uneven parts", "x:3,57; c:3,1; #p.i64=1,1,1,54; "
     "i, f, g, o, = (Split x p axis=1); n = (Add (Mul (Sigmoid f) c) (Mul (Sigmoid i) (Tanh g))); "
     "h = (Mul (Sigmoid g) (Tanh n)); h, n, o", 0},
    {"doubles", "v:3,76; w:3,19; x = (Cast v to=11); c = (Cast w to=11); " SPLIT STEP, 0},
};

static ort_session *open_at(net *n, const struct cell_case *c, const char *isa, int threads,
                            int level)
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
    if (c->opset)
        n->model->opsets.data[0].version = c->opset;
    net_text(n, c->text);
    ort_session *s = net_session(n, &own, &err);
    if (!s)
        printf("# %s\n", err.message);
    return s;
}

static int count(const ort_session *s, const char *op_type)
{
    return count_ops_in(s->model->graph, op_type);
}

/* What is wrong on this tier, or NULL. */
static const char *check_on(const struct cell_case *c, const char *isa)
{
    net plain, one, three;
    const char *why = NULL;
    ort_session *a = open_at(&plain, c, isa, 1, 2), *b = open_at(&one, c, isa, 1, 3);
    ort_session *d = open_at(&three, c, isa, 3, 3);
    if (!a || !b || !d)
        why = "no session";
    else if (count(b, "LstmCell") != c->cells ||
             (c->cells && (count(b, "Sigmoid") || count(b, "Slice"))))
        why = "other operators";
    else if (!net_agree(a, b, 1e-6))
        why = "not near the operators of the model";
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
