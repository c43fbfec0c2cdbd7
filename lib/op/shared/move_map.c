/* move_map.c - copies of elements of any size by a map of indices for each axis (ort_move_mapped).
 *
 * A row of the output is all of the last mapped axis. Few runs of consecutive indices, up or down
 * (as reflection makes them), are listed once for all rows; of others, long runs are copied as they
 * are and single elements gathered. A row that is read where the row before it was is its copy.
 */
#include "op/shared/move.h"

#pragma GCC optimize("O3") /* vectorize the loops by element size */

#include <string.h>

#include "base/checked.h"

enum { TASK_BYTES = 128 * 1024 };

typedef struct block16 {
    uint64_t low, high;
} block16;

typedef struct map_job {
    const ort_tensor *src;
    ort_tensor *dst;
    const ort_move_map *map;
    int axis;              /* last mapped one */
    int64_t block;         /* elements behind it */
    int64_t rows, per_task;
    int64_t stride[ORT_MAX_RANK];
    bool scattered;        /* single elements in no order: gather them one by one */
    bool doubled;          /* map[i] == i / 2 */
    int segment_count;     /* runs of the inner axis; 0: too many to list */
    struct segment {
        int64_t to, from, count; /* from -1: fill */
        bool down;               /* from one index to the one before it */
    } segment[16];
} map_job;

#define GATHER_LOOP(type)                                                                          \
    do {                                                                                           \
        type *d_ = (type *)dst;                                                                    \
        const type *s_ = (const type *)src;                                                        \
        for (int64_t i = 0; i < n; i++)                                                            \
            d_[i] = s_[map[i]];                                                                    \
    } while (0)

static void gather_row(char *dst, const char *src, const int64_t *map, int64_t n, size_t bytes)
{
    switch (bytes) {
    case 1: GATHER_LOOP(uint8_t); break;
    case 2: GATHER_LOOP(uint16_t); break;
    case 4: GATHER_LOOP(uint32_t); break;
    case 8: GATHER_LOOP(uint64_t); break;
    default: GATHER_LOOP(block16); break;
    }
}

/* src is the last of n elements, which becomes the first. */
static void reverse_row(char *dst, const char *src, int64_t n, size_t bytes)
{
    if (bytes == 4)
        for (int64_t i = 0; i < n; i++)
            ((uint32_t *)(void *)dst)[i] = ((const uint32_t *)(const void *)src)[-i];
    else
        for (; n > 0; n--, dst += bytes, src -= bytes)
            ort_move_bytes(dst, src, bytes);
}

static void double_words(uint32_t *restrict dst, const uint32_t *restrict src, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[2 * i] = dst[2 * i + 1] = src[i];
}

static void double_bytes(uint8_t *restrict dst, const uint8_t *restrict src, int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++)
            dst[2 * (i + k)] = dst[2 * (i + k) + 1] = src[i + k];
    for (; i < n; i++)
        dst[2 * i] = dst[2 * i + 1] = src[i];
}

/* How many indices from map[0] on are fill, or each the one before it and one; n of them. */
static int64_t run_length(const int64_t *map, int64_t n)
{
    enum { AT_ONCE = 16 };
    const int64_t first = map[0], step = first >= 0;
    int64_t run = 1;
    for (int64_t others = 0; n - run >= AT_ONCE; run += AT_ONCE) {
        for (int64_t i = run; i < run + AT_ONCE; i++)
            others |= map[i] ^ (first + step * i);
        if (others)
            break;
    }
    while (run < n && map[run] == first + step * run)
        run++;
    return run;
}

/* The same for indices that are each the one before it less one. */
static int64_t run_down(const int64_t *map, int64_t n)
{
    const int64_t first = map[0];
    int64_t run = 1;
    while (run < n && run <= first && map[run] == first - run)
        run++;
    return run;
}

/* The inner axis as runs of consecutive or filled indices, when they are few. */
static void find_segments(map_job *job)
{
    const int64_t *map = job->map->axis[job->axis];
    const bool single = job->block == 1 && ort_move_element_bytes(job->dst->dtype) > 0;
    int64_t n = job->dst->shape.dim[job->axis];
    int count = 0;
    for (int64_t i = 0, run; i < n; i += run) {
        bool down = false;
        run = run_length(map + i, n - i);
        if (run == 1 && single) {
            run = run_down(map + i, n - i);
            down = run > 1;
        }
        if (count == (int)(sizeof job->segment / sizeof *job->segment))
            return;
        job->segment[count++] = (struct segment){i, map[i], run, down};
    }
    job->segment_count = count;
}

static void copy_segment(const map_job *job, struct segment s, int64_t dst, int64_t src)
{
    const size_t bytes = ort_move_element_bytes(job->dst->dtype);
    int64_t block = job->block;
    if (s.down)
        reverse_row((char *)job->dst->data + (size_t)(dst + s.to) * bytes,
                    (const char *)job->src->data + (size_t)(src + s.from) * bytes, s.count, bytes);
    else if (s.from < 0)
        ort_move_fill(job->dst->dtype, job->dst->data, dst + s.to * block, s.count * block,
                      job->map->fill, 0);
    else
        ort_move_span(job->dst->dtype, job->dst->data, dst + s.to * block, job->src->data,
                      src + s.from * block, s.count * block);
}

