/* generation.c - the shared steps of the operators that write sequences (generation.h): what
 * they read, their memory, and rows that continue others.
 */
#include "op/generation/generation.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "op/number.h"

enum { IN_IDS, IN_MAX };
enum { GPT = 0, T5 = 1, WHISPER = 2 };

const ort_bind ort_generation_bind[] = {
    ORT_BIND_AS(ort_generation_attrs, model, "model_type"),
    ORT_BIND_AS(ort_generation_attrs, eos, "eos_token_id"),
    ORT_BIND_AS(ort_generation_attrs, pad, "pad_token_id"),
    ORT_BIND_AS(ort_generation_attrs, order, "no_repeat_ngram_size"),
    ORT_BIND(ort_generation_attrs, vocab_size),
    ORT_BIND(ort_generation_attrs, early_stopping, ORT_MAYBE),
    ORT_BIND_AS(ort_generation_attrs, start, "decoder_start_token_id"),
    ORT_BIND_AS(ort_generation_attrs, scores, "decoder_output_cross_qk", ORT_MAYBE),
    ORT_BIND(ort_generation_attrs, temperature, ORT_MAYBE),
    ORT_BIND(ort_generation_attrs, presence_penalty, ORT_MAYBE),
    ORT_BIND(ort_generation_attrs, top_p, ORT_MAYBE),
    ORT_BIND_AS(ort_generation_attrs, filter, "filter_value", ORT_MAYBE),
    ORT_BIND_AS(ort_generation_attrs, keep, "min_tokens_to_keep", ORT_MAYBE),
    ORT_BIND(ort_generation_attrs, custom, ORT_MAYBE),
    ORT_BIND_AS(ort_generation_attrs, translate, "translate_token_id", ORT_ELSE(-1)),
    ORT_BIND_AS(ort_generation_attrs, transcribe, "transcribe_token_id", ORT_ELSE(-1)),
    ORT_BIND_AS(ort_generation_attrs, start_of_lm, "start_of_lm_token_id", ORT_ELSE(-1)),
    ORT_BIND_AS(ort_generation_attrs, no_timestamps, "no_timestamps_token_id", ORT_ELSE(-1)),
    ORT_BIND_AS(ort_generation_attrs, first_timestamp, "beginning_timestamp_token_id",
                ORT_ELSE(-1)),
    ORT_BIND_AS(ort_generation_attrs, silence, "no_speech_token_id", ORT_ELSE(-1)), {0}};

/* ---- inference */

static ort_status infer_one(ort_infer *x, int body, ort_error *err)
{
    int in_count = (int)x->node->bodies[body]->inputs.count;
    int out_count = (int)x->node->bodies[body]->outputs.count;
    ort_fact *in = ort_arena_array(x->arena, (size_t)in_count, sizeof *in);
    ort_fact *out = ort_arena_array(x->arena, (size_t)out_count, sizeof *out);
    if (!in || !out)
        return ort_error_memory(err, (size_t)in_count * sizeof *in);
    for (int i = 0; i < in_count; i++)
        in[i].type.rank = -1; /* as the body declares them */
    return x->infer_body(x, body, in, in_count, out, out_count, err);
}

static bool like_gpt(const ort_graph *body)
{
    size_t own = body->inputs.count - (size_t)ort_generation_shared_count(body);
    return body->inputs.count >= 3 && body->outputs.count + 2 == own;
}

/* Own states of a decoder, which gives logits, these, and scores of each layer in some. */
static size_t own_states(const ort_graph *body, bool scores)
{
    size_t count = body->outputs.count - 1;
    return scores ? count / 3 * 2 : count;
}

/* [ids, mask, (hidden states), 2 own and 2 cross states per layer] -> [logits, 2 own per layer],
 * without the mask in Whisper, which may give scores of its attention to the sound, too. */
