/* word_embedding.c - com.microsoft WordConvEmbedding: a vector per word, from its characters.
 *
 * Sequence [words, letters] of character numbers, 0 behind the end of a word; W [filters, 1, width,
 * size]; B [filters]; C [characters, size]. Filter f slides over the embedded characters of a word;
 * Y[word][f] is the most of tanh(sum + B[f]). A word shorter than `width` is filled with character
 * 0; a word without characters is 0, where onnxruntime leaves memory as it was.
 */
#include <math.h>
#include <string.h>

#include "op/op.h"

typedef struct word_sizes {
    int64_t words, letters, filters, width, size, characters;
} word_sizes;

/* Characters of a word that count, 0 when its first one is 0. */
static int64_t word_length(const int32_t *word, int64_t letters)
{
    int64_t length = 0;
    for (int64_t i = 0; letters > 0 && word[0] > 0 && i < letters; i++)
        length += word[i] > 0;
    return length;
}

static float slide(const word_sizes *z, const int32_t *word, const float *w, float bias,
                   const float *c, int64_t length)
{
    float most = -INFINITY;
    int64_t steps = (length > z->width ? length : z->width) - z->width + 1;
    for (int64_t at = 0; at < steps; at++) {
        float sum = 0;
        for (int64_t i = 0; i < z->width; i++)
            for (int64_t e = 0; e < z->size; e++)
                sum += w[i * z->size + e] * c[word[at + i] * z->size + e];
        most = fmaxf(most, sum + bias);
    }
    return tanhf(most); /* tanh rises: the most of its arguments gives its most */
}

static ort_status read_sizes(const ort_call *call, word_sizes *z, ort_error *err)
{
    const ort_shape *x = &ort_call_in(call, 0)->shape, *w = &ort_call_in(call, 1)->shape;
    const ort_shape *c = &ort_call_in(call, 3)->shape;
    *z = (word_sizes){x->dim[0], x->dim[1], w->dim[0], w->dim[2], w->dim[3], c->dim[0]};
    int64_t filters = ort_node_int(call->node, "embedding_size", z->filters);
    int64_t width = ort_node_int(call->node, "conv_window_size", z->width);
    int64_t size = ort_node_int(call->node, "char_embedding_size", z->size);
    if (w->dim[1] != 1 || c->dim[1] != z->size || filters != z->filters || width != z->width ||
        size != z->size || ort_tensor_count(ort_call_in(call, 2)) != z->filters || z->width < 1 ||
        z->letters < z->width)
        return ort_call_fail(call, err, "its sequence, weights, bias and embedding don't fit one "
                             "another or the attributes; words need at least %lld letters",
                             (long long)z->width);
    const int32_t *letters = ort_call_in(call, 0)->data;
    for (int64_t i = 0; i < z->words * z->letters; i++)
        if (letters[i] < 0 || letters[i] >= z->characters)
            return ort_call_fail(call, err, "character %d of word %lld is outside of the %lld "
                                 "embedded ones", (int)letters[i], (long long)(i / z->letters),
                                 (long long)z->characters);
    return ORT_OK;
}

static ort_status word_run(ort_call *call, ort_error *err)
{
    word_sizes z;
    ORT_TRY(read_sizes(call, &z, err));
    const int32_t *letters = ort_call_in(call, 0)->data;
    const float *w = ort_call_in(call, 1)->data, *bias = ort_call_in(call, 2)->data;
    const float *c = ort_call_in(call, 3)->data;
    float *y = ort_call_out(call, 0)->data;
    for (int64_t i = 0; i < z.words; i++) {
        const int32_t *word = letters + i * z.letters;
        int64_t length = word_length(word, z.letters);
        for (int64_t f = 0; f < z.filters; f++)
            y[i * z.filters + f] = length ? slide(&z, word, w + f * z.width * z.size, bias[f], c,
                                                  length) : 0.0f;
    }
    return ORT_OK;
}

static const ort_op_impl word_impl = {.rule = "[N,_] [C,_,_,_] - [_,_] -> [N,C]", .run = word_run};

const ort_op ort_ops_word_embedding[] = {
    {MS, "WordConvEmbedding", 1, "Sequence:T,W:T1,B:T1,C:T1 -> Y:T1", "T:i32 T1:f32",
     "char_embedding_size:i conv_window_size:i embedding_size:i", 0, &word_impl},
    {0},
};
