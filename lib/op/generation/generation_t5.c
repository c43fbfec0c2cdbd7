/* generation_t5.c - how an encoder and a decoder like those of T5 or Whisper are fed
 * (generation.h). The encoder sees the prompt once; sequences begin with decoder_start_token_id. E:
 * length of the prompt.
 *
 * decoder  input_ids [rows, 1] (or [rows, length], all tokens so far, when it doesn't declare 1),
 *          encoder_attention_mask [rows, E], encoder_hidden_states (left out by some), then per
 *          layer its own keys and values [rows, heads, length - 1, size], then per layer the keys
 *          and values of the encoder [rows, heads, E, size]
 *          -> logits, own keys and values per layer (in Whisper, then, per layer, scores of its
 *          attention to the sound [rows, heads, 1, E], with decoder_output_cross_qk)
 * encoder  encoder_input_ids, encoder_attention_mask [batch, E] -> the encoder's keys and values
 *      or  these and decoder_input_ids [batch, 1] -> logits of the first step, hidden states, own
 *          keys and values, the encoder's keys and values
 *
 * Whisper has no mask, and its encoder takes encoder_input_ids [batch, features, frames] (sound)
 * and decoder_input_ids [batch, prompt]: it makes the first step.
 */
#include <stdlib.h>

#include "op/generation/generation.h"

enum { BODY_IDS, BODY_MASK }; /* hidden states follow, in Whisper in place of the mask */
enum { PAST_RANK = 4 };

static int first_past(const ort_generation *g)
{
    return g->in_count - 2 * g->layers -
           ort_generation_shared_count(g->call->node->bodies[g->body]);
}

static int hidden_slot(const ort_generation *g)
{
    return g->whisper ? 1 : 2;
}

/* Sequences begin with decoder_input_ids, or one start token. */
static ort_status begin(ort_generation *g, ort_value **slot, ort_error *err)
{
    int64_t start = g->attrs->start;
    if (start < 0 && !g->begin)
        return ort_call_fail(g->call, err, "a model with encoder needs decoder_start_token_id");
    if (slot)
        ORT_TRY(ort_generation_ids(g->batch, g->prompt, slot, err));
    for (int64_t i = 0; i < g->rows * g->prompt; i++) {
        int64_t row = i / g->prompt, t = i % g->prompt, at = row / g->beams * g->prompt + t;
        int32_t id = g->begin ? ((const int32_t *)g->begin->data)[at] : (int32_t)start;
        g->ids[row * g->max + t] = id;
        if (slot)
            ort_generation_data(*slot)[at] = id;
    }
    return ORT_OK;
}

/* Padding at the left is masked; padding behind a token counts, as it may be the end. */
static ort_status encoder_inputs(ort_generation *g, ort_value **in, bool starts, ort_error *err)
{
    const ort_tensor *prompt = ort_call_in(g->call, 0);
    const int32_t *ids = prompt->data;
    int64_t length = prompt->shape.dim[1];
    ORT_TRY(ort_generation_ids(g->batch, length, &in[0], err));
    ORT_TRY(ort_generation_ids(g->batch, length, &in[1], err));
    for (int64_t b = 0; b < g->batch; b++) {
        bool begun = false;
        for (int64_t at = b * length; at < (b + 1) * length; at++) {
            begun = begun || ids[at] != g->attrs->pad;
            ort_generation_data(in[0])[at] = ids[at];
            ort_generation_data(in[1])[at] =
                g->mask ? ((const int32_t *)g->mask->data)[at] : begun;
        }
    }
    return begin(g, starts ? &in[2] : NULL, err);
}

/* Each value of a prompt for all of its beams. */
static ort_status spread(ort_generation *g, const ort_value *value, int slot, ort_error *err)
{
    if (value->tensor.shape.rank < 1 || value->tensor.shape.dim[0] != g->batch)
        return ort_call_fail(g->call, err, "an output of its encoder doesn't begin with the batch "
                             "of %lld", (long long)g->batch);
    return ort_generation_pick(value, 0, NULL, g->rows, g->beams, &g->in[slot], err);
}

