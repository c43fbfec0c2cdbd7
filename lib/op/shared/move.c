/* move.c - strided copies and fills of elements of any size.
 *
 * Invariant: dims of an ort_move are in destination order, so tasks own disjoint destinations. A
 * copy ends in one of three inner loops: a memcpy run, a tile transpose (source stride 1 on another
 * dim than the destination), or a strided loop by element size.
 */
#include "op/shared/move.h"

#pragma GCC optimize("O3") /* vectorize the loops by element size */

#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "base/num.h"
#include "base/shuffle.h"

enum { TASK_BYTES = 128 * 1024, TILE = 32 };

typedef struct block16 {
    uint64_t low, high;
} block16;

typedef uint8_t vec16 __attribute__((vector_size(16)));
typedef uint16_t vec8 __attribute__((vector_size(16)));
typedef uint32_t vec4 __attribute__((vector_size(16)));

size_t ort_move_element_bytes(ort_dtype dtype)
{
    int bits = ort_dtype_get(dtype)->bits;
    return bits < 8 ? 0 : (size_t)bits / 8;
}

void ort_move_add(ort_move *m, int64_t dim, int64_t src_stride, int64_t dst_stride)
{
    if (dim == 1)
        return;
    if (m->rank > 0 && m->src_stride[m->rank - 1] == dim * src_stride &&
        m->dst_stride[m->rank - 1] == dim * dst_stride) {
        m->dim[m->rank - 1] *= dim;
        m->src_stride[m->rank - 1] = src_stride;
        m->dst_stride[m->rank - 1] = dst_stride;
        return;
    }
    assert(m->rank < ORT_MOVE_MAX);
    m->dim[m->rank] = dim;
    m->src_stride[m->rank] = src_stride;
    m->dst_stride[m->rank++] = dst_stride;
}

/* ---- inner loops */

#define FILL_LOOP(type)                                                                            \
    do {                                                                                           \
        type v_ = *(const type *)src, *d_ = (type *)dst;                                           \
        for (int64_t i = 0; i < count; i++)                                                        \
            d_[i] = v_;                                                                            \
    } while (0)

static void fill_blocks(void *dst, int64_t count, const void *src, size_t bytes)
{
    switch (bytes) {
    case 1: memset(dst, *(const uint8_t *)src, (size_t)count); break;
    case 2: FILL_LOOP(uint16_t); break;
    case 4: FILL_LOOP(uint32_t); break;
    case 8: FILL_LOOP(uint64_t); break;
    default: FILL_LOOP(block16); break;
    }
}

#define STRIDED_LOOP(type)                                                                         \
    do {                                                                                           \
        type *d_ = (type *)dst;                                                                    \
        const type *s_ = (const type *)src;                                                        \
        for (int64_t i = 0; i < n; i++)                                                            \
            d_[i * ds] = s_[i * ss];                                                               \
    } while (0)

static vec4 load4(const uint32_t *p)
{
    vec4 v;
    memcpy(&v, p, sizeof v);
    return v;
}

static void store4(uint32_t *p, vec4 v)
{
    memcpy(p, &v, sizeof v);
}

/* Every second, third or fourth word, as long as four of them lie in what may be read: how many
 * were copied. */
static int64_t pick_words(uint32_t *dst, const uint32_t *src, int64_t step, int64_t n)
{
    int64_t i = 0;
    if (step == 2)
        for (; i + 4 < n; i += 4, src += 8)
            store4(dst + i, ORT_SHUFFLE(load4(src), load4(src + 4), 0, 2, 4, 6));
    else if (step == 3)
        for (; i + 4 < n; i += 4, src += 12) {
            vec4 v = ORT_SHUFFLE(load4(src), load4(src + 4), 0, 3, 6, 6);
            store4(dst + i, ORT_SHUFFLE(v, load4(src + 8), 0, 1, 2, 5));
        }
    else
        for (; i + 4 < n; i += 4, src += 16) {
            vec4 v = ORT_SHUFFLE(load4(src), load4(src + 4), 0, 4, 0, 4);
            vec4 w = ORT_SHUFFLE(load4(src + 8), load4(src + 12), 0, 4, 0, 4);
            store4(dst + i, ORT_SHUFFLE(v, w, 0, 1, 4, 5));
        }
    return i;
}

