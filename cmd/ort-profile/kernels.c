/* kernels.c - ort-profile --kernels: one operator at a time over shapes of well-known networks,
 * each as a session of its own model, so that what is measured is what a run gets (packed weights,
 * layout, threads). A row is one operator's own time: what stands around it (a change of layout) is
 * in the wall time only. */
#include <stdlib.h>

#include "common/look.h"
#include "common/table.h"
#include "profile_tool.h"
#include "single_op.h"

typedef struct kernel_case {
    const char *what; /* where the shape comes from */
    single_op op;
} kernel_case;

#define SHAPE(n, ...) {.rank = n, .dim = {__VA_ARGS__}}
#define BYTES(n, ...) {.rank = n, .dim = {__VA_ARGS__}, .dtype = ORT_DTYPE_UINT8}
#define SIGNED(n, m) {.rank = 2, .dim = {n, m}, .dtype = ORT_DTYPE_INT8}
#define SUMS(inputs, ...) {"MatMulInteger", {__VA_ARGS__}, inputs, {{0}}, ORT_DTYPE_INT32}
#define ROWS(n, m) SHAPE(2, n, m)
#define MAPS(n, c, h, w) SHAPE(4, n, c, h, w)
#define PAD(p) {"pads", 4, {p, p, p, p}}
#define STRIDE(s) {"strides", 2, {s, s}}
/* 4096 to 4096 features in blocks of 32, 2 MB for each bit of a weight. */
#define IN_BLOCKS(m, bits, level)                                                                  \
    {"com.microsoft.MatMulNBits",                                                                  \
     {ROWS(m, 4096), BYTES(3, 4096, 128, 4 * bits), SHAPE(1, 4096 * 128)}, 1,                      \
     {{"K", 0, {4096}}, {"N", 0, {4096}}, {"bits", 0, {bits}}, {"block_size", 0, {32}},            \
      {"accuracy_level", 0, {level}}}}
#define HALVES(type, ...) {.rank = 2, .dim = {__VA_ARGS__}, .dtype = ORT_DTYPE_##type}
/* Convolutions of bytes: input and weight of four axes. */
#define CODES(n, c, h, w) {.rank = 4, .dim = {n, c, h, w}, .dtype = ORT_DTYPE_UINT8}
#define FILTERS(m, c, h, w) {.rank = 4, .dim = {m, c, h, w}, .dtype = ORT_DTYPE_INT8}
#define QCONV(x, w, ...)                                                                           \
    {"QLinearConv", {x, w}, 1, {__VA_ARGS__}, ORT_DTYPE_UINT8, .quantized = true}
#define QCONV_ANY(x, w, ...)                                                                       \
    {"QLinearConv", {x, w}, 1, {__VA_ARGS__}, ORT_DTYPE_UINT8, .quantized = true, .any_codes = true}
#define GROUP(g) {"group", 0, {g}}

