/* checked.h - sizes that come from a model are hostile: products and sums with overflow checks. */
#ifndef ORT_BASE_CHECKED_H
#define ORT_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool ort_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool ort_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool ort_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool ort_add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline size_t ort_round_up(size_t n, size_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}
static inline int64_t ort_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ort_max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
