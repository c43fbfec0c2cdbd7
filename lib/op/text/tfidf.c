/* tfidf.c - TfIdfVectorizer: counts of known n-grams in rows of tokens.
 *
 * The pool becomes one hash map from the bytes of an n-gram (int64 tokens, or tokens with their
 * lengths) to its column. A row is walked once per skip distance; windows longer than the row and
 * one-token windows beyond the first distance do not exist.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hashmap.h"
#include "base/strbuf.h"
#include "op/op.h"

enum { MODE_TF, MODE_IDF, MODE_TFIDF };

typedef struct tfidf {
    int64_t min, max, skips;
    int mode;
    ort_ints pool_ints, sections, pool_columns; /* sections begin with n-grams of one more token */
    ort_strings pool_strings;
    ort_floats weights; /* per column; none: ones */
    bool strings;
    int64_t columns;
    ort_hashmap_entry *entries; /* sorted by key; binary search: state is never freed */
    size_t count;
} tfidf;

static const ort_bind tfidf_bind[] = {
    ORT_BIND_AS(tfidf, min, "min_gram_length"), ORT_BIND_AS(tfidf, max, "max_gram_length"),
    ORT_BIND_AS(tfidf, skips, "max_skip_count"),
    ORT_BIND(tfidf, mode, ORT_WORDS("TF IDF TFIDF")),
    ORT_BIND_AS(tfidf, pool_ints, "pool_int64s"), ORT_BIND(tfidf, pool_strings),
    ORT_BIND_AS(tfidf, sections, "ngram_counts"),
    ORT_BIND_AS(tfidf, pool_columns, "ngram_indexes"), ORT_BIND(tfidf, weights), {0}};

static int compare_keys(const char *a, size_t na, const char *b, size_t nb)
{
    int order = memcmp(a, b, na < nb ? na : nb);
    return order ? order : na < nb ? -1 : na > nb;
}

static int by_key(const void *a, const void *b)
{
    const ort_hashmap_entry *x = a, *y = b;
    return compare_keys(x->key, x->key_length, y->key, y->key_length);
}

static void add_token(ort_strbuf *key, ort_string s)
{
    uint64_t length = s.length;
    ort_strbuf_add_bytes(key, &length, sizeof length);
    ort_strbuf_add_bytes(key, s.ptr, s.length);
}

static ort_status pool_add(ort_prep *p, tfidf *t, size_t first, size_t n, ort_error *err)
{
    ort_strbuf key = {0};
    if (t->count >= t->pool_columns.count)
        return ort_prep_fail(p, err, "ngram_indexes has %zu entries, the pool holds more n-grams",
                             t->pool_columns.count);
    for (size_t i = first; i < first + n; i++) {
        if (t->strings)
            add_token(&key, t->pool_strings.ptr[i]);
        else
            ort_strbuf_add_bytes(&key, &t->pool_ints.ptr[i], sizeof(int64_t));
    }
    char *own = key.failed ? NULL : ort_arena_alloc(p->arena, key.length + 1);
    if (own)
        memcpy(own, ort_strbuf_text(&key), key.length);
    int64_t column = t->pool_columns.ptr[t->count];
    t->entries[t->count++] = (ort_hashmap_entry){own, key.length, (uint64_t)column};
    ort_strbuf_release(&key);
    if (!own)
        return ort_error_memory(err, n);
    if (column < 0 || column > INT32_MAX)
        return ort_prep_fail(p, err, "ngram_indexes holds %lld, must be in [0, 2^31)",
                             (long long)column);
    t->columns = ort_max_i64(t->columns, column + 1);
    return ORT_OK;
}

static ort_status pool_read(ort_prep *p, tfidf *t, size_t size, ort_error *err)
{
    const ort_ints *sections = &t->sections;
    for (size_t s = 0; s < sections->count; s++) {
        int64_t first = sections->ptr[s];
        int64_t last = s + 1 < sections->count ? sections->ptr[s + 1] : (int64_t)size;
        if (first < 0 || last < first || (size_t)last > size ||
            (size_t)(last - first) % (s + 1) != 0)
            return ort_prep_fail(p, err,
                                 "ngram_counts[%zu] is %lld, doesn't cut a pool of %zu tokens "
                                 "into n-grams of %zu", s, (long long)first, size, s + 1);
        for (; first < last; first += (int64_t)s + 1)
            ORT_TRY(pool_add(p, t, (size_t)first, s + 1, err));
    }
    qsort(t->entries, t->count, sizeof *t->entries, by_key);
    return ORT_OK;
}

static ort_status tfidf_prepare(ort_prep *p, ort_error *err)
{
    tfidf *t = p->state;
    t->strings = t->pool_strings.count > 0;
    const size_t size = t->strings ? t->pool_strings.count : t->pool_ints.count;
    if (t->min < 1 || t->max < t->min || t->skips < 0)
        return ort_prep_fail(p, err, "gram lengths %lld to %lld and skip count %lld don't fit "
                             "together", (long long)t->min, (long long)t->max,
                             (long long)t->skips);
    if ((uint64_t)t->max > t->sections.count)
        return ort_prep_fail(p, err, "max_gram_length is %lld, ngram_counts has %zu elements",
                             (long long)t->max, t->sections.count);
    t->entries = ort_arena_array(p->arena, size + 1, sizeof *t->entries);
    if (!t->entries)
        return ort_error_memory(err, size * sizeof *t->entries);
    ORT_TRY(pool_read(p, t, size, err));
    for (size_t i = 0; i < t->pool_columns.count; i++)
        t->columns = ort_max_i64(t->columns, t->pool_columns.ptr[i] + 1);
    if (t->weights.count > 0 && t->weights.count < (size_t)t->columns)
        return ort_prep_fail(p, err, "%zu weights for %lld columns", t->weights.count,
                             (long long)t->columns);
    return ORT_OK;
}