static const kernel_case cases[] = {
    {"square product", {"MatMul", {ROWS(1024, 1024), ROWS(1024, 1024)}, 1, {{0}}}},
    {"encoder, 128 tokens", {"MatMul", {ROWS(128, 768), ROWS(768, 3072)}, 1, {{0}}}},
    {"encoder, 16 tokens", {"MatMul", {ROWS(16, 768), ROWS(768, 768)}, 1, {{0}}}},
    {"decoder, one token", {"MatMul", {ROWS(1, 768), ROWS(768, 3072)}, 1, {{0}}}},
    {"float16 weights, square", {"MatMul", {ROWS(1024, 1024), HALVES(FLOAT16, 1024, 1024)}, 1,
                                 {{0}}}},
    {"float16 weights, 128 tokens", {"MatMul", {ROWS(128, 768), HALVES(FLOAT16, 768, 3072)}, 1,
                                     {{0}}}},
    {"float16 weights, one token", {"MatMul", {ROWS(1, 4096), HALVES(FLOAT16, 4096, 4096)}, 1,
                                    {{0}}}},
    {"bfloat16 weights, 128 tokens", {"MatMul", {ROWS(128, 768), HALVES(BFLOAT16, 768, 3072)}, 1,
                                      {{0}}}},
    {"bfloat16 weights, one token", {"MatMul", {ROWS(1, 4096), HALVES(BFLOAT16, 4096, 4096)}, 1,
                                     {{0}}}},
    {"float weights, one token", {"MatMul", {ROWS(1, 4096), ROWS(4096, 4096)}, 1, {{0}}}},
    {"attention scores", {"MatMul", {MAPS(1, 12, 128, 64), MAPS(1, 12, 64, 128)}, 2, {{0}}}},
    {"batch of 8x8x8", {"MatMul", {SHAPE(3, 512, 8, 8), SHAPE(3, 512, 8, 8)}, 2, {{0}}}},
    {"classifier", {"Gemm", {ROWS(1, 1280), ROWS(1280, 1000), SHAPE(1, 1000)}, 1, {{0}}}},
    {"4-bit decoder, one token", IN_BLOCKS(1, 4, 0)},
    {"4-bit decoder, level 4", IN_BLOCKS(1, 4, 4)},
    {"4-bit decoder, 128 tokens", IN_BLOCKS(128, 4, 0)},
    {"4-bit, 128 tokens, level 4", IN_BLOCKS(128, 4, 4)},
    {"2-bit decoder, level 4", IN_BLOCKS(1, 2, 4)},
    {"2-bit, 128 tokens, level 4", IN_BLOCKS(128, 2, 4)},
    {"8-bit decoder, level 4", IN_BLOCKS(1, 8, 4)},
    {"8-bit, 128 tokens, level 4", IN_BLOCKS(128, 8, 4)},
    {"bytes, square", SUMS(1, BYTES(2, 1024, 1024), SIGNED(1024, 1024))},
    {"bytes, square, any weights", {"MatMulInteger", {BYTES(2, 1024, 1024), SIGNED(1024, 1024)}, 1,
                                    {{0}}, ORT_DTYPE_INT32, .any_codes = true}},
    {"bytes, 128 tokens", SUMS(1, BYTES(2, 128, 768), SIGNED(768, 3072))},
    {"bytes, one token", SUMS(1, BYTES(2, 1, 4096), SIGNED(4096, 4096))},
    {"bytes, attention scores", SUMS(2, BYTES(4, 1, 12, 128, 64), BYTES(4, 1, 12, 64, 128))},
    {"dynamic bytes, 128 tokens", {"com.microsoft.DynamicQuantizeMatMul",
                                   {ROWS(128, 384), SIGNED(384, 1536), SHAPE(1, 1536)}, 1, {{0}}}},
    {"first layer 7x7/2", {"Conv", {MAPS(1, 3, 224, 224), MAPS(64, 3, 7, 7)}, 1,
                           {PAD(3), STRIDE(2)}}},
    {"first layer 3x3/2", {"Conv", {MAPS(1, 3, 224, 224), MAPS(32, 3, 3, 3)}, 1,
                           {PAD(1), STRIDE(2)}}},
    {"3x3/2, 128 to 256 at 28", {"Conv", {MAPS(1, 128, 28, 28), MAPS(256, 128, 3, 3)}, 1,
                                 {PAD(1), STRIDE(2)}}},
    {"3x3, 64 at 56", {"Conv", {MAPS(1, 64, 56, 56), MAPS(64, 64, 3, 3)}, 1, {PAD(1)}}},
    {"3x3, 256 at 14", {"Conv", {MAPS(1, 256, 14, 14), MAPS(256, 256, 3, 3)}, 1, {PAD(1)}}},
    {"3x3, 512 at 7", {"Conv", {MAPS(1, 512, 7, 7), MAPS(512, 512, 3, 3)}, 1, {PAD(1)}}},
    {"1x1, 24 to 144 at 56", {"Conv", {MAPS(1, 24, 56, 56), MAPS(144, 24, 1, 1)}, 1, {{0}}}},
    {"1x1, 672 to 112 at 14", {"Conv", {MAPS(1, 672, 14, 14), MAPS(112, 672, 1, 1)}, 1, {{0}}}},
    {"depthwise 3x3, 128 at 56", {"Conv", {MAPS(1, 128, 56, 56), MAPS(128, 1, 3, 3)}, 1,
                                  {PAD(1), GROUP(128)}}},
    {"depthwise 3x3, 96 at 112/2", {"Conv", {MAPS(1, 96, 112, 112), MAPS(96, 1, 3, 3)}, 1,
                                    {PAD(1), STRIDE(2), GROUP(96)}}},
    {"depthwise 5x5, 672 at 14", {"Conv", {MAPS(1, 672, 14, 14), MAPS(672, 1, 5, 5)}, 1,
                                  {PAD(2), GROUP(672)}}},
    {"bytes, first layer 7x7/2", QCONV(CODES(1, 3, 224, 224), FILTERS(64, 3, 7, 7), PAD(3),
                                       STRIDE(2))},
    {"bytes, 3x3, 64 at 56", QCONV(CODES(1, 64, 56, 56), FILTERS(64, 64, 3, 3), PAD(1))},
    {"bytes, 3x3, 128 at 28", QCONV(CODES(1, 128, 28, 28), FILTERS(128, 128, 3, 3), PAD(1))},
    {"bytes, 3x3, 256 at 14", QCONV(CODES(1, 256, 14, 14), FILTERS(256, 256, 3, 3), PAD(1))},
    {"bytes, 3x3, 512 at 7", QCONV(CODES(1, 512, 7, 7), FILTERS(512, 512, 3, 3), PAD(1))},
    {"bytes, 1x1, 64 to 256 at 56", QCONV(CODES(1, 64, 56, 56), FILTERS(256, 64, 1, 1), {0})},
    {"bytes, 1x1, 256 to 64 at 56", QCONV(CODES(1, 256, 56, 56), FILTERS(64, 256, 1, 1), {0})},
    {"bytes, 1x1, 256 to 1024 at 14", QCONV(CODES(1, 256, 14, 14), FILTERS(1024, 256, 1, 1), {0})},
    {"bytes, 1x1, 2048 to 512 at 7", QCONV(CODES(1, 2048, 7, 7), FILTERS(512, 2048, 1, 1), {0})},
    {"bytes, 3x3, 256 at 14, any weights", QCONV_ANY(CODES(1, 256, 14, 14),
                                                     FILTERS(256, 256, 3, 3), PAD(1))},
    {"bytes, 1x1, 256 to 1024 at 14, any weights", QCONV_ANY(CODES(1, 256, 14, 14),
                                                             FILTERS(1024, 256, 1, 1), {0})},
    {"bytes, depthwise 3x3, 128 at 56", QCONV(CODES(1, 128, 56, 56), FILTERS(128, 1, 3, 3), PAD(1),
                                              GROUP(128))},
    {"bytes, depthwise 3x3, 96 at 112/2", QCONV(CODES(1, 96, 112, 112), FILTERS(96, 1, 3, 3),
                                                PAD(1), STRIDE(2), GROUP(96))},
    {"bytes, depthwise 5x5, 672 at 14", QCONV(CODES(1, 672, 14, 14), FILTERS(672, 1, 5, 5), PAD(2),
                                              GROUP(672))},
    {"pooling 3x3/2", {"MaxPool", {MAPS(1, 64, 112, 112)}, 1,
                       {{"kernel_shape", 2, {3, 3}}, PAD(1), STRIDE(2)}}},
    {"global pooling", {"GlobalAveragePool", {MAPS(1, 1280, 7, 7)}, 1, {{0}}}},
    {"attention softmax", {"Softmax", {MAPS(1, 12, 128, 128)}, 1, {{0}}}},
    {"encoder norm", {"LayerNormalization", {SHAPE(3, 1, 128, 768), SHAPE(1, 768), SHAPE(1, 768)},
                      1, {{0}}}},
    {"residual", {"Add", {MAPS(1, 64, 56, 56), MAPS(1, 64, 56, 56)}, 2, {{0}}}},
    {"activation", {"Relu", {MAPS(1, 64, 56, 56)}, 1, {{0}}}},
    {"activation", {"Sigmoid", {MAPS(1, 64, 56, 56)}, 1, {{0}}}},
    {"feed-forward", {"Erf", {SHAPE(3, 1, 128, 3072)}, 1, {{0}}}},
    {"feed-forward", {"com.microsoft.Gelu", {SHAPE(3, 1, 128, 768)}, 1, {{0}}}},
    {"feed-forward", {"Exp", {SHAPE(3, 1, 128, 768)}, 1, {{0}}}},
    {"recurrent gate", {"Tanh", {ROWS(1, 1024)}, 1, {{0}}}},
    {"heads to rows", {"Transpose", {MAPS(1, 128, 12, 64)}, 1, {{"perm", 4, {0, 2, 1, 3}}}}},
    {"squeezed mean", {"ReduceMean", {MAPS(1, 64, 56, 56)}, 1, {{"axes", 2, {2, 3}}}}},
};
enum { CASES = sizeof cases / sizeof *cases };

