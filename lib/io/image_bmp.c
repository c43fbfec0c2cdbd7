/* image_bmp.c - Windows bitmaps: 1, 4, 8 (also run-length), 16, 24 and 32 bits, palettes and bit
 * fields, rows upwards or downwards. Written as 24 bits. */
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "io/image.h"
#include "io/input.h"

enum { BI_RGB = 0, BI_RLE8 = 1, BI_RLE4 = 2, BI_BITFIELDS = 3, FILE_HEADER = 14 };

typedef struct bitmap {
    const unsigned char *bytes;
    size_t count;
    uint32_t offset; /* of the pixels */
    int64_t width, height;
    bool down;       /* first row on top */
    unsigned bits, compression;
    const unsigned char *palette;
    size_t palette_entry, colours;
    uint32_t mask[3];
} bitmap;

static void set_masks(bitmap *b, uint32_t red, uint32_t green, uint32_t blue)
{
    b->mask[0] = red;
    b->mask[1] = green;
    b->mask[2] = blue;
}

static ort_status read_info(bitmap *b, ort_error *err)
{
    const unsigned char *info = b->bytes + FILE_HEADER;
    if (b->count < FILE_HEADER + 12)
        return ort_image_truncated(b->count, "BMP", err);
    uint32_t size = ort_load_u32(info), used = 0;
    if (size > b->count - FILE_HEADER)
        return ort_image_truncated(b->count, "BMP", err);
    b->offset = ort_load_u32(b->bytes + 10);
    if (size == 12) { /* OS/2 */
        b->width = ort_load_u16(info + 4);
        b->height = ort_load_u16(info + 6);
        b->bits = ort_load_u16(info + 10);
        b->palette_entry = 3;
    } else if (size >= 40) {
        b->width = (int32_t)ort_load_u32(info + 4);
        b->height = (int32_t)ort_load_u32(info + 8);
        b->bits = ort_load_u16(info + 14);
        b->compression = ort_load_u32(info + 16);
        used = ort_load_u32(info + 32);
        b->palette_entry = 4;
    } else {
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "a BMP header of %u bytes is unknown",
                             (unsigned)size);
    }
    b->down = b->height < 0;
    b->height = b->down ? -b->height : b->height;
    size_t at = FILE_HEADER + size;
    set_masks(b, b->bits == 16 ? 0x7c00 : 0xff0000, b->bits == 16 ? 0x3e0 : 0xff00,
              b->bits == 16 ? 0x1f : 0xff);
    if (b->compression == BI_BITFIELDS) {
        if (b->count < FILE_HEADER + 52)
            return ort_image_truncated(b->count, "BMP", err);
        set_masks(b, ort_load_u32(info + 40), ort_load_u32(info + 44), ort_load_u32(info + 48));
        at += size == 40 ? 12 : 0;
    }
    if (b->bits <= 8) {
        b->colours = used && used < 1u << b->bits ? used : (size_t)1 << b->bits;
        b->palette = b->bytes + at;
        if (at > b->count || (b->count - at) / b->palette_entry < b->colours)
            return ort_image_truncated(b->count, "BMP", err);
    }
    return ORT_OK;
}

static void put_colour(const bitmap *b, unsigned index, uint8_t *out)
{
    if (index >= b->colours)
        index = 0;
    assert(b->colours > 0); /* the palette has as many (read_info) */
    const unsigned char *entry = b->palette + index * b->palette_entry;
    out[0] = entry[2];
    out[1] = entry[1];
    out[2] = entry[0];
}

/* The bits under a mask as 0..255. */
static uint8_t field(uint32_t word, uint32_t mask)
{
    if (mask == 0)
        return 0;
    int shift = __builtin_ctz(mask);
    uint64_t largest = mask >> shift, value = (word & mask) >> shift;
    return (uint8_t)((value * 255 + largest / 2) / largest);
}

static void put_pixel(const bitmap *b, const unsigned char *row, int64_t x, uint8_t *out)
{
    switch (b->bits) {
    case 1: put_colour(b, row[x / 8] >> (7 - x % 8) & 1u, out); return;
    case 4: put_colour(b, row[x / 2] >> (x % 2 ? 0 : 4) & 15u, out); return;
    case 8: put_colour(b, row[x], out); return;
    case 24:
        out[0] = row[3 * x + 2];
        out[1] = row[3 * x + 1];
        out[2] = row[3 * x];
        return;
    default: break;
    }
    uint32_t word = b->bits == 16 ? ort_load_u16(row + 2 * x) : ort_load_u32(row + 4 * x);
    for (int c = 0; c < 3; c++)
        out[c] = field(word, b->mask[c]);
}

static uint8_t *row_of(const bitmap *b, ort_image *image, int64_t y)
{
    assert(y >= 0 && y < b->height && image->width == b->width && image->height == b->height);
    return image->pixels + 3 * image->width * (b->down ? y : b->height - 1 - y);
}

