/* image_pnm.c - the portable any-maps P1 to P6: bits, gray and colour, as text or bytes. Samples
 * are scaled to 0..255. */
#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "io/image.h"

typedef struct scanner {
    const unsigned char *p, *start, *end;
} scanner;

static void skip_space(scanner *s)
{
    assert(s->p <= s->end);
    while (s->p < s->end && (isspace(*s->p) || *s->p == '#')) {
        if (*s->p == '#')
            while (s->p < s->end && *s->p != '\n')
                s->p++;
        else
            s->p++;
    }
}

static ort_status read_number(scanner *s, unsigned *number, ort_error *err)
{
    skip_space(s);
    if (s->p >= s->end)
        return ort_image_truncated((size_t)(s->end - s->start), "PNM", err);
    if (!isdigit(*s->p))
        return ort_error_set(err, ORT_ERROR_DATA, "at byte %zu: a number is expected",
                             (size_t)(s->p - s->start));
    unsigned value = 0;
    while (s->p < s->end && isdigit(*s->p) && value < 100000000)
        value = value * 10 + (*s->p++ - '0');
    *number = value;
    return ORT_OK;
}

static uint8_t scaled(unsigned value, unsigned largest)
{
    assert(largest > 0 && largest <= 65535); /* 255 of them fit an int */
    if (value > largest)
        value = largest;
    return (uint8_t)((value * 255u + largest / 2) / largest);
}

/* One sample in the form of its kind: '1' single digits, '2' and '3' numbers, '5' and '6' bytes. */
static ort_status read_sample(scanner *s, char kind, unsigned largest, uint8_t *sample,
                              ort_error *err)
{
    unsigned value;
    if (kind == '1') {
        skip_space(s);
        if (s->p >= s->end)
            return ort_image_truncated((size_t)(s->end - s->start), "PNM", err);
        *sample = *s->p++ == '0' ? 255 : 0;
        return ORT_OK;
    }
    if (kind == '2' || kind == '3') {
        ORT_TRY(read_number(s, &value, err));
    } else {
        int bytes = largest > 255 ? 2 : 1;
        if (s->end - s->p < bytes)
            return ort_image_truncated((size_t)(s->end - s->start), "PNM", err);
        value = bytes == 2 ? (unsigned)s->p[0] << 8 | s->p[1] : s->p[0];
        s->p += bytes;
    }
    *sample = scaled(value, largest);
    return ORT_OK;
}

static ort_status read_bits(scanner *s, ort_image *image, ort_error *err)
{
    int64_t stride = (image->width + 7) / 8;
    uint8_t *out = image->pixels;
    for (int64_t y = 0; y < image->height; y++, s->p += stride) {
        assert(s->p <= s->end);
        if (s->end - s->p < stride)
            return ort_image_truncated((size_t)(s->end - s->start), "PNM", err);
        for (int64_t x = 0; x < image->width; x++, out += 3)
            memset(out, s->p[x / 8] >> (7 - x % 8) & 1 ? 0 : 255, 3);
    }
    return ORT_OK;
}

ort_status ort_pnm_decode(const unsigned char *bytes, size_t count, ort_image *image,
                          ort_error *err)
{
    scanner s = {bytes, bytes, bytes + count};
    unsigned width, height, largest = 1;
    if (count < 3 || bytes[0] != 'P' || bytes[1] < '1' || bytes[1] > '6')
        return ort_error_set(err, ORT_ERROR_DATA, "is no PNM image");
    char kind = (char)bytes[1];
    s.p += 2;
    ORT_TRY(read_number(&s, &width, err));
    ORT_TRY(read_number(&s, &height, err));
    if (kind != '1' && kind != '4')
        ORT_TRY(read_number(&s, &largest, err));
    if (largest < 1 || largest > 65535)
        return ort_error_set(err, ORT_ERROR_DATA, "the largest sample is %u; 1 to 65535 is allowed",
                             largest);
    ORT_TRY(ort_image_alloc(image, width, height, err));
    if (kind >= '4' && s.p < s.end)
        s.p++; /* the single white space before the bytes */
    if (kind == '4')
        return read_bits(&s, image, err);
    bool colour = kind == '3' || kind == '6';
    int64_t pixels = image->width * image->height;
    for (int64_t i = 0; i < pixels; i++) {
        uint8_t *out = image->pixels + 3 * i;
        for (int c = 0; c < (colour ? 3 : 1); c++)
            ORT_TRY(read_sample(&s, kind, largest, out + c, err));
        if (!colour)
            memset(out + 1, out[0], 2);
    }
    return ORT_OK;
}

ort_status ort_pnm_encode(const ort_image *image, int quality, FILE *stream, ort_error *err)
{
    if (image->channels == 4)
        return ort_error_set(err, ORT_ERROR_DATA, "PNM has no transparency; write PNG or WebP, or "
                             "slice off the fourth channel");
    fprintf(stream, "P%c\n%lld %lld\n255\n", image->channels == 1 ? '5' : '6',
            (long long)image->width, (long long)image->height);
    fwrite(image->pixels, (size_t)image->channels, (size_t)(image->width * image->height), stream);
    return ORT_OK;
}
