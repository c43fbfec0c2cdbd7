/* rotary.h - rotation of one head's elements by position. */
#ifndef ORT_OP_SEQUENCE_ROTARY_H
#define ORT_OP_SEQUENCE_ROTARY_H

#include <stdbool.h>
#include <stdint.h>

/* out[0 .. 2 * half) = in rotated by the angles whose cos and sin hold `half` values each. Pairs
 * are neighbours when interleaved, else element i and i + half. out may be in when interleaved or
 * not: each pair is read before it is written. */
void ort_rotary_rotate(const float *in, const float *cos, const float *sin, int64_t half,
                       bool interleaved, float *out);

#endif
