/* attention_match.h - softmax(q k^T scale + mask) v found in a graph, spelled in products. What was
 * found is told in small parts: where q, k and v lie (heads.h), what the scores are multiplied by,
 * the terms that are summed onto them, and the cache. attention_scores.c reads the scores,
 * attention_match.c the whole; attention_around.c what stands around it, attention_keys.c and
 * attention_causal.c what a mask means (mask_cases.h). Nothing is noted of nodes: those that nobody
 * reads any more go when the operator has been written (attention_write.c), which attention_form.c
 * chooses.
 */
#ifndef ORT_PASS_ATTENTION_ATTENTION_MATCH_H
#define ORT_PASS_ATTENTION_ATTENTION_MATCH_H

#include "emit/emit.h"
#include "op/edit.h"
#include "pass/pass.h"

enum { ORT_ATTENTION_MASKS = 3 };

typedef struct ort_attention_keys { /* which keys count */
    ort_id id;     /* [B,T], of conditions or of 1 and 0 (int32, int64); or ORT_ID_NONE */
    bool inverted; /* those that don't are true or 1 */
    double low;    /* added to the scores of those that don't */
} ort_attention_keys;

/* What is summed onto the scores, or takes their place. */
typedef struct ort_attention_terms {
    ort_id masks[ORT_ATTENTION_MASKS]; /* summed, the outermost first */
    int mask_count;
    int outside;     /* how many of them, the first, after the condition had been applied */
    ort_id keep, fill; /* a condition and the number of scores where it fails; or ORT_ID_NONE */
    bool keep_is_inverse; /* the number stands where the condition holds */
    bool zeroed;          /* and there probabilities are put to 0 besides */
    ort_id window; /* another, [1,n,1 or H,S,T] or [n,...]; or ORT_ID_NONE */
    ort_id apart;  /* the scores that it is added to, [B/n,n,H,S,T] */
    const ort_node *unfold; /* makes [B,H,S,T] of folded scores, for masks [B*H,S,T]; or NULL */
    ort_attention_keys keys; /* taken out of masks or keep */
    bool causal;             /* the same: later keys are kept out */
} ort_attention_terms;

typedef struct ort_attention_scores {
    ort_node *product; /* of q and k */
    double scale, softcap; /* softcap 0: none */
    ort_id head_scale;     /* a constant [H,1,1], another factor; or ORT_ID_NONE */
    bool floored;          /* none is less than the lowest number */
    ort_id whole;          /* as [B,H,S,T], where they are folded elsewhere; or ORT_ID_NONE */
    ort_attention_terms terms;
} ort_attention_scores;

typedef struct ort_attention_cache {
    ort_id past_k, past_v;       /* [B,G,P,D], [B,G,P,E]; or ORT_ID_NONE */
    ort_id present_k, present_v; /* their concatenations with k and v */
} ort_attention_cache;

/* What is done to the probabilities. */
typedef struct ort_attention_zeros {
    bool guarded;  /* rows without any key give 0, not NaN */
    ort_id zeroed; /* a condition that puts them to 0 where it holds, or not; or ORT_ID_NONE */
    bool where_true;
} ort_attention_zeros;

typedef struct ort_attention {
    ort_node *root, *softmax; /* root: gives the result; no Softmax in an Attention that is there */
    ort_id q, k, v; /* [B,H,S,D], [B,G,T,D], [B,G,T,E], H a multiple of G; or as these say: */
    int64_t q_heads, kv_heads; /* 0: they have four dims; else [B,S,H*D], [B,T,G*D], [B,T,G*E] */
    bool k_is_rows; /* k is [B,T,G,D], or [B,T,D] of one head */
    bool steps;     /* q, k and v are [S,B,H*D], heads together; parted is [S,B*H,E] or [S,B,H,E] */
    bool shared;    /* k and v have one head, for all those of q */
    bool row;       /* one query: q is [B,1,H*D], with q_heads; k and v are [B,H,T,D] */
    bool joined;    /* one query: the root gives [B,1,H*E] */
    ort_id parted;  /* the result as [B,S,H,E], or else laid, that is wanted; or ORT_ID_NONE */
    ort_dim T;      /* keys, past ones included */
    double scale, softcap;
    ort_id head_scale;
    ort_attention_terms terms;
    ort_attention_cache cache;
    bool guarded; /* rows without any key give 0, not NaN */
} ort_attention;