static ort_status tfidf_infer(ort_infer *x, ort_error *err)
{
    size_t count = 0;
    const int64_t *columns = ort_node_ints(x->node, "ngram_indexes", &count);
    int64_t width = 0;
    for (size_t i = 0; i < count; i++) {
        if (columns[i] < 0 || columns[i] > INT32_MAX)
            return ort_infer_fail(x, err, "ngram_indexes[%zu] is %lld, needs 0 to %d", i,
                                  (long long)columns[i], INT32_MAX);
        width = ort_max_i64(width, columns[i] + 1);
    }
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    const ort_type *in = &x->in[0]->type;
    if (in->rank < 1 || in->rank > 2)
        return ort_infer_fail(x, err, "input X has %d dims, needs 1 or 2", in->rank);
    ort_dim dims[2] = {in->dim[0], ort_dim_of(width)};
    dims[in->rank - 1] = ort_dim_of(width);
    ort_infer_set_shape(x, 0, in->rank, dims);
    return ORT_OK;
}

static const ort_hashmap_entry *look_up(const tfidf *t, const char *key, size_t length)
{
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const ort_hashmap_entry *e = &t->entries[middle];
        int order = compare_keys(e->key, e->key_length, key, length);
        if (order == 0)
            return e;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

typedef struct row_walk {
    const tfidf *t;
    const ort_tensor *x;
    int64_t first, length; /* of the row, in elements of x */
    float *out;
    ort_strbuf key;
    ort_pace pace;
} row_walk;

static void append_token(row_walk *w, int64_t at)
{
    if (w->t->strings) {
        add_token(&w->key, ((const ort_string *)w->x->data)[w->first + at]);
    } else {
        int64_t token = ort_tensor_get_i64(w->x, w->first + at);
        ort_strbuf_add_bytes(&w->key, &token, sizeof token);
    }
}

enum { TOKEN_STEPS = 20 }; /* to add one and look the n-gram up */

static void count_row(row_walk *w)
{
    const tfidf *t = w->t;
    for (int64_t step = 1; step <= w->length && step - 1 <= t->skips; step++) {
        for (int64_t start = 0; start < w->length; start++) {
            ort_strbuf_clear(&w->key);
            int64_t at = start;
            for (int64_t n = 1; n <= t->max && at < w->length; n++, at += step) {
                if (ort_pace_over(&w->pace, TOKEN_STEPS + w->key.length / 8))
                    return;
                append_token(w, at);
                if (n < t->min || (n == 1 && step > 1))
                    continue;
                const ort_hashmap_entry *e = look_up(t, ort_strbuf_text(&w->key), w->key.length);
                if (e)
                    w->out[e->value] += 1.0f;
            }
        }
    }
}

static void weigh_row(const tfidf *t, float *out)
{
    if (t->mode == MODE_TF)
        return;
    for (int64_t i = 0; i < t->columns; i++) {
        float weight = t->weights.count ? t->weights.ptr[i] : 1.0f;
        out[i] = t->mode == MODE_IDF ? (out[i] > 0 ? weight : 0.0f) : out[i] * weight;
    }
}

static ort_status tfidf_run(ort_call *call, ort_error *err)
{
    const tfidf *t = call->state;
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0);
    int rank = x->shape.rank;
    if (y->shape.rank < 1 || y->shape.dim[y->shape.rank - 1] != t->columns || rank < 1 ||
        rank > 2 || (x->dtype == ORT_DTYPE_STRING) != t->strings)
        return ort_call_fail(call, err, "input X must be [C] or [N, C] of the pool's type");
    int64_t rows = rank == 2 ? x->shape.dim[0] : 1;
    row_walk w = {.t = t, .x = x, .length = x->shape.dim[rank - 1]};
    for (int64_t r = 0; r < rows; r++) {
        w.out = (float *)y->data + r * t->columns;
        w.first = r * w.length;
        memset(w.out, 0, (size_t)t->columns * sizeof *w.out);
        count_row(&w);
        weigh_row(t, w.out);
    }
    bool failed = w.key.failed;
    ort_strbuf_release(&w.key);
    return failed ? ort_error_memory(err, 4096) : ORT_OK;
}

static const ort_op_impl tfidf_impl = {
    .state = sizeof(tfidf), .bind = tfidf_bind, .infer = tfidf_infer, .prepare = tfidf_prepare,
    .run = tfidf_run,
};

/* ---- rows */

const ort_op ort_ops_tfidf[] = {
    {ONNX, "TfIdfVectorizer", 9, "X:T -> Y:T1",
     "T:str,i32,i64 T1:f32",
     "max_gram_length:i! max_skip_count:i! min_gram_length:i! mode:s! ngram_counts:is! "
     "ngram_indexes:is! pool_int64s:is pool_strings:ss weights:fs", 0, &tfidf_impl},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
