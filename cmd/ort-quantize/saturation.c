/* saturation.c - products whose sums another processor may saturate. Without instructions that add
 * four products of bytes exactly (VNNI), runtimes multiply uint8 by int8 in pairs whose sum has to
 * fit 16 bits (VPMADDUBSW, Intel SDM vol. 2B): 255 (a + b) does not where |a + b| > 128. Here every
 * tier widens before it adds.
 */
#include <stdlib.h>
#include <string.h>

#include "common/look.h"
#include "evaluation.h"

static const char *input_of(json_object *node, size_t index)
{
    json_object *inputs = member(node, "inputs");
    return index < length_of(inputs)
               ? json_object_get_string(json_object_array_get_idx(inputs, index))
               : "";
}

/* Is input `index` of a type that begins so? */
static bool takes(json_object *node, size_t index, const char *type)
{
    json_object *types = member(node, "input_types");
    const char *text = index < length_of(types)
                           ? json_object_get_string(json_object_array_get_idx(types, index))
                           : NULL;
    return text != NULL && !strncmp(text, type, strlen(type));
}

/* The DequantizeLinear that gives a value; NULL. */
static json_object *dequantizer(const evaluation *e, const char *name)
{
    for (size_t i = 0; i < length_of(e->nodes); i++) {
        json_object *node = json_object_array_get_idx(e->nodes, i);
        json_object *outputs = member(node, "outputs");
        if (!strcmp(text_of(node, "op_type"), "DequantizeLinear") && length_of(outputs) == 1 &&
            !strcmp(json_object_get_string(json_object_array_get_idx(outputs, 0)), name))
            return node;
    }
    return NULL;
}

/* The axis of a weight along which products are added up. */
static int sum_axis(json_object *node, int rank)
{
    const char *op = text_of(node, "op_type");
    json_object *transposed = member(member(node, "attributes"), "transB");
    if (strstr(op, "Conv"))
        return 1;
    if (transposed && json_object_get_int(transposed))
        return rank - 1;
    return rank - 2;
}

typedef struct pair_count {
    int64_t pairs, beyond;
} pair_count;

static void count_pair(pair_count *count, int8_t a, int8_t b)
{
    count->pairs++;
    count->beyond += abs(a + b) > 128;
}

/* Filters of an odd number of channels are added up tap by tap where these follow each other: pairs
 * that lie in two taps. */
static void count_turned(const ort_value *weight, pair_count *count)
{
    const int64_t *dims = ort_value_dims(weight);
    const int8_t *w = ort_value_data((ort_value *)weight);
    int64_t taps = 1;
    for (int i = 2; i < ort_value_rank(weight); i++)
        taps *= dims[i];
    const int64_t n = dims[1] * taps;
    for (int64_t k = 0; k < dims[0] * n; k++) {
        const int64_t at = k % n, next = at + 1;
        const int8_t *filter = w + (k - at);
        if (at % 2 == 0 && next < n && at / dims[1] != next / dims[1])
            count_pair(count, filter[at % dims[1] * taps + at / dims[1]],
                       filter[next % dims[1] * taps + next / dims[1]]);
    }
}

/* Share of the pairs beside each other on that axis that don't fit. */
static double share_beyond(const ort_value *weight, int axis, bool turns)
{
    const int64_t *dims = ort_value_dims(weight);
    const int8_t *w = ort_value_data((ort_value *)weight);
    int64_t outer = 1, inner = 1;
    pair_count count = {0, 0};
    for (int i = 0; i < axis; i++)
        outer *= dims[i];
    for (int i = axis + 1; i < ort_value_rank(weight); i++)
        inner *= dims[i];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k + 1 < dims[axis]; k += 2)
            for (int64_t i = 0; i < inner; i++) {
                const int8_t *at = w + (o * dims[axis] + k) * inner + i;
                count_pair(&count, at[0], at[inner]);
            }
    if (turns && dims[axis] % 2)
        count_turned(weight, &count);
    return count.pairs > 0 ? (double)count.beyond / (double)count.pairs : 0;
}

/* Name of the int8 weight that a node multiplies uint8 codes by; NULL for other nodes. */
static const char *paired_weight(const evaluation *e, json_object *node)
{
    const char *op = text_of(node, "op_type");
    bool linear = !strncmp(op, "QLinearConv", 11) || !strncmp(op, "QLinearMatMul", 13);
    bool integer = !strcmp(op, "ConvInteger") || !strcmp(op, "MatMulInteger");
    if (linear || integer) {
        size_t at = linear ? 3 : 1;
        return takes(node, 0, "uint8") && takes(node, at, "int8") ? input_of(node, at) : NULL;
    }
    if (strcmp(op, "Conv") && strcmp(op, "MatMul") && strcmp(op, "Gemm"))
        return NULL;
    json_object *x = dequantizer(e, input_of(node, 0)), *w = dequantizer(e, input_of(node, 1));
    return x && w && takes(x, 0, "uint8") && takes(w, 0, "int8") ? input_of(w, 0) : NULL;
}

/* Its products are added one by one. */
static bool is_depthwise(json_object *node, const ort_value *weight)
{
    json_object *group = member(member(node, "attributes"), "group");
    return group && json_object_get_int64(group) == ort_value_dims(weight)[0] &&
           ort_value_dims(weight)[1] == 1;
}

bool saturation_is_old(const evaluation *e, json_object *node)
{
    ort_value *weight = NULL;
    const char *name = paired_weight(e, node);
    bool old = name != NULL &&
               ort_model_constant(e->sides[FLOAT_SIDE].model, name, &weight, NULL) == ORT_OK &&
               ort_value_dtype(weight) == ORT_DTYPE_INT8;
    ort_value_free(weight);
    return old;
}

double saturation_share(const evaluation *e, json_object *node)
{
    ort_value *weight = NULL;
    const char *name = paired_weight(e, node);
    double share = 0;
    if (name == NULL ||
        ort_model_constant(e->sides[INTEGER_SIDE].model, name, &weight, NULL) != ORT_OK)
        return 0;
    int rank = ort_value_rank(weight), axis = sum_axis(node, rank);
    if (rank >= 2 && axis >= 0 && ort_value_dtype(weight) == ORT_DTYPE_INT8)
        share = share_beyond(weight, axis, strstr(text_of(node, "op_type"), "Conv") != NULL &&
                                               !is_depthwise(node, weight));
    ort_value_free(weight);
    return share;
}
