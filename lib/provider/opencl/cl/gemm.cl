/* gemm.cl - products of matrices with strides, in two batch axes.
 *
 * On a CPU an item makes `rows` rows of SUBS strips: a panel of B lies in local memory for every
 * DEEP products, and tiles of it are made in registers. B may be packed (strips of STRIP columns
 * behind each other, b_strip apart), which a copy into the panel reads fastest.
 *
 * Attention on a CPU is two such products with what attend_row makes of scores between them
 * (ATTEND).
 *
 * A norm of whole rows may follow (NORM; `norm` 2: about the mean): the item that is the last to be
 * done with them makes it, so that nobody waits. Atomics order memory on a CPU; they needn't
 * elsewhere, where a norm is a launch of its own.
 *
 * Elsewhere a group makes a tile of TILE x TILE (given, 32 as a rule): strips of both operands, 16
 * deep, lie in local memory, and each of SIDE x SIDE items makes PART x PART sums. */

#define GEMM_NUMBERS(X)                                                                            \
    X(int, has_c) X(int, M) X(int, N) X(int, K) X(int, batch2) X(int, a0) X(int, a1) X(int, a2)    \
    X(int, am) X(int, ak) X(int, b0) X(int, b1) X(int, b2) X(int, bk) X(int, bn) X(int, b_strip)   \
    X(int, c0) X(int, c1) X(int, c2) X(int, cm) X(int, cn) X(int, y0) X(int, y1) X(int, y2)        \
    X(int, ym) X(int, yn) X(float, alpha) X(float, beta) X(int, kind) X(float, pa) X(float, pb)    \
    X(int, rows) X(int, norm) X(int, has_skip) X(int, has_more) X(int, has_shift) X(float, epsilon)
typedef struct {
    GEMM_NUMBERS(MEMBER)
} gemm_numbers;

#ifndef NORM
#define NORM 0
#endif
#ifndef ATTEND
#define ATTEND 0
#endif

#if LANES

#if ATTEND

/* The first or last LANES of a[0] b[0] a[1] b[1] ... */
static V woven(V a, V b, bool last)
{
    V v;
    v.even = last ? a.hi : a.lo;
    v.odd = last ? b.hi : b.lo;
    return v;
}

/* LANES columns, which lie closely one by one, `bn` apart, as LANES rows. */
static void turn(__global const real *b, int bn, __local float *to)
{
    V v[LANES], w[LANES];
#pragma unroll
    for (int j = 0; j < LANES; j++)
        v[j] = LOADR(b + j * bn);
#pragma unroll
    for (int step = 1; step < LANES; step *= 2) {
#pragma unroll
        for (int j = 0; j < LANES; j++)
            w[j] = woven(v[j / 2], v[j / 2 + LANES / 2], j % 2);
#pragma unroll
        for (int j = 0; j < LANES; j++)
            v[j] = w[j];
    }
#pragma unroll
    for (int j = 0; j < LANES; j++)
        STORE(v[j], to + j * STRIP);
}

#endif

/* [depth][STRIP] of B, zeros behind the last column. */
static void fill_strip(__global const real *b, __local float *to, int depth, int cols, int bk,
                       int bn)
{
    int k = 0;
#if ATTEND
    if (bk == 1 && cols == STRIP)
        for (; k + LANES <= depth; k += LANES, b += LANES, to += LANES * STRIP) {
            turn(b, bn, to);
            turn(b + LANES * bn, bn, to + LANES);
        }
#endif
    for (; k < depth; k++, b += bk, to += STRIP) {
        if (bn == 1 && cols == STRIP) {
            STORE(LOADR(b), to);
            STORE(LOADR(b + LANES), to + LANES);
        } else {
            for (int j = 0; j < STRIP; j++)
                to[j] = j < cols ? AT(b, j * bn) : 0.0f;
        }
    }
}

typedef struct target { /* of one tile */
    __global real *y;
    WAITING *sums;
    __global const real *c; /* 0: none */
    int ym, sm, cm, cn;     /* from row to row; of c, from column to column */
    float alpha, beta;
    bool more, last; /* there are sums of earlier products; there are none behind */
} target;

static void put_some(V (*acc)[2], const target *t, const finish *f, int rows, int cols)
{
    float sums[ROWS * STRIP];
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        STORE(acc[i][0], sums + i * STRIP);
        STORE(acc[i][1], sums + i * STRIP + LANES);
    }
    for (int i = 0; i < rows; i++) {
        float *row = sums + i * STRIP;
        for (int j = 0; j < cols; j++) {
            float v = row[j] + (t->more ? t->sums[i * t->sm + j] : 0.0f);
            if (t->last)
                v = v * t->alpha + (t->c ? t->beta * AT(t->c, i * t->cm + j * t->cn) : 0.0f);
            row[j] = v;
        }
        for (int h = 0; t->last && h < STRIP; h += LANES)
            STORE(activated(f, bounded(f, LOAD(row + h))), row + h);
        for (int j = 0; j < cols; j++) {
            if (t->last)
                PUT(t->y, i * t->ym + j, row[j]);
            else
                t->sums[i * t->sm + j] = row[j];
        }
    }
}

