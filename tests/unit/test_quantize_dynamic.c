/* test_quantize_dynamic.c - nets whose products become integers by ranges of the run: which nodes
 * do and which don't, how near the outputs are to float's, one copy of weights for all their
 * readers, and the same model on every number of threads.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "levels.h"
#include "test.h"

static uint32_t state;

static float draw(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) * 0x1p-23f - 1;
}

static void add_weights(net *n, const char *name, int rank, const int64_t *dims)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    float *x = malloc((size_t)count * sizeof *x);
    state = (uint32_t)strlen(name) * 2654435761u + (uint8_t)name[0] * 97u;
    for (int64_t i = 0; i < count; i++)
        x[i] = draw() * draw();
    net_constant(n, name, ORT_DTYPE_FLOAT, rank, dims, x);
    free(x);
}

static ort_value *sample(const net *n, size_t which)
{
    const ort_graph *graph = n->model->graph;
    const ort_type *type = &graph->values.data[graph->inputs.data[which]]->fact.type;
    int64_t dims[ORT_MAX_RANK];
    ort_value *x = NULL;
    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dim[i].size;
    if (ort_value_new_tensor(type->dtype, type->rank, dims, &x, NULL))
        return NULL;
    state = 12345u + (uint32_t)which;
    for (int64_t i = 0; i < ort_value_count(x); i++)
        if (type->dtype == ORT_DTYPE_FLOAT)
            ((float *)ort_value_data(x))[i] = draw();
        else if (type->dtype == ORT_DTYPE_INT64)
            ((int64_t *)ort_value_data(x))[i] = i * 7 % 50;
        else
            ((bool *)ort_value_data(x))[i] = true;
    return x;
}

/* The first output. */
static ort_value *result(const net *n, ort_model *model, ort_value *const *x, size_t count)
{
    const char *name = model->graph->values.data[model->graph->outputs.data[0]]->name;
    ort_error err = {0};
    ort_session *session = NULL;
    ort_value *y = NULL;
    if (ort_session_new(n->env, model, NULL, &session, &err) ||
        ort_session_run(session, NULL, x, count, &name, &y, 1, NULL, &err))
        fprintf(stderr, "%s\n", err.message);
    ort_session_free(session);
    return y;
}

/* 10 log10 of signal over noise of the first output. */
static double sqnr(const net *n, ort_model *model)
{
    ort_value *x[2] = {0};
    size_t count = n->model->graph->inputs.count;
    for (size_t i = 0; i < count; i++)
        x[i] = sample(n, i);
    ort_value *a = result(n, n->model, x, count), *b = result(n, model, x, count);
    double signal = 0, noise = 1e-30;
    for (int64_t i = 0; a && b && i < ort_value_count(a); i++) {
        double v = ort_value_get_double(a, i), d = v - ort_value_get_double(b, i);
        signal += v * v;
        noise += d * d;
    }
    for (size_t i = 0; i < count; i++)
        ort_value_free(x[i]);
    ort_value_free(a);
    ort_value_free(b);
    return signal > 0 ? 10 * log10(signal / noise) : 0;
}

static int count_in(const ort_graph *graph, const char *op_type)
{
    int count = 0;
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        count += !strcmp(node->op_type, op_type);
        for (int b = 0; b < node->body_count; b++)
            count += count_in(node->bodies[b], op_type);
    }
    return count;
}

/* Initializers of a type with so many elements, in the main graph. */
static int count_weights(const ort_model *model, ort_dtype dtype, int64_t elements)
{
    const ort_graph *graph = model->graph;
    int count = 0;
    for (size_t i = 0; i < graph->initializers.count; i++) {
        const ort_tensor *t = graph->values.data[graph->initializers.data[i]]->fact.value;
        count += t && t->dtype == dtype && ort_tensor_count(t) == elements;
    }
    return count;
}

typedef struct made {
    net n;
    ort_model *model;
    ort_quantize_notes *notes;
} made;