static int make_session(ort_env *env, const profile_options *o, const ort_model *model,
                        ort_session **session)
{
    ort_session_options options;
    ort_error err = {0};
    settings_session_options(&o->settings, &options);
    return ort_session_new(env, (ort_model *)(uintptr_t)model, &options, session, &err) != ORT_OK
               ? tool_fail(&err)
               : 0;
}

static int measure(ort_session *session, const profile_options *o, const char *label,
                   const ort_peak *peak, char **json)
{
    ort_value *inputs[SINGLE_OP_INPUTS] = {NULL};
    ort_profile *profile = NULL;
    ort_error err = {0};
    int status = 0;
    size_t count = ort_session_input_count(session);
    if (ort_session_random_inputs(session, 1, inputs, count, &err) != ORT_OK ||
        ort_profile_new(session, NULL, &profile, &err) != ORT_OK)
        status = tool_fail(&err);
    if (status == 0)
        status = profile_runs(session, o, profile, inputs, label);
    if (status == 0 && ort_profile_report(profile, peak, json, &err) != ORT_OK)
        status = tool_fail(&err);
    for (int i = 0; i < SINGLE_OP_INPUTS; i++)
        ort_value_free(inputs[i]);
    ort_profile_free(profile);
    return status;
}

/* The report of one case; the caller frees *json with ort_text_free. */
static int run_case(ort_env *env, const profile_options *o, const kernel_case *c,
                    const ort_peak *peak, char **json)
{
    ort_model *model = NULL;
    ort_session *session = NULL;
    ort_error err = {0};
    size_t size;
    char *bytes = single_op_model(&c->op, &size);
    const ort_load_options options = {.size = sizeof options, .label = c->what};
    int status = ort_model_load_memory(env, bytes, size, &options, &model, &err) != ORT_OK
                     ? tool_fail_in(c->what, &err)
                     : make_session(env, o, model, &session);
    if (status == 0)
        status = measure(session, o, c->what, peak, json);
    ort_session_free(session);
    ort_model_free(model);
    free(bytes);
    return status;
}

