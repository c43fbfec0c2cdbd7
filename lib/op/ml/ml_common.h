/* ml_common.h - what the ai.onnx.ml families share: class labels, post transforms, rows as doubles.
 *
 * ONNX ML leaves the two-class conventions open; these are onnxruntime's: a single score s for two
 * classes becomes [1 - s, s] when the model's weights are all positive (s is a probability), else
 * [-s, s] before the post transform.
 */
#ifndef ORT_OP_ML_ML_COMMON_H
#define ORT_OP_ML_ML_COMMON_H

#include "op/op.h"

typedef enum ort_ml_post {
    ORT_ML_NONE,
    ORT_ML_SOFTMAX,
    ORT_ML_LOGISTIC,
    ORT_ML_SOFTMAX_ZERO,
    ORT_ML_PROBIT,
} ort_ml_post;
#define ORT_ML_POST_WORDS "NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT"

typedef struct ort_ml_labels { /* one of the two, or neither (class numbers) */
    const int64_t *ints;
    const ort_string *strings;
    size_t count;
} ort_ml_labels;

ort_ml_labels ort_ml_read_labels(const ort_node *node, const char *ints, const char *strings);
/* Store the label of class `index` at element `row` of the label output. */
void ort_ml_set_label(const ort_ml_labels *labels, ort_tensor *out, int64_t row, int64_t index);
/* In place over `count` scores of one row. */
void ort_ml_post_row(ort_ml_post post, double *scores, int64_t count);
double ort_ml_logistic(double x);
double ort_ml_probit(double p);
/* Elements [first, first + count) of a numeric tensor as doubles. */
void ort_ml_load_row(const ort_tensor *t, int64_t first, int64_t count, double *out);
/* Rows and features of an input [N, F], or [F] as one row. */
void ort_ml_rows(const ort_tensor *t, int64_t *rows, int64_t *features);

/* Inference: output 0 labels [N], output 1 scores [N, classes]; -1 classes: unknown. */
ort_status ort_ml_infer_classifier(ort_infer *x, const ort_ml_labels *labels, int64_t classes,
                                   ort_error *err);
/* Inference: output 0 float (or `dtype`) [N, columns]. */
ort_status ort_ml_infer_rows(ort_infer *x, int64_t columns, ort_error *err);

#endif
