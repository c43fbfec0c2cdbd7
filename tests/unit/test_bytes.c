/* test_bytes.c - quantized nets in the blocked layout of bytes give the codes that they give in the
 * plain one on the scalar tier: on every tier and any threads, whatever the window, the padding,
 * the channels, the signs, the zero points and the scales.
 */
#include "base/cpu.h"
#include "bytes_nets.h"

typedef struct conv_case {
    ort_dtype x, w, y;
    int x_zero, w_zero, y_zero;
    int64_t channels, maps, height, width, group;
    int64_t kernel[2], stride[2], dilation[2], pads[4];
    float scale; /* of the output: small ones saturate */
    enum { ANY, ENDS, LAST, EDGE, HALF, FITS, NEARLY } codes; /* of inputs and weights; the ends of
                                their range; the products' largest magnitude alone; those whose
                                products of pairs just fit in 16 bits, and just don't; likewise in
                                half of that; the first alone; and one weight is too much */
    int far;     /* every so many weights one may be anything, the others fit in int8; 0: all may */
    bool turned; /* a Transpose brings the channels of the input to the front */
} conv_case;

static const conv_case cases[] = {
    /* in place: 1x1, planes as rows, cut into pieces; channels that fill no block, no word */
    {U, S, U, 128, 0, 120, 32, 32, 9, 13, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 40},
    {U, S, U, 3, 0, 0, 41, 50, 23, 19, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 60},
    {S, S, S, -5, 0, 7, 7, 24, 5, 5, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 20},
    {S, S, U, 0, 0, 255, 16, 8, 1, 1, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 30},
    {U, S, S, 255, 0, -128, 80, 96, 14, 14, 1, {1, 1}, {2, 2}, {1, 1}, {0}, 80},
    {U, S, U, 7, 0, 9, 33, 17, 9, 15, 1, {1, 1}, {1, 2}, {1, 1}, {1, 0, 0, 2}, 40},
    /* windows, padded and not; weights with zero points; weak and strong saturation */
    {U, S, U, 128, 0, 128, 16, 40, 9, 13, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 100},
    {S, S, S, 11, 0, -3, 64, 33, 14, 14, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1e-7f},
    {U, U, U, 90, 128, 30, 20, 20, 10, 30, 1, {3, 3}, {2, 2}, {1, 1}, {0, 0, 1, 1}, 90},
    {U, S, U, 0, 0, 0, 24, 16, 17, 16, 1, {3, 2}, {1, 2}, {2, 3}, {2, 4, 1, 5}, 70},
    {S, U, S, 127, 128, 127, 48, 16, 2, 3, 1, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}, 300},
    {U, S, U, 60, 0, 1, 32, 32, 8, 3, 1, {3, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 120},
    {U, S, U, 60, 0, 1, 32, 64, 6, 5, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 120},
    {S, S, U, 5, 0, 20, 512, 20, 7, 7, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 600},
    {U, S, U, 60, 0, 1, 32, 24, 25, 1, 1, {3, 1}, {1, 1}, {1, 1}, {1, 0, 1, 0}, 120},
    /* rows so far apart that a task has those alone that lie on the same ones: several of them, one
     * or none; groups, strides along a row, words of neighbouring pixels */
    {U, S, U, 9, 0, 12, 64, 24, 40, 64, 1, {3, 3}, {1, 1}, {12, 1}, {12, 1, 12, 1}, 300, FITS},
    {S, S, S, 9, 0, 12, 12, 12, 11, 13, 1, {5, 1}, {1, 1}, {12, 1}, {24, 0, 24, 0}, 100},
    {U, U, U, 7, 128, 1, 48, 40, 5, 15, 2, {3, 3}, {1, 2}, {9, 2}, {9, 1, 8, 2}, 120},
    {U, S, U, 3, 0, 9, 1, 17, 5, 11, 1, {3, 3}, {1, 1}, {7, 1}, {6, 1, 9, 1}, 20},
    {U, U, U, 3, 143, 0, 24, 40, 4, 9, 1, {3, 2}, {1, 1}, {6, 3}, {6, 0, 6, 3}, 60, ANY, 1999},
    /* groups that fill no block, in input or output; of one channel with several filters */
    {U, S, U, 60, 0, 1, 32, 32, 6, 5, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 60},
    {S, S, U, 60, 0, 1, 57, 60, 9, 15, 3, {1, 1}, {2, 1}, {1, 1}, {0}, 60},
    {U, U, U, 7, 128, 1, 48, 40, 9, 15, 2, {3, 3}, {1, 2}, {1, 1}, {1, 1, 1, 1}, 120},
    {U, S, S, 7, 0, 1, 40, 64, 9, 15, 2, {3, 3}, {1, 1}, {2, 1}, {0, 1, 2, 1}, 120},
    {U, S, S, 7, 0, 1, 6, 30, 9, 15, 6, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 30},
    {S, S, S, 7, 0, 1, 12, 24, 9, 15, 12, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 30},
    /* tiles of 4x4: odd planes, channels that fill no block, padding of one side or wider than a
     * tile, ranges of tiles that end within a row; sums as far from zero as they get */
    {U, S, U, 9, 0, 120, 35, 49, 15, 21, 1, {3, 3}, {1, 1}, {1, 1}, {1, 0, 0, 2}, 200},
    {S, S, S, -9, 0, 12, 16, 130, 31, 34, 1, {3, 3}, {1, 1}, {1, 1}, {5, 4, 0, 3}, 200},
    {U, U, U, 0, 128, 12, 96, 64, 14, 33, 1, {3, 3}, {1, 1}, {1, 1}, {0, 1, 1, 0}, 400},
    {U, S, U, 255, 0, 128, 300, 32, 9, 8, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 900, ENDS},
    {U, S, U, 0, 0, 255, 500, 32, 9, 8, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 90000, LAST},
    {U, S, U, 255, 0, 128, 192, 32, 13, 10, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 900, ENDS},
    {U, S, U, 0, 0, 255, 227, 32, 9, 8, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 90000, LAST},
    {S, S, S, 9, 0, 0, 228, 32, 9, 8, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 900},
    /* sums that 24 bits don't hold nine times, by the weights alone: the bias is small */
    {U, S, U, 128, 0, 128, 64, 48, 13, 10, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 700, LAST},
    {U, S, U, 0, 0, 255, 512, 16, 9, 8, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 9000, LAST},
    {S, S, S, -128, 0, -1, 128, 40, 5, 6, 1, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 9000, ENDS},
    /* tiles of pixels: more than one task, strides that don't divide the rows, gaps behind each
     * row, steps of fewer words than a tile has, taps that don't neighbour each other */
    {S, S, U, 9, 0, 12, 3, 40, 40, 45, 1, {7, 7}, {2, 2}, {1, 1}, {3, 3, 3, 3}, 60},
    {U, S, U, 9, 0, 12, 64, 64, 60, 61, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 300},
    {U, S, U, 9, 0, 12, 64, 48, 33, 34, 1, {3, 3}, {2, 2}, {1, 1}, {1, 0, 1, 1}, 300},
    {S, S, S, 9, 0, 12, 16, 33, 22, 31, 1, {5, 3}, {3, 2}, {1, 1}, {2, 1, 0, 4}, 100},
    {U, S, U, 9, 0, 12, 48, 16, 12, 17, 1, {3, 3}, {2, 1}, {2, 2}, {2, 2, 2, 2}, 200},
    {U, S, U, 9, 0, 12, 64, 70, 13, 11, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 1e-7f},
    {S, S, U, 9, 0, 12, 128, 72, 37, 11, 1, {1, 1}, {2, 2}, {1, 1}, {0}, 100},
    {U, S, U, 255, 0, 9, 32, 64, 40, 1, 1, {5, 1}, {1, 1}, {1, 1}, {2, 0, 2, 0}, 200, ENDS},
    {U, S, U, 0, 0, 255, 256, 256, 14, 15, 2, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 90000, LAST},
    {S, S, U, 9, 0, 12, 72, 100, 50, 51, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 100},
    {S, S, U, 9, 0, 12, 136, 40, 29, 31, 1, {1, 1}, {2, 3}, {1, 1}, {0}, 100},
    {U, S, U, 9, 0, 12, 512, 200, 20, 21, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 400},
    /* pairs that 16 bits hold or not: panels of one vector and of two, windows, groups */
    {U, S, U, 255, 0, 9, 64, 72, 9, 11, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 900, EDGE},
    {U, S, U, 129, 0, 9, 40, 24, 9, 11, 1, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 900, EDGE},
    {U, U, U, 0, 128, 9, 48, 40, 9, 15, 2, {1, 1}, {1, 2}, {1, 1}, {0}, 900, EDGE},
    {U, S, U, 255, 0, 9, 48, 72, 9, 11, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 300, HALF},
    {U, S, U, 1, 0, 9, 24, 24, 9, 11, 1, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 300, HALF},
    {U, U, U, 0, 128, 9, 60, 40, 9, 15, 1, {1, 1}, {1, 2}, {1, 1}, {0}, 300, HALF},
    /* pairs that 16 bits hold whatever the input is: all of them, and all but one */
    {U, S, U, 255, 0, 9, 64, 72, 9, 11, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 900, FITS},
    {U, S, U, 255, 0, 9, 256, 64, 29, 31, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 900, FITS},
    {S, S, U, 127, 0, 9, 38, 24, 9, 11, 1, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 900, FITS},
    {U, S, U, 0, 0, 9, 60, 40, 9, 15, 2, {1, 1}, {1, 2}, {1, 1}, {0}, 900, FITS},
    {U, S, U, 3, 0, 9, 48, 200, 7, 7, 1, {3, 3}, {1, 1}, {2, 2}, {2, 2, 2, 2}, 900, FITS},
    {U, S, U, 255, 0, 9, 64, 72, 9, 11, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 900, NEARLY},
    {U, S, U, 255, 0, 9, 38, 24, 9, 11, 1, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 900, NEARLY},
    {U, S, U, 0, 0, 9, 60, 40, 9, 15, 2, {1, 1}, {1, 2}, {1, 1}, {0}, 900, NEARLY},
    /* one channel: a word of neighbouring pixels, unless they are dilated */
    {S, S, S, 83, 0, -128, 1, 64, 49, 10, 1, {10, 4}, {2, 2}, {1, 1}, {4, 1, 5, 1}, 20},
    {U, S, U, 3, 0, 9, 1, 17, 13, 11, 1, {3, 3}, {1, 1}, {2, 1}, {1, 1, 1, 1}, 20},
    {U, U, U, 3, 128, 9, 1, 20, 13, 30, 1, {1, 7}, {1, 1}, {1, 2}, {0, 3, 0, 3}, 20},
    {S, S, U, 3, 0, 9, 1, 16, 25, 1, 1, {5, 1}, {2, 1}, {1, 1}, {2, 0, 2, 0}, 20},
    {U, S, U, 0, 0, 255, 1, 16, 9, 23, 1, {9, 9}, {1, 1}, {1, 1}, {4, 4, 4, 4}, 900, LAST},
    /* depthwise */
    {U, S, U, 128, 0, 128, 24, 24, 12, 30, 24, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 12},
    {S, S, S, -9, 0, 4, 40, 40, 13, 31, 40, {3, 3}, {2, 2}, {1, 1}, {0, 0, 1, 1}, 12},
    {U, U, U, 2, 128, 4, 32, 32, 11, 14, 32, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}, 20},
    {U, S, U, 77, 0, 4, 17, 17, 15, 15, 17, {5, 5}, {2, 2}, {1, 1}, {2, 2, 2, 2}, 20},
    {S, S, S, 7, 0, 4, 16, 16, 9, 40, 16, {3, 7}, {1, 3}, {1, 2}, {1, 0, 1, 9}, 20},
    {U, S, U, 77, 0, 4, 33, 33, 15, 1, 33, {10, 1}, {2, 1}, {1, 1}, {4, 0, 5, 0}, 20},
    {U, S, U, 9, 0, 4, 16, 16, 60, 60, 16, {9, 9}, {1, 1}, {1, 1}, {4, 4, 4, 4}, 40},
    {U, S, U, 0, 0, 200, 20, 20, 9, 23, 20, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 900, LAST},
    {S, S, S, 5, 0, 4, 48, 48, 9, 11, 48, {5, 5}, {1, 2}, {1, 1}, {2, 2, 2, 2}, 300, ENDS},
    {S, S, S, 5, 0, 4, 24, 24, 10, 11, 24, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1e-7f},
    /* wider than what a task makes words of at a time */
    {U, S, U, 77, 0, 4, 24, 24, 7, 131, 24, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 12},
    {S, S, U, 77, 0, 4, 16, 16, 9, 139, 16, {5, 5}, {2, 2}, {1, 1}, {2, 2, 2, 2}, 20},
    {U, S, U, 77, 0, 4, 16, 16, 4, 270, 16, {3, 3}, {2, 2}, {1, 1}, {0, 1, 1, 0}, 12},
    /* read in place: planes narrower than a tile, rows that end within one, one output row, padding
     * of a side or wider than a tile */
    {U, S, U, 200, 0, 4, 64, 64, 25, 5, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 12},
    {S, S, U, 9, 0, 4, 20, 20, 1, 1, 20, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 12},
    {U, S, S, 50, 0, 4, 16, 16, 3, 2, 16, {3, 3}, {2, 2}, {1, 1}, {6, 7, 5, 9}, 12},
    {U, S, U, 50, 0, 4, 32, 32, 5, 37, 32, {3, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 12, ENDS},
    {S, S, S, 50, 0, 4, 32, 32, 6, 8, 32, {5, 5}, {1, 1}, {1, 1}, {0, 6, 5, 0}, 12, ENDS},
    {U, S, U, 1, 0, 4, 33, 33, 5, 21, 33, {5, 5}, {2, 2}, {1, 1}, {0, 0, 0, 0}, 12, ENDS},
    {U, S, U, 250, 0, 4, 16, 16, 2, 3, 16, {5, 5}, {2, 2}, {1, 1}, {2, 1, 2, 3}, 12},
    /* codes whose zero point is the lowest, to which nothing is added */
    {U, S, U, 77, 0, 0, 24, 24, 12, 30, 24, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 12},
    {S, S, S, 77, 0, -128, 40, 40, 13, 31, 40, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 12},
    {U, S, U, 130, 0, 0, 32, 32, 11, 27, 32, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}, 20, ENDS},
    {S, S, S, 3, 0, -128, 17, 17, 15, 29, 17, {5, 5}, {2, 2}, {1, 1}, {2, 2, 2, 2}, 20},
    /* strides of 2 downwards alone; planes of fewer rows than the window, whose padding is most of
     * it or all */
    {U, S, U, 77, 0, 4, 24, 24, 6, 96, 24, {5, 5}, {2, 1}, {1, 1}, {2, 2, 2, 2}, 20},
    {S, S, S, 50, 0, 4, 16, 16, 3, 70, 16, {3, 3}, {2, 1}, {1, 1}, {1, 1, 1, 1}, 12},
    {U, S, U, 9, 0, 4, 33, 33, 12, 7, 33, {3, 3}, {2, 1}, {1, 1}, {0, 2, 1, 1}, 12, ENDS},
    {U, S, U, 200, 0, 4, 40, 40, 2, 48, 40, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}, 20},
    {U, S, U, 201, 0, 4, 8, 8, 1, 9, 8, {5, 5}, {1, 1}, {1, 1}, {4, 4, 4, 4}, 20},
    {S, S, U, 77, 0, 4, 16, 16, 2, 11, 16, {5, 5}, {2, 1}, {1, 1}, {4, 2, 4, 2}, 20},
    {U, S, U, 19, 0, 4, 24, 24, 4, 67, 24, {3, 3}, {2, 1}, {1, 1}, {6, 1, 6, 1}, 12},
    {S, S, S, 19, 0, 4, 20, 20, 3, 6, 20, {3, 3}, {1, 1}, {1, 1}, {5, 1, 4, 1}, 12},
    {U, S, U, 90, 0, 4, 16, 16, 3, 6, 16, {5, 5}, {2, 2}, {1, 1}, {7, 2, 7, 2}, 12},
    /* weights that no int8 holds without their zero point: many, and a few in some of the runs of
     * whole blocks, of words behind them, of plain rows, and of blocks of a depthwise filter */
    {U, U, U, 3, 60, 0, 41, 50, 23, 19, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 60},
    {S, S, S, 11, 127, -3, 64, 33, 14, 14, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 60},
    {U, U, U, 3, 143, 0, 144, 40, 7, 9, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 60, ANY, 1999},
    {U, U, U, 3, 0, 0, 57, 70, 9, 8, 1, {3, 3}, {2, 1}, {1, 2}, {1, 1, 1, 1}, 60, ANY, 4001},
    {U, U, U, 3, 255, 0, 7, 24, 9, 8, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 60, ANY, 401},
    {S, S, U, 60, -128, 1, 32, 64, 6, 5, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 120, ANY, 4001},
    {U, U, U, 60, 99, 1, 60, 36, 6, 5, 3, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 90, ANY, 1201},
    {U, U, U, 132, 132, 0, 3, 32, 20, 21, 1, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 30, ANY, 701},
    {U, U, U, 132, 132, 0, 3, 32, 20, 21, 1, {3, 3}, {2, 2}, {1, 2}, {1, 1, 1, 1}, 30, ANY, 701},
    {U, U, U, 132, 90, 0, 2, 32, 20, 1, 1, {5, 1}, {1, 1}, {1, 1}, {2, 0, 2, 0}, 30, ANY, 301},
    {U, U, U, 132, 90, 0, 1, 32, 20, 9, 1, {3, 5}, {1, 2}, {1, 1}, {1, 2, 1, 2}, 30, ANY, 301},
    {U, U, U, 132, 90, 0, 4, 32, 20, 4, 1, {1, 1}, {1, 1}, {1, 1}, {0}, 30, ANY, 97},
    {U, U, U, 2, 200, 4, 40, 40, 11, 14, 40, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}, 20, ANY, 601},
    {S, S, S, 2, 90, 4, 33, 33, 11, 14, 33, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 20, ANY, 201},
    {U, U, U, 2, 9, 4, 16, 16, 11, 14, 16, {7, 2}, {2, 1}, {1, 3}, {1, 1, 1, 1}, 20},
};

