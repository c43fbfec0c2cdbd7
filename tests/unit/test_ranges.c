/* test_ranges.c - what values held on samples, as text and merged: the same bits back, two halves
 * as one whole, and no damaged text taken.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "levels.h"
#include "quantize/seen/ranges.h"
#include "test.h"
#include "workers.h"

static uint64_t state = 88172645463325252u;

static double draw(void) /* in [0, 1) */
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53;
}

/* ---- by hand */

enum { VALUES = 4, NUMBERS = 70000 };
static const char *const names[VALUES] = {"x", "relu \"1\"\n", "\xc3\xa9/zero", "odd"};

static ort_ranges *empty(ort_kept kept)
{
    ort_ranges *r = NULL;
    if (ort_ranges_make(&r, NULL) != ORT_OK)
        return NULL;
    ort_ranges_set(r, 0xfedcba9876543210u, kept);
    r->tier = "avx2";
    for (int i = 0; i < VALUES; i++)
        if (ort_ranges_add(r, names[i], NULL) != ORT_OK)
            return NULL;
    return r;
}

static float number(int value, int sample)
{
    double d = (draw() + draw() + draw() - 1.5) * (1 + sample);
    switch (value) {
    case 0: return (float)d;
    case 1: return d > 0 ? (float)(d * 1e-30) : 0;
    case 2: return 0;
    default: return draw() < 0.01 ? NAN : draw() < 0.01 ? INFINITY : (float)(d * 1e36);
    }
}

/* A sample is seen by each of these. */
static void see(int sample, ort_ranges *const *by, int count, ort_pool *pool)
{
    static float x[NUMBERS];
    int n = sample % 2 ? NUMBERS : 300;
    for (int v = 0; v < VALUES; v++) {
        for (int i = 0; i < n; i++)
            x[i] = number(v, sample);
        ort_tensor t = {.dtype = ORT_DTYPE_FLOAT, .shape = {1, {n}}, .data = x};
        for (int k = 0; k < count; k++)
            ort_ranges_observe(by[k], &by[k]->values.data[v], &t, k ? pool : NULL);
    }
    for (int k = 0; k < count; k++)
        by[k]->samples++;
}

static char *text_of(const ort_ranges *r)
{
    char *text = NULL;
    ort_error err = {0};
    if (ort_ranges_write(r, &text, &err) != ORT_OK)
        fprintf(stderr, "%s\n", err.message);
    return text ? text : strdup("");
}

static bool same_text(const ort_ranges *a, const ort_ranges *b)
{
    char *x = text_of(a), *y = text_of(b);
    bool equal = x[0] && !strcmp(x, y);
    ort_text_free(x);
    ort_text_free(y);
    return equal;
}

static ort_ranges *read_back(const char *text, ort_error *err)
{
    ort_ranges *r = NULL;
    if (ort_ranges_new(&r, err) == ORT_OK &&
        ort_ranges_read(r, text, strlen(text), "a.json", err) == ORT_OK)
        return r;
    ort_ranges_free(r);
    return NULL;
}

/* Every kind comes back from its text; halves make the whole, in memory and as text, however many
 * threads counted. */
static void halves(test_state *test)
{
    ort_pool *pool = ort_pool_new_of(3, false, &workers_at_once);
    for (ort_kept kept = ORT_KEPT_ENDS; kept <= ORT_KEPT_AVERAGES; kept++) {
        ort_error err = {0};
        ort_ranges *whole = empty(kept), *a = empty(kept), *b = empty(kept), *merged = NULL;
        for (int s = 0; s < 6; s++)
            see(s, (ort_ranges *[]){whole, s < 3 ? a : b}, 2, pool);
        char *text = text_of(whole), *first = text_of(a), *second = text_of(b);
        ort_ranges *back = read_back(text, &err);
        CHECK_TEXT(err.message, "");
        CHECK(back && same_text(back, whole));
        CHECK((merged = read_back(first, &err)));
        if (kept == ORT_KEPT_AVERAGES) {
            CHECK(ort_ranges_read(merged, second, strlen(second), "b.json", &err));
            CHECK(strstr(err.message, "b.json: moving averages depend on the order"));
        } else {
            CHECK(!ort_ranges_read(merged, second, strlen(second), "b.json", &err));
            CHECK(same_text(merged, whole) && ort_ranges_samples(merged, NULL) == 6);
        }
        ort_ranges *all[] = {whole, a, b, merged, back};
        for (int i = 0; i < 5; i++)
            ort_ranges_free(all[i]);
        ort_text_free(text);
        ort_text_free(first);
        ort_text_free(second);
    }
    ort_pool_free(pool);
}

