/* gptq.h - GPTQ (Frantar, Ashkboos, Hoefler, Alistarh 2022): rows of a matrix are rounded one after
 * the other, and those that follow make up for the error so far.
 *
 * What the method needs of H = X^T X (plus a multiple of its diagonal's mean) is its factor
 * H = G^T G with G lower triangular: e being the errors of a column, e^T H e sums the squares of
 *
 *     G[k][k] e[k] + sum over j < k of G[k][j] e[j],
 *
 * so that row k is rounded from w[k] + (sum over j < k of G[k][j] e[j]) / G[k][k], which would make
 * its square 0. That is the rule of the paper, which keeps all rows at their best values and so
 * needs the factor of H's inverse (the same numbers: Chen et al. 2025, "The geometry of LLM
 * quantization").
 */
#ifndef ORT_QUANTIZE_GPTQ_H
#define ORT_QUANTIZE_GPTQ_H

#include "quantize/weights/block_store.h"
#include "quantize/weights/moments.h"

/* G takes the place of H in moment->sum. ordered: rows go by falling diagonal. */
ort_status ort_gptq_factor(ort_env *env, ort_moment *moment, double damping, bool ordered,
                           ort_error *err);
/* Columns `first` and those behind it, which the matrix holds, into their places in the store: no
 * column's codes depend on another's. Products are those of env's tier, all else has the same bits
 * on each. *infinite: a weight is no finite number, nothing was stored. */
ort_status ort_gptq_quantize(ort_env *env, const ort_grid_kernels *kernels,
                             const ort_moment *moment, const ort_block_matrix *m, int64_t first,
                             ort_block_store *store, bool *infinite, ort_error *err);

#endif
