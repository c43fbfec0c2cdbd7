/* blocked_bytes.h - kernels of quantized tensors in the blocked channel layout of bytes:
 * [channels / 16][pixels][16] of uint8, on every tier.
 *
 * Products read their input in words of 32 bits, neighbouring channels of one pixel: four bytes
 * (`wide` 1) where the tier multiplies uint8 by int8, two int16 (`wide` 2) where it doesn't. Wide
 * input is a copy. Sums are formed modulo 2^32, so that all tiers give the same bits. Zero points
 * of the input are the caller's, who adds what they contribute to the bias and fills padding with
 * them. Channels beyond the real ones have weights of zero.
 *
 * Weights of `conv` lie in panels of two vectors of output channels (the last one may be one):
 * [panel][word][output channel], words in the order of the runs.
 */
#ifndef ORT_KERNEL_BLOCKED_BYTES_H
#define ORT_KERNEL_BLOCKED_BYTES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ORT_BYTES_BLOCK = 16,
    ORT_BYTES_AHEAD = 3, /* columns of taps that a depthwise window may read behind its last one,
                            for nothing */
    ORT_BYTES_WORDS = 8, /* words whose peaks or limits are read at once */
};

/* y = clamp(round_even((sum + bias) * scale) + zero, 0, 255): gemm.h's ort_requant. */
typedef struct ort_bytes_out {
    uint8_t *y;          /* first pixel, the block of the first vector */
    int64_t y_block;     /* bytes from one block of channels to the next */
    const int32_t *bias; /* per output channel from the first vector on */
    const float *scale;  /* likewise */
    int32_t zero;        /* 0..255 */
    bool bounded;        /* every sum that may come has a product with its scale that int32 holds */
    int64_t count;       /* pixels */
    int32_t *sums;       /* the sums with their bias instead, elements where y has bytes; y is then
                            only counted from. NULL: codes */
} ort_bytes_out;

/* Words that one pixel multiplies: at each offset, in bytes, so many neighbouring ones. */
typedef struct ort_bytes_runs {
    const int64_t *offset;
    int64_t runs, words;
} ort_bytes_runs;

typedef struct ort_bytes_conv {
    const char *x;           /* of the first output pixel; aligned for nothing */
    int64_t step;            /* bytes from one output pixel to the next */
    ort_bytes_runs part[2];  /* the second may have no runs */
    const int32_t *w;        /* panel 0 */
    int64_t first_vector, vectors; /* first_vector is even */
    const int32_t *next;     /* weights that are multiplied after this, brought near meanwhile; */
    int64_t next_bytes;      /* none: 0 */
    /* for tiers that have `fours`: the same once more */
    int64_t words;           /* of all runs */
    const int64_t *place;    /* of each word, bytes from x */
    /* of `fours`, which takes one panel and no `next`, of blocks of the layout alone */
    int64_t rows, x_row;     /* of out.count pixels, one behind the other in y; from one to the
                                next, bytes */
    const uint8_t *peaks, *limits; /* fours_peak_bytes(words), or NULL: all weights fit; four a
                                word, of ORT_BYTES_WORDS rounded up */
    const uint8_t *empty;    /* words whose weights are all 0, not 0 each; NULL: none is left out */
    void *space;             /* fours_space(words) bytes */
    ort_bytes_out out;
} ort_bytes_conv;

/* Products on tiles: of a copy of the input in which the words of a step are neighbours, 16 outputs
 * begin with pixels that lie evenly apart, and so do such tiles, of all rows: of `pitch` pixels
 * that follow each other a row takes `width`. Steps multiply `words` neighbouring words each;
 * together they are all words of a panel. */