/* Inputs or weights of a case; `last` where it takes those alone. */
static ort_value *codes_of(const conv_case *c, ort_dtype dtype, const int64_t *dims, uint32_t seed,
                           int last)
{
    const int low = lowest(dtype);
    ort_value *value = codes(dtype, 4, dims, seed, low, low + 255);
    static const int edges[2][2][8] = {{{0, 127, 128, 129, 131, 254, 255, 255},
                                        {192, 193, 64, 63, 191, 255, 0, 254}}, /* with 128 */
                                       {{0, 127, 128, 129, 131, 254, 255, 255},
                                        {160, 160, 159, 160, 96, 97, 96, 128}}};
    for (int64_t i = 0; value && c->codes != ANY && i < ort_value_count(value); i++) {
        seed = seed * 1664525u + 1013904223u;
        int edge = low + edges[c->codes == HALF][last == low][seed >> 29];
        if (c->codes == HALF && last == low && i / 4 % 3 == 0) /* too much, by words */
            edge += edge > low + 128;
        int end = c->codes == LAST ? last : low + (int)(seed >> 30 & 1) * 255;
        ort_value_set_double(value, i, c->codes == EDGE || c->codes == HALF ? edge : end);
    }
    return value;
}

/* Pairs of channels whose weights are of one sign and 128 together, or not far from it; of NEARLY
 * the last one is more. */
