/* rnn_prepare.h - what the prepared weights of recurrences (rnn_prepare.c) and their runs (rnn.c)
 * both know.
 */
#ifndef ORT_OP_SEQUENCE_RNN_PREPARE_H
#define ORT_OP_SEQUENCE_RNN_PREPARE_H

#include "op/sequence/rnn_common.h"

/* Inputs. Those of the initial cell and peepholes exist for LSTM only; those from W_SCALE on where
 * weights are codes, the last two of them where X is codes as well. */
enum { ORT_RNN_X, ORT_RNN_W, ORT_RNN_R, ORT_RNN_B, ORT_RNN_LENS, ORT_RNN_H, ORT_RNN_C, ORT_RNN_P,
       ORT_RNN_W_SCALE, ORT_RNN_W_ZERO, ORT_RNN_R_SCALE, ORT_RNN_R_ZERO, ORT_RNN_X_SCALE,
       ORT_RNN_X_ZERO };

/* Variants of operators. */
enum { ORT_RNN_OP_LSTM, ORT_RNN_OP_GRU, ORT_RNN_OP_RNN, ORT_RNN_DYNAMIC_LSTM, ORT_RNN_CODED_LSTM,
       ORT_RNN_CODED_GRU, ORT_RNN_CODED_RNN };

ort_rnn_kind ort_rnn_kind_of(const ort_op *op);
bool ort_rnn_has_shape(const ort_tensor *t, int rank, int64_t a, int64_t b, int64_t c);
/* I, H and the rest from W and R; which of the weights has a wrong shape: its slot, or -1. */
int ort_rnn_weight_sizes(const ort_rnn *rnn, const ort_rnn_source *w, ort_rnn_sizes *s);
ort_status ort_rnn_prepare(ort_prep *p, ort_error *err);

#endif
