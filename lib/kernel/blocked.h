/* blocked.h - kernels of the blocked channel layout: [channels / B][pixels][B] of float, B = 8 or
 * 16 channels side by side, so that one vector holds the same pixel of neighbouring channels.
 *
 * Both block sizes exist on every tier: files of other runtimes come with either, a session's own
 * layout takes the tier's preferred one (ort_kernels.block). Channels beyond the real ones are
 * computed like the others; weights and bias hold zeros there. Blocks need no alignment, but
 * vectors that don't cross cache lines are faster.
 *
 * Weights of the product kernels lie in panels of two vectors of output channels (the last one may
 * be one vector): [panel][kernel row][kernel column][input channel][panel width]. `vector` is the
 * number of floats of one vector; a vector never crosses a block.
 *
 * Every output element is summed in the order kernel row, kernel column, input channel, in one
 * accumulator, however callers cut rows, pixels and output channels.
 */
#ifndef ORT_KERNEL_BLOCKED_H
#define ORT_KERNEL_BLOCKED_H

#include <stdbool.h>
#include <stdint.h>

/* Where a stretch of one output row goes: y = clamp(leak(sum + (accumulate ? y : 0) + bias + z)),
 * where leak(v) is v < 0 ? v * slope : v. */
typedef struct ort_blocked_out {
    float *y;            /* first pixel of the stretch, the block of the first vector */
    int64_t y_block;     /* floats from one block of channels to the next */
    const float *z;      /* laid out as y; NULL: none */
    const float *bias;   /* per output channel from the first vector on; NULL: none */
    const float *slope;  /* likewise; NULL: no leak */
    float lo, hi;
    bool accumulate;
    int64_t count;       /* pixels */
} ort_blocked_out;

/* The part of a window that lies inside the rows of the input. Columns may reach beyond its left
 * and right edge: those taps count as zero (sums) or not at all (maximum). */
typedef struct ort_blocked_window {
    const float *x;      /* pixel 0 of the first kernel row's input row, channel block 0 */
    int64_t x_row;       /* floats from the input row of a kernel row to the next one's */
    int64_t width;       /* pixels of an input row */
    int64_t rows, columns, stride, dilation; /* kernel rows inside; the last two along the row */
    int64_t start;       /* input pixel under column 0 of the first output pixel; may be < 0 */
} ort_blocked_window;

typedef struct ort_blocked_conv {
    ort_blocked_window window;
    ort_blocked_out out;
    int64_t x_block;     /* floats from one block of input channels to the next */
    int64_t channels;    /* input channels */
    const float *w;      /* panel 0 */
    int64_t w_rows;      /* of the whole filter */
    int64_t first_row;   /* of the filter: where the window's rows begin */
    int64_t first_vector, vectors; /* output vectors; first_vector is even */
    const float *ahead;  /* weights to fetch meanwhile, ahead_step floats further with each */
    int64_t ahead_step;  /* vector or pair of vectors of weights used; 0: none */
    bool finite;         /* all weights are: a number of x that is zero adds nothing */
} ort_blocked_conv;

/* What crossed sums (kernel/crossed.h) of a convolution of single pixels take besides: each pixel
 * is a row, and what are columns there are output channels. */
typedef struct ort_blocked_crossed {
    const float *begin;  /* what sums begin with, [panel][two vectors] from panel 0 on; a panel
                            whose first is NaN is left to direct sums */
    int64_t maps;        /* real output channels, from panel 0 on */
    int middle;          /* exponent of their norms */
    float *space;        /* ort_blocked_crossed_floats, aligned to 64 bytes */
} ort_blocked_crossed;

enum { ORT_BLOCKED_CROSSED_PIXELS = 64 }; /* taken at a time */

/* Floats from one pixel to the next: a vector more is read, and not a multiple of 1 KiB. */
static inline int64_t ort_blocked_crossed_step(int64_t channels)
{
    const int64_t step = (channels + 15) / 16 * 16 + 16;
    return step + (step % 256 == 0 ? 16 : 0);
}

static inline int64_t ort_blocked_crossed_floats(int64_t channels)
{
    return ORT_BLOCKED_CROSSED_PIXELS * (ort_blocked_crossed_step(channels) + 2);
}

/* A convolution that reads plain rows (few input channels), padded so that every tap of every pixel
 * exists. w: [panel][tap][panel width]. */
typedef struct ort_blocked_plain {
    const float *x;      /* first output pixel's place; tap t reads x[offset[t] + pixel * stride] */
    const int64_t *offset;
    int64_t taps, stride;
    const float *w;
    int64_t first_vector, vectors;
    ort_blocked_out out;
} ort_blocked_plain;

/* A window on each channel alone, one block of channels. */
typedef struct ort_blocked_each {
    ort_blocked_window window;
    ort_blocked_out out;
    const float *w;            /* taps that weigh: [rows][columns][B] */
    const float *column_count; /* average: elements of the window that count, per output pixel */
    float row_count;           /*          = row_count * column_count[pixel] */
} ort_blocked_each;

