/* matrix_epilogue.c - what follows matrix products, for those of floats and of tiles alike. */
#include <math.h>

#include "op/shared/matrix_tiles.h"

ort_epilogue ort_epilogue_none(void)
{
    return (ort_epilogue){.alpha = 1.0f, .lo = -INFINITY, .hi = INFINITY, .act = -1};
}

/* One row that is added to all is a matrix whose rows are 0 apart: micro tiles add that from their
 * registers, and write other epilogues through memory. */
ort_epilogue ort_matrix_plainer(const ort_epilogue *e)
{
    ort_epilogue plain = *e;
    if (e->add || !e->col_bias)
        return plain;
    plain.add = e->col_bias;
    plain.ldadd = 0;
    plain.col_bias = NULL;
    return plain;
}

void ort_matrix_activate(const ort_kernels *k, int64_t m, int64_t n, float *c, int64_t ldc,
                           const ort_epilogue *e)
{
    if (e->act < 0)
        return;
    ort_unary_fn *fn = k->math.unary[e->act];
    for (int64_t i = 0; i < m; i++)
        fn(c + i * ldc, c + i * ldc, (size_t)n, e->act_a, e->act_b);
}
