/* conv.cl - convolutions of NCHW, of one to three axes.
 *
 * First `spread` writes the input with its padding, split by the phases of the stride, where there
 * are any: a tap of a window is an offset from the window's first element then (taps), the same at
 * every pixel, and nothing is asked about borders. The rest is a product of filters by a matrix
 * [channels * taps, pixels] that is never written: a CPU fills a panel of it in local memory for
 * every DEEP rows, and multiplies it in registers as gemm.cl does; elsewhere a group of
 * SIDE x SIDE items makes a tile of TILE x TILE. Two convolutions of one field may be a launch. On
 * a CPU the field of windows of one tap may be what filters of one channel make of x: the panel is
 * filled with that. */

#define SPREAD_NUMBERS(X)                                                                          \
    X(int, depth) X(int, height) X(int, width) X(int, qd) X(int, qh) X(int, qw) X(int, nd)         \
    X(int, ny) X(int, nx) X(int, sd) X(int, sy) X(int, sx) X(int, pd) X(int, py) X(int, px)        \
    X(int, lines)
typedef struct {
    SPREAD_NUMBERS(MEMBER)
} spread_numbers;

/* out: [planes][nd][ny][nx][qd][qh][qw]; an item makes `lines` rows of a plane, or a
 * part of each. */
__kernel void spread(__global const cell *x, __global cell *out, spread_numbers numbers)
{
    SPREAD_NUMBERS(OWN)
    int z = get_global_id(2), fx = z % nx, fy = z / nx % ny, fd = z / nx / ny % nd;
    int plane = z / (nx * ny * nd), first_row = (int)get_global_id(1) * lines;
    int shift = fx - px, last_row = min(first_row + lines, qd * qh);
    x += (size_t)plane * depth * height * width;
    out += ((size_t)z * qd * qh + first_row) * qw;
    for (int row = first_row; row < last_row; row++, out += qw) {
        int d = row / qh * sd + fd - pd, y = row % qh * sy + fy - py;
        bool inside = d >= 0 && d < depth && y >= 0 && y < height;
        __global const cell *in = x + ((size_t)(inside ? d : 0) * height + (inside ? y : 0)) *
                                           width;
        if (sx == 1 && get_global_size(0) == 1) { /* one item copies: zeros, elements, zeros */
            int first = inside ? min(max(-shift, 0), qw) : qw;
            int last = inside ? min(max(width - shift, first), qw) : qw;
            for (int i = 0; i < first; i++)
                out[i] = 0;
            for (int i = first; i < last; i++)
                out[i] = in[i + shift];
            for (int i = last; i < qw; i++)
                out[i] = 0;
            continue;
        }
        ALONG(i, qw) {
            int at = i * sx + shift;
            out[i] = inside && at >= 0 && at < width ? in[at] : 0;
        }
    }
}

#define CONV_NUMBERS(X)                                                                            \
    X(int, has_bias) X(int, has_sum) X(int, groups) X(int, ins) X(int, outs) X(int, tap_count)     \
    X(int, channel_step) X(int, slice_step) X(int, row_step) X(int, out_height)                    \
    X(int, out_width) X(int, plane) X(int, kind) X(float, a) X(float, b) X(int, rows)              \
    X(int, columns) X(int, span) X(int, most) X(int, pair) X(int, outs2) X(int, kh) X(int, kw)     \
    X(int, py) X(int, px) X(int, dy) X(int, dx) X(int, has_own_bias) X(int, own_kind) X(float, oa) \
    X(float, ob) X(int, size) X(int, start) X(int, start2) X(int, height) X(int, width)            \
    X(int, sy) X(int, sx)
typedef struct {
    CONV_NUMBERS(MEMBER)
} conv_numbers;

/* has_sum 1: `sum` is added before the activation, 2: behind it. pair 2: a second convolution, with
 * field, filters, bias, number of filters and result of its own. kh above 0: the field is computed
 * by windows of kh x kw, sy and sx apart (sx at most 2), of planes of height x width in x, which
 * has `size` elements. Results begin at `start`. */
#define CONV_BUFFERS                                                                               \
    __global const real *x, __global const real *w, __global const real *bias,                     \
        __global const real *sum, __global real *y, __global const int *taps,                      \
        __global const real *w2, __global const real *bias2, __global real *y2,                    \
        __global const real *own, __global const real *own_bias, __global const real *x2,          \
        __global const real *own2, __global const real *own_bias2