static void copy_strided(char *dst, int64_t ds, const char *src, int64_t ss, int64_t n,
                         size_t bytes)
{
    if (ds == 1 && ss == 1) {
        memcpy(dst, src, (size_t)n * bytes);
        return;
    }
    if (ds == 1 && bytes == 4 && ss >= 2 && ss <= 4) {
        int64_t done = pick_words((void *)dst, (const void *)src, ss, n);
        dst += done * 4;
        src += done * ss * 4;
        n -= done;
    }
    if (ds == 1 && ss == 0) {
        fill_blocks(dst, n, src, bytes);
        return;
    }
    switch (bytes) {
    case 1: STRIDED_LOOP(uint8_t); break;
    case 2: STRIDED_LOOP(uint16_t); break;
    case 4: STRIDED_LOOP(uint32_t); break;
    case 8: STRIDED_LOOP(uint64_t); break;
    default: STRIDED_LOOP(block16); break;
    }
}

static void transpose4x4(uint32_t *dst, int64_t dk, const uint32_t *src, int64_t sj)
{
    vec4 a = load4(src), b = load4(src + sj), c = load4(src + 2 * sj), d = load4(src + 3 * sj);
    vec4 ab0 = ORT_SHUFFLE(a, b, 0, 4, 1, 5), ab1 = ORT_SHUFFLE(a, b, 2, 6, 3, 7);
    vec4 cd0 = ORT_SHUFFLE(c, d, 0, 4, 1, 5), cd1 = ORT_SHUFFLE(c, d, 2, 6, 3, 7);
    store4(dst, ORT_SHUFFLE(ab0, cd0, 0, 1, 4, 5));
    store4(dst + dk, ORT_SHUFFLE(ab0, cd0, 2, 3, 6, 7));
    store4(dst + 2 * dk, ORT_SHUFFLE(ab1, cd1, 0, 1, 4, 5));
    store4(dst + 3 * dk, ORT_SHUFFLE(ab1, cd1, 2, 3, 6, 7));
}

#define LOW_BYTES 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23

/* The upper half of a vector as its lower one, and again. */
static inline vec16 upper_half(vec16 v)
{
    vec4 words = (vec4)v;
    return (vec16)ORT_SHUFFLE(words, words, 2, 3, 2, 3);
}

/* n x n elements: interleaving rows i and i + n/2, log2(n) times, transposes. */
#define TRANSPOSE_BLOCK(name, type, vec, n, low_mask, high_mask)                                   \
    static void name(type *dst, int64_t dk, const type *src, int64_t sj)                           \
    {                                                                                              \
        vec a[n], b[n];                                                                            \
        for (int i = 0; i < (n); i++)                                                              \
            memcpy(&a[i], src + i * sj, sizeof a[i]);                                              \
        for (int step = 1; step < (n); step *= 2) {                                                \
            for (int i = 0; i < (n) / 2; i++) {                                                    \
                b[2 * i] = ORT_SHUFFLE(a[i], a[i + (n) / 2], low_mask);                            \
                b[2 * i + 1] = ORT_SHUFFLE(a[i], a[i + (n) / 2], high_mask);                       \
            }                                                                                      \
            memcpy(a, b, sizeof a);                                                                \
        }                                                                                          \
        for (int i = 0; i < (n); i++)                                                              \
            memcpy(dst + i * dk, &a[i], sizeof a[i]);                                              \
    }

/* Bytes of three kinds that take turns, 16 of each: colours of images. Each round puts what lies a
 * third of all apart side by side; four of them put every third byte so. */
static void part_thirds(uint8_t *dst, int64_t dk, const uint8_t *src)
{
    vec16 a, b, c, x, y, z;
    memcpy(&a, src, sizeof a);
    memcpy(&b, src + sizeof a, sizeof b);
    memcpy(&c, src + 2 * sizeof a, sizeof c);
    for (int round = 0; round < 4; round++, a = x, b = y, c = z) {
        x = ORT_SHUFFLE(a, upper_half(b), LOW_BYTES);
        y = ORT_SHUFFLE(upper_half(a), c, LOW_BYTES);
        z = ORT_SHUFFLE(b, upper_half(c), LOW_BYTES);
    }
    memcpy(dst, &a, sizeof a);
    memcpy(dst + dk, &b, sizeof b);
    memcpy(dst + 2 * dk, &c, sizeof c);
}

