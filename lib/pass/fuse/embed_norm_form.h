/* embed_norm_form.h - the normalized sum of embeddings as one operator of com.microsoft. */
#ifndef ORT_PASS_ATTENTION_EMBED_NORM_FORM_H
#define ORT_PASS_ATTENTION_EMBED_NORM_FORM_H

#include "pass/fuse/skip_norm.h"

enum { ORT_EMBED_WORDS, ORT_EMBED_PLACES, ORT_EMBED_SEGMENTS, ORT_EMBED_TERMS };

typedef struct ort_embed_term { /* rows of a constant table [R,H] */
    ort_id table;
    ort_id index; /* int32 or int64, [B,S] (places: [1,S] as well); ORT_ID_NONE: rows 0..S-1 */
} ort_embed_term;

typedef struct ort_embedding {
    ort_embed_term terms[ORT_EMBED_TERMS]; /* table ORT_ID_NONE: there is none */
    ort_id row;                            /* [H] that all tokens get as well, or ORT_ID_NONE */
    ort_node *adds[2];                     /* that give the sum */
    int add_count;
} ort_embedding;

/* Is norm->sum (of last dim H) one of two or three embeddings, and may the operator be written?
 * Else false, with a note on `node` when it is nearly so. */
bool ort_embed_norm_read(const ort_pass_context *context, const ort_node *node,
                         const ort_skip_norm *norm, ort_embedding *e);
/* Writes the operator in the place of `node`, the normalization, which must have gone; its result
 * is `output`. The sum itself stays when others read it. A gamma or beta that norm hasn't is
 * made. */
ort_status ort_embed_norm_write(ort_pass_context *context, const ort_node *node,
                                const ort_embedding *e, const ort_skip_norm *norm, ort_id output,
                                const char *origin, ort_error *err);

#endif
