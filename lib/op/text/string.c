/* string.c - StringNormalizer, StringConcat, StringSplit, RegexFullMatch.
 *
 * Strings are UTF-8 bytes. No function of the host's locale is used: case changes by the simple
 * mappings of Unicode (unicode.h), whatever the locale attribute says. Results get bytes of their
 * own that live until the run ends, because those of an input may go with their owner.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hashmap.h"
#include "op/flow.h"
#include "op/text/regex.h"
#include "op/text/unicode.h"

#define DYNAMIC ORT_TRAIT_DYNAMIC

static const ort_string *strings_of(const ort_tensor *t)
{
    return t->data;
}

/* ---- StringNormalizer */

typedef enum case_change { CASE_NONE, CASE_LOWER, CASE_UPPER } case_change;

typedef struct normalizer {
    case_change action;
    bool sensitive;
    ort_strings words;
    ort_hashmap stopwords; /* those words, in lower case when not sensitive */
} normalizer;

static const ort_bind normalizer_bind[] = {
    ORT_BIND_AS(normalizer, action, "case_change_action", ORT_WORDS("NONE LOWER UPPER")),
    ORT_BIND_AS(normalizer, sensitive, "is_case_sensitive"),
    ORT_BIND_AS(normalizer, words, "stopwords"), {0}};

/* A copy of `s` in another case: at most 3 bytes for each (a case pair of other lengths exists). */
static size_t change_case(ort_string s, case_change action, char *out)
{
    size_t used, length = 0;
    for (size_t i = 0; i < s.length; i += used) {
        uint32_t c = ort_utf8_decode(s.ptr + i, s.length - i, &used);
        if (c == 0xfffd) { /* malformed, or that character itself: as it is */
            memcpy(out + length, s.ptr + i, used);
            length += used;
            continue;
        }
        c = action == CASE_LOWER ? ort_unicode_lower(c) : ort_unicode_upper(c);
        length += ort_utf8_encode(c, out + length);
    }
    return length;
}

static size_t changed_bytes(size_t length)
{
    return length * 3 + 4;
}

static ort_status add_stopword(ort_prep *p, normalizer *n, ort_string word, ort_error *err)
{
    size_t length = word.length;
    char *own = ort_arena_alloc(p->arena, changed_bytes(length));
    if (!own)
        return ort_error_memory(err, changed_bytes(length));
    if (n->sensitive)
        memcpy(own, word.ptr, length);
    else
        length = change_case(word, CASE_LOWER, own);
    if (!ort_hashmap_put(&n->stopwords, own, length, 1))
        return ort_error_memory(err, length);
    return ORT_OK;
}

/* The map's tables go to the session's arena: nobody frees an operator's state. */
static ort_status settle_map(ort_arena *arena, ort_hashmap *map, ort_error *err)
{
    size_t entries = map->capacity * sizeof *map->entries;
    size_t slots = map->slot_count * sizeof *map->slots;
    ort_hashmap_entry *e = ort_arena_alloc(arena, entries + 1);
    ort_hashmap_slot *s = ort_arena_alloc(arena, slots + 1);
    if (!e || !s) {
        ort_hashmap_release(map);
        return ort_error_memory(err, entries + slots);
    }
    if (map->count > 0) {
        memcpy(e, map->entries, map->count * sizeof *e);
        memcpy(s, map->slots, slots);
    }
    free(map->entries);
    free(map->slots);
    map->entries = map->count > 0 ? e : NULL;
    map->slots = map->count > 0 ? s : NULL;
    return ORT_OK;
}

static ort_status normalizer_prepare(ort_prep *p, ort_error *err)
{
    normalizer *n = p->state;
    ort_status status = ORT_OK;
    for (size_t i = 0; status == ORT_OK && i < n->words.count; i++)
        status = add_stopword(p, n, n->words.ptr[i], err);
    if (status != ORT_OK) {
        ort_hashmap_release(&n->stopwords);
        return status;
    }
    return settle_map(p->arena, &n->stopwords, err);
}

static ort_status normalizer_infer(ort_infer *x, ort_error *err)
{
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    const ort_type *in = &x->in[0]->type;
    ort_dim dims[2] = {ort_dim_unknown(), ort_dim_unknown()};
    if (in->rank < 1 || in->rank > 2)
        return ort_infer_fail(x, err, "input X has %d dims, needs 1 or 2", in->rank);
    bool drops = ort_node_has(x->node, "stopwords");
    for (int i = 0; i < in->rank; i++)
        dims[i] = drops && i == in->rank - 1 ? ort_dim_unknown() : in->dim[i];
    if (in->rank == 2)
        dims[0] = ort_dim_of(1);
    ort_infer_set_shape(x, 0, in->rank, dims);
    return ORT_OK;
}

