/* image_tiff.c - baseline TIFF, read only: the pages of a file, in strips of 8 bits per sample,
 * grey, RGB or RGBA interleaved, uncompressed, PackBits, LZW or Deflate, either byte order.
 * LZW as section 13 of TIFF 6.0 has it: codes of 9 to 12 bits, the first bit the highest, wider one
 * code before the table would need it.
 *
 * Every offset and count of the file is checked against its size before it is used.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "io/image.h"
#include "io/input.h"

enum { TAG_SUBFILE = 254, TAG_WIDTH = 256, TAG_HEIGHT = 257, TAG_BITS = 258, TAG_COMPRESSION = 259,
       TAG_PHOTOMETRIC = 262, TAG_STRIP_OFFSETS = 273, TAG_ORIENTATION = 274, TAG_SAMPLES = 277,
       TAG_ROWS_PER_STRIP = 278, TAG_STRIP_COUNTS = 279, TAG_PLANAR = 284, TAG_PREDICTOR = 317 };

enum { COMPRESSION_NONE = 1, COMPRESSION_LZW = 5, COMPRESSION_DEFLATE = 8,
       COMPRESSION_PACKBITS = 32773, COMPRESSION_DEFLATE_OLD = 32946 };

/* Pages may lie on each other in a hostile file, and be read over and over. */
enum { MOST_ENTRIES = 4096, MOST_SAMPLES = 4 };

typedef struct field { /* one entry of the directory */
    uint32_t type, count;
    size_t at; /* of its values */
} field;

typedef struct tiff {
    const unsigned char *bytes;
    size_t count, directory, entries;
    bool big;
    uint32_t width, height, samples, compression, photometric, rows, planar, predictor;
    field offsets, counts;
} tiff;

static ort_status damaged(ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_DATA, "the TIFF data is damaged or not complete");
}

