/* weights.h - ort_weights of ort_tools.h: weights of a few bits in blocks; what is multiplied by
 * them stays float.
 *
 * Readers are the nodes that would take a weight in codes; a weight that several of them read is
 * quantized and stored once. Weights are quantized one after the other, each by all threads, and
 * leave memory again before the next.
 */
#ifndef ORT_QUANTIZE_WEIGHTS_H
#define ORT_QUANTIZE_WEIGHTS_H

#include "exec/env.h"
#include "exec/session.h"
#include "quantize/shares.h"
#include "quantize/weights/moments.h"
#include "quantize/weights/block_store.h"

typedef struct ort_weight {
    ort_graph *graph;
    ort_id id;        /* the constant */
    ort_id input;     /* what is multiplied by it first, or ORT_ID_NONE: a table alone */
    bool turned;      /* the matrix has a row for each column of the product */
    bool has_product, has_table, done;
    ort_block_matrix shape;
    const float *importance; /* [K] what errors of rows weigh, or NULL: alike */
    size_t moments;   /* of the input, among those of the object; SIZE_MAX: none */
    ort_id codes, scales, zeros; /* what was written */
    ort_id rows, value; /* the same as rows of a table; dequantized (QDQ); or ORT_ID_NONE */
    size_t bytes, made_bytes;
} ort_weight;

typedef struct ort_weight_reader {
    ort_graph *graph;
    ort_node *node;
    const char *name, *op_type;
    bool table;
    size_t weight;   /* among those of the object; SIZE_MAX: none */
    const char *why; /* it stays as it is; or NULL */
} ort_weight_reader;

struct ort_weights {
    ort_env *env;    /* borrowed */
    ort_arena arena; /* names of readers, which outlive the model */
    ort_weights_options options;
    ort_model *model; /* a copy; NULL once it was handed out */
    ORT_VEC(ort_weight) weights;
    ORT_VEC(ort_weight_reader) readers;
    ort_moments moments; /* of GPTQ and AWQ */
    ort_shares shares;
};

ort_status ort_low_bits_make(ort_env *env, const ort_model *model,
                            const ort_weights_options *options, ort_weights **weights,
                            ort_error *err);
ort_status ort_low_bits_observe(ort_weights *w, ort_value *const *inputs, size_t count,
                                ort_error *err);
ort_status ort_low_bits_write(ort_weights *w, ort_model **model, ort_error *err);
void ort_low_bits_release(ort_weights *w);

/* Does its method take samples? */
static inline bool ort_low_bits_sampled(const ort_weights *w)
{
    return w->options.method == ORT_WEIGHTS_GPTQ || w->options.method == ORT_WEIGHTS_AWQ;
}

/* weights_find.c: fills readers and weights. */
ort_status ort_low_bits_find(ort_weights *w, ort_error *err);
/* weights_edit.c: nodes on codes in place of the readers of weights that are done. */
ort_status ort_low_bits_edit(ort_weights *w, ort_error *err);

#endif