/* Which of a pair a group works for, and on which image. */
#define OF_PAIR(z)                                                                                 \
    y += start;                                                                                    \
    if (z % pair) {                                                                                \
        x = x2;                                                                                    \
        own = own2;                                                                                \
        own_bias = own_bias2;                                                                      \
        w = w2;                                                                                    \
        bias = bias2;                                                                              \
        y = y2 + start2;                                                                           \
        outs = outs2;                                                                              \
    }                                                                                              \
    z /= pair

#define ROWS_NUMBERS(X)                                                                            \
    X(int, has_bias) X(int, has_sum) X(int, maps) X(int, outs) X(int, height) X(int, width)        \
    X(int, out_height) X(int, out_width) X(int, kh) X(int, kw) X(int, sy) X(int, sx) X(int, py)    \
    X(int, px) X(int, dy) X(int, dx) X(int, kind) X(float, a) X(float, b) X(int, length)           \
    X(int, lines)
typedef struct {
    ROWS_NUMBERS(MEMBER)
} rows_numbers;

/* Where a filter has one channel, sums of so many taps of a row are added up apart, so that errors
 * don't grow with the window: filters of signals have hundreds of taps, and what they stop is a sum
 * near zero. */
#define APART 16
#define MOST_TAPS 25 /* of windows that are a field */

#define OFFSET(pixel)                                                                              \
    ((pixel) % out_width + (pixel) / out_width % out_height * row_step +                           \
     (pixel) / out_width / out_height * slice_step)

#if LANES

/* A strip of the matrix: rows of channel and tap, columns of the pixels whose offsets are `at`. */
static void fill_taps(__global const real *x, __global const int *taps, int tap, int tap_count,
                      size_t channel_step, const int *at, __local float *to, int depth)
{
    bool low = at[LANES - 1] - at[0] == LANES - 1;
    bool high = at[STRIP - 1] - at[LANES] == LANES - 1;
    for (int k = 0; k < depth; k++, to += STRIP) {
        __global const real *in = x + taps[tap];
        if (low)
            STORE(LOADR(in + at[0]), to);
        else
            for (int j = 0; j < LANES; j++)
                to[j] = AT(in, at[j]);
        if (high)
            STORE(LOADR(in + at[LANES]), to + LANES);
        else
            for (int j = LANES; j < STRIP; j++)
                to[j] = AT(in, at[j]);
        if (++tap == tap_count) {
            tap = 0;
            x += channel_step;
        }
    }
}

typedef struct target { /* of one tile */
    __global real *y;
    __global const real *sum; /* 0: none */
    const int *pixels;         /* of its columns; negative: none */
    int plane;
    bool late; /* the sum is added behind the activation */
} target;

/* What isn't a pixel of the plane is 0. */
typedef PASTE(int, LANES) bits;
typedef struct window {
    __global const real *x, *w, *bias; /* bias 0: none */
    long size;                         /* elements of x */
    int plane, out_width, height, width, kh, kw, sy, sx, py, px, dy, dx;
    const int *inside; /* by tap and pixel: all bits, or none */
    const int *from;   /* by pixel: where its window begins, from its plane's first element */
    finish f;
} window;

static void mark_inside(int *inside, int *from, const window *o, int p0)
{
    for (int j = 0; j < SUBS * STRIP; j++) {
        int p = p0 + j, top = p / o->out_width * o->sy - o->py;
        int left = p % o->out_width * o->sx - o->px;
        from[j] = top * o->width + left;
        for (int t = 0; t < o->kh * o->kw; t++) {
            int row = top + t / o->kw * o->dy, column = left + t % o->kw * o->dx;
            bool is = p < o->plane && row >= 0 && row < o->height && column >= 0 &&
                      column < o->width;
            inside[t * SUBS * STRIP + j] = is ? -1 : 0;
        }
    }
}

/* LANES elements from `at` on, as far as there are any. */
static V load_near(const window *o, long at)
{
    float some[LANES];
    if (at >= 0 && at + LANES <= o->size)
        return LOADR(o->x + at);
    for (int j = 0; j < LANES; j++)
        some[j] = at + j >= 0 && at + j < o->size ? AT(o->x, at + j) : 0.0f;
    return LOAD(some);
}

