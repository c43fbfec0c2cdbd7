/* tokenizer.c - Tokenizer of com.microsoft: each string becomes a row of tokens, which are what
 * stands between the matches of separators, the matches of one expression, or the characters.
 *
 * Matches are leftmost and longest (regex.h). Rows are filled up to the longest one: [C] becomes
 * [C, D], [N, C] becomes [N, C, D], D being 0 when no string has a token. `mark` puts a token 0x02
 * before and 0x03 behind each row. Tokens of fewer than mincharnum characters are dropped.
 */
#include <string.h>

#include "base/checked.h"
#include "base/vec.h"
#include "op/flow.h"
#include "op/text/regex.h"
#include "op/text/unicode.h"

typedef struct tokenizer {
    bool mark, separated;
    ort_string pad, expression;
    ort_strings patterns;     /* of the separators */
    int64_t least;            /* characters of a token */
    ort_regex **separators;   /* each breaks up the tokens that the one before left */
    size_t separator_count;
    ort_regex *token;
    size_t scratch;           /* neither: characters */
} tokenizer;

static const ort_bind token_bind[] = {
    ORT_BIND(tokenizer, mark), ORT_BIND_AS(tokenizer, pad, "pad_value"),
    ORT_BIND_AS(tokenizer, expression, "tokenexp"),
    ORT_BIND_AS(tokenizer, patterns, "separators"),
    ORT_BIND_HAS(tokenizer, separated, "separators"),
    ORT_BIND_AS(tokenizer, least, "mincharnum", ORT_FROM(1)), {0}};

/* ---- inference: an input without elements keeps its rank, as onnxruntime has it */

static ort_status token_infer(ort_infer *x, ort_error *err)
{
    const ort_type *in = ort_infer_in_ranked(x, 0) ? &x->in[0]->type : NULL;
    ort_dim dims[3];
    bool known = true, empty = false;
    if (!in)
        return ORT_OK;
    if (in->rank < 1 || in->rank > 2)
        return ort_infer_fail(x, err, "X has %d dims, needs 1 or 2", in->rank);
    for (int d = 0; d < in->rank; d++) {
        dims[d] = in->dim[d];
        known = known && ort_dim_known(dims[d]);
        empty = empty || (ort_dim_known(dims[d]) && dims[d].size == 0);
    }
    if (empty) {
        dims[in->rank - 1] = ort_dim_of(0);
        ort_infer_set_shape(x, 0, in->rank, dims);
    } else if (known) {
        dims[in->rank] = ort_dim_unknown();
        ort_infer_set_shape(x, 0, in->rank + 1, dims);
    }
    return ORT_OK;
}

/* ---- prepare */

static ort_status compile(ort_prep *p, tokenizer *t, ort_string pattern, ort_regex **regex,
                          ort_error *err)
{
    ORT_TRY(ort_regex_compile(p->arena, pattern.length ? pattern.ptr : "", pattern.length, regex,
                              err));
    size_t bytes = ort_regex_scratch_bytes(*regex);
    t->scratch = bytes > t->scratch ? bytes : t->scratch;
    return ORT_OK;
}

static ort_status read_separators(ort_prep *p, tokenizer *t, ort_error *err)
{
    const ort_string *list = t->patterns.ptr;
    const size_t count = t->patterns.count;
    if (count == 0)
        return ort_prep_fail(p, err, "attribute separators is empty");
    if (count == 1 && list[0].length == 0)
        return ORT_OK;
    t->separators = ort_arena_array(p->arena, count, sizeof *t->separators);
    if (!t->separators)
        return ort_error_memory(err, count * sizeof *t->separators);
    t->separator_count = count;
    for (size_t i = 0; i < count; i++)
        ORT_TRY(compile(p, t, list[i], &t->separators[i], err));
    return ORT_OK;
}

static ort_status token_prepare(ort_prep *p, ort_error *err)
{
    tokenizer *t = p->state;
    const ort_string expression = t->expression;
    if (t->pad.length == 0)
        t->pad = (ort_string){"", 0};
    if (t->separated)
        ORT_TRY(read_separators(p, t, err));
    else if (expression.length == 0)
        return ort_prep_fail(p, err, "one of the attributes separators and tokenexp is needed");
    else if (expression.length != 1 || expression.ptr[0] != '.')
        ORT_TRY(compile(p, t, expression, &t->token, err));
    if (!t->separators && !t->token && t->least > 1)
        return ort_prep_fail(p, err, "tokens of one character are all shorter than mincharnum");
    return ORT_OK;
}

static ort_status token_shape(ort_shaping *s, ort_error *err)
{
    s->workspace_bytes = ((const tokenizer *)s->state)->scratch;
    return ORT_OK;
}

/* ---- run */

typedef ORT_VEC(ort_string) string_list;

typedef struct token_run {
    const tokenizer *t;
    void *scratch;
    string_list row, next;
    bool no_memory;
} token_run;

/* Code points of the text; false when it isn't UTF-8. */
static bool count_characters(const char *text, size_t length, size_t *count)
{
    size_t used;
    *count = 0;
    for (size_t at = 0; at < length; at += used, ++*count)
        if (ort_utf8_decode(text + at, length - at, &used) == 0xfffd && used == 1)
            return false;
    return true;
}

static size_t character_bytes(ort_string s, size_t at)
{
    size_t used = 1;
    if (at < s.length)
        ort_utf8_decode(s.ptr + at, s.length - at, &used);
    return used;
}

/* Adds bytes [from, to) as a token unless they are too few characters. */
static bool add_token(token_run *r, string_list *list, ort_string s, size_t from, size_t to)
{
    size_t characters = 0;
    if (!count_characters(s.ptr + from, to - from, &characters) || characters < (size_t)r->t->least)
        return false;
    if (!ort_vec_push(list, (ort_string){s.ptr + from, to - from}))
        r->no_memory = true;
    return true;
}

