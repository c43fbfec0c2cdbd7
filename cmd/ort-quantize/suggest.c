/* suggest.c - which verb suits a model: rules over the mix of its operators, of which the first
 * that holds decides.
 *
 * What integers bring depends on the work. Convolutions are bound by products: codes on both sides,
 * whose ranges samples tell. Encoders and LSTMs compute values whose range moves with the input, so
 * that ranges found in each run keep more. Decoders multiply one row by all weights: memory bounds
 * them, and 4 bits a weight are an eighth of it.
 */
#include "suggest.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "common/look.h"
#include "common/table.h"

/* ---- facts */

static const struct {
    const char *op_type;
    work_kind kind;
} kinds[] = {
    {"Conv", WORK_CONV},
    {"ConvTranspose", WORK_CONV},
    {"FusedConv", WORK_CONV},
    {"MatMul", WORK_MATMUL},
    {"Gemm", WORK_MATMUL},
    {"FusedMatMul", WORK_MATMUL},
    {"FusedGemm", WORK_MATMUL},
    {"Attention", WORK_MATMUL},
    {"MultiHeadAttention", WORK_MATMUL},
    {"GroupQueryAttention", WORK_MATMUL},
    {"LSTM", WORK_LSTM},
    {"GRU", WORK_GRU},
    {"RNN", WORK_GRU},
    {"TreeEnsemble", WORK_TREE},
    {"TreeEnsembleClassifier", WORK_TREE},
    {"TreeEnsembleRegressor", WORK_TREE},
};

static void take_node(facts *f, json_object *row)
{
    const char *op_type = text_of(row, "op_type");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].op_type, op_type))
            continue;
        kind_of_work *work = &f->work[kinds[i].kind];
        work->nodes++;
        f->fused += !strncmp(op_type, "Fused", strlen("Fused"));
        work->in_bodies += *text_of(row, "graph") != '\0';
        work->macs += number_of(row, "macs");
        work->weight_bytes += number_of(row, "weight_bytes");
    }
}

static int take_costs(facts *f, ort_model *model)
{
    ort_error err = {0};
    char *text = NULL;
    if (ort_model_report(model, ORT_REPORT_COST, &text, &err) != ORT_OK)
        return tool_fail(&err);
    json_object *report = look_parse(text, stdout);
    ort_text_free(text);
    json_object *nodes = member(report, "nodes"), *open = member(report, "assumed_one");
    for (size_t i = 0; i < length_of(nodes); i++)
        take_node(f, json_object_array_get_idx(nodes, i));
    for (size_t i = 0; i < length_of(open); i++)
        f->open = f->open || number_of(json_object_array_get_idx(open, i), "axis") > 0;
    json_object_put(report);
    return 0;
}

static double bytes_of(const ort_type_info *type)
{
    double bytes = ort_dtype_bits(type->dtype) / 8.0;
    for (int i = 0; i < type->rank; i++)
        bytes *= (double)type->dims[i];
    return type->kind == ORT_TYPE_TENSOR && type->rank >= 0 ? bytes : 0;
}

static bool is_code(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_INT8 || dtype == ORT_DTYPE_UINT8 || dtype == ORT_DTYPE_INT4 ||
           dtype == ORT_DTYPE_UINT4;
}

static int take_weights(facts *f, const ort_model *model)
{
    ort_types *types = NULL;
    ort_error err = {0};
    if (ort_model_types(model, ORT_TYPES_INITIALIZERS, &types, &err) != ORT_OK)
        return tool_fail(&err);
    for (size_t i = 0; i < ort_types_count(types); i++) {
        const ort_type_info *type = ort_types_info(types, i);
        double bytes = bytes_of(type);
        f->weight_bytes += bytes;
        f->code_bytes += is_code(type->dtype) ? bytes : 0;
        f->half_bytes += type->dtype == ORT_DTYPE_FLOAT16 || type->dtype == ORT_DTYPE_BFLOAT16
                             ? bytes : 0;
        f->double_bytes += type->dtype == ORT_DTYPE_DOUBLE ? bytes : 0;
    }
    ort_types_free(types);
    return 0;
}