static void draw_fitting(const conv_case *c, ort_value *w)
{
    static const int first[8] = {127, 64, -128, -64, 1, -1, 100, 77};
    const int64_t taps = c->kernel[0] * c->kernel[1], channels = c->channels / c->group;
    const int64_t count = w ? ort_value_count(w) : 0;
    for (int64_t i = 0; i < count && c->codes >= FITS; i++) {
        const int64_t channel = i / taps % channels, filter = i / taps / channels;
        const int one = first[(channel / 2 + i % taps + filter) % 8], sign = one < 0 ? -1 : 1;
        ort_value_set_double(w, i, channel % 2 ? sign * (128 - sign * one) : one);
    }
    if (c->codes == NEARLY)
        for (int64_t k = 1; k <= 2; k++)
            ort_value_set_double(w, count - (k - 1) * taps - 1, k == 1 ? 65 : 64);
}

/* Weights of which every `far`-th is as it was, the others near the zero point. */
static void draw_near(const conv_case *c, ort_value *w)
{
    for (int64_t i = 0; w && c->far && i < ort_value_count(w); i++)
        if ((i + 1) % c->far)
            ort_value_set_double(w, i,
                                 c->w_zero + (int)(ort_value_get_double(w, i) - c->w_zero) / 8);
}

static void build_conv(net *n, const void *arg)
{
    const conv_case *c = arg;
    float scales[512];
    if (c->turned) {
        net_input(n, "t", c->x, 4, DIMS(2, c->height, c->width, c->channels));
        set_ints(n, net_node(n, "Transpose", "t", "x"), "perm", DIMS(0, 3, 1, 2), 4);
    } else {
        net_input(n, "x", c->x, 4, DIMS(2, c->channels, c->height, c->width));
    }
    const int64_t *dims = DIMS(c->maps, c->channels / c->group, c->kernel[0], c->kernel[1]);
    ort_value *w = codes_of(c, c->w, dims, 17, lowest(c->w));
    draw_near(c, w);
    draw_fitting(c, w);
    net_constant(n, "w", c->w, 4, dims, w ? ort_value_data(w) : NULL);
    ort_value_free(w);
    add_codes(n, "b", ORT_DTYPE_INT32, 1, DIMS(c->maps), 5, -30000, 30000);
    for (int64_t i = 0; i < c->maps; i++)
        scales[i] = (float)(i % 7 + 1) / 8;
    net_constant(n, "ws", ORT_DTYPE_FLOAT, 1, DIMS(c->maps), scales);
    add_scale(n, "xs", 0.7f);
    add_scale(n, "ys", c->scale * 50);
    add_number(n, "xz", c->x, c->x_zero);
    add_number(n, "wz", c->w, c->w_zero);
    add_number(n, "yz", c->y, c->y_zero);
    ort_node *conv = net_node(n, "QLinearConv", "x xs xz w ws wz ys yz b", "y");
    set_ints(n, conv, "kernel_shape", c->kernel, 2);
    set_ints(n, conv, "strides", c->stride, 2);
    set_ints(n, conv, "dilations", c->dilation, 2);
    set_ints(n, conv, "pads", c->pads, 4);
    net_int(n, conv, "group", c->group);
    net_output(n, "y");
}

