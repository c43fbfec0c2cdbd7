/* test_tiff.c - TIFF pictures of one row, in every compression, whole and damaged. The LZW codes
 * are those of the example in section 13 of TIFF 6.0, one of which is used before it is complete.
 */
#include <stdint.h>
#include <stdlib.h>

#include <zlib.h>

#include "io/image.h"
#include "test.h"

static const uint8_t pixels[] = {7, 7, 7, 8, 8, 7, 7, 6, 6};
enum { WIDTH = sizeof pixels, STRIP_AT = 200 };

static void put(uint8_t *at, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/* A grey picture of WIDTH x 1 whose strip holds `data`; the size of the file. */
static size_t build(uint8_t file[512], uint32_t compression, uint32_t predictor,
                    const uint8_t *data, size_t count)
{
    const uint32_t tags[][2] = {{256, WIDTH}, {257, 1}, {258, 8}, {259, compression}, {262, 1},
                                {273, STRIP_AT}, {277, 1}, {278, 1}, {279, (uint32_t)count},
                                {317, predictor}};
    size_t entries = sizeof tags / sizeof *tags;
    memset(file, 0, 512);
    memcpy(file, "II*", 4);
    put(file + 4, 8, 4);
    put(file + 8, (uint32_t)entries, 2);
    for (size_t i = 0; i < entries; i++) {
        uint8_t *entry = file + 10 + 12 * i;
        put(entry, tags[i][0], 2);
        put(entry + 2, 4, 2);
        put(entry + 4, 1, 4);
        put(entry + 8, tags[i][1], 4);
    }
    memcpy(file + STRIP_AT, data, count);
    return STRIP_AT + count;
}

static bool reads(const uint8_t *file, size_t count, const uint8_t *expected)
{
    ort_image image = {0};
    bool good = ort_tiff_decode(file, count, &image, NULL) == ORT_OK && image.width == WIDTH;
    for (int i = 0; good && i < WIDTH; i++)
        good = image.pixels[3 * i] == expected[i] && image.pixels[3 * i + 2] == expected[i];
    free(image.pixels);
    return good;
}

/* Codes of 9 bits, the highest bit first. */
static size_t pack(const uint16_t *codes, size_t count, uint8_t *out)
{
    memset(out, 0, (count * 9 + 7) / 8);
    for (size_t bit = 0; bit < count * 9; bit++)
        if (codes[bit / 9] >> (8 - bit % 9) & 1)
            out[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
    return (count * 9 + 7) / 8;
}

static void lzw(test_state *test)
{
    static const uint16_t codes[] = {256, 7, 258, 8, 8, 258, 6, 6, 257};
    static const uint16_t unknown[] = {256, 7, 259, 8, 8, 258, 6, 6, 257};
    uint8_t data[64], file[512];
    size_t count = pack(codes, 9, data);
    CHECK(reads(file, build(file, 5, 1, data, count), pixels));
    /* The last two bytes hold the end code alone. */
    for (size_t cut = 1; cut < count - 2; cut++)
        CHECK(!reads(file, build(file, 5, 1, data, cut), pixels));
    count = pack(unknown, 9, data);
    CHECK(!reads(file, build(file, 5, 1, data, count), pixels));
}

static void deflate_and_others(test_state *test)
{
    static const uint8_t runs[] = {(uint8_t)-2, 7, 5, 8, 8, 7, 7, 6, 6};
    uint8_t data[64], file[512];
    uLongf count = sizeof data;
    CHECK(compress(data, &count, pixels, WIDTH) == Z_OK);
    CHECK(reads(file, build(file, 8, 1, data, count), pixels));
    CHECK(reads(file, build(file, 32946, 1, data, count), pixels));
    CHECK(!reads(file, build(file, 8, 1, data, count - 6), pixels));
    CHECK(reads(file, build(file, 1, 1, pixels, WIDTH), pixels));
    CHECK(reads(file, build(file, 32773, 1, runs, sizeof runs), pixels));
    CHECK(!reads(file, build(file, 6, 1, pixels, WIDTH), pixels));
}

static void differences(test_state *test)
{
    uint8_t steps[WIDTH], file[512];
    for (int i = 0; i < WIDTH; i++)
        steps[i] = (uint8_t)(pixels[i] - (i ? pixels[i - 1] : 0));
    CHECK(reads(file, build(file, 1, 2, steps, WIDTH), pixels));
    CHECK(!reads(file, build(file, 1, 3, steps, WIDTH), pixels));
}

/* The last tag in place of the predictor; numbers that EXIF hasn't say nothing. */
static void orientations(test_state *test)
{
    static const uint32_t given[] = {1, 8, 9, 0xffffffff}, read[] = {1, 8, 0, 0};
    uint8_t file[512];
    for (int i = 0; i < 4; i++) {
        ort_image image = {0};
        size_t count = build(file, 1, given[i], pixels, WIDTH);
        put(file + 10 + 12 * 9, 274, 2);
        CHECK(ort_tiff_decode(file, count, &image, NULL) == ORT_OK);
        CHECK(image.orientation == (int)read[i]);
        free(image.pixels);
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, lzw);
    RUN(&test, deflate_and_others);
    RUN(&test, differences);
    RUN(&test, orientations);
    return test.failures ? 1 : 0;
}