static void release(made *m)
{
    ort_model_free(m->model);
    ort_quantize_notes_free(m->notes);
    net_free(&m->n);
}

typedef void builder(net *n);

/* The net and its integer form, which is as near to it as `least` dB. */
static bool make(made *m, builder *build, const ort_dynamic_options *options, double least)
{
    ort_error err = {0};
    memset(m, 0, sizeof *m);
    if (!net_init(&m->n, NULL))
        return false;
    build(&m->n);
    if (ort_quantize_notes_new(&m->notes, &err) ||
        ort_model_quantize_dynamic(m->n.env, m->n.model, options, &m->model, m->notes, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return false;
    }
    double got = sqnr(&m->n, m->model);
    if (got < least)
        fprintf(stderr, "%g dB\n", got);
    return got >= least;
}

/* What the notes say of a node: the operator that it became, or why it stays. */
static const char *note_of(const made *m, const char *node)
{
    for (size_t i = 0; i < ort_quantize_notes_count(m->notes); i++) {
        const ort_quantize_note *note = ort_quantize_notes_get(m->notes, i);
        if (!strcmp(note->node, node))
            return note->became ? note->became : note->why;
    }
    return "";
}

/* ---- products */

static void build_products(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(5, 96));
    add_weights(n, "wa", 2, DIMS(96, 64));
    add_weights(n, "wb", 2, DIMS(80, 96));
    add_weights(n, "ws", 2, DIMS(96, 3));
    add_weights(n, "c", 1, DIMS(80));
    add_weights(n, "wd", 2, DIMS(64, 80));
    net_node(n, "MatMul", "x wa", "a");
    ort_node *gemm = net_node(n, "Gemm", "x wb c", "b");
    net_int(n, gemm, "transB", 1);
    ort_attr alpha = {.name = "alpha", .type = ORT_ATTR_FLOAT, .f = 0.5f};
    ort_attr beta = {.name = "beta", .type = ORT_ATTR_FLOAT, .f = 3};
    (void)!ort_node_set_attr(n->graph, gemm, &alpha, NULL);
    (void)!ort_node_set_attr(n->graph, gemm, &beta, NULL);
    net_node(n, "MatMul", "x ws", "s"); /* too small */
    net_node(n, "MatMul", "a wd", "d");
    net_node(n, "ReduceSum", "s", "sum");
    net_node(n, "Add", "b d", "e");
    net_node(n, "Add", "e sum", "y");
    net_output(n, "y");
}

static void products(test_state *test)
{
    made m;
    CHECK(make(&m, build_products, NULL, 35));
    CHECK_TEXT(note_of(&m, "a"), "MatMulInteger");
    CHECK_TEXT(note_of(&m, "b"), "MatMulInteger");
    CHECK_TEXT(note_of(&m, "s"), "too small to gain");
    CHECK(count_in(m.model->graph, "MatMulInteger") == 3);
    CHECK(count_in(m.model->graph, "DynamicQuantizeLinear") == 2); /* x and a, once each */
    CHECK(count_weights(m.model, ORT_DTYPE_FLOAT, 96 * 64) == 0);
    for (size_t k = 0; k < ort_quantize_notes_count(m.notes); k++)
        CHECK(ort_quantize_notes_get(m.notes, k)->saturating == 0);
    CHECK(count_weights(m.model, ORT_DTYPE_UINT8, 96 * 80) == 1);
    CHECK(count_in(m.model->graph, "Transpose") == 0);
    release(&m);
}

