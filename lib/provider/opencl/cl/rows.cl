/* rows.cl - what one row of `count` elements gives: means, softmax, norms. A work item has a row;
 * sums are made in blocks of 128 (of so many registers on a CPU), so that errors don't grow with
 * the row. */

#define BLOCK 128

/* The sum of `value`, which reads element i_ as T: a register at a time where `fast`. */
#if LANES
static float sum_of(V v)
{
    float lane[LANES], sum = 0.0f;
    STORE(v, lane);
    for (int i = 0; i < LANES; i++)
        sum += lane[i];
    return sum;
}
#define SUM(result, count, vector, scalar)                                                         \
    do {                                                                                           \
        V whole_ = 0.0f, part_ = 0.0f;                                                             \
        float rest_ = 0.0f;                                                                        \
        int i = 0, blocks_ = 0;                                                                    \
        for (; i + LANES <= (count); i += LANES) {                                                 \
            part_ += (vector);                                                                     \
            if (++blocks_ % BLOCK == 0) {                                                          \
                whole_ += part_;                                                                   \
                part_ = 0.0f;                                                                      \
            }                                                                                      \
        }                                                                                          \
        for (; i < (count); i++)                                                                   \
            rest_ += (scalar);                                                                     \
        result = sum_of(whole_ + part_) + rest_;                                                   \
    } while (0)
#define EACH_OF(count, vector, scalar)                                                             \
    do {                                                                                           \
        int i = 0;                                                                                 \
        for (; i + LANES <= (count); i += LANES)                                                   \
            vector;                                                                                \
        for (; i < (count); i++)                                                                   \
            scalar;                                                                                \
    } while (0)
#else
#define SUM(result, count, vector, scalar)                                                         \
    do {                                                                                           \
        float sum_ = 0.0f, part_ = 0.0f;                                                           \
        for (int i = 0; i < (count); i++) {                                                        \
            part_ += (scalar);                                                                     \
            if (i % BLOCK == BLOCK - 1) {                                                          \
                sum_ += part_;                                                                     \
                part_ = 0.0f;                                                                      \
            }                                                                                      \
        }                                                                                          \
        result = sum_ + part_;                                                                     \
    } while (0)
#define EACH_OF(count, vector, scalar)                                                             \
    for (int i = 0; i < (count); i++)                                                              \
    scalar
#endif

__kernel void mean(__global const float *x, __global float *out, int count)
{
    size_t row = get_global_id(0);
    float sum;
    x += row * count;
    SUM(sum, count, LOAD(x + i), x[i]);
    out[row] = sum / count;
}

static void softmax_row(__global const float *x, __global float *out, int count, int as_log)
{
    float most = -INFINITY, sum;
    for (int i = 0; i < count; i++)
        most = fmax(most, x[i]);
    if (as_log) {
        SUM(sum, count, exp(LOAD(x + i) - most), exp(x[i] - most));
        sum = log(sum);
        EACH_OF(count, STORE(LOAD(x + i) - most - sum, out + i), out[i] = x[i] - most - sum);
        return;
    }
    EACH_OF(count, STORE(exp(LOAD(x + i) - most), out + i), out[i] = exp(x[i] - most));
    SUM(sum, count, LOAD(out + i), out[i]);
    sum = 1.0f / sum;
    EACH_OF(count, STORE(LOAD(out + i) * sum, out + i), out[i] = out[i] * sum);
}

/* Elements of a row lie `step` apart. */
__kernel void softmax(__global const float *x, __global float *out, int count, int step, int as_log)
{
    size_t row = get_global_id(0);
    size_t at = row / step * step * count + row % step;
    float most = -INFINITY, sum = 0.0f, part = 0.0f;
    if (step == 1) {
        softmax_row(x + at, out + at, count, as_log);
        return;
    }
    for (int i = 0; i < count; i++)
        most = fmax(most, x[at + (size_t)i * step]);
    for (int i = 0; i < count; i++) {
        part += exp(x[at + (size_t)i * step] - most);
        if (i % BLOCK == BLOCK - 1) {
            sum += part;
            part = 0.0f;
        }
    }
    sum += part;
    for (int i = 0; i < count; i++) {
        float v = x[at + (size_t)i * step] - most;
        out[at + (size_t)i * step] = as_log ? v - log(sum) : exp(v) / sum;
    }
}

/* LayerNormalization; skip: a second term (has_skip), a bias of it, and the sum as an output. */
__kernel void layer_norm(__global const float *x, __global const float *skip,
                         __global const float *more, __global const float *scale,
                         __global const float *bias, __global float *out, __global float *whole,
                         int has_skip, int has_more, int has_bias, int has_whole, int count,
                         float epsilon)
{
    size_t at = get_global_id(0) * count;
    float mean, sum;
    __global const float *in = x + at;
    if (has_skip) { /* the sum first: where it is wanted, or where the result will be */
        __global float *to = (has_whole ? whole : out) + at;
        EACH_OF(count,
                STORE(LOAD(x + at + i) + LOAD(skip + at + i) + (has_more ? LOAD(more + i) : 0.0f),
                      to + i),
                to[i] = x[at + i] + skip[at + i] + (has_more ? more[i] : 0.0f));
        in = to;
    }
    SUM(sum, count, LOAD(in + i), in[i]);
    mean = sum / count;
    SUM(sum, count, (LOAD(in + i) - mean) * (LOAD(in + i) - mean), (in[i] - mean) * (in[i] - mean));
    float over = 1.0f / sqrt(sum / count + epsilon);
    out += at;
    EACH_OF(count,
            STORE((LOAD(in + i) - mean) * over * LOAD(scale + i) +
                      (has_bias ? LOAD(bias + i) : 0.0f), out + i),
            out[i] = (in[i] - mean) * over * scale[i] + (has_bias ? bias[i] : 0.0f));
}

