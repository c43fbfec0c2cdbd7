/* ngram.c - com.microsoft operators on runs of token ids: NGramRepeatBlock, NGramHashMapping,
 * VarlenNGramHashMapping and BifurcationDetector.
 *
 * A hash of order n mixes a token and the n - 1 before it: xor of token(i - s) * multiplier[s],
 * wrapping in the id type, taken modulo the size of each head's table. Tokens before the start come
 * from past_ids, else they are the fill: eos_token_id when given, else pad_id.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/number.h"
#include "op/shared/move.h"

/* ---- NGramRepeatBlock */

typedef struct block_run {
    const int64_t *ids; /* [batch][length] */
    float *scores;      /* [batch][vocab] */
    int64_t length, vocab, order;
    int64_t bad;        /* an id outside the vocabulary, or -1 */
} block_run;

/* Forbid every token that once followed the last order - 1 tokens of a row. */
static void block_row(block_run *r, int64_t row)
{
    const int64_t *ids = r->ids + row * r->length, *tail = ids + r->length - (r->order - 1);
    for (int64_t i = 0; i + r->order <= r->length; i++) {
        if (memcmp(ids + i, tail, (size_t)(r->order - 1) * sizeof *ids))
            continue;
        int64_t next = ids[i + r->order - 1];
        if (next < 0 || next >= r->vocab)
            r->bad = r->bad < 0 ? row * r->length + i + r->order - 1 : r->bad;
        else
            r->scores[row * r->vocab + next] = -INFINITY;
    }
}

static ort_status block_infer(ort_infer *x, ort_error *err)
{
    if (ort_node_attr_int(x->node, "ngram_size") < 1)
        return ort_infer_fail(x, err, "ngram_size needs to be 1 and more");
    return ORT_OK;
}

typedef struct block_state {
    int64_t order;
} block_state;

static const ort_bind block_bind[] = {ORT_BIND_AS(block_state, order, "ngram_size"), {0}};

static ort_status block_run_(ort_call *call, ort_error *err)
{
    const ort_tensor *ids = ort_call_in(call, 0), *scores = ort_call_in(call, 1);
    ort_tensor *y = ort_call_out(call, 0);
    block_run r = {.ids = ids->data, .scores = y->data, .length = ids->shape.dim[1],
                   .vocab = scores->shape.dim[1],
                   .order = ((const block_state *)call->state)->order, .bad = -1};
    if (ids->shape.dim[0] != scores->shape.dim[0])
        return ort_call_fail(call, err, "input_ids has %lld rows, scores %lld",
                             (long long)ids->shape.dim[0], (long long)scores->shape.dim[0]);
    if (ort_tensor_count(scores)) /* which has no address otherwise */
        memcpy(y->data, scores->data, ort_tensor_bytes(scores));
    for (int64_t row = 0; row < ids->shape.dim[0]; row++)
        block_row(&r, row);
    if (r.bad >= 0)
        return ort_call_fail(call, err, "token id %lld is outside the vocabulary of %lld",
                             (long long)r.ids[r.bad], (long long)r.vocab);
    return ORT_OK;
}

static const ort_op_impl block_impl = {
    .state = sizeof(block_state), .bind = block_bind, .rule = "[_,_] [B,V] -> [B,V]",
    .infer = block_infer, .run = block_run_,
};

/* ---- NGramHashMapping */

enum { ORDER_MAX = 64 };

typedef struct hash_slots { /* inputs and outputs, -1: the operator has none */
    int past, offsets, eos, segments, past_segments, lengths, captures;
    int present, present_segments, states;
} hash_slots;

enum { DENSE, VARLEN };

static const hash_slots all_slots[] = {
    [DENSE] = {3, 4, 5, 6, -1, -1, -1, 1, -1, -1}, [VARLEN] = {4, 5, 6, 7, 8, 3, 9, 1, 2, 3}};

typedef struct hash_state {
    const hash_slots *at;
    int64_t order, heads; /* heads of each order 2 .. order */
    int64_t pad, capacity;
    bool reset;
} hash_state;

