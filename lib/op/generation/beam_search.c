/* beam_search.c - com.microsoft BeamSearch and WhisperBeamSearch: of each prompt the `num_beams`
 * best sequences go on (generation.h has the steps). A score is the sum of the logarithms of
 * probabilities.
 *
 * Each step the best 2 x beams continuations of a prompt are looked at, best first. One that ends
 * (eos) becomes a hypothesis, if it is among the first `beams`, with its score / length ^
 * length_penalty, eos not counted; the first `beams` others go on. A prompt is done when it has
 * `beams` hypotheses and nothing better can come (or at once with early_stopping). At the end what
 * still goes on becomes hypotheses too, and the best num_return_sequences are the result.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "op/generation/generation_cross.h"
#include "op/number.h"

enum { IN_MAX = 1, IN_BEAMS = 3, IN_RETURN, IN_LENGTH_PENALTY, IN_DECODER_IDS = 10, IN_PROCESSOR,
       IN_CROSS_HEADS, IN_EXTRA_IDS, IN_TEMPERATURE };
enum { OUT_IDS, OUT_SUMS, OUT_SCORES, OUT_CROSS, OUT_SILENCE };
#define BEAMS_MAX 128

typedef struct hypothesis {
    float score;
    int64_t length, runs;
    int32_t *ids;  /* [max] */
    int32_t *path; /* [max]: the rows of its runs, for cross_qk; else NULL */
} hypothesis;

typedef struct candidate {
    float score;
    int32_t beam, token;
} candidate;

typedef struct beam_search {
    ort_generation g;
    int64_t beams, wanted; /* wanted: sequences of each prompt in the result */
    float length_penalty;
    bool stop_early;
    float *sums;           /* [rows]: scores of what goes on */
    candidate *best;       /* [batch][2 x beams], best first */
    hypothesis *found;     /* [batch][beams], best first; ids of their own each */
    int64_t *found_count;  /* [batch] */
    bool *done;            /* [batch] */
    int32_t *found_ids, *found_paths; /* [rows][max]; paths only for cross_qk */
    bool crossed;          /* cross_qk is wanted */
    ort_generation_cross cross;
} beam_search;

static bool is_whisper(const ort_node *node)
{
    return !strcmp(node->op_type, "WhisperBeamSearch");
}

static ort_status beam_infer(ort_infer *x, ort_error *err)
{
    ort_dim length, wanted, beams, steps = ort_dim_unknown();
    int64_t vocab = ort_node_attr_int(x->node, "vocab_size");
    ORT_TRY(ort_generation_infer(x, err));
    if (!ort_infer_int(x, IN_MAX, 0, &length))
        length = ort_dim_unknown();
    if (!ort_infer_int(x, IN_RETURN, 0, &wanted))
        wanted = ort_dim_unknown();
    if (!ort_infer_int(x, IN_BEAMS, 0, &beams))
        beams = ort_dim_unknown();
    ort_dim batch = ort_infer_dim(x, 0, 0), prompt = ort_infer_dim(x, 0, 1);
    bool whisper = is_whisper(x->node);
    if (whisper)
        prompt = ort_infer_dim(x, IN_DECODER_IDS, 1);
    if ((whisper && !ort_infer_in(x, IN_DECODER_IDS)) ||
        (!whisper && ort_node_attr_int(x->node, "model_type") != 0))
        prompt = ort_dim_of(1);
    if (ort_dim_known(length) && ort_dim_known(prompt))
        steps = ort_dim_of(length.size - prompt.size);
    ort_infer_set_shape(x, OUT_IDS, 3, (ort_dim[]){batch, wanted, length});
    ort_infer_set_shape(x, OUT_SUMS, 2, (ort_dim[]){batch, wanted});
    ort_infer_set_shape(x, OUT_SCORES, 4,
                        (ort_dim[]){steps, batch, beams,
                                    vocab > 0 ? ort_dim_of(vocab) : ort_dim_unknown()});
    ort_dim open = ort_dim_unknown(), pairs = ort_infer_dim(x, IN_CROSS_HEADS, 0);
    ort_infer_set_shape(x, OUT_CROSS, 5,
                        (ort_dim[]){batch, wanted, whisper ? pairs : open, open, open});
    ort_infer_set_shape(x, OUT_SILENCE, 1, (ort_dim[]){batch});
    return ORT_OK;
}