/* Some output rows of a window on each channel alone, of one block of channels. Of the input's
 * `height` rows `ring` are in memory, row r at x + r % ring * x_row: a producer may stay a window
 * ahead. Pairs: down the plane, along the row. ring < height only where a depthwise window is 3, 5
 * or 7 wide and ORT_BLOCKED_MAX_ROWS tall at most, of stride 1 or 2, dilation[1] is 1, no window
 * lies wholly beside the row and z is NULL, or a window of a maximum reaches over less than
 * ORT_BLOCKED_MAX_REACH columns. */
typedef struct ort_blocked_band {
    const float *x;
    int64_t x_row, ring, height, width;
    int64_t kernel[2], stride[2], dilation[2], begin[2]; /* begin: padding before */
    const float *w;            /* depthwise: [kernel rows][kernel columns][B]; maximum: unused */
    int64_t first_row, rows;   /* of the output */
    ort_blocked_out out;       /* of first_row, rows follow one another; count: of a row; maximum:
                                  y and count alone */
} ort_blocked_band;

enum { ORT_BLOCKED_MAX_REACH = 128, ORT_BLOCKED_MAX_ROWS = 7 };

/* Neighbouring tiles of 4x4 outputs in one row of tiles and one block of channels. `v` holds 36
 * stretches of pixels, v_step floats apart, tile t at pixel t of each. */
typedef struct ort_blocked_tiles {
    const float *x;            /* input: the block's plane of height x width */
    int64_t height, width;     /* of the plane of x, or of out.y */
    int64_t top, left;         /* of the first tile in that plane; input: may lie outside */
    int64_t tiles;
    float *v;
    int64_t v_step;
    ort_blocked_out out;       /* output: y (and z) at (top, left); count is unused */
} ort_blocked_tiles;

/* Tiles down one axis: sums of at most 7 - `form` taps give `form` outputs, 2, 3 or 4, by six
 * products. `v` holds six stretches of pixels, v_step floats apart, tile t at pixel t of each. */
typedef struct ort_blocked_line {
    const float *x[6];         /* input: pixels that the first tile reads */
    float *v;
    int64_t v_step, count;     /* count: tiles */
    int64_t next;              /* floats of x, or of out.y and out.z, from one tile to the next */
    int form;
    int64_t outputs;           /* of each tile that are in the plane */
    int64_t step;              /* floats from one of them to the next */
    ort_blocked_out out;       /* output: y (and z) of the first tile's first; count is unused */
} ort_blocked_line;

/* Where a pixel of a wider row comes from: two pixels, and the weight of the second. */
typedef struct ort_blocked_place {
    int64_t low, high;
    float part;
} ort_blocked_place;

/* Convolutions on tiles of bfloat16 (amx): each float is the sum of three thirds
 * (kernel/amx/thirds.h). Steps of 32 channels, the last one of 16 where blocks are odd. The input
 * lies as [step][3][pixel][64 bytes], a panel of weights, of one or two vectors of output channels,
 * as [tap][step][tiles of ORT_BLOCKED_TILE_BYTES]. */
enum {
    ORT_BLOCKED_TILE = 16,          /* pixels of a tile at most; so many may be read beyond */
    ORT_BLOCKED_TILE_BYTES = 1024,  /* of one vector of weights; a step has so many of them: */
    ORT_BLOCKED_WHOLE_TILES = 3,
    ORT_BLOCKED_HALF_TILES = 2,
};

/* Pixels, `step` floats apart, of all blocks into thirds. */
typedef struct ort_blocked_split {
    const float *x;
    int64_t x_block, step, blocks, count;
    char *to;
    int64_t third; /* bytes from one third of a pixel to the next */
} ort_blocked_split;

/* Panels over `rows` output rows of `width` pixels, `pitch` pixels of `x` apart. Tiles of `tile`
 * pixels each begin in a row and end with it; or, `gaps`, follow one another through all rows and
 * what lies between them, which is nobody's. */
typedef struct ort_blocked_tiled {
    const char *x;         /* of the pixel under tap 0 of the first output pixel */
    int64_t third;         /* as in the split */
    int64_t step;          /* bytes from an output pixel to the next */
    const int64_t *offset; /* bytes, of each tap */
    int64_t taps, blocks;  /* of input channels */
    const ort_blocked_split *split; /* done meanwhile: x is its `to`, rows and taps 1, `step` 64;
                                       NULL: x is there */
    const char *w;         /* of the first panel */
    const char *ahead;     /* a panel that is likely to be read after the last: fetched; or NULL */
    int64_t vectors;       /* of all panels */
    int64_t rows, width, pitch;
    int tile;              /* at most ORT_BLOCKED_TILE */
    bool gaps;
    ort_blocked_out out;   /* rows follow one another; nothing is accumulated */
} ort_blocked_tiled;

/* Bytes of the weights of one vector. */
static inline int64_t ort_blocked_tiled_bytes(int64_t taps, int64_t blocks)
{
    return taps * ORT_BLOCKED_TILE_BYTES *
           (blocks / 2 * ORT_BLOCKED_WHOLE_TILES + blocks % 2 * ORT_BLOCKED_HALF_TILES);
}

