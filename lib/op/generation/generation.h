/* generation.h - what the operators that write sequences of tokens share: GreedySearch, Sampling,
 * BeamSearch, WhisperBeamSearch (com.microsoft). Each runs a body for one more token at a time.
 *
 * A search holds `rows` sequences: `beams` for each of `batch` prompts, side by side. One step is
 *
 *   ort_generation_start or _next   the body gives the logits of what follows each row
 *   ort_generation_scores           scores of the next token, penalties and masks applied
 *   (the operator chooses tokens and from)
 *   ort_generation_append           row r becomes the old row from[r] and tokens[r]
 *
 * There are two forms of bodies. A decoder like GPT-2 takes input_ids, position_ids, attention_mask
 * (int32) and a past state per layer [2, rows, heads, length, size], and gives logits [rows,
 * tokens, vocabulary] and the present states, which are the past of the next step; all of the
 * prompt goes in at once. The forms of T5 and Whisper are described in generation_t5.c.
 *
 * A body with the input past_sequence_length [1] keeps past and present in one buffer: its own
 * states have max_length rows, of which so many are filled. Then it may take beam_width [1] and
 * cache_indirection [batch, beams, max_length], too: here the buffers' rows move with the beams, so
 * each beam reads its own.
 */
#ifndef ORT_OP_GENERATION_GENERATION_H
#define ORT_OP_GENERATION_GENERATION_H

#include "op/flow.h"

typedef struct ort_generation ort_generation;

/* The slots of what the operators take at different places; -1: has none. */
typedef struct ort_generation_slots {
    int min, penalty, vocab, prefix, mask, presence, begin, temperature;
} ort_generation_slots;

/* How a form of bodies is fed. Both leave logits in out[0]. */
typedef struct ort_generation_form {
    ort_status (*start)(ort_generation *g, ort_error *err);
    ort_status (*next)(ort_generation *g, ort_error *err);
} ort_generation_form;

/* Inputs of the decoder for a buffer that past and present share; -1: has none. */
typedef struct ort_generation_buffer {
    int length, width, from;
} ort_generation_buffer;

/* The state of all these operators: their attributes. Tokens are -1 where there is none. */
typedef struct ort_generation_attrs {
    int64_t model, eos, pad, order, vocab_size, early_stopping, start;
    bool scores; /* the decoder gives scores of attention */
    /* Sampling */
    float temperature, presence_penalty, top_p, filter;
    int64_t keep;
    bool custom;
    /* WhisperBeamSearch */
    int64_t translate, transcribe, start_of_lm, no_timestamps, first_timestamp, silence;
} ort_generation_attrs;

extern const ort_bind ort_generation_bind[];

/* Inputs that only WhisperBeamSearch has. */
typedef struct ort_generation_whisper {
    bool timestamps;             /* rules for them (logits_processor 1) */
    const ort_tensor *forced;    /* [batch, n]: tokens that come first, or NULL */
} ort_generation_whisper;

struct ort_generation {
    ort_call *call;
    const ort_generation_attrs *attrs;
    const ort_generation_form *form;
    const ort_tensor *vocab_mask, *prefix_mask, *mask, *presence, *begin; /* NULL: absent */
    bool whisper;        /* of the encoder-decoder forms: sound in, no attention mask */
    int body, first_body; /* first_body: init_decoder or encoder, or -1 */
    int layers;           /* past states of the body */
    bool scored;          /* behind them the body gives scores of attention, one per layer */
    ort_generation_buffer shared;
    ort_generation_whisper rules;
    int64_t batch, beams, rows;
    int64_t prompt, length, max, min, vocab; /* length: tokens of every row so far */
    float penalty, temperature;
    bool log;            /* scores are logarithms of probabilities, else logits */
    int32_t *ids, *spare; /* [rows][max] */
    int32_t *positions;  /* [rows] of the next token */
    int32_t *tokens;     /* [rows]: the operator's choice */
    int32_t *from;       /* [rows]: row that a row continues */
    float *scores;       /* [rows][vocab] */
    ort_value **in, **out; /* of the body */
    int in_count, out_count;
};

extern const ort_generation_form ort_generation_gpt, ort_generation_t5;

/* Both forms as attributes say: the type and shape of the bodies' values is found, and their
 * signature is checked. */
ort_status ort_generation_infer(ort_infer *x, ort_error *err);
/* Fill the search from attributes and inputs (input_ids and max_length are inputs 0 and 1), get its
 * memory. ort_generation_free is due afterwards whatever this returns. */
ort_status ort_generation_begin(ort_generation *g, ort_call *call, int64_t beams,
                                const ort_generation_slots *slots, ort_error *err);
void ort_generation_free(ort_generation *g);
ort_status ort_generation_start(ort_generation *g, ort_error *err);
ort_status ort_generation_next(ort_generation *g, ort_error *err);
ort_status ort_generation_scores(ort_generation *g, ort_error *err);
/* The logarithm of the probability of `token` behind row `row`, without penalties, masks, rules. */
ort_status ort_generation_probability(ort_generation *g, int64_t row, int64_t token, float *log_p,
                                      ort_error *err);
void ort_generation_append(ort_generation *g);

/* ---- for the forms */

/* generation_shared.c: how many inputs a body has for a shared buffer; where they are; the values
 * that they take when `filled` rows are. */
int ort_generation_shared_count(const ort_graph *body);
void ort_generation_find_shared(ort_generation *g);
ort_status ort_generation_feed_shared(ort_generation *g, int64_t filled, ort_error *err);
/* A state [rows, heads, length, size] gets max_length rows, zeros behind, for a shared buffer. */
ort_status ort_generation_grow(ort_generation *g, ort_value **slot, ort_error *err);
/* generation_whisper.c: the rules on the scores of one row; ids: its tokens. */
void ort_generation_time_rules(const ort_generation *g, const int32_t *ids, float *scores);
void ort_generation_force(const ort_generation *g, int64_t row, float *scores);

/* generation_body.c: run body `index` on in[0..in_count), its outputs into out. */
ort_status ort_generation_call(ort_generation *g, int index, int in_count, ort_value **out,
                               int out_count, ort_error *err);
/* *value becomes a new int32 tensor [rows, columns]; the old one is dropped. */
ort_status ort_generation_ids(int64_t rows, int64_t columns, ort_value **value, ort_error *err);
static inline int32_t *ort_generation_data(const ort_value *value)
{
    return value->tensor.data;
}
/* *slot becomes `value` with its slices along `axis` picked: slice r is the old from[r]. from NULL:
 * slice r is r / repeat. */
ort_status ort_generation_pick(const ort_value *value, int axis, const int32_t *from, int64_t rows,
                               int64_t repeat, ort_value **slot, ort_error *err);
/* The empty past state of input `index` of the decoder, which declares heads and size:
 * [rows, heads, 0, size], or with rank 5 [2, rows, heads, 0, size]; zeros in a shared buffer. */
ort_status ort_generation_empty(ort_generation *g, int index, int rank, ort_value **slot,
                                ort_error *err);
#endif
