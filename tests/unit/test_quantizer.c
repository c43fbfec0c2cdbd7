/* test_quantizer.c - small float nets quantized with samples: which nodes compute on codes, how far
 * the outputs are from float's, that the order of samples changes nothing, and a watched session's
 * share in it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "levels.h"
#include "test.h"

enum { SAMPLES = 24 };

static void add_weights(net *n, const char *name, int rank, const int64_t *dims)
{
    ort_value *w = net_floats(rank, dims, -0.2f, 0.0f);
    int64_t count = ort_value_count(w);
    float *x = ort_value_data(w);
    uint32_t state = (uint32_t)strlen(name) * 2654435761u + (uint8_t)name[0] * 97u;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) * 0x1p-24f - 0.5f;
    }
    net_constant(n, name, ORT_DTYPE_FLOAT, rank, dims, x);
    ort_value_free(w);
}

/* A residual block between convolutions, a mean and a layer: all but its ends on codes. */
static void build_residual(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 3, 12, 12));
    add_weights(n, "w0", 4, DIMS(16, 3, 3, 3));
    add_weights(n, "b0", 1, DIMS(16));
    add_weights(n, "w1", 4, DIMS(16, 16, 3, 3));
    add_weights(n, "wd", 4, DIMS(16, 1, 3, 3));
    add_weights(n, "wg", 2, DIMS(16, 10));
    set_ints(n, net_node(n, "Conv", "x w0 b0", "c0"), "pads", DIMS(1, 1, 1, 1), 4);
    net_node(n, "Relu", "c0", "r0");
    set_ints(n, net_node(n, "Conv", "r0 w1", "c1"), "pads", DIMS(1, 1, 1, 1), 4);
    net_node(n, "Add", "c1 r0", "s");
    net_node(n, "Relu", "s", "r1");
    net_int(n, net_node(n, "Conv", "r1 wd", "d"), "group", 16);
    net_node(n, "Sigmoid", "d", "g");
    net_node(n, "Mul", "d g", "silu");
    set_ints(n, net_node(n, "MaxPool", "silu", "m"), "kernel_shape", DIMS(2, 2), 2);
    net_node(n, "GlobalAveragePool", "m", "p");
    net_node(n, "Flatten", "p", "f");
    net_node(n, "Gemm", "f wg", "y");
    net_output(n, "y");
}

/* Attention: products on codes, Softmax and what leads to it in float. */
static void build_attention(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 3, DIMS(1, 7, 16));
    add_weights(n, "wq", 2, DIMS(16, 16));
    add_weights(n, "kw", 2, DIMS(16, 16));
    add_weights(n, "bias", 1, DIMS(16));
    net_constant(n, "tenth", ORT_DTYPE_FLOAT, 0, NULL, (const float[]){0.1f});
    net_node(n, "MatMul", "x wq", "q0");
    net_node(n, "Add", "q0 bias", "q");
    net_node(n, "MatMul", "x kw", "k");
    set_ints(n, net_node(n, "Transpose", "k", "kt"), "perm", DIMS(0, 2, 1), 3);
    net_node(n, "MatMul", "q kt", "s");
    net_node(n, "Mul", "s tenth", "scaled");
    net_node(n, "Softmax", "scaled", "p");
    net_node(n, "MatMul", "p x", "y");
    net_output(n, "y");
}

/* Hard swish as exporters spelled it before opset 14: a step on codes all the same. */
static void build_hard_swish(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 8, 12, 12));
    add_weights(n, "w0", 4, DIMS(16, 8, 3, 3));
    add_weights(n, "w1", 4, DIMS(16, 16, 3, 3));
    net_constant(n, "zero", ORT_DTYPE_FLOAT, 0, NULL, (const float[]){0});
    net_constant(n, "three", ORT_DTYPE_FLOAT, 0, NULL, (const float[]){3});
    net_constant(n, "six", ORT_DTYPE_FLOAT, 0, NULL, (const float[]){6});
    net_node(n, "Conv", "x w0", "c");
    net_node(n, "Add", "c three", "more");
    net_node(n, "Clip", "more zero six", "gate");
    net_node(n, "Mul", "c gate", "open");
    net_node(n, "Div", "open six", "h");
    net_node(n, "Conv", "h w1", "y");
    net_output(n, "y");
}

