/* rows.cl - what one row of `count` elements gives: means, softmax, norms. A work item has a row;
 * sums are made in blocks of 128 (of so many registers on a CPU), so that errors don't grow with
 * the row. */

__kernel void mean(__global const real *x, __global real *out, int count)
{
    size_t row = get_global_id(0);
    float sum;
    x += row * count;
    SUM(sum, count, LOADR(x + i), AT(x, i));
    PUT(out, row, sum / count);
}

/* exp(x - most) of a row, over their sum and `rest`. */
static void weigh_row(__global const real *x, __global real *out, int count, float most, float rest)
{
    float sum;
    EACH_OF(count, STORER(exp(LOADR(x + i) - most), out + i),
            PUT(out, i, exp(AT(x, i) - most)));
    SUM(sum, count, LOADR(out + i), AT(out, i));
    sum = 1.0f / (sum + rest);
    EACH_OF(count, STORER(LOADR(out + i) * sum, out + i), PUT(out, i, AT(out, i) * sum));
}

static void softmax_row(__global const real *x, __global real *out, int count, int as_log)
{
    float most = -INFINITY, sum;
    for (int i = 0; i < count; i++)
        most = fmax(most, AT(x, i));
    if (!as_log) {
        weigh_row(x, out, count, most, 0.0f);
        return;
    }
    SUM(sum, count, exp(LOADR(x + i) - most), exp(AT(x, i) - most));
    sum = log(sum);
    EACH_OF(count, STORER(LOADR(x + i) - most - sum, out + i), PUT(out, i, AT(x, i) - most - sum));
}

/* Elements of a row lie `step` apart. */
__kernel void softmax(__global const real *x, __global real *out, int count, int step, int as_log)
{
    size_t row = get_global_id(0);
    size_t at = row / step * step * count + row % step;
    float most = -INFINITY, sum = 0.0f, part = 0.0f;
    if (step == 1) {
        softmax_row(x + at, out + at, count, as_log);
        return;
    }
    for (int i = 0; i < count; i++)
        most = fmax(most, AT(x, at + (size_t)i * step));
    for (int i = 0; i < count; i++) {
        part += exp(AT(x, at + (size_t)i * step) - most);
        if (i % SUM_BLOCK == SUM_BLOCK - 1) {
            sum += part;
            part = 0.0f;
        }
    }
    sum += part;
    for (int i = 0; i < count; i++) {
        float v = AT(x, at + (size_t)i * step) - most;
        PUT(out, at + (size_t)i * step, as_log ? v - log(sum) : exp(v) / sum);
    }
}

#define NORM_NUMBERS(X)                                                                            \
    X(int, has_skip) X(int, has_more) X(int, has_bias) X(int, has_whole) X(int, count)             \
    X(float, epsilon)
typedef struct {
    NORM_NUMBERS(MEMBER)
} norm_numbers;

/* LayerNormalization; skip: a second term (has_skip), a bias of it, and the sum as an output. */
__kernel void layer_norm(__global const real *x, __global const real *skip,
                         __global const real *more, __global const real *scale,
                         __global const real *bias, __global real *out, __global real *whole,
                         norm_numbers numbers)
{
    NORM_NUMBERS(OWN)
    size_t at = get_global_id(0) * count;
    norm_row(x + at, has_skip ? skip + at : 0, has_more ? more : 0, scale, has_bias ? bias : 0,
             (has_whole ? whole : out) + at, out + at, true, count, epsilon);
}

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
    float most = -INFINITY;
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
    for (int k = begin; k < end; k++)
        most = fmax(most, AT(x, k));
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

/* Elements of x from where row `row` of the kept axes begins, over the reduced axes: `value` of an
 * element v changes `sum`; sums of every so many elements are added up apart. */
