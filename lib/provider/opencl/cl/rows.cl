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

static void softmax_row(__global const real *x, __global real *out, int count, int as_log)
{
    float most = most_of(x, count), sum;
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