/* Is `root` (a MatMul) such a thing? The mask broadcasts onto the scores, its last dim is T. *why:
 * why there is none, after a Softmax was found; or NULL. */
bool ort_attention_match(const ort_pass_context *context, ort_node *root, ort_attention *a,
                         const char **why);
/* The scores that `reader` reads; false: they aren't those of a product, scaled and masked. *why
 * tells more, if it isn't NULL then. `operands` reads q and k of a product, trying both operands of
 * a sum. */
typedef struct ort_attention_reader {
    const ort_graph *graph;
    bool (*operands)(struct ort_attention_reader *reader, const ort_attention_scores *scores);
    void *arg;
    const char *why;
} ort_attention_reader;
bool ort_attention_read_scores(ort_attention_reader *reader, ort_id id, const ort_node *by,
                               ort_attention_scores *scores);

/* What gives the probabilities that the root multiplies with v: a Softmax, if all is well. *whole:
 * them as [B,H,S,T], where they are folded behind it; or ORT_ID_NONE (attention_behind.c). */
ort_node *ort_attention_read_behind(const ort_graph *graph, const ort_node *root,
                                    ort_attention_zeros *zeros, ort_id *whole, const char **why);

/* ---- around (attention_around.c): each finds more of what the operator takes in */

/* Keys and values before they were repeated for the queries of a group: they have fewer heads, and
 * may be [B,G,1,T,D]. */
bool ort_attention_ungroup(const ort_graph *graph, const ort_attention *a, ort_id kv[2]);
/* Keys and values before they were appended to past ones along T. */
bool ort_attention_uncache(const ort_graph *graph, ort_attention *a);
/* Does whoever reads the result put its heads together? Then that is the root. */
bool ort_attention_join_result(const ort_graph *graph, ort_attention *a);
/* The [B,S,H*D] value whose heads were split off to make q; or ORT_ID_NONE. */
ort_id ort_attention_join_queries(const ort_graph *graph, const ort_attention *a, int64_t *heads);
/* Heads together: q [B,S,H*D], k [B,T,G*D], v [B,T,G*E], and the result. False: nothing changed. */
bool ort_attention_join(const ort_graph *graph, ort_attention *a);
/* The [B,S,3*H*D] value whose thirds are q, k and v, in this order, by a Reshape, a Transpose and
 * a Split, Slice or Gather, or ORT_ID_NONE. */
ort_id ort_attention_packed(const ort_graph *graph, const ort_attention *a, int64_t *heads);

/* ---- what masks mean */

/* The terms without a mask that only keeps later keys out, if there is one. */
ort_attention_terms ort_attention_take_causal(const ort_pass_context *context,
                                              const ort_attention *a);
/* The terms without a mask, or the condition, that is made of keys that count. */
ort_attention_terms ort_attention_take_keys(const ort_pass_context *context,
                                            const ort_attention *a);
/* Do they certainly leave every row a key, no mask being infinite? */
bool ort_attention_masks_finitely(const ort_graph *graph, const ort_attention_terms *terms);

/* ---- rows without any key (attention_empty.c) */

/* Is it guarded, and may there be such rows? */
bool ort_attention_has_empty(const ort_pass_context *context, const ort_attention *a);
/* Can they be told from the masks, or from the condition that puts them to 0, as rows of
 * [B,S,H*E]? */
bool ort_attention_empty_fits(const ort_graph *graph, const ort_attention_terms *terms);
bool ort_attention_zeroed_fits(const ort_graph *graph, const ort_attention_terms *terms);
/* True of them, [b,S,1] or what broadcasts to it, from all that is summed onto the scores, or from
 * the condition. */