#define REDUCE(name, start, value, join, result)                                                   \
    __kernel void name(__global const real *x, __global real *out, int k0, int k1, int k2,       \
                       int k3, int k4, int k5, int s0, int s1, int s2, int s3, int s4, int s5,     \
                       int n0, int n1, int n2, int n3, int n4, int n5, int x0, int x1, int x2,     \
                       int x3, int x4, int x5, int count)                                          \
    {                                                                                              \
        int row = get_global_id(0), at = row, from;                                                \
        float whole = start;                                                                       \
        from = at % k5 * s5; at /= k5;                                                             \
        from += at % k4 * s4; at /= k4;                                                            \
        from += at % k3 * s3; at /= k3;                                                            \
        from += at % k2 * s2; at /= k2;                                                            \
        from += at % k1 * s1; at /= k1;                                                            \
        x += from + at * s0;                                                                       \
        for (int i = 0; i < (n5 ? count / n5 : 0); i++) {                                          \
            int r = i, p;                                                                          \
            p = r % n4 * x4; r /= n4;                                                              \
            p += r % n3 * x3; r /= n3;                                                             \
            p += r % n2 * x2; r /= n2;                                                             \
            p += r % n1 * x1; r /= n1;                                                             \
            p += r * x0;                                                                           \
            for (int j = 0; j < n5;) {                                                             \
                float sum = start;                                                                 \
                for (int end = min(j + SUM_BLOCK, n5); j < end; j++) {                             \
                    float v = AT(x, p + j * x5);                                                   \
                    sum = join(sum, value);                                                        \
                }                                                                                  \
                whole = join(whole, sum);                                                          \
            }                                                                                      \
        }                                                                                          \
        PUT(out, row, result);                                                                     \
    }

#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define MOST(a, b) (isnan(a) || isnan(b) ? (a) + (b) : fmax(a, b))
#define LEAST(a, b) (isnan(a) || isnan(b) ? (a) + (b) : fmin(a, b))

REDUCE(reduce_sum, 0.0f, v, PLUS, whole)
REDUCE(reduce_mean, 0.0f, v, PLUS, whole / count)
REDUCE(reduce_max, -INFINITY, v, MOST, whole)
REDUCE(reduce_min, INFINITY, v, LEAST, whole)
REDUCE(reduce_prod, 1.0f, v, TIMES, whole)
REDUCE(reduce_squares, 0.0f, v * v, PLUS, whole)
REDUCE(reduce_l1, 0.0f, fabs(v), PLUS, whole)
REDUCE(reduce_l2, 0.0f, v * v, PLUS, sqrt(whole))
REDUCE(reduce_log_sum, 0.0f, v, PLUS, log(whole))

/* Of `groups` groups of channels: (x - mean) / deviation * scale + bias, both by channel, or by
 * group where `by_group`. */
__kernel void group_norm(__global const real *x, __global const real *scale,
                         __global const real *bias, __global real *out, int groups, int channels,
                         int plane, int by_group, float epsilon)
{
    size_t row = get_global_id(0);
    int group = row % groups, per_group = channels / groups, count = per_group * plane;
    float sum, mean;
    x += row * count;
    out += row * count;
    SUM(sum, count, LOADR(x + i), AT(x, i));
    mean = sum / count;
    SUM(sum, count, (LOADR(x + i) - mean) * (LOADR(x + i) - mean),
        (AT(x, i) - mean) * (AT(x, i) - mean));
    float over = 1.0f / sqrt(sum / count + epsilon);
    for (int c = 0; c < per_group; c++, x += plane, out += plane) {
        int own = by_group ? group : group * per_group + c;
        float factor = over * AT(scale, own), shift = AT(bias, own);
        EACH_OF(plane, STORER((LOADR(x + i) - mean) * factor + shift, out + i),
                PUT(out, i, (AT(x, i) - mean) * factor + shift));
    }
}

/* x / root of the mean square * scale, of the sum of two where has_skip. */
__kernel void rms_norm(__global const real *x, __global const real *skip,
                       __global const real *more, __global const real *scale,
                       __global real *out, __global real *whole, norm_numbers numbers)
{
    NORM_NUMBERS(OWN)
    size_t at = get_global_id(0) * count;
    norm_row(x + at, has_skip ? skip + at : 0, has_more ? more : 0, scale, 0,
             (has_whole ? whole : out) + at, out + at, false, count, epsilon);
}

/* What LayerNormalization gives besides: mean and inverse deviation of each row. */
__kernel void row_facts(__global const real *x, __global real *means, __global real *over,
                        int has_means, int has_over, int count, float epsilon)
{
    size_t row = get_global_id(0);
    float sum, mean;
    x += row * count;
    SUM(sum, count, LOADR(x + i), AT(x, i));
    mean = sum / count;
    SUM(sum, count, (LOADR(x + i) - mean) * (LOADR(x + i) - mean),
        (AT(x, i) - mean) * (AT(x, i) - mean));
    if (has_means)
        PUT(means, row, mean);
    if (has_over)
        PUT(over, row, 1.0f / sqrt(sum / count + epsilon));
}
