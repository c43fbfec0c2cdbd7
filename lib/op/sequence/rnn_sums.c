/* rnn_sums.c - sums of products of codes become floats (rnn_sums.h). */
#include "op/sequence/rnn_sums.h"

void ort_rnn_scale_sums(void *arg, const ort_integer_tile *t)
{
    const ort_rnn_scaling *s = arg;
    float scale[ORT_INTEGER_COLUMNS];
    s->k->math.binary[ORT_BINARY_MUL](s->columns + t->column, &s->scale, scale, (size_t)t->n,
                                      ORT_FORM_VS);
    for (int64_t i = 0; i < t->m; i++) {
        float *c = s->c + (t->row + i) * s->ldc + t->column;
        s->k->gemm.scale_i32(t->n, t->sums + i * t->ld, scale,
                             s->bias ? s->bias + t->column : s->add ? c : NULL, c);
    }
}