/* Numbers of channel c are 0.7^c of what they were: rows along the first axis. */
static void fade(net *n, const char *name, int rank, const int64_t *dims, bool inverse)
{
    ort_value *w = net_floats(rank, dims, 0, 0);
    int64_t count = ort_value_count(w), each = inverse ? 1 : count / dims[0];
    float *x = ort_value_data(w);
    uint32_t state = 77u + (uint8_t)name[0];
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        int64_t c = inverse ? i % dims[1] : i / each;
        x[i] = ((float)(state >> 8) * 0x1p-24f - 0.5f) * powf(0.7f, (float)(inverse ? -c : c));
    }
    net_constant(n, name, ORT_DTYPE_FLOAT, rank, dims, x);
    ort_value_free(w);
}

/* A depthwise convolution whose channels differ, behind one that makes up for that. */
static void build_depthwise(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 16, 12, 12));
    fade(n, "depthwise", 4, DIMS(16, 1, 3, 3), false);
    fade(n, "pointwise", 4, DIMS(8, 16, 1, 1), true);
    add_weights(n, "b", 1, DIMS(8));
    net_int(n, net_node(n, "Conv", "x depthwise", "d"), "group", 16);
    net_node(n, "Conv", "d pointwise b", "y");
    net_output(n, "y");
}

/* One channel of what a product reads is 100 times as large as the others. */
static void build_outlier(net *n)
{
    float scale[16];
    for (int i = 0; i < 16; i++)
        scale[i] = i == 5 ? 100.0f : 1.0f;
    net_input(n, "x", ORT_DTYPE_FLOAT, 3, DIMS(1, 7, 16));
    net_constant(n, "large", ORT_DTYPE_FLOAT, 1, DIMS(16), scale);
    for (int i = 0; i < 16; i++)
        scale[i] = 1 / scale[i];
    net_constant(n, "small", ORT_DTYPE_FLOAT, 2, DIMS(16, 1), scale);
    add_weights(n, "w", 2, DIMS(16, 16));
    net_node(n, "Mul", "w small", "w0");
    net_node(n, "Mul", "x large", "x1");
    net_node(n, "Elu", "x1", "x0"); /* through which no pass takes the factor */
    net_node(n, "MatMul", "x0 w0", "y");
    net_output(n, "y");
}

typedef void builder(net *n);

static ort_value *sample(const net *n, int k)
{
    const ort_graph *graph = n->model->graph;
    const ort_type *type = &graph->values.data[graph->inputs.data[0]]->fact.type;
    int64_t dims[ORT_MAX_RANK];
    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dim[i].size;
    ort_value *x = net_floats(type->rank, dims, 0, 0);
    float *v = ort_value_data(x);
    uint32_t state = 12345u + 7919u * (uint32_t)k;
    for (int64_t i = 0; i < ort_value_count(x); i++) {
        state = state * 1664525u + 1013904223u;
        v[i] = (float)(state >> 8) * 0x1p-23f - 1;
    }
    return x;
}

/* The model after samples in this order. */
static ort_model *quantized(const net *n, const ort_quantize_options *options, bool backwards)
{
    ort_error err = {0};
    ort_quantizer *q = NULL;
    ort_model *model = NULL;
    if (ort_quantizer_new(n->env, n->model, options, &q, &err))
        return NULL;
    bool ok = true;
    for (int k = 0; k < SAMPLES && ok; k++) {
        ort_value *x = sample(n, backwards ? SAMPLES - 1 - k : k);
        ok = ort_quantizer_calibrate(q, &x, 1, &err) == ORT_OK;
        ort_value_free(x);
    }
    if (ok && ort_quantizer_apply(q, &model, &err))
        model = NULL;
    if (err.message[0])
        fprintf(stderr, "%s\n", err.message);
    ort_quantizer_free(q);
    return model;
}

static ort_value *result(const net *n, ort_model *model, ort_value *x)
{
    ort_error err = {0};
    ort_session *session = NULL;
    ort_value *y = NULL;
    const char *in = "x", *out = "y";
    if (ort_session_new(n->env, model, NULL, &session, &err) ||
        ort_session_run(session, &in, &x, 1, &out, &y, 1, NULL, &err))
        fprintf(stderr, "%s\n", err.message);
    ort_session_free(session);
    return y;
}