static void forms(test_state *test)
{
    static const struct {
        ort_dtype weights;
        bool symmetric, per_tensor, plain, reduced, small;
        double least;
    } kinds[] = {
        {ORT_DTYPE_UINT8, true, false, false, false, false, 35},
        {ORT_DTYPE_UINT8, false, false, false, false, true, 35},
        {ORT_DTYPE_INT8, true, false, true, false, false, 35},
        {ORT_DTYPE_INT8, true, true, false, false, true, 33},
        {ORT_DTYPE_UINT8, false, true, false, false, false, 33},
        {ORT_DTYPE_INT8, true, false, false, true, false, 32},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        made m;
        ort_dynamic_options options = ORT_DYNAMIC_OPTIONS_INIT;
        options.weights = kinds[i].weights;
        options.symmetric_weights = kinds[i].symmetric;
        options.per_tensor = kinds[i].per_tensor;
        options.plain_weights = kinds[i].plain;
        options.reduce_range = kinds[i].reduced;
        options.small = kinds[i].small;
        CHECK(make(&m, build_products, &options, kinds[i].least));
        CHECK(count_in(m.model->graph, "MatMulInteger") == 3 + kinds[i].small);
        for (size_t k = 0; kinds[i].reduced && k < ort_quantize_notes_count(m.notes); k++)
            CHECK(ort_quantize_notes_get(m.notes, k)->saturating == 0);
        release(&m);
    }
}

static const char *leave_b(void *arg, const char *path, const char *op_type)
{
    (void)op_type;
    return strcmp(path, arg) ? NULL : "left out";
}

static void on_share(void *arg, const char *stage, double share)
{
    double *last = arg;
    *last = !strcmp(stage, "quantizing") && share >= *last ? share : NAN;
}

static void progress(test_state *test)
{
    made m;
    double last = 0;
    ort_dynamic_options options = ORT_DYNAMIC_OPTIONS_INIT;
    options.on_share = on_share;
    options.share_arg = &last;
    CHECK(make(&m, build_products, &options, 35));
    CHECK(last == 1);
    release(&m);
}

static void exclusion(test_state *test)
{
    made m;
    char name[] = "b";
    ort_dynamic_options options = ORT_DYNAMIC_OPTIONS_INIT;
    options.stays = leave_b;
    options.arg = name;
    CHECK(make(&m, build_products, &options, 35));
    CHECK_TEXT(note_of(&m, "b"), "left out");
    CHECK(count_in(m.model->graph, "Gemm") == 1);
    CHECK(count_weights(m.model, ORT_DTYPE_FLOAT, 80 * 96) == 1);
    release(&m);
}

static void lists(test_state *test)
{
    made m;
    ort_dynamic_options options = ORT_DYNAMIC_OPTIONS_INIT;
    options.exclude = (const char *const[]){"b", NULL};
    CHECK(make(&m, build_products, &options, 35));
    CHECK_TEXT(note_of(&m, "b"), "it is excluded");
    CHECK(count_in(m.model->graph, "Gemm") == 1);
    release(&m);
    options.exclude = NULL;
    options.include = (const char *const[]){"G?mm", NULL};
    CHECK(make(&m, build_products, &options, 35));
    CHECK_TEXT(note_of(&m, "b"), "MatMulInteger");
    CHECK_TEXT(note_of(&m, "a"), "it isn't among what is included");
    release(&m);
    options.include = (const char *const[]){"Gemm", "nobody", NULL};
    CHECK(!make(&m, build_products, &options, 35));
    release(&m);
}

static void threads(test_state *test)
{
    made m[2];
    bool equal = false;
    char *text = NULL;
    CHECK(make(&m[0], build_products, NULL, 35));
    memset(&m[1], 0, sizeof m[1]);
    CHECK(net_on(&m[1].n, "scalar", 3));
    build_products(&m[1].n);
    CHECK(!ort_model_quantize_dynamic(m[1].n.env, m[1].n.model, NULL, &m[1].model, NULL, NULL));
    CHECK(!ort_model_diff(m[0].model, m[1].model, &equal, &text, NULL) && equal);
    ort_text_free(text);
    release(&m[0]);
    release(&m[1]);
}

/* ---- tables and tied weights */

static void build_tied(net *n)
{
    net_input(n, "ids", ORT_DTYPE_INT64, 2, DIMS(1, 6));
    add_weights(n, "table", 2, DIMS(300, 64));
    net_node(n, "Gather", "table ids", "x");
    net_node(n, "Transpose", "table", "turned");
    net_node(n, "MatMul", "x turned", "y");
    net_output(n, "y");
}