#define LIST(...) __VA_ARGS__
TRANSPOSE_BLOCK(transpose_bytes, uint8_t, vec16, 16,
                LIST(LOW_BYTES),
                LIST(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31))
TRANSPOSE_BLOCK(transpose_halves, uint16_t, vec8, 8, LIST(0, 8, 1, 9, 2, 10, 3, 11),
                LIST(4, 12, 5, 13, 6, 14, 7, 15))

#define TILE_BLOCKS(name, type, block, n)                                                          \
    static void name(type *dst, int64_t dk, const type *src, int64_t sj, int64_t nk, int64_t nj)   \
    {                                                                                              \
        int64_t kb = nk & ~(int64_t)((n) - 1), jb = nj & ~(int64_t)((n) - 1);                      \
        for (int64_t k = 0; k < kb; k += (n))                                                      \
            for (int64_t j = 0; j < jb; j += (n))                                                  \
                block(dst + k * dk + j, dk, src + k + j * sj, sj);                                 \
        for (int64_t k = 0; k < nk; k++)                                                           \
            for (int64_t j = k < kb ? jb : 0; j < nj; j++)                                         \
                dst[k * dk + j] = src[k + j * sj];                                                 \
    }

TILE_BLOCKS(tile_bytes, uint8_t, transpose_bytes, 16)
TILE_BLOCKS(tile_halves, uint16_t, transpose_halves, 8)
TILE_BLOCKS(tile_words, uint32_t, transpose4x4, 4)

#define TILE_LOOP(type)                                                                            \
    do {                                                                                           \
        type *d_ = (type *)dst;                                                                    \
        const type *s_ = (const type *)src;                                                        \
        for (int64_t k = 0; k < nk; k++)                                                           \
            for (int64_t j = 0; j < nj; j++)                                                       \
                d_[k * dk + j] = s_[k + j * sj];                                                   \
    } while (0)

static void tile_thirds(uint8_t *dst, int64_t dk, const uint8_t *src, int64_t nj)
{
    int64_t j = 0;
    for (; nj - j >= 16; j += 16)
        part_thirds(dst + j, dk, src + 3 * j);
    for (; j < nj; j++)
        for (int64_t k = 0; k < 3; k++)
            dst[k * dk + j] = src[3 * j + k];
}

static void copy_tile(char *dst, int64_t dk, const char *src, int64_t sj, int64_t nk, int64_t nj,
                      size_t bytes)
{
    if (bytes == 1 && nk == 3 && sj == 3) {
        tile_thirds((void *)dst, dk, (const void *)src, nj);
        return;
    }
    switch (bytes) {
    case 1: tile_bytes((void *)dst, dk, (const void *)src, sj, nk, nj); break;
    case 2: tile_halves((void *)dst, dk, (const void *)src, sj, nk, nj); break;
    case 4: tile_words((void *)dst, dk, (const void *)src, sj, nk, nj); break;
    case 8: TILE_LOOP(uint64_t); break;
    default: TILE_LOOP(block16); break;
    }
}

/* ---- the strided copy */

/* Offsets of outer row `row` on both sides; index[] is left at the row for step_row. */
typedef struct cursor {
    int64_t index[ORT_MOVE_MAX], src, dst;
} cursor;

static void seek_row(const ort_move *m, int outer, int64_t row, cursor *at)
{
    at->src = m->src_offset;
    at->dst = m->dst_offset;
    for (int d = outer - 1; d >= 0; d--) {
        at->index[d] = row % m->dim[d];
        row /= m->dim[d];
        at->src += at->index[d] * m->src_stride[d];
        at->dst += at->index[d] * m->dst_stride[d];
    }
}

static void step_row(const ort_move *m, int outer, cursor *at)
{
    for (int d = outer - 1; d >= 0; d--) {
        at->src += m->src_stride[d];
        at->dst += m->dst_stride[d];
        if (++at->index[d] < m->dim[d])
            return;
        at->src -= m->dim[d] * m->src_stride[d];
        at->dst -= m->dim[d] * m->dst_stride[d];
        at->index[d] = 0;
    }
}

