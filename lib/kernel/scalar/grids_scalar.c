/* grids_scalar.c - grids of blocks on vectors of four, which every x86-64 and every ARMv8 has. */
#include "kernel/grids.h"

enum { WIDE = 4 };
typedef float vec __attribute__((vector_size(WIDE * sizeof(float))));
typedef int32_t ivec __attribute__((vector_size(WIDE * sizeof(int32_t))));

static inline vec larger(vec a, vec b)
{
    const ivec which = a > b;
    return (vec)(((ivec)a & which) | ((ivec)b & ~which));
}

static inline vec less(vec a, vec b)
{
    const ivec which = a < b;
    return (vec)(((ivec)a & which) | ((ivec)b & ~which));
}

#include "kernel/grids.inc"

void ort_grid_plug_scalar(ort_grid_kernels *table)
{
    *table = grid_table;
}