static void tied(test_state *test)
{
    for (int kind = 0; kind < 3; kind++) {
        made m;
        ort_dynamic_options options = ORT_DYNAMIC_OPTIONS_INIT;
        options.symmetric_weights = kind == 1;
        options.per_tensor = kind == 2;
        CHECK(make(&m, build_tied, &options, 30));
        CHECK_TEXT(note_of(&m, "y"), "MatMulInteger");
        CHECK_TEXT(note_of(&m, "x"), "Gather of codes");
        CHECK(count_weights(m.model, ORT_DTYPE_UINT8, 300 * 64) == 1);
        CHECK(count_weights(m.model, ORT_DTYPE_FLOAT, 300 * 64) == 0);
        release(&m);
    }
}

/* A product that multiplies a table as it lies has a scale a column, and the table takes it. */
static void build_tied_straight(net *n)
{
    net_input(n, "ids", ORT_DTYPE_INT64, 2, DIMS(1, 6));
    add_weights(n, "table", 2, DIMS(300, 64));
    add_weights(n, "w", 2, DIMS(64, 300));
    net_node(n, "Gather", "table ids", "x");
    net_node(n, "MatMul", "x w", "h");
    net_node(n, "MatMul", "h table", "y");
    net_node(n, "Add", "x y", "z");
    net_output(n, "z");
}

static void tied_straight(test_state *test)
{
    for (int kind = 0; kind < 4; kind++) {
        made m;
        ort_dynamic_options options = ORT_DYNAMIC_OPTIONS_INIT;
        const ort_dtype dtype = kind == 3 ? ORT_DTYPE_INT8 : ORT_DTYPE_UINT8;
        options.symmetric_weights = kind == 1;
        options.per_tensor = kind == 2;
        options.weights = dtype;
        CHECK(make(&m, build_tied_straight, &options, 30));
        CHECK_TEXT(note_of(&m, "x"), "Gather of codes");
        CHECK_TEXT(note_of(&m, "y"), "MatMulInteger");
        CHECK(count_weights(m.model, dtype, 300 * 64) == 2); /* with w */
        CHECK(count_weights(m.model, ORT_DTYPE_FLOAT, 300 * 64) == 0);
        release(&m);
    }
}

/* A table that is an output, too, turned: its numbers lie in the file once, as floats. */
static void build_result(net *n)
{
    build_tied(n);
    net_node(n, "Identity", "turned", "given");
    net_output(n, "given");
    add_weights(n, "w", 2, DIMS(300, 64));
    net_node(n, "MatMul", "y w", "z");
    net_output(n, "z");
}

static void results_stay(test_state *test)
{
    made m;
    CHECK(make(&m, build_result, NULL, 100));
    CHECK(strstr(note_of(&m, "y"), "an output of the model"));
    CHECK(strstr(note_of(&m, "x"), "an output of the model"));
    CHECK_TEXT(note_of(&m, "z"), "MatMulInteger");
    CHECK(count_weights(m.model, ORT_DTYPE_FLOAT, 300 * 64) == 1);
    CHECK(count_weights(m.model, ORT_DTYPE_UINT8, 300 * 64) == 1);
    release(&m);
}

/* ---- convolutions, layers */

static void build_convs(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 16, 9, 9));
    add_weights(n, "w", 4, DIMS(32, 16, 3, 3));
    add_weights(n, "b", 1, DIMS(32));
    add_weights(n, "wd", 4, DIMS(32, 1, 3, 3));
    set_ints(n, net_node(n, "Conv", "x w b", "c"), "pads", DIMS(1, 1, 1, 1), 4);
    net_int(n, net_node(n, "Conv", "c wd", "y"), "group", 32);
    net_output(n, "y");
}