/* Those of LANES pixels of windows that lie two apart, from `plane` on in x: each second one, or as
 * they come where they are of two rows. */
static V load_apart(const window *o, long plane, const int *from)
{
    float some[LANES];
    if (from[LANES - 1] - from[0] == 2 * (LANES - 1)) {
        V low = load_near(o, plane + from[0]), high = load_near(o, plane + from[0] + LANES);
        return (V)(low.even, high.even);
    }
    for (int j = 0; j < LANES; j++) {
        long at = plane + from[j];
        some[j] = at >= 0 && at < o->size ? AT(o->x, at) : 0.0f;
    }
    return LOAD(some);
}

/* Strips of the field: a row for each of `depth` channels, from plane `first` on, whose filter is
 * `filter`. */
static void fill_windows(const window *o, int first, int filter, __local float *to, int depth)
{
    for (int k = 0; k < depth; k++, filter++, to += STRIP) {
        long at = (long)(first + k) * o->height * o->width;
        V acc[SUBS * 2];
#pragma unroll
        for (int i = 0; i < SUBS * 2; i++)
            acc[i] = o->bias ? AT(o->bias, filter) : 0.0f;
        for (int u = 0, t = 0; u < o->kh; u++, at += o->dy * o->width) {
            V some[SUBS * 2];
#pragma unroll
            for (int i = 0; i < SUBS * 2; i++)
                some[i] = 0.0f;
            for (int v = 0; v < o->kw; v++, t++) {
                V factor = AT(o->w, filter * o->kh * o->kw + t);
                const int *inside = o->inside + t * SUBS * STRIP;
#pragma unroll
                for (int i = 0; i < SUBS * 2; i++) {
                    long tap = at + v * o->dx;
                    V loaded = o->sx == 1 ? load_near(o, tap + o->from[0] + i * LANES)
                                          : load_apart(o, tap, o->from + i * LANES);
                    bits all = PASTE(as_int, LANES)(loaded);
                    all &= PASTE(vload, LANES)(i, inside);
                    some[i] = fused(factor, PASTE(as_float, LANES)(all), some[i]);
                }
            }
#pragma unroll
            for (int i = 0; i < SUBS * 2; i++)
                acc[i] += some[i];
        }
#pragma unroll
        for (int i = 0; i < SUBS * 2; i++)
            STORE(activated(&o->f, bounded(&o->f, acc[i])),
                  to + i / 2 * DEEP * STRIP + i % 2 * LANES);
    }
}

/* A strip of a row that isn't whole, or lies in pieces. */
static void put_strip(const float *sums, const target *t, __global real *y)
{
    for (int h = 0; h < STRIP; h += LANES) {
        const int *pixels = t->pixels + h;
        if (pixels[0] >= 0 && pixels[LANES - 1] == pixels[0] + LANES - 1)
            STORER(LOAD(sums + h), y + pixels[0]);
        else
            for (int j = 0; j < LANES; j++)
                if (pixels[j] >= 0)
                    PUT(y, pixels[j], sums[h + j]);
    }
}

/* A row at a time: the code of an activation stands here once. */
static void put_rows(V (*acc)[2], const target *t, const finish *f, int rows)
{
    float sums[ROWS * STRIP];
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        STORE(acc[i][0], sums + i * STRIP);
        STORE(acc[i][1], sums + i * STRIP + LANES);
    }
    for (int i = 0; i < rows; i++) {
        float *row = sums + i * STRIP;
        __global real *y = t->y + (size_t)i * t->plane;
        for (int j = 0; t->sum && !t->late && j < STRIP; j++)
            if (t->pixels[j] >= 0)
                row[j] += AT(t->sum, (size_t)i * t->plane + t->pixels[j]);
        for (int h = 0; h < STRIP; h += LANES)
            STORE(activated(f, bounded(f, LOAD(row + h))), row + h);
        for (int j = 0; t->sum && t->late && j < STRIP; j++)
            if (t->pixels[j] >= 0)
                row[j] += AT(t->sum, (size_t)i * t->plane + t->pixels[j]);
        put_strip(row, t, y);
    }
}

