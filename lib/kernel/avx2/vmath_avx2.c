/* vmath_avx2.c - the math kernels of the AVX2 tier: the shared bodies, compiled over this tier's
 * simd.h. */
#include "kernel/vmath.h"

#include <math.h>
#include <string.h>

#include "kernel/avx2/simd.h"

#include "kernel/vmath_math.inc"
#include "kernel/vmath_unary.inc"
#include "kernel/gates.inc"
#include "kernel/vmath_binary.inc"
#include "kernel/vmath_reduce.inc"
#include "kernel/count.inc"
#include "kernel/avx2/bins.inc"
#include "kernel/vmath_convert.inc"
#include "kernel/trees.inc"

void ort_vmath_plug_avx2(ort_vmath_kernels *table)
{
    plug_tier(table);
    table->tree_columns = tree_columns;
    table->tree_exits = tree_exits;
    table->tree_sums = tree_sums;
}
