/* bias_correction.c - means of float results once; then, for a few products at a time, those of
 * results on codes, and other codes of their biases. Only what they need is run: half of the model
 * on average.
 */
#include "quantize/effort/bias_correction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "quantize/place/place.h"

enum {
    MOST_SESSIONS = 64,           /* of more products several are corrected at a time */
    MOST_OUTPUTS = 4,             /* more are seen one after the other: in memory one by one */
    LEAST_ROWS = 4,
    SAMPLES_BYTES = 4 << 20,
};

/* ---- products whose biases take corrections */

typedef struct biased {
    const char *result; /* the value that the product gives */
    const ort_tensor *scales;
    ort_tensor codes; /* of the bias: changed in place */
    int axis;         /* of channels in the result; -1: the last */
    int64_t channels;
    double *means[2]; /* [samples][channels]: in float, on codes */
} biased;

/* The DequantizeLinear of int32 codes that gives the bias, or NULL. */
static const ort_node *bias_codes(const ort_graph *graph, const ort_node *node, int slot)
{
    const ort_node *from = slot < 0 || node->input_count <= slot
                               ? NULL : ort_edit_producer(graph, node->inputs[slot]);
    if (!from || !ort_edit_is(from, ONNX, "DequantizeLinear") ||
        graph->values.data[from->outputs[0]]->use_count != 1 ||
        graph->values.data[from->inputs[0]]->use_count != 1)
        return NULL;
    const ort_tensor *codes = graph->values.data[from->inputs[0]]->fact.value;
    return codes && codes->data && codes->dtype == ORT_DTYPE_INT32 &&
                   graph->values.data[from->inputs[1]]->fact.value
               ? from
               : NULL;
}

bool ort_bias_takes(const ort_graph *graph, const ort_node *node, int slot)
{
    return bias_codes(graph, node, slot) != NULL;
}

static bool biased_of(const ort_graph *floats, const ort_graph *graph, ort_id id, biased *b)
{
    const ort_node *was = floats->nodes.data[id], *node = graph->nodes.data[id];
    ort_place_product product;
    if (was->removed || node->removed || strcmp(was->op_type, node->op_type) ||
        !ort_place_is_product(floats, was, &product))
        return false;
    const ort_node *from = bias_codes(graph, node, product.bias);
    if (!from || bias_codes(floats, was, product.bias)) /* codes of the file stay as they are */
        return false;
    *b = (biased){.result = graph->values.data[node->outputs[0]]->name,
                  .scales = graph->values.data[from->inputs[1]]->fact.value,
                  .codes = *graph->values.data[from->inputs[0]]->fact.value,
                  .axis = ort_edit_is_any(node, "Conv|ConvTranspose") ? 1 : -1};
    b->channels = ort_tensor_count(&b->codes);
    return b->channels > 0 && ort_edit_producer(floats, was->outputs[0]) == was &&
           !strcmp(floats->values.data[was->outputs[0]]->name, b->result);
}

/* ---- means */

typedef struct reading {
    biased *list;
    size_t count;
    int at, side; /* which sample, of which model */
} reading;

static void add_means(const biased *b, const ort_tensor *t, double *means)
{
    const int rank = t->shape.rank, axis = b->axis < 0 ? rank - 1 : b->axis;
    int64_t inner = 1, outer = 1;
    const float *x = t->data;
    if (axis < 0 || axis >= rank || t->shape.dim[axis] != b->channels)
        return;
    for (int i = 0; i < rank; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : t->shape.dim[i];
    const double rows = (double)(inner * outer);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t c = 0; c < b->channels; c++, x += inner) {
            double sum = 0;
            for (int64_t i = 0; i < inner; i++)
                sum += (double)x[i];
            means[c] += sum / rows;
        }
}

static void see(void *arg, const char *name, const ort_value *value)
{
    const reading *r = arg;
    if (value->kind != ORT_KIND_TENSOR || value->tensor.dtype != ORT_DTYPE_FLOAT ||
        ort_tensor_count(&value->tensor) == 0)
        return;
    for (size_t i = 0; i < r->count; i++)
        if (!strcmp(r->list[i].result, name))
            add_means(&r->list[i], &value->tensor,
                      r->list[i].means[r->side] + r->at * r->list[i].channels);
}

