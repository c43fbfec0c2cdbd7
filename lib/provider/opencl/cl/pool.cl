/* pool.cl - pools of NCHW, of one to three axes: means and the greatest of windows. */

#define ABOVE(v, most) ((v) > (most) || isnan(v)) /* a NaN stays: nothing is above it */

/* How many taps of a window that begins at `at` lie in [least, end). */
static int taps_within(int at, int step, int taps, int least, int end)
{
    int first = at < least ? (least - at + step - 1) / step : 0;
    int last = at < end ? (end - 1 - at) / step + 1 : 0;
    return max(0, min(last, taps) - first);
}

typedef struct slab { /* the rows of a window, and the plane in which they lie */
    __global const real *in;
    int depth, height, width, d, y, kd, kh, dd, dy;
    bool mean; /* of sums, not of the greatest */
} slab;

static float pool_column(const slab *s, int x)
{
    float most = -INFINITY, sum = 0.0f;
    for (int d = s->d; d < s->d + s->kd * s->dd; d += s->dd)
        for (int y = s->y; y < s->y + s->kh * s->dy; y += s->dy) {
            if (d < 0 || d >= s->depth || y < 0 || y >= s->height || x < 0 || x >= s->width)
                continue;
            float v = AT(s->in, ((size_t)d * s->height + y) * s->width + x);
            most = ABOVE(v, most) ? v : most;
            sum += v;
        }
    return s->mean ? sum : most;
}

#if LANES
#define LINE 512 /* columns that are put together before windows are */

static void pool_line(const slab *s, int first, int length, float *line)
{
    int begin = max(0, -first), end = min(length, s->width - first);
    for (int i = 0; i < length + LANES; i++)
        line[i] = s->mean ? 0.0f : -INFINITY;
    for (int d = s->d; d < s->d + s->kd * s->dd; d += s->dd)
        for (int y = s->y; y < s->y + s->kh * s->dy; y += s->dy) {
            if (d < 0 || d >= s->depth || y < 0 || y >= s->height)
                continue;
            size_t at = ((size_t)d * s->height + y) * s->width;
            for (int i = begin; s->mean && i < end; i++)
                line[i] += AT(s->in, at + first + i);
            for (int i = begin; !s->mean && i < end; i++) {
                float v = AT(s->in, at + first + i);
                line[i] = ABOVE(v, line[i]) ? v : line[i];
            }
        }
}

/* LANES windows that begin `step` apart. */
static V pool_windows(const slab *s, const float *line, int step, int kw, int dx)
{
    V most = s->mean ? 0.0f : -INFINITY;
    for (int k = 0; k < kw; k++, line += dx) {
        float some[LANES];
        for (int j = 0; step > 1 && j < LANES; j++)
            some[j] = line[j * step];
        V v = step > 1 ? LOAD(some) : LOAD(line);
        most = s->mean ? most + v : select(most, v, ABOVE(v, most));
    }
    return most;
}
#endif

#define POOL_NUMBERS(X)                                                                            \
    X(int, depth) X(int, height) X(int, width) X(int, out_height) X(int, out_width) X(int, kd)     \
    X(int, kh) X(int, kw) X(int, sd) X(int, sy) X(int, sx) X(int, pd) X(int, py) X(int, px)        \
    X(int, dd) X(int, dy) X(int, dx) X(int, end_d) X(int, end_y) X(int, end_x) X(int, kind)        \
    X(int, many) X(int, start) X(int, start2) X(int, start3) X(int, kd2) X(int, kh2) X(int, kw2)   \
    X(int, pd2) X(int, py2) X(int, px2) X(int, end_d2) X(int, end_y2) X(int, end_x2) X(int, kd3)   \
    X(int, kh3) X(int, kw3) X(int, pd3) X(int, py3) X(int, px3) X(int, end_d3) X(int, end_y3)      \
    X(int, end_x3)
typedef struct {
    POOL_NUMBERS(MEMBER)
} pool_numbers;