static uint32_t load(const tiff *t, size_t at, int size)
{
    assert(size <= 4 && at <= t->count && (size_t)size <= t->count - at);
    return ort_load_word(t->bytes + at, size, t->big);
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

/* ---- one strip into `out` of `room` bytes; false when it doesn't fill it */

typedef bool unpack_fn(const unsigned char *in, size_t length, unsigned char *out, size_t room);

static bool unpack_plain(const unsigned char *in, size_t length, unsigned char *out, size_t room)
{
    if (length >= room)
        memcpy(out, in, room);
    return length >= room;
}

static bool unpack_bits(const unsigned char *in, size_t length, unsigned char *out, size_t room)
{
    const unsigned char *end = in + length;
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

static bool unpack_deflate(const unsigned char *in, size_t length, unsigned char *out, size_t room)
{
    uLongf filled = (uLongf)room;
    int status = uncompress(out, &filled, in, (uLong)length);
    return (status == Z_OK || status == Z_BUF_ERROR) && filled == room;
}

enum { LZW_CLEAR = 256, LZW_END = 257, LZW_FIRST = 258, LZW_CODES = 4096 };

/* What a code stands for lies in the output already: where, and how long. */
typedef struct lzw {
    size_t at[LZW_CODES];
    size_t length[LZW_CODES];
    uint32_t next;
    int width;
} lzw;

/* Write what `code` stands for behind out[0, done); the number of bytes, 0 when it is none. */
static size_t lzw_write(const lzw *z, uint32_t code, size_t previous, unsigned char *out,
                        size_t done, size_t room)
{
    assert(done < room && previous <= done);
    if (code < LZW_CLEAR) {
        out[done] = (unsigned char)code;
        return 1;
    }
    bool known = code < z->next;
    if ((!known && code != z->next) || (!known && previous == 0))
        return 0;
    size_t from = known ? z->at[code] : done - previous;
    size_t count = known ? z->length[code] : previous + 1; /* itself and its first byte again */
    assert(code != LZW_CLEAR && code != LZW_END && from < done);
    for (size_t i = 0; i < count && done + i < room; i++)
        out[done + i] = out[from + i];
    return count < room - done ? count : room - done;
}

static bool unpack_lzw(const unsigned char *in, size_t length, unsigned char *out, size_t room)
{
    lzw z = {.next = LZW_FIRST, .width = 9};
    size_t done = 0, previous = 0; /* previous: bytes of the code before, 0 behind a clear */
    uint64_t bits = 0;
    int held = 0;
    for (size_t i = 0; i < length && done < room;) {
        for (; held < z.width && i < length; held += 8)
            bits = bits << 8 | in[i++];
        if (held < z.width)
            return false;
        uint32_t code = (uint32_t)(bits >> (held - z.width)) & ((1u << z.width) - 1);
        held -= z.width;
        assert(held >= 0 && held < 8 && z.next <= LZW_CODES);
        if (code == LZW_END)
            return false;
        if (code == LZW_CLEAR) {
            z.next = LZW_FIRST, z.width = 9, previous = 0;
            continue;
        }
        size_t n = lzw_write(&z, code, previous, out, done, room);
        if (n == 0)
            return false;
        if (previous && z.next < LZW_CODES) { /* the code before and the first byte of this one */
            z.at[z.next] = done - previous;
            z.length[z.next++] = previous + 1;
        }
        if (z.next + 1 >= 1u << z.width && z.width < 12)
            z.width++;
        done += n;
        previous = n;
    }
    return done == room;
}

static unpack_fn *unpacker_of(uint32_t compression)
{
    switch (compression) {
    case COMPRESSION_NONE: return unpack_plain;
    case COMPRESSION_PACKBITS: return unpack_bits;
    case COMPRESSION_LZW: return unpack_lzw;
    case COMPRESSION_DEFLATE:
    case COMPRESSION_DEFLATE_OLD: return unpack_deflate;
    default: return NULL;
    }
}

/* The directory at that offset; false when it isn't wholly there. */
static bool open_directory(tiff *t, size_t at)
{
    t->directory = at;
    if (at < 8 || at > t->count - 2)
        return false;
    t->entries = load(t, at, 2);
    return t->entries <= MOST_ENTRIES && t->entries <= (t->count - at - 2) / 12;
}

/* Where the directory of the next page lies, of which nothing is known yet; 0: there is none. */
static size_t next_directory(const tiff *t)
{
    size_t at = t->directory + 2 + t->entries * 12;
    return t->count - at >= 4 ? load(t, at, 4) : 0;
}

static bool is_preview(const tiff *t)
{
    return number(t, TAG_SUBFILE, 0) & 1; /* "reduced-resolution version of another image" */
}

static ort_status read_directory(tiff *t, size_t directory, ort_error *err)
{
    field bits;
    if (t->count < 8)
        return damaged(err);
    t->big = t->bytes[0] == 'M';
    if (!open_directory(t, directory ? directory : load(t, 4, 4)))
        return damaged(err);
    t->width = number(t, TAG_WIDTH, 0);
    t->height = number(t, TAG_HEIGHT, 0);
    t->samples = number(t, TAG_SAMPLES, 1);
    t->compression = number(t, TAG_COMPRESSION, COMPRESSION_NONE);
    t->photometric = number(t, TAG_PHOTOMETRIC, 1);
    t->rows = number(t, TAG_ROWS_PER_STRIP, t->height);
    t->planar = number(t, TAG_PLANAR, 1);
    t->predictor = number(t, TAG_PREDICTOR, 1);
    if (!t->width || !t->height || !t->rows || !find(t, TAG_STRIP_OFFSETS, &t->offsets) ||
        !find(t, TAG_STRIP_COUNTS, &t->counts))
        return damaged(err);
    bool eight = find(t, TAG_BITS, &bits);
    for (uint32_t i = 0; eight && i < bits.count && i < MOST_SAMPLES; i++)
        eight = value_of(t, &bits, i) == 8;
    bool grey = t->photometric <= 1 && t->samples <= 2;
    bool colour = t->photometric == 2 && (t->samples == 3 || t->samples == MOST_SAMPLES);
    if (!eight || (!grey && !colour) || t->planar != 1 || t->predictor < 1 || t->predictor > 2 ||
        !unpacker_of(t->compression))
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "this kind of TIFF isn't read; save it as "
                             "uncompressed 8-bit grey or RGB, or as PNG");
    return ORT_OK;
}

/* Predictor 2: each sample is the difference to that of the pixel before. */
static void add_up(const tiff *t, unsigned char *strip, uint32_t rows)
{
    size_t width = (size_t)t->width * t->samples;
    for (uint32_t r = 0; r < rows; r++, strip += width)
        for (size_t i = t->samples; i < width; i++)
            strip[i] = (unsigned char)(strip[i] + strip[i - t->samples]);
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
            length > t->count - at ||
            !unpacker_of(t->compression)(t->bytes + at, length, strip, pixels * t->samples))
            return damaged(err);
        if (t->predictor == 2)
            add_up(t, strip, rows);
        to_rgb(t, strip, pixels, image->pixels + (size_t)row * t->width * 3);
        row += rows;
        assert(row <= t->height);
    }
    return ORT_OK;
}