static const ort_bind hash_bind[] = {
    ORT_BIND_AS(hash_state, order, "max_ngram_size", ORT_WITHIN(2, ORDER_MAX)),
    ORT_BIND_AS(hash_state, heads, "n_head_per_ngram", ORT_WITHIN(1, INT32_MAX)),
    ORT_BIND_AS(hash_state, pad, "pad_id"), ORT_BIND_AS(hash_state, reset, "reset_on_eos"),
    ORT_BIND_AS(hash_state, capacity, "state_update_capacity", ORT_WITHIN(0, 8), ORT_MAYBE), {0}};

static ort_status hash_prepare(ort_prep *p, ort_error *err)
{
    hash_state *s = p->state;
    s->at = &all_slots[p->op->variant];
    return ORT_OK;
}

typedef struct hash_walk {
    const ort_call *call;
    const hash_state *s;
    const ort_tensor *ids, *past, *offsets, *segments, *past_segments;
    int64_t fill, eos;
    bool has_eos;
    int64_t first, count; /* the sequence at work: tokens [first, first + count) */
    int64_t batch;        /* its number */
} hash_walk;

static const ort_tensor *in_at(const ort_call *call, int slot)
{
    return slot < 0 ? NULL : ort_call_in(call, slot);
}
static ort_tensor *out_at(const ort_call *call, int slot)
{
    return slot < 0 ? NULL : ort_call_out(call, slot);
}

/* Token at position i of the sequence; negative: before it. */
static int64_t token_at(const hash_walk *w, int64_t i)
{
    int64_t kept = w->s->order - 1;
    if (i >= 0)
        return ort_tensor_get_i64(w->ids, w->first + i);
    return w->past ? ort_tensor_get_i64(w->past, w->batch * kept + kept + i) : w->fill;
}

/* Is there a segment boundary between positions i - 1 and i? */
static bool boundary(const hash_walk *w, int64_t i)
{
    int64_t kept = w->s->order - 1, segment[2];
    if (!w->segments)
        return false;
    for (int k = 0; k < 2; k++) {
        int64_t at = i - 1 + k;
        if (at < 0 && (!w->past_segments || kept + at < 0))
            return false;
        segment[k] = at < 0 ? ort_tensor_get_i64(w->past_segments, w->batch * kept + kept + at)
                            : ort_tensor_get_i64(w->segments, w->first + at);
    }
    return segment[0] != segment[1];
}

/* The token at i and those before it, newest first, cut off at boundaries. */
static void window_at(const hash_walk *w, int64_t i, int64_t *window)
{
    bool cut = false;
    window[0] = token_at(w, i);
    for (int64_t s = 1; s < w->s->order; s++) {
        cut = cut || boundary(w, i - s + 1);
        int64_t token = cut ? w->fill : token_at(w, i - s);
        if (w->s->reset && w->has_eos && token == w->eos)
            cut = true;
        window[s] = cut ? w->fill : token;
    }
}

static void hash_token(const hash_walk *w, int64_t i)
{
    const ort_call *call = w->call;
    const ort_tensor *multiplier = ort_call_in(call, 1), *sizes = ort_call_in(call, 2);
    ort_tensor *y = ort_call_out(call, 0);
    int64_t window[ORDER_MAX], head = 0, heads = (w->s->order - 1) * w->s->heads;
    bool narrow = w->ids->dtype == ORT_DTYPE_INT32;
    window_at(w, i, window);
    uint64_t mix = 0;
    for (int64_t n = 0; n < w->s->order; n++) {
        mix ^= (uint64_t)window[n] * (uint64_t)ort_tensor_get_i64(multiplier, n);
        if (n == 0)
            continue;
        int64_t value = narrow ? (int32_t)(uint32_t)mix : (int64_t)mix;
        for (int64_t h = 0; h < w->s->heads; h++, head++) {
            int64_t size = ort_tensor_get_i64(sizes, head), hash = value % size;
            hash += hash < 0 ? size : 0;
            uint64_t sum = (uint64_t)hash +
                           (uint64_t)(w->offsets ? ort_tensor_get_i64(w->offsets, head) : 0);
            ort_tensor_set_i64(y, (w->first + i) * heads + head,
                               narrow ? (int32_t)(uint32_t)sum : (int64_t)sum);
        }
    }
}

