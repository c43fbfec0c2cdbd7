/* test_weights_blocks.c - weights of a few bits: grids of blocks against what a search over all of
 * them finds, and small nets in every form whose results are those of their dequantized weights.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "levels.h"
#include "kernel/kernel.h"
#include "test.h"

enum { BLOCK = 32, LANES = ORT_BLOCK_LANES };

static float draw(uint32_t *state)
{
    float sum = 0; /* about normal */
    for (int i = 0; i < 6; i++) {
        *state = *state * 1664525u + 1013904223u;
        sum += (float)(*state >> 8) * 0x1p-24f - 0.5f;
    }
    return sum;
}

/* ---- grids */

static const ort_grid_kernels *grids(void)
{
    return &ort_kernels_get(NULL)->grids;
}

static double error_of(const float *x, int l, float scale, float zero, int most)
{
    double sum = 0;
    for (int i = 0; i < BLOCK; i++) {
        double q = nearbyint((double)x[i * LANES + l] / (double)scale) + (double)zero;
        q = q < 0 ? 0 : q > most ? most : q;
        double d = (double)x[i * LANES + l] - (q - (double)zero) * (double)scale;
        sum += d * d;
    }
    return sum;
}

/* The least error of all zero points and of 400 scales of both signs. */
static double least_error(const float *x, int l, bool symmetric, int most)
{
    double least = INFINITY;
    float reach = 0;
    for (int i = 0; i < BLOCK; i++)
        reach = fmaxf(reach, fabsf(x[i * LANES + l]));
    const int middle = (most + 1) / 2;
    for (int zero = symmetric ? middle : 0; zero <= (symmetric ? middle : most); zero++)
        for (int i = 1; i <= 400; i++)
            for (int sign = -1; sign <= 1; sign += 2) {
                float scale = (float)sign * 2.5f * reach / (float)most * (float)i / 400;
                least = fmin(least, error_of(x, l, scale, (float)zero, most));
            }
    return least;
}

static void fit(test_state *test)
{
    uint32_t state = 7;
    for (int kind = 0; kind < 6; kind++) {
        const ort_block_form form = {kind < 2 ? 4 : kind < 4 ? 2 : 8, kind % 2, ORT_DTYPE_FLOAT};
        const int most = (1 << form.bits) - 1;
        float x[BLOCK * LANES], errors[LANES];
        ort_block_grid g;
        double got = 0, best = 0;
        for (int round = 0; round < 8; round++) {
            for (int i = 0; i < BLOCK * LANES; i++)
                x[i] = draw(&state) * 0.03f + (i % LANES == 3 ? 0.02f : 0);
            grids()->fit(&form, x, NULL, BLOCK, &g);
            grids()->errors(&form, &g, x, BLOCK, errors);
            for (int l = 0; l < LANES; l++) {
                double own = error_of(x, l, g.scale[l], g.zero[l], most);
                CHECK(fabs(own - (double)errors[l]) <= 1e-4 * own + 1e-12);
                got += own;
                best += least_error(x, l, form.symmetric, most);
            }
        }
        CHECK(got <= (form.bits == 8 ? 1.25 : 1.03) * best);
    }
}

static void odd_blocks(test_state *test)
{
    float x[BLOCK * LANES] = {0};
    uint8_t codes[BLOCK * LANES];
    ort_block_grid g;
    for (int i = 0; i < BLOCK; i++) {
        x[i * LANES + 1] = 5;                /* one number */
        x[i * LANES + 2] = i ? 0 : -3e38f;   /* a lone extreme */
        x[i * LANES + 3] = 1e-38f;           /* as good as 0 */
        x[i * LANES + 4] = (float)(i % 16);  /* codes themselves */
    }
    for (int symmetric = 0; symmetric < 2; symmetric++) {
        const ort_block_form form = {4, symmetric, ORT_DTYPE_FLOAT};
        grids()->fit(&form, x, NULL, BLOCK, &g);
        grids()->refine(&form, x, BLOCK, &g);
        grids()->codes(&form, &g, x, BLOCK, codes);
        for (int i = 0; i < BLOCK * LANES; i++) {
            const int l = i % LANES;
            const float y = ((float)codes[i] - g.zero[l]) * g.scale[l];
            CHECK(codes[i] < 16 && isfinite(y));
            if (l != 4 || !symmetric)
                CHECK(fabsf(y - x[i]) <= 1e-5f * fabsf(x[i]) + 1e-30f);
        }
    }
}

