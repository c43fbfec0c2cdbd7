/* contract.h - what kernels may rely on of the memory they are given, as their asserts ask it.
 * Builds for release never call these. */
#ifndef ORT_KERNEL_CONTRACT_H
#define ORT_KERNEL_CONTRACT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Elements from the first to the last of `rows` rows of n, `step` from one to the next. */
static inline size_t ort_kernel_extent(int64_t rows, int64_t n, int64_t step)
{
    return rows > 0 && n > 0 ? (size_t)((rows - 1) * step + n) : 0;
}

/* No byte lies in both. */
static inline bool ort_kernel_apart(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a_bytes == 0 || b_bytes == 0 || (x < y ? y - x >= a_bytes : x - y >= b_bytes);
}

/* n elements of each: in one place when they are equally large, or apart (vmath.h). */
static inline bool ort_kernel_may_share(const void *in, size_t in_size, const void *out,
                                        size_t out_size, size_t n)
{
    return (in == out && in_size == out_size) ||
           ort_kernel_apart(in, n * in_size, out, n * out_size);
}

/* In a probe: the compiler forgets what it knows of a vector. */
#if defined(__x86_64__)
#define ORT_KERNEL_KEEP(v) "+v"(v)
#else
#define ORT_KERNEL_KEEP(v) "+w"(v)
#endif

#endif