static ort_status next_ids(ort_generation *g, ort_error *err)
{
    const ort_graph *body = g->call->node->bodies[g->body];
    const ort_type *type = &ort_graph_value_at(body, body->inputs.data[BODY_IDS])->fact.type;
    bool one = type->rank == 2 && ort_dim_known(type->dim[1]) && type->dim[1].size == 1;
    int64_t count = one ? 1 : g->length;
    ORT_TRY(ort_generation_ids(g->rows, count, &g->in[BODY_IDS], err));
    for (int64_t row = 0; row < g->rows; row++)
        for (int64_t t = 0; t < count; t++)
            ort_generation_data(g->in[BODY_IDS])[row * count + t] =
                g->ids[row * g->max + g->length - count + t];
    return ORT_OK;
}

/* The encoder gives its keys and values only; the decoder makes the first step too. */
static ort_status start_cross(ort_generation *g, ort_value **encoded, ort_error *err)
{
    for (int i = 0; i < g->layers; i++) {
        ORT_TRY(ort_generation_empty(g, first_past(g) + i, PAST_RANK, &g->in[first_past(g) + i],
                                     err));
        ORT_TRY(spread(g, encoded[i], first_past(g) + g->layers + i, err));
    }
    ORT_TRY(next_ids(g, err));
    ORT_TRY(ort_generation_feed_shared(g, 0, err));
    return ort_generation_call(g, g->body, g->in_count, g->out, g->out_count, err);
}

/* The encoder made the first step: its logits are those of the prompt's only row. */
static ort_status start_whole(ort_generation *g, ort_value **encoded, ort_error *err)
{
    for (int i = 0; i < 2 * g->layers; i++) {
        ORT_TRY(spread(g, encoded[2 + i], first_past(g) + i, err));
        if (i < g->layers)
            ORT_TRY(ort_generation_grow(g, &g->in[first_past(g) + i], err));
    }
    if (first_past(g) > hidden_slot(g))
        ORT_TRY(spread(g, encoded[1], hidden_slot(g), err));
    return ort_flow_keep(encoded[0], &g->out[0], err);
}

static ort_status encode(ort_generation *g, ort_value **in, ort_value **out, ort_error *err)
{
    const ort_graph *encoder = g->call->node->bodies[g->first_body];
    bool whole = g->whisper || encoder->inputs.count == 3;
    if (!whole && first_past(g) > hidden_slot(g))
        return ort_call_fail(g->call, err, "its decoder takes encoder_hidden_states, which its "
                             "encoder doesn't give");
    if (g->whisper) {
        ORT_TRY(ort_flow_keep(g->call->in[0], &in[0], err));
        ORT_TRY(begin(g, &in[1], err));
    } else {
        ORT_TRY(encoder_inputs(g, in, whole, err));
    }
    ORT_TRY(ort_call_body(g->call, g->first_body, in, (int)encoder->inputs.count, out,
                          (int)encoder->outputs.count, err));
    if (!g->whisper)
        ORT_TRY(spread(g, in[1], BODY_MASK, err));
    return whole ? start_whole(g, out, err) : start_cross(g, out, err);
}

static ort_status t5_start(ort_generation *g, ort_error *err)
{
    const ort_graph *encoder = g->call->node->bodies[g->first_body];
    ort_value *in[3] = {NULL};
    ort_value **out = calloc(encoder->outputs.count, sizeof(ort_value *));
    if (!out)
        return ort_error_memory(err, encoder->outputs.count * sizeof(ort_value *));
    ort_status status = encode(g, in, out, err);
    for (int i = 0; i < 3; i++)
        ort_value_free(in[i]);
    for (size_t i = 0; i < encoder->outputs.count; i++)
        ort_value_free(out[i]);
    free(out);
    return status;
}

/* The states lie in the decoder's outputs after its own step, in its inputs after the encoder's. */
static ort_status t5_next(ort_generation *g, ort_error *err)
{
    for (int i = 0; i < g->layers; i++) {
        ort_value **slot = &g->in[first_past(g) + i];
        const ort_value *state = g->out[1 + i] ? g->out[1 + i] : *slot;
        if (state->tensor.shape.rank != PAST_RANK || state->tensor.shape.dim[0] != g->rows)
            return ort_call_fail(g->call, err, "a present state of its decoder doesn't have the "
                                 "shape [batch, heads, length, size]");
        ORT_TRY(ort_generation_pick(state, 0, g->from, g->rows, 1, slot, err));
    }
    ORT_TRY(next_ids(g, err));
    ORT_TRY(ort_generation_feed_shared(g, g->length - 1, err));
    return ort_generation_call(g, g->body, g->in_count, g->out, g->out_count, err);
}

const ort_generation_form ort_generation_t5 = {t5_start, t5_next};
