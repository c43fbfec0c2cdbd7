/* skip_norm.h - a sum and its normalization as one operator of com.microsoft. */
#ifndef ORT_PASS_ATTENTION_SKIP_NORM_H
#define ORT_PASS_ATTENTION_SKIP_NORM_H

#include "pass/pass.h"

typedef struct ort_skip_norm { /* the normalization of `sum` over its last axis */
    ort_id sum, gamma, beta;   /* beta ORT_ID_NONE: none */
    float epsilon;
    bool rms;
} ort_skip_norm;

/* Is it such a node, of ai.onnx? */
bool ort_skip_norm_read(const ort_graph *graph, const ort_node *node, ort_skip_norm *norm);
/* The Add of two tensors of the same shape that the operator could take in; else NULL, with a note
 * on `node` when something is missing. A gamma that is still to be made may be ORT_ID_NONE. */
ort_node *ort_skip_norm_add(const ort_pass_context *context, const ort_node *node,
                            const ort_skip_norm *norm);
/* Writes the operator for this Add, which goes, in the place of `node`, which must have gone; its
 * result is `output`. The sum itself stays when others read it. */
ort_status ort_skip_norm_write(ort_pass_context *context, const ort_node *node, ort_node *add,
                               const ort_skip_norm *norm, ort_id output, const char *origin,
                               ort_error *err);

#endif
