/* opencl_attention.h - what the operators of attention share: heads, a mask, and the launches that
 * make results of them. Scores are whole: [batch, heads, rows, keys]. */
#ifndef ORT_PROVIDER_OPENCL_SEQUENCE_OPENCL_ATTENTION_H
#define ORT_PROVIDER_OPENCL_SEQUENCE_OPENCL_ATTENTION_H

#include "provider/opencl/opencl_parts.h"

enum { ORT_CL_NO_MASK, ORT_CL_FLOATS, ORT_CL_BOOLS, ORT_CL_INTS }; /* kinds, as in gemm_attend.cl */

typedef struct ort_cl_mask { /* of scores */
    int kind, buffer;
    int64_t batch, head, row, key, keys; /* strides, and how many keys it has */
    double filler;                       /* added where a number of kind INTS is 0 */
} ort_cl_mask;

typedef struct ort_cl_heads {
    /* Each of `shared` heads of queries behind one another reads one of `heads` of keys. */
    int64_t batch, heads, shared, rows, keys, size, value_size;
    ort_cl_matrix q, k, v, out; /* batch1: batch; batch2: head; rows, elements of a head */
    ort_cl_mask mask;
    bool causal, has_places;
    int64_t fresh;       /* how many of the keys are new */
    int64_t past;        /* the position of row 0 among the keys, where all sequences have one */
    int places;          /* else a buffer: that position, and how many keys count, of each */
    int64_t left, right; /* keys in front of a row and behind it that it sees; below 0: all */
    enum { ORT_CL_NO_SINKS, ORT_CL_SINKS, ORT_CL_ZERO_SINKS } has_sinks;
    int sinks; /* one more score for each head of queries */
    double scale, softcap;
    bool shows;          /* scores are a result: */
    int shown, stage;    /* its buffer; 0: products, 1: capped, 2: masked, 3: probabilities */
} ort_cl_heads;

/* An error of a plan: the CPU says more of it. */
ort_status ort_cl_misfit(ort_error *err);
void ort_cl_attend(ort_cl_step *s, const ort_cl_heads *h);
/* `places` from what input `lengths` says; how, as kernel `places` reads it: lengths have to be at
 * least `least` and below `size`. */
void ort_cl_find_places(ort_cl_step *s, ort_cl_heads *h, int lengths, int how, int64_t plus,
                        int64_t least, int64_t size);
/* Where the heads of Q, K, V or Y lie, a tensor of three axes or four. */
ort_cl_matrix ort_cl_heads_at(int buffer, const ort_fact *fact, int64_t count, int64_t rows,
                              int64_t size);
/* Those of an input, which may be columns of another value's rows. */
ort_cl_matrix ort_cl_heads_in(ort_cl_step *s, int input, int64_t count, int64_t rows,
                              int64_t size);
/* A mask as an input has it, its axes spread over those of the scores. */
ort_cl_mask ort_cl_mask_of(ort_cl_step *s, int input);

typedef struct ort_cl_cache { /* of keys or values */
    int past, present; /* input, output; either may be absent */
    int64_t past_rows, size;
    int64_t past_from, present_from; /* elements in front of them in their tensors */
    bool keep; /* rows of the past behind the new ones stay */
} ort_cl_cache;

/* Keys or values with those of the past around them, where there are such or the result is wanted:
 * written to `to`, if that isn't below 0. */
ort_cl_matrix ort_cl_whole(ort_cl_step *s, const ort_cl_heads *h, ort_cl_matrix fresh,
                           const ort_cl_cache *cache, int to);

/* opencl_attention_parts.c: heads into [batch, heads, rows, size] of their own, with a bias or
 * turned by their position. */
typedef struct ort_cl_taking {
    int bias;           /* an input; below 0: none */
    int64_t bias_from;
    int64_t half_size;  /* of what turns; 0: nothing does */
    int cosines, sines; /* buffers of floats */
    int64_t table_rows;
    int positions;      /* an input, by `how` as kernel take_heads reads it; below 0: none */
    int how;
    bool interleaved;
} ort_cl_taking;

ort_cl_matrix ort_cl_take_heads(ort_cl_step *s, const ort_cl_heads *h, ort_cl_matrix from,
                                int64_t heads, int64_t rows, int64_t size,
                                const ort_cl_taking *t);
/* A mask of integers and what is added to scores; either may be absent. shared: past and present
 * are one buffer, whose masks begin with its first key. */
ort_status ort_cl_find_mask(ort_cl_step *s, ort_cl_heads *h, int ints, int add, bool shared,
                            ort_error *err);
/* Are inputs float, but for those that `ints` names (bit by bit), which are int32? */
bool ort_cl_types_fit(const ort_graph *graph, const ort_node *node, unsigned ints,
                      const char **why);
/* Is an input absent, or has it so many axes? */
bool ort_cl_has_rank(const ort_graph *graph, const ort_node *node, int input, int least, int most);
/* A buffer for a cache [batch, heads, keys, size]: the output, or where a past needs it. */
int ort_cl_cache_place(ort_cl_step *s, const ort_cl_heads *h, const ort_cl_cache *c);
/* Attention whose result has heads side by side. */
void ort_cl_attend_side_by_side(ort_cl_step *s, ort_cl_heads *h);

#endif