typedef struct copy_job {
    const ort_move *m;
    size_t bytes;
    int outer;             /* dims before the inner ones */
    int64_t rows;          /* product of the outer dims */
    int64_t chunk, chunks; /* of the inner dim, or of dim k in a transposition */
    int64_t per_task;      /* items (row, chunk) a task does */
} copy_job;

static void copy_task(void *arg, size_t task, int thread)
{
    const copy_job *job = arg;
    const ort_move *m = job->m;
    int last = m->rank - 1;
    int64_t item = (int64_t)task * job->per_task;
    int64_t end = ort_min_i64(item + job->per_task, job->rows * job->chunks);
    cursor at;
    seek_row(m, job->outer, item / job->chunks, &at);
    for (int64_t c = item % job->chunks; item < end; item++) {
        int64_t first = c * job->chunk, n = ort_min_i64(job->chunk, m->dim[last] - first);
        copy_strided((char *)m->dst + (at.dst + first * m->dst_stride[last]) * (int64_t)job->bytes,
                     m->dst_stride[last],
                     (const char *)m->src +
                         (at.src + first * m->src_stride[last]) * (int64_t)job->bytes,
                     m->src_stride[last], n, job->bytes);
        if (++c == job->chunks) {
            c = 0;
            step_row(m, job->outer, &at);
        }
    }
}

/* The inner dims are (k, last): source stride 1 on k, destination stride 1 on last. */
static void tile_task(void *arg, size_t task, int thread)
{
    const copy_job *job = arg;
    const ort_move *m = job->m;
    int last = m->rank - 1, k = m->rank - 2;
    int64_t item = (int64_t)task * job->per_task;
    int64_t end = ort_min_i64(item + job->per_task, job->rows * job->chunks);
    int64_t bytes = (int64_t)job->bytes;
    cursor at;
    seek_row(m, job->outer, item / job->chunks, &at);
    for (int64_t c = item % job->chunks; item < end; item++) {
        int64_t k0 = c * TILE, nk = ort_min_i64(TILE, m->dim[k] - k0);
        for (int64_t j0 = 0; j0 < m->dim[last]; j0 += TILE)
            copy_tile((char *)m->dst + (at.dst + k0 * m->dst_stride[k] + j0) * bytes,
                      m->dst_stride[k],
                      (const char *)m->src + (at.src + k0 + j0 * m->src_stride[last]) * bytes,
                      m->src_stride[last], nk, ort_min_i64(TILE, m->dim[last] - j0), job->bytes);
        if (++c == job->chunks) {
            c = 0;
            step_row(m, job->outer, &at);
        }
    }
}

static void copy_packed(const ort_move *m, int bits)
{
    int64_t rows = 1;
    int last = m->rank - 1;
    cursor at;
    for (int d = 0; d < last; d++)
        rows *= m->dim[d];
    seek_row(m, last, 0, &at);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < m->dim[last]; i++)
            ort_packed_set(m->dst, (size_t)(at.dst + i * m->dst_stride[last]), bits,
                           ort_packed_get(m->src, (size_t)(at.src + i * m->src_stride[last]),
                                          bits));
        step_row(m, last, &at);
    }
}

/* Whether rows of such a dim are worth turning: three bytes have an inner loop of their own. */
static bool is_turned(int64_t dim, int64_t src_stride, size_t bytes)
{
    return dim >= 4 || (dim == 3 && src_stride == 3 && bytes == 1);
}

/* Bring the dim with source stride 1 next to the last one; false when there is no such dim. */
static bool make_transposed(ort_move *m, size_t bytes)
{
    int last = m->rank - 1, k = last - 1;
    if (m->dst_stride[last] != 1 || m->src_stride[last] == 1 || m->dim[last] < 4)
        return false;
    while (k >= 0 &&
           !(m->src_stride[k] == 1 && is_turned(m->dim[k], m->src_stride[last], bytes)))
        k--;
    if (k < 0)
        return false;
    int64_t dim = m->dim[k], src = m->src_stride[k], dst = m->dst_stride[k];
    for (int d = k; d < last - 1; d++) {
        m->dim[d] = m->dim[d + 1];
        m->src_stride[d] = m->src_stride[d + 1];
        m->dst_stride[d] = m->dst_stride[d + 1];
    }
    m->dim[last - 1] = dim;
    m->src_stride[last - 1] = src;
    m->dst_stride[last - 1] = dst;
    return true;
}

