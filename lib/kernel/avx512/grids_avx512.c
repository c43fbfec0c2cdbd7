/* grids_avx512.c - grids of blocks of the AVX-512 tier. */
#include "kernel/grids.h"

#include <immintrin.h>

enum { WIDE = 16 };
typedef float vec __attribute__((vector_size(WIDE * sizeof(float))));
typedef int32_t ivec __attribute__((vector_size(WIDE * sizeof(int32_t))));

static inline vec larger(vec a, vec b)
{
    return (vec)_mm512_max_ps((__m512)a, (__m512)b);
}

static inline vec less(vec a, vec b)
{
    return (vec)_mm512_min_ps((__m512)a, (__m512)b);
}

#include "kernel/grids.inc"

void ort_grid_plug_avx512(ort_grid_kernels *table)
{
    *table = grid_table;
}