/* What the next call needs: the last order - 1 tokens, and segments. `end`: tokens seen. */
static void keep_tail(const hash_walk *w, int64_t end, ort_tensor *out, int64_t first)
{
    int64_t kept = w->s->order - 1;
    for (int64_t k = 0; out && k < kept; k++)
        ort_tensor_set_i64(out, first + k, token_at(w, end - kept + k));
}

static void keep_segments(const hash_walk *w, ort_tensor *out)
{
    int64_t kept = w->s->order - 1;
    for (int64_t k = 0; out && k < kept; k++) {
        int64_t at = w->count - kept + k, value = 0;
        if (at >= 0)
            value = ort_tensor_get_i64(w->segments, w->first + at);
        else if (w->past_segments)
            value = ort_tensor_get_i64(w->past_segments, w->batch * kept + kept + at);
        ort_tensor_set_i64(out, w->batch * kept + k, value);
    }
}

static void keep_states(const hash_walk *w)
{
    ort_tensor *states = out_at(w->call, w->s->at->states);
    const ort_tensor *captures = in_at(w->call, w->s->at->captures);
    int64_t kept = w->s->order - 1, capacity = w->s->capacity;
    if (!states)
        return;
    int64_t count = captures ? ort_tensor_get_i64(captures, w->batch) : 0;
    count = ort_max_i64(ort_min_i64(ort_min_i64(count, w->count), capacity), 0);
    for (int64_t c = 0; c < capacity; c++) {
        int64_t first = (w->batch * capacity + c) * kept;
        if (c < count)
            keep_tail(w, c + 1, states, first);
        else
            for (int64_t k = 0; k < kept; k++)
                ort_tensor_set_i64(states, first + k, w->s->pad);
    }
}

static void hash_sequence(const hash_walk *w)
{
    ort_tensor *present = out_at(w->call, w->s->at->present);
    for (int64_t i = 0; i < w->count; i++)
        hash_token(w, i);
    keep_tail(w, w->count, present, w->batch * (w->s->order - 1));
    keep_segments(w, out_at(w->call, w->s->at->present_segments));
    keep_states(w);
}

static ort_status check_hash(const hash_walk *w, int64_t batch, ort_error *err)
{
    const ort_call *call = w->call;
    const ort_tensor *sizes = ort_call_in(call, 2);
    int64_t kept = w->s->order - 1, heads = kept * w->s->heads;
    const struct { const ort_tensor *t; int64_t count; const char *what; } need[] = {
        {sizes, heads, "vocab_sizes"}, {w->offsets, heads, "head_offsets"},
        {w->past, batch * kept, "past_ids"}, {w->past_segments, batch * kept, "past_segment_ids"},
        {w->segments, ort_tensor_count(w->ids), "segment_ids"},
        {in_at(call, w->s->at->captures), batch, "capture_count"},
        {in_at(call, w->s->at->eos), 1, "eos_token_id"}};
    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        if (need[i].t && ort_tensor_count(need[i].t) != need[i].count)
            return ort_call_fail(call, err, "%s has %lld elements, needs %lld", need[i].what,
                                 (long long)ort_tensor_count(need[i].t), (long long)need[i].count);
    if (ort_tensor_count(ort_call_in(call, 1)) < w->s->order)
        return ort_call_fail(call, err, "multipliers needs %lld elements", (long long)w->s->order);
    if (out_at(call, w->s->at->present_segments) && !w->segments)
        return ort_call_fail(call, err, "present_segment_ids needs the input segment_ids");
    for (int64_t i = 0; i < heads; i++)
        if (ort_tensor_get_i64(sizes, i) < 1)
            return ort_call_fail(call, err, "vocab_sizes[%lld] is %lld, needs 1 and more",
                                 (long long)i, (long long)ort_tensor_get_i64(sizes, i));
    return ORT_OK;
}