/* ---- hypotheses */

/* Of equal scores the earlier one is better. */
static void keep_hypothesis(beam_search *s, int64_t b, int64_t row, float sum)
{
    const ort_generation *g = &s->g;
    hypothesis *found = s->found + b * s->beams, fresh;
    float score = sum / powf((float)g->length, s->length_penalty);
    int64_t at = s->found_count[b];
    if (at == s->beams && score <= found[at - 1].score)
        return;
    at = at == s->beams ? at - 1 : s->found_count[b]++;
    fresh = (hypothesis){score, g->length, s->cross.runs, found[at].ids, found[at].path};
    memcpy(fresh.ids, g->ids + row * g->max, (size_t)g->length * sizeof *fresh.ids);
    if (s->crossed)
        memcpy(fresh.path, s->cross.path + row * g->max, (size_t)fresh.runs * sizeof *fresh.path);
    for (; at > 0 && score > found[at - 1].score; at--)
        found[at] = found[at - 1];
    found[at] = fresh;
}

/* Is prompt b done? What is best now is read at b x beams of all prompts' candidates, each of which
 * has 2 x beams: so onnxruntime does, and it decides when a prompt of a batch ends. */
static bool is_done(const beam_search *s, int64_t b)
{
    const candidate *best = s->best + b * s->beams;
    float most = best[0].score;
    if (s->found_count[b] < s->beams)
        return false;
    for (int64_t i = 1; i < 2 * s->beams; i++)
        most = fmaxf(most, best[i].score);
    return s->stop_early || s->found[(b + 1) * s->beams - 1].score >=
           most / powf((float)s->g.length, s->length_penalty);
}

/* ---- a step */

static void offer(candidate *best, int64_t count, candidate fresh)
{
    int64_t at = count - 1;
    if (!(fresh.score > best[at].score))
        return;
    for (; at > 0 && fresh.score > best[at - 1].score; at--)
        best[at] = best[at - 1];
    best[at] = fresh;
}

/* The best 2 x beams continuations of prompt b; of equal ones the first. */
static void rank_candidates(beam_search *s, int64_t b)
{
    const ort_generation *g = &s->g;
    candidate *best = s->best + b * 2 * s->beams;
    for (int64_t i = 0; i < 2 * s->beams; i++)
        best[i] = (candidate){.score = -INFINITY};
    ort_pace pace = {0}; /* an offer may move all that are there */
    for (int64_t beam = 0; beam < s->beams; beam++)
        for (int64_t v = 0; v < g->vocab && !ort_pace_over(&pace, (uint64_t)s->beams); v++)
            offer(best, 2 * s->beams,
                  (candidate){g->scores[(b * s->beams + beam) * g->vocab + v], (int32_t)beam,
                              (int32_t)v});
}

static void set_row(beam_search *s, int64_t row, int64_t from, int32_t token, float sum)
{
    s->g.from[row] = (int32_t)from;
    s->g.tokens[row] = token;
    s->sums[row] = sum;
}

static ort_status choose(beam_search *s, int64_t b, ort_error *err)
{
    const ort_generation *g = &s->g;
    int64_t first = b * s->beams, rows = 0;
    for (int64_t i = 0; i < s->beams && s->done[b]; i++)
        set_row(s, first + i, first, (int32_t)g->attrs->pad, 0.0f);
    if (s->done[b])
        return ORT_OK;
    for (int64_t i = 0; i < 2 * s->beams && rows < s->beams; i++) {
        candidate c = s->best[2 * first + i];
        if (c.score == -INFINITY)
            return ort_call_fail(g->call, err, "its decoder gives scores that aren't numbers");
        if (c.token != g->attrs->eos)
            set_row(s, first + rows++, first + c.beam, c.token, c.score);
        else if (i < s->beams)
            keep_hypothesis(s, b, first + c.beam, c.score);
    }
    s->done[b] = is_done(s, b);
    return ORT_OK;
}