/* The code of an activation stands here once. */
static void put_activated(const float *sums, const target *t, const finish *f)
{
    for (int i = 0; i < ROWS; i++)
        for (int h = 0; h < STRIP; h += LANES)
            STORER(activated(f, LOAD(sums + i * STRIP + h)), t->y + i * t->ym + h);
}

static void put_all(V (*acc)[2], const target *t, const finish *f)
{
    float all[ROWS * STRIP];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            WAITING *sums = t->sums + i * t->sm + h * LANES;
            V v = acc[i][h];
            if (t->more)
                v += LOAD(sums);
            if (!t->last) {
                STORE(v, sums);
                continue;
            }
            v *= t->alpha;
            if (t->c) {
                __global const real *c = t->c + i * t->cm + h * LANES * t->cn;
                v += t->beta * (t->cn ? LOADR(c) : (V)AT(c, 0));
            }
            if (f->kind)
                STORE(v, all + i * STRIP + h * LANES);
            else
                STORER(bounded(f, v), t->y + i * t->ym + h * LANES);
        }
    if (t->last && f->kind)
        put_activated(all, t, f);
}

#if NORM

/* Is this item the last of those that count here? They have written what it reads from now on. */
static bool is_last(volatile __global int *done, int items)
{
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    if (atomic_inc(done) < items - 1)
        return false;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    *done = 0;
    return true;
}

/* A call of its own: within the kernel it would cost the product registers. */
WIDE __attribute__((noinline)) static void
norm_rows(__global real *rows, __global const real *skip, __global const real *more,
          __global const real *scale, __global const real *shift, __global real *out, int first,
          int end, bool centred, int count, float epsilon)
{
    for (size_t at = (size_t)first * count; at < (size_t)end * count; at += count)
        norm_row(rows + at, skip ? skip + at : 0, more, scale, shift, rows + at, out + at, centred,
                 count, epsilon);
}

#endif

#if ATTEND

/* A call of its own: what loops around it need would cost the product registers. */
WIDE __attribute__((noinline)) static void
make_tile(LEFT **a, __local const float *strip, int depth, const target *to, int rows, int cols)
{
    const target t = *to; /* a copy: a result may lie where it does, for all that is known */
    const finish f = finish_of(0, 0.0f, 0.0f);
    V acc[ROWS][2];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        acc[i][0] = acc[i][1] = 0.0f;
    MULTIPLY(acc, a, 1, strip, depth)
    if (rows == ROWS && cols == STRIP)
        put_all(acc, &t, &f);
    else
        put_some(acc, &t, &f, rows, cols);
}

typedef struct room { /* in local memory */
    __local float *panel, *waiting, *wide;
} room;

/* Rows m0 to m_end of Y = alpha A B, A's elements side by side, `am` from row to row: as kernel
 * gemm makes them, which has its loops itself, as it is a third slower with this between. */
static void multiply_rows(__global const real *A, int am, __global const real *B, int bk, int bn,
                          __global real *Y, int ym, int N, int K, int m0, int m_end, float alpha,
                          room own)
{
    target t = {0, 0, 0, ym, HALF ? SUBS * STRIP : ym, 0, 0, alpha, 0.0f, false, false};
    for (int n = 0; n < N; n += SUBS * STRIP)
        for (int k = 0; k < K; k += DEEP) {
            int depth = min(DEEP, K - k);
            t.more = k > 0;
            t.last = k + depth == K;
            for (int s = 0; s < SUBS && n + s * STRIP < N; s++)
                fill_strip(B + (size_t)(n + s * STRIP) * bn + (size_t)k * bk,
                           own.panel + s * DEEP * STRIP, depth, min(STRIP, N - n - s * STRIP), bk,
                           bn);
            for (int m = m0; m < m_end; m += ROWS) {
                LEFT *a[ROWS];
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    __global const real *row = A + (size_t)min(m + i, m_end - 1) * am + k;
#if HALF
                    widen(row, 1, own.wide + i * DEEP, depth);
                    a[i] = own.wide + i * DEEP;
#else
                    a[i] = row;
#endif
                }
                for (int s = 0; s < SUBS && n + s * STRIP < N; s++) {
                    t.y = Y + (size_t)m * ym + n + s * STRIP;
#if HALF
                    t.sums = own.waiting + (m - m0) * SUBS * STRIP + s * STRIP;
#else
                    t.sums = t.y;
#endif
                    make_tile(a, own.panel + s * DEEP * STRIP, depth, &t, min(ROWS, m_end - m),
                              min(STRIP, N - n - s * STRIP));
                }
            }
        }
}

