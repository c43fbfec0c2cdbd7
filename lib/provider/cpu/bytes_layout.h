/* bytes_layout.h - the pass that puts regions of quantized nets into the layout of bytes, divided:
 * which nodes run there (bytes_roles.c), channels that only move (bytes_moves.c), and the rewriting
 * (bytes_layout.c).
 */
#ifndef ORT_PROVIDER_CPU_BYTES_LAYOUT_H
#define ORT_PROVIDER_CPU_BYTES_LAYOUT_H

#include "op/blocked/bytes_op.h"
#include "op/edit.h"
#include "pass/facts/facts.h"
#include "pass/numbers/quant_pair.h"
#include "provider/cpu/layout_edit.h"

typedef enum ort_bytes_role {
    ORT_BYTES_NONE,
    ORT_BYTES_CONV,
    ORT_BYTES_POOL,    /* MaxPool */
    ORT_BYTES_AVERAGE, /* QLinearAveragePool */
    ORT_BYTES_MEAN,    /* QLinearGlobalAveragePool */
    ORT_BYTES_SAME,    /* the same operator on blocked tensors: elementwise, or along places */
    ORT_BYTES_TABLE,   /* LookUp */
    ORT_BYTES_RESIZE,  /* nearest, of height and width */
    ORT_BYTES_MOVE,    /* of whole channels: Concat, Split, Slice, Gather, a shuffle's last node */
    ORT_BYTES_BEGUN,   /* nodes of a shuffle before the last */
    ORT_BYTES_CODED,   /* QuantizeLinear behind a BytesConvFloat (of float_convs.h) */
    ORT_BYTES_COMES,   /* BlockBytes of a value that is there already (of float_convs.h) */
} ort_bytes_role;

/* A value whose channels are those of others. */
typedef struct ort_bytes_moved {
    int count;              /* of the others */
    ort_id *source;
    const uint8_t **table;  /* of each: codes by codes, both of the layout; NULL: they stay */
    int64_t channels;
    int64_t *from;          /* index among all channels of the sources */
} ort_bytes_moved;

typedef struct ort_bytes_layout {
    ort_layout edit;
    ort_arena *space;
    ort_bytes_role *role;     /* by node id */
    bool *blocked;            /* by value id: some node gives it in the layout */
    int *uses;                /* by value id: inputs that take it as it lies in the layout */
    ort_bytes_moved **moved;  /* by value id; NULL: it isn't moved, or not yet */
    bool lines;               /* the tier's convolutions take plain channels as the last axis */
    ort_id zero[256];         /* zero points of uint8 made here; ORT_ID_NONE: none so far */
} ort_bytes_layout;

/* Codes over one or two axes with known channels? */
static inline bool ort_bytes_is_value(const ort_graph *graph, ort_id value)
{
    const ort_type *t = ort_fact_type(graph, value);
    return t->kind == ORT_TYPE_TENSOR && (t->rank == 3 || t->rank == 4) &&
           (t->dtype == ORT_DTYPE_UINT8 || t->dtype == ORT_DTYPE_INT8) && ort_dim_known(t->dim[1]);
}

/* ---- bytes_roles.c */

bool ort_bytes_is_conv(const ort_node *node);
/* Why a convolution can't run in the layout; NULL: it can. */
const char *ort_bytes_conv_stays(const ort_graph *graph, const ort_bytes_layout *l,
                                 const ort_node *node);
/* Does it read few channels as they lie outside? */
bool ort_bytes_reads_plain(const ort_graph *graph, const ort_bytes_layout *l,
                           const ort_node *conv);
/* Groups of which none fills its blocks, and which aren't one channel each? */
bool ort_bytes_splits(const ort_node *conv, const ort_tensor *w);
/* A BytesConvFloat whose result a QuantizeLinear alone codes, perhaps behind a function of one
 * number. */
typedef struct ort_bytes_coded {
    ort_quant out;             /* the QuantizeLinear */
    ort_node *conv, *function; /* function: NULL where there is none */
    int64_t act;               /* an ort_unary, or -1 */
    float act_a, act_b;
    ort_id slope;              /* of a PRelu; else ORT_ID_NONE */
} ort_bytes_coded;
/* False: it codes something else. */
bool ort_bytes_read_coded(const ort_graph *graph, ort_node *quantize, ort_bytes_coded *coded);
/* Slots that hold tensors of the layout, and their zero points. */
bool ort_bytes_is_data(ort_bytes_role role, const ort_node *node, int slot);
bool ort_bytes_is_zero(ort_bytes_role role, const ort_node *node, int slot);
/* All nodes' roles, values that are blocked, and their uses. */
void ort_bytes_choose(const ort_graph *graph, ort_bytes_layout *l);

/* ---- bytes_moves.c */

/* Does the node only move whole channels of codes? A Concat may change their scales. */
bool ort_bytes_moves(const ort_graph *graph, const ort_node *node);
/* The nodes of a channel shuffle that ends in `last`: Reshape, Transpose, Reshape. */
bool ort_bytes_shuffles(const ort_graph *graph, const ort_node *last, ort_node *before[2]);
/* The values that the node's outputs are made of are noted in l->moved. */
ort_status ort_bytes_note_move(ort_bytes_layout *l, const ort_node *node, ort_error *err);
/* A tensor of the layout whose channels are those of another, which has `channels` of them:
 * from[c], or -1: nobody's. Named after `like`. */
ort_status ort_bytes_pick(ort_bytes_layout *l, ort_id blocked, int64_t channels,
                          const int64_t *from, int64_t count, ort_id like, ort_id *picked,
                          ort_error *err);
/* The form of a value in the layout, made where nobody has made it. */
ort_status ort_bytes_form(ort_bytes_layout *l, ort_id value, ort_id *blocked, ort_error *err);

#endif