static ort_status write_scores(beam_search *s, ort_error *err)
{
    ort_generation *g = &s->g;
    ort_call *call = g->call;
    int64_t step = g->length - g->prompt, count = g->rows * g->vocab;
    ort_shape shape = {4, {g->max - g->prompt, g->batch, s->beams, g->vocab}};
    if (call->out_count <= OUT_SCORES || (step > 0 && !ort_call_out(call, OUT_SCORES)))
        return ORT_OK;
    if (step == 0) {
        ORT_TRY(ort_call_output(call, OUT_SCORES, ORT_DTYPE_FLOAT, &shape, err));
        if (!ort_call_out(call, OUT_SCORES))
            return ORT_OK;
        memset(ort_call_out(call, OUT_SCORES)->data, 0,
               (size_t)((g->max - g->prompt) * count) * sizeof(float));
    }
    memcpy((float *)ort_call_out(call, OUT_SCORES)->data + step * count, g->scores,
           (size_t)count * sizeof(float));
    return ORT_OK;
}

static ort_status step(beam_search *s, bool *all_done, ort_error *err)
{
    ort_generation *g = &s->g;
    ORT_TRY(ort_generation_scores(g, err));
    if (g->vocab < 2)
        return ort_call_fail(g->call, err, "a vocabulary of one token leaves nothing to search");
    for (int64_t row = 0; row < g->rows; row++)
        for (int64_t v = 0; v < g->vocab; v++)
            g->scores[row * g->vocab + v] += s->sums[row];
    ORT_TRY(write_scores(s, err));
    for (int64_t b = 0; b < g->batch; b++)
        rank_candidates(s, b);
    *all_done = true;
    for (int64_t b = 0; b < g->batch; b++) {
        ORT_TRY(choose(s, b, err));
        *all_done = *all_done && s->done[b];
    }
    if (s->crossed)
        ort_generation_cross_append(&s->cross, g);
    ort_generation_append(g);
    return ORT_OK;
}

/* ---- the search */

/* What follows the prompt is no speech: its probability. The schema says so; onnxruntime's kernels
 * for other devices give the logarithm, that for the CPU nothing: here it is the logarithm, too. */
static ort_status write_silence(beam_search *s, ort_error *err)
{
    ort_generation *g = &s->g;
    ort_shape shape = {1, {g->batch}};
    if (g->call->out_count <= OUT_SILENCE)
        return ORT_OK;
    ORT_TRY(ort_call_output(g->call, OUT_SILENCE, ORT_DTYPE_FLOAT, &shape, err));
    ort_tensor *out = ort_call_out(g->call, OUT_SILENCE);
    for (int64_t b = 0; out && b < g->batch; b++)
        ORT_TRY(ort_generation_probability(g, b * s->beams, g->attrs->silence,
                                           (float *)out->data + b, err));
    return ORT_OK;
}

static ort_status search(beam_search *s, ort_error *err)
{
    ort_generation *g = &s->g;
    bool all_done = g->rows == 0;
    for (bool first = true; g->length < g->max && !all_done; first = false) {
        ORT_TRY(first ? ort_generation_start(g, err) : ort_generation_next(g, err));
        if (first)
            ORT_TRY(write_silence(s, err));
        else if (s->crossed)
            ORT_TRY(ort_generation_cross_keep(&s->cross, g, err));
        ORT_TRY(step(s, &all_done, err));
    }
    for (int64_t row = 0; row < g->rows; row++)
        if (!s->done[row / s->beams])
            keep_hypothesis(s, row / s->beams, row, s->sums[row]);
    return ORT_OK;
}

static ort_status write_result(beam_search *s, ort_error *err)
{
    const ort_generation *g = &s->g;
    ort_call *call = g->call;
    ort_shape ids = {3, {g->batch, s->wanted, g->max}}, sums = {2, {g->batch, s->wanted}};
    ORT_TRY(ort_call_output(call, OUT_IDS, ORT_DTYPE_INT32, &ids, err));
    if (call->out_count > OUT_SUMS)
        ORT_TRY(ort_call_output(call, OUT_SUMS, ORT_DTYPE_FLOAT, &sums, err));
    int32_t *to = ort_call_out(call, OUT_IDS)->data;
    float *scores = ort_call_out(call, OUT_SUMS) ? ort_call_out(call, OUT_SUMS)->data : NULL;
    for (int64_t i = 0; i < g->batch * s->wanted; i++, to += g->max) {
        const hypothesis *h = &s->found[i / s->wanted * s->beams + i % s->wanted];
        memcpy(to, h->ids, (size_t)h->length * sizeof *to);
        for (int64_t t = h->length; t < g->max; t++)
            to[t] = (int32_t)g->attrs->pad;
        if (scores)
            scores[i] = h->score;
    }
    return ORT_OK;
}

