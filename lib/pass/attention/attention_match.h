/* attention_match.h - softmax(q k^T scale + mask) v found in a graph, spelled in products, and what
 * stands around it: heads split off and put together, repeated for a group of queries, appended to
 * a cache. attention_match.c reads the products, attention_behind.c what is done to the
 * probabilities, attention_around.c the rest, attention_row.c what is left of it around one query,
 * attention_mask.c, attention_keys.c and attention_causal.c what is summed onto the scores, all of
 * them by the questions of attention_values.c. attention_form.c chooses the operator, which
 * attention_write.c puts in the place of what was found.
 */
#ifndef ORT_PASS_ATTENTION_ATTENTION_MATCH_H
#define ORT_PASS_ATTENTION_ATTENTION_MATCH_H

#include "op/edit.h"
#include "pass/pass.h"

enum {
    ORT_ATTENTION_CORE = 24,
    ORT_ATTENTION_READ = 18, /* of those, from the result to the product; the rest: around */
    ORT_ATTENTION_AROUND = 40,
    ORT_ATTENTION_MASKS = 3
};

typedef struct ort_attention_keys { /* which keys count */
    ort_id id;     /* [B,T], of conditions or of 1 and 0 (int32, int64); or ORT_ID_NONE */
    bool inverted; /* those that don't are true or 1 */
    double low;    /* added to the scores of those that don't */
} ort_attention_keys;

typedef struct ort_attention {
    ort_node *root;        /* gives the result */
    ort_id q, k, v;        /* [B,H,S,D], [B,G,T,D], [B,G,T,E], H a multiple of G; rows: see below */
    bool k_is_rows;        /* k is [B,T,G,D], or [B,T,D] of one head */
    ort_id masks[ORT_ATTENTION_MASKS]; /* summed onto the scores */
    int mask_count;
    ort_id window; /* another, [1,n,1 or H,S,T] or [n,...]: of scores as [B/n,n,H,S,T]; or NONE */
    ort_dim images; /* B/n */
    int masks_outside;     /* how many of them, the first, after the condition had been applied */
    ort_id keep, fill;     /* a condition and the number of scores where it fails; or ORT_ID_NONE */
    bool keep_is_inverse;  /* the number stands where the condition holds */
    ort_attention_keys keys; /* taken out of masks or keep */
    double scale, softcap; /* softcap 0: none */
    ort_id head_scale;     /* a constant [H,1,1], another factor of the scores; or ORT_ID_NONE */
    ort_dim T;             /* keys, past ones included */
    ort_id past_k, past_v; /* [B,G,P,D], [B,G,P,E]; or ORT_ID_NONE */
    ort_id present_k, present_v;       /* their concatenations with k and v */
    int64_t q_heads, kv_heads; /* 0: they have four dims; else [B,S,H*D], [B,T,G*D], [B,T,G*E] */
    ort_id parted; /* the result as [B,S,H,E], or else laid, where that is wanted; or ORT_ID_NONE */
    bool steps;    /* q, k and v are [S,B,H*D], heads together; parted is [S,B*H,E] or [S,B,H,E] */
    bool shared;   /* k and v have one head, for all those of q */
    bool floored;  /* no score is less than the lowest number */
    bool row;      /* one query: q is [B,1,H*D], with q_heads; k and v are [B,H,T,D] */
    bool joined;   /* one query: the root gives [B,1,H*E] */
    bool causal;
    bool guarded; /* rows without any key give 0, not NaN */
    bool open;    /* guarded, and there may be such rows, which the operator doesn't zero */
    ort_id empty; /* written then: true of those, [b,S,1] or what broadcasts to it; or NONE */
    ort_id zeroed; /* keep, where it puts probabilities to 0 as well: rows without any key give 0 */
    bool zeroed_where_true;
    ort_node *unfold; /* makes [B,H,S,T] of folded scores, as masks [B*H,S,T] need; or NULL */
    ort_dim folded;   /* B*H */
    bool settled; /* an Attention that is there, whose mask means what the operator makes of it */
    /* Nodes that go in any case, root first: nobody else reads them. Then those that go unless
     * somebody else reads them, the nearest to the result first. */
    ort_node *core[ORT_ATTENTION_CORE], *around[ORT_ATTENTION_AROUND];
    int core_count, around_count;
    const char *why; /* why there is none, after a Softmax was found; or NULL */
} ort_attention;

