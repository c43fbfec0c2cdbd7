/* test_common.c - kernels of runs that decide about files give the same bits on 256 bits as on
 * vectors as wide as the machine has, in whole sessions: convolutions of all kinds in the blocked
 * layout and beside it, what joins them there, and products of matrices.
 *
 * On a machine without AVX-512 both are the same table, and nothing is shown.
 */
#include <math.h>

#include "expr.h"
#include "kernel/kernel.h"
#include "levels.h"
#include "op/blocked/blocked_op.h"
#include "test.h"

typedef struct net_case {
    const char *text; /* expr.h; y is the output */
    int rank;
    int64_t dims[4];  /* of x */
} net_case;


#define PLANE(c, h, w) 4, {1, c, h, w}

static const net_case cases[] = {
    /* few channels, out of plain rows */
    {"y = (Relu (Conv x #w:24,3,3,3 #b:24 pads=1,1,1,1 strides=2,2))", PLANE(3, 37, 41)},
    {"y = (MaxPool (Relu (Conv x #w:61,3,7,7 #b:61 pads=3,3,3,3 strides=2,2)) kernel_shape=3,3 "
     "strides=2,1 pads=1,0,1,1)", PLANE(3, 30, 31)},
    {"y = (Conv (PRelu (Conv x #w:32,1,5,3 pads=2,1,2,1) #s:32,1,1) #v:16,32,1,1)",
     PLANE(1, 20, 40)},
    /* 1x1: channels that fill blocks and that don't, sums in one call and in several */
    {"y = (Conv (Clip (Conv x #w:144,24,1,1 #b:144) 0.0 6.0) #v:24,144,1,1)", PLANE(24, 15, 17)},
    {"a = (Conv x #w:264,130,1,1 #b:264); y = (Conv (Relu (a + (Conv x #u:264,130,1,1))) "
     "#v:20,264,1,1)", PLANE(130, 9, 11)},
    {"y = (GlobalAveragePool (Conv x #w:520,512,1,1 #b:520))", PLANE(512, 7, 7)},
    {"a = (Conv x #w:72,96,1,1 strides=2,2); y = (Conv (a * (Sigmoid a)) #v:30,72,1,1)",
     PLANE(96, 14, 13)},
    {"a = (Conv x #w:72,96,1,1); s = (Sigmoid (Conv (GlobalAveragePool a) #u:72,72,1,1)); "
     "y = (Conv (a * s) #v:30,72,1,1)", PLANE(96, 14, 13)},
    /* 3x3 by Winograd's tiles and without */
    {"a = (Relu (Conv x #w:64,64,3,3 #b:64 pads=1,1,1,1)); y = (Relu (a + (Conv a #u:64,64,3,3 "
     "pads=1,1,1,1)))", PLANE(64, 28, 28)},
    {"y = (Conv (LeakyRelu (Conv x #w:96,128,3,3 pads=1,1,1,1) alpha=0.1) #v:72,96,3,3 "
     "pads=1,1,1,1)", PLANE(128, 13, 14)},
    {"y = (Relu (Conv x #w:512,512,3,3 pads=1,1,1,1))", PLANE(512, 7, 7)},
    {"y = (AveragePool (Conv (Relu (Conv x #w:56,40,3,3 strides=2,2 pads=1,1,1,1)) #v:40,56,3,3 "
     "pads=1,1,1,1) kernel_shape=3,3 pads=1,1,1,1)", PLANE(40, 19, 23)},
    /* other windows */
    {"y = (Conv (Conv x #w:40,32,3,2 strides=1,2 dilations=2,3 pads=2,4,1,5) #v:24,40,1,1)",
     PLANE(32, 21, 18)},
    {"a = (Conv x #w:64,16,5,5 pads=2,2,2,2); y = (Conv (Resize a - #s=1,1,2,2) "
     "#v:24,64,1,1)", PLANE(16, 17, 16)},
    {"a = (Conv x #w:64,64,1,1); b = (Conv x #u:32,64,1,1); y = (Conv (Concat a b axis=1) "
     "#v:24,96,3,3)", PLANE(64, 12, 10)},
    {"y = (Conv (Conv x #w:192,64,3,3 group=2 strides=2,1 pads=1,1,1,1) #v:24,192,1,1)",
     PLANE(128, 17, 12)},
    /* a filter for each channel */
    {"a = (Relu (Conv x #u:96,24,1,1)); y = (Conv (Clip (Conv a #w:96,1,3,3 #b:96 group=96 "
     "pads=1,1,1,1) 0.0 6.0) #v:24,96,1,1)", PLANE(24, 17, 19)},
    {"a = (Relu (Conv x #u:72,24,1,1)); y = (Conv (Conv a #w:72,1,3,3 #b:72 group=72 strides=2,2 "
     "pads=1,1,1,1) #v:24,72,1,1)", PLANE(24, 18, 25)},
    {"a = (Relu (Conv x #u:120,24,1,1)); y = (Conv (PRelu (Conv a #w:120,1,5,5 group=120 "
     "pads=2,2,2,2) #s:120,1,1) #v:24,120,1,1)", PLANE(24, 14, 14)},
    {"a = (Conv x #u:64,24,1,1); y = (GlobalMaxPool (Conv (Conv a #w:64,1,5,5 group=64 strides=2,2 "
     "pads=2,2,2,2) #v:24,64,1,1))", PLANE(24, 23, 14)},
    {"a = (Conv x #u:64,24,1,1); y = (Conv (a + (Conv a #w:64,1,7,7 group=64 pads=3,3,3,3)) "
     "#v:24,64,1,1)", PLANE(24, 15, 22)},
    {"a = (Conv x #u:48,24,1,1); y = (Conv (Conv a #w:48,1,3,3 group=48 dilations=2,2 "
     "pads=2,2,2,2) #v:24,48,1,1)", PLANE(24, 15, 22)},
    {"a = (Conv x #u:48,24,1,1); y = (Conv (Conv a #w:48,1,2,9 group=48 pads=1,4,0,4) "
     "#v:24,48,1,1)", PLANE(24, 9, 30)},
    /* beside the layout */
    {"y = (Relu (Conv x #w:9,2,3,3 #b:9 group=3 pads=1,1,1,1))", PLANE(6, 15, 22)},
    {"y = (Conv x #w:7,20,3,3 #b:7 pads=1,1,1,1)", PLANE(20, 33, 9)},
    {"y = (Relu (ConvTranspose x #w:24,17,3,3 #b:17 strides=2,2 pads=1,1,1,1))", PLANE(24, 9, 11)},
    /* products */
    {"y = (Relu (MatMul x #w:300,70))", 2, {1, 300}},
    {"y = (MatMul x #w:1111,33)", 2, {2, 1111}},
    {"y = (Sigmoid (MatMul x #w:515,257))", 2, {37, 515}},
    {"y = (Relu (Gemm x #w:384,130 #b:130 alpha=0.7))", 2, {200, 384}},
    {"y = (Softmax (Gemm x #w:1000,64 #b:1000 transB=1))", 2, {5, 64}},
    {"y = (MatMul (Softmax (MatMul x (Transpose x perm=1,0))) x)", 2, {50, 72}},
    {"y = (MatMul x (Cast #w.f16:512,512 to=1))", 2, {9, 512}},
};