/* Attention: an item has `each` rows of a head, their scores, what attend_row makes of these, and
 * what that weighs; x is where they are. */
ALONE void attend_tiles(__global const real *q, __global const real *keys,
                        __global const real *values, __global real *y, __global real *x,
                        __global const void *mask, __global const int *places,
                        __global const real *sinks, few_numbers numbers)
{
    FEW_NUMBERS(OWN)
    __local float panel[SUBS * DEEP * STRIP] __attribute__((aligned(64)));
#if HALF
    __local float waiting[MOST_ROWS * SUBS * STRIP] __attribute__((aligned(64)));
    __local float wide[ROWS * DEEP] __attribute__((aligned(64)));
    const room room_ = {panel, waiting, wide};
#else
    const room room_ = {panel, 0, 0};
#endif
    const attend_numbers own = {ATTEND_NUMBERS(COPIED)};
    int head = get_global_id(1), b = get_global_id(2), first = (int)get_global_id(0) * each;
    int end = min(first + each, rows);
    size_t at = ((size_t)b * heads + head) * rows;
    q += q0 + b * q1 + head * q2;
    keys += k0 + b * k1 + head / shared * k2;
    values += v0 + b * v1 + head / shared * v2;
    y += y0 + b * y1 + head * y2;
    multiply_rows(q, qm, keys, 1, km, x + at * count, count, count, size, first, end, scale, room_);
    for (int i = first; i < end; i++)
        attend_row(x, mask, places, sinks, own, at + i);
    multiply_rows(x + at * count, count, values, vm, 1, y, ym, value_size, count, first, end, 1.0f,
                  room_);
}

#else

/* Y = alpha A B + beta C; of the norm: two more terms of the rows, its scale and bias, its result,
 * and by `rows` rows how many items are done (0 before and behind). */
ALONE void gemm(__global const real *A, __global const real *B, __global const real *C,
                __global real *Y,
#if NORM
                __global const real *skip, __global const real *more, __global const real *scale,
                __global const real *shift, __global real *out, __global int *done,
#endif
                gemm_numbers numbers)
{
    GEMM_NUMBERS(OWN)
    __local float panel[SUBS * DEEP * STRIP] __attribute__((aligned(64)));
    int z1 = (int)get_group_id(2) / batch2, z2 = (int)get_group_id(2) % batch2;
    int n0 = (int)get_group_id(0) * SUBS * STRIP, m0 = (int)get_group_id(1) * rows;
    int m_end = min(m0 + rows, M), k0 = 0;
    finish f = finish_of(kind, pa, pb);
    target t = {0, 0, 0, ym, HALF ? SUBS * STRIP : ym, cm, cn, alpha, beta, false, false};
#if HALF
    __local float waiting[MOST_ROWS * SUBS * STRIP] __attribute__((aligned(64)));
    __local float wide[ROWS * DEEP] __attribute__((aligned(64)));
#endif
#if NORM
    __global real *whole = Y;
#endif
    A += a0 + z1 * a1 + z2 * a2;
    B += b0 + z1 * b1 + z2 * b2 + (size_t)(n0 / STRIP) * b_strip;
    C += c0 + z1 * c1 + z2 * c2 + n0 * cn;
    Y += y0 + z1 * y1 + z2 * y2 + n0;
    do {
        int depth = min(DEEP, K - k0);
        t.more = k0 > 0;
        t.last = k0 + depth == K;
        for (int s = 0; s < SUBS && n0 + s * STRIP < N; s++)
            fill_strip(B + (size_t)s * b_strip + (size_t)k0 * bk, panel + s * DEEP * STRIP, depth,
                       min(STRIP, N - n0 - s * STRIP), bk, bn);
        for (int m = m0; m < m_end; m += ROWS) {
            LEFT *a[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                __global const real *row = A + (size_t)min(m + i, M - 1) * am + (size_t)k0 * ak;
#if HALF
                widen(row, ak, wide + i * DEEP, depth);
                a[i] = wide + i * DEEP;
#else
                a[i] = row;
#endif
            }
            for (int s = 0; s < SUBS && n0 + s * STRIP < N; s++) {
                V acc[ROWS][2];
                int cols = min(STRIP, N - n0 - s * STRIP);
#pragma unroll
                for (int i = 0; i < ROWS; i++)
                    acc[i][0] = acc[i][1] = 0.0f;
                if (HALF || ak == 1) {
                    MULTIPLY(acc, a, 1, panel + s * DEEP * STRIP, depth)
                } else {
                    MULTIPLY(acc, a, ak, panel + s * DEEP * STRIP, depth)
                }
                t.y = Y + (size_t)m * ym + s * STRIP;
#if HALF
                t.sums = waiting + (m - m0) * SUBS * STRIP + s * STRIP;
#else
                t.sums = t.y;
#endif
                t.c = has_c ? C + (size_t)m * cm + s * STRIP * cn : 0;
                if (m + ROWS <= m_end && cols == STRIP && cn <= 1)
                    put_all(acc, &t, &f);
                else
                    put_some(acc, &t, &f, min(ROWS, m_end - m), cols);
            }
        }
        k0 += depth;
    } while (k0 < K);
#if NORM
    if (is_last(done + get_group_id(1), get_num_groups(0)))
        norm_rows(whole, has_skip ? skip : 0, has_more ? more : 0, scale, has_shift ? shift : 0,
                  out, m0, m_end, norm == 2, N, epsilon);
#endif
}