static ort_status write_cross(beam_search *s, ort_error *err)
{
    const ort_generation *g = &s->g;
    const ort_generation_cross *c = &s->cross;
    ort_shape shape = {5, {g->batch, s->wanted, c->count, c->runs, c->frames}};
    if (!s->crossed)
        return ORT_OK;
    ORT_TRY(ort_call_output(g->call, OUT_CROSS, ORT_DTYPE_FLOAT, &shape, err));
    ort_tensor *out = ort_call_out(g->call, OUT_CROSS);
    for (int64_t i = 0; out && i < g->batch * s->wanted; i++) {
        const hypothesis *h = &s->found[i / s->wanted * s->beams + i % s->wanted];
        ort_generation_cross_write(c, g, h->path, h->runs,
                                   (float *)out->data + i * c->count * c->runs * c->frames);
    }
    return ORT_OK;
}

static ort_status get_memory(beam_search *s, ort_error *err)
{
    const ort_generation *g = &s->g;
    size_t rows = (size_t)g->rows + 1;
    s->sums = ort_work_calloc(rows, sizeof *s->sums);
    s->best = ort_work_calloc(2 * rows, sizeof *s->best);
    s->found = ort_work_calloc(rows, sizeof *s->found);
    s->found_count = ort_work_calloc(rows, sizeof *s->found_count);
    s->done = ort_work_calloc(rows, sizeof *s->done);
    s->found_ids = ort_work_calloc(rows * (size_t)g->max, sizeof *s->found_ids);
    if (s->crossed)
        s->found_paths = ort_work_calloc(rows * (size_t)g->max, sizeof *s->found_paths);
    if (!s->sums || !s->best || !s->found || !s->found_count || !s->done || !s->found_ids ||
        (s->crossed && !s->found_paths))
        return ort_error_memory(err, rows * (size_t)g->max * sizeof *s->found_ids);
    for (int64_t row = 0; row < g->rows; row++) {
        s->found[row].ids = s->found_ids + row * g->max;
        s->found[row].path = s->crossed ? s->found_paths + row * g->max : NULL;
        s->sums[row] = row % s->beams == 0 ? 0.0f : -1e9f; /* one beam only: all are equal yet */
    }
    return ORT_OK;
}

/* The rules of Whisper, and what it takes and gives beside sequences. */
static ort_status read_whisper(beam_search *s, ort_error *err)
{
    ort_generation *g = &s->g;
    const ort_tensor *forced = ort_call_in(g->call, IN_EXTRA_IDS);
    int64_t processor = 0;
    ORT_TRY(ort_call_i64(g->call, IN_PROCESSOR, &processor, err));
    g->rules = (ort_generation_whisper){
        .timestamps = processor == 1,
        .forced = forced && ort_tensor_count(forced) > 0 ? forced : NULL};
    if (g->rules.forced && (forced->shape.rank != 2 || forced->shape.dim[0] != g->batch))
        return ort_call_fail(g->call, err, "extra_decoding_ids needs the shape [batch, tokens]");
    if (g->rules.timestamps && g->attrs->first_timestamp < 1)
        return ort_call_fail(g->call, err, "logits_processor 1 needs beginning_timestamp_token_id");
    s->crossed = g->call->out_count > OUT_CROSS && g->call->out[OUT_CROSS];
    return s->crossed ? ort_generation_cross_begin(&s->cross, g,
                                                   ort_call_in(g->call, IN_CROSS_HEADS), err)
                      : ORT_OK;
}

static ort_status beam_begun(beam_search *s, ort_error *err)
{
    const ort_call *call = s->g.call;
    s->length_penalty = 1.0f;
    ORT_TRY(ort_call_f32(call, IN_LENGTH_PENALTY, &s->length_penalty, err));
    s->stop_early = s->g.attrs->early_stopping == 1;
    s->g.log = true;
    if (s->g.whisper)
        ORT_TRY(read_whisper(s, err));
    else if (ort_call_in(call, IN_DECODER_IDS))
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "decoder_input_ids, which onnxruntime "
                             "reads for Whisper only, isn't implemented");
    ORT_TRY(get_memory(s, err));
    ORT_TRY(search(s, err));
    ORT_TRY(write_result(s, err));
    return write_cross(s, err);
}