static void half_scales(test_state *test)
{
    uint32_t state = 3;
    float x[BLOCK * LANES];
    ort_block_grid g;
    const ort_block_form form = {4, true, ORT_DTYPE_FLOAT16};
    for (int i = 0; i < BLOCK * LANES; i++)
        x[i] = draw(&state);
    grids()->fit(&form, x, NULL, BLOCK, &g);
    for (int l = 0; l < LANES; l++)
        CHECK(g.scale[l] == (float)(_Float16)g.scale[l]);
}

/* ---- every tier */

typedef struct found {
    ort_block_grid fitted, weighed, refined;
    uint8_t codes[BLOCK * LANES], paid_codes[BLOCK * LANES];
    float errors[LANES], owed[BLOCK * LANES], targets[BLOCK * LANES], left[BLOCK * LANES];
} found;

enum { BEFORE = 37 };

static void find_all(const ort_grid_kernels *k, const ort_block_form *form, const float *x,
                     const float *factor, found *f)
{
    const int rows = BLOCK - 5; /* no whole number of tiles */
    float turned[BLOCK * BLOCK], back[BLOCK], owed[BLOCK * LANES];
    const ort_block_grid *grids[BLOCK];
    memset(f, 0, sizeof *f);
    k->fit(form, x, NULL, BLOCK, &f->fitted);
    k->fit(form, x, factor, rows, &f->weighed);
    f->refined = f->fitted;
    k->refine(form, x, BLOCK, &f->refined);
    k->codes(form, &f->refined, x, BLOCK, f->codes);
    k->errors(form, &f->fitted, x, BLOCK, f->errors);
    k->owe(factor, BEFORE, rows, x, BLOCK - 1, f->owed);
    for (int i = 0; i < rows; i++) {
        back[i] = 1 / (1 + factor[i]);
        grids[i] = i % 2 ? &f->fitted : &f->weighed;
        for (int j = 0; j < rows; j++)
            turned[j * rows + i] = factor[i * BEFORE + j];
    }
    const ort_block_debt debt = {rows, turned, back, owed};
    memcpy(owed, f->owed, sizeof owed);
    memcpy(f->targets, x, sizeof f->targets);
    k->pay(&debt, f->targets);
    memcpy(owed, f->owed, sizeof owed);
    memcpy(f->left, x, sizeof f->left);
    k->pay_codes(form, grids, &debt, f->left, f->paid_codes);
}

/* Sums of `owe` and steps of `pay` as they are defined, in double. */
static bool is_paid(const found *f, const float *x, const float *factor)
{
    const int rows = BLOCK - 5;
    double worst = 0, error[BLOCK];
    for (int l = 0; l < LANES; l++)
        for (int r = 0; r < rows; r++) {
            double owed = 0, sum = 0;
            for (int j = 0; j < BLOCK - 1; j++)
                owed += (double)factor[r * BEFORE + j] * (double)x[j * LANES + l];
            worst = fmax(worst, fabs(owed - (double)f->owed[r * LANES + l]));
            for (int j = 0; j < r; j++)
                sum += (double)factor[r * BEFORE + j] * error[j];
            sum = (owed + sum) / (1 + (double)factor[r]);
            error[r] = -sum;
            worst = fmax(worst, fabs((double)x[r * LANES + l] + sum -
                                     (double)f->targets[r * LANES + l]));
        }
    return worst < 1e-5;
}

static void tiers(test_state *test)
{
    uint32_t state = 11;
    for (int kind = 0; kind < 8; kind++) {
        const ort_dtype scales[] = {ORT_DTYPE_FLOAT, ORT_DTYPE_FLOAT, ORT_DTYPE_FLOAT16,
                                    ORT_DTYPE_BFLOAT16};
        const ort_block_form form = {kind < 4 ? 4 : kind < 6 ? 8 : 2, kind % 2, scales[kind / 2]};
        float x[BLOCK * LANES], factor[BLOCK * BEFORE];
        found one, other;
        for (int i = 0; i < BLOCK * LANES; i++)
            x[i] = i % LANES == 5 ? 0 : draw(&state) * (i % LANES == 7 ? 1e-32f : 1);
        for (int i = 0; i < BLOCK * BEFORE; i++)
            factor[i] = fabsf(draw(&state)) * 0.1f;
        find_all(&ort_kernels_get("scalar")->grids, &form, x, factor, &one);
        CHECK(is_paid(&one, x, factor));
        for (int i = 1; ort_kernel_tier_at(i); i++) {
            const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(i)->name);
            if (!k)
                continue;
            find_all(&k->grids, &form, x, factor, &other);
            CHECK(!memcmp(&one, &other, sizeof one));
        }
    }
}

