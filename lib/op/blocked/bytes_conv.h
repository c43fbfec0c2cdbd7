/* bytes_conv.h - what a convolution in the layout of bytes keeps, and its weights in the order in
 * which products read them.
 */
#ifndef ORT_OP_BLOCKED_BYTES_CONV_H
#define ORT_OP_BLOCKED_BYTES_CONV_H

#include "base/checked.h"
#include "op/blocked/bytes_after.h"
#include "op/blocked/bytes_op.h"
#include "op/blocked/bytes_winograd.h"

enum { X, W, B, X_SCALE, X_ZERO, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO };
enum {
    PLAIN_CHANNELS = 4,
    FILTERS_MOST = 32, /* of a panel, and of a block */
};

/* Runs of words that are multiplied again, by the rests: those of whole blocks, tap by tap;
 * stretches of taps of the other channels. */
typedef struct bytes_rests {
    int64_t *run[2], count[2];
} bytes_rests;

typedef struct bytes_state {
    ort_window_spec spec;
    const ort_bytes_kernels *k;
    int64_t group, maps, channels, kernel[2]; /* channels of one group; maps: of all groups */
    bool plain, depthwise;
    int wide;                                 /* bytes of an element that products read */
    const uint8_t *limits;                    /* of `fours`, [group][panel][word][4]; or NULL */
    bool roomy;                               /* all that they allow is any code; no rests */
    const uint8_t *empty;                     /* where there are rests, likewise, [..][word] */
    int64_t last;                             /* plain, and channels are its last axis */
    bool line;                                /* plain, undilated along rows, of one channel or of
                                                 pixels whose channels become neighbours */
    int64_t group_blocks, panel_words;        /* blocks of a group's outputs; of one vector */
    const int32_t *w;                         /* [group][panel].. */
    const int32_t *bias;                      /* for whole blocks, group by group */
    const float *scale;                       /* likewise */
    bool bounded;                             /* no sum times its scale is beyond int32 */
    const int32_t *rested; /* which runs, or depthwise blocks, have rests; NULL: none */
    bytes_rests rests;     /* the runs as lists */
    bool summed;           /* instead, weights of int16 are sums of both */
    int x_zero, y_zero;
    ort_bytes_winograd *winograd;             /* or NULL */
    bool floats;                              /* bias and scale are made in the run */
    float low, high;
    int64_t blocks;                           /* channels of a block of the floats; 0: plain */
    bool coded;                               /* and codes of these floats, behind `act` */
    int64_t act;                              /* an ort_unary, or -1 */
    float act_a, act_b, y_scale;
    const float *slope;                       /* of negative ones, as shift; or NULL */
    const int32_t *sums;                      /* of filters, as bias */
    const float *shift;                       /* behind the scale, likewise */
    int64_t turned;                           /* of `after` */
    ort_bytes_after after;
} bytes_state;

static inline int64_t taps_of(const bytes_state *s)
{
    return s->kernel[0] * s->kernel[1];
}

static inline int64_t blocks_of(int64_t channels)
{
    return ort_blocked_count(channels, ORT_BYTES_BLOCK);
}

/* Numbers of whole blocks. */
static inline int64_t lanes_of(const bytes_state *s)
{
    return (s->depthwise ? 1 : s->group) * s->group_blocks * ORT_BYTES_BLOCK;
}

/* Vectors of a group's outputs. A last block of which one has no map is half: what lies there is
 * anything, and multiplied by zero. */
static inline int64_t vectors_of(const bytes_state *s)
{
    return ort_blocked_count(s->depthwise ? s->maps : s->maps / s->group, s->k->vector);
}

/* Where a map's number is among them. */
static inline int64_t lane_of(const bytes_state *s, int64_t map)
{
    const int64_t maps = s->depthwise ? s->maps : s->maps / s->group;
    return map / maps * s->group_blocks * ORT_BYTES_BLOCK + map % maps;
}