/* Is `root` (a MatMul) such a thing? The mask broadcasts onto the scores, its last dim is T. */
bool ort_attention_match(const ort_pass_context *context, ort_node *root, ort_attention *a);
/* What gives the probabilities that the root multiplies with v: a Softmax, if all is well. *wide:
 * them as [B,H,S,T], where they are folded behind it; or ORT_ID_NONE. */
ort_node *ort_attention_read_behind(const ort_graph *graph, ort_attention *a, ort_id *wide);

/* ---- around: each looks whether it can extend what was found, and does */

/* Keys and values that are repeated for the queries of a group: k and v get fewer heads. They may
 * be [B,G,1,T,D] then. */
bool ort_attention_ungroup(const ort_pass_context *context, ort_attention *a);
/* Keys and values appended to past ones along T. */
bool ort_attention_uncache(const ort_pass_context *context, ort_attention *a);
/* The [B,S,H*D] value whose heads were split off to make this [B,H,S,D], or ORT_ID_NONE; nodes in
 * between go to `around`. */
ort_id ort_attention_unsplit(const ort_graph *graph, ort_id id, int64_t *heads, ort_attention *a);
/* Does whoever reads the result put its heads together? Then those nodes go. */
bool ort_attention_join_result(const ort_graph *graph, ort_attention *a);
/* Heads together: q [B,S,H*D], k [B,T,G*D], v [B,T,G*E], and the result. False: nothing changed. */
bool ort_attention_join(const ort_graph *graph, ort_attention *a);
/* The [B,S,3*H*D] value whose thirds are q, k and v, in this order, by a Reshape, a Transpose and
 * a Split or Gather, or ORT_ID_NONE. */
ort_id ort_attention_packed(const ort_graph *graph, ort_attention *a, int64_t *heads);
/* Is the mask one that only keeps later keys out? Then it goes. */
bool ort_attention_is_causal(const ort_pass_context *context, ort_attention *a);
/* Is one of the masks, or the condition, made of keys that count? Then it goes to a->keys. */
bool ort_attention_take_keys(const ort_pass_context *context, ort_attention *a);

/* Does it certainly leave every row a key, no mask being infinite? */
bool ort_attention_masks_finitely(const ort_pass_context *context, const ort_attention *a);

/* Are q, k and v, which `scores` and a->root multiply, with steps first? Then they are found. */
bool ort_attention_read_steps(const ort_graph *graph, ort_attention *a, const ort_node *scores);

/* ---- rows without any key */

/* Is it guarded, and may there be such rows? */
bool ort_attention_has_empty(const ort_pass_context *context, const ort_attention *a);
/* Can they be told from the masks, as rows of [B,S,H*E]? */
bool ort_attention_empty_fits(const ort_pass_context *context, const ort_attention *a);
/* a->empty, from all that is summed onto the scores. */
ort_status ort_attention_find_empty(ort_pass_context *context, ort_id mask, ort_id *empty,
                                    ort_error *err);
/* The same, where a->zeroed is there: from it, if it is the same for all heads. */
bool ort_attention_has_rows(const ort_graph *graph, const ort_attention *a);
ort_status ort_attention_find_rows(ort_pass_context *context, ort_attention *a, ort_error *err);
/* The result with zeros there, under the name *zeroed, or a new one. */
ort_status ort_attention_zero_empty(ort_pass_context *context, ort_id empty, ort_id result,
                                    ort_id *zeroed, ort_error *err);

/* ---- one query, H and D being known */

/* The Reshape that makes this [B,H,1,D] of [B,1,H*D], or NULL. */
ort_node *ort_attention_row_split(const ort_graph *graph, ort_id id);
/* The Reshape of this [B,H,1,E] to [B,1,H*E], its only reader, or NULL. */
ort_node *ort_attention_row_joined(const ort_graph *graph, ort_id id);
/* The [B,1,H*D] of which this q, [B*H,1,D], is made, k being [B,H,T,D], or ORT_ID_NONE. */
ort_id ort_attention_row_unfold(const ort_graph *graph, ort_id id, ort_id k, ort_attention *a);
/* The Reshape of this [B*H,1,E] to [B,1,H*E], its only reader, v being [B,H,T,E], or NULL. */
ort_node *ort_attention_row_unfolded(const ort_graph *graph, ort_id id, ort_id v);

