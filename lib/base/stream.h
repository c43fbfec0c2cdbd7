/* stream.h - copies past the caches: of what is written once and read much later.
 *
 * An ordinary store reads its line first, and drops another one that somebody needs. Packing the
 * weights of a session by these takes half of the time.
 */
#ifndef ORT_BASE_STREAM_H
#define ORT_BASE_STREAM_H

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* `to` and `bytes` are multiples of 16; `from` is aligned for nothing. Lines should be written
 * whole, and one after the other. */
static inline void ort_stream(void *to, const void *from, size_t bytes)
{
#if defined(__SSE2__)
    char *out = to;
    const char *in = from;
    for (const char *end = in + bytes; in < end; in += sizeof(__m128i), out += sizeof(__m128i))
        _mm_stream_si128((__m128i *)(void *)out,
                         _mm_loadu_si128((const __m128i *)(const void *)in));
#else
    memcpy(to, from, bytes);
#endif
}

/* Behind the last of a task: other threads see them from here on. */
static inline void ort_stream_end(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* `count` stretches of memory, `step` bytes apart, are wanted in the second-level cache soon. */
static inline void ort_stream_ahead(const char *at, int64_t count, int64_t step, int64_t bytes)
{
    const int64_t line = 64;
    for (int64_t i = 0; i < count; i++, at += step)
        for (int64_t k = 0; k < bytes; k += line)
            __builtin_prefetch(at + k, 0, 2);
}

#endif