/* ---- nets */

static void add_matrix(net *n, const char *name, int64_t rows, int64_t columns, bool infinite)
{
    ort_value *w = net_floats(2, DIMS(rows, columns), 0, 0);
    float *x = ort_value_data(w);
    uint32_t state = (uint32_t)name[0] * 97u + (uint32_t)rows;
    for (int64_t i = 0; i < rows * columns; i++)
        x[i] = draw(&state);
    if (infinite)
        x[5] = INFINITY;
    net_constant(n, name, ORT_DTYPE_FLOAT, 2, DIMS(rows, columns), x);
    ort_value_free(w);
}

/* Products of each spelling, a table that one of them shares, and odd sizes: 40 is no whole number
 * of blocks, 13 no whole number of bytes. */
static void build(net *n)
{
    net_input(n, "ids", ORT_DTYPE_INT64, 2, DIMS(1, 5));
    add_matrix(n, "e", 24, 64, false);
    add_matrix(n, "p", 64, 13, false);
    add_matrix(n, "q", 40, 13, false);
    add_matrix(n, "r", 40, 64, false);
    add_matrix(n, "inf", 64, 64, true);
    net_constant(n, "bias", ORT_DTYPE_FLOAT, 1, DIMS(40), (const float[40]){1, 2, 3});
    net_constant(n, "flat", ORT_DTYPE_INT64, 1, DIMS(2), (const int64_t[]){5, 13});
    net_node(n, "Gather", "e ids", "x");
    net_node(n, "MatMul", "x p", "y0");
    net_node(n, "Reshape", "y0 flat", "y1");
    net_int(n, net_node(n, "Gemm", "y1 q bias", "y2"), "transB", 1);
    net_node(n, "MatMul", "y2 r", "y3");
    net_node(n, "MatMul", "y3 inf", "lost");
    net_node(n, "Transpose", "e", "et");
    net_node(n, "MatMul", "y3 et", "y");
    net_output(n, "y");
}

static int count_of(const ort_model *model, const char *op_type)
{
    int count = 0;
    const ort_node *node;
    ORT_EACH_NODE(model->graph, node)
        count += !strcmp(node->op_type, op_type);
    return count;
}

static ort_value *result(const net *n, ort_model *model)
{
    ort_error err = {0};
    ort_session *session = NULL;
    ort_value *y = NULL, *x = NULL;
    const char *in = "ids", *out = "y";
    if (!ort_value_new_tensor(ORT_DTYPE_INT64, 2, DIMS(1, 5), &x, &err))
        for (int i = 0; i < 5; i++)
            ((int64_t *)ort_value_data(x))[i] = 5 * i;
    if (!x || ort_session_new(n->env, model, NULL, &session, &err) ||
        ort_session_run(session, &in, &x, 1, &out, &y, 1, NULL, &err))
        fprintf(stderr, "%s\n", err.message);
    ort_value_free(x);
    ort_session_free(session);
    return y;
}

static double sqnr(const net *n, ort_model *model)
{
    ort_value *a = result(n, n->model), *b = result(n, model);
    double signal = 0, noise = a && b ? 1e-30 : INFINITY;
    for (int64_t i = 0; a && b && i < ort_value_count(a); i++) {
        double v = ort_value_get_double(a, i), d = v - ort_value_get_double(b, i);
        signal += v * v;
        noise += d * d;
    }
    ort_value_free(a);
    ort_value_free(b);
    return 10 * log10(signal / noise);
}

static ort_model *made(const net *n, const ort_weights_options *options, ort_weights **w)
{
    ort_error err = {0};
    ort_model *model = NULL;
    if (ort_weights_new(n->env, n->model, options, w, &err) ||
        ort_weights_apply(*w, &model, &err))
        fprintf(stderr, "%s\n", err.message);
    return model;
}