static void put_all(V (*acc)[2], const target *t, const finish *f)
{
    int first = t->pixels[0];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            size_t at = (size_t)i * t->plane + first + h * LANES;
            STORER(bounded(f, t->sum ? acc[i][h] + LOADR(t->sum + at) : acc[i][h]), t->y + at);
        }
}

static void put(V (*acc)[2], const target *t, const finish *f, int rows)
{
    bool whole = t->pixels[0] >= 0 && t->pixels[STRIP - 1] == t->pixels[0] + STRIP - 1;
    if (rows == ROWS && whole && !f->kind && !t->late)
        put_all(acc, t, f);
    else
        put_rows(acc, t, f, rows);
}

/* Sums of all but the last DEEP products wait in `waiting`, by tile.
 * w: strips of ROWS filters for each group. columns: of the matrix; span: they are all places of
 * the field between the first and the last pixel's, so that a strip is read as it lies, and what
 * isn't a pixel isn't kept. most: the last of them that may be read. */
ALONE void conv(CONV_BUFFERS, conv_numbers numbers)
{
    CONV_NUMBERS(OWN)
    __local float panel[SUBS * DEEP * STRIP] __attribute__((aligned(64)));
    float waiting[MOST_ROWS * SUBS * STRIP] __attribute__((aligned(64)));
#if HALF
    __local float wide[ROWS * DEEP] __attribute__((aligned(64)));
#endif
    int inside[MOST_TAPS * SUBS * STRIP] __attribute__((aligned(64)));
    int from[SUBS * STRIP];
    int z = get_group_id(2), K = ins * tap_count;
    OF_PAIR(z);
    int group = z % groups;
    int p0 = (int)get_group_id(0) * SUBS * STRIP, m0 = (int)get_group_id(1) * rows;
    int m_end = min(m0 + rows, outs), offsets[SUBS * STRIP], pixels[SUBS * STRIP];
    finish f = finish_of(kind, a, b);
    window field = {x, own, has_own_bias ? own_bias : 0, size, plane, out_width, height, width, kh,
                    kw, sy, sx, py, px, dy, dx, inside, from, finish_of(own_kind, oa, ob)};
    if (m0 >= outs) /* of the other one's rows */
        return;
    if (kh)
        mark_inside(inside, from, &field, p0);
    for (int j = 0; j < SUBS * STRIP; j++) {
        int at = min(p0 + j, most), column = at % row_step, row = at / row_step;
        int line = span ? row % (slice_step / row_step) : 0;
        bool is_pixel = p0 + j < columns;
        offsets[j] = span ? at : OFFSET(at);
        if (span) {
            is_pixel = is_pixel && column < out_width && line < out_height;
            row = row / (slice_step / row_step) * out_height + line;
        }
        pixels[j] = !is_pixel ? -1 : span ? row * out_width + column : p0 + j;
    }
    x += (size_t)z * ins * channel_step;
    y += (size_t)z * outs * plane;
    sum += (size_t)z * outs * plane;
    w += (size_t)group * ((outs + ROWS - 1) / ROWS) * K * ROWS;
    bias += group * outs;
    int k0 = 0;
    do {
        int depth = min(DEEP, K - k0);
        bool more = k0 > 0, last = k0 + depth == K;
        __private float *mine = waiting;
        if (kh)
            fill_windows(&field, z * ins + k0, group * ins + k0, panel, depth);
        for (int s = 0; !kh && s < SUBS && p0 + s * STRIP < columns; s++)
            fill_taps(x + (size_t)(k0 / tap_count) * channel_step, taps, k0 % tap_count, tap_count,
                      channel_step, offsets + s * STRIP, panel + s * DEEP * STRIP, depth);
        for (int m = m0; m < m_end; m += ROWS) {
            LEFT *row[ROWS];
            __global const real *next = /* the filters that are read next: another page */
                m + ROWS < m_end ? w + (size_t)(m + ROWS) * K + (size_t)k0 * ROWS
                                 : w + (size_t)m0 * K + (size_t)(k0 + depth) * ROWS;
#if HALF
            widen(w + (size_t)m * K + (size_t)k0 * ROWS, 1, wide, depth * ROWS);
#endif
#pragma unroll
            for (int i = 0; i < ROWS; i++)
                row[i] = HALF_OR(wide + i, w + (size_t)m * K + (size_t)k0 * ROWS + i);
            for (int s = 0; s < SUBS && p0 + s * STRIP < columns; s++, mine += ROWS * STRIP) {
                V acc[ROWS][2];
#pragma unroll
                for (int i = 0; i < ROWS; i++)
                    acc[i][0] = acc[i][1] =
                        has_bias && !more ? AT(bias, min(m + i, outs - 1)) : 0.0f;
                MULTIPLY_AND(acc, row, ROWS, panel + s * DEEP * STRIP, depth,
                             SOON(next + k_ * ROWS))
                if (more)
#pragma unroll
                    for (int i = 0; i < ROWS; i++) {
                        acc[i][0] += LOAD(mine + i * STRIP);
                        acc[i][1] += LOAD(mine + i * STRIP + LANES);
                    }
                if (last) {
                    const target t = {y + (size_t)m * plane,
                                      has_sum ? sum + (size_t)m * plane : 0, pixels + s * STRIP,
                                      plane, has_sum == 2};
                    put(acc, &t, &f, min(ROWS, m_end - m));
                    continue;
                }
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    STORE(acc[i][0], mine + i * STRIP);
                    STORE(acc[i][1], mine + i * STRIP + LANES);
                }
            }
        }
        k0 += depth;
    } while (k0 < K);
}