static float number_at(uint32_t i)
{
    uint32_t v = (i + 17 * 7919) * 2654435761u;
    v ^= v >> 15;
    v *= 2246822519u;
    v ^= v >> 13;
    return ((float)(int)(v >> 8) / 8388608.0f - 1) * ldexpf(1, (int)(v & 7) - 4);
}

static ort_value *input(const net_case *c)
{
    ort_value *value = NULL;
    if (ort_value_new_tensor(ORT_DTYPE_FLOAT, c->rank, c->dims, &value, NULL))
        return NULL;
    float *data = ort_value_data(value);
    for (int64_t i = 0; i < ort_value_count(value); i++)
        data[i] = number_at((uint32_t)i);
    return value;
}

/* Ways in which convolutions ran. */
typedef struct ways {
    int plain, direct, winograd, depthwise;
} ways;

static void count_ways(const ort_session *session, ways *w)
{
    for (int i = 0; i < session->program->step_count; i++) {
        const ort_step *step = &session->program->steps[i];
        const ort_blocked_state *s = step->state;
        if (strcmp(step->op->name, "BlockedConv"))
            continue;
        w->plain += s->plain;
        w->winograd += s->winograd;
        w->depthwise += s->depthwise;
        w->direct += !s->plain && !s->winograd && !s->depthwise;
    }
}

/* Each seventh number of the weights called w, behind a bias b that leaves nothing positive. */
static void make_infinite(const ort_graph *graph)
{
    for (size_t i = 0; i < graph->initializers.count; i++) {
        const ort_graph_value *v = graph->values.data[graph->initializers.data[i]];
        float *data = v->fact.value->data;
        for (int64_t n = 0; n < ort_tensor_count(v->fact.value); n++)
            data[n] = !strcmp(v->name, "b")                 ? -1e6f
                      : !strcmp(v->name, "w") && n % 7 == 0 ? INFINITY
                                                            : data[n];
    }
}

