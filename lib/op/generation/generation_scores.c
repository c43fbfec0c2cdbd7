/* generation_scores.c - the scores of the next token of every row: logits or logarithms of
 * probabilities, with the penalties, masks and rules that an operator of generation.h has.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "op/generation/generation.h"

static void allow(const ort_generation *g, float *scores, const ort_tensor *mask, int64_t first)
{
    for (int64_t v = 0; mask && v < g->vocab; v++)
        if (((const int32_t *)mask->data)[first + v] == 0)
            scores[v] = -FLT_MAX;
}

/* Tokens that were there before become less likely, once each. */
static void punish_repeats(const ort_generation *g, float *scores, const int32_t *ids)
{
    ort_pace pace = {0};
    for (int64_t t = 0; g->penalty != 1.0f && t < g->length; t++) {
        bool before = ids[t] < 0 || ids[t] >= g->vocab;
        if (ort_pace_over(&pace, (uint64_t)t))
            return;
        for (int64_t u = 0; u < t && !before; u++)
            before = ids[u] == ids[t];
        if (!before)
            scores[ids[t]] *= scores[ids[t]] < 0 ? g->penalty : 1.0f / g->penalty;
    }
}

/* Tokens that would repeat a run of `order` tokens are out. */
static void forbid_runs(const ort_generation *g, float *scores, const int32_t *ids)
{
    const int32_t *tail = ids + g->length - (g->attrs->order - 1);
    ort_pace pace = {0};
    for (int64_t t = 0; g->attrs->order > 0 && t + g->attrs->order <= g->length; t++) {
        if (ort_pace_over(&pace, (uint64_t)g->attrs->order))
            return;
        int32_t next = ids[t + g->attrs->order - 1];
        if (next >= 0 && next < g->vocab &&
            !memcmp(ids + t, tail, (size_t)(g->attrs->order - 1) * sizeof *ids))
            scores[next] = -FLT_MAX;
    }
}

static void log_softmax(float *scores, int64_t count)
{
    float most = scores[0];
    double sum = 0;
    for (int64_t v = 1; v < count; v++)
        most = fmaxf(most, scores[v]);
    for (int64_t v = 0; v < count; v++)
        sum += exp((double)scores[v] - most);
    for (int64_t v = 0; v < count; v++)
        scores[v] = (float)((double)scores[v] - most - log(sum));
}

static void fill_row(const ort_generation *g, int64_t row)
{
    const ort_tensor *logits = &g->out[0]->tensor;
    int64_t tokens = logits->shape.dim[1], width = logits->shape.dim[2];
    int64_t given = logits->shape.dim[0] == g->rows ? row : row / g->beams;
    float *scores = g->scores + row * g->vocab;
    ort_tensor_to_f32(logits, (given * tokens + tokens - 1) * width, g->vocab, scores);
    if (g->log)
        log_softmax(scores, g->vocab);
}

static void score_row(const ort_generation *g, int64_t row)
{
    const int32_t *ids = g->ids + row * g->max;
    float *scores = g->scores + row * g->vocab;
    fill_row(g, row);
    punish_repeats(g, scores, ids);
    forbid_runs(g, scores, ids);
    allow(g, scores, g->vocab_mask, 0);
    int64_t forced = g->rules.forced ? g->rules.forced->shape.dim[1] : 0;
    if (g->length - g->prompt <= forced)
        allow(g, scores, g->prefix_mask, row / g->beams * g->vocab);
    if (g->length < g->min && g->attrs->eos >= 0 && g->attrs->eos < g->vocab)
        scores[g->attrs->eos] = -FLT_MAX;
    for (int64_t v = 0; g->temperature != 1.0f && v < g->vocab; v++)
        scores[v] /= g->temperature;
    /* By its documentation. onnxruntime takes all of presence_mask off token 0 of row 0. */
    for (int64_t v = 0; g->presence && v < g->vocab; v++)
        scores[v] -= (float)((const int32_t *)g->presence->data)[row * g->vocab + v] *
                     g->attrs->presence_penalty;
    if (g->rules.timestamps)
        ort_generation_time_rules(g, ids, scores);
    if (g->length - g->prompt < forced)
        ort_generation_force(g, row, scores);
}

static bool fits(const ort_tensor *mask, int64_t count)
{
    return !mask || ort_tensor_count(mask) == count;
}

static ort_status check_logits(ort_generation *g, ort_error *err)
{
    const ort_shape *l = &g->out[0]->tensor.shape;
    int64_t given = g->attrs->vocab_size;
    if (l->rank != 3 || (l->dim[0] != g->rows && l->dim[0] != g->batch) || l->dim[1] < 1 ||
        l->dim[2] < 1 || given > l->dim[2])
        return ort_call_fail(g->call, err, "the logits of its decoder don't have the shape [batch, "
                             "tokens, vocabulary]");
    int64_t vocab = given > 0 ? given : l->dim[2];
    if (g->scores)
        return vocab == g->vocab ? ORT_OK :
               ort_call_fail(g->call, err, "the vocabulary changes from %lld to %lld tokens",
                             (long long)g->vocab, (long long)vocab);
    g->vocab = vocab;
    if (!fits(g->vocab_mask, vocab) || !fits(g->prefix_mask, g->batch * vocab) ||
        !fits(g->presence, g->rows * vocab))
        return ort_call_fail(g->call, err, "vocab_mask, prefix_vocab_mask or presence_mask doesn't "
                             "fit %lld tokens", (long long)vocab);
    if (g->rules.timestamps && g->attrs->first_timestamp >= vocab)
        return ort_call_fail(g->call, err, "beginning_timestamp_token_id %lld is none of %lld "
                             "tokens", (long long)g->attrs->first_timestamp, (long long)vocab);
    size_t bytes;
    if (!ort_mul_size((size_t)g->rows, (size_t)vocab, &bytes) ||
        !ort_mul_size(bytes, sizeof *g->scores, &bytes))
        return ort_error_memory(err, SIZE_MAX);
    g->scores = ort_work_malloc(bytes);
    return g->scores ? ORT_OK : ort_error_memory(err, bytes);
}

ort_status ort_generation_probability(ort_generation *g, int64_t row, int64_t token, float *log_p,
                                      ort_error *err)
{
    ORT_TRY(check_logits(g, err));
    if (token < 0 || token >= g->vocab)
        return ort_call_fail(g->call, err, "token %lld is none of %lld", (long long)token,
                             (long long)g->vocab);
    fill_row(g, row);
    *log_p = g->scores[row * g->vocab + token];
    return ORT_OK;
}

ort_status ort_generation_scores(ort_generation *g, ort_error *err)
{
    ORT_TRY(check_logits(g, err));
    for (int64_t row = 0; row < g->rows; row++)
        score_row(g, row);
    return ORT_OK;
}
