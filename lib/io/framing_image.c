/* framing_image.c - where an image of a stream ends (framing.h): `cat *.jpg`, a camera. */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "io/framing.h"
#include "io/image.h"

/* Length, type, data and checksum of each chunk, to IEND (ISO/IEC 15948, 5.3). */
void ort_frame_png(ort_frame *f)
{
    bool more = ort_frame_take(f, 8);
    while (more) {
        size_t at = f->count;
        if (!ort_frame_take(f, 8))
            return;
        more = memcmp(f->bytes + at + 4, "IEND", 4);
        if (!ort_frame_take(f, (uint64_t)ort_load_word(f->bytes + at, 4, true) + 4))
            return;
    }
}

/* A segment behind its marker: two bytes of length, which count themselves. */
static bool take_segment(ort_frame *f, size_t *payload, size_t *length)
{
    size_t at = f->count;
    if (!ort_frame_take(f, 2))
        return false;
    size_t size = (size_t)f->bytes[at] << 8 | f->bytes[at + 1];
    *payload = at + 2;
    *length = size > 2 ? size - 2 : 0;
    return ort_frame_take(f, *length);
}

/* Entropy-coded data up to the next marker, whose code is the last byte taken. */
static bool take_scan(ort_frame *f, unsigned char *marker)
{
    bool escape = false;
    while (ort_frame_take(f, 1)) {
        unsigned char c = f->bytes[f->count - 1];
        bool data = c == 0 || (c >= 0xd0 && c <= 0xd7); /* stuffing, restarts */
        if (escape && c != 0xff && !data) {
            *marker = c;
            return true;
        }
        escape = c == 0xff;
    }
    return false;
}

static bool take_marker(ort_frame *f, unsigned char *marker)
{
    size_t at = f->count;
    if (!ort_frame_take(f, 2) || f->bytes[at] != 0xff)
        return false;
    while (f->bytes[f->count - 1] == 0xff)
        if (!ort_frame_take(f, 1))
            return false;
    *marker = f->bytes[f->count - 1];
    return true;
}

/* Cameras put previews behind the picture, in the same file: the index in its second application
 * segment says where they lie (CIPA DC-007, 5.2.3: MPEntry, from the segment's own start). Returns
 * the end of the last one, or 0. */
static uint64_t end_of_previews(const unsigned char *p, size_t count, uint64_t start)
{
    if (count < 12)
        return 0;
    p += 4;
    count -= 4;
    bool big = p[0] == 'M';
    size_t at = ort_tiff_entry(p, count, 0xb002);
    size_t bytes = at ? ort_load_word(p + at + 4, 4, big) : 0;
    size_t list = at ? ort_load_word(p + at + 8, 4, big) : 0;
    uint64_t end = 0;
    for (; bytes >= 16 && list <= count && count - list >= 16; bytes -= 16, list += 16) {
        uint64_t size = ort_load_word(p + list + 4, 4, big);
        uint64_t offset = ort_load_word(p + list + 8, 4, big);
        uint64_t last = offset ? start + 4 + offset + size : 0;
        end = last > end ? last : end;
    }
    return end;
}

void ort_frame_jpeg(ort_frame *f)
{
    enum { EOI = 0xd9, SOS = 0xda, APP2 = 0xe2 };
    unsigned char marker;
    uint64_t previews = 0;
    bool indexed = false;
    if (!ort_frame_take(f, 2) || !take_marker(f, &marker))
        return;
    while (marker != EOI) {
        size_t payload, length;
        bool bare = marker == 1 || (marker >= 0xd0 && marker <= 0xd8);
        if (!bare && !take_segment(f, &payload, &length))
            return;
        if (marker == APP2 && !indexed && length >= 4 && !memcmp(f->bytes + payload, "MPF", 4)) {
            previews = end_of_previews(f->bytes + payload, length, payload);
            indexed = true;
        }
        if (marker == SOS ? !take_scan(f, &marker) : !take_marker(f, &marker)) {
            ort_frame_take_rest(f);
            return;
        }
    }
    if (previews > f->count)
        ort_frame_take(f, previews - f->count);
}

void ort_frame_riff(ort_frame *f)
{
    if (!ort_frame_take(f, 8))
        return;
    uint32_t size = ort_load_u32(f->bytes + 4);
    ort_frame_take(f, (uint64_t)size + size % 2);
}

void ort_frame_bmp(ort_frame *f)
{
    if (!ort_frame_take(f, 14))
        return;
    uint32_t size = ort_load_u32(f->bytes + 2);
    if (size > 14)
        ort_frame_take(f, size - 14);
    else
        ort_frame_take_rest(f);
}

