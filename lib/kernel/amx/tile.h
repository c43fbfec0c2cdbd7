/* tile.h - the tile registers of AMX, as kernels of bytes use them: four tiles of sums, two of A
 * and two of B, so that each tile that is loaded takes part in two products.
 *
 * A tile has 16 rows of 64 bytes: sums are 16 rows by 16 columns of int32, A is 16 rows by 16 words
 * of four bytes, B is 16 words by 16 columns. A product of three takes 16 cycles, a load 8, so that
 * products and not loads bound a loop of four of each.
 *
 * Instructions are named to the assembler alone: the compiler has no values in tiles, and gcc 12's
 * intrinsic for the configuration lets stores into it be removed. Tiles are configured at the
 * beginning of a kernel and released at its end, because threads run other code in between, whose
 * registers the system then needn't save.
 */
#ifndef ORT_KERNEL_AMX_TILE_H
#define ORT_KERNEL_AMX_TILE_H

#include <stdint.h>

enum { TILE_ROWS_MOST = 16, TILE_WORDS = 16, TILE_COLUMNS = 16, TILE_PAIR = 2 * TILE_COLUMNS };

typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

/* Tiles 0 and 1 are sums of `upper` rows, 2 and 3 of `lower` ones, by 16 columns each; 4 and 5 are
 * rows of A of `words` words, 6 and 7 as many words of B. */
static inline void tile_begin(int upper, int lower, int words)
{
    const uint8_t u = (uint8_t)upper, l = (uint8_t)(lower > 0 ? lower : 1), w = (uint8_t)words;
    const uint16_t a = (uint16_t)(4 * words);
    const tile_config config = {.palette = 1, .row_bytes = {64, 64, 64, 64, a, a, 64, 64},
                                .rows = {u, u, l, l, u, l, w, w}};
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

static inline void tile_end(void)
{
    __asm__ volatile("tilerelease" : : : "memory");
}

#define TILE_LOAD(tile, from, step)                                                                \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(from), "r"((int64_t)(step))        \
                     : "memory")
/* The same of what isn't read again soon, so that it displaces little in the first-level cache. */
#define TILE_LOAD_ONCE(tile, from, step)                                                           \
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #tile : : "r"(from), "r"((int64_t)(step))      \
                     : "memory")
#define TILE_STORE(tile, to, step)                                                                 \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(to), "r"((int64_t)(step))      \
                     : "memory")
#define TILE_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : :)
/* Unsigned bytes of a by signed ones of b. */
#define TILE_DOT(sums, a, b)                                                                       \
    __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #sums : :)
/* Signed bytes of a by unsigned ones of b. */
#define TILE_DOT_SIGNED(sums, a, b)                                                                \
    __asm__ volatile("tdpbsud %%tmm" #b ", %%tmm" #a ", %%tmm" #sums : :)

#endif