static hash_walk walk_of(const ort_call *call)
{
    const hash_state *s = call->state;
    hash_walk w = {.call = call, .s = s, .ids = ort_call_in(call, 0),
                   .past = in_at(call, s->at->past), .offsets = in_at(call, s->at->offsets),
                   .segments = in_at(call, s->at->segments),
                   .past_segments = in_at(call, s->at->past_segments)};
    const ort_tensor *eos = in_at(call, s->at->eos);
    w.has_eos = ort_tensor_one_i64(eos, &w.eos);
    w.fill = w.has_eos ? w.eos : s->pad;
    return w;
}

static ort_status dense_run(ort_call *call, ort_error *err)
{
    hash_walk w = walk_of(call);
    int64_t batch = w.ids->shape.dim[0];
    ORT_TRY(check_hash(&w, batch, err));
    w.count = w.ids->shape.dim[1];
    for (w.batch = 0; w.batch < batch; w.batch++) {
        w.first = w.batch * w.count;
        hash_sequence(&w);
    }
    return ORT_OK;
}

static ort_status varlen_run(ort_call *call, ort_error *err)
{
    hash_walk w = walk_of(call);
    const ort_tensor *ends = ort_call_in(call, w.s->at->lengths);
    int64_t batch = ort_tensor_count(ends) - 1, total = ort_tensor_count(w.ids);
    ORT_TRY(check_hash(&w, batch, err));
    for (w.batch = 0; w.batch < batch; w.batch++) {
        w.first = ort_tensor_get_i64(ends, w.batch);
        w.count = ort_tensor_get_i64(ends, w.batch + 1) - w.first;
        if (w.count < 1 || w.first < 0 || w.count > total - w.first || (!w.batch && w.first) ||
            (w.batch == batch - 1 && w.first + w.count != total))
            return ort_call_fail(call, err, "cumulative_sequence_length has to rise from 0 to the "
                                 "%lld tokens", (long long)total);
        hash_sequence(&w);
    }
    return ORT_OK;
}

static const ort_op_impl dense_impl = {
    .state = sizeof(hash_state), .bind = hash_bind,
    .rule = "[B,L] -> [B,L,(max_ngram_size-1)*n_head_per_ngram] [B,max_ngram_size-1]",
    .prepare = hash_prepare, .run = dense_run,
};
static const ort_op_impl varlen_impl = {
    .state = sizeof(hash_state), .bind = hash_bind,
    .rule = "[L] - - [N] -> [L,(max_ngram_size-1)*n_head_per_ngram] "
        "[N-1,max_ngram_size-1] [N-1,max_ngram_size-1] "
        "[N-1,state_update_capacity,max_ngram_size-1]",
    .prepare = hash_prepare, .run = varlen_run,
};

/* ---- BifurcationDetector: tokens that a model guessed ahead against those of the source */

/* Place of the needle in [from, n) of the source, or n; n as well when the work is stopped. */
static int64_t find_run(const int64_t *source, int64_t from, int64_t n, const int64_t *needle,
                        int64_t length, ort_pace *pace)
{
    uint64_t steps = 2 + (uint64_t)length / 8; /* of a comparison that goes to the end */
    for (int64_t i = from; i + length <= n && !ort_pace_over(pace, steps); i++)
        if (!memcmp(source + i, needle, (size_t)length * sizeof *source))
            return i;
    return n;
}

/* Where the source goes on after the last tokens: the end of the only run in it that equals a
 * suffix of min to max tokens; -1 when there is none, or more than one of the longest tried. */
static int64_t match_suffix(const int64_t *source, int64_t n, const int64_t *tokens, int64_t count,
                            int64_t min, int64_t max)
{
    int64_t match = -1;
    ort_pace pace = {0};
    for (int64_t length = min; length <= max && length <= count; length++) {
        const int64_t *suffix = tokens + count - length;
        int64_t at = find_run(source, 0, n, suffix, length, &pace);
        if (at == n)
            break;
        match = at + length;
        if (match >= n)
            break;
        if (find_run(source, at + 1, n, suffix, length, &pace) != n)
            match = -1;
    }
    return match;
}

static ort_status fork_infer(ort_infer *x, ort_error *err)
{
    int64_t min = ort_node_attr_int(x->node, "min_ngram_size");
    if (min < 1 || ort_node_attr_int(x->node, "max_ngram_size") < min)
        return ort_infer_fail(x, err, "min_ngram_size and max_ngram_size have to rise from 1");
    if (x->node->input_count < 4) /* nothing is predicted: the tokens stay */
        ort_infer_set_shape(x, 0, 1, (ort_dim[]){ort_infer_dim(x, 1, 0)});
    return ORT_OK;
}

