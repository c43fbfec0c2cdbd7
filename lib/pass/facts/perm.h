/* perm.h - permutations of axes, as Transpose has them: y = Transpose(x, p) has
 * y.dim[i] = x.dim[p.to[i]]. */
#ifndef ORT_PASS_TRANSPOSE_PERM_H
#define ORT_PASS_TRANSPOSE_PERM_H

#include "op/edit.h"

typedef struct ort_perm {
    int rank;
    int to[ORT_MAX_RANK];
} ort_perm;

bool ort_perm_equal(const ort_perm *a, const ort_perm *b);
bool ort_perm_is_identity(const ort_perm *p);
ort_perm ort_perm_identity(int rank);
ort_perm ort_perm_inverse(const ort_perm *p);
/* Transpose by `first`, then by `second`, as one. */
ort_perm ort_perm_then(const ort_perm *first, const ort_perm *second);
/* Of a Transpose node, whose input's rank may be unknown; false when it can't be known, or when
 * what the node says is no permutation. */
bool ort_perm_of_node(const ort_graph *graph, const ort_node *node, ort_perm *perm);

/* v = Transpose(v', p). What is left of p when these axes of v go, and their places in v'. */
ort_perm ort_perm_without(const ort_perm *p, const int64_t *axes, int count);
/* New axes of 1, at `axes` of the result, at the same places on both sides. */
ort_perm ort_perm_with(const ort_perm *p, const int64_t *axes, int count);

/* The attribute "perm" of a Transpose; the list it points to is the caller's. */
ort_attr ort_perm_attr(const ort_perm *p, int64_t list[ORT_MAX_RANK]);
/* An initializer v' of a constant v = Transpose(v', p); v may lack leading axes. */
ort_status ort_constant_permuted(ort_graph *graph, ort_id id, const ort_perm *p, ort_id *made,
                                 ort_error *err);
/* The same of a tensor seen in the shape `full`, of as many elements; keep_shape: the result has
 * the tensor's own shape again. */
ort_status ort_tensor_permuted(ort_graph *graph, const char *name, const ort_tensor *from,
                               const ort_shape *full, const ort_perm *p, bool keep_shape,
                               ort_id *made, ort_error *err);

#endif
