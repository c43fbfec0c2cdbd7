/* image_webp.c - WebP through libwebp, opened at first use. Pixels come without the alpha channel.
 * EXIF lies in a RIFF chunk of its own, which is found by hand. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <webp/decode.h>
#include <webp/encode.h>

#include "io/image.h"
#include "io/input.h"

#define WEBP_FUNCTIONS(X)                                                                          \
    X(WebPGetInfo) X(WebPDecodeRGBInto) X(WebPEncodeRGB) X(WebPEncodeRGBA) X(WebPFree)

ORT_IMAGE_LIBRARY(webp_library, WEBP_FUNCTIONS, "WebP", {"libwebp.so.7"}, "libwebp7", "libwebp",
                  "libwebp")

enum { WEBP_DEFAULT_QUALITY = 80, WEBP_LARGEST_SIDE = 16383 };

static int find_orientation(const unsigned char *bytes, size_t count)
{
    for (size_t at = 12; at + 8 <= count;) {
        size_t size = ort_load_u32(bytes + at + 4), left = count - at - 8;
        if (size > left)
            return 0;
        if (!memcmp(bytes + at, "EXIF", 4))
            return ort_image_orientation(bytes + at + 8, size);
        if (size == left)
            return 0;
        at += 8 + size + size % 2;
    }
    return 0;
}

ort_status ort_webp_decode(const unsigned char *bytes, size_t count, ort_image *image,
                           ort_error *err)
{
    webp_library lib;
    ORT_TRY(open_library(&lib, err));
    if (count >= 12 && (uint64_t)ort_load_u32(bytes + 4) + 8 > count)
        return ort_error_set(err, ORT_ERROR_DATA, "truncated at byte %zu: the WebP data needs %llu "
                             "bytes", count, (unsigned long long)ort_load_u32(bytes + 4) + 8);
    int width = 0, height = 0;
    if (!lib.WebPGetInfo(bytes, count, &width, &height) || width < 1 || height < 1)
        return ort_error_set(err, ORT_ERROR_DATA, "is no WebP image, or its header is damaged");
    ORT_TRY(ort_image_alloc(image, (uint64_t)width, (uint64_t)height, err));
    if (!lib.WebPDecodeRGBInto(bytes, count, image->pixels, (size_t)width * (size_t)height * 3,
                               width * 3))
        return ort_error_set(err, ORT_ERROR_DATA, "the WebP data is damaged");
    image->orientation = find_orientation(bytes, count);
    return ORT_OK;
}

/* Gray as three equal channels: WebP has no gray. The caller frees. */
static uint8_t *spread_gray(const ort_image *image)
{
    size_t pixels = (size_t)image->width * (size_t)image->height;
    uint8_t *rgb = malloc(pixels * 3);
    for (size_t i = 0; rgb && i < pixels; i++)
        memset(rgb + 3 * i, image->pixels[i], 3);
    return rgb;
}

ort_status ort_webp_encode(const ort_image *image, int quality, FILE *stream, ort_error *err)
{
    webp_library lib;
    ORT_TRY(open_library(&lib, err));
    if (image->width > WEBP_LARGEST_SIDE || image->height > WEBP_LARGEST_SIDE)
        return ort_error_set(err, ORT_ERROR_DATA, "WebP holds at most %d pixels in each direction",
                             WEBP_LARGEST_SIDE);
    uint8_t *rgb = image->channels == 1 ? spread_gray(image) : NULL, *out = NULL;
    if (image->channels == 1 && !rgb)
        return ort_error_memory(err, (size_t)image->width * (size_t)image->height * 3);
    bool alpha = image->channels == 4;
    int width = (int)image->width, height = (int)image->height;
    float used = (float)(quality > 0 ? quality : WEBP_DEFAULT_QUALITY);
    size_t size = (alpha ? lib.WebPEncodeRGBA : lib.WebPEncodeRGB)(
        rgb ? rgb : image->pixels, width, height, width * (alpha ? 4 : 3), used, &out);
    free(rgb);
    if (size > 0)
        fwrite(out, 1, size, stream);
    lib.WebPFree(out);
    return size > 0 ? ORT_OK : ort_error_set(err, ORT_ERROR_RUN, "can't encode WebP");
}