static const char *why_of(const ort_weights *w, const char *name)
{
    for (size_t i = 0; i < ort_weights_node_count(w); i++) {
        ort_weights_node node = {.size = sizeof node};
        if (!ort_weights_node_at(w, i, &node, NULL) && !strcmp(node.name, name))
            return node.why ? node.why : "codes";
    }
    return "not listed";
}

static void name_nodes(net *n)
{
    ort_node *node;
    ORT_EACH_NODE(n->graph, node)
        node->name = n->graph->values.data[node->outputs[0]]->name;
}

static void forms(test_state *test)
{
    static const double least[] = {3, 14, 37};
    static const int bits[] = {2, 4, 8};
    for (int i = 0; i < 24; i++) {
        net n;
        ort_weights *w = NULL;
        ort_weights_options o = ORT_WEIGHTS_OPTIONS_INIT;
        const bool qdq = i & 1;
        o.bits = bits[i / 8];
        o.form = qdq ? ORT_WEIGHTS_QDQ : ORT_WEIGHTS_NBITS;
        o.asymmetric = i & 2;
        o.block_size = qdq && i & 4 ? 0 : 16;
        o.method = i & 4 ? ORT_WEIGHTS_HQQ : ORT_WEIGHTS_NEAREST;
        CHECK(net_init(&n, NULL));
        build(&n);
        name_nodes(&n);
        ort_model *m = made(&n, &o, &w);
        CHECK(m);
        CHECK(sqnr(&n, m) > least[i / 8]);
        CHECK(count_of(m, "MatMulNBits") == (qdq ? 0 : 4));
        CHECK(count_of(m, "GatherBlockQuantized") == !qdq);
        CHECK(count_of(m, "DequantizeLinear") == (qdq ? 4 : 0)); /* the table's serves both */
        CHECK_TEXT(why_of(w, "lost"), "its weights aren't all finite numbers");
        CHECK_TEXT(why_of(w, "x"), "codes");
        ort_weights_free(w);
        ort_model_free(m);
        net_free(&n);
    }
}

static void choices(test_state *test)
{
    net n;
    ort_weights *w = NULL, *again = NULL;
    ort_weights_options o = ORT_WEIGHTS_OPTIONS_INIT;
    const char *const exclude[] = {"y0", "?2", "Gather", NULL};
    o.exclude = exclude;
    CHECK(net_init(&n, NULL));
    build(&n);
    name_nodes(&n);
    ort_model *m = made(&n, &o, &w), *same = NULL;
    CHECK(m);
    CHECK_TEXT(why_of(w, "y0"), "it is excluded");
    CHECK_TEXT(why_of(w, "y2"), "it is excluded");
    CHECK_TEXT(why_of(w, "x"), "it is excluded");
    CHECK_TEXT(why_of(w, "y3"), "codes");
    CHECK_TEXT(why_of(w, "y"), "codes");
    CHECK(ort_weights_apply(w, &same, NULL) == ORT_ERROR_USAGE);
    ort_weights_free(w);
    o.exclude = NULL;
    net coded = {.env = n.env, .model = m, .graph = m->graph};
    same = made(&coded, &o, &again);
    CHECK(same && count_of(same, "MatMulNBits") == 4); /* what was left before, and what wasn't */
    CHECK_TEXT(why_of(again, "y3"), "its weights are quantized already");
    ort_weights_free(again);
    ort_model_free(same);
    ort_model_free(m);
    net_free(&n);
}

/* Samples of rows that are alike make errors of GPTQ smaller where they matter; the threads that
 * share the work change nothing. */
static ort_model *with_samples(net *n, const ort_weights_options *options)
{
    ort_error err = {0};
    ort_weights *w = NULL;
    ort_model *m = NULL;
    ort_value *x = net_floats(2, DIMS(48, 96), 0, 0);
    float *v = ort_value_data(x);
    uint32_t state = 99;
    bool ok = !ort_weights_new(n->env, n->model, options, &w, &err);
    for (int s = 0; s < 4 && ok; s++) {
        for (int i = 0; i < 48; i++) {
            const float common = draw(&state);
            for (int k = 0; k < 96; k++)
                v[i * 96 + k] = common * (float)(k % 5) + 0.3f * draw(&state);
        }
        ok = !ort_weights_observe(w, &x, 1, &err);
    }
    if (!ok || ort_weights_apply(w, &m, &err))
        fprintf(stderr, "%s\n", err.message);
    ort_weights_free(w);
    ort_value_free(x);
    return m;
}