typedef struct fork_state {
    int64_t least, most;
} fork_state;

static const ort_bind fork_bind[] = {
    ORT_BIND_AS(fork_state, least, "min_ngram_size"),
    ORT_BIND_AS(fork_state, most, "max_ngram_size"), {0}};

static ort_status fork_run(ort_call *call, ort_error *err)
{
    const fork_state *state = call->state;
    const ort_tensor *source = ort_call_in(call, 0), *now = ort_call_in(call, 1);
    const ort_tensor *guess = ort_call_in(call, 3);
    int64_t n = ort_tensor_count(source), count = ort_tensor_count(now), taken = 0;
    int64_t from = 0;
    ORT_TRY(ort_call_i64(call, 2, &from, err));
    if (guess) {
        const int64_t *g = guess->data, *s = source->data;
        if (from < 0 || from > n || ort_tensor_count(guess) != n + 1 - from)
            return ort_call_fail(call, err, "%lld predicted tokens don't fit a source of %lld from "
                                 "%lld on", (long long)ort_tensor_count(guess), (long long)n,
                                 (long long)from);
        while (taken < n - from && g[taken] == s[from + taken])
            taken++;
        taken++;
    }
    ort_shape shape = {1, {count + taken}};
    ORT_TRY(ort_call_output(call, 0, ORT_DTYPE_INT64, &shape, err));
    ORT_TRY(ort_call_output(call, 1, ORT_DTYPE_INT64, &ort_call_in(call, 2)->shape, err));
    int64_t *tokens = ort_call_out(call, 0)->data;
    ort_move_span(ORT_DTYPE_INT64, tokens, 0, now->data, 0, count);
    if (taken)
        ort_move_span(ORT_DTYPE_INT64, tokens, count, guess->data, 0, taken);
    ort_tensor_set_i64(ort_call_out(call, 1), 0,
                       match_suffix(source->data, n, tokens, count + taken,
                                    state->least, state->most));
    return ORT_OK;
}

static const ort_op_impl fork_impl = {
    .state = sizeof(fork_state), .bind = fork_bind,
    .rule = "[_] [_] [I..] [_] -> [_] [I..]",
    .infer = fork_infer, .run = fork_run,
};

/* ---- rows */

const ort_op ort_ops_ngram[] = {
    {MS, "NGramRepeatBlock", 1, "input_ids:i64,scores:T -> scores_out:T", "T:f32", "ngram_size:i!",
     0, &block_impl},
    {MS, "NGramHashMapping", 1,
     "input_ids:M,multipliers:M,vocab_sizes:M,past_ids?:M,head_offsets?:M,eos_token_id?:M,"
     "segment_ids?:i32 -> hash_ids:M,present_ids?:M", "M:i32,i64",
     "max_ngram_size:i! n_head_per_ngram:i! pad_id:i! reset_on_eos:i=0", 0, &dense_impl,
     .variant = DENSE},
    {MS, "VarlenNGramHashMapping", 1,
     "input_ids:M,multipliers:M,vocab_sizes:M,cumulative_sequence_length:S,past_ids?:M,"
     "head_offsets?:M,eos_token_id?:M,segment_ids?:i32,past_segment_ids?:S,capture_count?:S -> "
     "hash_ids:M,present_ids?:M,present_segment_ids?:S,state_update?:M", "M:i32,i64 S:i32",
     "max_ngram_size:i! n_head_per_ngram:i! pad_id:i! reset_on_eos:i=0 state_update_capacity:i=0",
     0, &varlen_impl, .variant = VARLEN},
    {MS, "BifurcationDetector", 1,
     "src_tokens:T,cur_tokens:T,prev_suffix_match_idx:T,pred_tokens?:T -> "
     "tokens:T,suffix_match_idx:T", "T:i64", "max_ngram_size:i=3 min_ngram_size:i=1",
     ORT_TRAIT_DYNAMIC, &fork_impl},
    {0},
};