/* ---- writing */

/* q as [B,H,1,D], where k and v have four dims; the result's heads are put together behind it. */
ort_status ort_attention_part_row(ort_pass_context *context, ort_attention *a, ort_error *err);
/* The batch first, where steps are. */
ort_status ort_attention_turn_steps(ort_pass_context *context, ort_attention *a, ort_error *err);
/* The result [B,S,H*E] with its steps first and its heads apart, under the name readers know. */
ort_status ort_attention_part_steps(ort_pass_context *context, ort_id result, ort_id parted,
                                    ort_error *err);
/* a->keys as what is summed onto the scores, among a->masks. */
ort_status ort_attention_lower_keys(ort_pass_context *context, ort_attention *a, ort_error *err);

/* The mask `*mask` with what stands for its low numbers, as attention_low.c says. */
ort_status ort_attention_raise_mask(ort_pass_context *context, ort_id *mask, ort_error *err);
/* Has one of the masks numbers that would be raised? */
bool ort_attention_masks_low(const ort_graph *graph, const ort_attention *a);

/* All that is summed onto the scores as one value; ORT_ID_NONE: nothing. */
ort_status ort_attention_mask(ort_pass_context *context, const ort_attention *a, ort_id *mask,
                              ort_error *err);
/* The mask with all the query rows of q ([B,S,E] or [B,H,S,D]); with four dims unless any will
 * do. */
ort_status ort_attention_full_rows(ort_pass_context *context, ort_id q, bool any_rank,
                                   ort_id *mask, ort_error *err);
/* a->keys as int32 [B,T], 1 where a key counts; ORT_ID_NONE: there are none. */
ort_status ort_attention_write_keys(ort_pass_context *context, const ort_attention *a, ort_id *id,
                                    ort_error *err);

/* What was matched goes, then `spec` is added in the root's place; outputs, which must be spec's,
 * gets the result as its first. */
ort_status ort_attention_replace(ort_pass_context *context, const ort_attention *a,
                                 ort_node_spec *spec, ort_id *outputs, ort_error *err);
/* GroupQueryAttention of com.microsoft, where it is one; *done: it has been written. */
ort_status ort_attention_fuse_group(ort_pass_context *context, const ort_attention *a, bool *done,
                                    ort_error *err);

/* Attention of com.microsoft, where q, k and v (heads together) are projections of one value; mask
 * is what is summed onto the scores and keys those that count, or ORT_ID_NONE; *done: it has been
 * written. */
ort_status ort_attention_fuse_packed(ort_pass_context *context, const ort_attention *a, ort_id mask,
                                     ort_id keys, bool *done, ort_error *err);

/* ---- values (attention_values.c) */

/* Remember a node that goes unless somebody else reads it. */
void ort_attention_drop(ort_attention *a, ort_node *node);
bool ort_attention_ranked(const ort_graph *graph, ort_id id, int rank);
bool ort_attention_has_perm(const ort_node *node, const int64_t perm[], size_t count);
/* Is `wide` [B,H,S,D] and `folded` [B*H,S,D]? */
bool ort_attention_folds(const ort_graph *graph, ort_id wide, ort_id folded);
/* Is this input a constant of one element? */
bool ort_attention_number_at(const ort_graph *graph, const ort_node *node, int slot,
                             double *number);
/* x * number or x / number: the slot of x, and the factor; -1: it is neither. */
int ort_attention_scaled(const ort_graph *graph, const ort_node *node, double *factor);
/* What `id` is without constant factors, which a->scale gets; nodes in between go to `around`. */
ort_id ort_attention_unscaled(const ort_graph *graph, ort_id id, ort_attention *a);
/* q as [B,H,S,D], however it lies. */
ort_type ort_attention_queries(const ort_graph *graph, const ort_attention *a);
/* Does it broadcast onto scores [B,H,S,T], with T itself as its last dimension? */
bool ort_attention_mask_fits(const ort_type *mask, const ort_type *scores, ort_dtype dtype);
/* May `mask` stand among a->masks? */
bool ort_attention_is_mask(const ort_graph *graph, const ort_attention *a, ort_id mask);

#endif