static void swap_dims(ort_move *m, int a, int b)
{
    int64_t dim = m->dim[a], src = m->src_stride[a], dst = m->dst_stride[a];
    m->dim[a] = m->dim[b];
    m->src_stride[a] = m->src_stride[b];
    m->dst_stride[a] = m->dst_stride[b];
    m->dim[b] = dim;
    m->src_stride[b] = src;
    m->dst_stride[b] = dst;
}

/* A run of a few bytes costs more to start than to copy: let the longest dim be the inner one. */
static void avoid_short_runs(ort_move *m, size_t bytes)
{
    int last = m->rank - 1, longest = last;
    for (int d = 0; d < last; d++)
        if (m->dim[d] >= m->dim[longest])
            longest = d;
    if (m->dim[last] * (int64_t)bytes <= 16 && m->dim[longest] >= 16)
        swap_dims(m, last, longest);
}

void ort_move_run(const ort_move *move, ort_pool *pool)
{
    ort_move m;
    int bits = ort_dtype_get(move->dtype)->bits;
    copy_job job = {.m = &m, .bytes = (size_t)bits / 8, .rows = 1};
    int64_t item_bytes;
    memcpy(&m, move, offsetof(ort_move, dim));
    for (int d = 0; d < m.rank; d++) {
        if (move->dim[d] <= 0)
            return;
        m.dim[d] = move->dim[d];
        m.src_stride[d] = move->src_stride[d];
        m.dst_stride[d] = move->dst_stride[d];
    }
    if (m.rank == 0) {
        m.rank = 1;
        m.dim[0] = m.src_stride[0] = m.dst_stride[0] = 1;
    }
    if (bits < 8) {
        copy_packed(&m, bits);
        return;
    }
    bool tiled = make_transposed(&m, job.bytes);
    if (!tiled)
        avoid_short_runs(&m, job.bytes);
    int last = m.rank - 1;
    job.outer = tiled ? last - 1 : last;
    for (int d = 0; d < job.outer; d++)
        job.rows *= m.dim[d];
    if (tiled) {
        job.chunk = TILE;
        job.chunks = (m.dim[last - 1] + TILE - 1) / TILE;
        item_bytes = TILE * m.dim[last] * (int64_t)job.bytes;
    } else {
        job.chunk = ort_min_i64(m.dim[last], TASK_BYTES / (int64_t)job.bytes);
        job.chunks = (m.dim[last] + job.chunk - 1) / job.chunk;
        item_bytes = job.chunk * (int64_t)job.bytes;
    }
    job.per_task = ort_max_i64(1, TASK_BYTES / item_bytes);
    ort_pool_run(pool, ort_task_count(job.rows * job.chunks, job.per_task),
                 tiled ? tile_task : copy_task, &job);
}

/* ---- fills and spans */

void ort_move_fill(ort_dtype dtype, void *dst, int64_t first, int64_t count, const void *src,
                   int64_t index)
{
    static const block16 zero[1];
    int bits = ort_dtype_get(dtype)->bits;
    if (!src) {
        src = zero;
        index = 0;
    }
    if (bits >= 8) {
        fill_blocks((char *)dst + first * (bits / 8), count,
                    (const char *)src + index * (bits / 8), (size_t)bits / 8);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        ort_packed_set(dst, (size_t)(first + i), bits, ort_packed_get(src, (size_t)index, bits));
}

void ort_move_span(ort_dtype dtype, void *dst, int64_t dst_first, const void *src,
                   int64_t src_first, int64_t count)
{
    int bits = ort_dtype_get(dtype)->bits;
    if (count <= 0)
        return;
    if (bits >= 8) {
        int64_t bytes = bits / 8;
        memcpy((char *)dst + dst_first * bytes, (const char *)src + src_first * bytes,
               (size_t)(count * bytes));
        return;
    }
    for (int64_t i = 0; i < count; i++)
        ort_packed_set(dst, (size_t)(dst_first + i), bits,
                       ort_packed_get(src, (size_t)(src_first + i), bits));
}