typedef struct ort_bytes_tiled {
    const char *x;         /* under the first output pixel; ORT_BYTES_TILED pixels behind the last
                              may be read, for nothing */
    int64_t step, tile;    /* bytes from one output pixel to the next, from one tile to the next */
    const int64_t *offset; /* of each step, bytes */
    int64_t steps;
    int words;             /* 16 at most */
    int64_t rows, width, pitch;
    const int32_t *w;      /* the panel of the first vector, which is even */
    int64_t vectors;
    ort_bytes_out out;     /* count: rows * width, which lie behind each other */
} ort_bytes_tiled;

enum { ORT_BYTES_TILED = 32 };

/* A window on each channel alone, of one block; its padding is there. The input was copied by
 * `arrange` row by row. */
typedef struct ort_bytes_band {
    const char *x;      /* under the first tap of the first output pixel */
    int64_t x_row;      /* bytes from one input row to the next */
    int64_t kernel[2], stride[2], dilation[2];
    const int32_t *w;   /* by pack_depthwise, a term behind the other */
    int64_t terms;      /* whose sum the weights are */
    int64_t rows;       /* of the output, one behind the other; out.count: of a row */
    ort_bytes_out out;
} ort_bytes_band;

/* A window on each channel alone, straight from the plane of a block. */
typedef struct ort_bytes_window {
    const uint8_t *x;       /* the plane */
    int64_t height, width;
    int64_t top, left;      /* there, under the first tap of the first output pixel; what lies
                               outside is padding */
    const uint8_t *padding; /* `width` pixels, and one at least, of the zero point */
    int64_t channels;       /* that are somebody's; the codes of others may be anything */
    int64_t kernel[2], stride[2];
    const int32_t *w;       /* by pack_depthwise, one term */
    int64_t rows;           /* of the output, one behind the other; out.count: of a row */
    ort_bytes_out out;      /* sums, or codes, bounded */
} ort_bytes_window;

/* Neighbouring tiles of 4x4 outputs in a row, of one block, for a 3x3 window of stride 1
 * (blocked_bytes_winograd.inc): the transformed input, or the sums of products with it. */
typedef struct ort_bytes_tiles {
    int64_t height, width; /* of the plane that is read, or written */
    int64_t top, left;     /* there, the first pixel of the first tile; inputs may lie outside */
    int64_t tiles;
    const uint8_t *x;      /* the plane of a block */
    uint8_t x_zero;        /* what lies outside */
    int16_t *v;            /* [36 points][tile][channel]: of the first tile and channel */
    int64_t v_point, v_tile; /* elements */
    const int32_t *m;      /* likewise the sums, [36 points][tile][output channel of a block] */
    int64_t m_point;
    bool whole;            /* of sums: no result with its bias is beyond ORT_BYTES_WHOLE, and
                              out.bounded */
    ort_bytes_out out;     /* y: of the first pixel; no count, no y_block */
} ort_bytes_tiles;

enum { ORT_BYTES_WHOLE = (1 << 24) / 9 };

