/* generation.c - com.microsoft GreedySearch of decoders like GPT-2: a body is run for one more
 * token at a time, and the best token is appended, until every sequence has met its end or is
 * full.
 *
 * The body takes input_ids, position_ids, attention_mask (int32) and a past state per layer [2,
 * batch, heads, length, size], and gives logits [batch, tokens, vocabulary] and the present
 * states, which are the past of the next step. All of the prompt goes in at once.
 */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "op/flow.h"

enum { IN_IDS, IN_MAX, IN_MIN, IN_PENALTY, IN_VOCAB, IN_PREFIX, IN_MASK };
enum { BODY_IDS, BODY_POSITIONS, BODY_MASK, BODY_PAST };

typedef struct search {
    ort_call *call;
    int body, first_body; /* first_body: for the prompt, or -1 */
    int layers;
    int64_t batch, prompt, length, max, min, vocab; /* length: tokens of every sequence so far */
    int64_t order, eos, pad;
    float penalty;
    int32_t *ids;       /* output: [batch][max] */
    int32_t *positions; /* [batch] of the next token */
    bool *done;         /* [batch] */
    float *scores;      /* [vocab] */
    ort_value **in, **out; /* of the body */
} search;

static ort_status greedy_infer(ort_infer *x, ort_error *err)
{
    int body = ort_node_body(x->node, "decoder");
    ort_dim length = ort_dim_unknown();
    ORT_TRY(ort_infer_need_rank(x, IN_IDS, 2, err));
    if (body < 0 || x->node->bodies[body]->inputs.count < BODY_PAST ||
        x->node->bodies[body]->outputs.count + 2 != x->node->bodies[body]->inputs.count)
        return ort_infer_fail(x, err, "its decoder needs input_ids, position_ids, attention_mask "
                              "and past states, and gives logits and as many present states");
    if (!ort_infer_int(x, IN_MAX, 0, &length))
        length = ort_dim_unknown();
    ort_infer_set_type(x, 0, ORT_DTYPE_INT32, 2,
                       (ort_dim[]){ort_infer_dim(x, IN_IDS, 0), length});
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

/* ---- values of the body */

static ort_status new_ids(const search *s, int64_t columns, ort_value **value, ort_error *err)
{
    ort_shape shape = {2, {s->batch, columns}};
    ort_value_free(*value);
    *value = NULL;
    return ort_value_new_tensor_(ORT_DTYPE_INT32, &shape, value, err);
}

static int32_t *data_of(const ort_value *value)
{
    return value->tensor.data;
}

/* The prompt: padding has position 0 and is masked, other tokens count up. */
static ort_status prompt_inputs(search *s, ort_error *err)
{
    const ort_tensor *ids = ort_call_in(s->call, IN_IDS), *mask = ort_call_in(s->call, IN_MASK);
    for (int i = 0; i < BODY_PAST; i++)
        ORT_TRY(new_ids(s, s->prompt, &s->in[i], err));
    for (int64_t b = 0; b < s->batch; b++) {
        s->positions[b] = 0;
        for (int64_t t = 0; t < s->prompt; t++) {
            int64_t at = b * s->prompt + t;
            int32_t id = ((const int32_t *)ids->data)[at];
            bool counts = id != s->pad;
            data_of(s->in[BODY_IDS])[at] = id;
            data_of(s->in[BODY_POSITIONS])[at] = counts ? s->positions[b] : 0;
            data_of(s->in[BODY_MASK])[at] = mask ? ((const int32_t *)mask->data)[at] : counts;
            s->positions[b] += counts;
            s->ids[b * s->max + t] = id;
        }
    }
    return ORT_OK;
}

/* Empty past states, as the body declares their type, heads and size. */
static ort_status empty_past(search *s, ort_error *err)
{
    const ort_graph *body = s->call->node->bodies[s->body];
    for (int i = 0; i < s->layers; i++) {
        ort_id input = body->inputs.data[BODY_PAST + i];
        const ort_type *type = &ort_graph_value_at(body, input)->fact.type;
        if (type->rank != 5 || !ort_dim_known(type->dim[2]) || !ort_dim_known(type->dim[4]))
            return ort_call_fail(s->call, err, "past state %d of its decoder doesn't declare the "
                                 "shape [2, batch, heads, length, size]", i);
        ort_shape shape = {5, {2, s->batch, type->dim[2].size, 0, type->dim[4].size}};
        ORT_TRY(ort_value_new_tensor_(type->dtype, &shape, &s->in[BODY_PAST + i], err));
    }
    return ORT_OK;
}

/* One new token per sequence; the mask grows by it, the present states become the past. */
static ort_status next_inputs(search *s, ort_error *err)
{
    ort_value *mask = NULL;
    ORT_TRY(new_ids(s, s->length, &mask, err));
    int64_t old = s->length - 1;
    for (int64_t b = 0; b < s->batch; b++) {
        memcpy(data_of(mask) + b * s->length, data_of(s->in[BODY_MASK]) + b * old,
               (size_t)old * sizeof(int32_t));
        data_of(mask)[b * s->length + old] = 1;
    }
    ort_value_free(s->in[BODY_MASK]);
    s->in[BODY_MASK] = mask;
    ORT_TRY(new_ids(s, 1, &s->in[BODY_IDS], err));
    ORT_TRY(new_ids(s, 1, &s->in[BODY_POSITIONS], err));
    for (int64_t b = 0; b < s->batch; b++) {
        data_of(s->in[BODY_IDS])[b] = s->ids[b * s->max + s->length - 1];
        data_of(s->in[BODY_POSITIONS])[b] = s->positions[b]++;
    }
    for (int i = 0; i < s->layers; i++) {
        ort_value *kept = NULL;
        ORT_TRY(ort_flow_keep(s->out[1 + i], &kept, err));
        ort_value_free(s->in[BODY_PAST + i]);
        s->in[BODY_PAST + i] = kept;
    }
    return ORT_OK;
}

/* ---- scores */

static void allow(search *s, const ort_tensor *mask, int64_t first)
{
    for (int64_t v = 0; mask && v < s->vocab; v++)
        if (((const int32_t *)mask->data)[first + v] == 0)
            s->scores[v] = -FLT_MAX;
}

/* Tokens that were there before become less likely, once each. */
static void punish_repeats(search *s, const int32_t *ids)
{
    for (int64_t t = 0; s->penalty != 1.0f && t < s->length; t++) {
        bool before = ids[t] < 0 || ids[t] >= s->vocab;
        for (int64_t u = 0; u < t && !before; u++)
            before = ids[u] == ids[t];
        if (!before)
            s->scores[ids[t]] *= s->scores[ids[t]] < 0 ? s->penalty : 1.0f / s->penalty;
    }
}

/* Tokens that would repeat a run of `order` tokens are out. */
static void forbid_runs(search *s, const int32_t *ids)
{
    const int32_t *tail = ids + s->length - (s->order - 1);
    for (int64_t t = 0; s->order > 0 && t + s->order <= s->length; t++) {
        int32_t next = ids[t + s->order - 1];
        if (next >= 0 && next < s->vocab &&
            memcmp(ids + t, tail, (size_t)(s->order - 1) * sizeof *ids) == 0)
            s->scores[next] = -FLT_MAX;
    }
}

static int32_t best_token(search *s, int64_t b)
{
    const ort_tensor *logits = &s->out[0]->tensor;
    int64_t tokens = logits->shape.dim[1], width = logits->shape.dim[2], best = 0;
    const int32_t *ids = s->ids + b * s->max;
    ort_tensor_to_f32(logits, (b * tokens + tokens - 1) * width, s->vocab, s->scores);
    punish_repeats(s, ids);
    forbid_runs(s, ids);
    allow(s, ort_call_in(s->call, IN_VOCAB), 0);
    if (s->length == s->prompt)
        allow(s, ort_call_in(s->call, IN_PREFIX), b * s->vocab);
    if (s->length < s->min && s->eos >= 0 && s->eos < s->vocab)
        s->scores[s->eos] = -FLT_MAX;
    for (int64_t v = 1; v < s->vocab; v++)
        if (s->scores[v] > s->scores[best])
            best = v;
    return (int32_t)best;
}

static ort_status check_logits(search *s, ort_error *err)
{
    const ort_shape *l = &s->out[0]->tensor.shape;
    int64_t given = ort_node_int(s->call->node, "vocab_size", -1);
    const ort_tensor *vocab = ort_call_in(s->call, IN_VOCAB);
    const ort_tensor *prefix = ort_call_in(s->call, IN_PREFIX);
    if (l->rank != 3 || l->dim[0] != s->batch || l->dim[1] < 1 || l->dim[2] < 1 ||
        given > l->dim[2])
        return ort_call_fail(s->call, err, "the logits of its decoder don't have the shape [batch, "
                             "tokens, vocabulary]");
    s->vocab = given > 0 ? given : l->dim[2];
    if ((vocab && ort_tensor_count(vocab) != s->vocab) ||
        (prefix && ort_tensor_count(prefix) != s->batch * s->vocab))
        return ort_call_fail(s->call, err, "vocab_mask or prefix_vocab_mask doesn't fit %lld "
                             "tokens", (long long)s->vocab);
    if (!s->scores)
        s->scores = malloc((size_t)s->vocab * sizeof *s->scores);
    return s->scores ? ORT_OK : ort_error_memory(err, (size_t)s->vocab * sizeof *s->scores);
}

/* ---- the search */

static ort_status search_step(search *s, bool *all_done, ort_error *err)
{
    bool first = s->length == s->prompt;
    const ort_call *call = s->call;
    if (call->services->cancelled && call->services->cancelled(call))
        return ort_error_set(err, ORT_ERROR_CANCELLED, "the run was cancelled in a loop");
    for (int i = 0; i <= s->layers; i++) {
        ort_value_free(s->out[i]);
        s->out[i] = NULL;
    }
    ORT_TRY(ort_call_body(s->call, first && s->first_body >= 0 ? s->first_body : s->body, s->in,
                          BODY_PAST + s->layers, s->out, 1 + s->layers, err));
    ORT_TRY(check_logits(s, err));
    *all_done = true;
    for (int64_t b = 0; b < s->batch; b++) {
        int32_t token = best_token(s, b);
        s->done[b] = s->done[b] || token == s->eos;
        s->ids[b * s->max + s->length] = s->done[b] ? (int32_t)s->pad : token;
        *all_done = *all_done && s->done[b];
    }
    s->length++;
    return ORT_OK;
}

static ort_status search_run(search *s, ort_error *err)
{
    bool all_done = s->batch == 0;
    ORT_TRY(prompt_inputs(s, err));
    ORT_TRY(empty_past(s, err));
    s->length = s->prompt;
    while (s->length < s->max && !all_done) {
        if (s->length > s->prompt)
            ORT_TRY(next_inputs(s, err));
        ORT_TRY(search_step(s, &all_done, err));
    }
    return ORT_OK;
}

static ort_status read_search(search *s, ort_error *err)
{
    const ort_node *node = s->call->node;
    const ort_shape *ids = &ort_call_in(s->call, IN_IDS)->shape;
    const ort_tensor *penalty = ort_call_in(s->call, IN_PENALTY);
    const ort_tensor *mask = ort_call_in(s->call, IN_MASK);
    s->body = ort_node_body(node, "decoder");
    s->first_body = ort_node_body(node, "init_decoder");
    s->layers = (int)node->bodies[s->body]->outputs.count - 1;
    s->eos = ort_node_int(node, "eos_token_id", -1);
    s->pad = ort_node_int(node, "pad_token_id", -1);
    s->order = ort_node_int(node, "no_repeat_ngram_size", 0);
    s->penalty = penalty ? (float)ort_tensor_get_f64(penalty, 0) : 1.0f;
    ORT_TRY(ort_flow_scalar(s->call, IN_MAX, &s->max, err));
    if (ort_call_in(s->call, IN_MIN))
        ORT_TRY(ort_flow_scalar(s->call, IN_MIN, &s->min, err));
    s->batch = ids->rank == 2 ? ids->dim[0] : 0;
    s->prompt = ids->rank == 2 ? ids->dim[1] : 0;
    if (ort_node_int(node, "model_type", 0) != 0 || ort_node_body(node, "encoder") >= 0)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "only decoders like GPT-2 (model_type 0) "
                             "are implemented");
    if (s->prompt < 1 || s->max <= s->prompt || s->max > (1 << 24) || s->penalty <= 0.0f ||
        (mask && !ort_shape_equal(&mask->shape, ids)))
        return ort_call_fail(s->call, err, "a prompt of %lld tokens, max_length %lld, "
                             "repetition_penalty %g or the attention_mask don't fit together",
                             (long long)s->prompt, (long long)s->max, (double)s->penalty);
    return ORT_OK;
}