/* A number behind white space and comments, and the one byte that ends it. */
static bool take_number(ort_frame *f, uint64_t *number)
{
    bool comment = false, digits = false;
    *number = 0;
    while (ort_frame_take(f, 1)) {
        unsigned char c = f->bytes[f->count - 1];
        if (!comment && isdigit(c)) {
            digits = true;
            *number = *number < UINT32_MAX ? *number * 10 + (c - '0') : *number;
        } else if (digits) {
            return true;
        } else if (c == '#' || comment) {
            comment = c != '\n';
        } else if (!isspace(c)) {
            return false;
        }
    }
    return digits;
}

/* P1 to P3: samples in digits, those of P1 with or without space between them. */
static void take_text_samples(ort_frame *f, char kind, uint64_t count)
{
    uint64_t number;
    if (kind != '1') {
        while (count > 0 && take_number(f, &number))
            count--;
        return;
    }
    bool comment = false;
    while (count > 0 && ort_frame_take(f, 1)) {
        char c = (char)f->bytes[f->count - 1];
        count -= !comment && (c == '0' || c == '1');
        comment = comment ? c != '\n' : c == '#';
    }
    if (ort_input_peek(f->in, 1) == 1 && f->in->peeked[0] == '\n')
        ort_frame_take(f, 1);
}

void ort_frame_pnm(ort_frame *f)
{
    uint64_t width, height, largest = 1;
    if (!ort_frame_take(f, 2))
        return;
    char kind = (char)f->bytes[1];
    bool bits = kind == '1' || kind == '4';
    if (!take_number(f, &width) || !take_number(f, &height) || (!bits && !take_number(f, &largest)))
        return;
    if (width > UINT32_MAX || height > UINT32_MAX) {
        ort_frame_take_rest(f);
        return;
    }
    uint64_t channels = kind == '3' || kind == '6' ? 3 : 1;
    if (kind < '4')
        take_text_samples(f, kind, width * height > UINT64_MAX / 3 ? UINT64_MAX
                                                                   : width * height * channels);
    else if (kind == '4')
        ort_frame_take(f, (width + 7) / 8 * height);
    else
        for (uint64_t i = 0; i < channels * (largest > 255 ? 2 : 1); i++)
            if (!ort_frame_take(f, width * height))
                return;
}

/* Boxes (ISO/IEC 15444-1, I.4) up to the signature box of the next file. */
void ort_frame_jp2(ort_frame *f)
{
    while (ort_input_peek(f->in, 8) == 8) {
        const unsigned char *head = f->in->peeked;
        bool box = isalnum(head[4]) && isalnum(head[5]);
        if (!box || (f->count > 0 && !memcmp(head + 4, "jP  ", 4)))
            return;
        uint64_t size = ort_load_word(head, 4, true), taken = 8;
        if (!ort_frame_take(f, 8))
            return;
        if (size == 1) {
            if (!ort_frame_take(f, 8))
                return;
            const unsigned char *wide = f->bytes + f->count - 8;
            size = (uint64_t)ort_load_word(wide, 4, true) << 32 | ort_load_word(wide + 4, 4, true);
            taken = 16;
        }
        if (size < taken) {
            ort_frame_take_rest(f);
            return;
        }
        if (!ort_frame_take(f, size - taken))
            return;
    }
}

/* Its parts lie anywhere: only with all bytes at hand can it be said where the last one ends. */
void ort_frame_tiff(ort_frame *f)
{
    ort_frame_take_rest(f);
    size_t extent = ort_tiff_extent(f->bytes, f->count);
    assert(extent <= f->count);
    f->behind = f->count - extent;
}

/* Tile parts, whose headers tell their lengths, to the end marker (ISO/IEC 15444-1, A.4). */
void ort_frame_j2k(ort_frame *f)
{
    enum { SOT = 0x90, EOC = 0xd9 };
    bool more = ort_frame_take(f, 2);
    while (more) {
        size_t at = f->count, payload, length;
        if (!ort_frame_take(f, 2) || f->bytes[at + 1] == EOC)
            return;
        more = f->bytes[at] == 0xff && take_segment(f, &payload, &length);
        uint32_t part = more && f->bytes[at + 1] == SOT && length == 8
                            ? ort_load_word(f->bytes + payload + 2, 4, true) : 12;
        more = more && part >= 12 && ort_frame_take(f, part - 12);
    }
    ort_frame_take_rest(f);
}