/* The one operator's own row: the costliest in arithmetic, then in time. */
static json_object *main_row(json_object *report)
{
    json_object *rows = member(report, "nodes"), *best = json_object_array_get_idx(rows, 0);
    for (size_t i = 1; i < length_of(rows); i++) {
        json_object *row = json_object_array_get_idx(rows, i);
        if (number_of(row, "macs") + number_of(row, "flops") >
            number_of(best, "macs") + number_of(best, "flops"))
            best = row;
    }
    return best;
}

/* Rates are those of the shortest call: what disturbs a machine only ever makes calls longer. */
static void add_row(table *t, const kernel_case *c, json_object *report, const ort_peak *peak)
{
    json_object *row = main_row(report), *spread = member(row, "spread_ms");
    char *shapes = profile_shapes(row);
    double least = number_of(spread, "min"), ratio = number_of(row, "self_ms") / least;
    double gflops = ratio * number_of(row, "gflops_per_s");
    table_cell(t, c->what);
    table_cell(t, text_of(row, "op_type"));
    table_cell(t, shapes);
    table_cellf(t, "%.2f", 1e3 * least);
    table_cellf(t, "%.2f", 1e3 * number_of(spread, "p50"));
    table_cellf(t, "%.2f", 1e3 * number_of(member(report, "latency_ms"), "p50"));
    table_cellf(t, "%.2f", gflops);
    table_cellf(t, "%.2f", ratio * number_of(row, "gb_per_s"));
    if (peak != NULL && peak->ghz > 0) {
        table_cellf(t, "%.1f", 1e3 * least * peak->ghz);
        table_cellf(t, "%.2f", gflops / peak->ghz);
    } else {
        table_cell(t, "");
        table_cell(t, "");
    }
    if (has_number(row, "of_peak"))
        table_cellf(t, "%.0f %%", 100 * ratio * number_of(row, "of_peak"));
    else
        table_cell(t, "");
    free(shapes);
}