/* 10 log10 of signal over noise, of samples that calibration didn't see: one says little. */
static double sqnr(const net *n, ort_model *model)
{
    enum { FIRST = 99, JUDGES = 16 };
    double signal = 0, noise = 1e-30;
    for (int k = 0; k < JUDGES; k++) {
        ort_value *x = sample(n, FIRST + k), *a = result(n, n->model, x), *b = result(n, model, x);
        for (int64_t i = 0; a && b && i < ort_value_count(a); i++) {
            double v = ort_value_get_double(a, i), d = v - ort_value_get_double(b, i);
            signal += v * v;
            noise += d * d;
        }
        ort_value_free(x);
        ort_value_free(a);
        ort_value_free(b);
    }
    return 10 * log10(signal / noise);
}

static int count_of(const ort_model *model, const char *op_type)
{
    int count = 0;
    const ort_node *node;
    ORT_EACH_NODE(model->graph, node)
    {
        count += !strcmp(node->op_type, op_type);
    }
    return count;
}

/* Does the node that computes this value read Q's partner alone, apart from weights? */
static bool reads_codes(const ort_model *model, const char *result_name)
{
    const ort_graph *graph = model->graph;
    ort_id id = ort_graph_find_value(graph, result_name);
    ort_id producer = id == ORT_ID_NONE ? id : ort_graph_producer(graph, id);
    if (producer == ORT_ID_NONE)
        return false;
    const ort_node *node = graph->nodes.data[producer];
    for (int i = 0; i < node->input_count; i++) {
        ort_id from = ort_graph_producer(graph, node->inputs[i]);
        if (from == ORT_ID_NONE || strcmp(graph->nodes.data[from]->op_type, "DequantizeLinear"))
            return false;
    }
    return true;
}

/* The net quantized; NULL when the order of samples changes it, or its results are too far off. */
static ort_model *made_of(net *n, builder *build, const ort_quantize_options *options, double least)
{
    ort_error err = {0};
    if (!net_init(n, NULL))
        return NULL;
    build(n);
    ort_model *forwards = quantized(n, options, false), *backwards = quantized(n, options, true);
    bool equal = false;
    char *text = NULL;
    if (!forwards || !backwards || ort_model_diff(forwards, backwards, &equal, &text, &err) ||
        !equal)
        fprintf(stderr, "%s\n", text ? text : err.message);
    ort_text_free(text);
    double got = equal ? sqnr(n, forwards) : 0;
    ort_model_free(backwards);
    if (got >= least)
        return forwards;
    fprintf(stderr, "%g dB\n", got);
    ort_model_free(forwards);
    return NULL;
}

static void residual(test_state *test)
{
    net n;
    ort_model *m = made_of(&n, build_residual, NULL, 30);
    CHECK(m);
    static const char *const on_codes[] = {"c0", "c1", "s", "d", "g", "m", "p", "f", "y"};
    for (size_t i = 0; i < sizeof on_codes / sizeof *on_codes; i++)
        CHECK(reads_codes(m, on_codes[i]));
    CHECK(!reads_codes(m, "r0") && !reads_codes(m, "r1")); /* they belong to what is before them */
    CHECK(!reads_codes(m, "silu")); /* with its sigmoid it is one function of d */
    CHECK(count_of(m, "QuantizeLinear") == 9); /* x r0 c1 r1 d silu m p f */
    ort_model_free(m);
    net_free(&n);
}

static void attention(test_state *test)
{
    net n;
    ort_model *m = made_of(&n, build_attention, NULL, 30);
    CHECK(m);
    CHECK(reads_codes(m, "q0") && reads_codes(m, "k") && reads_codes(m, "kt"));
    CHECK(reads_codes(m, "s") && reads_codes(m, "y"));
    CHECK(!reads_codes(m, "q") && !reads_codes(m, "scaled") && !reads_codes(m, "p"));
    CHECK(count_of(m, "QuantizeLinear") == 5); /* x q k kt p */
    ort_model_free(m);
    net_free(&n);
}

