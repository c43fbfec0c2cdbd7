/* rnn_float.h - the row functions of the recurrences in float (rnn_core.inc). */
#ifndef ORT_OP_SEQUENCE_RNN_FLOAT_H
#define ORT_OP_SEQUENCE_RNN_FLOAT_H

#include "op/sequence/rnn_common.h"

#define LSTM_GATES(k) (k)->math.lstm_gates
#define GRU_GATES(k) (k)->math.gru_gates

static inline void to_real(const ort_tensor *t, int64_t first, int64_t count, float *out)
{
    ort_tensor_to_f32(t, first, count, out);
}

static inline void act_row(const ort_kernels *k, const ort_rnn_activation *act, float *v, int64_t n)
{
    k->math.unary[act->function](v, v, (size_t)n, act->alpha, act->beta);
}

static inline void clip_row(const ort_kernels *k, float *v, int64_t n, float limit)
{
    k->math.unary[ORT_UNARY_CLIP](v, v, (size_t)n, -limit, limit);
}

static inline void mul_row(const ort_kernels *k, float *y, const float *a, const float *b,
                           int64_t n)
{
    k->math.binary[ORT_BINARY_MUL](a, b, y, (size_t)n, ORT_FORM_VV);
}

static inline void mul_add_row(const ort_kernels *k, float *y, const float *a, const float *b,
                               int64_t n)
{
    k->math.scale_bias(y, a, b, y, (size_t)n);
}

static inline void add_mul_row(const ort_kernels *k, float *y, const float *a, const float *b,
                               int64_t n)
{
    k->math.scale_bias(a, b, y, y, (size_t)n);
}

#endif
