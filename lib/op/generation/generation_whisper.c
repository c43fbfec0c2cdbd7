/* generation_whisper.c - rules on the next token of Whisper: where timestamps stand, and tokens
 * that are given.
 *
 * Tokens from first_timestamp on are times, which ascend and come in pairs around a text, the first
 * one alone. What a rule excludes gets the lowest float.
 */
#include <float.h>
#include <math.h>

#include "base/checked.h"
#include "op/generation/generation.h"

enum { FIRST_TIMES = 50 }; /* the first time is among so many behind the very first */

static void exclude(const ort_generation *g, float *scores, int64_t first, int64_t end)
{
    for (int64_t v = ort_max_i64(first, 0); v < ort_min_i64(end, g->vocab); v++)
        scores[v] = -FLT_MAX;
}

static void exclude_one(const ort_generation *g, float *scores, int64_t token)
{
    if (token >= 0 && token < g->vocab)
        scores[token] = -FLT_MAX;
}

static float highest(const float *scores, int64_t first, int64_t end)
{
    float most = -FLT_MAX;
    for (int64_t v = first; v < end; v++)
        most = fmaxf(most, scores[v]);
    return most;
}

/* When all times together are likelier than any word, a time comes. */
static void prefer_times(const ort_generation *g, float *scores)
{
    int64_t first = g->attrs->first_timestamp;
    float most = highest(scores, first, g->vocab), sum = 0;
    for (int64_t v = first; v < g->vocab; v++)
        if (scores[v] > -FLT_MAX)
            sum += expf(scores[v] - most);
    if (sum > 0 && logf(sum) + most > highest(scores, 0, first))
        exclude(g, scores, 0, first);
}

void ort_generation_time_rules(const ort_generation *g, const int32_t *ids, float *scores)
{
    const ort_generation_attrs *w = g->attrs;
    int64_t n = g->length, begin = 0, last_time = -1;
    while (begin < n && ids[begin++] < w->first_timestamp) /* up to the first time, or all */
        continue;
    for (int64_t t = 0; t < n; t++)
        last_time = ids[t] >= w->first_timestamp ? ids[t] : last_time;
    exclude_one(g, scores, w->no_timestamps);
    exclude_one(g, scores, w->start_of_lm);
    if (n > begin) {
        exclude_one(g, scores, w->start);
        exclude_one(g, scores, w->translate);
        exclude_one(g, scores, w->transcribe);
    }
    bool last = ids[n - 1] >= w->first_timestamp;
    bool before = n <= begin || ids[n - 2] >= w->first_timestamp;
    if (last && before)
        exclude(g, scores, w->first_timestamp, g->vocab);
    else if (last)
        exclude(g, scores, 0, g->attrs->eos);
    if (last_time >= 0) /* a time alone may come again, it ends its text at once */
        exclude(g, scores, w->first_timestamp, last_time + (last && !before ? 0 : 1));
    if (n == begin)
        exclude(g, scores, w->first_timestamp + FIRST_TIMES + 1, g->vocab);
    prefer_times(g, scores);
}

void ort_generation_force(const ort_generation *g, int64_t row, float *scores)
{
    const ort_tensor *forced = g->rules.forced;
    int64_t at = row / g->beams * forced->shape.dim[1] + g->length - g->prompt;
    int32_t token = ((const int32_t *)forced->data)[at];
    if (token < 0 || token >= g->vocab)
        return;
    exclude(g, scores, 0, g->vocab);
    scores[token] = 0;
}