static ort_status read_beams(beam_search *s, ort_call *call, ort_error *err)
{
    ORT_TRY(ort_call_i64(call, IN_BEAMS, &s->beams, err));
    ORT_TRY(ort_call_i64(call, IN_RETURN, &s->wanted, err));
    if (s->beams < 1 || s->beams > BEAMS_MAX || s->wanted < 1 || s->wanted > s->beams)
        return ort_call_fail(call, err, "num_beams %lld or num_return_sequences %lld is out of "
                             "range: 1 <= num_return_sequences <= num_beams <= %d",
                             (long long)s->beams, (long long)s->wanted, BEAMS_MAX);
    return ORT_OK;
}

static ort_status beam_run(ort_call *call, ort_error *err)
{
    static const ort_generation_slots slots = {.min = 2, .penalty = 6, .vocab = 7, .prefix = 8,
                                               .mask = 9, .presence = -1, .begin = -1,
                                               .temperature = -1};
    ort_generation_slots own = slots;
    beam_search s = {0};
    if (is_whisper(call->node)) {
        own.begin = IN_DECODER_IDS;
        own.temperature = IN_TEMPERATURE;
    }
    ORT_TRY(read_beams(&s, call, err));
    ort_status status = ort_generation_begin(&s.g, call, s.beams, &own, err);
    if (status == ORT_OK)
        status = beam_begun(&s, err);
    ort_generation_free(&s.g);
    ort_generation_cross_free(&s.cross);
    ort_work_free(s.found_paths);
    ort_work_free(s.sums);
    ort_work_free(s.best);
    ort_work_free(s.found);
    ort_work_free(s.found_count);
    ort_work_free(s.done);
    ort_work_free(s.found_ids);
    return status;
}

static const ort_op_impl beam_impl = {
    .state = sizeof(ort_generation_attrs), .bind = ort_generation_bind, .infer = beam_infer,
    .run = beam_run, .numbers = 0x7e,
};

const ort_op ort_ops_beam_search[] = {
    {MS, "BeamSearch", 1,
     "input_ids:I,max_length:I,min_length?:I,num_beams:I,num_return_sequences:I,"
     "length_penalty?:T,repetition_penalty?:T,vocab_mask?:I,prefix_vocab_mask?:I,"
     "attention_mask?:I,decoder_input_ids?:I,logits_processor?:I -> "
     "sequences:I,sequences_scores?:T,scores?:T", "T:f32 I:i32",
     "decoder:g! decoder_start_token_id:i=-1 early_stopping:i=0 encoder:g eos_token_id:i! "
     "init_decoder:g model_type:i=0 no_repeat_ngram_size:i=0 pad_token_id:i! vocab_size:i=-1",
     ORT_TRAIT_CONTROL | ORT_TRAIT_DYNAMIC, &beam_impl},
    {MS, "WhisperBeamSearch", 1,
     "input_ids:F,max_length:I,min_length?:I,num_beams:I,num_return_sequences:I,"
     "length_penalty?:T,repetition_penalty?:T,vocab_mask?:I,prefix_vocab_mask?:I,"
     "attention_mask?:I,decoder_input_ids?:I,logits_processor?:I,cross_qk_layer_head?:I,"
     "extra_decoding_ids?:I,temperature?:T -> "
     "sequences:I,sequences_scores?:T,scores?:T,cross_qk?:T,non_speech_probs?:T",
     "F:f32,f16 T:f32 I:i32",
     "beginning_timestamp_token_id:i decoder:g! decoder_output_cross_qk:i=0 "
     "decoder_start_token_id:i=-1 early_stopping:i=0 encoder:g eos_token_id:i! init_decoder:g "
     "model_type:i=2 no_repeat_ngram_size:i=0 no_speech_token_id:i no_timestamps_token_id:i "
     "pad_token_id:i! start_of_lm_token_id:i transcribe_token_id:i translate_token_id:i "
     "vocab_size:i=-1",
     ORT_TRAIT_CONTROL | ORT_TRAIT_DYNAMIC, &beam_impl},
    {0},
};