typedef struct region_case {
    ort_dtype type; /* of all codes */
    bool mean;      /* it ends in a mean, else in a convolution */
} region_case;

/* A first layer of few channels, then what joins the layout: a pool, a sum, a table, blocks behind
 * each other. */
static void build_region(net *n, const void *arg)
{
    const region_case *r = arg;
    const ort_dtype t = r->type;
    const int low = lowest(t);
    net_input(n, "x", t, 4, DIMS(2, 3, 41, 37));
    add_codes(n, "w0", S, 4, DIMS(40, 3, 5, 5), 3, -128, 127);
    add_codes(n, "w1", S, 4, DIMS(40, 40, 3, 3), 4, -128, 127);
    add_codes(n, "w2", S, 4, DIMS(48, 40, 1, 1), 5, -128, 127);
    add_codes(n, "w3", S, 4, DIMS(9, 96, 1, 1), 6, -128, 127);
    add_number(n, "z", t, low + 100);
    add_number(n, "z2", t, low + 3);
    add_number(n, "wz", S, 0);
    add_scale(n, "s", 0.02f);
    add_scale(n, "s2", 0.9f);
    add_scale(n, "ws", 0.013f);
    ort_node *first = net_node(n, "QLinearConv", "x s z w0 ws wz s2 z2", "a");
    set_ints(n, first, "strides", DIMS(2, 1), 2);
    set_ints(n, first, "dilations", DIMS(1, 2), 2);
    set_ints(n, first, "pads", DIMS(2, 3, 1, 4), 4);
    ort_node *max = net_node(n, "MaxPool", "a", "p");
    set_ints(n, max, "kernel_shape", DIMS(3, 3), 2);
    set_ints(n, max, "strides", DIMS(2, 2), 2);
    set_ints(n, max, "pads", DIMS(1, 1, 1, 1), 4);
    set_ints(n, net_node(n, "QLinearConv", "p s2 z2 w1 ws wz s2 z", "c"), "pads",
             DIMS(1, 1, 1, 1), 4);
    net_node_of(n, "com.microsoft", "QLinearAdd", "c s2 z p s2 z2 s2 z", "r");
    net_node_of(n, "com.microsoft", "QLinearLeakyRelu", "r s2 z s2 z2", "l");
    net_node(n, "QLinearConv", "l s2 z2 w2 ws wz s z", "e");
    net_node(n, "QLinearConv", "r s2 z w2 ws wz s z2", "f");
    ort_node *concat = net_node_of(n, "com.microsoft", "QLinearConcat", "s2 z e s z f s z2", "k");
    net_int(n, concat, "axis", 1);
    if (r->mean)
        net_node_of(n, "com.microsoft", "QLinearGlobalAveragePool", "k s2 z s z2", "y");
    else
        net_node(n, "QLinearConv", "k s2 z w3 ws wz s2 z2", "y");
    net_output(n, "y");
}

