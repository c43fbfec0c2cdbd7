/* map.cl - elements moved between strides of their own for each of six axes, and norms of inference.
 */

#define WALK                                                                                       \
    int n0, int n1, int n2, int n3, int n4, int n5, int x0, int x1, int x2, int x3, int x4,        \
        int x5, int y0, int y1, int y2, int y3, int y4, int y5

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
__kernel void move(__global const float *in, __global float *out, WALK, int from, int to, int count)
{
    int i = get_global_id(0) * SPAN, end = min(i + SPAN, count);
    while (i < end) {
        int row = i / n5, at = i % n5, p = from + at * x5, q = to + at * y5;
        int stop = min(end, i + n5 - at);
        FIND_ROW(row, p, q);
        if (x5 == 1 && y5 == 1)
            for (; i < stop; i++)
                out[q++] = in[p++];
        for (; i < stop; i++, p += x5, q += y5)
            out[q] = in[p];
    }
}

/* (x - mean) / sqrt(variance + epsilon) * scale + bias by channel; items share a plane. */
__kernel void batch_norm(__global const float *x, __global const float *scale,
                         __global const float *bias, __global const float *mean,
                         __global const float *variance, __global float *out, int channels,
                         int plane, float epsilon)
{
    int c = get_global_id(1) % channels;
    size_t at = get_global_id(1) * plane;
    float factor = scale[c] / sqrt(variance[c] + epsilon), middle = mean[c], shift = bias[c];
    ALONG(i, plane)
        out[at + i] = (x[at + i] - middle) * factor + shift;
}