static ort_status normalizer_run(ort_call *call, ort_error *err)
{
    const normalizer *n = call->state;
    const ort_tensor *x = ort_call_in(call, 0);
    int rank = x->shape.rank;
    if (rank < 1 || rank > 2 || (rank == 2 && x->shape.dim[0] != 1))
        return ort_call_fail(call, err, "input X must be [C] or [1, C]");
    int64_t count = x->shape.dim[rank - 1], kept = 0;
    size_t bytes = 0, longest = 0;
    for (int64_t i = 0; i < count; i++) {
        size_t length = strings_of(x)[i].length;
        bytes += changed_bytes(length);
        longest = length > longest ? length : longest;
    }
    ort_string *out = ort_call_alloc(call, (size_t)(count + 1) * sizeof *out);
    char *text = ort_call_alloc(call, bytes + 1);
    char *folded = ort_call_alloc(call, changed_bytes(longest));
    if (!out || !text || !folded)
        return ort_error_memory(err, bytes);
    for (int64_t i = 0; i < count; i++) {
        ort_string s = strings_of(x)[i], key = s;
        if (!n->sensitive)
            key = (ort_string){folded, change_case(s, CASE_LOWER, folded)};
        if (ort_hashmap_get(&n->stopwords, key.ptr, key.length, NULL))
            continue;
        size_t length = s.length;
        if (n->action == CASE_NONE)
            memcpy(text, s.length ? s.ptr : "", length);
        else
            length = change_case(s, n->action, text);
        out[kept++] = (ort_string){text, length};
        text += length;
    }
    if (kept == 0)
        out[kept++] = (ort_string){"", 0};
    ort_shape shape = x->shape;
    shape.dim[rank - 1] = kept;
    ORT_TRY(ort_call_output(call, 0, ORT_DTYPE_STRING, &shape, err));
    if (ort_call_out(call, 0))
        memcpy(ort_call_out(call, 0)->data, out, (size_t)kept * sizeof *out);
    return ORT_OK;
}

static const ort_op_impl normalizer_impl = {
    .state = sizeof(normalizer), .bind = normalizer_bind,
    .infer = normalizer_infer, .prepare = normalizer_prepare, .run = normalizer_run,
};

/* ---- StringConcat */

/* Flat indices of both operands for element `index` of the broadcast result. */
static void operands(const ort_shape *out, const int64_t *sa, const int64_t *sb, int64_t index,
                     int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int d = out->rank - 1; d >= 0; d--) {
        int64_t at = index % out->dim[d];
        index /= out->dim[d];
        *a += at * sa[d];
        *b += at * sb[d];
    }
}

static ort_status concat_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0), *y = ort_call_in(call, 1);
    ort_tensor *z = ort_call_out(call, 0);
    int64_t sx[ORT_MAX_RANK], sy[ORT_MAX_RANK], a, b, count = ort_tensor_count(z);
    size_t bytes = 1;
    ort_shape_broadcast_strides(&x->shape, &z->shape, sx);
    ort_shape_broadcast_strides(&y->shape, &z->shape, sy);
    for (int64_t i = 0; i < count; i++) {
        operands(&z->shape, sx, sy, i, &a, &b);
        bytes += strings_of(x)[a].length + strings_of(y)[b].length;
    }
    char *text = ort_call_alloc(call, bytes);
    if (!text)
        return ort_error_memory(err, bytes);
    for (int64_t i = 0; i < count; i++) {
        operands(&z->shape, sx, sy, i, &a, &b);
        ort_string left = strings_of(x)[a], right = strings_of(y)[b];
        memcpy(text, left.length ? left.ptr : "", left.length);
        memcpy(text + left.length, right.length ? right.ptr : "", right.length);
        ((ort_string *)z->data)[i] = (ort_string){text, left.length + right.length};
        text += left.length + right.length;
    }
    return ORT_OK;
}

static const ort_op_impl concat_impl = {.rule = "broadcast", .run = concat_run};

/* ---- StringSplit */

typedef struct splitter {
    ort_string delimiter; /* empty: runs of white space */
    int64_t most;         /* splits; -1: no limit */
} splitter;

static const ort_bind split_bind[] = {
    ORT_BIND(splitter, delimiter), ORT_BIND_AS(splitter, most, "maxsplit", ORT_ELSE(-1)), {0}};

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static size_t find(ort_string s, size_t from, ort_string word)
{
    for (size_t i = from; i + word.length <= s.length; i++)
        if (!memcmp(s.ptr + i, word.ptr, word.length))
            return i;
    return s.length;
}