/* Softmax of scores [batch, heads, rows, count] under a mask: kind 1 floats are added, kind 2 bytes
 * tell what counts, kind 3 integers for what `filler` is added where they are 0. Keys from
 * mask_keys on, and those behind a row's own position where causal, don't count. A row of which
 * nothing counts is 0. */
__kernel void attend(__global float *x, __global const void *mask, int kind, int rows, int heads,
                     int count, int m_batch, int m_head, int m_row, int m_key, int mask_keys,
                     int causal, int past, float cap, float filler)
{
    size_t row = get_global_id(0);
    int i = row % rows, b = row / rows / heads;
    int m = b * m_batch + (int)(row / rows % heads) * m_head + i * m_row;
    int end = causal ? min(count, past + i + 1) : count;
    float most = -INFINITY;
    x += row * count;
    if (kind && mask_keys > 1)
        end = min(end, mask_keys);
    if (cap > 0.0f)
        for (int k = 0; k < end; k++)
            x[k] = cap * tanh(x[k] / cap);
    if (kind == 1)
        for (int k = 0; k < end; k++)
            x[k] += ((__global const float *)mask)[m + k * m_key];
    else if (kind == 2)
        for (int k = 0; k < end; k++)
            x[k] = ((__global const uchar *)mask)[m + k * m_key] ? x[k] : -INFINITY;
    else if (kind == 3)
        for (int k = 0; k < end; k++)
            x[k] += ((__global const int *)mask)[m + k * m_key] ? 0.0f : filler;
    for (int k = 0; k < end; k++)
        most = fmax(most, x[k]);
    if (most > -INFINITY)
        softmax_row(x, x, end, 0);
    for (int k = most > -INFINITY ? end : 0; k < count; k++)
        x[k] = 0.0f;
}

/* Elements of x from where row `row` of the kept axes begins, over the reduced axes: `value` of an
 * element v changes `sum`; sums of every so many elements are added up apart. */
#define REDUCE(name, start, value, join, result)                                                   \
    __kernel void name(__global const float *x, __global float *out, int k0, int k1, int k2,       \
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
                for (int end = min(j + BLOCK, n5); j < end; j++) {                                 \
                    float v = x[p + j * x5];                                                       \
                    sum = join(sum, value);                                                        \
                }                                                                                  \
                whole = join(whole, sum);                                                          \
            }                                                                                      \
        }                                                                                          \
        out[row] = result;                                                                         \
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
__kernel void group_norm(__global const float *x, __global const float *scale,
                         __global const float *bias, __global float *out, int groups, int channels,
                         int plane, int by_group, float epsilon)
{
    size_t row = get_global_id(0);
    int group = row % groups, per_group = channels / groups, count = per_group * plane;
    float sum, mean;
    x += row * count;
    out += row * count;
    SUM(sum, count, LOAD(x + i), x[i]);
    mean = sum / count;
    SUM(sum, count, (LOAD(x + i) - mean) * (LOAD(x + i) - mean), (x[i] - mean) * (x[i] - mean));
    float over = 1.0f / sqrt(sum / count + epsilon);
    for (int c = 0; c < per_group; c++, x += plane, out += plane) {
        int own = by_group ? group : group * per_group + c;
        float factor = over * scale[own], shift = bias[own];
        EACH_OF(plane, STORE((LOAD(x + i) - mean) * factor + shift, out + i),
                out[i] = (x[i] - mean) * factor + shift);
    }
}

/* x / root of the mean square * scale, of the sum of two where has_skip. */
__kernel void rms_norm(__global const float *x, __global const float *skip,
                       __global const float *more, __global const float *scale,
                       __global float *out, __global float *whole, int has_skip, int has_more,
                       int has_whole, int count, float epsilon)
{
    size_t at = get_global_id(0) * count;
    float sum;
    __global const float *in = x + at;
    if (has_skip) {
        __global float *to = (has_whole ? whole : out) + at;
        EACH_OF(count,
                STORE(LOAD(x + at + i) + LOAD(skip + at + i) + (has_more ? LOAD(more + i) : 0.0f),
                      to + i),
                to[i] = x[at + i] + skip[at + i] + (has_more ? more[i] : 0.0f));
        in = to;
    }
    SUM(sum, count, LOAD(in + i) * LOAD(in + i), in[i] * in[i]);
    float over = 1.0f / sqrt(sum / count + epsilon);
    out += at;
    EACH_OF(count, STORE(LOAD(in + i) * over * LOAD(scale + i), out + i),
            out[i] = in[i] * over * scale[i]);
}

/* What LayerNormalization gives besides: mean and inverse deviation of each row. */
__kernel void row_facts(__global const float *x, __global float *means, __global float *over,
                        int has_means, int has_over, int count, float epsilon)
{
    size_t row = get_global_id(0);
    float sum, mean;
    x += row * count;
    SUM(sum, count, LOAD(x + i), x[i]);
    mean = sum / count;
    SUM(sum, count, (LOAD(x + i) - mean) * (LOAD(x + i) - mean), (x[i] - mean) * (x[i] - mean));
    if (has_means)
        means[row] = mean;
    if (has_over)
        over[row] = 1.0f / sqrt(sum / count + epsilon);
}
