/* tokens.cl - what indices choose, and what turns by positions. */

#define INDEX_AT(i) (wide ? ((__global const long *)index)[i] : ((__global const int *)index)[i])

/* out[o][j][i] = in[o][index[j]][i]; items share a row of `inner`. */
#define GATHER_ROWS(name, type)                                                                    \
    __kernel void name(__global const type *in, __global const void *index, __global type *out,    \
                       __global int *fault, int code, int wide, int size, int inner)               \
    {                                                                                              \
        int j = get_global_id(1), count = get_global_size(1);                                      \
        size_t outer = get_global_id(2);                                                           \
        int row = within(INDEX_AT(j), -size, size, fault, code, j);                                \
        in += (outer * size + row) * inner;                                                        \
        out += (outer * count + j) * inner;                                                        \
        ALONG(i, inner)                                                                            \
            out[i] = in[i];                                                                        \
    }

GATHER_ROWS(gather_rows, cell)
GATHER_ROWS(gather_bytes, uchar)

/* out[e] = in at e with the coordinate of one axis taken from index[e]; `step` of that axis in the
 * source, n and s the sizes of the result and the strides of the source. */
__kernel void gather_elements(__global const cell *in, __global const void *index,
                              __global cell *out, __global int *fault, int code, int wide,
                              int size, int step, int n0, int n1, int n2, int n3, int n4, int n5,
                              int s0, int s1, int s2, int s3, int s4, int s5, int count)
{
    EACH(e, count) {
        int i = e, at;
        at = i % n5 * s5; i /= n5;
        at += i % n4 * s4; i /= n4;
        at += i % n3 * s3; i /= n3;
        at += i % n2 * s2; i /= n2;
        at += i % n1 * s1; i /= n1;
        at += i * s0;
        out[e] = in[at + within(INDEX_AT(e), -size, size, fault, code, e) * step];
    }
}

/* Rows of three tables, added: of words, of places, of segments. */
__kernel void embed(__global const int *ids, __global const int *segments,
                    __global const int *places, __global const real *words,
                    __global const real *place_table, __global const real *segment_table,
                    __global real *out, __global int *fault, int code, int has_segments,
                    int has_places, int place_count, int word_rows, int place_rows,
                    int segment_rows, int steps, int hidden)
{
    int token = get_global_id(1), step = token % steps;
    int place = has_places ? places[place_count == steps ? step : token] : step;
    words += (size_t)within(ids[token], 0, word_rows, fault, code, token) * hidden;
    place_table += (size_t)within(place, 0, place_rows, fault, code, token) * hidden;
    if (has_segments)
        segment_table +=
            (size_t)within(segments[token], 0, segment_rows, fault, code, token) * hidden;
    out += (size_t)token * hidden;
    ALONG(i, hidden)
        PUT(out, i, AT(words, i) + AT(place_table, i) +
                        (has_segments ? AT(segment_table, i) : 0.0f));
}

/* The number of ones that each row of a mask begins with. */
__kernel void mask_lengths(__global const int *mask, __global int *lengths, int has_mask, int steps)
{
    int b = get_global_id(0), length = 0;
    while (has_mask && length < steps && mask[b * steps + length] == 1)
        length++;
    lengths[b] = length;
}

/* Pairs of each head turned by its token's angles: row `place` of the tables. How a token's place
 * is given: 0, by its number; 1, by places[token]; 2, from places[0] on. */
__kernel void turn(__global const real *x, __global const real *cosines,
                     __global const real *sines, __global const long *places,
                     __global real *out, __global int *fault, int code, int how, int rows,
                     int heads, int steps, int size, int half_size, int interleaved,
                     int heads_first)
{
    int head = get_global_id(0), token = get_global_id(1), b = token / steps, t = token % steps;
    int place = how == 0 ? token
                         : within(how == 1 ? places[token] : places[0] + t, 0, rows, fault, code,
                                  token);
    size_t at = heads_first ? ((size_t)b * heads + head) * steps + t : (size_t)token * heads + head;
    int step = interleaved ? 2 : 1, gap = interleaved ? 1 : half_size;
    x += at * size;
    out += at * size;
    cosines += (size_t)place * half_size;
    sines += (size_t)place * half_size;
    for (int i = 0; i < half_size; i++) {
        float a = AT(x, i * step), c = AT(x, i * step + gap);
        PUT(out, i * step, a * AT(cosines, i) - c * AT(sines, i));
        PUT(out, i * step + gap, c * AT(cosines, i) + a * AT(sines, i));
    }
    for (int i = 2 * half_size; i < size; i++)
        PUT(out, i, AT(x, i));
}

/* Where the greatest (or least) of a row of `count` elements, `step` apart, lies: the first, or the
 * last of equal ones. A NaN is beyond all. */
__kernel void place_of_most(__global const real *x, __global long *out, int count, int step,
                            int least, int last)
{
    size_t row = get_global_id(0);
    int best = 0;
    x += row / step * step * count + row % step;
    for (int i = 1; i < count; i++) {
        float v = AT(x, (size_t)i * step), b = AT(x, (size_t)best * step);
        bool beyond = least ? v < b : v > b;
        if (beyond || (last && v == b))
            best = i;
    }
    out[row] = best;
}

/* Sums of all elements of a row up to each, without its own where `apart`, from behind where
 * `turned`. */
__kernel void sums(__global const real *x, __global real *out, int count, int step, int apart,
                   int turned)
{
    size_t row = get_global_id(0), at = row / step * step * count + row % step;
    float sum = 0.0f;
    for (int k = 0; k < count; k++) {
        size_t i = at + (size_t)(turned ? count - 1 - k : k) * step;
        float before = sum, v = AT(x, i);
        sum += v;
        PUT(out, i, apart ? before : sum);
    }
}
