/* map.cl - elements moved between strides of their own for each of six axes, norms of inference,
 * halves as floats and back. */

#define MOVE_NUMBERS(X)                                                                            \
    X(int, n0) X(int, n1) X(int, n2) X(int, n3) X(int, n4) X(int, n5) X(int, x0) X(int, x1)        \
    X(int, x2) X(int, x3) X(int, x4) X(int, x5) X(int, y0) X(int, y1) X(int, y2) X(int, y3)        \
    X(int, y4) X(int, y5) X(int, from) X(int, to) X(int, count)
typedef struct {
    MOVE_NUMBERS(MEMBER)
} move_numbers;

/* Where row r of the walk begins: p in the one operand, q in the other. */
#define FIND_ROW(r, p, q)                                                                          \
    do {                                                                                           \
        int i_ = r, j_;                                                                            \
        j_ = i_ % n4; p += j_ * x4; q += j_ * y4; i_ /= n4;                                        \
        j_ = i_ % n3; p += j_ * x3; q += j_ * y3; i_ /= n3;                                        \
        j_ = i_ % n2; p += j_ * x2; q += j_ * y2; i_ /= n2;                                        \
        j_ = i_ % n1; p += j_ * x1; q += j_ * y1; i_ /= n1;                                        \
        p += i_ * x0; q += i_ * y0;                                                                \
    } while (0)

/* Elements with strides of their own on both sides. */
#define MOVE(name, type)                                                                           \
    __kernel void name(__global const type *in, __global type *out, move_numbers numbers)          \
    {                                                                                              \
        MOVE_NUMBERS(OWN)                                                                          \
        int i = get_global_id(0) * SPAN, end = min(i + SPAN, count);                               \
        while (i < end) {                                                                          \
            int row = i / n5, at = i % n5, p = from + at * x5, q = to + at * y5;                   \
            int stop = min(end, i + n5 - at);                                                      \
            FIND_ROW(row, p, q);                                                                   \
            if (x5 == 1 && y5 == 1)                                                                \
                for (; i < stop; i++)                                                              \
                    out[q++] = in[p++];                                                            \
            for (; i < stop; i++, p += x5, q += y5)                                                \
                out[q] = in[p];                                                                    \
        }                                                                                          \
    }
MOVE(move, cell)
MOVE(move_bytes, uchar)

#define JOIN_NUMBERS(X)                                                                            \
    X(int, n0) X(int, n1) X(int, n2) X(int, n3) X(int, n4) X(int, n5) X(int, at0) X(int, at1)      \
    X(int, at2) X(int, at3) X(int, at4) X(int, at5) X(int, rows) X(int, row_step) X(int, step)     \
    X(int, high) X(int, wide)
typedef struct {
    JOIN_NUMBERS(MEMBER)
} join_numbers;
#define JOIN_FROM(i)                                                                               \
    if (get_global_id(2) == i) {                                                                   \
        in = in##i;                                                                                \
        n = n##i;                                                                                  \
        at = at##i;                                                                                \
    }

/* Rows of up to six operands, of n elements each, behind one another in the rows of one; an item
 * moves `wide` elements of `high` rows. row_step 1: the result is turned, its rows are columns. */
__kernel void join(__global const cell *in0, __global const cell *in1, __global const cell *in2,
                   __global const cell *in3, __global const cell *in4, __global const cell *in5,
                   __global cell *out, join_numbers numbers)
{
    JOIN_NUMBERS(OWN)
    __global const cell *in = in0;
    int n = n0, at = at0, first = (int)get_global_id(0) * wide, row = (int)get_global_id(1) * high;
    JOIN_FROM(1)
    JOIN_FROM(2)
    JOIN_FROM(3)
    JOIN_FROM(4)
    JOIN_FROM(5)
    int end = min(first + wide, n), last = min(row + high, rows);
    out += (size_t)at * step;
    for (int r = row; step == 1 && r < last; r++)
        for (int i = first; i < end; i++)
            out[(size_t)r * row_step + i] = in[(size_t)r * n + i];
    for (int i = first; step != 1 && i < end; i++)
        for (int r = row; r < last; r++)
            out[(size_t)i * step + (size_t)r * row_step] = in[(size_t)r * n + i];
}

/* (x - mean) / sqrt(variance + epsilon) * scale + bias by channel; items share a plane. */
__kernel void batch_norm(__global const real *x, __global const real *scale,
                         __global const real *bias, __global const real *mean,
                         __global const real *variance, __global real *out, int channels,
                         int plane, float epsilon)
{
    int c = get_global_id(1) % channels;
    size_t at = get_global_id(1) * plane;
    float factor = AT(scale, c) / sqrt(AT(variance, c) + epsilon);
    float middle = AT(mean, c), shift = AT(bias, c);
    ALONG(i, plane)
        PUT(out, at + i, (AT(x, at + i) - middle) * factor + shift);
}

/* x * scale + bias by channel; items share a plane. */
__kernel void scale_planes(__global const real *x, __global const float *bias, __global real *out,
                           int channels, int plane, float scale)
{
    size_t at = get_global_id(1) * plane;
    float shift = bias[get_global_id(1) % channels];
    ALONG(i, plane)
        PUT(out, at + i, AT(x, at + i) * scale + shift);
}

#if HALF
/* From one form of a value to the other. */
__kernel void narrow(__global const float *in, __global half *out, int count)
{
    int i = get_global_id(0) * SPAN, end = min(i + SPAN, count);
#if LANES
    for (; i + LANES <= end; i += LANES)
        HALF_STORE(LOAD(in + i), out + i);
#endif
    for (; i < end; i++)
        HALF_PUT(out, i, in[i]);
}

__kernel void widen_all(__global const half *in, __global float *out, int count)
{
    int i = get_global_id(0) * SPAN, end = min(i + SPAN, count);
#if LANES
    for (; i + LANES <= end; i += LANES)
        STORE(HALF_LOAD(in + i), out + i);
#endif
    for (; i < end; i++)
        out[i] = HALF_AT(in, i);
}
#endif