/* One filter a channel: an item has a channel. A row's last vector reads beyond it, but never
 * beyond the memory that `spread` wrote and its slack. */
ALONE void depthwise(CONV_BUFFERS, conv_numbers numbers)
{
    CONV_NUMBERS(OWN)
    int z = get_global_id(1), c = z % (groups * outs);
    finish f = finish_of(kind, a, b);
    V first = has_bias ? AT(bias, c) : 0.0f;
    x += (size_t)(z / outs) * channel_step;
    y += (size_t)z * plane;
    sum += (size_t)z * plane;
    w += c * tap_count;
    for (int row = 0; row < plane / out_width; row++) {
        __global const real *in = x + row % out_height * row_step + row / out_height * slice_step;
        for (int at = 0; at < out_width; at += LANES) {
            V acc = first;
            int p = row * out_width + at;
            for (int k0 = 0; k0 < tap_count; k0 += APART) {
                V some = 0.0f;
                for (int k = k0; k < min(k0 + APART, tap_count); k++)
                    some = fused((V)AT(w, k), LOADR(in + at + taps[k]), some);
                acc += some;
            }
            bool whole = at + LANES <= out_width;
            float sums[LANES];
            STORE(acc, sums);
            for (int j = 0; has_sum && j < min(LANES, out_width - at); j++)
                sums[j] += AT(sum, p + j);
            acc = activated(&f, bounded(&f, LOAD(sums)));
            STORE(acc, sums);
            for (int j = 0; !whole && j < out_width - at; j++)
                PUT(y, p + j, sums[j]);
            if (whole)
                STORER(acc, y + p);
        }
    }
}

#define OWN_FLOATS 4096 /* of an item, for the rows of a window */
#define OWN_ROWS 16

/* A row of the input as windows read it: its elements behind `shift` zeros, zeros behind them. */
static void own_row(__global const real *from, bool inside, int shift, int width, int length,
                    float *to)
{
    int last = inside ? clamp(shift + width, 0, length) : 0, i = 0;
    for (; i < min(shift, last); i++)
        to[i] = 0.0f;
    for (; i + LANES <= last; i += LANES)
        STORE(LOADR(from + i - shift), to + i);
    for (; i < last; i++)
        to[i] = AT(from, i - shift);
    for (; i < length; i++)
        to[i] = 0.0f;
}

/* Elements that lie `step` apart. */
static V every(const float *p, int step)
{
    float some[LANES];
    if (step == 1)
        return LOAD(p);
    if (step == 2) {
        V low = LOAD(p), high = LOAD(p + LANES);
        return (V)(low.even, high.even);
    }
    for (int j = 0; j < LANES; j++)
        some[j] = p[j * step];
    return LOAD(some);
}

/* One filter a channel, windows of two axes: an item makes `lines` rows of a channel. Rows of the
 * input come to memory of its own, each once and with its padding; there they take turns. length:
 * of one of these, as far as the last window's vector reads. */