typedef struct ort_blocked_kernels {
    int block, vector;
    int pixels; /* of the largest micro tile of conv that is two vectors wide */
    /* A panel of conv: [taps][channels][width] of `maps` (<= width, a multiple of `vector`) filters
     * [channels][taps], `step` floats apart and aligned for nothing; maps beyond are zero. */
    void (*pack_panel)(const char *w, int64_t step, int64_t maps, int64_t width, int64_t channels,
                       int64_t taps, float *panel);
    void (*conv)(const ort_blocked_conv *conv);
    void (*conv_plain)(const ort_blocked_plain *conv);
    /* As conv, of one tap inside the input's rows, by crossed sums; NULL: those take longer. Pixels
     * that don't suit them, each by itself, are left to direct sums. */
    void (*conv_crossed)(const ort_blocked_conv *conv, const ort_blocked_crossed *crossed);
    /* Are so many channels of a plane zero that conv is faster, which leaves them out? It follows
     * from the plane alone, as must the bits of crossed sums. There where conv_crossed is. */
    bool (*is_sparse)(const float *x, int64_t channels, int64_t plane);
    /* As conv, of few output channels: at most `vector`, which `vectors` counts. Their weights lie
     * as [output][kernel row][kernel column][input channel], zeros up to a whole number of vectors
     * of input channels; sums run over these side by side. Nothing is accumulated or fetched
     * ahead; other channels of the output's block are zero before what follows the sums. */
    void (*conv_few)(const ort_blocked_conv *conv);
    /* Winograd F(4x4, 3x3), stride 1. Filters [9][channels][width] to [36][channels][width], which
     * begins at a multiple of 16 bytes and is written past the caches; 6x6 pixels, zero outside of
     * the plane, to stretches of v; stretches of sums to outputs, those beyond the plane left out.
     */
    void (*winograd_filter)(const float *g, int64_t channels, int64_t width, float *u);
    void (*winograd_input)(const ort_blocked_tiles *tiles);
    void (*winograd_output)(const ort_blocked_tiles *tiles);
    /* The same along one axis; NULL for blocks of 16 on narrower vectors. `taps` stretches of
     * `count` floats, a multiple of `vector`, to six of u. */
    void (*line_filter)(const float *g, int64_t count, int64_t taps, int form, float *u);
    void (*line_input)(const ort_blocked_line *line);
    void (*line_output)(const ort_blocked_line *line);
    /* NULL: the tier has no tiles. Splitting gives the size of what was split, of several pieces
     * the largest one counts: `fits` is false where an element is too large or not finite, or all
     * are too small; then the sums aren't those of floats. pack, from a panel of pack_panel, says
     * the same of weights; unpack is its inverse, but for such. */
    uint32_t (*tiled_split)(const ort_blocked_split *split);
    uint32_t (*tiled)(const ort_blocked_tiled *conv); /* the size of what it splits, or 0 */
    bool (*tiled_fits)(uint32_t size);
    bool (*tiled_pack)(const float *panel, int64_t channels, int64_t taps, int vectors, char *w);
    void (*tiled_unpack)(const char *w, int64_t channels, int64_t taps, int vectors, float *panel);
    void (*depthwise)(const ort_blocked_band *band);
    void (*max_pool)(const ort_blocked_band *band); /* NaN wins; an empty window is -inf */
    void (*average_pool)(const ort_blocked_each *each);
    /* The mean of `count` pixels of one block of channels. */
    void (*mean)(const float *x, int64_t count, float *y);
    void (*maximum)(const float *x, int64_t count, float *y);
    /* Of one block, with x * scale[B] (NULL: x) for the sum; scale and bias in one rounding.
     * Nothing is accumulated, z isn't read; out->y may be x. */
    void (*affine)(const float *x, const float *scale, const ort_blocked_out *out);
    /* A row of `count` pixels of one block, each mixed of those at its place in two rows, `down`
     * the weight of the lower one. */
    void (*mix_row)(const float *top, const float *bottom, float down,
                    const ort_blocked_place *places, int64_t count, float *y);
    /* y = x * s and y = x + s, s[B] the same for every pixel. y may be x. */
    void (*mul)(const float *x, const float *s, int64_t count, float *y);
    void (*add)(const float *x, const float *s, int64_t count, float *y);
    /* Planes in[channel * plane + pixel] to one block, channels beyond `channels` zero; and
     * back. */
    void (*gather)(const float *in, int64_t plane, int64_t channels, int64_t count, float *block);
    void (*scatter)(const float *block, int64_t plane, int64_t channels, int64_t count,
                    float *out);
} ort_blocked_kernels;

/* Fill (scalar) or override the two sizes. Called once, by dispatch.c. */
void ort_blocked_plug_scalar(ort_blocked_kernels *of8, ort_blocked_kernels *of16);
void ort_blocked_plug_avx2(ort_blocked_kernels *of8, ort_blocked_kernels *of16);
void ort_blocked_plug_avx512(ort_blocked_kernels *of8, ort_blocked_kernels *of16);
void ort_blocked_plug_amx(ort_blocked_kernels *of8, ort_blocked_kernels *of16);

#endif