static bool like_t5(const ort_graph *body, bool whisper, bool scores)
{
    size_t states = own_states(body, scores), before = whisper ? 1 : 2;
    size_t inputs = body->inputs.count - (size_t)ort_generation_shared_count(body);
    return body->outputs.count >= 3 && (body->outputs.count - 1) % (scores ? 3 : 2) == 0 &&
           (inputs == before + 2 * states || inputs == before + 1 + 2 * states);
}

/* [ids, mask, start tokens] -> [logits, hidden states, 4 per layer], or
 * [ids, mask] -> [2 cross states per layer]; in Whisper [sound, start tokens] -> all */
static bool like_encoder(const ort_graph *encoder, const ort_graph *body, bool whisper,
                         bool scores)
{
    size_t own = own_states(body, scores);
    if (whisper)
        return encoder->inputs.count == 2 && encoder->outputs.count == 2 + 2 * own;
    return encoder->inputs.count == 3 ? encoder->outputs.count == 2 + 2 * own :
           encoder->inputs.count == 2 && encoder->outputs.count == own;
}

ort_status ort_generation_infer(ort_infer *x, ort_error *err)
{
    const char *bodies[] = {"decoder", "init_decoder", "encoder"};
    int body = ort_node_body(x->node, "decoder"), encoder = ort_node_body(x->node, "encoder");
    int64_t type = ort_node_attr_int(x->node, "model_type");
    bool gpt = type == GPT, whisper = type == WHISPER;
    bool scores = ort_node_attr_int(x->node, "decoder_output_cross_qk") != 0;
    ORT_TRY(ort_infer_need_rank(x, IN_IDS, whisper ? 3 : 2, err));
    if (gpt && (body < 0 || !like_gpt(x->node->bodies[body])))
        return ort_infer_fail(x, err, "its decoder needs input_ids, position_ids, attention_mask "
                              "and past states, and gives logits and as many present states");
    if (!gpt && (body < 0 || encoder < 0 || !like_t5(x->node->bodies[body], whisper, scores) ||
                 !like_encoder(x->node->bodies[encoder], x->node->bodies[body], whisper, scores)))
        return ort_infer_fail(x, err, "its encoder and decoder don't have the inputs and outputs "
                              "of an encoder-decoder model like T5 or Whisper");
    for (int i = 0; i < 3; i++) {
        int index = ort_node_body(x->node, bodies[i]);
        if (index >= 0)
            ORT_TRY(infer_one(x, index, err));
    }
    return ORT_OK;
}

/* ---- what a search reads, its memory */

static const ort_tensor *slot_of(const ort_call *call, int slot)
{
    return slot < 0 ? NULL : ort_call_in(call, slot);
}

static ort_status read_inputs(ort_generation *g, const ort_generation_slots *slots, ort_error *err)
{
    const ort_call *call = g->call;
    const ort_tensor *ids = ort_call_in(call, IN_IDS);
    bool gpt = g->form == &ort_generation_gpt;
    g->vocab_mask = slot_of(call, slots->vocab);
    g->prefix_mask = slot_of(call, slots->prefix);
    g->mask = slot_of(call, slots->mask);
    g->presence = slot_of(call, slots->presence);
    g->begin = g->whisper ? slot_of(call, slots->begin) : NULL;
    g->penalty = 1.0f;
    ORT_TRY(ort_call_f32(call, slots->temperature, &g->temperature, err));
    ORT_TRY(ort_call_f32(call, slots->penalty, &g->penalty, err));
    ORT_TRY(ort_call_i64(call, IN_MAX, &g->max, err));
    ORT_TRY(ort_call_i64(call, slots->min, &g->min, err));
    int rank = g->whisper ? 3 : 2;
    g->batch = ids->shape.rank == rank ? ids->shape.dim[0] : 0;
    g->prompt = ids->shape.rank != rank ? 0 : gpt ? ids->shape.dim[1] : 1;
    if (g->begin && g->prompt)
        g->prompt = g->begin->shape.rank == 2 && g->begin->shape.dim[0] == g->batch
                        ? g->begin->shape.dim[1] : 0;
    if (g->prompt < 1 || g->max <= g->prompt || g->max > (1 << 24) || !(g->penalty > 0.0f) ||
        !(g->temperature > 0.0f) ||
        (g->mask && !g->whisper && !ort_shape_equal(&g->mask->shape, &ids->shape)))
        return ort_call_fail(call, err, "a prompt of %lld tokens, max_length %lld, "
                             "repetition_penalty %g or the attention_mask don't fit together",
                             (long long)g->prompt, (long long)g->max, (double)g->penalty);
    return ORT_OK;
}

