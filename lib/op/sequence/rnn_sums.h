/* rnn_sums.h - sums of products of codes as gates of a recurrence. */
#ifndef ORT_OP_SEQUENCE_RNN_SUMS_H
#define ORT_OP_SEQUENCE_RNN_SUMS_H

#include "op/shared/integer.h"

typedef struct ort_rnn_scaling {
    const ort_kernels *k;
    float scale;          /* of what is multiplied */
    const float *columns; /* scale of each column of weights */
    const float *bias;    /* per column; NULL: what c holds, if `add` */
    bool add;
    float *c;
    int64_t ldc;
} ort_rnn_scaling;

/* c = sums * scale * that of the column + bias: an ort_integer_finish of an ort_rnn_scaling. */
void ort_rnn_scale_sums(void *arg, const ort_integer_tile *t);

#endif
