/* grids_avx2.c - grids of blocks of the AVX2 tier. */
#include "kernel/grids.h"

#include <immintrin.h>

enum { WIDE = 8 };
typedef float vec __attribute__((vector_size(WIDE * sizeof(float))));
typedef int32_t ivec __attribute__((vector_size(WIDE * sizeof(int32_t))));

static inline vec larger(vec a, vec b)
{
    return (vec)_mm256_max_ps((__m256)a, (__m256)b);
}

static inline vec less(vec a, vec b)
{
    return (vec)_mm256_min_ps((__m256)a, (__m256)b);
}

#include "kernel/grids.inc"

void ort_grid_plug_avx2(ort_grid_kernels *table)
{
    *table = grid_table;
}