#endif

#else

#define STEP 16
#define PART (TILE / SIDE)
#define BLOCK (HALF == 2 ? STEP : 128) /* sums of so many products are added up apart */

__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1)))
void gemm(__global const real *A, __global const real *B, __global const real *C, __global real *Y,
          gemm_numbers numbers)
{
    GEMM_NUMBERS(OWN)
    __local NUMBER As[STEP][TILE], Bs[STEP][TILE];
    int z1 = (int)get_group_id(2) / batch2, z2 = (int)get_group_id(2) % batch2;
    int lx = get_local_id(0), ly = get_local_id(1), l = ly * SIDE + lx;
    int n0 = (int)get_group_id(0) * TILE, m0 = (int)get_group_id(1) * TILE;
    float sum[PART][PART];
    NUMBER acc[PART][PART];
    A += a0 + z1 * a1 + z2 * a2;
    B += b0 + z1 * b1 + z2 * b2;
    for (int i = 0; i < PART; i++)
        for (int j = 0; j < PART; j++)
            sum[i][j] = acc[i][j] = 0.0f;
    for (int k0 = 0; k0 < K; k0 += STEP) {
        for (int e = l; e < STEP * TILE; e += SIDE * SIDE) {
            int k = e / TILE, t = e % TILE;
            As[k][t] = m0 + t < M && k0 + k < K ? AT(A, (m0 + t) * am + (k0 + k) * ak) : 0.0f;
            Bs[k][t] = n0 + t < N && k0 + k < K ? AT(B, (k0 + k) * bk + (n0 + t) * bn) : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < STEP; k++) {
            NUMBER av[PART], bv[PART];
            for (int i = 0; i < PART; i++)
                av[i] = As[k][ly * PART + i];
            for (int j = 0; j < PART; j++)
                bv[j] = Bs[k][j * SIDE + lx];
            for (int i = 0; i < PART; i++)
                for (int j = 0; j < PART; j++)
                    acc[i][j] = fma(av[i], bv[j], acc[i][j]);
        }
        if ((k0 + STEP) % BLOCK == 0)
            for (int i = 0; i < PART; i++)
                for (int j = 0; j < PART; j++) {
                    sum[i][j] += acc[i][j];
                    acc[i][j] = 0.0f;
                }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < PART; i++)
        for (int j = 0; j < PART; j++) {
            int m = m0 + ly * PART + i, n = n0 + j * SIDE + lx;
            if (m >= M || n >= N)
                continue;
            float v = alpha * (sum[i][j] + acc[i][j]);
            if (has_c)
                v += beta * AT(C, c0 + z1 * c1 + z2 * c2 + m * cm + n * cn);
            PUT(Y, y0 + z1 * y1 + z2 * y2 + m * ym + n * yn, activate(kind, pa, pb, v));
        }
}

#endif

/* Into strips: [batch][outer / strip][K][strip], zeros behind the last of `outer`. */
__kernel void pack(__global const cell *in, __global cell *out, int start, int batch_step,
                   int outer_step, int k_step, int outer, int K, int strip)
{
    int strips = (outer + strip - 1) / strip;
    size_t at = (size_t)get_global_id(1) * K * strip;
    int batch = (int)get_global_id(1) / strips, first = (int)get_global_id(1) % strips * strip;
    in += start + (size_t)batch * batch_step;
    for (int j = 0; j < strip; j++)
        ALONG(k, K)
            out[at + (size_t)k * strip + j] =
                first + j < outer ? in[(size_t)(first + j) * outer_step + (size_t)k * k_step]
                                  : 0;
}
