/* image_tiff.c - baseline TIFF, read only: the first picture of a file, in strips of 8 bits per
 * sample, grey, RGB or RGBA interleaved, uncompressed or PackBits, either byte order.
 *
 * Every offset and count of the file is checked against its size before it is used.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "io/image.h"

enum { TAG_WIDTH = 256, TAG_HEIGHT = 257, TAG_BITS = 258, TAG_COMPRESSION = 259,
       TAG_PHOTOMETRIC = 262, TAG_STRIP_OFFSETS = 273, TAG_ORIENTATION = 274, TAG_SAMPLES = 277,
       TAG_ROWS_PER_STRIP = 278, TAG_STRIP_COUNTS = 279, TAG_PLANAR = 284 };

enum { COMPRESSION_NONE = 1, COMPRESSION_PACKBITS = 32773 };

typedef struct field { /* one entry of the directory */
    uint32_t type, count;
    size_t at; /* of its values */
} field;

typedef struct tiff {
    const unsigned char *bytes;
    size_t count, directory, entries;
    bool big;
    uint32_t width, height, samples, compression, photometric, rows, planar;
    field offsets, counts;
} tiff;

static ort_status damaged(ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_DATA, "the TIFF data is damaged or not complete");
}

static uint32_t load(const tiff *t, size_t at, int size)
{
    uint32_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | t->bytes[at + (size_t)(t->big ? i : size - 1 - i)];
    return value;
}

static int type_size(uint32_t type)
{
    return type == 1 ? 1 : type == 3 ? 2 : type == 4 ? 4 : 0; /* byte, short, long */
}

/* The entry of a tag; false when it is missing, of another type, or lies outside the file. */
static bool find(const tiff *t, uint32_t tag, field *out)
{
    for (size_t i = 0; i < t->entries; i++) {
        size_t at = t->directory + 2 + i * 12;
        if (load(t, at, 2) != tag)
            continue;
        *out = (field){load(t, at + 2, 2), load(t, at + 4, 4), at + 8};
        uint64_t bytes = (uint64_t)out->count * (uint64_t)type_size(out->type);
        if (bytes == 0)
            return false;
        if (bytes > 4)
            out->at = load(t, at + 8, 4);
        return out->at <= t->count && bytes <= t->count - out->at;
    }
    return false;
}

static uint32_t value_of(const tiff *t, const field *f, uint32_t index)
{
    int size = type_size(f->type);
    return index < f->count ? load(t, f->at + (size_t)index * (size_t)size, size) : 0;
}

static uint32_t number(const tiff *t, uint32_t tag, uint32_t fallback)
{
    field f;
    return find(t, tag, &f) ? value_of(t, &f, 0) : fallback;
}

static ort_status read_directory(tiff *t, ort_error *err)
{
    field bits;
    if (t->count < 8)
        return damaged(err);
    t->big = t->bytes[0] == 'M';
    t->directory = load(t, 4, 4);
    if (t->directory > t->count - 2 || t->directory < 8)
        return damaged(err);
    t->entries = load(t, t->directory, 2);
    if (t->entries > (t->count - t->directory - 2) / 12)
        return damaged(err);
    t->width = number(t, TAG_WIDTH, 0);
    t->height = number(t, TAG_HEIGHT, 0);
    t->samples = number(t, TAG_SAMPLES, 1);
    t->compression = number(t, TAG_COMPRESSION, COMPRESSION_NONE);
    t->photometric = number(t, TAG_PHOTOMETRIC, 1);
    t->rows = number(t, TAG_ROWS_PER_STRIP, t->height);
    t->planar = number(t, TAG_PLANAR, 1);
    if (!t->width || !t->height || !t->rows || !find(t, TAG_STRIP_OFFSETS, &t->offsets) ||
        !find(t, TAG_STRIP_COUNTS, &t->counts))
        return damaged(err);
    bool eight = find(t, TAG_BITS, &bits);
    for (uint32_t i = 0; eight && i < bits.count; i++)
        eight = value_of(t, &bits, i) == 8;
    bool grey = t->photometric <= 1 && t->samples <= 2;
    bool colour = t->photometric == 2 && (t->samples == 3 || t->samples == 4);
    if (!eight || (!grey && !colour) || t->planar != 1 ||
        (t->compression != COMPRESSION_NONE && t->compression != COMPRESSION_PACKBITS))
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "this kind of TIFF isn't read; save it as "
                             "uncompressed 8-bit grey or RGB, or as PNG");
    return ORT_OK;
}

/* One strip into `out` of `room` bytes; false when it doesn't fill it. */
static bool unpack(const tiff *t, size_t at, size_t length, unsigned char *out, size_t room)
{
    const unsigned char *in = t->bytes + at, *end = in + length;
    if (t->compression == COMPRESSION_NONE) {
        if (length < room)
            return false;
        memcpy(out, in, room);
        return true;
    }
    while (room > 0) {
        if (in == end)
            return false;
        int control = (signed char)*in++;
        if (control == -128)
            continue;
        size_t n = control >= 0 ? (size_t)control + 1 : (size_t)-control + 1;
        if (n > room || in == end || (control >= 0 && n > (size_t)(end - in)))
            return false;
        if (control >= 0)
            memcpy(out, in, n);
        else
            memset(out, *in, n);
        in += control >= 0 ? n : 1;
        out += n;
        room -= n;
    }
    return true;
}

/* `pixels` of the file's samples to RGB. */
static void to_rgb(const tiff *t, const unsigned char *in, size_t pixels, uint8_t *out)
{
    for (size_t i = 0; i < pixels; i++, in += t->samples, out += 3)
        for (int c = 0; c < 3; c++) {
            uint8_t v = in[t->samples >= 3 ? c : 0];
            out[c] = t->photometric == 0 ? (uint8_t)(255 - v) : v;
        }
}

static ort_status read_strips(const tiff *t, unsigned char *strip, ort_image *image, ort_error *err)
{
    uint32_t row = 0;
    for (uint32_t i = 0; row < t->height; i++) {
        uint32_t rows = t->rows < t->height - row ? t->rows : t->height - row;
        size_t pixels = (size_t)rows * t->width, at = value_of(t, &t->offsets, i);
        size_t length = value_of(t, &t->counts, i);
        if (i >= t->offsets.count || i >= t->counts.count || at > t->count ||
            length > t->count - at || !unpack(t, at, length, strip, pixels * t->samples))
            return damaged(err);
        to_rgb(t, strip, pixels, image->pixels + (size_t)row * t->width * 3);
        row += rows;
    }
    return ORT_OK;
}

ort_status ort_tiff_decode(const unsigned char *bytes, size_t count, ort_image *image,
                           ort_error *err)
{
    tiff t = {.bytes = bytes, .count = count};
    ORT_TRY(read_directory(&t, err));
    ORT_TRY(ort_image_alloc(image, t.width, t.height, err));
    image->orientation = (int)number(&t, TAG_ORIENTATION, 0);
    size_t rows = t.rows < t.height ? t.rows : t.height;
    unsigned char *strip = malloc(rows * t.width * t.samples);
    if (!strip)
        return ort_error_memory(err, rows * t.width * t.samples);
    ort_status status = read_strips(&t, strip, image, err);
    free(strip);
    return status;
}
