/* shuffle.h - lanes of two vectors in a constant order, for gcc (as clang from 12 on) and clang.
 *
 * ORT_SHUFFLE(a, b, i, j, ...), of vectors of 16 bytes: the lanes of a and b side by side that the
 * constants number, as many as a vector has lanes. */
#ifndef ORT_BASE_SHUFFLE_H
#define ORT_BASE_SHUFFLE_H

#if defined __clang__ || __GNUC__ >= 12
#define ORT_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#include <stdint.h>
typedef int32_t ort_lanes32 __attribute__((vector_size(16)));
typedef int16_t ort_lanes16 __attribute__((vector_size(16)));
typedef int8_t ort_lanes8 __attribute__((vector_size(16)));
/* The order is a vector of integers as wide as the lanes. */
#define ORT_SHUFFLE(a, b, ...)                                                                     \
    __builtin_shuffle(a, b,                                                                        \
                      (__typeof__(__builtin_choose_expr(                                           \
                          sizeof((a)[0]) == 4, (ort_lanes32){0},                                   \
                          __builtin_choose_expr(sizeof((a)[0]) == 2, (ort_lanes16){0},             \
                                                (ort_lanes8){0})))){__VA_ARGS__})
#endif

#endif
