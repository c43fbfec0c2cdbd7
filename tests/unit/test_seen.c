/* test_seen.c - the ends of ranges that are found while values are written are those of the values
 * that a watcher is shown, and results are the same bits, whoever goes along with whom.
 */
#include <math.h>

#include "expr.h"
#include "levels.h"
#include "test.h"

enum { MOST_SEEN = 8 };

typedef struct net_case {
    const char *text; /* expr.h; y is the output */
    const char *watched[MOST_SEEN];
    int64_t dims[4]; /* of x */
    int found;       /* while they are written, at least */
} net_case;

/* Products enough for the blocked layout, though ways out of it count for each watched value. */
static const net_case cases[] = {
    /* a sum goes along with the convolution that it reads; where that reads the other operand, it
     * may not be written over it; the sum itself is watched, or what lies between, or both */
    {"s = (Conv x #w:64,64,3,3 #b:64 pads=1,1,1,1); r = (Relu (Add a:(Conv s #u:64,64,3,3 "
     "pads=1,1,1,1) s)); y = (Conv r #v:64,64,3,3 pads=1,1,1,1)", {"a", "r"}, {1, 64, 14, 13}, 2},
    {"s = (Conv x #w:64,64,3,3 #b:64 pads=1,1,1,1); t = (Conv x #z:64,64,3,3 pads=1,1,1,1); r = "
     "(Relu (Add t q:(Conv s #u:64,64,3,3 pads=1,1,1,1 #c:64))); y = (Conv r #v:64,64,3,3 "
     "pads=1,1,1,1)", {"q"}, {2, 64, 13, 14}, 1},
    {"s = (Conv x #w:256,64,1,1 #b:256); t = (Conv x #z:64,64,3,3 pads=1,1,1,1); q = (Conv s "
     "#u:64,256,1,1); r = (Relu (Sub t q)); y = (Conv r #v:64,64,3,3 pads=1,1,1,1)",
     {"q", "s", "r"}, {1, 64, 17, 14}, 3},
    {"s = (Conv x #w:64,64,3,3 pads=1,1,1,1); r = (Relu (Add (Conv s #u:64,64,3,3 pads=1,1,1,1) "
     "s)); y = (Conv r #v:64,64,3,3 pads=1,1,1,1)", {"s", "r"}, {1, 64, 17, 13}, 2},
    /* kinds of convolutions: few channels, Winograd's tiles, strides, groups, single channels */
    {"a = (Relu (Conv x #w:64,3,7,7 #b:64 pads=3,3,3,3 strides=2,2)); y = (Conv (MaxPool a "
     "kernel_shape=3,3 strides=2,2) #v:64,64,3,3)", {"a"}, {1, 3, 45, 37}, 1},
    {"a = (Relu (Conv x #w:64,64,3,3 pads=1,1,1,1)); b = (Clip (Conv a #u:128,64,3,3 pads=1,1,1,1 "
     "strides=2,2) 0.0 6.0); y = (Conv b #v:64,128,3,3)", {"a", "b"}, {1, 64, 22, 19}, 2},
    {"a = (Conv x #w:128,64,3,3 pads=1,1,1,1); b = (Conv a #u:128,1,3,3 group=128 pads=1,1,1,1); y "
     "= (Conv b #v:64,128,3,3)", {"b"}, {1, 64, 15, 12}, 1},
    {"a = (Conv x #w:192,32,3,3 group=2 pads=1,1,1,1); y = (Conv a #v:64,192,3,3)", {"a"},
     {1, 64, 15, 12}, 1},
    /* channels that fill no block are shown as values */
    {"a = (Conv x #w:120,64,3,3 #b:120); y = (Conv (Sigmoid a) #u:64,120,3,3)", {"a"},
     {1, 64, 12, 9}, 0},
};

typedef struct seen {
    const char *names[MOST_SEEN];
    ort_extremes of[MOST_SEEN];
    size_t count, found;
} seen;

static void note(seen *s, const char *name, const ort_extremes *e)
{
    s->names[s->count] = name;
    s->of[s->count++] = *e;
}