static void averages(test_state *test)
{
    float x[3] = {1, 2, 4};
    ort_tensor t = {.dtype = ORT_DTYPE_FLOAT, .shape = {1, {3}}, .data = x};
    ort_ranges *r = empty(ORT_KEPT_AVERAGES);
    ort_observed *o = &r->values.data[0];
    ort_ranges_observe(r, o, &t, NULL);
    CHECK(o->average.known && o->average.least == 1 && o->average.most == 4);
    x[2] = 14;
    x[0] = -1;
    ort_ranges_observe(r, o, &t, NULL);
    CHECK(fabs(o->average.least - 0.98) < 1e-12 && fabs(o->average.most - 4.1) < 1e-12);
    x[0] = x[1] = x[2] = NAN;
    ort_ranges_observe(r, o, &t, NULL);
    CHECK(fabs(o->average.most - 4.1) < 1e-12 && o->histogram.not_finite == 3);
    ort_ranges_free(r);
}

/* ---- damaged text */

static const char good[] =
    "{\n \"schema\": \"ort-ranges/1\",\n \"model\": \"00000000000000ff\",\n \"tier\": \"avx2\",\n"
    " \"keeps\": \"bins\",\n \"samples\": 2,\n \"made_up\": 1,\n \"values\": [\n"
    "  {\"name\": \"x\", \"count\": 9, \"zeros\": 1, \"not_finite\": 0, \"least\": -0.5, "
    "\"most\": 1, \"exponent\": -11, \"bins\": [1, -2047, 6, -1023, 1]}\n ]\n}\n";

typedef struct damage {
    const char *from, *to; /* the first `from` of the text becomes `to` */
    const char *message;
} damage;

static char *replaced(const damage *d)
{
    const char *at = strstr(good, d->from);
    size_t before = at ? (size_t)(at - good) : 0, size = sizeof good + strlen(d->to);
    char *text = malloc(size);
    if (at)
        snprintf(text, size, "%.*s%s%s", (int)before, good, d->to, at + strlen(d->from));
    return at ? text : NULL;
}

static void damaged(test_state *test)
{
    static const damage cases[] = {
        {"ort-ranges/1", "ort-ranges/2", "line 2: schema \"ort-ranges/2\" isn't"},
        {"\"schema\"", "\"scheme\"", "member \"schema\" should be here, not \"scheme\""},
        {"00ff", "00FF", "hexadecimal"},
        {"00ff", "0ff", "hexadecimal"},
        {"\"keeps\": \"bins\"", "\"keeps\": \"bin\"", "none of ends, bins and averages"},
        {"\"keeps\": \"bins\"", "\"keeps\": \"ends\"", "a member too many"},
        {"\"keeps\": \"bins\"", "\"keeps\": \"averages\"", "average_least"},
        {"\"samples\": 2", "\"samples\": -2", "-2 is below 0"},
        {"\"samples\": 2", "\"samples\": 2.5", "a whole number should be here, not '2.5'"},
        {"\"samples\": 2", "\"samples\": 0", "made up"},
        {"\"samples\": 2", "\"samples\": 99999999999999999999", "too large"},
        {"\"samples\": 2", "\"samples\": 2, \"samples\": 2", "not \"samples\""},
        {"\"made_up\": 1,", "", "\"made_up\" should be here"},
        {"\"made_up\": 1", "\"made_up\": 3", "more samples are made up"},
        {"\"count\": 9", "\"count\": 10", "don't hold the 10 numbers"},
        {"\"zeros\": 1", "\"zeros\": 2", "don't hold the 9 numbers"},
        {"\"zeros\": 1", "\"zeros\": 10", "don't hold"},
        {"-0.5", "0.5", "0.5 is no end"},
        {"-0.5", "-1e-40", "no end of a range"},
        {"-0.5", "-1e400", "too large"},
        {"-0.5", "nan", "a number should be here"},
        {"-0.5", "\"-0.5\"", "a number should be here"},
        {"-0.5", "-0.25", "aren't the"},
        {"\"most\": 1,", "\"most\": 01,", "a number should be here, not '01'"},
        {"\"most\": 1,", "\"most\": 64,", "have exponent -5"},
        {"-11", "-10", "exponent -11, not -10"},
        {"[1, -2047", "[1, -2046", "aren't the 3073"},
        {"[1, -2047", "[1, -99999999", "aren't the 3073"},
        {"[1, -2047", "[0, -2047", "aren't the 3073"},
        {"[1, -2047, 6, -1023, 1]", "[-1, 1, -2046, 6, -1023, 1]", "don't hold"},
        {"[1, -2047, 6, -1023, 1]", "[1, -2047, 9223372036854775807, -1023, 1]", "don't hold"},
        {"-1023, 1]", "-1023, 1, 1]", "aren't the 3073"},
        {"-1023, 1]", "-1023, 1,]", "a whole number should be here"},
        {"-1023, 1]", "-1023 1]", "',' should be where '1' is"},
        {"1]}", "1], \"more\": 1}", "a member too many"},
        {"1]}\n ]", "1]},\n {\"name\": \"x\"", "value 'x' is there twice"},
        {"\"x\"", "\"\\u0000\"", "character that is none"},
        {"\"x\"", "\"\\ud800\"", "character that is none"},
        {"\"x\"", "\"\\q\"", "escape"},
        {"\"x\"", "\"\t\"", "control character"},
        {" ]\n}", " ],\n \"more\": 1}", "behind \"values\""},
        {" ]\n}", " ]\n} {", "something stands behind the end"},
        {" ]\n}", " ]\n", "the text ends"},
        {"{\n", "[\n", "'{' should be where '[' is"},
    };
    ort_error err = {0};
    ort_ranges *r = read_back(good, &err);
    CHECK_TEXT(err.message, "");
    char *again = text_of(r);
    CHECK_TEXT(again, good);
    ort_text_free(again);
    ort_ranges_free(r);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = replaced(&cases[i]);
        CHECK(text && !read_back(text, &err));
        free(text);
        if (!strstr(err.message, cases[i].message))
            CHECK_TEXT(err.message, cases[i].message);
    }
}