static size_t end_of_field(const tiff *t, const field *f)
{
    size_t bytes = (size_t)f->count * (size_t)type_size(f->type);
    return bytes > 4 && f->at <= t->count && bytes <= t->count - f->at ? f->at + bytes : 0;
}

/* *strips: those looked at so far, of all pages. */
static size_t page_extent(const tiff *t, size_t *strips)
{
    size_t end = t->directory + 2 + t->entries * 12 + 4;
    for (size_t i = 0; i < t->entries; i++) {
        size_t at = t->directory + 2 + i * 12;
        field f = {load(t, at + 2, 2), load(t, at + 4, 4), load(t, at + 8, 4)};
        size_t last = end_of_field(t, &f);
        end = last > end ? last : end;
    }
    for (uint32_t i = 0; i < t->offsets.count && i < t->counts.count; i++) {
        if (++*strips > t->count) /* more than a file has room to list */
            return t->count;
        size_t last = (size_t)value_of(t, &t->offsets, i) + value_of(t, &t->counts, i);
        end = last > end ? last : end;
    }
    return end;
}

size_t ort_tiff_extent(const unsigned char *bytes, size_t count)
{
    size_t end = 0, directory = 0, strips = 0;
    for (int page = 0; page < ORT_TIFF_MOST_PAGES && (page == 0 || directory); page++) {
        tiff t = {.bytes = bytes, .count = count};
        if (read_directory(&t, directory, NULL) != ORT_OK)
            return count;
        size_t last = page_extent(&t, &strips);
        end = last > end ? last : end;
        directory = next_directory(&t);
    }
    return end < count ? end : count;
}

ort_status ort_tiff_next(const unsigned char *bytes, size_t count, size_t *directory, int *seen,
                         ort_error *err)
{
    tiff t = {.bytes = bytes, .count = count};
    if (count < 8)
        return damaged(err);
    t.big = bytes[0] == 'M';
    size_t at = load(&t, 4, 4);
    if (*directory) {
        open_directory(&t, *directory); /* it was read */
        at = next_directory(&t);
    }
    for (; at; ++*seen) {
        if (*seen >= ORT_TIFF_MOST_PAGES)
            return ort_error_set(err, ORT_ERROR_DATA, "has more than %d pages and previews, or "
                                 "they go round in a circle", ORT_TIFF_MOST_PAGES - 1);
        if (!open_directory(&t, at))
            return damaged(err);
        if (!is_preview(&t))
            break;
        at = next_directory(&t);
    }
    *seen += at != 0;
    *directory = at;
    return ORT_OK;
}

ort_status ort_tiff_decode(const unsigned char *bytes, size_t count, ort_image *image,
                           ort_error *err)
{
    return ort_tiff_decode_page(bytes, count, 0, image, err);
}

ort_status ort_tiff_decode_page(const unsigned char *bytes, size_t count, size_t directory,
                                ort_image *image, ort_error *err)
{
    tiff t = {.bytes = bytes, .count = count};
    ORT_TRY(read_directory(&t, directory, err));
    ORT_TRY(ort_image_alloc(image, t.width, t.height, err));
    uint32_t orientation = number(&t, TAG_ORIENTATION, 0);
    image->orientation = orientation <= 8 ? (int)orientation : 0;
    size_t rows = t.rows < t.height ? t.rows : t.height;
    unsigned char *strip = malloc(rows * t.width * t.samples);
    if (!strip)
        return ort_error_memory(err, rows * t.width * t.samples);
    ort_status status = read_strips(&t, strip, image, err);
    free(strip);
    return status;
}