static void see_value(void *arg, const char *name, const ort_value *value)
{
    ort_extremes e = {0};
    ort_extremes_add(&e, ort_value_data((ort_value *)(uintptr_t)value),
                     (size_t)ort_value_count(value));
    note(arg, name, &e);
}

static void see_extremes(void *arg, const char *name, const ort_extremes *found)
{
    seen *s = arg;
    s->found++;
    note(s, name, found);
}

static float number_at(uint32_t i, bool odd)
{
    uint32_t v = (i + 17 * 7919) * 2654435761u;
    v ^= v >> 15;
    v *= 2246822519u;
    v ^= v >> 13;
    if (odd && v % 971 == 0)
        return v % 2 ? NAN : INFINITY;
    return ((float)(int)(v >> 8) / 8388608.0f - 1) * ldexpf(1, (int)(v & 7) - 4);
}

static ort_value *input(const net_case *c, bool odd)
{
    ort_value *value = NULL;
    if (ort_value_new_tensor(ORT_DTYPE_FLOAT, 4, c->dims, &value, NULL))
        return NULL;
    float *data = ort_value_data(value);
    for (int64_t i = 0; i < ort_value_count(value); i++)
        data[i] = number_at((uint32_t)i, odd);
    return value;
}

/* Twice, as a second run finds what the first one left. The caller frees the result. */
static ort_value *watch(ort_session *session, ort_value *x, seen *s)
{
    ort_run_options run = ORT_RUN_OPTIONS_INIT;
    ort_value *y = NULL;
    run.on_value = see_value;
    run.callback_arg = s;
    for (int i = 0; i < 2; i++) {
        ort_value_free(y);
        y = NULL;
        *s = (seen){0};
        if (run_whole(session, &x, &y, &run, NULL))
            return NULL;
    }
    return y;
}

static bool alike(const seen *a, const seen *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; i < a->count && same; i++) {
        const ort_extremes *x = &a->of[i], *y = NULL;
        for (size_t k = 0; k < b->count; k++)
            y = !strcmp(a->names[i], b->names[k]) ? &b->of[k] : y;
        same = y && !memcmp(&x->least, &y->least, sizeof x->least) &&
               !memcmp(&x->most, &y->most, sizeof x->most) && x->count == y->count &&
               x->finite == y->finite && x->zeros == y->zeros;
    }
    return same;
}

static bool holds(const net_case *c, const char *isa, int threads, bool odd)
{
    net n;
    ort_session_options options = ORT_SESSION_OPTIONS_INIT;
    seen plain, found;
    ort_value *x = input(c, odd), *y = NULL, *z = NULL;
    if (!net_on(&n, isa, threads))
        return false;
    expr e = {.n = &n};
    net_input(&n, "x", ORT_DTYPE_FLOAT, 4, c->dims);
    bool good = expr_build(&e, c->text);
    net_output(&n, "y");
    options.watched = c->watched;
    ort_session *session = good ? net_session(&n, &options, NULL) : NULL;
    if (session) {
        y = watch(session, x, &plain);
        session->any_order = true;
        session->on_extremes = see_extremes;
        z = watch(session, x, &found);
    }
    good = y && z && plain.count > 0 && plain.found == 0 && alike(&plain, &found) &&
           !memcmp(ort_value_data(y), ort_value_data(z), ort_value_bytes(y));
    if (good && (int)found.found < c->found)
        printf("# %zu found, at least %d wanted\n", found.found, c->found);
    good = good && (int)found.found >= c->found;
    ort_value_free(x);
    ort_value_free(y);
    ort_value_free(z);
    ort_session_free(session);
    net_free(&n);
    return good;
}

static void extremes(test_state *test)
{
    static const char *const tiers[] = {"common", "avx2"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t t = 0; t < sizeof tiers / sizeof *tiers; t++)
            for (int how = 0; how < 4 && ort_kernels_get(tiers[t]); how++) {
                const bool good = holds(&cases[i], tiers[t], how % 2 ? 3 : 1, how / 2);
                if (!good)
                    printf("# %s (%s)\n", cases[i].text, tiers[t]);
                CHECK(good);
            }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, extremes);
    return test.failures != 0;
}