static void convolve(test_state *test, bool all)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const conv_case *c = &cases[i];
        if (!all && c->group != c->channels)
            continue;
        ort_value *x = codes_of(c, c->x, DIMS(2, c->channels, c->height, c->width), 99,
                                lowest(c->x) + 255);
        bool ok = on_all_tiers(build_conv, c, x, 1);
        if (!ok)
            printf("# case %zu\n", i);
        CHECK(ok);
        ort_value_free(x);
    }
}

static void convolutions(test_state *test)
{
    convolve(test, true);
}

/* Those on each channel alone, as processors do that have no instruction for their words. */
static void without_vbmi(test_state *test)
{
    bool *has = (bool *)(uintptr_t)&ort_cpu_get()->avx512_vbmi; /* asked in each call */
    const bool had = *has;
    *has = false;
    convolve(test, false);
    *has = had;
}

/* Those of few channels again, behind a Transpose: tiers whose words are of two int16 do without
 * it where windows have no gaps in a row. */
static void channels_last(test_state *test)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        conv_case c = cases[i];
        c.turned = true;
        if (c.channels > 4 || c.group > 1)
            continue;
        ort_value *x = codes_of(&c, c.x, DIMS(2, c.height, c.width, c.channels), 99,
                                lowest(c.x) + 255);
        bool ok = on_all_tiers(build_conv, &c, x, 1);
        net n;
        if (ok && net_on(&n, "scalar", 1)) {
            build_conv(&n, &c);
            ort_session *s = at_level(&n, 3, NULL);
            ok = s && count_ops(s, "Transpose") == (c.dilation[1] > 1);
            ort_session_free(s);
            net_free(&n);
        }
        if (!ok)
            printf("# case %zu\n", i);
        CHECK(ok);
        ort_value_free(x);
    }
}