/* The next part of `s` from *at on; false when there is none. `last`: take all that is left. */
static bool next_part(const splitter *sp, ort_string s, size_t *at, bool *ended, bool last,
                      ort_string *part)
{
    size_t start = *at, end;
    if (*ended)
        return false;
    if (sp->delimiter.length > 0) {
        end = last ? s.length : find(s, start, sp->delimiter);
        *ended = end == s.length;
        *at = end + sp->delimiter.length;
    } else {
        while (start < s.length && is_space(s.ptr[start]))
            start++;
        if (start == s.length)
            return false;
        for (end = start; end < s.length && (last || !is_space(s.ptr[end])); end++) {
        }
        *at = end;
    }
    *part = (ort_string){s.ptr ? s.ptr + start : "", end - start};
    return true;
}

/* Parts of one string into `parts` (NULL: only counted). */
static int64_t split_one(const splitter *sp, ort_string s, ort_string *parts)
{
    size_t at = 0;
    bool ended = false;
    ort_string part;
    int64_t count = 0;
    while (next_part(sp, s, &at, &ended, sp->most >= 0 && count == sp->most, &part)) {
        if (parts)
            parts[count] = part;
        count++;
    }
    return count;
}

static ort_status split_run(ort_call *call, ort_error *err)
{
    const splitter *sp = call->state;
    const ort_tensor *x = ort_call_in(call, 0);
    int64_t count = ort_tensor_count(x), widest = 0;
    ORT_TRY(ort_call_output(call, 1, ORT_DTYPE_INT64, &x->shape, err));
    ort_tensor *counts = ort_call_out(call, 1);
    for (int64_t i = 0; i < count; i++) {
        int64_t parts = split_one(sp, strings_of(x)[i], NULL);
        widest = ort_max_i64(widest, parts);
        if (counts)
            ((int64_t *)counts->data)[i] = parts;
    }
    if (x->shape.rank >= ORT_MAX_RANK)
        return ort_call_fail(call, err, "the result has more than %d dims", ORT_MAX_RANK);
    ort_shape shape = ort_flow_insert_dim(&x->shape, x->shape.rank, widest);
    ORT_TRY(ort_shape_check(&shape, ORT_DTYPE_STRING, err));
    ORT_TRY(ort_call_output(call, 0, ORT_DTYPE_STRING, &shape, err));
    ort_tensor *out = ort_call_out(call, 0);
    if (!out)
        return ORT_OK;
    for (int64_t i = 0; i < count; i++) {
        ort_string *row = (ort_string *)out->data + i * widest;
        int64_t parts = split_one(sp, strings_of(x)[i], row);
        for (int64_t k = parts; k < widest; k++)
            row[k] = (ort_string){"", 0};
    }
    return ort_flow_own_strings(call, out, err);
}

static const ort_op_impl split_impl = {
    .state = sizeof(splitter), .bind = split_bind,
    .rule = "[D..] -> [D..,_] [D..]",
    .run = split_run,
};

/* ---- RegexFullMatch */

static ort_status regex_prepare(ort_prep *p, ort_error *err)
{
    const ort_attr *pattern = ort_node_attr(p->node, "pattern");
    ort_regex *regex = NULL;
    if (!pattern)
        return ort_prep_fail(p, err, "attribute pattern is missing");
    ORT_TRY(ort_regex_compile(p->arena, pattern->s.ptr ? pattern->s.ptr : "", pattern->s.length,
                              &regex, err));
    p->state = regex;
    return ORT_OK;
}

static ort_status regex_shape(ort_shaping *s, ort_error *err)
{
    s->workspace_bytes = ort_regex_scratch_bytes(s->state);
    return ORT_OK;
}

static ort_status regex_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0);
    int64_t count = ort_tensor_count(x);
    for (int64_t i = 0; i < count; i++) {
        ort_string s = strings_of(x)[i];
        ((uint8_t *)y->data)[i] = ort_regex_full_match(call->state, s.ptr, s.length,
                                                       call->workspace);
    }
    return ORT_OK;
}

static const ort_op_impl regex_impl = {
    .rule = "same", .prepare = regex_prepare, .shape = regex_shape, .run = regex_run,
};

/* ---- rows */

const ort_op ort_ops_string[] = {
    {ONNX, "StringNormalizer", 10, "X:str -> Y:str",
     "",
     "case_change_action:s=NONE is_case_sensitive:i=0 locale:s stopwords:ss", DYNAMIC,
     &normalizer_impl},
    {ONNX, "StringConcat", 20, "X:T,Y:T -> Z:T",
     "T:str",
     "", 0, &concat_impl},
    {ONNX, "StringSplit", 20, "X:T1 -> Y:T2,Z:T3",
     "T1:str T2:str T3:i64",
     "delimiter:s maxsplit:i", DYNAMIC, &split_impl},
    {ONNX, "RegexFullMatch", 20, "X:T1 -> Y:T2",
     "T1:str T2:bool",
     "pattern:s", 0, &regex_impl},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