static ort_status read_means(const ort_refining *refining, const ort_model *model, int most,
                             reading *r, ort_error *err)
{
    const ort_kept_samples *samples = refining->samples;
    ort_session_options options = ORT_SESSION_OPTIONS_INIT;
    ort_session *session = NULL;
    const char **watched = calloc(r->count + 1, sizeof *watched);
    if (!watched)
        return ort_error_memory(err, r->count * sizeof *watched);
    for (size_t i = 0; i < r->count; i++)
        watched[i] = r->list[i].result;
    if (r->count > MOST_OUTPUTS)
        options.watched = watched;
    else
        options.extra_outputs = watched;
    ort_status status = ort_exec_session_new(refining->env, model, &options, &session, err);
    for (r->at = 0; r->at < most && status == ORT_OK; r->at++) {
        status = options.watched
                     ? ort_kept_run(samples, r->at, session, see, r, err)
                     : ort_kept_outputs(samples, r->at, session, watched, r->count, see, r, err);
        ort_shares_add(refining->shares, 1);
    }
    ort_exec_session_release(session);
    free(watched);
    return status;
}

/* ---- corrections */

/* The mean over samples of what codes add to channel c, less what may be chance: of a mean m with
 * variance v that m^2 doesn't exceed nothing remains (Stein's estimator for one number). */
static double excess(const biased *b, int64_t c, int samples)
{
    double mean = 0, square = 0;
    for (int k = 0; k < samples; k++) {
        const double d = b->means[1][k * b->channels + c] - b->means[0][k * b->channels + c];
        mean += d / samples;
        square += d * d / samples;
    }
    const double chance = samples > 1 ? (square - mean * mean) / (samples - 1) : 0;
    const double kept = mean * mean > chance ? 1 - chance / (mean * mean) : 0;
    return isfinite(mean) && isfinite(kept) ? mean * kept : 0;
}

static void correct(biased *b, int samples)
{
    const bool each = ort_tensor_count(b->scales) > 1;
    for (int64_t c = 0; c < b->channels; c++) {
        const double step = ort_tensor_get_f64(b->scales, each ? c : 0);
        const double code = ort_tensor_get_f64(&b->codes, c) -
                            nearbyint(excess(b, c, samples) / step);
        ort_tensor_set_f64(&b->codes, c, fmin(fmax(code, INT32_MIN), INT32_MAX));
    }
}

static ort_status begin(biased *list, size_t count, int samples, ort_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const size_t room = (size_t)(samples * list[i].channels);
        list[i].means[0] = calloc(2 * room + 1, sizeof *list[i].means[0]);
        if (!list[i].means[0])
            return ort_error_memory(err, 2 * room * sizeof *list[i].means[0]);
        list[i].means[1] = list[i].means[0] + room;
    }
    return ORT_OK;
}

static size_t find(const ort_graph *floats, const ort_graph *codes, biased *list)
{
    const ort_node *node;
    size_t count = 0;
    ORT_EACH_NODE(floats, node)
        count += biased_of(floats, codes, node->id, &list[count]);
    return count;
}

ort_status ort_correct_biases(const ort_refining *refining, ort_model *codes, ort_error *err)
{
    const ort_graph *floats = refining->floats->graph;
    biased *list = calloc(floats->nodes.count + 1, sizeof *list);
    if (!list)
        return ort_error_memory(err, floats->nodes.count * sizeof *list);
    const int most = ort_kept_within(refining->samples, SAMPLES_BYTES, LEAST_ROWS);
    const size_t count = find(floats, codes->graph, list);
    const size_t group = (count + MOST_SESSIONS - 1) / MOST_SESSIONS;
    const size_t sessions = count > 0 ? 1 + (count + group - 1) / group : 0;
    ort_status status = begin(list, count, most, err);
    ort_shares_begin(refining->shares, "correcting biases", (double)sessions * most);
    if (status == ORT_OK && count > 0)
        status = read_means(refining, refining->floats, most, &(reading){list, count, 0, 0}, err);
    for (size_t from = 0; from < count && status == ORT_OK; from += group) {
        reading r = {list + from, count - from < group ? count - from : group, 0, 1};
        status = read_means(refining, codes, most, &r, err);
        for (size_t i = 0; i < r.count && status == ORT_OK; i++)
            correct(&r.list[i], most);
    }
    for (size_t i = 0; i < count; i++)
        free(list[i].means[0]);
    free(list);
    return status;
}