/* Every beginning of a text, and every character of it replaced: refused or taken, never more. */
static void cut_short(test_state *test)
{
    static const char with[] = "\"0-9{}[],:\\ e\x01\xff";
    size_t size = sizeof good - 1;
    for (size_t n = 0; n < size - 1; n++) {
        char *part = malloc(n + 1); /* so that sanitizers see reads behind the end */
        memcpy(part, good, n);
        ort_ranges *r = NULL;
        CHECK(!ort_ranges_new(&r, NULL));
        CHECK(ort_ranges_read(r, part, n, NULL, NULL) != ORT_OK);
        ort_ranges_free(r);
        free(part);
    }
    for (size_t n = 0; n < size; n++)
        for (const char *c = with; *c; c++) {
            char text[sizeof good];
            memcpy(text, good, sizeof good);
            text[n] = *c;
            ort_ranges_free(read_back(text, NULL));
        }
}

/* ---- merging what doesn't fit */

static void unlike(test_state *test)
{
    static const damage cases[] = {
        {"00ff", "00fe", "weights or operators differ"},
        {"avx2", "scalar", "on one kind of machine"},
        {"\"x\"", "\"y\"", "value 'x' isn't among the ranges"},
    };
    ort_error err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ort_ranges *r = read_back(good, &err);
        char *text = replaced(&cases[i]);
        CHECK(r && text);
        CHECK(ort_ranges_read(r, text, strlen(text), "b.json", &err) == ORT_ERROR_USAGE);
        CHECK(!strncmp(err.message, "b.json", 6) && strstr(err.message, cases[i].message));
        free(text);
        ort_ranges_free(r);
    }
    ort_ranges *r = read_back(good, &err), *bare = NULL;
    r->values.data[0].histogram.count = UINT64_MAX - 3;
    CHECK(ort_ranges_read(r, good, strlen(good), NULL, &err));
    CHECK(strstr(err.message, "64 bits"));
    ort_ranges_free(r);
    CHECK(!ort_ranges_new(&bare, NULL) && !ort_ranges_new(&r, NULL));
    CHECK(ort_ranges_merge(r, bare, false, "b", &err) == ORT_ERROR_USAGE);
    ort_ranges_free(bare);
    ort_ranges_free(r);
}

/* ---- of a quantizer */

static void build(net *n)
{
    float w[4 * 8];
    for (int i = 0; i < 32; i++)
        w[i] = (float)(draw() - 0.5);
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(2, 4));
    net_constant(n, "w0", ORT_DTYPE_FLOAT, 2, DIMS(4, 8), w);
    net_constant(n, "w1", ORT_DTYPE_FLOAT, 2, DIMS(8, 4), w);
    net_node(n, "MatMul", "x w0", "m");
    net_node(n, "Relu", "m", "r");
    net_node(n, "MatMul", "r w1", "y");
    net_output(n, "y");
}

static ort_quantizer *calibrated(net *n, ort_observer observer, int from, int to)
{
    ort_quantize_options options = ORT_QUANTIZE_OPTIONS_INIT;
    ort_quantizer *q = NULL;
    ort_error err = {0};
    options.observer = observer;
    bool ok = !ort_quantizer_new(n->env, n->model, &options, &q, &err);
    for (int k = from; k < to && ok; k++) {
        ort_value *x = net_floats(2, DIMS(2, 4), -0.3f * (float)(k + 1), 0.2f);
        ok = !ort_quantizer_calibrate(q, &x, 1, &err);
        ort_value_free(x);
    }
    if (!ok)
        fprintf(stderr, "%s\n", err.message);
    return q;
}