static void regions(test_state *test)
{
    static const region_case regions[] = {{U, false}, {S, false}, {U, true}, {S, true}};
    for (int i = 0; i < 4; i++) {
        const region_case *r = &regions[i];
        const int low = lowest(r->type);
        ort_value *x = codes(r->type, 4, DIMS(2, 3, 41, 37), 7, low, low + 255);
        CHECK(on_all_tiers(build_region, r, x, r->mean ? 4 : 5));
        net n;
        if (x && net_on(&n, NULL, 1)) {
            build_region(&n, r);
            ort_session *s = at_level(&n, 3, NULL);
            CHECK(s && !count_ops(s, "BlockBytes") && !count_ops(s, "MaxPool"));
            CHECK(s && count_ops(s, r->type == S ? "UnblockSignedBytes" : "UnblockBytes") == 1);
            ort_session_free(s);
            net_free(&n);
        }
        ort_value_free(x);
    }
}

/* What follows a convolution in its own step: x sigmoid(x) as a table, the sum with the input, a
 * table again. */
typedef struct tail_case {
    ort_dtype type;
    int64_t channels, kernel, group;
    bool table, sum, turned, last;
    int64_t apart, plane[2]; /* rows of the window; of the input; 0: what they usually are */
} tail_case;

static const tail_case tails[] = {
    {U, 40, 1, 1, true, false, false, false},  {S, 40, 3, 1, true, false, false, false},
    {S, 24, 1, 1, false, true, false, false},  {U, 40, 3, 1, false, true, true, false},
    {U, 48, 1, 1, true, true, true, false},    {S, 33, 3, 1, true, true, false, true},
    {U, 40, 3, 40, true, false, false, false}, {S, 20, 5, 20, false, true, false, true},
    {S, 64, 3, 2, false, true, true, true},    {U, 16, 7, 16, true, true, false, true},
    {U, 40, 3, 1, true, true, false, true, 10},
    {S, 16, 3, 1, true, true, true, true, 15, {40, 200}},
};