static void convolutions(test_state *test)
{
    made m;
    ort_dynamic_options options = ORT_DYNAMIC_OPTIONS_INIT;
    CHECK(make(&m, build_convs, NULL, 100));
    CHECK(strstr(note_of(&m, "c"), "ranges from samples"));
    release(&m);
    options.convs = true;
    CHECK(make(&m, build_convs, &options, 35));
    CHECK_TEXT(note_of(&m, "c"), "ConvInteger");
    CHECK(count_in(m.model->graph, "Conv") == 1);
    release(&m);
    options.small = options.per_tensor = true;
    CHECK(make(&m, build_convs, &options, 30));
    CHECK(count_in(m.model->graph, "Conv") == 0);
    release(&m);
}

/* Filters over patches before products that have most of the weights, or less than half. */
static void build_stem(net *n, int width)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 4, DIMS(1, 8, 8, 8));
    add_weights(n, "w", 4, DIMS(64, 8, 4, 4));
    add_weights(n, "v", 2, DIMS(4, width));
    add_weights(n, "u", 2, DIMS(width, 1024));
    net_node(n, "Conv", "x w", "c");
    set_ints(n, net_node(n, "MaxPool", "c", "p"), "kernel_shape", DIMS(2, 2), 2);
    net_node(n, "MatMul", "p v", "h");
    net_node(n, "MatMul", "h u", "y");
    net_output(n, "y");
}

static void build_light_stem(net *n)
{
    build_stem(n, 160);
}

static void build_heavy_stem(net *n)
{
    build_stem(n, 5);
}

static void stems(test_state *test)
{
    made m;
    CHECK(make(&m, build_light_stem, NULL, 30));
    CHECK(strstr(note_of(&m, "c"), "ranges from samples; its weight lies in the file as codes"));
    CHECK(count_in(m.model->graph, "Conv") == 1);
    CHECK(count_weights(m.model, ORT_DTYPE_UINT8, 64 * 8 * 16) == 1);
    CHECK(count_weights(m.model, ORT_DTYPE_FLOAT, 64 * 8 * 16) == 0);
    release(&m);
    CHECK(make(&m, build_heavy_stem, NULL, 30));
    CHECK(!strstr(note_of(&m, "c"), "its weight lies"));
    CHECK(count_weights(m.model, ORT_DTYPE_FLOAT, 64 * 8 * 16) == 1);
    release(&m);
}

static void build_lstm(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 3, DIMS(7, 2, 120));
    add_weights(n, "w", 3, DIMS(2, 4 * 20, 120));
    add_weights(n, "r", 3, DIMS(2, 4 * 20, 20));
    add_weights(n, "b", 2, DIMS(2, 8 * 20));
    ort_node *node = net_node(n, "LSTM", "x w r b", "y");
    ort_attr direction = {.name = "direction", .type = ORT_ATTR_STRING,
                          .s = {(char[]){"bidirectional"}, 13}};
    (void)!ort_node_set_attr(n->graph, node, &direction, NULL);
    net_int(n, node, "hidden_size", 20);
    net_int(n, node, "layout", 0);
    net_output(n, "y");
}

static void layers(test_state *test)
{
    for (int per_tensor = 0; per_tensor < 2; per_tensor++) {
        made m;
        ort_dynamic_options options = ORT_DYNAMIC_OPTIONS_INIT;
        options.per_tensor = per_tensor;
        CHECK(make(&m, build_lstm, &options, 30));
        CHECK_TEXT(note_of(&m, "y"), "DynamicQuantizeLSTM");
        CHECK(ort_model_opset(m.model, "com.microsoft") == 1);
        release(&m);
    }
}

static void build_table(net *n)
{
    net_input(n, "i", ORT_DTYPE_INT64, 1, DIMS(5));
    add_weights(n, "t", 2, DIMS(300, 40));
    net_node(n, "Gather", "t i", "g");
    net_output(n, "g");
}

static const ort_tensor *constant(const ort_model *model, const char *name)
{
    const ort_id id = ort_graph_find_value(model->graph, name);
    return id == ORT_ID_NONE ? NULL : model->graph->values.data[id]->fact.value;
}

