/* generation_gpt.c - how a decoder like GPT-2 is fed (generation.h): the prompt at once, with empty
 * past states, then one token after another, with the states of the rows that go on.
 */
#include <string.h>

#include "op/generation/generation.h"

enum { BODY_IDS, BODY_POSITIONS, BODY_MASK, BODY_PAST };
enum { PAST_RANK = 5, PAST_ROWS = 1 }; /* [2, rows, heads, length, size] */

/* The prompt: padding has position 0 and is masked, other tokens count up. */
static ort_status prompt_inputs(ort_generation *g, ort_error *err)
{
    const int32_t *ids = ort_call_in(g->call, 0)->data;
    const int32_t *mask = g->mask ? g->mask->data : NULL;
    for (int i = 0; i < BODY_PAST; i++)
        ORT_TRY(ort_generation_ids(g->rows, g->prompt, &g->in[i], err));
    for (int64_t row = 0; row < g->rows; row++) {
        g->positions[row] = 0;
        for (int64_t t = 0; t < g->prompt; t++) {
            int64_t at = row * g->prompt + t, given = row / g->beams * g->prompt + t;
            bool counts = ids[given] != g->attrs->pad;
            ort_generation_data(g->in[BODY_IDS])[at] = ids[given];
            ort_generation_data(g->in[BODY_POSITIONS])[at] = counts ? g->positions[row] : 0;
            ort_generation_data(g->in[BODY_MASK])[at] = mask ? mask[given] : counts;
            g->positions[row] += counts;
            g->ids[row * g->max + t] = ids[given];
        }
    }
    return ORT_OK;
}

static ort_status gpt_start(ort_generation *g, ort_error *err)
{
    ORT_TRY(prompt_inputs(g, err));
    for (int i = BODY_PAST; i < BODY_PAST + g->layers; i++)
        ORT_TRY(ort_generation_empty(g, i, PAST_RANK, &g->in[i], err));
    ORT_TRY(ort_generation_feed_shared(g, 0, err));
    return ort_generation_call(g, g->first_body >= 0 ? g->first_body : g->body, g->in_count,
                               g->out, g->out_count, err);
}

/* The mask grows by the new token. Rows of one prompt have the same mask and positions. */
static ort_status grow_mask(ort_generation *g, ort_error *err)
{
    ort_value *mask = NULL;
    int64_t old = g->length - 1;
    ORT_TRY(ort_generation_ids(g->rows, g->length, &mask, err));
    for (int64_t row = 0; row < g->rows; row++) {
        int32_t *to = ort_generation_data(mask) + row * g->length;
        memcpy(to, ort_generation_data(g->in[BODY_MASK]) + row * old,
               (size_t)old * sizeof(int32_t));
        to[old] = 1;
    }
    ort_value_free(g->in[BODY_MASK]);
    g->in[BODY_MASK] = mask;
    return ORT_OK;
}

/* The present state becomes the past: as it is where every row goes on itself. */
static ort_status keep_state(ort_generation *g, ort_value *state, ort_value **slot, ort_error *err)
{
    if (state->tensor.shape.rank != PAST_RANK || state->tensor.shape.dim[PAST_ROWS] != g->rows)
        return ort_call_fail(g->call, err, "a present state of its decoder doesn't have the shape "
                             "[2, batch, heads, length, size]");
    if (g->beams > 1)
        return ort_generation_pick(state, PAST_ROWS, g->from, g->rows, 1, slot, err);
    ort_value *kept = NULL;
    ORT_TRY(ort_flow_keep(state, &kept, err));
    ort_value_free(*slot);
    *slot = kept;
    return ORT_OK;
}

static ort_status gpt_next(ort_generation *g, ort_error *err)
{
    ORT_TRY(grow_mask(g, err));
    ORT_TRY(ort_generation_ids(g->rows, 1, &g->in[BODY_IDS], err));
    ORT_TRY(ort_generation_ids(g->rows, 1, &g->in[BODY_POSITIONS], err));
    for (int64_t row = 0; row < g->rows; row++) {
        ort_generation_data(g->in[BODY_IDS])[row] = g->ids[row * g->max + g->length - 1];
        ort_generation_data(g->in[BODY_POSITIONS])[row] = g->positions[row]++;
    }
    for (int i = 0; i < g->layers; i++)
        ORT_TRY(keep_state(g, g->out[1 + i], &g->in[BODY_PAST + i], err));
    ORT_TRY(ort_generation_feed_shared(g, g->length - 1, err));
    return ort_generation_call(g, g->body, g->in_count, g->out, g->out_count, err);
}

const ort_generation_form ort_generation_gpt = {gpt_start, gpt_next};