static int64_t tail_size(const tail_case *c, int axis)
{
    return c->plane[axis] ? c->plane[axis] : axis ? 11 : 9;
}

static ort_value *tail_input(const tail_case *c)
{
    const int low = lowest(c->type);
    return codes(c->type, 4, DIMS(2, c->channels, tail_size(c, 0), tail_size(c, 1)), 7, low,
                 low + 255);
}

/* x times its sigmoid, of scale s2 and zero point z2, gives one of s and z. */
static const char *add_swish(net *n, const char *x, const char *sigmoid, const char *y)
{
    char list[100];
    snprintf(list, sizeof list, "%s s2 z2 s z", x);
    net_node_of(n, "com.microsoft", "QLinearSigmoid", list, sigmoid);
    snprintf(list, sizeof list, "%s s2 z2 %s s z s2 z2", x, sigmoid);
    net_node_of(n, "com.microsoft", "QLinearMul", list, y);
    return y;
}

static void build_tail(net *n, const void *arg)
{
    const tail_case *c = arg;
    const int low = lowest(c->type);
    const char *at = "c";
    char list[100];
    net_input(n, "x", c->type, 4, DIMS(2, c->channels, tail_size(c, 0), tail_size(c, 1)));
    add_codes(n, "w0", S, 4, DIMS(c->channels, c->channels / c->group, c->kernel, c->kernel), 3,
              -128, 127);
    add_codes(n, "w1", S, 4, DIMS(17, c->channels, 1, 1), 4, -128, 127);
    add_number(n, "z", c->type, low + 3);
    add_number(n, "z2", c->type, low + 120);
    add_number(n, "wz", S, 0);
    add_scale(n, "s", 0.004f);
    add_scale(n, "s2", 0.05f);
    add_scale(n, "ws", 0.013f);
    ort_node *conv = net_node(n, "QLinearConv", "x s z w0 ws wz s2 z2", "c");
    const int64_t pad = c->kernel / 2, apart = c->apart ? c->apart : 1;
    set_ints(n, conv, "pads", DIMS(pad * apart, pad, pad * apart, pad), 4);
    set_ints(n, conv, "dilations", DIMS(apart, 1), 2);
    net_int(n, conv, "group", c->group);
    if (c->table)
        at = add_swish(n, at, "c_sigmoid", "c_swish");
    if (c->sum) {
        snprintf(list, sizeof list,
                 c->turned ? "x s z %s s2 z2 s2 z2" : "%s s2 z2 x s z s2 z2", at);
        net_node_of(n, "com.microsoft", "QLinearAdd", list, at = "sum");
    }
    if (c->last)
        at = add_swish(n, at, "sum_sigmoid", "sum_swish");
    snprintf(list, sizeof list, "%s s2 z2 w1 ws wz s2 z", at);
    net_node(n, "QLinearConv", list, "y");
    net_output(n, "y");
}

static void epilogues(test_state *test)
{
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        const tail_case *c = &tails[i];
        ort_value *x = tail_input(c);
        CHECK(on_all_tiers(build_tail, c, x, 2));
        net n;
        if (x && net_on(&n, NULL, 1)) {
            build_tail(&n, c);
            ort_session *s = at_level(&n, 3, NULL);
            CHECK(s && !count_ops(s, "QLinearAdd") && !count_ops(s, "LookUp") &&
                  !count_ops(s, "QLinearMul"));
            ort_session_free(s);
            net_free(&n);
        }
        ort_value_free(x);
    }
}

/* What the layout doesn't serve stays outside, and runs: a few filters; groups of one channel with
 * several. */
