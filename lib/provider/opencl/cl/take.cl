/* take.cl - elements looked up by tables, blended by weights, chosen by a condition, converted. */

/* table: of each of six axes, where in the source an index lies, or -1. */
__kernel void take(__global const float *in, __global float *out, __global const int *table, int n0,
                   int n1, int n2, int n3, int n4, int n5, float fill, int count)
{
    __global const int *t1 = table + n0, *t2 = t1 + n1, *t3 = t2 + n2, *t4 = t3 + n3, *t5 = t4 + n4;
    EACH(i, count) {
        int at = i, a5 = at % n5;
        at /= n5;
        int a4 = at % n4;
        at /= n4;
        int a3 = at % n3;
        at /= n3;
        int a2 = at % n2;
        at /= n2;
        int from[6] = {table[at / n1], t1[at % n1], t2[a2], t3[a3], t4[a4], t5[a5]};
        bool inside = true;
        int whole = 0;
        for (int d = 0; d < 6; d++) {
            inside = inside && from[d] >= 0;
            whole += from[d];
        }
        out[i] = inside ? in[whole] : fill;
    }
}

/* out[o][j][i] = sum of weight[j][t] * in[o][index[j][t]][i]; items share a row of `inner`. */
__kernel void blend(__global const float *in, __global float *out, __global const int *index,
                    __global const float *weight, int size, int inner, int taps)
{
    int j = get_global_id(1);
    size_t outer = get_global_id(2);
    in += outer * size * inner;
    out += (outer * get_global_size(1) + j) * inner;
    ALONG(i, inner) {
        float sum = 0.0f;
        for (int t = 0; t < taps; t++)
            sum = fma(weight[j * taps + t], in[index[j * taps + t] * inner + i], sum);
        out[i] = sum;
    }
}

__kernel void where(__global const uchar *c, __global const float *x, __global const float *y,
                    __global float *out, int n0, int n1, int n2, int n3, int n4, int n5, int c0,
                    int c1, int c2, int c3, int c4, int c5, int x0, int x1, int x2, int x3, int x4,
                    int x5, int y0, int y1, int y2, int y3, int y4, int y5, int count)
{
    EACH(e, count) {
        int i = e, p, q, r, j;
        j = i % n5; p = j * c5; q = j * x5; r = j * y5; i /= n5;
        j = i % n4; p += j * c4; q += j * x4; r += j * y4; i /= n4;
        j = i % n3; p += j * c3; q += j * x3; r += j * y3; i /= n3;
        j = i % n2; p += j * c2; q += j * x2; r += j * y2; i /= n2;
        j = i % n1; p += j * c1; q += j * x1; r += j * y1; i /= n1;
        out[e] = c[p + i * c0] ? x[q + i * x0] : y[r + i * y0];
    }
}

#define CAST(name, from, to, value)                                                                \
    __kernel void name(__global const from *in, __global to *out, int count)                       \
    {                                                                                              \
        EACH(i, count)                                                                             \
            out[i] = value;                                                                        \
    }

CAST(float_int, float, int, (int)in[i])
CAST(float_long, float, long, (long)in[i])
CAST(float_bool, float, uchar, in[i] != 0.0f)
CAST(int_float, int, float, (float)in[i])
CAST(int_long, int, long, in[i])
CAST(int_bool, int, uchar, in[i] != 0)
CAST(long_float, long, float, (float)in[i])
CAST(long_int, long, int, (int)in[i])
CAST(long_bool, long, uchar, in[i] != 0)
CAST(bool_float, uchar, float, in[i] ? 1.0f : 0.0f)
CAST(bool_int, uchar, int, in[i] != 0)
CAST(bool_long, uchar, long, in[i] != 0)