static ort_status read_rows(const bitmap *b, ort_image *image, ort_error *err)
{
    uint64_t stride = ((uint64_t)b->width * b->bits + 31) / 32 * 4;
    if (b->offset > b->count || (b->count - b->offset) / stride < (uint64_t)b->height)
        return ort_image_truncated(b->count, "BMP", err);
    for (int64_t y = 0; y < b->height; y++) {
        uint8_t *out = row_of(b, image, y);
        for (int64_t x = 0; x < b->width; x++)
            put_pixel(b, b->bytes + b->offset + (uint64_t)y * stride, x, out + 3 * x);
    }
    return ORT_OK;
}

/* Run-length codes: count and colour; 0 0 ends a row, 0 1 the picture, 0 2 jumps, 0 n is n literal
 * pixels. With 4 bits a byte holds two pixels, which alternate. */
static ort_status read_runs(const bitmap *b, ort_image *image, ort_error *err)
{
    const unsigned char *p = b->bytes + b->offset, *end = b->bytes + b->count;
    int64_t x = 0, y = 0;
    bool nibbles = b->compression == BI_RLE4;
    for (int64_t i = 0; i < b->height * b->width; i++)
        put_colour(b, 0, image->pixels + 3 * i);
    while (end - p >= 2) {
        unsigned count = p[0], code = p[1];
        p += 2;
        if (count == 0 && code == 1)
            return ORT_OK;
        if (count == 0 && code == 0) {
            x = 0;
            y++;
            continue;
        }
        if (count == 0 && code == 2) {
            if (end - p < 2)
                break;
            x += p[0];
            y += p[1];
            p += 2;
            continue;
        }
        assert(p <= end);
        bool literal = count == 0;
        unsigned pixels = literal ? code : count;
        size_t size = literal ? (nibbles ? (pixels + 1) / 2 : pixels) : 0;
        if ((size_t)(end - p) < size)
            break;
        for (unsigned i = 0; i < pixels; i++, x++) {
            unsigned value = literal ? p[nibbles ? i / 2 : i] : code;
            if (nibbles)
                value = i % 2 ? value & 15u : value >> 4;
            if (x < b->width && y < b->height)
                put_colour(b, value, row_of(b, image, y) + 3 * x);
        }
        p += size + size % 2;
        if (size % 2 && p > end)
            break;
    }
    return ort_image_truncated(b->count, "BMP", err);
}

ort_status ort_bmp_decode(const unsigned char *bytes, size_t count, ort_image *image,
                          ort_error *err)
{
    bitmap b = {.bytes = bytes, .count = count};
    ORT_TRY(read_info(&b, err));
    bool runs = (b.compression == BI_RLE8 && b.bits == 8) ||
                (b.compression == BI_RLE4 && b.bits == 4);
    bool fields = b.compression == BI_BITFIELDS && (b.bits == 16 || b.bits == 32);
    bool plain = b.compression == BI_RGB && (b.bits == 1 || b.bits == 4 || b.bits == 8 ||
                                             b.bits == 16 || b.bits == 24 || b.bits == 32);
    if (!runs && !fields && !plain)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "BMP of %u bits with compression %u is "
                             "not read", b.bits, b.compression);
    if (b.width < 1 || b.height < 1)
        return ort_error_set(err, ORT_ERROR_DATA, "the BMP header has an impossible size");
    ORT_TRY(ort_image_alloc(image, (uint64_t)b.width, (uint64_t)b.height, err));
    if (!runs)
        return read_rows(&b, image, err);
    return b.offset <= count ? read_runs(&b, image, err) : ort_image_truncated(count, "BMP", err);
}

ort_status ort_bmp_encode(const ort_image *image, int quality, FILE *stream, ort_error *err)
{
    size_t stride = ((size_t)image->width * 3 + 3) / 4 * 4, bytes = stride * (size_t)image->height;
    unsigned char head[54] = {'B', 'M'}, *row = calloc(1, stride);
    if (!row)
        return ort_error_memory(err, stride);
    if (image->channels == 4 || bytes > UINT32_MAX - sizeof head) {
        free(row);
        return ort_error_set(err, ORT_ERROR_DATA, "BMP is written with 1 or 3 channels and up to "
                             "4 GB; PNG holds this");
    }
    ort_store_u32(head + 2, (uint32_t)(sizeof head + bytes));
    ort_store_u32(head + 10, sizeof head);
    ort_store_u32(head + 14, 40);
    ort_store_u32(head + 18, (uint32_t)image->width);
    ort_store_u32(head + 22, (uint32_t)image->height);
    ort_store_u32(head + 26, 1 | 24 << 16);
    ort_store_u32(head + 34, (uint32_t)bytes);
    fwrite(head, 1, sizeof head, stream);
    for (int64_t y = image->height - 1; y >= 0; y--) {
        const uint8_t *from = image->pixels + y * image->width * image->channels;
        for (int64_t x = 0; x < image->width; x++)
            for (int c = 0; c < 3; c++)
                row[3 * x + c] = image->channels == 1 ? from[x] : from[3 * x + 2 - c];
        fwrite(row, 1, stride, stream);
    }
    free(row);
    return ORT_OK;
}