static void build_outside(net *n, const void *arg)
{
    const int kind = *(const int *)arg;
    net_input(n, "x", U, 4, DIMS(2, 3, 41, 37));
    add_codes(n, "w0", S, 4, DIMS(kind == 1 ? 24 : 7, kind == 1 ? 1 : 3, 3, 3), 3, -128, 127);
    add_number(n, "wz", S, 0);
    add_number(n, "z", U, 100);
    add_scale(n, "s", 0.02f);
    ort_node *conv = net_node(n, "QLinearConv", "x s z w0 s wz s z", "y");
    if (kind == 1)
        net_int(n, conv, "group", 3);
    net_output(n, "y");
}

static void outside(test_state *test)
{
    ort_value *x = codes(U, 4, DIMS(2, 3, 41, 37), 7, 0, 255);
    for (int kind = 0; kind < 2; kind++)
        CHECK(on_all_tiers(build_outside, &kind, x, kind)); /* the second is served */
    ort_value_free(x);
}

/* More inputs than a node of the layout may have: it stays outside. */
static void build_many(net *n, const void *arg)
{
    const int count = *(const int *)arg;
    char list[2048];
    int length = snprintf(list, sizeof list, "s z");
    net_input(n, "x", U, 4, DIMS(1, 3, 6, 6));
    add_codes(n, "w0", S, 4, DIMS(16, 3, 1, 1), 3, -128, 127);
    add_number(n, "wz", S, 0);
    add_number(n, "z", U, 100);
    add_scale(n, "s", 0.02f);
    net_node(n, "QLinearConv", "x s z w0 s wz s z", "a");
    for (int i = 0; i < count; i++)
        length += snprintf(list + length, sizeof list - (size_t)length, " a s z");
    net_int(n, net_node_of(n, "com.microsoft", "QLinearConcat", list, "y"), "axis", 1);
    net_output(n, "y");
}

static void many_inputs(test_state *test)
{
    static const int counts[] = {2, 20, 21, 100};
    ort_value *x = codes(U, 4, DIMS(1, 3, 6, 6), 7, 0, 255);
    for (int i = 0; i < 4; i++)
        CHECK(on_all_tiers(build_many, &counts[i], x, 1));
    ort_value_free(x);
}

/* ---- between planes and blocks */

static bool converts(const ort_bytes_kernels *k, int64_t channels, int64_t plane, uint8_t flip)
{
    enum { MOST = 17 * 40 };
    uint8_t in[MOST], out[MOST], blocked[MOST + 1];
    for (int i = 0; i < MOST; i++) {
        in[i] = (uint8_t)(i * 37 + 11);
        out[i] = 1;
    }
    blocked[plane * ORT_BYTES_BLOCK] = 2;
    k->gather(in, plane, channels, plane, flip, blocked);
    if (blocked[plane * ORT_BYTES_BLOCK] != 2)
        return false;
    for (int64_t i = 0; i < plane * ORT_BYTES_BLOCK; i++) {
        int64_t c = i % ORT_BYTES_BLOCK;
        if (blocked[i] != (c < channels ? in[c * plane + i / ORT_BYTES_BLOCK] ^ flip : 0))
            return false;
    }
    k->scatter(blocked, plane, channels, plane, flip, out);
    return !memcmp(in, out, (size_t)(channels * plane)) && out[channels * plane] == 1;
}

static bool gathers_words(const ort_bytes_kernels *k, int64_t channels, int64_t plane)
{
    uint8_t in[4 * 40], words[4 * 40 + 1];
    for (int i = 0; i < 4 * 40; i++)
        in[i] = (uint8_t)(i * 37 + 11);
    words[4 * plane] = 2;
    k->gather4(in, plane, channels, plane, 128, words);
    for (int64_t i = 0; i < 4 * plane; i++)
        if (words[i] != (i % 4 < channels ? in[i % 4 * plane + i / 4] ^ 128 : 0))
            return false;
    return words[4 * plane] == 2;
}

static void conversions(test_state *test)
{
    for (int t = 0; ort_kernel_tier_at(t); t++) {
        const ort_kernels *k = ort_kernel_tier_at(t)->has()
                                   ? ort_kernels_get(ort_kernel_tier_at(t)->name)
                                   : NULL;
        for (int64_t channels = 1; k && channels <= 16; channels++)
            for (int64_t plane = 1; plane < 40; plane++) {
                CHECK(converts(&k->bytes, channels, plane, plane % 2 ? 128 : 0));
                CHECK(channels > 4 || gathers_words(&k->bytes, channels, plane));
            }
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, convolutions);
    RUN(&test, without_vbmi);
    RUN(&test, channels_last);
    RUN(&test, regions);
    RUN(&test, epilogues);
    RUN(&test, outside);
    RUN(&test, many_inputs);
    RUN(&test, conversions);
    return test.failures != 0;
}