ALONE void depthwise_rows(__global const real *x, __global const real *w,
                          __global const real *bias, __global const real *sum, __global real *y,
                          rows_numbers numbers)
{
    ROWS_NUMBERS(OWN)
    float own[OWN_FLOATS] __attribute__((aligned(64)));
    const float *line[OWN_ROWS];
    int z = get_global_id(1), c = z % maps, reach = (kh - 1) * dy + 1;
    int row = (int)get_global_id(0) * lines, end = min(row + lines, out_height), ready = row * sy;
    finish f = finish_of(kind, a, b);
    V first = has_bias ? AT(bias, c) : 0.0f;
    x += (size_t)(z / outs) * height * width;
    w += c * kh * kw;
    for (; row < end; row++) {
        size_t begin = ((size_t)z * out_height + row) * out_width;
        int top = row * sy;
        for (ready = max(ready, top); ready < top + reach; ready++) {
            int from = ready - py;
            bool inside = from >= 0 && from < height;
            own_row(x + (size_t)(inside ? from : 0) * width, inside, px, width, length,
                    own + ready % reach * length);
        }
        for (int u = 0; u < kh; u++)
            line[u] = own + (top + u * dy) % reach * length;
        for (int at = 0; at < out_width; at += LANES) {
            V acc = first;
            float sums[LANES];
            for (int u = 0; u < kh; u++)
                for (int v0 = 0; v0 < kw; v0 += APART) {
                    const float *in = line[u] + at * sx;
                    V some = 0.0f;
                    for (int v = v0; v < min(v0 + APART, kw); v++)
                        some = fused((V)AT(w, u * kw + v), every(in + v * dx, sx), some);
                    acc += some;
                }
            bool whole = at + LANES <= out_width;
            STORE(acc, sums);
            for (int j = 0; has_sum && j < min(LANES, out_width - at); j++)
                sums[j] += AT(sum, begin + at + j);
            acc = activated(&f, bounded(&f, LOAD(sums)));
            STORE(acc, sums);
            for (int j = 0; !whole && j < out_width - at; j++)
                PUT(y, begin + at + j, sums[j]);
            if (whole)
                STORER(acc, y + begin + at);
        }
    }
}

#else

#define STEP 16
#define PART (TILE / SIDE)
#define BLOCK (HALF == 2 ? STEP : 128) /* sums of so many products are added up apart */

__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1)))
void conv(CONV_BUFFERS, conv_numbers numbers)
{
    CONV_NUMBERS(OWN)
    __local NUMBER ws[STEP][TILE], xs[STEP][TILE];
    int z = get_group_id(2), K = ins * tap_count;
    OF_PAIR(z);
    int group = z % groups;
    int lx = get_local_id(0), ly = get_local_id(1), l = ly * SIDE + lx;
    int p0 = (int)get_group_id(0) * TILE, m0 = (int)get_group_id(1) * TILE;
    int pixel = min(p0 + l % TILE, plane - 1), offset = OFFSET(pixel);
    float whole[PART][PART];
    NUMBER acc[PART][PART];
    x += (size_t)z * ins * channel_step + offset;
    w += (size_t)group * outs * K;
    for (int i = 0; i < PART; i++)
        for (int j = 0; j < PART; j++)
            whole[i][j] = acc[i][j] = 0.0f;
    for (int k0 = 0; k0 < K; k0 += STEP) {
        for (int e = l; e < STEP * TILE; e += SIDE * SIDE) {
            int k = e / TILE, in = k0 + k, own = e % STEP, m = m0 + e / STEP;
            xs[k][e % TILE] =
                in < K ? AT(x, (size_t)(in / tap_count) * channel_step + taps[in % tap_count])
                       : 0.0f;
            ws[own][e / STEP] = m < outs && k0 + own < K ? AT(w, (size_t)m * K + k0 + own) : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < STEP; k++)
            for (int i = 0; i < PART; i++)
                for (int j = 0; j < PART; j++)
                    acc[i][j] = fma(ws[k][ly * PART + i], xs[k][j * SIDE + lx], acc[i][j]);
        if ((k0 + STEP) % BLOCK == 0)
            for (int i = 0; i < PART; i++)
                for (int j = 0; j < PART; j++) {
                    whole[i][j] += acc[i][j];
                    acc[i][j] = 0.0f;
                }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < PART; i++)
        for (int j = 0; j < PART; j++) {
            int m = m0 + ly * PART + i, p = p0 + j * SIDE + lx;
            size_t at = ((size_t)z * outs + m) * plane + p;
            if (m < outs && p < plane)
                PUT(y, at, activate(kind, a, b, whole[i][j] + acc[i][j] +
                                                    (has_bias ? AT(bias, group * outs + m) : 0.0f) +
                                                    (has_sum == 1 ? AT(sum, at) : 0.0f)) +
                               (has_sum == 2 ? AT(sum, at) : 0.0f));
        }
}

