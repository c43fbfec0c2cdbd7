/* take.cl - elements looked up by tables, blended by weights. */

/* table: of each of six axes, where in the source an index lies, or -1. in_rows: along the last
 * axis these follow each other. */
__kernel void take(__global const real *in, __global real *out, __global const int *table, int n0,
                   int n1, int n2, int n3, int n4, int n5, float fill, int in_rows, int count)
{
    __global const int *t1 = table + n0, *t2 = t1 + n1, *t3 = t2 + n2, *t4 = t3 + n3, *t5 = t4 + n4;
    int i = get_global_id(0) * SPAN, end = min(i + SPAN, count);
    while (i < end) {
        int a5 = i % n5, at = i / n5, stop = min(end, i + n5 - a5), whole = 0;
        int a4 = at % n4;
        at /= n4;
        int a3 = at % n3;
        at /= n3;
        int a2 = at % n2;
        at /= n2;
        int from[5] = {table[at / n1], t1[at % n1], t2[a2], t3[a3], t4[a4]};
        bool inside = true;
        for (int d = 0; d < 5; d++) {
            inside = inside && from[d] >= 0;
            whole += from[d];
        }
        if (inside && in_rows)
            for (int row = whole + t5[a5]; i < stop; i++)
                PUT(out, i, AT(in, row++));
        for (; i < stop; i++, a5++)
            PUT(out, i, inside && t5[a5] >= 0 ? AT(in, whole + t5[a5]) : fill);
    }
}

/* out[o][j][i] = sum of weight[j][t] * in[o][index[j][t]][i]; items share a row of `inner`. */
__kernel void blend(__global const real *in, __global real *out, __global const int *index,
                    __global const float *weight, int size, int inner, int taps)
{
    int j = get_global_id(1);
    size_t outer = get_global_id(2);
    in += outer * size * inner;
    out += (outer * get_global_size(1) + j) * inner;
    ALONG(i, inner) {
        float sum = 0.0f;
        for (int t = 0; t < taps; t++)
            sum = fma(weight[j * taps + t], AT(in, index[j * taps + t] * inner + i), sum);
        PUT(out, i, sum);
    }
}