/* The caller frees. */
static ort_value *result_of(const net_case *c, const char *isa, int threads, bool infinite,
                            ways *w)
{
    net n;
    ort_error err = {0};
    ort_value *y = NULL, *x = input(c);
    if (!net_on(&n, isa, threads))
        return NULL;
    expr e = {.n = &n};
    net_input(&n, "x", ORT_DTYPE_FLOAT, c->rank, c->dims);
    const bool built = expr_build(&e, c->text);
    net_output(&n, "y");
    if (infinite)
        make_infinite(n.graph);
    ort_session *session = built ? at_level(&n, 3, &err) : NULL;
    if (!session || run_whole(session, &x, &y, NULL, &err))
        printf("# %s: %s\n", c->text, built ? err.message : "isn't written");
    if (session)
        count_ways(session, w);
    ort_session_free(session);
    ort_value_free(x);
    net_free(&n);
    return y;
}

static void same_bits(test_state *test)
{
    ways narrow = {0}, wide = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases && ort_kernels_get("common"); i++) {
        ort_value *a = result_of(&cases[i], "common256", 1, false, &narrow);
        ort_value *b = result_of(&cases[i], "common", 3, false, &wide);
        const bool same = a && b && ort_value_bytes(a) == ort_value_bytes(b) &&
                          !memcmp(ort_value_data(a), ort_value_data(b), ort_value_bytes(a));
        ort_value_free(a);
        ort_value_free(b);
        if (!same)
            printf("# %s\n", cases[i].text);
        CHECK(same);
    }
    CHECK(!memcmp(&narrow, &wide, sizeof wide));
    CHECK(!ort_kernels_get("common") ||
          (wide.plain > 0 && wide.direct > 0 && wide.winograd > 0 && wide.depthwise > 0));
}

/* Zeros times infinite weights are NaN, whichever way a convolution goes: such filters are noticed
 * (kernel/blocked_zeros.inc). */
static void infinite_weights(test_state *test)
{
    static const net_case of_zeros[] = {
        {"y = (Conv (Relu (Conv x #u:144,24,1,1 #b:144)) #w:64,144,1,1)", PLANE(24, 15, 17)},
        {"y = (Relu (Conv (Relu (Conv x #u:64,64,3,3 #b:64 pads=1,1,1,1)) #w:64,64,3,3 "
         "pads=1,1,1,1))", PLANE(64, 28, 28)},
        {"y = (Conv (Relu (Conv x #u:64,16,5,5 #b:64 pads=2,2,2,2)) #w:64,64,5,5 pads=2,2,2,2)",
         PLANE(16, 28, 28)},
    };
    static const char *const tiers[] = {"common", "common256", "avx2", "avx512"};
    for (size_t i = 0; i < sizeof of_zeros / sizeof *of_zeros; i++)
        for (size_t k = 0; k < sizeof tiers / sizeof *tiers; k++) {
            ways w = {0};
            if (!ort_kernels_get(tiers[k]))
                continue;
            ort_value *y = result_of(&of_zeros[i], tiers[k], 1, true, &w);
            const float *data = y ? ort_value_data(y) : NULL;
            int64_t others = 0;
            for (int64_t n = 0; y && n < ort_value_count(y); n++)
                others += !isnan(data[n]);
            CHECK(y && others == 0 && w.direct + w.winograd == 2);
            ort_value_free(y);
        }
}

/* What a batch gives are the bits of its rows alone. */
static void rows_alone(test_state *test)
{
    static const net_case two = {"y = (MatMul x #w:1111,33)", 2, {2, 1111}};
    net_case one = two;
    ways w = {0};
    one.dims[0] = 1;
    if (!ort_kernels_get("common"))
        return;
    ort_value *a = result_of(&two, "common", 1, false, &w);
    ort_value *b = result_of(&one, "common", 1, false, &w);
    const bool same = a && b && !memcmp(ort_value_data(a), ort_value_data(b), ort_value_bytes(b));
    ort_value_free(a);
    ort_value_free(b);
    CHECK(same);
}

static void tables(test_state *test)
{
    const ort_kernels *narrow = ort_kernels_get("common256"), *wide = ort_kernels_get("common");
    const ort_kernels *avx512 = ort_kernels_get("avx512");
    CHECK(!narrow == !wide && !wide == !ort_kernels_get("avx2"));
    if (!wide)
        return;
    CHECK_TEXT(narrow->isa, wide->isa);
    CHECK(narrow->block == wide->block && narrow->gemm.kc == wide->gemm.kc);
    CHECK(!narrow->blocked16.line_input == !wide->blocked16.line_input);
    CHECK(!avx512 || (wide->gemm.f32 == avx512->gemm.f32 && narrow->gemm.f32 != wide->gemm.f32));
}

int main(void)
{
    test_state test = {0};
    RUN(&test, tables);
    RUN(&test, same_bits);
    RUN(&test, infinite_weights);
    RUN(&test, rows_alone);
    return test.failures != 0;
}