__kernel void depthwise(CONV_BUFFERS, conv_numbers numbers)
{
    CONV_NUMBERS(OWN)
    int pixel = get_global_id(0), z = get_global_id(1), c = z % (groups * outs);
    float acc = has_bias ? AT(bias, c) : 0.0f;
    size_t at = (size_t)z * plane + pixel;
    x += (size_t)(z / outs) * channel_step + OFFSET(pixel);
    for (int k0 = 0; k0 < tap_count; k0 += APART) {
        float some = 0.0f;
        for (int k = k0; k < min(k0 + APART, tap_count); k++)
            some = fma(AT(w, c * tap_count + k), AT(x, taps[k]), some);
        acc += some;
    }
    PUT(y, at, activate(kind, a, b, acc + (has_sum ? AT(sum, at) : 0.0f)));
}

/* One filter a channel, windows of two axes, of the input as it lies: an item has a pixel. */
__kernel void depthwise_rows(__global const real *x, __global const real *w,
                             __global const real *bias, __global const real *sum, __global real *y,
                             rows_numbers numbers)
{
    ROWS_NUMBERS(OWN)
    int pixel = get_global_id(0), z = get_global_id(1), c = z % maps;
    int top = pixel / out_width * sy - py, left = pixel % out_width * sx - px;
    float acc = has_bias ? AT(bias, c) : 0.0f;
    size_t at = (size_t)z * out_height * out_width + pixel;
    x += (size_t)(z / outs) * height * width;
    w += c * kh * kw;
    for (int u = 0; u < kh; u++)
        for (int v0 = 0; v0 < kw; v0 += APART) {
            float some = 0.0f;
            for (int v = v0; v < min(v0 + APART, kw); v++) {
                int iy = top + u * dy, ix = left + v * dx;
                bool inside = iy >= 0 && iy < height && ix >= 0 && ix < width;
                some = fma(AT(w, u * kw + v), inside ? AT(x, iy * width + ix) : 0.0f, some);
            }
            acc += some;
        }
    PUT(y, at, activate(kind, a, b, acc + (has_sum ? AT(sum, at) : 0.0f)));
}

#endif

/* What a transposed convolution's pixels add to each output: parts [channels * taps, pixels]. */
__kernel void gather(__global const real *parts, __global const real *bias, __global real *y,
                     int has_bias, int channels, int depth, int height, int width, int out_height,
                     int out_width, int kd, int kh, int kw, int sd, int sy, int sx, int pd, int py,
                     int px, int dd, int dy, int dx)
{
    int row = get_global_id(1), c = get_global_id(2) % channels;
    size_t plane = get_global_id(2), pixels = (size_t)depth * height * width;
    int od = row / out_height + pd, oy = row % out_height + py;
    parts += plane * kd * kh * kw * pixels;
    y += (plane * get_global_size(1) + row) * out_width;
    ALONG(x, out_width) {
        int ox = x + px;
        float sum = has_bias ? AT(bias, c) : 0.0f;
        for (int d = 0; d < kd; d++)
            for (int ky = 0; ky < kh; ky++)
                for (int kx = 0; kx < kw; kx++) {
                    int iz = od - d * dd, iy = oy - ky * dy, ix = ox - kx * dx;
                    if (iz < 0 || iy < 0 || ix < 0 || iz % sd || iy % sy || ix % sx)
                        continue;
                    iz /= sd;
                    iy /= sy;
                    ix /= sx;
                    if (iz < depth && iy < height && ix < width)
                        sum += AT(parts, ((d * kh + ky) * kw + kx) * pixels +
                                             ((size_t)iz * height + iy) * width + ix);
                }
        PUT(y, x, sum);
    }
}
