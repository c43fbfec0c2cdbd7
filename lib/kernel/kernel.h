/* kernel.h - the function table of one instruction-set tier.
 *
 * Kernels take raw pointers and counts in elements; they know no tensor, thread, allocation or
 * error. The scalar tier fills the whole table; each better tier overrides what it has. Groups:
 * gemm.h (matrix products, convolution, depthwise, pooling, integer products), vmath.h (elementwise
 * functions, reductions, softmax, normalization, conversions), codes.h (8-bit codes), blocked.h
 * (convolution and pooling in the blocked channel layout), blocked_bytes.h (quantized convolution
 * in that of bytes) and grids.h (weights of a few bits).
 */
#ifndef ORT_KERNEL_KERNEL_H
#define ORT_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/blocked.h"
#include "kernel/blocked_bytes.h"
#include "kernel/codes.h"
#include "kernel/gemm.h"
#include "kernel/grids.h"
#include "kernel/vmath.h"

typedef struct ort_kernels {
    const char *isa; /* "scalar", "avx2", .. */
    ort_gemm_kernels gemm;
    ort_vmath_kernels math;
    ort_code_kernels codes;
    ort_blocked_kernels blocked8, blocked16;
    ort_bytes_kernels bytes;
    ort_grid_kernels grids;
    int block; /* 8 or 16: the block of channels that this tier is best at */
    bool narrows; /* blocks of 8 take half the time of those of 16 on this machine */
} ort_kernels;

typedef struct ort_kernel_tier {
    const char *name;
    bool (*has)(void);                 /* can this machine run it? */
    void (*plug_gemm)(ort_gemm_kernels *table);   /* overrides over the tier below */
    void (*plug_math)(ort_vmath_kernels *table);
    void (*plug_codes)(ort_code_kernels *table);
    void (*plug_blocked)(ort_blocked_kernels *of8, ort_blocked_kernels *of16);
    void (*plug_bytes)(ort_bytes_kernels *table);
    void (*plug_grids)(ort_grid_kernels *table);
    int block;
    const char *over; /* the tier below; NULL: the one before in the list */
    bool untried;     /* no machine at hand has run it: only by its name */
} ort_kernel_tier;

/* Tiers, worst first, then the untried ones; NULL past the end. */
const ort_kernel_tier *ort_kernel_tier_at(int index);
/* The table of a tier and all below it; "" or NULL: the best that was tried. NULL when the name
 * is unknown or the machine lacks it. Tables are const and shared.
 *
 * Two names are no tiers of their own: "common" gives the same bits on every machine with AVX2, on
 * vectors as wide as the machine has, and "common256" gives these bits on 256 bits, for tests. */
const ort_kernels *ort_kernels_get(const char *isa);

#endif
