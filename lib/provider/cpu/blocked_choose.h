/* blocked_choose.h - the two halves of the blocked-layout pass: what goes into the layout
 * (blocked_choose.c), and the rewriting (blocked_layout.c). */
#ifndef ORT_PROVIDER_CPU_BLOCKED_CHOOSE_H
#define ORT_PROVIDER_CPU_BLOCKED_CHOOSE_H

#include "pass/pass.h"

typedef enum ort_blocked_role {
    ORT_BLOCKED_NONE,   /* stays as it is */
    ORT_BLOCKED_CONV,
    ORT_BLOCKED_POOL,   /* MaxPool, AveragePool and their global forms */
    ORT_BLOCKED_SAME,   /* elementwise: the same operator on blocked tensors */
    ORT_BLOCKED_SCALE,  /* Mul or Add of a plane with one number per channel (squeeze-excite) */
    ORT_BLOCKED_CONCAT, /* along whole blocks of channels */
    ORT_BLOCKED_JOIN,   /* Concat of blocks that aren't full */
    ORT_BLOCKED_AFFINE, /* by constants per channel: BatchNormalization, PRelu, Mul, Add, .. */
    ORT_BLOCKED_RESIZE, /* nearest or linear, by whole factors */
    ORT_BLOCKED_GIVEN,  /* products of bytes, which give floats of the layout as easily */
    ORT_BLOCKED_CODES,  /* QuantizeLinear for the layout of bytes alone: gives none of this one */
} ort_blocked_role;

typedef struct ort_blocked_choice {
    int64_t block;          /* 8 or 16 */
    bool narrows;           /* of ort_kernels: of 16, 8 may become the block */
    bool any_order;         /* of ort_pass_context */
    ort_blocked_role *role; /* by node id */
    bool *blocked;          /* by value id: some node gives it in the layout */
    int *uses;              /* by value id: input slots that take it as it lies in the layout */
    ort_id *region;         /* by node id: another node of its region, up to the region's root */
    double *gain;           /* by node id: of the region whose root it is, cycles */
} ort_blocked_choice;

/* Fill a choice whose arrays are zeroed and one longer than the graph's lists. */
void ort_blocked_choose(const ort_graph *graph, ort_blocked_choice *choice);
/* Why a convolution isn't in the layout after the choice; NULL: it is, or isn't one. */
const char *ort_blocked_stays(const ort_graph *graph, const ort_blocked_choice *choice,
                              const ort_node *node);
/* Is this the mean over all spatial axes, kept as ones: GlobalAveragePool by another name? */
bool ort_blocked_is_mean(const ort_graph *graph, const ort_node *node);
/* Does this convolution read plain rows? It can, and its input lies outside of the layout or a
 * block would hold one channel of it. */
bool ort_blocked_from_plain(const ort_graph *graph, const ort_blocked_choice *c,
                            const ort_node *conv);
/* Is this a Resize by whole factors along the two spatial axes? *place: where a linear one finds
 * its pixels, in the words of BlockedUpsample; NULL: each pixel is repeated. */
bool ort_blocked_grows(const ort_graph *graph, const ort_node *node, int64_t factors[2],
                       const char **place);
/* blocked_numbers.c: what a node changes by constants per channel alone; ORT_ID_NONE: another. */
ort_id ort_blocked_affine_data(const ort_graph *graph, const ort_node *node);
/* The lists that make a BlockedAffine of it, three at most; how many, 0: memory is exhausted. */
int ort_blocked_affine_attrs(ort_graph *graph, const ort_node *node, ort_attr *attrs);
/* Slots of the node that take tensors in the layout: [0, count). */
bool ort_blocked_slot(ort_blocked_role role, int slot);

#endif
