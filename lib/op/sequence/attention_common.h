/* attention_common.h - scaled dot product attention between operators and typed cores.
 *
 * Sizes: B batch, Hq and Hk query and key/value heads, Sq query rows, T keys (past and new), D head
 * size of queries and keys, E head size of values. Query head h reads key head h / (Hq / Hk).
 */
#ifndef ORT_OP_SEQUENCE_ATTENTION_COMMON_H
#define ORT_OP_SEQUENCE_ATTENTION_COMMON_H

#include "op/op.h"
#include "op/shared/parts.h"

/* Where row s of head h of batch b lies: data + b * batch + h * head + s * row. */
typedef struct ort_heads {
    const void *data; /* of the core's real type */
    int64_t batch, head, row;
} ort_heads;

typedef struct ort_attention_run {
    const ort_call *call;
    int64_t B, Hq, Hk, Sq, T, D, E;
    ort_heads q, k, v, y; /* y.data is written */
    double scale, softcap;
    bool causal;
    int64_t left, right;      /* window, -1: unbounded */
    int64_t past;             /* position of query row 0 among the keys, unless `start` is given */
    const int64_t *start;     /* [B] that position per batch row, or NULL */
    const int64_t *valid;     /* [B] keys that count, or NULL */
    const void *sink;         /* real [Hq]: a logit beside every row's scores, or NULL */
    const void *mask;         /* uint8 or real; [B][Hq][Sq][mask_keys] by strides (0: broadcast) */
    bool mask_is_bool;
    int64_t mask_keys, mask_batch, mask_head, mask_row;
    int mode;                 /* what `scores` receives: 0 product .. 3 probabilities */
    void *scores;             /* real [B][Hq][Sq][T], or NULL */
    void *packed;             /* memory of packed_bytes, or NULL when that is 0 */
    size_t packed_each;
    int64_t block;            /* query rows of a task */
    int64_t parts;            /* of these blocks (parts.h); set by the core */
} ort_attention_run;

typedef struct ort_attention_core {
    size_t real_bytes;
    /* Bytes of one packed key head for `rows` query rows; 0: keys are read in place. */
    size_t (*packed_bytes)(const ort_kernels *k, int64_t rows, int64_t T, int64_t D);
    /* thread space: block * (T + D) reals. */
    void (*run)(const ort_attention_run *run);
} ort_attention_core;

/* Micro tiles of so many rows that blocks of `rows` rows take. */
static inline int64_t ort_attention_tiles(int64_t rows, int64_t block, int64_t unit)
{
    return rows / block * ((block + unit - 1) / unit) + (rows % block + unit - 1) / unit;
}

/* Query rows of a task, `rows` in all: as even as they can be, of scores that stay in a cache.
 * Small micro tiles take about as long whatever they have of their rows: whole ones, if these are
 * fewer. Few where rows see their past alone: a task forms all scores that its last row needs. */
static inline int64_t ort_attention_block(const ort_kernels *k, int64_t rows, int64_t T, bool past)
{
    const int64_t unit = k->gemm.mr, few = past ? ort_max_i64(2 * unit, rows / 8) : 64;
    const int64_t fits = ort_max_i64(1, ((int64_t)1 << 20) / ort_max_i64(T, 1));
    const int64_t most = ort_min_i64(ort_min_i64(64, few), fits);
    int64_t blocks = ort_max_i64(1, (rows + most - 1) / most);
    int64_t even = ort_max_i64(1, (rows + blocks - 1) / blocks);
    int64_t whole = ort_min_i64((even + unit - 1) / unit, most / unit) * unit;
    if (unit > 8 || blocks == 1 || whole == 0)
        return even;
    return ort_attention_tiles(rows, whole, unit) < ort_attention_tiles(rows, even, unit) ? whole
                                                                                          : even;
}

extern const ort_attention_core ort_attention_core_f32;
extern const ort_attention_core ort_attention_core_f64;

#endif