static void split_text(token_run *r, const ort_regex *separator, ort_string s)
{
    size_t at = 0, begin, end;
    while (at <= s.length && !r->no_memory) {
        if (!ort_regex_search(separator, s.ptr, s.length, at, &begin, &end, r->scratch)) {
            add_token(r, &r->next, s, at, s.length);
            return;
        }
        add_token(r, &r->next, s, at, begin);
        at = end > begin ? end : begin + character_bytes(s, begin);
    }
}

static void find_tokens(token_run *r, ort_string s)
{
    size_t at = 0, begin, end;
    while (at <= s.length && !r->no_memory &&
           ort_regex_search(r->t->token, s.ptr, s.length, at, &begin, &end, r->scratch))
        at = add_token(r, &r->row, s, begin, end) ? end : begin + character_bytes(s, begin);
}

/* The tokens of one string, into r->row. */
static void tokenize(token_run *r, ort_string s)
{
    ort_vec_clear(&r->row);
    if (r->t->token) {
        find_tokens(r, s);
    } else if (!r->t->separators) {
        for (size_t at = 0, used; at < s.length && !r->no_memory; at += used) {
            used = character_bytes(s, at);
            add_token(r, &r->row, s, at, at + used);
        }
    } else if (!ort_vec_push(&r->row, s)) {
        r->no_memory = true;
    }
    for (size_t i = 0; i < r->t->separator_count && r->row.count > 0; i++) {
        ort_vec_clear(&r->next);
        for (size_t k = 0; k < r->row.count; k++)
            split_text(r, r->t->separators[i], r->row.data[k]);
        string_list swap = r->row;
        r->row = r->next;
        r->next = swap;
    }
}

/* All rows: their tokens one after the other, and how many each has. */
static ort_status tokenize_all(ort_call *call, const ort_tensor *x, string_list *tokens,
                               int64_t *counts, ort_error *err)
{
    token_run r = {.t = call->state, .scratch = call->workspace};
    ort_status status = ORT_OK;
    for (int64_t i = 0; i < ort_tensor_count(x) && status == ORT_OK; i++) {
        ort_string s = ((const ort_string *)x->data)[i];
        size_t characters;
        s.ptr = s.length ? s.ptr : "";
        if (!count_characters(s.ptr, s.length, &characters)) {
            status = ort_call_fail(call, err, "element %lld of X isn't UTF-8", (long long)i);
            break;
        }
        tokenize(&r, s);
        counts[i] = (int64_t)r.row.count;
        for (size_t k = 0; k < r.row.count && !r.no_memory; k++)
            r.no_memory = !ort_vec_push(tokens, r.row.data[k]);
        if (r.no_memory)
            status = ort_error_memory(err, tokens->count * sizeof(ort_string));
    }
    ort_vec_release(&r.row);
    ort_vec_release(&r.next);
    return status;
}

static void put_row(const tokenizer *t, const ort_string *tokens, int64_t count, int64_t width,
                    ort_string *out)
{
    int64_t at = 0;
    if (t->mark)
        out[at++] = (ort_string){"\x02", 1};
    for (int64_t i = 0; i < count; i++)
        out[at++] = tokens[i];
    if (t->mark)
        out[at++] = (ort_string){"\x03", 1};
    while (at < width)
        out[at++] = t->pad;
}

static ort_status give_rows(ort_call *call, const ort_tensor *x, const string_list *tokens,
                            const int64_t *counts, ort_error *err)
{
    const tokenizer *t = call->state;
    int64_t rows = ort_tensor_count(x), width = 0;
    ort_shape shape = x->shape;
    for (int64_t i = 0; i < rows; i++)
        width = ort_max_i64(width, counts[i]);
    width += width > 0 && t->mark ? 2 : 0;
    if (rows == 0)
        shape.dim[shape.rank - 1] = 0;
    else
        shape = ort_flow_insert_dim(&x->shape, x->shape.rank, width);
    ORT_TRY(ort_shape_check(&shape, ORT_DTYPE_STRING, err));
    ORT_TRY(ort_call_output(call, 0, ORT_DTYPE_STRING, &shape, err));
    ort_tensor *out = ort_call_out(call, 0);
    if (!out || width == 0)
        return ORT_OK;
    const ort_string *from = tokens->data;
    for (int64_t i = 0; i < rows; from += counts[i++])
        put_row(t, from, counts[i], width, (ort_string *)out->data + i * width);
    return ort_flow_own_strings(call, out, err);
}

static ort_status token_run_all(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    if (x->shape.rank < 1 || x->shape.rank > 2)
        return ort_call_fail(call, err, "X has %d dims, needs 1 or 2", x->shape.rank);
    size_t bytes = (size_t)(ort_tensor_count(x) + 1) * sizeof(int64_t);
    int64_t *counts = ort_call_alloc(call, bytes);
    string_list tokens = {0};
    if (!counts)
        return ort_error_memory(err, bytes);
    ort_status status = tokenize_all(call, x, &tokens, counts, err);
    if (status == ORT_OK)
        status = give_rows(call, x, &tokens, counts, err);
    ort_vec_release(&tokens);
    return status;
}

static const ort_op_impl token_impl = {
    .state = sizeof(tokenizer), .bind = token_bind, .infer = token_infer,
    .prepare = token_prepare, .shape = token_shape, .run = token_run_all,
};

const ort_op ort_ops_tokenizer[] = {
    {MS, "Tokenizer", 1, "X:T -> Y:T", "T:str",
     "mark:i! mincharnum:i! pad_value:s! separators:ss tokenexp:s", ORT_TRAIT_DYNAMIC,
     &token_impl},
    {0},
};