static bool same_models(ort_quantizer *a, ort_quantizer *b)
{
    ort_model *x = NULL, *y = NULL;
    bool equal = false;
    char *text = NULL;
    ort_error err = {0};
    if (ort_quantizer_apply(a, &x, &err) || ort_quantizer_apply(b, &y, &err) ||
        ort_model_diff(x, y, &equal, &text, &err) || !equal)
        fprintf(stderr, "%s\n", text ? text : err.message);
    ort_text_free(text);
    ort_model_free(x);
    ort_model_free(y);
    return equal;
}

static ort_ranges *seen(const ort_quantizer *q, ort_ranges *into)
{
    ort_error err = {0};
    if ((!into && ort_ranges_new(&into, &err)) || ort_quantizer_ranges(q, into, &err))
        fprintf(stderr, "%s\n", err.message);
    return into;
}

/* Ranges of two runs, through text, give the model of one run, whichever observer chooses. */
static void quantizers(test_state *test)
{
    net n;
    CHECK(net_init(&n, NULL));
    build(&n);
    for (ort_observer o = ORT_OBSERVE_MIN_MAX; ort_observer_name(o, NULL); o++) {
        bool parts = o != ORT_OBSERVE_AVERAGE;
        ort_quantizer *whole = calibrated(&n, o, 0, 6), *used = calibrated(&n, o, 0, 0);
        ort_quantizer *a = calibrated(&n, o, 0, parts ? 2 : 6), *b = calibrated(&n, o, 2, 6);
        ort_ranges *all = seen(whole, NULL), *both = seen(a, NULL), *back = NULL;
        if (parts)
            seen(b, both);
        CHECK(same_text(all, both));
        char *text = text_of(both);
        ort_error err = {0};
        CHECK((back = read_back(text, &err)));
        CHECK(!ort_quantizer_use_ranges(used, back, NULL, &err));
        CHECK(same_models(whole, used));
        ort_text_free(text);
        ort_ranges *made[] = {all, both, back};
        ort_quantizer *quantizers[] = {whole, used, a, b};
        for (int i = 0; i < 4; i++)
            ort_quantizer_free(quantizers[i]);
        for (int i = 0; i < 3; i++)
            ort_ranges_free(made[i]);
    }
    net_free(&n);
}

/* What an observer can't use, and what is of another model. */
static void misfits(test_state *test)
{
    net n, other;
    ort_error err = {0};
    CHECK(net_init(&n, NULL) && net_init(&other, NULL));
    build(&n);
    build(&other); /* other weights */
    ort_quantizer *ends = calibrated(&n, ORT_OBSERVE_MIN_MAX, 0, 2);
    ort_quantizer *bins = calibrated(&n, ORT_OBSERVE_MSE, 0, 2);
    ort_quantizer *none = calibrated(&n, ORT_OBSERVE_MIN_MAX, 0, 0);
    ort_quantizer *mse = calibrated(&n, ORT_OBSERVE_MSE, 0, 0);
    ort_quantizer *alien = calibrated(&other, ORT_OBSERVE_MSE, 0, 0);
    ort_ranges *of_ends = seen(ends, NULL), *of_bins = seen(bins, NULL);
    ort_ranges *bare = NULL;
    CHECK(!ort_quantizer_use_ranges(none, of_bins, NULL, &err)); /* bins have ends */
    CHECK(same_models(none, ends));
    CHECK(ort_quantizer_use_ranges(mse, of_ends, "e.json", &err) == ORT_ERROR_USAGE);
    CHECK(strstr(err.message, "e.json holds the ends of ranges, bins are needed"));
    CHECK(ort_quantizer_use_ranges(alien, of_bins, NULL, &err) == ORT_ERROR_USAGE);
    CHECK(strstr(err.message, "another model"));
    CHECK(!ort_ranges_new(&bare, &err) && !ort_quantizer_ranges(alien, bare, &err));
    char *text = NULL;
    CHECK(ort_ranges_write(bare, &text, &err) == ORT_ERROR_USAGE && !text);
    ort_ranges *made[] = {of_ends, of_bins, bare};
    ort_quantizer *quantizers[] = {ends, bins, none, mse, alien};
    for (int i = 0; i < 5; i++)
        ort_quantizer_free(quantizers[i]);
    for (int i = 0; i < 3; i++)
        ort_ranges_free(made[i]);
    net_free(&n);
    net_free(&other);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, halves);
    RUN(&test, averages);
    RUN(&test, damaged);
    RUN(&test, cut_short);
    RUN(&test, unlike);
    RUN(&test, quantizers);
    RUN(&test, misfits);
    return test.failures != 0;
}