static double mean_square(ort_env *env, const net *n, ort_model *model)
{
    ort_session *a = NULL, *b = NULL;
    ort_value *x = net_floats(2, DIMS(48, 96), 0, 0), *y = NULL, *z = NULL;
    float *v = ort_value_data(x);
    uint32_t state = 5;
    double sum = 0;
    for (int i = 0; i < 48; i++) {
        const float common = draw(&state);
        for (int k = 0; k < 96; k++)
            v[i * 96 + k] = common * (float)(k % 5) + 0.3f * draw(&state);
    }
    if (ort_session_new(env, n->model, NULL, &a, NULL) ||
        ort_session_new(env, model, NULL, &b, NULL) ||
        run_whole(a, &x, &y, NULL, NULL) || run_whole(b, &x, &z, NULL, NULL))
        sum = INFINITY;
    for (int64_t i = 0; y && z && i < ort_value_count(y); i++) {
        const double d = ort_value_get_double(y, i) - ort_value_get_double(z, i);
        sum += d * d;
    }
    ort_value_free(x);
    ort_value_free(y);
    ort_value_free(z);
    ort_session_free(a);
    ort_session_free(b);
    return sum;
}

static void gptq(test_state *test)
{
    for (int i = 0; i < 8; i++) {
        net n;
        ort_weights_options o = ORT_WEIGHTS_OPTIONS_INIT;
        ort_weights *plain = NULL;
        bool equal = false;
        char *text = NULL;
        CHECK(net_init(&n, NULL));
        net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(48, 96));
        add_matrix(&n, "w", 96, 40, false);
        net_node(&n, "MatMul", "x w", "y");
        net_output(&n, "y");
        o.asymmetric = i & 1;
        o.form = i & 2 ? ORT_WEIGHTS_QDQ : ORT_WEIGHTS_NBITS;
        o.block_size = i & 2 ? 0 : 32;
        ort_model *nearest = made(&n, &o, &plain);
        ort_weights_free(plain);
        o.method = ORT_WEIGHTS_GPTQ;
        o.ordered = i & 4;
        o.threads = 1;
        ort_model *one = with_samples(&n, &o);
        o.threads = 3;
        ort_model *three = with_samples(&n, &o);
        CHECK(nearest && one && three);
        CHECK(!ort_model_diff(one, three, &equal, &text, NULL) && equal);
        CHECK(mean_square(n.env, &n, one) < 0.6 * mean_square(n.env, &n, nearest));
        ort_text_free(text);
        ort_model_free(nearest);
        ort_model_free(one);
        ort_model_free(three);
        net_free(&n);
    }
}

/* Shares of a stage rise to all of it. */
typedef struct shares {
    double last;
    int told, falls;
} shares;

static void on_share(void *arg, const char *stage, double share)
{
    shares *s = arg;
    s->falls += strcmp(stage, "quantizing") || share < s->last || share > 1;
    s->told++;
    s->last = share;
}

static void progress(test_state *test)
{
    for (int gptq = 0; gptq < 2; gptq++) {
        net n;
        shares s = {0};
        ort_weights_options o = ORT_WEIGHTS_OPTIONS_INIT;
        ort_weights *plain = NULL;
        CHECK(net_init(&n, NULL));
        net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(48, 96));
        add_matrix(&n, "w", 96, 96, false);
        add_matrix(&n, "v", 96, 40, false);
        net_node(&n, "MatMul", "x w", "y");
        net_node(&n, "MatMul", "x v", "z");
        net_output(&n, "y");
        net_output(&n, "z");
        o.method = gptq ? ORT_WEIGHTS_GPTQ : ORT_WEIGHTS_HQQ;
        o.on_share = on_share;
        o.share_arg = &s;
        ort_model *m = gptq ? with_samples(&n, &o) : made(&n, &o, &plain);
        CHECK(m && s.told >= 3 + gptq && s.falls == 0 && fabs(s.last - 1) < 1e-9);
        ort_weights_free(plain);
        ort_model_free(m);
        net_free(&n);
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, fit);
    RUN(&test, odd_blocks);
    RUN(&test, half_scales);
    RUN(&test, tiers);
    RUN(&test, forms);
    RUN(&test, choices);
    RUN(&test, gptq);
    RUN(&test, progress);
    return test.failures != 0;
}