static void add_json(json_object *list, const kernel_case *c, json_object *report)
{
    json_object *item = json_object_new_object();
    json_object_object_add(item, "what", json_object_new_string(c->what));
    json_object_object_add(item, "op_type", json_object_new_string(c->op.op_type));
    json_object_object_add(item, "latency_ms", json_object_get(member(report, "latency_ms")));
    json_object_object_add(item, "node", json_object_get(main_row(report)));
    json_object_array_add(list, item);
}

int profile_kernels(ort_env *env, const profile_options *o, const ort_peak *peak, FILE *stream)
{
    static const char *const heads[] = {"kernel",   "operator", "shapes",  ">min us",
                                        ">p50 us",  ">wall us", ">GFLOP/s", ">GB/s",
                                        ">kcycles", ">flop/cycle", ">of peak", NULL};
    table *t = table_new(heads);
    json_object *list = json_object_new_array();
    int status = 0;
    for (int i = 0; i < CASES && status == 0; i++) {
        char *json = NULL;
        status = run_case(env, o, &cases[i], peak, &json);
        json_object *report = status == 0 ? json_tokener_parse(json) : NULL;
        if (report != NULL) {
            add_row(t, &cases[i], report, peak);
            add_json(list, &cases[i], report);
        }
        json_object_put(report);
        ort_text_free(json);
    }
    if (status == 0 && o->settings.json) {
        tool_reported();
        json_object *all = json_object_new_object();
        json_object_object_add(all, "schema", json_object_new_string("ort-profile-kernels/1"));
        json_object_object_add(all, "isa", json_object_new_string(ort_env_isa(env)));
        json_object_object_add(all, "threads", json_object_new_int(ort_env_threads(env)));
        if (peak != NULL) {
            json_object_object_add(all, "peak_gflops", json_object_new_double(peak->gflops));
            json_object_object_add(all, "peak_int8_gops",
                                   json_object_new_double(peak->int8_gops));
            json_object_object_add(all, "peak_tile_gflops",
                                   json_object_new_double(peak->tile_gflops));
            json_object_object_add(all, "ghz", json_object_new_double(peak->ghz));
        }
        json_object_object_add(all, "kernels", json_object_get(list));
        fprintf(stream, "%s\n", json_object_to_json_string_ext(
                    all, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
        json_object_put(all);
    } else if (status == 0) {
        if (peak != NULL)
            profile_print_peak(peak, ort_env_isa(env), stream);
        table_print(t, stream);
    }
    json_object_put(list);
    table_free(t);
    return status;
}