static void hard_swish(test_state *test)
{
    net n;
    ort_model *m = made_of(&n, build_hard_swish, NULL, 30);
    CHECK(m);
    CHECK(count_of(m, "HardSwish") == 1 && count_of(m, "Clip") == 0);
    CHECK(count_of(m, "QuantizeLinear") == 3); /* x c h */
    ort_model_free(m);
    net_free(&n);
}

static void forms(test_state *test)
{
    static const struct {
        ort_dtype activations, weights;
        bool symmetric, asymmetric_weights, per_tensor, reduced;
        double least;
    } kinds[] = {
        {ORT_DTYPE_UINT8, ORT_DTYPE_UINT8, false, true, false, false, 30},
        {ORT_DTYPE_INT8, ORT_DTYPE_INT8, true, false, false, false, 25},
        {ORT_DTYPE_UINT8, ORT_DTYPE_INT8, false, false, true, false, 28},
        {ORT_DTYPE_UINT8, ORT_DTYPE_INT8, false, false, false, true, 24},
    };
    static const ort_observer observers[] = {ORT_OBSERVE_MIN_MAX, ORT_OBSERVE_PERCENTILE,
                                             ORT_OBSERVE_MSE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int o = 0; o < 3; o++) {
            net n;
            ort_quantize_options options = ORT_QUANTIZE_OPTIONS_INIT;
            options.activations = kinds[i].activations;
            options.weights = kinds[i].weights;
            options.symmetric = kinds[i].symmetric;
            options.asymmetric_weights = kinds[i].asymmetric_weights;
            options.per_tensor = kinds[i].per_tensor;
            options.reduce_range = kinds[i].reduced;
            options.observer = observers[o];
            ort_model *m = made_of(&n, build_residual, &options, kinds[i].least);
            CHECK(m);
            ort_model_free(m);
            net_free(&n);
        }
}

/* Neighbours of one filter in which two weights of one sign are more than 128: in twos of channels
 * at a tap, and in twos of taps one behind the other with all channels of each. */
static int beyond(const int8_t *w, int64_t channels, int64_t taps, int64_t step)
{
    int found = 0;
    for (int64_t t = 0; t < taps; t++)
        for (int64_t c = 0; c + 1 < channels; c += 2)
            found += abs(w[(c * taps + t) * step] + w[((c + 1) * taps + t) * step]) > 128;
    for (int64_t k = 0; k + 1 < channels * taps; k += 2) {
        int sum = 0;
        for (int64_t i = k; i < k + 2; i++)
            sum += w[(i % channels * taps + i / channels) * step];
        found += abs(sum) > 128;
    }
    return found;
}

static int beyond_in(const ort_model *m)
{
    static const struct {
        const char *name;
        int64_t filters, channels, taps;
    } weights[] = {{"w0_codes", 16, 3, 9}, {"w1_codes", 16, 16, 9}, {"wg_codes", 10, 16, 1}};
    int found = 0, seen = 0;
    for (size_t i = 0; i < m->graph->values.count; i++)
        for (size_t k = 0; k < sizeof weights / sizeof *weights; k++) {
            const ort_graph_value *v = m->graph->values.data[i];
            const int64_t filters = weights[k].filters, n = weights[k].channels * weights[k].taps;
            const bool matrix = weights[k].taps == 1;
            if (!v->fact.value || !v->name || strcmp(v->name, weights[k].name))
                continue;
            seen++;
            for (int64_t f = 0; f < filters; f++)
                found += beyond((const int8_t *)v->fact.value->data + (matrix ? f : f * n),
                                weights[k].channels, weights[k].taps, matrix ? filters : 1);
        }
    return seen == 3 ? found : -1;
}

/* By default no sum of two products leaves 16 bits, whatever the input and however codes are
 * chosen. */
static void pairs(test_state *test)
{
    static const struct {
        bool full_range, per_tensor, plain, effort;
    } kinds[] = {{false}, {true, .plain = true}, {.per_tensor = true}, {.plain = true},
                 {.effort = true}, {.per_tensor = true, .effort = true}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        net n;
        ort_quantize_options options = ORT_QUANTIZE_OPTIONS_INIT;
        options.full_range = kinds[i].full_range;
        options.per_tensor = kinds[i].per_tensor;
        options.plain_weights = kinds[i].plain;
        options.adaptive_rounding = kinds[i].effort;
        ort_model *m = made_of(&n, build_residual, &options, 24);
        CHECK(m);
        if (m && kinds[i].full_range)
            CHECK(beyond_in(m) > 0);
        else if (m)
            CHECK(beyond_in(m) == 0);
        ort_model_free(m);
        net_free(&n);
    }
}