/* Numbers of a weight whose codes aren't the nearest: lines of n numbers, of matrices of so many
 * lines, which the codes have as columns; 1: as the weight has them. At an end of the codes they
 * may be clipped, unless `whole`. -1: there are no such codes. */
static int64_t far_codes(const made *m, const char *name, int64_t lines, int64_t n, bool whole)
{
    static const char *const parts[] = {"quantized", "scale", "zero_point"};
    const ort_tensor *from = constant(m->n.model, name), *part[3];
    for (int i = 0; i < 3; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s_%s", name, parts[i]);
        part[i] = constant(m->model, text);
    }
    if (!from || !part[0] || !part[1] || part[0]->dtype != ORT_DTYPE_UINT8)
        return -1;
    int64_t far = 0;
    for (int64_t i = 0; i < ort_tensor_count(from); i++) {
        const int64_t line = i / n, in = i % n;
        const int64_t at = line / lines * lines * n + in * lines + line % lines;
        const int code = ((const uint8_t *)part[0]->data)[at];
        const bool each = part[2] && ort_tensor_count(part[2]) > 1;
        const int zero = part[2] ? ((const uint8_t *)part[2]->data)[each ? line : 0] : 0;
        const double number = ((const float *)from->data)[i];
        const double off = number / ((const float *)part[1]->data)[line] + zero - code;
        far += fabs(off) > 0.5001 && (whole || (code > 0 && code < 255));
    }
    return far;
}

/* What rows are looked up of, and what a recurrence multiplies by. */
static void nearest(test_state *test)
{
    made m;
    ort_dynamic_options options = ORT_DYNAMIC_OPTIONS_INIT;
    options.small = true;
    CHECK(make(&m, build_table, &options, 30));
    CHECK(far_codes(&m, "t", 1, 40, false) == 0);
    release(&m);
    CHECK(make(&m, build_lstm, &options, 30));
    CHECK(far_codes(&m, "w", 80, 120, true) == 0);
    CHECK(far_codes(&m, "r", 80, 20, true) == 0);
    release(&m);
}

static void build_attention(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 3, DIMS(1, 5, 48));
    add_weights(n, "w", 2, DIMS(48, 144));
    net_int(n, net_node_of(n, "com.microsoft", "Attention", "x w", "y"), "num_heads", 4);
    (void)!ort_vec_push(&n->model->opsets, (ort_opset){.domain = "com.microsoft", .version = 1});
    net_output(n, "y");
}

static void attention(test_state *test)
{
    made m;
    CHECK(make(&m, build_attention, NULL, 30));
    CHECK_TEXT(note_of(&m, "y"), "QAttention");
    release(&m);
}

/* Scores of two computed sides. */
static void build_scores(net *n)
{
    net_input(n, "q", ORT_DTYPE_FLOAT, 3, DIMS(2, 5, 48));
    net_input(n, "k", ORT_DTYPE_FLOAT, 3, DIMS(2, 48, 7));
    net_node(n, "MatMul", "q k", "y");
    net_output(n, "y");
}

static void scores(test_state *test)
{
    made m;
    ort_dynamic_options options = ORT_DYNAMIC_OPTIONS_INIT;
    CHECK(make(&m, build_scores, NULL, 100));
    CHECK_TEXT(note_of(&m, "y"), "both of its sides are computed");
    release(&m);
    options.computed = true;
    CHECK(make(&m, build_scores, &options, 35));
    CHECK(count_in(m.model->graph, "DynamicQuantizeLinear") == 2);
    release(&m);
}

/* ---- bodies */

static void build_bodies(net *n)
{
    net_input(n, "p", ORT_DTYPE_BOOL, 0, NULL);
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(5, 96));
    add_weights(n, "w", 2, DIMS(96, 96));
    ort_node *branch = net_node(n, "If", "p", "picked");
    net_body(n, branch, "then_branch");
    net_node(n, "MatMul", "x w", "t");
    net_output(n, "t");
    net_end(n);
    net_body(n, branch, "else_branch");
    net_node(n, "Gemm", "x w", "e");
    net_output(n, "e");
    net_end(n);
    net_node(n, "MatMul", "picked w", "y");
    net_output(n, "y");
}