ort_id ort_attention_find_empty(ort_emit *e, ort_id mask);
ort_id ort_attention_find_zeroed(ort_emit *e, const ort_attention_terms *terms);

/* ---- writing */

/* One dim of `like` as a list of one number, read where layers share it. */
ort_id ort_attention_size(const ort_pass_context *context, ort_emit *e, ort_id like, int axis);
/* q times head_scale, which a product with k is as well. */
void ort_attention_scale_heads(ort_emit *e, ort_attention *a);
/* q, k and v out of one value: it is split along its last axis. False: they aren't. */
bool ort_attention_unpack(ort_emit *e, ort_attention *a);
/* The batch first, where steps are. */
void ort_attention_turn_steps(ort_emit *e, ort_attention *a);
/* q as [B,H,1,D], where k and v have four dims; the result's heads are put together behind it. */
void ort_attention_part_row(ort_emit *e, ort_attention *a);
/* terms.keys as what is summed onto the scores, among the masks. */
void ort_attention_lower_keys(ort_emit *e, ort_attention *a);
/* terms.keys as int32 [B,T], 1 where a key counts; ORT_ID_NONE: there are none. */
ort_id ort_attention_write_keys(ort_emit *e, const ort_attention_keys *keys);

/* What stands for the lowest number in a mask, as attention_low.c says. */
ort_id ort_attention_raise_mask(ort_emit *e, ort_id mask);
/* Has one of the masks such numbers? */
bool ort_attention_masks_low(const ort_graph *graph, const ort_attention_terms *terms);

/* All that is summed onto the scores as one value; ORT_ID_NONE: nothing. */
ort_id ort_attention_mask(const ort_pass_context *context, ort_emit *e, const ort_attention *a);
/* The mask with all the query rows of q ([B,S,E] or [B,H,S,D]); with four dims unless any will
 * do. */
ort_id ort_attention_full_rows(const ort_pass_context *context, ort_emit *e, ort_id q,
                               bool any_rank, ort_id mask);

typedef struct ort_attention_operator {
    const char *domain, *op_type;
    int opset;
    const ort_id *inputs; /* absent ones at the end are left out */
    int input_count;
} ort_attention_operator;

/* The operator in the place of what was found, with the attributes that it has for that; its other
 * results are the cache. What nobody reads any more goes. Rows where `empty` is true are put to 0
 * behind it. */
ort_status ort_attention_replace(ort_pass_context *context, const ort_attention *a,
                                 const ort_attention_operator *operator, ort_id empty,
                                 ort_error *err);
/* GroupQueryAttention of com.microsoft, where it is one; *done: it has been written. */
ort_status ort_attention_fuse_group(ort_pass_context *context, const ort_attention *a, bool *done,
                                    ort_error *err);
/* Attention of com.microsoft, where q, k and v (heads together) are projections of one value; mask
 * is what is summed onto the scores and keys those that count, or ORT_ID_NONE; *done: it has been
 * written. */
ort_status ort_attention_fuse_packed(ort_pass_context *context, const ort_attention *a, ort_id mask,
                                     ort_id keys, ort_id empty, bool *done, ort_error *err);
/* MultiHeadAttention of com.microsoft or one of these two. */
ort_status ort_attention_fuse_multi(ort_pass_context *context, ort_attention *a, int *changes,
                                    ort_error *err);

/* ---- values (attention_values.c) */

/* q as [B,H,S,D], however it lies. */
ort_type ort_attention_queries(const ort_graph *graph, const ort_attention *a);
/* Does it broadcast onto scores [B,H,S,T], with T itself as its last dimension? */
bool ort_attention_mask_fits(const ort_type *mask, const ort_type *scores, ort_dtype dtype);
/* May `mask` stand among the masks? */
bool ort_attention_is_mask(const ort_graph *graph, const ort_attention *a, ort_id mask);

#endif