/* How many dB the options bring over others. */
static bool gains(builder *build, const ort_quantize_options *options,
                  const ort_quantize_options *others, double least, double most)
{
    net n;
    double db[2] = {0};
    for (int i = 0; i < 2; i++) {
        ort_model *m = made_of(&n, build, i ? options : others, -20);
        db[i] = m ? sqnr(&n, m) : 0;
        ort_model_free(m);
        net_free(&n);
    }
    if (db[1] - db[0] >= least && db[1] - db[0] <= most)
        return true;
    fprintf(stderr, "%g dB instead of %g\n", db[1], db[0]);
    return false;
}

/* Channels of a depthwise convolution on one grid: what scales by channel avoid. */
static void depthwise(test_state *test)
{
    ort_quantize_options options = ORT_QUANTIZE_OPTIONS_INIT, others;
    options.activations = ORT_DTYPE_UINT16; /* what they lose is another matter */
    others = options;
    options.per_tensor = true;
    CHECK(gains(build_depthwise, &options, &others, -60, -5));
}

/* A channel of activations that is much larger than the others takes their codes: 16 bits don't. */
static void outlier(test_state *test)
{
    ort_quantize_options options = ORT_QUANTIZE_OPTIONS_INIT;
    options.activations = ORT_DTYPE_UINT16;
    CHECK(gains(build_outlier, &options, NULL, 6, 80));
}

/* Stages follow each other; the shares of each rise to all of it. */
typedef struct stages {
    char names[200];
    double last;
    int falls;
} stages;

static void on_share(void *arg, const char *stage, double share)
{
    stages *s = arg;
    const size_t length = strlen(s->names);
    if (length < strlen(stage) || strcmp(s->names + length - strlen(stage), stage)) {
        s->falls += length > 0 && s->last != 1;
        snprintf(s->names + length, sizeof s->names - length, "%s%s", length ? ", " : "", stage);
    } else {
        s->falls += share < s->last || share > 1;
    }
    s->last = share;
}

static void progress(test_state *test)
{
    ort_quantize_options options = ORT_QUANTIZE_OPTIONS_INIT;
    stages s = {""};
    net n;
    options.on_share = on_share;
    options.share_arg = &s;
    options.correct_biases = options.adaptive_rounding = true;
    ort_model *m = made_of(&n, build_residual, &options, -20);
    CHECK(m && s.falls == 0 && s.last == 1);
    s.names[strlen("quantizing, rounding layers, correcting biases")] = 0; /* it is made twice */
    CHECK_TEXT(s.names, "quantizing, rounding layers, correcting biases");
    ort_model_free(m);
    net_free(&n);
}

static void effort(test_state *test)
{
    ort_quantize_options options = ORT_QUANTIZE_OPTIONS_INIT, others;
    options.observer = ORT_OBSERVE_MSE; /* of both */
    others = options;
    options.correct_biases = true;
    options.adaptive_rounding = true;
    CHECK(gains(build_residual, &options, &others, 0.1, 20));
    CHECK(gains(build_attention, &options, &others, -0.1, 20));
    CHECK(gains(build_depthwise, &options, &others, -0.1, 20));
    options.weights = others.weights = ORT_DTYPE_INT4; /* whose roundings are most of the error */
    CHECK(gains(build_residual, &options, &others, 0.5, 20));
    options.per_tensor = others.per_tensor = true; /* a zero point fills half of a byte */
    CHECK(gains(build_residual, &options, &others, 0.5, 20));
}

int main(void)
{
    test_state test = {0};
    RUN(&test, residual);
    RUN(&test, attention);
    RUN(&test, hard_swish);
    RUN(&test, forms);
    RUN(&test, pairs);
    RUN(&test, depthwise);
    RUN(&test, outlier);
    RUN(&test, effort);
    RUN(&test, progress);
    return test.failures != 0;
}