/* Channels of whole blocks, and the others with those that fill their last word: products read four
 * of a plain pixel. */
static inline int64_t whole_channels(const bytes_state *s)
{
    return s->plain ? 0 : s->channels / ORT_BYTES_BLOCK * ORT_BYTES_BLOCK;
}

static inline int64_t part_channels(const bytes_state *s)
{
    int64_t word = 4 / s->wide, left = s->channels - whole_channels(s);
    return s->plain ? PLAIN_CHANNELS : (left + word - 1) / word * word;
}

/* Channels of a copied plain pixel. */
static inline int64_t plain_channels(const bytes_state *s)
{
    return s->line ? s->channels : PLAIN_CHANNELS;
}

/* Words of a row of a line's window. */
static inline int64_t line_words(const bytes_state *s)
{
    const int64_t word = 4 / s->wide;
    return (s->kernel[1] * s->channels + word - 1) / word;
}

/* Taps of the channels of part_channels that are multiplied again together: they may follow each
 * other in one run. */
static inline int64_t rest_stretch(const bytes_state *s)
{
    return !s->plain ? 1 : s->kernel[1] > 1 ? s->kernel[1] : s->kernel[0];
}

/* Channels of all taps that are multiplied again. */
static inline int64_t rest_channels(const bytes_state *s)
{
    return s->rests.count[0] * ORT_BYTES_BLOCK +
           s->rests.count[1] * rest_stretch(s) * part_channels(s);
}

/* Words of a panel's limits. */
static inline int64_t limit_words(const bytes_state *s)
{
    return (int64_t)ort_round_up((size_t)s->panel_words, ORT_BYTES_WORDS);
}

/* Panels of a group's outputs. */
static inline int64_t panels_of(const bytes_state *s)
{
    return (vectors_of(s) + 1) / 2;
}

/* s->rested and s->rests: what is multiplied again; nothing where the weights are int8 already. */
ort_status ort_bytes_find_rests(ort_prep *p, bytes_state *s, const ort_tensor *w, ort_error *err);
/* The filters as s->w, and the sums of their weights, of whole blocks. */
ort_status ort_bytes_pack_filters(ort_prep *p, const bytes_state *s, const ort_tensor *w,
                                  int32_t *out, int32_t *sums, ort_error *err);
/* The largest sum of a filter's weights without their signs. */
int64_t ort_bytes_largest_filter(const ort_prep *p, const bytes_state *s, const ort_tensor *w);
/* Of packed filters, as s->limits; and as s->empty, unless that is NULL. */
void ort_bytes_limit_filters(const bytes_state *s, const int32_t *filters, uint8_t *limits,
                             uint8_t *empty);
/* Whether limits allow any code. */
bool ort_bytes_all_fit(const bytes_state *s, const uint8_t *limits);
/* Which operator it is: by its row. */
enum { ORT_BYTES_OF_CODES, ORT_BYTES_OF_FLOATS, ORT_BYTES_THROUGH_FLOATS };
enum { ORT_BYTES_SLOPE_IN = Y_ZERO + 1 }; /* of BytesConvThrough */
/* bytes_prepare.c: fills the state of BytesConv, BytesConvFloat and BytesConvThrough. */
ort_status ort_bytes_conv_prepare(ort_prep *p, ort_error *err);

/* bytes_floats.c: where sums go that become floats, or codes of these. */
typedef struct bytes_floats {
    ort_call *call;
    const bytes_state *s;
    const ort_blocked_dims *out;
    const float *scale; /* for whole blocks */
    float *floats;      /* plain, or in blocks of s->blocks; */
    uint8_t *codes;     /* instead, where s->coded */
} bytes_floats;

/* Sums of `lanes` outputs, some of them without a map, from output `first` of those of whole blocks
 * on, from pixel `pixel` of an image on. */
void ort_bytes_give_floats(const bytes_floats *f, const ort_bytes_out *o, int64_t first,
                           int64_t lanes, int64_t image, int64_t pixel);

#endif