static void bodies(test_state *test)
{
    made m;
    CHECK(make(&m, build_bodies, NULL, 30));
    CHECK_TEXT(note_of(&m, "picked/t"), "MatMulInteger");
    CHECK_TEXT(note_of(&m, "picked/e"), "MatMulInteger");
    CHECK(count_in(m.model->graph, "MatMulInteger") == 3);
    CHECK(count_weights(m.model, ORT_DTYPE_UINT8, 96 * 96) == 1);
    CHECK(count_weights(m.model, ORT_DTYPE_FLOAT, 96 * 96) == 0);
    release(&m);
}

/* ---- the last product, where it is small */

static void build_head(net *n, int classes)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(5, 320));
    add_weights(n, "w", 2, DIMS(320, 320));
    add_weights(n, "v", 2, DIMS(320, classes));
    add_weights(n, "b", 1, DIMS(classes));
    net_node(n, "MatMul", "x w", "h");
    net_node(n, "Tanh", "h", "t");
    net_node(n, "MatMul", "t v", "s");
    net_node(n, "Add", "s b", "biased");
    net_node(n, "Softmax", "biased", "y");
    net_output(n, "y");
}

static void build_small_head(net *n)
{
    build_head(n, 16);
}

static void build_large_head(net *n)
{
    build_head(n, 24);
}

/* One of twenty numbers at most. */
static void heads(test_state *test)
{
    ort_dynamic_options all;
    ort_model *twice = NULL;
    bool equal = false;
    char *text = NULL;
    made m;
    CHECK(make(&m, build_small_head, NULL, 30));
    CHECK(strstr(note_of(&m, "s"), "what its codes cost would be the result's; its weight lies"));
    CHECK(count_weights(m.model, ORT_DTYPE_UINT8, 320 * 16) == 1);
    CHECK(count_weights(m.model, ORT_DTYPE_FLOAT, 320 * 16) == 0);
    CHECK_TEXT(note_of(&m, "h"), "MatMulInteger");
    CHECK(!ort_model_quantize_dynamic(m.n.env, m.model, NULL, &twice, NULL, NULL));
    CHECK(!ort_model_diff(m.model, twice, &equal, &text, NULL) && equal);
    ort_text_free(text);
    ort_model_free(twice);
    release(&m);
    ort_dynamic_options_init(&all);
    all.small = true;
    CHECK(make(&m, build_small_head, &all, 30));
    CHECK_TEXT(note_of(&m, "s"), "MatMulInteger");
    release(&m);
    CHECK(make(&m, build_large_head, NULL, 25));
    CHECK_TEXT(note_of(&m, "s"), "MatMulInteger");
    release(&m);
}

/* ---- already on codes, and done again */

static void again(test_state *test)
{
    made m;
    ort_model *twice = NULL;
    bool equal = false;
    char *text = NULL;
    CHECK(make(&m, build_products, NULL, 35));
    CHECK(!ort_model_quantize_dynamic(m.n.env, m.model, NULL, &twice, NULL, NULL));
    CHECK(!ort_model_diff(m.model, twice, &equal, &text, NULL) && equal);
    ort_text_free(text);
    ort_model_free(twice);
    release(&m);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, products);
    RUN(&test, forms);
    RUN(&test, exclusion);
    RUN(&test, lists);
    RUN(&test, progress);
    RUN(&test, threads);
    RUN(&test, tied);
    RUN(&test, tied_straight);
    RUN(&test, results_stay);
    RUN(&test, convolutions);
    RUN(&test, stems);
    RUN(&test, layers);
    RUN(&test, nearest);
    RUN(&test, attention);
    RUN(&test, scores);
    RUN(&test, bodies);
    RUN(&test, heads);
    RUN(&test, again);
    return test.failures != 0;
}