typedef struct ort_bytes_kernels {
    int wide;   /* bytes of an element of the input */
    int vector; /* output channels in a vector */
    void (*conv)(const ort_bytes_conv *conv);
    /* Where `wide` is 2, `conv` on words of four bytes, or NULL: what the codes under the pixels of
     * a call reach is compared with what the weights of a panel allow. Of `out` fours_peaks reads
     * the count alone. */
    void (*fours)(const ort_bytes_conv *conv);
    int64_t (*fours_space)(int64_t words);
    int64_t (*fours_peak_bytes)(int64_t words);
    void (*fours_peaks)(const ort_bytes_conv *conv, uint8_t *peaks);
    void (*fours_limits)(const int32_t *panel, int64_t words, int64_t vectors, uint8_t *limits);
    void (*depthwise)(const ort_bytes_band *band);
    /* What is faster than `conv` where there are many channels and pixels, else NULL; and pixels
     * for it: out[pixel * out_step + b / 4 * out_next + b % 4 * 16 + i] =
     * x[b * x_block + pixel * x_step + i], i < 16. */
    void (*tiled)(const ort_bytes_tiled *conv);
    void (*side_by_side)(const uint8_t *x, int64_t x_block, int64_t x_step, int64_t blocks,
                         int64_t count, char *out, int64_t out_step, int64_t out_next);
    /* Words of a band's weights, and these of 16 filters [16][kernel[0] * kernel[1]]. */
    int64_t (*depthwise_words)(const int64_t *kernel);
    void (*pack_depthwise)(const int8_t *w, const int64_t *kernel, int32_t *out);
    /* A row for `depthwise`: as it is, or what each output pixel multiplies side by side. Bytes
     * that it takes; `row` are the pixels of one block that it stands on, bytes on every tier, its
     * padding among them; up to ORT_BYTES_AHEAD columns of taps behind it are read. */
    int64_t (*arranged_bytes)(const ort_bytes_band *band);
    void (*arrange)(const ort_bytes_band *band, const uint8_t *row, char *out);
    /* Of one term, instead of `arrange` and `depthwise`, where the tier takes this
     * window. NULL: it takes none. */
    bool (*takes_window)(const int64_t *kernel, const int64_t *stride, const int64_t *dilation);
    void (*window)(const ort_bytes_window *window);
    /* Tiles, where they may be faster than `conv`, else NULL; sums are those of codes less 128.
     * Between the two stand 36 products, of `channels` in whole blocks and of one block of outputs:
     * m of v and transformed filters u, [36 points][pair of channels][output]. */
    void (*tiles_in)(const ort_bytes_tiles *tiles);
    void (*tiles_multiply)(const ort_bytes_tiles *tiles, const int32_t *u, int64_t channels,
                           int32_t *m);
    void (*tiles_out)(const ort_bytes_tiles *tiles);
    /* u of 16 filters [channels][9], transformed (blocked_bytes_winograd.inc). */
    void (*tiles_filter)(const int8_t *const *filters, int64_t channels, int32_t *u);
    int conv_rate, tiles_rate; /* products a cycle that convolutions and tiles_multiply come to */
    /* out[pixel][4] = in[channel * plane + pixel] ^ flip, channels beyond `channels` zero. */
    void (*gather4)(const uint8_t *in, int64_t plane, int64_t channels, int64_t count,
                    uint8_t flip, uint8_t *out);
    /* out[pixel][3] = in[channel * plane + pixel] ^ flip, where `wide` is 2, or NULL. */
    void (*gather3_wide)(const uint8_t *in, int64_t plane, int64_t count, uint8_t flip,
                         int16_t *out);
    /* out[pixel][16] = in[channel * plane + pixel] ^ flip, channels beyond `channels` are zero;
     * and back. */
    void (*gather)(const uint8_t *in, int64_t plane, int64_t channels, int64_t count, uint8_t flip,
                   uint8_t *block);
    void (*scatter)(const uint8_t *block, int64_t plane, int64_t channels, int64_t count,
                    uint8_t flip, uint8_t *out);
    /* out[pixel][i] = in[pixel][lanes[i]]; where that is -1, zero if `fresh`, else as it was. */
    void (*pick)(const uint8_t *in, const int8_t *lanes, bool fresh, int64_t count, uint8_t *out);
    /* y[i] = sums[i] * scale[i % 16] + shift[i % 16], each rounded, between low and high, of
     * `count` pixels; y may be sums. */
    void (*floats)(const int32_t *sums, const float *scale, const float *shift, float low,
                   float high, int64_t count, float *y);
} ort_bytes_kernels;

/* Fill (scalar) or override. Called once, by dispatch.c. */
void ort_bytes_plug_scalar(ort_bytes_kernels *table);
void ort_bytes_plug_avx2(ort_bytes_kernels *table);
void ort_bytes_plug_avxvnni(ort_bytes_kernels *table); /* over avx2 */
void ort_bytes_plug_vnni(ort_bytes_kernels *table); /* over avx512, which has avx2's */
void ort_bytes_plug_amx(ort_bytes_kernels *table); /* over vnni */

#endif