static ort_status greedy_run(ort_call *call, ort_error *err)
{
    search s = {.call = call};
    ORT_TRY(read_search(&s, err));
    ort_shape shape = {2, {s.batch, s.max}};
    ORT_TRY(ort_call_output(call, 0, ORT_DTYPE_INT32, &shape, err));
    s.ids = ort_call_out(call, 0)->data;
    for (int64_t i = 0; i < s.batch * s.max; i++)
        s.ids[i] = (int32_t)s.pad;
    int in_count = BODY_PAST + s.layers;
    s.positions = calloc((size_t)s.batch + 1, sizeof *s.positions);
    s.done = calloc((size_t)s.batch + 1, sizeof *s.done);
    s.in = calloc((size_t)in_count, sizeof(ort_value *));
    s.out = calloc((size_t)s.layers + 1, sizeof(ort_value *));
    ort_status status = s.positions && s.done && s.in && s.out ? search_run(&s, err)
                                                              : ort_error_memory(err, 1024);
    for (int i = 0; s.in && i < in_count; i++)
        ort_value_free(s.in[i]);
    for (int i = 0; s.out && i <= s.layers; i++)
        ort_value_free(s.out[i]);
    free(s.in);
    free(s.out);
    free(s.positions);
    free(s.done);
    free(s.scores);
    return status;
}

static const ort_op_impl greedy_impl = {.infer = greedy_infer, .run = greedy_run};

const ort_op ort_ops_generation[] = {
    {MS, "GreedySearch", 1,
     "input_ids:I,max_length:I,min_length?:I,repetition_penalty?:T,vocab_mask?:I,"
     "prefix_vocab_mask?:I,attention_mask?:I -> sequences:I", "T:f32 I:i32",
     "decoder:g! decoder_start_token_id:i=-1 encoder:g eos_token_id:i! init_decoder:g "
     "model_type:i=0 no_repeat_ngram_size:i=0 pad_token_id:i! vocab_size:i=-1",
     ORT_TRAIT_CONTROL | ORT_TRAIT_DYNAMIC, &greedy_impl},
    {0},
};
