/* attention_fused.h - the attention operators of com.microsoft around one pipeline.
 *
 * Attention (projects its input itself), MultiHeadAttention, GroupQueryAttention and
 * SparseAttention differ in where
 * queries, keys and values lie, and in masks and positions; what remains is the same: heads in
 * float, caches extended, the float core (attention_common.h), results converted.
 */
#ifndef ORT_OP_SEQUENCE_ATTENTION_FUSED_H
#define ORT_OP_SEQUENCE_ATTENTION_FUSED_H

#include "op/sequence/attention_cache.h"
#include "op/sequence/attention_common.h"

typedef enum ort_fused_kind { ORT_FUSED_PACKED, ORT_FUSED_MULTI, ORT_FUSED_GROUP } ort_fused_kind;

/* Inputs of the operators with positions of their own; -1: not there. */
typedef struct ort_group_slots {
    int lengths, total, cos, sin, positions, add, sink, k_scale, v_scale, q_norm, k_norm;
    int length_offset; /* an element of `lengths` and this is the number of keys */
} ort_group_slots;

/* Inputs of MultiHeadAttention and DecoderMaskedMultiHeadAttention, which has them elsewhere. With
 * `length`, past and present are one buffer of which so many rows are filled; `indirection`
 * [batch, beams, rows] says which beam of a sequence a row of the past comes from. */
typedef struct ort_multi_slots {
    int bias, mask, add, past_k, past_v, length, beam_width, indirection;
} ort_multi_slots;

enum { ORT_ATTENTION_LENGTH = 6 }; /* input of Attention: rows of a shared buffer that are filled */
enum { ORT_SPARSE_ROWS = 5, ORT_SPARSE_COLUMNS = 6 };
/* Inputs of QAttention beside those that Attention has in the same place. */
enum { ORT_QATTENTION_X_SCALE = 3, ORT_QATTENTION_W_SCALE = 4, ORT_QATTENTION_MASK = 5,
       ORT_QATTENTION_X_ZERO = 6, ORT_QATTENTION_W_ZERO = 7, ORT_QATTENTION_PAST = 8 };

typedef struct ort_fused { /* prepared state */
    ort_fused_kind kind;
    int64_t heads, kv_heads;
    double scale, softcap;
    bool quantized;       /* QAttention: 8-bit input and weights, projected in integers */
    bool causal, rotary, interleaved, smooth;
    int64_t window;       /* keys a query sees at most; 0 and less: all */
    ort_group_slots slots; /* ORT_FUSED_GROUP */
    ort_multi_slots multi; /* ORT_FUSED_MULTI */
    bool shared;          /* ORT_FUSED_PACKED: past and present are one buffer */
    int64_t rotary_dim;   /* ORT_FUSED_PACKED: elements of a head that turn; 0: all */
    bool one_step;        /* DecoderMaskedMultiHeadAttention: one query; QKV may be one input */
    ort_cache_format cache;
    enum { ORT_CACHE_PLAIN, ORT_CACHE_PER_TENSOR, ORT_CACHE_PER_CHANNEL } k_quant, v_quant;
    int64_t sparse_block; /* SparseAttention: keys of a block; 0: no such mask */
    int qk_output, qk_mode; /* which output takes the scores (-1: none), of which stage */
    float mask_value, norm_epsilon;
    ort_ints hidden_sizes; /* ORT_FUSED_PACKED: */
    int64_t hidden[3];    /* of Q, K and V; 0: a third each */
    const void *weights;  /* ORT_FUSED_PACKED: packed constant (bytes if quantized), or NULL */
    int64_t weight_rows, weight_columns;
    ort_dtype dtype;
} ort_fused;

/* One of Q, K, V: element (b, s, h, d) = tensor[offset + b * batch + s * row + h * head + d]. */
typedef struct ort_fused_source {
    int input;            /* slot of its tensor; -1: the projection */
    int64_t offset, batch, row, head;
    int64_t bias;         /* first element in the bias input, -1: none */
} ort_fused_source;

#define ORT_FUSED_NONE SIZE_MAX

typedef struct ort_fused_plan {
    int64_t B, S, L, past, T, D, E; /* L new keys; T keys of the present cache */
    ort_fused_source q, k, v;
    int past_k, past_v, out_k, out_v, mask, bias, add; /* slots; -1: none */
    bool joint;           /* past and present hold keys, then values, in one tensor */
    bool convert;
    int length, indirection; /* slots of a shared buffer (ort_multi_slots); -1: none */
    int64_t beams;
    int64_t block, mask_heads, mask_rows;
    int qk;               /* output slot of the scores, -1: none */
    size_t project_pack;  /* from project_rows: weights that aren't constant, packed */
    size_t project_split; /* from project_rows: rows that tiles read */
    size_t qkr, project, project_rows, qr, kr, vr, yr, maskr, packed, packed_each, counts, sink;
    size_t gathered_k, gathered_v;
    size_t turns;         /* ORT_FUSED_PACKED: [S] cos, then sin, of `half` angles each */
    int64_t half;
} ort_fused_plan;

/* attention_fused_shape.c: where everything lies for these shapes. */
ort_status ort_fused_shape(ort_shaping *s, ort_error *err);
/* attention_fused_run.c */
ort_status ort_fused_run(ort_call *call, ort_error *err);
/* attention_fused_project.c: out[B * S][columns] = input * weights + bias of Attention and
 * QAttention; the memory that it needs beside that, laid out in p, and in bytes per thread. */
void ort_fused_project(const ort_call *call, float *out);
bool ort_fused_project_space(const ort_kernels *k, const ort_shape *weights, const ort_fused *f,
                             ort_fused_plan *p, size_t *bytes, size_t *thread_bytes);

#endif