/* Keys and values of the words before: "past_key_values.0.key", "past_0", "cache_k". */
static int take_cache(facts *f, const ort_model *model)
{
    ort_types *types = NULL;
    ort_error err = {0};
    if (ort_model_types(model, ORT_TYPES_INPUTS, &types, &err) != ORT_OK)
        return tool_fail(&err);
    for (size_t i = 0; i < ort_types_count(types) && f->cache == NULL; i++) {
        const char *name = ort_types_name(types, i);
        const ort_type_info *type = ort_types_info(types, i);
        if (type->kind == ORT_TYPE_TENSOR && type->rank >= 4 &&
            (strcasestr(name, "past") || strcasestr(name, "cache")))
            f->cache = tool_strdup(name);
    }
    ort_types_free(types);
    return 0;
}

/* ---- rules */

static double all_macs(const facts *f)
{
    double sum = 0;
    for (int i = 0; i < WORK_KINDS; i++)
        sum += f->work[i].macs;
    return sum;
}

static double all_nodes(const facts *f)
{
    return f->work[WORK_CONV].nodes + f->work[WORK_MATMUL].nodes + f->work[WORK_LSTM].nodes +
           f->work[WORK_GRU].nodes;
}

static double share(const facts *f, work_kind kind)
{
    double all = all_macs(f);
    return all > 0 ? f->work[kind].macs / all : f->work[kind].nodes / fmax(all_nodes(f), 1);
}

static void reason(suggestion *s, char *text)
{
    string_list_add(&s->reasons, text);
    free(text);
}

/* Tables of embeddings are often left in float. */
static bool computes_on_codes(suggestion *s)
{
    const facts *f = &s->facts;
    double floats = 0;
    for (int i = 0; i < WORK_TREE; i++)
        floats += f->work[i].weight_bytes;
    if (f->code_bytes < floats || f->code_bytes <= 0 || f->code_bytes * 8 < f->weight_bytes)
        return false;
    reason(s, tool_printf("%.0f %% of what its products read as weights are codes of integers "
                          "already", 100 * f->code_bytes / (f->code_bytes + floats)));
    return true;
}

/* Are they half of its weights or more? */
static bool mostly(suggestion *s, double bytes, const char *why)
{
    const double all = s->facts.weight_bytes;
    if (bytes * 2 < all || bytes <= 0)
        return false;
    reason(s, tool_printf("%.0f %% of its weights are %s", 100 * bytes / all, why));
    return true;
}

static bool is_half(suggestion *s)
{
    return mostly(s, s->facts.half_bytes,
                  "of 16 bits: quantize the float model that it was made of");
}

static bool is_double(suggestion *s)
{
    return mostly(s, s->facts.double_bytes,
                  "doubles: codes are made of float alone, so export it in float");
}

static bool has_no_product(suggestion *s)
{
    const facts *f = &s->facts;
    if (all_nodes(f) > 0)
        return false;
    reason(s, f->work[WORK_TREE].nodes > 0
                  ? tool_printf("trees compare, they don't multiply: codes gain nothing")
                  : tool_printf("no convolution, matrix product or recurrent layer: nothing that "
                                "integers would make faster"));
    return true;
}

/* Measured on a Xeon with one thread, as static: convolutions of 0.3 and 0.8 million take 0.5 to
 * 0.8 of float's time with VNNI or AMX, 0.7 to 1 with AVX2; matrices of 0.02 million 0.8 to 2. On a
 * Zen 3 193 products of 767 each take 2.5 times as long. */
static bool is_tiny(suggestion *s)
{
    enum { TINY_MACS = 100000, TINY_EACH = 10000, TINY_BYTES = 1 << 20,
           TINY_MATRICES = 1 << 16 };
    const facts *f = &s->facts;
    double macs = all_macs(f);
    if (f->open && macs > 0 && share(f, WORK_CONV) < 0.5 && f->weight_bytes < TINY_MATRICES) {
        reason(s, tool_printf("tiny: %s of weights, which codes with their scales don't make "
                              "smaller or faster", text_bytes(f->weight_bytes)));
        return true;
    }
    if (f->open || macs <= 0 || f->weight_bytes >= TINY_BYTES)
        return false;
    if (macs >= TINY_MACS && macs >= TINY_EACH * all_nodes(f))
        return false;
    if (macs < TINY_MACS)
        reason(s, tool_printf("tiny: %s multiply-accumulates a run, %s of weights; codes cost as "
                              "much as they save below 100,000", text_count(macs),
                              text_bytes(f->weight_bytes)));
    else
        reason(s, tool_printf("tiny products: %s multiply-accumulates each, of %s in a run; codes "
                              "cost as much as they save below 10,000 each",
                              text_count(macs / all_nodes(f)), text_count(macs)));
    return true;
}

