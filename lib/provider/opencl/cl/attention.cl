/* attention.cl - what attention reads, brought into the form in which rows.cl and gemm.cl compute
 * it: heads of their own, caches with new rows in them, one mask out of several, positions. */

/* places[2b]: where the new keys of sequence b begin among all; places[2b + 1]: how many count.
 * how 0: a sequence has `plus` more keys than lengths[b] with the new ones; 1: all new ones come
 * first; 2: lengths[0] keys come before the new ones of every sequence; 3: numbers of 64 bits tell
 * how many keys count, and the rows of queries are the last `fresh` of them. */
__kernel void places(__global const void *lengths, __global int *places, __global int *fault,
                     int code, int how, int plus, int fresh, int least, int keys)
{
    int b = get_global_id(0);
    long given = how == 3   ? ((__global const long *)lengths)[b]
                 : how == 2 ? ((__global const int *)lengths)[0]
                            : (long)((__global const int *)lengths)[b] + plus;
    int length = within(given, least, keys, fault, code, b);
    int start = how == 1 ? 0 : how == 2 ? length : length - fresh;
    places[2 * b] = how == 3 ? start : max(start, 0);
    places[2 * b + 1] = how == 1 ? fresh : how == 2 ? length + fresh : length;
}

/* Heads of queries, keys or values into [batch, heads, rows, size]: a bias is added, or the first
 * 2 * half_size elements are turned by their row of a table. Which row, `how` says: 0, the place of
 * the token among all (`past`, or places[2b], is that of row 0); 1, positions[token]; 2,
 * positions[0] and on. */
__kernel void take_heads(__global const real *x, __global const real *bias,
                         __global const float *cosines, __global const float *sines,
                         __global const long *positions, __global const int *places,
                         __global real *out, __global int *fault, int code, int from, int batch,
                         int head_step, int row_step, int heads, int rows, int size, int has_bias,
                         int bias_from, int half_size, int interleaved, int how, int past,
                         int has_places, int table_rows)
{
    int h = get_global_id(0), s = get_global_id(1), b = get_global_id(2), first = 0;
    x += from + (size_t)b * batch + (size_t)h * head_step + (size_t)s * row_step;
    out += (((size_t)b * heads + h) * rows + s) * size;
    if (half_size) {
        long place = how == 1   ? positions[b * rows + s]
                     : how == 2 ? positions[0] + s
                                : (has_places ? places[2 * b] : past) + s;
        size_t row = within(place, 0, table_rows, fault, code, b * rows + s);
        int step = interleaved ? 2 : 1, gap = interleaved ? 1 : half_size;
        cosines += row * half_size;
        sines += row * half_size;
        for (int i = 0; i < half_size; i++) {
            float p = AT(x, i * step), q = AT(x, i * step + gap);
            PUT(out, i * step, p * cosines[i] - q * sines[i]);
            PUT(out, i * step + gap, q * cosines[i] + p * sines[i]);
        }
        first = 2 * half_size;
    }
    for (int i = first; i < size; i++)
        PUT(out, i, AT(x, i) + (has_bias ? AT(bias, bias_from + h * size + i) : 0.0f));
}

/* A cache [batch, heads, keys, size] from `to` on: new rows at their place, those of the past
 * [batch, heads, past, size] around them; zeros behind, where the past isn't kept there. */
__kernel void extend(__global const cell *past, __global const cell *x,
                     __global const int *places, __global cell *out, int past_from, int past_rows,
                     int from, int batch, int head_step, int row_step, int fresh, int to, int heads,
                     int keys, int size, int keep)
{
    int t = get_global_id(1) % keys, h = get_global_id(1) / keys, b = get_global_id(2);
    int start = places[2 * b], row = t - start;
    size_t head = (size_t)b * heads + h;
    int old = t < past_rows && (row < 0 || keep);
    out += to + (head * keys + t) * size;
    if (row >= 0 && row < fresh) {
        x += from + (size_t)b * batch + (size_t)h * head_step + (size_t)row * row_step;
        ALONG(i, size)
            out[i] = x[i];
        return;
    }
    past += past_from + (head * past_rows + t) * size;
    ALONG(i, size)
        out[i] = old ? past[i] : 0;
}

/* One mask [batch, heads, rows, keys] to be added: `filler` where integers hide a key, and what is
 * added besides. kind 1: the end of each sequence, and behind those (has_begins) its begin; 2: for
 * each of `width` keys, the first of all or (last) the last ones, keys without a number count; 3:
 * the same for each row. */
__kernel void join_masks(__global const int *mask, __global const real *more, __global real *out,
                         int kind, int width, int has_begins, int last, int has_more, int m_batch,
                         int m_head, int m_row, int more_keys, int heads, int rows, int keys,
                         float filler)
{
    int s = get_global_id(1) % rows, h = get_global_id(1) / rows, b = get_global_id(2);
    int batches = get_global_size(2), first = last ? keys - width : 0;
    more += b * m_batch + h * m_head + s * m_row;
    out += (((size_t)b * heads + h) * rows + s) * keys;
    mask += kind == 3 ? ((size_t)b * rows + s) * width : kind == 2 ? (size_t)b * width : 0;
    ALONG(t, keys) {
        int at = t - first, seen = 1;
        if (kind == 1)
            seen = t < mask[b] && (!has_begins || t >= mask[batches + b]);
        else if (kind)
            seen = at < 0 || at >= width || mask[at] != 0;
        PUT(out, t, (seen ? 0.0f : filler) + (has_more && t < more_keys ? AT(more, t) : 0.0f));
    }
}
