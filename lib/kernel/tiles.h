/* tiles.h - names for micro tiles of pixels: lists of their accumulators, which are named variables
 * because gcc keeps arrays of vectors in memory, and how a row is cut into tiles. */
#ifndef ORT_KERNEL_TILES_H
#define ORT_KERNEL_TILES_H

#include <assert.h>
#include <stdint.h>

#define BK_CAT_(a, b) a##b
#define BK_CAT(a, b) BK_CAT_(a, b)

#define BK_LIST1(X) X(0)
#define BK_LIST2(X) BK_LIST1(X) X(1)
#define BK_LIST3(X) BK_LIST2(X) X(2)
#define BK_LIST4(X) BK_LIST3(X) X(3)
#define BK_LIST5(X) BK_LIST4(X) X(4)
#define BK_LIST6(X) BK_LIST5(X) X(5)
#define BK_LIST7(X) BK_LIST6(X) X(6)
#define BK_LIST8(X) BK_LIST7(X) X(7)
#define BK_LIST9(X) BK_LIST8(X) X(8)
#define BK_LIST10(X) BK_LIST9(X) X(9)
#define BK_LIST11(X) BK_LIST10(X) X(10)
#define BK_LIST12(X) BK_LIST11(X) X(11)
#define BK_LIST13(X) BK_LIST12(X) X(12)
#define BK_LIST14(X) BK_LIST13(X) X(13)

/* A tile of one vector is as wide as the registers let it be on every tier: with 6 sums in flight
 * the next multiply-add would wait for its own. */
#define BK_SINGLE_PIXELS 14
#define BK_UP_TO_6(M, wide) M(1, wide) M(2, wide) M(3, wide) M(4, wide) M(5, wide) M(6, wide)
#define BK_UP_TO_12(M, wide)                                                                       \
    BK_UP_TO_6(M, wide) M(7, wide) M(8, wide) M(9, wide) M(10, wide) M(11, wide) M(12, wide)
#define BK_UP_TO_14(M, wide) BK_UP_TO_12(M, wide) M(13, wide) M(14, wide)

/* Pixels cut into tiles: so many of `pixels`, then of one pixel less. */
typedef struct ort_tile_cut {
    int64_t pixels, tiles[2];
} ort_tile_cut;

static inline ort_tile_cut ort_tile_cut_of(int64_t pixels, int64_t most)
{
    assert(pixels > 0 && most > 0);
    if (pixels <= most) /* short rows are many, and divisions slow */
        return (ort_tile_cut){pixels, {1, 0}};
    const int64_t tiles = (pixels + most - 1) / most, each = pixels / tiles, more = pixels % tiles;
    return more ? (ort_tile_cut){each + 1, {more, tiles - more}} : (ort_tile_cut){each, {tiles, 0}};
}

#endif
