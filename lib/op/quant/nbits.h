/* nbits.h - the state of MatMulNBits: weights of 2 to 8 bits in blocks, as models have them and
 * packed. */
#ifndef ORT_OP_QUANT_NBITS_H
#define ORT_OP_QUANT_NBITS_H

#include "op/op.h"

/* Inputs of a weight, from its first one on. */
enum { ORT_NBITS_B, ORT_NBITS_SCALES, ORT_NBITS_ZERO, ORT_NBITS_GROUP, ORT_NBITS_BIAS,
       ORT_NBITS_INPUTS };

typedef struct ort_nbits_state {
    int at; /* the input of its B; scales, zero_points, g_idx and bias follow */
    int64_t k, n, block, bits, blocks;
    int64_t accuracy; /* accuracy_level: 4 allows fixed point of one byte */
    bool prepacked;
    const float *scale, *zero; /* [N][blocks] from constants; zero NULL: the middle of the range */
    const float *bias;
    ort_nbits packed; /* what doesn't change with A; words NULL: B isn't packed */
    bool scales_round; /* are 0, or within what nbits_rounded takes */
    bool zero_is_middle, reordered; /* reordered: g_idx says which block's scale a row of K has */
} ort_nbits_state;

/* Bytes of a block of B; rows of packed zero points begin at whole bytes, too. */
int64_t ort_nbits_code_bytes(int64_t codes, int64_t bits);
/* Codes follow each other bit by bit, the first in the low bits. */
unsigned ort_nbits_code_at(const uint8_t *codes, int64_t index, int64_t bits);
/* Zero points as floats: given as T, or packed `bits` each with rows of whole bytes. */
void ort_nbits_unpack_zeros(const ort_nbits_state *s, const ort_tensor *zero, float *out);

/* s->packed and what goes with it, if all that is packed is constant. */
ort_status ort_nbits_pack(ort_prep *p, ort_nbits_state *s, ort_error *err);

#endif
