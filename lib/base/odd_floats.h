/* odd_floats.h - are floats in a row ordinary numbers? */
#ifndef ORT_BASE_ODD_FLOATS_H
#define ORT_BASE_ODD_FLOATS_H

#include <stdint.h>
#include <string.h>

/* The top bit is set where the exponent is that of no finite number or one of the `spare` greatest
 * of them. Files align no weights. */
static inline uint32_t ort_odd_mark(const char *from, uint32_t spare)
{
    const uint32_t exponent = 0x7f800000u;
    uint32_t bits;
    memcpy(&bits, from, sizeof bits);
    return (bits & exponent) + ((spare + 1) << 23);
}

/* The marks of all. Bound by memory: a loop of a constant length becomes vectors. */
static inline uint32_t ort_odd_marks(const char *from, int64_t count, uint32_t spare)
{
    enum { PIECE = 64 };
    uint32_t marks = 0;
    int64_t i = 0;
    for (; i + PIECE <= count; i += PIECE)
        for (int64_t k = 0; k < PIECE; k++)
            marks |= ort_odd_mark(from + (i + k) * (int64_t)sizeof(float), spare);
    for (; i < count; i++)
        marks |= ort_odd_mark(from + i * (int64_t)sizeof(float), spare);
    return marks;
}

#endif