static ort_status read_node(ort_generation *g, ort_error *err)
{
    const ort_node *node = g->call->node;
    int64_t type = g->attrs->model;
    if (type < GPT || type > WHISPER)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "model_type %lld isn't implemented: only "
                             "0 (decoders like GPT-2), 1 (like T5) and 2 (like Whisper) are",
                             (long long)type);
    g->form = type == GPT ? &ort_generation_gpt : &ort_generation_t5;
    g->whisper = type == WHISPER;
    g->body = ort_node_body(node, "decoder");
    g->first_body = ort_node_body(node, type == GPT ? "init_decoder" : "encoder");
    g->in_count = (int)node->bodies[g->body]->inputs.count;
    g->out_count = (int)node->bodies[g->body]->outputs.count;
    g->scored = g->whisper && g->attrs->scores;
    g->layers = (int)own_states(node->bodies[g->body], g->scored);
    ort_generation_find_shared(g);
    g->temperature = 1.0f;
    return ORT_OK;
}

ort_status ort_generation_begin(ort_generation *g, ort_call *call, int64_t beams,
                                const ort_generation_slots *slots, ort_error *err)
{
    size_t rows, cells;
    *g = (ort_generation){.call = call, .attrs = call->state, .beams = beams};
    ORT_TRY(read_node(g, err));
    ORT_TRY(read_inputs(g, slots, err));
    g->rows = g->batch * beams;
    g->length = g->prompt;
    if (!ort_mul_size((size_t)g->batch, (size_t)beams, &rows) ||
        !ort_mul_size(rows + 1, (size_t)g->max, &cells))
        return ort_error_memory(err, SIZE_MAX);
    g->ids = ort_work_calloc(cells, sizeof *g->ids);
    g->spare = ort_work_calloc(cells, sizeof *g->spare);
    g->positions = ort_work_calloc(rows + 1, sizeof *g->positions);
    g->tokens = ort_work_calloc(rows + 1, sizeof *g->tokens);
    g->from = ort_work_calloc(rows + 1, sizeof *g->from);
    g->in = ort_work_calloc((size_t)g->in_count, sizeof(ort_value *));
    g->out = ort_work_calloc((size_t)g->out_count, sizeof(ort_value *));
    return g->ids && g->spare && g->positions && g->tokens && g->from && g->in && g->out
               ? ORT_OK : ort_error_memory(err, cells * sizeof *g->ids);
}

static void free_values(ort_value **values, int count)
{
    for (int i = 0; values && i < count; i++)
        ort_value_free(values[i]);
    ort_work_free(values);
}

void ort_generation_free(ort_generation *g)
{
    free_values(g->in, g->in_count);
    free_values(g->out, g->out_count);
    ort_work_free(g->ids);
    ort_work_free(g->spare);
    ort_work_free(g->positions);
    ort_work_free(g->tokens);
    ort_work_free(g->from);
    ort_work_free(g->scores);
}

/* ---- a step */

ort_status ort_generation_start(ort_generation *g, ort_error *err)
{
    return g->form->start(g, err);
}

ort_status ort_generation_next(ort_generation *g, ort_error *err)
{
    return g->form->next(g, err);
}

void ort_generation_append(ort_generation *g)
{
    int32_t *grown = g->spare;
    for (int64_t row = 0; row < g->rows; row++) {
        memcpy(grown + row * g->max, g->ids + g->from[row] * g->max,
               (size_t)g->length * sizeof *grown);
        grown[row * g->max + g->length] = g->tokens[row];
    }
    g->spare = g->ids;
    g->ids = grown;
    g->length++;
}