static bool is_decoder(suggestion *s)
{
    const facts *f = &s->facts;
    if (f->cache == NULL || f->work[WORK_MATMUL].nodes <= 0)
        return false;
    reason(s, tool_printf("a decoder (input '%s' is a cache): each word reads all of its weights, "
                          "so that memory bounds it; 4 bits a weight are an eighth", f->cache));
    return true;
}

static bool convolves(suggestion *s)
{
    const facts *f = &s->facts;
    if (f->work[WORK_CONV].nodes <= 0 || share(f, WORK_CONV) < 0.5)
        return false;
    reason(s, tool_printf("convolutions are %.0f %% of its multiply-accumulates: codes on both "
                          "sides, with ranges that samples tell", 100 * share(f, WORK_CONV)));
    return true;
}

static bool is_gru(suggestion *s)
{
    const facts *f = &s->facts;
    if (share(f, WORK_GRU) < 0.5)
        return false;
    reason(s, tool_printf("GRU and RNN layers are %.0f %% of its multiply-accumulates: "
                          "their weights become bytes, their state stays float",
                          100 * share(f, WORK_GRU)));
    return true;
}

static bool recurs(suggestion *s)
{
    const facts *f = &s->facts;
    if (share(f, WORK_LSTM) < 0.5)
        return false;
    reason(s, tool_printf("LSTM layers are %.0f %% of its multiply-accumulates: their state has no "
                          "fixed range, so it is found in each run", 100 * share(f, WORK_LSTM)));
    return true;
}

static bool has_products(suggestion *s)
{
    const facts *f = &s->facts;
    reason(s, tool_printf("matrix products are %.0f %% of its multiply-accumulates: what they "
                          "read has outliers that move with the input, so its range is found in "
                          "each run", 100 * share(f, WORK_MATMUL)));
    return true;
}

static const struct {
    bool (*holds)(suggestion *s);
    const char *verb, *options;
} rules[] = {
    {computes_on_codes, NULL, ""},
    {is_half, NULL, ""},
    {is_double, NULL, ""},
    {has_no_product, NULL, ""},
    {is_tiny, NULL, ""},
    {is_decoder, "weights", "--bits 4"},
    {convolves, "static", ""},
    {is_gru, "static", ""},
    {recurs, "dynamic", ""},
    {has_products, "dynamic", ""},
};

static void add_costs(suggestion *s)
{
    const facts *f = &s->facts;
    double bytes = f->weight_bytes;
    if (bytes <= 0)
        return;
    reason(s, !strcmp(s->options, "--bits 4")
                  ? tool_printf("%s of weights become about %s: 4.5 bits each with the scales of "
                                "their blocks", text_bytes(bytes), text_bytes(bytes * 4.5 / 32))
                  : tool_printf("%s of weights become about %s", text_bytes(bytes),
                                text_bytes(bytes / 4)));
    if (f->open)
        reason(s, tool_printf("inputs have open sizes: work is compared for sizes of one"));
}

int suggest(ort_model *model, suggestion *s)
{
    *s = (suggestion){.options = ""};
    int status = take_costs(&s->facts, model);
    if (status == 0)
        status = take_weights(&s->facts, model);
    if (status == 0)
        status = take_cache(&s->facts, model);
    if (status != 0)
        return status;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].holds(s)) {
            s->verb = rules[i].verb;
            s->options = rules[i].options;
            break;
        }
    if (s->verb)
        add_costs(s);
    if (s->verb && !strcmp(s->verb, "static") && s->facts.fused > 0)
        reason(s, tool_printf("%.0f of its products were fused by an optimizer, which static "
                              "refuses: quantize the model before that (ort-optimize --level 1, "
                              "then quantize, then ort-optimize)", s->facts.fused));
    return 0;
}

void suggestion_release(suggestion *s)
{
    free(s->facts.cache);
    string_list_release(&s->reasons);
}