/* Long runs as they are, and what lies between them one by one. */
static void map_runs(const map_job *job, int64_t dst, int64_t src)
{
    enum { LONG = 8 };
    const int64_t *map = job->map->axis[job->axis];
    const int64_t n = job->dst->shape.dim[job->axis];
    const size_t bytes = ort_move_element_bytes(job->dst->dtype);
    const bool single = bytes > 0 && job->block == 1;
    char *to = job->dst->data;
    const char *from = job->src->data;
    int64_t first = 0; /* of those that aren't copied yet */
    for (int64_t i = 0, run; i < n; i += run) {
        run = run_length(map + i, n - i);
        if (single && run < LONG && map[i] >= 0) {
            if (i + run < n)
                continue;
            run = 0;
            i = n;
        }
        if (first < i)
            gather_row(to + (size_t)(dst + first) * bytes, from + (size_t)src * bytes, map + first,
                       i - first, bytes);
        if (run > 0)
            copy_segment(job, (struct segment){i, map[i], run, false}, dst, src);
        first = i + run;
    }
}

static void map_row(const map_job *job, int64_t dst, int64_t src)
{
    const int64_t *map = job->map->axis[job->axis];
    int64_t n = job->dst->shape.dim[job->axis];
    if (job->segment_count > 0) {
        for (int k = 0; k < job->segment_count; k++)
            copy_segment(job, job->segment[k], dst, src);
        return;
    }
    if (job->scattered) {
        int64_t bytes = (int64_t)ort_move_element_bytes(job->dst->dtype);
        if (job->doubled && bytes == 1) {
            double_bytes((uint8_t *)job->dst->data + dst, (const uint8_t *)job->src->data + src,
                         n / 2);
            return;
        }
        if (job->doubled) {
            double_words((uint32_t *)job->dst->data + dst,
                         (const uint32_t *)job->src->data + src, n / 2);
            return;
        }
        gather_row((char *)job->dst->data + dst * bytes,
                   (const char *)job->src->data + src * bytes, map, n, (size_t)bytes);
        return;
    }
    map_runs(job, dst, src);
}

/* Source offset of output row `row`, or -1 when it lies in the fill. */
static int64_t map_source(const map_job *job, int64_t row)
{
    int64_t src = 0;
    for (int d = job->axis - 1; d >= 0; d--) {
        int64_t i = row % job->dst->shape.dim[d];
        const int64_t *map = job->map->axis[d];
        row /= job->dst->shape.dim[d];
        if (map && map[i] < 0)
            return -1;
        src += (map ? map[i] : i) * job->stride[d];
    }
    return src;
}

static void map_task(void *arg, size_t task, int thread)
{
    const map_job *job = arg;
    int64_t row = (int64_t)task * job->per_task, end = ort_min_i64(row + job->per_task, job->rows);
    int64_t length = job->dst->shape.dim[job->axis] * job->block, before = -2;
    ort_dtype dtype = job->dst->dtype;
    for (; row < end; row++) {
        int64_t src = map_source(job, row), dst = row * length;
        if (src == before)
            ort_move_span(dtype, job->dst->data, dst, job->dst->data, dst - length, length);
        else if (src < 0)
            ort_move_fill(dtype, job->dst->data, dst, length, job->map->fill, 0);
        else
            map_row(job, dst, src);
        before = src;
    }
}

static bool is_doubled(const int64_t *map, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (map[i] != i / 2)
            return false;
    return n % 2 == 0;
}

static bool is_scattered(const int64_t *map, int64_t n)
{
    int64_t runs = 0;
    for (int64_t i = 0; i < n; i += run_length(map + i, n - i)) {
        if (map[i] < 0)
            return false;
        runs++;
    }
    return runs * 8 > n;
}

void ort_move_mapped(const ort_tensor *src, ort_tensor *dst, const ort_move_map *map,
                     ort_pool *pool)
{
    map_job job = {.src = src, .dst = dst, .map = map, .axis = -1, .block = 1, .rows = 1};
    int rank = dst->shape.rank;
    size_t bytes = ort_move_element_bytes(dst->dtype);
    if (ort_tensor_count(dst) == 0)
        return;
    for (int d = 0; d < rank; d++)
        if (map->axis[d])
            job.axis = d;
    if (job.axis < 0) {
        ort_move_span(dst->dtype, dst->data, 0, src->data, 0, ort_tensor_count(dst));
        return;
    }
    ort_shape_strides(&src->shape, job.stride);
    job.block = ort_shape_count_range(&dst->shape, job.axis + 1, rank);
    job.rows = ort_shape_count_range(&dst->shape, 0, job.axis);
    int64_t n = dst->shape.dim[job.axis], row_bytes = n * job.block * (int64_t)(bytes ? bytes : 1);
    find_segments(&job);
    job.scattered = job.segment_count == 0 && bytes > 0 && job.block == 1 &&
                    is_scattered(map->axis[job.axis], n);
    job.doubled = job.scattered && (bytes == 4 || bytes == 1) &&
                  is_doubled(map->axis[job.axis], n);
    job.per_task = bytes == 0 ? job.rows : ort_max_i64(1, TASK_BYTES / row_bytes);
    ort_pool_run(pool, ort_task_count(job.rows, job.per_task), map_task, &job);
}
