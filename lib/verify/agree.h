/* agree.h - when two values count as the same result of two models. */
#ifndef ORT_VERIFY_AGREE_H
#define ORT_VERIFY_AGREE_H

#include "tensor/tensor.h"

/* What makes 16-bit types coarser than float in a tolerance. */
#define ORT_AGREE_NARROW 1024
/* As far as that goes: what it makes of the usual 1e-4. Beyond, any two values would agree. */
#define ORT_AGREE_NARROW_MOST (1024 * 1e-4)

/* A float tensor, or a sequence or map of such. */
bool ort_agree_is_float(const ort_value *value);
/* A tensor without elements, a sequence or map without items. */
bool ort_agree_is_empty(const ort_value *value);
/* Largest finite magnitude among its elements, those of all items; -1 when there is none. */
double ort_agree_magnitude(const ort_value *value);
typedef struct ort_agreement {
    double tolerance, atol;
    double codes; /* the second model computes on codes what the first does in float; or 0 */
} ort_agreement;

/* |a - b| <= atol + tolerance * (max |a| + |a|), with ORT_AGREE_NARROW times the tolerance (up to
 * ORT_AGREE_NARROW_MOST) where either is of 16 bits, or `codes` for it when that is more; bytes
 * within codes * 255; other integers, strings and bools exactly. Float tensors of two types are
 * compared as double. Items of sequences and maps share the max |a| of the whole. */
ort_status ort_agree_compare(const ort_value *a, const ort_value *b, const ort_agreement *how,
                             ort_difference *difference, ort_error *err);

#endif
