/* gemm_attend.cl - what attention makes of scores, and attention as one launch on a CPU: to few
 * keys by rows, else by tiles, which gemm.cl behind this has. */
#define ATTEND 1

#define ATTEND_NUMBERS(X)                                                                          \
    X(int, kind) X(int, rows) X(int, heads) X(int, count) X(int, m_batch) X(int, m_head)           \
    X(int, m_row) X(int, m_key) X(int, mask_keys) X(int, causal) X(int, past) X(int, has_places)   \
    X(int, left) X(int, right) X(int, has_sinks) X(int, stop) X(float, cap) X(float, filler)
typedef struct {
    ATTEND_NUMBERS(MEMBER)
} attend_numbers;

/* Softmax of scores [batch, heads, rows, count] under a mask: kind 1 floats are added, kind 2 bytes
 * tell what counts, kind 3 integers for what `filler` is added where they are 0. Keys from
 * mask_keys on don't count, nor do those behind a row's own position where causal, or more than
 * `left` in front of it, `right` behind it (below 0: any number). Row 0 is at `past`, or with
 * has_places at places[0] of its sequence, of which places[1] keys count. has_sinks: one more score
 * for each head (2: 0), whose share nobody gets. A row of which nothing counts is 0. `stop`: the
 * scores under their mask are the result. */
static void attend_row(__global real *x, __global const void *mask, __global const int *places,
                       __global const real *sinks, attend_numbers numbers, size_t row)
{
    ATTEND_NUMBERS(OWN)
    int i = row % rows, b = row / rows / heads, head = row / rows % heads;
    int m = b * m_batch + head * m_head + i * m_row;
    int at = i + (has_places ? places[2 * b] : past);
    int end = has_places ? min(count, places[2 * b + 1]) : count, begin = 0;
    float most;
    x += row * count;
    if (cap > 0.0f)
        for (int k = 0; k < count; k++)
            PUT(x, k, cap * tanh(AT(x, k) / cap));
    if (causal)
        end = min(end, at + 1);
    if (right >= 0)
        end = min(end, at + right + 1);
    if (kind)
        end = min(end, mask_keys);
    end = max(end, 0);
    if (left >= 0)
        begin = min(max(at - left, 0), end);
    if (kind == 1)
        for (int k = begin; k < end; k++)
            PUT(x, k, AT(x, k) + AT(((__global const real *)mask), m + k * m_key));
    else if (kind == 2)
        for (int k = begin; k < end; k++)
            PUT(x, k, ((__global const uchar *)mask)[m + k * m_key] ? AT(x, k) : -INFINITY);
    else if (kind == 3)
        for (int k = begin; k < end; k++)
            PUT(x, k, AT(x, k) + (((__global const int *)mask)[m + k * m_key] ? 0.0f : filler));
    most = most_of(x + begin, end - begin);
    if (!stop && !(most > -INFINITY)) {
        begin = end;
    } else if (!stop && has_sinks) {
        float sink = has_sinks == 1 ? AT(sinks, head) : 0.0f, top = fmax(most, sink);
        weigh_row(x + begin, x + begin, end - begin, top, exp(sink - top));
    } else if (!stop) {
        weigh_row(x + begin, x + begin, end - begin, most, 0.0f);
    }
    for (int k = 0; k < begin; k++)
        PUT(x, k, stop ? -INFINITY : 0.0f);
    for (int k = end; k < count; k++)
        PUT(x, k, stop ? -INFINITY : 0.0f);
}

__kernel void attend(__global real *x, __global const void *mask, __global const int *places,
                     __global const real *sinks, attend_numbers numbers)
{
    attend_row(x, mask, places, sinks, numbers, get_global_id(0));
}

#if LANES

#define FEW_NUMBERS(X)                                                                             \
    X(int, q0) X(int, q1) X(int, q2) X(int, qm) X(int, k0) X(int, k1) X(int, k2) X(int, km)        \
    X(int, v0) X(int, v1) X(int, v2) X(int, vm) X(int, y0) X(int, y1) X(int, y2) X(int, ym)        \
    X(int, size) X(int, value_size) X(int, shared) X(int, each) X(float, scale) ATTEND_NUMBERS(X)
typedef struct {
    FEW_NUMBERS(MEMBER)
} few_numbers;
#define COPIED(type, name) numbers.name,

/* scores[k] = scale * q . row k of `keys`. */
static void score_row(__global const real *q, __global const real *keys, int step, int count,
                      int size, float scale, __global real *scores)
{
    for (int k = 0; k < count; k++, keys += step) {
        float sum;
        V part = 0.0f;
        int d = 0;
        for (; d + LANES <= size; d += LANES)
            part = fused(LOADR(q + d), LOADR(keys + d), part);
        sum = sum_of(part);
        for (; d < size; d++)
            sum = fma(AT(q, d), AT(keys, d), sum);
        PUT(scores, k, sum * scale);
    }
}

/* y = the sum of weights[k] * row k of `values`. */
static void weigh_values(__global const real *weights, __global const real *values, int step,
                         int count, int size, __global real *y)
{
    int d = 0;
    for (; d + LANES <= size; d += LANES) {
        V sum = 0.0f;
        for (int k = 0; k < count; k++)
            sum = fused((V)AT(weights, k), LOADR(values + (size_t)k * step + d), sum);
        STORER(sum, y + d);
    }
    for (; d < size; d++) {
        float sum = 0.0f;
        for (int k = 0; k < count; k++)
            sum = fma(AT(weights, k), AT(values, (size_t)k * step + d), sum);
        PUT(y, d, sum);
    }
}

/* Attention to few keys, as three kernels would have it: scores, what `attend` makes of them, what
 * these weigh. An item has `each` rows of a head; x is where their scores are. */
ALONE void attend_few(__global const real *q, __global const real *keys,
                      __global const real *values, __global real *y, __global real *x,
                      __global const void *mask, __global const int *places,
                      __global const real *sinks, few_numbers numbers)
{
    FEW_NUMBERS(OWN)
    const attend_numbers own = {ATTEND_NUMBERS(COPIED)};
    int head = get_global_id(1), b = get_global_id(2), first = (int)get_global_id(0) * each;
    q += q0 + b * q1 + head * q2;
    keys += k0 + b * k1 + head / shared * k2;
    values += v0 + b * v1 + head / shared * v2;
    y += y0 + b * y1 + head * y2;
    for (int i = first; i < min(first + each, rows); i++) {
        size_t row = ((size_t)b * heads + head) * rows + i;
        score_row(q + i * qm, keys, km, count, size, scale, x + row * count);
        attend_row(x, mask, places, sinks, own, row);
        weigh_values(x + row * count, values, vm, count, value_size, y + i * ym);
    }
}

#endif