/* Windows and result of another pool of the launch, by its number. */
#define OTHER_POOL(n)                                                                              \
    y = y##n + start##n;                                                                           \
    kd = kd##n, kh = kh##n, kw = kw##n, pd = pd##n, py = py##n, px = px##n;                        \
    end_d = end_d##n, end_y = end_y##n, end_x = end_x##n

/* kind 0: the greatest; 1: the mean of what lies inside; 2: of the whole window, padding too. Items
 * share a row of results; where one item makes it, windows share their columns. Up to three pools
 * of one input are a launch. */
__kernel void pool(__global const real *x, __global real *y, __global real *y2,
                   __global real *y3, pool_numbers numbers)
{
    POOL_NUMBERS(OWN)
    size_t plane = get_global_id(2) / many, rows = get_global_size(1);
    int which = get_global_id(2) % many;
    y += start;
    if (which == 1) {
        OTHER_POOL(2);
    }
    if (which == 2) {
        OTHER_POOL(3);
    }
    int row = get_global_id(1), d = row / out_height * sd - pd, top = row % out_height * sy - py;
    const slab s = {x + plane * depth * height * width, depth, height, width, d, top, kd, kh, dd,
                    dy, kind != 0};
    int inside = taps_within(d, dd, kd, 0, depth) * taps_within(top, dy, kh, 0, height);
    int whole = taps_within(d, dd, kd, INT_MIN, depth + end_d) *
                taps_within(top, dy, kh, INT_MIN, height + end_y);
    y += (plane * rows + row) * out_width;
#if LANES
    int reach = (kw - 1) * dx + 1 + (LANES - 1) * sx;
    float line[LINE + LANES], ready[LANES];
#endif
    ALONG(ox, out_width) {
        int at = ox * sx - px;
        float v = 0.0f;
#if LANES
        if (reach <= LINE) {
            int fit = (LINE - reach) / (LANES * sx) * LANES + LANES, part = ox % fit;
            if (part == 0)
                pool_line(&s, at, min(LINE, (min(fit, out_width - ox) - 1) * sx + (kw - 1) * dx + 1),
                          line);
            if (ox % LANES == 0)
                STORE(pool_windows(&s, line + part * sx, sx, kw, dx), ready);
            v = ready[ox % LANES];
        } else
#endif
        {
            v = s.mean ? 0.0f : -INFINITY;
            for (int k = 0; k < kw; k++) {
                float column = pool_column(&s, at + k * dx);
                v = s.mean ? v + column : ABOVE(column, v) ? column : v;
            }
        }
        if (kind == 1)
            v /= inside * taps_within(at, dx, kw, 0, width);
        if (kind == 2)
            v /= whole * taps_within(at, dx, kw, INT_MIN, width + end_x);
        PUT(y, ox, v);
    }
}

/* The greatest code of each window. */
#define POOL_CODES(name, type, least)                                                              \
    __kernel void name(__global const type *x, __global type *y, __global type *y2,                \
                       __global type *y3, pool_numbers numbers)                                    \
    {                                                                                              \
        POOL_NUMBERS(OWN)                                                                          \
        int row = get_global_id(1), d0 = row / out_height * sd - pd;                               \
        int y0 = row % out_height * sy - py;                                                       \
        size_t plane = get_global_id(2);                                                           \
        x += plane * depth * height * width;                                                       \
        y += (plane * get_global_size(1) + row) * out_width;                                       \
        ALONG(ox, out_width) {                                                                     \
            type most = least;                                                                     \
            for (int d = d0; d < d0 + kd * dd; d += dd)                                            \
                for (int iy = y0; iy < y0 + kh * dy; iy += dy)                                     \
                    for (int ix = ox * sx - px, k = 0; k < kw; k++, ix += dx)                      \
                        if (d >= 0 && d < depth && iy >= 0 && iy < height && ix >= 0 &&            \
                            ix < width)                                                            \
                            most = max(most, x[((size_t)d * height + iy) * width + ix]);           \
            y[ox] = most;                                                                          \
        }                                                                                          \
    }
POOL_CODES(pool_bytes, uchar, 0)
POOL_CODES(pool_chars, char, CHAR_MIN)
